//! Explains what a job did and what it does next: one true sentence, and its evidence.
//!
//! Every statement is based on the journal, a file, the settings, or the service's current answer. Facts that are not recorded are
//! reported as such. One table lists the situations ([`situations`]); a new one is a row there and a row of the test's table.

mod facts;
mod hosts;
mod past;
mod situations;
#[cfg(test)]
mod tests;
mod words;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;

use super::{App, jobs, runs, when};
use crate::definition::{Definition, DefinitionId};
use crate::journal::{JournalReader, OccurrenceHistory, RunId};
use crate::refusal::Refusal;

use facts::Facts;
use situations::SituationKind;

/// An explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The job.
    pub id: DefinitionId,
    /// The reason for its current or past state.
    pub said: Sentence,
    /// The next event; `None` if the caller asked for a time, or the first sentence says it.
    pub next: Option<Sentence>,
    /// Time of its next occurrence, if there is one.
    pub next_at: Option<DateTime<Utc>>,
    /// The evidence for the sentences.
    pub evidence: Vec<Evidence>,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The situation's name: `late_slot`, `late_slot/failed`.
    pub situation: String,
    /// The sentence.
    pub sentence: String,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Its source.
    pub from: Source,
    /// Its time, if it has one.
    pub at: Option<DateTime<Utc>>,
    /// The fact, in words.
    pub what: String,
}

/// The source of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The journal.
    Journal,
    /// The definition's file.
    File,
    /// The settings.
    Settings,
    /// The clock, and the rules of the time zone.
    Clock,
    /// The service, just now.
    Service,
}

impl Source {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::File => "file",
            Self::Settings => "settings",
            Self::Clock => "clock",
            Self::Service => "service",
        }
    }
}

/// Returns what the rules of the time zone do to a routine's occurrence at `at`, in words; `None` if nothing.
pub(super) fn clock_words(definition: &Definition, at: DateTime<Utc>) -> Option<&'static str> {
    past::is_moved_by_gap(definition, at).map(|_| "the clocks skip its time that night")
}

/// The time range of the question: start (inclusive) and end (exclusive).
type Span = (DateTime<Utc>, DateTime<Utc>);

/// Explains the job `name`, or the run with that id: its last occurrence and its next, or the occurrence at `at`.
///
/// # Errors
/// If there is no such job or run, or the time cannot be parsed.
pub(super) fn why(name: &str, at: Option<&str>, app: &App) -> Result<Why, Refusal> {
    let journal = runs::open(app)?;
    let loaded = app.with_named(app.load_without_settings()?, [name]);
    let (id, of_run) = match jobs::find_exact(name, &loaded) {
        Some(found) => (found.id.clone(), None),
        None => named(name, &journal, app)?,
    };
    let mut facts = Facts::of(id, loaded, &journal, app)?;
    facts.story = match (at, of_run) {
        (Some(text), _) => {
            let (span, mut stories) = asked(text, &facts, &journal)?;
            facts.asked = Some(span);
            // A person who names a time means what fell due then, rather than what somebody fired.
            let due = stories.iter().rposition(|story| !story.by_hand).or(stories.len().checked_sub(1));
            facts.further = stories.len().saturating_sub(1);
            due.map(|due| stories.swap_remove(due))
        }
        (None, Some(story)) => {
            facts.asked = Some((story.occurrence.at, story.occurrence.at + TimeDelta::milliseconds(1)));
            Some(story)
        }
        (None, None) => match journal.open_histories(&facts.id)?.into_iter().next() {
            Some(open) => Some(open),
            None => journal.last_history(&facts.id)?,
        },
    };
    facts.look_into_story(&journal, app)?;
    Ok(answer(&facts))
}

/// Resolves a name: to a definition's id, or to the occurrence of a run.
fn named(name: &str, journal: &JournalReader, app: &App) -> Result<(DefinitionId, Option<OccurrenceHistory>), Refusal> {
    match runs::id_of(&DefinitionId::new(name), journal, app) {
        Ok(id) => Ok((id, None)),
        Err(unknown) => {
            let Some(run) = journal.run(&RunId::new(name))? else { return Err(unknown) };
            let story = journal.history_of(&run.run)?;
            Ok((run.id, story))
        }
    }
}

/// Returns the range that a time of a question means, and the occurrences in it. The time is one of the viewer's zone, as in answers; or
/// of the job's, if only there was or is something.
fn asked(text: &str, facts: &Facts, journal: &JournalReader) -> Result<(Span, Vec<OccurrenceHistory>), Refusal> {
    let spans = [span(text, facts.viewers_zone(), facts)?, span(text, facts.zone, facts)?];
    for (from, to) in spans {
        let stories = journal.histories_within(&facts.id, from, to)?;
        if !stories.is_empty() {
            return Ok(((from, to), stories));
        }
    }
    let is_scheduled = |span: &Span| facts.scheduled_in(*span).is_some();
    Ok((spans.into_iter().find(is_scheduled).unwrap_or(spans[0]), Vec::new()))
}

/// Parses the range of a question: a minute, a second if the time has seconds, or a whole day.
fn span(text: &str, zone: Tz, facts: &Facts) -> Result<Span, Refusal> {
    let [begins, ends] =
        [when::BEGINS, when::ENDS].map(|unsaid| when::any(text, unsaid, facts.now, zone).map(|at| at.to_utc()));
    let (from, last) = (begins?, ends?);
    Ok(match (from == last, from.second() == 0) {
        (true, true) => (from, from + TimeDelta::minutes(1)),
        (true, false) => (from, from + TimeDelta::seconds(1)),
        (false, _) => (from, last + TimeDelta::seconds(1)),
    })
}

fn answer(facts: &Facts) -> Why {
    let (said, mut evidence) = match facts.explain(SituationKind::Now) {
        Some(told) => told,
        None => match &facts.story {
            Some(story) => past::explain(story, facts),
            None => facts.explain(SituationKind::Unrecorded).unwrap_or_else(|| facts.nothing_recorded()),
        },
    };
    let coming = if facts.asked.is_none() { facts.explain(SituationKind::Coming) } else { None };
    let (next, more) = coming.map_or((None, Vec::new()), |(said, more)| (Some(said), more));
    evidence.extend(more);
    evidence.extend(facts.common_evidence());
    let mut seen = Vec::new();
    evidence.retain(|one| !seen.contains(&one.what) && (seen.push(one.what.clone()), true).1);
    Why { id: facts.id.clone(), said, next, next_at: facts.next, evidence }
}
