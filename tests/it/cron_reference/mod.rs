//! A comparison of our occurrences with an independent reference: random expressions, zones and starts (docs/cron.md).
//!
//! `./scripts/cron-reference` runs the test with 2,000 expressions. The default number takes seconds.

mod differences;
mod expressions;
mod grammar;
mod reference;
mod rules;
mod spans;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use chrono_tz::Tz;
use differences::{Class, Difference, Side, differences, ours};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reference::{Ask, DaemonAsk};

/// Number of starts for each expression in each zone, and number of times requested from each start.
const STARTS: usize = 3;
const COUNT: usize = 12;

#[test]
#[expect(clippy::print_stderr, reason = "the long form is run for its numbers")]
fn random_expressions_come_round_as_cronsim_says() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let expressions = number("OLLIM_CRON_EXPRESSIONS", 150);
    let asks = asks(expressions, number("OLLIM_CRON_SEED", 1));
    let part = asks.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = asks.chunks(part).map(|asks| scope.spawn(|| compare(asks))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let tally = tallies.into_iter().reduce(Tally::and).unwrap();
    eprintln!("{expressions} expressions in {} zones: {tally}", spans::ZONES.len());
    let first: Vec<String> = tally.wrong.iter().take(20).cloned().collect();
    assert!(first.is_empty(), "{} unexplained, the first of them:\n{}", tally.wrong.len(), first.join("\n"));
}

/// Returns the requests for a seed; equal seeds give equal requests.
fn asks(expressions: u64, seed: u64) -> Vec<Ask> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (expression, starts) = (expressions::expression(), spans::starts());
    let mut asks = Vec::new();
    for _ in 0..expressions {
        let expression = expression.new_tree(&mut runner).unwrap().current();
        for (zone, start) in &starts {
            for _ in 0..STARTS {
                let from = start.new_tree(&mut runner).unwrap().current();
                asks.push(Ask { expression: expression.clone(), zone: *zone, from, count: COUNT });
            }
        }
    }
    asks
}

/// The results of some requests.
#[derive(Default)]
struct Tally {
    asked: usize,
    same: usize,
    /// Number of requests for which both say that nothing ever matches.
    never: usize,
    classes: BTreeMap<(Class, Side), usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn and(mut self, other: Self) -> Self {
        self.asked += other.asked;
        self.same += other.same;
        self.never += other.never;
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self.wrong.extend(other.wrong);
        self
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { asked, same, never, .. } = self;
        write!(f, "asked {asked} times, {same} the same, {never} of them never; single times that differ: ")?;
        write!(f, "{:?}; unexplained: {}", self.classes, self.wrong.len())
    }
}

fn compare(asks: &[Ask]) -> Tally {
    let mut tally = Tally { asked: asks.len(), ..Tally::default() };
    let mut found: Vec<(&Ask, Difference)> = Vec::new();
    for (ask, answer) in asks.iter().zip(reference::times(asks)) {
        match (ours(ask), answer) {
            // cronsim refuses a date that no month has (30 February). It searches in vain for others.
            (Some(ours), answer) if ours.is_empty() && answer.as_ref().is_none_or(|answer| answer.never()) => {
                tally.same += 1;
                tally.never += 1;
            }
            (Some(ours), Some(answer)) => {
                let differences = differences(ask, &ours, &answer);
                tally.same += usize::from(differences.is_empty());
                found.extend(differences.into_iter().map(|difference| (ask, difference)));
            }
            (ours, answer) => tally.wrong.push(format!("{ask:?}: ours {ours:?}, theirs {answer:?}")),
        }
    }
    for ((ask, difference), right) in found.iter().zip(judge(&found)) {
        match difference.class {
            Some(class) if right => *tally.classes.entry((class, difference.has)).or_default() += 1,
            _ => tally.wrong.push(format!("{ask:?}: {difference:?}, by the book we are right: {right}")),
        }
    }
    tally
}

/// Returns, for each difference, whether the book confirms our side minute by minute.
fn judge(found: &[(&Ask, Difference)]) -> Vec<bool> {
    let book = |ask: &Ask, difference: &Difference| DaemonAsk {
        expression: ask.expression.clone(),
        zone: ask.zone,
        from: difference.at - TimeDelta::minutes(1),
        until: difference.at,
    };
    let books: Vec<DaemonAsk> = found.iter().map(|(ask, difference)| book(ask, difference)).collect();
    let judged = found.iter().zip(reference::book(&books));
    judged
        .map(|((ask, difference), fired)| match difference.has {
            Side::Ours => fired.contains(&difference.at),
            // Whatever the book says, nothing is due before the start or a second time.
            Side::Theirs => difference.at <= ask.from || fired.is_empty(),
            Side::TheirsAgain => true,
        })
        .collect()
}

#[test]
fn the_reference_has_the_zones_that_we_have() {
    let (_, tzdata) = reference::versions();
    assert_eq!(
        tzdata,
        chrono_tz::IANA_TZDB_VERSION,
        "tests/cron-reference/requirements.txt must name the tzdata of chrono-tz"
    );
    assert!(spans::ZONES.len() >= 12 && spans::ZONES.contains(&Tz::UTC));
}
