//! Small pieces of HTML that several views are made of.

use maud::{Markup, html};

use super::context::Context;
use crate::app::words::{self, Tone};
use crate::channel::terminal::plain_lines;
use crate::definition::Problem;
use crate::journal::{RunRecord, RunState};

/// The class of a tone.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Faint => "faint",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

/// The glyph of an outcome: its shape says as much as its colour.
pub(super) fn glyph(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "done",
        RunState::Failed => "failed",
        RunState::TimedOut => "late",
        RunState::Claimed => "waiting",
        RunState::Running => "going",
        RunState::Skipped => "skipped",
        RunState::Cancelled | RunState::Interrupted => "cut",
    }
}

/// How a run stands or ended, behind its glyph.
pub(super) fn outcome(run: &RunRecord, context: &Context) -> Markup {
    html! {
        span .outcome .(class(words::tone(run))) { (mark(run.outcome)) (words::outcome(run, context.now)) }
    }
}

/// A glyph alone.
pub(super) fn mark(state: RunState) -> Markup {
    html! { svg .mark width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true" { use href={ "#" (glyph(state)) } {} } }
}

/// A button in a form of its own.
pub(super) fn button(action: &str, label: &str, fields: &[(&str, &str)], context: &Context) -> Markup {
    html! {
        form .inline method="post" action=(action) {
            (token(context))
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button { (label) }
        }
    }
}

/// What makes a form one of this session's.
pub(super) fn token(context: &Context) -> Markup {
    html! { input type="hidden" name="token" value=(context.form_token); }
}

/// A sentence in which what stands between backquotes is code.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @match (index % 2, part) {
                (0, part) => (part),
                // Here that is a page.
                (_, "ollim-bot questions") => a href="/questions" { "Questions" },
                (_, part) => code { (part) },
            }
        }
    }
}

/// A path of one segment that names something.
pub(super) fn link(before: &str, name: &str, after: &str) -> String {
    let mut path = String::from(before);
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            // A segment of dots alone would be taken for a folder.
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path.push_str(after);
    path
}

/// A job's page.
pub(super) fn job(id: &str) -> Markup {
    html! { a href=(link("/jobs/", id, "")) { (id) } }
}

/// What is wrong with a file, and where: the line of a job's file is a link to it.
pub(super) fn problem(problem: &Problem) -> Markup {
    let place = html! { code { (problem.file.display()) ":" (problem.line) } };
    html! {
        @match &problem.id {
            Some(id) => a href=(link("/jobs/", id.as_str(), &format!("#L{}", problem.line))) { (place) },
            None => (place),
        }
        " " (with_code(&problem.message))
        @if let Some(hint) = &problem.hint { " (" (with_code(hint)) ")" }
    }
}

/// A run's page.
pub(super) fn run(id: &str) -> String {
    link("/runs/", id, "")
}

/// A term and what it says, where that is something.
pub(super) fn fact(term: &str, says: Option<Markup>) -> Markup {
    html! { @if let Some(says) = says { dt { (term) } dd { (says) } } }
}

/// A text as a fact's value; `None` where it is empty.
pub(super) fn said(text: impl AsRef<str>) -> Option<Markup> {
    let text = text.as_ref();
    (!text.is_empty()).then(|| html! { (text) })
}

/// A long text that is folded beyond its first lines.
pub(super) fn folded(text: &str, lines: usize) -> Markup {
    let text = &plain_lines(text.trim());
    let first: Vec<&str> = text.lines().take(lines).collect();
    let short: String = first.join("\n").chars().take(SHORT).collect();
    html! {
        @if short.len() == text.len() {
            pre { (text) }
        } @else {
            details { summary { pre { (short) " …" } span .less { "Fold" } } pre { (text) } }
        }
    }
}

/// So many characters of a text stand in its summary.
const SHORT: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_segment_of_a_path() {
        assert_eq!(link("/jobs/", "email-triage", "/edit"), "/jobs/email-triage/edit");
        assert_eq!(link("/jobs/", "../x?y#z", ""), "/jobs/%2E%2E%2Fx%3Fy%23z");
        assert_eq!(link("/jobs/", "é", ""), "/jobs/%C3%A9");
    }

    #[test]
    fn what_is_said_is_escaped() {
        assert_eq!(with_code("a `<b>` c").into_string(), "a <code>&lt;b&gt;</code> c");
        let link = "your yes (<a href=\"/questions\">Questions</a>)";
        assert_eq!(with_code("your yes (`ollim-bot questions`)").into_string(), link);
    }
}
