//! Sessions of spawned agents: the caller, the definition and the tool policy of each.
//!
//! A session has one occurrence with the same id. Its policy is set once and never changes.

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, Utc};

use super::rows::{Columns, ms, state, time};
use super::{Journal, JournalError, JournalReader, RunId, RunState};
use crate::definition::DefinitionId;

/// A session to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The id of the session and of its occurrence.
    pub id: DefinitionId,
    /// The run that starts it; `None`: the person starts it.
    pub by: Option<RunId>,
    /// The caller in words: `routine email-triage`, `the user`.
    pub caller: String,
    /// The agent that the caller runs as.
    pub caller_agent: Option<String>,
    /// The definition, in the form of a file.
    pub definition: String,
    /// The tool policy at the start, as JSON; `None`: none.
    pub spawn_tool_policy: Option<String>,
    /// For a turn, the fork that it belongs to; `None`: the main session.
    pub fork: Option<DefinitionId>,
}

/// The outcome of starting a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStart {
    /// The session is recorded.
    Recorded,
    /// The run has started this many already.
    TooManyByRun(u32),
    /// This many sessions are running or waiting.
    TooManyOpen(u32),
    /// There is a session with this id already.
    Already,
}

/// The outcome of setting a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPolicyResult {
    /// The policy is recorded.
    Recorded,
    /// There is no such session.
    NotFound,
    /// The session has a policy already.
    Already,
    /// The session has ended.
    Ended,
}

/// A session and its current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: DefinitionId,
    /// When it was started.
    pub created: DateTime<Utc>,
    /// The run that started it; `None`: the person started it.
    pub by: Option<RunId>,
    /// The caller in words.
    pub caller: String,
    /// The agent that the caller ran as.
    pub caller_agent: Option<String>,
    /// Its definition.
    pub definition: String,
    /// Its tool policy, as JSON.
    pub spawn_tool_policy: Option<String>,
    /// The last attempt, once there is one.
    pub run: Option<RunId>,
    /// The state of that attempt.
    pub state: Option<RunState>,
    /// Whether the session has its outcome.
    pub ended: bool,
    /// The last text of its agent.
    pub answer: Option<String>,
    /// Why it did not do its work.
    pub error: Option<String>,
    /// For a turn, the fork that it belongs to; `None`: the main session.
    pub fork: Option<DefinitionId>,
}

const SESSIONS: &str = "
SELECT s.id, s.created, s.by_run, s.caller, s.caller_agent, s.definition, s.spawn_tool_policy, s.fork,
  r.run, r.state, r.answer, r.error, o.outcome IS NOT NULL AS ended
FROM session s
LEFT JOIN occurrence o ON o.id = s.id
LEFT JOIN run r ON r.occurrence = o.number AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)";

impl Journal {
    /// Records a session, unless its run has started `by_run` sessions already, or `open` sessions have not ended.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn start_session(&self, new: NewSession, by_run: u32, open: u32) -> Result<SessionStart, JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let count = |sql: &str, values: &[&dyn ToValue]| connection.row(sql, values, |row| row.get::<u32>(0));
                if count("SELECT count(*) FROM session WHERE id = ?1", &[&new.id.as_str()])? > 0 {
                    return Ok(SessionStart::Already);
                }
                if let Some(run) = &new.by {
                    let made = count("SELECT count(*) FROM session WHERE by_run = ?1", &[&run.as_str()])?;
                    if made >= by_run {
                        return Ok(SessionStart::TooManyByRun(made));
                    }
                }
                let going = count(
                    "SELECT count(*) FROM session s LEFT JOIN occurrence o ON o.id = s.id WHERE o.outcome IS NULL",
                    &[],
                )?;
                // The person and the main session always have places left.
                let open = if new.by.is_some() { open - open / 4 } else { open };
                if going >= open {
                    return Ok(SessionStart::TooManyOpen(going));
                }
                connection.execute(
                        "INSERT INTO session (id, created, by_run, caller, caller_agent, definition, spawn_tool_policy, fork)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", params![
                        new.id.as_str(),
                        ms(clock.now()),
                        new.by.as_ref().map(RunId::as_str),
                        new.caller,
                        new.caller_agent,
                        new.definition,
                        new.spawn_tool_policy,
                        new.fork.as_ref().map(DefinitionId::as_str),
                    ])?;
                Ok(SessionStart::Recorded)
            })
            .await
    }

    /// Gives a session its tool policy, once.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_spawn_tool_policy(
        &self,
        id: &DefinitionId,
        policy: String,
    ) -> Result<SetPolicyResult, JournalError> {
        let id = id.clone();
        self.writer
            .commit(move |connection| {
                let Some(session) = one(connection, &id)? else { return Ok(SetPolicyResult::NotFound) };
                if session.spawn_tool_policy.is_some() {
                    return Ok(SetPolicyResult::Already);
                }
                if session.ended {
                    return Ok(SetPolicyResult::Ended);
                }
                connection.execute(
                    "UPDATE session SET spawn_tool_policy = ?2 WHERE id = ?1 AND spawn_tool_policy IS NULL",
                    params![id.as_str(), policy],
                )?;
                Ok(SetPolicyResult::Recorded)
            })
            .await
    }

    /// Returns a session; `None` if there is none with this id.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn session(&self, id: &DefinitionId) -> Result<Option<SessionRecord>, JournalError> {
        let id = id.clone();
        self.writer.commit(move |connection| one(connection, &id)).await
    }

    /// Returns the sessions of this host that have not ended, in the order in which they were started.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn open_sessions(&self) -> Result<Vec<SessionRecord>, JournalError> {
        self.writer
            .commit(move |connection| {
                let open = format!(
                    "{SESSIONS} WHERE o.outcome IS NULL AND o.host IS NOT DISTINCT FROM ?1 ORDER BY s.created, s.id"
                );
                connection.all(&open, [connection.host()], session)
            })
            .await
    }
}

impl JournalReader {
    /// Returns the sessions of spawned agents, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn sessions(&self) -> Result<Vec<SessionRecord>, JournalError> {
        self.all(&format!("{SESSIONS} ORDER BY s.created DESC, s.id"), &[], session)
    }
}

fn one(connection: &Connection, id: &DefinitionId) -> Result<Option<SessionRecord>, JournalError> {
    let found = connection.one(&format!("{SESSIONS} WHERE s.id = ?1"), [id.as_str()], |row| Ok(session(row)))?;
    found.transpose()
}

fn session(row: &Row<'_>) -> Result<SessionRecord, JournalError> {
    Ok(SessionRecord {
        id: row.id("id")?,
        created: time(row.get("created")?)?,
        by: row.get::<Option<String>>("by_run")?.map(RunId::new),
        caller: row.get("caller")?,
        caller_agent: row.get("caller_agent")?,
        definition: row.get("definition")?,
        spawn_tool_policy: row.get("spawn_tool_policy")?,
        run: row.get::<Option<String>>("run")?.map(RunId::new),
        state: row.get::<Option<String>>("state")?.as_deref().map(state).transpose()?,
        ended: row.get("ended")?,
        answer: row.get("answer")?,
        error: row.get("error")?,
        fork: row.get::<Option<String>>("fork")?.map(DefinitionId::new),
    })
}
