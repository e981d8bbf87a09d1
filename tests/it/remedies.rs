//! Every refusal names a remedy, and every message is true.

use std::fs;

use chrono::TimeDelta;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;

/// Returns a bot with a job that runs `command`, without a model.
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

#[test]
fn the_end_says_what_it_waits_for() {
    let bot = bot_with("slow", "sleep 1000").env("OLLIM_SHUTDOWN_GRACE", "1h");
    let bin = bot.person().join("sys");
    fs::create_dir(&bin).unwrap();
    client::executable(&bin.join("systemctl"), "#!/bin/sh\necho systemd 255\n");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let bot = bot.env("PATH", &path);
    bot.ok(["service", "install"]);
    let service = bot.start();
    assert_eq!(bot.run(["service", "restart"]).stderr, "", "nothing is going");
    service.until("it fires", || (bot.run(["fire", "slow"]).code == 0).then_some(()));
    service.until("it runs", || (bot.json(["status"])["running"][0]["outcome"] == "running").then_some(()));
    let restarted = bot.run(["service", "restart"]);
    let expect = "1 run is going and has 1h to finish (`shutdown_grace`); the service ends when that is done\n";
    assert_eq!(restarted.stderr, expect, "{restarted:#?}");
    service.signal(rustix::process::Signal::TERM);
    service.until("it says that it waits", || {
        service.output().contains("ending: 1 run is going and has 1h").then_some(())
    });
    let fired = bot.run(["fire", "slow"]);
    assert!(fired.code != 0 && fired.stderr.contains("hint: "), "{fired:#?}");
    service.stop();
}

#[test]
fn what_is_not_there_or_not_meant_is_said_with_a_way_out() {
    let bot = TestBot::new();
    bot.write("reminders/tea-time.md", &reminder(now() + TimeDelta::days(9), "", "Tea."));
    bot.write("reminders/failed/dentist.md", &reminder(now(), "failed_reason: 'failed: no luck'\n", "Call."));
    for (words, code, parts) in [
        (&["--home", "/no/such", "restore", "nope.tar"][..], 1, &["there is no file ", "hint: "][..]),
        (&["reminder", "add", "x", "--at", "today 0:00"], 1, &["has passed", "name a later time of that day"]),
        (
            &["edit", "tea-time", "--cron", "@daily"],
            1,
            &["hint: a field is set with the kind: `ollim-bot routine edit ID --cron …`"],
        ),
        (
            &["routine", "add", "x", "--at", "10:00"],
            1,
            &["error: unexpected argument '--at' found\nhint: a routine has "],
        ),
        (&["logs", "nope"], 1, &["there is no job `nope`"]),
        (&["costs", "--since", "tomorrow"], 1, &["which is to come", "hint: write a span of time, `2h`, or "]),
        (&["logs", "--since", "abc"], 1, &["cannot read the time `abc`", "hint: write a span of time, `2h`, or "]),
        (
            &["reminder", "show", "dentist"],
            1,
            &["has failed and is kept", "`ollim-bot reminder retry dentist` brings it back"],
        ),
        (&["fire", "dentist"], 1, &["has failed and is kept", "`ollim-bot reminder retry dentist` brings it back"]),
        (&["reminder", "edit", "dentist", "-m", "x"], 1, &["has failed and is kept", "retry dentist` brings it back"]),
        (&["reminder", "cancel", "te"], 1, &["write `tea-time`: what changes something takes", "from 4 letters on"]),
        (&["reminder", "retry", "nope", "neither"], 1, &["`nope`", "`neither`"]),
        (&["reminder", "restore", "nope", "neither"], 1, &["`nope`", "`neither`"]),
        (&["routine", "enable", "nope", "neither"], 1, &["`nope`", "`neither`"]),
    ] {
        let ran = bot.run(words);
        assert_eq!(ran.code, code, "{words:?}: {ran:#?}");
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{words:?}: {ran:#?}");
    }
    assert!(bot.path("reminders/tea-time.md").exists());
    bot.ok(["logs", "tea-time"]);
    for since in ["yesterday", "today", "yesterday 18:00", "2026-01-31", "2h"] {
        bot.ok(["logs", "--since", since]);
        bot.ok(["costs", "--since", since]);
        bot.ok(["policy", "refusals", "--since", since]);
    }
    let listed = bot.run(["reminder", "list"]).stderr;
    assert!(listed.contains("failed: dentist: no luck\nhint: `ollim-bot reminder retry dentist`\n"), "{listed}");
    for args in [&["reminder", "show", "t"][..], &["next", "te"], &["policy", "show", "tea"], &["runs", "t"]] {
        bot.ok(args);
    }
    assert_eq!(bot.ok(["agents", "show", "Expl"]), bot.ok(["agents", "show", "Explore"]));
    assert_eq!(bot.run(["agents", "show", ""]).code, 1);
}

#[test]
fn what_another_job_is_called_may_be_cut_short_and_is_checked() {
    let bot = TestBot::new();
    bot.write("routines/morning-mail.md", "---\ncron: '@daily'\n---\nx\n");
    for words in [&["add", "x", "--id", "then", "--after", "morning"][..], &["edit", "then", "--after", "morn"]] {
        let ran = bot.run([&["routine"], words].concat());
        assert!(ran.code == 0 && !ran.stderr.contains("there is no job"), "{ran:#?}");
        let text = bot.read("routines/then.md").unwrap();
        assert!(text.contains("after: morning-mail\n"), "{text}");
    }
    let ran = bot.run(["routine", "add", "x", "--after", "nosuch"]);
    assert!(ran.code == 0 && ran.stderr.contains("there is no job `nosuch`, so this routine never fires"), "{ran:#?}");
}

#[test]
fn several_routines_are_disabled_and_enabled_at_once() {
    let bot = TestBot::new();
    for id in ["aaaa", "bbbb"] {
        bot.write(&format!("routines/{id}.md"), "---\ncron: '@daily'\n---\nx\n");
    }
    let enabled = |bot: &TestBot| {
        let list = bot.json(["routine", "list"]);
        list.as_array().unwrap().iter().filter(|routine| routine["enabled"] == true).count()
    };
    bot.ok(["routine", "disable", "aaaa", "bbbb"]);
    assert_eq!(enabled(&bot), 0);
    assert_eq!(bot.run(["routine", "enable", "aaaa", "nope", "bbbb"]).code, 1, "one of them is not there");
    assert_eq!(enabled(&bot), 2);
}

#[test]
fn a_folder_with_nothing_missing_is_not_made_again() {
    let bot = TestBot::bare();
    assert!(bot.ok(["init", "--yes"]).starts_with("made "));
    let again = bot.ok(["init", "--yes", "--force"]);
    assert!(again.contains("has all that belongs in it; nothing was made"), "{again}");
}
