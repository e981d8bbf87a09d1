//! Conversion of path rules to folder trees, as far as the kernel can enforce them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use agent_sandbox::folders;

use super::SandboxPlan;
use crate::policy::{BOT, PathRoots, ToolPattern};

/// The trees that path rules open.
#[derive(Debug, Default)]
pub(super) struct Trees {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// Whether a rule reads everything that is not hidden.
    pub everything: bool,
}

impl SandboxPlan {
    /// Creates the granted folders in `work/` that are missing, since the kernel grants only existing ones.
    /// Does not follow a symlink that a program has left there: no folder is created through it.
    pub(super) fn prepare(&self) -> io::Result<()> {
        let work = self.home.work();
        for tree in self.trees(false).write {
            let Ok(below) = tree.strip_prefix(&work) else { continue };
            match folders::make(&work, below) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                made => drop(made?),
            }
        }
        std::fs::create_dir_all(self.temporary())
    }

    /// Returns the trees that path rules open. With `exactly`, only if the kernel can enforce the whole rule: for a shell, no file
    /// tool checks the rest.
    pub(super) fn trees(&self, exactly: bool) -> Trees {
        let mut trees = Trees::default();
        let is_closed = self.closed_trees();
        for pattern in &self.granted {
            let rule = pattern.specifier().unwrap_or("**");
            match pattern.canonical_tool() {
                "*" => {
                    trees.everything = true;
                    trees.write.extend(self.tree("**", true, exactly, &is_closed));
                }
                "Read" if pattern.is_whole_tool() => trees.everything = true,
                "Read" | "Grep" => trees.read.extend(self.tree(rule, false, exactly, &is_closed)),
                "Glob" | "LS" if !exactly => trees.read.extend(self.tree(rule, false, exactly, &is_closed)),
                "Edit" | "NotebookEdit" => {
                    trees.everything |= pattern.is_whole_tool();
                    trees.write.extend(self.tree(rule, true, exactly, &is_closed));
                }
                _ => {}
            }
        }
        if trees.everything {
            trees.read.push(self.home.work());
            // The folder of files among the devices, which are closed.
            trees.read.extend(self.open(vec!["/dev/shm".into()]));
        }
        // No rule opens the data folder, also where another mount shows it.
        for tree in [&mut trees.read, &mut trees.write] {
            *tree = agent_sandbox::without(tree, &self.closed.of_data_folder);
        }
        trees
    }

    /// Returns what `Edit` rules open to programs that write. A rule that names one file opens that file alone, if it exists.
    pub(super) fn written_by_programs(&self) -> Vec<PathBuf> {
        let is_closed = self.closed_trees();
        let rules =
            self.granted.iter().filter(|pattern| matches!(pattern.canonical_tool(), "*" | "Edit" | "NotebookEdit"));
        let trees = rules.filter_map(|pattern| match pattern.specifier() {
            Some(rule) if pattern.canonical_tool() != "*" => {
                self.tree(rule, true, !rule.contains(['*', '?', '[', '!', '\\']), &is_closed)
            }
            _ => self.tree("**", true, false, &is_closed),
        });
        agent_sandbox::without(&trees.collect::<Vec<_>>(), &self.closed.of_data_folder)
    }

    fn closed_trees(&self) -> impl Fn(&Path) -> bool + use<> {
        let (root, work) = (self.home.root().to_owned(), self.home.work());
        PathRoots { root, work, user_home: self.user_home.clone() }.closed_trees(&BOT)
    }

    /// Returns the literal prefix of a path rule (a rule has no `..`). For a file to write, or in `work/`, that is its folder. `None` for a
    /// tree that is closed to every job, for everything, and, with `exactly`, for a rule that is neither a tree nor a file.
    fn tree(&self, rule: &str, write: bool, exactly: bool, is_closed: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let work = self.home.work();
        let (base, parts) = base_and_parts(rule, &work, &self.user_home);
        let literal = parts.iter().take_while(|part| is_literal(part)).count();
        let whole_tree = parts.get(literal..).is_some_and(|rest| rest == ["**"]);
        let file = literal == parts.len();
        if exactly && !(whole_tree || file) {
            return None;
        }
        // The rule names a file. The file may not exist yet, or may be replaced, and the kernel grants only what exists.
        let comes_and_goes = write || base == work;
        let folders = if comes_and_goes && file && !exactly { literal.saturating_sub(1) } else { literal };
        let tree: PathBuf = base.iter().map(OsStr::new).chain(parts[..folders].iter().map(OsStr::new)).collect();
        let whole = tree == base && base != work;
        (!whole && !is_closed(&tree)).then_some(tree)
    }
}

/// Returns whether a rule lets the client open files.
pub(in crate::run) fn opens_files(rule: &ToolPattern) -> bool {
    ["*", "Edit", "Glob", "Grep", "LS", "NotebookEdit", "Read"].contains(&rule.canonical_tool())
}

/// Returns the literal prefix of a path rule: every path that it grants is in this tree.
pub(in crate::run) fn literal_prefix(rule: &str, work: &Path, user_home: &Path) -> PathBuf {
    let (base, parts) = base_and_parts(rule, work, user_home);
    parts.into_iter().take_while(is_literal).fold(base, |tree, part| tree.join(part))
}

/// Returns the folder that a path rule begins in, and the parts of its path from there.
fn base_and_parts<'a>(rule: &'a str, work: &Path, user_home: &Path) -> (PathBuf, Vec<&'a str>) {
    let (base, rest) = if let Some(rest) = rule.strip_prefix("//") {
        (Path::new("/"), rest)
    } else if let Some(rest) = rule.strip_prefix("~/") {
        (user_home, rest)
    } else {
        (work, rule.trim_start_matches('/').trim_start_matches("./"))
    };
    (base.to_owned(), rest.split('/').filter(|part| !part.is_empty()).collect())
}

fn is_literal(part: &&str) -> bool {
    !part.contains(['*', '?', '[', '!', '\\'])
}
