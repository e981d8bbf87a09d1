//! Renders the events of runs, in one or a few lines each.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{View, style};
use crate::agent::Observation;
use crate::app::times;
use crate::app::words::{self, Emphasis};
use crate::channel::terminal::{plain_lines, wrapped};
use crate::cli::output::{FAINT, Output, paint};
use crate::journal::{Event, EventKind};

/// Number of lines to which a longer text is folded.
const FOLDED_LINES: usize = 3;

/// Maximum length of a call shown beside its result, in characters.
const LONGEST_CALL: usize = 40;

/// Renders a sequence of events.
pub struct Events<'a> {
    view: &'a View,
    /// Whether to show texts in full.
    full: bool,
    /// Whether to show each event's job.
    named: bool,
    /// Known results of calls, by the client's id of the call.
    results: HashMap<String, String>,
    /// Calls without a result so far, as text, by the client's id of the call.
    open: HashMap<String, String>,
    /// Whether several calls were open at once. Then verdicts and results name their call, until none is open.
    side_by_side: bool,
}

impl<'a> Events<'a> {
    /// Creates a renderer for one run, with long texts folded.
    #[must_use]
    pub fn of_run(view: &'a View) -> Self {
        let (results, open) = (HashMap::new(), HashMap::new());
        Self { view, full: false, named: false, results, open, side_by_side: false }
    }

    /// Creates a renderer for all runs.
    #[must_use]
    pub fn of_all(view: &'a View) -> Self {
        Self { named: true, ..Self::of_run(view) }
    }

    /// Creates a renderer for one run, with every text in full.
    #[must_use]
    pub fn in_full(view: &'a View, results: HashMap<String, String>) -> Self {
        Self { full: true, results, ..Self::of_run(view) }
    }

    /// Writes one event as a line of JSON or as text.
    pub fn write(&mut self, event: &Event, output: &mut Output) {
        if self.view.json {
            output.verbatim(as_json(event, self.view).to_string());
            return;
        }
        let full = self.full.then_some(&self.results);
        let shown = allowed(&event.kind).or_else(|| words::event(&event.kind, full, event.at, self.view.zone));
        let Some((name, emphasis, mut text)) = shown else { return };
        text.push_str(&self.belongs_to(&event.kind));
        let time = event.at.with_timezone(&self.view.zone).format("%H:%M:%S");
        let id = event.id.as_ref().filter(|_| self.named).map(|id| format!("  {id}")).unwrap_or_default();
        let mut lines = self.folded(&text, output.width).into_iter();
        let first = lines.next().map(|line| format!("{:1$}{line}", "", 10 - name.len())).unwrap_or_default();
        output.line(format!(
            "{}{first}{}",
            paint(style(emphasis), &format!("{time}  {name}")),
            paint(FAINT, &plain_lines(&id))
        ));
        for line in lines {
            output.line(format!("{:20}{line}", "").trim_end());
        }
    }

    /// Returns the call of a verdict or result, if several calls are open.
    fn belongs_to(&mut self, kind: &EventKind) -> String {
        let EventKind::Observed(seen) = kind else { return String::new() };
        let (id, is_over) = match seen {
            Observation::ToolCall { call, tool, input } => {
                let words = words::call(tool, input);
                let first: String = words.lines().next().unwrap_or_default().chars().take(LONGEST_CALL).collect();
                self.open.insert(call.clone(), first);
                self.side_by_side |= self.open.len() > 1;
                return String::new();
            }
            Observation::ToolDecided { call, .. } => (call, false),
            Observation::ToolResult { call, .. } => (call, true),
            _ => return String::new(),
        };
        let words = if is_over { self.open.remove(id) } else { self.open.get(id).cloned() };
        let shown = words.filter(|_| self.side_by_side).map(|words| format!("  ({words})")).unwrap_or_default();
        self.side_by_side &= !self.open.is_empty();
        shown
    }

    /// Splits a text into lines that fit the terminal.
    fn folded(&self, text: &str, width: Option<usize>) -> Vec<String> {
        let text = plain_lines(text.trim());
        let width = width.map_or(usize::MAX, |width| width.saturating_sub(21).max(20));
        let shown = text.lines().filter(|line| self.full || !line.trim().is_empty());
        let mut lines: Vec<String> = shown.flat_map(|line| wrapped(line, width)).collect();
        // Folding a single line would save nothing.
        if !self.full && lines.len() > FOLDED_LINES + 1 {
            let more = lines.len() - FOLDED_LINES;
            lines.truncate(FOLDED_LINES);
            lines.push(paint(FAINT, &format!("… {more} more lines")));
        }
        lines
    }
}

/// Describes that a rule allows a call. `None` for a line of the shell whose programs are judged when they start.
fn allowed(kind: &EventKind) -> Option<(&'static str, Emphasis, String)> {
    let EventKind::Observed(Observation::ToolDecided { allowed: true, rule: Some(rule), .. }) = kind else {
        return None;
    };
    Some(("allowed", Emphasis::Faint, format!("by `{rule}`")))
}

/// Returns the JSON of an event, with its time in the zone of records.
pub(super) fn as_json(event: &Event, view: &View) -> Value {
    let mut value = json!(event);
    value["at"] = json!(times::rfc3339(event.at, view.zone));
    value
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn of_calls_side_by_side_each_result_says_which_it_is_of() {
        let view =
            View { json: false, now: "2026-11-23T09:00:00Z".parse().unwrap(), zone: chrono_tz::UTC, home: "/b".into() };
        let (mut events, mut output) = (Events::of_run(&view), Output::default());
        let call = |call: &str, command: &str| Observation::ToolCall {
            call: call.into(),
            tool: "Bash".into(),
            input: json!({ "command": command }),
        };
        let decided = |call: &str, rule: &str| Observation::ToolDecided {
            call: call.into(),
            allowed: true,
            reason: String::new(),
            layer: None,
            rule: Some(rule.into()),
        };
        let result = |call: &str| Observation::ToolResult { call: call.into(), bytes: 15, failed: true };
        for seen in [
            call("a", "ls"),
            decided("a", "Bash(ls)"),
            result("a"),
            call("b", "cat x"),
            call("c", "cat y"),
            result("c"),
            result("b"),
        ] {
            let at = "2026-11-23T08:00:00Z".parse().unwrap();
            let event = Event { number: 1, at, run: None, id: None, kind: EventKind::Observed(seen) };
            events.write(&event, &mut output);
        }
        let shown = anstream::adapter::strip_str(&output.stdout).to_string();
        let lines: Vec<&str> = shown.lines().map(|line| line.trim_start_matches("08:00:00").trim()).collect();
        assert_eq!(
            lines,
            [
                "call      Bash ls",
                "allowed   by `Bash(ls)`",
                "result    failed, 15 B",
                "call      Bash cat x",
                "call      Bash cat y",
                "result    failed, 15 B  (Bash cat y)",
                "result    failed, 15 B  (Bash cat x)"
            ]
        );
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("onetwothree", 4), ["onet", "woth", "ree"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(
            wrapped("é é é é", 3),
            ["é", "é", "é", "é"].chunks(2).map(|pair| pair.join(" ")).collect::<Vec<_>>()
        );
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(
            [0, 1023, 1024, 1536].map(|bytes| ByteSize(bytes).to_string()),
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]
        );
    }
}
