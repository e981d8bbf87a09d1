//! The events of a run on the real client, as they happen and afterwards.

use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

const JOB: &str =
    "background: true\nisolated: true\nretry: 0\nallowed_tools: ['Bash(ls *)', mcp__discord__ping_user]\n";

/// An agent that makes a granted call, tries a denied one, sends the person a message, and reports.
fn api() -> MessagesApi {
    MessagesApi::script([
        Reply::bash("ls *.md"),
        Reply::bash("rm report.md"),
        Reply::call("mcp__discord__ping_user", json!({ "message": "There is a report." })),
        Reply::say("I looked, and told you."),
    ])
}

fn bot(api: &MessagesApi) -> TestBot {
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/report.md", "the report\n");
    bot.write("routines/job.md", &format!("---\ncron: '@yearly'\n{JOB}---\nLook.\n"));
    bot
}

/// Returns the events of a run, each by its name and its main detail.
fn names(events: &Value) -> Vec<String> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let of = |event: &Value| {
        let name = text(event, "event");
        let detail = match name.as_str() {
            "tool_call" => text(event, "tool"),
            "tool_decided" => event["allowed"].to_string(),
            "tool_result" => event["failed"].to_string(),
            "said" | "message" => text(event, "text").lines().next().unwrap_or_default().to_owned(),
            "run_ended" => text(event, "outcome"),
            _ => String::new(),
        };
        format!("{name} {detail}").trim_end().to_owned()
    };
    events.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn a_run_is_shown_in_its_order() {
    let api = api();
    let bot = bot(&api);
    let service = bot.start();
    let waited = bot.run(["fire", "job", "--wait"]);
    assert_eq!(waited.code, 0, "{waited:#?}");
    for word in [
        "started",
        "prompt",
        "client    claude ",
        "call      Bash ls *.md",
        "note      a program was refused",
        "message   [bg] There is a report.",
        "said      I looked",
        "ended     completed",
    ] {
        assert!(waited.stdout.contains(word), "{word}: {}", waited.stdout);
    }
    let run = service.until_ended("job", 1).remove(0);
    service.stop();
    let id = run["run"].as_str().unwrap();
    let shown = bot.json(["runs", "show", id]);
    assert_eq!(
        names(&shown["events"]),
        [
            "run_started",
            "prompt",
            "client_ready",
            "tool_call Bash",
            "tool_decided true",
            "tool_result false",
            "tool_call Bash",
            "tool_decided true",
            "note",
            "tool_result true",
            "tool_call mcp__discord__ping_user",
            "tool_decided true",
            "message [bg] There is a report.",
            "tool_result false",
            "said I looked, and told you.",
            "run_ended completed",
        ]
    );
    assert!(shown["model"].is_string() && shown["tokens"]["output"].as_u64() > Some(0), "{shown:#}");
    let text = bot.ok(["runs", "show", id]);
    assert!(text.contains("What happened") && !text.contains("\nreport.md"), "{text}");
    assert!(bot.ok(["runs", "show", id, "--transcript"]).contains("report.md"), "what `ls` returned");
    // The past is also shown without a service.
    let followed = bot.run(["runs", "follow", "job"]);
    assert_eq!((followed.code, followed.stdout.lines().count()), (0, waited.stdout.lines().count()), "{followed:#?}");
    assert_eq!(bot.json(["costs"])["rows"][0]["job"], "job");
    // A duration that reaches before the earliest time selects everything.
    assert_eq!(bot.json(["costs", "--since", "900000000h"])["rows"][0]["job"], "job");
    bot.ok(["logs", "--since", "900000000h"]);
    assert_eq!(bot.json(["next"])[0]["last"]["outcome"], "completed");
}

/// The model chooses its calls and their number freely.
#[test]
fn a_run_that_is_refused_without_end_fills_no_record() {
    let api = MessagesApi::script([
        Reply::call("Tool\u{1b}[31m", json!({})),
        Reply::bash("for i in {1..250}; do git $i 2>/dev/null; done; echo done"),
        Reply::say("I tried."),
    ]);
    let bot = bot(&api);
    let service = bot.start();
    bot.run(["fire", "job", "--wait"]);
    let run = bot.runs("job").remove(0);
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    let denials = shown["denials"].as_array().unwrap();
    assert_eq!(denials.len(), 201, "{:#?}", denials.last());
    assert!(denials.iter().all(|denial| !denial["tool"].as_str().unwrap().contains('\u{1b}')), "{:#?}", denials[0]);
    let notes = shown["events"].as_array().unwrap().iter();
    let notes =
        notes.filter(|event| event["text"].as_str().is_some_and(|text| text.starts_with("a program was refused")));
    assert!((1..=200).contains(&notes.count()), "{shown:#}");
    service.stop();
}

#[test]
fn everything_is_shown_as_it_happens() {
    let api =
        MessagesApi::script([Reply::Error(400, "invalid_request_error"), Reply::Error(400, "invalid_request_error")]);
    let bot = bot(&api);
    let service = bot.start();
    bot.write("reminders/early.md", &reminder(now(), "client: notify\n", "An early word."));
    service.until_ended("early", 1);
    let all = bot.start_with(["--json", "runs", "follow"]);
    let messages = bot.start_with(["inbox", "--follow"]);
    let lines = bot.start_with(["--json", "inbox", "--follow"]);
    // What was there before is shown at once, as JSON in one line.
    service.until("the earlier message is shown", || messages.output().contains("  An early word.").then_some(()));
    service.until("the earlier message is shown as JSON", || {
        lines
            .output()
            .lines()
            .any(|line| line.contains("\"text\":\"An early word.\"") && line.ends_with('}'))
            .then_some(())
    });
    // Both must be listening before the job fires. The test changes a file until they have seen that.
    service.until("it listens", || {
        bot.write(
            "routines/other.md",
            &format!("---\ncron: '@yearly'\n---\n{}\n", all.output().len() + now().timestamp_subsec_nanos() as usize),
        );
        all.output().contains("definition_changed").then_some(())
    });
    let waited = bot.run(["fire", "job", "--wait"]);
    assert_eq!(waited.code, 1, "it failed: {waited:#?}");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea."));
    service.until("all of it is heard of", || {
        let said = all.output();
        let heard = ["run_started", "\"outcome\":\"failed\"", "\"id\":\"tea\""];
        heard.iter().all(|word| said.contains(word)).then_some(())
    });
    for line in all.output().lines().filter(|line| !line.starts_with("! ")) {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["number"].is_i64() && event["at"].is_string(), "{event}");
    }
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    assert!(all.wait().1.contains("the service has ended"));
    let (_, heard) = messages.wait();
    assert!(heard.contains("the service has ended"), "{heard}");
}

#[test]
fn nobody_follows_without_a_service() {
    let bot = TestBot::new();
    bot.start().stop();
    for command in [&["runs", "follow"][..], &["inbox", "--follow"]] {
        let refused = bot.run(command);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("the service is not running"), "{refused:?}");
    }
    assert!(bot.run(["runs", "follow", "nothing"]).stderr.contains("no job"));
}

/// Nobody may have looked at the terminal.
#[test]
fn why_the_service_did_not_start_is_in_its_log() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: Mars/Base\n");
    assert_ne!(bot.run(["run"]).code, 0);
    let logged = bot.run(["logs"]);
    assert!(logged.stdout.contains("`ollim-bot run` failed: ") && logged.stdout.contains("Mars/Base"), "{logged:?}");
}

#[test]
fn the_log_is_kept_and_shown() {
    let bot = TestBot::new();
    bot.write("routines/tea.md", "---\ncron: '@yearly'\n---\nTea.\n");
    let service = bot.start();
    let follows = bot.start_with(["logs", "--follow"]);
    service.until("what was logged before is shown", || follows.output().contains("ready on ").then_some(()));
    bot.write("routines/broken.md", "---\ncron: never\n---\nTea.\n");
    service.until("what comes is shown", || follows.output().contains("routines/broken.md").then_some(()));
    drop(follows);
    service.stop();
    let all = bot.ok(["logs"]);
    assert!(all.contains("INFO ready on ") && all.contains("WARN routines/broken.md"), "{all}");
    let about = bot.ok(["logs", "broken.md", "--since", "1h"]);
    assert!(!about.contains("ready on"), "{about}");
    assert_eq!(bot.ok(["logs", "-n", "1"]).lines().count(), 1);
    let line: Value = serde_json::from_str(bot.ok(["--json", "logs", "-n", "1"]).trim()).unwrap();
    assert!(line["at"].is_string() && line["level"].is_string(), "{line}");
    let nothing = bot.run(["logs", "nothing"]);
    assert!(nothing.code == 1 && nothing.stderr.contains("there is no job `nothing`"), "{nothing:?}");
}

#[test]
fn what_a_run_tells_the_person_comes_before_its_end() {
    let bot = TestBot::new();
    bot.write("routines/tea.md", "---\ncron: '@yearly'\n---\nTea.\n");
    let service = bot.start();
    let shown = bot.ok(["fire", "tea", "--wait"]);
    let (message, end) = (shown.find("message   Tea."), shown.find("ended     completed"));
    assert!(message.is_some() && message < end, "{shown}");
    service.stop();
}

#[test]
fn a_service_that_is_started_with_json_streams_what_happens() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea."));
    let ran = bot.run(["run", "--json", "--until-idle"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let place = |kind| kinds.iter().position(|found| *found == kind).unwrap_or_else(|| panic!("{kind} in {kinds:?}"));
    // The last events arrive too, each once and in order.
    assert!(place("run_started") < place("message") && place("message") < place("run_ended"), "{kinds:?}");
    assert!(events.iter().any(|event| event.to_string().contains("Tea.")), "{events:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "run_ended").count(), 1);
    // The stream delivered the messages, so they are not shown again.
    assert_eq!(bot.run(["run", "--until-idle"]).stdout, "");
}
