//! Renders the state of the service's unit.

use serde_json::{Value, json};

use super::View;
use crate::app::{UnitAct, UnitOutcome, UnitStatus};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};

/// Renders a sentence or the unit's facts, with notes. The exit code is 1 if a status shows an inactive unit.
pub(super) fn outcome(outcome: &UnitOutcome, view: &View, output: &mut Output) {
    if let UnitOutcome::Status { status, .. } = outcome
        && !status.is_active()
    {
        output.exit = 1;
    }
    if view.json {
        output.json(&as_json(outcome));
        return;
    }
    match outcome {
        UnitOutcome::Printed { file, text, notes } => {
            output.stdout.push_str(text);
            output.note(paint(FAINT, &format!("it belongs into {}", plain(&file.display().to_string()))));
            show_notes(notes, output);
        }
        UnitOutcome::Installed { status, written, notes } => {
            let word = if *written { "installed" } else { "installed already" };
            output.line(format!("{} {}", paint(GOOD, word), plain(&status.file.display().to_string())));
            facts(status, output);
            show_notes(notes, output);
            output
                .note(paint(FAINT, "how it is: `ollim-bot service status`; what it logs: `ollim-bot service logs -f`"));
        }
        UnitOutcome::Uninstalled { file } => {
            output.line(format!("stopped, and removed {}", plain(&file.display().to_string())));
            output.note(paint(FAINT, &format!("your jobs stay in {}", plain(&view.home.display().to_string()))));
        }
        UnitOutcome::Status { status, notes } => {
            facts(status, output);
            if !status.installed {
                output.note(format!("{} `ollim-bot service install`", paint(HINT, "hint:")));
            } else if !status.is_active() {
                output.note(format!("{} `ollim-bot service logs`, `ollim-bot service start`", paint(HINT, "hint:")));
            }
            show_notes(notes, output);
        }
        UnitOutcome::Done { act, status } => {
            let (word, again) = match act {
                UnitAct::Stop => ("stopped", ""),
                UnitAct::Restart => ("started", " again"),
                _ => ("started", ""),
            };
            output.line(format!("{word} {}{again}", paint(STRONG, &status.unit)));
            facts(status, output);
        }
    }
}

fn as_json(outcome: &UnitOutcome) -> Value {
    match outcome {
        UnitOutcome::Printed { file, text, notes } => json!({ "file": file, "text": text, "notes": notes }),
        UnitOutcome::Installed { status, written, notes } => {
            json!({ "status": status, "written": written, "notes": notes })
        }
        UnitOutcome::Uninstalled { file } => json!({ "removed": file }),
        UnitOutcome::Status { status, notes } => json!({ "status": status, "notes": notes }),
        UnitOutcome::Done { status, .. } => json!({ "status": status }),
    }
}

fn facts(status: &UnitStatus, output: &mut Output) {
    let mut facts: Vec<Vec<Cell>> = Vec::new();
    let mut fact = |name: &str, value: Cell| facts.push(vec![Cell::new(name, FAINT), value]);
    fact("unit", Cell::new(&status.unit, STRONG));
    if !status.installed {
        fact("state", Cell::new("not installed", WARN));
        output.facts(&facts);
        return;
    }
    let pid = status.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let style = if status.is_active() { GOOD } else { BAD };
    fact("state", Cell::new(format!("{}{pid}", status.active), style));
    // systemd keeps the words of a process that is gone.
    if !status.says.is_empty() && status.pid.is_some() {
        fact("says", status.says.as_str().into());
    }
    if status.restarts > 0 {
        fact("restarts", Cell::new(format!("{} after failures", status.restarts), WARN));
    }
    let starts = match (status.enabled, status.lingers) {
        (false, _) => Cell::new("by hand only", WARN),
        (true, Some(false)) => Cell::new("when you log in", WARN),
        (true, _) => "at boot".into(),
    };
    fact("starts", starts);
    output.facts(&facts);
}

fn show_notes(notes: &[String], output: &mut Output) {
    for note in notes {
        output.note(format!("{} {}", paint(WARN, "note:"), plain(note)));
    }
}
