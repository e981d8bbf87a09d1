//! The runner: a process between the service and a client. It ensures that no process outlives a run, and decides with the
//! service which programs the client's shell may start ([`crate::broker`]).
//!
//! It is a child subreaper, so every process that the client starts stays below it, even double-forked or in a new session.
//! When the client ends, or the socket to the service closes (the service ended, for any reason), or the runner receives
//! SIGTERM, SIGINT or SIGHUP, it stops and kills everything below it until nothing remains. Then it ends with the
//! client's exit code. The client runs in a domain and the runner does not, so the client cannot signal it. If something else kills the
//! runner, its parent does the same ([`crate::reaper`]).
//!
//! Its main thread does nothing that a process of the run could make it wait for. What waits has a thread of its own: the broker, and the
//! watch of the limits.
//!
//! It knows nothing of the client's protocol: the client inherits standard output and error.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{DumpableBehavior, WaitStatus, getpid, set_child_subreaper, set_dumpable_behavior};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::broker::ListeningBroker;
use crate::exec_stage::CANNOT_START;
use crate::launch::{Launch, ReceivedLaunch};
use crate::watch::Watch;
use crate::wire::{BEGIN, Question, QuestionBody};
use crate::{cgroup, children, descriptors, exec_stage, launch, limits, reaper, start, tree};

/// The hidden command of the runner.
pub(crate) const COMMAND: &str = "__runner";

/// Time in which a runner ends its descendants. It takes milliseconds.
const ENDS: Duration = Duration::from_secs(10);

/// Number of looks in vain after which nothing is left below a runner, and the pause between two. One look can miss processes that replace
/// each other quickly.
const LOOKS_IN_VAIN: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Maximum wait for the service to receive why the run is ended.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A runner that waits for its launch ([`crate::send`]). It ends when its socket closes.
#[derive(Debug)]
pub struct PrespawnedRunner {
    /// The parent of the runner, which ends when the runner has ended and nothing is left below it.
    pub child: tokio::process::Child,
    /// The socket on which the runner receives its launch and asks its questions.
    pub socket: tokio::net::UnixStream,
    /// The client's standard output.
    pub stdout: ChildStdout,
    /// The standard error of the client and the runner.
    pub stderr: ChildStderr,
}

impl PrespawnedRunner {
    /// Starts `program`, which enters [`crate::stage`]. Waits up to a minute while the machine has no process to spare.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub async fn start(program: &Path) -> io::Result<Self> {
        start::patiently(|| Self::start_now(program)).await
    }

    /// Returns whether the runner is alive.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn start_now(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut child = tokio::process::Command::new(program)
            .arg(reaper::COMMAND)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate group: keys of a terminal go to the service, which ends its clients itself.
            .process_group(0)
            .spawn()?;
        let piped = || io::Error::other("the runner has no pipes");
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let stderr = child.stderr.take().ok_or_else(piped)?;
        ours.set_nonblocking(true)?;
        Ok(Self { socket: tokio::net::UnixStream::from_std(ours)?, child, stdout, stderr })
    }
}

/// Waits for the end of a runner whose socket is closed ([`PrespawnedRunner::child`]). Kills it and everything below it if it does not end
/// within ten seconds. Returns when nothing is left.
///
/// # Errors
/// If the runner cannot be waited for.
pub async fn wait_or_kill(child: &mut tokio::process::Child) -> io::Result<ExitStatus> {
    if let Ok(ended) = tokio::time::timeout(ENDS, child.wait()).await {
        return ended;
    }
    tracing::warn!(pid = child.id(), "the runner of a run hangs; its processes are killed from here");
    let mut in_vain = 0;
    while in_vain < LOOKS_IN_VAIN
        && let Some(pid) = child.id()
    {
        match tokio::task::spawn_blocking(move || tree::kill_below(pid)).await? {
            Ok(0) => in_vain += 1,
            Ok(_) => in_vain = 0,
            Err(error) => {
                tracing::error!(%error, "the processes of a run cannot be found");
                in_vain += 1;
            }
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    // It has ended with what was below it, unless it hangs itself.
    child.kill().await?;
    child.wait().await
}

/// Returns the command line of the calling reaper's runner.
pub(crate) fn arguments() -> [OsString; 2] {
    [COMMAND.into(), std::process::id().to_string().into()]
}

/// Runs the runner until its end. `args`: those of [`arguments`] without the command's own name.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = args.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    match hold(&parent) {
        Ok(code) => code,
        Err(error) => {
            // Standard error is shared with the client, and the service shows its last lines with the failure.
            let _ = writeln!(io::stderr(), "ollim-bot: the runner of the agent client failed: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}

fn hold(parent: &str) -> io::Result<ExitCode> {
    descriptors::close_inherited()?;
    set_child_subreaper(Some(getpid()))?;
    // The process holds the login for a moment, so no process of the same user may inspect it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limits::many_descriptors();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (client, stage) = start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(parent, socket, client, stage));
    // Standard input, this end of the socket, stays open: closing it would signal to the service that all is over.
    let last = children::end_all(client)?;
    Ok(children::exit_code(ended?.or(last)))
}

/// Receives the launch, forwards it, and serves the client's shells. Returns the client's status when it ends, or `None` when the run is to
/// be ended.
async fn serve(parent: &str, socket: UnixStream, client: u32, mut stage: UnixStream) -> io::Result<Option<WaitStatus>> {
    let mut children = signal(SignalKind::child())?;
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .into_iter()
        .map(signal)
        .collect::<io::Result<Vec<Signal>>>()?;
    // From here on the signal is caught, and ends the run in order.
    if !start::ends_with_parent(parent, rustix::process::Signal::TERM)? {
        return Ok(None);
    }
    let received = tokio::select! {
        received = receive(socket) => received?,
        () = any(&mut signals) => return Ok(None),
    };
    let (socket, ReceivedLaunch { line, stdin, rest }) = received;
    let (from_service, to_service) = socket.into_split();
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
    // The broker must exist before the client, which may start its shell at once.
    let broker = shell.map(|shell| ListeningBroker::start(shell, questions)).transpose()?;
    let watch = bounds.as_ref().map(Watch::start).transpose()?;
    // If the exec stage has ended, its exit code shows that.
    let _ = launch::forward(&mut stage, &line, stdin);
    drop(line);
    stage.set_nonblocking(true)?;
    // Closing this half would end the stage.
    let (stage, mut to_stage) = tokio::net::UnixStream::from_std(stage)?.into_split();
    let mut answers = BufReader::new(io::Cursor::new(rest).chain(from_service)).lines();
    let exceeded = exceeded(watch, stage);
    tokio::pin!(exceeded);
    loop {
        // The client may have ended before this loop could receive its signal.
        let reaped = children::reap(client, |pid, status| {
            if let Some(broker) = &broker {
                broker.ended(pid, status);
            }
        })?;
        if let Some(status) = reaped.status {
            return Ok(Some(status));
        }
        tokio::select! {
            _ = children.recv() => {}
            () = tokio::task::yield_now(), if reaped.may_go_on => {}
            line = answers.next_line() => match (line, &broker) {
                // If the exec stage has ended, its exit code shows that.
                (Ok(Some(line)), _) if line == BEGIN => drop(to_stage.write_all(BEGIN.as_bytes()).await),
                (Ok(Some(line)), Some(broker)) => broker.answered(line.as_bytes()),
                (Ok(Some(_)), None) => {}
                // The service has closed its end.
                (Ok(None) | Err(_), _) => return Ok(None),
            },
            () = any(&mut signals) => return Ok(None),
            what = &mut exceeded => {
                // Kill first, since the run may use more with each moment. `end_all` finds processes missed here.
                let _ = tree::kill_below(std::process::id());
                let mut line = serde_json::to_vec(&Question { id: 0, what: QuestionBody::Exceeded(what) })?;
                line.push(b'\n');
                // A service that has ended or reads nothing does not receive the line.
                let _ = last_question.send(line);
                let _ = last_question.send(Vec::new());
                let _ = tokio::time::timeout(REPORT_TIMEOUT, asking).await;
                return Ok(None);
            }
        }
    }
}

/// Waits for the launch. All else is ready by then.
async fn receive(socket: UnixStream) -> io::Result<(tokio::net::UnixStream, ReceivedLaunch)> {
    let nonblocking = |socket: UnixStream| {
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    };
    let waiting = nonblocking(socket)?;
    waiting.readable().await?;
    let mut socket = waiting.into_std()?;
    // The service sends the whole, or closes the socket.
    socket.set_nonblocking(false)?;
    let launch = launch::receive(&mut socket)?;
    Ok((nonblocking(socket)?, launch))
}

/// Waits until the run exceeds a limit. `stage`: the exec stage's socket, which closes when it becomes the client. The exec stage
/// cannot be inspected, and before the client starts there is nothing else to watch.
async fn exceeded(watch: Option<Watch>, mut stage: OwnedReadHalf) -> String {
    let Some(watch) = watch else { return std::future::pending().await };
    // Nothing is ever sent. An error means that the socket closed, too.
    let _ = stage.read(&mut [0]).await;
    drop(stage);
    watch.exceeded().await
}

/// Sends the broker's questions to the service until an empty one.
async fn ask(mut to_service: OwnedWriteHalf, mut asked: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = asked.recv().await.filter(|line| !line.is_empty()) {
        // The reader of answers notices that the service has ended.
        if to_service.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Starts the exec stage, which becomes the client, and returns the socket for its launch. It starts before the service sends the launch, so that its start costs a run no time.
fn start() -> io::Result<(u32, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.args(exec_stage::arguments()).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    // `reap` notices its end.
    Ok((start::blocking(&mut command)?, ours))
}

async fn any(signals: &mut [Signal]) {
    let waiting = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures::future::select_all(waiting).await;
}
