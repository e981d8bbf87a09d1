//! The variables that a line sets for a program. Those that could change the program's behaviour are refused by name.

use crate::Application;

/// Returns whether a variable is never set in a fork, whatever its rules: it affects the fork's identity, or the meaning of words.
pub(super) fn is_reserved(name: &str, value: &str, application: &Application) -> bool {
    const NAMES: &[&str] = &["PATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS"];
    const PREFIXES: &[&str] = &["LD_", "DYLD_", "BASH_"];
    let begins = || PREFIXES.iter().chain(application.reserved_variables).any(|prefix| name.starts_with(prefix));
    NAMES.contains(&name) || (begins() && !is_of_stdbuf(name, value))
}

/// Returns whether `stdbuf` sets the variable for its program: its library in the system's folders, and sizes.
fn is_of_stdbuf(name: &str, value: &str) -> bool {
    const LIBRARIES: &[&str] = &["/usr/lib/coreutils/libstdbuf.so", "/usr/libexec/coreutils/libstdbuf.so"];
    match name {
        "LD_PRELOAD" => LIBRARIES.contains(&value),
        "_STDBUF_E" | "_STDBUF_I" | "_STDBUF_O" => value.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        _ => false,
    }
}

/// Returns whether a text is a name that a shell can assign to.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns whether a value is a single word in any place where a shell, `make` or a program puts it: it has no blank, is no option, and
/// nothing in it is expanded.
pub(crate) fn is_word(value: &str) -> bool {
    let begins = |c: char| c.is_alphanumeric() || "_./".contains(c);
    value.is_empty()
        || (value.starts_with(begins) && value.chars().all(|c| c.is_alphanumeric() || "_.,:/@+%-".contains(c)))
}

/// Returns whether a variable with this value leaves a program's behaviour safe. `runs_code`: the program runs code from files (a script,
/// a makefile), which may read any name.
pub(super) fn is_harmless(name: &str, value: &str, runs_code: bool, application: &Application) -> bool {
    !is_reserved(name, value, application) && (is_known(name, value) || (!runs_code && is_persons(name, value)))
}

/// Returns whether a variable has a name of the person's own, which no program reads unless it runs code.
fn is_persons(name: &str, value: &str) -> bool {
    let lower = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    is_name(name) && lower && !name.ends_with("_proxy") && is_word(value)
}

/// Returns whether a variable is known to be safe for every program that reads it.
pub(crate) fn is_known(name: &str, value: &str) -> bool {
    const WORDS: &[&str] = &[
        "CARGO_TERM_COLOR",
        "CI",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "DEBUG",
        "FORCE_COLOR",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "NODE_ENV",
        "NO_COLOR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONIOENCODING",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "RUST_BACKTRACE",
        "VERBOSE",
    ];
    const NUMBERS: &[&str] = &["COLUMNS", "LINES", "SOURCE_DATE_EPOCH"];
    const TEXTS_OF_GIT: &[&str] = &[
        "GIT_AUTHOR_DATE",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_DATE",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_REFLOG_ACTION",
    ];
    // make puts variables into its shell's lines, and a shell evaluates a variable in arithmetic.
    match name {
        _ if NUMBERS.contains(&name) => value.bytes().all(|byte| byte.is_ascii_digit()),
        // Names, dates and actions contain blanks; git gives them no other meaning.
        _ if TEXTS_OF_GIT.contains(&name) => {
            !value.starts_with('-') && value.chars().all(|c| c.is_alphanumeric() || " _.,:=/@+%-<>".contains(c))
        }
        // Some programs read a file with that name.
        _ if WORDS.contains(&name) => is_word(value) && !value.contains('/'),
        "RUST_LOG" => value.split('=').all(is_word),
        "LANG" => is_locale(value),
        _ if name.starts_with("LC_") => is_name(name) && is_locale(value),
        "LANGUAGE" | "TERM" => is_word(value) && !value.contains('/'),
        "TZ" => is_word(value) && !value.starts_with('/') && !value.contains(".."),
        // Set by git for every program that it starts.
        "GIT_EXEC_PATH" => ["/usr/lib", "/usr/libexec", "/usr/local/libexec"]
            .iter()
            .any(|folder| value.strip_prefix(folder) == Some("/git-core")),
        "GIT_PREFIX" => is_word(value),
        "GIT_PROTOCOL" => {
            value.strip_prefix("version=").is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit()))
        }
        "GIT_PAGER" | "PAGER" => matches!(value, "cat" | ""),
        "GIT_EDITOR" | "EDITOR" | "GIT_SEQUENCE_EDITOR" | "VISUAL" => matches!(value, "true" | ":"),
        _ => is_of_stdbuf(name, value),
    }
}

/// Returns whether a value is a locale with a safe character set: in others a byte can swallow the next one.
fn is_locale(value: &str) -> bool {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    matches!(value, "" | "C" | "POSIX")
        || value
            .split_once('.')
            .is_some_and(|(name, set)| plain(name) && ["UTF-8", "utf8", "UTF8", "utf-8"].contains(&set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    #[test]
    fn names_are_told_apart() {
        let check = |text: &str, expected: bool| {
            let (name, value) = text.split_once('=').unwrap();
            assert_eq!(is_harmless(name, value, false, &BOT), expected, "{text}");
            let own = name.starts_with(|c: char| c.is_ascii_lowercase());
            assert_eq!(is_harmless(name, value, true, &BOT), expected && !own, "{text}");
        };
        for text in [
            "LANG=C",
            "LC_ALL=de_DE.UTF-8",
            "LC_CTYPE=C.utf8",
            "TZ=Europe/Berlin",
            "TZ=UTC",
            "TZ=EST5EDT,M3.2.0,M11.1.0",
            "TERM=xterm-256color",
            "NO_COLOR=1",
            "CI=true",
            "NODE_ENV=test",
            "foo=bar",
            "foo=",
            "foo=../notes/a-b.md",
            "foo=2026-01-02T03:04:05+01:00",
            "foo=größe",
            "RUST_LOG=info,bot=debug",
            "GIT_AUTHOR_DATE=2 days ago",
            "LANGUAGE=de_DE:de",
            "CI=true",
            "GIT_AUTHOR_NAME=Ada Lövelace",
            "GIT_AUTHOR_EMAIL=<a@b.c>",
            "x_1=",
            "GIT_PAGER=cat",
            "GIT_SEQUENCE_EDITOR=true",
            "GIT_EXEC_PATH=/usr/lib/git-core",
            "GIT_PREFIX=notes/",
            "GIT_PROTOCOL=version=2",
            "LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so",
            "_STDBUF_O=L",
            "GIT_AUTHOR_NAME=a b",
        ] {
            check(text, true);
        }
        for text in [
            "LC_ALL=zh_CN.GBK",
            "LANG=../x",
            "LANG=ja_JP.SJIS",
            "TZ=:/etc/passwd",
            "TZ=/x",
            "TZ=../x",
            "TERM=../x",
            "PATH=.",
            "LD_PRELOAD=x",
            "LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so:/tmp/x.so",
            "LD_PRELOAD=/usr/libexec/coreutils/../coreutils/libstdbuf.so",
            "LD_LIBRARY_PATH=/usr/libexec/coreutils/libstdbuf.so",
            "_STDBUF_O=../x",
            "GIT_SEQUENCE_EDITOR=x",
            "GIT_EXEC_PATH=/usr/lib/git-core/../x",
            "GIT_EXEC_PATH=notes",
            "GIT_PREFIX=-x",
            "GIT_PROTOCOL=version=2:x",
            "BASH_ENV=x",
            "BOT_RUN_TOKEN=x",
            "ENV=x",
            "IFS=x",
            "GIT_SSH_COMMAND=x",
            "GIT_PAGER=less",
            "PAGER=x",
            "HOME=/",
            "TMPDIR=x",
            "http_proxy=x",
            "HTTPS_PROXY=x",
            "LC_a b=C",
            "NODE_ENV=../x",
            "foo=a b",
            "foo=-rf",
            "foo=+cmd",
            "foo=@/x",
            "foo=~/x",
            "foo=%1",
            "foo=PATH=/x",
            "foo=*",
            "foo=a\tb",
            "foo=a\u{a0}b",
            "CI=a b",
            "NODE_ENV=-r",
            "DEBUG=x --y",
            "RUST_LOG=info -x",
            "TZ=-x",
            "TZ=<x>-3",
            "GIT_AUTHOR_NAME=-x",
            "OLDPWD=/x y",
            "foo=$(shell id)",
            "foo=`id`",
            "foo=; id",
            "foo=a\nb",
            "VERBOSE=$(shell id)",
            "COLUMNS=a[$(id)]",
            "LINES=a",
            "GIT_AUTHOR_NAME=$(id)",
            "TAR_OPTIONS=x",
            "NODE_OPTIONS=x",
            "PYTHONPATH=x",
            "FOO=1",
            "PWD=/x",
            "a b=c",
            "BASH_FUNC_ls%%=x",
        ] {
            check(text, false);
        }
        for name in ["PATH", "BOT_HOME", "LD_PRELOAD", "BASH_ENV", "IFS", "BASH_FUNC_ls%%"] {
            assert!(is_reserved(name, "x", &BOT), "{name}");
        }
    }
}
