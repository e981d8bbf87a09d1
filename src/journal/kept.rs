//! What a channel must know after a restart: which messages show turns, and what came in that is not heard yet.

use super::database::Connection;
use super::outbox::{MESSAGE, read_message};
use super::{Journal, JournalError, Message};
use crate::definition::DefinitionId;

/// A message of a channel's that shows how a turn goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The turn.
    pub turn: DefinitionId,
    /// What the channel's service calls the message.
    pub message: String,
}

/// What the settings that hold statuses begin with; the channel and the turn follow.
const STATUS: &str = "status";

/// The same of what came in and is not heard yet; the channel and a name follow.
const UNHEARD: &str = "unheard";

impl Journal {
    /// A channel shows a turn by this message.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn shows_turn(&self, channel: &str, turn: &DefinitionId, message: String) -> Result<(), JournalError> {
        self.keep(key(STATUS, channel, turn.as_str()), message).await?;
        // The turn may be over already.
        self.rerouted();
        Ok(())
    }

    /// The message that showed a turn does so no more.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn hides_turn(&self, channel: &str, turn: &DefinitionId) -> Result<(), JournalError> {
        self.let_go(key(STATUS, channel, turn.as_str())).await
    }

    /// Messages of a channel's that show turns which are over, and in whose place no answer of the channel's will come. `all`: nothing
    /// runs any more, so that each is over.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn left_statuses(&self, channel: &str, all: bool) -> Result<Vec<Status>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .commit(move |connection| {
                let mut left = Vec::new();
                for (turn, message) in kept(connection, STATUS, &channel)? {
                    if !answer_waits(connection, &turn, &channel)? && (all || is_over(connection, &turn)?) {
                        left.push(Status { turn: DefinitionId::new(turn), message });
                    }
                }
                Ok(left)
            })
            .await
    }

    /// Keeps what came in by a channel until it is heard.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn keep_unheard(&self, channel: &str, name: &str, what: String) -> Result<(), JournalError> {
        self.keep(key(UNHEARD, channel, name), what).await
    }

    /// What came in by a channel and is not heard yet, with its names.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn unheard(&self, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
        let channel = channel.to_owned();
        self.writer.commit(move |connection| kept(connection, UNHEARD, &channel)).await
    }

    /// It is heard.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn is_heard(&self, channel: &str, name: &str) -> Result<(), JournalError> {
        self.let_go(key(UNHEARD, channel, name)).await
    }

    async fn keep(&self, key: String, value: String) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO setting (key, value) VALUES (?1, ?2)
                         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    [&key, &value],
                )?;
                Ok(())
            })
            .await
    }

    async fn let_go(&self, key: String) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM setting WHERE key = ?1", [&key])?;
                Ok(())
            })
            .await
    }
}

/// No channel's name has a blank in it.
fn key(what: &str, channel: &str, name: &str) -> String {
    format!("{what} {channel} {name}")
}

/// What is kept of a channel's, by its names.
fn kept(connection: &Connection, what: &str, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
    let prefix = key(what, channel, "");
    // `!` is what follows a blank.
    let end = format!("{what} {channel}!");
    let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
    connection.all(sql, [&prefix, &end], |row| {
        let key: String = row.get(0)?;
        Ok((key.strip_prefix(&prefix).unwrap_or_default().to_owned(), row.get(1)?))
    })
}

/// The message by which a channel shows a turn.
pub(super) fn status(
    connection: &Connection,
    channel: &str,
    turn: &DefinitionId,
) -> Result<Option<String>, JournalError> {
    let sql = "SELECT value FROM setting WHERE key = ?1";
    connection.one(sql, [&key(STATUS, channel, turn.as_str())], |row| row.get(0))
}

impl Message {
    /// The turn whose answer it is, or that says why there is none. A question and what an agent sends by a tool are a part of the
    /// turn, and have a title.
    #[must_use]
    pub fn answers(&self) -> Option<&DefinitionId> {
        let has_title = self.rich.as_ref().is_some_and(|rich| !rich.title.is_empty());
        self.id.as_ref().filter(|id| id.is_turn() && self.run.is_some() && !has_title)
    }
}

/// The turn's answer has taken the place of the message that showed it.
pub(super) fn replaced(connection: &Connection, channel: &str, message: i64) -> Result<(), JournalError> {
    let sql = format!("SELECT {MESSAGE} FROM message m WHERE number = ?1");
    let found = connection.one(&sql, [message], read_message)?;
    if let Some(turn) = found.as_ref().and_then(Message::answers) {
        connection.execute("DELETE FROM setting WHERE key = ?1", [&key(STATUS, channel, turn.as_str())])?;
    }
    Ok(())
}

/// Whether some channel shows some turn.
pub(super) fn any_status(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM setting WHERE key > ?1 AND key < ?2)";
    connection.row(sql, [&format!("{STATUS} "), &format!("{STATUS}!")], |row| row.get(0))
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

/// Whether it has its outcome, or is not known any more.
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
    use crate::definition::{DefinitionId, Kind};
    use crate::journal::{
        Claim, Finish, Journal, NewClaim, NewMessage, NewSession, Occurrence, Punctuality, Purpose, Rich, RunId,
        RunState, outbox::insert_message, testing,
    };

    async fn turn(journal: &Journal, clock: &Clock, id: &DefinitionId) -> RunId {
        let new = NewSession {
            id: id.clone(),
            by: None,
            caller: "the user".into(),
            caller_agent: None,
            definition: "---\n---\nx".into(),
            spawn_tool_policy: None,
            fork: None,
        };
        journal.start_session(new, 8, 8).await.unwrap();
        let claim = NewClaim {
            occurrence: Occurrence { id: id.clone(), kind: Kind::Session, at: clock.now() },
            file: "runs/x.md".into(),
            text: "".into(),
            purpose: Purpose::Run,
            occasion: None,
            origin: None,
        };
        let Claim::Claimed(run) = journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!() };
        journal.launching(&run, "".into(), String::new(), Punctuality::Unknown).await.unwrap();
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
            journal.left_statuses(channel, all).await.unwrap().into_iter().map(|status| status.message).collect()
        };
        journal.shows_turn("tg", &over, "17".into()).await.unwrap();
        journal.shows_turn("tg-2", &over, "18".into()).await.unwrap();
        let run = turn(&journal, &clock, &over).await;
        assert_eq!((left("tg", false).await, left("tg", true).await), (vec!["17".into()], vec!["17".into()]));
        // A message of the turn's is to take its place, whoever is to deliver it.
        let (id, now) = (Some(over.clone()), clock.now());
        let answer = NewMessage { id, run: Some(run), ..NewMessage::of_service("Green.") };
        let rich = Some(Rich { title: "May I?".into(), ..Rich::default() });
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
        journal.hides_turn("tg-2", &over).await.unwrap();
        assert!(left("tg-2", true).await.is_empty());
        // One that is forgotten is over.
        journal.shows_turn("tg", &unknown, "20".into()).await.unwrap();
        assert_eq!(left("tg", false).await, ["20"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_of_a_channel_is_not_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock).unwrap();
        for channel in ["tg", "tg-2", "t"] {
            journal.keep_unheard(channel, "5", format!("of {channel}")).await.unwrap();
        }
        assert_eq!(journal.unheard("tg").await.unwrap(), [("5".to_owned(), "of tg".to_owned())]);
        journal.is_heard("tg", "5").await.unwrap();
        assert!(journal.unheard("tg").await.unwrap().is_empty());
        assert_eq!(journal.unheard("tg-2").await.unwrap().len(), 1);
    }
}
