//! Small pieces of HTML that several views share.

use maud::{Markup, html};

use super::context::Context;
use crate::app::words::{self, Emphasis};
use crate::app::{Status, Why};
use crate::channel::terminal::plain_lines;
use crate::definition::Problem;
use crate::journal::{RunRecord, RunState};

/// Returns the CSS class of a tone.
pub(super) fn class(emphasis: Emphasis) -> &'static str {
    match emphasis {
        Emphasis::Plain => "plain",
        Emphasis::Strong => "strong",
        Emphasis::Faint => "faint",
        Emphasis::Good => "good",
        Emphasis::Warn => "warn",
        Emphasis::Bad => "bad",
    }
}

/// Returns the glyph of an outcome. Its shape is as distinctive as its colour.
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

/// Renders the state or outcome of a run with its glyph.
pub(super) fn outcome(run: &RunRecord, context: &Context) -> Markup {
    html! {
        span .outcome .(class(words::emphasis(run))) { (mark(run.outcome)) (words::outcome(run, context.now)) }
    }
}

/// Renders a glyph alone.
pub(super) fn mark(state: RunState) -> Markup {
    html! { svg .mark width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true" { use href={ "#" (glyph(state)) } {} } }
}

/// Renders a button in its own form.
pub(super) fn button(action: &str, label: &str, fields: &[(&str, &str)], context: &Context) -> Markup {
    html! {
        form .inline method="post" action=(action) {
            (token(context))
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button { (label) }
        }
    }
}

/// Renders the hidden field that authenticates a form.
pub(super) fn token(context: &Context) -> Markup {
    html! { input type="hidden" name="token" value=(context.form_token); }
}

/// Renders a sentence. Text between backquotes becomes code, or a link if it is a command for which there is a page.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 0 {
                (part)
            } @else if let Some((page, name)) = page_of(part) {
                a href=(page) { (name) }
            } @else {
                code { (part) }
            }
        }
    }
}

/// Returns the page that does what a command does, and the name of the page or of its button.
fn page_of(command: &str) -> Option<(String, String)> {
    let command = command.strip_prefix("ollim-bot ")?;
    let (page, name) = match command {
        "questions" => ("/questions", "Questions"),
        "next" => ("/next", "Next"),
        "runs" => ("/runs", "Runs"),
        "status" => ("/service", "Service"),
        "routine list" => ("/jobs#routines", "Routines"),
        "reminder list" => ("/jobs#reminders", "Reminders"),
        "resume" => ("/service", "Resume"),
        _ => return page_about(command),
    };
    Some((page.to_owned(), name.to_owned()))
}

/// Commands about one job or run, each with the start of its page's address, and the name of the page or of its button.
const ABOUT_ONE: [(&str, &str, &str); 5] = [
    ("resume ", "/jobs/", "Resume"),
    ("fire ", "/jobs/", "Run now"),
    ("reminder retry ", "/jobs/", "Retry now"),
    ("runs show ", "/runs/", "run {}"),
    ("runs ", "/runs?job=", "runs of {}"),
];

/// Returns the page that does what a command does about one job or run.
fn page_about(command: &str) -> Option<(String, String)> {
    let named =
        |(start, page, name): &(&str, &'static str, &'static str)| Some((*page, *name, command.strip_prefix(start)?));
    let (page, name, id) = ABOUT_ONE.iter().find_map(named)?;
    (!id.contains(" --")).then(|| (link(page, id, ""), name.replace("{}", id)))
}

/// Builds a path with a name as a single segment.
pub(super) fn link(before: &str, name: &str, after: &str) -> String {
    let mut path = String::from(before);
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            // Dots are escaped too: a segment of dots alone would mean a folder.
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path.push_str(after);
    path
}

/// Renders a link to a job's page.
pub(super) fn job(id: &str) -> Markup {
    html! { a href=(link("/jobs/", id, "")) { (id) } }
}

/// Renders a problem of a file. Its position links to the line on the job's page.
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

/// Renders why a job or a run is as it is, with the evidence folded.
pub(super) fn why(why: &Why) -> Markup {
    html! {
        div .why {
            p { (with_code(&why.said.sentence)) @if let Some(next) = &why.next { " " (with_code(&next.sentence)) } }
            details .faint {
                summary { "Evidence" }
                ul { @for one in &why.evidence { li { (one.from.name()) ": " (with_code(&one.what)) } } }
            }
        }
    }
}

/// Says that everything is paused, if it is.
pub(super) fn all_paused(status: &Status) -> Markup {
    html! {
        @if status.paused.is_some() {
            p .warn { a href="/service" { "Everything is paused" } ": what falls due waits until you resume it." }
        }
    }
}

/// Returns the path of a run's page.
pub(super) fn run(id: &str) -> String {
    link("/runs/", id, "")
}

/// Renders a term and its description, if there is one.
pub(super) fn fact(term: &str, says: Option<Markup>) -> Markup {
    html! { @if let Some(says) = says { dt { (term) } dd { (says) } } }
}

/// Renders a text as a fact's value. Returns `None` if it is empty.
pub(super) fn text_value(text: impl AsRef<str>) -> Option<Markup> {
    let text = text.as_ref();
    (!text.is_empty()).then(|| html! { (text) })
}

/// Renders a long text as it is, folded after its first lines.
pub(super) fn folded(text: &str, lines: usize) -> Markup {
    fold(text, lines, |text| html! { (text) })
}

/// Renders a long text for the person, folded after its first lines. Text between backquotes on a line becomes code.
pub(super) fn folded_prose(text: &str, lines: usize) -> Markup {
    fold(text, lines, |text| {
        html! {
            @for line in text.split_inclusive('\n') {
                @if line.contains("``") || line.matches('`').count() % 2 == 1 { (line) } @else { (with_code(line)) }
            }
        }
    })
}

/// Renders a message of the bot. In one that asks, a link stands for the command that answers, and the call without its fence.
pub(super) fn message(text: &str, lines: usize) -> Markup {
    let Some((asks, _)) = text.rsplit_once("\nAnswer: `ollim-bot questions answer ") else {
        return folded_prose(text, lines);
    };
    let plain: Vec<&str> = asks.lines().filter(|line| *line != "```").collect();
    html! { (folded_prose(&plain.join("\n"), lines)) p { a href="/questions" { "To the questions" } } }
}

fn fold(text: &str, lines: usize, show: impl Fn(&str) -> Markup) -> Markup {
    let text = &plain_lines(text.trim());
    let first: Vec<&str> = text.lines().take(lines).collect();
    let short: String = first.join("\n").chars().take(SHORT).collect();
    html! {
        @if short.len() == text.len() {
            pre { (show(text)) }
        } @else {
            details { summary { pre { (show(&short)) " …" } span .less { "Fold" } } pre { (show(text)) } }
        }
    }
}

/// Maximum number of characters in the summary of a folded text.
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
        let prose = folded_prose("a `b`\n```\nx`\n`<`", 9).into_string();
        assert_eq!(prose, "<pre>a <code>b</code>\n```\nx`\n<code>&lt;</code></pre>");
        let link = "your yes (<a href=\"/questions\">Questions</a>)";
        assert_eq!(with_code("your yes (`ollim-bot questions`)").into_string(), link);
    }
}
