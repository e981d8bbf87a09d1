//! The bot's own upkeep, on tokio-cron-scheduler: a full re-read of the folders as a safety net, journal retention,
//! a heartbeat. What each chore does is its owner's; this only sees that it is done now and then.
//!
//! tokio-cron-scheduler does not decide when a definition fires: it polls every half second, copies every job each
//! time, and keeps the UTC offset of a zone from when a job was registered.

use std::pin::Pin;
use std::time::Duration;

use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// Something that is done every so often. It must not take longer than its interval.
pub struct Chore {
    /// Names it in the log.
    pub name: &'static str,
    /// How often; whole seconds, at least one.
    pub every: Duration,
    /// Does it. An error is the chore's own to log.
    pub work: Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>,
}

/// Housekeeping could not be started.
#[derive(Debug, thiserror::Error)]
#[error("housekeeping cannot be started (chore `{chore}`)")]
pub struct HousekeepingError {
    /// Which chore was being set up.
    pub chore: &'static str,
    #[source]
    source: JobSchedulerError,
}

/// Chores that are being done, until [`Self::stop`].
pub struct Housekeeping(JobScheduler);

impl Housekeeping {
    /// Begins to do `chores`, each for the first time after its interval.
    ///
    /// # Errors
    /// When tokio-cron-scheduler refuses one.
    pub async fn start(chores: Vec<Chore>) -> Result<Self, HousekeepingError> {
        let failed = |chore| move |source| HousekeepingError { chore, source };
        let scheduler = JobScheduler::new().await.map_err(failed("none"))?;
        for mut chore in chores {
            let name = chore.name;
            let job = Job::new_repeated_async(chore.every.max(Duration::from_secs(1)), move |_, _| {
                tracing::debug!(chore = name, "housekeeping");
                (chore.work)()
            });
            scheduler.add(job.map_err(failed(name))?).await.map_err(failed(name))?;
        }
        scheduler.start().await.map_err(failed("all"))?;
        Ok(Self(scheduler))
    }

    /// Does no further chore.
    pub async fn stop(mut self) {
        if let Err(error) = self.0.shutdown().await {
            tracing::debug!(%error, "housekeeping did not stop cleanly");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the real clock: tokio-cron-scheduler reads no other.
    #[tokio::test]
    async fn a_chore_is_done_again_and_again() {
        let (done, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let work = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let done = done.clone();
            Box::pin(async move { done.send(()).unwrap() })
        };
        let chore = Chore { name: "test", every: Duration::from_secs(1), work: Box::new(work) };
        let housekeeping = Housekeeping::start(vec![chore]).await.unwrap();
        assert!(seen.recv().await.is_some());
        assert!(seen.recv().await.is_some());
        housekeeping.stop().await;
    }
}
