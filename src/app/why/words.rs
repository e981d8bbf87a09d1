//! Formats times and reasons for one line on a phone.

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use chrono_tz::Tz;

use super::super::times;

/// Maximum length of a reason, in characters.
const LONGEST: usize = 160;

/// Formats `at 08:00`, `yesterday at 08:00`, `on Mon 23 Nov at 08:00`.
pub(super) fn moment(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let (there, today) = (at.with_timezone(&zone), now.with_timezone(&zone).date_naive());
    let day = there.date_naive();
    let day = match (day - today).num_days() {
        0 => String::new(),
        -1 => "yesterday ".to_owned(),
        1 => "tomorrow ".to_owned(),
        _ if day.year() == today.year() => there.format("on %a %-d %b ").to_string(),
        _ => there.format("on %a %-d %b %Y ").to_string(),
    };
    format!("{day}at {}", there.format("%H:%M"))
}

/// Formats `08:00`, with the day unless it is today.
pub(super) fn bare(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let said = moment(at, now, zone);
    said.strip_prefix("at ").or(said.strip_prefix("on ")).map(str::to_owned).unwrap_or(said)
}

/// Formats `1h 12m`.
pub(super) fn span(span: TimeDelta) -> String {
    times::span(span)
}

/// Returns the first line of a reason, without a full stop.
pub(super) fn reason(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason is recorded");
    let line = line.trim_end_matches(['.', ' ']);
    let Some((end, _)) = line.char_indices().nth(LONGEST) else { return line.to_owned() };
    // No word is cut, unless it is as long as a text.
    let words = line[..end].rfind(' ').filter(|space| *space > end / 2 && !line[end..].starts_with(' '));
    let cut = line[..words.unwrap_or(end)].trim_end();
    let code = if cut.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{cut}…{code}")
}

/// Formats `second`, `4th`.
pub(super) fn ordinal(number: u32) -> String {
    match number {
        1 => "first".into(),
        2 => "second".into(),
        3 => "third".into(),
        _ => format!("{number}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_words() {
        let cut = |text: &str| reason(&format!("{text} {}", "y".repeat(200)));
        assert_eq!(reason("one.\ntwo"), "one");
        assert_eq!(cut(&"word ".repeat(30)), format!("{}…", "word ".repeat(30).trim_end()));
        assert_eq!(cut(&format!("`{}", "word ".repeat(30))), format!("`{}…`", "word ".repeat(30).trim_end()));
        assert_eq!(reason(&"z".repeat(200)), format!("{}…", "z".repeat(LONGEST)));
        assert_eq!(reason(&format!("{} b", "a".repeat(LONGEST))), format!("{}…", "a".repeat(LONGEST)));
    }

    #[test]
    fn a_time_stands_behind_any_word() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let now = at("2026-11-25T12:00:00Z");
        for (text, moment_is, bare_is) in [
            ("2026-11-25T08:00:00Z", "at 08:00", "08:00"),
            ("2026-11-26T08:00:00Z", "tomorrow at 08:00", "tomorrow at 08:00"),
            ("2027-05-01T08:00:00Z", "on Sat 1 May 2027 at 08:00", "Sat 1 May 2027 at 08:00"),
        ] {
            assert_eq!(moment(at(text), now, Tz::UTC), moment_is);
            assert_eq!(bare(at(text), now, Tz::UTC), bare_is);
        }
    }
}
