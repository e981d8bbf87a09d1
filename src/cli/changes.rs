//! `routine edit`, `reminder edit` with flags: fields of a file are set, and all else in it stays as it was written.
//!
//! The way for whoever has no editor: a run changes by it what it has made.

use super::add;
use super::args::{Changes, Given};
use super::context::{Caller, Context};
use super::error::CliError;
use super::output::Output;
use super::when;
use crate::clock::whole_second;
use crate::definition::fields::On;
use crate::definition::{self, Definition, DefinitionError, FieldValue, Kind, Loaded};

impl Changes {
    /// Whether none was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.message.is_none() && self.span.is_none() && self.at.is_none() && self.fields.0.is_empty()
    }
}

/// Sets what was asked for.
///
/// # Errors
/// When there is no such definition, it would not be valid, or whoever asks may not change it so.
pub(super) fn change(
    kind: Kind,
    id: &str,
    changes: Changes,
    context: &Context,
    output: &mut Output,
) -> Result<(), CliError> {
    let loaded: Loaded = context.load()?;
    let found = super::jobs::named(id, kind, &loaded)?;
    context.may_change([&*found])?;
    add::not_together(&changes.fields.0)?;
    let body = changes.message.clone().map(add::task).transpose()?;
    let fields = fields(changes, &found, context)?;
    let gone = || DefinitionError::NotFound { file: found.file.clone() };
    let old = definition::read_text(&context.home, &found.file)?.ok_or_else(gone)?;
    let new = definition::changed_text(&found.file, &old, &fields, body.as_deref())?;
    let agree = |changed: &Definition| match &context.caller {
        Caller::Person => Ok(()),
        // What comes of it is the run's own doing: it is held against the run as if it were made now.
        Caller::Run(run) => run.cap.may_change(changed).map_err(|why| DefinitionError::Refused { why }),
    };
    let written = definition::replace_text(&context.home, &found.file, &old, &new, &context.defaults()?, agree);
    let written = written.map_err(|error| match error {
        DefinitionError::Refused { why } => CliError::denied(why),
        other => other.into(),
    })?;
    add::said(&written, context, output);
    Ok(())
}

fn fields(
    changes: Changes,
    found: &Definition,
    context: &Context,
) -> Result<Vec<(&'static str, Option<FieldValue>)>, CliError> {
    let now = context.now();
    let run_at = match (changes.span, changes.at) {
        (Some(span), _) => Some(add::later(now, span, found.zone)?),
        (None, Some(text)) => Some(when::future(&text, now, found.zone)?),
        (None, None) => None,
    };
    let has_not = |flags: &str, kind| {
        let error = CliError::user(format!("{} has no {flags}", found.title()));
        Err(error.hint(format!("only a {kind} has it")))
    };
    let mut fields = Vec::new();
    if let Some(at) = run_at {
        if found.kind() != Kind::Reminder {
            return has_not("--in, --at", Kind::Reminder);
        }
        fields.push(("run_at", Some(FieldValue::Text(whole_second(at).to_rfc3339()))));
    }
    for Given { field, value, flag } in changes.fields.0 {
        if !field.on.has(found.kind()) {
            let kind = if field.on == On::Routine { Kind::Routine } else { Kind::Reminder };
            return has_not(&format!("--{flag}"), kind);
        }
        // The value takes the place of one that excludes it.
        fields.extend(field.not_with.map(|other| (other, None)));
        // An empty text takes the line out: the default holds again.
        fields.push((field.name, Some(value).filter(|value| *value != FieldValue::Text(String::new()))));
    }
    Ok(fields)
}
