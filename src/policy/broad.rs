//! Patterns that are broader, or narrower, than they look.

use super::ToolPattern;
use super::misread::misread;
use super::programs::runs_anything;
use super::rule::{Matcher, Origin, Rule};

/// What a person should know about a pattern in an allowlist: broader than it looks, or granting nothing.
#[must_use]
pub fn warnings(pattern: &ToolPattern) -> Vec<String> {
    let rule = Rule::new(pattern, Origin::MainTools);
    let mut out = Vec::new();
    if rule.is_for_everything() {
        out.push(format!("`{pattern}` grants everything: every tool, with any input"));
        return out;
    }
    match &rule.matcher {
        Matcher::All if pattern.canonical_tool() == "Bash" => {
            out.push(format!(
                "`{pattern}` grants everything: any command line; name the commands, as in `Bash(ollim-bot gmail *)`"
            ));
        }
        Matcher::All if pattern.canonical_tool() == "Edit" => {
            out.push(format!(
                "`{pattern}` grants everything: writing any file; name the folder, as in `Edit(notes/**)`"
            ));
        }
        Matcher::Path(_) if is_whole_work(pattern) && pattern.canonical_tool() == "Edit" => {
            out.push(format!(
                "`{pattern}` grants everything: writing any file in `work/`; name the folder, as in `Edit(notes/**)`"
            ));
        }
        Matcher::Command(command) => command_warnings(pattern, command.fixed(), &mut out),
        Matcher::Unsupported => {
            out.push(format!("`{pattern}` grants nothing: {} has no such specifier", pattern.tool()));
        }
        _ => {}
    }
    if pattern.canonical_tool() == "Agent" && rule.is_all() {
        out.push(format!("`{pattern}` grants nothing in a job: name the agent, as in `Agent(Explore)`"));
    }
    out.extend(misread(&rule));
    out
}

fn is_whole_work(pattern: &ToolPattern) -> bool {
    matches!(pattern.specifier(), Some("**" | "**/*" | "./**" | "/**" | "//**" | "~/**" | "."))
}

fn command_warnings(pattern: &ToolPattern, fixed: &[String], out: &mut Vec<String>) {
    let specifier = pattern.specifier().unwrap_or_default();
    let Some(program) = fixed.first() else {
        // `ls*` begins with a name: that is told by itself.
        let begins =
            specifier.split_whitespace().next().is_some_and(|word| !word.starts_with('*') && word.ends_with('*'));
        if begins {
            return;
        }
        out.push(format!(
            "`{pattern}` grants everything: any program can stand for the `*`; begin with the program's name"
        ));
        return;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let open = specifier.ends_with('*');
    if fixed.len() == 1 && open && runs_anything(name) {
        out.push(format!(
            "`{pattern}` can run any program: `{name}` runs what its arguments say; name what it may run, as in `Bash({program} FILE)`"
        ));
    }
    if fixed.len() == 1 && open && name == "git" {
        out.push(format!(
            "`{pattern}` can run any program (hooks, pagers, `git submodule foreach`); name the subcommands"
        ));
    }
    if fixed.len() == 1 && open && name == "ollim-bot" {
        out.push(format!(
            "`{pattern}` grants every command of the bot and all of your own; name them, as in `Bash(ollim-bot gmail *)`"
        ));
    }
    let code = fixed.iter().skip(1).find(|word| matches!(word.as_str(), "-c" | "-e" | "--eval" | "-exec"));
    if let Some(code) = code.filter(|_| runs_anything(name)) {
        out.push(format!(
            "`{pattern}` may grant nothing: code after `{code}` is not judged by patterns; put it in a file"
        ));
    }
}

/// What a person should know about a pattern in the denylist `list`.
#[must_use]
pub fn denylist_warnings(pattern: &ToolPattern, list: &[ToolPattern]) -> Vec<String> {
    let rule = Rule::new(pattern, Origin::MainTools);
    let mut out = Vec::new();
    let no_bash = list.iter().any(|other| other.canonical_tool() == "Bash" && other.is_whole_tool());
    if matches!(rule.matcher, Matcher::Path(_)) && !no_bash {
        out.push(format!(
            "`{pattern}` holds for the file tools: the shell and what it runs reach the same files; deny `Bash` too, or list what is allowed in `allowed_tools` instead"
        ));
    }
    if let Matcher::Command(command) = &rule.matcher
        && command.program() != Some("ollim-bot")
    {
        out.push(format!(
            "`{pattern}` is a guard rail, not a boundary: a copy of the program, or another one, can do the same; list what is allowed in `allowed_tools` instead"
        ));
    }
    if matches!(rule.matcher, Matcher::Unsupported) {
        out.push(format!("`{pattern}` denies every {} call: it has no such specifier", pattern.tool()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        warnings(&ToolPattern::parse(text).unwrap()).join(" | ")
    }

    #[test]
    fn broad_grants_are_told() {
        for text in ["Bash", "Bash(*)", "Edit", "Write", "Write(**)", "Edit(**)", "*", "Bash(* --version)"] {
            assert!(of(text).contains("grants everything"), "{text}: {}", of(text));
        }
        for text in [
            "Bash(python *)",
            "Bash(python3.11 *)",
            "Bash(npx *)",
            "Bash(docker *)",
            "Bash(ssh *)",
            "Bash(env *)",
            "Bash(/usr/bin/bash *)",
            "Bash(sudo:*)",
            "Bash(git *)",
        ] {
            assert!(of(text).contains("can run any program"), "{text}: {}", of(text));
        }
        assert!(of("Bash(python3 -c *)").contains("may grant nothing"));
        assert!(of("WebSearch(rust)").contains("grants nothing"));
        assert!(of("Agent").contains("name the agent"));
        for text in [
            "Read",
            "Bash(find *)",
            "Bash(tar *)",
            "Bash(ollim-bot gmail *)",
            "Bash(git log *)",
            "Bash(python3 report.py)",
            "Edit(notes/**)",
            "mcp__discord__ping_user",
            "WebFetch(domain:docs.rs)",
            "Agent(Explore)",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    #[test]
    fn a_denylist_of_other_programs_is_a_guard_rail() {
        let of = |text: &str| {
            let pattern = ToolPattern::parse(text).unwrap();
            denylist_warnings(&pattern, std::slice::from_ref(&pattern)).join(" | ")
        };
        assert!(of("Bash(git push *)").contains("guard rail"));
        assert_eq!(of("Bash(ollim-bot cal *)"), "");
        assert_eq!(of("Bash"), "");
        assert_eq!(of("WebFetch"), "");
    }
}
