//! `routine add`, `reminder add`: a file like one a person would write. A chain's next link is made here too.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;

use super::args::{JobArgs, ReminderAdd, RoutineAdd, Terms};
use super::context::Context;
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{jobs, times, when};
use crate::channel::terminal::plain;
use crate::definition::{self, Definition, DefinitionId, Draft, Thinking, When, Written};
use crate::policy::JobNetwork;

/// `routine add`.
///
/// # Errors
/// When what was asked for is no valid routine; nothing is written then.
pub fn routine(args: RoutineAdd, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    let RoutineAdd { cron, on_overlap, job } = args;
    let mut draft = draft(When::Cron(cron), job)?;
    draft.on_overlap = on_overlap.unwrap_or_default();
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
    let written = make_reminder(args, context)?;
    said(&written, context, output);
    Ok(())
}

/// The reminder that was asked for, written.
pub(super) fn make_reminder(args: ReminderAdd, context: &Context) -> Result<Written, CliError> {
    context.require_home()?;
    let ReminderAdd { delay, span, at, max_chain, chain_depth, chain_parent, job } = args;
    let zone = match &job.timezone {
        Some(name) => zone(name)?,
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
    let mut draft = draft(When::At(whole_second(run_at).fixed_offset()), job)?;
    draft.max_chain = max_chain.unwrap_or(0);
    draft.chain_depth = chain_depth.unwrap_or(0);
    draft.chain_parent = chain_parent.map(DefinitionId::new);
    let _one_at_a_time = context.narrow(&mut draft)?;
    Ok(definition::create(&context.home, &draft, &context.defaults()?)?)
}

/// So long after now.
pub(super) fn later(now: DateTime<Utc>, span: Duration, zone: Tz) -> Result<DateTime<Tz>, CliError> {
    let too_far = || CliError::user("that is too far away").hint("give a date with `--at`");
    let span = TimeDelta::from_std(span).map_err(|_| too_far())?;
    Ok(now.checked_add_signed(span).ok_or_else(too_far)?.with_timezone(&zone))
}

/// The next whole second, unless it is one: never earlier than what was asked for.
pub(super) fn whole_second(at: DateTime<Tz>) -> DateTime<Tz> {
    let up = if at.nanosecond() == 0 { at } else { at + TimeDelta::seconds(1) };
    up.with_nanosecond(0).unwrap_or(up)
}

fn zone(name: &str) -> Result<Tz, CliError> {
    name.parse().map_err(|_| {
        let nearest = chrono_tz::TZ_VARIANTS
            .iter()
            .map(|zone| (strsim::damerau_levenshtein(&name.to_lowercase(), &zone.name().to_lowercase()), zone.name()))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let error = CliError::user(format!("there is no time zone `{name}`"));
        match nearest {
            Some((_, known)) => error.hint(format!("did you mean `{known}`?")),
            None => error.hint("write an IANA name like `Europe/Berlin`"),
        }
    })
}

fn draft(when: When, args: JobArgs) -> Result<Draft, CliError> {
    let JobArgs {
        message,
        background,
        isolated,
        terms,
        max_cost_usd,
        thinking,
        no_thinking,
        skills,
        timezone,
        on_missed,
        retry,
        created_by,
    } = args;
    let message = task(message)?;
    terms.one_list()?;
    let Terms {
        description,
        model,
        agent,
        allowed_tools,
        blocked_tools,
        update_main_session,
        no_ping,
        no_network,
        timeout,
        max_turns,
    } = terms;
    let only_background = [
        (allowed_tools.is_some(), "--allowed-tools"),
        (blocked_tools.is_some(), "--blocked-tools"),
        (isolated, "--isolated"),
        (model.is_some(), "--model"),
        (thinking.is_some(), "--thinking"),
        (no_thinking, "--no-thinking"),
        (agent.is_some(), "--agent"),
        (update_main_session.is_some(), "--update-main-session"),
        (no_ping, "--no-ping"),
        (no_network, "--no-network"),
    ];
    if let (false, Some((_, flag))) = (background, only_background.iter().find(|(given, _)| *given)) {
        return Err(CliError::user(format!("`{flag}` needs `--background`"))
            .hint("a foreground job is a turn of the main session and has all that it has"));
    }
    let mut draft = Draft::new(when, message);
    draft.description = description;
    draft.timezone = timezone.as_deref().map(zone).transpose()?;
    draft.background = background;
    draft.isolated = isolated;
    draft.model = model;
    draft.thinking = match (no_thinking, thinking) {
        (true, _) => Thinking::Disabled,
        (false, Some(tokens)) => Thinking::Budget(tokens),
        (false, None) => Thinking::Adaptive,
    };
    draft.update_main_session = update_main_session.unwrap_or_default();
    draft.allow_ping = !no_ping;
    draft.network = if no_network { JobNetwork::None } else { JobNetwork::Internet };
    draft.allowed_tools = allowed_tools.map(list);
    draft.disallowed_tools = blocked_tools.map(list);
    draft.agent = agent;
    draft.skills = skills.unwrap_or_default();
    draft.timeout = timeout;
    draft.max_turns = max_turns;
    draft.max_cost_usd = max_cost_usd;
    draft.on_missed = on_missed;
    draft.retry = retry;
    draft.created_by = created_by.map(DefinitionId::new);
    Ok(draft)
}

/// The prompt, which says something.
pub(super) fn task(message: String) -> Result<String, CliError> {
    if message.trim().is_empty() {
        return Err(CliError::user("the message is empty").hint("say what is to be done: `-m 'Check the oven'`"));
    }
    Ok(message)
}

impl Terms {
    /// That at most one of the two lists is given.
    pub(super) fn one_list(&self) -> Result<(), CliError> {
        if self.allowed_tools.is_some() && self.blocked_tools.is_some() {
            return Err(CliError::user("`--allowed-tools` and `--blocked-tools` cannot be used together")
                .hint("`--allowed-tools` lists the only tools the job has, `--blocked-tools` takes tools away"));
        }
        Ok(())
    }
}

/// One empty value is the empty list.
pub(super) fn list(values: Vec<String>) -> Vec<String> {
    if values == [""] { Vec::new() } else { values }
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
