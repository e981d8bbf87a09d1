//! Commands (`client: exec`): the lateness of the first word, the cost of a start beyond plain bash, and a thousand at once.

use std::process::{Command, Stdio};

use chrono::{DateTime, TimeDelta, Utc};

use super::bot::{Bot, Service, now};
use super::lateness::{APART, SAMPLES, words};
use super::{Plan, ms, peers, percentile, row};

/// Number of commands that fall due in the same second.
const AT_ONCE: usize = 1000;

/// Prints when bash executed the line: the time of day in seconds, with a fraction.
pub const LINE: &str = "echo first word at $EPOCHREALTIME";

pub fn measure(_plan: &Plan) {
    let plain = plain();
    let bot = Bot::with(0);
    let service = bot.start();
    let from = now() + TimeDelta::seconds(5);
    let mut begun = spaced(&bot, &service, from);
    let [p50, plain_p50] = [percentile(&mut begun, 50), percentile(&mut plain.clone(), 50)];
    let mut late: Vec<i64> = begun.iter().map(|late| late.num_milliseconds()).collect();
    row("a command's first word, after it was due", "", &words(&mut late), &peers::timers(10));
    let beyond = (p50 - plain_p50).to_std().unwrap_or_default();
    let plain_p50 = plain_p50.to_std().unwrap_or_default();
    row("… beyond fork and exec of bash", "5 ms", &format!("{} beyond {}", ms(beyond), ms(plain_p50)), "");
    drop(service);
    at_once();
}

/// Measures how late the first words are of commands that fall due one after the other.
fn spaced(bot: &Bot, service: &Service, from: DateTime<Utc>) -> Vec<TimeDelta> {
    let due = |n: usize| from + APART * i32::try_from(n).unwrap();
    for n in 0..SAMPLES {
        command(bot, &format!("sample-{n}"), due(n));
    }
    assert!(now() < from, "the files were written in time");
    let mut late: Vec<TimeDelta> = (0..SAMPLES).map(|n| first_word(&service.line("first word at")) - due(n)).collect();
    late.sort_unstable();
    late
}

fn at_once() {
    let bot = Bot::with(0).env("OLLIM_MAX_CONCURRENT_RUNS", "8");
    let at = now() + TimeDelta::seconds(10);
    for n in 0..AT_ONCE {
        command(&bot, &format!("r{n}"), at);
    }
    let service = bot.start();
    assert!(now() < at, "the files were written in time");
    let mut late: Vec<i64> =
        (0..AT_ONCE).map(|_| (first_word(&service.line("first word at")) - at).num_milliseconds()).collect();
    let last = percentile(&mut late, 100);
    let plain = peers::in_turn(AT_ONCE);
    let beside =
        format!("as many starts of bash, one after the other: {} ms; {}", plain.as_millis(), peers::timers(AT_ONCE));
    row(
        "1,000 commands due in the same second, 8 at a time: the last one's first word",
        "",
        &format!("after {last} ms"),
        &beside,
    );
}

fn command(bot: &Bot, name: &str, at: DateTime<Utc>) {
    let fields = format!("client: exec\ncommand: {LINE}\ndeliver: always\nallowed_tools: []\n");
    bot.reminder_with(name, at, &fields, "Measured.");
}

/// Returns the time at which a line of [`LINE`] was printed.
pub fn first_word(line: &str) -> DateTime<Utc> {
    let seconds = line.rsplit(' ').next().unwrap().trim();
    let (whole, micros) = seconds.split_once(['.', ',']).unwrap();
    DateTime::from_timestamp_micros(format!("{whole}{micros}").parse().unwrap()).unwrap()
}

/// Measures the same for bash alone, from before its fork.
fn plain() -> Vec<TimeDelta> {
    let once = || {
        let before = now();
        let output = Command::new("/bin/bash").args(["-c", LINE]).stdin(Stdio::null()).output().unwrap();
        first_word(&String::from_utf8(output.stdout).unwrap()) - before
    };
    let mut times: Vec<TimeDelta> = (0..SAMPLES).map(|_| once()).collect();
    times.sort_unstable();
    times
}
