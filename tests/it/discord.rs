//! `kind: discord`: the real program against a stub of Discord.

use std::io::{Seek as _, Write as _};

use serde_json::{Value, json};

use crate::support::bot::{CommandOutput, Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::discord::{Discord, Fault, OWNER, Request, STRANGER, TOKEN};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::simcord;

/// Creates a bot that sends its messages to Discord.
fn on(discord: &Discord, bot: TestBot) -> TestBot {
    bot.write(
        "config.yaml",
        &format!("channels: {{ discord: {{ kind: discord, api: '{}' }} }}\ndefault_channel: discord\n", discord.url()),
    );
    bot.secrets(&format!("DISCORD_TOKEN={TOKEN}\n"));
    bot
}

/// Creates such a bot with an agent client.
fn talking(discord: &Discord, api: &MessagesApi) -> TestBot {
    on(discord, TestBot::with_client(&client::real(), api.url()))
}

/// Starts the bot and waits until it is connected.
fn listening<'a>(bot: &'a TestBot, discord: &Discord) -> Service<'a> {
    let service = bot.start();
    service.until("it is connected", || discord.is_connected().then_some(()));
    service
}

#[track_caller]
fn until_texts(service: &Service<'_>, discord: &Discord, expect: &[&str]) {
    service.until(&format!("the conversation is {expect:?}, not {:?}", discord.texts()), || {
        (discord.texts() == expect).then_some(())
    });
}

/// Waits until a channel has the newest message of the outbox. Returns the message.
fn delivered(service: &Service<'_>, bot: &TestBot) -> Value {
    service.until("it is delivered", || {
        let message = bot.json(["inbox", "-n", "1"])[0].clone();
        message["delivered"].is_string().then_some(message)
    })
}

/// Asserts that all requests follow Discord's rules, as the stub checks them, and Discord's OpenAPI document (tests/discord-api).
#[track_caller]
fn nothing_is_wrong(discord: &Discord) {
    assert_eq!(discord.problems(), [""; 0]);
    let line = |request: Request| {
        let path = request.path.split('?').next().unwrap_or_default();
        format!("{}\n", json!({ "method": request.method, "path": format!("/{path}"), "body": request.body }))
    };
    let requests: String = discord.requests("", "").into_iter().map(line).collect();
    let mut check = simcord::python("tests/discord-api/check.py");
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(requests.as_bytes()).unwrap();
    file.rewind().unwrap();
    check.stdin(file);
    let ran = CommandOutput::of(check);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
}

#[test]
fn a_message_is_delivered_once_and_its_id_is_kept() {
    let discord = Discord::start();
    discord.fail("POST", "/messages", Fault::After(500));
    let bot = on(&discord, TestBot::new());
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready. @everyone https://example.org"));
    let service = bot.start();
    let message = delivered(&service, &bot);
    assert_eq!(discord.texts(), ["Tea is ready. @everyone https://example.org"]);
    assert_eq!(message["deliveries"][0]["message"], discord.messages()[0]["id"], "{message:#}");
    assert_eq!(bot.json(["channels"])[0]["kind"], "discord");
    let tested = bot.ok(["channels", "test", "discord"]);
    assert!(tested.starts_with("discord works: the test message was delivered"), "{tested}");
    service.stop();
    nothing_is_wrong(&discord);
    let log =
        bot.names("state/log").iter().filter_map(|name| bot.read(&format!("state/log/{name}"))).collect::<String>();
    assert!(!log.contains(TOKEN), "{log}");
}

/// The service is killed after Discord accepted the message and before it was recorded.
#[test]
fn a_kill_between_sending_and_recording_sends_nothing_twice() {
    let discord = Discord::start();
    discord.fail("POST", "/messages", Fault::Silence);
    let bot = on(&discord, TestBot::new());
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    service.until("Discord has it", || discord.texts().pop());
    service.kill();
    bot.until_no_processes();
    let service = bot.start();
    let message = delivered(&service, &bot);
    assert_eq!(discord.texts(), ["Tea is ready."]);
    assert_eq!(message["deliveries"][0]["message"], discord.messages()[0]["id"]);
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn ten_thousand_characters_come_as_several_messages() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    let text = format!("```\n{}\n```\n{}", "tea is ready\n".repeat(400), "and cake ".repeat(600));
    bot.write("reminders/tea.md", &reminder(now(), "", &text));
    let service = bot.start();
    delivered(&service, &bot);
    let texts = discord.texts();
    assert!(texts.len() >= 6 && texts.iter().all(|text| text.matches("```").count() % 2 == 0), "{texts:#?}");
    assert_eq!(texts.concat().matches("tea is ready").count(), 400);
    assert_eq!(texts.concat().matches("cake").count(), 600);
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn what_the_owner_writes_is_answered_in_one_message() {
    let discord = Discord::start();
    let api = MessagesApi::script([
        Reply::call("Read", json!({ "file_path": "tea.txt" })),
        Reply::say("The tea is green."),
        Reply::say("It is green tea, as I said."),
    ]);
    let bot = talking(&discord, &api);
    bot.write("work/tea.txt", "green");
    let service = listening(&bot, &discord);
    let said = discord.say("Which tea?");
    until_texts(&service, &discord, &["The tea is green."]);
    service.until("the reaction is gone", || discord.reactions(&said).is_empty().then_some(()));
    let seen = discord.requests("PUT", &format!("/messages/{said}/reactions/"));
    assert_eq!(seen.len(), 1, "it was seen");
    let answer = discord.messages()[0]["id"].as_str().unwrap().to_owned();
    discord.write(
        OWNER,
        json!({ "content": "What kind?", "type": 19,
            "message_reference": { "type": 0, "message_id": answer }, "referenced_message": discord.messages()[0] }),
    );
    until_texts(&service, &discord, &["The tea is green.", "It is green tea, as I said."]);
    let last = api.last().body["messages"].to_string();
    assert!(last.contains("> The tea is green.") && last.contains("What kind?"), "{last}");
    discord.write(STRANGER, json!({ "content": "Which tea?" }));
    service.until("the stranger is told", || {
        discord.texts().contains(&"This bot talks with its owner alone.".to_owned()).then_some(())
    });
    service.stop();
    assert_eq!(api.requests().len(), 3, "the stranger was not heard");
    nothing_is_wrong(&discord);
}

#[test]
fn a_message_that_was_written_while_the_service_was_down_is_answered_once() {
    let discord = Discord::start();
    let api = MessagesApi::answering(|request| Reply::say(&format!("answer {}", request.answers() + 1)));
    let bot = talking(&discord, &api);
    let service = listening(&bot, &discord);
    discord.say("one");
    until_texts(&service, &discord, &["answer 1"]);
    service.kill();
    bot.until_no_processes();
    discord.say("two");
    let service = listening(&bot, &discord);
    until_texts(&service, &discord, &["answer 1", "answer 2"]);
    // An ended session is replaced by a new one. Messages already received are not received again.
    discord.refuse_resume();
    discord.cut();
    service.until("it is connected anew", || (discord.connections().0 == 3 && discord.is_connected()).then_some(()));
    discord.say("three");
    until_texts(&service, &discord, &["answer 1", "answer 2", "answer 3"]);
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn a_connection_that_is_cut_while_a_turn_goes_loses_nothing() {
    let discord = Discord::start();
    let api = MessagesApi::script([
        Reply::bash("until [ -e go ]; do sleep 0.1; done"),
        Reply::say("Done."),
        Reply::say("And this."),
    ]);
    let bot = talking(&discord, &api);
    let service = listening(&bot, &discord);
    discord.say("Work.");
    service.until("the turn is shown", || discord.texts().pop());
    discord.cut();
    discord.fail("PATCH", "/messages/", Fault::Before(502));
    let said = discord.say("And that?");
    bot.write("work/go", "");
    service.until("both are answered", || {
        // The second message came before or after the last step of the first one's turn.
        let texts = discord.texts();
        let is_answered = |text: &String| text == "And this." || text.contains("covers it");
        (texts.contains(&"Done.".into()) && texts.iter().any(is_answered)).then_some(())
    });
    service.until("the reaction is gone", || discord.reactions(&said).is_empty().then_some(()));
    assert_eq!(discord.texts().len(), 2, "{:?}", discord.texts());
    assert_eq!(discord.connections().0, 1, "it was resumed");
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn a_command_is_answered_for_the_one_who_asked() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    let service = listening(&bot, &discord);
    let asked = discord.ask("channels-are-no-command", None);
    let answer = service.until("it is answered", || discord.asked(&asked).answers.pop());
    assert!(answer["content"].as_str().unwrap().contains("there is no command"), "{answer}");
    let asked = discord.ask("status", None);
    let answer = service.until("it is answered", || discord.asked(&asked).answers.pop());
    let text = answer["content"].as_str().unwrap();
    assert!(text.starts_with("```\n") && text.contains("discord") && !text.contains('\u{1b}'), "{text}");
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn a_token_that_counts_no_more_is_told_at_the_terminal() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    let service = listening(&bot, &discord);
    discord.revoke();
    discord.close(4004);
    let told = "The channel `discord` does not work any more: Discord does not accept `DISCORD_TOKEN` any more (4004)";
    service.until("it is told", || service.output().contains(told).then_some(()));
    let failing = bot.json(["channels"])[0]["failing"]["error"].as_str().unwrap().to_owned();
    assert!(failing.contains("(4004)"), "{failing}");
    assert!(bot.run(["doctor"]).stdout.contains("`discord` cannot deliver"));
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    service.until("the console has it", || service.output().contains("Tea is ready.").then_some(()));
    assert_eq!(discord.connections().2, 1, "it does not try again");
    service.stop();
    assert_eq!(discord.texts(), [""; 0]);
}

#[test]
fn without_a_token_the_terminal_says_so() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    bot.secrets("");
    let service = bot.start();
    service.until("it is told", || service.output().contains("`DISCORD_TOKEN` is not set").then_some(()));
    let tested = bot.run(["channels", "test", "discord"]);
    assert!(tested.stdout.contains("put the application's token into .env"), "{tested:#?}");
    service.stop();
    assert!(discord.requests("", "").is_empty());
}

#[test]
fn a_reminder_is_snoozed_by_its_button() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    let service = listening(&bot, &discord);
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    delivered(&service, &bot);
    let shown = discord.messages().remove(0);
    let id = shown["id"].as_str().unwrap();
    let buttons = shown["components"][0]["components"].as_array().unwrap();
    let button = |label: &str| {
        let found = buttons.iter().find(|button| button["label"] == label);
        found.unwrap_or_else(|| panic!("{buttons:?}"))["custom_id"].as_str().unwrap()
    };
    discord.press(STRANGER, id, button("10 min"));
    let pressed = discord.press(OWNER, id, button("10 min"));
    let settled = || {
        let message = discord.messages().remove(0);
        (message["components"][0]["components"][0]["disabled"] == true).then_some(message)
    };
    let message = service.until("the buttons are gone", settled);
    assert_eq!((&message["content"], discord.asked(&pressed).first), (&json!("Tea is ready."), Some(6)));
    let shown = message["components"][0]["components"][0]["label"].as_str().unwrap();
    assert!(shown.starts_with("Comes again at ") && shown.ends_with("(in 10m)."), "{shown}");
    assert!(bot.ok(["next"]).contains("tea"), "{}", bot.ok(["next"]));
    let gone = discord.press(OWNER, id, "999:0");
    let answer = service.until("it is answered", || discord.asked(&gone).answers.pop());
    assert!(answer["content"].as_str().unwrap().contains("of no use any more"), "{answer}");
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn always_says_what_it_has_changed() {
    let discord = Discord::start();
    let api = MessagesApi::script([Reply::bash("touch made"), Reply::say("Made.")]);
    let bot = talking(&discord, &api);
    let fields = "background: true\nisolated: true\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";
    bot.write("routines/make.md", &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nMake it.\n"));
    let service = listening(&bot, &discord);
    bot.ok(["fire", "make"]);
    let asked = service.until("it asks", || discord.messages().pop());
    let buttons = asked["components"][0]["components"].as_array().unwrap();
    let always = buttons.iter().find(|button| button["label"] == "Always").unwrap_or_else(|| panic!("{asked:#}"));
    let pressed = discord.press(OWNER, asked["id"].as_str().unwrap(), always["custom_id"].as_str().unwrap());
    let answer = service.until("it says what it has changed", || discord.asked(&pressed).answers.pop());
    let text = answer["content"].as_str().unwrap();
    assert!(text.contains("routines/make.md:\n") && text.contains("\n+  - Bash(touch *)"), "{text}");
    let label = || discord.messages()[0]["components"][0]["components"][0]["label"].as_str().map(str::to_owned);
    service
        .until("the buttons are gone", || label().filter(|label| label.starts_with("question 1 of make is answered")));
    service.until_ended("make", 1);
    assert!(bot.path("work/made").exists());
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn an_answer_that_goes_is_interrupted_by_a_button() {
    let discord = Discord::start();
    let api = MessagesApi::script([Reply::bash("until [ -e go ]; do sleep 0.1; done"), Reply::say("Done.")]);
    let bot = talking(&discord, &api);
    let service = listening(&bot, &discord);
    discord.say("Work.");
    let status = service.until("the turn is shown", || discord.messages().pop());
    let button = status["components"][0]["components"][0].clone();
    assert_eq!(button["label"], "Interrupt");
    let id = button["custom_id"].as_str().unwrap();
    service.until("the call is made", || discord.texts().iter().any(|text| text.contains("Bash until")).then_some(()));
    let pressed = discord.press(OWNER, status["id"].as_str().unwrap(), id);
    let answer = service.until("it is told", || discord.asked(&pressed).answers.pop());
    assert_eq!(answer["content"], "The answer was interrupted.");
    service.until("the turn has ended", || service.output().contains("a person ended it").then_some(()));
    assert_eq!(api.requests().len(), 1);
    let left = service.until("its button is gone", || without_buttons(&discord).filter(|left| !left.is_empty()));
    assert!(left[0].starts_with("-# Bash until") && left[0].contains("-# Interrupted, "), "{left:?}");
    service.stop();
    nothing_is_wrong(&discord);
}

/// Returns the conversation's texts, once no message has an interrupt button.
fn without_buttons(discord: &Discord) -> Option<Vec<String>> {
    discord
        .messages()
        .iter()
        .all(|message| !message["components"].to_string().contains("interrupt:"))
        .then(|| discord.texts())
}

#[test]
fn a_service_that_ends_in_a_turn_leaves_no_button_and_the_answer_comes_after_its_start() {
    for is_killed in [false, true] {
        let discord = Discord::start();
        let api = MessagesApi::answering(|request| match request.answers() {
            0 => Reply::bash("until [ -e go ]; do sleep 0.1; done"),
            _ => Reply::say("It is green."),
        });
        let bot = talking(&discord, &api);
        let service = listening(&bot, &discord);
        discord.say("Which tea?");
        service.until("the turn is shown", || {
            discord.texts().iter().any(|text| text.contains("Bash until")).then_some(())
        });
        if is_killed {
            service.kill();
            bot.until_no_processes();
            // Discord has forgotten the nonces by now.
            discord.forget_nonces();
        } else {
            service.end_now();
            let left = without_buttons(&discord).unwrap_or_else(|| panic!("{:#?}", discord.messages()));
            assert!(left.iter().all(|text| text.contains("-# Interrupted, ")), "{left:?}");
        }
        bot.write("work/go", "");
        let service = listening(&bot, &discord);
        let left = service.until("it has ended", || {
            let texts = without_buttons(&discord)?;
            texts.last().is_some_and(|text| !text.starts_with("-# ")).then_some(texts)
        });
        assert!(left.len() == 1 || !is_killed, "{left:?}");
        service.stop();
        nothing_is_wrong(&discord);
    }
}

#[test]
fn a_button_of_an_answer_that_is_over_goes_when_it_is_pressed() {
    let discord = Discord::start();
    let bot = on(&discord, TestBot::new());
    let service = listening(&bot, &discord);
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    delivered(&service, &bot);
    let id = discord.messages()[0]["id"].as_str().unwrap().to_owned();
    discord.press(OWNER, &id, "interrupt:chat-discord-1");
    let label = || discord.messages()[0]["components"][0]["components"][0]["label"].as_str().map(str::to_owned);
    service.until("it says so", || label().filter(|label| label == "No answer is going."));
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn a_fork_that_was_ended_by_a_command_has_no_buttons() {
    let discord = Discord::start();
    let api = MessagesApi::answering(|_| Reply::say("What of them?"));
    let bot = talking(&discord, &api);
    let service = listening(&bot, &discord);
    discord.ask("fork", Some(("topic", "taxes")));
    service.until("the fork is open", || discord.texts().contains(&"What of them?".to_owned()).then_some(()));
    discord.ask("exit", None);
    let card = || discord.messages().into_iter().find(|message| message["embeds"][0]["title"] == "Fork: taxes");
    let button = service.until("its card has no buttons", || {
        let button = card()?["components"][0]["components"][0].clone();
        (button["disabled"] == true).then_some(button)
    });
    assert!(button["label"].as_str().unwrap().contains("It was dropped"), "{button}");
    service.stop();
    nothing_is_wrong(&discord);
}

#[test]
fn a_reply_to_the_message_of_a_job_goes_on_with_that_job() {
    let discord = Discord::start();
    let api = MessagesApi::script([
        Reply::call("mcp__discord__ping_user", json!({ "message": "The build is red." })),
        Reply::say("I have said so."),
        Reply::say("A test of the parser failed."),
    ]);
    let bot = talking(&discord, &api);
    let service = listening(&bot, &discord);
    let fields = "background: true\nisolated: true\nallowed_tools: [mcp__discord__ping_user]\n";
    bot.write("reminders/build.md", &reminder(now(), fields, "Look at the build."));
    service.until_ended("build", 1);
    let shown = service.until("the job has said something", || discord.messages().pop());
    discord.write(
        OWNER,
        json!({ "content": "Why?", "type": 19, "referenced_message": shown,
            "message_reference": { "type": 0, "message_id": shown["id"] } }),
    );
    service.until("it is answered", || discord.texts().contains(&"A test of the parser failed.".into()).then_some(()));
    let last = api.last().body["messages"].to_string();
    assert!(last.contains("Look at the build.") && last.contains("Why?"), "{last}");
    assert_eq!(discord.texts().iter().filter(|text| text.starts_with("-# ")).count(), 0, "{:?}", discord.texts());
    let card = discord.messages().into_iter().find(|message| !message["embeds"].as_array().unwrap().is_empty());
    assert_eq!(card.unwrap()["embeds"][0]["title"], "Fork: your answer to build");
    service.stop();
    nothing_is_wrong(&discord);
}
