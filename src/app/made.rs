//! Jobs that other jobs have made: those that have more rights than their makers by now, and those whose makers are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{App, Caller, runs};
use crate::definition::{Definition, DefinitionId, Kind, Problem, Severity};
use crate::refusal::Refusal;
use crate::run::limits::{MakersOf, in_database, last_run, limit, needs_approval};
use crate::run::runner::RunSettings;

type Definitions = BTreeMap<DefinitionId, Arc<Definition>>;

/// Returns a job as its runs are limited by its makers, with the approval that they ask for.
///
/// # Errors
/// A sentence that names the right which it has and a maker does not have, or an error of the journal.
pub(super) fn limited(job: &Definition, definitions: &Definitions, app: &App) -> Result<Definition, Refusal> {
    let makers = makers_of(job, definitions, app)?;
    let limited = limit(job, &makers, &RunSettings::of(&*app.config()?), &app.places())?;
    Ok(Definition { approve: needs_approval(job, &makers), ..limited })
}

/// Returns a job with the approval that its makers ask for. If they cannot be read, it does not run at all, and is as in its file.
pub(super) fn with_approval(job: &Arc<Definition>, definitions: &Definitions, app: &App) -> Arc<Definition> {
    let is_asked = |makers: Vec<_>| needs_approval(job, &makers);
    match job.approve || job.created_by.is_none() || !makers_of(job, definitions, app).is_ok_and(is_asked) {
        true => Arc::clone(job),
        false => Arc::new(Definition { approve: true, ..Definition::clone(job) }),
    }
}

/// Returns the makers that limit a job.
fn makers_of(job: &Definition, definitions: &Definitions, app: &App) -> Result<Vec<Arc<Definition>>, Refusal> {
    let mut makers = MakersOf::default();
    while let Some(id) = makers.next(job) {
        if let Some(found) = present(&id, definitions) {
            makers.add(Arc::clone(found));
            continue;
        }
        let (journal, defaults) = (runs::open(app)?, app.defaults()?);
        match in_database(&id, &app.home, &defaults, &journal)?? {
            Some(pushed) => makers.add(Arc::new(pushed)),
            None => match last_run(&id, &defaults, &journal)?? {
                Some(gone) => makers.add(Arc::new(gone)),
                None => return Err(MakersOf::unknown(&id)),
            },
        }
    }
    makers.limits()
}

/// Warns of jobs that do not run, since a maker has less by now, and of routines whose makers are gone. Only for the person: a job could
/// make lists that take long to compare.
pub(super) fn problems(definitions: &Definitions, app: &App) -> Vec<Problem> {
    if !matches!(app.caller, Caller::Person) {
        return Vec::new();
    }
    let problem = |definition: &Arc<Definition>| {
        let id = definition.created_by.as_ref()?;
        let more = "it does not run while it has more rights than its maker; change one of the files, or remove its line `created_by`";
        let (message, hint) = match limited(definition, definitions, app) {
            Err(mut why) => (why.reason, why.hints.pop().unwrap_or_else(|| more.to_owned())),
            Ok(_) if definition.kind() == Kind::Reminder || !is_gone(id, definitions, app) => return None,
            Ok(_) => (
                format!("`{id}`, which made it, is gone, and it keeps the rights that `{id}` had last"),
                "remove the file; or, if you want it, remove its line `created_by`".to_owned(),
            ),
        };
        Some(Problem::of_field(definition, "created_by", Severity::Warning, message, hint))
    };
    definitions.values().filter_map(problem).collect()
}

/// Returns the definition with an id. For a chain's first reminder that is gone, its waiting check.
fn present<'a>(id: &DefinitionId, definitions: &'a Definitions) -> Option<&'a Arc<Definition>> {
    definitions.get(id).or_else(|| definitions.values().find(|one| one.is_check_of(id)))
}

/// Returns whether neither a file nor the database has a definition.
fn is_gone(id: &DefinitionId, definitions: &Definitions, app: &App) -> bool {
    let is_pushed = || runs::open(app).and_then(|journal| Ok(!journal.pushed(std::slice::from_ref(id))?.is_empty()));
    present(id, definitions).is_none() && !is_pushed().unwrap_or(true)
}
