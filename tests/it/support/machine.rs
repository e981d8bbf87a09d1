//! A machine in its own namespaces with a real systemd, on which nothing of this machine changes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::bot::{CommandOutput, TestBot};
use super::{processes, wait};

const SYSTEMD: &str = "/lib/systemd/systemd";

/// The preparations that a boot and a login would make.
const BOOT: &str = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0 \
                    && echo on && exec sleep infinity";

/// The units of a machine that do nothing on it: its own would set up this machine's kernel and empty its `/tmp`.
const TARGETS: [&str; 6] = ["basic", "multi-user", "network-online", "shutdown", "sysinit", "time-sync"];

/// Has systemd boot the machine, with the units in the folder `$1`, in control groups below the one that the environment names.
const BOOT_SYSTEM: &str = r#"
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
mount -t tmpfs tmpfs /usr/lib/systemd/system-generators
mount --bind "$1/vendor" /usr/lib/systemd/system
mount --bind "$1/own" /etc/systemd/system
if [ -d /sys/fs/cgroup/systemd ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
echo on
export container=other
exec /lib/systemd/systemd --system --unit=multi-user.target >/dev/null 2>&1
"#;

/// Puts the machine into control groups of its own, then starts the words behind its name.
const POWER: &str = r#"
set -e
for at in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  if [ -e "$at/cgroup.procs" ]; then mkdir -p "$at/$0"; echo $$ >"$at/$0/cgroup.procs"; fi
done
exec "$@"
"#;

/// A machine in its own namespaces, with a systemd. Dropping the value cuts its power.
pub struct Machine {
    power: Child,
    /// The person's systemd.
    manager: Option<Child>,
    /// The process id of the machine's first process, as seen from outside.
    first: u32,
    /// The name of its control groups.
    groups: Option<String>,
}

impl Machine {
    /// Boots a machine on which the person's systemd runs. Returns `None` if this user may not create one, or without systemd; standard
    /// error then says so, and so does `scripts/test` at its end.
    pub fn boot(bot: &TestBot) -> Option<Self> {
        said(Self::try_boot(bot))
    }

    /// Boots a machine whose first process is systemd. `units` keeps what is installed on it. See [`Self::boot`].
    pub fn boot_system(bot: &TestBot, units: &Path) -> Option<Self> {
        said(Self::try_boot_system(bot, units))
    }

    fn try_boot(bot: &TestBot) -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c", BOOT]);
        let mut machine = Self::turned_on(unshare)?;
        let mut manager = machine.command(bot, SYSTEMD, &["--user"]);
        machine.manager = manager.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
        machine.until_systemd_answers(bot, &["--user", "show", "--property", "Version"]);
        Some(machine)
    }

    fn try_boot_system(bot: &TestBot, units: &Path) -> Option<Self> {
        static MACHINES: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        for folder in ["vendor", "own"] {
            fs::create_dir_all(units.join(folder)).unwrap();
        }
        for target in TARGETS {
            let text = format!("[Unit]\nDescription={target}\n");
            fs::write(units.join("vendor").join(format!("{target}.target")), text).unwrap();
        }
        let groups = format!("ollim-test-{}-{}", std::process::id(), MACHINES.fetch_add(1, Ordering::Relaxed));
        let mut power = Command::new("sh");
        power.args(["-c", POWER, &groups, "unshare", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "--mount"]);
        power.args(["--mount-proc", "--kill-child", "sh", "-c", BOOT_SYSTEM, "sh"]).arg(units);
        let mut machine = Self::turned_on(power)?;
        machine.groups = Some(groups);
        machine.until_systemd_answers(bot, &["is-active", "multi-user.target"]);
        Some(machine)
    }

    /// Starts the machine and waits for its first word.
    fn turned_on(mut power: Command) -> Option<Self> {
        if !Path::new(SYSTEMD).exists() {
            return None;
        }
        let mut power = power.stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(power.stdout.take()?).read_line(&mut line).ok()?;
        let first = processes::all().into_iter().find(|process| process.parent == power.id())?.pid;
        let machine = Self { power, manager: None, first, groups: None };
        (line == "on\n").then_some(machine)
    }

    fn until_systemd_answers(&self, bot: &TestBot, question: &[&str]) {
        let answer = || CommandOutput::of(self.command(bot, "systemctl", question));
        wait::until("systemd answers", || (answer().code == 0).then_some(()), || format!("{:?}", answer()));
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

/// Says that a test shows nothing here.
#[expect(clippy::print_stderr, reason = "a test says what it could not show")]
fn said(booted: Option<Machine>) -> Option<Machine> {
    if booted.is_none() {
        eprintln!("SKIPPED: a machine of its own needs root, `unshare`, `nsenter` and systemd");
    }
    booted
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power.kill().unwrap();
        self.power.wait().unwrap();
        if let Some(manager) = &mut self.manager {
            manager.wait().unwrap();
        }
        let Some(groups) = &self.groups else { return };
        // The machine's processes end a moment later.
        let left = || ["systemd/", "unified/", ""].map(|at| format!("/sys/fs/cgroup/{at}{groups}"));
        let remove =
            || Command::new("find").args(left()).args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]).output();
        let is_gone = || left().iter().all(|folder| !Path::new(folder).exists()).then_some(());
        wait::until(
            "its control groups are gone",
            || remove().ok().and_then(|_| is_gone()),
            || format!("{:?}", left()),
        );
    }
}
