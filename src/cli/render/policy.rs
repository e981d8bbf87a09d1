//! Renders policies: what a job may do, by which rule, and where each rule came from.

use serde_json::json;

use super::View;
use crate::app::{Explanation, JobPolicy, times, words};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, Output, STRONG, WARN, paint};
use crate::journal::RefusedCalls;
use crate::policy::{Decision, Verdict};

/// Renders a verdict and its reason. The exit code is 1 for a denial.
pub(super) fn explained(explained: &Explanation, view: &View, output: &mut Output) {
    let Explanation { decision, client_args } = explained;
    if decision.verdict == Verdict::Deny {
        output.exit = 1;
    }
    if view.json {
        output.json(&json!({
            "verdict": decision.verdict,
            "layer": decision.layer,
            "rule": decision.rule,
            "reason": decision.reason,
            "commands": decision.commands,
            "client_args": client_args,
        }));
        return;
    }
    shown(decision, output);
}

fn shown(decision: &Decision, output: &mut Output) {
    output.line(match decision.verdict {
        Verdict::Allow => paint(GOOD, "allowed"),
        Verdict::Deny => paint(BAD, "denied"),
        Verdict::Ask => paint(WARN, "asked"),
    });
    let mut rows = vec![
        ("layer", decision.layer.to_string()),
        ("rule", decision.rule.clone().unwrap_or_else(|| "none matches".into())),
        ("reason", decision.reason.clone()),
    ];
    for (index, command) in decision.commands.iter().enumerate() {
        rows.push((if index == 0 { "commands" } else { "" }, command.clone()));
    }
    let rows: Vec<Vec<Cell>> =
        rows.into_iter().map(|(name, value)| vec![Cell::new(name, FAINT), Cell::from(value)]).collect();
    output.facts(&rows);
}

/// Renders all entries, and the tools and the sandbox that result from them.
pub(super) fn show(policy: &JobPolicy, view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!({
            "id": policy.id,
            "kind": policy.kind,
            "entries": policy.entries,
            "visible_tools": policy.visible_tools,
            "mcp_tools": policy.mcp_tools,
            "includes": policy.includes,
            "sandbox": policy.sandbox,
            "client_args": policy.client_args,
        }));
        return;
    }
    output.line(paint(STRONG, &plain(&policy.title)));
    table(policy, output);
    let list = |tools: &[String]| if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
    output.line("");
    let mut facts = match policy.has_agent {
        true => vec![
            vec![Cell::new("tools it sees", FAINT), list(&policy.visible_tools).into()],
            vec![Cell::new("of ours", FAINT), list(&policy.mcp_tools).into()],
        ],
        false => vec![vec![Cell::new("agent", FAINT), "none".into()]],
    };
    facts.push(vec![Cell::new("sandbox", FAINT), Cell::from(policy.sandbox)]);
    output.facts(&facts);
}

/// Renders all entries, and where each came from.
pub(super) fn table(policy: &JobPolicy, output: &mut Output) {
    let rows: Vec<Vec<Cell>> = policy
        .entries
        .iter()
        .map(|entry| {
            let (word, style) = match entry.effect {
                Verdict::Allow => ("allow", GOOD),
                Verdict::Deny => ("deny", BAD),
                Verdict::Ask => ("ask", WARN),
            };
            vec![Cell::new(word, style), Cell::from(entry.pattern.to_string()), Cell::new(&entry.origin, FAINT)]
        })
        .collect();
    output.facts(&rows);
    if !policy.includes.is_empty() {
        output.line("");
        let lines: Vec<String> = policy.includes.iter().flat_map(|line| output.wrapped(line)).collect();
        lines.iter().for_each(|line| output.line(paint(FAINT, line)));
    }
}

/// Lists the refused calls of jobs, latest first.
pub(super) fn refused(calls: &[RefusedCalls], view: &View, output: &mut Output) {
    if view.json {
        output.json(&calls);
        return;
    }
    if calls.is_empty() {
        output.note("nothing was refused");
        return;
    }
    let mut rows = vec![["JOB", "COUNT", "LAST", "RULE", "CALL"].map(|name| Cell::new(name, FAINT)).to_vec()];
    for RefusedCalls { id, tool, rule, count, last, input, .. } in calls {
        rows.push(vec![
            Cell::new(id.as_str(), STRONG),
            count.to_string().into(),
            times::relative(*last, view.now).into(),
            rule.as_deref().unwrap_or("no rule grants it").into(),
            Cell::new(words::call(tool, input), FAINT),
        ]);
    }
    output.facts(&rows);
    output.note(paint(FAINT, "`ollim-bot policy show JOB` shows what a job may do; its file is where that is changed"));
}
