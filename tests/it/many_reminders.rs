//! Many reminders at one moment.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::support::bot::{TestBot, now, reminder};

#[test]
fn a_thousand_reminders_due_in_one_second_are_each_delivered_exactly_once() {
    let bot = TestBot::new();
    let at = now() + TimeDelta::seconds(5);
    for n in 0..1000 {
        bot.write(&format!("reminders/r{n:04}.md"), &reminder(at, "", &format!("message number {n:04}.")));
    }
    let service = bot.start();
    let runs = service.until("all have ended", || {
        let runs = bot.json(["runs", "-n", "100000"]);
        let ended = runs.as_array()?.iter().filter(|run| !run["ended"].is_null()).count();
        (ended >= 1000 && bot.names("reminders").iter().all(|name| !name.ends_with(".md"))).then_some(runs)
    });
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 1000, "one attempt each");
    for run in runs {
        assert_eq!(run["outcome"], "completed", "{run:#}");
        assert!(run["late_ms"].as_i64().unwrap() >= 0, "never early: {run:#}");
    }
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for message in bot.json(["inbox", "-n", "100000"]).as_array().unwrap() {
        let text = message["text"].as_str().unwrap().trim();
        // On a slow machine the last ones begin late. Their messages say so, and a notice reports the first of them.
        if let Some(at) = text.find("message number ") {
            *seen.entry(text[at..].to_string()).or_default() += 1;
        }
    }
    let expect: BTreeMap<String, u32> = (0..1000).map(|n| (format!("message number {n:04}."), 1)).collect();
    assert_eq!(seen, expect);
    let shown = |n: usize| service.output().matches(&format!("message number {n:04}.")).count();
    service.until("each is shown", || (0..1000).all(|n| shown(n) >= 1).then_some(()));
    assert!((0..1000).all(|n| shown(n) == 1), "each is shown once");
    service.stop();
}
