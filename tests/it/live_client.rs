//! The main session's client stays from one turn to the next, and takes up messages that arrive during a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::bot::{CommandOutput, Service, TestBot};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::wait;

fn bot(api: &MessagesApi) -> TestBot {
    TestBot::with_client(&client::real(), api.url())
}

/// Says something, and waits for the answer.
#[track_caller]
fn say(bot: &TestBot, text: &str) -> String {
    let ran = bot.run(["chat", text]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.stdout.trim_end().to_owned()
}

/// Returns the conversation's client, if one is running.
fn client_of(bot: &TestBot) -> Option<u32> {
    let clients = bot.processes().into_iter().filter(|process| process.command.contains("--permission-prompt-tool"));
    let mut pids: Vec<u32> = clients.map(|process| process.pid).collect();
    assert!(pids.len() <= 1, "one client at a time: {pids:?}");
    pids.pop()
}

/// The runs of the person's messages, oldest first.
fn turns(bot: &TestBot) -> Vec<Value> {
    let mut runs = bot.json(["runs", "-n", "100"]).as_array().unwrap().clone();
    runs.reverse();
    runs
}

#[test]
fn a_client_answers_one_message_after_the_other_and_each_costs_its_own() {
    let api = MessagesApi::script(["one", "two", "three", "four", "five", "six"].map(Reply::say));
    let bot = bot(&api);
    // With everything granted, the rights depend on other files in this machine's folders. Then the client might not stay.
    bot.write("config.yaml", "main_tools: [Read, 'Bash(ls *)']\n");
    let service = bot.start();
    assert_eq!(say(&bot, "First?"), "one");
    let first = client_of(&bot).expect("the client stays");
    assert_eq!(say(&bot, "Second?"), "two");
    assert_eq!(client_of(&bot), Some(first));
    assert!(bot.ok(["status"]).contains(" more for your next message"), "{}", bot.ok(["status"]));

    // The next turn starts a new client if the old one has ended.
    kill_process(Pid::from_raw(first.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(say(&bot, "Third?"), "three");
    let second = client_of(&bot).expect("another one stays");
    assert_ne!(second, first);

    // Other settings need another client.
    bot.write("config.yaml", "main_tools: [Read]\n");
    service.signal(Signal::HUP);
    service.until("the settings hold", || service.output().contains("settings").then_some(()));
    assert_eq!(say(&bot, "Fourth?"), "four");
    assert_ne!(client_of(&bot), Some(second));

    // Each turn has its own cost, though the client adds them up. The stub's answers all cost the same.
    let costs: Vec<f64> = turns(&bot).iter().map(|run| run["cost_usd"].as_f64().unwrap()).collect();
    assert_eq!(costs.len(), 4);
    assert!(costs.iter().all(|cost| (cost - costs[0]).abs() < 1e-9 && *cost > 0.0), "{costs:?}");
    let tokens: Vec<Value> = turns(&bot).iter().map(|run| run["tokens"].clone()).collect();
    assert!(tokens.iter().all(|of| *of == tokens[0]), "{tokens:?}");
    let last = api.last().body["messages"].to_string();
    for said in ["First?", "Second?", "Third?", "Fourth?"] {
        assert_eq!(last.matches(said).count(), 1, "{said}: {last}");
    }
    service.stop();
    bot.until_no_processes();
}

/// An API whose first answer calls a program that ends once `go` exists. Its other answers repeat the prompt.
fn held() -> MessagesApi {
    MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("while [ ! -e go ]; do sleep 0.05; done"),
        _ => Reply::say(&format!("answer {}", request.answers())),
    })
}

/// Waits until the client of the first turn was given a message that arrived meanwhile.
#[track_caller]
fn until_given(bot: &TestBot, service: &Service<'_>) {
    service.until("its client was given it", || {
        let run = turns(bot).first()?["run"].as_str()?.to_owned();
        bot.ok(["runs", "show", &run]).contains("was given what was said meanwhile").then_some(())
    });
}

#[test]
fn what_is_said_between_two_steps_is_answered_by_the_same_turn() {
    let api = held();
    let bot = bot(&api);
    let service = bot.start();
    let first = bot.start_with(["chat", "Wait for it."]);
    service.until("the program runs", || bot.processes().iter().any(|one| one.command.contains("sleep")).then_some(()));
    let second = bot.start_with(["chat", "And bring tea."]);
    until_given(&bot, &service);
    bot.write("work/go", "");
    let (status, said) = first.wait();
    assert!(status.success() && said.contains("answer 1"), "{said}");
    let (status, said) = second.wait();
    assert!(status.success() && said.contains("(The answer to your message before this one covers it.)"), "{said}");
    let last = api.last().body["messages"].to_string();
    assert_eq!((api.requests().len(), last.matches("And bring tea.").count()), (2, 1), "{last}");
    let runs = turns(&bot);
    assert!(runs.iter().all(|run| run["outcome"] == "completed"), "{runs:#?}");
    let shown = bot.ok(["runs", "show", runs[1]["run"].as_str().unwrap()]);
    assert!(shown.contains(&format!("the turn of run {} answered it", runs[0]["run"].as_str().unwrap())), "{shown}");
    service.stop();
}

#[test]
fn what_is_said_while_the_last_words_are_written_is_the_next_turns_and_is_said_once() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let api = MessagesApi::answering(move |request| {
        wait::until("the gate opens", || gate.load(Ordering::SeqCst).then_some(()), String::new);
        Reply::say(&format!("answer {}", request.answers()))
    });
    let bot = bot(&api);
    let service = bot.start();
    let first = bot.start_with(["chat", "One."]);
    service.until("the model is asked", || (!api.requests().is_empty()).then_some(()));
    let others = [("Two.", 2), ("Three.", 3)].map(|(text, count)| {
        let chat = bot.start_with(["chat", text]);
        service.until("it is recorded", || (turns(&bot).len() == count).then_some(()));
        chat
    });
    open.store(true, Ordering::SeqCst);
    let (status, said) = first.wait();
    assert!(status.success() && said.contains("answer 0"), "{said}");
    for chat in others {
        let (status, said) = chat.wait();
        assert!(status.success(), "{said}");
    }
    let last = api.last().body["messages"].to_string();
    for said in ["One.", "Two.", "Three."] {
        assert_eq!(last.matches(said).count(), 1, "{said}: {last}");
    }
    assert!(turns(&bot).iter().all(|run| run["outcome"] == "completed"), "{:#?}", turns(&bot));
    service.stop();
}

#[test]
fn an_interrupted_turn_loses_nothing_that_was_said_meanwhile() {
    let api = held();
    let bot = bot(&api);
    let service = bot.start();
    let first = bot.start_with(["chat", "Wait for it."]);
    service.until("the program runs", || bot.processes().iter().any(|one| one.command.contains("sleep")).then_some(()));
    let second = bot.start_with(["chat", "And bring tea."]);
    until_given(&bot, &service);
    let withdrawn = bot.run(["cancel-run", turns(&bot)[1]["run"].as_str().unwrap()]);
    assert!(withdrawn.stderr.contains("the model was given this message already"), "{withdrawn:?}");
    bot.ok(["cancel-run", turns(&bot)[0]["run"].as_str().unwrap()]);
    let (status, said) = first.wait();
    assert!(!status.success(), "{said}");
    let (status, said) = second.wait();
    assert!(status.success() && said.contains("answer"), "{said}");
    service.stop();
}

#[test]
fn a_client_that_leaves_something_running_does_not_stay_and_nothing_of_it_does() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("Leave") && request.results().is_empty() => {
            Reply::bash("(setsid sleep 4321 >/dev/null 2>&1 &) ; echo left")
        }
        _ => Reply::say("done"),
    });
    let bot = bot(&api);
    let service = bot.start();
    say(&bot, "Leave it.");
    assert_eq!(client_of(&bot), None);
    let left: Vec<_> = bot.processes().into_iter().filter(|process| process.command.contains("4321")).collect();
    assert!(left.is_empty(), "{left:?}");
    say(&bot, "Hello.");
    assert!(client_of(&bot).is_some(), "{}", service.output());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn the_token_of_the_main_session_stands_for_nobody_between_two_turns() {
    let api = MessagesApi::script([Reply::bash("printf %s \"$OLLIM_RUN_TOKEN\" > token"), Reply::say("kept")]);
    let bot = bot(&api);
    let service = bot.start();
    say(&bot, "Keep it.");
    let token = bot.read("work/token").expect("the shell of the person's own session has it");
    assert_eq!(token.len(), 32, "{token}");
    assert!(client_of(&bot).is_some());
    let mut command = bot.command(["status"]);
    command.env("OLLIM_RUN_TOKEN", &token);
    let ran = CommandOutput::of(command);
    assert!(ran.code != 0 && ran.stderr.contains("ended"), "{ran:?}");
    service.stop();
}

/// The client shortens a conversation that has become too long for the model.
#[test]
fn a_conversation_that_the_client_shortens_by_itself_is_told_with_its_numbers() {
    let api = MessagesApi::script([Reply::say("Good morning.")]);
    let folder = tempfile::tempdir().unwrap();
    let boundary =
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"pre_tokens":150000,"post_tokens":9000}}"#;
    let line = format!("{} \"$@\" | sed -u '/^{{\"type\":\"result\"/i {boundary}'", client::real().display());
    let bot = TestBot::with_client(&client::script(folder.path(), &line), api.url());
    let service = bot.start();
    assert_eq!(say(&bot, "Hello."), "Good morning.");
    let told = || bot.json(["inbox"]).to_string().contains("The conversation was made shorter: ").then_some(());
    service.until("it is told", told);
    let inbox = bot.json(["inbox"]).to_string();
    assert!(inbox.contains("150") && inbox.contains('9') && inbox.matches("made shorter").count() == 1, "{inbox}");
    service.stop();
}

#[test]
fn a_client_that_hears_nothing_ends_and_the_next_message_starts_another() {
    let api = MessagesApi::script(["one", "two"].map(Reply::say));
    let bot = bot(&api);
    bot.write("config.yaml", "main_tools: [Read]\nmain_idle_timeout: 1s\n");
    let service = bot.start();
    assert_eq!(say(&bot, "First?"), "one");
    service.until("the client ends", || {
        service.output().contains("the conversation's client was ended: nobody has said anything for 1s").then_some(())
    });
    assert_eq!(client_of(&bot), None);
    assert!(!bot.ok(["status"]).contains("for your next message"), "{}", bot.ok(["status"]));
    assert_eq!(say(&bot, "Second?"), "two");
    let last = api.last().body["messages"].to_string();
    assert!(last.contains("First?"), "the conversation goes on: {last}");
    assert!(turns(&bot).iter().all(|run| run["outcome"] == "completed"), "{:#?}", turns(&bot));
    service.stop();
    bot.until_no_processes();
}
