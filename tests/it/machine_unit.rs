//! The service under a real systemd of the machine: hardened, as a user who is not root, killed, and after a power cut.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::bot::{CommandOutput, TestBot, now};
use crate::support::machine::Machine;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::{client, installed, wait};

/// A user's bot on a machine of its own, which root has installed there.
struct Installed {
    bot: TestBot,
    machine: Option<Machine>,
    programs: PathBuf,
    units: PathBuf,
    unit: String,
}

impl Installed {
    /// Installs the service by its own command. Returns `None` where no machine can be made.
    fn new(bot: TestBot) -> Option<Self> {
        let (units, programs) = (bot.person().join("units"), installed::programs(&bot));
        let machine = Machine::boot_system(&bot, &units)?;
        let mut installed = Self { bot, machine: Some(machine), programs, units, unit: String::new() };
        let done = installed.run(&["service", "install", "--system"]);
        assert!(done.starts_with("installed /etc/systemd/system/"), "{done}");
        // The machine's unit is found without `--system`.
        let status = installed.json(&["service", "status"])["status"].clone();
        assert_eq!((&status["active"], &status["enabled"]), (&"active".into(), &true.into()), "{status:#}");
        status["unit"].as_str().unwrap().clone_into(&mut installed.unit);
        Some(installed)
    }

    /// Runs a command of the installed program as root.
    fn output(&self, args: &[&str]) -> CommandOutput {
        let program = self.programs.join("ollim-bot");
        CommandOutput::of(self.machine.as_ref().unwrap().command(&self.bot, program.to_str().unwrap(), args))
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let ran = self.output(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        ran.stdout
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[&["--json"], args].concat())).unwrap()
    }

    fn systemctl(&self, args: &[&str]) -> String {
        CommandOutput::of(self.machine.as_ref().unwrap().command(&self.bot, "systemctl", args)).stdout.trim().to_owned()
    }

    fn fact(&self, name: &str) -> String {
        self.systemctl(&["show", &self.unit, "--value", "--property", name])
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        wait::until(what, || holds().then_some(()), || self.systemctl(&["--no-pager", "show", &self.unit]));
    }

    /// Sets lines of the unit, as `systemctl edit` does, and restarts the service.
    fn edit(&self, lines: &str) {
        let folder = self.units.join("own").join(format!("{}.d", self.unit));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("test.conf"), format!("[Service]\n{lines}")).unwrap();
        self.systemctl(&["daemon-reload"]);
        self.run(&["service", "restart"]);
    }

    fn cut_power(&mut self) {
        self.machine = None;
    }

    fn boot(&mut self) {
        self.machine = Machine::boot_system(&self.bot, &self.units);
    }
}

/// Returns a bot of a user who is not root, outside of `/tmp`: the unit has a `/tmp` of its own.
fn bot(client: Option<&Path>, url: &str) -> Option<TestBot> {
    let person = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(person.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let home = person.path().canonicalize().unwrap().join("bot");
    let bot = TestBot::with_home(person, home);
    match client {
        Some(client) => bot.client(client, url).unprivileged(client),
        None => bot.env("OLLIM_AGENT_CLIENT", "notify").unprivileged(Path::new("/bin/sh")),
    }
}

#[test]
fn it_runs_as_the_owner_and_is_there_again_after_a_kill_and_a_power_cut() {
    let Some(bot) = bot(None, "") else { return };
    let Some(mut service) = Installed::new(bot) else { return };
    let job = "---\ncron: '0 3 29 2 *'\nclient: exec\ncommand: \"id -un; cat mine\"\nbackground: true\n\
               allowed_tools: ['Bash(id *)', 'Read(mine)']\n---\n";
    service.bot.write("routines/who.md", job);
    service.bot.write("work/mine", "my own\n");
    let fired = || service.output(&["fire", "who", "--wait"]);
    service.until("it fires", || fired().code == 0);
    let ran = fired();
    assert!(ran.stdout.contains("nobody") && ran.stdout.contains("my own"), "{ran:#?}");

    // What root's commands write belongs to the user, so the service can read it.
    service.run(&["reminder", "add", "--in", "1h", "--id", "tea", "Tea"]);
    let owner = |file: &str| fs::metadata(service.bot.path(file)).unwrap().uid();
    assert_eq!(owner("reminders/tea.md"), owner("work"));
    service.run(&["fire", "tea", "--wait"]);

    service.edit("RestartSec=1\n");
    let killed = service.fact("MainPID");
    service.systemctl(&["kill", "--signal", "KILL", &service.unit]);
    service.until("another process is ready", || {
        !["0", &killed].contains(&service.fact("MainPID").as_str()) && service.fact("ActiveState") == "active"
    });
    assert_eq!(service.fact("NRestarts"), "1");

    service.run(&["reminder", "add", "--in", "2s", "--id", "milk", "Milk"]);
    let due = now() + TimeDelta::seconds(2);
    service.cut_power();
    wait::until("it is due", || (now() > due).then_some(()), || due.to_string());
    service.boot();
    let outcome = || service.json(&["runs", "milk"])[0]["outcome"].as_str().unwrap_or_default().to_owned();
    service.until("what was missed is done", || outcome() == "completed");
    assert_eq!(service.json(&["runs", "milk"]).as_array().unwrap().len(), 1);

    service.run(&["service", "uninstall"]);
    assert_eq!(service.fact("LoadState"), "not-found");
    assert!(service.bot.path("state").is_dir(), "the data folder stays");
}

#[test]
fn the_agent_and_its_sandbox_work_in_the_hardened_unit() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let client = client::for_all_users(&folder);
    let api = MessagesApi::script([Reply::bash("ls; cat /etc/passwd"), Reply::bash("ls")]);
    let Some(bot) = bot(Some(&client), api.url()) else { return };
    let Some(service) = Installed::new(bot) else { return };
    service.edit(&format!(
        "Environment=ANTHROPIC_API_KEY=sk-test-not-a-key ANTHROPIC_BASE_URL={} HOME={}\n",
        api.url(),
        service.bot.path("work").display()
    ));
    let job = "---\ncron: '0 3 29 2 *'\nbackground: true\nisolated: true\nallowed_tools: ['Bash(ls *)']\n---\nLook.\n";
    service.bot.write("routines/look.md", job);
    service.bot.write("work/mine", "");
    service.until("it fires", || service.output(&["fire", "look", "--wait"]).code == 0);
    let run = service.json(&["runs", "look"])[0].clone();
    let shown = service.run(&["runs", "show", run["run"].as_str().unwrap(), "--transcript"]);
    assert!(run["outcome"] == "completed" && shown.contains("mine") && !shown.contains("root:x:0"), "{shown}");
}
