//! Properties over random shell lines, random rules and random calls.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::policy::shell::{Role, Script, read};

const FRAGMENTS: &[&str] = &[
    "ls",
    "cat",
    "git log",
    "git push",
    "ollim-bot",
    "ollim-bot gmail x",
    "ollim-bot cal",
    "--json",
    "touch evil",
    "rm -rf /",
    "a",
    "b c",
    "-x",
    "f",
    "$x",
    "\"$x\"",
    "'q q'",
    "\"d $y\"",
    "*",
    "?",
    "[a]",
    "~/x",
    "{a,b}",
    "$(",
    ")",
    "`",
    "(",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    ">",
    ">>",
    "<",
    "<<E\n",
    "\nE\n",
    "<<<",
    "2>&1",
    ">/dev/null",
    "$((1+1))",
    "${x:-",
    "${x}",
    "if",
    "then",
    "else",
    "fi",
    "for x in",
    "do",
    "done",
    "while",
    "case x in",
    "esac",
    ";;",
    "[[",
    "]]",
    "!",
    "time",
    "function f",
    "f()",
    "timeout 5",
    "env A=1",
    "xargs",
    "bash -c",
    "sh -c",
    "eval",
    "find . -exec",
    "\\;",
    "+",
    "sudo",
    "PATH=.",
    "x=1",
    "x=$(ls)",
    "#",
    "python3 -c",
    "coproc",
    "trap",
    "exec",
    "true",
    "exit",
    "read -r x",
    "set -e",
    "awk",
    "sed -n p",
    "=",
    "$'\\x41'",
    "é",
    "\t",
];

const PATTERNS: &[&str] = &[
    "Bash",
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(git *)",
    "Bash(git log *)",
    "Bash(ollim-bot *)",
    "Bash(ollim-bot gmail *)",
    "Bash(find *)",
    "Bash(* x)",
    "Bash(ls*)",
    "Bash(bash *)",
    "Bash(touch evil)",
    "Bash(xargs *)",
    "Read",
    "Edit",
    "Edit(notes/**)",
    "Read(in/**)",
    "Glob",
    "WebFetch(domain:docs.rs)",
    "mcp__discord",
    "mcp__discord__ping_user",
    "Agent(Explore)",
    "Skill(a *)",
    "*",
];

fn lines() -> impl Strategy<Value = String> {
    prop_oneof![
        // Fragments, mostly with blanks between them.
        vec((select(FRAGMENTS), select(&[" ", " ", " ", ""][..])), 0..16)
            .prop_map(|parts| parts.iter().map(|(text, gap)| format!("{text}{gap}")).collect()),
        // Lines that are likely to be allowed as a whole.
        vec(
            (
                select(
                    &[
                        "ls a",
                        "cat f",
                        "git log -1",
                        "ollim-bot gmail x",
                        "true",
                        "ls $x",
                        "timeout 5 ls",
                        "x=$(ls)",
                        "bash -c 'ls; cat f'"
                    ][..]
                ),
                select(&["; ", " && ", " | ", "\n", " & "][..])
            ),
            1..8
        )
        .prop_map(|parts| parts.iter().map(|(text, gap)| format!("{text}{gap}")).collect::<String>() + "ls"),
        any::<String>(),
    ]
}

fn rules(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(PATTERNS), 0..most)
}

fn calls() -> impl Strategy<Value = ToolCall> {
    prop_oneof![
        3 => lines().prop_map(|line| call("Bash", json!({ "command": line }))),
        1 => (select(&["Read", "Edit", "Write", "Grep", "Glob", "WebFetch", "Skill", "Task", "mcp__discord__ping_user", "CronCreate"][..]),
              select(&["notes/a", "in/b", "../x", "/etc/x", "~/y", "https://docs.rs/", "a b", "Explore", ""][..]))
            .prop_map(|(tool, text)| call(tool, json!({
                "file_path": text, "path": text, "pattern": text, "url": text, "skill": text, "subagent_type": text,
            }))),
    ]
}

fn with(allow: &[&str], deny: &[&str]) -> Policy {
    // Both at once, as an agent's denials above a job's grants.
    let agent = AgentRules {
        name: "a".into(),
        tools: None,
        disallowed: patterns(deny),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    allowing(allow).as_agent(&agent)
}

proptest! {

    #[test]
    fn adding_a_denial_never_allows_more(call in calls(), allow in rules(5), deny in rules(4), more in select(PATTERNS)) {
        let before = with(&allow, &deny).decide(&call);
        let mut longer = deny.clone();
        longer.push(more);
        let after = with(&allow, &longer).decide(&call);
        prop_assert!(!(before.verdict == Verdict::Deny && after.verdict == Verdict::Allow), "{call:?} {allow:?} {deny:?} {more}");
        prop_assert!(!before.reason.is_empty() && !after.reason.is_empty());
    }

    #[test]
    fn adding_a_grant_never_denies(call in calls(), allow in rules(5), deny in rules(4), more in select(PATTERNS)) {
        let before = with(&allow, &deny).decide(&call);
        let mut longer = allow.clone();
        longer.push(more);
        let after = with(&longer, &deny).decide(&call);
        prop_assert!(!(before.verdict == Verdict::Allow && after.verdict == Verdict::Deny), "{call:?} {allow:?} {deny:?} {more}: {}", after.reason);
    }

    #[test]
    fn every_command_of_an_allowed_line_is_allowed_on_its_own(line in lines(), allow in rules(6)) {
        let policy = allowing(&allow);
        if bash(&policy, &line).verdict == Verdict::Allow {
            let script = read(&line).unwrap();
            for command in script.commands.into_iter().filter(|command| matches!(command.role, Role::Runs | Role::Wraps)) {
                let shown = command.shown();
                let alone = Script::of(command.words).unwrap();
                let lists = policy.all_lists();
                let cwd = std::path::Path::new("/home/u/.ollim-bot/work");
                let user_home = std::path::Path::new("/home/u");
                let scene = crate::policy::bash::Scene { cwd, user_home, known: policy.known_places() };
                for list in lists {
                    prop_assert!(crate::policy::bash::granted(list, &alone, &scene).is_ok(), "{line:?}: {shown}");
                }
            }
        }
    }

    #[test]
    fn a_child_allows_nothing_that_its_parent_denies(
        call in calls(), parent in rules(5), parent_denies in any::<bool>(), child in rules(4), child_denies in any::<bool>(),
    ) {
        let config = |texts: &[&str], denies: bool| {
            let list = patterns(texts);
            let (allow, deny) = if denies { (None, Some(list)) } else { (Some(list), None) };
            BgForkConfig::new(UpdateMode::OnPing, true, allow, deny).unwrap()
        };
        let main = default_main_tools();
        let parent = config(&parent, parent_denies);
        let Ok(child) = attenuate("routine x", &parent, &config(&child, child_denies), &main) else { return Ok(()) };
        let of = |config: &BgForkConfig| Policy::background("routine x", config, &main, &places()).decide(&call);
        let (above, below) = (of(&parent), of(&child));
        prop_assert!(
            !(above.verdict == Verdict::Deny && below.verdict == Verdict::Allow),
            "{call:?}\n{parent:?}\n{child:?}\n{}", above.reason
        );
    }

    #[test]
    fn printing_and_parsing_a_pattern_is_stable(text in "[A-Za-z_*]{1,12}(\\([ -~]{0,20}\\))?") {
        if let Ok(pattern) = ToolPattern::parse(&text) {
            let printed = pattern.to_string();
            prop_assert_eq!(ToolPattern::parse(&printed).map(|again| again.to_string()), Ok(printed));
        }
    }
}
