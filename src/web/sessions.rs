//! Who is logged in: sessions, of which the journal keeps the hashes.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::hexadecimal::sha256;
use crate::journal::{Journal, JournalError};

/// How long a session lasts.
pub const LASTS: TimeDelta = TimeDelta::days(30);

/// So many sessions are kept, the newest.
const KEPT: usize = 20;

/// The journal keeps them under this name.
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
    /// Those that the journal keeps.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn load(journal: Journal) -> Result<Self, JournalError> {
        let kept = journal.setting(SETTING).await?;
        let known = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self { known: Arc::new(Mutex::new(known)), changed: watch::Sender::new(()), journal })
    }

    /// Begins one: its token.
    pub(super) async fn begin(&self, now: DateTime<Utc>) -> Result<String, String> {
        let token = agent_sandbox::token::random().map_err(|error| error.to_string())?;
        let session = Session { hash: hash(&token), until: now + LASTS };
        self.change(|known| {
            known.retain(|one| one.until > now);
            known.push(session);
            let surplus = known.len().saturating_sub(KEPT);
            known.drain(..surplus);
        })
        .await?;
        Ok(token)
    }

    /// Whether a token is that of a session.
    pub(super) fn has(&self, token: &str, now: DateTime<Utc>) -> bool {
        let hash = hash(token);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|one| one.hash == hash && one.until > now)
    }

    /// Tells when a session has begun or ended.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Ends one.
    pub(super) async fn end(&self, token: &str) -> Result<(), String> {
        let hash = hash(token);
        self.change(|known| known.retain(|one| one.hash != hash)).await
    }

    /// Ends all of them.
    ///
    /// # Errors
    /// When the journal cannot keep that.
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

/// The token that a session's forms carry. Who knows it does not know the session's.
pub(super) fn form_token(session: &str) -> String {
    hash(&format!("form {session}"))
}

/// SHA-256, in hexadecimal.
#[must_use]
pub fn hash(text: &str) -> String {
    sha256(text.as_bytes())
}
