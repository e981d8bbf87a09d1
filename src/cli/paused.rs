//! Routines that are paused after too many failures: none of their times fires until they are resumed, or edited.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::Context;
use super::runs;
use crate::definition::{self, Definition, DefinitionId, Loaded};
use crate::journal::{JournalReader, RunFilter};

/// Those among these definitions. A journal that cannot be read knows of none: what is coming is shown all the same.
pub(super) fn paused(loaded: &Loaded, context: &Context) -> BTreeSet<DefinitionId> {
    let Ok(journal) = runs::open(context) else { return BTreeSet::new() };
    let streaks = journal.streaks().unwrap_or_default();
    let paused = streaks.into_iter().filter(|streak| streak.paused.is_some()).map(|streak| streak.id);
    paused
        .filter(|id| loaded.definitions.get(id).is_some_and(|found| is_as_it_failed(found, &journal, context)))
        .collect()
}

/// An edit ends the pause. The service sees it at once, or when it is started again.
fn is_as_it_failed(definition: &Definition, journal: &JournalReader, context: &Context) -> bool {
    let last = RunFilter { id: Some(definition.id.clone()), limit: Some(1), ..RunFilter::default() };
    let fired = journal.runs(&last).ok().and_then(|mut runs| runs.pop()?.definition);
    let now = definition::read_text(&context.home, &definition.file).ok().flatten();
    fired.is_none() || fired == now
}

/// All definitions but these.
pub(super) fn others(loaded: &Loaded, paused: &BTreeSet<DefinitionId>) -> Vec<Arc<Definition>> {
    loaded.definitions.values().filter(|definition| !paused.contains(&definition.id)).cloned().collect()
}
