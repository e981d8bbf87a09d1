//! One life of the service: started, and ended in one way or another.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ollim_bot::failpoints::Step;
use rustix::process::{Pid, Signal, kill_process};

use crate::processes;

/// Nothing that is waited for takes a tenth of this on a machine that is not stuck.
pub const STUCK: Duration = Duration::from_secs(60);

/// How a process is started: all of the environment.
#[derive(Clone, Debug)]
pub struct Setting {
    pub binary: PathBuf,
    /// The person's home.
    pub person: PathBuf,
    /// The data folder.
    pub home: PathBuf,
    pub client: PathBuf,
}

impl Setting {
    /// `ollim-bot`, with the clock so many milliseconds ahead, to be killed at the n-th passage of a step.
    pub fn command(&self, args: &[&str], ahead: i64, fail_at: Option<(Step, u64)>) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .current_dir(&self.person)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.person)
            .env("OLLIM_HOME", &self.home)
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("OLLIM_AGENT_CLIENT", "claude")
            .env("OLLIM_CLAUDE", &self.client)
            .env("OLLIM_SHUTDOWN_GRACE", "10s")
            .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
            .env("ANTHROPIC_API_KEY", "sk-test-not-a-key")
            .env("OLLIM_CLOCK_AHEAD", ahead.to_string())
            .stdin(Stdio::null());
        if let Some((step, passage)) = fail_at {
            command.env("OLLIM_FAIL_AT", format!("{}:{passage}", step.name()));
        }
        command
    }
}

/// A running service; killed, hard, when it is dropped.
pub struct ServiceProcess {
    child: Child,
}

impl ServiceProcess {
    /// Starts it: what it shows goes to `said`, its log to the end of `log`.
    pub fn start(mut command: Command, said: &Path, log: &Path) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = command.stdout(File::create(said).unwrap()).stderr(log).spawn().unwrap();
        Self { child }
    }

    /// Its end, if it comes within so long.
    pub fn ended_within(&mut self, span: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            let left = span.checked_sub(start.elapsed())?;
            std::thread::sleep(left.min(Duration::from_millis(3)));
        }
    }

    /// Lets it live for so long, then kills it. True: it had ended by SIGKILL before, by its own hand.
    ///
    /// # Errors
    /// How it ended, where it was not a kill.
    pub fn kill_after(mut self, span: Duration) -> Result<bool, String> {
        match self.ended_within(span) {
            None => {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                Ok(false)
            }
            Some(status) if status.signal() == Some(9) => Ok(true),
            Some(status) => Err(format!("the service ended by itself: {status}")),
        }
    }

    /// The same, and its runners with their reapers: nobody is there then who ends what is below them.
    ///
    /// # Errors
    /// As [`Self::kill_after`].
    pub fn kill_with_runners_after(mut self, span: Duration) -> Result<bool, String> {
        if self.ended_within(span).is_some() {
            return self.kill_after(Duration::ZERO);
        }
        let runners = processes::runners_of(self.child.id());
        // Stopped first, so that they do not see its end. One may end by itself, and is then waited for by nobody else.
        let signal = |signal| {
            for runner in runners.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
                let _ended = kill_process(runner, signal);
            }
        };
        signal(Signal::STOP);
        let killed = self.kill_after(Duration::ZERO);
        signal(Signal::KILL);
        killed
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether it is stopped, by itself or by a signal.
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('T'))
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
