//! Failures: whether they are retried, reported once, suppressed, or wait for a login.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::support::*;
use crate::agent::{AttemptEnd, FailureClass};
use crate::definition::{Definition, OnMissed, OnOverlap};

/// Makes every attempt fail with this class until the flag is set.
fn fails_until_it_works(world: &World, class: FailureClass) -> Arc<AtomicBool> {
    let works = Arc::new(AtomicBool::new(false));
    let script = Arc::clone(&works);
    world.script(move |_| match script.load(Ordering::SeqCst) {
        true => vec![],
        false => vec![fails(class)],
    });
    works
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_tried_again_after_a_pause() {
    let world = World::new();
    world.script(|_| vec![fails(FailureClass::Overloaded)]);
    let process = world.begin(&[reminder("tea"), routine("mail")]);
    minutes(10).await;
    minutes(59).await;
    let tea: Vec<_> = world.starts().into_iter().filter(|start| start.id == "tea").collect();
    assert_eq!(tea.iter().map(|start| start.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    let pauses = [(tea[1].at - tea[0].at).num_seconds(), (tea[2].at - tea[1].at).num_seconds()];
    assert!((24..=36).contains(&pauses[0]) && (96..=144).contains(&pauses[1]), "{pauses:?}");
    assert_eq!(
        world.attempts().into_iter().filter(|line| line.starts_with("mail")).collect::<Vec<_>>(),
        ["mail 01T13:00 failed: no network."],
        "a routine is not tried again unless it says so"
    );
    let told = world.notifications();
    assert_eq!(told.len(), 3, "the first failure and the end: {told:?}");
    let again = "reminder tea failed: no network. It is tried again at 13:00 UTC; `ollim-bot fire tea` runs it now.";
    assert!(told[..2].iter().any(|text| text == again), "{told:?}");
    let told: Vec<_> = told.into_iter().filter(|text| text != again).collect();
    assert!(
        told[0].starts_with("routine mail failed: no network. It is due again at 14:00 UTC; `ollim-bot fire mail`"),
        "{told:?}"
    );
    assert_eq!(
        told[1],
        "reminder tea failed: no network. Its file is kept in reminders/failed/; `ollim-bot reminder retry tea` brings \
         it back."
    );
    assert_eq!(world.files_failed(), [("reminders/tea.md".to_owned(), "failed: no network.".to_owned())]);
    assert_eq!(world.remaining_files(), ["routines/mail.md"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn that_a_later_attempt_worked_is_told() {
    let world = World::new();
    let count = AtomicU32::new(0);
    world.script(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0..2 => vec![fails(FailureClass::Overloaded)],
        _ => vec![],
    });
    let process = world.begin(&[reminder("tea")]);
    minutes(65).await;
    let again = "reminder tea failed: no network. It is tried again at 13:00 UTC; `ollim-bot fire tea` runs it now.";
    assert_eq!(world.notifications(), [again, "reminder tea worked at attempt 3."]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn after_an_effect_only_an_explicit_retry_tries_again() {
    // The first failure is told at once, and the end.
    for (retry, attempts, told) in [(None, 1, 1), (Some(1), 2, 2)] {
        let world = World::new();
        world.script(|_| vec![Act::Effect, fails(FailureClass::Overloaded)]);
        let process = world.begin(&[Definition { retry, ..reminder("tea") }]);
        minutes(90).await;
        assert_eq!(world.starts().len(), attempts, "{retry:?}");
        assert_eq!(world.notifications().len(), told);
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_not_tried_again() {
    for act in [fails(FailureClass::ErrorResult), Act::Panic, Act::End(AttemptEnd::TimedOut("over 30m".to_owned()))] {
        let world = World::new();
        let shown = format!("{act:?}");
        world.script(move |_| vec![act.clone()]);
        let process = world.begin(&[reminder("tea")]);
        minutes(120).await;
        assert_eq!(world.starts().len(), 1, "{shown}");
        assert_eq!((world.notifications().len(), world.files_failed().len()), (1, 1), "{shown}");
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streak_is_told_once_and_paused_until_an_edit_or_resume() {
    let world = World::new();
    let works = fails_until_it_works(&world, FailureClass::ErrorResult);
    let process = world.begin(&[routine("mail")]);
    minutes(20 * 60).await;
    assert_eq!(world.starts().len(), 10, "paused after ten");
    assert_eq!(world.notifications().len(), 2, "{:?}", world.notifications());
    process.crash().await;

    let process = world.start(&[routine("mail")]);
    minutes(5 * 60).await;
    assert_eq!(world.starts().len(), 10, "still paused");
    works.store(true, Ordering::SeqCst);
    assert!(process.schedule.resume_routine(routine("mail").id).await.unwrap());
    assert!(!process.schedule.resume_routine(routine("mail").id).await.unwrap());
    minutes(90).await;
    assert_eq!(world.starts().len(), 11, "no backlog: {:?}", &world.started()[10..]);

    works.store(false, Ordering::SeqCst);
    minutes(11 * 60).await;
    assert_eq!(world.starts().len(), 21);
    // An edit while the service is down ends the suppression as well.
    process.crash().await;
    let edited = Definition { body: "better".to_owned(), ..routine("mail") };
    world.write(std::slice::from_ref(&edited));
    works.store(true, Ordering::SeqCst);
    let process = world.start(&[edited]);
    minutes(120).await;
    assert_eq!(world.starts().len(), 23, "{:?}", &world.started()[20..]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_recovery_is_told() {
    let world = World::new();
    let count = AtomicU32::new(0);
    world.script(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0..4 => vec![fails(FailureClass::ErrorResult)],
        _ => vec![],
    });
    let process = world.begin(&[routine("mail")]);
    minutes(10 * 60).await;
    let told = world.notifications();
    assert!(told[0].starts_with("routine mail failed: no network. It is due again at 14:00 UTC;"), "{told:?}");
    assert_eq!(told[1..], ["routine mail works again after 4 failures."]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_or_the_settings_say_which_failure_is_told() {
    let world = World::new();
    world.script(|_| vec![fails(FailureClass::ErrorResult)]);
    let process = world.begin(&[routine("mail"), Definition { alert_after: Some(3), ..routine("web") }]);
    process.schedule.alert_after(2);
    minutes(4 * 60 + 10).await;
    let told = world.notifications();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("routine mail failed 2 times in a row: no network. It is due again at 15:00"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("routine web failed 3 times in a row: no network. It is due again at 16:00"),
        "{told:?}"
    );
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_login_jobs_wait_and_one_tries() {
    let world = World::new();
    let logged_in = fails_until_it_works(&world, FailureClass::NotLoggedIn);
    let all = Definition { on_missed: OnMissed::All, ..with_cron(routine("mail"), "*/10 * * * *", OnOverlap::Skip) };
    let process = world.begin(&[reminder("tea"), all, at_time(reminder("milk"), march("01T13:05:00"))]);
    minutes(60 + 31).await;
    let ids: std::collections::BTreeSet<_> = world.starts().into_iter().map(|start| start.id).collect();
    assert_eq!(ids, std::collections::BTreeSet::from(["mail".to_owned()]), "only the first one tries");
    assert!(process.schedule.snapshot(0).await.waiting_for_login.is_some());
    assert_eq!(world.notifications().len(), 1, "{:?}", world.notifications());
    logged_in.store(true, Ordering::SeqCst);
    minutes(8).await;
    assert_eq!(process.schedule.snapshot(0).await.waiting_for_login, None);
    let told = world.notifications();
    assert_eq!(told[1], "The agent client is logged in again; the jobs that waited go on.");
    assert!(told.len() == 3 && told[2].starts_with("3 jobs did not run at their time:"), "{told:?}");
    let outcomes = world.reader().occurrences(None).unwrap();
    assert!(outcomes.iter().all(|found| found.outcome == Some(crate::journal::RunState::Completed)), "{outcomes:?}");
    assert_eq!(world.remaining_files(), ["routines/mail.md"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_login_is_told_once_however_often_the_service_starts() {
    let world = World::new();
    let logged_in = fails_until_it_works(&world, FailureClass::NotLoggedIn);
    let all = [reminder("tea"), at_time(reminder("milk"), march("01T13:05:00"))];
    world.write(&all);
    let is_it = |text: &String| text.starts_with("The agent client") || text.starts_with("Jobs for the agent");
    let of_the_client = || -> Vec<String> { world.notifications().into_iter().filter(is_it).collect() };
    for _ in 0..3 {
        let process = world.start(&all);
        minutes(70).await;
        assert!(process.schedule.snapshot(0).await.waiting_for_login.is_some());
        process.crash().await;
        assert_eq!(of_the_client().len(), 1, "{:?}", world.notifications());
    }
    logged_in.store(true, Ordering::SeqCst);
    let process = world.start(&all);
    minutes(10).await;
    assert_eq!(of_the_client()[1..], ["The agent client is logged in again; the jobs that waited go on."]);
    assert_eq!(world.notifications().len(), 3, "and that milk is late, once: {:?}", world.notifications());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_removed_is_tried_again() {
    for faults in [1, 8] {
        let world = World::new();
        world.files.faults.store(faults, Ordering::SeqCst);
        let process = world.begin(&[reminder("tea")]);
        minutes(61).await;
        if faults == 8 {
            assert_eq!(world.remaining_files(), ["reminders/tea.md"]);
        }
        minutes(5).await;
        assert_eq!(world.remaining_files(), [""; 0]);
        assert_eq!(world.starts().len(), 1);
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_by_hand_that_does_well_ends_a_pause_and_brings_no_backlog() {
    let world = World::new();
    let works = fails_until_it_works(&world, FailureClass::ErrorResult);
    let process = world.begin(&[routine("mail")]);
    minutes(20 * 60 + 10).await;
    assert_eq!(world.starts().len(), 10, "paused after ten");
    works.store(true, Ordering::SeqCst);
    process.schedule.fire(routine("mail").id).await.unwrap();
    minutes(30).await;
    assert_eq!(world.starts().len(), 11, "the one by hand: {:?}", &world.started()[10..]);
    minutes(60).await;
    assert_eq!(world.starts().len(), 12, "no backlog: {:?}", &world.started()[10..]);
    let outcomes = world.reader().occurrences(None).unwrap();
    assert_eq!(outcomes.len(), 12, "{outcomes:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn without_an_agent_only_what_needs_one_waits() {
    let world = World::new();
    world.agent_is_missing.store(true, Ordering::SeqCst);
    let all = [reminder("agent"), routine("agents"), with_cron(routine("plain"), "30 * * * *", OnOverlap::Skip)];
    world.write(&all);
    for hours in 1..=3 {
        let process = world.start(&all);
        minutes(61).await;
        assert_eq!(world.starts().len(), hours, "{:?}", world.started());
        assert!(hours == 1 || process.schedule.snapshot(0).await.waiting_for_login.is_some());
        process.crash().await;
    }
    let told = world.notifications();
    let waits = told.iter().filter(|text| text.starts_with("Jobs that need the agent wait until it is there")).count();
    assert_eq!(waits, 1, "once, however often it starts: {told:?}");
    let spent = |line: &&String| line.contains("failed") || line.contains("interrupted");
    assert_eq!(world.attempts().iter().filter(spent).count(), 0, "{:?}", world.attempts());
    let process = world.start(&all);
    minutes(1).await;
    world.agent_is_missing.store(false, Ordering::SeqCst);
    minutes(6).await;
    assert_eq!(process.schedule.snapshot(0).await.waiting_for_login, None);
    assert_eq!(
        world.notifications().iter().filter(|text| text.contains("is logged in again")).count(),
        1,
        "{:?}",
        world.notifications()
    );
    assert_eq!(world.remaining_files(), ["routines/agents.md", "routines/plain.md"]);
    process.stop(Duration::ZERO).await;
}
