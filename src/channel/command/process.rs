//! A channel's process in its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use agent_sandbox::runner::Started;
use agent_sandbox::{Domain, Launch, Network, resolved, system, without};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout};

use super::{Surroundings, find};
use crate::config::CommandChannel;

/// So much of what it writes is kept.
const MOST: u64 = 64 * 1024;

/// What no such program reads: the person's keys and the agent's login.
const CLOSED: &[&str] = &[".claude", ".claude.json", ".config/claude", ".gnupg", ".password-store", ".ssh"];

/// A process that is there. Dropped, it ends, with all that it started.
pub(super) struct Process {
    pub stdin: pipe::Sender,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    pub runner: Child,
    /// The runner ends when this closes.
    pub socket: UnixStream,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; `None`: it was killed.
    pub code: Option<i32>,
    /// The beginning of what it wrote to standard output.
    pub stdout: Vec<u8>,
    /// The same of standard error.
    pub stderr: Vec<u8>,
}

impl Ended {
    pub(super) fn shown_code(&self) -> String {
        self.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"))
    }
}

impl Process {
    pub(super) async fn start(settings: &CommandChannel, surroundings: &Surroundings) -> io::Result<Self> {
        let (name, args) = settings.command.split_first().ok_or_else(|| io::Error::other("it names no program"))?;
        let program = find(name, &surroundings.path, &surroundings.user_home)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no program `{name}` on PATH")))?;
        std::fs::create_dir_all(&surroundings.own_folder)?;
        let launch = Launch {
            program,
            args: args.to_vec(),
            env: environment(surroundings),
            work_dir: surroundings.own_folder.clone(),
            secret: None,
            domain: Some(domain(settings, surroundings)),
            shell: None,
            bounds: None,
        };
        let Started { child, mut socket, stdout, stderr } = Started::new(&surroundings.shell_binary)?;
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&write, true)?;
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(write))?;
        agent_sandbox::send(&mut socket, &launch, read.into()).await?;
        Ok(Self { stdin, stdout, stderr, runner: child, socket })
    }

    /// Hands it the line and waits for its end.
    pub(super) async fn answer(self, line: Vec<u8>) -> io::Result<Ended> {
        let Self { mut stdin, stdout, stderr, mut runner, socket } = self;
        let write = async {
            // One that does not read what it is handed may have its reasons.
            let _unread = stdin.write_all(&line).await;
            drop(stdin);
        };
        let (stdout, stderr, ()) = tokio::join!(beginning(stdout), beginning(stderr), write);
        let status = runner.wait().await?;
        drop(socket);
        Ok(Ended { code: status.code(), stdout: stdout?, stderr: stderr? })
    }
}

async fn beginning(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut stream).take(MOST).read_to_end(&mut kept).await?;
    // The rest is read too, so that it does not wait for a reader.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}

fn environment(surroundings: &Surroundings) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let path: Vec<String> = surroundings.path.iter().map(|folder| text(folder)).collect();
    let own = [
        ("HOME".to_owned(), text(&surroundings.user_home)),
        ("PATH".to_owned(), path.join(":")),
        ("TMPDIR".to_owned(), text(&surroundings.own_folder)),
    ];
    surroundings.locale.iter().cloned().chain(own).collect()
}

fn domain(settings: &CommandChannel, surroundings: &Surroundings) -> Domain {
    let home = resolved(&surroundings.user_home);
    let mut hidden = vec![resolved(&surroundings.data_folder)];
    hidden.extend(CLOSED.iter().map(|name| resolved(&home.join(name))));
    let mut write = system::sinks();
    write.push(surroundings.own_folder.clone());
    write.extend(settings.writes.iter().map(|folder| match folder.strip_prefix("~") {
        Ok(rest) => home.join(rest),
        Err(_) => folder.clone(),
    }));
    let own_commands = surroundings.data_folder.join("bin");
    let mut execute = without(&[PathBuf::from("/")], &hidden);
    execute.push(own_commands);
    Domain { read: Vec::new(), write, execute, network: Network::All, required: false, ..Domain::default() }
}
