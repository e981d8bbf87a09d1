//! The cost of a decision about a program: `cargo bench --bench policy`. It judges the words of every line of the corpora under
//! the line's own rules, many times, and also starts that are made to take long.
//!
//! Prints one table; asserts no time. A benchmark of one line says little here, since the distribution over the lines
//! counts. So each line is measured by itself (the median of its runs), and the table shows the lines' median and worst.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement that fails has no result")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]
#![allow(dead_code, reason = "the corpora's own modules, of which a part is used")]

#[path = "../tests/it/policy_corpus/engine.rs"]
mod engine;
#[path = "../tests/it/policy_corpus/entry.rs"]
mod entry;
#[path = "../tests/it/policy_corpus/workspace.rs"]
mod workspace;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use ollim_bot::policy::{self, BgForkConfig, PathRoots, Policy, ProgramStart, ToolPattern, UpdateMode};

/// Number of times that a call is judged; the figure is the median.
const TIMES: usize = 51;

/// The same number for lines that are made to take long.
const TIMES_OF_LONG: usize = 3;

/// The default stack of tokio's threads, on which the service judges calls.
const STACK: usize = 2 * 1024 * 1024;

fn main() {
    let work = || {
        println!("| starts | how many | median | 99 of 100 | longest | |");
        println!("|---|---|---|---|---|---|");
        corpus("attacks");
        corpus("ordinary");
        hostile();
    };
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
    println!("\nMost memory: {} KiB", high_water_mark());
}

/// The median time of a decision about a program's start.
fn time(policy: &Policy, argv: &[String], cwd: &Path, times: usize) -> Duration {
    let env = BTreeMap::new();
    let asked = ProgramStart { argv, cwd, env: &env, agent_type: None };
    let mut times: Vec<Duration> = (0..times)
        .map(|_| {
            let start = Instant::now();
            black_box(policy.decide_program(black_box(&asked)));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Judges the words of each line as one program's. Parsing by a shell is not measured here.
fn corpus(name: &str) {
    let workspace = workspace::Workspace::new();
    let places = PathRoots { root: workspace.data(), work: workspace.work(), user_home: workspace.home() };
    let times = entry::load(name).into_iter().filter_map(|case| {
        let config = engine::config(&case.rules, |text| workspace.fill(text));
        let policy = policy::background("routine t", &config, &engine::main_tools(), &places);
        let call = engine::call(&case, &workspace);
        let line = call.input.get("command")?.as_str()?;
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Some((time(&policy, &argv, &places.work, TIMES), case.title()))
    });
    row(name, times.collect());
}

fn hostile() {
    let rules: Vec<ToolPattern> = ["Bash(ls *)", "Bash(a*a*a*a*b)", "Bash(git log *)", "Bash(curl https://a/*)"]
        .map(|text| ToolPattern::parse(text).unwrap())
        .to_vec();
    let words = |program: &str, word: &str, count: usize| -> Vec<String> {
        std::iter::once(program).chain(std::iter::repeat_n(word, count)).map(str::to_owned).collect()
    };
    let starts = [
        ("10,000 words", words("ls", "a", 9_999)),
        ("10,000 words that a pattern searches", words("a", "a", 9_999)),
        ("256 KiB of one word", words("ls", &"a".repeat(256 * 1024 - 2), 1)),
        ("256 KiB of one word that a pattern searches", words(&"a".repeat(256 * 1024 - 2), "", 0)),
        ("256 KiB of quotes", words("ls", &"'".repeat(256 * 1024 - 2), 1)),
        ("50 deep paths", words("ls", &"a/".repeat(2_500), 50)),
        ("6 MB", words("ls", &"a".repeat(6 << 20), 1)),
        ("options of git", words("git", "-Cx", 5_000)),
        ("options of curl", words("curl", "-sSfXGET", 5_000)),
        ("env in env", words("env", "env", 9_999)),
        ("wrappers", words("nice", "nice", 9_999)),
        ("xargs", words("xargs", "-I{}", 9_999)),
    ];
    let mut config = BgForkConfig::new(UpdateMode::OnPing, true, Some(rules), None).unwrap();
    let places = PathRoots { root: "/b".into(), work: "/b/work".into(), user_home: "/h".into() };
    let mut times = Vec::new();
    for _ in 0..2 {
        let policy = policy::background("routine t", &config, &engine::main_tools(), &places);
        for (name, argv) in &starts {
            times.push((time(&policy, argv, &places.work, TIMES_OF_LONG), (*name).to_owned()));
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

/// Returns the peak memory of the process, in KiB.
fn high_water_mark() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
