//! Agent clients: the real one, and stand-ins that misbehave.

use std::path::{Path, PathBuf};

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
