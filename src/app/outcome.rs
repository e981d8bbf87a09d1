//! The outcomes of commands: data, never text for a terminal.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{
    AnswerResult, BackupResult, Budgets, ChannelState, CheckResult, CopiedJournal, Costs, Diagnosis, DryRun,
    Explanation, ImportResult, Job, JobList, JobPolicy, Overview, PushResult, RemoveResult, RestoreResult, RunDetails,
    ServerTools, ServiceReply, Session, SessionList, Simulated, Status, UnitOutcome, Upcoming, Why,
};
use crate::agent::ServerState;
use crate::agents::{Agents, NamedAgent};
use crate::config::Setting;
use crate::definition::{DefinitionId, Problem};
use crate::heartbeat;
use crate::journal::{Message, Question, RefusedCalls, RunFilter, RunRecord};

/// The outcome of a [`Command`](super::Command).
#[derive(Debug)]
pub enum Outcome {
    /// The state of everything; `None` if there is no data folder.
    Overview(Option<Overview>),
    /// The names of the person's own commands, sorted.
    ExternalCommands(Vec<String>),
    /// The problems of definitions.
    Checked(CheckResult),
    /// The state of everything that jobs depend on.
    Diagnosis(Diagnosis),
    /// The state of the service.
    Status(Box<Status>),
    /// The coming occurrences.
    Upcoming(Upcoming),
    /// The explanation of what a job did.
    Why(Box<Why>),
    /// The predicted fate of occurrences.
    Simulated(Simulated),
    /// The coming occurrences, for a calendar.
    Calendar(Upcoming),
    /// The result of an import.
    Imported(ImportResult),
    /// Runs, newest first.
    Runs {
        /// The runs.
        runs: Vec<RunRecord>,
        /// The filter that selected them.
        filter: RunFilter,
    },
    /// One run.
    Run(Box<RunDetails>),
    /// Refused calls of runs, latest first.
    RefusedCalls(Vec<RefusedCalls>),
    /// Costs of runs.
    Costs(Costs),
    /// Messages, newest last.
    Inbox(Vec<Message>),
    /// Questions of jobs, open ones first.
    Questions(Vec<Question>),
    /// The result of an answer.
    Answered(Box<AnswerResult>),
    /// The channels.
    Channels(Vec<ChannelState>),
    /// [`Command::McpServers`].
    McpServers {
        /// The state of each server, as far as it is known.
        servers: Vec<ServerState>,
        /// Whether the service is running.
        is_running: bool,
    },
    /// [`Command::McpTools`]: the tools of each server, or why there are none.
    McpTools(Vec<ServerTools>),
    /// The current budgets.
    Budget(Budgets),
    /// The settings in force.
    Settings(Vec<Setting>),
    /// All named agents.
    Agents(Agents),
    /// One named agent.
    Agent(Box<NamedAgent>),
    /// All sessions.
    Sessions(SessionList),
    /// One session.
    Session(Session),
    /// A verdict on a tool call.
    Explained(Explanation),
    /// A definition's policy.
    Policy(JobPolicy),
    /// What a run would be given.
    DryRun(Box<DryRun>),
    /// All definitions of a kind.
    Jobs(JobList),
    /// One definition.
    Job(Job),
    /// A definition was written and is enabled.
    Scheduled(SavedDefinition),
    /// A routine was written and is now disabled.
    Disabled(SavedDefinition),
    /// A routine was already enabled, or already disabled.
    Unchanged {
        /// The routine.
        id: DefinitionId,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// A definition's file, for an editor.
    File {
        /// Its path, relative to the data folder.
        file: PathBuf,
        /// Its text.
        text: String,
    },
    /// An edited text is invalid. Nothing was written.
    Invalid(Vec<Problem>),
    /// A file was changed or removed after its text was read. Nothing was written.
    ChangedMeanwhile,
    /// A definition's file was deleted.
    Cancelled(Job),
    /// A file with an error was deleted. Its path, relative to the data folder.
    FileRemoved(PathBuf),
    /// The message to the run's agent about its chain's next check.
    FollowUp(String),
    /// The files that were created, relative to the data folder.
    Made(Vec<PathBuf>),
    /// The definition cannot be fired, because the service is not running.
    NotRunning(DefinitionId),
    /// The data folder was written to a file.
    BackedUp(BackupResult),
    /// [`Command::CopyJournal`].
    CopiedJournal(CopiedJournal),
    /// [`Command::Push`].
    Pushed(PushResult),
    /// [`Command::Push`] with ids to remove.
    Unpushed(RemoveResult),
    /// The result of restoring a backup.
    Restored(RestoreResult),
    /// The result of a command for the service's unit.
    Unit(UnitOutcome),
    /// The reply of the service.
    Service(ServiceReply),
}

impl Outcome {
    /// Redacts the outcome for a run. Of a monitor's URL only the host is left: with the URL the run could silence the monitor.
    pub(super) fn for_run(mut self) -> Self {
        match &mut self {
            Self::Scheduled(SavedDefinition { job, .. })
            | Self::Disabled(SavedDefinition { job, .. })
            | Self::Job(job)
            | Self::Cancelled(job) => job.hide_monitor(),
            Self::Jobs(list) => list.jobs.iter_mut().for_each(Job::hide_monitor),
            Self::Settings(settings) => {
                // A topic is as good as a password, and a program's arguments can contain one.
                for setting in settings.iter_mut().filter(|setting| setting.key == "channels") {
                    for (_, channel) in setting.value.as_object_mut().into_iter().flatten() {
                        *channel = serde_json::json!({ "kind": channel["kind"] });
                    }
                }
                for setting in settings.iter_mut().filter(|setting| setting.key == "mcp_servers") {
                    for (_, server) in setting.value.as_object_mut().into_iter().flatten() {
                        *server = serde_json::json!({});
                    }
                }
                for setting in settings.iter_mut().filter(|setting| setting.key == "heartbeat_url") {
                    if let Some(url) = setting.value.as_str() {
                        setting.value = heartbeat::shown(url).into();
                    }
                }
            }
            _ => {}
        }
        self
    }
}

/// A definition that was just written.
#[derive(Debug)]
pub struct SavedDefinition {
    /// The definition.
    pub job: Job,
    /// Warnings for the person.
    pub warnings: Vec<Problem>,
    /// Its position in the chain that it prolongs (`check 2 of 3`), and the chain.
    pub chain: Option<(String, DefinitionId)>,
    /// Whether its file was created, rather than changed.
    pub is_new: bool,
    /// The next times of a routine that was given new ones; at most three.
    pub times: Vec<DateTime<Utc>>,
    /// Whether it is delivered as it is written only by default, rather than by the person's choice.
    pub plain_by_default: bool,
}
