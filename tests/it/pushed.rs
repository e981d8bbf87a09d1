//! Jobs that only the journal's database has: put there, fired once by one of the hosts, and removed.

use std::fs;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::exec::printed;
use crate::hosts::host;
use crate::support::bot::{CommandOutput, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::postgres::Postgres;

const PLAIN: &str = "client: notify\n";

pub fn routine(cron: &str, fields: &str, body: &str) -> String {
    format!("---\ncron: '{cron}'\n{fields}---\n{body}\n")
}

/// Writes files below `jobs/` of the person, outside of the data folder.
fn write(bot: &TestBot, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = bot.person().join("jobs").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Pushes one text.
fn push(bot: &TestBot, path: &str, text: &str) -> CommandOutput {
    write(bot, &[(path, text)]);
    bot.run(["push".as_ref(), bot.person().join("jobs").join(path).as_os_str()])
}

/// Pushes one text, which is accepted.
#[track_caller]
pub fn pushed(bot: &TestBot, path: &str, text: &str) {
    let output = push(bot, path, text);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

fn count(bot: &TestBot) -> Value {
    bot.json(["status"])["database"]["definitions"].clone()
}

#[test]
fn a_push_says_what_it_changed_and_why_it_refused() {
    let bot = TestBot::new();
    bot.write("routines/mail.md", &routine("0 9 * * *", PLAIN, "Mail."));
    write(
        &bot,
        &[
            ("routines/tea.md", &routine("0 9 * * *", PLAIN, "Tea.")),
            ("routines/mail.md", &routine("0 9 * * *", PLAIN, "Mail.")),
            ("routines/wakes.md", &routine("0 9 * * *", "wake: true\n", "Up.")),
            ("routines/follows.md", "---\nafter: tea\n---\nAfter.\n"),
            ("routines/wrong.md", &routine("0 9 * *", PLAIN, "Wrong.")),
            ("reminders/call.md", &reminder(now() + TimeDelta::hours(1), PLAIN, "Call.")),
            ("webhooks/deploy.md", "---\nsignature: github\n---\nDeploy.\n"),
        ],
    );
    let jobs = bot.person().join("jobs");
    let tried = bot.run(["push".as_ref(), jobs.as_os_str(), "--dry-run".as_ref()]);
    assert!(tried.stdout.starts_with("2 added, 0 changed, 0 unchanged, 5 refused\n"), "{}", tried.stdout);
    assert!(tried.stderr.contains("nothing was written"), "{}", tried.stderr);
    assert_eq!(count(&bot), 0);
    let done = bot.run(["push".as_ref(), jobs.as_os_str()]);
    assert_eq!((done.code, &*done.stdout), (1, "2 added, 0 changed, 0 unchanged, 5 refused\n"));
    for words in [
        "`mail` is a file of this host, which comes first",
        "routines/wakes.md:3:1",
        "`wake` works only in a file: the machine has to know the time before it sleeps",
        "routines/follows.md:2:1",
        "routines/wrong.md:2:",
        "a webhook works only in a file",
    ] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    assert_eq!(count(&bot), 2);
    let again = bot.run(["push".as_ref(), jobs.join("routines/tea.md").as_os_str(), "--json".as_ref()]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again["unchanged"], &again["added"]), (&json!(1), &json!(0)));
    assert_eq!(
        push(&bot, "routines/tea.md", &routine("0 8 * * *", PLAIN, "Tea.")).stdout,
        "0 added, 1 changed, 0 unchanged, 0 refused\n"
    );
    let removed = bot.run(["push", "--remove", "tea", "nobody"]);
    assert_eq!((removed.code, &*removed.stdout), (1, "removed tea\n"));
    assert!(removed.stderr.contains("nobody is not in the database"), "{}", removed.stderr);
    assert_eq!(count(&bot), 1);
}

#[test]
fn lines_of_json_are_put_into_the_database_too() {
    let bot = TestBot::new();
    let line = |path: &str| json!({ "path": path, "text": routine("0 9 * * *", PLAIN, "Tea.") }).to_string();
    let lines = format!("{}\n\n{}\n{}\nnonsense\n", line("routines/a.md"), line("routines/b.md"), line("c.md"));
    fs::write(bot.path("lines"), lines).unwrap();
    let mut command = bot.command(["push", "-"]);
    command.stdin(fs::File::open(bot.path("lines")).unwrap());
    let done = CommandOutput::of(command);
    assert_eq!(done.stdout, "2 added, 0 changed, 0 unchanged, 2 refused\n", "{}", done.stderr);
    assert!(done.stderr.contains("standard input:5:1"), "{}", done.stderr);
}

#[test]
fn a_pushed_reminder_fires_once_and_leaves_and_what_reads_shows_it() {
    let bot = TestBot::new();
    let service = bot.start();
    pushed(&bot, "reminders/soon.md", &reminder(now() + TimeDelta::seconds(2), PLAIN, "Soon."));
    let far = now() + TimeDelta::days(3);
    pushed(&bot, "reminders/far.md", &reminder(far, PLAIN, "Far."));
    pushed(&bot, "routines/yearly.md", &routine("0 9 1 1 *", PLAIN, "New year."));
    let runs = service.until_ended("soon", 1);
    assert_eq!(runs[0]["outcome"], "completed");
    service.until("it left the database", || (count(&bot) == 2).then_some(()));
    assert!(bot.ok(["inbox"]).contains("Soon."));

    assert_eq!(bot.json(["reminder", "show", "far"])["message"], "Far.");
    assert!(bot.ok(["why", "far"]).contains("far"), "{}", bot.ok(["why", "far"]));
    assert!(bot.ok(["next"]).contains("yearly"));
    assert!(bot.ok(["next", "far"]).contains("Far."));
    assert!(bot.ok(["routine", "list"]).contains("yearly"));
    assert!(bot.ok(["status"]).contains("In the database: 2 jobs without a file, 2 of them with a next time"));
    assert!(bot.ok(["fire", "yearly", "--dry-run"]).contains("New year."));
    assert!(bot.ok(["policy", "show", "yearly"]).contains("yearly"));

    bot.ok(["pause", "yearly"]);
    assert_eq!(bot.json(["routine", "show", "yearly"])["enabled"], false);
    assert!(bot.run(["routine", "list"]).stderr.contains("and 1 in the database that do not fall due"));
    bot.ok(["resume", "yearly"]);
    assert_eq!(bot.json(["routine", "show", "yearly"])["enabled"], true);
    bot.ok(["routine", "edit", "yearly", "--cron", "0 10 1 1 *"]);
    assert!(bot.json(["routine", "show", "yearly"])["next"].as_str().unwrap().contains("T10:00:00"));
    assert_eq!(service.fire("yearly")["outcome"], "completed");
    assert_eq!(bot.runs("yearly").len(), 1);

    bot.ok(["reminder", "snooze", "far", "5d"]);
    let next = bot.json(["reminder", "show", "far"])["next"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    assert!(next > far, "{next}");
    bot.ok(["reminder", "cancel", "far"]);
    assert_eq!(bot.run(["reminder", "show", "far"]).code, 1);
    assert_eq!(bot.names("reminders"), [""; 0], "there was never a file");
    service.stop();
}

/// Makes a bot with one job in a file, and two in the database.
fn with_both() -> TestBot {
    let bot = TestBot::new();
    bot.write("routines/mail.md", &routine("0 8 * * *", PLAIN, "Mail."));
    pushed(&bot, "routines/tea.md", &routine("0 9 * * *", &format!("{PLAIN}channel: nowhere\n"), "Tea."));
    pushed(&bot, "reminders/call.md", &reminder(now() + TimeDelta::hours(30), PLAIN, "Call."));
    bot
}

#[test]
fn check_looks_at_a_named_job_of_the_database() {
    let bot = with_both();
    let checked = bot.run(["check", "tea"]);
    assert!(checked.stdout.contains("there is no channel `nowhere`"), "{checked:?}");
    assert!(checked.stdout.contains("1 definition in order, 0 errors, 1 warning"), "{checked:?}");
    assert!(checked.stderr.contains("tea is in the journal's database, without a file"), "{checked:?}");
    let all = bot.run(["check"]);
    assert!(all.stdout.contains("1 definition in order, 0 errors, 0 warnings"), "{all:?}");
    assert_eq!(bot.run(["check", "nobody"]).code, 1);
}

#[test]
fn doctor_counts_the_jobs_of_the_database_and_names_those_that_failed() {
    let bot = with_both();
    pushed(&bot, "routines/bad.md", &routine("0 9 1 1 *", "background: true\nclient: exec\ncommand: exit 1\n", ""));
    let service = bot.start();
    assert_eq!(service.fire("bad")["outcome"], "failed");
    let doctor = bot.run(["doctor"]).stdout;
    assert!(doctor.contains("1 with a file and 3 in the database in order"), "{doctor}");
    assert!(doctor.contains("ollim-bot runs bad --failed"), "{doctor}");
    service.stop();
}

#[test]
fn all_that_is_simulated_includes_jobs_of_the_database() {
    let simulated = with_both().json(["simulate", "--all"]);
    let occurrences = simulated["occurrences"].as_array().unwrap();
    let ids: Vec<&str> = occurrences.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"mail") && ids.contains(&"tea") && !ids.contains(&"call"), "{simulated:#}");
    assert_eq!(simulated["unread"], 0);
}

#[test]
fn a_job_of_the_database_fires_once_over_two_hosts() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    let services = bots.each_ref().map(TestBot::start);
    let due = now() + TimeDelta::seconds(3);
    for number in 0..20 {
        write(&bots[0], &[(&format!("reminders/r{number}.md"), &reminder(due, PLAIN, &format!("word {number}")))]);
    }
    bots[0].ok(["push".as_ref(), bots[0].person().join("jobs").as_os_str()]);
    services[0].until("each has its outcome", || {
        (server.psql("SELECT count(*) FROM occurrence WHERE outcome = 'completed'") == "20").then_some(())
    });
    services[0]
        .until("each has left the database", || (server.psql("SELECT count(*) FROM definition") == "0").then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "20");
    assert_eq!(server.psql("SELECT string_agg(DISTINCT host, ' ' ORDER BY host) FROM run"), "attic home");
    assert_eq!(server.psql("SELECT count(*) FROM message WHERE text LIKE 'word %'"), "20");
    assert_eq!(server.psql("SELECT count(*) FROM occurrence WHERE claimed < at"), "0", "none was early");
    for service in services {
        service.stop();
    }
}

/// Makes the routines of the database look as if no host had been up for two hours.
fn let_two_hours_pass(server: &Postgres) {
    server.psql("UPDATE definition_seen SET accounted_until = accounted_until - 7200000");
    server.psql("UPDATE definition SET next_due = next_due - 7200000");
}

#[test]
fn a_routine_that_was_missed_while_no_host_was_up_obeys_on_missed() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    for (name, policy) in [("late", "latest"), ("all", "all"), ("none", "skip")] {
        let fields = format!("{PLAIN}on_missed: {policy}\n");
        pushed(&bots[0], &format!("routines/{name}.md"), &routine("0 * * * *", &fields, name));
    }
    let_two_hours_pass(&server);
    let services = bots.each_ref().map(TestBot::start);
    let completed =
        |id: &str| server.psql(&format!("SELECT count(*) FROM occurrence WHERE id = '{id}' AND outcome = 'completed'"));
    services[0].until("all are accounted for", || {
        let moved = "SELECT count(*) FROM definition WHERE next_due > extract(epoch FROM now()) * 1000";
        (server.psql(moved) == "3").then_some(())
    });
    services[0].until("the runs have ended", || (completed("late") == "1" && completed("all") == "2").then_some(()));
    assert_eq!(completed("none"), "0");
    assert_eq!(server.psql("SELECT count(*) FROM occurrence WHERE id = 'none' AND outcome = 'skipped'"), "2");
    assert_eq!(server.psql("SELECT count(*) FROM definition"), "3", "routines stay");
    for service in services {
        service.stop();
    }
}

#[test]
fn what_a_killed_host_had_open_is_taken_over_though_no_host_has_a_file() {
    let answers = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asked = answers.clone();
    let api = MessagesApi::answering(move |_| match asked.load(std::sync::atomic::Ordering::Relaxed) {
        true => Reply::say("done"),
        false => Reply::Silence,
    });
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::with_client(&client::real(), api.url()), &server, name));
    let attic = bots[0].start();
    pushed(&bots[0], "reminders/job.md", &reminder(now(), "background: true\nisolated: true\n", "Do the thing."));
    attic.until("its client has asked the model", || (!api.requests().is_empty()).then_some(()));
    let home = bots[1].start();
    attic.kill();
    answers.store(true, std::sync::atomic::Ordering::Relaxed);
    let runs = home.until_ended("job", 2);
    assert_eq!(runs[0]["outcome"], "completed", "{runs:#?}");
    assert_eq!(runs[1]["outcome"], "interrupted", "{runs:#?}");
    home.until("it left the database", || (server.psql("SELECT count(*) FROM definition") == "0").then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "2");
    home.stop();
}

#[test]
fn an_edit_counts_at_once_and_a_removal_leaves_the_run_that_is_open() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = TestBot::with_client(&client::real(), api.url());
    let service = bot.start();
    let due = now() + TimeDelta::seconds(20);
    pushed(&bot, "reminders/tea.md", &reminder(due, PLAIN, "Old words."));
    pushed(&bot, "reminders/tea.md", &reminder(now() + TimeDelta::seconds(2), PLAIN, "New words."));
    service.until_ended("tea", 1);
    assert!(bot.ok(["inbox"]).contains("New words.") && !bot.ok(["inbox"]).contains("Old words."));
    service.until("it left the database", || (count(&bot) == 0).then_some(()));

    pushed(&bot, "reminders/job.md", &reminder(now(), "background: true\nisolated: true\n", "Do the thing."));
    service.until("its client has asked the model", || (!api.requests().is_empty()).then_some(()));
    bot.ok(["push", "--remove", "job"]);
    let run = bot.runs("job")[0]["run"].as_str().unwrap().to_owned();
    assert!(bot.runs("job")[0]["ended"].is_null(), "it goes on");
    bot.ok(["cancel-run", &run]);
    assert_eq!(service.until_ended("job", 1)[0]["outcome"], "cancelled");
    assert_eq!(count(&bot), 0);
    service.stop();
}

#[test]
fn a_failed_reminder_of_the_database_becomes_a_file_among_the_failed() {
    let bot = TestBot::new();
    let service = bot.start();
    pushed(&bot, "reminders/job.md", &reminder(now(), "client: exec\ncommand: 'false'\n", ""));
    assert_eq!(service.until_ended("job", 1)[0]["outcome"], "failed");
    service.until("it is kept", || bot.read("reminders/failed/job.md"));
    service.until("it left the database", || (count(&bot) == 0).then_some(()));
    bot.ok(["reminder", "retry", "job"]);
    service.until_ended("job", 2);
    service.stop();
}

#[test]
fn while_everything_is_paused_nothing_of_the_database_starts() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.ok(["pause"]);
    pushed(&bot, "reminders/tea.md", &reminder(now(), PLAIN, "Tea."));
    service.until("it is due", || bot.ok(["why", "tea"]).contains("paused").then_some(()));
    assert_eq!(bot.runs("tea"), [Value::Null; 0]);
    bot.ok(["resume"]);
    assert_eq!(service.until_ended("tea", 1)[0]["outcome"], "completed");
    service.stop();
}

#[test]
fn a_run_pushes_nothing() {
    let api = MessagesApi::script([Reply::call("Bash", json!({ "command": "ollim-bot push jobs" }))]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let fields = "background: true\nisolated: true\nallowed_tools:\n  - Bash(ollim-bot *)\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Push."));
    let service = bot.start();
    service.until_ended("job", 1);
    assert_eq!(count(&bot), 0);
    assert!(
        api.last().mentions("the person's alone") || api.last().mentions("not allowed"),
        "{}",
        api.last().last_text()
    );
    service.stop();
}

/// A job that a host cannot read is told of once, when it is nearly due, even over a restart; a text that it can read fires.
#[test]
fn a_job_that_a_host_cannot_read_is_told_of_once() {
    let bot = TestBot::new();
    bot.write("skills/mail/SKILL.md", "---\nname: mail\ndescription: Sort\n---\nSort.\n");
    let soon = |fields: &str| reminder(now() + TimeDelta::seconds(5), fields, "Sort it.");
    pushed(&bot, "reminders/sort.md", &soon("background: true\nskills: [mail]\n"));
    fs::remove_dir_all(bot.path("skills/mail")).unwrap();
    let told = || bot.json(["inbox"]).to_string().matches("A job of the database has an error").count();
    for _ in 0..2 {
        let service = bot.start();
        service.until("the person is told", || (told() == 1).then_some(()));
        service.stop();
    }
    assert!(bot.json(["inbox"]).to_string().contains("database/reminders/sort.md"), "{}", bot.json(["inbox"]));
    assert!(bot.runs("sort").is_empty());
    let service = bot.start();
    pushed(&bot, "reminders/sort.md", &soon(PLAIN));
    assert_eq!(service.until_ended("sort", 1)[0]["outcome"], "completed");
    assert_eq!(told(), 1);
    service.stop();
}

/// Writes a job that may make jobs by a command.
fn write_maker(bot: &TestBot, command: &str) {
    let fields = format!("client: exec\nallowed_tools: ['Bash(ollim-bot *)']\ncommand: '{command}'\n");
    bot.write("routines/maker.md", &routine("0 9 1 1 *", &fields, ""));
}

/// Neither the beginning of a pushed id, nor an id that a pushed job reads, nor one that a file with an error names.
#[test]
fn a_job_takes_no_id_that_could_mean_a_pushed_job_or_one_of_a_broken_file() {
    let bot = TestBot::new();
    let reads =
        format!("{PLAIN}allowed_tools: []\nbackground: true\nisolated: true\ncontext_from: [reporter, digest]\n");
    pushed(&bot, "routines/digest.md", &routine("0 9 1 1 *", &reads.replace(PLAIN, ""), "Sum up the_news of 5%."));
    pushed(&bot, "reminders/Tea-2.md", &reminder(now() + TimeDelta::days(300), PLAIN, "Tea."));
    bot.write("routines/broken.md", "---\nafter: {job: follower\ncontext_from: [reader]\n---\nThe text.\n");
    let ids = "reporter report dig digest tea tea-2 Tea broken bro follower reader free1 the_news text te_-2 free2";
    let add = "ollim-bot reminder add --in 9h --background --isolated -m Task --id";
    let command = format!("for id in {ids}; do {add} $id > /dev/null 2>&1 && echo added $id; done; true");
    write_maker(&bot, &command);
    let service = bot.start();
    let run = service.fire("maker");
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    assert_eq!(printed(&shown), "added free1\nadded the_news\nadded text\nadded te_-2\nadded free2\n", "{shown:#}");
    service.stop();
}

/// An occurrence belongs to an id and a time, so a job must not take an id that another host's file may have.
#[test]
fn an_id_that_a_job_chooses_has_a_random_part_where_hosts_have_files_of_their_own() {
    let server = Postgres::start();
    let bot = host(TestBot::new(), &server, "attic");
    bot.write("config.yaml", "share_files: false\n");
    let add = "ollim-bot reminder add --in 9h --background --isolated -m Tea";
    let command = format!("{add} --id nightly && {add}; ollim-bot reminder edit nightly- --id nightly");
    write_maker(&bot, &command);
    let service = bot.start();
    let run = service.fire("maker");
    let mut made = bot.names("reminders");
    made.sort();
    let [nightly, tea] = &made[..] else { panic!("{made:?} {run:#}") };
    let is_random = |name: &str, stem: &str| {
        let random = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(".md")).unwrap_or_default();
        random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    assert!(is_random(nightly, "nightly-") && is_random(tea, "tea-"), "{made:?}");
    let why = run["error"].as_str().unwrap();
    assert!(why.contains("a run chooses no id where hosts with files of their own share the journal"), "{why}");
    // The person chooses freely.
    bot.ok(["reminder", "add", "--in", "9h", "-m", "Tea", "--id", "nightly"]);
    service.stop();
}
