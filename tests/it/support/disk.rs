//! Disks that can be filled and folders that cannot be written, for a service in a mount namespace of its own. No privilege is
//! needed if the kernel permits user namespaces. The mounts are invisible outside and end with the service.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bot::{CommandOutput, Service, TestBot};

/// Returns whether this machine lets a test mount something. If not, prints to standard error that the test is skipped.
#[allow(clippy::print_stderr, reason = "a test says what it leaves out")]
pub fn can_mount() -> bool {
    let mut try_it = Command::new("unshare");
    try_it.args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    let can = try_it.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("not tried: no mount namespace of one's own here (unshare --user --mount)");
    }
    can
}

/// A service in its own mount namespace.
pub struct NamespacedService<'a> {
    pub service: Service<'a>,
    bot: &'a TestBot,
}

impl<'a> NamespacedService<'a> {
    /// Starts the service on a copy of the data folder, on a disk of `kib` KiB, and waits until it is ready.
    #[track_caller]
    pub fn on_disk_of(kib: u32, bot: &'a TestBot) -> Self {
        let script = format!(
            "mkdir \"$HOME/disk\" && mount -t tmpfs -o size={kib}k,nr_inodes=20000,mode=700 tmpfs \"$HOME/disk\" && \
             cp -a \"$OLLIM_HOME/.\" \"$HOME/disk\" && mount --move \"$HOME/disk\" \"$OLLIM_HOME\" && exec \"$0\" \"$@\""
        );
        Self::start(bot, &script)
    }

    /// Makes as many files as the disk can hold. Returns their folder.
    pub fn fill_with_files(&self) -> PathBuf {
        let folder = self.path("filler");
        fs::create_dir(&folder).unwrap();
        for number in 0.. {
            if fs::write(folder.join(number.to_string()), "").is_err() {
                break;
            }
        }
        folder
    }

    /// Starts the service on the data folder as it is.
    #[track_caller]
    pub fn beside(bot: &'a TestBot) -> Self {
        Self::start(bot, "exec \"$0\" \"$@\"")
    }

    #[track_caller]
    fn start(bot: &'a TestBot, script: &str) -> Self {
        let around = ["--user", "--map-root-user", "--mount", "sh", "-c", script];
        let service = bot.spawn(around_it("unshare", around, &bot.command(["run"])));
        service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
        Self { service, bot }
    }

    /// Returns a path of the data folder as the service sees it.
    pub fn path(&self, relative: &str) -> PathBuf {
        let home = self.bot.path(relative);
        Path::new(&format!("/proc/{}/root", self.service.pid())).join(home.strip_prefix("/").unwrap())
    }

    /// Runs `ollim-bot` in the service's namespace.
    pub fn run<const N: usize>(&self, args: [&str; N]) -> CommandOutput {
        self.enter(&self.bot.command(args))
    }

    /// Runs one read command with `--json`, which must succeed.
    #[track_caller]
    pub fn json<const N: usize>(&self, args: [&str; N]) -> serde_json::Value {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Mounts or unmounts something in the service's namespace.
    #[track_caller]
    pub fn mount(&self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        command.args(args).env("PATH", std::env::var_os("PATH").unwrap());
        let ran = self.enter(&command);
        assert_eq!(ran.code, 0, "{program} {args:?}: {ran:#?}");
    }

    fn enter(&self, command: &Command) -> CommandOutput {
        let pid = self.service.pid().to_string();
        CommandOutput::of(around_it(
            "nsenter",
            ["--preserve-credentials", "--user", "--mount", "--target", &pid, "--"],
            command,
        ))
    }

    /// Writes a file until the disk has no room for a single byte. Returns its path.
    pub fn fill(&self) -> PathBuf {
        let path = self.path("filler");
        let mut file = OpenOptions::new().create_new(true).write(true).open(&path).unwrap();
        for size in [65_536, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

/// Runs one command on the data folder while its disk is read-only.
pub fn run_read_only<const N: usize>(bot: &TestBot, args: [&str; N]) -> CommandOutput {
    let script = "mount --bind \"$OLLIM_HOME\" \"$OLLIM_HOME\" && mount -o remount,ro,bind \"$OLLIM_HOME\" && \
                  exec \"$0\" \"$@\"";
    let around = ["--user", "--map-root-user", "--mount", "sh", "-c", script];
    CommandOutput::of(around_it("unshare", around, &bot.command(args)))
}

/// Returns `outer … PROGRAM ARGS` with the environment and folder of `inner`.
fn around_it<const N: usize>(outer: &str, args: [&str; N], inner: &Command) -> Command {
    let mut command = Command::new(outer);
    command.args(args).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    if let Some(folder) = inner.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Overwrites the beginning of a file in place, which needs no room even on a full disk.
pub fn overwrite(path: &Path, text: &str) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
}

/// Returns the names in a folder, sorted, including hidden ones.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
