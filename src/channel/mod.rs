//! Delivery of the bot's messages to the person.
//!
//! The journal's outbox is the only record: a message stays there until a channel has accepted it, and an undeliverable message is shown
//! as such. [`Deliveries`] chooses channels and runs one worker for each. A [`Channel`] sends one message and reports the outcome. This
//! module knows messages, not runs.

mod backoff;
mod buttons;
pub mod command;
pub mod commands;
pub mod console;
mod deliveries;
mod digest;
pub mod discord;
mod incoming;
mod listening;
pub mod mail;
pub mod ntfy;
mod permanent_failure;
pub mod probe;
mod progress;
mod sent;
mod split;
mod status;
pub mod telegram;
pub mod terminal;
mod terminal_chat;
#[cfg(test)]
mod tests;
mod worker;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::definition::{DefinitionId, Urgency};
use crate::journal::{Button, Message, RichContent, RunId};
use terminal::{plain, plain_lines};

pub use buttons::{ButtonRemoval, ButtonRemovals};
pub use deliveries::Deliveries;
pub use incoming::{Deaf, Inbound, IncomingEvent, IncomingHandler, IncomingMessage, Progress, ReceivedFile, Response};
pub use listening::listen;
pub use progress::{INTERRUPT, interrupts};
pub use sent::SentParts;
pub use terminal_chat::{OpenChat, OpenChats};

/// A way to reach the person.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Sends one message. Returns the service's id of the sent message, if the service reports one.
    ///
    /// The same message, with the same number, may arrive twice if the program was killed before it recorded the first delivery. `sent`
    /// holds the parts of it that were already sent.
    async fn send(&self, message: &Outgoing, sent: &mut SentParts) -> Result<Option<String>, SendError>;

    /// Passes incoming messages to `inbound` until the future is dropped. By default a channel receives nothing.
    async fn listen(&self, _ear: Inbound) {
        std::future::pending().await
    }

    /// Whether the person can type commands by this channel, such as `/resume`.
    fn takes_commands(&self) -> bool {
        false
    }

    /// Completes with a reason when the channel cannot work again before the service restarts. By default never.
    async fn permanent_failure(&self) -> String {
        std::future::pending().await
    }

    /// Removes the buttons from a sent message and shows their outcome. `external` is the id that [`send`](Self::send) returned for it. By
    /// default a channel cannot change a sent message.
    async fn remove_buttons(&self, _external: &str, _message: &Outgoing, _outcome: &str) -> Result<(), SendError> {
        Ok(())
    }

    /// Removes the status message of a turn that ended and whose answer is not delivered here. `external` is the service's id of that
    /// message. By default a channel shows no status messages.
    async fn remove_status(&self, _turn: &DefinitionId, _external: &str) -> Result<(), SendError> {
        Ok(())
    }
}

/// The reason why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SendError {
    /// Description of the failure.
    pub why: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

impl SendError {
    /// Creates a temporary failure: a retry may succeed.
    pub fn temporary(why: impl Into<String>) -> Self {
        Self { why: why.into(), retryable: true }
    }
}

/// A message as a channel sends it. It may combine several messages of the journal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outgoing {
    /// Number of the message; the newest number if several are combined.
    pub number: i64,
    /// Time at which it was recorded.
    pub at: DateTime<Utc>,
    /// Definition whose run sent it.
    pub job: Option<DefinitionId>,
    /// Run that sent it.
    pub run: Option<RunId>,
    /// Title, if any.
    pub title: Option<String>,
    /// Text. It includes the title and the fields.
    pub text: String,
    /// Urgency of the message.
    pub urgency: Urgency,
    /// Buttons below the message.
    pub buttons: Vec<OutgoingButton>,
    /// The service's id of the message that this one replies to.
    pub reply_to: Option<String>,
    /// Whether it, or one of the combined messages, asks the person a question.
    #[serde(skip)]
    pub asks: bool,
    /// Turn that this message answers. It replaces that turn's status message.
    #[serde(skip)]
    pub answers: Option<DefinitionId>,
    /// The same content for channels that can show more than text.
    #[serde(skip)]
    pub rich: Option<RichContent>,
}

/// A button below a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutgoingButton {
    /// Id that the channel returns when the button is pressed.
    pub id: String,
    /// Label of the button.
    pub label: String,
}

impl Outgoing {
    /// Returns a message of the service that is nothing but text.
    #[must_use]
    pub fn plain(number: i64, at: DateTime<Utc>, text: impl Into<String>) -> Self {
        Self {
            number,
            at,
            job: None,
            run: None,
            title: None,
            text: text.into(),
            urgency: Urgency::Normal,
            buttons: Vec::new(),
            reply_to: None,
            asks: false,
            answers: None,
            rich: None,
        }
    }

    /// Returns a message as this channel sends it. Where the person can type commands, the service's own texts name those.
    pub fn on(channel: &dyn Channel, message: &Message) -> Self {
        let mut outgoing = Self::from(message);
        if !channel.takes_commands() || !(outgoing.asks || is_of_service(message)) {
            return outgoing;
        }
        // The call of a question is shown as it is. Its last line tells how to answer.
        let own = if outgoing.asks { outgoing.text.rfind('\n').unwrap_or_default() } else { 0 };
        let typed = commands::as_typed(&outgoing.text[own..]);
        outgoing.text.truncate(own);
        outgoing.text.push_str(&typed);
        outgoing
    }
}

/// The end of the text that stands for a question that is over.
const QUESTIONS_SHOW_IT: &str = "`ollim-bot questions` shows it.";

/// Whether the service wrote the text. What it says of a run begins with the job's name; what a run itself says does not.
fn is_of_service(message: &Message) -> bool {
    let Some(id) = message.id.as_ref().filter(|_| message.run.is_some()) else { return true };
    if message.text.starts_with("Question ") && message.text.ends_with(QUESTIONS_SHOW_IT) {
        return true;
    }
    ["routine", "reminder", "webhook"].iter().any(|kind| message.text.starts_with(&format!("{kind} {id} ")))
}

impl From<&Message> for Outgoing {
    /// Removes terminal control and text direction characters from an agent's text, for every channel.
    fn from(message: &Message) -> Self {
        let rich = message.rich.as_ref();
        let buttons = rich.map(|rich| rich.buttons.as_slice()).unwrap_or_default();
        let button = |(place, button): (usize, &Button)| OutgoingButton {
            id: format!("{}:{place}", message.number),
            label: plain(&button.label),
        };
        let title = rich.map(|rich| plain(&rich.title)).filter(|title| !title.is_empty());
        Self {
            number: message.number,
            at: message.at,
            job: message.id.clone(),
            run: message.run.clone(),
            title,
            text: plain_lines(&message.text),
            urgency: message.urgency,
            buttons: buttons.iter().enumerate().map(button).collect(),
            asks: message.question().is_some(),
            answers: message.answers().cloned(),
            rich: message.rich.clone().map(sanitized),
            reply_to: None,
        }
    }
}

fn sanitized(rich: RichContent) -> RichContent {
    let field = |(name, value): (String, String)| (plain(&name), plain_lines(&value));
    let button = |button: Button| Button { label: plain(&button.label), ..button };
    RichContent {
        title: plain(&rich.title),
        description: plain_lines(&rich.description),
        color: rich.color,
        fields: rich.fields.into_iter().map(field).collect(),
        buttons: rich.buttons.into_iter().map(button).collect(),
        footer: plain(&rich.footer),
    }
}
