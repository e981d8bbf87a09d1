//! Shell variables by which a command line could turn a granted command into another one.

use super::shell::is_name;

/// Never assigned, bound or unset in a fork, whatever its rules: who it is, and what its words mean.
pub(super) fn is_reserved(name: &str) -> bool {
    const NAMES: &[&str] = &["PATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS"];
    const PREFIXES: &[&str] = &["OLLIM_", "LD_", "DYLD_", "BASH_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the shell itself runs what the variable holds.
pub(super) fn is_evaluated(name: &str) -> bool {
    matches!(name, "PS0" | "PS1" | "PS2" | "PS4" | "PROMPT_COMMAND")
}

/// Whether a plain assignment (`name=value;`) leaves every command what it was. A variable that is not exported
/// reaches no program, so only those count that are exported already or that the shell itself reads.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    const READ_BY_SHELL: &[&str] = &[
        "CDPATH",
        "EXECIGNORE",
        "FPATH",
        "GLOBIGNORE",
        "HISTFILE",
        "HOME",
        "OLDPWD",
        "PROMPT_COMMAND",
        "PS0",
        "PS1",
        "PS2",
        "PS4",
        "PWD",
        "SHELL",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "NODE_OPTIONS",
    ];
    const PREFIXES: &[&str] = &[
        "ANTHROPIC_",
        "BASH",
        "CLAUDE",
        "GIT_",
        "HTTP",
        "NODE_",
        "PERL",
        "PYTHON",
        "RUBY",
        "SSL_",
        "SSH_",
        "XDG_",
        "npm_",
    ];
    is_name(name)
        && !is_reserved(name)
        && !READ_BY_SHELL.contains(&name)
        && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !name.to_ascii_lowercase().ends_with("_proxy")
}

/// Whether a variable may be put into a command's environment. Here only known names pass: programs take pagers,
/// editors, plugins and libraries from theirs.
pub(super) fn is_harmless_export(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "CI",
        "CLICOLOR",
        "COLUMNS",
        "DEBUG",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LINES",
        "NO_COLOR",
        "TERM",
        "TZ",
        "VERBOSE",
    ];
    let own = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    is_harmless_variable(name) && (NAMES.contains(&name) || name.starts_with("LC_") || own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for name in ["PATH", "OLLIM_HOME", "OLLIM_RUN_TOKEN", "LD_PRELOAD", "BASH_ENV", "IFS", "BASH_FUNC_ls%%"] {
            assert!(is_reserved(name), "{name}");
            assert!(!is_harmless_variable(name), "{name}");
        }
        for name in ["x", "FILE", "today", "_", "TZ"] {
            assert!(is_harmless_variable(name), "{name}");
        }
        for name in ["PROMPT_COMMAND", "PS4", "GIT_PAGER", "HOME", "http_proxy", "HTTPS_PROXY", "npm_config_x", "a b"] {
            assert!(!is_harmless_variable(name), "{name}");
        }
        for name in ["TZ", "LC_ALL", "x", "NO_COLOR"] {
            assert!(is_harmless_export(name), "{name}");
        }
        for name in ["PAGER", "LESSOPEN", "MANPAGER", "RIPGREP_CONFIG_PATH", "TAR_OPTIONS", "FOO", "all_proxy"] {
            assert!(!is_harmless_export(name), "{name}");
        }
    }
}
