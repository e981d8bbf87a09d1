//! The reason why an occurrence could not begin is recorded with it.

use std::time::Duration;

use chrono::TimeDelta;

use super::support::*;
use crate::definition::{Definition, Need, OnMissed, OnOverlap};
use crate::journal::{EventFilter, EventKind, RunFilter};

impl World {
    /// Returns `mail 13:00 slot` for each recorded reason, in the order of the occurrences, with `until 13:12` if known.
    fn delays(&self) -> Vec<String> {
        let reader = self.reader();
        let mut runs = reader.runs(&RunFilter::default()).unwrap();
        runs.reverse();
        let mut lines = Vec::new();
        for run in runs {
            let filter = EventFilter { run: Some(run.run.clone()), ..EventFilter::default() };
            for event in reader.events(0, &filter).unwrap() {
                let EventKind::Delayed { by, until, what } = event.kind else { continue };
                let by = serde_json::to_value(by).unwrap();
                let until = until.map(|at| at.format(" until %H:%M").to_string()).unwrap_or_default();
                let what = what.map(|what| format!(" ({what})")).unwrap_or_default();
                let due = run.scheduled.format("%H:%M");
                lines.push(format!("{} {due} {}{until}{what}", run.id, by.as_str().unwrap()));
            }
        }
        lines
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_off() {
    let world = World::new();
    let all = [
        routine("mail"),
        Definition { on_missed: OnMissed::Skip, ..with_cron(routine("web"), "30 13 * * *", OnOverlap::Skip) },
    ];
    let process = world.begin(&all);
    minutes(10).await;
    process.crash().await;
    minutes(110).await;
    let process = world.start(&all);
    minutes(60).await;
    process.stop(Duration::ZERO).await;
    // The service starts at 14:00, so that occurrence is on time. So is 15:00.
    assert_eq!(world.delays(), ["mail 13:00 service_off until 14:00", "web 13:30 service_off until 14:00"]);
}

#[tokio::test(start_paused = true)]
async fn everything_was_paused_and_a_clock_was_set_and_a_machine_slept() {
    let world = World::new();
    let process = world.begin(&[routine("mail")]);
    process.schedule.pause().await.unwrap();
    minutes(70).await;
    process.schedule.resume().await.unwrap();
    minutes(10).await;
    world.clock.jump(TimeDelta::minutes(50));
    minutes(10).await;
    world.clock.sleep(TimeDelta::minutes(60));
    minutes(10).await;
    process.stop(Duration::ZERO).await;
    let expected =
        ["mail 13:00 paused until 13:10", "mail 14:00 clock_forward until 14:09", "mail 15:00 slept until 15:19"];
    assert_eq!(world.delays(), expected);
    let apart = world.reader().recent_events(&routine("mail").id).unwrap();
    let set: Vec<_> = apart.into_iter().map(|event| event.kind).collect();
    let [slept, forward] = [(3600, true), (3000, false)].map(|(seconds, slept)| EventKind::ClockSet { seconds, slept });
    assert_eq!(set, [slept, forward]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_says_for_what_once() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "hog" => vec![Act::Take(Duration::from_secs(90 * 60))],
        _ => vec![],
    });
    let hog = with_cron(routine("hog"), "0 13,14 * * *", OnOverlap::Queue);
    let mail = with_cron(routine("mail"), "5 13 * * *", OnOverlap::Skip);
    let process = world.begin(&[hog, mail]);
    minutes(200).await;
    // The hog's second occurrence waits for its first, and then for nothing.
    assert_eq!(world.delays(), ["mail 13:05 slot", "hog 14:00 earlier_run", "hog 14:00 slot"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_machine_lacks_stays_known_after_the_start_and_is_named_in_the_notice() {
    let world = World::new();
    world.is_offline.store(true, std::sync::atomic::Ordering::SeqCst);
    let process = world.begin(&[Definition { requires: vec![Need::Online], ..routine("mail") }]);
    minutes(65).await;
    world.is_offline.store(false, std::sync::atomic::Ordering::SeqCst);
    minutes(2).await;
    process.stop(Duration::ZERO).await;
    assert_eq!(world.delays(), ["mail 13:00 requires (it is offline)"]);
    assert_eq!(world.attempts(), ["mail 01T13:00 completed"]);
    let told = world.notifications();
    assert_eq!(
        told[0],
        "routine mail is late: it was due at 13:00 UTC, had to wait, and runs now: the machine lacked what it requires."
    );
}

#[tokio::test(start_paused = true)]
async fn a_reminder_that_is_put_off_is_known_to_have_been() {
    let world = World::new();
    let process = world.begin(&[reminder("tea")]);
    minutes(1).await;
    let later = at_time(reminder("tea"), march("01T15:00:00"));
    world.write(std::slice::from_ref(&later));
    process.schedule.upsert(loaded(&later));
    minutes(1).await;
    let [from, to] = [march("01T13:00:00"), march("01T15:00:00")];
    let kinds: Vec<_> = world.reader().recent_events(&later.id).unwrap().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::DueMoved { from, to }, EventKind::DefinitionChanged]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_reminder_whose_file_came_late() {
    let world = World::new();
    let process = world.begin(&[]);
    minutes(70).await;
    let [tea, coffee] =
        [("tea", "01T10:00:00"), ("coffee", "01T13:05:00")].map(|(id, at)| at_time(reminder(id), march(at)));
    world.write(&[tea.clone(), coffee.clone()]);
    process.schedule.upsert(loaded(&tea));
    process.schedule.upsert(loaded(&coffee));
    minutes(1).await;
    process.stop(Duration::ZERO).await;
    let mut delays = world.delays();
    delays.sort();
    assert_eq!(delays, ["coffee 13:05 file_late until 13:10", "tea 10:00 file_late until 13:10"]);
}

#[tokio::test(start_paused = true)]
async fn a_routine_whose_file_was_gone_when_it_was_due() {
    let world = World::new();
    let mail = routine("mail");
    let process = world.begin(std::slice::from_ref(&mail));
    minutes(59).await;
    process.schedule.remove(mail.id.clone());
    minutes(1).await;
    seconds(8).await;
    process.schedule.upsert(loaded(&mail));
    minutes(61).await;
    process.stop(Duration::ZERO).await;
    assert_eq!(world.delays(), ["mail 13:00 file_late until 13:00"]);
    assert_eq!(world.attempts(), ["mail 01T13:00 completed", "mail 01T14:00 completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_short_pause() {
    let world = World::new();
    let missed = Definition { on_missed: OnMissed::Skip, ..routine("skip") };
    let process = world.begin(&[routine("mail"), missed]);
    seconds(59 * 60 + 50).await;
    process.schedule.pause().await.unwrap();
    seconds(30).await;
    process.schedule.resume().await.unwrap();
    minutes(1).await;
    process.stop(Duration::ZERO).await;
    let mut delays = world.delays();
    delays.sort();
    assert_eq!(delays, ["mail 13:00 paused until 13:00", "skip 13:00 paused until 13:00"]);
}
