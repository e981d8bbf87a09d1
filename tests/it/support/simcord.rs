//! What `./scripts/test` installs into `.simcord/`: SimCord, somebody else's Discord, and what reads Discord's OpenAPI document.

use std::path::Path;
use std::process::Command;

/// A Python program of the tests', on what is installed.
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
    // `-B`: it leaves nothing in the source tree.
    command.arg("-B").arg(root.join(program));
    command
}
