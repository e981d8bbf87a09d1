//! The change that the answer "always" makes in a job's file: the rule that asked moves to `allowed_tools`, or out of `ask_tools` if the
//! file has no allowlist.

use super::{Definition, Draft, FieldValue};
use crate::policy::ToolPattern;

/// A change of a job's lists of tools.
#[derive(Clone, Debug)]
pub struct RuleChange {
    /// The changed fields.
    pub fields: Vec<(&'static str, Option<FieldValue>)>,
    /// The content of the file after the change.
    pub expected: Draft,
}

impl RuleChange {
    /// Returns the change that allows a rule that asks. `None` if the file does not hold it.
    #[must_use]
    pub fn of(found: &Definition, rule: &ToolPattern) -> Option<Self> {
        let mut expected = Draft::from(found);
        let asks = expected.ask_tools.get_or_insert_default();
        let before = asks.len();
        asks.retain(|asked| asked != rule);
        if asks.len() == before {
            return None;
        }
        let texts = |patterns: &[ToolPattern]| FieldValue::Texts(patterns.iter().map(ToString::to_string).collect());
        let mut fields = vec![("ask_tools", Some(texts(asks)).filter(|_| !asks.is_empty()))];
        if asks.is_empty() {
            expected.ask_tools = None;
            // The terms of questions have no effect without any.
            if !expected.approve && expected.ask.take().is_some() {
                fields.push(("ask", None));
            }
        }
        if let Some(allowed) = &mut expected.allowed_tools
            && !allowed.contains(rule)
        {
            allowed.push(rule.clone());
            fields.push(("allowed_tools", Some(texts(allowed))));
        }
        Some(Self { fields, expected })
    }
}

/// Returns the lines of each text that are missing in the other, each list's below its field. The same line below another field is another one.
#[must_use]
pub fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (with_fields(old), with_fields(new));
    // Longest common subsequence: `longest[i][j]` is its length for the rest of both texts from lines `i` and `j` on.
    let mut longest = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for (i, was) in old.iter().enumerate().rev() {
        for (j, is) in new.iter().enumerate().rev() {
            longest[i][j] =
                if was == is { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines, mut shown) = (0, 0, Vec::new(), "");
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let is_new = j < new.len() && (i == old.len() || longest[i][j + 1] > longest[i + 1][j]);
        let (sign, (field, line)) = if is_new { ('+', new[j]) } else { ('-', old[i]) };
        if field != shown && field != line && !field.is_empty() {
            lines.push(format!(" {field}"));
        }
        shown = field;
        lines.push(format!("{sign}{line}"));
        (i, j) = if is_new { (i, j + 1) } else { (i + 1, j) };
    }
    lines
}

/// Returns each line of a text with the line of the field that it belongs to, which may be itself.
fn with_fields(text: &str) -> Vec<(&str, &str)> {
    let is_field = |line: &str| line.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains(':');
    let mut field = "";
    let of_field = |line| {
        field = if is_field(line) { line } else { field };
        (field, line)
    };
    text.lines().map(of_field).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::definition::{Defaults, Kind, changed_text, parse};

    #[test]
    fn the_terms_of_questions_go_with_the_last_rule_that_asks() {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let path = Path::new("routines/job.md");
        for (approve, keeps_terms) in [("", false), ("approve: true\n", true)] {
            let text = format!(
                "---\ncron: '@daily'\n{approve}background: true\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n\
                 ask: {{ deadline: 90s }}\n---\nDo it.\n"
            );
            let found = parse(Kind::Routine, path, text.as_bytes(), &defaults).definition.unwrap();
            let change = RuleChange::of(&found, &ToolPattern::parse("Bash(touch *)").unwrap()).unwrap();
            let new = changed_text(path, &text, &change.fields, None).unwrap();
            assert_eq!(new.contains("ask:"), keeps_terms, "{new}");
            let changed = parse(Kind::Routine, path, new.as_bytes(), &defaults);
            assert_eq!(changed.problems, [], "{new}");
            assert_eq!(Draft::from(&changed.definition.unwrap()), change.expected);
        }
    }

    #[test]
    fn a_diff_has_what_differs() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), ["-b", "+d"]);
        assert_eq!(diff("a\n- x\nb\n- y\n", "a\n- x\n- y\nb\n"), ["-b", "+b"]);
        assert_eq!(diff("a", "a"), [""; 0]);
        assert_eq!(
            diff("allowed:\n  - x\nask:\n  - y\n  - z\n", "allowed:\n  - x\n  - y\nask:\n  - z\n"),
            [" allowed:", "+  - y", " ask:", "-  - y"]
        );
        assert_eq!(
            diff("allowed:\n  - x\nask:\n  - y\nterms: z\n", "allowed:\n  - x\n  - y\n"),
            ["-ask:", "-  - y", "-terms: z", " allowed:", "+  - y"]
        );
    }
}
