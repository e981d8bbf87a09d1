//! Live processes, read from /proc.

use std::fs;
use std::path::Path;

/// A live process, zombies included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
    pub command: String,
}

/// Returns every process whose environment, command line or working folder names `path`, except the calling process.
pub fn naming(path: &Path) -> Vec<Process> {
    let path = path.to_str().unwrap();
    all()
        .into_iter()
        .filter(|process| {
            let file = |name: &str| fs::read(format!("/proc/{}/{name}", process.pid)).unwrap_or_default();
            let folder = fs::read_link(format!("/proc/{}/cwd", process.pid)).unwrap_or_default();
            contains(&file("environ"), path) || contains(&file("cmdline"), path) || folder.starts_with(path)
        })
        .collect()
}

/// Returns the runners of a service, and their parents, the reapers.
pub fn runners_of(service: u32) -> Vec<u32> {
    let all = all();
    let is = |process: &Process, stage: &str| process.command.contains(stage);
    let reapers: Vec<u32> =
        all.iter().filter(|one| one.parent == service && is(one, " __reaper")).map(|one| one.pid).collect();
    let runners = all.iter().filter(|one| reapers.contains(&one.parent) && is(one, " __runner")).map(|one| one.pid);
    reapers.iter().copied().chain(runners).collect()
}

/// Returns the ended children that `parent` has not waited for.
pub fn zombies_of(parent: u32) -> Vec<Process> {
    all().into_iter().filter(|process| process.parent == parent && process.state == 'Z').collect()
}

/// Returns all live processes except the calling one.
pub fn all() -> Vec<Process> {
    let own = std::process::id();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // A process that ends while it is read is left out.
    pids.filter(|&pid| pid != own).filter_map(one).collect()
}

fn one(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&words).replace('\0', " ");
    Some(Process { pid, parent, state, command })
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The run's name in [`clients`] for the main session's client.
pub const MAIN: &str = "main";

/// Returns the agent clients that are alive in the data folder `home`: the run of each, and its command line in words.
/// A client has its `TMPDIR` in a run's folder and `--print` as its first argument. Wrappers around it do not count.
pub fn clients(home: &Path) -> Vec<(String, Vec<String>)> {
    let runs = format!("TMPDIR={}/state/runs/", home.to_str().unwrap());
    let client = |process: Process| {
        let words = |name: &str| -> Vec<String> {
            let bytes = fs::read(format!("/proc/{}/{name}", process.pid)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.split_terminator('\0').map(Into::into).collect()
        };
        let line = words("cmdline");
        let run = words("environ")
            .iter()
            .find_map(|variable| variable.strip_prefix(&runs)?.strip_suffix("/client").map(str::to_owned))?;
        (line.get(1).is_some_and(|word| word == "--print")).then_some((run, line))
    };
    all().into_iter().filter_map(client).collect()
}
