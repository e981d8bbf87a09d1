//! The system prompt of a job as the model receives it, and its length.

use serde_json::Value;

use crate::agents::system_prompt;
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::MessagesApi;

const ONE_RULE: &str = "allowed_tools:\n  - Bash(ollim-bot gmail *)\n";

fn bytes(value: &Value) -> usize {
    value.to_string().len()
}

/// With the client's own system prompt a request had 7,522 bytes in 2.1.197 (the system prompt 3,785) and 11,027 in 2.1.330
/// (5,112). With ours it has 4,239 and 5,375 (1,044).
#[test]
fn a_request_of_a_job_with_one_rule_is_small() {
    for client in client::each() {
        let api = MessagesApi::script([]);
        TestBot::with_client(&client, api.url()).live(ONE_RULE);
        let request = api.last();
        let (system, whole) = (bytes(&request.body["system"]), bytes(&request.body));
        assert!(system < 1300 && whole < 5800, "{}: system {system}, whole {whole}", client.display());
    }
}

#[test]
fn a_job_has_the_bots_own_system_prompt_and_knows_the_time() {
    for client in client::each() {
        let api = MessagesApi::script([]);
        let bot = TestBot::with_client(&client, api.url());
        bot.write("config.yaml", "bot_name: Hedwig\nuser_name: Ada\ntimezone: Europe/Vienna\n");
        bot.write("persona.md", "Be brief.\n");
        bot.live(ONE_RULE);
        let request = api.last();
        let system = system_prompt(&request);
        assert!(system.contains("You are Hedwig, the personal bot of Ada."), "{system}");
        assert!(system.ends_with("What Ada wrote about you:\nBe brief."), "{system}");
        for gone in ["software engineering tasks", "# Harness", "ollim-bot reminder add"] {
            assert!(!system.contains(gone), "{gone}: {system}");
        }
        let day = now().with_timezone(&chrono_tz::Europe::Vienna).format("%A %Y-%m-%d").to_string();
        assert!(request.mentions(&format!("[now: {day} ")), "{}", request.body["messages"]);
        assert!(request.mentions(", Europe/Vienna (UTC+0"), "{}", request.body["messages"]);
    }
}

#[test]
fn the_main_session_and_a_copy_of_it_have_it_beside_the_clients() {
    for client in client::each() {
        let api = MessagesApi::script([]);
        let bot = TestBot::with_client(&client, api.url());
        bot.write("persona.md", "Be brief.\n");
        let service = bot.start();
        bot.write("reminders/front.md", &reminder(now(), "retry: 0\n", "Hello."));
        service.until_ended("front", 1);
        bot.write("reminders/copy.md", &reminder(now(), "retry: 0\nbackground: true\n", "Look."));
        service.until_ended("copy", 1);
        service.stop();
        let requests = api.requests();
        assert_eq!(requests.len(), 2);
        for request in requests {
            let system = system_prompt(&request);
            assert!(system.contains("# Harness"), "the client's own is there: {system}");
            assert!(system.contains("your one long conversation") && system.contains("Be brief."), "{system}");
            assert!(system.contains("ollim-bot routine add"), "{system}");
            assert!(request.mentions("[now: "), "{}", request.body["messages"]);
        }
    }
}

#[test]
fn a_persona_that_cannot_be_used_is_said_and_keeps_no_job_from_running() {
    let api = MessagesApi::script([]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("persona.md", &"x".repeat(20_000));
    bot.live(ONE_RULE);
    let checked = bot.run(["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.stdout.contains("warning: the persona cannot be used"), "{checked:?}");
    assert!(checked.stdout.contains("--> persona.md:1:1"), "{checked:?}");
    assert!(!system_prompt(&api.last()).contains("xxx"));
}
