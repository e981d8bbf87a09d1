//! `check`: what is wrong with which file, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::context::{Caller, Context};
use super::error::CliError;
use super::output::{BAD, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};
use crate::channel::terminal::plain;
use crate::definition::{Definition, DefinitionId, Loaded, Problem};
use crate::policy::includes;
use crate::run::held::held;

/// Checks the whole folder and shows the problems of `files`, or all. Exit 1 if any is an error.
///
/// # Errors
/// When a file is not one of the data folder's.
pub fn check(files: &[PathBuf], context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load_without_settings()?;
    let chosen = files.iter().map(|file| relative(file, context, &loaded)).collect::<Result<Vec<_>, _>>()?;
    let problems: Vec<&Problem> =
        loaded.problems.iter().filter(|problem| chosen.is_empty() || chosen.contains(&problem.file)).collect();
    let definitions: Vec<&Definition> = loaded
        .definitions
        .values()
        .filter(|definition| chosen.is_empty() || chosen.contains(&definition.file))
        .map(AsRef::as_ref)
        .collect();
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    if errors > 0 {
        output.exit = 1;
    }
    if context.json {
        let included: BTreeMap<&DefinitionId, Vec<String>> = definitions
            .iter()
            .map(|definition| (&definition.id, included(definition)))
            .filter(|(_, lines)| !lines.is_empty())
            .collect();
        output.json(&json!({
            "definitions": definitions.len(),
            "problems": problems,
            "includes": included,
            "sandbox": held().words,
        }));
        return Ok(());
    }
    // Of all files at once it would be a long list, and bury what is wrong.
    if !chosen.is_empty() {
        explain(&definitions, output);
    }
    for problem in &problems {
        output.line(coloured(problem));
        output.line("");
    }
    let warnings = problems.len() - errors;
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    };
    let summary = format!(
        "{} in order, {}, {}",
        counted(definitions.len(), "definition"),
        counted(errors, "error"),
        counted(warnings, "warning")
    );
    output.line(if errors == 0 && warnings == 0 { paint(GOOD, &summary) } else { summary.as_str().into() });
    Ok(())
}

/// What the Bash rules of definitions include, and what holds them here.
fn explain(definitions: &[&Definition], output: &mut Output) {
    let mut any = false;
    for definition in definitions {
        let included = included(definition);
        if included.is_empty() {
            continue;
        }
        any = true;
        output.line(paint(STRONG, &plain(&definition.title())));
        included.iter().for_each(|line| output.line(format!("  {}", plain(line))));
    }
    if any {
        output.line(paint(FAINT, &format!("held by: {}", held().words)));
        output.line("");
    }
}

fn included(definition: &Definition) -> Vec<String> {
    let granted = definition.background().and_then(|background| background.restrictions.effective_allowed_tools());
    granted.iter().flatten().filter_map(includes).collect()
}

/// The block of a problem, its first words coloured.
pub(super) fn coloured(problem: &Problem) -> String {
    problem
        .to_string()
        .lines()
        .map(|line| {
            let mark = [("error:", BAD), ("warning:", WARN), ("hint:", HINT)];
            match mark.iter().find_map(|(mark, style)| Some((mark, style, line.strip_prefix(mark)?))) {
                Some((mark, style, rest)) => format!("{}{rest}", paint(*style, mark)),
                None => line.to_owned(),
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// The file's path in the data folder; an id stands for its file. A run names ids and files of the data folder
/// only: it must not learn from a diagnostic what stands in any other file.
fn relative(file: &Path, context: &Context, loaded: &Loaded) -> Result<PathBuf, CliError> {
    let known = |path: &Path| {
        loaded.definitions.values().any(|definition| definition.file == path)
            || loaded.problems.iter().any(|problem| problem.file == path)
    };
    if known(file) {
        return Ok(file.to_owned());
    }
    if let Some(name) = file.to_str()
        && let Some(definition) = loaded.definitions.get(&DefinitionId::new(name))
    {
        return Ok(definition.file.clone());
    }
    if matches!(context.caller, Caller::Person)
        && let Ok(absolute) = context.folder.join(file).canonicalize()
        && let Ok(inside) = absolute.strip_prefix(context.home.root())
        && known(inside)
    {
        return Ok(inside.to_owned());
    }
    Err(CliError::user(format!("{} is no definition of {}", file.display(), context.home.root().display()))
        .hint("name an id, or a file of routines/ or reminders/"))
}
