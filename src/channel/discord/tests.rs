//! Tests of the channel against a stub of Discord and a stub of the service.

#[path = "../../../tests/it/support/discord.rs"]
mod stub;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use super::*;
use crate::channel::hearing::TO_STRANGERS;
use crate::channel::{Heard, Hearing, OutgoingButton, Progress, Response, Said};
use crate::definition::{DefinitionId, Urgency};
use crate::journal::Rich;
use stub::{Fault, OWNER, STRANGER, TOKEN};

type Answer = dyn Fn(&Heard) -> Response + Send + Sync;

/// A service that records its input and gives scripted answers.
struct Service {
    answer: Box<Answer>,
    heard: Mutex<Vec<Heard>>,
    strangers: Mutex<Vec<String>>,
    last: Mutex<Option<String>>,
    turns: Mutex<HashMap<DefinitionId, UnboundedSender<Progress>>>,
    /// The status message of each turn.
    shown: Mutex<HashMap<DefinitionId, String>>,
    kept: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl Hearing for Service {
    async fn heard(&self, channel: &str, heard: Heard) -> Response {
        assert_eq!(channel, "discord");
        let response = (self.answer)(&heard);
        self.heard.lock().unwrap().push(heard);
        response
    }

    async fn stranger(&self, _channel: &str, by: &str) -> bool {
        let mut strangers = self.strangers.lock().unwrap();
        strangers.push(by.to_owned());
        strangers.len() == 1
    }

    fn follow(&self, turn: DefinitionId) -> UnboundedReceiver<Progress> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.turns.lock().unwrap().insert(turn, sender);
        receiver
    }

    async fn mark(&self, _channel: &str, last: String) {
        *self.last.lock().unwrap() = Some(last);
    }

    async fn last_heard(&self, _channel: &str) -> Option<String> {
        self.last.lock().unwrap().clone()
    }

    async fn shows(&self, _channel: &str, turn: &DefinitionId, message: String) {
        self.shown.lock().unwrap().insert(turn.clone(), message);
    }

    async fn shown(&self, _channel: &str, turn: &DefinitionId) -> Option<String> {
        self.shown.lock().unwrap().get(turn).cloned()
    }

    async fn sent(&self, _channel: &str, _message: &str) -> Option<Outgoing> {
        None
    }

    async fn keep(&self, _channel: &str, name: &str, what: String) -> bool {
        self.kept.lock().unwrap().insert(name.to_owned(), what);
        true
    }

    async fn kept(&self, _channel: &str) -> Vec<(String, String)> {
        self.kept.lock().unwrap().clone().into_iter().collect()
    }

    async fn let_go(&self, _channel: &str, name: &str) {
        self.kept.lock().unwrap().remove(name);
    }
}

/// A channel that can listen, with both stubs.
struct Desk {
    discord: stub::Discord,
    channel: Arc<Discord>,
    service: Arc<Service>,
    listening: Option<JoinHandle<()>>,
}

impl Desk {
    fn answering(answer: impl Fn(&Heard) -> Response + Send + Sync + 'static) -> Self {
        let discord = stub::Discord::start();
        let service = Service {
            answer: Box::new(answer),
            heard: Mutex::default(),
            strangers: Mutex::default(),
            last: Mutex::default(),
            turns: Mutex::default(),
            shown: Mutex::default(),
            kept: Mutex::default(),
        };
        let channel = Arc::new(channel(&discord));
        Self { discord, channel, service: Arc::new(service), listening: None }
    }

    /// A desk on which every message begins a turn.
    fn talking() -> Self {
        Self::answering(|_| Response::Turn(DefinitionId::new("chat-1")))
    }

    fn listen(&mut self) {
        let (channel, ear) = (Arc::clone(&self.channel), Ear::new("discord".into(), self.service.clone()));
        self.listening = Some(tokio::spawn(async move { channel.listen(ear).await }));
    }

    async fn connected(mut self) -> Self {
        self.listen();
        self.until("it is connected", || self.discord.is_connected().then_some(())).await;
        self
    }

    /// Restarts the program.
    async fn start_again(&mut self) {
        self.hang_up().await;
        self.channel = Arc::new(channel(&self.discord));
    }

    async fn hang_up(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _aborted = listening.await;
        }
        self.until("it is not connected", || (!self.discord.is_connected()).then_some(())).await;
    }

    async fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        for _ in 0..20_000 {
            if let Some(answer) = ask() {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("waited in vain: {what}; heard {:?}; {:#?}", self.heard(), self.discord.requests("", ""));
    }

    async fn send(&self, message: &Outgoing) -> Result<Option<String>, NotSent> {
        self.channel.send(message, &mut Sent::default()).await
    }

    fn heard(&self) -> Vec<Heard> {
        self.service.heard.lock().unwrap().clone()
    }

    async fn heard_texts(&self, count: usize) -> Vec<String> {
        self.until("so many messages are heard", || (self.heard().len() >= count).then_some(())).await;
        let text = |heard: &Heard| match heard {
            Heard::Said(said) => said.text.clone(),
            other => panic!("{other:?}"),
        };
        self.heard().iter().map(text).collect()
    }

    async fn turn(&self) -> UnboundedSender<Progress> {
        self.until("the turn is followed", || self.service.turns.lock().unwrap().remove(&DefinitionId::new("chat-1")))
            .await
    }

    #[track_caller]
    fn no_problems(&self) {
        assert_eq!(self.discord.problems(), [""; 0]);
    }
}

fn channel(discord: &stub::Discord) -> Discord {
    let settings = DiscordChannel { owner: None, api: Some(discord.url()) };
    Discord::new(settings, Some(TOKEN.into()))
}

fn message(number: i64, job: &str, text: &str) -> Outgoing {
    Outgoing {
        number,
        at: "2026-11-23T12:00:00Z".parse().unwrap(),
        job: Some(DefinitionId::new(job)),
        run: None,
        title: None,
        text: text.into(),
        urgency: Urgency::Normal,
        buttons: Vec::new(),
        asks: false,
        answers: Some(DefinitionId::new(job)).filter(DefinitionId::is_turn),
        reply_to: None,
        rich: None,
    }
}

fn with_button(number: i64) -> Outgoing {
    let buttons = vec![OutgoingButton { id: format!("{number}:0"), label: "Done".into() }];
    Outgoing { buttons, ..message(number, "tea", "Tea is ready.") }
}

fn again(sent: Result<Option<String>, NotSent>) -> bool {
    sent.unwrap_err().again
}

// ---- Sending.

#[tokio::test]
async fn a_message_is_sent_once_whatever_the_answer_was() {
    let desk = Desk::talking();
    desk.discord.fail("POST", "/messages", Fault::After(500));
    desk.discord.fail("POST", "/messages", Fault::Limited(0.1));
    let tea = message(7, "tea", "Tea is ready.\u{7}");
    assert!(again(desk.send(&tea).await));
    let id = desk.send(&tea).await.unwrap().unwrap();
    assert_eq!(desk.discord.texts(), ["Tea is ready."]);
    assert_eq!(desk.discord.messages()[0]["id"], *id);
    // The service was killed before it could record the delivery.
    assert_eq!(channel(&desk.discord).send(&tea, &mut Sent::default()).await.unwrap(), Some(id));
    assert_eq!(desk.discord.texts().len(), 1);
    desk.no_problems();
}

#[tokio::test]
async fn a_long_message_is_several_and_each_is_sent_once() {
    let desk = Desk::talking();
    let text = format!("Look:\n```rust\n{}\n```\n{}", "let tea = 1;\n".repeat(300), "word ".repeat(1220));
    assert!(text.len() >= 10_000);
    let long = message(8, "tea", &text);
    let id = desk.send(&long).await.unwrap().unwrap();
    let texts = desk.discord.texts();
    assert!(texts.len() > 5 && texts.len() < 9, "{}", texts.len());
    for text in &texts {
        assert!(text.matches("```").count().is_multiple_of(2), "{text}");
    }
    assert_eq!(texts.concat().matches("let tea = 1;").count(), 300);
    let parts: Vec<String> =
        desk.discord.messages().iter().map(|part| part["id"].as_str().unwrap().to_owned()).collect();
    assert!(
        id.split(' ').all(|part| parts.iter().any(|sent| sent == part)) && id.split(' ').count() == texts.len(),
        "{id}"
    );
    assert_eq!(channel(&desk.discord).send(&long, &mut Sent::default()).await.unwrap(), Some(id));
    assert_eq!(desk.discord.texts().len(), texts.len());
    desk.no_problems();
}

#[tokio::test]
async fn what_was_sent_of_a_long_message_is_not_sent_again() {
    let desk = Desk::talking();
    let long = message(8, "tea", &"word ".repeat(900));
    desk.discord.fail_after(1, "POST", "/messages", Fault::Before(500));
    let mut sent = Sent::default();
    assert!(again(desk.channel.send(&long, &mut sent).await));
    assert_eq!(desk.discord.texts().len(), 1);
    // Discord has forgotten the nonces by now.
    desk.discord.forget_nonces();
    desk.channel.send(&long, &mut sent).await.unwrap();
    assert_eq!(desk.discord.texts().len(), 3);
    desk.no_problems();
}

#[tokio::test]
async fn an_embed_shows_title_fields_and_buttons_and_is_settled() {
    let desk = Desk::talking();
    let rich = Rich {
        title: "Build".into(),
        description: "It is green: https://example.org @everyone".into(),
        color: Some(0x2e_cc71),
        fields: vec![("branch".into(), "main".into())],
        buttons: Vec::new(),
        footer: "from ci".into(),
    };
    let build = Outgoing { rich: Some(rich), ..with_button(9) };
    let id = desk.send(&build).await.unwrap().unwrap();
    let shown = desk.discord.messages().remove(0);
    assert_eq!(shown["embeds"][0]["fields"], json!([{ "name": "branch", "value": "main" }]));
    assert_eq!(shown["components"][0]["components"][0]["custom_id"], "9:0");
    // After a restart another channel object settles the message.
    channel(&desk.discord).settle(&id, &build, "Done at 12:00").await.unwrap();
    let shown = desk.discord.messages().remove(0);
    let button = &shown["components"][0]["components"][0];
    assert_eq!((&button["label"], &button["disabled"]), (&json!("Done at 12:00"), &json!(true)));
    assert_eq!(shown["embeds"][0]["title"], "Build");
    desk.channel.settle("123", &build, "gone").await.unwrap();
    desk.channel.settle("an id of ntfy", &build, "gone").await.unwrap();
    desk.no_problems();
}

#[tokio::test]
async fn a_token_that_is_missing_or_refused_is_told_for_good() {
    let desk = Desk::talking();
    let settings = DiscordChannel { owner: None, api: Some(desk.discord.url()) };
    let without = Discord::new(settings.clone(), None);
    assert!(without.lost().await.contains("`DISCORD_TOKEN` is not set"));
    assert!(!again(without.send(&message(1, "tea", "Tea."), &mut Sent::default()).await));
    let wrong = Discord::new(settings, Some("wrong".into()));
    let refused = wrong.send(&message(1, "tea", "Tea."), &mut Sent::default()).await.unwrap_err();
    assert!(!refused.again && refused.why.contains("does not accept `DISCORD_TOKEN`"), "{refused:?}");
    assert_eq!(desk.discord.texts(), [""; 0]);
}

#[tokio::test]
async fn too_many_requests_without_a_wait_are_given_up() {
    let desk = Desk::talking();
    for _ in 0..10 {
        desk.discord.fail("POST", "/messages", Fault::Before(429));
    }
    assert!(again(desk.send(&message(1, "tea", "Tea.")).await));
    assert_eq!(desk.discord.requests("POST", "/messages").len(), 4);
}

// ---- Hearing.

#[tokio::test]
async fn a_message_is_seen_answered_as_it_goes_and_becomes_the_answer() {
    let desk = Desk::talking().connected().await;
    let said = desk.discord.say("What is on today?");
    let turn = desk.turn().await;
    desk.until("it is seen", || (!desk.discord.reactions(&said).is_empty()).then_some(())).await;
    let shows = async |what: &str| {
        desk.until(what, || desk.discord.texts().first().filter(|text| text.contains(what)).cloned()).await
    };
    shows("-# Thinking, ").await;
    turn.send(Progress::Text("Let me look.".into())).unwrap();
    turn.send(Progress::Call { label: "Read notes/a.md".into() }).unwrap();
    let text = shows("-# Read notes/a.md, ").await;
    assert!(!text.contains("Let me look"), "{text}");
    turn.send(Progress::Refused { label: "Read notes/a.md".into(), reason: "no rule allows it".into() }).unwrap();
    shows("-# ~~Read notes/a.md~~ no rule allows it").await;
    turn.send(Progress::Text("Nothing".into())).unwrap();
    shows("\nNothing\n-# Writing, ").await;
    let interrupt = json!({ "type": 2, "style": 2, "label": "Interrupt", "custom_id": "interrupt:chat-1" });
    assert_eq!(desk.discord.messages()[0]["components"], json!([{ "type": 1, "components": [&interrupt] }]));
    // A question is a separate message. The status message continues.
    desk.send(&Outgoing { answers: None, ..message(2, "chat-1", "May I?") }).await.unwrap();
    turn.send(Progress::Call { label: "Bash ls".into() }).unwrap();
    shows("-# Bash ls, ").await;
    assert_eq!(desk.discord.messages()[0]["components"], json!([{ "type": 1, "components": [interrupt] }]));
    turn.send(Progress::Ended { completed: false }).unwrap();
    let answer = message(3, "chat-1", "Nothing is on today.");
    let id = desk.send(&answer).await.unwrap().unwrap();
    assert_eq!(desk.discord.texts(), ["Nothing is on today.", "May I?"], "it is the same message");
    let shown = desk.discord.messages().remove(0);
    assert_eq!(shown["components"], json!([]), "its button is gone");
    assert_eq!(shown["message_reference"]["message_id"], said, "it answers what was said");
    assert_eq!(desk.discord.messages()[0]["id"], *id);
    desk.until("the reaction is gone", || desk.discord.reactions(&said).is_empty().then_some(())).await;
    assert!(!desk.discord.requests("POST", "/typing").is_empty());
    let expect = Said { id: Some(said), text: "What is on today?".into(), ..Said::default() };
    assert_eq!(desk.heard(), [Heard::Said(expect)]);
    // A further message of the turn is separate.
    desk.send(&message(4, "chat-1", "By the way.")).await.unwrap();
    assert_eq!(desk.discord.texts(), ["Nothing is on today.", "May I?", "By the way."]);
    desk.no_problems();
}

#[tokio::test]
async fn a_turn_without_an_answer_leaves_no_button() {
    let turn_id = DefinitionId::new("chat-1");
    for (seen, left) in [(None, vec![]), (Some("It is"), vec!["It is\n-# Interrupted, "])] {
        let desk = Desk::talking().connected().await;
        let said = desk.discord.say("Which tea?");
        let turn = desk.turn().await;
        desk.until("it is shown", || desk.discord.texts().pop()).await;
        if let Some(text) = seen {
            turn.send(Progress::Text(text.into())).unwrap();
        }
        turn.send(Progress::Ended { completed: false }).unwrap();
        desk.until("it is followed no more", || desk.discord.reactions(&said).is_empty().then_some(())).await;
        let message = desk.service.shown.lock().unwrap()[&turn_id].clone();
        desk.channel.hide(&turn_id, &message).await.unwrap();
        let texts = desk.discord.texts();
        let fits = texts.iter().zip(&left).all(|(text, left)| text.starts_with(left) && text.ends_with(" s"));
        assert!(texts.len() == left.len() && fits, "{texts:?}");
        assert!(desk.discord.messages().iter().all(|message| message["components"] == json!([])));
        // The message is hidden already, by a channel object that did not post it.
        desk.channel.hide(&turn_id, &message).await.unwrap();
        channel(&desk.discord).hide(&turn_id, &message).await.unwrap();
        assert_eq!(desk.discord.texts(), [""; 0]);
        desk.no_problems();
    }
}

#[tokio::test]
async fn an_answer_takes_the_place_of_what_an_earlier_process_has_shown_and_the_next_one_does_not() {
    let desk = Desk::talking().connected().await;
    desk.discord.say("Hello");
    let _turn = desk.turn().await;
    let shown = || desk.service.shown.lock().unwrap().get(&DefinitionId::new("chat-1")).cloned();
    let shown = desk.until("it is shown, and recorded", shown).await;
    let recorded = || Sent::after(shown.clone());
    // Discord has forgotten the nonce by now.
    desk.discord.forget_nonces();
    let later = channel(&desk.discord);
    for text in ["Good morning.", "By the way."] {
        later.send(&message(3, "chat-1", text), &mut recorded()).await.unwrap();
    }
    assert_eq!(desk.discord.texts(), ["Good morning.", "By the way."]);
    desk.no_problems();
}

#[tokio::test]
async fn fewer_edits_do_not_change_the_answer() {
    let desk = Desk::talking().connected().await;
    desk.discord.say("Write.");
    let turn = desk.turn().await;
    for _ in 0..3 {
        desk.discord.fail("PATCH", "/messages/", Fault::Limited(0.2));
    }
    desk.discord.fail("POST", "/messages", Fault::Before(502));
    for n in 0..200 {
        turn.send(Progress::Text(format!("{n} "))).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    desk.until("it was edited", || (desk.discord.requests("PATCH", "/messages/").len() > 3).then_some(())).await;
    let whole: String = (0..200).map(|n| format!("{n} ")).collect();
    desk.send(&message(3, "chat-1", &whole)).await.unwrap();
    turn.send(Progress::Ended { completed: false }).unwrap();
    assert_eq!(desk.discord.texts(), [whole.trim()]);
    assert!(desk.discord.requests("PATCH", "/messages/").len() < 20, "not an edit for each word");
    desk.no_problems();
}

#[tokio::test]
async fn an_answer_that_was_not_seen_before_says_what_it_answers() {
    let desk = Desk::talking();
    let answer = Outgoing { reply_to: Some("17".into()), ..message(3, "chat-discord-17", &"word ".repeat(900)) };
    desk.send(&answer).await.unwrap();
    let answered: Vec<Value> =
        desk.discord.messages().iter().map(|part| part["message_reference"]["message_id"].clone()).collect();
    assert_eq!(answered, [json!("17"), Value::Null, Value::Null]);
    desk.no_problems();
}

#[tokio::test]
async fn a_turn_whose_message_was_removed_is_answered() {
    let desk = Desk::answering(|_| Response::Turn(DefinitionId::new("chat-1"))).connected().await;
    desk.discord.say("Hello");
    let turn = desk.turn().await;
    desk.until("it is shown", || desk.discord.texts().pop()).await;
    desk.discord.remove_all();
    let sent = desk.send(&message(3, "chat-1", &"word ".repeat(900))).await.unwrap();
    assert!(sent.is_some() && desk.discord.texts().len() == 3, "{:?}", desk.discord.texts());
    drop(turn);
    desk.no_problems();
}

#[tokio::test]
async fn an_answer_that_is_faster_than_the_turn_is_shown_is_not_followed_by_a_status() {
    let desk = Desk::talking().connected().await;
    let answer = message(3, "chat-1", "Good morning.");
    desk.send(&answer).await.unwrap();
    let said = desk.discord.say("Hello");
    let _turn = desk.turn().await;
    // The channel gets no event that the turn ended.
    desk.until("it was seen", || (!desk.discord.requests("PUT", "/reactions/").is_empty()).then_some(())).await;
    desk.until("the reaction is gone", || desk.discord.reactions(&said).is_empty().then_some(())).await;
    assert_eq!(desk.discord.texts(), ["Good morning."]);
    desk.no_problems();
}

#[tokio::test]
async fn a_service_that_is_killed_in_a_turn_leaves_no_second_answer() {
    for sent_before in [false, true] {
        let mut desk = Desk::talking().connected().await;
        desk.discord.say("Hello");
        let turn = desk.turn().await;
        desk.until("it is shown", || desk.discord.texts().pop()).await;
        let answer = message(3, "chat-1", "Good morning.");
        if sent_before {
            desk.send(&answer).await.unwrap();
        }
        desk.start_again().await;
        desk.send(&answer).await.unwrap();
        assert_eq!(desk.discord.texts(), ["Good morning."], "{sent_before}");
        drop(turn);
        desk.no_problems();
    }
}

#[tokio::test]
async fn what_is_written_while_nobody_listens_is_heard_once_and_in_order() {
    let mut desk = Desk::answering(|_| Response::Text("Heard.".into())).connected().await;
    desk.discord.say("one");
    desk.heard_texts(1).await;
    desk.start_again().await;
    for n in 0..120 {
        desk.discord.say(&format!("offline {n}"));
    }
    desk.discord.write(STRANGER, json!({ "content": "let me in" }));
    desk.discord.write(OWNER, json!({ "content": "odd", "author": { "id": "nobody" } }));
    desk.discord.fail("GET", "after=", Fault::Before(503));
    desk.listen();
    desk.until("it is connected", || desk.discord.is_connected().then_some(())).await;
    desk.discord.say("last");
    let texts = desk.heard_texts(122).await;
    assert_eq!((&*texts[0], &*texts[1], &*texts[120]), ("one", "offline 0", "offline 119"));
    // A message that is both delivered and fetched is handled once.
    desk.discord.say("the very last");
    let texts = desk.heard_texts(123).await;
    assert_eq!((texts.len(), &*texts[121], &*texts[122]), (123, "last", "the very last"));
    desk.no_problems();
}

#[tokio::test]
async fn the_very_first_message_may_be_written_while_nobody_listens() {
    let mut desk = Desk::answering(|_| Response::Text("Heard.".into()));
    desk.discord.say("before the bot was started for the first time");
    desk.listen();
    desk.until("it has looked what there is", || desk.service.last.lock().unwrap().clone()).await;
    desk.start_again().await;
    desk.discord.say("first");
    desk.listen();
    assert_eq!(desk.heard_texts(1).await, ["first"]);
    desk.no_problems();
    // The same with an empty conversation.
    let mut desk = Desk::answering(|_| Response::Text("Heard.".into())).connected().await;
    desk.until("it has looked what there is", || desk.service.last.lock().unwrap().clone()).await;
    desk.start_again().await;
    desk.discord.say("first");
    desk.listen();
    assert_eq!(desk.heard_texts(1).await, ["first"]);
    desk.no_problems();
}

#[tokio::test]
async fn a_connection_that_is_cut_closed_or_moved_is_resumed() {
    let desk = Desk::answering(|_| Response::Text("Heard.".into())).connected().await;
    type End = fn(&stub::Discord);
    let ends: [End; 3] = [stub::Discord::cut, stub::Discord::reconnect, |discord| discord.close(4000)];
    for (n, end) in ends.into_iter().enumerate() {
        let (_, resumed, _) = desk.discord.connections();
        end(&desk.discord);
        desk.discord.say(&format!("{n}"));
        desk.heard_texts(n + 1).await;
        desk.until("it resumed", || (desk.discord.connections().1 > resumed).then_some(())).await;
    }
    assert_eq!(desk.heard_texts(3).await, ["0", "1", "2"]);
    assert_eq!(desk.discord.connections().0, 1, "one identify");
    desk.no_problems();
}

#[tokio::test]
async fn a_session_that_is_over_is_begun_anew_and_the_gap_is_fetched() {
    let desk = Desk::answering(|_| Response::Text("Heard.".into())).connected().await;
    desk.discord.say("one");
    desk.heard_texts(1).await;
    desk.discord.refuse_resume();
    desk.discord.cut();
    desk.discord.forget_session();
    desk.discord.say("two");
    assert_eq!(desk.heard_texts(2).await, ["one", "two"]);
    assert_eq!(desk.discord.connections().0, 2, "a second identify");
    desk.no_problems();
}

#[tokio::test]
async fn a_revoked_token_and_refused_intents_end_it_with_the_reason() {
    for (code, why) in [(4004, "`DISCORD_TOKEN` any more (4004)"), (4014, "hear direct messages (4014)")] {
        let mut desk = Desk::talking();
        desk.discord.refuse(Some(code));
        desk.listen();
        let lost = desk.channel.lost().await;
        assert!(lost.contains(why), "{lost}");
        let refused = desk.send(&message(1, "tea", "Tea.")).await.unwrap_err();
        assert_eq!(refused, NotSent { why: lost, again: false });
        assert_eq!(desk.discord.connections().2, 1, "it does not try again");
    }
    let desk = Desk::talking().connected().await;
    desk.discord.revoke();
    desk.discord.close(4004);
    assert!(desk.channel.lost().await.contains("4004"));
}

#[tokio::test]
async fn strangers_are_told_once_and_never_heard() {
    let desk = Desk::talking().connected().await;
    desk.send(&with_button(5)).await.unwrap();
    let ours = desk.discord.messages()[0]["id"].as_str().unwrap().to_owned();
    let first = desk.discord.write(STRANGER, json!({ "content": "let me in" }));
    desk.until("the stranger is told", || desk.discord.texts().contains(&TO_STRANGERS.to_owned()).then_some(())).await;
    desk.discord.write(STRANGER, json!({ "content": "please" }));
    let pressed = desk.discord.press(STRANGER, &ours, "5:0");
    let count = || desk.service.strangers.lock().unwrap().clone();
    desk.until("they are counted", || (count().len() == 3).then_some(())).await;
    assert_eq!(count(), [STRANGER; 3]);
    assert!(desk.heard().is_empty() && desk.discord.reactions(&first).is_empty());
    assert_eq!(desk.discord.asked(&pressed).first, None);
    assert_eq!(desk.discord.texts().len(), 2, "one line");
    // Messages of bots, including our own, and messages in servers are ignored.
    desk.discord.write(OWNER, json!({ "content": "in a server", "guild_id": "1" }));
    desk.discord.write(OWNER, json!({ "content": "", "type": 6 }));
    desk.discord.say("mine");
    assert_eq!(desk.heard_texts(1).await, ["mine"]);
    desk.no_problems();
}

#[tokio::test]
async fn a_button_is_pressed_and_a_second_click_hears_why_not() {
    let presses = Arc::new(Mutex::new(0));
    let count = Arc::clone(&presses);
    let desk = Desk::answering(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == 1 { Response::Done("Done".into()) } else { Response::Refused("It is done already.".into()) }
    });
    let desk = desk.connected().await;
    let id = desk.send(&with_button(5)).await.unwrap().unwrap();
    let first = desk.discord.press(OWNER, &id, "5:0");
    desk.until("the button is settled", || {
        (desk.discord.messages()[0]["components"][0]["components"][0]["disabled"] == true).then_some(())
    })
    .await;
    let second = desk.discord.press(OWNER, &id, "5:0");
    let answer = desk.until("the second hears", || desk.discord.asked(&second).answers.pop()).await;
    assert_eq!((&answer["content"], &answer["flags"]), (&json!("It is done already."), &json!(68)));
    assert_eq!((desk.discord.asked(&first).first, desk.discord.asked(&second).first), (Some(6), Some(6)));
    assert_eq!(desk.heard(), [Heard::Pressed { button: "5:0".into() }, Heard::Pressed { button: "5:0".into() }]);
    assert_eq!(desk.discord.texts(), ["Tea is ready."]);
    desk.no_problems();
}

#[tokio::test]
async fn what_does_not_fit_into_a_label_is_shown_to_the_one_who_pressed() {
    let outcome =
        format!("question 1 of tea is answered: allowed always\nroutines/tea.md:\n-  - {0}\n+  - {0}", "x".repeat(90));
    let said = outcome.clone();
    let desk = Desk::answering(move |_| Response::Done(said.clone())).connected().await;
    let id = desk.send(&with_button(5)).await.unwrap().unwrap();
    let pressed = desk.discord.press(OWNER, &id, "5:0");
    let answer = desk.until("all of it is shown", || desk.discord.asked(&pressed).answers.pop()).await;
    assert_eq!(answer["content"], format!("```\n{outcome}\n```"));
    assert_eq!(answer["flags"], 68, "nobody else sees it");
    let button = desk.discord.messages()[0]["components"][0]["components"][0].clone();
    assert_eq!(button["label"], "question 1 of tea is answered: allowed always");
    assert_eq!(desk.discord.texts(), ["Tea is ready."]);
    desk.no_problems();
}

#[tokio::test]
async fn commands_are_offered_and_answered_for_the_one_who_asked() {
    let long = "morning-mail   09:00  completed\n".repeat(500);
    let desk = Desk::answering(move |heard| match heard {
        Heard::Asked { command, .. } if command == "runs" => Response::Text(long.clone()),
        Heard::Asked { command, argument } => Response::Text(format!("{command} {argument:?}")),
        other => panic!("{other:?}"),
    });
    let desk = desk.connected().await;
    desk.until("the commands are told", || desk.discord.commands().as_array().map(drop)).await;
    let commands = desk.discord.commands();
    assert_eq!(commands.as_array().unwrap().len(), crate::channel::commands::COMMANDS.len());
    let fire = desk.discord.ask("fire", Some(("job", " morning-mail ")));
    let runs = desk.discord.ask("runs", None);
    let answer = desk.until("it is answered", || desk.discord.asked(&fire).answers.pop()).await;
    assert_eq!(answer["content"], "fire Some(\"morning-mail\")");
    assert_eq!(desk.discord.asked(&fire).first, Some(5));
    let answers = desk.until("all is shown", || {
        let answers = desk.discord.asked(&runs).answers;
        (answers.len() == 5).then_some(answers)
    });
    let answers = answers.await;
    assert!(answers[..4].iter().all(|one| one["content"].as_str().unwrap().starts_with("```\nmorning-mail")));
    assert!(answers[4]["content"].as_str().unwrap().contains("too long for Discord"));
    assert_eq!(desk.discord.texts(), [""; 0], "nobody else sees it");
    desk.no_problems();
}

#[tokio::test]
async fn an_interaction_that_is_heard_too_late_is_answered_by_a_message() {
    let mut desk = Desk::answering(|_| Response::Text("All is well.".into())).connected().await;
    desk.discord.fail("POST", "/callback", Fault::Before(404));
    desk.discord.ask("status", None);
    desk.until("the answer is there", || desk.discord.texts().pop().filter(|text| text == "All is well.")).await;
    desk.hang_up().await;
    desk.no_problems();
}

#[tokio::test]
async fn files_quotes_and_replies_come_with_a_message() {
    let desk = Desk::answering(|_| Response::Refused("Not now.".into())).connected().await;
    let ours = desk.send(&message(5, "tea", "Tea is ready.")).await.unwrap().unwrap();
    let small = desk.discord.file("notes.txt", b"Buy milk.".to_vec(), 9);
    let large = desk.discord.file("film.mp4", Vec::new(), 26 * 1024 * 1024);
    let gone = json!({ "id": "1", "filename": "gone.txt", "size": 3, "url": "http://127.0.0.1:1/gone.txt" });
    desk.discord.write(
        OWNER,
        json!({
            "content": "Look at these", "type": 19, "attachments": [small, large, gone],
            "message_reference": { "type": 0, "message_id": ours, "channel_id": "1" },
            "referenced_message": desk.discord.messages()[0], "sticker_items": [{ "id": "1", "name": "wave", "format_type": 1 }],
        }),
    );
    desk.until("it is heard", || (!desk.heard().is_empty()).then_some(())).await;
    let Heard::Said(said) = desk.heard().remove(0) else { panic!() };
    assert_eq!(said.text, "Look at these\n(a sticker: wave)");
    assert_eq!((said.reply_to, said.quoted.as_deref()), (Some(ours), Some("Tea is ready.")));
    assert_eq!(said.files[0].content, Ok(b"Buy milk.".to_vec()));
    assert_eq!(said.files[1].content, Err("it is larger than 25 MB".into()));
    assert!(said.files[2].content.as_ref().unwrap_err().starts_with("it cannot be fetched: "));
    desk.until("it is answered", || desk.discord.texts().contains(&"Not now.".to_owned()).then_some(())).await;
    desk.discord.write(
        OWNER,
        json!({ "message_reference": { "type": 1, "message_id": "5" }, "message_snapshots": [{ "message": { "content": "News." } }] }),
    );
    desk.until("it is heard", || (desk.heard().len() == 2).then_some(())).await;
    let Heard::Said(said) = desk.heard().remove(1) else { panic!() };
    assert_eq!((said.reply_to, said.quoted.as_deref()), (None, Some("News.")));
    desk.no_problems();
}

#[tokio::test]
async fn what_a_killed_service_has_left_is_tidied() {
    let mut desk = Desk::talking().connected().await;
    let said = desk.discord.say("Hello");
    desk.until("it is seen", || (!desk.discord.reactions(&said).is_empty()).then_some(())).await;
    desk.heard_texts(1).await;
    desk.start_again().await;
    assert_eq!(desk.discord.reactions(&said).len(), 1);
    desk.service.turns.lock().unwrap().clear();
    desk.listen();
    // The turn is still running and is shown to its end.
    let turn = desk.turn().await;
    desk.until("it is seen again", || (desk.discord.requests("PUT", "/reactions/").len() == 2).then_some(())).await;
    turn.send(Progress::Ended { completed: true }).unwrap();
    desk.until("it is tidied", || desk.discord.reactions(&said).is_empty().then_some(())).await;
    desk.no_problems();
}

#[tokio::test]
async fn nobody_is_heard_before_the_owner_is_known() {
    let mut desk = Desk::answering(|_| Response::Text("Heard.".into()));
    desk.discord.fail("GET", "applications/@me", Fault::Before(500));
    desk.discord.fail("GET", "applications/@me", Fault::Before(500));
    desk.listen();
    desk.until("it was asked", || (desk.discord.requests("GET", "applications/@me").len() == 2).then_some(())).await;
    assert!(!desk.discord.is_connected());
    desk.until("it is connected", || desk.discord.is_connected().then_some(())).await;
    desk.discord.say("Hello");
    assert_eq!(desk.heard_texts(1).await, ["Hello"]);
}

#[tokio::test]
async fn the_owner_may_be_somebody_else_than_the_application_says() {
    let desk = Desk::talking();
    for (application, owner) in [
        (json!({ "id": "1", "owner": { "id": OWNER } }), Some(OWNER)),
        (json!({ "id": "1", "owner": { "id": "5" }, "team": { "owner_user_id": STRANGER } }), Some(STRANGER)),
        (json!({ "id": "1" }), None),
    ] {
        let application: incoming::Application = serde_json::from_value::<incoming::Application>(application).unwrap();
        assert_eq!(application.owner().map(|id| id.to_string()).as_deref(), owner);
    }
    let settings = DiscordChannel { owner: Some(STRANGER.into()), api: Some(desk.discord.url()) };
    let channel = Discord::new(settings, Some(TOKEN.into()));
    channel.send(&message(1, "tea", "Tea."), &mut Sent::default()).await.unwrap();
    let asked: Vec<Value> =
        desk.discord.requests("POST", "users/@me/channels").into_iter().map(|one| one.body).collect();
    assert_eq!(asked, [json!({ "recipient_id": STRANGER })]);
}
