//! What is refused says what to do, and what is said is so.

use crate::support::bot::TestBot;

/// A bot with a job that runs `command`, without a model.
fn bot_with(id: &str, command: &str) -> TestBot {
    let bot = TestBot::new();
    let text = format!(
        "---\ncron: '0 3 29 2 *'\nclient: exec\ncommand: \"{command}\"\nbackground: true\nallowed_tools: ['Bash(sleep *)']\nretry: 0\n---\n"
    );
    bot.write(&format!("routines/{id}.md"), &text);
    bot
}

#[test]
fn status_says_why_a_job_failed_when_and_where_more_is() {
    let bot = bot_with("backup", "echo 'the disk is full' >&2; exit 3");
    let service = bot.start();
    let run = service.fire("backup");
    let (run, error) = (run["run"].as_str().unwrap(), run["error"].as_str().unwrap().lines().next().unwrap());
    let status = bot.ok(["status"]);
    let line = status.lines().skip_while(|line| *line != "Failing").nth(1).unwrap();
    assert!(line.starts_with("backup failed once, last ") && line.ends_with(&format!(": {error}")), "{status}");
    assert!(status.contains(&format!("  -> `ollim-bot runs show {run}`\n")), "{status}");
    service.stop();
}
