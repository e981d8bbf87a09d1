//! Maintenance of the service, on tokio-cron-scheduler: a full re-read of the folders as a safety net, journal
//! retention, a heartbeat. This module only runs the tasks.
//!
//! tokio-cron-scheduler does not decide when a definition fires: it polls every half second, copies every job each
//! time, and keeps the UTC offset of a zone from when a job was registered.

use std::pin::Pin;
use std::time::Duration;

use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// A periodic task. Its interval must be longer than a run of the task.
pub struct MaintenanceTask {
    /// Name in the log.
    pub name: &'static str,
    /// The interval; whole seconds, at least one.
    pub every: Duration,
    /// Runs the task once. It logs its own errors.
    pub work: Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>,
}

/// An error from starting housekeeping.
#[derive(Debug, thiserror::Error)]
#[error("housekeeping cannot be started (task `{task}`)")]
pub struct HousekeepingError {
    /// The task that was being set up.
    pub task: &'static str,
    #[source]
    source: JobSchedulerError,
}

/// Runs maintenance tasks until [`Self::stop`].
pub struct Housekeeping(JobScheduler);

impl Housekeeping {
    /// Starts running `tasks`, each for the first time after its interval.
    ///
    /// # Errors
    /// Fails when tokio-cron-scheduler refuses one.
    pub async fn start(tasks: Vec<MaintenanceTask>) -> Result<Self, HousekeepingError> {
        let failed = |task| move |source| HousekeepingError { task, source };
        let scheduler = JobScheduler::new().await.map_err(failed("none"))?;
        for mut task in tasks {
            let name = task.name;
            let job = Job::new_repeated_async(task.every.max(Duration::from_secs(1)), move |_, _| {
                tracing::debug!(task = name, "housekeeping");
                (task.work)()
            });
            scheduler.add(job.map_err(failed(name))?).await.map_err(failed(name))?;
        }
        scheduler.start().await.map_err(failed("all"))?;
        Ok(Self(scheduler))
    }

    /// Stops running tasks.
    pub async fn stop(mut self) {
        if let Err(error) = self.0.shutdown().await {
            tracing::debug!(%error, "housekeeping did not stop cleanly");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the real clock, since tokio-cron-scheduler reads no other.
    #[tokio::test]
    async fn a_task_is_done_again_and_again() {
        let (done, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let work = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let done = done.clone();
            Box::pin(async move { done.send(()).unwrap() })
        };
        let task = MaintenanceTask { name: "test", every: Duration::from_secs(1), work: Box::new(work) };
        let housekeeping = Housekeeping::start(vec![task]).await.unwrap();
        assert!(seen.recv().await.is_some());
        assert!(seen.recv().await.is_some());
        housekeeping.stop().await;
    }
}
