//! The `claude` client, driven over its stream-json control protocol. Each run has its own process; main-session turns may share one.
//!
//! [`options`] builds its command line, [`login`] finds its login, `process` holds the process, `session` does a turn, and
//! `outcome` classifies the end. Everything fails closed: a client that sends anything unintelligible is ended, and a call
//! that is not approved does not run.

mod broker;
mod idle;
mod ledger;
mod lines;
mod live;
pub mod login;
pub mod options;
mod outcome;
mod process;
mod protocol;
mod session;
pub mod sign_in;
mod tasks;
pub mod versions;

pub(crate) use protocol::without_error_tags;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::cgroup::{DelegatedCgroup, Group};
use agent_sandbox::prespawn::PrespawnSlot;
use agent_sandbox::{Bounds, Domain, Launch, Secret, ShellService, ShellSpec, farm, leftovers, resolved, system};
use async_trait::async_trait;
use futures::FutureExt;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::broker::Broker;
pub use self::idle::IdleClient;
use self::live::{LiveClient, StartConfig, TurnArgs};
use self::login::{Login, LoginSources, find_login};
use self::options::{
    ClientEnvironment, GIT_IN_PLANTED_FOLDERS, OF_OWN_PROGRAMS, command_line, environment, shell_environment, variables,
};
use self::outcome::Termination;
use self::process::Exit;
use self::session::ClientState;
use super::client::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, Request, SessionId, SessionMode,
    UsedClient,
};
use super::observation::{Observation, compacted};
use super::tools::ServeTools;
use super::transcript::{RESUMED, open_transcript};
use crate::clock::Clock;

/// The folders of its configuration in which a client writes: conversations, and which clients run. It would make others, and files beside
/// them, and does without.
const RECORDS: [&str; 2] = ["projects", "sessions"];

/// The folder of its configuration in which a client makes a folder for each session. It would run the scripts in them before each line of
/// its shell.
const SESSION_ENV: &str = "session-env";

/// Timeouts of a client.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Timeout for the answer to `initialize`.
    pub initialize: Duration,
    /// Delays after which a client that did not answer `initialize` is started again.
    pub restart_delays: Vec<Duration>,
    /// Timeout for a verdict, in addition to the time that a person has for an answer.
    pub verdict: Duration,
    /// Time after which the client itself denies a call without a verdict. Longer than `verdict`; whole seconds.
    pub client_waits: Duration,
    /// Time for a turn to stop after an interrupt.
    pub interrupt: Duration,
    /// Time for a client to exit by itself after its turn.
    pub leave: Duration,
    /// Time for the host to finish open tool calls after the turn.
    pub host_ends: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            initialize: seconds(60),
            restart_delays: vec![seconds(5), seconds(15)],
            verdict: seconds(25),
            client_waits: seconds(30),
            interrupt: seconds(3),
            leave: seconds(5),
            host_ends: seconds(5),
        }
    }
}

/// The configured client. It can be started any number of times.
#[derive(Clone, Debug)]
pub struct Claude {
    /// The absolute path of the client's program.
    pub command: PathBuf,
    /// The program of the sandbox's stages: the runner of each client, its shell, and the programs that the shell finds.
    pub shell_binary: PathBuf,
    /// The prespawned runner for the next run.
    pub ready: PrespawnSlot,
    /// The main session's client between two turns.
    pub idle: IdleClient,
    /// The main session's own configuration folder (`CLAUDE_CONFIG_DIR`).
    pub main_config: PathBuf,
    /// The basis of every client's environment.
    pub client_environment: ClientEnvironment,
    /// The places to look for a login, at each run.
    pub login: LoginSources,
    /// The function that starts our tool server.
    pub serve_tools: ServeTools,
    /// The clock that decides whether a login has expired.
    pub clock: Clock,
    /// The timeouts.
    pub limits: Limits,
    /// The control groups of runs; `None` if none is delegated to the service.
    pub groups: Option<DelegatedCgroup>,
}

/// The prompt that makes the client shorten a conversation. It is the only command of the client's own that it receives.
pub const COMPACT: &str = "/compact";

/// Returns the version that the client at `command` reports, e.g. `2.1.197`. `path` is its `PATH`.
///
/// # Errors
/// A [`Failure`] if it cannot be started, exits with an error, or does not answer within ten seconds.
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

/// Adds the login's source to the message of a refused login.
fn name_login(end: &mut AttemptEnd, login: &Login) {
    if let AttemptEnd::Failed(failure) = end
        && failure.class == FailureClass::NotLoggedIn
    {
        failure.message = outcome::not_logged_in(&failure.message, Some(login));
    }
}

impl Claude {
    /// Returns the login with which a run would be started now.
    #[must_use]
    pub fn find_login(&self) -> Option<Login> {
        find_login(&self.login, self.clock.now())
    }

    /// Returns the client's version; see [`version`].
    ///
    /// # Errors
    /// The same as of [`version`].
    pub async fn version(&self) -> Result<String, Failure> {
        let path = self.client_environment.own.get("PATH").cloned().unwrap_or_default();
        version(&self.command, &path).await
    }

    /// Returns the client's configuration folder in this run.
    fn config_dir(&self, request: &Request) -> PathBuf {
        match request.session {
            SessionMode::Main(_) | SessionMode::Beside(_) => self.main_config.clone(),
            SessionMode::Isolated | SessionMode::ForkOfMain { .. } => request.run_dir.join("claude"),
        }
    }

    /// Returns the terms under which a client is started for this request.
    fn terms(
        &self,
        request: &Request,
        beginning: &TurnArgs,
        login: Login,
        broker: &Broker,
        group: Option<&Group>,
    ) -> StartConfig {
        StartConfig {
            launch: self.launch(request, beginning, login, broker, group),
            greeting: session::greeting(request, &self.limits),
            mcp_tools: request.mcp_tools.clone(),
            external: request.external.clone(),
        }
    }

    fn launch(
        &self,
        request: &Request,
        beginning: &TurnArgs,
        login: Login,
        broker: &Broker,
        group: Option<&Group>,
    ) -> Launch {
        let config_dir = self.config_dir(request);
        let options = ClientOptions { max_budget_usd: beginning.max_budget_usd, ..request.options.clone() };
        let mut env = environment(&self.client_environment, &config_dir, &temporary(&request.run_dir), &request.token);
        env.extend(variables(&options));
        if request.session.is_attended() {
            // With this flag the transcript is complete when it is copied after the turn, although the client stays alive.
            env.insert("CLAUDE_CODE_EAGER_FLUSH".into(), "1".into());
        }
        if request.asks.is_some() {
            // A command may wait for a person's answer, so only the run's own time limit applies.
            let most = request.timeout.as_millis().to_string();
            env.insert("BASH_DEFAULT_TIMEOUT_MS".into(), most.clone());
            env.insert("BASH_MAX_TIMEOUT_MS".into(), most);
        }
        if request.sandbox.client.is_some() {
            // Git fails if it sees a configuration file that it cannot read, and the sandbox denies access to the person's.
            env.entry("GIT_CONFIG_GLOBAL".into()).or_insert_with(|| "/dev/null".into());
        }
        let shell = request.sandbox.shell.clone().map(|mut spec| {
            let clean = self.clean_environment(request);
            let complete = |mut spec: ShellSpec| {
                spec.env = clean.clone().into_iter().chain(broker.presented()).chain(spec.env).collect();
                let not_of_client = OF_OWN_PROGRAMS.iter().map(|(name, _)| *name).chain(GIT_IN_PLANTED_FOLDERS);
                spec.of_client = not_of_client.map(str::to_owned).collect();
                spec
            };
            let agents = request.sandbox.agents.clone().into_iter();
            let agents = agents.map(|(name, spec)| (name, complete(spec))).collect();
            spec = complete(spec);
            let Broker { socket, token } = broker.clone();
            env.extend(broker.presented());
            let link = agent_sandbox::shell::link_in(&request.run_dir);
            env.insert("CLAUDE_CODE_SHELL".into(), link.display().to_string());
            ShellService { socket, token, spec, agents }
        });
        Launch {
            program: self.command.clone(),
            args: command_line(&beginning.session, &options, &request.visible_tools, &request.deny_rules),
            env,
            work_dir: request.work_dir.clone(),
            folder: request.run_dir.clone(),
            secret: Some(Secret { variable: login.kind.variable().into(), value: login.secret }),
            domain: request.sandbox.client.clone().map(|domain| self.complete(domain, request, &config_dir)),
            shell,
            bounds: Some(Bounds {
                limits: request.limits,
                folder: request.run_dir.clone(),
                group: group.map(|group| group.folder().to_path_buf()),
            }),
        }
    }

    /// Returns the environment that every shell and program of a run has.
    fn clean_environment(&self, request: &Request) -> BTreeMap<String, String> {
        shell_environment(&self.client_environment, &request.run_dir.join("tmp"))
    }

    /// Returns the environment of programs that run outside of the shell. They may have to present the run.
    fn programs_environment(&self, request: &Request, broker: &Broker) -> BTreeMap<String, String> {
        let mut env = self.clean_environment(request);
        if let Some(shell) = &request.sandbox.shell {
            env.extend(broker.presented());
            env.extend(shell.env.clone());
        }
        env.insert("OLLIM_HOME".into(), self.client_environment.data_folder.clone());
        env
    }

    /// Adds the rights that every client needs, whatever its job may do.
    fn complete(&self, mut domain: Domain, request: &Request, config_dir: &Path) -> Domain {
        domain.write.extend(system::sinks());
        // A name in a folder of the job's may lead the client's file tools elsewhere in these. So they hold nothing that the client obeys:
        // its settings would lie in the configuration folder itself, and the links to its shell and to programs lie beside it.
        domain.write.push(temporary(&request.run_dir));
        domain.write.extend(records(config_dir));
        domain.nest.push(config_dir.join(SESSION_ENV));
        domain.read.extend([config_dir.to_path_buf(), request.run_dir.join(RESUMED)]);
        domain.list.push(request.work_dir.clone());
        let files = files_of_command(&self.command);
        domain.execute.extend(match farm::is_script(&self.command) {
            // A script runs other programs, which are not known in advance.
            true => system::programs(),
            false => Vec::new(),
        });
        domain.execute.extend(files);
        domain.execute.push(resolved(&self.shell_binary));
        domain
    }

    /// Starts a client in its own folders.
    async fn start_anew(&self, request: &Request, config_dir: &Path, login: Login) -> Result<LiveClient, Failure> {
        let failed = |error| Failure::new(FailureClass::Internal, format!("cannot make the client's folders: {error}"));
        let is_of_run = config_dir != self.main_config;
        make_folders(request, config_dir, is_of_run).await.map_err(failed)?;
        self.start(request, login).await
    }

    async fn attempt(&self, request: &Request) -> AttemptReport {
        let failed = |class, message: String| AttemptReport::bare(AttemptEnd::Failed(Failure::new(class, message)));
        let is_command = request.prompt == COMPACT && request.session.is_attended();
        if request.prompt.trim_start().starts_with('/') && !is_command {
            let message = "the prompt begins with `/`, which the agent client would run as a command of its own";
            return failed(FailureClass::Internal, message.into());
        }
        let login = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return AttemptReport::bare(AttemptEnd::Cancelled),
            login = self.login() => login,
        };
        let Some(login) = login else {
            return failed(
                FailureClass::NotLoggedIn,
                outcome::not_logged_in("there is no login, or it has ended", None),
            );
        };
        let config_dir = self.config_dir(request);
        let deadline = Instant::now() + request.timeout;
        let mut delays = self.limits.restart_delays.iter();
        let mut waiting = self.waiting(request, &login).await;
        loop {
            let live = match waiting.take() {
                Some(live) => live,
                None => match self.start_anew(request, &config_dir, login.clone()).await {
                    Ok(live) => live,
                    Err(failure) => return AttemptReport::bare(AttemptEnd::Failed(failure)),
                },
            };
            let judge = live.judge.clone();
            let done = live.turn(request, deadline, &self.limits).await;
            if done.is_unclaimed {
                tracing::info!("the conversation's client had ended; another one is started");
                continue;
            }
            let mut report = self.report(request, &config_dir, done.termination, done.client, &done.exit);
            if let Some(live) = done.live {
                self.idle.put(live, &self.limits).await;
            }
            name_login(&mut report.end, &login);
            if let (Some(what), false) = (judge.taken_too_much(), report.end == AttemptEnd::Completed) {
                report.end = AttemptEnd::Failed(outcome::exceeded(&what));
            }
            let hung =
                matches!(&report.end, AttemptEnd::Failed(failure) if failure.class == FailureClass::InitializeTimeout);
            let Some(delay) = delays.next().filter(|_| hung) else { return report };
            tracing::warn!(?delay, "the agent client did not answer; it is started again");
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return AttemptReport { end: AttemptEnd::Cancelled, ..report },
                () = sleep_until(deadline) => return AttemptReport { end: outcome::timed_out(request.timeout), ..report },
                () = sleep(*delay) => {}
            }
        }
    }

    /// Takes the idle client for a turn of the main session. Returns it if its terms fit this request, and ends it otherwise.
    async fn waiting(&self, request: &Request, login: &Login) -> Option<LiveClient> {
        if !matches!(request.session, SessionMode::Main(_)) {
            return None;
        }
        let mut live = self.idle.take().await?;
        let terms = self.terms(request, &live.beginning, login.clone(), &live.broker, live.group.as_ref());
        let is_same = live.can_continue(request) && live.has_budget_for(request) && live.terms.are_within(&terms);
        if is_same {
            return Some(live);
        }
        live.end(self.limits.leave, &self.limits).await;
        None
    }

    /// Starts a client for a request.
    async fn start(&self, request: &Request, login: Login) -> Result<LiveClient, Failure> {
        let internal =
            |what: &str, error: std::io::Error| Failure::new(FailureClass::Internal, format!("{what}: {error}"));
        let broker = Broker::of(request).map_err(|error| internal("no token could be made", error))?;
        let group = self.groups.as_ref().map(|groups| groups.group(&request.run, &request.limits)).transpose();
        let group = group.map_err(|error| internal("no control group could be made", error))?;
        let beginning = TurnArgs { session: request.session.clone(), max_budget_usd: request.options.max_budget_usd };
        let terms = self.terms(request, &beginning, login, &broker, group.as_ref());
        fail_point!(BeforeSpawn);
        let live = LiveClient::start(self, request, terms, (beginning, broker, group)).await.map_err(|error| {
            let message = format!("cannot start the runner {}: {error}", self.shell_binary.display());
            Failure::new(FailureClass::SpawnFailed, message)
        })?;
        fail_point!(Spawned);
        Ok(live)
    }

    fn report(
        &self,
        request: &Request,
        config_dir: &Path,
        termination: Termination,
        client: ClientState,
        exit: &Exit,
    ) -> AttemptReport {
        let used = UsedClient { name: self.name(), version: client.version.clone(), is_agent: true };
        let transcript = client.session.as_ref().and_then(|session| transcript(config_dir, session));
        let shortened = client.compacted.unwrap_or_default();
        let shortened = format!("{}.", compacted(shortened.pre_tokens, shortened.post_tokens));
        // The client compacted by itself: the model continues with a summary, and the person should know.
        let by_itself = client.compacted.is_some() && request.session.is_attended() && request.prompt != COMPACT;
        let told = by_itself.then(|| shortened.clone()).into_iter().collect();
        let mut answer = client.answer.clone();
        if request.prompt == COMPACT {
            answer = client.compacted.map(|_| shortened).or(answer);
            // This text comes from no model, so the client has not reported it yet.
            answer.iter().for_each(|text| request.host.observe(Observation::Said { text: text.clone() }));
        }
        AttemptReport {
            end: outcome::name(termination, exit, &self.command, request, &client),
            answer,
            session: client.session,
            transcript,
            cost_usd: client.cost_usd,
            turns: client.turns,
            model: client.model,
            tokens: client.tokens,
            client: Some(used),
            messages: told,
            notices: Vec::new(),
        }
    }
}

/// Returns the paths that the client's command must be able to read: its file and, for a script of an npm package, the package.
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

/// Returns a client's folder for temporary files in its run's folder.
fn temporary(run_dir: &Path) -> PathBuf {
    run_dir.join("client")
}

/// Returns the folders of a client's configuration in which it writes.
fn records(config_dir: &Path) -> impl Iterator<Item = PathBuf> {
    RECORDS.iter().map(|name| config_dir.join(name))
}

/// Makes the folders in which a client writes. Removes from them what an earlier client may have left of its model's, and what clients
/// obey: of a run's own (`is_of_run`) everything, of the main session's everything but its records, which its clients share.
async fn make_folders(request: &Request, config_dir: &Path, is_of_run: bool) -> std::io::Result<()> {
    let [config_dir, temporary] = [config_dir.to_path_buf(), temporary(&request.run_dir)];
    let made = tokio::task::spawn_blocking(move || {
        if is_of_run {
            for folder in [&config_dir, &temporary] {
                if folder.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
                    leftovers::remove(folder)?;
                }
            }
        }
        [&config_dir, &temporary].into_iter().try_for_each(|folder| make_own(folder))?;
        if !is_of_run {
            remove_obeyed(&config_dir)?;
        }
        records(&config_dir).chain([config_dir.join(SESSION_ENV)]).try_for_each(|folder| make_own(&folder))
    });
    made.await?
}

/// Removes everything from a configuration folder that a client would obey. Of the snapshots it obeys its own only, by a random name.
fn remove_obeyed(config_dir: &Path) -> std::io::Result<()> {
    /// Held while the folder of the main session is cleared, which several clients use.
    static CLEARING: Mutex<()> = Mutex::new(());
    let _clearing = CLEARING.lock().unwrap_or_else(PoisonError::into_inner);
    for entry in std::fs::read_dir(config_dir)? {
        let entry = entry?;
        if entry.file_name() == SESSION_ENV && entry.file_type()?.is_dir() {
            // The domains of running clients are bound to this folder, so it stays.
            std::fs::read_dir(entry.path())?.try_for_each(|file| leftovers::remove(&file?.path()))?;
        } else if !RECORDS.iter().chain(&["shell-snapshots"]).any(|name| entry.file_name() == *name) {
            leftovers::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Creates a folder that only this user can access. Refuses a symlink, which a fork may have put there.
fn make_own(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if folder.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, "it is a symlink"))
}

/// Finds a session's transcript. The client keeps transcripts by working folder, under a name that only it can derive. `None` if there are
/// several: the client has one, so the model has written the others.
fn transcript(config_dir: &Path, session: &SessionId) -> Option<PathBuf> {
    // The client chose the id, so it must not lead to another folder.
    if session.0.contains(['/', '\0']) {
        return None;
    }
    let folders = std::fs::read_dir(config_dir.join("projects")).ok()?;
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join(format!("{session}.jsonl"))));
    let mut files = files.filter(|file| file.symlink_metadata().is_ok());
    let file = files.next().filter(|file| open_transcript(file).is_ok());
    file.filter(|_| files.next().is_none())
}

#[async_trait]
impl AgentClient for Claude {
    fn name(&self) -> &'static str {
        "claude"
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
