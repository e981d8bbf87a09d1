//! Renders the problems of files, with their locations.

use std::collections::BTreeMap;

use serde_json::json;

use super::View;
use crate::app::CheckResult;
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};
use crate::definition::{Definition, DefinitionId, Problem};
use crate::policy::BOT;

/// Renders all problems and a summary. The exit code is 1 if any is an error.
pub(super) fn checked(checked: &CheckResult, view: &View, output: &mut Output) {
    let errors = checked.problems.iter().filter(|problem| problem.is_error()).count();
    if errors > 0 {
        output.exit = 1;
    }
    if view.json {
        let included: BTreeMap<&DefinitionId, Vec<String>> = checked
            .definitions
            .iter()
            .map(|definition| (&definition.id, included(definition)))
            .filter(|(_, lines)| !lines.is_empty())
            .collect();
        output.json(&json!({
            "definitions": checked.definitions.len(),
            "problems": checked.problems,
            "includes": included,
            "sandbox": checked.sandbox,
        }));
        return;
    }
    // For all files the list would be long, and hide the problems.
    if checked.chosen {
        explain(checked, output);
    }
    for found in &checked.problems {
        output.line(problem(found));
        output.line("");
    }
    let warnings = checked.problems.len() - errors;
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    };
    let summary = format!(
        "{} in order, {}, {}",
        counted(checked.in_order(), "definition"),
        counted(errors, "error"),
        counted(warnings, "warning")
    );
    output.line(if errors == 0 && warnings == 0 { paint(GOOD, &summary) } else { summary.as_str().into() });
    for pushed in checked.definitions.iter().filter(|definition| definition.is_pushed()) {
        output.note(plain(&format!("{} is in the journal's database, without a file", pushed.id)));
    }
}

/// Shows what the Bash rules of definitions include, and how they are enforced here.
fn explain(checked: &CheckResult, output: &mut Output) {
    let mut any = false;
    for definition in &checked.definitions {
        let included = included(definition);
        if included.is_empty() {
            continue;
        }
        any = true;
        output.line(paint(STRONG, &plain(&definition.title())));
        included.iter().for_each(|line| output.line(format!("  {}", plain(line))));
    }
    if any {
        output.line(paint(FAINT, &format!("held by: {}", checked.sandbox)));
        output.line("");
    }
}

fn included(definition: &Definition) -> Vec<String> {
    let Some(restrictions) = definition.background().map(|background| &background.restrictions) else {
        return Vec::new();
    };
    let granted = restrictions.effective_allowed_tools().unwrap_or_default();
    granted.iter().chain(restrictions.asked_tools()).filter_map(|pattern| BOT.includes(pattern)).collect()
}

/// Formats a problem, with its marks coloured.
pub(in super::super) fn problem(problem: &Problem) -> String {
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
