//! Past runs and coming occurrences, one row for each job.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::suppressed::Suppressed;
use super::upcoming::{self, OccurrenceLimit};
use super::{App, runs, why};
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{RunRecord, RunState, TimelineEntry};
use crate::refusal::Refusal;

/// Maximum number of coming occurrences, of all jobs together.
const MAX_UPCOMING: usize = 5_000;

/// Maximum number of waiting runs for which a reason is given.
const WAITING: usize = 8;

/// The subject of a row. Each routine has its own. One-shot jobs share rows, as they would fill the page with rows of one bar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowSubject {
    /// One routine.
    Routine(DefinitionId),
    /// All reminders.
    Reminders,
    /// All spawned agents.
    Agents,
    /// The person's conversation with the bot.
    Conversation,
}

impl RowSubject {
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

fn whose(definition: &Definition) -> RowSubject {
    RowSubject::of(&definition.id, definition.kind())
}

/// Returns the row of a subject, which it adds if there is none.
fn row(rows: &mut BTreeMap<RowSubject, Row>, whose: RowSubject) -> &mut Row {
    rows.entry(whose.clone()).or_insert_with(|| Row { whose, past: Vec::new(), coming: Vec::new() })
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// Its subject.
    pub whose: RowSubject,
    /// Past and skipped runs, in order.
    pub past: Vec<TimelineEntry>,
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
    pub last: Option<RowSubject>,
    /// The first runs that are due and have not begun, and why.
    pub waiting: Vec<(RunRecord, String)>,
    /// Number of further rows.
    pub more: usize,
    /// Paused jobs: by the person, or after failures.
    pub paused: BTreeSet<DefinitionId>,
    /// Routines and webhooks with nothing in the span.
    pub idle: Vec<DefinitionId>,
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
    let mut rows: BTreeMap<RowSubject, Row> = BTreeMap::new();
    for stretch in journal.timeline_entries(from, now)? {
        row(&mut rows, RowSubject::of(&stretch.id, stretch.kind)).past.push(stretch);
    }
    let suppressed = Suppressed::known_to(&journal, &loaded, app);
    let definitions = suppressed.others(loaded.definitions.values().cloned());
    let mut paused = suppressed.paused;
    paused.extend(loaded.definitions.values().filter(|one| !one.enabled).map(|one| one.id.clone()));
    let coming = |definitions: &[Arc<Definition>], count, each| {
        upcoming::coming(definitions, Some(now), Some(until), count, each, app).0
    };
    for first in coming(&definitions, usize::MAX, OccurrenceLimit::First) {
        row(&mut rows, whose(&first.definition));
    }
    let shown = |one: &Definition| rows.contains_key(&whose(one));
    let is_after = |id: &DefinitionId| after.is_none_or(|after| id > after);
    let recurring = loaded.definitions.values().filter(|one| matches!(one.kind(), Kind::Routine | Kind::Webhook));
    let idle = recurring.filter(|one| is_after(&one.id) && !shown(one)).map(|one| one.id.clone()).collect();
    // The rows of other subjects are on every page.
    let (mut routines, others): (Vec<Row>, Vec<Row>) =
        rows.into_values().partition(|row| matches!(row.whose, RowSubject::Routine(_)));
    routines.retain(|row| matches!(&row.whose, RowSubject::Routine(id) if is_after(id)));
    let more = routines.len().saturating_sub(count);
    routines.truncate(count);
    let last = routines.last().map(|row| row.whose.clone());
    let mut rows: BTreeMap<RowSubject, Row> =
        routines.into_iter().chain(others).map(|row| (row.whose.clone(), row)).collect();
    // Only the rows of this page need every occurrence.
    let on_page: Vec<_> = definitions.into_iter().filter(|one| rows.contains_key(&whose(one))).collect();
    for occurrence in coming(&on_page, MAX_UPCOMING, OccurrenceLimit::All) {
        row(&mut rows, whose(&occurrence.definition)).coming.push(occurrence.at);
    }
    let rows = rows.into_values().collect();
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
    Ok(Timeline { from, until, rows, last, waiting, more, paused, idle, zones })
}
