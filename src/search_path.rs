//! Finds the person's programs, as a shell does.

use std::io;
use std::path::{Path, PathBuf};

pub use agent_sandbox::farm::{is_farm, is_program};

/// Finds a program by its name in `folders`, or by its path; `~/` is the person's home. Returns an absolute path.
///
/// # Errors
/// If there is none, or the file is not executable.
pub fn find(program: &str, folders: &[PathBuf], user_home: &Path) -> io::Result<PathBuf> {
    let missing = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
    let named = match program.strip_prefix("~/") {
        Some(rest) => Some(user_home.join(rest)),
        None => program.contains('/').then(|| PathBuf::from(program)),
    };
    let file = match named {
        Some(file) if is_program(&file) => file,
        Some(file) if file.exists() => return Err(missing(format!("{} cannot be executed", file.display()))),
        Some(file) => return Err(missing(format!("there is no program at {}", file.display()))),
        None => {
            let found = folders.iter().map(|folder| folder.join(program)).find(|file| is_program(file));
            found.ok_or_else(|| missing(format!("there is no program `{program}` on PATH")))?
        }
    };
    std::path::absolute(file)
}
