//! The folders that path rules speak of, and those that are protected whatever a file says.

use std::path::{Component, Path, PathBuf};

/// Where things are, for path rules and protected places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The data folder (absolute). Protected but for `work`.
    pub root: PathBuf,
    /// The clients' working folder: path patterns are relative to it.
    pub work: PathBuf,
    /// The person's home folder: `~`.
    pub user_home: PathBuf,
}

impl Places {
    /// Whether what lies at an absolute path without `..` is protected whatever the rules say: the data folder outside of `work`, the
    /// person's own client, folders with tooling (`.git`, `.claude`), and processes. The places are looked up once.
    pub fn protection(&self) -> impl Fn(&Path) -> bool + use<> {
        let known = Known::new(self);
        move |path| known.protected(path).is_some()
    }
}

/// The places in every spelling: as given, and with symlinks resolved.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Known {
    pub root: Vec<PathBuf>,
    pub work: Vec<PathBuf>,
    pub user_home: Vec<PathBuf>,
}

/// Why a path is out of reach for every fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Protected {
    /// In the data folder, outside `work/`.
    DataFolder,
    /// The person's own agent client: its login, memory, transcripts and settings.
    Client,
    /// `.git` or `.claude`.
    Tooling,
    /// Another process, or this one, through `/proc`.
    Process,
}

impl Protected {
    /// For a sentence.
    pub fn why(self) -> &'static str {
        match self {
            Self::DataFolder => {
                "it is in the bot's data folder outside `work/` (definitions are changed with `ollim-bot routine` and `ollim-bot reminder`)"
            }
            Self::Client => "the person's own agent client keeps its login, memory and settings there",
            Self::Tooling => "`.git/` and `.claude/` are protected: what stands there runs as code later",
            Self::Process => "the processes under `/proc` are protected",
        }
    }
}

impl Known {
    /// Resolves the places as far as they exist.
    pub fn new(places: &Places) -> Self {
        let spellings = |path: &Path| {
            let mut all = vec![path.to_owned()];
            if let Ok(real) = path.canonicalize()
                && real != path
            {
                all.push(real);
            }
            all
        };
        Self { root: spellings(&places.root), work: spellings(&places.work), user_home: spellings(&places.user_home) }
    }

    /// Whether a path leads into a run's folder for temporary files. Of which run, the kernel's sandbox says.
    pub fn is_temporary(&self, path: &Path) -> bool {
        self.root.iter().filter_map(|root| path.strip_prefix(root.join("state/runs")).ok()).any(|rest| {
            let mut parts = rest.components().filter_map(|part| part.as_os_str().to_str());
            parts.next().is_some() && parts.next() == Some("tmp")
        })
    }

    /// Whether an absolute path without `..` is protected.
    pub fn protected(&self, path: &Path) -> Option<Protected> {
        let inside = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        if inside(&self.root) && !inside(&self.work) && !self.is_temporary(path) {
            return Some(Protected::DataFolder);
        }
        let of_client = |home: &PathBuf| path.starts_with(home.join(".claude")) || *path == home.join(".claude.json");
        if self.user_home.iter().any(of_client) {
            return Some(Protected::Client);
        }
        let mut parts = path.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        if parts.clone().any(|name| name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".claude")) {
            return Some(Protected::Tooling);
        }
        let is_process = parts.next() == Some("proc")
            && parts
                .next()
                .is_some_and(|name| matches!(name, "self" | "thread-self") || name.bytes().all(|b| b.is_ascii_digit()));
        is_process.then_some(Protected::Process)
    }
}
