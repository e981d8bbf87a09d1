//! All definitions of a data folder, and what changes when files do.
//!
//! What one file says is kept apart from what the files together mean: an identity that two valid files claim
//! belongs to neither, and comes back by itself when one of them goes. A changed file costs that file alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::problem::quoted;
use super::{
    Defaults, Definition, DefinitionError, DefinitionId, Kind, Parsed, Problem, Severity, agent, persona, read, skill,
};
use crate::home::Home;

/// Everything that two folders say at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The valid ones, by identity.
    pub definitions: BTreeMap<DefinitionId, Arc<Definition>>,
    /// By file, in each file's order.
    pub problems: Vec<Problem>,
}

/// Reads both folders once. Folders that are not there are empty.
///
/// # Errors
/// [`DefinitionError::NoHome`] when there is no data folder.
pub fn load(home: &Home, defaults: &Defaults) -> Result<Loaded, DefinitionError> {
    Ok(Store::open(home, defaults.clone())?.loaded())
}

/// [`load`], of one folder. The other is read too: an id that files of both have is in force in neither.
///
/// # Errors
/// [`DefinitionError::NoHome`] when there is no data folder.
pub fn load_kind(home: &Home, kind: Kind, defaults: &Defaults) -> Result<Loaded, DefinitionError> {
    Ok(load(home, defaults)?.of_kind(kind))
}

impl Loaded {
    /// Those of one folder.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.definitions.retain(|_, definition| definition.kind() == kind);
        self.problems.retain(|problem| problem.file.starts_with(read::folder_of(kind)));
        self
    }
}

/// What a change of files means.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A definition is new, or its file says something else than before, if only in a comment.
    Upsert(Arc<Definition>),
    /// There is no valid definition of this identity any more.
    Removed(DefinitionId),
    /// What is wrong with one file now; empty when it was put right or is gone.
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
    /// Which valid files claim an identity, in no order. One: it is in force. More: none of them is.
    claims: HashMap<DefinitionId, Vec<File>>,
    /// Routines that follow one another in a circle: none of them is in force.
    circles: BTreeMap<DefinitionId, DefinitionId>,
}

/// A path relative to the data folder. Not a `PathBuf`: those compare part by part, which for many files takes
/// longer than reading them.
type File = Arc<OsStr>;

fn key(file: &Path) -> File {
    file.as_os_str().into()
}

/// What one file says by itself. For a folder that cannot be read: its problem.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    definition: Option<Arc<Definition>>,
    /// What the definition was read from: a change of a comment is a change of the file.
    text: Option<Arc<str>>,
    problems: Vec<Problem>,
}

impl State {
    fn of((parsed, text): (Parsed, Option<Arc<str>>)) -> Self {
        let definition = parsed.definition.map(Arc::new);
        Self { text, definition, problems: parsed.problems }
    }
}

/// A definition and, where it is text, its file.
type Read = (Arc<Definition>, Option<Arc<str>>);

/// What stood before a change, of what the change touches.
#[derive(Default)]
struct Before {
    definitions: BTreeMap<DefinitionId, Option<Read>>,
    problems: BTreeMap<File, Vec<Problem>>,
}

impl Store {
    /// Reads both folders.
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

    /// The definitions in force, by file.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.with_texts().map(|(definition, _)| definition)
    }

    /// The definitions in force and the texts of their files, by file.
    pub fn with_texts(&self) -> impl Iterator<Item = (&Arc<Definition>, &Arc<str>)> {
        let unrivalled = self.unrivalled();
        let all = self.files.values().filter_map(|state| Some((state.definition.as_ref()?, state.text.as_ref()?)));
        all.filter(move |(definition, _)| unrivalled || self.claims[&definition.id].len() == 1)
            .filter(|(definition, _)| !self.circles.contains_key(&definition.id))
    }

    /// The routines that follow one another in a circle, each with the job that it follows.
    fn find_circles(&self) -> BTreeMap<DefinitionId, DefinitionId> {
        let definitions = self.files.values().filter_map(|state| state.definition.as_ref());
        let follows = |definition: &Arc<Definition>| Some((definition.id.clone(), definition.follows()?.job.clone()));
        let unrivalled = |(id, _): &(DefinitionId, _)| self.claims.get(id).is_some_and(|files| files.len() == 1);
        let followed: HashMap<_, _> = definitions.filter_map(follows).filter(unrivalled).collect();
        let is_in_circle = |id: &DefinitionId| {
            // Each follows one at most: after so many steps it is there again, or never.
            let mut steps = std::iter::successors(followed.get(id), |at| followed.get(*at)).take(followed.len());
            steps.any(|next| next == id)
        };
        followed.iter().filter(|(id, _)| is_in_circle(id)).map(|(id, job)| (id.clone(), job.clone())).collect()
    }

    /// Whether no two files claim the same identity, so that none needs to be looked up.
    fn unrivalled(&self) -> bool {
        self.claims.values().all(|files| files.len() == 1)
    }

    /// The definition in force of an identity.
    #[must_use]
    pub fn get(&self, id: &DefinitionId) -> Option<&Arc<Definition>> {
        self.state(id)?.definition.as_ref()
    }

    /// The text of the file that a definition in force was read from.
    #[must_use]
    pub fn text(&self, id: &DefinitionId) -> Option<&Arc<str>> {
        self.state(id)?.text.as_ref()
    }

    fn state(&self, id: &DefinitionId) -> Option<&State> {
        let files = self.claims.get(id)?;
        let file = files.first().filter(|_| files.len() == 1 && !self.circles.contains_key(id))?;
        self.files.get(file)
    }

    /// All definitions and problems now, the persona's among them.
    #[must_use]
    pub fn loaded(&self) -> Loaded {
        let mut problems = self.problems();
        problems.extend(persona::load_persona(&self.home).err().map(|problem| *problem));
        Loaded { definitions: self.definitions().map(|one| (one.id.clone(), one.clone())).collect(), problems }
    }

    /// Every problem now, by file.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let unrivalled = self.unrivalled();
        let all = !unrivalled || !self.circles.is_empty();
        let told = self.files.iter().filter(|(_, state)| all || !state.problems.is_empty());
        told.flat_map(|(file, state)| self.problems_in(file, state)).collect()
    }

    /// Reads these files again (absolute, or relative to the data folder; others are ignored) and says what changed.
    /// Where one of them is a skill's or an agent's, every file that names such is read again.
    pub fn refresh(&mut self, paths: &[PathBuf]) -> Vec<Change> {
        if !Kind::WITH_FILES.iter().all(|kind| read::is_inside(&self.home, *kind)) {
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
            // A file that moved is told as two events, which may come apart: look whether those that claim the
            // same identity are still there before calling it a duplicate.
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

    /// What holds for files that do not say.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// [`Store::reload`], with other defaults from now on.
    pub fn reload_with(&mut self, defaults: Defaults) -> Vec<Change> {
        self.defaults = defaults;
        self.reload()
    }

    /// Reads everything again and says what changed.
    pub fn reload(&mut self) -> Vec<Change> {
        let mut fresh: BTreeMap<File, Option<State>> = self.files.keys().map(|file| (file.clone(), None)).collect();
        fresh.extend(self.read_all().into_iter().map(|(file, state)| (file, Some(state))));
        self.apply(fresh)
    }

    /// Every file there is now. A folder that cannot be read stands for its files.
    fn read_all(&self) -> BTreeMap<File, State> {
        let (files, problems) = self.list();
        let reader = || read::Reader::of_many(&self.home, &self.defaults);
        // On every core. Those that are gone by now are left out.
        let read = files.par_iter().map_init(reader, |reader, file| Some((key(file), State::of(reader.read(file)?))));
        let read: Vec<_> = read.flatten().collect();
        read.into_iter().chain(problems).collect()
    }

    /// The files of all folders, and the folders that cannot be read.
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
        let mut before = Before::default();
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

    /// Notes what an identity stands for, and the problems of every file that claims it, unless it is noted.
    fn remember(&self, before: &mut Before, id: &DefinitionId) {
        before.definitions.entry(id.clone()).or_insert_with(|| {
            let state = self.state(id)?;
            Some((state.definition.clone()?, state.text.clone()))
        });
        for file in self.claims.get(id).into_iter().flatten() {
            before.problems.entry(file.clone()).or_insert_with(|| self.problems_of(file));
        }
    }

    /// One file is the rule: no room is made for more.
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

    fn changes_since(&self, before: Before) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut touched = before.problems;
        for (id, old) in before.definitions {
            // Another file may have become a duplicate, or have stopped being one, without being read again.
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

    /// What is wrong with a file by itself, and that its identity is another's too.
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

    /// What is wrong with a routine of a circle.
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
            ..Problem::of_file(Path::new(file), Severity::Error, message, hint)
        }
    }
}

#[cfg(test)]
mod tests;
