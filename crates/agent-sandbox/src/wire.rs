//! The protocols between the processes of a sandbox.
//!
//! A shell and its descendants share one socket that preserves message boundaries (`SOCK_SEQPACKET`). The trampoline sends a private
//! stream over it, which carries its request and the answer. The runner and the service exchange lines of JSON.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::limits::Limits;

/// The number of the broker's socket in a shell and its programs. Shell scripts often use 3 to 9 and 200 themselves, and bash uses
/// those from 10 up and from 63 down.
pub(crate) const BROKER: i32 = 237;

/// Maximum length of a block, in bytes: more than the kernel accepts as arguments.
pub(crate) const LONGEST: usize = 6 * 1024 * 1024;

/// Maximum number of descriptors in one message, the kernel's own limit (`SCM_MAX_FD`).
pub(crate) const MAX_DESCRIPTORS: usize = 253;

/// The answer to a client's shell that has presented itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShellSpec {
    /// Whether the shell is plain bash without a domain: in a session of the person's own, only agents are sandboxed.
    #[serde(default)]
    pub plain: bool,
    /// Variables of the client that are not for a plain shell: it has them as `env` has them, or not at all.
    #[serde(default)]
    pub of_client: Vec<String>,
    /// Path of the real bash.
    pub bash: PathBuf,
    /// The domain of the shell, its builtins, filters and wrappers.
    pub domain: Domain,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Path of the trampoline, for programs that rules spell by a path.
    pub trampoline: PathBuf,
    /// Programs that rules spell by a path: `./run.sh`, `/usr/bin/git`.
    pub spelled: Vec<String>,
    /// The limits of each process.
    pub limits: Limits,
    /// Files that every program outside of the shell may reach, whatever its rights. They must be places that no job can change, since
    /// launchers resolve them ahead. The other fields describe the kind of program that is expected first.
    pub every_program: Domain,
}

/// A program that is about to start, as sent to the service. In variables U+FFFD replaces text that is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The real arguments, starting with the program's name.
    pub argv: Vec<String>,
    /// The real working folder, without symlinks.
    pub cwd: PathBuf,
    /// Variables that differ from the clean environment of the starting process.
    pub env: BTreeMap<String, String>,
    /// Whether the shell or a process in its domain starts the program; otherwise a program outside does.
    pub by_shell: bool,
    /// The subagent of the shell's line, or `None` for the session itself.
    pub caller: Option<String>,
    /// The beginning of the shell's script, which contains the line within the client's own text. Empty if the starting program has ended,
    /// since the script is then unknown.
    pub script: String,
}

/// The decision on a program that is about to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The program does not start. The trampoline prints the message and ends with the code.
    Deny {
        /// The exit code: 126 refused, 127 not found.
        code: u8,
        /// A sentence for standard error; empty for none.
        message: String,
    },
    /// The program runs in the shell's own domain, without any power. Not for programs that start others.
    Here {
        /// The executable file.
        program: PathBuf,
    },
    /// The program runs in its own domain.
    Outside {
        /// The executable file.
        program: PathBuf,
        /// The whole environment.
        env: BTreeMap<String, String>,
        /// The domain. Its files are granted in addition to [`ShellSpec::every_program`].
        domain: Box<Domain>,
        /// Whether the program takes over the umask of its line; otherwise it has the service's.
        takes_umask: bool,
        /// A folder for the program and what it starts. It is made when the program starts. It is removed when the program has ended and no
        /// process that it has started holds the broker's socket.
        own_folder: Option<PathBuf>,
    },
}

/// A question of the runner to the service.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub id: u64,
    pub what: QuestionBody,
}

/// The content of a message from the runner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum QuestionBody {
    /// Asks whether a program may start.
    Start(Start),
    /// Asks to which agent a script of the client's belongs.
    Caller(String),
    /// Notifies that nobody waits for the answer to the question with this number any more.
    Withdrawn(u64),
    /// Notifies that the run is ended because it exceeded a limit. The sentence names the limit.
    Exceeded(String),
}

/// The service's answer to the question with the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub id: u64,
    pub what: ReplyBody,
}

/// The line, among the answers, with which the service lets the run's own shell begin.
pub(crate) const BEGIN: &str = "begin";

/// The content of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ReplyBody {
    Start(Answer),
    Caller(Result<Option<String>, String>),
}

/// The program for a launcher. The bytes of arguments and environment follow separately.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgramSpec {
    pub program: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Rights in addition to those that the launcher has prepared.
    pub domain: Domain,
    /// The numbers of the descriptors, in the order in which they are sent.
    pub descriptors: Vec<i32>,
    /// The umask, or `None` for the launcher's own.
    pub umask: Option<u32>,
    pub limits: Limits,
}

/// The broker's instruction to a trampoline.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// End with this code, after printing this sentence unless it is empty.
    End(u8, String),
    /// Become this program.
    Become(PathBuf),
}

/// A trampoline's description of its program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub descriptors: Vec<i32>,
    pub umask: u32,
}

impl Request {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_all(&mut out, self.argv.iter().map(|word| word.as_encoded_bytes()));
        put_all(
            &mut out,
            self.env.iter().flat_map(|(name, value)| [name.as_encoded_bytes(), value.as_encoded_bytes()]),
        );
        let numbers: Vec<[u8; 4]> = self.descriptors.iter().map(|number| number.to_le_bytes()).collect();
        put_all(&mut out, numbers.iter().map(|number| number.as_slice()));
        out.extend(self.umask.to_le_bytes());
        out
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let words = |list: Vec<Vec<u8>>| list.into_iter().map(OsString::from_vec).collect::<Vec<_>>();
        let argv = words(take_all(&mut bytes)?);
        let mut flat = words(take_all(&mut bytes)?).into_iter();
        let mut env = Vec::new();
        while let Some(name) = flat.next() {
            env.push((name, flat.next()?));
        }
        let number = |bytes: Vec<u8>| Some(i32::from_le_bytes(bytes.try_into().ok()?));
        let descriptors = take_all(&mut bytes)?.into_iter().map(number).collect::<Option<_>>()?;
        let umask = u32::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { argv, env, descriptors, umask })
    }
}

fn put_all<'a>(out: &mut Vec<u8>, list: impl Iterator<Item = &'a [u8]> + Clone) {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    out.extend(length(list.clone().count()));
    for item in list {
        out.extend(length(item.len()));
        out.extend(item);
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?)).ok()
}

fn take_all(bytes: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
    let count = take_number(bytes)?;
    let mut list = Vec::new();
    for _ in 0..count {
        let length = take_number(bytes)?;
        list.push(take(bytes, length)?.to_vec());
    }
    Some(list)
}

/// Returns a path for binding or connecting a socket. The kernel accepts only 108 bytes. A longer path is replaced by one through a
/// descriptor of its folder, which is returned too and must stay open while the path is used.
///
/// # Errors
/// If the path is too long and its folder cannot be opened.
pub fn reachable(socket: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if socket.as_os_str().len() < 100 {
        return Ok((socket.to_owned(), None));
    }
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((path, Some(folder)))
}

/// Sends one message with descriptors.
pub(crate) fn send_with(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives one message with its descriptors. A length of 0 means the end.
pub(crate) fn receive_with(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok((received.bytes, rights.flatten().collect()))
}

/// Writes the length as four bytes, then the bytes.
pub(crate) fn write_block(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut whole = length.to_le_bytes().to_vec();
    whole.extend(bytes);
    to.write_all(&whole)
}

/// Reads a block that [`write_block`] wrote.
pub(crate) fn read_block(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_as_it_was() {
        let request = Request {
            argv: vec!["git".into(), OsString::from_vec(vec![0xff, b'x']), "".into()],
            env: vec![("A".into(), "b=c\n".into()), ("E".into(), "".into())],
            descriptors: vec![0, 1, 2, 63],
            umask: 0o22,
        };
        let bytes = request.to_bytes();
        assert_eq!(Request::from_bytes(&bytes), Some(request));
        for end in 0..bytes.len() {
            assert_eq!(Request::from_bytes(&bytes[..end]), None, "{end}");
        }
        assert_eq!(Request::from_bytes(&[0xff; 64]), None);
    }
}
