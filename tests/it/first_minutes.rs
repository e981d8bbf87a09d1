//! The first minutes with the program: from nothing to a message on a phone, and past a power cut, following only the screen.

use crate::support::bot::{CommandOutput, TestBot};
use crate::support::machine::Machine;
use crate::support::ntfy::Ntfy;
use crate::support::terminal::Terminal;
use crate::support::wait;

#[test]
fn from_nothing_to_a_message_that_survives_a_power_cut() {
    let ntfy = Ntfy::start();
    let topic = format!("{}/mine", ntfy.url());
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "absent-claude");
    let Some(machine) = Machine::boot(&bot) else { return };
    let mut terminal = Terminal::start(machine.ollim_bot(&bot, &["init"]));
    terminal.answer("Time zone [UTC]:", "");
    terminal.answer("Write samples?", "n");
    terminal.answer("Messages to your phone?", &topic);
    terminal.answer("Talk with the bot?", "");
    terminal.answer("Press Enter when you have", "");
    terminal.answer("Did it come?", "");
    terminal.answer("Have systemd run it", "");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert_eq!(ntfy.topic("mine").len(), 1, "{shown}");
    let came = |machine: &Machine, text: &str| {
        let all = || ntfy.topic("mine");
        let service = || CommandOutput::of(machine.ollim_bot(&bot, &["service", "status"]));
        let found =
            || all().iter().any(|message| message["message"].as_str().is_some_and(|words| words.contains(text)));
        wait::until(text, || found().then_some(()), || format!("{:#?}\n{:?}", all(), service()));
    };
    let add = |machine: &Machine, time: &str, text: &str| {
        let ran = CommandOutput::of(machine.ollim_bot(&bot, &["reminder", "add", "--in", time, text]));
        assert!(ran.code == 0 && !ran.stderr.contains("not running"), "{ran:#?}");
    };
    add(&machine, "3s", "Check the oven");
    came(&machine, "Check the oven");
    add(&machine, "5s", "Water the plants");
    drop(machine);
    // Reminders that fell due while it was off are delivered, and new ones fire as before.
    let machine = Machine::boot(&bot).expect("it was made before");
    came(&machine, "Water the plants");
    add(&machine, "3s", "Call home");
    came(&machine, "Call home");
    let screen = as_in_the_docs(&shown, &bot, &topic);
    let page = include_str!("../../docs/getting-started.md");
    assert!(page.contains(&screen), "docs/getting-started.md shows another screen than:\n{screen}");
}

/// Replaces the parts of a screen that only this test has by those that a person would see.
fn as_in_the_docs(shown: &str, bot: &TestBot, topic: &str) -> String {
    let suggested = shown.lines().find_map(|line| line.strip_prefix("A topic that nobody guesses: ")).unwrap();
    let home = bot.home().to_str().unwrap();
    let unit = shown.lines().find_map(|line| line.strip_prefix("unit    ")).unwrap();
    let process = shown.split_once("(pid ").unwrap().1.split_once(')').unwrap().0;
    let typed = shown
        .replace(suggested, "https://ntfy.sh/ollim-505c4c058992b815")
        .replace(topic, "ntfy.sh/kitchen-7f3a")
        .replace(unit, "ollim-bot.service")
        .replace(home, "~/.ollim-bot")
        .replace(bot.person().to_str().unwrap(), "~")
        .replace("absent-claude", "claude")
        .replace(&format!("pid {process}"), "pid 4711");
    typed.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
