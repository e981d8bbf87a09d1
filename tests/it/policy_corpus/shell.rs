//! Lines of the corpora in a job's real shell, without a client and without the hook. The ground shows their effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ollim_bot::home::Home;

use super::engine;
use super::entry::{Case, fixtures};
use super::player;
use super::workspace::{Workspace, lacking};
use crate::support::job_shell::{LineResult, ShellPaths};

/// The result of a line.
pub struct Outcome {
    pub ran: LineResult,
    /// The missing parts of the effect. `parts` is the number of all its parts.
    pub missing: Vec<String>,
    pub parts: usize,
    /// The stub programs that ran.
    pub log: String,
}

/// A ground on which lines run one after the other.
pub struct CorpusShell {
    pub workspace: Workspace,
    pub place: ShellPaths,
}

impl CorpusShell {
    pub fn new() -> Self {
        let workspace = Workspace::new();
        let text = |text: &str| text.to_owned();
        let own = [("HOME", workspace.home().display().to_string()), ("LANG", text("C.UTF-8")), ("TZ", text("UTC"))];
        let person = [("NAME", "Ann"), ("EMAIL", "ann@example.org")].into_iter().flat_map(|(name, value)| {
            ["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_{name}"), value.to_owned()))
        });
        let place = ShellPaths {
            home: Home::new(workspace.data()),
            user_home: workspace.home(),
            path: engine::search_path(&workspace),
            own: own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            added: person.collect::<BTreeMap<_, _>>(),
            stubs_read: [".box", "answers", "bin"].map(|name| workspace.root().join(name)).to_vec(),
            stubs_write: vec![workspace.root().join("ran.log")],
        };
        let stage = Self { workspace, place };
        stage.workspace.forget_what_ran();
        stage
    }

    /// Replaces each stub program's link with a file of its own: a domain could not distinguish links to one file.
    fn own_files(&self) {
        for folder in [self.workspace.root().join("bin"), self.workspace.data().join("bin")] {
            for entry in std::fs::read_dir(folder).expect("stub programs").flatten() {
                if entry.file_type().expect("its kind").is_symlink() {
                    std::fs::remove_file(entry.path()).expect("a link");
                    std::fs::copy(fixtures().join("stub"), entry.path()).expect("a stub program");
                }
            }
        }
    }

    fn play(&self, case: &Case) -> Outcome {
        let (workspace, entry) = (&self.workspace, &case.entry);
        player::clear(workspace, &BTreeSet::new());
        workspace.lay_out(entry);
        self.own_files();
        workspace.forget_what_ran();
        let line = workspace.fill(entry.command().expect("a shell line"));
        let policy = engine::policy(case, workspace);
        let ran = self.place.run(&policy, &engine::granted(case, workspace), &line, &workspace.cwd(entry));
        let missing = workspace.missing(&entry.effect, &ran.output);
        for name in &entry.programs {
            std::fs::remove_file(workspace.root().join("bin").join(name)).expect("a stub program");
        }
        Outcome { missing, parts: entry.effect.parts(), log: workspace.log(), ran }
    }
}

/// Returns whether a case is a line that can be played here.
pub fn is_line(case: &Case) -> bool {
    case.entry.command().is_some() && case.entry.agent_type.is_none() && lacking(&case.entry).is_empty()
}

/// Plays every line on one ground per core. Returns the number of lines played and the faults that `wrong` found.
pub fn play(cases: &[Case], wrong: impl Fn(&Case, &Outcome) -> Option<String> + Sync) -> (usize, Vec<String>) {
    let only = std::env::var("OLLIM_CORPUS_ONLY").unwrap_or_default();
    let lines: Vec<&Case> = cases.iter().filter(|case| is_line(case) && case.title().contains(&only)).collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let stage = CorpusShell::new();
                while let Some(case) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = stage.play(case);
                    if let Some(why) = wrong(case, &outcome) {
                        let told = format!(
                            "{}\n  {}\n  {why}\n  refused: {:?}\n  exit {:?}{}, what ran: {:?}\n  {}",
                            case.title(),
                            case.entry.command().unwrap_or_default(),
                            outcome.ran.refusals(),
                            outcome.ran.code,
                            if outcome.ran.cut_off { ", cut off" } else { "" },
                            outcome.log,
                            outcome.ran.output.chars().take(600).collect::<String>()
                        );
                        found.lock().expect("no line broke").push(told);
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no line broke");
    found.sort();
    (lines.len(), found)
}
