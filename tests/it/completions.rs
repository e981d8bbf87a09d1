//! Completions at a Tab in the real bash, the manual pages, and the version.

use std::fs;
use std::path::Path;

use crate::support::bot::{CommandOutput, TestBot};

/// Returns bash's completions for the last of these words.
#[track_caller]
fn offered(bot: &TestBot, words: &[&str]) -> Vec<String> {
    let script = r#"
        source <(ollim-bot completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_ollim_bot ollim-bot "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let ours = Path::new(env!("CARGO_BIN_EXE_ollim-bot")).parent().unwrap();
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
    let mut bash = std::process::Command::new("bash");
    let of_bot = bot.command([""; 0]);
    bash.args(["--norc", "-c", script, "bash"]).args(words).env_clear();
    bash.envs(of_bot.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    let ran = CommandOutput::of(bash);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    ran.stdout.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn some_jobs() -> TestBot {
    let bot = TestBot::new();
    bot.write("routines/mail.md", "---\ncron: '@daily'\ndescription: Sort the mail\n---\nSort.\n");
    bot.write("routines/money.md", "---\ncron: '@daily'\n---\nCount.\n");
    bot.write("reminders/tea.md", "---\nrun_at: 2099-01-01T00:00:00Z\n---\nTea.\n");
    bot.write("skills/letters/SKILL.md", "---\nname: letters\ndescription: Write letters\n---\nWrite.\n");
    bot.external_command("gmail", "#!/bin/sh\n");
    bot
}

#[test]
fn bash_completes_commands_ids_and_values() {
    let bot = some_jobs();
    let first = offered(&bot, &["ollim-bot", ""]);
    for command in ["routine", "status", "doctor", "gmail"] {
        assert!(first.contains(&command.to_owned()), "{command}: {first:?}");
    }
    assert!(!first.contains(&"man".to_owned()), "what is hidden is not offered");
    // After the first word, clap's own script would fail (clap#6421).
    assert_eq!(offered(&bot, &["ollim-bot", "routine", "en"]), ["enable"]);
    assert_eq!(offered(&bot, &["ollim-bot", "--json", "routine", "show", "m"]), ["mail", "money"]);
    assert_eq!(offered(&bot, &["ollim-bot", "reminder", "show", "t"]), ["tea"]);
    assert_eq!(offered(&bot, &["ollim-bot", "fire", "te"]), ["tea"]);
    for before in [
        &["why"][..],
        &["simulate"],
        &["logs"],
        &["routine", "add", "--after"],
        &["routine", "edit", "mail", "--context-from"],
    ] {
        let words = [&["ollim-bot"], before, &["te"]].concat();
        assert_eq!(offered(&bot, &words), ["tea"], "{words:?}");
    }
    bot.write("config.yaml", "mcp_servers:\n  time:\n    command: [cat]\n");
    assert_eq!(offered(&bot, &["ollim-bot", "mcp", "tools", "t"]), ["time"]);
    fs::create_dir_all(bot.path("work/drop")).unwrap();
    let watched = format!("{}/dr", bot.path("work").display());
    assert_eq!(offered(&bot, &["ollim-bot", "routine", "add", "--watch", &watched]).len(), 1);
    assert_eq!(offered(&bot, &["ollim-bot", "channels", "test", "c"]), ["console"]);
    assert_eq!(offered(&bot, &["ollim-bot", "help", "rem"]), ["reminder"]);
    let below = offered(&bot, &["ollim-bot", "help", "reminder", ""]);
    assert!(["add", "snooze", "retry"].iter().all(|command| below.contains(&(*command).to_owned())), "{below:?}");
    assert_eq!(offered(&bot, &["ollim-bot", "help", "service", "un"]), ["uninstall"]);
    // A command ends the topic: no id and no flag of it follows.
    assert_eq!(offered(&bot, &["ollim-bot", "help", "reminder", "show", "t"]), [""; 0]);
    assert!(!offered(&bot, &["ollim-bot", "help", ""]).contains(&"man".to_owned()), "what is hidden is not offered");
    assert_eq!(offered(&bot, &["ollim-bot", "routine", "edit", "mail", "--on-overlap", "q"]), ["queue"]);
    assert_eq!(offered(&bot, &["ollim-bot", "reminder", "add", "--skills", ""]), ["letters"]);
    assert_eq!(offered(&bot, &["ollim-bot", "agents", "show", "Exp"]), ["Explore"]);
    assert!(
        offered(&bot, &["ollim-bot", "routine", "add", "--timezone", "Europe/V"]).contains(&"Europe/Vienna".into())
    );
    // A folder other than the default one.
    let (home, other) = (bot.home().to_str().unwrap(), TestBot::new());
    assert_eq!(offered(&other, &["ollim-bot", "--home", home, "fire", "te"]), ["tea"]);
    assert_eq!(offered(&other, &["ollim-bot", "fire", "t"]), Vec::<String>::new(), "no job, and no error on the line");
}

#[test]
fn runs_are_offered_where_one_is_named() {
    let bot = some_jobs();
    bot.write("routines/plain.md", "---\ncron: '@daily'\nclient: notify\n---\nHello.\n");
    let service = bot.start();
    let run = service.fire("plain")["run"].as_str().unwrap().to_owned();
    service.stop();
    for command in [&["why"][..], &["logs"], &["runs", "show"], &["runs", "follow"], &["reminder", "restore"]] {
        let words = [&["ollim-bot"], command, &[&run[..4]]].concat();
        assert_eq!(offered(&bot, &words), [&run[..]], "{words:?}");
    }
}

#[test]
fn every_shell_has_a_script() {
    let bot = TestBot::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(bot.ok(["completions", shell]).contains("OLLIM_COMPLETE"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let bot = TestBot::new();
    bot.ok(["man", "pages"]);
    let pages: Vec<String> = std::fs::read_dir(bot.person().join("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["ollim-bot.1", "ollim-bot-status.1", "ollim-bot-service-install.1", "ollim-bot-reminder-add.1"] {
        assert!(pages.contains(&page.to_owned()), "{page}: {pages:?}");
    }
    assert!(!pages.contains(&"ollim-bot-man.1".to_owned()));
    let page = std::fs::read_to_string(bot.person().join("pages/ollim-bot-doctor.1")).unwrap();
    assert!(page.contains("ollim\\-bot doctor \\-\\-fix") || page.contains("ollim-bot doctor --fix"), "{page}");
}

#[test]
fn the_version_says_of_which_commit_it_is() {
    let said = TestBot::new().ok(["--version"]);
    let rest = said.strip_prefix(concat!("ollim-bot ", env!("CARGO_PKG_VERSION"))).unwrap();
    // A development build is not rebuilt for each commit, so it names none.
    let is_commit = |words: &str| {
        let words = words.strip_prefix(" (").and_then(|rest| rest.strip_suffix(")\n")).unwrap_or_default();
        let (commit, date) = words.split_once(' ').unwrap_or_default();
        commit.len() >= 7 && commit.bytes().all(|b| b.is_ascii_hexdigit()) && date.len() == 10
    };
    if cfg!(debug_assertions) {
        assert_eq!(rest, " (development build)\n");
    } else {
        assert!(is_commit(rest), "{said:?}");
    }
}
