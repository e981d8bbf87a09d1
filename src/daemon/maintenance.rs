//! The maintenance tasks that housekeeping runs for the service.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::settings::Current;
use crate::clock::Clock;
use crate::home::Home;
use crate::journal::Journal;
use crate::run::folder;
use crate::run::gate::state::KeptState;
use crate::schedule::{LiveDefinitions, MaintenanceTask, Schedule};

/// Every folder is read again so often, whatever the watch has told.
const REREAD: Duration = Duration::from_secs(10 * 60);
/// What is too old is taken out of the journal so often.
const PRUNE: Duration = Duration::from_secs(60 * 60);
/// It is looked whether the schedule answers so often,
const HEARTBEAT: Duration = Duration::from_secs(60);
/// and so long it may take. It never waits for anything, so this is long.
const ANSWERS: Duration = Duration::from_secs(10);

/// What the tasks work on.
pub(super) struct Maintenance {
    pub(super) home: Home,
    pub(super) journal: Journal,
    pub(super) clock: Clock,
    pub(super) definitions: LiveDefinitions,
    pub(super) schedule: Schedule,
    pub(super) settings: Current,
}

impl Maintenance {
    /// All tasks.
    pub(super) fn tasks(self) -> Vec<MaintenanceTask> {
        let Self { home, journal, clock, definitions, schedule, settings } = self;
        let known = definitions.clone();
        let reread = move || -> BoxFuture<'static, ()> {
            let definitions = definitions.clone();
            async move { definitions.reread().await }.boxed()
        };
        let asked = schedule.clone();
        let heartbeat = move || -> BoxFuture<'static, ()> {
            let schedule = schedule.clone();
            async move {
                if timeout(ANSWERS, schedule.is_alive()).await.is_err() {
                    tracing::error!("the schedule has not answered for {} s: nothing fires", ANSWERS.as_secs());
                }
            }
            .boxed()
        };
        let prune = move || -> BoxFuture<'static, ()> {
            let (home, journal, schedule, known) = (home.clone(), journal.clone(), asked.clone(), known.clone());
            let retention = settings.borrow().journal_retention;
            let before = TimeDelta::from_std(retention).ok().and_then(|span| clock.now().checked_sub_signed(span));
            async move {
                if let Some(before) = before.filter(|_| journal.is_main()) {
                    prune(&home, &journal, before).await;
                    prune_gates(&home, &known, before).await;
                }
                // A run whose folder is listed after this is either among these or has its folder newly made.
                let active = schedule.snapshot(0).await.active;
                let running = active.iter().map(|active| active.run.to_string()).collect();
                // As in `prune`.
                let _ended = tokio::task::spawn_blocking(move || tidy_folders(&home, &running)).await;
            }
            .boxed()
        };
        vec![
            MaintenanceTask { name: "read all definitions again", every: REREAD, work: Box::new(reread) },
            MaintenanceTask { name: "prune the journal", every: PRUNE, work: Box::new(prune) },
            MaintenanceTask { name: "heartbeat", every: HEARTBEAT, work: Box::new(heartbeat) },
        ]
    }
}

async fn prune(home: &Home, journal: &Journal, before: DateTime<Utc>) {
    match journal.prune(before).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "old runs were taken out of the journal"),
        Err(error) => tracing::warn!(%error, "the journal could not be pruned"),
    }
    let (home, log) = (home.clone(), home.log());
    // Its errors are logged there; a panic would be one of the folder's reading.
    let _ended = tokio::task::spawn_blocking(move || {
        prune_folders(&home, before);
        prune_log(&log, before);
    })
    .await;
}

/// Drops what the gates of jobs have kept that are gone, and had not run since then.
async fn prune_gates(home: &Home, known: &LiveDefinitions, before: DateTime<Utc>) {
    for kept in KeptState::old(home, before.into()) {
        let (of, home) = (kept.clone(), home.clone());
        if known.find(move |definition| KeptState::of(&home, definition) == of).await.is_some() {
            continue;
        }
        if let Err(error) = kept.remove() {
            tracing::warn!(%error, "what the gate of a job kept that is gone could not be removed");
        }
    }
}

/// Removes the files of the log that were written last before then.
fn prune_log(log: &Path, before: DateTime<Utc>) {
    for entry in fs::read_dir(log).into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|facts| facts.modified());
        if written.is_ok_and(|at| DateTime::<Utc>::from(at) < before)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(%error, "the old log {} could not be removed", entry.path().display());
        }
    }
}

/// A folder younger than this may be that of a run which has just begun.
const YOUNG: Duration = Duration::from_secs(10 * 60);

/// Those of all runs but the main session's, which is looked after where its client is.
fn folders_of_runs(home: &Home) -> impl Iterator<Item = fs::DirEntry> {
    let main = home.main_run();
    fs::read_dir(home.runs()).into_iter().flatten().flatten().filter(move |entry| entry.path() != main)
}

/// Removes what runs have left whose service was killed: every other run has done that at its end.
fn tidy_folders(home: &Home, running: &BTreeSet<String>) {
    for entry in folders_of_runs(home) {
        let old = entry
            .metadata()
            .and_then(|facts| facts.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG));
        if old && !running.contains(&*entry.file_name().to_string_lossy()) {
            folder::tidy_now(&entry.path());
        }
    }
}

/// Removes the folders of runs that ended before then: nothing has been written in them since.
fn prune_folders(home: &Home, before: DateTime<Utc>) {
    for entry in folders_of_runs(home) {
        let old =
            entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| DateTime::<Utc>::from(at) < before);
        if old && let Err(error) = agent_sandbox::leftovers::remove(&entry.path()) {
            tracing::warn!(%error, "the old folder {} could not be removed", entry.path().display());
        }
    }
}
