//! When the service ends: a signal, a span of time, or nothing left to do.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::settings::Current;
use super::supervisor::Supervisor;
use crate::clock::Clock;
use crate::schedule::{Activity, LONGEST_END, Schedule};

/// With nothing due within this, `--until-idle` ends.
const IDLE: TimeDelta = TimeDelta::minutes(1);

/// What follows the schedule's end: last words, closing the journal.
const LAST_STEPS: Duration = Duration::from_secs(5);

/// What makes the service end by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// When no run is going and nothing is due within a minute.
    pub idle: bool,
    /// After this long.
    pub after: Option<Duration>,
}

/// SIGTERM and SIGINT. Two of one kind that come at the same moment may be one: signals do not queue.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGHUP: read the settings again. A terminal that is closed sends it too.
pub struct Hangups(Signal);

/// From now on no signal ends the process by itself, nor does any later, whether it is listened for or not.
///
/// # Errors
/// When the system gives no handler.
pub fn catch() -> std::io::Result<(Signals, Hangups)> {
    // A file that may not grow any more (`ulimit -f`) is a disk that refuses, which is said and waited for.
    let _handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let hangups = Hangups(signal(SignalKind::hangup())?);
    Ok((Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? }, hangups))
}

impl Hangups {
    /// Waits for the next one. Safe to drop and call again.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

impl Signals {
    /// Waits for the next one. Safe to drop and call again.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What the end depends on, and who is told of it.
pub(super) struct Ending {
    pub(super) signals: Signals,
    pub(super) until: Until,
    pub(super) schedule: Schedule,
    pub(super) clock: Clock,
    pub(super) settings: Current,
    pub(super) supervisor: Supervisor,
}

impl Ending {
    /// Waits for a reason to end and stops the schedule, first with a grace for what is going; a second signal stops it
    /// at once. `meanwhile` goes on until there is a reason. Never returns: the schedule's end ends the service.
    pub(super) async fn watch(mut self, meanwhile: impl Future<Output = ()>) {
        let meanwhile = async {
            meanwhile.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.signals.next() => {
                let grace = humantime::format_duration(self.settings.borrow().shutdown_grace);
                let at_once = "a second signal (Ctrl-C) ends the service at once";
                match self.schedule.activity().borrow().running {
                    0 => tracing::info!("ending: no run is going"),
                    1 => tracing::info!("ending: 1 run is going and has {grace} to finish; {at_once}"),
                    runs => tracing::info!("ending: {runs} runs are going and have {grace} to finish; {at_once}"),
                }
            }
            () = span(self.until.after) => tracing::info!("ending: the time is over"),
            () = idle(self.schedule.activity(), self.clock), if self.until.idle => {
                tracing::info!("ending: nothing is left to do");
            }
            () = meanwhile => {}
        }
        super::hosts::end_with_lease();
        let grace = self.settings.borrow().shutdown_grace;
        self.schedule.stop(grace);
        self.supervisor.stopping(grace + LONGEST_END + LAST_STEPS).await;
        self.signals.next().await;
        tracing::warn!("ending at once");
        self.schedule.end_now();
        std::future::pending::<()>().await;
    }
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
        if now.loaded && now.active == 0 && !due_soon {
            return;
        }
        if activity.changed().await.is_err() {
            return;
        }
    }
}
