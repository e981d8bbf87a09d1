//! Secrets of the service: its environment, and for missing variables the data folder's `.env`.
//!
//! `.env` holds lines `NAME=value`. It is used only if nobody but the person can read it. Values are never shown.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::definition::durable;
use crate::home::Home;

/// Minimum length of a secret shared with a sender, in characters. A shorter one could be guessed.
pub const SHORTEST_SHARED: usize = 16;

/// Whether a secret is long enough to share with a sender.
#[must_use]
pub fn may_be_shared(secret: &str) -> bool {
    secret.chars().count() >= SHORTEST_SHARED
}

/// The reason why `.env` is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// Others can read it.
    #[error("{} can be read by others, so it is not used: make it private with `chmod 600 {}`", path.display(), path.display())]
    NotPrivate {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is not `NAME=value`.
    #[error("{} line {line}: write `NAME=value`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
}

/// Returns all variables of `.env` and of `own`, which overrides `.env`.
///
/// # Errors
/// [`SecretsError`]; a missing file is no error.
pub fn read(home: &Home, own: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, SecretsError> {
    let path = home.env_file();
    let text = text_of(&path)?;
    let mut variables = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if is_name(name) => {
                variables.insert(name.to_owned(), unquoted(value).to_owned());
            }
            _ => return Err(SecretsError::Line { path, line: index + 1 }),
        }
    }
    variables.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(variables)
}

/// Writes a secret into `.env`, which only the person can read afterwards. Other lines stay.
///
/// # Errors
/// [`SecretsError`] if others can read the existing file, or if it cannot be written.
pub fn keep(home: &Home, name: &str, value: &str) -> Result<(), SecretsError> {
    let path = home.env_file();
    let failed = |source: io::Error| SecretsError::Io { path: path.clone(), source };
    if !is_name(name) || value.is_empty() || value.trim() != value || value.contains(char::is_control) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "this cannot be a secret")));
    }
    // Writes the target of a symlink, so that the link stays.
    let path = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    let text = text_of(&path)?;
    let names = |line: &str| {
        let line = line.trim();
        line.strip_prefix("export ").unwrap_or(line).split_once('=').is_some_and(|(known, _)| known.trim() == name)
    };
    let mut lines: Vec<&str> = text.lines().filter(|line| !names(line)).collect();
    let line = format!("{name}={value}");
    lines.push(&line);
    // `tempfile` creates private files.
    let folder = path.parent().unwrap_or(home.root());
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(durable::cause(&error)))?;
    file.write_all((lines.join("\n") + "\n").as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns the text of a file that nobody else can read; empty if there is none.
fn text_of(path: &Path) -> Result<String, SecretsError> {
    let failed = |source: io::Error| SecretsError::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(failed(error)),
        Ok(facts) if facts.permissions().mode() & 0o077 != 0 => Err(SecretsError::NotPrivate { path: path.to_owned() }),
        Ok(_) => fs::read_to_string(path).map_err(failed),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn unquoted(value: &str) -> &str {
    ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, mode: u32) -> Result<BTreeMap<String, String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        fs::write(home.env_file(), text).unwrap();
        fs::set_permissions(home.env_file(), fs::Permissions::from_mode(mode)).unwrap();
        let own = BTreeMap::from([("SET".to_owned(), "here".to_owned())]);
        read(&home, &own).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), ""))
    }

    #[test]
    fn lines_of_names_and_values() {
        let read = check("# mine\n\nA=1\nexport B = 'two words' \nSET=there\nC=\"x=y\"\nD=\n", 0o600).unwrap();
        let expect = [("A", "1"), ("B", "two words"), ("C", "x=y"), ("D", ""), ("SET", "here")];
        assert_eq!(read, expect.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn a_secret_is_kept_beside_others_and_privately() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        keep(&home, "A", "1").unwrap();
        assert_eq!(fs::metadata(home.env_file()).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(home.env_file(), "# mine\nexport A=1\nB=2\n").unwrap();
        keep(&home, "A", "x=y").unwrap();
        assert_eq!(fs::read_to_string(home.env_file()).unwrap(), "# mine\nB=2\nA=x=y\n");
        for bad in ["", "a\nB=3", " a"] {
            assert!(matches!(keep(&home, "A", bad), Err(SecretsError::Io { .. })), "{bad:?}");
        }
        fs::set_permissions(home.env_file(), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(keep(&home, "A", "3"), Err(SecretsError::NotPrivate { .. })));
        assert_eq!(fs::read_to_string(home.env_file()).unwrap(), "# mine\nB=2\nA=x=y\n");
    }

    #[test]
    fn what_is_wrong_never_shows_a_value() {
        assert_eq!(check("A=1\nhunter2\n", 0o600).unwrap_err(), "/.env line 2: write `NAME=value`");
        assert_eq!(check("1A=hunter2\n", 0o600).unwrap_err(), "/.env line 1: write `NAME=value`");
        assert!(check("A=1\n", 0o640).unwrap_err().contains("chmod 600"));
        assert!(check("A=1\n", 0o604).unwrap_err().contains("chmod 600"));
    }
}
