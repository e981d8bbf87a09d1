//! Constructs the parts of the service in order, hands each to those that need it, and ends them in order.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::event_stream::ShowEvent;
use super::handlers::ExecuteLine;
use super::heartbeat;
use super::hosts;
use super::incoming::ExecuteWords;
use super::lock::LockError;
pub use super::runtime_files::THREAD_KEEP_ALIVE;
use super::settings::CurrentSettings;
use super::shutdown::EndConditions;
use crate::app::App;
use crate::channel::ntfy;
use crate::config::secrets::SecretsError;
use crate::definition::{DefinitionError, DefinitionId};
use crate::journal::{JournalError, RunId};
use crate::refusal::Refusal;
use crate::run::folder;
use crate::schedule::{FireError, HousekeepingError, Schedule, ScheduleError, StageView};
use opened_home::OpenedHome;
use parts::Parts;

mod background;
mod execution;
mod opened_home;
mod parts;

/// Why the lease counts as lost if a commit finds it so.
const FENCED: &str = "another host may have taken over";

/// The inputs of the service.
pub struct Start {
    /// The application, on a data folder whose folders exist.
    pub app: App,
    /// The conditions under which the service ends by itself.
    pub until: EndConditions,
    /// A definition to fire by hand. The service ends when its run is over.
    pub only: Option<DefinitionId>,
    /// Executes runs' command lines.
    pub execute: ExecuteLine,
    /// Executes command lines that the person types on a channel.
    pub execute_words: ExecuteWords,
    /// Receives all events, messages included. Messages are then shown nowhere else.
    pub events: Option<ShowEvent>,
}

/// Reasons why the service did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The data folder is in use by another process.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The secrets cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The secret of the notifications' buttons cannot be used.
    #[error(transparent)]
    Buttons(#[from] ntfy::SecretError),
    /// The definitions cannot be read or followed.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The dispatcher ended by itself.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Housekeeping cannot be started.
    #[error(transparent)]
    Housekeeping(#[from] HousekeepingError),
    /// The definition of [`Start::only`] could not be fired.
    #[error(transparent)]
    Fire(#[from] FireError),
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] Refusal),
    /// An operation that every service needs failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

/// Runs the service until it is asked to end, or [`Start::until`] ends it. Everything is recorded by then. Returns the run of
/// [`Start::only`], if one was asked for.
///
/// # Errors
/// [`DaemonError`].
pub async fn run(start: Start) -> Result<Option<RunId>, DaemonError> {
    let ended = serve(start).await;
    if let Err(DaemonError::Journal(JournalError::Fenced)) = &ended {
        hosts::start_again(FENCED, None);
    }
    ended
}

async fn serve(start: Start) -> Result<Option<RunId>, DaemonError> {
    let Start { app, until, only, execute, execute_words, events } = start;
    let of_service = only.is_none();
    let Some(opened) = OpenedHome::open(app, !of_service, events).await? else { return Ok(None) };
    let (home, journal, lock) = (opened.home.clone(), opened.journal.clone(), Arc::clone(&opened.lock));
    let events = opened.events.clone();
    let parts = Parts::construct(&opened, only.as_ref(), execute).await?;
    let Parts { dispatcher, deliveries, housekeeping, schedule, settings, hearts, idle_client, background } = parts;
    let mut tasks = background.begin(opened, until, execute_words, of_service);
    let firing = only.map(|id| tokio::spawn(fire_only(id, schedule, settings.clone())));
    let ended = dispatcher.run().await;
    fail_point!(ScheduleEnded);

    tasks.shutdown().await;
    idle_client.end().await;
    folder::tidy(home.main_run()).await;
    let lost = lock.is_lost(&home).then(|| LockError::Lost { path: home.lock() }.to_string());
    let fault = ended.as_ref().err().map(ToString::to_string).or(lost);
    heartbeat::last(&hearts, &settings, fault, of_service).await;
    housekeeping.stop().await;
    deliveries.finish().await;
    if let Some(events) = events {
        events.finish().await;
    }
    journal.close().await;
    fail_point!(JournalClosed);
    if lock.is_lost(&home) {
        // The socket and the token may already belong to another service.
        return Err(LockError::Lost { path: home.lock() }.into());
    }
    // A writer may notice a lost lease before the thread that renews it.
    if let Err(ScheduleError::Journal(JournalError::Fenced)) = &ended {
        hosts::start_again(FENCED, Some(&lock));
    }
    // A caller should be answered at once that nothing runs, not kept waiting.
    let _absent = fs::remove_file(home.socket());
    let _absent = fs::remove_file(home.user_token());
    drop(lock);
    ended?;
    match firing {
        Some(firing) => Ok(Some(firing.await.map_err(|error| failed("fire it")(error.into()))??)),
        None => Ok(None),
    }
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> DaemonError {
    move |source| DaemonError::Io { what, source }
}

/// Interval between two checks of a run that found no login.
const LOOKS_AGAIN: Duration = Duration::from_millis(100);

/// Fires one definition by hand and stops the schedule when its run is over.
async fn fire_only(id: DefinitionId, schedule: Schedule, settings: CurrentSettings) -> Result<RunId, FireError> {
    let mut activity = schedule.activity();
    // If the schedule ends before it is loaded, the call is still answered.
    let _ended = activity.wait_for(|now| now.loaded).await.is_err();
    let fired = schedule.fire(id).await;
    if let Ok(run) = &fired {
        loop {
            let now = schedule.snapshot(0).await;
            let Some(active) = now.active.iter().find(|active| active.run == *run) else { break };
            // The run might wait forever. It stays open, and a service continues it once there is an agent.
            let waits = matches!(active.stage, StageView::Waiting | StageView::RetryIn(_));
            let no_agent = now.waiting_for_login.or(now.waiting_for_agent).is_some();
            if waits && no_agent {
                break;
            }
            // The schedule does not announce that the end is recorded and the run waits, so poll for it.
            let longest = if no_agent { LOOKS_AGAIN } else { Duration::MAX };
            if let Ok(Err(_)) = tokio::time::timeout(longest, activity.changed()).await {
                break;
            }
        }
    }
    schedule.stop(settings.borrow().shutdown_grace);
    fired
}
