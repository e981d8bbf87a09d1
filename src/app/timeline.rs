//! Past runs and coming occurrences, one row for each job.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::suppressed::Suppressed;
use super::upcoming::{self, Each};
use super::{App, runs, why};
use crate::definition::{DefinitionId, Kind};
use crate::journal::{RunRecord, RunState, Stretch};
use crate::refusal::Refusal;

/// Maximum number of coming occurrences, of all jobs together.
const COMING: usize = 5_000;

/// Maximum number of waiting runs for which a reason is given.
const WAITING: usize = 8;

/// The subject of a row. Each routine has its own. One-shot jobs share rows, as they would fill the page with rows of one bar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// One routine.
    Routine(DefinitionId),
    /// All reminders.
    Reminders,
    /// All spawned agents.
    Agents,
    /// The person's conversation with the bot.
    Conversation,
}

impl Whose {
    fn of(id: &DefinitionId, kind: Kind) -> Self {
        match kind {
            _ if id.is_turn() || id.is_fork() => Self::Conversation,
            // A webhook has its own row, like a routine.
            Kind::Routine | Kind::Webhook => Self::Routine(id.clone()),
            Kind::Reminder => Self::Reminders,
            Kind::Session => Self::Agents,
        }
    }
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// Its subject.
    pub whose: Whose,
    /// Past and skipped runs, in order.
    pub past: Vec<Stretch>,
    /// Times of coming occurrences, in order.
    pub coming: Vec<DateTime<Utc>>,
}

/// The rows of a span of time.
#[derive(Debug)]
pub struct Timeline {
    /// Start of the span.
    pub from: DateTime<Utc>,
    /// End of the span.
    pub until: DateTime<Utc>,
    /// Non-empty rows: routines by their ids, then the others.
    pub rows: Vec<Row>,
    /// The last routine among them.
    pub last: Option<Whose>,
    /// The first runs that are due and have not begun, and why.
    pub waiting: Vec<(RunRecord, String)>,
    /// Number of further rows.
    pub more: usize,
    /// Number of enabled routines with nothing in the span.
    pub idle: usize,
    /// Zones of the jobs whose zone differs from the viewer's.
    pub zones: HashMap<DefinitionId, Tz>,
}

/// Returns the timeline around now, with at most `count` routines, those after the routine `after`.
pub(super) fn timeline(
    before: TimeDelta,
    ahead: TimeDelta,
    after: Option<&DefinitionId>,
    count: usize,
    app: &App,
) -> Result<Timeline, Refusal> {
    let now = app.now();
    let (from, until) = (now - before, now + ahead);
    let loaded = app.load_without_settings()?;
    let journal = runs::open(app)?;
    let mut rows: BTreeMap<Whose, Row> = BTreeMap::new();
    let mut row = |whose: Whose, add: &mut dyn FnMut(&mut Row)| {
        if matches!((&whose, after), (Whose::Routine(id), Some(after)) if id <= after) {
            return;
        }
        add(rows.entry(whose.clone()).or_insert_with(|| Row { whose, past: Vec::new(), coming: Vec::new() }));
    };
    for stretch in journal.stretches(from, now)? {
        let mut stretch = Some(stretch);
        let whose = stretch.as_ref().map(|one| Whose::of(&one.id, one.kind));
        if let Some(whose) = whose {
            row(whose, &mut |row| row.past.extend(stretch.take()));
        }
    }
    let definitions = Suppressed::known_to(&journal, &loaded, app).others(loaded.definitions.values().cloned());
    for occurrence in upcoming::coming(&definitions, Some(now), now, Some(until), COMING, Each::All) {
        let definition = &occurrence.definition;
        row(Whose::of(&definition.id, definition.kind()), &mut |row| row.coming.push(occurrence.at));
    }
    let shown = |id: &DefinitionId| rows.contains_key(&Whose::Routine(id.clone()));
    let routines = loaded.definitions.values().filter(|one| one.kind() == Kind::Routine && one.enabled);
    let idle = routines.filter(|one| after.is_none_or(|after| one.id > *after) && !shown(&one.id)).count();
    // The rows of other subjects are on every page.
    let (routines, others): (Vec<Row>, Vec<Row>) =
        rows.into_values().partition(|row| matches!(row.whose, Whose::Routine(_)));
    let more = routines.len().saturating_sub(count);
    let last = routines.iter().take(count).next_back().map(|row| row.whose.clone());
    let rows = routines.into_iter().take(count).chain(others).collect();
    let viewer = app.zone_of_viewer();
    let others = loaded.definitions.values().filter(|one| one.zone != viewer);
    let zones = others.map(|one| (one.id.clone(), one.zone)).collect();
    let waits = journal.unfinished()?.into_iter().filter(|run| run.outcome == RunState::Claimed).take(WAITING);
    // A turn of the conversation has no explanation; it just waits.
    let why = |run: RunRecord| match why::why(run.run.as_str(), None, app) {
        Ok(why) => (run, why.said.sentence),
        Err(_) => (run, "waits".to_owned()),
    };
    let waiting = waits.map(why).collect();
    Ok(Timeline { from, until, rows, last, waiting, more, idle, zones })
}
