//! A journal on a PostgreSQL server, which several hosts share.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::JournalError;
use super::database::{Connection, Link, ServerAddress};
use super::schema::MIGRATIONS;

/// The first schema of a journal on a server. A new journal gets it in one step, by all migrations up to it.
const FIRST: usize = 10;

/// Tables that only a journal on a server has: its schema version, the hosts, and their roles. `least`: the oldest
/// schema that a program must know to write here. The functions are those of SQLite.
const ONLY_HERE: &str = r#"
CREATE TABLE journal (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    version BIGINT NOT NULL,
    least BIGINT NOT NULL
);
CREATE TABLE host (
    name TEXT COLLATE "C" PRIMARY KEY,
    home TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    lease_until TIMESTAMPTZ NOT NULL,
    joined TIMESTAMPTZ NOT NULL,
    version TEXT NOT NULL,
    zones TEXT NOT NULL,
    labels TEXT NOT NULL,
    slots BIGINT NOT NULL,
    running BIGINT NOT NULL DEFAULT 0,
    skew_ms BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE role (name TEXT COLLATE "C" PRIMARY KEY, host TEXT COLLATE "C" NOT NULL, epoch BIGINT NOT NULL);
CREATE FUNCTION json_remove(data TEXT, path TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE
    AS $$ SELECT (data::jsonb - substr(path, 3))::text $$;
CREATE FUNCTION json_extract(data TEXT, path TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE
    AS $$ SELECT data::jsonb ->> substr(path, 3) $$;
CREATE FUNCTION instr(text TEXT, part TEXT) RETURNS INTEGER LANGUAGE SQL IMMUTABLE AS $$ SELECT strpos(text, part) $$;
"#;

/// The location of a journal.
#[derive(Clone, Debug)]
pub enum JournalLocation {
    /// A file on this machine.
    File(PathBuf),
    /// A database on a server.
    Server(Server),
}

impl From<&Path> for JournalLocation {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl From<&PathBuf> for JournalLocation {
    fn from(path: &PathBuf) -> Self {
        Self::File(path.clone())
    }
}

impl From<&JournalLocation> for JournalLocation {
    fn from(place: &JournalLocation) -> Self {
        place.clone()
    }
}

impl fmt::Display for JournalLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

/// A server with a journal. Clones share its connections.
#[derive(Clone)]
pub struct Server {
    place: Arc<ServerAddress>,
    readers: Arc<Readers>,
}

/// The connections of those who read.
#[derive(Default)]
struct Readers {
    connections: Mutex<Connections>,
    given_back: Condvar,
}

#[derive(Default)]
struct Connections {
    idle: Vec<Link>,
    /// Number of readers that have one.
    lent: usize,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.place)
    }
}

impl fmt::Display for Server {
    /// Leaves the password out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl Server {
    /// Maximum number of connections for reading. When many jobs begin together on many hosts, each of them reads.
    const MAX_READERS: usize = 4;

    /// Wait for one of them, after which a reader opens one more. Whoever waits may have one already.
    const READER_PATIENCE: Duration = Duration::from_secs(1);

    /// Returns the server at `postgres://user@host:5432/name`, without connecting. A process has one server per address and password.
    ///
    /// # Errors
    /// [`JournalError::Address`].
    pub fn at(url: &str, password: Option<&str>) -> Result<Self, JournalError> {
        /// Servers by address and password.
        type Known = HashMap<(String, Option<String>), Server>;
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (url.to_owned(), password.map(str::to_owned));
        let known = known.get_or_insert_default();
        if let Some(server) = known.get(&key) {
            return Ok(server.clone());
        }
        let place = ServerAddress::read(url, password).map_err(JournalError::Address)?;
        let server = Self { place: Arc::new(place), readers: Arc::default() };
        known.insert(key, server.clone());
        Ok(server)
    }

    /// Returns the password from the address or given beside it, if it is text.
    #[must_use]
    pub fn password(&self) -> Option<String> {
        self.place.password()
    }

    /// Opens a connection for the caller alone.
    pub(super) fn connect(&self) -> Result<Link, JournalError> {
        Link::open(&self.place)
    }

    /// Borrows a connection, or opens one. The borrower then calls [`Self::give_back`], also after an error.
    pub(super) fn borrow(&self) -> Result<Link, JournalError> {
        let readers = &self.readers;
        let known = readers.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |known: &mut Connections| known.lent >= Self::MAX_READERS;
        let waited = readers.given_back.wait_timeout_while(known, Self::READER_PATIENCE, is_busy);
        let (mut known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        known.lent += 1;
        while let Some(link) = known.idle.pop() {
            if !link.is_closed() {
                return Ok(link);
            }
        }
        drop(known);
        self.connect()
    }

    /// Takes back what [`Self::borrow`] gave; `None` if that connection is gone.
    pub(super) fn give_back(&self, link: Option<Link>) {
        let mut known = self.readers.connections.lock().unwrap_or_else(PoisonError::into_inner);
        known.lent = known.lent.saturating_sub(1);
        if let Some(link) = link.filter(|link| !link.is_closed() && known.idle.len() < Self::MAX_READERS) {
            known.idle.push(link);
        }
        drop(known);
        self.readers.given_back.notify_one();
    }

    /// Returns the schema of its journal; `None` if there is none yet.
    ///
    /// # Errors
    /// [`JournalError::NewerOnServer`] when this program is too old to use it.
    pub(super) fn version(&self, connection: &Connection) -> Result<Option<usize>, JournalError> {
        let there = "SELECT to_regclass('journal') IS NOT NULL";
        if !connection.row(there, (), |row| row.get(0))? {
            return Ok(None);
        }
        let read = |row: &super::database::Row<'_>| Ok((row.get::<u32>("version")?, row.get::<u32>("least")?));
        let Some((found, least)) = connection.one("SELECT version, least FROM journal", (), read)? else {
            return Ok(None);
        };
        let (found, known) = (usize::try_from(found).unwrap_or(usize::MAX), MIGRATIONS.len());
        if usize::try_from(least).unwrap_or(usize::MAX) > known {
            return Err(JournalError::NewerOnServer { server: self.to_string(), found, known });
        }
        Ok(Some(found))
    }

    /// Creates the tables, or migrates them to the current schema. If several hosts try at once, one of them does it.
    pub(super) fn migrate(&self, connection: &Connection) -> Result<(), JournalError> {
        if self.version(connection)?.is_some_and(|found| found >= MIGRATIONS.len()) {
            return Ok(());
        }
        // An arbitrary number, the same in every version of the program.
        connection.batch("BEGIN; SELECT pg_advisory_xact_lock(7318349394477056)")?;
        let migrated = self.migrate_alone(connection).and_then(|()| connection.batch("COMMIT"));
        if migrated.is_err() {
            // If the rollback fails too, the connection is gone, and the transaction with it.
            let _gone = connection.batch("ROLLBACK");
        }
        migrated
    }

    fn migrate_alone(&self, connection: &Connection) -> Result<(), JournalError> {
        let found = self.version(connection)?;
        for step in MIGRATIONS.iter().skip(found.unwrap_or(0)) {
            connection.batch(&translated(step))?;
        }
        let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        let least = i64::try_from(FIRST).unwrap_or(i64::MAX);
        if found.is_none() {
            connection.batch(ONLY_HERE)?;
        }
        let sql = "INSERT INTO journal (version, least) VALUES (?1, ?2)
             ON CONFLICT (one) DO UPDATE SET version = excluded.version, least = excluded.least";
        connection.execute(sql, [version, least]).map(drop)
    }
}

/// Boolean columns. In an SQLite file they are numbers, 0 or 1.
const TRUTHS: [&str; 7] = ["by_hand", "file_done", "told", "handed_over", "start", "forgotten", "removed"];

/// Translates a migration to PostgreSQL. Names and ids are compared by their bytes, as in SQLite.
fn translated(step: &str) -> String {
    let mut translated = step
        .replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        .replace("INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        .replace(" TEXT", " TEXT COLLATE \"C\"")
        .replace(" REAL", " DOUBLE PRECISION")
        .replace(") WITHOUT ROWID", ")");
    for truth in TRUTHS {
        translated = translated
            .replace(&format!("{truth} INTEGER NOT NULL DEFAULT 0"), &format!("{truth} BOOLEAN NOT NULL DEFAULT FALSE"))
            .replace(&format!("{truth} INTEGER"), &format!("{truth} BOOLEAN"));
    }
    translated.replace("file_done = 0", "NOT file_done").replace(" INTEGER", " BIGINT")
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::super::testing::postgres::Postgres;
    use super::super::testing::proxy::Proxy;
    use super::super::{
        Claim, Journal, JournalReader, NewClaim, NewHost, NewMessage, Occurrence, OnLost, Punctuality, Purpose,
        RunFilter, RunId,
    };
    use super::*;
    use crate::clock::Clock;
    use crate::definition::{DefinitionId, Kind};
    use crate::journal::{RunState, Takeover};

    fn host(url: &str, name: &str) -> Journal {
        host_that(url, name, Box::new(|_| ()))
    }

    /// `on_lost`: called when the host loses its lease.
    fn host_that(url: &str, name: &str, on_lost: OnLost) -> Journal {
        host_by(url, name, Clock::system(), on_lost)
    }

    fn host_by(url: &str, name: &str, clock: Clock, on_lost: OnLost) -> Journal {
        let place = JournalLocation::Server(Server::at(url, None).unwrap());
        let mut journal = Journal::open(place, clock).unwrap();
        let new = NewHost {
            name: name.to_owned(),
            home: format!("home of {name}"),
            version: "1".to_owned(),
            zones: "2026b".to_owned(),
            timezone: "UTC".to_owned(),
            labels: Vec::new(),
            slots: 4,
        };
        journal.join(new, on_lost).unwrap();
        journal
    }

    fn new_claim(id: &str) -> NewClaim {
        NewClaim {
            occurrence: Occurrence { id: DefinitionId::new(id), kind: Kind::Reminder, at: Clock::system().now() },
            file: format!("reminders/{id}.md").into(),
            text: "x".into(),
            purpose: Purpose::Run,
            occasion: None,
            origin: None,
            run: RunId::random(),
        }
    }

    async fn claim(journal: &Journal, id: &str) -> Claim {
        journal.claim(vec![new_claim(id)]).await.unwrap().remove(0)
    }

    async fn start_run(journal: &Journal, id: &str) -> RunId {
        let Claim::Claimed(run) = claim(journal, id).await else { panic!("it is new") };
        journal.launching(&run, "x".into(), String::new(), Punctuality::Unknown).await.unwrap();
        run
    }

    /// The connection breaks after the server has committed, before its answer arrives.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_commit_whose_answer_is_lost_is_not_made_again() {
        let server = Postgres::start();
        let network = Proxy::before(&server.url());
        let journal = host(&network.url(), "attic");
        network.lose_a_commit();
        let claimed = claim(&journal, "job").await;
        let Claim::Claimed(run) = claimed else { panic!("it is ours: {claimed:?}") };
        network.lose_a_commit();
        journal.launching(&run, "x".into(), String::new(), Punctuality::Unknown).await.unwrap();
        network.lose_a_commit();
        journal.message(NewMessage::of_service("once")).await.unwrap();
        assert_eq!(server.psql("SELECT count(*) FROM message"), "1");
        assert_eq!(server.psql("SELECT state FROM run"), "running");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reader_does_not_take_a_connection_that_has_broken() {
        let server = Postgres::start();
        let journal = host(&server.url(), "attic");
        drop(journal.reader().unwrap());
        server
            .psql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ollim-bot'");
        assert_eq!(journal.reader().unwrap().runs(&RunFilter::default()).unwrap(), []);
    }

    #[test]
    fn many_readers_share_a_few_connections() {
        let server = Postgres::start();
        let place = JournalLocation::Server(Server::at(&server.url(), None).unwrap());
        drop(Journal::open(&place, Clock::system()).unwrap());
        let read = || {
            for _ in 0..20 {
                drop(JournalReader::open(&place).unwrap());
            }
        };
        std::thread::scope(|scope| (0..30).for_each(|_| drop(scope.spawn(read))));
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ollim-bot'";
        assert_eq!(server.psql(open), Server::MAX_READERS.to_string());
        // One who holds them all gets another one in the end.
        let held: Vec<JournalReader> =
            (0..=Server::MAX_READERS).map(|_| JournalReader::open(&place).unwrap()).collect();
        assert_eq!(server.psql(open), held.len().to_string());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_reads_waits_for_the_server() {
        let mut server = Postgres::start();
        let journal = host(&server.url(), "attic");
        drop(journal.reader().unwrap());
        server.crash();
        assert!(journal.reader().is_err());
        let reading = tokio::spawn(async move { journal.read(|journal| journal.runs(&RunFilter::default())).await });
        server.start_again();
        assert_eq!(reading.await.unwrap().unwrap(), []);
    }

    /// Requests wait for the server until the journal is closed.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_journal_can_be_closed_while_the_server_is_away() {
        let mut server = Postgres::start();
        let journal = host(&server.url(), "attic");
        server.crash();
        let mut trouble = journal.fault();
        let (writing, reading) = (journal.clone(), journal.clone());
        let writing = tokio::spawn(async move { writing.message(NewMessage::of_service("never")).await });
        let reading = tokio::spawn(async move { reading.read(|journal| journal.runs(&RunFilter::default())).await });
        trouble.wait_for(Option::is_some).await.unwrap();
        journal.close().await;
        assert!(writing.await.unwrap().is_err());
        assert!(reading.await.unwrap().is_err());
    }

    /// Of many hosts almost all find a record. They must not queue up for the one commit at a time.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_another_host_has_claimed_is_found_without_a_commit() {
        let server = Postgres::start();
        let [attic, home] = ["attic", "home"].map(|name| host(&server.url(), name));
        let (theirs, new) = (new_claim("theirs"), new_claim("new"));
        attic.claim(vec![theirs.clone()]).await.unwrap();
        let committing = Server::at(&server.url(), None).unwrap().connect().unwrap();
        committing.batch("BEGIN; SELECT 1 FROM journal FOR UPDATE").unwrap();
        let rest = async |claims| home.claim_rest(claims, Vec::new(), |texts| texts.join("\n")).await.unwrap();
        let found = tokio::time::timeout(Duration::from_secs(4), rest(vec![theirs.clone()])).await.unwrap();
        assert_eq!(found, [Claim::AlreadyRecorded(RunState::Claimed)]);
        committing.roll_back();
        let answers = rest(vec![new, theirs]).await;
        assert!(matches!(answers[..], [Claim::Claimed(_), Claim::AlreadyRecorded(RunState::Claimed)]), "{answers:?}");
    }

    /// A claimed run that was not begun is begun by the host that took it over, and is interrupted when that host ends.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_claimed_belongs_to_the_host_that_took_it_over() {
        let server = Postgres::start();
        let attic = host(&server.url(), "attic");
        let Claim::Claimed(run) = claim(&attic, "job").await else { panic!("it is new") };
        let other = start_run(&attic, "other").await;
        attic.close().await;
        let home = host(&server.url(), "home");
        let taken = home
            .take_over(Takeover { may_run: ["job", "other"].map(DefinitionId::new).into(), of_others: None })
            .await
            .unwrap();
        let states: Vec<_> = taken.iter().map(|left| (&left.run, left.state)).collect();
        assert_eq!(states, [(&run, RunState::Claimed), (&other, RunState::Interrupted)]);
        home.launching(&run, "x".into(), String::new(), Punctuality::Unknown).await.unwrap();
        assert_eq!(server.psql("SELECT string_agg(host, ' ' ORDER BY number) FROM run"), "home attic");
        // The host ends, and comes back.
        home.close().await;
        let found = host(&server.url(), "home").recover().await.unwrap().unfinished;
        let states: Vec<_> = found.iter().map(|left| (&left.run, left.state)).collect();
        assert_eq!(states, [(&run, RunState::Interrupted), (&other, RunState::Interrupted)]);
    }

    /// A process runs on after a later one of the same data folder has started. It writes nothing, though the lease of its name holds.
    #[tokio::test(flavor = "multi_thread")]
    async fn only_the_newest_process_of_a_host_writes() {
        let server = Postgres::start();
        let older = host(&server.url(), "attic");
        let newer = host(&server.url(), "attic");
        let written = older.message(NewMessage::of_service("late")).await;
        assert!(matches!(written, Err(JournalError::Fenced)), "{written:?}");
        newer.message(NewMessage::of_service("on time")).await.unwrap();
    }

    /// One direction of the connection may still work. The host gives up its lease in time all the same.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_host_gives_up_when_no_answer_comes_in_either_direction() {
        // Each try lasts until a host gives up, so all run at once.
        let mut tries = Vec::new();
        for held in [(true, true), (true, false), (false, true)] {
            let server = Postgres::start();
            let network = Proxy::before(&server.url());
            let (lost, ended) = std::sync::mpsc::channel();
            let url = server.url();
            let on_lost = move |_: &str| {
                // By the server's clock the lease holds, so nobody has taken anything over yet.
                let place = Server::at(&url, None).unwrap();
                let connection = Connection::Postgres(place.connect().unwrap());
                let holds = "SELECT lease_until > now() FROM host";
                lost.send(connection.row(holds, (), |row| row.get::<bool>(0)).unwrap()).unwrap();
            };
            let journal = host_that(&network.url(), "attic", Box::new(on_lost));
            network.hold(held.0, held.1);
            let holds = tokio::task::spawn_blocking(move || ended.recv_timeout(Duration::from_secs(60)));
            tries.push((held, holds, (journal, network, server)));
        }
        for (held, holds, _kept) in tries {
            assert_eq!(holds.await.unwrap(), Ok(true), "{held:?}");
        }
    }

    /// A host that fires nothing for its clock is the main one only while no host with the right time is there.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_host_with_a_wrong_clock_leaves_the_main_role_to_another() {
        let server = Postgres::start();
        let clock = Clock::simulated(Clock::system().now() + TimeDelta::minutes(3));
        let (lost, ended) = std::sync::mpsc::channel();
        let on_lost = move |why: &str| lost.send(why.to_owned()).unwrap();
        let attic = host_by(&server.url(), "attic", clock.clone(), Box::new(on_lost));
        assert!(attic.is_main());
        let home = host(&server.url(), "home");
        let why = tokio::task::spawn_blocking(move || ended.recv_timeout(Duration::from_secs(60)));
        assert_eq!(why.await.unwrap().unwrap(), "its clock is wrong, and another host can be the main one");
        // The process that follows.
        let attic = host_by(&server.url(), "attic", clock, Box::new(|_| ()));
        home.until_main().await;
        assert!(!attic.is_main());
        home.close().await;
        attic.until_main().await;
    }
}
