//! A job's permissions, and the verdict on a call to try.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::app::{App, Command, Explanation, JobPolicy, Outcome};
use crate::definition::Kind;
use crate::policy::{Layer, Verdict};
use crate::refusal::Refusal;
use crate::web::context::Context;
use crate::web::pages::{PolicyQuery, execute};
use crate::web::parts;

/// A tried call with its verdict, and all jobs to choose from.
pub(in crate::web) struct Tried {
    jobs: Vec<String>,
    verdict: Option<Result<Explanation, Refusal>>,
}

impl Tried {
    pub(in crate::web) fn of(query: &PolicyQuery, app: &App) -> Result<Self, Refusal> {
        let mut jobs = Vec::new();
        for kind in [Kind::Routine, Kind::Reminder, Kind::Webhook] {
            let list = execute!(app, Command::List(kind), Outcome::Jobs(list) => list);
            jobs.extend(list.jobs.iter().map(|job| job.definition.id.to_string()));
        }
        jobs.sort_unstable();
        let is_named = !query.tool.is_empty() || !query.input.trim().is_empty();
        let verdict = (is_named && !query.job.is_empty()).then(|| tried(query, app));
        Ok(Self { jobs, verdict })
    }
}

fn tried(query: &PolicyQuery, app: &App) -> Result<Explanation, Refusal> {
    let tool = if query.tool.is_empty() { "Bash" } else { &query.tool };
    let text = query.input.trim();
    let needs = match tool {
        "Bash" => "a command",
        "WebFetch" => "an address",
        "Read" | "Write" | "Edit" => "a path",
        _ => "",
    };
    if text.is_empty() && !needs.is_empty() {
        return Err(Refusal::user(format!("{tool} needs {needs}: write it behind the tool, and ask again")));
    }
    let input = match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Value::Object(map),
        // A tool judged by its name alone.
        _ if text.is_empty() => json!({}),
        _ => match tool {
            "Bash" => json!({ "command": text }),
            "WebFetch" => json!({ "url": text }),
            "Read" | "Write" | "Edit" => json!({ "file_path": text }),
            _ => {
                return Err(
                    Refusal::user("write the tool's input as JSON").hint("for example {\"query\": \"weather\"}")
                );
            }
        },
    };
    let command = Command::ExplainPolicy { definition: query.job.clone(), tool: tool.to_owned(), input };
    Ok(execute!(app, command, Outcome::Explained(found) => found))
}

pub(in crate::web) fn policy(tried: &Tried, query: &PolicyQuery, _context: &Context) -> Markup {
    html! {
        h1 { "Would it be allowed?" }
        form .ask method="get" action="/policy" {
            label { "Job" select name="job" {
                @for job in &tried.jobs { option selected[*job == query.job] { (job) } }
            } }
            label { "Tool" input name="tool" value=(if query.tool.is_empty() { "Bash" } else { &query.tool }) list="tools" autocomplete="off"; }
            datalist id="tools" { @for tool in ["Bash", "Read", "Write", "Edit", "WebFetch", "WebSearch"] { option value=(tool) {} } }
            label .wide { "Command, path, address or JSON" input name="input" value=(query.input) autocomplete="off" spellcheck="false"; }
            button { "Ask" }
        }
        p .faint { "A command line is tried in the job's own shell, with no effect: nothing that it starts runs." }
        @match &tried.verdict {
            None => {},
            Some(Err(refusal)) => p .bad { (parts::with_code(&refusal.to_string())) @for hint in &refusal.hints { ". " (parts::with_code(hint)) } },
            Some(Ok(found)) => (verdict(found)),
        }
    }
}

fn verdict(found: &Explanation) -> Markup {
    let decision = &found.decision;
    let (class, word) = match decision.verdict {
        Verdict::Allow => ("good", "It would run"),
        Verdict::Ask => ("warn", "You would be asked"),
        Verdict::Deny => ("bad", "It would be refused"),
    };
    html! {
        section .verdict role="status" {
            p .lead .(class) { strong { (word) } }
            p { (parts::with_code(&decision.reason)) }
            p .faint { "Decided by " @if decision.layer == Layer::System { "what holds for every job" } @else { code { (decision.layer) } } @if let Some(rule) = &decision.rule { ", rule " code { (rule) } } "." }
            @if !decision.commands.is_empty() {
                p { "Programs that it starts:" }
                ul { @for command in &decision.commands { li { code { (command) } } } }
            }
        }
    }
}

/// Renders every entry of a policy with its source.
pub(in crate::web) fn entries(policy: &JobPolicy) -> Markup {
    let tools: Vec<&str> = policy.visible_tools.iter().chain(&policy.mcp_tools).map(String::as_str).collect();
    html! {
        p .faint {
            "Held by " (policy.sandbox) ". "
            @match (policy.has_agent, &tools[..]) {
                (false, _) => "It has no agent.",
                (true, []) => "Its agent sees no tools.",
                (true, tools) => { "Its agent sees: " (tools.join(", ")) "." },
            }
        }
        details {
            summary { (policy.entries.len()) " rules" }
            div .scroll tabindex="0" role="region" aria-label="Rules" {
                table {
                    thead { tr { th { "Effect" } th { "Rule" } th { "From" } } }
                    tbody {
                        @for entry in &policy.entries {
                            @let (class, word) = match entry.effect {
                                Verdict::Allow => ("good", "allow"),
                                Verdict::Ask => ("warn", "ask"),
                                Verdict::Deny => ("bad", "deny"),
                            };
                            tr { td .(class) { (word) } td { code { (entry.pattern) } } td .faint { (entry.origin) } }
                        }
                    }
                }
            }
        }
    }
}
