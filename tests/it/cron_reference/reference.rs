//! The reference: a Python program around cronsim (tests/cron-reference/) that answers lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::expressions::told;

/// A request for cronsim's next `count` times after `from`.
#[derive(Clone, Debug)]
pub struct Ask {
    pub expression: String,
    pub zone: Tz,
    pub from: DateTime<Utc>,
    pub count: usize,
}

/// Returns the versions of the reference's cronsim and of its time zones.
pub fn versions() -> (String, String) {
    let answer: Value = answers(&[json!({"ask": "versions"})]).remove(0);
    let field = |name: &str| answer[name].as_str().unwrap().to_owned();
    (field("cronsim"), field("tzdata"))
}

/// cronsim's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub times: Vec<DateTime<Utc>>,
    pub end: End,
}

impl Answer {
    /// Returns whether cronsim searched in vain for a time.
    pub fn never(&self) -> bool {
        self.times.is_empty() && self.end == End::None
    }
}

/// The reason why an answer has no more times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The answer has as many times as requested.
    Enough,
    /// There are no more times within fifty years.
    None,
    /// cronsim walks in a circle and would never answer.
    Stuck,
}

#[derive(Deserialize)]
struct Line {
    times: Vec<i64>,
    end: End,
}

/// Returns cronsim's answer to each request, translated for it by [`told`]; `None` if cronsim refuses the expression.
pub fn times(asks: &[Ask]) -> Vec<Option<Answer>> {
    let told = |ask: &Ask| Ask { expression: told(&ask.expression), ..ask.clone() };
    times_as_written(&asks.iter().map(told).collect::<Vec<_>>())
}

/// Returns the same as [`times`], without the translation.
pub fn times_as_written(asks: &[Ask]) -> Vec<Option<Answer>> {
    let line = |ask: &Ask| {
        json!({
            "ask": "times", "expression": ask.expression, "zone": ask.zone.name(),
            "from": ask.from.timestamp(), "count": ask.count,
        })
    };
    let lines: Vec<Value> = asks.iter().map(line).collect();
    let answer = |line: Line| Answer { times: instants(line.times), end: line.end };
    answers::<Option<Line>>(&lines).into_iter().map(|line| line.map(answer)).collect()
}

/// A request for the times after `from`, up to `until`, at which a daemon fires.
#[derive(Clone, Debug)]
pub struct DaemonAsk {
    pub expression: String,
    pub zone: Tz,
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// Returns the times at which a cron daemon fires that checks every minute.
pub fn book(asks: &[DaemonAsk]) -> Vec<Vec<DateTime<Utc>>> {
    let line = |ask: &DaemonAsk| {
        json!({
            "ask": "book", "expression": told(&ask.expression), "zone": ask.zone.name(),
            "from": ask.from.timestamp(), "until": ask.until.timestamp(),
        })
    };
    let lines: Vec<Value> = asks.iter().map(line).collect();
    answers(&lines).into_iter().map(instants).collect()
}

fn instants(seconds: Vec<i64>) -> Vec<DateTime<Utc>> {
    seconds.into_iter().map(|at| DateTime::from_timestamp(at, 0).unwrap()).collect()
}

/// Starts the program once for all lines.
fn answers<T: DeserializeOwned>(lines: &[Value]) -> Vec<T> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".cron-reference/bin/python");
    assert!(
        python.exists(),
        "the reference for cron expressions is not installed at {}\nhint: run the tests by ./scripts/test, which installs it",
        python.display()
    );
    let mut program = Command::new(python)
        .arg(root.join("tests/cron-reference/reference.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers: Vec<T> = std::thread::scope(|scope| {
        // Either pipe can fill up, so a thread writes while this one reads. The exit status below shows a program that ended early.
        scope.spawn(move || drop(stdin.write_all(text.as_bytes())));
        BufReader::new(stdout).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    });
    assert!(program.wait().unwrap().success(), "the reference failed, see above");
    assert_eq!(answers.len(), lines.len());
    answers
}
