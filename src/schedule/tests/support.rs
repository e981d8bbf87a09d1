//! A world around the dispatcher that a test controls: a clock, files, and scripted jobs.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::super::command::Command;
use super::super::{Activity, AgentNeed, Dispatcher, Files, Job, Launcher, Loaded, Removal, Schedule, ScheduleError};
use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass, NoAgent, UsedClient};
use crate::clock::Clock;
use crate::definition::{Background, Definition, DefinitionId, Draft, Kind, Mode, OnMissed, OnOverlap, Trigger};
use crate::journal::{Hosts, Journal, JournalReader, RunFilter, RunRecord, testing};

pub(in super::super) fn routine(id: &str) -> Definition {
    let trigger = Trigger::Routine { recurs: "0 * * * *".into(), on_overlap: OnOverlap::Skip };
    Definition { on_missed: OnMissed::Latest, file: PathBuf::from(format!("routines/{id}.md")), ..with(id, trigger) }
}

pub(in super::super) fn reminder(id: &str) -> Definition {
    let run_at = "2026-03-01T13:00:00Z".parse().unwrap();
    with(id, Trigger::Reminder { run_at, chain: None })
}

fn with(id: &str, trigger: Trigger) -> Definition {
    let kind = if matches!(trigger, Trigger::Routine { .. }) { Kind::Routine } else { Kind::Reminder };
    let draft = Draft { on_missed: OnMissed::All, ..Draft::empty(kind, id.to_owned()) };
    let whose = (DefinitionId::new(id), PathBuf::from(format!("reminders/{id}.md")), Tz::UTC);
    draft.into_definition(whose, trigger, Mode::Background(Background::default()))
}

/// Parses a UTC time of March 2026: `01T13:00:00`.
pub(in super::super) fn march(text: &str) -> DateTime<Utc> {
    format!("2026-03-{text}Z").parse().unwrap()
}

pub(in super::super) fn at_time(mut definition: Definition, at: DateTime<Utc>) -> Definition {
    definition.trigger = Trigger::Reminder { run_at: at.fixed_offset(), chain: None };
    definition
}

pub(in super::super) fn with_cron(mut definition: Definition, expression: &str, overlap: OnOverlap) -> Definition {
    definition.trigger = Trigger::Routine { recurs: expression.into(), on_overlap: overlap };
    definition
}

/// A scripted action of a launched job.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Takes this long.
    Take(Duration),
    /// Marks a side effect.
    Effect,
    /// Ends with this.
    End(AttemptEnd),
    /// Runs until it is cancelled.
    Hang,
    /// Runs until it is cancelled, then ends with this.
    EndWhenTold(AttemptEnd),
    /// Runs forever, and ignores cancellation.
    Deaf,
    Panic,
}

pub(super) fn fails(class: FailureClass) -> Act {
    Act::End(AttemptEnd::Failed(Failure { class, message: "no network.".to_owned() }))
}

/// An attempt that was launched.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) id: String,
    pub(super) at: DateTime<Utc>,
    pub(super) due: DateTime<Utc>,
    pub(super) attempt: u32,
    pub(super) late: Option<String>,
    pub(super) cut_off: bool,
    pub(super) body: String,
}

type Effects = Arc<Mutex<Vec<(String, DateTime<Utc>)>>>;

type Script = Box<dyn FnMut(&Job) -> Vec<Act> + Send>;

/// The world outside the dispatcher: it outlives a crash.
pub(super) struct World {
    folder: TempDir,
    pub(super) clock: Clock,
    starts: Arc<Mutex<Vec<Start>>>,
    /// Occurrences that had a side effect, once for each time.
    pub(super) effects: Effects,
    script: Arc<Mutex<Script>>,
    pub(super) files: Arc<Disk>,
    pub(super) slots: usize,
    /// Whether jobs that need an agent have none: those with an id that begins with `agent`.
    pub(super) agent_is_missing: Arc<AtomicBool>,
    /// Whether the machine lacks every requirement.
    pub(super) is_offline: Arc<AtomicBool>,
    /// The hosts that share the journal.
    pub(super) hosts: Option<watch::Receiver<Hosts>>,
}

/// One process of the service.
pub(super) struct Process {
    pub(super) schedule: Schedule,
    pub(super) journal: Journal,
    task: JoinHandle<Result<(), ScheduleError>>,
}

struct TestLauncher {
    journal: Journal,
    clock: Clock,
    starts: Arc<Mutex<Vec<Start>>>,
    effects: Effects,
    script: Arc<Mutex<Script>>,
    agent_is_missing: Arc<AtomicBool>,
    is_offline: Arc<AtomicBool>,
}

#[async_trait]
impl Launcher for TestLauncher {
    async fn agent_for(&self, definition: &Definition) -> AgentNeed {
        match definition.id.as_str().starts_with("agent") && self.agent_is_missing.load(Ordering::SeqCst) {
            true => AgentNeed::Missing(NoAgent { why: "no login".to_owned(), lacks_login: true }),
            false => AgentNeed::Met,
        }
    }

    async fn unmet_requirement(&self, definition: &Definition) -> Option<&'static str> {
        (!definition.requires.is_empty() && self.is_offline.load(Ordering::SeqCst)).then_some("it is offline")
    }

    async fn may_write(&self, writer: &Arc<Definition>, _watcher: &Arc<Definition>) -> bool {
        !writer.id.as_str().starts_with("reads")
    }

    async fn launch(&self, job: Job) -> AttemptReport {
        let now = self.clock.now();
        let early = now < job.occurrence.at && !job.by_hand;
        assert!(!early, "{} was launched early", job.occurrence.id);
        self.starts.lock().unwrap().push(Start {
            id: job.occurrence.id.to_string(),
            at: now,
            due: job.occurrence.at,
            attempt: job.attempt,
            late: job.late.clone(),
            cut_off: job.cut_off,
            body: job.definition.body.clone(),
        });
        self.journal.started(&job.run, None, None, None).await.unwrap();
        let acts = (self.script.lock().unwrap())(&job);
        let is_agent = !job.occurrence.id.as_str().starts_with("plain");
        let mut report = AttemptReport {
            client: Some(UsedClient { name: "test", version: None, is_agent }),
            answer: Some(format!("{} is done", job.occurrence.id)),
            ..AttemptReport::bare(AttemptEnd::Completed)
        };
        for act in acts {
            match act {
                Act::Take(time) => tokio::select! {
                    () = tokio::time::sleep(time) => {}
                    () = job.cancel.cancelled() => report.end = AttemptEnd::Cancelled,
                },
                Act::Effect => {
                    self.journal.mark_effect(&job.run, "Write").await.unwrap();
                    self.effects.lock().unwrap().push((job.occurrence.id.to_string(), job.occurrence.at));
                }
                Act::End(end) => report.end = end,
                Act::Hang => {
                    job.cancel.cancelled().await;
                    report.end = AttemptEnd::Cancelled;
                }
                Act::EndWhenTold(end) => {
                    job.cancel.cancelled().await;
                    report.end = end;
                }
                Act::Deaf => std::future::pending().await,
                Act::Panic => panic!("boo"),
            }
            if report.end != AttemptEnd::Completed {
                break;
            }
        }
        report
    }
}

/// The data folder's definition files, and the journal, which is checked when a file is touched.
pub(super) struct Disk {
    journal: PathBuf,
    pub(super) files: Mutex<BTreeMap<PathBuf, String>>,
    pub(super) failed: Mutex<BTreeMap<PathBuf, String>>,
    /// Number of failures still to come.
    pub(super) faults: AtomicU32,
    /// Whether every file changes each time it is looked at.
    pub(super) restless: AtomicBool,
    /// Whether the next file that is removed or moved away is put back at once.
    pub(super) comes_back: AtomicBool,
    /// Whether the next file to be removed is edited before, and the schedule told.
    pub(super) edited_meanwhile: AtomicBool,
    /// The definition for each text.
    means: Mutex<HashMap<String, Definition>>,
    /// The schedule to notify. Not a handle, since the schedule ends when the last of those is dropped.
    told: Mutex<Option<(mpsc::WeakUnboundedSender<Command>, watch::Receiver<Activity>)>>,
}

impl Disk {
    /// Writes files without reporting them.
    fn write(&self, definitions: &[Definition]) {
        for definition in definitions {
            self.files.lock().unwrap().insert(definition.file.clone(), text(definition));
            self.means.lock().unwrap().insert(text(definition), definition.clone());
        }
    }

    fn definition(&self, file: &Path) -> Option<Definition> {
        let text = self.files.lock().unwrap().get(file).cloned()?;
        self.means.lock().unwrap().get(&text).cloned()
    }

    fn schedule(&self) -> Option<Schedule> {
        let told = self.told.lock().unwrap();
        let (commands, activity) = told.as_ref()?;
        Some(Schedule { commands: commands.upgrade()?, activity: activity.clone() })
    }

    fn fault(&self) -> io::Result<()> {
        let left = self.faults.load(Ordering::SeqCst);
        if left == 0 {
            return Ok(());
        }
        self.faults.store(left - 1, Ordering::SeqCst);
        Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem))
    }

    /// Returns whether the file was there.
    fn take_away(&self, files: &mut BTreeMap<PathBuf, String>, file: &Path) -> bool {
        let Some(text) = files.remove(file) else { return false };
        if self.comes_back.swap(false, Ordering::SeqCst) {
            files.insert(file.to_owned(), text);
        }
        true
    }

    /// Asserts that the outcome is on the disk before the file is touched.
    fn outcome_is_recorded(&self, file: &Path) {
        let id = DefinitionId::new(file.file_stem().unwrap().to_str().unwrap());
        let reader = JournalReader::open(testing::place(&self.journal)).unwrap();
        let occurrences = reader.occurrences(Some(&id)).unwrap();
        assert!(occurrences.iter().any(|found| found.outcome.is_some()), "{id} was touched before its outcome");
    }
}

#[async_trait]
impl Files for Disk {
    fn is_there(&self, file: &Path) -> bool {
        self.files.lock().unwrap().contains_key(file)
    }

    fn is_unchanged(&self, file: &Path, text: &str) -> bool {
        if self.restless.load(Ordering::SeqCst)
            && let Some(mut edited) = self.definition(file)
        {
            edited.body.push('!');
            self.write(&[edited]);
        }
        self.files.lock().unwrap().get(file).is_some_and(|now| now == text)
    }

    async fn reread(&self, id: &DefinitionId, file: &Path) {
        let Some(schedule) = self.schedule() else { return };
        let files: Vec<PathBuf> = self.files.lock().unwrap().keys().cloned().collect();
        let own = files.iter().filter_map(|file| self.definition(file)).find(|definition| definition.id == *id);
        if own.is_none() {
            schedule.remove(id.clone());
        }
        for definition in own.into_iter().chain(self.definition(file)) {
            schedule.upsert(loaded(&definition));
        }
    }

    /// Reports only files that are there: each test reports removals itself.
    async fn reread_cleaned(&self, cleaned: Vec<(DefinitionId, PathBuf)>) {
        let Some(schedule) = self.schedule() else { return };
        let there = cleaned.iter().filter_map(|(_, file)| self.definition(file));
        there.for_each(|definition| schedule.upsert(loaded(&definition)));
    }

    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal> {
        self.outcome_is_recorded(file);
        self.fault()?;
        if self.edited_meanwhile.swap(false, Ordering::SeqCst)
            && let (Some(mut edited), Some(schedule)) = (self.definition(file), self.schedule())
        {
            edited.body.push('!');
            self.write(std::slice::from_ref(&edited));
            schedule.upsert(loaded(&edited));
        }
        let mut files = self.files.lock().unwrap();
        if files.get(file).is_some_and(|text| text != fired) {
            return Ok(Removal::Changed);
        }
        self.take_away(&mut files, file);
        Ok(Removal::Removed)
    }

    fn move_to_failed(&self, file: &Path, _: DateTime<Utc>, reason: &str) -> io::Result<bool> {
        self.outcome_is_recorded(file);
        self.fault()?;
        let was_there = self.take_away(&mut self.files.lock().unwrap(), file);
        if was_there {
            self.failed.lock().unwrap().insert(file.to_owned(), reason.to_owned());
        }
        Ok(was_there)
    }
}

/// Returns the text of a definition's file. It differs whenever the definition does.
pub(super) fn text(definition: &Definition) -> String {
    format!("{definition:?}")
}

pub(super) fn loaded(definition: &Definition) -> Loaded {
    Loaded { definition: Arc::new(definition.clone()), text: text(definition).into() }
}

impl World {
    /// Starts at noon on 1 March 2026. Jobs do their work at once, unless scripted otherwise.
    pub(super) fn new() -> Self {
        Self::at(march("01T12:00:00"))
    }

    pub(super) fn at(time: DateTime<Utc>) -> Self {
        Self::by(Clock::simulated(time))
    }

    /// Uses the machine's own clock.
    pub(super) fn real() -> Self {
        Self::by(Clock::system())
    }

    fn by(clock: Clock) -> Self {
        let folder = TempDir::new().unwrap();
        let files = Disk {
            journal: folder.path().join("journal.db"),
            files: Mutex::default(),
            failed: Mutex::default(),
            faults: AtomicU32::new(0),
            restless: AtomicBool::new(false),
            comes_back: AtomicBool::new(false),
            edited_meanwhile: AtomicBool::new(false),
            means: Mutex::default(),
            told: Mutex::default(),
        };
        Self {
            folder,
            clock,
            starts: Arc::default(),
            effects: Arc::default(),
            script: Arc::new(Mutex::new(Box::new(|_| Vec::new()))),
            files: Arc::new(files),
            slots: 4,
            agent_is_missing: Arc::default(),
            is_offline: Arc::default(),
            hosts: None,
        }
    }

    pub(super) fn script(&self, script: impl FnMut(&Job) -> Vec<Act> + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// Writes files without reporting them.
    pub(super) fn write(&self, definitions: &[Definition]) {
        self.files.write(definitions);
    }

    /// Starts the service on these definitions, as far as their files exist.
    pub(super) fn start(&self, definitions: &[Definition]) -> Process {
        let mut journal =
            Journal::open(testing::place(&self.folder.path().join("journal.db")), self.clock.clone()).unwrap();
        if let Some(hosts) = &self.hosts {
            journal.share(hosts.clone());
        }
        let hand = TestLauncher {
            journal: journal.clone(),
            clock: self.clock.clone(),
            starts: Arc::clone(&self.starts),
            effects: Arc::clone(&self.effects),
            script: Arc::clone(&self.script),
            agent_is_missing: Arc::clone(&self.agent_is_missing),
            is_offline: Arc::clone(&self.is_offline),
        };
        let files: Arc<dyn Files> = Arc::clone(&self.files) as _;
        let (schedule, inbox) = Schedule::channel(self.slots);
        let dispatcher = Dispatcher::new(inbox, &self.clock, journal.clone(), Arc::new(hand), files);
        *self.files.told.lock().unwrap() = Some((schedule.commands.downgrade(), schedule.activity()));
        let task = tokio::spawn(dispatcher.run());
        let there = definitions.iter().filter(|definition| self.files.is_there(&definition.file));
        schedule.replace(there.map(loaded).collect());
        Process { schedule, journal, task }
    }

    /// Writes the files and starts the service on them.
    pub(super) fn begin(&self, definitions: &[Definition]) -> Process {
        self.write(definitions);
        self.start(definitions)
    }

    pub(super) fn starts(&self) -> Vec<Start> {
        self.starts.lock().unwrap().clone()
    }

    /// Returns `mail 01T13:00:00` for each start, in order.
    pub(super) fn started(&self) -> Vec<String> {
        self.starts().iter().map(|start| format!("{} {}", start.id, start.at.format("%dT%H:%M:%S"))).collect()
    }

    pub(super) fn reader(&self) -> JournalReader {
        JournalReader::open(testing::place(&self.folder.path().join("journal.db"))).unwrap()
    }

    /// Blocks writes to the journal until the returned lock is dropped.
    pub(super) fn hold_journal(&self) -> testing::LockedJournal {
        testing::hold(&self.folder.path().join("journal.db"))
    }

    /// Returns `mail 01T13:00 completed` for each attempt, in the order of the claims, with its error.
    pub(super) fn attempts(&self) -> Vec<String> {
        let mut runs = self.reader().runs(&RunFilter::default()).unwrap();
        runs.reverse();
        let line = |run: &RunRecord| {
            let error = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{} {} {}{error}", run.id, run.scheduled.format("%dT%H:%M"), run.outcome)
        };
        runs.iter().map(line).collect()
    }

    pub(super) fn notifications(&self) -> Vec<String> {
        let mut messages = self.reader().messages(None).unwrap();
        messages.reverse();
        messages.into_iter().map(|message| message.text).collect()
    }

    pub(super) fn remaining_files(&self) -> Vec<String> {
        self.files.files.lock().unwrap().keys().map(|file| file.display().to_string()).collect()
    }

    pub(super) fn files_failed(&self) -> Vec<(String, String)> {
        let failed = self.files.failed.lock().unwrap();
        failed.iter().map(|(file, reason)| (file.display().to_string(), reason.clone())).collect()
    }
}

impl Process {
    /// Kills the service at once, whatever it is doing.
    pub(super) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        // A write in progress completes: the last write of a dead process is done or not.
        self.journal.close().await;
    }

    /// Waits until the dispatcher ends by itself.
    pub(super) async fn ended(self) {
        self.task.await.unwrap().unwrap();
        self.journal.close().await;
    }

    pub(super) async fn stop(self, grace: Duration) {
        self.schedule.stop(grace);
        self.task.await.unwrap().unwrap();
        self.journal.close().await;
    }
}

pub(super) async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

pub(super) async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}
