//! A job's shell without a client around it: the real sandbox, broker and bash, and the policy that decides. The hook is not
//! involved, so every restriction here also holds without the hook.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_sandbox::runner::PrespawnedRunner;
use agent_sandbox::{
    Answer, Judge, Launch, SOCKET_VARIABLE, SentLaunch, ShellService, Start, TOKEN_VARIABLE, capture, listen_until,
    system,
};
use async_trait::async_trait;
use ollim_bot::agent::claude::options::{ClientEnvironment, shell_environment};
use ollim_bot::home::Home;
use ollim_bot::policy::{Decision, Policy, ToolPattern, Verdict};
use ollim_bot::run::dry_run::client_script;
use ollim_bot::run::sandbox::{ClosedPlaces, JobSandbox, Judged, SandboxPlan};

/// Time limit of a line.
const LONGEST: Duration = Duration::from_secs(30);

/// The folders and the environment of a job's shell.
pub struct ShellPaths {
    pub home: Home,
    pub user_home: PathBuf,
    pub path: Vec<PathBuf>,
    /// The service's own environment. `added` holds the variables set for every job.
    pub own: BTreeMap<String, String>,
    pub added: BTreeMap<String, String>,
    /// Paths that stub programs must read. `stubs_write` holds those that they must write.
    pub stubs_read: Vec<PathBuf>,
    pub stubs_write: Vec<PathBuf>,
}

/// The result of a line.
#[derive(Debug)]
pub struct LineResult {
    /// Standard output, then standard error.
    pub output: String,
    pub code: Option<i32>,
    /// The broker's requests for a verdict on a program, in order.
    pub starts: Vec<(Start, Decision)>,
    /// Whether the line was ended after [`LONGEST`].
    pub cut_off: bool,
}

impl LineResult {
    /// Returns the reasons for which programs were refused.
    pub fn refusals(&self) -> Vec<&str> {
        let denied = self.starts.iter().filter(|(_, decision)| decision.verdict == Verdict::Deny);
        denied.map(|(_, decision)| decision.reason.as_str()).collect()
    }
}

struct Asked {
    policy: Policy,
    sandbox: JobSandbox,
    clean: BTreeMap<String, String>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    seen: Mutex<Vec<(Start, Decision)>>,
}

#[async_trait]
impl Judge for Asked {
    async fn judge(&self, start: Start) -> Answer {
        let Judged { decision, mut answer } = self.sandbox.judge(&self.policy, &start);
        self.seen.lock().unwrap().push((start, decision));
        if let Answer::Outside { env, domain, .. } = &mut answer {
            domain.read.extend(self.reads.iter().cloned());
            domain.write.extend(self.writes.iter().cloned());
            *env = self.clean.clone().into_iter().chain(std::mem::take(env)).collect();
        }
        answer
    }
}

/// The program that becomes a runner.
const RUNNER: &str = env!("CARGO_BIN_EXE_ollim-shell");

impl ShellPaths {
    /// Runs `line` in `cwd`, in the form in which the client passes it to its shell.
    pub fn run(&self, policy: &Policy, granted: &[ToolPattern], line: &str, cwd: &Path) -> LineResult {
        let Some((launch, judge)) = self.launch(policy, granted, line, cwd) else {
            return LineResult { output: String::new(), code: None, starts: Vec::new(), cut_off: false };
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = judge.clone();
        let ended =
            runtime.block_on(async { tokio::time::timeout(LONGEST, capture(Path::new(RUNNER), &launch, asked)).await });
        let starts = std::mem::take(&mut *judge.seen.lock().unwrap());
        let Ok(output) = ended else { return LineResult { output: String::new(), code: None, starts, cut_off: true } };
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&text).into_owned();
        LineResult { output: output_text, code: output.status.code(), starts, cut_off: false }
    }

    /// Runs `line` in the job's shell, without a client, once `ready` completes. Returns the error of `ready`, or the exit code.
    pub async fn run_once(
        &self,
        policy: &Policy,
        granted: &[ToolPattern],
        line: &str,
        ready: impl Future<Output = io::Result<()>>,
    ) -> io::Result<Option<i32>> {
        let (launch, judge) = self.launch(policy, granted, line, &self.home.work()).unwrap();
        let launch = Launch { domain: None, ..launch };
        let runner = PrespawnedRunner::start(Path::new(RUNNER)).await?;
        let ended = listen_until(
            SentLaunch::send(runner, &launch).await?,
            judge,
            ready,
            std::future::pending(),
            &mut |_, _| {},
        )
        .await?;
        Ok(ended.and_then(|status| status.code()))
    }

    /// Returns the launch of `line`, with its judge. `None` if the policy grants no shell.
    fn launch(&self, policy: &Policy, granted: &[ToolPattern], line: &str, cwd: &Path) -> Option<(Launch, Arc<Asked>)> {
        let run_dir = self.home.runs().join("0a1b2c3d");
        std::fs::create_dir_all(&run_dir).unwrap();
        let shell_binary = PathBuf::from(RUNNER);
        let plan = SandboxPlan {
            home: self.home.clone(),
            user_home: self.user_home.clone(),
            run_dir: run_dir.clone(),
            links: run_dir.clone(),
            granted: granted.to_vec(),
            path: self.path.clone(),
            shell_binary: shell_binary.clone(),
            required: false,
            limits: agent_sandbox::Limits::default(),
            network: true,
            proxied: false,
            closed: ClosedPlaces::default(),
        };
        let rights = policy.shell(None)?;
        let sandbox = JobSandbox::make(plan, Some(&rights)).unwrap();
        let limited = sandbox.for_client(true);
        let (mut domain, mut spec) = (limited.client.unwrap(), limited.shell.unwrap());
        domain.write.extend(system::sinks().into_iter().chain([run_dir.clone()]));
        domain.execute.push(shell_binary.clone());
        if rights.everything {
            // In this case stub programs run in the shell's own domain.
            for one in [&mut domain, &mut spec.domain] {
                one.read.extend(self.stubs_read.iter().cloned());
                one.write.extend(self.stubs_write.iter().cloned());
            }
        }
        let client_environment =
            ClientEnvironment { own: self.own.clone(), added: self.added.clone(), ..ClientEnvironment::default() };
        let mut clean = shell_environment(&client_environment, &run_dir.join("tmp"));
        let socket = run_dir.join("shell.sock");
        clean.insert(SOCKET_VARIABLE.into(), socket.display().to_string());
        clean.insert(TOKEN_VARIABLE.into(), "token".into());
        clean.extend(std::mem::take(&mut spec.env));
        spec.env = clean.clone();
        clean.insert("OLLIM_HOME".into(), self.home.root().display().to_string());
        clean.insert("OLLIM_RUN_TOKEN".into(), "run-token".into());
        let launch = Launch {
            program: run_dir.join(agent_sandbox::shell::FOLDER).join("bash"),
            args: vec!["-c".into(), client_script(line)],
            env: spec.env.clone(),
            work_dir: cwd.to_owned(),
            folder: run_dir.clone(),
            secret: None,
            domain: Some(domain),
            shell: Some(ShellService { socket, token: "token".into(), spec, agents: BTreeMap::new() }),
            bounds: None,
        };
        let judge = Arc::new(Asked {
            policy: policy.clone(),
            sandbox,
            clean,
            reads: self.stubs_read.clone(),
            writes: self.stubs_write.clone(),
            seen: Mutex::default(),
        });
        Some((launch, judge))
    }
}
