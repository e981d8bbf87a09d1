//! From path rules to trees: what of them the kernel can hold.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use agent_sandbox::folders;

use super::SandboxPlan;
use crate::policy::{BOT, PathRoots};

/// What path rules open.
#[derive(Debug, Default)]
pub(super) struct Trees {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// A rule reads everything that is not hidden.
    pub everything: bool,
}

impl SandboxPlan {
    /// The folders in `work/` that are granted, made where they are missing: the kernel grants only what is there.
    /// Not through a link that a program has left there: what it leads to is made by nobody.
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

    /// What path rules open. `exactly`: only where the kernel can hold the whole rule, for a shell, which no file tool's check
    /// stands before.
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
        }
        trees
    }

    /// What `Edit` rules open to programs that write. A rule that names one file opens that file, where it is there, and not what lies
    /// beside it.
    pub(super) fn written_by_programs(&self) -> Vec<PathBuf> {
        let is_closed = self.closed_trees();
        let rules =
            self.granted.iter().filter(|pattern| matches!(pattern.canonical_tool(), "*" | "Edit" | "NotebookEdit"));
        rules
            .filter_map(|pattern| match pattern.specifier() {
                Some(rule) if pattern.canonical_tool() != "*" => {
                    self.tree(rule, true, !rule.contains(['*', '?', '[', '!', '\\']), &is_closed)
                }
                _ => self.tree("**", true, false, &is_closed),
            })
            .collect()
    }

    fn closed_trees(&self) -> impl Fn(&Path) -> bool + use<> {
        let (root, work) = (self.home.root().to_owned(), self.home.work());
        PathRoots { root, work, user_home: self.user_home.clone() }.closed_trees(&BOT)
    }

    /// The literal prefix of a path rule (in which no `..` can stand); for writing, and in `work/`, the folder that it names. `None` where that is
    /// closed to every job, or everything, or, if `exactly` is wanted, where the rule is narrower than a tree and no file.
    fn tree(&self, rule: &str, write: bool, exactly: bool, is_closed: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let work = self.home.work();
        let (base, rest) = if let Some(rest) = rule.strip_prefix("//") {
            (PathBuf::from("/"), rest)
        } else if let Some(rest) = rule.strip_prefix("~/") {
            (self.user_home.clone(), rest)
        } else {
            (work.clone(), rule.trim_start_matches('/').trim_start_matches("./"))
        };
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        let literal = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '!', '\\'])).count();
        let whole_tree = parts.get(literal..).is_some_and(|rest| rest == ["**"]);
        let file = literal == parts.len();
        if exactly && !(whole_tree || file) {
            return None;
        }
        // A rule that names a file: the file may not be there yet, or be made anew, and the kernel grants only what is there.
        let comes_and_goes = write || base == work;
        let folders = if comes_and_goes && file && !exactly { literal.saturating_sub(1) } else { literal };
        let tree: PathBuf = base.iter().map(OsStr::new).chain(parts[..folders].iter().map(OsStr::new)).collect();
        let whole = tree == base && base != work;
        (!whole && !is_closed(&tree)).then_some(tree)
    }
}
