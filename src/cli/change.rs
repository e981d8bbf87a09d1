//! What changes a definition that is there: `enable`, `disable`, `cancel`, `snooze`, `retry`.

use std::time::Duration;

use chrono::Timelike as _;

use super::context::{Caller, Context};
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{add, jobs, restore, runs};
use crate::channel::terminal::plain;
use crate::clock::whole_second;
use crate::definition::{self, DefinitionError, DefinitionId, FieldValue, Kind};

/// `routine enable`, `routine disable`.
///
/// # Errors
/// When there is no such routine, or its file cannot be written.
pub fn set_enabled(id: &str, enabled: bool, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let found = jobs::named(id, Kind::Routine, &loaded)?;
    if found.enabled == enabled {
        output.note(format!("{} is {} already", found.id, if enabled { "enabled" } else { "disabled" }));
        return Ok(());
    }
    context.may_change([&*found])?;
    // The default is not written.
    let value = if enabled { None } else { Some(FieldValue::Flag(false)) };
    let written = definition::set_field(&context.home, &found.file, "enabled", value, &context.defaults()?)?;
    add::warnings(&written, output);
    if enabled {
        add::scheduled(&written.definition, context, output);
    } else if context.json {
        output.json(&jobs::as_json(&written.definition, jobs::next(&written.definition, context.now())));
    } else {
        output.line(format!("disabled {}", paint(STRONG, &plain(found.id.as_str()))));
    }
    Ok(())
}

/// `routine cancel`, `reminder cancel`: the file is deleted.
///
/// # Errors
/// When there is no such definition, or its file cannot be deleted.
pub fn cancel(kind: Kind, id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let found = jobs::named(id, kind, &loaded)?;
    context.may_change([&*found])?;
    if !definition::remove(&context.home, &found.file)? {
        return Err(CliError::user(format!("{} is gone already", found.file.display())));
    }
    if context.json {
        output.json(&jobs::as_json(&found, jobs::next(&found, context.now())));
    } else {
        output.line(format!(
            "cancelled {}: {}",
            paint(STRONG, &plain(found.id.as_str())),
            plain(&jobs::summary(&found))
        ));
    }
    Ok(())
}

/// `reminder snooze`: it fires so long from now instead, and its file keeps everything else.
///
/// # Errors
/// When there is no such reminder, or its file cannot be written.
pub fn snooze(id: &str, span: Duration, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let found = jobs::named(id, Kind::Reminder, &loaded)?;
    context.may_change([&*found])?;
    let run_at = whole_second(add::later(context.now(), span, found.zone)?);
    let value = Some(FieldValue::Text(run_at.to_rfc3339()));
    let written = definition::set_field(&context.home, &found.file, "run_at", value, &context.defaults()?)?;
    add::said(&written, context, output);
    Ok(())
}

/// `reminder retry`: a failed reminder comes back and is due now.
///
/// # Errors
/// When there is no such reminder among the failed, or it cannot be written.
pub fn retry(id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    let now = context.now();
    let id = DefinitionId::new(id);
    may_bring_back(&id, context)?;
    restore::nobody_is(&id, context)?;
    let at = restore::unused(&id, now.with_nanosecond(0).unwrap_or(now), &runs::open(context)?)?;
    let at = at.with_timezone(&context.zone()?).fixed_offset();
    let written = match definition::restore_failed(&context.home, &id, at, &context.defaults()?) {
        Err(DefinitionError::NotFound { .. }) => {
            let failed = definition::failed_reminders(&context.home, &context.defaults()?)?;
            let error = CliError::user(format!("there is no failed reminder `{id}`"));
            let ids: Vec<String> = failed
                .iter()
                .filter_map(|failed| Some(failed.parsed.definition.as_ref()?.id.to_string()))
                .take(5)
                .collect();
            return Err(match ids.is_empty() {
                true => error.hint("no reminder has failed"),
                false => error.hint(format!("these have failed: {}", ids.join(", "))),
            });
        }
        other => other?,
    };
    add::warnings(&written, output);
    add::scheduled(&written.definition, context, output);
    Ok(())
}

/// Of several failed reminders with one identity any may be the one that comes back.
fn may_bring_back(id: &DefinitionId, context: &Context) -> Result<(), CliError> {
    let Caller::Run(_) = context.caller else { return Ok(()) };
    let failed = definition::failed_reminders(&context.home, &context.defaults()?)?;
    let mut found = Vec::new();
    for reminder in &failed {
        match &reminder.parsed.definition {
            Some(definition) if definition.id == *id => found.push(definition),
            Some(_) => {}
            // What it would be is not known.
            None if reminder.parsed.problems.iter().any(|problem| problem.id.as_ref() == Some(id)) => {
                return Err(CliError::denied(format!(
                    "the file of reminder {id} has an error: only the person may mend it"
                )));
            }
            None => {}
        }
    }
    if found.is_empty() { Ok(()) } else { context.may_change(found) }
}
