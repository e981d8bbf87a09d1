//! `kind: telegram` against a stub of the Bot API: messages in both directions, buttons, and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::telegram::{TOKEN, Telegram};
use crate::support::telegram_chat::sees;
use crate::support::wait;

const ADA: i64 = 12_345_678;

fn settings(bot: &TestBot, telegram: &Telegram, owner: &str) {
    bot.secrets(&format!("TELEGRAM_TOKEN={TOKEN}\n"));
    bot.write(
        "config.yaml",
        &format!("channels:\n  tg: {{ kind: telegram{owner}, api: '{}' }}\ndefault_channel: tg\n", telegram.url()),
    );
}

#[test]
fn a_reminder_comes_and_is_snoozed_by_a_button() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let leaves = "leaf ".repeat(500);
    let text = format!("**Tea** is <ready> & `hot`.\n```\n[page](https://a.b) **x**\n```\n{leaves}end");
    bot.write("reminders/tea.md", &reminder(now(), "", &text));
    let service = bot.start();
    let message = sees(&telegram, &service, "Tea is <ready> & hot.");
    let html =
        format!("<b>Tea</b> is &lt;ready&gt; &amp; <code>hot</code>.\n<pre>[page](https://a.b) **x**</pre>{leaves}end");
    assert_eq!(message["html"], html);
    assert_eq!(message["chat"]["id"], ADA);
    telegram.say(99, "Hello?");
    let told = sees(&telegram, &service, "talks with its owner alone");
    assert_eq!(told["chat"]["id"], 99);
    // A stranger's press of the message's button has no effect. The stranger is notified once.
    telegram.press(99, &message, "Done");
    telegram.press(ADA, &message, "10 min");
    let settled = sees(&telegram, &service, "Comes again at ");
    assert!(settled["reply_markup"].is_null(), "its buttons are gone: {settled:#}");
    let shown = settled["html"].as_str().unwrap();
    assert!(shown.starts_with(&format!("{html}\n\n<i>Comes again")), "nothing else of it has changed: {shown}");
    assert!(bot.path("reminders/tea.md").exists(), "{}", service.output());
    // Nobody is answered in a group.
    for by in [98, ADA] {
        telegram.write(by, json!({ "text": "/status", "chat": { "id": -5, "type": "group", "title": "All" } }));
    }
    let asked = telegram.say(ADA, "/next");
    sees(&telegram, &service, "LAST");
    let answer = telegram.calls("sendMessage").pop().unwrap();
    assert_eq!(answer["reply_parameters"]["message_id"], asked, "an answer names its command: {answer:#}");
    assert_eq!(telegram.chat().iter().filter(|one| one["chat"]["id"] == 99).count(), 1, "a stranger is told once");
    assert!(telegram.chat().iter().all(|one| one["chat"]["id"] != -5 && one["chat"]["id"] != 98));
    assert!(bot.ok(["channels"]).contains("tg: 3 messages came from strangers"), "{}", bot.ok(["channels"]));
    let shown = bot.ok(["config"]) + &service.output();
    assert!(!shown.contains(TOKEN), "{shown}");
    service.stop();
}

/// A flood limit can last hours, and each further request prolongs it.
#[test]
fn a_long_delay_that_the_server_wants_is_kept() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    telegram.fail("sendMessage", 429, Some(3600));
    bot.write("reminders/tea.md", &reminder(now(), "client: notify\n", "Tea."));
    let service = bot.start();
    let says = || bot.ok(["channels"]).contains("Telegram takes nothing more of this bot for 59m").then_some(());
    service.until("the second attempt has failed", says);
    assert_eq!(telegram.calls("sendMessage").len(), 1);
    service.stop();
}

#[test]
fn a_conversation_is_seen_while_it_goes_and_survives_bad_luck() {
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("Read", json!({ "file_path": "tea.txt" })),
        1 => Reply::say(&format!("It is green.\n\n```\n{}\n```\nThat is all.", "leaf ".repeat(1600))),
        _ => Reply::say("A photo."),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/tea.txt", "green");
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.fail("getUpdates", 502, None);
    telegram.fail("sendMessage", 429, Some(1));
    let asked = telegram.say(ADA, "Which tea?");
    sees(&telegram, &service, "It is green.");
    let last = sees(&telegram, &service, "That is all.");
    let answers = |body: &Value| body["reply_parameters"]["message_id"] == asked;
    assert!(telegram.calls("sendMessage").iter().any(answers), "it answers what was said");
    let parts: Vec<Value> =
        telegram.chat().into_iter().filter(|one| one["text"].as_str().unwrap().contains("leaf")).collect();
    assert_eq!(parts.len(), 3, "{parts:#?}");
    assert!(parts.iter().all(|part| part["html"].as_str().unwrap().matches("<pre>").count() == 1), "{parts:#?}");
    let reactions: Vec<usize> = wait::until(
        "the eyes are gone",
        || {
            let reactions = telegram.calls("setMessageReaction");
            assert!(reactions.iter().all(|one| one["message_id"] == asked));
            (reactions.len() == 2)
                .then(|| reactions.iter().map(|one| one["reaction"].as_array().unwrap().len()).collect())
        },
        || service.output(),
    );
    assert_eq!(reactions, [1, 0], "eyes, and then none");

    let before = telegram.methods().len();
    // A reply to it quotes it. The bot can read a photo as a file.
    telegram.write(
        ADA,
        json!({
            "caption": "What is this?", "photo": [{ "file_id": "small" }, { "file_id": "large", "file_size": 7 }],
            "document": { "file_id": "film", "file_name": "film.mp4", "file_size": 30_000_000 },
            "reply_to_message": last,
        }),
    );
    sees(&telegram, &service, "A photo.");
    let prompt = api.last().last_text();
    let methods = telegram.methods().split_off(before);
    let first = |name: &str| methods.iter().position(|method| method == name).unwrap();
    assert!(first("setMessageReaction") < first("getFile"), "it is seen before its files are fetched: {methods:?}");
    // A forwarded message is quoted and is no command.
    telegram.write(ADA, json!({ "text": "/pause\nNow.", "forward_origin": { "type": "hidden_user" } }));
    let handed_on = || Some(api.last().last_text()).filter(|text| text.contains("A message that I hand on"));
    let handed_on = service.until("it is handed on", handed_on);
    assert!(handed_on.contains("> /pause\\n> Now.") || handed_on.contains("> /pause\n> Now."), "{handed_on}");
    assert!(!bot.ok(["status"]).contains("paused"));
    assert!(prompt.contains("> It is green.") && prompt.contains("What is this?"), "{prompt}");
    assert!(
        prompt.contains("/photo.jpg (7 bytes)") && prompt.contains("film.mp4: not taken: it is over 20 MB"),
        "{prompt}"
    );
    let kept = bot.names("work/received");
    assert_eq!(bot.read(&format!("work/received/{}/photo.jpg", kept[0])).as_deref(), Some("a photo"));
    service.stop();
    bot.until_no_processes();
}

#[test]
fn without_an_owner_the_bot_says_the_number_and_nothing_else() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, "");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    telegram.say(ADA, "/start");
    let told = sees(&telegram, &service, "Your number is 12345678");
    telegram.say(ADA, "/start");
    telegram.say(ADA, "/status");
    telegram.say(99, "/start");
    let other = sees(&telegram, &service, "Your number is 99");
    assert_eq!(telegram.chat(), [told, other], "each is told once, and nothing else");
    assert!(bot.ok(["channels"]).contains("tg: 4 messages came from strangers"), "{}", bot.ok(["channels"]));
    service.until("the console has it", || service.output().contains("Tea is ready.").then_some(()));
    assert!(bot.ok(["channels"]).contains("has no `owner`"), "{}", bot.ok(["channels"]));
    service.stop();

    // The next channel reports a token that is not valid.
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    bot.write(".env", "TELEGRAM_TOKEN=wrong\n");
    bot.write("reminders/oven.md", &reminder(now(), "", "The oven is hot."));
    let service = bot.start();
    service.until("the console has it", || service.output().contains("The oven is hot.").then_some(()));
    assert!(
        service.output().contains("`TELEGRAM_TOKEN` (401)") && !service.output().contains("botwrong"),
        "{}",
        service.output()
    );
    service.stop();
}

/// A connection may be open without anything coming through it.
#[test]
fn a_poll_that_stalls_is_given_up_and_what_was_said_meanwhile_is_answered() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    telegram.stall(1);
    let service = bot.start();
    service.until("it polls", || telegram.methods().iter().any(|method| method == "getUpdates").then_some(()));
    telegram.say(ADA, "/next");
    // What is delivered does not wait for it.
    bot.write("reminders/tea.md", &reminder(now(), "client: notify\n", "Tea is ready."));
    sees(&telegram, &service, "Tea is ready.");
    assert_eq!(telegram.waiting(), 1, "nothing is heard yet");
    service.until("the service says so", || service.output().contains("Telegram is not heard now").then_some(()));
    sees(&telegram, &service, "nothing is coming");
    service.until("the service says so", || service.output().contains("Telegram is heard again").then_some(()));
    service.stop();
}

#[test]
fn a_command_is_executed_once_though_its_update_comes_again() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    bot.write("routines/tea.md", "---\ncron: \"@yearly\"\n---\nWater the tea.\n");
    let service = bot.start();
    telegram.say(ADA, "/next");
    sees(&telegram, &service, "tea");
    // The updates are received but not confirmed before the service is killed.
    (0..3).for_each(|_| telegram.fail("getUpdates", 502, None));
    telegram.say(ADA, "/fire tea");
    service.until_ended("tea", 1);
    service.kill();
    let service = bot.start();
    telegram.say(ADA, "/budget");
    sees(&telegram, &service, "pings");
    assert_eq!(bot.runs("tea").len(), 1, "{:#?}", bot.runs("tea"));
    service.stop();
}

#[test]
fn what_was_sent_of_a_long_message_is_not_sent_again() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    telegram.fail_after(1, "sendMessage", 500);
    bot.write("reminders/tea.md", &reminder(now(), "", &format!("The first.\n{}\nThe last.", "leaf ".repeat(1800))));
    let service = bot.start();
    sees(&telegram, &service, "The last.");
    let parts = telegram.chat().len();
    let firsts = telegram.chat().iter().filter(|one| one["text"].as_str().unwrap().contains("The first.")).count();
    assert_eq!((parts, firsts), (3, 1), "{:#?}", telegram.chat());
    service.stop();
}

#[test]
fn a_token_that_counts_no_more_is_told_at_the_terminal() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.say(ADA, "/next");
    sees(&telegram, &service, "nothing is coming");
    telegram.revoke();
    let told = "The channel `tg` does not work any more: Telegram does not accept `TELEGRAM_TOKEN` (401)";
    service.until("it is told", || service.output().contains(told).then_some(()));
    assert!(bot.run(["doctor"]).stdout.contains("`tg` cannot deliver"));
    service.stop();
}

/// Telegram hands out what was written to one program alone. Messages to the person still arrive.
#[test]
fn another_program_that_hears_in_its_place_is_told_once_and_its_end_too() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    (0..6).for_each(|_| telegram.fail("getUpdates", 409, None));
    let service = bot.start();
    telegram.say(ADA, "/next");
    let told =
        sees(&telegram, &service, "The channel tg hears nothing of what you say there: another program receives");
    assert!(told["text"].as_str().unwrap().contains("(Telegram refused it: "), "{told:#}");
    let failing = bot.json(["channels"])[0]["failing"].clone();
    assert_eq!((&failing["deaf"], &failing["refused"]), (&json!(true), &json!(false)), "{failing:#}");
    assert!(bot.ok(["status"]).contains("tg: hears nothing"), "{}", bot.ok(["status"]));
    assert!(bot.run(["doctor"]).stdout.contains("`tg` hears nothing"), "{}", bot.run(["doctor"]).stdout);
    sees(&telegram, &service, "The channel tg hears you again.");
    sees(&telegram, &service, "nothing is coming");
    assert!(!bot.ok(["status"]).contains("hears nothing"), "{}", bot.ok(["status"]));
    service.stop();
    let service = bot.start();
    telegram.say(ADA, "/budget");
    sees(&telegram, &service, "pings");
    assert_eq!(telegram.chat().iter().filter(|one| one["text"].to_string().contains("hears")).count(), 2);
    service.stop();
}

#[test]
fn an_answer_that_cannot_take_the_place_of_its_status_removes_it() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("until [ -e go ]; do sleep 0.1; done"), Reply::say("It is green.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    // The edit with the answer has a `parse_mode`; edits with the turn's status have none.
    telegram.fail_where(|body| body["parse_mode"] == "HTML", "editMessageText", 400);
    telegram.say(ADA, "Which tea?");
    let status = sees(&telegram, &service, " s");
    bot.write("work/go", "");
    let answer = sees(&telegram, &service, "It is green.");
    let answer = wait::until(
        "the answer stands alone",
        // The last status before it has the same text.
        || {
            Some(telegram.chat())
                .filter(|chat| chat.len() == 1 && chat[0]["text"] == "It is green.")
                .map(|mut chat| chat.remove(0))
        },
        || format!("{answer:#}\n{}", service.output()),
    );
    assert_eq!(answer["text"], "It is green.");
    assert_ne!(answer["message_id"], status["message_id"]);
    service.stop();
}

#[test]
fn a_limit_on_the_edits_of_a_running_turn_does_not_delay_its_answer() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("until [ -e go ]; do sleep 0.1; done"), Reply::say("It is green.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.fail("editMessageText", 429, Some(3600));
    telegram.say(ADA, "Which tea?");
    let status = sees(&telegram, &service, " s");
    service.until("an edit is refused", || (!telegram.calls("editMessageText").is_empty()).then_some(()));
    bot.write("work/go", "");
    let answer = service.until("the answer stands alone", || {
        Some(telegram.chat()).filter(|chat| chat.len() == 1 && chat[0]["text"] == "It is green.")
    });
    assert_ne!(answer[0]["message_id"], status["message_id"]);
    assert_eq!(telegram.calls("editMessageText").len(), 1, "a request would prolong the limit");
    assert!(!service.output().contains("was not delivered"), "{}", service.output());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_new_message_whose_markup_is_refused_comes_as_plain_text() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    telegram.fail_where(|body| body["parse_mode"] == "HTML", "sendMessage", 400);
    bot.write("reminders/tea.md", &reminder(now(), "", "**Tea** is <ready> & `hot`."));
    let service = bot.start();
    let message = sees(&telegram, &service, "ready");
    assert_eq!(message["text"], "**Tea** is <ready> & `hot`.");
    assert_eq!(labels(&message), ["Done", "10 min", "1 h", "Tomorrow"]);
    service.until("it is delivered", || (!bot.json(["inbox"])[0]["delivered"].is_null()).then_some(()));
    let sent = telegram.calls("sendMessage");
    assert_eq!((sent.len(), &sent[1]["parse_mode"]), (2, &Value::Null), "{sent:#?}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_file_of_twenty_megabytes_is_taken_and_one_byte_more_is_not() {
    const MOST: usize = 20 * 1024 * 1024;
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|_| Reply::say("Seen."));
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    let files = json!({
        "caption": "Look", "document": { "file_id": "1", "file_name": "just.bin", "file_size": MOST },
        "video": { "file_id": "2", "file_name": "above.bin", "file_size": MOST + 1 },
    });
    telegram.set_file(vec![b'a'; MOST]);
    telegram.write(ADA, files);
    let heard = |name: &str| {
        let said = || Some(api.requests().last()?.last_text()).filter(|text| text.contains(name));
        service.until("the message is heard", said)
    };
    let prompt = heard("just.bin");
    assert!(prompt.contains(&format!("/just.bin ({MOST} bytes)")), "{prompt}");
    assert!(prompt.contains("above.bin: not taken: it is over 20 MB"), "{prompt}");
    // Telegram need not say the size.
    telegram.set_file(vec![b'a'; MOST + 1]);
    telegram.write(ADA, json!({ "document": { "file_id": "3", "file_name": "unknown.bin" } }));
    let prompt = heard("unknown.bin");
    assert!(prompt.contains("unknown.bin: not taken: it is over 20 MB"), "{prompt}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn an_answer_that_goes_is_interrupted_by_a_button() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("until [ -e go ]; do sleep 0.1; done"), Reply::say("It is green.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.say(ADA, "Which tea?");
    let status = sees(&telegram, &service, "Bash until");
    // A stranger's press does not end the turn.
    telegram.press(99, &status, "Interrupt");
    telegram.press(ADA, &status, "Interrupt");
    sees(&telegram, &service, "The answer was interrupted.");
    service.until("the turn has ended", || service.output().contains("a person ended it").then_some(()));
    assert_eq!(api.requests().len(), 1, "{:#?}", telegram.chat());
    assert!(bot.ok(["channels"]).contains("tg: 1 message came from strangers"), "{}", bot.ok(["channels"]));
    let left = service.until("its button is gone", || without_buttons(&telegram));
    assert!(left[0].starts_with("· Bash until") && left[0].contains("… Interrupted, "), "{left:?}");
    service.stop();
    bot.until_no_processes();
}

/// Telegram takes 64 bytes for a button, and the id of a turn contains the name of its channel.
#[test]
fn an_answer_is_interrupted_on_a_channel_with_the_longest_name() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("until [ -e go ]; do sleep 0.1; done"), Reply::say("It is green.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &config.replace("tg", "the-telegram-of-the-whole-family"));
    telegram.number_from(1_000_000_000);
    let service = bot.start();
    telegram.say(ADA, "Which tea?");
    let status = sees(&telegram, &service, "Bash until");
    telegram.press(ADA, &status, "Interrupt");
    sees(&telegram, &service, "The answer was interrupted.");
    service.until("the turn has ended", || service.output().contains("a person ended it").then_some(()));
    service.stop();
    bot.until_no_processes();
}

/// Returns the chat once no message can be interrupted.
fn without_buttons(telegram: &Telegram) -> Option<Vec<String>> {
    let chat = telegram.chat();
    let texts = || chat.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect();
    chat.iter().all(|one| !one["reply_markup"].to_string().contains("interrupt:")).then(texts)
}

#[test]
fn a_service_that_ends_in_a_turn_leaves_no_button_and_the_answer_comes_after_its_start() {
    for is_killed in [false, true] {
        let telegram = Telegram::start();
        let api = MessagesApi::answering(|request| match request.answers() {
            0 => Reply::bash("until [ -e go ]; do sleep 0.1; done"),
            _ => Reply::say("It is green."),
        });
        let bot = TestBot::with_client(&client::real(), api.url());
        settings(&bot, &telegram, &format!(", owner: {ADA}"));
        let service = bot.start();
        telegram.say(ADA, "Which tea?");
        sees(&telegram, &service, "Bash until");
        if is_killed {
            service.kill();
            bot.until_no_processes();
        } else {
            service.end_now();
            let left = without_buttons(&telegram).unwrap_or_else(|| panic!("{:#?}", telegram.chat()));
            assert!(left.iter().all(|text| text.contains("… Interrupted, ")), "{left:?}");
        }
        bot.write("work/go", "");
        let status = telegram.chat().first().map(|one| one["message_id"].clone());
        let service = bot.start();
        let left = service.until("it has ended", || {
            let texts = without_buttons(&telegram)?;
            texts.last().is_some_and(|text| !text.starts_with("· ")).then_some(texts)
        });
        assert!(left.len() == 1 || !is_killed, "{left:?}");
        let answer = telegram.chat().pop().unwrap();
        assert!(answer["rings"] == true && Some(&answer["message_id"]) != status.as_ref(), "{answer:#}");
        service.until("the eyes are gone", || {
            let last = telegram.calls("setMessageReaction").pop().unwrap();
            (last["reaction"].as_array().unwrap().is_empty()).then_some(())
        });
        service.stop();
        bot.until_no_processes();
    }
}

#[test]
fn a_file_that_is_slow_keeps_nobody_waiting_and_is_not_lost() {
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|_| Reply::say("Seen."));
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.hold_files(true);
    let photo = telegram.write(ADA, json!({ "caption": "What is this?", "photo": [{ "file_id": "large" }] }));
    telegram.say(ADA, "/next");
    sees(&telegram, &service, "nothing is coming");
    service.until("the file is asked for", || telegram.methods().contains(&"getFile".to_owned()).then_some(()));
    // The next poll confirmed the update, so Telegram does not send it again.
    service.until("it is confirmed", || (telegram.waiting() == 0).then_some(()));
    service.kill();
    bot.until_no_processes();
    assert!(api.requests().is_empty());
    telegram.hold_files(false);
    let service = bot.start();
    let answer = sees(&telegram, &service, "Seen.");
    let answers = telegram.calls("sendMessage");
    assert!(answers.iter().any(|body| body["reply_parameters"]["message_id"] == photo), "{answer:#}");
    service.stop();
    bot.start().stop();
    bot.until_no_processes();
    let asked = api.requests();
    assert_eq!(asked.len(), 1, "it is heard once");
    assert!(asked[0].last_text().contains("/photo.jpg (7 bytes)"), "{}", asked[0].last_text());
}

/// Returns the labels of a message's buttons.
fn labels(message: &Value) -> Vec<&str> {
    let rows = message["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten();
    rows.flat_map(|row| row.as_array().unwrap()).map(|button| button["text"].as_str().unwrap()).collect()
}

#[test]
fn a_message_of_low_urgency_does_not_ring() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    bot.write("reminders/tea.md", &reminder(now(), "urgency: low\n", "Tea is ready."));
    bot.write("reminders/cake.md", &reminder(now(), "", "Cake is ready."));
    let service = bot.start();
    let rings = |text: &str| sees(&telegram, &service, text)["rings"].clone();
    assert_eq!([rings("Tea is ready."), rings("Cake is ready.")], [false, true]);
    service.stop();
}

#[test]
fn a_question_rings_and_the_turn_is_shown_until_it_ends() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("touch made"), Reply::say("Made.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{config}main_tools: [Read]\nmain_ask_tools: ['Bash(touch *)']\n"));
    let service = bot.start();
    telegram.say(ADA, "Make it.");
    let question = sees(&telegram, &service, "asks (question 1)");
    assert_eq!(
        (&question["rings"], labels(&question)),
        (&json!(true), vec!["Allow once", "Allow in this run", "Deny"])
    );
    let status = service.until("the turn is shown", || {
        telegram.chat().into_iter().find(|one| labels(one) == ["Interrupt"] && one["rings"] == false)
    });
    assert_eq!(telegram.calls("setMessageReaction").len(), 1, "it is being answered");
    telegram.press(ADA, &question, "Allow once");
    sees(&telegram, &service, "Made.");
    let settled = sees(&telegram, &service, "allowed once");
    assert!(labels(&settled).is_empty() && settled["text"].as_str().unwrap().contains("touch made"), "{settled:#}");
    service.until("the turn is shown no more", || {
        let chat = telegram.chat();
        (chat.len() == 2 && chat.iter().all(|one| labels(one).is_empty())).then_some(())
    });
    assert_ne!(status["message_id"], question["message_id"]);
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_turn_that_says_nothing_says_so_and_what_was_refused_is_seen() {
    let telegram = Telegram::start();
    let seen = Arc::new(AtomicBool::new(false));
    let is_seen = Arc::clone(&seen);
    let api = MessagesApi::answering(move |request| match request.answers() {
        0 => Reply::bash("x=touch; $x oops; ls"),
        _ => {
            wait::until("it is seen", || is_seen.load(Ordering::SeqCst).then_some(()), String::new);
            Reply::say("")
        }
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{config}main_tools: [Read, 'Bash(ls *)']\n"));
    let service = bot.start();
    telegram.say(ADA, "Make it.");
    let status = sees(&telegram, &service, "✗ Bash x=touch; $x oops; ls: ");
    assert!(status["text"].as_str().unwrap().contains("touch"), "{status:#}");
    seen.store(true, Ordering::SeqCst);
    sees(&telegram, &service, "(no answer: the model said nothing)");
    service.until("it stands alone", || {
        let chat = telegram.chat();
        (chat.len() == 1 && labels(&chat[0]).is_empty()).then_some(())
    });
    assert!(!bot.path("work/oops").exists());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn an_agents_buttons_are_one_choice_and_look_so() {
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call(
            "mcp__discord__discord_embed",
            json!({ "title": "Bins", "description": "```\nGreen or black?", "buttons": [
                { "label": "Green", "action": "agent:it is green" }, { "label": "Black", "action": "agent:it is black" },
            ] }),
        ),
        1 => Reply::say("Asked."),
        _ => Reply::say("Noted."),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.say(ADA, "Ask me about the bins.");
    let embed = sees(&telegram, &service, "Green or black?");
    let text = embed["html"].as_str().unwrap();
    assert!(text.starts_with("Bins\n<pre>Green or black?</pre>— ") && !text.contains("[Green]"), "{text}");
    sees(&telegram, &service, "Asked.");
    for label in ["Green", "Green", "Black"] {
        telegram.press(ADA, &embed, label);
    }
    sees(&telegram, &service, "Noted.");
    let settled = sees(&telegram, &service, "You chose: Green");
    assert_eq!((&settled["message_id"], labels(&settled)), (&embed["message_id"], vec![]));
    service.until("each was answered", || {
        let toasts = telegram.calls("answerCallbackQuery");
        (toasts.len() == 3 && toasts.iter().filter(|one| one["text"] == "this was pressed already").count() == 2)
            .then_some(())
    });
    assert_eq!(api.requests().len(), 3, "{:#?}", telegram.chat());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_question_that_a_restart_has_ended_has_no_buttons() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("touch made"), Reply::say("Made.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/make.md", &reminder(now(), fields, "Make it."));
    let service = bot.start();
    let question = sees(&telegram, &service, "asks (question 1)");
    service.until("it is recorded", || (!bot.json(["inbox"])[0]["delivered"].is_null()).then_some(()));
    service.kill();
    bot.until_no_processes();
    let service = bot.start();
    let over = service.until("its buttons are gone", || {
        telegram.chat().into_iter().find(|one| one["message_id"] == question["message_id"] && labels(one).is_empty())
    });
    assert!(over["text"].as_str().unwrap().contains("denied: the service restarted"), "{over:#}");
    // The next attempt asks anew. Its answer lets the service stop at once.
    let again = sees(&telegram, &service, "asks (question 2)");
    assert!(!labels(&again).is_empty(), "{again:#}");
    bot.ok(["questions", "answer", "2", "deny"]);
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_job_that_needs_no_yes_any_more_has_no_buttons() {
    let telegram = Telegram::start();
    let bot = TestBot::new();
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let fields = "client: exec\ncommand: echo made\napprove: true\n";
    bot.write("reminders/make.md", &reminder(now(), fields, ""));
    let service = bot.start();
    let question = sees(&telegram, &service, "question 1");
    service.until("it is recorded", || (!bot.json(["inbox"])[0]["delivered"].is_null()).then_some(()));
    bot.ok(["cancel-run", bot.runs("make")[0]["run"].as_str().unwrap()]);
    let over = service.until("its buttons are gone", || {
        telegram.chat().into_iter().find(|one| one["message_id"] == question["message_id"] && labels(one).is_empty())
    });
    assert!(over["text"].as_str().unwrap().contains("dropped, since it needs no answer any more"), "{over:#}");
    service.stop();
}

#[test]
fn buttons_that_could_not_be_taken_away_at_first_go_later() {
    let telegram = Telegram::start();
    let api = MessagesApi::script([Reply::bash("touch made"), Reply::say("Not made.")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let fields = "background: true\nisolated: true\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/make.md", &reminder(now(), fields, "Make it."));
    let service = bot.start();
    let question = sees(&telegram, &service, "asks (question 1)");
    service.until("it is recorded", || (!bot.json(["inbox"])[0]["delivered"].is_null()).then_some(()));
    telegram.fail("editMessageText", 500, None);
    bot.ok(["questions", "answer", "1", "deny"]);
    let over = service.until("its buttons are gone", || {
        telegram.chat().into_iter().find(|one| one["message_id"] == question["message_id"] && labels(one).is_empty())
    });
    assert!(over["text"].as_str().unwrap().contains("denied, by terminal"), "{over:#}");
    assert_eq!(telegram.calls("editMessageText").len(), 2);
    service.stop();
    bot.until_no_processes();
}

#[test]
fn commands_are_commands_and_a_sticker_is_something() {
    let telegram = Telegram::start();
    let api = MessagesApi::answering(|_| Reply::say("Seen."));
    let bot = TestBot::with_client(&client::real(), api.url());
    settings(&bot, &telegram, &format!(", owner: {ADA}"));
    let service = bot.start();
    telegram.say(ADA, "/nosuch");
    sees(&telegram, &service, "there is no command `/nosuch`");
    telegram.say(ADA, "/");
    sees(&telegram, &service, "Let a reminder come later");
    telegram.say(ADA, "/start");
    sees(&telegram, &service, "Let a reminder come later");
    telegram.say(ADA, "/next@my_bot");
    sees(&telegram, &service, "nothing is coming");
    telegram.say(ADA, "/pause");
    sees(&telegram, &service, "nothing starts by itself until `/resume`; `/fire ID`");
    telegram.say(ADA, "/resume");
    sees(&telegram, &service, "resumed");
    assert!(api.requests().is_empty(), "no model was asked");
    telegram.write(ADA, json!({ "sticker": { "file_id": "s", "emoji": "😀" } }));
    sees(&telegram, &service, "Seen.");
    assert!(api.last().last_text().contains("(a sticker: 😀)"), "{}", api.last().last_text());
    telegram.write(ADA, json!({ "video_note": { "file_id": "v" } }));
    service.until("its file is named", || api.last().last_text().contains("/video.mp4").then_some(()));
    // A path is no command.
    telegram.say(ADA, "/etc/hosts is long");
    service.until("it is said", || api.last().last_text().contains("/etc/hosts is long").then_some(()));
    service.stop();
    bot.until_no_processes();
}
