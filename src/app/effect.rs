//! What a command does: this decides who may ask for it.

use super::{App, Caller, Command, ServiceCommand};
use crate::refusal::Refusal;

/// What a command does, so far as it matters to who may ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It shows something.
    Reads,
    /// It makes or changes definitions: a run may, as far as they have no more than the run itself.
    Makes,
    /// It starts an agent, with no more than whoever starts it.
    Spawns,
    /// It schedules the next check of the caller's own chain, and nothing else.
    FollowsUp,
    /// It changes runs or the service, or uses the person's terminal: the person's alone.
    Controls,
}

/// The commands of the command line, by their first words, that are all the person's alone: no rule lets a job do them.
pub const PERSONS_ALONE: &[&str] = &[
    "backup",
    "cancel-run",
    "channels",
    "chat",
    "doctor",
    "fire",
    "import",
    "init",
    "journal",
    "login",
    "logs",
    "mcp",
    "questions",
    "restore",
    "resume",
    "run",
    "service",
    "web",
    "why",
];

impl Command {
    /// What the command does. Exhaustive on purpose: a new command must be classified.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Overview
            | Self::ExternalCommands
            | Self::Check { .. }
            | Self::Status
            | Self::Next { .. }
            | Self::Simulate { .. }
            | Self::Calendar { .. }
            | Self::Runs(_)
            | Self::Run { .. }
            | Self::Costs { .. }
            | Self::Inbox { .. }
            | Self::Budget
            | Self::Config
            | Self::Agents
            | Self::Agent { .. }
            | Self::Sessions
            | Self::Session { .. }
            | Self::ShowPolicy { .. }
            | Self::List(_)
            | Self::Show { .. }
            | Self::Service(ServiceCommand::Status) => Effect::Reads,
            // A line is tried in the shell of a job, which may be another than the caller: what that one reads would be shown.
            Self::ExplainPolicy { tool, .. } if tool == "Bash" => Effect::Controls,
            Self::ExplainPolicy { .. } => Effect::Reads,
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::SetEnabled { .. }
            | Self::Cancel { .. }
            | Self::Snooze { .. }
            | Self::Retry { .. }
            | Self::Restore { .. } => Effect::Makes,
            Self::Spawn(_) => Effect::Spawns,
            Self::FollowUp { .. } => Effect::FollowsUp,
            // What a channel's program has said.
            Self::Channels
            // It says what went wrong with other jobs.
            | Self::Why { .. }
            | Self::RefusedCalls { .. }
            // It shows what skills and the persona say, and tries a line of another job's.
            | Self::DryRun { .. }
            // They may say what is private, and are started for it.
            | Self::McpServers
            | Self::McpTools { .. }
            // Nobody answers for the person, nor reads what other jobs want to run.
            | Self::Questions
            | Self::Answer { .. }
            | Self::FileOf { .. }
            | Self::Template { .. }
            | Self::AddText { .. }
            | Self::Resume { .. }
            | Self::Replace { .. }
            | Self::ProlongChain { .. }
            // It says where the login comes from, and runs programs of the person's.
            | Self::Doctor { .. }
            | Self::Backup { .. }
            | Self::CopyJournal { .. }
            | Self::RestoreBackup { .. }
            | Self::Unit(_)
            | Self::Init { .. }
            | Self::Import { .. }
            | Self::ImportCrontab { .. }
            | Self::ImportSystemd { .. }
            | Self::Fire { .. }
            | Self::Service(_) => Effect::Controls,
        }
    }
}

impl App {
    /// Refuses a run.
    pub(super) fn require_person(&self) -> Result<(), Refusal> {
        match self.caller {
            Caller::Person => Ok(()),
            Caller::Run(_) => Err(Refusal::denied("this is the person's alone, and a job may not do it")
                .hint("report what you wanted to do instead")),
        }
    }

    /// Refuses what the caller may not ask for at all.
    pub(super) fn permit(&self, command: &Command) -> Result<(), Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(()) };
        match (command.effect(), &run.agent) {
            (Effect::Reads, _) => Ok(()),
            (Effect::Controls, _) => self.require_person(),
            // What it makes would have what the job has.
            (Effect::Makes | Effect::Spawns | Effect::FollowsUp, Some(agent)) => Err(Refusal::denied(format!(
                "the agent {agent} was called by another one, and makes and changes no jobs"
            ))
            .hint("report to whoever called you what is to be done")),
            (Effect::Makes | Effect::Spawns | Effect::FollowsUp, None) => Ok(()),
        }
    }
}
