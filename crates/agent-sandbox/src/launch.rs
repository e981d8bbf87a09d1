//! The launch of a client, and its transfer: over the socket that is the runner's standard input, and from there over
//! the one that is the exec stage's.
//!
//! One line of JSON is sent with one file descriptor, the read end of the client's standard input. So no secret is in an argument
//! or in a stage's environment, and no other process ever inherits a descriptor: the service has many threads and never makes
//! one inheritable. The runner's socket stays open for as long as the service wants the client to live. The runner asks about
//! programs on it ([`Start`]).

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::domain::Domain;
use crate::mark::Mark;
use crate::shell;
use crate::watch::Bounds;
use crate::wire::{self, LONGEST, ShellSpec};

/// A client to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The executable file.
    pub program: PathBuf,
    /// The arguments, without the program's name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The working folder.
    pub work_dir: PathBuf,
    /// The run's own folder. Its path identifies the run's processes when no runner holds them any more ([`crate::tree::end_run`]).
    pub folder: PathBuf,
    /// A secret that is passed by a descriptor, so that it reaches neither an environment nor a file.
    pub secret: Option<Secret>,
    /// The client's domain, or `None` for all rights of the service.
    pub domain: Option<Domain>,
    /// The shell for the client, or `None` if it has none.
    pub shell: Option<ShellService>,
    /// The limits of the run, or `None` for those of the service.
    pub bounds: Option<Bounds>,
}

impl Launch {
    /// Puts the run's mark on the calling process and its descendants.
    pub(crate) fn mark(&self) {
        Mark::of(&self.folder).set();
    }

    /// Returns whether the program is the run's own shell, without a client.
    pub(crate) fn is_line(&self) -> bool {
        self.shell.is_some() && self.program == shell::link_in(&self.folder)
    }

    /// Returns whether a client started for this launch can serve `other`: equal in everything except the domains, none of which
    /// grants more.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let without_domains = |launch: &Self| {
            let mut launch = launch.clone();
            launch.domains().into_iter().for_each(|domain| *domain = Domain::default());
            launch
        };
        let (mut own, mut others) = (self.clone(), other.clone());
        without_domains(self) == without_domains(other)
            && own.domains().iter().zip(others.domains()).all(|(own, other)| own.is_within(other))
    }

    fn domains(&mut self) -> Vec<&mut Domain> {
        let specs =
            self.shell.iter_mut().flat_map(|shell| iter::once(&mut shell.spec).chain(shell.agents.values_mut()));
        let of_shells = specs.flat_map(|spec| [&mut spec.domain, &mut spec.every_program]);
        self.domain.iter_mut().chain(of_shells).collect()
    }
}

/// The socket for a client's shell, and the shell's rights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShellService {
    /// Path of the broker's socket. The runner creates it in an existing folder.
    pub socket: PathBuf,
    /// The token that identifies the run on the socket.
    pub token: String,
    /// The rights of the shell.
    pub spec: ShellSpec,
    /// The rights of the shell in lines of these subagents.
    pub agents: BTreeMap<String, ShellSpec>,
}

/// A text that the client reads from a descriptor.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// Name of the variable that tells the client the descriptor's number.
    pub variable: String,
    /// The secret text.
    pub value: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// Sends a launch with the client's standard input.
///
/// # Errors
/// If the runner has ended, or the system refuses.
pub async fn send(socket: &mut UnixStream, launch: &Launch, stdin: OwnedFd) -> io::Result<()> {
    let mut line = serde_json::to_vec(launch)?;
    line.push(b'\n');
    let sent = loop {
        socket.writable().await?;
        let tried = socket.try_io(Interest::WRITABLE, || send_first(&*socket, &line, &stdin));
        match tried {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            tried => break tried?,
        }
    };
    // The runner's copy is now the only one, so this end notices when the client closes it.
    drop(stdin);
    socket.write_all(&line[sent..]).await
}

/// Forwards the message that [`receive`] returned.
///
/// # Errors
/// If the exec stage has ended, or the system refuses.
pub(crate) fn forward(socket: &mut BlockingStream, line: &[u8], stdin: OwnedFd) -> io::Result<()> {
    let sent = send_first(&*socket, line, &stdin)?;
    drop(stdin);
    socket.write_all(&line[sent..])
}

fn send_first(socket: impl AsFd, line: &[u8], stdin: &OwnedFd) -> io::Result<usize> {
    wire::send_with(socket, line, &[stdin.as_fd()])
}

/// A received launch.
pub(crate) struct ReceivedLaunch {
    /// The line, for [`read`].
    pub line: Vec<u8>,
    /// The client's standard input.
    pub stdin: OwnedFd,
    /// What arrived behind the line.
    pub rest: Vec<u8>,
}

/// Receives the message of [`send`] or [`forward`].
///
/// # Errors
/// If the sender has ended, or the message is malformed.
pub(crate) fn receive(socket: &mut BlockingStream) -> io::Result<ReceivedLaunch> {
    let mut line = vec![0; 64 * 1024];
    let (length, descriptors) = wire::receive_with(&*socket, &mut line)?;
    let stdin = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| {
        let what = "the message that names the client came without its standard input";
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    let [stdin] = stdin;
    line.truncate(length);
    let end = read_line(socket, &mut line)?;
    let rest = line.split_off(end);
    Ok(ReceivedLaunch { line, stdin, rest })
}

/// # Errors
/// If the line is not a launch.
pub(crate) fn read(line: &[u8]) -> io::Result<Launch> {
    Ok(serde_json::from_slice(line)?)
}

/// Reads until `bytes` has a whole line. Returns its end.
fn read_line(socket: &mut BlockingStream, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 64 * 1024];
    let mut searched = 0;
    loop {
        if let Some(at) = bytes[searched..].iter().position(|byte| *byte == b'\n') {
            return Ok(searched + at + 1);
        }
        searched = bytes.len();
        let read = socket.read(&mut chunk)?;
        if read == 0 || bytes.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the message that names the client is cut off"));
        }
        bytes.extend_from_slice(&chunk[..read]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn launch(args: Vec<String>) -> Launch {
        let secret = Secret { variable: "V".into(), value: "hush".into() };
        Launch {
            program: "/bin/true".into(),
            args,
            env: BTreeMap::from([("A".into(), "b\nc".into())]),
            work_dir: "/".into(),
            folder: "/nowhere".into(),
            secret: Some(secret),
            domain: None,
            shell: None,
            bounds: None,
        }
    }

    async fn there_and_back(args: Vec<String>) {
        let (ours, mut theirs) = BlockingStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = UnixStream::from_std(ours).unwrap();
        // Through the runner, as in a real launch.
        let (mut from, mut to) = BlockingStream::pair().unwrap();
        let receiving = tokio::task::spawn_blocking(move || receive(&mut to).unwrap());
        let handing_on = tokio::task::spawn_blocking(move || {
            let ReceivedLaunch { line, stdin, mut rest } = receive(&mut theirs).unwrap();
            forward(&mut from, &line, stdin).unwrap();
            theirs.read_to_end(&mut rest).unwrap();
            rest
        });
        let (reader, mut writer) = std::io::pipe().unwrap();
        send(&mut ours, &launch(args.clone()), reader.into()).await.unwrap();
        // It may arrive with the launch.
        ours.write_all(b"begin\n").await.unwrap();
        drop(ours);
        assert_eq!(handing_on.await.unwrap(), b"begin\n");
        let ReceivedLaunch { line, stdin, rest } = receiving.await.unwrap();
        assert!(rest.is_empty());
        let got = read(&line).unwrap();
        assert_eq!((got.args, got.env["A"].as_str(), got.secret.unwrap().value.as_str()), (args, "b\nc", "hush"));
        writer.write_all(b"words").unwrap();
        drop(writer);
        let mut text = String::new();
        std::fs::File::from(stdin).read_to_string(&mut text).unwrap();
        assert_eq!(text, "words");
    }

    #[tokio::test]
    async fn a_launch_arrives_whole_with_its_descriptor() {
        there_and_back(vec!["--tools".into(), String::new()]).await;
        // Far more than a socket buffers.
        there_and_back(vec!["long ".repeat(300_000)]).await;
    }

    #[test]
    fn a_launch_without_a_descriptor_or_an_end_is_refused() {
        for sent in [&b"{}\n"[..], b"{", b""] {
            let (mut ours, mut theirs) = BlockingStream::pair().unwrap();
            ours.write_all(sent).unwrap();
            drop(ours);
            assert!(receive(&mut theirs).is_err(), "{sent:?}");
        }
        assert!(read(b"{}\n").is_err());
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert!(!format!("{:?}", launch(vec![])).contains("hush"));
    }
}
