//! The format of a corpus file: one class of calls, the rules that apply to them, and the effect of each.
//!
//! After [`load`], there are no unknown keys, names are unique within a corpus, and every entry has exactly one call and
//! existing rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// One file: a class of entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: String,
    /// Texts that entries share by YAML anchors. No code reads this key.
    #[serde(default, rename = "anchors")]
    _anchors: serde_yaml::Value,
    rules: BTreeMap<String, Rules>,
    entries: Vec<Entry>,
}

/// The rules of a job's file, or those of a read-only agent.
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

/// The rules of an entry: a name in the file, or rules of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum RulesOf {
    Named(String),
    Own(Rules),
}

/// The layer that must refuse an attack. The default is the engine, which can judge by the call alone.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RefusingLayer {
    #[default]
    Engine,
    /// Our own binary, which requests a verdict from the daemon when it starts (a script file, a copy, a link).
    Command,
    /// Landlock: the program is granted, but has no access to the file.
    Kernel,
}

/// One call, with the files that it needs and the effect that shows that it worked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    rules: RulesOf,
    command: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    /// The type of the agent that makes the call; `None` for the job itself.
    pub agent_type: Option<String>,
    /// The working folder of the call; `None` for `work/`.
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
    /// Output of stub programs, by their name.
    #[serde(default)]
    pub answers: BTreeMap<String, String>,
    /// A shell line that prepares what files and links cannot.
    pub setup: Option<String>,
    /// Programs that some machines lack. Without them, the effect cannot be shown.
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub held_by: RefusingLayer,
    /// Whether the effect cannot be shown outside the client. Then only the call's shape is checked here.
    #[serde(default)]
    pub shape: bool,
    #[serde(default)]
    pub effect: Effect,
}

/// The effect of a call, absent before it. All named parts must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Stub programs that ran: the beginnings of log lines, in whole words.
    #[serde(default)]
    pub ran: OneOrMany,
    /// A text that the output contains.
    pub output: Option<String>,
    /// Files, with a text that each contains.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths that exist now.
    #[serde(default)]
    pub made: Vec<String>,
    /// Paths that no longer exist.
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
    /// Returns the number of parts of the effect.
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
    /// Returns the client's name of the tool.
    pub fn tool(&self) -> &str {
        self.tool.as_deref().unwrap_or("Bash")
    }

    /// Returns the tool's input as the client would send it.
    pub fn input(&self) -> Value {
        match &self.command {
            Some(command) => json!({ "command": command }),
            None => self.input.clone().unwrap_or_else(|| json!({})),
        }
    }

    /// Returns the shell line of a Bash call.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }
}

/// An entry with its class and its resolved rules.
#[derive(Clone, Debug)]
pub struct Case {
    pub class: String,
    pub rules: Rules,
    pub entry: Entry,
}

impl Case {
    /// Returns the name of the entry in failure messages.
    pub fn title(&self) -> String {
        format!("{}: {}", self.class, self.entry.name)
    }
}

/// Returns the folder of the corpora.
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
