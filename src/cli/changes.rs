//! `routine edit`, `reminder edit` with flags: fields of a file are set, and all else in it stays as it was written.
//!
//! The way for whoever has no editor: a run changes by it what it has made.

use super::add;
use super::args::{Changes, Terms};
use super::context::{Caller, Context};
use super::error::CliError;
use super::output::Output;
use super::when;
use crate::definition::{self, Definition, DefinitionError, FieldValue, Kind, Loaded, quoted};
use crate::policy::UpdateMode;

impl Changes {
    /// Whether none was asked for.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
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
    changes.terms.one_list()?;
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
    let Changes { message: _, cron, span, at, terms } = changes;
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
    let now = context.now();
    let run_at = match (span, at) {
        (Some(span), _) => Some(add::later(now, span, found.zone)?),
        (None, Some(text)) => Some(when::future(&text, now, found.zone)?),
        (None, None) => None,
    };
    for (given, flag, kind) in
        [(cron.is_some(), "--cron", Kind::Routine), (run_at.is_some(), "--in, --at", Kind::Reminder)]
    {
        if given && found.kind() != kind {
            return Err(CliError::user(format!("{} has no {}", found.title(), quoted(flag).trim_matches('`')))
                .hint(format!("only a {kind} has it")));
        }
    }
    let mut fields = Vec::new();
    let mut text = |field: &'static str, value: Option<String>| {
        // An empty text takes the line out: the default holds again.
        fields.extend(value.map(|value| (field, Some(value).filter(|value| !value.is_empty()).map(FieldValue::Text))));
    };
    text("description", description);
    text("cron", cron);
    text("run_at", run_at.map(|at| add::whole_second(at).to_rfc3339()));
    text("model", model);
    text("agent", agent);
    text("timeout", timeout.map(|timeout| humantime::format_duration(timeout).to_string()));
    text("update_main_session", update_main_session.map(word));
    let list = |values: Vec<String>| Some(FieldValue::Texts(add::list(values)));
    // The two lists exclude each other: the one that is given takes the other's place.
    if let Some(values) = allowed_tools {
        fields.extend([("disallowed_tools", None), ("allowed_tools", list(values))]);
    }
    if let Some(values) = blocked_tools {
        fields.extend([("allowed_tools", None), ("disallowed_tools", list(values))]);
    }
    if no_ping {
        fields.push(("allow_ping", Some(FieldValue::Flag(false))));
    }
    if no_network {
        fields.push(("network", Some(FieldValue::Text("none".into()))));
    }
    fields.extend(max_turns.map(|turns| ("max_turns", Some(FieldValue::Count(turns)))));
    Ok(fields)
}

fn word(mode: UpdateMode) -> String {
    match mode {
        UpdateMode::Always => "always",
        UpdateMode::OnPing => "on_ping",
        UpdateMode::Freely => "freely",
        UpdateMode::Blocked => "blocked",
    }
    .to_owned()
}
