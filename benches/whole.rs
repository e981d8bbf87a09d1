//! What a person waits for and what the machine pays, measured on the whole program: `cargo bench --bench whole`.
//!
//! Prints one table, for reading side by side; asserts no time. `-- --quick` leaves out 100,000 definitions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails has no result")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tempfile::TempDir;

/// How often a short command is run; the figure is the median.
const TIMES: usize = 21;
const IDLE: Duration = Duration::from_secs(20);

fn main() {
    let quick = std::env::args().any(|word| word == "--quick");
    let sizes: &[usize] = if quick { &[1_000, 10_000] } else { &[1_000, 10_000, 100_000] };
    println!("| definitions | what | measured |");
    println!("|---|---|---|");
    for &size in sizes {
        commands(size);
        service(size);
    }
    together(1_000);
}

fn line(size: usize, what: &str, measured: &str) {
    println!("| {size} | {what} | {measured} |");
}

fn commands(size: usize) {
    let bot = Bot::with(size);
    let median = |args: &[&str]| {
        let mut times: Vec<Duration> = (0..TIMES).map(|_| bot.time(args)).collect();
        times.sort();
        ms(times[TIMES / 2])
    };
    line(size, "`next`, whole process", &median(&["next"]));
    line(size, "`routine list`, whole process", &median(&["routine", "list"]));
    line(size, "`reminder add`, whole process", &median(&["reminder", "add", "-m", "Tea.", "--in", "1000h"]));
}

fn service(size: usize) {
    let bot = Bot::with(size);
    // Warm: the folder has been read once. The reminder fell due before the start.
    bot.time(&["check"]);
    bot.reminder("first", now(), "first of all");
    let (mut daemon, lines, start) = bot.start();
    let first = when_said(&lines, "first of all") - start;
    line(size, "start to the first delivery", &ms(first));

    let edited = Instant::now();
    bot.reminder("edited", now(), "second of all");
    line(size, "a file written to its delivery", &ms(when_said(&lines, "second of all") - edited));

    let before = cpu(&daemon);
    std::thread::sleep(IDLE);
    let used = cpu(&daemon) - before;
    let share = used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    line(size, "idle: processor", &format!("{share:.2} % of a core"));
    line(size, "idle: memory", &format!("{} MiB", resident_kib(&daemon) / 1024));
    end(&mut daemon);
}

/// Reminders that fall due in the same second.
fn together(size: usize) {
    let bot = Bot::with(0);
    let at = now() + TimeDelta::seconds(4);
    for n in 0..size {
        bot.reminder(&format!("r{n}"), at, "together");
    }
    let (mut daemon, lines, _) = bot.start();
    for _ in 0..size {
        when_said(&lines, "together");
    }
    let runs = bot.json(&["runs", "-n", "1000000"]);
    let mut late: Vec<i64> = runs.as_array().unwrap().iter().map(|run| run["late_ms"].as_i64().unwrap()).collect();
    late.sort_unstable();
    assert_eq!(late.len(), size);
    let (first, median, last) = (late[0], late[size / 2], late[size - 1]);
    line(
        size,
        "due in one second: lateness of the claims",
        &format!("{first} / {median} / {last} ms (first, median, last)"),
    );
    let ended: Vec<DateTime<Utc>> = runs.as_array().unwrap().iter().filter_map(|run| time(&run["ended"])).collect();
    let all = *ended.iter().max().unwrap() - at;
    line(size, "due in one second: the last one delivered after", &format!("{} ms", all.num_milliseconds()));
    end(&mut daemon);
}

struct Bot {
    _folder: TempDir,
    home: PathBuf,
}

impl Bot {
    /// Half routines, half reminders, all due far away.
    fn with(size: usize) -> Self {
        let folder = TempDir::with_prefix("ollim-bench-").unwrap();
        let home = folder.path().join("bot");
        for name in ["routines", "reminders"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let bot = Self { _folder: folder, home };
        let far = now() + TimeDelta::days(2000);
        for n in 0..size / 2 {
            let (minute, hour) = (n % 60, n / 60 % 24);
            let text = format!(
                "---\ndescription: Routine number {n}\ncron: \"{minute} {hour} 29 2 *\"\ntimezone: America/New_York\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n  - mcp__discord__ping_user\n---\nGo through the mail of account {n}.\n"
            );
            fs::write(bot.home.join(format!("routines/routine-{n}.md")), text).unwrap();
            bot.reminder(&format!("reminder-{n}"), far + TimeDelta::seconds(n.try_into().unwrap()), "Not yet.");
        }
        bot
    }

    fn reminder(&self, name: &str, at: DateTime<Utc>, body: &str) {
        let text = format!("---\nrun_at: \"{}\"\n---\n{body}\n", at.to_rfc3339());
        let path = self.home.join(format!("reminders/{name}.md"));
        let fresh = self.home.join(format!(".{name}"));
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ollim-bot"));
        command.args(args).env("OLLIM_HOME", &self.home).env("OLLIM_AGENT_CLIENT", "notify").env("TZ", "UTC");
        command.env_remove("OLLIM_RUN_TOKEN").stdin(Stdio::null());
        command
    }

    fn time(&self, args: &[&str]) -> Duration {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        let took = start.elapsed();
        assert!(output.status.success(), "{args:?}: {output:?}");
        took
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The service, its lines with the time of each, and when it was started.
    fn start(&self) -> (Child, Receiver<(Instant, String)>, Instant) {
        let start = Instant::now();
        let mut child = self.command(&["run"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        (child, lines, start)
    }
}

fn when_said(lines: &Receiver<(Instant, String)>, text: &str) -> Instant {
    loop {
        let (at, line) = lines.recv_timeout(Duration::from_secs(120)).expect("the service says it");
        if line.contains(text) {
            return at;
        }
    }
}

fn end(daemon: &mut Child) {
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

fn cpu(daemon: &Child) -> Duration {
    let schedule = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    // Nanoseconds on a processor, thread by thread: finer than the ticks of `stat`.
    let nanoseconds = |task: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(schedule.filter_map(|task| nanoseconds(task.ok()?)).sum())
}

fn resident_kib(daemon: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn time(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(value.as_str()?).ok().map(|at| at.to_utc())
}

fn now() -> DateTime<Utc> {
    ollim_bot::clock::Clock::system().now()
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
