//! Routines that fire for what happens: after another job, and for files that change.

use std::path::Path;

use serde_json::Value;

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// A command that fires as `when` says, and otherwise never by itself.
fn job(bot: &TestBot, id: &str, when: &str, command: &str) {
    let head =
        format!("{when}\nclient: exec\ncommand: {}\nallowed_tools: []\n", serde_json::to_string(command).unwrap());
    bot.write(&format!("routines/{id}.md"), &format!("---\n{head}---\n"));
}

const NEVER: &str = "cron: '0 0 29 2 *'";

fn errors(bot: &TestBot) -> Vec<String> {
    let checked = bot.run(["check", "--json"]);
    let problems: Value = serde_json::from_str(&checked.stdout).unwrap();
    let problems = problems["problems"].as_array().unwrap_or_else(|| problems.as_array().unwrap()).clone();
    problems.iter().map(|problem| problem["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_routine_runs_after_the_job_that_it_follows() {
    let bot = TestBot::new();
    job(&bot, "first", NEVER, "true");
    job(&bot, "broken", NEVER, "exit 3");
    job(&bot, "then", "after: first", "echo then");
    job(&bot, "last", "after: then", "echo last");
    job(&bot, "mends", "after: { job: broken, outcome: failed }", "echo mends");
    job(&bot, "idle", "after: broken", "echo idle");
    let service = bot.start();
    let first = service.fire("first");
    service.fire("broken");
    let last = service.until_ended("last", 1);
    service.until_ended("mends", 1);
    let then = bot.runs("then");
    assert_eq!((then.len(), &then[0]["occasion"]["run"]), (1, &first["run"]), "{then:#?}");
    assert_eq!(last[0]["occasion"]["run"], then[0]["run"], "{last:#?}");
    let shown = bot.ok(["runs", "show", then[0]["run"].as_str().unwrap()]);
    let words = format!("after run {} of first, completed", first["run"].as_str().unwrap());
    assert!(shown.contains(&words), "{shown}");
    assert_eq!(bot.runs("idle").len(), 0);
    service.stop();
}

#[test]
fn what_a_routine_follows_can_be_said_and_seen() {
    let bot = TestBot::new();
    job(&bot, "first", NEVER, "true");
    let added = bot.ok(["routine", "add", "-m", "Sum it up.", "--id", "sum", "--after", "first"]);
    assert!(added.contains("scheduled sum: when first has completed"), "{added}");
    assert!(bot.read("routines/sum.md").unwrap().contains("\nafter: first\n"));
    bot.ok(["routine", "edit", "sum", "--after", "job: first, outcome: failed"]);
    assert!(bot.read("routines/sum.md").unwrap().contains("\nafter: { job: first, outcome: failed }\n"));
    assert_eq!(
        bot.json(["routine", "show", "sum"])["after"],
        serde_json::json!({ "job": "first", "outcome": "failed" })
    );
    let shown = bot.ok(["routine", "show", "sum"]);
    assert!(shown.contains("when first has failed"), "{shown}");
    assert!(bot.ok(["routine", "list"]).contains("after first (failed)"));
    let next = bot.run(["next"]);
    assert!(next.stderr.contains("sum fires when first has failed"), "{next:?}");
    // Times take its place, and the other way round.
    bot.ok(["routine", "edit", "sum", "--cron", "@daily"]);
    assert!(!bot.read("routines/sum.md").unwrap().contains("after"));
    bot.ok(["routine", "edit", "sum", "--after", "nobody"]);
    assert_eq!(errors(&bot), ["there is no job `nobody`, so this routine never fires"]);
    bot.ok(["routine", "edit", "sum", "--after", "first"]);
    job(&bot, "first", "after: sum", "true");
    let circle = errors(&bot);
    assert!(circle.len() == 2 && circle[0].contains("so none of them fires"), "{circle:?}");
}

#[test]
fn what_a_job_makes_follows_no_job_of_the_persons() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => {
            let add = "ollim-bot routine add -m Child --background --isolated --after";
            Reply::bash(&format!("{add} mail; {add} maker"))
        }
        _ => Reply::say("done"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    job(&bot, "mail", NEVER, "true");
    let rules = "background: true\nisolated: true\nallowed_tools: ['Bash(ollim-bot routine add *)']\n";
    bot.write("routines/maker.md", &format!("---\n{NEVER}\n{rules}---\nMake jobs.\n"));
    let service = bot.start();
    service.fire("maker");
    let said = api.last().results()[0].text.clone();
    assert!(said.contains("`mail` is no job that maker has made"), "{said}");
    assert!(bot.read("routines/child.md").unwrap().contains("after: maker"), "{said}");
    service.stop();
}

#[test]
fn the_examples_are_in_order() {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/events.md")).unwrap();
    let bot = TestBot::new();
    let mut parts = document.split("\n`routines/");
    let count = parts.by_ref().skip(1).map(|part| {
        let (name, rest) = part.split_once("`\n").unwrap();
        let text = rest.split_once("```markdown\n").unwrap().1.split_once("\n```").unwrap().0;
        bot.write(&format!("routines/{name}"), &format!("{text}\n"));
    });
    assert!(count.count() >= 2);
    let checked = bot.run(["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.stdout.contains("0 warnings"), "{checked:?}");
}
