//! Splits a long text into several messages. No cut divides a grapheme. A code block that is cut is closed before the cut and reopened
//! after it.

use unicode_segmentation::UnicodeSegmentation as _;

/// Delimiter of a code block.
const FENCE: &str = "```";

/// Text that closes a code block at a cut.
const CLOSING: &str = "\n```";

/// Maximum length of a language name that is repeated after a cut, in bytes.
const LONGEST_LANGUAGE: usize = 20;

/// Returns the length in UTF-16 code units. Discord and Telegram count no more than that.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Splits a text into non-empty parts of at most `limit` UTF-16 code units. `limit` must be at least 100.
pub(super) fn split(text: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    let mut opening = String::new();
    while !rest.trim().is_empty() {
        let room = limit - length(&opening);
        let (piece, next) = cut(rest, room, opening.is_empty());
        let open = open_after(piece, &opening);
        if !piece.trim().is_empty() {
            let closing = if open.is_some() { CLOSING } else { "" };
            parts.push(format!("{opening}{}{closing}", piece.trim_end()));
        }
        rest = next;
        opening = open.map(|language| format!("{FENCE}{language}\n")).unwrap_or_default();
    }
    parts
}

/// Returns the end of a text, as one part of at most `limit` UTF-16 code units.
pub(super) fn tail(text: &str, limit: usize) -> String {
    let mut parts = split(text, limit);
    parts.pop().unwrap_or_default()
}

/// Closes the code block that is open at the end of a text, if any.
pub(super) fn closed(text: &str) -> String {
    let closing = if open_after(text, "").is_some() { CLOSING } else { "" };
    format!("{text}{closing}")
}

/// Cuts the text once. Both halves together are the text, except for one line feed between them.
fn cut(text: &str, room: usize, outside: bool) -> (&str, &str) {
    let closed = |text: &str| open_after(text, if outside { "" } else { FENCE }).is_none();
    if length(text) <= room && (closed(text) || length(text) + CLOSING.len() <= room) {
        return (text, "");
    }
    let end = fitting(text, room - CLOSING.len());
    let head = &text[..end];
    // Prefer a line end in the second half of the room, then a blank there, then any position.
    let late = |at: &usize| *at > end / 2;
    let mut end = match head.rfind('\n').filter(late) {
        Some(at) => at,
        None => head.rfind(' ').filter(late).map_or(end, |at| at + 1),
    };
    // Do not cut within a fence, or between a fence and the first line of its block.
    let marks = text[..end].len() - text[..end].trim_end_matches('`').len();
    if marks > 0 && text[end..].starts_with('`') && end > marks {
        end -= marks;
    }
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if line > 0 && text[line..end].starts_with(FENCE) && !closed(&text[..end]) && closed(&text[..line]) {
        end = line;
    }
    let (piece, next) = text.split_at(end);
    (piece, next.strip_prefix('\n').unwrap_or(next))
}

/// Returns the byte length of the longest prefix of whole graphemes in at most `room` UTF-16 code units; at least one character.
fn fitting(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let longer = used + length(grapheme);
        if longer > room {
            // A grapheme that is longer than a message is cut.
            return if at > 0 { at } else { fitting_chars(text, room) };
        }
        used = longer;
    }
    text.len()
}

fn fitting_chars(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > room {
            return at;
        }
    }
    text.len()
}

/// Returns the language of the code block that is open after `text`. `opening` is the fence of a block that is open before it.
fn open_after(text: &str, opening: &str) -> Option<String> {
    let mut open = opening.strip_prefix(FENCE).map(|language| language.trim_end().to_owned());
    let mut rest = text;
    while let Some(at) = rest.find(FENCE) {
        rest = &rest[at + FENCE.len()..];
        open = match open {
            Some(_) => None,
            None => Some(language(rest)),
        };
    }
    open
}

/// Returns the language name on a fence's line, or an empty string if there is none.
fn language(text: &str) -> String {
    let line = text.split_once('\n').map(|(line, _)| line).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_#".contains(c);
    if line.len() <= LONGEST_LANGUAGE && line.chars().all(plain) { line.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 100;

    #[test]
    fn a_short_text_is_one_part() {
        assert_eq!(split(" Tea. \n", LIMIT), ["Tea."]);
        assert_eq!(split(" \n ", LIMIT), [""; 0]);
        let whole = "x".repeat(LIMIT);
        assert_eq!(split(&whole, LIMIT), [whole]);
    }

    #[test]
    fn lines_and_words_stay_whole() {
        let text = format!("{}\n{}", "a".repeat(80), "b".repeat(80));
        assert_eq!(split(&text, LIMIT), ["a".repeat(80), "b".repeat(80)]);
        let text = format!("{} {}", "a".repeat(80), "b".repeat(80));
        assert_eq!(split(&text, LIMIT), ["a".repeat(80), "b".repeat(80)]);
    }

    #[test]
    fn a_code_block_ends_before_a_cut_and_begins_again() {
        let lines: Vec<String> = (0..20).map(|n| format!("line {n:02}")).collect();
        let parts = split(&format!("Look:\n```rust\n{}\n```\nDone.", lines.join("\n")), LIMIT);
        assert!(parts.len() > 1);
        for (n, part) in parts.iter().enumerate() {
            assert_eq!(part.matches(FENCE).count(), 2, "{part}");
            assert!(n == 0 || part.starts_with("```rust\nline "), "{part}");
        }
        assert!(parts[0].starts_with("Look:\n```rust\nline 00") && parts.last().unwrap().ends_with("\n```\nDone."));
        let all: Vec<&str> =
            parts.iter().flat_map(|part| part.lines()).filter(|line| line.starts_with("line")).collect();
        assert_eq!(all, lines);
    }

    #[test]
    fn a_block_that_begins_at_the_end_begins_in_the_next_part() {
        let parts = split(&format!("{}\n```py\n{}\n```", "a".repeat(88), "b".repeat(50)), LIMIT);
        assert_eq!(parts, ["a".repeat(88), format!("```py\n{}\n```", "b".repeat(50))]);
    }

    #[test]
    fn what_is_seen_as_one_character_stays_whole() {
        let family = "👩‍👩‍👧‍👦";
        for parts in [split(&family.repeat(40), LIMIT), split(&"e\u{301}".repeat(90), LIMIT)] {
            assert!(parts.len() > 1);
            for part in parts {
                assert!(part.starts_with(['👩', 'e']) && part.ends_with(['👦', '\u{301}']), "{part:?}");
            }
        }
        let zalgo = format!("e{}", "\u{301}".repeat(500));
        assert_eq!(split(&zalgo, LIMIT).concat(), zalgo);
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            8 => "[a-z]{1,30}",
            4 => Just(" ".to_owned()),
            4 => Just("\n".to_owned()),
            3 => Just("```".to_owned()),
            2 => Just("```rust\n".to_owned()),
            1 => Just("`".to_owned()),
            1 => Just("👩‍👩‍👧‍👦".to_owned()),
            1 => "\\PC{0,20}",
        ];
        proptest::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_everything_fits(text in text()) {
            let parts = split(&text, LIMIT);
            for part in &parts {
                prop_assert!(length(part) <= LIMIT, "{} in {part:?}", length(part));
                prop_assert!(!part.trim().is_empty());
                prop_assert_eq!(open_after(part, ""), None, "{:?}", part);
            }
            // The parts add only fences, their languages and blanks.
            let bare = |text: &str| -> Vec<char> {
                text.chars().filter(|c| !c.is_whitespace() && *c != '`').collect()
            };
            let (whole, all) = (bare(&text), bare(&parts.concat()));
            let mut left = all.iter();
            prop_assert!(whole.iter().all(|c| left.any(|other| other == c)), "{:?} in {:?}", whole, all);
            prop_assert!(all.len() <= whole.len() + parts.len() * LONGEST_LANGUAGE);
        }
    }
}
