//! The `claude` client: one process a run, over its stream-json control protocol.
//!
//! [`options`] says how it is started, [`login`] with what login, `process` holds it, `session` does a turn with it,
//! `outcome` names its end. Everything fails closed: a client that is not understood is ended, and a call that is not approved
//! does not run.

mod ledger;
mod lines;
pub mod login;
pub mod options;
mod outcome;
mod process;
mod protocol;
mod ready;
mod session;

use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::login::{Login, LoginSources, find_login};
use self::options::{Surroundings, command_line, environment};
use self::outcome::Cut;
use self::process::Process;
pub use self::ready::Ready;
use self::session::{End, Heard};
use super::client::{AgentClient, AttemptEnd, AttemptReport, Failure, FailureClass, Request, SessionId, SessionMode};
use super::launch::{Launch, Secret};
use super::tools::ServeTools;
use super::wall::{Wall, files_of_command, resolved};
use crate::clock::Clock;

/// How long things may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For the answer to `initialize`.
    pub initialize: Duration,
    /// A client that does not answer `initialize` is started again after each of these.
    pub again_after: Vec<Duration>,
    /// For a verdict in a fork.
    pub verdict: Duration,
    /// So long the client waits for a verdict, longer than that takes; then it denies by itself. Whole seconds.
    pub client_waits: Duration,
    /// For a verdict in the main session, where a person may be asked. The client waits as much longer.
    pub verdict_of_person: Duration,
    /// For a turn to break off when it is interrupted.
    pub interrupt: Duration,
    /// For a client to leave by itself after its turn.
    pub leave: Duration,
    /// For the host to come to an end with what it was asked, when the turn is over.
    pub host_ends: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            initialize: seconds(60),
            again_after: vec![seconds(5), seconds(15)],
            verdict: seconds(25),
            client_waits: seconds(30),
            verdict_of_person: seconds(590),
            interrupt: seconds(3),
            leave: seconds(5),
            host_ends: seconds(5),
        }
    }
}

/// The client, ready to be started any number of times.
#[derive(Clone, Debug)]
pub struct Claude {
    /// The client's program, absolute ([`find`]).
    pub command: PathBuf,
    /// Our own binary: it is the wrapper.
    pub own_binary: PathBuf,
    /// The next run's wrapper.
    pub ready: Ready,
    /// The main session's own configuration folder (`CLAUDE_CONFIG_DIR`).
    pub main_config: PathBuf,
    /// What every client's environment is made of.
    pub surroundings: Surroundings,
    /// Where its login is looked for, each time.
    pub login: LoginSources,
    /// Starts the server of our tools.
    pub serve_tools: ServeTools,
    /// For the time when a login ends.
    pub clock: Clock,
    /// How long things may take.
    pub limits: Limits,
}

/// Finds a program as a shell would: a name in `path` (the variable's text), or a path as it is. Gives an absolute path of
/// an executable file.
#[must_use]
pub fn find(command: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |file: &Path| file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    let candidates: Vec<PathBuf> = if command.contains('/') {
        vec![PathBuf::from(command)]
    } else {
        std::env::split_paths(path).map(|folder| folder.join(command)).collect()
    };
    candidates.into_iter().find(|file| runs(file)).and_then(|file| std::path::absolute(file).ok())
}

impl Claude {
    /// The login that a run would be started with now.
    #[must_use]
    pub fn find_login(&self) -> Option<Login> {
        find_login(&self.login, self.clock.now())
    }

    /// What the client says of its version, e.g. `2.1.197`.
    ///
    /// # Errors
    /// It cannot be started, or does not answer within ten seconds.
    pub async fn version(&self) -> Result<String, Failure> {
        let failed = |why: String| Failure::new(FailureClass::SpawnFailed, outcome::cannot_start(&self.command, &why));
        let path = self.surroundings.own.get("PATH").cloned().unwrap_or_default();
        let output = tokio::process::Command::new(&self.command)
            .arg("--version")
            .env_clear()
            .envs([("PATH", path.as_str()), ("DISABLE_AUTOUPDATER", "1")])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(Duration::from_secs(10), output)
            .await
            .map_err(|_| failed("`--version` does not answer within 10 seconds".into()))?
            .map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.split_whitespace().next() {
            Some(version) if output.status.success() => Ok(version.to_string()),
            _ => Err(failed(format!("`--version` ended with {}", output.status))),
        }
    }

    /// The client's configuration folder in this run.
    fn config_dir(&self, request: &Request) -> PathBuf {
        match request.session {
            SessionMode::Main(_) => self.main_config.clone(),
            SessionMode::Isolated | SessionMode::ForkOfMain { .. } => request.run_dir.join("claude"),
        }
    }

    fn launch(&self, request: &Request, config_dir: &Path, login: Login) -> Launch {
        let mut env = environment(&self.surroundings, config_dir, &request.run_dir, &request.token);
        if request.wall.is_some() {
            // Git gives up at a configuration file that it sees and cannot read, as the person's is behind the wall.
            env.entry("GIT_CONFIG_GLOBAL".into()).or_insert_with(|| "/dev/null".into());
        }
        Launch {
            program: self.command.clone(),
            args: command_line(&request.session, &request.options, &request.visible_tools, &request.deny_rules),
            env,
            work_dir: request.work_dir.clone(),
            secret: Some(Secret { variable: login.kind.variable().into(), value: login.secret }),
            wall: request.wall.clone().map(|wall| self.complete(wall, request, config_dir)),
        }
    }

    /// What every client needs, whatever its job may do.
    fn complete(&self, mut wall: Wall, request: &Request, config_dir: &Path) -> Wall {
        let devices = ["/dev/null", "/dev/tty", "/dev/shm"];
        wall.write.extend(devices.map(|device| resolved(Path::new(device))));
        wall.write.extend([request.run_dir.clone(), config_dir.to_path_buf()]);
        wall.read.push(request.work_dir.clone());
        wall.read.push(resolved(&self.own_binary));
        wall.read.extend(files_of_command(&self.command));
        wall
    }

    async fn attempt(&self, request: &Request) -> AttemptReport {
        let failed = |class, message: String| AttemptReport::bare(AttemptEnd::Failed(Failure::new(class, message)));
        if request.prompt.trim_start().starts_with('/') {
            let message = "the prompt begins with `/`, which the agent client would run as a command of its own";
            return failed(FailureClass::Internal, message.into());
        }
        let Some(login) = self.find_login() else {
            return failed(FailureClass::NotLoggedIn, outcome::not_logged_in("no login was found"));
        };
        let config_dir = self.config_dir(request);
        if let Err(error) = make_own(&config_dir) {
            return failed(FailureClass::Internal, format!("cannot make {}: {error}", config_dir.display()));
        }
        let launch = self.launch(request, &config_dir, login);
        let deadline = Instant::now() + request.timeout;
        let mut again = self.limits.again_after.iter();
        loop {
            let report = self.once(request, &launch, &config_dir, deadline).await;
            let hung =
                matches!(&report.end, AttemptEnd::Failed(failure) if failure.class == FailureClass::InitializeTimeout);
            let Some(delay) = again.next().filter(|_| hung) else { return report };
            tracing::warn!(?delay, "the agent client did not answer; it is started again");
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return AttemptReport { end: AttemptEnd::Cancelled, ..report },
                () = sleep_until(deadline) => return AttemptReport { end: outcome::timed_out(request.timeout), ..report },
                () = sleep(*delay) => {}
            }
        }
    }

    /// One process, from its start until nothing of it is left.
    async fn once(&self, request: &Request, launch: &Launch, config_dir: &Path, deadline: Instant) -> AttemptReport {
        fail_point!(BeforeSpawn);
        let started = async { Process::start(self.ready.take(&self.own_binary).await?, launch).await };
        let mut process = match started.await {
            Ok(process) => process,
            Err(error) => {
                let message = format!("cannot start the wrapper {}: {error}", self.own_binary.display());
                return AttemptReport::bare(AttemptEnd::Failed(Failure::new(FailureClass::SpawnFailed, message)));
            }
        };
        fail_point!(Spawned);
        session::started(&*request.host, process.pid()).await;
        fail_point!(StartRecorded);
        let mut pipe = (self.serve_tools)(&request.mcp_tools, request.host.clone());
        let mut heard = Heard::default();
        let turn = AssertUnwindSafe(session::drive(&mut process, request, &self.limits, &mut pipe, &mut heard));
        let cut = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Cut::Cancelled,
            () = sleep_until(deadline) => Cut::TimedOut(request.timeout),
            end = turn.catch_unwind() => end.map_or(Cut::Panicked, Cut::Ended),
        };
        let goes_on = match &cut {
            Cut::Cancelled | Cut::TimedOut(_) | Cut::Ended(End::Silent(_)) => true,
            Cut::Ended(End::Result(_)) | Cut::Panicked => false,
            // It is of no use any more.
            Cut::Ended(_) => return self.report(request, config_dir, process, cut, heard, Duration::ZERO).await,
        };
        if goes_on {
            session::interrupt(&mut process, &self.limits, &mut heard).await;
        }
        pipe.end(self.limits.host_ends).await;
        self.report(request, config_dir, process, cut, heard, self.limits.leave).await
    }

    async fn report(
        &self,
        request: &Request,
        config_dir: &Path,
        process: Process,
        cut: Cut,
        heard: Heard,
        grace: Duration,
    ) -> AttemptReport {
        let exit = process.end(grace).await;
        let transcript = heard.session.as_ref().and_then(|session| transcript(config_dir, session));
        AttemptReport {
            end: outcome::name(cut, &exit, &self.command, request),
            answer: heard.answer,
            session: heard.session,
            transcript,
            cost_usd: heard.cost_usd,
            turns: heard.turns,
            messages: Vec::new(),
        }
    }
}

/// A folder that only this user can look into. One that a fork may have put there leads nowhere else.
fn make_own(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if folder.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, "it is a symlink"))
}

/// The client keeps transcripts by working folder, under a name that only it can make.
fn transcript(config_dir: &Path, session: &SessionId) -> Option<PathBuf> {
    // The id is the client's word: it must not lead elsewhere.
    if session.0.contains(['/', '\0']) {
        return None;
    }
    let folders = std::fs::read_dir(config_dir.join("projects")).ok()?;
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join(format!("{session}.jsonl"))));
    files.into_iter().find(|file| file.is_file())
}

#[async_trait]
impl AgentClient for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn get_ready(&self) {
        let (ready, own_binary) = (self.ready.clone(), self.own_binary.clone());
        tokio::spawn(async move { ready.fill(&own_binary).await });
    }

    async fn run(&self, request: Request) -> AttemptReport {
        match AssertUnwindSafe(self.attempt(&request)).catch_unwind().await {
            Ok(report) => report,
            Err(_) => AttemptReport::bare(outcome::panicked()),
        }
    }
}
