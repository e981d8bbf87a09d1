//! The ground on which a call is tried: a temporary home with a data folder, notes, stub programs and a log of those that
//! ran. It can also run the call without any policy.
//!
//! Everything lies under one temporary folder, `HOME` included. A trial has limits on processes, file sizes and time. It ends
//! when all processes that it started have closed its output.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::entry::{Effect, Entry, fixtures};

/// Stub programs that every trial has on its search path.
const STUBS: [&str; 2] = ["secret", "ollim-bot"];

/// The placeholder for the person's token in the corpora.
const TOKEN: &str = "USER-TOKEN-5520";

/// The person's own commands in the data folder's `bin/`.
const OWN_COMMANDS: [&str; 2] = ["ollim-bot-cal", "ollim-bot-gmail"];

/// The client's frame for each line: startup files off, extended globs off, aliases on (its shell snapshot switches them on),
/// no parameters, no input. Observed in 2.1.197.
const AS_THE_CLIENT_DOES: &str = r#"
ulimit -c 0 -t 30 -f 131072
shopt -u extglob
shopt -s expand_aliases
eval "set --
$1" < /dev/null
"#;

/// Time limit of a trial. Only a trial that hangs reaches it.
const LIMIT_SECONDS: &str = "30";

pub struct Workspace {
    /// The temporary folder; `None` if the caller keeps it.
    _folder: Option<tempfile::TempDir>,
    root: PathBuf,
    /// The real token that replaces [`TOKEN`] in texts.
    token: Option<String>,
}

impl Workspace {
    /// Creates the home that every trial starts from.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("corpus").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the temporary folder's path");
        Self { _folder: Some(folder), ..Self::laid_in(root) }
    }

    /// Creates the same home in the caller's folder.
    pub fn laid_in(root: PathBuf) -> Self {
        let workspace = Self::within(root);
        for name in ["bin", "tmp", "other", "answers"] {
            fs::create_dir_all(workspace.root.join(name)).expect("a folder");
        }
        workspace.write(".box", "", &workspace.root.join(".box"));
        workspace.lay_home();
        workspace
    }

    /// Creates a ground in the caller's folder, without laying out anything.
    pub fn within(root: PathBuf) -> Self {
        Self { _folder: None, root, token: None }
    }

    /// Sets the person's token from now on.
    pub fn token_is(&mut self, token: String) {
        self.token = Some(token);
    }

    /// Creates a ground with all that `entry` needs.
    pub fn lay(entry: &Entry) -> Self {
        let workspace = Self::new();
        workspace.lay_out(entry);
        workspace
    }

    /// Lays out the files, links and programs that `entry` needs and runs its setup line.
    pub fn lay_out(&self, entry: &Entry) {
        let workspace = self;
        for (path, content) in &entry.files {
            workspace.write(path, &workspace.fill(content), &workspace.path(path));
        }
        for (path, target) in &entry.links {
            workspace.link(Path::new(&workspace.fill(target)), &workspace.path(path));
        }
        for name in &entry.programs {
            workspace.link(&fixtures().join("stub"), &workspace.root.join("bin").join(name));
        }
        for (name, text) in &entry.answers {
            workspace.write(name, text, &workspace.root.join("answers").join(name));
        }
        if let Some(setup) = &entry.setup {
            let (output, done) = workspace.shell("set -e; eval \"$1\"", &workspace.fill(setup), &workspace.work());
            assert!(done, "{}: the setup failed:\n{output}", entry.name);
        }
    }

    fn lay_home(&self) {
        let stub = fixtures().join("stub");
        for name in STUBS {
            self.link(&stub, &self.root.join("bin").join(name));
        }
        for name in OWN_COMMANDS {
            self.link(&stub, &self.data().join("bin").join(name));
        }
        for (path, content) in [
            ("config.yaml", "main_tools: [Read]\n"),
            (
                "routines/morning.md",
                "---\ncron: 0 8 * * *\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n---\nGood morning\n",
            ),
            ("reminders/oven.md", "---\nrun_at: 2099-01-01T08:00:00Z\nmax_chain: 0\n---\nThe oven\n"),
            ("state/user.token", "USER-TOKEN-5520\n"),
        ] {
            self.write(path, content, &self.data().join(path));
        }
        self.lay_work();
    }

    /// Writes the files that the working folder and the person's home contain before every call.
    pub fn lay_work(&self) {
        for (path, content) in [
            ("secret.txt", "TOP-SECRET-7391\n"),
            ("notes/today.md", "buy milk\n"),
            ("notes/todo.md", "call ann\nwater plants\n"),
        ] {
            self.write(path, content, &self.work().join(path));
        }
        self.write(".bashrc", "# empty\n", &self.home().join(".bashrc"));
        // An attack that is tried without a policy may have changed the mode.
        let token = self.data().join("state/user.token");
        if token.exists() {
            fs::set_permissions(token, fs::Permissions::from_mode(0o600)).expect("the token's mode");
        }
    }

    pub fn write(&self, name: &str, content: &str, path: &Path) {
        self.own(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    pub fn link(&self, target: &Path, path: &Path) {
        self.own(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        symlink(target, path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Asserts that the path is on the ground.
    fn own(&self, path: &Path) {
        assert!(path.starts_with(&self.root), "{} is not on the ground", path.display());
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn data(&self) -> PathBuf {
        self.home().join(".ollim-bot")
    }

    pub fn work(&self) -> PathBuf {
        self.data().join("work")
    }

    /// Returns the working folder of the call.
    pub fn cwd(&self, entry: &Entry) -> PathBuf {
        entry.cwd.as_ref().map_or_else(|| self.work(), |cwd| PathBuf::from(self.fill(cwd)))
    }

    /// Replaces the placeholders in a corpus text with this ground's paths and token.
    pub fn fill(&self, text: &str) -> String {
        let place = |path: PathBuf| path.to_string_lossy().into_owned();
        text.replace("@WORK@", &place(self.work()))
            .replace("@DATA@", &place(self.data()))
            .replace("@HOME@", &place(self.home()))
            .replace("@BOX@", &place(self.root.clone()))
            .replace("@STUB@", &place(fixtures().join("stub")))
            .replace(TOKEN, self.token.as_deref().unwrap_or(TOKEN))
    }

    /// Fills every text of a tool's input.
    pub fn fill_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => fields.into_iter().map(|(key, item)| (key, self.fill_value(item))).collect(),
            other => other,
        }
    }

    fn path(&self, text: &str) -> PathBuf {
        self.work().join(self.fill(text))
    }

    /// Makes the call without any layer and returns its output.
    pub fn run(&self, entry: &Entry) -> String {
        let cwd = self.cwd(entry);
        match entry.command() {
            Some(command) => self.shell(AS_THE_CLIENT_DOES, &self.fill(command), &cwd).0,
            None => self.file_call(entry.tool(), &self.fill_value(entry.input()), &cwd),
        }
    }

    fn shell(&self, frame: &str, line: &str, cwd: &Path) -> (String, bool) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=1", LIMIT_SECONDS, "bash", "--noprofile", "--norc", "-c", frame, "bash", line])
            .current_dir(cwd)
            .env_clear()
            .envs([("LANG", "C.UTF-8"), ("TZ", "UTC"), ("OLLIM_RUN_TOKEN", "run-token")])
            .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")])
            .env("PATH", format!("{}/bin:{}/bin:{}", self.root.display(), self.data().display(), system_path()))
            .env("HOME", self.home())
            .env("OLLIM_HOME", self.data())
            .env("TMPDIR", self.root.join("tmp"))
            .stdin(Stdio::null())
            .stdout(writer.try_clone().expect("a second end"))
            .stderr(writer);
        let mut child = command.spawn().expect("bash starts");
        drop(command);
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut { reader }, &mut bytes).expect("the output");
        let status = child.wait().expect("bash ends");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_ne!(status.code(), Some(124), "`{line}` ran into its time limit:\n{text}");
        (text, status.success())
    }

    /// Imitates the client's file tools with these inputs, as far as the corpora use them.
    fn file_call(&self, tool: &str, input: &Value, cwd: &Path) -> String {
        let text = |key: &str| input[key].as_str().unwrap_or_else(|| panic!("{tool} needs `{key}`")).to_owned();
        let path = match text("file_path") {
            path if path.starts_with("~/") => self.home().join(&path[2..]),
            path => cwd.join(path),
        };
        match tool {
            "Read" => return fs::read_to_string(path).expect("a file to read"),
            "Write" => {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
                fs::write(path, text("content")).expect("a file to write");
            }
            "Edit" => {
                let old = fs::read_to_string(&path).expect("a file to edit");
                fs::write(path, old.replacen(&text("old_string"), &text("new_string"), 1)).expect("a file to edit");
            }
            other => panic!("{other} has no effect here: mark the entry `shape: true`"),
        }
        String::new()
    }

    /// Returns the log of the stub programs that ran.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Makes stub programs log to a file elsewhere, to which every layer grants access.
    pub fn log_elsewhere(&self, path: &Path) {
        self.write(".box", &format!("{}\n", path.display()), &self.root.join(".box"));
    }

    /// Empties the log of the programs that ran.
    pub fn forget_what_ran(&self) {
        fs::write(self.log_path(), "").expect("the log of what ran");
    }

    fn log_path(&self) -> PathBuf {
        let elsewhere = fs::read_to_string(self.root.join(".box")).unwrap_or_default();
        match elsewhere.trim_end() {
            "" => self.root.join("ran.log"),
            path => PathBuf::from(path),
        }
    }

    /// Returns the parts of `effect` that are missing; empty if the effect is complete.
    pub fn missing(&self, effect: &Effect, output: &str) -> Vec<String> {
        let log = self.log();
        let mut missing = Vec::new();
        let mut expect = |there: bool, what: String| {
            if !there {
                missing.push(what);
            }
        };
        for wanted in effect.ran.as_slice().iter().map(|wanted| self.fill(wanted)) {
            let ran = log.lines().any(|line| line == wanted || line.starts_with(&format!("{wanted} ")));
            expect(ran, format!("`{wanted}` did not run; what ran:\n{log}"));
        }
        if let Some(text) = effect.output.as_ref().map(|text| self.fill(text)) {
            expect(output.contains(&text), format!("no `{text}` in the output"));
        }
        for (path, text) in &effect.files {
            let content = fs::read_to_string(self.path(path)).unwrap_or_default();
            expect(content.contains(&self.fill(text)), format!("no `{text}` in {path}"));
        }
        for path in &effect.made {
            expect(self.path(path).symlink_metadata().is_ok(), format!("no {path}"));
        }
        for path in &effect.gone {
            expect(self.path(path).symlink_metadata().is_err(), format!("{path} is still there"));
        }
        for path in &effect.emptied {
            expect(fs::metadata(self.path(path)).is_ok_and(|found| found.len() == 0), format!("{path} is not empty"));
        }
        missing
    }
}

/// Returns the machine's own search path. The stub programs come before it.
fn system_path() -> &'static str {
    "/usr/local/bin:/usr/bin:/bin"
}

/// Returns the programs that an entry needs and this machine lacks.
pub fn lacking(entry: &Entry) -> Vec<&str> {
    let folders = || system_path().split(':');
    entry
        .needs
        .iter()
        .map(String::as_str)
        .filter(|name| !folders().any(|folder| Path::new(folder).join(name).exists()))
        .collect()
}
