//! Failures: decides when the person is notified, and when a routine is suppressed. Pure.

use chrono::{DateTime, Utc};

use crate::definition::Kind;
use crate::journal::{ConsecutiveFailures, RunId};

/// Number of consecutive failures that suppress a routine.
const PAUSES_AT: u32 = 10;

/// The end of an occurrence. A cancelled or skipped one changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OccurrenceEnd<'a> {
    /// The work was done.
    Well,
    /// The work was not done, after all attempts.
    Badly {
        /// The reason, as a sentence without a full stop.
        why: &'a str,
        /// Whether to notify the person at once, whatever `alert_after` says, since they have to act.
        at_once: bool,
    },
}

/// The data for the message about a failure, besides the failure.
pub(super) struct Alert<'a> {
    pub(super) kind: Kind,
    /// The last failed attempt.
    pub(super) run: &'a RunId,
    /// Number of a routine's consecutive failures after which the person is notified.
    pub(super) after: u32,
    /// Number of attempts of the same occurrence that failed before this one.
    pub(super) failed_attempts: u32,
    /// The routine's next due time in words (`at 14:00 UTC`); `None`: never.
    pub(super) next: Option<String>,
    pub(super) now: DateTime<Utc>,
}

impl Alert<'_> {
    /// Returns whether the person is notified of an occurrence's first failed attempt, though another one follows.
    fn tells_of_attempts(&self, consecutive: &ConsecutiveFailures) -> bool {
        let is_first = self.after <= 1 || matches!(self.kind, Kind::Reminder | Kind::Session);
        is_first && !consecutive.notified
    }
}

/// Returns the message about a failed attempt that is followed by another one at `again` (`at 14:00 UTC`): of each occurrence, the first.
pub(super) fn before_retry(
    consecutive: &ConsecutiveFailures,
    why: &str,
    alert: &Alert<'_>,
    again: &str,
) -> Option<String> {
    if alert.failed_attempts > 0 || !alert.tells_of_attempts(consecutive) {
        return None;
    }
    let (kind, id) = (alert.kind, &consecutive.id);
    Some(match kind {
        Kind::Session if id.is_turn() => format!("I could not answer: {why}. I try again {again}."),
        Kind::Session => format!("The spawned agent {id} failed: {why}. It is tried again {again}."),
        Kind::Reminder | Kind::Routine | Kind::Webhook => {
            format!("{kind} {id} failed: {why}. It is tried again {again}; `ollim-bot fire {id}` runs it now.")
        }
    })
}

/// Returns the consecutive failures afterwards, and the message to the person.
pub(super) fn after(
    mut consecutive: ConsecutiveFailures,
    ended: OccurrenceEnd<'_>,
    alert: Alert<'_>,
) -> (ConsecutiveFailures, Option<String>) {
    let id = consecutive.id.clone();
    let told_of_attempts = alert.failed_attempts > 0 && !id.is_turn() && alert.tells_of_attempts(&consecutive);
    let Alert { kind, run, after, failed_attempts, next, now } = alert;
    match (kind, ended) {
        (_, OccurrenceEnd::Well) => {
            let text = if consecutive.notified && matches!(kind, Kind::Routine | Kind::Webhook) {
                let failures = consecutive.failures;
                let word = if failures == 1 { "failure" } else { "failures" };
                Some(format!("{kind} {id} works again after {failures} {word}."))
            } else {
                let what = if kind == Kind::Session { "The spawned agent".to_owned() } else { kind.to_string() };
                told_of_attempts.then(|| format!("{what} {id} worked at attempt {}.", failed_attempts + 1))
            };
            (ConsecutiveFailures::none(id), text)
        }
        // A reminder fires once, so each failure is reported and none is counted.
        (Kind::Reminder, OccurrenceEnd::Badly { why, .. }) => {
            let text = format!(
                "reminder {id} failed: {why}. Its file is kept in reminders/failed/; \
                 `ollim-bot reminder retry {id}` brings it back."
            );
            (ConsecutiveFailures::none(id), Some(text))
        }
        (Kind::Session, OccurrenceEnd::Badly { why, .. }) if id.is_turn() => {
            let text = format!("I could not answer: {why}.");
            (ConsecutiveFailures::none(id), Some(text))
        }
        (Kind::Session, OccurrenceEnd::Badly { why, .. }) => {
            let text = format!("The spawned agent {id} failed: {why}. `ollim-bot sessions show {id}` shows its task.");
            (ConsecutiveFailures::none(id), Some(text))
        }
        (Kind::Routine | Kind::Webhook, OccurrenceEnd::Badly { why, at_once }) => {
            consecutive.failures = consecutive.failures.saturating_add(1);
            let failures = consecutive.failures;
            if failures >= PAUSES_AT && consecutive.paused.is_none() {
                consecutive.notified = true;
                consecutive.paused = Some(now);
                let text = format!(
                    "{kind} {id} failed {failures} times in a row and is paused until `ollim-bot resume {id}` \
                     or an edit of its file. The last failure: {why}."
                );
                return (consecutive, Some(text));
            }
            if consecutive.notified || (failures < after && !at_once) {
                return (consecutive, None);
            }
            consecutive.notified = true;
            let times = if failures == 1 { String::new() } else { format!(" {failures} times in a row") };
            let again = next.map_or_else(
                || "It does not fire again.".to_owned(),
                |when| format!("It is due again {when}; `ollim-bot fire {id}` fires it now."),
            );
            let text =
                format!("{kind} {id} failed{times}: {why}. {again} `ollim-bot runs show {run}` shows what happened.");
            (consecutive, Some(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DefinitionId;

    /// Maps one letter per occurrence (`+` well, `-` badly, `!` badly and at once) to the messages after each. The
    /// person is notified after as many consecutive failures as `alert_after` says.
    fn check(kind: Kind, alert_after: u32, endings: &str, expected: &[(usize, &str)]) {
        let mut consecutive = ConsecutiveFailures::none(DefinitionId::new("mail"));
        let mut told = Vec::new();
        for (n, ending) in (1..).zip(endings.chars()) {
            let ended = match ending {
                '+' => OccurrenceEnd::Well,
                letter => OccurrenceEnd::Badly { why: "no network", at_once: letter == '!' },
            };
            let alert = Alert {
                kind,
                run: &RunId::new("1a2b3c4d"),
                after: alert_after,
                failed_attempts: 0,
                next: Some("at 14:00 UTC".to_owned()),
                now: DateTime::UNIX_EPOCH,
            };
            let (next, text) = after(consecutive, ended, alert);
            consecutive = next;
            told.extend(text.map(|text| (n, text)));
        }
        let told: Vec<_> = told.iter().map(|(n, text)| (*n, text.as_str())).collect();
        assert_eq!(told, expected, "{kind} {endings}");
    }

    const AGAIN: &str = "It is due again at 14:00 UTC; `ollim-bot fire mail` fires it now. `ollim-bot runs show 1a2b3c4d` \
                         shows what happened.";

    #[test]
    fn a_routine_is_told_of_once_per_streak_and_on_recovery() {
        let once = format!("routine mail failed: no network. {AGAIN}");
        let recovered = |failures: &str| format!("routine mail works again after {failures}.");
        let (one, two, four) = (recovered("1 failure"), recovered("2 failures"), recovered("4 failures"));
        check(Kind::Routine, 1, "--+-+", &[(1, &once), (3, &two), (4, &once), (5, &one)]);
        check(Kind::Routine, 1, "----++", &[(1, &once), (5, &four)]);
        check(Kind::Routine, 1, "!!!", &[(1, &once)]);
        check(
            Kind::Routine,
            1,
            "-----------",
            &[
                (1, &once),
                (
                    10,
                    "routine mail failed 10 times in a row and is paused until `ollim-bot resume mail` or an edit of its \
                 file. The last failure: no network.",
                ),
            ],
        );
    }

    #[test]
    fn of_several_attempts_the_first_failure_and_the_success_are_told() {
        let told = |kind, after, failed_attempts, notified: bool| {
            let run = RunId::new("1a2b3c4d");
            let alert = || Alert { kind, run: &run, after, failed_attempts, next: None, now: DateTime::UNIX_EPOCH };
            let consecutive = ConsecutiveFailures { notified, ..ConsecutiveFailures::none(DefinitionId::new("mail")) };
            let failed = before_retry(&consecutive, "no network", &alert(), "at 14:00 UTC");
            let worked = super::after(consecutive, OccurrenceEnd::Well, alert()).1;
            (failed.unwrap_or_default(), worked.unwrap_or_default())
        };
        let again = |what| format!("{what} mail failed: no network. It is tried again at 14:00 UTC");
        let by_hand = |what| format!("{}; `ollim-bot fire mail` runs it now.", again(what));
        let worked = |what| format!("{what} mail worked at attempt 2.");
        for (kind, failed, worked) in [
            (Kind::Reminder, by_hand("reminder"), worked("reminder")),
            (Kind::Routine, by_hand("routine"), worked("routine")),
            (Kind::Webhook, by_hand("webhook"), worked("webhook")),
            (Kind::Session, again("The spawned agent") + ".", worked("The spawned agent")),
        ] {
            assert_eq!(told(kind, 1, 0, false), (failed, String::new()), "{kind}");
            assert_eq!(told(kind, 1, 1, false), (String::new(), worked), "{kind}");
        }
        // A series that the person knows, and one that is told later.
        assert_eq!(told(Kind::Routine, 1, 0, true).0, "");
        for failed_attempts in 0..2 {
            assert_eq!(told(Kind::Routine, 3, failed_attempts, false), (String::new(), String::new()));
        }
        assert!(told(Kind::Reminder, 3, 0, false).0.starts_with("reminder mail failed"));
    }

    #[test]
    fn alert_after_says_how_many_failures_are_told() {
        let third = format!("routine mail failed 3 times in a row: no network. {AGAIN}");
        check(Kind::Routine, 3, "--+--+", &[]);
        check(Kind::Routine, 3, "----++", &[(3, &third), (5, "routine mail works again after 4 failures.")]);
        // A failure that needs the person is reported at once.
        check(Kind::Routine, 3, "!!!", &[(1, &format!("routine mail failed: no network. {AGAIN}"))]);
    }

    #[test]
    fn a_reminder_is_told_of_each_time() {
        let failed = "reminder mail failed: no network. Its file is kept in reminders/failed/; \
                      `ollim-bot reminder retry mail` brings it back.";
        check(Kind::Reminder, 3, "-+-", &[(1, failed), (3, failed)]);
    }
}
