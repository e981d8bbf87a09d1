//! Ways in which a person changes a definition: the editor, snoozing, restoring a reminder that has fired; and the ping
//! budget.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};

const TEA: &str = "---\n# Mine.\nid: tea\nrun_at: \"2098-05-04T09:00:00Z\"   # in the morning\n---\nTea.\n";

/// Runs a command with this editor. Returns its output, with the name of a kept copy replaced by `COPY`.
#[track_caller]
fn edited(bot: &TestBot, editor: &str, args: &[&str]) -> String {
    let ran = bot.command(args).env("EDITOR", editor).output().unwrap();
    let ran = crate::support::bot::CommandOutput {
        code: ran.status.code().unwrap(),
        stdout: String::from_utf8(ran.stdout).unwrap(),
        stderr: String::from_utf8(ran.stderr).unwrap(),
    };
    let text = shown(bot, &ran);
    bot.names("state/edits").iter().fold(text, |text, name| text.replace(name, "COPY"))
}

fn time(value: &serde_json::Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn what_an_editor_makes_of_a_file_is_checked_and_written() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    bot.write("routines/plants.md", "---\ncron: '@daily'\nenabled: false\n---\nWater the plants.\n");
    let said = edited(&bot, "sed -i s/Tea/Coffee/", &["reminder", "edit", "tea"]);
    assert!(said.starts_with("exit: 0\n-- stdout\nscheduled tea: at Sun 4 May 2098 09:00 UTC (in "), "{said}");
    assert_eq!(bot.read("reminders/tea.md").unwrap(), TEA.replace("Tea", "Coffee"));
    insta::assert_snapshot!(edited(&bot, "sed -i s/Water/Drown/", &["routine", "edit", "plants"]), @"
    exit: 0
    -- stdout
    scheduled plants: disabled
    ");
    insta::assert_snapshot!(edited(&bot, "true", &["reminder", "edit", "tea"]), @"
    exit: 0
    -- stderr
    reminders/tea.md stays as it was
    ");
    assert_eq!(bot.names("state/edits"), Vec::<String>::new());
    // VISUAL takes precedence.
    let bot = bot.env("VISUAL", "sed -i s/Coffee/Cocoa/");
    edited(&bot, "false", &["reminder", "edit", "reminders/tea.md"]);
    assert_eq!(bot.read("reminders/tea.md").unwrap(), TEA.replace("Tea", "Cocoa"));
}

#[test]
fn what_is_not_valid_is_shown_and_the_copy_kept() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    insta::assert_snapshot!(edited(&bot, "sed -i s/2098-05-04/tomorrow/", &["reminder", "edit", "tea"]), @"
    exit: 1
    -- stderr
    error: reminder `tea`: `run_at` is not a time: `tomorrowT09:00:00Z`
      --> reminders/tea.md:4:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    error: reminders/tea.md stays as it was
    hint: what you wrote is kept in [PERSON]/bot/state/edits/COPY
    ");
    assert_eq!(bot.read("reminders/tea.md").as_deref(), Some(TEA));
    let copy = format!("state/edits/{}", bot.names("state/edits")[0]);
    assert_eq!(bot.read(&copy).unwrap(), TEA.replace("2098-05-04", "tomorrow"));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(bot.path(&copy)).unwrap().permissions().mode() & 0o077, 0);
    assert_eq!(std::fs::metadata(bot.path("state/edits")).unwrap().permissions().mode() & 0o077, 0);
    std::fs::remove_file(bot.path(&copy)).unwrap();
    // An id of another file would keep both from firing.
    bot.write("reminders/milk.md", TEA.replace("id: tea", "id: milk").as_str());
    let said = edited(&bot, "sed -i s/tea/milk/", &["reminder", "edit", "tea"]);
    assert!(said.contains("the id `milk` is that of reminders/milk.md, so neither would fire"), "{said}");
    assert_eq!(bot.read("reminders/tea.md").as_deref(), Some(TEA));
}

#[test]
fn a_change_by_somebody_else_stands() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    let both = "sed -i s/Tea/Coffee/ bot/reminders/tea.md && sed -i s/Tea/Cocoa/";
    insta::assert_snapshot!(edited(&bot, both, &["reminder", "edit", "tea"]), @"
    exit: 1
    -- stderr
    error: reminders/tea.md was changed or removed by somebody else meanwhile
    hint: their change stands; bring yours over by hand
    hint: what you wrote is kept in [PERSON]/bot/state/edits/COPY
    ");
    assert_eq!(bot.read("reminders/tea.md").unwrap(), TEA.replace("Tea", "Coffee"));
    let gone = edited(&bot, "rm bot/reminders/tea.md && sed -i s/Coffee/Cocoa/", &["reminder", "edit", "tea"]);
    assert!(gone.contains("was changed or removed by somebody else"), "{gone}");
    assert_eq!(bot.read("reminders/tea.md"), None);
    assert_eq!(bot.names("state/edits").len(), 2);
}

#[test]
fn a_broken_file_can_be_put_right() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", "---\nrun_at: never\n---\nTea.\n");
    let said = edited(&bot, "sed -i s/never/2098-05-04T09:00:00Z/", &["reminder", "edit", "tea"]);
    assert!(said.starts_with("exit: 0\n-- stdout\nscheduled tea: at "), "{said}");
    bot.write("reminders/other.md", TEA);
    insta::assert_snapshot!(edited(&bot, "true", &["reminder", "edit", "tea"]), @"
    exit: 1
    -- stderr
    error: more than one file has the id `tea`
    hint: name the one that you mean: reminders/other.md, reminders/tea.md
    ");
    let said = edited(&bot, "sed -i 's/id: tea/id: other/'", &["reminder", "edit", "reminders/other.md"]);
    assert!(said.starts_with("exit: 0"), "{said}");
    assert_eq!(bot.json(["check"])["problems"], json!([]));
}

#[test]
fn no_editor_no_job_and_an_editor_that_fails() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    insta::assert_snapshot!(shown(&bot, &bot.run(["reminder", "edit", "tea"])), @"
    exit: 1
    -- stderr
    error: there is no editor: neither VISUAL nor EDITOR is set
    hint: for example `EDITOR=nano ollim-bot reminder edit tea`
    hint: or write [PERSON]/bot/reminders/tea.md with any program
    ");
    insta::assert_snapshot!(edited(&bot, "true", &["routine", "edit", "tea"]), @"
    exit: 1
    -- stderr
    error: `tea` is a reminder, not a routine
    hint: use `ollim-bot reminder …`
    ");
    for outside in ["../../etc/passwd", "state/user.token", "reminders/../config.yaml"] {
        let said = edited(&bot, "true", &["reminder", "edit", outside]);
        assert!(said.contains("there is no reminder"), "{said}");
    }
    insta::assert_snapshot!(edited(&bot, "false", &["reminder", "edit", "tea"]), @"
    exit: 1
    -- stderr
    error: the editor `false` failed (exit status: 1); nothing was changed
    ");
    assert_eq!(bot.names("state/edits"), Vec::<String>::new());
    let said = edited(&bot, "sed -i s/Tea/Cocoa/ \"$1\"; false", &["reminder", "edit", "tea"]);
    assert!(said.contains("what you wrote is kept in [PERSON]/bot/state/edits/COPY"), "{said}");
    assert_eq!(bot.read("reminders/tea.md").as_deref(), Some(TEA));
}

#[test]
fn a_snoozed_reminder_keeps_all_but_its_time() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    let before = now();
    let snoozed = bot.json(["reminder", "snooze", "tea", "20m"]);
    let at = time(&snoozed["run_at"]);
    assert!(before + TimeDelta::minutes(20) <= at && at <= now() + TimeDelta::seconds(20 * 60 + 1), "{at}");
    let expected = TEA.replace("\"2098-05-04T09:00:00Z\"", &format!("'{}'", at.to_rfc3339()));
    assert_eq!(bot.read("reminders/tea.md").unwrap(), expected);
    insta::assert_snapshot!(shown(&bot, &bot.run(["reminder", "snooze", "tea", "soon"])), @"
    exit: 1
    -- stderr
    error: invalid value 'soon' for '<SPAN>': not a span of time; write it like `20m`, `90s` or `1h30m`; `tomorrow 9am` and the like go with `reminder edit ID --at`
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["reminder", "snooze", "te", "20m"])), @"
    exit: 1
    -- stderr
    error: there is no reminder `te`
    hint: write `tea`: what changes something takes the beginning of an id from 4 letters on
    ");
}

#[test]
fn a_reminder_that_has_fired_comes_back_as_it_was() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::hours(1), "# Mine.\ndescription: Tea time\n", "Tea."));
    bot.write("routines/plants.md", "---\ncron: '@yearly'\n---\nWater the plants.\n");
    let service = bot.start();
    let tea = service.until_ended("tea", 1)[0]["run"].as_str().unwrap().to_owned();
    bot.ok(["fire", "plants"]);
    let plants = service.until_ended("plants", 1)[0]["run"].as_str().unwrap().to_owned();
    service.until("the file is gone", || bot.read("reminders/tea.md").is_none().then_some(()));
    let typed = |args: &[&str]| {
        let text = shown(&bot, &bot.run([&["reminder", "restore"], args].concat()));
        text.replace(&tea, "RUN").replace(&plants, "RUN")
    };
    insta::assert_snapshot!(typed(&[&tea]), @"
    exit: 1
    -- stderr
    error: the time of reminder `tea` has passed
    hint: say when it is to fire: `--in 20m` or `--at 'tomorrow 9am'`
    ");
    insta::assert_snapshot!(typed(&[&plants]), @"
    exit: 1
    -- stderr
    error: run `RUN` was routine plants, which is no reminder
    hint: a routine fires again by itself; `ollim-bot fire plants` runs it now
    ");
    insta::assert_snapshot!(typed(&["nothing"]), @"
    exit: 1
    -- stderr
    error: there is no run `nothing`
    hint: `ollim-bot runs` lists them
    ");
    let said = typed(&[&tea, "--at", "2098-05-04T09:00:00Z"]);
    assert!(said.starts_with("exit: 0\n-- stdout\nscheduled tea: at Sun 4 May 2098 09:00 UTC (in "), "{said}");
    insta::assert_snapshot!(bot.read("reminders/tea.md").unwrap(), @"
    ---
    run_at: '2098-05-04T09:00:00+00:00'
    # Mine.
    description: Tea time
    id: tea
    ---
    Tea.
    ");
    insta::assert_snapshot!(typed(&[&tea, "--in", "1h"]), @"
    exit: 1
    -- stderr
    error: there is a job `tea` already; it stays as it is
    hint: it is in reminders/tea.md
    ");
    // A reminder fired early is restored one second after its time, since the occurrence at that time already has an outcome.
    service.until("it is scheduled", || (bot.run(["fire", "tea"]).code == 0).then_some(()));
    let again = service.until_ended("tea", 2)[0]["run"].as_str().unwrap().to_owned();
    service.until("the file is gone", || bot.read("reminders/tea.md").is_none().then_some(()));
    let back = bot.json(["reminder", "restore", &again]);
    assert_eq!(back["run_at"], "2098-05-04T09:00:01+00:00");
    service.until("it is scheduled", || (bot.run(["fire", "tea"]).code == 0).then_some(()));
    let third = service.until_ended("tea", 3)[0]["run"].as_str().unwrap().to_owned();
    service.until("the file is gone", || bot.read("reminders/tea.md").is_none().then_some(()));
    // So is one that is told its time.
    let back = bot.json(["reminder", "restore", &third, "--at", "2098-05-04T09:00:00Z"]);
    assert_eq!(back["run_at"], "2098-05-04T09:00:02+00:00");
    bot.ok(["reminder", "edit", "tea", "--at", "2097-05-04T09:00:00Z"]);
    let edited = bot.json(["reminder", "edit", "tea", "--at", "2098-05-04T09:00:01Z"]);
    assert_eq!(edited["run_at"], "2098-05-04T09:00:02+00:00");
    let same = bot.json(["reminder", "edit", "tea", "--at", "2098-05-04T09:00:02Z"]);
    assert_eq!(same["run_at"], "2098-05-04T09:00:02+00:00");
    assert!(service.stop().0.success());
}

#[test]
fn the_ping_budget_is_shown_and_set_with_and_without_the_service() {
    let bot = TestBot::new();
    insta::assert_snapshot!(shown(&bot, &bot.run(["budget"])), @"
    exit: 0
    -- stdout
    5 of 5 pings left
    ");
    assert_eq!(bot.json(["budget"]), json!({ "left": 5, "capacity": 5, "next": null }));
    let before = now();
    let set = bot.json(["budget", "--set", "2"]);
    assert_eq!((&set["left"], &set["capacity"]), (&json!(2), &json!(5)));
    let next = time(&set["next"]);
    assert!(before + TimeDelta::minutes(90) <= next && next <= now() + TimeDelta::minutes(90), "{next}");
    assert!(bot.ok(["budget"]).starts_with("2 of 5 pings left; one more at "));
    assert_eq!(bot.json(["status"])["budget"], bot.json(["budget"]));
    let service = bot.start();
    assert_eq!(bot.json(["budget"])["left"], 2);
    assert_eq!(bot.json(["budget", "--set", "0"])["left"], 0);
    assert_eq!(bot.json(["budget", "--set", "5"]), json!({ "left": 5, "capacity": 5, "next": null }));
    assert!(service.stop().0.success());
    assert_eq!(bot.json(["budget"])["left"], 5);
    insta::assert_snapshot!(shown(&bot, &bot.run(["budget", "--set", "6"])), @"
    exit: 1
    -- stderr
    error: invalid value '6' for '--set <N>': write a whole number from 0 to 5
    ");
}

#[test]
fn an_empty_text_takes_any_field_out_that_a_job_can_be_without() {
    let bot = TestBot::new();
    let plain = "---\ncron: '@daily'\nbackground: true\n---\nSort.\n";
    let set = "---\ncron: '@daily'\nbackground: true\ntimeout: 5m\nretry: 2\nalert_after: 2\nmax_turns: 5\n\
               max_cost_usd: 0.5\non_missed: skip\nurgency: low\nclient: claude\nmodel: haiku\n---\nSort.\n";
    bot.write("routines/mail.md", set);
    let flags =
        ["timeout", "retry", "alert-after", "max-turns", "max-cost-usd", "on-missed", "urgency", "client", "model"];
    for flag in flags {
        let ran = bot.run(["routine", "edit", "mail", &format!("--{flag}"), ""]);
        assert_eq!(ran.code, 0, "--{flag}: {ran:?}");
    }
    assert_eq!(bot.read("routines/mail.md").unwrap(), plain);
    let refused = bot.run(["routine", "edit", "mail", "--cron", ""]);
    assert!(refused.code == 1 && bot.read("routines/mail.md").unwrap() == plain, "{refused:?}");
    // A new job has no field to remove.
    assert_eq!(bot.run(["routine", "add", "x", "--cron", "@daily", "--timeout", ""]).code, 1);
}

#[test]
fn what_is_named_is_set_without_an_editor_and_the_rest_stays() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", TEA);
    bot.ok(["reminder", "edit", "tea", "-m", "Coffee.\n\nTwo cups.", "-d", "Breakfast"]);
    assert_eq!(
        bot.read("reminders/tea.md").unwrap(),
        TEA.replace("---\nTea.\n", "description: Breakfast\n---\nCoffee.\n\nTwo cups.\n")
    );
    bot.ok(["reminder", "edit", "tea", "-d", "", "--at", "2098-05-05T10:00+00:00"]);
    let text = bot.read("reminders/tea.md").unwrap();
    for (part, there) in [("2098-05-05T10:00:00+00:00", true), ("   # in the morning", true), ("Breakfast", false)] {
        assert_eq!(text.contains(part), there, "{part}: {text}");
    }
    let refused = |args: &[&str]| {
        let ran = bot.run(args);
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.stderr
    };
    for (args, part) in [
        (&["reminder", "edit", "tea", "--agent", "Plan"][..], "`agent` does not hold on a foreground job"),
        (&["reminder", "edit", "tea", "--cron", "@daily"], "reminder tea has no --cron"),
        (&["reminder", "edit", "tea", "-m", " "], "the message is empty"),
        (&["reminder", "edit", "tea", "--allowed-tools", "Read", "--blocked-tools", "Edit"], "cannot be used together"),
        (&["reminder", "edit", "nobody", "-m", "x"], "there is no reminder `nobody`"),
    ] {
        let said = refused(args);
        assert!(said.contains(part), "{args:?}: {said}");
    }
    assert_eq!(bot.read("reminders/tea.md").unwrap(), text);

    bot.write("routines/mail.md", "---\ncron: '@daily'\nbackground: true\ndisallowed_tools: [Edit]\n---\nSort.\n");
    bot.ok([
        "routine",
        "edit",
        "mail",
        "--allowed-tools",
        "Read",
        "Grep",
        "--agent",
        "Explore",
        "--cron",
        "30 8 * * *",
    ]);
    let text = bot.read("routines/mail.md").unwrap();
    for part in ["cron: 30 8 * * *\n", "agent: Explore\n", "allowed_tools:\n  - Read\n  - Grep\n"] {
        assert!(text.contains(part) && !text.contains("disallowed_tools"), "{text}");
    }
}

#[test]
fn every_field_is_set_and_set_back_by_flags() {
    use ollim_bot::definition::fields::{FIELDS, FieldKinds, Shape};
    for field in FIELDS {
        // Fields that the program sets have no flag. A reminder's time has `--at` and `--in` instead.
        let flags: Vec<_> = field.flags.iter().filter(|flag| !flag.hidden).collect();
        let is_programs =
            ["run_at", "chain_depth", "chain_parent", "created_by", "failed_reason"].contains(&field.name);
        // A webhook can only be written as a file.
        assert_eq!(flags.is_empty(), is_programs || field.on == FieldKinds::Webhook, "{}", field.name);
        if matches!(field.shape, Shape::Flag) {
            assert_eq!(flags.len(), 2, "{} is set one way only", field.name);
        }
    }
    let bot = TestBot::new();
    let text = "---\ncron: '@daily'\nbackground: true\n---\nSort.\n";
    bot.write("routines/mail.md", text);
    bot.ok(["routine", "edit", "mail", "--disabled", "--isolated", "--no-thinking", "--no-ping", "--no-network"]);
    let shown = bot.json(["routine", "show", "mail"]);
    let set = ["enabled", "isolated", "thinking", "allow_ping", "network"].map(|name| shown[name].clone());
    assert_eq!(set, [json!(false), json!(true), json!(false), json!(false), json!("none")]);
    bot.ok(["routine", "edit", "mail", "--enabled", "--no-isolated", "--adaptive-thinking", "--ping", "--network"]);
    let shown = bot.json(["routine", "show", "mail"]);
    let set = ["enabled", "isolated", "thinking", "allow_ping", "network"].map(|name| shown[name].clone());
    assert_eq!(set, [json!(true), json!(false), json!(true), json!(true), json!("internet")]);
    // A field with its default value needs no line.
    assert_eq!(bot.read("routines/mail.md").as_deref(), Some(text));
    bot.ok(["routine", "edit", "mail", "--foreground"]);
    assert_eq!(bot.json(["routine", "show", "mail"])["background"], false);
    let made = bot.run(["routine", "add", "x", "--every", "2h", "--foreground"]);
    assert!(made.code == 1 && made.stderr.contains("unexpected argument"), "{made:?}");
}

/// Commands that change one file at the same time, and somebody who cancels the job meanwhile: what was said to be done is done.
#[test]
fn commands_that_change_one_file_at_once_lose_nothing() {
    let bot = TestBot::new();
    for round in 0..8 {
        bot.write("routines/mail.md", "---\ncron: 0 8 * * *\nbackground: true\n---\nMail.\n");
        bot.write("reminders/tea.md", &reminder(now() + TimeDelta::days(9), "", "Tea."));
        let edits = [
            &["routine", "edit", "mail", "-d", "sorted"][..],
            &["routine", "edit", "mail", "--timeout", "3h"],
            &["routine", "disable", "mail"],
            &["reminder", "edit", "tea", "-m", "Coffee."],
            &["reminder", "cancel", "tea"],
        ];
        let codes: Vec<i32> = std::thread::scope(|scope| {
            let running: Vec<_> = edits.iter().map(|edit| scope.spawn(|| bot.run(*edit).code)).collect();
            running.into_iter().map(|edit| edit.join().unwrap()).collect()
        });
        assert_eq!((&codes[..3], codes[4]), (&[0, 0, 0][..], 0), "round {round}");
        let text = bot.read("routines/mail.md").unwrap();
        for line in ["description: sorted", "timeout: 3h", "enabled: false"] {
            assert!(text.contains(line), "round {round}: {text}");
        }
        // The edit came before, or found the file gone.
        assert_eq!(bot.read("reminders/tea.md"), None, "round {round}: {codes:?}");
    }
}
