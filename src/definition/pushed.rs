//! Definitions that only the journal's database has. A host knows one only while it is nearly due.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::read::parsed;
use super::{Defaults, Definition, DefinitionId, Kind, Parsed, Problem, Severity, parse};
use crate::home::Home;

/// The folder that stands for the database in the path of a definition. There are no such files.
const FOLDER: &str = "database";

/// Returns the path that stands for a definition in the database: `database/routines/tea.md`.
#[must_use]
pub fn pushed_path(kind: Kind, id: &DefinitionId) -> PathBuf {
    Path::new(FOLDER).join(format!("{kind}s")).join(format!("{id}.md"))
}

/// Returns the id of the definition in the database for which a path stands; `None` if it is the path of a file.
#[must_use]
pub fn pushed_id(path: &Path) -> Option<DefinitionId> {
    path.starts_with(FOLDER).then(|| DefinitionId::new(path.file_stem().unwrap_or_default().to_string_lossy()))
}

impl Definition {
    /// Whether only the database has it.
    #[must_use]
    pub fn is_pushed(&self) -> bool {
        self.file.starts_with(FOLDER)
    }
}

/// Parses the text of a definition for the database, like that of a file. Refuses what a host has to know all the time. `zone` is the
/// name of the zone that the database has for it; without one that is known here, the default applies.
#[must_use]
pub fn parse_pushed(
    home: &Home,
    kind: Kind,
    id: &DefinitionId,
    text: &[u8],
    zone: Option<&str>,
    defaults: &Defaults,
) -> Parsed {
    let path = pushed_path(kind, id);
    let zone = zone.and_then(|zone| zone.parse().ok()).unwrap_or(defaults.zone);
    let defaults = Defaults { zone, ..defaults.clone() };
    let read = catch_unwind(AssertUnwindSafe(|| parsed(home, kind, &path, text, &defaults)));
    let mut parsed = read.unwrap_or_else(|_| {
        let message = "the text could not be read because of a defect of ollim-bot";
        let hint = Some("please report it with the text".to_owned());
        Parsed { definition: None, problems: vec![Problem::of_file(&path, Severity::Error, message, hint)] }
    });
    if let Some(definition) = &parsed.definition
        && let Some(refused) = refused(definition, id)
    {
        let (line, column) = refused.field.as_deref().map_or((1, 1), |field| parse::position(text, field));
        parsed.problems.push(Problem { line, column, ..refused });
        parsed.definition = None;
    }
    parsed
}

/// Returns why a definition cannot be in the database alone.
fn refused(definition: &Definition, id: &DefinitionId) -> Option<Problem> {
    const HINT: &str = "use a file in the folder of the bot";
    let refuse = |field: &str, message: String, hint: &str| {
        Some(Problem::of_field(definition, field, Severity::Error, message, hint))
    };
    let cannot = |field: &str, why: &str| refuse(field, format!("`{field}` works only in a file: {why}"), HINT);
    if definition.hook().is_some() {
        let message = "a webhook works only in a file: the host has to know it before something is delivered";
        return Some(Problem::of_file(&definition.file, Severity::Error, message, Some(HINT.into())));
    }
    if definition.id != *id {
        let message = format!("in the database the name of the file is the id: `{id}`");
        return refuse("id", message, "remove `id`, or rename the file");
    }
    if definition.follows().is_some() {
        return cannot("after", "the host has to know it before the other job ends");
    }
    if definition.watches().is_some() {
        return cannot("watch", "the host has to watch the folder all the time");
    }
    if definition.wake {
        return cannot("wake", "the machine has to know the time before it sleeps");
    }
    if definition.chain().is_some() {
        return cannot("chain_depth", "a follow-up belongs to the run that made it");
    }
    if definition.created_by.is_some() {
        return cannot("created_by", "a job that a job has made is a file");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, name: &str, text: &str, expected: Option<(&str, u32)>) {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let parsed =
            parse_pushed(&Home::new("/nowhere"), kind, &DefinitionId::new(name), text.as_bytes(), None, &defaults);
        let found = parsed.problems.iter().find(|problem| problem.is_error());
        let found = found.map(|problem| (problem.field.as_deref().unwrap_or_default(), problem.line));
        assert_eq!(found, expected, "{:?}", parsed.problems);
        assert_eq!(parsed.definition.is_some(), expected.is_none());
        if let Some(definition) = parsed.definition {
            assert!(definition.is_pushed());
            assert_eq!(pushed_id(&definition.file), Some(definition.id));
        }
    }

    #[test]
    fn what_a_host_has_to_know_all_the_time_is_refused_at_its_line() {
        use Kind::{Reminder, Routine, Webhook};
        let routine = |more: &str| format!("---\ncron: '0 9 * * *'\n{more}---\nTea.\n");
        check(Routine, "tea", &routine(""), None);
        check(Routine, "tea.v2", &routine(""), None);
        check(Reminder, "call", "---\nrun_at: 2100-01-01T00:00:00Z\n---\nCall.\n", None);
        check(Routine, "tea", &routine("id: tea\n"), None);
        check(Routine, "tea", &routine("id: coffee\n"), Some(("id", 3)));
        check(Routine, "tea", &routine("wake: true\n"), Some(("wake", 3)));
        check(Routine, "tea", "---\nafter: mail\n---\nTea.\n", Some(("after", 2)));
        check(Routine, "tea", "---\nwatch: work/in\n---\nTea.\n", Some(("watch", 2)));
        check(Routine, "tea", &routine("created_by: mail\n"), Some(("created_by", 3)));
        check(Webhook, "hook", "---\nsignature: github\n---\nx\n", Some(("", 1)));
        check(Routine, "tea", "Tea.\n", Some(("", 1)));
    }
}
