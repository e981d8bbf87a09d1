//! The maintenance tasks that housekeeping runs for the service.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::pushed::PushedDefinitions;
use super::settings::CurrentSettings;
use crate::clock::Clock;
use crate::home::Home;
use crate::journal::Journal;
use crate::run::folder;
use crate::run::gate::state::KeptState;
use crate::schedule::{LiveDefinitions, MaintenanceTask, Schedule};

/// Interval at which every folder is read again, in addition to the watch.
const REREAD: Duration = Duration::from_secs(10 * 60);
/// Interval at which old records are removed from the journal.
const PRUNE: Duration = Duration::from_secs(60 * 60);
/// Interval at which the schedule is asked for an answer.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// Maximum time for that answer. The schedule never waits for anything, so this is generous.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts that the tasks work on.
pub(super) struct Maintenance {
    pub(super) home: Home,
    pub(super) journal: Journal,
    pub(super) clock: Clock,
    pub(super) definitions: LiveDefinitions,
    pub(super) pushed: PushedDefinitions,
    pub(super) schedule: Schedule,
    pub(super) settings: CurrentSettings,
}

impl Maintenance {
    /// Returns all tasks.
    pub(super) fn tasks(self) -> Vec<MaintenanceTask> {
        let Self { home, journal, clock, definitions, pushed, schedule, settings } = self;
        let known = definitions.clone();
        let reread = move || -> BoxFuture<'static, ()> {
            let definitions = definitions.clone();
            pushed.look_soon();
            async move { definitions.reread().await }.boxed()
        };
        let asked = schedule.clone();
        let heartbeat = move || -> BoxFuture<'static, ()> {
            let schedule = schedule.clone();
            async move {
                if timeout(ANSWER_TIMEOUT, schedule.is_alive()).await.is_err() {
                    tracing::error!("the schedule has not answered for {} s: nothing fires", ANSWER_TIMEOUT.as_secs());
                }
            }
            .boxed()
        };
        let prune = move || -> BoxFuture<'static, ()> {
            let (home, journal, schedule, known) = (home.clone(), journal.clone(), asked.clone(), known.clone());
            let budget = settings.borrow().budget;
            let retention = settings.borrow().journal_retention;
            let now = clock.now();
            let before = TimeDelta::from_std(retention).ok().and_then(|span| now.checked_sub_signed(span));
            async move {
                if let Some(before) = before.filter(|_| journal.is_main()) {
                    // A run that a budget still counts stays.
                    prune_journal(&journal, before.min(budget.counts_since(now))).await;
                    prune_files(&home, before).await;
                    prune_gates(&home, &known, before).await;
                }
                // Taken before listing folders: a later run has a new folder, which is kept.
                let active = schedule.snapshot(0).await.active;
                let running = active.iter().map(|active| active.run.to_string()).collect();
                // As in `prune_files`.
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

async fn prune_journal(journal: &Journal, before: DateTime<Utc>) {
    match journal.prune(before).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "old runs were taken out of the journal"),
        Err(error) => tracing::warn!(%error, "the journal could not be pruned"),
    }
}

async fn prune_files(home: &Home, before: DateTime<Utc>) {
    let (home, log) = (home.clone(), home.log());
    // The functions log their errors. The result holds only a panic.
    let _ended = tokio::task::spawn_blocking(move || {
        prune_folders(&home, before);
        prune_log(&log, before);
    })
    .await;
}

/// Removes the kept state of gates that is older than `before`, if their job no longer exists.
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

/// Removes log files that were last written before `before`.
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

/// Maximum age of a folder whose run may have just begun.
const MIN_FOLDER_AGE: Duration = Duration::from_secs(10 * 60);

/// Lists the folders of all runs except the main session's, which its client's owner maintains.
fn folders_of_runs(home: &Home) -> impl Iterator<Item = fs::DirEntry> {
    let main = home.main_run();
    fs::read_dir(home.runs()).into_iter().flatten().flatten().filter(move |entry| entry.path() != main)
}

/// Removes leftovers of runs whose service was killed. All other runs clean up at their end.
fn tidy_folders(home: &Home, running: &BTreeSet<String>) {
    for entry in folders_of_runs(home) {
        let old = entry
            .metadata()
            .and_then(|facts| facts.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MIN_FOLDER_AGE));
        if old && !running.contains(&*entry.file_name().to_string_lossy()) {
            folder::tidy_now(&entry.path());
        }
    }
}

/// Removes the folders of runs that ended before `before`. Nothing has been written in them since.
fn prune_folders(home: &Home, before: DateTime<Utc>) {
    for entry in folders_of_runs(home) {
        let old =
            entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| DateTime::<Utc>::from(at) < before);
        if old && let Err(error) = agent_sandbox::leftovers::remove(&entry.path()) {
            tracing::warn!(%error, "the old folder {} could not be removed", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_log_that_is_older_than_the_retention_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let log = Home::new(folder.path()).log();
        fs::create_dir_all(&log).unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let limit = SystemTime::UNIX_EPOCH + 100 * day;
        for (name, at) in [("service.old.jsonl", limit - day), ("service.new.jsonl", limit + day)] {
            fs::File::create(log.join(name)).unwrap().set_modified(at).unwrap();
        }
        prune_log(&log, limit.into());
        let left: Vec<_> = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["service.new.jsonl"]);
        // Before the first start there is none.
        prune_log(&folder.path().join("nowhere"), limit.into());
    }
}
