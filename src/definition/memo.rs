//! Answers that are worked out once: many definitions share few expressions and tool patterns.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, PoisonError, RwLock};

/// So many answers are remembered; then it begins anew.
const MOST: usize = 4096;

/// The answers to one question, which never change.
pub(super) struct Memo<Q: ?Sized + ToOwned, A>(LazyLock<RwLock<HashMap<Q::Owned, A>>>);

impl<Q: ?Sized + ToOwned + Hash + Eq, A: Clone> Memo<Q, A>
where
    Q::Owned: Borrow<Q> + Hash + Eq,
{
    pub(super) const fn new() -> Self {
        Self(LazyLock::new(RwLock::default))
    }

    /// The answer for `asked`: the one that is remembered, else what `work_out` says.
    pub(super) fn get(&self, asked: &Q, work_out: impl FnOnce() -> A) -> A {
        self.view(asked, work_out, A::clone)
    }

    /// What `look` sees in that answer.
    pub(super) fn view<V>(&self, asked: &Q, work_out: impl FnOnce() -> A, look: impl Fn(&A) -> V) -> V {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(asked) {
            return look(known);
        }
        let answer = work_out();
        let seen = look(&answer);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(asked.to_owned(), answer);
        seen
    }
}
