//! Writes texts as YAML scalars that read back as the same text.

/// Writes `text` on one line, quoted where YAML would read something else.
///
/// Quotes numbers, truth values and dates too, so that every other reader of the file sees a text.
pub(crate) fn yaml_text(text: &str) -> String {
    if !text.chars().any(needs_escape)
        && let Ok(written) = serde_yaml::to_string(text)
    {
        let line = written.trim_end_matches('\n');
        let misread = line == text && looks_special(text);
        if !misread && !line.contains('\n') {
            return line.to_owned();
        }
    }
    quoted(text)
}

/// Whether older YAML readers take it for a truth value, a number (`12:30`, `1_000`, `1234e567`) or a time.
fn looks_special(text: &str) -> bool {
    let boolean = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    let number = text.chars().all(|c| c.is_ascii_digit() || "_:.+-eE".contains(c));
    let based = ["0x", "0o", "0b"].iter().any(|base| text.starts_with(base));
    let date = text.len() > 5 && text.bytes().take(4).all(|b| b.is_ascii_digit()) && text.as_bytes()[4] == b'-';
    boolean || number || based || date
}

/// Whether a character needs an escape: a line break would make the text a block, and YAML does not allow the others unescaped.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quoted(text: &str) -> String {
    if !text.chars().any(needs_escape) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Block, Node};
    use super::*;
    use proptest::prelude::*;

    fn read_back(text: &str) -> Node {
        let written = yaml_text(text);
        assert!(!written.contains('\n'), "{written:?}");
        let block = Block::of_file(&format!("# above\nid: x\nkey: {written} # a note\nitems:\n  - {written}\n"));
        let mut entries = block.entries().unwrap();
        let Node::List(items) = entries.pop().unwrap().value else { panic!("{written:?}") };
        let value = entries.pop().unwrap().value;
        assert_eq!(items, std::slice::from_ref(&value));
        value
    }

    #[test]
    fn texts_read_as_they_were_written() {
        for (text, expected) in [
            ("Check the oven", "Check the oven"),
            ("1f0c9a2b", "1f0c9a2b"),
            ("1h30m", "1h30m"),
            ("12:30", "'12:30'"),
            ("0x1f", "'0x1f'"),
            ("12345678", "'12345678'"),
            ("1234e567", "'1234e567'"),
            ("007", "'007'"),
            ("yes", "'yes'"),
            ("true", "'true'"),
            ("null", "'null'"),
            ("", "''"),
            ("*/5 * * * *", "'*/5 * * * *'"),
            ("30 8 * * *", "30 8 * * *"),
            ("@daily", "'@daily'"),
            ("a: b # c", "'a: b # c'"),
            ("two\nlines", "\"two\\nlines\""),
            ("Bash(ollim-bot gmail *)", "Bash(ollim-bot gmail *)"),
            ("2026-11-22T09:00:00+01:00", "'2026-11-22T09:00:00+01:00'"),
            ("🍵 Tee", "🍵 Tee"),
            ("\u{1b}[2J", "\"\\u001b[2J\""),
        ] {
            assert_eq!(yaml_text(text), expected);
            assert_eq!(read_back(text), Node::Text(text.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>()) {
            prop_assert_eq!(read_back(&text), Node::Text(text));
        }
        #[test]
        fn any_word_reads_back(text in "[-+.0-9eEx:~yYnNofN#&*!|>%@`'\"\\[\\]{}, \\\\]{0,12}") {
            prop_assert_eq!(read_back(&text), Node::Text(text));
        }
    }
}
