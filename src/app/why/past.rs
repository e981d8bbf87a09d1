//! Sentences on a recorded occurrence: when and why it began and how it ended, or why it never began.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::facts::Facts;
use super::situations::{SituationKind, Statement};
use super::{Evidence, Sentence, Source, words};
use crate::definition::{Cadence, Definition, Kind, Trigger};
use crate::journal::{Attempt, DelayCause, Occasion, OccurrenceHistory, RunState, SERVICE_ENDED};
use crate::schedule::cron::Times;

/// Delay from which an occurrence is late.
const LATE: TimeDelta = TimeDelta::seconds(60);

/// Returns the sentence on an occurrence: two clauses of the table, or one if the occurrence never began.
pub(super) fn explain(story: &OccurrenceHistory, facts: &Facts) -> (Sentence, Vec<Evidence>) {
    let edited = if facts.was_edited() { "; its file was changed since" } else { "" };
    let ((had, named), elsewhere) = match facts.explain(SituationKind::Host) {
        Some((had, seen)) => ((had.sentence, format!("{}/", had.situation)), seen),
        None => Default::default(),
    };
    if story.outcome == Some(RunState::Skipped)
        && previous(facts).is_none()
        && let Some((said, mut evidence)) = facts.explain(SituationKind::Skipped)
    {
        evidence.extend(elsewhere);
        let sentence = format!("{had}{} {}{edited}.", facts.id, said.sentence);
        return (Sentence { situation: format!("{named}{}", said.situation), sentence }, evidence);
    }
    let (Some((began, mut evidence)), Some((ended, more))) =
        (facts.explain(SituationKind::Began), facts.explain(SituationKind::Ended))
    else {
        return facts.nothing_recorded();
    };
    evidence.extend(more);
    evidence.extend(elsewhere);
    let situation = match ended.situation.as_str() {
        "completed" => format!("{named}{}", began.situation),
        end => format!("{named}{}/{end}", began.situation),
    };
    let sentence = format!("{had}{} {}; it {}{edited}.", facts.id, began.sentence, ended.sentence);
    (Sentence { situation, sentence }, evidence)
}

/// Returns the occurrence and the time its first attempt began.
fn begun(facts: &Facts) -> Option<(&OccurrenceHistory, DateTime<Utc>)> {
    let story = facts.story.as_ref()?;
    Some((story, story.attempts.iter().find_map(|attempt| attempt.started)?))
}

fn last(facts: &Facts) -> Option<&Attempt> {
    facts.story.as_ref()?.attempts.last()
}

fn skip_reason(facts: &Facts) -> Option<&str> {
    last(facts).filter(|last| last.state == RunState::Skipped)?.error.as_deref()
}

/// Explains the `on_missed` policy in the reason of a skip.
fn missed_policy(reason: &str) -> &'static str {
    if reason.contains("on_missed: latest") {
        "and `on_missed: latest` runs only the newest that was missed"
    } else if reason.contains("on_missed: skip") {
        "and `on_missed: skip` makes up for nothing"
    } else {
        "and more were missed than are made up for"
    }
}

pub(super) fn missed(facts: &Facts) -> Option<Statement> {
    let reason = skip_reason(facts)?.strip_prefix("missed: ")?;
    let story = facts.story.as_ref()?;
    let why = match facts.delays.first() {
        Some((by, until, _)) => format!("{by}{}", until_words(facts, *by, *until)),
        None => "nothing could run then (what kept it is not recorded)".to_owned(),
    };
    let at = match story.covers_from {
        Some(from) => format!("from {} to {}", facts.bare(from), facts.bare(story.occurrence.at)),
        None => facts.moment(story.occurrence.at),
    };
    Statement::bare(format!("did not run {at}: {why}, {}", missed_policy(reason)))
}

/// Returns the clause for a skip whose reason begins with `prefix`; `words` come before the rest of the reason.
pub(super) fn skipped(facts: &Facts, prefix: &str, words: &str) -> Option<Statement> {
    let said = words::reason(skip_reason(facts)?.strip_prefix(prefix)?);
    let at = facts.moment(facts.story.as_ref()?.occurrence.at);
    let why = match (words.is_empty(), said.is_empty() || said == "no reason is recorded") {
        (true, _) => said,
        (false, true) => words.to_owned(),
        (false, false) => format!("{words} ({said})"),
    };
    Statement::bare(format!("did not run {at}: {why}"))
}

/// Returns the clause for an occurrence that waited too long for something that the machine lacked.
pub(super) fn unmet_requirement(facts: &Facts) -> Option<Statement> {
    let reason = words::reason(skip_reason(facts)?);
    facts.delays.iter().find(|(by, ..)| *by == DelayCause::Requires)?;
    let at = facts.moment(facts.story.as_ref()?.occurrence.at);
    Statement::bare(format!("did not run {at}: it waited, and {reason}"))
}

pub(super) fn by_channel(facts: &Facts) -> Option<Statement> {
    let channel = facts.channel.as_ref()?;
    let (story, began) = begun(facts).filter(|(story, _)| story.by_hand)?;
    let (fired, later) = (facts.moment(story.claimed), began_later(facts, story.claimed, began));
    Statement::bare(format!("was fired by you on {channel} {fired}{later}"))
}

pub(super) fn by_hand(facts: &Facts) -> Option<Statement> {
    let (story, began) = begun(facts).filter(|(story, _)| story.by_hand)?;
    let (fired, later) = (facts.moment(story.claimed), began_later(facts, story.claimed, began));
    Statement::bare(format!("was fired by hand {fired}{later}"))
}

/// Returns ` and began 57s later: every slot was taken`; empty if it began at once.
fn began_later(facts: &Facts, at: DateTime<Utc>, began: DateTime<Utc>) -> String {
    let causes = causes(facts).join(", then ");
    match began - at {
        late if late < TimeDelta::seconds(1) => String::new(),
        late if causes.is_empty() => format!(" and began {} later", words::span(late)),
        late => format!(" and began {} later: {causes}", words::span(late)),
    }
}

/// Returns the clause for an occurrence that an event triggered, rather than its time.
pub(super) fn after(facts: &Facts) -> Option<Statement> {
    let story = punctual(facts)?;
    let occasion = story.occasion.as_ref()?;
    let (_, began) = begun(facts)?;
    let at = story.occurrence.at;
    let (why, evidence) = match occasion {
        Occasion::After { job, run, outcome } => {
            (format!("`{job}` had ended ({outcome})"), format!("run {run} of `{job}`: {outcome}"))
        }
        Occasion::Delivered { .. } => ("something was delivered".to_owned(), occasion.words()),
        Occasion::Changed { .. } => ("files had changed in the folder that it watches".to_owned(), occasion.words()),
    };
    let later = began_later(facts, at, began);
    Statement::from(format!("fired {}, as {why}{later}", facts.moment(at)), Source::Journal, evidence)
}

fn punctual(facts: &Facts) -> Option<&OccurrenceHistory> {
    begun(facts).filter(|(story, began)| *began - story.occurrence.at < LATE).map(|(story, _)| story)
}

/// Returns the clause for a time that the clocks skipped.
pub(super) fn after_gap(facts: &Facts) -> Option<Statement> {
    let at = punctual(facts)?.occurrence.at;
    let definition = facts.fired.as_ref()?;
    let skipped = is_moved_by_gap(definition, at)?;
    let sentence =
        format!("fired {}, the first moment that there was: the clocks skipped its time that night", facts.moment(at));
    let what = format!("in {} the clocks were set forward by {} just then", definition.zone, words::span(skipped));
    Statement::from(sentence, Source::Clock, what)
}

/// Returns by how much the clocks were set forward at `at`, if the expression does not name the local time that they showed then.
pub(super) fn is_moved_by_gap(definition: &Definition, at: DateTime<Utc>) -> Option<TimeDelta> {
    let Trigger::Routine { recurs, .. } = &definition.trigger else { return None };
    let Cadence::Cron(cron) = &recurs.cadence else { return None };
    let local = |at: DateTime<Utc>| at.with_timezone(&definition.zone).naive_local();
    let jump = (local(at) - local(at - TimeDelta::seconds(1))) - TimeDelta::seconds(1);
    let shown = local(at).and_utc();
    let named = Times::parse(cron)?.next(Tz::UTC, shown - TimeDelta::seconds(1)) == Some(shown);
    (jump > TimeDelta::zero() && !named).then_some(jump)
}

/// Returns the clause for a time that the clocks showed twice.
pub(super) fn repeated(facts: &Facts) -> Option<Statement> {
    use chrono::{LocalResult, TimeZone};
    let at = punctual(facts)?.occurrence.at;
    let zone = facts.fired.as_ref()?.zone;
    let local = at.with_timezone(&zone).naive_local();
    let LocalResult::Ambiguous(first, _) = zone.from_local_datetime(&local) else { return None };
    let which = if first.to_utc() == at { "first" } else { "second" };
    let sentence = format!("fired on time {}, the {which} of the two that the clocks showed", facts.moment(at));
    Statement::from(sentence, Source::Clock, format!("in {zone} the clocks were set back that night"))
}

pub(super) fn on_time(facts: &Facts) -> Option<Statement> {
    let at = punctual(facts)?.occurrence.at;
    let (_, began) = begun(facts)?;
    // From one second on, the delay is shown, and its cause if there was one.
    let causes = causes(facts).join(", then ");
    Statement::bare(match began - at {
        late if late < TimeDelta::seconds(1) => format!("fired on time {}", facts.moment(at)),
        late if causes.is_empty() => format!("fired {}, {} late", facts.moment(at), words::span(late)),
        late => format!("fired {}, {} late: {causes}", facts.moment(at), words::span(late)),
    })
}

pub(super) fn late(facts: &Facts) -> Option<Statement> {
    let (story, began) = begun(facts)?;
    let due = story.occurrence.at;
    let (late, due, began) = (words::span(began - due), facts.moment(due), facts.moment(began));
    let why = match causes(facts) {
        causes if causes.is_empty() => "why is not recorded".to_owned(),
        causes => causes.join(", then "),
    };
    Statement::bare(format!("was due {due} and began {late} late, {began}: {why}"))
}

/// Returns what kept the first attempt from beginning, in order, each cause once.
fn causes(facts: &Facts) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for (by, until, what) in &facts.delays {
        let words = match (by, what) {
            (_, Some(what)) => what.clone(),
            (DelayCause::Slot, None) => match facts.max_concurrent_runs {
                Some(slots) => format!("{by} (`max_concurrent_runs` is {slots} now)"),
                None => by.to_string(),
            },
            (by, None) => by.to_string(),
        };
        let words = format!("{words}{}", until_words(facts, *by, *until));
        if !causes.contains(&words) {
            causes.push(words);
        }
    }
    causes
}

/// Returns ` until 09:12`; empty for a clock that jumped, whose end is of no interest.
pub(super) fn until_words(facts: &Facts, by: DelayCause, until: Option<DateTime<Utc>>) -> String {
    let until = until.filter(|_| !matches!(by, DelayCause::ClockForward | DelayCause::Slept | DelayCause::Suspended));
    until.map(|until| format!(" until {}", facts.bare(until))).unwrap_or_default()
}

/// Returns the clause for an occurrence that was closed before any attempt began.
pub(super) fn never_began(facts: &Facts) -> Option<Statement> {
    let story = facts.story.as_ref()?;
    Statement::bare(format!("was due {} and never began", facts.moment(story.occurrence.at)))
}

/// Returns the sentence for a claimed occurrence without an attempt.
pub(super) fn waiting(facts: &Facts) -> Option<Statement> {
    let story = facts.story.as_ref().filter(|story| story.outcome.is_none() && begun(facts).is_none())?;
    let at = facts.moment(story.occurrence.at);
    let how = if story.by_hand { "was fired by hand" } else { "was due" };
    Statement::bare(format!("{} {how} {at} and waits: {}.", facts.id, waits_for(facts)))
}

fn waits_for(facts: &Facts) -> String {
    let other = facts.story.as_ref().and_then(|story| facts.other_host(story));
    if let Some(host) = other.filter(|host| !host.alive) {
        let (name, at) = (&host.name, facts.moment(host.lease_until));
        return format!("the host {name} has it, and went away {at}; a host that is up and may run it takes it over");
    }
    if let Some(unassigned) = facts.unassigned() {
        return unassigned;
    }
    if other.is_none() && facts.is_off() {
        return facts.is_off_words();
    }
    let is_of_file = facts.story.as_ref().is_some_and(|story| story.occurrence.kind != Kind::Session);
    if is_of_file && facts.definition.is_none() && facts.problem.is_none() && facts.missing_folder().is_none() {
        return "its file is gone; it is skipped unless the file comes back within seconds".to_owned();
    }
    if facts.question.as_ref().is_some_and(|question| question.start && question.answer.is_none()) {
        return DelayCause::Approval.waits_for().to_owned();
    }
    // An agent without a login is there, but cannot be used.
    let lacks_login = || facts.lacks_agent().is_some_and(|lacks| lacks.missing.is_none());
    match facts.delays.last() {
        Some((DelayCause::Slot, ..)) => match facts.max_concurrent_runs {
            Some(slots) => format!("as many runs are going as may (`max_concurrent_runs: {slots}`)"),
            None => DelayCause::Slot.waits_for().to_owned(),
        },
        Some((by, ..)) if *by == DelayCause::Login || *by == DelayCause::Agent && lacks_login() => {
            "the agent is not logged in; `ollim-bot login` logs it in".to_owned()
        }
        Some((DelayCause::Paused, ..)) => "everything is paused; `ollim-bot resume` ends that".to_owned(),
        Some((_, _, Some(what))) => what.clone(),
        Some((by, ..)) => by.waits_for().to_owned(),
        None => match other {
            Some(host) => format!("the host {} has it, and is to begin it", host.name),
            None => "for what is not recorded".to_owned(),
        },
    }
}

pub(super) fn asks(facts: &Facts) -> Option<Statement> {
    let question = facts.question.as_ref().filter(|question| question.answer.is_none())?;
    let (since, until) = (facts.bare(question.asked), facts.bare(question.deadline));
    let call = words::reason(&question.call);
    let sentence = format!("waits for your answer since {since}, until {until}: {call}");
    Statement::from(sentence, Source::Journal, format!("question {}: `ollim-bot questions` shows it", question.number))
}

pub(super) fn running(facts: &Facts) -> Option<Statement> {
    let is_off = facts.is_host_off(facts.story.as_ref()?);
    let attempt = last(facts).filter(|last| last.state == RunState::Running && !is_off)?;
    let span = words::span(facts.now - attempt.started?);
    Statement::bare(format!("is running, for {span}{}", earlier(facts)))
}

pub(super) fn cut_off(facts: &Facts) -> Option<Statement> {
    let story = facts.story.as_ref().filter(|story| story.outcome.is_none())?;
    let is_truncated = |attempt: &Attempt| {
        attempt.state == RunState::Interrupted || attempt.state == RunState::Running && facts.is_host_off(story)
    };
    let how = was_cut_off(story.attempts.last().filter(|last| is_truncated(last))?);
    let fired = facts.fired.as_ref();
    let repeats = fired.is_none_or(|fired| fired.command.is_none() || fired.retry.is_some_and(|times| times > 0));
    let then = match repeats {
        true => "the next start runs it again unless it has had an effect",
        false => "the next start records that it failed, since nobody can tell what its command has done",
    };
    Statement::bare(format!("{how}; {then}"))
}

/// Whether a routine's file is gone, and not only broken.
fn has_no_file(facts: &Facts) -> bool {
    let is_routine = facts.story.as_ref().is_some_and(|story| story.occurrence.kind == Kind::Routine);
    is_routine && facts.definition.is_none() && facts.problem.is_none() && facts.missing_folder().is_none()
}

pub(super) fn to_be_retried(facts: &Facts) -> Option<Statement> {
    let at = facts.story.as_ref()?.retry_at?;
    let reason = words::reason(last(facts)?.error.as_deref().unwrap_or_default());
    if has_no_file(facts) {
        return Statement::bare(format!("failed ({reason}) and is not tried again: its file is gone"));
    }
    let again =
        if facts.is_host_off(facts.story.as_ref()?) { "once the service runs".to_owned() } else { facts.moment(at) };
    Statement::bare(format!("failed ({reason}) and is tried again {again}"))
}

pub(super) fn retry_waits(facts: &Facts) -> Option<Statement> {
    let last = last(facts).filter(|last| last.state == RunState::Claimed && last.number > 1)?;
    if has_no_file(facts) {
        return Statement::bare("is not tried again: its file is gone".to_owned());
    }
    Statement::bare(format!("is to be tried a {} time and waits: {}", words::ordinal(last.number), waits_for(facts)))
}

/// Returns how an attempt was cut off.
fn was_cut_off(attempt: &Attempt) -> String {
    match attempt.error.as_deref().filter(|error| *error != SERVICE_ENDED) {
        Some(why) => format!("was cut off ({})", words::reason(why)),
        None => "was cut off when the service ended".to_owned(),
    }
}

/// Returns how the attempt before the last ended, with its number.
fn previous(facts: &Facts) -> Option<(u32, String)> {
    let [before @ .., _] = facts.story.as_ref()?.attempts.as_slice() else { return None };
    let previous = before.last()?;
    let how = match previous.state {
        RunState::Interrupted => was_cut_off(previous),
        _ => format!("failed ({})", words::reason(previous.error.as_deref().unwrap_or_default())),
    };
    Some((previous.number, how))
}

/// Returns how the attempts before the last ended: ` at the second attempt: the first failed (…)`.
fn earlier(facts: &Facts) -> String {
    let (Some((number, how)), Some(last)) = (previous(facts), last(facts)) else { return String::new() };
    format!(" at the {} attempt: the {} {how}", words::ordinal(last.number), words::ordinal(number))
}

fn is_completed(facts: &Facts) -> Option<&OccurrenceHistory> {
    facts.story.as_ref().filter(|story| story.outcome == Some(RunState::Completed))
}

pub(super) fn held(facts: &Facts) -> Option<Statement> {
    is_completed(facts)?;
    let (message, until) = facts.held.as_ref()?;
    let until = facts.bare(*until);
    let sentence = format!("did its work{}; its message is held until {until}", earlier(facts));
    Statement::from(sentence, Source::Journal, format!("message {} is held until {until}", message.number))
}

pub(super) fn completed_after(facts: &Facts) -> Option<Statement> {
    let earlier = is_completed(facts).map(|_| earlier(facts)).filter(|earlier| !earlier.is_empty())?;
    Statement::bare(format!("did its work{earlier}"))
}

pub(super) fn completed(facts: &Facts) -> Option<Statement> {
    is_completed(facts).and_then(|_| Statement::bare("did its work".to_owned()))
}

pub(super) fn gate_failed(facts: &Facts) -> Option<Statement> {
    let last = last(facts).filter(|last| last.class.as_deref() == Some("gate_failed"))?;
    let reason = words::reason(last.error.as_deref().unwrap_or_default());
    Statement::bare(format!("failed at its gate, so its agent was not woken: {reason}"))
}

pub(super) fn ended(facts: &Facts) -> Option<Statement> {
    let last = last(facts)?;
    let reason = words::reason(last.error.as_deref().unwrap_or_default());
    let attempts = if last.number > 1 { format!(" {} times", last.number) } else { String::new() };
    let sentence = match last.state {
        RunState::Failed => format!("failed{attempts}: {reason}"),
        RunState::TimedOut => format!("ran over its time: {reason}"),
        RunState::Cancelled => format!("was cancelled: {reason}"),
        RunState::Interrupted => format!("was cut off: {reason}"),
        RunState::Skipped => match previous(facts) {
            Some((_, how)) => format!("{how}; its {} attempt was skipped: {reason}", words::ordinal(last.number)),
            None => format!("was skipped: {reason}"),
        },
        RunState::Completed | RunState::Claimed | RunState::Running => format!("is {}", last.state),
    };
    Statement::bare(sentence)
}
