//! Agent clients: the real one, and stand-ins that misbehave.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ollim_bot::agent::claude::versions::TESTED;
use tempfile::TempDir;

/// Returns the real `claude`: the one that `OLLIM_TEST_CLAUDE` names, or the oldest supported one.
pub fn real() -> PathBuf {
    named().unwrap_or_else(oldest)
}

/// Returns the real client under a path in `folder` that all users may follow.
pub fn for_all_users(folder: &TempDir) -> PathBuf {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (real, open) = (real(), folder.path().join("claude"));
    if fs::hard_link(&real, &open).is_err() {
        fs::copy(&real, &open).unwrap();
    }
    open
}

/// Returns each real client: the oldest supported and the newest known one, or only the one that `OLLIM_TEST_CLAUDE` names.
pub fn each() -> Vec<PathBuf> {
    named().map_or_else(|| vec![oldest(), newest()], |named| vec![named])
}

/// Returns the client that `tests/claude-client` pins.
pub fn oldest() -> PathBuf {
    installed(".claude-client")
}

/// Returns the client that `tests/claude-client-newest` pins.
pub fn newest() -> PathBuf {
    installed(".claude-client-newest")
}

/// Returns the client that `OLLIM_TEST_CLAUDE` names.
pub fn named() -> Option<PathBuf> {
    std::env::var_os("OLLIM_TEST_CLAUDE").map(|path| there(PathBuf::from(path)))
}

fn installed(folder: &str) -> PathBuf {
    there(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("node_modules/.bin/claude"))
}

fn there(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "the real agent client is not installed at {}\nhint: run the tests by ./scripts/test, which installs it",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// Writes a wrapper that starts `real` without a variable that we set, to imitate a client that does not support it.
pub fn without_variable(folder: &Path, real: &Path, variable: &str) -> PathBuf {
    script(folder, &format!("unset {variable}\nexec {} \"$@\"", real.display()))
}

/// Writes a stand-in: a bash script that answers `--version` as the real client does and then executes `body`.
pub fn script(folder: &Path, body: &str) -> PathBuf {
    script_of_version(folder, TESTED[0], body)
}

/// Writes a stand-in that reports this version.
pub fn script_of_version(folder: &Path, version: &str, body: &str) -> PathBuf {
    let path = folder.join("claude");
    let version = format!("if [ \"$1\" = --version ]; then echo '{version} (Claude Code)'; exit 0; fi");
    executable(&path, &format!("#!/bin/bash\n{version}\n{body}\n"));
    path
}

/// Writes an executable file through another process. If this process had the file open while another thread forks, executing
/// the file could fail with `Text file busy`.
pub fn executable(path: &Path, text: &str) {
    let mut install =
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
}
