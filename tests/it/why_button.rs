//! The button *Why?* stands below messages of runs that were late or refused something, and below no others.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::bot::{now, reminder};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::phone::{Phone, bot_with_phone};

fn labels(message: &Value) -> Vec<&str> {
    message["buttons"].as_array().unwrap().iter().map(|button| button["label"].as_str().unwrap()).collect()
}

#[test]
fn a_message_of_an_odd_run_explains_it_and_no_other_does() {
    let api = MessagesApi::answering(|request| match (request.last_text(), request.answers()) {
        (text, 0) if text.contains("Push it.") => Reply::bash("git push"),
        (_, 0 | 1) => Reply::call("mcp__discord__ping_user", json!({ "message": "All is well." })),
        _ => Reply::say("Told."),
    });
    let bot = bot_with_phone(&api);
    bot.write("reminders/early.md", &reminder(now(), "client: notify\n", "Early."));
    let service = bot.start();
    let early = Phone { bot: &bot, service: &service }.next_message("Early.");
    assert_eq!(labels(&early), ["Done", "10 min", "1 h", "Tomorrow"]);
    service.until_ended("early", 1);
    service.stop();

    bot.write("reminders/tea.md", &reminder(now() - TimeDelta::hours(3), "client: notify\n", "Tea."));
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let late = phone.next_message("reminder tea is late: it was due at ");
    assert_eq!(labels(&late), ["Why?"]);
    phone.press(&late, "Why?");
    phone.next_message("late, at ");
    let tea = phone.next_message("running now]");
    assert_eq!(labels(&tea), ["Done", "10 min", "1 h", "Tomorrow", "Why?"]);

    let fields = "background: true\nisolated: true\nallowed_tools: ['Bash(ls *)', mcp__bot__ping_user]\n";
    bot.write("reminders/push.md", &reminder(now(), fields, "Push it."));
    service.until_ended("push", 1);
    let refused = phone.next_message("All is well.");
    assert_eq!(labels(&refused), ["Done", "10 min", "1 h", "Tomorrow", "Why?"]);
    phone.press(&refused, "Why?");
    let told = phone.next_message("Bash was refused: ");
    assert!(told["notice"].as_str().unwrap().contains("push fired on time"), "{told:#}");
    bot.write("reminders/well.md", &reminder(now(), fields, "Look."));
    service.until_ended("well", 1);
    let well = service.until("it is told", || {
        phone.deliveries().into_iter().find(|one| one["job"] == "well" && one["text"] == "[bg] All is well.")
    });
    assert_eq!(labels(&well), ["Done", "10 min", "1 h", "Tomorrow"], "a reminder, and nothing to explain");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_message_about_several_late_jobs_explains_each() {
    let bot = bot_with_phone(&MessagesApi::repeating());
    for id in ["tea", "bread"] {
        let file = reminder(now() - TimeDelta::hours(3), "client: notify\n", "It is time.");
        bot.write(&format!("reminders/{id}.md"), &file);
    }
    let service = bot.start();
    let phone = Phone { bot: &bot, service: &service };
    let late = phone.next_message("2 jobs did not run at their time");
    let mut shown = labels(&late);
    shown.sort_unstable();
    assert_eq!(shown, ["Why bread?", "Why tea?"]);
    for id in ["bread", "tea"] {
        phone.press(&late, &format!("Why {id}?"));
        let told = phone.next_message(&format!("{id} was due "));
        // A phone's lines are short. Three hours ago may have been yesterday.
        let words: Vec<&str> = told["notice"].as_str().unwrap().split_whitespace().collect();
        assert!(words.join(" ").contains("and began 3h late, at "), "{told:#}");
    }
    service.stop();
    bot.until_no_processes();
}
