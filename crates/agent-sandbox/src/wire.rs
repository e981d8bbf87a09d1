//! How the processes of a sandbox speak with each other.
//!
//! A shell and the programs that it starts share one socket that keeps messages apart (`SOCK_SEQPACKET`); the trampoline sends
//! a private stream over it, on which its request and the answer travel. The runner and the service speak lines of JSON.

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

/// The descriptor under which a shell and its programs have the broker's socket. Shell scripts like 3 to 9 and 200 for their own
/// use, bash takes those from 10 up and those from 63 down.
pub(crate) const BROKER: i32 = 237;

/// More than any list of arguments that the kernel takes.
pub(crate) const LONGEST: usize = 6 * 1024 * 1024;

/// Most descriptors that one message may carry, by the kernel's own limit (`SCM_MAX_FD`).
const MOST_DESCRIPTORS: usize = 253;

/// What the client's shell is told when it has presented itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShellSpec {
    /// It is the real bash and nothing else, in no domain: for a session of the person's own, whose agents alone are held.
    #[serde(default)]
    pub plain: bool,
    /// The real bash.
    pub bash: PathBuf,
    /// What the shell, its builtins, filters and wrappers may reach.
    pub domain: Domain,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The trampoline, for programs that rules spell by a path.
    pub trampoline: PathBuf,
    /// Programs that rules spell by a path: `./run.sh`, `/usr/bin/git`.
    pub spelled: Vec<String>,
    /// What each of its processes may take.
    pub limits: Limits,
    /// Files that every program outside of the shell may reach, whatever its rights: places that no job can change, since
    /// launchers look for them ahead. Its other fields say what kind of program is expected first.
    pub every_program: Domain,
}

/// A program that is about to start, as the service is asked about it. Of variables what is not UTF-8 has U+FFFD in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its real arguments, its name first.
    pub argv: Vec<String>,
    /// Its real working folder, without symlinks.
    pub cwd: PathBuf,
    /// Variables that differ from the clean environment of what starts it.
    pub env: BTreeMap<String, String>,
    /// Whether the shell starts it, or something in the shell's domain; else a program that runs outside does.
    pub by_shell: bool,
    /// The subagent whose shell line it belongs to; `None`: the session's own.
    pub caller: Option<String>,
    /// The beginning of the script of the shell that it belongs to, with the client's own words around the line. Empty where the
    /// program that started it has ended, since it is not known any more.
    pub script: String,
}

/// What becomes of a program that is about to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It does not start; the trampoline says so and ends with this code.
    Deny {
        /// The exit code: 126 refused, 127 not found.
        code: u8,
        /// A sentence for standard error; none where it is empty.
        message: String,
    },
    /// It runs in the domain of what starts it: the shell's own, without any power. Not for a program that starts another.
    Here {
        /// Its file.
        program: PathBuf,
    },
    /// It runs in a domain of its own.
    Outside {
        /// Its file.
        program: PathBuf,
        /// Its whole environment.
        env: BTreeMap<String, String>,
        /// What it may reach; of files, besides [`ShellSpec::every_program`].
        domain: Box<Domain>,
        /// It takes over the umask of the line that starts it; else it has the service's.
        takes_umask: bool,
    },
}

/// A question of the runner to the service.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub id: u64,
    pub what: Asked,
}

/// What the runner asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Asked {
    /// May this program start?
    Start(Start),
    /// Whose line is this script of the client's?
    Caller(String),
    /// No question: nobody waits for the answer to the one of this number any more.
    Withdrawn(u64),
    /// No question: the run is ended, since it took more than it may. The sentence says of what.
    Exceeded(String),
}

/// The service's answer to the question of the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub id: u64,
    pub what: Said,
}

/// What the service answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    Start(Answer),
    Caller(Result<Option<String>, String>),
}

/// What the launcher is told to become. The bytes of arguments and environment come beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgramSpec {
    pub program: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Besides what the launcher has prepared.
    pub domain: Domain,
    /// The numbers of the descriptors, in the order in which they come.
    pub descriptors: Vec<i32>,
    /// `None`: the launcher's own.
    pub umask: Option<u32>,
    pub limits: Limits,
}

/// What the broker has the trampoline do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// End with this code, after this sentence where there is one.
    End(u8, String),
    /// Become this program.
    Become(PathBuf),
}

/// What a trampoline says of its program.
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

/// A path under which a socket can be bound or reached, however long its own is: the kernel takes 108 bytes. A longer one leads by
/// way of a descriptor of its folder, which is returned beside it and must stay while the path is used.
///
/// # Errors
/// When the path is too long and its folder cannot be opened.
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
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives one message with its descriptors; 0 bytes are the end.
pub(crate) fn receive_with(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok((received.bytes, rights.flatten().collect()))
}

/// Writes a length and the bytes.
pub(crate) fn write_block(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut whole = length.to_le_bytes().to_vec();
    whole.extend(bytes);
    to.write_all(&whole)
}

/// Reads what [`write_block`] wrote.
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
