//! A service whose user is not root: the kernel shows it less of processes and files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// Runs a job with these fields to its end and returns the run.
#[track_caller]
fn run(bot: &TestBot, id: &str, fields: &str) -> Value {
    let fields = format!("background: true\nisolated: true\nretry: 0\n{fields}");
    bot.write(&format!("reminders/{id}.md"), &reminder(now(), &fields, "Do the thing."));
    let service = bot.start();
    let run = service.until_ended(id, 1).remove(0);
    service.stop();
    run
}

/// While a process executes another program, a service without root's rights may not inspect it.
#[test]
fn a_process_that_is_closed_for_a_moment_does_not_end_its_run() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let client = client::for_all_users(&folder);
    let api = MessagesApi::script([Reply::bash("ls"), Reply::bash("ls | sort")]);
    let Some(bot) = TestBot::with_client(&client, api.url()).unprivileged(&client) else { return };
    // The exec stage grants each of these files separately, so it takes long to become the client.
    let home = bot.person().join("home");
    let bot = bot.env("HOME", home.to_str().unwrap());
    fs::create_dir(home).unwrap();
    for n in 0..4000 {
        fs::write(bot.person().join(n.to_string()), "").unwrap();
    }
    let ended = run(&bot, "job", "allowed_tools: [Read, \"Bash(ls *)\"]\n");
    assert_eq!(ended["outcome"], "completed", "{ended:#}");
}

/// The files that such a process holds open could not be counted.
#[test]
fn a_process_that_stays_closed_ends_its_run() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let client = client::for_all_users(&folder);
    let api = MessagesApi::script([Reply::bash("./closed 60")]);
    let Some(bot) = TestBot::with_client(&client, api.url()).unprivileged(&client) else { return };
    let closed = bot.path("work/closed");
    fs::copy("/usr/bin/sleep", &closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o711)).unwrap();
    let ended = run(&bot, "job", "allowed_tools: [\"Bash(./closed *)\"]\n");
    assert_eq!(ended["outcome"], "failed", "{ended:#}");
    assert!(ended["error"].as_str().unwrap().contains("executes a file that cannot be read"), "{ended:#}");
}
