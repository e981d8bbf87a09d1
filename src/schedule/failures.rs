//! Consecutive failures: when the person is notified of them, and when a routine is paused. Pure.

use chrono::{DateTime, Utc};

use crate::definition::Kind;
use crate::journal::ConsecutiveFailures;

/// How many consecutive failures of a routine the person is notified of.
const NOTIFIES_AT: u32 = 3;

/// How many consecutive failures pause a routine.
const PAUSES_AT: u32 = 10;

/// How an occurrence ended. One that was cancelled or skipped changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended<'a> {
    /// It did its work.
    Well,
    /// It did not, in the end.
    Badly {
        /// Why, as a sentence without its full stop.
        why: &'a str,
        /// Waiting for the third time would not help: the person has to do something.
        at_once: bool,
    },
}

/// Returns the consecutive failures afterwards, and the message to the person.
pub(super) fn after(
    mut consecutive: ConsecutiveFailures,
    kind: Kind,
    ended: Ended<'_>,
    now: DateTime<Utc>,
) -> (ConsecutiveFailures, Option<String>) {
    let id = consecutive.id.clone();
    match (kind, ended) {
        (_, Ended::Well) => {
            let text = (consecutive.notified && kind == Kind::Routine)
                .then(|| format!("routine {id} works again, after {} failures in a row.", consecutive.failures));
            (ConsecutiveFailures::none(id), text)
        }
        // A reminder fires once: each that fails is told, and leaves none.
        (Kind::Reminder, Ended::Badly { why, .. }) => {
            let text = format!(
                "reminder {id} failed: {why}. Its file is kept in reminders/failed/; \
                 `ollim-bot reminder retry {id}` brings it back."
            );
            (ConsecutiveFailures::none(id), Some(text))
        }
        (Kind::Session, Ended::Badly { why, .. }) => {
            (ConsecutiveFailures::none(id.clone()), Some(format!("The spawned agent {id} failed: {why}.")))
        }
        (Kind::Routine, Ended::Badly { why, at_once }) => {
            consecutive.failures = consecutive.failures.saturating_add(1);
            let failures = consecutive.failures;
            if failures >= PAUSES_AT && consecutive.paused.is_none() {
                consecutive.notified = true;
                consecutive.paused = Some(now);
                let text = format!(
                    "routine {id} failed {failures} times in a row and is paused until `ollim-bot resume {id}` \
                     or an edit of its file. The last failure: {why}."
                );
                return (consecutive, Some(text));
            }
            if consecutive.notified || (failures < NOTIFIES_AT && !at_once) {
                return (consecutive, None);
            }
            consecutive.notified = true;
            let times = if failures == 1 { String::new() } else { format!(" {failures} times in a row") };
            let text = format!("routine {id} failed{times}: {why}.");
            (consecutive, Some(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DefinitionId;

    /// One letter per occurrence (`+` well, `-` badly, `!` badly and at once) to what was told after which.
    fn check(kind: Kind, endings: &str, expected: &[(usize, &str)]) {
        let mut consecutive = ConsecutiveFailures::none(DefinitionId::new("mail"));
        let mut told = Vec::new();
        for (n, ending) in (1..).zip(endings.chars()) {
            let ended = match ending {
                '+' => Ended::Well,
                letter => Ended::Badly { why: "no network", at_once: letter == '!' },
            };
            let (next, text) = after(consecutive, kind, ended, DateTime::UNIX_EPOCH);
            consecutive = next;
            told.extend(text.map(|text| (n, text)));
        }
        let told: Vec<_> = told.iter().map(|(n, text)| (*n, text.as_str())).collect();
        assert_eq!(told, expected, "{kind} {endings}");
    }

    #[test]
    fn a_routine_is_told_of_once_per_streak_and_on_recovery() {
        check(Kind::Routine, "--+--+", &[]);
        check(
            Kind::Routine,
            "----++",
            &[
                (3, "routine mail failed 3 times in a row: no network."),
                (5, "routine mail works again, after 4 failures in a row."),
            ],
        );
        check(Kind::Routine, "!!!", &[(1, "routine mail failed: no network.")]);
        check(
            Kind::Routine,
            "-----------",
            &[
                (3, "routine mail failed 3 times in a row: no network."),
                (
                    10,
                    "routine mail failed 10 times in a row and is paused until `ollim-bot resume mail` or an edit of its \
                 file. The last failure: no network.",
                ),
            ],
        );
    }

    #[test]
    fn a_reminder_is_told_of_each_time() {
        let failed = "reminder mail failed: no network. Its file is kept in reminders/failed/; \
                      `ollim-bot reminder retry mail` brings it back.";
        check(Kind::Reminder, "-+-", &[(1, failed), (3, failed)]);
    }
}
