//! Changes to a definition that is there: enable, disable, cancel, snooze, retry.

use std::time::Duration;

use chrono::Timelike as _;

use super::{App, Caller, Job, Outcome, Recorded, add, jobs, restore, runs};
use crate::clock::whole_second;
use crate::definition::{self, DefinitionError, DefinitionId, FieldValue, Kind};
use crate::refusal::Refusal;

/// Lets a routine fire, or keeps it from firing.
pub(super) fn set_enabled(id: &str, enabled: bool, app: &App) -> Result<Outcome, Refusal> {
    let loaded = app.load()?;
    let found = jobs::find(id, Some(Kind::Routine), &loaded)?;
    if found.enabled == enabled {
        return Ok(Outcome::Unchanged { id: found.id.clone(), enabled });
    }
    app.may_change([&*found])?;
    // The default is not written.
    let value = if enabled { None } else { Some(FieldValue::Flag(false)) };
    let written = definition::set_field(&app.home, &found.file, "enabled", value, &app.defaults()?)?;
    let recorded = add::recorded(written, app);
    Ok(if enabled { Outcome::Scheduled(recorded) } else { Outcome::Disabled(recorded) })
}

/// Deletes a definition's file.
pub(super) fn cancel(kind: Kind, id: &str, app: &App) -> Result<Job, Refusal> {
    let loaded = app.load()?;
    let found = jobs::find(id, Some(kind), &loaded)?;
    app.may_change([&*found])?;
    if !definition::remove(&app.home, &found.file)? {
        return Err(Refusal::user(format!("{} is gone already", found.file.display())));
    }
    Ok(Job::of(found, app.now()))
}

/// Lets a reminder fire so long from now instead. Its file keeps everything else.
pub(super) fn snooze(id: &str, span: Duration, app: &App) -> Result<Recorded, Refusal> {
    let loaded = app.load()?;
    let found = jobs::find(id, Some(Kind::Reminder), &loaded)?;
    app.may_change([&*found])?;
    let run_at = whole_second(add::later(app.now(), span, found.zone)?);
    let value = Some(FieldValue::Text(run_at.to_rfc3339()));
    let written = definition::set_field(&app.home, &found.file, "run_at", value, &app.defaults()?)?;
    Ok(add::recorded(written, app))
}

/// Brings back a failed reminder. It is due now.
pub(super) fn retry(id: &str, app: &App) -> Result<Recorded, Refusal> {
    app.require_home()?;
    let now = app.now();
    let id = DefinitionId::new(id);
    may_bring_back(&id, app)?;
    restore::require_absent(&id, app)?;
    let _making = app.one_more()?;
    let at = restore::unused(&id, now.with_nanosecond(0).unwrap_or(now), &runs::open(app)?)?;
    let at = at.with_timezone(&app.zone()?).fixed_offset();
    match definition::restore_failed(&app.home, &id, at, &app.defaults()?) {
        Err(DefinitionError::NotFound { .. }) => Err(no_such_failed(&id, app)?),
        other => Ok(add::recorded(other?, app)),
    }
}

fn no_such_failed(id: &DefinitionId, app: &App) -> Result<Refusal, Refusal> {
    let failed = definition::failed_reminders(&app.home, &app.defaults()?)?;
    let refusal = Refusal::user(format!("there is no failed reminder `{id}`"));
    let ids: Vec<String> =
        failed.iter().filter_map(|failed| Some(failed.parsed.definition.as_ref()?.id.to_string())).take(5).collect();
    Ok(match ids.is_empty() {
        true => refusal.hint("no reminder has failed"),
        false => refusal.hint(format!("these have failed: {}", ids.join(", "))),
    })
}

/// Of several failed reminders with one identity any may be the one that comes back.
fn may_bring_back(id: &DefinitionId, app: &App) -> Result<(), Refusal> {
    let Caller::Run(_) = app.caller else { return Ok(()) };
    let failed = definition::failed_reminders(&app.home, &app.defaults()?)?;
    let mut found = Vec::new();
    for reminder in &failed {
        match &reminder.parsed.definition {
            Some(definition) if definition.id == *id => found.push(definition),
            Some(_) => {}
            // What it would be is not known.
            None if reminder.parsed.problems.iter().any(|problem| problem.id.as_ref() == Some(id)) => {
                return Err(Refusal::denied(format!(
                    "the file of reminder {id} has an error: only the person may mend it"
                )));
            }
            None => {}
        }
    }
    if found.is_empty() { Ok(()) } else { app.may_change(found) }
}
