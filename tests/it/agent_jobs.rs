//! Jobs and named agents on the real client: a job that runs as an agent, and a job that may call some.

use serde_json::json;

use crate::agents::{call, listed, system_prompt};
use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, ToolResult};

fn errors(results: &[ToolResult]) -> Vec<bool> {
    results.iter().map(|result| result.is_error).collect()
}

fn prompt_of(agent: &str) -> String {
    ollim_bot::agents::Agents::built_in().get(agent).unwrap().prompt.clone()
}

#[test]
fn a_job_runs_as_its_agent_and_a_read_only_one_changes_nothing() {
    let api = MessagesApi::script([
        Reply::bash("cat notes.txt"),
        Reply::bash("touch evil"),
        Reply::bash("git status > evil"),
        Reply::call("Write", json!({ "file_path": "evil", "content": "x" })),
        Reply::call("mcp__discord__report_updates", json!({ "message": "evil" })),
        Reply::bash("ollim-bot gmail send"),
    ]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/notes.txt", "the notes");
    bot.external_command("gmail", "#!/bin/sh\necho sent >> \"$OLLIM_HOME/tools/gmail/sent\"\n");
    let granted = "  - Read\n  - Edit\n  - Glob\n  - Bash\n  - WebSearch\n  - mcp__discord__report_updates\n";
    let run = bot.live(&format!("agent: Plan\nallowed_tools:\n{granted}"));

    let last = api.last();
    assert!(system_prompt(&last).contains(&prompt_of("Plan")), "it is told what the agent's file says");
    // Only tools of both the job and the agent: the agent has no Edit, no search and no report, and the job has no Grep.
    assert_eq!(last.tools(), ["Bash", "Glob", "Read"]);
    let told = "You may use only these tools; every other call is refused, so do not look for ways around:\n- Read\n- Glob\n- Bash\n";
    assert!(last.mentions(told) && last.mentions("You only read:"), "{}", last.body);
    let results = last.results();
    assert_eq!(errors(&results), [false, true, true, true, true, true], "{results:#?}");
    // The shell itself refuses to open the file; that is no call, so the record has no denial of it.
    assert_eq!(run["denials"].as_array().unwrap().len(), 4, "{run:#}");
    assert_eq!(bot.names("work"), ["notes.txt"]);
    assert_eq!(bot.read("tools/gmail/sent"), None);
}

#[test]
fn the_file_and_the_agent_are_merged_and_the_narrower_holds() {
    let bot = TestBot::new();
    bot.write(
        "agents/quick.md",
        "---\nname: quick\ndescription: d\ntools: [Read, 'Edit(notes/**)', 'Bash(git *)']\ndisallowedTools: ['Bash(git push *)']\n\
         model: haiku\nmaxTurns: 5\n---\nBe quick.\n",
    );
    let command = |fields: &str| -> Vec<String> {
        bot.write(
            "routines/job.md",
            &format!("---\ncron: '@daily'\nbackground: true\nagent: quick\n{fields}---\nWork.\n"),
        );
        let shown = bot.json(["fire", "job", "--dry-run"]);
        assert!(shown["system_prompt"].as_str().unwrap().ends_with("\n\nBe quick."), "{shown:#}");
        serde_json::from_value(shown["command"].clone()).unwrap()
    };
    let after = |words: &[String], flag: &str| {
        words.iter().position(|word| word == flag).map(|at| words[at + 1].clone()).unwrap_or_default()
    };
    let words = command("max_turns: 9\n");
    assert_eq!(after(&words, "--model"), "haiku");
    assert_eq!(after(&words, "--max-turns"), "5");
    assert_eq!(after(&words, "--tools"), "Bash,Edit,NotebookEdit,Read,Write");
    assert!(words.contains(&"Bash(git push *)".to_owned()), "{words:?}");
    let words = command("max_turns: 3\nmodel: opus\nallowed_tools: [Read, Grep]\n");
    assert_eq!((after(&words, "--model"), after(&words, "--max-turns")), ("opus".into(), "3".into()));
    assert_eq!(after(&words, "--tools"), "Bash,Read");

    let explain = |line: &str| {
        let ran = bot.run(["policy", "explain", "job", "--command", line]);
        (ran.code, ran.stdout)
    };
    command("");
    assert_eq!(explain("git log").0, 0);
    let (code, said) = explain("git push");
    assert!(code == 1 && said.contains("agent quick"), "{said}");
    assert_eq!(explain("ls").0, 1);
    let shown = bot.ok(["policy", "show", "job"]);
    assert!(shown.contains("allowed_tools of agent quick"), "{shown}");
}

#[test]
fn an_agent_that_is_not_there_or_broken_is_a_located_problem() {
    let bot = TestBot::new();
    bot.write("agents/broken.md", "---\nname: reviewer\ndescription: d\ntools: []\n---\nx\n");
    for (name, agent) in [("a", "Exploer"), ("b", "reviewer"), ("c", "statusline-setup"), ("d", "zzz")] {
        bot.write(&format!("routines/{name}.md"), &routine(&format!("background: true\nagent: {agent}\n")));
    }
    bot.write("routines/e.md", &routine("background: true\nallowed_tools:\n  - Read\n  - Agent(Exploer)\n"));
    insta::assert_snapshot!(shown(&bot, &bot.run(["check"])), @"
    exit: 1
    -- stdout
    error: routine `a`: there is no agent `Exploer`; did you mean `Explore`?
      --> routines/a.md:4:1
    hint: `ollim-bot agents list` shows those there are

    error: routine `b`: agent `reviewer` cannot be used: agents/broken.md:4:1: `tools` is empty: the agent could do nothing
      --> routines/b.md:4:1
    hint: name the tools it has, or remove the line: then it has all that its caller has

    error: routine `c`: agent `statusline-setup` works in the main session only
      --> routines/c.md:4:1
    hint: choose another one

    error: routine `d`: there is no agent `zzz`
      --> routines/d.md:4:1
    hint: `ollim-bot agents list` shows those there are

    warning: routine `e`: there is no agent `Exploer`; did you mean `Explore`?
      --> routines/e.md:6:5
    hint: `ollim-bot agents list` shows those there are

    1 definition in order, 4 errors, 1 warning
    ");
    let add = |agent: &str| bot.run(["reminder", "add", "--in", "1h", "-m", "x", "--background", "--agent", agent]);
    insta::assert_snapshot!(shown(&bot, &add("plan")), @"
    exit: 1
    -- stderr
    error: there is no agent `plan`; did you mean `Plan`?
    hint: `ollim-bot agents list` shows those there are
    ");
    assert!(bot.names("reminders").is_empty());
    let plan = add("Plan");
    assert!(plan.code == 0 && plan.stderr.contains("the job can neither reach you nor report"), "{plan:?}");
    assert!(!add("general-purpose").stderr.contains("can neither reach you"));
    let list = bot.json(["reminder", "list"]);
    let mut agents: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["agent"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["Plan", "general-purpose"]);
    let front = bot.run(["reminder", "add", "--in", "1h", "-m", "x", "--agent", "Plan"]);
    assert!(front.code == 1 && front.stderr.contains("`--agent` needs `--background`"), "{front:?}");
}

fn routine(fields: &str) -> String {
    format!("---\ncron: '0 0 29 2 *'\n{fields}---\nWork.\n")
}

#[test]
fn a_job_waits_for_its_agents_file() {
    let api = MessagesApi::script([]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let service = bot.start();
    bot.write("reminders/job.md", &reminder(now(), "background: true\nisolated: true\nagent: helper\n", "Work."));
    service.until("it is said", || service.output().contains("there is no agent `helper`").then_some(()));
    assert!(bot.runs("job").is_empty());
    bot.write("agents/helper.md", "---\nname: helper\ndescription: d\ntools: Read\n---\nHelp out.\n");
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(system_prompt(&api.last()).contains("Help out."));
    assert_eq!(api.last().tools(), ["Read"]);
}

/// A model that makes `outside` in the session and `inside` in the agent with this prompt.
fn two(prompt: String, outside: Vec<Reply>, inside: Vec<Reply>) -> MessagesApi {
    MessagesApi::answering(move |request| {
        let replies = if system_prompt(request).contains(&prompt) { &inside } else { &outside };
        replies.get(request.answers()).cloned().unwrap_or_else(|| Reply::say("done"))
    })
}

#[test]
fn an_agent_in_an_allowlist_is_ours_and_the_job_caps_what_it_does() {
    let prompt = prompt_of("Explore");
    let inside = vec![
        Reply::bash("ls notes"),
        Reply::bash("cat secret"),
        Reply::bash("touch evil"),
        Reply::call("Read", json!({ "file_path": "WORK/notes/a.txt" })),
        Reply::call("Read", json!({ "file_path": "WORK/secret" })),
        Reply::call("Edit", json!({ "file_path": "WORK/notes/a.txt", "old_string": "a", "new_string": "b" })),
        // The client passes a one-word line to its shell in another form.
        Reply::bash("pwd"),
    ];
    let elsewhere = |more: &str, value: &str| {
        let mut input = json!({ "subagent_type": "Explore", "description": "look", "prompt": "Look around." });
        input[more] = value.into();
        Reply::call("Agent", input)
    };
    let outside = vec![
        call("Explore"),
        call("Plan"),
        call("general-purpose"),
        call("claude"),
        Reply::bash("ls notes"),
        elsewhere("mode", "bypassPermissions"),
        elsewhere("isolation", "worktree"),
        Reply::bash("pwd"),
    ];
    let bot = TestBot::new();
    let path = |reply: Reply| match reply {
        Reply::Call(calls) => {
            let work = bot.path("work").display().to_string();
            let text = serde_json::to_string(&calls).unwrap().replace("WORK", &work);
            Reply::Call(serde_json::from_str(&text).unwrap())
        }
        other => other,
    };
    let api = two(prompt.clone(), outside, inside.into_iter().map(path).collect());
    let bot = bot
        .env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", client::real().to_str().unwrap())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    bot.write("work/notes/a.txt", "a");
    bot.write("work/secret", "xyzzy");
    let granted = "  - Agent(Explore)\n  - Bash(ls *)\n  - Read(notes/**)\n  - Edit(notes/**)\n";
    let run = bot.live(&format!("allowed_tools:\n{granted}"));

    assert_eq!(listed(&api), ["Explore"], "our one, once, and none of the client's own");
    let requests = api.requests();
    let inside = requests.iter().rfind(|request| system_prompt(request).contains(&prompt)).unwrap();
    assert_eq!(inside.tools(), ["Bash", "Read"], "what the agent has, of what the job has");
    let results = inside.results();
    assert_eq!(errors(&results), [false, true, true, false, true, true, false], "{results:#?}");
    assert!(results[5].text.contains("Edit"), "{:?}", results[5]);
    let outside = requests.iter().rfind(|request| !system_prompt(request).contains(&prompt)).unwrap();
    let expect = [false, true, true, true, false, true, true, false];
    assert_eq!(errors(&outside.results()), expect, "{:#?}", outside.results());
    assert_eq!(bot.names("work"), ["notes", "secret"]);
    assert_eq!(bot.read("work/notes/a.txt").as_deref(), Some("a"));
    // The run's record contains the agent's calls like the job's own: decided by the hook, or refused by the client.
    let denied: Vec<&str> =
        run["denials"].as_array().unwrap().iter().filter_map(|d| d["input"]["command"].as_str()).collect();
    assert_eq!(denied, ["touch evil"], "{run:#}");
}

#[test]
fn a_broken_agent_is_not_replaced_by_the_clients_own() {
    let prompt = prompt_of("Explore");
    let api = MessagesApi::script([call("Explore"), call("Plan")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("agents/broken.md", "---\nname: Explore\ndescription: d\ntools: []\n---\nx\n");
    bot.live("allowed_tools:\n  - Agent(Explore, Plan)\n  - Read\n");
    assert_eq!(listed(&api), ["Plan"]);
    let requests = api.requests();
    assert!(!requests.iter().any(|request| system_prompt(request).contains(&prompt)));
    let results = requests.iter().map(|request| request.results()).max_by_key(Vec::len).unwrap();
    assert_eq!(errors(&results), [true, false], "{results:#?}");
}

#[test]
fn the_main_session_has_our_agents_and_each_once() {
    let api = MessagesApi::script([]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/front.md", &reminder(now(), "", "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("front", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let mut names = listed(&api);
    names.sort_by_key(|name| name.to_lowercase());
    assert_eq!(names, ["Bash", "claude-code-guide", "Explore", "general-purpose", "Plan", "statusline-setup"]);
}

const CLERK: &str = "You keep the reminders.";

/// Creates a bot whose agent `clerk` may call `ollim-bot reminder` and `ollim-bot gmail`, which calls more by the binary's path.
fn with_clerk(outside: Vec<Reply>) -> (MessagesApi, TestBot) {
    let inside = vec![
        Reply::bash("ollim-bot reminder list"),
        Reply::bash("ollim-bot reminder add --in 1h --background -m evil"),
        Reply::bash("ollim-bot reminder add --in 1h -m 'evil in front'"),
        Reply::bash("ollim-bot gmail"),
    ];
    let api = two(CLERK.into(), outside, inside);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write(
        "agents/clerk.md",
        &format!(
            "---\nname: clerk\ndescription: d\ntools: Bash(ollim-bot reminder *), Bash(ollim-bot gmail)\n---\n{CLERK}\n"
        ),
    );
    let ours = env!("CARGO_BIN_EXE_ollim-bot");
    let line = |words: &str| format!("{ours} {words} > /dev/null && echo \"DONE {words}\"\n");
    let asks: String =
        ["reminder add --in 1h --background -m evil", "routine list", "reminder list"].map(line).concat();
    bot.external_command("gmail", &format!("#!/bin/bash\n{asks}exit 0\n"));
    (api, bot)
}

/// Asserts that the clerk saw the reminders and created none.
#[track_caller]
fn the_clerk_made_none(api: &MessagesApi, bot: &TestBot) {
    let requests = api.requests();
    let inside = requests.iter().rfind(|request| system_prompt(request).contains(CLERK)).unwrap();
    let results = inside.results();
    assert_eq!(errors(&results), [false, true, true, false], "{results:#?}");
    assert!(results[1].text.contains("makes and changes no jobs"), "{results:#?}");
    let done: Vec<&str> = results[3].text.lines().filter(|line| line.starts_with("DONE")).collect();
    assert_eq!(done, ["DONE reminder list"], "{results:#?}");
    assert!(!bot.json(["reminder", "list"]).to_string().contains("evil"));
}

#[test]
fn an_agent_that_a_job_calls_makes_no_jobs_of_the_jobs() {
    let good = Reply::bash("ollim-bot reminder add --in 1h --background -m good");
    let (api, bot) = with_clerk(vec![call("clerk"), good]);
    bot.live("allowed_tools:\n  - Agent(clerk)\n  - Bash(ollim-bot *)\n  - Edit(notes/**)\n");
    the_clerk_made_none(&api, &bot);
    assert!(bot.json(["reminder", "list"]).to_string().contains("good"), "the job itself may");
}

#[test]
fn an_agent_of_the_main_session_makes_no_turn_of_the_main_session() {
    let (api, bot) = with_clerk(vec![call("clerk")]);
    bot.write("reminders/front.md", &reminder(now(), "", "Ask the clerk."));
    let service = bot.start();
    let run = service.until_ended("front", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    the_clerk_made_none(&api, &bot);
}
