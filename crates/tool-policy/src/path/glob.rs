//! Matching of path segments, gitignore style.

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// `**`: any number of segments.
    Deep,
    /// Plain text.
    Plain(String),
    /// Text with `*`, `?` or `[…]`.
    Wild(Vec<Piece>),
}

/// A piece of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Char(char),
    One,
    Many,
    /// `[a-z]`; negated with `!` or `^`.
    Class(bool, Vec<(char, char)>),
}

impl Segment {
    pub(super) fn new(text: &str) -> Self {
        if text == "**" {
            return Self::Deep;
        }
        let mut pieces = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            pieces.push(match c {
                '*' => Piece::Many,
                '?' => Piece::One,
                '\\' => Piece::Char(rest.next().unwrap_or('\\')),
                '[' => class(&mut rest).unwrap_or(Piece::Char('[')),
                c => Piece::Char(c),
            });
        }
        let plain: Option<String> =
            pieces.iter().map(|piece| if let Piece::Char(c) = piece { Some(*c) } else { None }).collect();
        plain.map_or(Self::Wild(pieces), Self::Plain)
    }

    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Deep | Self::Wild(_) => None,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.plain().is_some()
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Deep => true,
            Self::Plain(plain) => plain == text,
            Self::Wild(pieces) => wild(pieces, text),
        }
    }
}

/// Parses the rest of a class after `[`. Leaves `rest` unchanged if the class has no end.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Piece> {
    let (inside, after) = rest.as_str().split_once(']').filter(|(inside, _)| !inside.is_empty())?;
    let (negated, inside) = match inside.strip_prefix(['!', '^']) {
        Some(inside) => (true, inside),
        None => (false, inside),
    };
    let chars: Vec<char> = inside.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if chars.get(at + 1) == Some(&'-') && at + 2 < chars.len() {
            ranges.push((chars[at], chars[at + 2]));
            at += 3;
        } else {
            ranges.push((chars[at], chars[at]));
            at += 1;
        }
    }
    *rest = after.chars();
    Some(Piece::Class(negated, ranges))
}

/// Matches a segment. Keeps only one row of the table. The time is bounded by pattern times text.
fn wild(pieces: &[Piece], text: &str) -> bool {
    let mut here = vec![false; pieces.len() + 1];
    here[0] = true;
    close(pieces, &mut here);
    for c in text.chars() {
        let mut next = vec![false; pieces.len() + 1];
        for (at, piece) in pieces.iter().enumerate() {
            if !here[at] {
                continue;
            }
            match piece {
                Piece::Many => next[at] = true,
                Piece::One => next[at + 1] = true,
                Piece::Char(expected) => next[at + 1] |= *expected == c,
                Piece::Class(negated, ranges) => {
                    let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                    next[at + 1] |= inside != *negated;
                }
            }
        }
        close(pieces, &mut next);
        here = next;
    }
    here[pieces.len()]
}

fn close(pieces: &[Piece], here: &mut [bool]) {
    for (at, piece) in pieces.iter().enumerate() {
        if here[at] && *piece == Piece::Many {
            here[at + 1] = true;
        }
    }
}

/// Returns whether the segments match the whole path. A trailing `**` needs at least one more segment.
pub(super) fn matches(segments: &[Segment], path: &[&str]) -> bool {
    let reached = reach(segments, path);
    reached[segments.len()] && (segments.last() != Some(&Segment::Deep) || reaches_inside(segments, path))
}

/// Returns whether something under the path could match.
pub(super) fn could_match_below(segments: &[Segment], path: &[&str]) -> bool {
    reach(segments, path)[..segments.len()].contains(&true) || matches(segments, path)
}

fn reaches_inside(segments: &[Segment], path: &[&str]) -> bool {
    let prefix = &segments[..segments.len() - 1];
    (0..path.len()).any(|end| reach(prefix, &path[..end])[prefix.len()])
}

/// Returns the pattern positions that are reachable after the whole path.
fn reach(segments: &[Segment], path: &[&str]) -> Vec<bool> {
    let mut here = vec![false; segments.len() + 1];
    here[0] = true;
    skip_deep(segments, &mut here);
    for part in path {
        let mut next = vec![false; segments.len() + 1];
        for (at, segment) in segments.iter().enumerate() {
            if !here[at] {
                continue;
            }
            match segment {
                Segment::Deep => next[at] = true,
                segment => next[at + 1] |= segment.matches(part),
            }
        }
        skip_deep(segments, &mut next);
        here = next;
    }
    here
}

fn skip_deep(segments: &[Segment], here: &mut [bool]) {
    for (at, segment) in segments.iter().enumerate() {
        if here[at] && *segment == Segment::Deep {
            here[at + 1] = true;
        }
    }
}
