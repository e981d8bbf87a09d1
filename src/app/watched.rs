//! Folders that routines watch: why one cannot be watched, and which jobs write to them and so trigger each other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{App, policy, runs};
use crate::config::McpServer;
use crate::definition::{Definition, DefinitionId, Problem, Severity};
use crate::journal::JournalReader;
use crate::policy::Policy;
use crate::run::watching::{FolderLocation, Sight, WatchError, place, unwatched, writes_into};

/// A routine that fires on events.
struct EventRoutine {
    definition: Arc<Definition>,
    policy: Policy,
    /// The folder that it watches; `None` if it follows a job.
    place: Option<Result<FolderLocation, WatchError>>,
}

/// Returns the problems of routines that fire on events.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let enabled = || definitions.values().filter(|one| one.enabled);
    if !enabled().any(|one| one.watches().is_some()) {
        return Vec::new();
    }
    let seen = runs::open(app).map(|journal| unwatched(&journal)).unwrap_or_default();
    let eventful = enabled().filter(|one| one.watches().is_some() || one.follows().is_some()).filter_map(|one| {
        // Errors of the setup are reported elsewhere.
        let setup = policy::setup(one, app).ok()?;
        let place = one.watches().map(|folder| place(folder, &Sight::of(&setup, &app.home)));
        Some(EventRoutine { definition: Arc::clone(one), policy: setup.policy, place })
    });
    let all: Vec<EventRoutine> = eventful.collect();
    // Invalid settings are reported separately.
    let config = app.config().ok();
    let servers = config.as_ref().map_or(&[][..], |config| &config.mcp_servers);
    let rules = all.iter().map(|one| all.iter().map(|other| sets_off(one, other, app, servers)).collect()).collect();
    (0..all.len()).filter_map(|number| problem(number, &all, &rules, &seen)).collect()
}

/// Returns why a routine sees no changes now; `None` if it sees them, or watches nothing.
pub(super) fn blindness(definition: &Definition, journal: &JournalReader, app: &App) -> Option<String> {
    let folder = definition.watches()?;
    let setup = policy::setup(definition, app).ok()?;
    match place(folder, &Sight::of(&setup, &app.home)) {
        Err(why) => Some(why.to_string()),
        Ok(_) => unwatched(journal).remove(&definition.id),
    }
}

/// Stands for a rule if a job follows another.
const AFTER: &str = "after";

/// The rule by which a run of each job (row) may trigger each job (column).
type Rules = Vec<Vec<Option<String>>>;

/// Returns the rule, or `after`, by which a run of one job may trigger another; `None` if it cannot.
fn sets_off(one: &EventRoutine, other: &EventRoutine, app: &App, servers: &[McpServer]) -> Option<String> {
    if other.definition.follows().is_some_and(|follows| follows.job == one.definition.id) {
        return Some(AFTER.to_owned());
    }
    let place = other.place.as_ref()?.as_ref().ok()?;
    writes_into(place, &one.policy, &app.home, servers).filter(|_| !one.definition.is_delivered_as_written())
}

/// Returns the problem of one routine. `seen`: why the service could not watch its folder when it last looked.
fn problem(
    number: usize,
    all: &[EventRoutine],
    rules: &Rules,
    seen: &BTreeMap<DefinitionId, String>,
) -> Option<Problem> {
    let EventRoutine { definition, place, .. } = &all[number];
    let blind = |why: String| format!("it sees no changes: {why}");
    let (message, hint) = match (place.as_ref()?, seen.get(&definition.id)) {
        (Err(why @ WatchError::Missing(_)), _) => (why.to_string(), "make it: until then there is nothing to see"),
        (Err(why), _) => (blind(why.to_string()), "change `watch`, or what it says is in the way"),
        (Ok(_), Some(why)) => (blind(why.clone()), "so the service found when it looked last; do what it says"),
        (Ok(_), None) => (
            of_circle(number, all, rules)?,
            "have it write elsewhere; it is cut when it has set itself off 3 times in a row",
        ),
    };
    Some(Problem::of_field(definition, "watch", Severity::Warning, message, hint))
}

/// Says that a job may trigger itself, directly or through others.
fn of_circle(number: usize, all: &[EventRoutine], rules: &Rules) -> Option<String> {
    let way = way_back(number, rules)?;
    let [others @ .., _] = way.as_slice() else { return None };
    if others.is_empty() {
        let rule = rules[number][number].as_deref().unwrap_or_default();
        return Some(format!("it may write into the folder that it watches, and so set itself off: by `{rule}`"));
    }
    let from = std::iter::once(&number).chain(others);
    let links = from.zip(&way).map(|(from, to)| {
        let [by, set_off] = [from, to].map(|number| &all[*number].definition.id);
        match rules[*from][*to].as_deref() {
            Some(AFTER) | None => format!("`{set_off}` follows `{by}`"),
            Some(rule) => format!("`{by}` may write where `{set_off}` watches, by `{rule}`"),
        }
    });
    let links: Vec<String> = links.collect();
    Some(format!("it may set itself off in a circle: {}", links.join("; ")))
}

/// Returns the shortest way from a job back to itself: the jobs in between, then the job itself.
fn way_back(number: usize, rules: &Rules) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([number]);
    while let Some(at) = queue.pop_front() {
        for next in (0..rules.len()).filter(|next| rules[at][*next].is_some()) {
            if before.contains_key(&next) {
                continue;
            }
            before.insert(next, at);
            if next == number {
                let mut way = vec![number];
                let mut step = at;
                while step != number {
                    way.insert(0, step);
                    step = *before.get(&step)?;
                }
                return Some(way);
            }
            queue.push_back(next);
        }
    }
    None
}
