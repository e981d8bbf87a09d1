//! Decides whether and when a failed attempt is retried. Pure.
//!
//! Only failures that may pass by themselves are retried. After a side effect, only definitions with an explicit
//! `retry` are: with it the person accepts that a part of the work may happen twice.

use std::time::Duration;

use crate::definition::{Definition, Kind};

/// Maximum number of interruptions of an occurrence before it counts as failed. A job that takes the service down
/// each time must not do so forever.
pub(super) const CUT_OFF_AT_MOST: u32 = 10;

/// Pauses before the second, the third and every further attempt.
const BACKOFF: [Duration; 3] = [Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(600)];

/// Returns how many extra attempts a definition grants.
pub(super) fn granted(definition: &Definition) -> u32 {
    definition.retry.unwrap_or(match definition.kind() {
        // The sender of a delivery was told that it is accepted.
        Kind::Reminder | Kind::Webhook | Kind::Session => 2,
        Kind::Routine => 0,
    })
}

/// Returns whether another attempt is allowed after `failures` failures. `had_side_effect`: one of the attempts had a side effect.
pub(super) fn allowed(definition: &Definition, failures: u32, had_side_effect: bool) -> bool {
    failures <= granted(definition) && (!had_side_effect || definition.retry.is_some())
}

/// Returns the pause after the `failures`-th failure, varied by up to 20 %. `chance`: from 0 to 1.
pub(super) fn pause(failures: u32, chance: f64) -> Duration {
    let place = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX).min(BACKOFF.len() - 1);
    BACKOFF[place].mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::support::{reminder, routine};
    use super::*;

    #[test]
    fn extra_attempts_go_by_kind_unless_the_file_says() {
        let says = |mut definition: Definition, retry| {
            definition.retry = retry;
            definition
        };
        // (definition, failures, had_side_effect) → another attempt?
        for (definition, failures, had_side_effect, expected) in [
            (reminder("tea"), 1, false, true),
            (reminder("tea"), 2, false, true),
            (reminder("tea"), 3, false, false),
            (reminder("tea"), 1, true, false),
            (routine("mail"), 1, false, false),
            (says(routine("mail"), Some(1)), 1, false, true),
            (says(routine("mail"), Some(1)), 1, true, true),
            (says(routine("mail"), Some(1)), 2, false, false),
            (says(reminder("tea"), Some(0)), 1, false, false),
            (says(reminder("tea"), Some(2)), 2, true, true),
        ] {
            assert_eq!(
                allowed(&definition, failures, had_side_effect),
                expected,
                "{} {:?} {failures} {had_side_effect}",
                definition.title(),
                definition.retry
            );
        }
    }

    #[test]
    fn pauses_grow_and_vary() {
        let seconds = |failures, chance| pause(failures, chance).as_secs_f64().round();
        assert_eq!([seconds(1, 0.0), seconds(1, 0.5), seconds(1, 1.0)], [24.0, 30.0, 36.0]);
        assert_eq!([seconds(2, 0.5), seconds(3, 0.5), seconds(4, 0.5), seconds(99, 0.5)], [120.0, 600.0, 600.0, 600.0]);
        assert_eq!(seconds(0, 7.0), 36.0);
    }
}
