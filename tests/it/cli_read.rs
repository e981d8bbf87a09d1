//! Read commands for definitions and for the journal, without a service.

use std::path::Path;

use chrono::TimeDelta;
use ollim_bot::clock::Clock;
use ollim_bot::definition::{DefinitionId, Kind};
use ollim_bot::journal::{
    Claim, Denial, Finish, Journal, NewClaim, NewMessage, NewSession, Occurrence, Punctuality, Purpose, RunId,
    RunState, Subject,
};

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};

/// Replaces durations, which differ from day to day: `in 27d 4h` becomes `in SPAN`. Runs of blanks become one blank.
pub fn steady(text: &str) -> String {
    // An id of a run (8 digits) can look like one, too.
    let is_span = |word: &str| {
        word.len() < 8 && word.ends_with(['d', 'h', 'm', 's']) && word[..word.len() - 1].parse::<f64>().is_ok()
    };
    let line = |line: &str| {
        let mut shown = " ".repeat(line.len() - line.trim_start().len());
        for word in line.split_whitespace() {
            let bare = word.trim_matches(['(', ')', ':']);
            if !is_span(bare) {
                shown.push_str(word);
            } else if shown.ends_with("SPAN ") {
                shown.pop();
                shown.push_str(word.rsplit(bare).next().unwrap());
            } else {
                shown.push_str(&word.replace(bare, "SPAN"));
            }
            shown.push(' ');
        }
        shown.trim_end().to_owned()
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn typed(bot: &TestBot, args: &[&str]) -> String {
    steady(&shown(bot, &bot.run(args)))
}

fn some_jobs() -> TestBot {
    let bot = TestBot::new();
    bot.write(
        "routines/triage.md",
        "---\ndescription: Sort the mail\ncron: \"30 8 * * 1-5\"\ntimezone: America/New_York\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot help)\n  - Read\nallow_ping: false\n---\nGo through the unread mail.\n\nBe brief.\n",
    );
    bot.write("routines/plants.md", "---\ncron: \"@daily\"\nenabled: false\n---\nWater the plants.\n");
    bot.write(
        "reminders/dentist.md",
        "---\nrun_at: \"2098-05-04T09:00:00+02:00\"\ntimezone: Europe/Berlin\nmax_chain: 3\n---\nCall the dentist \u{1b}[31mnow.\n",
    );
    bot
}

#[test]
fn runs_say_which_a_person_fired() {
    let bot = TestBot::new();
    bot.write("reminders/later.md", &reminder(now() + TimeDelta::days(3), "", "Later."));
    bot.write("reminders/due.md", &reminder(now(), "", "Due."));
    let service = bot.start();
    service.fire("later");
    service.until_ended("due", 1);
    let list = bot.ok(["runs"]);
    let line = |id: &str| list.lines().find(|line| line.contains(&format!("reminder {id} "))).unwrap();
    assert!(line("later").ends_with("completed  fired by hand") && line("due").ends_with("completed"), "{list}");
    assert_eq!((&bot.runs("later")[0]["by_hand"], &bot.runs("due")[0]["by_hand"]), (&true.into(), &false.into()));
    service.stop();
}

#[test]
fn a_long_description_is_cut_between_words() {
    let bot = TestBot::new();
    let long = "x".repeat(70);
    let cases = [
        ("a", "Go through everything that has come since yesterday and say what matters", "yesterday and say…"),
        ("b", "Go through everything that has come since yesterday, and then rest", "yesterday, and…"),
        ("c", &*long, &*format!("{}…", "x".repeat(59))),
    ];
    for (id, description, end) in cases {
        bot.write(&format!("routines/{id}.md"), &format!("---\ncron: '@daily'\ndescription: {description}\n---\nx\n"));
        let list = bot.ok(["routine", "list"]);
        let line = list.lines().find(|line| line.split_whitespace().any(|word| word == id)).unwrap();
        assert!(line.ends_with(end), "{line}");
    }
}

#[test]
fn what_a_list_of_coming_jobs_leaves_out_is_said() {
    let bot = TestBot::new();
    let add = |count: std::ops::Range<u32>| {
        for number in count {
            bot.write(&format!("routines/job{number}.md"), "---\ncron: '0 9 * * *'\n---\nx\n");
        }
    };
    let said = |words: &[&str]| {
        let ran = bot.run(words);
        let more = ran.stdout.lines().chain(ran.stderr.lines()).filter(|line| line.starts_with("and "));
        more.map(str::to_owned).collect::<Vec<_>>()
    };
    add(0..5);
    assert_eq!((said(&["status"]), said(&["next"])), (vec![], vec![]));
    add(5..7);
    assert_eq!((said(&["status"]), said(&["next"])), (vec!["and 2 more (`ollim-bot next`)".to_owned()], vec![]));
    add(7..12);
    assert_eq!(said(&["status"]), ["and 7 more (`ollim-bot next -n 12`)"]);
    assert_eq!(said(&["next"]), ["and 2 more (`ollim-bot next -n 12`)"]);
    assert_eq!(said(&["next", "-n", "12"]), [""; 0]);
    assert_eq!(said(&["next", "job1"]), ["and later ones (`-n` sets how many are shown)"]);
    assert_eq!(said(&["--json", "next", "job1"]), [""; 0]);
}

#[test]
fn lists_are_in_order_of_the_next_time() {
    let bot = some_jobs();
    let routines = typed(&bot, &["routine", "list"]);
    // The date in the first line depends on the present date.
    assert!(
        routines.contains(" EST in SPAN 30 8 * * 1-5 background Sort the mail") || routines.contains(" EDT in SPAN")
    );
    assert!(routines.ends_with("plants disabled @daily Water the plants."), "{routines}");
    insta::assert_snapshot!(typed(&bot, &["reminder", "list"]), @"
    exit: 0
    -- stdout
    dentist Sun 4 May 2098 09:00 CEST in SPAN check 1 of 4 Call the dentist [31mnow.
    ");
    bot.write("reminders/broken.md", "---\nrun_at: never\n---\nx\n");
    bot.write(
        "reminders/tax.md",
        "---\nrun_at: \"2098-06-01T09:00:00Z\"\nbackground: true\nmodel: haiku\nmax_chain: 2\nchain_depth: 1\nchain_parent: t\n---\nPay the tax.\n",
    );
    insta::assert_snapshot!(typed(&bot, &["reminder", "list"]), @"
    exit: 0
    -- stdout
    dentist Sun 4 May 2098 09:00 CEST in SPAN check 1 of 4 Call the dentist [31mnow.
    tax Sun 1 Jun 2098 09:00 UTC in SPAN background, check 2 of 3, haiku Pay the tax.
    -- stderr
    error: 1 file has an error and will not fire
      reminders/broken.md:2: `run_at` is not a time: `never`
    hint: `ollim-bot check` says what to do
    ");
    insta::assert_snapshot!(typed(&TestBot::new(), &["reminder", "list"]), @"
    exit: 0
    -- stderr
    no reminders
    ");
}

#[test]
fn a_definition_is_shown_whole() {
    let bot = some_jobs();
    insta::assert_snapshot!(typed(&bot, &["reminder", "show", "dentist"]), @"
    exit: 0
    -- stdout
    id dentist
    file reminders/dentist.md
    run_at Sun 4 May 2098 09:00 CEST (in SPAN)
    chain check 1 of 4, begun by dentist
    runs as a turn of the main session

    Call the dentist [31mnow.
    ");
    let routine = typed(&bot, &["routine", "show", "tria"]);
    insta::assert_snapshot!(routine.lines().filter(|line| !line.starts_with("next")).collect::<Vec<_>>().join("\n"), @"
    exit: 0
    -- stdout
    id triage
    file routines/triage.md
    description Sort the mail
    cron 30 8 * * 1-5 in America/New_York
    runs in the background, in a fork of the main session
    allowed_tools Bash(ollim-bot help), Read
    update_main_session on_ping
    allow_ping no

    Go through the unread mail.

    Be brief.
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "show", "dentist"]), @"
    exit: 1
    -- stderr
    error: `dentist` is a reminder, not a routine
    hint: use `ollim-bot reminder …`
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "show", "dentits"]), @"
    exit: 1
    -- stderr
    error: there is no reminder `dentits`
    hint: did you mean `dentist`?
    ");
    bot.write("reminders/broken.md", "---\nrun_at: never\n---\nx\n");
    insta::assert_snapshot!(typed(&bot, &["reminder", "show", "broken"]), @"
    exit: 1
    -- stderr
    error: reminder `broken` has an error in its file: `run_at` is not a time: `never`
    hint: `ollim-bot check reminders/broken.md` says where
    ");
}

#[test]
fn the_keys_that_others_build_on() {
    let bot = some_jobs();
    let mut routine = bot.json(["routine", "show", "triage"]);
    assert!(routine["next"].as_str().unwrap().contains("T08:30:00-0"));
    routine["next"] = serde_json::json!(null);
    insta::assert_snapshot!(serde_json::to_string_pretty(&routine).unwrap(), @r#"
    {
      "after": null,
      "agent": null,
      "alert_after": null,
      "allow_ping": false,
      "allowed_tools": [
        "Bash(ollim-bot help)",
        "Read"
      ],
      "approve": false,
      "ask": null,
      "ask_tools": null,
      "background": true,
      "channel": null,
      "client": null,
      "command": null,
      "context_from": [],
      "created_by": null,
      "cron": "30 8 * * 1-5",
      "deliver": "failure",
      "description": "Sort the mail",
      "disallowed_tools": null,
      "enabled": true,
      "every": null,
      "expect": null,
      "file": "routines/triage.md",
      "gate": null,
      "gate_timeout": null,
      "heartbeat_url": null,
      "hosts": [],
      "id": "triage",
      "isolated": false,
      "jitter": null,
      "kind": "routine",
      "max_cost_day_usd": null,
      "max_cost_usd": null,
      "max_turns": null,
      "message": "Go through the unread mail.\n\nBe brief.",
      "model": null,
      "network": "internet",
      "next": null,
      "on_missed": "latest",
      "on_overlap": "skip",
      "remember": "none",
      "requires": [],
      "requires_for": null,
      "retry": null,
      "skills": [],
      "thinking": true,
      "timeout": null,
      "timezone": "America/New_York",
      "update_main_session": "on_ping",
      "urgency": "normal",
      "wake": false,
      "watch": null
    }
    "#);
    insta::assert_snapshot!(serde_json::to_string_pretty(&bot.json(["reminder", "list"])).unwrap(), @r#"
    [
      {
        "agent": null,
        "allow_ping": true,
        "allowed_tools": null,
        "approve": false,
        "ask": null,
        "ask_tools": null,
        "background": false,
        "chain_depth": 0,
        "chain_parent": "dentist",
        "channel": null,
        "client": null,
        "command": null,
        "context_from": [],
        "created_by": null,
        "deliver": "failure",
        "description": "",
        "disallowed_tools": null,
        "enabled": true,
        "expect": null,
        "file": "reminders/dentist.md",
        "gate": null,
        "gate_timeout": null,
        "heartbeat_url": null,
        "hosts": [],
        "id": "dentist",
        "isolated": false,
        "kind": "reminder",
        "max_chain": 3,
        "max_cost_day_usd": null,
        "max_cost_usd": null,
        "max_turns": null,
        "message": "Call the dentist \u001b[31mnow.",
        "model": null,
        "network": "internet",
        "next": "2098-05-04T09:00:00+02:00",
        "on_missed": "all",
        "remember": "none",
        "requires": [],
        "requires_for": null,
        "retry": null,
        "run_at": "2098-05-04T09:00:00+02:00",
        "skills": [],
        "thinking": true,
        "timeout": null,
        "timezone": "Europe/Berlin",
        "update_main_session": "on_ping",
        "urgency": "normal",
        "wake": false
      }
    ]
    "#);
}

#[test]
fn what_is_coming() {
    let bot = some_jobs();
    let span = ["next", "--from", "2098-05-02T00:00:00Z", "--until", "2098-05-06T00:00:00Z"];
    insta::assert_snapshot!(typed(&bot, &span), @"
    exit: 0
    -- stdout
    NEXT LAST KIND ID WHAT
    Fri 2 May 2098 08:30 EDT in SPAN routine triage Sort the mail
    Sun 4 May 2098 09:00 CEST in SPAN reminder dentist Call the dentist [31mnow.
    Mon 5 May 2098 08:30 EDT in SPAN routine triage Sort the mail
    -- stderr
    disabled: plants (`ollim-bot resume plants` ends that)
    warning: the service is not running, so nothing fires
    hint: start it: `ollim-bot run`
    ");
    insta::assert_snapshot!(serde_json::to_string_pretty(&bot.json(span)).unwrap(), @r#"
    [
      {
        "at": "2098-05-02T08:30:00-04:00",
        "background": true,
        "description": "Sort the mail",
        "id": "triage",
        "kind": "routine",
        "last": null
      },
      {
        "at": "2098-05-04T09:00:00+02:00",
        "background": false,
        "description": "",
        "id": "dentist",
        "kind": "reminder",
        "last": null
      },
      {
        "at": "2098-05-05T08:30:00-04:00",
        "background": true,
        "description": "Sort the mail",
        "id": "triage",
        "kind": "routine",
        "last": null
      }
    ]
    "#);
    let at = |args: &[&str]| -> Vec<String> {
        let coming = bot.json(args);
        coming.as_array().unwrap().iter().map(|one| one["at"].as_str().unwrap().to_owned()).collect()
    };
    // Both ends are inclusive, and a daylight saving change does not move the local time.
    assert_eq!(
        at(&["next", "triage", "--from", "2098-03-07T08:30:00-05:00", "--until", "2098-03-10T12:30:00Z"]),
        ["2098-03-07T08:30:00-05:00", "2098-03-10T08:30:00-04:00"].map(String::from)
    );
    assert_eq!(at(&["next", "-n", "3", "triage"]).len(), 3);
    // Without an end there are ten; with one, all until then.
    let spring = ["next", "triage", "--from", "2098-03-01T00:00:00Z", "--until", "2098-04-01T00:00:00Z"];
    assert_eq!((at(&["next", "triage"]).len(), at(&spring).len()), (10, 21));
    assert_eq!(at(&[&spring[..], &["-n", "3"]].concat()).len(), 3);
    let ids = |args: &[&str]| -> Vec<String> {
        let coming = bot.json(args);
        coming.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let each = ids(&["next"]);
    assert!(each.iter().filter(|id| *id == "triage").count() == 1 && each.contains(&"dentist".into()), "{each:?}");
    assert!(ids(&["next", "--all"]).iter().filter(|id| *id == "triage").count() > 1);
    assert!(at(&["next", "plants"]).is_empty(), "it is disabled");
    let status = typed(&bot, &["status"]);
    assert!(status.contains("disabled plants (`ollim-bot resume plants` ends that)"), "{status}");
    assert_eq!(bot.json(["status"])["disabled"], serde_json::json!(["plants"]));
    insta::assert_snapshot!(typed(&bot, &["next", "nothing"]), @"
    exit: 1
    -- stderr
    error: there is no job `nothing`
    hint: `ollim-bot next`, `ollim-bot routine list` and `ollim-bot reminder list` show them
    ");
    insta::assert_snapshot!(typed(&bot, &["next", "--from", "whenever"]), @"
    exit: 1
    -- stderr
    error: cannot read the time `whenever`: `whenever` is not a word of a time that is understood
    hint: write a time like `tomorrow 9am`, `friday 18:30`, `end of month`, `31.12. 12:00` or `2030-12-31 09:00`
    ");
    insta::assert_snapshot!(typed(&TestBot::new(), &["next"]), @"
    exit: 0
    -- stderr
    nothing is coming
    ");
}

#[test]
fn check_names_every_problem_where_it_is() {
    let bot = some_jobs();
    insta::assert_snapshot!(typed(&bot, &["check"]), @"
    exit: 0
    -- stdout
    3 definitions in order, 0 errors, 0 warnings
    ");
    bot.write("reminders/broken.md", "---\nrun_at: never\n---\nx\n");
    bot.write("routines/odd.md", "---\ncron: \"@daily\"\ncolour: red\n---\nx\n");
    insta::assert_snapshot!(typed(&bot, &["check"]), @"
    exit: 1
    -- stdout
    error: reminder `broken`: `run_at` is not a time: `never`
      --> reminders/broken.md:2:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone

    warning: routine `odd`: unknown field `colour`
      --> routines/odd.md:3:1
    hint: it has no effect: remove it, or write it as a comment (`# …`)

    4 definitions in order, 1 error, 1 warning
    ");
    insta::assert_snapshot!(typed(&bot, &["check", "odd"]), @"
    exit: 0
    -- stdout
    warning: routine `odd`: unknown field `colour`
      --> routines/odd.md:3:1
    hint: it has no effect: remove it, or write it as a comment (`# …`)

    1 definition in order, 0 errors, 1 warning
    ");
    insta::assert_snapshot!(typed(&bot, &["check", "bot/reminders/broken.md"]), @"
    exit: 1
    -- stdout
    error: reminder `broken`: `run_at` is not a time: `never`
      --> reminders/broken.md:2:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone

    0 definitions in order, 1 error, 0 warnings
    ");
    insta::assert_snapshot!(typed(&bot, &["check", "/etc/passwd"]), @"
    exit: 1
    -- stderr
    error: /etc/passwd is no definition of [PERSON]/bot
    hint: name an id, or a file of routines/, reminders/ or webhooks/
    ");
    insta::assert_snapshot!(serde_json::to_string_pretty(&{
        let ran = bot.run(["--json", "check"]);
        assert_eq!(ran.code, 1);
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()
    }).unwrap(), @r#"
    {
      "definitions": 4,
      "includes": {
        "triage": [
          "`ollim-bot help`: a command of the bot, which answers to the job's own rules"
        ]
      },
      "problems": [
        {
          "column": 9,
          "field": "run_at",
          "file": "reminders/broken.md",
          "hint": "for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone",
          "id": "broken",
          "line": 2,
          "message": "`run_at` is not a time: `never`",
          "severity": "error"
        },
        {
          "column": 1,
          "field": "colour",
          "file": "routines/odd.md",
          "hint": "it has no effect: remove it, or write it as a comment (`# …`)",
          "id": "odd",
          "line": 3,
          "message": "unknown field `colour`",
          "severity": "warning"
        }
      ],
      "sandbox": "Landlock, seccomp"
    }
    "#);
}

#[test]
fn no_data_folder_is_said_with_the_way_to_one() {
    let bot = TestBot::bare();
    for args in [&["next"][..], &["check"], &["routine", "list"], &["runs"], &["inbox"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(typed(&bot, args), @"
            exit: 1
            -- stderr
            error: there is no data folder at [PERSON]/bot
            hint: `ollim-bot init` makes one; `--home DIR` or OLLIM_HOME names another
            ");
        }
    }
}

/// Writes a journal with one run that failed after two denials, and the message about it. Returns the run's id.
pub async fn record(home: &Path) -> String {
    std::fs::create_dir_all(home.join("state")).unwrap();
    let journal = Journal::open(&home.join("state/journal.db"), Clock::system()).unwrap();
    let id = DefinitionId::new("triage");
    let at = "2021-11-20T13:30:00Z".parse().unwrap();
    let claim = NewClaim {
        occurrence: Occurrence { id: id.clone(), kind: Kind::Routine, at },
        file: "routines/triage.md".into(),
        text: "---\ncron: x\n---\nGo.\n".into(),
        purpose: Purpose::Run,
        occasion: None,
        origin: None,
        run: RunId::random(),
    };
    let Claim::Claimed(run) = journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!("claimed") };
    journal.launching(&run, "---\ncron: x\n---\nGo.\n".into(), String::new(), Punctuality::Unknown).await.unwrap();
    for (tool, input) in [
        ("Bash", serde_json::json!({ "command": "cat \u{1b}[2Jsecret" })),
        ("Write", serde_json::json!({ "file_path": "evil" })),
    ] {
        let denial = Denial {
            tool: tool.into(),
            input,
            layer: "allowed_tools".into(),
            rule: None,
            reason: format!("{tool} is not granted to routine triage"),
        };
        journal.deny(&run, denial).await.unwrap();
    }
    journal
        .message(NewMessage {
            run: Some(run.clone()),
            ..NewMessage::about(Subject::words_of(&id), "Two things.\nSee above.")
        })
        .await
        .unwrap();
    journal.finish(&run, Finish::closed(RunState::Failed, Some("the client ended early".into()))).await.unwrap();
    let session = NewSession {
        id: DefinitionId::new("spawn-1f0c9a2b"),
        by: Some(run.clone()),
        caller: "routine triage".into(),
        caller_agent: None,
        definition: "---\nrun_at: 2021-11-20T13:31:00Z\nbackground: true\nagent: Explore\n---\nRead the logs.\n".into(),
        spawn_tool_policy: Some(r#"{"deny":["Bash(git *)"]}"#.into()),
        fork: None,
    };
    journal.start_session(session, 8, 8).await.unwrap();
    journal.close().await;
    run.to_string()
}

#[tokio::test]
async fn what_ran_and_what_was_said() {
    let bot = some_jobs();
    insta::assert_snapshot!(typed(&bot, &["runs"]), @"
    exit: 0
    -- stderr
    no runs yet
    ");
    insta::assert_snapshot!(typed(&bot, &["runs", "triage", "--failed"]), @"
    exit: 0
    -- stderr
    no runs of `triage` that failed yet
    ");
    insta::assert_snapshot!(typed(&bot, &["inbox"]), @"
    exit: 0
    -- stderr
    nothing was said yet
    ");
    let run = record(bot.home()).await;
    let known = |text: String| text.replace(&run, "RUN");
    insta::assert_snapshot!(known(typed(&bot, &["runs"])), @"
    exit: 0
    -- stdout
    RUN JOB SCHEDULED LATE TOOK OUTCOME
    RUN routine triage Sat 20 Nov 2021 13:30 UTC SPAN failed 2 calls refused, the client ended early
    ");
    assert!(bot.ok(["runs", "triage", "--failed"]).contains(&run));
    assert_eq!(bot.json(["runs", "plants"]), serde_json::json!([]));
    insta::assert_snapshot!(typed(&bot, &["runs", "plants"]), @"
    exit: 0
    -- stderr
    no runs of `plants` yet
    ");
    insta::assert_snapshot!(typed(&bot, &["runs", "spawn-1f0c9a2"]), @"
    exit: 1
    -- stderr
    error: there is no job `spawn-1f0c9a2`, and none has run under that id
    hint: did you mean `spawn-1f0c9a2b`?
    ");
    insta::assert_snapshot!(typed(&bot, &["--json", "runs", "other", "--failed"]), @"
    exit: 1
    -- stderr
    error: there is no job `other`, and none has run under that id
    hint: `ollim-bot runs` shows whatever ran, `ollim-bot next` what comes
    ");
    let show = known(typed(&bot, &["runs", "show", &run]));
    let of_events = |line: &str| match line.split_once(' ') {
        Some((time, event)) if time.len() == 8 && time.as_bytes()[2] == b':' => format!("TIME {event}"),
        _ => line.to_owned(),
    };
    let lines: Vec<String> =
        show.lines().filter(|line| !line.starts_with("started") && !line.starts_with("ended")).map(of_events).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    exit: 0
    -- stdout
    run RUN
    job routine triage
    outcome failed
    error the client ended early
    scheduled Sat 20 Nov 2021 13:30 UTC (SPAN ago)
    late SPAN
    took SPAN

    What happened
    TIME started
    TIME message Two things.
                        See above.
    TIME ended failed: the client ended early

    Denied (2)
      Bash cat [2Jsecret
        Bash is not granted to routine triage
      Write evil
        Write is not granted to routine triage

    The file as it fired
    ---
    cron: x
    ---
    Go.
    ");
    insta::assert_snapshot!(typed(&bot, &["runs", "show", "nothing"]), @"
    exit: 1
    -- stderr
    error: there is no run `nothing`
    hint: `ollim-bot runs` lists them
    ");
    let job = bot.json(["runs"])[0]["id"].as_str().unwrap().to_owned();
    let shown = typed(&bot, &["runs", "show", &job]);
    assert!(shown.contains(&format!("hint: `{job}` is a job: `ollim-bot runs {job}` lists its runs")), "{shown}");
    let inbox = typed(&bot, &["inbox"]);
    insta::assert_snapshot!(inbox.lines().skip(3).collect::<Vec<_>>().join("\n"), @"
    Two things.
    See above.
    ");
    let sessions = typed(&bot, &["sessions", "show", "spawn-1f0c9a2b"]);
    assert!(
        sessions.contains("waiting") && sessions.contains("Explore") && sessions.contains("Read the logs."),
        "{sessions}"
    );
    assert!(typed(&bot, &["sessions", "list"]).contains("routine triage"));
    let json = bot.json(["sessions", "list"]);
    let keys: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    insta::assert_snapshot!(format!("{keys:?}"), @r#"["agent", "answer", "created", "error", "kind", "prompt", "run", "session", "spawnToolPolicy", "spawned_by", "spawned_by_run", "state"]"#);
    let json = bot.json(["runs"]);
    let keys: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    insta::assert_snapshot!(format!("{keys:?}"), @r#"["api_fault", "api_retries", "attempt", "by_hand", "client", "client_version", "cost_usd", "covers_from", "denials", "ended", "error", "id", "kind", "late_ms", "model", "occasion", "outcome", "retry_at", "run", "scheduled", "started", "tokens", "turns"]"#);
    assert_eq!(json[0]["denials"][0]["reason"], "Bash is not granted to routine triage");
}

/// Every command, with words that make it read; `None` if it only changes things or another test covers its JSON.
const COMMANDS: [(&str, Option<&str>); 78] = [
    ("agents list", Some("agents list")),
    ("agents show", Some("agents show Plan")),
    // For the person only; `backup` tests their JSON.
    ("backup", None),
    ("budget", Some("budget")),
    ("cancel-run", None),
    // For the person only; `channels` tests its JSON.
    ("channels", None),
    ("channels test", None),
    ("chat", None),
    ("check", Some("check")),
    // It prints a script.
    ("completions", None),
    ("config", Some("config")),
    ("costs", Some("costs")),
    // For the person only; `doctor` tests its JSON.
    ("doctor", None),
    ("edit", None),
    ("export ics", Some("export ics")),
    // For the person only; `gates` tests its JSON.
    ("fire", None),
    ("follow-up-chain", None),
    ("help", Some("help")),
    // For the person only; `import` and `import_jobs` test their JSON.
    ("import crontab", None),
    ("import ollim-bot", None),
    ("import systemd", None),
    ("inbox", Some("inbox")),
    ("init", None),
    // For the person only; `hosts` tests its JSON.
    ("journal copy", None),
    ("login", None),
    ("logs", None),
    // For the person only; `mcp_servers` tests their JSON.
    ("mcp", None),
    ("mcp call", None),
    ("mcp list", None),
    ("mcp tools", None),
    ("next", Some("next")),
    ("pause", None),
    ("policy explain", Some("policy explain triage --command id")),
    // For the person only; `page` tests its JSON.
    ("policy refusals", None),
    ("policy show", Some("policy show triage")),
    // For the person only; `questions` tests their JSON.
    ("push", None),
    ("questions", None),
    ("questions answer", None),
    ("reminder add", None),
    ("reminder cancel", None),
    ("reminder edit", None),
    ("reminder list", Some("reminder list")),
    ("reminder restore", None),
    ("reminder retry", None),
    ("reminder show", Some("reminder show dentist")),
    ("reminder snooze", None),
    ("restore", None),
    ("resume", None),
    ("routine add", None),
    ("routine cancel", None),
    ("routine disable", None),
    ("routine edit", None),
    ("routine enable", None),
    ("routine list", Some("routine list")),
    ("routine show", Some("routine show triage")),
    ("run", None),
    ("runs", Some("runs")),
    ("runs follow", None),
    ("runs show", Some("runs show RUN")),
    // For the person only; `service_unit` tests their JSON.
    ("service install", None),
    ("service logs", None),
    ("service restart", None),
    ("service start", None),
    ("service status", None),
    ("service stop", None),
    ("service uninstall", None),
    ("sessions list", Some("sessions list")),
    ("sessions patch", None),
    ("sessions reset", None),
    ("sessions resume", None),
    ("sessions show", Some("sessions show spawn-1f0c9a2b")),
    ("simulate", Some("simulate --all")),
    ("spawn", None),
    ("status", Some("status")),
    ("web", None),
    ("webhook list", Some("webhook list")),
    ("webhook show", Some("webhook show deploy")),
    // For the person only; `why` tests its JSON.
    ("why", None),
];

/// Collects the names of all commands that can be run without a subcommand.
fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("{path} {}", sub.get_name()).trim().to_owned();
        if !sub.is_subcommand_required_set() {
            found.push(name.clone());
        }
        leaves(sub, &name, found);
    }
}

#[tokio::test]
async fn everything_that_reads_has_json() {
    use clap::{CommandFactory as _, Parser as _};
    use ollim_bot::app::Effect;
    use ollim_bot::cli::args::Cli;
    use ollim_bot::cli::command::{LocalCommand, ParsedCommand, typed};
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    found.sort();
    assert_eq!(found, COMMANDS.map(|(name, _)| name), "a command that is not in the table");
    let bot = some_jobs();
    bot.write("webhooks/deploy.md", "---\nsignature: github\n---\nDeploy.\n");
    let run = record(bot.home()).await;
    for words in COMMANDS.into_iter().filter_map(|(_, words)| words) {
        let words: Vec<&str> = words.split(' ').map(|word| if word == "RUN" { &run } else { word }).collect();
        let cli = Cli::try_parse_from(["ollim-bot"].iter().chain(&words)).unwrap();
        let effect = match typed(cli.command, None).unwrap() {
            ParsedCommand::App(command) => command.effect(),
            ParsedCommand::Own(LocalCommand::Short | LocalCommand::Help(_) | LocalCommand::Completions(_)) => {
                Effect::Reads
            }
            other => panic!("{other:?}"),
        };
        // `policy explain` also changes nothing, but is for the person only.
        let expect = if words.starts_with(&["policy", "explain"]) { Effect::Controls } else { Effect::Reads };
        assert_eq!(effect, expect, "{words:?}");
        for place in [0, words.len()] {
            let mut words = words.clone();
            words.insert(place, "--json");
            let ran = bot.run(&words);
            let document: Result<serde_json::Value, _> = serde_json::from_str(&ran.stdout);
            assert!(document.is_ok_and(|one| one.is_array() || one.is_object()), "{words:?}: {}", shown(&bot, &ran));
        }
    }
}

#[test]
fn rules_that_only_look_as_if_they_held_are_told() {
    let bot = TestBot::new();
    let routine = |fields: &str| format!("---\ncron: '@daily'\nbackground: true\n{fields}---\nWork.\n");
    bot.write("routines/a.md", &routine("allowed_tools: [mcp__discord__ping_usr]\n"));
    bot.write("routines/b.md", &routine("allowed_tools: ['Agent(Explore, Plna)']\n"));
    bot.write("routines/c.md", &routine("disallowed_tools: [Read, mcp__github__push]\n"));
    insta::assert_snapshot!(typed(&bot, &["check"]), @"
    exit: 1
    -- stdout
    error: routine `a`: `allowed_tools`: unknown tool `mcp__discord__ping_usr`
      --> routines/a.md:4:17
    hint: did you mean `mcp__discord__ping_user`?

    warning: routine `b`: there is no agent `Plna`; did you mean `Plan`?
      --> routines/b.md:4:17
    hint: `ollim-bot agents list` shows those there are

    warning: routine `c`: `Read` also takes Glob, Grep, Edit and Write away: what may not be read may not be searched or written
      --> routines/c.md:4:20
    hint: list what is allowed in `allowed_tools` if you mean less

    warning: routine `c`: `mcp__github__push` is about nothing: agents have no MCP server but our own, `discord`
      --> routines/c.md:4:26
    hint: remove it, or name the server in `mcp_servers`

    2 definitions in order, 1 error, 3 warnings
    ");
}

#[test]
fn a_file_that_one_job_runs_and_another_may_change_is_told() {
    let bot = TestBot::new();
    let routine =
        |rule: &str| format!("---\ncron: '@daily'\nbackground: true\nallowed_tools: ['{rule}']\n---\nWork.\n");
    bot.write("routines/runs.md", &routine("Bash(python3 tools/report.py *)"));
    bot.write("routines/edits.md", &routine("Edit(notes/**)"));
    assert!(bot.run(["check"]).stdout.contains("2 definitions in order, 0 errors, 0 warnings"));
    for rule in ["Edit(tools/**)", "Bash(cp *)", "Bash(sed -i *)"] {
        bot.write("routines/edits.md", &routine(rule));
        let said = bot.run(["check"]).stdout;
        let expect = format!("`Bash(python3 tools/report.py *)` runs a file that `{rule}` lets the job `edits` change");
        assert!(said.contains(&expect) && said.contains("--> routines/runs.md:4:18"), "{said}");
    }
    // Jobs that jobs have made would take long to compare: there may be many, with many rules.
    for made in ["runs", "edits"] {
        let text = bot.read(&format!("routines/{made}.md")).unwrap();
        bot.write(&format!("routines/{made}.md"), &text.replacen("---\n", "---\ncreated_by: maker\n", 1));
        assert!(!bot.run(["check"]).stdout.contains("runs a file"), "{made}");
        bot.write(&format!("routines/{made}.md"), &text);
    }
}

#[test]
fn status_shows_what_it_can_whatever_the_settings_say() {
    let bot = some_jobs();
    for config in ["timeout: never\n", "a: [\n"] {
        bot.write("config.yaml", config);
        let ran = bot.run(["status"]);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(ran.stdout.contains("dentist") && ran.stdout.contains("error config.yaml:"), "{ran:#?}");
        assert!(ran.stderr.contains("the settings cannot be used"), "{ran:#?}");
        assert!(bot.run(["--json", "status"]).stdout.starts_with('{'));
    }
    std::fs::remove_file(bot.path("config.yaml")).unwrap();
    assert_eq!(bot.run(["status"]).code, 0);
    std::fs::create_dir(bot.path("config.yaml")).unwrap();
    let ran = bot.run(["status"]);
    assert!(ran.code == 1 && ran.stdout.contains("dentist"), "{ran:#?}");
}

#[test]
fn times_are_in_the_zone_of_the_environment_whatever_the_settings_say() {
    let bot = some_jobs().env("TZ", "Asia/Tokyo");
    bot.write("config.yaml", "timeout: never\n");
    bot.write("reminders/early.md", "---\nrun_at: '2098-05-04T09:00:00Z'\n---\nEarly.\n");
    let shown = |bot: &TestBot| bot.run(["status"]).stdout;
    assert!(shown(&bot).contains("18:00 JST"), "{}", shown(&bot));
    let bot = bot.env("OLLIM_TIMEZONE", "Europe/Berlin");
    assert!(shown(&bot).contains("11:00 CEST"), "{}", shown(&bot));
    let bot = bot.env("OLLIM_TIMEZONE", "Mars/Base");
    assert!(shown(&bot).contains("18:00 JST"), "{}", shown(&bot));
}

#[test]
fn a_zone_that_is_none_is_said_where_times_are_shown() {
    let warning = "TZ=Mars/Base is no time zone, so times are in ";
    let bot = some_jobs().env("TZ", "Mars/Base");
    for words in [&["next"][..], &["status"], &["config"], &["reminder", "add", "x", "--in", "1h"]] {
        assert!(bot.run(words).stderr.contains(warning), "{words:?}");
    }
    // A zone in the settings takes precedence, so nothing else is consulted.
    bot.write("config.yaml", "timezone: Europe/Berlin\n");
    assert!(!bot.run(["next"]).stderr.contains("TZ="));
}

#[test]
fn a_zone_other_than_the_services_is_said_where_times_are_shown() {
    let bot = some_jobs().env("TZ", "Europe/Berlin");
    let service = bot.start();
    let warning = "the service runs in Europe/Berlin, where jobs fire, and these times are in America/New_York";
    let every = [&["next"][..], &["status"], &["reminder", "add", "x", "--in", "1h"]];
    let warns = |zone: &str| {
        every.map(|words| {
            let output = bot.command(words).env("TZ", zone).output().unwrap();
            String::from_utf8(output.stderr).unwrap().contains(warning)
        })
    };
    assert_eq!(warns("Europe/Berlin"), [false; 3]);
    assert_eq!(warns("America/New_York"), [true; 3]);
    bot.write("config.yaml", "timezone: Europe/Berlin\n");
    assert_eq!(warns("America/New_York"), [false; 3]);
    service.stop();
}

#[test]
fn keys_are_in_snake_case() {
    let bot = some_jobs();
    let plan = bot.json(["agents", "show", "Plan"]);
    let listed = bot.json(["agents", "list"]);
    for agent in listed.as_array().unwrap().iter().chain([&plan]) {
        for key in agent.as_object().unwrap().keys() {
            assert!(!key.contains(|c: char| c.is_ascii_uppercase()), "{key}");
        }
    }
}
