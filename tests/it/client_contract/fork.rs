//! A single fork session that tries everything: tools, hooks, agents, our server, the switches of the environment.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ollim_bot::agent::ClientOptions;
use ollim_bot::definition::Thinking;
use serde_json::{Value, json};

use super::Points;
use super::wire::{HookReply, KEY, SessionRecord, Start, question};
use crate::support::messages_api::{MessagesApi, Reply, Request};

const PROMPT: &str = "[contract] look at @secret.txt";
const SECRET: &str = "the-secret-of-the-file";
const AGENT: &str = "You are the contract's own agent.";
const SYSTEM: &str = "You are the contract's own bot.";

/// The model's calls, in order. A word of each call's input selects the hook's answer.
fn calls(outside: &str) -> Vec<Reply> {
    let write = |path: &str| Reply::call("Write", json!({"file_path": path, "content": "x"}));
    vec![
        Reply::bash("echo \"$OUR_SHELL|$TMPDIR|$(env | grep -c sk-contract)|$CLAUDE_CODE_MESSAGING_SOCKET|\" > allow"),
        Reply::bash("touch deny"),
        Reply::bash("touch error"),
        Reply::bash("touch silence"),
        Reply::bash("touch strange"),
        write("nothing"),
        write(outside),
        Reply::bash("rm -f secret.txt # allow"),
        Reply::call("WebFetch", json!({"url": "http://127.0.0.1:9/hidden", "prompt": "allow"})),
        Reply::call("mcp__discord__ping_user", json!({"message": "allow"})),
        Reply::call("mcp__discord__ping_user", json!({"message": "deny"})),
        Reply::call("Agent", json!({"subagent_type": "Explore", "description": "allow", "prompt": "help"})),
        Reply::Call(vec![
            ("Bash".into(), json!({"command": "touch allow-left", "description": "x"})),
            ("Bash".into(), json!({"command": "touch allow-right", "description": "x"})),
        ]),
        Reply::say("that was it"),
        Reply::say("now it is"),
    ]
}

fn is_agents(request: &Request) -> bool {
    request.body["system"].to_string().contains(AGENT)
}

fn say(input: &Value) -> HookReply {
    let text = input["tool_input"].to_string();
    let words = [
        ("deny", HookReply::Deny),
        ("error", HookReply::Error),
        ("silence", HookReply::Silence),
        ("strange", HookReply::Strange),
        ("nothing", HookReply::Nothing),
    ];
    words.into_iter().find(|(word, _)| text.contains(word)).map_or(HookReply::Allow, |(_, say)| say)
}

fn start(client: &Path) -> Start {
    let mut start = Start::new(client, &["Bash", "Write", "Agent"]);
    std::fs::write(start.path("work/secret.txt"), SECRET).unwrap();
    start.prompts = vec![PROMPT.into()];
    start
}

pub fn check(client: &Path, points: &mut Points) {
    let mut start = start(client);
    let shell = start.path("bash");
    std::fs::write(&shell, "#!/bin/bash\nexport OUR_SHELL=ours\nexec /bin/bash \"$@\"\n").unwrap();
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agents = json!({"Explore": {"description": "Explores.", "prompt": AGENT, "tools": ["Bash"]}}).to_string();
    start.options = ClientOptions {
        agents: Some(agents),
        thinking: Some(Thinking::Disabled),
        system_prompt: Some(SYSTEM.into()),
        ..ClientOptions::default()
    };
    start.deny_rules = &["Bash(rm *)"];
    start.env = vec![("CLAUDE_CODE_SHELL", shell.to_str().map(Into::into))];
    start.go_on = Some("go on, says the contract");
    let outside = start.path("allowed-outside.txt");
    let calls = calls(outside.to_str().unwrap());
    let api = MessagesApi::answering(move |request| match (is_agents(request), request.answers()) {
        (true, 0) => Reply::bash("echo allow > by-the-agent"),
        (true, _) => Reply::say("the agent has been there"),
        (false, answers) => calls.get(answers).cloned().unwrap_or_else(|| Reply::say("done")),
    });
    let work = start.path("work");
    let mut ran_before_it_was_asked = false;
    let life = start.live(api, |input| {
        let file = input["tool_input"]["command"].as_str().and_then(|command| command.strip_prefix("touch "));
        ran_before_it_was_asked |= file.is_some_and(|file| work.join(file).exists());
        say(input)
    });
    order(&life, points);
    hooks(&life, !ran_before_it_was_asked, points);
    tools(&life, points);
    agent(&life, points);
    switches(&life, client, points);
}

fn order(life: &SessionRecord, points: &mut Points) {
    let kinds = || {
        let kind = |message: &Value| format!("{}/{}", message["type"], message["subtype"]).replace(['"', ' '], "");
        life.messages.iter().map(kind).collect::<Vec<_>>().join(" ")
    };
    let answered =
        life.at(&json!({"type": "control_response", "response": {"request_id": "first", "subtype": "success"}}));
    points.must("initialize", "It is answered, with hooks and a server named in it.", answered.is_some(), kinds);
    let init = life.at(&json!({"type": "system", "subtype": "init"}));
    let first = life.at(&question(json!({}))).unwrap_or(0);
    let comes = init.is_some_and(|init| answered.is_some_and(|answered| answered < init) && init < first);
    points.must("init", "`system/init` comes after the first prompt and before any call.", comes, kinds);
    let init = init.map_or(Value::Null, |at| life.messages[at].clone());
    let version = init["claude_code_version"].as_str().is_some_and(|version| !version.is_empty());
    let told = version && init["session_id"].as_str().is_some_and(|session| !session.is_empty());
    points.must("init tells", "It names the version and the session.", told, || init.to_string());
    let mut shown: Vec<&str> = init["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    shown.sort_unstable();
    let same = shown == ["Bash", "Task", "Write", "mcp__discord__ping_user"];
    points.must("init lists", "It lists the tools that there are, `Agent` as `Task`.", same, || format!("{shown:?}"));
    let asked = |again: bool| {
        let input = json!({"hook_event_name": "Stop", "stop_hook_active": again});
        life.count(&json!({"request": {"subtype": "hook_callback", "callback_id": "hook_1", "input": input}}))
    };
    let goes_on = (asked(false), asked(true)) == (1, 1) && life.last().mentions("go on, says the contract");
    points.must(
        "stop",
        "Before its end it asks; a reason makes it go on, and it says so when it asks again.",
        goes_on,
        kinds,
    );
    let ends = life.ends();
    let one = ends.len() == 1 && life.messages.last().is_some_and(|last| last["type"] == "result");
    points.must("result", "`result` comes once, last, when all that was started has ended.", one, kinds);
    let end = ends.last().copied().cloned().unwrap_or_default();
    let figures = end["is_error"] == false && end["num_turns"].is_u64() && end["total_cost_usd"].is_f64();
    let figures = figures && end["result"] == "now it is" && end["session_id"] == init["session_id"];
    points.must("result tells", "It has the answer, the session, turns and costs.", figures, || end.to_string());
    let denials = end["permission_denials"].to_string();
    let denied = denials.contains("touch deny") && !denials.contains("hidden");
    points.must("denials", "It names the calls that the hook denied, hidden tools not.", denied, || denials);
    points.must("leaves", "It ends with code 0 when its input is closed.", life.code == Some(0), || {
        format!("{:?} {}", life.code, life.stderr)
    });
}

fn hooks(life: &SessionRecord, asked_before: bool, points: &mut Points) {
    let there = |name: &str| life.path(&format!("work/{name}")).exists();
    let seen = |words: &str| format!("{:?}", life.result_of(words));
    let asked = life.asked(json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"})).cloned().unwrap_or_default();
    let shape = asked["tool_input"]["command"].is_string() && asked["tool_use_id"].is_string();
    let shape = shape && asked["cwd"].is_string() && asked["session_id"].is_string() && asked.get("agent_id").is_none();
    points.must("hook shape", "The hook is told tool, input, id of the call, folder and session.", shape, || {
        asked.to_string()
    });
    points.must("hook order", "It is asked before the call runs.", asked_before, || "it had run".into());
    points.must("allow", "What it allows runs, with no rule that grants it.", there("allow"), || seen("OUR_SHELL"));
    let (wrote, result) = (life.path("allowed-outside.txt").exists(), "allowed-outside");
    points.must("allow wins", "Also what `dontAsk` would refuse by itself.", wrote, || seen(result));
    let denied = life.result_of("touch deny");
    let told = denied.is_some_and(|(text, error)| error && text.contains("the contract says deny"));
    points.must("deny", "What it denies does not run, and the model is told why.", told && !there("deny"), || {
        seen("touch deny")
    });
    for (word, name, sentence) in [
        ("error", "erring hook", "An error as the hook's answer is a no."),
        ("silence", "silent hook", "No answer within the hook's time is a no."),
        ("strange", "strange answer", "An unknown word as the hook's answer is a no."),
    ] {
        let call = format!("touch {word}");
        let refused = life.result_of(&call).is_some_and(|(_, error)| error);
        points.must(name, sentence, refused && !there(word), || seen(&call));
    }
    let refused = life.result_of("nothing").is_some_and(|(_, error)| error);
    points.must("dontAsk", "It refuses a call that the hook leaves open.", refused && !there("nothing"), || {
        seen("nothing")
    });
    let kept = there("secret.txt") && life.result_of("rm -f").is_some_and(|(_, error)| error);
    points.must("deny rules", "`--disallowedTools` holds against the hook's yes.", kept, || seen("rm -f"));
    let both = there("allow-left") && there("allow-right");
    points.must("side by side", "Calls of one answer are each asked about.", both, || seen("allow-left"));
}

fn tools(life: &SessionRecord, points: &mut Points) {
    let request = life.api.requests().into_iter().find(|request| !is_agents(request));
    let shown = request.as_ref().map(Request::tools).unwrap_or_default();
    let same = shown == ["Agent", "Bash", "Write", "mcp__discord__ping_user"];
    points.must("--tools", "The model sees the tools that it names and our server's, nothing else.", same, || {
        format!("{shown:?}")
    });
    let hidden = life.result_of("hidden");
    let gone = hidden.clone().is_some_and(|(text, error)| error && text.contains("No such tool"));
    let asked = life.asked(json!({"tool_name": "WebFetch"})).is_some();
    points.must("hidden tools", "A call of one that is not shown fails, unasked.", gone && !asked, || {
        format!("{hidden:?}")
    });
    let ping = "mcp__discord__ping_user";
    let at = |message: &str| life.at(&question(json!({"tool_name": ping, "tool_input": {"message": message}})));
    let call = json!({"request": {"subtype": "mcp_message", "message": {"method": "tools/call"}}});
    let once = life.count(&call) == 1 && at("allow") < life.at(&call) && at("deny").is_some();
    points.must("our server", "The hook is asked about its calls first; a denied one never comes.", once, || {
        format!("{} calls", life.count(&call))
    });
    let greeted = |method: &str| life.count(&json!({"request": {"message": {"method": method}}}));
    let greetings = ["initialize", "notifications/initialized", "tools/list"].map(greeted);
    points.must("greetings", "Our server is greeted once.", greetings == [1, 1, 1], || format!("{greetings:?}"));
}

fn agent(life: &SessionRecord, points: &mut Points) {
    let asked = life.asked(json!({"tool_name": "Agent", "tool_input": {"subagent_type": "Explore"}})).is_some();
    points.must("Agent", "The hook is asked about it by this name.", asked, || "it was not".into());
    let input = life.asked(json!({"agent_type": "Explore", "tool_name": "Bash"})).cloned().unwrap_or_default();
    points.must(
        "agents' calls",
        "Agents' calls are asked about, with type and id.",
        input["agent_id"].is_string(),
        || input.to_string(),
    );
    let requests = life.api.requests();
    let ours = requests.iter().find(|request| is_agents(request)).map(Request::tools);
    let replaced = ours.as_ref().is_some_and(|tools| *tools == ["Bash"]);
    points.must("--agents", "Ours takes the place of the built-in of its name.", replaced, || format!("{ours:?}"));
    let result = life.result_of("\"subagent_type\"");
    let waited = result.clone().is_some_and(|(text, _)| text.contains("the agent has been there"));
    let waited = waited && life.path("work/by-the-agent").exists();
    points.must("agents end", "Its call ends when it has ended, with its answer.", waited, || format!("{result:?}"));
    let tasks = ["task_started", "task_notification"].map(|word| life.count(&json!({"subtype": word})));
    points.must("tasks", "Beginning and end of an agent are told.", tasks == [1, 1], || format!("{tasks:?}"));
    let schemas = requests.iter().filter_map(|request| request.body["tools"].as_array()).flatten();
    let offered = schemas.filter(|tool| tool["input_schema"]["properties"].get("run_in_background").is_some()).count();
    points.must("DISABLE_BACKGROUND_TASKS", "Nothing can be started beside the turn.", offered == 0, || {
        format!("{offered} offers")
    });
}

fn switches(life: &SessionRecord, client: &Path, points: &mut Points) {
    let mut bare = start(client);
    bare.env = [
        "CLAUDE_CODE_DISABLE_ATTACHMENTS",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS",
        "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS",
    ]
    .map(|name| (name, None))
    .to_vec();
    let bare = bare.live(MessagesApi::script([Reply::say("done")]), |_| HookReply::Deny);
    let reads = |life: &SessionRecord| life.api.all().iter().any(|request| request.mentions(SECRET));
    points.must("DISABLE_ATTACHMENTS", "A path in a prompt is not read.", !reads(life), || "its text was sent".into());
    let init =
        |life: &SessionRecord| life.find(&json!({"type": "system", "subtype": "init"})).cloned().unwrap_or_default();
    let memory =
        |life: &SessionRecord| !init(life)["memory_paths"].is_null() || life.last().mentions("file-based memory");
    points.must("DISABLE_AUTO_MEMORY", "The model is told of no memory.", !memory(life), || "it is".into());
    let skills = |life: &SessionRecord| init(life)["skills"].as_array().map_or(0, Vec::len);
    let (few, many) = (skills(life), skills(&bare));
    points
        .must("DISABLE_BUNDLED_SKILLS", "The client's own skills are gone.", few < many, || format!("{few} of {many}"));
    let offers = |request: &Request| request.body["tools"].to_string().contains("run_in_background\":");
    let beside = |life: &SessionRecord| life.api.requests().iter().any(offers);
    let commits = |life: &SessionRecord| life.api.requests().iter().any(|request| request.mentions("Co-Authored-By"));
    points.must("DISABLE_GIT_INSTRUCTIONS", "The model is not told how to commit.", !commits(life), || "it is".into());
    let others = [reads(&bare), memory(&bare), beside(&bare), commits(&bare)];
    points.should(
        "switches",
        "Without them a path is read, a memory told of, tasks offered, commits explained.",
        others == [true; 4],
        || format!("the points above look for what is not there any more: {others:?}"),
    );
    let system = |life: &SessionRecord| life.first().body["system"].to_string();
    let (ours, theirs) = (system(life), system(&bare));
    // The client's own prompt has thousands of letters. A line or two of it remain beside ours.
    let replaced = ours.contains(SYSTEM) && ours.len() < 500 && theirs.len() > 2000;
    points.must("systemPrompt", "One in `initialize` replaces the client's own.", replaced, || ours.clone());
    let elsewhere: Vec<String> =
        life.api.all().iter().filter(|one| one.method == "CONNECT").map(|one| one.path.clone()).collect();
    points.must("DISABLE_NONESSENTIAL_TRAFFIC", "It asks nobody but the API.", elsewhere.is_empty(), || {
        format!("{elsewhere:?}")
    });
    let said = std::fs::read_to_string(life.path("work/allow")).unwrap_or_default();
    let run = life.path("run");
    let [shell, folder, keys, socket] =
        std::array::from_fn(|at| said.split('|').nth(at).unwrap_or_default().to_owned());
    points.must("SHELL", "`CLAUDE_CODE_SHELL` runs the Bash calls.", shell == "ours", || said.clone());
    let own = run.read_dir().is_ok_and(|mut entries| entries.next().is_some()) && run == Path::new(&folder);
    points.must(
        "TMPDIR",
        "Its temporary files are where `CLAUDE_CODE_TMPDIR` says, as the commands' are.",
        own,
        || said.clone(),
    );
    let sent = life.first().headers.get("x-api-key").cloned();
    let login = sent.as_deref() == Some(KEY) && keys == "0";
    points.must("key by descriptor", "A key comes from a descriptor and reaches no command.", login, || {
        format!("{sent:?} {said}")
    });
    let session = init(life)["session_id"].as_str().unwrap_or("?").to_owned();
    let projects = life.path("config/projects").read_dir().into_iter().flatten().flatten();
    let kept = projects.into_iter().any(|folder| folder.path().join(format!("{session}.jsonl")).exists());
    let home: Vec<_> =
        life.path("home").read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    points.must(
        "CONFIG_DIR",
        "Transcripts are in `CLAUDE_CONFIG_DIR`; the home gets logs in `.cache` at most.",
        kept && home.iter().all(|name| name == ".cache"),
        || format!("{kept} {home:?}"),
    );
    let thinking = life.first().body["thinking"].clone();
    let off = !life.first().body.is_null() && thinking.is_null() || thinking["type"] == "disabled";
    points.must("DISABLE_THINKING", "It switches thinking off.", off, || thinking.to_string());
    points.should("no way in", "Commands are given no socket of the client.", socket.is_empty(), || socket.clone());
}
