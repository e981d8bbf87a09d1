//! Kills around the end of an occurrence whose definition only the database has: one outcome, and nothing left behind.

use std::fs;

use ollim_bot::failpoints::Step;
use serde_json::Value;

use crate::failing_steps::Fixture;
use crate::service_process::{STUCK, ServiceProcess};

/// The service's clock is so far ahead of that of the push that its occurrences were missed.
const AHEAD: i64 = 2 * 60 * 60 * 1000;

impl Fixture {
    fn push(&self, path: &str, text: &str) {
        let file = self.setting.person.join("jobs").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let output = self.command(&["push", file.to_str().unwrap()], None).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn json(&self, args: &[&str]) -> Value {
        self.try_json(args).unwrap_or_else(|| panic!("{args:?}: {}", self.log()))
    }

    /// As [`Self::json`]; `None` while the service is starting.
    fn try_json(&self, args: &[&str]) -> Option<Value> {
        let output = self.late(&[args, &["--json"]].concat(), None).output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Whether the service is up.
    fn is_up(&self) -> bool {
        self.try_json(&["status"]).is_some_and(|status| !status["daemon"].is_null())
    }

    /// Whether the database has no definition.
    fn has_none(&self) -> bool {
        self.try_json(&["status"]).is_some_and(|status| status["database"]["definitions"] == 0)
    }

    /// Returns a command whose clock is [`AHEAD`].
    fn late(&self, args: &[&str], fail_at: Option<&str>) -> std::process::Command {
        let mut command = self.command(args, fail_at);
        // The service looks at the database more often.
        command.env("OLLIM_CLOCK_AHEAD", AHEAD.to_string()).env("OLLIM_LEASE_PERCENT", "5");
        command
    }

    /// Lives until it kills itself at this step.
    fn die_at(&self, step: Step) {
        let (said, log) = (self.folder.path().join("said"), self.folder.path().join("log"));
        let life = ServiceProcess::start(self.late(&["run"], Some(step.name())), &said, &log);
        assert_eq!(life.kill_after(STUCK), Ok(true), "{}: {}", step.name(), self.log());
    }

    /// Is up until `done`, then ends in order.
    fn live_late(&self, done: impl Fn() -> bool) {
        let (said, log) = (self.folder.path().join("said"), self.folder.path().join("log"));
        let mut life = ServiceProcess::start(self.late(&["run"], None), &said, &log);
        let start = std::time::Instant::now();
        while !(self.is_up() && done()) {
            assert!(life.ended_within(std::time::Duration::from_millis(50)).is_none(), "it ended: {}", self.log());
            assert!(start.elapsed() < STUCK, "waited in vain: {}", self.log());
        }
        life.terminate();
        let ended = life.ended_within(STUCK);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", self.log());
    }

    /// Returns the outcomes of the attempts of a job, oldest first.
    fn outcomes(&self, id: &str) -> Vec<String> {
        let runs = self.json(&["runs", id, "-n", "50"]);
        let mut outcomes: Vec<String> =
            runs.as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap().to_owned()).collect();
        outcomes.reverse();
        outcomes
    }

    /// Returns how often the person was told this.
    fn told(&self, words: &str) -> usize {
        let inbox = self.json(&["inbox"]);
        inbox.as_array().unwrap().iter().filter(|message| message["text"].as_str().unwrap().ends_with(words)).count()
    }

    /// Returns when the routine of the database next falls due, as the database has it.
    fn next_due(&self, id: &str) -> i64 {
        let journal = rusqlite::Connection::open(self.setting.home.join("state/journal.db")).unwrap();
        journal.query_row("SELECT next_due FROM definition WHERE id = ?1", [id], |row| row.get(0)).unwrap()
    }
}

#[test]
fn a_kill_between_a_claim_and_the_move_of_the_next_time_loses_and_repeats_nothing() {
    for step in [Step::BeforeClaim, Step::Claimed, Step::BeforeMove, Step::TimeMoved, Step::OutcomeRecorded] {
        let fixture = Fixture::new();
        // Two of its times lie in the hours ahead, far from their ends.
        let minute = (ollim_bot::clock::Clock::system().now() + chrono::TimeDelta::minutes(30)).format("%-M");
        let text = format!("---\ncron: '{minute} * * * *'\nclient: notify\non_missed: all\n---\nTea.\n");
        fixture.push("routines/tea.md", &text);
        let first = fixture.next_due("tea");
        fixture.die_at(step);
        let is_moved = || fixture.next_due("tea") >= first + AHEAD;
        fixture.live_late(|| fixture.told("Tea.") == 2 && is_moved());
        let mut outcomes = fixture.outcomes("tea");
        outcomes.retain(|outcome| outcome != "interrupted");
        assert_eq!(outcomes, ["completed"; 2], "{}: each of the two hours has one outcome", step.name());
        fixture.live_late(|| true);
        assert_eq!(fixture.told("Tea."), 2, "{}: nothing is repeated", step.name());
    }
}

#[test]
fn a_kill_between_the_outcome_and_the_removal_of_a_reminder_leaves_nothing() {
    for step in [Step::OutcomeRecorded, Step::BeforeFile, Step::FileDone, Step::FileRecorded] {
        let fixture = Fixture::new();
        let due = ollim_bot::clock::Clock::system().now() + chrono::TimeDelta::hours(1);
        let text = format!("---\nrun_at: \"{}\"\nclient: notify\n---\nTea.\n", due.to_rfc3339());
        fixture.push("reminders/tea.md", &text);
        fixture.die_at(step);
        fixture.live_late(|| fixture.has_none());
        assert_eq!(fixture.told("Tea."), 1, "{}", step.name());
        assert_eq!(fixture.outcomes("tea"), ["completed"], "{}", step.name());
    }
}

#[test]
fn a_failed_reminder_that_was_killed_on_its_way_is_kept_once() {
    for step in [Step::FailedCopied, Step::FileDone] {
        let fixture = Fixture::new();
        let due = ollim_bot::clock::Clock::system().now() + chrono::TimeDelta::hours(1);
        let text = format!("---\nrun_at: \"{}\"\nclient: exec\ncommand: 'false'\n---\n", due.to_rfc3339());
        fixture.push("reminders/tea.md", &text);
        fixture.die_at(step);
        fixture.live_late(|| fixture.has_none());
        assert_eq!(fixture.names("reminders/failed"), ["tea.md"], "{}", step.name());
        assert_eq!(fixture.outcomes("tea"), ["failed"], "{}", step.name());
    }
}
