//! What a policy looks like from outside: the tools an agent sees, the client's deny rules, the entries for a person.

use std::path::PathBuf;

use serde::Serialize;

use super::lists::Lists;
use super::rule::{Matcher, Origin, Rule};
use super::{Policy, Verdict, known};

/// The MCP server that offers our own tools.
const SERVER: &str = "discord";

/// One line of `policy show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyEntry {
    /// The pattern as it was written.
    pub pattern: String,
    /// Whether it grants or denies.
    pub effect: Verdict,
    /// Where it stands: `allowed_tools of routine x`, `added automatically`, `blocked for every fork`, `main_tools`, …
    pub origin: String,
}

/// The folders that a policy's path rules reach, as whole trees: for a sandbox that knows only trees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathGrants {
    /// Trees in which some rule grants writing.
    pub write: Vec<PathBuf>,
    /// Trees in which some rule grants reading (those of `write` as well).
    pub read: Vec<PathBuf>,
    /// Whether a bare `Edit` grants writing everywhere.
    pub write_everywhere: bool,
    /// Whether a bare `Read` or `Edit` grants reading everywhere.
    pub read_everywhere: bool,
}

impl Policy {
    /// The built-ins for `--tools`: exactly those that some rule grants and none denies whole, by the client's names.
    /// `Glob` and `Grep` only where a rule names them.
    #[must_use]
    pub fn visible_tools(&self) -> Vec<String> {
        known::offered_tools()
            .filter(|tool| !self.is_blocked(tool) && self.all_lists().iter().all(|lists| shows(lists, tool)))
            .map(str::to_owned)
            .collect()
    }

    /// Which of our MCP server's tools (by their bare names) are granted.
    #[must_use]
    pub fn visible_mcp(&self, offered: &[&str]) -> Vec<String> {
        offered
            .iter()
            .filter(|name| {
                let full = format!("mcp__{SERVER}__{name}");
                self.all_lists().iter().all(|lists| {
                    let granted = lists.allow.is_none() || lists.grants_for(&full).any(Rule::is_all);
                    granted && lists.denials_for(&full).next().is_none()
                })
            })
            .map(|name| (*name).to_owned())
            .collect()
    }

    /// Rules for `--disallowedTools`: the system-wide blocks as bare names, and every denial. `Write(x)` becomes
    /// `Edit(x)`, since the client ignores path rules on `Write`.
    #[must_use]
    pub fn deny_rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        for tool in known::BLOCKED.iter().filter(|tool| self.is_blocked(tool)) {
            rules.extend(known::names_of(tool).into_iter().map(str::to_owned));
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

    /// The effective policy, each entry with where it came from.
    #[must_use]
    pub fn entries(&self) -> Vec<PolicyEntry> {
        let entry =
            |pattern: String, effect, origin: &Origin| PolicyEntry { pattern, effect, origin: origin.to_string() };
        let mut entries = Vec::new();
        for lists in self.all_lists() {
            for rule in lists.allow.iter().flatten() {
                entries.push(entry(rule.pattern.to_string(), Verdict::Allow, &rule.origin));
            }
            for rule in &lists.deny {
                entries.push(entry(rule.pattern.to_string(), Verdict::Deny, &rule.origin));
            }
        }
        for tool in known::BLOCKED.iter().filter(|tool| self.is_blocked(tool)) {
            entries.push(entry((*tool).to_owned(), Verdict::Deny, &Origin::Blocked));
        }
        entries
    }

    /// The trees that its path rules reach. Narrower patterns inside a tree are held call by call only.
    #[must_use]
    pub fn path_grants(&self) -> PathGrants {
        let mut grants = PathGrants::default();
        let Some(lists) = self.all_lists().last() else { return grants };
        for rule in lists.allow.iter().flatten() {
            let (reads, writes) = match rule.pattern.canonical_tool() {
                "Edit" | "NotebookEdit" => (true, true),
                "Read" | "Grep" | "Glob" => (true, false),
                _ if rule.is_for_everything() => (true, true),
                _ => continue,
            };
            match &rule.matcher {
                Matcher::Path(paths) => {
                    let tree = paths.tree(self.known_places());
                    if writes {
                        grants.write.push(tree.clone());
                    }
                    if reads {
                        grants.read.push(tree);
                    }
                }
                _ => {
                    grants.write_everywhere |= writes;
                    grants.read_everywhere |= reads;
                }
            }
        }
        for list in [&mut grants.write, &mut grants.read] {
            list.sort();
            list.dedup();
        }
        grants
    }
}

/// Whether one owner's lists show a built-in.
pub(super) fn shows(lists: &Lists, tool: &str) -> bool {
    if lists.denies_whole(tool) || (lists.read_only && matches!(tool, "Edit" | "Write" | "NotebookEdit")) {
        return false;
    }
    let named = |rule: &Rule| !rule.is_for_everything();
    match tool {
        "Glob" | "Grep" => lists.grants_for(tool).any(named),
        _ => lists.allow.is_none() || lists.grants_for(tool).any(|rule| !matches!(rule.matcher, Matcher::Unsupported)),
    }
}
