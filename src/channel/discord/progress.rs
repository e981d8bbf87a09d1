//! How a turn is shown while it goes: one message that is edited, and becomes the answer.

use std::time::Duration;

use crate::channel::{Progress, terminal};

use super::body::LONGEST;
use crate::channel::split::{length, tail};

/// How many calls are shown, and how much of each.
const MOST_LINES: usize = 4;
const LONGEST_LABEL: usize = 60;
const LONGEST_REASON: usize = 60;

/// What has been seen of a turn.
#[derive(Default)]
pub(super) struct Seen {
    lines: Vec<String>,
    text: String,
    doing: Option<String>,
}

impl Seen {
    /// Returns whether the turn goes on.
    pub(super) fn take(&mut self, progress: Progress) -> bool {
        match progress {
            Progress::Text(text) => {
                self.done();
                self.text.push_str(&text);
            }
            Progress::Call { label } => {
                self.done();
                self.text.clear();
                self.doing = Some(shown(&label, LONGEST_LABEL));
            }
            Progress::Refused { label, reason } => {
                let label = shown(&label, LONGEST_LABEL);
                if self.doing.as_ref() == Some(&label) {
                    self.doing = None;
                }
                self.lines.push(format!("-# ~~{label}~~ {}", shown(&reason, LONGEST_REASON)));
            }
            Progress::Ended => return false,
        }
        true
    }

    fn done(&mut self) {
        self.lines.extend(self.doing.take().map(|label| format!("-# {label}")));
    }

    /// The message as it is now. Its last line begins with [`STATUS`].
    pub(super) fn rendered(&self, since: Duration) -> String {
        let hidden = self.lines.len().saturating_sub(MOST_LINES);
        let mut lines: Vec<String> = Vec::new();
        if hidden > 0 {
            lines.push(format!("-# … {hidden} more"));
        }
        lines.extend(self.lines[hidden..].iter().cloned());
        let doing = match &self.doing {
            Some(doing) => doing,
            None if self.text.is_empty() => "Thinking",
            None => "Writing",
        };
        let status = format!("{STATUS}{doing}, {} s", coarse(since.as_secs()));
        let used: usize = lines.iter().chain([&status]).map(|line| length(line) + 1).sum();
        // Of a long text the end is shown.
        lines.extend(Some(tail(&terminal::plain_lines(&self.text), LONGEST - used)).filter(|text| !text.is_empty()));
        lines.push(status);
        lines.join("\n")
    }
}

/// What a line in small letters begins with.
pub(super) const STATUS: &str = "-# ";

/// Whether a message shows a turn that was going.
pub(super) fn is_status(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.starts_with(STATUS) && line.ends_with(" s"))
}

/// Fewer edits the longer it takes.
fn coarse(seconds: u64) -> u64 {
    match seconds {
        0..10 => seconds,
        10..60 => seconds / 5 * 5,
        _ => seconds / 15 * 15,
    }
}

/// On one line, as it is written, and not too long.
fn shown(text: &str, most: usize) -> String {
    let text = terminal::plain(text);
    let cut: String = text.trim().chars().take(most).collect();
    let mut shown = String::new();
    for c in cut.chars() {
        if c.is_ascii_punctuation() && "\\*_~`|<>[]()#-".contains(c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    if cut.len() < text.trim().len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_lines_and_a_text_before_a_call_goes() {
        let mut seen = Seen::default();
        assert_eq!(seen.rendered(Duration::ZERO), "-# Thinking, 0 s");
        let call = |label: &str| Progress::Call { label: label.into() };
        for progress in [
            Progress::Text("Let me look.".into()),
            call("Read notes/a.md"),
            call("Bash git push"),
            Progress::Refused { label: "Bash git push".into(), reason: "no rule *allows* it\nat all".into() },
        ] {
            assert!(seen.take(progress));
        }
        assert_eq!(
            seen.rendered(Duration::from_secs(2)),
            "-# Read notes/a.md\n-# ~~Bash git push~~ no rule \\*allows\\* it at all\n-# Thinking, 2 s"
        );
        assert!(seen.take(Progress::Text("It is ".into())) && seen.take(Progress::Text("green.".into())));
        let text = seen.rendered(Duration::from_secs(14));
        assert!(text.ends_with("\nIt is green.\n-# Writing, 10 s") && is_status(&text), "{text}");
        assert!(!seen.take(Progress::Ended) && !is_status("It is green."));
    }

    #[test]
    fn whatever_comes_it_fits() {
        let mut seen = Seen::default();
        for n in 0..50 {
            seen.take(Progress::Call { label: "*".repeat(n * 10) });
            seen.take(Progress::Refused { label: "*".repeat(n * 10), reason: "`".repeat(1000) });
        }
        seen.take(Progress::Text(format!("```\n{}", "x y ".repeat(2000))));
        let text = seen.rendered(Duration::from_secs(100_000));
        assert!(length(&text) <= super::super::body::LONGEST, "{}", text.len());
        assert_eq!(text.matches("```").count(), 2, "{text}");
    }
}
