//! Grants and refusals of a file, on the real client: a stub of the model makes the agent try everything.

use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply, ToolResult};

/// The script of a small command of one's own, which notes that it ran, and its arguments.
const NOTES_ITSELF: &str =
    "#!/bin/sh\necho \"$0 $*\" | sed 's|.*/||' >> \"$OLLIM_HOME/tools/NAME/ran\"\necho \"ran NAME $*\"\n";

/// Returns a bot on the real client whose `gmail` and `cal` note in `tools/` that they ran.
fn bot(api: &MessagesApi) -> TestBot {
    let bot = TestBot::with_client(&client::real(), api.url());
    for name in ["gmail", "cal"] {
        bot.external_command(name, &NOTES_ITSELF.replace("NAME", name));
        std::fs::create_dir_all(bot.path(&format!("tools/{name}"))).unwrap();
    }
    bot.write("work/notes.txt", "the notes");
    bot.write("work/secret", "the secret word is xyzzy");
    bot
}

/// Runs one background job through the replies. Returns the run and the results of its calls, in order.
#[track_caller]
fn live(bot: &TestBot, api: &MessagesApi, fields: &str) -> (Value, Vec<ToolResult>) {
    let fields = format!("background: true\nisolated: true\nretry: 0\n{fields}");
    bot.write("reminders/job.md", &reminder(now(), &fields, "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    bot.until_no_processes();
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    (shown, api.last().results())
}

/// Returns the only result of this call.
#[track_caller]
fn of<'a>(results: &'a [ToolResult], tool: &str, input: &Value) -> &'a ToolResult {
    let mut all = results.iter().filter(|result| result.tool == tool && result.input == *input);
    let result = all.next().unwrap_or_else(|| panic!("{tool} {input} has a result: {results:#?}"));
    assert!(all.next().is_none(), "one result");
    result
}

fn bash(command: &str) -> (String, Value) {
    ("Bash".into(), json!({ "command": command, "description": "test" }))
}

/// Each call has a reply of its own. The client ends side-by-side calls together, so some would never be decided.
fn one_by_one(calls: &[(String, Value)]) -> MessagesApi {
    MessagesApi::script(calls.iter().map(|(tool, input)| Reply::call(tool, input.clone())))
}

#[test]
fn an_allowlist_is_all_that_there_is() {
    let granted = [bash("ollim-bot help"), bash("ollim-bot gmail unread")];
    let refused = [
        bash("cat notes.txt"),
        bash("ollim-bot gmail x && touch evil"),
        bash("ollim-bot gmail $(cat secret)"),
        bash("ollim-bot gmail x > f"),
        ("Read".to_string(), json!({ "file_path": "WORK/notes.txt" })),
        ("Write".to_string(), json!({ "file_path": "WORK/evil", "content": "evil" })),
        ("CronCreate".to_string(), json!({ "cron": "* * * * *", "prompt": "evil" })),
        ("Task".to_string(), json!({ "description": "evil", "prompt": "evil", "subagent_type": "general-purpose" })),
        ("Agent".to_string(), json!({ "description": "evil", "prompt": "evil", "subagent_type": "Explore" })),
        bash("bash -c 'touch evil'"),
        bash("touch evil"),
        bash("OLLIM_RUN_TOKEN= ollim-bot gmail x"),
        bash("/tmp/../bin/cat secret"),
        bash("ollim-bot reminder add -m evil --in 1h"),
    ];
    let ping = ("mcp__discord__ping_user".to_string(), json!({ "message": "You have mail." }));
    let calls: Vec<_> = granted.iter().chain(&refused).chain([&ping]).cloned().collect();
    let api = one_by_one(&calls);
    let bot = bot(&api);
    let (run, results) = live(&bot, &api, "allowed_tools:\n  - Bash(ollim-bot gmail *)\n  - mcp__discord__ping_user\n");

    let mut seen: Vec<String> = api.requests().iter().flat_map(|request| request.tools()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["Bash", "mcp__discord__ping_user"], "in no request is anything else");

    let help = of(&results, "Bash", &granted[0].1);
    assert!(!help.is_error && help.text.contains("ollim-bot"), "{help:?}");
    let gmail = of(&results, "Bash", &granted[1].1);
    assert!(!gmail.is_error && gmail.text.contains("ran gmail unread"), "{gmail:?}");
    assert_eq!(
        bot.read("tools/gmail/ran").as_deref(),
        // The granted parts of a line run; the others do not.
        Some("ollim-bot-gmail unread\nollim-bot-gmail x\nollim-bot-gmail \n"),
        "what is granted ran, and nothing else of it"
    );

    let denials = run["denials"].as_array().unwrap();
    for (tool, input) in &refused {
        let result = of(&results, tool, input);
        assert!(result.is_error || result.text.contains("denied"), "{result:?}");
        assert!(
            result.text.len() > 20 && !result.text.contains("xyzzy"),
            "a sentence the agent can act on: {result:?}"
        );
        // The record has each refused program of a line. The shell itself reports a file that it could not open.
        let recorded = denials.iter().find(|denial| denial["tool"] == *tool && denial["input"] == *input);
        assert!(recorded.is_some() || tool == "Bash", "{tool} {input} is in `runs show`: {denials:#?}");
    }
    assert!(denials.iter().all(|denial| !denial["reason"].as_str().unwrap().is_empty()), "{denials:#?}");
    let programs: Vec<&str> = denials.iter().filter_map(|denial| denial["input"]["command"].as_str()).collect();
    assert!(programs.contains(&"touch evil"), "{programs:#?}");
    assert_eq!(bot.names("work"), ["notes.txt", "secret"], "nothing was written");
    assert!(!of(&results, &ping.0, &ping.1).is_error);
    let inbox = bot.json(["inbox"]);
    let told: Vec<&Value> = inbox.as_array().unwrap().iter().collect();
    assert_eq!(told.len(), 1, "{inbox:#}");
    assert!(told[0]["text"].as_str().unwrap().contains("You have mail."));
    assert!(api.requests().iter().all(|request| !request.mentions("xyzzy")));
}

#[test]
fn a_denylist_holds_against_every_spelling() {
    let binary = env!("CARGO_BIN_EXE_ollim-bot");
    let spellings = [
        "ollim-bot cal today".to_string(),
        "ollim-bot \"cal\"  today".into(),
        "bash -c 'ollim-bot cal today'".into(),
        format!("{binary} cal today"),
        "echo $(ollim-bot cal today)".into(),
        "echo hi; ollim-bot cal today".into(),
        "env X=1 ollim-bot cal today".into(),
        "x=cal; ollim-bot $x today".into(),
        "eval 'ollim-bot cal today'".into(),
        "timeout 5 ollim-bot cal today".into(),
        "ollim-bot --json cal today".into(),
        "ollim-bot --color never cal today".into(),
        "echo cal | xargs -I@ ollim-bot @ today".into(),
        "ollim-bot-cal today".into(),
        "p=ollim-bot; $p cal today".into(),
    ];
    let mut calls: Vec<_> = spellings.iter().map(|line| bash(line)).collect();
    calls.push(bash("ollim-bot gmail unread"));
    calls.push(("WebFetch".into(), json!({ "url": "http://127.0.0.1:9/", "prompt": "x" })));
    let api = one_by_one(&calls);
    let bot = bot(&api);
    let (run, results) =
        live(&bot, &api, "disallowed_tools:\n  - Bash(ollim-bot cal *)\n  - WebFetch\n  - WebSearch\n");

    for request in api.requests() {
        let tools = request.tools();
        assert!(!tools.iter().any(|tool| tool == "WebFetch" || tool == "WebSearch"), "{tools:?}");
        assert!(tools.iter().any(|tool| tool == "Bash"), "{:#}", request.body);
    }
    assert_eq!(bot.read("tools/cal/ran"), None, "no spelling reached it");
    for line in &spellings {
        let (tool, input) = bash(line);
        let result = of(&results, &tool, &input);
        assert!(result.text.contains("denied") && !result.text.contains("ran cal"), "{result:?}");
    }
    // Each denial has the words of the program's start, whatever the line looked like.
    let denials = run["denials"].as_array().unwrap();
    let cal = |denial: &&Value| denial["rule"] == "Bash(ollim-bot cal *)";
    assert!(denials.iter().filter(cal).count() >= 6, "{denials:#?}");
    let gmail = of(&results, "Bash", &bash("ollim-bot gmail unread").1);
    assert!(!gmail.is_error && gmail.text.contains("ran gmail unread"), "{gmail:?}");
    assert_eq!(bot.read("tools/gmail/ran").as_deref(), Some("ollim-bot-gmail unread\n"));
}

#[test]
fn an_empty_allowlist_leaves_help_alone() {
    let calls = [bash("ollim-bot help"), bash("ollim-bot gmail unread"), bash("ls"), bash("ollim-bot help > f")];
    let api = one_by_one(&calls);
    let bot = bot(&api);
    let (_, results) = live(&bot, &api, "allowed_tools: []\n");
    assert_eq!(api.last().tools(), ["Bash"]);
    assert!(!of(&results, "Bash", &calls[0].1).is_error);
    for (tool, input) in &calls[1..] {
        assert!(of(&results, tool, input).is_error, "{input}");
    }
    assert_eq!(bot.read("tools/gmail/ran"), None);
}

#[test]
fn with_no_list_a_background_job_has_the_main_sessions_tools() {
    let background = MessagesApi::script([]);
    let bot = bot(&background);
    live(&bot, &background, "");
    let mut of_background = background.last().tools();

    let foreground = MessagesApi::script([]);
    let bot = self::bot(&foreground);
    bot.write("reminders/front.md", &reminder(now(), "", "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("front", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
    let mut of_main = foreground.last().tools();
    // The tools of our server depend on the caller: pings are for forks, for example.
    for tools in [&mut of_background, &mut of_main] {
        tools.retain(|tool| !tool.starts_with("mcp__discord__"));
    }
    assert_eq!(of_background, of_main);
    for tool in ["Agent", "Bash", "Read", "Edit", "WebFetch"] {
        assert!(of_main.iter().any(|shown| shown == tool), "{tool}: {of_main:?}");
    }
}

#[test]
fn a_body_that_names_a_file_reads_nothing() {
    let api = MessagesApi::script([]);
    let bot = bot(&api);
    let line = std::fs::read_to_string("/etc/passwd").unwrap().lines().next().unwrap().to_string();
    let secret = bot.path("work/secret");
    let body = format!("Look at @/etc/passwd and @{} and @secret, please.", secret.display());
    bot.write("reminders/job.md", &reminder(now(), "background: true\nisolated: true\nallowed_tools: []\n", &body));
    let service = bot.start();
    service.until_ended("job", 1);
    service.stop();
    assert!(api.last().mentions("@/etc/passwd"), "the body did arrive");
    for request in api.all() {
        assert!(!request.mentions(&line), "a line of /etc/passwd was sent");
        assert!(!request.mentions("xyzzy"), "a file of the working folder was sent");
    }
}

#[test]
fn what_is_refused_fills_neither_the_record_nor_the_log() {
    let line = "(exec -a $'a\\e[31m\\nFORGED LINE' \"$(type -P git)\") 2>/dev/null; n=$(printf 'x%.0s' {1..20000}); \
                for i in {1..230}; do git \"$n\" 2>/dev/null; done; echo end";
    let api = MessagesApi::script([Reply::bash(line), Reply::say("done")]);
    let bot = bot(&api);
    bot.write(
        "reminders/r.md",
        &reminder(now(), "background: true\nisolated: true\nallowed_tools: [Bash(ls *)]\n", "Try."),
    );
    let service = bot.start();
    let run = service.until_ended("r", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    let denials = run["denials"].as_array().unwrap();
    assert_eq!(denials.len(), 201);
    for denial in denials {
        let reason = denial["reason"].as_str().unwrap();
        assert!(reason.chars().count() < 1000 && !reason.contains(char::is_control), "{reason}");
        assert!(denial["input"]["command"].as_str().is_none_or(|command| command.chars().count() <= 2001));
    }
    let said = service.output();
    let refused: Vec<&str> = said.lines().filter(|line| line.contains("is not granted")).collect();
    assert!((1..=201).contains(&refused.len()), "{said}");
    assert!(!said.contains("\nFORGED") && said.contains("\\nFORGED"), "{said}");
    service.stop();
}
