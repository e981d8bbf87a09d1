//! `config`: the settings in force and where each came from.

use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::output::{Cell, FAINT, Output, STRONG};

/// Lists every setting.
///
/// # Errors
/// When something in them is wrong.
pub fn config(context: &Context, output: &mut Output) -> Result<(), CliError> {
    let settings = context.config()?.settings();
    if context.json {
        output.json(&settings);
        return Ok(());
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
    output.table(&rows);
    Ok(())
}
