//! The simulation predicts what the schedule does.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::super::simulate::{Assumptions, Prediction, SimulatedJob, simulate};
use super::support::*;
use crate::definition::{Definition, OnOverlap};

/// Returns the duration of each job's runs, in minutes.
fn takes(id: &str) -> u32 {
    match id {
        "a" => 33,
        "b" => 41,
        _ => 17,
    }
}

/// Returns the starts from noon to 15:00, by the simulation and by the schedule.
async fn both(all: &[Definition], slots: usize) -> [Vec<String>; 2] {
    let subject = |one: &Definition| SimulatedJob {
        definition: Arc::new(one.clone()),
        takes: TimeDelta::minutes(takes(one.id.as_str()).into()),
        costs: 0.0,
        tokens: 0,
        own_budget: None,
        held: None,
        last_due: None,
        open: Vec::new(),
    };
    let (now, until) = (march("01T12:00:00"), march("01T15:00:00"));
    let zone = chrono_tz::Tz::UTC;
    let assumed = Assumptions { now, from: now, until, slots, budget: Vec::new(), zone, limit: 1000 };
    let (foreseen, _) = simulate(&all.iter().map(subject).collect::<Vec<_>>(), &assumed);
    let began = |prediction: &Prediction| match prediction {
        Prediction::Runs { begins, .. } => Some(begins.format("%dT%H:%M:%S").to_string()),
        Prediction::Asks { .. } | Prediction::Skipped(_) | Prediction::SkippedSince(..) => None,
    };
    let runs = foreseen.iter().filter_map(|one| Some(format!("{} {}", all[one.subject].id, began(&one.prediction)?)));
    let mut runs: Vec<String> = runs.collect();
    let mut world = World::new();
    world.slots = slots;
    world.script(|job| vec![Act::Take(Duration::from_secs(60) * takes(job.occurrence.id.as_str()))]);
    let process = world.begin(all);
    minutes(400).await;
    process.stop(Duration::ZERO).await;
    let mut started = world.started();
    started.sort();
    runs.sort();
    [runs, started]
}

#[tokio::test(start_paused = true)]
async fn overlaps_of_each_kind_are_foreseen() {
    let all = [
        with_cron(routine("a"), "*/20 13,14 * * *", OnOverlap::Skip),
        with_cron(routine("b"), "*/25 13,14 * * *", OnOverlap::Queue),
        with_cron(routine("c"), "*/10 13,14 * * *", OnOverlap::Cancel),
    ];
    let [foreseen, done] = both(&all, 4).await;
    assert_eq!(foreseen, done);
    assert!(done.len() > 15);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_slot_is_foreseen() {
    let all = [
        with_cron(routine("a"), "0 13 * * *", OnOverlap::Skip),
        with_cron(routine("b"), "5 13 * * *", OnOverlap::Skip),
        with_cron(routine("d"), "10 13 * * *", OnOverlap::Skip),
    ];
    let [foreseen, done] = both(&all, 1).await;
    assert_eq!(foreseen, done);
    assert_eq!(done, ["a 01T13:00:00", "b 01T13:33:00", "d 01T14:14:00"]);
}
