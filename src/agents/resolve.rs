//! Resolves names to agents: the files of both folders and the built-in ones, the highest source first.

mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::definition::{Problem, Severity};
use crate::home::Home;

use super::client_json::CLIENT_AGENTS;
use super::file::Parsed;
use super::{AgentError, NamedAgent, Scope, Source, builtin};
use folder::FolderEntry;

/// All names that a source claims, each with its agent or its problem.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// The entries by name in lower case, since the client takes `explore` for `Explore`.
    by_name: BTreeMap<String, AgentEntry>,
    /// A source that could not be read. No agent of a lower source may replace its agents.
    closed: Option<Problem>,
    problems: Vec<Problem>,
}

/// The entry of a name in the highest source that claims it.
#[derive(Clone, Debug)]
pub enum AgentEntry {
    /// A valid agent.
    Usable(NamedAgent),
    /// A problem that prevents use of the agent.
    Broken {
        /// The name, or a guess at it.
        name: String,
        /// The highest source that claims the name.
        source: Source,
        /// The first error.
        problem: Problem,
    },
}

impl AgentEntry {
    /// Returns the name as the file spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Usable(agent) => &agent.name,
            Self::Broken { name, .. } => name,
        }
    }
    /// Returns the location of the agent.
    #[must_use]
    pub fn source(&self) -> &Source {
        match self {
            Self::Usable(agent) => &agent.source,
            Self::Broken { source, .. } => source,
        }
    }
    fn broken_by(self, problem: Problem) -> Self {
        Self::Broken { name: self.name().to_owned(), source: self.source().clone(), problem }
    }
}

/// Returns the folder of a person's agents for every program, in their home folder.
#[must_use]
pub fn user_folder(user_home: &Path) -> PathBuf {
    user_home.join(".claude/agents")
}

impl Agents {
    /// Reads `$OLLIM_HOME/agents` and [`user_folder`] in the person's home folder (`None`: there is none). A folder that
    /// does not exist is empty. Every run calls this, so that the files' present content counts; that costs a few small
    /// files. This never fails: an unreadable file or folder is a problem, and hides the agents of lower sources.
    #[must_use]
    pub fn load(home: &Home, user_home: Option<&Path>) -> Self {
        let mut agents = Self::default();
        agents.folder(Scope::Project, &home.agents(), Some(home.root()));
        if let Some(user_home) = user_home {
            agents.folder(Scope::User, &user_folder(user_home), None);
        }
        agents.add(Scope::Builtin, builtin::all().map(FolderEntry::File).collect());
        agents.name_files_from(home.root());
        agents
    }

    /// Makes the problems' paths relative to the data folder, as all problems have them.
    fn name_files_from(&mut self, root: &Path) {
        let broken = self.by_name.values_mut().filter_map(|entry| match entry {
            AgentEntry::Broken { problem, .. } => Some(problem),
            AgentEntry::Usable(_) => None,
        });
        for problem in broken.chain(&mut self.problems).chain(&mut self.closed) {
            if let Ok(relative) = problem.file.strip_prefix(root) {
                problem.file = relative.to_owned();
            }
        }
    }

    /// Returns the built-in agents alone.
    #[must_use]
    pub fn built_in() -> Self {
        let mut agents = Self::default();
        agents.add(Scope::Builtin, builtin::all().map(FolderEntry::File).collect());
        agents
    }

    /// Returns the agent of that name, spelled as in its file.
    ///
    /// # Errors
    /// [`AgentError::Unknown`], or [`AgentError::Unusable`] if the highest source that claims the name is broken.
    pub fn get(&self, name: &str) -> Result<&NamedAgent, AgentError> {
        match self.by_name.get(&name.to_lowercase()) {
            Some(AgentEntry::Usable(agent)) if agent.name == name => Ok(agent),
            Some(AgentEntry::Usable(agent)) => {
                Err(AgentError::Unknown { name: name.into(), near: Some(agent.name.clone()) })
            }
            Some(AgentEntry::Broken { problem, .. }) => Err(unusable(name, problem)),
            None => match &self.closed {
                Some(problem) => Err(unusable(name, problem)),
                None => Err(AgentError::Unknown { name: name.into(), near: self.near(name) }),
            },
        }
    }

    /// Returns the same as [`get`](Self::get), for a background job.
    ///
    /// # Errors
    /// Those of `get`, and [`AgentError::MainSessionOnly`].
    pub fn for_background(&self, name: &str) -> Result<&NamedAgent, AgentError> {
        let agent = self.get(name)?;
        if agent.main_session_only { Err(AgentError::MainSessionOnly(name.into())) } else { Ok(agent) }
    }

    /// Returns all usable agents, by name.
    pub fn usable(&self) -> impl Iterator<Item = &NamedAgent> {
        self.by_name.values().filter_map(|entry| match entry {
            AgentEntry::Usable(agent) => Some(agent),
            AgentEntry::Broken { .. } => None,
        })
    }

    /// Returns the problems of all files, including those that a higher source hides.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns all entries, including broken ones, sorted without regard to case.
    pub fn entries(&self) -> impl Iterator<Item = &AgentEntry> {
        self.by_name.values()
    }

    fn near(&self, name: &str) -> Option<String> {
        // The distance takes time proportional to the product of both lengths.
        let name = Some(name).filter(|name| name.len() < 100)?;
        let distance =
            |entry: &&AgentEntry| strsim::damerau_levenshtein(&entry.name().to_lowercase(), &name.to_lowercase());
        let nearest = self.by_name.values().min_by_key(distance)?;
        (distance(&nearest) <= 2).then(|| nearest.name().to_owned())
    }

    fn folder(&mut self, scope: Scope, path: &Path, must_stay_in: Option<&Path>) {
        let found = folder::read(scope, path, must_stay_in);
        self.add(scope, found);
    }

    /// Adds a source. Sources are added highest first, and an entry of a higher source stays.
    fn add(&mut self, scope: Scope, found: Vec<FolderEntry>) {
        let closed = self.closed.clone();
        let mut own: BTreeMap<String, AgentEntry> = BTreeMap::new();
        for found in found {
            match found {
                FolderEntry::File(parsed) => {
                    self.problems.extend(parsed.problems.iter().cloned());
                    for entry in entries_of(scope, parsed) {
                        self.claim(&mut own, entry);
                    }
                }
                FolderEntry::Unreadable(problem) => {
                    self.problems.push(problem.clone());
                    self.closed.get_or_insert(problem);
                }
            }
        }
        if scope != Scope::Builtin {
            self.spelling(&mut own);
        }
        for (key, entry) in own {
            let entry = match &closed {
                Some(problem) => entry.broken_by(problem.clone()),
                None => entry,
            };
            self.by_name.entry(key).or_insert(entry);
        }
    }

    /// Enters a name of one source. If two of its files claim the name, or one of them is broken, the name is broken.
    fn claim(&mut self, own: &mut BTreeMap<String, AgentEntry>, entry: AgentEntry) {
        let key = entry.name().to_lowercase();
        match (own.remove(&key), entry) {
            (None, entry) | (Some(AgentEntry::Usable(_)), entry @ AgentEntry::Broken { .. }) => own.insert(key, entry),
            (Some(first @ AgentEntry::Broken { .. }), _) => own.insert(key, first),
            (Some(first @ AgentEntry::Usable(_)), second @ AgentEntry::Usable(_)) => {
                let twice = |one: &AgentEntry, other: &AgentEntry| {
                    let other = other.source().path.display();
                    let message = format!("the agent name `{}` is also that of {other}", one.name());
                    let hint = "keep one of the two files, or rename one of the agents".to_owned();
                    Problem {
                        field: Some("name".into()),
                        ..Problem::of_file(&one.source().path, Severity::Error, message, Some(hint))
                    }
                };
                let problem = twice(&first, &second);
                self.problems.push(twice(&second, &first));
                self.problems.push(problem.clone());
                own.insert(key, first.broken_by(problem))
            }
        };
    }

    /// Rejects names that differ from a built-in name in case only: the client would list both and call neither.
    fn spelling(&mut self, own: &mut BTreeMap<String, AgentEntry>) {
        for known in builtin::NAMES.iter().chain(CLIENT_AGENTS) {
            let Some(entry) = own.get_mut(&known.to_lowercase()) else { continue };
            if entry.name() == *known || matches!(entry, AgentEntry::Broken { .. }) {
                continue;
            }
            let message = format!("the name `{}` differs from the built-in `{known}` in case only", entry.name());
            let hint = format!("write `name: {known}` to replace it, or choose another name");
            let problem = Problem {
                field: Some("name".into()),
                ..Problem::of_file(&entry.source().path, Severity::Error, message, Some(hint))
            };
            self.problems.push(problem.clone());
            *entry = entry.clone().broken_by(problem);
        }
    }
}

fn unusable(name: &str, problem: &Problem) -> AgentError {
    AgentError::Unusable { name: name.into(), problem: Box::new(problem.clone()) }
}

/// Returns the names that a file claims, each with its agent or the file's first error.
fn entries_of(scope: Scope, parsed: Parsed) -> Vec<AgentEntry> {
    if let Some(agent) = parsed.agent {
        return vec![AgentEntry::Usable(agent)];
    }
    let Some(problem) = parsed.problems.into_iter().find(Problem::is_error) else { return Vec::new() };
    let source = Source { scope, path: problem.file.clone() };
    let broken =
        |name: &String| AgentEntry::Broken { name: name.clone(), source: source.clone(), problem: problem.clone() };
    parsed.names.iter().map(broken).collect()
}

#[cfg(test)]
mod tests;
