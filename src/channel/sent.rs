//! The sent parts of a message. A message that is too long for the service is sent in several parts. Each part is recorded before the next
//! one is sent, so that a retry, by this process or a later one, sends no part again.

use super::SendError;
use crate::journal::{Journal, Waiting};

/// The parts of a message that were sent, with their record in the journal.
#[derive(Default)]
pub struct SentParts {
    /// The service's ids of the parts.
    parts: Vec<String>,
    /// The service's id of the status message of the turn that this message answers.
    status: Option<String>,
    record: Option<Record>,
}

struct Record {
    journal: Journal,
    channel: String,
    numbers: Vec<i64>,
}

impl SentParts {
    /// Reads the sent parts of messages that are sent as one. Parts that were sent of another combination do not count.
    pub(super) fn of(waiting: &[&Waiting], channel: &str, journal: &Journal) -> Self {
        let first = waiting.first().and_then(|one| one.sent.clone());
        let before = first.filter(|sent| waiting.iter().all(|one| one.sent.as_ref() == Some(sent)));
        let parts = before.iter().flat_map(|sent| sent.split(' ')).map(str::to_owned).collect();
        let status = waiting.first().and_then(|one| one.status.clone());
        let numbers = waiting.iter().map(|one| one.message.number).collect();
        let record = Record { journal: journal.clone(), channel: channel.to_owned(), numbers };
        Self { parts, status, record: Some(record) }
    }

    /// Creates the record of an answer to a turn that has this status message.
    #[cfg(test)]
    pub(super) fn after(status: String) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Returns the number of parts sent.
    pub(super) fn count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the service's id of the status message of the turn that this message answers.
    pub(super) fn status(&self) -> Option<&str> {
        self.status.as_deref()
    }

    /// Adds a sent part and records it. The last part is recorded with the delivery.
    pub(super) async fn add(&mut self, part: String, is_last: bool) -> Result<(), SendError> {
        self.parts.push(part);
        let Some(record) = self.record.as_ref().filter(|_| !is_last) else { return Ok(()) };
        fail_point!(PartSent);
        let recorded = record.journal.sent_in_part(&record.channel, &record.numbers, self.name()).await;
        fail_point!(PartRecorded);
        recorded
            .map_err(|error| SendError::temporary(format!("that a part of it was sent cannot be recorded: {error}")))
    }

    /// Returns the ids of the parts, joined by blanks. The journal finds the message by each of them.
    pub(super) fn name(&self) -> String {
        self.parts.join(" ")
    }
}

/// Parses the id of a message's last part, which has the buttons. Returns `None` if it is an id of another service.
pub(super) fn last_part<T: std::str::FromStr>(name: &str) -> Option<T> {
    name.rsplit(' ').next()?.parse().ok()
}
