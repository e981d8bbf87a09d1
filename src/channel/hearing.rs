//! What comes in by a channel: what the person says, presses and asks for.
//!
//! A channel hands everything to its [`Ear`], together with the service's name of who it comes from; who is no owner is not
//! heard, whatever it is. What is heard is recorded before the channel is told so.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use super::Outgoing;
use super::terminal::plain_lines;
use crate::definition::DefinitionId;

/// What somebody who is not the owner is told, once.
pub(super) const TO_STRANGERS: &str = "This bot talks with its owner alone.";

/// Something that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Said(Said),
    /// A button of a message of ours was pressed.
    Pressed {
        /// Its id, as [`OutgoingButton`](super::OutgoingButton) has it.
        button: String,
    },
    /// The same, where whoever has got hold of the button's token may press it: it counts once, whatever it does.
    PressedOnce {
        /// Its id.
        button: String,
        /// When its message was recorded: another message with the same number is another one.
        at: DateTime<Utc>,
    },
    /// A command of the [table](super::commands::COMMANDS), with its argument.
    Asked {
        /// Its name.
        command: String,
        /// What was written after it.
        argument: Option<String>,
    },
}

impl Heard {
    /// A message, where the channel's service has no commands of its own: one that begins with `/` and a word is a command,
    /// as Telegram shows it. A path is none.
    #[must_use]
    pub fn of_text(said: Said) -> Self {
        let Some(line) = said.text.trim().strip_prefix('/').filter(|_| said.files.is_empty()) else {
            return Self::Said(said);
        };
        let (command, argument) = match line.split_once(char::is_whitespace) {
            Some((command, argument)) => (command, Some(argument.trim().to_owned())),
            None => (line, None),
        };
        // `/status@my_bot`: the bot's name behind it.
        let command = command.split('@').next().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match !command.is_empty() && command.chars().all(is_word) {
            true => Self::Asked { command: command.to_owned(), argument },
            false => Self::Said(said),
        }
    }
}

/// A message of the person's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What the channel's service calls it. The same message is heard once, however often it comes; one without an id is new.
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// What the service calls the message that it answers.
    pub reply_to: Option<String>,
    /// The text of the message that it answers, where that is none of ours.
    pub quoted: Option<String>,
    /// What came with it.
    pub files: Vec<ReceivedFile>,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedFile {
    /// Its name, as it was sent.
    pub name: String,
    /// What is in it, or why it was not taken.
    pub content: Result<Vec<u8>, String>,
}

/// What the channel is to show for what it has heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// This turn answers it. Its answer comes as a message of this definition; [`Ear::follow`] shows how it goes.
    Turn(DefinitionId),
    /// A text, for who asked alone where the channel can do that.
    Text(String),
    /// What was pressed is done: the message's buttons are of no use any more. What came of it.
    Done(String),
    /// It was not taken, and why.
    Refused(String),
    /// It comes from a stranger. `tell`: this one is to be told so, once.
    Stranger {
        /// Whether to answer.
        tell: bool,
    },
}

impl Response {
    /// The same without what is not to be shown, whatever it quotes.
    fn clean(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(plain_lines(&text)),
            Self::Done(text) => Self::Done(plain_lines(&text)),
            Self::Refused(text) => Self::Refused(plain_lines(&text)),
            Self::Turn(_) | Self::Stranger { .. } => self,
        }
    }
}

/// What is seen of a turn while it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A part of the answer, to be put behind what came before.
    Text(String),
    /// A tool is called: `Read notes/a.md`. What was said before it is no part of the answer.
    Call {
        /// The tool and what it is called with, in a few words.
        label: String,
    },
    /// A call was refused.
    Refused {
        /// The tool and what it was called with.
        label: String,
        /// Why.
        reason: String,
    },
    /// An attempt is over; another one may follow.
    AttemptEnded {
        /// It has come to its own end.
        completed: bool,
    },
    /// The turn is over. Its answer is delivered as a message, also where there is none or it failed.
    Ended {
        /// It has come to its own end.
        completed: bool,
    },
}

/// Takes what comes in. Implemented by the service.
#[async_trait]
pub trait Hearing: Send + Sync {
    /// Takes what the owner says by a channel.
    async fn heard(&self, channel: &str, heard: Heard) -> Response;
    /// Counts somebody who is not the owner. Returns whether it is the first time.
    async fn stranger(&self, channel: &str, by: &str) -> bool;
    /// How a turn goes from now on, up to its end.
    fn follow(&self, turn: DefinitionId) -> mpsc::UnboundedReceiver<Progress>;
    /// Remembers what a channel's service calls the last thing that was heard.
    async fn mark(&self, channel: &str, last: String);
    /// What was [marked](Self::mark).
    async fn last_heard(&self, channel: &str) -> Option<String>;
    /// Records that a channel shows a turn by a message of this name.
    async fn shows(&self, channel: &str, turn: &DefinitionId, message: String);
    /// The message by which a channel shows a turn, as it was recorded.
    async fn shown(&self, channel: &str, turn: &DefinitionId) -> Option<String>;
    /// What was sent as the message that a channel's service calls so.
    async fn sent(&self, channel: &str, message: &str) -> Option<Outgoing>;
    /// Keeps what came in until it is [let go](Self::let_go). Returns whether it is kept.
    async fn keep(&self, channel: &str, name: &str, what: String) -> bool;
    /// What is kept, with its names.
    async fn kept(&self, channel: &str) -> Vec<(String, String)>;
    /// It is heard.
    async fn let_go(&self, channel: &str, name: &str);
}

/// A channel's way to the service.
#[derive(Clone)]
pub struct Ear {
    channel: String,
    hearing: Arc<dyn Hearing>,
}

impl Ear {
    /// For the channel of this name.
    #[must_use]
    pub fn new(channel: String, hearing: Arc<dyn Hearing>) -> Self {
        Self { channel, hearing }
    }

    /// Takes what came in from `by`, if that is the owner. `owner`: `None` as long as that is not known; then nobody is heard.
    pub async fn hear(&self, by: &str, owner: Option<&str>, heard: Heard) -> Response {
        match owner == Some(by) {
            true => self.hearing.heard(&self.channel, heard).await.clean(),
            false => Response::Stranger { tell: self.hearing.stranger(&self.channel, by).await },
        }
    }

    /// How a turn goes from now on, up to its end.
    #[must_use]
    pub fn follow(&self, turn: DefinitionId) -> mpsc::UnboundedReceiver<Progress> {
        self.hearing.follow(turn)
    }

    /// Remembers what the service calls the last thing that was heard from the owner, over restarts. A message is marked when it
    /// was heard: hearing it twice changes nothing. A command or a button is marked before, since it does what it does each time.
    pub async fn mark(&self, last: impl ToString + Send) {
        self.hearing.mark(&self.channel, last.to_string()).await;
    }

    /// What was [marked](Self::mark).
    pub async fn last_heard(&self) -> Option<String> {
        self.hearing.last_heard(&self.channel).await
    }

    /// Records that the channel shows a turn by a message of this name. It is [hidden](super::Channel::hide) when the turn is over, unless
    /// the answer takes its place.
    pub async fn shows(&self, turn: &DefinitionId, message: String) {
        self.hearing.shows(&self.channel, turn, message).await;
    }

    /// The message by which the channel shows a turn, as another process may have recorded it.
    pub async fn shown(&self, turn: &DefinitionId) -> Option<String> {
        self.hearing.shown(&self.channel, turn).await
    }

    /// What was sent as the message that the channel's service calls so.
    pub async fn sent(&self, message: &str) -> Option<Outgoing> {
        self.hearing.sent(&self.channel, message).await
    }

    /// Keeps what came in, over restarts, until it is [let go](Self::let_go). Returns whether it is kept.
    pub async fn keep(&self, name: &str, what: String) -> bool {
        self.hearing.keep(&self.channel, name, what).await
    }

    /// What is kept, with its names.
    pub async fn kept(&self) -> Vec<(String, String)> {
        self.hearing.kept(&self.channel).await
    }

    /// It is heard.
    pub async fn let_go(&self, name: &str) {
        self.hearing.let_go(&self.channel, name).await;
    }
}
