//! Refused calls of jobs, and the line that would allow each.

use maud::{Markup, html};

use crate::app::{AllowSuggestion, App, PERSONS_ALONE, words};
use crate::channel::terminal::plain_lines;
use crate::journal::{RefusedCalls, RefusedDeliveries};
use crate::policy::ToolPattern;
use crate::web::context::Context;
use crate::web::parts::{self, link};

/// Maximum length of a path in a line to allow it, in bytes.
const LONGEST: usize = 200;

/// The spans to choose from, in days.
const SPANS: [(u64, &str); 4] = [(1, "24 hours"), (7, "7 days"), (30, "30 days"), (0, "all")];

/// Refused calls, and what would allow them.
pub(in crate::web) struct Refused {
    calls: RefusedCalls,
    offer: Offer,
}

/// The offer to allow a call.
enum Offer {
    Nothing,
    /// The reason why there is no line.
    Why(&'static str),
    /// A rule, its grants beyond the call, and its way into the file.
    Rule(String, String, AllowSuggestion),
}

impl Refused {
    pub(in crate::web) fn of(calls: Vec<RefusedCalls>, app: &App) -> Vec<Self> {
        let (calls, granting): (Vec<RefusedCalls>, Vec<Option<Grant>>) = by_grant(calls).into_iter().unzip();
        let rules = calls.iter().zip(&granting).filter_map(|(calls, grant)| match grant {
            Some(Ok((rule, _))) => Some((&calls.id, &**rule)),
            _ => None,
        });
        let mut ways = app.allow_suggestions(&rules.collect::<Vec<_>>()).into_iter();
        let offers: Vec<Offer> = granting
            .into_iter()
            .map(|grant| match grant {
                None => Offer::Nothing,
                Some(Err(why)) => Offer::Why(why),
                Some(Ok((rule, note))) => match ways.next().flatten() {
                    Some(way) => Offer::Rule(rule, note, way),
                    None => Offer::Nothing,
                },
            })
            .collect();
        calls.into_iter().zip(offers).map(|(calls, offer)| Self { calls, offer }).collect()
    }
}

pub(in crate::web) fn refusals(
    refused: &[Refused],
    deliveries: &[RefusedDeliveries],
    days: u64,
    context: &Context,
) -> Markup {
    html! {
        div .head {
            h1 { "Refusals" }
            (spans("/refusals", days))
        }
        @if refused.is_empty() {
            p .empty { "No job was refused anything in this time." }
        } @else {
            p .faint { "What a job asked for and its file does not allow. To allow something, put its line into the file." }
        }
        @for Refused { calls, offer } in refused {
            section .refused {
                h2 { (parts::job(calls.id.as_str())) " " code { (calls.tool) } }
                p {
                    strong { (calls.count) " " @if calls.count == 1 { "call" } @else { "calls" } }
                    ", the last " (context.relative(calls.last)) " in "
                    a href=(parts::run(calls.run.as_str())) { "run " (calls.run) } ": "
                    @match &calls.rule {
                        Some(rule) => { "the rule " code { (rule) } " of " code { (calls.layer) } " refuses it." },
                        None if calls.layer == "client" => "no rule grants it, or the client has no such tool.",
                        None => "no rule grants it.",
                    }
                }
                (parts::folded(&words::call(&calls.tool, &calls.input), 4))
                (offered(offer, &link("/jobs/", calls.id.as_str(), "/edit")))
                p .faint { (parts::with_code(&calls.reason)) }
            }
        }
        @if !deliveries.is_empty() {
            h2 { "Refused deliveries of the last 24 hours" }
            ul { @for refused in deliveries { li { (delivery(refused, context)) } } }
        }
    }
}

/// Renders the refused deliveries of a webhook.
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

fn offered(offer: &Offer, edit: &str) -> Markup {
    let copied = |text: &str| {
        html! {
            pre { (text) }
            button type="button" data-copy=(text) { "Copy" } " "
            a href=(edit) { "Edit the file" }
        }
    };
    html! {
        @match offer {
            Offer::Nothing => {},
            Offer::Why(why) => p .faint { (parts::with_code(why)) },
            Offer::Rule(rule, _, AllowSuggestion::Stands) => p .faint { "Its file has " code { (rule) } " by now." },
            Offer::Rule(_, note, AllowSuggestion::Item(line)) => div .grant {
                p { "To allow this" (note) ", add a line to " code { "allowed_tools" } ":" }
                (copied(line))
            },
            Offer::Rule(_, note, AllowSuggestion::Whole(lines)) => div .grant {
                p { "To allow this" (note) ", replace " code { "allowed_tools" } " by:" }
                (copied(lines))
            },
        }
    }
}

/// A rule that grants a call and its grants beyond that, or the reason why none is offered.
type Grant = Result<(String, String), &'static str>;

/// Counts calls of a job that the same line would allow, or none, as one.
fn by_grant(calls: Vec<RefusedCalls>) -> Vec<(RefusedCalls, Option<Grant>)> {
    let mut found: Vec<(RefusedCalls, Option<Grant>)> = Vec::new();
    for calls in calls {
        let grant = grant(&calls);
        let is_same = |(known, of_known): &&mut (RefusedCalls, Option<Grant>)| {
            let key =
                |calls: &RefusedCalls| (calls.id.clone(), calls.tool.clone(), calls.layer.clone(), calls.rule.clone());
            key(known) == key(&calls) && *of_known == grant
        };
        match found.iter_mut().find(is_same) {
            Some((known, _)) => known.count += calls.count,
            None => found.push((calls, grant)),
        }
    }
    found
}

/// Finds a rule that grants a call. Returns `None` if another rule denies it, or if the reason already says what to do instead.
fn grant(refused: &RefusedCalls) -> Option<Grant> {
    if refused.rule.is_some() || refused.layer != "allowed_tools" {
        return None;
    }
    let field = |key: &str| refused.input.get(key)?.as_str();
    let (rule, note) = match &*refused.tool {
        // The rule grants the program that the line starts, not the line.
        "Bash" => (needed(&refused.reason)?.to_owned(), " and whatever else the rule matches".to_owned()),
        tool @ ("Read" | "Write" | "Edit") => match plain(field("file_path")) {
            Ok(what) => (format!("{tool}({what})"), String::new()),
            Err(why) => return Some(Err(why)),
        },
        "WebFetch" => match field("url").and_then(host) {
            Some(host) => (format!("WebFetch(domain:{host})"), format!(" and all else of {host}")),
            None => return Some(Err("No line allows it: its address has no host that a rule can name.")),
        },
        tool => (tool.to_owned(), format!(" and each other call of {tool}")),
    };
    let ours = rule.strip_prefix("Bash(ollim-bot ").and_then(|rest| rest.split([' ', ')']).next());
    if ours.is_some_and(|command| PERSONS_ALONE.contains(&command)) {
        return Some(Err("No line allows it: this command is yours alone."));
    }
    Some(Ok((rule, note)))
}

/// Extracts the rule that the policy's reason names as needed.
fn needed(reason: &str) -> Option<&str> {
    let (_, rest) = reason.split_once("; the rule `")?;
    let (rule, _) = rest.split_once("` would be needed")?;
    // A rule that was cut off is unusable.
    ToolPattern::parse(rule).ok().filter(|_| !rule.contains('…'))?;
    Some(rule)
}

/// Checks that a text can stand between the parentheses of a rule.
fn plain(text: Option<&str>) -> Result<&str, &'static str> {
    match text {
        None => Err("No line allows it: what it names was not recorded."),
        Some(text) if text.contains(['(', ')', '*']) || text.contains(char::is_control) => {
            Err("No line allows this call alone: a rule cannot have `(`, `)`, `*` or a line's end in it.")
        }
        Some(text) if text.len() > LONGEST => Err("No line is offered for so long a path."),
        Some(text) => Ok(text),
    }
}

/// Returns the host of a URL.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?', '#', '\\']).next()?;
    let host = place.split_once(':').map_or(place, |(host, _)| host);
    // The part before an `@` is not a host.
    if place.contains('@') {
        return None;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!host.is_empty() && host.chars().all(is_name)).then_some(host)
}

/// Renders links to the spans of a page.
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
    fn each_refusal_has_a_rule_that_grants_it_or_a_word_why_not() {
        for (tool, input, rule, says) in [
            ("Read", json!({ "file_path": "a: b" }), "Read(a: b)", ""),
            ("WebFetch", json!({ "url": "https://docs.rs/x?y" }), "WebFetch(domain:docs.rs)", "all else of docs.rs"),
            ("WebFetch", json!({ "url": "http://a.example:80" }), "WebFetch(domain:a.example)", "all else of"),
            ("WebSearch", json!({ "query": "x" }), "WebSearch", "each other call of WebSearch"),
            ("WebFetch", json!({ "url": "https://docs.rs@evil.example/" }), "", "no host"),
            ("WebFetch", json!({ "url": "https://docs.rs:443@evil.example/" }), "", "no host"),
            ("WebFetch", json!({ "url": "https://*.rs/" }), "", "no host"),
            ("WebFetch", json!({}), "", "no host"),
            ("Write", json!({ "file_path": "*" }), "", "`*`"),
            ("Write", json!({ "file_path": "a\nb" }), "", "a line's end"),
            ("Write", json!({ "file_path": "x".repeat(201) }), "", "so long"),
            ("Write", json!({}), "", "not recorded"),
        ] {
            let (found, said) = match grant(&refused(tool, input)).unwrap() {
                Ok((rule, note)) => (rule, note),
                Err(why) => (String::new(), why.to_owned()),
            };
            assert_eq!(found, rule, "{tool}");
            assert!(said.contains(says), "{tool} {rule}: {said}");
            if !rule.is_empty() {
                ToolPattern::parse(rule).unwrap();
            }
        }
        assert!(grant(&RefusedCalls { rule: Some("x".into()), ..refused("Read", json!({})) }).is_none());
    }

    #[test]
    fn calls_of_one_tool_that_need_different_rules_stand_apart() {
        let of = |path: &str, count| RefusedCalls { count, ..refused("Read", json!({ "file_path": path })) };
        let found = by_grant(vec![of("a", 1), of("b", 2), of("a", 4), of("*", 1), of("?*", 1)]);
        let rows = found.iter().map(|(calls, _)| (calls.input["file_path"].as_str().unwrap(), calls.count));
        assert_eq!(rows.collect::<Vec<_>>(), [("a", 5), ("b", 2), ("*", 2)]);
    }

    #[test]
    fn of_a_line_the_rule_is_offered_that_the_policy_names() {
        let of = |reason: &str| {
            let reason = format!("Bash \"x | y\": `y` {reason}; routine mail grants: Read");
            grant(&RefusedCalls { reason, ..refused("Bash", json!({ "command": "x | y" })) })
        };
        let rule = of("is not granted; the rule `Bash(y https://a.example/*)` would be needed").unwrap().unwrap().0;
        assert_eq!(rule, "Bash(y https://a.example/*)");
        assert!(of("is not granted by its path; call it `y`").is_none());
        assert!(of("is not granted; the rule `Bash(yy… *)` would be needed").is_none());
        let web = of("is not granted; the rule `Bash(ollim-bot web *)` would be needed").unwrap();
        assert!(web.unwrap_err().contains("yours alone"));
    }
}
