//! Which kernel wall a background job gets: from the tools that its file grants to the trees its processes may reach.
//!
//! Landlock grants whole trees, so a pattern counts by its literal folder prefix; what is narrower is held by the
//! hook alone. A Bash rule for a program that is not known for reading (`git commit`, `cp`, `make`) grants writing in
//! `work/`. `state/`, the configuration, the definitions and the person's own files are never among them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::agent::Wall;
use crate::home::Home;
use crate::policy::{ToolPattern, may_change_files};

/// What a wall is made from. The client adds what every run of it needs: its own files, the run's folder, `work/` to read.
pub struct WallPlan<'a> {
    /// The data folder.
    pub home: &'a Home,
    /// The person's home folder.
    pub user_home: &'a Path,
    /// What the job may use: its allowlist in force, or the main session's tools.
    pub granted: &'a [ToolPattern],
    /// The person's own commands (`ollim-bot NAME`) that the job may call.
    pub commands: &'a [String],
    /// Folders with programs, wherever they are: those of `PATH`.
    pub programs: &'a [PathBuf],
    /// Whether the job must not start without the whole wall.
    pub required: bool,
}

impl WallPlan<'_> {
    /// The wall, and the folders in `work/` and `tools/` that it grants, made where they are missing: the kernel
    /// grants only what is there.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn prepare(&self) -> io::Result<Wall> {
        let wall = self.wall();
        for folder in wall
            .write
            .iter()
            .filter(|path| [self.home.work(), self.home.tools()].iter().any(|own| path.starts_with(own)))
        {
            std::fs::create_dir_all(folder)?;
        }
        Ok(wall)
    }

    fn wall(&self) -> Wall {
        let mut read = vec![self.home.bin()];
        read.extend(self.programs.iter().cloned());
        let mut write: Vec<PathBuf> = self.commands.iter().map(|name| self.home.tools().join(name)).collect();
        for pattern in self.granted {
            match (pattern.tool(), pattern.specifier()) {
                ("Read" | "Glob" | "Grep" | "LS", Some(rule)) => read.extend(self.tree(rule, false)),
                ("Edit" | "Write" | "NotebookEdit", rule) => write.extend(self.tree(rule.unwrap_or("**"), true)),
                ("Bash", Some(rule)) => write.extend(self.kept_by(rule)),
                _ => {}
            }
            // A program that is there to change files does it in `work/`: which ones, no rule says.
            if may_change_files(pattern) {
                write.push(self.home.work());
            }
        }
        for list in [&mut read, &mut write] {
            list.sort();
            list.dedup();
        }
        Wall {
            hidden: vec![self.user_home.to_path_buf(), self.home.root().to_path_buf()],
            read,
            write,
            required: self.required,
        }
    }

    /// The literal prefix of a path rule (in which no `..` can stand); for writing the folder that it names. `None` where that is a protected place,
    /// or everything.
    fn tree(&self, rule: &str, write: bool) -> Option<PathBuf> {
        let work = self.home.work();
        let (base, rest) = if let Some(rest) = rule.strip_prefix("//") {
            (PathBuf::from("/"), rest)
        } else if let Some(rest) = rule.strip_prefix("~/") {
            (self.user_home.to_path_buf(), rest)
        } else {
            (work.clone(), rule.trim_start_matches('/').trim_start_matches("./"))
        };
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        let literal = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '!', '\\'])).count();
        // A rule that names a file: the file may not be there yet, and the kernel grants only what is.
        let folders = if write && literal == parts.len() { literal.saturating_sub(1) } else { literal };
        let tree: PathBuf = base.iter().map(OsStr::new).chain(parts[..folders].iter().map(OsStr::new)).collect();
        let whole = tree == base && base != work;
        let protected = tree.starts_with(self.home.root()) && !tree.starts_with(&work);
        let around = self.home.root().starts_with(&tree);
        (!whole && !protected && !around).then_some(tree)
    }

    /// `tools/NAME/`, where a rule grants a part of what `ollim-bot NAME` does.
    fn kept_by(&self, rule: &str) -> Option<PathBuf> {
        let mut words = rule.split_whitespace();
        if words.next() != Some("ollim-bot") {
            return None;
        }
        let name = words.next()?.trim_end_matches(":*");
        is_plain(name).then(|| self.home.tools().join(name))
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The names of the person's own commands in these folders: files called `ollim-bot-NAME`.
pub fn own_commands<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    let files = folders.into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_str()?.strip_prefix("ollim-bot-")?.to_owned();
        is_plain(&name).then_some(name)
    };
    let mut names: Vec<String> = files.filter_map(|entry| name(entry.ok()?)).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(granted: &[&str]) -> Wall {
        let granted: Vec<ToolPattern> = granted.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
        WallPlan {
            home: &Home::new("/home/sam/.ollim-bot"),
            user_home: Path::new("/home/sam"),
            granted: &granted,
            commands: &[],
            programs: &[PathBuf::from("/home/sam/.local/bin")],
            required: false,
        }
        .wall()
    }

    #[test]
    fn a_job_without_paths_is_granted_programs_only() {
        let wall = wall(&["mcp__discord__ping_user", "Read", "Bash(ls *)"]);
        assert_eq!(wall.hidden, ["/home/sam", "/home/sam/.ollim-bot"].map(PathBuf::from));
        assert_eq!(wall.write, Vec::<PathBuf>::new());
        assert_eq!(wall.read, ["/home/sam/.local/bin", "/home/sam/.ollim-bot/bin"].map(PathBuf::from));
    }

    #[test]
    fn a_path_rule_grants_its_literal_prefix_and_never_a_protected_place() {
        let check = |rule: &str, expect: Option<&str>| {
            let before = wall(&[]).write;
            let added: Vec<PathBuf> = wall(&[rule]).write.into_iter().filter(|path| !before.contains(path)).collect();
            assert_eq!(added, expect.map(PathBuf::from).into_iter().collect::<Vec<_>>(), "{rule}");
        };
        check("Edit(notes/**)", Some("/home/sam/.ollim-bot/work/notes"));
        check("Edit(notes/today.md)", Some("/home/sam/.ollim-bot/work/notes"));
        check("Edit(today.md)", Some("/home/sam/.ollim-bot/work"));
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
        check("Bash(ollim-bot gmail *)", Some("/home/sam/.ollim-bot/tools/gmail"));
        check("Bash(ollim-bot ../x *)", None);
        check("Bash(git log *)", None);
        check("Bash(git *)", Some("/home/sam/.ollim-bot/work"));
        check("Bash(cp notes/*)", Some("/home/sam/.ollim-bot/work"));
        check("Bash", Some("/home/sam/.ollim-bot/work"));
        check("*", Some("/home/sam/.ollim-bot/work"));
    }

    #[test]
    fn what_a_command_keeps_is_granted_with_it() {
        let plan = WallPlan {
            home: &Home::new("/home/sam/.ollim-bot"),
            user_home: Path::new("/home/sam"),
            granted: &[],
            commands: &["gmail".to_owned()],
            programs: &[],
            required: false,
        };
        assert_eq!(plan.wall().write, [PathBuf::from("/home/sam/.ollim-bot/tools/gmail")]);
    }

    #[test]
    fn commands_are_found_by_their_file_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ollim-bot", "ollim-bot-", "ollim-bot-gmail", "ollim-bot-a b", "git", "ollim-bot-cal"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(own_commands([folder.path(), Path::new("/nonexistent"), folder.path()]), ["cal", "gmail"]);
    }
}
