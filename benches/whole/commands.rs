//! Short commands, as whole processes.

use std::time::Duration;

use super::bot::Bot;
use super::{Plan, ms, percentile, row};

/// Number of times that each is run.
const TIMES: usize = 41;

pub fn measure(_plan: &Plan) {
    let bot = Bot::with(1000);
    let commands: [(&str, &[&str]); 4] = [
        ("reminder add", &["reminder", "add", "-m", "Tea.", "--in", "1000h"]),
        ("reminder list", &["reminder", "list"]),
        ("routine list", &["routine", "list"]),
        ("next", &["next"]),
    ];
    for (name, args) in commands {
        let mut times: Vec<Duration> = (0..TIMES).map(|_| bot.time(args)).collect();
        let (median, best) = (percentile(&mut times, 50), percentile(&mut times, 0));
        row(
            &format!("`{name}` with 1,000 definitions, whole process"),
            match name {
                "next" => "",
                "reminder list" | "routine list" => "25 ms",
                _ => "10 ms",
            },
            &format!("{} (at best {})", ms(median), ms(best)),
            "",
        );
    }
}
