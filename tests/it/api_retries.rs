//! The error of a run whose API cannot be reached, and the client's own retries in `status`.

use serde_json::json;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;

#[test]
fn an_api_that_cannot_be_reached_is_named_while_it_runs_and_afterwards() {
    // No server listens on this port.
    let bot = TestBot::with_client(&client::real(), "http://127.0.0.1:9");
    let fields = "background: true\nisolated: true\nretry: 0\ntimeout: 20s\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Do the thing."));
    let service = bot.start();
    let running = service.until("its retries are seen while it runs", || {
        let status = bot.json(["status"]);
        status["running"][0]["api_retries"].as_u64().filter(|retries| *retries > 0)?;
        Some(bot.ok(["status"]))
    });
    assert!(running.contains("the API cannot be reached; the client tried again "), "{running}");
    let run = service.until_ended("job", 1).remove(0);
    service.stop();
    assert_eq!(run["outcome"], "failed", "{run:#}");
    assert_eq!(run["api_fault"], json!("the API cannot be reached"), "{run:#}");
    let error = run["error"].as_str().unwrap();
    assert!(error.starts_with("the API cannot be reached; the agent client tried "), "{error}");
    assert!(error.ends_with("until 20s were over (`timeout`)"), "{error}");
    let shown = bot.ok(["runs", "show", run["run"].as_str().unwrap()]);
    assert!(shown.contains("API         the API cannot be reached; the client tried again "), "{shown}");
}

#[test]
fn a_run_that_is_cancelled_while_its_api_cannot_be_reached_says_so() {
    let bot = TestBot::with_client(&client::real(), "http://127.0.0.1:9");
    bot.write("reminders/job.md", &reminder(now(), "background: true\nisolated: true\n", "Do the thing."));
    let service = bot.start();
    let run = service.until("its retries are seen", || {
        let run = bot.json(["status"])["running"][0].clone();
        run["api_retries"].as_u64().filter(|retries| *retries > 0)?;
        Some(run["run"].as_str()?.to_owned())
    });
    bot.ok(["cancel-run", &run]);
    let ended = service.until_ended("job", 1).remove(0);
    assert_eq!(ended["outcome"], "cancelled", "{ended:#}");
    let runs = bot.ok(["runs"]);
    assert!(runs.contains("the API cannot be reached; the client tried again "), "{runs}");
    service.stop();
}
