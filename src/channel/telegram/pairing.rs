//! Who the owner of a new bot is: whoever sends it a code that was shown to them alone.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::api::Api;

/// How long the service holds a poll that brings nothing.
const POLL: Duration = Duration::from_secs(20);

/// How long the person may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A bot that is set up.
pub struct Pairing {
    api: Api,
    name: String,
}

impl Pairing {
    /// Asks who the bot of this token is. `api`: the address of a Bot API server of one's own; `None`: Telegram's.
    ///
    /// # Errors
    /// What Telegram says against it, or why it was not reached.
    pub async fn begin(api: Option<&str>, token: &str) -> Result<Self, String> {
        let api = Api::new(api, token.to_owned());
        let bot = api.call("getMe", json!({})).await.map_err(|failure| failure.why)?;
        let name = bot["username"].as_str().ok_or("Telegram does not say what the bot is called")?;
        Ok(Self { name: crate::channel::terminal::plain(name), api })
    }

    /// The bot's name, by which people find it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until somebody sends the bot `/start CODE` in a private chat. Returns their number.
    ///
    /// # Errors
    /// What Telegram says against it, or that nobody did within ten minutes.
    pub async fn owner(&self, code: &str) -> Result<i64, String> {
        let late = |_| format!("nobody sent the code within {} minutes", PATIENCE.as_secs() / 60);
        timeout(PATIENCE, self.wait(code)).await.map_err(late)?
    }

    async fn wait(&self, code: &str) -> Result<i64, String> {
        let mut offset = 0;
        loop {
            let updates = self.updates(offset, POLL).await?;
            for update in updates.as_array().into_iter().flatten() {
                offset = update["update_id"].as_i64().map_or(offset, |id| id + 1);
                if let Some(owner) = sender(&update["message"], code) {
                    // The service is not to take the code for something that the person says.
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

/// Who sends the code, if this message is that.
fn sender(message: &Value, code: &str) -> Option<i64> {
    let text = message["text"].as_str()?.trim();
    let is_code = text.strip_prefix("/start").unwrap_or(text).trim() == code;
    let is_private = message["chat"]["type"] == "private" && message["from"]["is_bot"] == false;
    (is_code && is_private).then(|| message["from"]["id"].as_i64()).flatten()
}
