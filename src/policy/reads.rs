//! Which Bash grants are for reading: for a wall that knows trees of files and not what a program does with them.

use super::ToolPattern;
use super::rule::{Matcher, Origin, Rule};

/// Programs that people grant to look at something, or to bring it into another form. Some have an option that writes
/// (`sed -i`, `find -delete`); a pattern that names it is no grant for reading.
const READERS: &[&str] = &[
    "[",
    "awk",
    "base64",
    "basename",
    "cal",
    "cat",
    "cd",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "file",
    "find",
    "fold",
    "free",
    "grep",
    "head",
    "hostname",
    "id",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "paste",
    "popd",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "uptime",
    "wc",
    "which",
    "whoami",
];

/// Subcommands of git that only look.
const GIT_READERS: &[&str] =
    &["blame", "describe", "diff", "grep", "log", "ls-files", "rev-list", "rev-parse", "shortlog", "show", "status"];

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
        Matcher::Command(command) => !is_reading(&command.granting.fixed_words()),
        _ => false,
    }
}

fn is_reading(fixed: &[String]) -> bool {
    let Some((program, arguments)) = fixed.split_first() else { return false };
    let program = ["/bin/", "/usr/bin/"].iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    let changes = |word: &String| {
        ["-i", "-o", "--in-place", "--output", "-delete", "-exec", "-ok", "-fprint", "-fls"]
            .iter()
            .any(|option| word.starts_with(option))
    };
    match program {
        "ollim-bot" => true,
        "git" => arguments.first().is_some_and(|word| GIT_READERS.contains(&word.as_str())),
        name => READERS.contains(&name) && !arguments.iter().any(changes),
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
