//! A dry run of a command line in a job's shell. The line runs in the shell's own domain and can write only temporary files.
//! Every program is judged. Programs that a rule grants do not run: they print nothing and succeed. So a line that depends on
//! their output can take another course than in a run.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::{
    Answer, Bounds, Judge, Launch, Limits, SOCKET_VARIABLE, ShellService, Start, TOKEN_VARIABLE, capture_until, system,
};
use async_trait::async_trait;

use super::sandbox::{JobSandbox, Judged, SandboxPlan};
use crate::agent::claude::options::{ClientEnvironment, shell_environment};
use crate::policy::{Decision, Layer, Policy, ShellRights, Verdict};

/// Time after which a dry run is ended.
const LONGEST: Duration = Duration::from_secs(10);

/// Resource limits of a dry run.
pub const LIMITS: Limits = Limits { memory: 1 << 30, processes: 128, disk: 64 << 20, cpus: None };

/// Maximum number of files that are replaced by stand-ins.
const MAX_STAND_INS: usize = 8;

/// The result of a dry run.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The decisions on programs, in the order of their starts.
    pub programs: Vec<Decision>,
    /// The shell's own messages, e.g. that it may not open a file.
    pub said: Vec<String>,
    /// Whether the line was still running after ten seconds.
    pub cut_off: bool,
    /// Whether every program is granted. A run then permits accesses that a program is denied here.
    pub wide: bool,
}

impl DryRun {
    /// Returns the first program that was refused.
    #[must_use]
    pub fn refused(&self) -> Option<&Decision> {
        self.programs.iter().find(|decision| decision.verdict == Verdict::Deny)
    }

    /// Returns the first program of `line` that the shell did not find: of `bash: line 1: gh: command not found`, `gh`.
    #[must_use]
    pub fn missing_program(&self, line: &str) -> Option<&str> {
        self.said.iter().find_map(|said| {
            let (before, why) = said.rsplit_once(": ")?;
            let name = before.rsplit(": ").next().filter(|name| !name.is_empty())?;
            let is_missing = match why {
                "command not found" => line.contains(name),
                // The shell says the same of a missing file.
                "No such file or directory" => name.contains('/') && starts(line, name),
                _ => false,
            };
            is_missing.then_some(name)
        })
    }

    /// Returns the shell's first message about something that it could not access or find.
    #[must_use]
    pub fn access_error(&self) -> Option<&str> {
        const REFUSALS: &[&str] =
            &["Permission denied", "Operation not permitted", "command not found", "No such file or directory"];
        let refusal = |line: &&String| {
            REFUSALS.iter().any(|refusal| line.contains(refusal)) && (!self.wide || line.starts_with("bash: "))
        };
        self.said.iter().find(refusal).map(String::as_str)
    }
}

/// A judge that records its decisions, and starts no program outside of the shell's domain.
struct Recorder {
    policy: Policy,
    sandbox: JobSandbox,
    /// Whether a run would start most programs without a judgement.
    wide: bool,
    seen: Mutex<Vec<Decision>>,
}

#[async_trait]
impl Judge for Recorder {
    async fn judge(&self, start: Start) -> Answer {
        let Judged { mut decision, answer } = self.sandbox.judge(&self.policy, &start);
        // The rules grant it, and its file must not be started.
        if let Answer::Deny { code: 126, message } = &answer
            && decision.verdict != Verdict::Deny
            && !self.wide
        {
            let reason = message.clone();
            decision = Decision { verdict: Verdict::Deny, layer: Layer::System, rule: None, reason, ..decision };
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
        match answer {
            Answer::Outside { .. } => Answer::Deny { code: 0, message: String::new() },
            answer => answer,
        }
    }
}

/// Runs `line` under `policy` without an effect. `plan.run_dir` is an empty folder for this run; `rights` are those of the job's
/// shell. `besides` names a variable and the folder below `run_dir` that it points to; the folder is created.
///
/// # Errors
/// An error if the sandbox cannot be set up or the shell cannot be started.
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
    // The shell asks about each program, even if it could start all of them unasked.
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
    let recorder = Arc::new(Recorder { policy: policy.clone(), sandbox, wide, seen: Mutex::default() });
    let mut line = line.to_owned();
    let mut stood_in = 0;
    loop {
        let launch = Launch {
            program: agent_sandbox::shell::link_in(&run_dir),
            args: vec!["-c".into(), client_script(&line)],
            env: env.clone(),
            work_dir: work.clone(),
            folder: run_dir.clone(),
            secret: None,
            domain: None,
            shell: Some(service.clone()),
            bounds: Some(Bounds { limits: LIMITS, folder: run_dir.clone(), group: None }),
        };
        let longest = tokio::time::sleep(LONGEST);
        let output = capture_until(Path::new(&binary), &launch, recorder.clone(), longest).await?;
        let (cut_off, stderr) = output.map_or((true, Vec::new()), |output| (false, output.stderr));
        let said = error_lines(&String::from_utf8_lossy(&stderr), wide);
        let programs = std::mem::take(&mut *recorder.seen.lock().unwrap_or_else(PoisonError::into_inner));
        // A file that a run could write cannot be written here. A stand-in replaces it, and the line runs again.
        let stopped = said.iter().filter_map(|line| file_of(line));
        let mut granted = stopped.filter(|file| writable.iter().any(|tree| work.join(file).starts_with(tree)));
        match granted.find(|file| line.contains(*file)).map(str::to_owned) {
            Some(file) if stood_in < MAX_STAND_INS => {
                stood_in += 1;
                line = line.replace(&file, &temporary.join(format!("stands-in-{stood_in}")).display().to_string());
            }
            _ => return Ok(DryRun { programs, said, cut_off, wide }),
        }
    }
}

/// Returns the messages of the shell and its programs. With `wide`, every program is granted, so a denial to execute a path is
/// left out: a run would execute it.
fn error_lines(text: &str, wide: bool) -> Vec<String> {
    let by_path = |line: &str| {
        wide && line.starts_with("bash: ") && line.ends_with(": Permission denied") && line.contains(": /")
    };
    let own = text.lines().filter(|line| !by_path(line) && !line.starts_with("ollim-bot: "));
    own.map(str::to_owned).collect()
}

/// Returns whether the path stands where `line` names a program, rather than a file.
fn starts(line: &str, path: &str) -> bool {
    let before = line.match_indices(path).map(|(at, _)| line[..at].trim_end_matches([' ', '\t']));
    before.into_iter().any(|before| before.is_empty() || before.ends_with(['\n', ';', '&', '|', '(', '{']))
}

/// Returns the file that bash may not open, from a line such as `bash: line 1: notes/x: Permission denied`.
fn file_of(said: &str) -> Option<&str> {
    let file = said.strip_suffix(": Permission denied")?.strip_prefix("bash: line ")?;
    file.split_once(": ").map(|(_, file)| file)
}

/// Returns the script in which the client passes a line to its shell, with quotes as the client writes them.
#[must_use]
pub fn client_script(line: &str) -> String {
    format!("shopt -u extglob 2>/dev/null || true && eval '{}' < /dev/null", line.replace('\'', r#"'"'"'"#))
}
