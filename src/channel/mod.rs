//! How the bot's words reach the person.
//!
//! The journal's outbox is the only truth: a message stays there until a channel has taken it, and what could not be delivered is
//! shown. [`Deliveries`] chooses channels and runs one worker for each; a [`Channel`] sends one message and says what became of
//! it. Knows messages, not runs.

pub mod command;
pub mod commands;
pub mod console;
mod deliveries;
mod digest;
pub mod discord;
mod hearing;
mod lost;
pub mod mail;
pub mod ntfy;
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
use crate::journal::{Button, Message, Rich, RunId};
use terminal::{plain, plain_lines};

pub use deliveries::Deliveries;
pub use hearing::{Ear, Heard, Hearing, Progress, ReceivedFile, Response, Said};
pub use progress::INTERRUPT;
pub use sent::Sent;
pub use terminal_chat::{OpenChat, OpenChats};

/// A way to reach the person.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Sends one message. Returns what the channel's service calls it, where it says so.
    ///
    /// A message may come a second time, with the same number, when the program was killed before it could record the first. `sent`:
    /// which parts of it were.
    async fn send(&self, message: &Outgoing, sent: &mut Sent) -> Result<Option<String>, NotSent>;

    /// Hands to `ear` what comes in, until the future is dropped. The default: nothing comes in by this channel.
    async fn listen(&self, _ear: Ear) {
        std::future::pending().await
    }

    /// Ends when the channel will not work again before the service is started anew, and says why. The default: never.
    async fn lost(&self) -> String {
        std::future::pending().await
    }

    /// Takes the buttons from a message that was sent, and shows what came of them. `external`: what [`send`](Self::send)
    /// returned for it. The default: the channel cannot change what it has sent.
    async fn settle(&self, _external: &str, _message: &Outgoing, _outcome: &str) -> Result<(), NotSent> {
        Ok(())
    }

    /// Takes away what shows a turn that is over, and whose answer does not come here. `external`: what the service calls that
    /// message. The default: the channel shows none.
    async fn hide(&self, _turn: &DefinitionId, _external: &str) -> Result<(), NotSent> {
        Ok(())
    }
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotSent {
    /// What went wrong.
    pub why: String,
    /// Whether the same may work later.
    pub again: bool,
}

impl NotSent {
    /// It may work later.
    pub fn for_now(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: true }
    }
}

/// What a channel is to send: a message, or several as one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outgoing {
    /// The message's number; the newest, where it is several.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// Whose run it comes from.
    pub job: Option<DefinitionId>,
    /// The run that it comes from.
    pub run: Option<RunId>,
    /// The title, where it has one.
    pub title: Option<String>,
    /// The text; the title and the fields stand in it too.
    pub text: String,
    /// How much it matters.
    pub urgency: Urgency,
    /// Buttons below it.
    pub buttons: Vec<OutgoingButton>,
    /// What the channel's service calls the message that it answers.
    pub reply_to: Option<String>,
    /// Whether it, or one of those that it is made of, asks the person a question.
    #[serde(skip)]
    pub asks: bool,
    /// The turn whose answer it is: what shows that turn becomes this message.
    #[serde(skip)]
    pub answers: Option<DefinitionId>,
    /// The same for channels that can show more than text.
    #[serde(skip)]
    pub rich: Option<Rich>,
}

/// A button below a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutgoingButton {
    /// What comes back when it is pressed.
    pub id: String,
    /// What stands on it.
    pub label: String,
}

impl From<&Message> for Outgoing {
    /// What an agent has written moves no cursor and turns no direction of writing, whatever the channel.
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
            rich: message.rich.clone().map(clean),
            reply_to: None,
        }
    }
}

fn clean(rich: Rich) -> Rich {
    let field = |(name, value): (String, String)| (plain(&name), plain_lines(&value));
    let button = |button: Button| Button { label: plain(&button.label), ..button };
    Rich {
        title: plain(&rich.title),
        description: plain_lines(&rich.description),
        color: rich.color,
        fields: rich.fields.into_iter().map(field).collect(),
        buttons: rich.buttons.into_iter().map(button).collect(),
        footer: plain(&rich.footer),
    }
}
