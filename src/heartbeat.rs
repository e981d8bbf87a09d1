//! Heartbeats: tell a monitor such as healthchecks.io that something began, worked or failed. The monitor notices
//! silence, even if this machine is gone.
//!
//! Nobody waits for a monitor: each URL has its own task, which sends its beats in order and gives up after a few tries.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

/// Timeout of one try.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses before a failed beat is sent again.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];
/// Maximum number of concurrent sends, since each occupies a thread.
const MAX_CONCURRENT: usize = 8;

/// A message to a monitor, with a few words for the person who reads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The job begins: `URL/start`.
    Start,
    /// The job has worked, or the service is alive: `URL`.
    Success,
    /// The job has failed: `URL/fail`.
    Fail(String),
    /// A note: `URL/log`.
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
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("ollim-bot/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), at_once: Arc::new(Semaphore::new(MAX_CONCURRENT)), tasks: TaskTracker::new() }
    }
}

impl Heartbeats {
    /// Returns the sender for one URL, whose owner the log calls `of`. Must be called within a tokio runtime.
    #[must_use]
    pub fn of(&self, url: &str, of: &str) -> HeartbeatSender {
        let (heart, mut beats) = mpsc::unbounded_channel();
        let (this, url, of) = (self.clone(), url.to_owned(), of.to_owned());
        self.tasks.spawn(async move {
            while let Some(beat) = beats.recv().await {
                this.send(&url, &of, beat).await;
            }
        });
        HeartbeatSender(heart)
    }

    /// Waits until every dropped heart has sent its beats, but at most `at_most`.
    pub async fn finish(&self, at_most: Duration) {
        self.tasks.close();
        if timeout(at_most, self.tasks.wait()).await.is_err() {
            tracing::warn!("a monitor does not answer; it is not told how things ended");
        }
    }

    async fn send(&self, url: &str, of: &str, beat: Beat) {
        let address = address(url, beat.suffix());
        let mut pauses = RETRY_DELAYS.iter();
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
            // The URL itself is a secret: with it, anybody could silence the monitor.
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

/// The sender for one URL. Its beats are sent even after it is dropped.
#[derive(Clone, Debug)]
pub struct HeartbeatSender(mpsc::UnboundedSender<Beat>);

impl HeartbeatSender {
    /// Sends a beat after the previous ones. Returns at once.
    pub fn beat(&self, beat: Beat) {
        // The task ends only with the runtime.
        let _ended = self.0.send(beat);
    }
}

/// Appends a suffix to the URL's path.
fn address(url: &str, suffix: &str) -> String {
    let (path, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if suffix.is_empty() { url.to_owned() } else { format!("{}{suffix}{rest}", path.trim_end_matches('/')) }
}

/// Returns a URL for readers who may know that it is called, but must not call it: `https://hc-ping.com/…`.
#[must_use]
pub fn shown(url: &str) -> String {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    format!("{scheme}://{}/…", host(url))
}

/// Returns the host of a URL, without a login.
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
