//! Renders the copy of a journal.

use serde_json::json;

use super::View;
use crate::app::CopiedJournal;
use crate::cli::output::{Cell, FAINT, Output};
use crate::journal::CopySummary;

/// Renders what was copied, and the next step.
pub(super) fn copied(copied: &CopiedJournal, view: &View, output: &mut Output) {
    let CopiedJournal { from, to, setting, is_used, copied: CopySummary { tables, kept_aside } } = copied;
    if view.json {
        let tables: serde_json::Map<_, _> =
            tables.iter().map(|table| (table.table.to_owned(), json!(table.rows))).collect();
        output.json(&json!({ "from": from, "to": to, "journal": setting, "used": is_used, "rows": tables, "kept_aside": kept_aside }));
        return;
    }
    output.line(format!("copied {from} to {to}; each row was compared"));
    let filled = tables.iter().filter(|table| table.rows > 0);
    let rows: Vec<_> =
        filled.map(|table| vec![Cell::new(table.table, FAINT), format!("{} rows", table.rows).into()]).collect();
    output.table(&rows);
    if let Some(path) = kept_aside {
        output.note(format!("the file that stood there is kept as {}", path.display()));
    }
    output.note(match setting {
        _ if *is_used => "the service uses it when it is started again".to_owned(),
        Some(url) => format!("now write `journal: {url}` into config.yaml, and start the service"),
        None => "now remove `journal` from config.yaml, and start the service".to_owned(),
    });
}
