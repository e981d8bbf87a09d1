//! Measures what the processes of a run use: memory, threads, and the files that only they can reach.
//!
//! Source: proc(5), <https://docs.kernel.org/filesystems/proc.html>.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::tree;

/// Memory in bytes, and number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) memory: u64,
    pub(crate) threads: u64,
}

/// Returns the usage of all processes below `root`, with the memory of `root` itself, which jobs may fill too. Shared memory is counted
/// once only if the plain sum exceeds `most`, since the exact count takes time.
///
/// # Errors
/// If processes cannot be listed.
pub(crate) fn below(root: u32, most: u64, most_threads: u64) -> io::Result<Usage> {
    let all = tree::numbers_below(root)?;
    let threads = all.iter().map(|(_, threads)| threads).sum();
    // There may be more with each moment, and reading their memory takes long.
    if threads > most_threads {
        return Ok(Usage { memory: 0, threads });
    }
    let sum = |of: fn(u32) -> u64| all.iter().map(|(pid, _)| of(*pid)).sum::<u64>() + of(root);
    let memory = match sum(resident) {
        memory if memory > most => sum(proportional),
        memory => memory,
    };
    Ok(Usage { memory, threads })
}

/// The process's page tables. Reading unused pages costs no other memory.
const TABLES: &str = "VmPTE:";

/// Returns a process's memory outside of named files, with shared memory in full. Returns 0 if the process has ended.
fn resident(pid: u32) -> u64 {
    kilobytes(&format!("/proc/{pid}/status"), &["RssAnon:", "RssShmem:", TABLES]).unwrap_or(0)
}

/// Returns the same, but only the process's share of shared memory.
fn proportional(pid: u32) -> u64 {
    let part = kilobytes(&format!("/proc/{pid}/smaps_rollup"), &["Pss_Anon:", "Pss_Shmem:"]);
    let tables = || kilobytes(&format!("/proc/{pid}/status"), &[TABLES]).unwrap_or(0);
    part.map_or_else(|_| resident(pid), |part| part + tables())
}

/// Returns the sum of these lines of a file, in bytes.
fn kilobytes(file: &str, names: &[&str]) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    let fields = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next().filter(|name| names.contains(name))?;
        words.next()?.parse::<u64>().ok()
    });
    Ok(fields.sum::<u64>() * 1024)
}

/// The open files of a run's processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenFiles {
    /// Total size of files that have lost their name, or never had one (memfd_create(2)), in bytes.
    pub(crate) nameless: u64,
    /// Processes that cannot be inspected, by pid and start: those that execute an unreadable file, and for a moment every process
    /// that becomes another program.
    pub(crate) closed: BTreeSet<(u32, u64)>,
}

/// The error of more descriptors than can be checked in good time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyDescriptors;

/// Returns the open files of the processes below `root`. `most`: the maximum number of descriptors.
///
/// # Errors
/// [`TooManyDescriptors`].
pub(crate) fn open_below(root: u32, most: usize) -> Result<OpenFiles, TooManyDescriptors> {
    let mut seen = BTreeSet::new();
    let (mut found, mut descriptors) = (OpenFiles::default(), 0);
    for (pid, _) in tree::numbers_below(root).unwrap_or_default() {
        let open = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(open) => open,
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    found.closed.extend(tree::start_of(pid).map(|start| (pid, start)));
                }
                // Otherwise the process has ended.
                continue;
            }
        };
        for descriptor in open.flatten() {
            descriptors += 1;
            if descriptors > most {
                return Err(TooManyDescriptors);
            }
            if let Ok(file) = fs::metadata(descriptor.path())
                && file.is_file()
                && file.nlink() == 0
                && seen.insert((file.dev(), file.ino()))
            {
                found.nameless += file.blocks() * 512;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    /// Starts a shell that runs `script`, prints a line when done and waits. Calls `look` with its pid.
    fn while_it_waits(script: &str, look: impl Fn(u32)) {
        let script = format!("({script}; echo; sleep 60); exit");
        let mut child = Command::new("/bin/bash").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        look(child.id());
        let _ = tree::kill_below(child.id());
        let _ = child.kill();
        child.wait().unwrap();
    }

    #[test]
    fn a_removed_file_counts_as_long_as_it_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let script = format!("exec 5>{0} 6>&5; head -c 3M /dev/zero >&5; rm {0}", file.display());
        while_it_waits(&script, |root| {
            assert_eq!(open_below(root, 2), Err(TooManyDescriptors));
            let bytes = open_below(root, 1000).unwrap().nameless;
            assert!((3 << 20..6 << 20).contains(&bytes), "{bytes}");
        });
    }

    #[test]
    fn memory_that_is_shared_counts_once() {
        let script = "x=$(head -c 30M /dev/zero | tr '\\0' x); (sleep 60; : $x) & (sleep 60; : $x) & sleep 0.2";
        while_it_waits(script, |root| {
            let (about, exact) =
                (below(root, u64::MAX, u64::MAX).unwrap().memory, below(root, 0, u64::MAX).unwrap().memory);
            assert!(about > 80 << 20, "{about}");
            assert!((30 << 20..about - (30 << 20)).contains(&exact), "{exact} of {about}");
        });
    }

    #[test]
    fn the_memory_of_the_root_counts() {
        let script = "x=$(head -c 30M /dev/zero | tr '\\0' x); echo; sleep 60; : $x";
        let mut root = Command::new("/bin/bash").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        root.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let memory = below(root.id(), u64::MAX, u64::MAX).unwrap().memory;
        let _ = tree::kill_below(root.id());
        let _ = root.kill();
        root.wait().unwrap();
        assert!(memory > 30 << 20, "{memory}");
    }

    #[test]
    fn a_process_that_nobody_waits_for_takes_a_number() {
        while_it_waits("for i in {1..20}; do sleep 0.2 & done; echo; exec sleep 60", |root| {
            let going = || {
                tree::numbers_below(root).unwrap().into_iter().filter(|(pid, _)| tree::start_of(*pid).is_some()).count()
            };
            while going() > 1 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let threads = below(root, u64::MAX, u64::MAX).unwrap().threads;
            assert!(threads > 20, "{threads}");
        });
    }
}
