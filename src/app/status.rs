//! The state of the service, active runs, coming occurrences and failures.

use std::collections::{HashMap, HashSet};

use super::overdue::overdue;
use super::service::{self, ServiceStatus};
use super::suppressed::Suppressed;
use super::upcoming::{self, Occurrence, OccurrenceLimit};
use super::{App, Caller, Overdue, budget, check, jobs, push, runs, waking, watched, webhooks};
use crate::agent::NOTIFY;
use crate::agent::sockets::{self, PathSocket};
use crate::bot::budget::PingBudget;
use crate::config::ListenAddress;
use crate::definition::{self, Definition, DefinitionId, FailedReminder, Kind, Loaded, Problem};
use crate::journal::{
    ChannelInput, ConsecutiveFailures, FailingChannel, HostRecord, JournalError, JournalReader, PushedCounts, Question,
    RefusedDeliveries, RunFilter, RunId, RunRecord, RunState, Spending,
};
use crate::refusal::Refusal;
use crate::run::runner::needs_agent;

/// Number of coming occurrences to show.
const NEXT: usize = 5;

/// The status.
#[derive(Debug)]
pub struct Status {
    /// The service's own status; `None` if it is not running.
    pub service: Option<ServiceStatus>,
    /// Since when the person has paused everything, RFC 3339.
    pub paused: Option<String>,
    /// Runs that are claimed or running.
    pub running: Vec<RunRecord>,
    /// The open questions.
    pub questions: Vec<Question>,
    /// Maximum number of concurrent background runs.
    pub slots: usize,
    /// For what the claimed runs wait, as far as it is known.
    pub waits_for: HashMap<RunId, &'static str>,
    /// Runs that began and are not running: they will be retried, or were left by a service that has ended.
    pub waiting: Vec<RunRecord>,
    /// Jobs that need an agent; empty unless the client is missing.
    pub need_agent: Vec<DefinitionId>,
    /// Definitions that fell due while nothing may start.
    pub due: Vec<Overdue>,
    /// The next occurrences.
    pub next: Vec<Occurrence>,
    /// Number of jobs whose next occurrence comes after these.
    pub left_out: usize,
    /// Definitions that the person has paused, by id.
    pub disabled: Vec<DefinitionId>,
    /// Problems of settings and definitions.
    pub problems: Vec<Problem>,
    /// Definitions whose last run failed, with the number of consecutive failures.
    pub failures: Vec<ConsecutiveFailures>,
    /// The newest failed run of each of these.
    pub last_failed: Vec<RunRecord>,
    /// Reminders whose files are kept in `reminders/failed/`, except those that the person skipped.
    pub failed_reminders: Vec<FailedReminder>,
    /// How many messages background jobs may still send.
    pub budget: PingBudget,
    /// Number of webhooks.
    pub webhooks: usize,
    /// The address that takes their deliveries.
    pub webhooks_at: Option<ListenAddress>,
    /// Deliveries that were refused lately.
    pub refused: Vec<RefusedDeliveries>,
    /// Exhausted limits of the budget: no job that costs money starts.
    pub spent: Vec<Spending>,
    /// Channels that do not deliver.
    pub failing_channels: Vec<FailingChannel>,
    /// Channels in which somebody other than the owner wrote.
    pub strangers: Vec<ChannelInput>,
    /// Sockets of other programs that lead out of the sandbox.
    pub sockets: Vec<PathSocket>,
    /// The hosts that share the journal, by name; empty if the journal is a file.
    pub hosts: Vec<HostRecord>,
    /// The definitions in the database.
    pub pushed: PushedCounts,
    /// Whether the settings are invalid. The status then uses the defaults.
    pub settings_are_wrong: bool,
}

/// The state of the service.
#[derive(Debug)]
pub enum ServiceState {
    /// It is running, as this process.
    Running {
        /// Its process id.
        pid: u32,
    },
    /// It is not running.
    Stopped,
    /// It does not answer.
    Silent,
}

/// The state of everything, for one line.
#[derive(Debug)]
pub struct Overview {
    /// Whether the service is running.
    pub service: ServiceState,
    /// Number of definitions.
    pub jobs: usize,
    /// Number of errors in files.
    pub errors: usize,
    /// The next occurrence.
    pub next: Option<Occurrence>,
}

/// Reads a list that only the person may see. It is empty for a run.
pub(super) fn for_person<T, E>(app: &App, read: impl FnOnce() -> Result<Vec<T>, E>) -> Result<Vec<T>, E> {
    match app.caller {
        Caller::Person => read(),
        Caller::Run(_) => Ok(Vec::new()),
    }
}

impl Status {
    /// Returns whether a run waits for an answer of the person.
    #[must_use]
    pub fn is_asking(&self, run: &RunId) -> bool {
        self.questions.iter().any(|question| question.run == *run && !question.start)
    }

    /// Returns `2 questions are open`, and whether jobs wait for the slots of their runs. `None` if none is open.
    #[must_use]
    pub fn open_questions(&self) -> Option<String> {
        let (are, they) = match self.questions.len() {
            0 => return None,
            1 => ("1 question is open".to_owned(), "it is"),
            open => (format!("{open} questions are open"), "they are"),
        };
        let (running, claimed): (Vec<_>, Vec<_>) =
            self.running.iter().partition(|run| run.outcome == RunState::Running);
        let is_full = running.len() >= self.slots && running.iter().any(|run| self.is_asking(&run.run));
        // A run whose own question is open waits for its answer, and not for a slot.
        let waits = claimed.iter().any(|run| self.questions.iter().all(|question| question.run != run.run));
        Some(if is_full && waits { format!("{are}, and other jobs wait until {they} answered") } else { are })
    }

    /// Returns `the reminder water`, `2 reminders`: those that failed. `None` if there are none.
    #[must_use]
    pub fn named_failed_reminders(&self) -> Option<String> {
        match &self.failed_reminders[..] {
            [] => None,
            [one] => Some(format!("the reminder {}", one.name())),
            more => Some(format!("{} reminders", more.len())),
        }
    }

    /// Returns the first error of a job's file or of what the file needs.
    #[must_use]
    pub fn error_of(&self, id: &DefinitionId) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.is_error() && problem.id.as_ref() == Some(id))
    }

    /// Returns what would keep a job waiting at its next occurrence: the missing agent, or its login.
    #[must_use]
    pub fn keeps_waiting(&self, definition: &Definition) -> Option<&str> {
        let service = self.service.as_ref()?;
        match &service.client.missing {
            Some(why) => self.need_agent.contains(&definition.id).then_some(why),
            None => (service.waiting_for_login.is_some() && !definition.is_without_agent())
                .then_some("the agent is not logged in; `ollim-bot login`"),
        }
    }
}

/// Collects the status.
pub(super) fn status(app: &App) -> Result<Status, Refusal> {
    let journal = runs::open(app)?;
    let (loaded, failures, unread) = with_database(&journal, app)?;
    let now = app.now();
    let service = service::status(app)?;
    let suppressed = Suppressed::known_to(&journal, &loaded, app);
    let mut definitions = suppressed.others(loaded.definitions.values().cloned());
    let paused = service::paused(service.as_ref(), &journal)?;
    let is_stuck = |service: &ServiceStatus| service.journal_fault.is_some() || service.waits_for_agent();
    let nothing_starts = paused.is_some() || service.as_ref().is_some_and(is_stuck);
    let due = if nothing_starts { overdue(&definitions, &journal, now)? } else { Vec::new() };
    // An overdue reminder has no other occurrence.
    let reminders: HashSet<&DefinitionId> = due
        .iter()
        .map(|due| &due.definition)
        .filter(|definition| definition.kind() == Kind::Reminder)
        .map(|definition| &definition.id)
        .collect();
    definitions.retain(|definition| !reminders.contains(&definition.id));
    // Runs that an ended service left as running do not run any more.
    let is_running = |run: &RunRecord| service.is_some() && !run.outcome.is_over();
    let missing = service.as_ref().is_some_and(|service| service.client.missing.is_some());
    let need_agent = if missing { who_needs_an_agent(&loaded, &journal)? } else { Vec::new() };
    let (running, waiting) = journal.unfinished()?.into_iter().map(|run| app.redacted(run)).partition(is_running);
    let last_failed = last_failed(&failures, &journal, app)?;
    let (mut next, left_out) = upcoming::coming(&definitions, None, None, NEXT, OccurrenceLimit::First, app);
    upcoming::with_last(&mut next, &journal)?;
    Ok(Status {
        hosts: for_person(app, || journal.hosts())?,
        paused,
        waits_for: waits_for(service.as_ref(), &journal)?,
        running,
        waiting,
        next,
        left_out: left_out + usize::try_from(unread).unwrap_or(usize::MAX),
        pushed: journal.pushed_counts(None)?,
        questions: for_person(app, || journal.questions(0))?,
        slots: app.config().map_or(usize::MAX, |config| config.max_concurrent_runs),
        disabled: loaded.definitions.values().filter(|one| !one.enabled).map(|one| one.id.clone()).collect(),
        need_agent,
        due,
        service,
        problems: problems(&loaded, app),
        webhooks: loaded.definitions.values().filter(|one| one.hook().is_some()).count(),
        webhooks_at: app.config().ok().and_then(|config| config.webhooks.clone()),
        refused: webhooks::refused(app)?,
        failures,
        last_failed,
        failed_reminders: for_person(app, || failed_reminders(app))?,
        budget: budget::of(&journal, now)?,
        // Invalid settings are reported separately.
        spent: for_person(app, || Ok::<_, JournalError>(budget::spent(app).unwrap_or_default()))?,
        strangers: for_person(app, || {
            Ok::<_, JournalError>(journal.channel_inputs()?.into_iter().filter(|heard| heard.strangers > 0).collect())
        })?,
        failing_channels: for_person(app, || journal.failing_channels())?,
        settings_are_wrong: app.config().is_err(),
        sockets: sockets::answering(|name| app.env.text(name), &app.places().user_home),
    })
}

/// Returns the problems of definitions, as far as they can be found without trying anything, and those of their files.
fn problems(loaded: &Loaded, app: &App) -> Vec<Problem> {
    let all = [
        loaded.definitions.values().filter_map(|one| check::follows_nobody(one, loaded, app)).collect(),
        watched::problems(&loaded.definitions, app),
        waking::problems(&loaded.definitions, app),
        webhooks::problems(&loaded.definitions, app),
        loaded.problems.clone(),
    ];
    all.concat().into_iter().map(|problem| problem.at_field(&app.home)).collect()
}

/// Returns for what the claimed runs wait. Without a service they wait for it.
fn waits_for(
    service: Option<&ServiceStatus>,
    journal: &JournalReader,
) -> Result<HashMap<RunId, &'static str>, JournalError> {
    if service.is_none() {
        return Ok(HashMap::new());
    }
    Ok(journal.last_delays()?.into_iter().map(|(run, by)| (run, by.waits_for())).collect())
}

/// Loads all files and, of the database, what falls due next or has failed lately. Returns the failures, and the number of definitions of
/// the database that fall due later.
fn with_database(journal: &JournalReader, app: &App) -> Result<(Loaded, Vec<ConsecutiveFailures>, u64), Refusal> {
    let mut loaded = app.load_without_settings()?;
    let mut failures = journal.consecutive_failures()?;
    let unread = push::add_next(&mut loaded, None, NEXT, journal, app)?;
    let loaded = app.with_named(loaded, failures.iter().map(|failing| failing.id.as_str()));
    // A definition that is gone needs nobody.
    failures.retain(|failing| failing.failures > 0 && loaded.definitions.contains_key(&failing.id));
    Ok((loaded, failures, unread))
}

/// Returns the jobs that only an agent can do.
fn who_needs_an_agent(loaded: &Loaded, journal: &JournalReader) -> Result<Vec<DefinitionId>, Refusal> {
    let mut need = Vec::new();
    for definition in loaded.definitions.values().filter(|one| one.enabled && !one.is_without_agent()) {
        if needs_agent(definition).is_some() || journal.ran_with_another_client(NOTIFY, &definition.id)? {
            need.push(definition.id.clone());
        }
    }
    Ok(need)
}

/// Returns the reminders that failed and that the person has not dealt with.
fn failed_reminders(app: &App) -> Result<Vec<FailedReminder>, Refusal> {
    let defaults = app.defaults().unwrap_or_else(|_| app.defaults_in(app.zone_of_records()));
    let mut failed = definition::failed_reminders(&app.home, &defaults)?;
    failed.retain(|one| !one.reason.as_deref().is_some_and(jobs::is_skipped_by_the_person));
    Ok(failed)
}

/// Returns the last failed run of each.
fn last_failed(
    failures: &[ConsecutiveFailures],
    journal: &JournalReader,
    app: &App,
) -> Result<Vec<RunRecord>, Refusal> {
    let mut last = Vec::new();
    for failing in failures {
        let filter = RunFilter { id: Some(failing.id.clone()), failed: true, before: None, limit: Some(1) };
        last.extend(journal.runs(&filter)?.into_iter().map(|run| app.redacted(run)));
    }
    Ok(last)
}

/// Returns the state of everything; `None` if there is no data folder.
pub(super) fn overview(app: &App) -> Option<Overview> {
    let loaded = app.load_without_settings().ok()?;
    let definitions = Suppressed::of(&loaded, app).others(loaded.definitions.values().cloned());
    let service = match service::status(app) {
        Ok(Some(status)) => ServiceState::Running { pid: status.pid },
        Ok(None) => ServiceState::Stopped,
        Err(_) => ServiceState::Silent,
    };
    let next = upcoming::coming(&definitions, None, None, 1, OccurrenceLimit::First, app).0.into_iter().next();
    let errors = loaded.problems.iter().filter(|problem| problem.is_error()).count();
    Some(Overview { service, jobs: loaded.definitions.len(), errors, next })
}
