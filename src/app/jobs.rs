//! Finds, lists and shows definitions.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::suppressed::paused;
use super::upcoming::FirstOccurrences;
use super::{App, Caller, push, runs, service, words};
use crate::channel::terminal::plain;
use crate::definition::{self, Definition, DefinitionId, Kind, Loaded, Problem};
use crate::heartbeat;
use crate::journal::{NOT_APPROVED, RunState, SKIPPED};
use crate::refusal::Refusal;

/// A definition and its next occurrence.
#[derive(Clone, Debug)]
pub struct Job {
    /// The definition.
    pub definition: Arc<Definition>,
    /// Time of the next occurrence; `None` if there is none, or the definition is disabled or paused.
    pub next: Option<DateTime<Utc>>,
    /// Whether it is paused after failures.
    pub paused: bool,
    /// The state of its run that is not over; `None` if there is none, or a list did not ask. A run without a service was cut off.
    pub open: Option<RunState>,
}

impl Job {
    /// Returns a job that is not paused.
    pub(super) fn of(definition: Arc<Definition>, app: &App) -> Self {
        let next = FirstOccurrences::after(app.now(), app).of(&definition);
        Self { definition, next, paused: false, open: None }
    }

    /// Returns the state of its run that is not over: `running`, `was cut off`.
    #[must_use]
    pub fn open_words(&self) -> Option<String> {
        Some(match self.open? {
            RunState::Interrupted => "was cut off".to_owned(),
            RunState::Failed | RunState::TimedOut => "is tried again".to_owned(),
            state => words::state(state),
        })
    }

    /// Reduces the URL of its monitor to the host.
    pub(super) fn hide_monitor(&mut self) {
        if let Some(url) = &self.definition.heartbeat_url {
            let shown = heartbeat::shown(url);
            Arc::make_mut(&mut self.definition).heartbeat_url = Some(shown);
        }
    }
}

/// All definitions of a kind.
#[derive(Debug)]
pub struct JobList {
    /// Their kind.
    pub kind: Kind,
    /// Sorted by next time; definitions that never fall due come last.
    pub jobs: Vec<Job>,
    /// Reminders that failed.
    pub failed: Vec<FailedJob>,
    /// Problems of files, errors only.
    pub errors: Vec<Problem>,
    /// Number of definitions of the database that fall due later than these.
    pub left_out: u64,
    /// Number of definitions of the database that do not fall due: disabled, or without a next time.
    pub not_coming: u64,
}

/// A reminder whose file is kept in `reminders/failed/`.
#[derive(Clone, Debug)]
pub struct FailedJob {
    /// Its id.
    pub id: DefinitionId,
    /// Why it failed.
    pub reason: Option<String>,
}

impl FailedJob {
    /// Returns whether the person skipped it, rather than that it failed.
    #[must_use]
    pub fn is_skipped_by_the_person(&self) -> bool {
        self.reason.as_deref().is_some_and(is_skipped_by_the_person)
    }
}

/// Returns whether the person skipped the reminder, by the reason that its file in `reminders/failed/` gives.
pub(super) fn is_skipped_by_the_person(reason: &str) -> bool {
    let state = RunState::Skipped.to_string();
    let end = reason.strip_prefix(&*state).and_then(|rest| rest.strip_prefix(": ")?.strip_prefix(NOT_APPROVED));
    end.is_some_and(|end| end.starts_with(SKIPPED))
}

/// Number of definitions of the database in a list: those that fall due next.
const OF_DATABASE: usize = 20;

/// Lists all definitions of a kind, of those of the database the next ones.
pub(super) fn list(kind: Kind, app: &App) -> Result<JobList, Refusal> {
    let mut loaded = app.load_kind(kind)?;
    let (left_out, not_coming) = match runs::open(app) {
        Ok(journal) => {
            let counts = journal.pushed_counts(Some(kind))?;
            (push::add_next(&mut loaded, Some(kind), OF_DATABASE, &journal, app)?, counts.all - counts.coming)
        }
        Err(_) => (0, 0),
    };
    // A reminder is never paused.
    let paused = if kind != Kind::Reminder { paused(&loaded, app) } else { BTreeSet::new() };
    let mut firsts = FirstOccurrences::after(app.now(), app);
    let open = if kind == Kind::Reminder { open_states(app)? } else { HashMap::new() };
    let definitions = loaded.definitions;
    let mut jobs = Vec::with_capacity(definitions.len());
    for definition in definitions.values() {
        let paused = paused.contains(&definition.id);
        let next = firsts.of(definition).filter(|_| !paused);
        let open = open.get(&definition.id).copied();
        jobs.push(Job { definition: Arc::clone(definition), next, paused, open });
    }
    jobs.sort_by(|a, b| {
        let key = |job: &Job| (job.next.is_none(), job.next);
        key(a).cmp(&key(b)).then_with(|| a.definition.id.cmp(&b.definition.id))
    });
    let failed = match kind {
        Kind::Reminder => definition::failed_reminders(&app.home, &app.defaults()?)?,
        _ => Vec::new(),
    };
    let failed = failed
        .into_iter()
        // Only the person sees why a run failed.
        .filter_map(|failed| {
            let reason = failed.reason.filter(|_| matches!(app.caller, Caller::Person));
            Some(FailedJob { id: failed.parsed.definition?.id, reason })
        })
        .collect();
    let errors = loaded.problems.into_iter().filter(Problem::is_error).collect();
    Ok(JobList { kind, jobs, failed, errors, left_out, not_coming })
}

/// Returns the state of each run that is not over, by job. Without a service none runs.
fn open_states(app: &App) -> Result<HashMap<DefinitionId, RunState>, Refusal> {
    let unfinished = runs::open(app).and_then(|journal| Ok(journal.unfinished()?)).unwrap_or_default();
    let is_any_running = unfinished.iter().any(|run| run.outcome == RunState::Running);
    let is_off = is_any_running && matches!(service::status(app), Ok(None));
    let state = |state| if is_off && state == RunState::Running { RunState::Interrupted } else { state };
    Ok(unfinished.into_iter().map(|run| (run.id, state(run.outcome))).collect())
}

/// Returns one definition.
pub(super) fn show(kind: Option<Kind>, id: &str, app: &App) -> Result<Job, Refusal> {
    let loaded = app.load_with([id])?;
    let definition = find_readable(id, kind, &loaded)?;
    let paused = paused(&loaded, app).contains(&definition.id);
    let job = Job::of(definition, app);
    Ok(Job { next: job.next.filter(|_| !paused), paused, ..job })
}

/// Minimum number of characters by which a command that changes a job accepts the beginning of its id.
const SHORTEST: usize = 4;

/// Finds a definition for a command that changes something. `name` is its id, its file, its file's name, or an
/// unambiguous beginning of its id or its file's name with at least [`SHORTEST`] characters.
///
/// # Errors
/// If there is none, or its file has an error.
pub(super) fn find(name: &str, kind: Option<Kind>, loaded: &Loaded) -> Result<Arc<Definition>, Refusal> {
    let found = find_readable(name, kind, loaded)?;
    if name.chars().count() >= SHORTEST || find_exact(name, loaded).is_some() {
        return Ok(found);
    }
    let what = kind.map_or_else(|| "job".to_owned(), |kind| kind.to_string());
    Err(Refusal::user(format!("there is no {what} `{name}`")).hint(format!(
        "write `{}`: what changes something takes the beginning of an id from {SHORTEST} letters on",
        found.id
    )))
}

/// Finds a definition for a command that changes nothing. Unlike in [`find`], the beginning may be of any length.
///
/// # Errors
/// If there is none, or its file has an error.
pub(super) fn find_readable(name: &str, kind: Option<Kind>, loaded: &Loaded) -> Result<Arc<Definition>, Refusal> {
    let wanted = |definition: &&Arc<Definition>| kind.is_none_or(|kind| definition.kind() == kind);
    if let Some(exact) = find_exact(name, loaded).filter(wanted) {
        return Ok(Arc::clone(exact));
    }
    let begins = |definition: &&Arc<Definition>| {
        definition.id.as_str().starts_with(name) || own_stem(definition).is_some_and(|stem| stem.starts_with(name))
    };
    let all = loaded.definitions.values().filter(wanted);
    let named: Vec<&Arc<Definition>> = all.filter(|definition| !name.is_empty() && begins(definition)).collect();
    match named[..] {
        [one] => Ok(Arc::clone(one)),
        [] => Err(not_found(name, kind, loaded)),
        _ => {
            let ids: Vec<&str> = named.iter().take(5).map(|definition| definition.id.as_str()).collect();
            Err(Refusal::user(format!("`{name}` is the beginning of more than one id"))
                .hint(format!("write the whole of it: {}", ids.join(", "))))
        }
    }
}

/// Returns the definition with this id, file or file name. An id takes precedence over a file name.
pub(super) fn find_exact<'a>(name: &str, loaded: &'a Loaded) -> Option<&'a Arc<Definition>> {
    loaded.definitions.get(&DefinitionId::new(name)).or_else(|| {
        let named =
            |definition: &&Arc<Definition>| definition.file.as_os_str() == name || own_stem(definition) == Some(name);
        loaded.definitions.values().find(named)
    })
}

/// Returns the name of a file that stands for its job. That of a job that another job made does not: it could be the name of another.
fn own_stem(definition: &Definition) -> Option<&str> {
    stem(&definition.file).filter(|_| definition.created_by.is_none())
}

/// Returns the only one of `ids` that begins with `name`, for a command that changes something.
pub(super) fn begins_with<'a>(name: &str, ids: impl IntoIterator<Item = &'a DefinitionId>) -> Option<&'a DefinitionId> {
    let mut found = ids.into_iter().filter(|id| id.as_str().starts_with(name));
    let first = found.next().filter(|_| name.chars().count() >= SHORTEST)?;
    found.all(|other| other == first).then_some(first)
}

/// Returns a file's name without `.md`.
pub(super) fn stem(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str()
}

/// Finds a file with an error, by its id, its name, or an unambiguous beginning of one with at least [`SHORTEST`] characters.
pub(super) fn find_broken<'a>(name: &str, kind: Option<Kind>, loaded: &'a Loaded) -> Option<&'a Problem> {
    let of_kind = |problem: &&Problem| kind.is_none_or(|kind| problem.file.starts_with(format!("{kind}s")));
    let errors = || loaded.problems.iter().filter(|problem| problem.is_error() && problem.id.is_some()).filter(of_kind);
    let any = |problem: &Problem, is: fn(&str, &str) -> bool| {
        problem.id.as_ref().is_some_and(|id| is(id.as_str(), name))
            || stem(&problem.file).is_some_and(|stem| is(stem, name))
    };
    let exact = |problem: &&Problem| problem.file.as_os_str() == name || any(problem, |known, name| known == name);
    if let Some(problem) = errors().find(exact) {
        return Some(problem);
    }
    let mut begin = errors().filter(|problem| any(problem, |known, name| known.starts_with(name)));
    let first = begin.next().filter(|_| name.chars().count() >= SHORTEST)?;
    begin.all(|other| other.file == first.file).then_some(first)
}

fn not_found(name: &str, kind: Option<Kind>, loaded: &Loaded) -> Refusal {
    let what = kind.map_or_else(|| "job".to_owned(), |kind| kind.to_string());
    if let Some(problem) = find_broken(name, kind, loaded) {
        return Refusal::user(format!("{what} `{name}` has an error in its file: {}", problem.message))
            .hint(format!("`ollim-bot check {}` says where", problem.file.display()));
    }
    if kind.is_none_or(|kind| kind == Kind::Reminder)
        && let Some(failed) = definition::failed_names(&loaded.home).into_iter().find(|failed| failed.as_str() == name)
    {
        return Refusal::user(format!("reminder `{failed}` has failed and is kept in reminders/failed/"))
            .hint(format!("`ollim-bot reminder retry {failed}` brings it back"));
    }
    if let Some(other) = find_exact(name, loaded) {
        return Refusal::user(format!("`{name}` is a {}, not a {what}", other.kind()))
            .hint(format!("use `ollim-bot {} …`", other.kind()));
    }
    let of_kind = loaded.definitions.values().filter(|definition| kind.is_none_or(|kind| definition.kind() == kind));
    let error = Refusal::user(format!("there is no {what} `{name}`"));
    match nearest(name, of_kind.map(|definition| &definition.id)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(match kind {
            Some(kind) => format!("`ollim-bot {kind} list` shows them"),
            None => "`ollim-bot next`, `ollim-bot routine list` and `ollim-bot reminder list` show them".to_owned(),
        }),
    }
}

/// Returns the id that is most similar to `name`, if one is similar enough.
pub(super) fn nearest<'a>(name: &str, ids: impl IntoIterator<Item = &'a DefinitionId>) -> Option<&'a DefinitionId> {
    // The time to measure a distance grows with the product of both lengths.
    let name = Some(name).filter(|name| name.len() < 100)?;
    ids.into_iter()
        .map(|id| (strsim::damerau_levenshtein(name, id.as_str()), id))
        // Of a short name, two other letters make another word.
        .filter(|(distance, _)| *distance <= 1 || (*distance == 2 && name.len() > 5))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, id)| id)
}

/// Returns the description, else the beginning of the body.
#[must_use]
pub fn summary(definition: &Definition) -> String {
    const LONGEST: usize = 60;
    let text = if definition.description.is_empty() {
        let texts = [Some(&definition.body), definition.command.as_ref()].into_iter().flatten();
        texts.flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    } else {
        &definition.description
    };
    let text = plain(text);
    if text.chars().count() <= LONGEST {
        return text;
    }
    let end = text.char_indices().nth(LONGEST - 1).map_or(text.len(), |(end, _)| end);
    // A word that fills all of it is broken.
    let blank = if text[end..].starts_with(' ') { Some(end) } else { text[..end].rfind(' ').filter(|at| *at > 0) };
    format!("{}…", text[..blank.unwrap_or(end)].trim_end())
}
