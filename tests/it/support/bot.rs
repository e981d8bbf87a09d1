//! A separate bot for each test: a person's home with a data folder in it, and the real binary.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use super::{client, processes, wait};

/// A data folder and the environment in which `ollim-bot` runs on it.
pub struct TestBot {
    /// The person's home. Dropping the value removes it.
    person: TempDir,
    home: PathBuf,
    env: Vec<(String, String)>,
    /// The user that runs the program; `None` for the user that runs the tests.
    user: Option<u32>,
}

/// A user that owns nothing on most systems.
const NOBODY: u32 = 65534;

/// The result of one command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Returns the variables with which libfaketime shifts the clock of the tests, for the program under test. Such a run finds
/// tests that hold only at some hours or on some days.
fn another_clock() -> impl Iterator<Item = (OsString, OsString)> {
    let passed_on = |name: &OsStr| name == "LD_PRELOAD" || name.as_encoded_bytes().starts_with(b"FAKETIME");
    std::env::vars_os().filter(move |(name, _)| std::env::var_os("FAKETIME").is_some() && passed_on(name))
}

impl TestBot {
    /// Creates a bot without a data folder and without settings, as on a new machine.
    pub fn bare() -> Self {
        let person = TempDir::with_prefix("ollim-test-").unwrap();
        let home = person.path().canonicalize().unwrap().join("bot");
        Self { person, home, env: Vec::new(), user: None }
    }

    /// Creates a bot with an empty data folder and no agent client (`agent_client: notify`).
    pub fn new() -> Self {
        let bot = Self::bare();
        for folder in ["routines", "reminders", "work", "bin"] {
            fs::create_dir_all(bot.path(folder)).unwrap();
        }
        bot.env("OLLIM_AGENT_CLIENT", "notify")
    }

    /// Creates a bot whose agent client is the command `client` and whose API is at `url`.
    pub fn with_client(client: &Path, url: &str) -> Self {
        Self::new().client(client, url)
    }

    /// Creates a bot with a data folder at `home` and no client yet. `person` holds the folder and is removed with the bot.
    pub fn with_home(person: TempDir, home: PathBuf) -> Self {
        for folder in ["routines", "reminders", "work", "bin"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        Self { person, home, env: Vec::new(), user: None }
    }

    /// Sets the agent client. See [`Self::with_client`].
    pub fn client(self, client: &Path, url: &str) -> Self {
        self.env("OLLIM_AGENT_CLIENT", "claude")
            .env("OLLIM_CLAUDE", client.to_str().unwrap())
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "sk-test-not-a-key")
    }

    /// Runs everything as a user that is not root, as most installations do. Returns `None` if this machine cannot do that with
    /// the agent client `client`; standard error says why.
    #[expect(clippy::print_stderr, reason = "a test says what it could not show")]
    pub fn unprivileged(mut self, client: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return Some(self);
        }
        for program in [Path::new(env!("CARGO_BIN_EXE_ollim-bot")), client] {
            let tried = Command::new(program).arg("--version").current_dir("/").uid(NOBODY).gid(NOBODY).output();
            if !tried.as_ref().is_ok_and(|output| output.status.success()) {
                eprintln!("skipped: {} cannot be run as user {NOBODY} here: {tried:?}", program.display());
                return None;
            }
        }
        self.user = Some(NOBODY);
        for folder in [self.person().to_path_buf(), self.home.clone()] {
            self.own(&folder);
            fs::read_dir(folder).unwrap().for_each(|entry| self.own(&entry.unwrap().path()));
        }
        Some(self)
    }

    /// Gives a file to the user that runs the bot.
    fn own(&self, path: &Path) {
        if self.user.is_some() {
            std::os::unix::fs::chown(path, self.user, self.user).unwrap();
        }
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
        self
    }

    /// Removes an environment variable.
    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Returns the data folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the person's home, which contains the data folder.
    pub fn person(&self) -> &Path {
        self.person.path()
    }

    /// Returns a path in the data folder.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.home.join(relative)
    }

    /// Writes a routine that never falls due, and may have made others. What nobody has made does not run.
    pub fn maker(&self, id: &str) {
        self.write(&format!("routines/{id}.md"), "---\ncron: '0 0 29 2 *'\nbackground: true\n---\nMake others.\n");
    }

    /// Writes a file of the data folder as editors do: complete, by a rename.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let mut file = tempfile::NamedTempFile::new_in(folder).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        self.own(file.path());
        file.persist(path).unwrap();
    }

    /// Writes `.env`, readable by the person alone.
    pub fn secrets(&self, text: &str) {
        self.write(".env", text);
        fs::set_permissions(self.path(".env"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// Writes a person's own command: the script `bin/ollim-bot-NAME`.
    pub fn external_command(&self, name: &str, script: &str) {
        client::executable(&self.path(&format!("bin/ollim-bot-{name}")), script);
    }

    /// Returns a file's text, or `None` if it does not exist.
    pub fn read(&self, relative: &str) -> Option<String> {
        fs::read_to_string(self.path(relative)).ok()
    }

    /// Returns the names in a folder of the data folder, sorted. The list is empty if the folder does not exist.
    pub fn names(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(relative)) else { return Vec::new() };
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns a command of `ollim-bot` with this bot's environment. It inherits only `PATH` and a faked clock.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ollim-bot"));
        command
            .args(args)
            .current_dir(self.person())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.person())
            .env("OLLIM_HOME", &self.home)
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            // The client refuses some of its modes to root unless it is told that it is in a container.
            .env("IS_SANDBOX", "1")
            .envs(another_clock())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// Runs one command to its end.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> CommandOutput {
        CommandOutput::in_time(self.command(args))
    }

    /// Runs one command that must succeed, and returns its standard output.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.stdout
    }

    /// Runs one read command with `--json`, which must succeed.
    #[track_caller]
    pub fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let mut words: Vec<OsString> = vec!["--json".into()];
        words.extend(args.into_iter().map(|word| word.as_ref().to_owned()));
        let text = self.ok(&words);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}\n{text}"))
    }

    /// Starts the service and waits until it is ready.
    #[track_caller]
    pub fn start(&self) -> Service<'_> {
        let service = self.start_with(["run"]);
        service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
        service
    }

    /// Starts a command that keeps running.
    pub fn start_with<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Service<'_> {
        self.spawn(self.command(args))
    }

    /// Spawns a long-running command: one from [`Self::command`], or a wrapper around it.
    pub fn spawn(&self, mut command: Command) -> Service<'_> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            collect(child.stdout.take().unwrap(), said.clone(), ""),
            collect(child.stderr.take().unwrap(), said.clone(), "! "),
        ];
        Service { bot: self, child, said, readers }
    }

    /// Runs `git` in the data folder, without the machine's configuration.
    #[track_caller]
    pub fn git(&self, args: &[&str]) {
        let ran = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(self.home())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
    }

    /// Runs one isolated background job with these further fields to its completion. Returns its run as `runs show` shows it.
    #[track_caller]
    pub fn live(&self, fields: &str) -> Value {
        let fields = format!("background: true\nisolated: true\nretry: 0\n{fields}");
        self.write("reminders/job.md", &reminder(now(), &fields, "Do the thing."));
        let service = self.start();
        let run = service.until_ended("job", 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
        service.stop();
        self.until_no_processes();
        self.json(["runs", "show", run["run"].as_str().unwrap()])
    }

    /// Returns a definition's runs, newest first, as `runs ID --json` shows them. The list is empty if the definition is unknown.
    #[track_caller]
    pub fn runs(&self, id: &str) -> Vec<Value> {
        let ran = self.run(["--json", "runs", id, "-n", "100000"]);
        if ran.code == 1 && ran.stderr.contains("there is no job") {
            return Vec::new();
        }
        assert_eq!(ran.code, 0, "{ran:#?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}\n{}", ran.stdout))
    }

    /// Returns the processes that this bot started, found by any trace of its data folder in them.
    pub fn processes(&self) -> Vec<processes::Process> {
        processes::naming(&self.home)
    }

    /// Waits until no process that this bot started is alive.
    #[track_caller]
    pub fn until_no_processes(&self) {
        wait::until(
            "no process is left",
            || self.processes().is_empty().then_some(()),
            || format!("{:#?}", self.processes()),
        );
    }
}

/// Longest time that a command of the bot takes, on a machine that is busy with other tests.
const COMMAND_LIMIT: Duration = Duration::from_secs(170);

impl CommandOutput {
    /// Runs a command to its end. Fails by name, before the test's own limit, if the command does not end.
    #[track_caller]
    fn in_time(command: Command) -> Self {
        let words: Vec<OsString> = command.get_args().map(ToOwned::to_owned).collect();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(Self::of(command)));
        let output = receiver.recv_timeout(COMMAND_LIMIT);
        output.unwrap_or_else(|_| panic!("{words:?} is not over after {COMMAND_LIMIT:?}"))
    }

    /// Runs a command to its end.
    pub fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A running `ollim-bot`, which is killed by SIGKILL when the value is dropped.
pub struct Service<'a> {
    bot: &'a TestBot,
    child: Child,
    said: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Service<'_> {
    /// Returns the service's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the service's output so far. Lines of standard error begin with `! `.
    pub fn output(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits for a condition. On failure, shows the service's output.
    #[track_caller]
    pub fn until<T>(&self, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        wait::until(what, ask, || {
            let processes = self.bot.processes();
            format!("-- it said:\n{}\n-- processes:\n{processes:#?}", self.output())
        })
    }

    /// Waits until `id` has `count` ended runs, and returns its runs, newest first.
    #[track_caller]
    pub fn until_ended(&self, id: &str, count: usize) -> Vec<Value> {
        self.until(&format!("{count} ended runs of {id}"), || {
            let runs = self.bot.runs(id);
            let ended = runs.iter().filter(|run| !run["ended"].is_null()).count();
            (ended >= count).then_some(runs)
        })
    }

    /// Fires a job by hand and waits for its end. Retries if the file is too new to be known. Returns the run as `runs` lists it.
    #[track_caller]
    pub fn fire(&self, id: &str) -> Value {
        let before = self.bot.runs(id).len();
        self.until("it fires", || {
            self.bot.run(["fire", id, "--wait"]);
            (self.bot.runs(id).len() > before).then_some(())
        });
        self.bot.runs(id).remove(0)
    }

    /// Sends a signal to the service.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the service's end. Returns its exit status and output.
    #[track_caller]
    pub fn wait(mut self) -> (ExitStatus, String) {
        let (child, said) = (&mut self.child, &self.said);
        let status = wait::until("it ends", || child.try_wait().unwrap(), || said.lock().unwrap().clone());
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        (status, self.output())
    }

    /// Sends SIGTERM and waits for the end.
    #[track_caller]
    pub fn stop(self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Sends SIGTERM twice, so that runs have no time to finish, and waits for the end.
    #[track_caller]
    pub fn end_now(self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.until("it is ending", || self.output().contains("a second signal").then_some(()));
        self.stop()
    }

    /// Sends SIGKILL to the service's own process and waits for its end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        // If the process has ended, there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the machine's own time, which the real program uses.
pub fn now() -> DateTime<Utc> {
    ollim_bot::clock::Clock::system().now()
}

/// Returns the text of a routine with a schedule that does not fall due while a test runs.
pub fn started_by_fire_only(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| if line.starts_with("cron: ") { "cron: 0 0 29 2 *\n" } else { line })
        .collect()
}

/// Returns the text of a reminder's file, due at `at`. `fields` are further lines of frontmatter, each with its line feed.
pub fn reminder(at: DateTime<Utc>, fields: &str, body: &str) -> String {
    format!("---\nrun_at: \"{}\"\n{fields}---\n{body}\n", at.to_rfc3339())
}

/// Reads a stream to its end into the shared text, line by line.
fn collect(stream: impl Read + Send + 'static, into: Arc<Mutex<String>>, mark: &'static str) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            let mut text = into.lock().unwrap();
            text.push_str(mark);
            text.push_str(&line);
            text.push('\n');
        }
    })
}
