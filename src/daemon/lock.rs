//! One service per data folder: a lock that the kernel releases when the process ends, for any reason.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::Pid;

use crate::home::Home;

/// Maximum time that the lock of a killed service may outlive it. A child that it was just starting holds the file too until
/// it execs.
const LINGERS: Duration = Duration::from_secs(2);

/// Reasons why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another service holds the lock.
    #[error("the service is already running for {} (pid {pid})", home.display())]
    Taken {
        /// The data folder.
        home: PathBuf,
        /// The pid of the other service, as written in the lock file.
        pid: String,
    },
    /// The original bot runs on the folder.
    #[error("the original ollim-bot is running on {} (pid {pid})", home.display())]
    Original {
        /// The data folder.
        home: PathBuf,
        /// Its pid.
        pid: i32,
        /// The file that contains the pid, relative to the data folder.
        file: &'static str,
    },
    /// The lock file was deleted or replaced while the service ran.
    #[error("{} was deleted or replaced while the service ran, so the service ended", path.display())]
    Lost {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Exclusive use of the data folder until this is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Unlocks explicitly: a child that is just being started holds the file too until it execs, so closing it is not enough.
    fn drop(&mut self) {
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(%error, "cannot unlock the data folder");
        }
    }
}

impl Lock {
    /// Locks the data folder. `state/` must exist.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(home: &Home) -> Result<Self, LockError> {
        original(home)?;
        let path = home.lock();
        let failed = |source: io::Error| LockError::Io { path: path.clone(), source };
        // Not truncated: before the lock is taken, the pid in the file is another process's.
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = match kept(&path).map_err(failed)? {
            Some(file) => file,
            None => open().map_err(failed)?,
        };
        let until = Instant::now() + LINGERS;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let pid = holder(&mut file);
            // After this process has started itself anew, its own pid is in the file, and a command may look at the lock.
            let is_another = pid != std::process::id().to_string();
            if Instant::now() >= until || (is_another && is_alive(&pid)) {
                return Err(LockError::Taken { home: home.root().to_owned(), pid });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // A command that reads the file meanwhile sees a pid at every moment: the first line is written at once.
        let line = format!("{}\n", std::process::id());
        file.rewind()
            .and_then(|()| file.write_all(line.as_bytes()))
            .and_then(|()| file.set_len(line.len() as u64))
            .map_err(failed)?;
        Ok(Self { file })
    }

    /// Returns the lock as the standard input of the program that this process executes next, so that nobody else can
    /// take it in between. That program's [`take`](Self::take) finds it there.
    ///
    /// # Errors
    /// Fails if the process has too many open files.
    pub fn as_stdin(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }

    /// Returns whether the lock file was deleted or replaced since it was taken. A file that was moved with its folder
    /// is not lost.
    #[must_use]
    pub fn is_lost(&self, home: &Home) -> bool {
        let Ok(ours) = self.file.metadata() else { return false };
        ours.nlink() == 0 || fs::metadata(home.lock()).is_ok_and(|there| identity(&there) != identity(&ours))
    }

    /// Returns whether the lock file is in the data folder: neither lost nor moved away.
    #[must_use]
    pub fn is_in_place(&self, home: &Home) -> bool {
        let Ok(ours) = self.file.metadata() else { return false };
        fs::metadata(home.lock()).is_ok_and(|there| identity(&there) == identity(&ours))
    }
}

/// Returns the lock that this process held when it executed itself anew. See [`Lock::as_stdin`].
fn kept(path: &Path) -> io::Result<Option<File>> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if !fs::metadata(path).is_ok_and(|lock| stdin.metadata().is_ok_and(|stdin| identity(&stdin) == identity(&lock))) {
        return Ok(None);
    }
    // The programs that this process starts must not hold the lock.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(Some(stdin))
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns the pid of the living process that holds the lock of a data folder; `None` if none does.
pub(super) fn holder_of(home: &Home) -> Option<String> {
    let mut file = File::open(home.lock()).ok()?;
    let held = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    (held == Err(rustix::io::Errno::WOULDBLOCK)).then(|| holder(&mut file)).filter(|pid| is_alive(pid))
}

/// Returns the pid in the lock file if that process is suspended (`kill -STOP`, or Ctrl-Z), so that it answers nothing.
pub(super) fn suspended(home: &Home) -> Option<String> {
    let pid = holder(&mut File::open(home.lock()).ok()?);
    state(&pid).is_some_and(|state| matches!(state, 'T' | 't')).then_some(pid)
}

/// Returns whether the process in the lock file is alive. A zombie is not, as it holds no lock.
fn is_alive(pid: &str) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the letter of a process's state.
fn state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.parse::<u32>().ok()?)).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(32).read_to_string(&mut text));
    let pid = text.lines().next().unwrap_or_default().trim();
    if read.is_ok() && !pid.is_empty() { pid.to_owned() } else { "unknown".to_owned() }
}

/// The pid files of the original bot's versions.
const ORIGINALS: [&str; 2] = ["bot.pid", "state/bot.pid"];

/// Fails if the original bot runs, which would write to the same files.
fn original(home: &Home) -> Result<(), LockError> {
    for file in ORIGINALS {
        let Ok(text) = std::fs::read_to_string(home.root().join(file)) else { continue };
        let Ok(number) = text.trim().parse::<i32>() else { continue };
        // Zero and below name groups of processes, not one.
        let Some(pid) = Some(number).filter(|number| *number > 0).and_then(Pid::from_raw) else { continue };
        // Another user's process cannot be signalled, but exists.
        if let Ok(()) | Err(rustix::io::Errno::PERM) = rustix::process::test_kill_process(pid) {
            return Err(LockError::Original { home: home.root().to_owned(), pid: number, file });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::create_dir(home.state()).unwrap();
        (folder, home)
    }

    #[test]
    fn one_at_a_time_and_the_second_names_the_first() {
        let (_folder, home) = home();
        let first = Lock::take(&home).unwrap();
        let error = Lock::take(&home).unwrap_err().to_string();
        assert!(error.contains(&format!("(pid {})", std::process::id())), "{error}");
        drop(first);
        Lock::take(&home).unwrap();
    }

    #[test]
    fn a_longer_pid_of_an_earlier_service_leaves_nothing_behind() {
        let (_folder, home) = home();
        std::fs::write(home.lock(), "99999999999999\n").unwrap();
        let _lock = Lock::take(&home).unwrap();
        assert_eq!(std::fs::read_to_string(home.lock()).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_lock_that_outlives_its_killed_holder_is_waited_for() {
        let (_folder, home) = home();
        // The child holds the lock like one between fork and exec. The file names its ended parent.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        std::fs::write(home.lock(), format!("{}\n", ended.id())).unwrap();
        let mut child = std::process::Command::new("flock")
            .arg(home.lock())
            .args(["sh", "-c", "echo held; sleep 0.3"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut held = [0; 4];
        child.stdout.take().unwrap().read_exact(&mut held).unwrap();
        let _lock = Lock::take(&home).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_deleted_or_replaced_lock_is_lost_and_a_moved_one_is_not() {
        let (_folder, home) = home();
        let lock = Lock::take(&home).unwrap();
        assert!(!lock.is_lost(&home) && lock.is_in_place(&home));
        let away = home.root().join("away");
        fs::rename(home.state(), &away).unwrap();
        assert!(!lock.is_lost(&home) && !lock.is_in_place(&home));
        fs::create_dir(home.state()).unwrap();
        let other = Lock::take(&home).unwrap();
        assert!(lock.is_lost(&home) && !other.is_lost(&home));
        fs::remove_dir_all(home.state()).unwrap();
        assert!(other.is_lost(&home));
    }

    #[test]
    fn the_original_bot_keeps_its_folder_while_it_lives() {
        let (_folder, home) = home();
        for name in ORIGINALS {
            let file = home.root().join(name);
            std::fs::write(&file, std::process::id().to_string()).unwrap();
            assert!(matches!(Lock::take(&home), Err(LockError::Original { file, .. }) if file == name));
            // A process that has ended and was reaped.
            let mut ended = std::process::Command::new("true").spawn().unwrap();
            let pid = ended.id();
            ended.wait().unwrap();
            for text in [pid.to_string(), "0".into(), "-1".into(), "no number".into()] {
                std::fs::write(&file, text).unwrap();
                drop(Lock::take(&home).unwrap());
            }
        }
    }
}
