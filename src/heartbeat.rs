//! Heartbeats: tells a monitor such as healthchecks.io that something began, worked or failed. What falls silent is noticed there,
//! whatever became of this machine.
//!
//! Nobody waits for a monitor: each URL has a task of its own that sends its beats in order, and gives up after a few tries.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

/// So long one try may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A beat that was not taken is sent again after these.
const AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];
/// So many are sent at once: each holds a thread.
const AT_ONCE: usize = 8;

/// What a monitor is told, with a few words for a person who reads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It begins: `URL/start`.
    Start,
    /// It has worked, or is alive: `URL`.
    Success,
    /// It has failed: `URL/fail`.
    Fail(String),
    /// Something to know: `URL/log`.
    Note(String),
}

impl Beat {
    fn suffix(&self) -> &'static str {
        match self {
            Self::Start => "/start",
            Self::Success => "",
            Self::Fail(_) => "/fail",
            Self::Note(_) => "/log",
        }
    }

    fn words(&self) -> &str {
        match self {
            Self::Start | Self::Success => "",
            Self::Fail(words) | Self::Note(words) => words,
        }
    }
}

/// Sends beats. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    agent: ureq::Agent,
    at_once: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Default for Heartbeats {
    fn default() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("ollim-bot/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), at_once: Arc::new(Semaphore::new(AT_ONCE)), tasks: TaskTracker::new() }
    }
}

impl Heartbeats {
    /// The beats of one URL, whose owner is called `of` in the log. Must be called within a tokio runtime.
    #[must_use]
    pub fn of(&self, url: &str, of: &str) -> Heart {
        let (heart, mut beats) = mpsc::unbounded_channel();
        let (this, url, of) = (self.clone(), url.to_owned(), of.to_owned());
        self.tasks.spawn(async move {
            while let Some(beat) = beats.recv().await {
                this.send(&url, &of, beat).await;
            }
        });
        Heart(heart)
    }

    /// Waits until every heart that was dropped has sent what it was given, no longer than this.
    pub async fn finish(&self, at_most: Duration) {
        self.tasks.close();
        if timeout(at_most, self.tasks.wait()).await.is_err() {
            tracing::warn!("a monitor does not answer; it is not told how things ended");
        }
    }

    async fn send(&self, url: &str, of: &str, beat: Beat) {
        let address = address(url, beat.suffix());
        let mut pauses = AGAIN_AFTER.iter();
        loop {
            let Ok(place) = self.at_once.acquire().await else { return };
            let (agent, address, words) = (self.agent.clone(), address.clone(), beat.words().to_owned());
            let sent = tokio::task::spawn_blocking(move || agent.post(&address).send(&words).map(drop)).await;
            drop(place);
            let why = match sent {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            // The URL itself is a secret: who knows it can keep the monitor quiet.
            match pauses.next() {
                Some(pause) => {
                    tracing::debug!(of, host = host(url), why, "a heartbeat was not taken; it is sent again");
                    sleep(*pause).await;
                }
                None => {
                    tracing::warn!(of, host = host(url), why, "a heartbeat was not taken");
                    return;
                }
            }
        }
    }
}

/// One URL. What it was given is sent also after it is dropped.
#[derive(Clone, Debug)]
pub struct Heart(mpsc::UnboundedSender<Beat>);

impl Heart {
    /// Sends a beat after those before it. Returns at once.
    pub fn beat(&self, beat: Beat) {
        // Its task ends with the runtime only.
        let _ended = self.0.send(beat);
    }
}

/// The URL with a suffix to its path.
fn address(url: &str, suffix: &str) -> String {
    let (path, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if suffix.is_empty() { url.to_owned() } else { format!("{}{suffix}{rest}", path.trim_end_matches('/')) }
}

/// A URL for whoever may know that it is called, and must not call it: `https://hc-ping.com/…`.
#[must_use]
pub fn shown(url: &str) -> String {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    format!("{scheme}://{}/…", host(url))
}

/// The host in a URL, without a login.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_belongs_to_the_path() {
        for (url, suffix, expect) in [
            ("https://hc-ping.com/uuid", "", "https://hc-ping.com/uuid"),
            ("https://hc-ping.com/uuid", "/start", "https://hc-ping.com/uuid/start"),
            ("https://hc-ping.com/uuid/", "/fail", "https://hc-ping.com/uuid/fail"),
            ("http://x/key/slug?create=1", "/fail", "http://x/key/slug/fail?create=1"),
        ] {
            assert_eq!(address(url, suffix), expect);
        }
    }

    #[test]
    fn a_log_names_the_host_alone() {
        for url in ["https://hc-ping.com/secret", "https://me:secret@hc-ping.com?secret", "hc-ping.com#secret"] {
            assert_eq!(host(url), "hc-ping.com");
        }
        assert_eq!(shown("https://me:secret@hc-ping.com/secret?secret"), "https://hc-ping.com/…");
    }
}
