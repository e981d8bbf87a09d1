//! Occurrences that fall due while the one before is active, also while that one waits for a retry.

use std::time::Duration;

use super::super::StageView;
use super::support::*;
use crate::agent::{AttemptEnd, Failure, FailureClass};
use crate::definition::{Definition, OnMissed, OnOverlap};

fn every_minute(overlap: OnOverlap, retry: u32) -> Definition {
    Definition { retry: Some(retry), ..with_cron(routine("mail"), "* * * * *", overlap) }
}

#[tokio::test(start_paused = true)]
async fn an_overlap_is_skipped_queued_or_cancels() {
    use OnOverlap::{Cancel, Queue, Skip};
    for (overlap, started, attempts) in [
        (
            Skip,
            vec!["mail 01T13:00:00"],
            vec!["mail 01T13:00 completed", "mail 01T14:00 skipped: overlap", "mail 01T15:00 skipped: overlap"],
        ),
        (
            Queue,
            vec!["mail 01T13:00:00", "mail 01T15:10:00"],
            vec!["mail 01T13:00 completed", "mail 01T14:00 running", "mail 01T15:00 skipped: overlap"],
        ),
        (
            Cancel,
            vec!["mail 01T13:00:00", "mail 01T14:00:00", "mail 01T15:00:00"],
            vec![
                "mail 01T13:00 cancelled: a newer occurrence fell due (on_overlap: cancel)",
                "mail 01T14:00 cancelled: a newer occurrence fell due (on_overlap: cancel)",
                "mail 01T15:00 running",
            ],
        ),
    ] {
        let world = World::new();
        world.script(|_| vec![Act::Take(Duration::from_secs(130 * 60))]);
        let process = world.begin(&[with_cron(routine("mail"), "0 * * * *", overlap)]);
        minutes(200).await;
        assert_eq!(world.started(), started, "{overlap:?}");
        let found = world.attempts();
        assert_eq!(found.len(), attempts.len(), "{found:?}");
        for (found, expected) in found.iter().zip(&attempts) {
            assert!(found.starts_with(expected), "{overlap:?}: {found}");
        }
        process.stop(Duration::ZERO).await;
    }
}

/// The last try is never reached, since the next occurrence comes first. It fails all the same.
/// A start closes what had an effect when the service ended. That run is over, so the newest missed time is not skipped for it.
#[tokio::test(start_paused = true)]
async fn what_a_start_closes_takes_no_missed_time() {
    for overlap in [OnOverlap::Skip, OnOverlap::Queue] {
        let world = World::new();
        world.script(|_| vec![Act::Effect, Act::Hang]);
        let process = world.begin(&[every_minute(overlap, 0)]);
        seconds(75).await;
        process.crash().await;
        seconds(150).await;
        let process = world.start(&[every_minute(overlap, 0)]);
        seconds(5).await;
        process.crash().await;
        let found = world.attempts();
        let expected =
            ["mail 01T12:01 failed: the service ended", "mail 01T12:02 skipped: missed", "mail 01T12:03 running"];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{overlap:?}: {found}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_and_is_cancelled_before_its_next_try_has_failed() {
    for restarts in [false, true] {
        let world = World::new();
        world.script(|_| vec![fails(FailureClass::Overloaded)]);
        let mail = every_minute(OnOverlap::Cancel, 2);
        let mut process = world.begin(std::slice::from_ref(&mail));
        for _ in 0..15 {
            seconds(50).await;
            if restarts {
                process.crash().await;
                process = world.start(std::slice::from_ref(&mail));
            }
            seconds(10).await;
        }
        let why = "no network; not tried again: a newer occurrence fell due (on_overlap: cancel)";
        let told = world.notifications();
        let again =
            "routine mail failed: no network. It is tried again at 12:01 UTC; `ollim-bot fire mail` runs it now.";
        assert_eq!(told[0], again);
        assert!(told[1].starts_with(&format!("routine mail failed: {why}. It is due again at 12:")), "{told:?}");
        assert_eq!(
            told[2..],
            [format!(
                "routine mail failed 10 times in a row and is paused until `ollim-bot resume mail` or an edit of its \
                 file. The last failure: {why}."
            )],
            "restarts: {restarts}"
        );
        let outcomes = world.reader().occurrences(None).unwrap();
        assert_eq!(outcomes.len(), 11, "ten failed; the newest one ended the tenth: {outcomes:?}");
        assert!(world.attempts().contains(&format!("mail 01T12:01 failed: {why}")), "{:?}", world.attempts());
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_and_is_cancelled_while_its_next_try_waits_for_a_slot_has_failed() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "mail" => vec![fails(FailureClass::Overloaded)],
        _ => vec![Act::Hang],
    });
    let stuck = at_time(reminder("stuck"), march("01T12:01:10"));
    let process = world.begin(&[every_minute(OnOverlap::Cancel, 2), stuck]);
    minutes(3).await;
    seconds(30).await;
    let why = "a newer occurrence fell due (on_overlap: cancel)";
    let mut mail = world.attempts();
    mail.retain(|line| line.starts_with("mail"));
    mail.sort();
    assert_eq!(
        mail,
        [
            "mail 01T12:01 failed: no network.".to_owned(),
            format!("mail 01T12:01 failed: no network; not tried again: {why}"),
            format!("mail 01T12:02 skipped: {why}"),
            "mail 01T12:03 claimed".to_owned(),
        ]
    );
    process.stop(Duration::ZERO).await;
}

/// The process is killed at each step while the newer occurrence replaces the old one. The next process closes the old one, too.
#[tokio::test(start_paused = true)]
async fn what_is_cancelled_before_its_next_try_stays_so_after_a_restart() {
    for steps in 0..40 {
        let world = World::new();
        world.script(|job| match job.occurrence.at {
            at if at == march("01T12:01:00") => vec![fails(FailureClass::Overloaded)],
            _ => vec![Act::Hang],
        });
        let mail = every_minute(OnOverlap::Cancel, 2);
        let process = world.begin(std::slice::from_ref(&mail));
        minutes(2).await;
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        process.crash().await;
        let process = world.start(&[mail]);
        seconds(30).await;
        let open = process.schedule.snapshot(0).await.active;
        let due: Vec<_> = open.iter().map(|open| (open.scheduled, open.stage)).collect();
        assert!(
            matches!(due[..], [(at, StageView::Running(_))] if at == march("01T12:02:00")),
            "{steps} steps: {due:?} {:?}",
            world.attempts()
        );
        process.stop(Duration::ZERO).await;
    }
}

/// A client that is told to leave may fail instead.
#[tokio::test(start_paused = true)]
async fn what_fails_as_it_is_cancelled_is_not_tried_again() {
    let world = World::new();
    world.script(|_| {
        let failure = Failure { class: FailureClass::ExitedEarly, message: "it left.".to_owned() };
        vec![Act::EndWhenTold(AttemptEnd::Failed(failure))]
    });
    let process = world.begin(&[every_minute(OnOverlap::Cancel, 2)]);
    minutes(4).await;
    seconds(30).await;
    assert_eq!(
        world.started(),
        ["mail 01T12:01:00", "mail 01T12:02:00", "mail 01T12:03:00", "mail 01T12:04:00"],
        "the old ones are over"
    );
    let why = "it left; not tried again: a newer occurrence fell due (on_overlap: cancel)";
    let told = world.notifications();
    assert!(
        told.len() == 1 && told[0].starts_with(&format!("routine mail failed: {why}. It is due again")),
        "{told:?}"
    );
    process.stop(Duration::ZERO).await;
}

/// An occurrence that a person ends does not count as a failure of the job.
#[tokio::test(start_paused = true)]
async fn what_a_person_ends_before_its_next_try_is_no_failure() {
    let world = World::new();
    world.script(|_| vec![fails(FailureClass::Overloaded)]);
    let process = world.begin(&[Definition { retry: Some(2), ..routine("mail") }]);
    seconds(5).await;
    for _ in 0..12 {
        minutes(60).await;
        let run = process.schedule.snapshot(0).await.active.remove(0).run;
        process.schedule.cancel_run(run).await.unwrap();
    }
    assert_eq!(world.starts().len(), 12);
    let told = world.notifications();
    assert!(told.len() == 12 && told.iter().all(|text| text.contains("It is tried again at ")), "{told:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_at_most_queues_behind_an_occurrence_that_waits_for_another_try() {
    let world = World::new();
    world.script(|job| match (job.occurrence.at, job.attempt) {
        (at, 1..3) if at == march("01T12:01:00") => vec![fails(FailureClass::Overloaded)],
        _ => vec![],
    });
    let process = world.begin(&[every_minute(OnOverlap::Queue, 2)]);
    minutes(5).await;
    seconds(30).await;
    let starts: Vec<_> =
        world.starts().iter().map(|start| (start.due.format("%H:%M").to_string(), start.attempt)).collect();
    let expected = [("12:01", 1), ("12:01", 2), ("12:01", 3), ("12:02", 1), ("12:04", 1), ("12:05", 1)];
    assert_eq!(starts, expected.map(|(due, attempt)| (due.to_owned(), attempt)));
    let attempts = world.attempts();
    let [skipped] = &attempts.iter().filter(|line| line.contains("12:03")).collect::<Vec<_>>()[..] else { panic!() };
    assert!(
        skipped.starts_with("mail 01T12:03 skipped: overlap: run ")
            && skipped.ends_with(" waits already (on_overlap: queue)"),
        "{skipped}"
    );
    process.stop(Duration::ZERO).await;
}

/// A retry that waits for its slot is still the earlier run, not the one that is waiting.
#[tokio::test(start_paused = true)]
async fn one_queues_behind_an_occurrence_whose_next_try_waits_for_a_slot() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match (job.occurrence.id.as_str(), job.attempt) {
        ("mail", 1) if job.occurrence.at == march("01T12:01:00") => vec![fails(FailureClass::Overloaded)],
        ("mail", _) => vec![],
        _ => vec![Act::Take(Duration::from_secs(120))],
    });
    let long = at_time(reminder("long"), march("01T12:01:10"));
    let process = world.begin(&[every_minute(OnOverlap::Queue, 2), long]);
    minutes(3).await;
    seconds(30).await;
    assert_eq!(
        world.started(),
        ["mail 01T12:01:00", "long 01T12:01:10", "mail 01T12:03:10", "mail 01T12:03:10"],
        "{:?}",
        world.attempts()
    );
    assert_eq!(world.starts()[3].due, march("01T12:02:00"));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn missed_ones_that_run_in_a_row_wait_for_each_others_tries() {
    let world = World::new();
    world.script(|job| match job.attempt {
        1 if job.occurrence.at == march("01T13:00:00") => vec![fails(FailureClass::Overloaded)],
        _ => vec![],
    });
    let mail = Definition { on_missed: OnMissed::All, retry: Some(1), ..routine("mail") };
    let process = world.begin(std::slice::from_ref(&mail));
    seconds(1).await;
    process.crash().await;
    world.clock.jump(chrono::TimeDelta::minutes(150));
    let process = world.start(&[mail]);
    minutes(1).await;
    let starts: Vec<_> = world.starts().iter().map(|start| (start.due, start.attempt)).collect();
    let (one, two) = (march("01T13:00:00"), march("01T14:00:00"));
    assert_eq!(starts, [(one, 1), (one, 2), (two, 1)]);
    process.stop(Duration::ZERO).await;
}

/// A reminder with a new time does not wait for a retry that its old time will not get.
#[tokio::test(start_paused = true)]
async fn a_new_time_is_kept_while_the_old_one_waits_for_another_try() {
    let world = World::new();
    world.script(|job| match job.occurrence.at {
        at if at == march("01T13:00:00") => vec![fails(FailureClass::Overloaded)],
        _ => vec![],
    });
    let process = world.begin(&[reminder("tea")]);
    minutes(60).await;
    seconds(1).await;
    let sooner = at_time(reminder("tea"), march("01T13:00:10"));
    world.write(std::slice::from_ref(&sooner));
    process.schedule.upsert(loaded(&sooner));
    minutes(2).await;
    assert_eq!(world.started(), ["tea 01T13:00:00", "tea 01T13:00:10"]);
    assert!(world.attempts().contains(&"tea 01T13:00 skipped: its time was changed".to_owned()));
    process.stop(Duration::ZERO).await;
}
