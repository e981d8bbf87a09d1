//! The first minutes with the program: from nothing to a message on a phone, and past a power cut, following only the screen.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::bot::{CommandOutput, TestBot};
use crate::support::ntfy::Ntfy;
use crate::support::processes;
use crate::support::terminal::Terminal;
use crate::support::wait;

const SYSTEMD: &str = "/lib/systemd/systemd";

/// The preparations that a boot and a login would make.
const BOOT: &str = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0 \
                    && echo on && exec sleep infinity";

/// A machine in its own namespaces, with the person's systemd. Dropping the value cuts its power.
struct Machine {
    power: Child,
    /// The person's systemd.
    manager: Option<Child>,
    /// The process id of the machine's first process, as seen from outside.
    first: u32,
}

impl Machine {
    /// Boots a machine. Returns `None` if this user may not create one, or without systemd.
    fn boot(bot: &TestBot) -> Option<Self> {
        if !Path::new(SYSTEMD).exists() {
            return None;
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c", BOOT]);
        let mut power = unshare.stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(power.stdout.take()?).read_line(&mut line).ok()?;
        let first = processes::all().into_iter().find(|process| process.parent == power.id())?.pid;
        let mut machine = Self { power, manager: None, first };
        if line != "on\n" {
            return None;
        }
        let mut manager = machine.command(bot, SYSTEMD, &["--user"]);
        machine.manager = manager.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
        let answers =
            || CommandOutput::of(machine.command(bot, "systemctl", &["--user", "show", "--property", "Version"]));
        wait::until("systemd answers", || (answers().code == 0).then_some(()), || format!("{:?}", answers()));
        Some(machine)
    }

    /// Returns a command on the machine, in the person's environment.
    fn command(&self, bot: &TestBot, program: &str, args: &[&str]) -> Command {
        let person = bot.command([""; 0]);
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--pid", "--target", &self.first.to_string(), program]).args(args);
        command.current_dir(bot.person()).env_clear();
        command.envs(person.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("XDG_RUNTIME_DIR", "/run/user/0").stdin(Stdio::null());
        command
    }

    /// Returns a command of our program on the machine.
    fn ollim_bot(&self, bot: &TestBot, args: &[&str]) -> Command {
        self.command(bot, env!("CARGO_BIN_EXE_ollim-bot"), args)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power.kill().unwrap();
        self.power.wait().unwrap();
        if let Some(manager) = &mut self.manager {
            manager.wait().unwrap();
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test says what it could not show")]
fn from_nothing_to_a_message_that_survives_a_power_cut() {
    let ntfy = Ntfy::start();
    let topic = format!("{}/mine", ntfy.url());
    let bot = TestBot::bare().env("OLLIM_CLAUDE", "absent-claude");
    let Some(machine) = Machine::boot(&bot) else {
        eprintln!("not shown here: a machine of its own needs root, `unshare`, `nsenter` and systemd");
        return;
    };
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
