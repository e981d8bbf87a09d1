//! Decides when the service ends: at a signal, after a span of time, or when nothing is left to do.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::settings::CurrentSettings;
use super::supervisor::Supervisor;
use crate::clock::Clock;
use crate::schedule::{Activity, LONGEST_END, Schedule};

/// `--until-idle` ends the service if nothing is due within this time.
const IDLE: TimeDelta = TimeDelta::minutes(1);

/// Time for the last steps after the schedule's end, such as closing the journal.
const LAST_STEPS: Duration = Duration::from_secs(5);

/// Conditions under which the service ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndConditions {
    /// Whether the service ends when nothing is running and nothing is due within a minute.
    pub idle: bool,
    /// Time after which the service ends.
    pub after: Option<Duration>,
}

/// SIGTERM and SIGINT. Two signals of one kind at the same moment may arrive as one, since signals do not queue.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGHUP, which makes the service reload its settings. Closing a terminal sends it too.
pub struct Hangups(Signal);

/// Catches the signals from now on, so that none ends the process by default, even while nobody listens for it.
///
/// # Errors
/// If the system cannot register a handler.
pub fn catch() -> std::io::Result<(Signals, Hangups)> {
    // SIGXFSZ, at a limit of `ulimit -f`: the write fails like on a full disk, which is reported and waited for.
    let _handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let hangups = Hangups(signal(SignalKind::hangup())?);
    super::hosts::end_by(SignalKind::terminate())?;
    super::hosts::end_by(SignalKind::interrupt())?;
    Ok((Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? }, hangups))
}

impl Hangups {
    /// Waits for the next hangup. Cancel safe.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

impl Signals {
    /// Waits for the next signal. Cancel safe.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Everything that decides the end, and the parts that are notified of it.
pub(super) struct Shutdown {
    pub(super) signals: Signals,
    pub(super) until: EndConditions,
    pub(super) schedule: Schedule,
    pub(super) clock: Clock,
    pub(super) settings: CurrentSettings,
    pub(super) supervisor: Supervisor,
}

impl Shutdown {
    /// Waits for a reason to end, then stops the schedule with a grace period for active runs. A second signal stops it at once.
    /// Polls `meanwhile` until there is a reason. Never returns: the schedule's end ends the service.
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
