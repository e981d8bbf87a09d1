//! What jobs were refused, and the line that would allow it.

use maud::{Markup, html};

use crate::app::words;
use crate::channel::terminal::plain_lines;
use crate::journal::{RefusedCalls, RefusedDeliveries};
use crate::web::context::Context;
use crate::web::parts::{self, link};

/// So many bytes of a call stand in a line to allow it.
const LONGEST: usize = 200;

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
                @match grant(refused) {
                    None => {},
                    Some(Ok((line, note))) => p .grant {
                        "Allow this" (note) ": " code { (line) } " "
                        button type="button" data-copy=(line) { "Copy" } " "
                        a href=(link("/jobs/", refused.id.as_str(), "/edit")) { "Edit the file" }
                    },
                    Some(Err(why)) => p .faint { (parts::with_code(why)) },
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
        @if let Some(payload) = &refused.payload {
            details { summary { "The last that was signed" } pre { (plain_lines(payload)) } }
        }
    }
}

/// The line for `allowed_tools` that grants such a call, and how much more than that it grants; or why there is no such line. `None`:
/// no rule can grant it, since another one denies it.
fn grant(refused: &RefusedCalls) -> Option<Result<(String, String), &'static str>> {
    if refused.rule.is_some() || refused.layer != "allowed_tools" {
        return None;
    }
    let field = |key: &str| refused.input.get(key)?.as_str();
    let (rule, note) = match &*refused.tool {
        tool @ ("Bash" | "Read" | "Write" | "Edit") => match plain(field("command").or_else(|| field("file_path"))) {
            Ok(what) => (format!("{tool}({what})"), String::new()),
            Err(why) => return Some(Err(why)),
        },
        "WebFetch" => match field("url").and_then(host) {
            Some(host) => (format!("WebFetch(domain:{host})"), format!(" and all else of {host}")),
            None => return Some(Err("No line allows it: its address has no host that a rule can name.")),
        },
        tool => (tool.to_owned(), format!(" and each other call of {tool}")),
    };
    // As JSON has it, so that no character in it means something in YAML.
    serde_json::to_string(&rule).ok().map(|rule| Ok((format!("- {rule}"), note)))
}

/// What a rule can have between its parentheses.
fn plain(text: Option<&str>) -> Result<&str, &'static str> {
    match text {
        None => Err("No line allows it: what it names was not recorded."),
        Some(text) if text.contains(['(', ')', '*']) || text.contains(char::is_control) => {
            Err("No line allows this call alone: a rule cannot have `(`, `)`, `*` or a line's end in it. \
                 Grant the program that it starts, if all that the program does may be done.")
        }
        Some(text) if text.len() > LONGEST => Err(
            "No line is offered for so long a call. Grant the program that it starts, if all that the program does may be done.",
        ),
        Some(text) => Ok(text),
    }
}

/// The host of an address.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?', '#', '\\']).next()?;
    let host = place.split_once(':').map_or(place, |(host, _)| host);
    // What stands before an `@` is no host.
    if place.contains('@') {
        return None;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!host.is_empty() && host.chars().all(is_name)).then_some(host)
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::DefinitionId;
    use crate::journal::RunId;

    fn refused(tool: &str, input: Value) -> RefusedCalls {
        RefusedCalls {
            id: DefinitionId::new("mail"),
            tool: tool.to_owned(),
            rule: None,
            layer: "allowed_tools".to_owned(),
            count: 1,
            last: DateTime::UNIX_EPOCH,
            run: RunId::new("0badcafe"),
            input,
            reason: String::new(),
        }
    }

    #[test]
    fn each_refusal_has_a_line_that_grants_it_or_a_word_why_not() {
        let command = |text: &str| json!({ "command": text });
        for (tool, input, line, says) in [
            ("Bash", command("git push"), r#"- "Bash(git push)""#, ""),
            ("Read", json!({ "file_path": "a: b" }), r#"- "Read(a: b)""#, ""),
            (
                "WebFetch",
                json!({ "url": "https://docs.rs/x?y" }),
                r#"- "WebFetch(domain:docs.rs)""#,
                "all else of docs.rs",
            ),
            ("WebFetch", json!({ "url": "http://a.example:80" }), r#"- "WebFetch(domain:a.example)""#, "all else of"),
            ("WebSearch", json!({ "query": "x" }), r#"- "WebSearch""#, "each other call of WebSearch"),
            ("WebFetch", json!({ "url": "https://docs.rs@evil.example/" }), "", "no host"),
            ("WebFetch", json!({ "url": "https://docs.rs:443@evil.example/" }), "", "no host"),
            ("WebFetch", json!({ "url": "https://*.rs/" }), "", "no host"),
            ("WebFetch", json!({}), "", "no host"),
            ("Bash", command("rm *"), "", "`*`"),
            ("Bash", command("echo $(id)"), "", "`(`"),
            ("Bash", command("a\nb"), "", "a line's end"),
            ("Bash", command(&"x".repeat(201)), "", "so long"),
            ("Write", json!({}), "", "not recorded"),
        ] {
            let (found, said) = match grant(&refused(tool, input)).unwrap() {
                Ok((line, note)) => (line, note),
                Err(why) => (String::new(), why.to_owned()),
            };
            assert_eq!(found, line, "{tool}");
            assert!(said.contains(says), "{tool} {line}: {said}");
            if !line.is_empty() {
                let rule: Value = serde_json::from_str(line.strip_prefix("- ").unwrap()).unwrap();
                crate::policy::ToolPattern::parse(rule.as_str().unwrap()).unwrap();
            }
        }
        assert!(grant(&RefusedCalls { rule: Some("x".into()), ..refused("Bash", command("x")) }).is_none());
    }
}
