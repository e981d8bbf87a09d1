//! Why a job did what it did, and what it does next: one true sentence and its evidence.
//!
//! Everything that is said stands in the journal, a file or the settings, or the service says it now. What is not recorded is
//! said not to be. One table holds the situations ([`situations`]); a new one is a row there and a row of the test's table.

mod facts;
mod hosts;
mod past;
mod situations;
#[cfg(test)]
mod tests;
mod words;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};

use super::{App, jobs, runs, when};
use crate::definition::{Definition, DefinitionId};
use crate::journal::{JournalReader, RunId, Story};
use crate::refusal::Refusal;

use facts::Facts;
use situations::About;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Whose.
    pub id: DefinitionId,
    /// Why it is as it is, or was.
    pub said: Said,
    /// What comes; `None`: a time was asked for, or the first sentence says it.
    pub next: Option<Said>,
    /// When it falls due next, if it does.
    pub next_at: Option<DateTime<Utc>>,
    /// What the sentences are known from.
    pub evidence: Vec<Evidence>,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The situation's name: `late_slot`, `late_slot/failed`.
    pub situation: String,
    /// The sentence.
    pub sentence: String,
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Where.
    pub from: Source,
    /// When, if that was at one moment.
    pub at: Option<DateTime<Utc>>,
    /// What, in words.
    pub what: String,
}

/// Where something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The journal.
    Journal,
    /// The definition's file.
    File,
    /// The settings.
    Settings,
    /// The clock, and the zone's rules.
    Clock,
    /// The service, which was asked just now.
    Service,
}

/// What the zone's rules do to a routine's occurrence at `at`, in words; `None`: nothing.
pub(super) fn clock_words(definition: &Definition, at: DateTime<Utc>) -> Option<&'static str> {
    past::is_moved_by_gap(definition, at).map(|_| "the clocks skip its time that night")
}

/// The times that are asked about: from the first up to before the second.
type Span = (DateTime<Utc>, DateTime<Utc>);

/// Why the job `name`, or the run of that id, did what it did: the last time and the next, or at the time `at`.
///
/// # Errors
/// There is no such job and no such run, or the time cannot be read.
pub(super) fn why(name: &str, at: Option<&str>, app: &App) -> Result<Why, Refusal> {
    let journal = runs::open(app)?;
    let loaded = app.load_without_settings()?;
    let (id, of_run) = match jobs::find_exact(name, &loaded) {
        Some(found) => (found.id.clone(), None),
        None => named(name, &journal, app)?,
    };
    let mut facts = Facts::of(id, loaded, &journal, app)?;
    facts.story = match (at, of_run) {
        (Some(text), _) => {
            let span = span(text, &facts)?;
            facts.asked = Some(span);
            journal.stories_within(&facts.id, span.0, span.1)?.pop()
        }
        (None, Some(story)) => {
            facts.asked = Some((story.occurrence.at, story.occurrence.at + TimeDelta::milliseconds(1)));
            Some(story)
        }
        (None, None) => match journal.open_stories(&facts.id)?.into_iter().next() {
            Some(open) => Some(open),
            None => journal.last_story(&facts.id)?,
        },
    };
    facts.look_into_story(&journal, app)?;
    Ok(answer(&facts))
}

/// The id that a name means, or the occurrence of the run that it means.
fn named(name: &str, journal: &JournalReader, app: &App) -> Result<(DefinitionId, Option<Story>), Refusal> {
    match runs::id_of(&DefinitionId::new(name), journal, app) {
        Ok(id) => Ok((id, None)),
        Err(unknown) => {
            let Some(run) = journal.run(&RunId::new(name))? else { return Err(unknown) };
            let story = journal.story_of(&run.run)?;
            Ok((run.id, story))
        }
    }
}

/// A time is a minute, or a second where it has some; a day is all of it.
fn span(text: &str, facts: &Facts) -> Result<Span, Refusal> {
    let [begins, ends] =
        [when::BEGINS, when::ENDS].map(|unsaid| when::any(text, unsaid, facts.now, facts.zone).map(|at| at.to_utc()));
    let (from, last) = (begins?, ends?);
    Ok(match (from == last, from.second() == 0) {
        (true, true) => (from, from + TimeDelta::minutes(1)),
        (true, false) => (from, from + TimeDelta::seconds(1)),
        (false, _) => (from, last + TimeDelta::seconds(1)),
    })
}

fn answer(facts: &Facts) -> Why {
    let (said, mut evidence) = match facts.tell(About::Now) {
        Some(told) => told,
        None => match &facts.story {
            Some(story) => past::tell(story, facts),
            None => facts.tell(About::Unrecorded).unwrap_or_else(|| facts.nothing_recorded()),
        },
    };
    let coming = if facts.asked.is_none() { facts.tell(About::Coming) } else { None };
    let (next, more) = coming.map_or((None, Vec::new()), |(said, more)| (Some(said), more));
    evidence.extend(more);
    evidence.extend(facts.surroundings());
    let mut seen = Vec::new();
    evidence.retain(|one| !seen.contains(&one.what) && (seen.push(one.what.clone()), true).1);
    Why { id: facts.id.clone(), said, next, next_at: facts.next, evidence }
}
