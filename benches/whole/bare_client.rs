//! The agent client by itself, as the baseline of our measurements.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ollim_bot::agent::claude::options::{ClientEnvironment, command_line, environment};
use ollim_bot::agent::{ClientOptions, SessionMode};
use serde_json::json;

/// Pause before each start, so that the machine is idle at the beginning.
pub const REST: Duration = Duration::from_secs(2);
pub const KEY: &str = "sk-test-not-a-key";

/// The event that ends a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    FirstLetter,
    End,
}

/// Returns the oldest supported client, if it is installed.
pub fn client() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".claude-client/node_modules/.bin/claude").canonicalize().ok()
}

/// Measures a client from its start until `until`, with as few messages as possible. `name`: its folder in `person`.
pub fn by_itself(client: &Path, person: &Path, url: &str, name: &str, until: Until) -> Duration {
    let folder = |part: &str| -> PathBuf {
        let path = person.join(name).join(part);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let (run, config, work) = (folder("run"), folder("config"), folder("work"));
    let mut args = command_line(&SessionMode::Isolated, &ClientOptions::default(), &["Read".into()], &[]);
    if until == Until::FirstLetter {
        args.push("--include-partial-messages".into());
    }
    let client_environment = ClientEnvironment { own: person_env(person), ..ClientEnvironment::default() };
    let start = Instant::now();
    let mut child = Command::new(client)
        .args(args)
        .env_clear()
        .envs(environment(&client_environment, &config, &run, "none"))
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", KEY)
        .current_dir(work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut wait_for = |part: &str| {
        lines.find(|line| line.contains(part)).unwrap_or_else(|| panic!("the client wrote no {part}"));
    };
    writeln!(stdin, "{}", json!({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}))
        .unwrap();
    wait_for("\"type\":\"control_response\"");
    let message = json!({"role": "user", "content": "Say that you are done."});
    writeln!(stdin, "{}", json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}))
        .unwrap();
    let first_letter = (until == Until::FirstLetter).then(|| {
        wait_for("text_delta");
        start.elapsed()
    });
    wait_for("\"type\":\"result\"");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    first_letter.unwrap_or_else(|| start.elapsed())
}

/// Returns the environment of a client by itself.
fn person_env(person: &Path) -> BTreeMap<String, String> {
    [("PATH", std::env::var("PATH").unwrap().as_str()), ("HOME", person.to_str().unwrap()), ("IS_SANDBOX", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}
