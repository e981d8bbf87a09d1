//! What the person is told of failures: once per streak, and when it is over. Pure.

use chrono::{DateTime, Utc};

use crate::definition::Kind;
use crate::journal::Streak;

/// After how many failures in a row the person hears of a routine.
const ROUTINE_TELLS_AT: u32 = 3;

/// After how many failures in a row a routine is paused.
const PAUSES_AT: u32 = 10;

/// How an occurrence ended, as far as streaks go. One that was cancelled or skipped changes nothing.
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

/// The streak afterwards, and what the person is told.
pub(super) fn after(mut streak: Streak, kind: Kind, ended: Ended<'_>, now: DateTime<Utc>) -> (Streak, Option<String>) {
    let id = streak.id.clone();
    match (kind, ended) {
        (_, Ended::Well) => {
            let text = (streak.told && kind == Kind::Routine)
                .then(|| format!("routine {id} works again, after {} failures in a row.", streak.failures));
            (Streak::none(id), text)
        }
        // A reminder fires once: each that fails is told, and leaves no streak.
        (Kind::Reminder, Ended::Badly { why, .. }) => {
            let text = format!(
                "reminder {id} failed: {why}. Its file is kept in reminders/failed/; \
                 `ollim-bot reminder retry {id}` brings it back."
            );
            (Streak::none(id), Some(text))
        }
        (Kind::Session, Ended::Badly { why, .. }) => {
            (Streak::none(id.clone()), Some(format!("The spawned agent {id} failed: {why}.")))
        }
        (Kind::Routine, Ended::Badly { why, at_once }) => {
            streak.failures = streak.failures.saturating_add(1);
            let failures = streak.failures;
            if failures >= PAUSES_AT && streak.paused.is_none() {
                streak.told = true;
                streak.paused = Some(now);
                let text = format!(
                    "routine {id} failed {failures} times in a row and is paused until `ollim-bot resume {id}` \
                     or an edit of its file. The last failure: {why}."
                );
                return (streak, Some(text));
            }
            if streak.told || (failures < ROUTINE_TELLS_AT && !at_once) {
                return (streak, None);
            }
            streak.told = true;
            let times = if failures == 1 { String::new() } else { format!(" {failures} times in a row") };
            let text = format!("routine {id} failed{times}: {why}.");
            (streak, Some(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DefinitionId;

    /// One letter per occurrence (`+` well, `-` badly, `!` badly and at once) to what was told after which.
    fn check(kind: Kind, endings: &str, expected: &[(usize, &str)]) {
        let mut streak = Streak::none(DefinitionId::new("mail"));
        let mut told = Vec::new();
        for (n, ending) in (1..).zip(endings.chars()) {
            let ended = match ending {
                '+' => Ended::Well,
                letter => Ended::Badly { why: "no network", at_once: letter == '!' },
            };
            let (next, text) = after(streak, kind, ended, DateTime::UNIX_EPOCH);
            streak = next;
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
