//! The lateness of claims while many other occurrences wait.

use chrono::{DateTime, TimeDelta, Utc};

use super::bot::{Bot, now, time};
use super::{Plan, peers, percentile, row};

/// Number of measured dispatches, which are [`APART`] apart.
pub const SAMPLES: usize = 150;
pub const APART: TimeDelta = TimeDelta::milliseconds(130);

pub fn measure(plan: &Plan) {
    let bot = Bot::with(plan.many);
    let service = bot.start();
    let from = now() + TimeDelta::seconds(20);
    let mut at = from;
    for n in 0..SAMPLES {
        bot.reminder(&format!("sample-{n}"), at, &format!("sample number {n}."));
        at += APART;
    }
    assert!(now() < from, "the files were written in time");
    for n in 0..SAMPLES {
        service.when_said(&format!("sample number {n}."));
    }
    let runs = bot.json(&["runs", "-n", "1000000"]);
    let mut late: Vec<i64> = runs.as_array().unwrap().iter().map(|run| run["late_ms"].as_i64().unwrap()).collect();
    assert_eq!(late.len(), SAMPLES);
    row(
        &format!("due until its claim begins, {} waiting", plan.many),
        "never early, p50 2 ms, p99 3 ms",
        &words(&mut late),
        &peers::lateness(plan),
    );
}

/// Formats percentiles of whole milliseconds: `p50 1 ms, p99 2 ms, …`.
pub fn words(late: &mut [i64]) -> String {
    let early = late.iter().filter(|late| **late < 0).count();
    let [first, p50, p99, last] = [0, 50, 99, 100].map(|percent| percentile(late, percent));
    let early = if early > 0 { format!("; {early} of {} early", late.len()) } else { String::new() };
    format!("p50 {p50} ms, p99 {p99} ms ({first} to {last}){early}")
}

/// Measures reminders that fall due in the same second.
pub fn measure_together(_plan: &Plan) {
    const SIZE: usize = 1000;
    let bot = Bot::with(0);
    let at = now() + TimeDelta::seconds(6);
    for n in 0..SIZE {
        bot.reminder(&format!("r{n}"), at, "together");
    }
    let service = bot.start();
    for _ in 0..SIZE {
        service.when_said("together");
    }
    let runs = bot.json(&["runs", "-n", "1000000"]);
    let runs = runs.as_array().unwrap();
    let mut late: Vec<i64> = runs.iter().map(|run| run["late_ms"].as_i64().unwrap()).collect();
    assert_eq!(late.len(), SIZE);
    row("1,000 due in the same second, claimed", "within 1 s", &words(&mut late), "");
    let ended: Vec<DateTime<Utc>> = runs.iter().filter_map(|run| time(&run["ended"])).collect();
    let all = *ended.iter().max().unwrap() - at;
    row("… and the last of them delivered", "", &format!("after {} ms", all.num_milliseconds()), "");
}
