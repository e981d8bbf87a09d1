//! Draws the consequences of an attempt's end: its outcome, another attempt, messages to the person. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::active::Cause;
use super::definitions::occurrences;
use super::failures::{Alert, OccurrenceEnd, after, before_retry};
use super::job::class_word;
use super::missed::moment;
use super::retry;
use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass, SkipReason};
use crate::definition::{Definition, Kind};
use crate::journal::{AfterAttempt, ConsecutiveFailures, Finish, NewMessage, RunId, RunState, SERVICE_ENDED, WHY};

/// The data for a conclusion, besides the report.
pub(super) struct AttemptData<'a> {
    pub(super) run: &'a RunId,
    pub(super) definition: &'a Definition,
    /// Number of earlier failed attempts of this occurrence.
    pub(super) failures: u32,
    /// Whether any attempt had a side effect, this one included.
    pub(super) had_side_effect: bool,
    /// The cause of the end, if the attempt was ended.
    pub(super) cause: Option<Cause>,
    /// Whether the service is stopping.
    pub(super) stopping: bool,
    pub(super) consecutive_failures: ConsecutiveFailures,
    /// Number of failures after which the person is notified, unless the definition says otherwise.
    pub(super) alert_after: u32,
    pub(super) now: DateTime<Utc>,
    /// From 0 to 1, for the jitter.
    pub(super) chance: f64,
}

/// Buttons below the message about a missing login.
pub(super) const LOGIN_BUTTONS: &[(&str, &str)] = &[("Log in", "login")];

/// Pause before a job that found no login retries. The dispatcher lets no other job try meanwhile.
pub(super) const LOGIN_PROBE: Duration = Duration::from_secs(300);

/// Buttons below a reminder: label and action.
const REMINDER_BUTTONS: &[(&str, &str)] =
    &[("Done", "done"), ("10 min", "snooze:10m"), ("1 h", "snooze:1h"), ("Tomorrow", "snooze:1d")];

const BY_A_PERSON: &str = "a person ended it";

/// Returns why an occurrence was cancelled. `failure`: why its last attempt failed.
pub(super) fn ended_by_a_person(failure: Option<&str>) -> String {
    match failure {
        Some(failure) => format!("{}; not tried again: {BY_A_PERSON}", failure.trim_end_matches(['.', ' ', '\n'])),
        None => BY_A_PERSON.to_owned(),
    }
}

/// Returns the record of an attempt's end.
pub(super) fn conclude(attempted: &AttemptData<'_>, report: AttemptReport) -> Finish {
    let mut finish = by_end(attempted, report.end);
    finish.answer = report.answer;
    finish.session = report.session.map(|session| session.0);
    finish.transcript = report.transcript;
    finish.cost_usd = report.cost_usd;
    finish.model = report.model.clone();
    finish.tokens = report.tokens;
    finish.turns = report.turns;
    if let Some(client) = report.client {
        (finish.client, finish.client_version) = (Some(client.name.to_owned()), client.version);
    }
    let buttons = buttons_of(attempted.definition);
    let said = |text| NewMessage::said_by(attempted.run, attempted.definition, text).with_buttons(buttons);
    let messages = report.messages.into_iter().map(said);
    let notices = report.notices.into_iter().map(|text| message(attempted, text).with_buttons(buttons));
    finish.messages.splice(0..0, messages.chain(notices));
    finish
}

/// Returns the buttons below the messages of a definition's own run. A reminder can be snoozed; the checks of a chain schedule one another.
pub(crate) fn buttons_of(definition: &Definition) -> &'static [(&'static str, &'static str)] {
    match definition.kind() {
        Kind::Reminder if definition.chain().is_none() => REMINDER_BUTTONS,
        _ => &[],
    }
}

/// Returns the buttons below the message about a failure.
pub(super) fn failure_buttons(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Reminder => &[WHY, ("Try again", "retry")],
        Kind::Routine | Kind::Webhook | Kind::Session => &[WHY],
    }
}

fn by_end(attempted: &AttemptData<'_>, end: AttemptEnd) -> Finish {
    match end {
        AttemptEnd::Completed => {
            let mut finish = Finish::closed(RunState::Completed, None);
            count(attempted, OccurrenceEnd::Well, &mut finish);
            finish
        }
        AttemptEnd::Cancelled => match attempted.cause {
            Some(Cause::Stopping) => cut_off(),
            Some(Cause::Overlap) => {
                Finish::closed(RunState::Cancelled, Some("a newer occurrence fell due (on_overlap: cancel)".to_owned()))
            }
            Some(Cause::Person) | None => Finish::closed(RunState::Cancelled, Some(BY_A_PERSON.to_owned())),
        },
        AttemptEnd::Refused(why) => Finish::closed(RunState::Cancelled, Some(why)),
        AttemptEnd::TimedOut(why) => {
            let mut finish = Finish::closed(RunState::TimedOut, Some(why.clone()));
            count(attempted, OccurrenceEnd::Badly { why: &why, at_once: false }, &mut finish);
            finish
        }
        AttemptEnd::Failed(failure) => failed(attempted, &failure),
        AttemptEnd::Skipped(skip) => {
            let mut finish = Finish::closed(RunState::Skipped, Some(skip.to_string()));
            // A gate that checked and found nothing to do has worked.
            if matches!(skip, SkipReason::Gate(_)) {
                count(attempted, OccurrenceEnd::Well, &mut finish);
            }
            finish
        }
    }
}

fn failed(attempted: &AttemptData<'_>, failure: &Failure) -> Finish {
    let AttemptData { definition, had_side_effect, .. } = *attempted;
    // Ctrl-C in a terminal reaches the client too, so it may leave before it is told to.
    if attempted.stopping && failure.class.may_pass() {
        return cut_off();
    }
    // A made job that may send no messages chooses what the client's and the API's errors quote, such as a model's name.
    let is_silent = definition.maker().is_some()
        && definition.background().is_some_and(|background| !background.restrictions.allow_ping);
    let quotes = is_silent && failure.class.quotes_job();
    let see = format!("`ollim-bot why {}` says why", definition.id);
    let told = if quotes { &*see } else { &*failure.message };
    let recorded = |after| Finish {
        after,
        class: Some(class_word(failure.class)),
        ..Finish::closed(RunState::Failed, Some(failure.message.clone()))
    };
    let failures = attempted.failures + 1;
    let not_logged_in = failure.class == FailureClass::NotLoggedIn;
    let pause = if not_logged_in {
        Some(LOGIN_PROBE).filter(|_| !had_side_effect || definition.retry.is_some())
    } else {
        // A command has a side effect, so it is retried only if its file says so.
        let may_pass = failure.class.may_pass() || failure.class == FailureClass::CommandFailed;
        let again = may_pass && retry::allowed(definition, failures, had_side_effect);
        again.then(|| retry::pause(failures, attempted.chance))
    };
    match (pause, attempted.cause) {
        // A person who cancels it wants no retry, even if it failed at the same moment.
        (Some(_), Some(Cause::Person)) => {
            Finish::closed(RunState::Cancelled, Some(ended_by_a_person(Some(&failure.message))))
        }
        (Some(pause), _) => {
            let at = attempted.now + pause;
            let mut finish = recorded(AfterAttempt::RetryAt(at));
            // The service notifies the person of a missing login itself. An occurrence that a newer one ends gets no other attempt.
            if !not_logged_in && attempted.cause.is_none() {
                tell_of_retry(attempted, told, at, &mut finish);
            }
            finish
        }
        (None, _) => {
            let mut finish = recorded(AfterAttempt::Closed);
            let at_once = not_logged_in || failure.class == FailureClass::NeedsClaude;
            count(attempted, OccurrenceEnd::Badly { why: told, at_once }, &mut finish);
            finish
        }
    }
}

/// Returns the record for an idle occurrence (interrupted or failed before) that gets no other attempt.
pub(super) fn given_up(attempted: &AttemptData<'_>, why: String) -> Finish {
    let mut finish = Finish::closed(RunState::Failed, Some(why.clone()));
    count(attempted, OccurrenceEnd::Badly { why: &why, at_once: false }, &mut finish);
    finish
}

fn cut_off() -> Finish {
    let why = SERVICE_ENDED.to_owned();
    Finish { after: AfterAttempt::Open, ..Finish::closed(RunState::Interrupted, Some(why)) }
}

/// Notifies the person of a failed attempt that is followed by another one.
fn tell_of_retry(attempted: &AttemptData<'_>, why: &str, at: DateTime<Utc>, finish: &mut Finish) {
    let definition = attempted.definition;
    let again = format!("at {}", moment(at, definition.zone, attempted.now));
    let (why, hint) = with_hint(why);
    let text = before_retry(&attempted.consecutive_failures, without_stop(why), &alert(attempted), &again);
    finish.messages.extend(text.map(|text| message(attempted, text + hint).with_buttons(&[WHY])));
}

/// Counts consecutive failures.
fn count(attempted: &AttemptData<'_>, ended: OccurrenceEnd<'_>, finish: &mut Finish) {
    let (ended, hint) = match ended {
        OccurrenceEnd::Badly { why, at_once } => {
            let (why, hint) = with_hint(why);
            (OccurrenceEnd::Badly { why: without_stop(why), at_once }, hint)
        }
        OccurrenceEnd::Well => (OccurrenceEnd::Well, ""),
    };
    let (failures, text) = after(attempted.consecutive_failures.clone(), ended, alert(attempted));
    finish.consecutive_failures = (failures != attempted.consecutive_failures).then_some(failures);
    let buttons = match ended {
        OccurrenceEnd::Badly { .. } => failure_buttons(attempted.definition.kind()),
        OccurrenceEnd::Well => &[WHY],
    };
    finish.messages.extend(text.map(|text| message(attempted, text + hint).with_buttons(buttons)));
}

/// Splits a reason from the line of a hint below it, which comes last in a message.
fn with_hint(why: &str) -> (&str, &str) {
    why.split_at(why.find("\n  hint: ").unwrap_or(why.len()))
}

/// Returns a reason without its full stop.
fn without_stop(why: &str) -> &str {
    why.trim_end_matches(['.', ' ', '\n'])
}

fn alert<'a>(attempted: &AttemptData<'a>) -> Alert<'a> {
    let AttemptData { definition, now, .. } = *attempted;
    let next = occurrences(definition, now).next().map(|at| format!("at {}", moment(at, definition.zone, now)));
    Alert {
        kind: definition.kind(),
        run: attempted.run,
        after: definition.alert_after.unwrap_or(attempted.alert_after),
        failed_attempts: attempted.failures,
        next: next.or_else(|| waits_for(definition)).filter(|_| definition.enabled),
        now,
    }
}

/// Describes the event that a definition without times waits for. Of a made one without the words of the job.
fn waits_for(definition: &Definition) -> Option<String> {
    match definition.maker() {
        Some(_) if definition.watches().is_some() => {
            Some("when something in the folder that it watches has changed".to_owned())
        }
        Some(_) if definition.waits_for().is_some() => Some("when the job that it follows has ended".to_owned()),
        _ => definition.waits_for(),
    }
}

/// Returns a message of the service about a run.
fn message(attempted: &AttemptData<'_>, text: String) -> NewMessage {
    NewMessage::of_run(attempted.run, attempted.definition, text)
}

#[cfg(test)]
mod tests {
    use super::super::job::failure;
    use super::super::tests::support::{reminder, routine};
    use super::*;
    use crate::definition::{Background, DefinitionId, Mode};
    use crate::journal::Subject;
    use crate::policy::{BgForkConfig, UpdateMode};

    struct Case {
        definition: Definition,
        failures: u32,
        had_side_effect: bool,
        cause: Option<Cause>,
        stopping: bool,
    }

    fn case(definition: Definition) -> Case {
        Case { definition, failures: 0, had_side_effect: false, cause: None, stopping: false }
    }

    fn concluded(case: &Case, report: AttemptReport) -> Finish {
        let attempted = AttemptData {
            run: &RunId::new("00000001"),
            definition: &case.definition,
            failures: case.failures,
            had_side_effect: case.had_side_effect,
            cause: case.cause,
            stopping: case.stopping,
            consecutive_failures: ConsecutiveFailures::none(case.definition.id.clone()),
            alert_after: 1,
            now: DateTime::UNIX_EPOCH,
            chance: 0.5,
        };
        conclude(&attempted, report)
    }

    #[test]
    fn a_hint_comes_last_in_the_message() {
        let why = "the limit of $0.50 was reached.\n  hint: `max_cost_usd` sets another.";
        let finish = concluded(&case(routine("mail")), failure(FailureClass::Internal, why.to_owned()));
        let text = &finish.messages[0].text;
        assert!(text.contains("the limit of $0.50 was reached. It is due again at"), "{text}");
        assert!(text.ends_with("\n  hint: `max_cost_usd` sets another."), "{text}");
    }

    fn check(case: &Case, end: AttemptEnd, expected: (RunState, &str, usize)) {
        let report = AttemptReport { end: end.clone(), ..failure(FailureClass::Internal, String::new()) };
        let finish = concluded(case, report);
        let next = match finish.after {
            AfterAttempt::Closed => "closed".to_owned(),
            AfterAttempt::Open => "open".to_owned(),
            AfterAttempt::RetryAt(at) => format!("in {} s", (at - DateTime::UNIX_EPOCH).num_seconds()),
        };
        let found = (finish.state, next.as_str(), finish.messages.len());
        assert_eq!(found, expected, "{} {end:?}", case.definition.title());
    }

    fn fails(class: FailureClass) -> AttemptEnd {
        AttemptEnd::Failed(Failure { class, message: "why".to_owned() })
    }

    /// The model's name, which the job chose, is in the API's error.
    #[test]
    fn no_word_of_a_silent_made_job_is_in_the_message_about_its_failure() {
        for (is_made, allow_ping, expected) in [(true, false, false), (true, true, true), (false, false, true)] {
            let restrictions = BgForkConfig::new(UpdateMode::OnPing, allow_ping, Some(Vec::new()), None).unwrap();
            let mode = Mode::Background(Background { restrictions, ..Background::default() });
            let created_by = is_made.then(|| DefinitionId::new("maker"));
            let definition = Definition { mode, created_by, ..reminder("tea") };
            let case = Case { had_side_effect: true, ..case(definition) };
            let finish = concluded(&case, failure(FailureClass::ErrorResult, "WORDS".to_owned()));
            assert_eq!(finish.error.as_deref(), Some("WORDS"), "its record has them");
            assert_eq!(finish.messages[0].text.contains("WORDS"), expected, "{:?}", finish.messages);
        }
    }

    /// A job that a job made can be skipped as often as that job likes.
    #[test]
    fn a_notice_counts_for_the_maker_and_the_words_of_a_run_do_not() {
        let definition = Definition { created_by: Some(DefinitionId::new("maker")), ..reminder("tea") };
        let bare = AttemptReport::bare(AttemptEnd::Skipped(SkipReason::Budget("spent".to_owned())));
        let report = AttemptReport { messages: vec!["hi".into()], notices: vec!["skipped".into()], ..bare };
        let finish = concluded(&case(definition.clone()), report);
        let told: Vec<_> = finish.messages.into_iter().map(|message| (message.text, message.subject)).collect();
        let (words, counted) = (Subject::words_of(&definition.id), Subject::job(&definition));
        assert_eq!(told, [("hi".to_owned(), words), ("skipped".to_owned(), counted)]);
    }

    #[test]
    fn an_end_becomes_an_outcome_or_another_attempt() {
        use FailureClass::{ErrorResult, ExitedEarly, NeedsClaude, NotLoggedIn, Overloaded};
        use RunState::{Cancelled, Completed, Failed, Interrupted, TimedOut};
        let tea = || case(reminder("tea"));
        let mail = || case(routine("mail"));
        check(&tea(), AttemptEnd::Completed, (Completed, "closed", 0));
        check(&tea(), AttemptEnd::TimedOut("30m".to_owned()), (TimedOut, "closed", 1));
        check(&mail(), AttemptEnd::TimedOut("30m".to_owned()), (TimedOut, "closed", 1));
        check(&tea(), fails(Overloaded), (Failed, "in 30 s", 1));
        check(&Case { failures: 1, ..tea() }, fails(Overloaded), (Failed, "in 120 s", 0));
        check(&Case { failures: 2, ..tea() }, fails(Overloaded), (Failed, "closed", 1));
        check(&Case { had_side_effect: true, ..tea() }, fails(Overloaded), (Failed, "closed", 1));
        check(&tea(), fails(ErrorResult), (Failed, "closed", 1));
        check(&mail(), fails(Overloaded), (Failed, "closed", 1));
        let third = case(Definition { alert_after: Some(3), retry: Some(1), ..routine("mail") });
        check(&third, fails(Overloaded), (Failed, "in 30 s", 0));
        let third = Case { failures: 1, ..third };
        check(&third, fails(Overloaded), (Failed, "closed", 0));
        check(&mail(), fails(NeedsClaude), (Failed, "closed", 1));
        check(&mail(), fails(NotLoggedIn), (Failed, "in 300 s", 0));
        check(&Case { had_side_effect: true, ..mail() }, fails(NotLoggedIn), (Failed, "closed", 1));
        check(&tea(), AttemptEnd::Cancelled, (Cancelled, "closed", 0));
        for (cause, expected) in [
            (Cause::Person, (Cancelled, "closed", 0)),
            (Cause::Overlap, (Cancelled, "closed", 0)),
            (Cause::Stopping, (Interrupted, "open", 0)),
        ] {
            check(&Case { cause: Some(cause), ..tea() }, AttemptEnd::Cancelled, expected);
            // Completed work stays completed, whoever wanted to end it.
            check(&Case { cause: Some(cause), ..tea() }, AttemptEnd::Completed, (Completed, "closed", 0));
        }
        check(&Case { cause: Some(Cause::Person), ..tea() }, fails(Overloaded), (Cancelled, "closed", 0));
        check(&Case { cause: Some(Cause::Person), ..tea() }, fails(ErrorResult), (Failed, "closed", 1));
        check(&Case { stopping: true, ..tea() }, fails(ExitedEarly), (Interrupted, "open", 0));
        check(&Case { stopping: true, ..tea() }, fails(ErrorResult), (Failed, "closed", 1));
    }

    #[test]
    fn a_gate_that_skips_ends_a_streak_of_failures_and_a_spent_budget_does_not() {
        let definition = routine("mail");
        for (skip, expected) in [
            (SkipReason::Gate("no mail".to_owned()), Some((0, 1))),
            (SkipReason::Budget("nothing is left".to_owned()), None),
        ] {
            let streak =
                ConsecutiveFailures { failures: 2, notified: true, ..ConsecutiveFailures::none(definition.id.clone()) };
            let attempted = AttemptData {
                run: &RunId::new("00000001"),
                definition: &definition,
                failures: 0,
                had_side_effect: false,
                cause: None,
                stopping: false,
                consecutive_failures: streak,
                alert_after: 1,
                now: DateTime::UNIX_EPOCH,
                chance: 0.5,
            };
            let finish = conclude(&attempted, AttemptReport::bare(AttemptEnd::Skipped(skip.clone())));
            let messages = finish.messages.len();
            assert_eq!(finish.consecutive_failures.map(|now| (now.failures, messages)), expected, "{skip}");
        }
    }
}
