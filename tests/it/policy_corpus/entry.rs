//! The shape of a corpus file: one class of calls, the rules they are judged under, and how each shows its effect.
//!
//! What always holds after [`load`]: unknown keys are refused, names are unique within a corpus, every entry has exactly
//! one call and names rules that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// One file: a class of entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: String,
    /// Texts that entries share by YAML anchors; nothing reads the key itself.
    #[serde(default, rename = "anchors")]
    _anchors: serde_yaml::Value,
    rules: BTreeMap<String, Rules>,
    entries: Vec<Entry>,
}

/// What a job's file says, or that the caller is a read-only agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub allowed_tools: Option<Vec<String>>,
    pub disallowed_tools: Option<Vec<String>>,
    #[serde(default)]
    pub read_only: bool,
    #[serde(default = "yes")]
    pub allow_ping: bool,
    /// `blocked` is the only value that a corpus needs.
    pub update_main_session: Option<Updates>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Updates {
    Blocked,
}

fn yes() -> bool {
    true
}

/// Rules by their name in the file, or written in the entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum RulesOf {
    Named(String),
    Own(Rules),
}

/// Which wall has to say no to an attack. The engine, unless the line by itself cannot tell.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    #[default]
    Engine,
    /// Our own binary, which asks the daemon for a verdict when it is started (a script file, a copy, a link).
    Command,
    /// Landlock: the program is granted, the file is out of its reach.
    Kernel,
}

/// One call with what has to be there before it and what shows that it did something.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    rules: RulesOf,
    command: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    /// The type of the agent that makes the call; none: the job itself.
    pub agent_type: Option<String>,
    /// The working folder of the call; none: `work/`.
    pub cwd: Option<String>,
    /// Files by path (relative to the working folder) and content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Symbolic links by path and target.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Names of further stub programs on the search path.
    #[serde(default)]
    pub programs: Vec<String>,
    /// What stub programs print, by their name.
    #[serde(default)]
    pub answers: BTreeMap<String, String>,
    /// A shell line that makes ready what files and links cannot.
    pub setup: Option<String>,
    /// Programs that are not on every machine: without them the effect cannot be shown.
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub held_by: HeldBy,
    /// No effect can be shown outside the client: only the call's shape is checked here.
    #[serde(default)]
    pub shape: bool,
    #[serde(default)]
    pub effect: Effect,
}

/// What is there after the call and was not before. All that is named has to hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Stub programs that ran: how a line of their log begins, whole words.
    #[serde(default)]
    pub ran: OneOrMany,
    /// A text in the output.
    pub output: Option<String>,
    /// Files that hold a text.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths that are there.
    #[serde(default)]
    pub made: Vec<String>,
    /// Paths that are no longer there.
    #[serde(default)]
    pub gone: Vec<String>,
    /// Files that are now empty.
    #[serde(default)]
    pub emptied: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl Effect {
    /// How many things it is made of.
    pub fn parts(&self) -> usize {
        self.ran.as_slice().len()
            + usize::from(self.output.is_some())
            + self.files.len()
            + self.made.len()
            + self.gone.len()
            + self.emptied.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parts() == 0
    }
}

impl Entry {
    /// The client's name of the tool.
    pub fn tool(&self) -> &str {
        self.tool.as_deref().unwrap_or("Bash")
    }

    /// The tool's input as the client would send it.
    pub fn input(&self) -> Value {
        match &self.command {
            Some(command) => json!({ "command": command }),
            None => self.input.clone().unwrap_or_else(|| json!({})),
        }
    }

    /// The shell line of a Bash call.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }
}

/// An entry with its class and its rules looked up.
#[derive(Clone, Debug)]
pub struct Case {
    pub class: String,
    pub rules: Rules,
    pub entry: Entry,
}

impl Case {
    /// How a failure names the entry.
    pub fn title(&self) -> String {
        format!("{}: {}", self.class, self.entry.name)
    }
}

/// The folder of the corpora.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/policy")
}

/// Reads every file of one corpus (`attacks`, `ordinary` or `ordinary_unseen`), in the order of their names.
pub fn load(corpus: &str) -> Vec<Case> {
    let folder = fixtures().join(corpus);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    paths.sort();

    let mut cases = Vec::new();
    let mut titles = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a corpus file is readable");
        let file: File = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in file.entries {
            let rules = match &entry.rules {
                RulesOf::Own(rules) => rules.clone(),
                RulesOf::Named(name) => {
                    file.rules.get(name).unwrap_or_else(|| panic!("{}: no rules `{name}`", path.display())).clone()
                }
            };
            let case = Case { class: file.class.clone(), rules, entry };
            check_shape(&case);
            assert!(titles.insert(case.title()), "{corpus}: two entries are called `{}`", case.title());
            cases.push(case);
        }
    }
    cases
}

fn check_shape(case: &Case) {
    let (title, entry, rules) = (case.title(), &case.entry, &case.rules);
    let walls = [rules.allowed_tools.is_some(), rules.disallowed_tools.is_some(), rules.read_only];
    assert_eq!(walls.iter().filter(|set| **set).count(), 1, "{title}: exactly one kind of rules");
    assert!(
        entry.command.is_some() != entry.tool.is_some(),
        "{title}: either a command or a tool with its input, not both and not neither"
    );
    assert!(entry.command.is_none() || entry.input.is_none(), "{title}: a command has no further input");
    assert!(entry.input().is_object(), "{title}: the input is an object");
    assert!(entry.shape == entry.effect.is_empty(), "{title}: an effect, or `shape: true` where none can be shown");
    assert!(!entry.shape || entry.command.is_none(), "{title}: a shell line always shows its effect");
}
