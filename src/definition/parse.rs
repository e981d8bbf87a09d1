//! Parses a file's text into a definition and its problems. Pure: no I/O, no clock.
//!
//! The result has a definition only if there is no error. One pass finds all problems, each with the line and column of
//! its field.

mod fields_of;
mod rules;

use std::ffi::OsStr;
use std::path::Path;

use chrono_tz::Tz;

use super::fields::{self, Field};
use super::frontmatter::{self, Document, Entry, NoFrontmatter, Node, YamlPath};
use super::problem::quoted;
use super::values::Value;
use super::{Definition, DefinitionId, Draft, Kind, KnownAgents, KnownCommands, Problem, Severity};

/// Maximum size of a file, in bytes.
pub const LARGEST_FILE: usize = 1 << 20;

/// The context of parsing a file.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The zone of definitions without `timezone`: the configured one, else the system's.
    pub zone: Tz,
    /// The built-in commands and the person's own. A rule that names another command yields a warning.
    pub commands: KnownCommands,
    /// The known named agents.
    pub agents: KnownAgents,
}

/// The result of parsing a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// `None` if any problem is an error.
    pub definition: Option<Definition>,
    /// All problems, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Parsed {
    /// Returns the job that made the definition, also of one with errors; `None` if no job did.
    #[must_use]
    pub fn made_by(&self) -> Option<&DefinitionId> {
        made_by(self.definition.as_ref(), &self.problems)
    }
}

/// See [`Parsed::made_by`].
pub(super) fn made_by<'a>(definition: Option<&'a Definition>, problems: &'a [Problem]) -> Option<&'a DefinitionId> {
    match definition {
        Some(definition) => definition.created_by.as_ref(),
        None => problems.iter().find_map(|problem| problem.made_by.as_ref()),
    }
}

/// Parses the file of a definition of this kind. `file` is its path relative to the data folder.
#[must_use]
pub fn parse(kind: Kind, file: &Path, text: &[u8], defaults: &Defaults) -> Parsed {
    let id = DefinitionId::new(file.file_stem().map(OsStr::to_string_lossy).unwrap_or_default());
    let refuse = |message: String, hint: &str, line: u32, column: u32| {
        let problem = Problem::of_file(file, Severity::Error, message, Some(hint.to_owned()));
        Parsed { definition: None, problems: vec![Problem { line, column, id: Some(id.clone()), ..problem }] }
    };
    if text.len() > LARGEST_FILE {
        return refuse("the file is over 1 MiB".into(), "keep long material in a file that the prompt names", 1, 1);
    }
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let (line, column) = end_of(&text[..error.valid_up_to()]);
            return refuse("the file is not UTF-8 text".into(), "save it as UTF-8", line, column);
        }
    };
    let document = match frontmatter::split(text) {
        Ok(document) => document,
        Err(NoFrontmatter::Missing) => {
            let example = match kind {
                Kind::Routine => "begin the file with `---`, a line `cron: '30 8 * * *'`, `---`, and then the prompt",
                Kind::Webhook => "begin the file with `---`, a line `signature: github`, `---`, and then the prompt",
                Kind::Reminder | Kind::Session => {
                    "begin the file with `---`, a line `run_at: 2026-11-22T09:00:00+01:00`, `---`, and then the prompt"
                }
            };
            return refuse("there is no frontmatter".into(), example, 1, 1);
        }
        Err(NoFrontmatter::Unclosed(line)) => {
            let hint = "add a line `---` between the settings and the prompt";
            return refuse("the frontmatter is not closed".into(), hint, line, 1);
        }
    };
    let entries = match document.block.entries() {
        Ok(entries) => entries,
        Err(error) => {
            let hint = error.hint.as_deref().unwrap_or("each setting is a line `key: value`");
            return refuse(
                format!("the frontmatter is not valid YAML: {}", error.message),
                hint,
                error.line,
                error.column,
            );
        }
    };
    let mut reading = Reading::new(kind, file, text, &document, defaults, id.clone());
    reading.sort(&entries);
    let definition = reading.definition();
    reading.finish(definition)
}

/// Returns the line and column (from 1) of a field's key; `(1, 1)` if the file lacks it.
pub(super) fn position(text: &[u8], field: &str) -> (u32, u32) {
    let find = || {
        let document = frontmatter::split(std::str::from_utf8(text).ok()?).ok()?;
        let entries = document.block.entries().ok()?;
        let index =
            entries.iter().position(|entry| fields::named(&entry.key).is_some_and(|known| known.name == field))?;
        Some(document.block.locate(&YamlPath::Key(vec![index])))
    };
    find().unwrap_or((1, 1))
}

/// Returns the line and column (from 1) of an item in a field's list; those of the field if it has no such item.
pub(super) fn item_position(text: &[u8], field: &str, item: usize) -> (u32, u32) {
    let find = || {
        let document = frontmatter::split(std::str::from_utf8(text).ok()?).ok()?;
        let entries = document.block.entries().ok()?;
        let named = |entry: &Entry| fields::named(&entry.key).is_some_and(|known| known.name == field);
        let index = entries.iter().position(named)?;
        let Node::List(items) = &entries[index].value else { return None };
        (item < items.len()).then(|| document.block.locate(&YamlPath::Value(vec![index, item])))
    };
    find().unwrap_or_else(|| position(text, field))
}

/// A known entry of the file.
struct Known<'a> {
    field: &'static Field,
    /// Index among the file's entries.
    index: usize,
    node: &'a Node,
}

/// The state of parsing a file.
struct Reading<'a> {
    kind: Kind,
    file: &'a Path,
    text: &'a str,
    document: &'a Document,
    defaults: &'a Defaults,
    /// The file's stem, until a valid `id` replaces it.
    id: DefinitionId,
    known: Vec<Known<'a>>,
    /// The fields with invalid values.
    faulty: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> Reading<'a> {
    fn new(
        kind: Kind,
        file: &'a Path,
        text: &'a str,
        document: &'a Document,
        defaults: &'a Defaults,
        id: DefinitionId,
    ) -> Self {
        Self { kind, file, text, document, defaults, id, known: Vec::new(), faulty: Vec::new(), problems: Vec::new() }
    }

    /// Sorts entries into known fields; reports unknown and repeated keys.
    fn sort(&mut self, entries: &'a [Entry]) {
        self.known.reserve_exact(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let field = fields::named(&entry.key);
            let twice = match field {
                Some(field) => self.known.iter().any(|known| known.field.name == field.name),
                None => entries[..index].iter().any(|other| other.key == entry.key),
            };
            if twice {
                let name = field.map_or(&*entry.key, |field| field.name);
                let message = format!("{} is set twice", quoted(name));
                self.at_key(Severity::Error, index, name, message, "keep one of the two");
                continue;
            }
            match field {
                Some(field) => self.known.push(Known { field, index, node: &entry.value }),
                None => self.unknown(index, &entry.key),
            }
        }
    }

    fn unknown(&mut self, index: usize, key: &str) {
        let shown = quoted(key);
        if key == "<<" {
            let hint = "write the settings out: a restriction that comes by a merge could be missed";
            return self.at_key(Severity::Error, index, key, "merge keys are not supported".into(), hint);
        }
        match fields::nearest(key) {
            Some(field) if field.restricts => {
                let message = format!("unknown field {shown}, close to `{}`, which restricts the job", field.name);
                let hint = format!("did you mean `{}`?", field.name);
                self.at_key(Severity::Error, index, key, message, &hint);
            }
            Some(field) => {
                let hint = format!("did you mean `{}`?", field.name);
                self.at_key(Severity::Warning, index, key, format!("unknown field {shown}"), &hint);
            }
            None => {
                let hint = "it has no effect: remove it, or write it as a comment (`# …`)";
                self.at_key(Severity::Warning, index, key, format!("unknown field {shown}"), hint);
            }
        }
    }

    /// Returns the entry of a field, if the file has it.
    fn entry(&self, name: &str) -> Option<&Known<'a>> {
        self.known.iter().find(|known| known.field.name == name)
    }

    /// Whether the value of a field is invalid.
    fn is_faulty(&self, name: &str) -> bool {
        self.faulty.contains(&name)
    }

    /// Reads every field of this kind of definition, and the zone of its times. Each fault becomes a problem.
    fn draft(&mut self) -> (Draft, Tz) {
        let mut draft = Draft::empty(self.kind, self.document.body.clone());
        let mut zone = self.defaults.zone;
        let mut known = std::mem::take(&mut self.known);
        // The zone comes first: other fields may hold local times.
        known.sort_by_key(|known| known.field.name != "timezone");
        for Known { field, index, node } in &known {
            if !field.on.has(self.kind) || (field.may_be_empty && **node == Node::Null) {
                continue;
            }
            let path = std::slice::from_ref(index);
            let value = Value { name: field.name, node, block: &self.document.block, path, zone };
            if let Err(fault) = (field.read)(&value, &mut draft) {
                let at = value.line_and_column(fault.item);
                self.problem(Severity::Error, Some(field.name), fault.message, fault.hint, at);
                self.faulty.push(field.name);
            }
            zone = draft.timezone.unwrap_or(zone);
        }
        self.known = known;
        (draft, zone)
    }

    fn problem(
        &mut self,
        severity: Severity,
        field: Option<&str>,
        message: String,
        hint: Option<String>,
        (line, column): (u32, u32),
    ) {
        self.problems.push(Problem {
            file: self.file.to_owned(),
            line,
            column,
            field: field.map(Into::into),
            severity,
            message,
            hint,
            id: None,
            made_by: None,
        });
    }

    /// Adds a problem at the key of the `index`-th entry.
    fn at_key(&mut self, severity: Severity, index: usize, field: &str, message: String, hint: &str) {
        let at = self.document.block.locate(&YamlPath::Key(vec![index]));
        self.problem(severity, Some(field), message, Some(hint.into()), at);
    }

    /// Adds a problem at the key of a field, or at the opening `---` if the file lacks the field.
    fn at_field(&mut self, severity: Severity, name: &str, message: String, hint: &str) {
        match self.entry(name).map(|known| known.index) {
            Some(index) => self.at_key(severity, index, name, message, hint),
            None => {
                let line = (1u32..).zip(self.text.lines()).find(|(_, line)| line.contains("---")).map_or(1, |(n, _)| n);
                self.problem(severity, Some(name), message, Some(hint.into()), (line, 1));
            }
        }
    }

    /// Adds a warning at an item of a list.
    fn at_item(&mut self, name: &'static str, item: usize, message: String, hint: Option<String>) {
        let Some(index) = self.entry(name).map(|known| known.index) else { return };
        let at = self.document.block.locate(&YamlPath::Value(vec![index, item]));
        self.problem(Severity::Warning, Some(name), message, hint, at);
    }

    fn finish(mut self, definition: Option<Definition>) -> Parsed {
        for problem in &mut self.problems {
            problem.id = Some(self.id.clone());
        }
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        let failed = self.problems.iter().any(Problem::is_error);
        Parsed { definition: definition.filter(|_| !failed), problems: self.problems }
    }
}

/// Returns the line and column (from 1) after `bytes`.
fn end_of(bytes: &[u8]) -> (u32, u32) {
    let text = String::from_utf8_lossy(bytes);
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
