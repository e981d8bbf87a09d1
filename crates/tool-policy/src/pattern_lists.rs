//! Set operations on lists of grants: their intersection, and the difference with denials. They serve a sandbox that knows only whole
//! trees; calls are decided rule by rule.
//!
//! The results never contain less than the layers grant, so that the sandbox hides nothing that a call may have.

use crate::{Application, ToolPattern};

impl Application {
    /// Returns the intersection of two lists of grants. Of two patterns it has the one that the other covers. If neither covers
    /// the other but some call could match both, it has the one of the first list.
    #[must_use]
    pub fn intersection(&'static self, first: &[ToolPattern], second: &[ToolPattern]) -> Vec<ToolPattern> {
        let mut found = Vec::new();
        for one in first {
            for other in second {
                let mut push = |one: &ToolPattern, other: &ToolPattern| {
                    if self.covers(one, other) {
                        add(&mut found, other.clone());
                    } else if self.covers(other, one) || (same_tool(one, other) && self.overlaps(one, other)) {
                        add(&mut found, one.clone());
                    }
                };
                push(one, other);
                // Writing includes reading: what one list may write and the other read, both may read.
                if let Some(reading) = reading(one) {
                    push(&reading, other);
                }
                if let Some(reading) = reading(other) {
                    push(one, &reading);
                }
            }
        }
        found
    }

    /// Returns the grants without entirely denied ones. Paths that may not be written may still be read, but paths that may not be read
    /// may not be written either.
    #[must_use]
    pub fn difference(&'static self, granted: &[ToolPattern], denied: &[ToolPattern]) -> Vec<ToolPattern> {
        let mut left = Vec::new();
        for pattern in granted {
            let reading = reading(pattern);
            // A denial of writing leaves reading.
            let taken = |what: &ToolPattern| {
                denied.iter().any(|denial| (writes(what) || !writes(denial)) && self.covers(denial, what))
            };
            match reading {
                Some(reading) if taken(&reading) => {}
                Some(reading) if taken(pattern) => add(&mut left, reading),
                None if taken(pattern) => {}
                _ => add(&mut left, pattern.clone()),
            }
        }
        left
    }
}

fn add(list: &mut Vec<ToolPattern>, pattern: ToolPattern) {
    if !list.contains(&pattern) {
        list.push(pattern);
    }
}

fn same_tool(one: &ToolPattern, other: &ToolPattern) -> bool {
    one.canonical_tool() == other.canonical_tool()
}

fn writes(pattern: &ToolPattern) -> bool {
    matches!(pattern.canonical_tool(), "Edit" | "NotebookEdit")
}

/// Returns the grant of reading that a pattern for writing includes.
fn reading(pattern: &ToolPattern) -> Option<ToolPattern> {
    if !writes(pattern) {
        return None;
    }
    let text = pattern.specifier().map_or_else(|| "Read".to_owned(), |specifier| format!("Read({specifier})"));
    ToolPattern::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    fn list(texts: &[&str]) -> Vec<ToolPattern> {
        texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
    }

    fn words(patterns: &[ToolPattern]) -> Vec<String> {
        patterns.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_two_lists_have_in_common() {
        for (first, second, expected) in [
            (&["Read", "Edit"][..], &["Read"][..], &["Read"][..]),
            (&["Edit(notes/**)"], &["Read"], &["Read(notes/**)"]),
            (&["Read(~/docs/**)"], &["Edit"], &["Read(~/docs/**)"]),
            (&["Edit"], &["Glob"], &[]),
            (&["Edit"], &["Edit(notes/**)", "Bash"], &["Edit(notes/**)", "Read(notes/**)"]),
            (&["Bash(git *)"], &["Bash(git log *)", "Bash(ls *)"], &["Bash(git log *)"]),
            (&["mcp__chat"], &["mcp__chat__ping_user"], &["mcp__chat__ping_user"]),
            (&["*"], &["Read", "Bash(ls)"], &["Read", "Bash(ls)"]),
            (&["Read"], &["*"], &["Read"]),
            (&["Read"], &[], &[]),
        ] {
            assert_eq!(words(&BOT.intersection(&list(first), &list(second))), expected, "{first:?} and {second:?}");
        }
    }

    #[test]
    fn what_denials_leave() {
        for (granted, denied, expected) in [
            (&["Read", "Edit"][..], &["Write", "Edit", "NotebookEdit"][..], &["Read"][..]),
            (&["Edit(~/notes/**)"], &["Edit"], &["Read(~/notes/**)"]),
            (&["Edit(~/notes/**)", "Bash"], &["Read"], &["Bash"]),
            (&["Edit", "Bash"], &["Bash(git *)", "WebFetch"], &["Edit", "Bash"]),
            (&["Bash(git log *)", "Read"], &["Bash"], &["Read"]),
            (&["Read", "Bash"], &["*"], &[]),
        ] {
            assert_eq!(
                words(&BOT.difference(&list(granted), &list(denied))),
                expected,
                "{granted:?} without {denied:?}"
            );
        }
    }
}
