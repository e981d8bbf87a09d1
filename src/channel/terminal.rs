//! Makes text from files, messages and agents safe for a terminal. Text of a job cannot move the cursor, colour the screen or change the
//! writing direction.

use unicode_width::UnicodeWidthChar as _;

/// Returns the text as one line, with each unsafe character replaced by a blank.
#[must_use]
pub fn plain(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(unsafe_to_show) {
        return text.to_owned();
    }
    text.chars().map(|c| if unsafe_to_show(c) { ' ' } else { c }).collect()
}

/// Removes unsafe characters from the text, except line feeds and tabs.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !unsafe_to_show(*c)).collect()
}

/// Returns the number of columns that the text takes on a terminal: two for a Chinese or Japanese character.
#[must_use]
pub fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(columns_of).sum() }
}

/// Returns the end of the longest beginning of the text that takes at most `width` columns.
#[must_use]
pub fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    let too_wide = |c: char| {
        used += columns_of(c);
        used > width
    };
    text.find(too_wide).unwrap_or(text.len())
}

/// Like [`fitting`], but has one character at least.
#[must_use]
pub fn fitting_one(text: &str, width: usize) -> usize {
    fitting(text, width).max(text.chars().next().map_or(0, char::len_utf8))
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Wraps a line into pieces of at most `width` columns, between words if possible.
#[must_use]
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let limit = fitting_one(rest, width);
        let Some(next) = rest[limit..].chars().next() else { break };
        let end = if next == ' ' { Some(limit) } else { rest[..limit].rfind(' ').filter(|end| *end > 0) };
        let end = end.unwrap_or(limit);
        pieces.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    pieces.push(rest.to_owned());
    pieces
}

/// Returns the width of the terminal that a stream of this process goes to, or `None` if it is no terminal.
#[must_use]
pub fn width(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Returns the text with each unsafe character, except line feeds and tabs, as an escape (`\u{202e}`).
#[must_use]
pub fn visible(text: &str) -> String {
    let shown = |c: char| match !matches!(c, '\n' | '\t') && unsafe_to_show(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn unsafe_to_show(c: char) -> bool {
    // U+200C and U+200D stay: words of some languages and emoji need them.
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!([columns("tea"), columns("日本"), columns("e\u{301}")], [3, 4, 1]);
        assert_eq!([fitting("日本", 3), fitting("日本", 4), fitting("tea", 9)], [3, 6, 3]);
        assert_eq!(wrapped("日本語で", 4), ["日本", "語で"]);
        assert_eq!(wrapped("お茶 を 飲む", 5), ["お茶", "を", "飲む"]);
        assert_eq!(wrapped("日本", 1), ["日", "本"]);
        assert_eq!(wrapped("say what matters", 8), ["say what", "matters"]);
    }

    #[test]
    fn nothing_but_text_reaches_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\r\nc\u{9b}d\u{202e}e"), "a [31mb  c d e");
        assert_eq!(visible("a\u{202e}b\n\tc\u{1b}"), "a\\u{202e}b\n\tc\\u{1b}");
        assert_eq!(plain_lines("a\u{1b}[2Jb\n\tc\r\u{2066}"), "a[2Jb\n\tc");
        assert_eq!(
            plain_lines("g\u{200b}it\u{2028}\u{e0041}\u{feff} \u{1f469}\u{200d}\u{1f4bb}"),
            "git \u{1f469}\u{200d}\u{1f4bb}"
        );
    }
}
