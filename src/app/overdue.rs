//! Occurrences that fell due and are not claimed, because nothing may start.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{JournalError, JournalReader, OccurrenceAccount};
use crate::schedule::{fires_after, occurrences};

/// Maximum number of occurrences of one definition to count, because a month of minutes takes a while to go through.
const COUNTED: usize = 1000;

/// The unclaimed occurrences of one definition that fell due.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The definition.
    pub definition: Arc<Definition>,
    /// Time of the first of them.
    pub since: DateTime<Utc>,
    /// Their number, at most 1,000.
    pub count: usize,
}

impl Overdue {
    /// Whether the count reached its maximum, so that there may be more.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.count == COUNTED
    }
}

/// Returns the occurrences due by `now` without a record, oldest first.
pub(super) fn overdue(
    definitions: &[Arc<Definition>],
    journal: &JournalReader,
    now: DateTime<Utc>,
) -> Result<Vec<Overdue>, JournalError> {
    let accounts = journal.accounts(definitions.iter().map(|definition| &definition.id))?;
    Ok(by_accounts(definitions, &accounts, now))
}

/// As [`overdue`]. `accounts`: up to when each routine has records.
fn by_accounts(
    definitions: &[Arc<Definition>],
    accounts: &HashMap<DefinitionId, OccurrenceAccount>,
    now: DateTime<Utc>,
) -> Vec<Overdue> {
    let of = |definition: &Arc<Definition>| {
        let account = accounts.get(&definition.id).filter(|_| definition.kind() == Kind::Routine);
        let after = match (definition.kind(), account) {
            // The service has not seen this routine yet, so it has no backlog.
            (Kind::Routine, None) => return None,
            (_, account) => account.map_or(DateTime::<Utc>::MIN_UTC, |account| account.until),
        };
        let has_record = |at: &DateTime<Utc>| account.is_some_and(|account| account.beyond.contains(at));
        // An occurrence that fired with another jitter is not due again.
        let after = fires_after(definition, after, account.map(|_| after));
        let due = occurrences(definition, after).take_while(|at| *at <= now);
        let mut due = due.filter(|at| !has_record(at)).take(COUNTED);
        let since = due.next()?;
        Some(Overdue { definition: Arc::clone(definition), since, count: 1 + due.count() })
    };
    let mut found: Vec<Overdue> = definitions.iter().filter(|definition| definition.enabled).filter_map(of).collect();
    found.sort_by(|a, b| (a.since, &a.definition.id).cmp(&(b.since, &b.definition.id)));
    found
}
