//! Occurrences that were missed while the service was off are reported after the start, in one message.

use chrono::TimeDelta;

use crate::support::bot::{TestBot, now, reminder};

#[test]
fn one_message_says_what_was_missed_while_the_service_was_off() {
    let bot = TestBot::new();
    bot.write("reminders/early.md", &reminder(now(), "client: notify\n", "Early."));
    let service = bot.start();
    service.until_ended("early", 1);
    service.stop();
    let due = now() - TimeDelta::hours(3);
    bot.write("reminders/tea.md", &reminder(due, "client: notify\n", "Tea."));
    bot.write("reminders/coffee.md", &reminder(due, "client: notify\non_missed: skip\n", "Coffee."));
    bot.write("reminders/bread.md", &reminder(due, "background: true\n", "Bread."));
    let service = bot.start();
    for id in ["tea", "coffee", "bread"] {
        service.until_ended(id, 1);
    }
    service.stop();
    let inbox = bot.json(["inbox"]);
    let told = inbox.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap());
    let told: Vec<&str> = told.filter(|text| text.contains("did not run at their time")).collect();
    let [told] = told[..] else { panic!("one message: {inbox:#}") };
    assert!(told.starts_with("3 jobs did not run at their time:\n"), "{told}");
    for line in
        ["- reminder tea is late: it was due at ", "- reminder coffee was skipped: ", "- reminder bread is late: "]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
}
