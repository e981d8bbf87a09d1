//! Requests by a person: fire, cancel, pause, stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::{CancelError, FireError, LONGEST_END, StageView};
use super::support::*;
use crate::agent::FailureClass;
use crate::definition::{Definition, DefinitionId};
use crate::journal::{RunFilter, RunId, RunState};

#[tokio::test(start_paused = true)]
async fn a_reminder_fired_by_hand_has_had_its_run() {
    let world = World::new();
    let process = world.begin(&[reminder("tea"), Definition { enabled: false, ..reminder("off") }]);
    minutes(10).await;
    let run = process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    process.schedule.fire(DefinitionId::new("off")).await.unwrap();
    minutes(120).await;
    // Two that are fired in one moment begin in any order.
    let mut started = world.started();
    started.sort();
    assert_eq!(started, ["off 01T12:10:00", "tea 01T12:10:00"]);
    assert_eq!(world.reader().run(&run).unwrap().unwrap().outcome, RunState::Completed);
    assert_eq!(world.remaining_files(), [""; 0]);
    assert_eq!(
        process.schedule.fire(DefinitionId::new("tea")).await,
        Err(FireError::Done { id: DefinitionId::new("tea"), state: RunState::Completed })
    );
    let nobody = DefinitionId::new("nobody");
    assert_eq!(process.schedule.fire(nobody.clone()).await, Err(FireError::NotFound(nobody)));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_fired_by_hand_while_the_service_starts_waits_for_that() {
    let world = World::new();
    let process = world.begin(&[reminder("tea")]);
    let run = process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    minutes(1).await;
    assert_eq!(world.reader().run(&run).unwrap().unwrap().outcome, RunState::Completed);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_routine_fired_by_hand_keeps_its_times() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(60))]);
    let process = world.begin(&[routine("mail")]);
    minutes(10).await;
    let mail = || DefinitionId::new("mail");
    let run = process.schedule.fire(mail()).await.unwrap();
    assert_eq!(process.schedule.fire(mail()).await, Err(FireError::Going { id: mail(), run }));
    minutes(60).await;
    assert_eq!(world.started(), ["mail 01T12:10:00", "mail 01T13:00:00"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_next_try_is_fired_at_once() {
    let world = World::new();
    world.script(|job| if job.attempt < 3 { vec![fails(FailureClass::Overloaded)] } else { vec![] });
    let process = world.begin(&[reminder("tea")]);
    // Two attempts have failed by now. The third follows after at least a minute.
    minutes(61).await;
    let runs = world.reader().unfinished().unwrap();
    assert_eq!(runs.iter().map(|run| (run.outcome, run.attempt)).collect::<Vec<_>>(), [(RunState::Failed, 2)]);
    // Only the last attempt waits for a retry.
    let runs = world.reader().runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.retry_at.is_some()).collect::<Vec<_>>(), [true, false]);
    let fired = world.clock.now();
    let run = process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    seconds(1).await;
    let third = world.reader().run(&run).unwrap().unwrap();
    assert_eq!((third.attempt, third.outcome), (3, RunState::Completed), "{third:?}");
    assert_eq!(world.starts()[2].at, fired, "it did not wait");
    minutes(20).await;
    assert_eq!(world.starts().len(), 3, "the pending try is superseded");
    assert_eq!(world.reader().occurrences(None).unwrap().len(), 1);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_login_or_for_resume_is_fired_at_once() {
    let world = World::new();
    let logged_in = Arc::new(AtomicBool::new(false));
    let repaired = Arc::clone(&logged_in);
    world.script(move |_| match repaired.load(Ordering::SeqCst) {
        true => vec![],
        false => vec![fails(FailureClass::NotLoggedIn)],
    });
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    logged_in.store(true, Ordering::SeqCst);
    let fired = world.clock.now();
    let run = process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    seconds(1).await;
    assert_eq!(world.reader().run(&run).unwrap().unwrap().outcome, RunState::Completed);
    assert_eq!(world.starts().last().unwrap().at, fired, "it did not wait");
    assert_eq!(process.schedule.snapshot(0).await.waiting_for_login, None);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn who_cancels_before_the_next_try_keeps_why_it_failed() {
    for (class, restarts) in [(FailureClass::Overloaded, false), (FailureClass::NotLoggedIn, true)] {
        let world = World::new();
        world.script(move |_| vec![fails(class)]);
        let mut process = world.begin(&[reminder("tea")]);
        minutes(60).await;
        seconds(5).await;
        if restarts {
            process.crash().await;
            process = world.start(&[reminder("tea")]);
            seconds(1).await;
        }
        let run = process.schedule.snapshot(0).await.active.remove(0).run;
        assert_eq!(process.schedule.cancel_run(run.clone()).await, Ok(RunState::Cancelled));
        let record = world.reader().run(&run).unwrap().unwrap();
        assert_eq!(record.error.as_deref(), Some("no network; not tried again: a person ended it"), "{class:?}");
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_wherever_it_stands() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "flaky" => vec![fails(FailureClass::Overloaded)],
        _ => vec![Act::Hang],
    });
    let due = |id: &str, second: &str| at_time(reminder(id), march(&format!("01T13:00:{second}")));
    let process = world.begin(&[due("flaky", "00"), due("going", "01"), due("waiting", "02")]);
    minutes(60).await;
    seconds(5).await;
    let snapshot = process.schedule.snapshot(5).await;
    assert_eq!(snapshot.active.len(), 3);
    for active in &snapshot.active {
        let stage = matches!(
            (active.id.as_str(), active.stage),
            ("flaky", StageView::RetryIn(_)) | ("going", StageView::Running(_)) | ("waiting", StageView::Waiting)
        );
        assert!(stage, "{active:?}");
    }
    // All at once, since the end of one would let another begin.
    let ended = snapshot.active.into_iter().map(|active| process.schedule.cancel_run(active.run));
    assert_eq!(futures::future::join_all(ended).await, vec![Ok(RunState::Cancelled); 3]);
    minutes(10).await;
    assert_eq!(world.starts().len(), 2, "{:?}", world.started());
    assert!(world.attempts().iter().all(|line| line.contains("cancelled")), "{:?}", world.attempts());
    assert_eq!(world.files_failed().len(), 3);
    let over = RunId::new("00000000");
    assert_eq!(process.schedule.cancel_run(over.clone()).await, Err(CancelError::NotGoing(over)));
    let again =
        "reminder flaky failed: no network. It is tried again at 13:00 UTC; `ollim-bot fire flaky` runs it now.";
    assert_eq!(world.notifications(), [again], "who cancelled them knows");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn paused_nothing_starts_in_this_life_or_the_next() {
    let world = World::new();
    let process = world.begin(&[routine("mail"), reminder("tea")]);
    minutes(10).await;
    process.schedule.pause().await.unwrap();
    minutes(200).await;
    process.crash().await;
    let process = world.start(&[routine("mail"), reminder("tea")]);
    minutes(59).await;
    assert_eq!(world.started(), [""; 0]);
    let since = process.schedule.snapshot(0).await.paused;
    assert!(since.is_some());
    minutes(1).await;
    process.schedule.pause().await.unwrap();
    assert_eq!(process.schedule.snapshot(0).await.paused, since, "it has been paused since the first time");
    // A run by hand ignores the pause.
    process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    minutes(1).await;
    assert_eq!(world.started(), ["tea 01T16:30:00"]);
    process.schedule.resume().await.unwrap();
    minutes(1).await;
    assert_eq!(world.started()[1..], ["mail 01T16:31:00"], "the newest missed one");
    process.stop(Duration::ZERO).await;
}

/// If the service is killed right after its answer, the next process knows the decision.
#[tokio::test(start_paused = true)]
async fn what_a_person_was_answered_holds_in_the_next_life() {
    let world = World::new();
    world.script(|_| vec![Act::Hang]);
    let process = world.begin(&[reminder("tea")]);
    minutes(10).await;
    process.schedule.pause().await.unwrap();
    process.crash().await;
    let process = world.start(&[reminder("tea")]);
    minutes(60).await;
    assert_eq!(world.started(), [""; 0]);
    process.schedule.resume().await.unwrap();
    process.crash().await;
    let process = world.start(&[reminder("tea")]);
    minutes(1).await;
    let begun = world.starts().len();
    assert!(begun > 0);
    let run = process.schedule.snapshot(0).await.active[0].run.clone();
    assert_eq!(process.schedule.cancel_run(run).await, Ok(RunState::Cancelled));
    process.crash().await;
    let process = world.start(&[reminder("tea")]);
    minutes(10).await;
    assert_eq!(world.starts().len(), begun, "it does not begin again");
    assert_eq!(world.attempts().last().unwrap(), "tea 01T13:00 cancelled: a person ended it");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_answered_before_it_is_on_the_disk() {
    let world = World::new();
    world.script(|job| match job.occurrence.id.as_str() {
        "tea" => vec![Act::Hang],
        _ => vec![fails(FailureClass::ErrorResult)],
    });
    let process = world.begin(&[routine("mail"), reminder("tea")]);
    // The routine has failed ten times by now.
    minutes(11 * 60).await;
    let run = process.schedule.snapshot(0).await.active[0].run.clone();
    let held = world.hold_journal();
    let schedule = || process.schedule.clone();
    let (one, two, three, four) = (schedule(), schedule(), schedule(), schedule());
    let asked = [
        tokio::spawn(async move { one.pause().await.is_ok() }),
        tokio::spawn(async move { two.resume().await.is_ok() }),
        tokio::spawn(async move { three.resume_routine(routine("mail").id).await.is_ok_and(|paused| paused) }),
        tokio::spawn(async move { four.cancel_run(run).await == Ok(RunState::Cancelled) }),
    ];
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.iter().filter(|asked| asked.is_finished()).count(), 0);
    drop(held);
    for answered in futures::future::join_all(asked).await {
        assert!(answered.unwrap());
    }
    process.stop(Duration::ZERO).await;
}

/// The decisions of the previous process are not known yet, and must not override the newer one.
#[tokio::test(start_paused = true)]
async fn what_a_person_says_while_the_service_starts_counts() {
    let world = World::new();
    let process = world.begin(&[routine("mail")]);
    process.schedule.pause().await.unwrap();
    minutes(90).await;
    assert_eq!(world.started(), [""; 0]);
    process.crash().await;
    let process = world.start(&[routine("mail")]);
    process.schedule.resume().await.unwrap();
    minutes(1).await;
    assert_eq!(world.started(), ["mail 01T13:30:00"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_ends_a_run_is_answered() {
    let world = World::new();
    world.script(|_| vec![Act::Hang]);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    let run = process.schedule.snapshot(0).await.active[0].run.clone();
    let (first, second) =
        tokio::join!(process.schedule.cancel_run(run.clone()), process.schedule.cancel_run(run.clone()));
    assert_eq!((first, second), (Ok(RunState::Cancelled), Ok(RunState::Cancelled)));
    assert_eq!(process.schedule.cancel_run(run.clone()).await, Err(CancelError::NotGoing(run)));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_runs_finish_and_then_cuts_them_off() {
    let world = World::new();
    world.script(|job| match job.occurrence.id.as_str() {
        "quick" => vec![Act::Take(Duration::from_secs(10))],
        _ => vec![Act::Take(Duration::from_secs(100))],
    });
    let late = at_time(reminder("late"), march("01T13:00:20"));
    let process = world.begin(&[reminder("quick"), reminder("slow"), late.clone()]);
    minutes(60).await;
    seconds(1).await;
    process.stop(Duration::from_secs(30)).await;
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(
        attempts,
        ["quick 01T13:00 completed", "slow 01T13:00 interrupted: the service ended while it was going"]
    );
    assert_eq!(world.remaining_files(), ["reminders/late.md", "reminders/slow.md"]);

    let process = world.start(&[reminder("slow"), late]);
    minutes(5).await;
    assert_eq!(world.remaining_files(), [""; 0]);
    let again = world.starts().into_iter().rfind(|start| start.id == "slow").unwrap();
    assert!(again.cut_off && again.attempt == 2);
    assert_eq!(world.notifications(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_every_handle_stops() {
    let world = World::new();
    let Process { schedule, .. } = world.begin(&[routine("mail")]);
    let mut activity = schedule.activity();
    activity.wait_for(|now| now.loaded).await.unwrap();
    drop(schedule);
    assert!(activity.wait_for(|_| false).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn ending_now_waits_for_nobody() {
    let world = World::new();
    world.script(|_| vec![Act::Deaf]);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    process.schedule.stop(Duration::from_secs(3600));
    minutes(1).await;
    let before = world.clock.now();
    process.schedule.end_now();
    process.ended().await;
    assert_eq!(world.clock.now(), before);
    assert_eq!(world.attempts(), ["tea 01T13:00 interrupted: the service ended while it was going"]);
    assert_eq!(world.remaining_files(), ["reminders/tea.md"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_when_told_is_recorded_as_cut_off_all_the_same() {
    let world = World::new();
    world.script(|_| vec![Act::Deaf]);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    let told = world.clock.now();
    process.stop(Duration::from_secs(30)).await;
    assert!((world.clock.now() - told).to_std().unwrap() < Duration::from_secs(30) + LONGEST_END);
    assert_eq!(world.attempts(), ["tea 01T13:00 interrupted: the service ended while it was going"]);
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_answers_while_it_goes_and_no_longer() {
    let world = World::new();
    world.script(|_| vec![Act::Deaf]);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    assert!(process.schedule.is_alive().await, "a run that hangs does not hold it up");
    let schedule = process.schedule.clone();
    process.crash().await;
    assert!(!schedule.is_alive().await);
}
