//! Waiting occurrences: they are shown as waiting, grouped ones with their number, and none twice.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use ollim_bot::clock::Clock;
use ollim_bot::definition::{DefinitionId, Kind};
use ollim_bot::journal::{
    AfterAttempt, Claim, Finish, Journal, NewClaim, ObservedGeneration, Occurrence, Punctuality, Purpose, RunId,
    RunState,
};
use serde_json::json;

use crate::cli::shown;
use crate::cli_read::steady;
use crate::support::bot::{TestBot, now, reminder};

/// Opens the journal as a service that has ended leaves it.
fn journal(home: &Path, clock: Clock) -> Journal {
    std::fs::create_dir_all(home.join("state")).unwrap();
    Journal::open(&home.join("state/journal.db"), clock).unwrap()
}

async fn claim(journal: &Journal, id: &str, kind: Kind, at: DateTime<Utc>, purpose: Purpose) -> RunId {
    let claim = NewClaim {
        occurrence: Occurrence { id: DefinitionId::new(id), kind, at },
        file: format!("{kind}s/{id}.md").into(),
        text: "".into(),
        purpose,
        occasion: None,
        origin: None,
        run: RunId::random(),
    };
    let Claim::Claimed(run) = journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!("claimed") };
    run
}

/// Truncates a time to whole milliseconds, the journal's unit.
fn whole(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap()
}

#[track_caller]
fn typed(bot: &TestBot, args: &[&str]) -> String {
    steady(&shown(bot, &bot.run(args)))
}

/// Returns the lines below a heading of `status`.
fn part(bot: &TestBot, heading: &str) -> String {
    let words = steady(&bot.ok(["status"]));
    let mut lines = words.lines().skip_while(|line| *line != heading).skip(1);
    lines.by_ref().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_and_is_tried_again_says_when() {
    let bot = TestBot::new();
    bot.write("routines/mail.md", "---\ncron: \"@yearly\"\nretry: 1\n---\nRead the mail.\n");
    let before = journal(bot.home(), Clock::system());
    let run = claim(&before, "mail", Kind::Routine, whole(now()), Purpose::Run).await;
    before.launching(&run, "".into(), String::new(), Punctuality::Unknown).await.unwrap();
    let again = whole(now()) + TimeDelta::minutes(10);
    let failed = Finish {
        after: AfterAttempt::RetryAt(again),
        ..Finish::closed(RunState::Failed, Some("the API was overloaded".into()))
    };
    before.api_retry(&run, "the API was overloaded".into());
    before.finish(&run, failed).await.unwrap();
    before.close().await;
    let known = |text: String| text.replace(run.as_str(), "RUN");

    assert_eq!(
        known(part(&bot, "Waiting for the service")),
        "RUN routine mail failed, again in SPAN: the API was overloaded"
    );
    let runs = known(typed(&bot, &["runs"]));
    assert!(runs.ends_with(" failed, again in SPAN the API was overloaded"), "{runs}");
    let show = known(typed(&bot, &["runs", "show", run.as_str()]));
    assert!(show.contains("\noutcome failed, again in SPAN\n"), "{show}");
    assert!(show.lines().any(|line| line.starts_with("again ") && line.ends_with("(in SPAN)")), "{show}");
    let json = bot.json(["runs"]);
    let at: DateTime<Utc> = json[0]["retry_at"].as_str().unwrap().parse().unwrap();
    assert_eq!((at, &json[0]["outcome"]), (again, &json!("failed")));

    // What is tried again by itself is no failure, but not in order either.
    let doctor: serde_json::Value = serde_json::from_str(&bot.run(["doctor", "--json"]).stdout).unwrap();
    let jobs = doctor["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "jobs").unwrap();
    assert_eq!(jobs["health"], "look");
    assert_eq!(steady(jobs["detail"].as_str().unwrap()), "mail failed, again in SPAN: the API was overloaded");
    let service = bot.start();
    let status = service.until("it has taken it up", || {
        let status = bot.json(["status"]);
        (!status["daemon"].is_null()).then_some(status)
    });
    assert_eq!((&status["running"], &status["waiting"][0]["run"]), (&json!([]), &json!(run.as_str())));
    assert!(status["waiting"][0]["retry_at"].is_string());
    assert_eq!(known(part(&bot, "Waiting")), "RUN routine mail failed, again in SPAN: the API was overloaded");
    bot.ok(["cancel-run", run.as_str()]);
    service.until("it is over", || (bot.json(["status"])["waiting"] == json!([])).then_some(()));
    let over = bot.json(["runs"]);
    assert_eq!(over[0]["retry_at"], json!(null));
    assert_eq!(over[0]["error"], "the API was overloaded; not tried again: a person ended it");
    let runs = typed(&bot, &["runs"]);
    assert!(!runs.contains("again in"));
    assert_eq!(runs.matches("overloaded").count(), 1, "{runs}");
    service.stop();
}

#[tokio::test]
async fn a_list_says_of_a_reminder_whose_run_is_open_how_that_stands() {
    let bot = TestBot::new();
    let at = whole(now()) - TimeDelta::minutes(10);
    for id in ["begun", "claimed", "missed"] {
        bot.write(&format!("reminders/{id}.md"), &reminder(at, "", "Tea."));
    }
    bot.write("reminders/off.md", &reminder(at, "enabled: false\n", "Tea."));
    let before = journal(bot.home(), Clock::system());
    let run = claim(&before, "begun", Kind::Reminder, at, Purpose::Run).await;
    before.launching(&run, "".into(), String::new(), Punctuality::Unknown).await.unwrap();
    claim(&before, "claimed", Kind::Reminder, at, Purpose::Run).await;
    before.close().await;
    let list = bot.ok(["reminder", "list"]);
    let of = |id: &str| list.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{list}")).to_owned();
    for (id, why) in [("begun", "was cut off"), ("claimed", "waiting"), ("missed", "10m ago"), ("off", "disabled")] {
        assert!(of(id).contains(why), "{list}");
    }
}

#[tokio::test]
async fn one_that_stands_for_many_says_so() {
    let bot = TestBot::new();
    let before = journal(bot.home(), Clock::system());
    let (from, to) = ("2021-11-20T08:00:00Z".parse().unwrap(), "2021-11-20T21:19:00Z".parse().unwrap());
    let why = "missed: nothing could run at its time";
    let run = claim(&before, "mail", Kind::Routine, to, Purpose::SkipSince(from, why.into())).await;
    before.close().await;
    let known = |text: String| text.replace(run.as_str(), "RUN");
    insta::assert_snapshot!(known(typed(&bot, &["runs"])), @"
    exit: 0
    -- stdout
    RUN JOB SCHEDULED LATE TOOK OUTCOME
    RUN routine mail Sat 20 Nov 2021 21:19 UTC SPAN skipped stands for all since Sat 20 Nov 2021 08:00 UTC, missed: nothing could run at its time
    ");
    let show = typed(&bot, &["runs", "show", run.as_str()]);
    let all = "stands for all from Sat 20 Nov 2021 08:00 UTC to Sat 20 Nov 2021 21:19 UTC";
    assert!(show.lines().any(|line| line == all), "{show}");
    assert_eq!(bot.json(["runs"])[0]["covers_from"], "2021-11-20T08:00:00+00:00");
}

#[tokio::test]
async fn what_is_claimed_is_not_coming() {
    let bot = TestBot::new();
    // A file may be more precise than the journal: the reminder is due at the next millisecond.
    let at = whole(now()) - TimeDelta::hours(3);
    for id in ["claimed", "over", "late"] {
        bot.write(&format!("reminders/{id}.md"), &reminder(at - TimeDelta::microseconds(500), "", "Look."));
    }
    // Fired early by hand.
    let far = whole(now()) + TimeDelta::days(30);
    bot.write("reminders/early.md", &reminder(far, "", "Look."));
    let before = journal(bot.home(), Clock::system());
    let due = |id| claim(&before, id, Kind::Reminder, at, Purpose::Run);
    due("claimed").await;
    let over = due("over").await;
    before.finish(&over, Finish::closed(RunState::Cancelled, None)).await.unwrap();
    claim(&before, "early", Kind::Reminder, far, Purpose::RunByHand).await;
    before.close().await;

    let coming = bot.json(["next"]);
    let ids: Vec<&str> = coming.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["late"]);
    let status = bot.json(["status"]);
    assert_eq!(status["next"].as_array().unwrap().len(), 1, "{status:#}");
    let waiting = part(&bot, "Waiting for the service");
    let waiting: Vec<&str> = waiting.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(waiting, ["reminder early waiting", "reminder claimed due SPAN ago"]);
    assert_eq!(bot.json(["next", "claimed"]), json!([]));
    let one_line = bot.ok([""; 0]);
    assert!(one_line.contains("next: ") && one_line.contains("3h ago"), "{one_line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_falls_due_while_everything_is_paused_is_shown_as_waiting() {
    let bot = TestBot::new();
    let cron = "*/10 * * * *";
    bot.write("routines/mail.md", &format!("---\ncron: \"{cron}\"\ntimezone: Europe/Berlin\n---\nLook.\n"));
    bot.write("routines/off.md", &format!("---\ncron: \"{cron}\"\nenabled: false\n---\nLook.\n"));
    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::hours(1), "", "Tea."));
    let earlier = now() - TimeDelta::minutes(50);
    let before = journal(bot.home(), Clock::simulated(earlier));
    let seen = ObservedGeneration {
        id: DefinitionId::new("mail"),
        trigger: format!("{cron}\nEurope/Berlin\ntrue"),
        text: "".into(),
    };
    before.observe([seen].into(), earlier).await.unwrap();
    // One occurrence already has its record, since the clock was set back.
    let tenth = DateTime::from_timestamp((earlier.timestamp() / 600 + 1) * 600, 0).unwrap();
    claim(&before, "mail", Kind::Routine, tenth, Purpose::Skip("missed".into())).await;
    let far = tenth + TimeDelta::minutes(10);
    claim(&before, "mail", Kind::Routine, far, Purpose::Skip("missed".into())).await;
    before.rewind_watermarks().await.unwrap();
    before.set_setting("paused", Some(earlier.to_rfc3339())).await.unwrap();
    before.close().await;

    let service = bot.start();
    let status = service.until("it has taken it up", || {
        let status = bot.json(["status"]);
        (!status["daemon"]["paused"].is_null()).then_some(status)
    });
    let due = status["due"].as_array().unwrap();
    assert_eq!((due.len(), &due[0]["id"], &due[0]["count"]), (2, &json!("tea"), &json!(1)));
    assert_eq!((&due[1]["id"], &due[1]["kind"]), (&json!("mail"), &json!("routine")));
    let count = due[1]["count"].as_u64().unwrap();
    let since: DateTime<Utc> = due[1]["since"].as_str().unwrap().parse().unwrap();
    assert!((3..5).contains(&count) && since == far + TimeDelta::minutes(10), "{status:#}");
    assert!(status["next"].as_array().unwrap().iter().all(|next| next["id"] == "mail"), "{status:#}");
    let waiting = part(&bot, "Waiting");
    let (tea, mail) = waiting.split_once('\n').unwrap();
    assert_eq!(tea.trim(), "reminder tea due SPAN ago");
    assert!(
        mail.trim().starts_with("routine mail due ") && mail.contains(" times since ") && mail.ends_with("(SPAN ago)"),
        "{mail}"
    );
    bot.ok(["resume"]);
    service.until("nothing waits", || (bot.json(["status"])["due"] == json!([])).then_some(()));
    service.stop();
}

#[test]
fn what_waits_for_a_slot_says_so() {
    let bot = TestBot::new();
    bot.write("config.yaml", "max_concurrent_runs: 1\n");
    bot.write("routines/hog.md", "---\ncron: \"@yearly\"\nclient: exec\ncommand: sleep 60\n---\n");
    let service = bot.start();
    bot.ok(["fire", "hog"]);
    let is_running = || (bot.json(["status"])["running"][0]["outcome"] == "running").then_some(());
    service.until("the hog runs", is_running);
    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::hours(1), "client: exec\ncommand: \"true\"\n", ""));
    let status = service.until("the reminder waits", || {
        let status = bot.json(["status"]);
        status["running"].as_array().unwrap().iter().any(|run| !run["waits_for"].is_null()).then_some(status)
    });
    let tea = status["running"].as_array().unwrap().iter().find(|run| run["id"] == "tea").unwrap();
    assert_eq!(tea["waits_for"], "as many runs are going as may");
    let waiting = part(&bot, "Waiting");
    assert!(
        waiting.ends_with(" reminder tea due SPAN ago: it waits, since as many runs are going as may"),
        "{waiting}"
    );
    let hog = status["running"].as_array().unwrap().iter().find(|run| run["id"] == "hog").unwrap();
    bot.ok(["cancel-run", hog["run"].as_str().unwrap()]);
    service.until("all is done", || (bot.json(["status"])["running"] == json!([])).then_some(()));
    assert!(bot.ok(["why", "tea"]).contains("no file gave it this time until "), "{}", bot.ok(["why", "tea"]));
    service.stop();
}
