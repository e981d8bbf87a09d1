//! Files that a job may write and that an agent client would obey: in its working folder, and in the main session's configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::turn::kernel_supports_sandbox;

#[track_caller]
fn say(bot: &TestBot, text: &str) -> String {
    bot.ok(["chat", text])
}

/// The client would take due tasks as prompts of the person, without a message of ours.
#[test]
fn a_client_takes_no_tasks_from_its_folder() {
    let api = MessagesApi::answering(|_| Reply::say("done"));
    let bot = TestBot::with_client(&client::real(), api.url());
    let missed = json!({ "id": "a", "cron": "0 0 1 1 *", "prompt": "INJECTED", "createdAt": 1_700_000_000_000_u64 });
    let tasks = json!({ "tasks": [missed] }).to_string();
    bot.write("work/.claude/scheduled_tasks.json", &tasks);
    let service = bot.start();
    assert!(say(&bot, "Hello.").contains("done"));
    let fields = "background: true\nisolated: true\nallowed_tools: ['Edit(**)']\n";
    bot.write("reminders/victim.md", &reminder(now(), fields, "Do it."));
    let run = service.until_ended("victim", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert_eq!(bot.names("work/.claude"), ["scheduled_tasks.json"]);
    assert_eq!(bot.read("work/.claude/scheduled_tasks.json"), Some(tasks));
    let requests = api.requests();
    assert!(!requests.iter().any(|request| request.body.to_string().contains("INJECTED")));
    service.stop();
}

/// A repository may configure commands, which git would run outside of the client's shell. The newest client sees to it by itself.
#[test]
fn the_clients_own_git_reads_no_repository() {
    let api = MessagesApi::answering(|request| match request.results().is_empty() {
        true => Reply::bash("git rev-parse --git-dir"),
        false => Reply::say("done"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    let folder = tempfile::tempdir().unwrap();
    let (stub, log) = (folder.path().join("git"), folder.path().join("log"));
    let script =
        format!("#!/bin/sh\necho \"$GIT_DIR|$GIT_NO_LAZY_FETCH|$*\" >> {}\nexec /usr/bin/git \"$@\"\n", log.display());
    fs::write(&stub, script).unwrap();
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    let made = std::process::Command::new("git").args(["init", "-q"]).arg(bot.path("work")).status().unwrap();
    assert!(made.success());
    let mut command = bot.command(["run"]);
    command.env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()));
    let service = bot.spawn(command);
    service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
    assert!(say(&bot, "Hello.").contains("done"));
    let log = fs::read_to_string(&log).unwrap();
    let (of_shell, of_client): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| line.ends_with("|rev-parse --git-dir"));
    assert_eq!(of_shell, ["||rev-parse --git-dir"], "the session's own lines reach the repository");
    assert!(of_client.iter().all(|line| line.starts_with("/dev/null|") || line.contains("|1|")), "{log}");
    assert_eq!(api.last().results()[0].text.trim(), ".git");
    service.stop();
}

/// `git status` in a folder where jobs write starts nothing, although the session may do everything.
#[test]
fn a_main_sessions_git_status_runs_nothing_of_a_planted_repository() {
    let api = MessagesApi::answering(|request| match request.results().is_empty() {
        true => Reply::bash("git -C notes status --short; git -C bare status"),
        false => Reply::say("done"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    let ran = bot.path("ran");
    let config = format!("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch {}; false\"\n", ran.display());
    for folder in ["work/notes/.git", "work/bare"] {
        bot.write(&format!("{folder}/HEAD"), "ref: refs/heads/main\n");
        bot.write(&format!("{folder}/config"), &config);
        for empty in ["objects", "refs"] {
            fs::create_dir_all(bot.path(folder).join(empty)).unwrap();
        }
    }
    let service = bot.start();
    assert!(say(&bot, "Hello.").contains("done"));
    let said = &api.last().results()[0].text;
    assert!(said.contains("cannot use bare repository"), "{said}");
    assert!(!ran.exists(), "{said}");
    service.stop();
}

/// A fork's client has the configuration folder of the main session's, which goes on.
#[test]
fn a_fork_leaves_the_main_sessions_shell_alone() {
    if !kernel_supports_sandbox() {
        return;
    }
    let asked = AtomicUsize::new(0);
    let api = MessagesApi::answering(move |request| match asked.fetch_add(1, Ordering::SeqCst) % 2 {
        0 => Reply::bash("echo alive"),
        _ => Reply::say(&request.results().pop().unwrap().text),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", "main_tools: [Read, 'Bash(ls *)']\n");
    let service = bot.start();
    for text in ["First.", "/fork side", "In the fork.", "/exit", "Second."] {
        let said = say(&bot, text);
        assert!(text.starts_with('/') || said.contains("alive"), "{text}: {said}");
    }
    service.stop();
}

/// An earlier client of the main session, with other tools, may have left them.
#[test]
fn a_limited_main_session_takes_no_settings_of_an_earlier_one() {
    if !kernel_supports_sandbox() {
        return;
    }
    let api = MessagesApi::answering(|request| match request.results().is_empty() {
        true => Reply::bash("echo alive"),
        false => Reply::say("done"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", "main_tools: [Read, 'Bash(ls *)']\n");
    let settings = json!({ "env": { "CLAUDE_CODE_SHELL": "/bin/false" } }).to_string();
    let planted = [".claude.json", ".config.json", "remote-settings.json", "session-env/x/setup-hook-0.sh"];
    for file in planted {
        bot.write(&format!("state/main/{file}"), &settings);
    }
    let service = bot.start();
    assert!(say(&bot, "Hello.").contains("done"));
    assert!(api.last().results()[0].text.contains("alive"), "{:?}", api.last().results());
    assert_eq!(planted.map(|file| bot.read(&format!("state/main/{file}"))), [const { None }; 4]);
    service.stop();
}
