//! Wraps prose to the width of a terminal.
//!
//! A line is broken between words, and continues with the indentation of its first line. A word is never broken: a path or a link that is
//! longer than a line stays whole, so that it can be copied. For the same reason a command in backticks is kept on one line if it fits.
//! Colours count as nothing.

use std::borrow::Cow;

use crate::channel::terminal;

/// Minimum width of the text of a further line, in characters. With less room it loses its indentation.
const SHORTEST: usize = 20;

/// Wraps each line of the text. `None` is an unlimited width.
pub(super) fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| text.split('\n').any(|line| columns(line) > *width)) else {
        return Cow::Borrowed(text);
    };
    let mut fitted = String::with_capacity(text.len() + text.len() / 16);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            fitted.push('\n');
        }
        match columns(line) > width {
            true => {
                wrap(line, Layout { width, indent: leading_blanks(line), breaks: false }, &mut fitted);
            }
            false => fitted.push_str(line),
        }
    }
    Cow::Owned(fitted)
}

/// Wraps one line. Its further lines begin at `indent`. So that it fits in any case, a word is broken that is longer than a line.
pub(super) fn hanging(line: &str, indent: usize, width: usize) -> String {
    let mut hanging = String::new();
    wrap(line, Layout { width, indent, breaks: true }, &mut hanging);
    hanging
}

/// How a line is wrapped.
struct Layout {
    width: usize,
    /// Indentation of further lines. A word that needs the room gets some of it.
    indent: usize,
    /// Whether a word is broken that is longer than a line.
    breaks: bool,
}

/// Appends one line, broken between words.
fn wrap(line: &str, Layout { width, indent, breaks }: Layout, into: &mut String) {
    let indent = if indent + SHORTEST <= width { indent } else { 0 };
    let longest = width.saturating_sub(indent.max(leading_blanks(line)));
    let (mut used, mut blanks, mut is_first) = (0, 0, true);
    for (at, word) in words(line, longest).into_iter().enumerate() {
        blanks += usize::from(at > 0);
        // It stands between two blanks.
        if word.is_empty() {
            continue;
        }
        let mut word = word;
        if !is_first && used + blanks + columns(word) > width {
            into.push('\n');
            (used, blanks) = (0, indent.min(width.saturating_sub(columns(word))));
        }
        while breaks && used + blanks + columns(word) > width {
            let end = terminal::fitting_one(word, width.saturating_sub(used + blanks));
            into.extend(std::iter::repeat_n(' ', blanks));
            into.push_str(&word[..end]);
            into.push('\n');
            (word, used, blanks) = (&word[end..], 0, 0);
        }
        into.extend(std::iter::repeat_n(' ', blanks));
        into.push_str(word);
        (used, blanks, is_first) = (used + blanks + columns(word), 0, false);
    }
    into.extend(std::iter::repeat_n(' ', blanks));
}

fn leading_blanks(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Splits a line at its blanks. A piece in backticks is one word, if it has at most `longest` characters.
fn words(line: &str, longest: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let end = word_end(rest, longest);
        words.push(&rest[..end]);
        match rest[end..].strip_prefix(' ') {
            Some(after) => rest = after,
            None => return words,
        }
    }
}

/// Returns the end of the first word.
fn word_end(rest: &str, longest: usize) -> usize {
    let blank = rest.find(' ').unwrap_or(rest.len());
    let Some(open) = rest[..blank].find('`') else { return blank };
    let Some(close) = rest[open + 1..].find('`').map(|at| open + 1 + at) else { return blank };
    let end = rest[close..].find(' ').map_or(rest.len(), |at| close + at);
    if columns(&rest[..end]) <= longest { end.max(blank) } else { blank }
}

/// Returns the number of columns that the text takes on a terminal.
fn columns(text: &str) -> usize {
    match text.contains('\u{1b}') {
        true => anstream::adapter::strip_str(text).map(terminal::columns).sum(),
        false => terminal::columns(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(width: usize, text: &str, expect: &str) {
        assert_eq!(fitted(text, Some(width)), expect);
        assert_eq!(fitted(text, None), text);
    }

    #[test]
    fn a_line_goes_on_between_words_with_its_indentation() {
        check(20, "Sort the mail and say what matters", "Sort the mail and\nsay what matters");
        check(34, "Sort the mail and say what matters", "Sort the mail and say what matters");
        check(24, "  Sort the mail and say what matters", "  Sort the mail and say\n  what matters");
        check(24, "short\n  Sort the mail and say what\n", "short\n  Sort the mail and say\n  what\n");
        check(20, "name      two blanks and more", "name      two blanks\nand more");
    }

    #[test]
    fn a_word_stays_whole() {
        let link = "https://ntfy.sh/ollim-505c4c058992b815";
        check(20, &format!("Subscribe to {link} in the app"), &format!("Subscribe to\n{link}\nin the app"));
        check(20, link, link);
    }

    #[test]
    fn a_line_hangs_below_its_text_and_always_fits() {
        let shown = |text: &str| hanging(&format!("ok  disk  {text}"), 10, 30);
        assert_eq!(shown("23 GiB are free at /home"), "ok  disk  23 GiB are free at\n          /home");
        // A path that needs the room gets it.
        assert_eq!(shown("free at /home/ada/.ollim-bot"), "ok  disk  free at\n          /home/ada/.ollim-bot");
        assert_eq!(shown("free at /home/ada/.ollim-bot/state"), "ok  disk  free at\n    /home/ada/.ollim-bot/state");
        let long = "/home/ada/.ollim-bot/state/of/the/bot";
        assert_eq!(shown(&format!("at {long}, ok")), "ok  disk  at\n/home/ada/.ollim-bot/state/of/\nthe/bot, ok");
    }

    #[test]
    fn a_command_in_backticks_stays_whole_if_it_fits() {
        check(
            30,
            "see what is wrong: `ollim-bot check tea`; then go on",
            "see what is wrong:\n`ollim-bot check tea`; then go\non",
        );
        check(20, "say `ollim-bot reminder add tea`", "say `ollim-bot\nreminder add tea`");
        check(20, "an odd ` is no command, and breaks", "an odd ` is no\ncommand, and breaks");
    }

    #[test]
    fn colours_and_a_blank_at_the_end_count_as_they_look() {
        check(20, "\u{1b}[1mSort the mail\u{1b}[0m today", "\u{1b}[1mSort the mail\u{1b}[0m today");
        check(20, "\u{1b}[36mhint\u{1b}[0m: have systemd run it", "\u{1b}[36mhint\u{1b}[0m: have systemd\nrun it");
        check(20, "Have systemd run it now? [Y/n] ", "Have systemd run it\nnow? [Y/n] ");
    }

    proptest::proptest! {
        /// No word is lost, and a line is too long only if it is one word.
        #[test]
        fn every_word_is_there_and_lines_fit(line in "( {0,6}[a-zé`]{1,12}){1,20}", width in 1..60_usize) {
            let shown = fitted(&line, Some(width)).into_owned();
            proptest::prop_assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), line.split_whitespace().collect::<Vec<_>>());
            for line in shown.lines() {
                proptest::prop_assert!(columns(line) <= width || line.split_whitespace().count() == 1, "{}", shown);
            }
        }
    }
}
