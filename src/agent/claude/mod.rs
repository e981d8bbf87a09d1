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
pub mod sign_in;
mod tasks;
pub mod versions;

pub(crate) use protocol::without_error_tags;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::cgroup::{Delegated, Group};
use agent_sandbox::{
    Answer, Bounds, Domain, Judge, Launch, Secret, ShellService, ShellSpec, Start, farm, resolved, system, token,
};
use async_trait::async_trait;
use futures::FutureExt;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::login::{Login, LoginSources, find_login};
use self::options::{ClientEnvironment, command_line, environment, shell_environment, variables};
use self::outcome::Termination;
use self::process::Process;
pub use self::ready::Ready;
use self::session::{ClientState, End, Turn};
use super::client::{
    AgentClient, AttemptEnd, AttemptReport, Failure, FailureClass, Request, RunHost, SessionId, SessionMode, UsedClient,
};
use super::tools::ServeTools;
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
    /// The program that is the sandbox's stages: the runner of each client, its shell, and what the shell finds as programs.
    pub shell_binary: PathBuf,
    /// The next run's runner.
    pub ready: Ready,
    /// The main session's own configuration folder (`CLAUDE_CONFIG_DIR`).
    pub main_config: PathBuf,
    /// What every client's environment is made of.
    pub client_environment: ClientEnvironment,
    /// Where its login is looked for, each time.
    pub login: LoginSources,
    /// Starts the server of our tools.
    pub serve_tools: ServeTools,
    /// For the time when a login ends.
    pub clock: Clock,
    /// How long things may take.
    pub limits: Limits,
    /// The control groups of runs; `None`: none is delegated to the service.
    pub groups: Option<Delegated>,
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

/// What the client at `command` says of its version, e.g. `2.1.197`, with this `PATH`.
///
/// # Errors
/// It cannot be started, or does not answer within ten seconds.
pub async fn version(command: &Path, path: &str) -> Result<String, Failure> {
    let failed = |why: String| Failure::new(FailureClass::SpawnFailed, outcome::cannot_start(command, &why));
    let output = tokio::process::Command::new(command)
        .arg("--version")
        .env_clear()
        .envs([("PATH", path), ("DISABLE_AUTOUPDATER", "1")])
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

impl Claude {
    /// The login that a run would be started with now.
    #[must_use]
    pub fn find_login(&self) -> Option<Login> {
        find_login(&self.login, self.clock.now())
    }

    /// See [`version`].
    ///
    /// # Errors
    /// As there.
    pub async fn version(&self) -> Result<String, Failure> {
        let path = self.client_environment.own.get("PATH").cloned().unwrap_or_default();
        version(&self.command, &path).await
    }

    /// The client's configuration folder in this run.
    fn config_dir(&self, request: &Request) -> PathBuf {
        match request.session {
            SessionMode::Main(_) | SessionMode::Beside(_) => self.main_config.clone(),
            SessionMode::Isolated | SessionMode::ForkOfMain { .. } => request.run_dir.join("claude"),
        }
    }

    fn launch(
        &self,
        request: &Request,
        config_dir: &Path,
        login: Login,
        broker: &Broker,
        group: Option<&Group>,
    ) -> Launch {
        let mut env = environment(&self.client_environment, config_dir, &request.run_dir, &request.token);
        env.extend(variables(&request.options));
        if request.asks.is_some() {
            // A line may wait for a person; the run's own limit holds.
            let most = request.timeout.as_millis().to_string();
            env.insert("BASH_DEFAULT_TIMEOUT_MS".into(), most.clone());
            env.insert("BASH_MAX_TIMEOUT_MS".into(), most);
        }
        if request.sandbox.client.is_some() {
            // Git gives up at a configuration file that it sees and cannot read, as the person's is out of reach.
            env.entry("GIT_CONFIG_GLOBAL".into()).or_insert_with(|| "/dev/null".into());
        }
        let shell = request.sandbox.shell.clone().map(|mut spec| {
            let clean = self.clean_environment(request);
            let complete = |mut spec: ShellSpec| {
                spec.env = clean.clone().into_iter().chain(broker.presented()).chain(spec.env).collect();
                spec
            };
            let agents = request.sandbox.agents.clone().into_iter();
            let agents = agents.map(|(name, spec)| (name, complete(spec))).collect();
            spec = complete(spec);
            let Broker { socket, token } = broker.clone();
            env.extend(broker.presented());
            let link = request.run_dir.join(agent_sandbox::shell::FOLDER).join("bash");
            env.insert("CLAUDE_CODE_SHELL".into(), link.display().to_string());
            ShellService { socket, token, spec, agents }
        });
        Launch {
            program: self.command.clone(),
            args: command_line(&request.session, &request.options, &request.visible_tools, &request.deny_rules),
            env,
            work_dir: request.work_dir.clone(),
            secret: Some(Secret { variable: login.kind.variable().into(), value: login.secret }),
            domain: request.sandbox.client.clone().map(|domain| self.complete(domain, request, config_dir)),
            shell,
            bounds: Some(Bounds {
                limits: request.limits,
                folder: request.run_dir.clone(),
                group: group.map(|group| group.folder().to_path_buf()),
            }),
        }
    }

    /// What every shell and program of a run has in its environment, whatever started it.
    fn clean_environment(&self, request: &Request) -> BTreeMap<String, String> {
        shell_environment(&self.client_environment, &request.run_dir.join("tmp"))
    }

    /// The same for programs that run outside of the shell: they may have to present the run.
    fn programs_environment(&self, request: &Request, broker: &Broker) -> BTreeMap<String, String> {
        let mut env = self.clean_environment(request);
        if let Some(shell) = &request.sandbox.shell {
            env.extend(broker.presented());
            env.extend(shell.env.clone());
        }
        env.insert("OLLIM_HOME".into(), self.client_environment.data_folder.clone());
        env
    }

    /// What every client needs, whatever its job may do.
    fn complete(&self, mut domain: Domain, request: &Request, config_dir: &Path) -> Domain {
        domain.write.extend(system::sinks());
        domain.write.extend([request.run_dir.clone(), config_dir.to_path_buf()]);
        domain.read.push(request.work_dir.clone());
        let files = files_of_command(&self.command);
        domain.execute.extend(match farm::is_script(&self.command) {
            // It runs other programs by design: which ones, nobody knows.
            true => system::programs(),
            false => Vec::new(),
        });
        domain.execute.extend(files);
        domain.execute.push(resolved(&self.shell_binary));
        domain
    }

    async fn attempt(&self, request: &Request) -> AttemptReport {
        let failed = |class, message: String| AttemptReport::bare(AttemptEnd::Failed(Failure::new(class, message)));
        if request.prompt.trim_start().starts_with('/') {
            let message = "the prompt begins with `/`, which the agent client would run as a command of its own";
            return failed(FailureClass::Internal, message.into());
        }
        let login = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return AttemptReport::bare(AttemptEnd::Cancelled),
            login = self.login() => login,
        };
        let Some(login) = login else {
            return failed(FailureClass::NotLoggedIn, outcome::not_logged_in("there is no login, or it has ended"));
        };
        let config_dir = self.config_dir(request);
        if let Err(error) = make_own(&config_dir) {
            return failed(FailureClass::Internal, format!("cannot make {}: {error}", config_dir.display()));
        }
        let broker = match Broker::of(request) {
            Ok(broker) => broker,
            Err(error) => return failed(FailureClass::Internal, format!("no token could be made: {error}")),
        };
        let group = self.groups.as_ref().map(|groups| groups.group(&request.run, &request.limits)).transpose();
        let group = match group {
            Ok(group) => group,
            Err(error) => return failed(FailureClass::Internal, format!("no control group could be made: {error}")),
        };
        let launch = self.launch(request, &config_dir, login, &broker, group.as_ref());
        let deadline = Instant::now() + request.timeout;
        let mut again = self.limits.again_after.iter();
        loop {
            let judge = Arc::new(RunJudge {
                host: request.host.clone(),
                clean: self.programs_environment(request, &broker),
                token: request.token.clone(),
                agent_tokens: request.agent_tokens.clone(),
                exceeded: Mutex::default(),
            });
            let mut report = self.once(request, &launch, &config_dir, deadline, judge.clone()).await;
            if let (Some(what), false) = (judge.taken_too_much(), report.end == AttemptEnd::Completed) {
                report.end = AttemptEnd::Failed(outcome::exceeded(&what));
            }
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
    async fn once(
        &self,
        request: &Request,
        launch: &Launch,
        config_dir: &Path,
        deadline: Instant,
        judge: Arc<RunJudge>,
    ) -> AttemptReport {
        fail_point!(BeforeSpawn);
        let started = async { Process::start(self.ready.take(&self.shell_binary).await?, launch, judge).await };
        let mut process = match started.await {
            Ok(process) => process,
            Err(error) => {
                let message = format!("cannot start the runner {}: {error}", self.shell_binary.display());
                return AttemptReport::bare(AttemptEnd::Failed(Failure::new(FailureClass::SpawnFailed, message)));
            }
        };
        fail_point!(Spawned);
        session::started(&*request.host, process.pid()).await;
        fail_point!(StartRecorded);
        let mut pipe = (self.serve_tools)(&request.mcp_tools, request.host.clone());
        let mut turn = Turn::new(request, &self.limits, &process);
        let driven = AssertUnwindSafe(turn.drive(&mut process, &mut pipe));
        let termination = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Termination::Cancelled,
            () = sleep_until(deadline) => Termination::TimedOut(request.timeout),
            end = driven.catch_unwind() => end.map_or(Termination::Panicked, Termination::Ended),
        };
        match &termination {
            Termination::Cancelled
            | Termination::TimedOut(_)
            | Termination::Panicked
            | Termination::Ended(End::Silent(_)) => {
                turn.break_off(&mut process).await;
            }
            Termination::Ended(End::Result(_)) => {}
            // It is of no use any more.
            Termination::Ended(_) => {
                return self.report(request, config_dir, process, termination, turn.client, Duration::ZERO).await;
            }
        }
        pipe.end(self.limits.host_ends).await;
        let killed_at = Instant::now() + self.limits.leave;
        turn.leave(&mut process, self.limits.leave).await;
        let grace = killed_at.saturating_duration_since(Instant::now());
        self.report(request, config_dir, process, termination, turn.client, grace).await
    }

    async fn report(
        &self,
        request: &Request,
        config_dir: &Path,
        process: Process,
        termination: Termination,
        client: ClientState,
        grace: Duration,
    ) -> AttemptReport {
        let exit = process.end(grace).await;
        let used = UsedClient { name: self.name(), version: client.version.clone(), is_agent: true };
        let transcript = client.session.as_ref().and_then(|session| transcript(config_dir, session));
        AttemptReport {
            end: outcome::name(termination, &exit, &self.command, request, &client),
            answer: client.answer,
            session: client.session,
            transcript,
            cost_usd: client.cost_usd,
            turns: client.turns,
            model: client.model,
            tokens: client.tokens,
            client: Some(used),
            messages: Vec::new(),
        }
    }
}

/// The broker of a run: where it listens, and what shells and programs that have lost their descriptors present to it.
#[derive(Clone)]
struct Broker {
    socket: PathBuf,
    token: String,
}

impl Broker {
    fn of(request: &Request) -> std::io::Result<Self> {
        Ok(Self { socket: request.run_dir.join("shell.sock"), token: token::random()? })
    }

    /// The variables in which they find it.
    fn presented(&self) -> [(String, String); 2] {
        [
            (agent_sandbox::SOCKET_VARIABLE.into(), self.socket.display().to_string()),
            (agent_sandbox::TOKEN_VARIABLE.into(), self.token.clone()),
        ]
    }
}

/// Puts the clean environment under what the host's answer adds to it.
struct RunJudge {
    host: Arc<dyn RunHost>,
    clean: BTreeMap<String, String>,
    /// What stands for the run on the control socket.
    token: String,
    /// What stands for an agent that it calls.
    agent_tokens: BTreeMap<String, String>,
    /// What the run took more of than it may.
    exceeded: Mutex<Option<String>>,
}

impl RunJudge {
    fn taken_too_much(&self) -> Option<String> {
        self.exceeded.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Judge for RunJudge {
    async fn judge(&self, start: Start) -> Answer {
        // An agent that is not known presents nothing.
        let token = match &start.caller {
            None => Some(&self.token),
            Some(agent) => self.agent_tokens.get(agent),
        };
        let presented = token.map(|token| ("OLLIM_RUN_TOKEN".to_owned(), token.clone()));
        let (host, runtime) = (self.host.clone(), tokio::runtime::Handle::current());
        // Off the threads that serve everything else: arguments are as long as an agent likes.
        let judged = tokio::task::spawn_blocking(move || runtime.block_on(host.judge(start))).await;
        let failed = |_| Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
        match judged.unwrap_or_else(failed) {
            Answer::Outside { program, env, domain, takes_umask } => Answer::Outside {
                program,
                env: self.clean.clone().into_iter().chain(presented).chain(env).collect(),
                domain,
                takes_umask,
            },
            answer => answer,
        }
    }

    async fn caller(&self, script: String) -> Result<Option<String>, String> {
        self.host.caller(script).await
    }

    fn exceeded(&self, what: String) {
        tracing::warn!("a run is ended, since {what}");
        *self.exceeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}

/// What a client's own command needs to be readable: its file, and where it is a script of an npm package, the package.
fn files_of_command(command: &Path) -> Vec<PathBuf> {
    let command = resolved(command);
    let package = command.ancestors().skip(1).find(|path| {
        let above = |path: &Path| path.parent().and_then(Path::file_name).map(OsStr::to_os_string);
        let scope =
            path.parent().and_then(Path::file_name).is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"));
        let folder = if scope { path.parent().and_then(above) } else { above(path) };
        folder.as_deref() == Some(OsStr::new("node_modules"))
    });
    let package = package.map(Path::to_path_buf);
    std::iter::once(command).chain(package).collect()
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
        let (ready, shell_binary) = (self.ready.clone(), self.shell_binary.clone());
        tokio::spawn(async move { ready.fill(&shell_binary).await });
    }

    async fn run(&self, request: Request) -> AttemptReport {
        match AssertUnwindSafe(self.attempt(&request)).catch_unwind().await {
            Ok(report) => report,
            Err(_) => AttemptReport::bare(outcome::panicked()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_npm_package_is_readable_and_a_lone_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in ["node_modules/@a/cc/bin/x", "node_modules/cc/cli.js", "claude"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let check = |file: &str, expect: &[&str]| {
            let expect: Vec<PathBuf> = expect.iter().map(|path| root.join(path)).collect();
            assert_eq!(files_of_command(&root.join(file)), expect);
        };
        check("node_modules/@a/cc/bin/x", &["node_modules/@a/cc/bin/x", "node_modules/@a/cc"]);
        check("node_modules/cc/cli.js", &["node_modules/cc/cli.js", "node_modules/cc"]);
        check("claude", &["claude"]);
    }
}
