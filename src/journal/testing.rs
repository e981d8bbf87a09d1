//! Journals for tests: in a file, or on a real server with OLLIM_TEST_JOURNAL=postgres.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{
    Claim, Journal, JournalLocation, Message, NewClaim, NewSession, Occurrence, Punctuality, Purpose, RunId, Server,
};
use crate::clock::Clock;
use crate::definition::{DefinitionId, Kind, Urgency};

#[allow(dead_code, reason = "the tests of the whole program use all of it")]
#[path = "../../tests/it/support/postgres.rs"]
pub(crate) mod postgres;
#[allow(dead_code, reason = "the tests of the whole program use all of it")]
#[path = "../../tests/it/support/proxy.rs"]
pub(crate) mod proxy;

/// Returns message 1 with this text, of no job.
pub(crate) fn message(text: &str) -> Message {
    Message {
        number: 1,
        at: "2026-11-23T12:00:00Z".parse().unwrap(),
        run: None,
        id: None,
        text: text.to_owned(),
        delivered: None,
        urgency: Urgency::Normal,
        digest: false,
        channel: None,
        rich: None,
        deliveries: Vec::new(),
    }
}

/// Records a turn of the main session that runs.
pub(crate) async fn begin_turn(journal: &Journal, clock: &Clock, id: &DefinitionId) -> RunId {
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
        run: RunId::random(),
    };
    let Claim::Claimed(run) = journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!() };
    journal.launching(&run, "".into(), String::new(), Punctuality::Unknown).await.unwrap();
    run
}

/// Returns the journal of a test: the file at `path`, or the server that stands for it.
pub(crate) fn place(path: &Path) -> JournalLocation {
    if is_on_server() { on_server(path) } else { path.into() }
}

/// Returns the journal for `path` on a real server, whatever OLLIM_TEST_JOURNAL says.
pub(crate) fn on_server(path: &Path) -> JournalLocation {
    JournalLocation::Server(Server::at(&server_url(path), None).unwrap())
}

/// Returns the address of the server for `path`. Starts it at the first call.
pub(crate) fn server_url(path: &Path) -> String {
    static SERVERS: Mutex<Option<HashMap<PathBuf, postgres::Postgres>>> = Mutex::new(None);
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = servers.get_or_insert_default();
    servers.entry(path.to_owned()).or_insert_with(postgres::Postgres::start).url()
}

/// Returns whether tests have their journals on a server.
pub(crate) fn is_on_server() -> bool {
    match std::env::var("OLLIM_TEST_JOURNAL").as_deref() {
        Err(_) | Ok("sqlite") => false,
        Ok("postgres") => true,
        Ok(other) => panic!("OLLIM_TEST_JOURNAL={other} is neither sqlite nor postgres"),
    }
}

/// Executes statements on the server of a journal.
pub(crate) fn execute(place: &JournalLocation, sql: &str) {
    let JournalLocation::Server(server) = place else { panic!("it is in a file") };
    super::database::Connection::Postgres(server.connect().unwrap()).batch(sql).unwrap();
}

/// A lock on a journal: nobody else can write it until this is dropped.
pub(crate) struct LockedJournal(Option<rusqlite::Connection>, Option<super::database::Connection>);

impl Drop for LockedJournal {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            file.execute_batch("ROLLBACK").unwrap();
        }
        if let Some(connection) = self.1.take() {
            connection.batch("ROLLBACK").unwrap();
        }
    }
}

/// Locks the journal for `path` against all other writers.
pub(crate) fn hold(path: &Path) -> LockedJournal {
    match place(path) {
        JournalLocation::File(path) => {
            let file = rusqlite::Connection::open(path).unwrap();
            file.execute_batch("BEGIN IMMEDIATE").unwrap();
            LockedJournal(Some(file), None)
        }
        JournalLocation::Server(server) => {
            let connection = super::database::Connection::Postgres(server.connect().unwrap());
            connection.batch("BEGIN; SELECT 1 FROM journal FOR UPDATE").unwrap();
            LockedJournal(None, Some(connection))
        }
    }
}
