//! Disks that refuse writes: the service reports it and recovers by itself, with nothing lost and nothing repeated.

use std::fs;
use std::path::Path;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use rusqlite::Connection;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::disk::{self, NamespacedService};

/// Returns the beginning of a reminder's file, equally long for every time.
fn time(at: DateTime<Utc>) -> String {
    format!("---\nrun_at: \"{}\"", at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn text(at: DateTime<Utc>, body: &str) -> String {
    format!("{}\n---\n{body}\n", time(at))
}

fn far() -> DateTime<Utc> {
    now() + TimeDelta::days(9)
}

/// Deletes a folder atomically: the service may be writing into it, and recreates its journal while the folder exists.
fn delete(bot: &TestBot, folder: &Path) {
    let away = bot.person().join("deleted");
    fs::rename(folder, &away).unwrap();
    fs::remove_dir_all(away).unwrap();
}

/// Asserts that each of the reminders `r0`… ran once and was delivered once.
#[track_caller]
fn each_ran_once(count: usize, runs: &Value, inbox: &Value) {
    let mut ran: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    ran.sort_unstable();
    let mut expected: Vec<String> = (0..count).map(|n| format!("r{n}")).collect();
    expected.sort_unstable();
    assert_eq!(ran, expected, "{runs:#}");
    assert!(runs.as_array().unwrap().iter().all(|run| run["outcome"] == "completed"), "{runs:#}");
    for n in 0..count {
        let word = format!("word {n}.");
        let told = inbox.as_array().unwrap().iter().filter(|message| message["text"].as_str().unwrap().trim() == word);
        assert_eq!(told.count(), 1, "{word} {inbox:#}");
    }
}

/// A run needs a folder of its own, also where the journal is elsewhere.
#[test]
fn a_job_waits_while_the_disk_takes_no_more_files() {
    if !disk::can_mount() {
        return;
    }
    let bot = TestBot::new();
    let job = "background: true\nclient: exec\ncommand: seq 1 3\nallowed_tools:\n  - Bash(seq *)\n";
    bot.write("reminders/counts.md", &format!("{}\n{job}---\n", time(far())));
    let inside = NamespacedService::on_disk_of(64 * 1024, &bot);
    let service = &inside.service;
    let filler = inside.fill_with_files();
    disk::overwrite(&inside.path("reminders/counts.md"), &time(now()));
    let waiting = || inside.run(["why", "counts"]).stdout.contains("the disk of the data folder is full").then_some(());
    service.until("it waits", waiting);
    fs::remove_dir_all(filler).unwrap();
    let ended = || {
        let runs = inside.json(["--json", "runs"]);
        let run = runs.as_array().unwrap().iter().find(|run| run["id"] == "counts" && !run["ended"].is_null()).cloned();
        run.map(|run| run["outcome"].clone())
    };
    assert_eq!(service.until("it runs", ended), "completed", "{}", service.output());
    let (status, said) = inside.service.stop();
    assert!(status.success(), "{said}");
}

#[test]
fn a_full_disk_is_said_and_what_fell_due_runs_when_there_is_room() {
    if !disk::can_mount() {
        return;
    }
    let bot = TestBot::new();
    for n in 0..50 {
        bot.write(&format!("reminders/r{n}.md"), &text(far(), &format!("word {n}.")));
    }
    let inside = NamespacedService::on_disk_of(32 * 1024, &bot);
    let service = &inside.service;
    let filler = inside.fill();
    for n in 0..50 {
        disk::overwrite(&inside.path(&format!("reminders/r{n}.md")), &time(now()));
    }
    service.until("it is said", || service.output().contains("the disk is full").then_some(()));
    assert!(!service.output().contains("word"), "nothing runs that is not recorded: {}", service.output());

    let before = disk::names(&inside.path("reminders"));
    let added = inside.run(["reminder", "add", "-m", "One more.", "--in", "5m"]);
    assert_eq!(added.code, 2, "{added:?}");
    assert!(added.stderr.starts_with("error: ") && added.stderr.contains("No space left"), "{added:?}");
    assert_eq!(disk::names(&inside.path("reminders")), before, "nothing half-written is left");

    fs::remove_file(filler).unwrap();
    service.until("every file is dealt with", || disk::names(&inside.path("reminders")).is_empty().then_some(()));
    assert!(service.output().contains("the journal can be written again"), "{}", service.output());
    let (runs, inbox) = (inside.json(["--json", "runs", "-n", "1000"]), inside.json(["--json", "inbox", "-n", "1000"]));
    each_ran_once(50, &runs, &inbox);
    let (status, said) = inside.service.stop();
    assert!(status.success(), "{said}");
}

/// A failing disk that every machine can imitate: no file of the service may grow.
#[test]
fn files_that_may_not_grow_hold_the_journal_up_and_do_not_end_the_service() {
    let bot = TestBot::new().env("OLLIM_SHUTDOWN_GRACE", "1s");
    for n in 0..3 {
        bot.write(&format!("reminders/r{n}.md"), &text(far(), &format!("word {n}.")));
    }
    let service = bot.start();
    let limit = |bytes| {
        let pid = Pid::from_raw(service.pid().try_into().unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    limit(Some(0));
    for n in 0..3 {
        disk::overwrite(&bot.path(&format!("reminders/r{n}.md")), &time(now()));
    }
    service.until("it is said", || service.output().contains("the disk refuses").then_some(()));
    assert!(!service.output().contains("word"), "{}", service.output());
    limit(None);
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    each_ran_once(3, &bot.json(["runs"]), &bot.json(["inbox"]));

    // A service that must end while nothing can be written does end. The next start continues.
    limit(Some(0));
    bot.write("reminders/r3.md", &text(now(), "word 3."));
    service.until("it is said again", || (service.output().matches("the disk refuses").count() >= 2).then_some(()));
    let (_, said) = service.stop();
    assert!(!said.contains("word 3"), "{said}");
    let service = bot.start();
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    each_ran_once(4, &bot.json(["runs"]), &bot.json(["inbox"]));
    service.stop();
}

/// What the person sees while nothing can be recorded, and what becomes of their commands.
#[test]
fn a_journal_that_cannot_be_written_is_seen_and_no_command_takes_effect_late_unsaid() {
    let bot = TestBot::new();
    bot.write("reminders/r0.md", &text(far(), "word 0."));
    let service = bot.start();
    let limit = |bytes| {
        let pid = Pid::from_raw(service.pid().try_into().unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    let is_paused = || bot.json(["status"])["daemon"]["paused"].is_string();

    // The fault is not known yet, so the command finds it.
    limit(Some(0));
    let paused = bot.run(["pause"]);
    assert!(paused.code == 2 && paused.stderr.contains("this is not done yet: the disk refuses"), "{paused:?}");
    limit(None);
    let is_written = || bot.json(["status"])["daemon"]["journal_fault"].is_null();
    service.until("it is done", || (is_written() && is_paused()).then_some(()));
    bot.ok(["resume"]);

    // The fault is known.
    limit(Some(0));
    disk::overwrite(&bot.path("reminders/r0.md"), &time(now()));
    service.until("it is said", || (service.output().matches("the disk refuses").count() >= 2).then_some(()));
    let status = bot.json(["status"]);
    assert!(status["daemon"]["journal_fault"].as_str().unwrap().contains("the disk refuses"), "{status:#}");
    assert_eq!(status["due"][0]["id"], "r0", "{status:#}");
    let status = bot.ok(["status"]);
    assert!(status.lines().any(|line| line.starts_with("journal ") && line.contains("the disk refuses")), "{status}");
    let why = bot.ok(["why", "r0"]);
    assert!(why.contains("has not fired: the disk refuses"), "{why}");
    for command in [&["pause"][..], &["fire", "r0"], &["budget", "--set", "3"]] {
        let refused = bot.run(command);
        assert!(refused.code == 2 && refused.stderr.contains("nothing was done: the disk refuses"), "{refused:?}");
    }
    service.until("the person is told", || {
        service.output().contains("The service has started nothing since").then_some(())
    });
    limit(None);
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    service.until("the person is told that it is over", || {
        bot.json(["inbox"]).to_string().contains("The journal can be written again.").then_some(())
    });
    assert!(!is_paused());
    assert_eq!(bot.runs("r0").len(), 1);
    service.stop();
}

#[test]
fn a_folder_that_cannot_be_written_keeps_files_and_nothing_runs_twice() {
    if !disk::can_mount() {
        return;
    }
    let bot = TestBot::new();
    bot.write("reminders/r0.md", &text(far(), "word 0."));
    let needs_claude = reminder(far(), "background: true\nallowed_tools:\n  - Bash(ls *)\n", "Think.");
    bot.write("reminders/needs-claude.md", &needs_claude);
    let inside = NamespacedService::beside(&bot);
    let service = &inside.service;
    let folder = bot.path("reminders");
    let folder = folder.to_str().unwrap();
    inside.mount("mount", &["--bind", folder, folder]);
    inside.mount("mount", &["-o", "remount,ro,bind", folder]);
    for id in ["r0", "needs-claude"] {
        let fired = inside.run(["fire", id]);
        assert_eq!(fired.code, 0, "{fired:?}");
    }
    service.until("both are over", || (service.output().matches(" ended ").count() >= 2).then_some(()));
    service.until("it is said", || {
        let said = service.output();
        let told = |name: &str| said.lines().any(|line| line.contains("trying again") && line.contains(name));
        (told("r0.md") && told("needs-claude.md") && said.contains("Read-only file system")).then_some(())
    });
    let added = inside.run(["reminder", "add", "-m", "One more.", "--in", "5m"]);
    assert_eq!(added.code, 2, "{added:?}");
    assert!(added.stderr.contains("Read-only file system"), "{added:?}");
    assert_eq!(bot.names("reminders"), ["needs-claude.md", "r0.md"]);

    inside.mount("umount", &[folder]);
    service.until("both files are dealt with", || (bot.names("reminders") == ["failed"]).then_some(()));
    assert_eq!(bot.names("reminders/failed"), ["needs-claude.md"]);
    assert_eq!((bot.runs("r0").len(), bot.runs("needs-claude").len()), (1, 1));
    let (status, said) = inside.service.stop();
    assert!(status.success(), "{said}");
}

#[test]
fn a_data_folder_that_cannot_be_written_is_refused_at_the_start_and_can_be_read() {
    if !disk::can_mount() {
        return;
    }
    let bot = TestBot::new();
    bot.write("reminders/r0.md", &text(now(), "word 0."));
    let service = bot.start();
    service.until_ended("r0", 1);
    service.until("its file is removed", || bot.names("reminders").is_empty().then_some(()));
    service.stop();
    bot.write("reminders/r1.md", &text(now(), "word 1."));
    let refused = disk::run_read_only(&bot, ["run"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("error: ") && refused.stderr.contains("Read-only file system"), "{refused:?}");
    let read = disk::run_read_only(&bot, ["--json", "runs"]);
    assert_eq!(read.code, 0, "{read:?}");
    assert!(read.stdout.contains("\"r0\""), "{read:?}");
    // The disk can be written again, and nothing was lost.
    let service = bot.start();
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    each_ran_once(2, &bot.json(["runs"]), &bot.json(["inbox"]));
    service.stop();
}

#[test]
fn a_journal_that_another_process_holds_is_waited_for() {
    let bot = TestBot::new();
    for n in 0..3 {
        bot.write(&format!("reminders/r{n}.md"), &text(far(), &format!("word {n}.")));
    }
    let service = bot.start();
    let other = Connection::open(bot.path("state/journal.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for n in 0..3 {
        disk::overwrite(&bot.path(&format!("reminders/r{n}.md")), &time(now()));
    }
    service.until("it is said", || service.output().contains("locked by another process").then_some(()));
    assert!(!service.output().contains("word"), "{}", service.output());
    other.execute_batch("ROLLBACK").unwrap();
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    each_ran_once(3, &bot.json(["runs"]), &bot.json(["inbox"]));
    assert_eq!(service.output().matches("locked by another process").count(), 1, "said once: {}", service.output());
    service.stop();
}

#[test]
fn what_is_edited_while_nothing_can_be_recorded_counts_when_it_can_be() {
    let bot = TestBot::new().env("OLLIM_LOG", "ollim_bot=debug");
    bot.write("reminders/r0.md", &text(far(), "what it said before."));
    let service = bot.start();
    let other = Connection::open(bot.path("state/journal.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    disk::overwrite(&bot.path("reminders/r0.md"), &time(now()));
    service.until("it is said", || service.output().contains("locked by another process").then_some(()));
    // The service cannot record the message about a bad file either.
    bot.write("reminders/bad.md", "---\nrun_at: never\n---\nx\n");
    service.until("it is seen", || service.output().contains("bad.md").then_some(()));
    let changes = || service.output().matches("its file has changed id=r0").count();
    let before = changes();
    let due = bot.read("reminders/r0.md").unwrap();
    bot.write("reminders/r0.md", &due.replace("what it said before.", "word 0."));
    service.until("the edit is followed", || (changes() > before).then_some(()));
    other.execute_batch("ROLLBACK").unwrap();
    service.until("its file is dealt with", || (bot.names("reminders") == ["bad.md"]).then_some(()));
    assert!(!service.output().contains("what it said before"), "{}", service.output());
    each_ran_once(1, &bot.json(["runs"]), &bot.json(["inbox"]));
    service.stop();
}

#[test]
fn a_data_folder_that_is_moved_away_is_waited_for() {
    let bot = TestBot::new();
    bot.write("reminders/done.md", &text(now(), "the one before."));
    for n in 0..3 {
        bot.write(&format!("reminders/r{n}.md"), &text(now() + TimeDelta::seconds(3), &format!("word {n}.")));
    }
    let service = bot.start();
    service.until_ended("done", 1);
    let away = bot.person().join("away");
    fs::rename(bot.home(), &away).unwrap();
    service.until("it is said", || service.output().contains("is gone; bring its folder back").then_some(()));
    assert!(!service.output().contains("word"), "{}", service.output());
    fs::rename(&away, bot.home()).unwrap();
    service.until("every file is dealt with", || bot.names("reminders").is_empty().then_some(()));
    let runs = bot.json(["runs"]);
    assert_eq!(runs.as_array().unwrap().len(), 4, "{runs:#}");
    assert!(runs.as_array().unwrap().iter().all(|run| run["outcome"] == "completed"), "{runs:#}");
    service.stop();
}

/// Asserts that the service ends: it could record nothing any more, and nothing would exclude a second service.
fn ends_when_its_state_is_gone(bot: &TestBot, service: Service<'_>, again: &[&str]) {
    bot.write("reminders/r1.md", &text(now(), "word 1."));
    for folder in again {
        fs::create_dir_all(bot.path(folder)).unwrap();
    }
    let (status, said) = service.wait();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("was deleted or replaced while the service ran"), "{said}");
    assert!(said.contains("state/ holds the journal"), "{said}");
}

#[test]
fn a_service_whose_state_folder_is_deleted_says_so_and_ends() {
    for again in [&[][..], &["state"]] {
        let bot = TestBot::new();
        bot.write("reminders/r0.md", &text(now(), "word 0."));
        let service = bot.start();
        service.until("its file is removed", || bot.names("reminders").is_empty().then_some(()));
        delete(&bot, &bot.path("state"));
        ends_when_its_state_is_gone(&bot, service, again);
        // The next service continues from the files.
        fs::create_dir_all(bot.path("state")).unwrap();
        let service = bot.start();
        service.until("it fires", || bot.names("reminders").is_empty().then_some(()));
        let (status, said) = service.stop();
        assert!(status.success(), "{said}");
    }
}

#[test]
fn a_service_whose_data_folder_is_deleted_and_made_again_says_so_and_ends() {
    let bot = TestBot::new();
    bot.write("reminders/r0.md", &text(now(), "word 0."));
    let service = bot.start();
    service.until("its file is removed", || bot.names("reminders").is_empty().then_some(()));
    delete(&bot, bot.home());
    ends_when_its_state_is_gone(&bot, service, &["routines", "reminders", "state"]);
}
