//! The real agent client, against a stub of its API: what it shows, what runs, what does not.

use std::sync::Arc;

use ollim_bot::agent::AttemptEnd;
use serde_json::json;

use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::turn::{Desk, Host, Say};

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_does_what_the_host_allows_and_nothing_else() {
    let api = MessagesApi::script([
        Reply::bash("echo ran > allowed.txt; echo $((6*7))"),
        Reply::bash("echo ran > denied.txt"),
        Reply::call("mcp__discord__ping_user", json!({"message": "hey"})),
        Reply::call("mcp__discord__report_updates", json!({"message": "hey"})),
        Reply::call("Read", json!({"file_path": "/etc/hostname"})),
        Reply::say("all done"),
    ]);
    let desk = Desk::new(&client::real(), api.url());
    let host =
        Arc::new(Host::new(|call| if call.input.to_string().contains("denied") { Say::Deny } else { Say::Allow }));
    let report = desk.run(desk.request(&host, "do it", &["Bash", "mcp__discord__ping_user"])).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert_eq!(report.answer.as_deref(), Some("all done"));
    assert_eq!(report.turns, Some(6));
    assert!(report.cost_usd.unwrap() > 0.0);
    assert!(report.transcript.as_ref().unwrap().starts_with(desk.run_dir()), "{report:?}");
    assert_eq!(api.requests()[0].tools(), ["Bash", "mcp__discord__ping_user"]);
    let results = api.last().results();
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    assert_eq!(texts[..3], ["42", "Deny by the test: Bash", "ping_user served"]);
    assert!(texts[3].contains("No such tool available"), "{texts:?}");
    assert!(texts[4].contains("No such tool available"), "{texts:?}");
    assert!(desk.work().join("allowed.txt").exists());
    assert!(!desk.work().join("denied.txt").exists());
    assert_eq!(host.asked_tools(), ["Bash", "Bash", "mcp__discord__ping_user"]);
    assert_eq!(*host.served.lock().unwrap(), [("ping_user".to_string(), json!({"message": "hey"}))]);
    let denied: Vec<String> = host.client_denied.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect();
    assert_eq!(denied, ["mcp__discord__report_updates", "Read"]);
    let started = host.started.lock().unwrap();
    assert_eq!((started.len(), &started[1].1), (2, &report.session), "{started:?}");
}
