//! The ways from a background job to the person and to the main session, on the real client: the agent's tools, its prompt,
//! and the hook that keeps it running until it has reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, Request, ToolResult};

const PING: &str = "mcp__discord__ping_user";
const EMBED: &str = "mcp__discord__discord_embed";
const REPORT: &str = "mcp__discord__report_updates";

fn ping(message: &str) -> Reply {
    Reply::call(PING, json!({ "message": message }))
}

fn critical(message: &str) -> Reply {
    Reply::call(PING, json!({ "message": message, "critical": true }))
}

fn report(message: &str) -> Reply {
    Reply::call(REPORT, json!({ "message": message }))
}

/// Returns the conversation's job: the id in our tag.
fn job_of(request: &Request) -> Option<String> {
    let text = request.body["messages"].to_string();
    let tag = text.split("[reminder-bg:").nth(1).or_else(|| text.split("[reminder:").nth(1))?;
    Some(tag.split(']').next()?.to_owned())
}

/// Each job's agent makes the calls under its id, then says that it is done.
fn scripts(plans: &[(&str, Vec<Reply>)]) -> MessagesApi {
    let plans: BTreeMap<String, Vec<Reply>> =
        plans.iter().map(|(job, replies)| ((*job).to_owned(), replies.clone())).collect();
    MessagesApi::answering(move |request| {
        let plan = job_of(request).and_then(|job| plans.get(&job));
        plan.and_then(|replies| replies.get(request.answers())).cloned().unwrap_or_else(|| Reply::say("done"))
    })
}

fn bot(api: &MessagesApi) -> TestBot {
    TestBot::with_client(&client::real(), api.url())
}

/// The first and the last request of an agent.
struct Seen {
    first: Request,
    last: Request,
}

impl Seen {
    #[track_caller]
    fn of(api: &MessagesApi, job: &str) -> Self {
        let mut requests: Vec<Request> =
            api.requests().into_iter().filter(|request| job_of(request).as_deref() == Some(job)).collect();
        let last = requests.pop().unwrap_or_else(|| panic!("the agent of {job} asked the model"));
        let first = if requests.is_empty() { last.clone() } else { requests.remove(0) };
        Self { first, last }
    }

    fn prompt(&self) -> String {
        self.first.last_text()
    }

    fn results(&self) -> Vec<ToolResult> {
        self.last.results()
    }

    fn has(&self, tool: &str) -> bool {
        self.first.tools().iter().any(|shown| shown == tool)
    }
}

/// Fires a background job and waits for its end.
#[track_caller]
fn live(bot: &TestBot, service: &Service<'_>, job: &str, fields: &str) -> Value {
    let fields = format!("background: true\nisolated: true\nretry: 0\n{fields}");
    bot.write(&format!("reminders/{job}.md"), &reminder(now(), &fields, "Do the thing."));
    let run = service.until_ended(job, 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    run
}

/// Returns the messages to the person, oldest first.
#[track_caller]
fn inbox(bot: &TestBot) -> Vec<String> {
    let messages = bot.json(["inbox", "-n", "1000"]);
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn refused(result: &ToolResult, words: &str) {
    assert!(result.is_error && result.text.contains(words), "{words}: {result:#?}");
}

#[track_caller]
fn sent(result: &ToolResult) {
    assert!(!result.is_error && result.text.contains("Sent to the user."), "{result:#?}");
}

#[test]
fn a_job_that_may_not_ping_sees_no_way_to() {
    let embed = Reply::call(EMBED, json!({ "title": "evil" }));
    let attempts = || vec![ping("evil"), critical("evil"), embed.clone()];
    let api = scripts(&[("plain", attempts()), ("listed", attempts()), ("may", vec![])]);
    let bot = bot(&api);
    let service = bot.start();
    live(&bot, &service, "plain", "allow_ping: false\n");
    // An allowlist that grants the tool does not restore it.
    live(
        &bot,
        &service,
        "listed",
        "allow_ping: false\nallowed_tools:\n  - mcp__discord__*\n  - mcp__discord__ping_user\n",
    );
    live(&bot, &service, "may", "");
    service.stop();
    for job in ["plain", "listed"] {
        let seen = Seen::of(&api, job);
        assert!(!seen.has(PING) && !seen.has(EMBED) && seen.has(REPORT), "{:?}", seen.first.tools());
        assert!(seen.prompt().contains("This job cannot reach the user directly."), "{}", seen.prompt());
        assert!(
            !seen.prompt().contains("`ping_user`") && !seen.prompt().contains("Messages left"),
            "{}",
            seen.prompt()
        );
        assert_eq!(seen.results().len(), 3);
        assert!(seen.results().iter().all(|result| result.is_error), "{:#?}", seen.results());
    }
    let seen = Seen::of(&api, "may");
    assert!(seen.has(PING) && seen.has(EMBED), "{:?}", seen.first.tools());
    assert!(seen.prompt().contains("To reach the user: `ping_user`"), "{}", seen.prompt());
    assert_eq!(inbox(&bot), Vec::<String>::new());
}

#[test]
fn each_mode_of_reporting_is_held_at_the_end_and_only_once() {
    // One case: the job, its fields, the agent's calls, the words that refuse its end, and the words of the prompt.
    struct Case {
        job: &'static str,
        fields: &'static str,
        does: Vec<Reply>,
        held: Option<&'static str>,
        told: Option<&'static str>,
    }
    let must = Some("Before you finish you must call `report_updates`");
    let on_ping = Some("If you send a message, also call `report_updates`");
    let may = Some("You may call `report_updates`");
    let held = Some("call report_updates once and say what you did and found");
    let held_after_ping = Some("You sent a message: before you finish, call report_updates once");
    let done = || Reply::say("done");
    let case = |job, fields, does, held, told| Case { job, fields, does, held, told };
    let cases = [
        case("always-forgets", "update_main_session: always\n", vec![done(), report("1")], held, must),
        case("always-refuses", "update_main_session: always\n", vec![done(), done()], held, must),
        case("always-reports", "update_main_session: always\n", vec![report("2"), done()], None, must),
        case("pings-silently", "", vec![ping("a"), done(), report("3")], held_after_ping, on_ping),
        case("pings-reports", "", vec![ping("b"), report("4"), done()], None, on_ping),
        case("no-ping", "", vec![done()], None, on_ping),
        case("cannot-ping", "allow_ping: false\n", vec![done()], None, may),
        case("freely", "update_main_session: freely\n", vec![ping("c"), done()], None, may),
        case("blocked", "update_main_session: blocked\n", vec![ping("d"), report("evil"), done()], None, None),
        case(
            "always-without-the-tool",
            "update_main_session: always\nallowed_tools:\n  - mcp__discord__ping_user\n",
            vec![done()],
            None,
            None,
        ),
    ];
    let plans: Vec<(&str, Vec<Reply>)> = cases.iter().map(|case| (case.job, case.does.clone())).collect();
    let api = scripts(&plans);
    let bot = bot(&api);
    let service = bot.start();
    for case in &cases {
        live(&bot, &service, case.job, case.fields);
    }
    service.stop();
    for case in &cases {
        let seen = Seen::of(&api, case.job);
        // 2.1.330 repeats a hook's words as a system message.
        let messages = seen.last.body["messages"].as_array().into_iter().flatten();
        let conversation: Vec<&Value> = messages.filter(|message| message["role"] != "system").collect();
        let (prompt, conversation) = (seen.prompt(), json!(conversation).to_string());
        let count = conversation.matches("before you finish, call report_updates once").count()
            + conversation.matches("Before you finish, call report_updates once").count();
        assert_eq!(count, usize::from(case.held.is_some()), "{}: {conversation}", case.job);
        assert!(case.held.is_none_or(|words| conversation.contains(words)), "{}: {conversation}", case.job);
        assert_eq!(prompt.contains("`report_updates`"), case.told.is_some(), "{}: {prompt}", case.job);
        assert!(case.told.is_none_or(|words| prompt.contains(words)), "{}: {prompt}", case.job);
    }
    let blocked = Seen::of(&api, "blocked");
    assert!(blocked.has(PING) && !blocked.has(REPORT), "{:?}", blocked.first.tools());
    assert!(blocked.results()[1].is_error, "{:#?}", blocked.results());
    assert!(!Seen::of(&api, "always-without-the-tool").has(REPORT));
}

#[test]
fn one_message_a_run_unless_it_is_critical() {
    let embed = |critical: bool| {
        Reply::call(EMBED, json!({ "title": "Mail", "description": "two letters", "critical": critical }))
    };
    let side_by_side = Reply::Call((1..=3).map(|n| (PING.into(), json!({ "message": format!("word {n}") }))).collect());
    let api = scripts(&[
        ("one", vec![ping("first"), ping("second"), embed(false), critical("third"), embed(true), ping("  ")]),
        ("two", vec![embed(false), ping("second")]),
        ("three", vec![side_by_side]),
    ]);
    let bot = bot(&api);
    let service = bot.start();
    for job in ["one", "two", "three"] {
        live(&bot, &service, job, "update_main_session: freely\n");
    }
    service.stop();
    let one = Seen::of(&api, "one").results();
    sent(&one[0]);
    refused(&one[1], "You have already sent a message in this run, and one is the most.");
    refused(&one[1], "Put it into report_updates");
    refused(&one[2], "You have already sent a message in this run");
    sent(&one[3]);
    sent(&one[4]);
    refused(&one[5], "`message` is empty");
    let two = Seen::of(&api, "two").results();
    sent(&two[0]);
    refused(&two[1], "You have already sent a message in this run");
    let three = Seen::of(&api, "three").results();
    assert_eq!(three.iter().filter(|result| !result.is_error).count(), 1, "{three:#?}");
    let told = inbox(&bot);
    let card = "[bg] Mail\ntwo letters\n— bg";
    assert_eq!(told[..4], ["[bg] first", "[bg] third", card, card], "{told:#?}");
    assert!(told.len() == 5 && told[4].starts_with("[bg] word "), "{told:#?}");
}

#[test]
fn an_empty_budget_lets_only_critical_messages_through() {
    // Critical messages count: five of them use up the budget, and no run sends more.
    let spends: Vec<Reply> = (1..=6).map(|n| critical(&format!("word {n}"))).collect();
    let api = scripts(&[
        ("spends", spends),
        ("finds-none", vec![ping("too much"), critical("urgent"), ping("more")]),
        ("too", vec![ping("as well"), ping("again")]),
        ("tells", vec![critical("fire")]),
        ("made", vec![ping("from one of many")]),
    ]);
    let bot = bot(&api);
    let service = bot.start();
    live(&bot, &service, "spends", "update_main_session: freely\n");
    assert!(Seen::of(&api, "spends").prompt().contains("Messages left for all background jobs together: 5 of 5."));
    refused(&Seen::of(&api, "spends").results()[5], "You have already sent 5 critical messages in this run");
    // The budget is in the journal, so the next service finds it unchanged.
    service.stop();
    let service = bot.start();
    let run = live(&bot, &service, "finds-none", "update_main_session: freely\n");
    live(&bot, &service, "too", "update_main_session: freely\n");
    live(&bot, &service, "tells", "update_main_session: freely\n");
    // A job can make any number of others, so the urgency of these is no way around the budget.
    live(&bot, &service, "made", "update_main_session: freely\nurgency: critical\ncreated_by: tells\n");
    refused(&Seen::of(&api, "made").results()[0], "The ping budget is empty.");
    service.stop();
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    let held: Vec<&Value> = shown["denials"].as_array().unwrap().iter().collect();
    assert_eq!(held.len(), 1, "{shown:#}");
    assert_eq!((&held[0]["tool"], &held[0]["layer"]), (&json!(PING), &json!("budget")), "{shown:#}");
    assert!(held[0]["input"].to_string().contains("too much"), "{shown:#}");
    let what_happened = bot.ok(["runs", "show", run["run"].as_str().unwrap()]);
    assert!(what_happened.contains("  note      held back: The ping budget is empty.\n"), "{what_happened}");
    let seen = Seen::of(&api, "finds-none");
    let prompt = seen.prompt();
    assert!(
        prompt.contains("Messages left for all background jobs together: 0 of 5; the next one comes back at "),
        "{prompt}"
    );
    assert!(prompt.contains("Until then only `critical` ones go through."), "{prompt}");
    assert!(seen.has(PING));
    let results = seen.results();
    refused(&results[0], "The ping budget is empty.");
    refused(&results[0], "Put it into report_updates");
    sent(&results[1]);
    refused(&results[2], "You have already sent a message");
    let told = inbox(&bot);
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(told[5], "[bg] urgent\n\n1 message was held back: too many within a short time");
    assert_eq!(told[6], "[bg] fire\n\n2 messages were held back: too many within a short time");
}

/// The person has just said something, so they are in a conversation, though its turn has ended.
#[test]
fn right_after_a_message_of_the_person_only_critical_messages_go_through() {
    let api = MessagesApi::answering(|request| match (job_of(request).as_deref(), request.answers()) {
        (Some("meanwhile"), 0) => ping("not now"),
        (Some("meanwhile"), 1) => critical("the house is on fire"),
        _ => Reply::say("done"),
    });
    let bot = bot(&api);
    let service = bot.start();
    bot.ok(["chat", "Good morning."]);
    live(&bot, &service, "meanwhile", "update_main_session: freely\n");
    service.stop();
    let shown = bot.ok(["runs", "show", bot.runs("meanwhile")[0]["run"].as_str().unwrap()]);
    assert!(shown.contains("held back") && shown.contains("not now"), "the run's record has it: {shown}");
    let results = Seen::of(&api, "meanwhile").results();
    refused(&results[0], "The user is in the middle of a conversation.");
    sent(&results[1]);
    assert!(!inbox(&bot).iter().any(|text| text.contains("not now")), "{:?}", inbox(&bot));
}

#[test]
fn while_the_main_session_is_in_a_turn_only_critical_messages_go_through() {
    let api = MessagesApi::answering(|request| match (job_of(request).as_deref(), request.answers()) {
        // The conversation with the person is still running.
        (Some("talk"), _) => Reply::Silence,
        (Some("meanwhile"), 0) => ping("not now"),
        (Some("meanwhile"), 1) => critical("the house is on fire"),
        (Some("afterwards"), 0) => ping("now"),
        _ => Reply::say("done"),
    });
    let bot = bot(&api);
    let service = bot.start();
    bot.write("reminders/talk.md", &reminder(now(), "retry: 0\n", "Talk to me."));
    let talks = || api.requests().iter().any(|request| job_of(request).as_deref() == Some("talk"));
    service.until("the turn is going", || talks().then_some(()));
    live(&bot, &service, "meanwhile", "update_main_session: freely\n");
    let talk = bot.runs("talk").remove(0);
    bot.ok(["cancel-run", talk["run"].as_str().unwrap()]);
    service.until_ended("talk", 1);
    live(&bot, &service, "afterwards", "update_main_session: freely\n");
    service.stop();
    let seen = Seen::of(&api, "meanwhile");
    let prompt = seen.prompt();
    assert!(prompt.contains("The user is in the middle of a conversation right now"), "{prompt}");
    let results = seen.results();
    refused(&results[0], "The user is in the middle of a conversation.");
    sent(&results[1]);
    let seen = Seen::of(&api, "afterwards");
    assert!(!seen.prompt().contains("in the middle of a conversation"), "{}", seen.prompt());
    sent(&seen.results()[0]);
    let told = inbox(&bot);
    assert!(
        told.contains(&"[bg] the house is on fire".to_owned()) && told.contains(&"[bg] now".to_owned()),
        "{told:?}"
    );
    assert!(!told.iter().any(|text| text.contains("not now")), "{told:?}");
}
