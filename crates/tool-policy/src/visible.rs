//! The external view of a policy: the tools that an agent sees, the client's deny rules, the entries for a person.

use serde::Serialize;

use crate::rule::{Matcher, Origin, Rule};
use crate::rule_set::RuleSet;
use crate::{Policy, Verdict, client_tools};

/// One line of `policy show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyEntry {
    /// The pattern as written.
    pub pattern: String,
    /// The effect: grant, deny or ask.
    pub effect: Verdict,
    /// The source: `allowed_tools of routine x`, `added automatically`, `blocked for every fork`, `main_tools`, …
    pub origin: String,
}

impl Policy {
    /// Returns the built-in tools for `--tools`, by the client's names: those that some rule grants or asks about and none denies entirely.
    /// `Glob` and `Grep` only if a rule names them.
    #[must_use]
    pub fn visible_tools(&self) -> Vec<String> {
        client_tools::offered_tools()
            .filter(|tool| !self.is_blocked(tool) && self.all_lists().iter().all(|lists| shows(lists, tool)))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the granted tools of the application's MCP server, by their bare names.
    #[must_use]
    pub fn visible_mcp(&self, offered: &[&str]) -> Vec<String> {
        self.visible_of_server(self.application().server, offered)
    }

    /// Returns the granted tools of an MCP server, by their bare names.
    #[must_use]
    pub fn visible_of_server(&self, server: &str, offered: &[&str]) -> Vec<String> {
        offered
            .iter()
            .filter(|name| {
                let full = format!("mcp__{server}__{name}");
                self.all_lists().iter().all(|lists| {
                    let mut rules = lists.grants_for(&full).chain(lists.asks_for(&full));
                    let granted = lists.allow.is_none() || rules.any(Rule::is_all);
                    granted && lists.denials_for(&full).next().is_none()
                })
            })
            .map(|name| (*name).to_owned())
            .collect()
    }

    /// Returns whether some tool of an MCP server may be granted, whatever it offers.
    #[must_use]
    pub fn may_have_of_server(&self, server: &str) -> bool {
        self.all_lists().iter().all(|lists| match &lists.allow {
            _ if lists.deny.iter().any(|rule| rule.is_all() && rule.is_all_of_server(server)) => false,
            None => true,
            Some(allow) => allow.iter().chain(&lists.ask).any(|rule| rule.may_be_of_server(server)),
        })
    }

    /// Returns the rules for `--disallowedTools`: the system-wide blocks as bare names, and every denial. `Write(x)` becomes
    /// `Edit(x)`, since the client ignores path rules on `Write`.
    #[must_use]
    pub fn deny_rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        for tool in client_tools::BLOCKED.iter().filter(|tool| self.is_blocked(tool)) {
            rules.extend(client_tools::names_of(tool).into_iter().map(str::to_owned));
        }
        for rule in self.all_lists().iter().flat_map(|lists| &lists.deny) {
            let (tool, forms) = (rule.pattern.tool(), rule.pattern.alternatives());
            let tool = if tool == "Write" && !forms.is_empty() { "Edit" } else { tool };
            let texts = match forms.is_empty() {
                true => vec![tool.to_owned()],
                false => forms.iter().map(|form| format!("{tool}({form})")).collect(),
            };
            for text in texts {
                if !rules.contains(&text) {
                    rules.push(text);
                }
            }
        }
        rules
    }

    /// Returns the entries of the effective policy, each with its source.
    #[must_use]
    pub fn entries(&self) -> Vec<PolicyEntry> {
        let entry =
            |pattern: String, effect, origin: &Origin| PolicyEntry { pattern, effect, origin: origin.to_string() };
        let mut entries = Vec::new();
        for lists in self.all_lists() {
            for rule in lists.allow.iter().flatten() {
                entries.push(entry(rule.pattern.to_string(), Verdict::Allow, &rule.origin));
            }
            for rule in &lists.ask {
                entries.push(entry(rule.pattern.to_string(), Verdict::Ask, &rule.origin));
            }
            for rule in &lists.deny {
                entries.push(entry(rule.pattern.to_string(), Verdict::Deny, &rule.origin));
            }
        }
        for tool in client_tools::BLOCKED.iter().filter(|tool| self.is_blocked(tool)) {
            entries.push(entry((*tool).to_owned(), Verdict::Deny, &Origin::Blocked));
        }
        entries
    }
}

/// Returns whether one owner's lists show a built-in tool.
pub(super) fn shows(lists: &RuleSet, tool: &str) -> bool {
    if lists.denies_whole(tool) || (lists.read_only && matches!(tool, "Edit" | "Write" | "NotebookEdit")) {
        return false;
    }
    let named = |rule: &Rule| !rule.is_for_everything();
    let mut rules = lists.grants_for(tool).chain(lists.asks_for(tool));
    match tool {
        "Glob" | "Grep" => rules.any(named),
        _ => lists.allow.is_none() || rules.any(|rule| !matches!(rule.matcher, Matcher::Unsupported)),
    }
}
