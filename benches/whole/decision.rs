//! What a verdict on one call takes.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ollim_bot::policy::{BgForkConfig, Places, Policy, ToolCall, ToolPattern, UpdateMode, default_main_tools};
use serde_json::json;

use super::{Plan, percentile, row};

const GRANTED: [&str; 6] =
    ["Bash(ollim-bot gmail *)", "Bash(git log *)", "Bash(head *)", "Bash(cat *)", "Bash(grep *)", "Read(notes/**)"];

/// Ordinary lines of a job.
const LINES: [&str; 4] = [
    "ollim-bot gmail list --unread",
    "git log --oneline -5 | head -3",
    "cat notes/today.md && grep -c '^- ' notes/today.md",
    "rm -rf notes",
];

pub fn measure(_plan: &Plan) {
    let granted = GRANTED.iter().map(|pattern| ToolPattern::parse(pattern).unwrap()).collect();
    let config = BgForkConfig::new(UpdateMode::default(), true, Some(granted), None).unwrap();
    let root = PathBuf::from("/home/user/.ollim-bot");
    let places = Places { work: root.join("work"), root, user_home: "/home/user".into() };
    let policy = Policy::background("routine x", &config, &default_main_tools(), &places);
    let mut times: Vec<Duration> = Vec::new();
    for n in 0..2000 {
        for line in LINES {
            let call = ToolCall {
                tool: "Bash".into(),
                input: json!({ "command": line }),
                cwd: places.work.clone(),
                agent_type: None,
            };
            let start = Instant::now();
            black_box(policy.decide(black_box(&call)));
            // The first ones fill what is kept.
            if n >= 100 {
                times.push(start.elapsed());
            }
        }
    }
    let [p50, p99] = [50, 99].map(|percent| percentile(&mut times, percent).as_secs_f64() * 1e6);
    row("verdict on a typical command line", "50 µs", &format!("p50 {p50:.1} µs, p99 {p99:.1} µs"), "");
}
