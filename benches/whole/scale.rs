//! Many definitions: starting, following one edit, and waiting.

use std::time::{Duration, Instant};

use super::bot::{Bot, now};
use super::{Plan, ms, row};

const IDLE: Duration = Duration::from_secs(20);

pub fn measure(plan: &Plan) {
    for size in [10_000, plan.many] {
        let bar = if size > 10_000 { "2.5 s" } else { "150 ms" };
        let bot = Bot::with(size);
        // Warm: the folder was read once before.
        bot.time(&["check"]);
        let first = bot.start();
        row(
            &format!("first start with {size} definitions, until something could fire"),
            bar,
            &format!("{}, processor {}", ms(first.ready), ms(first.cpu_at_ready)),
            "",
        );
        drop(first);
        let service = bot.start();
        row(
            &format!("start again with {size} definitions"),
            bar,
            &format!("{}, processor {}", ms(service.ready), ms(service.cpu_at_ready)),
            "",
        );
        // The service and the disk are idle by then.
        std::thread::sleep(Duration::from_secs(5));
        let mut edits: Vec<Duration> = (0..9)
            .map(|n| {
                let words = format!("edit number {n}.");
                let edited = Instant::now();
                bot.reminder("edited", now(), &words);
                service.when_said(&words) - edited
            })
            .collect();
        row(
            &format!("one file edited among {size}, until what it says is delivered"),
            "100 ms",
            &ms(super::percentile(&mut edits, 50)),
            "40 ms of it wait for the editor to be done",
        );
        // Threads that are no longer needed have ended by then.
        std::thread::sleep(Duration::from_secs(15));
        let before = service.cpu_of_threads();
        std::thread::sleep(IDLE);
        let used = service.cpu_since(&before);
        let share = used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
        let (now, peak) = service.memory();
        row(
            &format!("idle with {size} definitions"),
            "0.1 % of a core, 150 MiB",
            &format!("{share:.3} %, {now} MiB (at most {peak} MiB so far)"),
            "",
        );
        if plan.many == 10_000 {
            break;
        }
    }
}
