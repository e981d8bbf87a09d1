//! What nearly every file is made of, read without a parser: two fences, and between them `key: value` lines, and lists of
//! one scalar a line. It is much the faster for many files.
//!
//! Whatever is written in any other way is [`None`] here, and left to `gray_matter` and `serde_yaml`; properties hold that
//! where both read a text, they read the same.

use super::mapping::{Entry, MOST_ENTRIES, MOST_VALUES, Node};

/// The lines between the fences, and the body.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    // Nothing is trimmed off before such a line.
    if !rest.starts_with(|c: char| c == '#' || c.is_ascii_lowercase()) || text.contains('\r') {
        return None;
    }
    let (fence, _) = rest.match_indices('\n').find(|(newline, _)| rest[newline + 1..].starts_with("---"))?;
    let (yaml, closing) = rest.split_at(fence + 1);
    if rest[..fence].ends_with(char::is_whitespace) {
        return None;
    }
    let after = &closing["---".len()..];
    let body = if after.is_empty() { after } else { after.strip_prefix('\n')? };
    Some((yaml, body.strip_suffix('\n').unwrap_or(body).trim_start_matches('\n')))
}

/// The entries, where every line is plain.
pub(super) fn read(yaml: &str) -> Option<Vec<Entry<'_>>> {
    let ascii = |byte: u8| matches!(byte, b'\n' | b' '..=b'~');
    // Without an early end: that takes many bytes at a time.
    if !yaml.bytes().fold(true, |all, byte| all & ascii(byte)) && !yaml.chars().all(is_plain_char) {
        return None;
    }
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(12);
    // The mapping and its values count as they do elsewhere.
    let mut values = 1;
    // How far the items of the list that is being read are indented.
    let mut indent = None;
    for line in yaml.split('\n') {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        values += 1;
        if values > MOST_VALUES {
            return None;
        }
        let lead = line.len() - line.trim_ascii_start().len();
        if let Some(item) = text.strip_prefix("- ") {
            let list = entries.last_mut().map(|entry| &mut entry.value)?;
            let item = scalar(item.trim_ascii_start())?;
            match list {
                Node::Null if indent.is_none() => {
                    indent = Some(lead);
                    *list = Node::List(vec![item]);
                }
                Node::List(items) if indent == Some(lead) => items.push(item),
                _ => return None,
            }
            continue;
        }
        let (key, value) = text.split_once(':').filter(|(key, _)| lead == 0 && is_plain_key(key))?;
        if entries.len() == MOST_ENTRIES {
            return None;
        }
        let value = match value.strip_prefix(' ') {
            Some(value) => scalar(value.trim_ascii_start())?,
            // Nothing, or a list that follows.
            None if value.is_empty() => {
                indent = None;
                Node::Null
            }
            None => return None,
        };
        entries.push(Entry { key: key.into(), value });
    }
    Some(entries)
}

/// No tab, no other control, none of the line breaks that only YAML knows.
fn is_plain_char(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{10000}'..)
}

fn is_plain_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (2..=64).contains(&key.len()) && key.bytes().all(plain) && !is_special(key)
}

/// A scalar on one line, without blanks around it and without a comment behind it.
fn scalar(text: &str) -> Option<Node<'_>> {
    let first = *text.as_bytes().first()?;
    if let b'"' | b'\'' = first {
        let inner = text[1..].strip_suffix(char::from(first))?;
        return (!inner.contains([char::from(first), '\\'])).then(|| Node::Text(inner.into()));
    }
    let pair = |pair: &[u8]| matches!(pair, b": " | b" #");
    // Without an early end, as above.
    let mark = |byte: u8| (byte == b':') | (byte == b'#');
    let marked = text.bytes().fold(false, |any, byte| any | mark(byte));
    let ends = marked && (text.as_bytes().windows(2).any(pair) || text.ends_with(':'));
    // Every mark that means something to YAML is ASCII.
    if ends || (first.is_ascii() && !first.is_ascii_alphanumeric()) {
        return None;
    }
    match text {
        "true" => Some(Node::Bool(true)),
        "false" => Some(Node::Bool(false)),
        _ if !first.is_ascii_digit() => (!is_special(text)).then(|| Node::Text(text.into())),
        _ if is_no_number(text) => Some(Node::Text(text.into())),
        _ => {
            let decimal = text.len() < 19 && (first != b'0' || text == "0") && text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|_| decimal).map(Node::Int)
        }
    }
}

/// Whether a text that begins with a digit is none all the same: a cron expression, a time, a span.
fn is_no_number(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() && !matches!(byte, b'e' | b'E');
    text.contains([' ', ':']) || (!text.starts_with('0') && text.bytes().any(letter))
}

/// Words that YAML makes something else of.
fn is_special(word: &str) -> bool {
    let special = |special: &&str| word.eq_ignore_ascii_case(special);
    word.len() <= "infinity".len() && ["null", "true", "false", "inf", "infinity", "nan"].iter().any(special)
}

#[cfg(test)]
mod tests {
    use super::super::mapping::read_with_library;
    use super::super::{Document, split_with_library};
    use super::*;
    use proptest::prelude::*;

    /// Whether it was read here; if so, as the library reads it.
    #[track_caller]
    fn check(yaml: &str) -> bool {
        let Some(entries) = read(yaml) else { return false };
        assert_eq!(Some(entries), read_with_library(yaml).ok(), "{yaml:?}");
        true
    }

    /// Whether it was split here; if so, as the library splits it.
    #[track_caller]
    fn check_split(text: &str) -> bool {
        let Some((yaml, body)) = split(text) else { return false };
        let Document { block, body: expected } = split_with_library(text).unwrap();
        assert_eq!((yaml, 2, body), (&*block.yaml, block.first_line, &*expected), "{text:?}");
        true
    }

    #[test]
    fn plain_fences_are_found_here() {
        for text in ["---\nid: x\n---\nbody\n", "---\nid: x\n\n# y\n---", "---\na: b\n---\n\n\n  a\n---\nb\n\n"] {
            assert!(check_split(text), "{text:?}");
        }
        for text in
            ["---\n---\n", "---\n\nid: x\n---\n", "---\r\nid: x\r\n---\r\n", "--- \nid: x\n---\n", "---\nid: x\n"]
        {
            assert_eq!(split(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_files_are_made_of_is_read_here() {
        for yaml in [
            "",
            "\n",
            "# a note\n\n",
            "# mine\ndescription: Check the oven, now!\n",
            "cron: 30 8 * * 1-5\n",
            "cron: \"*/5 * * * *\"\n",
            "run_at: 2026-11-22T09:00:00+01:00\nmax_chain: 3\nchain_depth: 0\n",
            "run_at: '2026-11-22 09:00'\nbackground: true\nisolated: false\ntimeout: 1h30m\n",
            "allowed_tools:\n  - Bash(ollim-bot gmail *)\n  - Read\n\n  # the last\n  - 'WebFetch(domain:*.at)'\nmodel: haiku\n",
            "allowed_tools:\n- Read\nskills:\n    - mail\nempty:\n",
            "description: 🍵 Tee\n",
            "description: Tee für 🍵   \n",
            "id: 1f0c9a2b\n",
            "description: it's [not] {a} \"list\"\n",
        ] {
            assert!(check(yaml), "{yaml:?}");
        }
    }

    #[test]
    fn what_could_mean_more_is_left_to_the_library() {
        for yaml in [
            "key: a # note\n",
            "key: a: b\n",
            "key: [a]\n",
            "key: |\n  a\n",
            "key: a\n  b\n",
            "key: a\n\n  b\n",
            "key: *x\n",
            "key: &x a\n",
            "key: !x a\n",
            "key: 'it''s'\n",
            "key: \"a\\n\"\n",
            "key: \"a\n  b\"\n",
            "key: null\n",
            "key: ~\n",
            "key: True\n",
            "key: 007\n",
            "key: 1e5\n",
            "key: 0x1f\n",
            "key: 0b1\n",
            "key: 1_000\n",
            "key: -5\n",
            "key: .5\n",
            "key: 123456789012345678901234567890\n",
            "key:\ta\n",
            "key:a\n",
            "key : a\n",
            "Key: a\n",
            "null: a\n",
            "<<: a\n",
            "? key\n",
            " key: a\n",
            "key:\n  a: b\n",
            "key:\n  - a: b\n",
            "key:\n  - a\n   - b\n",
            "key:\n  - a\n - b\n",
            "key:\n  - a\n    b\n",
            "key:\n  - - a\n",
            "key:\n  -\n",
            "key: a\n  - b\n",
            "- a\n",
            "key: a\n---\n",
            "key: a\n...\n",
            "%YAML 1.1\n",
            "key: a\r\n",
            "key: a\u{85}b\n",
            "key: a\u{2028}b\n",
            "\u{feff}key: a\n",
        ] {
            assert_eq!(read(yaml), None, "{yaml:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            "[a-zA-Z0-9]{1,4}",
            "[ -~]{0,12}",
            "[-0-9a-fxobe_.:+ ]{1,8}",
            "[\"'][ -~]{0,6}[\"']",
            "(true|false|null|yes|no|on|inf|nan|True|NULL)",
            "\\PC{0,6}",
        ];
        let start = "([a-z_]{1,5}: ?|  - |- |    - | {0,3}#|[a-z_]{1,5}:|\\PC{0,3})";
        (start, value, " {0,2}").prop_map(|(start, value, end)| format!("{start}{value}{end}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_is_read_here_the_library_reads_the_same(lines in prop::collection::vec(line(), 0..6)) {
            check(&(lines.join("\n") + "\n"));
        }
        #[test]
        fn what_is_split_here_the_library_splits_the_same(
            lines in prop::collection::vec("(---|--- |----|---x|[a-z]: \\PC{0,3}|# a|\\PC{0,3}|[ \t\r\u{85}\u{a0}\u{b}]{0,2}|)", 0..8),
            start in "(|---\n|---\na: b\n|\u{feff}|\n)", end in "\n{0,3}",
        ) {
            check_split(&(start + &lines.join("\n") + &end));
        }
        #[test]
        fn any_value_is_read_the_same(value in "[-+.0-9a-zA-Z_:#&*!|>%@`'\"\\[\\]{},~ \\\\]{1,10}", quoted in "[ -~]{0,8}") {
            check(&format!("key: {value}\nlist:\n  - {value}\n"));
            check(&format!("key: '{quoted}'\nlist:\n  - \"{quoted}\"\n"));
        }
    }
}
