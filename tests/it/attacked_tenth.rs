//! Attacks that a tenth attacker found: names that change their target between a verdict and the opening.

use std::process::Command;

use serde_json::json;

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::turn;

const SECRET: &str = "XYZZY-the-secret";

/// A program that the job's rules grant. It switches `notes/f` back and forth as long as the run lasts. The job's shell makes no symlinks.
const TURNS: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
    if (fork()) return 0;
    setsid();
    for (int fd = 0; fd < 3; fd++) close(fd);
    for (long i = 0;; i++) {
        symlink(i % 2 ? "plain" : "../secret.txt", "notes/t");
        rename("notes/t", "notes/f");
        usleep(20000);
    }
}
"#;

#[test]
fn a_link_that_a_job_turns_leads_a_file_tool_to_nothing_but_its_own() {
    reads_only_its_own("Read(notes/**)");
}

/// A rule may name a folder that is not there. This opens nothing above it.
#[test]
fn a_rule_for_a_missing_folder_opens_nothing_to_a_link_that_a_job_turns() {
    reads_only_its_own("Read(missing/deep/**)");
}

/// Turns a link while the client reads it, in a job with this rule.
#[track_caller]
fn reads_only_its_own(rule: &str) {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let reads = (0..40).map(|_| Reply::call("Read", json!({ "file_path": "notes/f" })));
    let load = Reply::bash("./turn; cat notes/plain");
    let api = MessagesApi::script([load].into_iter().chain(reads));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/secret.txt", SECRET);
    bot.write("work/notes/plain", "plain text");
    bot.write("work/turn.c", TURNS);
    let mut compiler = Command::new("cc");
    compiler.arg("-o").args(["work/turn", "work/turn.c"].map(|file| bot.path(file)));
    if !compiler.status().is_ok_and(|status| status.success()) {
        return;
    }
    bot.live(&format!("allowed_tools: ['Edit(notes/**)', '{rule}', 'Bash(./turn)']\n"));
    let results: Vec<String> = api.last().results().iter().map(|result| result.text.clone()).collect();
    // The shell reads what is granted, and the link was switched meanwhile.
    assert!(results[0].contains("plain text"), "{results:#?}");
    assert!(results[1..].iter().any(|result| result.contains("not granted")), "{results:#?}");
    assert!(!results.iter().any(|result| result.contains(SECRET)), "{results:#?}");
}
