//! Gates on the real client: which ones wake an agent, which do not, and the limits of a gate.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder, started_by_fire_only};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// Creates a bot on the real client.
fn bot(api: &MessagesApi) -> TestBot {
    TestBot::with_client(&client::real(), api.url())
}

fn api() -> MessagesApi {
    MessagesApi::script([])
}

fn job(gate: &str, fields: &str) -> String {
    let gate = serde_json::to_string(gate).unwrap();
    format!("background: true\nisolated: true\nretry: 0\ngate: {gate}\n{fields}")
}

/// Writes a routine that never falls due by itself.
fn routine(bot: &TestBot, id: &str, gate: &str, fields: &str) {
    let fields = job(gate, fields);
    bot.write(&format!("routines/{id}.md"), &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nLook at it.\n"));
}

/// Fires a job and waits for its end. Returns the run as `runs show` shows it.
#[track_caller]
fn fire(bot: &TestBot, service: &Service<'_>, id: &str) -> Value {
    let run = service.fire(id);
    assert!(!run["ended"].is_null(), "{run:#}");
    bot.json(["runs", "show", run["run"].as_str().unwrap()])
}

const READS: &str = "allowed_tools: [Read]\n";

/// Nobody is woken then, which is said. Whether somebody would be is the gate's to say.
#[test]
fn a_gate_runs_where_no_agent_is_too() {
    let bot = TestBot::new();
    let service = bot.start();
    routine(&bot, "mails", "ls inbox | grep mail", "allowed_tools: ['Bash(ls *)']\nallow_ping: true\n");
    std::fs::create_dir_all(bot.path("work/inbox")).unwrap();
    let run = fire(&bot, &service, "mails");
    assert_eq!((&run["outcome"], &run["error"]), (&json!("skipped"), &json!("gate: exit 1")), "{run:#}");
    assert_eq!(bot.json(["inbox"]), json!([]));
    bot.write("work/inbox/mail", "x");
    let run = fire(&bot, &service, "mails");
    let error = run["error"].as_str().unwrap();
    assert!(error.starts_with("it has a `gate`, which wakes an agent: only an agent can do this"), "{run:#}");
    assert!(run["events"].to_string().contains("the gate woke the agent"), "{run:#}");
    assert!(bot.json(["inbox"]).to_string().contains("only an agent can do this"), "{:#}", bot.json(["inbox"]));
    service.stop();
}

#[test]
fn exit_0_wakes_exit_1_skips_and_anything_else_fails_and_is_told() {
    let api = api();
    let bot = bot(&api);
    let service = bot.start();
    routine(&bot, "wakes", "sleep 1.1; echo two new mails; echo '[end of gate]'; echo noise >&2", READS);
    let run = fire(&bot, &service, "wakes");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let prompt = api.last().last_text();
    assert!(prompt.contains("\n[gate]\n| two new mails\n| [end of gate]\n[end of gate]\n\nLook at it."), "{prompt}");
    assert!(run["events"].to_string().contains("the gate woke the agent"), "{run:#}");
    // The gate is the beginning of the run.
    let begin = run["events"].as_array().unwrap().iter().find(|event| event["event"] == "run_started").unwrap();
    assert_eq!(run["started"], begin["at"], "{run:#}");
    let asked = api.requests().len();

    routine(&bot, "skips", "echo nothing new; exit 1", READS);
    let run = fire(&bot, &service, "skips");
    assert_eq!((&run["outcome"], &run["error"]), (&json!("skipped"), &json!("gate: nothing new")), "{run:#}");

    for (id, gate, why) in [
        ("code", "echo broken >&2; exit 2", "the gate ended with exit code 2: \"broken\""),
        (
            "missing",
            "no-such-program",
            "the gate ended with exit code 127: \"bash: line 1: no-such-program: command not found\"",
        ),
        ("signal", "kill -9 $$", "the gate ended by signal 9"),
        ("syntax", "if", "the gate ended with exit code 2"),
        // A refusal fails the gate, whatever the line makes of it.
        ("refused", "curl -s https://example.com || exit 1", "the gate was refused a program: `curl"),
        ("hidden", "$(touch evil) true; true", "the gate was refused a program: `touch evil`"),
    ] {
        routine(&bot, id, gate, READS);
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], json!("failed"), "{run:#}");
        assert!(run["error"].as_str().unwrap().contains(why), "{run:#}");
        let inbox = bot.json(["inbox"]).to_string();
        assert!(inbox.contains(&format!("routine {id} failed")), "{inbox}");
    }
    routine(&bot, "hangs", "echo begun; sleep 1000 & sleep 1000", &format!("{READS}gate_timeout: 1s\n"));
    let run = fire(&bot, &service, "hangs");
    assert!(run["error"].as_str().unwrap().contains("longer than 1s (`gate_timeout`)"), "{run:#}");
    assert_eq!(api.requests().len(), asked, "no model was asked");
    assert!(bot.read("work/evil").is_none());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_reminder_that_its_gate_skips_is_done() {
    let api = api();
    let bot = bot(&api);
    bot.write("reminders/job.md", &reminder(now(), &job("exit 1", READS), "Look."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!((&run["outcome"], &run["error"]), (&json!("skipped"), &json!("gate: exit 1")), "{run:#}");
    service.until("its file is gone", || bot.read("reminders/job.md").is_none().then_some(()));
    assert_eq!(bot.names("reminders"), Vec::<String>::new());
    service.stop();
}

#[test]
fn what_a_gate_keeps_counts_when_the_work_was_done() {
    let api = MessagesApi::answering(|request| match request.mentions("three") {
        true => Reply::Error(400, "invalid_request_error"),
        false => Reply::say("done"),
    });
    let bot = bot(&api);
    let service = bot.start();
    // Wakes the agent if the page differs from the last time.
    let gate =
        "cmp -s \"$OLLIM_STATE/seen\" page && { echo same; exit 1; }; cat page; cat page > \"$OLLIM_STATE/seen\"";
    routine(&bot, "page", gate, "allowed_tools: ['Read(page)', 'Bash(cat *)']\n");
    let mut ends = Vec::new();
    for text in ["one", "one", "two", "three", "three", "four", "four"] {
        bot.write("work/page", text);
        let run = fire(&bot, &service, "page");
        ends.push(run["outcome"].as_str().unwrap().to_owned());
    }
    // If a run fails, its gate sees the same change as new again.
    assert_eq!(ends, ["completed", "skipped", "completed", "failed", "failed", "completed", "skipped"]);
    // The state is not visible to other jobs or to the agent.
    routine(&bot, "other", "echo \"$OLLIM_STATE\"/*; exit 1", READS);
    let why = fire(&bot, &service, "other")["error"].to_string();
    assert!(why.ends_with("/tmp/state/*\""), "{why}");
    service.stop();
    let api = MessagesApi::script([Reply::bash("echo \"[$OLLIM_STATE]\" $TMPDIR/s*")]);
    let bot = bot.client(&client::real(), api.url());
    let service = bot.start();
    bot.write("work/page", "five");
    fire(&bot, &service, "page");
    let said = api.last().results()[0].text.clone();
    assert!(said.starts_with("[] ") && said.trim_end().ends_with("/tmp/s*"), "{said}");
    service.stop();
}

#[test]
fn a_gate_has_no_more_than_its_job() {
    let api = api();
    let bot = bot(&api);
    let service = bot.start();
    bot.write("work/secret", "xyzzy");
    let config = bot.path("config.yaml");
    for (id, gate) in [
        ("reads", "cat secret; cat < secret".to_owned()),
        ("writes", "echo x > made".to_owned()),
        ("connects", "echo x > /dev/tcp/127.0.0.1/9".to_owned()),
        ("leaves", format!("echo 'timeout: 1s' >> {}", config.display())),
        ("journal", format!("cat {}/state/journal.db", bot.home().display())),
        ("links", "ln -s /etc/passwd \"$OLLIM_STATE/x\"".to_owned()),
        ("fills", "head -c 20000000 /dev/zero > \"$OLLIM_STATE/x\"".to_owned()),
        ("makes", "ollim-bot reminder add -m evil --in 1h".to_owned()),
    ] {
        routine(&bot, id, &gate, "allowed_tools: [Read(notes/**)]\n");
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], json!("failed"), "{run:#}");
        assert!(!run.to_string().contains("xyzzy"), "{run:#}");
    }
    assert_eq!(bot.names("work"), ["secret"]);
    assert_eq!(bot.read("config.yaml"), None);
    // The service removes what a gate has put in the place of its folder, and not what that leads to.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("letter"), "kept").unwrap();
    let gate = format!("rm -r \"$OLLIM_STATE\"; ln -s {} \"$OLLIM_STATE\"; exit 1", elsewhere.path().display());
    routine(&bot, "replaces", &gate, "allowed_tools: [Bash(rm *), Bash(ln *)]\n");
    let run = fire(&bot, &service, "replaces");
    assert!(run["error"].as_str().unwrap().contains("it is no folder any more"), "{run:#}");
    assert_eq!(std::fs::read_to_string(elsewhere.path().join("letter")).unwrap(), "kept");
    // A program about which the person would be asked is refused.
    routine(&bot, "asks", "touch made", "allowed_tools: [Read]\nask_tools: ['Bash(touch *)']\n");
    let run = fire(&bot, &service, "asks");
    assert!(run["error"].as_str().unwrap().contains("a gate asks nobody"), "{run:#}");
    assert_eq!(bot.json(["questions"]), json!([]));
    // A granted program may run.
    bot.external_command("mail", "#!/bin/sh\necho \"$*: 2\"\n");
    routine(
        &bot,
        "mail",
        "ollim-bot mail count && touch \"$OLLIM_STATE/ran\"",
        "allowed_tools: ['Bash(ollim-bot mail *)', 'Bash(touch *)']\n",
    );
    let run = fire(&bot, &service, "mail");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(api.last().last_text().contains("| count: 2\n"), "{}", api.last().last_text());
    service.stop();
}

/// The limits of an agent's costs do not apply to a gate.
#[test]
fn the_gate_of_a_made_job_makes_and_starts_nothing() {
    let api = api();
    let bot = bot(&api);
    let service = bot.start();
    let makes = "ollim-bot reminder add x --in 9h --background; ollim-bot spawn -m hi; exit 1";
    let fields = "allowed_tools: ['Bash(ollim-bot *)', mcp__bot__spawn_agent]\n";
    routine(&bot, "own", makes, fields);
    fire(&bot, &service, "own");
    assert_eq!(bot.json(["reminder", "list"]).as_array().unwrap().len(), 1, "the person's may");
    routine(&bot, "other", "true", fields);
    routine(&bot, "made", makes, &format!("{fields}created_by: other\n"));
    let run = fire(&bot, &service, "made");
    assert_eq!(bot.json(["reminder", "list"]).as_array().unwrap().len(), 1, "{run:#}");
    assert!(run["denials"].to_string().contains("runs a gate that another job made, and makes no jobs"), "{run:#}");
    assert!(run["denials"].to_string().contains("runs a gate that another job made, and spawns none"), "{run:#}");
    service.stop();
}

#[test]
fn a_gate_that_writes_without_end_or_leaves_children_is_bounded() {
    let api = api();
    let bot = bot(&api);
    let service = bot.start();
    routine(&bot, "prints", "head -c 1000000000 /dev/zero | tr '\\0' 'x'", READS);
    let run = fire(&bot, &service, "prints");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let prompt = api.last().last_text();
    assert!(prompt.contains("(what it printed beyond 16 KiB is left out)") && prompt.len() < 40_000);
    routine(&bot, "writes", "head -c 1000000000 /dev/zero > \"$TMPDIR/x\"", READS);
    let run = fire(&bot, &service, "writes");
    assert_eq!(run["outcome"], "failed", "{run:#}");
    routine(&bot, "forks", "(trap '' HUP TERM; sleep 1000 > /dev/null 2>&1 &) ; echo up", READS);
    let run = fire(&bot, &service, "forks");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(!bot.processes().iter().any(|process| format!("{process:?}").contains("sleep")), "{:#?}", bot.processes());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn one_outcome_when_the_service_is_killed_within_a_gate() {
    let api = api();
    let bot = bot(&api);
    let gate = "echo x > \"$OLLIM_STATE/x\"; test -e notes/go || { echo > notes/begun; sleep 1000; }";
    bot.write("work/notes/a", "");
    bot.write(
        "reminders/job.md",
        &reminder(now(), &job(gate, "allowed_tools: ['Edit(notes/**)', Read]\ngate_timeout: 10m\n"), "Look."),
    );
    let service = bot.start();
    service.until("the gate runs", || bot.read("work/notes/begun"));
    service.kill();
    bot.until_no_processes();
    bot.write("work/notes/go", "");
    let service = bot.start();
    service.until("it is done", || bot.read("reminders/job.md").is_none().then_some(()));
    let runs = bot.runs("job");
    let ends: Vec<&str> = runs.iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(ends, ["completed", "interrupted"], "{runs:#?}");
    service.stop();
}

#[test]
fn check_names_a_gate_that_its_job_does_not_cover_and_a_dry_run_shows_the_verdict() {
    let bot = TestBot::new();
    routine(
        &bot,
        "covered",
        "curl -fsS https://example.com && test -s x",
        "allowed_tools: ['Bash(curl -fsS https://example.com)']\n",
    );
    assert_eq!(bot.run(["check"]).code, 0);
    routine(&bot, "bare", "curl -fsS https://example.com", READS);
    routine(&bot, "none", "true", "disallowed_tools: [Bash]\n");
    let checked = bot.run(["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    for id in ["bare", "none"] {
        let told = format!("error: routine `{id}`: the job's tools do not cover its gate, which will fail: ");
        assert!(checked.stdout.contains(&told), "{}", checked.stdout);
    }
    assert!(!checked.stdout.contains("covered"), "{}", checked.stdout);

    for (gate, verdict, said) in [
        ("echo new; cat \"$OLLIM_STATE/x\" 2> /dev/null; true", "wake", "new"),
        ("echo old; echo x > \"$OLLIM_STATE/x\"; exit 1", "skip", "old"),
        ("exit 3", "failed", "the gate ended with exit code 3"),
        ("echo why; exit 3", "failed", "the gate ended with exit code 3: \"why\""),
        // A program that a rule grants has the folder, too.
        ("touch \"$OLLIM_STATE/x\"; ls \"$OLLIM_STATE\"; exit 1", "skip", "x"),
        (
            "head -c 20000000 /dev/zero > \"$OLLIM_STATE/x\"; echo new",
            "failed",
            "what the gate wrote to $OLLIM_STATE cannot be kept: it holds more than 1000 files or 16 MiB",
        ),
    ] {
        routine(&bot, "tried", gate, "allowed_tools: [Read, 'Bash(touch *)', 'Bash(ls *)']\n");
        assert!(bot.ok(["check", "tried"]).contains("0 errors"), "{gate}");
        let dry = bot.json(["fire", "tried", "--dry-run"]);
        assert_eq!(dry["gate"], json!({ "verdict": verdict, "said": said }), "{dry:#}");
        assert_eq!(dry["prompt"].as_str().unwrap().contains("| new\n"), verdict == "wake");
    }
    assert!(!bot.path("state/gates").exists());
    routine(&bot, "tried", "exit 1", READS);
    let text = bot.ok(["fire", "tried", "--dry-run"]);
    assert!(text.starts_with("Gate\nexit 1: this time would be skipped\n"), "{text}");
    routine(&bot, "tried", "exit 3", READS);
    let text = bot.ok(["fire", "tried", "--dry-run"]);
    assert!(text.starts_with("Gate\nthe run would fail: the gate ended with exit code 3\n"), "{text}");
    // What `ollim-bot` answers to a run is not known outside of one.
    routine(&bot, "tried", "ollim-bot runs | grep -q x", "allowed_tools: ['Bash(ollim-bot runs)', 'Bash(grep *)']\n");
    let dry = bot.json(["fire", "tried", "--dry-run"]);
    assert_eq!(dry["gate"], Value::Null, "{dry:#}");
    let held = "its gate decides, which is not known here: it calls `ollim-bot`, which answers a gate only in a run";
    assert_eq!(dry["held"], json!([held]), "{dry:#}");
}

/// `doctor`, `simulate` and `why` say of a gate that will fail what `check` says.
#[test]
fn a_gate_that_will_fail_is_told_wherever_a_person_looks() {
    let bot = TestBot::new();
    routine(&bot, "bare", "curl -fsS https://example.com", READS);
    let message = "the job's tools do not cover its gate, which will fail: ";
    let doctor = bot.run(["doctor"]).stdout;
    assert!(doctor.contains("0 in order, 1 whose gate or command will fail"), "{doctor}");
    assert!(bot.run(["simulate", "bare"]).stderr.contains(&format!("routines/bare.md: {message}")));
    let faults = &bot.json(["simulate", "bare"])["faults"];
    assert!(faults[0]["message"].as_str().unwrap().starts_with(message), "{faults:#}");
}

/// Returns the recipes of docs/gates.md: a file's path and its text.
fn recipes() -> Vec<(String, String)> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gates.md")).unwrap();
    let sections = document.split("\n### ").skip(1);
    let recipe = |section: &str| {
        let (before, rest) = section.split_once("```markdown\n").unwrap();
        let file = before.lines().rev().find_map(|line| line.strip_prefix('`')?.strip_suffix('`')).unwrap();
        (file.to_owned(), rest.split_once("```\n").unwrap().0.to_owned())
    };
    sections.map(recipe).collect()
}

#[test]
fn every_recipe_wakes_its_agent_for_news_and_for_nothing_else() {
    /// The recipe's id, the program that it calls, and pairs of this program's behaviour and the outcome.
    type RecipeRun = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
    const SKIPPED: &str = "skipped";
    const FAILED: &str = "failed";
    let lives: [RecipeRun; 10] = [
        (
            "new-mail",
            "ollim-bot-imap",
            &[
                ("echo 2", "| 2 new messages"),
                ("echo 2", SKIPPED),
                ("echo 1", SKIPPED),
                ("echo 3", "| 2 new messages"),
                ("exit 1", FAILED),
            ],
        ),
        (
            "page",
            "curl",
            &[
                ("echo 'ETag: a'", "| https://example.com/news has changed"),
                ("echo 'ETag: a'", SKIPPED),
                ("exit 22", FAILED),
            ],
        ),
        (
            "commits",
            "git",
            &[
                ("[ $1 = fetch ] || echo abc", "| the remote branch is at abc"),
                ("[ $1 = fetch ] || echo abc", SKIPPED),
                ("exit 128", FAILED),
            ],
        ),
        ("disk", "df", &[("echo ' 81%'", "| the disk is 81 % full"), ("echo ' 80%'", SKIPPED), ("exit 1", FAILED)]),
        ("inbox", "true", &[("", SKIPPED)]),
        ("soon", "ollim-bot-cal", &[("echo 14:00 dentist", "| 14:00 dentist"), ("true", SKIPPED), ("exit 1", FAILED)]),
        (
            "feed",
            "curl",
            &[("echo '<guid>7</guid>'", "| <guid>7"), ("echo '<guid>7</guid>'", SKIPPED), ("exit 6", FAILED)],
        ),
        (
            "ci",
            "gh",
            &[
                ("echo 5 success", SKIPPED),
                ("echo 6 failure", "| build 6 failed"),
                ("echo 6 failure", SKIPPED),
                ("exit 4", FAILED),
            ],
        ),
        ("gone", "pgrep", &[("echo 12", SKIPPED), ("exit 1", "| nginx is not running"), ("exit 3", FAILED)]),
        ("frost", "curl", &[("echo +12°C", SKIPPED), ("echo -3°C", "| -3 degrees"), ("exit 6", FAILED)]),
    ];
    let api = api();
    let bot = bot(&api);
    let programs = bot.person().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let bot = bot.env("PATH", &path);
    let stub = |program: &str, does: &str| match program.strip_prefix("ollim-bot-") {
        Some(name) => bot.external_command(name, &format!("#!/bin/sh\n{does}\n")),
        None => client::executable(&programs.join(program), &format!("#!/bin/sh\n{does}\n")),
    };
    lives.iter().for_each(|(_, program, _)| stub(program, "exit 9"));
    for (file, text) in recipes() {
        bot.write(&file, &text);
    }
    let checked = bot.json(["check"]);
    assert_eq!((&checked["definitions"], &checked["problems"]), (&json!(10), &json!([])), "{checked:#}");
    for (file, text) in recipes() {
        bot.write(&file, &started_by_fire_only(&text));
    }
    let service = bot.start();
    // Programs that a rule grants see the machine's programs.
    routine(
        &bot,
        "real",
        "pgrep -x no-such-program; pgrep -x ollim-bot > /dev/null && echo here",
        "allowed_tools: ['Bash(pgrep *)']\n",
    );
    let live = |id: &str, expected: &str| {
        let run = fire(&bot, &service, id);
        match expected {
            SKIPPED | FAILED => assert_eq!(run["outcome"], expected, "{run:#}"),
            said => {
                assert_eq!(run["outcome"], "completed", "{run:#}");
                let prompt = api.last().last_text();
                assert!(prompt.contains(&format!("[gate]\n{said}\n[end of gate]")), "{id}: {prompt}");
            }
        }
    };
    for (id, program, steps) in lives {
        for (does, expected) in steps {
            stub(program, does);
            live(id, expected);
        }
    }
    std::fs::remove_file(programs.join("pgrep")).unwrap();
    live("real", "| here");
    bot.write("work/inbox/a scan.txt", "x");
    live("inbox", "| inbox/a scan.txt");
    live("inbox", SKIPPED);
    service.stop();
}

/// Returns the programs in docs/gates.md: each file's path and its text.
fn programs_of_recipes() -> Vec<(String, String)> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gates.md")).unwrap();
    let parts = document.split("`bin/").skip(1);
    let program = |part: &str| {
        let (name, rest) = part.split_once('`').unwrap();
        let text = rest.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0;
        (format!("bin/{name}"), text.to_owned())
    };
    parts.map(program).collect()
}

/// Answers each connection by `talk`, on a thread of its own.
fn serve(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.incoming().flatten().for_each(talk));
    address
}

/// Speaks IMAP (RFC 3501): to the right name and password, says that INBOX has seven messages.
fn imap(stream: TcpStream) {
    let mut writes = stream.try_clone().unwrap();
    write!(writes, "* OK ready\r\n").unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let (tag, command) = line.split_once(' ').unwrap();
        let answer = match command.split(' ').next().unwrap() {
            "CAPABILITY" => "* CAPABILITY IMAP4rev1\r\n".to_owned(),
            "LOGIN" if command.ends_with("ann secret") => String::new(),
            "STATUS" if command == "STATUS INBOX (MESSAGES)" => "* STATUS INBOX (MESSAGES 7)\r\n".to_owned(),
            "LOGOUT" => "* BYE\r\n".to_owned(),
            _ => {
                write!(writes, "{tag} NO refused\r\n").unwrap();
                continue;
            }
        };
        // curl may have gone away.
        let _ = write!(writes, "{answer}{tag} OK done\r\n");
    }
}

/// Speaks CalDAV (RFC 4791): to the right name and password, answers a query for expanded events.
fn caldav(stream: TcpStream) {
    let mut writes = stream.try_clone().unwrap();
    let mut reads = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reads.read_line(&mut head).unwrap() > 0 {}
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reads.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let is_right = head.starts_with("REPORT /calendars/ann/home/")
        && lower.contains("depth: 1")
        && lower.contains("authorization: basic yw5uonnly3jlda==")
        && body.contains("<C:expand start='");
    let event = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY;LANGUAGE=en:Dentist\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let answer = format!("<multistatus><response><calendar-data>{event}</calendar-data></response></multistatus>");
    let status = if is_right { "207 Multi-Status" } else { "401 Unauthorized" };
    write!(writes, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}", answer.len())
        .unwrap();
}

/// The commands of the recipes work as they are printed, but for the server's address.
#[test]
fn the_commands_of_the_recipes_ask_their_servers() {
    let api = api();
    let bot = bot(&api);
    let (mail, calendar) = (serve(imap), serve(caldav));
    for (file, text) in programs_of_recipes() {
        let text = text.replace("imaps://imap.example.com", &format!("imap://{mail}"));
        let text = text.replace("https://dav.example.com", &format!("http://{calendar}"));
        client::executable(&bot.path(&file), &text);
    }
    for name in ["imap", "cal"] {
        bot.write(&format!("tools/{name}/netrc"), "machine 127.0.0.1 login ann password secret\n");
    }
    let recipes = recipes();
    for id in ["new-mail", "soon"] {
        let (file, text) = recipes.iter().find(|(file, _)| *file == format!("routines/{id}.md")).unwrap();
        bot.write(file, &started_by_fire_only(text));
    }
    let service = bot.start();
    for (id, said) in [("new-mail", "| 7 new messages"), ("soon", "| Dentist")] {
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], "completed", "{run:#}");
        let prompt = api.last().last_text();
        assert!(prompt.contains(&format!("[gate]\n{said}\n[end of gate]")), "{id}: {prompt}");
    }
    // A wrong password is a failure and no news.
    bot.write("tools/imap/netrc", "machine 127.0.0.1 login ann password wrong\n");
    assert_eq!(fire(&bot, &service, "new-mail")["outcome"], "failed");
    service.stop();
}
