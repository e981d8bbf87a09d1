//! docs/policy.md as a test: each `yaml` block is part of a job's file, each `text` block has calls and their outcome under
//! it, each `console` block a command and its output. `OLLIM_BLESS=1` writes the output into the page.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::bot::TestBot;

/// A fenced block of the page.
struct Block<'a> {
    kind: &'a str,
    body: &'a str,
}

/// Splits the page into its blocks and the text between them.
fn pieces(text: &str) -> Vec<Result<Block<'_>, &str>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\n```") {
        let (kind, inner) = after.split_once('\n').expect("a block has lines");
        let (body, after) = inner.split_once("```\n").expect("a block has an end");
        pieces.push(Err(before));
        pieces.push(Ok(Block { kind, body }));
        rest = after;
    }
    pieces.push(Err(rest));
    pieces
}

/// Creates a bot with one job that has these fields.
fn bot(fields: &str) -> TestBot {
    let bot = TestBot::new();
    for name in ["gmail", "cal"] {
        bot.external_command(name, "#!/bin/sh\n");
    }
    bot.write("routines/job.md", &format!("---\ncron: \"0 8 * * *\"\nbackground: true\n{fields}---\nDo the thing.\n"));
    bot
}

/// Parses a line of a `text` block into a call: a tool with its target, or a command line.
fn call(line: &str) -> (&str, Value) {
    let (tool, on) = line.split_once(' ').unwrap_or((line, ""));
    match tool {
        "Read" | "Write" | "Edit" => (tool, json!({ "file_path": on, "content": "x" })),
        "WebFetch" => (tool, json!({ "url": on, "prompt": "x" })),
        "Agent" => (tool, json!({ "subagent_type": on, "prompt": "x", "description": "x" })),
        "CronCreate" | "AskUserQuestion" => (tool, json!({})),
        tool if tool.starts_with("mcp__") => (tool, json!({})),
        _ => ("Bash", json!({ "command": line })),
    }
}

fn check_calls(bot: &TestBot, body: &str) {
    for line in body.lines() {
        let (word, line) = line.split_once(':').expect("a verdict in front");
        let (tool, input) = call(line.trim());
        let input = input.to_string();
        let ran = bot.run(["policy", "explain", "job", "--tool", tool, "--input", &input]);
        let (code, verdict) = match word {
            "runs" => (0, "allowed\n"),
            "asked" => (0, "asked\n"),
            "denied" => (1, "denied\n"),
            other => panic!("`{other}` is no verdict"),
        };
        assert!(ran.code == code && ran.stdout.starts_with(verdict), "{line}\n{ran:#?}");
    }
}

/// Splits the command line of a `console` block into words at blanks, except within single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn printed(bot: &TestBot, body: &str) -> String {
    let line = body.lines().next().expect("a command");
    let command = line.strip_prefix("$ ollim-bot ").expect("a command of ours");
    let ran = bot.run(words(command));
    let output = format!("{}{}", ran.stdout, ran.stderr).replace(&bot.home().display().to_string(), "~/.ollim-bot");
    let trimmed: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    format!("{line}\n{}\n", trimmed.join("\n"))
}

#[test]
fn every_example_of_the_policy_page_is_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut job = None;
    let mut page = String::new();
    let mut counts = [0_usize; 3];
    for piece in pieces(&text) {
        let block = match piece {
            Err(between) => {
                page += between;
                continue;
            }
            Ok(block) => block,
        };
        let mut body = block.body.to_owned();
        match block.kind {
            "yaml" => {
                job = Some(bot(block.body));
                counts[0] += 1;
            }
            "text" => {
                check_calls(job.as_ref().expect("a file before"), block.body);
                counts[1] += 1;
            }
            "console" => {
                body = printed(job.as_ref().expect("a file before"), block.body);
                counts[2] += 1;
            }
            other => panic!("`{other}` is no kind of block that is run"),
        }
        page += &format!("\n```{}\n{body}```\n", block.kind);
    }
    assert!(counts.iter().all(|count| *count >= 4), "the blocks are found: {counts:?}");
    if std::env::var_os("OLLIM_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    assert_eq!(page, text, "docs/policy.md (OLLIM_BLESS=1 writes what was printed)");
}
