//! The console: what the bot says appears in the terminal of `ollim-bot run`.

use std::io::{self, Write};

use async_trait::async_trait;
use chrono_tz::Tz;

use super::{Channel, NotSent, Outgoing, Sent, terminal};

/// This process's standard output.
pub struct Console<Z> {
    /// The zone of the times shown.
    pub zone: Z,
}

#[async_trait]
impl<Z: Fn() -> Tz + Send + Sync> Channel for Console<Z> {
    async fn send(&self, message: &Outgoing, _sent: &mut Sent) -> Result<Option<String>, NotSent> {
        let (message, zone) = (message.clone(), (self.zone)());
        // A terminal that is stopped blocks its writer: it must not hold up the service's other work.
        let shown = tokio::task::spawn_blocking(move || show(&message, zone, &mut io::stdout().lock())).await;
        let failed = |error| NotSent::for_now(format!("the terminal cannot be written to: {error}"));
        shown.map_err(io::Error::other).and_then(|shown| shown).map_err(failed).map(|()| None)
    }
}

/// Standard output that shows events, messages among them.
pub struct Silent;

#[async_trait]
impl Channel for Silent {
    async fn send(&self, _message: &Outgoing, _sent: &mut Sent) -> Result<Option<String>, NotSent> {
        Ok(None)
    }
}

/// Writes one message: when it was said, and the text, further lines indented below the first.
fn show(message: &Outgoing, zone: Tz, out: &mut impl Write) -> io::Result<()> {
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
    use crate::definition::Urgency;

    #[test]
    fn further_lines_stand_below_the_first() {
        let message = Outgoing {
            number: 1,
            at: "2026-11-21T12:56:00Z".parse().unwrap(),
            run: None,
            job: None,
            title: None,
            text: "Tea\u{7} is ready.\n\nTwo cups.\n".into(),
            urgency: Urgency::Normal,
            buttons: Vec::new(),
            asks: false,
            answers: None,
            reply_to: None,
            rich: None,
        };
        let mut out = Vec::new();
        show(&message, chrono_tz::Europe::Berlin, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Sat 13:56  Tea is ready.\n\n           Two cups.\n");
    }
}
