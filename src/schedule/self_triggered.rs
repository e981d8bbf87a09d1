//! Routines that set themselves off: after a few times in a minute they are cut. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;

/// How often a routine may set itself off within [`WINDOW`].
const AT_MOST: usize = 3;

/// How often it may fire for what happens within [`WINDOW`], whoever sets it off: jobs may set off one another in a circle.
const AT_MOST_BY_ANYTHING: usize = 10;

const WINDOW: Duration = Duration::from_secs(60);

/// When routines have set themselves off.
#[derive(Debug, Default)]
pub(super) struct SelfTriggered {
    by_itself: HashMap<DefinitionId, Times>,
    by_anything: HashMap<DefinitionId, Times>,
    /// When runs of routines that watch folders have ended.
    ended: HashMap<DefinitionId, Instant>,
}

#[derive(Debug, Default)]
struct Times {
    fired: VecDeque<Instant>,
    /// The person was told that it is cut: once, until it has stopped for as long.
    told: bool,
}

/// What becomes of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// Why it may not fire.
    pub(super) cut: Option<&'static str>,
    /// The person is to be told that it may not.
    pub(super) is_news: bool,
}

impl SelfTriggered {
    /// A run of a routine that watches a folder has ended.
    pub(super) fn ended(&mut self, id: &DefinitionId, now: Instant) {
        self.ended.retain(|_, at| now.duration_since(*at) < WINDOW);
        self.ended.insert(id.clone(), now);
    }

    /// Whether one has ended after that, within the last minute.
    pub(super) fn ended_after(&self, id: &DefinitionId, began: Instant) -> bool {
        self.ended.get(id).is_some_and(|ended| *ended >= began)
    }

    /// A routine is about to fire for what has happened.
    pub(super) fn count(&mut self, id: &DefinitionId, by_itself: bool, now: Instant) -> Counted {
        if by_itself {
            let counted = count(&mut self.by_itself, id, now, AT_MOST, "it has set itself off 3 times within a minute");
            if counted.cut.is_some() {
                return counted;
            }
        }
        count(&mut self.by_anything, id, now, AT_MOST_BY_ANYTHING, "it has fired 10 times within a minute")
    }
}

fn count(
    counts: &mut HashMap<DefinitionId, Times>,
    id: &DefinitionId,
    now: Instant,
    most: usize,
    why: &'static str,
) -> Counted {
    counts.retain(|_, times| {
        times.fired.retain(|at| now.duration_since(*at) < WINDOW);
        !times.fired.is_empty()
    });
    let times = counts.entry(id.clone()).or_default();
    let may_fire = times.fired.len() < most;
    if may_fire {
        times.fired.push_back(now);
    }
    Counted { cut: (!may_fire).then_some(why), is_news: !may_fire && !std::mem::replace(&mut times.told, !may_fire) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_within_a_minute_is_cut_and_told_once() {
        let (mut counts, begin) = (SelfTriggered::default(), Instant::now());
        let (loops, other) = (DefinitionId::new("loops"), DefinitionId::new("other"));
        let mut count = |id: &DefinitionId, second: u64| {
            let counted = counts.count(id, true, begin + Duration::from_secs(second));
            (counted.cut.is_none(), counted.is_news)
        };
        for second in [0, 10, 20] {
            assert_eq!(count(&loops, second), (true, false), "{second}");
        }
        assert_eq!(count(&loops, 30), (false, true));
        assert_eq!(count(&loops, 31), (false, false));
        assert_eq!(count(&other, 31), (true, false));
        // The first is a minute ago.
        assert_eq!(count(&loops, 60), (true, false));
        // It goes on, and is told once.
        assert_eq!(count(&loops, 61), (false, false));
        assert_eq!(count(&loops, 200), (true, false));
    }

    #[test]
    fn whoever_sets_it_off_it_fires_ten_times_a_minute() {
        let (mut counts, begin, id) = (SelfTriggered::default(), Instant::now(), DefinitionId::new("circle"));
        let mut cut = |second: u64| counts.count(&id, false, begin + Duration::from_secs(second)).cut;
        assert!((0..10).all(|second| cut(second).is_none()));
        assert_eq!(cut(20), Some("it has fired 10 times within a minute"));
        assert_eq!(cut(60), None);
    }
}
