//! The sandbox for the command lines of one caller: the job itself, or an agent that it may call.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agent_sandbox::{Answer, Domain, ShellSpec, Start, farm, system, token};

use super::{Judged, SandboxPlan, resolved};
use crate::policy::{
    BOT, Executes, Location, Policy, ProgramDecision, ProgramStart, Rights, ShellRights, Writes, on_one_line,
};

/// Maximum length of a message to a command line, in characters.
const MAX_SAID: usize = 2000;

/// Maximum number of programs whose domains are cached.
const MAX_KEPT: usize = 256;

/// A program's domain, and its variables in addition to the clean environment.
pub(super) type ProgramDomain = (Domain, BTreeMap<String, String>);

/// The sandbox of one caller. Values that stay the same for a run are computed once, since each program start waits for them.
#[derive(Debug)]
pub(super) struct Caller {
    /// The plan for the client, whose file tools are judged call by call.
    pub plan: SandboxPlan,
    /// The plan for the shell and programs: only patterns that every applicable list grants whole.
    held: SandboxPlan,
    /// The shell; `None` if the caller has none.
    pub shell: Option<ShellSpec>,
    /// The access of all its programs, in addition to that of every program.
    base: Domain,
    /// The files and folders that may be executed by programs that run others.
    anything: Vec<PathBuf>,
    /// The folders of the system's own programs.
    of_system: Vec<PathBuf>,
    /// The trees in which the job may write, each by its own path and by its path without symlinks.
    writable: Vec<PathBuf>,
    /// The cached domains of started programs, by file and rights.
    domains: Mutex<HashMap<(PathBuf, Rights), ProgramDomain>>,
}

impl Caller {
    /// Creates a caller's sandbox and its folders. `rights` are those of its shell; `None` means no shell.
    pub(super) fn make(mut plan: SandboxPlan, rights: Option<&ShellRights>) -> io::Result<Self> {
        plan.prepare()?;
        plan.closed = plan.closed_places(rights);
        let anything = plan.anything();
        let mut held = plan.clone();
        held.granted.retain(|pattern| rights.is_none_or(|rights| rights.grant_whole(pattern, &BOT)));
        let shell = rights.map(|rights| held.shell(rights, &anything)).transpose()?;
        let own = [plan.home.work(), plan.run_dir.clone()];
        let writable = plan.trees(false).write.into_iter().chain(own).flat_map(|tree| [resolved(&tree), tree]);
        let writable = writable.collect();
        let (base, of_system) = (held.base(), system::programs());
        Ok(Self { plan, held, shell, base, anything, of_system, writable, domains: Mutex::default() })
    }

    /// Decides whether a program may start, where, and in which domain.
    pub(super) fn judge(&self, policy: &Policy, start: &Start) -> Judged {
        let argv = self.named(&start.argv);
        let agent_type = start.caller.as_deref();
        let asked = ProgramStart { argv: &argv, cwd: &start.cwd, env: &start.env, agent_type };
        let ProgramDecision { decision, location } = policy.decide_program(&asked);
        let name = argv.first().map(String::as_str).unwrap_or_default();
        let answer = match (location, self.find(name, &start.cwd)) {
            (Location::Nowhere, _) => deny(126, decision.reason.clone()),
            (_, None) => deny(127, format!("{name}: command not found")),
            (Location::Here, Some(program)) => self.in_the_shell(name, program, start),
            (Location::Outside(rights), Some(program)) => self.outside(name, program, &rights, start),
        };
        Judged { decision, answer }
    }

    /// Answers for a program that needs no rule. It has no rights but the shell's.
    fn in_the_shell(&self, name: &str, program: PathBuf, start: &Start) -> Answer {
        let file = resolved(&program);
        if !self.of_system.iter().any(|folder| file.starts_with(folder)) {
            let message = format!(
                "denied: {} is not the system's own `{name}`: it needs a rule, `Bash({name} *)`",
                program.display()
            );
            return deny(126, message);
        }
        match &self.shell {
            // A program outside of the shell may have more rights, which this program must not inherit.
            Some(shell) if !start.by_shell => {
                let env = start.env.clone().into_iter().chain(shell.env.clone()).collect();
                Answer::Outside {
                    program,
                    env,
                    domain: Box::new(shell.domain.clone()),
                    takes_umask: true,
                    own_folder: None,
                }
            }
            _ => Answer::Here { program },
        }
    }

    /// Answers for a program that a rule grants.
    fn outside(&self, name: &str, program: PathBuf, rights: &Rights, start: &Start) -> Answer {
        // Outside of writable trees, `find` has resolved all symlinks.
        if self.may_have_changed(&program) && program.ancestors().any(Path::is_symlink) {
            let message = format!(
                "denied: `{name}` is or follows a symlink where the job may write, and the job may have made it; the rule can \
                 spell the file's own path"
            );
            return deny(126, message);
        }
        if !self.is_within_reach(name, &program) {
            let message = format!(
                "denied: `{name}` leads to {}, where a job starts nothing: programs lie in work/, come with the system, or are \
                 spelled by a rule with their path",
                program.display()
            );
            return deny(126, message);
        }
        if let Some(file) = self.link_of_jobs(name) {
            let message = format!(
                "denied: `{name}` is the link {}, which leads to where jobs write, and a job may have changed what is there; put the \
                 program itself on PATH, and no link",
                file.display()
            );
            return deny(126, message);
        }
        if let Some(file) = self.command_of_jobs(rights) {
            let message = format!(
                "denied: {} leads to where jobs write; keep the file itself there, and no link",
                file.display()
            );
            return deny(126, message);
        }
        match self.domain_and_folder_of(&program, rights) {
            Ok(((domain, own), folder)) => {
                // The variables that the line sets were judged harmless. `PATH` and similar variables stay ours.
                let env = start.env.clone().into_iter().chain(own).collect();
                // A person's command keeps files for later runs, so it does not take the line's umask.
                let takes_umask = !matches!(rights.writes, Writes::Extension(_));
                Answer::Outside { program, env, domain: Box::new(domain), takes_umask, own_folder: Some(folder) }
            }
            Err(error) => deny(126, format!("{name} was not run: its folder could not be made: {error}")),
        }
    }

    /// Returns the person's own command if a job could change what it leads to: its place in `bin/` is a link.
    fn command_of_jobs(&self, rights: &Rights) -> Option<PathBuf> {
        let Writes::Extension(name) = &rights.writes else { return None };
        let file = self.plan.command_file(name)?;
        self.plan.leads_to_jobs(&file).then_some(file)
    }

    /// Returns the file on `PATH` of a program that is called by its name, if a job could change what it leads to.
    fn link_of_jobs(&self, name: &str) -> Option<PathBuf> {
        let file = farm::find(name, &self.plan.path).filter(|_| !name.contains('/'))?;
        // A person may also keep programs themselves where jobs write.
        let is_link = !self.may_have_changed(&file) && resolved(&file) != file;
        (is_link && self.plan.leads_to_jobs(&file)).then_some(file)
    }

    /// Adds a folder for temporary files to the domain of a program. Many programs trust what they put there, so the shell and the other
    /// programs, which may have other rights, cannot reach it.
    fn domain_and_folder_of(&self, program: &Path, rights: &Rights) -> io::Result<(ProgramDomain, PathBuf)> {
        let (mut domain, mut env) = self.domain_of(program, rights)?;
        // Sockets in it may have names of at most 107 bytes.
        let name: String = token::random()?.chars().take(8).collect();
        let folder = resolved(&self.plan.run_dir).join("p").join(name);
        domain.write.push(folder.clone());
        if matches!(rights.executes, Executes::Anything) {
            domain.execute.push(folder.clone());
        }
        env.insert("TMPDIR".to_owned(), folder.display().to_string());
        Ok(((domain, env), folder))
    }

    /// Returns the domain of a program with these rights.
    fn domain_of(&self, program: &Path, rights: &Rights) -> io::Result<ProgramDomain> {
        let work_out = || self.held.program(program, rights, &self.anything, self.base.clone());
        // The domain depends on whether the file is a script, and that can change.
        if self.may_have_changed(program) {
            return work_out();
        }
        let key = (program.to_owned(), rights.clone());
        let kept = || self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(domain) = kept().get(&key) {
            return Ok(domain.clone());
        }
        let domain = work_out()?;
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, domain.clone());
        Ok(domain)
    }

    /// Returns the arguments with the program's plain name if the shell found the program in a farm.
    fn named(&self, argv: &[String]) -> Vec<String> {
        let mut argv = argv.to_vec();
        let farms = self.plan.farms();
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

    /// Returns the file of a program, by its name or by a path that a rule spells. Symlinks are resolved, except where the job itself may
    /// have made them: there they stay in the path, and the kernel grants nothing through them.
    fn find(&self, name: &str, cwd: &Path) -> Option<PathBuf> {
        let file = match name.contains('/') {
            true => Some(cwd.join(name)).filter(|file| farm::is_program(file)),
            false => farm::find(name, &self.plan.path),
        };
        file.map(|file| if self.may_have_changed(&file) { file } else { resolved(file) })
    }

    /// Returns whether a file is in a tree in which the job may write.
    fn may_have_changed(&self, file: &Path) -> bool {
        self.writable.iter().any(|tree| file.starts_with(tree))
    }

    /// Returns whether a program may be started outside of the shell from its location. A name is looked up on `PATH` only, but a path
    /// lets an agent name any file.
    fn is_within_reach(&self, name: &str, program: &Path) -> bool {
        !name.contains('/')
            || self.shell.as_ref().is_some_and(|shell| shell.spelled.iter().any(|spelled| spelled == name))
            || self.anything.iter().any(|tree| program.starts_with(tree))
    }
}

fn deny(code: u8, message: String) -> Answer {
    // The message may contain words of the agent.
    Answer::Deny { code, message: on_one_line(&message, MAX_SAID) }
}
