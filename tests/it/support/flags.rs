//! The command line that asks for a draft.

use std::time::Duration;

use ollim_bot::definition::fields::{FIELDS, Field};
use ollim_bot::definition::{Draft, FieldValue};

/// `reminder add …`, as a person would type it, of everything that a draft says but its time. It fires `delay` from now.
pub fn reminder_add(draft: &Draft, delay: Duration) -> Vec<String> {
    let fields = FIELDS.iter().filter(|field| field.on.has(draft.kind));
    let flags = fields.filter_map(|field| Some(flags(field, &field.not_default(draft)?)));
    let delay = humantime::format_duration(delay);
    let command =
        ["reminder".to_owned(), "add".to_owned(), format!("--in={delay}"), format!("--message={}", draft.body)];
    command.into_iter().chain(flags.flatten()).collect()
}

/// The flags that set a field to a value. An argument is joined with `=`, so that one that begins with `-` stays one.
fn flags(field: &Field, value: &FieldValue) -> Vec<String> {
    if let Some(flag) = field.flags.iter().find(|flag| flag.sets.is_some_and(|sets| sets() == *value)) {
        return vec![format!("--{}", flag.long)];
    }
    let Some(flag) = field.flags.iter().find(|flag| flag.sets.is_none()) else { return Vec::new() };
    let arguments = match value {
        FieldValue::Texts(texts) if texts.is_empty() => vec![String::new()],
        FieldValue::Texts(texts) => texts.clone(),
        other => vec![other.to_string()],
    };
    arguments.into_iter().map(|argument| format!("--{}={argument}", flag.long)).collect()
}
