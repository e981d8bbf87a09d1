//! `init`: a data folder with commented settings and samples. Also what `run` does where there is none.
//!
//! Nothing that is there is ever overwritten.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::json;

use super::context::Context;
use super::error::CliError;
use super::output::{FAINT, GOOD, Output, paint};
use crate::config::commented;
use crate::definition::samples::{FAR_OFF, samples};
use crate::home::Home;

/// How long after the folder was made the sample reminder fires: soon enough to be seen, late enough to be read.
const SOON: TimeDelta = TimeDelta::seconds(15);

/// `state/` is the program's own, and `.env` is secret.
const IGNORED: &str = "# Not for git: the program's own state, and secrets.\n/state/\n/.env\n";

/// Makes the data folder.
///
/// # Errors
/// When the folder has something in it and `force` is not said, or the disk says no.
pub fn init(force: bool, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let root = context.home.root();
    let taken = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !force {
        return Err(CliError::user(format!("{} is there already and has something in it", root.display()))
            .hint("`ollim-bot init --force` adds what is missing; what is there stays as it is"));
    }
    let made = make(&context.home, context.now(), context.zone()?)?;
    if context.json {
        output.json(&json!({ "home": root, "made": made }));
        return Ok(());
    }
    output.line(format!("{} {}", paint(GOOD, "made"), root.display()));
    for path in &made {
        output.line(format!("  {}", path.display()));
    }
    output.line(paint(FAINT, "Start the service: ollim-bot run"));
    Ok(())
}

/// Makes whatever is missing and names the files it made, relative to the folder.
///
/// # Errors
/// When the disk says no.
pub fn make(home: &Home, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, CliError> {
    folders(home)?;
    let mut files = vec![(home.config_file(), commented()), (home.root().join(".gitignore"), IGNORED.to_owned())];
    for (path, text) in samples() {
        files.push((home.root().join(path), soon(text, now, zone)));
    }
    let mut made = Vec::new();
    for (path, text) in files {
        if write_new(&path, &text).map_err(|error| cannot("write", &path, &error))? {
            made.push(path.strip_prefix(home.root()).unwrap_or(&path).to_owned());
        }
    }
    Ok(made)
}

/// Makes the folders that the service needs, private to the person.
///
/// # Errors
/// When the disk says no.
pub fn folders(home: &Home) -> Result<(), CliError> {
    let all = [
        home.root().to_owned(),
        home.routines(),
        home.reminders(),
        home.bin(),
        home.work(),
        home.tools(),
        home.state(),
        home.runs(),
    ];
    for path in all {
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| cannot("make", &path, &error))?;
    }
    Ok(())
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> CliError {
    CliError::environment(format!("cannot {what} {}: {error}", path.display()))
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
