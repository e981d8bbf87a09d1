//! When the service ends: a signal, a span of time, or nothing left to do.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::schedule::{Activity, Schedule};

/// With nothing due within this, `--until-idle` ends.
const IDLE: TimeDelta = TimeDelta::minutes(1);

/// What makes the service end by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// When no run is going and nothing is due within a minute.
    pub idle: bool,
    /// After this long.
    pub after: Option<Duration>,
}

/// SIGTERM and SIGINT.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system gives no handler.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for a reason to end and stops the schedule, first with `grace` for what is going; a second signal stops it
/// at once. Never returns: the schedule's end ends the service.
pub async fn watch(mut signals: Signals, until: Until, schedule: Schedule, clock: Clock, grace: Duration) {
    tokio::select! {
        () = signals.next() => {
            tracing::info!("ending: runs that are going have {} to finish", humantime::format_duration(grace));
        }
        () = span(until.after) => tracing::info!("ending: the time is over"),
        () = idle(schedule.activity(), clock), if until.idle => tracing::info!("ending: nothing is left to do"),
    }
    schedule.stop(grace);
    signals.next().await;
    tracing::warn!("ending at once");
    schedule.stop(Duration::ZERO);
    std::future::pending::<()>().await;
}

async fn span(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

async fn idle(mut activity: watch::Receiver<Activity>, clock: Clock) {
    loop {
        let now = *activity.borrow_and_update();
        let due_soon = now.next.is_some_and(|at| at <= clock.now() + IDLE);
        if now.loaded && now.open == 0 && !due_soon {
            return;
        }
        if activity.changed().await.is_err() {
            return;
        }
    }
}
