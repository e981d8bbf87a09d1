//! Kills the service, again and again, and then looks whether anything was lost, left behind or done twice.
//!
//! The real binary (with the feature `failpoints`) runs on real folders, each with routines and reminders, over a
//! client that records each of its starts and effects. A *round* is a life of the service that is killed at one named
//! step (`failpoints::Step`; the n-th round takes the n-th step, round and round, in an order that the seed gives), and
//! one that is killed at a random moment. Every ten rounds a folder is let come to rest and everything in it is checked
//! (`check.rs`), and a new one is begun.
//!
//! `scripts/kill-test --rounds 2000` is the long form. What is left to chance by the machine (when exactly a kill
//! falls) differs from run to run; what is done does not, for one seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]
#![allow(clippy::too_many_lines, reason = "a test is read from top to bottom")]
#![allow(clippy::print_stdout, reason = "the histogram is what a person wants to see")]

mod attacks;
mod chats;
mod check;
mod deliveries;
#[path = "../it/support/discord.rs"]
mod discord;
mod failing_steps;
mod hosts;
mod jobs;
#[path = "../it/support/postgres.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
mod postgres;
#[path = "../it/support/processes.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
mod processes;
mod pushed;
mod rng;
mod service_process;
#[path = "../it/support/telegram.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
mod telegram;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ollim_bot::failpoints::Step;

use rng::Rng;
use world::World;

/// Rounds on one folder.
const ROUNDS_A_WORLD: usize = 10;

/// From so many rounds on, each step must have been killed at [`AT_LEAST`] times.
const LONG: usize = 500;
const AT_LEAST: usize = 5;

/// What was done, over all folders.
#[derive(Debug, Default)]
pub struct Tally {
    /// Kills at each step.
    pub steps: BTreeMap<Step, usize>,
    /// Lives in which the step that was waited for did not come.
    pub missed: BTreeMap<Step, usize>,
    /// Kills at random moments.
    pub random: usize,
    /// Occurrences that have their outcome, by outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Occurrences that took more than one attempt.
    pub again: usize,
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

#[test]
fn every_occurrence_ends_once_however_the_service_is_killed() {
    let rounds = usize::try_from(number("OLLIM_KILL_ROUNDS", 30)).unwrap();
    let seed = number("OLLIM_KILL_SEED", 1);
    let at_once = usize::try_from(number("OLLIM_KILL_AT_ONCE", 3)).unwrap();
    println!("{rounds} rounds, seed {seed}, {at_once} folders at a time");
    let binary = Binary::take();
    let mut steps = of_one_host();
    Rng::new(seed).shuffle(&mut steps);

    let (next, tally, wrong) = (AtomicUsize::new(0), Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    let worlds = rounds.div_ceil(ROUNDS_A_WORLD);
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(worlds) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= worlds || wrong.lock().unwrap().len() >= 5 {
                        return;
                    }
                    let rounds = number * ROUNDS_A_WORLD..rounds.min((number + 1) * ROUNDS_A_WORLD);
                    let steps: Vec<Step> = rounds.map(|round| steps[round % steps.len()]).collect();
                    let lived = World::new(&binary.path, number, seed).live(&steps, &tally);
                    if number % 10 == 9 {
                        println!("{} rounds", (number + 1) * ROUNDS_A_WORLD);
                    }
                    wrong.lock().unwrap().extend(lived.err());
                }
            });
        }
    });

    let tally = tally.into_inner().unwrap();
    report(&tally, &of_one_host());
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n\n"));
    if rounds >= LONG {
        let few: Vec<&Step> =
            steps.iter().filter(|step| tally.steps.get(step).copied().unwrap_or(0) < AT_LEAST).collect();
        assert!(few.is_empty(), "killed at fewer than {AT_LEAST} times: {few:?}");
    }
}

/// The steps that a service meets which has its journal to itself.
fn of_one_host() -> Vec<Step> {
    Step::ALL.iter().copied().filter(|step| !Step::SHARED.contains(step) && !Step::PUSHED.contains(step)).collect()
}

fn report(tally: &Tally, steps: &[Step]) {
    let most = tally.steps.values().copied().max().unwrap_or(1).max(1);
    println!("{:>6}  killed at", "times");
    for step in steps {
        let count = tally.steps.get(step).copied().unwrap_or(0);
        let missed =
            tally.missed.get(step).map_or_else(String::new, |missed| format!("  (did not come {missed} times)"));
        println!("{count:>6}  {:<18} {}{missed}", step.name(), "#".repeat(count * 40 / most));
    }
    println!("{:>6}  a random moment", tally.random);
    let outcomes: Vec<String> = tally.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    println!("{} occurrences: {}", tally.outcomes.values().sum::<usize>(), outcomes.join(", "));
    println!("{} of them took more than one attempt", tally.again);
}

/// The program under its own name, which a build that goes on beside this does not replace.
struct Binary {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Binary {
    fn take() -> Self {
        let folder = tempfile::Builder::new().prefix("kill-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("ollim-bot");
        std::fs::copy(Path::new(env!("CARGO_BIN_EXE_ollim-bot")), &path).unwrap();
        Self { path, _folder: folder }
    }
}
