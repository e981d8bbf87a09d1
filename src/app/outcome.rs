//! What comes of a command: data, never text for a terminal.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{
    Answered, BackedUp, ChannelState, Checked, CopiedJournal, Costs, Diagnosis, DryRun, Explanation, Imported, Job,
    JobList, JobPolicy, Overview, Restored, RunDetails, ServerTools, ServiceReply, Session, SessionList, Simulated,
    Status, UnitOutcome, Upcoming, Why,
};
use crate::agent::ServerState;
use crate::agents::{Agents, NamedAgent};
use crate::bot::budget::PingBudget;
use crate::config::Setting;
use crate::definition::{DefinitionId, Problem};
use crate::heartbeat;
use crate::journal::{Message, Question, RefusedCalls, RunFilter, RunRecord, Spending};

/// What came of a [`Command`](super::Command).
#[derive(Debug)]
pub enum Outcome {
    /// How things are; `None`: there is no data folder.
    Overview(Option<Overview>),
    /// The names of the person's own commands, sorted.
    ExternalCommands(Vec<String>),
    /// What is wrong with definitions.
    Checked(Checked),
    /// How everything is that jobs depend on.
    Diagnosis(Diagnosis),
    /// How the service is doing.
    Status(Box<Status>),
    /// The coming occurrences.
    Upcoming(Upcoming),
    /// Why a job did what it did.
    Why(Box<Why>),
    /// What would become of occurrences.
    Simulated(Simulated),
    /// The coming occurrences, for a calendar.
    Calendar(Upcoming),
    /// What became of another bot's folder.
    Imported(Imported),
    /// Runs, newest first.
    Runs {
        /// The runs.
        runs: Vec<RunRecord>,
        /// Which were asked for.
        filter: RunFilter,
    },
    /// One run.
    Run(Box<RunDetails>),
    /// Calls that runs were refused, the latest first.
    RefusedCalls(Vec<RefusedCalls>),
    /// What runs have cost.
    Costs(Costs),
    /// Messages, newest last.
    Inbox(Vec<Message>),
    /// What jobs ask, the open ones first.
    Questions(Vec<Question>),
    /// What came of an answer.
    Answered(Box<Answered>),
    /// The channels.
    Channels(Vec<ChannelState>),
    /// [`Command::McpServers`].
    McpServers {
        /// Each as it is, as far as that is known.
        servers: Vec<ServerState>,
        /// Whether the service runs.
        is_running: bool,
    },
    /// [`Command::McpTools`]: of each server, its tools or why there are none.
    McpTools(Vec<ServerTools>),
    /// The ping budget, as it is now.
    Budget(PingBudget, Vec<Spending>),
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
    /// A definition was written and fires.
    Scheduled(Recorded),
    /// A routine was written and does not fire any more.
    Disabled(Recorded),
    /// A routine was enabled, or disabled, already.
    Unchanged {
        /// The routine.
        id: DefinitionId,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// A definition's file, for an editor.
    File {
        /// Relative to the data folder.
        file: PathBuf,
        /// Its text.
        text: String,
    },
    /// An edited text is not valid: nothing was written.
    Invalid(Vec<Problem>),
    /// A file was changed or removed since its text was read: nothing was written.
    ChangedMeanwhile,
    /// A definition's file was deleted.
    Cancelled(Job),
    /// A file with an error was deleted; relative to the data folder.
    FileRemoved(PathBuf),
    /// What the run's agent is told of its chain's next check.
    FollowUp(String),
    /// The files that were made, relative to the data folder.
    Made(Vec<PathBuf>),
    /// The service does not run, so it cannot fire this definition.
    NotRunning(DefinitionId),
    /// The data folder was written into a file.
    BackedUp(BackedUp),
    /// [`Command::CopyJournal`].
    CopiedJournal(CopiedJournal),
    /// What came of a backup.
    Restored(Restored),
    /// What became of the service's unit.
    Unit(UnitOutcome),
    /// What the service did.
    Service(ServiceReply),
}

impl Outcome {
    /// The same for a run, which is told of a monitor its host alone: who knows the URL can keep it quiet.
    pub(super) fn for_run(mut self) -> Self {
        match &mut self {
            Self::Scheduled(Recorded { job, .. })
            | Self::Disabled(Recorded { job, .. })
            | Self::Job(job)
            | Self::Cancelled(job) => job.hide_monitor(),
            Self::Jobs(list) => list.jobs.iter_mut().for_each(Job::hide_monitor),
            Self::Settings(settings) => {
                // A topic is a password, and a program's arguments may hold one.
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
pub struct Recorded {
    /// The definition.
    pub job: Job,
    /// What a person should look at in it.
    pub warnings: Vec<Problem>,
    /// Its place in the chain that it prolongs (`check 2 of 3`), and the chain.
    pub chain: Option<(String, DefinitionId)>,
    /// Whether its file was made, and not changed.
    pub is_new: bool,
    /// The next times of a routine that was given new ones; at most three.
    pub times: Vec<DateTime<Utc>>,
    /// It is delivered as it is written, which nobody has asked for by name.
    pub plain_by_default: bool,
}
