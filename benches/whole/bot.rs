//! A data folder full of definitions, and the real program on it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use serde_json::Value;
use tempfile::TempDir;

pub struct Bot {
    folder: TempDir,
    pub home: PathBuf,
    env: Vec<(String, String)>,
}

impl Bot {
    /// Creates half routines, each with its own cron expression, and half reminders, all due far in the future.
    pub fn with(size: usize) -> Self {
        let folder = TempDir::with_prefix("ollim-bench-").unwrap();
        let home = folder.path().join("bot");
        for name in ["routines", "reminders", "bin"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        // The routines may use this command. Without it each of them would have a warning.
        let command = home.join("bin/ollim-bot-gmail");
        fs::write(&command, "#!/bin/sh\necho no mail\n").unwrap();
        fs::set_permissions(command, fs::Permissions::from_mode(0o755)).unwrap();
        let bot = Self { folder, home, env: vec![("OLLIM_AGENT_CLIENT".into(), "notify".into())] };
        let far = now() + TimeDelta::days(2000);
        for n in 0..size / 2 {
            let (minute, hour, day) = (n % 60, n / 60 % 24, n / 1440 % 28 + 1);
            // Neither this month nor the next.
            let month = (now().month0() as usize + 2 + n / 40_320 % 9) % 12 + 1;
            let text = format!(
                "---\ndescription: Routine number {n}\ncron: \"{minute} {hour} {day} {month} *\"\ntimezone: America/New_York\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n  - mcp__discord__ping_user\n---\nGo through the mail of account {n}.\n"
            );
            fs::write(bot.home.join(format!("routines/routine-{n}.md")), text).unwrap();
            bot.reminder(&format!("reminder-{n}"), far + TimeDelta::seconds(n.try_into().unwrap()), "Not yet.");
        }
        // All files are on the disk before a measurement begins.
        rustix::fs::sync();
        bot
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
        self
    }

    /// Returns the folder above the data folder.
    pub fn person(&self) -> &Path {
        self.folder.path()
    }

    pub fn reminder(&self, name: &str, at: DateTime<Utc>, body: &str) {
        self.reminder_with(name, at, "", body);
    }

    pub fn reminder_with(&self, name: &str, at: DateTime<Utc>, fields: &str, body: &str) {
        let text = format!("---\nrun_at: \"{}\"\n{fields}---\n{body}\n", at.to_rfc3339());
        let path = self.home.join(format!("reminders/{name}.md"));
        let fresh = self.home.join(format!(".{name}"));
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ollim-bot"));
        command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.person());
        command.env("OLLIM_HOME", &self.home).env("TZ", "UTC").env("LANG", "C.UTF-8").env("IS_SANDBOX", "1");
        command.envs(self.env.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command
    }

    pub fn time(&self, args: &[&str]) -> Duration {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        let took = start.elapsed();
        assert!(output.status.success(), "{args:?}: {output:?}");
        took
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).arg("--json").output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Starts the service and waits until a job could fire.
    pub fn start(&self) -> Service {
        let path = self.person().join("notify");
        // The file of an earlier service on this folder.
        let _absent = fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        let began = Instant::now();
        let mut command = self.command(&["run"]);
        command.env("NOTIFY_SOCKET", &path).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let mut service = Service { child, lines, ready: Duration::ZERO, cpu_at_ready: Duration::ZERO };
        let mut buffer = [0; 4096];
        socket.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        loop {
            let length = socket.recv(&mut buffer).expect("the service becomes ready");
            if buffer[..length].starts_with(b"READY=1") {
                break;
            }
        }
        service.ready = began.elapsed();
        service.cpu_at_ready = service.cpu();
        // The service goes on telling how it is.
        let process = PathBuf::from(format!("/proc/{}", service.child.id()));
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        std::thread::spawn(move || while socket.recv(&mut buffer).is_ok() || process.exists() {});
        service
    }
}

/// The running service; killed when dropped.
pub struct Service {
    child: Child,
    lines: Receiver<(Instant, String)>,
    /// Time from the start until a job could fire.
    pub ready: Duration,
    /// Processor time until then.
    pub cpu_at_ready: Duration,
}

impl Service {
    /// Returns the time at which the service prints `text`.
    pub fn when_said(&self, text: &str) -> Instant {
        self.said(text).0
    }

    /// Waits for the next line with `text` and returns it.
    pub fn line(&self, text: &str) -> String {
        self.said(text).1
    }

    fn said(&self, text: &str) -> (Instant, String) {
        loop {
            let (at, line) = self.lines.recv_timeout(Duration::from_secs(300)).expect("the service says it");
            if line.contains(text) {
                return (at, line);
            }
        }
    }

    /// Ends the service as systemd does, and waits for its end.
    pub fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the processor time so far, including ended threads, in steps of 10 ms.
    pub fn cpu(&self) -> Duration {
        cpu_of(self.child.id(), 2).unwrap()
    }

    /// Returns the processor time of each thread so far, in nanoseconds.
    pub fn cpu_of_threads(&self) -> BTreeMap<PathBuf, Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().map(|task| task.unwrap().path());
        let read: BTreeMap<_, _> = tasks.filter_map(|task| Some((task.clone(), time_of_thread(&task)?))).collect();
        assert!(!read.is_empty(), "this kernel does not tell the processor time of a thread");
        read
    }

    /// Returns the processor time of its threads since `before`, without threads that have ended meanwhile.
    pub fn cpu_since(&self, before: &BTreeMap<PathBuf, Duration>) -> Duration {
        let taken =
            |(task, now): (PathBuf, Duration)| now.saturating_sub(before.get(&task).copied().unwrap_or_default());
        self.cpu_of_threads().into_iter().map(taken).sum()
    }

    /// Returns the memory in MiB: current and peak.
    pub fn memory(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mib = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
        };
        (mib("VmRSS:"), mib("VmHWM:"))
    }
}

/// Returns the processor time of a process so far: the first `parts` of user, system, and the same of ended children. `None`: it has ended.
pub fn cpu_of(pid: u32, parts: usize) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(parts);
    let ticks: u64 = fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // Linux counts 100 ticks a second for every program (time(7)).
    Some(Duration::from_millis(ticks * 10))
}

/// Returns the processor time of a thread. Kernels have one of these files, or both (`CONFIG_SCHED_INFO`, `CONFIG_SCHED_DEBUG`).
fn time_of_thread(task: &Path) -> Option<Duration> {
    if let Ok(text) = fs::read_to_string(task.join("schedstat")) {
        return text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos);
    }
    let text = fs::read_to_string(task.join("sched")).ok()?;
    let line = text.lines().find(|line| line.starts_with("se.sum_exec_runtime"))?;
    let milliseconds: f64 = line.rsplit_once(' ')?.1.parse().ok()?;
    Some(Duration::from_secs_f64(milliseconds / 1000.0))
}

impl Drop for Service {
    fn drop(&mut self) {
        // The service may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn time(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(value.as_str()?).ok().map(|at| at.to_utc())
}

pub fn now() -> DateTime<Utc> {
    ollim_bot::clock::Clock::system().now()
}
