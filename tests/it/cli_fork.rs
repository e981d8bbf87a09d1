//! The binary inside a fork: every command passes through the control socket with the run's token.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ollim_bot::app::{App, Environment, ServiceCommand, ServiceReply};
use ollim_bot::bot::live::{LiveTurns, TurnUpdate};
use ollim_bot::config::Config;
use ollim_bot::daemon::control::{Control, Handler};
use ollim_bot::daemon::wire::Reply;
use ollim_bot::definition::{Defaults, DefinitionId, Kind, parse};
use ollim_bot::home::Home;
use ollim_bot::journal::{Denial, Event, EventFilter, RunId};
use ollim_bot::policy::{self, Decision, Layer, PathRoots, ToolPattern, Verdict};
use ollim_bot::refusal::Refusal;
use ollim_bot::run::delegation::DelegationLimit;
use ollim_bot::run::runner::RunSettings;
use ollim_bot::run::spawn::SpawnRequest;
use ollim_bot::run::tokens::{Grant, RunActions, RunAuthority, Tokens};

use crate::cli::shown;
use crate::support::bot::TestBot;

/// A service that is only a control socket, with one running fork.
struct Socket {
    grant: Grant,
    record: Arc<Record>,
    _runtime: tokio::runtime::Runtime,
}

struct Commands(App);

#[async_trait]
impl Handler for Commands {
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        let app = self.0.clone();
        tokio::task::spawn_blocking(move || ollim_bot::cli::fork::execute(&app, run, argv)).await.unwrap()
    }
    async fn service(&self, _command: ServiceCommand) -> Result<ServiceReply, Refusal> {
        Ok(ServiceReply::Paused)
    }
    fn open_chat(&self) -> ollim_bot::channel::OpenChat {
        ollim_bot::channel::OpenChats::default().open()
    }
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        chrono::DateTime::UNIX_EPOCH
    }
    fn live(&self) -> tokio::sync::broadcast::Receiver<TurnUpdate> {
        LiveTurns::default().listen()
    }
    fn newest_event(&self) -> i64 {
        0
    }
    async fn events(&self, _number: i64, _filter: &EventFilter) -> Result<Vec<Event>, Refusal> {
        Err(Refusal::user("nothing happens here"))
    }
}

fn serve(bot: &TestBot, denied: &'static str) -> Socket {
    serve_run(bot, denied, "0badcafe")
}

fn serve_run(bot: &TestBot, denied: &'static str, run: &str) -> Socket {
    let lines = "background: true\nallowed_tools: [Read, 'Bash(ollim-bot *)']\ntimeout: 10m\n";
    serve_job(bot, denied, run, lines)
}

/// Serves the run of a routine with these lines. What the main session has is `Read` and `Bash(ollim-bot *)` if it runs there.
fn serve_job(bot: &TestBot, denied: &'static str, run: &str, lines: &str) -> Socket {
    let home = Home::new(bot.home());
    std::fs::create_dir_all(home.state()).unwrap();
    let tokens = Tokens::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entered = runtime.enter();
    let control = Control::open(&home, tokens.clone()).unwrap();
    let app = ollim_bot::cli::for_person(home, Environment::default());
    runtime.spawn(control.serve(Arc::new(Commands(app))));
    drop(entered);
    let text = format!("---\ncron: '@daily'\n{lines}---\nSort.\n");
    let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
    let file = std::path::Path::new("routines/triage.md");
    let definition = parse(Kind::Routine, file, text.as_bytes(), &defaults).definition.unwrap();
    let mut settings = RunSettings::of(&Config::defaults(chrono_tz::UTC));
    let places = PathRoots { root: bot.home().into(), work: bot.path("work"), user_home: bot.person().into() };
    let policy = match definition.background() {
        Some(background) => {
            policy::background("routine triage", &background.restrictions, &settings.main_tools, &places)
        }
        None => {
            let main_tools = ["Read", "Bash(ollim-bot *)"].map(|text| ToolPattern::parse(text).unwrap());
            settings.main_tools = main_tools.into();
            policy::main_session(&settings.main_tools, &[], &places)
        }
    };
    let record = Arc::new(Record { denied, ..Record::default() });
    let limit = DelegationLimit::of(&definition, &policy, &settings);
    let authority = RunAuthority::new(RunId::new(run), "routine triage".into(), limit, record.clone());
    Socket { grant: tokens.grant(authority).unwrap(), record, _runtime: runtime }
}

/// The run's record. It grants every command except those with the denied word.
#[derive(Default)]
struct Record {
    denied: &'static str,
    effects: Mutex<Vec<String>>,
    denials: Mutex<Vec<Denial>>,
}

#[async_trait]
impl RunActions for Record {
    fn decide_command(&self, words: &[String], _agent: Option<&str>) -> Decision {
        let deny = words.iter().any(|word| word == self.denied);
        Decision {
            verdict: if deny { Verdict::Deny } else { Verdict::Allow },
            layer: Layer::DisallowedTools,
            rule: None,
            reason: format!("`{}` is denied to routine triage", words.join(" ")),
            commands: Vec::new(),
            read_only: false,
        }
    }
    async fn follow_up(&self, delay: Duration) -> Result<String, Refusal> {
        if delay.as_secs() == 90 { Ok("Scheduled: check 2 of 3.".to_owned()) } else { Err(Refusal::user("no chain")) }
    }
    async fn mark_effect(&self, what: &str) -> Result<(), Refusal> {
        self.effects.lock().unwrap().push(what.to_owned());
        Ok(())
    }
    async fn spawn(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal> {
        if request.agent.is_some() { Err(Refusal::user("no agents here")) } else { Ok(DefinitionId::new("spawn-1")) }
    }
    async fn record_denial(&self, denial: Denial) {
        self.denials.lock().unwrap().push(denial);
    }
}

fn in_fork(bot: &TestBot, token: &str, args: &[&str]) -> String {
    let output = bot.command(args).env("OLLIM_RUN_TOKEN", token).output().unwrap();
    let ran = crate::support::bot::CommandOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    shown(bot, &ran)
}

#[test]
fn a_fork_reads_through_the_service() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    let help = in_fork(&bot, socket.grant.token(), &["help"]);
    assert!(help.starts_with("exit: 0\n-- stdout\nollim-bot: runs jobs"), "{help}");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["statsu"]), @"
    exit: 1
    -- stderr
    error: there is no command `statsu`
    hint: did you mean `status`?
    hint: `ollim-bot help` lists all; one of your own is a program `ollim-bot-NAME` in [PERSON]/bot/bin
    ");
}

/// A run can neither block the service with a large request nor read outside the data folder.
#[test]
fn reading_is_bounded_and_stays_in_the_data_folder() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    bot.write("routines/often.md", "---\ncron: \"* * * * *\"\n---\nx\n");
    let next = in_fork(&bot, socket.grant.token(), &["next", "-n", "18446744073709551615"]);
    assert!(next.starts_with("exit: 1"), "{next}");
    let next = in_fork(&bot, socket.grant.token(), &["--json", "next", "-n", "10000"]);
    assert!(next.starts_with("exit: 0"), "{}", &next[..200]);
    for path in ["/etc/passwd", "../.ssh/id_ed25519", "routines/../state/user.token"] {
        let check = in_fork(&bot, socket.grant.token(), &["check", path]);
        assert!(check.contains("is no definition of"), "{check}");
    }
}

/// Messages, refusals and questions of other runs belong to the person, and so does the address of a monitor.
#[test]
fn a_run_reads_no_words_of_others() {
    let bot = TestBot::new();
    let run = tokio::runtime::Runtime::new().unwrap().block_on(crate::cli_read::record(bot.home()));
    let (other, own) = (serve(&bot, "cal"), ["runs show", "--json runs show"]);
    let commands = [
        "--json runs",
        "runs",
        "inbox",
        "--json inbox",
        "status",
        "sessions show spawn-1f0c9a2b",
        "--json sessions list",
    ];
    let ask = |socket: &Socket, command: &str| {
        let line = if own.contains(&command) { format!("{command} {run}") } else { command.to_owned() };
        in_fork(&bot, socket.grant.token(), &line.split(' ').collect::<Vec<_>>())
    };
    for command in commands.iter().chain(&own) {
        let seen = ask(&other, command);
        for words in ["secret", "evil", "not granted", "Two things", "ended early", "Go.", "Read the logs"] {
            assert!(!seen.contains(words), "{command}: {seen}");
        }
    }
    assert!(ask(&other, "runs").contains("routine triage"), "that it ran, and how it ended, is shown");
    drop(other);
    let itself = serve_run(&bot, "cal", &run);
    assert!(ask(&itself, "runs show").contains("ended early") && ask(&itself, "inbox").contains("Two things"));

    bot.write("routines/watched.md", "---\ncron: '@daily'\nheartbeat_url: https://hc.example/ping/SECRET\n---\nx\n");
    bot.write("config.yaml", "heartbeat_url: https://hc.example/ping/SECRET\n");
    for command in ["--json config", "config", "routine show watched", "--json routine list"] {
        let seen = ask(&itself, command);
        assert!(seen.contains("https://hc.example/…") && !seen.contains("SECRET"), "{command}: {seen}");
        let seen = bot.ok(command.split(' '));
        assert!(seen.contains("https://hc.example/ping/SECRET"), "{command}: {seen}");
    }
}

/// The search for the nearest command takes time in proportion to the name's length.
#[test]
fn a_name_longer_than_any_of_ours_is_near_none() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    let long = "a".repeat(100_000);
    for (words, reason) in [
        (vec![format!("--{long}")], "there is no option `--aaa"),
        (vec!["next".to_owned(), format!("--{long}=x")], "there is no option `--aaa"),
        (vec![long.clone()], "there is no command `aaa"),
    ] {
        let shown = in_fork(&bot, socket.grant.token(), &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(shown.starts_with("exit: 1") && shown.contains(reason), "{}", &shown[..200.min(shown.len())]);
        assert!(shown.len() < 1000, "{}", shown.len());
    }
}

#[test]
fn what_is_the_persons_alone_is_refused() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    for args in [
        &["budget", "--set", "5"][..],
        &["fire", "x"],
        &["init", "--force"],
        &["doctor", "--fix"],
        &["backup", "x.tar"],
        &["restore", "x.tar"],
        &["service", "install"],
        &["service", "logs"],
        &["run"],
        &["pause"],
        &["resume"],
        &["cancel-run", "0badcafe"],
        &["--json", "pause"],
    ] {
        let shown = in_fork(&bot, socket.grant.token(), args);
        assert!(shown.starts_with("exit: 1\n-- stderr\nerror: `ollim-bot "), "{args:?}: {shown}");
        assert!(shown.contains("is the person's alone, and a job may not do it"), "{args:?}: {shown}");
    }
    assert_eq!(socket.record.denials.lock().unwrap().len(), 13, "each is in the run's record");
    assert_eq!(in_fork(&bot, socket.grant.token(), &["budget"]), "exit: 0\n-- stdout\n5 of 5 pings left\n");
}

#[test]
fn a_job_makes_jobs_that_have_no_more_than_it_has() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    let add = |more: &[&str]| {
        let words =
            ["reminder", "add", "--in", "1h", "-m", "Look again"].iter().chain(more).copied().collect::<Vec<_>>();
        in_fork(&bot, socket.grant.token(), &words)
    };
    let refused = |more: &[&str]| {
        let shown = add(more);
        assert!(shown.starts_with("exit: 1\n-- stderr\nerror: "), "{more:?}: {shown}");
        shown.lines().nth(2).unwrap().trim_start_matches("error: ").to_owned()
    };
    let said = [
        refused(&[]),
        refused(&["--background", "--allowed-tools", "Read", "WebFetch"]),
        refused(&["--background", "--allowed-tools", "Bash"]),
        refused(&["--background", "--blocked-tools", "Bash(ollim-bot gmail *)"]),
        refused(&["--background", "--timeout", "11m"]),
        refused(&["--background", "--max-chain", "3", "--chain-depth", "1"]),
        refused(&["--background", "--max-chain", "3", "--chain-parent", "other"]),
        refused(&["--background", "--created-by", "other"]),
        refused(&["--background", "--skills", "money"]),
        refused(&["--background", "--agent", "Nobody"]),
        refused(&["--background", "--heartbeat-url", "https://example.org/x"]),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    a job can make background jobs only: the main session has more than it; add `--background`
    `WebFetch` is more than routine triage may do itself; leave it out, or narrow it to one of: Read, Bash(ollim-bot *), Bash(ollim-bot help)
    `Bash` is more than routine triage may do itself; leave it out, or narrow it to one of: Read, Bash(ollim-bot *), Bash(ollim-bot help)
    `Bash(ollim-bot gmail *)` takes away a part of `Bash(ollim-bot *)` only; give the new job an allowlist (`allowed_tools`) instead
    `--timeout 11m` is more than routine triage has itself (10m); leave it out, or ask for less
    a chain's links and makers are noted by ollim-bot itself
    a chain's links and makers are noted by ollim-bot itself
    a chain's links and makers are noted by ollim-bot itself
    routine triage has no skill `money` itself; leave it out
    there is no agent `Nobody`
    only the person chooses whom the service calls; leave `--heartbeat-url` out
    ");
    assert!(bot.names("reminders").is_empty());
    assert!(socket.record.effects.lock().unwrap().len() <= 1, "what is refused is no effect");
    assert!(socket.record.denials.lock().unwrap().len() >= 9);

    assert!(add(&["--background"]).starts_with("exit: 0\n-- stdout\nscheduled "));
    assert!(
        add(&["--background", "--allowed-tools", "Bash(ollim-bot gmail *)", "--timeout", "1m"]).starts_with("exit: 0")
    );
    let mut files: Vec<String> =
        bot.names("reminders").iter().map(|name| bot.read(&format!("reminders/{name}")).unwrap()).collect();
    files.sort_by_key(String::len);
    let kept = |text: &str| -> String {
        text.lines()
            .filter(|line| !line.starts_with("id:") && !line.starts_with("run_at:"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(files.iter().map(|text| kept(text)).collect::<Vec<_>>().join("\n\n"), @"
    ---
    background: true
    allowed_tools:
      - Bash(ollim-bot gmail *)
    allow_ping: false
    timeout: 1m
    created_by: triage
    ---
    Look again

    ---
    background: true
    allowed_tools:
      - Read
      - Bash(ollim-bot *)
    allow_ping: false
    timeout: 10m
    created_by: triage
    ---
    Look again
    ");
    let routine = ["routine", "add", "--cron", "@daily", "-m", "Look daily", "--background"];
    assert!(in_fork(&bot, socket.grant.token(), &routine).starts_with("exit: 0"));
    assert_eq!(bot.json(["routine", "list"])[0]["created_by"], "triage");
    assert!(!socket.record.effects.lock().unwrap().is_empty());
}

#[test]
fn a_foreground_job_changes_no_job_into_one_with_more_than_the_main_session() {
    let bot = TestBot::new();
    let socket = serve_job(&bot, "cal", "0badcafe", "");
    let file = "---\ncron: '@daily'\nclient: exec\ncommand: 'true'\nallowed_tools: ['Read(**)']\n---\n";
    bot.write("routines/look.md", file);
    bot.write("routines/bare.md", &file.replace("client:", "approve: true\nclient:"));
    let edit =
        |id: &str, words: &[&str]| in_fork(&bot, socket.grant.token(), &[&["routine", "edit", id][..], words].concat());
    for (id, words, part) in [
        ("look", &["--command", "id", "--allowed-tools", "Bash", "Edit(out/**)"][..], "`Bash` is more than"),
        ("look", &["--allowed-tools", "Bash(curl *)"], "`Bash(curl *)` is more than"),
        ("bare", &["--command", "id", "--no-approve"], "only the person takes `approve`"),
    ] {
        let shown = edit(id, words);
        assert!(shown.starts_with("exit: 1") && shown.contains(part), "{words:?}: {shown}");
    }
    assert_eq!(bot.read("routines/look.md").as_deref(), Some(file));
    assert!(bot.read("routines/bare.md").unwrap().contains("approve: true"));
    let shown = edit("look", &["--cron", "@hourly", "--command", "date", "--allowed-tools", "Read(notes/**)"]);
    assert!(shown.starts_with("exit: 0"), "{shown}");
}

#[test]
fn a_job_changes_only_what_it_has_made_itself() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    let far = crate::support::bot::now() + chrono::TimeDelta::days(9);
    let file = |fields: &str| crate::support::bot::reminder(far, fields, "Look.");
    let narrow = "background: true\nallowed_tools: [Read]\ntimeout: 10m\n";
    bot.write("reminders/persons.md", &file(narrow));
    bot.write("reminders/others.md", &file(&format!("{narrow}created_by: other\n")));
    bot.write(
        "reminders/wider.md",
        &file("background: true\nallowed_tools: [Read, Edit]\ntimeout: 10m\ncreated_by: triage\n"),
    );
    bot.write("reminders/front.md", &file("created_by: triage\n"));
    bot.write("reminders/own.md", &file(&format!("{narrow}allow_ping: false\ncreated_by: triage\n")));
    bot.write("routines/persons-too.md", "---\ncron: '@daily'\nbackground: true\nallowed_tools: [Read]\n---\nLook.\n");
    let before: Vec<Option<String>> =
        ["persons", "others", "wider", "front"].map(|name| bot.read(&format!("reminders/{name}.md"))).into();
    let token = socket.grant.token();
    for id in ["persons", "others", "wider", "front"] {
        for words in [&["reminder", "cancel", id][..], &["reminder", "snooze", id, "1h"], &["reminder", "edit", id]] {
            let shown = in_fork(&bot, token, words);
            assert!(shown.starts_with("exit: 1"), "{words:?}: {shown}");
        }
    }
    for words in [&["routine", "disable", "persons-too"][..], &["routine", "cancel", "persons-too"]] {
        assert!(in_fork(&bot, token, words).contains("was not made by routine triage"), "{words:?}");
    }
    let after: Vec<Option<String>> =
        ["persons", "others", "wider", "front"].map(|name| bot.read(&format!("reminders/{name}.md"))).into();
    assert_eq!(after, before);
    assert!(socket.record.effects.lock().unwrap().is_empty());

    // A run may change its own job within the limits for creating one, and not beyond.
    for (words, part) in [
        (&["--allowed-tools", "Read", "WebFetch"][..], "`WebFetch` is more than"),
        (&["--blocked-tools", "Read"], "has more than routine triage"),
        (&["--timeout", "1h"], "`--timeout 1h` is more"),
        (&["--timeout", ""], "has more than routine triage"),
        // It may send no messages itself.
        (&["--ping"], "has more than routine triage"),
        (&[], "nobody can use an editor inside a job"),
    ] {
        let words: Vec<&str> = ["reminder", "edit", "own"].iter().chain(words).copied().collect();
        let shown = in_fork(&bot, token, &words);
        assert!(shown.starts_with("exit: 1") && shown.contains(part), "{words:?}: {shown}");
    }
    assert!(
        in_fork(&bot, token, &["reminder", "edit", "persons", "-m", "x"]).contains("was not made by routine triage")
    );
    assert!(bot.read("reminders/own.md").unwrap().contains("allowed_tools: [Read]"));
    let set = ["reminder", "edit", "own", "-m", "Look harder.", "--allowed-tools", "", "--timeout", "5m"];
    assert!(in_fork(&bot, token, &set).starts_with("exit: 0"));
    let own = bot.read("reminders/own.md").unwrap();
    assert!(own.contains("Look harder.") && own.contains("allowed_tools: []") && own.contains("timeout: 5m"), "{own}");

    // A run may retry only failed jobs that it created.
    bot.write(
        "reminders/failed/mine.md",
        &file(&format!("{narrow}allow_ping: false\ncreated_by: triage\nfailed_reason: x\n")),
    );
    bot.write("reminders/failed/theirs.md", &file(&format!("{narrow}failed_reason: x\n")));
    assert!(in_fork(&bot, token, &["reminder", "retry", "theirs"]).contains("was not made by routine triage"));
    assert!(in_fork(&bot, token, &["reminder", "retry", "mine"]).starts_with("exit: 0"));
    assert!(in_fork(&bot, token, &["reminder", "snooze", "own", "2h"]).starts_with("exit: 0"));
    assert!(bot.read("reminders/own.md").unwrap().contains("created_by: triage"));
    assert!(in_fork(&bot, token, &["reminder", "cancel", "own"]).starts_with("exit: 0"));
    assert_eq!(bot.read("reminders/own.md"), None);
}

#[test]
fn the_jobs_that_jobs_make_are_bounded() {
    let bot = TestBot::new();
    let now = crate::support::bot::now();
    // Two reminders whose files are gone: one has fired, one has failed.
    let own = "background: true\nallowed_tools: []\ntimeout: 5m\nallow_ping: false\ncreated_by: triage\nretry: 0\n";
    let command = "client: exec\ncommand: 'true'\nallowed_tools: []\ntimeout: 5m\nallow_ping: false\ndeliver: never\ncreated_by: triage\n";
    bot.maker("triage");
    bot.write("reminders/fired.md", &crate::support::bot::reminder(now, command, ""));
    let service = bot.start();
    let fired = service.until_ended("fired", 1)[0]["run"].as_str().unwrap().to_owned();
    service.until("its file is gone", || bot.read("reminders/fired.md").is_none().then_some(()));
    service.stop();
    bot.write(
        "reminders/failed/failed.md",
        &crate::support::bot::reminder(now, &format!("{own}failed_reason: x\n"), "x"),
    );
    let socket = serve(&bot, "cal");
    let far = now + chrono::TimeDelta::days(9);
    // The failed one counts, too.
    for n in 0..ollim_bot::run::delegation::MADE_AT_MOST - 1 {
        bot.write(
            &format!("reminders/{n}.md"),
            &crate::support::bot::reminder(far, "background: true\ncreated_by: x\n", "x"),
        );
    }
    let adds = ["reminder", "add", "--in", "1h", "-m", "x", "--background"];
    let ways = [&adds[..], &["reminder", "restore", &fired, "--in", "9h"], &["reminder", "retry", "failed"]];
    for words in ways {
        let shown = in_fork(&bot, socket.grant.token(), words);
        assert!(shown.contains("no more may be"), "{words:?}: {shown}");
    }
    for (n, words) in ways.iter().enumerate() {
        bot.ok(["reminder", "cancel", &n.to_string()]);
        let shown = in_fork(&bot, socket.grant.token(), words);
        assert!(shown.starts_with("exit: 0"), "{words:?}: {shown}");
    }
    // One job does not make all of them.
    std::fs::remove_dir_all(bot.path("reminders")).unwrap();
    for n in 0..ollim_bot::run::delegation::MADE_BY_ONE_AT_MOST {
        bot.write(
            &format!("reminders/{n}.md"),
            &crate::support::bot::reminder(far, "background: true\ncreated_by: triage\n", "x"),
        );
    }
    let shown = in_fork(&bot, socket.grant.token(), &adds);
    assert!(shown.contains("there are 60 jobs already that this job has made"), "{shown}");
    // A file counts as long as it is there: with an error, in a circle, with the id of another, or without its frontmatter's end.
    std::fs::remove_dir_all(bot.path("reminders")).unwrap();
    std::fs::create_dir(bot.path("reminders")).unwrap();
    for n in 0..15 {
        let head = "---\nclient: exec\ncommand: 'true'\ncreated_by: triage\n";
        bot.write(&format!("routines/{n}a.md"), &format!("{head}after: {n}b\n---\n"));
        bot.write(&format!("routines/{n}b.md"), &format!("{head}after: {n}a\n---\n"));
        bot.write(&format!("routines/{n}c.md"), &format!("{head}cron: [\n---\n"));
        bot.write(&format!("routines/{n}d.md"), &format!("{head}id: same\ncron: '@daily'\n---\n"));
    }
    let shown = in_fork(&bot, socket.grant.token(), &adds);
    assert!(shown.contains("there are 60 jobs already that this job has made"), "{shown}");
}

#[test]
fn a_run_closes_no_circle_of_jobs_that_follow_each_other() {
    let bot = TestBot::new();
    bot.write("routines/triage.md", "---\ncron: '@daily'\n---\nSort.\n");
    let socket = serve(&bot, "cal");
    let add = |words: &[&str]| {
        let made = ["routine", "add", "--command", "true", "--allowed-tools", ""];
        in_fork(&bot, socket.grant.token(), &[&made[..], words].concat())
    };
    assert!(add(&["--cron", "@yearly"]).starts_with("exit: 0"));
    assert!(add(&["--after", "triage-2"]).starts_with("exit: 0"), "{:?}", bot.names("routines"));
    let edit =
        |words: &[&str]| in_fork(&bot, socket.grant.token(), &[&["routine", "edit", "triage-2"][..], words].concat());
    for job in ["triage-3", "triage-2"] {
        let shown = edit(&["--after", job]);
        assert!(shown.starts_with("exit: 1") && shown.contains("in turn, so none of them would fire"), "{shown}");
    }
    // The name of one that is gone is free, but not to follow what follows it.
    assert!(in_fork(&bot, socket.grant.token(), &["routine", "cancel", "triage-2"]).starts_with("exit: 0"));
    assert!(add(&["--after", "triage-3"]).starts_with("exit: 0"));
    assert_eq!(bot.names("routines"), ["triage-3.md", "triage-4.md", "triage.md"]);
}

#[test]
fn the_text_of_a_job_that_a_job_makes_is_bounded() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    let add = |field: &str, length: usize| {
        let text = "x".repeat(length);
        let mut words = vec!["reminder", "add", "--in", "9h", "--background", field, &text];
        words.extend((field != "-m").then_some(["-m", "x"]).into_iter().flatten());
        in_fork(&bot, socket.grant.token(), &words)
    };
    for field in ["-m", "--description"] {
        let shown = add(field, 17_000);
        assert!(shown.contains("has at most 16 KiB, and this one would have 17 KiB"), "{shown}");
        assert_eq!(bot.json(["reminder", "list"]), serde_json::json!([]));
    }
    let shown = add("-m", 15_000);
    assert!(shown.starts_with("exit: 0"), "{shown}");
    let own = bot.json(["reminder", "list"])[0]["id"].as_str().unwrap().to_owned();
    let edit =
        |length: usize| in_fork(&bot, socket.grant.token(), &["reminder", "edit", &own, "-m", &"x".repeat(length)]);
    let shown = edit(17_000);
    assert!(shown.contains("has at most 16 KiB"), "{shown}");
    assert!(edit(15_500).starts_with("exit: 0"));
    // The person writes what they like, and the job may still shorten it.
    bot.ok(["reminder", "edit", &own, "-m", &"x".repeat(30_000)]);
    assert!(edit(20_000).starts_with("exit: 0"));
    assert!(edit(20_001).contains("has at most 16 KiB"));
    assert!(in_fork(&bot, socket.grant.token(), &["reminder", "cancel", &own]).starts_with("exit: 0"));
}

#[test]
fn its_policy_comes_first_and_another_home_is_refused() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    bot.external_command("cal", "#!/bin/sh\necho ran cal\n");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["cal", "today"]), @"
    exit: 1
    -- stderr
    error: `ollim-bot cal today` is denied to routine triage
    ");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["--home", "/tmp", "help"]), @"
    exit: 1
    -- stderr
    error: `--home` is refused inside a job: it has the data folder it was started from
    ");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["help", "--home", "/tmp"]), @"
    exit: 1
    -- stderr
    error: `--home` is refused inside a job: it has the data folder it was started from
    ");
}

#[test]
fn a_granted_command_of_ones_own_runs_in_the_forks_process() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    bot.external_command("gmail", "#!/bin/sh\necho \"$* with ${OLLIM_RUN_TOKEN:+a token}\"; exit 3\n");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["gmail", "unread", "--json"]), @"
    exit: 3
    -- stdout
    unread --json with a token
    ");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["--json", "gmail", "unread"]), @"
    exit: 1
    -- stderr
    error: `--json` before one of your own commands is not handed on to it
    hint: put it after the command's name
    ");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["gmial", "unread"]), @"
    exit: 1
    -- stderr
    error: there is no command `gmial`
    hint: did you mean `gmail`?
    hint: `ollim-bot help` lists all; one of your own is a program `ollim-bot-NAME` in [PERSON]/bot/bin
    ");
}

#[test]
fn a_token_that_is_not_one_gets_nothing() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    for token in ["x", "0", &"0".repeat(32)] {
        let shown = in_fork(&bot, token, &["help"]);
        assert!(shown.contains("this token is not known"), "{shown}");
    }
    // An empty token does not give a fork the person's authority.
    bot.external_command("gmail", "#!/bin/sh\necho ran\n");
    for args in
        [&["help"][..], &["reminder", "add", "--in", "1h", "-m", "evil"], &["gmail"], &["--home", "/tmp", "help"]]
    {
        let shown = in_fork(&bot, "", args);
        assert!(shown.starts_with("exit: 1\n-- stderr\nerror: this token is not known"), "{shown}");
    }
    assert!(bot.names("reminders").is_empty());
    let token = socket.grant.token().to_owned();
    drop(socket);
    insta::assert_snapshot!(in_fork(&bot, &token, &["help"]), @"
    exit: 2
    -- stderr
    error: inside a job every command goes through the service, which is not running
    hint: the job's time is over: end here
    ");
}

#[test]
fn a_chains_next_link_is_scheduled_through_the_service() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    for name in ["follow-up-chain", "follow_up_chain"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &[name, "--in", "90s"]), @"
            exit: 0
            -- stdout
            Scheduled: check 2 of 3.
            ");
            insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &[name, "--in", "30"]), @"
            exit: 1
            -- stderr
            error: no chain
            ");
        }
    }
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["follow-up-chain", "--in", "0"]), @"
    exit: 1
    -- stderr
    error: invalid value '0' for '--in <MINUTES>': a span of time must be longer than nothing
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["follow-up-chain", "--in", "30"])), @"
    exit: 1
    -- stderr
    error: outside a chain reminder's run `follow-up-chain` needs to know which chain
    hint: name it: `ollim-bot follow-up-chain --for ID --in 20`
    hint: `ollim-bot reminder add --in 20m --max-chain 3 -m 'Check the oven'` begins one
    ");
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["follow-up-chain", "--for", "oven", "--in", "30"]), @"
    exit: 1
    -- stderr
    error: `ollim-bot follow-up-chain` is the person's alone, and a job may not do it
    hint: report what you wanted to do instead
    ");
}
