//! An agent's tool lists: parsing of YAML lists and of the client's text with commas, and subtraction of one list from another.

use crate::definition::frontmatter::Node;
use crate::definition::quoted;
use crate::definition::values::{Fault, Value};
use crate::policy::{BOT, PatternError, ToolPattern};

/// Parses a list in either form.
pub(super) fn patterns(value: &Value) -> Result<Vec<ToolPattern>, Fault> {
    match value.node {
        Node::Text(text) => pieces(text).into_iter().map(|piece| pattern(value.name, piece, None)).collect(),
        Node::List(_) => {
            value.texts()?.iter().enumerate().map(|(n, text)| pattern(value.name, text, Some(n))).collect()
        }
        other => Err(Fault {
            message: format!("`{}` must be a list of tools, found {}", value.name, other.describe()),
            hint: Some(format!("write `{}: Read, Grep`, or one `- …` a line; or remove the line", value.name)),
            item: None,
        }),
    }
}

fn pattern(field: &str, text: &str, item: Option<usize>) -> Result<ToolPattern, Fault> {
    ToolPattern::parse(text).and_then(|pattern| pattern.for_client(&BOT)).map_err(|error| {
        let hint = match error {
            PatternError::Name(_) if text.contains([',', ' ']) => "write one tool a line, each after its own `- `",
            PatternError::Unbalanced(_) => "close each `(` with a `)`",
            _ => "write `Tool` or `Tool(what)`",
        };
        Fault { message: format!("{error} in `{field}`"), hint: Some(hint.into()), item }
    })
}

/// Splits the client's form at commas and blanks, except inside parentheses.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && (c == ',' || c.is_whitespace()) => {
                pieces.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Returns `tools` without those that `disallowed` takes away, and the dropped ones.
///
/// A tool is dropped only if a rule takes it away whole. A rule for a part (`Bash(git push *)` of `Bash`) drops nothing;
/// the policy enforces it call by call.
pub(super) fn without(tools: Vec<ToolPattern>, disallowed: &[ToolPattern]) -> (Vec<ToolPattern>, Vec<ToolPattern>) {
    tools.into_iter().partition(|tool| !disallowed.iter().any(|rule| takes_whole(rule, tool)))
}

fn takes_whole(rule: &ToolPattern, tool: &ToolPattern) -> bool {
    let everything = |pattern: &ToolPattern| matches!(pattern.specifier(), None | Some("*"));
    let (rule_name, tool_name) = (rule.tool(), tool.tool());
    if !everything(rule) {
        return rule_name == tool_name && rule.specifier() == tool.specifier();
    }
    // `*` and `mcp__discord__*` match by prefix; `mcp__discord` matches all tools of its server.
    if let Some(beginning) = rule_name.strip_suffix('*') {
        return tool_name.starts_with(beginning);
    }
    let server = || tool_name.strip_prefix(rule_name).is_some_and(|rest| rest.starts_with("__"));
    rule_name == tool_name || (rule_name.starts_with("mcp__") && server())
}

/// Returns whether a list contains `*`: every tool of the caller.
pub(super) fn is_everything(tools: &[ToolPattern]) -> bool {
    tools.iter().any(|tool| tool.tool() == "*")
}

/// Formats a list as `` `Read`, `Grep` ``.
pub(super) fn named(tools: &[ToolPattern]) -> String {
    tools.iter().map(|tool| quoted(&tool.to_string())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_text_is_cut_at_commas_and_blanks_outside_parentheses() {
        for (text, expected) in [
            ("Read, Grep", vec!["Read", "Grep"]),
            ("Read Grep,Glob", vec!["Read", "Grep", "Glob"]),
            ("Bash(git log, x), Read", vec!["Bash(git log, x)", "Read"]),
            (" Read ,, ", vec!["Read"]),
            ("", vec![]),
            (" , ", vec![]),
            ("Bash(a, Read", vec!["Bash(a, Read"]),
            ("a), b", vec!["a)", "b"]),
            ("*", vec!["*"]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn a_rule_drops_what_it_takes_whole() {
        let list = |text: &str| -> Vec<ToolPattern> {
            pieces(text).into_iter().map(|piece| ToolPattern::parse(piece).unwrap()).collect()
        };
        for (tools, disallowed, left) in [
            ("Read, Write", "Write", "Read"),
            ("Bash(git log *), Bash(ls), Read", "Bash", "Read"),
            ("Bash, Read", "Bash(rm *)", "Bash, Read"),
            ("Bash(rm *), Read", "Bash(rm *)", "Read"),
            ("Bash(rm *)", "Bash(*)", ""),
            ("Read, Write", "*", ""),
            ("mcp__discord__ping_user, Read", "mcp__discord", "Read"),
            ("mcp__discord__ping_user, mcp__discords__x", "mcp__discord__*", "mcp__discords__x"),
            ("mcp__discords__x", "mcp__discord", "mcp__discords__x"),
            ("Read", "", "Read"),
        ] {
            assert_eq!(without(list(tools), &list(disallowed)).0, list(left), "{tools} without {disallowed}");
        }
    }
}
