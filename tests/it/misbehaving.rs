//! Clients that misbehave: each ends as recorded, and nothing of it survives.

use serde_json::Value;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::{client, processes};

/// Runs one job on a client that is this script, and returns its record.
fn record(script: &str, fields: &str) -> (Value, String) {
    let scripts = tempfile::TempDir::new().unwrap();
    let client = client::script(scripts.path(), script);
    let bot = TestBot::with_client(&client, "http://127.0.0.1:9");
    let fields = format!("background: true\nisolated: true\nretry: 0\nallowed_tools: []\n{fields}");
    bot.write("reminders/job.md", &reminder(now(), &fields, "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    service.until("nothing but the service is left, no zombie either", || {
        let alone = bot.processes().iter().all(|process| process.pid == service.pid());
        (alone && processes::zombies_of(service.pid()).is_empty()).then_some(())
    });
    service.until("it is kept among the failed", || bot.read("reminders/failed/job.md"));
    // The service still works.
    bot.write("reminders/after.md", &reminder(now(), &fields, "Do another thing."));
    service.until_ended("after", 1);
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    bot.until_no_processes();
    (run, said)
}

#[test]
fn one_that_hangs_runs_out_of_time() {
    let (run, _) = record("exec sleep 1000", "timeout: 1s\n");
    assert_eq!(run["outcome"], "timed_out", "{run:#}");
}

#[test]
fn one_that_ignores_sigterm_is_killed() {
    let (run, _) = record("trap '' TERM INT HUP\nwhile true; do sleep 1000; done", "timeout: 1s\n");
    assert_eq!(run["outcome"], "timed_out", "{run:#}");
}

#[test]
fn one_that_exits_early_failed_with_its_last_words() {
    let (run, _) = record("echo 'the disk fell out' >&2\nexit 3", "");
    assert_eq!(run["outcome"], "failed", "{run:#}");
    assert!(run["error"].as_str().unwrap().contains("the disk fell out"), "{run:#}");
}

#[test]
fn one_that_writes_garbage_failed() {
    let (run, _) = record("yes 'this is not JSON'", "timeout: 30s\n");
    assert_eq!(run["outcome"], "failed", "{run:#}");
}

#[test]
fn one_that_writes_without_end_or_line_feed_failed() {
    let (run, _) = record("exec tr '\\0' x < /dev/zero", "timeout: 60s\n");
    assert_eq!(run["outcome"], "failed", "{run:#}");
}

#[test]
fn orphans_of_one_are_ended_with_it() {
    // Forked twice, in its own session and folder, ignoring signals, without its parent's environment.
    let orphan = "trap '' TERM INT HUP; while true; do sleep 1000; done";
    let script =
        format!("mark=$OLLIM_HOME\n(cd / && setsid env -i /bin/bash -c \"{orphan}\" \"$mark\" &)\nsleep 0.3\nexit 3");
    let (run, _) = record(&script, "");
    assert_eq!(run["outcome"], "failed", "{run:#}");
}

#[test]
fn a_client_that_is_not_there_is_said_with_a_remedy() {
    let bot = TestBot::with_client(std::path::Path::new("/nonexistent/claude"), "http://127.0.0.1:9");
    bot.write("reminders/job.md", &reminder(now(), "background: true\nretry: 0\n", "Do the thing."));
    let started = bot.start_with(["run", "--for", "30s"]);
    let told = started.until("it says what is missing", || {
        let said = started.output();
        said.contains("npm install -g @anthropic-ai/claude-code").then_some(said)
    });
    assert!(told.contains("/nonexistent/claude"), "{told}");
}
