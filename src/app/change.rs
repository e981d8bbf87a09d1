//! Changes an existing or former definition: enable, disable, resume, cancel, snooze, retry.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Timelike as _, Utc};

use super::{
    App, Caller, Job, Outcome, SavedDefinition, ServiceCommand, When, add, edit, jobs, restore, runs, service,
};
use crate::clock::whole_second;
use crate::definition::{self, DefinitionError, DefinitionId, FieldValue, Kind, Loaded, Problem};
use crate::journal::RunFilter;
use crate::refusal::Refusal;

/// Enables or disables a definition.
pub(super) fn set_enabled(kind: Option<Kind>, id: &str, enabled: bool, app: &App) -> Result<Outcome, Refusal> {
    let loaded = app.load_with([id])?;
    let found = jobs::find(id, kind, &loaded)?;
    if found.enabled == enabled {
        return Ok(Outcome::Unchanged { id: found.id.clone(), enabled });
    }
    app.may_change([&*found])?;
    // The default value is not written.
    let value = if enabled { None } else { Some(FieldValue::Flag(false)) };
    let written = app.set_fields_of(&found.file, &[("enabled", value)])?;
    let recorded = add::recorded(written, app);
    Ok(if enabled { Outcome::Scheduled(recorded) } else { Outcome::Disabled(recorded) })
}

/// Enables a disabled definition, or resumes one that is paused after failures.
pub(super) fn resume(id: &str, app: &App) -> Result<Outcome, Refusal> {
    let found = jobs::find(id, None, &app.load_with([id])?)?;
    if !found.enabled {
        return set_enabled(None, found.id.as_str(), true, app);
    }
    service::ask(ServiceCommand::Resume { id: Some(found.id.clone()) }, app).map(Outcome::Service)
}

/// Deletes a definition's file. Only the person may delete one with an error.
pub(super) fn cancel(kind: Kind, id: &str, app: &App) -> Result<Outcome, Refusal> {
    let loaded = app.load_with([id])?;
    let gone = |file: &Path| Refusal::user(format!("{} is gone already", file.display()));
    let found = match (jobs::find(id, Some(kind), &loaded), &app.caller) {
        (Ok(found), _) => found,
        (Err(none), Caller::Run(_)) => return Err(none),
        (Err(_), Caller::Person) => {
            let file = edit::path_of(Some(kind), id, &loaded)?;
            let removed = definition::remove(&app.home, &file)?;
            return if removed { Ok(Outcome::FileRemoved(file)) } else { Err(gone(&file)) };
        }
    };
    app.may_change([&*found])?;
    if !app.remove_definition(&found.file)? {
        return Err(gone(&found.file));
    }
    Ok(Outcome::Cancelled(Job::of(found, app)))
}

/// Moves a reminder to the time `span` from now, and keeps the rest of its file. Brings back one that has fired.
pub(super) fn snooze(id: &str, span: Duration, app: &App) -> Result<SavedDefinition, Refusal> {
    let loaded = app.load_with([id])?;
    let found = match jobs::find(id, Some(Kind::Reminder), &loaded) {
        Ok(found) => found,
        Err(none) => return snooze_fired(id, span, &loaded, app)?.ok_or(none),
    };
    app.may_change([&*found])?;
    let run_at = whole_second(add::later(app.now(), span, found.zone)?);
    let value = Some(FieldValue::Text(restore::unused_text(&found.id, &run_at, app)?));
    let written = app.set_fields_of(&found.file, &[("run_at", value)])?;
    Ok(add::recorded(written, app))
}

/// Brings back a reminder that fired under this id, completed or failed. `None` if none has, or its file still exists.
fn snooze_fired(id: &str, span: Duration, loaded: &Loaded, app: &App) -> Result<Option<SavedDefinition>, Refusal> {
    let known = fired_id(id, app)?;
    let is_there = |problem: &Problem| problem.id.as_ref() == Some(&known);
    if loaded.definitions.contains_key(&known) || loaded.problems.iter().any(is_there) {
        return Ok(None);
    }
    if failed_ids(app)?.contains(&known) {
        return restore_failed_reminder(&known, add::later(app.now(), span, app.zone()?)?.to_utc(), app).map(Some);
    }
    let filter = RunFilter { id: Some(known), limit: Some(1), ..RunFilter::default() };
    let latest = runs::open(app).ok().map(|journal| journal.runs(&filter)).transpose()?.unwrap_or_default();
    match latest.first() {
        Some(run) if run.kind == Kind::Reminder => {
            restore::restore(run.run.as_str(), Some(&When::In(span)), app).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the id of a reminder that fired, or one that begins with it.
fn fired_id(id: &str, app: &App) -> Result<DefinitionId, Refusal> {
    let mut known = failed_ids(app)?;
    known.extend(runs::open(app).ok().map(|journal| journal.ids()).transpose()?.unwrap_or_default());
    Ok(exact_or_beginning(id, &known))
}

/// Brings back a failed reminder, which is due at once.
pub(super) fn retry(id: &str, app: &App) -> Result<SavedDefinition, Refusal> {
    app.require_home()?;
    restore_failed_reminder(&exact_or_beginning(id, &failed_ids(app)?), app.now(), app)
}

fn failed_ids(app: &App) -> Result<Vec<DefinitionId>, Refusal> {
    let failed = definition::failed_reminders(&app.home, &app.defaults()?)?;
    Ok(failed.iter().filter_map(|failed| Some(failed.parsed.definition.as_ref()?.id.clone())).collect())
}

fn exact_or_beginning(name: &str, known: &[DefinitionId]) -> DefinitionId {
    let exact = DefinitionId::new(name);
    let found = if known.contains(&exact) { None } else { jobs::begins_with(name, known) };
    found.cloned().unwrap_or(exact)
}

/// Brings back a failed reminder. It is due at `at`, or at the first second after that has no occurrence of it yet.
fn restore_failed_reminder(id: &DefinitionId, at: DateTime<Utc>, app: &App) -> Result<SavedDefinition, Refusal> {
    may_restore_failed(id, app)?;
    restore::require_absent(id, app)?;
    let _making = app.one_more()?;
    let at = restore::unused(id, at.with_nanosecond(0).unwrap_or(at), &runs::open(app)?)?;
    let at = at.with_timezone(&app.zone()?).fixed_offset();
    match definition::restore_failed(&app.home, id, at, &app.defaults()?) {
        Err(DefinitionError::NotFound { .. }) => Err(no_such_failed(id, app)?),
        other => Ok(add::recorded(other?, app)),
    }
}

fn no_such_failed(id: &DefinitionId, app: &App) -> Result<Refusal, Refusal> {
    let refusal = Refusal::user(format!("there is no failed reminder `{id}`"));
    let ids: Vec<String> = failed_ids(app)?.iter().take(5).map(ToString::to_string).collect();
    Ok(match ids.is_empty() {
        true => refusal.hint("no reminder has failed"),
        false => refusal.hint(format!("these have failed: {}", ids.join(", "))),
    })
}

/// Checks every failed reminder with this id, because any of them may be the one that comes back.
fn may_restore_failed(id: &DefinitionId, app: &App) -> Result<(), Refusal> {
    let Caller::Run(_) = app.caller else { return Ok(()) };
    let failed = definition::failed_reminders(&app.home, &app.defaults()?)?;
    let mut found = Vec::new();
    for reminder in &failed {
        match &reminder.parsed.definition {
            Some(definition) if definition.id == *id => found.push(definition),
            Some(_) => {}
            // A broken file does not show what the reminder would be allowed.
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
