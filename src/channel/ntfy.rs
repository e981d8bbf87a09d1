//! ntfy: notifications on a phone or a desktop, over ntfy.sh or a self-hosted server (<https://docs.ntfy.sh/publish/>).
//!
//! The topic is a password: anyone who knows it can read its messages. So it appears in no log and no error. A button makes the phone
//! publish a token to a second topic, which this channel follows, so that no port is open. The text of a question is sent only if the
//! settings allow it.

mod token;
mod topic;

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;
use ureq::http::Request;
use ureq::http::request::Builder;

use super::backoff::Backoff;
use super::{Channel, Inbound, IncomingEvent, Outgoing, Response, SendError, SentParts};
use crate::config::NtfyChannel;
use crate::definition::Urgency;
use token::{Pressed, Tokens};
pub use token::{Secret, SecretError};
use topic::{Event, Topic, is_id};

/// Maximum length of a message, in bytes. The service turns a longer one into a file.
const LONGEST: usize = 4096;

/// End of a text that is cut.
const CUT: &str = "…\n(the rest: `ollim-bot inbox`)";

/// Text sent instead of a question.
const HIDDEN: &str = "A job asks for permission. `ollim-bot questions` shows what for, and takes every answer.";

/// Text sent instead of a digest that contains a question.
const HIDDEN_DIGEST: &str = "Several messages waited, and a job asked for permission: `ollim-bot inbox` shows them.";

/// Maximum number of buttons of a notification.
const BUTTONS: usize = 3;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum retry delay that the server may request.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

const USER_AGENT: &str = concat!("ollim-bot/", env!("CARGO_PKG_VERSION"));

/// Sender id of anyone with a valid token.
const OWNER: &str = "owner";

/// Sender id of anyone else.
const STRANGER: &str = "stranger";

/// A topic on a server.
pub struct Ntfy {
    server: Server,
    settings: NtfyChannel,
    tokens: Tokens,
}

/// The server from the settings.
struct Server {
    agent: ureq::Agent,
    /// An access token of the server.
    token: Option<String>,
}

impl Ntfy {
    /// Creates the channel `name`. `token` is an access token of the server. Nothing is sent before the first message.
    #[must_use]
    pub fn new(name: &str, settings: NtfyChannel, secret: &Secret, token: Option<String>) -> Self {
        Self { server: Server::new(token), settings, tokens: secret.of_channel(name) }
    }

    /// Checks that the server is healthy and accepts the token. Nothing is published.
    pub(super) async fn probe(settings: &NtfyChannel, token: Option<String>) -> Result<String, SendError> {
        let request = Request::get(format!("{}/v1/health", settings.server));
        let (status, text) = Server::new(token).ask(request, String::new()).await?;
        outcome(status, &text)?;
        match serde_json::from_str::<Value>(&text).unwrap_or_default()["healthy"].as_bool() {
            Some(true) => Ok(format!("{} answers", settings.server)),
            Some(false) => Err(SendError::temporary("the ntfy server says that it is not well")),
            None => Err(SendError { why: format!("{} is no ntfy server", settings.server), retryable: false }),
        }
    }

    /// Publishes a text without a running service.
    ///
    /// # Errors
    /// Returns the server's refusal, or why it could not be reached.
    pub async fn say(settings: &NtfyChannel, token: Option<String>, text: &str) -> Result<(), SendError> {
        let body = json!({ "topic": settings.topic, "message": fitting(text), "priority": 3 });
        Server::new(token).publish(settings, &body).await.map(drop)
    }

    async fn publish(&self, body: Value) -> Result<Option<String>, SendError> {
        self.server.publish(&self.settings, &body).await
    }

    /// Follows the answer topic, and reconnects when the stream ends. Never returns.
    async fn follow(&self, topic: &Topic, inbound: &Inbound) {
        let mut last = inbound.cursor().await;
        let (mut backoff, mut is_told) = (Backoff::default(), false);
        let mut notices = FuturesUnordered::new();
        loop {
            let opened = topic.open(last.as_deref()).await;
            // Reports a refusal again if the topic worked in between.
            is_told &= opened.is_err();
            let why = match opened {
                Ok(mut stream) => loop {
                    let event = tokio::select! {
                        event = stream.next() => event,
                        Some(()) = notices.next() => continue,
                    };
                    match event {
                        Ok(Event::Alive) => backoff.worked(),
                        Ok(Event::Message { id, text }) => {
                            backoff.worked();
                            notices.extend(self.handle(&text, inbound).await.map(|notice| self.tell(notice)));
                            inbound.set_cursor(&id).await;
                            last = Some(id);
                        }
                        Err(why) => break why,
                    }
                },
                Err(refused) => {
                    // The person would otherwise not notice that the buttons do nothing.
                    if !refused.retryable && !std::mem::replace(&mut is_told, true) {
                        let text = format!("The buttons of these notifications do nothing now: {}.", refused.why);
                        notices.push(self.tell(text));
                    }
                    refused.why
                }
            };
            tracing::warn!(%why, "the buttons of notifications are not heard now; it is tried again");
            let pause = sleep(backoff.failed());
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    Some(()) = notices.next() => {}
                }
            }
        }
    }

    /// Handles a message on the answer topic. Returns the text of the reply to the person.
    async fn handle(&self, text: &str, inbound: &Inbound) -> Option<String> {
        let Some(Pressed { button, at, answers }) = self.tokens.read(text) else {
            // There is no reply: a stranger cannot read the other topic.
            inbound.receive(STRANGER, Some(OWNER), IncomingEvent::Pressed { button: String::new() }).await;
            return None;
        };
        let response = inbound.receive(OWNER, Some(OWNER), IncomingEvent::PressedOnce { button, at }).await;
        let is_hidden = answers && !self.settings.show_text;
        match response {
            Response::Turn(_) | Response::Repeated | Response::Stranger { .. } => None,
            Response::Done(_) if is_hidden => Some("Your answer was taken.".into()),
            Response::Text(_) | Response::Refused(_) | Response::Gone(_) if is_hidden => {
                Some("Your answer was not taken: `ollim-bot questions` shows why.".into())
            }
            Response::Text(text) | Response::Done(text) | Response::Refused(text) | Response::Gone(text) => Some(text),
        }
    }

    /// Sends the person the outcome of a button.
    async fn tell(&self, text: String) {
        let body = json!({ "topic": self.settings.topic, "message": fitting(&text), "priority": 2 });
        if let Err(error) = self.publish(body).await {
            tracing::warn!(why = %error.why, "what came of a button was not shown");
        }
    }

    /// Returns the message as JSON.
    fn body(&self, message: &Outgoing) -> Value {
        let settings = &self.settings;
        let priority = match message.urgency {
            Urgency::Low => 2,
            Urgency::Normal => 3,
            Urgency::Critical => 5,
        };
        let is_hidden = message.asks && !settings.show_text;
        let whole = match (is_hidden, message.buttons.is_empty()) {
            (true, false) => HIDDEN,
            (true, true) => HIDDEN_DIGEST,
            (false, _) => message.text.trim(),
        };
        let text = fitting(whole);
        let is_seen = !is_hidden && text == whole;
        let mut body = json!({ "topic": settings.topic, "message": text, "priority": priority });
        // The text already begins with the title, if there is one.
        if let Some(job) = message.job.as_ref().filter(|_| !is_hidden) {
            body["title"] = json!(job);
        }
        if let Some(answers) = &settings.answers {
            let url = format!("{}/{answers}", settings.server);
            let action = |(button, label): (String, &str)| {
                let token = self.tokens.token(&Pressed { button, at: message.at, answers: message.asks });
                // The press is not forwarded through Firebase. The notification is cleared once the server has it.
                json!({
                    "action": "http", "label": label, "url": url, "method": "POST", "body": token, "clear": true,
                    "headers": { "Firebase": "no" },
                })
            };
            let actions: Vec<Value> = chosen(message, is_seen, settings.show_text).into_iter().map(action).collect();
            if !actions.is_empty() {
                body["actions"] = json!(actions);
            }
        }
        body
    }
}

impl Server {
    fn new(token: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A redirect must not carry the token to another server.
            .max_redirects(0)
            .user_agent(USER_AGENT)
            .build();
        Self { agent: config.into(), token }
    }

    async fn publish(&self, settings: &NtfyChannel, body: &Value) -> Result<Option<String>, SendError> {
        let request = || Request::post(&settings.server).header("Content-Type", "application/json");
        let (mut status, mut text, wait) = self.asked(request(), body.to_string()).await?;
        if let Some(wait) = wait.filter(|wait| status == 429 && *wait <= LONGEST_WAIT) {
            sleep(wait).await;
            (status, text, _) = self.asked(request(), body.to_string()).await?;
        }
        outcome(status, &text)
    }

    /// Sends a request. Returns the status and the body of the answer. An empty `body` means none.
    async fn ask(&self, request: Builder, body: String) -> Result<(u16, String), SendError> {
        self.asked(request, body).await.map(|(status, text, _)| (status, text))
    }

    /// Like [`ask`](Self::ask), and also returns the `Retry-After` delay.
    async fn asked(&self, mut request: Builder, body: String) -> Result<(u16, String, Option<Duration>), SendError> {
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let agent = self.agent.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let mut answer = match body.is_empty() {
                true => agent.run(request.body(())?)?,
                false => agent.run(request.body(body)?)?,
            };
            let text = answer.body_mut().with_config().limit(64 * 1024).read_to_string()?;
            let wait = answer.headers().get("Retry-After").and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
            Ok::<_, ureq::Error>((answer.status().as_u16(), text, wait.map(Duration::from_secs)))
        });
        let asked = asked.await.map_err(|error| SendError::temporary(error.to_string()))?;
        asked.map_err(|error| SendError::temporary(format!("the ntfy server cannot be reached: {error}")))
    }
}

#[async_trait]
impl Channel for Ntfy {
    async fn send(&self, message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        self.publish(self.body(message)).await
    }

    async fn remove_buttons(&self, external: &str, _message: &Outgoing, _outcome: &str) -> Result<(), SendError> {
        // The id belongs to a message of another channel.
        if self.settings.answers.is_none() || !is_id(external) {
            return Ok(());
        }
        let url = format!("{}/{}/{external}", self.settings.server, self.settings.topic);
        match self.server.ask(Request::delete(url), String::new()).await? {
            // A server before 2.16 cannot delete messages.
            (404 | 405, _) => Ok(()),
            (status, text) => outcome(status, &text).map(drop),
        }
    }

    async fn listen(&self, inbound: Inbound) {
        let Some(answers) = &self.settings.answers else { return std::future::pending().await };
        match Topic::new(&self.settings.server, answers, self.server.token.clone()) {
            Ok(topic) => self.follow(&topic, &inbound).await,
            Err(error) => tracing::error!(%error, "the buttons of notifications cannot be heard"),
        }
    }
}

/// Returns the id and the label of each button that fits a notification. `is_seen`: whether the person sees the whole text. `show_text`:
/// whether the output of buttons may be sent, since anyone with access to the topic can read it.
fn chosen(message: &Outgoing, is_seen: bool, show_text: bool) -> Vec<(String, &str)> {
    let action = |place: usize| {
        let button = message.rich.as_ref().and_then(|rich| rich.buttons.get(place));
        button.map(|button| button.action.as_str()).unwrap_or_default()
    };
    let has_room = |place: &usize| match message.asks {
        // "Always" is not offered: the file is not in view. A yes to more than one call requires the whole question in view.
        true => match action(*place).rsplit(':').next() {
            Some("once" | "deny") => true,
            Some("run") => is_seen,
            _ => false,
        },
        // A notification can be dismissed without a button.
        false => match action(*place).split(':').next().unwrap_or_default() {
            "done" => message.buttons.len() <= BUTTONS,
            "why" | "login" => show_text,
            _ => true,
        },
    };
    let places = (0..message.buttons.len()).filter(has_room).take(BUTTONS);
    places.map(|place| (message.buttons[place].id.clone(), message.buttons[place].label.as_str())).collect()
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

/// Converts the server's answer to the outcome of a delivery.
fn outcome(status: u16, text: &str) -> Result<Option<String>, SendError> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    if (200..300).contains(&status) {
        return Ok(answer["id"].as_str().map(|id| id.chars().take(200).collect()));
    }
    let said = answer["error"].as_str().map(|error| format!(": {}", super::terminal::plain(error))).unwrap_or_default();
    let why = format!("the ntfy server answered {status}{said}");
    // Too many requests, or a server error.
    Err(SendError { why, retryable: status == 429 || status >= 500 })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::definition::DefinitionId;
    use crate::journal::{Button, Message, RichContent, testing};

    fn message(text: &str, actions: &[&str]) -> Outgoing {
        let button = |action: &&str| Button { label: (*action).to_owned(), action: (*action).to_owned() };
        let rich = RichContent { buttons: actions.iter().map(button).collect(), ..RichContent::default() };
        Outgoing::from(&Message {
            number: 17,
            at: DateTime::from_timestamp_millis(1_790_000_000_123).unwrap(),
            id: Some(DefinitionId::new("tea")),
            rich: Some(rich),
            ..testing::message(text)
        })
    }

    #[track_caller]
    fn check(message: &Outgoing, show_text: bool, text: &str, title: Option<&str>, buttons: &[&str]) {
        let settings = NtfyChannel {
            server: "https://ntfy.example".into(),
            topic: "t".into(),
            answers: Some("a".into()),
            show_text,
        };
        let body = Ntfy::new("phone", settings, &Secret::new(&[7; 32]), None).body(message);
        assert_eq!((&body["message"], body["title"].as_str()), (&json!(text), title), "{body:#}");
        let labels: Vec<&str> =
            body["actions"].as_array().into_iter().flatten().map(|action| action["label"].as_str().unwrap()).collect();
        assert_eq!(labels, buttons, "{body:#}");
    }

    #[test]
    fn three_buttons_have_room_and_a_question_shows_nothing_unless_it_may() {
        let reminder = message("Tea.", &["done", "snooze:10m", "snooze:1h", "snooze:tomorrow"]);
        check(&reminder, false, "Tea.", Some("tea"), &["snooze:10m", "snooze:1h", "snooze:tomorrow"]);
        // Anyone who knows the topic could read the output of these buttons.
        let failure = message("Tea.", &["why", "login", "done"]);
        check(&failure, false, "Tea.", Some("tea"), &["done"]);
        check(&failure, true, "Tea.", Some("tea"), &["why", "login", "done"]);
        let late = message("Late.", &["why:2026-11-28T08:00:00Z tea", "why:2026-11-28T08:00:00Z bread"]);
        check(&late, false, "Late.", Some("tea"), &[]);
        check(
            &message("Tea.", &["agent:a", "agent:b", "agent:c", "agent:d"]),
            false,
            "Tea.",
            Some("tea"),
            &["agent:a", "agent:b", "agent:c"],
        );
        let answers = ["answer:3:once", "answer:3:run", "answer:3:always", "answer:3:deny"];
        let question = message("tea asks: `git push`", &answers);
        check(&question, false, HIDDEN, None, &["answer:3:once", "answer:3:deny"]);
        let three = ["answer:3:once", "answer:3:run", "answer:3:deny"];
        check(&question, true, "tea asks: `git push`", Some("tea"), &three);
        // A yes to more than one call requires the whole text in view.
        let long = message(&"x".repeat(5000), &answers);
        check(&long, true, &fitting(&long.text), Some("tea"), &["answer:3:once", "answer:3:deny"]);
        let digest = Outgoing { buttons: Vec::new(), ..question };
        check(&digest, false, HIDDEN_DIGEST, None, &[]);
    }

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
        for (status, text, why, retryable) in [
            (403, r#"{"error":"forbidden"}"#, "the ntfy server answered 403: forbidden", false),
            (429, "", "the ntfy server answered 429", true),
            (500, "<html>", "the ntfy server answered 500", true),
            (302, "", "the ntfy server answered 302", false),
        ] {
            assert_eq!(outcome(status, text), Err(SendError { why: why.into(), retryable }));
        }
    }
}
