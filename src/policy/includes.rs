//! What a Bash rule includes, in one sentence: for a person who wrote it.

use super::options::{self, Guarded};
use super::own::base_name;
use super::program::{Executes, Writes};
use super::rule::{Matcher, Origin, Rule};
use super::{ToolPattern, git, own, programs};

/// Says what a Bash rule includes, and what it does not. `None`: a rule for another tool, or for every program.
#[must_use]
pub fn includes(pattern: &ToolPattern) -> Option<String> {
    let Matcher::Command(command) = Rule::new(pattern, Origin::MainTools).matcher else { return None };
    let program = command.program()?;
    let arguments = command.fixed().get(1..).unwrap_or_default();
    let subject = match arguments.first() {
        Some(next) if programs::has_subcommands(own::base_name(program)) => format!("`{program} {next}`"),
        _ => format!("`{program}`"),
    };
    if program == own::NAME {
        let name = own::command(command.fixed());
        return Some(match name {
            Some(name) => {
                format!("{subject}: a command of your own, which may write `tools/{name}/` and use the network")
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
    let folder = if command.means_work() { ", in `work/` itself only" } else { "" };
    let spelled: Vec<String> = command.spelled(program).into_iter().map(|option| option.id).collect();
    let open: Vec<String> = kept_back(program, arguments)
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

/// The options that a `*` does not stand for, each with how it is written.
fn kept_back(program: &str, arguments: &[String]) -> Vec<(String, String)> {
    let shown = |list: &[Guarded], one_dash: bool| {
        list.iter().map(|option| (option.id().to_owned(), option.shown(one_dash))).collect::<Vec<_>>()
    };
    match base_name(program) {
        "git" => shown(git::options(git::subcommand(arguments)).guarded, false),
        "curl" => ["output", "location", "config", "upload-file", "proxy"]
            .iter()
            .map(|name| ((*name).to_owned(), format!("--{name}")))
            .collect(),
        "wget" => ["output-document", "input-file", "execute", "recursive", "max-redirect"]
            .iter()
            .map(|name| ((*name).to_owned(), format!("--{name}")))
            .collect(),
        name => {
            let options = options::of(name);
            shown(options.guarded, options.one_dash)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let said = includes(&ToolPattern::parse(text).unwrap()).unwrap_or_default();
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
        check("Bash(ollim-bot gmail *)", &["`ollim-bot gmail`: a command of your own", "tools/gmail/"]);
        check("Bash(ollim-bot next)", &["a command of the bot"]);
        for text in ["Read", "Bash", "Bash(* x)", "Edit(notes/**)"] {
            check(text, &[]);
        }
    }
}
