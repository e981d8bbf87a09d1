//! Renders a turn of the conversation: the bot's text, and a short line for each call.

use super::View;
use crate::agent::Observation;
use crate::app::words::call;
use crate::bot::main_session::NO_ANSWER;
use crate::channel::terminal::{plain, plain_lines};
use crate::cli::output::{BAD, FAINT, Output, paint};
use crate::journal::{Event, EventKind, PROGRAM_REFUSED, RunState};

/// Renders the events of turns.
pub struct Chat<'a> {
    view: &'a View,
    /// Whether to show calls.
    calls: bool,
    /// The part of the current text that was already shown as it arrived.
    letters: String,
    /// The last complete text.
    said: String,
    /// Messages at the end of the turn: the answer, which is shown already, and messages of the service.
    last: Vec<String>,
}

impl<'a> Chat<'a> {
    /// Creates a renderer. `calls` is whether to show calls.
    #[must_use]
    pub fn new(view: &'a View, calls: bool) -> Self {
        Self { view, calls, letters: String::new(), said: String::new(), last: Vec::new() }
    }

    /// Writes one event as a line of JSON or as text.
    pub fn write(&mut self, event: &Event, output: &mut Output) {
        if self.view.json {
            if matches!(event.kind, EventKind::Letters { .. }) {
                return;
            }
            output.verbatim(super::events::as_json(event, self.view).to_string());
            return;
        }
        match &event.kind {
            EventKind::RunStarted { .. } if self.calls => output.line(paint(FAINT, "(thinking; Ctrl-C ends it)")),
            EventKind::Letters { text } if self.calls => {
                output.stdout.push_str(&plain_lines(if self.letters.is_empty() { text.trim_start() } else { text }));
                self.letters.push_str(text);
            }
            EventKind::Observed(Observation::Said { text }) => {
                text.trim().clone_into(&mut self.said);
                let letters = std::mem::take(&mut self.letters);
                match text.strip_prefix(&letters) {
                    Some(rest) if !letters.is_empty() => output.line(plain_lines(rest.trim_end())),
                    // Some of the text was missed.
                    None => output.line(format!("\n{}", plain_lines(text.trim()))),
                    Some(_) => output.line(plain_lines(text.trim())),
                }
            }
            EventKind::Observed(Observation::ToolCall { tool, input, .. }) if self.calls => {
                output.line(paint(FAINT, &format!("· {}", short(&call(tool, input), output.width))));
            }
            EventKind::Observed(Observation::ToolDecided { allowed: false, reason, .. }) => {
                output.note(paint(FAINT, &format!("  refused: {}", plain(reason))));
            }
            EventKind::Note { text } => {
                if let Some(reason) = text.strip_prefix(PROGRAM_REFUSED).and_then(|rest| rest.strip_prefix(": ")) {
                    output.note(paint(FAINT, &format!("  refused: {}", plain(reason))));
                }
            }
            EventKind::Message { text, .. } => self.last.push(text.trim().to_owned()),
            EventKind::Observed(Observation::ApiRetry { fault }) => {
                output.note(paint(FAINT, &format!("  {}; trying again", plain(fault))));
            }
            EventKind::RunEnded { outcome, error, retry_at } if *outcome != RunState::Completed => {
                let why = error.as_ref().map(|why| format!(": {}", plain_lines(why))).unwrap_or_default();
                self.last.clear();
                if !std::mem::take(&mut self.letters).is_empty() {
                    output.line("");
                }
                let again = if retry_at.is_some() { "; it is tried again" } else { "" };
                output.note(paint(BAD, &format!("no answer{why}{again}")));
            }
            EventKind::RunEnded { .. } => {
                for text in std::mem::take(&mut self.last).into_iter().filter(|text| *text != self.said) {
                    let text = plain_lines(&text);
                    output.note(if text == NO_ANSWER { paint(BAD, &text) } else { text });
                }
                self.said.clear();
            }
            _ => {}
        }
    }
}

fn short(text: &str, width: Option<usize>) -> String {
    let most = width.unwrap_or(100).saturating_sub(4).max(20);
    let line = plain(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
