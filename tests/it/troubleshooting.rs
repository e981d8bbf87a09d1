//! docs/troubleshooting.md: in a folder in the state of a step, each command of that step prints the documented output.

use std::path::Path;

use crate::support::bot::{Service, TestBot, now, reminder};

/// A step: its title, and its commands with the output of each.
struct Step {
    title: String,
    commands: Vec<(Vec<String>, Vec<String>)>,
}

fn steps() -> Vec<Step> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md");
    let text = std::fs::read_to_string(file).unwrap();
    let step = |section: &str| {
        let (title, rest) = section.split_once('\n').unwrap();
        let block = rest.split_once("```console\n").unwrap().1.split_once("```\n").unwrap().0;
        let mut commands: Vec<(Vec<String>, Vec<String>)> = Vec::new();
        for line in block.lines() {
            match (line.strip_prefix("$ ollim-bot "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.split(' ').map(String::from).collect(), Vec::new())),
                (None, Some((_, said))) => said.push(line.to_owned()),
                (None, None) => panic!("{title}: {line}"),
            }
        }
        Step { title: title.to_owned(), commands }
    };
    text.split("\n## ").skip(1).map(step).collect()
}

/// Returns the commands in the sentences of the document, with `run` for each run's id.
fn in_sentences(run: &str) -> Vec<Vec<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md");
    let text = std::fs::read_to_string(file).unwrap();
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let spans = prose.join(" ").replace('\n', " ");
    let commands = spans.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("ollim-bot ")).map(|line| {
        // Text in quotes is one word.
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(String::from).collect(),
            _ => vec![part.to_owned()],
        });
        words.map(|word| if ["RUN", "5a91c0de"].contains(&&*word) { run.to_owned() } else { word }).collect()
    });
    commands.collect()
}

#[test]
fn every_command_in_a_sentence_is_understood() {
    let bot = TestBot::new();
    water(&bot, PLAIN);
    let service = bot.start();
    let run = service.fire("water")["run"].as_str().unwrap().to_owned();
    let commands = in_sentences(&run);
    assert!(commands.len() >= 9, "{commands:?}");
    for mut command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words[..] {
            // It installs nothing here and reports the state of this machine.
            ["service", "install"] => command.push("--print".into()),
            ["doctor"] => {
                assert!(bot.run(&command).stdout.contains("service"), "{command:?}");
                continue;
            }
            _ => {}
        }
        let ran = bot.run(&command);
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    }
    service.stop();
}

/// Returns whether a line matches: the parts of `meant` in order, with any text for each `…`.
fn is(line: &str, meant: &str) -> bool {
    let mut rest = line;
    meant.split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

const PLAIN: &str = "client: notify\n";

/// Writes a routine that fires neither today nor tomorrow, since times on those days are printed without the day.
fn water(bot: &TestBot, fields: &str) {
    let day = (now() + chrono::TimeDelta::days(3)).format("%a");
    bot.write("routines/water.md", &format!("---\ncron: '0 18 * * {day}'\n{fields}---\nWater the plants.\n"));
}

fn fire<'a>(bot: &'a TestBot, times: usize) -> Service<'a> {
    let service = bot.start();
    for count in 1..=times {
        service.until("it fires", || (bot.run(["fire", "water"]).code == 0).then_some(()));
        service.until_ended("water", count);
    }
    service
}

/// Puts the folder into the state of a step. Returns the service if it should run.
fn set_up<'a>(title: &str, bot: &'a TestBot) -> Option<Service<'a>> {
    match title.split_once(". ").map_or(title, |(number, _)| number) {
        "1" | "First: ask why" => water(bot, PLAIN),
        "2" => water(bot, "timeout: soon\n"),
        "3" => water(bot, "enabled: false\n"),
        "4" => {
            water(bot, PLAIN);
            let service = bot.start();
            bot.ok(["pause"]);
            return Some(service);
        }
        "5" => {
            water(bot, "client: claude\n");
            return Some(fire(bot, 10));
        }
        "6" => {
            water(bot, "client: claude\n");
            return Some(bot.start());
        }
        "7" => water(bot, PLAIN),
        "8" => {
            bot.write(
                "reminders/water.md",
                &reminder(now() - chrono::TimeDelta::days(2), "on_missed: skip\n", "Water."),
            );
            let service = bot.start();
            service.until_ended("water", 1);
            return Some(service);
        }
        "9" => {
            water(bot, "client: claude\n");
            return Some(fire(bot, 1));
        }
        "10" => {
            bot.write("reminders/water.md", &reminder(now(), "client: claude\nretry: 0\n", "Water."));
            let service = bot.start();
            service.until("it has failed", || (bot.names("reminders/failed") == ["water.md"]).then_some(()));
            assert_eq!(bot.json(["status"])["failed_reminders"], serde_json::json!(["water"]));
            let status = bot.run(["status"]).stdout;
            assert!(status.contains("the reminder water (`ollim-bot reminder list` says why"), "{status}");
            return Some(service);
        }
        "11" | "None of it" => {
            water(bot, PLAIN);
            return Some(fire(bot, 1));
        }
        other => panic!("there is no state for {other}"),
    }
    None
}

#[test]
fn every_step_is_as_it_stands_there() {
    let steps = steps();
    assert!(steps.len() >= 10);
    for Step { title, commands } in steps {
        let bot = TestBot::new();
        // Only the sixth is about the choice of the client.
        let bot = match title.starts_with("6.") {
            true => bot.env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", "/nowhere/claude"),
            false => bot,
        };
        let service = set_up(&title, &bot);
        for (command, said) in commands {
            assert!(!said.is_empty(), "{title}: {command:?} says something");
            let ran = bot.run(&command);
            let shown = format!("{}{}", ran.stdout, ran.stderr);
            for meant in said {
                assert!(
                    shown.lines().any(|line| is(line, &meant)),
                    "{title}: {command:?}: {meant:?} is not in\n{shown}"
                );
            }
        }
        if let Some(service) = service {
            service.stop();
        }
    }
}
