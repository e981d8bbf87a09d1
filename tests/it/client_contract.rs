//! The properties of the agent client that we rely on, point by point, each observed on a real client.
//!
//! The ordinary test run checks both pinned clients; `./scripts/client-contract VERSION|PATH` checks any other. A point that
//! does not hold makes that version unfit. A warning concerns a setting that a client ignores and that we do not depend on.
//! The warnings of the pinned clients are listed here.

mod fork;
mod starts;
mod wire;

use std::path::Path;

use crate::support::client;

/// The known warnings of each tested client, which are no faults: settings that it ignores, ways that it opens.
const KNOWN_WARNINGS: [&[&str]; 2] = [&["thinking budget"], &["no way in", "thinking budget"]];

/// A checked point.
struct Point {
    name: &'static str,
    /// The property that we rely on.
    sentence: &'static str,
    /// The observation, if the point does not hold.
    seen: Option<String>,
    /// Whether a point that does not hold is only a warning.
    mild: bool,
}

/// The points of one client, in order.
#[derive(Default)]
struct Points(Vec<Point>);

impl Points {
    /// Records a point that one of our guarantees depends on.
    fn must(&mut self, name: &'static str, sentence: &'static str, holds: bool, seen: impl FnOnce() -> String) {
        self.0.push(Point { name, sentence, seen: (!holds).then(seen), mild: false });
    }

    /// Records a point that only a setting depends on, or that checks that other points can still find something.
    fn should(&mut self, name: &'static str, sentence: &'static str, holds: bool, seen: impl FnOnce() -> String) {
        self.0.push(Point { name, sentence, seen: (!holds).then(seen), mild: true });
    }

    fn of(client: &Path) -> Self {
        let mut points = Self::default();
        fork::check(client, &mut points);
        starts::check(client, &mut points);
        points
    }

    fn failing(&self, mild: bool) -> Vec<&str> {
        self.0.iter().filter(|point| point.seen.is_some() && point.mild == mild).map(|point| point.name).collect()
    }

    /// Returns one line for each point, with the observation if it does not hold.
    fn lines(&self) -> String {
        let line = |point: &Point| {
            let (mark, seen) = match &point.seen {
                None => ("holds", String::new()),
                Some(seen) => {
                    let seen: String = seen.chars().take(600).collect();
                    (if point.mild { "WARNS" } else { "FAILS" }, format!("\n       seen: {seen}"))
                }
            };
            format!("{mark}  {}: {}{seen}\n", point.name, point.sentence)
        };
        self.0.iter().map(line).collect()
    }
}

#[track_caller]
fn hold(client: &Path, known_warnings: &[&str]) {
    let points = Points::of(client);
    assert!(points.failing(false).is_empty(), "{}", points.lines());
    assert_eq!(points.failing(true), known_warnings, "{}", points.lines());
}

#[test]
fn the_oldest_supported_client_keeps_the_contract() {
    hold(&client::oldest(), KNOWN_WARNINGS[0]);
}

#[test]
fn the_newest_known_client_keeps_the_contract() {
    hold(&client::newest(), KNOWN_WARNINGS[1]);
}

/// Judges the client that `OLLIM_TEST_CLAUDE` names and prints each point, for `./scripts/client-contract`.
#[test]
#[ignore = "by ./scripts/client-contract"]
#[allow(clippy::print_stdout, reason = "what it prints is what it is for")]
fn of_the_named_client() {
    let client = client::named().expect("OLLIM_TEST_CLAUDE names a client");
    let points = Points::of(&client);
    println!("{}", points.lines());
    let (fails, warns) = (points.failing(false).len(), points.failing(true).len());
    println!("{} points hold, {warns} warn, {fails} fail", points.0.len() - fails - warns);
    assert_eq!(fails, 0, "this client does not keep the contract");
}
