//! Spawned agents on the real client: the rights of each, who may start them, and that each ends once.

use serde_json::{Value, json};

use crate::agents::{call, system_prompt};
use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, Request, ToolResult};

/// Returns whether a request belongs to a spawned agent's session.
fn is_child(request: &Request) -> bool {
    request.mentions("[spawned:spawn-")
}

/// An API whose jobs make the calls of `caller` and whose spawned agents those of `child`.
fn api(caller: Vec<Reply>, child: Vec<Reply>) -> MessagesApi {
    MessagesApi::answering(move |request| {
        let replies = if is_child(request) { &child } else { &caller };
        replies.get(request.answers()).cloned().unwrap_or_else(|| Reply::say("the result"))
    })
}

/// Returns the last request of a spawned agent.
#[track_caller]
fn of_child(api: &MessagesApi) -> Request {
    let requests = api.requests();
    let longest = requests.iter().filter(|request| is_child(request)).max_by_key(|request| request.answers());
    longest.expect("a spawned agent asked the model").clone()
}

fn spawn(arguments: Value) -> Reply {
    Reply::call("mcp__discord__spawn_agent", arguments)
}

/// Returns the child sessions, newest first.
#[track_caller]
fn children(bot: &TestBot) -> Vec<Value> {
    let sessions = bot.json(["sessions", "list"]);
    sessions.as_array().unwrap().iter().filter(|session| session["kind"] == "child").cloned().collect()
}

/// Waits until this many child sessions exist and each has ended.
#[track_caller]
fn until_children_ended(service: &Service<'_>, bot: &TestBot, count: usize) -> Vec<Value> {
    service.until("the spawned agents have ended", || {
        let all = children(bot);
        let over = all
            .iter()
            .filter(|session| !["waiting", "claimed", "running"].contains(&session["state"].as_str().unwrap()));
        (over.count() >= count && all.len() >= count).then_some(all)
    })
}

fn job(fields: &str) -> String {
    reminder(now(), &format!("background: true\nisolated: true\nretry: 0\n{fields}"), "Do the thing.")
}

fn errors(results: &[ToolResult]) -> Vec<bool> {
    results.iter().map(|result| result.is_error).collect()
}

#[test]
fn a_job_spawns_an_agent_that_has_no_more_than_it_and_spawns_none() {
    let api = api(
        vec![
            spawn(json!({ "prompt": "Too much.", "tools": { "allow": ["Bash(ls *)", "Bash(git *)"] } })),
            spawn(json!({ "prompt": "Misspelled.", "tools": { "alow": ["Read"] } })),
            spawn(json!({ "prompt": "As nobody.", "agent": "Nobody" })),
            spawn(json!({ "prompt": " " })),
            spawn(json!({ "prompt": "Look around.", "tools": { "deny": ["Bash(cat *)"] }, "timeout_minutes": 3 })),
            Reply::bash("cat notes.txt"),
        ],
        vec![
            Reply::bash("ls"),
            Reply::bash("cat notes.txt"),
            Reply::call("Write", json!({ "file_path": "evil", "content": "x" })),
            spawn(json!({ "prompt": "Again." })),
            Reply::call("mcp__discord__sessions_spawn", json!({ "prompt": "Again." })),
            call("Explore"),
            Reply::bash("ollim-bot spawn -m again"),
            Reply::bash("ollim-bot reminder add --in 1h -m again --background"),
            Reply::bash("ollim-bot help"),
        ],
    );
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/notes.txt", "the notes");
    let granted =
        "  - Bash(ls *)\n  - Bash(cat *)\n  - Bash(ollim-bot *)\n  - Agent(Explore)\n  - mcp__discord__spawn_agent\n";
    bot.write("reminders/job.md", &job(&format!("allowed_tools:\n{granted}")));
    let service = bot.start();
    service.until_ended("job", 1);
    let children = until_children_ended(&service, &bot, 1);
    assert_eq!(children.len(), 1, "{children:#?}");
    service.stop();
    bot.until_no_processes();

    let requests = api.requests();
    let caller = requests.iter().rfind(|request| !is_child(request) && !request.mentions("Explore an")).unwrap();
    let results = caller.results();
    assert_eq!(errors(&results), [true, true, true, true, false, false], "{results:#?}");
    assert!(results[0].text.contains("`Bash(git *)` is more than"), "{:?}", results[0]);
    assert!(caller.tools().contains(&"mcp__discord__spawn_agent".to_owned()));
    assert!(!caller.tools().contains(&"mcp__discord__sessions_spawn".to_owned()), "only where it is asked for");
    let run = bot.json(["runs", "show", bot.runs("job")[0]["run"].as_str().unwrap()]);
    let refused: Vec<&str> =
        run["denials"].as_array().unwrap().iter().filter_map(|denial| denial["reason"].as_str()).collect();
    assert!(refused.iter().any(|reason| reason.contains("`Bash(git *)` is more than")), "{refused:#?}");

    let child = of_child(&api);
    assert_eq!(child.tools(), ["Bash"], "no agents, no spawning");
    let results = child.results();
    assert_eq!(errors(&results), [false, true, true, true, true, true, true, true, false], "{results:#?}");
    assert_eq!(bot.names("work"), ["notes.txt"]);
    assert!(bot.names("reminders").iter().all(|name| !name.ends_with(".md")));

    let session = &children[0];
    assert_eq!((&session["state"], &session["answer"]), (&json!("completed"), &json!("the result")));
    assert_eq!(session["spawned_by"], "reminder job");
    assert_eq!(session["spawnToolPolicy"], json!({ "deny": ["Bash(cat *)"] }));
    let id = session["session"].as_str().unwrap();
    let run = bot.json(["runs", "show", session["run"].as_str().unwrap()]);
    assert_eq!((&run["id"], &run["kind"], &run["outcome"]), (&json!(id), &json!("session"), &json!("completed")));
    assert!(run["denials"].as_array().unwrap().len() >= 5, "{run:#}");
    assert_eq!(bot.runs(id).len(), 1, "one outcome");
    assert_eq!(bot.json(["sessions", "show", id])["session"], session["session"]);
}

/// Whether each of four calls runs: `ls`, `cat`, `Read`, and `stat`, which the caller may not run itself.
type Runs = [bool; 4];

/// Lets a job spawn one agent for each case under these settings, and compares the calls that ran.
#[track_caller]
fn merged(settings: &str, cases: &[(Option<Value>, Runs)]) {
    let bot = TestBot::new();
    let calls = vec![
        Reply::bash("ls"),
        Reply::bash("cat notes.txt"),
        Reply::call("Read", json!({ "file_path": bot.path("work/notes.txt") })),
        Reply::bash("stat notes.txt"),
    ];
    let spawns = cases.iter().enumerate().map(|(n, (tools, _))| {
        let mut arguments = json!({ "prompt": format!("This is case {n}.") });
        arguments.as_object_mut().unwrap().extend(tools.clone().map(|tools| ("tools".to_owned(), tools)));
        Reply::call("mcp__discord__sessions_spawn", arguments)
    });
    let api = api(spawns.collect(), calls);
    let bot = bot
        .env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", client::real().to_str().unwrap())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    bot.write("config.yaml", &format!("tools: {{ subagents: {{ tools: {settings} }} }}\n"));
    bot.write("work/notes.txt", "the notes");
    let granted = "  - Bash(ls *)\n  - Bash(cat *)\n  - Read\n  - mcp__discord__sessions_spawn\n";
    bot.write("reminders/job.md", &job(&format!("allowed_tools:\n{granted}")));
    let service = bot.start();
    service.until_ended("job", 1);
    until_children_ended(&service, &bot, cases.len());
    service.stop();
    for (n, (tools, runs)) in cases.iter().enumerate() {
        let requests = api.requests();
        let of_case = requests.iter().filter(|request| is_child(request) && request.mentions(&format!("case {n}.")));
        let results = of_case.map(Request::results).max_by_key(Vec::len).unwrap();
        let ran: Vec<bool> = errors(&results).into_iter().map(|failed| !failed).collect();
        assert_eq!(ran, runs, "{settings} and {tools:?}: {results:#?}");
    }
}

#[test]
fn the_settings_and_the_spawn_are_merged_and_the_caller_caps() {
    let (yes, no) = (true, false);
    // Without an `allow`, the agent has the caller's rights.
    merged("{}", &[(None, [yes, yes, yes, no]), (Some(json!({ "allow": [] })), [no; 4])]);
    // The agent's own `allow`, even an empty one, replaces that of the settings.
    merged(
        "{ allow: ['Bash(ls *)', 'Bash(stat *)'] }",
        &[
            (None, [yes, no, no, no]),
            // Filters read what `Read` grants.
            (Some(json!({ "allow": ["Read"] })), [no, yes, yes, no]),
            (Some(json!({ "deny": ["Bash(ls *)"] })), [no; 4]),
        ],
    );
    // Denials add up and take precedence over `allow`.
    merged(
        "{ deny: ['Bash(cat *)'] }",
        &[
            (None, [yes, no, yes, no]),
            (Some(json!({ "deny": ["Bash(ls *)"] })), [no, no, yes, no]),
            (Some(json!({ "allow": ["Bash(cat *)", "Read"] })), [no, no, yes, no]),
        ],
    );
}

#[test]
fn an_agent_that_waits_begins_with_what_its_caller_has_left() {
    let bot = TestBot::new().env("OLLIM_MAX_CONCURRENT_RUNS", "1");
    let file = |tools: &str| {
        let fields = "cron: '@yearly'\nbackground: true\nisolated: true\nretry: 0";
        format!("---\n{fields}\nallowed_tools: [{tools}]\n---\nDo the thing.\n")
    };
    let path = bot.path("routines/job.md");
    let narrowed = file("'Bash(ls *)', mcp__discord__spawn_agent");
    let api = MessagesApi::answering(move |request| match (is_child(request), request.answers()) {
        (false, 0) => spawn(json!({ "prompt": "Look around." })),
        (false, _) => {
            // The agent waits for the place of its caller.
            std::fs::write(&path, &narrowed).unwrap();
            Reply::say("done")
        }
        (true, 0) => Reply::bash("ls"),
        (true, 1) => Reply::bash("cat notes.txt"),
        (true, _) => Reply::say("the result"),
    });
    let bot = bot.client(&client::real(), api.url());
    bot.write("work/notes.txt", "the notes");
    bot.write("routines/job.md", &file("'Bash(ls *)', 'Bash(cat *)', mcp__discord__spawn_agent"));
    let service = bot.start();
    service.fire("job");
    until_children_ended(&service, &bot, 1);
    let results = of_child(&api).results();
    assert_eq!(errors(&results), [false, true], "{results:#?}");
    service.stop();
}

#[test]
fn the_person_spawns_shows_and_patches_once() {
    let api = api(vec![], vec![Reply::bash("ls"), Reply::Silence]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let refused = |words: &[&str], part: &str| {
        let ran = bot.run(words);
        assert!(ran.code != 0 && ran.stderr.contains(part), "{words:?}: {ran:#?}");
    };
    refused(&["spawn", "-m", "x"], "the service is not running");
    let service = bot.start();
    refused(&["spawn", "-m", "x", "--agent", "Exploer"], "did you mean `Explore`?");
    refused(&["spawn", "-m", "x", "--allow", "Raed"], "did you mean `Read`?");
    refused(&["spawn", "-m", "x", "--allow", "Read", "TaskStop"], "`TaskStop` is more than the main session may do");
    let said = bot.json(["spawn", "-m", "Look around.", "--agent", "Explore", "--timeout", "10m"]);
    let id = said["session"].as_str().unwrap().to_owned();
    service.until("it has made its first call", || (!of_results(&api).is_empty()).then_some(()));
    assert!(
        system_prompt(&of_child(&api)).contains(&ollim_bot::agents::Agents::built_in().get("Explore").unwrap().prompt)
    );
    assert!(children(&bot)[0]["spawnToolPolicy"].is_null());

    for main in ["main", "nobody"] {
        let part = if main == "main" { "the main session has no tool policy" } else { "there is no child session" };
        refused(&["sessions", "patch", main, "--deny", "Bash"], part);
    }
    refused(&["sessions", "patch", &id], "no tools were named");
    bot.ok(["sessions", "patch", &id, "--allow", "", "--deny", "Bash"]);
    assert_eq!(children(&bot)[0]["spawnToolPolicy"], json!({ "allow": [], "deny": ["Bash"] }));
    refused(&["sessions", "patch", &id, "--allow", "Read"], "once set it cannot be changed");
    assert_eq!(children(&bot)[0]["spawnToolPolicy"], json!({ "allow": [], "deny": ["Bash"] }));

    // A spawn with tools has them from its start.
    let other = bot.json(["spawn", "-m", "Look.", "--deny", "WebFetch"]);
    refused(
        &["sessions", "patch", other["session"].as_str().unwrap(), "--allow", "Read"],
        "once set it cannot be changed",
    );
    let run = service.until("it goes", || {
        children(&bot).iter().find(|one| one["session"] == id.as_str())?["run"].as_str().map(str::to_owned)
    });
    bot.ok(["cancel-run", &run]);
    service.until("it is over", || {
        let all = children(&bot);
        let one = all.iter().find(|one| one["session"] == id.as_str())?;
        (one["state"] == "cancelled").then_some(())
    });
    let third = bot.json(["spawn", "-m", "Look.", "--timeout", "1s"]);
    let third = third["session"].as_str().unwrap();
    let over = service.until_ended(third, 1);
    assert_eq!(over[0]["outcome"], "timed_out", "{over:#?}");
    refused(&["sessions", "patch", third, "--deny", "Bash"], "has ended");
}

/// Returns the results of the longest conversation of a spawned agent so far.
fn of_results(api: &MessagesApi) -> Vec<ToolResult> {
    api.requests()
        .iter()
        .filter(|request| is_child(request))
        .map(Request::results)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

#[test]
fn a_policy_that_is_set_while_the_agent_works_holds_from_then_on() {
    let told = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let waits = told.clone();
    let api = MessagesApi::answering(move |request| match request.answers() {
        0 => Reply::bash("ls"),
        // Repeats a harmless call until the policy is set.
        _ if !waits.load(std::sync::atomic::Ordering::SeqCst) => Reply::bash("ls"),
        _ if request.results().last().is_some_and(|last| last.is_error) => Reply::say("refused"),
        _ => Reply::bash("ls"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    let service = bot.start();
    let said = bot.json(["spawn", "-m", "Look around."]);
    let id = said["session"].as_str().unwrap();
    service.until("it works", || of_results(&api).first().cloned());
    bot.ok(["sessions", "patch", id, "--deny", "Bash(ls *)"]);
    told.store(true, std::sync::atomic::Ordering::SeqCst);
    let run = service.until_ended(id, 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let denials = run["denials"].as_array().unwrap();
    assert!(denials.iter().all(|denial| denial["rule"] == "Bash(ls *)"), "{denials:#?}");
    assert!(!denials.is_empty());
}

/// The policy that a session began with is narrowed, whatever its agent's file grants by then.
#[test]
fn a_policy_that_is_set_grants_nothing_that_an_agents_file_has_come_to_grant() {
    let told = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let waits = told.clone();
    let api = MessagesApi::answering(move |request| match request.results().last() {
        _ if !waits.load(std::sync::atomic::Ordering::SeqCst) => Reply::bash("ls"),
        Some(last) if last.is_error => Reply::say("refused"),
        _ => Reply::bash("touch widened.txt"),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    let agent = |tools: &str| format!("---\nname: rd\ndescription: Reads.\ntools: {tools}\n---\nRead.\n");
    bot.write("agents/rd.md", &agent("Bash(ls *)"));
    let service = bot.start();
    let said = bot.json(["spawn", "-m", "Look around.", "--agent", "rd"]);
    let id = said["session"].as_str().unwrap();
    service.until("it works", || of_results(&api).first().cloned());
    bot.write("agents/rd.md", &agent("Bash(ls *), Bash(touch *)"));
    bot.ok(["sessions", "patch", id, "--deny", "WebFetch"]);
    told.store(true, std::sync::atomic::Ordering::SeqCst);
    let run = service.until_ended(id, 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(!bot.path("work/widened.txt").exists(), "{run:#}");
    assert!(run["denials"].to_string().contains("touch"), "{run:#}");
}

#[test]
fn a_spawned_agent_is_started_again_after_a_crash_and_has_one_outcome() {
    let api = api(vec![], vec![Reply::Silence]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let service = bot.start();
    let said = bot.json(["spawn", "-m", "Look around.", "--deny", "Bash"]);
    let id = said["session"].as_str().unwrap();
    service.until("it asks the model", || api.requests().iter().any(is_child).then_some(()));
    service.kill();
    bot.until_no_processes();
    let answers = self::api(vec![], vec![]);
    let bot = bot.env("ANTHROPIC_BASE_URL", answers.url());
    let service = bot.start();
    let runs = service.until("it has ended", || {
        let runs = bot.runs(id);
        (runs.first()?["outcome"] == "completed").then_some(runs)
    });
    let outcomes: Vec<&str> = runs.iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["completed", "interrupted"]);
    assert!(!of_child(&answers).tools().contains(&"Bash".to_owned()), "under the policy that it carries");
    service.stop();
    // It has had its run: a restart does not start it again.
    let service = bot.start();
    service.stop();
    assert_eq!(bot.runs(id).len(), 2);
}

#[test]
fn a_job_spawns_by_the_command_line_where_that_is_granted() {
    let api = api(
        vec![
            Reply::bash("ollim-bot spawn -m 'Look.' --allow 'Bash(ls *)' --timeout 1m"),
            Reply::bash("ollim-bot spawn -m 'Look.' --allow Read"),
            Reply::bash("ollim-bot spawn -m 'Look.' --timeout 2h"),
            Reply::bash("ollim-bot sessions list"),
            Reply::bash("ollim-bot sessions patch main --deny Bash"),
        ],
        vec![Reply::bash("ls"), Reply::bash("cat notes.txt"), Reply::bash("ollim-bot spawn -m again")],
    );
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("work/notes.txt", "the notes");
    let granted = "  - Bash(ls *)\n  - Bash(cat *)\n  - Bash(ollim-bot spawn *)\n  - Bash(ollim-bot sessions *)\n";
    bot.write("reminders/job.md", &job(&format!("allowed_tools:\n{granted}")));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    let children = until_children_ended(&service, &bot, 1);
    assert_eq!(children.len(), 1, "{children:#?}");
    let requests = api.requests();
    let results = requests.iter().rfind(|request| !is_child(request)).unwrap().results();
    assert_eq!(errors(&results), [false, true, true, false, true], "{results:#?}");
    assert!(results[0].text.contains("spawned spawn-"), "{:?}", results[0]);
    assert!(results[1].text.contains("`Read` is more than reminder job"), "{:?}", results[1]);
    assert!(results[2].text.contains("`--timeout 2h` is more than reminder job"), "{:?}", results[2]);
    assert!(results[4].text.contains("the person's alone"), "{:?}", results[4]);
    assert_eq!(errors(&of_child(&api).results()), [false, true, true]);
    let denials = bot.json(["runs", "show", run["run"].as_str().unwrap()])["denials"].as_array().unwrap().len();
    assert_eq!(denials, 3, "what was refused is in the record");
}

#[test]
fn how_many_agents_a_run_starts_is_bounded() {
    let spawns = (0..10).map(|n| spawn(json!({ "prompt": format!("Task {n}.") }))).collect();
    let api = api(spawns, vec![]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/job.md", &job("allowed_tools: [mcp__discord__spawn_agent]\n"));
    let service = bot.start();
    service.until_ended("job", 1);
    until_children_ended(&service, &bot, 8);
    let requests = api.requests();
    let caller = requests.iter().rfind(|request| !is_child(request)).unwrap();
    let expect = [false, false, false, false, false, false, false, false, true, true];
    assert_eq!(errors(&caller.results()), expect, "{:#?}", caller.results());
    assert_eq!(children(&bot).len(), 8);
}

/// Without a service a run has one of its own, which ends with it. What the run spawned may be left for the next service.
#[test]
fn agents_that_a_single_run_leaves_are_told_of() {
    let api = api((0..6).map(|n| spawn(json!({ "prompt": format!("Task {n}.") }))).collect(), vec![]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", "timezone: UTC\nmax_concurrent_runs: 1\n");
    let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: [mcp__discord__spawn_agent]\n";
    bot.write("routines/job.md", &format!("---\ncron: '@yearly'\n{fields}---\nDo the thing.\n"));
    let fired = bot.run(["fire", "job"]);
    assert!(fired.stderr.contains(" for a running service: `ollim-bot run` or"), "{fired:#?}");
    let service = bot.start();
    until_children_ended(&service, &bot, 6);
    service.stop();
}
