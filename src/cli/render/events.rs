//! What happens in a run, a line or a few for each event.

use std::collections::HashMap;

use anstyle::Style;
use bytesize::ByteSize;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::runs::{call, money};
use super::{View, state};
use crate::agent::{self, Observation};
use crate::app::times;
use crate::channel::terminal::plain_lines;
use crate::cli::output::{BAD, FAINT, GOOD, Output, STRONG, WARN, paint};
use crate::journal::{Event, EventKind, RunState};

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
        let Some((name, style, text)) = self.shown(&event.kind) else { return };
        let time = event.at.with_timezone(&self.view.zone).format("%H:%M:%S");
        let id = event.id.as_ref().filter(|_| self.named).map(|id| format!("  {id}")).unwrap_or_default();
        let mut lines = self.folded(&text, output.width).into_iter();
        let first = lines.next().map(|line| format!("{:1$}{line}", "", 10 - name.len())).unwrap_or_default();
        output.line(format!("{}{first}{}", paint(style, &format!("{time}  {name}")), paint(FAINT, &plain_lines(&id))));
        for line in lines {
            output.line(format!("{:20}{line}", "").trim_end());
        }
    }

    /// What it is called, in which style, and its text; `None`: it is not shown.
    fn shown(&self, kind: &EventKind) -> Option<(&'static str, Style, String)> {
        Some(match kind {
            EventKind::RunStarted { attempt: 1, .. } => ("started", STRONG, String::new()),
            EventKind::RunStarted { attempt, .. } => ("started", STRONG, format!("attempt {attempt}")),
            EventKind::Prompt { text } => ("prompt", FAINT, text.clone()),
            EventKind::Message { text, .. } => ("message", GOOD, text.clone()),
            EventKind::Update { text } => ("report", STRONG, text.clone()),
            EventKind::Note { text } => ("note", STRONG, text.clone()),
            EventKind::RunEnded { outcome, error, retry_at } => {
                let style = if *outcome == RunState::Completed { GOOD } else { BAD };
                let mut text = state(*outcome).replace('_', " ");
                if let Some(error) = error {
                    text.push_str(&format!(": {error}"));
                }
                if let Some(at) = retry_at {
                    text.push_str(&format!("; tried again {}", times::relative(*at, self.view.now)));
                }
                ("ended", style, text)
            }
            EventKind::Delayed { by, until, what } => {
                let until = until.map(|at| format!(", until {}", times::local(at, self.view.now, self.view.zone)));
                let what = what.as_ref().map(|what| format!(": {what}"));
                ("late", WARN, format!("{by}{}{}", what.unwrap_or_default(), until.unwrap_or_default()))
            }
            EventKind::Requested { channel } => ("asked", STRONG, format!("for by you, on {channel}")),
            EventKind::ClockSet { seconds, slept } => ("clock", WARN, clock_set(*seconds, *slept)),
            EventKind::DueMoved { to, .. } => {
                ("moved", STRONG, format!("to {}", times::local(*to, self.view.now, self.view.zone)))
            }
            EventKind::DeliveryRefused { status, why, times } => {
                let times = if *times == 1 { String::new() } else { format!("{times} times, ") };
                ("refused", BAD, format!("{times}{status}: {why}"))
            }
            EventKind::DefinitionChanged => ("changed", FAINT, "its file was written or changed".into()),
            EventKind::DefinitionRemoved => ("removed", FAINT, "its file is gone, or not valid any more".into()),
            EventKind::Problem { file, text } if text.is_empty() => ("mended", GOOD, file.clone()),
            EventKind::Problem { text, .. } => ("problem", BAD, text.clone()),
            EventKind::Letters { text } => ("letters", FAINT, text.clone()),
            EventKind::Cut => ("cut", WARN, "the run said and did more than is recorded".into()),
            EventKind::Observed(seen) => return self.observed(seen),
        })
    }

    fn observed(&self, seen: &Observation) -> Option<(&'static str, Style, String)> {
        Some(match seen {
            Observation::ClientReady { version, model } => {
                let version = version.as_deref().unwrap_or("of an unknown version");
                let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
                ("client", FAINT, format!("claude {version}{model}"))
            }
            Observation::Said { text } => ("said", STRONG, text.clone()),
            Observation::Printed { text } => ("printed", STRONG, text.clone()),
            Observation::ToolCall { tool, input, .. } if self.full => ("call", STRONG, format!("{tool} {input:#}")),
            Observation::ToolCall { tool, input, .. } => ("call", STRONG, call(tool, input)),
            Observation::ToolDecided { allowed: true, .. } => return None,
            Observation::ToolDecided { reason, .. } => ("denied", BAD, reason.clone()),
            Observation::ToolResult { call, bytes, failed } => {
                let failed = if *failed { "failed, " } else { "" };
                let text = self.results.get(call).map(|text| format!("\n{text}")).unwrap_or_default();
                ("result", FAINT, format!("{failed}{}{text}", ByteSize(*bytes as u64)))
            }
            Observation::Compacted { before, after } => ("compacted", FAINT, agent::compacted(*before, *after)),
            Observation::ApiRetry { fault } => ("retry", WARN, format!("{fault}; the client tries again")),
        })
    }

    /// A text in lines that fit the terminal.
    fn folded(&self, text: &str, width: Option<usize>) -> Vec<String> {
        let text = plain_lines(text.trim());
        let width = width.map_or(usize::MAX, |width| width.saturating_sub(21).max(20));
        let shown = text.lines().filter(|line| self.full || !line.trim().is_empty());
        let mut lines: Vec<String> = shown.flat_map(|line| wrapped(line, width)).collect();
        if !self.full && lines.len() > FOLDED_LINES {
            let more = lines.len() - FOLDED_LINES;
            lines.truncate(FOLDED_LINES);
            lines.push(paint(FAINT, &format!("… {more} more lines")));
        }
        lines
    }
}

/// `it was set back by 1h`.
fn clock_set(seconds: i64, slept: bool) -> String {
    let span = times::span(TimeDelta::seconds(seconds));
    match (slept, seconds < 0) {
        (true, _) => format!("the machine slept for {span}"),
        (false, true) => format!("it was set back by {span}"),
        (false, false) => format!("it was set forward by {span}"),
    }
}

/// A line in pieces of at most `width` characters, broken between words where there are some.
pub(super) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((limit, next)) = rest.char_indices().nth(width) {
        let end = if next == ' ' { Some(limit) } else { rest[..limit].rfind(' ').filter(|end| *end > 0) };
        let end = end.unwrap_or(limit);
        pieces.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    pieces.push(rest.to_owned());
    pieces
}

/// An event with its time in the zone of records.
pub(super) fn as_json(event: &Event, view: &View) -> Value {
    let mut value = json!(event);
    value["at"] = json!(times::rfc3339(event.at, view.zone));
    value
}

/// What a run took, in one line: `$0.0042, 1,200 tokens read, 340 written`.
pub(super) fn taken(cost: Option<f64>, tokens: Option<crate::agent::Tokens>) -> String {
    let cost = cost.map(money);
    let tokens = tokens.map(|tokens| {
        format!(
            "{} tokens read afresh, {} from the cache, {} written to it, {} written",
            grouped(tokens.input),
            grouped(tokens.cache_read),
            grouped(tokens.cache_write),
            grouped(tokens.output)
        )
    });
    cost.into_iter().chain(tokens).collect::<Vec<_>>().join("; ")
}

/// `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
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
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1023, 1024, 1536].map(|bytes| ByteSize(bytes).to_string()),
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]
        );
    }
}
