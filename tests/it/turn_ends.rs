//! The end of a turn: not before everything that the client started has ended, on each real client. A client without
//! our switch against such tasks stands for future ones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollim_bot::agent::{AttemptEnd, AttemptReport, Failure, FailureClass};
use serde_json::{Value, json};

use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, Request};
use crate::support::turn::{Fixture, HookReply, Host};

const SWITCH: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

fn agent(more: &[(&str, Value)]) -> Reply {
    let mut input = json!({"description": "look", "prompt": "be quick, helper", "subagent_type": "general-purpose"});
    more.iter().for_each(|(name, value)| input[*name] = value.clone());
    Reply::call("Agent", input)
}

fn bash(command: &str, background: bool) -> Reply {
    let mut input = json!({"command": command, "description": "build"});
    if background {
        input["run_in_background"] = true.into();
    }
    Reply::call("Bash", input)
}

fn is_agents(request: &Request) -> bool {
    !request.mentions("[reminder-bg:test]")
}

/// Returns a host that denies marked calls and allows the rest.
fn host() -> Arc<Host> {
    Arc::new(Host::new(
        |call| if call.input.to_string().contains("denied") { HookReply::Deny } else { HookReply::Allow },
    ))
}

/// Returns a command that continues after the session's model has ended its turn.
fn after(mark: &Path, command: &str) -> String {
    format!("while ! [ -e {} ]; do sleep 0.02; done; {command}", mark.display())
}

/// Replies of an agent that makes three calls, the last of them denied. `wait` comes before the first.
fn three_calls(request: &Request, wait: impl Fn(&str) -> String) -> Reply {
    match request.answers() {
        0 => bash(&wait("echo 1 > one.txt"), false),
        1 => bash("echo 2 > two.txt", false),
        2 => bash("echo 3 > denied.txt", false),
        _ => Reply::say("helped"),
    }
}

fn check_three_calls(fixture: &Fixture, host: &Host, report: &AttemptReport) {
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let there = ["one.txt", "two.txt", "denied.txt"].map(|name| fixture.work().join(name).exists());
    assert_eq!(there, [true, true, false]);
    let of_agent = host.asked.lock().unwrap().iter().filter(|call| call.agent_type.is_some()).count();
    assert_eq!(of_agent, 3, "each call was put to the host");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_waited_for_and_nothing_can_be_started_beside_the_turn() {
    for client in client::each() {
        let api = MessagesApi::answering(|request| match (is_agents(request), request.answers()) {
            (true, _) => three_calls(request, ToOwned::to_owned),
            (false, 0) => agent(&[]),
            (false, 1) => bash("echo evil > beside.txt", true),
            _ => Reply::say("all done"),
        });
        let (fixture, host) = (Fixture::new(&client, api.url()), host());
        let report = fixture.run(fixture.request(&host, "do it", &["Agent", "Bash"])).await;
        check_three_calls(&fixture, &host, &report);
        assert!(!fixture.work().join("beside.txt").exists());
        for tool in api.requests()[0].body["tools"].as_array().unwrap() {
            assert!(tool["input_schema"]["properties"].get("run_in_background").is_none(), "{tool}");
        }
        let last = api.last();
        assert!(last.results()[0].text.contains("helped"), "what it found came with its call: {last:?}");
        assert_eq!(report.answer.as_deref(), Some("all done"));
        assert!(host.client_denied.lock().unwrap().iter().any(|(tool, _)| tool == "Bash"), "the refusal is counted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_outlives_the_turn_is_waited_for_and_its_calls_are_judged() {
    for client in client::each() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("said");
        let (said, wait) = (mark.clone(), mark.clone());
        let api = MessagesApi::answering(move |request| match (is_agents(request), request.answers()) {
            (true, _) => three_calls(request, |command| after(&wait, command)),
            (false, 0) => agent(&[("run_in_background", true.into())]),
            (false, _) if request.mentions("helped") => Reply::say("it helped"),
            _ => {
                std::fs::write(&said, "").unwrap();
                Reply::say("it will be done")
            }
        });
        let (fixture, host) =
            (Fixture::new(&client::without_variable(folder.path(), &client, SWITCH), api.url()), host());
        let report = fixture.run(fixture.request(&host, "do it", &["Agent", "Bash"])).await;
        check_three_calls(&fixture, &host, &report);
        assert_eq!(report.answer.as_deref(), Some("it helped"), "what it found is told to the model");
        assert_eq!(report.turns, Some(3), "of both results: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlives_the_turn_is_waited_for_or_its_loss_is_said() {
    for client in client::each() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("said");
        let deaf = client::without_variable(folder.path(), &client, SWITCH);
        for ends in [true, false] {
            let (said, _) = (mark.clone(), std::fs::remove_file(&mark));
            let command = if ends { after(&mark, "echo ran > beside.txt") } else { "sleep 1000".to_owned() };
            let api = MessagesApi::answering(move |request| match request.answers() {
                0 => bash(&command, true),
                // After an error the run waits for nothing.
                _ if !ends => Reply::Error(400, "invalid_request_error"),
                _ => {
                    std::fs::write(&said, "").unwrap();
                    Reply::say("done")
                }
            });
            let (mut fixture, host) = (Fixture::new(&deaf, api.url()), host());
            fixture.claude.limits.leave = Duration::from_millis(500);
            let report = fixture.run(fixture.request(&host, "do it", &["Bash"])).await;
            assert_eq!(fixture.work().join("beside.txt").exists(), ends, "{report:?}");
            match report.end {
                AttemptEnd::Completed => assert!(ends),
                AttemptEnd::Failed(Failure { message, .. }) => {
                    assert!(!ends && message.ends_with("; `build` was still going and was cut off"), "{message}");
                }
                end => panic!("{end:?}"),
            }
        }
    }
}

/// An agent whose requests fail has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_is_not_waited_for() {
    for client in client::each() {
        let api = MessagesApi::answering(|request| match (is_agents(request), request.answers()) {
            (true, _) => Reply::Error(400, "invalid_request_error"),
            (false, 0) => agent(&[]),
            _ => Reply::say("a pity"),
        });
        let (fixture, host) = (Fixture::new(&client, api.url()), host());
        let report = fixture.run(fixture.request(&host, "do it", &["Agent", "Bash"])).await;
        assert_eq!((report.end, report.answer.as_deref()), (AttemptEnd::Completed, Some("a pity")));
    }
}

/// Runs a stand-in that continues its turn with `lines` when its input is closed after the result.
async fn late(lines: &[Value]) -> (AttemptReport, Arc<Host>) {
    let folder = tempfile::tempdir().unwrap();
    let say = |line: &Value| format!("echo '{line}'\n");
    let answer = json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": "ollim-initialize", "response": {}}});
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "num_turns": 2,
        "total_cost_usd": 0.25, "session_id": "s"});
    let last: String = lines.iter().map(say).collect();
    let (answer, init, result) = (say(&answer), say(&init), say(&result));
    let body = format!("read -r line\n{answer}read -r line\n{init}{result}while read -r line; do :; done\n{last}");
    let (fixture, host) = (Fixture::new(&client::script(folder.path(), &body), "http://127.0.0.1:9"), host());
    (fixture.run(fixture.request(&host, "do it", &["Bash"])).await, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn last_words_are_heard_and_counted() {
    let call = |id: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
        json!({"type": "assistant", "message": {"content": [block]}})
    };
    let refused = |id: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "no", "is_error": true});
        json!({"type": "user", "message": {"content": [block]}})
    };
    let again = json!({"type": "result", "is_error": false, "result": "really done", "num_turns": 1,
        "total_cost_usd": 0.5, "permission_denials": [{"tool_name": "Bash", "tool_use_id": "b", "tool_input": {}}]});
    let (report, host) = late(&[call("a"), refused("a"), again.clone(), again]).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert_eq!((report.cost_usd, report.turns), (Some(0.5), Some(4)));
    assert_eq!(report.answer.as_deref(), Some("really done"));
    assert_eq!(host.client_denied.lock().unwrap().len(), 2, "each once");

    // In published examples of the protocol a denial has no `is_error`.
    let told = |id: &str, content: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        json!({"type": "user", "message": {"content": [block]}})
    };
    let (report, host) = late(&[call("a"), told("a", "Write tool was denied."), call("b"), told("b", "3 files")]).await;
    let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
    assert_eq!(failure.class, FailureClass::SurfaceMismatch, "no call ran by itself: {failure:?}");
    let denied = host.client_denied.lock().unwrap().clone();
    assert_eq!(denied, [("Bash".to_owned(), "Write tool was denied.".to_owned())]);

    let asks = json!({"type": "control_request", "request_id": "q", "request": {"subtype": "hook_callback",
        "callback_id": "hook_0", "input": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}}}});
    let begins = json!({"type": "system", "subtype": "task_started", "task_id": "t", "description": "build"});
    for (lines, words) in [
        (vec![asks.clone(), asks], "it made 2 more calls when the turn was over, which were denied"),
        (vec![begins], "`build` was still going and was cut off"),
    ] {
        let (report, host) = late(&lines).await;
        let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
        assert_eq!(failure.class, FailureClass::ErrorResult);
        assert!(failure.message.ends_with(words), "{failure:?}");
        assert!(host.asked_tools().is_empty());
    }
}
