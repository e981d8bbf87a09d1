//! Pairs a new bot with its owner: the first person to send it a code that only the owner has seen.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::api::Api;

/// Maximum time for which the server holds an empty poll.
const POLL: Duration = Duration::from_secs(20);

/// Maximum wait for the code.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A bot that is being set up.
pub struct Pairing {
    api: Api,
    name: String,
}

impl Pairing {
    /// Looks up the bot of this token. `api` is the address of a self-hosted Bot API server; `None` means Telegram's.
    ///
    /// # Errors
    /// Returns Telegram's refusal, or why it could not be reached.
    pub async fn begin(api: Option<&str>, token: &str) -> Result<Self, String> {
        let api = Api::new(api, token.to_owned());
        let bot = api.call("getMe", json!({})).await.map_err(|failure| failure.why)?;
        let name = bot["username"].as_str().ok_or("Telegram does not say what the bot is called")?;
        Ok(Self { name: crate::channel::terminal::plain(name), api })
    }

    /// Returns the bot's user name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for a private message with the code, with or without `/start` before it. Returns the sender's id.
    ///
    /// # Errors
    /// Returns Telegram's refusal, or that no code arrived within ten minutes.
    pub async fn owner(&self, code: &str) -> Result<i64, String> {
        let late = |_| format!("nobody sent the code within {} minutes", TIMEOUT.as_secs() / 60);
        timeout(TIMEOUT, self.wait(code)).await.map_err(late)?
    }

    async fn wait(&self, code: &str) -> Result<i64, String> {
        let mut offset = 0;
        loop {
            let updates = self.updates(offset, POLL).await?;
            for update in updates.as_array().into_iter().flatten() {
                offset = update["update_id"].as_i64().map_or(offset, |id| id + 1);
                if let Some(owner) = sender(&update["message"], code) {
                    // Confirm the update, so that the service does not receive the code as a message.
                    self.updates(offset, Duration::ZERO).await?;
                    return Ok(owner);
                }
            }
        }
    }

    async fn updates(&self, offset: i64, wait: Duration) -> Result<Value, String> {
        let body = json!({ "offset": offset, "timeout": wait.as_secs(), "allowed_updates": ["message"] });
        self.api.poll("getUpdates", body, wait).await.map_err(|failure| failure.why)
    }
}

/// Returns the sender's id if the message is the code in a private chat.
fn sender(message: &Value, code: &str) -> Option<i64> {
    let text = message["text"].as_str()?.trim();
    let is_code = text.strip_prefix("/start").unwrap_or(text).trim() == code;
    let is_private = message["chat"]["type"] == "private" && message["from"]["is_bot"] == false;
    (is_code && is_private).then(|| message["from"]["id"].as_i64()).flatten()
}
