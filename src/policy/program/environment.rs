//! Variables that a line sets for a program: those that could turn it into another one are refused by their name.

use std::path::Path;

/// Never set in a fork, whatever its rules: who it is, and what its words mean.
pub(super) fn is_reserved(name: &str) -> bool {
    const NAMES: &[&str] = &["PATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS"];
    const PREFIXES: &[&str] = &["OLLIM_", "LD_", "DYLD_", "BASH_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a text is a name that a shell can assign to.
pub(in crate::policy) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a program is what it was with a variable of this value.
pub(super) fn is_harmless(name: &str, value: &str, cwd: &Path) -> bool {
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
        "OLDPWD",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONIOENCODING",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "VERBOSE",
        "_",
    ];
    const NUMBERS: &[&str] = &["COLUMNS", "LINES", "SHLVL", "SOURCE_DATE_EPOCH"];
    const NAMES_OF_PEOPLE: &[&str] = &[
        "GIT_AUTHOR_DATE",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_DATE",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
    ];
    if is_reserved(name) || !is_name(name) {
        return false;
    }
    // make puts a variable into the lines of its shell, and a shell evaluates one in arithmetic: a value that means something
    // there is none of these.
    let plain = |more: &str| value.chars().all(|c| c.is_alphanumeric() || more.contains(c));
    const OF_WORDS: &str = " _.,:=/@+%-";
    match name {
        _ if NUMBERS.contains(&name) => value.bytes().all(|byte| byte.is_ascii_digit()),
        _ if NAMES_OF_PEOPLE.contains(&name) => plain(&format!("{OF_WORDS}<>")),
        // What starts a program sets it to that program's path.
        _ if WORDS.contains(&name) => plain(OF_WORDS),
        "LANG" => is_locale(value),
        _ if name.starts_with("LC_") => is_locale(value),
        "LANGUAGE" => plain("_:@"),
        "TZ" => !value.starts_with(['/', ':']) && !value.contains("..") && plain("/_+-:,.<>"),
        "TERM" => plain("-+._"),
        "GIT_PAGER" | "PAGER" => matches!(value, "cat" | ""),
        "GIT_EDITOR" | "EDITOR" => matches!(value, "true" | ":"),
        // The shell's own, when it changes folders.
        "PWD" => Path::new(value) == cwd || Path::new(value).canonicalize().is_ok_and(|path| path == cwd),
        _ => {
            let lower = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            // Package managers take their settings from them.
            let settings =
                ["npm_", "pnpm_", "yarn_", "bun_", "pip_", "uv_"].iter().any(|prefix| name.starts_with(prefix));
            lower && !settings && !name.ends_with("_proxy") && plain(OF_WORDS)
        }
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

    #[test]
    fn names_are_told_apart() {
        let work = Path::new("/w");
        let check = |text: &str, expected: bool| {
            let (name, value) = text.split_once('=').unwrap();
            assert_eq!(is_harmless(name, value, work), expected, "{text}");
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
            "foo=a b",
            "CI=true",
            "GIT_AUTHOR_NAME=Ada Lövelace",
            "GIT_AUTHOR_EMAIL=<a@b.c>",
            "x_1=",
            "PWD=/w",
            "SHLVL=2",
            "_=/usr/bin/git",
            "GIT_PAGER=cat",
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
            "BASH_ENV=x",
            "OLLIM_RUN_TOKEN=x",
            "ENV=x",
            "IFS=x",
            "GIT_SSH_COMMAND=x",
            "GIT_PAGER=less",
            "PAGER=x",
            "HOME=/",
            "TMPDIR=x",
            "http_proxy=x",
            "HTTPS_PROXY=x",
            "npm_config_x=y",
            "pnpm_config_script_shell=x",
            "yarn_script_shell=x",
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
        for name in ["PATH", "OLLIM_HOME", "LD_PRELOAD", "BASH_ENV", "IFS", "BASH_FUNC_ls%%"] {
            assert!(is_reserved(name), "{name}");
        }
    }
}
