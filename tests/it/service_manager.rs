//! The service under a real `systemd --user`: installed, killed, starved, stopped, and replaced by a newer program while a run goes.
//! The fake `systemctl` of `service_unit` shows what is asked of systemd; here systemd does it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::bot::{CommandOutput, TestBot};
use crate::support::installed;
use crate::support::machine::Machine;
use crate::support::wait;

/// A bot on a machine of its own, with both programs in a folder as a package installs them.
struct Installed {
    bot: TestBot,
    machine: Machine,
    programs: PathBuf,
    /// The name of the unit.
    unit: String,
}

impl Installed {
    /// Installs the service by its own command. Returns `None` where no machine can be made.
    fn new() -> Option<Self> {
        let bot = TestBot::new().env("OLLIM_SHUTDOWN_GRACE", "30s");
        let machine = Machine::boot(&bot)?;
        let programs = installed::programs(&bot);
        let mut installed = Self { bot, machine, programs, unit: String::new() };
        let done = installed.run(&["service", "install"]);
        assert!(done.starts_with("installed "), "{done}");
        installed.unit = installed.json(&["service", "status"])["status"]["unit"].as_str().unwrap().to_owned();
        Some(installed)
    }

    /// Runs a command of the installed program, which must succeed.
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let ran = CommandOutput::of(self.command(args));
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        ran.stdout
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        self.machine.command(&self.bot, self.programs.join("ollim-bot").to_str().unwrap(), args)
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[&["--json"], args].concat())).unwrap()
    }

    /// Runs a program of the machine, which must succeed.
    #[track_caller]
    fn on_machine(&self, program: &str, args: &[&str]) -> String {
        let ran = CommandOutput::of(self.machine.command(&self.bot, program, args));
        assert_eq!(ran.code, 0, "{program} {args:?}: {ran:#?}");
        ran.stdout.trim().to_owned()
    }

    /// Returns a property of the unit, as systemd knows it.
    fn fact(&self, name: &str) -> String {
        self.on_machine("systemctl", &["--user", "show", &self.unit, "--value", "--property", name])
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let state = || self.on_machine("systemctl", &["--user", "--no-pager", "show", &self.unit]);
        wait::until(what, || holds().then_some(()), state);
    }

    /// Waits until another process than `before` serves.
    #[track_caller]
    fn until_started_anew(&self, before: &str) -> String {
        self.until("another process is ready", || {
            let pid = self.fact("MainPID");
            pid != "0" && pid != before && self.fact("ActiveState") == "active"
        });
        self.fact("MainPID")
    }

    /// Sets lines of the unit, as `systemctl edit` does.
    fn edit(&self, lines: &str) {
        let folder = self.bot.person().join(".config/systemd/user").join(format!("{}.d", self.unit));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("test.conf"), format!("[Service]\n{lines}")).unwrap();
        self.on_machine("systemctl", &["--user", "daemon-reload"]);
    }
}

#[test]
fn systemd_starts_it_anew_when_it_is_killed_or_stuck() {
    let Some(service) = Installed::new() else { return };
    let status = service.json(&["service", "status"]);
    assert_eq!(
        (&status["status"]["active"], &status["status"]["enabled"]),
        (&"active".into(), &true.into()),
        "{status:#}"
    );
    service.edit("RestartSec=1\nWatchdogSec=2\n");
    service.run(&["service", "restart"]);

    let first = service.fact("MainPID");
    // A job that falls due after the kill shows that the new process does the work.
    let far = ["reminder", "add", "--in", "1h", "--id", "tea", "Tea"];
    service.run(&far);
    service.on_machine("kill", &["-KILL", &first]);
    let second = service.until_started_anew(&first);
    assert_eq!(service.fact("NRestarts"), "1");
    service.run(&["fire", "tea", "--wait"]);

    // It feeds its watchdog while it is well.
    let fed = service.fact("WatchdogTimestampMonotonic");
    service.until("the watchdog is fed", || service.fact("WatchdogTimestampMonotonic") != fed);
    assert_eq!(service.fact("MainPID"), second);
    service.on_machine("kill", &["-STOP", &second]);
    let third = service.until_started_anew(&second);
    assert_eq!(service.fact("NRestarts"), "2");
    assert_eq!(service.json(&["service", "status"])["status"]["restarts"], 2);

    // SIGHUP by `reload` keeps the process.
    service.on_machine("systemctl", &["--user", "reload", &service.unit]);
    assert_eq!(service.fact("MainPID"), third);
}

#[test]
fn it_stops_in_order_and_leaves_nothing_when_it_is_removed() {
    let Some(service) = Installed::new() else { return };
    assert!(service.run(&["service", "stop"]).starts_with("stopped "));
    // An end in order is no failure, so systemd does not start it anew.
    let end = ["ActiveState", "Result", "ExecMainStatus", "NRestarts"].map(|name| service.fact(name));
    assert_eq!(end, ["inactive", "success", "0", "0"]);
    let status = CommandOutput::of(service.command(&["status"]));
    assert!(status.stdout.contains("not running"), "{status:#?}");
    service.run(&["service", "start"]);
    assert_eq!(service.fact("ActiveState"), "active");
    service.run(&["service", "uninstall"]);
    assert_eq!(service.fact("LoadState"), "not-found");
    assert_eq!(
        fs::read_dir(service.bot.person().join(".config/systemd/user"))
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().path().is_file() })
            .count(),
        0
    );
    assert!(service.bot.path("routines").is_dir(), "the data folder stays");
}

#[test]
fn a_newer_program_takes_over_while_a_run_goes() {
    let Some(service) = Installed::new() else { return };
    let job = "---\ncron: '0 3 29 2 *'\nclient: exec\ncommand: \"while [ ! -e go ]; do sleep 0.1; done; sleep 0.1\"\nbackground: true\n\
               allowed_tools: ['Bash(sleep *)']\nretry: 0\n---\n";
    service.bot.write("routines/waits.md", job);
    let fires = || CommandOutput::of(service.command(&["fire", "waits"])).code == 0;
    service.until("it fires", fires);
    let outcome = || service.json(&["runs", "waits"])[0]["outcome"].as_str().unwrap_or_default().to_owned();
    service.until("it runs", || outcome() == "running");

    let before = service.fact("MainPID");
    let program = |pid: &str| service.on_machine("readlink", &[&format!("/proc/{pid}/exe")]);
    installed::replace(&service.programs);
    assert!(program(&before).ends_with(" (deleted)"), "the old program serves on");
    let mut restart = service.command(&["service", "restart"]).spawn().unwrap();
    service.until("it is ending", || CommandOutput::of(service.command(&["status"])).stdout.contains("ending (pid"));
    assert_eq!(outcome(), "running", "the run has its grace");
    service.bot.write("work/go", "");
    let status = wait::until("the restart ends", || restart.try_wait().unwrap(), || service.fact("StatusText"));
    assert!(status.success());
    let after = service.until_started_anew(&before);
    let ended = service.json(&["runs", "waits"]);
    assert_eq!(ended[0]["outcome"], "completed", "{ended:#}");
    assert_eq!(program(&after), service.programs.join("ollim-bot").canonicalize().unwrap().to_str().unwrap());
    assert_eq!(service.json(&["runs", "waits"]).as_array().unwrap().len(), 1, "what was completed does not run again");
}
