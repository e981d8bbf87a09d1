//! Named agents: on the command line, and on the real agent client, which is shown our agents in place of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use ollim_bot::agents::{Agents, agents_argument, hidden_agents};
use ollim_bot::home::Home;
use serde_json::{Value, json};

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, Request};

/// The client's tools in the session.
const TOOLS: &str = "Agent,Bash,Glob,Grep,Read,Write,Edit,NotebookEdit,WebFetch,WebSearch,TaskCreate";

/// Runs one turn of the real client without a hook, so that only the client's own layer restricts it.
fn turn(api: &MessagesApi, folder: &Path, agents: &str, hidden: &[String]) {
    let mut command = Command::new(client::real());
    command.args(["--print", "--verbose", "--output-format", "stream-json", "--permission-mode", "dontAsk"]).args([
        "--setting-sources",
        "",
        "--tools",
        TOOLS,
        "--agents",
        agents,
    ]);
    if !hidden.is_empty() {
        command.arg("--disallowedTools").args(hidden);
    }
    let work = folder.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let ran = command
        .args(["--strict-mcp-config", "--", "begin"])
        .current_dir(&work)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("CLAUDE_CONFIG_DIR", folder.join("client"))
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "sk-test-not-a-key")
        .env("IS_SANDBOX", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")
        .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
        .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
        .env("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

pub fn system_prompt(request: &Request) -> String {
    match &request.body["system"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns the names in the list of agents that the session's model is shown, in order, duplicates included.
pub fn listed(api: &MessagesApi) -> Vec<String> {
    let first = api.requests().remove(0);
    let mut texts = Vec::new();
    gather(&first.body, &mut texts);
    let list = texts.iter().find_map(|text| text.split_once("Available agent types for the Agent tool:\n"));
    let Some((_, list)) = list else { return Vec::new() };
    let name = |line: &str| line.strip_prefix("- ")?.split(": ").next().map(ToOwned::to_owned);
    list.lines().take_while(|line| !line.is_empty()).filter_map(name).collect()
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(entries) => entries.values().for_each(|item| gather(item, texts)),
        _ => {}
    }
}

pub fn call(agent: &str) -> Reply {
    Reply::call("Agent", json!({ "subagent_type": agent, "description": "look", "prompt": "Look around." }))
}

/// Returns a stub whose session calls the named agents one after the other. Each agent makes the calls of `inside`.
fn session(agents: &[(&str, &str)], inside: Vec<Reply>) -> MessagesApi {
    let prompts: Vec<String> = agents.iter().map(|(_, prompt)| (*prompt).to_owned()).collect();
    let calls: Vec<Reply> = agents.iter().map(|(name, _)| call(name)).collect();
    MessagesApi::answering(move |request| {
        let system = system_prompt(request);
        let replies = if prompts.iter().any(|prompt| system.contains(prompt)) { &inside } else { &calls };
        replies.get(request.answers()).cloned().unwrap_or_else(|| Reply::say("done"))
    })
}

#[test]
fn the_client_runs_every_built_in_agent_as_ours_and_lists_each_once() {
    let agents = Agents::built_in();
    let all: Vec<_> = agents.usable().collect();
    let named: Vec<(&str, &str)> = all.iter().map(|agent| (agent.name.as_str(), agent.prompt.as_str())).collect();
    let api = session(&named, vec![Reply::say("seen")]);
    let folder = tempfile::tempdir().unwrap();
    let argument = agents_argument(all.iter().copied()).unwrap().unwrap();
    turn(&api, folder.path(), &argument, &hidden_agents(all.iter().copied()));

    let mut names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    names.sort_by_key(|name| name.to_lowercase());
    let mut shown = listed(&api);
    shown.sort_by_key(|name| name.to_lowercase());
    assert_eq!(shown, names, "each once, and the client's `claude` not at all");

    let seen: BTreeMap<&str, (String, String)> = named
        .iter()
        .map(|(name, prompt)| {
            let requests = api.requests();
            let request = requests.iter().find(|request| system_prompt(request).contains(prompt));
            let request = request.unwrap_or_else(|| panic!("{name} did not run with our prompt"));
            let model = request.body["model"].as_str().unwrap().to_owned();
            let family =
                ["haiku", "sonnet"].into_iter().find(|family| model.contains(family)).unwrap_or("the session's");
            // 2.1.330 shows `TaskCreate` to the session alone.
            let tools: Vec<String> = request.tools().into_iter().filter(|tool| tool != "TaskCreate").collect();
            (*name, (family.to_owned(), tools.join(" ")))
        })
        .collect();
    let expected = [
        ("Bash", "the session's", "Bash"),
        ("Explore", "haiku", "Bash Glob Grep Read"),
        ("Plan", "the session's", "Bash Glob Grep Read"),
        ("claude-code-guide", "haiku", "Glob Grep Read WebFetch WebSearch"),
        ("general-purpose", "the session's", "Bash Edit Glob Grep NotebookEdit Read WebFetch WebSearch Write"),
        ("statusline-setup", "sonnet", "Edit Read"),
    ];
    let expected: BTreeMap<&str, (String, String)> =
        expected.into_iter().map(|(name, model, tools)| (name, (model.to_owned(), tools.to_owned()))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn an_agent_granted_alone_is_the_only_one_and_can_neither_write_nor_call_others() {
    let agents = Agents::built_in();
    let explore = agents.for_background("Explore").unwrap();
    let write = json!({ "file_path": "note.txt", "content": "x" });
    let api = session(
        &[("Explore", &explore.prompt), ("Plan", &explore.prompt), ("claude", &explore.prompt)],
        vec![
            Reply::call("Write", write),
            call("Explore"),
            Reply::bash("mkdir evil"),
            Reply::bash("git add . && npm install"),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    turn(&api, folder.path(), &agents_argument([explore]).unwrap().unwrap(), &hidden_agents([explore]));

    assert_eq!(listed(&api), ["Explore"]);
    let requests = api.requests();
    let inside = requests.iter().rfind(|request| system_prompt(request).contains(&explore.prompt)).unwrap();
    assert_eq!(inside.tools(), ["Bash", "Glob", "Grep", "Read"]);
    let refused: Vec<(String, bool)> =
        inside.results().into_iter().map(|result| (result.tool, result.is_error)).collect();
    let bash = || ("Bash".to_owned(), true);
    assert_eq!(refused, [("Write".to_owned(), true), ("Agent".to_owned(), true), bash(), bash()]);
    // The session's other calls fail: the client has those agents, but not for this session.
    let outside = requests.iter().rfind(|request| !system_prompt(request).contains(&explore.prompt)).unwrap();
    let answers: Vec<bool> = outside.results().into_iter().map(|result| result.is_error).collect();
    assert_eq!(answers, [false, true, true]);
    assert_eq!(std::fs::read_dir(folder.path().join("work")).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_mode_that_grants_everything_is_not_handed_on() {
    let file =
        "---\nname: eager\ndescription: d\ntools: Bash, Write\npermissionMode: bypassPermissions\n---\nBe eager.\n";
    let work =
        vec![Reply::bash("touch by-bash"), Reply::call("Write", json!({"file_path": "by-write", "content": "x"}))];
    let written = |argument: &str| {
        let api = session(&[("eager", "Be eager.")], work.clone());
        let folder = tempfile::tempdir().unwrap();
        turn(&api, folder.path(), argument, &[]);
        assert!(api.requests().iter().any(|request| system_prompt(request).contains("Be eager.")), "it ran");
        std::fs::read_dir(folder.path().join("work")).unwrap().count()
    };
    // The attack is real: if the file were passed as it is, its mode would override the session's `dontAsk` (until 2.1.330).
    let raw = json!({"eager": {"description": "d", "prompt": "Be eager.", "tools": ["Bash", "Write"],
        "permissionMode": "bypassPermissions"}});
    let wrote = written(&raw.to_string());
    assert!(wrote == 2 || (wrote == 0 && client::named().is_some()), "{wrote}");

    let bot = TestBot::new();
    bot.write("agents/eager.md", file);
    let agents = Agents::load(&Home::new(bot.home()), None);
    assert_eq!(written(&agents_argument([agents.get("eager").unwrap()]).unwrap().unwrap()), 0);
}

#[test]
fn agents_are_listed_with_where_they_come_from() {
    let bot = TestBot::new();
    bot.write("agents/plan.md", "---\nname: Plan\ndescription: Mine\ntools: Read\n---\nPlan it my way.\n");
    bot.write("agents/broken.md", "---\nname: Explore\ndescription: d\ntools: []\n---\nx\n");
    let theirs = bot.person().join(".claude/agents");
    std::fs::create_dir_all(&theirs).unwrap();
    std::fs::write(theirs.join("Plan.md"), "---\nname: Plan\ndescription: Hidden\n---\nx\n").unwrap();
    std::fs::write(theirs.join("r.md"), "---\nname: reviewer\ndescription: Reads diffs\n---\nReview.\n").unwrap();

    let list = bot.json(["agents", "list"]);
    let places: Vec<String> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            let file = agent["file_path"].as_str().unwrap().rsplit('/').next().unwrap();
            let state = if agent["error"].is_null() { "ok" } else { agent["error"]["message"].as_str().unwrap() };
            format!("{} {} {} {file} {state}", agent["priority"], agent["scope"].as_str().unwrap(), agent["name"])
        })
        .collect();
    insta::assert_snapshot!(places.join("\n"), @r#"
    3 builtin "Bash" <builtin:Bash> ok
    3 builtin "claude-code-guide" <builtin:claude-code-guide> ok
    1 project "Explore" broken.md `tools` is empty: the agent could do nothing
    3 builtin "general-purpose" <builtin:general-purpose> ok
    1 project "Plan" plan.md ok
    2 user "reviewer" r.md ok
    3 builtin "statusline-setup" <builtin:statusline-setup> ok
    "#);

    let plan = bot.json(["agents", "show", "Plan"]);
    assert_eq!(plan["file_path"], bot.path("agents/plan.md").to_str().unwrap());
    assert_eq!((&plan["scope"], &plan["priority"]), (&json!("project"), &json!(1)));
    assert_eq!((&plan["prompt"], &plan["tools"]), (&json!("Plan it my way."), &json!(["Read"])));
    let bash = bot.json(["agents", "show", "Bash"]);
    assert_eq!(
        (&bash["file_path"], &bash["scope"], &bash["priority"]),
        (&json!("<builtin:Bash>"), &json!("builtin"), &json!(3))
    );
}

#[test]
fn an_agent_that_cannot_be_used_says_why() {
    let bot = TestBot::new();
    bot.write("agents/broken.md", "---\nname: Explore\ndescription: d\ntools: []\n---\nx\n");
    let typed = |args: &[&str]| crate::cli::shown(&bot, &bot.run(args));
    insta::assert_snapshot!(typed(&["agents", "show", "Explore"]), @r#"
    exit: 1
    -- stderr
    error: agent `Explore` cannot be used: agents/broken.md:4:1: `tools` is empty: the agent could do nothing
    hint: name the tools it has, or remove the line: then it has all that its caller has
    "#);
    insta::assert_snapshot!(typed(&["agents", "show", "plan"]), @r#"
    exit: 1
    -- stderr
    error: there is no agent `plan`; did you mean `Plan`?
    hint: `ollim-bot agents list` shows those there are
    "#);
    insta::assert_snapshot!(typed(&["agents", "list"]), @r#"
    exit: 0
    -- stdout
    AGENT              FROM     MODEL    TOOLS
    Bash               builtin  inherit  Bash                                         Runs shell commands and reports what came out. For git,…
    claude-code-guide  builtin  haiku    Glob, Grep, Read, WebFetch, WebSearch        Answers questions about Claude Code, the Claude Agent SDK…
    Explore            project  -        cannot be used
    general-purpose    builtin  default  *                                            Works through tasks of several steps and open questions on…
    Plan               builtin  inherit  Glob, Grep, Read, LS, LSP, Bash (read-only)  Designs how to build something before anyone builds it, and…
    statusline-setup   builtin  sonnet   Read, Edit                                   Sets up the status line of the agent client, in the…
    -- stderr
    error: `tools` is empty: the agent could do nothing
      --> agents/broken.md:4:1
    hint: name the tools it has, or remove the line: then it has all that its caller has
    "#);
    let bash = bot.ok(["agents", "show", "Bash"]);
    let head: Vec<&str> = bash.lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(head.join("\n"), @"
    name         Bash
    description  Runs shell commands and reports what came out. For git, builds, tests and other work of the terminal.
    file         <builtin:Bash>
    scope        builtin (priority 3)
    model        inherit
    tools        Bash
    mode         default
    ");
    assert!(bash.contains("\n\nYou run commands in a shell for another agent"));
}
