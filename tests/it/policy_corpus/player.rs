//! The player of corpus entries for a running agent client: its scripted model lays out an entry's ground, makes the call,
//! records the result, and continues with the next entry.
//!
//! Only one call is made at a time, on a ground that is cleared for each entry. Folders that existed when the session began
//! are never replaced: the kernel's sandbox is bound to the folders, not to their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::{Case, Effect, OneOrMany};
use super::workspace::Workspace;
use crate::support::messages_api::{Reply, Request, ToolResult};

/// The result of an entry.
#[derive(Debug)]
pub struct EntryResult {
    pub case: Case,
    /// The tool of the call that was made.
    pub tool: String,
    pub input: Value,
    /// The result that the agent received.
    pub result: ToolResult,
    /// The parts of the effect that are missing after the call. `missing_before` is their number before it.
    pub missing: Vec<String>,
    missing_before: usize,
    /// The stub programs that ran.
    pub ran: String,
}

impl EntryResult {
    /// Returns whether the effect is complete or, if none can be shown, whether the client made the call.
    pub fn had_its_effect(&self) -> bool {
        self.missing.is_empty() && !(self.case.entry.shape && self.result.is_error)
    }

    /// Returns the evidence that anything happened at all.
    pub fn traces(&self) -> Option<String> {
        let shown = self.missing.len() < self.missing_before;
        (shown || !self.ran.is_empty()).then(|| format!("{:?} is missing, what ran: {:?}", self.missing, self.ran))
    }
}

/// A call. `counts` is false for the `Read` that must precede an edit.
struct Step {
    case: usize,
    tool: String,
    input: Value,
    counts: bool,
}

/// The entries of one session, in order.
pub struct Play {
    workspace: Workspace,
    cases: Vec<Case>,
    steps: Vec<Step>,
    made: usize,
    /// Folders that existed when the session began; `None` before it begins.
    kept: Option<BTreeSet<PathBuf>>,
    missing_before: usize,
    pub seen: Vec<EntryResult>,
}

impl Play {
    pub fn new(workspace: Workspace, cases: Vec<Case>) -> Self {
        let mut steps = Vec::new();
        for (at, case) in cases.iter().enumerate() {
            let (tool, mut input) = (case.entry.tool().to_owned(), workspace.fill_value(case.entry.input()));
            if tool == "Bash" && input.get("description").is_none() {
                input["description"] = "a call".into();
            }
            // The client edits only files that it has read.
            let read = input.get("file_path").filter(|_| matches!(&*tool, "Edit" | "Write")).cloned();
            if let Some(path) = read.filter(Value::is_string) {
                let input = serde_json::json!({ "file_path": path });
                steps.push(Step { case: at, tool: "Read".into(), input, counts: false });
            }
            steps.push(Step { case: at, tool, input, counts: true });
        }
        Self { workspace, cases, steps, made: 0, kept: None, missing_before: 0, seen: Vec::new() }
    }

    /// Returns the model's next answer.
    pub fn reply(&mut self, request: &Request) -> Reply {
        let now = request.answers();
        // A request that the client repeats gets the same answer on the same ground.
        let repeated = self.kept.is_some() && now <= self.made;
        if !repeated {
            self.made = now;
            let kept = self.kept.get_or_insert_with(|| folders(&self.workspace.home())).clone();
            if now > 0 {
                self.look(request);
            }
            self.lay_out(&kept);
        }
        self.steps.get(now).map_or_else(|| Reply::say("done"), |step| Reply::call(&step.tool, step.input.clone()))
    }

    /// Lays out the ground for the current step if it is the first of its entry.
    fn lay_out(&mut self, kept: &BTreeSet<PathBuf>) {
        let Some(step) = self.steps.get(self.made) else { return };
        if self.made == 0 || self.steps[self.made - 1].case != step.case {
            clear(&self.workspace, kept);
            let entry = &self.cases[step.case].entry;
            self.workspace.lay_out(entry);
            self.missing_before = self.workspace.missing(&entry.effect, "").len();
        }
    }

    /// Returns the entry of the current step, and whether the step is the call that the entry tests.
    pub fn now(&self) -> Option<(&Case, bool)> {
        let step = self.steps.get(self.made)?;
        Some((&self.cases[step.case], step.counts))
    }

    fn look(&mut self, request: &Request) {
        let Some(step) = self.steps.get(self.made - 1).filter(|step| step.counts) else { return };
        let case = self.cases[step.case].clone();
        let result = request.results().pop().expect("the call has a result");
        let missing = self.workspace.missing(&case.entry.effect, &result.text);
        let (tool, input) = (step.tool.clone(), step.input.clone());
        let (missing_before, ran) = (self.missing_before, self.workspace.log());
        self.seen.push(EntryResult { case, tool, input, result, missing, missing_before, ran });
    }
}

/// Removes everything that an entry left, except the folders in `kept`, and restores the standard files.
pub fn clear(workspace: &Workspace, kept: &BTreeSet<PathBuf>) {
    for folder in ["other", "answers", "tmp"] {
        empty(&workspace.root().join(folder), kept);
    }
    for entry in fs::read_dir(workspace.home()).expect("the home folder").flatten() {
        // The client writes its own notes of MCP servers there during the session.
        if entry.path() != workspace.data() && entry.file_name() != ".cache" {
            remove(&entry.path(), kept);
        }
    }
    empty(&workspace.work(), kept);
    workspace.lay_work();
    workspace.forget_what_ran();
}

fn empty(folder: &Path, kept: &BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the ground").flatten() {
        remove(&entry.path(), kept);
    }
}

fn remove(path: &Path, kept: &BTreeSet<PathBuf>) {
    let is_folder = path.symlink_metadata().is_ok_and(|data| data.is_dir());
    if is_folder && kept.contains(path) {
        return empty(path, kept);
    }
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Returns all folders below a folder.
fn folders(below: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![below.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
                found.insert(entry.path());
            }
        }
    }
    found
}

/// Adapts an entry to our real binary. It answers `help` itself and executes `ollim-bot-NAME` for `ollim-bot NAME`; the
/// corpora have one stub for both.
pub fn with_the_real_binary(mut case: Case) -> Case {
    let entry = &mut case.entry;
    let effect = &mut entry.effect;
    let ran = effect.ran.as_slice().iter().filter_map(|line| {
        let rest = line.strip_prefix("ollim-bot => ").or_else(|| line.strip_prefix("ollim-bot "));
        match rest {
            Some(rest) if rest.starts_with("help") => None,
            Some(rest) => Some(format!("ollim-bot-{rest}")),
            None => Some(line.clone()),
        }
    });
    let ran: Vec<String> = ran.collect();
    let helps = ran.len() < effect.ran.as_slice().len();
    let printed = |text: &String| if text == "ollim-bot ran" { " ran".to_owned() } else { text.clone() };
    *effect = Effect {
        ran: OneOrMany::Many(ran),
        output: effect.output.as_ref().map(printed).or_else(|| helps.then(|| "ollim-bot".to_owned())),
        files: effect.files.iter().map(|(path, text)| (path.clone(), printed(text))).collect(),
        ..effect.clone()
    };
    if let Some(answer) = entry.answers.get("ollim-bot").cloned() {
        entry.answers.extend(OWN.map(|name| (format!("ollim-bot-{name}"), answer.clone())));
    }
    case
}

/// The person's own commands that the corpora call.
pub const OWN: [&str; 4] = ["cal", "gmail", "tasks", "calories"];
