//! The table of situations. The first row of a kind that applies gives the sentence, so rows are in order of importance.
//!
//! A new reason is a new row here.

use chrono::{DateTime, LocalResult, TimeDelta, TimeZone, Utc};

use super::facts::{Facts, NoAgentReason, file_of, seen};
use super::{Evidence, Source, words};
use super::{hosts, past};
use crate::definition::{Definition, Kind, OnOverlap, Trigger};
use crate::journal::{EventKind, RunState, Spending};
use crate::schedule::occurrences;

/// The kind of a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SituationKind {
    /// What keeps the job from firing now, whatever it did before.
    Now,
    /// A recorded occurrence that never began. Gives a clause: `did not run at 08:00: …`.
    Skipped,
    /// When and why a recorded occurrence began. Gives a clause: `mail fired on time at 08:00`.
    Began,
    /// The host of a recorded occurrence, if it was another one: `the host laptop had it: `.
    Host,
    /// The outcome of a recorded occurrence. Gives a clause: `it did its work`.
    Ended,
    /// A time without a record.
    Unrecorded,
    /// The next event.
    Coming,
}

/// One row of the table.
pub(super) struct Situation {
    pub(super) name: &'static str,
    pub(super) about: SituationKind,
    /// Returns the sentence; `None` if the situation does not apply.
    pub(super) tell: fn(&Facts) -> Option<Statement>,
}

/// A sentence, and its evidence besides that of every answer.
pub(super) struct Statement {
    pub(super) sentence: String,
    pub(super) evidence: Vec<Evidence>,
}

impl Statement {
    pub(super) fn bare(sentence: String) -> Option<Self> {
        Some(Self { sentence, evidence: Vec::new() })
    }

    pub(super) fn from(sentence: String, from: Source, what: String) -> Option<Self> {
        Some(Self { sentence, evidence: vec![seen(from, what)] })
    }
}

const fn row(about: SituationKind, name: &'static str, tell: fn(&Facts) -> Option<Statement>) -> Situation {
    Situation { name, about, tell }
}

pub(super) const SITUATIONS: &[Situation] = &[
    row(SituationKind::Now, "file_broken", file_broken),
    row(SituationKind::Now, "waiting", past::waiting),
    row(SituationKind::Now, "overdue", overdue),
    row(SituationKind::Skipped, "skipped_missed", past::missed),
    row(SituationKind::Skipped, "skipped_gate", |facts| past::skipped(facts, "gate: ", "its gate found nothing to do")),
    row(SituationKind::Skipped, "skipped_budget", |facts| past::skipped(facts, "budget: ", "")),
    row(SituationKind::Skipped, "skipped_overlap", |facts| past::skipped(facts, "overlap: ", "")),
    row(SituationKind::Skipped, "skipped_disabled", |facts| past::skipped(facts, "disabled: ", "")),
    row(SituationKind::Skipped, "skipped_paused", |facts| past::skipped(facts, "paused: ", "")),
    row(SituationKind::Skipped, "skipped_cut", |facts| past::skipped(facts, "cut: ", "")),
    row(SituationKind::Skipped, "skipped_approve", |facts| {
        past::skipped(facts, "not approved: ", "you did not approve it")
    }),
    row(SituationKind::Skipped, "skipped_requires", past::unmet_requirement),
    row(SituationKind::Skipped, "skipped", |facts| past::skipped(facts, "", "")),
    row(SituationKind::Began, "fired_by_channel", past::by_channel),
    row(SituationKind::Began, "fired_by_hand", past::by_hand),
    row(SituationKind::Began, "after", past::after),
    row(SituationKind::Began, "on_time_gap", past::after_gap),
    row(SituationKind::Began, "on_time_repeated", past::repeated),
    row(SituationKind::Began, "on_time", past::on_time),
    row(SituationKind::Began, "late", past::late),
    row(SituationKind::Began, "never_began", past::never_began),
    row(SituationKind::Host, "elsewhere", hosts::had_it),
    row(SituationKind::Ended, "host_gone", hosts::gone),
    row(SituationKind::Ended, "question", past::asks),
    row(SituationKind::Ended, "running", past::running),
    row(SituationKind::Ended, "cut_off", past::cut_off),
    row(SituationKind::Ended, "retry", past::to_be_retried),
    row(SituationKind::Ended, "retry_waits", past::retry_waits),
    row(SituationKind::Ended, "completed_held", past::held),
    row(SituationKind::Ended, "completed_after", past::completed_after),
    row(SituationKind::Ended, "completed", past::completed),
    row(SituationKind::Ended, "gate_failed", past::gate_failed),
    row(SituationKind::Ended, "ended", past::ended),
    row(SituationKind::Unrecorded, "will_fire", will_fire),
    row(SituationKind::Unrecorded, "will_not_fire", will_not_fire),
    row(SituationKind::Unrecorded, "not_fired_yet", not_fired_yet),
    row(SituationKind::Unrecorded, "repeated_hour", repeated_hour),
    row(SituationKind::Unrecorded, "did_not_count", did_not_count),
    row(SituationKind::Unrecorded, "not_readable", not_readable),
    row(SituationKind::Unrecorded, "nothing_due", nothing_due),
    row(SituationKind::Coming, "chain_goes_on", chain_goes_on),
    row(SituationKind::Coming, "chain_ended", chain_ended),
    row(SituationKind::Coming, "kept_as_failed", kept_as_failed),
    row(SituationKind::Coming, "done", done),
    row(SituationKind::Coming, "file_removed", removed),
    row(SituationKind::Coming, "disabled", disabled),
    row(SituationKind::Coming, "job_paused", job_paused),
    row(SituationKind::Coming, "follows", follows),
    row(SituationKind::Coming, "journal_fault", journal_fault),
    row(SituationKind::Coming, "all_paused", all_paused),
    row(SituationKind::Coming, "left_to_others", hosts::left_to_others),
    row(SituationKind::Coming, "no_host", hosts::no_host),
    row(SituationKind::Coming, "service_off", service_off),
    row(SituationKind::Coming, "no_login", no_login),
    row(SituationKind::Coming, "no_agent", no_agent),
    row(SituationKind::Coming, "put_off", deferred),
    row(SituationKind::Coming, "budget_spent", budget_spent),
    row(SituationKind::Coming, "faulty_gate", faulty_gate),
    row(SituationKind::Coming, "conditional", conditional),
    row(SituationKind::Coming, "next", next),
];

fn file_broken(facts: &Facts) -> Option<Statement> {
    let problem = facts.problem.as_ref().filter(|_| facts.asked.is_none())?;
    let (file, line) = (problem.file.display(), problem.line);
    let sentence = format!("{} does not fire: {file}, line {line}: {}.", facts.id, words::reason(&problem.message));
    Statement::from(
        sentence,
        Source::File,
        problem.hint.clone().unwrap_or_else(|| "`ollim-bot check` says more".into()),
    )
}

/// Returns why no due occurrence is claimed now.
fn blocked_by(facts: &Facts) -> String {
    if let Some(fault) = facts.journal_fault() {
        return fault.to_owned();
    } else if let Some(since) = facts.all_paused {
        let since = facts.bare(since);
        return match facts.is_off() {
            true => {
                format!("everything is paused, since {since}, until `ollim-bot resume`; and {}", facts.is_off_words())
            }
            false => format!("everything is paused, since {since}; `ollim-bot resume` ends that"),
        };
    } else if let Some(left) = facts.left().filter(|left| !left.is_only_off()) {
        return left.held();
    } else if let Some(NoAgentReason { since, missing }) = facts.lacks_agent() {
        let since = facts.bare(since);
        return match missing {
            Some(why) => format!("jobs wait for the agent, since {since}: {why}"),
            None => format!("jobs wait for a login, since {since}; `ollim-bot login` brings it"),
        };
    } else if facts.is_off() {
        return facts.is_off_words();
    } else if facts.service_is_silent {
        return "the service runs, and does not answer".to_owned();
    }
    "why is not recorded; the service may be about to take it up".to_owned()
}

fn overdue(facts: &Facts) -> Option<Statement> {
    let overdue = facts.overdue.as_ref().filter(|_| facts.asked.is_none())?;
    let due = match overdue.count {
        1 => format!("was due {}", facts.moment(overdue.since)),
        count => {
            let more = if overdue.is_truncated() { " or more" } else { "" };
            format!("was due {count} times{more} since {}", facts.bare(overdue.since))
        }
    };
    Statement::bare(format!("{} {due} and has not fired: {}.", facts.id, blocked_by(facts)))
}

/// Returns the first scheduled time in the range in question.
fn scheduled(facts: &Facts) -> Option<DateTime<Utc>> {
    facts.scheduled_in(facts.asked?)
}

fn will_fire(facts: &Facts) -> Option<Statement> {
    let at = scheduled(facts).filter(|at| *at > facts.now)?;
    let definition = facts.definition.as_ref()?;
    if !definition.enabled || facts.is_paused {
        return None;
    }
    let is_left = facts.left().is_some();
    let is_held = facts.journal_fault().is_some() || facts.all_paused.is_some();
    let why_not = is_held || facts.is_off() || facts.lacks_agent().is_some() || is_left;
    let (moment, span) = (facts.moment(at), words::span(at - facts.now));
    if let Some(spent) = facts.spent_at(at).filter(|_| !why_not) {
        let why = spent_words(spent, facts);
        let sentence = format!("{} falls due {moment}, in {span}, and it is skipped then: {why}.", facts.id);
        return Some(Statement { sentence, evidence: vec![spent_evidence(spent, definition)] });
    }
    let held = if why_not { format!(", if it can by then: {}", blocked_by(facts)) } else { conditions(facts) };
    Statement::bare(format!("{} fires {moment}, in {span}{held}.", facts.id))
}

fn will_not_fire(facts: &Facts) -> Option<Statement> {
    let at = scheduled(facts).filter(|at| *at > facts.now)?;
    let why = disabled(facts).or_else(|| job_paused(facts))?;
    let sentence = format!("{} is scheduled {} and will not fire then. {}", facts.id, facts.moment(at), why.sentence);
    Some(Statement { sentence, ..why })
}

fn not_fired_yet(facts: &Facts) -> Option<Statement> {
    let at = scheduled(facts).filter(|at| *at <= facts.now)?;
    facts.overdue.as_ref().filter(|overdue| overdue.since <= at)?;
    Statement::bare(format!("{} was due {} and has not fired: {}.", facts.id, facts.moment(at), blocked_by(facts)))
}

/// Handles a local time that occurs twice. An expression with a fixed time fires only the first time.
fn repeated_hour(facts: &Facts) -> Option<Statement> {
    let (from, _) = facts.asked?;
    let local = from.with_timezone(&facts.zone).naive_local();
    let LocalResult::Ambiguous(first, second) = facts.zone.from_local_datetime(&local) else { return None };
    let definition = facts.definition.as_ref()?;
    let first = first.to_utc();
    let fires_first = occurrences(definition, first - TimeDelta::milliseconds(1)).next() == Some(first);
    if second.to_utc() != from || !fires_first {
        return None;
    }
    let shown = local.format("%H:%M");
    let sentence =
        format!("{} was not due again: the clocks showed {shown} twice, and it fires the first time.", facts.id);
    Statement::from(
        sentence,
        Source::Clock,
        format!("{shown} came at {} and at {} UTC", utc(first), utc(second.to_utc())),
    )
}

fn utc(at: DateTime<Utc>) -> String {
    at.format("%H:%M").to_string()
}

/// Handles a time that the current schedule has, but the journal does not.
fn did_not_count(facts: &Facts) -> Option<Statement> {
    let at = scheduled(facts).filter(|at| *at <= facts.now)?;
    let moment = facts.moment(at);
    let counts_from = facts.seen.as_ref().map(|seen| seen.until);
    let changed = facts.lately.iter().filter(|event| event.kind == EventKind::DefinitionChanged);
    let changed = changed.map(|event| event.at).filter(|changed| *changed > at).min();
    let evidence = changed.map(|at| Evidence { from: Source::Journal, at: Some(at), what: changed_at(facts, at) });
    let why = match (counts_from, changed) {
        (None, _) => "the service has not seen its file yet, and what lies before that does not count".to_owned(),
        (_, Some(changed)) => format!(
            "its file was written or changed {}, and what lies before that does not count",
            facts.moment(changed)
        ),
        (Some(_), None) => {
            "it was new, changed, disabled or paused then, or the record is gone; which of these is not recorded".into()
        }
    };
    let sentence = format!("nothing is recorded of {} {moment}: {why}.", facts.id);
    Some(Statement { sentence, evidence: evidence.into_iter().collect() })
}

fn changed_at(facts: &Facts, at: DateTime<Utc>) -> String {
    format!("the file was written or changed {}", facts.moment(at))
}

/// Returns the time range in question: `at 08:00`, `from 08:00 to 10:00`.
fn asked_words(facts: &Facts) -> Option<String> {
    let (from, to) = facts.asked?;
    Some(match to - from > TimeDelta::minutes(1) {
        true => format!("from {} to {}", facts.bare(from), facts.bare(to)),
        false => facts.moment(from),
    })
}

/// Handles a time of a job whose file cannot be read now.
fn not_readable(facts: &Facts) -> Option<Statement> {
    let fault = match &facts.definition {
        Some(_) => return None,
        None => facts.problem.as_ref().or_else(|| facts.missing_folder())?,
    };
    let (span, id, (from, _)) = (asked_words(facts)?, &facts.id, facts.asked?);
    let why = format!("{}: {}", fault.file.display(), words::reason(&fault.message));
    Statement::bare(match from > facts.now {
        true => format!("{id} does not fire {span} unless its file can be read by then: {why}."),
        false => format!("nothing is recorded of {id} {span}, and whether it was due is not known: {why}."),
    })
}

fn nothing_due(facts: &Facts) -> Option<Statement> {
    let (from, span) = (facts.asked?.0, asked_words(facts)?);
    let around = match (facts.before, facts.after.or(facts.next.filter(|next| *next >= from))) {
        (Some(before), Some(after)) => {
            format!("the occurrences around it are {} and {}", facts.bare(before), facts.bare(after))
        }
        (Some(before), None) => format!("the last before it was {}", facts.bare(before)),
        (None, Some(after)) => format!("the first after it is {}", facts.bare(after)),
        (None, None) => "it has no occurrence around it".to_owned(),
    };
    let was = if from > facts.now { "is" } else { "was" };
    Statement::bare(format!("nothing of {} {was} due {span}; {around}.", facts.id))
}

/// Returns the definition of a reminder that has no occurrence left.
fn is_over(facts: &Facts) -> Option<&Definition> {
    let is_there = facts.definition.is_some() || facts.problem.is_some();
    let story = facts.story.as_ref().filter(|_| !is_there)?;
    facts.fired.as_ref().filter(|_| story.outcome.is_some() && story.occurrence.kind == Kind::Reminder)
}

fn chain_goes_on(facts: &Facts) -> Option<Statement> {
    is_over(facts)?.chain()?;
    let link = facts.follow_up.as_ref()?;
    let at = link.trigger.run_at()?;
    let sentence = format!("Its chain goes on {}: {}.", facts.moment(at), link.id);
    Statement::from(sentence, Source::File, format!("{} is the next check", link.file.display()))
}

fn chain_ended(facts: &Facts) -> Option<Statement> {
    let chain = is_over(facts)?.chain()?;
    facts.story.as_ref().filter(|story| story.outcome == Some(RunState::Completed))?;
    if let Some(later) = &facts.later_check {
        return Statement::bare(format!(
            "Its chain went on; the last check that began is {later}: `ollim-bot why {later}`."
        ));
    }
    let (check, checks) = (chain.depth + 1, chain.max + 1);
    let why = if chain.depth == chain.max { "it was the last" } else { "its run asked for no other" };
    Statement::bare(format!("Its chain ended with check {check} of {checks}: {why}."))
}

fn kept_as_failed(facts: &Facts) -> Option<Statement> {
    let is_kept = facts.kept_as_failed && facts.definition.is_none();
    let id = is_kept.then_some(&facts.id)?;
    let sentence = format!("Its file is kept in reminders/failed/: `ollim-bot reminder retry {id}` brings it back.");
    Statement::bare(sentence)
}

fn done(facts: &Facts) -> Option<Statement> {
    is_over(facts)?;
    let removed = removed_at(facts).map(|at| Evidence {
        from: Source::Journal,
        at: Some(at),
        what: format!("the file was gone {}", facts.moment(at)),
    });
    let story = facts.story.as_ref()?;
    let sentence = match story.outcome? {
        RunState::Completed => "It is done, and does not fire again.",
        _ => "It is over, and does not fire again.",
    };
    Some(Statement { sentence: sentence.to_owned(), evidence: removed.into_iter().collect() })
}

/// Returns when the service noticed that the file was gone.
fn removed_at(facts: &Facts) -> Option<DateTime<Utc>> {
    let is_removal = |kind: &EventKind| *kind == EventKind::DefinitionRemoved;
    facts.lately.iter().find(|event| is_removal(&event.kind)).map(|event| event.at)
}

fn removed(facts: &Facts) -> Option<Statement> {
    if facts.definition.is_some() || facts.problem.is_some() {
        return None;
    }
    let story = facts.story.as_ref();
    if story.is_some_and(|story| story.occurrence.kind == Kind::Session) {
        return Statement::bare("It runs once, and does not come again.".to_owned());
    }
    if let Some(problem) = facts.missing_folder() {
        let folder = problem.file.display();
        return Statement::bare(format!("It does not fire: {folder}/: {}.", words::reason(&problem.message)));
    }
    let when = match removed_at(facts).or(facts.seen.as_ref().and_then(|seen| seen.gone)) {
        Some(at) => format!("Its file was removed {}", facts.moment(at)),
        None => "There is no file of it any more; since when is not recorded".to_owned(),
    };
    let file = story.map(|story| format!("{} is not there", file_of(story).display()));
    let evidence = file.map(|what| seen(Source::File, what));
    Some(Statement { sentence: format!("{when}. It does not fire again."), evidence: evidence.into_iter().collect() })
}

fn disabled(facts: &Facts) -> Option<Statement> {
    let definition = facts.definition.as_ref().filter(|definition| !definition.enabled)?;
    let sentence =
        format!("It does not fire: it is disabled in its file; `ollim-bot resume {}` ends that.", definition.id);
    Statement::from(sentence, Source::File, format!("{}: `enabled: false`", definition.file.display()))
}

fn job_paused(facts: &Facts) -> Option<Statement> {
    let failing = facts.failing.as_ref().filter(|_| facts.is_paused)?;
    let since = facts.bare(failing.paused?);
    let sentence = format!(
        "It is paused since {since}, after {} failures in a row; `ollim-bot resume {}` or an edit ends that.",
        failing.failures, facts.id
    );
    Statement::from(sentence, Source::Journal, format!("{} failures in a row", failing.failures))
}

/// Returns the sentence for a job without times, which waits for an event.
fn follows(facts: &Facts) -> Option<Statement> {
    let waits = facts.definition.as_ref()?.waits_for()?;
    if let Some(why) = &facts.never_fires {
        return Statement::bare(format!("It fires {waits}, so never: {}.", why));
    }
    if let Some(why) = &facts.blindness {
        return Statement::bare(format!("It fires {waits}, and now it sees no changes: {why}."));
    }
    let held = facts.all_paused.is_some() || facts.is_off() || facts.left().is_some();
    let held = if held { format!(", if it can by then: {}", blocked_by(facts)) } else { conditions(facts) };
    Statement::bare(format!("It fires {waits}{held}."))
}

/// Returns `Next: tomorrow at 08:00 (in 22h)`, `Next: tomorrow at 08:00 (16:00 in Asia/Tokyo; in 22h)`.
pub(super) fn next_words(facts: &Facts) -> Option<String> {
    let at = facts.next?;
    let (said, far) = (facts.bare(at), words::span(at - facts.now));
    Some(match said.strip_suffix(')') {
        Some(said) => format!("Next: {said}; in {far})"),
        None => format!("Next: {said} (in {far})"),
    })
}

fn journal_fault(facts: &Facts) -> Option<Statement> {
    let (fault, next) = (facts.journal_fault()?, next_words(facts)?);
    Statement::bare(format!("{next}, if it can by then: {fault}."))
}

fn all_paused(facts: &Facts) -> Option<Statement> {
    let since = facts.bare(facts.all_paused?);
    let next = next_words(facts)?;
    let sentence = match facts.is_off() {
        true => format!(
            "{next}, if the service runs by then and `ollim-bot resume` has come: everything is paused since {since}."
        ),
        false => format!("{next}, if `ollim-bot resume` comes before: everything is paused since {since}."),
    };
    Statement::from(sentence, Source::Journal, format!("everything is paused since {since}"))
}

fn service_off(facts: &Facts) -> Option<Statement> {
    let next = next_words(facts).filter(|_| facts.is_off())?;
    Statement::bare(format!("{next}, if the service runs by then: it is not running."))
}

fn no_login(facts: &Facts) -> Option<Statement> {
    let lacks = facts.lacks_agent().filter(|lacks| lacks.missing.is_none())?;
    let (since, next) = (facts.bare(lacks.since), next_words(facts)?);
    Statement::bare(format!("{next}, if the agent is logged in by then: jobs wait for that since {since}."))
}

fn no_agent(facts: &Facts) -> Option<Statement> {
    let lacks = facts.lacks_agent()?;
    let (since, next) = (facts.bare(lacks.since), next_words(facts)?);
    let sentence = format!("{next}, if the agent is there by then: jobs wait for it since {since}.");
    Statement::from(sentence, Source::Service, lacks.missing?)
}

fn deferred(facts: &Facts) -> Option<Statement> {
    let next = next_words(facts)?;
    let moved = facts.lately.iter().find_map(|event| match event.kind {
        EventKind::DueMoved { from, to } if Some(to) == facts.next => Some((event.at, from)),
        _ => None,
    });
    if let Some((at, from)) = moved {
        let way = if Some(from) < facts.next { "put off" } else { "brought forward" };
        let sentence = match (facts.bare(from), facts.next) {
            (before, Some(after)) if before == facts.bare(after) => {
                let span = words::span((after - from).abs());
                format!("{next}: it was {way} by {span}.")
            }
            (before, _) => format!("{next}: it was {way} from {before}."),
        };
        let what = format!("its time was changed {}", facts.moment(at));
        return Some(Statement { sentence, evidence: vec![Evidence { from: Source::Journal, at: Some(at), what }] });
    }
    let is_back = facts.definition.as_ref().is_some_and(|definition| definition.kind() == Kind::Reminder)
        && facts.story.as_ref().is_some_and(|story| story.outcome.is_some());
    if is_back { Statement::bare(format!("{next}: it was brought back.")) } else { None }
}

fn budget_spent(facts: &Facts) -> Option<Statement> {
    let (next, definition) = (next_words(facts)?, facts.definition.as_ref()?);
    let spent = facts.spent_at(facts.next?)?;
    let sentence = format!("{next}, and it is skipped then: {}.", spent_words(spent, facts));
    Some(Statement { sentence, evidence: vec![spent_evidence(spent, definition)] })
}

/// Returns `the budget of the day is spent until tomorrow at 00:00`.
fn spent_words(spent: &Spending, facts: &Facts) -> String {
    let what = match spent.name {
        "job_day" => "its `max_cost_day_usd` is",
        "month" => "the budget of the month is",
        "tokens_day" => "the tokens of the day are",
        _ => "the budget of the day is",
    };
    format!("{what} spent until {}", facts.bare(spent.until))
}

fn spent_evidence(spent: &Spending, definition: &Definition) -> Evidence {
    let amounts = spent.amounts();
    match spent.name {
        "job_day" => {
            seen(Source::File, format!("{}: {amounts} of `max_cost_day_usd` are spent", definition.file.display()))
        }
        name => seen(Source::Settings, format!("`budget`: {amounts} of `{name}` are spent")),
    }
}

/// Returns the further conditions of an occurrence: `, if the machine is online and you approve it`.
fn conditions(facts: &Facts) -> String {
    let conditions = facts.definition.as_deref().and_then(crate::app::words::conditions);
    conditions.map(|conditions| format!(", if {conditions}")).unwrap_or_default()
}

fn faulty_gate(facts: &Facts) -> Option<Statement> {
    let (next, problem) = (next_words(facts)?, facts.faulty_gate.as_ref().filter(|problem| problem.is_error())?);
    let why = problem.message.split_once(", which will fail: ").map_or(problem.message.as_str(), |(_, why)| why);
    let sentence = format!("{next}, and it fails at its gate then: {}.", words::reason(why));
    Statement::from(sentence, Source::File, problem.hint.clone()?)
}

fn conditional(facts: &Facts) -> Option<Statement> {
    let conditions = Some(conditions(facts)).filter(|conditions| !conditions.is_empty())?;
    Statement::bare(format!("{}{conditions}{}.", next_words(facts)?, beside_open(facts)))
}

/// Returns what becomes of the next occurrence if the run that is open is not over by then.
fn beside_open(facts: &Facts) -> &'static str {
    let open = facts.story.as_ref().filter(|_| facts.asked.is_none()).and_then(|story| story.attempts.last());
    // A run is seldom longer.
    let is_near = facts.next.is_some_and(|next| next - facts.now < TimeDelta::hours(1));
    let state = open.filter(|_| is_near && !facts.is_off()).map(|last| last.state);
    let Some(Trigger::Routine { on_overlap, .. }) = facts.definition.as_ref().map(|definition| &definition.trigger)
    else {
        return "";
    };
    let is_retried = facts.story.as_ref().is_some_and(|story| story.retry_at.is_some());
    match (state, on_overlap) {
        (Some(RunState::Failed | RunState::TimedOut), OnOverlap::Skip) if is_retried => {
            "; it is skipped if this run is not over by then"
        }
        (Some(RunState::Running | RunState::Claimed), OnOverlap::Skip) => {
            "; it is skipped if this run is not over by then"
        }
        (Some(RunState::Running), OnOverlap::Queue) => ", or when this run is over",
        (Some(RunState::Claimed), OnOverlap::Queue) => "; it is skipped if this run still waits then",
        (Some(RunState::Running), OnOverlap::Cancel) => "; it ends this run if that is not over by then",
        (Some(RunState::Claimed), OnOverlap::Cancel) => "; it takes the place of this run if that is not over by then",
        _ => "",
    }
}

fn next(facts: &Facts) -> Option<Statement> {
    Statement::bare(format!("{}{}.", next_words(facts)?, beside_open(facts)))
}
