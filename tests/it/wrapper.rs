//! Misbehaving clients: the wrapper leaves nothing of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollim_bot::agent::{AgentClient, AttemptEnd, AttemptReport, FailureClass, Notify, Request};
use serde_json::Value;

use crate::support::client;
use crate::support::turn::{Fixture, HookReply, Host};
use crate::support::{processes, turn, wait};

/// Answers `initialize` and reads the prompt, as a client does before its turn.
const GREETING: &str = r#"read -r initialize
echo '{"type":"control_response","response":{"subtype":"success","request_id":"ollim-initialize","response":{}}}'
read -r prompt
"#;
/// `system/init` of a client without tools, and a `result`.
const INIT: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s-1","tools":[]}'
"#;
const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"done","total_cost_usd":0.25,"session_id":"s-1"}'
"#;

/// A client that runs `body`, where `$HERE` is a folder of the test.
struct FakeClient {
    folder: tempfile::TempDir,
    fixture: Fixture,
    host: Arc<Host>,
}

impl FakeClient {
    fn new(body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = client::script(folder.path(), &format!("HERE={}\n{body}", folder.path().display()));
        let mut fixture = Fixture::new(&command, "http://127.0.0.1:9");
        fixture.claude.limits.interrupt = Duration::from_millis(100);
        fixture.claude.limits.leave = Duration::from_millis(300);
        fixture.claude.limits.restart_delays = vec![];
        Self { folder, fixture, host: Arc::new(Host::new(|_| HookReply::Allow)) }
    }

    async fn run(&self, change: impl FnOnce(&mut Request)) -> AttemptReport {
        let mut request = self.fixture.request(&self.host, "do it", &[]);
        change(&mut request);
        let report = self.fixture.run(request).await;
        assert_eq!(self.processes(), [], "nothing is left");
        report
    }

    fn processes(&self) -> Vec<processes::Process> {
        let mut found = processes::naming(&self.fixture.root);
        found.extend(processes::naming(self.folder.path()));
        found
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

#[track_caller]
fn failed(report: &AttemptReport, class: FailureClass, words: &str) {
    let AttemptEnd::Failed(failure) = &report.end else { panic!("{report:?}") };
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.message.contains(words), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exchanges_of_the_protocol_replay() {
    for (fixture, denied) in [("allowed-tools", 0), ("disallowed-tools", 1)] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/tool-restriction-{fixture}.jsonl"));
        let lines: Vec<Value> =
            std::fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said = |direction: &str| -> Vec<String> {
            lines.iter().filter(|line| line["direction"] == direction).map(|line| line["message"].to_string()).collect()
        };
        let fake = FakeClient::new(&format!("{GREETING}echo \"$prompt\" > $HERE/prompt\ncat $HERE/answers"));
        std::fs::write(fake.folder.path().join("answers"), said("from_client").join("\n") + "\n").unwrap();
        let report = fake.run(|request| request.prompt = "write a file".into()).await;
        assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
        assert_eq!(report.answer.as_deref(), Some("Write tool was denied."));
        assert_eq!((report.session, report.cost_usd, report.turns), (None, Some(0.0), Some(0)));
        let told = fake.host.client_denied.lock().unwrap().clone();
        assert_eq!(told.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), vec!["Write"; denied]);
        // Our message has every field of the published example.
        let sent: Value = serde_json::from_str(&fake.read("prompt")).unwrap();
        let expected: Value = serde_json::from_str(&said("to_client")[0]).unwrap();
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&sent[name], value, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_end_is_told_with_the_last_words() {
    let report = FakeClient::new("echo no luck today >&2; exit 3").run(|_| {}).await;
    failed(&report, FailureClass::ExitedEarly, "code 3");
    failed(&report, FailureClass::ExitedEarly, "no luck today");
    let report = FakeClient::new(&format!("{GREETING}{INIT}kill -9 $$")).run(|_| {}).await;
    failed(&report, FailureClass::ExitedEarly, "code 137");
    assert_eq!(report.session.unwrap().0, "s-1", "what it had said is kept");
    // The client closes its input at once, and ends.
    let report = FakeClient::new("exec 0<&-; exit 0").run(|_| {}).await;
    failed(&report, FailureClass::ExitedEarly, "code 0");
    // The client would take this prompt for a command of its own.
    let fake = FakeClient::new("touch $HERE/started");
    failed(&fake.run(|request| request.prompt = " /clear".into()).await, FailureClass::Internal, "begins with `/`");
    // The configuration folder is a link to elsewhere.
    std::os::unix::fs::symlink(fake.folder.path(), fake.fixture.run_dir().join("claude")).unwrap();
    failed(&fake.run(|_| {}).await, FailureClass::Internal, "it is a symlink");
    assert!(!fake.folder.path().join("started").exists());
    // The client cannot be started at all.
    let fake = FakeClient::new("");
    std::fs::remove_file(fake.folder.path().join("claude")).unwrap();
    failed(&fake.run(|_| {}).await, FailureClass::SpawnFailed, "npm install -g @anthropic-ai/claude-code");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_passed_over_up_to_a_point() {
    let noise =
        "for i in $(seq 50); do echo 'not json {'; echo; done; echo '[1]'; echo '{\"type\":\"new\",\"x\":{}}'\n";
    let report = FakeClient::new(&format!("{GREETING}{noise}{INIT}{RESULT}")).run(|_| {}).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let report = FakeClient::new(&format!("{GREETING}{INIT}yes '}}{{'")).run(|_| {}).await;
    failed(&report, FailureClass::Garbage, "over 100 lines");
}

/// A gigabyte without a line feed: the run ends after a part of it, and memory stays bounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_without_a_line_feed_is_cut_off() {
    let fake =
        FakeClient::new(&format!("{GREETING}{INIT}head -c 1000000000 /dev/zero | tr '\\0' x && touch $HERE/whole"));
    let report = fake.run(|_| {}).await;
    failed(&report, FailureClass::Garbage, "64 MiB");
    assert!(!fake.folder.path().join("whole").exists(), "it was not read to its end");
    // Both streams at once: a flood on standard error does not block the turn, and only its last part is kept.
    let complaints = "head -c 50000000 /dev/zero | tr '\\0' y >&2; echo the-end >&2\n";
    let report = FakeClient::new(&format!("{GREETING}{INIT}{complaints}exit 5")).run(|_| {}).await;
    failed(&report, FailureClass::ExitedEarly, "the-end");
    let AttemptEnd::Failed(failure) = report.end else { unreachable!() };
    assert!(failure.message.len() < 5000, "{}", failure.message.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_is_tried_again_and_then_ended() {
    let mut fake = FakeClient::new("trap '' TERM INT HUP; while :; do read -r -t 1000 line; sleep 1000; done");
    fake.fixture.claude.limits.initialize = Duration::from_millis(300);
    fake.fixture.claude.limits.restart_delays = vec![Duration::from_millis(1), Duration::from_millis(2)];
    let report = fake.run(|_| {}).await;
    failed(&report, FailureClass::InitializeTimeout, "did not answer");
    assert_eq!(fake.host.started.lock().unwrap().len(), 3);
    // The client hangs in the middle of its turn.
    let fake = FakeClient::new(&format!("{GREETING}{INIT}trap '' TERM INT HUP; sleep 1000; sleep 1000"));
    let report = fake.run(|request| request.inactivity_timeout = Duration::from_millis(300)).await;
    assert!(matches!(&report.end, AttemptEnd::TimedOut(limit) if limit.contains("inactivity_timeout")), "{report:?}");
    // The client hangs after its result: the result counts, and the run does not wait.
    let fake = FakeClient::new(&format!(
        "{GREETING}{INIT}{RESULT}trap '' TERM INT HUP; exec 0<&-; while :; do sleep 1000; done"
    ));
    let report = fake.run(|_| {}).await;
    assert_eq!((report.end, report.answer.as_deref()), (AttemptEnd::Completed, Some("done")));
}

/// Escapes from the tree: own sessions, double forks, ignored signals, closed descriptors.
const ORPHANS: &str = r#"
for i in 1 2 3; do
  (setsid bash -c "trap '' TERM INT HUP; exec 0<&- 1>&- 2>&-; while :; do sleep 1000; done" &)
  (setsid setsid bash -c "(trap '' TERM; sleep 1000 & sleep 1000 & wait) & disown; exit" &)
done
(cd /; env -i setsid bash -c "exec -a $HERE/orphan sleep 1000" &)
bash -c 'f() { sleep 1000 & f2 & }; f2() { setsid sleep 1000 & }; f; sleep 0.01' &
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_leaves_behind_is_ended() {
    let fake = FakeClient::new(&format!("{GREETING}{INIT}{ORPHANS}{RESULT}"));
    let report = fake.run(|_| {}).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert_eq!(processes::zombies_of(std::process::id()), []);
}

/// A tree that forks faster than its processes can be counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_keeps_forking_is_ended() {
    let restless = "restless() { while :; do (setsid sh -c 'sleep 0.05; sleep 0.05' &); done; }\n\
        restless & restless & (setsid bash -c \"$(declare -f restless); restless\" &)\n";
    let fake = FakeClient::new(&format!("{GREETING}{INIT}{restless}{RESULT}"));
    let report = fake.run(|_| {}).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
}

/// The client can signal neither its runner nor the reaper above it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_behind_the_wall_cannot_end_its_wrapper() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let fake = FakeClient::new(&format!(
        "{GREETING}{INIT}(setsid sleep 1000 &)\nread -r _ _ _ reaper _ < /proc/$PPID/stat; echo $reaper > $TMPDIR/reaper\n\
         for pid in $PPID $reaper; do for signal in TERM HUP KILL STOP; do\n\
         kill -$signal $pid && echo sent; done; done > $TMPDIR/said 2>&1\n{RESULT}"
    ));
    let mut sandbox = fake.fixture.sandbox(&[]);
    if let Some(client) = &mut sandbox.client {
        client.read.push(fake.folder.path().to_path_buf());
    }
    let report = fake.run(|request| request.sandbox = sandbox).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let file = |name: &str| std::fs::read_to_string(fake.fixture.run_dir().join("client").join(name)).unwrap();
    assert_eq!(file("reaper").trim(), fake.host.started.lock().unwrap()[0].0.to_string());
    let said = file("said");
    assert_eq!((said.matches("Operation not permitted").count(), said.lines().count()), (8, 8), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_is_answered() {
    let questions = [
        r#"{"type":"control_request","request_id":"q1","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"early"}}}}"#,
        r#"{"type":"system","subtype":"init","session_id":"s-1","tools":["mcp__discord__ping_user"]}"#,
        r#"{"type":"control_request","request_id":"q2","request":{"subtype":"brew_tea"}}"#,
        r#"{"type":"control_request","request_id":"q3","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","tool_name":7}}}"#,
        r#"{"type":"control_request","request_id":"q4","request":{"subtype":"hook_callback","callback_id":"hook_9","input":{"hook_event_name":"PreToolUse","tool_name":"Bash"}}}"#,
        r#"{"type":"control_request","request_id":"q5","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"x"}}}"#,
        r#"{"type":"control_request","request_id":"q6","request":{"subtype":"mcp_message","server_name":"other","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}"#,
        // The client calls our own tool without asking the hook first.
        r#"{"type":"control_request","request_id":"q7","request":{"subtype":"mcp_message","server_name":"discord","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ping_user","arguments":{"message":"x"}}}}}"#,
        r#"{"type":"control_request","request_id":"q8","request":{"subtype":"mcp_message","server_name":"discord","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}}"#,
        r#"{"type":"control_request","request_id":"q9"}"#,
        r#"{"type":"control_request","request_id":"q10","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"late"},"tool_use_id":"t"}}}"#,
    ];
    let fake = FakeClient::new(&format!(
        "{GREETING}while read -r q <&3; do echo \"$q\"; case $q in *control_request*) read -r a; echo \"$a\" >> $HERE/answers;; esac; done 3< $HERE/questions\n{RESULT}"
    ));
    std::fs::write(fake.folder.path().join("questions"), questions.join("\n") + "\n").unwrap();
    let report = fake.run(|request| request.mcp_tools = vec!["ping_user".into()]).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let answers: Vec<Value> = fake.read("answers").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = answers
        .iter()
        .map(|answer| {
            let response = &answer["response"];
            let id = response["request_id"].as_str().unwrap();
            let mut inner = response.get("response").unwrap_or(&response["error"]);
            inner = inner.get("hookSpecificOutput").unwrap_or(inner);
            format!("{id} {} {inner}", response["subtype"].as_str().unwrap())
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    q1 success {"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"denied: the agent client has not said yet which tools it shows"}
    q2 error "`brew_tea` is not supported"
    q3 success {"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"denied: ollim-bot does not understand how this call is put"}
    q4 success {"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"denied: ollim-bot does not understand how this call is put"}
    q5 success {"behavior":"deny","message":"denied: nobody can be asked in a background job"}
    q6 error "there is no MCP server `other` here"
    q7 success {"mcp_response":{"id":2,"jsonrpc":"2.0","result":{"content":[{"text":"`ping_user` was not approved for this call, so nothing was done","type":"text"}],"isError":true}}}
    q8 success {"mcp_response":{"jsonrpc":"2.0","result":{}}}
    q9 error "`` is not supported"
    q10 success {"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Allow by the test: Bash"}
    "#);
    assert_eq!(fake.host.asked_tools(), ["Bash"], "only the last one was put to the host");
    assert!(fake.host.served.lock().unwrap().is_empty());
}

/// The real client has two conversations with our server, and each counts from zero.
#[tokio::test(flavor = "multi_thread")]
async fn two_conversations_with_our_server_are_kept_apart() {
    let ask = |id: &str, message: &str| {
        let request = format!(r#"{{"subtype":"mcp_message","server_name":"discord","message":{message}}}"#);
        format!("echo '{{\"type\":\"control_request\",\"request_id\":\"{id}\",\"request\":{request}}}'\n")
    };
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let all = [("a", hello), ("b", hello), ("a2", ready), ("b2", ready), ("a3", list), ("b3", list)]
        .map(|(id, message)| ask(id, message));
    let init = INIT.replace("[]", r#"["mcp__discord__ping_user"]"#);
    let fake = FakeClient::new(&format!(
        "{GREETING}{init}{}\nfor i in 1 2 3 4 5 6; do read -r a; echo \"$a\" >> $HERE/answers; done\n{RESULT}",
        all.concat()
    ));
    let report = fake.run(|request| request.mcp_tools = vec!["ping_user".into()]).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let mut shown: Vec<String> = fake
        .read("answers")
        .lines()
        .map(|line| {
            let answer = &serde_json::from_str::<Value>(line).unwrap()["response"];
            let result = &answer["response"]["mcp_response"];
            format!("{} {} {}", answer["request_id"], result["id"], result["result"]["tools"][0]["name"])
        })
        .collect();
    shown.sort();
    let expect = [
        r#""a" 0 null"#,
        r#""a2" null null"#,
        r#""a3" 1 "ping_user""#,
        r#""b" 0 null"#,
        r#""b2" null null"#,
        r#""b3" 1 "ping_user""#,
    ];
    assert_eq!(shown, expect);
}

/// A burst of questions to a host that answers none: the first ones wait, the rest are denied at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_calls_is_denied() {
    let ask = r#"for i in $(seq 200); do echo '{"type":"control_request","request_id":"q'$i'","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}}}'; done
for i in $(seq 136); do read -r a; echo "$a" >> $HERE/answers; done
"#;
    let mut fake = FakeClient::new(&format!("{GREETING}{INIT}{ask}{RESULT}"));
    fake.host = Arc::new(Host::new(|_| HookReply::Nothing));
    fake.fixture.claude.limits.host_ends = Duration::from_millis(1);
    let report = fake.run(|_| {}).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let answers = fake.read("answers");
    assert_eq!(answers.lines().filter(|line| line.contains(r#""permissionDecision":"deny""#)).count(), 136);
    assert!(answers.contains("too many calls at once"));
}

/// A client that no longer reads but keeps asking: memory stays bounded and the run ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_not_waited_for() {
    let ask = r#"yes '{"type":"control_request","request_id":"q","request":{"subtype":"brew_tea"}}' | head -n 20000
"#;
    let report = FakeClient::new(&format!("{GREETING}{INIT}{ask}{RESULT}exec sleep 1000")).run(|_| {}).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
}

/// If the service is killed, the kernel closes its end of the socket, as here.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_service() {
    let fake =
        Arc::new(FakeClient::new(&format!("{GREETING}{INIT}{ORPHANS}touch $HERE/up; while :; do sleep 1000; done")));
    let run = tokio::spawn({
        let fake = fake.clone();
        async move { fake.fixture.run(fake.fixture.request(&fake.host, "do it", &[])).await }
    });
    until(&fake, "the client runs", |fake| fake.folder.path().join("up").exists()).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    until(&fake, "no process is left", |fake| fake.processes().is_empty()).await;
}

/// SIGTERM to the reaper or to the runner ends all that is below it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrapper_that_is_told_to_end_ends_the_client() {
    for (to_runner, words) in [(false, "was killed before its turn was over"), (true, "code 137")] {
        let body = format!("{GREETING}{INIT}{ORPHANS}echo $PPID > $HERE/up; while :; do sleep 1000; done");
        let fake = Arc::new(FakeClient::new(&body));
        let run = tokio::spawn({
            let fake = fake.clone();
            async move { fake.run(|_| {}).await }
        });
        until(&fake, "the client runs", |fake| fake.read("up").ends_with('\n')).await;
        let reaper = fake.host.started.lock().unwrap()[0].0;
        let pid = if to_runner { fake.read("up").trim().parse().unwrap() } else { i32::try_from(reaper).unwrap() };
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        failed(&run.await.unwrap(), FailureClass::ExitedEarly, words);
    }
}

/// A wrapper starts before its run. If it is killed meanwhile, another replaces it. An unused one ends with the service.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrapper_that_waits_is_the_next_runs_and_leaves_nothing() {
    let mut fake = FakeClient::new(&format!("{GREETING}{INIT}{RESULT}"));
    // The test's own name for the binary tells its processes apart.
    let shell_binary = fake.folder.path().join("ollim-bot");
    std::os::unix::fs::symlink(&fake.fixture.claude.shell_binary, &shell_binary).unwrap();
    fake.fixture.claude.shell_binary = shell_binary;
    let fake = Arc::new(fake);
    for killed in [false, true] {
        get_ready(&fake).await;
        until(&fake, "a wrapper waits", |fake| fake.processes().len() == 1).await;
        let waiting = fake.processes()[0].pid;
        if killed {
            let waiting = rustix::process::Pid::from_raw(i32::try_from(waiting).unwrap()).unwrap();
            rustix::process::kill_process(waiting, rustix::process::Signal::KILL).unwrap();
            until(&fake, "it has ended", |fake| fake.processes().is_empty()).await;
        }
        let report = fake.run(|_| {}).await;
        assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
        let pid = std::mem::take(&mut *fake.host.started.lock().unwrap())[0].0;
        assert_eq!(pid == waiting, !killed);
    }
    get_ready(&fake).await;
    until(&fake, "a wrapper waits", |fake| fake.processes().len() == 1).await;
    let FakeClient { folder, fixture, host: _ } = Arc::into_inner(fake).unwrap();
    drop(fixture);
    let left = move || processes::naming(folder.path());
    let gone = move || wait::until("it has ended", || left().is_empty().then_some(()), String::new);
    tokio::task::spawn_blocking(gone).await.unwrap();
}

async fn get_ready(fake: &FakeClient) {
    fake.fixture.claude.ready.fill(&fake.fixture.claude.shell_binary).await;
}

async fn until(fake: &Arc<FakeClient>, what: &'static str, ask: impl Fn(&FakeClient) -> bool + Send + 'static) {
    let fake = fake.clone();
    let waiting = move || wait::until(what, || ask(&fake).then_some(()), || format!("{:#?}", fake.processes()));
    tokio::task::spawn_blocking(waiting).await.unwrap();
}

#[tokio::test]
async fn a_message_needs_no_client() {
    let fake = FakeClient::new("exit 1");
    let run = async |change: &dyn Fn(&mut Request)| {
        let mut request = fake.fixture.request(&fake.host, "water the plants", &[]);
        change(&mut request);
        Notify.run(request).await
    };
    assert_eq!(run(&|_| {}).await.end, AttemptEnd::Completed);
    failed(
        &run(&|request| request.needs_agent = Some("it has `skills`".into())).await,
        FailureClass::NeedsClaude,
        "it has `skills`",
    );
    assert_eq!(run(&|request| request.cancel.cancel()).await.end, AttemptEnd::Cancelled);
    assert_eq!(*fake.host.delivered.lock().unwrap(), ["water the plants"]);
}

/// A run's limits hold without a control group too, and its end names the exceeded one.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_much_is_ended() {
    const FORKS: &str = "for i in $(seq 60); do sleep 1000 & done; wait\n";
    const THREADS: &str = "/usr/bin/python3 -c 'import threading, time\nfor _ in range(60): threading.Thread(target=time.sleep, args=(1000,)).start()'\n";
    const MEMORY: &str = "/usr/bin/python3 -c 'import time; kept = b\"x\" * (200 << 20); time.sleep(1000)'\n";
    const DISK: &str = "for i in $(seq 90); do head -c 1M /dev/urandom > $TMPDIR/$i; done; sleep 1000\n";
    const FILES: &str =
        "cd $TMPDIR; d=$(printf 'd%.0s' $(seq 200)); for i in $(seq 30); do mkdir $d; cd $d; done; sleep 1000\n";
    for (name, does, words) in [
        ("processes", FORKS, "`limits.processes` allows 40"),
        ("threads", THREADS, "`limits.processes` allows 40"),
        ("memory", MEMORY, "`limits.memory` allows 128.0 MiB"),
        ("disk", DISK, "`limits.disk` allows (64.0 MiB)"),
        ("depth", FILES, "deeper than anything can reach"),
    ] {
        let fake = FakeClient::new(&format!("{GREETING}{INIT}{does}"));
        let report = fake
            .run(|request| {
                request.limits = agent_sandbox::Limits { memory: 128 << 20, processes: 40, disk: 64 << 20, cpus: None };
            })
            .await;
        let AttemptEnd::Failed(failure) = &report.end else { panic!("{name}: {report:?}") };
        assert_eq!(failure.class, FailureClass::LimitExceeded, "{name}: {failure:?}");
        assert!(failure.message.contains(words), "{name}: {failure:?}");
        assert!(fake.processes().is_empty(), "{name}");
    }
}
