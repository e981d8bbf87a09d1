//! A foreground job is a turn of the main session, and its answer is a message to the person.

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

#[test]
fn foreground_jobs_share_one_conversation_across_restarts_and_their_answers_arrive() {
    let api = MessagesApi::answering(|request| Reply::say(&format!("answer after {}", request.answers())));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/first.md", &reminder(now(), "", "Mind the first thing."));
    let service = bot.start();
    let run = service.until_ended("first", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    service.until("the answer is shown", || service.output().contains("answer after 0").then_some(()));
    service.stop();

    bot.write("reminders/second.md", &reminder(now(), "", "Mind the second thing."));
    let service = bot.start();
    let run = service.until_ended("second", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    service.until("the answer is shown", || service.output().contains("answer after 1").then_some(()));
    service.stop();
    let request = api.last();
    assert!(
        request.mentions("Mind the first thing.") && request.mentions("Mind the second thing."),
        "one conversation"
    );
    let texts: Vec<String> = bot
        .json(["inbox"])
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap().trim().to_string())
        .collect();
    assert!(texts.iter().any(|text| text.contains("answer after 0")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("answer after 1")), "{texts:?}");
    bot.until_no_processes();
}
