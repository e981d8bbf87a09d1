//! Renders the input that a run would get.

use serde_json::{Value, json};

use super::{View, policy};
use crate::app::{DryRun, JobPolicy};
use crate::channel::terminal::{plain, plain_lines};
use crate::cli::output::{FAINT, Output, STRONG, paint};
use crate::run::gate::{GateVerdict, SILENT};

/// Renders the prompts, the policy and the client's command line.
pub(super) fn dry_run(dry_run: &DryRun, view: &View, output: &mut Output) {
    if view.json {
        output.json(&as_json(dry_run));
        return;
    }
    around("Before it starts", &dry_run.held, output);
    shown(dry_run, output);
    around("After it", &dry_run.follower_words(), output);
    let note = match &dry_run.gate {
        _ if dry_run.delivered.is_some() => "nothing was sent",
        Some(_) => "nothing but the gate was run",
        None => "nothing was run",
    };
    output.note(paint(FAINT, note));
}

/// Renders the steps before or after a run, if any.
fn around(title: &str, lines: &[String], output: &mut Output) {
    if lines.is_empty() {
        return;
    }
    if title.starts_with("After") {
        output.line("");
    }
    output.line(paint(STRONG, title));
    lines.iter().for_each(|line| output.line(plain(line)));
    if title.starts_with("Before") {
        output.line("");
    }
}

fn as_json(dry_run: &DryRun) -> Value {
    let DryRun { policy, max_cost_usd, held, .. } = dry_run;
    let mut value = json!({
        "id": policy.id,
        "kind": policy.kind,
        "max_cost_usd": max_cost_usd,
        "held": held,
        "followed_by": dry_run.followed_by.iter().map(|(id, _)| id).collect::<Vec<_>>(),
    });
    if let Some(message) = &dry_run.delivered {
        value["delivered"] = json!(message);
        return value;
    }
    value["policy"] = json!(policy.entries);
    if let Some((line, refused)) = &dry_run.runs {
        (value["runs"], value["refused"]) = (json!(line), json!(refused));
        return value;
    }
    value["gate"] = json!(dry_run.gate.as_ref().map(|gate| {
        let (verdict, said) = words(gate);
        json!({ "verdict": verdict, "said": said })
    }));
    value["system_prompt"] = json!(dry_run.system_prompt);
    value["prompt"] = json!(dry_run.prompt);
    value["mcp_tools"] = json!(policy.mcp_tools);
    value["command"] = json!(dry_run.command);
    value
}

fn shown(dry_run: &DryRun, output: &mut Output) {
    let DryRun { delivered, runs, gate, system_prompt, prompt, policy, command, .. } = dry_run;
    if let Some(message) = delivered {
        output.line(paint(STRONG, "Message, delivered as written without a model"));
        output.line(plain_lines(message));
        return;
    }
    if let Some((line, refused)) = runs {
        of_command(line, refused.as_deref(), policy, output);
        return;
    }
    if let Some(gate) = gate {
        let (verdict, said) = words(gate);
        output.line(paint(STRONG, "Gate"));
        output.line(match verdict {
            "wake" => match plain_lines(said).lines().next().unwrap_or_default() {
                "" => "exit 0: the agent would be woken".to_owned(),
                first => format!("exit 0: the agent would be woken: {first}"),
            },
            "skip" if said == SILENT => "exit 1: this time would be skipped".to_owned(),
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
    output.verbatim(plain_lines(&command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
}

/// Renders a command, and the programs that it may start.
fn of_command(line: &str, refused: Option<&str>, policy: &JobPolicy, output: &mut Output) {
    output.line(paint(STRONG, "Command, run without a model"));
    output.verbatim(plain_lines(line));
    if let Some(why) = refused {
        output.line(format!("the run would fail: {}", plain_lines(why)));
    }
    output.line("");
    output.line(paint(STRONG, "Policy"));
    policy::table(policy, output);
}

/// Returns a gate's verdict in one word, and its output.
fn words(gate: &GateVerdict) -> (&'static str, &str) {
    match gate {
        GateVerdict::Wake(said) => ("wake", said),
        GateVerdict::Skip(why) => ("skip", why),
        GateVerdict::Failed(why) => ("failed", why),
    }
}

/// Quotes a word for a shell.
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
