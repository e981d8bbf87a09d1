//! The page in a real browser. The scripts of `tests/browser/` drive it; `scripts/browser` installs what they need.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::hosts::host;
use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::postgres::Postgres;

/// Jobs that are fired by hand before a test and have ended by then.
const FIRED: [&str; 6] = ["backup", "backup", "fails", "refused", "odd <b>\"name\"& ü", "tea"];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns an address that the page keeps after a restart.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A bot with the files of `tests/browser/home/`, whose page is at the address.
fn bot() -> (TestBot, String) {
    let bot = TestBot::new();
    for folder in ["routines", "reminders"] {
        for entry in fs::read_dir(here("tests/browser/home").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            bot.write(&format!("{folder}/{name}"), &fs::read_to_string(&path).unwrap());
        }
    }
    let asks = "background: true\nclient: exec\ncommand: echo asked\napprove: true\nallowed_tools: []\n";
    bot.write("reminders/asks.md", &reminder(now(), asks, ""));
    let address = free_address();
    bot.write("config.yaml", &format!("web: {address}\n"));
    (bot, format!("http://{address}"))
}

/// Fires the jobs: a run that completed, failed, was refused a call, prints hostile text, is running; and a question.
fn fill(bot: &TestBot, service: &Service<'_>) {
    for id in FIRED {
        bot.run(["fire", id, "--wait"]);
    }
    bot.ok(["fire", "slow"]);
    service.until("a question is open", || {
        bot.json(["questions"]).as_array().is_some_and(|all| !all.is_empty()).then_some(())
    });
}

/// Returns the script of a subject, with the environment of the bot's commands.
fn script(bot: &TestBot, subject: &str, url: &str) -> Command {
    let browser = here(".browser");
    assert!(browser.join("chromium").is_file(), "no browser is installed: `./scripts/browser` installs it");
    let mut node = Command::new("node");
    let command = bot.command::<&str>([]);
    node.arg(here("tests/browser/run.mjs")).args([subject, url]).env_clear();
    node.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    node.env("OLLIM_BOT", env!("CARGO_BIN_EXE_ollim-bot")).env("OLLIM_BROWSER", browser);
    node.envs(std::env::var_os("OLLIM_PICTURES").map(|folder| ("OLLIM_PICTURES", folder)));
    node.stdin(Stdio::piped()).stdout(Stdio::piped());
    node
}

/// Returns a bot with the files of `tests/browser/demo.mjs` and their past, and the address of its page.
fn demo() -> (TestBot, String) {
    let (bot, address) = (TestBot::new().env("TZ", "UTC"), free_address());
    let made = Command::new("node").arg(here("tests/browser/demo_data.mjs")).output().unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    for (path, text) in made["files"].as_object().unwrap() {
        bot.write(path, text.as_str().unwrap());
    }
    bot.write("config.yaml", &format!("web: {address}\nbudget: {{ day: 5.00, month: 60.00 }}\n"));
    // The service creates the journal. The past is written while it is off.
    bot.start().stop();
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    journal.execute_batch(made["sql"].as_str().unwrap()).unwrap();
    (bot, format!("http://{address}"))
}

/// Runs the tests of a subject on a bot that has fired its jobs.
fn holds(subject: &str) {
    let (bot, url) = bot();
    let service = bot.start();
    fill(&bot, &service);
    holds_of(subject, &bot, &url, service);
}

/// Runs the tests of a subject. Prints their measurements and asserts nothing of them.
#[expect(clippy::print_stderr, reason = "a test says what it has measured")]
fn holds_of<'a>(subject: &str, bot: &'a TestBot, url: &str, service: Service<'a>) {
    let mut service = Some(service);
    let mut node = script(bot, subject, url).spawn().unwrap();
    let mut replies = node.stdin.take().unwrap();
    let mut report = Value::Null;
    for line in BufReader::new(node.stdout.take().unwrap()).lines() {
        match line.unwrap().as_str() {
            "stop" => _ = service.take().unwrap().stop(),
            "start" => service = Some(bot.start()),
            "freeze" => service.as_ref().unwrap().signal(Signal::STOP),
            "thaw" => service.as_ref().unwrap().signal(Signal::CONT),
            line => {
                report = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                continue;
            }
        }
        replies.write_all(b"done\n").unwrap();
    }
    assert!(node.wait().unwrap().success());
    let cases = report["cases"].as_array().unwrap();
    let wrong: Vec<_> = cases.iter().filter(|case| case["wrong"] != serde_json::json!([])).collect();
    let said = service.map(|service| service.output()).unwrap_or_default();
    assert!(wrong.is_empty() && !cases.is_empty(), "{wrong:#?}\n{said:.4000}");
    eprintln!("{} cases of {subject}; measured: {}", cases.len(), report["figures"]);
}

#[test]
fn every_page_can_be_used_by_anybody_on_any_screen() {
    holds("pages");
}

#[test]
fn hostile_texts_are_shown_and_do_nothing() {
    holds("hostile");
}

#[test]
fn every_button_works_without_a_script() {
    holds("no_script");
}

#[test]
fn everything_can_be_reached_by_keyboard() {
    holds("keyboard");
}

#[test]
fn an_open_page_follows_what_happens() {
    holds("live");
}

#[test]
fn a_page_of_somebody_else_does_and_reads_nothing() {
    holds("other_origin");
}

#[test]
fn only_a_fresh_link_lets_a_browser_in() {
    holds("login");
}

#[test]
fn five_questions_are_each_answered_by_one_look() {
    let (bot, url) = demo();
    let service = bot.start();
    holds_of("walk", &bot, &url, service);
}

/// Writes 100,000 runs of 1,000 jobs: a tenth of them in the last week, the others in the 83 days before.
const LONG_PAST: &str = r#"
BEGIN;
CREATE TEMP TABLE past AS
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
SELECT i, 'job-' || (i * 7 % 1000) AS id, printf('%08x', i) AS run,
       CASE i % 50 WHEN 0 THEN 'failed' WHEN 1 THEN 'skipped' ELSE 'completed' END AS state,
       unixepoch() * 1000 - CASE WHEN i < 90000 THEN 7 * 86400000 + (90000 - i) * 79680
                                 ELSE (100000 - i) * 60480 END AS at
FROM n;
INSERT INTO occurrence (id, kind, at, by_hand, file, claimed, outcome, file_done)
SELECT id, 'routine', at, 0, 'routines/' || id || '.md', at, state, 1 FROM past ORDER BY i;
INSERT INTO run (run, occurrence, attempt, state, launched, started, ended, cost_usd, model, tokens, client)
SELECT run, (SELECT max(rowid) FROM occurrence) - 99999 + i, 1, state, iif(state = 'skipped', NULL, at), iif(state = 'skipped', NULL, at),
       at + i % 600 * 1000, (i % 97) / 1000.0, iif(i % 3, 'claude-haiku-4-5', 'claude-sonnet-4-5'),
       '{"input":20000,"cache_read":20000,"cache_write":800,"output":340}', 'claude'
FROM past ORDER BY i;
COMMIT;
"#;

#[test]
fn a_hundred_thousand_runs_of_a_thousand_jobs_are_shown_on_any_screen() {
    let (bot, address) = (TestBot::new(), free_address());
    for job in 0..1000 {
        let minute = job % 60;
        bot.write(
            &format!("routines/job-{job}.md"),
            &format!("---\ncron: '{minute} 4 * * *'\n---\nWater plant {job}.\n"),
        );
    }
    bot.write("config.yaml", &format!("web: {address}\n"));
    // The service creates the journal. The past is written while it is off.
    bot.start().stop();
    rusqlite::Connection::open(bot.path("state/journal.db")).unwrap().execute_batch(LONG_PAST).unwrap();
    let service = bot.start();
    holds_of("many", &bot, &format!("http://{address}"), service);
}

#[test]
fn a_name_that_only_the_person_knows_keeps_the_session_from_other_ports() {
    let (bot, address) = (TestBot::new(), free_address());
    let port = address.rsplit_once(':').unwrap().1;
    let url = format!("http://bot-5f0c1d8e.localhost:{port}");
    bot.write("config.yaml", &format!("web: {address}\nweb_url: {url}\n"));
    let service = bot.start();
    holds_of("named", &bot, &url, service);
}

#[test]
fn a_host_that_is_gone_is_seen_on_any_screen() {
    let server = Postgres::start();
    let address = free_address();
    let [attic, laptop] = ["attic", "laptop"].map(|name| host(TestBot::new(), &server, name));
    attic.write("config.yaml", &format!("web: {address}\n"));
    let service = attic.start();
    let other = laptop.start();
    let long =
        "background: true\nclient: exec\ncommand: sleep 300\nhosts: [laptop]\nallowed_tools: ['Bash(sleep *)']\n";
    laptop.write("reminders/long.md", &reminder(now(), long, ""));
    let open = || attic.json(["status"])["hosts"].as_array().unwrap().iter().any(|host| host["open"] == 1);
    other.until("it goes", || open().then_some(()));
    other.kill();
    let gone = || attic.json(["status"])["hosts"].as_array().unwrap().iter().any(|host| host["alive"] == false);
    service.until("it is gone", || gone().then_some(()));
    holds_of("hosts", &attic, &format!("http://{address}"), service);
}
