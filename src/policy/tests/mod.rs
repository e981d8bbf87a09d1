//! Tables of what rules let through and what they stop. Attacks stay here once they were thought of.

mod denials;
mod grants;
mod hostile;
mod layers;
mod places;
mod properties;
mod spawned;
mod tools;

use serde_json::{Value, json};

use super::*;

fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
    texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
}

fn places() -> Places {
    Places { root: "/home/u/.ollim-bot".into(), work: "/home/u/.ollim-bot/work".into(), user_home: "/home/u".into() }
}

fn policy(allow: Option<&[&str]>, deny: Option<&[&str]>) -> Policy {
    let config = BgForkConfig::new(UpdateMode::OnPing, true, allow.map(patterns), deny.map(patterns)).unwrap();
    Policy::background("routine x", &config, &default_main_tools(), &places())
}

fn allowing(allow: &[&str]) -> Policy {
    policy(Some(allow), None)
}

fn denying(deny: &[&str]) -> Policy {
    policy(None, Some(deny))
}

fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall { tool: tool.into(), input, cwd: "/home/u/.ollim-bot/work".into(), agent_type: None }
}

fn bash(policy: &Policy, line: &str) -> Decision {
    policy.decide(&call("Bash", json!({ "command": line })))
}

const WORK: &str = "/home/u/.ollim-bot/work";

/// Words by blanks; `_` at the place of a blank inside a word is written as `\u{2423}` (␣).
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{2423}', " ")).collect()
}

fn start_in(policy: &Policy, line: &str, cwd: &str, env: &[(&str, &str)]) -> ProgramDecision {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let argv = words(line);
    let start = ProgramStart { argv: &argv, cwd: std::path::Path::new(cwd), env: &env, agent_type: None };
    let decided = policy.decide_program(&start);
    assert!(!decided.decision.reason.is_empty());
    assert_eq!(decided.place == Place::Nowhere, decided.decision.verdict == Verdict::Deny, "{line}");
    decided
}

fn start(policy: &Policy, line: &str) -> ProgramDecision {
    start_in(policy, line, WORK, &[])
}

#[track_caller]
fn check(policy: &Policy, line: &str, expected: Verdict) {
    let decided = start(policy, line);
    assert_eq!(decided.decision.verdict, expected, "{line}\n  {}\n  {:?}", decided.decision.reason, decided.place);
}

#[track_caller]
fn allows(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Allow));
}

#[track_caller]
fn denies(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Deny));
}

/// Outside, by a rule: not only where everything may run.
#[track_caller]
fn grants(policy: &Policy, lines: &[&str]) {
    for line in lines {
        let decided = start(policy, line);
        assert!(matches!(decided.place, Place::Outside(_)), "{line}: {} {:?}", decided.decision.reason, decided.place);
    }
}

/// In the shell's own domain: free, and without any power.
#[track_caller]
fn leaves_here(policy: &Policy, lines: &[&str]) {
    for line in lines {
        let decided = start(policy, line);
        assert_eq!(decided.place, Place::Here, "{line}: {}", decided.decision.reason);
        assert!(decided.decision.read_only);
    }
}
