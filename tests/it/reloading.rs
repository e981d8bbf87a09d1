//! SIGHUP reads the settings and the folders again and notifies a supervisor such as systemd.

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use chrono::TimeDelta;
use rustix::process::Signal;

use crate::support::bot::{Service, TestBot, now, reminder};

/// The lines of all messages so far, in order, and the number of messages.
pub struct Supervisor {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Supervisor {
    pub fn at(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, heard: Vec::new() }
    }

    pub fn hear(&mut self) -> &[String] {
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
            self.heard.extend(message.lines().map(ToOwned::to_owned));
        }
        &self.heard
    }

    pub fn count(&mut self, line: &str) -> usize {
        self.hear().iter().filter(|heard| *heard == line).count()
    }
}

/// Sends SIGHUP and waits until the service reports `says`.
#[track_caller]
fn hang_up(service: &Service<'_>, says: &str) {
    let before = service.output().matches(says).count();
    service.signal(Signal::HUP);
    service.until(says, || (service.output().matches(says).count() > before).then_some(()));
}

#[test]
fn settings_that_can_change_do_and_the_others_are_named() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: UTC\n");
    let service = bot.start();
    hang_up(&service, "The settings are as they were.");

    bot.write("config.yaml", "timezone: Asia/Kathmandu\nmax_concurrent_runs: 2\nclaude_command: other\n");
    hang_up(&service, "What `claude_command` says now takes effect when the service is started again.");
    let said = service.output();
    assert!(
        said.contains("`timezone` is now \"Asia/Kathmandu\"") && said.contains("`max_concurrent_runs` is now 2"),
        "{said}"
    );
    service.until("it is told", || bot.json(["inbox"]).to_string().contains("`claude_command`").then_some(()));
    service.stop();
}

#[test]
fn definitions_without_a_zone_follow_the_one_of_the_settings() {
    let bot = TestBot::new();
    // Soon in a zone 5:45 ahead; hours away by UTC.
    let soon = now() + TimeDelta::seconds(4) + TimeDelta::minutes(5 * 60 + 45);
    let text = format!("---\nrun_at: \"{}\"\n---\nBy the clock of Kathmandu.\n", soon.format("%Y-%m-%dT%H:%M:%S"));
    bot.write("reminders/there.md", &text);
    let service = bot.start();
    bot.write("config.yaml", "timezone: Asia/Kathmandu\n");
    hang_up(&service, "The settings were read again.");
    assert_eq!(service.until_ended("there", 1)[0]["outcome"], "completed");
    service.stop();
}

#[test]
fn settings_that_cannot_be_used_change_nothing_and_are_said() {
    let bot = TestBot::new();
    bot.write("config.yaml", "shutdown_grace: 1s\n");
    let service = bot.start();
    bot.write("config.yaml", "shutdown_grace: 2s\nmax_concurent_runs: 3\n");
    hang_up(&service, "The settings cannot be used, so they stay as they were.");
    let told = service.until("it is told", || Some(bot.json(["inbox"])[0]["text"].as_str()?.to_owned()));
    assert!(told.contains("config.yaml:2:1") && told.contains("max_concurrent_runs"), "{told}");
    // The service continues, and a storm of signals does not end it.
    for _ in 0..50 {
        service.signal(Signal::HUP);
    }
    bot.write("reminders/after.md", &reminder(now(), "", "still here"));
    service.until_ended("after", 1);

    fs::remove_file(bot.path("config.yaml")).unwrap();
    hang_up(&service, "`shutdown_grace` is now \"30s\"");
    let (status, said) = service.stop();
    assert!(status.success() && said.contains("ending: no run is going"), "{said}");
}

#[test]
fn no_signal_ends_a_service_that_is_ending_in_another_way() {
    let bot = TestBot::new();
    let service = bot.start();
    service.signal(Signal::TERM);
    service.signal(Signal::HUP);
    let (status, said) = service.wait();
    assert!(status.success(), "{said}");
}

#[test]
fn a_supervisor_is_told_of_every_step() {
    let bot = TestBot::new();
    let path = bot.path("notify");
    for (address, named) in [
        (SocketAddr::from_pathname(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (SocketAddr::from_abstract_name(path.to_str().unwrap()).unwrap(), format!("@{}", path.to_str().unwrap())),
    ] {
        let mut supervisor = Supervisor::at(&address);
        let bot = TestBot::new().env("NOTIFY_SOCKET", &named).env("WATCHDOG_USEC", "200000");
        bot.write("reminders/far.md", &reminder(now() + TimeDelta::days(9), "", "later"));
        let service = bot.start_with(["run"]);
        service.until("ready", || (supervisor.count("READY=1") == 1).then_some(()));
        assert_eq!(supervisor.count("RELOADING=1"), 0);
        service.until("the watchdog is fed", || (supervisor.count("WATCHDOG=1") >= 5).then_some(()));
        service.until("what comes next", || {
            supervisor.hear().iter().any(|line| line.starts_with("STATUS=nothing is going; next ")).then_some(())
        });
        service.signal(Signal::HUP);
        service.until("ready again", || (supervisor.count("READY=1") == 2).then_some(()));
        let heard = supervisor.hear().to_vec();
        let at = heard.iter().position(|line| line == "RELOADING=1").unwrap();
        assert!(heard[at + 1].starts_with("MONOTONIC_USEC="), "{heard:?}");
        assert!(heard[at..].contains(&"STATUS=The settings are as they were.".to_owned()), "{heard:?}");
        assert_eq!(supervisor.count("STOPPING=1"), 0);
        service.stop();
        let heard = supervisor.hear().to_vec();
        let at = heard.iter().position(|line| line == "STOPPING=1").unwrap();
        assert!(heard[at + 1].starts_with("EXTEND_TIMEOUT_USEC="), "{heard:?}");
        assert!(!heard[at..].contains(&"READY=1".to_owned()), "{heard:?}");
    }
}

/// The service looks at its files again before it says that there is no such job.
#[test]
fn a_job_can_be_fired_as_soon_as_its_file_is_there() {
    let bot = TestBot::new();
    let service = bot.start();
    for number in 0..20 {
        let id = format!("race{number}");
        bot.write(&format!("reminders/{id}.md"), &reminder(now() + TimeDelta::hours(1), "", "Tea."));
        let fired = bot.run(["fire", &id]);
        assert_eq!(fired.code, 0, "{fired:?}");
    }
    let none = bot.run(["fire", "race"]);
    assert_eq!(none.code, 1, "{none:?}");
    service.stop();
}
