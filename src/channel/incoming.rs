//! Incoming messages, button presses and commands of a channel.
//!
//! A channel passes everything to its [`Inbound`], together with the service's id of the sender. Input from anyone but the owner is ignored.
//! Input is recorded before the channel gets a response.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use super::Outgoing;
use super::terminal::plain_lines;
use crate::definition::DefinitionId;

/// Reply to a sender who is not the owner. Each sender gets it once.
pub(super) const STRANGER_REPLY: &str = "This bot talks with its owner alone.";

/// An incoming event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingEvent {
    /// A message.
    Message(IncomingMessage),
    /// A button of one of the bot's messages was pressed.
    Pressed {
        /// Id of the button, as in [`OutgoingButton`](super::OutgoingButton).
        button: String,
    },
    /// A press by anyone who holds the button's token. It counts once, whatever the button does.
    PressedOnce {
        /// Id of the button.
        button: String,
        /// Time at which the button's message was recorded. It tells apart messages with the same number.
        at: DateTime<Utc>,
    },
    /// A command of the [table](super::commands::COMMANDS), with its argument.
    Command {
        /// Name of the command.
        command: String,
        /// Text after the command.
        argument: Option<String>,
        /// The service's id of the message, as in [`IncomingMessage`].
        id: Option<String>,
    },
}

impl IncomingEvent {
    /// Parses a message of a channel whose service has no commands of its own. As in Telegram, `/` and a word make a command. `/` alone
    /// asks for the list of them. A path is not a command.
    #[must_use]
    pub fn of_text(said: IncomingMessage) -> Self {
        let Some(line) = said.text.trim().strip_prefix('/').filter(|_| said.files.is_empty()) else {
            return Self::Message(said);
        };
        let (command, argument) = match line.split_once(char::is_whitespace) {
            None if line.is_empty() => ("help", None),
            Some((command, argument)) => (command, Some(argument.trim().to_owned())),
            None => (line, None),
        };
        // Telegram appends the bot's name: `/status@my_bot`.
        let command = command.split('@').next().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match !command.is_empty() && command.chars().all(is_word) {
            true => Self::Command { command: command.to_owned(), argument, id: said.id },
            false => Self::Message(said),
        }
    }
}

/// A message from the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncomingMessage {
    /// The service's id of the message. Repeated deliveries of one id are handled once; a message without an id is always new.
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// The service's id of the message that this one replies to.
    pub reply_to: Option<String>,
    /// Text of the message that this one replies to, if the bot did not send it.
    pub quoted: Option<String>,
    /// Attached files.
    pub files: Vec<ReceivedFile>,
}

/// A file attached to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedFile {
    /// File name, as the sender gave it.
    pub name: String,
    /// Content, or the reason why the file was not accepted.
    pub content: Result<Vec<u8>, String>,
}

/// The response that a channel shows to incoming input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The turn that answers the input. Its answer arrives as a message of this definition; [`Inbound::follow`] reports the progress.
    Turn(DefinitionId),
    /// A text. Where the channel can do that, only the sender sees it.
    Text(String),
    /// The press took effect, with this outcome. The message's buttons have no further use.
    Done(String),
    /// The input was refused, for this reason.
    Refused(String),
    /// The button's message is not recorded any more, as this text says. Its buttons have no further use.
    Gone(String),
    /// The input has the id of an earlier one. Nothing is shown.
    Repeated,
    /// The sender is not the owner.
    Stranger {
        /// Whether to reply to this sender. True once for each sender.
        tell: bool,
    },
}

impl Response {
    /// Changes the text, if it has one.
    #[must_use]
    pub fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(text)),
            Self::Done(text) => Self::Done(change(text)),
            Self::Refused(text) => Self::Refused(change(text)),
            Self::Gone(text) => Self::Gone(change(text)),
            Self::Turn(_) | Self::Repeated | Self::Stranger { .. } => self,
        }
    }
}

/// The state of a channel that hears nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deaf {
    /// The reason.
    pub why: String,
    /// Whether the channel delivers messages. The person is then told by it, and otherwise by the next one.
    pub delivers: bool,
}

/// Visible progress of a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A part of the answer, appended to the previous parts.
    Text(String),
    /// A tool call, such as `Read notes/a.md`. Text before it is not part of the answer.
    Call {
        /// Short form of the tool and its arguments.
        label: String,
    },
    /// A tool call was denied.
    Refused {
        /// Short form of the tool and its arguments.
        label: String,
        /// Reason of the denial.
        reason: String,
    },
    /// Whether a call waits for the person's answer.
    WaitsForPerson(bool),
    /// An attempt ended; another one may follow.
    AttemptEnded {
        /// Whether the attempt ran to completion.
        completed: bool,
    },
    /// The turn ended. Its answer is delivered as a message, even if it is empty or the turn failed.
    Ended {
        /// Whether the turn ran to completion.
        completed: bool,
    },
}

/// The receiver of incoming events. The service implements it.
#[async_trait]
pub trait IncomingHandler: Send + Sync {
    /// Handles the owner's input from a channel.
    async fn receive(&self, channel: &str, heard: IncomingEvent) -> Response;
    /// Records a sender who is not the owner. Returns whether it is this sender's first attempt; if no owner is known yet, the first since
    /// the start of the service.
    async fn record_stranger(&self, channel: &str, by: &str, has_owner: bool) -> bool;
    /// Counts an input that was too long to be taken. It is not known whose it was.
    async fn not_taken(&self, channel: &str);
    /// Records that a channel hears nothing, and tells the person once.
    async fn deaf(&self, channel: &str, deaf: Deaf);
    /// Records that a channel hears. Tells the person if they were told that it does not.
    async fn hears(&self, channel: &str);
    /// Returns the progress of a turn from now until its end.
    fn follow(&self, turn: DefinitionId) -> mpsc::UnboundedReceiver<Progress>;
    /// Stores the service's id of the last input that a channel handled.
    async fn set_cursor(&self, channel: &str, last: String);
    /// Returns the [stored](Self::set_cursor) id.
    async fn cursor(&self, channel: &str) -> Option<String>;
    /// Records the service's id of the status message of a turn.
    async fn set_status(&self, channel: &str, turn: &DefinitionId, message: String);
    /// Returns the recorded status message of a turn.
    async fn status(&self, channel: &str, turn: &DefinitionId) -> Option<String>;
    /// Returns the message that was sent under the service's id `message`.
    async fn sent_message(&self, channel: &str, message: &str) -> Option<Outgoing>;
    /// Stores an entry until [`discard`](Self::discard) removes it. Returns whether it was stored.
    async fn store(&self, channel: &str, name: &str, what: String) -> bool;
    /// Returns the stored entries with their names.
    async fn stored(&self, channel: &str) -> Vec<(String, String)>;
    /// Removes a stored entry.
    async fn discard(&self, channel: &str, name: &str);
}

/// A channel's connection to the service.
#[derive(Clone)]
pub struct Inbound {
    channel: String,
    hearing: Arc<dyn IncomingHandler>,
}

impl Inbound {
    /// Creates the ear of the channel of this name.
    #[must_use]
    pub fn new(channel: String, hearing: Arc<dyn IncomingHandler>) -> Self {
        Self { channel, hearing }
    }

    /// Handles input from `by` if that is the owner. If `owner` is `None`, no owner is known yet and all input is ignored.
    pub async fn receive(&self, by: &str, owner: Option<&str>, heard: IncomingEvent) -> Response {
        match owner == Some(by) {
            // The text may quote anything.
            true => self.hearing.receive(&self.channel, heard).await.map(|text| plain_lines(&text)),
            false => {
                let is_first = self.hearing.record_stranger(&self.channel, by, owner.is_some()).await;
                Response::Stranger { tell: is_first }
            }
        }
    }

    /// Counts an input that was too long to be taken.
    pub async fn not_taken(&self) {
        self.hearing.not_taken(&self.channel).await;
    }

    /// Records that this channel hears nothing. The person is told once.
    pub async fn deaf(&self, deaf: Deaf) {
        self.hearing.deaf(&self.channel, deaf).await;
    }

    /// Records that this channel hears. The person is told if it was deaf before, also over restarts.
    pub async fn hears(&self) {
        self.hearing.hears(&self.channel).await;
    }

    /// Returns the progress of a turn from now until its end.
    #[must_use]
    pub fn follow(&self, turn: DefinitionId) -> mpsc::UnboundedReceiver<Progress> {
        self.hearing.follow(turn)
    }

    /// Stores the service's id of the owner's last input, over restarts. A message is marked after it was handled, since handling it twice
    /// changes nothing. A command or a button is marked before, since it acts each time.
    pub async fn set_cursor(&self, last: impl ToString + Send) {
        self.hearing.set_cursor(&self.channel, last.to_string()).await;
    }

    /// Returns the [stored](Self::set_cursor) id.
    pub async fn cursor(&self) -> Option<String> {
        self.hearing.cursor(&self.channel).await
    }

    /// Records the service's id of the status message of a turn. The message is [hidden](super::Channel::remove_status) after the turn, unless the
    /// answer replaces it.
    pub async fn set_status(&self, turn: &DefinitionId, message: String) {
        self.hearing.set_status(&self.channel, turn, message).await;
    }

    /// Returns the status message of a turn. Another process may have recorded it.
    pub async fn status(&self, turn: &DefinitionId) -> Option<String> {
        self.hearing.status(&self.channel, turn).await
    }

    /// Returns the message that was sent under the service's id `message`.
    pub async fn sent_message(&self, message: &str) -> Option<Outgoing> {
        self.hearing.sent_message(&self.channel, message).await
    }

    /// Stores an entry, over restarts, until [`discard`](Self::discard) removes it. Returns whether it was stored.
    pub async fn store(&self, name: &str, what: String) -> bool {
        self.hearing.store(&self.channel, name, what).await
    }

    /// Returns the stored entries with their names.
    pub async fn stored(&self) -> Vec<(String, String)> {
        self.hearing.stored(&self.channel).await
    }

    /// Removes a stored entry.
    pub async fn discard(&self, name: &str) {
        self.hearing.discard(&self.channel, name).await;
    }
}
