//! A step that fails instead of killing: said, and gone on from.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use ollim_bot::failpoints::Step;
use tempfile::TempDir;

use crate::service_process::{STUCK, ServiceProcess, Setting};
use crate::world::executable;

/// A data folder on which `notify` does the work.
pub struct Fixture {
    pub folder: TempDir,
    pub setting: Setting,
}

impl Fixture {
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("ollim-kill-").unwrap();
        let person = folder.path().canonicalize().unwrap();
        let setting = Setting {
            binary: PathBuf::from(env!("CARGO_BIN_EXE_ollim-bot")),
            home: person.join("bot"),
            client: person.join("no-client"),
            person,
        };
        for name in ["routines", "reminders"] {
            fs::create_dir_all(setting.home.join(name)).unwrap();
        }
        Self { folder, setting }
    }

    pub fn command(&self, args: &[&str], fail_at: Option<&str>) -> Command {
        let mut command = self.setting.command(args, 0, None);
        command.env("OLLIM_AGENT_CLIENT", "notify");
        command.envs(fail_at.map(|wish| ("OLLIM_FAIL_AT", wish)));
        command
    }

    pub fn names(&self, folder: &str) -> Vec<String> {
        crate::check::names(&self.setting.home.join(folder))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Lives until `done`, then ends in order.
    fn live(&self, fail_at: Option<&str>, done: impl Fn() -> bool) {
        let (said, log) = (self.folder.path().join("said"), self.folder.path().join("log"));
        let mut life = ServiceProcess::start(self.command(&["run"], fail_at), &said, &log);
        let start = std::time::Instant::now();
        while !done() {
            assert!(life.ended_within(std::time::Duration::from_millis(5)).is_none(), "it ended: {}", self.log());
            assert!(start.elapsed() < STUCK, "waited in vain: {}", self.log());
        }
        life.terminate();
        let ended = life.ended_within(STUCK);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", self.log());
    }
}

#[test]
fn a_reminder_that_cannot_be_written_is_said_and_leaves_nothing_half_written() {
    let fixture = Fixture::new();
    let wish = format!("{}:1:io", Step::Staged.name());
    let refused = fixture.command(&["reminder", "add", "-m", "Tea.", "--in", "5m"], Some(&wish)).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.starts_with("error: cannot write ") && words.contains("made to fail at staged"), "{words}");
    assert_eq!(fixture.names("reminders"), [""; 0]);
}

#[test]
fn a_file_that_cannot_be_removed_once_is_removed_a_moment_later_and_does_not_fire_again() {
    let fixture = Fixture::new();
    fs::write(fixture.setting.home.join("reminders/tea.md"), "---\nrun_at: \"2026-03-01T12:00:00Z\"\n---\nTea.\n")
        .unwrap();
    let wish = format!("{}:1:io", Step::BeforeFile.name());
    fixture.live(Some(&wish), || fixture.names("reminders").is_empty());
    assert!(fixture.log().contains("cannot be removed or moved; trying again"), "{}", fixture.log());
    let said = fs::read_to_string(fixture.folder.path().join("said")).unwrap();
    assert_eq!(said.matches("Tea.").count(), 1, "{said}");
}

/// The person's command, which the bridge says again after each start, since it does not know whether it was taken.
#[test]
fn a_command_that_was_cut_off_is_told_of_once_and_not_done_again() {
    let fixture = Fixture::new();
    let bridge = fixture.setting.person.join("bridge");
    executable(&bridge, include_str!("bridge.sh"));
    let phone = fixture.setting.home.join("state/channels/phone");
    fs::create_dir_all(&phone).unwrap();
    fs::write(phone.join("in"), r#"{"said":"/pause 2h","by":7,"id":"c1"}"#.to_owned() + "\n").unwrap();
    let channel = format!("{{ kind: command, command: [{}], keep: true, owner: 7 }}", bridge.display());
    fs::write(
        fixture.setting.home.join("config.yaml"),
        format!("channels:\n  phone: {channel}\ndefault_channel: phone\n"),
    )
    .unwrap();
    let (said, log) = (fixture.folder.path().join("said"), fixture.folder.path().join("log"));
    let wish = format!("{}:1", Step::InputBegun.name());
    let life = ServiceProcess::start(fixture.command(&["run"], Some(&wish)), &said, &log);
    assert_eq!(life.kill_after(STUCK), Ok(true), "{}", fixture.log());
    let got = || fs::read_to_string(phone.join("got")).unwrap_or_default();
    let notices = || got().matches("The service ended while it handled `/pause 2h`").count();
    fixture.live(None, || notices() > 0);
    // The bridge has started three times by then, and has said the command each time.
    fixture.live(None, || got().matches("started").count() == 3);
    assert_eq!(notices(), 1, "{}", got());
    let status = fixture.command(&["status"], None).output().unwrap();
    assert!(!String::from_utf8(status.stdout).unwrap().contains("paused"));
}

/// The test's own tool: a step that there is not is refused, not passed over.
#[test]
fn an_unknown_step_ends_the_program() {
    let fixture = Fixture::new();
    let ended = fixture.command(&["run", "--until-idle"], Some("nowhere")).output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    assert!(String::from_utf8(ended.stderr).unwrap().contains("OLLIM_FAIL_AT=nowhere"));
}
