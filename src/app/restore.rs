//! Brings back a reminder that has fired, from its text in the journal.

use std::fs::File;
use std::io;
use std::path::Path;

use chrono::{DateTime, FixedOffset, Offset, TimeDelta, TimeZone, Utc};

use super::{App, Caller, SavedDefinition, When, add, runs};
use crate::clock::whole_second;
use crate::definition::{self, Definition, DefinitionId, Kind, parse};
use crate::journal::{JournalReader, RunRecord};
use crate::refusal::Refusal;

/// Waits until nobody else is bringing a reminder back. If two ask at once (a button pressed twice), the second finds
/// the first one's file. The lock is held as long as the returned file.
pub(super) fn in_turn(app: &App) -> Result<Option<File>, Refusal> {
    let folder = app.home.state();
    let opened = match File::open(&folder) {
        // Without that folder, nothing has ever fired.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|folder| folder.lock().map(|()| folder)),
    };
    opened.map(Some).map_err(|error| Refusal::environment(format!("cannot lock {}: {error}", folder.display())))
}

/// Writes the reminder of a run to `reminders/` again. It is due at its own time if that is in the future, else at `when`.
pub(super) fn restore(run: &str, when: Option<&When>, app: &App) -> Result<SavedDefinition, Refusal> {
    let journal = runs::open(app)?;
    let record = runs::named(run, &journal)?;
    if record.kind != Kind::Reminder {
        return Err(Refusal::user(format!("run `{run}` was {} {}, which is no reminder", record.kind, record.id))
            .hint(format!("a routine fires again by itself; `ollim-bot fire {}` runs it now", record.id)));
    }
    let Some(text) = &record.definition else {
        return Err(Refusal::user(format!("the journal has no text of reminder `{}`", record.id)));
    };
    is_gone(&record.id, app)?;
    let defaults = app.defaults()?;
    // The text is parsed only for its zone and time. Other errors show when it is written.
    let read = parse(Kind::Reminder, Path::new("reminders/fired.md"), text.as_bytes(), &defaults).definition;
    match (&app.caller, &read) {
        (Caller::Person, _) => {}
        (Caller::Run(_), Some(read)) => app.may_change([read])?,
        (Caller::Run(_), None) => {
            return Err(Refusal::denied(format!(
                "reminder {} is not valid any more: only the person may mend it",
                record.id
            )));
        }
    }
    let _making = app.one_more()?;
    let zone = read.as_ref().map_or(defaults.zone, |read| read.zone);
    let now = app.now();
    let run_at = match when {
        Some(when) => {
            let at = whole_second(add::time(when, now, zone)?);
            unused(&record.id, at.to_utc(), &journal)?.with_timezone(&at.timezone()).fixed_offset()
        }
        None => as_it_was(read.as_ref(), &record, &journal, now)?,
    };
    let written = definition::restore_fired(&app.home, &record.id, text, run_at, &defaults)?;
    Ok(add::recorded(written, app))
}

/// Refuses to write beside a file with the same id, since neither would fire.
pub(super) fn require_absent(id: &DefinitionId, app: &App) -> Result<(), Refusal> {
    let loaded = app.load_with([id.as_str()])?;
    let there = || Refusal::user(format!("there is a job `{id}` already; it stays as it is"));
    if let Some(definition) = loaded.definitions.get(id) {
        return Err(there().hint(format!("it is in {}", definition.file.display())));
    }
    if let Some(problem) = loaded.problems.iter().find(|problem| problem.id.as_ref() == Some(id)) {
        return Err(there().hint(format!("its file has an error: `ollim-bot check {}`", problem.file.display())));
    }
    Ok(())
}

/// Checks that the reminder is neither waiting nor kept as failed.
fn is_gone(id: &DefinitionId, app: &App) -> Result<(), Refusal> {
    require_absent(id, app)?;
    let failed = definition::failed_reminders(&app.home, &app.defaults()?)?;
    if failed.iter().any(|failed| failed.parsed.definition.as_ref().is_some_and(|failed| failed.id == *id)) {
        return Err(Refusal::user(format!("reminder `{id}` has failed and is kept in reminders/failed/"))
            .hint(format!("`ollim-bot reminder retry {id}` brings it back")));
    }
    Ok(())
}

/// Returns the reminder's own time, if that is in the future (it was fired by hand).
fn as_it_was(
    read: Option<&Definition>,
    record: &RunRecord,
    journal: &JournalReader,
    now: DateTime<Utc>,
) -> Result<DateTime<FixedOffset>, Refusal> {
    let run_at = read.and_then(|read| read.trigger.run_at());
    let coming = run_at.filter(|at| *at > now).ok_or_else(|| {
        Refusal::user(format!("the time of reminder `{}` has passed", record.id))
            .hint("say when it is to fire: `--in 20m` or `--at 'tomorrow 9am'`")
    })?;
    let at = unused(&record.id, coming, journal)?;
    let zone = read.map_or(chrono_tz::Tz::UTC, |read| read.zone);
    Ok(at.with_timezone(&zone).fixed_offset())
}

/// Returns a time that a reminder gets, as text: `at`, or the first second after it without an occurrence of the reminder.
pub(super) fn unused_text<Z: TimeZone>(id: &DefinitionId, at: &DateTime<Z>, app: &App) -> Result<String, Refusal> {
    // Without a journal nothing has fired.
    let unused = match runs::open(app) {
        Ok(journal) => unused(id, at.to_utc(), &journal)?,
        Err(_) => at.to_utc(),
    };
    Ok(unused.with_timezone(&at.offset().fix()).to_rfc3339())
}

/// Returns `at`, or the first second after it without an occurrence of the reminder. An occurrence has only one
/// outcome, so a file with a used time would only be removed.
pub(super) fn unused(
    id: &DefinitionId,
    mut at: DateTime<Utc>,
    journal: &JournalReader,
) -> Result<DateTime<Utc>, Refusal> {
    let had = journal.occurrences(Some(id))?;
    while had.iter().any(|record| record.occurrence.at.timestamp_millis() == at.timestamp_millis()) {
        at += TimeDelta::seconds(1);
    }
    Ok(at)
}
