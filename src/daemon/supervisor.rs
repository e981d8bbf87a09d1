//! Notifies a supervisor such as systemd (sd_notify(3)), if the environment names one.
//!
//! `READY=1` is sent when something could fire, and `WATCHDOG=1` only while the schedule's loop makes progress: each is
//! sent after that loop has answered. The socket is the standard library's: the crates for it support no abstract
//! sockets, or use the process's environment instead of the service's.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::settings::CurrentApp;
use crate::app::times;
use crate::clock;
use crate::schedule::{Activity, Schedule};

/// Maximum time to send to a supervisor that does not read its messages.
const SENDING: Duration = Duration::from_secs(1);
/// Maximum time between two signs of life of a service that waits.
const WAITS: Duration = Duration::from_secs(20);
/// Minimum time between two status lines.
const STATUS: Duration = Duration::from_secs(1);

/// The supervisor, if there is one. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisor {
    address: Option<Arc<SocketAddr>>,
    /// The interval within which the supervisor expects a sign of life.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the supervisor that the environment names. An unusable name is logged and means none.
    pub(super) fn of(env: &BTreeMap<String, String>) -> Self {
        let Some(name) = env.get("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Self::default() };
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None if name.starts_with('/') => SocketAddr::from_pathname(name),
            None => Err(io::Error::other("it is neither a path nor an abstract socket")),
        };
        match address {
            Ok(address) => Self { address: Some(Arc::new(address)), watchdog: watchdog(env, std::process::id()) },
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: nobody is told how the service is");
                Self::default()
            }
        }
    }

    /// Sends lines such as `READY=1`.
    pub(super) async fn notify(&self, lines: impl Into<String>) {
        let Some(address) = self.address.clone() else { return };
        let lines = lines.into();
        tracing::debug!(lines, "the supervisor is told");
        // A full queue blocks its writer.
        let sent = tokio::task::spawn_blocking(move || {
            let socket = UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(SENDING))?;
            socket.send_to_addr(lines.as_bytes(), &address)
        });
        if let Err(error) = sent.await.map_err(io::Error::other).flatten() {
            tracing::warn!(%error, "the supervisor could not be told how the service is");
        }
    }

    /// Sends `RELOADING=1` with the monotonic time, which systemd requires.
    pub(super) async fn reloading(&self) {
        self.notify(format!("RELOADING=1\nMONOTONIC_USEC={}", clock::monotonic_micros())).await;
    }

    /// Sends `READY=1`, at the start and after a reload.
    pub(super) async fn ready(&self, status: &str) {
        self.notify(format!("READY=1\nSTATUS={}", one_line(status))).await;
    }

    /// Sends `STOPPING=1` with the time that the end may take.
    pub(super) async fn stopping(&self, at_most: Duration) {
        self.notify(format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\nSTATUS=ending", at_most.as_micros())).await;
    }

    /// Shows what the start waits for, and keeps the supervisor from ending the service meanwhile. Never returns.
    pub(super) async fn waits(self, status: &'static str) {
        let every = self.watchdog.map_or(WAITS, |limit| WAITS.min(limit / 2));
        while self.address.is_some() {
            // A service that restarted itself counts as ready. One that was just started has a limit for its start.
            let extended = (every * 3).as_micros();
            self.notify(format!("WATCHDOG=1\nEXTEND_TIMEOUT_USEC={extended}\nSTATUS={status}")).await;
            tokio::time::sleep(every).await;
        }
        std::future::pending::<()>().await;
    }

    /// Sends a sign of life at half of the watchdog's interval while the schedule is alive. Never returns.
    pub(super) async fn send_heartbeats(self, schedule: Schedule) {
        if let (Some(_), Some(limit)) = (&self.address, self.watchdog) {
            while schedule.is_alive().await {
                self.notify("WATCHDOG=1").await;
                tokio::time::sleep(limit / 2).await;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Keeps the status line current. The settings of `app` determine the zone. Never returns.
    pub(super) async fn status(self, schedule: Schedule, app: CurrentApp) {
        let mut activity = schedule.activity();
        let mut last = String::new();
        while self.address.is_some() && activity.wait_for(|now| now.loaded).await.is_ok() {
            let app = app.get();
            let now = words(&activity.borrow_and_update(), app.now(), app.zone_of_records());
            if now != last {
                self.notify(format!("STATUS={now}")).await;
                last = now;
                tokio::time::sleep(STATUS).await;
            }
            if activity.changed().await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Returns `WATCHDOG_USEC` if it is meant for this process.
fn watchdog(env: &BTreeMap<String, String>, own: u32) -> Option<Duration> {
    let number = |name| env.get(name).map(|text: &String| text.parse::<u64>().ok());
    if number("WATCHDOG_PID").is_some_and(|pid| pid != Some(u64::from(own))) {
        return None;
    }
    number("WATCHDOG_USEC").flatten().filter(|limit| *limit > 0).map(Duration::from_micros)
}

fn words(activity: &Activity, now: DateTime<Utc>, zone: Tz) -> String {
    let open = match activity.active {
        0 => "nothing is going".to_owned(),
        1 => "1 job is going or waits".to_owned(),
        open => format!("{open} jobs are going or wait"),
    };
    let why = match () {
        () if activity.paused => "; paused",
        () if activity.waiting_for_login => "; the agent client is not logged in",
        () if activity.waiting_for_agent => "; there is no agent client",
        () => "",
    };
    let next = activity.next.map(|at| format!("; next {}", times::local(at, now, zone))).unwrap_or_default();
    format!("{open}{why}{next}")
}

/// Replaces line feeds, which would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DefinitionId;
    use crate::journal::{Journal, Occurrence, RunId};
    use crate::schedule::{Dispatcher, Files, Job, Launcher, Removal};

    fn env(socket: &str, watchdog: &str) -> BTreeMap<String, String> {
        [("NOTIFY_SOCKET", socket), ("WATCHDOG_USEC", watchdog)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Receives all pending messages.
    fn mail(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 4096];
        let mut all = Vec::new();
        while let Ok(length) = socket.recv(&mut buffer) {
            all.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
        all
    }

    fn listen(address: &SocketAddr) -> UnixDatagram {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    #[tokio::test]
    async fn path_and_abstract_sockets_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("ollim-test-{}", std::process::id());
        let sockets = [
            (SocketAddr::from_pathname(&path).unwrap(), path.to_str().unwrap().to_owned()),
            (SocketAddr::from_abstract_name(&name).unwrap(), format!("@{name}")),
        ];
        for (address, named) in sockets {
            let socket = listen(&address);
            let supervisor = Supervisor::of(&env(&named, "0"));
            supervisor.ready("two\nlines").await;
            supervisor.stopping(Duration::from_secs(3)).await;
            let before = clock::monotonic_micros();
            supervisor.reloading().await;
            let mail = mail(&socket);
            assert_eq!(
                mail[..2],
                ["READY=1\nSTATUS=two lines", "STOPPING=1\nEXTEND_TIMEOUT_USEC=3000000\nSTATUS=ending"]
            );
            let at: i64 = mail[2].strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().parse().unwrap();
            assert!((before..=clock::monotonic_micros()).contains(&at));
        }
    }

    #[tokio::test]
    async fn nobody_and_nonsense_are_no_supervisor() {
        for socket in ["", "relative", "vsock:2:1", "/nobody/listens/here"] {
            Supervisor::of(&env(socket, "1000000")).notify("READY=1").await;
        }
    }

    #[test]
    fn the_watchdog_of_another_process_is_not_ours() {
        let with = |pid: &str| {
            let mut env = env("@x", "3000000");
            env.insert("WATCHDOG_PID".into(), pid.into());
            watchdog(&env, 77)
        };
        assert_eq!(watchdog(&env("@x", "3000000"), 77), Some(Duration::from_secs(3)));
        assert_eq!(with("77"), Some(Duration::from_secs(3)));
        for pid in ["78", "", "none"] {
            assert_eq!(with(pid), None, "{pid:?}");
        }
        for limit in ["0", "", "-1", "soon"] {
            assert_eq!(watchdog(&env("@x", limit), 77), None, "{limit:?}");
        }
    }

    struct NoopParts;

    #[async_trait::async_trait]
    impl Launcher for NoopParts {
        async fn launch(&self, job: Job) -> crate::agent::AttemptReport {
            unreachable!("{:?}", (job.run as RunId, job.occurrence as Occurrence));
        }
    }

    #[async_trait::async_trait]
    impl Files for NoopParts {
        fn is_there(&self, _: &std::path::Path) -> bool {
            false
        }
        fn is_unchanged(&self, _: &std::path::Path, _: &str) -> bool {
            false
        }
        async fn reread(&self, _: &DefinitionId, _: &std::path::Path) {}
        async fn reread_cleaned(&self, _: Vec<(DefinitionId, std::path::PathBuf)>) {}
        fn remove(&self, _: &std::path::Path, _: &str) -> io::Result<Removal> {
            Ok(Removal::Removed)
        }
        fn move_to_failed(&self, _: &std::path::Path, _: chrono::DateTime<chrono::Utc>, _: &str) -> io::Result<bool> {
            Ok(true)
        }
    }

    /// A process whose dispatcher hangs must be restarted, even if other parts of it are alive.
    #[tokio::test(start_paused = true)]
    async fn the_watchdog_hears_of_us_only_while_the_dispatcher_goes_round() {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from_pathname(folder.path().join("notify")).unwrap();
        let socket = listen(&address);
        let supervisor = Supervisor::of(&env(address.as_pathname().unwrap().to_str().unwrap(), "10000000"));
        let clock = clock::Clock::system();
        let journal = Journal::open(&folder.path().join("journal.db"), clock.clone()).unwrap();
        let (schedule, inbox) = Schedule::channel(1);
        let dispatcher = Dispatcher::new(inbox, &clock, journal, Arc::new(NoopParts), Arc::new(NoopParts));
        let pulse = tokio::spawn(supervisor.send_heartbeats(schedule.clone()));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(mail(&socket), [""; 0], "it does not go round yet");

        let going = tokio::spawn(dispatcher.run());
        tokio::time::sleep(Duration::from_secs(22)).await;
        assert_eq!(mail(&socket), ["WATCHDOG=1"; 5], "at half of the time, from the first moment on");
        going.abort();
        assert!(going.await.unwrap_err().is_cancelled());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(mail(&socket), [""; 0], "it has ended");
        pulse.abort();
    }

    #[test]
    fn how_things_are_in_a_line() {
        let at = "2026-03-01T13:00:00Z".parse().ok();
        let now = Activity { loaded: true, active: 2, next: at, waiting_for_login: true, ..Activity::default() };
        let words = |activity| words(activity, "2026-03-01T12:00:00Z".parse().unwrap(), chrono_tz::Europe::Vienna);
        assert_eq!(
            words(&now),
            "2 jobs are going or wait; the agent client is not logged in; next Sun 1 Mar 14:00 CET"
        );
        assert_eq!(words(&Activity::default()), "nothing is going");
    }
}
