//! A newer program replaces the running one while runs are active.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::bot::{Service, TestBot};
use crate::support::installed::{programs, replace};

/// Starts the service from these programs.
fn start<'a>(bot: &'a TestBot, programs: &Path) -> Service<'a> {
    let usual = bot.command(["run"]);
    let mut command = Command::new(programs.join("ollim-bot"));
    let set = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.arg("run").env_clear().envs(set).current_dir(bot.person()).stdin(Stdio::null());
    let service = bot.spawn(command);
    service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
    service
}

/// Writes a routine that waits until the file `work/NAME` exists.
fn waits_for(bot: &TestBot, id: &str, name: &str, more: &str) {
    let command = format!("while [ ! -e {name} ]; do sleep 0.1; done");
    let text = format!(
        "---\ncron: '0 3 29 2 *'\nclient: exec\ncommand: \"{command}\"\nbackground: true\nallowed_tools: ['Bash(sleep *)']\n{more}---\n"
    );
    bot.write(&format!("routines/{id}.md"), &text);
}

#[test]
fn runs_that_are_going_end_as_they_should_when_the_program_is_replaced() {
    let bot = TestBot::new().env("OLLIM_SHUTDOWN_GRACE", "5s");
    let programs = programs(&bot);
    waits_for(&bot, "short", "go", "retry: 0\n");
    waits_for(&bot, "long", "never", "retry: 0\n");
    waits_for(&bot, "retried", "second", "retry: 1\n");
    let service = start(&bot, &programs);
    let fire = |id: &str| {
        service.until("it fires", || (bot.run(["fire", id]).code == 0).then_some(()));
        service.until("it runs", || bot.runs(id).iter().any(|run| run["outcome"] == "running").then_some(()));
    };
    fire("long");
    fire("retried");
    replace(&programs);
    // The old service keeps working meanwhile.
    fire("short");
    service.signal(Signal::TERM);
    service.until("it ends", || service.output().contains("ending: 3 runs are going and have 5s").then_some(()));
    bot.write("work/go", "");
    let (status, said) = service.wait();
    assert!(status.success(), "{said}");
    assert_eq!(bot.runs("short")[0]["outcome"], "completed", "{said}");

    bot.write("work/second", "");
    let service = start(&bot, &programs);
    // The end of the run is known at once. Its outcome follows when the service examines what was left.
    service.until("it has failed", || (bot.runs("long")[0]["outcome"] == "failed").then_some(()));
    let told = bot.json(["inbox"]);
    let is_told = |text: &serde_json::Value| text.as_str().is_some_and(|text| text.contains("long"));
    assert!(told.as_array().unwrap().iter().any(|message| is_told(&message["text"])), "{told:#}");
    let retried = service.until("its second attempt ends", || {
        let run = bot.runs("retried").remove(0);
        (run["attempt"] == 2 && run["outcome"] == "completed").then_some(run)
    });
    assert_eq!(bot.runs("retried").len(), 2, "{retried:#}");
    assert_eq!(bot.runs("short").len(), 1, "what was completed does not run again");
    service.stop();
    bot.until_no_processes();
}

/// The kernel opens single files to a run. The ones that an installer puts in their place are others.
#[test]
fn a_run_that_is_going_can_still_start_its_programs() {
    let bot = TestBot::new();
    let programs = programs(&bot);
    waits_for(&bot, "waits", "go", "retry: 0\n");
    let job = bot.read("routines/waits.md").unwrap();
    bot.write("routines/waits.md", &job.replace("done\"", "done; sleep 0.1\""));
    let service = start(&bot, &programs);
    service.until("it fires", || (bot.run(["fire", "waits"]).code == 0).then_some(()));
    service.until("it runs", || (bot.runs("waits")[0]["outcome"] == "running").then_some(()));
    let seen = bot.json(["runs", "waits"]);
    replace(&programs);
    // Its file has another content, too.
    let mut newer = fs::OpenOptions::new().append(true).open(programs.join("ollim-shell")).unwrap();
    std::io::Write::write_all(&mut newer, b"newer").unwrap();
    drop(newer);
    // A newer program that tries something meanwhile changes nothing for the run.
    let tried = ["policy", "explain", "waits", "--command", "sleep 1"];
    let tried = Command::new(programs.join("ollim-bot")).args(tried).env("OLLIM_HOME", bot.home()).output().unwrap();
    assert!(tried.status.success(), "{tried:?}");
    // It sleeps until the file is there, and once more.
    bot.write("work/go", "");
    let ended = service.until_ended("waits", 1).remove(0);
    assert_eq!((&ended["outcome"], &ended["run"]), (&"completed".into(), &seen[0]["run"]), "{ended:#}");
    service.stop();
    bot.until_no_processes();
}
