//! Words of a shell's line.

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether the text after this beginning of a line is within quotes of a shell.
pub(super) fn is_within_quotes(beginning: &str) -> bool {
    let mut open = None;
    let mut letters = beginning.chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => open = None,
            (None, '\'' | '"') => open = Some(letter),
            (None | Some('"'), '\\') => drop(letters.next()),
            _ => {}
        }
    }
    open.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_seen_as_a_shell_sees_them() {
        for (beginning, within) in [
            ("", false),
            ("date '+", true),
            ("date '' \"", true),
            ("echo it\\'s ", false),
            ("echo '\\' ", false),
            ("echo \"\\\" ", true),
            ("echo '\"' ", false),
        ] {
            assert_eq!(is_within_quotes(beginning), within, "{beginning}");
        }
    }
}
