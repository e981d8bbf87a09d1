//! What the person presses or answers a week later, and after the journal has forgotten the message; and forks that they have left.

use ollim_bot::clock::Clock;
use ollim_bot::journal::Journal;
use rusqlite::Connection;
use serde_json::json;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::phone::{Phone, bot_with_phone};
use crate::support::telegram::{TOKEN, Telegram};
use crate::support::telegram_chat::{sees, sees_button};

const ADA: i64 = 12_345_678;

/// Columns with times.
const TIMES: &[(&str, &[&str])] = &[
    ("message", &["at", "delivered"]),
    ("delivery", &["ended"]),
    ("occurrence", &["claimed"]),
    ("run", &["launched", "started", "ended", "effect_at"]),
    ("question", &["asked", "deadline", "answered"]),
    ("fork", &["opened", "heard", "reminded", "ended"]),
];

/// Makes everything in the journal older.
fn age(bot: &TestBot, by: chrono::TimeDelta) {
    let journal = Connection::open(bot.path("state/journal.db")).unwrap();
    for (table, columns) in TIMES {
        for column in *columns {
            let sql = format!("UPDATE {table} SET {column} = {column} - ?1 WHERE {column} IS NOT NULL");
            journal.execute(&sql, [by.num_milliseconds()]).unwrap();
        }
    }
}

/// Makes the journal forget everything that is over.
fn forget(bot: &TestBot) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let journal = Journal::open(&bot.path("state/journal.db"), Clock::system()).unwrap();
        journal.prune(now(), std::collections::BTreeSet::new()).await.unwrap();
        journal.close().await;
    });
    assert_eq!(bot.json(["inbox"]), json!([]));
}

/// Waits until this many presses were answered. Returns what the last of them were told.
#[track_caller]
fn toasts(telegram: &Telegram, service: &Service<'_>, count: usize, last: usize) -> Vec<String> {
    let texts = || -> Vec<String> {
        telegram.calls("answerCallbackQuery").iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    };
    service.until("the presses are answered", || (texts().len() == count).then_some(()));
    texts().split_off(count - last)
}

#[test]
fn a_button_that_is_pressed_late_says_what_became_of_it_and_does_nothing_twice() {
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("about the bins") => Reply::call(
            "mcp__discord__discord_embed",
            json!({ "title": "Bins", "description": "Green or black?", "buttons": [
                { "label": "Green", "action": "agent:it is green" },
            ] }),
        ),
        text if text.contains("Touch it.") && request.answers() == 0 => Reply::bash("touch made"),
        _ => Reply::say("Asked."),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.secrets(&format!("TELEGRAM_TOKEN={TOKEN}\n"));
    bot.write(
        "config.yaml",
        &format!(
            "channels:\n  tg: {{ kind: telegram, owner: {ADA}, api: '{}' }}\ndefault_channel: tg\n",
            telegram.url()
        ),
    );
    let service = bot.start();
    telegram.say(ADA, "Ask me about the bins.");
    let choice = sees_button(&telegram, &service, "Green or black?", "Green");
    sees(&telegram, &service, "Asked.");
    bot.write("reminders/tea.md", &reminder(now(), "client: notify\n", "Tea is ready."));
    let tea = sees_button(&telegram, &service, "Tea is ready.", "10 min");
    let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/make.md", &reminder(now(), fields, "Touch it."));
    let question = sees_button(&telegram, &service, "asks (question 1)", "Deny");
    telegram.press(ADA, &question, "Deny");
    service.until_ended("make", 1);
    let waits = || bot.json(["inbox"]).as_array().unwrap().iter().all(|one| !one["delivered"].is_null()).then_some(());
    service.until("all is recorded", waits);
    service.stop();
    age(&bot, chrono::TimeDelta::days(8));

    let service = bot.start();
    let before = api.requests().len();
    for (message, label) in [(&choice, "Green"), (&question, "Allow once"), (&tea, "10 min")] {
        telegram.press(ADA, message, label);
    }
    let mut told = toasts(&telegram, &service, 4, 3);
    told.sort();
    assert!(told[0].starts_with("Comes again at "), "{told:?}");
    assert_eq!(told[1], "This choice has expired. Ask again to come back to it.");
    assert!(told[2].starts_with("question 1 is already closed: "), "{told:?}");
    service.until("what can no more be pressed looks so", || {
        let chat = telegram.chat();
        chat.iter().all(|one| one["reply_markup"].is_null()).then_some(())
    });
    let times = || bot.json(["next"]).as_array().unwrap().iter().map(|one| one["at"].clone()).collect::<Vec<_>>();
    let coming = times();
    assert_eq!(coming.len(), 1);
    service.stop();

    // The journal forgets them. A phone that was off still shows the buttons.
    forget(&bot);
    let service = bot.start();
    for (message, label) in [(&choice, "Green"), (&question, "Allow once"), (&tea, "10 min")] {
        telegram.press(ADA, message, label);
    }
    let told = toasts(&telegram, &service, 7, 3);
    assert!(told.iter().all(|text| text == "this button is of no use any more"), "{told:?}");
    service
        .until("their buttons are taken away", || (telegram.calls("editMessageReplyMarkup").len() >= 3).then_some(()));
    assert_eq!(api.requests().len(), before, "no model was asked");
    assert_eq!(times(), coming, "nothing else fires");
    assert!(!bot.path("work/made").exists());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_reply_that_comes_late_is_answered_in_the_conversation() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("Ask about dinner.") => {
            Reply::call("mcp__discord__ping_user", json!({ "message": "Dinner at eight?" }))
        }
        text => Reply::say(&format!("({})", text.lines().last().unwrap_or_default())),
    });
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: [mcp__bot__ping_user]\n";
    bot.write("reminders/dinner.md", &reminder(now(), fields, "Ask about dinner."));
    let service = bot.start();
    let dinner = Phone { bot: &bot, service: &service }.next_message("Dinner at eight?");
    service.until_ended("dinner", 1);
    service.stop();
    age(&bot, chrono::TimeDelta::days(8));
    let reply = |said: &str| json!({ "said": said, "by": 7, "reply_to": format!("m-{}", dinner["number"]) });
    let asked = |text: &str| api.requests().into_iter().find(|request| request.mentions(text)).unwrap().last_text();

    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.write(&reply("Yes, at eight."));
    phone.next_message("(Yes, at eight.)");
    assert!(asked("Yes, at eight.").contains("> [bg] Dinner at eight?"), "{}", asked("Yes, at eight."));
    service.stop();
    forget(&bot);

    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.write(&reply("1"));
    phone.next_message("(1)");
    let prompt = api.last().last_text();
    assert!(prompt.contains("> (a message that is no longer recorded)"), "{prompt}");
    phone.say("/status");
    phone.next_message("running");
    let got = phone.deliveries();
    assert!(!got.iter().any(|one| one.to_string().contains("Fork:")), "no fork is opened: {got:#?}");
    assert_eq!(bot.runs("dinner").len(), 0, "nothing runs again");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn an_idle_fork_ends_with_a_report_and_another_is_asked_about() {
    let api = MessagesApi::repeating();
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    for topic in ["the garden", "taxes"] {
        phone.say(&format!("/fork {topic}"));
        phone.next_message(&format!("{topic})"));
    }
    service.until("no answer is going", || {
        let turns = bot.json(["runs"]);
        turns.as_array().unwrap().iter().all(|run| !run["ended"].is_null()).then_some(())
    });
    let journal = Connection::open(bot.path("state/journal.db")).unwrap();
    let eleven = chrono::TimeDelta::minutes(11).num_milliseconds();
    let sql = "UPDATE fork SET heard = heard - ?1, reminded = CASE topic WHEN 'the garden' THEN heard - ?1 END";
    assert_eq!(journal.execute(sql, [eleven]).unwrap(), 2);
    let asked = phone.next_message("Is the fork still needed? (taxes)");
    let labels: Vec<&str> =
        asked["buttons"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Save", "Report", "Exit"]);
    let told = phone.next_message("Nothing was said in the fork (the garden) for 20 minutes.");
    assert!(told["text"].as_str().unwrap().ends_with("its report is being written for the main session."), "{told:#}");
    phone.next_message("The fork has ended. The main session is told this report at its next turn.");
    phone.press(&asked, "Exit");
    phone.next_message("It was dropped");
    phone.say("what do you know");
    phone.next_message("(what do you know)");
    let told = api.last().last_text();
    assert!(told.contains("[report of a fork: the garden]") && !told.contains("taxes"), "{told}");
    let got = phone.deliveries();
    let ends = got.iter().filter(|one| one["text"].as_str().is_some_and(|text| text.contains("for 20 minutes")));
    assert_eq!(ends.count(), 1, "{got:#?}");
    service.stop();
    bot.until_no_processes();
}
