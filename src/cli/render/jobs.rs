//! Renders definitions: lists, details, and confirmations of changes.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::{View, check};
use crate::app::{Job, JobList, SavedDefinition, summary, times};
use crate::channel::terminal::{plain, plain_lines};
use crate::cli::output::{BAD, Cell, FAINT, HINT, Output, STRONG, paint};
use crate::definition::fields::FIELDS;
use crate::definition::{Background, Cadence, Chain, Definition, Draft, Kind, Trigger};

/// Confirms that a definition was written and fires: `scheduled ID: at Sun 22 Nov 09:00 CET (in 19h 4m)`.
pub(super) fn scheduled(recorded: &SavedDefinition, view: &View, output: &mut Output) {
    let SavedDefinition { job, warnings, chain, is_new, times, plain_by_default } = recorded;
    for warning in warnings {
        output.note(check::problem(warning));
    }
    if view.json {
        output.json(&as_json(&job.definition, job.next));
        return;
    }
    let when = match job.next {
        Some(at) => format!("at {}", moment(at, job, view)),
        None => match (&job.definition.trigger, job.definition.waits_for().filter(|_| job.definition.enabled)) {
            (_, Some(waits)) => waits,
            (Trigger::Reminder { run_at, .. }, None) => {
                format!("at {}, but it is disabled", moment(run_at.to_utc(), job, view))
            }
            _ => "disabled".to_owned(),
        },
    };
    let how = match (job.definition.is_delivered_as_written(), plain_by_default) {
        (false, _) if job.definition.command.is_some() => ", a command, without a model",
        (false, _) => "",
        (true, false) => ", delivered as written, at no cost",
        (true, true) => ", delivered as written, at no cost (`--client claude`: by the agent)",
    };
    output.line(format!("scheduled {}: {}{how}", name(job), plain(&when)));
    if let (Trigger::Routine { recurs, .. }, false) = (&job.definition.trigger, times.is_empty()) {
        let times: Vec<String> = times.iter().map(|at| times::local(*at, view.now, job.definition.zone)).collect();
        output.line(format!("  {}: {}", plain(&recurs.to_string()), times.join(", ")));
    }
    if *is_new {
        output.line(format!("  {}", plain(&view.home.join(&job.definition.file).display().to_string())));
    }
    if let Some((place, chain)) = chain {
        output.note(format!("{} of the chain of {}", paint(STRONG, place), plain(chain.as_str())));
    }
}

/// Confirms that a routine was written and is disabled.
pub(super) fn disabled(recorded: &SavedDefinition, view: &View, output: &mut Output) {
    for warning in &recorded.warnings {
        output.note(check::problem(warning));
    }
    if view.json {
        output.json(&as_json(&recorded.job.definition, recorded.job.next));
    } else {
        output.line(format!("disabled {}", name(&recorded.job)));
    }
}

/// Confirms that a definition's file was deleted.
pub(super) fn cancelled(job: &Job, view: &View, output: &mut Output) {
    if view.json {
        output.json(&as_json(&job.definition, job.next));
    } else {
        output.line(format!("cancelled {}: {}", name(job), summary(&job.definition)));
    }
}

fn name(job: &Job) -> String {
    paint(STRONG, &plain(job.definition.id.as_str()))
}

/// Formats a time in the definition's own zone.
fn moment(at: DateTime<Utc>, job: &Job, view: &View) -> String {
    times::local_and_relative(at, view.now, job.definition.zone)
}

/// Returns a definition as JSON with stable keys.
fn as_json(definition: &Definition, next: Option<DateTime<Utc>>) -> Value {
    let draft = Draft::from(definition);
    let fields = FIELDS.iter().filter(|field| field.on.has(definition.kind()) && !field.note);
    let mut value: Map<String, Value> =
        fields.map(|field| (field.name.to_owned(), (field.show)(&draft).map_or(Value::Null, |v| v.json()))).collect();
    for (key, shown) in [
        ("kind", json!(definition.kind())),
        ("file", json!(definition.file)),
        ("timezone", json!(definition.zone.name())),
        ("next", json!(next.map(|at| times::rfc3339(at, definition.zone)))),
        ("message", json!(definition.body)),
    ] {
        value.insert(key.to_owned(), shown);
    }
    Value::Object(value)
}

/// Lists all definitions of a kind, then failed reminders and files with errors.
pub(super) fn list(list: &JobList, view: &View, output: &mut Output) {
    let JobList { kind, jobs, failed, errors, left_out, not_coming } = list;
    if view.json {
        output.json(&jobs.iter().map(|job| as_json(&job.definition, job.next)).collect::<Vec<_>>());
        note_left_out(*left_out, *not_coming, output);
        return;
    }
    if jobs.is_empty() {
        output.note(format!("no {kind}s"));
    }
    // Drop the relative time first, then the place.
    let least: &[usize] = if *kind == Kind::Routine { &[2, 4] } else { &[2, 3] };
    output.table_without(&jobs.iter().map(|job| row(job, view.now)).collect::<Vec<_>>(), least);
    note_left_out(*left_out, *not_coming, output);
    if jobs.iter().any(|job| job.paused) {
        output.note(format!("{}: `ollim-bot resume ID` ends a pause after failures", paint(HINT, "hint")));
    }
    for failed in failed {
        let reason = failed.reason.as_ref().map(|reason| reason.strip_prefix("failed: ").unwrap_or(reason));
        // The hint of a failure stands on a line of its own.
        let why = reason.and_then(|reason| reason.lines().next()).map(|why| format!(": {why}")).unwrap_or_default();
        let id = plain(failed.id.as_str());
        output.note(plain(&format!("failed: {id}{why}")));
        output.note(format!("{}: `ollim-bot reminder retry {id}`", paint(HINT, "hint")));
    }
    if !errors.is_empty() {
        let count = errors.iter().map(|problem| &problem.file).collect::<std::collections::BTreeSet<_>>().len();
        let files = if count == 1 { "1 file has".to_owned() } else { format!("{count} files have") };
        output.note(format!("{}: {files} an error and will not fire", paint(BAD, "error")));
        for problem in errors {
            output.note(plain(&format!("  {}:{}: {}", problem.file.display(), problem.line, problem.message)));
        }
        output.note("hint: `ollim-bot check` says what to do");
    }
}

/// Notes how many definitions of the database the list leaves out.
fn note_left_out(left_out: u64, not_coming: u64, output: &mut Output) {
    if left_out > 0 {
        output.note(format!(
            "and {left_out} more in the database, which fall due later: `ollim-bot why ID` tells of one"
        ));
    }
    if not_coming > 0 {
        output.note(format!("and {not_coming} in the database that do not fall due: disabled, or without a next time"));
    }
}

/// Returns a row of a list.
fn row(job: &Job, now: DateTime<Utc>) -> Vec<Cell> {
    let Job { definition, next: at, paused, .. } = job;
    let when = match (*at, definition.enabled) {
        (Some(at), _) => times::local(at, now, definition.zone),
        (None, false) => "disabled".to_owned(),
        (None, true) if *paused => "paused".to_owned(),
        (None, true) if definition.waits_for().is_some() => "on its event".to_owned(),
        (None, true) => "never".to_owned(),
    };
    let recurs = match &definition.trigger {
        Trigger::Routine { recurs, .. } => Some(recurs.to_string()),
        _ => None,
    };
    let relative = job.open_words().or(at.map(|at| times::relative(at, now))).unwrap_or_default();
    let before = [Cell::new(definition.id.as_str(), STRONG), when.into(), Cell::new(relative, FAINT)];
    let behind = [Cell::new(place(definition), FAINT), summary(definition).into()];
    before.into_iter().chain(recurs.map(Cell::from)).chain(behind).collect()
}

/// Describes where the job runs, unless it is the main session; its position in its chain; and its model.
fn place(definition: &Definition) -> String {
    let mut words = Vec::new();
    if definition.is_delivered_as_written() {
        words.push("as written".to_owned());
    }
    if definition.command.is_some() {
        words.push("command".to_owned());
    } else if let Some(background) = definition.background() {
        words.push(if background.isolated { "isolated" } else { "background" }.to_owned());
    }
    if let Trigger::Reminder { chain: Some(Chain { max, depth, .. }), .. } = &definition.trigger {
        words.push(format!("check {} of {}", depth + 1, max + 1));
    }
    words.extend(definition.background().and_then(|background| background.model.clone()));
    words.join(", ")
}

/// Shows one definition with all its fields.
pub(super) fn show(job: &Job, view: &View, output: &mut Output) {
    let Job { definition, next, .. } = job;
    if view.json {
        output.json(&as_json(definition, *next));
        return;
    }
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            output.facts(&[vec![Cell::new(format!("{name:<19}"), FAINT), value.into()]]);
        }
    };
    fact("id", definition.id.to_string());
    fact("file", definition.file.display().to_string());
    fact("description", definition.description.clone());
    fires(job, view, &mut fact);
    fact("runs", how_it_runs(definition));
    let draft = Draft::from(&**definition);
    for field in FIELDS.iter().filter(|field| !SHOWN_APART.contains(&field.name)) {
        let always = field.name == "update_main_session" && draft.background && definition.command.is_none();
        let value = if always { (field.show)(&draft) } else { field.not_default(&draft) };
        fact(field.name, value.map(|value| value.to_string()).unwrap_or_default());
    }
    output.line("");
    output.line(plain_lines(definition.body.trim_end()));
}

/// Shows when the job fires.
fn fires(job: &Job, view: &View, fact: &mut impl FnMut(&str, String)) {
    let Job { definition, next, paused, .. } = job;
    let when = |at: DateTime<Utc>| moment(at, job, view);
    match &definition.trigger {
        Trigger::Routine { recurs, .. } => {
            let name = if matches!(recurs.cadence, Cadence::Cron(_)) { "cron" } else { "recurs" };
            fact(name, format!("{recurs} in {}", definition.zone));
            let never = match definition.waits_for() {
                _ if *paused && definition.enabled => {
                    format!("paused after failures, until `ollim-bot resume {}` or an edit", definition.id)
                }
                Some(when) if definition.enabled => when,
                _ => "never: it is disabled".to_owned(),
            };
            fact("next", next.map_or(never, when));
        }
        Trigger::Webhook(_) => {
            fact("fires", format!("for what is sent to POST /hook/{}", definition.id));
            if !definition.enabled {
                fact("enabled", "no: it takes nothing".into());
            }
        }
        Trigger::Session { run_at, .. } => fact("run_at", when(run_at.with_timezone(&Utc))),
        Trigger::Reminder { run_at, chain } => {
            fact("run_at", when(run_at.with_timezone(&Utc)));
            if !definition.enabled {
                fact("enabled", "no: it will not fire".into());
            }
            if let Some(Chain { max, depth, parent }) = chain {
                fact("chain", format!("check {} of {}, begun by {parent}", depth + 1, max + 1));
            }
        }
    }
}

fn how_it_runs(definition: &Definition) -> String {
    match definition.background() {
        None if definition.is_delivered_as_written() => "not at all: its text is delivered as written".to_owned(),
        None => "as a turn of the main session".to_owned(),
        Some(_) if definition.command.is_some() => "a command, without a model".to_owned(),
        Some(Background { isolated: true, .. }) => "in the background, in a fresh session".to_owned(),
        Some(_) => "in the background, in a fork of the main session".to_owned(),
    }
}

/// Fields that `show` renders in words of its own.
const SHOWN_APART: [&str; 15] = [
    "id",
    "description",
    "cron",
    "every",
    "after",
    "watch",
    "jitter",
    "run_at",
    "timezone",
    "enabled",
    "background",
    "isolated",
    "max_chain",
    "chain_depth",
    "chain_parent",
];
