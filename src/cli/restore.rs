//! `reminder restore`: a reminder that has fired comes back, from the text that the journal keeps of it.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use super::context::{Caller, Context};
use super::error::CliError;
use super::output::Output;
use super::{add, runs, when};
use crate::clock::whole_second;
use crate::definition::{self, Definition, DefinitionId, Kind, parse};
use crate::journal::{JournalReader, RunRecord};

/// Writes the reminder of a run into `reminders/` again; due as it was where that is to come, else as it is said.
///
/// # Errors
/// When there is no such run, it was no reminder's, the reminder is there still, or it needs a time.
pub fn restore(
    run: &str,
    span: Option<Duration>,
    at: Option<&str>,
    context: &Context,
    output: &mut Output,
) -> Result<(), CliError> {
    let journal = runs::open(context)?;
    let record = runs::named(run, &journal)?;
    if record.kind != Kind::Reminder {
        return Err(CliError::user(format!("run `{run}` was {} {}, which is no reminder", record.kind, record.id))
            .hint(format!("a routine fires again by itself; `ollim-bot fire {}` runs it now", record.id)));
    }
    let Some(text) = &record.definition else {
        return Err(CliError::user(format!("the journal has no text of reminder `{}`", record.id)));
    };
    is_gone(&record.id, context)?;
    let defaults = context.defaults()?;
    // Only for its zone and time: whether it is valid otherwise is found when it is written.
    let read = parse(Kind::Reminder, Path::new("reminders/fired.md"), text.as_bytes(), &defaults).definition;
    match (&context.caller, &read) {
        (Caller::Person, _) => {}
        (Caller::Run(_), Some(read)) => context.may_change([read])?,
        (Caller::Run(_), None) => {
            return Err(CliError::denied(format!(
                "reminder {} is not valid any more: only the person may mend it",
                record.id
            )));
        }
    }
    let zone = read.as_ref().map_or(defaults.zone, |read| read.zone);
    let now = context.now();
    let run_at = match (span, at) {
        (Some(span), _) => whole_second(add::later(now, span, zone)?).fixed_offset(),
        (None, Some(text)) => whole_second(when::future(text, now, zone)?).fixed_offset(),
        (None, None) => as_it_was(read.as_ref(), &record, &journal, now)?,
    };
    let written = definition::restore_fired(&context.home, &record.id, text, run_at, &defaults)?;
    add::said(&written, context, output);
    Ok(())
}

/// Nothing is written beside a file with the same identity: neither would fire.
pub(super) fn nobody_is(id: &DefinitionId, context: &Context) -> Result<(), CliError> {
    let loaded = context.load()?;
    let there = || CliError::user(format!("there is a job `{id}` already; it stays as it is"));
    if let Some(definition) = loaded.definitions.get(id) {
        return Err(there().hint(format!("it is in {}", definition.file.display())));
    }
    if let Some(problem) = loaded.problems.iter().find(|problem| problem.id.as_ref() == Some(id)) {
        return Err(there().hint(format!("its file has an error: `ollim-bot check {}`", problem.file.display())));
    }
    Ok(())
}

/// It is neither waiting nor kept as failed.
fn is_gone(id: &DefinitionId, context: &Context) -> Result<(), CliError> {
    nobody_is(id, context)?;
    let failed = definition::failed_reminders(&context.home, &context.defaults()?)?;
    if failed.iter().any(|failed| failed.parsed.definition.as_ref().is_some_and(|failed| failed.id == *id)) {
        return Err(CliError::user(format!("reminder `{id}` has failed and is kept in reminders/failed/"))
            .hint(format!("`ollim-bot reminder retry {id}` brings it back")));
    }
    Ok(())
}

/// Its own time, if that is to come (it was fired by hand).
fn as_it_was(
    read: Option<&Definition>,
    record: &RunRecord,
    journal: &JournalReader,
    now: DateTime<Utc>,
) -> Result<DateTime<FixedOffset>, CliError> {
    let run_at = read.and_then(|read| read.trigger.run_at());
    let coming = run_at.filter(|at| *at > now).ok_or_else(|| {
        CliError::user(format!("the time of reminder `{}` has passed", record.id))
            .hint("say when it is to fire: `--in 20m` or `--at 'tomorrow 9am'`")
    })?;
    let at = unused(&record.id, coming, journal)?;
    let zone = read.map_or(chrono_tz::Tz::UTC, |read| read.zone);
    Ok(at.with_timezone(&zone).fixed_offset())
}

/// `at`, or the first second after it that the reminder has not had: an occurrence has one outcome, and what falls due
/// for one that has its own would only be cleaned up.
pub(super) fn unused(
    id: &DefinitionId,
    mut at: DateTime<Utc>,
    journal: &JournalReader,
) -> Result<DateTime<Utc>, CliError> {
    let had = journal.occurrences(Some(id))?;
    while had.iter().any(|record| record.occurrence.at.timestamp_millis() == at.timestamp_millis()) {
        at += TimeDelta::seconds(1);
    }
    Ok(at)
}
