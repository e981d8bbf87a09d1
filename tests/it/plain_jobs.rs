//! `client: notify`: a job without a model delivers its text as written, with any client.

use serde_json::json;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

const PLAIN: &str = "client: notify\n";

fn inbox(bot: &TestBot) -> Vec<String> {
    let messages = bot.json(["inbox", "-n", "1000"]);
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_for_an_agent_says_when_it_is_added_that_there_is_none() {
    let bot = TestBot::new().env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", "no-such-client");
    let add =
        |fields: &[&str]| bot.run([&["routine", "add", "Sort the mail", "--every", "6h"], fields].concat()).stderr;
    let told = "warning: there is no agent, so you get the text of this job as it is\n";
    assert!(add(&[]).contains(told));
    assert!(add(&["--background"]).contains(told));
    for fields in [&["--client", "notify"][..], &["--client", "claude"], &["--background", "--allowed-tools", "Read"]] {
        assert!(!add(fields).contains("there is no agent, so"), "{fields:?}");
    }
    let chosen = TestBot::new();
    assert!(!chosen.run(["routine", "add", "Sort the mail", "--every", "6h"]).stderr.contains("there is no agent"));
}

#[test]
fn it_is_delivered_beside_an_agent_and_while_that_works() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = TestBot::with_client(&client::real(), api.url()).env("OLLIM_MAX_CONCURRENT_RUNS", "1");
    bot.write("reminders/talk.md", &reminder(now(), "", "Think for a long time."));
    bot.write("reminders/work.md", &reminder(now(), "background: true\nisolated: true\n", "Work for a long time."));
    let service = bot.start();
    service.until("both of them work", || (api.requests().len() >= 2).then_some(()));
    let asked = api.requests().len();
    bot.write("reminders/oven.md", &reminder(now(), PLAIN, "Check the oven."));
    bot.write("routines/water.md", &format!("---\ncron: '@yearly'\n{PLAIN}---\nWater the plants.\n"));
    let run = service.until_ended("oven", 1).remove(0);
    assert_eq!((&run["outcome"], &run["client"]), (&json!("completed"), &json!("notify")), "{run:#}");
    service.until("it fires", || (bot.run(["fire", "water"]).code == 0).then_some(()));
    assert_eq!(service.until_ended("water", 1)[0]["outcome"], "completed");
    assert_eq!(inbox(&bot), ["Check the oven.", "Water the plants."]);
    assert_eq!(api.requests().len(), asked, "no model was asked");
    assert!(bot.runs("talk")[0]["ended"].is_null() && bot.runs("work")[0]["ended"].is_null());
}

#[test]
fn it_is_delivered_while_others_wait_for_a_login() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/work.md", &reminder(now(), "background: true\nisolated: true\n", "Work."));
    let service = bot.start();
    service.until("jobs wait for a login", || {
        (!bot.json(["status"])["daemon"]["waiting_for_login"].is_null()).then_some(())
    });
    bot.write("reminders/later.md", &reminder(now(), "background: true\nisolated: true\n", "Work later."));
    let oven = bot.run(["reminder", "add", "Check the oven", "--in", "1s"]);
    assert!(!oven.stderr.contains("wait for the agent"), "it needs none: {oven:?}");
    service.until("it is told", || inbox(&bot).contains(&"Check the oven".to_owned()).then_some(()));
    assert_eq!(bot.runs("later"), Vec::<serde_json::Value>::new(), "what needs an agent is not begun");
    service.stop();
}

#[test]
fn a_plain_reminder_is_one_and_the_command_says_so() {
    let bot = TestBot::new();
    let made = |args: &[&str]| {
        let ran = bot.run([&["reminder", "add", "Check the oven", "--in", "1h"], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let file = format!("reminders/{}", bot.names("reminders")[0]);
        let text = bot.read(&file).unwrap();
        std::fs::remove_file(bot.path(&file)).unwrap();
        let client = text.lines().find(|line| line.starts_with("client:")).unwrap_or_default().to_owned();
        (
            client,
            ran.stdout.contains("delivered as written, at no cost"),
            ran.stdout.contains("(`--client claude`: by the agent)"),
        )
    };
    for (args, client, told, hinted) in [
        (&[][..], "client: notify", true, true),
        (&["--description", "oven", "--retry", "1"], "client: notify", true, true),
        (&["--client", "notify"], "client: notify", true, false),
        (&["--client", "claude"], "client: claude", false, false),
        (&["--background"], "", false, false),
        (&["--background", "--allowed-tools", "Read"], "", false, false),
        (&["--max-chain", "2"], "", false, false),
        (&["--max-turns", "2"], "", false, false),
    ] {
        assert_eq!(made(args), (client.to_owned(), told, hinted), "{args:?}");
    }
    let routine = bot.json(["routine", "add", "Look", "--cron", "@daily"]);
    assert_eq!(routine["client"], json!(null), "a routine says so itself");
    let plain = bot.json(["routine", "add", "Drink", "--cron", "@daily", "--client", "notify"]);
    assert_eq!(plain["client"], "notify");
    let id = plain["id"].as_str().unwrap();
    assert!(bot.ok(["routine", "show", id]).contains("not at all: its text is delivered as written"));
    assert!(bot.ok(["fire", id, "--dry-run"]).contains("delivered as written without a model\nDrink\n"));
    let refused = bot.run(["routine", "edit", id, "--background"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("`background` is for an agent, and `client: notify` has none"), "{refused:?}");
    bot.ok(["routine", "edit", id, "--background", "--client", "claude"]);
}

#[test]
fn check_names_each_field_that_needs_an_agent() {
    let bot = TestBot::new();
    let fields = "client: notify\nbackground: true\nisolated: false\nallowed_tools: [Read]\nskills: [mail]\nmax_turns: 3\n\
                  model: haiku\nretry: 1\ntimeout: 5m\n";
    bot.write("reminders/tea.md", &reminder(now(), fields, "Tea."));
    let checked: serde_json::Value = serde_json::from_str(&bot.run(["check", "--json"]).stdout).unwrap();
    let named: Vec<&str> =
        checked["problems"].as_array().unwrap().iter().map(|problem| problem["field"].as_str().unwrap()).collect();
    assert_eq!(named, ["background", "allowed_tools", "skills", "max_turns", "model"], "{checked:#}");
    assert_eq!(checked["problems"][1]["hint"], "remove `allowed_tools`, or write `client: claude`");
}

/// A job that an agent creates is for an agent, both the next check of its chain and a reminder.
#[test]
fn what_an_agent_makes_is_not_turned_into_one() {
    let api = MessagesApi::script([
        Reply::call("mcp__discord__follow_up_chain", json!({ "minutes_from_now": 60 })),
        Reply::bash("ollim-bot reminder add 'Look again' --in 1h --background"),
        Reply::say("Scheduled."),
    ]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let fields = "background: true\nisolated: true\nmax_chain: 2\nallowed_tools: [Bash(ollim-bot reminder *), \
                  mcp__discord__follow_up_chain]\n";
    bot.write("reminders/build.md", &reminder(now(), fields, "Is the build green?"));
    let service = bot.start();
    let run = service.until_ended("build", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
    let made = bot.json(["reminder", "list"]);
    let made = made.as_array().unwrap();
    assert_eq!(made.len(), 2, "{made:#?}");
    for reminder in made {
        assert_eq!((&reminder["client"], &reminder["background"]), (&json!(null), &json!(true)), "{reminder:#}");
    }
}

#[test]
fn what_says_claude_is_delivered_by_nobody_else() {
    let bot = TestBot::new();
    bot.write("reminders/think.md", &reminder(now(), "client: claude\n", "Think."));
    let service = bot.start();
    let run = service.until_ended("think", 1).remove(0);
    assert_eq!(run["outcome"], "failed", "{run:#}");
    assert!(run["error"].as_str().unwrap().contains("its file says `client: claude`"), "{run:#}");
    service.stop();
    assert!(!inbox(&bot).contains(&"Think.".to_owned()));
}
