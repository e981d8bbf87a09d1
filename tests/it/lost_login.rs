//! A service under `agent_client: auto` that has lost its login, or cannot find the client. Runs that need an agent wait.

use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

fn inbox(bot: &TestBot) -> Vec<String> {
    let messages = bot.json(["inbox", "-n", "1000"]);
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn fire(bot: &TestBot, service: &Service<'_>, id: &str) -> String {
    let fired = service.until("it fires", || {
        let ran = bot.run(["--json", "fire", id]);
        (ran.code == 0).then_some(ran.stdout)
    });
    serde_json::from_str::<Value>(&fired).unwrap()["run"].as_str().unwrap().to_owned()
}

#[test]
fn what_needs_an_agent_waits_for_it_and_the_rest_is_delivered() {
    let api = MessagesApi::script([Reply::say("Watered.")]);
    let bot = TestBot::with_client(&client::real(), api.url()).env("OLLIM_AGENT_CLIENT", "auto");
    bot.write(
        "routines/plants.md",
        "---\ncron: \"@yearly\"\nbackground: true\nisolated: true\n---\nCheck the plants.\n",
    );
    bot.write(
        "routines/listed.md",
        "---\ncron: \"@yearly\"\nbackground: true\nisolated: true\nallowed_tools: [Read]\n---\nRead the list.\n",
    );
    let service = bot.start();
    fire(&bot, &service, "plants");
    let run = service.until_ended("plants", 1).remove(0);
    assert_eq!((&run["outcome"], &run["client"]), (&json!("completed"), &json!("claude")), "{run:#}");
    let version = run["client_version"].as_str().unwrap().to_owned();
    let shown = bot.ok(["runs", "show", run["run"].as_str().unwrap()]);
    assert!(shown.contains(&format!("claude {version}")), "{shown}");
    assert_eq!(bot.json(["status"])["need_agent"], json!([]));
    service.stop();

    let key = |bot: TestBot, key: &str| bot.env("ANTHROPIC_API_KEY", key);
    let bot = key(bot, "");
    for lives in 0..2 {
        let service = bot.start();
        if lives == 0 {
            fire(&bot, &service, "plants");
            fire(&bot, &service, "listed");
        }
        service.until("it is told", || inbox(&bot).iter().any(|text| text.contains("wait")).then_some(()));
        let plain = format!("plain{lives}");
        bot.write(&format!("reminders/{plain}.md"), &reminder(now(), "", "Tea is ready."));
        let ran = service.until_ended(&plain, 1).remove(0);
        assert_eq!((&ran["outcome"], &ran["client"]), (&json!("completed"), &json!("notify")), "{ran:#}");
        for id in ["plants", "listed"] {
            assert_eq!(bot.runs(id)[0]["outcome"], "claimed", "it waits, and no attempt was spent");
        }
        let status = bot.json(["status"]);
        assert_eq!(status["need_agent"], json!(["listed", "plants"]), "{status:#}");
        let words = bot.ok(["status"]);
        let first = words.lines().next().unwrap();
        assert!(first.starts_with("no agent") && first.contains("2 jobs that need it wait: "), "{words}");
        assert!(first.contains("is not logged in; log in with"), "{words}");
        service.stop();
        let told = inbox(&bot);
        assert_eq!(told.iter().filter(|text| text.contains("wait until it is there")).count(), 1, "{told:#?}");
        assert!(
            !told.iter().any(|text| text.contains("Check the plants") || text.contains("Read the list")),
            "{told:#?}"
        );
    }

    let bot = key(bot, "sk-test-not-a-key");
    let service = bot.start();
    assert_eq!(service.until_ended("plants", 2)[0]["outcome"], "completed");
    assert_eq!(service.until_ended("listed", 1)[0]["outcome"], "completed");
    service.stop();
    let told = inbox(&bot);
    assert_eq!(told.iter().filter(|text| text.contains("logged in again")).count(), 1, "{told:#?}");
}

/// A follow-up of a chain has an id of its own. The client of the chain's first run counts.
#[test]
fn a_chain_that_an_agent_began_waits_where_the_client_is_not_found() {
    let api = MessagesApi::script([Reply::call("mcp__discord__follow_up_chain", json!({ "minutes_from_now": 60 }))]);
    let bot = TestBot::with_client(&client::real(), api.url()).env("OLLIM_AGENT_CLIENT", "auto");
    bot.write(
        "reminders/build.md",
        &reminder(now(), "background: true\nisolated: true\nmax_chain: 2\n", "Is the build green?"),
    );
    let service = bot.start();
    service.until_ended("build", 1);
    service.until("only its next link is there", || {
        let names = bot.names("reminders");
        (names.len() == 1 && names[0] != "build.md").then_some(())
    });
    service.stop();
    let id = bot.json(["reminder", "list"])[0]["id"].as_str().unwrap().to_owned();
    let bot = bot.env("OLLIM_CLAUDE", "/nowhere/claude");
    let service = bot.start();
    fire(&bot, &service, &id);
    service.until("it is told", || inbox(&bot).iter().any(|text| text.contains("was not found")).then_some(()));
    assert_eq!(bot.runs(&id)[0]["outcome"], "claimed");
    assert_eq!(bot.names("reminders").len(), 1, "no link was spent: {:?}", bot.names("reminders"));
    assert!(!inbox(&bot).iter().any(|text| text.contains("Is the build green")), "{:?}", inbox(&bot));
    service.stop();
}

#[test]
fn what_is_fired_without_a_service_does_not_wait_for_ever() {
    let bot = TestBot::new().env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", "/nowhere/claude");
    bot.write(
        "routines/listed.md",
        "---\ncron: \"@yearly\"\nbackground: true\nallowed_tools: [Read]\n---\nRead the list.\n",
    );
    let fired = bot.run(["fire", "listed"]);
    assert_eq!(fired.code, 1, "{fired:?}");
    assert!(fired.stdout.contains("`/nowhere/claude` was not found"), "{fired:?}");
    assert!(fired.stdout.ends_with("listed waiting: a running service goes on with it\n"), "{fired:?}");
}
