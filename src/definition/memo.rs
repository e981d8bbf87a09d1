//! Answers that are worked out once: many definitions share few expressions and tool patterns.
//!
//! Each thread has its own, in a `thread_local!`: what two threads ask for all the time is slow to share, even for reading.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

/// So many answers are remembered; then it begins anew.
const MOST: usize = 4096;

/// The answers to one question, which never change.
pub(super) struct Memo<Q: ?Sized + ToOwned, A>(RefCell<HashMap<Q::Owned, A>>);

impl<Q: ?Sized + ToOwned + Hash + Eq, A> Memo<Q, A>
where
    Q::Owned: Borrow<Q> + Hash + Eq,
{
    pub(super) fn new() -> Self {
        Self(RefCell::default())
    }

    /// What `look` sees in the answer for `asked`: the one that is remembered, else what `work_out` says.
    pub(super) fn view<V>(&self, asked: &Q, work_out: impl FnOnce() -> A, look: impl FnOnce(&A) -> V) -> V {
        if let Some(known) = self.0.borrow().get(asked) {
            return look(known);
        }
        let answer = work_out();
        let seen = look(&answer);
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(asked.to_owned(), answer);
        seen
    }

    /// A copy of the answer.
    pub(super) fn get(&self, asked: &Q, work_out: impl FnOnce() -> A) -> A
    where
        A: Clone,
    {
        self.view(asked, work_out, A::clone)
    }
}
