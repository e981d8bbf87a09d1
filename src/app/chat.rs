//! Talking with the bot.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{App, Events, ServiceCommand, ServiceReply, runs, service, sessions};
use crate::config::TERMINAL;
use crate::definition::DefinitionId;
use crate::journal::{EventFilter, Message, RunId};
use crate::refusal::Refusal;

/// How long a message may take to be recorded as delivered, and how often that is looked at.
const TAKES: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The newest messages of a run among which one is looked for.
const MOST_ASIDES: u32 = 100;

/// What the person said once, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// The turn.
    pub turn: DefinitionId,
    /// When it was said.
    pub at: DateTime<Utc>,
    /// What was said.
    pub said: String,
    /// The answer; `None`: there is none, or none yet.
    pub answer: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
}

impl App {
    /// What happens from now on, for a person at a terminal: as long as it is kept, answers come there.
    ///
    /// # Errors
    /// When the service does not run or cannot be asked.
    pub fn open_chat(&self) -> Result<Events, Refusal> {
        self.require_person()?;
        let after = runs::open(self)?.newest_event()?;
        let filter = EventFilter { chat: true, ..EventFilter::default() };
        self.service.follow(Some(after), filter)?.ok_or_else(service::not_running)
    }

    /// Says something at a terminal. The turn that answers it.
    ///
    /// # Errors
    /// Why the service did not take it.
    pub fn say(&self, text: &str) -> Result<DefinitionId, Refusal> {
        self.require_person()?;
        let command = ServiceCommand::Say { text: text.to_owned(), channel: Some(TERMINAL.to_owned()) };
        match service::ask(command, self)? {
            ServiceReply::Heard { turn } => Ok(turn),
            other => Err(Refusal::environment(format!("the service gave another answer: {other:?}"))),
        }
    }

    /// A message that a turn has sent beside its answer: a question, or what its agent has sent by a tool.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn aside(&self, run: &RunId, message: i64) -> Result<Option<Message>, Refusal> {
        let messages = runs::open(self)?.messages_of(run, MOST_ASIDES)?;
        Ok(messages.into_iter().find(|one| one.number == message && one.answers().is_none()))
    }

    /// Waits until a message is delivered, for a little while.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn until_delivered(&self, message: i64) -> Result<(), Refusal> {
        let journal = runs::open(self)?;
        let end = Instant::now() + TAKES;
        while Instant::now() < end && !journal.is_delivered(message)? {
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// The last `count` exchanges, the oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn exchanges(&self, count: usize) -> Result<Vec<Exchange>, Refusal> {
        self.require_person()?;
        let turns = runs::open(self)?.sessions()?.into_iter().filter(|record| record.id.is_turn()).take(count);
        let exchange = |record| {
            let turn = sessions::child(record, self);
            let said = turn.definition.map(|definition| definition.body.trim().to_owned()).unwrap_or_default();
            let record = turn.record;
            Exchange { turn: record.id, at: record.created, said, answer: record.answer, error: record.error }
        };
        let mut exchanges: Vec<Exchange> = turns.map(exchange).collect();
        exchanges.reverse();
        Ok(exchanges)
    }
}
