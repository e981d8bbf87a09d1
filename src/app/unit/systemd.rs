//! Talks to systemd by its own commands, since these find the bus and explain errors.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::app::Environment;
use crate::refusal::Refusal;

/// A folder that exists if systemd booted the machine (sd_booted(3)).
pub(super) const BOOTED: &str = "/run/systemd/system";

/// The properties to query of a unit.
const FACTS: &str = "UnitFileState,ActiveState,MainPID,NRestarts,StatusText";

/// A service manager.
pub(super) struct Manager<'a> {
    /// Whether it is the machine's, rather than the person's own.
    pub(super) system: bool,
    pub(super) env: &'a Environment,
}

impl Manager<'_> {
    /// Checks that the manager can be reached.
    pub(super) fn is_there(&self) -> Result<(), Refusal> {
        let without = "`ollim-bot service install --print` prints the unit; without systemd, have `ollim-bot run` started by what starts \
                       your services";
        match self.call(&["show", "--property", "Version"]) {
            Ok(output) if output.status.success() => Ok(()),
            Ok(_) if !super::is_systemd_there() => {
                Err(Refusal::environment("no systemd runs on this machine").hint(without))
            }
            Ok(output) => {
                let refused = Refusal::environment(format!("systemd cannot be asked: {}", last_line(&output.stderr)));
                Err(if self.system {
                    refused.hint(without)
                } else {
                    refused
                        .hint("your own manager runs while you are logged in: log in as this user by ssh or on a terminal, not by `su` or `sudo`")
                        .hint("or have it always run: `sudo loginctl enable-linger USER`, then set XDG_RUNTIME_DIR=/run/user/UID")
                        .hint(without)
                })
            }
            Err(error) => {
                Err(Refusal::environment(format!("there is no systemd here: `systemctl` cannot be run: {error}"))
                    .hint(without))
            }
        }
    }

    /// Returns its version; `None` if it is unknown.
    pub(super) fn version(&self) -> Option<u32> {
        let output = self.call(&["--version"]).ok()?;
        String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1)?.parse().ok()
    }

    /// Executes a command of `systemctl`.
    pub(super) fn act(&self, words: &[&str]) -> Result<(), Refusal> {
        let output =
            self.call(words).map_err(|error| Refusal::environment(format!("`systemctl` cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let what = words.join(" ");
        let refused = Refusal::environment(format!("`systemctl {what}` failed: {}", last_line(&output.stderr)));
        Err(match words {
            ["start" | "restart", _] => refused
                .hint("see why: `ollim-bot service logs`")
                .hint("see what is wrong around it: `ollim-bot doctor`"),
            _ => refused,
        })
    }

    /// Returns the properties of a unit, by name.
    pub(super) fn show(&self, unit: &str) -> Result<BTreeMap<String, String>, Refusal> {
        let output = self
            .call(&["show", unit, "--property", FACTS])
            .map_err(|error| Refusal::environment(format!("`systemctl` cannot be run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.into(), value.into()))
            .collect())
    }

    fn call(&self, words: &[&str]) -> std::io::Result<Output> {
        let mut command = Command::new("systemctl");
        command.env_clear().envs(self.env.texts()).env_remove("NOTIFY_SOCKET");
        if !self.system {
            command.arg("--user");
        }
        command.arg("--no-pager").args(words).output()
    }
}

/// Whether this user's manager is started at boot.
pub(super) fn lingers(env: &Environment) -> bool {
    let named = env.text("USER").or_else(|| env.text("LOGNAME"));
    named.is_some_and(|name| !name.contains('/') && Path::new("/var/lib/systemd/linger").join(name).exists())
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason").trim().to_owned()
}
