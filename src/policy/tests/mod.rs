//! Tables of what rules let through and what they stop. Attacks stay here once they were thought of.

mod allowlist;
mod denylist;
mod held;
mod hostile;
mod layers;
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

#[track_caller]
fn check(policy: &Policy, line: &str, expected: Verdict) {
    let decision = bash(policy, line);
    assert_eq!(decision.verdict, expected, "{line}\n  {}\n  {:?}", decision.reason, decision.commands);
    assert!(!decision.reason.is_empty());
}

#[track_caller]
fn allows(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Allow));
}

#[track_caller]
fn denies(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Deny));
}
