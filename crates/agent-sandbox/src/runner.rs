//! The runner: a process between the service and a client, which sees to it that nothing outlives a run, and decides with the
//! service which programs the client's shell may start ([`crate::broker`]).
//!
//! It is a child subreaper, so whatever the client starts stays below it, double-forked or in a session of its own.
//! When the client ends, or the socket to the service closes (the service ended, however hard), or someone
//! sends it SIGTERM, SIGINT or SIGHUP, it stops and kills everything below it until nothing remains, then ends with the
//! client's own exit code. The client runs in a domain, the runner does not, so the client cannot signal it.
//!
//! It knows nothing of the client's protocol: standard output and error are handed through by inheritance.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, WaitOptions, WaitStatus, getpid, set_child_subreaper, set_dumpable_behavior, wait,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::broker::Broker;
use crate::exec_stage::CANNOT_START;
use crate::launch::Launch;
use crate::watch::{self, Bounds};
use crate::wire::{Asked, Question};
use crate::{cgroup, descriptors, exec_stage, launch, limits, tree};

/// The hidden command that enters it.
pub(crate) const COMMAND: &str = "__fork";

/// How long after a pass the next one looks for what was forked meanwhile, at most.
const BETWEEN_PASSES: Duration = Duration::from_millis(20);

/// How long the service may take to hear why the run is ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A runner that waits to receive what to start ([`crate::send`]). It ends when its socket closes.
#[derive(Debug)]
pub struct Started {
    /// Its process.
    pub child: tokio::process::Child,
    /// Over which it receives that, and asks.
    pub socket: tokio::net::UnixStream,
    /// The client's standard output.
    pub stdout: ChildStdout,
    /// The client's standard error, and the runner's.
    pub stderr: ChildStderr,
}

impl Started {
    /// Starts `program`, which enters [`crate::stage`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn new(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut child = tokio::process::Command::new(program)
            .arg(COMMAND)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Keys of a terminal go to the service, which ends its clients itself.
            .process_group(0)
            .spawn()?;
        let piped = || io::Error::other("the runner has no pipes");
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let stderr = child.stderr.take().ok_or_else(piped)?;
        ours.set_nonblocking(true)?;
        Ok(Self { socket: tokio::net::UnixStream::from_std(ours)?, child, stdout, stderr })
    }
}

/// Runs the runner to its end.
pub(crate) fn run() -> ExitCode {
    match hold() {
        Ok(code) => code,
        Err(error) => {
            // Standard error is the client's: the service shows its end with the failure.
            let _ = writeln!(io::stderr(), "ollim-bot: the runner of the agent client failed: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}

fn hold() -> io::Result<ExitCode> {
    descriptors::close_inherited()?;
    set_child_subreaper(Some(getpid()))?;
    // It holds the login for a moment; nobody of the same user may look into it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limits::many_descriptors();
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (client, stage) = start()?;
    let launch = launch::receive(&mut socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(socket, client, stage, launch));
    // With everything that it held for programs: the descriptors are closed before their processes are looked for. What stays is
    // standard input, our half of the socket: closed, it would tell the service that all is over.
    drop(runtime);
    let last = end_all(client)?;
    Ok(exit_code(ended?.or(last)))
}

/// Hands the launch on and serves the client's shells until the client ends, which gives its status, or is to be ended.
async fn serve(
    socket: UnixStream,
    client: u32,
    mut stage: UnixStream,
    (line, stdin): (Vec<u8>, OwnedFd),
) -> io::Result<Option<WaitStatus>> {
    let mut children = signal(SignalKind::child())?;
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .into_iter()
        .map(signal)
        .collect::<io::Result<Vec<Signal>>>()?;
    socket.set_nonblocking(true)?;
    let (from_service, to_service) = tokio::net::UnixStream::from_std(socket)?.into_split();
    let (questions, asked) = mpsc::unbounded_channel();
    let last_question = questions.clone();
    let asking = tokio::spawn(ask(to_service, asked));
    let launch = launch::read(&line)?;
    launch.mark();
    let Launch { shell, bounds, .. } = launch;
    if let Some(group) = bounds.as_ref().and_then(|bounds| bounds.group.as_deref()) {
        // The client inherits it.
        cgroup::enter(group, &[0, client])?;
    }
    // Before the client is there, whose shell may be the first thing that it starts.
    let broker = shell.map(|shell| Broker::start(shell, questions)).transpose()?;
    // One that has ended shows by its exit code.
    let _ = launch::hand_on(&mut stage, &line, stdin);
    drop(line);
    stage.set_nonblocking(true)?;
    let stage = tokio::net::UnixStream::from_std(stage)?;
    let mut answers = BufReader::new(from_service).lines();
    let exceeded = exceeded(bounds.as_ref(), stage);
    tokio::pin!(exceeded);
    loop {
        // It may have ended before its end could be signalled.
        let reaped = reap(client, broker.as_deref())?;
        if let Some(status) = reaped.of_client {
            return Ok(Some(status));
        }
        tokio::select! {
            _ = children.recv() => {}
            () = tokio::task::yield_now(), if reaped.may_go_on => {}
            line = answers.next_line() => match (line, &broker) {
                (Ok(Some(line)), Some(broker)) => broker.answered(line.as_bytes()),
                (Ok(Some(_)), None) => {}
                // The service has closed its end.
                (Ok(None) | Err(_), _) => return Ok(None),
            },
            () = any(&mut signals) => return Ok(None),
            what = &mut exceeded => {
                // Before anybody is told: it may take more with each moment. What is missed now is found when all is ended.
                let _ = tree::kill_below(std::process::id());
                let mut line = serde_json::to_vec(&Question { id: 0, what: Asked::Exceeded(what) })?;
                line.push(b'\n');
                // A service that has ended, or reads nothing, receives nothing.
                let _ = last_question.send(line);
                let _ = last_question.send(Vec::new());
                let _ = tokio::time::timeout(LAST_WORDS, asking).await;
                return Ok(None);
            }
        }
    }
}

/// Kills everything below the calling process until nothing is left. The client's status, if it was among it.
fn end_all(client: u32) -> io::Result<Option<WaitStatus>> {
    let mut of_client = None;
    let mut pause = Duration::from_millis(1);
    loop {
        // All that have ended, before it is looked for others: a look passes over each of them.
        for _ in 0..BEFORE_A_LOOK {
            let reaped = reap(client, None)?;
            of_client = of_client.or(reaped.of_client);
            if reaped.none_left {
                return Ok(of_client);
            }
            if !reaped.may_go_on {
                break;
            }
        }
        if let Err(error) = tree::kill_below(std::process::id()) {
            // As in `run`. It is tried again: nothing may be left.
            let _ = writeln!(io::stderr(), "ollim-bot: the processes of the agent client cannot be found: {error}");
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(BETWEEN_PASSES);
    }
}

/// Waits until the run takes more than it may. `stage`: the exec stage's socket. It lets nobody look at it until it is the
/// client, when the socket closes; before that there is nothing else to look at.
async fn exceeded(bounds: Option<&Bounds>, mut stage: tokio::net::UnixStream) -> String {
    let Some(bounds) = bounds else { return std::future::pending().await };
    // Nothing is ever sent. An error is the end of it, too.
    let _ = stage.read(&mut [0]).await;
    drop(stage);
    watch::exceeded(bounds).await
}

/// Sends the broker's questions to the service, until an empty one.
async fn ask(mut to_service: OwnedWriteHalf, mut asked: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = asked.recv().await.filter(|line| !line.is_empty()) {
        // A service that has ended is seen where its answers are read.
        if to_service.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Starts the exec stage, which becomes the client, and gives the socket over which it receives which. It is the only
/// child that is ever started from here; it is there before the service says what it wants, so that its start costs a run no time.
fn start() -> io::Result<(u32, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.args(exec_stage::arguments()).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    // Its end is seen by `reap`.
    Ok((command.spawn()?.id(), ours))
}

struct Reaped {
    of_client: Option<WaitStatus>,
    none_left: bool,
    /// There may be more that have ended.
    may_go_on: bool,
}

/// So many children at a time: they can end as fast as they are waited for, and nothing else would be looked at.
const AT_A_TIME: usize = 64;

/// So often before it is looked for more that is to be ended: as often as there can be processes.
const BEFORE_A_LOOK: usize = (1 << 22) / AT_A_TIME;

/// Takes note of children that have ended.
fn reap(client: u32, broker: Option<&Broker>) -> io::Result<Reaped> {
    let mut reaped = Reaped { of_client: None, none_left: false, may_go_on: false };
    for _ in 0..AT_A_TIME {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let pid = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default();
                if pid == client {
                    reaped.of_client = Some(status);
                } else if let Some(broker) = broker {
                    broker.ended(pid, status);
                }
            }
            Ok(None) => return Ok(reaped),
            Err(rustix::io::Errno::CHILD) => {
                reaped.none_left = true;
                return Ok(reaped);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    reaped.may_go_on = true;
    Ok(reaped)
}

async fn any(signals: &mut [Signal]) {
    let waiting = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures::future::select_all(waiting).await;
}

/// As shells tell it: the client's own code, or 128 and the signal that ended it.
fn exit_code(ended: Option<WaitStatus>) -> ExitCode {
    let Some(status) = ended else { return ExitCode::from(128 + 9) };
    let status = ExitStatus::from_raw(status.as_raw());
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
