//! Questions to the person about calls: one row each, with its answer. A row without an answer is open.

use std::fmt;
use std::time::Duration;

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::events::{EventKind, NewEvent, insert_event};
use super::outbox::{NewMessage, Subject, insert_message};
use super::rows::{Columns, ms};
use super::spending::{Origin, payer};
use super::{Journal, JournalError, JournalReader, Message, RunId};
use crate::definition::{Definition, DefinitionId};

/// An answer of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow every call of this run that the same rule asks about.
    Run,
    /// Allow them in later runs, too: the rule is moved in the job's file.
    Always,
    /// Deny this call.
    Deny,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    /// The person allowed this call.
    Once,
    /// The person allowed the calls of this run that the rule asks about.
    Run,
    /// The person allowed all calls that the rule asks about from now on.
    Always,
    /// The person denied it.
    Deny,
    /// Nobody answered by the deadline. The call is allowed.
    SilenceAllow,
    /// Nobody answered by the deadline. The call is denied.
    SilenceDeny,
    /// Its run or call ended first.
    Ended,
    /// The service restarted first. The call is denied.
    Restarted,
}

impl From<Answer> for QuestionEnd {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Once => Self::Once,
            Answer::Run => Self::Run,
            Answer::Always => Self::Always,
            Answer::Deny => Self::Deny,
        }
    }
}

impl QuestionEnd {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Once, "once"),
        (Self::Run, "run"),
        (Self::Always, "always"),
        (Self::Deny, "deny"),
        (Self::SilenceAllow, "silence_allow"),
        (Self::SilenceDeny, "silence_deny"),
        (Self::Ended, "ended"),
        (Self::Restarted, "restarted"),
    ];

    /// Returns the word for it in the journal and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(end, _)| *end == self).map_or("ended", |(_, word)| word)
    }

    /// Returns whether the call may run.
    #[must_use]
    pub fn allows(self) -> bool {
        matches!(self, Self::Once | Self::Run | Self::Always | Self::SilenceAllow)
    }
}

impl fmt::Display for QuestionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "allowed once",
            Self::Run => "allowed in this run",
            Self::Always => "allowed always",
            Self::Deny => "denied",
            Self::SilenceAllow => "allowed, since nobody answered",
            Self::SilenceDeny => "denied, since nobody answered",
            Self::Ended => "dropped, since the call or its run ended",
            Self::Restarted => "denied: the service restarted",
        })
    }
}

/// A question to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQuestion {
    /// The run whose call it is.
    pub run: RunId,
    /// The definition of the run.
    pub id: DefinitionId,
    /// The tool.
    pub tool: String,
    /// The whole call, as shown to the person.
    pub call: String,
    /// The rule that asks.
    pub asked_rule: String,
    /// The rule that would allow it from now on; `None`: there is no file for it.
    pub always: Option<String>,
    /// Time until the deadline.
    pub waits: Duration,
    /// Whether it asks to begin the run (`approve`), instead of about a call.
    pub start: bool,
}

/// A question and its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Number of the question, from 1, over the whole journal.
    pub number: i64,
    /// The run whose call it is.
    pub run: RunId,
    /// The definition of the run.
    pub id: DefinitionId,
    /// The tool.
    pub tool: String,
    /// The whole call, as shown to the person.
    pub call: String,
    /// The rule that asks.
    pub asked_rule: String,
    /// The rule that would allow it from now on.
    pub always: Option<String>,
    /// The message that asks.
    pub message: Option<i64>,
    /// When it was asked.
    pub asked: DateTime<Utc>,
    /// The time until which it can be answered.
    pub deadline: DateTime<Utc>,
    /// How it ended; `None`: it is open.
    pub answer: Option<QuestionEnd>,
    /// The comment that the person added.
    pub sentence: Option<String>,
    /// When it ended.
    pub answered: Option<DateTime<Utc>>,
    /// The channel through which the person answered.
    pub channel: Option<String>,
    /// Whether it asks to begin the run (`approve`), instead of about a call.
    #[serde(default)]
    pub start: bool,
}

/// Begins the reason of an occurrence that was not approved. How its question ended follows.
pub const NOT_APPROVED: &str = "not approved: ";

/// Begins the end of a question to which the person said no before a run.
pub const SKIPPED: &str = "skipped";

impl Question {
    /// `denied, by terminal, after 12s`.
    #[must_use]
    pub fn end(&self) -> Option<String> {
        let mut text = match self.answer? {
            QuestionEnd::Ended if self.start => "dropped, since it needs no answer any more".to_owned(),
            QuestionEnd::Restarted if self.start => QuestionEnd::Restarted.to_string(),
            QuestionEnd::SilenceDeny if self.start => "nobody answered".to_owned(),
            end if self.start => if end.allows() { "approved" } else { SKIPPED }.to_owned(),
            end => end.to_string(),
        };
        if let Some(channel) = &self.channel {
            text.push_str(&format!(", by {channel}"));
        }
        if let Some(after) = self.answered.and_then(|at| (at - self.asked).to_std().ok()) {
            let after = Duration::from_secs(after.as_secs());
            text.push_str(&format!(", after {}", humantime::format_duration(after)));
        }
        Some(text)
    }

    /// Returns why its run may not begin, if it asked about that and the answer, or the silence, was a no. A question that was only dropped
    /// says nothing about its run.
    #[must_use]
    pub fn start_refused(&self) -> Option<String> {
        let is_no = |end: QuestionEnd| !end.allows() && end != QuestionEnd::Ended;
        (self.start && self.answer.is_some_and(is_no)).then(|| self.not_approved())
    }

    /// Returns the reason of a run that was not approved.
    #[must_use]
    pub fn not_approved(&self) -> String {
        format!("{NOT_APPROVED}{}", self.end().unwrap_or_default())
    }
}

impl Message {
    /// Returns the number of the question that it asks, if it asks one.
    #[must_use]
    pub fn question(&self) -> Option<i64> {
        let mut buttons = self.rich.iter().flat_map(|rich| &rich.buttons);
        buttons.find_map(|button| button.action.strip_prefix("answer:")?.split_once(':')?.0.parse().ok())
    }
}

const QUESTIONS: &str = "SELECT number, run, id, tool, call, asked_rule, always, message, asked, deadline, answer, sentence, \
                         answered, channel, start FROM question";

impl Journal {
    /// Records a question and the message that `message` makes of it, in one commit. Asking is not a side effect
    /// of the run.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn ask(
        &self,
        new: NewQuestion,
        message: impl Fn(&Question) -> NewMessage + Send + 'static,
    ) -> Result<Question, JournalError> {
        let clock = self.clock.clone();
        let (question, number) = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let deadline = now + new.waits;
                let number = connection.row(
                    "INSERT INTO question (run, id, tool, call, asked_rule, always, asked, deadline, start)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING number",
                    params![
                        new.run.as_str(),
                        new.id.as_str(),
                        new.tool,
                        new.call,
                        new.asked_rule,
                        new.always,
                        ms(now),
                        ms(deadline),
                        new.start,
                    ],
                    |row| row.get(0),
                )?;
                let mut question = Question {
                    number,
                    run: new.run.clone(),
                    id: new.id.clone(),
                    tool: new.tool.clone(),
                    call: new.call.clone(),
                    asked_rule: new.asked_rule.clone(),
                    always: new.always.clone(),
                    message: None,
                    asked: now,
                    deadline,
                    answer: None,
                    sentence: None,
                    answered: None,
                    channel: None,
                    start: new.start,
                };
                let number = insert_message(connection, &message(&question), now)?;
                connection.execute("UPDATE question SET message = ?2 WHERE number = ?1", [question.number, number])?;
                question.message = Some(number);
                note(connection, &question, format!("asks the person, question {}", question.number), now)?;
                Ok((question, number))
            })
            .await?;
        self.announce(number);
        Ok(question)
    }

    /// Returns a question; `None` if there is none with this number.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn question(&self, number: i64) -> Result<Option<Question>, JournalError> {
        self.writer.read(move |connection| find(connection, number)).await
    }

    /// Returns questions of all hosts with a number above `number`, the oldest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn questions_after(&self, number: i64) -> Result<Vec<Question>, JournalError> {
        let sql = format!("{QUESTIONS} WHERE number > ?1 ORDER BY number");
        self.writer.read(move |connection| connection.all(&sql, [number], read)).await
    }

    /// Returns the number up to which every question has ended.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn ended_up_to(&self) -> Result<i64, JournalError> {
        let sql = "SELECT coalesce((SELECT min(number) - 1 FROM question WHERE answer IS NULL), (SELECT max(number) FROM question), 0)";
        self.writer.read(move |connection| connection.row(sql, (), |row| row.get(0))).await
    }

    /// Ends an open question. Returns its state afterwards, and whether this call ended it; `None` if there is no
    /// such question. Silence allows nothing if no channel had delivered the question before half of its time had passed: it then ends as
    /// [`QuestionEnd::SilenceDeny`].
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_question(
        &self,
        number: i64,
        end: QuestionEnd,
        sentence: Option<String>,
        channel: Option<String>,
    ) -> Result<Option<(Question, bool)>, JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let now = clock.now();
                let end = match end {
                    QuestionEnd::SilenceAllow if !was_delivered_in_time(connection, number)? => {
                        QuestionEnd::SilenceDeny
                    }
                    end => end,
                };
                let ended = connection.execute(
                    "UPDATE question SET answer = ?2, sentence = ?3, channel = ?4, answered = ?5
                         WHERE number = ?1 AND answer IS NULL",
                    params![number, end.as_str(), sentence, channel, ms(now)],
                )?;
                let Some(question) = find(connection, number)? else { return Ok(None) };
                if ended > 0 {
                    let said = question.end().unwrap_or_default();
                    note(connection, &question, format!("question {number} was {said}"), now)?;
                }
                Ok(Some((question, ended > 0)))
            })
            .await
    }

    /// Returns the question whether a run's occurrence may begin, asked in any attempt; `None` if it was not asked.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn start_question(&self, run: &RunId) -> Result<Option<Question>, JournalError> {
        let run = run.clone();
        self.writer
            .read(move |connection| {
                let sql = format!(
                    "{QUESTIONS} WHERE start AND run IN
                       (SELECT run FROM run WHERE occurrence = (SELECT occurrence FROM run WHERE run = ?1))
                     ORDER BY number DESC LIMIT 1"
                );
                connection.one(&sql, [run.as_str()], |row| Ok(read(row)))?.transpose()
            })
            .await
    }

    /// Returns the number of open questions about the start of what descends from the same job as this definition. Records that the run
    /// belongs to them.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn open_start_questions(&self, run: &RunId, definition: &Definition) -> Result<usize, JournalError> {
        let sql = "SELECT q.number FROM question q JOIN run r ON r.run = q.run
                   WHERE q.start AND q.answer IS NULL AND r.payer = ?1";
        let count = |connection: &Connection, payer: &str| {
            Ok(connection.all(sql, params![payer], |row| row.get::<i64>(0))?.len())
        };
        self.of_descendants(run, definition, count).await
    }

    /// Returns how many questions were asked since a time for what descends from the same job as this definition, the job itself excluded.
    /// Records that the run belongs to them, so that its own questions count, too.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn questions_of_descendants(
        &self,
        run: &RunId,
        definition: &Definition,
        since: DateTime<Utc>,
    ) -> Result<usize, JournalError> {
        let sql = "SELECT q.number FROM question q JOIN run r ON r.run = q.run
                   WHERE q.asked > ?2 AND r.payer = ?1 AND q.id <> ?1";
        let count = move |connection: &Connection, payer: &str| {
            Ok(connection.all(sql, params![payer, ms(since)], |row| row.get::<i64>(0))?.len())
        };
        self.of_descendants(run, definition, count).await
    }

    /// Counts questions of what descends from the same job as this definition. Records that the run belongs to it.
    async fn of_descendants(
        &self,
        run: &RunId,
        definition: &Definition,
        count: impl Fn(&Connection, &str) -> Result<usize, JournalError> + Send + 'static,
    ) -> Result<usize, JournalError> {
        let (run, origin) = (run.clone(), Origin::of(definition));
        self.writer
            .commit(move |connection| {
                let payer = payer(connection, &origin)?;
                let own = params![run.as_str(), payer];
                connection.execute("UPDATE run SET payer = ?2 WHERE run = ?1 AND payer IS NULL", own)?;
                count(connection, &payer)
            })
            .await
    }

    /// Subscribes to the questions that end from now on.
    #[must_use]
    pub fn ended_questions(&self) -> broadcast::Receiver<Question> {
        self.ended_questions.subscribe()
    }

    /// Notifies the subscribers of a question that has ended.
    pub(crate) fn announce_ended_question(&self, question: &Question) {
        // There may be no subscriber.
        let _unseen = self.ended_questions.send(question.clone());
    }

    /// Ends the open questions of a run, and returns them.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_questions_of(&self, run: &RunId) -> Result<Vec<Question>, JournalError> {
        let (run, clock) = (run.clone(), self.clock.clone());
        self.writer.commit(move |connection| end_open(connection, Some(&run), QuestionEnd::Ended, &clock)).await
    }

    /// Ends a question whose call is gone, without waiting for the commit. `ended` gets the question.
    pub(crate) fn drop_question(&self, number: i64, ended: impl Fn(Question) + Send + 'static) {
        let clock = self.clock.clone();
        self.writer.enqueue(move |connection| {
            let now = clock.now();
            let count = connection.execute(
                "UPDATE question SET answer = 'ended', answered = ?2 WHERE number = ?1 AND answer IS NULL",
                [number, ms(now)],
            )?;
            if let Some(question) = find(connection, number)?.filter(|_| count > 0) {
                note(connection, &question, format!("question {number} was {}", QuestionEnd::Ended), now)?;
                ended(question);
            }
            Ok(())
        });
    }

    /// Ends all questions about calls that the previous process left open, and notifies the person of each. A
    /// question about the start of a run stays open, since the run has not begun.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_questions_left_open(
        &self,
        message: impl Fn(&Question) -> NewMessage + Send + 'static,
    ) -> Result<usize, JournalError> {
        let clock = self.clock.clone();
        let (count, newest) = self
            .writer
            .commit(move |connection| {
                let ended = end_open(connection, None, QuestionEnd::Restarted, &clock)?;
                let mut newest = 0;
                for question in &ended {
                    newest = insert_message(connection, &message(question), clock.now())?;
                }
                Ok((ended.len(), newest))
            })
            .await?;
        self.announce(newest);
        Ok(count)
    }
}

fn note(connection: &Connection, question: &Question, text: String, now: DateTime<Utc>) -> Result<(), JournalError> {
    let (run, id) = (Some(question.run.as_str()), Some(question.id.as_str()));
    insert_event(connection, NewEvent { run, id, kind: EventKind::Note { text } }, now)
}

fn end_open(
    connection: &Connection,
    run: Option<&RunId>,
    end: QuestionEnd,
    clock: &crate::clock::Clock,
) -> Result<Vec<Question>, JournalError> {
    let now = clock.now();
    let numbers: Vec<i64> = connection.all(
        "SELECT number FROM question WHERE answer IS NULL AND (run = ?1 OR ?1 IS NULL AND NOT start
               AND NOT EXISTS (SELECT 1 FROM run r WHERE r.run = question.run AND r.host IS DISTINCT FROM ?2)) ORDER BY number",
        [run.map(RunId::as_str), connection.host()],
        |row| row.get(0),
    )?;
    let mut ended = Vec::new();
    for number in numbers {
        connection.execute(
            "UPDATE question SET answer = ?2, answered = ?3 WHERE number = ?1",
            params![number, end.as_str(), ms(now)],
        )?;
        let Some(question) = find(connection, number)? else { continue };
        note(connection, &question, format!("question {number} was {end}"), now)?;
        ended.push(question);
    }
    Ok(ended)
}

/// Ends the question about the start of a run that is over, and returns it.
pub(super) fn end_start(
    connection: &Connection,
    run: &RunId,
    now: DateTime<Utc>,
) -> Result<Option<Question>, JournalError> {
    let sql = "UPDATE question SET answer = 'ended', answered = ?2 WHERE run = ?1 AND start AND answer IS NULL RETURNING number";
    let number: Option<i64> = connection.one(sql, params![run.as_str(), ms(now)], |row| row.get(0))?;
    number.map_or(Ok(None), |number| find(connection, number))
}

/// Ends questions about calls of an occurrence that was taken over. Notifies the person of each. Returns the newest message's number.
pub(super) fn end_taken(
    connection: &Connection,
    occurrence: i64,
    host: &str,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let sql = "UPDATE question SET answer = 'ended', answered = ?2
               WHERE answer IS NULL AND NOT start AND run IN (SELECT run FROM run WHERE occurrence = ?1) RETURNING number";
    let numbers: Vec<i64> = connection.all(sql, [occurrence, ms(now)], |row| row.get(0))?;
    let mut newest = 0;
    for number in numbers {
        let Some(question) = find(connection, number)? else { continue };
        note(connection, &question, format!("question {number} was {}", QuestionEnd::Ended), now)?;
        let text = format!("Question {number} of {} needs no answer any more: the host {host} went away.", question.id);
        let message = NewMessage::about(Subject::words_of(&question.id), text);
        newest = insert_message(connection, &message, now)?;
    }
    Ok(newest)
}

/// Returns whether a channel had delivered a question before half of its time had passed.
fn was_delivered_in_time(connection: &Connection, number: i64) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM question q JOIN delivery d ON d.message = q.message
               WHERE q.number = ?1 AND d.state = 'delivered' AND d.ended - q.asked <= q.deadline - d.ended LIMIT 1";
    Ok(connection.one(sql, [number], |_| Ok(()))?.is_some())
}

pub(super) fn find(connection: &Connection, number: i64) -> Result<Option<Question>, JournalError> {
    connection.one(&format!("{QUESTIONS} WHERE number = ?1"), [number], read)
}

fn read(row: &Row<'_>) -> Result<Question, JournalError> {
    let answer: Option<String> = row.get("answer")?;
    let end = |word: String| {
        let known = QuestionEnd::ALL.iter().find(|(_, name)| *name == word).map(|(end, _)| *end);
        known.ok_or_else(|| JournalError::Unreadable(format!("the answer `{word}`")))
    };
    Ok(Question {
        number: row.get("number")?,
        run: row.run("run")?,
        id: row.id("id")?,
        tool: row.get("tool")?,
        call: row.get("call")?,
        asked_rule: row.get("asked_rule")?,
        always: row.get("always")?,
        message: row.get("message")?,
        asked: row.at("asked")?,
        deadline: row.at("deadline")?,
        answer: answer.map(end).transpose()?,
        sentence: row.get("sentence")?,
        answered: row.maybe_at("answered")?,
        channel: row.get("channel")?,
        start: row.get("start")?,
    })
}

impl JournalReader {
    /// Returns the open questions, the oldest first, then at most `recent` others, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn questions(&self, recent: u32) -> Result<Vec<Question>, JournalError> {
        let mut all = self.all(&format!("{QUESTIONS} WHERE answer IS NULL ORDER BY number"), &[], read)?;
        let ended = format!("{QUESTIONS} WHERE answer IS NOT NULL ORDER BY number DESC LIMIT ?1");
        all.extend(self.all(&ended, &[&recent], read)?);
        Ok(all)
    }

    /// Returns a question; `None` if there is none with this number.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn question(&self, number: i64) -> Result<Option<Question>, JournalError> {
        Ok(self.all(&format!("{QUESTIONS} WHERE number = ?1"), &[&number], read)?.pop())
    }
}
