//! Tests of delivery by scripted channels, in simulated time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Channel, Deliveries, OpenChats, Outgoing, SendError, SentParts};
use crate::clock::Clock;
use crate::config::Config;
use crate::definition::{DefinitionId, Urgency};
use crate::journal::{
    DeliveryState, Journal, JournalReader, Message, NewMessage, NewQuestion, Question, QuestionEnd, RichContent, RunId,
    Subject, testing,
};

/// The failures of a channel's next messages, in order. Later messages succeed.
#[derive(Default)]
struct Script {
    answers: Vec<SendError>,
    sent: Vec<String>,
    /// Number of buttons of each sent message.
    buttons: Vec<usize>,
}

struct Scripted(Arc<Mutex<Script>>);

#[async_trait]
impl Channel for Scripted {
    async fn send(&self, message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        let mut script = self.0.lock().unwrap();
        if !script.answers.is_empty() {
            return Err(script.answers.remove(0));
        }
        script.sent.push(message.text.clone());
        script.buttons.push(message.buttons.len());
        Ok(Some(format!("id-{}", message.number)))
    }
}

struct Fixture {
    folder: TempDir,
    journal: Journal,
    clock: Clock,
    settings: watch::Sender<Arc<Config>>,
    scripts: BTreeMap<String, Arc<Mutex<Script>>>,
}

impl Fixture {
    fn at(now: &str, config: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let clock = Clock::simulated(now.parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        let config = Config::parse(config, &BTreeMap::new()).unwrap();
        let scripts = config.channel_names().map(|name| (name.to_owned(), Arc::default())).collect();
        Self { folder, journal, clock, settings: watch::Sender::new(Arc::new(config)), scripts }
    }

    async fn deliver(&self) -> Deliveries {
        let channel = |(name, script): (&String, &Arc<Mutex<Script>>)| {
            (name.clone(), Arc::new(Scripted(Arc::clone(script))) as Arc<dyn Channel>)
        };
        let channels = self.scripts.iter().map(channel).collect();
        Deliveries::start(channels, OpenChats::default(), self.journal.clone(), &self.clock, self.settings.subscribe())
            .await
            .unwrap()
    }

    fn answers(&self, channel: &str, answers: impl IntoIterator<Item = SendError>) {
        self.scripts[channel].lock().unwrap().answers.extend(answers);
    }

    fn sent(&self, channel: &str) -> Vec<String> {
        self.scripts[channel].lock().unwrap().sent.clone()
    }

    async fn say(&self, text: &str) {
        self.journal.message(NewMessage::of_service(text)).await.unwrap();
    }

    async fn say_urgently(&self, text: &str) {
        let message = NewMessage { urgency: Urgency::Critical, ..NewMessage::of_service(text) };
        self.journal.message(message).await.unwrap();
    }

    /// Asks a question of a job that waits for this number of minutes. Returns the question's number.
    async fn ask(&self, minutes: u64) -> i64 {
        let new = NewQuestion {
            run: RunId::new("1"),
            id: DefinitionId::new("tea"),
            tool: "Bash".into(),
            call: "git push".into(),
            asked_rule: "Bash(git push *)".into(),
            always: None,
            waits: Duration::from_secs(minutes * 60),
            start: false,
        };
        let message = |question: &Question| {
            let action = format!("answer:{}:once", question.number);
            let text = format!("May I push? ({})", question.number);
            let message = NewMessage::about(Subject::words_of(&question.id), text);
            message.with_buttons(&[("Allow once", &action)])
        };
        self.journal.ask(new, message).await.unwrap().number
    }

    /// Waits until no message waits and none is unrouted.
    async fn settled(&self) {
        // Long waits need fewer checks.
        let mut pause = Duration::from_secs(1);
        loop {
            // A message is routed first, and waits then.
            let is_routed = self.journal.unrouted(10).await.unwrap().is_empty();
            let waiting = self.scripts.keys().map(|name| self.journal.waiting(name, 10));
            let waiting = futures::future::try_join_all(waiting).await.unwrap();
            if is_routed && waiting.iter().all(Vec::is_empty) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(60));
        }
    }

    fn messages(&self) -> Vec<Message> {
        let reader = JournalReader::open(testing::place(&self.folder.path().join("journal.db"))).unwrap();
        let mut messages = reader.messages(None).unwrap();
        messages.reverse();
        messages
    }

    /// Returns `CHANNEL STATE` for each delivery of a message.
    fn deliveries(&self, number: usize) -> Vec<String> {
        let word = |state| match state {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
        };
        let messages = self.messages();
        messages[number - 1].deliveries.iter().map(|one| format!("{} {}", one.channel, word(one.state))).collect()
    }
}

const PHONE: &str = "channels: { phone: { kind: command, command: [x] }, post: { kind: command, command: [x] } }\n\
                     default_channel: phone\ntimezone: Europe/Berlin\n";

fn temporary(why: &str) -> SendError {
    SendError::temporary(why)
}

fn permanent(why: &str) -> SendError {
    SendError { why: why.into(), retryable: false }
}

#[tokio::test(start_paused = true)]
async fn everything_is_sent_once_in_order_and_what_fails_again() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", [temporary("busy"), temporary("busy")]);
    for text in ["one", "two", "three"] {
        fixture.say(text).await;
    }
    let deliveries = fixture.deliver().await;
    fixture.settled().await;
    fixture.say("four").await;
    deliveries.finish().await;
    assert_eq!(fixture.sent("phone"), ["one", "two", "three", "four"]);
    let message = &fixture.messages()[3];
    assert_eq!(message.deliveries[0].external.as_deref(), Some("id-4"), "the service's own id means delivered");
    assert!(message.delivered.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_fails_for_long_hands_over_and_says_so_once() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", std::iter::repeat_n(temporary("no network"), 12));
    let deliveries = fixture.deliver().await;
    fixture.say("one").await;
    fixture.say("two").await;
    fixture.settled().await;
    let sent = fixture.sent("post");
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert_eq!(sent[..2], ["one", "two"]);
    assert!(
        sent[2].starts_with("The channel `phone` does not deliver: no network. Its messages come here"),
        "{sent:?}"
    );
    assert_eq!(fixture.deliveries(1), ["phone failed", "post delivered"]);
    let since = fixture.messages()[0].deliveries[1].ended.unwrap() - fixture.messages()[0].at;
    assert!(since >= chrono::TimeDelta::minutes(5), "{since}");
    // The broken channel is retried with each message, without another notice.
    fixture.say("three").await;
    fixture.settled().await;
    assert_eq!(fixture.sent("post").last().map(String::as_str), Some("three"));
    fixture.scripts["phone"].lock().unwrap().answers.clear();
    fixture.say("four").await;
    deliveries.finish().await;
    assert_eq!(fixture.sent("phone"), ["four"]);
    assert_eq!(fixture.sent("post").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_channel_refuses_for_good_goes_on_at_once_and_ends_somewhere() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", [permanent("too long")]);
    fixture.answers("post", [permanent("no")]);
    fixture.answers("console", [permanent("closed")]);
    fixture.say("one").await;
    fixture.deliver().await.finish().await;
    let second = fixture.deliver().await;
    fixture.settled().await;
    second.finish().await;
    assert_eq!(fixture.deliveries(1), ["console failed", "phone failed", "post failed"], "never twice to the same");
    assert!(fixture.messages()[0].delivered.is_none());
    assert_eq!(
        fixture.sent("phone").len() + fixture.sent("post").len() + fixture.sent("console").len(),
        fixture.messages().len() - 1
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_breaks_no_channel() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", [permanent("too long"), permanent("too loud")]);
    let deliveries = fixture.deliver().await;
    for text in ["one", "two"] {
        fixture.say(text).await;
        fixture.settled().await;
    }
    let told = "The channel `phone` refused a message: too long. Messages that it refuses come here. `ollim-bot channels` shows how it is.";
    assert_eq!(fixture.sent("post"), ["one", told, "two"], "it is told once");
    let path = testing::place(&fixture.folder.path().join("journal.db"));
    let failing = || JournalReader::open(path.clone()).unwrap().failing_channels().unwrap();
    assert_eq!((failing()[0].error.as_str(), failing()[0].state()), ("too loud", "refused a message"));
    // Much later it fails for a moment.
    sleep(Duration::from_secs(3600)).await;
    fixture.answers("phone", [temporary("busy"), temporary("busy")]);
    fixture.say("three").await;
    fixture.settled().await;
    assert_eq!(fixture.sent("phone"), ["three"]);
    assert!(failing().is_empty());
    // It takes over from others, although it refused a message.
    fixture.answers("phone", [permanent("too long")]);
    fixture.say("four").await;
    fixture.settled().await;
    fixture.answers("post", [permanent("closed")]);
    let chosen = NewMessage { channel: Some("post".into()), ..NewMessage::of_service("five") };
    fixture.journal.message(chosen).await.unwrap();
    fixture.settled().await;
    deliveries.finish().await;
    assert_eq!(fixture.sent("phone")[1], "five");
}

#[tokio::test(start_paused = true)]
async fn a_job_may_choose_and_what_is_critical_goes_to_two() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", &format!("{PHONE}critical_channel: console\n"));
    let chosen = NewMessage { channel: Some("post".into()), ..NewMessage::of_service("chosen") };
    let unknown = NewMessage { channel: Some("pager".into()), ..NewMessage::of_service("unknown") };
    fixture.journal.message(chosen).await.unwrap();
    fixture.journal.message(unknown).await.unwrap();
    fixture.say_urgently("fire").await;
    fixture.deliver().await.finish().await;
    assert_eq!(fixture.sent("post"), ["chosen"]);
    assert_eq!(fixture.sent("phone"), ["fire", "unknown"], "what is critical comes first");
    assert_eq!(fixture.sent("console"), ["fire"]);
}

#[tokio::test(start_paused = true)]
async fn quiet_hours_hold_what_is_not_critical_and_end_with_one_message() {
    let quiet = format!("{PHONE}quiet_hours: {{ from: \"22:00\", to: \"07:30\" }}\n");
    let fixture = Fixture::at("2026-11-23T21:10:00Z", &quiet);
    let deliveries = fixture.deliver().await;
    fixture.say("one").await;
    sleep(Duration::from_secs(3600)).await;
    fixture.say("two").await;
    fixture.say_urgently("fire").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.sent("phone"), ["fire"]);
    let until: DateTime<Utc> = "2026-11-24T06:30:00Z".parse().unwrap();
    assert_eq!(fixture.messages()[0].deliveries[0].held_until, Some(until));
    sleep((until - fixture.clock.now()).to_std().unwrap()).await;
    assert_eq!(fixture.sent("phone"), ["fire"]);
    fixture.settled().await;
    assert!(fixture.clock.now() - until < chrono::TimeDelta::seconds(2), "{}", fixture.clock.now());
    let digest = "2 messages waited for the end of quiet hours.\n\n22:10 one\n\n23:10 two";
    assert_eq!(fixture.sent("phone"), ["fire", digest]);
    assert_eq!(fixture.messages()[0].deliveries[0].external, fixture.messages()[1].deliveries[0].external);
    fixture.say("three").await;
    deliveries.finish().await;
    assert_eq!(fixture.sent("phone")[2..], ["three"]);
}

#[tokio::test(start_paused = true)]
async fn one_message_of_the_night_comes_as_it_is_and_a_channel_may_be_loud() {
    let text = "channels: { phone: { kind: command, command: [x], quiet_hours: none } }\ndefault_channel: phone\n\
                quiet_hours: { from: \"22:00\", to: \"07:30\" }\ntimezone: UTC\n";
    let fixture = Fixture::at("2026-11-23T23:00:00Z", text);
    let deliveries = fixture.deliver().await;
    fixture.say("loud").await;
    let quiet = NewMessage { channel: Some("console".into()), ..NewMessage::of_service("quiet") };
    fixture.journal.message(quiet).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!((fixture.sent("phone"), fixture.sent("console")), (vec!["loud".to_owned()], vec![]));
    fixture.settled().await;
    deliveries.finish().await;
    assert_eq!(fixture.sent("console"), ["quiet"]);
}

#[tokio::test(start_paused = true)]
async fn what_waited_for_a_channel_that_is_gone_goes_to_the_default_one() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", std::iter::repeat_n(temporary("no network"), 2));
    fixture.say("one").await;
    fixture.deliver().await.finish().await;
    assert_eq!(fixture.deliveries(1), ["phone waiting"]);
    let config = Config::parse("timezone: UTC\n", &BTreeMap::new()).unwrap();
    fixture.settings.send_replace(Arc::new(config));
    let console = Arc::new(Scripted(Arc::clone(&fixture.scripts["console"]))) as Arc<dyn Channel>;
    let channels = BTreeMap::from([("console".to_owned(), console)]);
    let deliveries = Deliveries::start(
        channels,
        OpenChats::default(),
        fixture.journal.clone(),
        &fixture.clock,
        fixture.settings.subscribe(),
    )
    .await
    .unwrap();
    deliveries.finish().await;
    assert_eq!(fixture.deliveries(1), ["console delivered", "phone failed"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_to_the_terminal_as_long_as_somebody_is_there() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    let chats = OpenChats::default();
    let channel = |(name, script): (&String, &Arc<Mutex<Script>>)| {
        (name.clone(), Arc::new(Scripted(Arc::clone(script))) as Arc<dyn Channel>)
    };
    let channels = fixture.scripts.iter().map(channel).collect();
    let settings = fixture.settings.subscribe();
    let deliveries =
        Deliveries::start(channels, chats.clone(), fixture.journal.clone(), &fixture.clock, settings).await.unwrap();
    let answer = |text: &str| NewMessage { channel: Some("terminal".into()), ..NewMessage::of_service(text) };
    let there = chats.open();
    fixture.journal.message(answer("seen")).await.unwrap();
    while fixture.messages()[0].delivered.is_none() {
        sleep(Duration::from_secs(1)).await;
    }
    drop(there);
    fixture.journal.message(answer("missed")).await.unwrap();
    fixture.settled().await;
    deliveries.finish().await;
    assert_eq!(fixture.deliveries(1), ["terminal delivered"]);
    assert_eq!(fixture.deliveries(2), ["phone delivered"]);
    assert_eq!(fixture.sent("phone"), ["missed"], "nobody is told that the terminal is closed");
}

#[test]
fn nothing_that_an_agent_writes_turns_the_direction_of_writing_or_rings() {
    let odd = "a\u{202e}b\u{7}c";
    let message = NewMessage::of_service(format!("{odd}\n{odd}")).with_buttons(&[(odd, "done")]);
    let rich = message.rich.clone().map(|rich| RichContent {
        title: odd.into(),
        description: odd.into(),
        fields: vec![(odd.into(), odd.into())],
        footer: odd.into(),
        ..rich
    });
    let message = Message { rich, ..testing::message(&message.text) };
    let clean = Outgoing::from(&message);
    assert_eq!(clean.text, "abc\nabc");
    let several = super::digest::digest(vec![&message, &message], chrono_tz::UTC, &Scripted(Arc::default())).unwrap();
    for shown in [format!("{clean:?}"), several.text] {
        let debug = format!("{shown:?}");
        assert!(!debug.contains("202e") && !debug.contains("u{7}"), "{debug}");
    }
}

/// A channel by which the person types commands.
struct Typed;

#[async_trait]
impl Channel for Typed {
    async fn send(&self, _message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        Ok(None)
    }

    fn takes_commands(&self) -> bool {
        true
    }
}

#[test]
fn the_services_own_words_name_what_is_typed_and_nobody_elses_change() {
    let message = |run: Option<&str>, text: &str, rich: Option<RichContent>| Message {
        run: run.map(RunId::new),
        id: Some(DefinitionId::new("tea")),
        rich,
        ..testing::message(text)
    };
    let buttons = NewMessage::of_service("").with_buttons(&[("Deny", "answer:3:deny")]).rich;
    let call = "routine tea asks (question 3):\n\n```\necho '`ollim-bot fire tea`'\n```\n\nAnswer: ";
    for (message, typed) in [
        (message(None, "Paused: `ollim-bot resume`", None), "Paused: `/resume`".to_owned()),
        (
            message(Some("1"), "routine tea failed. `ollim-bot runs show 1`", None),
            "routine tea failed. `/run 1`".into(),
        ),
        (message(Some("1"), "[bg] Try `ollim-bot fire tea`", None), "[bg] Try `ollim-bot fire tea`".into()),
        (
            message(Some("1"), &format!("{call}`ollim-bot questions answer 3 allow|deny`"), buttons.clone()),
            format!("{call}`/questions answer 3 allow|deny`"),
        ),
        (
            message(Some("1"), "Your conversation asks.\nAnswer: `ollim-bot questions answer 3 deny`", buttons),
            "Your conversation asks.\nAnswer: `/questions answer 3 deny`".into(),
        ),
        (
            message(Some("1"), "Question 2 of tea is over: denied. `ollim-bot questions` shows it.", None),
            "Question 2 of tea is over: denied. `/questions` shows it.".into(),
        ),
    ] {
        assert_eq!(Outgoing::on(&Typed, &message).text, typed);
        assert_eq!(Outgoing::on(&Lost, &message).text, message.text, "nobody types there");
        assert!(Outgoing::on(&Typed, &message).asks == message.question().is_some());
    }
}

/// A channel that is lost from the beginning.
struct Lost;

#[async_trait]
impl Channel for Lost {
    async fn send(&self, _message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        Err(permanent("the token was revoked"))
    }

    async fn permanent_failure(&self) -> String {
        "the token was revoked".into()
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_lost_is_told_on_the_next_one_before_anything_waits_for_it() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    let scripted = |name: &str| Arc::new(Scripted(Arc::clone(&fixture.scripts[name]))) as Arc<dyn Channel>;
    let channels = BTreeMap::from([
        ("phone".to_owned(), Arc::new(Lost) as Arc<dyn Channel>),
        ("post".to_owned(), scripted("post")),
        ("console".to_owned(), scripted("console")),
    ]);
    let deliveries = Deliveries::start(
        channels,
        OpenChats::default(),
        fixture.journal.clone(),
        &fixture.clock,
        fixture.settings.subscribe(),
    );
    let deliveries = deliveries.await.unwrap();
    while fixture.sent("post").is_empty() {
        sleep(Duration::from_secs(1)).await;
    }
    deliveries.finish().await;
    let expect =
        "The channel `phone` does not work any more: the token was revoked. `ollim-bot channels` shows how it is.";
    assert_eq!(fixture.sent("post"), [expect]);
    let failing = JournalReader::open(testing::place(&fixture.folder.path().join("journal.db")))
        .unwrap()
        .failing_channels()
        .unwrap();
    assert_eq!((failing[0].name.as_str(), failing[0].error.as_str()), ("phone", "the token was revoked"));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_the_digest_comes_with_it_at_the_end_of_quiet_hours() {
    let quiet = format!("{PHONE}quiet_hours: {{ from: \"22:00\", to: \"07:30\" }}\n");
    let fixture = Fixture::at("2026-11-23T08:00:00Z", &quiet);
    let for_digest = |text: &str| NewMessage { digest: true, ..NewMessage::of_service(text) };
    let deliveries = fixture.deliver().await;
    fixture.journal.message(for_digest("one")).await.unwrap();
    fixture.say("at once").await;
    sleep(Duration::from_secs(14 * 3600)).await;
    assert_eq!(fixture.sent("phone"), ["at once"], "it waits by day and through the quiet hours");
    fixture.say("by night").await;
    sleep(Duration::from_secs(9 * 3600)).await;
    fixture.settled().await;
    let digest = "2 messages waited for the end of quiet hours.\n\n09:00 one\n\n23:00 by night";
    assert_eq!(fixture.sent("phone"), ["at once", digest]);
    // The service is down when the digest is due.
    fixture.journal.message(for_digest("two")).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    deliveries.finish().await;
    fixture.clock.jump(TimeDelta::hours(25));
    let deliveries = fixture.deliver().await;
    fixture.settled().await;
    assert_eq!(fixture.sent("phone").last().unwrap(), "two");
    // Removed quiet hours hold no message.
    fixture.journal.message(for_digest("three")).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.sent("phone").len(), 3);
    fixture.settings.send_replace(Arc::new(Config::parse(PHONE, &BTreeMap::new()).unwrap()));
    fixture.settled().await;
    assert_eq!(fixture.sent("phone").last().unwrap(), "three");
    deliveries.finish().await;
}

/// The channel fails for ten minutes, by day or at the end of the quiet hours. The other one has quiet hours, or none.
#[tokio::test(start_paused = true)]
async fn a_digest_stays_with_its_channel_until_it_is_due_and_is_then_taken_over_whole() {
    for other in ["", ", quiet_hours: none"] {
        let config = PHONE.replace(
            "post: { kind: command, command: [x] }",
            &format!("post: {{ kind: command, command: [x]{other} }}"),
        );
        let quiet = format!("{config}quiet_hours: {{ from: \"22:00\", to: \"07:30\" }}\n");
        let fixture = Fixture::at("2026-11-23T20:00:00Z", &quiet);
        let deliveries = fixture.deliver().await;
        let digest = NewMessage { digest: true, ..NewMessage::of_service("digest") };
        fixture.journal.message(digest).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        // By day it fails for long enough to be given up.
        fixture.answers("phone", std::iter::repeat_n(temporary("no network"), 12));
        fixture.say("one").await;
        sleep(Duration::from_secs(1800)).await;
        assert_eq!(fixture.sent("post").first().unwrap(), "one", "{other}");
        assert!(!fixture.sent("post").concat().contains("digest"), "{other}: {:?}", fixture.sent("post"));
        assert_eq!(fixture.deliveries(1), ["phone waiting"], "{other}");
        sleep(Duration::from_secs(2 * 3600)).await;
        // Nobody hears at the end of the quiet hours.
        let before = fixture.sent("post").len();
        fixture.scripts["phone"].lock().unwrap().answers.clear();
        fixture.answers("phone", std::iter::repeat_n(temporary("no network"), 12));
        fixture.say("by night").await;
        let until: DateTime<Utc> = "2026-11-24T06:50:00Z".parse().unwrap();
        sleep((until - fixture.clock.now()).to_std().unwrap()).await;
        let later = fixture.sent("post").split_off(before);
        let whole = later.iter().filter(|sent| sent.contains("digest") && sent.contains("by night")).count();
        assert_eq!(whole, 1, "{other}: {later:?}, {:?}", fixture.sent("phone"));
        deliveries.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_out_by_night_unless_its_answer_can_wait_for_the_morning() {
    let quiet = format!("{PHONE}quiet_hours: {{ from: \"22:00\", to: \"07:30\" }}\n");
    let fixture = Fixture::at("2026-11-23T23:00:00Z", &quiet);
    let deliveries = fixture.deliver().await;
    fixture.ask(10).await;
    let late = fixture.ask(8 * 60).await;
    fixture.say("one").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.sent("phone"), ["May I push? (1)"], "the other one can be answered in the morning");
    fixture.journal.end_question(late, QuestionEnd::Deny, None, Some("terminal".into())).await.unwrap();
    fixture.settled().await;
    deliveries.finish().await;
    let digest = "2 messages waited for the end of quiet hours.\n\n\
                  00:00 tea: Question 2 of tea, asked at 00:00, is over: denied, by terminal, after 1m. `ollim-bot questions` shows it.\n\n\
                  00:00 one";
    assert_eq!(fixture.sent("phone")[1..], [digest], "nothing asks that takes no answer");
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_time_is_up_before_it_was_sent_asks_nobody() {
    let fixture = Fixture::at("2026-11-23T12:00:00Z", PHONE);
    fixture.answers("phone", std::iter::repeat_n(temporary("no network"), 20));
    let deliveries = fixture.deliver().await;
    let number = fixture.ask(2).await;
    sleep(Duration::from_secs(120)).await;
    fixture.journal.end_question(number, QuestionEnd::SilenceDeny, None, None).await.unwrap();
    fixture.settled().await;
    deliveries.finish().await;
    let line = "Question 1 of tea, asked at 13:00, is over: denied, since nobody answered, after 2m. `ollim-bot questions` shows it.";
    assert_eq!(fixture.sent("post")[0], line);
}

#[tokio::test(start_paused = true)]
async fn what_has_buttons_keeps_them_in_the_morning_and_no_text_swallows_the_next() {
    let quiet = format!("{PHONE}quiet_hours: {{ from: \"22:00\", to: \"07:30\" }}\n");
    let fixture = Fixture::at("2026-11-23T23:00:00Z", &quiet);
    let deliveries = fixture.deliver().await;
    let remind = async |text: &str| {
        let reminder = NewMessage::of_service(text).with_buttons(&[("Done", "done"), ("10 min", "snooze:10m")]);
        fixture.journal.message(reminder).await.unwrap();
    };
    fixture.ask(8 * 60).await;
    remind("Tea.").await;
    fixture.say("```\nlet tea").await;
    fixture.say("two").await;
    fixture.settled().await;
    let digest = "2 messages waited for the end of quiet hours.\n\n00:00 ```\nlet tea\n```\n\n00:00 two";
    assert_eq!(fixture.sent("phone"), [digest, "May I push? (1)", "Tea."]);
    assert_eq!(fixture.scripts["phone"].lock().unwrap().buttons, [0, 1, 2]);
    // A night with many reminders is one digest, except for the question.
    sleep(Duration::from_secs(15 * 3600)).await;
    fixture.ask(24 * 60).await;
    for number in 0..6 {
        remind(&format!("Cake {number}.")).await;
    }
    fixture.settled().await;
    deliveries.finish().await;
    let sent = fixture.sent("phone");
    assert_eq!((sent.len(), sent[4].as_str()), (5, "May I push? (2)"), "{sent:#?}");
    assert!(sent[3].starts_with("6 messages waited") && sent[3].contains("Cake 5."), "{}", sent[3]);
}
