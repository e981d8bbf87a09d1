//! Repairs what is safe to repair: permissions of secrets, a stale socket, missing folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::Finding;
use super::folder::{ANY, missing, open_to_others, relative};
use super::running::socket_is_stale;
use crate::app::init::remake_folders;
use crate::app::{App, service};

/// Returns the repairs, and the findings on those that failed.
pub(super) fn fix(app: &App) -> (Vec<String>, Vec<Finding>) {
    let (mut fixed, mut failed) = (Vec::new(), Vec::new());
    // Only `init` creates a data folder, so that a misspelled name does not become one.
    if !app.home.root().is_dir() {
        return (fixed, failed);
    }
    for (path, mask) in open_to_others(app) {
        let private = |mode: u32| fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o777 & !mask));
        let name = relative(&path, app);
        let what = if mask == ANY { "readable" } else { "writable" };
        match fs::metadata(&path).and_then(|facts| private(facts.permissions().mode())) {
            Ok(()) => fixed.push(format!("made {name} {what} by you alone")),
            Err(error) => failed.push(Finding::wrong("fix", format!("{name} cannot be made private: {error}"))),
        }
    }
    let absent = missing(app);
    if !absent.is_empty() {
        match remake_folders(&app.home) {
            Ok(()) => fixed.extend(absent.iter().map(|path| format!("made {}/", relative(path, app)))),
            Err(refusal) => failed.push(Finding::wrong("fix", refusal.to_string())),
        }
    }
    if matches!(service::status(app), Ok(None)) && socket_is_stale(app) {
        match fs::remove_file(app.home.socket()) {
            Ok(()) => fixed.push("removed state/control.sock, which nobody listened at".into()),
            Err(error) => failed.push(Finding::wrong("fix", format!("state/control.sock cannot be removed: {error}"))),
        }
    }
    (fixed, failed)
}
