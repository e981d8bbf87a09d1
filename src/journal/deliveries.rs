//! Which channels are to deliver a message, and how far each has come.
//!
//! A message without a row here is routed first. Every row ends as delivered or failed; one that failed stands beside a row
//! of the channel that took the message over, as long as there is one that has not refused it.

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::events::{EventKind, NewEvent, insert_event};
use super::outbox::{MESSAGE, NewMessage, insert_message, read_message};
use super::rows::{Columns, ms};
use super::{Journal, JournalError, JournalReader, Message, Question, kept, questions};

/// How far a channel is with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is to deliver it.
    Waiting,
    /// It has.
    Delivered,
    /// It cannot.
    Failed,
}

impl DeliveryState {
    fn of(word: &str) -> Self {
        match word {
            "delivered" => Self::Delivered,
            "failed" => Self::Failed,
            _ => Self::Waiting,
        }
    }
}

/// One channel's part in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The channel's name.
    pub channel: String,
    /// How far it is.
    pub state: DeliveryState,
    /// The end of the quiet hours that it waits, or waited, for.
    pub held_until: Option<DateTime<Utc>>,
    /// What the channel's service calls the message.
    pub external: Option<String>,
    /// Why it could not be delivered, the last time.
    pub error: Option<String>,
    /// When it was delivered or failed.
    pub ended: Option<DateTime<Utc>>,
}

/// A message that a channel is to deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The message.
    pub message: Message,
    /// The end of the quiet hours that it waits for.
    pub held_until: Option<DateTime<Utc>>,
    /// The question that it asks, as it stands now.
    pub question: Option<Question>,
    /// What the channel's service calls the parts that were sent of it, with blanks between.
    pub sent: Option<String>,
    /// What it calls the message that shows the turn whose answer this is.
    pub status: Option<String>,
}

/// A channel that does not work now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailingChannel {
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Why, the last time.
    pub error: String,
}

/// What a channel gives up, and who may take it.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The channel.
    pub channel: String,
    /// Only this message; `None`: all that wait for it.
    pub only: Option<i64>,
    /// Why.
    pub why: String,
    /// Who may take it, the first one first.
    pub next: Vec<String>,
    /// Whether the channel is broken, which the person is told once.
    pub is_broken: bool,
}

impl Journal {
    /// Messages that no channel was chosen for, oldest first, at most `limit`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn unrouted(&self, limit: u32) -> Result<Vec<Message>, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = format!(
                    "SELECT {MESSAGE} FROM message m WHERE delivered IS NULL
                       AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.number)
                     ORDER BY number LIMIT ?1"
                );
                connection.all(&sql, [limit], read_message)
            })
            .await
    }

    /// Records which channels are to deliver which messages.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn route(&self, routes: Vec<(i64, Vec<String>)>) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                for (message, channels) in &routes {
                    channels.iter().try_for_each(|channel| add(connection, *message, channel))?;
                }
                Ok(())
            })
            .await?;
        self.rerouted();
        Ok(())
    }

    /// Takes what waits for channels that are not among `known` to `instead`.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn adopt(&self, known: Vec<String>, instead: String) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let sql = "SELECT message, channel FROM delivery WHERE state = 'waiting'";
                let found: Vec<(i64, String)> = connection.all(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
                for (message, channel) in found.iter().filter(|(_, channel)| !known.contains(channel)) {
                    fail(connection, *message, channel, "there is no channel of this name any more", clock.now())?;
                    add(connection, *message, &instead)?;
                }
                Ok(())
            })
            .await
    }

    /// What a channel is to deliver, oldest first, the critical before the rest and what waits for a digest behind it, at most `limit`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn waiting(&self, channel: &str, limit: u32) -> Result<Vec<Waiting>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .commit(move |connection| {
                let sql = format!(
                    "SELECT {MESSAGE}, d.held_until, d.external FROM delivery d JOIN message m ON m.number = d.message
                     WHERE d.channel = ?1 AND d.state = 'waiting'
                     ORDER BY m.urgency <> 'critical', m.urgency = 'digest', m.number LIMIT ?2"
                );
                let mut waiting = connection.all(&sql, params![channel, limit], |row| {
                    let held_until = row.maybe_at("held_until")?;
                    let sent = row.get("external")?;
                    Ok(Waiting { message: read_message(row)?, held_until, question: None, sent, status: None })
                })?;
                for one in &mut waiting {
                    one.question = match one.message.question() {
                        Some(number) => questions::find(connection, number)?,
                        None => None,
                    };
                    one.status = match one.message.id.as_ref().filter(|id| id.is_turn()) {
                        Some(turn) => kept::status(connection, &channel, turn)?,
                        None => None,
                    };
                }
                Ok(waiting)
            })
            .await
    }

    /// These wait for the end of quiet hours. The record of their runs says so.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn hold(
        &self,
        channel: &str,
        numbers: Vec<i64>,
        until: DateTime<Utc>,
        note: String,
    ) -> Result<(), JournalError> {
        let (channel, clock) = (channel.to_owned(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                for number in &numbers {
                    connection.execute(
                        "UPDATE delivery SET held_until = ?3 WHERE message = ?1 AND channel = ?2",
                        params![number, channel, ms(until)],
                    )?;
                    let run: Option<String> =
                        connection.row("SELECT run FROM message WHERE number = ?1", [number], |row| row.get(0))?;
                    if let Some(run) = run {
                        let kind = EventKind::Note { text: note.clone() };
                        insert_event(connection, NewEvent { run: Some(&run), id: None, kind }, clock.now())?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// A channel has sent a part of these, which are one message; with those before it: `sent`.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn sent_in_part(&self, channel: &str, numbers: &[i64], sent: String) -> Result<(), JournalError> {
        let (channel, numbers) = (channel.to_owned(), numbers.to_vec());
        self.writer
            .commit(move |connection| {
                for number in &numbers {
                    connection.execute(
                        "UPDATE delivery SET external = ?3 WHERE message = ?1 AND channel = ?2 AND state = 'waiting'",
                        params![number, channel, sent],
                    )?;
                }
                Ok(())
            })
            .await
    }

    /// A channel has delivered these, as one message that its service calls `external`. So it works.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn delivered(
        &self,
        channel: &str,
        numbers: &[i64],
        external: Option<String>,
    ) -> Result<(), JournalError> {
        let (channel, numbers, now) = (channel.to_owned(), numbers.to_vec(), self.clock.now());
        self.writer
            .commit(move |connection| {
                for number in &numbers {
                    connection.execute(
                        "UPDATE delivery SET state = 'delivered', external = ?3, error = NULL, ended = ?4
                             WHERE message = ?1 AND channel = ?2",
                        params![number, channel, external, ms(now)],
                    )?;
                    connection.execute(
                        "UPDATE message SET delivered = ?2 WHERE number = ?1 AND delivered IS NULL",
                        params![number, ms(now)],
                    )?;
                    kept::replaced(connection, &channel, *number)?;
                }
                connection.execute("DELETE FROM failing_channel WHERE name = ?1", [&channel])?;
                Ok(())
            })
            .await
    }

    /// A channel could not deliver this one now. Returns since when it delivers nothing.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn not_delivered(&self, channel: &str, number: i64, why: String) -> Result<DateTime<Utc>, JournalError> {
        let (channel, clock) = (channel.to_owned(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "UPDATE delivery SET error = ?3 WHERE message = ?1 AND channel = ?2",
                    params![number, channel, why],
                )?;
                failing(connection, &channel, &why, clock.now())?;
                connection.row("SELECT since FROM failing_channel WHERE name = ?1", [&channel], |row| row.at("since"))
            })
            .await
    }

    /// Hands messages on to other channels: each to the first of them that works and has not refused it. Where there is none, one
    /// that was refused for good has failed, and others go on to wait. The person is told once, on the channel that takes over.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn hand_over(&self, refused: Refused) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        let note = self.writer.commit(move |connection| hand_over(connection, &refused, clock.now())).await?;
        self.announce(note);
        self.rerouted();
        Ok(())
    }

    /// A channel's part in a message; `None`: it has none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn delivery(&self, message: i64, channel: &str) -> Result<Option<Delivery>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .commit(move |connection| {
                let sql = format!("{DELIVERIES} WHERE message = ?1 AND channel = ?2");
                connection.one(&sql, params![message, channel], read_delivery)
            })
            .await
    }

    /// Changes when channels have something else to deliver.
    #[must_use]
    pub fn routed(&self) -> watch::Receiver<u64> {
        self.routed.subscribe()
    }

    pub(super) fn rerouted(&self) {
        self.routed.send_modify(|count| *count += 1);
    }
}

impl JournalReader {
    /// Channels that do not work now, by name.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn failing_channels(&self) -> Result<Vec<FailingChannel>, JournalError> {
        self.all("SELECT name, since, error FROM failing_channel ORDER BY name", &[], |row| {
            Ok(FailingChannel { name: row.get("name")?, since: row.at("since")?, error: row.get("error")? })
        })
    }

    /// Whether a channel has delivered this message.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn is_delivered(&self, message: i64) -> Result<bool, JournalError> {
        let sql = "SELECT delivered IS NOT NULL FROM message WHERE number = ?1";
        Ok(self.all(sql, &[&message], |row| row.get(0))?.pop().unwrap_or(false))
    }

    /// How many messages wait for each channel.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn waiting_for_channels(&self) -> Result<Vec<(String, u64)>, JournalError> {
        let sql = "SELECT channel, count(*) FROM delivery WHERE state = 'waiting' GROUP BY channel";
        self.all(sql, &[], |row| Ok((row.get(0)?, row.get::<u32>(1)?.into())))
    }

    /// When each channel has delivered something, the last time; one that never has is not there.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn last_delivered(&self) -> Result<Vec<(String, DateTime<Utc>)>, JournalError> {
        let sql = "SELECT channel, max(ended) AS last FROM delivery
                   WHERE state = 'delivered' AND ended IS NOT NULL GROUP BY channel";
        self.all(sql, &[], |row| Ok((row.get("channel")?, row.at("last")?)))
    }

    /// Which channels deliver a message, in the order of their names.
    pub(super) fn deliveries(&self, message: i64) -> Result<Vec<Delivery>, JournalError> {
        self.all(&format!("{DELIVERIES} WHERE message = ?1 ORDER BY channel"), &[&message], read_delivery)
    }
}

const DELIVERIES: &str = "SELECT channel, state, held_until, external, error, ended FROM delivery";

fn read_delivery(row: &Row<'_>) -> Result<Delivery, JournalError> {
    Ok(Delivery {
        channel: row.get("channel")?,
        state: DeliveryState::of(&row.get::<String>("state")?),
        held_until: row.maybe_at("held_until")?,
        external: row.get("external")?,
        error: row.get("error")?,
        ended: row.maybe_at("ended")?,
    })
}

fn add(connection: &Connection, message: i64, channel: &str) -> Result<(), JournalError> {
    connection.execute(
        "INSERT INTO delivery (message, channel, state) VALUES (?1, ?2, 'waiting') ON CONFLICT DO NOTHING",
        params![message, channel],
    )?;
    Ok(())
}

fn fail(
    connection: &Connection,
    message: i64,
    channel: &str,
    why: &str,
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    connection.execute(
        "UPDATE delivery SET state = 'failed', error = ?3, ended = ?4 WHERE message = ?1 AND channel = ?2",
        params![message, channel, why, ms(now)],
    )?;
    Ok(())
}

fn failing(connection: &Connection, channel: &str, why: &str, now: DateTime<Utc>) -> Result<(), JournalError> {
    connection.execute(
        "INSERT INTO failing_channel (name, since, error) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET error = ?3",
        params![channel, ms(now), why],
    )?;
    Ok(())
}

/// Returns the number of the message that says so; 0 where there is none.
fn hand_over(connection: &Connection, refused: &Refused, now: DateTime<Utc>) -> Result<i64, JournalError> {
    let Refused { channel, only, why, next, is_broken } = refused;
    if *is_broken {
        failing(connection, channel, why, now)?;
    }
    let numbers: Vec<i64> = connection.all(
        "SELECT message FROM delivery
             WHERE channel = ?1 AND state = 'waiting' AND (message = ?2 OR ?2 IS NULL) ORDER BY message",
        params![channel, only],
        |row| row.get(0),
    )?;
    let mut taken_by = None;
    for number in numbers {
        let mut able = None;
        for candidate in next {
            let taken: bool = connection.row(
                "SELECT EXISTS (SELECT 1 FROM failing_channel WHERE name = ?2)
                       OR EXISTS (SELECT 1 FROM delivery WHERE message = ?1 AND channel = ?2 AND state = 'failed')",
                params![number, candidate],
                |row| row.get(0),
            )?;
            if !taken {
                able = Some(candidate);
                break;
            }
        }
        match able {
            Some(candidate) => {
                fail(connection, number, channel, why, now)?;
                add(connection, number, candidate)?;
                taken_by.get_or_insert(candidate);
            }
            None if only.is_some() => fail(connection, number, channel, why, now)?,
            None => {}
        }
    }
    let Some(next) = taken_by else { return Ok(0) };
    let told = connection.one(
        "UPDATE failing_channel SET handed_over = 1 WHERE name = ?1 AND handed_over = 0 RETURNING since",
        [channel],
        |row| Ok(row.at("since")),
    )?;
    if told.is_none() {
        return Ok(0);
    }
    let text = format!(
        "The channel `{channel}` does not deliver: {why}. Its messages come here until it works again. `ollim-bot channels` shows how it is."
    );
    let note = insert_message(connection, &NewMessage::of_service(text), now)?;
    add(connection, note, next)?;
    Ok(note)
}
