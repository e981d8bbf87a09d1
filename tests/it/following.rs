//! Edits of files while the service is running.
//!
//! A later run shows that a change was followed. A later reminder that fired shows that another did *not* fire.

use std::fs;

use chrono::{DateTime, TimeDelta, Utc};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;

fn soon() -> DateTime<Utc> {
    now() + TimeDelta::seconds(2)
}

fn never() -> DateTime<Utc> {
    now() + TimeDelta::days(3000)
}

/// Runs a reminder that is due after all previous ones. Its end shows that their time has passed.
#[track_caller]
fn let_time_pass(bot: &TestBot, service: &Service<'_>, name: &str) {
    bot.write(&format!("reminders/{name}.md"), &reminder(soon() + TimeDelta::seconds(1), "", "time has passed"));
    service.until_ended(name, 1);
}

#[test]
fn a_new_a_changed_and_a_deleted_reminder_are_followed() {
    let bot = TestBot::new();
    bot.write("reminders/changed.md", &reminder(never(), "", "the old words"));
    let service = bot.start();

    bot.write("reminders/new.md", &reminder(soon(), "", "a new file"));
    bot.write("reminders/changed.md", &reminder(soon(), "", "the new words"));
    bot.write("reminders/deleted.md", &reminder(soon(), "", "must never be seen"));
    fs::remove_file(bot.path("reminders/deleted.md")).unwrap();
    assert_eq!(service.until_ended("new", 1)[0]["outcome"], "completed");
    assert_eq!(service.until_ended("changed", 1)[0]["outcome"], "completed");
    let_time_pass(&bot, &service, "later");
    assert!(bot.runs("deleted").is_empty());
    let inbox = bot.json(["inbox"]).to_string();
    assert!(inbox.contains("the new words") && !inbox.contains("the old words"), "{inbox}");
    assert!(!inbox.contains("must never be seen"), "{inbox}");
    service.stop();
}

/// The watcher waits until an edit is complete. A job fired within that time runs with the file's present text.
#[test]
fn what_fires_is_the_file_of_that_moment() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(never(), "", "words 0"));
    bot.write("routines/mail.md", "---\ncron: 0 0 29 2 *\n---\nMail 0.\n");
    let service = bot.start();
    service.until("it takes commands", || (bot.run(["fire", "mail"]).code == 0).then_some(()));
    service.until_ended("mail", 1);
    for round in 1..=5 {
        bot.write("work/staged.md", &format!("---\ncron: 0 0 29 2 *\n---\nMail {round}.\n"));
        fs::rename(bot.path("work/staged.md"), bot.path("routines/mail.md")).unwrap();
        bot.ok(["fire", "mail"]);
        let run = service.until_ended("mail", round + 1)[0].clone();
        let fired = bot.json(["runs", "show", run["run"].as_str().unwrap()])["definition"].to_string();
        assert!(fired.contains(&format!("Mail {round}.")), "{round}: {fired}");
    }
    // A deleted reminder does not run, even if the watcher has not yet seen that.
    fs::remove_file(bot.path("reminders/tea.md")).unwrap();
    if bot.run(["fire", "tea"]).code == 0 {
        let run = service.until_ended("tea", 1)[0].clone();
        assert_eq!(run["error"], "its file was deleted before it could run", "{run:#}");
    }
    assert!(!bot.json(["inbox"]).to_string().contains("words 0"));
    service.stop();
}

#[test]
fn a_broken_edit_stops_a_job_and_a_fixed_one_starts_it_again() {
    let bot = TestBot::new();
    let at = soon() + TimeDelta::seconds(1);
    bot.write("reminders/job.md", &reminder(at, "", "fixed"));
    let service = bot.start();
    bot.write("reminders/job.md", &reminder(at, "timezone: Mars/Olympus\n", "broken"));
    let_time_pass(&bot, &service, "later");
    assert!(bot.runs("job").is_empty(), "a broken file does not fire, nor does what it was before");
    let problems = bot.json(["status"])["problems"].to_string();
    assert!(problems.contains("reminders/job.md"), "{problems}");

    bot.write("reminders/job.md", &reminder(soon(), "", "fixed"));
    let run = &service.until_ended("job", 1)[0];
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(bot.json(["inbox"]).to_string().contains("fixed"));
    service.stop();
}

#[test]
fn an_edited_cron_line_is_followed() {
    let bot = TestBot::new();
    let routine = |cron: &str| format!("---\ncron: \"{cron}\"\n---\nWater the plants.\n");
    bot.write("routines/plants.md", &routine("0 0 29 2 *"));
    let service = bot.start();
    let next = |what: &str, is: fn(&DateTime<Utc>) -> bool| {
        service.until(what, || {
            let status = bot.json(["status"]);
            let at = status["next"].as_array()?.iter().find(|next| next["id"] == "plants")?["at"].as_str()?.to_string();
            DateTime::parse_from_rfc3339(&at).ok().map(|at| at.to_utc()).filter(is)
        })
    };
    next("the first time", |at| *at > now() + TimeDelta::days(2));
    // The routine fires at the next full minute.
    bot.write("routines/plants.md", &routine("* * * * *"));
    next("the edited line is in force", |at| *at < now() + TimeDelta::minutes(2));
    let run = &service.until_ended("plants", 1)[0];
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
}

#[test]
fn a_git_checkout_of_the_folder_is_followed() {
    let bot = TestBot::new();
    let git = |args: &[&str]| bot.git(args);
    let at = soon() + TimeDelta::seconds(2);
    git(&["init", "-q"]);
    bot.write(".gitignore", "state/\n");
    bot.write("reminders/kept.md", &reminder(at, "", "in both branches"));
    bot.write("reminders/only-main.md", &reminder(at, "", "must never be seen"));
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    git(&["checkout", "-qb", "other"]);
    git(&["rm", "-q", "reminders/only-main.md"]);
    for n in 0..50 {
        bot.write(&format!("reminders/other-{n}.md"), &reminder(at, "", &format!("from the other branch: {n}.")));
    }
    git(&["add", "-A"]);
    git(&["commit", "-qm", "two"]);
    git(&["checkout", "-q", "main"]);

    let service = bot.start();
    git(&["checkout", "-q", "other"]);
    service.until_ended("kept", 1);
    for n in 0..50 {
        service.until_ended(&format!("other-{n}"), 1);
    }
    assert!(bot.runs("only-main").is_empty());
    service.stop();
}

#[test]
fn the_folder_itself_may_be_replaced() {
    let bot = TestBot::new();
    bot.write("reminders/old.md", &reminder(soon() + TimeDelta::seconds(1), "", "must never be seen"));
    let service = bot.start();
    fs::rename(bot.path("reminders"), bot.person().join("away")).unwrap();
    bot.write("fresh/new.md", &reminder(soon(), "", "in the new folder"));
    fs::rename(bot.path("fresh"), bot.path("reminders")).unwrap();
    service.until_ended("new", 1);
    let_time_pass(&bot, &service, "later");
    assert!(bot.runs("old").is_empty());
    service.stop();
}

#[test]
fn what_waits_for_a_broken_file_ends_when_that_goes_or_becomes_another_job() {
    let scripts = tempfile::TempDir::new().unwrap();
    let until_told = "until [ -e \"$OLLIM_HOME/work/go\" ]; do sleep 0.05; done\nexit 3";
    let client = client::script(scripts.path(), until_told);
    let bot = TestBot::with_client(&client, "http://127.0.0.1:9").env("OLLIM_MAX_CONCURRENT_RUNS", "1");
    let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: []\n";
    bot.write("reminders/first.md", &reminder(now(), fields, "Do the thing."));
    let service = bot.start();
    let outcome = |id: &str| bot.runs(id).first().map(|run| run["outcome"].as_str().unwrap().to_owned());
    let until = |id: &str, expected: &str| {
        service.until(&format!("{id} is {expected}"), || (outcome(id).as_deref() == Some(expected)).then_some(()));
    };
    until("first", "running");
    for id in ["gone", "another"] {
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), fields, "Wait."));
        until(id, "claimed");
        bot.write(&format!("reminders/{id}.md"), "broken");
    }
    service.until("both are said to be broken", || {
        (bot.json(["inbox"]).to_string().matches("there is no frontmatter").count() == 2).then_some(())
    });
    bot.write("work/go", "");
    service.until("both wait for their files", || {
        (service.output().matches("it waits until its file is valid again").count() == 2).then_some(())
    });
    fs::remove_file(bot.path("reminders/gone.md")).unwrap();
    until("gone", "skipped");
    let other = reminder(never(), &format!("id: other\n{fields}"), "Later.");
    bot.write("reminders/another.md", &other);
    until("another", "skipped");
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    assert_eq!(bot.read("reminders/another.md"), Some(other), "it is another job's by now");
}

/// Two reminders that the person fires before their time, and the texts of their files.
fn fired_early(bot: &TestBot) -> Service<'_> {
    let at = now() + TimeDelta::seconds(8);
    let fields = |command: &str| format!("client: exec\ncommand: '{command}'\nallowed_tools: []\nbackground: true\n");
    for (id, command) in [("fails", "exit 1"), ("works", "exit 0")] {
        bot.write(&format!("reminders/{id}.md"), &reminder(at, &fields(command), "x"));
    }
    bot.start()
}

#[track_caller]
fn both_are_told_of(bot: &TestBot, service: &Service) {
    for (id, outcome) in [("fails", "failed"), ("works", "completed")] {
        let told = format!("reminder {id} did not run: its time has had its run already, which was {outcome}");
        service.until("it is told", || bot.json(["inbox"]).to_string().contains(&told).then_some(()));
        assert!(bot.read(&format!("reminders/failed/{id}.md")).is_some());
        assert_eq!(bot.runs(id).len(), 1);
    }
}

/// Its time has an outcome from when the person fired it. That must not end it in silence.
#[test]
fn a_reminder_that_is_put_back_by_hand_to_a_time_that_was_used_is_told_of() {
    let bot = TestBot::new();
    let service = fired_early(&bot);
    let text = bot.read("reminders/works.md").unwrap();
    for id in ["fails", "works"] {
        service.fire(id);
    }
    service.until("both files are gone", || (bot.names("reminders") == ["failed"]).then_some(()));
    // The service has seen that they are gone.
    bot.write("reminders/after.md", &reminder(now(), "client: notify\n", "x"));
    service.until_ended("after", 1);
    fs::rename(bot.path("reminders/failed/fails.md"), bot.path("reminders/fails.md")).unwrap();
    bot.write("reminders/works.md", &text);
    both_are_told_of(&bot, &service);
    service.stop();
}

/// The watch on the folder sees no change of a file that is put back before its removal was read.
#[test]
fn a_reminder_that_is_put_back_at_once_to_a_time_that_was_used_is_told_of() {
    let bot = TestBot::new();
    let service = fired_early(&bot);
    std::thread::scope(|scope| {
        for (id, from) in [("fails", "reminders/failed/fails.md"), ("works", "copy")] {
            let file = bot.path(&format!("reminders/{id}.md"));
            bot.write("copy", &bot.read("reminders/works.md").unwrap());
            let from = bot.path(from);
            scope.spawn(move || {
                while file.exists() {
                    std::thread::yield_now();
                }
                fs::rename(from, file).unwrap();
            });
        }
        for id in ["fails", "works"] {
            service.fire(id);
        }
    });
    both_are_told_of(&bot, &service);
    service.stop();
}
