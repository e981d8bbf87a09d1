//! The folders to which path rules refer, and the places that are protected whatever a file says.

use std::path::{Component, Path, PathBuf};

use super::resolve::{is_of_process, spellings};
use crate::{Application, ReadLink};

/// The folders to which path rules and the protection of files refer. All are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRoots {
    /// The application's data folder. It is protected, except for `work`.
    pub root: PathBuf,
    /// The jobs' working folder, called `work/` in messages. Path patterns are relative to it.
    pub work: PathBuf,
    /// The person's home folder: `~`.
    pub user_home: PathBuf,
}

impl PathRoots {
    /// Returns a check of whether a sandbox, which opens whole trees, must not open a tree: it is protected, or contains the data folder
    /// or the person's own client. Protected are the data folder outside of `work`, that client, folders with tooling (`.git`,
    /// `.claude`), and processes. The places are resolved once. The tree must be absolute and without `..`.
    pub fn closed_trees(&self, application: &Application) -> impl Fn(&Path) -> bool + use<> {
        let roots = ResolvedRoots::new(self, application);
        move |tree| roots.protected(tree).is_some() || roots.holds_protected(tree)
    }
}

/// All spellings of the folders: as given, and with symbolic links resolved.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedRoots {
    pub root: Vec<PathBuf>,
    pub work: Vec<PathBuf>,
    pub user_home: Vec<PathBuf>,
    /// The folder and the settings file of the person's own client.
    client: Vec<PathBuf>,
    pub read_link: ReadLink,
    /// See [`Application::temporary`].
    temporary: &'static str,
}

/// Reasons why a path is out of reach for every fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protected {
    /// The path is in the data folder, outside `work/`.
    DataFolder,
    /// The path belongs to the person's own agent client: its login, memory, transcripts and settings.
    Client,
    /// The path contains `.git` or `.claude`.
    Tooling,
    /// The path belongs to a process under `/proc`, this or another one.
    Process,
    /// There are more paths than the engine follows.
    TooMany,
}

impl Protected {
    /// Returns the reason as a part of a sentence.
    pub fn why(self, application: &Application) -> &'static str {
        match self {
            Self::DataFolder => application.data_folder,
            Self::Client => "the person's own agent client keeps its login, memory and settings there",
            Self::Tooling => "`.git/` and `.claude/` are protected: what stands there runs as code later",
            Self::Process => "the processes under `/proc` are protected",
            Self::TooMany => {
                "a program that changes files is given more paths than are looked at; give it fewer at a time"
            }
        }
    }
}

impl ResolvedRoots {
    /// Resolves the folders.
    pub fn new(roots: &PathRoots, application: &Application) -> Self {
        let Application { read_link, temporary, .. } = *application;
        let spellings = |path: &Path| spellings(path, read_link);
        let user_home = spellings(&roots.user_home);
        let of_client = |home: &PathBuf| [".claude", ".claude.json"].map(|name| home.join(name));
        let client = user_home.iter().flat_map(of_client).flat_map(|place| spellings(&place)).collect();
        Self { root: spellings(&roots.root), work: spellings(&roots.work), user_home, client, read_link, temporary }
    }

    /// Returns whether a path is in some run's folder for temporary files. The kernel's sandbox restricts it to the right run.
    pub fn is_temporary(&self, path: &Path) -> bool {
        let pattern = || Path::new(self.temporary).components();
        let is_below = |rest: &Path| {
            let mut parts = rest.components();
            pattern().all(|name| parts.next().is_some_and(|part| name.as_os_str() == "*" || part == name))
        };
        !self.temporary.is_empty() && self.root.iter().filter_map(|root| path.strip_prefix(root).ok()).any(is_below)
    }

    /// Returns whether a tree contains the data folder or the person's own client.
    pub fn holds_protected(&self, tree: &Path) -> bool {
        self.root.iter().chain(&self.client).any(|place| place.starts_with(tree))
    }

    /// Returns why an absolute path without `..` is protected, if it is.
    pub fn protected(&self, path: &Path) -> Option<Protected> {
        let inside = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        if inside(&self.root) && !inside(&self.work) && !self.is_temporary(path) {
            return Some(Protected::DataFolder);
        }
        if inside(&self.client) {
            return Some(Protected::Client);
        }
        let mut parts = path.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        if parts.any(|name| name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".claude")) {
            return Some(Protected::Tooling);
        }
        is_of_process(path).then_some(Protected::Process)
    }
}
