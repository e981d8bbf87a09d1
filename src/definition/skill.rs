//! Skills: `skills/<name>/SKILL.md` in the agent client's format, for the prompts of the jobs that name them.
//!
//! A skill is text and adds no tools: its `allowed-tools` is compared with the job's tools, and grants nothing. A file
//! outside of the data folder is not read.

use std::fs;
use std::path::{Path, PathBuf};

use super::frontmatter::{self, Block, NoFrontmatter, Node, YamlPath};
use super::problem::quoted;
use super::{Definition, DefinitionError, LARGEST_FILE, Parsed, Problem, Severity, parse, read};
use crate::home::Home;
use crate::policy::{BOT, ToolPattern, UpdateMode, own_tool};

/// Maximum length of a name, in bytes: the client's own limit.
const LONGEST_NAME: usize = 64;

/// The field of a definition that names skills, and the name of their folder.
const FIELD: &str = "skills";

/// A skill as prompts contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name of its folder, by which jobs name it.
    pub name: String,
    /// Its purpose, on one line; may be empty.
    pub description: String,
    /// The tools that it declares, as written. They grant nothing.
    pub allowed_tools: Vec<String>,
    /// The instructions. Never blank.
    pub body: String,
}

/// Reads skills, in the order of `names`.
///
/// # Errors
/// [`DefinitionError::Skill`] for the first that is missing or unusable.
pub fn load_skills(home: &Home, names: &[String]) -> Result<Vec<Skill>, DefinitionError> {
    names.iter().map(|name| load(home, name)).collect()
}

/// Whether a name is valid for a skill: the name of a folder, never a path.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= LONGEST_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

fn load(home: &Home, name: &str) -> Result<Skill, DefinitionError> {
    let failed = |message: String, hint: String| DefinitionError::Skill { name: name.to_owned(), message, hint };
    let file = Path::new(FIELD).join(name).join("SKILL.md");
    let unusable = |message: String| failed(message, format!("check {}", file.display()));
    let path = home.root().join(&file);
    let inside = fs::canonicalize(&path).and_then(|path| Ok(path.starts_with(fs::canonicalize(home.root())?)));
    if is_name(name) && inside.is_ok_and(|inside| !inside) {
        return Err(unusable("it lies outside of the data folder".into()));
    }
    let text = match is_name(name).then(|| read::text(home, &file)) {
        Some(Ok(Some(text))) => text,
        Some(Err(error)) => return Err(unusable(error.to_string())),
        Some(Ok(None)) | None => {
            let hint = match nearest(home, name) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write {}, or take it out of `skills`", file.display()),
            };
            return Err(failed("there is no such skill".into(), hint));
        }
    };
    let at = |message: &str, (line, column): (u32, u32)| {
        let place = format!("{}:{line}:{column}", file.display());
        failed(message.to_owned(), format!("see {place}"))
    };
    if text.len() > LARGEST_FILE {
        return Err(unusable("it is over 1 MiB".into()));
    }
    let document = frontmatter::split(&text).map_err(|error| match error {
        NoFrontmatter::Missing => at("it has no frontmatter with `name` and `description`", (1, 1)),
        NoFrontmatter::Unclosed(line) => at("its frontmatter is not closed", (line, 1)),
    })?;
    let entries = document.block.entries().map_err(|error| {
        at(&format!("its frontmatter is not valid YAML: {}", error.message), (error.line, error.column))
    })?;
    let value = |keys: [&str; 2]| {
        let found = entries.iter().enumerate().find(|(_, entry)| keys.contains(&&*entry.key));
        found.map(|(index, entry)| (index, &entry.value))
    };
    let description = match value(["description"; 2]) {
        None | Some((_, Node::Null)) => String::new(),
        Some((_, Node::Text(text))) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Some((index, _)) => return Err(at("its `description` is not text", key(&document.block, index))),
    };
    let allowed_tools = match value(["allowed-tools", "allowed_tools"]) {
        None | Some((_, Node::Null)) => Vec::new(),
        Some((index, node)) => {
            let wrong = || at("its `allowed-tools` is not a list of tools", key(&document.block, index));
            tools(node).ok_or_else(wrong)?
        }
    };
    let body = document.body.trim().to_owned();
    if body.is_empty() {
        return Err(at("it says nothing below its frontmatter", (frontmatter::closing_line(&text), 1)));
    }
    Ok(Skill { name: name.to_owned(), description, allowed_tools, body })
}

fn key(block: &Block, index: usize) -> (u32, u32) {
    block.locate(&YamlPath::Key(vec![index]))
}

/// Reads a list of texts, or one text with commas or blanks between its items. The client accepts both.
fn tools(node: &Node) -> Option<Vec<String>> {
    match node {
        Node::Text(text) => Some(words(text)),
        Node::List(items) => items
            .iter()
            .map(|item| match item {
                Node::Text(text) => Some(text.trim().to_owned()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// Splits a text at commas and blanks outside of parentheses.
fn words(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    };
    text.split(between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn nearest(home: &Home, name: &str) -> Option<String> {
    let there = fs::read_dir(home.skills()).ok()?;
    let names = there.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let near = names.filter(|there| is_name(there) && name.len() <= LONGEST_NAME);
    let near = near.map(|there| (strsim::damerau_levenshtein(&there, name), there));
    near.filter(|(distance, there)| (1..=2).contains(distance) && *distance < there.len()).min().map(|(_, name)| name)
}

/// Adds the problems of the skills that a definition names: an error for each unusable skill, a warning for each tool
/// that a skill declares and the job lacks. `text` is the parsed text.
pub(super) fn check(home: &Home, file: &Path, text: &[u8], parsed: &mut Parsed) {
    let Some(definition) = parsed.definition.as_ref().filter(|definition| !definition.skills.is_empty()) else {
        return;
    };
    let mut found = Vec::new();
    for (item, name) in definition.skills.iter().enumerate() {
        let said: Vec<(Severity, String, String)> = match load(home, name) {
            Ok(skill) => lacking(&skill, definition)
                .map(|tool| {
                    let message = format!("skill {} uses {}, which this job lacks", quoted(name), quoted(tool));
                    let hint = "a skill adds no tools: give the job the tool, or leave it as it is".to_owned();
                    (Severity::Warning, message, hint)
                })
                .collect(),
            Err(DefinitionError::Skill { name, message, hint }) => {
                vec![(Severity::Error, format!("skill {} cannot be used: {message}", quoted(&name)), hint)]
            }
            Err(other) => vec![(Severity::Error, other.to_string(), "check the data folder".into())],
        };
        let (line, column) = parse::item_position(text, FIELD, item);
        found.extend(said.into_iter().map(|(severity, message, hint)| Problem {
            line,
            column,
            field: Some(FIELD.into()),
            id: Some(definition.id.clone()),
            ..Problem::of_file(file, severity, message, Some(hint))
        }));
    }
    parsed.problems.extend(found);
    parsed.problems.sort_by_key(|problem| (problem.line, problem.column));
    if parsed.problems.iter().any(Problem::is_error) {
        parsed.definition = None;
    }
}

/// Whether a file must be read again when skills change: it names skills, or has a problem with them.
pub(super) fn concerns(definition: Option<&Definition>, problems: &[Problem]) -> bool {
    definition.is_some_and(|definition| !definition.skills.is_empty())
        || problems.iter().any(|problem| problem.field.as_deref() == Some(FIELD))
}

/// Returns the folder of skills, relative to the data folder.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(FIELD)
}

/// Returns the tools that a skill declares and a job clearly lacks; none for a turn of the main session.
fn lacking<'a>(skill: &'a Skill, definition: &Definition) -> impl Iterator<Item = &'a String> {
    let restrictions = definition.background().map(|background| background.restrictions.clone());
    skill.allowed_tools.iter().filter(move |tool| {
        let Some(restrictions) = &restrictions else { return false };
        // An invalid pattern names no tool that a job could have.
        let Ok(pattern) = ToolPattern::parse(tool) else { return true };
        let taken = |tool: &str| ToolPattern::parse(tool).is_ok_and(|tool| BOT.covers(&tool, &pattern));
        let pings = [own_tool!("ping_user"), own_tool!("discord_embed")];
        (!restrictions.allow_ping && pings.into_iter().any(taken))
            || (restrictions.update_main_session == UpdateMode::Blocked && taken(own_tool!("report_updates")))
            || restrictions
                .effective_allowed_tools()
                .is_some_and(|granted| !granted.iter().any(|granted| BOT.covers(granted, &pattern)))
            || restrictions
                .disallowed_tools()
                .is_some_and(|denied| denied.iter().any(|deny| BOT.covers(deny, &pattern)))
    })
}

#[cfg(test)]
mod tests;
