//! The record of a run while it runs: its client's messages and actions, in order and within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::host::{LONGEST_NAME, truncate_texts};
use crate::agent::Observation;
use crate::journal::{EventKind, Journal, RunId};
use crate::policy::on_one_line;

/// Maximum length of a text in an event, in characters. The client's transcript contains the whole text.
const LONGEST_TEXT: usize = 20_000;

/// Maximum size of one run's events in the journal, in bytes.
const MAX_RECORDED: usize = 2 * 1024 * 1024;

/// Assumed size of an event without its texts, in bytes.
const EVENT_SIZE: usize = 200;

/// The events of one run.
pub(super) struct RunEvents {
    run: RunId,
    journal: Journal,
    /// Number of bytes that may still be recorded.
    left: AtomicUsize,
}

impl RunEvents {
    pub(super) fn new(run: RunId, journal: Journal) -> Self {
        Self { run, journal, left: AtomicUsize::new(MAX_RECORDED) }
    }

    /// Records an event. If the run exceeds its limit, a `Cut` event is recorded instead, and all further events are dropped.
    pub(super) fn add(&self, kind: EventKind) {
        let size = EVENT_SIZE + size_of(&kind);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
            0 => None,
            left => Some(left.saturating_sub(size)),
        });
        match spent {
            Ok(left) if left > size => self.journal.record(&self.run, kind),
            Ok(_) => self.journal.record(&self.run, EventKind::Cut),
            Err(_) => {}
        }
    }

    /// Records the prompt that the client is given.
    pub(super) fn prompt(&self, prompt: &str) {
        self.add(EventKind::Prompt { text: cut(prompt) });
    }

    /// Records an observation of the client.
    pub(super) fn observe(&self, mut seen: Observation) {
        match &mut seen {
            Observation::Said { text } | Observation::Printed { text } => *text = cut(text),
            Observation::ToolCall { tool, input, .. } => {
                *tool = on_one_line(tool, LONGEST_NAME);
                truncate_texts(input);
            }
            Observation::ToolDecided { reason, .. } => *reason = cut(reason),
            Observation::ClientReady { .. }
            | Observation::ToolResult { .. }
            | Observation::ApiRetry { .. }
            | Observation::Compacted { .. } => {}
        }
        self.add(EventKind::Observed(seen));
    }
}

fn size_of(kind: &EventKind) -> usize {
    match kind {
        EventKind::Prompt { text }
        | EventKind::Note { text }
        | EventKind::Observed(
            Observation::Said { text } | Observation::Printed { text } | Observation::ApiRetry { fault: text },
        ) => text.len(),
        EventKind::Observed(Observation::ToolCall { call, tool, input }) => {
            call.len() + tool.len() + size_of_value(input)
        }
        EventKind::Observed(Observation::ToolDecided { reason, .. }) => reason.len(),
        _ => 0,
    }
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size_of_value(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_an_agents_counts() {
        let text = "x".repeat(1000);
        for kind in [
            EventKind::Note { text: text.clone() },
            EventKind::Prompt { text: text.clone() },
            EventKind::Observed(Observation::Said { text: text.clone() }),
            EventKind::Observed(Observation::Printed { text: text.clone() }),
            EventKind::Observed(Observation::ToolCall { call: String::new(), tool: text.clone(), input: json!({}) }),
            EventKind::Observed(Observation::ToolCall { call: text.clone(), tool: String::new(), input: json!({}) }),
            EventKind::Observed(Observation::ToolDecided {
                call: String::new(),
                allowed: false,
                reason: text.clone(),
                layer: None,
                rule: None,
            }),
            EventKind::Observed(Observation::ApiRetry { fault: text }),
        ] {
            assert_eq!(size_of(&kind), 1000, "{kind:?}");
        }
    }
}
