//! The real binary with journals that earlier and later versions of the program wrote.
//!
//! `tests/fixtures/journal/schema-N.sql` is a file as schema N had it, with a row of everything. A change that adds a
//! migration adds the file of the schema before it.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::support::bot::TestBot;

fn fixtures() -> Vec<(u32, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal");
    let path = |version: u32| -> PathBuf { folder.join(format!("schema-{version}.sql")) };
    (1..).map_while(|version| Some((version, fs::read_to_string(path(version)).ok()?))).collect()
}

/// Creates a bot whose journal this SQL makes.
fn bot_with(sql: &str) -> TestBot {
    let bot = TestBot::new();
    fs::create_dir_all(bot.path("state")).unwrap();
    Connection::open(bot.path("state/journal.db")).unwrap().execute_batch(sql).unwrap();
    bot
}

fn version(bot: &TestBot) -> u32 {
    let journal = Connection::open(bot.path("state/journal.db")).unwrap();
    journal.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Returns the schema that this program writes.
fn newest() -> u32 {
    let bot = TestBot::new();
    bot.start().stop();
    version(&bot)
}

#[test]
fn there_is_a_file_of_every_earlier_schema() {
    let have = fixtures().last().map_or(0, |(version, _)| *version);
    assert!(
        have + 1 >= newest(),
        "the schema before the newest one has no fixture: dump a journal of it into tests/fixtures/journal"
    );
}

#[test]
fn a_file_of_every_earlier_schema_is_gone_on_with() {
    for (schema, sql) in fixtures() {
        let bot = bot_with(&sql);
        for name in ["done", "cut-off", "touched", "again"] {
            let text = format!("---\nrun_at: \"2026-03-01T12:00:00Z\"\n---\nword of {name}.\n");
            bot.write(&format!("reminders/{name}.md"), &text);
        }
        let service = bot.start();
        service.until("every file is dealt with", || (bot.names("reminders") == ["failed"]).then_some(()));
        assert_eq!(bot.names("reminders/failed"), ["touched.md"], "schema {schema}");
        service
            .until("what was not shown is", || service.output().contains("one that was not shown yet").then_some(()));
        let (status, said) = service.stop();
        assert!(status.success(), "{said}");
        assert!(!said.contains("word of done"), "it had run: {said}");
        let ends = |id: &str| -> Vec<(String, Value)> {
            let runs = bot.runs(id).into_iter().rev();
            runs.map(|run| (run["outcome"].as_str().unwrap().to_owned(), run["scheduled"].clone())).collect()
        };
        let words = |id: &str| -> Vec<String> { ends(id).into_iter().map(|(outcome, _)| outcome).collect() };
        assert_eq!(words("done"), ["completed"], "schema {schema}");
        assert_eq!(words("cut-off"), ["interrupted", "completed"], "schema {schema}");
        assert_eq!(words("touched"), ["failed"], "schema {schema}");
        assert_eq!(words("again"), ["failed", "completed"], "schema {schema}");
        assert_eq!(words("mail"), ["skipped", "failed"], "schema {schema}");
        let mail = bot.json(["runs", "show", "00000006"]);
        assert_eq!((&mail["cost_usd"], &mail["turns"]), (&0.25.into(), &3.into()), "{mail:#}");
        assert_eq!(mail["denials"][0]["reason"], "not granted", "{mail:#}");
        assert_eq!(mail["client"], "claude", "it had a session");
        let journal = Connection::open(bot.path("state/journal.db")).unwrap();
        for (sql, expected) in [
            ("SELECT value FROM setting WHERE key = 'a_setting'", "a value"),
            ("SELECT text FROM pending_update", "routine mail: nothing new"),
            ("SELECT failures || '' FROM streak WHERE id = 'mail'", "2"),
            ("SELECT accounted_until || '' FROM definition_seen WHERE id = 'old'", "1772366400000"),
            ("PRAGMA integrity_check", "ok"),
        ] {
            let found: String = journal.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(found, expected, "schema {schema}: {sql}");
        }
        drop(journal);
        assert_eq!(version(&bot), newest());
    }
}

/// Only the service changes a journal. A command that reads it explains how to upgrade it.
#[test]
fn a_file_of_an_earlier_schema_is_not_changed_by_looking() {
    for (schema, sql) in fixtures() {
        let bot = bot_with(&sql);
        let refused = bot.run(["runs"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(&format!("an earlier version (schema {schema}")), "{refused:?}");
        assert!(refused.stderr.contains("`ollim-bot run` brings it up to date"), "{refused:?}");
        assert_eq!(version(&bot), schema);
    }
}

/// After a downgrade every command names a remedy and changes nothing.
#[test]
fn a_file_of_a_later_schema_is_refused_and_left_alone() {
    let (_, sql) = fixtures().pop().unwrap();
    let bot = bot_with(&format!("{sql}\nPRAGMA user_version = 99;"));
    let before = fs::read(bot.path("state/journal.db")).unwrap();
    for command in [&["run"][..], &["runs"], &["inbox"]] {
        let refused = bot.run(command);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("written by a newer version (schema 99"), "{refused:?}");
        assert!(refused.stderr.contains("update ollim-bot"), "{refused:?}");
    }
    assert_eq!(fs::read(bot.path("state/journal.db")).unwrap(), before);
    assert!(!bot.names("state").iter().any(|name| name.contains("damaged")), "{:?}", bot.names("state"));
}

/// The service keeps a damaged journal aside, notifies the person, and begins a new one. Definitions with a file still fire.
#[test]
fn a_damaged_journal_is_kept_aside_and_told() {
    let bot = TestBot::new();
    fs::create_dir_all(bot.path("state")).unwrap();
    let damage = b"no journal at all".repeat(1000);
    fs::write(bot.path("state/journal.db"), &damage).unwrap();
    bot.write("reminders/tea.md", "---\nrun_at: \"2026-03-01T12:00:00Z\"\n---\nTea.\n");
    let service = bot.start();
    service.until("it fires", || bot.names("reminders").is_empty().then_some(()));
    service.until("it is told", || service.output().contains("The journal was damaged. It was kept as ").then_some(()));
    service.stop();
    let kept: Vec<String> = bot.names("state").into_iter().filter(|name| name.contains(".damaged-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read(bot.path("state").join(&kept[0])).unwrap(), damage);
    let inbox = bot.json(["inbox"]).to_string();
    assert_eq!(inbox.matches("The journal was damaged").count(), 1, "{inbox}");
    // The person is notified once.
    bot.start().stop();
    assert_eq!(bot.json(["inbox"]).to_string(), inbox);
}
