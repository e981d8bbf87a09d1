//! Reports why jobs cannot wake the machine from sleep.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{App, runs};
use crate::clock::Waker;
use crate::definition::{Definition, DefinitionId, Problem, Severity};
use crate::schedule::cannot_wake;

/// Returns the problems of jobs that wake the machine.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let waking: Vec<_> = definitions.values().filter(|one| one.enabled && one.wake).collect();
    if waking.is_empty() {
        return Vec::new();
    }
    // A service that never ran has not looked.
    let seen = runs::open(app).ok().and_then(|journal| cannot_wake(&journal));
    let unseen = || if app.home.journal().exists() { None } else { Waker::lacks_clock() };
    let Some(why) = seen.or_else(unseen) else { return Vec::new() };
    let message = format!("it does not wake the machine: {why}");
    let hint = "docs/service.md, \"Waking the machine\", says what it takes; or remove `wake`";
    let problem =
        |definition: &Arc<Definition>| Problem::of_field(definition, "wake", Severity::Warning, message.clone(), hint);
    waking.into_iter().map(problem).collect()
}
