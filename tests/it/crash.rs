//! `kill -9` of the service, and its recovery at the next start.

use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use serde_json::json;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client::{self, executable};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::processes;

const ALLOW: &str =
    "background: true\nisolated: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n  - mcp__discord__ping_user\n";

fn outcomes(runs: &[Value]) -> Vec<(u64, String)> {
    let mut all: Vec<(u64, String)> = runs
        .iter()
        .map(|run| (run["attempt"].as_u64().unwrap(), run["outcome"].as_str().unwrap().to_string()))
        .collect();
    all.sort();
    all
}

#[test]
fn cut_off_before_its_first_effect_a_reminder_runs_once_more() {
    // The model is silent until the service is killed; then it answers.
    let silent = MessagesApi::answering(|_| Reply::Silence);
    let bot = TestBot::with_client(&client::real(), silent.url());
    bot.write("reminders/job.md", &reminder(now(), ALLOW, "Do the thing."));
    let service = bot.start();
    service.until("the client has asked the model", || (!silent.requests().is_empty()).then_some(()));
    service.kill();
    bot.until_no_processes();
    assert!(bot.read("reminders/job.md").is_some());

    let answering = MessagesApi::script([]);
    let bot = bot.env("ANTHROPIC_BASE_URL", answering.url());
    let service = bot.start();
    let runs = service.until_ended("job", 2);
    assert_eq!(outcomes(&runs), [(1, "interrupted".into()), (2, "completed".into())]);
    assert_eq!(runs[0]["scheduled"], runs[1]["scheduled"], "one occurrence, two attempts");
    let prompt = answering.last();
    assert!(prompt.mentions("cut off"), "the agent is told: {}", prompt.last_text());
    service.until("the file is removed", || bot.read("reminders/job.md").is_none().then_some(()));
    service.stop();
    // A further start finds nothing to do.
    let service = bot.start();
    bot.write("reminders/next.md", &reminder(now(), ALLOW, "Another thing."));
    service.until_ended("next", 1);
    assert_eq!(bot.runs("job").len(), 2);
    service.stop();
}

#[test]
fn cut_off_after_a_ping_a_reminder_failed_and_the_person_is_told() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::call("mcp__discord__ping_user", json!({ "message": "The first word." })),
        _ => Reply::Silence,
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/job.md", &reminder(now(), ALLOW, "Do the thing."));
    let service = bot.start();
    service.until("the ping came through", || api.requests().iter().any(|r| r.answers() == 1).then_some(()));
    service.kill();
    bot.until_no_processes();

    let service = bot.start();
    service.until("the file is kept among the failed", || bot.read("reminders/failed/job.md"));
    service.until("it is there alone", || bot.read("reminders/job.md").is_none().then_some(()));
    let runs = bot.runs("job");
    assert_eq!(runs.len(), 1, "it does not run again: {runs:#?}");
    assert_eq!(runs[0]["outcome"], "failed", "{:#}", runs[0]);
    let texts: Vec<String> = service.until("the person is told", || {
        let inbox = bot.json(["inbox"]);
        let texts: Vec<String> =
            inbox.as_array()?.iter().map(|message| message["text"].as_str().unwrap().to_string()).collect();
        (texts.len() >= 2).then_some(texts)
    });
    assert_eq!(texts.iter().filter(|text| text.contains("The first word.")).count(), 1, "{texts:?}");
    assert_eq!(texts.iter().filter(|text| text.contains("job")).count(), 1, "told once: {texts:?}");
    service.stop();
    let kept = bot.read("reminders/failed/job.md").unwrap();
    assert!(kept.contains("Do the thing.") && kept.contains("allowed_tools"), "{kept}");
}

#[test]
fn a_killed_service_leaves_no_process_of_a_fork() {
    // The agent's command runs forever, double-forked in its own session.
    let api = MessagesApi::script([Reply::bash("ollim-bot gmail wait")]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.external_command(
        "gmail",
        "#!/bin/bash\n(setsid bash -c \"exec -a orphan-of-$OLLIM_HOME sleep 1000\" &) \nexec -a waits-in-$OLLIM_HOME sleep 1000\n",
    );
    bot.write("reminders/job.md", &reminder(now(), ALLOW, "Do the thing."));
    let service = bot.start();
    let is_there = |name: &str| bot.processes().iter().any(|process| process.command.starts_with(name));
    service.until("its processes run", || (is_there("orphan-of-") && is_there("waits-in-")).then_some(()));
    service.kill();
    bot.until_no_processes();
}

/// Processes that a job's line leaves behind if its service and its runner are killed at once, since neither can end them.
#[test]
fn what_is_left_when_service_and_runner_are_killed_is_ended_by_the_next_start() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = TestBot::with_client(&client::real(), api.url());
    // One double-forked process in its own session, and one without its environment.
    bot.external_command(
        "gmail",
        "#!/bin/bash\n(setsid bash -c \"exec -a orphan-of-$OLLIM_HOME sleep 1000\" &)\n\
         (env -i setsid bash -c \"ulimit -R 1000000; exec -a bare-in-$OLLIM_HOME sleep 1000\" &)\nexec -a waits-in-$OLLIM_HOME sleep 1000\n",
    );
    let of_command = "client: exec\ncommand: ollim-bot gmail\nallowed_tools: ['Bash(ollim-bot gmail *)']\n";
    let of_gate = "isolated: true\ngate: ollim-bot gmail\nallowed_tools: ['Bash(ollim-bot gmail *)']\n";
    for (id, fields) in [("command", of_command), ("gate", of_gate)] {
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &format!("background: true\n{fields}"), "Look."));
        let service = bot.start();
        let is_there = |name: &str| bot.processes().iter().any(|process| process.command.starts_with(name));
        service.until("its processes run", || {
            ["orphan-of-", "bare-in-", "waits-in-"].iter().all(|name| is_there(name)).then_some(())
        });
        kill_with_runners(service);
        assert!(is_there("orphan-of-") && is_there("bare-in-"), "{:#?}", bot.processes());
        std::fs::remove_file(bot.path(&format!("reminders/{id}.md"))).unwrap();
        let service = bot.start();
        assert!(!is_there("orphan-of-") && !is_there("bare-in-"), "{:#?}", bot.processes());
        service.stop();
        bot.until_no_processes();
    }
}

/// Kills a service at once with all its runners and reapers.
fn kill_with_runners(service: Service) {
    let children = processes::runners_of(service.pid());
    assert!(children.len() >= 2, "{children:?}");
    // All are stopped first, so that none sees another end. The kernel lets a stopped process go on when its group loses the last
    // parent outside of it, so each is killed before its parent.
    let signal = |pid: u32, signal| {
        rustix::process::kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
    };
    signal(service.pid(), Signal::STOP);
    children.iter().for_each(|pid| signal(*pid, Signal::STOP));
    children.iter().rev().for_each(|pid| signal(*pid, Signal::KILL));
    service.kill();
}

/// The program of a channel is nobody's job, and it must not be left either.
#[test]
fn what_a_channel_leaves_when_its_service_and_runner_are_killed_is_ended_by_the_next_start() {
    let bot = TestBot::new();
    executable(
        &bot.path("bin/bridge"),
        "#!/bin/bash\n[ -e began ] && exec cat\ntouch began\n(setsid bash -c 'exec -a orphan sleep 1000' &)\nexec cat\n",
    );
    bot.write(
        "config.yaml",
        "channels:\n  phone: { kind: command, command: [bridge], keep: true, owner: 7 }\ndefault_channel: phone\n",
    );
    let is_there = || bot.processes().iter().any(|process| process.command.starts_with("orphan"));
    let service = bot.start();
    service.until("the bridge runs", || is_there().then_some(()));
    kill_with_runners(service);
    assert!(is_there(), "{:#?}", bot.processes());
    let service = bot.start();
    assert!(!is_there(), "{:#?}", bot.processes());
    service.stop();
    bot.until_no_processes();
}

/// A script that leaves a process in a session of its own, and others that fork and end without pause: a look at the processes of the
/// machine misses some of these. Each writes a file as long as it goes on.
const LEAVES: &str = "#!/bin/bash\n\
    hop() { echo $BASHPID > hop-$1; hop $1 & exit; }\n\
    (setsid bash -c \"exec -a orphan-of-$OLLIM_HOME sleep 1000\" &)\n\
    for one in 1 2 3 4 5 6; do (setsid bash -c \"$(declare -f hop); hop $one\" &); done\n\
    exec -a waits-in-$OLLIM_HOME sleep 1000\n";

fn hops(bot: &TestBot) -> Vec<Option<String>> {
    (1..=6).map(|one| std::fs::read_to_string(bot.path(&format!("work/hop-{one}"))).ok()).collect()
}

fn assert_nothing_hops(bot: &TestBot) {
    let before = hops(bot);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(hops(bot), before);
}

/// Only the runner is killed, as the kernel may do when memory runs out, or only the reaper. Its run ends, and none of its processes
/// continues.
#[test]
fn a_run_whose_runner_or_reaper_is_killed_fails_and_leaves_nothing() {
    let api = MessagesApi::answering(|_| Reply::bash("./leaves"));
    let bot = TestBot::with_client(&client::real(), api.url());
    client::executable(&bot.path("work/leaves"), LEAVES);
    let kill = |pid: u32| {
        rustix::process::kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    };
    let service = bot.start();
    for (kind, fields) in [("command", "client: exec\ncommand: ./leaves\n"), ("agent", "isolated: true\nretry: 0\n")] {
        let fields = format!("background: true\n{fields}allowed_tools: ['Bash(./leaves)']\n");
        for victim in ["runner", "reaper"] {
            let id = format!("{kind}-{victim}");
            bot.write(&format!("reminders/{id}.md"), &reminder(now(), &fields, "Look."));
            let orphan = || bot.processes().into_iter().find(|process| process.command.starts_with("orphan-of-"));
            // The orphan's parent is the runner, which is a subreaper.
            let runner = service.until("its processes run", orphan).parent;
            service.until("others hop", || hops(&bot).iter().all(Option::is_some).then_some(()));
            let reaper = processes::all().into_iter().find(|one| one.pid == runner).unwrap().parent;
            kill(if victim == "runner" { runner } else { reaper });
            let run = service.until_ended(&id, 1).remove(0);
            assert_eq!(run["outcome"], "failed", "{run:#}");
            let is_left = |name: &str| bot.processes().iter().any(|process| process.command.starts_with(name));
            service.until("nothing of it is left", || (!is_left("orphan-of-") && !is_left("waits-in-")).then_some(()));
            assert_nothing_hops(&bot);
        }
    }
    service.stop();
    bot.until_no_processes();
}

/// The service is killed and started again at once, while its runners still end what is below them.
#[test]
fn what_hops_is_ended_when_the_service_is_killed_and_started_at_once() {
    let bot = TestBot::new();
    client::executable(&bot.path("work/leaves"), LEAVES);
    let fields = "background: true\nclient: exec\ncommand: ./leaves\nallowed_tools: ['Bash(./leaves)']\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Look."));
    let service = bot.start();
    service.until("others hop", || hops(&bot).iter().all(Option::is_some).then_some(()));
    service.kill();
    let service = bot.start();
    assert_nothing_hops(&bot);
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_second_service_on_one_folder_is_refused_and_names_the_first() {
    let bot = TestBot::new();
    let service = bot.start();
    let second = bot.run(["run"]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.stderr.contains(&service.pid().to_string()), "{second:?}");
    bot.write("routines/long.md", "---\ncron: '@yearly'\nbackground: true\nclient: exec\ncommand: sleep 1000\n---\n");
    service.until("it runs", || {
        bot.run(["fire", "long"]);
        bot.runs("long").iter().any(|run| run["outcome"] == "running").then_some(())
    });
    let run = bot.runs("long")[0]["run"].as_str().unwrap().to_owned();
    let warned = |args: &[&str]| bot.run(args).stderr.contains("what is shown as running was cut off");
    assert!(!warned(&["runs"]) && !warned(&["runs", "show", &run]));
    service.kill();
    assert!(warned(&["runs"]) && warned(&["runs", "show", &run]));
    // The lock is the kernel's, so a killed service leaves nothing to clean up.
    let (status, said) = bot.start().stop();
    assert!(status.success(), "{said}");
}

#[test]
fn a_recorded_outcome_is_not_repeated_when_the_file_is_still_there() {
    let bot = TestBot::new();
    let text = reminder(now(), "", "only once, please");
    bot.write("reminders/job.md", &text);
    let service = bot.start();
    service.until_ended("job", 1);
    service.stop();
    // As if the service had been killed between the record and the removal.
    bot.write("reminders/job.md", &text);
    let service = bot.start();
    service.until("it is cleaned up", || bot.read("reminders/job.md").is_none().then_some(()));
    assert_eq!(bot.runs("job").len(), 1);
    let inbox = bot.json(["inbox"]);
    assert_eq!(inbox.to_string().matches("only once, please").count(), 1, "{inbox:#}");
    service.stop();
}
