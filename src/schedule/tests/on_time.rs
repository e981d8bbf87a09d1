//! Due occurrences: on time, once, in order, and late if nothing could run.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::super::occurrences;
use super::support::*;
use crate::definition::{Cadence, Definition, DefinitionId, Mode, OnMissed, OnOverlap, Recurrence, Trigger};

#[tokio::test(start_paused = true)]
async fn a_reminder_fires_at_its_time_and_its_file_goes() {
    let world = World::new();
    let process = world.begin(&[reminder("tea")]);
    minutes(59).await;
    assert_eq!(world.started(), [""; 0]);
    minutes(2).await;
    assert_eq!(world.started(), ["tea 01T13:00:00"]);
    assert_eq!(world.attempts(), ["tea 01T13:00 completed"]);
    assert_eq!(world.remaining_files(), [""; 0]);
    assert_eq!(world.starts()[0].late, None);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn half_past_eight_in_new_york_all_year() {
    let zone = Tz::America__New_York;
    let world = World::at(Utc.with_ymd_and_hms(2026, 3, 1, 0, 0, 0).unwrap());
    let mut mail = with_cron(routine("mail"), "30 8 * * *", OnOverlap::Skip);
    mail.zone = zone;
    let process = world.begin(&[mail]);
    minutes(270 * 24 * 60).await;
    let local: Vec<_> = world.starts().iter().map(|start| start.at.with_timezone(&zone)).collect();
    assert_eq!(local.len(), 270);
    assert!(local.iter().all(|at| at.format("%H:%M:%S").to_string() == "08:30:00"), "{local:?}");
    let offsets: BTreeSet<_> = local.iter().map(|at| at.format("%z").to_string()).collect();
    assert_eq!(offsets, BTreeSet::from(["-0400".to_owned(), "-0500".to_owned()]));
    process.stop(Duration::ZERO).await;
}

/// A routine fires at the predicted times, across a clock change and a restart.
#[tokio::test(start_paused = true)]
async fn a_span_with_jitter_fires_when_it_is_shown_to() {
    let zone = Tz::Europe__Berlin;
    let start = Utc.with_ymd_and_hms(2026, 3, 28, 0, 0, 0).unwrap();
    let world = World::at(start);
    let span = Duration::from_secs(90 * 60);
    let recurs = Recurrence { cadence: Cadence::Every(span), jitter: Some(Duration::from_secs(20 * 60)) };
    let mut mail = routine("mail");
    (mail.zone, mail.trigger) = (zone, Trigger::Routine { recurs, on_overlap: OnOverlap::Skip });
    let shown: Vec<_> = occurrences(&mail, start).take(32).collect();
    let process = world.begin(std::slice::from_ref(&mail));
    minutes(24 * 60).await;
    process.stop(Duration::ZERO).await;
    let process = world.begin(&[mail]);
    minutes(24 * 60).await;
    let started: Vec<_> = world.starts().iter().map(|start| (start.at, start.due)).collect();
    assert_eq!(started, shown.iter().map(|at| (*at, *at)).take(started.len()).collect::<Vec<_>>());
    assert!(started.len() >= 31, "{started:?}");
    let nominal = shown.iter().map(|at| at.timestamp().rem_euclid(90 * 60)).collect::<BTreeSet<_>>();
    assert!(nominal.len() > 25, "{nominal:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_in_the_same_second_run_once_each() {
    let world = World::new();
    let all: Vec<Definition> = (0..1000).map(|n| reminder(&format!("r{n:03}"))).collect();
    let process = world.begin(&all);
    minutes(59).await;
    let before = process.journal.commits();
    let mut activity = process.schedule.activity();
    activity.wait_for(|now| now.active == 1000).await.unwrap();
    activity.wait_for(|now| now.active < 1000 || now.next.is_none()).await.unwrap();
    assert!(process.journal.commits() - before < 20, "claimed in {} commits", process.journal.commits() - before);
    minutes(2).await;
    let starts = world.starts();
    assert_eq!(starts.len(), 1000);
    assert_eq!(starts.iter().map(|start| &start.id).collect::<BTreeSet<_>>().len(), 1000);
    assert!(world.attempts().iter().all(|line| line.ends_with("completed")));
    assert_eq!(world.remaining_files(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn missed_ones_follow_their_policy_and_say_they_are_late() {
    for (policy, expected) in [
        (OnMissed::Latest, vec!["mail 01T16:20:00"]),
        (OnMissed::All, vec!["mail 01T16:20:00"; 4]),
        (OnMissed::Skip, vec![]),
    ] {
        let world = World::new();
        let mail = Definition { on_missed: policy, ..routine("mail") };
        let tea = Definition { on_missed: policy, ..reminder("tea") };
        world.begin(&[mail.clone(), tea.clone()]).crash().await;
        let known = world.begin(&[mail.clone(), tea.clone()]);
        seconds(1).await;
        known.crash().await;
        world.clock.jump(TimeDelta::minutes(260) - TimeDelta::seconds(1));
        let process = world.start(&[mail, tea]);
        minutes(30).await;
        let mut expected = expected;
        if policy != OnMissed::Skip {
            expected.push("tea 01T16:20:00");
        }
        let mut started = world.started();
        started.sort();
        assert_eq!(started, expected, "{policy:?}");
        let late = world.starts().into_iter().filter(|start| start.id == "tea").map(|start| start.late.unwrap());
        for line in late {
            assert_eq!(line, "[late: was scheduled for 13:00, running now]");
        }
        let records = world.reader().occurrences(None).unwrap();
        assert_eq!(records.len(), 5, "{policy:?}: each has its record");
        assert!(records.iter().all(|record| record.outcome.is_some()));
        let kept = usize::from(policy == OnMissed::Skip);
        assert_eq!(world.files_failed().len(), kept, "{policy:?}");
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_or_edited_routine_has_no_backlog_and_a_late_reminder_always_runs() {
    let world = World::new();
    let process = world.begin(&[routine("mail"), at_time(reminder("tea"), march("01T11:00:00"))]);
    minutes(30).await;
    assert_eq!(world.started(), ["tea 01T12:00:00"]);
    process.crash().await;
    world.clock.jump(TimeDelta::hours(5));
    let edited = with_cron(routine("mail"), "15 * * * *", OnOverlap::Skip);
    world.write(std::slice::from_ref(&edited));
    let process = world.start(&[edited]);
    minutes(50).await;
    assert_eq!(world.started(), ["tea 01T12:00:00", "mail 01T18:15:00"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn slots_are_limited_and_given_in_due_order() {
    let mut world = World::new();
    world.slots = 2;
    world.script(|job| match job.occurrence.id.as_str() {
        "stuck" => vec![Act::Hang],
        _ => vec![Act::Take(Duration::from_secs(600))],
    });
    let due = |id: &str, second: &str| at_time(reminder(id), march(&format!("01T13:00:{second}")));
    let chat = |id: &str| Definition { mode: Mode::Foreground, ..due(id, "00") };
    let process =
        world.begin(&[due("c", "03"), due("b", "02"), due("a", "01"), due("stuck", "00"), chat("x"), chat("y")]);
    minutes(120).await;
    let mut started = world.started();
    started.sort();
    assert_eq!(
        started,
        ["a 01T13:00:01", "b 01T13:10:01", "c 01T13:20:01", "stuck 01T13:00:00", "x 01T13:00:00", "y 01T13:10:00",]
    );
    // A run that waited for long says so.
    assert_eq!(world.starts()[3].late.as_deref(), Some("[late: was scheduled for 13:00, running now]"));
    // A turn of the main session answers the person. The first late reminder is reported, later ones are counted.
    let told = world.notifications();
    assert_eq!((told.len(), &told[0], &told[2]), (3, &"x is done".to_owned(), &"y is done".to_owned()), "{told:?}");
    assert!(told[1].contains(" is late: it was due at 13:00 UTC, had to wait"), "{told:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_forwards_makes_missed_ones_and_no_early_ones() {
    let world = World::new();
    let quiet = Definition { on_missed: OnMissed::Skip, ..routine("quiet") };
    let process = world.begin(&[routine("mail"), quiet, reminder("tea")]);
    minutes(30).await;
    world.clock.jump(TimeDelta::minutes(160));
    seconds(1).await;
    let mut attempts = world.attempts();
    attempts.sort();
    let missed = "skipped: missed: nothing could run at its time";
    let newer = format!("{missed}, and of those that were missed only the newest counts (on_missed: latest)");
    assert_eq!(
        attempts,
        [
            format!("mail 01T13:00 {newer}"),
            format!("mail 01T14:00 {newer}"),
            "mail 01T15:00 completed".to_owned(),
            format!("quiet 01T13:00 {missed} (on_missed: skip)"),
            format!("quiet 01T14:00 {missed} (on_missed: skip)"),
            format!("quiet 01T15:00 {missed} (on_missed: skip)"),
            "tea 01T13:00 completed".to_owned(),
        ]
    );
    assert!(world.starts().iter().all(|start| start.late.is_some()));
    // A jump over the very moment of an occurrence: it is still on time.
    minutes(49).await;
    world.clock.jump(TimeDelta::seconds(59));
    seconds(1).await;
    assert!(world.attempts().contains(&"quiet 01T16:00 completed".to_owned()), "{:?}", world.attempts());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_back_runs_nothing_twice() {
    let world = World::new();
    let process = world.begin(&[routine("mail"), reminder("tea")]);
    minutes(150).await;
    assert_eq!(world.started().len(), 3);
    world.clock.jump(TimeDelta::minutes(-120));
    minutes(119).await;
    assert_eq!(world.started().len(), 3, "{:?}", world.started());
    minutes(40).await;
    assert_eq!(world.started()[3..], ["mail 01T15:00:00"]);
    // The clock is set back while the service is down.
    process.crash().await;
    world.clock.jump(TimeDelta::minutes(-120));
    let process = world.start(&[routine("mail")]);
    minutes(60 + 60 + 25).await;
    assert_eq!(world.started()[4..], ["mail 01T16:00:00"; 0], "{:?}", world.started());
    minutes(60).await;
    assert_eq!(world.started()[4..], ["mail 01T16:00:00"]);
    process.stop(Duration::ZERO).await;
}

/// A clock that was years ahead for a moment does not silence a routine for years.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_far_ahead_leaves_no_gap() {
    let world = World::new();
    let process = world.begin(&[routine("mail")]);
    minutes(1).await;
    world.clock.jump(TimeDelta::days(4000));
    seconds(5).await;
    world.clock.jump(TimeDelta::days(-4000));
    minutes(179).await;
    let started = world.started();
    assert_eq!(started[1..], ["mail 01T13:00:00", "mail 01T14:00:00", "mail 01T15:00:00"], "{started:?}");
    process.stop(Duration::ZERO).await;
}

/// On the machine's own clock: the reminder runs when due, never early (the launcher checks it).
#[tokio::test]
async fn the_real_clock_is_followed() {
    let world = World::real();
    let at = world.clock.now() + TimeDelta::milliseconds(200);
    let process = world.begin(&[at_time(reminder("tea"), at)]);
    let mut activity = process.schedule.activity();
    activity.wait_for(|now| now.loaded && now.next.is_none() && now.active == 0).await.unwrap();
    process.stop(Duration::from_secs(30)).await;
    assert_eq!(world.starts().len(), 1);
    assert_eq!(world.remaining_files(), [""; 0]);
}

/// One job can make any number of others. The person's own jobs have slots all the same.
#[tokio::test(start_paused = true)]
async fn what_runs_have_made_leaves_slots_for_the_persons_own() {
    for (slots, made_at_once) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        let mut world = World::new();
        world.slots = slots;
        world.script(|job| match job.definition.is_made_by_run() {
            true => vec![Act::Take(Duration::from_secs(3600))],
            false => Vec::new(),
        });
        let mut all: Vec<Definition> = (0..8)
            .map(|n| Definition { created_by: Some(DefinitionId::new("mail")), ..reminder(&format!("made-{n}")) })
            .map(|made| at_time(made, march("01T12:01:00")))
            .collect();
        all.push(at_time(reminder("own"), march("01T12:02:00")));
        let process = world.begin(&all);
        minutes(3).await;
        let started = world.started();
        assert_eq!(
            started.iter().filter(|line| line.starts_with("made-")).count(),
            made_at_once,
            "{slots}: {started:?}"
        );
        assert_eq!(started.contains(&"own 01T12:02:00".to_owned()), slots > 1, "{slots}: {started:?}");
        minutes(10 * 60).await;
        let outcomes = world.reader().occurrences(None).unwrap();
        assert_eq!(outcomes.iter().filter(|found| found.outcome.is_some()).count(), 9, "{slots}: {outcomes:?}");
        process.stop(Duration::ZERO).await;
    }
}

/// A job that a run made waits only for a slot when a person fires it.
#[tokio::test(start_paused = true)]
async fn what_a_run_has_made_and_a_person_fires_has_a_slot() {
    let mut world = World::new();
    world.slots = 2;
    world.script(|_| vec![Act::Hang]);
    let made = |id: &str| Definition { created_by: Some(DefinitionId::new("mail")), ..reminder(id) };
    let process = world.begin(&[at_time(made("first"), march("01T12:01:00")), made("second")]);
    minutes(2).await;
    process.schedule.fire(DefinitionId::new("second")).await.unwrap();
    seconds(1).await;
    assert_eq!(world.started(), ["first 01T12:01:00", "second 01T12:02:00"]);
    process.stop(Duration::ZERO).await;
}
