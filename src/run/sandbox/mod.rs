//! The sandbox of a run: from the tools that it is granted to what its client, its shell and each program may reach.
//!
//! Landlock grants whole trees, so a pattern counts here only where it names one: `Edit(notes/**)` opens `work/notes/` to the
//! shell, `Edit(notes/*.md)` nothing, and the file tools serve the rest ([`trees`]). `state/`, the configuration, the definitions
//! and the person's own files are never among what is granted ([`domains`]). Each program that is about to start is decided about
//! for the caller whose line it is ([`caller`]).

mod caller;
mod domains;
mod trees;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use agent_sandbox::{Answer, Limits, ShellSpec, Start};

use self::caller::Caller;
use crate::agent::Sandbox;
use crate::home::Home;
use crate::policy::{Decision, Layer, Policy, ShellRights, ToolPattern, Verdict};

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
    /// Whether the person has named a proxy for them.
    pub proxied: bool,
    /// What each of its processes may take.
    pub limits: Limits,
}

/// A run's sandbox, made.
#[derive(Debug)]
pub struct JobSandbox {
    /// What holds for the job itself.
    own: Caller,
    /// What holds for the agents that it may call, by their names.
    agents: BTreeMap<String, Caller>,
}

/// A program that was decided about.
#[derive(Debug)]
pub struct Judged {
    /// The verdict with its evidence.
    pub decision: Decision,
    /// What the runner is told.
    pub answer: Answer,
}

impl Judged {
    /// It may not start, and that is no matter of rules.
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
    /// Makes the folders that it needs. `rights`: what the job's shell may do; `None`: it has none.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn make(plan: SandboxPlan, rights: Option<&ShellRights>) -> io::Result<Self> {
        Ok(Self { own: Caller::make(plan, rights)?, agents: BTreeMap::new() })
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
        self.agents.insert(name.to_owned(), Caller::make(plan, rights)?);
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

    /// The folder that it works in.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.own.plan.home.work()
    }

    /// What the client is started with; `limited`: it is in a domain of its own.
    #[must_use]
    pub fn for_client(&self, limited: bool) -> Sandbox {
        let shells = self.agents.iter().filter_map(|(name, agent)| Some((name.clone(), agent.shell.clone()?)));
        let agents: BTreeMap<String, ShellSpec> = shells.collect();
        let own = &self.own;
        let client = limited.then(|| own.plan.client(own.shell.iter().chain(agents.values())));
        Sandbox { client, shell: own.shell.clone(), agents }
    }

    /// Decides about a program: whether it may start, where, and with what it reaches.
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
