//! What became of another bot's folder.

use super::View;
use crate::app::{Imported, Left};
use crate::channel::terminal::plain;
use crate::cli::output::{FAINT, GOOD, HINT, Output, WARN, paint};

/// What was taken over, what to look at, and what was not. Exit 1 where nothing was.
pub(super) fn imported(imported: &Imported, view: &View, output: &mut Output) {
    if imported.taken.is_empty() {
        output.exit = 1;
    }
    if view.json {
        output.json(imported);
        return;
    }
    let word = if imported.dry_run { "would take over" } else { "took over" };
    for file in &imported.taken {
        output.line(format!("{}  {}", paint(GOOD, word), plain(&file.display().to_string())));
    }
    said(&imported.look, "look at", output);
    said(&imported.left, "left", output);
    let count = imported.taken.len();
    let files = if count == 1 { "file" } else { "files" };
    output.line("");
    output.line(format!(
        "{count} {files} {}, {} left.",
        if imported.dry_run { "to take over" } else { "taken over" },
        imported.left.len()
    ));
    output.note(paint(
        FAINT,
        if imported.dry_run { "nothing was written" } else { "`ollim-bot check` says whether all is in order" },
    ));
}

fn said(files: &[Left], word: &str, output: &mut Output) {
    for Left { file, why, hint } in files {
        output.line(format!("{}  {}: {}", paint(WARN, word), plain(&file.display().to_string()), plain(why)));
        if let Some(hint) = hint {
            output.line(format!("{} {} {}", " ".repeat(word.len()), paint(HINT, "->"), plain(hint)));
        }
    }
}
