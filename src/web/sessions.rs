//! The sessions of logged-in browsers. The journal keeps only the hashes of their tokens.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::hexadecimal::sha256;
use crate::journal::{Journal, JournalError};

/// Lifetime of a session.
pub const LIFETIME: TimeDelta = TimeDelta::days(30);

/// Maximum number of sessions. The newest are kept.
const MAX_SESSIONS: usize = 20;

/// The setting in the journal that keeps the sessions.
const SETTING: &str = "web_sessions";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Session {
    hash: String,
    until: DateTime<Utc>,
}

/// The sessions. Clones share them.
#[derive(Clone)]
pub struct Sessions {
    known: Arc<Mutex<Vec<Session>>>,
    changed: watch::Sender<()>,
    journal: Journal,
}

impl Sessions {
    /// Loads the sessions that the journal keeps.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn load(journal: Journal) -> Result<Self, JournalError> {
        let kept = journal.setting(SETTING).await?;
        let known = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self { known: Arc::new(Mutex::new(known)), changed: watch::Sender::new(()), journal })
    }

    /// Begins a session and returns its token.
    pub(super) async fn begin(&self, now: DateTime<Utc>) -> Result<String, String> {
        let token = agent_sandbox::token::random().map_err(|error| error.to_string())?;
        let session = Session { hash: hash(&token), until: now + LIFETIME };
        self.change(|known| {
            known.retain(|one| one.until > now);
            known.push(session);
            let surplus = known.len().saturating_sub(MAX_SESSIONS);
            known.drain(..surplus);
        })
        .await?;
        Ok(token)
    }

    /// Returns whether a token belongs to a session.
    pub(super) fn has(&self, token: &str, now: DateTime<Utc>) -> bool {
        let hash = hash(token);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|one| one.hash == hash && one.until > now)
    }

    /// Subscribes to begins and ends of sessions.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Ends the session with this token.
    pub(super) async fn end(&self, token: &str) -> Result<(), String> {
        let hash = hash(token);
        self.change(|known| known.retain(|one| one.hash != hash)).await
    }

    /// Ends all sessions.
    ///
    /// # Errors
    /// If the journal cannot record that.
    pub async fn end_all(&self) -> Result<(), String> {
        self.change(Vec::clear).await
    }

    async fn change(&self, change: impl FnOnce(&mut Vec<Session>)) -> Result<(), String> {
        let kept = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut known);
            self.changed.send_replace(());
            serde_json::to_string(&*known).map_err(|error| error.to_string())?
        };
        self.journal.set_setting(SETTING, Some(kept)).await.map_err(|error| error.to_string())
    }
}

/// Returns the token that a session's forms carry. It does not reveal the session's token.
pub(super) fn form_token(session: &str) -> String {
    hash(&format!("form {session}"))
}

/// Returns the SHA-256 of a text, in hexadecimal.
#[must_use]
pub fn hash(text: &str) -> String {
    sha256(text.as_bytes())
}
