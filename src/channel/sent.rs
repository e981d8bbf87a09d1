//! What a channel has sent of a message so far. A message that is too long for the channel's service is several there, and each is
//! recorded before the next one is sent: whoever goes on with it, this process or a later one, sends none of them again.

use super::NotSent;
use crate::journal::{Journal, Waiting};

/// What was sent of a message, and where that is recorded.
#[derive(Default)]
pub struct Sent {
    /// What the service calls each part.
    parts: Vec<String>,
    /// What it calls the message that shows the turn whose answer this is.
    status: Option<String>,
    record: Option<Record>,
}

struct Record {
    journal: Journal,
    channel: String,
    numbers: Vec<i64>,
}

impl Sent {
    /// Of messages that wait for a channel, and are sent as one. What was sent of others together is nothing of these.
    pub(super) fn of(waiting: &[&Waiting], channel: &str, journal: &Journal) -> Self {
        let first = waiting.first().and_then(|one| one.sent.clone());
        let before = first.filter(|sent| waiting.iter().all(|one| one.sent.as_ref() == Some(sent)));
        let parts = before.iter().flat_map(|sent| sent.split(' ')).map(str::to_owned).collect();
        let status = waiting.first().and_then(|one| one.status.clone());
        let numbers = waiting.iter().map(|one| one.message.number).collect();
        let record = Record { journal: journal.clone(), channel: channel.to_owned(), numbers };
        Self { parts, status, record: Some(record) }
    }

    /// Of an answer to a turn that this message shows.
    #[cfg(test)]
    pub(super) fn after(status: String) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// How many parts were sent.
    pub(super) fn count(&self) -> usize {
        self.parts.len()
    }

    /// What the service calls the message that shows the turn whose answer this is.
    pub(super) fn status(&self) -> Option<&str> {
        self.status.as_deref()
    }

    /// A further part was sent. The last one is recorded with the delivery.
    pub(super) async fn add(&mut self, part: String, is_last: bool) -> Result<(), NotSent> {
        self.parts.push(part);
        let Some(record) = self.record.as_ref().filter(|_| !is_last) else { return Ok(()) };
        fail_point!(PartSent);
        let recorded = record.journal.sent_in_part(&record.channel, &record.numbers, self.name()).await;
        fail_point!(PartRecorded);
        recorded.map_err(|error| NotSent::for_now(format!("that a part of it was sent cannot be recorded: {error}")))
    }

    /// The name of the whole: those of the parts, with blanks between. The journal finds the message by each of them.
    pub(super) fn name(&self) -> String {
        self.parts.join(" ")
    }
}

/// The last part of a message of this name, which has the buttons. `None`: it is the name of another service's message.
pub(super) fn last_part<T: std::str::FromStr>(name: &str) -> Option<T> {
    name.rsplit(' ').next()?.parse().ok()
}
