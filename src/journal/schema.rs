//! The journal's tables, and the migrations of files from earlier versions.
//!
//! Migrations are only ever added. `PRAGMA user_version` holds how many a file has been through.

use std::path::Path;

use rusqlite::Connection;

use super::JournalError;

/// One step per schema version; the first makes an empty file version 1.
///
/// Times are milliseconds since 1970 in UTC. States are [`super::RunState`]'s words.
pub(super) const MIGRATIONS: &[&str] = &[
    "
-- What a routine's occurrences are counted from: all up to `accounted_until` have a record, or fell due before
-- the journal knew this trigger. Reminders have a row only while they are disabled.
CREATE TABLE definition_seen (
    id TEXT PRIMARY KEY,
    trigger TEXT NOT NULL,
    accounted_until INTEGER NOT NULL,
    gone INTEGER
) WITHOUT ROWID;

CREATE TABLE streak (
    id TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    told INTEGER NOT NULL,
    paused INTEGER
) WITHOUT ROWID;

-- A file's text as it fired: once for as long as it stays the same.
CREATE TABLE definition_text (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX definition_text_id ON definition_text (id, number);

-- Open (outcome IS NULL) until its last attempt has ended. `covers_from`: a skipped one that stands for all
-- from then to `at`.
CREATE TABLE occurrence (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    covers_from INTEGER,
    by_hand INTEGER NOT NULL,
    file TEXT NOT NULL,
    text INTEGER REFERENCES definition_text (number),
    claimed INTEGER NOT NULL,
    outcome TEXT,
    retry_at INTEGER,
    file_done INTEGER NOT NULL DEFAULT 0,
    UNIQUE (id, at)
);
CREATE INDEX occurrence_open ON occurrence (number) WHERE outcome IS NULL;
CREATE INDEX occurrence_file ON occurrence (number)
    WHERE kind = 'reminder' AND outcome IS NOT NULL AND file_done = 0;

CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    occurrence INTEGER NOT NULL REFERENCES occurrence (number) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL,
    launched INTEGER,
    started INTEGER,
    ended INTEGER,
    pid INTEGER,
    process TEXT,
    session TEXT,
    effect TEXT,
    effect_at INTEGER,
    class TEXT,
    error TEXT,
    answer TEXT,
    transcript TEXT,
    cost_usd REAL,
    turns INTEGER,
    UNIQUE (occurrence, attempt)
);

CREATE TABLE denial (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    tool TEXT NOT NULL,
    input TEXT NOT NULL,
    layer TEXT NOT NULL,
    rule TEXT,
    reason TEXT NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

CREATE TABLE message (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    run TEXT,
    id TEXT,
    text TEXT NOT NULL,
    delivered INTEGER
);
CREATE INDEX message_undelivered ON message (number) WHERE delivered IS NULL;

-- What background jobs have reported since the main session's last turn.
CREATE TABLE pending_update (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    text TEXT NOT NULL
);

CREATE TABLE setting (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
",
    "
-- Agents that were spawned; each has one occurrence of the same id. `by_run`: NULL where the person did it. The policy
-- is set once.
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    by_run TEXT,
    caller TEXT NOT NULL,
    caller_agent TEXT,
    definition TEXT NOT NULL,
    spawn_tool_policy TEXT
) WITHOUT ROWID;
CREATE INDEX session_by_run ON session (by_run) WHERE by_run IS NOT NULL;
",
    "
-- What happened, in its order. `data`: an event as JSON, `kind`: its name.
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    run TEXT,
    id TEXT,
    kind TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX event_run ON event (run, number) WHERE run IS NOT NULL;
CREATE INDEX event_message ON event (number) WHERE kind = 'message';

ALTER TABLE run ADD COLUMN model TEXT;
ALTER TABLE run ADD COLUMN tokens TEXT;
-- Who did an attempt, and the requests to the model's API that the client had to make again.
ALTER TABLE run ADD COLUMN client TEXT;
ALTER TABLE run ADD COLUMN client_version TEXT;
ALTER TABLE run ADD COLUMN api_retries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN api_fault TEXT;
-- Only `claude` has sessions and turns.
UPDATE run SET client = 'claude' WHERE session IS NOT NULL OR turns IS NOT NULL OR process IS NOT NULL;

-- Routines that were told to be late or skipped, since when, and how many times more they were.
CREATE TABLE delay (
    id TEXT PRIMARY KEY,
    folded INTEGER NOT NULL,
    since INTEGER NOT NULL
) WITHOUT ROWID;
",
    "
-- `rich`: title, fields and buttons as JSON. `channel`: the one that the definition asks for.
ALTER TABLE message ADD COLUMN urgency TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE message ADD COLUMN channel TEXT;
ALTER TABLE message ADD COLUMN rich TEXT;

-- Which channels are to deliver a message. `state`: waiting, delivered or failed. `external`: the number that the channel's
-- service gave the message. `ended`: when it was delivered or failed.
CREATE TABLE delivery (
    message INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    channel TEXT NOT NULL,
    state TEXT NOT NULL,
    held_until INTEGER,
    external TEXT,
    error TEXT,
    ended INTEGER,
    PRIMARY KEY (message, channel)
) WITHOUT ROWID;
CREATE INDEX delivery_waiting ON delivery (channel, message) WHERE state = 'waiting';

-- Channels that do not work now. `handed_over`: the person was told that another one delivers instead.
CREATE TABLE failing_channel (
    name TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    error TEXT NOT NULL,
    handed_over INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
",
    "
-- What comes in by a channel. `last`: what its service calls the last message that was heard. `strangers`: what others than the
-- owner have said or pressed.
CREATE TABLE hearing (
    channel TEXT PRIMARY KEY,
    last TEXT,
    strangers INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Conversations beside the main session that the person talks in. `from_run`: the run that it goes on from, NULL: the main session.
-- `main`: how the main session stood when it was opened. `heard`: when the person said something last. `reminded`: when they were
-- told that it is idle. `how`: save, report or exit, NULL as long as nothing is to become of it.
CREATE TABLE fork (
    id TEXT PRIMARY KEY,
    opened INTEGER NOT NULL,
    topic TEXT,
    from_run TEXT,
    main TEXT,
    channel TEXT,
    heard INTEGER NOT NULL,
    reminded INTEGER,
    ended INTEGER,
    how TEXT
) WITHOUT ROWID;
CREATE INDEX fork_open ON fork (heard) WHERE ended IS NULL;
ALTER TABLE session ADD COLUMN fork TEXT;

-- Buttons that were pressed. `place`: which of the message's buttons, from 0. `by`: the channel.
CREATE TABLE press (
    message INTEGER NOT NULL REFERENCES message (number) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    at INTEGER NOT NULL,
    channel TEXT NOT NULL,
    PRIMARY KEY (message, place)
) WITHOUT ROWID;
CREATE INDEX delivery_external ON delivery (channel, external) WHERE external IS NOT NULL;

-- Calls that the person is asked about. `call`: the whole, as the person is shown it. `asked_rule`: the pattern that asks. `always`: the pattern
-- that would allow it from now on. `message`: the one that asks. Open as long as `answer` is NULL; `channel`: where it was
-- answered, NULL where nobody did.
CREATE TABLE question (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    id TEXT NOT NULL,
    tool TEXT NOT NULL,
    call TEXT NOT NULL,
    asked_rule TEXT NOT NULL,
    always TEXT,
    message INTEGER,
    asked INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    answer TEXT,
    sentence TEXT,
    answered INTEGER,
    channel TEXT
);
CREATE INDEX question_open ON question (number) WHERE answer IS NULL;
CREATE INDEX question_run ON question (run);
",
    "
-- What a run may cost at most, taken before its client began. It counts as long as the client has reported no cost. `payer`: the job
-- whose day it counts for.
ALTER TABLE run ADD COLUMN reserved_usd REAL;
ALTER TABLE run ADD COLUMN payer TEXT;
CREATE INDEX run_launched ON run (launched) WHERE launched IS NOT NULL;
",
    "
-- Whose run it was, as later ones ask for it: the lineage of its definition.
-- `forgotten`: the person has had the job forget it.
ALTER TABLE run ADD COLUMN lineage TEXT;
ALTER TABLE run ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_completed ON run (lineage, number) WHERE lineage IS NOT NULL AND state = 'completed';
",
    "
-- What an occurrence fell due for, where that was no time: the end of another job's run, or files that changed. As JSON.
ALTER TABLE occurrence ADD COLUMN occasion TEXT;
-- Whether it asks for the start of its run (`approve`), and not about a call.
ALTER TABLE question ADD COLUMN start INTEGER NOT NULL DEFAULT 0;
",
    "
-- What something that was delivered to a webhook is known by: what is delivered again is the same occurrence.
ALTER TABLE occurrence ADD COLUMN delivery TEXT;
CREATE INDEX occurrence_delivery ON occurrence (id, delivery) WHERE delivery IS NOT NULL;
CREATE INDEX event_refused ON event (at) WHERE kind = 'delivery_refused';
",
    "
-- The host that has it; NULL where the journal is a file, which has one host.
ALTER TABLE occurrence ADD COLUMN host TEXT;
ALTER TABLE run ADD COLUMN host TEXT;
",
    "
-- Files of definitions that hosts keep equal: as the newest to change one has it. Of one that was removed, the text that it had.
CREATE TABLE shared_file (
    path TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    removed INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    changed_on TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX shared_file_version ON shared_file (version);
",
    "
-- With all that sums of costs need, so that they read no run.
DROP INDEX run_launched;
CREATE INDEX run_cost ON run (launched, cost_usd, reserved_usd, ended, payer) WHERE launched IS NOT NULL;
",
    "
-- In the words of the queries: SQLite uses an index only for the same words.
DROP INDEX occurrence_file;
CREATE INDEX occurrence_file ON occurrence (number) WHERE kind = 'reminder' AND outcome IS NOT NULL AND NOT file_done;
",
    "
-- Definitions that only the database has. `zone` applies if the text names none. `next_due`: from when on a host needs it; it may be
-- early, and moves past a time only once that has its record.
CREATE TABLE definition (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    zone TEXT NOT NULL,
    next_due INTEGER,
    version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX definition_due ON definition (next_due, id);
",
    "
-- Without it, each text that is deleted costs a look at every occurrence. A server has had it from the beginning.
CREATE INDEX IF NOT EXISTS occurrence_text ON occurrence (text);
",
    "
-- Hosts on which the file of a reminder with an outcome is gone. `told_at`: when the person was told that it had come back there.
CREATE TABLE file_gone (
    occurrence INTEGER NOT NULL REFERENCES occurrence (number) ON DELETE CASCADE,
    host TEXT NOT NULL,
    told_at INTEGER,
    PRIMARY KEY (occurrence, host)
) WITHOUT ROWID;
",
];

/// Returns the schema of a file; 0 if it is empty.
///
/// # Errors
/// [`JournalError::Newer`] if this version does not know the schema. The file is not changed.
pub(super) fn refuse_newer(connection: &Connection, path: &Path) -> Result<usize, JournalError> {
    let found = version(connection)?;
    if found > MIGRATIONS.len() {
        return Err(JournalError::Newer { path: path.to_owned(), found, known: MIGRATIONS.len() });
    }
    Ok(found)
}

/// Migrates a file to the current schema, in one transaction. Concurrent readers see the old schema until then.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), JournalError> {
    let found = version(connection)?;
    if found >= MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for (step, sql) in (1i64..).zip(MIGRATIONS).skip(found) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", step)?;
    }
    Ok(transaction.commit()?)
}

fn version(connection: &Connection) -> Result<usize, JournalError> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    usize::try_from(version).map_err(|_| JournalError::Unreadable(format!("the schema version {version}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::reader::CLAIMED_REMINDERS;

    /// Every page and many commands read them.
    #[test]
    fn claimed_reminders_are_found_without_a_look_at_every_occurrence() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {CLAIMED_REMINDERS}")).unwrap();
        let steps: Vec<String> = plan.query_map([], |row| row.get("detail")).unwrap().map(Result::unwrap).collect();
        let indexes = ["occurrence_open", "occurrence_file"];
        assert!(indexes.iter().all(|index| steps.iter().any(|step| step.contains(index))), "{steps:#?}");
    }

    #[test]
    fn a_file_is_brought_to_todays_schema_at_once_or_not_at_all() {
        let mut connection = Connection::open_in_memory().unwrap();
        // Makes a later step fail.
        connection.execute_batch("CREATE TABLE shared_file (x)").unwrap();
        migrate(&mut connection).unwrap_err();
        assert_eq!(version(&connection).unwrap(), 0);
        connection.execute_batch("DROP TABLE shared_file").unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len());
    }
}
