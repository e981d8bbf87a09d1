//! Conversations with the bot through a channel of `kind: command` with `keep: true`: messages, replies, buttons,
//! commands and forks, on the real client.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::support::bot::{now, reminder};
use crate::support::messages_api::{MessagesApi, Reply, Request};
use crate::support::phone::{Phone, bot_with_phone};
use crate::support::telegram::{TOKEN, Telegram};

/// Returns the text that the model received in all messages of a request.
fn told(request: &Request) -> String {
    request.body["messages"].to_string()
}

#[test]
fn what_the_owner_says_is_answered_once_and_nobody_else_is_heard() {
    let api = MessagesApi::answering(|request| Reply::say(&format!("answer {}", request.answers() + 1)));
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.write(&json!({ "said": "Who is it?", "by": 8, "id": "a0" }));
    phone.write(&json!({ "said": "Hello?", "by": "8" }));
    phone.write(&json!({ "pressed": "1:0", "by": 8 }));
    for _ in 0..2 {
        phone.write(&json!({ "said": "Good morning.", "by": 7, "id": "a1" }));
    }
    assert_eq!(phone.next_message("answer 1")["reply_to"], "a1");
    phone.say("And again.");
    phone.next_message("answer 2");
    assert_eq!(api.requests().len(), 2, "the same message is one turn");
    let got = phone.deliveries();
    let notices: Vec<&Value> = got.iter().filter(|one| one["notice"].is_string()).collect();
    assert_eq!(notices.len(), 1, "a stranger is told once: {got:#?}");
    assert_eq!(notices[0]["to"], "8");
    for command in ["channels", "status"] {
        let shown = bot.ok([command]);
        assert!(shown.contains("3 messages came from strangers"), "{shown}");
    }

    // Messages that arrived while the service was off are answered once after the next start.
    service.kill();
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("/next");
    assert!(phone.next_message("nothing is coming")["notice"].is_string());
    phone.say("/fire");
    phone.next_message("`/fire` needs a job");
    for _ in 0..2 {
        phone.write(&json!({ "said": "/pause tea", "by": 7, "id": "c1" }));
    }
    phone.next_message("there is no job");
    phone.say("/nothing of the kind");
    phone.next_message("there is no command `/nothing`");
    phone.say("/etc/hosts is long");
    phone.next_message("answer 3");

    service.kill();
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.write(&json!({ "said": "Hello again?", "by": "8" }));
    phone.write(&json!({ "said": "/pause tea", "by": 7, "id": "c1" }));
    phone.say("Is that all?");
    phone.next_message("answer 4");
    let got = phone.deliveries();
    assert_eq!(
        got.iter().filter(|one| one["to"] == "8").count(),
        1,
        "a stranger is told once, over restarts: {got:#?}"
    );
    let refused = got.iter().filter(|one| one["notice"].as_str().is_some_and(|said| said.contains("there is no job")));
    assert_eq!(refused.count(), 1, "the same command is executed once: {got:#?}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn why_explains_the_last_failure_and_any_job() {
    let api = MessagesApi::answering(|_| Reply::say("No."));
    let bot = bot_with_phone(&api);
    let job = |command: &str| {
        format!("---\ncron: '0 0 29 2 *'\nclient: exec\nretry: 0\nallowed_tools: []\ncommand: {command}\n---\n")
    };
    bot.write("routines/breaks.md", &job("exit 3"));
    bot.write("routines/works.md", &job("'true'"));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("/why");
    phone.next_message("No run has failed.");
    assert_eq!(service.fire("breaks")["outcome"], "failed");
    assert_eq!(service.fire("works")["outcome"], "completed");
    for (asked, answer) in [
        ("/why", "the command ended with exit code 3"),
        ("/why works", "works was fired by hand"),
        ("/why nobody", "there is no job"),
    ] {
        let before = phone.deliveries().len();
        phone.say(asked);
        service.until(asked, || {
            let said = phone.deliveries();
            let words = |one: &Value| {
                let text = one["notice"].as_str().or(one["text"].as_str())?;
                Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
            };
            let said: Vec<_> = said[before..].iter().filter_map(words).collect();
            (!said.is_empty()).then(|| assert!(said.iter().any(|text| text.contains(answer)), "{asked}: {said:#?}"))
        });
    }
    service.stop();
}

#[test]
fn the_owner_gets_a_link_to_the_page_and_nobody_else() {
    let api = MessagesApi::answering(|_| Reply::say("No."));
    let bot = bot_with_phone(&api);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{config}web: {address}\n"));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.write(&json!({ "said": "/web", "by": 8 }));
    phone.say("/web");
    let said = phone.next_message(&format!("http://{address}/in/"));
    let text = said["text"].as_str().or(said["notice"].as_str()).unwrap();
    let (_, path) = text.split_once(&format!("http://{address}")).unwrap();
    let path = path.split_whitespace().next().unwrap();
    let mut page = TcpStream::connect(address).unwrap();
    write!(page, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let others: Vec<Value> = phone.deliveries().into_iter().filter(|one| one["to"] == "8").collect();
    assert!(others.iter().all(|one| !one.to_string().contains("/in/")), "{others:#?}");
    service.stop();
}

#[test]
fn a_reply_goes_on_with_the_jobs_conversation_under_its_rules() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("mcp__discord__ping_user", json!({ "message": "Dinner at eight?" })),
        1 => Reply::say("I have asked."),
        2 => Reply::bash("touch made"),
        3 => Reply::say("I may not do that."),
        _ => Reply::say("Until then."),
    });
    let bot = bot_with_phone(&api);
    bot.write(
        "reminders/dinner.md",
        &reminder(
            now(),
            "background: true\nisolated: true\nupdate_main_session: blocked\nallowed_tools: ['Bash(ls *)', mcp__bot__ping_user]\n",
            "Ask.",
        ),
    );
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("Dinner at eight?");
    phone.write(&json!({ "said": "Yes. Write it down.", "by": 7, "reply_to": format!("m-{}", question["number"]) }));
    phone.next_message("I may not do that.");
    let last = told(&api.last());
    assert!(last.contains("Dinner at eight?") && last.contains("Yes. Write it down."), "{last}");
    assert!(!last.contains("> Dinner"), "the conversation holds it already: {last}");
    assert!(!bot.path("work/made").exists(), "the job's rules hold on");
    assert_eq!(api.last().tools(), ["Bash"]);
    let card = phone.next_message("Fork: your answer to dinner");
    let labels: Vec<&str> =
        card["buttons"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Exit"], "what a job has read does not become the main session, which this one tells nothing");

    // The next messages belong to the fork until it is over.
    phone.say("See you.");
    phone.next_message("Until then.");
    assert!(told(&api.last()).contains("Dinner at eight?"));
    phone.press(&card, "Exit");
    phone.next_message("It was dropped");
    phone.say("What was that about?");
    let asked = service.until("the main session is asked", || {
        api.requests().into_iter().find(|request| request.mentions("What was that about?"))
    });
    assert!(!told(&asked).contains("Dinner at eight?"), "{}", told(&asked));
    service.stop();
    bot.until_no_processes();
}

/// A right that the person takes from a job is taken from its conversations, too. Without the file there is no right.
#[test]
fn a_reply_to_a_jobs_message_has_no_right_that_its_file_has_lost() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("mcp__discord__ping_user", json!({ "message": "Dinner at eight?" })),
        1 => Reply::say("I have asked."),
        2 => Reply::bash("touch first"),
        3 => Reply::say("It is written down."),
        4 => Reply::bash("touch second"),
        5 => Reply::say("I may not do that."),
        6 => Reply::bash("ls"),
        _ => Reply::say("I may do nothing."),
    });
    let bot = bot_with_phone(&api);
    let write = |tools: &str| {
        let fields = "background: true\nisolated: true\nupdate_main_session: blocked\n";
        let text = format!("---\ncron: '@yearly'\n{fields}allowed_tools: [{tools}mcp__bot__ping_user]\n---\nAsk.\n");
        bot.write("routines/dinner.md", &text);
    };
    write("'Bash(touch *)', 'Bash(ls *)', ");
    let service = bot.start();
    service.fire("dinner");
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("Dinner at eight?");
    let reply = |said: &str| {
        phone.write(&json!({ "said": said, "by": 7, "reply_to": format!("m-{}", question["number"]) }));
    };
    reply("Yes. Write it down.");
    phone.next_message("It is written down.");
    assert_eq!(bot.names("work"), ["first"]);

    write("'Bash(ls *)', ");
    reply("Again.");
    phone.next_message("I may not do that.");
    let refused = api.last().results().pop().unwrap();
    assert!(refused.is_error && refused.text.contains("`touch` is not granted"), "{refused:#?}");

    std::fs::remove_file(bot.path("routines/dinner.md")).unwrap();
    reply("What is there?");
    phone.next_message("I may do nothing.");
    let refused = api.last().results().pop().unwrap();
    assert!(refused.is_error && !refused.text.contains("first"), "{refused:#?}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_fork_is_saved_reported_or_dropped() {
    let api = MessagesApi::repeating();
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("my name is Ada");
    phone.next_message("(my name is Ada)");
    phone.say("/fork the garden");
    phone.next_message("the garden)");
    let card = phone.next_message("Fork: the garden");
    phone.say("roses then");
    phone.next_message("(roses then)");
    let last = told(&api.last());
    assert!(last.contains("my name is Ada") && last.contains("the garden"), "a fork knows the conversation: {last}");
    // The fork is saved once, although the button is pressed twice.
    phone.press(&card, "Save");
    phone.press(&card, "Save");
    phone.next_message("it is the main session now");
    phone.next_message("this fork is over");
    phone.say("after saving");
    phone.next_message("(after saving)");
    assert!(told(&api.last()).contains("roses then"), "{}", told(&api.last()));

    // If the main session has moved on meanwhile, saving asks first.
    assert!(
        !phone.deliveries().iter().any(|one| one.to_string().contains("Save this fork?")),
        "{:#?}",
        phone.deliveries()
    );
    phone.say("/fork taxes");
    let card = phone.next_message("Fork: taxes");
    phone.next_message("taxes)");
    bot.ok(["chat", "said at the desk"]);
    phone.press(&card, "Save");
    let question = phone.next_message("Save this fork?");
    phone.press(&question, "Report instead");
    phone.next_message("The fork has ended. The main session is told this report");
    phone.say("what do you know");
    phone.next_message("(what do you know)");
    let last = told(&api.last());
    assert!(
        last.contains("said at the desk") && last.contains("call no tools"),
        "the report is among the updates: {last}"
    );
    phone.press(&card, "Exit");
    phone.next_message("this fork is over");

    // A fork outlives the service.
    phone.say("/fork holidays");
    phone.next_message("holidays)");
    service.kill();
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("by train");
    phone.next_message("(by train)");
    assert!(told(&api.last()).contains("holidays"), "{}", told(&api.last()));
    phone.say("/exit");
    phone.next_message("It was dropped");

    // `/save anyway` asks nothing.
    phone.say("/fork trains");
    phone.next_message("trains)");
    bot.ok(["chat", "said in between"]);
    phone.say("/save");
    phone.next_message("there is a question about it");
    phone.say("/save anyway");
    phone.next_message("it is the main session now");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn each_message_goes_to_the_fork_that_it_answers_and_otherwise_to_the_newest() {
    let api = MessagesApi::repeating();
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    for topic in ["the garden", "taxes"] {
        phone.say(&format!("/fork {topic}"));
        phone.next_message(&format!("{topic})"));
    }
    let asked = |text: &str| told(&api.requests().into_iter().rfind(|request| request.mentions(text)).unwrap());
    phone.say("the newest");
    phone.next_message("(the newest)");
    assert!(asked("the newest").contains("taxes") && !asked("the newest").contains("the garden"));
    let card = phone.next_message("Fork: the garden");
    phone.write(&json!({ "said": "roses", "by": 7, "reply_to": format!("m-{}", card["number"]) }));
    phone.next_message("(roses)");
    assert!(asked("roses").contains("the garden") && !asked("roses").contains("taxes"), "{}", asked("roses"));
    let answer = phone.next_message("(the newest)");
    phone.write(&json!({ "said": "by May", "by": 7, "reply_to": format!("m-{}", answer["number"]) }));
    phone.next_message("(by May)");
    assert!(asked("by May").contains("taxes") && !asked("by May").contains("roses"), "{}", asked("by May"));
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_fork_answers_while_the_main_session_waits_for_the_person() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("touch it") && request.results().is_empty() => Reply::bash("touch made"),
        text => Reply::say(&format!("({})", text.lines().last().unwrap_or_default())),
    });
    let bot = bot_with_phone(&api);
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{config}main_tools: [Read]\nmain_ask_tools: ['Bash(touch *)']\n"));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    for topic in ["the garden", "taxes"] {
        phone.say(&format!("/fork {topic}"));
        phone.next_message(&format!("{topic})"));
    }
    let main = bot.start_with(["chat", "touch it"]);
    main.until("it asks", || main.output().contains("asks (question 1)").then_some(()));
    for topic in ["the garden", "taxes"] {
        let card = phone.next_message(&format!("Fork: {topic}"));
        phone.write(
            &json!({ "said": format!("more on {topic}"), "by": 7, "reply_to": format!("m-{}", card["number"]) }),
        );
        phone.next_message(&format!("(more on {topic})"));
    }
    assert!(!bot.path("work/made").exists());
    bot.ok(["questions", "answer", "1", "allow"]);
    let (status, said) = main.wait();
    assert!(status.success(), "{said}");
    assert!(bot.path("work/made").exists());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn the_agent_leads_the_person_beside_the_conversation() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("we are moving") => {
            Reply::call("mcp__discord__enter_fork", serde_json::json!({ "topic": "the move" }))
        }
        text if text.contains("another one") => {
            Reply::call("mcp__discord__enter_fork", serde_json::json!({ "topic": "a fork of a fork" }))
        }
        text => Reply::say(&format!("({})", text.lines().last().unwrap_or_default())),
    });
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("we are moving");
    let card = phone.next_message("Fork: the move");
    phone.next_message("()");
    assert!(api.last().results()[0].text.starts_with("Opened."), "{:?}", api.last().results());
    phone.say("boxes first");
    phone.next_message("(boxes first)");
    assert!(told(&api.last()).contains("we are moving"), "a fork knows the conversation: {}", told(&api.last()));
    phone.say("another one");
    service.until("it is refused", || {
        api.last()
            .results()
            .iter()
            .any(|result| result.text == "This is a fork already. Talk about it here.")
            .then_some(())
    });
    phone.press(&card, "Exit");
    phone.next_message("It was dropped");
    phone.say("where were we");
    phone.next_message("(where were we)");
    let last = told(&api.last());
    assert!(last.contains("we are moving") && !last.contains("boxes first"), "{last}");
    service.stop();
}

#[test]
fn an_agents_button_is_a_turn_once() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call(
            "mcp__discord__discord_embed",
            json!({ "title": "Bins", "description": "Green or black?", "buttons": [{ "label": "Green", "action": "agent:it is the green one" }, { "label": "Black", "action": "agent:black" }] }),
        ),
        1 => Reply::say("Asked."),
        _ => Reply::say("Green it is."),
    });
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: [mcp__discord__discord_embed]\n";
    bot.write("reminders/bins.md", &reminder(now(), fields, "Ask me about the bins."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("Green or black?");
    phone.press(&question, "Green");
    phone.next_message("Green it is.");
    assert!(told(&api.last()).contains("[button] it is the green one"), "{}", told(&api.last()));
    assert!(told(&api.last()).contains("Green or black?"), "it is said in the job's conversation");
    phone.press(&question, "Black");
    phone.next_message("pressed already");
    let card = phone.next_message("Fork: your answer to bins");
    let labels: Vec<&str> =
        card["buttons"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Report", "Exit"]);
    phone.write(&json!({ "pressed": "999:0", "by": 7 }));
    phone.next_message("of no use any more");
    service.stop();
    bot.until_no_processes();
}

/// The person may have changed their mind since the run.
#[test]
fn a_fork_of_a_jobs_conversation_reports_only_if_the_file_lets_it_now() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call(
            "mcp__discord__discord_embed",
            json!({ "title": "Bins", "description": "Which?", "buttons": [{ "label": "Green", "action": "agent:green" }] }),
        ),
        1 => Reply::say("Asked."),
        _ => Reply::say("Green it is."),
    });
    let bot = bot_with_phone(&api);
    let job = |more: &str| {
        let fields = "background: true\nisolated: true\nallowed_tools: [mcp__discord__discord_embed]\n";
        bot.write("routines/bins.md", &format!("---\ncron: '@yearly'\n{fields}{more}---\nAsk me about the bins.\n"));
    };
    job("");
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    service.fire("bins");
    phone.press(&phone.next_message("Which?"), "Green");
    phone.next_message("Green it is.");
    let card = phone.next_message("Fork: your answer to bins");
    job("update_main_session: blocked\n");
    phone.press(&card, "Report");
    phone.next_message("the main session is told nothing");
    assert!(!told(&api.last()).contains("report"), "{}", told(&api.last()));
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_conversation_is_made_shorter_from_the_phone_and_the_numbers_are_told() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("<summary>") => Reply::say("<summary>They spoke of tea.</summary>"),
        text if text.contains("And now?") => Reply::say("Now it is short."),
        _ => Reply::say(&format!("answer {}", request.answers() + 1)),
    });
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("/compact");
    phone.next_message("no conversation to make shorter");
    for n in 1..4 {
        phone.say(&format!("Tea {n}? {}", "word ".repeat(200)));
        phone.next_message(&format!("answer {n}"));
    }
    phone.say("/compact");
    let told = phone.next_message("The conversation was made shorter: ")["text"].as_str().unwrap().to_owned();
    let numbers: Vec<u64> = told.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [before, after] if before > 0 && after > 0), "{told}");
    phone.say("And now?");
    phone.next_message("Now it is short.");
    let last = self::told(&api.last());
    assert!(last.contains("They spoke of tea.") && !last.contains("Tea 1?"), "{last}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_question_is_answered_on_the_phone() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch made"),
        1 => Reply::bash("mkdir other"),
        _ => Reply::say("Done."),
    });
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: ['Bash(ls *)']\nask_tools: ['Bash(touch *)', 'Bash(mkdir *)']\n\
                  ask: { deadline: 5m }\n";
    bot.write("reminders/file.md", &reminder(now(), fields, "Make it."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("touch made");
    let text = question["text"].as_str().unwrap();
    assert!(
        text.contains("asks (question 1)") && text.contains("Answer: `/questions answer 1 allow|run|deny`"),
        "{text}"
    );
    // No other person can answer it.
    let buttons = question["buttons"].as_array().unwrap();
    phone.write(&json!({ "pressed": buttons[0]["id"], "by": 8 }));
    phone.press(&question, "Allow once");
    phone.next_message("allowed once");
    let second = phone.next_message("mkdir other");
    phone.say("/questions");
    phone.next_message("mkdir");
    phone.press(&second, "Deny");
    service.until_ended("file", 1);
    assert!(bot.path("work/made").exists() && !bot.path("work/other").exists());
    assert!(told(&api.last()).contains("denied by the person"), "{}", told(&api.last()));
    phone.press(&second, "Allow once");
    phone.next_message("already closed");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn the_first_answer_counts_and_the_other_channel_shows_it() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch made"),
        1 => Reply::bash("touch more"),
        _ => Reply::say("Done."),
    });
    let (bot, telegram) = (bot_with_phone(&api), Telegram::start());
    let config = bot.read("config.yaml").unwrap();
    let config = config.replace("owner: 7", "owner: 7, outcomes: true");
    let tg = format!("  tg: {{ kind: telegram, owner: 12345678, api: '{}' }}\n", telegram.url());
    bot.write("config.yaml", &config.replace("default_channel", &format!("{tg}critical_channel: tg\ndefault_channel")));
    bot.secrets(&format!("TELEGRAM_TOKEN={TOKEN}\n"));
    let fields = "background: true\nisolated: true\nurgency: critical\nallowed_tools: ['Bash(ls *)']\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/file.md", &reminder(now(), fields, "Make it."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("touch made");
    let there = |text: &str| {
        telegram.chat().into_iter().find(|one| one["text"].as_str().is_some_and(|shown| shown.contains(text)))
    };
    let shown = service.until("it is asked there, too", || there("touch made"));
    service.until("both are recorded", || (!bot.json(["inbox"])[0]["delivered"].is_null()).then_some(()));
    phone.press(&question, "Allow once");
    let settled =
        service.until("its buttons are gone there", || there("touch made").filter(|one| one["reply_markup"].is_null()));
    let text = settled["text"].as_str().unwrap();
    assert!(text.contains("allowed once, by phone"), "{text}");
    telegram.press(12_345_678, &shown, "Deny");
    let toast = || telegram.calls("answerCallbackQuery").pop()?["text"].as_str().map(str::to_owned);
    let late = service.until("a later answer hears the first", toast);
    assert!(late.contains("already closed: allowed once"), "{late}");
    // The other way round, a bridge that asks for it is told what became of its message.
    let second = phone.next_message("touch more");
    let shown = service.until("it is asked there, too", || there("touch more"));
    let recorded =
        || bot.json(["inbox"])[0]["deliveries"].as_array()?.iter().all(|one| one["message"].is_string()).then_some(());
    service.until("both are recorded", recorded);
    telegram.press(12_345_678, &shown, "Deny");
    let outcome = service.until("the bridge is told", || {
        let sent = format!("m-{}", second["number"]);
        phone.deliveries().into_iter().find(|line| line["of"] == sent && line["outcome"].is_string())
    });
    assert!(outcome["outcome"].as_str().unwrap().contains("denied, by tg"), "{outcome}");
    service.until_ended("file", 1);
    assert!(bot.path("work/made").exists());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_reply_to_a_question_is_a_no_with_a_sentence_for_the_agent() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch made"),
        made => Reply::say(&format!("answer {made}")),
    });
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: ['Bash(ls *)']\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/file.md", &reminder(now(), fields, "Make it."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let question = phone.next_message("touch made");
    let reply_to = format!("m-{}", question["number"]);
    // A stranger cannot deny it.
    phone.write(&json!({ "said": "No!", "by": 8, "reply_to": reply_to }));
    for _ in 0..2 {
        phone.write(&json!({ "said": "Not on a Friday.", "by": 7, "id": "n1", "reply_to": reply_to }));
    }
    phone.next_message("question 1 of file is answered: denied");
    service.until_ended("file", 1);
    let last = told(&api.last());
    assert!(last.contains("denied by the person: Not on a Friday."), "{last}");
    assert!(!bot.path("work/made").exists());
    // After the run a reply continues the job's session.
    phone.write(&json!({ "said": "Why did you ask?", "by": 7, "id": "n2", "reply_to": reply_to }));
    phone.next_message("Fork: your answer to file");
    assert_eq!(phone.next_message("answer 2")["reply_to"], "n2", "the same reply is no turn");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_reply_with_a_number_or_a_label_presses_a_button() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch one"),
        1 => Reply::bash("touch two"),
        2 => Reply::bash("touch three"),
        _ => Reply::say("Done."),
    });
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: ['Bash(ls *)']\nask_tools: ['Bash(touch *)']\n";
    bot.write("reminders/file.md", &reminder(now(), fields, "Make them."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let labels = ["Allow once", "Allow in this run", "Deny"];
    for (name, answer) in [("one", " 1"), ("two", "5"), ("three", "allow ONCE")] {
        let question = phone.next_message(&format!("touch {name}"));
        let buttons = question["buttons"].as_array().unwrap();
        let shown: Vec<_> = buttons.iter().filter_map(|button| button["label"].as_str()).collect();
        assert_eq!(shown, labels);
        let reply_to = format!("m-{}", question["number"]);
        phone.write(&json!({ "said": answer, "by": 7, "reply_to": reply_to }));
    }
    service.until_ended("file", 1);
    let made = ["one", "two", "three"].map(|name| bot.path(&format!("work/{name}")).exists());
    assert_eq!(made, [true, false, true]);
    assert!(told(&api.last()).contains("denied by the person: 5"), "{}", told(&api.last()));
    service.stop();
}

#[test]
fn the_person_chooses_the_model_of_their_conversation() {
    // Each client keeps a session's model unless it receives another one.
    let api = MessagesApi::answering(|request| Reply::say(&format!("answer {}", request.answers() + 1)));
    let bot = bot_with_phone(&api);
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("/model claude-haiku-4-5");
    phone.next_message("model: claude-haiku-4-5\nthinking: as the settings say");
    phone.say("/thinking off");
    phone.next_message("thinking: off");
    phone.say("/model --dangerously-skip-permissions");
    phone.next_message("is no name of a model");
    phone.say("/model nosuchmodel");
    phone.next_message("model: nosuchmodel\nthinking: off\nThe next answer shows whether there is such a model.");
    phone.say("/model claude-haiku-4-5");
    phone.next_message("model: claude-haiku-4-5\nthinking: off");
    phone.say("/thinking much");
    phone.next_message("`much` says nothing about thinking");
    service.kill();
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    phone.say("Good morning.");
    phone.next_message("answer 1");
    let request = api.last();
    assert_eq!(request.body["model"], "claude-haiku-4-5", "it outlives the service");
    assert!(request.body["thinking"].is_null() || request.body["thinking"]["type"] == "disabled", "{:#}", request.body);
    phone.say("/model default");
    phone.next_message("model: as the settings say\nthinking: off");
    phone.say("And now?");
    phone.next_message("answer 2");
    assert_ne!(api.last().body["model"], "claude-haiku-4-5");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_reminder_that_failed_is_tried_again_by_a_button() {
    let api = MessagesApi::answering(|_| Reply::say("I could not."));
    let bot = bot_with_phone(&api);
    let fields = "background: true\nisolated: true\nallowed_tools: [Read]\nexpect: file done.txt\n";
    bot.write("reminders/tidy.md", &reminder(now(), fields, "Tidy up."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let told = phone.next_message("reminder tidy failed");
    assert!(told["text"].as_str().unwrap().contains("`/retry tidy`"), "what can be typed here: {told:#}");
    phone.press(&told, "Try again");
    phone.next_message("Tried again");
    service.until_ended("tidy", 2);
    phone.say("/retry nothing-of-the-kind");
    phone.next_message("nothing-of-the-kind");
    service.stop();
    bot.until_no_processes();
}
