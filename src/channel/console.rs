//! The console: what the bot says appears in the terminal of `ollim-bot run`.

use std::io::{self, Write};

use chrono_tz::Tz;

use super::terminal;
use crate::journal::Message;

/// Writes one message: when it was said, and the text, further lines indented below the first.
///
/// # Errors
/// When it cannot be written: it is then not delivered.
pub fn show(message: &Message, zone: Tz, out: &mut impl Write) -> io::Result<()> {
    let time = message.at.with_timezone(&zone).format("%a %H:%M").to_string();
    let mut lines = String::new();
    for (number, line) in terminal::plain_lines(message.text.trim()).lines().enumerate() {
        let margin = if number == 0 { format!("{time}  ") } else { " ".repeat(time.len() + 2) };
        lines.push_str(margin.trim_end_matches(|_| line.is_empty()));
        lines.push_str(line);
        lines.push('\n');
    }
    out.write_all(lines.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_stand_below_the_first() {
        let message = Message {
            number: 1,
            at: "2026-11-21T12:56:00Z".parse().unwrap(),
            run: None,
            id: None,
            text: "Tea\u{7} is ready.\n\nTwo cups.\n".into(),
            delivered: None,
        };
        let mut out = Vec::new();
        show(&message, chrono_tz::Europe::Berlin, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Sat 13:56  Tea is ready.\n\n           Two cups.\n");
    }
}
