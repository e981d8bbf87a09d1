//! The maintenance tasks that housekeeping runs for the service.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::pushed::PushedDefinitions;
use super::settings::CurrentSettings;
use crate::clock::Clock;
use crate::definition::Defaults;
use crate::home::Home;
use crate::journal::{Journal, RunId};
use crate::run::folder;
use crate::run::gate::state::KeptState;
use crate::run::limits::recorded_makers;
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
    pub(super) defaults: Defaults,
    pub(super) definitions: LiveDefinitions,
    pub(super) pushed: PushedDefinitions,
    pub(super) schedule: Schedule,
    pub(super) settings: CurrentSettings,
}

impl Maintenance {
    /// Returns all tasks.
    pub(super) fn tasks(self) -> Vec<MaintenanceTask> {
        let Self { home, journal, clock, defaults, definitions, pushed, schedule, settings } = self;
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
            let defaults = defaults.clone();
            let budget = settings.borrow().budget;
            let retention = settings.borrow().journal_retention;
            let now = clock.now();
            let before = TimeDelta::from_std(retention).ok().and_then(|span| now.checked_sub_signed(span));
            async move {
                if let Some(before) = before.filter(|_| journal.is_main()) {
                    // A run that a budget still counts stays.
                    prune_journal(&journal, before.min(budget.counts_since(now)), &known, &defaults).await;
                    prune_gates(&home, &known, before).await;
                }
                // Taken before listing folders: a later run has a new folder, which is kept.
                let active = schedule.snapshot(0).await.active;
                let running = active.iter().map(|active| active.run.clone()).collect();
                if let Some(before) = before {
                    prune_folders(&home, &journal, before, &running).await;
                    let log = home.log();
                    // It logs its errors. The result holds only a panic.
                    let _ended = tokio::task::spawn_blocking(move || prune_log(&log, before)).await;
                }
                // As above.
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

async fn prune_journal(journal: &Journal, before: DateTime<Utc>, known: &LiveDefinitions, defaults: &Defaults) {
    let makers = known.makers().await;
    let pruned = match journal.read(|journal| recorded_makers(makers.clone(), defaults, journal)).await {
        Ok(makers) => journal.prune(before, makers).await,
        Err(error) => Err(error),
    };
    match pruned {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "old runs were taken out of the journal"),
        Err(error) => tracing::warn!(%error, "the journal could not be pruned"),
    }
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

/// Returns the run that a folder belongs to.
fn run_of(folder: &fs::DirEntry) -> RunId {
    RunId::new(folder.file_name().to_string_lossy())
}

/// Returns whether nothing has been made or removed in a folder since `before`. A run can set these times.
fn is_older(folder: &fs::DirEntry, before: SystemTime) -> bool {
    folder.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| at < before)
}

/// Removes leftovers of runs whose service was killed. All other runs clean up at their end.
fn tidy_folders(home: &Home, running: &BTreeSet<RunId>) {
    let Some(before) = SystemTime::now().checked_sub(MIN_FOLDER_AGE) else { return };
    for entry in folders_of_runs(home) {
        if is_older(&entry, before) && !running.contains(&run_of(&entry)) {
            folder::tidy_now(&entry.path());
        }
    }
}

/// Removes old folders of runs that the journal holds no more.
async fn prune_folders(home: &Home, journal: &Journal, before: DateTime<Utc>, running: &BTreeSet<RunId>) {
    let old: Vec<fs::DirEntry> = folders_of_runs(home)
        .filter(|folder| is_older(folder, before.into()) && !running.contains(&run_of(folder)))
        .collect();
    let recorded = match journal.recorded_runs(old.iter().map(run_of).collect()).await {
        Ok(recorded) => recorded,
        Err(error) => return tracing::warn!(%error, "old folders of runs could not be looked up"),
    };
    // It logs its errors. The result holds only a panic.
    let _ended = tokio::task::spawn_blocking(move || {
        for folder in old.iter().filter(|folder| !recorded.contains(&run_of(folder))) {
            if let Err(error) = agent_sandbox::leftovers::remove(&folder.path()) {
                tracing::warn!(%error, "the old folder {} could not be removed", folder.path().display());
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DefinitionId;
    use crate::journal::testing::begin_turn;

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

    /// A run may set the time of any folder.
    #[tokio::test]
    async fn only_folders_of_runs_that_are_over_and_forgotten_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let clock = Clock::system();
        let journal = Journal::open(&folder.path().join("journal.db"), clock.clone()).unwrap();
        let recorded = begin_turn(&journal, &clock, &DefinitionId::new("turn-1")).await;
        let running = RunId::new("0000cafe");
        let names = [recorded.as_str(), running.as_str(), "forgotten", "new", "main"];
        for name in names {
            fs::create_dir_all(home.runs().join(name)).unwrap();
            let time = if name == "new" { SystemTime::now() } else { SystemTime::UNIX_EPOCH };
            fs::File::open(home.runs().join(name)).unwrap().set_modified(time).unwrap();
        }
        let before = clock.now() - TimeDelta::hours(1);
        prune_folders(&home, &journal, before, &BTreeSet::from([running.clone()])).await;
        let left: Vec<&str> = names.into_iter().filter(|name| home.runs().join(name).exists()).collect();
        assert_eq!(left, [recorded.as_str(), running.as_str(), "new", "main"]);
    }
}
