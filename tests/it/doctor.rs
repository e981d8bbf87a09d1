//! `ollim-bot doctor`: it reports each problem with a remedy and repairs what is safe to repair.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use chrono::TimeDelta;
use serde_json::Value;

use crate::support::bot::{CommandOutput, TestBot, now, reminder};
use crate::support::client;
use crate::support::discord::{self, Discord};
use crate::support::ntfy::Ntfy;
use crate::support::smtp::{Smtp, TlsMode, certificate};
use crate::support::telegram::{self, Telegram};

/// Returns the report as JSON. Asserts that the exit code agrees with it.
#[track_caller]
fn doctor(bot: &TestBot, flags: &[&str]) -> Value {
    let ran = bot.run(["doctor", "--json"].iter().chain(flags));
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    let wrong = findings(&found).iter().any(|finding| finding["health"] == "wrong");
    assert_eq!((ran.code, &found["ok"]), (i32::from(wrong), &Value::Bool(!wrong)), "{found:#}");
    found
}

fn findings(found: &Value) -> &Vec<Value> {
    found["findings"].as_array().unwrap()
}

/// Returns the worst state of one check, and its words. Asserts that a problem has a remedy.
#[track_caller]
fn of(found: &Value, check: &str) -> (String, String) {
    let rank = |finding: &&Value| ["wrong", "look", "ok"].iter().position(|word| finding["health"] == *word);
    let one = findings(found).iter().filter(|finding| finding["check"] == check).min_by_key(rank);
    let one = one.unwrap_or_else(|| panic!("nothing is said of {check}: {found:#}"));
    assert!(
        one["health"] == "ok" || one["do"].as_array().is_some_and(|steps| !steps.is_empty()),
        "no way out: {one:#}"
    );
    (one["health"].as_str().unwrap().to_owned(), one["detail"].as_str().unwrap().to_owned())
}

fn mode(bot: &TestBot, path: &str) -> u32 {
    fs::metadata(bot.path(path)).unwrap().permissions().mode() & 0o777
}

/// Writes a `timedatectl` that says whether the clock is set from the network, whatever this machine's is.
fn synchronized(bot: &TestBot, says: &str) {
    client::executable(&bot.person().join("timedatectl"), &format!("#!/bin/sh\necho {says}\n"));
}

fn with_clock() -> TestBot {
    let bot = TestBot::new();
    let path = format!("{}:{}", bot.person().display(), std::env::var("PATH").unwrap());
    let bot = bot.env("PATH", &path);
    synchronized(&bot, "yes");
    bot
}

#[test]
fn a_running_service_in_order_is_in_order() {
    let bot = with_clock();
    let service = bot.start();
    let found = doctor(&bot, &[]);
    for check in
        ["data folder", "permissions", "disk", "journal", "zone", "clock", "client", "service", "definitions", "jobs"]
    {
        assert_eq!(of(&found, check).0, "ok", "{check}: {found:#}");
    }
    assert_eq!(of(&found, "service").1, format!("running (pid {})", service.pid()));
    let text = bot.ok(["doctor"]);
    assert!(text.contains("ok     journal      whole\n"), "{text}");
    bot.ok(["pause"]);
    assert_eq!(of(&doctor(&bot, &[]), "service"), ("look".into(), "it is paused: nothing starts by itself".into()));
    service.stop();
    let found = doctor(&bot, &[]);
    assert_eq!(of(&found, "service"), ("wrong".into(), "it does not run, so nothing fires".into()));
}

#[test]
fn a_folder_that_cannot_be_written_is_wrong() {
    let Some(bot) = TestBot::new().unprivileged(Path::new("/bin/true")) else { return };
    fs::set_permissions(bot.path("reminders"), Permissions::from_mode(0o555)).unwrap();
    let (state, detail) = of(&doctor(&bot, &[]), "data folder");
    assert_eq!(state, "wrong");
    assert!(detail.ends_with("/reminders cannot be written: Permission denied (os error 13)"), "{detail}");
}

#[test]
fn what_is_safe_is_repaired_and_said() {
    let bot = TestBot::new();
    fs::create_dir(bot.path("state")).unwrap();
    bot.write(".env", "SOME_TOKEN=hunter2\n");
    fs::set_permissions(bot.path(".env"), Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(bot.path("state"), Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir(bot.path("work")).unwrap();
    drop(UnixListener::bind(bot.path("state/control.sock")).unwrap());

    let found = doctor(&bot, &[]);
    assert_eq!(of(&found, "permissions"), ("wrong".into(), ".env can be read by others".into()));
    assert!(of(&found, "data folder").1.ends_with("has no webhooks, work, tools, state/runs"), "{found:#}");
    assert_eq!(of(&found, "socket").0, "look");
    assert_eq!(mode(&bot, ".env"), 0o644, "without --fix nothing is changed");

    let found = doctor(&bot, &["--fix"]);
    let fixed: Vec<&str> = found["fixed"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(
        fixed,
        [
            "made .env readable by you alone",
            "made state readable by you alone",
            "made webhooks/",
            "made work/",
            "made tools/",
            "made state/runs/",
            "removed state/control.sock, which nobody listened at",
        ]
    );
    assert_eq!((mode(&bot, ".env"), mode(&bot, "state")), (0o600, 0o700));
    assert!(bot.path("work").is_dir() && !bot.path("state/control.sock").exists());
    for check in ["permissions", "data folder"] {
        assert_eq!(of(&found, check).0, "ok");
    }
    assert_eq!(doctor(&bot, &["--fix"])["fixed"], serde_json::json!([]), "once is enough");
    assert!(!found.to_string().contains("hunter2"));
}

#[test]
fn others_must_not_change_what_jobs_may_do() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: UTC\n");
    let open = ["config.yaml", "routines", "tools"];
    bot.write("tools/cal/token", "hunter2\n");
    for path in open {
        fs::set_permissions(bot.path(path), Permissions::from_mode(0o757)).unwrap();
    }
    let found = |flags: &[&str]| -> Vec<String> {
        let found = doctor(&bot, flags);
        let wrong = findings(&found).iter().filter(|one| one["check"] == "permissions" && one["health"] == "wrong");
        wrong.map(|one| one["detail"].as_str().unwrap().to_owned()).collect()
    };
    // Nobody gets through the folder around them.
    fs::set_permissions(bot.home(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(found(&[]), [""; 0]);
    fs::set_permissions(bot.home(), Permissions::from_mode(0o755)).unwrap();
    let told =
        ["tools can be read by others", "config.yaml can be changed by others", "routines can be changed by others"];
    assert_eq!(found(&[]), told);
    assert_eq!(found(&["--fix"]), [""; 0]);
    assert_eq!(open.map(|path| mode(&bot, path)), [0o755, 0o755, 0o700]);
}

#[test]
fn nobody_is_told_to_stop_what_the_machine_needs() {
    let bot = TestBot::new();
    let runtime = bot.person().join("runtime");
    fs::create_dir_all(runtime.join("systemd")).unwrap();
    let tmux = bot.person().join("tmux");
    let bot = bot.env("XDG_RUNTIME_DIR", runtime.to_str().unwrap()).env("TMUX", &format!("{},1,0", tmux.display()));
    let _listeners = [&runtime.join("systemd/private"), &tmux].map(|path| UnixListener::bind(path).unwrap());
    let found = doctor(&bot, &[]);
    let step_of = |what: &str| -> String {
        let is_it = |finding: &&Value| finding["detail"].as_str().unwrap().starts_with(what);
        findings(&found).iter().find(is_it).unwrap_or_else(|| panic!("{found:#}"))["do"][0].as_str().unwrap().to_owned()
    };
    assert!(step_of("systemd (user) answers").ends_with("run ollim-bot as a user of its own"));
    assert!(step_of("tmux answers").contains("stop that program"));
}

#[test]
fn a_clock_that_nothing_keeps_right_is_named() {
    let bot = with_clock();
    for (says, health) in [("no", "look"), ("yes", "ok")] {
        synchronized(&bot, says);
        let (is, words) = of(&doctor(&bot, &[]), "clock");
        assert_eq!((is.as_str(), words.ends_with("and nothing keeps it right")), (health, health == "look"), "{words}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let bot = TestBot::bare();
    let found = doctor(&bot, &["--fix"]);
    assert_eq!(of(&found, "data folder").0, "wrong");
    assert!(!bot.home().exists());
}

#[test]
fn the_socket_of_a_running_service_is_left_alone() {
    let bot = TestBot::new();
    let service = bot.start();
    assert_eq!(doctor(&bot, &["--fix"])["fixed"], serde_json::json!([]));
    assert!(bot.ok(["status"]).contains("running"));
    service.stop();
}

#[test]
fn files_settings_and_a_damaged_journal_are_told_with_their_place() {
    let bot = TestBot::new();
    bot.write("routines/a.md", "---\ncron: never\n---\nx\n");
    assert_eq!(
        of(&doctor(&bot, &[]), "definitions"),
        ("wrong".into(), "0 in order, 1 error in files that do not count".into())
    );
    bot.write("config.yaml", "timezon: UTC\n");
    assert_eq!(
        of(&doctor(&bot, &[]), "settings"),
        ("wrong".into(), "unknown setting `timezon` (config.yaml:1:1)".into())
    );
    assert!(of(&doctor(&bot, &[]), "definitions").1.contains("1 error in files"), "settings are no definition");
    assert!(of(&doctor(&bot, &[]), "the rest").1.contains("the client, the login, the channels"));
    fs::create_dir_all(bot.path("state")).unwrap();
    bot.write("state/journal.db", &"no database ".repeat(1000));
    let (health, detail) = of(&doctor(&bot, &[]), "journal");
    assert!(health == "wrong" && detail.starts_with("it is damaged: "), "{detail}");
    bot.secrets("nonsense\n");
    assert!(of(&doctor(&bot, &[]), "secrets").1.ends_with(".env line 1: write `NAME=value`"));
}

#[test]
fn the_client_its_version_and_its_login_are_looked_at() {
    let none = TestBot::new().env("OLLIM_AGENT_CLIENT", "claude").env("OLLIM_CLAUDE", "no-such-client");
    let found = doctor(&none, &[]);
    assert_eq!(of(&found, "client").0, "wrong");
    assert_eq!(of(&found, "login"), ("wrong".into(), "there is none, or it has ended".into()));

    for (version, health, words) in [
        ("2.1.250", "ok", "claude 2.1.250 at "),
        ("2.1.1", "look", "2.1.1 is older"),
        ("99.0.0", "look", "99.0.0 is newer"),
    ] {
        let bot = TestBot::new();
        let program = bot.path("bin/client");
        client::executable(&program, &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
        let bot = bot.client(&program, "http://127.0.0.1:9");
        let found = doctor(&bot, &[]);
        let (is, detail) = of(&found, "client");
        assert!(is == health && detail.starts_with(words), "{detail}");
        assert_eq!(
            of(&found, "login"),
            ("ok".into(), "from ANTHROPIC_API_KEY in the environment; `doctor` makes no call with it".into())
        );
        assert!(!found.to_string().contains("sk-test"), "a login is never shown");
    }
    let broken = TestBot::new();
    let program = broken.path("bin/client");
    client::executable(&program, "#!/bin/sh\nexit 3\n");
    let found = doctor(&broken.client(&program, "http://127.0.0.1:9"), &[]);
    assert_eq!(of(&found, "client").0, "wrong");
}

/// Returns all findings of one check, with their states.
fn all_of(found: &Value, check: &str) -> Vec<String> {
    let of_check = findings(found).iter().filter(|finding| finding["check"] == check);
    of_check.map(|one| format!("{}: {}", one["health"].as_str().unwrap(), one["detail"].as_str().unwrap())).collect()
}

#[test]
fn a_running_service_is_judged_by_its_own_environment() {
    let bot = with_clock();
    let program = client::script(&bot.path("bin"), "exit 1");
    let bot = bot.env("OLLIM_AGENT_CLIENT", "claude").env("OLLIM_CLAUDE", program.to_str().unwrap());
    let service = bot.start();
    // The login of the shell is none of the service's.
    let bot_of_shell = |name: &str, value: &str| -> Value {
        let output = bot.command(["doctor", "--json"]).env(name, value).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let found = bot_of_shell("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    let login = [
        "wrong: there is none, or it has ended",
        "look: this shell differs from the service: it has one from ANTHROPIC_API_KEY in the environment",
    ];
    assert_eq!((all_of(&found, "login"), &found["ok"]), (login.map(String::from).to_vec(), &Value::Bool(false)));
    // Nor is its choice of a client.
    let found = bot_of_shell("OLLIM_AGENT_CLIENT", "notify");
    let client = all_of(&found, "client");
    assert!(client[0].starts_with("ok: claude "), "{client:#?}");
    assert_eq!(
        client[1..],
        ["look: this shell differs from the service: `agent_client` is `notify` here and `claude` there"]
    );
    assert_eq!(of(&found, "login").0, "wrong");
    service.stop();

    let bot = bot.env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    let service = bot.start();
    let without = bot.command(["doctor", "--json"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    let found: Value = serde_json::from_slice(&without.stdout).unwrap();
    let login = "ok: from ANTHROPIC_API_KEY in the environment of the service; `doctor` makes no call with it";
    assert_eq!((all_of(&found, "login"), all_of(&found, "client").len()), (vec![login.to_owned()], 1));
    service.stop();
}

#[test]
fn a_job_that_will_wait_for_an_agent_is_wrong_before_it_is_due() {
    let bot = with_clock();
    let program = client::script(&bot.path("bin"), "exit 1");
    let bot = bot.env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", program.to_str().unwrap());
    bot.write("routines/mail.md", "---\ncron: '0 0 1 1 *'\nbackground: true\nallowed_tools: [Read]\n---\nSort.\n");
    let service = bot.start();
    let (health, detail) = of(&doctor(&bot, &[]), "service");
    assert_eq!(health, "wrong", "{detail}");
    assert!(detail.starts_with("1 job waits for the agent: `") && detail.ends_with("` is not logged in"), "{detail}");
    service.stop();
}

#[test]
fn jobs_that_failed_or_never_ran_are_named() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::hours(1), "", "Tea."));
    bot.write("reminders/soon.md", &reminder(now() + TimeDelta::hours(1), "", "Soon."));
    let (health, detail) = of(&doctor(&bot, &[]), "jobs");
    assert!(health == "wrong" && detail.starts_with("reminder tea was due "), "{detail}");
    assert!(detail.ends_with(" and has never run"), "{detail}");
    // `notify` has no agent that could run a job with tools.
    bot.write("routines/mail.md", "---\ncron: '0 0 1 1 *'\nbackground: true\nallowed_tools: [Read]\n---\nSort.\n");
    let service = bot.start();
    service.until_ended("tea", 1);
    bot.ok(["fire", "mail"]);
    let run = service.until_ended("mail", 1).remove(0);
    let why = run["error"].as_str().unwrap();
    assert!(why.contains("`agent_client: notify` runs none; set `agent_client: auto` in config.yaml (or"), "{why}");
    let outcome = run["outcome"].clone();
    let (health, detail) = of(&doctor(&bot, &[]), "jobs");
    assert_eq!((outcome, health, detail), ("failed".into(), "wrong".into(), "mail failed".to_owned()));
    service.stop();
}

#[test]
fn a_job_that_was_skipped_at_each_of_its_times_is_named() {
    let bot = TestBot::new();
    bot.write("routines/mail.md", "---\ncron: '@yearly'\nclient: notify\n---\nMail.\n");
    let service = bot.start();
    service.fire("mail");
    service.stop();
    let skipped = |why: &str| {
        let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
        journal.execute("UPDATE occurrence SET outcome = 'skipped'", []).unwrap();
        journal.execute("UPDATE run SET state = 'skipped', error = ?1", [why]).unwrap();
        drop(journal);
        of(&doctor(&bot, &[]), "jobs")
    };
    let detail = "routine mail was skipped at each of its times, and has never run: budget: nothing is left";
    assert_eq!(skipped("budget: nothing is left"), ("look".into(), detail.into()));
    assert_eq!(skipped("gate: nothing new").0, "ok");
    let service = bot.start();
    service.fire("mail");
    service.stop();
    assert_eq!(of(&doctor(&bot, &[]), "jobs").0, "ok");
}

/// Returns the state and the words of each channel's check.
#[track_caller]
fn channels(bot: &TestBot) -> Vec<(String, String)> {
    let found = doctor(bot, &[]);
    let of_channels = findings(&found).iter().filter(|finding| finding["check"] == "channel");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    of_channels.map(|finding| (text(finding, "health"), text(finding, "detail"))).collect()
}

#[test]
fn channels_are_asked_and_the_person_is_sent_nothing() {
    let (ntfy, telegram, discord, smtp) =
        (Ntfy::start(), Telegram::start(), Discord::start(), Smtp::start(TlsMode::Tls));
    let bot = TestBot::new();
    client::executable(&bot.path("bin/my-bridge"), "#!/bin/sh\ntouch started\n");
    bot.write(
        "config.yaml",
        &format!(
            "channels:\n  phone: {{ kind: ntfy, url: {}/to-me }}\n  tg: {{ kind: telegram, owner: 7, api: '{}' }}\n  \
             chat: {{ kind: discord, api: '{}' }}\n  \
             post: {{ kind: mail, to: me@example.org, from: bot@example.org, smtp: 'smtps://localhost:{}', user: bot, certificate: '{}' }}\n  \
             signal: {{ kind: command, command: [my-bridge] }}\ndefault_channel: phone\n",
            ntfy.url(),
            telegram.url(),
            discord.url(),
            smtp.port(),
            certificate("ca.pem").display(),
        ),
    );
    let tokens = |ntfy: &str, telegram: &str, discord: &str, smtp: &str| {
        bot.secrets(&format!(
            "NTFY_TOKEN={ntfy}\nTELEGRAM_TOKEN={telegram}\nDISCORD_TOKEN={discord}\nSMTP_PASSWORD={smtp}\n"
        ));
    };
    tokens("tk_secret", telegram::TOKEN, discord::TOKEN, "hunter2");
    let look = |detail: String| ("look".to_owned(), format!("{detail}; it has delivered nothing yet"));
    assert_eq!(
        channels(&bot),
        [
            look(format!("`phone`: {} answers", ntfy.url())),
            look("`tg`: Telegram takes the token for @my_bot".into()),
            look("`chat`: Discord takes the token for bot".into()),
            look(format!("`post`: localhost:{} takes the connection and `bot`", smtp.port())),
            look(format!("`signal`: its program is {}", bot.path("bin/my-bridge").display())),
        ]
    );
    assert!(ntfy.topic("to-me").is_empty() && telegram.chat().is_empty() && discord.texts().is_empty());
    assert!(smtp.mails().is_empty() && !bot.path("state/channels/signal/started").exists());

    tokens("tk_other", "1:other", "other", "other");
    fs::set_permissions(bot.path("bin/my-bridge"), Permissions::from_mode(0o644)).unwrap();
    let found = channels(&bot);
    for (at, words) in [
        "`phone` cannot deliver: the ntfy server answered 401: unauthorized",
        "`tg` cannot deliver: Telegram refused it: Unauthorized",
        "`chat` cannot deliver: Discord does not accept `DISCORD_TOKEN` (401)",
        "`post` cannot deliver: the mail server: ",
        "`signal` cannot deliver: there is no program `my-bridge` on PATH",
    ]
    .iter()
    .enumerate()
    {
        assert!(found[at].0 == "wrong" && found[at].1.starts_with(words), "{found:#?}");
    }
    assert!(found[3].1.contains("authentication failed"), "{found:#?}");
    assert!(!format!("{found:?}").contains("1:other"), "a token is never shown");
}

#[test]
fn a_channel_that_has_delivered_nothing_does_not_work_yet() {
    let ntfy = Ntfy::start();
    let bot = TestBot::new();
    let config = |url: &str| {
        bot.write(
            "config.yaml",
            &format!("channels: {{ phone: {{ kind: ntfy, url: '{url}/to-me' }} }}\ndefault_channel: phone\n"),
        );
    };
    config(ntfy.url());
    let service = bot.start();
    let shown = bot.run(["channels"]);
    assert!(shown.stdout.contains("not tried yet") && shown.stderr.contains("channels test phone"), "{shown:#?}");
    bot.ok(["channels", "test", "phone"]);
    let shown = bot.run(["channels"]);
    assert!(shown.stdout.contains("works") && shown.stderr.is_empty(), "{shown:#?}");
    let found = channels(&bot);
    let (health, detail) = &found[0];
    assert!(health == "ok" && detail.contains(" answers; it delivered a message "), "{found:#?}");
    service.stop();

    ntfy.set_down(true);
    let found = channels(&bot);
    assert_eq!(found, [("wrong".into(), "`phone` cannot deliver: the ntfy server answered 502: bad gateway".into())]);
    // A port without a server, and a server that never answers.
    config("http://127.0.0.1:9");
    assert!(channels(&bot)[0].1.starts_with("`phone` cannot deliver: the ntfy server cannot be reached: "));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    config(&format!("http://{}", silent.local_addr().unwrap()));
    assert_eq!(channels(&bot)[0].1, "`phone` cannot deliver: there was no answer within 5 s");
}

#[test]
fn it_ends_with_a_summary() {
    let bot = TestBot::new();
    let CommandOutput { code, stdout, .. } = bot.run(["doctor"]);
    assert_eq!(code, 1);
    let service = stdout.lines().skip_while(|line| !line.starts_with("wrong  service")).take(2).collect::<Vec<_>>();
    assert_eq!(service[0], "wrong  service      it does not run, so nothing fires");
    // On a machine with systemd, its command comes first.
    let step = service[1].strip_prefix("                    -> start it: `ollim-bot ");
    assert!(step.is_some_and(|step| step.ends_with("run`")), "{service:?}");
    assert!(stdout.lines().last().unwrap().starts_with("1 wrong, "), "{stdout}");
}
