//! Edits of jitter: each time fires once, whatever its delay was.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::support::*;
use crate::definition::{Cadence, Definition, OnOverlap, Recurrence, Trigger};
use crate::schedule::cron::Times;

/// Returns a routine due at 13:00 each day, with a jitter of at most this many minutes.
fn spread(minutes: u64) -> Definition {
    let jitter = (minutes > 0).then(|| Duration::from_secs(60 * minutes));
    let recurs = Recurrence { cadence: Cadence::Cron("0 13 * * *".into()), jitter };
    Definition {
        trigger: Trigger::Routine { recurs, on_overlap: OnOverlap::Skip },
        ..with_cron(routine("spread"), "0 13 * * *", OnOverlap::Skip)
    }
}

fn first(definition: &Definition) -> DateTime<Utc> {
    Times::of(definition).unwrap().next(definition.zone, march("01T12:00:00")).unwrap()
}

/// Returns two jitters. The first delays its time less than the second, by at least this many minutes.
fn two(apart: i64) -> (Definition, Definition) {
    let all = || (1..60).map(spread);
    let pairs = all().flat_map(|one| all().map(move |two| (one.clone(), two)));
    let is_apart = |(one, two): &(Definition, Definition)| first(two) - first(one) >= TimeDelta::minutes(apart);
    pairs.into_iter().find(is_apart).unwrap()
}

/// Returns when it fired on 1 and 2 March, if edited two minutes after `edited_after`; `off`: while the service was off.
async fn fired(before: &Definition, after: &Definition, edited_after: DateTime<Utc>, off: bool) -> Vec<DateTime<Utc>> {
    let world = World::new();
    let mut process = world.begin(std::slice::from_ref(before));
    let edited = edited_after + TimeDelta::minutes(2);
    tokio::time::sleep((edited - world.clock.now()).to_std().unwrap()).await;
    world.write(std::slice::from_ref(after));
    if off {
        process.crash().await;
        process = world.start(std::slice::from_ref(after));
    } else {
        process.schedule.upsert(loaded(after));
    }
    let end = march("02T12:59:00");
    tokio::time::sleep((end - world.clock.now()).to_std().unwrap()).await;
    let times = world.starts().iter().map(|start| start.at).collect();
    minutes(62).await;
    assert_eq!(world.starts().last().unwrap().due.date_naive(), march("02T00:00:00").date_naive(), "the next day, too");
    process.stop(Duration::ZERO).await;
    times
}

#[tokio::test(start_paused = true)]
async fn a_time_that_has_fired_does_not_fire_again() {
    let (early, late) = two(10);
    for off in [false, true] {
        let times = fired(&early, &late, first(&early), off).await;
        assert_eq!(times, [first(&early)], "put off by more, off: {off}");
        let times = fired(&spread(0), &late, first(&spread(0)), off).await;
        assert_eq!(times, [first(&spread(0))], "put off at all, off: {off}");
        let times = fired(&late, &spread(0), first(&late), off).await;
        assert_eq!(times, [first(&late)], "not put off any more, off: {off}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_still_to_come_fires_once() {
    let (early, late) = two(10);
    for off in [false, true] {
        // With the new jitter, it would have fired already.
        let edited = first(&early) + TimeDelta::minutes(2);
        let times = fired(&late, &early, first(&early), off).await;
        assert!(
            matches!(times[..], [at] if at - edited < TimeDelta::seconds(5)),
            "off: {off}: {times:?}, edited {edited}"
        );
        // With the new jitter, it is still to come.
        let times = fired(&late, &spread(58), march("01T12:50:00"), off).await;
        assert_eq!(times, [first(&spread(58))], "off: {off}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_may_be_edited_again_and_again() {
    let (early, late) = two(10);
    let world = World::new();
    let process = world.begin(std::slice::from_ref(&early));
    for n in 0..240 {
        let edited = if n % 2 == 0 { &late } else { &early };
        world.write(std::slice::from_ref(edited));
        process.schedule.upsert(loaded(edited));
        minutes(1).await;
    }
    assert_eq!(world.starts().len(), 1, "{:?}", world.started());
    process.stop(Duration::ZERO).await;
}
