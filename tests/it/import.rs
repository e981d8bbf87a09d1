//! `import ollim-bot` imports the data folder of the Python ollim-bot, and names everything that it leaves out.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::bot::TestBot;

/// A folder as that bot has it: keys in kebab-case, skills that run commands, webhooks, its own state.
fn old(bot: &TestBot) -> PathBuf {
    let root = bot.person().join("old");
    let files = [
        (
            "routines/email-triage.md",
            "---\nid: 1f0c9a2b\ncron: \"30 8 * * *\"\nbackground: true\nisolated: true\nmodel: haiku\nallow-ping: false\n\
             update-main-session: always\nallowed-tools:\n  - Bash(ollim-bot gmail *)\n  - mcp__discord__report_updates\nskills: [mail]\n---\nTriage.\n",
        ),
        ("routines/foreground.md", "---\nid: 5a91c0de\ncron: \"@daily\"\nallowed-tools: [Read]\n---\nIt never held.\n"),
        (
            "routines/before.md",
            "---\nid: aaaaaaaa\ncron: \"@daily\"\nbackground: true\nblocked-tools: [WebFetch]\n---\nOlder.\n",
        ),
        ("routines/mine.md", "---\nid: mine\ncron: \"@daily\"\n---\nTheirs.\n"),
        (
            "reminders/dentist.md",
            "---\nid: 0badcafe\nrun-at: \"2098-05-04T09:00:00+02:00\"\nmax-chain: 2\n---\nDentist.\n",
        ),
        ("reminders/past.md", "---\nid: bbbbbbbb\nrun-at: \"2020-01-01T00:00:00Z\"\n---\nOver.\n"),
        ("skills/mail/SKILL.md", "---\nname: mail\ndescription: Mail\n---\nToday is !`date`.\n"),
        ("skills/empty/notes.md", "x\n"),
        (
            "agents/gmail-reader.md",
            "---\nname: gmail-reader\ndescription: Reads mail\n---\nYou read the mail of {USER_NAME}.\n",
        ),
        ("webhooks/build.md", "---\nid: build\n---\nA build.\n"),
        ("state/sessions.json", "{}\n"),
        (".env", "DISCORD_TOKEN=secret\n"),
        ("notes/family.md", "Birthdays.\n"),
        ("SYSTEM_PROMPT.md", "You are kind.\n"),
    ];
    for (file, text) in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(root.join("state/bot.pid"), std::process::id().to_string()).unwrap();
    root
}

fn import(bot: &TestBot, from: &Path, more: &[&str]) -> Value {
    let ran = bot.run([&["--json", "import", "ollim-bot", from.to_str().unwrap()], more].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// `file: why`, one a line.
fn said(files: &Value) -> String {
    let line = |one: &Value| format!("{}: {}\n", one["file"].as_str().unwrap(), one["why"].as_str().unwrap());
    files.as_array().unwrap().iter().map(line).collect::<String>().replace(&std::process::id().to_string(), "PID")
}

#[test]
fn definitions_skills_and_agents_are_taken_over_and_the_rest_is_named() {
    let bot = TestBot::new();
    bot.write("routines/mine.md", "---\nid: mine\ncron: '@daily'\n---\nMine.\n");
    let from = old(&bot);
    let tried = import(&bot, &from, &["--dry-run"]);
    assert_eq!(
        (bot.names("routines"), bot.names("reminders"), bot.names("skills")),
        (vec!["mine.md".to_owned()], vec![], vec![])
    );
    let done = import(&bot, &from, &[]);
    for key in ["taken", "left", "look"] {
        assert_eq!(tried[key], done[key], "what was said is what is done");
    }
    assert_eq!(
        done["taken"],
        json!([
            "agents/gmail-reader.md",
            "skills/mail/SKILL.md",
            "routines/email-triage.md",
            "reminders/dentist.md",
            "webhooks/build.md"
        ])
    );
    insta::assert_snapshot!(said(&done["left"]), @"
    skills/empty: it is no skill: it has no SKILL.md
    routines/before.md: line 5: unknown field `blocked-tools`, close to `disallowed_tools`, which restricts the job
    routines/foreground.md: line 4: `allowed_tools` does not hold on a foreground job
    routines/mine.md: there is a job `mine` already
    reminders/past.md: its time has passed
    state: conversations, sessions and budgets are not taken over
    .env: secrets are not taken over
    SYSTEM_PROMPT.md: only jobs, skills and agents are taken over
    notes: only jobs, skills and agents are taken over
    ");
    insta::assert_snapshot!(said(&done["look"]), @"
    state/bot.pid: the other bot may still run (pid PID), and would fire the same jobs
    agents/gmail-reader.md: it holds `{USER_NAME}`, which nothing fills in here
    skills/mail/SKILL.md: its commands (!`…`) are not run here: the text is given as it stands
    routines/email-triage.md: line 10: there is no command `ollim-bot gmail` here
    webhooks/build.md: line 1: this webhook has the main session's tools, and others choose what it is given
    ");
    assert_eq!(
        bot.read("routines/mine.md").unwrap(),
        "---\nid: mine\ncron: '@daily'\n---\nMine.\n",
        "nothing is overwritten"
    );
    let triage = bot.json(["routine", "show", "1f0c9a2b"]);
    assert_eq!(
        (&triage["allow_ping"], &triage["update_main_session"], &triage["skills"]),
        (&json!(false), &json!("always"), &json!(["mail"]))
    );
    assert_eq!(bot.json(["reminder", "show", "0badcafe"])["max_chain"], 2);
    assert_eq!(bot.json(["agents", "show", "gmail-reader"])["scope"], "project");
    assert_eq!(fs::read_dir(from.join("routines")).unwrap().count(), 4, "the other folder stays as it is");
    let again = import(&bot, &from, &[]);
    assert_eq!(again["taken"], json!([]));
    assert!(said(&again["left"]).contains("skills/mail/SKILL.md: the same file is here already"), "{again:#}");
    assert!(said(&again["left"]).contains("routines/email-triage.md: the same file is here already"), "{again:#}");
    assert_eq!(bot.run(["import", "ollim-bot", from.to_str().unwrap()]).code, 0);
    bot.write("skills/mail/SKILL.md", "mine");
    let again = import(&bot, &from, &[]);
    assert!(said(&again["left"]).contains("skills/mail/SKILL.md: skills/mail/SKILL.md is there already"), "{again:#}");
}

#[test]
fn it_makes_the_folder_and_refuses_what_is_none() {
    let bot = TestBot::bare();
    let from = old(&bot);
    let shown = bot.ok(["import", "ollim-bot", from.to_str().unwrap()]);
    assert!(
        shown.contains("took over  reminders/dentist.md") && shown.contains("took over  webhooks/build.md"),
        "{shown}"
    );
    assert!(shown.contains("6 files taken over"), "{shown}");
    for (path, why) in [("nowhere", "cannot be read"), (".", "into itself"), ("old/state", "neither routines/ nor")] {
        let refused = bot.run(["import", "ollim-bot", path]);
        assert_eq!((refused.code, refused.stderr.contains(why)), (1, true), "{path}: {refused:?}");
    }
}
