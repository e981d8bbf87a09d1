//! Folders that routines watch: what keeps one from being seen, and what a job writes there itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{App, policy, runs};
use crate::definition::{Definition, DefinitionId, Problem, Severity};
use crate::run::watching::{Unwatched, place, unwatched, writes_into};

/// What a person should know of them.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let watching: Vec<_> = definitions.values().filter(|one| one.enabled && one.watches().is_some()).collect();
    if watching.is_empty() {
        return Vec::new();
    }
    let seen = runs::open(app).map(|journal| unwatched(&journal)).unwrap_or_default();
    watching.into_iter().filter_map(|definition| problem(definition, seen.get(&definition.id), app)).collect()
}

/// `seen`: what the service saw last that keeps it from watching.
fn problem(definition: &Definition, seen: Option<&String>, app: &App) -> Option<Problem> {
    let folder = definition.watches()?;
    // Where that is wrong, it is said elsewhere.
    let policy = policy::setup(definition, app).ok()?.policy;
    let blind = |why: String| format!("it sees no changes: {why}");
    let (message, hint) = match (place(folder, &policy, &app.home), seen) {
        (Err(why @ Unwatched::Missing(_)), _) => (why.to_string(), "make it: until then there is nothing to see"),
        (Err(why), _) => (blind(why.to_string()), "change `watch`, or what it says is in the way"),
        (Ok(_), Some(why)) => (blind(why.clone()), "so the service found when it looked last; do what it says"),
        (Ok(place), None) if writes_into(&place, &policy, &app.home) => (
            "it may write into the folder that it watches, and so set itself off".to_owned(),
            "have it write elsewhere; it is cut when it has set itself off 3 times within a minute",
        ),
        (Ok(_), None) => return None,
    };
    Some(Problem::of_field(definition, "watch", Severity::Warning, message, hint))
}
