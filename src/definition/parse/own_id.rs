//! Whether a file says its own identity, found out without parsing it.

/// Whether a file may have the field `id`. `false` is certain: to have it, its text needs the word, or an escape that
/// stands for a letter of it.
pub(in super::super) fn may_have_id(text: &[u8]) -> bool {
    let goes_on =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at));
    let word = |(at, pair): (usize, &[u8])| pair == b"id" && !goes_on(before(at)) && !goes_on(text.get(at + 2));
    text.contains(&b'\\') || text.windows(2).enumerate().any(word)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::definition::{Defaults, Kind, parse};

    #[test]
    fn most_files_plainly_have_no_id() {
        for (text, expected) in [
            ("---\ncron: 0 9 * * *\nbackground: true\n---\nDid the video arrive?\n", false),
            ("---\nmy-id: x\nid_card: y\nids: z\n---\nMid.\n", false),
            ("---\nid: x\n---\n", true),
            ("id", true),
            ("---\ncron: x\n---\nWhat is the id?\n", true),
            ("---\n\"\\x69\\x64\": x\n---\n", true),
        ] {
            assert_eq!(may_have_id(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        /// A file that has an id of its own is never taken for one that has none.
        #[test]
        fn an_id_is_not_missed(
            key in "(id|\"id\"|'id'|\"i\\\\x64\"|!!str id|&a id|\\{id|\\? id\n)", space in " {0,2}", value in "( x|\n  x| 'x'|  # id\n  x| x, b: c\\}|\n: x)",
            before in "(|a: b\n|# note\n|\n)", after in "(|aid: d\n|\\PC{0,6}: x\n)",
        ) {
            let text = format!("---\n{before}{key}{space}:{value}\nrun_at: 2027-01-01T09:00:00Z\n{after}---\nText\n");
            let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
            let parsed = parse(Kind::Reminder, Path::new("reminders/name.md"), text.as_bytes(), &defaults);
            let own = parsed.definition.is_some_and(|definition| definition.id.as_str() != "name");
            prop_assert!(!own || may_have_id(text.as_bytes()), "{}", text);
        }
    }
}
