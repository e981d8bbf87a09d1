//! Logging the agent in from any channel: the real client, and a stub of the login service.

use serde_json::{Value, json};

use crate::support::accounts::Accounts;
use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::phone::{Phone, bot_with_phone};

const JOB: &str =
    "---\ncron: \"@yearly\"\nbackground: true\nisolated: true\nallowed_tools: [Read]\n---\nRead the list.\n";

/// Returns the bot without a login. A new login reaches `accounts`.
fn logged_out(bot: TestBot, accounts: &Accounts) -> TestBot {
    let bot = bot.env("OLLIM_AGENT_CLIENT", "auto").env("ANTHROPIC_API_KEY", "");
    accounts.environment().into_iter().fold(bot, |bot, (name, value)| bot.env(name, &value))
}

fn credentials(bot: &TestBot, ends: i64) {
    let file = bot.person().join(".claude/.credentials.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let oauth = json!({
        "accessToken": "sk-ant-oat01-old", "refreshToken": "sk-ant-ort01-old", "expiresAt": ends,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    });
    std::fs::write(&file, json!({ "claudeAiOauth": oauth }).to_string()).unwrap();
}

fn link(text: &str) -> &str {
    text.split_whitespace().find(|word| word.starts_with("https://")).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_person_logs_the_agent_in_from_their_phone_and_what_waited_goes_on() {
    for real in client::each() {
        let accounts = Accounts::start();
        let api = MessagesApi::answering(|_| Reply::say("It is short."));
        let bot = logged_out(bot_with_phone(&api).client(&real, api.url()), &accounts);
        bot.write("routines/list.md", JOB);
        let service = bot.start();
        let phone = Phone { bot: &bot, service: &service };
        bot.ok(["fire", "list"]);
        let told = phone.next_message("is not logged in");
        phone.press(&told, "Log in");
        let first = phone.next_message("Open this link")["notice"].as_str().unwrap().to_owned();
        assert!(link(&first).contains("/oauth/authorize?"), "{first}");

        accounts.refuses(true);
        phone.say("a-wrong-code#of-somebody");
        phone.next_message("the login did not work: ");
        assert_eq!(accounts.asked().last().unwrap()["grant_type"], "authorization_code");
        // The code of a finished login is an ordinary message, and there is no agent to talk with.
        phone.say("a-wrong-code#of-somebody-else");
        phone.next_message("there is no agent to talk with");

        accounts.refuses(false);
        phone.say("/login");
        let again = service.until("a second link", || {
            let got = phone.deliveries();
            let links =
                got.iter().filter_map(|one| one["notice"].as_str()).filter(|text| text.contains("Open this link"));
            links.map(link).find(|other| *other != link(&first)).map(str::to_owned)
        });
        assert_ne!(again, link(&first));
        phone.say("the-right-code#the-rest-of-it");
        phone.next_message("the agent is logged in");
        let asked = accounts.asked();
        assert_eq!(asked.last().unwrap()["code"], "the-right-code");

        let run = service.until_ended("list", 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{run:#}");
        assert_eq!(api.last().headers["authorization"], "Bearer sk-ant-oat01-1");
        phone.next_message("logged in again");
        service.stop();
        let said = bot.ok(["inbox", "-n", "1000"]);
        let all = format!("{said}{}", bot.read("state/log/ollim-bot.log").unwrap_or_default());
        assert!(!all.contains("the-right-code") && !all.contains("sk-ant-"), "{all}");
        bot.until_no_processes();
    }
}

#[test]
fn a_login_that_has_ended_is_renewed_before_a_run() {
    for real in client::each() {
        let accounts = Accounts::start();
        let api = MessagesApi::answering(|_| Reply::say("It is short."));
        let bot = logged_out(TestBot::with_client(&real, api.url()), &accounts);
        credentials(&bot, 1_700_000_000_000);
        bot.write("routines/list.md", JOB);
        let service = bot.start();
        bot.ok(["fire", "list"]);
        assert_eq!(service.until_ended("list", 1)[0]["outcome"], "completed");
        assert_eq!(api.last().headers["authorization"], "Bearer sk-ant-oat01-1");
        let asked = accounts.asked();
        assert_eq!(asked.iter().map(|one| &one["refresh_token"]).collect::<Vec<_>>(), ["sk-ant-ort01-old"]);
        bot.ok(["fire", "list"]);
        assert_eq!(service.until_ended("list", 2)[0]["outcome"], "completed");
        assert_eq!(accounts.asked().len(), 1, "one that is good is left alone");

        // The person is notified of a login that cannot be renewed, and the service waits for a new one.
        accounts.refuses(true);
        credentials(&bot, 1_700_000_000_000);
        bot.ok(["fire", "list"]);
        let told = |inbox: &Value| {
            inbox.as_array().unwrap().iter().any(|one| one["text"].to_string().contains("not logged in"))
        };
        service.until("it is told", || told(&bot.json(["inbox"])).then_some(()));
        assert!(bot.runs("list")[0]["retry_at"].is_string(), "it waits: {:#?}", bot.runs("list"));
        service.stop();
        bot.until_no_processes();
    }
}

#[test]
fn a_login_by_a_variable_is_none_to_be_replaced() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("routines/list.md", JOB);
    let service = bot.start();
    let refused = bot.run(["login"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the login comes from ANTHROPIC_API_KEY in the environment"), "{refused:?}");
    let remedy = "change ANTHROPIC_API_KEY in the environment, or take it out and log in with `ollim-bot login`";
    assert!(refused.stderr.contains(remedy), "{refused:?}");

    // Every report of a login that the API refuses names it, with a remedy, once.
    bot.ok(["fire", "list"]);
    let told = service.until("it is told", || {
        let inbox = bot.ok(["inbox"]);
        inbox.contains("Jobs for the agent wait").then_some(inbox)
    });
    assert_eq!((told.matches("not logged in").count(), told.matches(remedy).count()), (1, 1), "{told}");
    assert!(told.contains("routine list is tried again every 5 minutes"), "{told}");
    let run = bot.runs("list")[0]["run"].as_str().unwrap().to_owned();
    for args in [vec!["runs", "show", &run], vec!["doctor"]] {
        let ran = bot.run(&args);
        assert!(ran.stdout.replace("\n", " ").contains(remedy), "{ran:?}");
    }
    let refused = bot.run(["login", "code#more"]);
    assert!(refused.stderr.contains("no login waits for a code"), "{refused:?}");
    service.stop();
}
