//! What jobs were refused, and the line that would allow it.

use maud::{Markup, html};

use crate::app::words;
use crate::journal::{RefusedCalls, RefusedDeliveries};
use crate::web::context::Context;
use crate::web::parts::{self, link};

/// The spans to choose from, in days.
const SPANS: [(u64, &str); 4] = [(1, "24 hours"), (7, "7 days"), (30, "30 days"), (0, "all")];

pub(in crate::web) fn refusals(
    calls: &[RefusedCalls],
    deliveries: &[RefusedDeliveries],
    days: u64,
    context: &Context,
) -> Markup {
    html! {
        div .head {
            h1 { "Refusals" }
            (spans("/refusals", days))
        }
        @if calls.is_empty() {
            p .empty { "No job was refused anything in this time." }
        } @else {
            p .faint { "What a job asked for and its file does not allow. To allow something, put its line into the file." }
        }
        @for refused in calls {
            section .refused {
                h2 { (parts::job(refused.id.as_str())) " " code { (refused.tool) } }
                p {
                    strong { (refused.count) " " @if refused.count == 1 { "call" } @else { "calls" } }
                    ", the last " (context.relative(refused.last)) " in "
                    a href=(parts::run(refused.run.as_str())) { "run " (refused.run) } ": "
                    @match &refused.rule {
                        Some(rule) => { "the rule " code { (rule) } " refuses it" },
                        None => "no rule grants it",
                    }
                    " (layer " (refused.layer) ")."
                }
                (parts::folded(&words::call(&refused.tool, &refused.input), 4))
                p .faint { (parts::with_code(&refused.reason)) }
                @if let Some(line) = grant(refused) {
                    p .grant {
                        "Allow this: " code { (line) } " "
                        button type="button" data-copy=(line) { "Copy" } " "
                        a href=(link("/jobs/", refused.id.as_str(), "/edit")) { "Edit the file" }
                    }
                }
            }
        }
        @if !deliveries.is_empty() {
            h2 { "Deliveries of the last 24 hours" }
            ul { @for refused in deliveries { li { (delivery(refused, context)) } } }
        }
    }
}

/// What a webhook has refused.
fn delivery(refused: &RefusedDeliveries, context: &Context) -> Markup {
    html! {
        @match &refused.id {
            Some(id) => (parts::job(id.as_str())),
            None => "unknown webhooks",
        }
        ": " (refused.times) @if refused.times == 1 { " delivery" } @else { " deliveries" }
        ", the last " (context.relative(refused.last)) ": " (refused.status) ", " (parts::with_code(&refused.why))
    }
}

/// The line for `allowed_tools` that grants such a call and nothing wider; `None`: no rule can, since another one denies it.
fn grant(refused: &RefusedCalls) -> Option<String> {
    if refused.rule.is_some() || refused.layer != "allowed_tools" {
        return None;
    }
    let main = ["command", "file_path"].iter().find_map(|key| refused.input.get(key)?.as_str());
    let is_plain =
        |text: &&str| !text.contains(['(', ')', '*']) && !text.contains(char::is_control) && text.len() <= 200;
    let rule = match (&*refused.tool, main.filter(is_plain)) {
        (tool @ ("Bash" | "Read" | "Write" | "Edit"), Some(what)) => format!("{tool}({what})"),
        // A rule for the whole tool would grant more than this call.
        ("Bash" | "Read" | "Write" | "Edit" | "WebFetch", _) => return None,
        (tool, _) => tool.to_owned(),
    };
    // As JSON has it, so that no character in it means something in YAML.
    serde_json::to_string(&rule).ok().map(|rule| format!("- {rule}"))
}

/// Links to the spans of a page.
pub(in crate::web) fn spans(page: &str, days: u64) -> Markup {
    html! {
        p .switch {
            @for (span, name) in SPANS {
                a href={ (page) "?since=" (span) } aria-current=[(span == days).then_some("true")] { (name) }
            }
        }
    }
}
