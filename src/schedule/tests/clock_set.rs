//! A wall clock that is wrong and then corrected: nothing runs twice, and there is no false backlog.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::support::*;
use crate::definition::{Cadence, Definition, OnMissed, OnOverlap, Recurrence, Trigger};
use crate::journal::{JournalReader, RunState};

const POLICIES: [OnMissed; 3] = [OnMissed::Latest, OnMissed::All, OnMissed::Skip];

/// Returns one routine for each policy.
fn each(cron: &str) -> Vec<Definition> {
    let one = |(name, on_missed)| Definition { on_missed, ..with_cron(routine(name), cron, OnOverlap::Queue) };
    ["latest", "all", "skip"].into_iter().zip(POLICIES).map(one).collect()
}

/// Starts with the clock behind by `by`, and corrects it a second later.
async fn starts_behind(world: &World, all: &[Definition], by: TimeDelta) -> Process {
    world.clock.jump(-by);
    let process = world.start(all);
    seconds(1).await;
    world.clock.jump(by);
    seconds(5).await;
    process
}

fn shared(reader: &JournalReader) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let all = reader.occurrences(None).unwrap();
    all.iter().filter_map(|record| Some((record.covers_from?, record.occurrence.at))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_behind_makes_no_backlog_for_what_is_new_or_enabled() {
    let world = World::new();
    let disabled: Vec<Definition> =
        each("0 11 * * *").into_iter().map(|routine| Definition { enabled: false, ..routine }).collect();
    world.begin(&disabled).crash().await;
    let all = each("0 11 * * *");
    world.begin(&all).stop(Duration::ZERO).await;
    let process = starts_behind(&world, &all, TimeDelta::hours(6)).await;
    assert_eq!(world.attempts(), [""; 0]);
    // The clock is behind during the run, while routines are edited.
    for definition in &all {
        world.clock.jump(TimeDelta::days(-40));
        seconds(1).await;
        process.schedule.upsert(loaded(&with_cron(definition.clone(), "15 11 * * *", OnOverlap::Queue)));
        seconds(1).await;
        world.clock.jump(TimeDelta::days(40));
        seconds(1).await;
        assert_eq!(world.attempts(), [""; 0]);
    }
    minutes(24 * 60).await;
    assert_eq!(world.started().len(), 3, "{:?}", world.started());
    assert!(world.starts().iter().all(|start| start.late.is_none() && start.due == march("02T11:15:00")));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_behind_runs_nothing_again_that_retention_has_forgotten() {
    let world = World::new();
    let all = each("0 * * * *");
    let process = world.begin(&all);
    minutes(100 * 60 + 1).await;
    assert_eq!(world.starts().len(), 300);
    // The last occurrence of each is kept, since its answer may be needed.
    assert_eq!(process.journal.prune(world.clock.now(), BTreeSet::new()).await.unwrap(), 297);
    world.clock.jump(TimeDelta::hours(-90));
    seconds(1).await;
    world.clock.jump(TimeDelta::hours(90));
    seconds(5).await;
    process.stop(Duration::ZERO).await;
    let process = starts_behind(&world, &all, TimeDelta::hours(50)).await;
    assert_eq!((world.starts().len(), world.attempts().len()), (300, 3));
    process.stop(Duration::ZERO).await;
}

/// A record that stands for many skipped occurrences stays, and still stands for them.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_behind_runs_nothing_that_is_recorded_as_skipped() {
    let world = World::new();
    let all = each("* * * * *");
    world.begin(&all).stop(Duration::ZERO).await;
    world.clock.jump(TimeDelta::hours(30));
    let process = world.start(&all);
    minutes(2).await;
    let (before, stretches) = (world.started(), shared(&world.reader()));
    assert_eq!(stretches.len(), 3);
    world.clock.jump(TimeDelta::hours(-31));
    seconds(1).await;
    // The clock is correct again, or nearly.
    world.clock.jump(TimeDelta::hours(30));
    seconds(5).await;
    assert_eq!(world.started(), before);
    assert_eq!(shared(&world.reader()), stretches);
    process.stop(Duration::ZERO).await;
    // The policy for missed occurrences makes no difference from now on.
    let everything: Vec<Definition> =
        all.into_iter().map(|routine| Definition { on_missed: OnMissed::All, ..routine }).collect();
    world.write(&everything);
    let process = starts_behind(&world, &everything, TimeDelta::hours(29)).await;
    assert_eq!(world.started(), before);
    process.stop(Duration::ZERO).await;
}

/// The clock was ahead at the start. Occurrences on time run at once. Occurrences missed a day later run late, and are not lost.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_for_a_moment_silences_nothing() {
    let world = World::new();
    let mail = routine("mail");
    world.begin(std::slice::from_ref(&mail)).stop(Duration::ZERO).await;
    world.clock.jump(TimeDelta::days(400));
    let process = world.start(std::slice::from_ref(&mail));
    seconds(5).await;
    world.clock.jump(TimeDelta::days(-400));
    minutes(90).await;
    assert_eq!(world.started()[1..], ["mail 01T13:00:00"]);
    minutes(24 * 60).await;
    assert_eq!(world.starts().len(), 26);
    process.stop(Duration::ZERO).await;
    world.clock.jump(TimeDelta::hours(3));
    let process = world.start(std::slice::from_ref(&mail));
    seconds(5).await;
    let last = world.starts().pop().unwrap();
    assert_eq!((last.due, world.starts().len()), (march("02T16:00:00"), 27));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_for_long_is_taken_for_right_after_a_day() {
    let world = World::new();
    let mail = routine("mail");
    let process = world.begin(std::slice::from_ref(&mail));
    minutes(10).await;
    world.clock.jump(TimeDelta::days(400));
    minutes(90).await;
    world.clock.jump(TimeDelta::days(-400));
    let started = world.starts().len();
    minutes(23 * 60).await;
    assert_eq!(world.starts().len(), started + 23, "what is on time runs in any case");
    world.clock.jump(TimeDelta::minutes(150));
    seconds(5).await;
    assert_eq!(world.starts().len(), started + 23, "nobody knows yet which time is right");
    minutes(2 * 60).await;
    world.clock.jump(TimeDelta::minutes(150));
    seconds(5).await;
    let last = world.starts().pop().unwrap();
    assert!(last.late.is_some(), "{last:?}");
    process.stop(Duration::ZERO).await;
}

/// A time that the clock shows twice is due once. The routine did not exist the first time.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_a_little_fires_each_time_once() {
    let world = World::new();
    let all = each("55 11,12 * * *");
    world.clock.jump(TimeDelta::minutes(-3));
    let process = world.begin(&all);
    seconds(1).await;
    world.clock.jump(TimeDelta::minutes(-30));
    minutes(20).await;
    process.stop(Duration::ZERO).await;
    world.clock.jump(TimeDelta::minutes(-10));
    let process = world.start(&all);
    minutes(19).await;
    // It fired at 11:55, a time that the clock now shows again.
    world.clock.jump(TimeDelta::minutes(-2));
    minutes(63).await;
    let starts = world.starts();
    assert!(starts.iter().all(|start| start.late.is_none()), "{starts:?}");
    let due: Vec<_> = starts.iter().map(|start| start.due).collect();
    let [first, second] = [march("01T11:55:00"), march("01T12:55:00")];
    assert_eq!(due, [first, first, first, second, second, second]);
    process.stop(Duration::ZERO).await;
}

/// Events of the clock and the service, in minutes.
#[derive(Clone, Debug)]
enum Step {
    Live(u64),
    /// The service is down for a while.
    Down(u64),
    /// The clock is set back by this much; `true`: while the service is down.
    Behind(i64, bool),
    /// The clock is corrected; `true`: while the service is down.
    Right(bool),
    /// A routine is edited.
    Edit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0u64..300).prop_map(Step::Live),
        (0u64..4000).prop_map(Step::Down),
        (1i64..9000, any::<bool>()).prop_map(|(by, down)| Step::Behind(by, down)),
        any::<bool>().prop_map(Step::Right),
        (0usize..3).prop_map(Step::Edit),
    ];
    prop::collection::vec(step, 1..14)
}

/// A world whose clock is right or behind, with the facts known from outside.
struct Wrong {
    world: World,
    all: Vec<Definition>,
    process: Option<Process>,
    behind: TimeDelta,
    /// What the clock showed when it was last set back.
    shown: DateTime<Utc>,
    /// Whether the service was started while the clock was behind.
    started_behind: bool,
    /// No occurrence of the routine until this time runs late.
    seen: BTreeMap<String, DateTime<Utc>>,
    checked: usize,
    ran: BTreeSet<(String, DateTime<Utc>)>,
}

impl Wrong {
    fn begin() -> Self {
        let world = World::new();
        let all = each("*/30 * * * *");
        let process = Some(world.begin(&all));
        let seen = all.iter().map(|routine| (routine.id.to_string(), world.clock.now())).collect();
        let (behind, checked) = (TimeDelta::zero(), 0);
        let (started_behind, ran) = (false, BTreeSet::new());
        let shown = world.clock.now();
        Self { world, all, process, behind, shown, started_behind, seen, checked, ran }
    }

    /// Returns the time that a correct clock would show.
    fn right(&self) -> DateTime<Utc> {
        self.world.clock.now() + self.behind
    }

    async fn down(&mut self) {
        if let Some(process) = self.process.take() {
            process.crash().await;
        }
    }

    fn up(&mut self) {
        if self.process.is_none() {
            self.process = Some(self.world.start(&self.all));
            self.started_behind |= !self.behind.is_zero();
        }
    }

    async fn set(&mut self, behind: TimeDelta, down: bool) {
        if down {
            self.down().await;
        }
        self.world.clock.jump(self.behind - behind);
        self.behind = behind;
        self.started_behind &= !behind.is_zero();
        self.up();
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Live(count) => minutes(*count).await,
            Step::Down(count) => {
                self.down().await;
                minutes(*count).await;
                self.up();
            }
            Step::Behind(by, down) if self.behind.is_zero() => {
                self.shown = self.right();
                self.set(TimeDelta::minutes(*by), *down).await;
            }
            Step::Right(down) if !self.behind.is_zero() => {
                self.set(TimeDelta::zero(), *down).await;
            }
            // A service that started behind cannot know how late it is.
            Step::Edit(which) if !self.started_behind => {
                let routine = &mut self.all[*which];
                edit(routine);
                self.world.write(std::slice::from_ref(routine));
                self.process.as_ref().unwrap().schedule.upsert(loaded(routine));
                let id = routine.id.to_string();
                // A clock that reaches the time from which it was set back is trusted. A later forward correction
                // looks like sleep.
                let now = self.world.clock.now();
                let seen = if now >= self.shown { now } else { self.right() };
                self.seen.insert(id, seen);
            }
            Step::Behind(..) | Step::Right(_) | Step::Edit(_) => {}
        }
        seconds(5).await;
        self.check();
    }

    fn check(&mut self) {
        let starts = self.world.starts();
        for start in &starts[self.checked..] {
            let once = self.ran.insert((start.id.clone(), start.due));
            assert!(once || start.cut_off, "twice: {start:?}");
            // A change of the clock is noticed within a minute, so the corrected time is known only to that precision.
            let early = start.due <= self.seen[&start.id] - TimeDelta::seconds(60);
            let by_its_clock = start.late.is_none() && !self.behind.is_zero();
            assert!(!early || by_its_clock, "a backlog: {start:?}");
        }
        self.checked = starts.len();
    }

    /// Corrects the clock at the end, and checks that everything continues.
    async fn end(mut self) {
        self.take(&Step::Right(false)).await;
        // Never on the very second of an occurrence, since every step ends on a multiple of five.
        seconds(2).await;
        self.check();
        let (from, before) = (self.right(), self.checked);
        minutes(120).await;
        self.check();
        let starts = &self.world.starts()[before..];
        for definition in &self.all {
            let due = super::super::occurrences(definition, from).take_while(|at| *at <= from + TimeDelta::hours(2));
            let found = starts.iter().filter(|start| start.id == definition.id.as_str()).map(|start| start.due);
            assert_eq!(found.collect::<Vec<_>>(), due.collect::<Vec<_>>(), "{}", definition.title());
        }
        if let Some(process) = self.process.take() {
            process.stop(Duration::ZERO).await;
        }
        for record in self.world.reader().occurrences(None).unwrap() {
            let (id, at) = (record.occurrence.id.to_string(), record.occurrence.at);
            let skipped = record.outcome == Some(RunState::Skipped);
            assert_eq!(self.ran.contains(&(id.clone(), at)), !skipped, "{record:?}");
        }
    }
}

/// Writes the same times as another expression.
fn edit(routine: &mut Definition) {
    if let Trigger::Routine { recurs: Recurrence { cadence: Cadence::Cron(cron), .. }, .. } = &mut routine.trigger {
        let other = if cron.starts_with("*/30") { "0,30 * * * *" } else { "*/30 * * * *" };
        other.clone_into(cron);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_clock_that_was_behind_runs_nothing_twice_and_nothing_from_before(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut wrong = Wrong::begin();
            seconds(5).await;
            for step in &steps {
                wrong.take(step).await;
            }
            wrong.end().await;
        });
    }
}

/// Its process is stopped, or its container: the clocks go on.
#[tokio::test(start_paused = true)]
async fn what_falls_due_while_the_service_is_suspended_is_missed() {
    let world = World::new();
    let process = world.begin(&each("* * * * *"));
    seconds(30).await;
    tokio::time::advance(Duration::from_secs(200)).await;
    seconds(5).await;
    let mut late: Vec<String> =
        world.starts().iter().map(|start| format!("{} {}", start.id, start.due.format("%H:%M"))).collect();
    // The two jobs begin at once.
    late[..2].sort();
    assert_eq!(late, ["all 12:01", "latest 12:03", "all 12:02", "all 12:03"]);
    assert!(world.starts().iter().all(|start| start.due == march("01T12:03:00") || start.late.is_some()));
    minutes(1).await;
    let on_time =
        world.starts().iter().skip(4).filter(|start| start.due == march("01T12:04:00") && start.late.is_none()).count();
    assert_eq!(on_time, 3, "{:?}", world.started());
    let told = world.notifications().concat();
    assert!(told.contains("routine skip was due 3 times"), "{told}");
    let missed = world.attempts().iter().filter(|attempt| attempt.contains("skip 01T12:03 skipped")).count();
    assert_eq!(missed, 1, "{:?}", world.attempts());
    process.stop(Duration::ZERO).await;
}

/// The disk is full, or another process holds the journal.
#[tokio::test(start_paused = true)]
async fn what_was_about_to_run_while_the_journal_could_not_be_written_is_missed_too() {
    let world = World::new();
    let process = world.begin(&each("* * * * *"));
    seconds(30).await;
    let held = world.hold_journal();
    // No time passes by itself while the journal waits.
    for seconds in [31, 150] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }
    drop(held);
    while world.attempts().is_empty() {
        tokio::task::yield_now().await;
    }
    seconds(20).await;
    let mut ran: Vec<String> =
        world.starts().iter().map(|start| format!("{} {}", start.id, start.due.format("%H:%M"))).collect();
    ran.sort();
    assert_eq!(ran, ["all 12:01", "all 12:02", "all 12:03", "latest 12:03"]);
    let attempts = world.attempts();
    for (id, at, why) in [
        ("skip", "12:01", "(on_missed: skip)"),
        ("latest", "12:01", "of those that were missed only the newest counts (on_missed: latest)"),
    ] {
        let line = format!("{id} 01T{at} skipped: missed");
        assert!(attempts.iter().any(|attempt| attempt.starts_with(&line) && attempt.ends_with(why)), "{attempts:?}");
    }
    let told = world.notifications().join("\n");
    for id in ["skip", "latest"] {
        assert!(told.contains(&format!("routine {id} was skipped: it was due at 12:01 UTC")), "{told}");
    }
    process.stop(Duration::ZERO).await;
}
