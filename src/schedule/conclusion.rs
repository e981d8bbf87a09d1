//! What follows from how an attempt ended: its outcome, another attempt, what the person is told. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::active::Cause;
use super::failures::{Ended, after};
use super::job::class_word;
use super::retry;
use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass};
use crate::definition::Definition;
use crate::journal::{After, Finish, NewMessage, RunId, RunState, Streak};

/// All that decides besides the report.
pub(super) struct Attempted<'a> {
    pub(super) run: &'a RunId,
    pub(super) definition: &'a Definition,
    /// Attempts of this occurrence that failed before.
    pub(super) failures: u32,
    /// Some attempt had a side effect, this one included.
    pub(super) had_side_effect: bool,
    /// Why it was ended, if it was.
    pub(super) cause: Option<Cause>,
    /// The service is ending.
    pub(super) stopping: bool,
    pub(super) streak: Streak,
    pub(super) now: DateTime<Utc>,
    /// 0 to 1, for the jitter.
    pub(super) chance: f64,
}

/// What is recorded, and what the dispatcher does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conclusion {
    pub(super) finish: Finish,
    /// In how long another attempt is made.
    pub(super) retry_in: Option<Duration>,
    /// The client is not logged in: others need not try.
    pub(super) not_logged_in: bool,
}

/// How long until a job that found no login tries again; the dispatcher lets no other one try meanwhile.
pub(super) const LOGIN_PROBE: Duration = Duration::from_secs(300);

const BY_A_PERSON: &str = "a person ended it";

pub(super) fn conclude(attempted: &Attempted<'_>, report: AttemptReport) -> Conclusion {
    let mut conclusion = by_end(attempted, report.end);
    let finish = &mut conclusion.finish;
    finish.answer = report.answer;
    finish.session = report.session.map(|session| session.0);
    finish.transcript = report.transcript;
    finish.cost_usd = report.cost_usd;
    finish.turns = report.turns;
    let told = report.messages.into_iter().map(|text| message(attempted, text));
    finish.messages.splice(0..0, told);
    conclusion
}

fn by_end(attempted: &Attempted<'_>, end: AttemptEnd) -> Conclusion {
    match end {
        AttemptEnd::Completed => {
            let mut conclusion = closed(RunState::Completed, None);
            tell(attempted, Ended::Well, &mut conclusion.finish);
            conclusion
        }
        AttemptEnd::Cancelled => match attempted.cause {
            Some(Cause::Stopping) => cut_off(),
            Some(Cause::Overlap) => {
                closed(RunState::Cancelled, Some("a newer occurrence fell due (on_overlap: cancel)".to_owned()))
            }
            Some(Cause::Person) | None => closed(RunState::Cancelled, Some(BY_A_PERSON.to_owned())),
        },
        AttemptEnd::TimedOut(why) => {
            let mut conclusion = closed(RunState::TimedOut, Some(why.clone()));
            tell(attempted, Ended::Badly { why: &why, at_once: false }, &mut conclusion.finish);
            conclusion
        }
        AttemptEnd::Failed(failure) => failed(attempted, &failure),
    }
}

fn failed(attempted: &Attempted<'_>, failure: &Failure) -> Conclusion {
    // Ctrl-C in a terminal reaches the client too, and it may be gone before it is told to go.
    if attempted.stopping && failure.class.may_pass() {
        return cut_off();
    }
    let recorded = |after| Finish {
        after,
        class: Some(class_word(failure.class)),
        ..Finish::closed(RunState::Failed, Some(failure.message.clone()))
    };
    let again = |pause: Duration, not_logged_in| {
        // Whoever has ended it wants no other attempt, though it failed at the same moment.
        if attempted.cause == Some(Cause::Person) {
            return closed(RunState::Cancelled, Some(BY_A_PERSON.to_owned()));
        }
        let at = attempted.now + pause;
        Conclusion { finish: recorded(After::RetryAt(at)), retry_in: Some(pause), not_logged_in }
    };
    if failure.class == FailureClass::NotLoggedIn
        && (!attempted.had_side_effect || attempted.definition.retry.is_some())
    {
        return again(LOGIN_PROBE, true);
    }
    let failures = attempted.failures + 1;
    if failure.class.may_pass() && retry::allowed(attempted.definition, failures, attempted.had_side_effect) {
        return again(retry::pause(failures, attempted.chance), false);
    }
    let mut finish = recorded(After::Closed);
    let at_once = matches!(failure.class, FailureClass::NeedsClaude | FailureClass::NotLoggedIn);
    tell(attempted, Ended::Badly { why: &failure.message, at_once }, &mut finish);
    Conclusion { finish, retry_in: None, not_logged_in: failure.class == FailureClass::NotLoggedIn }
}

/// What has no attempt going (it was cut off, or failed before) gets no other one.
pub(super) fn given_up(attempted: &Attempted<'_>, why: String) -> Finish {
    let mut finish = Finish::closed(RunState::Failed, Some(why.clone()));
    tell(attempted, Ended::Badly { why: &why, at_once: false }, &mut finish);
    finish
}

fn closed(state: RunState, error: Option<String>) -> Conclusion {
    Conclusion { finish: Finish::closed(state, error), retry_in: None, not_logged_in: false }
}

fn cut_off() -> Conclusion {
    let why = "the service ended while it was going".to_owned();
    let finish = Finish { after: After::Open, ..Finish::closed(RunState::Interrupted, Some(why)) };
    Conclusion { finish, retry_in: None, not_logged_in: false }
}

fn tell(attempted: &Attempted<'_>, ended: Ended<'_>, finish: &mut Finish) {
    let definition = attempted.definition;
    let trimmed = match ended {
        Ended::Badly { why, at_once } => Ended::Badly { why: why.trim_end_matches(['.', ' ', '\n']), at_once },
        Ended::Well => Ended::Well,
    };
    let (streak, text) = after(attempted.streak.clone(), definition.kind(), trimmed, attempted.now);
    finish.streak = (streak != attempted.streak).then_some(streak);
    finish.messages.extend(text.map(|text| message(attempted, text)));
}

fn message(attempted: &Attempted<'_>, text: String) -> NewMessage {
    NewMessage { run: Some(attempted.run.clone()), id: Some(attempted.definition.id.clone()), text }
}

#[cfg(test)]
mod tests {
    use super::super::job::failure;
    use super::super::tests::support::{reminder, routine};
    use super::*;

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

    fn check(case: &Case, end: AttemptEnd, expected: (RunState, &str, usize)) {
        let now = DateTime::UNIX_EPOCH;
        let attempted = Attempted {
            run: &RunId::new("00000001"),
            definition: &case.definition,
            failures: case.failures,
            had_side_effect: case.had_side_effect,
            cause: case.cause,
            stopping: case.stopping,
            streak: Streak::none(case.definition.id.clone()),
            now,
            chance: 0.5,
        };
        let report = AttemptReport { end: end.clone(), ..failure(FailureClass::Internal, String::new()) };
        let conclusion = conclude(&attempted, report);
        let next = match conclusion.finish.after {
            After::Closed => "closed".to_owned(),
            After::Open => "open".to_owned(),
            After::RetryAt(at) => format!("in {} s", (at - now).num_seconds()),
        };
        let found = (conclusion.finish.state, next.as_str(), conclusion.finish.messages.len());
        assert_eq!(found, expected, "{} {end:?}", case.definition.title());
        assert_eq!(conclusion.retry_in.is_some(), matches!(conclusion.finish.after, After::RetryAt(_)));
    }

    fn fails(class: FailureClass) -> AttemptEnd {
        AttemptEnd::Failed(Failure { class, message: "why".to_owned() })
    }

    #[test]
    fn an_end_becomes_an_outcome_or_another_attempt() {
        use FailureClass::{ErrorResult, ExitedEarly, NeedsClaude, NotLoggedIn, Overloaded};
        use RunState::{Cancelled, Completed, Failed, Interrupted, TimedOut};
        let tea = || case(reminder("tea"));
        let mail = || case(routine("mail"));
        check(&tea(), AttemptEnd::Completed, (Completed, "closed", 0));
        check(&tea(), AttemptEnd::TimedOut("30m".to_owned()), (TimedOut, "closed", 1));
        check(&mail(), AttemptEnd::TimedOut("30m".to_owned()), (TimedOut, "closed", 0));
        check(&tea(), fails(Overloaded), (Failed, "in 30 s", 0));
        check(&Case { failures: 1, ..tea() }, fails(Overloaded), (Failed, "in 120 s", 0));
        check(&Case { failures: 2, ..tea() }, fails(Overloaded), (Failed, "closed", 1));
        check(&Case { had_side_effect: true, ..tea() }, fails(Overloaded), (Failed, "closed", 1));
        check(&tea(), fails(ErrorResult), (Failed, "closed", 1));
        check(&mail(), fails(Overloaded), (Failed, "closed", 0));
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
            // What was done is done, whoever wanted to end it.
            check(&Case { cause: Some(cause), ..tea() }, AttemptEnd::Completed, (Completed, "closed", 0));
        }
        check(&Case { cause: Some(Cause::Person), ..tea() }, fails(Overloaded), (Cancelled, "closed", 0));
        check(&Case { cause: Some(Cause::Person), ..tea() }, fails(ErrorResult), (Failed, "closed", 1));
        check(&Case { stopping: true, ..tea() }, fails(ExitedEarly), (Interrupted, "open", 0));
        check(&Case { stopping: true, ..tea() }, fails(ErrorResult), (Failed, "closed", 1));
    }
}
