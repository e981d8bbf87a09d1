//! Renders upcoming occurrences as a calendar (RFC 5545).

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use super::View;
use crate::app::{Occurrence, Upcoming};
use crate::cli::output::Output;

/// Maximum length of a line without its line end, in octets.
const LONGEST: usize = 75;

/// Renders one event for each occurrence. With `--json` the calendar is one string.
pub(super) fn calendar(upcoming: &Upcoming, view: &View, output: &mut Output) {
    let text = text(&upcoming.occurrences, view.now);
    if upcoming.left_out > 0 {
        let (events, until) =
            (upcoming.occurrences.len(), upcoming.occurrences.last().map(|last| view.moment(last.at)));
        let until = until.map(|until| format!(", until {until}")).unwrap_or_default();
        output.note(format!("the calendar has the first {events} occurrences{until}; `--days` asks for fewer days"));
    }
    if view.json {
        output.json(&serde_json::json!({ "ics": text }));
    } else {
        output.stdout.push_str(&text);
    }
}

fn text(occurrences: &[Occurrence], now: DateTime<Utc>) -> String {
    let mut calendar = Calendar::default();
    calendar.line("BEGIN:VCALENDAR");
    calendar.line("VERSION:2.0");
    calendar.line("PRODID:-//ollim-bot//ollim-bot//EN");
    calendar.line("X-WR-CALNAME:ollim-bot");
    for Occurrence { at, definition, .. } in occurrences {
        let (id, description) = (definition.id.as_str(), definition.description.trim());
        let summary = if description.is_empty() { definition.title() } else { description.to_owned() };
        let body = definition.body.trim();
        calendar.line("BEGIN:VEVENT");
        calendar.line(&format!("UID:{}-{}@ollim-bot", escaped(id), utc(*at)));
        calendar.line(&format!("DTSTAMP:{}", utc(now)));
        calendar.line(&format!("DTSTART:{}", utc(*at)));
        calendar.line(&format!("SUMMARY:{}", escaped(&summary)));
        calendar.line(&format!("DESCRIPTION:{}", escaped(&format!("{}\n\n{body}", definition.title()))));
        calendar.line("TRANSP:TRANSPARENT");
        calendar.line("END:VEVENT");
    }
    calendar.line("END:VCALENDAR");
    calendar.0
}

fn utc(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Escapes a value of type TEXT. Drops control characters, which are not allowed in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.replace("\r\n", "\n").chars() {
        match letter {
            '\\' | ';' | ',' => escaped.extend(['\\', letter]),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push(' '),
            _ if letter.is_control() => {}
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[derive(Default)]
struct Calendar(String);

impl Calendar {
    /// Writes one content line, folded between characters.
    fn line(&mut self, line: &str) {
        let mut length = 0;
        for letter in line.chars() {
            if length + letter.len_utf8() > LONGEST {
                self.0.push_str("\r\n ");
                length = 1;
            }
            let _ = self.0.write_char(letter);
            length += letter.len_utf8();
        }
        self.0.push_str("\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No line is too long, each has the right end, and unfolding restores the input.
        #[test]
        fn a_line_is_folded_and_unfolds(line in "[ -~äé🍵]{0,300}") {
            let mut calendar = Calendar::default();
            calendar.line(&line);
            let folded = calendar.0.strip_suffix("\r\n").unwrap().to_owned();
            prop_assert!(folded.split("\r\n").all(|part| part.len() <= LONGEST));
            prop_assert_eq!(folded.replace("\r\n ", ""), line);
        }
    }

    #[test]
    fn text_is_escaped() {
        for (text, expected) in
            [("a, b; c\\d", "a\\, b\\; c\\\\d"), ("one\r\ntwo\n", "one\\ntwo\\n"), ("\u{1b}[1mx\t", "[1mx ")]
        {
            assert_eq!(escaped(text), expected);
        }
    }
}
