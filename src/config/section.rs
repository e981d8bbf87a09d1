//! Reads a setting that is a mapping: `channels.phone`, `mcp_servers.calendar`.

use std::path::PathBuf;

use super::values::fault;
use crate::definition::frontmatter::{Entry, Node};
use crate::definition::quoted;
use crate::definition::values::Fault;

/// The entries of such a mapping.
pub(super) struct Section<'a> {
    /// Its key, as errors name it: `channels.phone`.
    pub name: String,
    pub entries: &'a [Entry],
    /// An example, as the hint of errors.
    pub hint: &'static str,
}

impl<'a> Section<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(super) fn wrong(&self, key: &str, what: &str) -> Fault {
        fault(format!("`{}.{key}` must be {what}", self.name), self.hint)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        match self.get(key) {
            Some(Node::Text(text)) => Ok(Some(text)),
            None => Ok(None),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        match self.get(key) {
            Some(Node::Bool(flag)) => Ok(*flag),
            None => Ok(false),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Fault> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let text = |node: &Node| match node {
            Node::Text(text) if !text.is_empty() && !text.contains('\0') => Some(text.to_string()),
            Node::Int(number) => Some(number.to_string()),
            _ => None,
        };
        let texts = match node {
            Node::List(items) => items.iter().map(text).collect(),
            one => text(one).map(|text| vec![text]),
        };
        texts.ok_or_else(|| self.wrong(key, "a list of texts"))
    }

    pub(super) fn command(&self) -> Result<Vec<String>, Fault> {
        let command = self.texts("command")?;
        match command.first() {
            Some(program) if !program.starts_with('-') && !program.contains(char::is_whitespace) => Ok(command),
            Some(_) => Err(self.wrong("command", "a list: the program, then each of its arguments")),
            None => Err(fault(format!("`{}` needs a `command`", self.name), self.hint)),
        }
    }

    pub(super) fn folders(&self, key: &str) -> Result<Vec<PathBuf>, Fault> {
        let folders: Vec<PathBuf> = self.texts(key)?.into_iter().map(PathBuf::from).collect();
        match folders.iter().all(|folder| folder.is_absolute() || folder.starts_with("~")) {
            true => Ok(folders),
            false => Err(self.wrong(key, "folders that begin with `/` or `~/`")),
        }
    }

    /// Refuses entries that are not among `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let Some(other) = self.entries.iter().find(|entry| !known.contains(&&*entry.key)) else { return Ok(()) };
        let message = format!("unknown setting {} of `{}`", quoted(&other.key), self.name);
        Err(fault(message, &format!("the settings are: {}", known.join(", "))))
    }
}
