//! The commands of ollim-bot: one [`Command`] and one [`Outcome`] for every caller.
//!
//! An interface (the command line, the control socket) parses its input into a [`Command`], calls [`App::execute`] and
//! renders the [`Outcome`] or the [`Refusal`]. It decides nothing. The same code answers every caller: from the files
//! and the journal if they suffice, else through [`Service`] from the running service. This module also decides what a
//! run may ask for, by the command's [`Effect`] and by the run's own permissions.
//!
//! All functions block. The service calls them on blocking threads.

mod add;
mod agents;
mod attention;
mod backup;
mod budget;
mod chains;
mod change;
mod channels;
mod chat;
mod check;
mod command;
mod costs;
mod doctor;
mod dry_run;
mod edit;
mod effect;
mod environment;
mod events;
mod gate;
mod import;
mod init;
mod jobs;
mod journal_copy;
mod logs;
mod made;
mod mcp_servers;
mod outcome;
mod overdue;
mod permissions;
mod policy;
mod push;
mod questions;
mod recurrence;
mod refusals;
mod restore;
mod runs;
mod service;
mod sessions;
mod simulate;
mod status;
mod suppressed;
mod taken_ids;
mod timeline;
pub mod times;
mod transcript;
mod unit;
mod upcoming;
mod waking;
mod watched;
mod webhooks;
mod when;
mod why;
pub mod words;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

pub use attention::{Attention, Need, NeedSubject};
pub use backup::{BackupResult, Differences, RestoreResult, UnreadablePath};
pub use budget::Budgets;
pub use channels::ChannelState;
pub use chat::Exchange;
pub use check::CheckResult;
pub use command::{Command, FieldChange, FieldChanges, Since, When};
pub use costs::{Costs, CostsBy, CostsRow, Months};
pub use doctor::{Diagnosis, Finding, Health};
pub use dry_run::DryRun;
pub use effect::{Effect, PERSONS_ALONE};
pub use environment::{EXTERNAL_PREFIX, Environment, home, is_command_name};
pub use events::EventFeed;
pub(crate) use import::in_shell;
pub use import::{IS_HERE, ImportRemark, ImportResult};
pub use init::{ChatService, InitOptions, make_folders, make_home};
pub use jobs::{FailedJob, Job, JobList, summary};
pub use journal_copy::CopiedJournal;
pub use logs::{Log, LogFilter, LogLine};
pub use mcp_servers::ServerTools;
pub use outcome::{Outcome, SavedDefinition};
pub use overdue::Overdue;
pub use policy::{AllowSuggestion, Explanation, JobPolicy};
pub use push::{PushResult, RemoveResult};
pub use questions::{AnswerResult, Change, OpenQuestion};
pub use runs::RunDetails;
pub use service::{
    ClientStatus, Events, ListenerState, LoginState, Sandbox, Service, ServiceCommand, ServiceReply, ServiceStatus,
    unexpected_reply,
};
pub use sessions::{ChildSession, Session, SessionList};
pub use simulate::{PredictedOccurrence, Prediction, RunEstimate, Simulated};
pub use status::{Overview, ServiceState, Status};
pub use timeline::{Row, RowSubject, Timeline};
pub use unit::{Starter, UnitAct, UnitCommand, UnitOutcome, UnitStatus, is_systemd_there, log_command};
pub use upcoming::{Occurrence, OccurrenceLimit, Upcoming};
pub use why::{Evidence, Sentence, Source, Why};

use crate::agent::NOTIFY;
use crate::agents::known_agents;
use crate::clock::Clock;
use crate::config::{ClientChoice, Config, ConfigError, Origin, secrets};
use crate::definition::{self, Defaults, Definition, DefinitionId, Kind, KnownCommands, Loaded, Problem, Severity};
use crate::home::Home;
use crate::journal::{Answer, JournalError, JournalLocation, JournalReader, Message, RunRecord, Server, Spending};
use crate::policy::PathRoots;
use crate::refusal::Refusal;
use crate::run::runner::needs_agent;
use crate::run::tokens::RunAuthority;
use crate::schedule::occurrences;
use crate::search_path;

/// Hint on how to create or name a data folder.
const NO_HOME: &str = "`ollim-bot init` makes one; `--home DIR` or OLLIM_HOME names another";

/// Name of the secret with the password of the journal's server.
const JOURNAL_PASSWORD: &str = "JOURNAL_PASSWORD";

/// Returns the machine's name up to its first dot.
fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().split('.').next().unwrap_or_default().to_owned();
    definition::is_host_name(&name).then_some(name)
}

/// The caller of a command.
#[derive(Clone, Debug)]
pub enum Caller {
    /// The person.
    Person,
    /// A run, which has the permissions of its job and no more.
    Run(Arc<RunAuthority>),
}

/// Returns the names of the built-in commands. No external command can hide one of them.
pub type CommandNames = fn() -> Vec<String>;

/// Returns the definitions in force without reading their files. Blocks.
#[derive(Clone)]
pub struct CurrentDefinitions(pub Arc<dyn Fn() -> Loaded + Send + Sync>);

/// The application, as one caller can use it.
#[derive(Clone)]
pub struct App {
    /// The data folder.
    pub home: Home,
    /// The caller.
    pub caller: Caller,
    /// The clock.
    pub clock: Clock,
    /// The environment of the process that executes the commands.
    pub env: Environment,
    /// The running service, if there is one.
    pub service: Arc<dyn Service>,
    /// See [`CommandNames`].
    pub command_names: CommandNames,
    /// The definitions that the service holds in memory; `None` to read them from their files.
    pub definitions: Option<CurrentDefinitions>,
    /// The viewer's time zone, if the interface knows it; `None` for [`Self::zone_of_records`].
    pub viewer_zone: Option<Tz>,
    config: OnceLock<Arc<Config>>,
}

impl App {
    /// Creates an app for the person, on the system clock.
    #[must_use]
    pub fn new(home: Home, env: Environment, service: Arc<dyn Service>, command_names: CommandNames) -> Self {
        let (caller, clock) = (Caller::Person, Clock::system());
        let (definitions, viewer_zone, config) = (None, None, OnceLock::new());
        Self { home, caller, clock, env, service, command_names, definitions, viewer_zone, config }
    }

    /// Returns a copy for a run, with the same settings.
    #[must_use]
    pub fn of_run(&self, run: Arc<RunAuthority>) -> Self {
        Self { caller: Caller::Run(run), ..self.clone() }
    }

    /// Returns a copy that reaches the service in another way.
    #[must_use]
    pub fn with_service(&self, service: Arc<dyn Service>) -> Self {
        Self { service, ..self.clone() }
    }

    /// Returns a copy that reads the settings again.
    #[must_use]
    pub fn reread(&self) -> Self {
        Self { config: OnceLock::new(), ..self.clone() }
    }

    /// Returns a copy with another environment, and the settings of that.
    #[must_use]
    fn with_env(&self, env: Environment) -> Self {
        Self { env, ..self.reread() }
    }

    /// Executes a command.
    ///
    /// # Errors
    /// The reason why the command was not executed. A command that a run may not use is refused before anything is read.
    pub fn execute(&self, command: Command) -> Result<Outcome, Refusal> {
        self.permit(&command)?;
        let outcome = self.answer(command)?;
        Ok(if matches!(self.caller, Caller::Run(_)) { outcome.for_run() } else { outcome })
    }

    #[expect(clippy::too_many_lines, reason = "a table: a row a command")]
    fn answer(&self, command: Command) -> Result<Outcome, Refusal> {
        match command {
            Command::Overview => Ok(Outcome::Overview(status::overview(self))),
            Command::ExternalCommands => Ok(Outcome::ExternalCommands(self.external_commands())),
            Command::Check { files, folder } => check::check(&files, folder.as_deref(), self).map(Outcome::Checked),
            Command::Status => status::status(self).map(|status| Outcome::Status(Box::new(status))),
            Command::Next { count, from, until, ids, each } => {
                upcoming::next(count, from.as_deref(), until.as_deref(), &ids, each, self).map(Outcome::Upcoming)
            }
            Command::Why { id, at } => why::why(&id, at.as_deref(), self).map(|why| Outcome::Why(Box::new(why))),
            Command::Simulate { ids, from, until } => {
                simulate::simulated(&ids, from.as_deref(), until.as_deref(), self).map(Outcome::Simulated)
            }
            Command::Calendar { days } => upcoming::calendar(days, self).map(Outcome::Calendar),
            Command::Import { from, dry_run } => import::import(&from, dry_run, self).map(Outcome::Imported),
            Command::ImportCrontab { file, of_user, dry_run } => {
                import::jobs::crontab(file.as_deref(), of_user, dry_run, self).map(Outcome::Imported)
            }
            Command::ImportSystemd { units, dry_run } => {
                import::jobs::systemd(&units, dry_run, self).map(Outcome::Imported)
            }
            Command::Push { paths, dry_run, remove } if remove.is_empty() => {
                push::push(&paths, dry_run, self).map(Outcome::Pushed)
            }
            Command::Push { remove, .. } => push::remove(&remove, self).map(Outcome::Unpushed),
            Command::Runs(filter) => runs::list(&filter, self).map(|runs| Outcome::Runs { runs, filter }),
            Command::Run { run, full } => runs::show(&run, full, self).map(|run| Outcome::Run(Box::new(run))),
            Command::RefusedCalls { since } => {
                let from = self.moment_of(since.as_ref())?;
                runs::refused(from, self).map(Outcome::RefusedCalls)
            }
            Command::Costs { by, since } => {
                let from = self.moment_of(since.as_ref())?;
                costs::costs(by, from, self).map(Outcome::Costs)
            }
            Command::Inbox { count } => runs::inbox(count, self).map(Outcome::Inbox),
            Command::Channels => channels::channels(self).map(Outcome::Channels),
            Command::McpServers => mcp_servers::list(self),
            Command::McpTools { server } => mcp_servers::tools(server, self).map(Outcome::McpTools),
            Command::Budget => budget::budgets(self).map(Outcome::Budget),
            Command::Questions => questions::list(self).map(Outcome::Questions),
            Command::Answer { question, answer, sentence, channel } => {
                let answered = questions::answer(question, answer, sentence, channel, self)?;
                Ok(Outcome::Answered(Box::new(answered)))
            }
            Command::Config => Ok(Outcome::Settings(self.config()?.settings())),
            Command::Agents => Ok(Outcome::Agents(agents::load(self))),
            Command::Agent { name } => agents::named(&name, self).map(|agent| Outcome::Agent(Box::new(agent))),
            Command::Sessions => sessions::list(self).map(Outcome::Sessions),
            Command::Session { id } => sessions::show(&id, self).map(Outcome::Session),
            Command::ExplainPolicy { definition, tool, input } => {
                policy::explain(&definition, &tool, input, self).map(Outcome::Explained)
            }
            Command::ShowPolicy { definition } => policy::show(&definition, self).map(Outcome::Policy),
            Command::DryRun { id } => dry_run::dry_run(&id, self).map(|found| Outcome::DryRun(Box::new(found))),
            Command::List(kind) => jobs::list(kind, self).map(Outcome::Jobs),
            Command::Show { kind, id } => jobs::show(kind, &id, self).map(Outcome::Job),
            Command::Add { draft, when } => add::add(*draft, when.as_ref(), self).map(Outcome::Scheduled),
            Command::Edit { kind, id, changes } => edit::edit(kind, &id, *changes, self).map(Outcome::Scheduled),
            Command::FileOf { kind, id } => edit::file_of(kind, &id, self),
            Command::Replace { file, old, new } => edit::replace(&file, &old, &new, self),
            Command::Template { draft, when } => add::template(*draft, when.as_ref(), self),
            Command::AddText { kind, text, template } => add::add_text(kind, &text, &template, self),
            Command::SetEnabled { kind, id, enabled } => change::set_enabled(kind, &id, enabled, self),
            Command::Resume { id } => change::resume(&id, self),
            Command::Cancel { kind, id } => change::cancel(kind, &id, self),
            Command::Snooze { id, span } => {
                let _turn = restore::in_turn(self)?;
                change::snooze(&id, span, self).map(Outcome::Scheduled)
            }
            Command::Retry { id } => {
                let _turn = restore::in_turn(self)?;
                change::retry(&id, self).map(Outcome::Scheduled)
            }
            Command::Restore { run, when } => {
                let _turn = restore::in_turn(self)?;
                restore::restore(&run, when.as_ref(), self).map(Outcome::Scheduled)
            }
            Command::FollowUp { delay } => chains::follow_up(delay, self).map(Outcome::FollowUp),
            Command::ProlongChain { chain, delay } => {
                chains::schedule_next_check(&chain, delay, self).map(Outcome::Scheduled)
            }
            Command::Doctor { fix } => Ok(Outcome::Diagnosis(doctor::doctor(fix, self))),
            Command::CopyJournal { to, uses } => journal_copy::copy(to, uses, self).map(Outcome::CopiedJournal),
            Command::Backup { file, secrets } => backup::backup(&file, secrets, self).map(Outcome::BackedUp),
            Command::RestoreBackup { file } => backup::restore(&file, self).map(Outcome::Restored),
            Command::Unit(command) => unit::unit(&command, self).map(Outcome::Unit),
            Command::Init { options } => init::init(&options, self).map(Outcome::Made),
            Command::Spawn(request) => sessions::spawn(request, self).map(Outcome::Service),
            Command::Fire { id } => service::fire(&id, self),
            Command::Service(command) => service::ask(service::named(command, self)?, self).map(Outcome::Service),
        }
    }

    /// Returns the location of the journal. If the settings are invalid and do not set `journal`, it is the data folder's file.
    ///
    /// # Errors
    /// If the server's address is invalid, or the secrets or the settings cannot be read.
    pub fn journal(&self) -> Result<JournalLocation, Refusal> {
        let url = match self.config() {
            Ok(config) => config.journal.clone(),
            // The file would be the old journal, from before it moved to the server.
            Err(refusal)
                if crate::config::edit::is_set(&self.home, "journal") || self.env.text("OLLIM_JOURNAL").is_some() =>
            {
                return Err(refusal);
            }
            Err(_) => None,
        };
        match url {
            Some(url) => self.journal_at(&url),
            None => Ok((&self.home.journal()).into()),
        }
    }

    /// Returns the location of the journal on the server at `url`.
    fn journal_at(&self, url: &str) -> Result<JournalLocation, Refusal> {
        let secrets =
            secrets::read(&self.home, &self.env.texts()).map_err(|error| Refusal::environment(error.to_string()))?;
        let password = secrets.get(JOURNAL_PASSWORD).map(String::as_str);
        Ok(JournalLocation::Server(Server::at(url, password)?))
    }

    /// Returns the name of this host among the hosts that share a journal.
    ///
    /// # Errors
    /// If neither the settings nor the machine provide one.
    pub fn host_name(&self) -> Result<String, Refusal> {
        self.config()?.host.clone().or_else(machine_name).ok_or_else(|| {
            Refusal::user("this machine has no name that could be this host's among those that share the journal")
                .hint("give it one: `host: NAME` in config.yaml")
        })
    }

    /// Returns why nothing fires by the journal of the settings any more: it was moved elsewhere. `None` if it was not.
    #[must_use]
    pub fn journal_moved(&self) -> Option<JournalError> {
        let (journal, place) = (runs::open(self).ok()?, self.journal().ok()?);
        journal.refuse_moved(&place).err().filter(|error| matches!(error, JournalError::Moved { .. }))
    }

    /// Returns the other hosts that share the journal and are up: `alpha or beta`. `None` if none is.
    #[must_use]
    pub fn other_hosts_up(&self) -> Option<String> {
        let (hosts, me) = (runs::open(self).ok()?.hosts().ok()?, self.host_name().ok());
        let others = hosts.into_iter().filter(|host| host.alive && Some(&host.name) != me.as_ref());
        let names: Vec<String> = others.map(|host| host.name).collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }

    /// Opens the journal for reading.
    ///
    /// # Errors
    /// As [`Self::journal`], and if the journal cannot be read.
    pub fn read_journal(&self) -> Result<JournalReader, Refusal> {
        Ok(JournalReader::open(self.journal()?)?)
    }

    /// Returns the state of everything, and what needs the person.
    ///
    /// # Errors
    /// If there is no data folder, or the journal cannot be read.
    pub fn attention(&self) -> Result<Attention, Refusal> {
        self.require_person()?;
        attention::attention(self)
    }

    /// Returns past runs up to `before` ago and occurrences up to `ahead` from now, of at most `count` routines after `after`.
    ///
    /// # Errors
    /// If there is no data folder, or the journal cannot be read.
    pub fn timeline(
        &self,
        before: TimeDelta,
        ahead: TimeDelta,
        after: Option<&DefinitionId>,
        count: usize,
    ) -> Result<Timeline, Refusal> {
        self.require_person()?;
        timeline::timeline(before, ahead, after, count, self)
    }

    /// Returns the costs of runs by several groupings at once. `since` limits how far back they may have begun.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn costs<const N: usize>(&self, by: [CostsBy; N], since: Option<Duration>) -> Result<[Costs; N], Refusal> {
        self.require_person()?;
        costs::several(by, since.map(|since| self.ago(since)), self)
    }

    /// Returns the bot's messages that contain `words`, newest first; with `before`, only those with a lower number.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn search_messages(&self, words: &str, before: Option<i64>, count: u32) -> Result<Vec<Message>, Refusal> {
        self.require_person()?;
        Ok(runs::open(self)?.messages_with(words, before, count)?)
    }

    /// Returns the costs of this month, beside those of the previous one.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn months(&self) -> Result<Months, Refusal> {
        self.require_person()?;
        costs::months(self)
    }

    /// Returns the next times of a definition, at most `count`.
    #[must_use]
    pub fn next_times(&self, definition: &Definition, count: usize) -> Vec<DateTime<Utc>> {
        let after = upcoming::FirstOccurrences::after(self.now(), self).fires_after(definition);
        occurrences(definition, after).take(count).collect()
    }

    /// Returns the current time zones of the jobs of these runs.
    #[must_use]
    pub fn zones(&self, runs: &[RunRecord]) -> HashMap<DefinitionId, Tz> {
        let Ok(loaded) = self.load() else { return HashMap::new() };
        runs.iter().filter_map(|run| Some((run.id.clone(), loaded.definitions.get(&run.id)?.zone))).collect()
    }

    /// Answers a question, and returns the result in words. `channel`: where the person answers.
    ///
    /// # Errors
    /// If there is no such question, it has been answered, or the caller is a run.
    pub fn answer_question(
        &self,
        question: i64,
        answer: Answer,
        sentence: Option<String>,
        channel: &str,
    ) -> Result<String, Refusal> {
        questions::answer(question, answer, sentence, channel.to_owned(), self).map(|answered| answered.words())
    }

    /// Returns a random topic of ntfy.sh, for messages to the person's phone.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new_topic(&self) -> Result<String, Refusal> {
        init::new_topic()
    }

    /// Returns a random code of letters and digits.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new_code(&self) -> Result<String, Refusal> {
        init::new_word()
    }

    /// Stores a secret in `.env`, readable by the person alone.
    ///
    /// # Errors
    /// If others can read that file, or it cannot be written.
    pub fn keep_secret(&self, name: &str, value: &str) -> Result<(), Refusal> {
        secrets::keep(&self.home, name, value).map_err(|error| Refusal::user(error.to_string()))
    }

    /// Checks that messages can be sent to a topic of an ntfy server.
    ///
    /// # Errors
    /// If the address is not that of a topic.
    pub fn check_topic(&self, topic: &str) -> Result<(), Refusal> {
        init::check_topic(topic)
    }

    /// Checks that the data folder can be created with these options.
    ///
    /// # Errors
    /// The reason why not.
    pub fn may_init(&self, options: &InitOptions) -> Result<(), Refusal> {
        init::may_init(options, self)
    }

    /// Whether there is an agent client with a login.
    #[must_use]
    pub fn has_agent(&self) -> bool {
        doctor::has_agent(self)
    }

    /// Whether a job's text is delivered as it is for want of an agent, though neither its file nor the settings ask for that.
    #[must_use]
    pub fn lacks_agent(&self, definition: &Definition) -> bool {
        let is_for_agent = !definition.is_without_agent() && needs_agent(definition).is_none();
        let is_chosen = || self.config().is_ok_and(|config| config.agent_client == ClientChoice::Auto);
        is_for_agent
            && is_chosen()
            && match service::status(self) {
                Ok(Some(service)) => service.client.name == NOTIFY,
                _ => !self.has_agent(),
            }
    }

    /// Returns the state of the agent client and its login.
    #[must_use]
    pub fn agent_findings(&self) -> Vec<Finding> {
        doctor::agent(self)
    }

    /// Returns the time `span` ago; the earliest representable time if that is out of range.
    /// Returns the time at which a list begins.
    fn moment_of(&self, since: Option<&Since>) -> Result<Option<DateTime<Utc>>, Refusal> {
        Ok(match since {
            None => None,
            Some(Since::Span(span)) => Some(self.ago(*span)),
            Some(Since::Moment(text)) => Some(when::past(text, self.now(), self.zone()?)?.with_timezone(&Utc)),
        })
    }

    fn ago(&self, span: Duration) -> DateTime<Utc> {
        let span = TimeDelta::from_std(span).ok();
        span.and_then(|span| self.now().checked_sub_signed(span)).unwrap_or(DateTime::<Utc>::MIN_UTC)
    }

    /// Returns the status of the service; `None` if it is not running.
    ///
    /// # Errors
    /// If the service cannot be reached.
    pub fn service_status(&self) -> Result<Option<ServiceStatus>, Refusal> {
        service::status(self)
    }

    /// Returns what starts the service, which is not running.
    #[must_use]
    pub fn starter(&self) -> Starter {
        unit::starter(self)
    }

    /// Returns what keeps a job waiting for an agent under this service: the missing agent, or its login.
    ///
    /// # Errors
    /// If the data folder or the journal cannot be read.
    pub fn keeps_waiting(&self, id: &DefinitionId, service: &ServiceStatus) -> Result<Option<String>, Refusal> {
        if service.client.missing.is_none() && service.waiting_for_login.is_none() {
            return Ok(None);
        }
        let (status, loaded) = (status::status(self)?, self.load_without_settings()?);
        let definition = loaded.definitions.get(id);
        Ok(definition.and_then(|definition| status.keeps_waiting(definition)).map(str::to_owned))
    }

    /// Returns the exhausted limits of the budget. While there is one, no job that costs money starts.
    ///
    /// # Errors
    /// If the settings or the journal cannot be read.
    pub fn spent_caps(&self) -> Result<Vec<Spending>, Refusal> {
        budget::spent(self)
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Returns the settings, which are read once.
    ///
    /// # Errors
    /// If the settings have an error.
    pub fn config(&self) -> Result<Arc<Config>, Refusal> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(Config::load(&self.home, &self.env.texts())?);
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }

    /// Returns the time zone of definitions that name none.
    ///
    /// # Errors
    /// If the settings have an error.
    pub fn zone(&self) -> Result<Tz, Refusal> {
        Ok(self.config()?.timezone)
    }

    /// Returns the value of `TZ` if it would apply but is not a time zone. The system's zone applies instead.
    #[must_use]
    pub fn unknown_zone(&self) -> Option<&str> {
        let name = self.env.text("TZ").filter(|name| !name.is_empty())?;
        let is_zone = name.trim_start_matches(':').parse::<Tz>().is_ok();
        let counts =
            self.config().is_ok_and(|config| matches!(config.origin("timezone"), Origin::System | Origin::Default));
        (counts && !is_zone).then_some(name)
    }

    /// Returns the service's time zone, if it is another than that of this command: both took it from their own environment.
    #[must_use]
    pub fn zone_of_service<'a>(&self, service: &'a ServiceStatus) -> Option<&'a str> {
        let config = self.config().ok().filter(|config| !matches!(config.origin("timezone"), Origin::File(_)))?;
        Some(&*service.zone).filter(|zone| !zone.is_empty() && *zone != config.timezone.name())
    }

    /// Returns the time zone for showing records. Invalid settings do not prevent that.
    #[must_use]
    pub fn zone_of_records(&self) -> Tz {
        self.zone().unwrap_or_else(|_| self.zone_without_settings())
    }

    /// Returns the time zone in which the viewer sees times.
    #[must_use]
    pub fn zone_of_viewer(&self) -> Tz {
        self.viewer_zone.unwrap_or_else(|| self.zone_of_records())
    }

    /// Returns the folders against which path rules and command lines of a job are resolved.
    #[must_use]
    pub fn places(&self) -> PathRoots {
        let user_home = self.env.path("HOME").map_or_else(|| PathBuf::from("/"), Path::to_owned);
        PathRoots { root: self.home.root().to_owned(), work: self.home.work(), user_home }
    }

    /// Returns the defaults for definitions.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub fn defaults(&self) -> Result<Defaults, Refusal> {
        Ok(self.defaults_in(self.zone()?))
    }

    fn defaults_in(&self, zone: Tz) -> Defaults {
        let (path, ours) = (self.env.search_path(), self.command_names);
        let others = move || ours().into_iter().chain(environment::external_commands_in(&path)).collect();
        let commands = KnownCommands::new(environment::external_commands_in(&[self.home.bin()]), others);
        Defaults { zone, commands, agents: known_agents(&self.home, self.env.path("HOME")) }
    }

    /// Returns the names of the person's own commands (`ollim-bot-NAME` in `bin/` or `PATH`), sorted.
    #[must_use]
    pub fn external_commands(&self) -> Vec<String> {
        environment::external_commands_in(&self.command_folders()).into_iter().collect()
    }

    /// Returns the folders that are searched for the person's own commands, in order. In a job, `PATH` also has folders of links that ask
    /// the service about a program. It was asked about the command already.
    #[must_use]
    pub fn command_folders(&self) -> Vec<PathBuf> {
        let path = self.env.search_path().into_iter().filter(|folder| !search_path::is_farm(folder));
        std::iter::once(self.home.bin()).chain(path).collect()
    }

    /// Finds a program on the `PATH` of this process, or by its path.
    ///
    /// # Errors
    /// If there is none, or the file is not executable.
    fn find_program(&self, program: &str) -> std::io::Result<PathBuf> {
        search_path::find(program, &self.env.search_path(), &self.places().user_home)
    }

    /// Loads all definitions.
    ///
    /// # Errors
    /// If there is no data folder, or the settings cannot be read.
    fn load(&self) -> Result<Loaded, Refusal> {
        self.require_home()?;
        match &self.definitions {
            Some(CurrentDefinitions(all)) => Ok(all()),
            None => Ok(definition::load(&self.home, &self.defaults()?)?),
        }
    }

    /// Loads the definitions of one kind.
    fn load_kind(&self, kind: Kind) -> Result<Loaded, Refusal> {
        Ok(self.load()?.of_kind(kind))
    }

    /// Loads all definitions like [`App::load`]. Invalid settings are ignored and reported as problems.
    fn load_without_settings(&self) -> Result<Loaded, Refusal> {
        self.require_home()?;
        let (zone, of_settings) = match Config::load(&self.home, &self.env.texts()) {
            Ok(config) => (config.timezone, Vec::new()),
            Err(ConfigError::Invalid { problems }) => (self.zone_without_settings(), problems),
            Err(error @ ConfigError::Io { .. }) => {
                let problem = Problem::of_file(Path::new("config.yaml"), Severity::Error, error.to_string(), None);
                (self.zone_without_settings(), vec![problem])
            }
        };
        let mut loaded = match &self.definitions {
            Some(CurrentDefinitions(all)) => all(),
            None => definition::load(&self.home, &self.defaults_in(zone))?,
        };
        loaded.problems.splice(0..0, of_settings);
        Ok(loaded)
    }

    /// Returns the zone of this environment, else that of the machine.
    fn zone_without_settings(&self) -> Tz {
        let named = ["OLLIM_TIMEZONE", "TZ"].map(|name| Some((name.to_owned(), self.env.text(name)?.to_owned())));
        let zone = |named: BTreeMap<String, String>| Config::parse("", &named).map(|config| config.timezone);
        let [_, of_shell] = &named;
        let of_shell = of_shell.clone().into_iter().collect();
        // The variable of a setting may be what is wrong.
        zone(named.into_iter().flatten().collect()).or_else(|_| zone(of_shell)).unwrap_or(Tz::UTC)
    }

    fn require_home(&self) -> Result<(), Refusal> {
        if self.home.root().is_dir() {
            return Ok(());
        }
        Err(Refusal::user(format!("there is no data folder at {}", self.home.root().display())).hint(NO_HOME))
    }
}
