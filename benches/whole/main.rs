//! The table of required speeds, measured on the whole program, with peers beside it: `./scripts/bench`.
//!
//! Prints figures for reading side by side; asserts no time. `--quick` leaves out 100,000 definitions. `--only WORD` runs only the
//! sections whose name contains it. `--hosts N` changes the size of the fleet. The program names and leaves out peers that are not
//! installed (by the script).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails has no result")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

mod bare_client;
mod bot;
mod commands;
mod decision;
#[path = "../../tests/it/support/discord.rs"]
mod discord;
mod exec;
mod fleet;
mod forks;
mod hosts;
mod lateness;
#[path = "../../tests/it/support/messages_api.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod messages_api;
mod page;
mod peers;
#[path = "../../tests/it/support/postgres.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod postgres;
mod pushed;
mod scale;
mod starts;
mod talk;
#[path = "../../tests/it/support/telegram.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod telegram;
#[path = "../../tests/it/support/terminal.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod terminal;
#[path = "../../tests/it/support/wait.rs"]
mod wait;

/// The extent of a measurement.
struct Plan {
    /// The larger number of definitions.
    many: usize,
    only: Option<String>,
    /// The number of hosts of a fleet, if it is to be another than usual.
    hosts: Option<usize>,
}

/// A part of the table: its name, and the function that measures it and prints its rows.
type Section = (&'static str, fn(&Plan));

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(waiting) = value_of(&args, peers::TOKIO_CRON_SCHEDULER) {
        return peers::tokio_cron_scheduler(waiting.parse().unwrap());
    }
    let many = if args.iter().any(|arg| arg == "--quick") { 10_000 } else { 100_000 };
    let hosts = value_of(&args, "--hosts").map(|count| count.parse().unwrap());
    let plan = Plan { many, only: value_of(&args, "--only"), hosts };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores, load {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
    println!("\n| what | bar | measured | beside it |\n|---|---|---|---|");
    let sections: [Section; 13] = [
        ("scale", scale::measure),
        ("lateness", lateness::measure),
        ("together", lateness::measure_together),
        ("commands", commands::measure),
        ("decision", decision::measure),
        ("starts", starts::measure),
        ("exec", exec::measure),
        ("forks", forks::measure),
        ("talk", talk::measure),
        ("page", page::measure),
        ("hosts", hosts::measure),
        ("database", pushed::measure),
        ("fleet", fleet::measure),
    ];
    for (name, measure) in sections {
        if plan.only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            measure(&plan);
        }
    }
}

fn value_of(args: &[String], name: &str) -> Option<String> {
    args.iter().skip_while(|arg| *arg != name).nth(1).cloned()
}

fn row(what: &str, bar: &str, measured: &str, beside: &str) {
    println!("| {what} | {bar} | {measured} | {beside} |");
}

fn ms(duration: std::time::Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Returns the value that `percent` percent of the values do not exceed.
fn percentile<T: Copy + Ord>(values: &mut [T], percent: usize) -> T {
    values.sort_unstable();
    values[(values.len() * percent).div_ceil(100).max(1) - 1]
}
