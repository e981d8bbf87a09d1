//! Looks whether a run has taken more than it may.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use tokio::time::Interval;

use crate::cgroup;
use crate::limits::Limits;
use crate::usage::{self, TooMany, Usage};

/// Between two looks at the processes.
const PROCESSES: Duration = Duration::from_millis(500);

/// Between two looks at the files.
const FILES: Duration = Duration::from_secs(2);

/// Descriptors that all processes of a run have open.
const MOST_OPEN: usize = 20_000;

/// Files and folders in a run's folder.
const MOST_FILES: u64 = 200_000;

/// The longest path in it that is looked at. The kernel takes 4,096 bytes.
const LONGEST_PATH: usize = 3000;

/// What holds a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// What it may take.
    pub limits: Limits,
    /// Its own folder.
    pub folder: PathBuf,
    /// Its control group; `None`: there is none, and only the watch holds it.
    pub group: Option<PathBuf>,
}

/// Waits until the processes below the calling one, or the run's folder, have more than they may. Gives a sentence that says what.
pub(crate) async fn exceeded(bounds: &Bounds) -> String {
    // A folder and its files can take long to be looked at; processes are looked at meanwhile.
    tokio::select! {
        what = processes_exceeded(bounds) => what,
        what = files_exceeded(bounds) => what,
    }
}

async fn processes_exceeded(bounds: &Bounds) -> String {
    let mut ticks = every(PROCESSES);
    loop {
        ticks.tick().await;
        // Where they cannot be listed now, they are at the next look.
        if let Ok(used) = usage::below(std::process::id(), bounds.limits.memory)
            && let Some(what) = too_many(bounds, used)
        {
            return what;
        }
    }
}

async fn files_exceeded(bounds: &Bounds) -> String {
    let mut ticks = every(FILES);
    let mut closed = BTreeSet::new();
    loop {
        ticks.tick().await;
        let (folder, most) = (bounds.folder.clone(), bounds.limits.disk);
        let look = move || match usage::open_below(std::process::id(), MOST_OPEN) {
            Ok(open) => (too_much(&folder, open.nameless, most), open.closed),
            Err(TooMany) => (Some(format!("it had more than {MOST_OPEN} descriptors open at once")), BTreeSet::new()),
        };
        // A panic in there would be one of the standard library.
        let Ok((what, closed_now)) = tokio::task::spawn_blocking(look).await else { continue };
        if let Some(what) = what.or_else(|| still_closed(&closed, &closed_now)) {
            return what;
        }
        closed = closed_now;
    }
}

/// Whether a process is closed at two looks, one after the other. At one look many an honest one is: while it becomes a program.
fn still_closed(before: &BTreeSet<(u32, u64)>, now: &BTreeSet<(u32, u64)>) -> Option<String> {
    before.intersection(now).next().map(|(pid, _)| {
        format!(
            "process {pid} of it executes a file that cannot be read, so what it takes cannot be counted; let the service's user \
             read the file"
        )
    })
}

fn every(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

fn too_many(bounds: &Bounds, used: Usage) -> Option<String> {
    let Limits { memory, processes, .. } = bounds.limits;
    let ended = bounds.group.as_deref().map_or(0, cgroup::ended_for_memory);
    if ended > 0 {
        return Some(format!(
            "it took more memory than `limits.memory` allows ({}): the kernel ended a process of it",
            ByteSize(memory)
        ));
    }
    if used.memory > memory {
        return Some(format!(
            "it took {} of memory, and `limits.memory` allows {}",
            ByteSize(used.memory),
            ByteSize(memory)
        ));
    }
    (used.threads > u64::from(processes)).then(|| {
        format!("it had {} processes and threads at once, and `limits.processes` allows {processes}", used.threads)
    })
}

/// Whether a folder, with the `bytes` that are kept without a name, holds more than `most` bytes, or more files than any run needs.
fn too_much(folder: &Path, mut bytes: u64, most: u64) -> Option<String> {
    let too_many_bytes = || {
        let most = ByteSize(most);
        format!("it kept more than `limits.disk` allows ({most}) in its own folder and in open files without a name")
    };
    if bytes > most {
        return Some(too_many_bytes());
    }
    let mut files = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if folder.as_os_str().len() > LONGEST_PATH {
            return Some("it made folders in its own folder that lie deeper than anything can reach".into());
        }
        let listed = fs::read_dir(&folder).or_else(|error| match error.kind() {
            // Closed by its mode, which would hide what is in it from us alone.
            io::ErrorKind::PermissionDenied => {
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).and_then(|()| fs::read_dir(&folder))
            }
            _ => Err(error),
        });
        // It is gone.
        let Ok(entries) = listed else { continue };
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            files += 1;
            bytes += facts.blocks() * 512;
            if bytes > most {
                return Some(too_many_bytes());
            }
            if files > MOST_FILES {
                return Some(format!("it made more than {MOST_FILES} files in its own folder"));
            }
            if facts.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_lies_there() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 100_000]).unwrap();
        // What a link leads to lies elsewhere.
        std::os::unix::fs::symlink("/usr", deep.join("usr")).unwrap();
        assert_eq!(too_much(folder.path(), 0, 1_000_000), None);
        for (nameless, most) in [(0, 50_000), (950_000, 1_000_000), (2_000_000, 1_000_000)] {
            assert!(too_much(folder.path(), nameless, most).unwrap().contains("limits.disk"));
        }
    }

    #[test]
    fn a_process_that_is_closed_for_a_moment_ends_no_run() {
        let seen = |processes: &[(u32, u64)]| processes.iter().copied().collect();
        let check = |before: &[(u32, u64)], now: &[(u32, u64)]| still_closed(&seen(before), &seen(now));
        for (before, now) in [(&[][..], &[(7, 1)][..]), (&[(7, 1)], &[]), (&[(7, 1)], &[(8, 1)]), (&[(7, 1)], &[(7, 2)])] {
            assert_eq!(check(before, now), None, "{before:?} {now:?}");
        }
        assert!(check(&[(7, 1), (8, 1)], &[(6, 1), (8, 1)]).unwrap().contains("process 8 of it"));
    }

    #[test]
    fn the_runs_own_limits_are_named() {
        let limits = Limits { memory: 10, processes: 3, disk: 1, cpus: None };
        let bounds = Bounds { limits, folder: "/".into(), group: None };
        let check = |memory, threads, words: Option<&str>| match (too_many(&bounds, Usage { memory, threads }), words) {
            (None, None) => {}
            (Some(said), Some(words)) => assert!(said.contains(words), "{said}"),
            (said, words) => panic!("{said:?}, not {words:?}"),
        };
        check(10, 3, None);
        check(11, 3, Some("limits.memory"));
        check(10, 4, Some("limits.processes"));
    }
}
