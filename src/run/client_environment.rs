//! The environment of all clients, the search path of jobs, and the program of the sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::agent::claude::options::ClientEnvironment;
use crate::config::Config;
use crate::home::Home;

/// Returns the program of the sandbox's stages: `ollim-shell` beside our own binary, or else our own, which starts more slowly. If the
/// service has a copy of the same `ollim-shell`, the copy is returned.
#[must_use]
pub fn shell_binary(own_binary: &Path, home: &Home) -> PathBuf {
    let beside = own_binary.with_file_name("ollim-shell");
    if !beside.is_file() {
        return own_binary.to_path_buf();
    }
    let copy = home.shell_copy();
    if is_same(&beside, &copy) && may_execute(&copy) { copy } else { beside }
}

/// Makes the service's copy of `ollim-shell`. A domain of the kernel's opens this very file to the shells and programs of a run, so that
/// they could start nothing more once an upgrade has replaced it. Nobody replaces the copy while the service runs.
///
/// # Errors
/// If the copy cannot be written.
pub fn copy_shell_binary(own_binary: &Path, home: &Home) -> io::Result<()> {
    let beside = own_binary.with_file_name("ollim-shell");
    let copy = home.shell_copy();
    if !beside.is_file() || is_same(&beside, &copy) {
        return Ok(());
    }
    // What is left of a failed copy would take the room that the journal needs.
    let fresh = Unfinished(copy.with_extension("new"));
    fs::copy(beside, &fresh.0)?;
    fs::rename(&fresh.0, copy)
}

/// A file that is removed unless it is moved to its place.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _moved_or_never_made = fs::remove_file(&self.0);
    }
}

/// Returns whether both files can be read and have the same content.
fn is_same(one: &Path, other: &Path) -> bool {
    let size = |file: &Path| file.metadata().map(|data| data.len());
    matches!((size(one), size(other)), (Ok(one), Ok(other)) if one == other)
        && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns whether the file system lets programs be executed.
fn may_execute(file: &Path) -> bool {
    statvfs(file).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// Returns the search path of jobs: our own binary's folder, the person's own commands, then the service's `PATH`.
#[must_use]
pub fn search_path(env: &BTreeMap<String, String>, own_binary: &Path, home: &Home) -> Vec<PathBuf> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let rest = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    own_binary.parent().map(Path::to_path_buf).into_iter().chain([home.bin()]).chain(rest).collect()
}

/// Returns the basis of every client's environment.
#[must_use]
pub fn client_environment(
    config: &Config,
    home: &Home,
    env: &BTreeMap<String, String>,
    own_binary: &Path,
) -> ClientEnvironment {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let added = |name: &String| Some((name.clone(), env.get(name)?.clone()));
    ClientEnvironment {
        own: env.clone(),
        added: config.client_env.iter().filter_map(added).collect(),
        programs: own_binary.parent().map(text).into_iter().chain([text(&home.bin())]).collect(),
        data_folder: text(home.root()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (home, own) = (Home::new(folder.path().join("bot")), folder.path().join("ollim-bot"));
        fs::write(folder.path().join("ollim-shell"), "program").unwrap();
        // A folder is in its place.
        fs::create_dir_all(home.shell_copy().join("x")).unwrap();
        copy_shell_binary(&own, &home).unwrap_err();
        let left: Vec<_> = fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["ollim-shell"]);
        fs::remove_dir_all(home.shell_copy()).unwrap();
        copy_shell_binary(&own, &home).unwrap();
        assert_eq!(fs::read_to_string(home.shell_copy()).unwrap(), "program");
        assert_eq!(fs::read_dir(home.state()).unwrap().count(), 1);
    }
}
