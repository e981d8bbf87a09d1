//! SimCord, a third-party Discord, and the reader of Discord's OpenAPI document. `./scripts/test` installs both into `.simcord/`.

use std::path::Path;
use std::process::Command;

/// Returns a command for one of the tests' Python programs in that installation.
#[track_caller]
pub fn python(program: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".simcord/bin/python");
    assert!(
        python.exists(),
        "SimCord is not installed at {}\nhint: run the tests by ./scripts/test, which installs it",
        python.display()
    );
    let mut command = Command::new(python);
    // `-B` writes no bytecode into the source tree.
    command.arg("-B").arg(root.join(program));
    command
}
