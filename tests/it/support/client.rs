//! Agent clients: the real one, and stand-ins that misbehave.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The real `claude`, as `scripts/test` installed it.
pub fn real() -> PathBuf {
    let path = match std::env::var_os("OLLIM_TEST_CLAUDE") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(".claude-client/node_modules/.bin/claude"),
    };
    assert!(
        path.exists(),
        "the real agent client is not installed at {}\nhint: run the tests by ./scripts/test, which installs it",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// A stand-in: a bash script that answers `--version` as the real one does and then does what `body` says.
pub fn script(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("claude");
    let version = "if [ \"$1\" = --version ]; then echo '2.1.197 (Claude Code)'; exit 0; fi";
    executable(&path, &format!("#!/bin/bash\n{version}\n{body}\n"));
    path
}

/// Writes a file that can be executed. Another process does it: had this one the file open while another thread
/// forks, whoever executes it meanwhile would be told `Text file busy`.
pub fn executable(path: &Path, text: &str) {
    let mut install =
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
}
