//! What a decision costs: `cargo bench --bench policy`. Every call of the corpora is judged under its own rules, again and
//! again, and so are lines that are made to take long.
//!
//! Prints one table; asserts no time. A benchmark of one line says little here: what counts is how the lines are
//! spread, so each is measured by itself (the median of its runs) and the table shows the lines' median and worst.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails has no result")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]
#![allow(dead_code, reason = "the corpora's own modules, of which a part is used")]

#[path = "../tests/it/policy_corpus/engine.rs"]
mod engine;
#[path = "../tests/it/policy_corpus/entry.rs"]
mod entry;
#[path = "../tests/it/policy_corpus/ground.rs"]
mod ground;

use std::hint::black_box;
use std::time::{Duration, Instant};

use ollim_bot::policy::{BgForkConfig, Places, Policy, ToolCall, ToolPattern, UpdateMode};
use serde_json::json;

/// How often a call is judged; the figure is the median.
const TIMES: usize = 51;

/// Lines that are made to take long: fewer.
const TIMES_OF_LONG: usize = 3;

/// The default stack of tokio's threads, on which the service judges calls.
const STACK: usize = 2 * 1024 * 1024;

fn main() {
    let work = || {
        println!("| calls | how many | median | 99 of 100 | longest | |");
        println!("|---|---|---|---|---|---|");
        corpus("attacks");
        corpus("ordinary");
        hostile();
    };
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
    println!("\nMost memory: {} KiB", high_water_mark());
}

/// The median time of a decision.
fn time(policy: &Policy, call: &ToolCall, times: usize) -> Duration {
    let mut times: Vec<Duration> = (0..times)
        .map(|_| {
            let start = Instant::now();
            black_box(policy.decide(black_box(call)));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn corpus(name: &str) {
    let ground = ground::Ground::new();
    let places = Places { root: ground.data(), work: ground.work(), user_home: ground.home() };
    let times = entry::load(name).into_iter().map(|case| {
        let config = engine::config(&case.rules, |text| ground.fill(text));
        let policy = Policy::background("routine t", &config, &engine::main_tools(), &places);
        (time(&policy, &engine::call(&case, &ground), TIMES), case.title())
    });
    row(name, times.collect());
}

fn hostile() {
    let rules: Vec<ToolPattern> =
        ["Bash(ls *)", "Bash(a*a*a*a*b)"].map(|text| ToolPattern::parse(text).unwrap()).to_vec();
    let nested = |open: &str, close: &str, depth: usize| format!("{}ls{}", open.repeat(depth), close.repeat(depth));
    let lines = [
        ("64 KiB of words", format!("ls {}", "a ".repeat(32_000))),
        ("64 KiB of one word", format!("ls {}", "a".repeat(65_000))),
        ("64 KiB of commands", "ls;".repeat(21_000)),
        ("1 MiB", "ls ".repeat(350_000)),
        ("subshells, 60 deep", nested("( ", " )", 60)),
        ("substitutions, 60 deep", nested("ls $(", ")", 60)),
        ("substitutions, 20,000 deep", nested("ls $(", ")", 20_000)),
        ("braces", format!("ls {}", "{a,b}".repeat(12_000))),
        ("nested braces", format!("ls {}b{}", "{a,".repeat(12_000), "}".repeat(12_000))),
        ("ranges", format!("ls {}", "{1..9999999}".repeat(5_000))),
        ("globs", format!("ls {}", "[a-z]*?".repeat(9_000))),
        ("quotes", format!("ls {}", "'a\"b'\"c'd\"".repeat(6_000))),
        ("eval in eval", nested("eval ", "", 12_000)),
        ("here-documents", format!("ls{}", " <<A".repeat(2_000))),
        ("arithmetic", format!("(({}1))", "1+".repeat(30_000))),
    ];
    let mut config = BgForkConfig::new(UpdateMode::OnPing, true, Some(rules), None).unwrap();
    let places = Places { root: "/b".into(), work: "/b/work".into(), user_home: "/h".into() };
    let mut times = Vec::new();
    for _ in 0..2 {
        let policy = Policy::background("routine t", &config, &engine::main_tools(), &places);
        for (name, line) in &lines {
            let call = ToolCall {
                tool: "Bash".into(),
                input: json!({ "command": line }),
                cwd: "/b/work".into(),
                agent_type: None,
            };
            times.push((time(&policy, &call, TIMES_OF_LONG), (*name).to_owned()));
        }
        let deny = ["Bash(ollim-bot cal *)", "Bash(* --force * x)"].map(|text| ToolPattern::parse(text).unwrap());
        config = BgForkConfig::new(UpdateMode::OnPing, true, None, Some(deny.to_vec())).unwrap();
    }
    row("made to take long", times);
}

fn row(name: &str, mut times: Vec<(Duration, String)>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].0;
    let (longest, title) = times.last().unwrap();
    println!("| {name} | {} | {} | {} | {} | {title} |", times.len(), us(at(50)), us(at(99)), us(*longest));
}

fn us(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// The most memory that the process has had, in KiB.
fn high_water_mark() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
