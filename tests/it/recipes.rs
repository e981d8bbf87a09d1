//! docs/recipes.md: each recipe passes the checks and grants what its text says. Some of them also run.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::bot::{TestBot, started_by_fire_only};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

/// One recipe: its file, its text, and its allowed and refused calls.
struct Recipe {
    file: String,
    text: String,
    claims: Vec<(bool, String)>,
}

impl Recipe {
    fn id(&self) -> &str {
        Path::new(&self.file).file_stem().unwrap().to_str().unwrap()
    }
}

fn recipes() -> Vec<Recipe> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recipes.md")).unwrap();
    let mut found = Vec::new();
    for section in document.split("\n### ").skip(1) {
        let (before, rest) = section.split_once("```markdown\n").expect("a recipe has its file");
        let (text, after) = rest.split_once("```\n").unwrap();
        let file = before.lines().rev().find_map(|line| line.strip_prefix('`')?.strip_suffix('`')).unwrap();
        let claim = |line: &str| {
            let (may, call) = line.strip_prefix("- ")?.split_once(": ")?;
            Some((may == "may", call.trim_matches('`').to_owned()))
        };
        let claims = after.lines().filter_map(claim).collect();
        found.push(Recipe { file: file.to_owned(), text: text.to_owned(), claims });
    }
    found
}

/// Returns a bot with all recipes, and the commands that they name.
fn bot_with(recipes: &[Recipe]) -> TestBot {
    let bot = TestBot::new();
    for name in ["gmail", "cal"] {
        bot.external_command(name, "#!/bin/sh\necho nothing\n");
    }
    recipes.iter().for_each(|recipe| bot.write(&recipe.file, &recipe.text));
    bot
}

#[test]
fn every_recipe_is_in_order() {
    let recipes = recipes();
    assert!(recipes.len() >= 10, "{}", recipes.len());
    let bot = bot_with(&recipes);
    let checked = bot.json(["check"]);
    assert_eq!((&checked["definitions"], &checked["problems"]), (&json!(recipes.len()), &json!([])), "{checked:#}");
    let mut jobs = bot.json(["routine", "list"]).as_array().unwrap().clone();
    jobs.extend(bot.json(["reminder", "list"]).as_array().unwrap().clone());
    for job in jobs {
        let agent = job["client"] != "notify";
        assert_eq!(job["max_cost_usd"].is_number(), agent, "what has an agent has a limit: {job:#}");
        let listed = !job["allowed_tools"].is_null();
        assert_eq!(listed, agent && job["background"] == true, "{job:#}");
        let recipe = recipes.iter().find(|recipe| job["id"] == recipe.id()).unwrap();
        assert_eq!(recipe.claims.len() > 1, listed, "{} says what it may do", recipe.file);
    }
}

#[test]
fn each_grants_what_its_text_says() {
    let recipes = recipes();
    let bot = bot_with(&recipes);
    std::fs::create_dir(bot.person().join("programs")).unwrap();
    for program in ["gh", "git", "df"] {
        client::executable(&bot.person().join("programs").join(program), "#!/bin/sh\n");
    }
    let path = format!("{}:{}", bot.person().join("programs").display(), std::env::var("PATH").unwrap());
    let bot = bot.env("PATH", &path);
    std::fs::create_dir_all(bot.path("work/site")).unwrap();
    std::fs::create_dir_all(bot.path("work/other")).unwrap();
    for recipe in &recipes {
        for (may, call) in &recipe.claims {
            let is_tool = call.starts_with("mcp__") || call.starts_with(char::is_uppercase);
            let how = if is_tool { "--tool" } else { "--command" };
            let explained = bot.run(["policy", "explain", recipe.id(), how, call]);
            assert_eq!(
                explained.code,
                i32::from(!may),
                "{}: {call}\n{}{}",
                recipe.file,
                explained.stdout,
                explained.stderr
            );
        }
    }
}

fn inbox(bot: &TestBot) -> Vec<String> {
    let messages = bot.json(["inbox", "-n", "100"]);
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn live(bot: &TestBot, id: &str) -> Value {
    for recipe in recipes() {
        bot.write(&recipe.file, &started_by_fire_only(&recipe.text));
    }
    let service = bot.start();
    service.until("it fires", || (bot.run(["fire", id]).code == 0).then_some(()));
    let run = service.until_ended(id, 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
    service.stop();
    bot.until_no_processes();
    run
}

#[test]
fn the_backup_comes_again_until_it_is_cancelled() {
    let api = MessagesApi::script([]);
    let bot = bot_with(&recipes()).client(&client::real(), api.url());
    let run = live(&bot, "backup");
    assert_eq!(run["client"], "notify");
    let said = inbox(&bot);
    assert_eq!(said, ["Plug in the disk and back up the laptop.\n\nScheduled: check 2 of 9 in 1h."]);
    let next = bot.json(["reminder", "list"]);
    let next = next.as_array().unwrap().iter().find(|reminder| reminder["chain_parent"] == "backup").unwrap().clone();
    assert_eq!((&next["client"], &next["chain_depth"]), (&json!("notify"), &json!(1)));
    bot.ok(["reminder", "cancel", next["id"].as_str().unwrap()]);
    assert_eq!(bot.names("reminders"), ["build.md"], "the chain is at its end");
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn the_word_of_the_day_is_sent_and_noted() {
    let word = "Saudade: longing. Tenho saudade do mar.";
    let api = MessagesApi::script([
        Reply::call("Read", json!({ "file_path": "words.md" })),
        Reply::call("Edit", json!({ "file_path": "words.md", "old_string": "mar\n", "new_string": "mar\nsaudade\n" })),
        Reply::call("mcp__discord__ping_user", json!({ "message": word })),
        Reply::say("Sent."),
    ]);
    let bot = bot_with(&recipes()).client(&client::real(), api.url());
    bot.write("work/words.md", "mar\n");
    live(&bot, "word");
    assert_eq!(bot.read("work/words.md").unwrap(), "mar\nsaudade\n");
    assert_eq!(inbox(&bot), [format!("[bg] {word}")]);
}

#[test]
fn the_disk_is_looked_at_and_nothing_else_is_started() {
    let api = MessagesApi::script([
        Reply::bash("df -h / && touch evil"),
        Reply::call("mcp__discord__ping_user", json!({ "message": "The disk is 93 % full." })),
        Reply::say("Sent."),
    ]);
    let bot = bot_with(&recipes()).client(&client::real(), api.url());
    let run = live(&bot, "disk-space");
    assert_eq!(inbox(&bot), ["[bg] The disk is 93 % full."]);
    assert_eq!(bot.names("work"), Vec::<String>::new());
    let shown = bot.ok(["runs", "show", run["run"].as_str().unwrap()]);
    assert!(shown.contains("touch"), "the refused start is in the record: {shown}");
}
