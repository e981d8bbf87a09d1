//! Parses one agent's file into an agent and the list of its problems. Pure: no I/O.
//!
//! The format is the client's own. The client silently ignores a name without a description or an unknown mode, and
//! would run another agent instead. Here these are problems with a line and a column.

mod claims;
mod keys;

use crate::definition::frontmatter::{self, Document, Entry, NoFrontmatter, YamlPath};
use crate::definition::values::{Fault, Value};
use crate::definition::{LARGEST_FILE, Problem, Severity, quoted};
use crate::policy::{PermissionMode, ToolPattern, WRITING_TOOLS, blocked_for_subagents};

use keys::{FIELDS, FieldUse, nearest};

use super::{AgentModel, NamedAgent, Source, tool_list};

/// An agent file's content, with the properties that the program sets rather than the file.
pub(super) struct AgentFile<'a> {
    pub source: Source,
    pub bytes: &'a [u8],
    pub read_only: bool,
    pub main_session_only: bool,
}

/// The result of parsing a file.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The names that the file claims or, if it is broken, may claim. Never empty.
    pub names: Vec<String>,
    /// The agent; `None` if any problem is an error.
    pub agent: Option<NamedAgent>,
    /// The problems, in the file's order.
    pub problems: Vec<Problem>,
}

/// Reads one file.
pub(super) fn parse(file: &AgentFile) -> Parsed {
    let path = &file.source.path;
    let whole = |message: &str, hint: &str, line: u32, column: u32| {
        let problem = Problem { line, column, ..Problem::of_file(path, Severity::Error, message, Some(hint.into())) };
        let text = String::from_utf8_lossy(file.bytes);
        Parsed { names: claims::guessed(path, &text), agent: None, problems: vec![problem] }
    };
    if file.bytes.len() > LARGEST_FILE {
        return whole("the file is over 1 MiB", "shorten it: all of it goes to the model with each call", 1, 1);
    }
    let Ok(text) = std::str::from_utf8(file.bytes) else {
        return whole("the file is not UTF-8 text", "save it as UTF-8", 1, 1);
    };
    let document = match frontmatter::split(text) {
        Ok(document) => document,
        Err(NoFrontmatter::Missing) => {
            let hint = "begin the file with `---`, lines `name: …` and `description: …`, `---`, and then the prompt";
            return whole("there is no frontmatter", hint, 1, 1);
        }
        Err(NoFrontmatter::Unclosed(line)) => {
            let hint = "add a line `---` between the settings and the prompt";
            return whole("the frontmatter is not closed", hint, line, 1);
        }
    };
    match document.block.entries() {
        Ok(entries) => FieldReader::new(file, &document, &entries).finish(),
        // The client's own generator writes descriptions that are not valid YAML, and the client reads them.
        Err(error) => match claims::with_quoted_description(text) {
            Some((text, line)) => {
                let document = frontmatter::split(&text).ok();
                let entries = document.as_ref().and_then(|document| document.block.entries().ok());
                let (Some(document), Some(entries)) = (&document, entries) else {
                    return whole(&not_yaml(&error.message), &hint_of(error.hint), error.line, error.column);
                };
                let mut reading = FieldReader::new(file, document, &entries);
                let message = "`description` is not valid YAML; it is read as plain text, as the client does".into();
                let hint = Some("put the whole description in quotes".into());
                reading.problem(Severity::Warning, Some("description"), message, hint, (line, 1));
                reading.finish()
            }
            None => whole(&not_yaml(&error.message), &hint_of(error.hint), error.line, error.column),
        },
    }
}

fn not_yaml(message: &str) -> String {
    format!("the frontmatter is not valid YAML: {message}")
}

fn hint_of(hint: Option<String>) -> String {
    hint.unwrap_or_else(|| "each setting is a line `key: value`".into())
}

/// A file being read: its fields and the problems found so far.
struct FieldReader<'a> {
    file: &'a AgentFile<'a>,
    document: &'a Document,
    entries: &'a [Entry],
    problems: Vec<Problem>,
}

impl<'a> FieldReader<'a> {
    fn new(file: &'a AgentFile<'a>, document: &'a Document, entries: &'a [Entry]) -> Self {
        let mut reading = Self { file, document, entries, problems: Vec::new() };
        for (index, entry) in entries.iter().enumerate() {
            reading.key(index, &entry.key);
        }
        reading
    }

    fn key(&mut self, index: usize, key: &str) {
        let shown = quoted(key);
        if self.entries[..index].iter().any(|other| other.key == key) {
            return self.at_key(Severity::Error, index, format!("{shown} is set twice"), "keep one of the two".into());
        }
        if key == "<<" {
            let hint = "write the settings out: a restriction that comes by a merge could be missed";
            return self.at_key(Severity::Error, index, "merge keys are not supported".into(), hint.into());
        }
        if let Some((name, how)) = FIELDS.iter().find(|(name, _)| *name == key) {
            if *how == FieldUse::NotHere {
                let message = format!("`{name}` has no effect here");
                self.at_key(Severity::Warning, index, message, "it is for the client's own sessions".into());
            }
            return;
        }
        match nearest(key) {
            Some((name, FieldUse::Restricts)) => {
                let message = format!("unknown field {shown}, close to `{name}`, which restricts the agent");
                self.at_key(Severity::Error, index, message, format!("did you mean `{name}`?"));
            }
            Some((name, _)) => {
                let hint = format!("did you mean `{name}`?");
                self.at_key(Severity::Warning, index, format!("unknown field {shown}"), hint);
            }
            None => {
                let hint = "it has no effect: remove it, or write it as a comment (`# …`)";
                self.at_key(Severity::Warning, index, format!("unknown field {shown}"), hint.into());
            }
        }
    }

    fn finish(mut self) -> Parsed {
        let name = self.name();
        let description = self.required("description", "one line by which the calling agent picks this one");
        let (tools, disallowed, mode, max_turns) = (
            self.read("tools", tool_list::patterns),
            self.read("disallowedTools", tool_list::patterns),
            self.read("permissionMode", mode),
            self.read("maxTurns", |value| value.count(1)),
        );
        let model = self.read("model", model);
        if let Some(Some(Mode::Wider(word))) = &mode {
            let message = format!("`permissionMode: {word}` has no effect here: an agent has `default`");
            let hint = "a job's agents never have more than the job; `default` and `dontAsk` are read".to_owned();
            self.at_field(Severity::Warning, "permissionMode", message, hint);
        }
        let prompt = self.document.body.trim();
        if prompt.is_empty() {
            let message = "there is no prompt below the settings".into();
            let hint = Some("write below the second `---` what the agent should do and how".into());
            let text = String::from_utf8_lossy(self.file.bytes);
            self.problem(Severity::Error, None, message, hint, (frontmatter::closing_line(&text), 1));
        }
        let read_only = self.file.read_only || matches!(mode, Some(Some(Mode::Plan)));
        let lists = match (tools, disallowed) {
            (Some(tools), Some(disallowed)) => self.lists(tools, disallowed.unwrap_or_default(), read_only),
            _ => None,
        };
        let said = self.entries.iter().filter(|entry| entry.key == "name").count();
        let names = match &name {
            Some(name) if said == 1 => vec![name.clone()],
            _ => claims::of(&self.file.source.path, self.entries),
        };
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        let failed = self.problems.iter().any(Problem::is_error);
        let agent = (|| {
            let ResolvedLists { tools, disallowed } = lists?;
            Some(NamedAgent {
                name: name?,
                description: description?,
                prompt: prompt.to_owned(),
                tools,
                disallowed_tools: disallowed,
                model: model?.unwrap_or_default(),
                permission_mode: mode?.map_or(PermissionMode::Default, Mode::here),
                max_turns: max_turns?,
                read_only,
                main_session_only: self.file.main_session_only,
                source: self.file.source.clone(),
            })
        })();
        Parsed { names, agent: agent.filter(|_| !failed), problems: self.problems }
    }

    fn name(&mut self) -> Option<String> {
        let name = self.required("name", "the name by which it is called")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.len() <= 64 && name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Some(name);
        }
        let message = format!("{} cannot be an agent's name", quoted(&name));
        self.at_field(Severity::Error, "name", message, "use letters, digits, `-`, `_` and `.`, at most 64".into());
        None
    }

    /// Reads a text field that must be present and not blank.
    fn required(&mut self, name: &'static str, what: &str) -> Option<String> {
        let text = self.read(name, |value| value.text())?.map(|text| text.trim().to_owned());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            return Some(text);
        }
        let hint = format!("add a line `{name}: …`, {what}");
        self.at_field(Severity::Error, name, format!("`{name}` is missing"), hint);
        None
    }

    /// Resolves the two lists against each other; `None` if they contain an error.
    fn lists(
        &mut self,
        tools: Option<Vec<ToolPattern>>,
        mut disallowed: Vec<ToolPattern>,
        read_only: bool,
    ) -> Option<ResolvedLists> {
        let Some(tools) = tools else {
            if tool_list::is_everything(&disallowed) {
                let message = "no tool is left: `disallowedTools` takes all away".to_owned();
                self.at_field(Severity::Error, "disallowedTools", message, "name the tools to take away".into());
                return None;
            }
            return Some(ResolvedLists { tools: None, disallowed: take_writing(disallowed, read_only) });
        };
        if tools.is_empty() {
            let hint = "name the tools it has, or remove the line: then it has all that its caller has".into();
            self.at_field(Severity::Error, "tools", "`tools` is empty: the agent could do nothing".into(), hint);
            return None;
        }
        let blocked: Vec<_> =
            tools.iter().filter(|tool| blocked_for_subagents().any(|name| name == tool.tool())).cloned().collect();
        if !blocked.is_empty() {
            let message = format!("no agent may use {}", tool_list::named(&blocked));
            self.at_field(Severity::Warning, "tools", message, "take it out of the list".into());
        }
        if tool_list::is_everything(&tools) && !tool_list::is_everything(&disallowed) {
            return Some(ResolvedLists { tools: None, disallowed: take_writing(disallowed, read_only) });
        }
        let (left, dropped) = tool_list::without(tools, &disallowed);
        if left.is_empty() {
            let message = "no tool is left: `disallowedTools` takes away all that `tools` names".to_owned();
            self.at_field(Severity::Error, "tools", message, "name a tool in `tools` only".into());
            return None;
        }
        if !dropped.is_empty() {
            let message = format!("{} stands in both lists and is taken away", tool_list::named(&dropped));
            self.at_field(Severity::Warning, "tools", message, "name a tool in one list only".into());
        }
        disallowed = take_writing(disallowed, read_only);
        let (left, _) = tool_list::without(left, &disallowed);
        if left.is_empty() {
            let message = "no tool is left: a read-only agent has none that writes".to_owned();
            self.at_field(Severity::Error, "tools", message, "name tools that read".into());
            return None;
        }
        Some(ResolvedLists { tools: Some(left), disallowed })
    }

    /// Applies `read` to a field and records a fault as an error. The outer `None` means a fault, the inner `None` that the
    /// file does not have the field.
    fn read<T>(&mut self, name: &'static str, read: impl Fn(&Value) -> Result<T, Fault>) -> Option<Option<T>> {
        let Some(index) = self.entries.iter().position(|entry| entry.key == name) else { return Some(None) };
        let (node, block) = (&self.entries[index].value, &self.document.block);
        let value = Value { name, node, block, path: &[index], zone: chrono_tz::UTC };
        match read(&value) {
            Ok(read) => Some(Some(read)),
            Err(fault) => {
                let at = value.line_and_column(fault.item);
                self.problem(Severity::Error, Some(name), fault.message, fault.hint, at);
                None
            }
        }
    }

    fn problem(
        &mut self,
        severity: Severity,
        field: Option<&str>,
        message: String,
        hint: Option<String>,
        (line, column): (u32, u32),
    ) {
        let file = self.file.source.path.clone();
        let field = field.map(Into::into);
        self.problems.push(Problem { file, line, column, field, severity, message, hint, id: None, made_by: None });
    }

    fn at_key(&mut self, severity: Severity, index: usize, message: String, hint: String) {
        let at = self.document.block.locate(&YamlPath::Key(vec![index]));
        let key = self.entries[index].key.clone();
        self.problem(severity, Some(&key), message, Some(hint), at);
    }

    /// Records a problem at a field's key, or at the file's first line if the field is missing.
    fn at_field(&mut self, severity: Severity, name: &str, message: String, hint: String) {
        match self.entries.iter().position(|entry| entry.key == name) {
            Some(index) => self.at_key(severity, index, message, hint),
            None => self.problem(severity, Some(name), message, Some(hint), (1, 1)),
        }
    }
}

/// The two tool lists, resolved against each other.
struct ResolvedLists {
    tools: Option<Vec<ToolPattern>>,
    disallowed: Vec<ToolPattern>,
}

/// The value of `permissionMode` as written in the file.
#[derive(Clone)]
enum Mode {
    Default,
    DontAsk,
    /// The client's read-only mode.
    Plan,
    /// A mode of the client that grants more than the rules do.
    Wider(&'static str),
}

impl Mode {
    fn here(self) -> PermissionMode {
        match self {
            Self::DontAsk => PermissionMode::DontAsk,
            Self::Default | Self::Plan | Self::Wider(_) => PermissionMode::Default,
        }
    }
}

fn mode(value: &Value) -> Result<Mode, Fault> {
    match &*value.letters()? {
        "default" => Ok(Mode::Default),
        "dontAsk" => Ok(Mode::DontAsk),
        "plan" => Ok(Mode::Plan),
        "acceptEdits" => Ok(Mode::Wider("acceptEdits")),
        "bypassPermissions" => Ok(Mode::Wider("bypassPermissions")),
        "auto" => Ok(Mode::Wider("auto")),
        other => Err(Fault {
            message: format!("{} is not a permission mode", quoted(other)),
            hint: Some("write `default`, `dontAsk` or `plan`".into()),
            item: None,
        }),
    }
}

fn model(value: &Value) -> Result<AgentModel, Fault> {
    Ok(match value.model()?.as_str() {
        "inherit" => AgentModel::Inherit,
        "default" => AgentModel::Default,
        name => AgentModel::Named(name.into()),
    })
}

/// Adds the writing tools to a read-only agent's denials.
fn take_writing(mut disallowed: Vec<ToolPattern>, read_only: bool) -> Vec<ToolPattern> {
    if read_only {
        let writing = WRITING_TOOLS.iter().filter_map(|tool| ToolPattern::parse(tool).ok());
        let missing: Vec<_> = writing.filter(|tool| !disallowed.contains(tool)).collect();
        disallowed.extend(missing);
    }
    disallowed
}

#[cfg(test)]
mod tests;
