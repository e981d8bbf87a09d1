//! The channels that deliver each message, and their delivery states.
//!
//! A message without a row here has no channel yet. Every row ends as delivered or failed. A failed row stands
//! beside the row of the channel that took the message over, if a channel remained that had not refused it.

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::channel_state::DEAF;
use super::events::{EventKind, NewEvent, insert_event};
use super::outbox::{MESSAGE, NewMessage, insert_message, read_message};
use super::rows::{Columns, ms};
use super::{Journal, JournalError, JournalReader, Message, Question, channel_state, questions, settings};

/// The delivery state of a message on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// The channel is to deliver the message.
    Waiting,
    /// The channel has delivered it.
    Delivered,
    /// The channel cannot deliver it.
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

/// The delivery of one message by one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The channel's name.
    pub channel: String,
    /// The delivery state.
    pub state: DeliveryState,
    /// The end of the quiet hours that it waits or waited for.
    pub held_until: Option<DateTime<Utc>>,
    /// The id of the message at the channel's service.
    pub external: Option<String>,
    /// Why the last attempt to deliver failed.
    pub error: Option<String>,
    /// When it was delivered or failed.
    pub ended: Option<DateTime<Utc>>,
}

impl Delivery {
    /// Returns the end of the quiet hours that it waits for, if that is still to come.
    #[must_use]
    pub fn held(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.held_until.filter(|until| *until > now)
    }
}

/// A message that a channel has to deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The message.
    pub message: Message,
    /// The end of the quiet hours that it waits for.
    pub held_until: Option<DateTime<Utc>>,
    /// The question in the message, in its current state.
    pub question: Option<Question>,
    /// The ids of its parts sent so far at the channel's service, separated by blanks.
    pub sent: Option<String>,
    /// The id, at the channel's service, of the message that shows the turn answered by this one.
    pub status: Option<String>,
}

/// A channel that does not work now, hears nothing, or has refused a message since it last delivered one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailingChannel {
    /// Its name.
    pub name: String,
    /// When it began to fail.
    pub since: DateTime<Utc>,
    /// Why the last delivery failed.
    pub error: String,
    /// Whether it only refused a message, and may deliver others.
    pub refused: bool,
    /// Whether it only hears nothing, and may deliver messages.
    pub deaf: bool,
}

impl FailingChannel {
    /// Returns the state in words.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match (self.refused, self.deaf) {
            (true, _) => "refused a message",
            (_, true) => "hears nothing",
            _ => "does not deliver",
        }
    }
}

/// Messages that a channel gives up, and the channels that may take them.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The channel.
    pub channel: String,
    /// The message; `None`: all that wait for the channel.
    pub only: Option<i64>,
    /// The reason.
    pub why: String,
    /// The channels that may take it, in order of preference.
    pub next: Vec<String>,
    /// The cause. The person is notified of it once.
    pub cause: Cause,
}

/// The cause for which a channel gives up messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The channel does not work.
    Broken,
    /// The channel refused the message. It may deliver others.
    Refused,
    /// The channel has closed, as a terminal does. The person is not notified.
    Closed,
}

/// Prefix of the keys that hold the last refusals of channels that have delivered nothing since. The channel follows.
const REFUSED: &str = "refused";

impl Journal {
    /// Returns messages without a channel, oldest first, at most `limit`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn unrouted(&self, limit: u32) -> Result<Vec<Message>, JournalError> {
        self.writer
            .read(move |connection| {
                let sql = format!(
                    "SELECT {MESSAGE} FROM message m WHERE delivered IS NULL
                       AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.number)
                     ORDER BY number LIMIT ?1"
                );
                connection.all(&sql, [limit], read_message)
            })
            .await
    }

    /// Records which channels have to deliver which messages.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Moves messages that wait for channels outside `known` to `instead`.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn move_waiting(&self, known: Vec<String>, instead: String) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let sql = "SELECT message, channel FROM delivery WHERE state = 'waiting'";
                let found: Vec<(i64, String)> = connection.all(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
                for (message, channel) in found.iter().filter(|(_, channel)| !known.contains(channel)) {
                    fail(connection, *message, channel, "there is no channel of this name any more", clock.now())?;
                    add(connection, *message, &instead)?;
                }
                forget_others(connection, &known)
            })
            .await
    }

    /// Returns at most `limit` messages that a channel has to deliver, oldest first, critical ones before all, those for the digest last.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn waiting(&self, channel: &str, limit: u32) -> Result<Vec<Waiting>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .read(move |connection| {
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
                        Some(turn) => channel_state::status(connection, &channel, turn)?,
                        None => None,
                    };
                }
                Ok(waiting)
            })
            .await
    }

    /// Records that these messages wait for the end of quiet hours. Adds `note` to the events of their runs.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Records that a channel has sent a part of these, as one message. `sent`: the ids of all parts so far.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Records that a channel has delivered these, as one message with the id `external`. So the channel works again.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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
                    channel_state::replaced(connection, &channel, *number)?;
                }
                connection.execute("DELETE FROM failing_channel WHERE name = ?1", [&channel])?;
                settings::delete(connection, &format!("{REFUSED} {channel}"))
            })
            .await
    }

    /// Records that a channel could not deliver this message now. Returns since when the channel fails.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Hands each message over to the first channel that works and has not refused it, but of a broken channel none that is held for
    /// later. If there is no such channel, [`Refused::only`] fails, and other messages keep waiting. Notifies the person once, on the channel that takes over.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn reassign(&self, refused: Refused) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        let note = self.writer.commit(move |connection| reassign(connection, &refused, clock.now())).await?;
        self.announce(note);
        self.rerouted();
        Ok(())
    }

    /// Returns the delivery of a message by a channel; `None` if there is none.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn delivery(&self, message: i64, channel: &str) -> Result<Option<Delivery>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .read(move |connection| {
                let sql = format!("{DELIVERIES} WHERE message = ?1 AND channel = ?2");
                connection.one(&sql, params![message, channel], read_delivery)
            })
            .await
    }

    /// Returns a counter that changes when the work of the channels changes.
    #[must_use]
    pub fn routed(&self) -> watch::Receiver<u64> {
        self.routed.subscribe()
    }

    pub(super) fn rerouted(&self) {
        self.routed.send_modify(|count| *count += 1);
    }
}

impl JournalReader {
    /// Returns the channels that do not work now, by name, and then those that only hear nothing or refused a message.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn failing_channels(&self) -> Result<Vec<FailingChannel>, JournalError> {
        let sql = "SELECT name, since, error FROM failing_channel ORDER BY name";
        let mut failing = self.all(sql, &[], |row| {
            let (name, since) = (row.get("name")?, row.at("since")?);
            Ok(FailingChannel { name, since, error: row.get("error")?, refused: false, deaf: false })
        })?;
        let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
        for (prefix, deaf) in [(DEAF, true), (REFUSED, false)] {
            let [from, to] = settings::range(prefix);
            let found =
                self.all(sql, &[&from, &to], |row| Ok((row.get::<String>("key")?, row.get::<String>("value")?)))?;
            for (key, value) in found {
                let name = key.strip_prefix(&from).unwrap_or_default().to_owned();
                if let Some((since, error)) = refusal(&value)
                    && failing.iter().all(|failing| failing.name != name)
                {
                    failing.push(FailingChannel { name, since, error: error.to_owned(), refused: !deaf, deaf });
                }
            }
        }
        Ok(failing)
    }

    /// Returns whether a channel has delivered this message.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn is_delivered(&self, message: i64) -> Result<bool, JournalError> {
        let sql = "SELECT delivered IS NOT NULL FROM message WHERE number = ?1";
        Ok(self.all(sql, &[&message], |row| row.get(0))?.pop().unwrap_or(false))
    }

    /// Returns how many messages wait for each channel.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn waiting_for_channels(&self) -> Result<Vec<(String, u64)>, JournalError> {
        let sql = "SELECT channel, count(*) FROM delivery WHERE state = 'waiting' GROUP BY channel";
        self.all(sql, &[], |row| Ok((row.get(0)?, row.get::<u32>(1)?.into())))
    }

    /// Returns when each channel last delivered a message. Leaves out channels that never have.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_delivered(&self) -> Result<Vec<(String, DateTime<Utc>)>, JournalError> {
        let sql = "SELECT channel, max(ended) AS last FROM delivery
                   WHERE state = 'delivered' AND ended IS NOT NULL GROUP BY channel";
        self.all(sql, &[], |row| Ok((row.get("channel")?, row.at("last")?)))
    }

    /// Returns the deliveries of a message, in the order of the channels' names.
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

/// Gives a message to the channel `to`. What has waited for the end of quiet hours on the channel `from` does not wait for another end.
fn take_over(
    connection: &Connection,
    message: i64,
    [from, to]: [&String; 2],
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    add(connection, message, to)?;
    connection.execute(
        "UPDATE delivery SET held_until =
             (SELECT held_until FROM delivery WHERE message = ?1 AND channel = ?2 AND held_until <= ?4)
         WHERE message = ?1 AND channel = ?3 AND held_until IS NULL",
        params![message, from, to, ms(now)],
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

/// Deletes the states of channels that there are no more.
fn forget_others(connection: &Connection, known: &[String]) -> Result<(), JournalError> {
    let failing: Vec<String> = connection.all("SELECT name FROM failing_channel", (), |row| row.get(0))?;
    for name in failing.iter().filter(|name| !known.contains(name)) {
        connection.execute("DELETE FROM failing_channel WHERE name = ?1", [name])?;
    }
    for prefix in [DEAF, REFUSED] {
        let sql = "SELECT key FROM setting WHERE key > ?1 AND key < ?2";
        let keys: Vec<String> = connection.all(sql, settings::range(prefix), |row| row.get(0))?;
        let is_known = |key: &&String| key.split_once(' ').is_some_and(|(_, name)| known.iter().any(|one| one == name));
        for key in keys.iter().filter(|key| !is_known(key)) {
            settings::delete(connection, key)?;
        }
    }
    Ok(())
}

/// Parses the time since which a channel refuses messages or hears nothing, and the reason.
fn refusal(value: &str) -> Option<(DateTime<Utc>, &str)> {
    let (since, why) = value.split_once(' ')?;
    Some((DateTime::from_timestamp_millis(since.parse().ok()?)?, why))
}

/// Records that a channel refused a message. Returns whether it is the first since it last worked.
fn refused(connection: &Connection, channel: &str, why: &str, now: DateTime<Utc>) -> Result<bool, JournalError> {
    let key = format!("{REFUSED} {channel}");
    let known = settings::get(connection, &key)?;
    let since = known.as_deref().and_then(refusal).map_or(now, |(since, _)| since);
    settings::set(connection, &key, &format!("{} {why}", ms(since)))?;
    let sql = "SELECT EXISTS (SELECT 1 FROM failing_channel WHERE name = ?1)";
    let is_failing: bool = connection.row(sql, [channel], |row| row.get(0))?;
    Ok(known.is_none() && !is_failing)
}

/// Returns the number of the message to the person; 0 if there is none.
fn reassign(connection: &Connection, given_up: &Refused, now: DateTime<Utc>) -> Result<i64, JournalError> {
    let Refused { channel, only, why, next, cause } = given_up;
    let is_first = match cause {
        Cause::Broken => {
            failing(connection, channel, why, now)?;
            false
        }
        Cause::Refused => refused(connection, channel, why, now)?,
        Cause::Closed => false,
    };
    let numbers: Vec<i64> = connection.all(
        // What waits for the end of quiet hours has time: the channel may work again by then.
        "SELECT message FROM delivery WHERE channel = ?1 AND state = 'waiting'
             AND (message = ?2 OR ?2 IS NULL AND (?3 OR held_until IS NULL OR held_until <= ?4)) ORDER BY message",
        params![channel, only, *cause != Cause::Broken, ms(now)],
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
                take_over(connection, number, [channel, candidate], now)?;
                taken_by.get_or_insert(candidate);
            }
            None if only.is_some() => fail(connection, number, channel, why, now)?,
            None => {}
        }
    }
    let Some(next) = taken_by else { return Ok(0) };
    let what = match cause {
        Cause::Broken => {
            let sql = "UPDATE failing_channel SET handed_over = TRUE WHERE name = ?1 AND NOT handed_over";
            if connection.execute(sql, [channel])? == 0 {
                return Ok(0);
            }
            format!("does not deliver: {why}. Its messages come here until it works again.")
        }
        Cause::Refused if is_first => format!("refused a message: {why}. Messages that it refuses come here."),
        Cause::Refused | Cause::Closed => return Ok(0),
    };
    let text = format!("The channel `{channel}` {what} `ollim-bot channels` shows how it is.");
    let note = insert_message(connection, &NewMessage::of_service(text), now)?;
    add(connection, note, next)?;
    Ok(note)
}
