//! Skills: `skills/<name>/SKILL.md` in the agent client's format, read for the prompts of the jobs that name them.
//!
//! A skill is text, and adds no tools: what its `allowed-tools` names is compared with what the job has, and never
//! granted. A file that leads out of the data folder is not read.

use std::fs;
use std::path::{Path, PathBuf};

use super::frontmatter::{self, Block, NoFrontmatter, Node, Spot};
use super::problem::quoted;
use super::{Definition, DefinitionError, LARGEST_FILE, Parsed, Problem, Severity, parse, read};
use crate::home::Home;
use crate::policy::{BOT, ToolPattern, UpdateMode};

/// The longest name, in bytes: the client's own limit.
const LONGEST_NAME: usize = 64;

/// The field of a definition that names them.
const FIELD: &str = "skills";

/// A skill as a prompt has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its folder's name, by which jobs name it.
    pub name: String,
    /// What it is for, on one line; may be empty.
    pub description: String,
    /// The tools that it says it uses, as they are written. They grant nothing.
    pub allowed_tools: Vec<String>,
    /// The instructions. Never blank.
    pub body: String,
}

/// Reads skills, in this order.
///
/// # Errors
/// [`DefinitionError::Skill`] for the first that is missing or cannot be used.
pub fn load_skills(home: &Home, names: &[String]) -> Result<Vec<Skill>, DefinitionError> {
    names.iter().map(|name| load(home, name)).collect()
}

/// Whether a skill can have this name: it is a folder's, and never a path.
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
    block.locate(&Spot::Key(vec![index]))
}

/// A list of texts, or one text with commas or blanks between them, as the client takes both.
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

/// Split at commas and blanks that stand outside of parentheses.
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

/// Finds what is wrong with the skills that a definition names: an error for each that cannot be used, a warning for
/// each tool that one declares and the job lacks. `text` is what was parsed.
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

/// Whether what a file says hangs on skills: it has to be read again when they change.
pub(super) fn concerns(definition: Option<&Definition>, problems: &[Problem]) -> bool {
    definition.is_some_and(|definition| !definition.skills.is_empty())
        || problems.iter().any(|problem| problem.field.as_deref() == Some(FIELD))
}

/// The folder that skills live in, relative to the data folder.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(FIELD)
}

/// The tools that a skill declares and a job plainly has not. A turn of the main session has the main session's.
fn lacking<'a>(skill: &'a Skill, definition: &Definition) -> impl Iterator<Item = &'a String> {
    let restrictions = definition.background().map(|background| background.restrictions.clone());
    skill.allowed_tools.iter().filter(move |tool| {
        let Some(restrictions) = &restrictions else { return false };
        // What is no pattern at all names no tool that a job could have.
        let Ok(pattern) = ToolPattern::parse(tool) else { return true };
        let taken = |tool: &str| ToolPattern::parse(tool).is_ok_and(|tool| BOT.covers(&tool, &pattern));
        let pings = ["mcp__discord__ping_user", "mcp__discord__discord_embed"];
        (!restrictions.allow_ping && pings.into_iter().any(taken))
            || (restrictions.update_main_session == UpdateMode::Blocked && taken("mcp__discord__report_updates"))
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
