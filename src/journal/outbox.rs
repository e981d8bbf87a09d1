//! Messages to the person. Each is kept until a channel has delivered it, so that no crash loses one.

use std::collections::BTreeMap;

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::events::{EventKind, NewEvent, insert_event};
use super::rows::{Columns, ms};
use super::runs::mark;
use super::why_button::with_why;
use super::{Journal, JournalError, Message, RunId, settings};
use crate::definition::{Definition, DefinitionId, Deliver, Urgency};

/// The form of a message on channels that can show more than text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RichContent {
    /// The title.
    pub title: String,
    /// The text below it.
    pub description: String,
    /// Color as 0xRRGGBB.
    pub color: Option<u32>,
    /// Names and values.
    pub fields: Vec<(String, String)>,
    /// The buttons below it.
    pub buttons: Vec<Button>,
    /// The last line: where the message comes from.
    pub footer: String,
}

impl RichContent {
    /// Returns the place of the button that an answer names: by its label, or by its number from 1.
    #[must_use]
    pub fn named_button(&self, answer: &str) -> Option<usize> {
        let answer = answer.trim();
        let by_label =
            self.buttons.iter().position(|button| button.label.trim().to_lowercase() == answer.to_lowercase());
        let is_number = answer.bytes().all(|byte| byte.is_ascii_digit());
        let by_number = || answer.parse::<usize>().ok().filter(|_| is_number)?.checked_sub(1);
        by_label.or_else(by_number).filter(|place| *place < self.buttons.len())
    }
}

/// A button below a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// The text on the button.
    pub label: String,
    /// The action, such as `agent:<prompt>`.
    pub action: String,
}

/// What a message is about. Who names a definition also says who made it: of the messages of the service about what one job has
/// made only some are sent in an hour, and the others are counted in a later message. A job that may make jobs must not send the
/// person as many messages as it likes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    id: Option<DefinitionId>,
    /// The job for which the message counts.
    made_by: Option<DefinitionId>,
}

impl Subject {
    /// A definition.
    #[must_use]
    pub fn job(definition: &Definition) -> Self {
        Self::job_with(&definition.id, definition.maker())
    }

    /// A definition with this id, made by `maker` if a job made it.
    #[must_use]
    pub fn job_with(id: &DefinitionId, maker: Option<DefinitionId>) -> Self {
        Self { id: Some(id.clone()), made_by: maker }
    }

    /// Several definitions, made by `maker` if a job made them.
    #[must_use]
    pub fn jobs_of(maker: Option<DefinitionId>) -> Self {
        Self { id: None, made_by: maker }
    }

    /// The words of a run itself, a question of it, or a conversation. These have limits of their own.
    #[must_use]
    pub fn words_of(id: &DefinitionId) -> Self {
        Self { id: Some(id.clone()), made_by: None }
    }

    /// Returns the id of the one definition.
    #[must_use]
    pub fn id(&self) -> Option<&DefinitionId> {
        self.id.as_ref()
    }
}

/// A message to the person, to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// The run that it comes from, if any.
    pub run: Option<RunId>,
    /// The definition that it is about or comes from, if any.
    pub subject: Subject,
    /// The text, as the person reads it.
    pub text: String,
    /// Urgency of the message.
    pub urgency: Urgency,
    /// Whether it waits for the next digest.
    pub digest: bool,
    /// The channel that its definition names.
    pub channel: Option<String>,
    /// The message for channels that can show more than text.
    pub rich: Option<RichContent>,
}

impl NewMessage {
    /// Makes a message of the service about itself: about no definition.
    #[must_use]
    pub fn of_service(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes a message of the service about definitions.
    #[must_use]
    pub fn about(subject: Subject, text: impl Into<String>) -> Self {
        Self { subject, ..Self::of_service(text) }
    }

    /// Adds buttons below the message, as pairs of label and action.
    #[must_use]
    pub fn with_buttons(mut self, buttons: &[(&str, &str)]) -> Self {
        if !buttons.is_empty() {
            let button = |(label, action): &(&str, &str)| Button { label: (*label).into(), action: (*action).into() };
            self.rich.get_or_insert_default().buttons.extend(buttons.iter().map(button));
        }
        self
    }

    /// Makes a message of the service about a definition's run.
    #[must_use]
    pub fn of_run(run: &RunId, definition: &Definition, text: impl Into<String>) -> Self {
        Self {
            run: Some(run.clone()),
            subject: Subject::job(definition),
            urgency: definition.urgency,
            channel: definition.channel.clone(),
            ..Self::of_service(text)
        }
    }

    /// Makes a question of a definition's run.
    #[must_use]
    pub fn asked_by(run: &RunId, definition: &Definition, text: impl Into<String>) -> Self {
        Self { subject: Subject::words_of(&definition.id), ..Self::of_run(run, definition, text) }
    }

    /// Makes a message that a definition's run sends itself.
    #[must_use]
    pub fn said_by(run: &RunId, definition: &Definition, text: impl Into<String>) -> Self {
        Self { digest: definition.deliver == Deliver::Digest, ..Self::asked_by(run, definition, text) }
    }
}

impl Journal {
    /// Records a message and returns its number. A message from a run is a side effect of the run, marked in the
    /// same commit.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run is not running. Then nothing is recorded.
    pub async fn message(&self, message: NewMessage) -> Result<i64, JournalError> {
        let (clock, run) = (self.clock.clone(), message.run.clone());
        let number = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                if let Some(run) = &message.run {
                    mark(connection, run, "message", now)?;
                }
                insert_message(connection, &message, now)
            })
            .await?;
        if let Some(run) = run {
            self.marked_now(&run);
        }
        self.announce(number);
        Ok(number)
    }

    /// Sets `key` to `value` and records a message in one commit, unless `key` has a value. Returns whether it did.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn message_once(
        &self,
        key: impl Into<String>,
        value: String,
        message: NewMessage,
    ) -> Result<bool, JournalError> {
        let (key, clock) = (key.into(), self.clock.clone());
        let number = self
            .writer
            .commit(move |connection| {
                let new = connection.execute(
                    "INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING",
                    [&key, &value],
                )?;
                if new == 0 { Ok(0) } else { insert_message(connection, &message, clock.now()) }
            })
            .await?;
        self.announce(number);
        Ok(number > 0)
    }

    /// Counts a message that was suppressed because the budget was empty. The next recorded message reports the count.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn count_suppressed(&self) -> Result<(), JournalError> {
        self.writer.commit(hold_back).await
    }

    /// Returns the number of the newest message, updated with each newer one to wake the delivery.
    #[must_use]
    pub fn newest_message(&self) -> watch::Receiver<i64> {
        self.newest.subscribe()
    }

    pub(super) fn announce(&self, number: i64) {
        self.newest.send_if_modified(|newest| {
            let newer = number > *newest;
            *newest = number.max(*newest);
            newer
        });
    }
}

pub(super) fn newest(connection: &Connection) -> Result<i64, JournalError> {
    connection.row("SELECT coalesce(max(number), 0) FROM message", (), |row| row.get(0))
}

/// Key of the count of messages suppressed since the last one.
const HELD_BACK: &str = "held_back";

/// Counts a message that is held back.
fn hold_back(connection: &Connection) -> Result<(), JournalError> {
    connection.execute(
        "INSERT INTO setting (key, value) VALUES (?1, '1')
             ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(setting.value AS INTEGER) + 1 AS TEXT)",
        [HELD_BACK],
    )?;
    Ok(())
}

/// Key of the begin of the current hour of messages about made jobs, and of their number in it.
const ABOUT_MADE_JOBS: &str = "about_made_jobs";

/// Maximum number of messages of the service about made jobs in an hour.
const MAX_ABOUT_MADE_JOBS: i64 = 20;

/// Maximum number of these about what one job has made.
const MAX_ABOUT_ONE_MAKER: i64 = 5;

/// Inserts the messages of an ended run. Returns the newest number, or 0.
pub(super) fn insert_messages_of_run(
    connection: &Connection,
    messages: &[NewMessage],
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let mut newest = 0;
    for message in messages {
        newest = insert_message(connection, message, now)?.max(newest);
    }
    Ok(newest)
}

/// Counts one more message about a job that `maker` has made. Returns `false` if there have been enough in this hour.
fn counts_in_this_hour(
    connection: &Connection,
    maker: &DefinitionId,
    now: DateTime<Utc>,
) -> Result<bool, JournalError> {
    // The beginning of the hour, and the number by maker.
    type Hour = (i64, BTreeMap<String, i64>);
    let stored = settings::get(connection, ABOUT_MADE_JOBS)?;
    let stored = stored.and_then(|text| serde_json::from_str::<Hour>(&text).ok());
    let is_current = |since: &i64| (0..60 * 60 * 1000).contains(&(ms(now) - since));
    let (since, mut counts) = stored.filter(|(since, _)| is_current(since)).unwrap_or((ms(now), BTreeMap::new()));
    if counts.values().sum::<i64>() >= MAX_ABOUT_MADE_JOBS {
        return Ok(false);
    }
    let count = counts.entry(maker.to_string()).or_default();
    if *count >= MAX_ABOUT_ONE_MAKER {
        return Ok(false);
    }
    *count += 1;
    settings::set(connection, ABOUT_MADE_JOBS, &serde_json::to_string(&(since, counts)).unwrap_or_default())?;
    Ok(true)
}

/// Returns the note about suppressed messages for the next message, and resets their count.
fn held_back(connection: &Connection) -> Result<Option<String>, JournalError> {
    let found: Option<i64> =
        connection.one("SELECT CAST(value AS INTEGER) FROM setting WHERE key = ?1", [HELD_BACK], |row| row.get(0))?;
    if found.is_some() {
        settings::delete(connection, HELD_BACK)?;
    }
    Ok(found.map(|count| match count {
        1 => "1 message was held back: too many within a short time".to_owned(),
        count => format!("{count} messages were held back: too many within a short time"),
    }))
}

/// Inserts a message. Returns its number, or 0 if it is held back: it is one about made jobs too many.
pub(super) fn insert_message(
    connection: &Connection,
    message: &NewMessage,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    if let Some(maker) = &message.subject.made_by
        && !counts_in_this_hour(connection, maker, now)?
    {
        hold_back(connection)?;
        return Ok(0);
    }
    let message = &with_why(connection, message)?;
    let text = match held_back(connection)? {
        Some(held) => format!("{}\n\n{held}", message.text.trim_end()),
        None => message.text.clone(),
    };
    let number = connection.row(
        "INSERT INTO message (at, run, id, text, urgency, channel, rich) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING number",
        params![
            ms(now),
            message.run.as_ref().map(RunId::as_str),
            message.subject.id().map(DefinitionId::as_str),
            text,
            if message.digest { DIGEST } else { message.urgency.as_str() },
            message.channel,
            message.rich.as_ref().and_then(|rich| serde_json::to_string(rich).ok()),
        ],
        |row| row.get(0),
    )?;
    let (run, id) = (message.run.as_ref().map(RunId::as_str), message.subject.id().map(DefinitionId::as_str));
    let kind = EventKind::Message { message: number, text: message.text.clone() };
    insert_event(connection, NewEvent { run, id, kind }, now)?;
    Ok(number)
}

/// The value of `urgency` for a message that waits for the next digest.
const DIGEST: &str = "digest";

/// The columns of a message that [`read_message`] reads.
pub(super) const MESSAGE: &str =
    "m.number, m.at, m.run, m.id, m.text, m.delivered, m.urgency, m.channel AS wish, m.rich";

pub(super) fn read_message(row: &Row<'_>) -> Result<Message, JournalError> {
    let urgency: String = row.get("urgency")?;
    let digest = urgency == DIGEST;
    let urgency = [Urgency::Low, Urgency::Normal, Urgency::Critical].into_iter().find(|one| one.as_str() == urgency);
    Ok(Message {
        number: row.get("number")?,
        at: row.at("at")?,
        run: row.get::<Option<String>>("run")?.map(RunId::new),
        id: row.get::<Option<String>>("id")?.map(DefinitionId::new),
        text: row.get("text")?,
        delivered: row.maybe_at("delivered")?,
        urgency: urgency.unwrap_or(if digest { Urgency::Low } else { Urgency::Normal }),
        digest,
        channel: row.get("wish")?,
        rich: row.get::<Option<String>>("rich")?.and_then(|text| serde_json::from_str(&text).ok()),
        deliveries: Vec::new(),
    })
}
