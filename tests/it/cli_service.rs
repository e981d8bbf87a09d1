//! The service from outside: its start, its end, and the commands that it answers.

use std::process::Stdio;

use chrono::TimeDelta;
use rustix::process::Signal;
use serde_json::json;

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;

#[test]
fn init_makes_a_folder_that_works_and_overwrites_nothing() {
    let bot = TestBot::bare();
    insta::assert_snapshot!(shown(&bot, &bot.run(["init"])), @"
    exit: 0
    -- stdout
    made [PERSON]/bot
      config.yaml
      .gitignore
      routines/email-triage.md
      routines/evening-review.md
      routines/reading-list.md
      reminders/hello.md
    Start the service: ollim-bot run
    Your first reminder: ollim-bot reminder add --in 1m 'Hello'
    ");
    let checked = bot.json(["check"]);
    assert_eq!((&checked["definitions"], &checked["problems"]), (&json!(4), &json!([])));
    let hello = bot.json(["reminder", "show", "hello"]);
    let at: chrono::DateTime<chrono::Utc> = hello["run_at"].as_str().unwrap().parse().unwrap();
    assert!(at <= now() + TimeDelta::minutes(1), "the sample reminder comes at once: {at}");
    insta::assert_snapshot!(shown(&bot, &bot.run(["init"])), @"
    exit: 1
    -- stderr
    error: [PERSON]/bot is there already and has something in it
    hint: `ollim-bot init --force` adds what is missing; what is there stays as it is
    ");
    bot.write("config.yaml", "user_name: Sam\n");
    std::fs::remove_file(bot.path("routines/email-triage.md")).unwrap();
    // It has come, and would come again.
    std::fs::remove_file(bot.path("reminders/hello.md")).unwrap();
    insta::assert_snapshot!(shown(&bot, &bot.run(["init", "--force"])), @"
    exit: 0
    -- stdout
    made [PERSON]/bot
      routines/email-triage.md
    Start the service: ollim-bot run
    Your first reminder: ollim-bot reminder add --in 1m 'Hello'
    ");
    assert_eq!(bot.read("config.yaml").as_deref(), Some("user_name: Sam\n"));
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let bot = TestBot::new();
    bot.write("config.yaml", "# mine\ntimezone: Europe/Berlin\n");
    let config = bot.json(["config"]);
    let of = |key: &str| config.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap().clone();
    assert_eq!(of("timezone"), json!({ "key": "timezone", "value": "Europe/Berlin", "origin": "config.yaml:2" }));
    assert_eq!(of("agent_client"), json!({ "key": "agent_client", "value": "notify", "origin": "OLLIM_AGENT_CLIENT" }));
    assert!(bot.ok(["config"]).contains("timezone"));
    bot.write("config.yaml", "timezon: Europe/Berlin\n");
    bot.write("reminders/tea.md", "---\nrun_at: never\n---\nTea.\n");
    insta::assert_snapshot!(shown(&bot, &bot.run(["next"])), @"
    exit: 1
    -- stderr
    error: unknown setting `timezon` (config.yaml:1:1)
    hint: did you mean `timezone`?
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["check"])), @"
    exit: 1
    -- stdout
    error: unknown setting `timezon`
      --> config.yaml:1:1
    hint: did you mean `timezone`?

    error: reminder `tea`: `run_at` is not a time: `never`
      --> reminders/tea.md:2:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone

    0 definitions in order, 2 errors, 0 warnings
    ");
    assert_eq!(bot.run(["runs"]).code, 0, "what happened is shown all the same");
    assert_eq!(bot.run(["run"]).code, 1);
}

#[test]
fn a_second_service_names_the_first() {
    let bot = TestBot::new();
    let service = bot.start();
    let second = bot.run(["run"]);
    let words = shown(&bot, &second).replace(&service.pid().to_string(), "PID");
    insta::assert_snapshot!(words, @"
    exit: 1
    -- stderr
    error: the service is already running for [PERSON]/bot (pid PID)
    hint: `ollim-bot status` asks it how it is; `kill PID` ends it
    ");
    service.stop();
    bot.write("state/bot.pid", &std::process::id().to_string());
    let original = shown(&bot, &bot.run(["run"])).replace(&std::process::id().to_string(), "PID");
    insta::assert_snapshot!(original, @"
    exit: 1
    -- stderr
    error: the original ollim-bot is running on [PERSON]/bot (pid PID)
    hint: end it first (`kill PID`): two bots on one folder would each fire every job
    hint: or give this one a folder of its own, `--home DIR`, and copy routines/ and reminders/ there
    hint: if that process is something else, remove state/bot.pid
    ");
}

#[test]
fn the_beginning_and_the_end_of_a_run_are_logged() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea."));
    let run = service.until_ended("tea", 1).remove(0);
    let run = run["run"].as_str().unwrap().to_owned();
    let (_, said) = service.stop();
    let line = |word: &str| {
        let of_run = |line: &&str| line.contains(&format!("run={run}")) && line.contains(&format!(" {word} "));
        said.lines().find(of_run).unwrap_or_else(|| panic!("{word}: {said}")).to_owned()
    };
    let started = line("started");
    assert!(
        started.contains("kind=reminder") && started.contains("id=tea") && started.contains("attempt=1"),
        "{started}"
    );
    line("ended");
}

#[test]
fn an_ended_service_leaves_nothing_that_answers() {
    let bot = TestBot::new();
    let (status, _) = bot.start().stop();
    assert!(status.success());
    assert!(!bot.path("state/control.sock").exists() && !bot.path("state/user.token").exists());
    insta::assert_snapshot!(shown(&bot, &bot.run(["pause"])), @"
    exit: 1
    -- stderr
    error: the service is not running
    hint: start it: `ollim-bot run`
    ");
    // A killed service leaves its socket, and the next one takes it over.
    bot.start().kill();
    assert!(bot.path("state/control.sock").exists());
    assert_eq!(bot.run(["pause"]).code, 1);
    assert_eq!(bot.json(["status"])["daemon"], json!(null));
    let service = bot.start();
    service.until("it answers", || (!bot.json(["status"])["daemon"].is_null()).then_some(()));
}

#[test]
fn the_commands_that_a_hint_names_are_for_the_same_folder() {
    let bot = TestBot::new();
    let own = bot.home().display().to_string();
    let spaced = bot.person().join("my bot");
    std::fs::create_dir(&spaced).unwrap();
    let quoted = format!("'{}'", spaced.display());
    for (home, shown) in [(&own, &own), (&spaced.display().to_string(), &quoted)] {
        let paused = bot.run(["--home", home, "pause"]);
        assert_eq!(
            paused.stderr,
            format!("error: the service is not running\nhint: start it: `ollim-bot --home {shown} run`\n")
        );
        let made = bot.run(["--home", home, "init", "--force", "--yes"]);
        assert!(made.stdout.contains(&format!("Start the service: ollim-bot --home {shown} run\n")), "{made:?}");
        let added = bot.run(["--home", home, "reminder", "add", "--in", "1h", "Tea"]);
        assert!(added.stderr.contains(&format!("start it: `ollim-bot --home {shown} run`")), "{added:?}");
        let found = bot.run(["--home", home, "doctor"]);
        assert!(found.stdout.contains(&format!("`ollim-bot --home {shown} run`")), "{found:?}");
        assert!(!found.stdout.replace(shown, "").contains("`ollim-bot run"), "{found:?}");
        let status = bot.run(["--home", home, "status"]);
        assert!(status.stdout.contains(&format!("`ollim-bot --home {shown} resume ID`")), "{status:?}");
    }
}

#[test]
fn it_ends_when_it_is_told_and_when_nothing_is_left() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    bot.write("reminders/far.md", &reminder(now() + TimeDelta::days(300), "", "Far away."));
    let ended = bot.run(["run", "--until-idle"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(ended.stdout.contains("Tea is ready.") && !ended.stdout.contains("Far away."), "{ended:#?}");
    assert_eq!(bot.names("reminders"), ["far.md"]);
    assert_eq!(bot.run(["run", "--for", "1s"]).code, 0);
}

#[test]
fn the_first_signal_lets_runs_finish_and_the_second_ends_them() {
    let bot = TestBot::new();
    let hangs = client::script(bot.person(), "while read -r line; do :; done\nsleep 1000");
    let bot = bot
        .env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", hangs.to_str().unwrap())
        .env("ANTHROPIC_API_KEY", "sk-test-not-a-key")
        .env("OLLIM_SHUTDOWN_GRACE", "1h");
    bot.write("reminders/job.md", &reminder(now(), "background: true\nisolated: true\n", "Do the thing."));
    let service = bot.start();
    service.until("it runs", || (bot.json(["status"])["running"][0]["outcome"] == "running").then_some(()));
    service.signal(rustix::process::Signal::TERM);
    service
        .until("it says that it ends", || service.output().contains("ending: 1 run is going and has 1h").then_some(()));
    assert_eq!(bot.runs("job")[0]["outcome"], "running");
    // `status` does not report a healthy service meanwhile.
    assert_eq!(bot.json(["status"])["daemon"]["ending"], true);
    let words = bot.ok(["status"]);
    assert!(words.contains("ending (pid ") && words.contains("nothing starts any more"), "{words}");
    let doctor = bot.run(["doctor"]);
    let ending = format!("wrong  service      it is ending (pid {}): nothing starts any more\n", service.pid());
    assert!(doctor.code == 1 && doctor.stdout.contains(&ending), "{doctor:?}");
    let added = bot.run(["reminder", "add", "--in", "1h", "-m", "Tea."]);
    assert!(added.code == 0 && added.stderr.contains("warning: the service is ending, so nothing fires"), "{added:?}");
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    assert_eq!(bot.runs("job")[0]["outcome"], "interrupted", "{said}");
    assert!(bot.read("reminders/job.md").is_some(), "it runs again next time");
    bot.until_no_processes();
}

#[test]
fn an_edited_comment_does_not_keep_a_reminder_that_is_done() {
    let bot = TestBot::new();
    let text = reminder(now() + TimeDelta::days(300), "", "Tea is ready.");
    bot.write("reminders/tea.md", &text);
    let service = bot.start();
    bot.write("reminders/tea.md", &text.replace("---\nrun_at", "---\n# not too late\nrun_at"));
    // Both events take the same path, so the edit has been seen when this file is known.
    bot.write("reminders/after.md", &text);
    service.until("the edit was seen", || (bot.run(["fire", "after"]).code == 0).then_some(()));
    service.until_ended("after", 1);
    bot.ok(["fire", "tea"]);
    service.until_ended("tea", 1);
    service.until("both files are gone", || bot.names("reminders").is_empty().then_some(()));
}

#[test]
fn its_status_in_words_and_keys() {
    let bot = TestBot::new();
    bot.write("reminders/far.md", "---\nrun_at: \"2098-05-04T09:00:00Z\"\n---\nFar away.\n");
    bot.write("reminders/broken.md", "---\nrun_at: never\n---\nx\n");
    insta::assert_snapshot!(shown(&bot, &bot.run(["status"])).split(" (in ").next().unwrap().split("NEXT").next().unwrap(), @"
    exit: 0
    -- stdout
    service     not running
    pings left  5 of 5

    Next
    ");
    let service = bot.start();
    let status = service.until("it answers", || {
        let status = bot.json(["status"]);
        (!status["daemon"].is_null()).then_some(status)
    });
    assert_eq!(status["daemon"]["pid"], service.pid());
    assert_eq!(status["client"], json!({ "name": "notify", "version": null, "why": "configured" }));
    assert_eq!(status["channel"], "console");
    assert!(status["sandbox"]["enforced"].is_boolean());
    assert!(status["sockets"].is_array());
    assert_eq!(status["running"], json!([]));
    assert_eq!(status["next"][0]["id"], "far");
    assert_eq!(status["problems"][0]["file"], "reminders/broken.md");
    assert_eq!(status["failures"], json!([]));
    assert_eq!(status["budget"], json!({ "left": 5, "capacity": 5, "next": null }));
    let words = bot.ok(["status"]);
    assert!(words.contains(&format!("running (pid {}", service.pid())), "{words}");
    assert!(bot.ok([""; 0]).contains("The service is running"));
}

#[test]
fn a_version_of_the_client_that_was_not_tested_is_said() {
    for (version, said) in
        [("2.1.330", None), ("99.0.1", Some("newer than 2.1.330")), ("1.0.44", Some("older than 2.1.197"))]
    {
        let bot = TestBot::new();
        let client = client::script_of_version(bot.person(), version, "exit 1");
        let bot = bot.client(&client, "http://127.0.0.1:9");
        let service = bot.start();
        let words = service.until("it answers", || {
            let words = bot.run(["status"]).stdout;
            words.contains("running (pid").then_some(words)
        });
        let (_, log) = service.stop();
        assert!(words.contains(&format!("claude {version} (configured)")), "{words}");
        assert!(words.contains("2.1.197 and 2.1.330"), "{words}");
        for text in [&words, &log] {
            assert_eq!(text.matches("agent client that").count(), usize::from(said.is_some()), "{version}: {text}");
            assert!(said.is_none_or(|said| text.contains(said)), "{version}: {text}");
        }
    }
}

#[test]
fn nothing_starts_while_it_is_paused() {
    let bot = TestBot::new();
    let service = bot.start();
    service.until("it answers", || (bot.run(["pause"]).code == 0).then_some(()));
    assert!(bot.json(["status"])["daemon"]["paused"].is_string());
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    // A command of the person overrides the pause.
    bot.write("reminders/far.md", &reminder(now() + TimeDelta::days(300), "", "Far away."));
    service.until("it is known", || (bot.run(["fire", "far"]).code == 0).then_some(()));
    service.until_ended("far", 1);
    assert!(bot.runs("tea").iter().all(|run| run["ended"].is_null()));
    // Every command reports the pause.
    bot.write("reminders/later.md", &reminder(now() + TimeDelta::days(300), "", "Later."));
    let fired = service.until("it is known", || Some(bot.run(["fire", "later"])).filter(|fired| fired.code == 0));
    assert!(fired.stderr.contains("the service is paused; this run starts all the same"), "{fired:?}");
    bot.write("reminders/last.md", &reminder(now() + TimeDelta::days(300), "", "Last."));
    let next = bot.run(["next"]);
    assert!(next.stderr.contains("warning: the service is paused, so nothing fires by itself"), "{next:?}");
    assert!(next.stderr.contains("`ollim-bot resume`"), "{next:?}");
    let status = bot.run(["status"]);
    assert!(
        status.stdout.contains("nothing starts by itself until `ollim-bot resume`; `ollim-bot fire` still"),
        "{status:?}"
    );
    assert_eq!(
        bot.ok(["pause"]),
        "paused: nothing starts by itself until `ollim-bot resume`; `ollim-bot fire ID` still runs a job\n"
    );
    assert_eq!(bot.ok(["resume"]), "resumed\n");
    assert!(bot.ok(["resume"]).starts_with("the service was not paused"));
    assert_eq!(service.until_ended("tea", 1)[0]["outcome"], "completed");
    insta::assert_snapshot!(shown(&bot, &bot.run(["resume", "tea"])), @"
    exit: 1
    -- stderr
    error: there is no job `tea`
    hint: `ollim-bot next`, `ollim-bot routine list` and `ollim-bot reminder list` show them
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["cancel-run", "0badcafe"])), @"
    exit: 1
    -- stderr
    error: there is no run `0badcafe`
    hint: `ollim-bot runs` lists them
    ");
}

#[test]
fn a_time_that_is_promised_without_a_service_comes_with_a_warning() {
    let bot = TestBot::new();
    let commands: [&[&str]; 4] = [
        &["reminder", "add", "--in", "1h", "-m", "Tea."],
        &["routine", "add", "--cron", "@daily", "-m", "Mail."],
        &["next"],
        &["status"],
    ];
    for command in commands {
        let ran = bot.run(command);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(
            ran.stderr, "warning: the service is not running, so nothing fires\nhint: start it: `ollim-bot run`\n",
            "{command:?}"
        );
    }
    let home = bot.home().display().to_string();
    let named = bot.run(["--home", &home, "--json", "next"]);
    assert!(named.stderr.contains(&format!("`ollim-bot --home {home} run`")), "{named:?}");
    serde_json::from_str::<serde_json::Value>(&named.stdout).unwrap();
    let service = bot.start();
    service.until("it answers", || (!bot.json(["status"])["daemon"].is_null()).then_some(()));
    for command in commands {
        assert_eq!(bot.run(command).stderr, "", "{command:?}");
    }
}

#[test]
fn a_late_message_says_so() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::minutes(5), "", "Tea is ready."));
    let service = bot.start();
    service.until_ended("tea", 1);
    service.stop();
    let inbox = bot.json(["inbox"]);
    let texts: Vec<&str> = inbox.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    let late = texts.iter().find(|text| text.contains("Tea is ready.")).unwrap();
    assert!(late.starts_with("[late: was scheduled for ") && late.ends_with("]\n\nTea is ready."), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| text.starts_with("reminder tea is late: ")).count(), 1, "{texts:?}");
}

#[test]
fn a_job_is_fired_with_and_without_a_service() {
    let bot = TestBot::new();
    bot.write("routines/plants.md", "---\ncron: \"@yearly\"\n---\nWater the plants.\n");
    let fired = bot.run(["fire", "plants"]);
    assert_eq!(fired.code, 0, "{fired:#?}");
    assert!(fired.stdout.contains("Water the plants.") && fired.stdout.ends_with("plants completed\n"), "{fired:#?}");
    assert_eq!(bot.runs("plants").len(), 1);
    assert!(bot.read("routines/plants.md").is_some());
    let service = bot.start();
    let fired = service.until("the service takes commands", || {
        let ran = bot.run(["--json", "fire", "plants"]);
        (ran.code == 0).then_some(ran)
    });
    let fired: serde_json::Value = serde_json::from_str(&fired.stdout).unwrap();
    let runs = service.until_ended("plants", 2);
    assert_eq!(runs[0]["run"], fired["run"]);
    insta::assert_snapshot!(shown(&bot, &bot.run(["fire", "plant5"])), @"
    exit: 1
    -- stderr
    error: there is no job `plant5`
    hint: did you mean `plants`?
    ");
}

#[test]
fn a_dry_run_shows_and_does_nothing() {
    let bot = TestBot::new();
    bot.write(
        "routines/triage.md",
        "---\ncron: \"@daily\"\nbackground: true\nisolated: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n---\nGo through the mail.\n",
    );
    let shown = bot.json(["fire", "triage", "--dry-run"]);
    let prompt = shown["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("[routine-bg:triage]") && prompt.trim_end().ends_with("Go through the mail."),
        "{prompt}"
    );
    assert!(shown["policy"].to_string().contains("Bash(ollim-bot gmail *)"));
    let command: Vec<&str> = shown["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(command[..2], ["claude", "--print"]);
    let words = bot.ok(["fire", "triage", "--dry-run"]);
    assert!(words.contains("Policy\n") && words.contains("claude --print"), "{words}");
    assert!(bot.runs("triage").is_empty());
}

#[test]
fn the_policy_is_explained_by_exit_code() {
    let bot = TestBot::new();
    bot.write(
        "routines/triage.md",
        "---\ncron: \"@daily\"\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n---\nGo through the mail.\n",
    );
    bot.external_command("gmail", "#!/bin/sh\n");
    insta::assert_snapshot!(shown(&bot, &bot.run(["policy", "explain", "triage", "--command", "ollim-bot gmail unread"])), @r#"
    exit: 0
    -- stdout
    allowed
    layer     allowed_tools
    rule      Bash(ollim-bot gmail *)
    reason    Bash "ollim-bot gmail unread": granted by "Bash(ollim-bot gmail *)" (allowed_tools of routine triage)
    commands  ollim-bot gmail unread
    "#);
    insta::assert_snapshot!(shown(&bot, &bot.run(["policy", "explain", "triage", "--command", "ollim-bot gmail x && touch evil"])), @r#"
    exit: 1
    -- stdout
    denied
    layer     allowed_tools
    rule      none matches
    reason    Bash "touch evil": `touch` is not granted; the rule `Bash(touch *)` would be needed; routine triage grants: Bash(ollim-bot gmail *), Bash(ollim-bot help)
    commands  ollim-bot gmail x
              touch evil
    "#);
    insta::assert_snapshot!(shown(&bot, &bot.run(["policy", "explain", "triage", "--tool", "Write", "--input", "{\"file_path\":\"x\"}"])), @r#"
    exit: 1
    -- stdout
    denied
    layer   allowed_tools
    rule    none matches
    reason  Write "x": not granted; routine triage grants no Write call
    "#);
    insta::assert_snapshot!(shown(&bot, &bot.run(["policy", "explain", "triage"])), @"
    exit: 1
    -- stderr
    error: no command to explain
    hint: say `--command 'git push'`
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["policy", "explain", "triage", "--tool", "Read", "--input", "[1]"])), @r#"
    exit: 1
    -- stderr
    error: `--input` must be a JSON object
    hint: as in `{"command": "ls"}`
    "#);
    let policy = bot.ok(["policy", "show", "triage"]);
    let own: Vec<&str> = policy.lines().filter(|line| !line.contains("blocked for every fork")).collect();
    insta::assert_snapshot!(own.join("\n"), @"
    routine triage
    allow  Bash(ollim-bot gmail *)  allowed_tools of routine triage
    allow  Bash(ollim-bot help)     added automatically

    `ollim-bot gmail`: a command of your own, which may write `tools/gmail/` and use the network
    `ollim-bot help`: a command of the bot, which answers to the job's own rules

    tools it sees  Bash
    of ours        none
    sandbox        Landlock, seccomp
    ");
    let json = bot.run(["--json", "policy", "explain", "triage", "--command", "ls"]);
    assert_eq!(json.code, 1);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["client_args", "commands", "layer", "reason", "rule", "verdict"]);
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let bot = TestBot::new();
    let mut child = bot.command(["help"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn status_answers_although_the_settings_are_wrong() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("config.yaml", "timezon: Europe/Berlin\n");
    let ran = bot.run(["--json", "status"]);
    assert!(ran.code == 1 && ran.stderr.contains("the settings cannot be used"), "{ran:?}");
    let status: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status["daemon"]["pid"], service.pid());
    assert_eq!(status["problems"][0]["file"], "config.yaml");
    assert_eq!(status["problems"][0]["line"], 1);
    service.stop();
}

#[test]
fn status_names_the_sockets_that_lead_around_the_wall() {
    let bot = TestBot::new();
    let path = bot.path("work/tmux");
    let bot = bot.env("TMUX", &format!("{},1,0", path.display()));
    let service = bot.start();
    let named = || {
        let status = bot.json(["status"]);
        let all = status["sockets"].as_array().unwrap().clone();
        all.iter().any(|socket| *socket == json!({ "what": "tmux", "path": path }))
    };
    assert!(!named());
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(named());
    let words = bot.ok(["status"]);
    assert!(words.contains(&format!("tmux ({})", path.display())), "{words}");
    drop(listener);
    assert!(!named());
    service.stop();
}

#[test]
fn a_routine_that_is_paused_after_failures_is_shown_as_such_and_has_no_coming_times() {
    let bot = TestBot::new();
    // Without an agent client, a job with tools fails at once.
    let file = "---\ncron: 0 0 1 1 *\nbackground: true\nallowed_tools: [Read]\n---\nLook.\n";
    bot.write("routines/flaky.md", file);
    let service = bot.start();
    for runs in 1..=10 {
        bot.ok(["fire", "flaky"]);
        service.until_ended("flaky", runs);
    }
    let paused = service.until("it is paused", || {
        let status = bot.json(["status"]);
        (!status["failures"][0]["paused"].is_null()).then_some(status)
    });
    assert_eq!(paused["next"], serde_json::json!([]), "{paused:#}");
    assert_eq!(bot.json(["next"]), serde_json::json!([]));
    insta::assert_snapshot!(shown(&bot, &bot.run(["next"])), @"
    exit: 0
    -- stderr
    nothing is coming
    paused after failures: flaky
    hint: `ollim-bot resume flaky`
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["routine", "list"])), @"
    exit: 0
    -- stdout
    flaky  paused    0 0 1 1 *  background  Look.
    -- stderr
    hint: `ollim-bot resume ID` ends a pause after failures
    ");
    let one = bot.ok(["routine", "show", "flaky"]);
    assert!(one.contains("paused after failures, until `ollim-bot resume flaky` or an edit"), "{one}");
    // An edit ends the pause, even if no service has seen it yet.
    service.stop();
    bot.write("routines/flaky.md", &file.replace("Look.", "Look again."));
    assert!(!bot.json(["next"])[0].is_null());
    bot.write("routines/flaky.md", file);
    assert!(bot.json(["next"])[0].is_null());
    let service = bot.start();
    bot.ok(["resume", "flaky"]);
    service.until("it is recorded", || (!bot.json(["routine", "show", "flaky"])["next"].is_null()).then_some(()));
    service.stop();
}

#[test]
fn a_suspended_service_is_said_to_be_so_at_once() {
    let bot = TestBot::new();
    let service = bot.start();
    service.signal(Signal::STOP);
    let words = format!("the service (pid {}) is suspended: it fires nothing and answers nothing", service.pid());
    // The process stops a moment after the signal.
    for command in ["status", "pause"] {
        service.until("it is said", || bot.run([command]).stderr.contains(&words).then_some(()));
    }
    service.signal(Signal::CONT);
    service.until("it answers", || (bot.run(["status"]).code == 0).then_some(()));
    service.stop();
}
