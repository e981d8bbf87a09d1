//! `init` on a terminal leads a person through; elsewhere flags say the same.

use serde_json::json;

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::terminal::Terminal;

const SAMPLES: &str = "Write samples? They cost nothing until you enable them.";
const PHONE: &str = "Messages to your phone? `y`, a topic of your own, or Enter for no:";
const CALL: &str = "Try the login with one short call? It costs less than a cent.";

/// Nothing is installed, and a client is there.
fn with_client(url: &str) -> TestBot {
    TestBot::bare().client(&client::real(), url).env("OLLIM_AGENT_CLIENT", "auto")
}

#[test]
fn a_person_is_asked_and_the_login_is_tried_with_a_real_call() {
    let api = MessagesApi::answering(|_| Reply::say("ready"));
    let bot = with_client(api.url());
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [UTC]:", "Mars/Olympus");
    terminal.answer("`Mars/Olympus` is no time zone", "Europe/Vienna");
    terminal.answer(SAMPLES, "");
    terminal.answer(PHONE, "ntfy.sh/mine");
    terminal.answer("is no topic of an ntfy server", "https://ntfy.example/mine");
    assert_eq!(api.requests().len(), 0, "nothing was called before the person agreed");
    terminal.answer(CALL, "y");
    terminal.answer("the login works (claude ", "");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    for words in [
        "keeps everything in ",
        "tested with 2.1.197",
        "ANTHROPIC_API_KEY",
        "Messages go to the channel `phone`",
        "made ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!api.requests().is_empty(), "a real call");
    assert_eq!(
        bot.json(["config"]).as_array().unwrap().iter().find(|one| one["key"] == "timezone").unwrap()["value"],
        "Europe/Vienna"
    );
    assert_eq!(bot.json(["runs"]), json!([]), "the trial is no job of the person's");
    assert_eq!(bot.json(["channels"])[0]["kind"], "ntfy");
    let costly = |kind: &str| {
        let jobs = bot.json([kind, "list"]).as_array().unwrap().clone();
        jobs.into_iter().filter(|job| job["enabled"] == true && job["client"] != "notify").count()
    };
    assert_eq!((costly("routine"), costly("reminder")), (0, 0), "no sample costs anything before it is chosen");
    bot.until_nothing_is_left();
}

#[test]
fn enter_takes_what_is_usual_and_a_login_that_fails_is_told() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = with_client(api.url());
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(CALL, "y");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(shown.contains("the call failed: ") && shown.contains("hint: log in with `ollim-bot login`"), "{shown}");
    assert_eq!((bot.names("routines"), bot.names("reminders")), (vec![], vec![]));
    assert!(!bot.read("config.yaml").unwrap().contains("\ntimezone:"), "the system's zone needs no line");
}

#[test]
fn without_a_client_it_says_how_to_get_one() {
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "");
    terminal.answer(PHONE, "y");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(
        shown.contains("npm install -g @anthropic-ai/claude-code") && shown.contains("claude setup-token"),
        "{shown}"
    );
    assert!(!shown.contains(CALL), "there is nothing to try: {shown}");
    assert!(shown.contains("reach you as they are written, and jobs for an agent wait"), "{shown}");
    let again = Terminal::start(bot.command(["init"])).end();
    assert_eq!(again.0.code(), Some(1));
    assert!(again.1.contains("has something in it") && !again.1.contains("Time zone ["), "{}", again.1);
}

#[test]
fn flags_answer_for_scripts() {
    let api = MessagesApi::answering(|_| Reply::say("ready"));
    let bot = with_client(api.url());
    let (status, shown) = Terminal::start(bot.command(["init", "--yes", "--bare", "--timezone", "Asia/Tokyo"])).end();
    assert!(status.success() && !shown.contains('?'), "{shown}");
    assert_eq!((bot.names("routines"), api.requests().len()), (vec![], 0));
    assert!(bot.read("config.yaml").unwrap().ends_with("\ntimezone: Asia/Tokyo\n"));
    let taken = bot.run(["init", "--force", "--timezone", "UTC"]);
    assert_eq!(taken.code, 1);
    assert!(taken.stderr.contains("config.yaml is there, and stays as it is"), "{taken:?}");
    let tried = bot.run(["init", "--force", "--try-login"]);
    assert_eq!(tried.code, 0, "{tried:?}");
    assert!(tried.stdout.contains("the login works (claude "), "{tried:?}");
    let bot = bot.env("ANTHROPIC_API_KEY", "");
    let failed = bot.run(["init", "--force", "--try-login"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("not logged in"), "{failed:?}");
    let zone = bot.run(["--home", "other", "init", "--timezone", "Mars/Olympus"]);
    assert!(zone.stderr.contains("there is no time zone `Mars/Olympus`"), "{zone:?}");
    assert!(!bot.person().join("other").exists());
}
