//! What happens in a run, a line or a few for each event.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{View, style};
use crate::app::{times, words};
use crate::channel::terminal::plain_lines;
use crate::cli::output::{FAINT, Output, paint, wrapped};
use crate::journal::Event;

/// Of a longer text so many lines are shown, unless all of it is asked for.
const FOLDED_LINES: usize = 3;

/// Renders events one after the other.
pub struct Events<'a> {
    view: &'a View,
    /// Whether texts are shown in full.
    full: bool,
    /// Whether each event says which job it belongs to.
    named: bool,
    /// The results of calls, where they are known, by the client's id of the call.
    results: HashMap<String, String>,
}

impl<'a> Events<'a> {
    /// Those of one run, with long texts folded.
    #[must_use]
    pub fn of_run(view: &'a View) -> Self {
        Self { view, full: false, named: false, results: HashMap::new() }
    }

    /// Those of all runs.
    #[must_use]
    pub fn of_all(view: &'a View) -> Self {
        Self { named: true, ..Self::of_run(view) }
    }

    /// Those of one run, with every text in full.
    #[must_use]
    pub fn in_full(view: &'a View, results: HashMap<String, String>) -> Self {
        Self { full: true, results, ..Self::of_run(view) }
    }

    /// Writes one event: a line of JSON, or text.
    pub fn write(&self, event: &Event, output: &mut Output) {
        if self.view.json {
            output.line(as_json(event, self.view).to_string());
            return;
        }
        let full = self.full.then_some(&self.results);
        let shown = words::event(&event.kind, full, self.view.now, self.view.zone);
        let Some((name, tone, text)) = shown else { return };
        let time = event.at.with_timezone(&self.view.zone).format("%H:%M:%S");
        let id = event.id.as_ref().filter(|_| self.named).map(|id| format!("  {id}")).unwrap_or_default();
        let mut lines = self.folded(&text, output.width).into_iter();
        let first = lines.next().map(|line| format!("{:1$}{line}", "", 10 - name.len())).unwrap_or_default();
        output.line(format!(
            "{}{first}{}",
            paint(style(tone), &format!("{time}  {name}")),
            paint(FAINT, &plain_lines(&id))
        ));
        for line in lines {
            output.line(format!("{:20}{line}", "").trim_end());
        }
    }

    /// A text in lines that fit the terminal.
    fn folded(&self, text: &str, width: Option<usize>) -> Vec<String> {
        let text = plain_lines(text.trim());
        let width = width.map_or(usize::MAX, |width| width.saturating_sub(21).max(20));
        let shown = text.lines().filter(|line| self.full || !line.trim().is_empty());
        let mut lines: Vec<String> = shown.flat_map(|line| wrapped(line, width)).collect();
        // A line that says that one is left out takes the place of that one.
        if !self.full && lines.len() > FOLDED_LINES + 1 {
            let more = lines.len() - FOLDED_LINES;
            lines.truncate(FOLDED_LINES);
            lines.push(paint(FAINT, &format!("… {more} more lines")));
        }
        lines
    }
}

/// An event with its time in the zone of records.
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
