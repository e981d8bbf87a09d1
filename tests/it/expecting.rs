//! `expect`: the delivery that a run needs to count as completed, on the real client.

use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// Runs one job with these fields and these answers of its model. Returns its bot, its outcome and the reason.
fn live(fields: &str, replies: impl IntoIterator<Item = Reply>) -> (TestBot, String, String) {
    let api = MessagesApi::script(replies);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/notes/today.md", "yesterday's");
    let fields = format!("background: true\nisolated: true\nretry: 0\n{fields}");
    bot.write("reminders/job.md", &reminder(now(), &fields, "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    service.stop();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ended = (text(&run["outcome"]), text(&run["error"]));
    (bot, ended.0, ended.1)
}

fn notifications(bot: &TestBot) -> String {
    bot.json(["inbox"]).to_string()
}

const PING: &str = "allowed_tools: [mcp__discord__ping_user, Read]\nexpect: message\n";
const FILE: &str = "allowed_tools: ['Edit(notes/**)', 'Read(notes/**)']\nexpect: file notes/today.md\n";

#[test]
fn completed_means_that_a_message_was_sent() {
    // The agent is reminded once; then the run has failed.
    let (bot, outcome, why) = live(PING, [Reply::say("All is well."), Reply::say("I have nothing to say.")]);
    assert_eq!((&*outcome, &*why), ("failed", "nothing was delivered: it sent no message (`expect: message`)"));
    assert!(notifications(&bot).contains("reminder job failed: nothing was delivered"), "{}", notifications(&bot));
    let ping = Reply::call("mcp__discord__ping_user", json!({ "message": "Hello." }));
    let (bot, outcome, why) = live(PING, [Reply::say("All is well."), ping]);
    assert_eq!((&*outcome, &*why), ("completed", ""));
    assert!(notifications(&bot).contains("Hello."));
    // A refused message does not count.
    let ping = Reply::call("mcp__discord__ping_user", json!({ "message": "" }));
    let (_, outcome, _) = live(PING, [ping]);
    assert_eq!(outcome, "failed");
}

#[test]
fn completed_means_that_a_report_was_made() {
    let fields = "allowed_tools: [mcp__discord__report_updates]\nupdate_main_session: freely\nexpect: report\n";
    let (_, outcome, why) = live(fields, []);
    assert_eq!((&*outcome, &*why), ("failed", "nothing was delivered: it made no report (`expect: report`)"));
    let (_, outcome, _) = live(fields, [Reply::call("mcp__discord__report_updates", json!({ "message": "Done." }))]);
    assert_eq!(outcome, "completed");
}

#[test]
fn completed_means_that_the_file_was_written() {
    let (_, outcome, why) = live(FILE, [Reply::call("Read", json!({ "file_path": "notes/today.md" }))]);
    assert_eq!(
        (&*outcome, &*why),
        ("failed", "nothing was delivered: work/notes/today.md is as it was before (`expect`)")
    );
    let read = Reply::call("Read", json!({ "file_path": "notes/today.md" }));
    let write = Reply::call("Write", json!({ "file_path": "notes/today.md", "content": "Today.\n" }));
    let (bot, outcome, why) = live(FILE, [read, write]);
    assert_eq!((&*outcome, &*why), ("completed", ""));
    assert_eq!(bot.read("work/notes/today.md").as_deref(), Some("Today.\n"));
}

#[test]
fn check_names_what_cannot_be_delivered() {
    let bot = TestBot::new();
    let job = |fields: &str| format!("---\ncron: '0 9 * * *'\n{fields}---\nDo it.\n");
    let background = |fields: &str| job(&format!("background: true\n{fields}"));
    for (id, text, expected) in [
        ("message", background("allowed_tools: [Read]\nexpect: message\n"), "needs `mcp__bot__ping_user`"),
        ("quiet", background("allow_ping: false\nexpect: message\n"), "needs `allow_ping`"),
        ("report", background("allowed_tools: [Read]\nexpect: report\n"), "needs `mcp__bot__report_updates`"),
        ("file", background("allowed_tools: [Read]\nexpect: file x.md\n"), "a tool that writes files"),
        ("out", background("expect: file ../x.md\n"), "must be `message`, `report` or `file PATH`"),
        ("front", job("expect: message\n"), "`expect` does not hold on a foreground job"),
        ("typo", background("expects: message\n"), "did you mean `expect`?"),
    ] {
        bot.write(&format!("routines/{id}.md"), &text);
        let checked = bot.run(["check", id]).stdout;
        assert!(checked.contains(expected), "{id}: {checked}");
    }
    let file = |tools: &str| format!("{tools}\nexpect: file notes/today.md\n");
    for fields in [
        "allowed_tools: [mcp__discord__ping_user]\nexpect: message\n".to_owned(),
        file("allowed_tools: ['Edit(notes/**)']"),
        file("allowed_tools: ['Write(notes/**)', Read]"),
        file("allowed_tools: [Write]"),
        file("allowed_tools: [Read]\nask_tools: [Write]"),
    ] {
        bot.write("routines/fine.md", &background(&fields));
        let checked = bot.run(["check", "fine"]).stdout;
        assert!(!checked.contains("every run will fail"), "{fields}: {checked}");
    }
    let added = bot.run([
        "routine",
        "add",
        "-m",
        "Write it.",
        "--cron",
        "@daily",
        "--background",
        "--expect",
        "file notes/a b.md",
    ]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(bot.read("routines/write-it.md").unwrap().contains("expect: file notes/a b.md\n"));
}
