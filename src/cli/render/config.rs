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
            let value = match &setting.value {
                Value::Null => "-".to_owned(),
                Value::String(text) => text.clone(),
                Value::Array(items) => {
                    items.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ")
                }
                other => other.to_string(),
            };
            vec![Cell::new(setting.key, STRONG), Cell::new(setting.origin.to_string(), FAINT), value.into()]
        })
        .collect();
    output.facts(&rows);
}
