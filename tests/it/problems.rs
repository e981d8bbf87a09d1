//! A bad file is one located problem; everything else still fires.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use chrono::TimeDelta;

use crate::support::bot::{TestBot, now, reminder};

const BOTH: &str = "background: true\nallowed_tools:\n  - Read\ndisallowed_tools:\n  - WebFetch\n";

/// A name may be any bytes but `/` and NUL.
#[test]
fn a_name_that_is_no_text_is_a_problem_in_json_and_in_the_log() {
    let bot = TestBot::new();
    bot.write("reminders/keep.md", &reminder(now() + TimeDelta::hours(9), "", "one"));
    for name in [&b"\xff\xfe.md"[..], b"two\nlines.md"] {
        fs::write(bot.path("reminders").join(OsStr::from_bytes(name)), "no head\n").unwrap();
    }
    let service = bot.start();
    let json = |command: &str, code: i32| {
        let said = bot.run(["--json", command]);
        assert_eq!(said.code, code, "{said:?}");
        serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap()
    };
    let checked = json("check", 1);
    let files: Vec<&str> = checked["problems"].as_array().unwrap().iter().filter_map(|p| p["file"].as_str()).collect();
    assert_eq!(files, ["reminders/two\nlines.md", "reminders/\u{fffd}\u{fffd}.md"], "{checked:#}");
    assert_eq!(json("status", 0)["problems"].as_array().map(Vec::len), Some(2));
    let (_, log) = service.stop();
    assert!(log.contains("reminders/two\\nlines.md:1:1") && !log.contains("reminders/two\n"), "{log}");
}

#[test]
fn both_lists_in_one_file_is_a_located_error_and_the_others_fire() {
    let bot = TestBot::new();
    let at = now() + TimeDelta::seconds(2);
    bot.write("reminders/a-good.md", &reminder(at, "", "the first good one"));
    let text = reminder(at, BOTH, "must never be seen");
    bot.write("reminders/both.md", &text);
    bot.write("reminders/z-good.md", &reminder(at + TimeDelta::seconds(1), "", "the second good one"));

    let check = bot.run(["--json", "check"]);
    assert_eq!(check.code, 1, "{check:?}");
    let check: serde_json::Value = serde_json::from_str(&check.stdout).unwrap();
    let problems = check["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{check:#}");
    let problem = &problems[0];
    assert_eq!(problem["file"], "reminders/both.md");
    assert_eq!(problem["severity"], "error");
    let line = problem["line"].as_u64().unwrap() as usize;
    let named = text.lines().nth(line - 1).unwrap();
    assert!(named.contains("allowed_tools"), "line {line} is {named:?}");
    assert_eq!(problem["column"], 1);
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("`allowed_tools`") && message.contains("`disallowed_tools`"), "{message}");
    assert!(!problem["hint"].as_str().unwrap().is_empty());

    let service = bot.start();
    service.until_ended("a-good", 1);
    // The last one due has ended, so the bad one could have fired by now and did not.
    service.until_ended("z-good", 1);
    assert_eq!(bot.runs("both"), Vec::<serde_json::Value>::new());
    assert_eq!(bot.read("reminders/both.md").as_deref(), Some(text.as_str()), "the file is as the person left it");
    service.until("the log names file and line", || {
        service.output().contains(&format!("reminders/both.md:{line}:1")).then_some(())
    });
    let inbox = bot.json(["inbox", "-n", "1000"]);
    let about: Vec<_> =
        inbox.as_array().unwrap().iter().filter(|message| message["text"].to_string().contains("both.md")).collect();
    assert_eq!(about.len(), 1, "told once: {inbox:#}");
    assert!(!inbox.to_string().contains("must never be seen"));
    bot.ok(["reminder", "cancel", "both"]);
    service
        .until("the log says that it is gone", || service.output().contains("reminders/both.md is gone").then_some(()));
    assert!(!service.output().contains("both.md was put right"), "{}", service.output());
    service.stop();
}

#[test]
fn check_and_doctor_name_what_looks_like_a_definition_and_is_none() {
    let bot = TestBot::new();
    let text = "---\ncron: '* * * * *'\n---\nTea.\n";
    bot.write("routines/tea.md", text);
    assert!(!bot.ok(["check"]).contains("warning:"));
    bot.write("routines/mail/morning.md", text);
    bot.write("routines/UP.MD", text);
    let said = bot.run(["check"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = said.stdout + &said.stderr;
    for words in [
        "warning: it is a folder, and nothing in it fires",
        "--> routines/mail:1:1",
        "move its definitions into routines/ itself",
        "its name does not end with `.md`",
        "--> routines/UP.MD:1:1",
        "rename it",
        "2 warnings",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let doctor = bot.run(["doctor"]).stdout;
    assert!(doctor.contains("1 in order, 2 warnings"), "{doctor}");
}

#[test]
fn a_folder_of_jobs_that_goes_away_is_said_and_its_jobs_come_back_with_it() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now() + TimeDelta::days(1), "", "much later"));
    bot.ok(["init", "--force", "--bare"]);
    let service = bot.start();
    let away = bot.person().join("away");
    fs::rename(bot.path("reminders"), &away).unwrap();
    let missing = "the folder is missing, so none of its jobs fires";
    service.until("the person is told", || bot.json(["inbox"]).to_string().contains(missing).then_some(()));
    let is_said = || {
        let check = bot.run(["check"]);
        assert!(check.code == 1 && check.stdout.contains("reminders:1:1"), "{check:?}");
        let doctor = bot.run(["doctor"]);
        assert!(doctor.code == 1 && doctor.stdout.contains("has no reminders"), "{doctor:?}");
        let status = bot.ok(["status"]);
        assert!(status.contains(missing), "{status}");
    };
    is_said();
    // A job that is due when its folder is back. Nobody is told twice, and the next start makes no empty folder.
    fs::write(away.join("tea.md"), reminder(now(), "", "only a little later")).unwrap();
    service.stop();
    is_said();
    let service = bot.start();
    is_said();
    assert_eq!(bot.json(["inbox"]).to_string().matches(missing).count(), 1);
    fs::rename(&away, bot.path("reminders")).unwrap();
    service.until_ended("tea", 1);
    assert!(!bot.ok(["status"]).contains(missing));
    service.stop();
}

#[test]
fn an_empty_folder_for_one_that_stays_away_is_made_when_it_is_asked_for() {
    let bot = TestBot::new();
    bot.ok(["init", "--force", "--bare"]);
    fs::remove_dir(bot.path("routines")).unwrap();
    assert_eq!(bot.run(["check"]).code, 1);
    assert!(bot.run(["doctor", "--fix"]).stdout.contains("made routines/"));
    assert_eq!(bot.run(["check"]).code, 0);
}
