//! Describes a Bash rule in one sentence, for the person who wrote it.

use crate::programs::{self, GuardedOption, Syntax, git};
use crate::rule::{Matcher, Origin, Rule};
use crate::start::{Executes, Writes};
use crate::{Application, ToolPattern};

impl Application {
    /// Describes what a Bash rule includes and excludes. `None` for a rule for another tool, or for every program.
    #[must_use]
    pub fn includes(&'static self, pattern: &ToolPattern) -> Option<String> {
        let Matcher::Command(command) = Rule::new(pattern, Origin::MainTools, self).matcher else { return None };
        let program = command.program()?;
        let arguments = command.fixed().get(1..).unwrap_or_default();
        let subject = match arguments.first() {
            Some(next) if programs::by_base_name(program).subcommands || self.is_command(program) => {
                format!("`{program} {next}`")
            }
            _ => format!("`{program}`"),
        };
        if self.is_plain_command(program) {
            let name = self.extension(command.fixed());
            return Some(match name {
                Some(name) => {
                    let folder = self.extension_folder;
                    format!("{subject}: a command of your own, which may write `{folder}/{name}/` and use the network")
                }
                None => format!("{subject}: a command of the bot, which answers to the job's own rules"),
            });
        }
        let rights = command.rights(program);
        let writes = match rights.writes {
            Writes::Nothing => "writes nothing",
            _ => "writes `work/` and what Edit rules grant",
        };
        let network = if rights.network { "may use the network" } else { "no network" };
        let executes = match rights.executes {
            Executes::Anything => ", can run any program",
            Executes::Itself(_) => "",
        };
        let folder = if command.is_bound_to_work() { ", in `work/` itself only" } else { "" };
        let spelled: Vec<String> = command.spelled(program).into_iter().map(|option| option.id).collect();
        let open: Vec<String> = excluded_options(program, arguments)
            .into_iter()
            .filter(|(id, _)| !spelled.iter().any(|other| other == id))
            .map(|(_, shown)| format!("`{shown}`"))
            .collect();
        let open = match open.as_slice() {
            _ if rights.executes == Executes::Anything || command.granting.is_exact() => String::new(),
            [] => String::new(),
            [one] => format!("; {one} needs to be spelled"),
            several => format!("; {} need to be spelled", several.join(", ")),
        };
        Some(format!("{subject}: reads `work/` and what Read rules grant, {network}, {writes}{executes}{folder}{open}"))
    }

    /// Returns whether a pattern may grant writing files: by a tool of the client's, by a server of the person's, or by a Bash command.
    #[must_use]
    pub fn may_write_files(&'static self, pattern: &ToolPattern) -> bool {
        let tool = pattern.canonical_tool();
        let server = tool.strip_prefix("mcp__").map(|rest| rest.split("__").next().unwrap_or(rest));
        matches!(tool, "Edit" | "NotebookEdit")
            || server.is_some_and(|server| server != self.server && server != self.server_alias)
            || self.may_change_files(pattern)
    }

    /// Returns whether a pattern grants a Bash command that may change files: any program that is not known as read-only,
    /// except the application's own command, which changes nothing in `work/` by itself.
    #[must_use]
    pub fn may_change_files(&'static self, pattern: &ToolPattern) -> bool {
        let rule = Rule::new(pattern, Origin::MainTools, self);
        if rule.is_for_everything() {
            return true;
        }
        match &rule.matcher {
            Matcher::All => pattern.canonical_tool() == "Bash",
            Matcher::Command(command) => match command.program() {
                Some(program) if self.is_plain_command(program) => false,
                Some(program) => command.rights(program).writes != Writes::Nothing,
                None => true,
            },
            _ => false,
        }
    }
}

/// Returns the options for which a `*` does not stand, each with its spelling.
fn excluded_options(program: &str, arguments: &[String]) -> Vec<(String, String)> {
    let shown = |list: &[GuardedOption], one_dash: bool| {
        list.iter().map(|option| (option.name.to_owned(), option.shown(one_dash))).collect::<Vec<_>>()
    };
    let program = programs::by_base_name(program);
    match program.syntax {
        Syntax::Git => shown(git::options(git::subcommand(arguments)).guarded, false),
        Syntax::Fetch(options) => {
            options.mentioned.split_whitespace().map(|name| (name.to_owned(), format!("--{name}"))).collect()
        }
        Syntax::Options => shown(program.options.guarded, program.options.one_dash()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let said = BOT.includes(&ToolPattern::parse(text).unwrap()).unwrap_or_default();
        assert_eq!(said.is_empty(), expected.is_empty(), "{text}: {said}");
        for part in expected {
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn a_rule_says_what_it_includes() {
        check(
            "Bash(git log *)",
            &["`git log`: reads", "no network", "writes nothing", "`--output`", "need to be spelled"],
        );
        check("Bash(git push *)", &["may use the network", "writes `work/`"]);
        check("Bash(sort *)", &["writes nothing", "`--output`"]);
        check("Bash(sed -i *)", &["writes `work/`"]);
        check("Bash(find *)", &["`-delete`", "`-fprint`"]);
        check("Bash(curl https://a.b/*)", &["may use the network", "`--config`"]);
        check("Bash(make *)", &["can run any program"]);
        check("Bash(git status)", &["in `work/` itself only"]);
        check("Bash(bot gmail *)", &["`bot gmail`: a command of your own", "tools/gmail/"]);
        check("Bash(bot next)", &["a command of the bot"]);
        for text in ["Read", "Bash", "Bash(* x)", "Edit(notes/**)"] {
            check(text, &[]);
        }
    }

    #[test]
    fn grants_for_reading_are_told_from_others() {
        let check = |text: &str, expected: bool| {
            assert_eq!(BOT.may_change_files(&ToolPattern::parse(text).unwrap()), expected, "{text}");
        };
        for text in [
            "Bash(ls *)",
            "Bash(/bin/ls *)",
            "Bash(cat notes/*)",
            "Bash(git log *)",
            "Bash(git status)",
            "Bash(sed -n *)",
            "Bash(find *)",
            "Bash(bot gmail *)",
            "Bash(bot help)",
            "Read",
            "Edit(notes/**)",
            "mcp__chat",
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

    #[test]
    fn what_writes_files_is_told_from_what_reads() {
        let check = |text: &str, expected: bool| {
            assert_eq!(BOT.may_write_files(&ToolPattern::parse(text).unwrap()), expected, "{text}");
        };
        for text in ["Read", "Read(notes/**)", "Grep", "WebFetch", "Bash(ls *)", "mcp__chat", "mcp__chat__send"] {
            check(text, false);
        }
        for text in [
            "*",
            "Edit",
            "Edit(notes/**)",
            "Write",
            "Write(notes/**)",
            "MultiEdit",
            "NotebookEdit(notes/**)",
            "Bash(cp notes/*)",
            "mcp__files",
            "mcp__files__write_file",
        ] {
            check(text, true);
        }
    }
}
