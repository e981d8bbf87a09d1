//! Renders the result of an import.

use super::View;
use crate::app::{IS_HERE, ImportRemark, ImportResult};
use crate::channel::terminal::plain;
use crate::cli::output::{FAINT, GOOD, HINT, Output, WARN, paint};

/// Renders what was imported, what needs a look, and what was left. The exit code is 1 if nothing was imported, now or before.
pub(super) fn imported(imported: &ImportResult, view: &View, output: &mut Output) {
    if imported.taken.is_empty() && imported.left.iter().all(|left| left.why != IS_HERE) {
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
    render_files(&imported.look, "look at", output);
    render_files(&imported.left, "left", output);
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

/// Renders a line for each file. Files with the same reason share a line.
fn render_files(files: &[ImportRemark], word: &str, output: &mut Output) {
    let is_same = |one: &ImportRemark, other: &ImportRemark| (&one.why, &one.hint) == (&other.why, &other.hint);
    let is_shared = |one: &ImportRemark| files.iter().filter(|other| is_same(one, other)).count() > 1;
    let mut line = |of: &str, all: &[&ImportRemark]| {
        let why: Vec<&str> = all.iter().map(|one| one.why.as_str()).collect();
        output.line(format!("{}  {}: {}", paint(WARN, word), plain(of), plain(&why.join("; "))));
        for hint in all.iter().filter_map(|one| one.hint.as_ref()) {
            output.line(format!("{} {} {}", " ".repeat(word.len()), paint(HINT, "->"), plain(hint)));
        }
    };
    for (number, one) in files.iter().enumerate() {
        let is_first = |is_it: &dyn Fn(&ImportRemark) -> bool| !files[..number].iter().any(is_it);
        if is_shared(one) {
            if is_first(&|other| is_same(one, other)) {
                let of = files.iter().filter(|other| is_same(one, other)).map(|other| other.file.display().to_string());
                line(&of.collect::<Vec<_>>().join(", "), &[one]);
            }
        } else if is_first(&|other| other.file == one.file && !is_shared(other)) {
            let all: Vec<&ImportRemark> =
                files.iter().filter(|other| other.file == one.file && !is_shared(other)).collect();
            line(&one.file.display().to_string(), &all);
        }
    }
}
