//! Short sessions: the main session and forks of it, a login by token, limits, an interrupt, a refused login.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use ollim_bot::agent::{ClientOptions, SessionId, SessionMode};
use ollim_bot::definition::Thinking;
use serde_json::{Value, json};

use super::Points;
use super::wire::{HookReply, KEY, SessionRecord, Start};
use crate::support::messages_api::{MessagesApi, Reply, Request};

pub fn check(client: &Path, points: &mut Points) {
    let main = main_session(client, points);
    fork_of(&main, client, points);
    gone(client, points);
    limits(client, points);
    refused(client, points);
}

fn end(life: &SessionRecord) -> Value {
    life.ends().last().copied().cloned().unwrap_or_default()
}

fn appending() -> ClientOptions {
    ClientOptions { append_system_prompt: Some("the-appended-words".into()), ..ClientOptions::default() }
}

fn appended(life: &SessionRecord, name: &'static str, sentence: &'static str, points: &mut Points) {
    let system = |request: &Request| request.body["system"].to_string();
    let added = |request: &Request| system(request).contains("the-appended-words") && system(request).len() > 2000;
    let holds = !life.api.requests().is_empty() && life.api.requests().iter().all(added);
    points.must(name, sentence, holds, || system(&life.first()));
}

/// Writes to each socket in a run's folder what another client would, if the client listens there.
fn write_as_colleague(run: &Path, text: &str) {
    let run = run.to_str().unwrap();
    let listening = std::fs::read_to_string("/proc/net/unix").unwrap();
    let sockets = listening.lines().filter_map(|line| line.split_whitespace().nth(7));
    for socket in sockets.filter(|path| path.starts_with(run)) {
        // The client may have closed it meanwhile.
        let Ok(mut stream) = UnixStream::connect(socket) else { continue };
        let message = json!({"type": "user", "priority": "now", "message": {"role": "user", "content": text}});
        let _ = writeln!(stream, "{message}");
    }
}

/// Runs the main session: a call that the hook leaves undecided, then in a second turn an interrupted command.
fn main_session(client: &Path, points: &mut Points) -> SessionRecord {
    let mut start = Start::new(client, &["Bash", "Write"]);
    start.session = SessionMode::Main(None);
    start.options = appending();
    start.prompts = vec!["[contract] the word is heron".into(), "[contract] now break off".into()];
    start.interrupt_at = Some("sleep 1000");
    let api = MessagesApi::script([
        Reply::call("Write", json!({"file_path": "open.txt", "content": "x"})),
        Reply::say("done"),
        Reply::bash("sleep 1000"),
        Reply::say("after the interrupt"),
    ]);
    let run = start.path("run");
    let life = start.live(api, |input| {
        write_as_colleague(&run, "the word is stork");
        if input["tool_name"] == "Write" { HookReply::Nothing } else { HookReply::Allow }
    });
    let reached = || life.api.requests().iter().any(|request| request.body.to_string().contains("stork"));
    points.must(
        "messages of colleagues",
        "With `crossSessionInbound: refuse` the model sees nothing that another process writes to the client's socket.",
        !reached(),
        || format!("{:#?}", life.api.requests().last().map(|request| request.body.clone())),
    );
    let asks = json!({"request": {"subtype": "can_use_tool", "tool_name": "Write"}});
    let asked = life.find(&asks).map(|message| message["request"]["input"].is_object()) == Some(true);
    let refused = life.result_of("open.txt");
    let told = refused.clone().is_some_and(|(text, error)| error && text.contains("denied by a person"));
    points.must(
        "permission prompt",
        "In the main session an open call is asked of a person, whose no holds.",
        asked && told,
        || format!("{refused:?}"),
    );
    let ends = life.ends().len();
    let broken = life.find(&json!({"type": "control_response", "response": {"request_id": "break"}})).is_some();
    let early = !life.last().mentions("after the interrupt") && ends == 2;
    points.must("interrupt", "It is answered and breaks the turn off, with a `result`.", broken && early, || {
        format!("{ends} results, {}", end(&life))
    });
    appended(&life, "appendSystemPrompt", "One in `initialize` is added to the client's own.", points);
    let session = |at: usize| life.ends().get(at).map(|end| end["session_id"].clone());
    points.must("one session", "A second prompt goes on with the session.", session(0) == session(1), || {
        format!("{:?}", session(1))
    });
    life
}

/// Forks a copy of the transcript under another name, folder and configuration, with a token as the login.
fn fork_of(main: &SessionRecord, client: &Path, points: &mut Points) {
    let session = end(main)["session_id"].as_str().unwrap_or_default().to_owned();
    let projects = main.path("config/projects").read_dir().into_iter().flatten().flatten();
    let transcript = projects.map(|folder| folder.path().join(format!("{session}.jsonl"))).find(|file| file.is_file());
    let kept = transcript.as_ref().map(|file| std::fs::read(file).unwrap()).unwrap_or_default();
    let mut start = Start::new(client, &["Bash"]);
    let copy = start.path("run/main.jsonl");
    std::fs::write(&copy, &kept).unwrap();
    start.session = SessionMode::ForkOfMain { transcript: copy.clone() };
    start.login = "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR";
    start.options = ClientOptions { thinking: Some(Thinking::Budget(2000)), ..appending() };
    let life = start.live(MessagesApi::script([]), |_| HookReply::Deny);
    appended(&life, "appended on", "So it is where a session is resumed.", points);
    let asked = life.api.requests();
    let knows = asked.last().is_some_and(|request| request.mentions("the word is heron"));
    let other = end(&life)["session_id"].as_str().is_some_and(|own| !own.is_empty() && own != session);
    points.must(
        "fork",
        "`--resume=PATH --fork-session` has the history and a session of its own.",
        knows && other,
        || format!("{} {}", life.stderr, end(&life)),
    );
    let same = std::fs::read(&copy).unwrap() == kept;
    points.must("parent", "The transcript that is forked stays as it is.", same, || "it was changed".into());
    let sent = asked.first().and_then(|request| request.headers.get("authorization").cloned());
    let token = sent.as_deref() == Some(&format!("Bearer {KEY}"));
    points.must("token by descriptor", "A token comes from a descriptor too.", token, || format!("{sent:?}"));
    let thinking = asked.first().map(|request| request.body["thinking"].clone()).unwrap_or_default();
    let heeded = thinking["budget_tokens"] == 2000;
    points.should("thinking budget", "The default model thinks within the job's `thinking: 2000`.", heeded, || {
        thinking.to_string()
    });
}

fn gone(client: &Path, points: &mut Points) {
    let mut start = Start::new(client, &[]);
    start.session = SessionMode::Main(Some(SessionId("11111111-2222-4333-8444-555555555555".into())));
    let life = start.live(MessagesApi::script([]), |_| HookReply::Deny);
    let said = format!("{}{}", life.stderr, end(&life));
    let named = said.contains("No conversation found") && life.api.requests().is_empty() && life.code != Some(0);
    points.must("lost session", "One that is not there ends the start, in words that we know.", named, || said);
}

fn limits(client: &Path, points: &mut Points) {
    let life = |options: ClientOptions| {
        let mut start = Start::new(client, &["Bash"]);
        start.options = options;
        start.live(MessagesApi::answering(|_| Reply::bash("true")), |_| HookReply::Allow)
    };
    let model = Some("claude-haiku-4-5".to_owned());
    let budget =
        life(ClientOptions { max_budget_usd: Some(0.000_1), model: model.clone(), ..ClientOptions::default() });
    let ended = end(&budget)["subtype"] == "error_max_budget_usd" && end(&budget)["is_error"] == true;
    points.must("--max-budget-usd", "It ends the turn and is named.", ended, || end(&budget).to_string());
    let named = budget.api.requests().iter().all(|request| request.body["model"] == "claude-haiku-4-5");
    points.must("--model", "The request goes to the model that it names.", named, || "to another".into());
    let turns = life(ClientOptions {
        max_turns: Some(2),
        thinking: Some(Thinking::Budget(2000)),
        model,
        ..ClientOptions::default()
    });
    let ended = end(&turns)["subtype"] == "error_max_turns" && end(&turns)["is_error"] == true;
    points.must("--max-turns", "It ends the turn and is named.", ended, || end(&turns).to_string());
    let asked = turns.api.requests();
    let thinking = asked.first().map(|request| request.body["thinking"].clone()).unwrap_or_default();
    let heeded = thinking["budget_tokens"] == 2000;
    points.must("--max-thinking-tokens", "Models that take a budget are given it.", heeded, || thinking.to_string());
}

fn refused(client: &Path, points: &mut Points) {
    let mut start = Start::new(client, &[]);
    start.env = vec![("CLAUDE_CODE_MAX_RETRIES", Some("1".into()))];
    let life = start.live(MessagesApi::answering(|_| Reply::Error(401, "authentication_error")), |_| HookReply::Deny);
    let retry = life.find(&json!({"type": "system", "subtype": "api_retry"}));
    let status = retry.map(|retry| retry["error_status"].clone());
    let told = status == Some(401.into()) || end(&life)["api_error_status"] == 401;
    points.must("401", "A refused login is told by its status.", told, || format!("{retry:?} {}", end(&life)));
}
