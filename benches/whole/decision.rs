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
    let granted = GRANTED.iter().map(|pattern| ToolPattern::parse(pattern).unwrap()).collect();
    let config = BgForkConfig::new(UpdateMode::default(), true, Some(granted), None).unwrap();
    let root = PathBuf::from("/home/user/.ollim-bot");
    let places = PathRoots { work: root.join("work"), root, user_home: "/home/user".into() };
    let policy = policy::background("routine x", &config, &default_main_tools(), &places);
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
