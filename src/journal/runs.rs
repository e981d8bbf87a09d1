//! A run after its claim: launch, start, first side effect, denials, end.

use std::path::PathBuf;
use std::sync::Arc;

use super::database::{Connection, params};
use chrono::{DateTime, Utc};

use super::channel_state::any_status;
use super::claims::{Claim, NewClaim, record_occasion, text_of};
use super::delays::{Punctuality, begins};
use super::events::{EventKind, NewEvent, insert_event};
use super::generations::{ConsecutiveFailures, save_consecutive_failures};
use super::outbox::{NewMessage, insert_messages_of_run};
use super::reader::RAN_BY_OTHER;
use super::rows::{ms, state, time};
use super::{Denial, Journal, JournalError, ProcessIdentity, Question, RunId, RunState, questions};
use crate::agent::Tokens;
use crate::definition::DefinitionId;

/// The state of an occurrence after one of its attempts has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAttempt {
    /// The end of the attempt is the outcome.
    Closed,
    /// Another attempt follows at this time.
    RetryAt(DateTime<Utc>),
    /// The occurrence stays open for the next process: the service is ending.
    Open,
}

/// The end of an attempt, with everything recorded in the same commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// The final state of the attempt.
    pub state: RunState,
    /// The next state of its occurrence.
    pub after: AfterAttempt,
    /// Kind of failure, as the journal names it (`overloaded`).
    pub class: Option<&'static str>,
    /// Why it failed, was skipped or was cut off.
    pub error: Option<String>,
    /// The client's last text.
    pub answer: Option<String>,
    /// The client's session id.
    pub session: Option<String>,
    /// Path of the client's transcript.
    pub transcript: Option<PathBuf>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Number of the model's turns.
    pub turns: Option<u32>,
    /// The model, as reported by the client.
    pub model: Option<String>,
    /// Tokens that the run used.
    pub tokens: Option<Tokens>,
    /// The client that ran it. [`Self::client_version`] holds its version.
    pub client: Option<String>,
    /// See [`Self::client`].
    pub client_version: Option<String>,
    /// Messages to the person.
    pub messages: Vec<NewMessage>,
    /// The definition's consecutive failures from now on, if they change.
    pub consecutive_failures: Option<ConsecutiveFailures>,
    /// Occurrences of follow-up jobs. They are claimed in the commit of the outcome, so none is lost or claimed twice.
    pub followers: Vec<NewClaim>,
}

impl Finish {
    /// Makes an end that closes its occurrence and records nothing else.
    #[must_use]
    pub fn closed(state: RunState, error: Option<String>) -> Self {
        Self {
            state,
            after: AfterAttempt::Closed,
            class: None,
            error,
            answer: None,
            session: None,
            transcript: None,
            cost_usd: None,
            turns: None,
            model: None,
            tokens: None,
            client: None,
            client_version: None,
            messages: Vec::new(),
            consecutive_failures: None,
            followers: Vec::new(),
        }
    }
}

impl Journal {
    /// Records that the run is about to be launched, with the current text of its file. For `lineage`, see [its
    /// definition's](crate::definition::Definition::lineage). Nothing is spawned before this returns. The same
    /// commit records any message to the person about punctuality.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run is not claimed.
    pub async fn launching(
        &self,
        run: &RunId,
        text: Arc<str>,
        lineage: String,
        punctuality: Punctuality,
    ) -> Result<(), JournalError> {
        let (run, clock) = (run.clone(), self.clock.clone());
        let newest = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let changed = connection.execute(
                        "UPDATE run SET state = 'running', launched = ?2, lineage = ?3, error = NULL WHERE run = ?1 AND state = 'claimed'", params![run.as_str(), ms(now), lineage])?;
                if changed != 1 {
                    return Err(JournalError::NotGoing(run.clone()));
                }
                let (occurrence, id, at, attempt): (i64, String, i64, u32) = connection.row(
                        "SELECT o.number, o.id, o.at, r.attempt FROM run r JOIN occurrence o ON o.number = r.occurrence
                         WHERE r.run = ?1", [run.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
                let kind = EventKind::RunStarted { attempt, scheduled: time(at)? };
                insert_event(connection, NewEvent { run: Some(run.as_str()), id: Some(&id), kind }, now)?;
                let text = text_of(connection, &id, &text)?;
                connection.execute("UPDATE occurrence SET text = ?2 WHERE number = ?1 AND text IS DISTINCT FROM ?2", [occurrence, text])?;
                begins(connection, &punctuality, now)
            })
            .await?;
        self.announce(newest);
        Ok(())
    }

    /// Records why a claimed run waits, as a sentence. Its launch deletes the sentence.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn note_waiting(&self, run: &RunId, why: &'static str) -> Result<(), JournalError> {
        let run = run.clone();
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "UPDATE run SET error = ?2 WHERE run = ?1 AND state = 'claimed' AND error IS DISTINCT FROM ?2",
                    params![run.as_str(), why],
                )?;
                Ok(())
            })
            .await
    }

    /// Records that the run's client is running. `process`: the process to end if the service dies; `session`: the
    /// client's own id; `client`: its name. A second call adds what was unknown before.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run has ended or is unknown.
    pub async fn started(
        &self,
        run: &RunId,
        process: Option<ProcessIdentity>,
        session: Option<String>,
        client: Option<&'static str>,
    ) -> Result<(), JournalError> {
        let (run, clock) = (run.clone(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                let changed = connection.execute(
                    "UPDATE run SET started = coalesce(started, ?2), pid = coalesce(?3, pid),
                           process = coalesce(?4, process), session = coalesce(?5, session),
                           client = coalesce(?6, client)
                         WHERE run = ?1 AND state = 'running'",
                    params![
                        run.as_str(),
                        ms(clock.now()),
                        process.as_ref().map(|process| process.pid),
                        process.as_ref().map(|process| process.start.as_str()),
                        session,
                        client,
                    ],
                )?;
                require_open(changed, &run)
            })
            .await
    }

    /// Marks that the run is about to have its first side effect (`what`: the tool's name or `ping`). Await it before
    /// allowing the effect: a run that is cut off afterwards is not simply retried. Later calls cost no commit.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run has ended or is unknown. Then the caller must refuse the effect.
    pub async fn mark_effect(&self, run: &RunId, what: &str) -> Result<(), JournalError> {
        if self.is_marked(run) {
            return Ok(());
        }
        let (id, what, clock) = (run.clone(), what.to_owned(), self.clock.clone());
        self.writer.commit(move |connection| mark(connection, &id, &what, clock.now())).await?;
        self.marked_now(run);
        Ok(())
    }

    /// Returns the first side effect of the run's occurrence, in this attempt or an earlier one; `None` if it had none.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn effect(&self, run: &RunId) -> Result<Option<String>, JournalError> {
        let run = run.clone();
        self.writer
            .read(move |connection| {
                connection.one(
                    "SELECT effect FROM run
                         WHERE occurrence = (SELECT occurrence FROM run WHERE run = ?1) AND effect IS NOT NULL
                         ORDER BY attempt LIMIT 1",
                    [run.as_str()],
                    |row| row.get(0),
                )
            })
            .await
    }

    /// Counts a request to the model's API that the client retries, without waiting for the commit. `fault`: the
    /// API's error.
    pub fn api_retry(&self, run: &RunId, fault: String) {
        let run = run.clone();
        self.writer.enqueue(move |connection| {
            connection.execute(
                "UPDATE run SET api_retries = api_retries + 1, api_fault = ?2 WHERE run = ?1",
                params![run.as_str(), fault],
            )?;
            Ok(())
        });
    }

    /// Returns whether one of these definitions has had a run by another client than `client`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn ran_with_another_client(
        &self,
        client: &'static str,
        ids: Vec<DefinitionId>,
    ) -> Result<bool, JournalError> {
        self.writer
            .read(move |connection| {
                for id in &ids {
                    if connection.one(RAN_BY_OTHER, params![id.as_str(), client], |_| Ok(()))?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await
    }

    /// Returns the states of the known runs among `runs`, in the order in which they were begun.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn ends_of(&self, runs: Vec<RunId>) -> Result<Vec<(RunId, RunState)>, JournalError> {
        self.writer
            .read(move |connection| {
                let sql = "SELECT number, state FROM run WHERE run = ?1";
                let mut found = Vec::new();
                for run in &runs {
                    let row: Option<(i64, String)> =
                        connection.one(sql, [run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    if let Some((number, word)) = row {
                        found.push((number, run.clone(), state(&word)?));
                    }
                }
                found.sort_by_key(|(number, ..)| *number);
                Ok(found.into_iter().map(|(_, run, state)| (run, state)).collect())
            })
            .await
    }

    /// Records a refused call.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run is unknown.
    pub async fn deny(&self, run: &RunId, denial: Denial) -> Result<(), JournalError> {
        let (run, clock) = (run.clone(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                let changed = connection.execute(
                        "INSERT INTO denial (run, position, at, tool, input, layer, rule, reason)
                         SELECT number, (SELECT coalesce(max(position) + 1, 0) FROM denial WHERE run = number), ?2, ?3, ?4, ?5, ?6, ?7
                         FROM run WHERE run.run = ?1", params![
                        run.as_str(),
                        ms(clock.now()),
                        denial.tool,
                        denial.input.to_string(),
                        denial.layer,
                        denial.rule,
                        denial.reason,
                    ])?;
                require_open(changed, &run)
            })
            .await
    }

    /// Records the end of an attempt, what follows, and the messages to the person, in one commit. An ended
    /// attempt may be finished again while its occurrence is open: a failed one whose retry is called off, or an
    /// interrupted one that is given up. Returns [`Finish::followers`] as they were claimed.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the occurrence has its outcome, or the run is unknown.
    pub async fn finish(&self, run: &RunId, finish: Finish) -> Result<Vec<(NewClaim, Claim)>, JournalError> {
        let (id, clock) = (run.clone(), self.clock.clone());
        let (newest, followers, is_shown, dropped) = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let newest = insert_messages_of_run(connection, &finish.messages, now)?;
                // Messages come first, since readers that follow a run stop at its end.
                let dropped = close_attempt(connection, &id, &finish, now)?;
                if let Some(consecutive_failures) = &finish.consecutive_failures {
                    save_consecutive_failures(connection, consecutive_failures)?;
                }
                let claimed = finish.followers.iter().map(|claim| record_occasion(connection, claim, now));
                Ok((newest, claimed.collect::<Result<_, _>>()?, any_status(connection)?, dropped))
            })
            .await?;
        self.marked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(run);
        self.announce(newest);
        if is_shown {
            self.rerouted();
        }
        // Hosts that share the journal follow the ends of questions there.
        if let Some(question) = dropped.filter(|_| self.hosts().is_none()) {
            self.announce_ended_question(&question);
        }
        Ok(followers)
    }

    pub(super) fn is_marked(&self, run: &RunId) -> bool {
        self.marked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(run)
    }

    pub(super) fn marked_now(&self, run: &RunId) {
        self.marked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(run.clone());
    }
}

/// Kinds of failure before any request to a model. Such a run cost nothing.
const ASKED_NOBODY: [&str; 7] = [
    "spawn_failed",
    "initialize_timeout",
    "not_logged_in",
    "main_session_missing",
    "needs_claude",
    "gate_failed",
    "mcp_server_missing",
];

fn require_open(changed: usize, run: &RunId) -> Result<(), JournalError> {
    if changed == 1 { Ok(()) } else { Err(JournalError::NotGoing(run.clone())) }
}

/// Marks the first side effect of a running run. Later calls change nothing.
pub(super) fn mark(connection: &Connection, run: &RunId, what: &str, now: DateTime<Utc>) -> Result<(), JournalError> {
    let changed = connection.execute(
        "UPDATE run SET effect = coalesce(effect, ?2), effect_at = coalesce(effect_at, ?3)
             WHERE run = ?1 AND state = 'running'",
        params![run.as_str(), what, ms(now)],
    )?;
    require_open(changed, run)
}

/// Returns the question about its start that nobody has to answer any more.
fn close_attempt(
    connection: &Connection,
    run: &RunId,
    finish: &Finish,
    now: DateTime<Utc>,
) -> Result<Option<Question>, JournalError> {
    let occurrence: Option<i64> = connection.one(
        "SELECT o.number FROM run r JOIN occurrence o ON o.number = r.occurrence
             WHERE r.run = ?1 AND o.outcome IS NULL
               AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)",
        [run.as_str()],
        |row| row.get(0),
    )?;
    let Some(occurrence) = occurrence else { return Err(JournalError::NotGoing(run.clone())) };
    connection.execute(
        "UPDATE run SET state = ?2, ended = coalesce(ended, ?3), class = coalesce(?4, class),
               error = coalesce(?5, error), answer = coalesce(?6, answer), session = coalesce(?7, session),
               transcript = coalesce(?8, transcript), cost_usd = coalesce(cost_usd, ?9), turns = coalesce(?10, turns),
               model = coalesce(?11, model), tokens = coalesce(?12, tokens),
               reserved_usd = CASE WHEN ?14 THEN NULL ELSE reserved_usd END,
               client = coalesce(?13, client), client_version = coalesce(?15, client_version)
             WHERE run = ?1",
        params![
            run.as_str(),
            finish.state.as_str(),
            ms(now),
            finish.class,
            finish.error,
            finish.answer,
            finish.session,
            finish.transcript.as_ref().map(|path| path.to_string_lossy()),
            finish.cost_usd,
            finish.turns,
            finish.model,
            finish.tokens.and_then(|tokens| serde_json::to_string(&tokens).ok()),
            finish.client,
            finish.class.is_some_and(|class| ASKED_NOBODY.contains(&class)),
            finish.client_version,
        ],
    )?;
    let (outcome, retry_at) = match finish.after {
        AfterAttempt::Closed => (Some(finish.state.as_str()), None),
        AfterAttempt::RetryAt(at) => (None, Some(ms(at))),
        AfterAttempt::Open => (None, None),
    };
    connection.execute(
        "UPDATE occurrence SET outcome = ?2, retry_at = ?3 WHERE number = ?1",
        params![occurrence, outcome, retry_at],
    )?;
    let mut dropped = None;
    if outcome.is_some() {
        dropped = questions::end_start(connection, run, now)?;
        // The payload is kept only while a run may need it.
        connection.execute(
                "UPDATE occurrence SET occasion = json_remove(occasion, '$.payload') WHERE number = ?1 AND delivery IS NOT NULL", [occurrence])?;
    }
    let retry_at = if let AfterAttempt::RetryAt(at) = finish.after { Some(at) } else { None };
    let kind = EventKind::RunEnded { outcome: finish.state, error: finish.error.clone(), retry_at };
    insert_event(connection, NewEvent { run: Some(run.as_str()), id: None, kind }, now)?;
    Ok(dropped)
}
