//! Folders that routines watch: what keeps one from being seen, and what a job writes there itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{App, policy};
use crate::definition::{Definition, DefinitionId, Problem, Severity};
use crate::run::watching::{Unwatched, place, writes_into};

/// What a person should know of them.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let watching = definitions.values().filter(|definition| definition.enabled);
    watching.filter_map(|definition| problem(definition, app)).collect()
}

fn problem(definition: &Definition, app: &App) -> Option<Problem> {
    let folder = definition.watches()?;
    // Where that is wrong, it is said elsewhere.
    let policy = policy::setup(definition, app).ok()?.policy;
    let (message, hint) = match place(folder, &policy, &app.home) {
        Ok(place) if writes_into(&place, &policy, &app.home) => (
            "it may write into the folder that it watches, and so set itself off".to_owned(),
            "have it write elsewhere; it is cut when it has set itself off 3 times within a minute",
        ),
        Ok(_) => return None,
        Err(why @ Unwatched::Missing(_)) => (why.to_string(), "make it: until then there is nothing to see"),
        Err(why) => (format!("it sees no changes: {why}"), "change `watch`, or what it says is in the way"),
    };
    Some(Problem::of_field(definition, "watch", Severity::Warning, message, hint))
}
