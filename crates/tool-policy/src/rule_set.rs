//! The lists of one owner, a job or an agent, matched against requests.

use crate::path::{Resolved, ResolvedRoots};
use crate::request::{Access, Request};
use crate::rule::{Matcher, Rule};
use crate::url_host;
use crate::wildcard::{joined, loose};

/// The rules of one owner.
#[derive(Clone, Debug)]
pub(super) struct RuleSet {
    /// The owner in sentences: `routine email-triage`, `agent Explore`.
    pub owner: String,
    /// Grants, or `None` to grant everything that is not denied.
    pub allow: Option<Vec<Rule>>,
    /// Rules that ask the person about calls that are neither denied nor granted by a rule of the owner's own.
    pub ask: Vec<Rule>,
    /// Denials.
    pub deny: Vec<Rule>,
    /// Whether Bash is granted for programs that only read.
    pub read_only: bool,
}

/// Returns the tools whose rules can grant a tool by path.
pub(super) fn granting_tools(tool: &str) -> &'static [&'static str] {
    match tool {
        "Read" => &["Read", "Edit"],
        "Edit" | "Write" => &["Edit"],
        "NotebookEdit" => &["NotebookEdit", "Edit"],
        "NotebookRead" => &["NotebookRead", "Read", "Edit"],
        _ => &[],
    }
}

/// Returns the tools whose rules can deny a tool by path: what may not be read may not be searched or written either.
pub(super) fn denying_tools(tool: &str) -> &'static [&'static str] {
    match tool {
        "Read" | "NotebookRead" => &["Read", "NotebookRead"],
        "Glob" => &["Glob", "Read"],
        "Grep" => &["Grep", "Read"],
        "LS" => &["LS", "Read"],
        "Edit" | "Write" => &["Edit", "Read"],
        "NotebookEdit" => &["NotebookEdit", "Edit", "Read"],
        _ => &[],
    }
}

fn mentions_tool(rule: &Rule, tool: &str, related: &[&str]) -> bool {
    rule.is_for(tool) || related.iter().any(|other| rule.is_for(other))
}

impl RuleSet {
    /// Returns the rules that could grant calls of a tool.
    pub(super) fn grants_for<'a, 't>(&'a self, tool: &'t str) -> impl Iterator<Item = &'a Rule> + use<'a, 't> {
        self.allow.iter().flatten().filter(move |rule| mentions_tool(rule, tool, granting_tools(tool)))
    }

    /// Returns the rules that could deny calls of a tool.
    pub(super) fn denials_for<'a, 't>(&'a self, tool: &'t str) -> impl Iterator<Item = &'a Rule> + use<'a, 't> {
        self.deny.iter().filter(move |rule| mentions_tool(rule, tool, denying_tools(tool)))
    }

    /// Returns the rules that could ask about calls of a tool that nothing grants.
    pub(super) fn asks_for<'a, 't>(&'a self, tool: &'t str) -> impl Iterator<Item = &'a Rule> + use<'a, 't> {
        self.ask.iter().filter(move |rule| mentions_tool(rule, tool, granting_tools(tool)))
    }

    /// Returns the rule that asks about a request of a tool other than Bash. `granted`: the request is granted, but not by a rule in the
    /// owner's file. The asking rule then takes precedence, and is read as generously as a denial.
    pub(super) fn asking(
        &self,
        granted: bool,
        tool: &str,
        request: &Request<'_>,
        roots: &ResolvedRoots,
    ) -> Option<&Rule> {
        match granted {
            true => {
                let mut asks = self.ask.iter().filter(|rule| mentions_tool(rule, tool, denying_tools(tool)));
                asks.find(|rule| denies(rule, request, roots))
            }
            false => self.asks_for(tool).find(|rule| grants(rule, request, roots)),
        }
    }

    /// Returns the rule that grants a request of a tool other than Bash.
    pub(super) fn granting(&self, tool: &str, request: &Request<'_>, roots: &ResolvedRoots) -> Option<&Rule> {
        self.grants_for(tool).find(|rule| grants(rule, request, roots))
    }

    /// Returns the rule that denies such a request.
    pub(super) fn denying(&self, tool: &str, request: &Request<'_>, roots: &ResolvedRoots) -> Option<&Rule> {
        self.denials_for(tool).find(|rule| denies(rule, request, roots))
    }

    /// Returns whether every call of a tool is denied, so that it need not be shown.
    pub(super) fn denies_whole(&self, tool: &str) -> bool {
        self.denials_for(tool).any(|rule| matches!(rule.matcher, Matcher::All | Matcher::Unsupported))
    }
}

/// Returns whether a path is granted in all its readings.
pub(super) fn grants_path(rule: &Rule, path: &Resolved, access: Access, roots: &ResolvedRoots) -> bool {
    let below = access == Access::Search;
    match &rule.matcher {
        Matcher::All => true,
        Matcher::Path(paths) => path.readings.iter().all(|path| paths.grants(path, roots, below)),
        _ => false,
    }
}

/// Returns whether a path is denied in any reading, or through any link in it.
pub(super) fn denies_path(rule: &Rule, path: &Resolved, access: Access, roots: &ResolvedRoots) -> bool {
    let below = access == Access::Search;
    match &rule.matcher {
        Matcher::Path(paths) => path.everywhere().any(|path| paths.denies(path, roots, below)),
        _ => true,
    }
}

fn grants(rule: &Rule, request: &Request<'_>, roots: &ResolvedRoots) -> bool {
    if rule.is_all() {
        return true;
    }
    match (request, &rule.matcher) {
        (Request::Path { access, path }, _) => grants_path(rule, path, *access, roots),
        (Request::Fetch(url), Matcher::Host(hosts)) => url_host::host(url).is_some_and(|host| hosts.matches(&host)),
        (Request::Text(text), Matcher::Text(forms)) => forms.iter().any(|form| form.matches(&words(text))),
        _ => false,
    }
}

fn denies(rule: &Rule, request: &Request<'_>, roots: &ResolvedRoots) -> bool {
    if rule.is_all() {
        return true;
    }
    match (request, &rule.matcher) {
        (Request::Path { access, path }, _) => denies_path(rule, path, *access, roots),
        // A URL without a definite host could be the denied one.
        (Request::Fetch(url), Matcher::Host(hosts)) => {
            url_host::host(url).is_none_or(|host| hosts.matches_possibly(&host))
        }
        (Request::Text(text), Matcher::Text(forms)) => {
            forms.iter().any(|form| form.matches_loosely(&loose(&words(text))))
        }
        _ => true,
    }
}

fn words(text: &str) -> String {
    joined(&text.split_whitespace().collect::<Vec<_>>())
}
