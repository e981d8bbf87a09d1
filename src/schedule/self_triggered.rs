//! Cuts routines that trigger themselves, after a few times in a row. Pure.
//!
//! An occurrence caused by a run descends from that run and from its ancestors. A routine that descends from
//! itself has triggered itself, however long that took and however many jobs were in between. An outside cause
//! ends the row: a scheduled time, a person, or a change that no run with write access there can have made.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::Origin;

/// Maximum number of times in a row that a routine may trigger itself.
const AT_MOST: u32 = 3;

/// Maximum number of times in a row that a routine may fire when it, or another run that may write there, was the cause. It is higher,
/// since the other run may do ordinary work.
const AT_MOST_PERHAPS: u32 = 30;

/// Maximum number of times that it may fire without a scheduled time within [`WINDOW`], whatever the cause.
const AT_MOST_BY_ANYTHING: usize = 10;

const WINDOW: Duration = Duration::from_secs(60);

/// Maximum delay after the end of a run until its last change is seen.
const SEEN_LATE: Duration = Duration::from_secs(1);

/// Maximum number of runs considered as the cause of a change.
const LOOKED_AT: usize = 64;

/// The jobs that a run descends from, its own included.
pub(super) type Lineage = BTreeSet<DefinitionId>;

/// The counts of routines that fire without a scheduled time.
#[derive(Debug, Default)]
pub(super) struct SelfTriggered {
    /// The origin of each job's last run. A job without an entry descends from itself alone. The journal records
    /// it, too, so that a loop does not outlive a restart.
    origins: HashMap<DefinitionId, Origin>,
    /// How often in a row each routine has perhaps triggered itself.
    perhaps: HashMap<DefinitionId, u32>,
    by_anything: HashMap<DefinitionId, Times>,
    /// Runs that ended lately, in order.
    ended: VecDeque<PastRun>,
}

#[derive(Debug, Default)]
struct Times {
    fired: VecDeque<Instant>,
    /// Whether the person was notified of the cut. Reset once the routine has not fired for [`WINDOW`].
    told: bool,
}

/// A run that may have changed a file.
#[derive(Clone, Debug)]
pub(super) struct PastRun {
    /// The definition.
    pub(super) definition: Arc<Definition>,
    /// The jobs that the run descends from.
    pub(super) lineage: Lineage,
    /// When it began.
    pub(super) begun: Instant,
    /// When it ended; for a running one, now.
    pub(super) ended: Instant,
}

/// Why a routine may not fire, and when it may again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FiringLimit {
    pub(super) why: &'static str,
    pub(super) until: &'static str,
}

const BY_ITSELF: FiringLimit =
    FiringLimit { why: "it has set itself off 3 times in a row", until: "when something else sets it off" };

const PERHAPS_BY_ITSELF: FiringLimit = FiringLimit {
    why: "it, or another job that may write there, has set it off 30 times in a row",
    until: "when something else sets it off",
};

const BY_ANYTHING: FiringLimit =
    FiringLimit { why: "it has fired 10 times within a minute", until: "when a minute has passed" };

/// The result of counting a firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// The cut, if the routine may not fire.
    pub(super) cut: Option<FiringLimit>,
    /// Whether to notify the person of the cut.
    pub(super) is_news: bool,
    /// The origin, to be recorded with the occurrence.
    pub(super) origin: Origin,
}

impl SelfTriggered {
    /// Continues from the origins in the journal.
    pub(super) fn resume_from(&mut self, origins: Vec<(DefinitionId, Origin)>) {
        self.origins.extend(origins);
    }

    /// Starts a new row for a job whose run has another cause. A job that a run made descends from that run's job.
    pub(super) fn restart_count(&mut self, definition: &Definition) {
        let id = &definition.id;
        self.perhaps.remove(id);
        let maker = definition.created_by.as_ref().or(definition.chain().map(|chain| &chain.parent));
        // A routine that a run made fires by its own times.
        match maker.filter(|_| matches!(definition.kind(), Kind::Reminder | Kind::Session)) {
            Some(maker) => {
                let comes_of = joined(id, &[self.lineage(maker)]);
                self.origins.insert(id.clone(), Origin { comes_of, in_a_row: 0 });
            }
            None => self.forget(id),
        }
    }

    /// Returns the jobs that a job's last run descends from.
    pub(super) fn lineage(&self, id: &DefinitionId) -> Lineage {
        self.origins.get(id).map_or_else(|| joined(id, &[]), |origin| origin.comes_of.clone())
    }

    /// Records a run that has ended.
    pub(super) fn ended(&mut self, run: PastRun) {
        while self.ended.front().is_some_and(|past| run.ended.duration_since(past.ended) > WINDOW) {
            self.ended.pop_front();
        }
        self.ended.push_back(run);
    }

    /// Removes a job that never fires again.
    pub(super) fn forget(&mut self, id: &DefinitionId) {
        self.perhaps.remove(id);
        self.origins.remove(id);
    }

    /// Returns the runs, at most one per job, that were running at `at` and may have caused a change then. Includes ended runs.
    pub(super) fn runs_at(&self, at: Instant, running: impl Iterator<Item = PastRun>) -> Vec<PastRun> {
        let past = self.ended.iter().rev().take_while(|run| run.ended + SEEN_LATE >= at).cloned();
        let mut found: Vec<PastRun> = Vec::new();
        for run in running.chain(past).filter(|run| run.begun <= at).take(LOOKED_AT) {
            if found.iter().all(|known| known.definition.id != run.definition.id) {
                found.push(run);
            }
        }
        found
    }

    /// Counts a routine that is about to fire. `causes`: the lineage of each run that may be the cause.
    pub(super) fn count(&mut self, id: &DefinitionId, causes: &[Lineage], now: Instant) -> Counted {
        let own = causes.iter().filter(|cause| cause.contains(id)).count();
        let before = self.origins.get(id).map_or(0, |origin| origin.in_a_row);
        let in_a_row = match own {
            0 => 0,
            // Another run may have been the cause.
            _ if own < causes.len() => before,
            // One more than allowed: the person was notified.
            _ => (before + 1).min(AT_MOST + 1),
        };
        let perhaps_before = self.perhaps.remove(id).unwrap_or(0);
        if own > 0 {
            self.perhaps.insert(id.clone(), (perhaps_before + 1).min(AT_MOST_PERHAPS + 1));
        }
        let by_itself = own > 0 && own == causes.len() && in_a_row > AT_MOST;
        let perhaps = own > 0 && perhaps_before >= AT_MOST_PERHAPS;
        // The last run stays the same.
        let comes_of = if by_itself || perhaps { self.lineage(id) } else { joined(id, causes) };
        let origin = Origin { comes_of, in_a_row };
        self.origins.insert(id.clone(), origin.clone());
        let (cut, is_news) = if by_itself {
            (Some(BY_ITSELF), before == AT_MOST)
        } else if perhaps {
            (Some(PERHAPS_BY_ITSELF), perhaps_before == AT_MOST_PERHAPS)
        } else {
            self.count_any(id, now)
        };
        Counted { cut, is_news, origin }
    }

    fn count_any(&mut self, id: &DefinitionId, now: Instant) -> (Option<FiringLimit>, bool) {
        self.by_anything.retain(|_, times| {
            times.fired.retain(|at| now.duration_since(*at) < WINDOW);
            !times.fired.is_empty()
        });
        let times = self.by_anything.entry(id.clone()).or_default();
        let may_fire = times.fired.len() < AT_MOST_BY_ANYTHING;
        if may_fire {
            times.fired.push_back(now);
        }
        let is_news = !may_fire && !std::mem::replace(&mut times.told, !may_fire);
        ((!may_fire).then_some(BY_ANYTHING), is_news)
    }
}

fn joined(id: &DefinitionId, causes: &[Lineage]) -> Lineage {
    let all = causes.iter().flat_map(|cause| cause.iter().cloned());
    all.chain([id.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which steps fire. Each is a job and its causes (`by a c`: a run of `a` or of `c`; `by` alone: an outside cause).
    fn fires(steps: &[(&str, &[&str])]) -> Vec<bool> {
        let mut counts = SelfTriggered::default();
        let begin = Instant::now();
        let step = |(n, (id, by)): (usize, &(&str, &[&str]))| {
            let causes: Vec<Lineage> = by.iter().map(|by| counts.lineage(&DefinitionId::new(*by))).collect();
            // Time makes no difference.
            let now = begin + Duration::from_secs(3600) * u32::try_from(n).unwrap();
            counts.count(&DefinitionId::new(*id), &causes, now).cut.is_none()
        };
        steps.iter().enumerate().map(step).collect()
    }

    #[test]
    fn one_that_sets_itself_off_is_cut_at_the_fourth_time_in_a_row() {
        let own: (&str, &[&str]) = ("a", &["a"]);
        let outside: (&str, &[&str]) = ("a", &[]);
        assert_eq!(fires(&[outside, own, own, own, own, own]), [true, true, true, true, false, false]);
        // A person's edit in between, and one after the cut.
        assert_eq!(
            fires(&[own, own, own, outside, own, own, own, own]),
            [true, true, true, true, true, true, true, false]
        );
        assert_eq!(fires(&[own, own, own, own, outside, own]), [true, true, true, false, true, true]);
    }

    #[test]
    fn a_circle_is_cut_as_well_and_a_line_is_not() {
        let circle: [(&str, &[&str]); 9] = [
            ("a", &[]),
            ("b", &["a"]),
            ("a", &["b"]),
            ("b", &["a"]),
            ("a", &["b"]),
            ("b", &["a"]),
            ("a", &["b"]),
            ("b", &["a"]),
            ("a", &["b"]),
        ];
        assert_eq!(fires(&circle), [true, true, true, true, true, true, true, true, false]);
        // `c` fires by its times and triggers `b` forever.
        let by_times: (&str, &[&str]) = ("b", &["c"]);
        assert_eq!(fires(&[by_times; 20]), [true; 20]);
    }

    #[test]
    fn what_another_may_have_caused_neither_counts_nor_ends_it() {
        let own: (&str, &[&str]) = ("a", &["a"]);
        let unclear: (&str, &[&str]) = ("a", &["a", "c"]);
        assert_eq!(fires(&[own, own, own, unclear, unclear, own]), [true, true, true, true, true, false]);
    }

    #[test]
    fn one_that_perhaps_sets_itself_off_is_cut_as_well_in_the_end() {
        let unclear: (&str, &[&str]) = ("a", &["a", "c"]);
        let outside: (&str, &[&str]) = ("a", &[]);
        assert_eq!(fires(&[unclear; 31]), [[true; 30].as_slice(), &[false]].concat());
        let steps = [[unclear; 31].as_slice(), &[outside], &[unclear; 31]].concat();
        assert_eq!(fires(&steps).iter().filter(|fires| !**fires).count(), 2);
        // `b` fires as often as others change its files.
        let others: (&str, &[&str]) = ("b", &["c", "d"]);
        assert_eq!(fires(&[others; 50]), [true; 50]);
    }

    #[test]
    fn the_person_is_told_once_of_each_cut() {
        let (mut counts, now, id) = (SelfTriggered::default(), Instant::now(), DefinitionId::new("loops"));
        let own = [counts.lineage(&id)];
        let mut told = |causes: &[Lineage]| counts.count(&id, causes, now + WINDOW).is_news;
        assert_eq!([0; 6].map(|_| told(&own)), [false, false, false, true, false, false]);
        assert!(!told(&[]));
        assert_eq!([0; 5].map(|_| told(&own)), [false, false, false, true, false]);
    }

    #[test]
    fn whoever_sets_it_off_it_fires_ten_times_a_minute() {
        let (mut counts, begin, id) = (SelfTriggered::default(), Instant::now(), DefinitionId::new("circle"));
        let mut cut = |second: u64| counts.count(&id, &[], begin + Duration::from_secs(second)).cut;
        assert!((0..10).all(|second| cut(second).is_none()));
        assert_eq!(cut(20), Some(BY_ANYTHING));
        assert_eq!(cut(60), None);
    }
}
