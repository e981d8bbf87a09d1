//! docs/definitions.md: the example of every field, in a job that the real service runs to its end. Agents are the real client.

use std::path::Path;

use ollim_bot::definition::Kind;
use ollim_bot::definition::fields::{FIELDS, Field, FieldKinds};
use ollim_bot::webhooks::signature::sign;

use crate::heartbeat::Monitor;
use crate::support::bot::{Service, TestBot, now};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::phone::bot_with_phone;
use crate::webhooks::{SECRET, WebhookBot};

const AGENT: &str = "background: true\nisolated: true\nallowed_tools: [Read, mcp__bot__follow_up_chain, mcp__bot__report_updates]\nretry: 0\n";
const AGENT_WITHOUT_TOOLS: &str = "background: true\nisolated: true\nretry: 0\n";
const NOTIFY: &str = "client: notify\n";
const EXEC: &str = "client: exec\nallowed_tools: ['Bash(cp *)', 'Bash(tar *)']\nretry: 0\n";

/// Returns the lines that an example needs beside it.
fn companions(field: &Field) -> String {
    match field.name {
        "client" => String::new(),
        "command" => EXEC.to_owned(),
        "deliver" => format!("{EXEC}command: echo done\n"),
        "expect" => format!("{EXEC}command: 'cp notes/a.md notes/today.md'\n"),
        "requires_for" => format!("{NOTIFY}requires: [online]\n"),
        "gate_timeout" => format!("{AGENT}gate: 'true'\n"),
        "allowed_tools" | "disallowed_tools" => AGENT_WITHOUT_TOOLS.to_owned(),
        "background" => "isolated: true\nallowed_tools: [Read]\nretry: 0\n".to_owned(),
        "isolated" => "background: true\nallowed_tools: [Read]\nretry: 0\n".to_owned(),
        "retry" => "client: notify\n".to_owned(),
        "ask" => format!("{AGENT}ask_tools: [Glob]\n"),
        "jitter" => format!("{NOTIFY}cron: '0 0 29 2 *'\n"),
        "chain_depth" | "chain_parent" => format!("{AGENT}max_chain: 3\n"),
        _ if field.is_for_agents() => AGENT.to_owned(),
        _ => NOTIFY.to_owned(),
    }
}

/// Returns the kind of definition in which an example stands, and the line that fires it, unless the example is that line itself.
fn place(field: &Field) -> (Kind, String) {
    match field.on {
        FieldKinds::Webhook => (Kind::Webhook, String::new()),
        FieldKinds::Routine | FieldKinds::Recurring => {
            let own = ["cron", "every", "after", "watch", "jitter"].contains(&field.name);
            (Kind::Routine, if own { String::new() } else { "cron: '0 0 29 2 *'\n".to_owned() })
        }
        _ if field.name == "run_at" => (Kind::Reminder, String::new()),
        _ => (Kind::Reminder, format!("run_at: \"{}\"\n", now().to_rfc3339())),
    }
}

/// Returns each field's example as the document prints it.
fn documented() -> Vec<(&'static Field, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/definitions.md");
    let document = std::fs::read_to_string(path).unwrap();
    let line = |field: &Field| {
        let section = document.split_once(&format!("\n### `{}`\n", field.name)).unwrap().1;
        section.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0.to_owned()
    };
    FIELDS.iter().map(|field| (field, line(field))).collect()
}

/// Returns the id of the job with a field's example.
fn id(field: &Field) -> String {
    match field.name {
        "id" => "check-the-oven".to_owned(),
        name => format!("with-{}", name.replace('_', "-")),
    }
}

/// Writes the jobs that examples name, and what they read.
fn surroundings(bot: &TestBot) {
    for other in ["email-triage", "calendar"] {
        bot.write(&format!("routines/{other}.md"), "---\ncron: '0 0 29 2 *'\nclient: notify\n---\nDone.\n");
    }
    bot.write("skills/mail/SKILL.md", "---\nname: mail\ndescription: How to read mail\n---\nRead it.\n");
    bot.external_command("gmail", "#!/bin/sh\n");
    bot.external_command("cal", "#!/bin/sh\n");
    for (path, text) in [("inbox.txt", "a letter\n"), ("notes/a.md", "a\n"), ("inbox/old", "")] {
        bot.write(&format!("work/{path}"), text);
    }
}

/// Makes a job fire that does not fire by itself.
fn fire(field: &Field, bot: &TestBot, service: &Service<'_>) {
    let id = id(field);
    match field.name {
        "after" => _ = service.fire("email-triage"),
        "watch" => bot.write("work/inbox/new", "x"),
        "approve" => {
            let asked = || bot.json(["questions"]).as_array().unwrap().iter().find(|one| one["id"] == *id).cloned();
            let number = service.until("it asks", asked)["number"].to_string();
            bot.ok(["questions", "answer", &number, "allow"]);
        }
        "run_at" | "enabled" => _ = service.fire(&id),
        // Where the machine has what is required, it has run by itself, and is not there any more.
        "requires" | "requires_for" => _ = bot.run(["fire", &*id, "--wait"]),
        _ if place(field).0 == Kind::Routine => _ = service.fire(&id),
        _ => {}
    }
}

#[test]
fn each_example_runs_as_a_job() {
    let api = MessagesApi::answering(|_| Reply::say("done"));
    let (bot, monitor) = (bot_with_phone(&api), Monitor::new(true));
    surroundings(&bot);
    let examples: Vec<_> = documented().into_iter().filter(|(field, _)| place(field).0 != Kind::Webhook).collect();
    let service = bot.start();
    for (field, line) in &examples {
        let (kind, when) = place(field);
        // The monitor of the example is somebody's.
        let line = line.replace("https://hc-ping.com/0f3c5d0e-…", &monitor.url);
        let file = id(field).replace("check-the-oven", "oven");
        let text = format!("---\n{when}{}{line}---\nThe job of {}.\n", companions(field), field.name);
        bot.write(&format!("{kind}s/{file}.md"), &text);
    }
    let checked = bot.run(["check"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    for (field, _) in &examples {
        fire(field, &bot, &service);
    }
    for (field, line) in &examples {
        let run = service.until_ended(&id(field), 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{line}: {run:#}\n{}", service.output());
    }
    assert!(bot.read("work/notes/today.md").is_some() && bot.path("work/notes.tar").is_file());
    assert!(!monitor.notifications().is_empty());
    assert!(api.requests().iter().any(|request| request.mentions("| a letter")), "the gate's output");
    service.stop();
}

#[test]
fn each_example_of_a_webhook_accepts_a_delivery() {
    let hooked = WebhookBot::new();
    hooked.bot.secrets(&format!("WEBHOOK_SECRET={SECRET}\nGITHUB_WEBHOOK_SECRET={SECRET}\n"));
    let examples: Vec<_> = documented().into_iter().filter(|(field, _)| place(field).0 == Kind::Webhook).collect();
    for (field, line) in &examples {
        hooked.bot.write(&format!("webhooks/{}.md", id(field)), &format!("---\n{NOTIFY}{line}---\nIt came.\n"));
    }
    assert!(examples.len() >= 4);
    let service = hooked.start();
    for (field, line) in &examples {
        let payload = r#"{"ref":"main"}"#;
        let header = match field.name {
            "signature" => ("X-Hub-Signature-256", format!("sha256={}", sign(SECRET, &[payload.as_bytes()]))),
            _ => ("Authorization", format!("Bearer {SECRET}")),
        };
        let path = format!("/hook/{}", id(field));
        let answer = hooked.send("POST", &path, &[(header.0, &*header.1)], payload.as_bytes());
        assert_eq!(answer.status, 202, "{line}: {answer:?}");
        let run = service.until_ended(&id(field), 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{line}: {run:#}");
    }
    service.stop();
}
