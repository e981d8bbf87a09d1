//! Checks the data folder: its contents, its permissions, the free space, and whether the journal is intact.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use rustix::fs::Access;

use super::{Finding, hosts};
use crate::app::{App, init};
use crate::config::secrets;
use crate::journal::{JournalError, JournalLocation, JournalReader};
use crate::run::needs::{FreeSpace, free_space};

/// Free space below which the journal may soon refuse a claim, in bytes.
const LITTLE: u64 = 64 << 20;
/// Free space below which it is time to tidy up, in bytes.
const SCARCE: u64 = 1 << 30;

/// Checks that the data folder and its subfolders exist.
pub(super) fn folder(app: &App) -> Vec<Finding> {
    let root = app.home.root();
    if !root.is_dir() {
        return vec![
            Finding::wrong("data folder", format!("there is none at {}", root.display()))
                .step("make it: `ollim-bot init`")
                .step("or name another: `--home DIR`, or OLLIM_HOME"),
        ];
    }
    let owner = fs::metadata(root).map(|facts| facts.uid()).ok();
    if owner.is_some_and(|owner| owner != rustix::process::getuid().as_raw()) {
        return vec![
            Finding::wrong("data folder", format!("{} belongs to another user", root.display()))
                .step("run ollim-bot as that user, or give the folder to this one: `chown -R`"),
        ];
    }
    if let Some((path, error)) = unwritable(app) {
        return vec![
            Finding::wrong("data folder", format!("{} cannot be written: {error}", path.display()))
                .step("make it writable; no run can begin until then"),
        ];
    }
    let missing = missing(app);
    if missing.is_empty() {
        return vec![Finding::ok("data folder", root.display().to_string())];
    }
    let names: Vec<String> = missing.iter().map(|path| relative(path, app)).collect();
    let detail = format!("{} has no {}", root.display(), names.join(", "));
    vec![match init::missing_definitions(&app.home)[..] {
        [] => Finding::look("data folder", detail)
            .step("the service makes them when it starts; `ollim-bot doctor --fix` does it now"),
        _ => Finding::wrong("data folder", format!("{detail}: the jobs in it do not fire"))
            .step("put back what is missing")
            .step("or, if it is to stay away, make empty folders: `ollim-bot doctor --fix`"),
    }]
}

/// Returns a folder in which the service writes and cannot, and why.
fn unwritable(app: &App) -> Option<(PathBuf, rustix::io::Errno)> {
    let written = [app.home.reminders(), app.home.work(), app.home.state(), app.home.runs()];
    written.into_iter().find_map(|path| {
        let error = rustix::fs::access(&path, Access::WRITE_OK).err()?;
        (error != rustix::io::Errno::NOENT).then_some((path, error))
    })
}

/// Returns the missing subfolders of the data folder.
pub(super) fn missing(app: &App) -> Vec<PathBuf> {
    init::folders(&app.home).into_iter().filter(|path| !path.is_dir()).collect()
}

/// Returns a path relative to the data folder.
pub(super) fn relative(path: &Path, app: &App) -> String {
    app.home.relative(path).display().to_string()
}

/// Checks that secrets are accessible to the person alone, and readable.
pub(super) fn secrets(app: &App) -> Vec<Finding> {
    let mut found: Vec<Finding> = open_to_others(app)
        .into_iter()
        .map(|(path, mask)| {
            let (name, at) = (relative(&path, app), path.display());
            let (what, chmod) = if mask == ANY { ("read", "go=") } else { ("changed", "o-w") };
            Finding::wrong("permissions", format!("{name} can be {what} by others"))
                .step(format!("take that from them: `chmod {chmod} {at}`, or `ollim-bot doctor --fix`"))
        })
        .collect();
    let open = found.iter().any(|finding| finding.detail.starts_with(".env"));
    match secrets::read(&app.home, &app.env.texts()) {
        Err(error) if !open => {
            found.push(
                Finding::wrong("secrets", error.to_string())
                    .step("mend that file: without it the service does not start"),
            );
        }
        _ if found.is_empty() => found.push(Finding::ok(
            "permissions",
            "secrets are readable by you alone, and only you can change what jobs may do",
        )),
        _ => {}
    }
    found
}

/// Permissions of others on a secret that are wrong.
pub(super) const ANY: u32 = 0o077;
/// Permissions of others on a file that says what jobs may do that are wrong.
const WRITE: u32 = 0o002;
/// Permissions of others that let them reach what is in a folder.
const ENTER: u32 = 0o011;

/// Returns the paths on which others have permissions that they must not have, with these permissions.
pub(super) fn open_to_others(app: &App) -> Vec<(PathBuf, u32)> {
    let home = &app.home;
    let secret = [home.env_file(), home.state(), home.journal(), home.user_token()].map(|path| (path, ANY));
    // Nobody reaches these below a private folder.
    let rules = [
        (home.tools(), ANY),
        (home.root().to_owned(), WRITE),
        (home.config_file(), WRITE),
        (home.routines(), WRITE),
        (home.reminders(), WRITE),
        (home.webhooks(), WRITE),
        (home.agents(), WRITE),
        (home.skills(), WRITE),
        (home.bin(), WRITE),
    ];
    let has = |path: &Path, mask: u32| fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & mask != 0);
    let rules = rules.into_iter().filter(|_| has(home.root(), ENTER));
    secret.into_iter().chain(rules).filter(|(path, mask)| has(path, *mask)).collect()
}

/// Checks the free space for the journal and for runs.
pub(super) fn disk(app: &App) -> Vec<Finding> {
    let root = app.home.root();
    if !root.is_dir() {
        return Vec::new();
    }
    let FreeSpace { room, files } = match free_space(root) {
        Ok(free) => free,
        Err(error) => {
            return vec![
                Finding::look("disk", format!("how much room there is cannot be told: {error}"))
                    .step("look yourself: `df -h`"),
            ];
        }
    };
    let text = format!("{} free at {}", ByteSize(room), root.display());
    vec![match (room, files) {
        (_, 0) => Finding::wrong("disk", format!("{text}, and no more files can be made")).step("remove some files"),
        (room, _) if room < LITTLE => Finding::wrong("disk", text).step("make room: without it nothing new starts"),
        (room, _) if room < SCARCE => {
            Finding::look("disk", text).step("make room soon; `journal_retention` keeps less")
        }
        _ => Finding::ok("disk", text),
    }]
}

/// Checks that the journal is intact, and of a known version.
pub(super) fn journal(app: &App) -> Vec<Finding> {
    if let Some(moved) = app.journal_moved() {
        return vec![Finding::wrong("journal", moved.to_string())];
    }
    let place = match app.journal() {
        Ok(JournalLocation::File(_)) => None,
        Ok(JournalLocation::Server(server)) => Some(Ok(server)),
        Err(refusal) => Some(Err(refusal)),
    };
    if let Some(server) = place {
        return hosts::journal(server, app);
    }
    let path = app.home.journal();
    if !path.exists() {
        let none = "there is none yet: nothing has run";
        return if app.home.root().is_dir() { vec![Finding::ok("journal", none)] } else { Vec::new() };
    }
    let kept_aside = kept_aside(app);
    let aside = (!kept_aside.is_empty()).then(|| {
        Finding::look("journal", format!("damaged ones were kept aside: {}", kept_aside.join(", ")))
            .step("what ran before is in them: `sqlite3 FILE .recover` may read it; else remove them")
    });
    let whole = match JournalReader::open(&path).and_then(|journal| journal.damage()) {
        Ok(damage) if damage.is_empty() => Finding::ok("journal", "whole"),
        Ok(damage) => damaged(&damage[0]),
        Err(JournalError::Damaged(error)) => damaged(&error.to_string()),
        Err(error @ JournalError::Newer { .. }) => Finding::wrong("journal", error.to_string())
            .step("use the newer program: this one would not understand its records"),
        Err(error) => {
            Finding::wrong("journal", error.to_string()).step(format!("look at its file: `ls -l {}`", path.display()))
        }
    };
    std::iter::once(whole).chain(aside).collect()
}

fn damaged(how: &str) -> Finding {
    Finding::wrong("journal", format!("it is damaged: {how}"))
        .step("restore a backup into another folder: `ollim-bot --home DIR restore FILE`")
        .step("or start the service again: it keeps the damaged file aside and begins a new one")
}

fn kept_aside(app: &App) -> Vec<String> {
    let Ok(entries) = fs::read_dir(app.home.state()) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut kept: Vec<String> =
        names.filter(|name| name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")).collect();
    kept.sort();
    kept.into_iter().map(|name| format!("state/{name}")).collect()
}
