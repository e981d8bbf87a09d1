//! Tables on a narrow terminal: no line is wider than the terminal, and no word that fits is broken.

use crate::support::bot::{TestBot, now, reminder};
use crate::support::terminal::Terminal;
use chrono::TimeDelta;
use unicode_width::UnicodeWidthStr as _;

/// Returns whether the word is a span, a part of one, or the time of now (`doctor` shows it to the minute). It may differ a second later:
/// `now` becomes `1s ago`.
fn changes(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let is_clock = parts.len() > 1 && parts.iter().all(|part| part.len() == 2 && part.parse::<u8>().is_ok());
    is_clock
        || ["now", "ago"].contains(&word.trim_end_matches(':'))
        || word.trim_matches(|c: char| !c.is_ascii_digit() && c != '.').parse::<f64>().is_ok()
}

#[track_caller]
fn fits(bot: &TestBot, args: &[&str], columns: u16) {
    let whole = bot.run(args).stdout;
    let words: Vec<&str> = whole.split_whitespace().map(|word| word.trim_end_matches('…')).collect();
    let (_, shown) = Terminal::narrow(bot.command(args), columns).end();
    assert!(!shown.trim().is_empty(), "{args:?}");
    for line in shown.lines() {
        let length = line.width();
        assert!(length <= columns.into(), "{args:?} at {columns}: {length} columns: {line}\n{shown}");
        for word in line.split_whitespace().map(|word| word.trim_end_matches('…')).filter(|word| !changes(word)) {
            // A path may be longer than a line.
            let is_part = words.iter().any(|known| known.len() > usize::from(columns) / 2 && known.contains(word));
            assert!(words.contains(&word) || is_part, "{args:?} at {columns}: {word} was broken\n{shown}\n{whole}");
        }
    }
}

#[test]
fn no_line_is_longer_than_the_terminal_and_no_word_is_broken() {
    let bot = TestBot::new();
    let long = "Go through everything that has come since yesterday and say in a few words what matters most to me";
    let (mail, backup, dentist) = ("sort-the-mail-of-day", "check-the-backup-now", "call-the-new-dentist");
    assert!([mail, backup, dentist].iter().all(|id| id.len() == 20));
    bot.write(
        &format!("routines/{mail}.md"),
        &format!("---\ncron: '30 8 * * 1-5'\ntimezone: Europe/Berlin\ndescription: {long}\nbackground: true\nisolated: true\nmodel: haiku\nallowed_tools: [Read]\n---\n{long}\n"),
    );
    let failing = format!("echo '{long}' >&2; exit 3");
    bot.write(
        &format!("routines/{backup}.md"),
        &format!("---\ncron: '0 3 29 2 *'\nclient: exec\ncommand: \"{failing}\"\nallowed_tools: []\nretry: 0\n---\n"),
    );
    bot.write(&format!("reminders/{dentist}.md"), &reminder(now() + TimeDelta::days(400), "max_chain: 3\n", long));
    let japanese = "昨日から届いたメールをすべて確認して、大切なことを短い言葉で教えてください。";
    bot.write(
        "routines/mails-in-japanese.md",
        &format!("---\ncron: '@daily'\ndescription: {japanese}\n---\n{japanese}\n"),
    );
    bot.write("routines/broken.md", "---\ncron: never\n---\nx\n");
    let service = bot.start();
    let run = service.fire(backup);
    assert_eq!(run["outcome"], "failed", "{run:#}");
    for columns in [80, 60, 40] {
        for args in [
            &["next"][..],
            &["status"],
            &["runs"],
            &["routine", "list"],
            &["reminder", "list"],
            &["channels"],
            &["config"],
            &["policy", "show", mail],
        ] {
            fits(&bot, args, columns);
        }
    }
    // Each command that is named then has the flag.
    let home = bot.path("");
    for columns in [80, 60] {
        for command in ["status", "doctor"] {
            fits(&bot, &["--home", home.to_str().unwrap(), command], columns);
        }
    }
    // At 40 columns an id of 20 letters is longer than what is left for a step.
    for columns in [80, 60, 44] {
        fits(&bot, &["doctor"], columns);
    }
    service.stop();
}

/// Asserts that all that a command says fits a terminal, notes included, with no word broken or lost. Elsewhere its lines stay whole.
#[track_caller]
fn prose_fits(bot: &TestBot, args: &[&str], columns: u16) {
    let piped = bot.run(args);
    let whole = [piped.stdout, piped.stderr].concat();
    let longest = whole.lines().map(|line| line.width()).max().unwrap_or_default();
    assert!(longest > columns.into(), "{args:?} says nothing that is longer than {columns} columns\n{whole}");
    let (_, shown) = Terminal::with_notes(bot.command(args), columns).end();
    let words =
        |text: &str| text.split_whitespace().filter(|word| !changes(word)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown), words(&whole), "{args:?} at {columns}\n{shown}");
    for line in shown.lines() {
        let fits = line.width() <= columns.into() || line.split_whitespace().count() == 1;
        assert!(fits, "{args:?} at {columns}: {line}\n{shown}");
    }
}

#[test]
fn what_is_said_goes_on_between_words() {
    let bot = TestBot::new();
    let job = "---\ncron: '30 8 * * 1-5'\nbackground: true\nisolated: true\nallowed_tools: ['Bash(ollim-bot gmail *)']\n---\nSort.\n";
    bot.write("routines/mail.md", job);
    bot.write("routines/both.md", &job.replace("---\nSort", "disallowed_tools: [WebFetch]\n---\nSort"));
    for columns in [80, 60] {
        for args in [
            &["check"][..],
            &["check", "mail"],
            &["reminder", "add", "Tea", "--at", "next friday"],
            &["policy", "explain", "mail", "--command", "ollim-bot gmail x && touch evil"],
            &["doctor"],
            &["next", "--until", "no such time"],
            &["restore", "no-such-file-of-this-person-in-this-folder.tar"],
        ] {
            prose_fits(&bot, args, columns);
        }
    }
    prose_fits(&bot, &["help"], 60);
    prose_fits(&bot, &[], 80);
}

#[test]
fn what_another_program_reads_stays_whole() {
    let bot = TestBot::new();
    let long = "Go through everything that has come since yesterday and say in a few words what matters most";
    bot.write("routines/mail.md", &format!("---\ncron: '@daily'\ndescription: {long}\n---\n{long}\n"));
    for args in [&["--json", "routine", "list"][..], &["completions", "bash"], &["service", "install", "--print"]] {
        let (_, shown) = Terminal::narrow(bot.command(args), 60).end();
        assert_eq!(shown, bot.run(args).stdout, "{args:?}");
    }
}

#[test]
fn a_setting_of_several_fields_is_broken_between_them() {
    let bot = TestBot::new();
    bot.write("config.yaml", "budget: { day: 5.5, month: 50.5, tokens_day: 2000000 }\n");
    let words = "{ day: 5.5, month: 50.5, tokens_day: 2000000 }";
    assert!(bot.ok(["config"]).contains(words), "{}", bot.ok(["config"]));
    let (_, shown) = Terminal::narrow(bot.command(["config"]), 40).end();
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{shown}");
    assert!(!shown.contains(words), "it is longer than the line\n{shown}");
}
