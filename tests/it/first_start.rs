//! The README's first command on a machine without anything else.

use std::fs;
use std::path::Path;

use crate::support::bot::TestBot;

/// Returns the words after `cargo run --` in the README.
fn command_of_the_readme() -> Vec<String> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("cargo run -- ")).expect("the first command");
    line.split_whitespace().map(String::from).collect()
}

#[test]
fn the_readmes_first_command_makes_the_folder_and_a_reminder_fires() {
    let bot = TestBot::bare();
    let words = command_of_the_readme();
    let service = bot.start_with(&words);
    let home = bot.person().join("demo");
    let at = |args: &[&str]| {
        let mut all = vec!["--home", home.to_str().unwrap(), "--json"];
        all.extend(args);
        let ran = bot.run(&all);
        serde_json::from_str::<serde_json::Value>(&ran.stdout).ok()
    };
    let run = service.until("the sample reminder has fired", || {
        let runs = at(&["runs"])?;
        runs.as_array()?.iter().find(|run| run["kind"] == "reminder" && !run["ended"].is_null()).cloned()
    });
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    let messages = at(&["inbox"]).unwrap();
    let text = messages[0]["text"].as_str().unwrap();
    let first_line = text.lines().next().unwrap();
    service.until("the person sees it in the terminal", || service.output().contains(first_line).then_some(()));
    let id = run["id"].as_str().unwrap();
    let left =
        fs::read_dir(home.join("reminders")).unwrap().filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    assert!(!left.into_iter().any(|file| file.contains(text)), "the fired reminder {id} was removed");
    let (status, said) = service.stop();
    assert!(status.success(), "{status}\n{said}");
}
