//! State that a channel needs after a restart: the messages that show turns, and input that is not processed yet.

use super::database::Connection;
use super::outbox::{MESSAGE, insert_message, read_message};
use super::rows::ms;
use super::{Journal, JournalError, Message, NewMessage, settings};
use crate::definition::DefinitionId;

/// A channel's message that shows the progress of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The turn.
    pub turn: DefinitionId,
    /// The id of the message at the channel's service.
    pub message: String,
}

/// An input whose effect begins.
#[derive(Clone, Debug)]
pub struct BegunInput {
    /// The channel.
    pub channel: String,
    /// An id that tells it from the channel's other inputs.
    pub id: String,
    /// Its id at the channel's service, if only the first delivery with that id has an effect.
    pub handled: Option<String>,
    /// Its name in the notice of a [cut off](Journal::end_cut_off_inputs) one.
    pub what: String,
}

/// Prefix of the keys that hold statuses. The channel and the turn follow.
const STATUS: &str = "status";

/// Prefix of the keys that hold unprocessed input. The channel and a name follow.
const UNPROCESSED: &str = "unheard";

/// Prefix of the keys that hold why channels hear nothing, and since when. The channel follows. Empty: it hears again.
pub(super) const DEAF: &str = "deaf";

/// Prefix of the keys that hold the times of input that was no turn. The channel and the id at its service follow.
const HANDLED: &str = "handled";

/// Prefix of the keys that hold input whose effect has begun and not ended. The host, the channel and an id follow.
const BEGUN: &str = "begun";

impl Journal {
    /// Records that a channel shows a turn with this message.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_turn_status(
        &self,
        channel: &str,
        turn: &DefinitionId,
        message: String,
    ) -> Result<(), JournalError> {
        self.set_setting(key(STATUS, channel, turn.as_str()), Some(message)).await?;
        // The turn may have ended already.
        self.rerouted();
        Ok(())
    }

    /// Records that no message of the channel shows the turn any more.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn clear_turn_status(&self, channel: &str, turn: &DefinitionId) -> Result<(), JournalError> {
        self.set_setting(key(STATUS, channel, turn.as_str()), None).await
    }

    /// Returns a channel's status messages of ended turns that no answer on the channel will replace. `all`:
    /// nothing runs any more, so every turn has ended.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn leftover_statuses(&self, channel: &str, all: bool) -> Result<Vec<Status>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .read(move |connection| {
                let mut left = Vec::new();
                for (turn, message) in get_all(connection, STATUS, &channel)? {
                    if !answer_waits(connection, &turn, &channel)? && (all || is_over(connection, &turn)?) {
                        left.push(Status { turn: DefinitionId::new(turn), message });
                    }
                }
                Ok(left)
            })
            .await
    }

    /// Records why a channel hears nothing, or that it hears. If that is a change, the person gets the message `told`.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_deaf(&self, channel: &str, why: Option<String>, told: NewMessage) -> Result<(), JournalError> {
        let now = ms(self.clock.now());
        let change = move |kept: Option<&str>| {
            let is_change = kept.is_some_and(|kept| !kept.is_empty()) != why.is_some();
            let value = why.as_ref().map(|why| format!("{now} {why}")).unwrap_or_default();
            is_change.then(|| (value, vec![told.clone()], ()))
        };
        self.change_setting_and_tell(format!("{DEAF} {channel}"), change).await.map(drop)
    }

    /// Keeps input from a channel until it is processed.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn store_unprocessed(&self, channel: &str, name: &str, what: String) -> Result<(), JournalError> {
        self.set_setting(key(UNPROCESSED, channel, name), Some(what)).await
    }

    /// Returns a channel's unprocessed input, with the names.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn unprocessed(&self, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
        let channel = channel.to_owned();
        self.writer.read(move |connection| get_all(connection, UNPROCESSED, &channel)).await
    }

    /// Removes input that is processed.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn mark_processed(&self, channel: &str, name: &str) -> Result<(), JournalError> {
        self.set_setting(key(UNPROCESSED, channel, name), None).await
    }

    /// Records that the effect of an input begins, and that the input is handled. Returns `false` and records nothing if it
    /// was handled before.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn begin_input(&self, input: BegunInput) -> Result<bool, JournalError> {
        let now = ms(self.clock.now()).to_string();
        self.writer
            .commit(move |connection| {
                let BegunInput { channel, id, handled, what } = &input;
                if let Some(handled) = handled {
                    let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
                    if connection.execute(sql, [&key(HANDLED, channel, handled), &now])? == 0 {
                        return Ok(false);
                    }
                }
                settings::set(connection, &begun(connection, &format!("{channel} {id}")), what)?;
                Ok(true)
            })
            .await
    }

    /// Records that the effect of an input has ended.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_input(&self, channel: &str, id: &str) -> Result<(), JournalError> {
        let (channel, id) = (channel.to_owned(), id.to_owned());
        self.writer
            .commit(move |connection| settings::delete(connection, &begun(connection, &format!("{channel} {id}"))))
            .await
    }

    /// Ends the inputs that this host's previous process had begun, and notifies the person of each. `message` gets the channel and the
    /// name of an input. Call it once, at the start.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn end_cut_off_inputs(
        &self,
        message: impl Fn(&str, &str) -> NewMessage + Send + 'static,
    ) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        let newest = self
            .writer
            .commit(move |connection| {
                let [prefix, end] = settings::range(begun(connection, "").trim_end());
                let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
                let inputs: Vec<(String, String)> =
                    connection.all(sql, [&prefix, &end], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let mut newest = 0;
                for (key, what) in inputs {
                    let channel = key.strip_prefix(&prefix).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
                    newest = insert_message(connection, &message(channel, &what), clock.now())?;
                    settings::delete(connection, &key)?;
                }
                Ok(newest)
            })
            .await?;
        self.announce(newest);
        Ok(())
    }

    /// Returns whether the effect of the input with this id at the channel's service has [begun](Self::begin_input).
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn is_handled(&self, channel: &str, id: &str) -> Result<bool, JournalError> {
        let key = key(HANDLED, channel, id);
        self.writer.read(move |connection| Ok(settings::get(connection, &key)?.is_some())).await
    }
}

/// Deletes the ids of input that was handled before this time.
pub(super) fn prune_handled(connection: &Connection, before: i64) -> Result<(), JournalError> {
    // All times have 13 digits.
    let sql = "DELETE FROM setting WHERE key > ?1 AND key < ?2 AND value < ?3";
    let [from, to] = settings::range(HANDLED);
    connection.execute(sql, [from, to, before.to_string()])?;
    Ok(())
}

/// Builds the key of an input of this host. Its name contains no blank.
fn begun(connection: &Connection, input: &str) -> String {
    format!("{BEGUN} {} {input}", connection.host().unwrap_or("-"))
}

/// Builds a key. The name of a channel contains no blank.
fn key(what: &str, channel: &str, name: &str) -> String {
    format!("{what} {channel} {name}")
}

/// Returns the kept values of a channel, with their names.
fn get_all(connection: &Connection, what: &str, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
    let [prefix, end] = settings::range(&format!("{what} {channel}"));
    let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
    connection.all(sql, [&prefix, &end], |row| {
        let key: String = row.get(0)?;
        Ok((key.strip_prefix(&prefix).unwrap_or_default().to_owned(), row.get(1)?))
    })
}

/// Returns the message with which a channel shows a turn.
pub(super) fn status(
    connection: &Connection,
    channel: &str,
    turn: &DefinitionId,
) -> Result<Option<String>, JournalError> {
    settings::get(connection, &key(STATUS, channel, turn.as_str()))
}

impl Message {
    /// Returns the turn that this message answers, or whose missing answer it explains. Questions and messages
    /// that an agent sends with a tool belong to the turn, too, but have a title.
    #[must_use]
    pub fn answers(&self) -> Option<&DefinitionId> {
        let has_title = self.rich.as_ref().is_some_and(|rich| !rich.title.is_empty());
        self.id.as_ref().filter(|id| id.is_turn() && self.run.is_some() && !has_title)
    }
}

/// Removes the status message of a turn, once the answer has taken its place.
pub(super) fn replaced(connection: &Connection, channel: &str, message: i64) -> Result<(), JournalError> {
    let sql = format!("SELECT {MESSAGE} FROM message m WHERE number = ?1");
    let found = connection.one(&sql, [message], read_message)?;
    if let Some(turn) = found.as_ref().and_then(Message::answers) {
        settings::delete(connection, &key(STATUS, channel, turn.as_str()))?;
    }
    Ok(())
}

/// Returns whether any channel shows any turn.
pub(super) fn any_status(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM setting WHERE key > ?1 AND key < ?2)";
    connection.row(sql, settings::range(STATUS), |row| row.get(0))
}

fn answer_waits(connection: &Connection, turn: &str, channel: &str) -> Result<bool, JournalError> {
    connection.row(
        "SELECT EXISTS (SELECT 1 FROM message m WHERE m.id = ?1 AND m.delivered IS NULL
                AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.number))
             OR EXISTS (SELECT 1 FROM message m JOIN delivery d ON d.message = m.number
                WHERE m.id = ?1 AND d.channel = ?2 AND d.state = 'waiting')",
        [turn, channel],
        |row| row.get(0),
    )
}

/// Returns whether the turn has its outcome, or is not in the journal any more.
fn is_over(connection: &Connection, turn: &str) -> Result<bool, JournalError> {
    connection.row(
        "SELECT EXISTS (SELECT 1 FROM occurrence WHERE id = ?1 AND outcome IS NOT NULL)
             OR NOT EXISTS (SELECT 1 FROM session WHERE id = ?1)",
        [turn],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests {
    use crate::clock::Clock;
    use crate::definition::DefinitionId;
    use crate::journal::{
        BegunInput, Finish, Journal, JournalReader, NewMessage, RichContent, RunId, RunState, Subject,
        outbox::insert_message, testing,
    };

    async fn turn(journal: &Journal, clock: &Clock, id: &DefinitionId) -> RunId {
        let run = testing::begin_turn(journal, clock, id).await;
        journal.finish(&run, Finish::closed(RunState::Cancelled, None)).await.unwrap();
        run
    }

    #[tokio::test(start_paused = true)]
    async fn what_shows_a_turn_is_left_when_it_is_over_and_no_answer_waits() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        let (over, unknown) = (DefinitionId::new("chat-tg-1"), DefinitionId::new("chat-tg-2"));
        let left = async |channel: &str, all| -> Vec<String> {
            journal.leftover_statuses(channel, all).await.unwrap().into_iter().map(|status| status.message).collect()
        };
        journal.set_turn_status("tg", &over, "17".into()).await.unwrap();
        journal.set_turn_status("tg-2", &over, "18".into()).await.unwrap();
        let run = turn(&journal, &clock, &over).await;
        assert_eq!((left("tg", false).await, left("tg", true).await), (vec!["17".into()], vec!["17".into()]));
        // The turn's answer will take its place, whichever channel delivers it.
        let (subject, now) = (Subject::words_of(&over), clock.now());
        let answer = NewMessage { run: Some(run), ..NewMessage::about(subject, "Green.") };
        let rich = Some(RichContent { title: "May I?".into(), ..RichContent::default() });
        let question = NewMessage { rich, ..answer.clone() };
        let insert = |message| journal.writer.commit(move |connection| insert_message(connection, &message, now));
        let question = insert(question).await.unwrap();
        journal.route(vec![(question, vec!["tg".into()])]).await.unwrap();
        journal.delivered("tg", &[question], Some("16".into())).await.unwrap();
        assert_eq!(left("tg", true).await, ["17"], "a question does not take its place");
        let number = insert(answer).await.unwrap();
        assert!(left("tg", true).await.is_empty() && left("tg-2", true).await.is_empty());
        journal.route(vec![(number, vec!["tg".into()])]).await.unwrap();
        assert!(left("tg", true).await.is_empty());
        assert_eq!(left("tg-2", false).await, ["18"], "no answer comes there");
        journal.sent_in_part("tg", &[number], "17".into()).await.unwrap();
        let waiting = journal.waiting("tg", 10).await.unwrap().remove(0);
        assert_eq!((waiting.sent.as_deref(), waiting.status.as_deref()), (Some("17"), Some("17")));
        journal.delivered("tg", &[number], Some("17 19".into())).await.unwrap();
        assert!(left("tg", true).await.is_empty(), "the answer is in its place");
        journal.clear_turn_status("tg-2", &over).await.unwrap();
        assert!(left("tg-2", true).await.is_empty());
        // A turn that the journal does not know has ended.
        journal.set_turn_status("tg", &unknown, "20".into()).await.unwrap();
        assert_eq!(left("tg", false).await, ["20"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_of_a_channel_is_not_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock).unwrap();
        for channel in ["tg", "tg-2", "t"] {
            journal.store_unprocessed(channel, "5", format!("of {channel}")).await.unwrap();
        }
        assert_eq!(journal.unprocessed("tg").await.unwrap(), [("5".to_owned(), "of tg".to_owned())]);
        journal.mark_processed("tg", "5").await.unwrap();
        assert!(journal.unprocessed("tg").await.unwrap().is_empty());
        assert_eq!(journal.unprocessed("tg-2").await.unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_hears_nothing_is_told_when_that_changes() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        let says = |why: Option<&str>| (why.map(str::to_owned), NewMessage::of_service(why.unwrap_or("again")));
        for why in [None, Some("one"), Some("two"), None, None, Some("three")] {
            let (why, told) = says(why);
            journal.set_deaf("tg", why, told).await.unwrap();
        }
        let reader = journal.reader().unwrap();
        let mut told: Vec<String> = reader.messages(None).unwrap().into_iter().map(|message| message.text).collect();
        told.reverse();
        assert_eq!(told, ["one", "again", "three"]);
        let failing = reader.failing_channels().unwrap().remove(0);
        assert_eq!((&*failing.name, &*failing.error, failing.state()), ("tg", "three", "hears nothing"));
        // Nothing is said of a channel that is in the settings no more.
        journal.not_delivered("post", 1, "no server".into()).await.unwrap();
        journal.move_waiting(vec!["tg".into()], "tg".into()).await.unwrap();
        assert_eq!(reader.failing_channels().unwrap(), [failing]);
        journal.move_waiting(vec!["phone".into()], "phone".into()).await.unwrap();
        assert_eq!(reader.failing_channels().unwrap(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_is_new_once() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock).unwrap();
        for (channel, by, is_first) in [("tg", "8", true), ("tg", "8", false), ("tg-2", "8", true), ("tg", "9", true)] {
            assert_eq!(journal.record_stranger(channel, by).await.unwrap(), is_first, "{channel} {by}");
        }
        let counted: Vec<(String, u64)> = journal
            .reader()
            .unwrap()
            .channel_inputs()
            .unwrap()
            .into_iter()
            .map(|one| (one.channel, one.strangers))
            .collect();
        assert_eq!(counted, [("tg".to_owned(), 3), ("tg-2".to_owned(), 1)]);
    }

    fn input(channel: &str, id: &str) -> BegunInput {
        let (handled, what) = (Some(id.to_owned()), format!("the input {id}"));
        BegunInput { channel: channel.to_owned(), id: id.to_owned(), handled, what }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_previous_process_had_begun_is_told_of_once() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let place = testing::place(&folder.path().join("journal.db"));
        let journal = Journal::open(place.clone(), clock.clone()).unwrap();
        for (channel, id) in [("tg", "1"), ("tg", "2"), ("tg-2", "3"), ("discord", "1")] {
            journal.begin_input(input(channel, id)).await.unwrap();
        }
        journal.end_input("tg", "2").await.unwrap();
        journal.end_input("tg", "3").await.unwrap();
        let message = |channel: &str, what: &str| NewMessage::of_service(format!("{what} on {channel}"));
        for _ in 0..2 {
            journal.end_cut_off_inputs(message).await.unwrap();
            let messages = JournalReader::open(&place).unwrap().messages(None).unwrap();
            let mut told: Vec<String> = messages.into_iter().map(|one| one.text).collect();
            told.sort();
            assert_eq!(told, ["the input 1 on discord", "the input 1 on tg", "the input 3 on tg-2"]);
        }
        assert!(journal.is_handled("tg", "1").await.unwrap(), "it is not done a second time");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_handled_is_known_until_it_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        for (channel, id, is_first) in [("tg", "5", true), ("tg", "5", false), ("tg-2", "5", true), ("tg", "6", true)] {
            assert_eq!(journal.begin_input(input(channel, id)).await.unwrap(), is_first, "{channel} {id}");
        }
        let handled = async |id: &str| journal.is_handled("tg", id).await.unwrap();
        journal.prune(clock.now(), std::collections::BTreeSet::new()).await.unwrap();
        assert!(handled("5").await && handled("6").await && !handled("7").await);
        journal.prune(clock.now() + chrono::TimeDelta::seconds(1), std::collections::BTreeSet::new()).await.unwrap();
        assert!(!handled("5").await);
    }
}
