//! The buttons of notifications, against a stub of an ntfy server: what the server sees, what a token permits, and the
//! effects of a late service, server or person.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::ntfy::Ntfy;
use crate::support::wait;

const TOUCH: &str = "background: true\nisolated: true\nretry: 0\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";

fn settings(bot: &TestBot, ntfy: &Ntfy, more: &str) {
    let url = ntfy.url();
    bot.write(
        "config.yaml",
        &format!(
            "channels:\n  phone: {{ kind: ntfy, url: '{url}/to-me', answers: from-me{more} }}\ndefault_channel: phone\n"
        ),
    );
}

/// Waits for the first notification that contains `text`.
#[track_caller]
fn sees(ntfy: &Ntfy, service: &Service<'_>, text: &str) -> Value {
    let holds = |one: &Value| one["message"].as_str().is_some_and(|said| said.contains(text));
    let shown = || format!("{:#?}\n{}", ntfy.topic("to-me"), service.output());
    wait::until(&format!("the phone shows {text:?}"), || ntfy.topic("to-me").into_iter().find(holds), shown)
}

/// Waits until this many messages of strangers were counted.
#[track_caller]
fn until_strangers(bot: &TestBot, service: &Service<'_>, count: u64) {
    service.until(&format!("{count} strangers"), || {
        (bot.json(["channels"])[0]["strangers"].as_u64() == Some(count)).then_some(())
    });
}

fn labels(message: &Value) -> Vec<&str> {
    message["actions"].as_array().unwrap().iter().map(|action| action["label"].as_str().unwrap()).collect()
}

#[test]
fn a_call_is_allowed_from_the_phone_and_a_guess_is_worth_nothing() {
    let ntfy = Ntfy::start();
    let api = MessagesApi::script([Reply::bash("touch made"), Reply::bash("touch evil")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &ntfy, "");
    bot.secrets("NTFY_TOKEN=tk_secret\n");
    bot.write("reminders/private-thing.md", &reminder(now(), TOUCH, "Do the thing."));
    let service = bot.start();
    let question = sees(&ntfy, &service, "A job asks for permission.");
    assert_eq!(labels(&question), ["Allow once", "Deny"], "what is not shown is not allowed for a whole run");
    let seen_by_server = question.to_string();
    assert!(!seen_by_server.contains("private-thing") && !seen_by_server.contains("touch"), "{question:#}");
    assert_eq!(ntfy.tokens()[0].as_deref(), Some("Bearer tk_secret"));
    assert!(!seen_by_server.contains("tk_secret"), "the phone needs no token of the server's: {question:#}");

    let token = question["actions"][0]["body"].as_str().unwrap().to_owned();
    let deny = question["actions"][1]["body"].as_str().unwrap();
    let (what, tag) = token.rsplit_once(':').unwrap();
    let guesses = [
        "1:0".to_owned(),
        "allow".to_owned(),
        what.to_owned(),
        format!("{what}:{}", "0".repeat(64)),
        // The tag of another button.
        format!("{what}:{}", deny.rsplit_once(':').unwrap().1),
        format!("{token}\n"),
        format!(" {token}"),
        format!("{{\"pressed\":\"{token}\"}}"),
        format!("{what}:{}", tag.to_uppercase()),
        String::new(),
    ];
    guesses.iter().for_each(|guess| ntfy.publish("from-me", guess));
    until_strangers(&bot, &service, guesses.len() as u64);
    assert_eq!(bot.read("work/made"), None);
    assert_eq!(ntfy.topic("to-me").len(), 1, "nobody is told of guesses: {:#?}", ntfy.topic("to-me"));

    ntfy.press(&question, "Allow once");
    sees(&ntfy, &service, "Your answer was taken.");
    let second = service.until("the second question", || {
        let asked: Vec<Value> = ntfy.topic("to-me").into_iter().filter(|one| one["actions"].is_array()).collect();
        asked.get(1).cloned()
    });
    assert!(bot.read("work/made").is_some());
    // A used token answers neither its own question nor the next one.
    ntfy.press(&question, "Allow once");
    ntfy.press(&question, "Deny");
    service.until("two refusals", || {
        let refused =
            ntfy.topic("to-me").into_iter().filter(|one| one["message"].as_str().unwrap().contains("not taken"));
        (refused.count() == 2).then_some(())
    });
    let questions = bot.json(["questions"]);
    let open = questions.as_array().unwrap().iter().filter(|question| question["answer"].is_null()).count();
    assert_eq!(open, 1, "{questions:#}");
    ntfy.press(&second, "Deny");
    let run = service.until_ended("private-thing", 1).remove(0);
    assert_eq!((&run["outcome"], bot.read("work/evil")), (&json!("completed"), None), "{run:#}");
    let answered: Vec<Value> = bot
        .json(["questions"])
        .as_array()
        .unwrap()
        .iter()
        .map(|question| json!([question["number"], question["answer"], question["channel"]]))
        .collect();
    assert!(
        answered.contains(&json!([1, "once", "phone"])) && answered.contains(&json!([2, "deny", "phone"])),
        "{answered:?}"
    );
    assert!(!service.output().contains("to-me") && !service.output().contains("from-me"), "{}", service.output());
    let (_, said) = service.stop();
    assert!(!said.contains(tag), "{said}");
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let ntfy = Ntfy::start();
    let api = MessagesApi::script([Reply::bash("touch made")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &ntfy, ", show_text: true");
    bot.write("reminders/job.md", &reminder(now(), &format!("{TOUCH}ask: {{ deadline: 3s }}\n"), "Do the thing."));
    let service = bot.start();
    let question = sees(&ntfy, &service, "touch made");
    assert_eq!(labels(&question), ["Allow once", "Allow in this run", "Deny"]);
    assert!(question["message"].as_str().unwrap().contains("ollim-bot questions answer 1"), "{question:#}");
    service.until_ended("job", 1);
    let id = question["id"].as_str().unwrap().to_owned();
    service.until("the phone shows it no more", || {
        ntfy.deleted().contains(&("to-me".to_owned(), id.clone())).then_some(())
    });
    // The button is pressed on a phone that has not received the deletion.
    ntfy.press(&question, "Allow in this run");
    sees(&ntfy, &service, "question 1 is already closed: denied, since nobody answered");
    assert_eq!(bot.read("work/made"), None);
    service.stop();
}

#[test]
fn a_button_counts_after_a_restart_once_and_after_the_server_was_gone() {
    let ntfy = Ntfy::start();
    let bot = TestBot::new();
    settings(&bot, &ntfy, "");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    let tea = sees(&ntfy, &service, "Tea is ready.");
    assert_eq!((labels(&tea), &tea["title"]), (vec!["10 min", "1 h", "Tomorrow"], &json!("tea")));
    service.kill();
    // The button is pressed while the service is off. The server keeps the press.
    ntfy.press(&tea, "10 min");
    let service = bot.start();
    service.until("it is snoozed", || bot.path("reminders/tea.md").exists().then_some(()));
    ntfy.press(&tea, "10 min");
    sees(&ntfy, &service, "this was pressed already");
    ntfy.publish("from-me", "hello");
    until_strangers(&bot, &service, 1);
    // A message is marked as received once it was dealt with.
    let newest = ntfy.topic("from-me").last().unwrap()["id"].as_str().unwrap().to_owned();
    service.until("it is marked as heard", || {
        let journal = Connection::open(bot.path("state/journal.db")).unwrap();
        let last: String = journal.query_row("SELECT last FROM hearing", [], |row| row.get(0)).unwrap();
        (last == newest).then_some(())
    });
    service.kill();

    // After a restart no message is received twice, not even one of a stranger.
    let told = ntfy.topic("to-me").len();
    let service = bot.start();
    service.until("the topic is followed again", || (ntfy.followed().len() == 3).then_some(()));
    assert_eq!(ntfy.followed(), ["all", "all", &newest]);

    // The server is gone, and comes back.
    ntfy.set_down(true);
    service.until("it is noticed", || service.output().contains("not heard now").then_some(()));
    bot.write("reminders/oven.md", &reminder(now(), "", "The oven is hot."));
    service.until_ended("oven", 1);
    ntfy.set_down(false);
    let oven = sees(&ntfy, &service, "The oven is hot.");
    ntfy.press(&oven, "1 h");
    service.until("it is snoozed", || bot.path("reminders/oven.md").exists().then_some(()));
    sees(&ntfy, &service, "oven");
    assert_eq!(bot.json(["channels"])[0]["strangers"], 1);
    let repeated =
        ntfy.topic("to-me")[..told].iter().filter(|one| one["message"] == "this was pressed already").count();
    assert_eq!(repeated, 1);
    service.stop();

    // A new journal numbers its messages from 1 again. Tokens of the old one are worth nothing there.
    std::fs::remove_dir_all(bot.path("state")).unwrap();
    bot.write("reminders/cake.md", &reminder(now(), "", "Cake is ready."));
    let service = bot.start();
    sees(&ntfy, &service, "Cake is ready.");
    ntfy.press(&tea, "1 h");
    // The new journal has no record of received messages, so the service receives all of them again.
    until_strangers(&bot, &service, ntfy.topic("from-me").len() as u64);
    service.stop();
}

#[test]
fn a_topic_that_may_not_be_followed_is_told() {
    let ntfy = Ntfy::start();
    ntfy.close();
    let bot = TestBot::new();
    settings(&bot, &ntfy, "");
    let service = bot.start();
    sees(&ntfy, &service, "The buttons of these notifications do nothing now: the ntfy server answered 403.");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    sees(&ntfy, &service, "Tea is ready.");
    let told = ntfy.topic("to-me").iter().filter(|one| one["message"].as_str().unwrap().contains("403")).count();
    assert_eq!(told, 1, "once");
    service.stop();
    for (fields, expect) in [
        ("answers: to-me", "`channels.phone.answers` must be another topic of the same server"),
        ("answers: 'a/b'", "`channels.phone.answers` must be another topic of the same server"),
        ("answers: 'https://other.example/x'", "`channels.phone.answers` must be another topic of the same server"),
        ("show_text: please", "`channels.phone.show_text` must be true or false"),
    ] {
        let text = format!("channels: {{ phone: {{ kind: ntfy, url: '{}/to-me', {fields} }} }}\n", ntfy.url());
        bot.write("config.yaml", &text);
        let ran = bot.run(["config"]);
        assert!(ran.code != 0 && ran.stderr.contains(expect), "{fields}: {ran:#?}");
    }
}

#[test]
fn a_server_that_wants_a_pause_gets_it() {
    let ntfy = Ntfy::start();
    let bot = TestBot::new();
    settings(&bot, &ntfy, "");
    ntfy.limit(1, 1);
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    sees(&ntfy, &service, "Tea is ready.");
    assert!(!service.output().contains("a message was not delivered"), "{}", service.output());
    // If the server asks for more than a minute, the service polls later.
    ntfy.limit(1, 600);
    bot.write("reminders/oven.md", &reminder(now(), "", "The oven is hot."));
    service.until("it is tried again", || service.output().contains("a message was not delivered").then_some(()));
    service.stop();
}
