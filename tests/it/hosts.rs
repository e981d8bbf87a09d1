//! Several hosts that share a journal on a real server: each occurrence has one outcome, whatever happens to a host.

use std::fs::File;
use std::os::unix::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use rustix::fs::FlockOperation;
use rustix::process::Signal;
use serde_json::json;

use crate::heartbeat::Monitor;
use crate::reloading::Supervisor;
use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::postgres::Postgres;
use crate::support::wait;

const ALLOW: &str = "background: true\nisolated: true\nallowed_tools:\n  - mcp__bot__ping_user\n";
const PLAIN: &str = "client: notify\n";

/// Makes a bot the host `name` among those that share the journal on `server`.
pub fn host(bot: TestBot, server: &Postgres, name: &str) -> TestBot {
    bot.env("OLLIM_JOURNAL", &server.url()).env("OLLIM_HOST", name)
}

#[test]
fn each_occurrence_has_one_run_and_the_hosts_share_the_work() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    let services = bots.each_ref().map(TestBot::start);
    let due = now() + TimeDelta::seconds(3);
    for number in 0..20 {
        for bot in &bots {
            bot.write(&format!("reminders/r{number}.md"), &reminder(due, PLAIN, &format!("word {number}")));
        }
    }
    services[0].until("each has its outcome", || {
        (server.psql("SELECT count(*) FROM occurrence WHERE outcome = 'completed'") == "20").then_some(())
    });
    for (bot, service) in bots.iter().zip(&services) {
        service.until("no file is left", || bot.names("reminders").is_empty().then_some(()));
    }
    assert_eq!(server.psql("SELECT count(*) FROM run"), "20");
    assert_eq!(server.psql("SELECT string_agg(DISTINCT host, ' ' ORDER BY host) FROM run"), "attic home");
    assert_eq!(server.psql("SELECT count(*) FROM message WHERE text LIKE 'word %'"), "20");
    // No claim was early by the server's clock, which is this machine's.
    assert_eq!(server.psql("SELECT count(*) FROM occurrence WHERE claimed < at"), "0");
    services[0].until("one of them has said each, once", || {
        let said: String = services.iter().map(Service::output).collect();
        let count = |number: u32| said.lines().filter(|line| line.ends_with(&format!("word {number}"))).count();
        assert!((0..20).all(|number| count(number) < 2), "{said}");
        (0..20).all(|number| count(number) == 1).then_some(())
    });
    for service in services {
        service.stop();
    }
}

#[test]
fn what_a_killed_host_had_going_without_an_effect_runs_again_at_another() {
    let answers = Arc::new(AtomicBool::new(false));
    let asked = answers.clone();
    let api = MessagesApi::answering(move |_| match asked.load(Ordering::Relaxed) {
        true => Reply::say("done"),
        false => Reply::Silence,
    });
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::with_client(&client::real(), api.url()), &server, name));
    let job = reminder(now(), ALLOW, "Do the thing.");
    bots.iter().for_each(|bot| bot.write("reminders/job.md", &job));
    let attic = bots[0].start();
    attic.until("its client has asked the model", || (!api.requests().is_empty()).then_some(()));
    let home = bots[1].start();
    attic.kill();
    answers.store(true, Ordering::Relaxed);
    let runs = home.until_ended("job", 2);
    assert_eq!(runs[0]["outcome"], "completed", "{runs:#?}");
    assert_eq!(runs[1]["outcome"], "interrupted", "{runs:#?}");
    assert_eq!(runs[1]["error"], "the host attic went away while it was going");
    assert!(api.last().mentions("cut off"), "the agent is told");
    assert_eq!(server.psql("SELECT host FROM run ORDER BY number"), "attic\nhome");
    // The host that returns finds nothing to do and removes its file.
    let attic = bots[0].start();
    attic.until("its file is removed", || bots[0].read("reminders/job.md").is_none().then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "2");
    attic.stop();
    home.stop();
}

/// Returns whether the service holds the lock of its data folder at every moment until `joined`.
fn keeps_its_lock(bot: &TestBot, joined: &AtomicBool) -> bool {
    let lock = File::open(bot.path("state/lock")).unwrap();
    let is_free = || rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared).is_ok();
    while !joined.load(Ordering::SeqCst) {
        if is_free() {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn what_a_stopped_host_had_going_with_an_effect_failed_and_is_told_once() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("mcp__discord__ping_user", json!({ "message": "The first word." })),
        _ => Reply::Silence,
    });
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::with_client(&client::real(), api.url()), &server, name));
    let job = reminder(now(), ALLOW, "Do the thing.");
    bots.iter().for_each(|bot| bot.write("reminders/job.md", &job));
    let attic = bots[0].start();
    attic.until("the ping came through", || api.requests().iter().any(|r| r.answers() == 1).then_some(()));
    let home = bots[1].start();
    attic.signal(Signal::STOP);
    home.until("the person is told", || bots[1].read("reminders/failed/job.md"));
    assert_eq!(bots[1].runs("job").len(), 1);
    assert_eq!(bots[1].runs("job")[0]["outcome"], "failed");
    let joined = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_kept = scope.spawn(|| keeps_its_lock(&bots[0], &joined));
        attic.signal(Signal::CONT);
        attic.until("it joins anew", || (attic.output().matches("ready on ").count() == 2).then_some(()));
        joined.store(true, Ordering::SeqCst);
        assert!(is_kept.join().unwrap(), "nobody else can take the folder while it joins anew");
    });
    assert!(attic.output().contains("lost its lease"), "{}", attic.output());
    wait::until(
        "no client is left",
        || (!bots[0].processes().iter().any(|process| process.command.contains("stream-json"))).then_some(()),
        || format!("{:#?}", bots[0].processes()),
    );
    let pings = "SELECT count(*) FROM message WHERE text LIKE '%The first word.%'";
    assert_eq!(server.psql(pings), "1");
    assert_eq!(server.psql("SELECT count(*) FROM message WHERE text LIKE '%job%'"), "1", "told once");
    assert_eq!(server.psql("SELECT count(*) FROM run"), "1");
    attic.stop();
    home.stop();
}

#[test]
fn another_folder_cannot_take_the_name_of_a_host_that_lives() {
    let server = Postgres::start();
    let bots = ["attic", "attic"].map(|name| host(TestBot::new(), &server, name));
    let first = bots[0].start();
    let second = bots[1].run(["run"]);
    assert_eq!(second.code, 2, "{second:?}");
    assert!(second.stderr.contains("another host is called `attic`"), "{second:?}");
    // The same folder can use the name again at once.
    first.kill();
    let again = bots[0].start();
    again.stop();
    let second = bots[1].start();
    second.stop();
}

#[test]
fn a_server_that_crashes_is_waited_for_and_nothing_is_lost() {
    let (mut server, monitor) = (Postgres::start(), Monitor::new(true));
    let bot = host(TestBot::new(), &server, "attic");
    let notify = bot.path("notify");
    let mut supervisor = Supervisor::at(&SocketAddr::from_pathname(&notify).unwrap());
    let bot = bot.env("NOTIFY_SOCKET", notify.to_str().unwrap()).env("WATCHDOG_USEC", "2000000");
    client::executable(&bot.path("bin/bridge"), "#!/bin/sh\ncat >> got\n");
    let channel = "channels:\n  phone: { kind: command, command: [bridge] }\ndefault_channel: phone\n";
    bot.write("config.yaml", &format!("{channel}heartbeat_url: {}\n", monitor.url));
    let got = || bot.read("state/channels/phone/got").unwrap_or_default();
    let service = bot.start();
    server.crash();
    bot.write("reminders/r.md", &reminder(now() + TimeDelta::seconds(2), PLAIN, "late, and once"));
    service.until("it is said", || service.output().contains("does not answer").then_some(()));
    // After 12 s it waits for the server before it has a socket.
    service.until("the supervisor sees that it waits", || {
        (supervisor.count("STATUS=waits for the journal's database") > 0).then_some(())
    });
    let waits = format!("the service runs (pid {}), and waits for the journal's database", service.pid());
    service.until("doctor knows", || bot.run(["doctor"]).stdout.contains(&waits).then_some(()));
    for line in [&["next"][..], &["reminder", "add", "--in", "1h", "Later."], &["pause"]] {
        let done = bot.run(line);
        assert!(done.stderr.contains(&waits) && !done.stderr.contains("not running"), "{line:?}: {done:?}");
    }
    let fed = supervisor.count("WATCHDOG=1");
    service.until("the watchdog is fed", || (supervisor.count("WATCHDOG=1") > fed + 2).then_some(()));
    let is_extended = supervisor.hear().iter().any(|line| line.starts_with("EXTEND_TIMEOUT_USEC="));
    assert!(is_extended, "a start that waits has no limit");
    service.until("the person is told", || got().contains("The host attic has waited for the journal's").then_some(()));
    let fails = "/fail: the journal's database does not answer: the host attic fires nothing";
    service.until("the monitor is told", || monitor.notifications().contains(&fails.to_owned()).then_some(()));
    server.start_again();
    service.until("the word comes", || got().contains("late, and once").then_some(()));
    service.until("the person hears that it is over", || got().contains("database answers again").then_some(()));
    assert_eq!(got().matches("has waited for").count(), 1, "{}", got());
    service.until("the monitor too", || monitor.notifications().last().is_some_and(|told| told == "/: ").then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "1");
    service.stop();
}

/// Returns a server with a role of its own for the bot, and the role's URL.
fn server_with_role() -> (Postgres, String) {
    let server = Postgres::start();
    server.psql("CREATE ROLE ollim LOGIN PASSWORD 'a-word'");
    server.psql("GRANT CREATE ON SCHEMA public TO ollim");
    let url = server.url_of("ollim:a-word", "postgres");
    (server, url)
}

fn drop_sessions(server: &Postgres) {
    server.psql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'ollim'");
}

#[test]
fn a_password_that_is_wrong_is_waited_for_but_not_at_the_first_start() {
    let (server, url) = server_with_role();
    let hba = server.psql("SHOW hba_file");
    server.psql(&format!("COPY (VALUES ('local all bot trust'), ('local all all scram-sha-256')) TO '{hba}'"));
    server.psql("SELECT pg_reload_conf()");
    let bots = ["attic", "home"].map(|name| TestBot::new().env("OLLIM_JOURNAL", &url).env("OLLIM_HOST", name));
    let service = bots[0].start();
    server.psql("ALTER ROLE ollim PASSWORD 'another'");
    drop_sessions(&server);
    bots[0].write("reminders/r.md", &reminder(now(), PLAIN, "late, and once"));
    let why = "password authentication failed";
    service.until("it says why", || service.output().contains(why).then_some(()));
    service.until("it joins anew, and waits", || {
        let said = service.output();
        said.split_once("joins anew").is_some_and(|(_, since)| since.contains(why)).then_some(())
    });
    let new = bots[1].run(["run"]);
    assert_eq!(new.code, 2, "{new:?}");
    assert!(new.stderr.contains(why), "{new:?}");
    server.psql("ALTER ROLE ollim PASSWORD 'a-word'");
    service.until("the word comes", || service.output().contains("late, and once").then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "1");
    service.stop();
}

#[test]
fn a_server_that_refuses_for_now_is_waited_for_and_doctor_says_why() {
    let (server, url) = server_with_role();
    let bot = TestBot::new().env("OLLIM_JOURNAL", &url).env("OLLIM_HOST", "attic");
    let service = bot.start();
    let doctor = || bot.run(["doctor"]);
    assert!(!doctor().stdout.contains("cannot be written"), "{:?}", doctor());
    let (revoke, give) = (
        "REVOKE INSERT ON ALL TABLES IN SCHEMA public FROM ollim",
        "GRANT INSERT ON ALL TABLES IN SCHEMA public TO ollim",
    );
    let (reads, writes) = (
        "ALTER ROLE ollim SET default_transaction_read_only = on",
        "ALTER ROLE ollim RESET default_transaction_read_only",
    );
    for (name, breaks, mends, why) in [
        ("denied", revoke, give, "permission denied for table"),
        ("read-only", reads, writes, "in a read-only transaction"),
    ] {
        server.psql(breaks);
        drop_sessions(&server);
        bot.write(&format!("reminders/{name}.md"), &reminder(now(), PLAIN, &format!("word {name}")));
        service.until("it says why", || service.output().contains(why).then_some(()));
        let found = doctor();
        assert_eq!(found.code, 1, "{found:?}");
        assert!(found.stdout.contains("it cannot be written") && found.stdout.contains(why), "{found:?}");
        server.psql(mends);
        drop_sessions(&server);
        service.until("it is told", || service.output().contains(&format!("word {name}")).then_some(()));
    }
    // Commands get no connection, but the service has its own.
    server.psql("ALTER ROLE ollim CONNECTION LIMIT 1");
    let status = bot.run(["status"]);
    assert!(status.stderr.contains("too many connections for role"), "{status:?}");
    assert!(!status.stderr.contains("nothing new starts"), "{status:?}");
    bot.write("reminders/crowd.md", &reminder(now(), PLAIN, "word crowd"));
    service.until("it is told", || service.output().contains("word crowd").then_some(()));
    assert_eq!(server.psql("SELECT count(*), count(DISTINCT text) FROM message WHERE text LIKE 'word %'"), "3|3");
    service.stop();
}

#[test]
fn a_host_without_an_answer_ends_what_it_has_going_and_joins_anew() {
    let answers = Arc::new(AtomicBool::new(false));
    let asked = answers.clone();
    let api = MessagesApi::answering(move |_| match asked.load(Ordering::Relaxed) {
        true => Reply::say("done"),
        false => Reply::Silence,
    });
    let server = Postgres::start();
    let bot = host(TestBot::with_client(&client::real(), api.url()), &server, "attic");
    bot.write("reminders/job.md", &reminder(now(), ALLOW, "Do the thing."));
    let service = bot.start();
    service.until("its client has asked the model", || (!api.requests().is_empty()).then_some(()));
    let has_client = || bot.processes().iter().any(|process| process.command.contains("stream-json"));
    assert!(has_client());
    server.signal("STOP");
    service.until("its client is ended, though the server says nothing", || (!has_client()).then_some(()));
    assert!(service.output().contains("lost its lease"), "{}", service.output());
    answers.store(true, Ordering::Relaxed);
    server.signal("CONT");
    let runs = service.until_ended("job", 2);
    assert_eq!(runs[0]["outcome"], "completed", "{runs:#?}");
    assert_eq!(runs[1]["outcome"], "interrupted", "{runs:#?}");
    let lost = "the host lost the journal's server while it was going";
    assert_eq!(runs[1]["error"], lost);
    let why = bot.ok(["why", "job"]);
    assert!(why.contains(&format!("the first was cut off ({lost})")), "{why}");
    service.stop();
}

#[test]
fn a_job_runs_on_the_hosts_that_it_names() {
    let server = Postgres::start();
    let bots =
        [host(TestBot::new(), &server, "attic"), host(TestBot::new(), &server, "home").env("OLLIM_HOST_LABELS", "gpu")];
    let due = now() + TimeDelta::seconds(2);
    for (name, hosts) in [("one", "[attic]"), ("two", "[gpu]"), ("three", "[home]")] {
        let fields = format!("{PLAIN}hosts: {hosts}\n");
        bots.iter().for_each(|bot| bot.write(&format!("reminders/{name}.md"), &reminder(due, &fields, "x")));
    }
    let services = bots.each_ref().map(TestBot::start);
    services[0]
        .until("each has run", || (server.psql("SELECT count(*) FROM run WHERE ended > 0") == "3").then_some(()));
    let ran =
        server.psql("SELECT o.id || ' ' || r.host FROM run r JOIN occurrence o ON o.number = r.occurrence ORDER BY 1");
    assert_eq!(ran, "one attic\nthree home\ntwo home");
    for (bot, service) in bots.iter().zip(&services) {
        service.until("no file is left", || bot.names("reminders").is_empty().then_some(()));
    }
    services.into_iter().for_each(|service| drop(service.stop()));
}

#[test]
fn a_journal_moves_to_a_server_and_back_with_all_that_was_in_it() {
    let server = Postgres::start();
    let bot = TestBot::with_client(&client::real(), "http://127.0.0.1:9");
    bot.write("routines/often.md", "---\ncron: '0 0 29 2 *'\nclient: notify\n---\nAgain.\n");
    bot.write("reminders/first.md", &reminder(now(), PLAIN, "The first, with \u{2713} and 'quotes'."));
    let service = bot.start();
    service.until_ended("first", 1);
    service.fire("often");
    let refused = bot.run(["journal", "copy", "--to", &server.url()]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the service runs"), "{refused:?}");
    service.stop();
    let copied = bot.env("OLLIM_HOST", "attic");
    let said = copied.json(["journal", "copy", "--to", &server.url()]);
    assert_eq!(said["rows"]["occurrence"], 2, "{said:#}");
    // The service does not start on an incomplete copy. A new copy replaces any copy that nobody has used.
    let bot = copied;
    server.psql("UPDATE setting SET key = 'copied_from' WHERE key = 'copy_of'");
    server.psql("DELETE FROM message WHERE number = 1");
    let bot = host(bot, &server, "attic");
    let half = bot.run(["run"]);
    assert!(half.code == 2 && half.stderr.contains("that was cut off; copy again"), "{half:?}");
    let bot = bot.without("OLLIM_JOURNAL");
    let service = bot.start();
    // One occurrence is left open.
    bot.write(
        "reminders/later.md",
        &reminder(
            now(),
            // A gate that is cut off runs again.
            "client: claude\nisolated: true\nbackground: true\ngate: sleep 2; false\nallowed_tools: ['Bash(sleep *)']\nretry: 0\n",
            "Look.",
        ),
    );
    service.until("it goes", || bot.runs("later").iter().any(|run| run["outcome"] == "running").then_some(()));
    service.kill();
    bot.until_no_processes();
    let (runs, inbox) = (bot.json(["runs", "-n", "100"]), bot.json(["inbox"]));
    let said = bot.json(["journal", "copy", "--to", &server.url()]);
    assert_eq!(said["rows"]["occurrence"], 3, "{said:#}");
    let bot = host(bot, &server, "attic");
    assert_eq!(without_host(bot.json(["runs", "-n", "100"])), runs);
    assert_eq!(bot.json(["inbox"]), inbox);
    let service = bot.start();
    // The open occurrence is recovered, and nothing else runs again.
    service.until_ended("later", 2);
    bot.write("reminders/second.md", &reminder(now(), PLAIN, "The second."));
    service.until_ended("second", 1);
    assert_eq!(bot.runs("first").len(), 1);
    service.stop();
    let runs = bot.json(["runs", "-n", "100"]);
    let said = bot.json(["journal", "copy", "--to", "file"]);
    assert!(said["kept_aside"].as_str().unwrap().contains("journal.db.before-"), "{said:#}");
    let bot = bot.without("OLLIM_JOURNAL");
    assert_eq!(bot.json(["runs", "-n", "100"]), runs, "with the host of each");
    let service = bot.start();
    bot.write("reminders/third.md", &reminder(now(), PLAIN, "The third."));
    service.until_ended("third", 1);
    assert_eq!(bot.runs("second").len(), 1);
    service.stop();
}

#[test]
fn a_journal_that_was_moved_is_used_by_nobody_until_it_is_moved_back() {
    let server = Postgres::start();
    let [attic, home] = ["attic", "home"].map(|name| TestBot::new().env("OLLIM_HOST", name));
    let service = attic.start();
    attic.write("reminders/first.md", &reminder(now(), PLAIN, "The first."));
    service.until_ended("first", 1);
    service.stop();
    let move_to_server = || attic.ok(["journal", "copy", "--use", "--to", &server.url()]);
    move_to_server();
    home.write("config.yaml", &attic.read("config.yaml").unwrap());
    home.start().stop();
    attic.ok(["journal", "copy", "--use", "--to", "file"]);
    // The other host still names the server, which is no longer in use.
    let forgotten = home.run(["run"]);
    assert_eq!(forgotten.code, 2);
    assert!(
        forgotten.stderr.contains("was moved to ") && forgotten.stderr.contains("state/journal.db"),
        "{forgotten:?}"
    );
    assert!(forgotten.stderr.contains("state/journal.db on attic"), "{forgotten:?}");
    for line in [&["status"][..], &["reminder", "add", "--in", "1h", "Lost."]] {
        let done = home.run(line);
        assert!(done.stderr.contains("state/journal.db on attic"), "{line:?}: {done:?}");
    }
    let doctor = home.run(["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        doctor.contains("wrong journal the journal at ") && doctor.contains("on attic, and what fires is"),
        "{doctor}"
    );
    let twice = home.run(["journal", "copy", "--use", "--to", "file"]);
    assert!(twice.code != 0 && twice.stderr.contains("state/journal.db on attic"), "{twice:?}");
    assert!(home.read("config.yaml").unwrap().contains("postgres://"), "the settings are as they were");
    let service = attic.start();
    attic.write("reminders/second.md", &reminder(now(), PLAIN, "The second."));
    service.until_ended("second", 1);
    service.stop();
    // Moving back to the server is possible, and then the file is the journal left behind.
    move_to_server();
    let services = [attic.start(), home.start()];
    assert_eq!(home.runs("second").len(), 1);
    services.into_iter().for_each(|service| drop(service.stop()));
    attic.write("config.yaml", "");
    let left_behind = attic.run(["run"]);
    assert!(left_behind.code == 2 && left_behind.stderr.contains("was moved to "), "{left_behind:?}");
}

#[test]
fn of_hosts_that_move_the_journal_at_once_one_does() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| TestBot::new().env("OLLIM_HOST", name));
    for bot in &bots {
        bot.write("config.yaml", &format!("journal: {}\n", server.url()));
    }
    bots[0].start().stop();
    let back = ["journal", "copy", "--use", "--to", "file"];
    let done = bots.each_ref().map(|bot| bot.start_with(back)).map(Service::wait);
    let moved = |bot: &TestBot| !bot.read("config.yaml").unwrap().contains("postgres://");
    let winners: Vec<bool> = done.iter().map(|(status, _)| status.success()).collect();
    assert_eq!(winners.iter().filter(|won| **won).count(), 1, "{done:?}");
    assert_eq!(bots.each_ref().map(moved)[..], winners);
    let (_, said) = &done[usize::from(winners[0])];
    assert!(said.contains("was moved to "), "{said}");
}

fn without_host(mut runs: serde_json::Value) -> serde_json::Value {
    for run in runs.as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("host");
    }
    runs
}

fn main_and_laptop(server: &Postgres, api: &MessagesApi) -> [TestBot; 2] {
    ["attic", "laptop"].map(|name| host(TestBot::with_client(&client::real(), api.url()), server, name))
}

const ASKS: &str = "background: true\nisolated: true\nretry: 0\nhosts: [laptop]\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n";

/// Returns the numbers of the open questions on this host.
fn open(bot: &TestBot) -> Vec<String> {
    let all = bot.json(["questions"]);
    let open = all.as_array().unwrap().iter().filter(|question| question["answer"].is_null());
    open.map(|question| question["number"].to_string()).collect()
}

#[test]
fn a_call_on_one_host_waits_for_the_answer_that_is_given_on_another() {
    let api = MessagesApi::script([
        Reply::bash("touch a & touch b; wait; touch c"),
        Reply::bash("mkdir evil"),
        Reply::say("done"),
    ]);
    let server = Postgres::start();
    let job = reminder(now(), &ASKS.replace("ask_tools: [", "ask_tools: ['Bash(mkdir *)', "), "Do the thing.");
    let bots = main_and_laptop(&server, &api);
    bots.iter().for_each(|bot| bot.write("reminders/job.md", &job));
    let attic = bots[0].start();
    let laptop = bots[1].start();
    attic.until("two questions", || (open(&bots[0]).len() == 2).then_some(()));
    attic.until("the main host has asked", || attic.output().contains("asks (question 2)").then_some(()));
    assert!(!laptop.output().contains("asks (question"), "{}", laptop.output());
    // An answer for the whole run covers both questions and later ones of the same kind.
    bots[0].ok(["questions", "answer", &open(&bots[0])[0], "run"]);
    let third = attic.until("a third alone", || open(&bots[0]).pop().filter(|number| number == "3"));
    for name in ["a", "b", "c"] {
        assert!(bots[1].read(&format!("work/{name}")).is_some(), "{name}");
        assert!(bots[0].read(&format!("work/{name}")).is_none(), "{name}");
    }
    bots[0].ok(["questions", "answer", &third, "deny", "Not there."]);
    let run = attic.until_ended("job", 1).remove(0);
    assert_eq!((&run["outcome"], &run["host"]), (&json!("completed"), &json!("laptop")), "{run:#}");
    assert_eq!(bots[1].read("work/evil"), None);
    assert!(api.last().mentions("denied by the person: Not there."), "{:#?}", api.last());
    let answers = server.psql("SELECT string_agg(answer || ' ' || channel, ', ' ORDER BY number) FROM question");
    assert_eq!(answers, "run terminal, run terminal, deny terminal");
    let late = bots[1].run(["questions", "answer", &third, "allow"]);
    assert!(late.stderr.contains("already closed: denied, by terminal"), "{late:?}");
    attic.stop();
    laptop.stop();
}

#[test]
fn a_job_on_one_host_begins_after_the_yes_that_is_given_on_another() {
    let server = Postgres::start();
    let bots = ["attic", "laptop"].map(|name| host(TestBot::new(), &server, name));
    let fields = "client: exec\nbackground: true\ncommand: touch made\nallowed_tools: ['Bash(touch *)']\nhosts: [laptop]\napprove: true\n";
    let job = reminder(now(), fields, "");
    bots.iter().for_each(|bot| bot.write("reminders/job.md", &job));
    let attic = bots[0].start();
    let laptop = bots[1].start();
    let question = attic.until("the question", || open(&bots[0]).pop());
    assert!(bots[1].read("work/made").is_none());
    bots[0].ok(["questions", "answer", &question, "run"]);
    let run = attic.until_ended("job", 1).remove(0);
    assert_eq!((&run["outcome"], &run["host"]), (&json!("completed"), &json!("laptop")), "{run:#}");
    assert!(bots[1].read("work/made").is_some());
    attic.stop();
    laptop.stop();
}

#[test]
fn a_question_of_a_host_that_went_away_needs_no_answer() {
    let api = MessagesApi::script([Reply::bash("touch made")]);
    let server = Postgres::start();
    let job = reminder(now(), &ASKS.replace("[laptop]", "[laptop, attic]"), "Do the thing.");
    let bots = main_and_laptop(&server, &api);
    // Else the other host may have the file in time to be the first that claims it.
    bots.iter().for_each(|bot| bot.write("config.yaml", "share_files: false\n"));
    bots[1].write("reminders/job.md", &job);
    let attic = bots[0].start();
    let laptop = bots[1].start();
    attic.until("the question", || open(&bots[0]).pop());
    bots[0].write("reminders/job.md", &job);
    laptop.kill();
    let said = "Question 1 of job needs no answer any more: the host laptop went away.";
    attic.until("the person is told", || attic.output().contains(said).then_some(()));
    let late = bots[0].run(["questions", "answer", "1", "allow"]);
    assert!(late.stderr.contains("already closed: dropped, since the call or its run ended"), "{late:?}");
    assert_eq!(bots[1].read("work/made"), None);
    attic.stop();
}

#[test]
fn a_pause_on_one_host_holds_on_all() {
    let server = Postgres::start();
    let bots = ["attic", "laptop"].map(|name| host(TestBot::new(), &server, name));
    let services = bots.each_ref().map(TestBot::start);
    let paused = |bot: &TestBot| !bot.json(["status"])["daemon"]["paused"].is_null();
    bots[0].ok(["pause"]);
    services[1].until("the other is paused", || paused(&bots[1]).then_some(()));
    let job = reminder(now(), &format!("{PLAIN}hosts: [laptop]\n"), "Held back.");
    bots[1].write("reminders/job.md", &job);
    services[1].until("it is due", || {
        bots[1].json(["status"])["due"].as_array().is_some_and(|due| !due.is_empty()).then_some(())
    });
    assert_eq!(server.psql("SELECT count(*) FROM run"), "0");
    bots[0].ok(["resume"]);
    services[1].until_ended("job", 1);
    assert!(!paused(&bots[0]) && !paused(&bots[1]));
    // A host that starts while all are paused is paused too.
    bots[1].ok(["pause"]);
    services[0].until("the first is paused", || paused(&bots[0]).then_some(()));
    let [first, second] = services;
    first.stop();
    let first = bots[0].start();
    first.until("it is paused as well", || paused(&bots[0]).then_some(()));
    bots[0].ok(["resume"]);
    second.until("the other goes on", || (!paused(&bots[1])).then_some(()));
    first.stop();
    second.stop();
}

#[test]
fn what_only_another_host_can_do_is_said_to_be_that_ones() {
    let server = Postgres::start();
    let bots = ["attic", "laptop"].map(|name| host(TestBot::new(), &server, name));
    let long = "---\ncron: '0 0 29 2 *'\nbackground: true\nclient: exec\ncommand: sleep 300\nhosts: [laptop]\nallowed_tools: ['Bash(sleep *)']\n---\n";
    let main = "---\ncron: '0 0 29 2 *'\n---\nGo on.\n";
    for bot in &bots {
        bot.write("routines/long.md", long);
        bot.write("routines/main.md", main);
    }
    let attic = bots[0].start();
    let laptop = bots[1].start();
    let refused = |bot: &TestBot, line: &[&str], said: &[&str]| {
        let done = bot.run(line);
        assert!(done.code == 1 && said.iter().all(|part| done.stderr.contains(part)), "{line:?}: {done:?}");
    };
    let there = "does not run on this host: its `hosts` name laptop";
    refused(&bots[0], &["fire", "long"], &[there, "`ollim-bot fire long` on a host that may"]);
    let there = "does not run on this host: it goes on from the main session, which another host has";
    refused(&bots[1], &["fire", "main"], &[there]);
    bots[1].ok(["fire", "long"]);
    let run = attic.until("it goes", || {
        let run = bots[0].runs("long").pop().filter(|run| run["outcome"] == "running")?;
        Some(run["run"].as_str().unwrap().to_owned())
    });
    let open = format!("run {run} is open on the host laptop");
    refused(&bots[0], &["cancel-run", &run], &[&open, &format!("there: `ollim-bot cancel-run {run}`")]);
    refused(&bots[0], &["fire", "long"], &[&open, "there: `ollim-bot fire long`"]);
    let why = bots[0].ok(["why", "long"]);
    assert!(why.contains("the host laptop has it: long was fired by hand"), "{why}");
    bots[1].ok(["cancel-run", &run]);
    assert_eq!(attic.until_ended("long", 1)[0]["outcome"], "cancelled");
    bots[0].ok(["budget", "--set", "3"]);
    assert_eq!(bots[1].json(["budget"])["left"], bots[0].json(["budget"])["left"]);
    // The bot goes on where the service of one host is not running.
    attic.stop();
    let fires_there = "the service of this host is not running; what laptop may run fires there";
    let next = bots[0].run(["next"]);
    assert!(next.stderr.contains(fires_there), "{next:?}");
    refused(&bots[0], &["cancel-run", &run], &["the service is not running", "give the command on laptop"]);
    let doctor = bots[0].run(["doctor"]).stdout;
    assert!(doctor.contains("it does not run here; what laptop may run fires there"), "{doctor}");
    laptop.stop();
    let next = bots[0].run(["next"]);
    assert!(next.stderr.contains("the service is not running, so nothing fires"), "{next:?}");
    // Only a job that names hosts is said to have none.
    let doctor = bots[0].run(["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains("no host that may run routine long is up: its `hosts` name laptop"), "{doctor}");
    assert!(!doctor.contains("may run routine main"), "{doctor}");
}

#[test]
fn a_backup_says_where_the_journal_is_and_holds_no_hosts_identity() {
    let server = Postgres::start();
    let bot = TestBot::new();
    // A journal file from before the move is not the journal.
    bot.start().stop();
    let bot = host(bot, &server, "attic");
    bot.start().stop();
    let file = bot.person().join("bot.tar");
    let done = bot.run(["backup", file.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("note: the journal is not in it: it is on "), "{done:?}");
    assert!(done.stderr.contains("`pg_dump` there backs it up"), "{done:?}");
    let names = std::process::Command::new("tar").arg("-tf").arg(&file).output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    assert!(names.contains("config.yaml") || names.contains("routines"), "{names}");
    assert!(!names.contains("state/journal.db") && !names.lines().any(|name| name == "state/host"), "{names}");
    assert!(bot.path("state/host").exists() && bot.path("state/journal.db").exists());
}

#[test]
fn two_machines_become_one_bot_and_turn_back_as_the_document_says() {
    // The test runs the text word for word. Only the server's name is replaced, and the machines are folders.
    let server = Postgres::start();
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/several-hosts.md")).unwrap();
    let blocks: Vec<String> = document
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|block| {
            block.replace(
                "postgres://ollim:a-long-word@db.example.org/ollim",
                &server.url_of("ollim:a-long-word", "ollim"),
            )
        })
        .collect();
    let [as_administrator, copies, takes_the_folder, turns_back, pushes] = &blocks[..] else { panic!("{blocks:#?}") };
    let machine = |name: &str| {
        let person = tempfile::TempDir::with_prefix("ollim-test-").unwrap();
        let home = person.path().canonicalize().unwrap().join(".ollim-bot");
        let bot = TestBot::with_home(person, home).env("OLLIM_AGENT_CLIENT", "notify").env("OLLIM_HOST", name);
        client::executable(&bot.person().join("ollim-bot"), "#!/bin/sh\nexec \"$OLLIM_BOT\" \"$@\"\n");
        bot
    };
    let [first, second] = ["server", "laptop"].map(machine);
    // Stands for the network between the machines.
    let ssh = format!("#!/bin/sh\nshift\ncd {} && exec \"$@\"\n", first.person().display());
    client::executable(&second.person().join("ssh"), &ssh);
    let does = |bot: &TestBot, block: &str| {
        let like = bot.command::<&str>([]);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-euc", block]).current_dir(bot.person()).env_clear();
        shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        server.administer(&mut shell);
        let path = shell.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
        let path = std::iter::once(bot.person().to_owned()).chain(std::env::split_paths(&path));
        shell.env("PATH", std::env::join_paths(path).unwrap()).env("OLLIM_BOT", env!("CARGO_BIN_EXE_ollim-bot"));
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{block}: {}", String::from_utf8_lossy(&done.stderr));
    };
    first.write("config.yaml", "timezone: UTC\n");
    first.write("reminders/before.md", &reminder(now(), PLAIN, "Before."));
    let service = first.start();
    service.until_ended("before", 1);
    service.stop();
    does(&first, as_administrator);
    does(&first, copies);
    let server_host = first.start();
    does(&second, takes_the_folder);
    assert!(second.read("config.yaml").unwrap().contains("journal: ") && second.read("state/journal.db").is_none());
    assert!(!second.read("config.yaml").unwrap().contains("a-long-word"));
    assert!(second.read(".env").unwrap().contains("JOURNAL_PASSWORD=a-long-word"));
    let laptop = second.start();
    assert_eq!(second.runs("before").len(), 1);
    let hosts = second.json(["status"])["hosts"].as_array().unwrap().len();
    assert_eq!(hosts, 2);
    std::fs::create_dir_all(first.person().join("jobs/routines")).unwrap();
    std::fs::write(first.person().join("jobs/routines/tea.md"), "---\ncron: '0 9 1 1 *'\n---\nTea.\n").unwrap();
    does(&first, pushes);
    assert_eq!(first.json(["status"])["database"]["definitions"], 0);
    server_host.kill();
    second.write("reminders/alone.md", &reminder(now(), PLAIN, "Alone."));
    laptop.until_ended("alone", 1);
    laptop.until("the person hears of it there", || laptop.output().contains("Alone.").then_some(()));
    laptop.stop();
    does(&first, turns_back);
    assert_eq!(first.read("config.yaml").unwrap(), "timezone: UTC\n");
    let service = first.start();
    first.write("reminders/after.md", &reminder(now(), PLAIN, "After."));
    service.until_ended("after", 1);
    for id in ["before", "alone"] {
        assert_eq!(first.runs(id).len(), 1, "{id}");
    }
    service.stop();
}

#[test]
fn a_routine_that_is_paused_after_failures_on_one_host_is_resumed_on_another() {
    let server = Postgres::start();
    let bots = ["attic", "laptop"].map(|name| host(TestBot::new(), &server, name));
    let fails = "---\ncron: '0 0 29 2 *'\nbackground: true\nclient: exec\ncommand: 'false'\nretry: 0\nhosts: [laptop]\nallowed_tools: ['Bash(false)']\n---\n";
    bots.iter().for_each(|bot| bot.write("routines/fails.md", fails));
    let [attic, laptop] = bots.each_ref().map(TestBot::start);
    assert!(bots[0].run(["resume", "fails"]).stderr.contains("fails is not paused"));
    for _ in 0..10 {
        laptop.fire("fails");
    }
    attic.until("it is resumed", || (bots[0].run(["resume", "fails"]).code == 0).then_some(()));
    laptop.until("the other knows of it", || {
        bots[1].run(["resume", "fails"]).stderr.contains("fails is not paused").then_some(())
    });
    assert_eq!(server.psql("SELECT count(*) FROM streak"), "0");
    attic.stop();
    laptop.stop();
}

#[test]
fn what_only_a_killed_host_may_run_waits_for_it() {
    let answers = Arc::new(AtomicBool::new(false));
    let asked = answers.clone();
    let api = MessagesApi::answering(move |_| match asked.load(Ordering::Relaxed) {
        true => Reply::say("done"),
        false => Reply::Silence,
    });
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::with_client(&client::real(), api.url()), &server, name));
    for (name, hosts) in [("here", "hosts: [attic]\n"), ("anywhere", "")] {
        let job = reminder(now(), &format!("{ALLOW}{hosts}"), "Do the thing.");
        bots.iter().for_each(|bot| bot.write(&format!("reminders/{name}.md"), &job));
    }
    let attic = bots[0].start();
    attic.until("both have asked the model", || (api.requests().len() == 2).then_some(()));
    let home = bots[1].start();
    attic.kill();
    answers.store(true, Ordering::Relaxed);
    home.until_ended("anywhere", 2);
    let hosts = "SELECT string_agg(o.id || ' ' || r.host, ', ' ORDER BY r.number) FROM run r JOIN occurrence o ON o.number = r.occurrence";
    assert_eq!(server.psql(&format!("{hosts} WHERE o.id = 'here'")), "here attic");
    let attic = bots[0].start();
    attic.until_ended("here", 2);
    assert_eq!(server.psql(&format!("{hosts} WHERE o.id = 'here'")), "here attic, here attic");
    attic.stop();
    home.stop();
}

#[test]
fn what_is_written_changed_or_cancelled_on_one_host_is_so_on_all() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    bots[0].write("routines/tea.md", "---\nevery: 1h\nclient: notify\n---\nTea.\n");
    let [attic, home] = [bots[0].start(), bots[1].start()];
    home.until("the other has the routine", || bots[1].read("routines/tea.md"));
    bots[1].ok(["routine", "edit", "tea", "--every", "2h"]);
    attic.until("it is changed", || bots[0].read("routines/tea.md").filter(|text| text.contains("2h")));
    let added = bots[1].json(["reminder", "add", "--in", "1h", "--id", "oven", "The oven."]);
    attic.until("it has the reminder", || bots[0].read(&format!("reminders/{}.md", added["id"].as_str().unwrap())));
    let doctor = bots[0].run(["doctor"]).stdout;
    assert!(doctor.contains("2 are equal with the other hosts'"), "{doctor}");
    // The reminder is cancelled while the other host is down.
    home.stop();
    bots[0].ok(["reminder", "cancel", "oven"]);
    let soon = reminder(now(), PLAIN, "Cancelled.");
    bots[1].write("reminders/oven.md", &bots[1].read("reminders/oven.md").unwrap());
    attic.until("it is known that it was cancelled", || {
        (server.psql("SELECT count(*) FROM shared_file WHERE removed") == "1").then_some(())
    });
    let doctor = bots[1].run(["doctor"]).stdout;
    assert!(doctor.contains("reminders/oven.md: not as on the other hosts"), "{doctor}");
    let home = bots[1].start();
    assert_eq!(bots[1].read("reminders/oven.md"), None);
    // The file of a reminder that has run is removed everywhere.
    bots[0].write("reminders/soon.md", &soon);
    attic.until_ended("soon", 1);
    attic.until("its file is gone", || bots.iter().all(|bot| bot.read("reminders/soon.md").is_none()).then_some(()));
    let told = bots[0].json(["inbox"]);
    assert_eq!(told.as_array().unwrap().len(), 1, "{told:#}");
    attic.stop();
    home.stop();
}

#[test]
fn a_host_that_learns_by_a_commit_that_its_lease_is_lost_joins_anew() {
    let server = Postgres::start();
    let bot = host(TestBot::new(), &server, "attic");
    bot.write("reminders/first.md", &reminder(now(), PLAIN, "The first."));
    let service = bot.start();
    service.until_ended("first", 1);
    server.psql("UPDATE host SET epoch = epoch + 1, lease_until = now() - interval '1 s'");
    bot.write("reminders/second.md", &reminder(now(), PLAIN, "The second."));
    service.until_ended("second", 1);
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    assert_eq!(said.matches("it joins anew").count(), 1, "{said}");
}

#[test]
fn a_failover_to_a_replica_that_is_waited_for_forgets_nothing() {
    let mut server = Postgres::start();
    let replica = server.replica(true);
    let bots = ["attic", "home"]
        .map(|name| TestBot::new().env("OLLIM_JOURNAL", &server.url_with(&replica)).env("OLLIM_HOST", name));
    let services = bots.each_ref().map(TestBot::start);
    bots[0].write("reminders/before.md", &reminder(now(), PLAIN, "word before"));
    services[0].until_ended("before", 1);
    assert_eq!(server.psql("SELECT sync_state FROM pg_stat_replication"), "sync");
    // When the server fails, some reminders have their outcome, some are running and some are not due.
    for number in 0..30 {
        let due = now() + TimeDelta::milliseconds(2500 + 50 * number);
        bots[0].write(&format!("reminders/r{number}.md"), &reminder(due, PLAIN, &format!("word {number}")));
    }
    services[0].until("some have begun", || {
        (server.psql("SELECT count(*) > 4 FROM occurrence WHERE outcome IS NOT NULL") == "t").then_some(())
    });
    server.crash();
    replica.promote();
    services[0].until("each has its outcome", || {
        (replica.psql("SELECT count(*) FROM occurrence WHERE outcome = 'completed'") == "31").then_some(())
    });
    assert_eq!(replica.psql("SELECT count(*) FROM occurrence"), "31");
    assert_eq!(replica.psql("SELECT count(*), count(DISTINCT text) FROM message WHERE text LIKE 'word %'"), "31|31");
    services.into_iter().for_each(|service| drop(service.stop()));
}

#[test]
fn a_failover_to_a_replica_that_lags_forgets_what_came_last_as_doctor_warns() {
    let mut server = Postgres::start();
    let replica = server.replica(false);
    let bot = TestBot::new().env("OLLIM_JOURNAL", &server.url_with(&replica)).env("OLLIM_HOST", "attic");
    let service = bot.start();
    let kept = reminder(now(), PLAIN, "word kept");
    bot.write("reminders/kept.md", &kept);
    service.until_ended("kept", 1);
    let doctor = bot.run(["doctor"]);
    assert!(doctor.stdout.contains("1 of the server's replicas may lag behind it"), "{doctor:?}");
    service.until("the replica has it", || {
        (replica.psql("SELECT count(*) FROM occurrence WHERE outcome = 'completed'") == "1").then_some(())
    });
    replica.stop_following();
    let last = reminder(now(), PLAIN, "word last");
    bot.write("reminders/last.md", &last);
    service.until_ended("last", 1);
    server.crash();
    replica.promote();
    service.until("it goes on", || (bot.run(["runs"]).code == 0).then_some(()));
    assert_eq!((bot.runs("kept").len(), bot.runs("last").len()), (1, 0));
    // A reminder without a recorded run runs again if its file is still there.
    bot.write("reminders/last.md", &last);
    bot.write("reminders/kept.md", &kept);
    service.until_ended("last", 1);
    service.until("what is known to have run is not run", || bot.names("reminders").is_empty().then_some(()));
    assert_eq!(bot.runs("kept").len(), 1);
    service.stop();
}

#[test]
fn a_broken_setting_does_not_bring_back_the_journal_of_before_the_move() {
    let bot = TestBot::new();
    bot.start().stop();
    bot.write("config.yaml", "journal: postgres://bot@db.example.org/bot\nmodel: [\n");
    let runs = bot.run(["runs"]);
    assert_ne!(runs.code, 0, "{runs:?}");
    assert!(runs.stderr.contains("config.yaml"), "{runs:?}");
}

/// Each host has its own file. That of the host which did not run the reminder is removed with the other's.
#[test]
fn a_reminder_that_is_put_back_on_any_host_to_a_time_that_was_used_is_told_of_once() {
    let server = Postgres::start();
    let bots = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    let at = now() + TimeDelta::seconds(30);
    let fields = "client: exec\ncommand: 'exit 1'\nallowed_tools: []\nbackground: true\n";
    let text = reminder(at, fields, "x");
    bots[0].write("reminders/tea.md", &text);
    let [attic, home] = [bots[0].start(), bots[1].start()];
    home.until("it has the file", || bots[1].read("reminders/tea.md"));
    attic.fire("tea");
    attic.until("no host has the file", || bots.iter().all(|bot| bot.read("reminders/tea.md").is_none()).then_some(()));
    home.until("it is recorded", || (server.psql("SELECT count(*) FROM file_gone") == "2").then_some(()));
    std::fs::remove_file(bots[0].path("reminders/failed/tea.md")).unwrap();
    bots[1].write("reminders/tea.md", &text);
    attic.until("it has the file again", || bots[0].read("reminders/tea.md"));
    home.until("no host has the file", || bots.iter().all(|bot| bot.read("reminders/tea.md").is_none()).then_some(()));
    assert!(bots.iter().any(|bot| bot.read("reminders/failed/tea.md").is_some()), "it is kept");
    let told = "SELECT count(*) FROM message WHERE text LIKE 'reminder tea did not run: its time has had its run%'";
    home.until("the person is told", || (server.psql(told) == "1").then_some(()));
    assert_eq!(server.psql("SELECT count(*) FROM run"), "1");
    attic.stop();
    home.stop();
    assert_eq!(server.psql(told), "1");
}
