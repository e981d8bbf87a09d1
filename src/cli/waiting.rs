//! What waits, as `status` shows it: for a slot, for another attempt, for `resume`, a login or the service.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::output::{Cell, FAINT, STRONG};
use super::{runs, times};
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{Account, RunRecord, RunState};
use crate::schedule::occurrences;

/// So many occurrences of one definition are counted: a month of minutes takes a moment to go through.
const COUNTED: usize = 1000;

/// What fell due of one definition and is not claimed, since nothing may start.
pub(super) struct Due {
    definition: Arc<Definition>,
    /// The first of them.
    since: DateTime<Utc>,
    /// How many, [`COUNTED`] at most.
    count: usize,
}

impl Due {
    /// The reminder that it is of, if it is of one: that has no other time to come.
    pub(super) fn reminder(&self) -> Option<&DefinitionId> {
        (self.definition.kind() == Kind::Reminder).then_some(&self.definition.id)
    }

    fn words(&self, now: DateTime<Utc>, zone: Tz) -> String {
        let times = match self.count {
            1 => return format!("due {}", times::relative(self.since, now)),
            COUNTED => format!("{COUNTED} times or more"),
            count => format!("{count} times"),
        };
        format!("due {times} since {} ({})", times::local(self.since, now, zone), times::relative(self.since, now))
    }
}

/// What fell due by `now` and has no record, oldest first. `accounts`: how far each routine has its records.
pub(super) fn due(
    definitions: &[Arc<Definition>],
    accounts: &HashMap<DefinitionId, Account>,
    now: DateTime<Utc>,
) -> Vec<Due> {
    let of = |definition: &Arc<Definition>| {
        let account = accounts.get(&definition.id).filter(|_| definition.kind() == Kind::Routine);
        let after = match (definition.kind(), account) {
            // The service has not seen it yet: it has no backlog.
            (Kind::Routine, None) => return None,
            (_, account) => account.map_or(DateTime::<Utc>::MIN_UTC, |account| account.until),
        };
        let has_record = |at: &DateTime<Utc>| account.is_some_and(|account| account.beyond.contains(at));
        let due = occurrences(definition, after).take_while(|at| *at <= now);
        let mut due = due.filter(|at| !has_record(at)).take(COUNTED);
        let since = due.next()?;
        Some(Due { definition: Arc::clone(definition), since, count: 1 + due.count() })
    };
    let mut found: Vec<Due> = definitions.iter().filter(|definition| definition.enabled).filter_map(of).collect();
    found.sort_by(|a, b| (a.since, &a.definition.id).cmp(&(b.since, &b.definition.id)));
    found
}

/// With the keys that others build on.
pub(super) fn as_json(due: &[Due]) -> Vec<Value> {
    due.iter()
        .map(|due| {
            json!({
                "id": due.definition.id,
                "kind": due.definition.kind(),
                "since": times::rfc3339(due.since, due.definition.zone),
                "count": due.count,
            })
        })
        .collect()
}

/// Lines of a table: what is claimed or was begun, then what is only due.
pub(super) fn rows<'a>(
    open: impl Iterator<Item = &'a RunRecord>,
    due: &[Due],
    now: DateTime<Utc>,
    zone: Tz,
) -> Vec<Vec<Cell>> {
    let open = open.map(|run| {
        let what = match run.outcome {
            RunState::Claimed if run.scheduled <= now => format!("due {}", times::relative(run.scheduled, now)),
            // A person has fired it before its time.
            RunState::Claimed => "claimed".to_owned(),
            RunState::Running | RunState::Interrupted => "was cut off".to_owned(),
            _ => runs::outcome(run, now),
        };
        row(run.run.as_str(), run.kind, &run.id, what)
    });
    let due = due.iter().map(|due| row("", due.definition.kind(), &due.definition.id, due.words(now, zone)));
    open.chain(due).collect()
}

fn row(run: &str, kind: Kind, id: &DefinitionId, what: String) -> Vec<Cell> {
    vec![Cell::new(run, STRONG), format!("{kind} {id}").into(), Cell::new(what, FAINT)]
}
