//! Renders the settings in force, and where each came from.

use serde_json::Value;

use super::View;
use crate::cli::output::{Cell, FAINT, Output, STRONG};
use crate::config::Setting;

/// Lists every setting.
pub(super) fn config(settings: &[Setting], view: &View, output: &mut Output) {
    if view.json {
        output.json(&settings);
        return;
    }
    let rows: Vec<Vec<Cell>> = settings
        .iter()
        .map(|setting| {
            let value = words(&setting.value);
            vec![Cell::new(setting.key, STRONG), Cell::new(setting.origin.to_string(), FAINT), value.into()]
        })
        .collect();
    output.facts(&rows);
}

/// Returns a value as a line of YAML. It can be broken between words.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {}", words(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
