//! Slow work that is done a moment before an occurrence falls due, so that its run begins at once.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::Dispatcher;
use crate::definition::DefinitionId;
use crate::journal::RunId;

/// Time before an occurrence falls due at which the launcher gets ready for it. That takes some milliseconds, and more on a busy machine. What
/// is ready for an earlier occurrence is not there for this one, so the time is short.
const LEAD: TimeDelta = TimeDelta::milliseconds(100);

/// Maximum number of occurrences of one moment that are looked at.
const MAX_SEEN: usize = 16;

/// The moment that the launcher is ready for.
#[derive(Debug, Default)]
pub(super) struct PreparedMoment {
    due: Option<DateTime<Utc>>,
    /// The attempt that is prepared: its definition, and its id.
    first: Option<(DefinitionId, RunId)>,
}

impl PreparedMoment {
    /// Returns the id of the attempt that is prepared for an occurrence, if one is.
    pub(super) fn run_of(&self, id: &DefinitionId, at: DateTime<Utc>) -> Option<RunId> {
        let is_it = |(of, _): &&(DefinitionId, RunId)| self.due == Some(at) && of == id;
        self.first.as_ref().filter(is_it).map(|(_, run)| run.clone())
    }
}

impl Dispatcher {
    /// Has the launcher get ready if an occurrence that starts processes falls due in a moment, at `due`. Returns when to look again.
    pub(super) fn prepare(&mut self, due: DateTime<Utc>) -> DateTime<Utc> {
        if self.prepared.due == Some(due) {
            return due;
        }
        if self.clock.now() < due - LEAD {
            return due - LEAD;
        }
        let mut upcoming = self.definitions.upcoming(MAX_SEEN).into_iter().filter(|(at, _)| *at <= due);
        let first = upcoming.find(|(_, definition)| !self.launcher.is_message_only(definition));
        let first = first.map(|(_, definition)| {
            let run = RunId::random();
            self.launcher.get_ready();
            Arc::clone(&self.launcher).get_ready_for(&definition, &run);
            (definition.id.clone(), run)
        });
        self.prepared = PreparedMoment { due: Some(due), first };
        due
    }
}
