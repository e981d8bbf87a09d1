//! Others that do such work, measured by the same yardstick in the same run: APScheduler and the Python Agent SDK where
//! `scripts/bench` has installed them, tokio-cron-scheduler in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio_cron_scheduler::{Job, JobScheduler};

use super::Plan;
use super::bot::now;
use super::lateness::{APART, SAMPLES, words};

/// This program's own argument for the one in Rust.
pub const TOKIO_CRON_SCHEDULER: &str = "--tokio-cron-scheduler";

/// As many as the slower of them take in reasonable time.
const WAITING: usize = 10_000;

fn python() -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".bench-peers/bin/python");
    python.exists().then(|| (python, root.join("benches/peers")))
}

/// What they say of their lateness, with none waiting and with many.
pub fn lateness(_plan: &Plan) -> String {
    let mut all = Vec::new();
    for waiting in [0, WAITING] {
        let own = std::env::current_exe().unwrap();
        let said = stdout(Command::new(own).args([TOKIO_CRON_SCHEDULER, &waiting.to_string()]));
        all.push(format!("tokio-cron-scheduler, {waiting} waiting: {}", figures(&said)));
        all.push(match python() {
            None => "APScheduler: not installed".into(),
            Some((python, folder)) => {
                let apart = APART.num_milliseconds().to_string();
                let args = [waiting.to_string(), SAMPLES.to_string(), apart];
                let said = stdout(Command::new(python).arg(folder.join("apscheduler_lateness.py")).args(args));
                format!("APScheduler, {waiting} waiting: {}", figures(&said))
            }
        });
    }
    all.join("; ")
}

/// The Python Agent SDK's time for the same turn of the same client; `None`: it is not installed.
pub fn agent_sdk(client: &Path, url: &str, person: &Path) -> Option<Duration> {
    let (python, folder) = python()?;
    let mut command = Command::new(python);
    command.arg(folder.join("agent_sdk_turn.py")).arg(client).current_dir(person).env_clear();
    command.env("PATH", std::env::var_os("PATH")?).env("HOME", person).env("IS_SANDBOX", "1");
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    Some(Duration::from_secs_f64(stdout(&mut command).trim().parse().unwrap()))
}

/// How late cron's jobs begin: the cron of BusyBox, which takes a folder of its own. It reads the clock once a minute.
pub fn cron() -> String {
    let folder = tempfile::tempdir().unwrap();
    let (tabs, said) = (folder.path().join("tabs"), folder.path().join("said"));
    std::fs::create_dir(&tabs).unwrap();
    let line = format!("* * * * * /bin/bash -c '{} >>{}'\n", super::exec::LINE, said.display());
    std::fs::write(tabs.join("root"), line.repeat(10)).unwrap();
    let cron = Command::new("busybox").args(["crond", "-f", "-c"]).arg(&tabs).stderr(Stdio::null()).spawn();
    let Ok(mut cron) = cron else { return "cron (BusyBox): not installed".into() };
    // It begins at a whole minute; two of them are waited for.
    let mut late = Vec::new();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_secs(60));
    }
    let minute = |at: DateTime<Utc>| at.timestamp_millis().rem_euclid(60_000);
    let lines = std::fs::read_to_string(&said).unwrap_or_default();
    late.extend(lines.lines().map(|line| minute(super::exec::first_word(line))));
    // It may have ended.
    let _ended = cron.kill().and_then(|()| cron.wait());
    match late.is_empty() {
        true => "cron (BusyBox): ran nothing; it needs root".into(),
        false => format!("cron (BusyBox): {}", words(&mut late)),
    }
}

/// How long so many starts of bash take, one after the other.
pub fn in_turn(count: usize) -> Duration {
    let start = std::time::Instant::now();
    for _ in 0..count {
        assert!(
            Command::new("/bin/bash").args(["-c", super::exec::LINE]).stdout(Stdio::null()).status().unwrap().success()
        );
    }
    start.elapsed()
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Milliseconds, one a line.
fn figures(said: &str) -> String {
    let mut late: Vec<i64> = said.lines().map(|line| line.trim().parse().unwrap()).collect();
    let missing = SAMPLES - late.len();
    let missing = if missing > 0 { format!("; {missing} never came") } else { String::new() };
    format!("{}{missing}", words(&mut late))
}

/// Fires one-shots of tokio-cron-scheduler and prints how late each was.
pub fn tokio_cron_scheduler(waiting: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let late: Arc<Mutex<Vec<i64>>> = Arc::default();
    runtime.block_on(async {
        let scheduler = JobScheduler::new().await.unwrap();
        scheduler.start().await.unwrap();
        for _ in 0..waiting {
            let job = Job::new_one_shot(Duration::from_secs(100_000), |_, _| {}).unwrap();
            scheduler.add(job).await.unwrap();
        }
        let mut at: DateTime<Utc> = now() + TimeDelta::seconds(10);
        for _ in 0..SAMPLES {
            let (late, due) = (Arc::clone(&late), at);
            let ahead = (at - now()).to_std().unwrap();
            let job = Job::new_one_shot(ahead, move |_, _| {
                late.lock().unwrap().push((now() - due).num_milliseconds());
            });
            scheduler.add(job.unwrap()).await.unwrap();
            at += APART;
        }
        // Whatever has not come by then does not come.
        let rest = (at - now()).to_std().unwrap_or_default();
        tokio::time::sleep(rest + Duration::from_secs(5)).await;
    });
    for late in late.lock().unwrap().iter() {
        println!("{late}");
    }
    runtime.shutdown_background();
}
