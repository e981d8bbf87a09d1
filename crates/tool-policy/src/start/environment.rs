//! Variables that a line sets for a program: those that could turn it into another one are refused by their name.

use crate::Application;

/// Never set in a fork, whatever its rules: who it is, and what its words mean.
pub(super) fn is_reserved(name: &str, value: &str, application: &Application) -> bool {
    const NAMES: &[&str] = &["PATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS"];
    const PREFIXES: &[&str] = &["LD_", "DYLD_", "BASH_"];
    let begins = || PREFIXES.iter().chain(application.reserved_variables).any(|prefix| name.starts_with(prefix));
    NAMES.contains(&name) || (begins() && !is_of_stdbuf(name, value))
}

/// What `stdbuf` sets for the program that it starts: its library, which lies in the system's folders, and sizes.
fn is_of_stdbuf(name: &str, value: &str) -> bool {
    const LIBRARIES: &[&str] = &["/usr/lib/coreutils/libstdbuf.so", "/usr/libexec/coreutils/libstdbuf.so"];
    match name {
        "LD_PRELOAD" => LIBRARIES.contains(&value),
        "_STDBUF_E" | "_STDBUF_I" | "_STDBUF_O" => value.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        _ => false,
    }
}

/// Whether a text is a name that a shell can assign to.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a value is no more than a word, wherever a shell, `make` or a program puts it: it has no blank, is no option, and
/// nothing in it is expanded.
pub(crate) fn is_word(value: &str) -> bool {
    let begins = |c: char| c.is_alphanumeric() || "_./".contains(c);
    value.is_empty()
        || (value.starts_with(begins) && value.chars().all(|c| c.is_alphanumeric() || "_.,:/@+%-".contains(c)))
}

/// Whether a program is what it was with a variable of this value. `runs_code`: it runs what files say (a script, a makefile),
/// and these may read any name.
pub(super) fn is_harmless(name: &str, value: &str, runs_code: bool, application: &Application) -> bool {
    !is_reserved(name, value, application) && (is_known(name, value) || (!runs_code && is_persons(name, value)))
}

/// Whether a variable is a name of the person's own, which a program that runs no code does not read.
fn is_persons(name: &str, value: &str) -> bool {
    let lower = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    is_name(name) && lower && !name.ends_with("_proxy") && is_word(value)
}

/// Whether a variable is one that changes no program, whatever reads it.
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
    // make puts a variable into the lines of its shell, and a shell evaluates one in arithmetic.
    match name {
        _ if NUMBERS.contains(&name) => value.bytes().all(|byte| byte.is_ascii_digit()),
        // Names, dates and what is done have blanks; git takes them for nothing else.
        _ if TEXTS_OF_GIT.contains(&name) => {
            !value.starts_with('-') && value.chars().all(|c| c.is_alphanumeric() || " _.,:=/@+%-<>".contains(c))
        }
        // Some programs read a file of that name.
        _ if WORDS.contains(&name) => is_word(value) && !value.contains('/'),
        "RUST_LOG" => value.split('=').all(is_word),
        "LANG" => is_locale(value),
        _ if name.starts_with("LC_") => is_name(name) && is_locale(value),
        "LANGUAGE" | "TERM" => is_word(value) && !value.contains('/'),
        "TZ" => is_word(value) && !value.starts_with('/') && !value.contains(".."),
        // What git sets for whatever it starts.
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

/// Character sets in which a byte can swallow the next one are none of these.
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
