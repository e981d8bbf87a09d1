//! The accounts of a turn: the verdicts on calls, and the requests that our server has not answered yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Verdicts on calls. Clones share one account.
#[derive(Clone, Default)]
pub(super) struct VerdictLedger(Arc<Mutex<LedgerState>>);

#[derive(Default)]
struct LedgerState {
    /// Whether each call was allowed, by the client's id of the call.
    calls: HashMap<String, bool>,
    /// Number of approved calls that have not arrived at our server yet, by the client's name of the tool.
    approved: BTreeMap<String, u32>,
}

impl VerdictLedger {
    /// Records the host's verdict. A call judged twice, as a hook and as a permission, still counts as one approval.
    pub(super) fn give(&self, call: String, tool: String, allow: bool) {
        let mut given = self.lock();
        let before = given.calls.insert(call, allow);
        if allow && before != Some(true) {
            *given.approved.entry(tool).or_default() += 1;
        }
    }

    /// Records that a call did not run although the host was not asked. Returns whether no verdict was recorded before.
    pub(super) fn refused_unasked(&self, call: &str) -> bool {
        let mut given = self.lock();
        let news = !given.calls.contains_key(call);
        if news {
            given.calls.insert(call.to_string(), false);
        }
        news
    }

    /// Returns whether the host has allowed a call.
    pub(super) fn is_allowed(&self, call: &str) -> bool {
        self.lock().calls.get(call) == Some(&true)
    }

    /// Records that a call was denied, whatever the verdict before. Returns whether this changes the verdict.
    pub(super) fn refused(&self, call: &str) -> bool {
        self.lock().calls.insert(call.to_string(), false) != Some(false)
    }

    /// Uses up one approval of the tool. Returns `false` if there is none.
    pub(super) fn redeem(&self, tool: &str) -> bool {
        let mut given = self.lock();
        let left = given.approved.get_mut(tool).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's open requests at our server, each under an id of our own. The client has several conversations with the
/// server at once, and each of them numbers its requests from zero.
#[derive(Default)]
pub(super) struct OpenRequests {
    open: BTreeMap<u64, Question>,
    last: u64,
}

/// A request of the client to our server.
pub(super) struct Question {
    /// The id of the control request that carried it.
    pub request: String,
    /// The JSON-RPC id that the client chose.
    pub rpc: Value,
}

impl OpenRequests {
    /// Returns the number of open requests.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Opens a request and returns the id under which the server answers.
    pub(super) fn open(&mut self, request: &str, rpc: Value) -> u64 {
        self.last += 1;
        self.open.insert(self.last, Question { request: request.to_string(), rpc });
        self.last
    }

    /// Closes a request and returns it, if it is open.
    pub(super) fn close(&mut self, id: u64) -> Option<Question> {
        self.open.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_good_for_one_call() {
        let verdicts = VerdictLedger::default();
        assert!(!verdicts.redeem("ping"));
        verdicts.give("1".into(), "ping".into(), true);
        verdicts.give("1".into(), "ping".into(), true);
        verdicts.give("2".into(), "ping".into(), false);
        assert!(verdicts.redeem("ping"));
        assert!(!verdicts.redeem("ping"));
        assert!(verdicts.refused_unasked("3") && !verdicts.refused_unasked("3") && !verdicts.refused_unasked("1"));
        assert!(!verdicts.refused("2") && !verdicts.refused("3"));
        assert!(verdicts.refused("1") && !verdicts.refused("1") && verdicts.refused("4"));
    }

    #[test]
    fn equal_ids_of_two_conversations_are_two_questions() {
        let mut at_server = OpenRequests::default();
        let (a, b) = (at_server.open("a", 1.into()), at_server.open("b", 1.into()));
        assert_eq!(at_server.len(), 2);
        assert_eq!(at_server.close(b).unwrap().request, "b");
        assert_eq!(at_server.close(a).unwrap().rpc, 1);
        assert!(at_server.close(a).is_none());
    }
}
