//! How the service stops.

use rustix::process::Signal;

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;

/// A bot whose one job never ends by itself.
fn busy(grace: &str) -> (TestBot, tempfile::TempDir) {
    let scripts = tempfile::TempDir::new().unwrap();
    let client = client::script(scripts.path(), "touch \"$OLLIM_HOME/work/started\"\nexec sleep 1000");
    let bot = TestBot::with_client(&client, "http://127.0.0.1:9").env("OLLIM_SHUTDOWN_GRACE", grace);
    let fields = "background: true\nisolated: true\nretry: 0\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Do the thing."));
    (bot, scripts)
}

#[test]
fn after_the_grace_what_still_runs_is_interrupted() {
    let (bot, _scripts) = busy("1s");
    let service = bot.start();
    service.until("it runs", || bot.runs("job").iter().any(|run| run["outcome"] == "running").then_some(()));
    let (status, said) = service.stop();
    assert!(status.success(), "{said}");
    bot.until_no_processes();
    assert_eq!(bot.runs("job")[0]["outcome"], "interrupted");
    assert!(bot.read("reminders/job.md").is_some(), "it was cut off before any effect: the next start runs it again");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (bot, _scripts) = busy("1h");
    let service = bot.start();
    service.until("it runs", || bot.runs("job").iter().any(|run| run["outcome"] == "running").then_some(()));
    service.signal(Signal::INT);
    service.until("it says that it waits", || service.output().contains("ending: ").then_some(()));
    service.signal(Signal::INT);
    let (_, _) = service.wait();
    bot.until_no_processes();
    assert_eq!(bot.runs("job")[0]["outcome"], "interrupted");
}

#[test]
fn until_idle_ends_by_itself_when_nothing_is_due() {
    let bot = TestBot::new();
    bot.write("reminders/one.md", &reminder(now() + chrono::TimeDelta::seconds(2), "", "a word"));
    bot.write("reminders/far.md", &reminder(now() + chrono::TimeDelta::days(9), "", "not yet"));
    let (status, said) = bot.start_with(["run", "--until-idle"]).wait();
    assert!(status.success(), "{said}");
    assert!(said.contains("a word") && !said.contains("not yet"), "{said}");
    assert_eq!(bot.runs("one")[0]["outcome"], "completed");
}
