//! What a run would be given.

use serde_json::json;

use super::{View, policy};
use crate::app::{DryRun, JobPolicy};
use crate::channel::terminal::plain_lines;
use crate::cli::output::{FAINT, Output, STRONG, paint};
use crate::run::gate::GateVerdict;

/// The prompts, the policy and the client's command line.
pub(super) fn dry_run(dry_run: &DryRun, view: &View, output: &mut Output) {
    let DryRun { delivered, runs, gate, system_prompt, prompt, policy, command } = dry_run;
    if let Some(message) = delivered {
        if view.json {
            output.json(&json!({ "id": policy.id, "kind": policy.kind, "delivered": message }));
            return;
        }
        output.line(paint(STRONG, "Message, delivered as written without a model"));
        output.line(plain_lines(message));
        output.note(paint(FAINT, "nothing was sent"));
        return;
    }
    if let Some((line, refused)) = runs {
        of_command(line, refused.as_deref(), policy, view, output);
        return;
    }
    if view.json {
        output.json(&json!({
            "id": policy.id,
            "kind": policy.kind,
            "gate": gate.as_ref().map(|gate| {
                let (verdict, said) = words(gate);
                json!({ "verdict": verdict, "said": said })
            }),
            "system_prompt": system_prompt,
            "prompt": prompt,
            "policy": policy.entries,
            "mcp_tools": policy.mcp_tools,
            "command": command,
        }));
        return;
    }
    if let Some(gate) = gate {
        let (verdict, said) = words(gate);
        output.line(paint(STRONG, "Gate"));
        output.line(match verdict {
            "wake" => "exit 0: the agent would be woken".to_owned(),
            "skip" => format!("exit 1: this time would be skipped: {}", plain_lines(said)),
            _ => format!("the run would fail: {}", plain_lines(said)),
        });
        output.line("");
    }
    output.line(paint(STRONG, "System prompt"));
    output.line(plain_lines(system_prompt));
    output.line("");
    output.line(paint(STRONG, "Prompt"));
    output.line(plain_lines(prompt));
    output.line("");
    output.line(paint(STRONG, "Policy"));
    policy::table(policy, output);
    output.line("");
    output.line(paint(STRONG, "Client"));
    output.line(plain_lines(&command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
    output.note(paint(FAINT, if gate.is_some() { "nothing but the gate was run" } else { "nothing was run" }));
}

/// A command, and what it may start.
fn of_command(line: &str, refused: Option<&str>, policy: &JobPolicy, view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!({
            "id": policy.id, "kind": policy.kind, "runs": line, "refused": refused, "policy": policy.entries,
        }));
        return;
    }
    output.line(paint(STRONG, "Command, run without a model"));
    output.line(plain_lines(line));
    if let Some(why) = refused {
        output.line(format!("the run would fail: {}", plain_lines(why)));
    }
    output.line("");
    output.line(paint(STRONG, "Policy"));
    policy::table(policy, output);
    output.note(paint(FAINT, "nothing was run"));
}

/// A gate's verdict in one word, and what it said.
fn words(gate: &GateVerdict) -> (&'static str, &str) {
    match gate {
        GateVerdict::Wake(said) => ("wake", said),
        GateVerdict::Skip(why) => ("skip", why),
        GateVerdict::Failed(why) => ("failed", why),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_command_can_be_pasted() {
        assert_eq!(quoted("--tools"), "--tools");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("Bash(ollim-bot cal *)"), "'Bash(ollim-bot cal *)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
