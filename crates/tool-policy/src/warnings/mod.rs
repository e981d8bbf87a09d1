//! Warnings about patterns that are broader or narrower than they look.

mod misleading;

use misleading::misleading;

use crate::options::scan;
use crate::programs::{self, Class, base_name, runs_anything};
use crate::restraints::is_restrained;
use crate::rule::{Matcher, Origin, Rule};
use crate::{Application, Executes, ToolPattern};

impl Application {
    /// Returns warnings about a pattern in an allowlist: it is broader than it looks, or grants nothing.
    #[must_use]
    pub fn warnings(&'static self, pattern: &ToolPattern) -> Vec<String> {
        let rule = Rule::new(pattern, Origin::MainTools, self);
        let mut out = Vec::new();
        if rule.is_for_everything() {
            out.push(format!("`{pattern}` grants everything: every tool, with any input"));
            return out;
        }
        match &rule.matcher {
            Matcher::All if pattern.canonical_tool() == "Bash" => {
                out.push(format!(
                    "`{pattern}` grants everything: any command line; name the commands, as in `{}`",
                    self.example
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
            Matcher::Command(command) => match command.program() {
                Some(name) if programs::known(name).class == Class::Wrapper && !command.names_script() => {
                    out.push(format!(
                        "`{pattern}` grants nothing: `{name}` needs no rule, and what it starts is judged by itself; grant that"
                    ));
                }
                Some(name) if command.grants_nothing() => out.push(chosen_by_star(pattern, name)),
                _ => self.command_warnings(pattern, command.fixed(), &mut out),
            },
            Matcher::Unsupported => {
                out.push(format!("`{pattern}` grants nothing: {} has no such specifier", pattern.tool()));
            }
            _ => {}
        }
        out.extend(self.retired(&rule).map(|why| format!("`{pattern}` grants nothing: {why}")));
        if pattern.canonical_tool() == "Agent" && rule.is_all() {
            out.push(format!("`{pattern}` grants nothing in a job: name the agent, as in `Agent(Explore)`"));
        }
        out.extend(misleading(&rule));
        out
    }

    /// Returns why a pattern for tools of an MCP server matches no server. `servers`: the existing ones, besides our own.
    #[must_use]
    pub fn unknown_server(&'static self, pattern: &ToolPattern, servers: &[&str]) -> Option<String> {
        let rule = Rule::new(pattern, Origin::MainTools, self);
        let tool = pattern.tool();
        let ours = self.is_on_server(tool) || self.tools.iter().any(|ours| rule.is_for(ours));
        if !tool.starts_with("mcp__") || ours || servers.iter().any(|server| rule.may_be_of_server(server)) {
            return None;
        }
        let there: Vec<String> = servers.iter().map(|server| format!("`{server}`")).collect();
        let others = if there.is_empty() { String::new() } else { format!(" and {}", there.join(", ")) };
        let why = format!("agents have no MCP server but our own, `{}`{others}", self.server);
        Some(match self.nearest_tool(tool) {
            Some(near) => format!("`{pattern}` is about nothing: {why}; did you mean `{near}`?"),
            None => format!("`{pattern}` is about nothing: {why}; remove it, or name the server in `mcp_servers`"),
        })
    }

    /// Returns why a rule for our own MCP server matches none of its tools.
    fn retired(&self, rule: &Rule) -> Option<String> {
        let tool = rule.pattern.tool();
        let is_gone = self.is_on_server(tool) && !self.tools.iter().any(|ours| rule.is_for(ours));
        is_gone.then(|| "this version has no such tool; remove it".into())
    }

    fn command_warnings(&self, pattern: &ToolPattern, fixed: &[String], out: &mut Vec<String>) {
        let specifier = pattern.specifier().unwrap_or_default();
        let Some(program) = fixed.first() else {
            // `ls*` begins with a name, and has its own warning.
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
        let entry = programs::named(name);
        let is_code = |word: &String| !scan(&entry.options, std::slice::from_ref(word)).is_empty();
        // `perl -c` runs what a script does at its beginning, and `python3 -u` all of it.
        let flags = &fixed[1..];
        let names_no_script = entry.interpreter
            && flags.iter().all(|word| word.starts_with('-') && !is_code(word))
            && !is_restrained(name, flags);
        if open && runs_anything(name) && (flags.is_empty() || names_no_script) {
            out.push(format!(
            "`{pattern}` can run any program: `{name}` runs what its arguments say; name what it may run, as in `Bash({program} FILE)`"
        ));
        }
        if fixed.len() == 1 && open && entry.is_git() {
            out.push(format!(
                "`{pattern}` can run any program (hooks, pagers, `git submodule foreach`); name the subcommands"
            ));
        }
        if fixed.len() == 2 && open && entry.is_git() && fixed[1] == "config" {
            out.push(format!(
                "`{pattern}` can make your own git run any program (`core.fsmonitor`, `alias.*`); name the setting, as in \
                 `Bash(git config user.name *)`"
            ));
        }
        if fixed.len() == 1 && open && self.is_command(name) {
            out.push(format!(
                "`{pattern}` grants every command of the bot and all of your own; name them, as in `{}`",
                self.example
            ));
        }
        // Code that the rule spells is granted as it stands.
        let code = fixed.last().filter(|word| entry.interpreter && specifier.ends_with('*') && is_code(word));
        if let Some(code) = code.filter(|_| runs_anything(name)) {
            out.push(format!(
                "`{pattern}` can run any program: the `*` stands for the code behind `{code}`; put the code in a file, as in \
                 `Bash({program} FILE)`"
            ));
        }
    }

    /// Returns warnings about a pattern of calls that need an answer. `granted`: the patterns of the same job; `None` if it has no
    /// allowlist.
    #[must_use]
    pub fn ask_warnings(&'static self, pattern: &ToolPattern, granted: Option<&[ToolPattern]>) -> Vec<String> {
        let mut out = self.warnings(pattern);
        let rule = Rule::new(pattern, Origin::MainTools, self);
        let is_elsewhere = pattern.specifier().is_some_and(|path| path.starts_with("//") || path.starts_with('~'));
        let starts_program = |grant: &&ToolPattern| match Rule::new(grant, Origin::MainTools, self).matcher {
            Matcher::Command(command) => !command.program().is_some_and(|program| self.is_plain_command(program)),
            _ => ["*", "Bash"].contains(&grant.canonical_tool()),
        };
        let starter = granted.map(|granted| granted.iter().find(starts_program));
        if matches!(rule.matcher, Matcher::Path(_)) && !is_elsewhere && starter.is_none_or(|starter| starter.is_some())
        {
            let starter = starter.flatten().map_or("`Bash`".to_owned(), |starter| format!("`{starter}`"));
            out.push(format!(
                "`{pattern}` is asked about for the file tools: programs that {starter} starts open the same files of `work/` \
                 unasked; keep them in a folder outside of `work/`"
            ));
        }
        if let Matcher::Command(asked) = &rule.matcher {
            out.extend(self.started_unasked(pattern, asked.program(), granted));
        }
        out
    }

    /// Returns the warning about a question that does not hold where a granted program starts others: the kernel knows a program by its
    /// file, and no rule of the kernel takes a file out of `work/`.
    fn started_unasked(
        &'static self,
        pattern: &ToolPattern,
        program: Option<&str>,
        granted: Option<&[ToolPattern]>,
    ) -> Option<String> {
        let is_in_work = program.is_some_and(|program| program.contains('/') && !program.starts_with(['/', '~']));
        let granted = granted?;
        // A repository's configuration names commands that git starts.
        let writes = granted.iter().any(|grant| ["*", "Edit"].contains(&grant.canonical_tool()));
        let starts = |grant: &&ToolPattern| match Rule::new(grant, Origin::MainTools, self).matcher {
            Matcher::Command(command) => command.program().is_some_and(|own| {
                let rights = command.rights(own);
                let is_wide = rights.executes == Executes::Anything;
                let is_git_online = writes && rights.network && programs::by_base_name(own).is_git();
                let is_itself = program.is_some_and(|program| base_name(own) == base_name(program));
                is_wide && (program.is_none() || is_in_work) || is_itself && (is_wide || is_git_online)
            }),
            _ => false,
        };
        let starter = granted.iter().find(starts)?;
        Some(match program {
            None => format!(
                "`{pattern}` names no program: what `{starter}` starts by a path is not asked about; name the program"
            ),
            Some(_) if is_in_work => format!(
                "`{pattern}` is asked about in the job's own lines: what `{starter}` starts runs the same file of `work/` unasked; keep \
                 it outside of `work/`"
            ),
            Some(program) => format!(
                "`{pattern}` is asked about where `{program}` is called by its name: what `{starter}` starts may call it by its path, \
                 unasked; grant less than `{starter}`"
            ),
        })
    }

    /// Returns warnings about a pattern in the denylist `list`.
    #[must_use]
    pub fn denylist_warnings(&'static self, pattern: &ToolPattern, list: &[ToolPattern]) -> Vec<String> {
        let rule = Rule::new(pattern, Origin::MainTools, self);
        let mut out = Vec::new();
        let no_bash = list.iter().any(|other| other.canonical_tool() == "Bash" && other.is_whole_tool());
        if matches!(rule.matcher, Matcher::Path(_)) && !no_bash {
            out.push(format!(
            "`{pattern}` holds for the file tools: the shell and what it runs reach the same files; deny `Bash` too, or list what is allowed in `allowed_tools` instead"
        ));
        }
        if let Matcher::Command(command) = &rule.matcher
            && !command.program().is_some_and(|program| self.is_plain_command(program))
        {
            out.push(format!(
            "`{pattern}` is a guard rail, not a boundary: a copy of the program, or another one, can do the same; list what is allowed in `allowed_tools` instead"
        ));
        }
        out.extend(self.retired(&rule).map(|why| format!("`{pattern}` denies nothing: {why}")));
        if pattern.canonical_tool() == "Read" && pattern.is_whole_tool() {
            out.push(format!(
            "`{pattern}` also takes Glob, Grep, Edit and Write away: what may not be read may not be searched or written; list what is allowed in `allowed_tools` if you mean less"
        ));
        }
        if matches!(rule.matcher, Matcher::Unsupported) {
            out.push(format!("`{pattern}` denies every {} call: it has no such specifier", pattern.tool()));
        }
        out
    }
}

/// Returns the warning about a rule whose first star would choose what its program does.
fn chosen_by_star(pattern: &ToolPattern, program: &str) -> String {
    let specifier = pattern.specifier().unwrap_or_default();
    let (before, behind) = specifier.split_once('*').unwrap_or((specifier, ""));
    let (before, behind) = (before.trim_end(), behind.trim());
    let entry = programs::by_base_name(program);
    let instead = if entry.is_git() {
        format!("write `Bash({before} {behind})`, or `Bash({before} -C * {behind})` for other folders")
    } else if behind.starts_with('-') && !entry.subcommands {
        format!("write `Bash({before} {behind} *)`")
    } else {
        format!("name that, as in `Bash({before} NAME {behind})`")
    };
    format!("`{pattern}` grants nothing: the `*` would choose what `{program}` does; {instead}")
}

fn is_whole_work(pattern: &ToolPattern) -> bool {
    matches!(pattern.specifier(), Some("**" | "**/*" | "./**" | "/**" | "//**" | "~/**" | "."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    fn of(text: &str) -> String {
        BOT.warnings(&ToolPattern::parse(text).unwrap()).join(" | ")
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
            "Bash(sudo:*)",
            "Bash(perl -c *)",
            "Bash(python3 -u *)",
            "Bash(git *)",
        ] {
            assert!(of(text).contains("can run any program"), "{text}: {}", of(text));
        }
        for text in ["Bash(env *)", "Bash(/usr/bin/bash *)", "Bash(timeout 5 ls *)", "Bash(xargs *)", "Bash(sh -c *)"] {
            assert!(of(text).contains("what it starts is judged by itself"), "{text}: {}", of(text));
        }
        assert!(!of("Bash(bash notes/backup.sh)").contains("by itself"));
        assert!(of("Bash(git config *)").contains("name the setting"));
        for text in ["Bash(node -e 'console.log(2*3)')", "Bash(strace -c ls *)", "Bash(git config user.name *)"] {
            assert_eq!(of(text), "", "{text}");
        }
        for text in ["Bash(python3 -c *)", "Bash(node -e *)", "Bash(perl -ne *)"] {
            assert!(of(text).contains("can run any program: the `*` stands for the code"), "{text}: {}", of(text));
        }
        assert!(of("WebSearch(rust)").contains("grants nothing"));
        assert!(of("Agent").contains("name the agent"));
        for text in [
            "Read",
            "Bash(find *)",
            "Bash(tar *)",
            "Bash(bot gmail *)",
            "Bash(git log *)",
            "Bash(python3 report.py)",
            "Edit(notes/**)",
            "mcp__chat__ping_user",
            "mcp__chat",
            "mcp__*",
            "WebFetch(domain:docs.rs)",
            "Agent(Explore)",
            "Agent(Explore, Plan)",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    #[test]
    fn a_star_that_would_choose_what_a_program_does_is_told() {
        for (rule, instead) in [
            ("git * status", "write `Bash(git status)`, or `Bash(git -C * status)` for other folders"),
            ("git * log *", "write `Bash(git log *)`, or `Bash(git -C * log *)` for other folders"),
            ("npm * --ignore-scripts", "name that, as in `Bash(npm NAME --ignore-scripts)`"),
            ("docker * ps", "name that, as in `Bash(docker NAME ps)`"),
            ("node * --check", "write `Bash(node --check *)`"),
            ("python3 -u * now", "name that, as in `Bash(python3 -u NAME now)`"),
        ] {
            let said = of(&format!("Bash({rule})"));
            assert!(said.contains("grants nothing") && said.ends_with(instead), "{rule}: {said}");
        }
        for rule in ["git -C * status", "docker exec * ls", "make * --dry-run", "npm --prefix * test", "ssh * uptime"] {
            assert_eq!(of(&format!("Bash({rule})")), "", "{rule}");
        }
    }

    #[test]
    fn rules_about_tools_that_are_not_there_are_told() {
        let unknown = |text: &str, servers: &[&str]| {
            BOT.unknown_server(&ToolPattern::parse(text).unwrap(), servers).unwrap_or_default()
        };
        assert_eq!(
            unknown("mcp__caht__ping_user", &["calendar"]),
            "`mcp__caht__ping_user` is about nothing: agents have no MCP server but our own, `chat` and `calendar`; did you mean \
             `mcp__chat__ping_user`?"
        );
        assert!(unknown("mcp__github", &[]).contains("no MCP server but our own, `chat`; remove it"));
        for (text, servers) in [
            ("mcp__github", &["github"][..]),
            ("mcp__github__push", &["github"]),
            ("mcp__git*", &["github"]),
            ("mcp__chat__ping_user", &[]),
            ("mcp__*", &[]),
            ("*", &[]),
            ("Read", &[]),
        ] {
            assert_eq!(unknown(text, servers), "", "{text}");
        }
        assert_ne!(unknown("mcp__github__push", &["git", "github2"]), "");
        assert!(of("mcp__chat__save_context").contains("this version has no such tool"));
        let pattern = ToolPattern::parse("mcp__chat__save_context").unwrap();
        assert!(BOT.denylist_warnings(&pattern, &[]).join(" | ").contains("denies nothing"));
        let error = ToolPattern::parse_for_job("mcp__chat__ping_usr", &BOT).unwrap_err();
        assert_eq!(error.to_string(), "unknown tool `mcp__chat__ping_usr`; did you mean `mcp__chat__ping_user`?");
        for text in ["mcp__chat__ping_*", "mcp__chat", "mcp__chat__enter_fork", "mcp__other__x"] {
            assert!(ToolPattern::parse_for_job(text, &BOT).is_ok(), "{text}");
        }
        for (text, expect) in [
            ("mcp__talk__ping_user", "mcp__chat__ping_user"),
            ("mcp__talk__*", "mcp__chat__*"),
            ("mcp__talk", "mcp__chat"),
            ("mcp__talks__x", "mcp__talks__x"),
        ] {
            assert_eq!(ToolPattern::parse_for_job(text, &BOT).unwrap().to_string(), expect, "{text}");
        }
        assert!(ToolPattern::parse_for_job("mcp__talk__ping_usr", &BOT).is_err());
        // Such a pattern means the tools under one name, and would miss them under the other.
        for text in ["mcp__t*", "mcp__talk*", "mcp__talk_*", "mcp__ta*__ping_user"] {
            let error = ToolPattern::parse_for_job(text, &BOT).unwrap_err().to_string();
            assert!(error.contains("write `mcp__talk__*` for the tools of `talk`"), "{error}");
        }
        for text in ["mcp__talks*", "mcp__c*", "mcp__chat*"] {
            assert!(ToolPattern::parse_for_job(text, &BOT).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_denial_of_reading_is_wider_than_it_looks() {
        let of = |text: &str| BOT.denylist_warnings(&ToolPattern::parse(text).unwrap(), &[]).join(" | ");
        assert!(of("Read").contains("also takes Glob, Grep, Edit and Write away"));
        for text in ["Glob", "Edit", "Bash"] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    #[test]
    fn a_denylist_of_other_programs_is_a_guard_rail() {
        let of = |text: &str| {
            let pattern = ToolPattern::parse(text).unwrap();
            BOT.denylist_warnings(&pattern, std::slice::from_ref(&pattern)).join(" | ")
        };
        assert!(of("Bash(git push *)").contains("guard rail"));
        assert_eq!(of("Bash(bot cal *)"), "");
        assert_eq!(of("Bash"), "");
        assert_eq!(of("WebFetch"), "");
    }
}
