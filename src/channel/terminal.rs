//! Makes text from files, messages and agents safe for a terminal. Text of a job cannot move the cursor, colour the screen or change the
//! writing direction.

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

fn unsafe_to_show(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_text_reaches_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\r\nc\u{9b}d\u{202e}e"), "a [31mb  c d e");
        assert_eq!(plain_lines("a\u{1b}[2Jb\n\tc\r\u{2066}"), "a[2Jb\n\tc");
    }
}
