//! The sandbox of a run: it turns the granted tools into the access of the client, the shell and each program.
//!
//! Landlock grants whole trees, so a pattern counts here only if it names one: `Edit(notes/**)` opens `work/notes/` to the
//! shell, `Edit(notes/*.md)` opens nothing, and the file tools serve the rest ([`trees`]). `state/`, the configuration, the
//! definitions and the person's own files are never granted ([`domains`]). Each program that is about to start is judged
//! for the caller of its line ([`caller`]).

mod caller;
mod domains;
mod trees;

pub(super) use self::trees::{literal_prefix, opens_files};

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use agent_sandbox::{Answer, Limits, ShellSpec, Start};

use self::caller::Caller;
use crate::agent::Sandbox;
use crate::home::Home;
use crate::policy::{Decision, Layer, Policy, ShellRights, ToolPattern, Verdict};

/// The inputs of a run's sandbox.
#[derive(Clone, Debug)]
pub struct SandboxPlan {
    /// The data folder.
    pub home: Home,
    /// The person's home folder.
    pub user_home: PathBuf,
    /// The run's own folder.
    pub run_dir: PathBuf,
    /// The folder for the links of the shell's `PATH`, in the run's folder. Each agent that the job may call has its own.
    pub links: PathBuf,
    /// The granted patterns: the job's effective allowlist, or the main session's tools.
    pub granted: Vec<ToolPattern>,
    /// The search path of programs.
    pub path: Vec<PathBuf>,
    /// The program of the sandbox's stages.
    pub shell_binary: PathBuf,
    /// Whether the job must not start without the whole sandbox.
    pub required: bool,
    /// Whether the job's programs may use the network.
    pub network: bool,
    /// Whether the person has configured a proxy for them.
    pub proxied: bool,
    /// Resource limits for all processes of the run together.
    pub limits: Limits,
    /// What no rule for reading opens. [`JobSandbox::make`] finds it.
    pub closed: ClosedPlaces,
}

/// What no rule for reading opens to a job's shell and programs, besides the person's home folder and the data folder.
#[derive(Clone, Debug, Default)]
pub struct ClosedPlaces {
    /// The files that start only through the broker. A copy of one, or the loader with one, would start past it.
    guarded: Vec<PathBuf>,
    /// Other mounts of the person's home folder, of the data folder, of devices and of the guarded files.
    mounts: Vec<PathBuf>,
    /// Those of the data folder, which no rule opens.
    of_data_folder: Vec<PathBuf>,
}

/// The sandbox of a run.
#[derive(Debug)]
pub struct JobSandbox {
    /// The sandbox of the job's own lines.
    own: Caller,
    /// The sandboxes of the agents that it may call, by their names.
    agents: BTreeMap<String, Caller>,
}

/// The decision about a program.
#[derive(Debug)]
pub struct Judged {
    /// The verdict with its evidence.
    pub decision: Decision,
    /// The answer to the runner.
    pub answer: Answer,
}

impl Judged {
    /// Denies a start for a reason other than the rules.
    pub fn denied(message: String, start: &Start) -> Self {
        let decision = Decision {
            verdict: Verdict::Deny,
            layer: Layer::System,
            rule: None,
            reason: message.clone(),
            commands: vec![start.argv.join(" ")],
            read_only: false,
        };
        Self { decision, answer: Answer::Deny { code: 126, message } }
    }
}

impl JobSandbox {
    /// Creates the sandbox and its folders. `rights` are those of the job's shell; `None` means no shell.
    ///
    /// # Errors
    /// An error if a folder cannot be created.
    pub fn make(plan: SandboxPlan, rights: Option<&ShellRights>) -> io::Result<Self> {
        Ok(Self { own: Caller::make(plan, rights)?, agents: BTreeMap::new() })
    }

    /// Adds an agent that the job may call, with its granted patterns and the rights of its shell.
    ///
    /// # Errors
    /// An error if a folder cannot be created.
    pub fn with_agent(
        mut self,
        name: &str,
        granted: Vec<ToolPattern>,
        rights: Option<&ShellRights>,
    ) -> io::Result<Self> {
        // An agent's name is also a file name, so it is a single path component.
        let links = self.own.plan.links.join("agents").join(name);
        let plan = SandboxPlan { granted, links, ..self.own.plan.clone() };
        self.agents.insert(name.to_owned(), Caller::make(plan, rights)?);
        Ok(self)
    }

    /// Lets the session's own lines run as the person's do, and restricts only its agents.
    #[must_use]
    pub fn with_plain_shell(mut self) -> Self {
        if let Some(shell) = &mut self.own.shell {
            shell.plain = true;
        }
        self
    }

    /// Returns the folder that the run works in.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.own.plan.home.work()
    }

    /// Returns the sandbox that the client is started with. `limited` says whether the client has a domain of its own.
    #[must_use]
    pub fn for_client(&self, limited: bool) -> Sandbox {
        let shells = self.agents.iter().filter_map(|(name, agent)| Some((name.clone(), agent.shell.clone()?)));
        let agents: BTreeMap<String, ShellSpec> = shells.collect();
        let own = &self.own;
        let client = limited.then(|| own.plan.client(own.shell.iter().chain(agents.values())));
        Sandbox { client, shell: own.shell.clone(), agents }
    }

    /// Decides whether a program may start, where, and in which domain.
    #[must_use]
    pub fn judge(&self, policy: &Policy, start: &Start) -> Judged {
        let caller = match &start.caller {
            None => &self.own,
            Some(name) => match self.agents.get(name) {
                Some(agent) => agent,
                None => return Judged::denied(format!("denied: the agent `{name}` has no shell here"), start),
            },
        };
        caller.judge(policy, start)
    }
}

fn resolved(path: impl AsRef<Path>) -> PathBuf {
    agent_sandbox::resolved(path.as_ref())
}
