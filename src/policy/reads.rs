//! Which Bash grants are for reading: for a sandbox that knows trees of files and not what a program does with them.

use super::ToolPattern;
use super::program::Writes;
use super::rule::{Matcher, Origin, Rule};

/// Whether a pattern grants a Bash command that may be there to change files: any program that is not known for
/// reading, and neither our own, which changes nothing in `work/` by itself.
#[must_use]
pub fn may_change_files(pattern: &ToolPattern) -> bool {
    let rule = Rule::new(pattern, Origin::MainTools);
    if rule.is_for_everything() {
        return true;
    }
    match &rule.matcher {
        Matcher::All => pattern.canonical_tool() == "Bash",
        Matcher::Command(command) => match command.program() {
            Some(super::own::NAME) => false,
            Some(program) => command.rights(program).writes != Writes::Nothing,
            None => true,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_for_reading_are_told_from_others() {
        let check = |text: &str, expected: bool| {
            assert_eq!(may_change_files(&ToolPattern::parse(text).unwrap()), expected, "{text}");
        };
        for text in [
            "Bash(ls *)",
            "Bash(/bin/ls *)",
            "Bash(cat notes/*)",
            "Bash(git log *)",
            "Bash(git status)",
            "Bash(sed -n *)",
            "Bash(find *)",
            "Bash(ollim-bot gmail *)",
            "Bash(ollim-bot help)",
            "Read",
            "Edit(notes/**)",
            "mcp__discord",
        ] {
            check(text, false);
        }
        for text in [
            "*",
            "Bash",
            "Bash(*)",
            "Bash(cp notes/*)",
            "Bash(git *)",
            "Bash(git commit *)",
            "Bash(./ls *)",
            "Bash(work/bin/ls *)",
            "Bash(sed -i *)",
            "Bash(find . -delete)",
            "Bash(make)",
            "Bash(* --version)",
            "Bash(ls*)",
        ] {
            check(text, true);
        }
    }
}
