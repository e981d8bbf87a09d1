//! Commands that another program starts (`sudo find`, `ssh web cat`).

use crate::options;
use crate::programs::{self, Reach};

/// A command that another program starts. Nobody judges what it starts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassedOn {
    /// What it reaches. An operand of another command counts as none.
    pub reach: Reach,
    /// Whether its star would stand for a command or for a script that can start one.
    pub leaves_command_open: bool,
}

impl PassedOn {
    /// `words`: those of the whole line. `started`: the indices of the commands among them. `nth`: which of these it is.
    pub fn new(words: &[String], started: &[usize], nth: usize) -> Self {
        let entry = |at: usize| programs::by_base_name(&words[at]);
        let (before, at) = (&started[..nth], started[nth]);
        // The value of an option may have the name of a program (`sudo -u git rm x`).
        let may_be_value = |at: usize| words[at - 1].starts_with('-') && words[at - 1] != "--";
        let command = before.iter().rev().find(|at| !may_be_value(**at));
        // `ssh web grep env *`
        if command.is_some_and(|at| !entry(*at).starts_more()) {
            return Self { reach: Reach::Sandbox, leaves_command_open: false };
        }
        let reach = before.iter().map(|at| entry(*at).reach()).fold(entry(0).reach(), Reach::max);
        Self { reach, leaves_command_open: options::leaves_command_open(&words[at], &words[at + 1..]) }
    }
}
