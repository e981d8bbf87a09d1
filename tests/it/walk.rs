//! The bot on SimCord, a third-party Discord: a day by messages alone, which docs/a-day.md shows, and further scenes.
//! `./scripts/walk` takes the pictures.

use crate::support::bot::CommandOutput;
use crate::support::{client, simcord};

#[test]
fn a_day_is_lived_by_messages_alone() {
    assert_eq!(played("walk.py"), 9);
}

#[test]
fn commands_strangers_long_texts_and_faults_are_as_on_the_stub() {
    assert_eq!(played("scenarios.py"), 7);
}

#[test]
fn bad_luck_is_as_on_the_stub() {
    assert_eq!(played("bad_luck.py"), 9);
}

/// Runs a program of tests/simcord on the real service and client until it succeeds. Returns the number of steps.
#[track_caller]
fn played(name: &str) -> usize {
    let mut program = simcord::python(&format!("tests/simcord/{name}"));
    program.arg("--program").arg(env!("CARGO_BIN_EXE_ollim-bot")).arg("--client").arg(client::real());
    let ran = CommandOutput::of(program);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.stdout.lines().filter(|line| line.starts_with("ok: ")).count()
}
