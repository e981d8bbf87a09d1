//! Text from files, messages and agents, made safe to show on a terminal: nothing that a job writes can move the
//! cursor, colour the screen, or turn the direction of writing.

/// On one line: what is not to be shown becomes a blank.
#[must_use]
pub fn plain(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(unsafe_to_show) {
        return text.to_owned();
    }
    text.chars().map(|c| if unsafe_to_show(c) { ' ' } else { c }).collect()
}

/// Of several lines: line ends and tabs stay, what is not to be shown goes.
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
