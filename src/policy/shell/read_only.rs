//! Lines that can only read: every command in a fixed set, with options that write nothing and run nothing.

use super::options::is_abbreviation;
use super::script::{Command, Role, Script};
use super::word::Word;

/// Programs that write nothing and run nothing, whatever their arguments.
const ALWAYS: &[&str] = &[
    "basename", "cat", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "fgrep", "grep", "head",
    "ls", "nl", "pwd", "readlink", "realpath", "stat", "tail", "test", "[", "tr", "wc",
];

/// Whether a line can only read. A redirection, an assignment or a function makes it something else.
pub(in crate::policy) fn is_read_only(script: &Script) -> bool {
    script.writes.is_empty()
        && script.reads.is_empty()
        && script.assigned.is_empty()
        && script.exported.is_empty()
        && script.functions.is_empty()
        && script.commands.iter().any(|command| command.role == Role::Runs)
        && script.commands.iter().all(command)
}

fn command(command: &Command) -> bool {
    match command.role {
        Role::May | Role::Steers => return command.hidden.is_none(),
        Role::Wraps => return command.hidden.is_none() && !matches!(program(command), Some("exec" | "trap" | "nohup")),
        Role::Runs => {}
    }
    let Some(program) = program(command).filter(|_| command.hidden.is_none()) else { return false };
    let arguments = &command.words[1..];
    match program {
        "find" => {
            let acts = ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls"];
            arguments.iter().all(|word| {
                let text = word.known_start();
                !acts.contains(&text) && !text.starts_with("-fprint") && text != "-files0-from"
            })
        }
        "rg" => options(arguments, "z", &["pre", "pre-glob", "hostname-bin", "search-zip"]),
        "sed" => {
            let quiet = |word: &Word| {
                word.literal().is_some_and(|text| {
                    matches!(text, "--quiet" | "--silent")
                        || (text.starts_with('-') && !text.starts_with("--") && text.contains('n'))
                })
            };
            arguments.iter().any(quiet) && options(arguments, "i", &["in-place"])
        }
        "sort" => options(arguments, "oT", &["output", "compress-program", "temporary-directory"]),
        "git" => git(arguments),
        name => ALWAYS.contains(&name),
    }
}

fn program(command: &Command) -> Option<&str> {
    command.words.first().and_then(Word::literal)
}

/// Whether none of these options is used, nor could be by an expansion.
fn options(arguments: &[Word], short: &str, long: &[&str]) -> bool {
    for word in arguments {
        if word.literal() == Some("--") {
            return true;
        }
        if word.is_unknown() && word.may_be_option() {
            return false;
        }
        let text = word.known_start();
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if cluster.is_some_and(|letters| letters.contains(|letter| short.contains(letter)))
            || long.iter().any(|name| is_abbreviation(text, name))
        {
            return false;
        }
    }
    true
}

fn git(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    loop {
        match rest.first().and_then(Word::literal) {
            Some("-C") if rest.get(1).is_some_and(|folder| folder.literal().is_some()) => rest = &rest[2..],
            Some("--no-pager" | "-P") => rest = &rest[1..],
            Some("status" | "log" | "diff" | "show" | "blame" | "ls-files") => {
                return options(&rest[1..], "", &["output", "ext-diff", "textconv", "config"]);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::read;
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: bool) {
        let found = read(line).is_ok_and(|script| is_read_only(&script));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn reading_lines_are_told_from_others() {
        for line in [
            "ls",
            "ls -la notes",
            "cat notes.txt | head -5",
            "grep -rn 'x y' .",
            "rg foo src",
            "find . -name '*.md' -type f",
            "git status",
            "git -C sub log --oneline -5",
            "git diff HEAD~1 -- a",
            "sed -n 1,5p f",
            "sed -n '/a/p' f",
            "ls 2>/dev/null",
            "ls 2>&1 | wc -l",
            "timeout 5 ls",
            "cat $(ls)",
            "for f in a b; do true; done && ls || true",
            "sort f | head",
        ] {
            // A loop binds a name.
            check(line, !line.starts_with("for"));
        }
        for line in [
            "",
            "true",
            "touch f",
            "mkdir x",
            "rm f",
            "cp a b",
            "mv a b",
            "git add .",
            "git commit -m x",
            "npm install",
            "ls > f",
            "cat < f",
            "find . -delete",
            "find . -exec cat {} ;",
            "find . -exec cat {} \\;",
            "find . -fprint f",
            "find . -ok ls \\;",
            "git log --output=f",
            "git log --outp=f",
            "git diff --ext-diff",
            "git diff --textconv",
            "git -c core.pager=x log",
            "git --git-dir=x log",
            "git stash",
            "sed p f",
            "sed -n -i p f",
            "sed -ni p f",
            "sed -n 'w f' f",
            "sed -n '1e x' f",
            "sort -o f f",
            "rg --pre cat x",
            "cat $(touch f)",
            "cat `touch f`",
            "X=1 ls",
            "x=1; ls",
            "ls; touch f",
            "ls | tee f",
            "bash x.sh",
            "./ls",
            "/tmp/cat f",
            "ls() { touch f; }; ls",
            "sudo ls",
        ] {
            check(line, false);
        }
    }
}
