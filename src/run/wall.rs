//! Which kernel wall a background job gets: from the tools that its file grants to the trees its processes may reach.
//!
//! Landlock grants whole trees, so a pattern counts by its literal folder prefix; what is narrower is held by the
//! hook alone. `state/`, the configuration, the definitions and the person's own files are never among them.

use std::path::{Component, Path, PathBuf};

use crate::agent::Wall;
use crate::home::Home;
use crate::policy::ToolPattern;

/// What a wall is made from.
pub struct WallPlan<'a> {
    /// The data folder.
    pub home: &'a Home,
    /// The person's home folder.
    pub user_home: &'a Path,
    /// The run's own folder.
    pub run_dir: &'a Path,
    /// What the job may use: its allowlist in force, or the main session's tools.
    pub granted: &'a [ToolPattern],
    /// Programs and folders that the client needs, wherever they are: its own files, our binary, `PATH`.
    pub programs: &'a [PathBuf],
    /// Whether the job must not start without the whole wall.
    pub required: bool,
}

impl WallPlan<'_> {
    /// The wall.
    #[must_use]
    pub fn wall(&self) -> Wall {
        let mut read = vec![self.home.work(), self.home.bin()];
        read.extend(self.programs.iter().cloned());
        let mut write = vec![self.run_dir.to_path_buf()];
        write.extend(["/dev/null", "/dev/tty", "/dev/shm"].map(PathBuf::from));
        for pattern in self.granted {
            match (pattern.tool(), pattern.specifier()) {
                ("Read" | "Glob" | "Grep" | "LS", Some(rule)) => read.extend(self.tree(rule)),
                ("Edit" | "Write" | "NotebookEdit", rule) => write.extend(self.tree(rule.unwrap_or("**"))),
                ("Bash", Some(rule)) => write.extend(self.kept_by(rule)),
                _ => {}
            }
        }
        for list in [&mut read, &mut write] {
            list.sort();
            list.dedup();
        }
        Wall { hidden: vec![self.user_home.to_path_buf(), self.home.root().to_path_buf()], read, write, required: self.required }
    }

    /// The folder that a path rule names before its first wildcard; `None` where that is a protected place, or all.
    fn tree(&self, rule: &str) -> Option<PathBuf> {
        let work = self.home.work();
        let (base, rest) = if let Some(rest) = rule.strip_prefix("//") {
            (PathBuf::from("/"), rest)
        } else if let Some(rest) = rule.strip_prefix("~/") {
            (self.user_home.to_path_buf(), rest)
        } else {
            (work.clone(), rule.trim_start_matches('/').trim_start_matches("./"))
        };
        let mut tree = base.clone();
        let literal = |part: &&str| !part.contains(['*', '?', '[', '!', '\\']);
        tree.extend(rest.split('/').filter(|part| !part.is_empty()).take_while(literal));
        if Path::new(rest).components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let whole = tree == base && base != work;
        let protected = tree.starts_with(self.home.root()) && !tree.starts_with(&work);
        let around = self.home.root().starts_with(&tree);
        (!whole && !protected && !around).then_some(tree)
    }

    /// `tools/NAME/`, where a job is granted our command NAME.
    fn kept_by(&self, rule: &str) -> Option<PathBuf> {
        let mut words = rule.split_whitespace();
        if words.next() != Some("ollim-bot") {
            return None;
        }
        let name = words.next()?.trim_end_matches(":*");
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        plain.then(|| self.home.tools().join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(granted: &[&str]) -> Wall {
        let granted: Vec<ToolPattern> = granted.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
        WallPlan {
            home: &Home::new("/home/sam/.ollim-bot"),
            user_home: Path::new("/home/sam"),
            run_dir: Path::new("/home/sam/.ollim-bot/state/runs/1"),
            granted: &granted,
            programs: &[PathBuf::from("/home/sam/.local/bin/claude")],
            required: false,
        }
        .wall()
    }

    #[test]
    fn a_job_without_paths_writes_its_own_folder_only() {
        let wall = wall(&["Bash(ollim-bot help)", "Read"]);
        assert_eq!(wall.hidden, ["/home/sam", "/home/sam/.ollim-bot"].map(PathBuf::from));
        assert_eq!(wall.write, ["/dev/null", "/dev/shm", "/dev/tty", "/home/sam/.ollim-bot/state/runs/1", "/home/sam/.ollim-bot/tools/help"].map(PathBuf::from));
        assert_eq!(wall.read, ["/home/sam/.local/bin/claude", "/home/sam/.ollim-bot/bin", "/home/sam/.ollim-bot/work"].map(PathBuf::from));
    }

    #[test]
    fn a_path_rule_grants_its_literal_prefix_and_never_a_protected_place() {
        let check = |rule: &str, expect: Option<&str>| {
            let before = wall(&[]).write;
            let added: Vec<PathBuf> = wall(&[rule]).write.into_iter().filter(|path| !before.contains(path)).collect();
            assert_eq!(added, expect.map(PathBuf::from).into_iter().collect::<Vec<_>>(), "{rule}");
        };
        check("Edit(notes/**)", Some("/home/sam/.ollim-bot/work/notes"));
        check("Edit(notes/today.md)", Some("/home/sam/.ollim-bot/work/notes/today.md"));
        check("Write(notes/2026-*/x.md)", Some("/home/sam/.ollim-bot/work/notes"));
        check("Edit", Some("/home/sam/.ollim-bot/work"));
        check("Edit(**/*.md)", Some("/home/sam/.ollim-bot/work"));
        check("Edit(~/Documents/**)", Some("/home/sam/Documents"));
        check("Edit(//srv/data/**)", Some("/srv/data"));
        check("Edit(~/**)", None);
        check("Edit(//**)", None);
        check("Edit(//home/**)", None);
        check("Edit(~/.ollim-bot/**)", None);
        check("Edit(~/.ollim-bot/state/**)", None);
        check("Edit(//home/sam/.ollim-bot/routines/**)", None);
        check("Edit(../routines/**)", None);
        check("Edit(notes/../../state/**)", None);
        check("Bash(ollim-bot gmail *)", Some("/home/sam/.ollim-bot/tools/gmail"));
        check("Bash(ollim-bot ../x *)", None);
        check("Bash(git *)", None);
    }
}
