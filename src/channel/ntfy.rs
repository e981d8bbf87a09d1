//! ntfy: a phone or a desktop by its app, over ntfy.sh or a server of one's own (<https://docs.ntfy.sh/publish/>).
//!
//! The topic is a password: who knows it reads what is sent there. So it stands in no log and in no error.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Channel, NotSent, Outgoing};
use crate::config::NtfyChannel;
use crate::journal::Urgency;

/// The longest text that the service takes as a message, in bytes. It makes a file of a longer one.
const LONGEST: usize = 4096;

/// What stands at the end of a text that is cut.
const CUT: &str = "…\n(the rest: `ollim-bot inbox`)";

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A topic of a server.
pub struct Ntfy {
    agent: ureq::Agent,
    settings: NtfyChannel,
    /// An access token of the server's.
    token: Option<String>,
}

impl Ntfy {
    /// Nothing is sent before the first message.
    #[must_use]
    pub fn new(settings: NtfyChannel, token: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // The token is for this server alone.
            .max_redirects(0)
            .user_agent(concat!("ollim-bot/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), settings, token }
    }
}

#[async_trait]
impl Channel for Ntfy {
    async fn send(&self, message: &Outgoing) -> Result<Option<String>, NotSent> {
        let (agent, server) = (self.agent.clone(), self.settings.server.clone());
        let (body, token) = (body(&self.settings.topic, message).to_string(), self.token.clone());
        let posted = tokio::task::spawn_blocking(move || {
            let mut request = agent.post(&server).header("Content-Type", "application/json");
            if let Some(token) = token {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            let mut answer = request.send(&body)?;
            let text = answer.body_mut().with_config().limit(64 * 1024).read_to_string()?;
            Ok::<_, ureq::Error>((answer.status().as_u16(), text))
        });
        let posted = posted.await.map_err(|error| NotSent::for_now(error.to_string()))?;
        let (status, text) =
            posted.map_err(|error| NotSent::for_now(format!("the ntfy server cannot be reached: {error}")))?;
        outcome(status, &text)
    }
}

/// A message as JSON.
fn body(topic: &str, message: &Outgoing) -> Value {
    let priority = match message.urgency {
        Urgency::Low => 2,
        Urgency::Normal => 3,
        Urgency::Critical => 5,
    };
    let mut body = json!({ "topic": topic, "message": fitting(&message.text), "priority": priority });
    // The text begins with the title where there is one.
    if let Some(job) = &message.job {
        body["title"] = json!(job);
    }
    body
}

fn fitting(text: &str) -> String {
    let text = text.trim();
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let most = LONGEST - CUT.len();
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= most).last().unwrap_or(0);
    format!("{}{CUT}", &text[..end])
}

/// What the server's answer means.
fn outcome(status: u16, text: &str) -> Result<Option<String>, NotSent> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    if (200..300).contains(&status) {
        return Ok(answer["id"].as_str().map(|id| id.chars().take(200).collect()));
    }
    let said = answer["error"].as_str().map(|error| format!(": {}", super::terminal::plain(error))).unwrap_or_default();
    let why = format!("the ntfy server answered {status}{said}");
    // Too many requests, or a fault of the server's.
    Err(NotSent { why, again: status == 429 || status >= 500 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "é".repeat(3000);
        let cut = fitting(&text);
        assert!(cut.len() <= LONGEST && cut.ends_with(CUT), "{}", cut.len());
        assert_eq!(fitting(" short\n"), "short");
    }

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(outcome(200, r#"{"id":"hwQ2YpKdmg"}"#), Ok(Some("hwQ2YpKdmg".into())));
        assert_eq!(outcome(200, "ok"), Ok(None));
        for (status, text, why, again) in [
            (403, r#"{"error":"forbidden"}"#, "the ntfy server answered 403: forbidden", false),
            (429, "", "the ntfy server answered 429", true),
            (500, "<html>", "the ntfy server answered 500", true),
            (302, "", "the ntfy server answered 302", false),
        ] {
            assert_eq!(outcome(status, text), Err(NotSent { why: why.into(), again }));
        }
    }
}
