//! Routines that set themselves off: after a few times in a minute they are cut. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;

/// How often a routine may set itself off within [`WINDOW`].
const AT_MOST: usize = 3;

const WINDOW: Duration = Duration::from_secs(60);

/// Why one was cut.
pub(super) const WHY: &str = "it has set itself off 3 times within a minute";

/// When routines have set themselves off.
#[derive(Debug, Default)]
pub(super) struct SelfTriggered {
    fired: HashMap<DefinitionId, Times>,
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
    pub(super) may_fire: bool,
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

    /// A routine has set itself off.
    pub(super) fn count(&mut self, id: &DefinitionId, now: Instant) -> Counted {
        self.fired.retain(|_, times| {
            times.fired.retain(|at| now.duration_since(*at) < WINDOW);
            !times.fired.is_empty()
        });
        let times = self.fired.entry(id.clone()).or_default();
        let may_fire = times.fired.len() < AT_MOST;
        if may_fire {
            times.fired.push_back(now);
        }
        Counted { may_fire, is_news: !may_fire && !std::mem::replace(&mut times.told, !may_fire) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_within_a_minute_is_cut_and_told_once() {
        let (mut counts, begin) = (SelfTriggered::default(), Instant::now());
        let (loops, other) = (DefinitionId::new("loops"), DefinitionId::new("other"));
        let mut count = |id: &DefinitionId, second: u64| {
            let counted = counts.count(id, begin + Duration::from_secs(second));
            (counted.may_fire, counted.is_news)
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
}
