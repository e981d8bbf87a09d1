//! Fields of definitions whose effect no other test shows. Each is tested with the cheapest possible job.

use std::process::Command;

use chrono::{DateTime, TimeDelta};
use serde_json::Value;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client::executable;

/// Writes a command job that only `fields` make fire.
fn job(bot: &TestBot, id: &str, fields: &str, command: &str) {
    let command = serde_json::to_string(command).unwrap();
    let text = format!("---\nclient: exec\ncommand: {command}\nallowed_tools: ['Bash(sleep *)']\n{fields}---\n");
    bot.write(&format!("routines/{id}.md"), &text);
}

const NEVER: &str = "cron: '0 0 29 2 *'\n";

fn outcomes(bot: &TestBot, id: &str) -> Vec<String> {
    let word = |run: &Value| run["outcome"].as_str().unwrap().to_owned();
    bot.runs(id).iter().rev().map(word).collect()
}

fn until(service: &Service<'_>, bot: &TestBot, id: &str, expected: &[&str]) {
    service.until(&format!("{id}: {expected:?}"), || (outcomes(bot, id) == expected).then_some(()));
}

/// `on_overlap`: three occurrences fall due while the first one is running.
#[test]
fn what_overlaps_is_skipped_waits_or_takes_its_place() {
    let bot = TestBot::new();
    job(&bot, "first", NEVER, "true");
    for policy in ["skip", "queue", "cancel"] {
        let fields = format!("after: first\non_overlap: {policy}\n");
        job(&bot, policy, &fields, "until [ -e go ]; do sleep 0.1; done");
    }
    let service = bot.start();
    let all = ["skip", "queue", "cancel"];
    service.fire("first");
    all.iter().for_each(|id| until(&service, &bot, id, &["running"]));
    service.fire("first");
    until(&service, &bot, "skip", &["running", "skipped"]);
    until(&service, &bot, "queue", &["running", "claimed"]);
    until(&service, &bot, "cancel", &["cancelled", "running"]);
    service.fire("first");
    until(&service, &bot, "queue", &["running", "claimed", "skipped"]);
    bot.write("work/go", "x");
    until(&service, &bot, "skip", &["completed", "skipped", "skipped"]);
    until(&service, &bot, "queue", &["completed", "completed", "skipped"]);
    until(&service, &bot, "cancel", &["cancelled", "cancelled", "completed"]);
    service.stop();
}

/// `alert_after`: the person gets one message at the third failure, and one when the job works again.
#[test]
fn failures_are_told_from_the_one_on_that_the_file_names() {
    let bot = TestBot::new();
    job(&bot, "breaks", &format!("{NEVER}alert_after: 3\n"), "[ -e mended ]");
    let service = bot.start();
    let told = || bot.json(["inbox"]).as_array().unwrap().len();
    for expected in [0, 0, 1, 1] {
        service.fire("breaks");
        assert_eq!(told(), expected, "{:#}", bot.json(["inbox"]));
    }
    bot.write("work/mended", "x");
    service.fire("breaks");
    assert_eq!(told(), 2, "{:#}", bot.json(["inbox"]));
    service.stop();
}

/// `urgency`: the channel gets the value.
#[test]
fn a_channel_is_told_how_urgent_a_message_is() {
    let bot = TestBot::new();
    executable(&bot.path("bin/bridge"), "#!/bin/sh\ncat >> messages\necho >> messages\n");
    bot.write("config.yaml", "channels:\n  own: { kind: command, command: [bridge] }\ndefault_channel: own\n");
    let service = bot.start();
    for urgency in ["low", "normal", "critical"] {
        let fields = format!("client: notify\nurgency: {urgency}\n");
        bot.write(&format!("reminders/{urgency}.md"), &reminder(now(), &fields, &format!("It is {urgency}.")));
    }
    let delivered = service.until("all are delivered", || {
        let text = bot.read("state/channels/own/messages").unwrap_or_default();
        let all: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (all.len() >= 3).then_some(all)
    });
    for urgency in ["low", "normal", "critical"] {
        let words = format!("It is {urgency}.");
        let message = delivered.iter().find(|message| message["text"].as_str().unwrap().contains(&words)).unwrap();
        assert_eq!(message["urgency"], urgency, "{message:#}");
    }
    service.stop();
}

/// `requires`, `requires_for`: a network namespace has no default route.
#[test]
fn a_job_waits_for_what_it_requires_or_is_skipped() {
    let apart = |command: &Command| {
        let mut outer = Command::new("unshare");
        outer.args(["-Urn", "--"]).arg(command.get_program()).args(command.get_args());
        outer
    };
    if !apart(&Command::new("true")).status().is_ok_and(|status| status.success()) {
        // This user may not create namespaces here.
        return;
    }
    let bot = TestBot::new();
    let inner = bot.command(["run"]);
    let mut outer = apart(&inner);
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(inner.get_current_dir().unwrap_or(bot.home()));
    let write = |id: &str, fields: &str| {
        let fields = format!("client: notify\n{fields}");
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &fields, "Tea."));
    };
    write("waits", "requires: [online]\n");
    write("gives-up", "requires: [online]\nrequires_for: 1s\n");
    write("runs", "");
    let service = bot.spawn(outer);
    service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
    service.until_ended("runs", 1);
    let skipped = service.until_ended("gives-up", 1).remove(0);
    assert_eq!(skipped["outcome"], "skipped", "{skipped:#}");
    assert_eq!(outcomes(&bot, "waits"), ["claimed"]);
    assert!(bot.ok(["why", "waits"]).contains("online"), "{}", bot.ok(["why", "waits"]));
    // Firing by hand does not wait for the requirement.
    bot.run(["fire", "waits", "--wait"]);
    assert_eq!(outcomes(&bot, "waits"), ["completed"]);
    service.stop();
}

/// `every`, `jitter`: counted from a fixed time, with a constant delay.
#[test]
fn a_span_comes_round_from_a_fixed_moment_and_a_little_later_where_the_file_says_so() {
    let bot = TestBot::new();
    job(&bot, "even", "every: 90m\n", "true");
    job(&bot, "later", "every: 90m\njitter: 30m\n", "true");
    let next = |id: &str| {
        let shown = bot.json(["routine", "show", id]);
        let at = shown["next"].as_str().unwrap_or_else(|| panic!("{shown:#}")).to_owned();
        chrono::DateTime::parse_from_rfc3339(&at).unwrap()
    };
    let began = chrono::DateTime::parse_from_rfc3339("2024-01-01T00:00:00Z").unwrap();
    let rest = |at: chrono::DateTime<chrono::FixedOffset>| (at - began).num_milliseconds() % (90 * 60_000);
    assert_eq!(rest(next("even")), 0);
    let (one, two) = (next("later"), next("later"));
    let late = rest(one);
    assert!(late < 30 * 60_000 && (one == two || late == rest(two)), "{one} {two}");
}

/// `jitter`: an edit puts off a time that has fired.
#[test]
fn a_time_that_has_fired_is_not_announced_again_with_a_new_delay() {
    let bot = TestBot::new().env("TZ", "UTC");
    bot.write("config.yaml", "timezone: UTC\n");
    // The service creates the journal. What has fired is written while it is off.
    bot.start().stop();
    let fired = DateTime::from_timestamp((now().timestamp() / 60 - 2) * 60, 0).unwrap();
    let cron = fired.format("cron: '%M %H * * *'\njitter: 20h\n").to_string();
    let next = |id: &str| {
        let shown = bot.json(["routine", "show", id]);
        DateTime::parse_from_rfc3339(shown["next"].as_str().unwrap_or_else(|| panic!("{shown:#}"))).unwrap().to_utc()
    };
    let is_put_off = |id: &String| {
        job(&bot, id, &cron, "true");
        next(id) - fired < TimeDelta::days(1)
    };
    let id =
        (0..9).map(|number| format!("job-{number}")).find(is_put_off).expect("one of them is delayed by some minutes");
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    let sql = "INSERT INTO occurrence (id, kind, at, by_hand, file, claimed, outcome, file_done)
               VALUES (?1, 'routine', ?2, 0, 'routines/' || ?1 || '.md', ?2, 'completed', 1)";
    journal.execute(sql, rusqlite::params![id, fired.timestamp_millis()]).unwrap();
    let following = next(&id);
    assert!(following - fired >= TimeDelta::days(1), "{following}");
    let told = |words: &[&str], pointer: &str| {
        let said = bot.json(words);
        let at = said.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{words:?}: {said:#}"));
        assert_eq!(DateTime::parse_from_rfc3339(at).unwrap(), following, "{words:?}");
    };
    told(&["routine", "list"], "/0/next");
    told(&["next"], "/0/at");
    told(&["next", &id], "/0/at");
    told(&["status"], "/next/0/at");
    told(&["why", &id], "/next_at");
    let until = (following + TimeDelta::minutes(1)).to_rfc3339();
    told(&["simulate", &id, "--until", &until], "/occurrences/0/at");
}

/// `enabled: false`, `on_missed`: for a time that has passed.
#[test]
fn what_is_missed_is_done_as_the_file_says_and_what_is_disabled_is_not() {
    let bot = TestBot::new();
    let due = now() - TimeDelta::hours(1);
    bot.write("reminders/off.md", &reminder(due, "client: notify\nenabled: false\n", "Off."));
    bot.write("reminders/late.md", &reminder(due, "client: notify\n", "Late."));
    bot.write("reminders/lost.md", &reminder(due, "client: notify\non_missed: skip\n", "Lost."));
    let service = bot.start();
    until(&service, &bot, "late", &["completed"]);
    until(&service, &bot, "lost", &["skipped"]);
    assert_eq!((bot.runs("off").len(), bot.names("reminders")), (0, vec!["failed".to_owned(), "off.md".to_owned()]));
    service.stop();
}
