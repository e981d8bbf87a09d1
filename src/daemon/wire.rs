//! What is said on the control socket: two JSON lines from the caller, one back.
//!
//! The first line is the token, so that a caller without one can make the service read no more than
//! [`HELLO_LIMIT`] bytes; the second is the request. A connection serves one request.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::policy::SpawnTools;
use crate::run::spawn::SpawnRequest;

/// The variable that holds a run's token in its fork's environment.
pub const RUN_TOKEN: &str = "OLLIM_RUN_TOKEN";

/// Longest first line, in bytes.
pub const HELLO_LIMIT: usize = 256;
/// Longest request or reply, in bytes: twice what Linux lets a single argument be, many times over.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// Who is asking.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The person's token or a live run's.
    pub token: String,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A whole command, on behalf of a run.
    Execute {
        /// What was typed after `ollim-bot`.
        argv: Vec<String>,
    },
    /// How the service is doing.
    Status,
    /// Run a job now.
    Fire {
        /// The definition.
        id: String,
    },
    /// End a run.
    CancelRun {
        /// The run.
        run: String,
    },
    /// Start nothing more.
    Pause,
    /// Start jobs again: all, or a routine that was paused after failures.
    Resume {
        /// The routine.
        id: Option<String>,
    },
    /// Start an agent.
    Spawn(SpawnRequest),
    /// Give a child session its tool policy: once, and never the main session.
    SessionsPatch {
        /// The session.
        session: String,
        /// What it may use.
        #[serde(rename = "spawnToolPolicy")]
        spawn_tool_policy: SpawnTools,
    },
    /// Set how many messages background jobs may still send.
    SetBudget {
        /// At most a full budget.
        left: u32,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A command was executed: what it printed.
    Output {
        /// Data.
        stdout: String,
        /// Everything else.
        stderr: String,
        /// The exit code.
        exit: u8,
    },
    /// The run may start this command of the person's own, in its own process.
    Exec {
        /// The command's name without `ollim-bot-`.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// [`Request::Status`].
    Status(Box<ServiceStatus>),
    /// [`Request::Fire`]: the run that was started.
    Fired {
        /// Its id.
        run: String,
    },
    /// [`Request::Spawn`]: the session that was started.
    Spawned {
        /// Its id.
        session: String,
    },
    /// It was done; the sentence says what.
    Done(String),
    /// It was not done; the sentence says why.
    Refused(String),
}

/// What only the running service knows of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its process.
    pub pid: u32,
    /// Since when it runs, RFC 3339.
    pub since: String,
    /// `claude` or `notify`, and why.
    pub client: ClientStatus,
    /// `console`.
    pub channel: String,
    /// Whether the kernel wall stands.
    pub sandbox: Sandbox,
    /// Since when it starts nothing because the person said so, RFC 3339.
    pub paused: Option<String>,
    /// Since when jobs wait for the client to be logged in, RFC 3339.
    pub waiting_for_login: Option<String>,
}

/// Which agent client does the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// `claude` or `notify`.
    pub name: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// Why this one: `configured`, `not logged in`, `not found`.
    pub why: String,
    /// The versions that were tested, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<String>,
    /// What is to be said of this one, where it is none between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// The kernel wall around forks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether it is put around background jobs.
    pub enforced: bool,
    /// What it is made of, or why there is none.
    pub detail: String,
}

/// The longest path that a socket's address holds on Linux, without its end mark.
const ADDRESS_LIMIT: usize = 107;

/// A path under which the socket can be bound or reached, however long its real one is; what it holds open must
/// live until then.
///
/// # Errors
/// When the path is too long and its folder cannot be opened.
pub fn reachable(socket: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{Mode, OFlags};
    if socket.as_os_str().as_bytes().len() <= ADDRESS_LIMIT {
        return Ok((socket.to_owned(), None));
    }
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename));
    };
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name), Some(folder)))
}
