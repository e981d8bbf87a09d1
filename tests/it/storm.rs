//! A thousand changes at once, and more than the kernel reports: afterwards every definition is right.
//!
//! Fired reminders show the definitions that the service holds: each file has a time, and a text that is delivered.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::Signal;

use crate::support::bot::{Service, TestBot, now, reminder};

const MANY: usize = 1000;

fn never() -> DateTime<Utc> {
    now() + TimeDelta::days(3000)
}

fn name(n: usize) -> String {
    format!("reminders/r{n:04}.md")
}

fn words(n: usize) -> String {
    format!("the new words of {n:04}")
}

/// Waits until exactly these reminders have fired, each once, and none failed. A last one that falls due after all of
/// them shows that the others could have fired by then.
#[track_caller]
fn only_these_fire(bot: &TestBot, service: &Service<'_>, expected: impl Iterator<Item = usize>) {
    let mut expected: BTreeMap<String, usize> = expected.map(|n| (words(n), 1)).collect();
    service.until("all that are to fire have", || {
        let runs = bot.json(["runs", "-n", "100000"]);
        let ended = runs.as_array()?.iter().filter(|run| run["outcome"] == "completed").count();
        (ended >= expected.len()).then_some(())
    });
    bot.write("reminders/last.md", &reminder(now(), "", "the last"));
    service.until_ended("last", 1);
    expected.insert("the last".into(), 1);
    let mut delivered: BTreeMap<String, usize> = BTreeMap::new();
    let messages = bot.json(["inbox", "-n", "100000"]);
    // A file that was read between two writes has an error for a moment. A message may report it, but it has no run.
    for message in messages.as_array().unwrap().iter().filter(|message| !message["run"].is_null()) {
        // On a slow machine some begin late. A line before their own says so.
        let text = message["text"].as_str().unwrap().trim();
        let text = text.rsplit("running now]\n\n").next().unwrap_or_default();
        *delivered.entry(text.to_owned()).or_default() += 1;
    }
    let surplus: Vec<_> = delivered.iter().filter(|found| expected.get(found.0) != Some(found.1)).collect();
    assert!(surplus.is_empty(), "fired and must not have: {surplus:?}");
    let missing: Vec<_> = expected.keys().filter(|words| !delivered.contains_key(*words)).collect();
    assert!(missing.is_empty(), "must have fired: {missing:?}");
}

/// Changes a file in one of the ways of a person's tools. `n` selects the way.
fn change(bot: &TestBot, n: usize, at: DateTime<Utc>) {
    let path = bot.path(&name(n));
    let beside = |suffix: &str| path.with_file_name(format!("{}{suffix}", path.file_name().unwrap().to_str().unwrap()));
    let text = reminder(at, "", &words(n));
    match n % 10 {
        // In place.
        0 => fs::write(&path, text).unwrap(),
        // In place, in two writes: between them it is no reminder.
        1 => {
            let (first, rest) = text.split_at(20);
            let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
            file.write_all(first.as_bytes()).unwrap();
            file.write_all(rest.as_bytes()).unwrap();
        }
        // vim: checks that it may write, keeps the old file beside, writes a new one, removes the old one.
        2 => {
            let probe = path.with_file_name("4913");
            fs::write(&probe, "").unwrap();
            fs::remove_file(&probe).unwrap();
            fs::rename(&path, beside("~")).unwrap();
            fs::write(&path, text).unwrap();
            fs::remove_file(beside("~")).unwrap();
        }
        // emacs: a dangling link as a lock, a copy, a rename over the file.
        3 => {
            let lock = path.with_file_name(format!(".#r{n:04}.md"));
            std::os::unix::fs::symlink("somebody@somewhere.1:2", &lock).unwrap();
            fs::write(path.with_file_name(format!("#r{n:04}.md#")), &text).unwrap();
            fs::rename(path.with_file_name(format!("#r{n:04}.md#")), &path).unwrap();
            fs::remove_file(&lock).unwrap();
        }
        // rsync, Syncthing: a hidden file with the old time, then a rename over it.
        4 => {
            let hidden = path.with_file_name(format!(".r{n:04}.md.Xy12Zz"));
            let before = fs::metadata(&path).unwrap().modified().unwrap();
            let mut file = fs::File::create(&hidden).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.set_modified(before).unwrap();
            fs::rename(&hidden, &path).unwrap();
        }
        // Removed, and written again.
        5 => {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
        }
        // Broken for a moment.
        6 => {
            fs::write(&path, "---\nrun_at: soon\n---\nBroken.\n").unwrap();
            fs::write(&path, text).unwrap();
        }
        // Under another name.
        7 => {
            fs::write(&path, text).unwrap();
            fs::rename(&path, path.with_file_name(format!("moved-{n:04}.md"))).unwrap();
        }
        // Gone.
        8 => fs::remove_file(&path).unwrap(),
        // No relevant change.
        _ => {
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            fs::File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

#[test]
fn a_storm_of_a_thousand_changes_is_followed() {
    let bot = TestBot::new();
    for n in 0..MANY {
        fs::write(bot.path(&name(n)), reminder(never(), "", &format!("the old words of {n:04}"))).unwrap();
    }
    let service = bot.start();
    let at = now() + TimeDelta::seconds(5);
    for n in 0..MANY {
        change(&bot, n, at);
    }
    only_these_fire(&bot, &service, (0..MANY).filter(|n| n % 10 < 8));
    let left = bot.names("reminders").iter().filter(|name| name.ends_with(".md")).count();
    assert_eq!(left, MANY / 10, "those of which nothing changed that counts");
    service.stop();
}

#[test]
fn a_git_checkout_of_a_thousand_files_is_followed() {
    let bot = TestBot::new();
    let git = |args: &[&str]| bot.git(args);
    let at = now() + TimeDelta::seconds(12);
    fs::write(bot.path(".gitignore"), "state/\n").unwrap();
    for n in 0..MANY {
        fs::write(bot.path(&name(n)), reminder(never(), "", "the old words")).unwrap();
    }
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    git(&["checkout", "-qb", "other"]);
    for n in 0..MANY {
        match n % 4 {
            0 => fs::remove_file(bot.path(&name(n))).unwrap(),
            1 => {}
            _ => fs::write(bot.path(&name(n)), reminder(at, "", &words(n))).unwrap(),
        }
    }
    git(&["add", "-A"]);
    git(&["commit", "-qm", "two"]);
    git(&["checkout", "-q", "main"]);
    let service = bot.start();
    git(&["checkout", "-q", "other"]);
    only_these_fire(&bot, &service, (0..MANY).filter(|n| n % 4 > 1));
    service.stop();
}

/// The kernel keeps a limited number of events for a reader that does not read. A stopped service does not read.
#[test]
fn more_than_the_kernel_tells_of_is_followed() {
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let bot = TestBot::new();
    for n in 0..100 {
        fs::write(bot.path(&name(n)), reminder(never(), "", "the old words")).unwrap();
    }
    let service = bot.start();
    service.signal(Signal::STOP);
    service.until("it is stopped", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", service.pid())).unwrap();
        stat.rsplit_once(')')?.1.trim_start().starts_with('T').then_some(())
    });
    // Each of these causes at least two events, and never two equal ones in a row, so that the kernel merges none of them.
    let (one, other) = (bot.path("reminders/noise-1.md"), bot.path("reminders/noise-2.md"));
    fs::write(&one, "noise").unwrap();
    for _ in 0..most {
        fs::rename(&one, &other).unwrap();
        fs::rename(&other, &one).unwrap();
    }
    fs::remove_file(&one).unwrap();
    // The kernel no longer reports these.
    let at = now() + TimeDelta::seconds(2);
    for n in 0..100 {
        change(&bot, n, at);
    }
    for n in 100..200 {
        fs::write(bot.path(&name(n)), reminder(at, "", &words(n))).unwrap();
    }
    service.signal(Signal::CONT);
    service.until("it says that events were lost", || service.output().contains("was lost to us").then_some(()));
    only_these_fire(&bot, &service, (0..100).filter(|n| n % 10 < 8).chain(100..200));
    service.stop();
}
