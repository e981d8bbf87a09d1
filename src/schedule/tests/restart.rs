//! Dying at any moment, and starting again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::support::*;
use crate::definition::{Definition, DefinitionId, Kind, OnMissed, OnOverlap};
use crate::journal::RunState;

#[tokio::test(start_paused = true)]
async fn cut_off_before_its_first_effect_it_runs_once_more() {
    let world = World::new();
    world.script(|job| match job.attempt {
        1 => vec![Act::Hang],
        _ => vec![Act::Effect],
    });
    let process = world.begin(&[reminder("tea"), routine("mail")]);
    minutes(61).await;
    process.crash().await;
    let process = world.start(&[reminder("tea"), routine("mail")]);
    minutes(10).await;
    let again: Vec<_> = world.starts().into_iter().filter(|start| start.attempt == 2).collect();
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|start| start.cut_off && start.late.is_some()), "{again:?}");
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(
        attempts,
        [
            "mail 01T13:00 completed",
            "mail 01T13:00 interrupted: the service ended while it was going",
            "tea 01T13:00 completed",
            "tea 01T13:00 interrupted: the service ended while it was going",
        ]
    );
    assert_eq!(world.remaining_files(), ["routines/mail.md"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn cut_off_after_an_effect_it_fails_and_is_told_unless_it_says_retry() {
    let world = World::new();
    world.script(|job| match job.attempt {
        1 => vec![Act::Effect, Act::Hang],
        _ => vec![],
    });
    let brave = Definition { retry: Some(1), ..reminder("brave") };
    let process = world.begin(&[reminder("tea"), brave.clone()]);
    minutes(61).await;
    process.crash().await;
    let process = world.start(&[reminder("tea"), brave]);
    minutes(10).await;
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(
        attempts[..2],
        ["brave 01T13:00 completed", "brave 01T13:00 interrupted: the service ended while it was going"]
    );
    assert!(
        attempts[2]
            .starts_with("tea 01T13:00 failed: the service ended while it was going, after its first effect (Write)")
    );
    assert_eq!(world.notifications().len(), 1);
    assert_eq!(world.files_failed().len(), 1);
    assert_eq!(world.remaining_files(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn cut_off_after_an_effect_for_the_last_time_it_says_that_no_retry_is_left() {
    let world = World::new();
    world.script(|_| vec![Act::Effect, Act::Hang]);
    let tea = Definition { retry: Some(1), ..reminder("tea") };
    let mut process = world.begin(std::slice::from_ref(&tea));
    minutes(61).await;
    for _ in 0..2 {
        process.crash().await;
        process = world.start(std::slice::from_ref(&tea));
        minutes(1).await;
    }
    assert_eq!(world.starts().len(), 2);
    let [told] = &world.notifications()[..] else { panic!("{:?}", world.notifications()) };
    assert!(
        told.starts_with(
            "reminder tea failed: the service ended while it was going, after its first effect (Write); it is not run \
             again, because its retries (`retry: 1`) are used up. Its file"
        ),
        "{told}"
    );
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_outlives_the_service() {
    let world = World::new();
    world.script(|job| match job.attempt {
        1 => vec![fails(crate::agent::FailureClass::Overloaded)],
        _ => vec![],
    });
    let process = world.begin(&[reminder("tea")]);
    minutes(60).await;
    seconds(5).await;
    process.crash().await;
    let process = world.start(&[reminder("tea")]);
    minutes(2).await;
    let starts = world.starts();
    assert_eq!(starts.len(), 2);
    assert!((24..=36).contains(&(starts[1].at - starts[0].at).num_seconds()));
    assert!(!starts[1].cut_off);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_takes_the_service_down_each_time_is_given_up() {
    let world = World::new();
    world.script(|_| vec![Act::Hang]);
    let mut process = world.begin(&[reminder("tea")]);
    minutes(60).await;
    for _ in 0..12 {
        minutes(1).await;
        process.crash().await;
        process = world.start(&[reminder("tea")]);
    }
    minutes(1).await;
    assert_eq!(world.starts().len(), 10);
    assert_eq!((world.notifications().len(), world.files_failed().len()), (1, 1));
    process.stop(Duration::ZERO).await;
}

/// Running attempts, pending retries, waiting and missed occurrences: all continue in due order.
#[tokio::test(start_paused = true)]
async fn the_next_start_goes_on_in_due_order() {
    let mut world = World::new();
    world.slots = 2;
    world.script(|job| match (job.occurrence.id.as_str(), job.attempt) {
        ("d-failed", 1) => vec![fails(crate::agent::FailureClass::Overloaded)],
        _ => vec![Act::Take(Duration::from_secs(300))],
    });
    let due = |id: &str, second: u32| at_time(reminder(id), march(&format!("01T13:00:{second:02}")));
    let mut all =
        vec![due("d-failed", 0), due("c-going", 1), due("b-going", 2), due("a-queued", 4), due("a-queued-too", 5)];
    let process = world.begin(&all);
    minutes(60).await;
    seconds(10).await;
    process.crash().await;
    assert_eq!(world.started(), ["d-failed 01T13:00:00", "c-going 01T13:00:01", "b-going 01T13:00:02"]);
    world.clock.jump(TimeDelta::minutes(2));
    all.push(due("a-new", 3));
    world.write(&all);
    // One slot: if two are launched together, either may be the first to begin.
    world.slots = 1;
    let process = world.start(&all);
    minutes(40).await;
    let started: Vec<_> = world.starts()[3..].iter().map(|start| start.id.clone()).collect();
    assert_eq!(started, ["d-failed", "c-going", "b-going", "a-new", "a-queued", "a-queued-too"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_one_ends_what_was_cut_off_where_the_routine_says_so() {
    let world = World::new();
    world.script(|_| vec![Act::Hang]);
    let mail = with_cron(routine("mail"), "0 * * * *", OnOverlap::Cancel);
    let process = world.begin(std::slice::from_ref(&mail));
    minutes(90).await;
    process.crash().await;
    world.clock.jump(TimeDelta::minutes(60));
    let process = world.start(&[mail]);
    minutes(1).await;
    let starts: Vec<_> = world.starts().iter().map(|start| start.due).collect();
    assert_eq!(starts, [march("01T13:00:00"), march("01T14:00:00")], "{:?}", world.attempts());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_run_whose_file_was_deleted_is_closed() {
    let world = World::new();
    world.script(|_| vec![Act::Hang]);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    process.crash().await;
    world.files.files.lock().unwrap().clear();
    let process = world.start(&[]);
    minutes(1).await;
    assert_eq!(world.starts().len(), 1);
    let [record] = &world.reader().occurrences(None).unwrap()[..] else { panic!() };
    assert_eq!(record.outcome, Some(RunState::Skipped));
    process.stop(Duration::ZERO).await;
}

/// The jobs of a random world. `before`, `after`: seconds before and after the side effect.
#[derive(Clone, Debug)]
struct Plan {
    routines: Vec<(u32, OnOverlap, OnMissed)>,
    reminders: Vec<(i64, Option<u32>)>,
    before: u64,
    after: u64,
    /// When each process dies, in seconds and then single steps of the runtime; and how long the service stays down.
    lives: Vec<(u64, u32, i64)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    use OnMissed::{All, Latest, Skip};
    let overlap = prop_oneof![Just(OnOverlap::Skip), Just(OnOverlap::Queue), Just(OnOverlap::Cancel)];
    let missed = prop_oneof![Just(Latest), Just(All), Just(Skip)];
    (
        prop::collection::vec((1u32..15, overlap, missed), 0..3),
        prop::collection::vec((0i64..1200, prop_oneof![Just(None), (0u32..3).prop_map(Some)]), 0..6),
        0u64..90,
        0u64..90,
        prop::collection::vec((0u64..400, 0u32..60, prop_oneof![Just(0i64), 0i64..600]), 1..6),
    )
        .prop_map(|(routines, reminders, before, after, lives)| Plan { routines, reminders, before, after, lives })
}

/// The state after several lives of the service.
struct WorldSummary {
    world: World,
    all: Vec<Definition>,
    deaths: Vec<DateTime<Utc>>,
    /// When each definition was first observed, as recorded in the journal. A process can die before it has
    /// recorded that, and no occurrence fell due before.
    first_seen: BTreeMap<DefinitionId, DateTime<Utc>>,
}

async fn live_through(plan: &Plan) -> WorldSummary {
    let mut world = World::new();
    world.slots = 2;
    let (before, after) = (Duration::from_secs(plan.before), Duration::from_secs(plan.after));
    world.script(move |_| vec![Act::Take(before), Act::Effect, Act::Take(after)]);
    let mut all = Vec::new();
    for (n, (minutes, overlap, missed)) in plan.routines.iter().enumerate() {
        let routine = with_cron(routine(&format!("routine{n}")), &format!("*/{minutes} * * * *"), *overlap);
        all.push(Definition { on_missed: *missed, ..routine });
    }
    for (n, (seconds, retry)) in plan.reminders.iter().enumerate() {
        let at = march("01T12:00:00") + TimeDelta::seconds(*seconds);
        all.push(Definition { retry: *retry, ..at_time(reminder(&format!("reminder{n}")), at) });
    }
    world.write(&all);
    let (mut deaths, mut first_seen) = (Vec::new(), BTreeMap::new());
    for (alive, steps, dead) in &plan.lives {
        let start = world.clock.now();
        let process = world.start(&all);
        seconds(*alive).await;
        for _ in 0..*steps {
            tokio::task::yield_now().await;
        }
        deaths.push(world.clock.now());
        process.crash().await;
        for id in world.reader().accounts(all.iter().map(|one| &one.id)).unwrap().into_keys() {
            first_seen.entry(id).or_insert(start);
        }
        world.clock.jump(TimeDelta::seconds(*dead));
    }
    for definition in &all {
        first_seen.entry(definition.id.clone()).or_insert(world.clock.now());
    }
    let process = world.start(&all);
    minutes(45).await;
    process.schedule.pause().await.unwrap();
    minutes(240).await;
    let left = process.schedule.snapshot(0).await.active;
    assert!(left.iter().all(|open| open.kind == Kind::Routine), "{left:?}");
    process.stop(Duration::from_secs(300)).await;
    WorldSummary { world, all, deaths, first_seen }
}

/// Whatever dies at whatever moment: one outcome each, no second side effect, no file lost or left behind.
fn every_occurrence_is_accounted_for(plan: &Plan) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let WorldSummary { world, all, deaths, first_seen } = runtime.block_on(live_through(plan));
    let records = world.reader().occurrences(None).unwrap();
    for definition in all.iter().filter(|definition| definition.kind() == Kind::Reminder) {
        let mine: Vec<_> = records.iter().filter(|record| record.occurrence.id == definition.id).collect();
        assert_eq!(mine.len(), 1, "{}: {mine:?}", definition.title());
        let outcome = mine[0].outcome.unwrap_or_else(|| panic!("{} has no outcome", definition.title()));
        let failed = world.files.failed.lock().unwrap().contains_key(&definition.file);
        assert_eq!(failed, outcome != RunState::Completed, "{} {outcome}", definition.title());
        assert!(
            !world.remaining_files().contains(&definition.file.display().to_string()),
            "{} is left",
            definition.title()
        );
    }
    // A second start needs a death in between, and a second side effect needs a `retry` in the file.
    let mut starts: BTreeMap<(String, DateTime<Utc>), Vec<DateTime<Utc>>> = BTreeMap::new();
    for start in world.starts() {
        starts.entry((start.id, start.due)).or_default().push(start.at);
    }
    for (who, times) in &starts {
        for pair in times.windows(2) {
            assert!(deaths.iter().any(|death| pair[0] <= *death && *death <= pair[1]), "{who:?} {times:?} {deaths:?}");
        }
    }
    let mut effects = BTreeMap::new();
    for effect in world.effects.lock().unwrap().iter() {
        *effects.entry(effect.clone()).or_insert(0) += 1;
    }
    for ((id, due), count) in effects {
        let says = all.iter().find(|definition| definition.id.as_str() == id).unwrap().retry.unwrap_or(0);
        assert!(count <= 1 + says, "{id} {due}: {count} effects");
    }
    // Each of a routine's times, from the first observation to the last claim, is in exactly one record.
    for definition in all.iter().filter(|definition| definition.kind() == Kind::Routine) {
        let mine: Vec<_> = records.iter().filter(|record| record.occurrence.id == definition.id).collect();
        let mut covered = BTreeSet::new();
        let last = mine.iter().map(|record| record.occurrence.at).max();
        let due: Vec<_> = super::super::occurrences(definition, first_seen[&definition.id])
            .take_while(|at| last.is_some_and(|last| *at <= last))
            .collect();
        for record in &mine {
            let from = record.covers_from.unwrap_or(record.occurrence.at);
            for at in due.iter().filter(|at| **at >= from && **at <= record.occurrence.at) {
                assert!(covered.insert(*at), "{} {at} has two records", definition.title());
            }
        }
        assert_eq!(covered.len(), due.len(), "{}: {mine:?}", definition.title());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn dying_at_any_moment_loses_nothing_and_doubles_nothing(plan in plans()) {
        every_occurrence_is_accounted_for(&plan);
    }
}

/// A process that dies before it has written anything leaves nothing behind. The next start is a first start.
#[test]
fn dying_before_the_first_sight_is_recorded_leaves_a_first_start() {
    for steps in 0..20 {
        every_occurrence_is_accounted_for(&Plan {
            routines: vec![(1, OnOverlap::Skip, OnMissed::Latest)],
            reminders: vec![(30, None)],
            before: 0,
            after: 0,
            lives: vec![(0, steps, 60), (0, steps, 300)],
        });
    }
}

/// Dies at each step of one reminder and one routine, one step of the runtime at a time.
#[test]
fn dying_at_every_step_loses_nothing_and_doubles_nothing() {
    for steps in 0..120 {
        every_occurrence_is_accounted_for(&Plan {
            routines: vec![(10, OnOverlap::Queue, OnMissed::Latest)],
            reminders: vec![(600, None)],
            before: 0,
            after: 0,
            lives: vec![(600, steps, 0), (0, steps, 0)],
        });
    }
}
