//! `persona.md` in the data folder: the person's description of how the bot should be. It is part of every system prompt.

use std::path::Path;

use super::{DefinitionError, Problem, Severity, read};
use crate::home::Home;

/// Path relative to the data folder.
const FILE: &str = "persona.md";

/// Maximum length of the text, in bytes: each request to the model carries it.
const LONGEST: usize = 16 * 1024;

/// Reads the persona without surrounding blanks. Returns `None` if the file is missing or blank.
///
/// # Errors
/// A warning if the file is unusable. Jobs then run without a persona.
pub fn load_persona(home: &Home) -> Result<Option<String>, Box<Problem>> {
    let unusable = |why: String, hint: &str| {
        let message = format!("the persona cannot be used, so agents do without it: {why}");
        Box::new(Problem::of_file(Path::new(FILE), Severity::Warning, message, Some(hint.into())))
    };
    let text = read::text(home, Path::new(FILE)).map_err(|error| match error {
        DefinitionError::Io { source, .. } => unusable(source.to_string(), "write it as text in UTF-8"),
        other => unusable(other.to_string(), "write it as text in UTF-8"),
    })?;
    let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    match text {
        Some(text) if text.len() > LONGEST => {
            Err(unusable(format!("it has {} bytes, and {LONGEST} are the most", text.len()), "shorten it"))
        }
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_is_read_or_named_as_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        assert_eq!(load_persona(&home), Ok(None));
        let file = folder.path().join(FILE);
        for (bytes, expected) in [
            (&b"\n  \n"[..], Ok(None)),
            (b"\nBe brief.\n", Ok(Some("Be brief."))),
            (b"\xff", Err("UTF-8")),
            (&[b'x'; LONGEST + 1], Err("16384 are the most")),
        ] {
            std::fs::write(&file, bytes).unwrap();
            match (load_persona(&home), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text.as_deref(), expected),
                (Err(problem), Err(words)) => assert!(problem.message.contains(words), "{problem}"),
                (seen, _) => panic!("{seen:?}"),
            }
        }
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(load_persona(&home).is_err());
    }
}
