//! A new job that is written in an editor on a terminal, and a broken file that is opened or removed by its name.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::cli::shown;
use crate::support::bot::{CommandOutput, TestBot};

/// Runs a command on its own terminal with this editor, and types these lines.
fn on_terminal(bot: &TestBot, editor: &str, lines: &str, args: &[&str]) -> CommandOutput {
    let typed = bot.command(args);
    let words = std::iter::once(typed.get_program()).chain(typed.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]).env_clear();
    script.envs(typed.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("SHELL", "/bin/sh").env("EDITOR", editor).env("TERM", "dumb");
    if let Some(folder) = typed.get_current_dir() {
        script.current_dir(folder);
    }
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut script = script.spawn().expect("script(1) of util-linux makes the terminal");
    script.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = script.wait_with_output().unwrap();
    CommandOutput {
        code: ended.status.code().unwrap(),
        stdout: String::from_utf8(ended.stdout).unwrap().replace('\r', ""),
        stderr: String::from_utf8(ended.stderr).unwrap(),
    }
}

#[test]
fn a_new_job_is_written_in_an_editor() {
    let bot = TestBot::new();
    let ran = on_terminal(&bot, "echo Water the plants. >>", "", &["routine", "add", "--cron", "daily at 9"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("scheduled water-the-plants: at "), "{ran:#?}");
    // The template's comments were meant for the person only.
    insta::assert_snapshot!(bot.read("routines/water-the-plants.md").unwrap(), @"
    ---
    cron: 0 9 * * *
    ---

    Water the plants.
    ");
    let chosen = "f() { sed -i 's/^# model: haiku .*/model: haiku/; s/^# background: true .*/background: true/' \"$1\"; echo Tea >> \"$1\"; }; f";
    let ran = on_terminal(&bot, chosen, "", &["reminder", "add", "--at", "2098-05-04T09:00:00Z", "--id", "tea"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let text = bot.read("reminders/tea.md").unwrap_or_else(|| panic!("{:?}", bot.names("reminders")));
    assert!(text.contains("background: true\nmodel: haiku\n---\n") && !text.contains('#'), "{text}");
    assert_eq!(bot.names("state/edits"), Vec::<String>::new());
}

#[test]
fn nothing_stays_of_what_is_given_up() {
    let bot = TestBot::new();
    let wrong = "f() { echo Tea >> \"$1\"; sed -i 's/^run_at:.*/run_at: never/' \"$1\"; }; f";
    for (editor, lines, words) in [
        ("true", "", "nothing was made: no text was written"),
        ("false", "", "the editor `false` failed"),
        // The person edits the file again, and it is still invalid.
        (wrong, "y\nn\n", "nothing was made"),
    ] {
        let ran = on_terminal(&bot, editor, lines, &["reminder", "add"]);
        assert!(ran.code == 1 && ran.stdout.contains(words), "{ran:#?}");
        if editor == wrong {
            assert_eq!(ran.stdout.matches("Edit it again?").count(), 2, "{ran:#?}");
        }
        assert_eq!((bot.names("reminders"), bot.names("state/edits")), (Vec::new(), Vec::new()));
    }
    insta::assert_snapshot!(shown(&bot, &bot.run(["reminder", "add", "--in", "20m"])), @"
    exit: 1
    -- stderr
    error: no text was given
    hint: say what is to be done: `-m 'Check the oven'`
    ");
}

#[test]
fn a_text_comes_from_a_file() {
    let bot = TestBot::new();
    bot.write("work/task.txt", "Check the oven.\n\nIs it off?\n");
    let file = bot.path("work/task.txt");
    let added = bot.json(["reminder", "add", "--in", "20m", "--file", file.to_str().unwrap()]);
    assert_eq!(
        (&added["id"], added["message"].as_str().unwrap().trim()),
        (&serde_json::json!("check-the-oven"), "Check the oven.\n\nIs it off?",)
    );
    bot.write("work/job.md", "---\nrun_at: 2098-05-04T09:00:00Z\n---\nTea.\n");
    let whole = bot.run(["reminder", "add", "--in", "20m", "--file", bot.path("work/job.md").to_str().unwrap()]);
    assert!(whole.code == 1 && whole.stderr.contains("it is a whole job"), "{whole:?}");
    assert_eq!(bot.run(["reminder", "add", "--in", "20m", "--file", "nowhere"]).code, 1);
    assert_eq!(bot.names("reminders"), ["check-the-oven.md"]);
}

#[test]
fn a_broken_file_is_opened_and_removed_by_its_name() {
    let bot = TestBot::new();
    bot.write("routines/mail.md", "---\nid: 1f0c9a2b\ncron: never\n---\nSort.\n");
    let mut edit = bot.command(["edit", "mail"]);
    assert!(edit.env("EDITOR", "sed -i \"s/never/'@daily'/\"").status().unwrap().success());
    assert_eq!(bot.json(["routine", "show", "mail"])["id"], "1f0c9a2b");
    for name in ["mail", "1f0c9a2b", "routines/mail.md", "1f0c"] {
        bot.write("routines/mail.md", "---\nid: 1f0c9a2b\ncron: never\n---\nSort.\n");
        assert_eq!(bot.run(["reminder", "cancel", name]).code, 1);
        assert_eq!(bot.run(["routine", "cancel", "1f0"]).code, 1, "too short for what removes a file");
        let told = bot.run(["routine", "show", name]).stderr;
        assert!(told.starts_with(&format!("error: routine `{name}` has an error in its file: ")), "{told}");
        assert!(bot.run(["check", name]).stdout.contains("--> routines/mail.md:"));
        assert_eq!(bot.ok(["routine", "cancel", name]), "removed routines/mail.md\n");
        assert_eq!(bot.read("routines/mail.md"), None);
    }
    insta::assert_snapshot!(shown(&bot, &bot.run(["edit", "mail"])), @"
    exit: 1
    -- stderr
    error: there is no job `mail`
    hint: `ollim-bot next`, `ollim-bot routine list` and `ollim-bot reminder list` show them
    ");
}
