//! Names that lead elsewhere by the time a file tool of the client opens them. The hook judges names, so it allows everything here: what
//! holds is the kernel's sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use ollim_bot::agent::AttemptEnd;
use ollim_bot::policy::ToolPattern;
use serde_json::json;

use crate::support::bot::{TestBot, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, ToolResult};
use crate::support::turn::{self, Fixture, HookReply, Host};

fn rules(texts: &[&str]) -> Vec<ToolPattern> {
    texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
}

/// The links to the client's shell and to programs, and the folders of granted programs, lie in the run's folder. With another link in their
/// place the client would run a shell without a sandbox. So it would with settings of its model's in its configuration.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_changes_none_of_the_runs_links_and_none_of_its_settings() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let run_dir = Arc::new(std::sync::OnceLock::<PathBuf>::new());
    let of_run = run_dir.clone();
    // The client asks to read a file before it replaces it, and by another name it would.
    let targets = [
        "client-shell/new",
        "program-overlay/new",
        "program-guard/new",
        "p/new",
        "helpers/new",
        "new",
        "claude/remote-settings.json",
        "claude/plugins/new",
        "claude/session-env/new",
        "claude/shell-snapshots/new",
    ];
    let api = MessagesApi::answering(move |request| {
        let path = |at: usize| of_run.get().unwrap().join(targets[at]);
        match request.answers() {
            at if at < targets.len() => Reply::call("Write", json!({ "file_path": path(at), "content": "evil" })),
            at if at == targets.len() => Reply::bash("echo alive; exec 3<>/dev/tcp/127.0.0.1/9"),
            _ => Reply::say("done"),
        }
    });
    let fixture = Fixture::new(&client::real(), api.url());
    run_dir.set(fixture.run_dir()).unwrap();
    let (policy, sandbox) = fixture.job_sandbox(rules(&["Edit(notes/**)", "Bash(ollim-bot help)"]));
    let (judging, judged_by) = (sandbox.clone(), policy);
    let mut host = Host::new(|_| HookReply::Allow);
    host.judges = Some(Box::new(move |start| judging.judge(&judged_by, start).answer));
    let mut request = fixture.request(&Arc::new(host), "do it", &["Write", "Bash"]);
    request.sandbox = sandbox.for_client(true);
    let links = |folder: &str| {
        let entries = std::fs::read_dir(fixture.run_dir().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut links: Vec<_> = entries.map(|path| (std::fs::read_link(&path).unwrap(), path)).collect();
        links.sort();
        links
    };
    let folders = ["client-shell", "program-overlay", "program-guard"];
    let before = folders.map(links);
    let report = fixture.run(request).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let results = api.last().results();
    let (line, writes) = results.split_last().unwrap();
    for ToolResult { text, is_error, .. } in writes {
        // The newest client itself refuses some of these.
        let is_refused = ["EACCES", "denied", "cannot be written directly"].iter().any(|words| text.contains(words));
        assert!(*is_error && is_refused, "{text}");
    }
    assert!(line.text.contains("alive") && line.text.contains("/dev/tcp"), "{}", line.text);
    assert_eq!(folders.map(links), before);
    assert!(!fixture.run_dir().join("new").exists());
    let mut configured: Vec<_> =
        std::fs::read_dir(fixture.run_dir().join("claude")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    configured.sort();
    assert_eq!(configured, ["projects", "session-env", "sessions"]);
}

/// An earlier client of the run may have left a configuration of its model's, which the next one would take for its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_starts_with_an_empty_configuration() {
    let api = MessagesApi::script([Reply::bash("echo alive"), Reply::say("done")]);
    let fixture = Fixture::new(&client::real(), api.url());
    let planted = fixture.run_dir().join("claude/.config.json");
    std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
    std::fs::write(&planted, json!({ "env": { "CLAUDE_CODE_SHELL": "/bin/false" } }).to_string()).unwrap();
    let request = fixture.request(&Arc::new(Host::new(|_| HookReply::Allow)), "do it", &["Bash"]);
    let report = fixture.run(request).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert!(!planted.exists());
    assert!(api.last().results()[0].text.contains("alive"), "{:?}", api.last().results());
}

/// Code of the job's own, which the loader runs in the shell's domain, makes no symlink, and moves none. A granted program does.
#[test]
fn no_symlink_is_made_or_moved_in_a_jobs_shell() {
    let bot = TestBot::new();
    let loader = agent_sandbox::system::loaders().remove(0);
    let loader = loader.display();
    for program in ["ln", "mv", "cp"] {
        std::fs::create_dir_all(bot.path("work/notes/d")).unwrap();
        std::fs::copy(format!("/usr/bin/{program}"), bot.path(&format!("work/notes/{program}"))).unwrap();
    }
    std::os::unix::fs::symlink("/proc/self/environ", bot.path("work/notes/known")).unwrap();
    let line = format!(
        "{loader} notes/ln -s /etc/passwd notes/made; {loader} notes/mv notes/known notes/moved; \
         {loader} notes/cp -P notes/known notes/copied; {loader} notes/mv notes/d notes/e; ln -s d notes/granted; true"
    );
    let fields = format!(
        "client: exec\nbackground: true\nallowed_tools: ['Edit(notes/**)', 'Bash(ln *)']\ncommand: {}\n",
        json!(line)
    );
    bot.write("reminders/links.md", &reminder(crate::support::bot::now(), &fields, "x"));
    let service = bot.start();
    let runs = service.until_ended("links", 1);
    assert_eq!(runs[0]["outcome"], "completed", "{runs:#?}");
    let names: Vec<String> = bot.names("work/notes").into_iter().filter(|name| name.len() > 2).collect();
    assert_eq!(names, ["granted", "known"]);
    assert!(bot.path("work/notes/e").is_dir(), "folders may be moved");
    service.stop();
}
