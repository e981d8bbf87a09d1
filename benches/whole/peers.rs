//! Peers, measured by the same yardstick in the same run: APScheduler and the Python Agent SDK where
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

/// Argument with which this program runs tokio-cron-scheduler.
pub const TOKIO_CRON_SCHEDULER: &str = "--tokio-cron-scheduler";

/// Number of waiting jobs that the slower peer takes in reasonable time.
const WAITING: usize = 10_000;

fn python() -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".bench-peers/bin/python");
    python.exists().then(|| (python, root.join("benches/peers")))
}

/// Returns the peers' lateness, with none waiting and with many.
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

/// Returns the Python Agent SDK's time for the same turn of the same client; `None`: it is not installed.
pub fn agent_sdk(client: &Path, url: &str, person: &Path) -> Option<Duration> {
    let (python, folder) = python()?;
    let mut command = Command::new(python);
    command.arg(folder.join("agent_sdk_turn.py")).arg(client).current_dir(person).env_clear();
    command.env("PATH", std::env::var_os("PATH")?).env("HOME", person).env("IS_SANDBOX", "1");
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    Some(Duration::from_secs_f64(stdout(&mut command).trim().parse().unwrap()))
}

/// Returns graphile-worker's time for this many jobs on this many hosts, and for one job.
pub fn graphile_worker(url: &str, hosts: usize, jobs: usize) -> Option<[String; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".bench-peers-node");
    let program = folder.join("claims.mjs");
    if !program.exists() {
        return None;
    }
    let mut node = Command::new("node");
    node.arg(program).arg(url).args([hosts.to_string(), jobs.to_string(), "300".to_owned()]);
    let said = stdout(node.current_dir(folder));
    let mut words = said.split_whitespace();
    let (all, p50, p99) = (words.next()?, words.next()?, words.next()?);
    Some([format!("graphile-worker: {all} s"), format!("graphile-worker, until it begins: p50 {p50} ms, p99 {p99} ms")])
}

/// Returns the lateness of commands that cron and systemd start at the same moment.
pub fn timers(count: usize) -> String {
    [cron(count), systemd(count)].join("; ")
}

/// Measures the cron of BusyBox, which takes a folder of its own. It reads the clock once a minute.
fn cron(count: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (tabs, said) = (folder.path().join("tabs"), folder.path().join("said"));
    std::fs::create_dir(&tabs).unwrap();
    let line = format!("* * * * * /bin/bash -c '{} >>{}'\n", super::exec::LINE, said.display());
    std::fs::write(tabs.join("root"), line.repeat(count)).unwrap();
    let cron = Command::new("busybox").args(["crond", "-f", "-c"]).arg(&tabs).stderr(Stdio::null()).spawn();
    let Ok(mut cron) = cron else { return "cron (BusyBox): not installed".into() };
    // cron starts commands at a whole minute.
    let late = said_after(&said, count, |at| at.timestamp_millis().rem_euclid(60_000));
    // The process may have ended.
    let _ended = cron.kill().and_then(|()| cron.wait());
    late.map_or_else(
        || "cron (BusyBox): did not run them; it needs root".into(),
        |mut late| format!("cron (BusyBox): {}", words(&mut late)),
    )
}

/// Measures timers of a systemd of its own, as exact as possible (`AccuracySec=1us`).
fn systemd(count: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    // It has to be up, and have its timers.
    let at = now() + TimeDelta::seconds(10);
    let calendar = at.format("%Y-%m-%d %H:%M:%S%.6f UTC").to_string();
    // systemd replaces variables, too.
    let line = format!("{} >>{}", super::exec::LINE.replace('$', "$$"), said.display());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/systemd_timers.sh");
    let mut namespaces = Command::new("unshare");
    namespaces.args(["--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]).arg(script);
    namespaces.args([&calendar, &count.to_string(), &line]).stderr(Stdio::null());
    let Ok(mut manager) = namespaces.spawn() else { return "systemd: not installed".into() };
    let late = said_after(&said, count, |one| (one - at).num_milliseconds());
    // The process may have ended.
    let _ended = manager.kill().and_then(|()| manager.wait());
    late.map_or_else(
        || "systemd: did not run them; it needs root".into(),
        |mut late| format!("systemd: {}", words(&mut late)),
    )
}

/// Waits until `count` commands have printed their first word into a file. Returns how late each was.
fn said_after(said: &Path, count: usize, late: impl Fn(DateTime<Utc>) -> i64) -> Option<Vec<i64>> {
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_secs(150) {
        let lines = std::fs::read_to_string(said).unwrap_or_default();
        if lines.lines().count() >= count {
            return Some(lines.lines().take(count).map(|line| late(super::exec::first_word(line))).collect());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}

/// Measures `count` starts of bash, one after the other.
pub fn in_turn(count: usize) -> Duration {
    let start = std::time::Instant::now();
    for _ in 0..count {
        assert!(
            Command::new("/bin/bash").args(["-c", super::exec::LINE]).stdout(Stdio::null()).status().unwrap().success()
        );
    }
    start.elapsed()
}

/// Measures loads of a page in a real browser with nothing cached; `None`: the browser or its driver is not installed.
pub fn load(args: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (browser, folder) = (root.join(".browser"), root.join(".bench-peers-kuma"));
    let program = folder.join("load.mjs");
    if !browser.join("chromium").exists() || !program.exists() {
        return None;
    }
    let said = stdout(Command::new("node").arg(program).args(args).env("OLLIM_BROWSER", browser).current_dir(folder));
    let [first, painted, complete, weight, requests] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{said:?}")
    };
    Some(format!("{first}, {painted}, {complete} ms; {weight} KB in {requests}"))
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Formats the lateness in `said`: milliseconds, one a line.
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
        // A job that has not fired by then never fires.
        let rest = (at - now()).to_std().unwrap_or_default();
        tokio::time::sleep(rest + Duration::from_secs(5)).await;
    });
    for late in late.lock().unwrap().iter() {
        println!("{late}");
    }
    runtime.shutdown_background();
}
