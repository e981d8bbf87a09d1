//! Calls with a question to the person, on the real client: a stub of the model makes the agent try them.

use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// A bot on the real client with one job, due now, that has these fields.
fn bot(api: &MessagesApi, fields: &str) -> TestBot {
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/job.md", &reminder(now(), &job(fields), "Do the thing."));
    bot
}

fn job(fields: &str) -> String {
    format!("background: true\nisolated: true\nretry: 0\n{fields}")
}

const TOUCH: &str = "allowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";

/// Returns the open questions, oldest first.
fn open(bot: &TestBot) -> Vec<Value> {
    let all = bot.json(["questions"]);
    all.as_array().unwrap().iter().filter(|question| question["answer"].is_null()).cloned().collect()
}

/// Waits until this many questions are open. Returns their numbers.
#[track_caller]
fn until_open(bot: &TestBot, service: &Service<'_>, count: usize) -> Vec<String> {
    let open = service.until(&format!("{count} open questions"), || {
        let open = open(bot);
        (open.len() == count).then_some(open)
    });
    open.iter().map(|question| question["number"].to_string()).collect()
}

/// Returns the answers of all questions, in order.
fn answers(bot: &TestBot) -> Vec<String> {
    let mut all = bot.json(["questions"]).as_array().unwrap().clone();
    all.sort_by_key(|question| question["number"].as_i64());
    all.iter().map(|question| question["answer"].as_str().unwrap_or("open").to_owned()).collect()
}

/// Returns the texts of the tool results, in order.
fn results(api: &MessagesApi) -> Vec<String> {
    api.last().results().into_iter().map(|result| result.text).collect()
}

#[test]
fn a_call_waits_for_the_answer_and_the_first_counts() {
    let api = MessagesApi::script([
        Reply::bash("touch made && echo touched"),
        Reply::bash("touch other || echo refused"),
        Reply::bash("touch evil"),
    ]);
    let bot = bot(&api, &format!("{TOUCH}description: Deploys\n"));
    let service = bot.start();
    let first = until_open(&bot, &service, 1).remove(0);
    assert!(bot.read("work/made").is_none());
    let question = &bot.json(["questions"])[0];
    let call = "touch made\nin the line 'touch made && echo touched'";
    assert_eq!((&question["call"], &question["asked_rule"]), (&json!(call), &json!("Bash(touch *)")));
    let message = &bot.json(["inbox"])[0];
    let text = message["text"].as_str().unwrap();
    for part in [
        "reminder job asks (question 1)",
        "\n\n```\ntouch made\nin the line 'touch made && echo touched'\n```\n\n",
        "`Bash(touch *)` of its ask_tools asks; \"run\" is for all that it matches.",
        "timeout of 30m",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = bot.ok(["questions", "answer", &first, "allow"]);
    assert_eq!(said, "question 1 of job is answered: allowed once\n");
    let second = until_open(&bot, &service, 1).remove(0);
    assert!(bot.read("work/made").is_some());
    let late = bot.run(["questions", "answer", &first, "deny"]);
    assert_eq!(late.code, 1);
    assert!(late.stderr.contains("question 1 is already closed: allowed once, by terminal"), "{late:?}");

    bot.ok(["questions", "answer", &second, "deny", "Not on a Friday."]);
    let third = until_open(&bot, &service, 1).remove(0);
    bot.ok(["questions", "answer", &third, "deny"]);
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let results = results(&api);
    assert!(results[0].contains("touched"), "{results:?}");
    assert!(
        results[1].contains("denied by the person: Not on a Friday.") && results[1].contains("refused"),
        "{results:?}"
    );
    assert_eq!((bot.read("work/other"), bot.read("work/evil")), (None, None));
    assert_eq!(answers(&bot), ["once", "deny", "deny"]);
    let run = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    assert_eq!(run["denials"][0]["layer"], "ask_tools", "{run:#}");
    let events = run["events"].to_string();
    for part in
        ["asks the person, question 1", "question 1 was allowed once, by terminal, after", "question 2 was denied"]
    {
        assert!(events.contains(part), "{part}: {run:#}");
    }
    service.stop();
}

#[test]
fn tools_and_commands_of_our_own_are_asked_about_too() {
    let api = MessagesApi::script([
        Reply::call("mcp__discord__ping_user", json!({ "message": "Hello." })),
        Reply::bash("ollim-bot gmail send"),
        Reply::call("Write", json!({ "file_path": "notes/a.md", "content": "a\n" })),
        Reply::bash("cat notes/secret; ollim-bot questions answer 4 allow; ollim-bot questions"),
        Reply::call("Read", json!({ "file_path": "notes/secret" })),
    ]);
    let bot = bot(
        &api,
        "allowed_tools: ['Bash(ollim-bot questions *)']\nask_tools: [mcp__discord__ping_user, 'Bash(ollim-bot gmail *)', Edit(notes/**)]\n",
    );
    bot.external_command("gmail", "#!/bin/sh\necho \"ran $*\"\n");
    bot.write("work/notes/secret", "xyzzy");
    let service = bot.start();
    for number in 1..=4 {
        let open = until_open(&bot, &service, 1);
        assert_eq!(open, [number.to_string()]);
        // A job cannot answer, not even through a question.
        bot.ok(["questions", "answer", &open[0], if number == 4 { "deny" } else { "allow" }]);
    }
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let results = results(&api);
    assert!(results[1].contains("ran send"), "{results:?}");
    assert_eq!(bot.read("work/notes/a.md").as_deref(), Some("a\n"), "{results:?}");
    // No program may open a path that needs a question, and no job answers.
    assert!(!results[3].contains("xyzzy") && results[3].contains("the person's alone"), "{results:?}");
    assert!(results[4].contains("denied by the person"), "{results:?}");
    let inbox = bot.json(["inbox"]).to_string();
    assert!(inbox.contains("Hello."), "{inbox}");
    service.stop();
}

#[test]
fn an_answer_for_the_run_holds_for_its_rule_and_no_other() {
    let api = MessagesApi::script([Reply::bash("touch a & touch b; wait; touch c; touch d"), Reply::bash("mkdir x")]);
    let bot = bot(&api, "allowed_tools: [Read]\nask_tools: ['Bash(touch *)', 'Bash(mkdir *)']\n");
    bot.write("routines/other.md", &format!("---\ncron: '0 0 29 2 *'\n{}---\nTry it.\n", job(TOUCH)));
    let service = bot.start();
    // Two calls side by side get one answer.
    let both = until_open(&bot, &service, 2);
    bot.ok(["questions", "answer", &both[1], "run"]);
    let mkdir = until_open(&bot, &service, 1).remove(0);
    for name in ["a", "b", "c", "d"] {
        assert!(bot.read(&format!("work/{name}")).is_some(), "{name}: {:?}", results(&api));
    }
    let answered = bot.json(["questions", "answer", &mkdir, "deny"]);
    assert_eq!((&answered["question"]["answer"], &answered["change"]), (&json!("deny"), &json!(null)), "{answered:#}");
    service.until_ended("job", 1);
    assert_eq!(answers(&bot), ["run", "run", "deny"]);
    // Another run asks again.
    bot.ok(["fire", "other"]);
    let again = until_open(&bot, &service, 2);
    bot.ok(["questions", "answer", &again[0], "run"]);
    service.until_ended("other", 1);
    assert_eq!(answers(&bot)[3..], ["run", "run"]);
    service.stop();
}

#[test]
fn always_moves_the_rule_in_the_file_exactly_as_it_was_shown() {
    let api = MessagesApi::script([Reply::bash("touch a"), Reply::bash("touch b")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let file = "---\n# Mine.\ncron: '0 0 29 2 *'\nbackground: true\nisolated: true\nallowed_tools:\n  - Read # all\n\
                ask_tools:\n  - Bash(touch *)\n  - WebFetch\n---\nDo it.\n";
    bot.write("routines/job.md", file);
    let service = bot.start();
    bot.ok(["fire", "job"]);
    let number = until_open(&bot, &service, 1).remove(0);
    let asked = bot.json(["inbox"])[0]["text"].as_str().unwrap().to_owned();
    assert!(asked.contains("\"run\" and \"always\" are for all that it matches."), "{asked}");
    let shown = "\n\"always\" changes routines/job.md:\n```\n allowed_tools:\n+  - Bash(touch *)\n ask_tools:\n-  - Bash(touch *)\n```\n";
    assert!(asked.contains(shown), "the change is shown before it is made: {asked}");
    let said = bot.ok(["questions", "answer", &number, "always"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "question 1 of job is answered: allowed always");
    // Only the rule moves.
    assert_eq!(
        lines[1..],
        ["routines/job.md:", " allowed_tools:", "+  - Bash(touch *)", " ask_tools:", "-  - Bash(touch *)"]
    );
    service.until_ended("job", 1);
    assert!(bot.read("work/b").is_some(), "later calls of the run, too");
    let shown = bot.json(["routine", "show", "job"]);
    assert_eq!(
        (&shown["allowed_tools"], &shown["ask_tools"]),
        (&json!(["Read", "Bash(touch *)"]), &json!(["WebFetch"]))
    );
    let text = bot.read("routines/job.md").unwrap();
    assert!(text.contains("# Mine.") && text.ends_with("---\nDo it.\n"), "{text}");

    // If the file is gone or has lost the rule, nothing is allowed and the question stays open.
    bot.write("routines/job.md", file);
    bot.ok(["fire", "job"]);
    let number = until_open(&bot, &service, 1).remove(0);
    bot.write("routines/job.md", &file.replace("  - Bash(touch *)\n", ""));
    let refused = bot.run(["questions", "answer", &number, "always"]);
    assert!(refused.code == 1 && refused.stderr.contains("does not hold `Bash(touch *)` any more"), "{refused:?}");
    std::fs::remove_file(bot.path("routines/job.md")).unwrap();
    let refused = bot.run(["questions", "answer", &number, "always"]);
    assert!(refused.code == 1 && refused.stderr.contains("the file of job is gone"), "{refused:?}");
    assert!(refused.stderr.contains(&format!("questions answer {number} run")), "{refused:?}");
    bot.ok(["questions", "answer", &number, "run"]);
    service.until_ended("job", 2);
    service.stop();
}

#[test]
fn silence_is_the_default_and_the_wait_is_no_silence_of_the_clients() {
    // The second deadline is longer than the client's own limit of silence.
    for (default, deadline, made, answer) in
        [("deny", "3s", false, "silence_deny"), ("allow", "25s", true, "silence_allow")]
    {
        let api = MessagesApi::script([Reply::bash("touch made")]);
        let bot = bot(&api, &format!("{TOUCH}ask: {{ deadline: {deadline}, default: {default} }}\n"));
        let bot = bot.env("OLLIM_INACTIVITY_TIMEOUT", "20s");
        let service = bot.start();
        let run = service.until_ended("job", 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
        assert_eq!(bot.read("work/made").is_some(), made);
        assert_eq!(answers(&bot), [answer]);
        let results = results(&api);
        assert_eq!(results[0].contains("did not answer within 3s"), !made, "{results:?}");
        service.stop();
    }
}

#[test]
fn a_question_ends_with_its_run_and_its_call() {
    // The run is ended by the person, by its own time limit, and because the asking line was ended.
    let api = MessagesApi::script([Reply::bash("touch made")]);
    let bot = bot(&api, TOUCH);
    let service = bot.start();
    until_open(&bot, &service, 1);
    let run = bot.runs("job").remove(0);
    bot.ok(["cancel-run", run["run"].as_str().unwrap()]);
    assert_eq!(service.until_ended("job", 1)[0]["outcome"], "cancelled");
    assert_eq!(answers(&bot), ["ended"]);
    let late = bot.run(["questions", "answer", "1", "allow"]);
    assert!(late.stderr.contains("already closed: dropped, since the call or its run ended"), "{late:?}");

    bot.write("reminders/slow.md", &reminder(now(), &job(&format!("{TOUCH}timeout: 6s\n")), "Do the thing."));
    assert_eq!(service.until_ended("slow", 1)[0]["outcome"], "timed_out");
    assert_eq!(answers(&bot), ["ended", "ended"]);
    assert!(bot.read("work/made").is_none());
    service.stop();
    bot.until_no_processes();

    let api = MessagesApi::script([Reply::bash("timeout 2 touch made; touch made & sleep 1; kill $!; echo over")]);
    let bot = bot.env("ANTHROPIC_BASE_URL", api.url());
    bot.write("reminders/gone.md", &reminder(now(), &job(TOUCH), "Do the thing."));
    let service = bot.start();
    let run = service.until_ended("gone", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(results(&api)[0].contains("over"), "{:?}", results(&api));
    assert_eq!(answers(&bot)[2..], ["ended", "ended"]);
    assert!(bot.read("work/made").is_none());
    service.stop();
}

#[test]
fn what_a_killed_service_asked_is_denied_and_the_person_is_told() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("mcp__discord__ping_user", json!({ "message": "Begun." })),
        1 => Reply::bash("touch made"),
        _ => Reply::say("done"),
    });
    let bot = bot(&api, "allowed_tools: [mcp__discord__ping_user]\nask_tools: ['Bash(touch *)']\n");
    let service = bot.start();
    let number = until_open(&bot, &service, 1).remove(0);
    service.kill();
    bot.until_no_processes();
    let absent = bot.run(["questions", "answer", &number, "allow"]);
    assert!(absent.code != 0 && absent.stderr.contains("the service is not running"), "{absent:?}");
    let service = bot.start();
    assert_eq!(answers(&bot), ["restarted"]);
    let inbox = bot.json(["inbox"]).to_string();
    assert!(
        inbox.contains("Question 1 of job needs no answer any more. It was denied: the service restarted."),
        "{inbox}"
    );
    let late = bot.run(["questions", "answer", &number, "allow"]);
    assert!(late.stderr.contains("already closed: denied: the service restarted"), "{late:?}");
    service.until_ended("job", 1);
    assert!(bot.read("work/made").is_none());
    service.stop();
}

#[test]
fn a_job_cannot_flood_the_person_and_cannot_hide_what_runs() {
    let long = "x".repeat(20_000);
    let api = MessagesApi::script([
        Reply::bash("for i in $(seq 20); do touch f$i & done; wait"),
        Reply::bash(&format!("touch {long} || echo refused")),
        Reply::bash("touch $'a\\nAnswer: allowed' $'\\u202ecod.exe'"),
    ]);
    let bot = bot(&api, TOUCH);
    let service = bot.start();
    until_open(&bot, &service, 8);
    // Calls that came meanwhile were refused at once. The line continues when the others are answered.
    let call = service.until("the last call asks", || {
        let open = open(&bot);
        let (hidden, first): (Vec<Value>, Vec<Value>) =
            open.into_iter().partition(|question| question["call"].as_str().unwrap().contains("Answer"));
        first
            .iter()
            .for_each(|question| drop(bot.run(["questions", "answer", &question["number"].to_string(), "deny"])));
        hidden.into_iter().next()
    });
    let shown = call["call"].as_str().unwrap();
    assert_eq!(shown.lines().next(), Some("touch $'a\\nAnswer: allowed' $'\\u202ecod.exe'"));
    assert!(shown.lines().count() == 2 && shown.chars().all(|c| c.is_ascii_graphic() || " \n".contains(c)), "{shown}");
    bot.ok(["questions", "answer", &call["number"].to_string(), "deny"]);
    service.until_ended("job", 1);
    let results = results(&api);
    assert!(results[0].contains("8 questions to the person are open already"), "{results:?}");
    assert!(results[1].contains("too long to be shown"), "{results:?}");
    assert!(answers(&bot).len() >= 9);
    assert_eq!(bot.names("work"), [""; 0]);
    service.stop();
}

#[test]
fn the_main_session_asks_about_what_the_settings_name() {
    let api = MessagesApi::script([Reply::bash("touch made && echo touched"), Reply::bash("touch other")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", "main_tools: [Read]\nmain_ask_tools: ['Bash(touch *)']\n");
    let service = bot.start();
    let chat = bot.start_with(["chat", "Touch them."]);
    let first = until_open(&bot, &service, 1).remove(0);
    assert!(bot.read("work/made").is_none());
    let message = &bot.json(["inbox"])[0];
    let text = message["text"].as_str().unwrap();
    assert!(text.starts_with("Your conversation with the bot asks (question 1)"), "{text}");
    bot.ok(["questions", "answer", &first, "allow"]);
    let second = until_open(&bot, &service, 1).remove(0);
    assert!(bot.read("work/made").is_some());
    let always = bot.run(["questions", "answer", &second, "always"]);
    assert_eq!(always.code, 1, "there is no file that it could stand in: {always:?}");
    bot.ok(["questions", "answer", &second, "deny", "One is enough."]);
    let (status, said) = chat.wait();
    assert!(status.success() && said.contains("done"), "{said}");
    assert!(results(&api)[1].contains("denied by the person: One is enough."), "{:?}", results(&api));
    assert_eq!((bot.read("work/other"), answers(&bot)), (None, vec!["once".to_owned(), "deny".to_owned()]));
    service.stop();
}

/// A no to an approval ends the run, whatever keeps others from starting: no slot is free, or the job or everything is paused.
#[test]
fn a_run_that_the_person_refuses_ends_at_once() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: UTC\nmax_concurrent_runs: 1\n");
    let exec = "background: true\nclient: exec\ncommand: sleep 300\nallowed_tools: ['Bash(sleep *)']\n";
    bot.write("routines/long.md", &format!("---\ncron: '0 0 29 2 *'\n{exec}---\n"));
    for id in ["full", "paused"] {
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &format!("approve: true\n{exec}"), ""));
    }
    let service = bot.start();
    until_open(&bot, &service, 2);
    bot.ok(["fire", "long"]);
    service.until("the slot is taken", || (bot.runs("long").first()?["outcome"] == "running").then_some(()));
    let refuse = |id: &str| {
        let question = open(&bot).into_iter().find(|question| question["id"] == id).unwrap();
        bot.ok(["questions", "answer", &question["number"].to_string(), "deny"]);
        let run = service.until_ended(id, 1).remove(0);
        assert_eq!(run["outcome"], "skipped", "{run:#}");
        assert!(run["error"].as_str().unwrap().starts_with("not approved: skipped"), "{run:#}");
    };
    refuse("full");
    assert_eq!(bot.runs("long")[0]["outcome"], "running");
    bot.ok(["pause"]);
    refuse("paused");
    bot.ok(["cancel-run", bot.runs("long")[0]["run"].as_str().unwrap()]);
    service.stop();
}

/// A yes is for the file that the person was asked about, at each attempt. What a job has made is shown whole, with its gate.
#[test]
fn a_yes_is_for_what_was_shown() {
    let bot = TestBot::new();
    let head = "approve: true\nbackground: true\nclient: exec\nretry: 2\nallowed_tools: ['Bash(touch *)']\n";
    let at = now();
    let file = |command: &str| {
        bot.write("reminders/job.md", &reminder(at, &format!("{head}command: {command}\n"), ""));
    };
    file("'echo harmless; exit 75'");
    let service = bot.start();
    let first = until_open(&bot, &service, 1).remove(0);
    let call = |number: &str| {
        let all = open(&bot);
        let number = number.parse().ok();
        all.iter().find(|one| one["number"].as_i64() == number).map(|one| one["call"].as_str().unwrap().to_owned())
    };
    // An edit while the question is open: it is dropped, and another one shows what would run now.
    file("'echo other; exit 75'");
    let second = service.until("it asks again", || {
        let open = open(&bot);
        open.iter().map(|one| one["number"].to_string()).find(|number| *number != first)
    });
    assert_eq!(call(&second).as_deref(), Some("echo other; exit 75"));
    assert_ne!(bot.run(["questions", "answer", &first, "run"]).code, 0);
    bot.ok(["questions", "answer", &second, "run"]);
    // An edit between two attempts.
    service.until("it is to be tried again", || bot.runs("job").first()?["retry_at"].as_str().map(drop));
    file("touch evil");
    let third = until_open(&bot, &service, 1).remove(0);
    assert_eq!(call(&third).as_deref(), Some("touch evil"));
    assert!(bot.read("work/evil").is_none());
    bot.ok(["questions", "answer", &third, "skip"]);
    service.stop();
    assert!(bot.read("work/evil").is_none());
}

/// A person who wants to approve each run of a job wants that for what it has made before, too.
#[test]
fn what_a_job_has_made_asks_once_its_maker_does() {
    let bot = TestBot::new();
    let maker = |approve: &str| {
        let fields = "client: exec\ncommand: 'true'\nallowed_tools: ['Bash(touch *)']\n";
        bot.write("routines/maker.md", &format!("---\ncron: '@yearly'\nbackground: true\n{approve}{fields}---\nx\n"));
    };
    let made = |id: &str| {
        let fields = format!("client: exec\ncommand: touch {id}\nallowed_tools: ['Bash(touch *)']\n");
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &format!("created_by: maker\n{fields}"), "x"));
    };
    maker("");
    let service = bot.start();
    made("before");
    service.until_ended("before", 1);
    assert!(bot.read("work/before").is_some());
    maker("approve: true\n");
    made("refused");
    let number = until_open(&bot, &service, 1).remove(0);
    bot.ok(["questions", "answer", &number, "skip"]);
    service.until_ended("refused", 1);
    made("approved");
    let number = until_open(&bot, &service, 1).remove(0);
    assert_eq!(bot.names("work"), ["before"]);
    bot.ok(["questions", "answer", &number, "run"]);
    service.until_ended("approved", 1);
    assert_eq!(bot.names("work"), ["approved", "before"]);
    service.stop();
}

/// What is shown beforehand is what happens at the time.
#[test]
fn what_a_maker_asks_for_is_shown_before_the_run() {
    let bot = TestBot::new();
    let exec = "background: true\nclient: exec\ncommand: 'true'\nallowed_tools: []\n";
    let job = |id: &str, fields: &str| {
        bot.write(&format!("routines/{id}.md"), &format!("---\ncron: '0 * * * *'\n{exec}{fields}---\nx\n"));
    };
    job("made", "created_by: middle\n");
    job("middle", "created_by: maker\n");
    let shown = || {
        [["fire", "made", "--dry-run"].as_slice(), &["next", "made"], &["simulate", "made"], &["why", "made"]]
            .map(|words| bot.ok(words.iter().copied()))
    };
    job("maker", "");
    let service = bot.start();
    for said in shown() {
        assert!(!said.contains("asks you first") && !said.contains("you approve it"), "{said}");
    }
    job("maker", "approve: true\n");
    let [dry_run, next, simulated, why] = shown();
    assert!(dry_run.contains("when it falls due it asks you first (`approve`)"), "{dry_run}");
    assert!(next.contains("asks you first"), "{next}");
    assert!(simulated.contains("skipped unless you approve it"), "{simulated}");
    assert!(why.contains("if you approve it"), "{why}");
    service.stop();
}

/// Jobs that jobs have made do not flood the person: the ninth is asked about when one of the others is answered.
#[test]
fn jobs_of_jobs_ask_a_few_questions_at_a_time() {
    let bot = TestBot::new();
    let fields =
        "created_by: maker\napprove: true\nbackground: true\nclient: exec\ncommand: echo on\nallowed_tools: []\n";
    bot.maker("maker");
    for id in 0..10 {
        bot.write(&format!("reminders/made{id}.md"), &reminder(now(), fields, ""));
    }
    let service = bot.start();
    let first = until_open(&bot, &service, 8).remove(0);
    service.until("all are due", || (0..10).all(|id| bot.runs(&format!("made{id}")).len() == 1).then_some(()));
    assert_eq!(open(&bot).len(), 8);
    bot.ok(["questions", "answer", &first, "deny"]);
    service.until("the next is asked", || (bot.json(["questions"]).as_array()?.len() == 9).then_some(()));
    assert_eq!(open(&bot).len(), 8);
    service.stop();
}

/// Each job that a job has made is a new run, so the limit of a run would bound nothing. All of them share one, and others have their own.
#[test]
fn all_that_descends_from_one_job_asks_a_few_questions_in_an_hour() {
    let api = MessagesApi::script([Reply::bash("touch made")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let approve = "approve: true\nbackground: true\nclient: exec\ncommand: echo on\nallowed_tools: []\n";
    let made = |id: &str, maker: &str, fields: &str| {
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &format!("created_by: {maker}\n{fields}"), "x"));
    };
    ["maker", "another"].iter().for_each(|id| bot.maker(id));
    (0..8).for_each(|number| made(&format!("made{number}"), "maker", approve));
    let service = bot.start();
    until_open(&bot, &service, 8);
    // These are made by what the maker has made.
    (8..18).for_each(|number| made(&format!("made{number}"), "made0", approve));
    let end = |id: &str| bot.runs(id).first().map(|run| run["outcome"].clone()).filter(|end| end == "skipped");
    service.until("all are skipped", || {
        open(&bot).iter().for_each(|one| drop(bot.run(["questions", "answer", &one["number"].to_string(), "skip"])));
        (0..18).all(|number| end(&format!("made{number}")).is_some()).then_some(())
    });
    assert_eq!(answers(&bot).len(), 16);
    let reasons: Vec<String> = (0..18).map(|number| format!("{:#}", bot.runs(&format!("made{number}"))[0])).collect();
    let told = "not approved: the person was asked 16 times within an hour for jobs and agents that one job has made";
    assert_eq!(reasons.iter().filter(|run| run.contains(told)).count(), 2, "{reasons:#?}");
    // Its calls are refused, too. Another maker's jobs, and the person's own, are asked about.
    made("calls", "maker", &job(TOUCH));
    service.until_ended("calls", 1);
    let results = results(&api);
    assert!(results[0].contains("asked 16 times within an hour"), "{results:?}");
    made("other", "another", approve);
    bot.write("reminders/own.md", &reminder(now(), approve, "x"));
    until_open(&bot, &service, 2);
    assert_eq!(answers(&bot).len(), 18);
    service.stop();
}

#[test]
fn questions_about_the_jobs_of_one_maker_leave_room_for_those_of_another() {
    let bot = TestBot::new();
    let job = |maker: &str| {
        let fields = "client: exec\ncommand: 'true'\nallowed_tools: []\napprove: true\n";
        reminder(now(), &format!("{fields}created_by: {maker}\n"), "")
    };
    ["loud", "quiet"].iter().for_each(|id| bot.maker(id));
    for number in 1..=9 {
        bot.write(&format!("reminders/loud-{number}.md"), &job("loud"));
    }
    let service = bot.start();
    let asked = || -> Vec<String> {
        let questions = bot.json(["questions"]);
        questions.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    service.until("eight are asked about", || (asked().len() == 8).then_some(()));
    service.until("the ninth says why it is not", || {
        bot.ok(["status"])
            .contains("you are asked about it once you have answered about others of its maker")
            .then_some(())
    });
    bot.write("reminders/quiet-1.md", &job("quiet"));
    service.until("that of another is asked about", || asked().contains(&"quiet-1".to_owned()).then_some(()));
    service.stop();
}

/// After a compaction the client reads files of the conversation again, whatever their names lead to by then, and asks nobody.
/// The oldest client does not compact by itself in a job.
#[test]
fn a_job_that_asks_about_files_ends_before_its_conversation_is_compacted() {
    const SECRET: &str = "the combination of the safe";
    let plain = "allowed_tools: ['Read(notes/**)', 'Edit(notes/**)', 'Bash(ln *)']\n";
    for (fields, outcome) in
        [(plain.to_owned(), "completed"), (format!("{plain}ask_tools: ['Read(safe/**)']\n"), "failed")]
    {
        let api = MessagesApi::answering(|request| match request.answers() {
            _ if request.last_text().contains("<summary>") => Reply::say("<summary>They spoke of tea.</summary>"),
            _ if request.mentions("They spoke of tea.") => Reply::say("That was all."),
            0 => Reply::call("Read", json!({"file_path": "notes/tea.md"})),
            1 => Reply::bash("ln -sfr safe/key.md notes/tea.md"),
            2..6 => Reply::LastCall("Read".into(), json!({"file_path": "notes/cups.md"})),
            _ => Reply::say("That was all."),
        });
        let bot = TestBot::with_client(&client::newest(), api.url());
        bot.write("reminders/job.md", &reminder(now(), &job(&fields), "Do the thing."));
        bot.write("work/notes/tea.md", "Earl Grey\n");
        bot.write("work/notes/cups.md", "two\n");
        bot.write("work/safe/key.md", SECRET);
        let service = bot.start();
        let run = service.until_ended("job", 1).remove(0);
        assert_eq!(run["outcome"], outcome, "{run:#}");
        assert!(bot.path("work/notes/tea.md").is_symlink(), "{run:#}");
        if outcome == "failed" {
            let error = run["error"].as_str().unwrap();
            assert!(
                error.contains("the conversation became too long, and the agent client may not make it shorter"),
                "{error}"
            );
        } else {
            assert!(api.all().iter().any(|request| request.mentions("They spoke of tea.")), "it was compacted");
        }
        assert!(!api.all().iter().any(|request| request.mentions(SECRET)), "{fields}");
        service.stop();
    }
}
