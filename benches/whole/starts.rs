//! The cost of the sandbox for a program that a job's line starts, and for a Bash call: a job's real shell, broker and policy, beside
//! plain bash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_sandbox::{
    Answer, Judge, Launch, Limits, SOCKET_VARIABLE, ShellService, Start, TOKEN_VARIABLE, capture, token,
};
use async_trait::async_trait;
use ollim_bot::agent::claude::options::{ClientEnvironment, shell_environment};
use ollim_bot::home::Home;
use ollim_bot::policy::{self, BgForkConfig, PathRoots, Policy, ToolPattern, UpdateMode, default_main_tools};
use ollim_bot::run::dry_run::client_script;
use ollim_bot::run::sandbox::{ClosedPlaces, JobSandbox, SandboxPlan};

use super::{Plan, ms, percentile, row};

/// Programs in a line, and calls in a session.
const TIMES: u32 = 100;

/// Number of rounds; the figure is their median.
const ROUNDS: usize = 9;

struct Judged {
    policy: Policy,
    sandbox: JobSandbox,
    clean: BTreeMap<String, String>,
}

#[async_trait]
impl Judge for Judged {
    async fn judge(&self, start: Start) -> Answer {
        match self.sandbox.judge(&self.policy, &start).answer {
            Answer::Outside { program, env, domain, takes_umask, own_folder } => Answer::Outside {
                program,
                env: self.clean.clone().into_iter().chain(env).collect(),
                domain,
                takes_umask,
                own_folder,
            },
            answer => answer,
        }
    }
}

pub fn measure(_plan: &Plan) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let loops = |line: &str| format!("i=0; while [ $i -lt {TIMES} ]; do {line}; i=$((i+1)); done");
    // Each round starts the same program; the time of the rest is subtracted.
    let starts = |program: &str| loops(&format!("{program} --version >/dev/null"));
    let beyond = |ours: Duration, plain: Duration| {
        let each = |time: Duration| ms(time / TIMES);
        format!("{} beyond {}", each(ours.saturating_sub(plain)), each(plain))
    };
    let bash = |script: &str| {
        let script = script.to_owned();
        move || assert!(Command::new("/bin/bash").arg("-c").arg(&script).status().unwrap().success())
    };
    let plain = median(bash(&starts("git")));
    let (one, all) = (client_script("git --version >/dev/null"), client_script(&starts("git")));
    // One line with many programs, minus the same line with one.
    let (one, all) = (median(|| in_shell(&root, &one, 1)), median(|| in_shell(&root, &all, 1)));
    row("a granted program's start, beyond fork and exec", "3 ms", &beyond(all.saturating_sub(one), plain), "");
    let call = client_script("true");
    let plain = median(bash(&loops("/bin/bash -c true")));
    let ours = median(|| in_shell(&root, &call, TIMES)).saturating_sub(median(|| in_shell(&root, &call, 0)));
    row("a Bash call, beyond plain bash", "20 ms", &beyond(ours, plain), "");
}

fn median(work: impl Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    percentile(&mut times, 50)
}

/// Makes a stand-in for the client call its shell with `script` this many times.
fn in_shell(root: &Path, script: &str, times: u32) {
    let home = Home::new(root.join("bot"));
    let run_dir = home.runs().join("0a1b2c3d");
    for folder in [&run_dir, &home.work(), &home.bin()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let granted: Vec<ToolPattern> = vec![ToolPattern::parse("Bash(git --version)").unwrap()];
    let config = BgForkConfig::new(UpdateMode::default(), true, Some(granted.clone()), None).unwrap();
    let user_home = root.to_owned();
    let places = PathRoots { root: home.root().to_owned(), work: home.work(), user_home: user_home.clone() };
    let policy = policy::background("routine x", &config, &default_main_tools(), &places);
    let shell_binary = PathBuf::from(env!("CARGO_BIN_EXE_ollim-shell"));
    let plan = SandboxPlan {
        home: home.clone(),
        user_home,
        run_dir: run_dir.clone(),
        links: run_dir.clone(),
        granted,
        path: std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect(),
        shell_binary: shell_binary.clone(),
        required: false,
        limits: Limits::default(),
        network: true,
        proxied: false,
        closed: ClosedPlaces::default(),
    };
    let sandbox = JobSandbox::make(plan, policy.shell(None).as_ref()).unwrap();
    let mut spec = sandbox.for_client(false).shell.unwrap();
    let mut clean = shell_environment(&ClientEnvironment::default(), &run_dir.join("tmp"));
    let socket = run_dir.join("shell.sock");
    let token = token::random().unwrap();
    clean.insert(SOCKET_VARIABLE.into(), socket.display().to_string());
    clean.insert(TOKEN_VARIABLE.into(), token.clone());
    clean.extend(std::mem::take(&mut spec.env));
    spec.env = clean.clone();
    let shell = run_dir.join(agent_sandbox::shell::FOLDER).join("bash");
    let calls = format!("i=0; while [ $i -lt {times} ]; do \"$1\" -c \"$2\" || exit; i=$((i+1)); done");
    let launch = Launch {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), calls, "client".into(), shell.display().to_string(), script.to_owned()],
        env: clean.clone(),
        work_dir: home.work(),
        folder: run_dir.clone(),
        secret: None,
        domain: None,
        shell: Some(ShellService { socket, token, spec, agents: BTreeMap::new() }),
        bounds: None,
    };
    let judge = Arc::new(Judged { policy, sandbox, clean });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let output = runtime.block_on(capture(&shell_binary, &launch, judge)).unwrap();
    assert!(output.status.success(), "{output:?}");
}
