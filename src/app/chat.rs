//! Talks with the bot.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{App, ChildSession, Events, ServiceCommand, ServiceReply, runs, service, sessions, unexpected_reply};
use crate::bot::main_session::NO_ANSWER;
use crate::config::TERMINAL;
use crate::definition::DefinitionId;
use crate::journal::{EventFilter, Message, RunId, SessionRecord};
use crate::refusal::Refusal;
use crate::run::forks::{FORK_BEGINS, WRITE_REPORT};

/// Maximum wait until a message is recorded as delivered, and the interval of checking.
const TAKES: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Number of a run's newest messages among which one is looked up.
const MAX_ASIDES: u32 = 100;

/// A message of the person, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// The turn.
    pub turn: DefinitionId,
    /// Time of the person's message.
    pub at: DateTime<Utc>,
    /// The person's message.
    pub said: String,
    /// Whether it was said in a fork.
    pub in_fork: bool,
    /// The answer; `None` if the turn failed or is not over.
    pub answer: Option<String>,
    /// The error, if the turn failed.
    pub error: Option<String>,
}

impl App {
    /// Follows events from now on, for a person at a terminal. Answers come to that terminal while the iterator exists.
    ///
    /// # Errors
    /// If the service is not running, or cannot be reached.
    pub fn open_chat(&self) -> Result<Events, Refusal> {
        self.require_person()?;
        let after = runs::open(self)?.newest_event()?;
        let filter = EventFilter { chat: true, ..EventFilter::default() };
        self.service.follow(Some(after), filter)?.ok_or_else(|| service::not_running(self))
    }

    /// Sends the person's message from a terminal. Returns the turn that answers it.
    ///
    /// # Errors
    /// The reason why the service did not accept it.
    pub fn say(&self, text: &str) -> Result<DefinitionId, Refusal> {
        self.require_person()?;
        let command = ServiceCommand::Say { text: text.to_owned(), channel: Some(TERMINAL.to_owned()) };
        match service::ask(command, self)? {
            ServiceReply::Heard { turn } => Ok(turn),
            other => Err(Refusal::environment(format!("the service gave another answer: {other:?}"))),
        }
    }

    /// Opens a fork of the conversation from a terminal. Returns the turn that answers the topic, if one is given.
    ///
    /// # Errors
    /// The reason why the service did not open it.
    pub fn open_fork(&self, topic: &str) -> Result<Option<DefinitionId>, Refusal> {
        self.require_person()?;
        let topic = Some(topic.trim().to_owned()).filter(|topic| !topic.is_empty());
        match service::ask(ServiceCommand::OpenFork { topic, channel: TERMINAL.to_owned() }, self)? {
            ServiceReply::ForkOpened { turn, .. } => Ok(turn),
            _ => Err(unexpected_reply()),
        }
    }

    /// Returns a message that a turn sent besides its answer: a question, or a message that its agent sent by a tool.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn side_message(&self, run: &RunId, message: i64) -> Result<Option<Message>, Refusal> {
        let messages = runs::open(self)?.messages_of(run, MAX_ASIDES)?;
        Ok(messages.into_iter().find(|one| one.number == message && one.answers().is_none()))
    }

    /// Waits a short time until a message is delivered.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn wait_until_delivered(&self, message: i64) -> Result<(), Refusal> {
        let journal = runs::open(self)?;
        let end = Instant::now() + TAKES;
        while Instant::now() < end && !journal.is_delivered(message)? {
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns the last `count` exchanges, oldest first.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn exchanges(&self, count: usize) -> Result<Vec<Exchange>, Refusal> {
        self.require_person()?;
        let turns = runs::open(self)?.sessions()?.into_iter().filter(|record| record.id.is_turn());
        let exchange = |record| {
            let ChildSession { record, definition } = sessions::child(record, self);
            let body = definition.map(|definition| definition.body).unwrap_or_default();
            let body = body.trim();
            let SessionRecord { id: turn, created: at, error, ended, fork, .. } = record;
            let answer = record.answer.filter(|answer| !answer.trim().is_empty());
            let is_silent = ended && error.is_none();
            Exchange {
                turn,
                at,
                said: body.strip_prefix(FORK_BEGINS).unwrap_or(body).to_owned(),
                in_fork: fork.is_some(),
                answer: answer.or_else(|| is_silent.then(|| NO_ANSWER.to_owned())),
                error,
            }
        };
        // The service itself asks a fork for its report.
        let by_person = |exchange: &Exchange| exchange.said != WRITE_REPORT;
        let mut exchanges: Vec<Exchange> = turns.map(exchange).filter(by_person).take(count).collect();
        exchanges.reverse();
        Ok(exchanges)
    }
}
