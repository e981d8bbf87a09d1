//! A machine in its own namespaces with a real systemd, on which nothing of this machine changes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::bot::{CommandOutput, TestBot};
use super::{processes, wait};

const SYSTEMD: &str = "/lib/systemd/systemd";

/// The preparations that a boot and a login would make.
const BOOT: &str = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0 \
                    && echo on && exec sleep infinity";

/// A machine in its own namespaces, with the person's systemd. Dropping the value cuts its power.
pub struct Machine {
    power: Child,
    /// The person's systemd.
    manager: Option<Child>,
    /// The process id of the machine's first process, as seen from outside.
    first: u32,
}

impl Machine {
    /// Boots a machine. Returns `None` if this user may not create one, or without systemd; standard error then says so, and so does
    /// `scripts/test` at its end.
    #[expect(clippy::print_stderr, reason = "a test says what it could not show")]
    pub fn boot(bot: &TestBot) -> Option<Self> {
        let booted = Self::try_boot(bot);
        if booted.is_none() {
            eprintln!("SKIPPED: a machine of its own needs root, `unshare`, `nsenter` and systemd");
        }
        booted
    }

    fn try_boot(bot: &TestBot) -> Option<Self> {
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
    pub fn command(&self, bot: &TestBot, program: &str, args: &[&str]) -> Command {
        let person = bot.command([""; 0]);
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--pid", "--target", &self.first.to_string(), program]).args(args);
        command.current_dir(bot.person()).env_clear();
        command.envs(person.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("XDG_RUNTIME_DIR", "/run/user/0").stdin(Stdio::null());
        command
    }

    /// Returns a command of our program on the machine.
    pub fn ollim_bot(&self, bot: &TestBot, args: &[&str]) -> Command {
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
