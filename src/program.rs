//! Starts the person's programs that serve the bot from outside: commands of channels, and MCP servers. Each runs in a kernel sandbox: it
//! cannot access the data folder, the agent's login or the person's keys, and writes only where its settings allow.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::{io, iter};

pub use agent_sandbox::Network;
use agent_sandbox::runner::PrespawnedRunner;
use agent_sandbox::{Domain, Launch, mounts, resolved, system, without};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::search_path;

/// Maximum number of bytes of output that are kept.
const MOST: u64 = 64 * 1024;

/// Variables of the service that such programs get: the formats of texts and times.
const LOCALE: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Paths in the person's home that no such program can read: keys and the agent's login.
const CLOSED: &[&str] = &[".claude", ".claude.json", ".config/claude", ".gnupg", ".password-store", ".ssh"];

/// The environment in which all such programs start.
#[derive(Clone, Debug)]
pub struct ProgramEnv {
    /// The program that runs the sandbox's stages.
    pub shell_binary: PathBuf,
    /// Folders in which programs are looked up.
    pub path: Vec<PathBuf>,
    /// The person's home.
    pub user_home: PathBuf,
    /// The data folder, which programs cannot access.
    pub data_folder: PathBuf,
    /// Variables of the service for the formats of texts and times.
    pub locale: Vec<(String, String)>,
}

impl ProgramEnv {
    /// Returns the variables of this environment for the formats of texts and times.
    #[must_use]
    pub fn locale(env: &BTreeMap<String, String>) -> Vec<(String, String)> {
        LOCALE.iter().filter_map(|name| Some(((*name).to_owned(), env.get(*name)?.clone()))).collect()
    }

    /// Resolves a folder of the settings: `~` is the person's home.
    fn folder(&self, folder: &Path) -> PathBuf {
        match folder.strip_prefix("~") {
            Ok(rest) => resolved(&self.user_home).join(rest),
            Err(_) => folder.to_owned(),
        }
    }
}

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name or path, and its arguments. No shell is involved.
    pub command: Vec<String>,
    /// Its own folder, in which it works and may write.
    pub own_folder: PathBuf,
    /// The files that it may read.
    pub reads: ReadScope,
    /// Folders that it may write to, besides its own.
    pub writes: Vec<PathBuf>,
    /// The sockets that it may open.
    pub network: Network,
    /// Its own variables, mostly secrets.
    pub env: BTreeMap<String, String>,
}

/// The files that a program may read and execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadScope {
    /// All of the person's files except keys, logins and the data folder.
    Everything,
    /// The system's files, programs on the search path, and these folders. Its home is its own folder.
    Only(Vec<PathBuf>),
}

/// A running process. Dropping it ends the process and its descendants.
pub struct Process {
    /// Its standard input.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
    /// The supervisor that holds the process and its descendants.
    pub runner: Child,
    /// The socket to the runner, which ends when the socket closes.
    pub socket: UnixStream,
}

/// The outcome of a process.
#[derive(Debug)]
pub struct ProcessOutcome {
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
}

impl ProcessOutcome {
    /// Returns the exit code in words.
    #[must_use]
    pub fn shown_code(&self) -> String {
        shown_code(self.code)
    }
}

/// Returns an exit code in words. The code of a program that a signal ended is 128 plus the signal.
#[must_use]
pub fn shown_code(code: Option<i32>) -> String {
    match code {
        Some(code @ 129..=192) => format!("exit code {code} (signal {})", code - 128),
        Some(code) => format!("exit code {code}"),
        None => "a signal".to_owned(),
    }
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// If there is no such program, or it cannot be started.
    pub async fn start(program: &Program, program_env: &ProgramEnv) -> io::Result<Self> {
        let (name, args) = program.command.split_first().ok_or_else(|| io::Error::other("it names no program"))?;
        let file = search_path::find(name, &program_env.path, &program_env.user_home)?;
        std::fs::create_dir_all(&program.own_folder)?;
        let launch = Launch {
            program: file,
            args: args.to_vec(),
            env: environment(program, program_env),
            work_dir: program.own_folder.clone(),
            folder: program.own_folder.clone(),
            secret: None,
            domain: Some(domain(program, program_env)),
            shell: None,
            bounds: None,
        };
        let PrespawnedRunner { child, mut socket, stdout, stderr } =
            PrespawnedRunner::start(&program_env.shell_binary).await?;
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&write, true)?;
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(write))?;
        agent_sandbox::send(&mut socket, &launch, read.into()).await?;
        Ok(Self { stdin, stdout, stderr, runner: child, socket })
    }

    /// Sends the line to the process and waits for its end.
    ///
    /// # Errors
    /// If its output cannot be read.
    pub async fn answer(self, line: Vec<u8>) -> io::Result<ProcessOutcome> {
        let Self { mut stdin, stdout, stderr, mut runner, socket } = self;
        let write = async {
            // A program may have reasons not to read its input.
            let _unread = stdin.write_all(&line).await;
            drop(stdin);
        };
        let (stdout, stderr, ()) = tokio::join!(beginning(stdout), beginning(stderr), write);
        let status = runner.wait().await?;
        drop(socket);
        Ok(ProcessOutcome { code: status.code(), stdout: stdout?, stderr: stderr? })
    }
}

async fn beginning(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut stream).take(MOST).read_to_end(&mut kept).await?;
    // Reads the rest too, so that the process does not block.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}

fn environment(program: &Program, program_env: &ProgramEnv) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let path: Vec<String> = program_env.path.iter().map(|folder| text(folder)).collect();
    let home = match program.reads {
        ReadScope::Everything => &program_env.user_home,
        ReadScope::Only(_) => &program.own_folder,
    };
    let own = [
        ("HOME".to_owned(), text(home)),
        ("PATH".to_owned(), path.join(":")),
        ("TMPDIR".to_owned(), text(&program.own_folder)),
    ];
    let given = program.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    program_env.locale.iter().cloned().chain(given).chain(own).collect()
}

fn domain(program: &Program, program_env: &ProgramEnv) -> Domain {
    let home = resolved(&program_env.user_home);
    let mut hidden = vec![resolved(&program_env.data_folder)];
    let mut read = Vec::new();
    let mut programs = vec![program_env.data_folder.join("bin")];
    match &program.reads {
        ReadScope::Everything => hidden.extend(CLOSED.iter().map(|name| resolved(&home.join(name)))),
        ReadScope::Only(folders) => {
            read.extend(folders.iter().map(|folder| program_env.folder(folder)));
            programs.extend(programs_of(&program_env.path, &home));
            hidden.push(home);
        }
    }
    let mut write = system::sinks();
    write.push(program.own_folder.clone());
    write.extend(program.writes.iter().map(|folder| program_env.folder(folder)));
    hidden.extend(mounts::other_paths(&hidden));
    let mut execute = without(&[PathBuf::from("/")], &hidden);
    execute.append(&mut programs);
    // The program may run what an installer such as npx has put into its folder.
    if matches!(program.reads, ReadScope::Only(_)) {
        execute.push(program.own_folder.clone());
    }
    let network = program.network;
    Domain { read, write, execute, network, required: false, ..Domain::default() }
}

/// Returns the program folders inside the person's home, and the libraries beside them (`X/bin` and `X/lib`).
fn programs_of(path: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let inside = path.iter().map(|folder| resolved(folder)).filter(|folder| folder.starts_with(home) && folder != home);
    inside
        .flat_map(|folder| {
            let beside = folder.parent().filter(|_| folder.ends_with("bin")).map(|parent| parent.join("lib"));
            iter::once(folder.clone()).chain(beside)
        })
        .collect()
}
