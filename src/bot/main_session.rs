//! The main session: the one long-lived conversation. It has one turn at a time, and the journal stores its id.
//!
//! A client resumes the session, and stays for the next turns. None of the conversation exists only in its memory.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::agent::{RESUMED, SessionId, open_transcript};
use crate::definition::Thinking;
use crate::journal::{Journal, JournalError};

/// The journal's setting that stores it.
pub const SETTING: &str = "main_session";

/// The journal's setting that stores the conversations before it, newest first.
pub const EARLIER: &str = "earlier_sessions";

/// Maximum number of earlier conversations that can be resumed.
const MAX_EARLIER: usize = 50;

/// The person's message for `/compact`: in this turn the client compacts the conversation, and the model does not answer.
pub const MAKE_SHORTER: &str = "[make the conversation shorter]";

/// The conversation, and its transcript on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The client's session id.
    pub session: SessionId,
    /// The client's own transcript, once a turn has ended.
    pub transcript: Option<PathBuf>,
}

/// A conversation that the person has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierConversation {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: Conversation,
    /// When the person left it.
    pub left: DateTime<Utc>,
}

impl EarlierConversation {
    /// Reads the value of the setting [`EARLIER`].
    #[must_use]
    pub fn all(stored: Option<String>) -> Vec<Self> {
        stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// The message to the person if a turn completed without an answer.
pub const NO_ANSWER: &str = "(no answer: the model said nothing)";

/// The journal's setting that stores the person's [`Choice`].
const CHOICE: &str = "main_choice";

/// The value for the default of the settings, or of the client if they have none. The client knows this word, too.
pub const DEFAULT: &str = "default";

/// The person's choice for their conversation. It overrides the settings until the person takes it back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The model; [`DEFAULT`] for that of the settings. A client that gets none continues with that of the session.
    #[serde(default)]
    pub model: Option<String>,
    /// The thinking mode.
    #[serde(default)]
    pub thinking: Option<Thinking>,
}

impl Choice {
    /// Returns the model for a turn. `settings` is the model of the settings.
    #[must_use]
    pub fn model(&self, settings: Option<String>) -> Option<String> {
        match &self.model {
            Some(model) if model == DEFAULT => settings.or_else(|| self.model.clone()),
            Some(model) => Some(model.clone()),
            None => settings,
        }
    }

    /// Returns the choice in words.
    #[must_use]
    pub fn words(&self) -> String {
        let model = self.model.as_deref().filter(|model| *model != DEFAULT).unwrap_or("as the settings say");
        let thinking = match self.thinking {
            None => "as the settings say".to_owned(),
            Some(Thinking::Adaptive) => "on".to_owned(),
            Some(Thinking::Disabled) => "off".to_owned(),
            Some(Thinking::Budget(tokens)) => format!("at most {tokens} tokens"),
        };
        // Only the model's provider has the list, and a gateway has names of its own.
        let is_usual = |name: &str| ["haiku", "opus", "sonnet"].contains(&name) || name.starts_with("claude-");
        let unknown = self.model.as_deref().filter(|name| *name != DEFAULT && !is_usual(name));
        let doubt = unknown.map_or(
            "",
            |_| "\nThe next answer shows whether there is such a model. `/model default` takes the choice back.",
        );
        format!("model: {model}\nthinking: {thinking}{doubt}")
    }
}

/// The bot's main session. Clones share it.
#[derive(Clone)]
pub struct MainSession {
    journal: Journal,
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Whether the person began a new conversation during a turn of the old one. Locked while a conversation is stored.
    is_left: Arc<tokio::sync::Mutex<bool>>,
    current: Arc<Mutex<Option<Conversation>>>,
    /// Time of the person's last message.
    heard: Arc<Mutex<Option<DateTime<Utc>>>>,
    choice: Arc<Mutex<Choice>>,
}

/// Time after the person's last message during which they count as being in a conversation.
const CONVERSATION: TimeDelta = TimeDelta::minutes(2);

/// The right to run a turn. The next turn waits until it is dropped.
pub struct Turn<'a> {
    session: &'a MainSession,
    _guard: tokio::sync::MutexGuard<'a, ()>,
}

impl MainSession {
    /// Loads the session from the journal, if there is one.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn load(journal: Journal) -> Result<Self, JournalError> {
        let stored = journal.setting(SETTING).await?;
        let current = stored.and_then(|text| serde_json::from_str(&text).ok());
        let current = Arc::new(Mutex::new(current));
        let choice = journal.setting(CHOICE).await?.and_then(|text| serde_json::from_str(&text).ok());
        let choice = Arc::new(Mutex::new(choice.unwrap_or_default()));
        Ok(Self { journal, turn: Arc::default(), is_left: Arc::default(), current, heard: Arc::default(), choice })
    }

    /// Loads the session again, after another host has had the main session.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn reload(&self) -> Result<(), JournalError> {
        let fresh = Self::load(self.journal.clone()).await?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = fresh.current();
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = fresh.choice();
        Ok(())
    }

    /// Returns the person's choice.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the person's choice, which applies from the next turn on.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub async fn choose(&self, choice: Choice) -> Result<(), JournalError> {
        let text = serde_json::to_string(&choice).ok().filter(|_| choice != Choice::default());
        self.journal.set_setting(CHOICE, text).await?;
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = choice;
        Ok(())
    }

    /// Returns the client's session id; `None` if the session has not begun.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        self.current().map(|conversation| conversation.session)
    }

    /// Whether the person is in a conversation: a turn is running, or they wrote in the last two minutes.
    #[must_use]
    pub fn is_busy(&self, now: DateTime<Utc>) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.turn.try_lock().is_err() || heard.is_some_and(|at| at <= now && now - at < CONVERSATION)
    }

    /// Records that the person has sent a message.
    pub fn note_message(&self, now: DateTime<Utc>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Begins a new conversation at once. A running turn ends in the old conversation, as its last.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub async fn begin_conversation(&self, now: DateTime<Utc>) -> Result<(), JournalError> {
        self.change_to(None, now).await
    }

    /// Continues an earlier conversation, named by its session id or by the beginning of it. Returns it; `None` if no single one is
    /// meant. The conversation until now becomes an earlier one. A running turn ends in that, as its last.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    pub async fn resume(&self, name: &str, now: DateTime<Utc>) -> Result<Option<Conversation>, JournalError> {
        let earlier = self.earlier().await?.into_iter().map(|earlier| earlier.conversation);
        let mut named = earlier.filter(|one| one.session.0.starts_with(name));
        let (Some(conversation), None) = (named.next(), named.next()) else { return Ok(None) };
        self.change_to(Some(conversation.clone()), now).await?;
        Ok(Some(conversation))
    }

    async fn earlier(&self) -> Result<Vec<EarlierConversation>, JournalError> {
        Ok(EarlierConversation::all(self.journal.setting(EARLIER).await?))
    }

    /// Leaves the conversation at once, for another or a new one.
    async fn change_to(&self, next: Option<Conversation>, now: DateTime<Utc>) -> Result<(), JournalError> {
        let mut is_left = self.is_left.lock().await;
        let mut earlier = self.earlier().await?;
        let current = self.current();
        // If the service is killed in between, a conversation is listed twice rather than lost.
        earlier.retain(|one| {
            [&current, &next].into_iter().flatten().all(|known| known.session != one.conversation.session)
        });
        earlier.splice(0..0, current.map(|conversation| EarlierConversation { conversation, left: now }));
        earlier.truncate(MAX_EARLIER);
        self.journal.set_setting(EARLIER, serde_json::to_string(&earlier).ok()).await?;
        self.set(next).await?;
        *is_left = self.turn.try_lock().is_err();
        Ok(())
    }

    /// Waits for the previous turn to end, then holds the session.
    pub async fn turn(&self) -> Turn<'_> {
        let guard = self.turn.lock().await;
        *self.is_left.lock().await = false;
        Turn { session: self, _guard: guard }
    }

    /// Copies the transcript up to its last complete line to `main.jsonl` in `run_dir`, for a fork to resume. Returns
    /// `None` if there is nothing to fork. The transcript itself is only read.
    ///
    /// # Errors
    /// If the copy cannot be written.
    pub fn snapshot(&self, run_dir: &Path) -> io::Result<Option<PathBuf>> {
        let Some(transcript) = self.current().and_then(|conversation| conversation.transcript) else { return Ok(None) };
        copy_transcript(&transcript, run_dir)
    }

    /// Returns a text that changes whenever the conversation continues; `None` if there is none.
    #[must_use]
    pub fn mark(&self) -> Option<String> {
        let Conversation { session, transcript } = self.current()?;
        let length = transcript.and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
        Some(format!("{session} {length}"))
    }

    /// Makes another conversation the main session, after the running turn. With `expected`, only if [`Self::mark`]
    /// still returns that. Returns whether it did.
    ///
    /// # Errors
    /// If the journal cannot be written.
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

    /// Stores the conversation durably. Called within a turn.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub async fn save(&self, session: SessionId, transcript: Option<PathBuf>) -> Result<(), JournalError> {
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
    /// If the journal cannot be written.
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

/// Copies a transcript up to its last complete line to `main.jsonl` in `run_dir`. Returns `None` if there is nothing to copy.
///
/// # Errors
/// If the transcript cannot be read, or the copy cannot be written.
pub fn copy_transcript(transcript: &Path, run_dir: &Path) -> io::Result<Option<PathBuf>> {
    let mut text = Vec::new();
    match open_transcript(transcript).and_then(|mut file| file.read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if whole == 0 {
        return Ok(None);
    }
    let copy = run_dir.join(RESUMED);
    std::fs::File::create_new(&copy)?.write_all(&text[..whole])?;
    Ok(Some(copy))
}

impl Turn<'_> {
    /// Returns the session to resume; `None` to begin a new one.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session.current().map(|conversation| conversation.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test(start_paused = true)]
    async fn a_person_is_in_a_conversation_for_two_minutes_after_their_message() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let place = crate::journal::testing::place(&folder.path().join("journal.db"));
        let main = MainSession::load(Journal::open(place, clock.clone()).unwrap()).await.unwrap();
        let now = clock.now();
        assert!(!main.is_busy(now));
        main.note_message(now);
        let after = |seconds| main.is_busy(now + TimeDelta::seconds(seconds));
        assert_eq!([0, 119, 120].map(after), [true, true, false]);
        assert!(!after(-1), "the clock was set back");
        let turn = main.turn().await;
        assert!(after(120));
        drop(turn);
        assert!(!after(120));
    }
}
