//! A fork's access to the main session and to its siblings, on the real client and with the widest rules that a file can hold:
//! by the client's own tools, by command lines, and by a program that it may run. The tests run with and without the kernel's
//! sandbox. The hook refuses everything except what a program does by itself, which the kernel refuses.

use std::path::PathBuf;
use std::sync::Arc;

use ollim_bot::agent::AttemptEnd;
use ollim_bot::policy::{ToolPattern, Verdict};
use serde_json::json;

use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, ToolResult};
use crate::support::turn::{self, Fixture, HookReply, Host};

/// The content of every file that the fork must not read.
const SECRET: &str = "plugh-4711";

/// The text that the fork tries to write there.
const EVIL: &str = "xyzzy-evil";

/// Paths relative to the person's home: the main session's transcript, memory, shell snapshot and settings, those of the person's
/// own client, and those of a sibling's run.
const TARGETS: [&str; 11] = [
    "bot/state/main/projects/p/main.jsonl",
    "bot/state/main/projects/p/memory/MEMORY.md",
    "bot/state/main/CLAUDE.md",
    "bot/state/main/shell-snapshots/snapshot-bash-1.sh",
    "bot/state/main/settings.json",
    "bot/state/main/.claude.json",
    ".claude/settings.json",
    ".claude/CLAUDE.md",
    "bot/state/runs/ffffffff/main.jsonl",
    "bot/state/runs/ffffffff/claude/projects/p/own.jsonl",
    "bot/state/runs/ffffffff/claude/shell-snapshots/snapshot-bash-1.sh",
];

/// Returns the ways to a file: a call, and whether only the kernel can refuse it, since its line does not show its effect.
fn ways(path: &str) -> Vec<(Reply, bool)> {
    let write = json!({ "file_path": path, "content": EVIL });
    let edit = json!({ "file_path": path, "old_string": SECRET, "new_string": EVIL });
    vec![
        (Reply::call("Read", json!({ "file_path": path })), false),
        (Reply::call("Write", write), false),
        (Reply::call("Edit", edit), false),
        (Reply::bash(&format!("cat {path}")), false),
        (Reply::bash(&format!("cat < {path}")), false),
        (Reply::bash(&format!("echo {EVIL} >> {path}")), false),
        (Reply::bash(&format!("cp notes/evil {path}")), false),
        (Reply::bash("./tool"), true),
    ]
}

/// Creates a desk with all targets, and with a program that tries to read and change each.
fn fixture(url: &str) -> Fixture {
    let fixture = Fixture::new(&client::real(), url);
    let paths: Vec<PathBuf> = TARGETS.iter().map(|target| fixture.home().join(target)).collect();
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{SECRET}\n")).unwrap();
    }
    std::fs::create_dir_all(fixture.work().join("notes")).unwrap();
    std::fs::write(fixture.work().join("notes/evil"), EVIL).unwrap();
    let lines: Vec<String> =
        paths.iter().map(|path| format!("cat '{0}'; echo {EVIL} >> '{0}'\n", path.display())).collect();
    client::executable(&fixture.work().join("tool"), &format!("#!/bin/sh\n{}true\n", lines.concat()));
    fixture
}

/// Lets the fork try everything. Returns the result of each call.
fn try_all(fixture: &Fixture, api: &MessagesApi) -> Vec<ToolResult> {
    let granted: Vec<ToolPattern> =
        ["Bash(cat *)", "Bash(echo *)", "Bash(cp *)", "Bash(./tool)", "Read(//**)", "Read", "Edit(//**)", "Edit"]
            .map(|text| ToolPattern::parse(text).unwrap())
            .to_vec();
    let (policy, sandbox) = fixture.job_sandbox(granted);
    let visible = policy.visible_tools();
    let visible: Vec<&str> = visible.iter().map(String::as_str).collect();
    let (judging, judged_by) = (sandbox.clone(), policy.clone());
    let mut host = Host::new(move |call| match policy.decide(call).verdict {
        Verdict::Allow => HookReply::Allow,
        Verdict::Deny | Verdict::Ask => HookReply::Deny,
    });
    host.judges = Some(Box::new(move |start| judging.judge(&judged_by, start).answer));
    let host = Arc::new(host);
    let mut request = fixture.request(&host, "do it", &visible);
    request.sandbox = sandbox.for_client(true);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let report = runtime.block_on(fixture.run(request));
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    api.last().results()
}

/// Asserts that no call that the hook must refuse had an effect. Returns the output and the effects of the program.
fn lived() -> (String, Vec<String>) {
    // The script needs the paths, and the desk needs the script's address.
    let at = Arc::new(std::sync::OnceLock::<PathBuf>::new());
    let home = at.clone();
    let api = MessagesApi::answering(move |request| {
        let all: Vec<(Reply, bool)> = TARGETS
            .iter()
            .flat_map(|target| ways(home.get().unwrap().join(target).to_str().unwrap()))
            .filter(|(_, by_itself)| !by_itself)
            .collect();
        let by_itself = ways("").pop().map(|(reply, _)| reply);
        let calls = all.into_iter().map(|(reply, _)| reply).chain(by_itself);
        calls.collect::<Vec<_>>().get(request.answers()).cloned().unwrap_or_else(|| Reply::say("done"))
    });
    let fixture = fixture(api.url());
    at.set(fixture.home()).unwrap();
    let results = try_all(&fixture, &api);
    assert_eq!(results.len(), TARGETS.len() * 7 + 1);
    let (program, others) = results.split_last().unwrap();
    for result in others {
        assert!(result.is_error && !result.text.contains(SECRET), "{result:?}");
    }
    let changed = TARGETS.iter().filter(|target| {
        let text = std::fs::read_to_string(fixture.home().join(target)).unwrap();
        text != format!("{SECRET}\n")
    });
    (program.text.clone(), changed.map(|target| (*target).to_owned()).collect())
}

#[test]
fn a_fork_gets_at_neither_the_main_session_nor_a_sibling() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let (program, changed) = lived();
    assert!(program.contains("Permission denied"), "it did run: {program}");
    assert!(!program.contains(SECRET), "{program}");
    assert_eq!(changed, Vec::<String>::new());
}
