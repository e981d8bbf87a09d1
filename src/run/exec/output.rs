//! The kept part of a command's output: the beginning and the end.

use std::collections::VecDeque;

/// Length from which an unfinished line is shown before its end, in bytes.
const LONG_LINE: usize = 4 * 1024;

/// Number of lines that stand for the whole output in an error.
const LAST_LINES: usize = 3;

/// The output so far.
#[derive(Debug)]
pub(super) struct Output {
    /// Maximum number of bytes kept of the beginning, and of the end.
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Number of bytes between the beginning and the end that were dropped.
    left_out: u64,
    /// Number of bytes of the beginning that were taken.
    taken: usize,
}

impl Output {
    /// Creates an empty output that keeps at most `bytes` bytes.
    pub(super) fn keeping(bytes: usize) -> Self {
        Self { most: bytes / 2, head: Vec::new(), tail: VecDeque::new(), left_out: 0, taken: 0 }
    }

    /// Adds printed bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.most - self.head.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(self.most)..];
        let surplus = (self.tail.len() + kept.len()).saturating_sub(self.most);
        self.left_out += (rest.len() - kept.len() + surplus) as u64;
        self.tail.drain(..surplus);
        self.tail.extend(kept);
    }

    /// Takes the new complete lines of the beginning, or a long incomplete one. Empty if there are none.
    pub(super) fn take_lines(&mut self) -> String {
        let new = &self.head[self.taken..];
        let end = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            None if new.len() < LONG_LINE => 0,
            None => letters_end(new),
        };
        let text = String::from_utf8_lossy(&new[..end]).into_owned();
        self.taken += end;
        text
    }

    /// Takes the rest, with a line in place of the dropped part.
    pub(super) fn take_rest(&mut self) -> String {
        let mut bytes = self.head.split_off(self.taken.min(self.head.len()));
        self.taken = 0;
        self.append_tail(&mut bytes);
        self.tail.clear();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns all that is kept.
    pub(super) fn text(&self) -> String {
        let mut bytes = self.head.clone();
        self.append_tail(&mut bytes);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    fn append_tail(&self, bytes: &mut Vec<u8>) {
        if self.left_out > 0 {
            bytes.extend(format!("\n[{} bytes are left out here]\n", self.left_out).bytes());
        }
        bytes.extend(&self.tail);
    }

    /// Returns the last lines that are not blank, joined into one line.
    pub(super) fn last_lines(&self, longest: usize) -> String {
        let text = self.text();
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(LAST_LINES);
        let mut lines: Vec<String> = lines.map(|line| crate::policy::on_one_line(line, longest)).collect();
        lines.reverse();
        lines.join(" / ")
    }
}

/// Returns the end of the last complete UTF-8 character.
fn letters_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: usize = 32 * 1024;
    const TAIL: usize = HEAD;

    fn printed(pieces: &[&[u8]]) -> Output {
        let mut output = Output::keeping(HEAD + TAIL);
        pieces.iter().for_each(|piece| output.push(piece));
        output
    }

    #[test]
    fn what_is_short_is_kept_as_it_is() {
        let mut output = printed(&[b"one\ntw", b"o\nthr\xff"]);
        assert_eq!(output.text(), "one\ntwo\nthr\u{fffd}");
        assert_eq!(output.take_lines(), "one\ntwo\n");
        assert_eq!(output.take_lines(), "");
        output.push(b"ee");
        assert_eq!(output.last_lines(2), "on… / tw… / th…");
        assert_eq!(output.take_rest(), "thr\u{fffd}ee");
    }

    /// Keeps the beginning and the end, and counts the bytes between them, for every size of the pieces.
    #[test]
    fn of_what_is_long_the_beginning_and_the_end_are_kept() {
        for piece in [1, 7, 1000, HEAD, HEAD + TAIL, 500_000] {
            let all: Vec<u8> = (0..500_000u32).map(|n| b'a' + (n % 26) as u8).collect();
            let mut output = printed(&all.chunks(piece).collect::<Vec<_>>());
            let text = output.text();
            let head = std::str::from_utf8(&all[..HEAD]).unwrap();
            let tail = std::str::from_utf8(&all[500_000 - TAIL..]).unwrap();
            let between = format!("\n[{} bytes are left out here]\n", 500_000 - HEAD - TAIL);
            assert!(text == format!("{head}{between}{tail}"), "{piece}");
            let taken = output.take_lines();
            assert_eq!(format!("{taken}{}", output.take_rest()).len(), text.len(), "{piece}");
        }
    }

    #[test]
    fn a_letter_is_not_cut_by_what_is_shown_first() {
        let long = "é".repeat(LONG_LINE);
        let mut output = printed(&[&long.as_bytes()[..LONG_LINE + 1]]);
        let first = output.take_lines();
        assert_eq!(first, "é".repeat(LONG_LINE / 2));
        output.push(&long.as_bytes()[LONG_LINE + 1..]);
        assert_eq!(format!("{first}{}", output.take_rest()), long);
    }
}
