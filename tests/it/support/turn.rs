//! One turn of an agent client without a bot around it: folders, a request, and a host that records all questions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_sandbox::prespawn::PrespawnSlot;
use agent_sandbox::{Answer, Domain, Network, SandboxStatus, Start, system};
use async_trait::async_trait;
use ollim_bot::agent::claude::login::LoginSources;
use ollim_bot::agent::claude::options::ClientEnvironment;
use ollim_bot::agent::claude::{Claude, IdleClient, Limits};
use ollim_bot::agent::{
    AgentClient, AttemptReport, ClientOptions, Request, RunHost, Sandbox, SessionId, SessionMode, ToolAnswer,
};
use ollim_bot::clock::Clock;
use ollim_bot::home::Home;
use ollim_bot::policy::{
    self, BgForkConfig, Decision, Layer, PathRoots, Policy, ToolCall, ToolPattern, UpdateMode, Verdict,
    default_main_tools,
};
use ollim_bot::run::sandbox::{ClosedPlaces, JobSandbox, SandboxPlan};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The host's response to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookReply {
    Allow,
    Deny,
    /// The host never answers.
    Nothing,
    /// The host panics.
    Panic,
}

type Rule = dyn Fn(&ToolCall) -> HookReply + Send + Sync;

type Judges = dyn Fn(&Start) -> Answer + Send + Sync;

/// A host that records all questions and notifications.
pub struct Host {
    rule: Box<Rule>,
    pub asked: Mutex<Vec<ToolCall>>,
    pub served: Mutex<Vec<(String, Value)>>,
    pub started: Mutex<Vec<(u32, Option<SessionId>)>>,
    pub client_denied: Mutex<Vec<(String, String)>>,
    pub delivered: Mutex<Vec<String>>,
    /// For each `Stop` question, whether it followed one that was refused.
    pub stops: Mutex<Vec<bool>>,
    /// The reason with which the first `Stop` question is refused.
    pub go_on: Option<String>,
    /// The judge of the programs that the client's shell starts.
    pub judges: Option<Box<Judges>>,
}

impl Host {
    pub fn new(rule: impl Fn(&ToolCall) -> HookReply + Send + Sync + 'static) -> Self {
        Self {
            rule: Box::new(rule),
            asked: Mutex::default(),
            served: Mutex::default(),
            started: Mutex::default(),
            client_denied: Mutex::default(),
            delivered: Mutex::default(),
            stops: Mutex::default(),
            go_on: None,
            judges: None,
        }
    }

    /// Returns the tools that the host was asked about, in order.
    pub fn asked_tools(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|call| call.tool.clone()).collect()
    }
}

#[async_trait]
impl RunHost for Host {
    async fn decide(&self, call: ToolCall) -> Decision {
        let say = (self.rule)(&call);
        let reason = format!("{say:?} by the test: {}", call.tool);
        self.asked.lock().unwrap().push(call);
        let verdict = match say {
            HookReply::Allow => Verdict::Allow,
            HookReply::Deny => Verdict::Deny,
            HookReply::Nothing => std::future::pending().await,
            HookReply::Panic => panic!("on purpose: the engine fails"),
        };
        Decision { verdict, layer: Layer::AllowedTools, rule: None, reason, commands: vec![], read_only: false }
    }
    async fn judge(&self, start: Start) -> Answer {
        match &self.judges {
            Some(judges) => judges(&start),
            None => Answer::Deny { code: 126, message: "denied by the test".into() },
        }
    }
    fn may_continue(&self) -> bool {
        self.go_on.is_some()
    }
    async fn stop(&self, is_repeated: bool) -> Option<String> {
        self.stops.lock().unwrap().push(is_repeated);
        self.go_on.clone().filter(|_| !is_repeated)
    }
    async fn call_tool(&self, name: &str, arguments: Value) -> ToolAnswer {
        self.served.lock().unwrap().push((name.to_string(), arguments));
        ToolAnswer { text: format!("{name} served"), is_error: false }
    }
    async fn started(&self, pid: u32, session: Option<SessionId>) {
        self.started.lock().unwrap().push((pid, session));
    }
    async fn client_denied(&self, tool: String, _input: Value, reason: String) {
        self.client_denied.lock().unwrap().push((tool, reason));
    }
    async fn deliver(&self, text: String) -> Result<(), String> {
        self.delivered.lock().unwrap().push(text);
        Ok(())
    }
}

/// A data folder and a client that works in it.
pub struct Fixture {
    /// The temporary folder; `None` if the caller keeps it.
    _folder: Option<TempDir>,
    home: PathBuf,
    pub root: PathBuf,
    pub claude: Claude,
}

impl Fixture {
    /// Creates a client `command` whose API is at `url`. The person's home is the folder above the data folder.
    pub fn new(command: &Path, url: &str) -> Self {
        let person = TempDir::with_prefix("ollim-turn-").unwrap();
        let home = person.path().canonicalize().unwrap();
        Self { _folder: Some(person), ..Self::at(&home, home.join("bot"), command, url) }
    }

    /// Creates such a client with the data folder at `root` and the person's home at `home`, which the caller keeps.
    pub fn at(home: &Path, root: PathBuf, command: &Path, url: &str) -> Self {
        for folder in ["work", "bin", "state/runs/0a1b2c3d"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let own_binary = PathBuf::from(env!("CARGO_BIN_EXE_ollim-bot"));
        let shell_binary = PathBuf::from(env!("CARGO_BIN_EXE_ollim-shell"));
        let own = BTreeMap::from([
            ("PATH".to_string(), std::env::var("PATH").unwrap()),
            ("HOME".into(), home.to_str().unwrap().into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TZ".into(), "UTC".into()),
            ("IS_SANDBOX".into(), "1".into()),
            ("ANTHROPIC_BASE_URL".into(), url.into()),
        ]);
        let programs = [own_binary.parent().unwrap(), &root.join("bin")].map(|path| path.to_str().unwrap().to_string());
        let claude = Claude {
            command: command.to_path_buf(),
            shell_binary,
            ready: PrespawnSlot::default(),
            idle: IdleClient::default(),
            main_config: root.join("state/main"),
            client_environment: ClientEnvironment {
                own,
                added: BTreeMap::new(),
                programs: programs.to_vec(),
                data_folder: root.to_str().unwrap().into(),
            },
            login: LoginSources::of(
                BTreeMap::from([("ANTHROPIC_API_KEY".into(), "sk-test-not-a-key".into())]),
                &BTreeMap::new(),
                None,
            ),
            serve_tools: ollim_bot::mcp::serve,
            clock: Clock::system(),
            limits: Limits::default(),
            groups: None,
        };
        Self { _folder: None, home: home.to_owned(), root, claude }
    }

    /// Returns the person's home, which contains the data folder.
    pub fn home(&self) -> PathBuf {
        self.home.clone()
    }

    /// Returns the working folder of clients.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Returns the run's folder.
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("state/runs/0a1b2c3d")
    }

    /// Returns a request for an isolated fork with these tools (`mcp__discord__…` for ours) and without a sandbox.
    pub fn request(&self, host: &Arc<Host>, prompt: &str, tools: &[&str]) -> Request {
        let (ours, visible): (Vec<&str>, Vec<&str>) = tools.iter().partition(|tool| tool.starts_with("mcp__discord__"));
        Request {
            external: Vec::new(),
            run: "0a1b2c3d".into(),
            run_dir: self.run_dir(),
            work_dir: self.work(),
            prompt: format!("[reminder-bg:test] {prompt}"),
            message: prompt.into(),
            needs_agent: None,
            session: SessionMode::Isolated,
            options: ClientOptions { model: Some("claude-haiku-4-5".into()), ..ClientOptions::default() },
            visible_tools: visible.iter().map(ToString::to_string).collect(),
            deny_rules: vec![],
            mcp_tools: ours.iter().map(|tool| tool.trim_start_matches("mcp__discord__").to_string()).collect(),
            sandbox: Sandbox::default(),
            token: "00112233445566778899aabbccddeeff".into(),
            agent_tokens: BTreeMap::new(),
            timeout: Duration::from_secs(120),
            inactivity_timeout: Duration::from_secs(60),
            asks: None,
            answers: None,
            limits: agent_sandbox::Limits::default(),
            cancel: CancellationToken::new(),
            host: host.clone(),
        }
    }

    /// Returns a sandbox whose client may read `work/` and write in `write`, relative to the data folder. It has no shell of ours.
    pub fn sandbox(&self, write: &[&str]) -> Sandbox {
        let client = Domain {
            beside: vec![self.home(), self.root.clone()],
            read: vec![self.root.join("bin"), self.work()],
            write: write.iter().map(|path| self.root.join(path)).collect(),
            execute: system::programs(),
            network: Network::Internet,
            required: true,
            ..Domain::default()
        };
        Sandbox { client: Some(client), ..Sandbox::default() }
    }

    /// Returns the policy and the sandbox of a job with these rules.
    pub fn job_sandbox(&self, granted: Vec<ToolPattern>) -> (Policy, Arc<JobSandbox>) {
        let config = BgForkConfig::new(UpdateMode::OnPing, true, Some(granted.clone()), None).unwrap();
        let places = PathRoots { root: self.root.clone(), work: self.work(), user_home: self.home() };
        let policy = policy::background("reminder test", &config, &default_main_tools(), &places);
        let plan = SandboxPlan {
            home: Home::new(self.root.clone()),
            user_home: self.home(),
            run_dir: self.run_dir(),
            links: self.run_dir(),
            granted,
            path: ["/usr/local/bin", "/usr/bin"].map(PathBuf::from).to_vec(),
            shell_binary: self.claude.shell_binary.clone(),
            required: true,
            limits: agent_sandbox::Limits::default(),
            network: true,
            proxied: false,
            closed: ClosedPlaces::default(),
        };
        let sandbox = JobSandbox::make(plan, policy.shell(None).as_ref()).unwrap();
        (policy, Arc::new(sandbox))
    }

    /// Runs the turn.
    pub async fn run(&self, request: Request) -> AttemptReport {
        self.claude.run(request).await
    }
}

/// Returns whether the kernel supports the whole sandbox. If not, prints to standard error that the test is skipped.
#[allow(clippy::print_stderr, reason = "a test says what it leaves out")]
pub fn kernel_supports_sandbox() -> bool {
    let held = agent_sandbox::probe();
    if held != SandboxStatus::Whole {
        eprintln!("not tried: this kernel does not hold the whole wall (Landlock: {held:?})");
    }
    held == SandboxStatus::Whole
}
