//! `init` guides a person on a terminal. Without a terminal, flags give the same answers.

use serde_json::json;

use std::os::unix::fs::PermissionsExt as _;

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::discord::{self, Discord};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::ntfy::Ntfy;
use crate::support::telegram::{self, Telegram};
use crate::support::terminal::Terminal;
use crate::support::wait;

const SAMPLES: &str = "Write samples? They cost nothing until you enable them.";
const PHONE: &str = "Messages to your phone? `y`, a topic of your own, or Enter for no:";
const TALK: &str = "Talk with the bot? `discord`, `telegram`, or Enter for neither:";
const BOTS_TOKEN: &str = "The bot's token (it is not shown; Enter leaves it out):";
const SUBSCRIBED: &str = "Press Enter when you have, and one message is sent; `n` leaves it for later:";
const CALL: &str = "Try the login with one short call? It costs less than a cent.";

/// Creates a bot on which nothing is installed except an agent client.
fn with_client(url: &str) -> TestBot {
    TestBot::bare().client(&client::real(), url).env("OLLIM_AGENT_CLIENT", "auto")
}

#[test]
fn a_person_is_asked_and_the_login_is_tried_with_a_real_call() {
    let api = MessagesApi::answering(|_| Reply::say("ready"));
    let ntfy = Ntfy::start();
    let topic = format!("{}/mine", ntfy.url());
    let bot = with_client(api.url());
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [UTC]:", "Mars/Olympus");
    terminal.answer("`Mars/Olympus` is no time zone", "Europe/Vienna");
    terminal.answer(SAMPLES, "");
    terminal.answer(PHONE, "ntfy.sh");
    terminal.answer("is no topic of an ntfy server", &topic);
    terminal.answer(TALK, "");
    assert_eq!(api.requests().len(), 0, "nothing was called before the person agreed");
    terminal.answer(CALL, "y");
    assert!(ntfy.topic("mine").is_empty(), "nothing was sent before the person has subscribed");
    terminal.answer(SUBSCRIBED, "");
    terminal.answer("It was sent. Did it come? [Y/n]", "");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    for words in [
        "keeps everything in ",
        "tested with 2.1.197",
        "ANTHROPIC_API_KEY",
        "the login works (claude ",
        "Messages go to the channel `phone`",
        "Messages reach your phone.",
        "made ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let has_systemd = std::path::Path::new("/run/systemd/system").is_dir();
    assert_ne!(shown.contains("No systemd runs here"), has_systemd, "{shown}");
    assert_ne!(shown.contains("@reboot "), has_systemd, "{shown}");
    assert!(!api.requests().is_empty(), "a real call");
    assert_eq!(ntfy.topic("mine")[0]["message"], "ollim-bot can reach you here.");
    assert_eq!(
        bot.json(["config"]).as_array().unwrap().iter().find(|one| one["key"] == "timezone").unwrap()["value"],
        "Europe/Vienna"
    );
    assert_eq!(bot.json(["runs"]), json!([]), "the trial is no job of the person's");
    assert_eq!(bot.json(["channels"])[0]["kind"], "ntfy");
    let settings = bot.read("config.yaml").unwrap();
    assert!(settings.contains(&format!("url: {topic}, answers: ollim-")), "{settings}");
    let costly = |kind: &str| {
        let jobs = bot.json([kind, "list"]).as_array().unwrap().clone();
        jobs.into_iter().filter(|job| job["enabled"] == true && job["client"] != "notify").count()
    };
    assert_eq!((costly("routine"), costly("reminder")), (0, 0), "no sample costs anything before it is chosen");
    bot.until_no_processes();
}

#[test]
fn a_message_that_does_not_come_is_told_with_what_to_do() {
    let ntfy = Ntfy::start();
    let ask = |end: &dyn Fn(&mut Terminal)| {
        let bot = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
        let mut terminal = Terminal::start(bot.command(["init", "--bare", "--ntfy", &format!("{}/mine", ntfy.url())]));
        terminal.answer("Time zone [UTC]:", "");
        terminal.answer(TALK, "");
        end(&mut terminal);
        let (status, shown) = terminal.end();
        assert!(status.success() && shown.contains("channels test phone"), "{shown}");
        shown
    };
    let shown = ask(&|terminal| {
        terminal.answer(SUBSCRIBED, "");
        terminal.answer("Did it come?", "n");
    });
    assert!(shown.contains("may show notifications"), "{shown}");
    ntfy.set_down(true);
    let shown = ask(&|terminal| terminal.answer(SUBSCRIBED, ""));
    assert!(shown.contains("it was not sent: the ntfy server answered 502"), "{shown}");
    assert_eq!(ntfy.topic("mine").len(), 1);
}

#[test]
fn enter_takes_what_is_usual_and_a_login_that_fails_is_told() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = with_client(api.url());
    let mut init = bot.command(["init"]);
    init.env_remove("TZ");
    let mut terminal = Terminal::start(init);
    terminal.answer("Time zone [", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "");
    terminal.answer(CALL, "y");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(
        shown.contains("the call failed: ") && shown.contains("take it out and log in with `ollim-bot login`"),
        "{shown}"
    );
    assert_eq!((bot.names("routines"), bot.names("reminders")), (vec![], vec![]));
    assert!(!bot.read("config.yaml").unwrap().contains("\ntimezone:"), "the system's zone needs no line");
}

/// The service may be started by something else than this shell, without its `TZ`.
#[test]
fn the_zone_of_the_shell_is_written_down() {
    let bot = with_client("http://127.0.0.1:9").env("TZ", "Asia/Kathmandu");
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [Asia/Kathmandu]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "");
    terminal.answer(CALL, "n");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(bot.read("config.yaml").unwrap().ends_with("\ntimezone: Asia/Kathmandu\n"));
    if !std::path::Path::new("/run/systemd/system").is_dir() {
        assert!(shown.contains("@reboot PATH=/"), "{shown}");
    }
}

#[test]
fn without_a_client_it_says_how_to_get_one() {
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(bot.command(["init"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "");
    terminal.answer(PHONE, "y");
    terminal.answer(TALK, "no");
    terminal.answer(SUBSCRIBED, "n");
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
fn a_refused_key_is_named_and_the_end_says_that_the_agent_does_not_answer() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = with_client(api.url());
    let mut terminal = Terminal::start(bot.command(["init", "--bare"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "");
    terminal.answer(CALL, "y");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    let (_, after) = shown.split_once("the call failed:").unwrap_or_else(|| panic!("{shown}"));
    assert!(after.contains("hint: change ANTHROPIC_API_KEY in the environment, or take it out"), "{shown}");
    assert!(after.contains("The agent does not answer yet"), "{shown}");
}

/// `init` accepts the topic that docs/getting-started.md types.
#[test]
fn a_topic_is_written_as_in_the_docs() {
    let page = include_str!("../../docs/getting-started.md");
    let typed = page.split_once(PHONE).unwrap().1.lines().next().unwrap().trim();
    let bot = TestBot::bare();
    bot.ok(["init", "--bare", "--ntfy", typed]);
    let settings = bot.read("config.yaml").unwrap();
    assert!(settings.contains(&format!("url: https://{typed},")), "{settings}");
    bot.ok(["check"]);
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

/// Asserts that the token is in `.env`, readable by the person alone, and was shown nowhere.
#[track_caller]
fn is_secret(bot: &TestBot, variable: &str, token: &str, shown: &str) {
    assert!(!shown.contains(token), "{shown}");
    assert_eq!(bot.read(".env"), Some(format!("{variable}={token}\n")));
    assert_eq!(bot.path(".env").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let settings = bot.read("config.yaml").unwrap();
    assert!(!settings.contains(token), "{settings}");
}

#[test]
fn a_bot_of_telegrams_is_its_owners_who_sends_the_code() {
    const ADA: i64 = 12_345_678;
    let server = Telegram::start();
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(bot.command(["init", "--api", server.url()]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "signal");
    terminal.answer("`signal` is neither.", "telegram");
    terminal.answer(BOTS_TOKEN, "123:wrong");
    terminal.answer("it does not work: Telegram refused it: Unauthorized", telegram::TOKEN);
    let code = wait::until(
        "the code",
        || Some(terminal.shown().split("https://t.me/my_bot?start=").nth(1)?.split(' ').next()?.to_owned()),
        || terminal.shown(),
    );
    assert!(!bot.home().exists(), "nothing is written before it works");
    // Strangers find the bot, too.
    server.say(99, "/start");
    server.say(99, "/start 0000000000000000");
    server.say(ADA, &format!("/start {code}"));
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(shown.contains("A message was sent to you there.") && shown.contains("the channel `telegram`"), "{shown}");
    let chat = server.chat();
    assert!(chat.len() == 1 && chat[0]["chat"]["id"] == ADA, "{chat:#?}");
    is_secret(&bot, "TELEGRAM_TOKEN", telegram::TOKEN, &shown);
    assert!(!shown.contains("123:wrong"), "{shown}");
    let channels = bot.json(["channels"]);
    assert_eq!((&channels[0]["kind"], &channels[0]["default"]), (&json!("telegram"), &json!(true)), "{channels:#}");
    // The service starts after the code, so the code does not count as a message of the person.
    let service = bot.start();
    server.say(ADA, "/status");
    service.until("it answers", || (server.chat().len() == 2).then_some(()));
    assert!(!service.output().contains(telegram::TOKEN), "{}", service.output());
    service.stop();
}

#[test]
fn a_bot_of_discords_writes_to_its_owner_and_a_token_can_be_left_out() {
    let server = Discord::start();
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(bot.command(["init", "--api", &server.url()]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "https://ntfy.example/mine");
    terminal.answer(TALK, "discord");
    terminal.answer(BOTS_TOKEN, "wrong");
    terminal.answer("Discord does not accept `DISCORD_TOKEN` (401)", discord::TOKEN);
    terminal.answer(SUBSCRIBED, "n");
    let (status, shown) = terminal.end();
    assert!(status.success() && shown.contains("User Install"), "{shown}");
    assert_eq!(server.texts(), ["ollim-bot can write to you here. It answers as soon as its service runs."]);
    assert_eq!(server.problems(), [""; 0]);
    is_secret(&bot, "DISCORD_TOKEN", discord::TOKEN, &shown);
    let channels = bot.json(["channels"]);
    let kinds: Vec<&str> = channels.as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds, &channels[0]["default"]), (vec!["discord", "ntfy", "console"], &json!(true)), "{channels:#}");

    let other = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(other.command(["init", "--api", &server.url()]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "discord");
    terminal.answer(BOTS_TOKEN, "");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert_eq!((other.read(".env"), other.json(["channels"])[0]["kind"].as_str()), (None, Some("console")));

    // A service that a flag names can be left out, too.
    let flagged = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let words = ["init", "--talk", "telegram", "--owner", "12345678", "--api", &server.url()];
    let mut terminal = Terminal::start(flagged.command(words));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(BOTS_TOKEN, "");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert_eq!((flagged.read(".env"), flagged.json(["channels"])[0]["kind"].as_str()), (None, Some("console")));

    let third = TestBot::bare().env("OLLIM_CLAUDE", "/nowhere/claude");
    let mut terminal = Terminal::start(third.command(["init"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer(SAMPLES, "n");
    terminal.answer(PHONE, "");
    terminal.answer(TALK, "telegram");
    terminal.answer(BOTS_TOKEN, "half of a token\u{3}");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(!third.home().exists() && !shown.contains("half"), "{shown}");
}

/// A script sets up a channel as the questions do. The token is in no argument.
#[test]
fn flags_set_up_a_bot_without_a_person() {
    let by_flags = |bot: &TestBot, words: &[&str]| bot.run([&["init", "--yes", "--bare"], words].concat());
    let token = |bot: &TestBot, text: &str| {
        let file = bot.person().join("token");
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let discords = Discord::start();
    let bot = TestBot::bare();
    let file = token(&bot, &format!("{}\n", discord::TOKEN));
    let made = by_flags(&bot, &["--talk", "discord", "--token-file", &file, "--api", &discords.url()]);
    assert!(made.code == 0 && made.stdout.contains("A message was sent to you there."), "{made:#?}");
    assert_eq!(discords.texts(), ["ollim-bot can write to you here. It answers as soon as its service runs."]);
    is_secret(&bot, "DISCORD_TOKEN", discord::TOKEN, &made.stdout);
    assert_eq!((&bot.json(["channels"])[0]["kind"], made.stderr.as_str()), (&json!("discord"), ""));

    let telegrams = Telegram::start();
    let bot = TestBot::bare();
    let file = token(&bot, telegram::TOKEN);
    let words = ["--talk", "telegram", "--token-file", &file, "--api", telegrams.url(), "--owner", "12345678"];
    let made = by_flags(&bot, &words);
    assert_eq!(made.code, 0, "{made:#?}");
    assert_eq!(telegrams.chat()[0]["chat"]["id"], 12_345_678);
    is_secret(&bot, "TELEGRAM_TOKEN", telegram::TOKEN, &made.stdout);
    // What is there stays, and nothing is sent.
    let again = by_flags(&bot, &[&["--force"], &words[..]].concat());
    assert!(again.code == 1 && again.stderr.contains("leave out `--ntfy` and `--talk`"), "{again:#?}");
    assert_eq!(telegrams.chat().len(), 1);

    for (words, text, why) in [
        (&words[..6], telegram::TOKEN, "`--owner ID`"),
        (&words[..2], telegram::TOKEN, "`--token-file FILE`"),
        (&words[..], "123:wrong", "Telegram refused it: Unauthorized; nothing was made"),
        (&words[..], " \n", "does not hold a token"),
        (&words[2..4], telegram::TOKEN, "--talk <SERVICE>"),
        (&["--talk", "telegram", "--token-file", "nowhere"], "", "cannot read the token from nowhere"),
    ] {
        let other = TestBot::bare();
        std::fs::write(&file, text).unwrap();
        let refused = by_flags(&other, words);
        assert!(refused.code == 1 && refused.stderr.contains(why), "{words:?}: {refused:#?}");
        assert!(!refused.stderr.contains("123:wrong") && !other.home().exists(), "{refused:#?}");
    }
    assert_eq!(telegrams.chat().len(), 1);
}

#[test]
fn discords_owner_can_be_named_and_the_token_can_be_piped() {
    let server = Discord::start();
    let bot = TestBot::bare();
    let mut init = bot.command(["init", "--yes", "--talk", "discord", "--token-file", "-", "--api", &server.url()]);
    init.args(["--owner", discord::OWNER]).stdin(std::process::Stdio::piped());
    let mut child = init.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), discord::TOKEN.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(server.texts().len(), 1);
    let settings = bot.read("config.yaml").unwrap();
    assert!(settings.contains(&format!("owner: {},", discord::OWNER)), "{settings}");
    assert_eq!(bot.json(["channels"])[0]["kind"], "discord");
}
