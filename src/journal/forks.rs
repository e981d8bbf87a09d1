//! Interactive forks: conversations beside the main session, each until the person saves, reports or exits it.

use std::path::PathBuf;

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::rows::{Columns, kind, ms};
use super::updates::insert_report;
use super::{Journal, JournalError, RunId};
use crate::agent::SessionId;
use crate::definition::{DefinitionId, Kind};

/// How a fork ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkEnd {
    /// The fork becomes the main session.
    Save,
    /// A summary is given to the main session's next turn.
    Report,
    /// The fork is dropped.
    Exit,
}

impl ForkEnd {
    /// Returns the word in the journal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Report => "report",
            Self::Exit => "exit",
        }
    }

    /// Parses the word in the journal.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Save, Self::Report, Self::Exit].into_iter().find(|end| end.as_str() == word)
    }
}

/// A fork and its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForkRecord {
    /// Its id: `fork-1f0c9a2b`.
    pub id: DefinitionId,
    /// When it was opened.
    pub opened: DateTime<Utc>,
    /// The topic, as the person gave it.
    pub topic: Option<String>,
    /// The run whose conversation it continues; `None`: the main session's.
    pub from_run: Option<RunId>,
    /// The state of the main session when the fork was opened.
    pub main: Option<String>,
    /// The channel that it was opened on.
    pub channel: Option<String>,
    /// When the person last wrote in it.
    pub heard: DateTime<Utc>,
    /// When the person was reminded that it is idle.
    pub reminded: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
    /// How it ended, or is about to: a report is written before the end.
    pub how: Option<ForkEnd>,
}

/// The conversation of a run, which a later run can resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumable {
    /// The run.
    pub run: RunId,
    /// Its definition's id.
    pub id: DefinitionId,
    /// Its definition's kind.
    pub kind: Kind,
    /// The client's id of the conversation.
    pub session: SessionId,
    /// The client's transcript, once the run has ended.
    pub transcript: Option<PathBuf>,
    /// When the run ended.
    pub ended: Option<DateTime<Utc>>,
    /// The text of the definition's file when the run began.
    pub definition: Option<String>,
}

const FORKS: &str = "SELECT id, opened, topic, from_run, main, channel, heard, reminded, ended, how FROM fork";

impl Journal {
    /// Records an opened fork.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn open_fork(&self, fork: ForkRecord) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO fork (id, opened, topic, from_run, main, channel, heard)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![
                        fork.id.as_str(),
                        ms(fork.opened),
                        fork.topic,
                        fork.from_run.as_ref().map(RunId::as_str),
                        fork.main,
                        fork.channel,
                        ms(fork.heard),
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// Returns a fork; `None` if there is none with this id.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn fork(&self, id: &DefinitionId) -> Result<Option<ForkRecord>, JournalError> {
        let id = id.clone();
        self.writer
            .commit(move |connection| connection.one(&format!("{FORKS} WHERE id = ?1"), [id.as_str()], read))
            .await
    }

    /// Returns the open forks, the one in which the person wrote last first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn open_forks(&self) -> Result<Vec<ForkRecord>, JournalError> {
        self.writer
            .commit(move |connection| {
                connection.all(&format!("{FORKS} WHERE ended IS NULL ORDER BY heard DESC, id"), (), read)
            })
            .await
    }

    /// Records that the person writes in a fork, so it is not idle.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn heard_in_fork(&self, id: &DefinitionId) -> Result<(), JournalError> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "UPDATE fork SET heard = ?2, reminded = NULL WHERE id = ?1",
                    params![id.as_str(), ms(clock.now())],
                )?;
                Ok(())
            })
            .await
    }

    /// Records that the person was reminded of an idle fork.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn reminded_of_fork(&self, id: &DefinitionId) -> Result<(), JournalError> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                connection
                    .execute("UPDATE fork SET reminded = ?2 WHERE id = ?1", params![id.as_str(), ms(clock.now())])?;
                Ok(())
            })
            .await
    }

    /// Returns a fork's conversation after its last turn; `None` if it has had no turn.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn last_of_fork(&self, id: &DefinitionId) -> Result<Option<Resumable>, JournalError> {
        self.resumable(
            "SELECT run FROM run JOIN occurrence o ON o.number = occurrence JOIN session s ON s.id = o.id
             WHERE s.fork = ?1 AND transcript IS NOT NULL ORDER BY run.number DESC LIMIT 1",
            id.to_string(),
        )
        .await
    }

    /// Returns a run's conversation; `None` if it had none, or the run was deleted.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn conversation_of(&self, run: &RunId) -> Result<Option<Resumable>, JournalError> {
        self.resumable("SELECT ?1", run.to_string()).await
    }

    async fn resumable(&self, which: &'static str, of: String) -> Result<Option<Resumable>, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = format!(
                    "SELECT r.run, o.id, o.kind, r.session, r.transcript, r.ended, t.text FROM run r
                     JOIN occurrence o ON o.number = r.occurrence LEFT JOIN definition_text t ON t.number = o.text
                     WHERE r.run = ({which}) AND r.session IS NOT NULL"
                );
                let read = |row: &Row<'_>| -> Result<Resumable, JournalError> {
                    Ok(Resumable {
                        run: row.run("run")?,
                        id: row.id("id")?,
                        kind: kind(&row.get::<String>("kind")?)?,
                        session: SessionId(row.get("session")?),
                        transcript: row.get::<Option<String>>("transcript")?.map(PathBuf::from),
                        ended: row.maybe_at("ended")?,
                        definition: row.get("text")?,
                    })
                };
                connection.one(&sql, [&of], |row| Ok(read(row)))?.transpose()
            })
            .await
    }

    /// Takes back the planned end of a fork, since its report could not be written.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn keep_fork(&self, id: &DefinitionId) -> Result<(), JournalError> {
        let id = id.clone();
        self.writer
            .commit(move |connection| {
                connection.execute("UPDATE fork SET how = NULL WHERE id = ?1 AND ended IS NULL", [id.as_str()])?;
                Ok(())
            })
            .await
    }

    /// Records how an open fork is to end and, with `over`, that it has ended. Returns whether the
    /// fork was open and, without `over`, had no planned end.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_fork(&self, id: &DefinitionId, how: ForkEnd, over: bool) -> Result<bool, JournalError> {
        let (fork, clock) = (id.clone(), self.clock.clone());
        let ended =
            self.writer.commit(move |connection| end(connection, &fork, how, over.then(|| clock.now()))).await?;
        if ended && over {
            self.announce_end(id, how);
        }
        Ok(ended)
    }

    /// Returns a stream of the forks that end from now on, and how.
    #[must_use]
    pub fn ended_forks(&self) -> broadcast::Receiver<(DefinitionId, ForkEnd)> {
        self.ended_forks.subscribe()
    }

    fn announce_end(&self, id: &DefinitionId, how: ForkEnd) {
        // There may be no receiver.
        let _unseen = self.ended_forks.send((id.clone(), how));
    }

    /// Gives a fork's report to the main session and ends the fork. One commit, so that it is never reported twice.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn report_fork(&self, run: &RunId, fork: &DefinitionId, text: String) -> Result<(), JournalError> {
        let (id, ending, clock) = (run.clone(), fork.clone(), self.clock.clone());
        let ended = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                // The fork may have ended in another way meanwhile.
                let ended = end(connection, &ending, ForkEnd::Report, Some(now))?;
                if ended {
                    insert_report(connection, &id, &text, now)?;
                }
                Ok(ended)
            })
            .await?;
        self.marked_now(run);
        if ended {
            self.announce_end(fork, ForkEnd::Report);
        }
        Ok(())
    }
}

/// Implements [`Journal::end_fork`]. `at`: when the fork ended.
fn end(
    connection: &Connection,
    id: &DefinitionId,
    how: ForkEnd,
    at: Option<DateTime<Utc>>,
) -> Result<bool, JournalError> {
    let changed = connection.execute(
        "UPDATE fork SET how = ?2, ended = ?3 WHERE id = ?1 AND ended IS NULL AND (how IS NULL OR ?3 IS NOT NULL)",
        params![id.as_str(), how.as_str(), at.map(ms)],
    )?;
    Ok(changed > 0)
}

fn read(row: &Row<'_>) -> Result<ForkRecord, JournalError> {
    Ok(ForkRecord {
        id: row.id("id")?,
        opened: row.at("opened")?,
        topic: row.get("topic")?,
        from_run: row.get::<Option<String>>("from_run")?.map(RunId::new),
        main: row.get("main")?,
        channel: row.get("channel")?,
        heard: row.at("heard")?,
        reminded: row.maybe_at("reminded")?,
        ended: row.maybe_at("ended")?,
        how: row.get::<Option<String>>("how")?.as_deref().and_then(ForkEnd::of),
    })
}
