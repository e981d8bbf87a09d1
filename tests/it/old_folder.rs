//! A data folder from before jobs had gates, budgets, memories, events and commands: it is read and shown, and it runs as before.
//!
//! `tests/fixtures/earlier/` has every field of that time. `shown.json` is that program's output for two of them.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::bot::TestBot;
use crate::support::client::{self, executable};
use crate::support::messages_api::{MessagesApi, Reply};

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

/// Copies the folder into the bot, with its journal of that time.
fn lay(bot: &TestBot) {
    for file in ["config.yaml", "routines", "reminders"] {
        let from = fixtures().join("earlier").join(file);
        let files = if from.is_dir() {
            fs::read_dir(&from).unwrap().map(|one| one.unwrap().path()).collect()
        } else {
            vec![from]
        };
        for path in files {
            let name = path.strip_prefix(fixtures().join("earlier")).unwrap();
            bot.write(name.to_str().unwrap(), &fs::read_to_string(&path).unwrap());
        }
    }
    for name in ["gmail", "cal"] {
        bot.external_command(name, "#!/bin/sh\necho nothing\n");
    }
    executable(&bot.path("bin/deliver"), "#!/bin/sh\ncat >> messages\n");
    fs::create_dir_all(bot.path("state")).unwrap();
    let sql = fs::read_to_string(fixtures().join("journal/schema-5.sql")).unwrap();
    Connection::open(bot.path("state/journal.db")).unwrap().execute_batch(&sql).unwrap();
}

#[test]
fn it_is_in_order_and_shown_as_before() {
    let bot = TestBot::new();
    lay(&bot);
    let checked = bot.json(["check"]);
    let problems = checked["problems"].as_array().unwrap();
    let is_new = |problem: &&Value| {
        // Warnings that the earlier program gave too.
        let known = [
            "`max_chain` needs `mcp__",
            "`update_main_session: always` needs `mcp__",
            "agent `Explore` has none of our tools",
        ];
        !known.iter().any(|known| problem["message"].as_str().unwrap().starts_with(known))
    };
    assert_eq!((&checked["definitions"], problems.iter().find(is_new)), (&json!(7), None), "{checked:#}");
    let shown: Value =
        serde_json::from_str(&fs::read_to_string(fixtures().join("earlier/shown.json")).unwrap()).unwrap();
    for mut before in shown.as_array().unwrap().clone() {
        let (kind, id) = (before["kind"].as_str().unwrap().to_owned(), before["id"].as_str().unwrap().to_owned());
        let mut now = bot.json([&*kind, "show", &*id]);
        for shown in [&mut before, &mut now] {
            shown.as_object_mut().unwrap().remove("next");
        }
        let before = before.as_object().unwrap();
        for (key, value) in before {
            assert_eq!(&now[key], value, "{id}: {key}");
        }
        // New fields have neutral values.
        for (key, value) in now.as_object().unwrap().iter().filter(|(key, _)| !before.contains_key(*key)) {
            let at_rest = [json!(null), json!([]), json!(false), json!("none"), json!("normal"), json!("failure")];
            assert!(at_rest.contains(value), "{id}: {key}: {value}");
        }
    }
    // An edit changes only the one field.
    let before = bot.read("routines/all.md").unwrap();
    bot.ok(["routine", "edit", "all-fields", "--max-turns", "21"]);
    assert_eq!(bot.read("routines/all.md").unwrap(), before.replace("max_turns: 20", "max_turns: 21"));
}

#[test]
fn it_is_lived_as_before() {
    let api = MessagesApi::answering(|_| Reply::say("Nothing new."));
    let bot = TestBot::with_client(&client::real(), api.url());
    lay(&bot);
    let service = bot.start();
    let run = service.fire("triage");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let prompt = api.last().last_text();
    assert!(prompt.contains("Go through the unread mail.\n\nBe brief."), "{prompt}");
    for new in ["[gate]", "[the last", "remember", "must deliver", "work/"] {
        assert!(!prompt.contains(new), "{new}: {prompt}");
    }
    let run = service.fire("not-these");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let run = service.fire("plain");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(bot.json(["inbox"]).to_string().contains("Buy bread."));
    // Without settings for them, no cap applies and no alert is due.
    assert_eq!(bot.json(["budget"])["caps"], json!(null));
    let inbox = bot.json(["inbox"]).to_string();
    assert!(!inbox.contains("skipped") && !inbox.contains("budget"), "{inbox}");
    service.stop();
    bot.until_no_processes();
}
