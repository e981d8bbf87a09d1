//! The coming occurrences of all definitions, in order of time.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::suppressed::Suppressed;
use super::{App, jobs, made, push, runs, when};
use crate::definition::{Definition, DefinitionId, Loaded, Recurrence, Trigger};
use crate::journal::{JournalReader, RunState};
use crate::refusal::Refusal;
use crate::schedule::cron::Times;
use crate::schedule::fires_after;

/// One coming occurrence.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// When it is due.
    pub at: DateTime<Utc>,
    /// The definition that falls due.
    pub definition: Arc<Definition>,
    /// State of the definition's latest run, and since when; `None` if it has not run.
    pub last: Option<(RunState, DateTime<Utc>)>,
}

/// How many occurrences of each definition are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceLimit {
    /// The next one, so that a job that fires every minute leaves room for others.
    First,
    /// The next few.
    Few(usize),
    /// Every one.
    All,
}

/// The coming occurrences.
#[derive(Debug)]
pub struct Upcoming {
    /// In order of time.
    pub occurrences: Vec<Occurrence>,
    /// Number of jobs with occurrences that are left out, since there are too many.
    pub left_out: usize,
    /// How many occurrences of each definition are shown.
    pub each: OccurrenceLimit,
    /// Routines without occurrences, because they are paused after failures.
    pub paused: BTreeSet<DefinitionId>,
    /// Definitions without occurrences, because the person has paused them.
    pub disabled: Vec<DefinitionId>,
    /// Routines without times, which fire on events.
    pub on_events: Vec<Arc<Definition>>,
    /// Number of definitions of the database that were not looked at. They fall due later than those that were.
    pub unread: u64,
}

/// Returns at most `count` occurrences. `from` and `until` are times as a person writes them. Empty `ids` selects all definitions.
pub(super) fn next(
    count: usize,
    from: Option<&str>,
    until: Option<&str>,
    ids: &[String],
    each: OccurrenceLimit,
    app: &App,
) -> Result<Upcoming, Refusal> {
    let mut loaded = app.load_with(ids.iter().map(String::as_str))?;
    let (now, zone) = (app.now(), app.zone()?);
    let time = |text: Option<&str>, unsaid| {
        text.map(|text| when::any(text, unsaid, now, zone).map(|at| at.to_utc())).transpose()
    };
    let (from, until) = (time(from, when::BEGINS)?, time(until, when::ENDS)?);
    let unread = match (ids.is_empty(), runs::open(app)) {
        (true, Ok(journal)) => push::add_next(&mut loaded, None, count.max(1), &journal, app)?,
        _ => 0,
    };
    let mut suppressed = Suppressed::of(&loaded, app);
    let chosen: Vec<Arc<Definition>> = if ids.is_empty() {
        suppressed.others(loaded.definitions.values().cloned())
    } else {
        let named: Vec<_> = ids.iter().map(|id| jobs::find_readable(id, None, &loaded)).collect::<Result<_, _>>()?;
        suppressed.paused.retain(|id| named.iter().any(|one| one.id == *id));
        suppressed.others(named)
    };
    let (mut occurrences, left_out) = coming(&chosen, from, until, count, each, app);
    with_approval(&mut occurrences, &loaded, app);
    // An unreadable journal does not prevent showing occurrences; `status` reports it.
    if let Ok(journal) = runs::open(app) {
        with_last(&mut occurrences, &journal)?;
    }
    let has_event = |definition: &&Arc<Definition>| definition.enabled && definition.waits_for().is_some();
    let on_events = chosen.iter().filter(has_event).cloned().collect();
    let disabled = chosen.iter().filter(|definition| !definition.enabled).map(|one| one.id.clone()).collect();
    Ok(Upcoming { occurrences, left_out, each, paused: suppressed.paused, disabled, on_events, unread })
}

/// Maximum number of occurrences in a calendar.
const IN_CALENDAR: usize = 10_000;

/// Returns all occurrences within `days` from now.
pub(super) fn calendar(days: u16, app: &App) -> Result<Upcoming, Refusal> {
    let mut loaded = app.load()?;
    let unread = match runs::open(app) {
        Ok(journal) => push::add_next(&mut loaded, None, IN_CALENDAR, &journal, app)?,
        Err(_) => 0,
    };
    let now = app.now();
    let suppressed = Suppressed::of(&loaded, app);
    let chosen = suppressed.others(loaded.definitions.values().cloned());
    let until = now + TimeDelta::days(days.into());
    let each = OccurrenceLimit::All;
    let (occurrences, left_out) = coming(&chosen, Some(now), Some(until), IN_CALENDAR, each, app);
    let (disabled, on_events) = (Vec::new(), Vec::new());
    Ok(Upcoming { occurrences, left_out, each, paused: suppressed.paused, disabled, on_events, unread })
}

/// Adds the approval that a job's makers ask for.
fn with_approval(occurrences: &mut [Occurrence], loaded: &Loaded, app: &App) {
    let mut known: HashMap<DefinitionId, Arc<Definition>> = HashMap::new();
    for occurrence in occurrences.iter_mut().filter(|one| one.definition.created_by.is_some()) {
        let definition = &occurrence.definition;
        let asked = known
            .entry(definition.id.clone())
            .or_insert_with(|| made::with_approval(definition, &loaded.definitions, app));
        occurrence.definition = Arc::clone(asked);
    }
}

/// Adds the states of the latest runs.
pub(super) fn with_last(occurrences: &mut [Occurrence], journal: &JournalReader) -> Result<(), Refusal> {
    let mut known: HashMap<DefinitionId, Option<(RunState, DateTime<Utc>)>> = HashMap::new();
    for occurrence in occurrences {
        let id = &occurrence.definition.id;
        if !known.contains_key(id) {
            known.insert(id.clone(), journal.last(id)?);
        }
        occurrence.last = known.get(id).copied().flatten();
    }
    Ok(())
}

/// Returns the first `count` occurrences from `from` to `until`, both inclusive. Without `from`, returns those still to
/// come, overdue reminders included. The number is that of the definitions with more of them.
pub(super) fn coming(
    definitions: &[Arc<Definition>],
    from: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    count: usize,
    each: OccurrenceLimit,
    app: &App,
) -> (Vec<Occurrence>, usize) {
    let within = |at: &DateTime<Utc>| from.is_none_or(|from| *at >= from) && until.is_none_or(|until| *at <= until);
    // An occurrence at `from` itself counts, so the search begins a moment earlier.
    let after = from.map_or_else(|| app.now(), |from| from - TimeDelta::milliseconds(1));
    let mut firsts = FirstOccurrences::after(after, app);
    let mut heap = BinaryHeap::new();
    for (index, definition) in definitions.iter().enumerate().filter(|(_, definition)| definition.enabled) {
        if let Some(at) = firsts.of(definition).filter(within) {
            heap.push(Reverse((at, index)));
        }
    }
    let most = match each {
        OccurrenceLimit::First => 1,
        OccurrenceLimit::Few(most) => most,
        OccurrenceLimit::All => usize::MAX,
    };
    // For each definition, the number of occurrences left and its times.
    let mut more: HashMap<usize, (usize, Option<Times>)> = HashMap::new();
    let mut found = Vec::new();
    while found.len() < count
        && let Some(Reverse((at, index))) = heap.pop()
    {
        let definition = &definitions[index];
        found.push(Occurrence { at, definition: Arc::clone(definition), last: None });
        if most > 1 {
            let (left, times) = more.entry(index).or_insert_with(|| (most, Times::of(definition)));
            *left -= 1;
            if *left > 0
                && let Some(next) = times.as_ref().and_then(|times| times.next(definition.zone, at)).filter(within)
            {
                heap.push(Reverse((next, index)));
            }
        }
    }
    (found, heap.len())
}

/// Computes the first occurrences of definitions after a time. Caches them by expression and zone: many routines share
/// both, and parsing an expression takes longer than all else.
pub(super) struct FirstOccurrences<'a> {
    app: &'a App,
    journal: OnceCell<Option<JournalReader>>,
    after: DateTime<Utc>,
    known: HashMap<(&'a Recurrence, Tz), Option<DateTime<Utc>>>,
}

impl<'a> FirstOccurrences<'a> {
    pub(super) fn after(after: DateTime<Utc>, app: &'a App) -> Self {
        Self { app, journal: OnceCell::new(), after, known: HashMap::new() }
    }

    /// Returns the first occurrence; `None` if there is none, or the definition is disabled. A reminder has its own time, past or future.
    pub(super) fn of(&mut self, definition: &'a Definition) -> Option<DateTime<Utc>> {
        if !definition.enabled {
            return None;
        }
        match &definition.trigger {
            // With a jitter, the time depends on the job, too.
            Trigger::Routine { recurs: Recurrence { jitter: Some(_), .. }, .. } => {
                Times::of(definition)?.next(definition.zone, self.fires_after(definition))
            }
            Trigger::Routine { recurs, .. } => *self
                .known
                .entry((recurs, definition.zone))
                .or_insert_with(|| Times::of(definition)?.next(definition.zone, self.after)),
            Trigger::Reminder { run_at, .. } | Trigger::Session { run_at, .. } => Some(run_at.to_utc()),
            Trigger::Webhook(_) => None,
        }
    }

    /// Returns the time after which a definition fires next, which is later where its jitter would repeat its last occurrence.
    pub(super) fn fires_after(&self, definition: &Definition) -> DateTime<Utc> {
        fires_after(definition, self.after, self.last_due(definition))
    }

    /// Returns the last time for which a routine with jitter fired; `None` if it has none, or the journal cannot be read.
    pub(super) fn last_due(&self, definition: &Definition) -> Option<DateTime<Utc>> {
        definition.jitter()?;
        let journal = self.journal.get_or_init(|| runs::open(self.app).ok()).as_ref()?;
        journal.last_due(&definition.id, self.app.now()).ok().flatten()
    }
}
