//! A command line in a job's shell, without an agent. Each program is judged as in a run, and has the rights that the job's rules
//! grant. The judge is a parameter: it differs between a gate ([`super::gate`]) and a job's command ([`super::exec`]).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use agent_sandbox::cgroup::Group;
use agent_sandbox::runner::PrespawnedRunner;
use agent_sandbox::{
    Bounds, Judge, Launch, Limits, SOCKET_VARIABLE, SentLaunch, ShellService, ShellSpec, Stream, TOKEN_VARIABLE,
    listen_until,
};
use futures::future::BoxFuture;
use serde_json::json;

use super::dry_run::client_script;
use super::host::Host;
use super::runner::{RunSettings, Runner};
use super::sandbox::JobSandbox;
use super::tokens::{Grant, RunAuthority};
use crate::agent::claude::options::shell_environment;
use crate::journal::{Denial, RunId};
use crate::policy::{Policy, ToolCall, Verdict};
use crate::refusal::Refusal;
use crate::schedule::Job;

/// A line that is ready to run.
pub struct ShellLine {
    /// The text of the line.
    pub line: String,
    /// Whether standard error goes where standard output goes, so that both are heard in the order in which they were written.
    pub is_one_stream: bool,
    /// The job's shell.
    pub shell: ShellSpec,
    /// The run's own folder.
    pub run_dir: PathBuf,
    /// The working folder.
    pub work: PathBuf,
    /// The runner of its processes.
    pub runner: PrespawnedRunner,
    /// The environment of every shell and program.
    pub clean: BTreeMap<String, String>,
    /// Additional variables of programs outside of the shell.
    pub of_programs: BTreeMap<String, String>,
    /// Resource limits of its processes.
    pub limits: Limits,
    /// The control group of its processes, removed with it; `None` if none is delegated to the service.
    pub group: Option<Group>,
}

impl ShellLine {
    /// Sends the line to its runner. Its shell prepares itself, and does not begin before [`SentLine::run`].
    ///
    /// # Errors
    /// An error if its shell cannot be started.
    pub async fn send(self) -> io::Result<SentLine> {
        let group = self.group.as_ref().map(Group::folder);
        let (socket, token) = (self.run_dir.join("shell.sock"), agent_sandbox::token::random()?);
        let presented = BTreeMap::from([
            (SOCKET_VARIABLE.to_owned(), socket.display().to_string()),
            (TOKEN_VARIABLE.to_owned(), token.clone()),
        ]);
        let mut spec = self.shell;
        spec.limits = self.limits;
        spec.env = self.clean.into_iter().chain(presented.clone()).chain(spec.env).collect();
        let of_programs = spec.env.clone().into_iter().chain(self.of_programs).collect();
        let join = if self.is_one_stream { "exec 2>&1 && " } else { "" };
        let launch = Launch {
            program: agent_sandbox::shell::link_in(&self.run_dir),
            args: vec!["-c".into(), format!("{join}{}", client_script(&self.line))],
            env: presented,
            work_dir: self.work,
            folder: self.run_dir.clone(),
            secret: None,
            // The shell enters its own domain before it reads the line.
            domain: None,
            shell: Some(ShellService { socket, token, spec, agents: BTreeMap::new() }),
            bounds: Some(Bounds { limits: self.limits, folder: self.run_dir, group: group.map(Path::to_owned) }),
        };
        let sent = SentLaunch::send(self.runner, &launch).await?;
        Ok(SentLine { sent, of_programs, group: self.group })
    }
}

/// A line whose shell prepares itself.
#[derive(Debug)]
pub struct SentLine {
    sent: SentLaunch,
    /// The environment of programs outside of the shell.
    pub of_programs: BTreeMap<String, String>,
    /// As [`ShellLine::group`].
    group: Option<Group>,
}

impl SentLine {
    /// Runs the line to its end; `None` if `until` completes first. It begins when `ready` completes. None of its processes remains. `judge`
    /// receives the environment of programs outside of the shell; `heard` receives the output.
    ///
    /// # Errors
    /// An error if `ready` fails, or if its shell does not end.
    pub async fn run(
        self,
        judge: impl FnOnce(BTreeMap<String, String>) -> Arc<dyn Judge>,
        ready: impl Future<Output = io::Result<()>>,
        until: impl Future<Output = ()>,
        heard: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> io::Result<Option<ExitStatus>> {
        let ended = listen_until(self.sent, judge(self.of_programs), ready, until, heard).await;
        // It can be removed when it is empty.
        drop(self.group);
        ended
    }

    /// Ends the shell, which has not begun. None of its processes remains.
    pub async fn discard(self) {
        if let Err(error) = self.sent.discard().await {
            tracing::error!(%error, "the shell of a run that did not begin does not end");
        }
    }
}

/// The signals with which the kernel enforces the limits of a process.
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Describes the end of a shell.
pub(super) fn how_it_ended(code: Option<i32>) -> String {
    match code {
        // A shell reports the signal of a program in this way. 129 is more often a code that the program chose (git: wrong usage).
        Some(code @ 130..=192) => {
            let why = match code - 128 {
                SIGXCPU => ", since its processor time was used up",
                SIGXFSZ => ", since a file became larger than its limit",
                _ => "",
            };
            format!("by signal {}{why}", code - 128)
        }
        Some(code) => format!("with exit code {code}"),
        None => "by a signal".to_owned(),
    }
}

/// Quotes the output of a job in a sentence of the service. Its own quotation marks cannot end the quotation.
pub(super) fn quoted(output: &str) -> String {
    format!("\"{}\"", output.replace('"', "'"))
}

/// A line of a job's file.
pub(super) struct FileLine<'a> {
    pub(super) text: &'a str,
    /// As [`ShellLine::is_one_stream`].
    pub(super) is_one_stream: bool,
    /// The policy that judges it.
    pub(super) policy: &'a Policy,
    /// The sandbox of its shell; `None` if the job has none.
    pub(super) sandbox: Option<&'a JobSandbox>,
}

/// What a line of a job's run needs to begin.
pub(super) struct Beginning {
    /// The grant of the run's token. Dropping it revokes the token.
    pub own: Grant,
    /// Records what must be on the disk before the line begins.
    pub ready: BoxFuture<'static, io::Result<()>>,
}

impl Runner {
    /// Takes or starts a runner for a line of a job. It starts while the rest of the run is prepared, and ends when it is dropped.
    ///
    /// # Errors
    /// An error if the runner cannot be started.
    pub(super) async fn line_runner(&self) -> Result<PrespawnedRunner, Refusal> {
        let started = self.ready.take(&self.shell_binary).await;
        started.map_err(|error| Refusal::environment(format!("the sandbox's runner cannot be started: {error}")))
    }

    /// Prepares a line of a job's file for the job's shell. `Ok(Err(denial))`: the job's tools do not cover the line.
    ///
    /// # Errors
    /// An error if our own part failed.
    pub(super) fn shell_line(
        &self,
        line: &FileLine<'_>,
        run: &RunId,
        runner: PrespawnedRunner,
        settings: &RunSettings,
    ) -> Result<Result<ShellLine, Denial>, Refusal> {
        let call = ToolCall {
            tool: "Bash".into(),
            input: json!({ "command": line.text }),
            cwd: self.home.work(),
            agent_type: None,
        };
        let early = line.policy.decide(&call);
        let shell = line.sandbox.and_then(|sandbox| sandbox.for_client(false).shell);
        let Some(shell) = shell.filter(|_| early.verdict != Verdict::Deny) else {
            let (layer, reason) = (early.layer.to_string(), early.reason);
            return Ok(Err(Denial { tool: "Bash".into(), input: call.input, layer, rule: early.rule, reason }));
        };
        let group = self.groups.as_ref().map(|groups| groups.group(run.as_str(), &settings.limits)).transpose();
        let run_dir = self.home.runs().join(run.as_str());
        let clean = shell_environment(&self.client_environment, &run_dir.join("tmp"));
        Ok(Ok(ShellLine {
            line: line.text.to_owned(),
            is_one_stream: line.is_one_stream,
            shell,
            run_dir,
            work: self.home.work(),
            runner,
            clean,
            of_programs: [("OLLIM_HOME".to_owned(), self.client_environment.data_folder.clone())].into(),
            limits: settings.limits,
            group: group.map_err(|error| Refusal::environment(format!("no control group could be made: {error}")))?,
        }))
    }

    /// Returns what a line of a job needs to begin. Adds the variable by which its programs present the run's token. `effect`: the side effect
    /// that is recorded for the run before, if any.
    ///
    /// # Errors
    /// An error if the run can have no token.
    pub(super) fn beginning(
        &self,
        job: &Job,
        host: &Arc<Host>,
        effect: Option<&'static str>,
        of_programs: &mut BTreeMap<String, String>,
    ) -> Result<Beginning, Refusal> {
        let limit = host.limit.of_line(&job.definition);
        let authority = RunAuthority::new(job.run.clone(), job.definition.title(), limit, Arc::clone(host) as _);
        let granted = self.tokens.grant(authority);
        let failed = |error| Refusal::environment(format!("no token could be made for the run: {error}"));
        let own = granted.map_err(failed)?;
        of_programs.insert("OLLIM_RUN_TOKEN".to_owned(), own.token().to_owned());
        Ok(Beginning { own, ready: self.recorded(job, host, effect) })
    }

    /// Returns what records, before a line begins, that it may have a side effect, and the run's payer: that one also pays for the agents and
    /// jobs that the line creates.
    fn recorded(
        &self,
        job: &Job,
        host: &Arc<Host>,
        effect: Option<&'static str>,
    ) -> BoxFuture<'static, io::Result<()>> {
        let (journal, host) = (self.journal.clone(), Arc::clone(host));
        let (run, definition) = (job.run.clone(), Arc::clone(&job.definition));
        Box::pin(async move {
            let marked = async {
                match effect {
                    Some(what) => host.mark(what).await,
                    None => Ok(()),
                }
            };
            let recorded = tokio::try_join!(journal.record_payer(&run, &definition), marked);
            let failed = |error| io::Error::other(format!("that cannot be recorded: {error}"));
            recorded.map(drop).map_err(failed)
        })
    }
}
