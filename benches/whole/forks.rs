//! What a fork costs beyond its client: the same client by itself, behind ours, and behind the Python Agent SDK, in turns,
//! against a stub of the model's API on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ollim_bot::agent::claude::options::{ClientEnvironment, command_line, environment};
use ollim_bot::agent::{ClientOptions, SessionMode};
use serde_json::json;

use super::bot::{Bot, now, time};
use super::messages_api::MessagesApi;
use super::{Plan, ms, peers, percentile, row};

const ROUNDS: usize = 15;
/// Before each start, so that all begin on a machine that has come to rest.
pub const REST: Duration = Duration::from_secs(2);
pub const KEY: &str = "sk-test-not-a-key";

pub fn measure(_plan: &Plan) {
    let what = "a fork, from its time to its recorded end, beyond its bare client";
    let Some(client) = client() else {
        return row(what, "20 ms", "not measured: `./scripts/test` installs the client", "");
    };
    let api = MessagesApi::script([]);
    let bot = Bot::with(0)
        .env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", client.to_str().unwrap())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", KEY);
    let service = bot.start();
    let (mut bare, mut ours, mut with_tools, mut sdk) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        std::thread::sleep(REST);
        let alone = by_itself(&client, bot.person(), api.url(), round);
        bare.push(alone);
        ours.push(fork(&bot, &format!("fork-{round}"), "Read", alone));
        let tools = "Read, mcp__discord__ping_user, mcp__discord__report_updates";
        with_tools.push(fork(&bot, &format!("fork-with-tools-{round}"), tools, alone));
        std::thread::sleep(REST);
        sdk.extend(peers::agent_sdk(&client, api.url(), bot.person()));
    }
    drop(service);
    let of = |times: &mut Vec<Duration>| (percentile(times, 50), percentile(times, 0));
    let (bare, ours, with_tools) = (of(&mut bare), of(&mut ours), of(&mut with_tools));
    let more = |times: (Duration, Duration)| {
        let beyond = |with: Duration, without: Duration| (with.as_secs_f64() - without.as_secs_f64()) * 1000.0;
        format!("{:+.0} ms (best against best {:+.0} ms)", beyond(times.0, bare.0), beyond(times.1, bare.1))
    };
    let beside = match sdk.len() {
        ROUNDS => format!("Python Agent SDK: {}", more(of(&mut sdk))),
        _ => "Python Agent SDK: not installed".into(),
    };
    row(what, "20 ms", &format!("{}, on top of {}", more(ours), ms(bare.0)), &beside);
    let what = "the same with two tools of ours, which the client asks for, and a question before its end";
    row(what, "", &more(with_tools), "");
}

/// The oldest supported client, if it is installed.
pub fn client() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".claude-client/node_modules/.bin/claude").canonicalize().ok()
}

/// What a client by itself has of the environment.
pub fn person_env(person: &Path) -> BTreeMap<String, String> {
    [("PATH", std::env::var("PATH").unwrap().as_str()), ("HOME", person.to_str().unwrap()), ("IS_SANDBOX", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// A background job with these tools, from its time to its recorded end.
fn fork(bot: &Bot, name: &str, tools: &str, alone: Duration) -> Duration {
    let at = now() + REST;
    let fields = format!("background: true\nisolated: true\nallowed_tools: [{tools}]\n");
    bot.reminder_with(name, at, &fields, "Say that you are done.");
    // Whoever asks takes processor time from the client: nobody does while it is at work.
    std::thread::sleep((at - now()).to_std().unwrap() + 2 * alone);
    let ended = loop {
        let runs = bot.json(&["runs", name]);
        if let Some(run) = runs.as_array().unwrap().iter().find(|run| !run["ended"].is_null()) {
            assert_eq!(run["outcome"], "completed", "{run:#}");
            break time(&run["ended"]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    (ended - at).to_std().unwrap()
}

/// The client alone, spoken to as briefly as it can be, until it has ended.
fn by_itself(client: &Path, person: &Path, url: &str, round: usize) -> Duration {
    let folder = |name: &str| -> PathBuf {
        let path = person.join(format!("bare-{round}")).join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let (run, config, work) = (folder("run"), folder("config"), folder("work"));
    let args = command_line(&SessionMode::Isolated, &ClientOptions::default(), &["Read".into()], &[]);
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
    let mut until = |kind: &str| {
        let wanted = format!("\"type\":\"{kind}\"");
        lines.find(|line| line.contains(&wanted)).unwrap_or_else(|| panic!("the client wrote no {kind}"))
    };
    writeln!(stdin, "{}", json!({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}))
        .unwrap();
    until("control_response");
    let message = json!({"role": "user", "content": "Say that you are done."});
    writeln!(stdin, "{}", json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}))
        .unwrap();
    until("result");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    start.elapsed()
}
