//! What changes a definition that is there: `enable`, `disable`, `cancel`, `retry`.

use super::context::Context;
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{add, jobs};
use crate::definition::{self, Kind};

/// `routine enable`, `routine disable`.
///
/// # Errors
/// When there is no such routine, or its file cannot be written.
pub fn set_enabled(id: &str, enabled: bool, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let found = jobs::find(id, Some(Kind::Routine), &loaded)?;
    if found.enabled == enabled {
        output.note(format!("{} is {} already", found.id, if enabled { "enabled" } else { "disabled" }));
        return Ok(());
    }
    let changed = definition::set_field(&context.home, &found.file, "enabled", &enabled.to_string(), &context.defaults()?)?;
    if enabled {
        add::scheduled(&changed, context, output);
    } else if context.json {
        output.json(&jobs::as_json(&changed, context.now()));
    } else {
        output.line(format!("disabled {}", paint(STRONG, changed.id.as_str())));
    }
    Ok(())
}

/// `routine cancel`, `reminder cancel`: the file is deleted.
///
/// # Errors
/// When there is no such definition, or its file cannot be deleted.
pub fn cancel(kind: Kind, id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let found = jobs::find(id, Some(kind), &loaded)?;
    definition::remove(&context.home, &found.file)?;
    if context.json {
        output.json(&jobs::as_json(&found, context.now()));
    } else {
        output.line(format!("cancelled {}: {}", paint(STRONG, found.id.as_str()), jobs::summary(&found)));
    }
    Ok(())
}

/// `reminder retry`: a failed reminder comes back to where it was.
///
/// # Errors
/// When there is no such file among the failed, or one of its name is there already.
pub fn retry(id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    let restored = definition::restore_failed(&context.home, id, &context.defaults()?)?;
    if context.json {
        output.json(&jobs::as_json(&restored, context.now()));
    } else {
        output.line(format!("brought back {}: {}", paint(STRONG, restored.id.as_str()), restored.file.display()));
    }
    Ok(())
}
