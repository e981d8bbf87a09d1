//! The sandbox of a run: from the tools that it is granted to what its client, its shell and each program may reach.
//!
//! Landlock grants whole trees, so a pattern counts here only where it names one: `Edit(notes/**)` opens `work/notes/` to the
//! shell, `Edit(notes/*.md)` nothing, and the file tools serve the rest. `state/`, the configuration, the definitions and the
//! person's own files are never among what is granted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use agent_sandbox::{Answer, Attributes, Domain, Limits, Network, ShellSpec, Start, farm, system};

use crate::agent::Sandbox;
use crate::home::Home;
use crate::policy::{
    Decision, Executes, Layer, Place, Policy, ProgramDecision, ProgramStart, Rights, ShellRights, ToolPattern, Verdict,
    Writes, free_programs,
};

/// What a run's sandbox is made from.
#[derive(Clone, Debug)]
pub struct SandboxPlan {
    /// The data folder.
    pub home: Home,
    /// The person's home folder.
    pub user_home: PathBuf,
    /// The run's own folder.
    pub run_dir: PathBuf,
    /// Where the links of the shell's `PATH` are made: in the run's folder. Each agent that the job may call has its own.
    pub links: PathBuf,
    /// What the job may use: its allowlist in force, or the main session's tools.
    pub granted: Vec<ToolPattern>,
    /// Where programs are looked for, in order.
    pub path: Vec<PathBuf>,
    /// The program that is the sandbox's stages.
    pub shell_binary: PathBuf,
    /// Whether the job must not start without the whole sandbox.
    pub required: bool,
    /// Whether programs of the job may use the network.
    pub network: bool,
    /// What each of its processes may take.
    pub limits: Limits,
}

/// The files of programs that are only started by way of the broker: those that denials speak of, and our own.
#[derive(Clone, Debug, Default)]
struct Guarded(Vec<PathBuf>);

/// A run's sandbox, made.
#[derive(Debug)]
pub struct JobSandbox {
    /// That of the job itself.
    own: Part,
    /// Those of the agents that it may call, by their names.
    agents: BTreeMap<String, Part>,
}

/// What holds for the lines of one caller.
#[derive(Debug)]
struct Part {
    plan: SandboxPlan,
    guarded: Guarded,
    shell: Option<ShellSpec>,
    /// What every program outside of the shell may reach. Made once, since each start waits for its domain.
    base: Domain,
}

impl Part {
    fn make(plan: SandboxPlan, rights: Option<&ShellRights>) -> io::Result<Self> {
        plan.prepare()?;
        let guarded = rights.map(|rights| plan.guarded(rights)).unwrap_or_default();
        let shell = rights.map(|rights| plan.shell(rights, &guarded)).transpose()?;
        let base = plan.base();
        Ok(Self { plan, guarded, shell, base })
    }
}

/// A program that was decided about.
#[derive(Debug)]
pub struct Judged {
    /// The verdict with its evidence.
    pub decision: Decision,
    /// What the runner is told.
    pub answer: Answer,
}

impl JobSandbox {
    /// Makes the folders that it needs. `rights`: what the job's shell may do; `None`: it has none.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn make(plan: SandboxPlan, rights: Option<&ShellRights>) -> io::Result<Self> {
        Ok(Self { own: Part::make(plan, rights)?, agents: BTreeMap::new() })
    }

    /// The same with an agent that the job may call: what it is granted, and what its shell may do.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn with_agent(
        mut self,
        name: &str,
        granted: Vec<ToolPattern>,
        rights: Option<&ShellRights>,
    ) -> io::Result<Self> {
        // An agent's name names a file, so it is one part of a path.
        let links = self.own.plan.links.join("agents").join(name);
        let plan = SandboxPlan { granted, links, ..self.own.plan.clone() };
        self.agents.insert(name.to_owned(), Part::make(plan, rights)?);
        Ok(self)
    }

    /// The same where the session's own lines run as the person's do, and only its agents are held.
    #[must_use]
    pub fn with_plain_shell(mut self) -> Self {
        if let Some(shell) = &mut self.own.shell {
            shell.plain = true;
        }
        self
    }

    /// `None`: no agent of this name has a shell here.
    fn part(&self, caller: Option<&str>) -> Option<&Part> {
        caller.map_or(Some(&self.own), |name| self.agents.get(name))
    }

    /// What the client is started with; `limited`: it is in a domain of its own.
    #[must_use]
    pub fn for_client(&self, limited: bool) -> Sandbox {
        let shells = self.agents.iter().filter_map(|(name, part)| Some((name.clone(), part.shell.clone()?)));
        let agents: BTreeMap<String, ShellSpec> = shells.collect();
        let own = &self.own;
        let client = limited.then(|| own.plan.client(own.shell.iter().chain(agents.values())));
        Sandbox { client, shell: own.shell.clone(), agents }
    }

    /// Decides about a program: whether it may start, where, and with what it reaches.
    #[must_use]
    pub fn judge(&self, policy: &Policy, start: &Start) -> Judged {
        let agent_type = start.caller.as_deref();
        let Some(Part { plan, guarded, shell, base }) = self.part(agent_type) else {
            let message = format!("denied: the agent `{}` has no shell here", agent_type.unwrap_or_default());
            let decision = Decision {
                verdict: Verdict::Deny,
                layer: Layer::System,
                rule: None,
                reason: message.clone(),
                commands: vec![start.argv.join(" ")],
                read_only: false,
            };
            return Judged { decision, answer: Answer::Deny { code: 126, message } };
        };
        let argv = plan.named(&start.argv);
        let asked = ProgramStart { argv: &argv, cwd: &start.cwd, env: &start.env, agent_type };
        let ProgramDecision { decision, place } = policy.decide_program(&asked);
        let deny = |code, message| Answer::Deny { code, message };
        let name = argv.first().map(String::as_str).unwrap_or_default();
        let answer = match (place, plan.find(name, &start.cwd)) {
            (Place::Nowhere, _) => deny(126, decision.reason.clone()),
            (_, None) => deny(127, format!("{name}: command not found")),
            (Place::Here, Some(program)) if plan.is_of_system(&program) => match shell {
                // What runs outside may do more than what it starts here.
                Some(shell) if !start.by_shell => {
                    let env = start.env.clone().into_iter().chain(shell.env.clone()).collect();
                    Answer::Outside { program, env, domain: Box::new(shell.domain.clone()) }
                }
                _ => Answer::Here { program },
            },
            (Place::Here, Some(program)) => {
                let message = format!(
                    "denied: {} is not the system's own `{name}`: it needs a rule, `Bash({name} *)`",
                    program.display()
                );
                deny(126, message)
            }
            // Elsewhere `find` has resolved it.
            (Place::Outside(_), Some(program)) if leads_elsewhere(&program) => {
                let message = format!(
                    "denied: `{name}` is or follows a symlink where the job may write, and the job may have made it; the rule can \
                     spell the file's own path"
                );
                deny(126, message)
            }
            (Place::Outside(_), Some(program)) if !plan.is_within_reach(name, &program, guarded, shell.as_ref()) => {
                let message = format!(
                    "denied: `{name}` leads to {}, where a job starts nothing: programs lie in work/, come with the system, or are \
                     spelled by a rule with their path",
                    program.display()
                );
                deny(126, message)
            }
            (Place::Outside(rights), Some(program)) => match plan.program(&program, &rights, guarded, base.clone()) {
                Ok((domain, own)) => {
                    // What the line sets was judged harmless; `PATH` and the like stay ours.
                    let env = start.env.clone().into_iter().chain(own).collect();
                    Answer::Outside { program, env, domain: Box::new(domain) }
                }
                Err(error) => deny(126, format!("{name} was not run: its folder could not be made: {error}")),
            },
        };
        Judged { decision, answer }
    }
}

/// What path rules open.
#[derive(Debug, Default)]
struct Trees {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// A rule reads everything that is not hidden.
    everything: bool,
}

impl SandboxPlan {
    /// Temporary files of the run's shell and programs.
    fn temporary(&self) -> PathBuf {
        self.run_dir.join("tmp")
    }

    /// The folders in `work/` that are granted, made where they are missing: the kernel grants only what is there.
    /// Not through a link that a program has left there: what it leads to is made by nobody.
    fn prepare(&self) -> io::Result<()> {
        let work = self.home.work();
        let inside = |path: &&Path| path.starts_with(&work) && *path != work;
        let through_link = |path: &Path| path.ancestors().take_while(inside).any(Path::is_symlink);
        let trees = self.trees(false).write.into_iter().filter(|path| path.starts_with(&work) && !through_link(path));
        trees.chain([self.temporary()]).try_for_each(std::fs::create_dir_all)
    }

    /// The client's own domain, before it adds what it needs itself. `shells`: what it is to start lies within.
    fn client<'a>(&self, shells: impl Iterator<Item = &'a ShellSpec>) -> Domain {
        let Trees { mut read, write, .. } = self.trees(false);
        read.push(self.home.work());
        let mut domain = Domain {
            beside: self.hidden(),
            read,
            write,
            execute: system::loaders(),
            network: Network::All,
            required: self.required,
            ..Domain::default()
        };
        domain.write.push(self.temporary());
        for shell in shells {
            domain.execute.extend(shell.domain.execute.iter().cloned());
            domain.read.extend(shell.domain.read.iter().cloned());
            domain.write.extend(shell.domain.write.iter().cloned());
        }
        tidy(domain)
    }

    /// The shell of the job, and the folders that its `PATH` leads to.
    fn shell(&self, rights: &ShellRights, guarded: &Guarded) -> io::Result<ShellSpec> {
        let programs = farm::known_programs(&self.path);
        let (all, overlay) = (self.farm(), self.overlay());
        let trampoline = |name: &str| (name.to_owned(), self.shell_binary.clone());
        let free = |name: &str| rights.free.contains(&name).then(|| programs.get(name)).flatten();
        // The same for every run: what a run's own rules speak of stands in its overlay.
        let links = programs.iter().map(|(name, file)| {
            match free_programs().any(|free| free == name) && self.is_of_system(file) {
                true => (name.clone(), file.clone()),
                false => trampoline(name),
            }
        });
        let stamp = farm::stamp(&self.path, &self.shell_binary.display().to_string());
        let stamped = all.with_extension("stamp");
        if std::fs::read_to_string(&stamped).ok().as_ref() != Some(&stamp) {
            farm::lay(&all, &links.collect())?;
            farm::lay(&self.judged_farm(), &programs.keys().map(String::as_str).map(trampoline).collect())?;
            std::fs::write(stamped, stamp)?;
        }
        let named = |name: &&String| {
            // `git*` or the like begins many.
            rights.judge_all || rights.judged.contains(*name) || name.starts_with("ollim-bot")
        };
        let mut own: BTreeMap<String, PathBuf> =
            programs.keys().filter(named).map(String::as_str).chain(["ollim-bot"]).map(trampoline).collect();
        let denied_free = free_programs().filter(|name| free(name).is_none());
        own.extend(denied_free.filter(|name| programs.contains_key(*name)).map(trampoline));
        farm::lay(&overlay, &own)?;
        let asked = programs
            .keys()
            .filter(|name| rights.judge_all || rights.denied.contains(*name) || name.starts_with("ollim-bot"));
        farm::lay(&self.guard(), &asked.map(String::as_str).chain(["ollim-bot"]).map(trampoline).collect())?;
        let link = self.run_dir.join(agent_sandbox::shell::FOLDER);
        farm::lay(&link, &BTreeMap::from([("bash".to_owned(), self.shell_binary.clone())]))?;

        let mut execute = system::loaders();
        execute.push(self.shell_binary.clone());
        let mut read = system::libraries();
        read.extend(system::sources());
        read.extend([all.clone(), overlay.clone(), self.guard()]);
        let trees = self.trees(true);
        read.extend(trees.read);
        let mut write = system::sinks();
        write.push(self.temporary());
        let attributes = if trees.write.is_empty() { Attributes::None } else { Attributes::OpenFiles };
        write.extend(trees.write);
        let mut path = Vec::new();
        let mut domain = Domain { required: self.required, ..Domain::default() };
        if trees.everything {
            domain.beside = self.hidden();
        }
        if rights.everything && !rights.judge_all {
            execute.extend(self.anything(guarded));
            read.extend(system::data());
            write.push(self.home.work());
            domain.network = self.network();
            path.push(self.guard());
            path.extend(self.path.iter().cloned());
        } else {
            path.push(overlay.clone());
            domain.attributes = attributes;
            execute.extend(["bash", "dash", "sh"].iter().filter_map(|name| programs.get(*name)).map(resolved));
            // Those that a rule names, too: where the rule does not hold they run without power, like any other.
            let free = free_programs().filter(|name| !rights.denied.iter().any(|denied| denied == name));
            let files = free.filter_map(|name| programs.get(name));
            execute.extend(files.filter(|file| self.is_of_system(file)).map(resolved));
            path.push(all);
        }
        domain.list.push(self.home.work());
        (domain.execute, domain.read, domain.write) = (execute, read, write);
        Ok(ShellSpec {
            plain: false,
            bash: programs.get("bash").cloned().unwrap_or_else(|| PathBuf::from("/bin/bash")),
            domain: tidy(domain),
            env: BTreeMap::from([("PATH".to_owned(), joined(&path))]),
            trampoline: overlay.join("ollim-bot"),
            spelled: rights.spelled.clone(),
            limits: self.limits,
        })
    }

    /// What every program outside of the shell may reach, whatever its rights.
    fn base(&self) -> Domain {
        let trees = self.trees(false);
        let mut domain = Domain { required: self.required, network: Network::None, ..Domain::default() };
        if trees.everything {
            domain.beside = self.hidden();
        }
        domain.read = system::data();
        domain.read.extend(system::sources());
        domain.read.extend(trees.read);
        domain.read.extend([self.home.work(), self.guard(), self.judged_farm()]);
        domain.list = ["/usr", "/etc", "/opt"].iter().map(resolved).collect();
        domain.write = system::sinks();
        domain.write.push(self.temporary());
        domain.execute = system::loaders();
        domain.execute.push(self.shell_binary.clone());
        // What it starts by way of a shell is judged like any other.
        domain.execute.extend(["/bin/sh", "/bin/bash"].iter().map(resolved));
        tidy(domain)
    }

    /// What one program may reach, and what its environment has besides the clean one.
    fn program(
        &self,
        program: &Path,
        rights: &Rights,
        guarded: &Guarded,
        mut domain: Domain,
    ) -> io::Result<(Domain, BTreeMap<String, String>)> {
        domain.execute.push(program.to_path_buf());
        domain.network = match (rights.network && self.network, rights.local_sockets) {
            (true, true) => Network::All,
            (true, false) => Network::Internet,
            (false, true) => Network::Local,
            (false, false) => Network::None,
        };
        let mut env = BTreeMap::from([("PATH".to_owned(), joined(&[self.judged_farm()]))]);
        if program.file_name().is_some_and(|name| name == "git") && matches!(rights.executes, Executes::Itself(_)) {
            // It may not execute them, and would end with an error where there are some.
            let hooks = [("COUNT", "3"), ("KEY_2", "core.hooksPath"), ("VALUE_2", "/dev/null")];
            env.extend(hooks.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value.to_owned())));
        }
        let narrow = !matches!(rights.executes, Executes::Anything) && !farm::is_script(program);
        match (&rights.executes, narrow) {
            (Executes::Itself(helpers), true) => {
                let (folders, names): (Vec<&str>, Vec<&str>) = helpers.iter().partition(|name| name.starts_with('/'));
                domain.execute.extend(folders.iter().map(resolved));
                let files = names.iter().filter_map(|name| Some(((*name).to_owned(), farm::find(name, &self.path)?)));
                let files: BTreeMap<String, PathBuf> = files.collect();
                domain.execute.extend(files.values().map(resolved));
                if !files.is_empty() {
                    // They run in the program's own domain, so they need no rule of their own.
                    let own = self.run_dir.join("helpers").join(program.file_name().unwrap_or_default());
                    farm::lay(&own, &files)?;
                    domain.read.push(own.clone());
                    env.insert("PATH".to_owned(), joined(&[own, self.judged_farm()]));
                }
            }
            _ => {
                domain.execute.extend(self.anything(guarded));
                let path: Vec<PathBuf> = [self.guard()].into_iter().chain(self.path.iter().cloned()).collect();
                env.insert("PATH".to_owned(), joined(&path));
            }
        }
        match &rights.writes {
            Writes::Nothing => domain.attributes = Attributes::None,
            Writes::Work => {
                domain.write.push(self.home.work());
                domain.write.extend(self.written_by_programs());
            }
            Writes::OwnCommand(name) => {
                let kept = self.home.tools().join(name);
                std::fs::create_dir_all(&kept)?;
                domain.write.push(kept);
                domain.execute.push(self.home.bin());
            }
        }
        Ok((tidy(domain), env))
    }

    /// Whether a program is one that came with the system.
    fn is_of_system(&self, program: &Path) -> bool {
        let program = resolved(program);
        system::programs().iter().any(|folder| program.starts_with(folder))
    }

    fn overlay(&self) -> PathBuf {
        self.links.join(farm::OVERLAY)
    }

    fn judged_farm(&self) -> PathBuf {
        self.home.state().join(farm::JUDGED)
    }

    fn guard(&self) -> PathBuf {
        self.links.join(farm::GUARD)
    }

    fn farm(&self) -> PathBuf {
        self.home.state().join(farm::FOLDER)
    }

    fn network(&self) -> Network {
        if self.network { Network::Internet } else { Network::None }
    }

    fn hidden(&self) -> Vec<PathBuf> {
        vec![self.user_home.clone(), self.home.root().to_path_buf()]
    }

    /// The arguments of a program with its plain name, where the shell has found it in a farm.
    fn named(&self, argv: &[String]) -> Vec<String> {
        let mut argv = argv.to_vec();
        let farms = [self.overlay(), self.guard(), self.farm(), self.judged_farm()];
        if let Some(name) = argv.first_mut() {
            let path = Path::new(name.as_str());
            if path.parent().is_some_and(|folder| farms.iter().any(|farm| farm == folder))
                && let Some(plain) = path.file_name().and_then(OsStr::to_str)
            {
                *name = plain.to_owned();
            }
        }
        argv
    }

    /// The file of a program, by its name or by a path that a rule spells. Without symlinks, save where the job itself may have
    /// made one: there it stays in the path, and the kernel grants nothing through it.
    fn find(&self, name: &str, cwd: &Path) -> Option<PathBuf> {
        let file = match name.contains('/') {
            true => Some(cwd.join(name)).filter(|file| farm::is_program(file)),
            false => farm::find(name, &self.path),
        };
        file.map(|file| if self.may_have_changed(&file) { file } else { resolved(file) })
    }

    /// Whether a file lies where the job may write.
    fn may_have_changed(&self, file: &Path) -> bool {
        let mut trees = self.trees(false).write;
        trees.extend([self.home.work(), self.run_dir.clone()]);
        trees.iter().any(|tree| file.starts_with(tree) || file.starts_with(resolved(tree)))
    }

    /// Whether a program may be started outside of the shell from where it lies. By its name it is found on `PATH` only; by a path
    /// an agent can name any file.
    fn is_within_reach(&self, name: &str, program: &Path, guarded: &Guarded, shell: Option<&ShellSpec>) -> bool {
        !name.contains('/')
            || shell.is_some_and(|shell| shell.spelled.iter().any(|spelled| spelled == name))
            || self.anything(guarded).iter().any(|tree| program.starts_with(tree))
    }

    /// The files under which programs could be started past the broker.
    fn guarded(&self, rights: &ShellRights) -> Guarded {
        const GIT: &[&str] = &["/usr/lib/git-core", "/usr/libexec/git-core", "/usr/local/libexec/git-core"];
        let folders: Vec<PathBuf> =
            self.path.iter().cloned().chain(["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from)).collect();
        let mut files: Vec<PathBuf> = Vec::new();
        for name in &rights.denied {
            files.extend(
                folders.iter().map(|folder| folder.join(name)).filter(|file| farm::is_program(file)).map(resolved),
            );
            if name == "git" {
                files.extend(GIT.iter().map(resolved));
            }
        }
        files.sort();
        files.dedup();
        Guarded(files)
    }

    /// Everything that may be executed by what runs others: the system's programs, those of `PATH`, and what lies in `work/`.
    fn anything(&self, guarded: &Guarded) -> Vec<PathBuf> {
        // Own commands are started by `ollim-bot` alone, which asks for each.
        let path = self.path.iter().map(resolved).filter(|folder| !folder.starts_with(self.home.bin()));
        let trees: Vec<PathBuf> = system::programs().into_iter().chain(path).collect();
        let own = [self.home.work(), self.temporary(), self.shell_binary.clone()];
        agent_sandbox::without(&trees, &guarded.0).into_iter().chain(own).collect()
    }

    /// What path rules open. `exactly`: only where the kernel can hold the whole rule, for a shell, which no file tool's check
    /// stands before.
    fn trees(&self, exactly: bool) -> Trees {
        let mut trees = Trees::default();
        for pattern in &self.granted {
            let rule = pattern.specifier().unwrap_or("**");
            match pattern.canonical_tool() {
                "*" => {
                    trees.everything = true;
                    trees.write.extend(self.tree("**", true, exactly));
                }
                "Read" if pattern.is_whole_tool() => trees.everything = true,
                "Read" | "Grep" => trees.read.extend(self.tree(rule, false, exactly)),
                "Glob" | "LS" if !exactly => trees.read.extend(self.tree(rule, false, exactly)),
                "Edit" | "NotebookEdit" => {
                    trees.everything |= pattern.is_whole_tool();
                    trees.write.extend(self.tree(rule, true, exactly));
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
    fn written_by_programs(&self) -> Vec<PathBuf> {
        let rules =
            self.granted.iter().filter(|pattern| matches!(pattern.canonical_tool(), "*" | "Edit" | "NotebookEdit"));
        rules
            .filter_map(|pattern| match pattern.specifier() {
                Some(rule) if pattern.canonical_tool() != "*" => {
                    self.tree(rule, true, !rule.contains(['*', '?', '[', '!', '\\']))
                }
                _ => self.tree("**", true, false),
            })
            .collect()
    }

    /// The literal prefix of a path rule (in which no `..` can stand); for writing the folder that it names. `None` where that is
    /// a protected place, or everything, or, if `exactly` is wanted, where the rule is narrower than a tree and no file.
    fn tree(&self, rule: &str, write: bool, exactly: bool) -> Option<PathBuf> {
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
        // A rule that names a file: the file may not be there yet, and the kernel grants only what is.
        let folders = if write && file && !exactly { literal.saturating_sub(1) } else { literal };
        let tree: PathBuf = base.iter().map(OsStr::new).chain(parts[..folders].iter().map(OsStr::new)).collect();
        let whole = tree == base && base != work;
        let protected = tree.starts_with(self.home.root()) && !tree.starts_with(&work);
        let around = self.home.root().starts_with(&tree);
        (!whole && !protected && !around).then_some(tree)
    }
}

fn resolved(path: impl AsRef<Path>) -> PathBuf {
    agent_sandbox::resolved(path.as_ref())
}

/// Whether a file is a symlink, or lies behind one. What a job does in between, the kernel sees: it grants nothing through one.
fn leads_elsewhere(file: &Path) -> bool {
    file.ancestors().any(Path::is_symlink)
}

fn joined(path: &[PathBuf]) -> String {
    let texts: Vec<String> = path.iter().map(|folder| folder.display().to_string()).collect();
    texts.join(":")
}

/// Each place once.
fn tidy(mut domain: Domain) -> Domain {
    for list in [&mut domain.read, &mut domain.list, &mut domain.write, &mut domain.execute] {
        list.sort();
        list.dedup();
    }
    domain
}
