//! What a job's shell would do with a line: the line runs in the shell's own domain, with nothing to write to, and each program
//! that it starts is judged and not run. Programs return nothing and succeed, so a line whose course depends on what one
//! prints can take another turn than it would.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::{
    Answer, Bounds, Judge, Launch, Limits, SOCKET_VARIABLE, ShellService, Start, TOKEN_VARIABLE, capture, system,
};
use async_trait::async_trait;

use super::sandbox::{JobSandbox, Judged, SandboxPlan};
use crate::agent::claude::options::{ClientEnvironment, shell_environment};
use crate::policy::{Decision, Policy, ShellRights, Verdict};

/// A line that waits for something is ended after this.
const LONGEST: Duration = Duration::from_secs(10);

/// What a line may take while it is tried.
pub const LIMITS: Limits = Limits { memory: 1 << 30, processes: 128, disk: 64 << 20, cpus: None };

/// Files that others stand in for, at most.
const MOST_STAND_INS: usize = 8;

/// What came of a line.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The decision on each program, in the order in which they were started.
    pub programs: Vec<Decision>,
    /// What the shell itself said, e.g. that it may not open a file.
    pub said: Vec<String>,
    /// The line was still running after ten seconds.
    pub cut_off: bool,
    /// Every program is granted, so what a program may not do here it may do in a run.
    pub wide: bool,
}

impl DryRun {
    /// The first program that was refused.
    #[must_use]
    pub fn refused(&self) -> Option<&Decision> {
        self.programs.iter().find(|decision| decision.verdict == Verdict::Deny)
    }

    /// What the shell was kept from, by itself.
    #[must_use]
    pub fn kept_from(&self) -> Option<&str> {
        const REFUSALS: &[&str] =
            &["Permission denied", "Operation not permitted", "command not found", "No such file or directory"];
        let refusal = |line: &&String| {
            REFUSALS.iter().any(|refusal| line.contains(refusal)) && (!self.wide || line.starts_with("bash: "))
        };
        self.said.iter().find(refusal).map(String::as_str)
    }
}

/// Judges and records, and starts nothing.
struct Recorder {
    policy: Policy,
    sandbox: JobSandbox,
    seen: Mutex<Vec<Decision>>,
}

#[async_trait]
impl Judge for Recorder {
    async fn judge(&self, start: Start) -> Answer {
        let Judged { decision, answer } = self.sandbox.judge(&self.policy, &start);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
        match answer {
            Answer::Outside { .. } => Answer::Deny { code: 0, message: String::new() },
            answer => answer,
        }
    }
}

/// Runs `line` under `policy` without an effect. `plan.run_dir` is an empty folder of its own; `rights` are those of the job's
/// shell. `besides`: a variable that names a folder below it, which is made.
///
/// # Errors
/// When the sandbox cannot be made or the shell cannot be started.
pub async fn dry_run(
    policy: &Policy,
    plan: SandboxPlan,
    rights: &ShellRights,
    client_environment: &ClientEnvironment,
    line: &str,
    besides: Option<(&str, &Path)>,
) -> io::Result<DryRun> {
    let (run_dir, work, binary) = (plan.run_dir.clone(), plan.home.work(), plan.shell_binary.clone());
    let temporary = run_dir.join("tmp");
    // Each program is asked about, those too that could run unasked.
    let wide = rights.everything;
    let rights = ShellRights { everything: false, ..rights.clone() };
    let sandbox = JobSandbox::make(plan, Some(&rights))?;
    let Some(mut spec) = sandbox.for_client(false).shell else { return Err(io::ErrorKind::InvalidInput.into()) };
    let writable = spec.domain.write.clone();
    spec.domain.write = system::sinks().into_iter().chain([temporary.clone()]).collect();
    let besides = besides.map(|(name, folder)| std::fs::create_dir(folder).map(|()| (name, folder))).transpose()?;
    let besides = besides.map(|(name, folder)| (name.to_owned(), folder.display().to_string()));
    spec.env = shell_environment(client_environment, &temporary).into_iter().chain(besides).chain(spec.env).collect();
    let service = ShellService {
        socket: run_dir.join("shell.sock"),
        token: agent_sandbox::token::random()?,
        spec,
        agents: BTreeMap::new(),
    };
    let env = BTreeMap::from([
        (SOCKET_VARIABLE.to_owned(), service.socket.display().to_string()),
        (TOKEN_VARIABLE.to_owned(), service.token.clone()),
    ]);
    let recorder = Arc::new(Recorder { policy: policy.clone(), sandbox, seen: Mutex::default() });
    let mut line = line.to_owned();
    let mut stood_in = 0;
    loop {
        let launch = Launch {
            program: run_dir.join(agent_sandbox::shell::FOLDER).join("bash"),
            args: vec!["-c".into(), as_the_client_does(&line)],
            env: env.clone(),
            work_dir: work.clone(),
            secret: None,
            domain: None,
            shell: Some(service.clone()),
            bounds: Some(Bounds { limits: LIMITS, folder: run_dir.clone(), group: None }),
        };
        let output = tokio::time::timeout(LONGEST, capture(Path::new(&binary), &launch, recorder.clone())).await;
        let (cut_off, stderr) = match output {
            Ok(output) => (false, output?.stderr),
            Err(_) => (true, Vec::new()),
        };
        let said = said(&String::from_utf8_lossy(&stderr), wide);
        let programs = std::mem::take(&mut *recorder.seen.lock().unwrap_or_else(PoisonError::into_inner));
        // A file that the line may write is not written here: another one stands in for it, and the line runs once more.
        let stopped = said.iter().filter_map(|line| file_of(line));
        let mut granted = stopped.filter(|file| writable.iter().any(|tree| work.join(file).starts_with(tree)));
        match granted.find(|file| line.contains(*file)).map(str::to_owned) {
            Some(file) if stood_in < MOST_STAND_INS => {
                stood_in += 1;
                line = line.replace(&file, &temporary.join(format!("stands-in-{stood_in}")).display().to_string());
            }
            _ => return Ok(DryRun { programs, said, cut_off, wide }),
        }
    }
}

/// The lines that are the shell's or its programs' own. `wide`: every program is granted, so that a path which the shell may not
/// execute here is executed in a run.
fn said(text: &str, wide: bool) -> Vec<String> {
    let by_path = |line: &str| {
        wide && line.starts_with("bash: ") && line.ends_with(": Permission denied") && line.contains(": /")
    };
    let own = text.lines().filter(|line| !by_path(line) && !line.starts_with("ollim-bot: "));
    own.map(str::to_owned).collect()
}

/// The file that bash says it may not open: `bash: line 1: notes/x: Permission denied`.
fn file_of(said: &str) -> Option<&str> {
    let file = said.strip_suffix(": Permission denied")?.strip_prefix("bash: line ")?;
    file.split_once(": ").map(|(_, file)| file)
}

/// The script in which the client hands a line to its shell.
#[must_use]
pub fn as_the_client_does(line: &str) -> String {
    format!("shopt -u extglob 2>/dev/null || true && eval '{}' < /dev/null", line.replace('\'', r"'\''"))
}
