//! The commands that a rule `Bash(ollim-bot NAME …)` can name.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

type Names = BTreeSet<String>;

/// Every NAME for which `ollim-bot NAME` is a command on this machine. The default knows none.
#[derive(Clone, Debug)]
pub struct KnownCommands {
    own: Arc<Names>,
    /// Computed when a rule names none of `own`: a search path can be long.
    others: Arc<LazyLock<Names, Box<dyn FnOnce() -> Names + Send>>>,
}

impl KnownCommands {
    /// Takes the commands of the data folder, and a function that finds all others when they are needed.
    pub fn new(own: Names, others: impl FnOnce() -> Names + Send + 'static) -> Self {
        Self { own: Arc::new(own), others: Arc::new(LazyLock::new(Box::new(others))) }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.own.contains(name) || self.others.contains(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &String> {
        self.own.iter().chain(self.others.iter())
    }
}

impl Default for KnownCommands {
    fn default() -> Self {
        Self::new(Names::new(), Names::new)
    }
}

impl<const N: usize> From<[&str; N]> for KnownCommands {
    fn from(names: [&str; N]) -> Self {
        Self::new(names.map(String::from).into(), Names::new)
    }
}
