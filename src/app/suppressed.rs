//! Suppressed definitions: a routine that is paused after failures has no coming occurrences until it is resumed or
//! edited, and a reminder has none once it is claimed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{App, runs};
use crate::definition::{Definition, DefinitionId, Kind, Loaded};
use crate::journal::{JournalReader, RunFilter};
use crate::schedule::occurrences;

/// Definitions without coming occurrences.
pub(super) struct Suppressed {
    /// Routines that are paused after failures.
    pub(super) paused: BTreeSet<DefinitionId>,
    /// Times of reminders that have been claimed.
    claimed: HashMap<DefinitionId, Vec<DateTime<Utc>>>,
}

impl Suppressed {
    /// Returns those among these definitions. If the journal cannot be read, none is suppressed, so that coming
    /// occurrences are still shown.
    pub(super) fn of(loaded: &Loaded, app: &App) -> Self {
        match runs::open(app) {
            Ok(journal) => Self::known_to(&journal, loaded, app),
            Err(_) => Self { paused: BTreeSet::new(), claimed: HashMap::new() },
        }
    }

    /// Same as [`Self::of`], with a journal that is already open.
    pub(super) fn known_to(journal: &JournalReader, loaded: &Loaded, app: &App) -> Self {
        Self { paused: paused_in(journal, loaded, app), claimed: journal.claimed_reminders().unwrap_or_default() }
    }

    /// Returns those of `definitions` that are not suppressed.
    pub(super) fn others(&self, definitions: impl IntoIterator<Item = Arc<Definition>>) -> Vec<Arc<Definition>> {
        definitions
            .into_iter()
            .filter(|definition| !self.paused.contains(&definition.id) && !self.is_claimed(definition))
            .collect()
    }

    /// A reminder falls due once. When it has been claimed, the journal's record shows it.
    fn is_claimed(&self, definition: &Definition) -> bool {
        definition.kind() == Kind::Reminder
            && self.claimed.get(&definition.id).is_some_and(|claimed| {
                occurrences(definition, DateTime::<Utc>::MIN_UTC).next().is_some_and(|at| claimed.contains(&at))
            })
    }
}

/// Returns the paused routines among these definitions; none if the journal cannot be read.
pub(super) fn paused(loaded: &Loaded, app: &App) -> BTreeSet<DefinitionId> {
    runs::open(app).map(|journal| paused_in(&journal, loaded, app)).unwrap_or_default()
}

fn paused_in(journal: &JournalReader, loaded: &Loaded, app: &App) -> BTreeSet<DefinitionId> {
    let failing = journal.consecutive_failures().unwrap_or_default();
    let paused = failing.into_iter().filter(|failing| failing.paused.is_some()).map(|failing| failing.id);
    paused.filter(|id| loaded.definitions.get(id).is_some_and(|found| is_as_it_failed(found, journal, app))).collect()
}

/// Whether the file is unchanged since the failure. An edit ends the pause; the service notices it at once, or at its next start.
fn is_as_it_failed(definition: &Definition, journal: &JournalReader, app: &App) -> bool {
    let last = RunFilter { id: Some(definition.id.clone()), limit: Some(1), ..RunFilter::default() };
    let fired = journal.runs(&last).ok().and_then(|mut runs| runs.pop()?.definition);
    let now = app.text_of(&definition.file).ok().flatten();
    fired.is_none() || fired == now
}
