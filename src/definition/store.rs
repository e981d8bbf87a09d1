//! All definitions of a data folder, and the effect of file changes on them.
//!
//! The store keeps the definition of each file separate from the definitions in force. An id that two valid files claim is in
//! force in neither; when one of them disappears, the other is in force again. Only changed files are read again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::parse::made_by;
use super::problem::quoted;
use super::{
    Defaults, Definition, DefinitionError, DefinitionId, Kind, Parsed, Problem, Severity, agent, persona, read, skill,
};
use crate::home::Home;

/// The definitions and problems of a data folder at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The definitions in force, by id.
    pub definitions: BTreeMap<DefinitionId, Arc<Definition>>,
    /// All problems, by file, in the order of each file.
    pub problems: Vec<Problem>,
    /// The maker of each file that a job has made, also of those that are not in force.
    pub makers: Vec<DefinitionId>,
    /// The data folder that was read.
    pub home: Home,
}

/// Reads all folders once. A folder that has never been made is empty.
///
/// # Errors
/// [`DefinitionError::NoHome`] when there is no data folder.
pub fn load(home: &Home, defaults: &Defaults) -> Result<Loaded, DefinitionError> {
    Ok(Store::open(home, defaults.clone())?.loaded())
}

/// Loads the definitions of one kind. Reads the other folders too, since an id that two files claim is in force in neither.
///
/// # Errors
/// [`DefinitionError::NoHome`] when there is no data folder.
pub fn load_kind(home: &Home, kind: Kind, defaults: &Defaults) -> Result<Loaded, DefinitionError> {
    Ok(load(home, defaults)?.of_kind(kind))
}

impl Loaded {
    /// Keeps the definitions and problems of one kind.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.definitions.retain(|_, definition| definition.kind() == kind);
        self.problems.retain(|problem| problem.file.starts_with(read::folder_of(kind)));
        self
    }
}

impl Loaded {
    /// Returns whether a routine `id` that followed `job` would follow itself, directly or through others.
    #[must_use]
    pub fn closes_circle(&self, id: &DefinitionId, job: &DefinitionId) -> bool {
        let next = |at: &&DefinitionId| self.definitions.get(*at)?.follows().map(|follows| &follows.job);
        // Each routine follows at most one job.
        std::iter::successors(Some(job), next).take(self.definitions.len() + 1).any(|at| at == id)
    }
}

/// The effect of file changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A definition is new, or its file's text changed, even if only in a comment.
    Upsert(Arc<Definition>),
    /// No valid definition has this id any more.
    Removed(DefinitionId),
    /// The problems of one file now; empty if they were fixed or the file is gone.
    Problems {
        /// The file, relative to the data folder.
        file: PathBuf,
        /// All of its problems.
        problems: Vec<Problem>,
    },
}

/// The definitions of a data folder, kept up to date file by file.
#[derive(Debug)]
pub struct Store {
    home: Home,
    defaults: Defaults,
    files: BTreeMap<File, State>,
    /// The valid files that claim an id, in no order. Only a single claim is in force.
    claims: HashMap<DefinitionId, Vec<File>>,
    /// Routines that follow one another in a circle, each with the job that it follows. None is in force.
    circles: BTreeMap<DefinitionId, DefinitionId>,
}

/// A path relative to the data folder. A `PathBuf` compares component by component, which takes longer for many files
/// than reading them.
type File = Arc<OsStr>;

fn key(file: &Path) -> File {
    file.as_os_str().into()
}

/// The content of one file by itself. For an unreadable folder: its problem.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    definition: Option<Arc<Definition>>,
    /// The text of the definition, so that a changed comment counts as a change.
    text: Option<Arc<str>>,
    problems: Vec<Problem>,
}

impl State {
    fn of((parsed, text): (Parsed, Option<Arc<str>>)) -> Self {
        let definition = parsed.definition.map(Arc::new);
        Self { text, definition, problems: parsed.problems }
    }

    fn made_by(&self) -> Option<&DefinitionId> {
        made_by(self.definition.as_deref(), &self.problems)
    }
}

/// A definition and the text of its file.
type Read = (Arc<Definition>, Option<Arc<str>>);

/// The state before a change, of everything that the change affects.
#[derive(Default)]
struct OldState {
    definitions: BTreeMap<DefinitionId, Option<Read>>,
    problems: BTreeMap<File, Vec<Problem>>,
}

impl Store {
    /// Reads all folders.
    ///
    /// # Errors
    /// [`DefinitionError::NoHome`] when there is no data folder.
    pub fn open(home: &Home, defaults: Defaults) -> Result<Self, DefinitionError> {
        if !home.root().is_dir() {
            return Err(DefinitionError::NoHome { root: home.root().to_owned() });
        }
        let mut store = Self {
            home: home.clone(),
            defaults,
            files: BTreeMap::new(),
            claims: HashMap::new(),
            circles: BTreeMap::new(),
        };
        let files = store.read_all();
        for (file, state) in &files {
            if let Some(definition) = &state.definition {
                store.claim(definition.id.clone(), file.clone());
            }
        }
        store.files = files;
        store.circles = store.find_circles();
        Ok(store)
    }

    /// Returns the definitions in force, by file.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.with_texts().map(|(definition, _)| definition)
    }

    /// Returns the definitions in force with their files' texts, by file.
    pub fn with_texts(&self) -> impl Iterator<Item = (&Arc<Definition>, &Arc<str>)> {
        let unrivalled = self.unrivalled();
        let all = self.files.values().filter_map(|state| Some((state.definition.as_ref()?, state.text.as_ref()?)));
        all.filter(move |(definition, _)| unrivalled || self.claims[&definition.id].len() == 1)
            .filter(|(definition, _)| !self.circles.contains_key(&definition.id))
    }

    /// Finds the routines that follow one another in a circle, each with the job that it follows.
    fn find_circles(&self) -> BTreeMap<DefinitionId, DefinitionId> {
        let definitions = self.files.values().filter_map(|state| state.definition.as_ref());
        let follows = |definition: &Arc<Definition>| Some((definition.id.clone(), definition.follows()?.job.clone()));
        let unrivalled = |(id, _): &(DefinitionId, _)| self.claims.get(id).is_some_and(|files| files.len() == 1);
        let followed: HashMap<_, _> = definitions.filter_map(follows).filter(unrivalled).collect();
        let is_in_circle = |id: &DefinitionId| {
            // Each routine follows at most one job: after that many steps, it is reached again or never.
            let mut steps = std::iter::successors(followed.get(id), |at| followed.get(*at)).take(followed.len());
            steps.any(|next| next == id)
        };
        followed.iter().filter(|(id, _)| is_in_circle(id)).map(|(id, job)| (id.clone(), job.clone())).collect()
    }

    /// Whether no two files claim the same id. Then no claim needs to be looked up.
    fn unrivalled(&self) -> bool {
        self.claims.values().all(|files| files.len() == 1)
    }

    /// Returns the definition in force with this id.
    #[must_use]
    pub fn get(&self, id: &DefinitionId) -> Option<&Arc<Definition>> {
        self.state(id)?.definition.as_ref()
    }

    /// Whether a file has this id though no definition with it is in force: the file has an error, or two files have the id. The same
    /// while a folder cannot be read.
    #[must_use]
    pub fn is_claimed(&self, id: &DefinitionId) -> bool {
        let names = |file: &File| Path::new(file).file_stem().is_some_and(|stem| stem == id.as_str());
        let reads = |problem: &Problem| problem.id.as_ref() == Some(id);
        let is_folder = |file: &File| Kind::WITH_FILES.into_iter().any(|kind| Path::new(file) == read::folder_of(kind));
        let mut broken = self.files.iter().filter(|(_, state)| state.definition.is_none());
        self.claims.get(id).is_some_and(|files| !files.is_empty())
            || broken.any(|(file, state)| names(file) || is_folder(file) || state.problems.iter().any(reads))
    }

    /// Returns the text of the file of a definition in force.
    #[must_use]
    pub fn text(&self, id: &DefinitionId) -> Option<&Arc<str>> {
        self.state(id)?.text.as_ref()
    }

    fn state(&self, id: &DefinitionId) -> Option<&State> {
        let files = self.claims.get(id)?;
        let file = files.first().filter(|_| files.len() == 1 && !self.circles.contains_key(id))?;
        self.files.get(file)
    }

    /// Returns all definitions in force and all problems, including the persona's.
    #[must_use]
    pub fn loaded(&self) -> Loaded {
        let mut problems = self.problems();
        problems.extend(persona::load_persona(&self.home).err().map(|problem| *problem));
        Loaded {
            definitions: self.definitions().map(|one| (one.id.clone(), one.clone())).collect(),
            problems,
            makers: self.makers(),
            home: self.home.clone(),
        }
    }

    /// Returns the maker of each file that a job has made, also of those that are not in force.
    #[must_use]
    pub fn makers(&self) -> Vec<DefinitionId> {
        self.files.values().filter_map(|state| state.made_by().cloned()).collect()
    }

    /// Returns all problems, by file.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let unrivalled = self.unrivalled();
        let all = !unrivalled || !self.circles.is_empty();
        let told = self.files.iter().filter(|(_, state)| all || !state.problems.is_empty());
        told.flat_map(|(file, state)| self.problems_in(file, state)).collect()
    }

    /// Reads these files again (absolute, or relative to the data folder; others are ignored) and returns the changes.
    /// If one of them belongs to a skill or an agent, reads every file again that names skills or agents.
    pub fn refresh(&mut self, paths: &[PathBuf]) -> Vec<Change> {
        let is_usable = |kind: Kind| read::is_inside(&self.home, kind) && !read::is_missing(&self.home, kind);
        if !Kind::WITH_FILES.into_iter().all(is_usable) {
            return self.reload();
        }
        let files: BTreeSet<File> = paths
            .iter()
            .filter_map(|path| read::relative(&self.home, path))
            .map(|path| path.as_os_str().into())
            .collect();
        let mut fresh: BTreeMap<File, Option<State>> = BTreeMap::new();
        let touched = |folder: PathBuf| paths.iter().any(|path| self.home.relative(path).starts_with(&folder));
        let (skills, agents) = (touched(skill::folder()), touched(agent::folder()));
        let hang = |state: &State| {
            let (definition, problems) = (state.definition.as_deref(), state.problems.as_slice());
            (skills && skill::concerns(definition, problems)) || (agents && agent::concerns(definition, problems))
        };
        let concerned = self.files.iter().filter(|(_, state)| (skills || agents) && hang(state));
        fresh.extend(concerned.map(|(file, _)| (file.clone(), self.read(file))));
        for file in files {
            let state = self.read(&file);
            // A moved file yields two events, which may arrive apart. Before calling the file a duplicate, check
            // whether the other files with its id still exist.
            let rivals = state.as_ref().and_then(|state| self.claims.get(&state.definition.as_ref()?.id));
            for rival in rivals.into_iter().flatten().filter(|rival| **rival != file) {
                if !fresh.contains_key(rival) {
                    fresh.insert(rival.clone(), self.read(rival));
                }
            }
            fresh.insert(file, state);
        }
        self.apply(fresh)
    }

    /// The data folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the values for files that set none.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// Reads everything again with new defaults, like [`Store::reload`].
    pub fn reload_with(&mut self, defaults: Defaults) -> Vec<Change> {
        self.defaults = defaults;
        self.reload()
    }

    /// Reads everything again and returns the changes.
    pub fn reload(&mut self) -> Vec<Change> {
        let mut fresh: BTreeMap<File, Option<State>> = self.files.keys().map(|file| (file.clone(), None)).collect();
        fresh.extend(self.read_all().into_iter().map(|(file, state)| (file, Some(state))));
        self.apply(fresh)
    }

    /// Reads every file. An unreadable folder is an entry in place of its files.
    fn read_all(&self) -> BTreeMap<File, State> {
        let (files, problems) = self.list();
        let reader = || read::Reader::of_many(&self.home, &self.defaults);
        // Uses every core. Files that are gone by now are left out.
        let read = files.par_iter().map_init(reader, |reader, file| Some((key(file), State::of(reader.read(file)?))));
        let read: Vec<_> = read.flatten().collect();
        read.into_iter().chain(problems).collect()
    }

    /// Returns the files of all folders, and the folders that cannot be read.
    fn list(&self) -> (Vec<PathBuf>, Vec<(File, State)>) {
        let mut files = Vec::new();
        let mut problems = Vec::new();
        for kind in Kind::WITH_FILES {
            let listing = read::list(&self.home, kind);
            files.extend(listing.files);
            let state = |problem| State { definition: None, text: None, problems: vec![problem] };
            problems.extend(listing.problem.map(|problem| (key(read::folder_of(kind)), state(problem))));
        }
        (files, problems)
    }

    fn read(&self, file: &OsStr) -> Option<State> {
        read::Reader::new(&self.home, &self.defaults).read(Path::new(file)).map(State::of)
    }

    fn apply(&mut self, fresh: BTreeMap<File, Option<State>>) -> Vec<Change> {
        let mut before = OldState::default();
        for (file, state) in fresh {
            if self.files.get(&file) == state.as_ref() {
                continue;
            }
            let old = self.files.get(&file).and_then(|state| state.definition.as_ref()).map(|d| d.id.clone());
            let new = state.as_ref().and_then(|state| state.definition.as_ref()).map(|d| d.id.clone());
            for id in [&old, &new].into_iter().flatten() {
                self.remember(&mut before, id);
            }
            before.problems.entry(file.clone()).or_insert_with(|| self.problems_of(&file));
            if let Some(id) = old {
                self.unclaim(&id, &file);
            }
            if let Some(id) = new {
                self.claim(id, file.clone());
            }
            match state {
                Some(state) => self.files.insert(file, state),
                None => self.files.remove(&file),
            };
        }
        let circles = self.find_circles();
        let left = self.circles.keys().filter(|id| !circles.contains_key(*id));
        let touched: Vec<_> = left.chain(circles.keys()).cloned().collect();
        touched.iter().for_each(|id| self.remember(&mut before, id));
        self.circles = circles;
        self.changes_since(before)
    }

    /// Records the definition of an id and the problems of every file that claims it, unless recorded already.
    fn remember(&self, before: &mut OldState, id: &DefinitionId) {
        before.definitions.entry(id.clone()).or_insert_with(|| {
            let state = self.state(id)?;
            Some((state.definition.clone()?, state.text.clone()))
        });
        for file in self.claims.get(id).into_iter().flatten() {
            before.problems.entry(file.clone()).or_insert_with(|| self.problems_of(file));
        }
    }

    /// Adds a claim. Usually a single file claims an id, so the list starts with that capacity.
    fn claim(&mut self, id: DefinitionId, file: File) {
        self.claims.entry(id).or_insert_with(|| Vec::with_capacity(1)).push(file);
    }

    fn unclaim(&mut self, id: &DefinitionId, file: &OsStr) {
        if let Some(files) = self.claims.get_mut(id) {
            files.retain(|claiming| **claiming != *file);
            if files.is_empty() {
                self.claims.remove(id);
            }
        }
    }

    fn changes_since(&self, before: OldState) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut touched = before.problems;
        for (id, old) in before.definitions {
            // Another file may have become a duplicate, or stopped being one, without being read again.
            for file in self.claims.get(&id).into_iter().flatten() {
                touched.entry(file.clone()).or_default();
            }
            match (old, self.get(&id)) {
                (Some((old, text)), Some(new)) if old == *new && text.as_ref() == self.text(&id) => {}
                (_, Some(new)) => changes.push(Change::Upsert(new.clone())),
                (Some(_), None) => changes.push(Change::Removed(id)),
                (None, None) => {}
            }
        }
        for (file, old) in touched {
            let problems = self.problems_of(&file);
            if problems != old {
                changes.push(Change::Problems { file: PathBuf::from(&*file), problems });
            }
        }
        changes
    }

    fn problems_of(&self, file: &OsStr) -> Vec<Problem> {
        self.files.get(file).map(|state| self.problems_in(file, state)).unwrap_or_default()
    }

    /// Returns the problems of a file by itself, and those of an id that other files claim or of a circle.
    fn problems_in(&self, file: &OsStr, state: &State) -> Vec<Problem> {
        let mut problems = state.problems.clone();
        if let Some(definition) = &state.definition
            && let Some(others) = self.claims.get(&definition.id).filter(|files| files.len() > 1)
            && let Some(other) = others.iter().filter(|other| ***other != *file).min()
        {
            let more = others.len() - 2;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let (line, column) = read::position(&self.home, Path::new(file), "id");
            problems.push(Problem {
                line,
                column,
                field: Some("id".into()),
                id: Some(definition.id.clone()),
                made_by: definition.created_by.clone(),
                ..Problem::of_file(
                    Path::new(file),
                    Severity::Error,
                    format!("the id is also that of {}{more}, so none of them fires", quoted(&other.to_string_lossy())),
                    Some("give each file an `id` of its own, or remove one of them".into()),
                )
            });
        }
        if let Some(definition) = &state.definition
            && let Some(job) = self.circles.get(&definition.id)
        {
            problems.push(self.circle(file, definition, job));
        }
        problems
    }

    /// Returns the problem of a routine in a circle.
    fn circle(&self, file: &OsStr, definition: &Definition, job: &DefinitionId) -> Problem {
        let message = match *job == definition.id {
            true => "the routine follows itself, so it does not fire".to_owned(),
            false => {
                format!("the routine follows {}, which follows it in turn, so none of them fires", quoted(job.as_str()))
            }
        };
        let (line, column) = read::position(&self.home, Path::new(file), "after");
        let hint = Some("give one of them times of its own: `cron` or `every`".into());
        Problem {
            line,
            column,
            field: Some("after".into()),
            id: Some(definition.id.clone()),
            made_by: definition.created_by.clone(),
            ..Problem::of_file(Path::new(file), Severity::Error, message, hint)
        }
    }
}

#[cfg(test)]
mod tests;
