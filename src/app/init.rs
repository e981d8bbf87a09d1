//! A data folder with commented settings and samples. Nothing that is there is ever overwritten.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::App;
use super::refusals::cannot;
use crate::config::commented;
use crate::definition::samples::{FAR_OFF, samples};
use crate::home::Home;
use crate::refusal::Refusal;

/// How long after the folder was made the sample reminder fires: soon enough to be seen, late enough to be read.
const SOON: TimeDelta = TimeDelta::seconds(15);

/// `state/` is the program's own, and `.env` is secret.
const IGNORED: &str = "# Not for git: the program's own state, and secrets.\n/state/\n/.env\n";

/// Makes the data folder and names the files that it made.
pub(super) fn init(force: bool, app: &App) -> Result<Vec<PathBuf>, Refusal> {
    let root = app.home.root();
    let taken = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !force {
        return Err(Refusal::user(format!("{} is there already and has something in it", root.display()))
            .hint("`ollim-bot init --force` adds what is missing; what is there stays as it is"));
    }
    make_home(&app.home, app.now(), app.zone()?)
}

/// Makes whatever is missing and names the files it made, relative to the folder.
///
/// # Errors
/// When the disk says no.
pub fn make_home(home: &Home, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, Refusal> {
    make_folders(home)?;
    let mut files = vec![(home.config_file(), commented()), (home.root().join(".gitignore"), IGNORED.to_owned())];
    for (path, text) in samples() {
        files.push((home.root().join(path), soon(text, now, zone)));
    }
    let mut made = Vec::new();
    for (path, text) in files {
        if write_new(&path, &text).map_err(|error| cannot("write", &path, &error))? {
            made.push(home.relative(&path).to_owned());
        }
    }
    Ok(made)
}

/// Makes the folders that the service needs, private to the person.
///
/// # Errors
/// When the disk says no.
pub fn make_folders(home: &Home) -> Result<(), Refusal> {
    for path in folders(home) {
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| cannot("make", &path, &error))?;
    }
    Ok(())
}

/// The folders that the service needs.
pub(super) fn folders(home: &Home) -> [PathBuf; 8] {
    [
        home.root().to_owned(),
        home.routines(),
        home.reminders(),
        home.bin(),
        home.work(),
        home.tools(),
        home.state(),
        home.runs(),
    ]
}

/// Whether it was written: a file that is there stays.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

/// The sample reminder's far-off time becomes one that comes at once.
fn soon(text: &str, now: DateTime<Utc>, zone: Tz) -> String {
    let at = (now + SOON).with_timezone(&zone).to_rfc3339_opts(chrono::SecondsFormat::Secs, false);
    let line = |line: &str| {
        if line.starts_with("run_at:") && line.contains(FAR_OFF) {
            format!("run_at: \"{at}\"")
        } else {
            line.to_owned()
        }
    };
    let mut lines = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines
}
