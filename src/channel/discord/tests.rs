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
use crate::channel::incoming::STRANGER_REPLY;
use crate::channel::{Deaf, IncomingEvent, IncomingHandler, IncomingMessage, OutgoingButton, Progress, Response};
use crate::definition::{DefinitionId, Urgency};
use crate::journal::RichContent;
use stub::{Fault, OWNER, STRANGER, TOKEN};

type Answer = dyn Fn(&IncomingEvent) -> Response + Send + Sync;

/// A service that records its input and gives scripted answers.
struct Service {
    answer: Box<Answer>,
    heard: Mutex<Vec<IncomingEvent>>,
    strangers: Mutex<Vec<String>>,
    last: Mutex<Option<String>>,
    turns: Mutex<HashMap<DefinitionId, UnboundedSender<Progress>>>,
    /// The status message of each turn.
    shown: Mutex<HashMap<DefinitionId, String>>,
    kept: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl IncomingHandler for Service {
    async fn receive(&self, channel: &str, heard: IncomingEvent) -> Response {
        assert_eq!(channel, "discord");
        let response = (self.answer)(&heard);
        self.heard.lock().unwrap().push(heard);
        response
    }

    async fn record_stranger(&self, _channel: &str, by: &str, _has_owner: bool) -> bool {
        let mut strangers = self.strangers.lock().unwrap();
        strangers.push(by.to_owned());
        strangers.len() == 1
    }

    async fn not_taken(&self, _channel: &str) {}

    async fn deaf(&self, _channel: &str, _deaf: Deaf) {}

    async fn hears(&self, _channel: &str) {}

    fn follow(&self, turn: DefinitionId) -> UnboundedReceiver<Progress> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.turns.lock().unwrap().insert(turn, sender);
        receiver
    }

    async fn set_cursor(&self, _channel: &str, last: String) {
        *self.last.lock().unwrap() = Some(last);
    }

    async fn cursor(&self, _channel: &str) -> Option<String> {
        self.last.lock().unwrap().clone()
    }

    async fn set_status(&self, _channel: &str, turn: &DefinitionId, message: String) {
        self.shown.lock().unwrap().insert(turn.clone(), message);
    }

    async fn status(&self, _channel: &str, turn: &DefinitionId) -> Option<String> {
        self.shown.lock().unwrap().get(turn).cloned()
    }

    async fn sent_message(&self, _channel: &str, _message: &str) -> Option<Outgoing> {
        None
    }

    async fn store(&self, _channel: &str, name: &str, what: String) -> bool {
        self.kept.lock().unwrap().insert(name.to_owned(), what);
        true
    }

    async fn stored(&self, _channel: &str) -> Vec<(String, String)> {
        self.kept.lock().unwrap().clone().into_iter().collect()
    }

    async fn discard(&self, _channel: &str, name: &str) {
        self.kept.lock().unwrap().remove(name);
    }
}

/// A channel that can listen, with both stubs.
struct Fixture {
    discord: stub::Discord,
    channel: Arc<Discord>,
    service: Arc<Service>,
    listening: Option<JoinHandle<()>>,
}

impl Fixture {
    fn answering(answer: impl Fn(&IncomingEvent) -> Response + Send + Sync + 'static) -> Self {
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
        let (channel, inbound) = (Arc::clone(&self.channel), Inbound::new("discord".into(), self.service.clone()));
        self.listening = Some(tokio::spawn(async move { channel.listen(inbound).await }));
    }

    /// The same, while later messages wait at most so long for the files of a message.
    fn with_patience(mut self, patience: Duration) -> Self {
        self.channel = Arc::new(patient(&self.discord, patience));
        self
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

    async fn send(&self, message: &Outgoing) -> Result<Option<String>, SendError> {
        self.channel.send(message, &mut SentParts::default()).await
    }

    fn heard(&self) -> Vec<IncomingEvent> {
        self.service.heard.lock().unwrap().clone()
    }

    async fn heard_texts(&self, count: usize) -> Vec<String> {
        self.until("so many messages are heard", || (self.heard().len() >= count).then_some(())).await;
        let text = |heard: &IncomingEvent| match heard {
            IncomingEvent::Message(said) => said.text.clone(),
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

fn patient(discord: &stub::Discord, patience: Duration) -> Discord {
    let mut channel = channel(discord);
    Arc::get_mut(&mut channel.inner).unwrap().patience = patience;
    channel
}

fn message(number: i64, job: &str, text: &str) -> Outgoing {
    Outgoing {
        job: Some(DefinitionId::new(job)),
        answers: Some(DefinitionId::new(job)).filter(DefinitionId::is_turn),
        ..Outgoing::plain(number, "2026-11-23T12:00:00Z".parse().unwrap(), text)
    }
}

fn with_button(number: i64) -> Outgoing {
    let buttons = vec![OutgoingButton { id: format!("{number}:0"), label: "Done".into() }];
    Outgoing { buttons, ..message(number, "tea", "Tea is ready.") }
}

fn is_retryable(sent: Result<Option<String>, SendError>) -> bool {
    sent.unwrap_err().retryable
}

// ---- Sending.

#[tokio::test]
async fn a_message_is_sent_once_whatever_the_answer_was() {
    let fixture = Fixture::talking();
    fixture.discord.fail("POST", "/messages", Fault::After(500));
    fixture.discord.fail("POST", "/messages", Fault::Limited(0.1));
    let tea = message(7, "tea", "Tea is ready.\u{7}");
    assert!(is_retryable(fixture.send(&tea).await));
    let id = fixture.send(&tea).await.unwrap().unwrap();
    assert_eq!(fixture.discord.texts(), ["Tea is ready."]);
    assert_eq!(fixture.discord.messages()[0]["id"], *id);
    // The service was killed before it could record the delivery.
    assert_eq!(channel(&fixture.discord).send(&tea, &mut SentParts::default()).await.unwrap(), Some(id));
    assert_eq!(fixture.discord.texts().len(), 1);
    fixture.no_problems();
}

#[tokio::test]
async fn a_message_of_low_urgency_notifies_nobody() {
    let fixture = Fixture::talking();
    let rich = RichContent { title: "Tea".into(), description: "It is ready.".into(), ..RichContent::default() };
    let low = Outgoing { urgency: Urgency::Low, ..message(7, "tea", "Tea is ready.") };
    let card = Outgoing { rich: Some(rich), ..Outgoing { number: 8, ..low.clone() } };
    for message in [&low, &card, &message(9, "tea", "Tea is cold.")] {
        fixture.send(message).await.unwrap();
    }
    let flags: Vec<Value> = fixture.discord.messages().iter().map(|message| message["flags"].clone()).collect();
    assert_eq!(flags, [4096 + 4, 4096, 4]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_long_message_is_several_and_each_is_sent_once() {
    let fixture = Fixture::talking();
    let text = format!("Look:\n```rust\n{}\n```\n{}", "let tea = 1;\n".repeat(300), "word ".repeat(1220));
    assert!(text.len() >= 10_000);
    let long = message(8, "tea", &text);
    let id = fixture.send(&long).await.unwrap().unwrap();
    let texts = fixture.discord.texts();
    assert!(texts.len() > 5 && texts.len() < 9, "{}", texts.len());
    for text in &texts {
        assert!(text.matches("```").count().is_multiple_of(2), "{text}");
    }
    assert_eq!(texts.concat().matches("let tea = 1;").count(), 300);
    let parts: Vec<String> =
        fixture.discord.messages().iter().map(|part| part["id"].as_str().unwrap().to_owned()).collect();
    assert!(
        id.split(' ').all(|part| parts.iter().any(|sent| sent == part)) && id.split(' ').count() == texts.len(),
        "{id}"
    );
    assert_eq!(channel(&fixture.discord).send(&long, &mut SentParts::default()).await.unwrap(), Some(id));
    assert_eq!(fixture.discord.texts().len(), texts.len());
    fixture.no_problems();
}

#[tokio::test]
async fn what_was_sent_of_a_long_message_is_not_sent_again() {
    let fixture = Fixture::talking();
    let long = message(8, "tea", &"word ".repeat(900));
    fixture.discord.fail_after(1, "POST", "/messages", Fault::Before(500));
    let mut sent = SentParts::default();
    assert!(is_retryable(fixture.channel.send(&long, &mut sent).await));
    assert_eq!(fixture.discord.texts().len(), 1);
    // Discord has forgotten the nonces by now.
    fixture.discord.forget_nonces();
    fixture.channel.send(&long, &mut sent).await.unwrap();
    assert_eq!(fixture.discord.texts().len(), 3);
    fixture.no_problems();
}

#[tokio::test]
async fn an_embed_shows_title_fields_and_buttons_and_is_settled() {
    let fixture = Fixture::talking();
    let rich = RichContent {
        title: "Build".into(),
        description: "It is green: https://example.org @everyone".into(),
        color: Some(0x2e_cc71),
        fields: vec![("branch".into(), "main".into())],
        buttons: Vec::new(),
        footer: "from ci".into(),
    };
    let build = Outgoing { rich: Some(rich), ..with_button(9) };
    let id = fixture.send(&build).await.unwrap().unwrap();
    let shown = fixture.discord.messages().remove(0);
    assert_eq!(shown["embeds"][0]["fields"], json!([{ "name": "branch", "value": "main" }]));
    assert_eq!(shown["components"][0]["components"][0]["custom_id"], "9:0");
    // After a restart another channel object settles the message.
    channel(&fixture.discord).remove_buttons(&id, &build, "Done at 12:00").await.unwrap();
    let shown = fixture.discord.messages().remove(0);
    let button = &shown["components"][0]["components"][0];
    assert_eq!((&button["label"], &button["disabled"]), (&json!("Done at 12:00"), &json!(true)));
    assert_eq!(shown["embeds"][0]["title"], "Build");
    fixture.channel.remove_buttons("123", &build, "gone").await.unwrap();
    fixture.channel.remove_buttons("an id of ntfy", &build, "gone").await.unwrap();
    fixture.no_problems();
}

#[tokio::test]
async fn a_token_that_is_missing_or_refused_is_told_for_good() {
    let fixture = Fixture::talking();
    let settings = DiscordChannel { owner: None, api: Some(fixture.discord.url()) };
    let without = Discord::new(settings.clone(), None);
    assert!(without.permanent_failure().await.contains("`DISCORD_TOKEN` is not set"));
    assert!(!is_retryable(without.send(&message(1, "tea", "Tea."), &mut SentParts::default()).await));
    let wrong = Discord::new(settings, Some("wrong".into()));
    let refused = wrong.send(&message(1, "tea", "Tea."), &mut SentParts::default()).await.unwrap_err();
    assert!(!refused.retryable && refused.why.contains("does not accept `DISCORD_TOKEN`"), "{refused:?}");
    assert_eq!(fixture.discord.texts(), [""; 0]);
}

#[tokio::test]
async fn too_many_requests_without_a_wait_are_given_up() {
    let fixture = Fixture::talking();
    for _ in 0..10 {
        fixture.discord.fail("POST", "/messages", Fault::Before(429));
    }
    assert!(is_retryable(fixture.send(&message(1, "tea", "Tea.")).await));
    assert_eq!(fixture.discord.requests("POST", "/messages").len(), 4);
}

// ---- Hearing.

#[tokio::test]
async fn a_message_is_seen_answered_as_it_goes_and_becomes_the_answer() {
    let fixture = Fixture::talking().connected().await;
    let said = fixture.discord.say("What is on today?");
    let turn = fixture.turn().await;
    fixture.until("it is seen", || (!fixture.discord.reactions(&said).is_empty()).then_some(())).await;
    let shows = async |what: &str| {
        fixture.until(what, || fixture.discord.texts().first().filter(|text| text.contains(what)).cloned()).await
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
    assert_eq!(fixture.discord.messages()[0]["components"], json!([{ "type": 1, "components": [&interrupt] }]));
    // A question is a separate message. The status message continues.
    fixture.send(&Outgoing { answers: None, ..message(2, "chat-1", "May I?") }).await.unwrap();
    turn.send(Progress::Call { label: "Bash ls".into() }).unwrap();
    shows("-# Bash ls, ").await;
    assert_eq!(fixture.discord.messages()[0]["components"], json!([{ "type": 1, "components": [interrupt] }]));
    turn.send(Progress::Ended { completed: false }).unwrap();
    let answer = message(3, "chat-1", "Nothing is on today.");
    let id = fixture.send(&answer).await.unwrap().unwrap();
    assert_eq!(fixture.discord.texts(), ["Nothing is on today.", "May I?"], "it is the same message");
    let shown = fixture.discord.messages().remove(0);
    assert_eq!(shown["components"], json!([]), "its button is gone");
    assert_eq!(shown["message_reference"]["message_id"], said, "it answers what was said");
    assert_eq!(fixture.discord.messages()[0]["id"], *id);
    fixture.until("the reaction is gone", || fixture.discord.reactions(&said).is_empty().then_some(())).await;
    assert!(!fixture.discord.requests("POST", "/typing").is_empty());
    let expect = IncomingMessage { id: Some(said), text: "What is on today?".into(), ..IncomingMessage::default() };
    assert_eq!(fixture.heard(), [IncomingEvent::Message(expect)]);
    // A further message of the turn is separate.
    fixture.send(&message(4, "chat-1", "By the way.")).await.unwrap();
    assert_eq!(fixture.discord.texts(), ["Nothing is on today.", "May I?", "By the way."]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_turn_without_an_answer_leaves_no_button() {
    let turn_id = DefinitionId::new("chat-1");
    for (seen, left) in [(None, vec![]), (Some("It is"), vec!["It is\n-# Interrupted, "])] {
        let fixture = Fixture::talking().connected().await;
        let said = fixture.discord.say("Which tea?");
        let turn = fixture.turn().await;
        fixture.until("it is shown", || fixture.discord.texts().pop()).await;
        if let Some(text) = seen {
            turn.send(Progress::Text(text.into())).unwrap();
        }
        turn.send(Progress::Ended { completed: false }).unwrap();
        fixture.until("it is followed no more", || fixture.discord.reactions(&said).is_empty().then_some(())).await;
        let message = fixture.service.shown.lock().unwrap()[&turn_id].clone();
        fixture.channel.remove_status(&turn_id, &message).await.unwrap();
        let texts = fixture.discord.texts();
        let fits = texts.iter().zip(&left).all(|(text, left)| text.starts_with(left) && text.ends_with(" s"));
        assert!(texts.len() == left.len() && fits, "{texts:?}");
        assert!(fixture.discord.messages().iter().all(|message| message["components"] == json!([])));
        // The message is hidden already, by a channel object that did not post it.
        fixture.channel.remove_status(&turn_id, &message).await.unwrap();
        channel(&fixture.discord).remove_status(&turn_id, &message).await.unwrap();
        assert_eq!(fixture.discord.texts(), [""; 0]);
        fixture.no_problems();
    }
}

#[tokio::test]
async fn an_answer_takes_the_place_of_what_an_earlier_process_has_shown_and_the_next_one_does_not() {
    let fixture = Fixture::talking().connected().await;
    fixture.discord.say("Hello");
    let _turn = fixture.turn().await;
    let shown = || fixture.service.shown.lock().unwrap().get(&DefinitionId::new("chat-1")).cloned();
    let shown = fixture.until("it is shown, and recorded", shown).await;
    let recorded = || SentParts::after(shown.clone());
    // Discord has forgotten the nonce by now.
    fixture.discord.forget_nonces();
    let later = channel(&fixture.discord);
    for text in ["Good morning.", "By the way."] {
        later.send(&message(3, "chat-1", text), &mut recorded()).await.unwrap();
    }
    assert_eq!(fixture.discord.texts(), ["Good morning.", "By the way."]);
    fixture.no_problems();
}

#[tokio::test]
async fn fewer_edits_do_not_change_the_answer() {
    let fixture = Fixture::talking().connected().await;
    fixture.discord.say("Write.");
    let turn = fixture.turn().await;
    for _ in 0..3 {
        fixture.discord.fail("PATCH", "/messages/", Fault::Limited(0.2));
    }
    fixture.discord.fail("POST", "/messages", Fault::Before(502));
    for n in 0..200 {
        turn.send(Progress::Text(format!("{n} "))).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.until("it was edited", || (fixture.discord.requests("PATCH", "/messages/").len() > 3).then_some(())).await;
    let whole: String = (0..200).map(|n| format!("{n} ")).collect();
    fixture.send(&message(3, "chat-1", &whole)).await.unwrap();
    turn.send(Progress::Ended { completed: false }).unwrap();
    assert_eq!(fixture.discord.texts(), [whole.trim()]);
    assert!(fixture.discord.requests("PATCH", "/messages/").len() < 20, "not an edit for each word");
    fixture.no_problems();
}

#[tokio::test]
async fn an_answer_that_was_not_seen_before_says_what_it_answers() {
    let fixture = Fixture::talking();
    let answer = Outgoing { reply_to: Some("17".into()), ..message(3, "chat-discord-17", &"word ".repeat(900)) };
    fixture.send(&answer).await.unwrap();
    let answered: Vec<Value> =
        fixture.discord.messages().iter().map(|part| part["message_reference"]["message_id"].clone()).collect();
    assert_eq!(answered, [json!("17"), Value::Null, Value::Null]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_turn_whose_message_was_removed_is_answered() {
    let fixture = Fixture::answering(|_| Response::Turn(DefinitionId::new("chat-1"))).connected().await;
    fixture.discord.say("Hello");
    let turn = fixture.turn().await;
    fixture.until("it is shown", || fixture.discord.texts().pop()).await;
    fixture.discord.remove_all();
    let sent = fixture.send(&message(3, "chat-1", &"word ".repeat(900))).await.unwrap();
    assert!(sent.is_some() && fixture.discord.texts().len() == 3, "{:?}", fixture.discord.texts());
    drop(turn);
    fixture.no_problems();
}

#[tokio::test]
async fn an_answer_that_is_faster_than_the_turn_is_shown_is_not_followed_by_a_status() {
    let fixture = Fixture::talking().connected().await;
    let answer = message(3, "chat-1", "Good morning.");
    fixture.send(&answer).await.unwrap();
    let said = fixture.discord.say("Hello");
    let _turn = fixture.turn().await;
    // The channel gets no event that the turn ended.
    fixture.until("it was seen", || (!fixture.discord.requests("PUT", "/reactions/").is_empty()).then_some(())).await;
    fixture.until("the reaction is gone", || fixture.discord.reactions(&said).is_empty().then_some(())).await;
    assert_eq!(fixture.discord.texts(), ["Good morning."]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_service_that_is_killed_in_a_turn_leaves_no_second_answer() {
    for sent_before in [false, true] {
        let mut fixture = Fixture::talking().connected().await;
        fixture.discord.say("Hello");
        let turn = fixture.turn().await;
        fixture.until("it is shown", || fixture.discord.texts().pop()).await;
        let answer = message(3, "chat-1", "Good morning.");
        if sent_before {
            fixture.send(&answer).await.unwrap();
        }
        fixture.start_again().await;
        fixture.send(&answer).await.unwrap();
        assert_eq!(fixture.discord.texts(), ["Good morning."], "{sent_before}");
        drop(turn);
        fixture.no_problems();
    }
}

#[tokio::test]
async fn what_is_written_while_nobody_listens_is_heard_once_and_in_order() {
    let mut fixture = Fixture::answering(|_| Response::Text("Heard.".into())).connected().await;
    fixture.discord.say("one");
    fixture.heard_texts(1).await;
    fixture.start_again().await;
    for n in 0..120 {
        fixture.discord.say(&format!("offline {n}"));
    }
    fixture.discord.write(STRANGER, json!({ "content": "let me in" }));
    fixture.discord.write(OWNER, json!({ "content": "odd", "author": { "id": "nobody" } }));
    fixture.discord.fail("GET", "after=", Fault::Before(503));
    fixture.listen();
    fixture.until("it is connected", || fixture.discord.is_connected().then_some(())).await;
    fixture.discord.say("last");
    let texts = fixture.heard_texts(122).await;
    assert_eq!((&*texts[0], &*texts[1], &*texts[120]), ("one", "offline 0", "offline 119"));
    // A message that is both delivered and fetched is handled once.
    fixture.discord.say("the very last");
    let texts = fixture.heard_texts(123).await;
    assert_eq!((texts.len(), &*texts[121], &*texts[122]), (123, "last", "the very last"));
    fixture.no_problems();
}

#[tokio::test]
async fn the_very_first_message_may_be_written_while_nobody_listens() {
    let mut fixture = Fixture::answering(|_| Response::Text("Heard.".into()));
    fixture.discord.say("before the bot was started for the first time");
    fixture.listen();
    fixture.until("it has looked what there is", || fixture.service.last.lock().unwrap().clone()).await;
    fixture.start_again().await;
    fixture.discord.say("first");
    fixture.listen();
    assert_eq!(fixture.heard_texts(1).await, ["first"]);
    fixture.no_problems();
    // The same with an empty conversation.
    let mut fixture = Fixture::answering(|_| Response::Text("Heard.".into())).connected().await;
    fixture.until("it has looked what there is", || fixture.service.last.lock().unwrap().clone()).await;
    fixture.start_again().await;
    fixture.discord.say("first");
    fixture.listen();
    assert_eq!(fixture.heard_texts(1).await, ["first"]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_connection_that_is_cut_closed_or_moved_is_resumed() {
    let fixture = Fixture::answering(|_| Response::Text("Heard.".into())).connected().await;
    type End = fn(&stub::Discord);
    let ends: [End; 3] = [stub::Discord::cut, stub::Discord::reconnect, |discord| discord.close(4000)];
    for (n, end) in ends.into_iter().enumerate() {
        let (_, resumed, _) = fixture.discord.connections();
        end(&fixture.discord);
        fixture.discord.say(&format!("{n}"));
        fixture.heard_texts(n + 1).await;
        fixture.until("it resumed", || (fixture.discord.connections().1 > resumed).then_some(())).await;
    }
    assert_eq!(fixture.heard_texts(3).await, ["0", "1", "2"]);
    assert_eq!(fixture.discord.connections().0, 1, "one identify");
    fixture.no_problems();
}

#[tokio::test]
async fn a_session_that_is_over_is_begun_anew_and_the_gap_is_fetched() {
    let fixture = Fixture::answering(|_| Response::Text("Heard.".into())).connected().await;
    fixture.discord.say("one");
    fixture.heard_texts(1).await;
    fixture.discord.refuse_resume();
    fixture.discord.cut();
    fixture.discord.forget_session();
    fixture.discord.say("two");
    assert_eq!(fixture.heard_texts(2).await, ["one", "two"]);
    assert_eq!(fixture.discord.connections().0, 2, "a second identify");
    fixture.no_problems();
}

#[tokio::test]
async fn a_revoked_token_and_refused_intents_end_it_with_the_reason() {
    for (code, why) in [(4004, "`DISCORD_TOKEN` any more (4004)"), (4014, "hear direct messages (4014)")] {
        let mut fixture = Fixture::talking();
        fixture.discord.refuse(Some(code));
        fixture.listen();
        let lost = fixture.channel.permanent_failure().await;
        assert!(lost.contains(why), "{lost}");
        let refused = fixture.send(&message(1, "tea", "Tea.")).await.unwrap_err();
        assert_eq!(refused, SendError { why: lost, retryable: false });
        assert_eq!(fixture.discord.connections().2, 1, "it does not try again");
    }
    let fixture = Fixture::talking().connected().await;
    fixture.discord.revoke();
    fixture.discord.close(4004);
    assert!(fixture.channel.permanent_failure().await.contains("4004"));
}

#[tokio::test]
async fn strangers_are_told_once_and_never_heard() {
    let fixture = Fixture::talking().connected().await;
    fixture.send(&with_button(5)).await.unwrap();
    let ours = fixture.discord.messages()[0]["id"].as_str().unwrap().to_owned();
    let first = fixture.discord.write(STRANGER, json!({ "content": "let me in" }));
    fixture
        .until("the stranger is told", || fixture.discord.texts().contains(&STRANGER_REPLY.to_owned()).then_some(()))
        .await;
    fixture.discord.write(STRANGER, json!({ "content": "please" }));
    let pressed = fixture.discord.press(STRANGER, &ours, "5:0");
    let count = || fixture.service.strangers.lock().unwrap().clone();
    fixture.until("they are counted", || (count().len() == 3).then_some(())).await;
    assert_eq!(count(), [STRANGER; 3]);
    assert!(fixture.heard().is_empty() && fixture.discord.reactions(&first).is_empty());
    assert_eq!(fixture.discord.asked(&pressed).first, None);
    assert_eq!(fixture.discord.texts().len(), 2, "one line");
    // Messages of bots, including our own, and messages in servers are ignored.
    fixture.discord.write(OWNER, json!({ "content": "in a server", "guild_id": "1" }));
    fixture.discord.write(OWNER, json!({ "content": "", "type": 6 }));
    fixture.discord.say("mine");
    assert_eq!(fixture.heard_texts(1).await, ["mine"]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_button_is_pressed_and_a_second_click_hears_why_not() {
    let presses = Arc::new(Mutex::new(0));
    let count = Arc::clone(&presses);
    let fixture = Fixture::answering(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == 1 { Response::Done("Done".into()) } else { Response::Refused("It is done already.".into()) }
    });
    let fixture = fixture.connected().await;
    let id = fixture.send(&with_button(5)).await.unwrap().unwrap();
    let first = fixture.discord.press(OWNER, &id, "5:0");
    fixture
        .until("the button is settled", || {
            (fixture.discord.messages()[0]["components"][0]["components"][0]["disabled"] == true).then_some(())
        })
        .await;
    let second = fixture.discord.press(OWNER, &id, "5:0");
    let answer = fixture.until("the second hears", || fixture.discord.asked(&second).answers.pop()).await;
    assert_eq!((&answer["content"], &answer["flags"]), (&json!("It is done already."), &json!(68)));
    assert_eq!((fixture.discord.asked(&first).first, fixture.discord.asked(&second).first), (Some(6), Some(6)));
    assert_eq!(
        fixture.heard(),
        [IncomingEvent::Pressed { button: "5:0".into() }, IncomingEvent::Pressed { button: "5:0".into() }]
    );
    assert_eq!(fixture.discord.texts(), ["Tea is ready."]);
    fixture.no_problems();
}

#[tokio::test]
async fn what_does_not_fit_into_a_label_is_shown_to_the_one_who_pressed() {
    let outcome =
        format!("question 1 of tea is answered: allowed always\nroutines/tea.md:\n-  - {0}\n+  - {0}", "x".repeat(90));
    let said = outcome.clone();
    let fixture = Fixture::answering(move |_| Response::Done(said.clone())).connected().await;
    let id = fixture.send(&with_button(5)).await.unwrap().unwrap();
    let pressed = fixture.discord.press(OWNER, &id, "5:0");
    let answer = fixture.until("all of it is shown", || fixture.discord.asked(&pressed).answers.pop()).await;
    assert_eq!(answer["content"], format!("```\n{outcome}\n```"));
    assert_eq!(answer["flags"], 68, "nobody else sees it");
    let button = fixture.discord.messages()[0]["components"][0]["components"][0].clone();
    assert_eq!(button["label"], "question 1 of tea is answered: allowed always");
    assert_eq!(fixture.discord.texts(), ["Tea is ready."]);
    fixture.no_problems();
}

#[tokio::test]
async fn commands_are_offered_and_answered_for_the_one_who_asked() {
    let long = "morning-mail   09:00  completed\n".repeat(500);
    let fixture = Fixture::answering(move |heard| match heard {
        IncomingEvent::Command { command, .. } if command == "runs" => Response::Text(long.clone()),
        IncomingEvent::Command { command, argument, .. } => Response::Text(format!("{command} {argument:?}")),
        other => panic!("{other:?}"),
    });
    let fixture = fixture.connected().await;
    fixture.until("the commands are told", || fixture.discord.commands().as_array().map(drop)).await;
    let commands = fixture.discord.commands();
    assert_eq!(commands.as_array().unwrap().len(), crate::channel::commands::COMMANDS.len());
    let fire = fixture.discord.ask("fire", Some(("job", " morning-mail ")));
    let runs = fixture.discord.ask("runs", None);
    let answer = fixture.until("it is answered", || fixture.discord.asked(&fire).answers.pop()).await;
    assert_eq!(answer["content"], "fire Some(\"morning-mail\")");
    assert_eq!(fixture.discord.asked(&fire).first, Some(5));
    let answers = fixture.until("all is shown", || {
        let answers = fixture.discord.asked(&runs).answers;
        (answers.len() == 5).then_some(answers)
    });
    let answers = answers.await;
    assert!(answers[..4].iter().all(|one| one["content"].as_str().unwrap().starts_with("```\nmorning-mail")));
    assert!(answers[4]["content"].as_str().unwrap().contains("too long for Discord"));
    assert_eq!(fixture.discord.texts(), [""; 0], "nobody else sees it");
    fixture.no_problems();
}

#[tokio::test]
async fn an_interaction_that_is_heard_too_late_is_answered_by_a_message() {
    let mut fixture = Fixture::answering(|_| Response::Text("All is well.".into())).connected().await;
    fixture.discord.fail("POST", "/callback", Fault::Before(404));
    fixture.discord.ask("status", None);
    fixture.until("the answer is there", || fixture.discord.texts().pop().filter(|text| text == "All is well.")).await;
    fixture.hang_up().await;
    fixture.no_problems();
}

#[tokio::test]
async fn files_quotes_and_replies_come_with_a_message() {
    let fixture = Fixture::answering(|_| Response::Refused("Not now.".into())).connected().await;
    let ours = fixture.send(&message(5, "tea", "Tea is ready.")).await.unwrap().unwrap();
    let small = fixture.discord.file("notes.txt", b"Buy milk.".to_vec(), 9);
    let large = fixture.discord.file("film.mp4", Vec::new(), 26 * 1024 * 1024);
    let gone = json!({ "id": "1", "filename": "gone.txt", "size": 3, "url": "http://127.0.0.1:1/gone.txt" });
    fixture.discord.write(
        OWNER,
        json!({
            "content": "Look at these", "type": 19, "attachments": [small, large, gone],
            "message_reference": { "type": 0, "message_id": ours, "channel_id": "1" },
            "referenced_message": fixture.discord.messages()[0], "sticker_items": [{ "id": "1", "name": "wave", "format_type": 1 }],
        }),
    );
    fixture.until("it is heard", || (!fixture.heard().is_empty()).then_some(())).await;
    let IncomingEvent::Message(said) = fixture.heard().remove(0) else { panic!() };
    assert_eq!(said.text, "Look at these\n(a sticker: wave)");
    assert_eq!((said.reply_to, said.quoted.as_deref()), (Some(ours), Some("Tea is ready.")));
    assert_eq!(said.files[0].content, Ok(b"Buy milk.".to_vec()));
    assert_eq!(said.files[1].content, Err("it is larger than 25 MB".into()));
    assert!(said.files[2].content.as_ref().unwrap_err().starts_with("it cannot be fetched: "));
    fixture.until("it is answered", || fixture.discord.texts().contains(&"Not now.".to_owned()).then_some(())).await;
    fixture.discord.write(
        OWNER,
        json!({ "message_reference": { "type": 1, "message_id": "5" }, "message_snapshots": [{ "message": { "content": "News." } }] }),
    );
    fixture.until("it is heard", || (fixture.heard().len() == 2).then_some(())).await;
    let IncomingEvent::Message(said) = fixture.heard().remove(1) else { panic!() };
    assert_eq!((said.reply_to, said.quoted.as_deref()), (None, Some("News.")));
    fixture.no_problems();
}

#[tokio::test]
async fn a_file_of_the_largest_size_is_taken_and_one_byte_more_is_not() {
    const MOST: usize = 25 * 1024 * 1024;
    let fixture = Fixture::answering(|_| Response::Text("Heard.".into())).connected().await;
    // The size that Discord says, and the number of bytes that come.
    let sizes = [(MOST, MOST), (MOST + 1, 1), (1, MOST + 1)];
    let files: Vec<Value> = sizes
        .iter()
        .enumerate()
        .map(|(n, (said, size))| fixture.discord.file(&format!("{n}.bin"), vec![b'a'; *size], *said as u64))
        .collect();
    fixture.discord.write(OWNER, json!({ "attachments": files }));
    fixture.until("it is heard", || (!fixture.heard().is_empty()).then_some(())).await;
    let IncomingEvent::Message(said) = fixture.heard().remove(0) else { panic!() };
    let taken: Vec<Result<usize, String>> =
        said.files.into_iter().map(|file| file.content.map(|content| content.len())).collect();
    let refused = || Err("it is larger than 25 MB".to_owned());
    assert_eq!(taken, [Ok(MOST), refused(), refused()]);
    fixture.no_problems();
}

/// Sends a message with a file whose download hangs. Returns the id of the message.
async fn with_hanging_file(fixture: &Fixture, text: &str) -> String {
    let file = fixture.discord.file("slow.txt", b"Buy milk.".to_vec(), 9);
    fixture.discord.hold("slow.txt");
    let id = fixture.discord.write(OWNER, json!({ "content": text, "attachments": [file] }));
    fixture.until("the file is asked for", || fixture.discord.hangs("slow.txt").then_some(())).await;
    id
}

fn is_waited_for(fixture: &Fixture, id: &str) -> bool {
    fixture.service.kept.lock().unwrap().contains_key(id)
}

#[tokio::test]
async fn a_slow_file_delays_only_its_own_message() {
    let fixture =
        Fixture::answering(|_| Response::Text("Heard.".into())).with_patience(Duration::ZERO).connected().await;
    let slow = with_hanging_file(&fixture, "Look").await;
    fixture.discord.say("later");
    assert_eq!(fixture.heard_texts(1).await, ["later"]);
    fixture.until("it is answered", || fixture.discord.texts().pop()).await;
    assert_eq!(fixture.discord.reactions(&slow).len(), 1, "the other one was seen");
    fixture.discord.release("slow.txt");
    assert_eq!(fixture.heard_texts(2).await, ["later", "Look"]);
    let IncomingEvent::Message(said) = fixture.heard().remove(1) else { panic!() };
    assert_eq!((said.id, &said.files[0].content), (Some(slow.clone()), &Ok(b"Buy milk.".to_vec())));
    fixture.until("the reaction is gone", || fixture.discord.reactions(&slow).is_empty().then_some(())).await;
    assert_eq!(fixture.discord.texts(), ["Heard.", "Heard."]);
    assert!(!is_waited_for(&fixture, &slow));
    fixture.no_problems();
}

#[tokio::test]
async fn a_file_that_comes_soon_leaves_the_messages_in_order() {
    let fixture =
        Fixture::answering(|_| Response::Text("Heard.".into())).with_patience(Duration::MAX).connected().await;
    with_hanging_file(&fixture, "Look").await;
    let later = fixture.discord.say("later");
    fixture.until("it was seen", || (!fixture.discord.reactions(&later).is_empty()).then_some(())).await;
    assert_eq!(fixture.heard(), []);
    fixture.discord.release("slow.txt");
    assert_eq!(fixture.heard_texts(2).await, ["Look", "later"]);
    fixture.no_problems();
}

#[tokio::test]
async fn a_message_whose_file_was_not_there_when_the_service_was_killed_is_heard_once() {
    for before_the_cursor in [false, true] {
        let fixture = Fixture::answering(|_| Response::Text("Heard.".into())).with_patience(Duration::ZERO);
        let mut fixture = fixture.connected().await;
        fixture.discord.say("one");
        fixture.heard_texts(1).await;
        let cursor = || fixture.service.last.lock().unwrap().clone();
        let first = fixture.until("it was marked", cursor).await;
        let slow = with_hanging_file(&fixture, "Look").await;
        fixture.discord.say("later");
        fixture.heard_texts(2).await;
        fixture.start_again().await;
        if before_the_cursor {
            *fixture.service.last.lock().unwrap() = Some(first);
            fixture.service.heard.lock().unwrap().truncate(1);
        }
        assert!(is_waited_for(&fixture, &slow));
        fixture.discord.release("slow.txt");
        fixture.discord.say("last");
        fixture.listen();
        let mut texts = fixture.heard_texts(4).await;
        texts.sort();
        assert_eq!(texts, ["Look", "last", "later", "one"], "{before_the_cursor}");
        fixture.until("it waits no more", || (!is_waited_for(&fixture, &slow)).then_some(())).await;
        fixture.discord.say("the very last");
        assert_eq!(fixture.heard_texts(5).await[4], "the very last", "{before_the_cursor}");
        fixture.until("the reaction is gone", || fixture.discord.reactions(&slow).is_empty().then_some(())).await;
        fixture.no_problems();
    }
}

#[tokio::test]
async fn what_a_killed_service_has_left_is_tidied() {
    let mut fixture = Fixture::talking().connected().await;
    let said = fixture.discord.say("Hello");
    fixture.until("it is seen", || (!fixture.discord.reactions(&said).is_empty()).then_some(())).await;
    fixture.heard_texts(1).await;
    fixture.start_again().await;
    assert_eq!(fixture.discord.reactions(&said).len(), 1);
    fixture.service.turns.lock().unwrap().clear();
    fixture.listen();
    // The turn is still running and is shown to its end.
    let turn = fixture.turn().await;
    fixture
        .until("it is seen again", || (fixture.discord.requests("PUT", "/reactions/").len() == 2).then_some(()))
        .await;
    turn.send(Progress::Ended { completed: true }).unwrap();
    fixture.until("it is tidied", || fixture.discord.reactions(&said).is_empty().then_some(())).await;
    fixture.no_problems();
}

#[tokio::test]
async fn nobody_is_heard_before_the_owner_is_known() {
    let mut fixture = Fixture::answering(|_| Response::Text("Heard.".into()));
    fixture.discord.fail("GET", "applications/@me", Fault::Before(500));
    fixture.discord.fail("GET", "applications/@me", Fault::Before(500));
    fixture.listen();
    fixture
        .until("it was asked", || (fixture.discord.requests("GET", "applications/@me").len() == 2).then_some(()))
        .await;
    assert!(!fixture.discord.is_connected());
    fixture.until("it is connected", || fixture.discord.is_connected().then_some(())).await;
    fixture.discord.say("Hello");
    assert_eq!(fixture.heard_texts(1).await, ["Hello"]);
}

#[tokio::test]
async fn the_owner_may_be_somebody_else_than_the_application_says() {
    let fixture = Fixture::talking();
    for (application, owner) in [
        (json!({ "id": "1", "owner": { "id": OWNER } }), Some(OWNER)),
        (json!({ "id": "1", "owner": { "id": "5" }, "team": { "owner_user_id": STRANGER } }), Some(STRANGER)),
        (json!({ "id": "1" }), None),
    ] {
        let application: incoming::Application = serde_json::from_value::<incoming::Application>(application).unwrap();
        assert_eq!(application.owner().map(|id| id.to_string()).as_deref(), owner);
    }
    let settings = DiscordChannel { owner: Some(STRANGER.into()), api: Some(fixture.discord.url()) };
    let channel = Discord::new(settings, Some(TOKEN.into()));
    channel.send(&message(1, "tea", "Tea."), &mut SentParts::default()).await.unwrap();
    let asked: Vec<Value> =
        fixture.discord.requests("POST", "users/@me/channels").into_iter().map(|one| one.body).collect();
    assert_eq!(asked, [json!({ "recipient_id": STRANGER })]);
}
