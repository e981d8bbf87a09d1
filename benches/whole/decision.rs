//! The time of a verdict on the start of a program.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ollim_bot::policy::{self, BgForkConfig, PathRoots, ProgramStart, ToolPattern, UpdateMode, default_main_tools};

use super::{Plan, percentile, row};

const GRANTED: [&str; 6] =
    ["Bash(ollim-bot gmail *)", "Bash(git log *)", "Bash(head *)", "Bash(cat *)", "Bash(grep *)", "Read(notes/**)"];

/// Programs that a job's lines start.
const STARTS: [&str; 4] =
    ["ollim-bot gmail list --unread", "git log --oneline -5", "grep -c ^- notes/today.md", "rm -rf notes"];

pub fn measure(_plan: &Plan) {
    measure_usual();
    measure_long();
}

/// The longest time for a call with as many words, or as long ones, as are judged at all.
fn measure_long() {
    let rules: Vec<ToolPattern> = (0..40)
        .map(|at| match at % 4 {
            0 => format!("Bash(* a * b{at})"),
            1 => format!("Bash(git * a*a*b{at})"),
            2 => format!("Bash(*a*a*a*b{at})"),
            _ => format!("Bash(tool{at} *)"),
        })
        .chain(["curl", "docker run", "kubectl get", "rm", "tar"].map(|call| format!("Bash({call} *)")))
        .map(|text| ToolPattern::parse(&text).unwrap())
        .collect();
    let env = BTreeMap::new();
    let mut longest = Duration::ZERO;
    for is_granted in [true, false] {
        let (granted, denied) = if is_granted { (Some(rules.clone()), None) } else { (None, Some(rules.clone())) };
        let (policy, places) = background(granted, denied);
        for call in ["tool", "git log", "curl", "docker run", "kubectl get", "rm", "tar"] {
            let numbered = |front: &str| (0..9_990).map(|at| format!("{front}{at}")).collect::<Vec<_>>();
            let letters = |some: &str| vec![format!("-{}", some.repeat(120_000 / some.len()))];
            for words in [numbered("a"), numbered("--o"), numbered("-v"), letters("v"), letters("abcdefgh")] {
                let argv: Vec<String> = call.split(' ').map(str::to_owned).chain(words).collect();
                let asked = ProgramStart { argv: &argv, cwd: &places.work, env: &env, agent_type: None };
                let start = Instant::now();
                black_box(policy.decide_program(black_box(&asked)));
                longest = longest.max(start.elapsed());
            }
        }
    }
    row("verdict on 10,000 words, 45 rules", "", &format!("longest {:.0} ms", longest.as_secs_f64() * 1e3), "");
}

type Patterns = Option<Vec<ToolPattern>>;

/// A background job's policy, and its places.
fn background(granted: Patterns, denied: Patterns) -> (policy::Policy, PathRoots) {
    let config = BgForkConfig::new(UpdateMode::default(), true, granted, denied).unwrap();
    let root = PathBuf::from("/home/user/.ollim-bot");
    let places = PathRoots { work: root.join("work"), root, user_home: "/home/user".into() };
    (policy::background("routine x", &config, &default_main_tools(), &places), places)
}

fn measure_usual() {
    let granted = GRANTED.iter().map(|pattern| ToolPattern::parse(pattern).unwrap()).collect();
    let (policy, places) = background(Some(granted), None);
    let env = BTreeMap::from([("NODE_ENV".to_owned(), "test".to_owned())]);
    let starts = STARTS.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<String>>());
    let mut times: Vec<Duration> = Vec::new();
    for n in 0..2000 {
        for argv in &starts {
            let asked = ProgramStart { argv, cwd: &places.work, env: &env, agent_type: None };
            let start = Instant::now();
            black_box(policy.decide_program(black_box(&asked)));
            // The first ones fill the caches.
            if n >= 100 {
                times.push(start.elapsed());
            }
        }
    }
    let [p50, p99] = [50, 99].map(|percent| percentile(&mut times, percent).as_secs_f64() * 1e6);
    row("verdict on a program's start", "50 µs", &format!("p50 {p50:.1} µs, p99 {p99:.1} µs"), "");
}
