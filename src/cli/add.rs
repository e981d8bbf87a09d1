//! `routine add`, `reminder add`: a file like one a person would write.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::args::{Given, ReminderAdd, RoutineAdd};
use super::context::Context;
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{jobs, times, when};
use crate::channel::terminal::plain;
use crate::clock::whole_second;
use crate::definition::{self, Definition, Draft, Kind, Written};

/// `routine add`.
///
/// # Errors
/// When what was asked for is no valid routine; nothing is written then.
pub fn routine(args: RoutineAdd, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    let mut draft = draft(Kind::Routine, args.message, &args.fields.0)?;
    let _one_at_a_time = context.narrow(&mut draft)?;
    let written = definition::create(&context.home, &draft, &context.defaults()?)?;
    said(&written, context, output);
    Ok(())
}

/// `reminder add`.
///
/// # Errors
/// When what was asked for is no valid reminder; nothing is written then.
pub fn reminder(args: ReminderAdd, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    let ReminderAdd { message, delay, span, at, fields } = args;
    let mut draft = draft(Kind::Reminder, message, &fields.0)?;
    let zone = match draft.timezone {
        Some(zone) => zone,
        None => context.zone()?,
    };
    let now = context.now();
    let run_at = match (delay, span, at) {
        (Some(minutes), _, _) => later(now, Duration::from_secs(u64::from(minutes) * 60), zone)?,
        (_, Some(span), _) => later(now, span, zone)?,
        (_, _, Some(text)) => when::future(&text, now, zone)?,
        (None, None, None) => {
            return Err(CliError::user("a reminder needs a time")
                .hint("say when: `--in 20m`, `--at 'tomorrow 9am'`, or `--delay MINUTES`"));
        }
    };
    draft.run_at = Some(whole_second(run_at).fixed_offset());
    let _one_at_a_time = context.narrow(&mut draft)?;
    let written = definition::create(&context.home, &draft, &context.defaults()?)?;
    said(&written, context, output);
    Ok(())
}

/// So long after now.
pub(super) fn later(now: DateTime<Utc>, span: Duration, zone: Tz) -> Result<DateTime<Tz>, CliError> {
    let too_far = || CliError::user("that is too far away").hint("give a date with `--at`");
    let span = TimeDelta::from_std(span).map_err(|_| too_far())?;
    Ok(now.checked_add_signed(span).ok_or_else(too_far)?.with_timezone(&zone))
}

/// The job that flags ask for. Each value is read by the rules of the files.
fn draft(kind: Kind, message: String, given: &[Given]) -> Result<Draft, CliError> {
    let mut draft = Draft::empty(kind, task(message)?);
    not_together(given)?;
    let background = given.iter().any(|given| given.field.name == "background");
    if let Some(given) = given.iter().find(|given| given.field.background_only && !background) {
        return Err(CliError::user(format!("`--{}` needs `--background`", given.flag))
            .hint("a foreground job is a turn of the main session and has all that it has"));
    }
    for Given { field, value, .. } in given {
        draft.set(field, value).map_err(|fault| {
            let error = CliError::user(fault.message);
            fault.hint.into_iter().fold(error, CliError::hint)
        })?;
    }
    Ok(draft)
}

/// The prompt, which says something.
pub(super) fn task(message: String) -> Result<String, CliError> {
    if message.trim().is_empty() {
        return Err(CliError::user("the message is empty").hint("say what is to be done: `-m 'Check the oven'`"));
    }
    Ok(message)
}

/// That no two flags are given of which one excludes the other.
pub(super) fn not_together(given: &[Given]) -> Result<(), CliError> {
    let flag = |name: &str| given.iter().find(|given| given.field.name == name).map(|given| given.flag);
    match (flag("allowed_tools"), flag("disallowed_tools")) {
        (Some(allowed), Some(blocked)) => {
            Err(CliError::user(format!("`--{allowed}` and `--{blocked}` cannot be used together"))
                .hint("`--allowed-tools` lists the only tools the job has, `--blocked-tools` takes tools away"))
        }
        _ => Ok(()),
    }
}

/// Warnings, and when it fires.
pub(super) fn said(written: &Written, context: &Context, output: &mut Output) {
    warnings(written, output);
    scheduled(&written.definition, context, output);
}

/// What a person should look at in what was just written.
pub(super) fn warnings(written: &Written, output: &mut Output) {
    for problem in &written.warnings {
        output.note(super::check::coloured(problem));
    }
}

/// `scheduled ID: at Sun 22 Nov 09:00 CET (in 19h 4m)`.
pub(super) fn scheduled(definition: &Definition, context: &Context, output: &mut Output) {
    let now = context.now();
    if context.json {
        output.json(&jobs::as_json(definition, jobs::next(definition, now)));
        return;
    }
    let when = match jobs::next(definition, now) {
        Some(at) => {
            format!("at {} ({})", times::local(at, now, definition.zone), times::relative(at, now))
        }
        None => "disabled".to_owned(),
    };
    output.line(format!("scheduled {}: {when}", paint(STRONG, &plain(definition.id.as_str()))));
}
