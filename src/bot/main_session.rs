//! The main session: the one long-lived conversation. One turn at a time; its id is kept in the journal.
//!
//! A client resumes the session, and stays for the next turns: nothing of the conversation lives only in its memory.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::agent::SessionId;
use crate::definition::Thinking;
use crate::journal::{Journal, JournalError};

/// Where the journal keeps it.
pub const SETTING: &str = "main_session";

/// What the person says by `/compact`: a turn in which the client makes the conversation shorter, and the model answers nothing.
pub const MAKE_SHORTER: &str = "[make the conversation shorter]";

/// The conversation and its transcript on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The client's id of it.
    pub session: SessionId,
    /// The client's own transcript, once a turn has ended.
    pub transcript: Option<PathBuf>,
}

/// What the person reads where a turn has ended well and nothing was said in it.
pub const NO_ANSWER: &str = "(no answer: the model said nothing)";

/// Where the journal keeps the person's [`Choice`].
const CHOICE: &str = "main_choice";

/// What the settings say, or the client where they say nothing; a client knows this word as well.
pub const DEFAULT: &str = "default";

/// What the person has chosen for their conversation, which goes before the settings until they take it back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The model; [`DEFAULT`]: the settings' again. A client that is told of none goes on with that of the session.
    #[serde(default)]
    pub model: Option<String>,
    /// How it thinks.
    #[serde(default)]
    pub thinking: Option<Thinking>,
}

impl Choice {
    /// The model of a turn, where the settings name this one.
    #[must_use]
    pub fn model(&self, settings: Option<String>) -> Option<String> {
        match &self.model {
            Some(model) if model == DEFAULT => settings.or_else(|| self.model.clone()),
            Some(model) => Some(model.clone()),
            None => settings,
        }
    }

    /// What holds, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let model = self.model.as_deref().filter(|model| *model != DEFAULT).unwrap_or("as the settings say");
        let thinking = match self.thinking {
            None => "as the settings say".to_owned(),
            Some(Thinking::Adaptive) => "on".to_owned(),
            Some(Thinking::Disabled) => "off".to_owned(),
            Some(Thinking::Budget(tokens)) => format!("at most {tokens} tokens"),
        };
        format!("model: {model}\nthinking: {thinking}")
    }
}

/// The bot's main session. Clones share it.
#[derive(Clone)]
pub struct MainSession {
    journal: Journal,
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Whether the person has begun a new conversation while a turn of the old one goes. Held while either is stored.
    is_left: Arc<tokio::sync::Mutex<bool>>,
    current: Arc<Mutex<Option<Conversation>>>,
    /// When the person said something last.
    heard: Arc<Mutex<Option<DateTime<Utc>>>>,
    choice: Arc<Mutex<Choice>>,
}

/// So long after the person's last message they are taken to be in the middle of a conversation.
const CONVERSATION: TimeDelta = TimeDelta::minutes(2);

/// The right to do a turn; the next one waits until it is dropped.
pub struct Turn<'a> {
    session: &'a MainSession,
    _guard: tokio::sync::MutexGuard<'a, ()>,
}

impl MainSession {
    /// The session that the journal knows, if there is one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn load(journal: Journal) -> Result<Self, JournalError> {
        let stored = journal.setting(SETTING).await?;
        let current = stored.and_then(|text| serde_json::from_str(&text).ok());
        let current = Arc::new(Mutex::new(current));
        let choice = journal.setting(CHOICE).await?.and_then(|text| serde_json::from_str(&text).ok());
        let choice = Arc::new(Mutex::new(choice.unwrap_or_default()));
        Ok(Self { journal, turn: Arc::default(), is_left: Arc::default(), current, heard: Arc::default(), choice })
    }

    /// Reads again what the journal knows: another host has had the main session meanwhile.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn reload(&self) -> Result<(), JournalError> {
        let fresh = Self::load(self.journal.clone()).await?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = fresh.current();
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = fresh.choice();
        Ok(())
    }

    /// What the person has chosen.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The person chooses: it holds from the next turn on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn choose(&self, choice: Choice) -> Result<(), JournalError> {
        let text = serde_json::to_string(&choice).ok().filter(|_| choice != Choice::default());
        self.journal.set_setting(CHOICE, text).await?;
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = choice;
        Ok(())
    }

    /// The client's id of it; `None`: it has not begun.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        self.current().map(|conversation| conversation.session)
    }

    /// Whether the person is in the middle of a conversation: a turn is going, or they wrote in the last two minutes.
    #[must_use]
    pub fn is_busy(&self, now: DateTime<Utc>) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.turn.try_lock().is_err() || heard.is_some_and(|at| at <= now && now - at < CONVERSATION)
    }

    /// The person says something.
    pub fn hear(&self, now: DateTime<Utc>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Begins a new conversation at once. A turn that is going ends in the old one, and is the last in it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn begin_anew(&self) -> Result<(), JournalError> {
        let mut is_left = self.is_left.lock().await;
        self.set(None).await?;
        *is_left = self.turn.try_lock().is_err();
        Ok(())
    }

    /// Waits for the turn before, then has the session for itself.
    pub async fn turn(&self) -> Turn<'_> {
        let guard = self.turn.lock().await;
        *self.is_left.lock().await = false;
        Turn { session: self, _guard: guard }
    }

    /// A copy of the transcript up to its last whole line, for a fork to resume, as `main.jsonl` in `run_dir`.
    /// `None` while there is nothing to fork. The transcript itself is only read.
    ///
    /// # Errors
    /// When the copy cannot be written.
    pub fn snapshot(&self, run_dir: &Path) -> io::Result<Option<PathBuf>> {
        let Some(transcript) = self.current().and_then(|conversation| conversation.transcript) else { return Ok(None) };
        copy_transcript(&transcript, run_dir)
    }

    /// How the conversation stands: another text once it has gone on. `None` while there is none.
    #[must_use]
    pub fn mark(&self) -> Option<String> {
        let Conversation { session, transcript } = self.current()?;
        let length = transcript.and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
        Some(format!("{session} {length}"))
    }

    /// Makes another conversation the main session, after the turn that is going. `expected`: only if it then still stands
    /// [so](Self::mark). Returns whether it did.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn replace(
        &self,
        session: SessionId,
        transcript: PathBuf,
        expected: Option<&Option<String>>,
    ) -> Result<bool, JournalError> {
        let _turn = self.turn.lock().await;
        if expected.is_some_and(|expected| *expected != self.mark()) {
            return Ok(false);
        }
        self.set(Some(Conversation { session, transcript: Some(transcript) })).await?;
        Ok(true)
    }

    /// Keeps what is known of the conversation, durably. Called within a turn.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn keep(&self, session: SessionId, transcript: Option<PathBuf>) -> Result<(), JournalError> {
        let is_left = self.is_left.lock().await;
        if *is_left {
            return Ok(());
        }
        let before = self.current().filter(|conversation| conversation.session == session);
        let transcript = transcript.or_else(|| before.and_then(|conversation| conversation.transcript));
        self.set(Some(Conversation { session, transcript })).await
    }

    /// Forgets a conversation that can no longer be resumed. Called within a turn.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn forget(&self) -> Result<(), JournalError> {
        self.set(None).await
    }

    fn current(&self) -> Option<Conversation> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn set(&self, conversation: Option<Conversation>) -> Result<(), JournalError> {
        if self.current() == conversation {
            return Ok(());
        }
        let text = conversation.as_ref().and_then(|conversation| serde_json::to_string(conversation).ok());
        self.journal.set_setting(SETTING, text).await?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = conversation;
        Ok(())
    }
}

/// A copy of a transcript up to its last whole line, as `main.jsonl` in `run_dir`. `None` where there is nothing to copy.
///
/// # Errors
/// When the copy cannot be written.
pub fn copy_transcript(transcript: &Path, run_dir: &Path) -> io::Result<Option<PathBuf>> {
    let text = match std::fs::read(transcript) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if whole == 0 {
        return Ok(None);
    }
    let copy = run_dir.join("main.jsonl");
    std::fs::File::create_new(&copy)?.write_all(&text[..whole])?;
    Ok(Some(copy))
}

impl Turn<'_> {
    /// The session to resume; `None`: a new one begins.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session.current().map(|conversation| conversation.session)
    }
}
