//! The fields of Discord's data that we read. All other fields may change.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twilight_model::id::Id;
use twilight_model::id::marker::{ApplicationMarker, ChannelMarker, InteractionMarker, MessageMarker, UserMarker};

/// `GET /applications/@me`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Application {
    pub(super) id: Id<ApplicationMarker>,
    owner: Option<User>,
    team: Option<Team>,
}

#[derive(Clone, Debug, Deserialize)]
struct Team {
    owner_user_id: Id<UserMarker>,
}

impl Application {
    /// Returns the owner of the application. For a team's application that is the team's owner.
    pub(super) fn owner(&self) -> Option<Id<UserMarker>> {
        match &self.team {
            Some(team) => Some(team.owner_user_id),
            None => self.owner.as_ref().map(|owner| owner.id),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct User {
    pub(super) id: Id<UserMarker>,
    #[serde(default)]
    pub(super) bot: bool,
}

/// A channel, reduced to its id.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Channel {
    pub(super) id: Id<ChannelMarker>,
}

/// `GET /gateway/bot`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Gateway {
    pub(super) url: String,
}

/// An event from the gateway.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "t", default)]
    pub(super) name: Option<String>,
    #[serde(rename = "d", default)]
    pub(super) data: Value,
}

/// The READY event.
#[derive(Debug, Deserialize)]
pub(super) struct Ready {
    pub(super) user: User,
}

/// A message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Message {
    pub(super) id: Id<MessageMarker>,
    pub(super) channel_id: Id<ChannelMarker>,
    #[serde(default)]
    pub(super) guild_id: Option<Value>,
    pub(super) author: User,
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) attachments: Vec<Attachment>,
    #[serde(default)]
    pub(super) sticker_items: Vec<Sticker>,
    #[serde(default)]
    pub(super) message_reference: Option<Reference>,
    #[serde(default)]
    pub(super) referenced_message: Option<Quoted>,
    /// Forwarded messages.
    #[serde(default)]
    pub(super) message_snapshots: Vec<Snapshot>,
    #[serde(default)]
    pub(super) reactions: Vec<Reaction>,
    #[serde(rename = "type", default)]
    pub(super) kind: u8,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Attachment {
    pub(super) filename: String,
    pub(super) size: u64,
    pub(super) url: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Sticker {
    pub(super) name: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Reference {
    /// 1: the message is forwarded and is no reply.
    #[serde(rename = "type", default)]
    pub(super) kind: u8,
    #[serde(default)]
    pub(super) message_id: Option<Id<MessageMarker>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Quoted {
    #[serde(default)]
    pub(super) content: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Snapshot {
    pub(super) message: Quoted,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Reaction {
    #[serde(default)]
    pub(super) me: bool,
    pub(super) emoji: Emoji,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Emoji {
    #[serde(default)]
    pub(super) name: Option<String>,
}

/// A button press or a command.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Interaction {
    pub(super) id: Id<InteractionMarker>,
    pub(super) token: String,
    #[serde(rename = "type")]
    pub(super) kind: u8,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    member: Option<Member>,
    #[serde(default)]
    pub(super) data: InteractionData,
    #[serde(default)]
    pub(super) message: Option<Pressed>,
}

impl Interaction {
    pub(super) fn by(&self) -> Option<Id<UserMarker>> {
        let user = self.user.as_ref().or(self.member.as_ref().map(|member| &member.user));
        user.map(|user| user.id)
    }

    /// Whether the token is safe in a URL.
    pub(super) fn has_token(&self) -> bool {
        !self.token.is_empty() && self.token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte))
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Member {
    user: User,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InteractionData {
    pub(super) custom_id: String,
    pub(super) name: String,
    pub(super) options: Vec<CommandOption>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct CommandOption {
    pub(super) value: Value,
}

/// The message with the pressed button.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pressed {
    pub(super) id: Id<MessageMarker>,
    pub(super) channel_id: Id<ChannelMarker>,
}

/// Parses an answer of Discord.
pub(super) fn read<T: for<'de> Deserialize<'de>>(what: &str, value: Value) -> Result<T, super::rest::Failure> {
    serde_json::from_value(value)
        .map_err(|error| super::rest::temporary(format!("Discord's {what} cannot be read: {error}")))
}
