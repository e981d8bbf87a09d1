//! The domains of a run's client, shell and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_sandbox::stamped::{Stamped, stamp};
use agent_sandbox::{Attributes, Domain, Network, ShellSpec, farm, mounts, system};

use super::caller::ProgramDomain;
use super::trees::{Trees, opens_files};
use super::{ClosedPlaces, SandboxPlan, resolved};
use crate::links::leads_through;
use crate::policy::{Executes, Rights, ShellRights, ToolPattern, Writes, free_programs};

/// Settings for a git that may execute no other program. It takes no command from a repository's configuration, which the job may
/// have written, and it skips hooks, since it would fail to execute them.
const GIT_SETTINGS: [(&str, &str); 9] = [
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_2", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_2", "/dev/null"),
    ("GIT_CONFIG_KEY_3", "credential.helper"),
    ("GIT_CONFIG_VALUE_3", ""),
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    ("GIT_ASKPASS", ""),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_SSH_COMMAND", "ssh"),
];

/// The folders with git's own programs.
const GIT_CORE: [&str; 3] = ["/usr/lib/git-core", "/usr/libexec/git-core", "/usr/local/libexec/git-core"];

/// Variables that exempt every host from proxies. Our settings cannot override a repository's proxy for one address or remote.
const GIT_DIRECT: [(&str, &str); 2] = [("NO_PROXY", "*"), ("no_proxy", "*")];

/// The files of programs that need no rule, by name.
type FreeFiles = BTreeMap<&'static str, PathBuf>;

impl SandboxPlan {
    /// Returns the folder for temporary files of the run's shell and programs.
    pub(super) fn temporary(&self) -> PathBuf {
        self.run_dir.join("tmp")
    }

    /// Returns the client's own domain, without the client's own needs. It includes the domains of `shells`, which the client starts. The
    /// client reads only what the job's rules open. Its file tools are judged by names, and a job that makes symlinks can change where a
    /// name leads before the client opens it. After a compaction the client reads files of the conversation again and asks nobody.
    pub(super) fn client<'a>(&self, shells: impl Iterator<Item = &'a ShellSpec>) -> Domain {
        // A missing folder opens nothing. An existing folder above it may have files that no rule names.
        let Trees { mut read, write, .. } = self.trees(false);
        read.extend(system::sources());
        let everything = |pattern: &ToolPattern| pattern.is_whole_tool() && opens_files(pattern);
        let beside = match self.granted.iter().any(everything) {
            true => self.hidden_from_readers(),
            false => {
                read.extend(self.open(system::data()));
                // Settings by the machine's administrator for every client.
                read.push("/etc/claude-code".into());
                Vec::new()
            }
        };
        let mut domain = Domain {
            beside,
            read,
            // The client may list the names in it, like the shell.
            list: vec![self.home.work()],
            write,
            execute: system::loaders(),
            no_listening: true,
            network: Network::All,
            required: self.required,
            ..Domain::default()
        };
        domain.write.push(self.temporary());
        domain.no_symlinks = true;
        for shell in shells {
            domain.no_symlinks &= shell.domain.no_symlinks;
            domain.execute.extend(shell.domain.execute.iter().cloned());
            domain.read.extend(shell.domain.read.iter().cloned());
            domain.write.extend(shell.domain.write.iter().cloned());
        }
        tidy(domain)
    }

    /// Creates the folders of links to programs that are the same for every run. The overlay contains the links for a run's own rules.
    fn lay_farm(&self, programs: &BTreeMap<String, PathBuf>, free: &FreeFiles) -> io::Result<()> {
        let all = self.farm();
        let stamp = stamp(&self.path, &self.shell_binary.display().to_string());
        let stamped = all.with_extension("stamp");
        if std::fs::read_to_string(&stamped).ok().as_ref() == Some(&stamp) {
            return Ok(());
        }
        let links = programs.iter().map(|(name, file)| match free.contains_key(name.as_str()) {
            true => (name.clone(), file.clone()),
            false => self.trampoline(name),
        });
        farm::sync_links(&all, &links.collect())?;
        farm::sync_links(&self.judged_farm(), &programs.keys().map(|name| self.trampoline(name)).collect())?;
        std::fs::write(stamped, stamp)
    }

    /// Creates the run's own folders of links: to the programs that its rules name, and to the shell.
    fn lay_overlay(&self, programs: &BTreeMap<String, PathBuf>, rights: &ShellRights) -> io::Result<()> {
        let own = |name: &&String| name.starts_with("ollim-bot");
        // A rule such as `Bash(git* push)` names no single program and sets `judge_all`.
        let judged = |name: &&String| rights.judge_all || rights.judged.contains(*name) || own(name);
        let asked = |name: &&String| rights.judge_all || rights.denied.contains(*name) || own(name);
        let denied_free = free_programs().filter(|name| !rights.free.contains(name) && programs.contains_key(*name));
        let denied_free = denied_free.map(|name| self.trampoline(name));
        let judged = programs.keys().filter(judged).map(String::as_str).chain(["ollim-bot"]);
        farm::sync_links(&self.overlay(), &judged.map(|name| self.trampoline(name)).chain(denied_free).collect())?;
        let guard = programs.keys().filter(asked).map(String::as_str).chain(["ollim-bot"]);
        farm::sync_links(&self.guard(), &guard.map(|name| self.trampoline(name)).collect())?;
        let link = self.run_dir.join(agent_sandbox::shell::FOLDER);
        farm::sync_links(&link, &BTreeMap::from([(agent_sandbox::shell::NAME.to_owned(), self.shell_binary.clone())]))
    }

    /// Returns a link by which a program's start reaches the broker.
    fn trampoline(&self, name: &str) -> (String, PathBuf) {
        (name.to_owned(), self.shell_binary.clone())
    }

    /// Builds the job's shell, and the folders of its `PATH`.
    pub(super) fn shell(&self, rights: &ShellRights, anything: &[PathBuf]) -> io::Result<ShellSpec> {
        let programs = farm::known_programs(&self.path);
        let (all, overlay) = (self.farm(), self.overlay());
        let free = self.free_files();
        self.lay_farm(&programs, &free)?;
        self.lay_overlay(&programs, rights)?;

        let mut execute = system::loaders();
        execute.push(self.shell_binary.clone());
        let mut read = self.readable(system::libraries());
        read.extend(system::sources());
        read.extend([all.clone(), overlay.clone(), self.guard()]);
        let trees = self.trees(true);
        read.extend(self.unguarded(trees.read));
        let mut write = system::sinks();
        write.push(self.temporary());
        write.extend(self.unguarded(trees.write));
        let mut path = Vec::new();
        let mut domain = Domain { required: self.required, ..Domain::default() };
        if trees.everything {
            // `/` is listed here, since the shell starts in the client's domain, which cannot list it.
            let closed: Vec<PathBuf> = self.closed_to_readers().iter().map(resolved).collect();
            read.extend(agent_sandbox::without(&["/".into()], &closed));
        }
        if rights.everything && !rights.judge_all {
            execute.extend(anything.iter().cloned());
            read.extend(self.readable(system::data()));
            write.push(self.home.work());
            domain.network = self.network();
            path.push(self.guard());
            path.extend(self.path.iter().cloned());
        } else {
            path.push(overlay.clone());
            domain.attributes = Attributes::None;
            // The client's file tools are judged by names. A symlink that is turned meanwhile leads them elsewhere.
            domain.no_symlinks = true;
            execute.extend(["bash", "dash", "sh"].iter().filter_map(|name| programs.get(*name)).map(resolved));
            // This includes programs that a rule names. Where the rule does not apply they run without rights, like the others.
            let granted = free.iter().filter(|(name, _)| !rights.denied.iter().any(|denied| denied == *name));
            execute.extend(granted.map(|(_, file)| file.clone()));
            path.push(all);
        }
        domain.list.push(self.home.work());
        (domain.execute, domain.read, domain.write) = (execute, read, write);
        Ok(ShellSpec {
            plain: false,
            of_client: Vec::new(),
            bash: programs.get("bash").cloned().unwrap_or_else(|| PathBuf::from("/bin/bash")),
            domain: tidy(domain),
            env: BTreeMap::from([("PATH".to_owned(), joined(&path))]),
            trampoline: overlay.join("ollim-bot"),
            spelled: rights.spelled.clone(),
            limits: self.limits,
            every_program: self.every_program(),
        })
    }

    /// Returns the access of every program outside of the shell, whatever its rights. No job can change these locations.
    fn every_program(&self) -> Domain {
        let mut domain = Domain { attributes: Attributes::None, ..Domain::default() };
        domain.read = self.readable(system::data());
        domain.read.extend(system::sources());
        domain.read.extend([self.guard(), self.judged_farm()]);
        domain.list = self.open(["/usr", "/etc", "/opt"].iter().map(resolved).collect());
        domain.write = system::sinks();
        domain.execute = system::loaders();
        domain.execute.push(self.shell_binary.clone());
        // A program that it starts through a shell is judged like any other.
        domain.execute.extend(["/bin/sh", "/bin/bash"].iter().map(resolved));
        tidy(domain)
    }

    /// Returns the additional access of this job's programs.
    pub(super) fn base(&self) -> Domain {
        let Trees { read, everything, .. } = self.trees(false);
        let mut read = self.unguarded(read);
        read.push(self.home.work());
        Domain {
            beside: if everything { self.closed_to_readers() } else { Vec::new() },
            read,
            write: vec![self.temporary()],
            required: self.required,
            ..Domain::default()
        }
    }

    /// Returns the file of a command of the person's own. `ollim-bot` looks for it in the same order.
    pub(super) fn command_file(&self, name: &str) -> Option<PathBuf> {
        let (file, bin) = (format!("ollim-bot-{name}"), self.home.bin());
        farm::find(&file, &[bin]).or_else(|| farm::find(&file, &self.path))
    }

    /// Returns the files beside the person's own commands that these may execute.
    fn beside_commands(&self) -> Vec<PathBuf> {
        let is_beside = |file: &PathBuf| !is_command(file) && !self.leads_to_jobs(file);
        files_in(&self.home.bin()).filter(is_beside).collect()
    }

    /// Returns whether a file that is trusted for its place leads to where a job may write, or cannot be followed.
    pub(super) fn leads_to_jobs(&self, file: &Path) -> bool {
        let own = self.trees(true).write.into_iter().chain(self.written_by_programs()).map(resolved);
        let folders: Vec<PathBuf> = self.home.folders_of_jobs().into_iter().chain(own).collect();
        leads_through(file, &folders).unwrap_or(true)
    }

    /// Returns the domain of one program, and its variables in addition to the clean environment.
    pub(super) fn program(
        &self,
        program: &Path,
        rights: &Rights,
        anything: &[PathBuf],
        mut domain: Domain,
    ) -> io::Result<ProgramDomain> {
        domain.execute.push(program.to_path_buf());
        domain.network = match (rights.network && self.network, rights.local_sockets) {
            (true, true) => Network::All,
            (true, false) => Network::Internet,
            (false, true) => Network::Local,
            (false, false) => Network::None,
        };
        let mut env = BTreeMap::from([("PATH".to_owned(), joined(&[self.judged_farm()]))]);
        if is_git(program) && matches!(rights.executes, Executes::Itself(_)) {
            let direct = if self.proxied { &[][..] } else { &GIT_DIRECT };
            let settings = GIT_SETTINGS.iter().chain(direct);
            env.extend(settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        }
        match &rights.executes {
            Executes::Itself(helpers) => {
                let (folders, mut names): (Vec<&str>, Vec<&str>) =
                    helpers.iter().partition(|name| name.starts_with('/'));
                domain.execute.extend(folders.iter().map(resolved));
                if let Some(interpreter) = farm::interpreter(program, &self.path) {
                    domain.execute.push(resolved(interpreter));
                    // A script combines programs that have no rights of their own.
                    names.extend(free_programs());
                }
                let files = names.iter().filter_map(|name| Some(((*name).to_owned(), farm::find(name, &self.path)?)));
                let files: BTreeMap<String, PathBuf> = files.collect();
                domain.execute.extend(files.values().map(resolved));
                if !files.is_empty() {
                    // These programs run in the program's own domain, so they need no rule of their own.
                    let own = self.run_dir.join("helpers").join(program.file_name().unwrap_or_default());
                    farm::sync_links(&own, &files)?;
                    domain.read.push(own.clone());
                    env.insert("PATH".to_owned(), joined(&[own, self.judged_farm()]));
                }
            }
            Executes::Anything => {
                domain.execute.extend(anything.iter().cloned());
                // If a rule denies some use of git, git's own programs are guarded from all others.
                if self.is_installed_git(program) {
                    domain.execute.extend(GIT_CORE.iter().map(resolved));
                }
                let path: Vec<PathBuf> = [self.guard()].into_iter().chain(self.path.iter().cloned()).collect();
                env.insert("PATH".to_owned(), joined(&path));
            }
        }
        match &rights.writes {
            Writes::Nothing => domain.attributes = Attributes::None,
            Writes::Work => {
                domain.write.push(self.home.work());
                domain.write.extend(self.unguarded(self.written_by_programs()));
            }
            Writes::Extension(name) => {
                let kept = self.home.tools().join(name);
                // An agent may name a command that does not exist.
                if let Some(command) = self.command_file(name) {
                    std::fs::create_dir_all(&kept)?;
                    domain.execute.push(resolved(command));
                }
                domain.write.push(kept);
                // The command reads the files beside it, and executes them unless they are commands. Commands start through the broker.
                domain.read.push(self.home.bin());
                domain.execute.extend(self.beside_commands());
            }
        }
        Ok((tidy(domain), env))
    }

    /// Returns the system's own files of the programs that need no rule, by name.
    fn free_files(&self) -> Arc<FreeFiles> {
        static FOUND: Stamped<Arc<FreeFiles>> = Stamped::new();
        // A program's name may lead to one of several alternatives.
        let folders: Vec<&Path> =
            self.path.iter().map(PathBuf::as_path).chain([Path::new("/etc/alternatives")]).collect();
        FOUND.get(stamp(&folders, ""), || {
            let (programs, of_system) = (farm::known_programs(&self.path), system::programs());
            let file = |name: &str| {
                let file = resolved(programs.get(name)?);
                of_system.iter().any(|folder| file.starts_with(folder)).then_some(file)
            };
            Arc::new(free_programs().filter_map(|name| Some((name, file(name)?))).collect())
        })
    }

    /// Returns the folders in which a shell or a program finds links with the names of programs.
    pub(super) fn farms(&self) -> [PathBuf; 4] {
        [self.overlay(), self.guard(), self.farm(), self.judged_farm()]
    }

    fn overlay(&self) -> PathBuf {
        self.links.join(farm::OVERLAY)
    }

    fn judged_farm(&self) -> PathBuf {
        self.shared_links().join(farm::JUDGED)
    }

    /// Returns the folder of the links that all runs share. A program that was upgraded, and tries something while the service is not
    /// started anew, must not change the links of the service's runs.
    fn shared_links(&self) -> PathBuf {
        let copy = self.home.shell_copy();
        if self.shell_binary != copy && copy.exists() { self.links.clone() } else { self.home.state() }
    }

    fn guard(&self) -> PathBuf {
        self.links.join(farm::GUARD)
    }

    fn farm(&self) -> PathBuf {
        self.shared_links().join(farm::FOLDER)
    }

    /// Returns whether the program is git itself. A file of that name elsewhere may be any program.
    fn is_installed_git(&self, program: &Path) -> bool {
        let of_path = self.path.iter().map(|folder| folder.join("git"));
        let mut known = of_path.chain(["/usr/bin/git", "/usr/local/bin/git"].map(PathBuf::from));
        is_git(program) && known.any(|git| resolved(git) == program)
    }

    fn network(&self) -> Network {
        if self.network { Network::Internet } else { Network::None }
    }

    /// Returns what no rule for reading opens.
    pub(super) fn closed_places(&self, rights: Option<&ShellRights>) -> ClosedPlaces {
        let guarded = rights.map(|rights| self.guarded(rights)).unwrap_or_default();
        let own = [&self.user_home, self.home.root(), Path::new("/dev"), Path::new("/dev/pts")].map(resolved);
        // The person may show `work/` elsewhere, or a part of it. It is no secret of the data folder.
        let of_work = mounts::other_paths(&[resolved(self.home.work())]);
        let others = |places: &[PathBuf]| -> Vec<PathBuf> {
            mounts::other_paths(places).into_iter().filter(|path| !of_work.contains(path)).collect()
        };
        ClosedPlaces {
            mounts: others(&[&own, guarded.as_slice()].concat()),
            of_data_folder: others(&[resolved(self.home.root())]),
            guarded,
        }
    }

    /// Returns the folders that are hidden from every job, unless a rule names something in them.
    fn hidden(&self) -> Vec<PathBuf> {
        let own = [self.user_home.clone(), self.home.root().to_path_buf()];
        own.into_iter().chain(self.closed.mounts.iter().cloned()).collect()
    }

    /// Returns the folders that are hidden where a rule opens all files. Devices are no files: a terminal gives what the person types to
    /// its first reader, and a disk gives everything.
    fn hidden_from_readers(&self) -> Vec<PathBuf> {
        [self.hidden(), vec!["/dev".into()]].concat()
    }

    /// Returns what a rule that opens all files does not open to the shell and to programs.
    fn closed_to_readers(&self) -> Vec<PathBuf> {
        [self.hidden_from_readers(), self.closed.guarded.clone()].concat()
    }

    /// Returns the system's locations without the hidden ones, and without what starts only through the broker.
    fn readable(&self, places: Vec<PathBuf>) -> Vec<PathBuf> {
        self.unguarded(self.open(places))
    }

    /// Returns the places without what starts only through the broker.
    fn unguarded(&self, places: Vec<PathBuf>) -> Vec<PathBuf> {
        agent_sandbox::without(&places, &self.closed.guarded)
    }

    /// Returns the system's locations without the hidden ones: a service's home or data may be in `/opt`.
    pub(super) fn open(&self, places: Vec<PathBuf>) -> Vec<PathBuf> {
        agent_sandbox::without(&places, &self.hidden().iter().map(resolved).collect::<Vec<_>>())
    }

    /// Returns the files by which programs could be started past the broker: those that denials and questions name, and the person's own
    /// commands, which only `ollim-bot` starts, after the service's verdict.
    fn guarded(&self, rights: &ShellRights) -> Vec<PathBuf> {
        let folders: Vec<PathBuf> =
            self.path.iter().cloned().chain(["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from)).collect();
        let programs = farm::known_programs(&self.path);
        let mut files: Vec<PathBuf> = programs
            .iter()
            .filter(|(name, _)| name.starts_with("ollim-bot-"))
            .map(|(_, file)| resolved(file))
            .collect();
        for name in &rights.denied {
            files.extend(
                folders.iter().map(|folder| folder.join(name)).filter(|file| farm::is_program(file)).map(resolved),
            );
            if name == "git" {
                files.extend(GIT_CORE.iter().map(resolved));
            }
        }
        // No domain takes a single file out of `work/`.
        let by_path = rights.denied_paths.iter().map(|path| match path.strip_prefix("~/") {
            Some(path) => resolved(self.user_home.join(path)),
            None => resolved(self.home.work().join(path)),
        });
        files.extend(by_path.filter(|file| farm::is_program(file) && !file.starts_with(self.home.work())));
        files.extend(other_names(&files, &folders));
        files.sort();
        files.dedup();
        files
    }

    /// Returns everything that programs that run others may execute: the system's programs, those of `PATH`, and the files in `work/`.
    /// The files that start only through the broker are not among it.
    pub(super) fn anything(&self) -> Vec<PathBuf> {
        // Only `ollim-bot` starts the person's own commands, and it asks about each.
        let hidden: Vec<PathBuf> = self.hidden().iter().map(resolved).collect();
        let path = self.path.iter().map(resolved).filter(|folder| !folder.starts_with(self.home.bin()));
        let path = path.flat_map(|folder| programs_of(folder, &hidden));
        let trees: Vec<PathBuf> = self.open(system::programs()).into_iter().chain(path).collect();
        let own = [self.home.work(), self.temporary(), self.shell_binary.clone()];
        agent_sandbox::without(&trees, &self.closed.guarded).into_iter().chain(own).collect()
    }
}

/// Returns the hard links in `folders` to one of these files. The kernel knows a program by its inode and not by its name.
fn other_names(files: &[PathBuf], folders: &[PathBuf]) -> Vec<PathBuf> {
    static FOUND: Stamped<Vec<PathBuf>> = Stamped::new();
    let facts = |file: &PathBuf| file.symlink_metadata().ok().filter(|facts| facts.is_file() && facts.nlink() > 1);
    let inode = |file: &PathBuf| facts(file).map(|facts| (facts.dev(), facts.ino()));
    let known: BTreeSet<_> = files.iter().filter_map(inode).collect();
    if known.is_empty() {
        return Vec::new();
    }
    FOUND.get(stamp(folders, &format!("{known:?}")), || {
        // Folders of `PATH` may be links to one another.
        let folders: BTreeSet<PathBuf> = folders.iter().map(resolved).collect();
        folders
            .iter()
            .flat_map(|folder| files_in(folder))
            .filter(|file| inode(file).is_some_and(|inode| known.contains(&inode)))
            .collect()
    })
}

/// Returns what may be executed of a folder of `PATH`: the whole folder. If the folder is hidden or contains a hidden one (a person may
/// keep the program beside the data folder), only the files directly in it.
fn programs_of(folder: PathBuf, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if !hidden.iter().any(|hidden| hidden.starts_with(&folder)) {
        return vec![folder];
    }
    files_in(&folder).filter(|file| !file.is_symlink() && farm::is_program(file)).collect()
}

/// Returns whether a file is `ollim-bot` or a person's own command, by its name.
fn is_command(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ollim-bot"))
}

fn is_git(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "git")
}

/// Returns the entries of a folder; none if it cannot be listed.
fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn joined(path: &[PathBuf]) -> String {
    let texts: Vec<String> = path.iter().map(|folder| folder.display().to_string()).collect();
    texts.join(":")
}

/// Sorts the domain's lists and removes duplicates.
fn tidy(mut domain: Domain) -> Domain {
    for list in [&mut domain.read, &mut domain.list, &mut domain.nest, &mut domain.write, &mut domain.execute] {
        list.sort();
        list.dedup();
    }
    domain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    #[test]
    fn a_folder_of_programs_shows_nothing_that_is_hidden_below_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("bot/state")).unwrap();
        for (name, mode) in [("tool", 0o755), ("notes", 0o644)] {
            std::fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        for hidden in [folder.join("bot"), folder.join("bot/state"), folder.clone()] {
            assert_eq!(programs_of(folder.clone(), &[hidden]), [folder.join("tool")]);
        }
        assert_eq!(programs_of(folder.clone(), &["/home/elsewhere".into()]), std::slice::from_ref(&folder));
        // A person's own programs may be in their home folder.
        assert_eq!(programs_of(folder.join("bin"), std::slice::from_ref(&folder)), [folder.join("bin")]);
    }

    /// Returns the plan of a run with these rules in the data folder `root`.
    fn plan(root: &Path, rules: &[&str]) -> SandboxPlan {
        SandboxPlan {
            home: Home::new(root),
            user_home: "/home/bot".into(),
            run_dir: root.join("state/runs/x"),
            links: root.join("state/runs/x"),
            granted: rules.iter().map(|rule| ToolPattern::parse(rule).unwrap()).collect(),
            path: vec!["/usr/bin".into()],
            shell_binary: "/usr/bin/ollim-shell".into(),
            required: false,
            network: true,
            proxied: false,
            limits: agent_sandbox::Limits::default(),
            closed: ClosedPlaces::default(),
        }
    }

    #[test]
    fn only_the_services_own_program_shares_the_links_of_its_runs() {
        let home = tempfile::tempdir().unwrap();
        let (root, copy) = (home.path(), Home::new(home.path()).shell_copy());
        let with = |shell: &Path| SandboxPlan { shell_binary: shell.into(), ..plan(root, &[]) };
        let (state, own) = (root.join("state"), root.join("state/runs/x"));
        // Without a service there is no copy, and nobody else's links.
        assert_eq!(with(Path::new("/usr/bin/ollim-shell")).shared_links(), state);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::write(&copy, "").unwrap();
        assert_eq!(with(&copy).shared_links(), state);
        assert_eq!(
            with(Path::new("/usr/bin/ollim-shell")).shared_links(),
            own,
            "an upgraded program that tries something"
        );
    }

    /// Checks which of a few files in `work/` the client of a job with these rules may open.
    #[track_caller]
    fn opened(rules: &[&str], expect: &[&str]) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for folder in ["notes/sub", "mail"] {
            std::fs::create_dir_all(root.join("work").join(folder)).unwrap();
        }
        let plan = plan(&root, rules);
        let Domain { read, write, .. } = plan.client(std::iter::empty());
        let within = |file: &&str| read.iter().chain(&write).any(|tree| root.join("work").join(file).starts_with(tree));
        let found: Vec<&str> =
            ["secret.txt", "notes/a.md", "notes/sub/b", "mail/c"].into_iter().filter(within).collect();
        assert_eq!(found, expect, "{rules:?}");
    }

    #[test]
    fn the_client_of_a_job_opens_no_more_of_work_than_rules_do() {
        let all = ["secret.txt", "notes/a.md", "notes/sub/b", "mail/c"];
        opened(&["Edit(notes/**)", "Bash(git log *)"], &all[1..3]);
        opened(&["Edit(notes/sub/**)", "Read(notes/*.md)"], &all[1..3]);
        opened(&["Edit(notes/sub/**)", "Grep(mail/**)"], &all[2..]);
        // A file may be replaced, so its folder is opened.
        opened(&["Edit(mail/**)", "Read(notes/sub/b)"], &all[2..]);
        // A missing folder opens nothing, and least of all what is beside it.
        for rule in ["Read(notes/sub/new/**)", "Read(notes/new/*/x)", "Grep(new/deep/**)", "Read(new/file)"] {
            opened(&["Edit(mail/**)", rule], &all[3..]);
        }
        for rule in ["Read(secret.txt)", "Read(**/*.md)", "Read", "Glob", "*"] {
            opened(&["Edit(notes/**)", rule], &all);
        }
        // The shells of these jobs cannot make symlinks.
        opened(&["Read(notes/**)", "Edit(notes/*.md)"], &all[1..3]);
        opened(&["Read(mail/**)", "Bash(git log *)"], &all[3..]);
        opened(&["Bash(git log *)"], &[]);
    }

    #[test]
    fn the_systems_places_show_nothing_that_is_hidden_below_them() {
        for home in ["/opt/bot", "/usr/share/bot", "/usr/local/lib/bot", "/home/bot"] {
            let root = Path::new(home).join(".ollim-bot");
            let plan = SandboxPlan { user_home: home.into(), ..plan(&root, &["Bash(git log *)"]) };
            let secret = root.join("state/user.token");
            let client = plan.client(std::iter::empty());
            let places = [plan.every_program(), plan.base(), client].map(|domain| [domain.read, domain.list].concat());
            for places in places.into_iter().chain([plan.anything()]) {
                assert!(!places.iter().any(|tree| secret.starts_with(tree)), "{home}: {places:?}");
                assert!(!places.is_empty());
            }
        }
    }
}
