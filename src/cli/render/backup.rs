//! Renders backups and restores.

use bytesize::ByteSize;
use serde_json::json;

use super::View;
use crate::app::{BackupResult, Differences, RestoreResult, UnreadablePath};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};

/// Maximum number of paths shown of each kind. JSON has all.
const NAMED: usize = 10;

/// Shows the content of a backup and what is missing. The exit code is 1 if something could not be read.
pub(super) fn written(backup: &BackupResult, view: &View, output: &mut Output) {
    output.exit = u8::from(!backup.unread.is_empty());
    if view.json {
        output.json(backup);
        return;
    }
    let BackupResult { file, bytes, files, left_out, journal_on, unread } = backup;
    let file = plain(&file.display().to_string());
    output.line(format!("{} {file}: {files} files, {}", paint(GOOD, "wrote"), ByteSize(*bytes)));
    if !left_out.is_empty() {
        let left_out = plain(&left_out.join(", "));
        output.note(format!(
            "{} {left_out} not in it: secrets are left out; `--secrets` takes them",
            paint(WARN, "note:")
        ));
    }
    if let Some(server) = journal_on {
        let server = plain(server);
        output.note(format!(
            "{} the journal is not in it: it is on {server}; `pg_dump` there backs it up",
            paint(WARN, "note:")
        ));
    }
    if !unread.is_empty() {
        output.note(format!("{} {} of it could not be backed up:", paint(BAD, "error:"), unread.len()));
        for UnreadablePath { path, why } in unread.iter().take(NAMED) {
            output.note(format!("  {}: {}", plain(path), plain(why)));
        }
        if unread.len() > NAMED {
            output.note(paint(
                FAINT,
                &format!("  and {} more: `ollim-bot --json backup FILE` names all", unread.len() - NAMED),
            ));
        }
        output.note(format!(
            "{} mend or remove them, and take another backup; the rest is in this one",
            paint(HINT, "hint:")
        ));
    }
    output.note(paint(FAINT, "back again: `ollim-bot --home DIR restore FILE`"));
}

/// Shows a restored folder, or how it differs. The exit code is 1 if nothing was written or the journal is damaged.
pub(super) fn restored(restored: &RestoreResult, view: &View, output: &mut Output) {
    match restored {
        RestoreResult::Done { files, made, journal, secrets } => {
            if view.json {
                let home = &view.home;
                output.json(
                    &json!({ "home": home, "files": files, "made": made, "journal": journal, "secrets": secrets }),
                );
                return;
            }
            let home = plain(&view.home.display().to_string());
            output.line(format!("{} {home}: {files} files, as of {}", paint(GOOD, "restored"), moment(made, view)));
            if let Some(damage) = journal {
                output.note(format!("{} the journal in it cannot be used: {}", paint(BAD, "error:"), plain(damage)));
                output.exit = 1;
            }
            if !secrets {
                output.note(format!(
                    "{} secrets were not in it: write .env and what tools/ held anew",
                    paint(WARN, "note:")
                ));
            }
            output.note(format!("{} look at it: `ollim-bot doctor`; then start the service", paint(HINT, "hint:")));
        }
        RestoreResult::Differs(differences) => differs(differences, view, output),
    }
}

/// Formats a time from a backup.
fn moment(made: &str, view: &View) -> String {
    made.parse().map_or_else(|_| plain(made), |at| view.moment(at))
}

fn differs(differences: &Differences, view: &View, output: &mut Output) {
    output.exit = 1;
    if view.json {
        output.json(&json!({ "differs": differences }));
        return;
    }
    let Differences { made, same, changed, missing, added } = differences;
    let home = plain(&view.home.display().to_string());
    output.line(format!("{same} files are the same as in the backup of {}.", moment(made, view)));
    for (words, list) in [("differ", changed), ("in the backup alone", missing), ("in the folder alone", added)] {
        if list.is_empty() {
            continue;
        }
        output.line(paint(STRONG, &format!("{} {words}", list.len())));
        list.iter().take(NAMED).for_each(|path| output.line(format!("  {}", plain(path))));
        if list.len() > NAMED {
            output.line(paint(FAINT, &format!("  and {} more", list.len() - NAMED)));
        }
    }
    output.note(format!("{} {home} has something in it, so nothing was written", paint(BAD, "error:")));
    let hint = "move that folder away, or restore into another: `ollim-bot --home DIR restore FILE`";
    output.note(format!("{} {hint}", paint(HINT, "hint:")));
}
