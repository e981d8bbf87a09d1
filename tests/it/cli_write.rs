//! Commands that create and change definitions: their output and the files.

use ollim_bot::clock::Clock;

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};

/// Runs a command. Returns its output, with each generated id replaced by `ID`.
#[track_caller]
fn typed(bot: &TestBot, args: &[&str]) -> String {
    let text = shown(bot, &bot.run(args));
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_id = bare.len() == 8 && bare.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if is_id { word.replace(bare, "ID") } else { word.to_owned() }
        })
        .collect()
}

/// Returns the text of the only file in a folder.
#[track_caller]
fn the_file(bot: &TestBot, folder: &str) -> String {
    let names = bot.names(folder);
    assert_eq!(names.len(), 1, "{names:?}");
    bot.read(&format!("{folder}/{}", names[0])).unwrap()
}

#[test]
fn a_reminder_is_a_file_like_one_a_person_writes() {
    let bot = TestBot::new();
    let said = typed(
        &bot,
        &[
            "reminder",
            "add",
            "-m",
            "Call the dentist.",
            "--at",
            "2098-05-04T09:00:00+02:00",
            "--timezone",
            "Europe/Berlin",
        ],
    );
    assert!(
        said.starts_with("exit: 0\n-- stdout\nscheduled call-the-dentist: at Sun 4 May 2098 09:00 CEST (in "),
        "{said}"
    );
    assert!(said.lines().any(|line| line == "  [PERSON]/bot/reminders/call-the-dentist.md"), "{said}");
    insta::assert_snapshot!(the_file(&bot, "reminders"), @"
    ---
    run_at: '2098-05-04T09:00:00+02:00'
    timezone: Europe/Berlin
    client: notify
    ---
    Call the dentist.
    ");
    assert_eq!(bot.names("reminders"), ["call-the-dentist.md"]);
}

#[test]
fn a_job_is_called_by_its_files_name() {
    let bot = TestBot::new();
    let add = |args: &[&str]| {
        let added = bot.json([&["reminder", "add", "Check the oven", "--in", "20m"], args].concat());
        added["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(add(&[]), "check-the-oven");
    assert_eq!(add(&[]), "check-the-oven-2");
    assert_eq!(add(&["--id", "oven"]), "oven");
    insta::assert_snapshot!(typed(&bot, &["reminder", "add", "x", "--in", "1h", "--id", "oven"]), @"
    exit: 1
    -- stderr
    error: `oven` is taken, by a job that is there or by one that has run
    hint: choose another with `--id NAME`
    ");
    // A complete id takes precedence over the prefix of another.
    assert_eq!(bot.json(["reminder", "show", "check-the-oven"])["id"], "check-the-oven");
    // An older file has both an id and a name.
    bot.write("routines/sort-the-mail.md", "---\nid: 1f0c9a2b\ncron: \"@daily\"\n---\nSort the mail.\n");
    for name in ["1f0c9a2b", "1f0c", "sort-the-mail", "sort-the", "routines/sort-the-mail.md"] {
        assert_eq!(bot.json(["routine", "show", name])["id"], "1f0c9a2b", "{name}");
        assert_eq!(bot.run(["runs", name]).code, 0, "{name}");
    }
    bot.ok(["check", "sort-the-mail"]);
    // A changed id is checked like a new one.
    assert_eq!(bot.json(["routine", "edit", "sort-the-mail", "--id", "mail"])["id"], "mail");
    assert_eq!(bot.run(["routine", "edit", "mail", "--id", "oven"]).code, 1);
    assert_eq!(bot.json(["routine", "edit", "mail", "--id", ""])["id"], "sort-the-mail");
}

#[test]
fn an_id_that_has_run_is_not_given_to_another_job() {
    let bot = TestBot::new();
    let oven = ["reminder", "add", "Check the oven", "--at", "2098-05-04T09:00:00Z"];
    bot.ok(oven);
    bot.ok(["fire", "check-the-oven"]);
    assert!(bot.names("reminders").iter().all(|name| name == "failed"), "{:?}", bot.names("reminders"));
    // Under the old id, the same time would be mistaken for the completed run.
    assert_eq!(bot.json(oven)["id"], "check-the-oven-2");
    assert_eq!(bot.run([&oven[..], &["--id", "check-the-oven"]].concat()).code, 1);
}

#[test]
fn a_phrase_becomes_a_cron_expression_and_is_shown_back() {
    let bot = TestBot::new();
    let added = bot.ok(["routine", "add", "Sort the mail", "--cron", "weekdays at 8:30"]);
    let times =
        added.lines().find_map(|line| line.strip_prefix("  30 8 * * 1-5: ")).unwrap_or_else(|| panic!("{added}"));
    assert_eq!(times.split(", ").filter(|time| time.contains(" 08:30 ")).count(), 3, "{added}");
    assert!(bot.read("routines/sort-the-mail.md").unwrap().contains("cron: 30 8 * * 1-5\n"));
    let edited = bot.ok(["routine", "edit", "sort-the-mail", "--every", "2h"]);
    assert!(edited.contains("\n  every 2h: "), "{edited}");
    let text = bot.read("routines/sort-the-mail.md").unwrap();
    assert!(text.contains("every: 2h\n") && !text.contains("cron"), "{text}");
    let edited = bot.ok(["routine", "edit", "sort-the-mail", "--cron", "every 2h", "--jitter", "5m"]);
    assert!(edited.contains("\n  0 */2 * * * + 0-5m: "), "{edited}");
    let text = bot.read("routines/sort-the-mail.md").unwrap();
    assert!(text.contains("cron: 0 */2 * * *\n") && text.contains("jitter: 5m\n") && !text.contains("every"), "{text}");
    assert!(bot.run(["routine", "edit", "sort-the-mail", "--every", "59s"]).stderr.contains("must be at least 1m"));
    insta::assert_snapshot!(typed(&bot, &["routine", "edit", "sort-the-mail", "--cron", "every 90m"]), @"
    exit: 1
    -- stderr
    error: cannot make a cron expression of `every 90m`: cron's steps begin anew with each hour and day, and only a span that divides one stays even; `--every` counts elapsed time
    hint: write `daily at 9`, `weekdays at 8:30`, `monday and friday 18:00`, `monthly on the 1st at 9`, `every 2h`, or a cron expression like `30 8 * * 1-5`
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "add", "x"]), @"
    exit: 1
    -- stderr
    error: a routine needs its times
    hint: say when: `--cron 'weekdays at 8:30'`, `--cron '30 8 * * 1-5'`, `--every 2h`, or `--after ID`
    ");
    assert_eq!(bot.run(["routine", "add", "x", "--every", "2h", "--cron", "@daily"]).code, 1);
    assert_eq!(bot.names("routines").len(), 1);
}

/// Writes two skills.
fn skills(bot: &TestBot) {
    for name in ["mail", "notes"] {
        bot.write(&format!("skills/{name}/SKILL.md"), "---\nname: x\n---\nDo it well.\n");
    }
}

#[test]
fn every_flag_reaches_the_file() {
    let bot = TestBot::new();
    skills(&bot);
    let args = [
        "reminder",
        "add",
        "--message=- a list\n- of things",
        "--description=Odd: \"things\"",
        "--at=2098-05-04T09:00:00Z",
        "--timezone=Asia/Tokyo",
        "--background",
        "--isolated",
        "--model=haiku",
        "--thinking=2000",
        "--update-main-session=always",
        "--no-ping",
        "--allowed-tools",
        "Read",
        "Bash(git log *)",
        "--skills",
        "mail",
        "notes",
        "--timeout=1h30m",
        "--max-turns=7",
        "--max-cost-usd=0.25",
        "--on-missed=skip",
        "--retry=0",
        "--max-chain=3",
        "--chain-depth=1",
        "--chain-parent=first",
    ];
    bot.ok(args);
    insta::assert_snapshot!(the_file(&bot, "reminders"), @r#"
    ---
    description: 'Odd: "things"'
    run_at: '2098-05-04T18:00:00+09:00'
    timezone: Asia/Tokyo
    background: true
    isolated: true
    model: haiku
    thinking: 2000
    allowed_tools:
      - Read
      - Bash(git log *)
    update_main_session: always
    allow_ping: false
    skills:
      - mail
      - notes
    timeout: 1h30m
    max_turns: 7
    max_cost_usd: 0.25
    on_missed: skip
    retry: 0
    max_chain: 3
    chain_depth: 1
    chain_parent: first
    ---
    - a list
    - of things
    "#);
    let bot = TestBot::new();
    bot.ok([
        "routine",
        "add",
        "-m",
        "Go.",
        "--cron",
        "30 8 * * 1-5",
        "--background",
        "--no-thinking",
        "--blocked-tools",
        "WebFetch",
        "--disallowed-tools",
        "Bash(ollim-bot cal *)",
        "--on-overlap=queue",
    ]);
    insta::assert_snapshot!(the_file(&bot, "routines"), @"
    ---
    cron: 30 8 * * 1-5
    background: true
    thinking: false
    disallowed_tools:
      - WebFetch
      - Bash(ollim-bot cal *)
    on_overlap: queue
    ---
    Go.
    ");
    let bot = TestBot::new();
    bot.ok(["routine", "add", "-m", "Go.", "--cron", "@daily", "--background", "--allowed-tools", ""]);
    insta::assert_snapshot!(the_file(&bot, "routines"), @"
    ---
    cron: '@daily'
    background: true
    allowed_tools: []
    ---
    Go.
    ");
}

#[test]
fn spans_count_from_now() {
    for (flag, value, seconds) in
        [("--in", "1h30m", 5400), ("--delay", "5", 300), ("--in", "10s", 10), ("--at", "in 20 minutes", 1200)]
    {
        let bot = TestBot::new();
        let before = Clock::system().now();
        let added = bot.json(["reminder", "add", "-m", "x", flag, value]);
        let after = Clock::system().now();
        let at: chrono::DateTime<chrono::Utc> = added["run_at"].as_str().unwrap().parse().unwrap();
        let span = chrono::TimeDelta::seconds(seconds);
        // The time is never early, and in whole seconds.
        assert!(before + span <= at && at <= after + span + chrono::TimeDelta::seconds(1), "{value}: {at}");
        assert_eq!(at.timestamp_subsec_nanos(), 0);
    }
}

#[test]
fn what_would_not_be_valid_is_not_written() {
    let bot = TestBot::new();
    let reminder = |args: &[&str]| typed(&bot, &[&["reminder", "add", "-m", "x"], args].concat());
    insta::assert_snapshot!(reminder(&[]), @"
    exit: 1
    -- stderr
    error: a reminder needs a time
    hint: say when: `--in 20m`, `--at 'tomorrow 9am'`, or `--delay MINUTES`
    ");
    insta::assert_snapshot!(reminder(&["--at", "2020-01-01T09:00:00Z"]).split(" (").next().unwrap(), @"
    exit: 1
    -- stderr
    error: `2020-01-01T09:00:00Z` is Wed 1 Jan 2020 09:00 UTC, which has passed
    ");
    insta::assert_snapshot!(reminder(&["--at", "2098-05-04T09:00:00Z", "--timezone", "Europe/Berlim"]), @"
    exit: 1
    -- stderr
    error: unknown time zone `Europe/Berlim`
    hint: did you mean `Europe/Berlin`?
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--allowed-tools", "Read"]), @"
    exit: 1
    -- stderr
    error: `--allowed-tools` needs `--background`
    hint: a foreground job is a turn of the main session and has all that it has
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--blocked-tools", "Read"]), @"
    exit: 1
    -- stderr
    error: `--blocked-tools` needs `--background`
    hint: a foreground job is a turn of the main session and has all that it has
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--background", "--allowed-tools", "Read", "--blocked-tools", "Read"]), @"
    exit: 1
    -- stderr
    error: `--allowed-tools` and `--blocked-tools` cannot be used together
    hint: `--allowed-tools` lists the only tools the job has, `--blocked-tools` takes tools away
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--background", "--allowed-tools", "Read", ""]), @"
    exit: 1
    -- stderr
    error: `allowed_tools`: empty tool pattern
    hint: remove the item: an empty list is written `[]`
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--background", "--allowed-tools", "Bash(git *"]), @"
    exit: 1
    -- stderr
    error: `allowed_tools`: unbalanced parentheses in tool pattern `Bash(git *`
    hint: write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--skills", "mial"]), @"
    exit: 1
    -- stderr
    error: skill `mial` cannot be used: there is no such skill
    hint: write skills/mial/SKILL.md, or take it out of `skills`
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "--chain-depth", "2"]), @"
    exit: 1
    -- stderr
    error: `chain_depth` 2 is beyond `max_chain` 0
    hint: raise `max_chain`, or remove `chain_depth`: a chain sets it by itself
    ");
    insta::assert_snapshot!(reminder(&["--in", "1h", "-d", "a\nb"]).lines().next().unwrap(), @"exit: 0");
    insta::assert_snapshot!(reminder(&["--in", "99999999999y"]), @"
    exit: 1
    -- stderr
    error: that is too far away
    hint: give a date with `--at`
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "add", "-m", " ", "--in", "1h"]), @"
    exit: 1
    -- stderr
    error: the message is empty
    hint: say what is to be done: `-m 'Check the oven'`
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "add", "-m", "x", "--cron", "0 0 30 2 *"]), @"
    exit: 1
    -- stderr
    error: bad `cron` `0 0 30 2 *`: no date ever matches it, so it can never fire
    hint: check the day against the month: a 30 February or a 31 April does not exist
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "add", "-m", "x", "--cron", "@daily", "--on-overlap", "both"]), @"
    exit: 1
    -- stderr
    error: invalid value 'both' for '--on-overlap <WHAT>': one of: skip, queue, cancel
    ");
    assert!(bot.names("routines").is_empty());
    let bare = TestBot::bare();
    insta::assert_snapshot!(typed(&bare, &["reminder", "add", "-m", "x", "--in", "1h"]), @"
    exit: 1
    -- stderr
    error: there is no data folder at [PERSON]/bot
    hint: `ollim-bot init` makes one; `--home DIR` or OLLIM_HOME names another
    ");
    assert!(!bare.home().exists(), "no folder appears because a name was mistyped");
}

#[test]
fn a_disabled_reminder_says_how_its_time_was_understood() {
    let bot = TestBot::new();
    let said = bot.ok(["reminder", "add", "Tea.", "--at", "2098-05-04 09:00", "--disabled"]);
    assert!(said.contains("at Sun 4 May 2098 09:00 UTC"), "{said}");
    assert!(said.contains("but it is disabled"), "{said}");
}

#[test]
fn a_routine_is_disabled_and_enabled_in_its_own_file() {
    let bot = TestBot::new();
    let text = "---\n# Mine.\ncron: \"@daily\"   # every day\n---\nWater the plants.\n";
    bot.write("routines/plants.md", text);
    insta::assert_snapshot!(typed(&bot, &["routine", "disable", "plants"]), @"
    exit: 0
    -- stdout
    disabled plants
    ");
    insta::assert_snapshot!(bot.read("routines/plants.md").unwrap(), @r#"
    ---
    # Mine.
    cron: "@daily"   # every day
    enabled: false
    ---
    Water the plants.
    "#);
    assert_eq!(bot.json(["routine", "show", "plants"])["enabled"], false);
    insta::assert_snapshot!(typed(&bot, &["routine", "disable", "plants"]), @"
    exit: 0
    -- stderr
    plants is disabled already
    ");
    let enabled = typed(&bot, &["routine", "enable", "plants"]);
    assert!(enabled.starts_with("exit: 0\n-- stdout\nscheduled plants: at "), "{enabled}");
    assert_eq!(bot.read("routines/plants.md").as_deref(), Some(text));
    insta::assert_snapshot!(typed(&bot, &["routine", "disable", "plabts"]), @"
    exit: 1
    -- stderr
    error: there is no routine `plabts`
    hint: did you mean `plants`?
    ");
    assert_eq!(bot.ok(["routine", "disable", "plan"]), "disabled plants\n", "the beginning of one id");
}

#[test]
fn a_cancelled_job_is_gone() {
    let bot = TestBot::new();
    bot.write("routines/plants.md", "---\ncron: \"@daily\"\n---\nWater the plants.\n");
    bot.write("reminders/tea.md", "---\nrun_at: \"2098-05-04T09:00:00Z\"\n---\nTea.\n");
    insta::assert_snapshot!(typed(&bot, &["reminder", "cancel", "plants"]), @"
    exit: 1
    -- stderr
    error: `plants` is a routine, not a reminder
    hint: use `ollim-bot routine …`
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "cancel", "plants"]), @"
    exit: 0
    -- stdout
    cancelled plants: Water the plants.
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "cancel", "tea"]), @"
    exit: 0
    -- stdout
    cancelled tea: Tea.
    ");
    assert!(bot.names("routines").is_empty() && bot.names("reminders").is_empty());
    insta::assert_snapshot!(typed(&bot, &["reminder", "cancel", "tea"]), @"
    exit: 1
    -- stderr
    error: there is no reminder `tea`
    hint: `ollim-bot reminder list` shows them
    ");
}

#[test]
fn a_failed_reminder_comes_back() {
    let bot = TestBot::new();
    bot.write(
        "reminders/failed/tea.md",
        "---\nrun_at: \"2021-05-04T09:00:00Z\"\nfailed_reason: the client ended early\n---\nTea.\n",
    );
    insta::assert_snapshot!(typed(&bot, &["reminder", "list"]), @"
    exit: 0
    -- stderr
    no reminders
    failed: tea: the client ended early
    hint: `ollim-bot reminder retry tea`
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "retry", "coffee"]), @"
    exit: 1
    -- stderr
    error: there is no failed reminder `coffee`
    hint: these have failed: tea
    ");
    let before = Clock::system().now();
    let back = bot.json(["reminder", "retry", "tea"]);
    let at: chrono::DateTime<chrono::Utc> = back["run_at"].as_str().unwrap().parse().unwrap();
    assert!(before - chrono::TimeDelta::seconds(1) < at && at <= Clock::system().now());
    assert!(!bot.read("reminders/tea.md").unwrap().contains("failed_reason"));
    assert!(bot.names("reminders/failed").is_empty());
    insta::assert_snapshot!(typed(&bot, &["reminder", "retry", "tea"]), @"
    exit: 1
    -- stderr
    error: there is a job `tea` already; it stays as it is
    hint: it is in reminders/tea.md
    ");
    // A failed and a waiting reminder with the same id would conflict, and neither would fire.
    let failed = "---\nid: tea\nrun_at: 2021-05-04T09:00:00Z\n---\nTea.\n";
    bot.write("reminders/failed/tea-2.md", failed);
    assert_eq!(bot.run(["reminder", "retry", "tea"]).code, 1);
    assert_eq!(bot.read("reminders/failed/tea-2.md").as_deref(), Some(failed));
    bot.ok(["reminder", "cancel", "tea"]);
    insta::assert_snapshot!(typed(&bot, &["reminder", "retry", "tea"]).lines().next().unwrap(), @"exit: 0");
    bot.ok(["reminder", "cancel", "tea"]);
    insta::assert_snapshot!(typed(&bot, &["reminder", "retry", "tea"]), @"
    exit: 1
    -- stderr
    error: there is no failed reminder `tea`
    hint: no reminder has failed
    ");
}

#[test]
fn a_reminder_is_brought_back_as_often_as_it_fails_within_a_second_too() {
    let bot = TestBot::new();
    // Without an agent client, a job with tools fails at once.
    bot.write("reminders/job.md", &reminder(now(), "background: true\nallowed_tools: [Read]\n", "Look."));
    let service = bot.start();
    for runs in 1..=4 {
        service.until_ended("job", runs);
        service.until("it is kept among the failed", || {
            (bot.read("reminders/failed/job.md").is_some() && bot.read("reminders/job.md").is_none()).then_some(())
        });
        if runs < 4 {
            bot.ok(["reminder", "retry", "job"]);
        }
    }
    service.stop();
}

/// The same code parses the follow-up of a chain and a command that a person types.
#[test]
fn a_chains_arguments_make_a_child_equal_to_its_parent() {
    let parent = TestBot::new();
    skills(&parent);
    parent.write(
        "reminders/oven.md",
        "---\nid: oven\ndescription: \"- the oven: \\\"hot\\\"\"\nrun_at: \"2098-05-04T09:00:00Z\"\ntimezone: Asia/Tokyo\nbackground: true\nisolated: true\nmodel: haiku\nthinking: 2000\nallowed_tools:\n  - Read\n  - Bash(git log --oneline *)\nupdate_main_session: freely\nallow_ping: false\nskills: [notes, mail]\ntimeout: 90s\nmax_turns: 3\nmax_cost_usd: 0.5\non_missed: latest\nretry: 1\nmax_chain: 4\nchain_depth: 1\nchain_parent: first\n---\n--look at the oven\n\n  indented\n",
    );
    let loaded = |bot: &TestBot| {
        let defaults = ollim_bot::definition::Defaults {
            zone: chrono_tz::UTC,
            commands: Default::default(),
            agents: Default::default(),
        };
        let home = ollim_bot::home::Home::new(bot.home());
        let loaded = ollim_bot::definition::load(&home, &defaults).unwrap();
        assert!(!loaded.problems.iter().any(|problem| problem.is_error()), "{:?}", loaded.problems);
        (*loaded.definitions.into_values().next().unwrap()).clone()
    };
    let fired = loaded(&parent);
    let follow_up = ollim_bot::run::chain::FollowUp::of(&fired).unwrap();
    let child = TestBot::new();
    skills(&child);
    let draft = follow_up.at(chrono::DateTime::UNIX_EPOCH.fixed_offset());
    child.ok(crate::support::flags::reminder_add(&draft, std::time::Duration::from_secs(600)));
    let link = loaded(&child);
    let ollim_bot::definition::Trigger::Reminder { run_at, chain: place } = &link.trigger else { panic!("a reminder") };
    let place = place.clone().unwrap();
    assert_eq!((place.depth, place.max, place.parent.as_str()), (2, 4, "first"));
    // All inherited fields are equal.
    let inherited = ollim_bot::definition::Definition {
        id: link.id.clone(),
        file: link.file.clone(),
        trigger: ollim_bot::definition::Trigger::Reminder { run_at: *run_at, chain: Some(place) },
        ..fired
    };
    assert_eq!(link, inherited);
}

#[test]
fn a_person_prolongs_a_chain_by_its_name() {
    let bot = TestBot::new();
    let restricted = "background: true\nallowed_tools:\n  - mcp__discord__ping_user\n";
    let last = format!("{restricted}max_chain: 1\nchain_depth: 1\nchain_parent: oven\n");
    bot.write("reminders/oven-2.md", &reminder(now(), &last, "Is the oven off?"));
    bot.write("reminders/tea.md", &reminder(now() + chrono::TimeDelta::hours(1), "", "Tea."));
    let service = bot.start();
    service.until_ended("oven-2", 1);
    service.until("its file is gone", || {
        (bot.names("reminders") == ["failed", "tea.md"] || bot.names("reminders") == ["tea.md"]).then_some(())
    });

    let chains = || {
        let list = bot.json(["reminder", "list"]);
        let chained = |one: &&serde_json::Value| one["chain_parent"] == "oven";
        list.as_array().unwrap().iter().filter(chained).cloned().collect::<Vec<_>>()
    };
    // The person can add a check after the last one, with the same restrictions, by any name of the chain.
    let said = typed(&bot, &["follow-up-chain", "--for", "oven-2", "--in", "2h"]);
    assert!(said.starts_with("exit: 0\n-- stdout\nscheduled ID: "), "{said}");
    assert!(said.contains("check 3 of 3 of the chain of oven"), "{said}");
    let link = chains();
    assert_eq!(link.len(), 1, "{link:#?}");
    let (depth, max) = (&link[0]["chain_depth"], &link[0]["max_chain"]);
    assert_eq!((depth.as_u64(), max.as_u64()), (Some(2), Some(2)));
    assert_eq!(link[0]["allowed_tools"], serde_json::json!(["mcp__discord__ping_user"]));
    // A waiting follow-up gets another time.
    bot.ok(["follow-up-chain", "--for", "oven", "--in", "5h"]);
    let moved = chains();
    assert_eq!((moved.len(), &moved[0]["id"]), (1, &link[0]["id"]));
    assert_ne!(moved[0]["run_at"], link[0]["run_at"]);

    for (id, words) in [("tea", "has no `max_chain`"), ("oevn", "there is no chain `oevn`")] {
        let ran = bot.run(["follow-up-chain", "--for", id, "--in", "10m"]);
        assert!(ran.code == 1 && ran.stderr.contains(words), "{ran:#?}");
    }
    assert_eq!(chains().len(), 1);
}
