//! Changes one setting in config.yaml and keeps all other lines.

use std::fs;
use std::io;

use crate::definition::replace_file;
use crate::home::Home;

/// Writes `name: value` into config.yaml, or removes the setting for `None`. Returns whether the file changed.
///
/// # Errors
/// If the file cannot be read or written.
pub fn set(home: &Home, name: &str, value: Option<&str>) -> io::Result<bool> {
    let path = home.config_file();
    // Writes the target of a symlink, so that the link stays.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let old = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let new = with(&old, name, value);
    if new == old {
        return Ok(false);
    }
    replace_file(&path, new.as_bytes()).map(|()| true)
}

/// Whether a line of config.yaml sets `name`. Works in an invalid file too.
#[must_use]
pub fn is_set(home: &Home, name: &str) -> bool {
    fs::read_to_string(home.config_file()).is_ok_and(|text| text.lines().any(|line| names(line, name)))
}

fn names(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| key.trim_end().trim_matches(['"', '\'']) == name)
}

fn with(text: &str, name: &str, value: Option<&str>) -> String {
    let line = value.map(|value| format!("{name}: {value}"));
    let mut lines: Vec<&str> = Vec::new();
    let (mut is_inside, mut is_written) = (false, false);
    for old in text.lines() {
        let names = names(old, name);
        // The value may continue on indented lines.
        is_inside = names || (is_inside && old.starts_with([' ', '\t']));
        if !is_inside {
            lines.push(old);
        } else if names && !is_written {
            lines.extend(line.as_deref());
            is_written = true;
        }
    }
    if !is_written {
        lines.extend(line.as_deref());
    }
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::with;

    #[test]
    fn one_setting_changes_and_nothing_else() {
        let old = "# mine\ntimezone: UTC # here\njournal:\n  postgres://a@b/c\n\nmodel: haiku\n";
        let new = "# mine\ntimezone: UTC # here\njournal: x\n\nmodel: haiku\n";
        assert_eq!(with(old, "journal", Some("x")), new);
        assert_eq!(with(new, "journal", None), "# mine\ntimezone: UTC # here\n\nmodel: haiku\n");
        assert_eq!(with("model: haiku", "journal", Some("x")), "model: haiku\njournal: x\n");
        assert_eq!(with("", "journal", Some("x")), "journal: x\n");
        assert_eq!(with("'journal' : y\n", "journal", None), "");
        assert_eq!(with("channels:\n  journal: y\n", "journal", None), "channels:\n  journal: y\n");
    }
}
