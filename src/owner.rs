//! The user whom a data folder belongs to.
//!
//! The service runs as this user, and root's commands do, too: a file that root writes into the folder could not be read by the service.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::refusal::Refusal;

/// The owner of a folder.
#[derive(Debug)]
pub struct Owner {
    uid: u32,
    /// The name, the primary group and the home folder. `None` if the machine does not know the user.
    account: Option<Account>,
}

#[derive(Debug, PartialEq, Eq)]
struct Account {
    name: String,
    gid: u32,
    home: PathBuf,
}

impl Owner {
    /// Returns the owner of an existing folder.
    ///
    /// # Errors
    /// If the folder cannot be looked at.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let uid = std::fs::metadata(folder)?.uid();
        let account = Command::new("getent").args(["passwd", &uid.to_string()]).output();
        let account = account.ok().and_then(|output| account_in(&String::from_utf8_lossy(&output.stdout)));
        Ok(Self { uid, account })
    }

    /// Returns the user's name. `None` if the machine does not know it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.account.as_ref().map(|account| account.name.as_str())
    }
}

/// Starts the program anew as the owner of `folder`, if root runs it and the folder belongs to somebody else. Returns otherwise.
///
/// # Errors
/// If the program cannot be started as that user.
pub fn act_as_owner(folder: &Path, arguments: &[OsString]) -> Result<(), Refusal> {
    if !rustix::process::getuid().is_root() {
        return Ok(());
    }
    let Ok(owner) = Owner::of(folder) else { return Ok(()) };
    if owner.uid == 0 {
        return Ok(());
    }
    let mut command = Command::new("/proc/self/exe");
    if let Some((name, rest)) = arguments.split_first() {
        command.arg0(name).args(rest);
    }
    // Root's other groups are dropped as well.
    command.uid(owner.uid);
    if let Some(Account { name, gid, home }) = &owner.account {
        command.gid(*gid).env("HOME", home).env("USER", name).env("LOGNAME", name);
        for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
    }
    let error = command.exec();
    let user = owner.name().map_or_else(|| owner.uid.to_string(), str::to_owned);
    Err(Refusal::environment(format!(
        "{} belongs to {user}, and root cannot run this as {user}: {error}",
        folder.display()
    ))
    .hint(format!("run it as that user: `sudo -u {user} ollim-bot …`")))
}

/// Returns the account in a line of `passwd`.
fn account_in(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.trim_end().split(':').collect();
    let [name, _, _, gid, _, home, ..] = fields[..] else { return None };
    Some(Account { name: name.to_owned(), gid: gid.parse().ok()?, home: home.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_its_line() {
        let account = Account { name: "ada".to_owned(), gid: 100, home: "/home/ada".into() };
        assert_eq!(account_in("ada:x:1000:100:Ada,,,:/home/ada:/bin/sh\n"), Some(account));
        for line in ["", "ada:x:1000", "ada:x:1000:many:Ada:/home/ada:/bin/sh"] {
            assert_eq!(account_in(line), None, "{line}");
        }
    }
}
