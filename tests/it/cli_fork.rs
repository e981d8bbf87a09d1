//! The binary inside a fork: everything goes through the control socket with the run's token.

use std::sync::Arc;

use async_trait::async_trait;
use ollim_bot::cli::context::{Caller, Context, Environment};
use ollim_bot::daemon::control::{Answers, Control};
use ollim_bot::daemon::wire::{Reply, Request};
use ollim_bot::home::Home;
use ollim_bot::journal::RunId;
use ollim_bot::policy::{Decision, Layer, Verdict};
use ollim_bot::run::tokens::{Grant, RunAuthority, Tokens};

use crate::cli::shown;
use crate::support::bot::TestBot;

/// A service that has nothing but a control socket, and one live run that is granted `granted` as first words.
struct Socket {
    grant: Grant,
    _runtime: tokio::runtime::Runtime,
}

struct Commands(Context);

#[async_trait]
impl Answers for Commands {
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        let context = self.0.clone();
        tokio::task::spawn_blocking(move || ollim_bot::cli::fork::serve(run, argv, &context)).await.unwrap()
    }
    async fn verb(&self, request: Request) -> Reply {
        Reply::Done(format!("{request:?}"))
    }
}

fn serve(bot: &TestBot, denied: &'static str) -> Socket {
    let home = Home::new(bot.home());
    std::fs::create_dir_all(home.state()).unwrap();
    let tokens = Tokens::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entered = runtime.enter();
    let control = Control::open(&home, tokens.clone()).unwrap();
    let context = Context::new(home, Caller::Person, Environment::default(), bot.home().to_owned(), false);
    runtime.spawn(control.serve(Arc::new(Commands(context))));
    drop(entered);
    let decide_command = move |words: &[String]| {
        let deny = words.iter().any(|word| word == denied);
        Decision {
            verdict: if deny { Verdict::Deny } else { Verdict::Allow },
            layer: Layer::DisallowedTools,
            rule: None,
            reason: format!("`{}` is denied to routine triage", words.join(" ")),
            commands: Vec::new(),
            read_only: false,
        }
    };
    let authority = RunAuthority {
        run: RunId::new("0badcafe"),
        title: "routine triage".into(),
        decide_command: Box::new(decide_command),
        follow_up: Box::new(|delay| {
            Box::pin(async move {
                if delay.as_secs() == 90 {
                    Ok("Scheduled: check 2 of 3.".to_owned())
                } else {
                    Err("no chain".to_owned())
                }
            })
        }),
    };
    Socket { grant: tokens.grant(authority).unwrap(), _runtime: runtime }
}

fn in_fork(bot: &TestBot, token: &str, args: &[&str]) -> String {
    let output = bot.command(args).env("OLLIM_RUN_TOKEN", token).output().unwrap();
    let ran = crate::support::bot::Ran {
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

/// What a run could use to hold the service up or to learn what is not its own.
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

#[test]
fn what_writes_is_refused() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    for args in [
        &["reminder", "add", "--in", "1h", "-m", "evil"][..],
        &["routine", "add", "--cron", "@daily", "-m", "evil", "--background"],
        &["routine", "cancel", "x"],
        &["routine", "disable", "x"],
        &["reminder", "cancel", "x"],
        &["reminder", "retry", "x"],
        &["reminder", "edit", "x"],
        &["reminder", "snooze", "x", "1h"],
        &["reminder", "restore", "0badcafe", "--in", "1h"],
        &["routine", "edit", "x"],
        &["budget", "--set", "5"],
        &["fire", "x"],
        &["init", "--force"],
        &["run"],
        &["pause"],
        &["resume"],
        &["cancel-run", "0badcafe"],
        &["--json", "reminder", "cancel", "x"],
    ] {
        let shown = in_fork(&bot, socket.grant.token(), args);
        assert!(shown.starts_with("exit: 1\n-- stderr\nerror: `ollim-bot "), "{args:?}: {shown}");
        assert!(shown.contains("changes something, which a job may not do"), "{args:?}: {shown}");
    }
    assert_eq!(in_fork(&bot, socket.grant.token(), &["budget"]), "exit: 0\n-- stdout\n5 of 5 pings left\n");
    assert_eq!(bot.names("reminders"), Vec::<String>::new());
    assert_eq!(bot.names("routines"), Vec::<String>::new());
    insta::assert_snapshot!(in_fork(&bot, socket.grant.token(), &["reminder", "add", "--in", "1h", "-m", "x"]), @"
    exit: 1
    -- stderr
    error: `ollim-bot reminder add` changes something, which a job may not do by the command line
    hint: report what you wanted to do instead
    ");
}

#[test]
fn its_policy_comes_first_and_another_home_is_refused() {
    let bot = TestBot::new();
    let socket = serve(&bot, "cal");
    bot.command_of_ones_own("cal", "#!/bin/sh\necho ran cal\n");
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
    bot.command_of_ones_own("gmail", "#!/bin/sh\necho \"$* with ${OLLIM_RUN_TOKEN:+a token}\"; exit 3\n");
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
    // Emptied, it does not make a fork the person.
    bot.command_of_ones_own("gmail", "#!/bin/sh\necho ran\n");
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
    error: invalid value '0' for '--in <MINUTES>': the next check must be later than now
    ");
    insta::assert_snapshot!(shown(&bot, &bot.run(["follow-up-chain", "--in", "30"])), @"
    exit: 1
    -- stderr
    error: `follow-up-chain` works inside a chain reminder's run only
    hint: a person schedules a reminder: `ollim-bot reminder add --in 20m -m 'Check the oven'`
    ");
}
