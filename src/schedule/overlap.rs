//! Chooses the purposes of a routine's due occurrences while earlier ones are active. Pure.

use chrono::{DateTime, Utc};

use super::missed::Plan;
use crate::definition::{OnMissed, OnOverlap};
use crate::journal::Purpose;

/// An active occurrence ahead of the due ones.
pub(super) struct Predecessor {
    /// Whether it waits for its first attempt.
    pub(super) waits: bool,
    /// Its name in the record of a skipped occurrence.
    pub(super) name: String,
}

/// Returns the purpose of each occurrence of a plan. `ahead` are the active occurrences of the routine.
pub(super) fn purposes(
    plan: Plan,
    on_missed: OnMissed,
    on_overlap: OnOverlap,
    mut ahead: Vec<Predecessor>,
) -> Vec<(DateTime<Utc>, Purpose)> {
    let missed = missed_reason(on_missed);
    let mut purposes = Vec::new();
    if let Some((first, last)) = plan.skip_stretch {
        purposes.push((last, Purpose::SkipSince(first, missed.to_owned())));
    }
    purposes.extend(plan.skip.into_iter().map(|at| (at, Purpose::Skip(missed.to_owned()))));
    for (at, late) in plan.run_late.into_iter().map(|at| (at, true)).chain(plan.run.into_iter().map(|at| (at, false))) {
        // Missed occurrences that all run follow one another. They do not count as overlapping.
        let in_a_row = late && on_missed == OnMissed::All;
        let skipped = if in_a_row { None } else { overlap(on_overlap, &ahead) };
        if skipped.is_none() {
            let name = if in_a_row { "a missed one" } else { "an earlier one" };
            ahead.push(Predecessor { waits: true, name: name.to_owned() });
        }
        purposes.push((at, skipped.map_or(Purpose::Run, Purpose::Skip)));
    }
    purposes
}

/// Returns why a missed occurrence is skipped.
pub(super) fn missed_reason(on_missed: OnMissed) -> &'static str {
    match on_missed {
        OnMissed::Latest => {
            "missed: nothing could run at its time, and of those that were missed only the newest counts (on_missed: latest)"
        }
        OnMissed::All => "missed: nothing could run at its time, and too many newer ones were missed as well",
        OnMissed::Skip => "missed: nothing could run at its time (on_missed: skip)",
    }
}

/// Returns why an occurrence is skipped, if it is.
fn overlap(on_overlap: OnOverlap, ahead: &[Predecessor]) -> Option<String> {
    match on_overlap {
        OnOverlap::Cancel => None,
        OnOverlap::Skip => {
            ahead.first().map(|first| format!("overlap: {} was not over (on_overlap: skip)", first.name))
        }
        OnOverlap::Queue => {
            let waiting = ahead.iter().find(|ahead| ahead.waits)?;
            Some(format!("overlap: {} waits already (on_overlap: queue)", waiting.name))
        }
    }
}
