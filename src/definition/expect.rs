//! The delivery that a run must make to count as completed.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// A delivery that a job must make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A message to the person.
    Message,
    /// A report to the main session.
    Report,
    /// A file that the run created or changed, relative to `work/`.
    File(PathBuf),
}

impl Expect {
    /// Reads `message`, `report` or `file PATH`. Returns `None` for any other text, and for a path that leaves `work/`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "message" => Some(Self::Message),
            "report" => Some(Self::Report),
            text => {
                let path = Path::new(text.strip_prefix("file")?.strip_prefix([' ', '\t'])?.trim());
                let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                let named = path.file_name().is_some() && !text.ends_with('/') && !text.contains(char::is_control);
                (plain && named).then(|| Self::File(path.to_owned()))
            }
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.write_str("message"),
            Self::Report => f.write_str("report"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_work() {
        for (text, expected) in [
            ("message", Some("message")),
            (" report ", Some("report")),
            ("file notes/today.md", Some("file notes/today.md")),
            ("file  a b.md", Some("file a b.md")),
            ("file", None),
            ("file ", None),
            ("files x", None),
            ("file /etc/passwd", None),
            ("file ../x", None),
            ("file a/../../x", None),
            ("file notes/", None),
            ("messages", None),
            ("", None),
        ] {
            assert_eq!(Expect::parse(text).map(|expect| expect.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
