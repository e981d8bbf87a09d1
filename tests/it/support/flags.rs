//! The command line that creates a given draft.

use std::time::Duration;

use ollim_bot::definition::fields::{FIELDS, Field};
use ollim_bot::definition::{Draft, FieldValue};

/// Returns a `reminder add …` command, as a person would type it, for everything in a draft but its time. It fires after `delay`.
pub fn reminder_add(draft: &Draft, delay: Duration) -> Vec<String> {
    let fields = FIELDS.iter().filter(|field| field.on.has(draft.kind));
    let flags = fields.filter_map(|field| Some(flags(field, &field.not_default(draft)?)));
    let delay = humantime::format_duration(delay);
    let command =
        ["reminder".to_owned(), "add".to_owned(), format!("--in={delay}"), format!("--message={}", draft.body)];
    command.into_iter().chain(flags.flatten()).collect()
}

/// Returns the flags that set a field to a value. `=` joins the argument, so that an argument may begin with `-`.
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
