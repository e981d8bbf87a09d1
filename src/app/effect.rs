//! The effects of commands, which decide who may use them.

use super::{App, Caller, Command, ServiceCommand};
use crate::refusal::Refusal;

/// The effect of a command, as far as it decides who may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Shows something.
    Reads,
    /// Creates or changes definitions. A run may, if they have no more permissions than the run itself.
    Makes,
    /// Starts an agent, with no more permissions than the caller.
    Spawns,
    /// Schedules the next check of the caller's own chain, and nothing else.
    FollowsUp,
    /// Changes runs or the service, or uses the person's terminal. Only the person may.
    Controls,
}

/// Commands of the command line, by their first words, that only the person may use. No rule can grant them to a job.
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
    "push",
    "questions",
    "restore",
    "resume",
    "run",
    "service",
    "web",
    "why",
];

impl Command {
    /// Returns the effect of the command. The match is exhaustive on purpose: a new command must be classified.
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
            // A line is tried in the shell of a job, perhaps not the caller's, and the output shows what that job can read.
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
            // Shows the output of a channel's program.
            Self::Channels
            // Shows what went wrong with other jobs.
            | Self::Why { .. }
            | Self::RefusedCalls { .. }
            // Shows the contents of skills and the persona, and tries a line of another job.
            | Self::DryRun { .. }
            // They can show private data, and are started for that.
            | Self::McpServers
            | Self::McpTools { .. }
            // No job may answer for the person, or read what other jobs want to run.
            | Self::Questions
            | Self::Answer { .. }
            | Self::FileOf { .. }
            | Self::Template { .. }
            | Self::AddText { .. }
            | Self::Resume { .. }
            | Self::Replace { .. }
            | Self::ProlongChain { .. }
            // Shows where the login comes from, and runs the person's programs.
            | Self::Doctor { .. }
            | Self::Backup { .. }
            | Self::CopyJournal { .. }
            | Self::RestoreBackup { .. }
            | Self::Unit(_)
            | Self::Init { .. }
            | Self::Import { .. }
            | Self::ImportCrontab { .. }
            | Self::ImportSystemd { .. }
            | Self::Push { .. }
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

    /// Refuses a command that the caller may not use at all.
    pub(super) fn permit(&self, command: &Command) -> Result<(), Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(()) };
        match (command.effect(), &run.agent) {
            (Effect::Reads, _) => Ok(()),
            (Effect::Controls, _) => self.require_person(),
            // Jobs created by the agent would have the permissions of the job, rather than its own.
            (Effect::Makes | Effect::Spawns | Effect::FollowsUp, Some(agent)) => Err(Refusal::denied(format!(
                "the agent {agent} was called by another one, and makes and changes no jobs"
            ))
            .hint("report to whoever called you what is to be done")),
            (Effect::Makes | Effect::Spawns | Effect::FollowsUp, None) => Ok(()),
        }
    }
}
