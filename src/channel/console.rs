//! The console channel: shows messages in the terminal of `ollim-bot run`.

use std::io::{self, Write};

use async_trait::async_trait;
use chrono_tz::Tz;

use super::{Channel, Outgoing, SendError, SentParts, terminal};

/// The standard output of this process.
pub struct Console<Z> {
    /// Returns the time zone of the displayed times.
    pub zone: Z,
}

#[async_trait]
impl<Z: Fn() -> Tz + Send + Sync> Channel for Console<Z> {
    async fn send(&self, message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        let (message, zone, width) = (message.clone(), (self.zone)(), terminal::width(io::stdout()));
        // A write to a stopped terminal blocks. It must not block the service's other work.
        let shown = tokio::task::spawn_blocking(move || show(&message, zone, width, &mut io::stdout().lock())).await;
        let failed = |error| SendError::temporary(format!("the terminal cannot be written to: {error}"));
        shown.map_err(io::Error::other).and_then(|shown| shown).map_err(failed).map(|()| None)
    }
}

/// A console channel that writes nothing, because standard output shows events, which include the messages.
pub struct SilentConsole;

#[async_trait]
impl Channel for SilentConsole {
    async fn send(&self, _message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        Ok(None)
    }
}

/// Minimum width of a text, in characters.
const SHORTEST: usize = 20;

/// Writes the time and text of one message, in lines of at most `width` characters. Further lines are indented below the first.
fn show(message: &Outgoing, zone: Tz, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let time = message.at.with_timezone(&zone).format("%a %H:%M").to_string();
    let mut lines = String::new();
    let width = width.map_or(usize::MAX, |width| width.saturating_sub(time.len() + 2).max(SHORTEST));
    let text = terminal::plain_lines(message.text.trim());
    for (number, line) in text.lines().flat_map(|line| terminal::wrapped(line, width)).enumerate() {
        let margin = if number == 0 { format!("{time}  ") } else { " ".repeat(time.len() + 2) };
        lines.push_str(margin.trim_end_matches(|_| line.is_empty()));
        lines.push_str(&line);
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
        let at = "2026-11-21T12:56:00Z".parse().unwrap();
        let message = Outgoing::plain(1, at, "Tea\u{7} is ready.\n\nTwo cups.\n");
        let mut out = Vec::new();
        show(&message, chrono_tz::Europe::Berlin, None, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Sat 13:56  Tea is ready.\n\n           Two cups.\n");
        let long = Outgoing { text: "The tea is ready in the kitchen.".into(), ..message };
        let mut out = Vec::new();
        show(&long, chrono_tz::Europe::Berlin, Some(32), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Sat 13:56  The tea is ready in\n           the kitchen.\n");
    }
}
