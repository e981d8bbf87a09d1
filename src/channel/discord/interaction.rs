//! Button presses and commands. Discord waits three seconds for an answer, so each is first acknowledged and answered later.

use std::sync::Arc;

use serde_json::{Value, json};
use twilight_http::request::Method;

use super::incoming::Interaction;
use super::rest::Failure;
use super::{CachedIds, Inner, body};
use crate::channel::incoming::STRANGER_REPLY;
use crate::channel::status::{self, Turn};
use crate::channel::{Inbound, IncomingEvent, Response};

/// Types of interactions.
const COMMAND: u8 = 2;
const BUTTON: u8 = 3;

/// Types of responses: immediate; deferred, to a command; deferred, to a button, optionally as an edit of its message.
const IMMEDIATE: u8 = 4;
const COMMAND_LATER: u8 = 5;
const BUTTON_LATER: u8 = 6;

impl Inner {
    /// Handles an interaction and shows its outcome.
    pub(super) async fn interact(self: Arc<Self>, known: CachedIds, inbound: Inbound, interaction: Interaction) {
        let Some(by) = interaction.by().filter(|_| interaction.has_token()) else { return };
        let heard = match interaction.kind {
            BUTTON => IncomingEvent::Pressed { button: interaction.data.custom_id.clone() },
            COMMAND => IncomingEvent::Command {
                command: interaction.data.name.clone(),
                argument: argument(&interaction),
                id: None,
            },
            _ => return,
        };
        let is_owner = by == known.owner;
        let is_deferred = is_owner && self.defer(&interaction).await;
        let response = inbound.receive(&by.to_string(), Some(&known.owner.to_string()), heard).await;
        let shown = match response {
            Response::Repeated | Response::Stranger { tell: false } => Ok(()),
            Response::Stranger { tell: true } => {
                self.call_back(&interaction, IMMEDIATE, json!({ "content": STRANGER_REPLY, "flags": body::FOR_ONE }))
                    .await
            }
            Response::Done(outcome) if interaction.kind == BUTTON => {
                match (self.settle_pressed(&interaction, &outcome).await, body::fits_a_label(&outcome)) {
                    (Ok(()), false) => self.tell(&known, &interaction, &outcome, is_deferred).await,
                    (settled, _) => settled,
                }
            }
            Response::Gone(text) => {
                if let Err(failure) = self.settle_pressed(&interaction, &text).await {
                    tracing::debug!(%failure, "buttons of no further use stay");
                }
                self.tell(&known, &interaction, &text, is_deferred).await
            }
            Response::Text(text) | Response::Done(text) | Response::Refused(text) => {
                self.tell(&known, &interaction, &text, is_deferred).await
            }
            Response::Turn(turn) => {
                let progress = inbound.follow(turn.clone());
                if interaction.kind == COMMAND && is_deferred {
                    self.drop_answer(&known, &interaction).await;
                }
                let turn = Turn::begin(turn, None, &inbound).await;
                status::follow(&*self, &inbound, turn, progress, async {}).await;
                Ok(())
            }
        };
        if let Err(failure) = shown {
            tracing::warn!(%failure, "what came of a button or a command was not shown");
        }
    }

    /// Announces an answer. Returns whether Discord still accepts one.
    async fn defer(&self, interaction: &Interaction) -> bool {
        let deferred = match interaction.kind {
            BUTTON => self.call_back(interaction, BUTTON_LATER, Value::Null).await,
            _ => self.call_back(interaction, COMMAND_LATER, json!({ "flags": body::FOR_ONE })).await,
        };
        // The interaction is handled anyway. The answer is sent as a message.
        deferred.inspect_err(|failure| tracing::info!(%failure, "a button or a command was heard too late")).is_ok()
    }

    async fn call_back(&self, interaction: &Interaction, kind: u8, data: Value) -> Result<(), Failure> {
        let path = format!("interactions/{}/{}/callback", interaction.id, interaction.token);
        let mut body = json!({ "type": kind });
        if !data.is_null() {
            body["data"] = data;
        }
        self.rest.send(Method::Post, path, &body).await.map(drop)
    }

    async fn settle_pressed(&self, interaction: &Interaction, outcome: &str) -> Result<(), Failure> {
        match &interaction.message {
            Some(message) => self.remove_buttons(message.channel_id, message.id, outcome).await,
            None => Ok(()),
        }
    }

    /// Shows a text to the person who asked.
    async fn tell(
        &self,
        known: &CachedIds,
        interaction: &Interaction,
        text: &str,
        is_deferred: bool,
    ) -> Result<(), Failure> {
        if !is_deferred {
            return self.reply(known.dm, interaction.id.get(), text).await;
        }
        let webhook = format!("webhooks/{}/{}", known.application, interaction.token);
        for (part, mut body) in body::printed(text).into_iter().enumerate() {
            if part == 0 && interaction.kind == COMMAND {
                // The deferred response has already set the visibility.
                body["flags"] = json!(body::NO_PREVIEWS);
                self.rest.send(Method::Patch, format!("{webhook}/messages/@original"), &body).await?;
            } else {
                self.rest.send(Method::Post, webhook.clone(), &body).await?;
            }
        }
        Ok(())
    }

    async fn drop_answer(&self, known: &CachedIds, interaction: &Interaction) {
        let path = format!("webhooks/{}/{}/messages/@original", known.application, interaction.token);
        if let Err(failure) = self.rest.delete(path).await {
            tracing::debug!(%failure, "the mark of a command that is being answered was not removed");
        }
    }
}

/// Returns the argument of a command.
fn argument(interaction: &Interaction) -> Option<String> {
    let given = interaction.data.options.first()?;
    let text = match &given.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
