//! Renders the state of everything that jobs depend on.

use serde_json::json;

use super::View;
use crate::app::{Diagnosis, Finding, Health};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, FAINT, GOOD, HINT, Output, WARN, paint};
use crate::cli::wrap;

/// Width of the longest mark and of the longest name of a check.
const INDENT: usize = 7 + 13;

/// Renders a line for each finding, with its steps below, and a summary. The exit code is 1 if anything is wrong.
pub(super) fn diagnosis(diagnosis: &Diagnosis, view: &View, output: &mut Output) {
    if diagnosis.is_wrong() {
        output.exit = 1;
    }
    if view.json {
        output.json(&json!({ "fixed": diagnosis.fixed, "findings": diagnosis.findings, "ok": !diagnosis.is_wrong() }));
        return;
    }
    for fixed in &diagnosis.fixed {
        output.line(format!("{}  {}", paint(GOOD, "fixed"), plain(fixed)));
    }
    diagnosis.findings.iter().for_each(|finding| line(finding, output));
    let (wrong, look) = (diagnosis.count(Health::Wrong), diagnosis.count(Health::Look));
    output.line("");
    output.line(match (wrong, look) {
        (0, 0) => paint(GOOD, "Everything is in order."),
        (0, _) => format!("Nothing is wrong; {look} to look at."),
        _ => paint(BAD, &format!("{wrong} wrong, {look} to look at.")),
    });
}

/// Renders a finding and its steps.
pub(in super::super) fn line(finding: &Finding, output: &mut Output) {
    let (mark, style) = match finding.health {
        Health::Ok => ("ok", GOOD),
        Health::Look => ("look", WARN),
        Health::Wrong => ("wrong", BAD),
    };
    let blanks = " ".repeat(7 - mark.len());
    let check = paint(FAINT, finding.check);
    let after = " ".repeat(13 - finding.check.len());
    let first = format!("{}{blanks}{check}{after}", paint(style, mark));
    hang(&first, INDENT, &finding.detail, output);
    for step in &finding.steps {
        hang(&format!("{}{} ", " ".repeat(INDENT), paint(HINT, "->")), INDENT + 3, step, output);
    }
}

/// Renders a text behind `first`, which is `indent` characters wide. Its further lines stand below its start.
fn hang(first: &str, indent: usize, text: &str, output: &mut Output) {
    let line = format!("{first}{}", output.as_data(&plain(text)));
    output.verbatim(output.width.map_or(line.clone(), |width| wrap::hanging(&line, indent, width)));
}
