//! Renders the progress of a running turn as one message that a channel edits.

use std::time::Duration;

use tokio::time::Instant;

use super::split::{length, tail};
use super::{OutgoingButton, Progress, terminal};
use crate::definition::DefinitionId;
use crate::hexadecimal;

/// Maximum number of tool calls shown.
const MAX_LINES: usize = 4;

/// Maximum length of a shown call or reason of a denial, in characters.
const LONGEST_LINE: usize = 60;

/// Prefix of an interrupt button's id; the turn's id follows, or a hash of it.
pub const INTERRUPT: &str = "interrupt:";

/// Maximum length of a button's id, in bytes. Telegram accepts no longer ones.
const LONGEST_ID: usize = 64;

/// Text style and timing of a channel's service.
pub(super) struct Style {
    /// Maximum length of a message, in UTF-16 code units.
    pub longest: usize,
    /// Wait before a turn is first shown.
    pub first: Duration,
    /// Minimum time between two edits.
    pub pause: Duration,
    /// Interval of the typing indicator.
    pub typing: Duration,
    /// Escapes a text so that it appears literally.
    pub literal: fn(&str) -> String,
    /// Formats a call that was made.
    pub call: fn(&str) -> String,
    /// Formats a denied call and its reason.
    pub refused: fn(&str, &str) -> String,
    /// Formats the current activity, which may name its duration.
    pub status: fn(&str) -> String,
}

/// Returns the interrupt button of a status message. The answer has none.
pub(super) fn interrupt(turn: &DefinitionId) -> OutgoingButton {
    OutgoingButton { id: interrupt_id(turn), label: "Interrupt".into() }
}

/// Whether a button's id is that of a turn's interrupt button.
#[must_use]
pub fn interrupts(button: &str, turn: &DefinitionId) -> bool {
    button == interrupt_id(turn) || button.strip_prefix(INTERRUPT) == Some(turn.as_str())
}

/// Returns the id of a turn's interrupt button. A turn's id contains the name of its channel, so it may be too long.
fn interrupt_id(turn: &DefinitionId) -> String {
    let id = format!("{INTERRUPT}{turn}");
    match id.len() <= LONGEST_ID {
        true => id,
        false => format!("{INTERRUPT}#{}", &hexadecimal::sha256(turn.as_str().as_bytes())[..32]),
    }
}

/// Progress of a turn so far.
pub(super) struct Seen {
    style: &'static Style,
    lines: Vec<String>,
    text: String,
    doing: Option<String>,
    is_completed: bool,
    /// Whether a call waits for the person. Nothing changes until the answer.
    waits: bool,
    /// Whether that is shown.
    is_still: bool,
    began: Instant,
    next: Instant,
}

impl Seen {
    /// Creates the progress of a turn that begins now.
    pub(super) fn new(style: &'static Style) -> Self {
        let began = Instant::now();
        Self {
            style,
            lines: Vec::new(),
            text: String::new(),
            doing: None,
            is_completed: false,
            waits: false,
            is_still: false,
            began,
            next: began + style.first,
        }
    }

    /// Returns the time of the next edit; `None` until there is progress again.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.is_still).then_some(self.next)
    }

    /// Whether a call waits for the person.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Records that the progress is shown now.
    pub(super) fn shown(&mut self) {
        self.is_still = self.waits;
        self.next = Instant::now() + self.style.pause;
    }

    /// Adds progress. Returns whether the turn is still running.
    pub(super) fn take(&mut self, progress: Progress) -> bool {
        self.is_still = false;
        match progress {
            Progress::WaitsForPerson(waits) => self.waits = waits,
            Progress::Text(text) => {
                if self.text.is_empty() {
                    // The start of the answer is shown without waiting for the pause to end.
                    self.next = self.next.min(Instant::now().max(self.began + self.style.first));
                }
                self.done();
                self.text.push_str(&text);
            }
            Progress::Call { label } => {
                self.done();
                self.text.clear();
                self.doing = Some(self.line(&label));
            }
            Progress::Refused { label, reason } => {
                let label = self.line(&label);
                if self.doing.as_ref() == Some(&label) {
                    self.doing = None;
                }
                self.lines.push((self.style.refused)(&label, &self.line(&reason)));
            }
            Progress::AttemptEnded { completed } => self.is_completed = completed,
            Progress::Ended { completed } => {
                self.is_completed = completed;
                return false;
            }
        }
        true
    }

    fn done(&mut self) {
        self.lines.extend(self.doing.take().map(|label| (self.style.call)(&label)));
    }

    /// Cuts and escapes a text for one line.
    fn line(&self, text: &str) -> String {
        let text = terminal::plain(text);
        let cut: String = text.trim().chars().take(LONGEST_LINE).collect();
        let end = if cut.len() < text.trim().len() { "…" } else { "" };
        format!("{}{end}", (self.style.literal)(&cut))
    }

    /// Renders the current message. Its last line is the status.
    pub(super) fn rendered(&self, since: Duration) -> String {
        let doing = match &self.doing {
            Some(doing) => doing,
            None if self.text.is_empty() => "Thinking",
            None => "Writing",
        };
        let status = match self.waits {
            true => format!("{doing} waits for your answer"),
            false => format!("{doing}, {} s", coarse(since.as_secs())),
        };
        self.with_status((self.style.status)(&status))
    }

    /// Renders the message of a turn that ended without an answer here. Returns `None` if no progress was visible.
    pub(super) fn left(&mut self, since: Duration) -> Option<String> {
        self.done();
        let was_seen = !self.lines.is_empty() || !self.text.trim().is_empty();
        let end = if self.is_completed { "Done" } else { "Interrupted" };
        was_seen.then(|| self.with_status((self.style.status)(&format!("{end}, {} s", since.as_secs()))))
    }

    fn with_status(&self, status: String) -> String {
        let hidden = self.lines.len().saturating_sub(MAX_LINES);
        let mut lines: Vec<String> = Vec::new();
        if hidden > 0 {
            lines.push((self.style.call)(&format!("… {hidden} more")));
        }
        lines.extend(self.lines[hidden..].iter().cloned());
        let used: usize = lines.iter().chain([&status]).map(|line| length(line) + 1).sum();
        // A long text shows only its end.
        let text = tail(&terminal::plain_lines(&self.text), self.style.longest - used);
        lines.extend(Some(text).filter(|text| !text.is_empty()));
        lines.push(status);
        lines.join("\n")
    }
}

/// Rounds the duration, more coarsely the longer it is, for fewer edits.
fn coarse(seconds: u64) -> u64 {
    match seconds {
        0..10 => seconds,
        10..60 => seconds / 5 * 5,
        _ => seconds / 15 * 15,
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const STYLE: Style = Style {
        longest: 100,
        first: Duration::from_secs(2),
        pause: Duration::from_secs(10),
        typing: Duration::from_secs(8),
        literal: str::to_owned,
        call: str::to_owned,
        refused: |label, _| label.to_owned(),
        status: str::to_owned,
    };

    #[tokio::test(start_paused = true)]
    async fn the_first_letters_of_an_answer_wait_for_no_pause() {
        let text = || Progress::Text("It".into());
        let mut seen = Seen::new(&STYLE);
        let began = Instant::now();
        seen.take(text());
        assert_eq!(seen.next(), Some(began + STYLE.first), "a turn is first shown then");
        let mut seen = Seen::new(&STYLE);
        seen.shown();
        advance(Duration::from_secs(4)).await;
        seen.take(text());
        assert_eq!(seen.next(), Some(Instant::now()));
        seen.shown();
        let next = seen.next();
        seen.take(text());
        assert_eq!(seen.next(), next, "the letters behind them do");
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_the_person_is_shown_once() {
        let mut seen = Seen::new(&STYLE);
        seen.take(Progress::Call { label: "Bash touch a".into() });
        assert_eq!(seen.rendered(Duration::from_secs(3)), "Bash touch a, 3 s");
        seen.take(Progress::WaitsForPerson(true));
        assert!(seen.waits() && seen.next().is_some(), "that it waits is to be shown");
        assert_eq!(seen.rendered(Duration::from_secs(600)), "Bash touch a waits for your answer");
        seen.shown();
        assert_eq!(seen.next(), None, "nothing changes until the answer");
        seen.take(Progress::WaitsForPerson(false));
        assert!(!seen.waits() && seen.next().is_some());
        assert_eq!(seen.rendered(Duration::from_secs(5)), "Bash touch a, 5 s");
    }
}
