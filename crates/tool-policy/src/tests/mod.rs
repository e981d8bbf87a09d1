//! Tables of what rules grant and deny. Attacks that were found stay here.

mod addresses;
mod asking;
mod choice;
mod code;
mod connections;
mod denials;
mod expressions;
mod further;
mod grants;
mod harmless;
mod hostile;
mod hosts;
mod layers;
mod locations;
mod operands;
mod packages;
mod passed_on;
mod places;
mod positions;
mod properties;
mod refusals;
mod restraints;
mod spawned;
mod spellings;
mod tools;
mod values;

use serde_json::{Value, json};

use super::*;

/// The application of the tests: a bot with a command, a few extensions of it, and a server.
pub(crate) static BOT: Application = Application {
    command: "bot",
    subcommands: &["follow-up", "help", "next", "reminder", "routine", "spawn"],
    aliases: &[("follow_up", "follow-up")],
    flags: &["--json"],
    valued_flags: &["--home", "--color"],
    refused_flag: "--home",
    extension_folder: "tools",
    always_allowed: "bot help",
    spawn_command: "bot spawn *",
    example: "Bash(bot gmail *)",
    server: "chat",
    server_alias: "talk",
    tools: &[
        "mcp__chat__embed",
        "mcp__chat__follow_up",
        "mcp__chat__ping_user",
        "mcp__chat__report_updates",
        "mcp__chat__sessions_spawn",
        "mcp__chat__spawn_agent",
    ],
    retired_tools: &["mcp__chat__enter_fork", "mcp__chat__save_context"],
    same_actions: &[(&["mcp__chat__spawn_agent", "mcp__chat__sessions_spawn"], "bot spawn *")],
    spawning_tools: &["mcp__chat__spawn_agent", "mcp__chat__sessions_spawn"],
    reserved_variables: &["BOT_"],
    temporary: "state/runs/*/tmp",
    main_session: "`main_tools` do not grant it",
    ..Application::new(|path| std::fs::read_link(path))
};

fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
    texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
}

fn roots() -> PathRoots {
    PathRoots { root: "/home/u/.bot".into(), work: "/home/u/.bot/work".into(), user_home: "/home/u".into() }
}

fn policy(allow: Option<&[&str]>, deny: Option<&[&str]>) -> Policy {
    let (allow, deny) = (allow.map(patterns), deny.map(patterns).unwrap_or_default());
    background(allow.as_deref(), &deny, &roots())
}

fn background(allowed: Option<&[ToolPattern]>, disallowed: &[ToolPattern], roots: &PathRoots) -> Policy {
    let rules = JobRules { owner: "routine x", allowed, disallowed, ask: &[], main_tools: &main_tools() };
    Policy::background(&rules, roots, &BOT)
}

fn main_session(tools: &[ToolPattern]) -> Policy {
    Policy::main_session(tools, &[], &roots(), &BOT)
}

fn main_tools() -> Vec<ToolPattern> {
    let tools = ["Bash", "Read", "Edit", "Glob", "Grep", "WebFetch", "WebSearch", "Skill", "Agent"];
    let more = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "mcp__chat"];
    patterns(&[&tools[..], &more].concat())
}

fn allowing(allow: &[&str]) -> Policy {
    policy(Some(allow), None)
}

fn denying(deny: &[&str]) -> Policy {
    policy(None, Some(deny))
}

fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall { tool: tool.into(), input, cwd: "/home/u/.bot/work".into(), agent_type: None }
}

fn bash(policy: &Policy, line: &str) -> Decision {
    policy.decide(&call("Bash", json!({ "command": line })))
}

const WORK: &str = "/home/u/.bot/work";

/// Splits a line at blanks. `\u{2423}` (␣) stands for a blank inside a word.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{2423}', " ")).collect()
}

fn start_in(policy: &Policy, line: &str, cwd: &str, env: &[(&str, &str)]) -> ProgramDecision {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let argv = words(line);
    let start = ProgramStart { argv: &argv, cwd: std::path::Path::new(cwd), env: &env, agent_type: None };
    let decided = policy.decide_program(&start);
    assert!(!decided.decision.reason.is_empty());
    assert_eq!(decided.location == Location::Nowhere, decided.decision.verdict == Verdict::Deny, "{line}");
    decided
}

fn start(policy: &Policy, line: &str) -> ProgramDecision {
    start_in(policy, line, WORK, &[])
}

/// Without a command and tools, no program counts as the application's own.
#[test]
fn an_application_may_have_no_command() {
    static NONE: Application = Application::new(|path| std::fs::read_link(path));
    let (allowed, roots) = (patterns(&["Bash(bot *)", "Bash(rm *)"]), roots());
    let rules = JobRules { owner: "routine x", allowed: Some(&allowed), disallowed: &[], ask: &[], main_tools: &[] };
    let policy = Policy::background(&rules, &roots, &NONE);
    allows(&policy, &["bot x", "rm x"]);
    denies(&policy, &["bot-x", "bo", "rm .git/config", "rm /home/u/.bot/config.yaml"]);
    assert_eq!(policy.entries().iter().filter(|entry| entry.effect == Verdict::Allow).count(), 2);
    assert_eq!(policy.shell(None).unwrap().denied, Vec::<String>::new());
    assert!(NONE.covers(&allowed[0], &patterns(&["Bash(bot --home x)"])[0]));
}

#[track_caller]
fn check(policy: &Policy, line: &str, expected: Verdict) {
    let decided = start(policy, line);
    assert_eq!(decided.decision.verdict, expected, "{line}\n  {}\n  {:?}", decided.decision.reason, decided.location);
}

#[track_caller]
fn allows(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Allow));
}

#[track_caller]
fn denies(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Deny));
}

/// Asserts that the programs run outside, by a rule and not only since everything may run.
#[track_caller]
fn grants(policy: &Policy, lines: &[&str]) {
    for line in lines {
        let decided = start(policy, line);
        assert!(
            matches!(decided.location, Location::Outside(_)),
            "{line}: {} {:?}",
            decided.decision.reason,
            decided.location
        );
    }
}

/// Asserts that the programs run in the shell's own domain, without any power.
#[track_caller]
fn leaves_here(policy: &Policy, lines: &[&str]) {
    for line in lines {
        let decided = start(policy, line);
        assert_eq!(decided.location, Location::Here, "{line}: {}", decided.decision.reason);
        assert!(decided.decision.read_only);
    }
}

/// Checks rules: what each grants, and what it does not grant outside of the shell.
fn families(families: &[(&str, &[&str], &[&str])]) {
    for (rule, granted, refused) in families {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, granted);
        for call in *refused {
            let decided = start(&policy, call);
            assert!(!matches!(decided.location, Location::Outside(_)), "{rule}: {call}: {decided:?}");
        }
    }
}

fn writes(policy: &Policy, call: &str) -> Writes {
    match start(policy, call).location {
        Location::Outside(rights) => rights.writes,
        location => panic!("{call}: {location:?}"),
    }
}
