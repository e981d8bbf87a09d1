//! Wildcard patterns for commands, such as `git log *`, and for names.
//!
//! A command is matched as one text: its words separated by [`BREAK`], which no word can contain. Time is bounded by
//! the length of that text: the parts between stars are searched one after the other, and never twice.

/// The separator between two words.
pub(super) const BREAK: char = '\0';

/// The star in a pattern's text.
pub(super) const STAR: char = '\u{1}';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    Break,
    Star,
}

/// The end of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// The command ends where the pattern does.
    Exact,
    /// ` *`: nothing, or a word break and any text.
    Words,
    /// `*` without a break: any text.
    Text,
}

/// A compiled command pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wildcard {
    pieces: Vec<Piece>,
    tail: Tail,
    /// The texts between the stars. Never empty.
    parts: Vec<String>,
    /// The same with every blank as a [`BREAK`].
    loose_parts: Vec<String>,
}

/// Joins words to one text.
pub(super) fn joined<T: AsRef<str>>(words: &[T]) -> String {
    let mut text = String::with_capacity(words.iter().map(|word| word.as_ref().len() + 1).sum());
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            text.push(BREAK);
        }
        text.push_str(word.as_ref());
    }
    text
}

/// Returns a text with every blank as a break between words.
pub(super) fn loose(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { BREAK } else { c }).collect()
}

impl Wildcard {
    /// Compiles `text`. Words are split with quotes removed and blanks normalised. `*` matches anything, and a trailing ` *` or
    /// `:*` the bare command too. As in a shell, `\*` and a star between quotes are literal stars.
    pub(super) fn command(text: &str) -> Self {
        Self::new(split(text, Piece::Char('*')))
    }

    /// Compiles `text` as a denial matches in doubt: a star between quotes matches anything, too.
    pub(super) fn command_in_doubt(text: &str) -> Self {
        Self::new(split(text, Piece::Star))
    }

    /// Compiles words, in which [`STAR`] is a star.
    pub(super) fn words_of(words: &[String]) -> Self {
        let piece = |c: char| match c {
            STAR => Piece::Star,
            BREAK => Piece::Break,
            c => Piece::Char(c),
        };
        Self::new(joined(words).chars().map(piece).collect())
    }

    /// Compiles a name without words. `*` (or [`STAR`]) matches any characters.
    pub(super) fn name(text: &str) -> Self {
        Self::new(text.chars().map(|c| if matches!(c, '*' | STAR) { Piece::Star } else { Piece::Char(c) }).collect())
    }

    fn new(mut pieces: Vec<Piece>) -> Self {
        let tail = if pieces.last() == Some(&Piece::Star) {
            while pieces.last() == Some(&Piece::Star) {
                pieces.pop();
            }
            if pieces.last() == Some(&Piece::Break) {
                pieces.pop();
                Tail::Words
            } else {
                Tail::Text
            }
        } else {
            Tail::Exact
        };
        Self::assembled(pieces, tail)
    }

    fn assembled(pieces: Vec<Piece>, tail: Tail) -> Self {
        let text = |piece: &Piece| match piece {
            Piece::Char(c) => *c,
            Piece::Break | Piece::Star => BREAK,
        };
        let parts: Vec<String> =
            pieces.split(|piece| *piece == Piece::Star).map(|part| part.iter().map(text).collect()).collect();
        let loose_parts = parts.iter().map(|part| loose(part)).collect();
        Self { pieces, tail, parts, loose_parts }
    }

    /// Returns whether the pattern is `*` alone.
    pub(super) fn matches_everything(&self) -> bool {
        self.pieces.is_empty() && self.tail == Tail::Text
    }

    /// Returns whether the pattern has no star, so that it matches one command.
    pub(super) fn is_exact(&self) -> bool {
        self.parts.len() == 1 && self.tail == Tail::Exact
    }

    /// Returns whether the pattern has no star at its end.
    pub(super) fn is_closed(&self) -> bool {
        self.tail == Tail::Exact
    }

    /// Returns whether a star is before the end, so that matching searches the whole command.
    pub(super) fn searches(&self) -> bool {
        self.parts.len() > 1
    }

    /// Returns the words before the first one with a wildcard.
    pub(super) fn fixed_words(&self) -> Vec<String> {
        self.words().into_iter().take_while(|word| !word.contains(STAR)).collect()
    }

    /// Returns all words, with each star as [`STAR`].
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut push = |c: char| match c {
            BREAK => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|word| word.push(c)),
        };
        for piece in &self.pieces {
            push(match piece {
                Piece::Char(c) => *c,
                Piece::Break => BREAK,
                Piece::Star => STAR,
            });
        }
        match self.tail {
            Tail::Exact => {}
            Tail::Words => [BREAK, STAR].into_iter().for_each(&mut push),
            Tail::Text => push(STAR),
        }
        words
    }

    /// Returns the pattern with its first `drop` words replaced by `words`.
    pub(super) fn with_prefix<T: AsRef<str>>(&self, drop: usize, words: &[T]) -> Self {
        let mut rest = self.pieces.as_slice();
        for _ in 0..drop {
            let end = rest.iter().position(|piece| *piece == Piece::Break);
            rest = end.map_or(&[], |at| &rest[at + 1..]);
        }
        let mut pieces = Vec::new();
        for word in words {
            if !pieces.is_empty() {
                pieces.push(Piece::Break);
            }
            pieces.extend(word.as_ref().chars().map(Piece::Char));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Break);
            pieces.extend_from_slice(rest);
        }
        Self::assembled(pieces, self.tail)
    }

    /// Returns whether the pattern matches a command (see [`joined`]) or a name.
    pub(super) fn matches(&self, text: &str) -> bool {
        fits(&self.parts, self.tail, text, |_, _| true)
    }

    /// Returns whether the pattern matches if a blank inside a word may be a word break too, as denials match in
    /// doubt. `text` comes from [`loose`].
    pub(super) fn matches_loosely(&self, text: &str) -> bool {
        fits(&self.loose_parts, self.tail, text, |_, _| true)
    }

    /// Returns the same where each star before the end stands for operands only: for no option, and directly behind an option for one
    /// word.
    pub(super) fn matches_operands(&self, text: &str) -> bool {
        self.matches_whole_words(text, stands_for_operands)
    }

    /// Returns the same where each star before the end stands for one operand, or for a part of one.
    pub(super) fn matches_single_operands(&self, text: &str) -> bool {
        self.matches_whole_words(text, |before, stands_for| {
            stands_for_operands(before, stands_for) && !stands_for.contains(BREAK)
        })
    }

    /// Returns the same where `allows` says of each star before the end whether it may stand for a text, up to the end of its word: with
    /// `*v` a `-` is an option.
    fn matches_whole_words(&self, text: &str, allows: impl Fn(&str, &str) -> bool) -> bool {
        fits_where(&self.parts, self.tail, text, |_, before, stands_for, behind| {
            let rest = |behind: &str| behind.split(BREAK).next().map(ToOwned::to_owned).unwrap_or_default();
            behind.is_none_or(|behind| allows(before, &format!("{stands_for}{}", rest(behind))))
        })
    }

    /// Returns the same where `allows` says of each star that is a part of a word whether it may stand for a text there. One at
    /// the very end may stand for further words behind its own.
    pub(super) fn matches_within_words(&self, text: &str, allows: impl Fn(&StarInWord<'_>) -> bool) -> bool {
        fits_where(&self.parts, self.tail, text, |star, before, stands_for, behind| {
            let at = self.parts[..=star].iter().map(|part| part.matches(BREAK).count()).sum();
            let mut words = before.rsplit(BREAK);
            let before = words.next().unwrap_or_default();
            let rest = behind.map_or("", |behind| behind.split(BREAK).next().unwrap_or_default());
            let stands_for = match behind {
                None => stands_for.split(BREAK).next().unwrap_or_default(),
                Some(_) => stands_for,
            };
            let previous = words.next().unwrap_or_default();
            let is_whole = before.is_empty() && rest.is_empty();
            is_whole || allows(&StarInWord { at, previous, before, stands_for, behind: rest })
        })
    }

    /// Returns the same where `allows` says of each star before the end whether it may stand for a text. Its arguments are the text
    /// before the star, and that text.
    pub(super) fn matches_where(&self, text: &str, allows: impl Fn(&str, &str) -> bool) -> bool {
        fits(&self.parts, self.tail, text, allows)
    }

    /// Returns whether this matches everything that `other` matches. `false` if that cannot be told.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if self.pieces == other.pieces && self.tail == other.tail {
            return true;
        }
        // A star of `other` is a character that only a star of `self` can match.
        let is_mark = |piece: &Piece| matches!(piece, Piece::Char(BREAK | STAR));
        if self.pieces.iter().chain(&other.pieces).any(is_mark) {
            return false;
        }
        let words = other.words();
        let bare = match other.tail {
            Tail::Words => &words[..words.len() - 1],
            _ => &words[..],
        };
        self.matches(&joined(&words)) && self.matches(&joined(bare))
    }

    /// Returns whether some command could match both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.readings(), other.readings());
        ours.iter().any(|one| theirs.iter().any(|other| meet(one, other)))
    }

    /// Returns the pattern without its tail. A pattern with ` *` has a second reading, the bare command.
    fn readings(&self) -> Vec<Vec<Piece>> {
        let with = |more: &[Piece]| [&self.pieces, more].concat();
        match self.tail {
            Tail::Exact => vec![with(&[])],
            Tail::Text => vec![with(&[Piece::Star])],
            Tail::Words => vec![with(&[]), with(&[Piece::Break, Piece::Star])],
        }
    }
}

/// Returns whether a word is an option, and not `-` alone.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns whether a star behind the text `before` stands for operands there: see [`Wildcard::matches_operands`].
fn stands_for_operands(before: &str, stands_for: &str) -> bool {
    let words_before = before.strip_suffix(BREAK);
    let is_value = words_before.and_then(|words| words.rsplit(BREAK).next()).is_some_and(is_option);
    // A star within a word begins with the rest of that word.
    let within = words_before.is_none() && !before.is_empty();
    let has_option = stands_for.split(BREAK).skip(usize::from(within)).any(is_option);
    !has_option && (!is_value || !stands_for.contains(BREAK))
}

/// Returns whether the parts occur in order in the text, the first at its beginning, and the last where the tail requires. `allows` says of
/// each star before the end whether it may stand for a text. Its arguments are the text before the star, and that text.
fn fits(parts: &[String], tail: Tail, text: &str, allows: impl Fn(&str, &str) -> bool) -> bool {
    fits_where(parts, tail, text, |_, before, stands_for, behind| behind.is_none() || allows(before, stands_for))
}

/// Returns the same. `allows` gets the number of the star and the text of the pattern behind it as well, and is asked of a star at the very
/// end, too: then that text is `None`.
fn fits_where(
    parts: &[String],
    tail: Tail,
    text: &str,
    allows: impl Fn(usize, &str, &str, Option<&str>) -> bool,
) -> bool {
    let ends = |rest: &str| match tail {
        Tail::Exact => rest.is_empty(),
        Tail::Words => rest.is_empty() || rest.starts_with(BREAK),
        Tail::Text => allows(parts.len() - 1, &text[..text.len() - rest.len()], rest, None),
    };
    let Some((first, others)) = parts.split_first() else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    if others.is_empty() {
        return ends(rest);
    }
    for (at, part) in others.iter().enumerate() {
        let end = || rest.strip_suffix(part.as_str()).map(str::len);
        let found = match tail {
            Tail::Exact if at + 1 == others.len() => end(),
            Tail::Words if at + 1 == others.len() => rest.find(&format!("{part}{BREAK}")).or_else(end),
            _ => rest.find(part.as_str()),
        };
        let allowed = |found: &usize| allows(at, &text[..text.len() - rest.len()], &rest[..*found], Some(part));
        let Some(found) = found.filter(allowed) else { return false };
        rest = &rest[found + part.len()..];
    }
    tail != Tail::Text || ends(rest)
}

/// A star that is a part of a word, and the text that it stands for.
#[derive(Clone, Copy)]
pub(super) struct StarInWord<'a> {
    /// The index of its word in the pattern.
    pub at: usize,
    /// The word in front of its word.
    pub previous: &'a str,
    /// The beginning of its word.
    pub before: &'a str,
    /// The text that it stands for.
    pub stands_for: &'a str,
    /// The end of its word, up to the next star.
    pub behind: &'a str,
}

/// Returns whether no shell, database or interpreter takes a character for more than a part of a word.
pub(super) fn plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./:=@%+,~".contains(c)
}

/// Returns whether some text matches both patterns, which have no tails.
fn meet(one: &[Piece], other: &[Piece]) -> bool {
    let blank = |piece: Piece| match piece {
        Piece::Char(c) if c.is_whitespace() || c == BREAK => Piece::Break,
        piece => piece,
    };
    let width = other.len() + 1;
    let mut reached = vec![false; (one.len() + 1) * width];
    reached[0] = true;
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            if !reached[i * width + j] {
                continue;
            }
            let (a, b) = (one.get(i).copied().map(blank), other.get(j).copied().map(blank));
            let stars = (a == Some(Piece::Star), b == Some(Piece::Star));
            if stars.0 || (stars.1 && a.is_some()) {
                reached[(i + 1) * width + j] = true;
            }
            if stars.1 || (stars.0 && b.is_some()) {
                reached[i * width + j + 1] = true;
            }
            if a.is_some() && a == b {
                reached[(i + 1) * width + j + 1] = true;
            }
        }
    }
    reached.last().copied().unwrap_or(false)
}

/// Splits a pattern as a shell would split a command, and keeps the stars. `quoted`: what a star between quotes is.
fn split(text: &str, quoted: Piece) -> Vec<Piece> {
    let text = text.trim();
    let text = text.strip_suffix(":*").map_or_else(|| text.to_owned(), |head| format!("{head} *"));
    let mut pieces = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => pieces.push(Piece::Char(rest.next().unwrap_or('\\'))),
            '\'' | '"' if rest.as_str().contains(c) => {
                for inner in rest.by_ref() {
                    match inner {
                        _ if inner == c => break,
                        '*' => pieces.push(quoted),
                        _ => pieces.push(Piece::Char(inner)),
                    }
                }
            }
            '*' => pieces.push(Piece::Star),
            _ if c.is_whitespace() => {
                if pieces.last() != Some(&Piece::Break) {
                    pieces.push(Piece::Break);
                }
            }
            _ => pieces.push(Piece::Char(c)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a pattern. Words are separated by blanks, and `_` stands for a blank inside a word.
    #[track_caller]
    fn check(pattern: &str, command: &str, strict: bool, in_doubt: bool) {
        let wildcard = Wildcard::command(pattern);
        let words: Vec<String> = command.split(' ').map(|word| word.replace('_', " ")).collect();
        let text = joined(&words);
        assert_eq!(wildcard.matches(&text), strict, "{pattern} on {command}");
        assert_eq!(wildcard.matches_loosely(&loose(&text)), in_doubt, "in doubt: {pattern} on {command}");
    }

    #[test]
    fn commands_match_by_words() {
        for (pattern, command, matches) in [
            ("ls", "ls", true),
            ("ls", "ls -l", false),
            ("ls *", "ls", true),
            ("ls *", "ls -l", true),
            ("ls *", "lsof", false),
            ("ls*", "lsof", true),
            ("ls:*", "ls -l", true),
            ("ls:*", "lsof", false),
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin dev", false),
            ("git * main", "git main", false),
            ("git * --force *", "git push --force", true),
            ("git * --force *", "git push --force origin", true),
            ("git * --force *", "git push --forced", false),
            ("git * --force *", "git push --forced --force x", true),
            ("*", "anything at all", true),
            ("* *", "anything", true),
            ("* --version", "cargo --version", true),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("a*a", "a", false),
            ("bot help", "bot helpx", false),
            ("bot help", "bot", false),
            ("a \\* b", "a * b", true),
            ("a \\* b", "a x b", false),
            ("a '*' b", "a * b", true),
            ("a \"x*\" *", "a x* y", true),
        ] {
            check(pattern, command, matches, matches);
        }
    }

    #[test]
    fn a_blank_inside_a_word_is_no_break_for_a_grant() {
        check("bot gmail *", "bot gmail_x", false, true);
        check("git log *", "git log a_b", true, true);
        check("git commit -m \"wip now\"", "git commit -m wip_now", true, true);
        check("git commit -m wip now", "git commit -m wip_now", false, true);
    }

    #[test]
    fn covering_is_sound() {
        for (parent, child, covers) in [
            ("git *", "git log *", true),
            ("git *", "git log", true),
            ("git *", "git", true),
            ("git log", "git *", false),
            ("git *", "gitk *", false),
            ("git*", "gitk *", true),
            ("*", "anything *", true),
            ("git * main", "git * main", true),
            ("git * main", "git push main", true),
            ("git * main", "git * x * main", true),
            ("git push *", "git * main", false),
            ("ls *", "ls*", false),
            ("ls *", "* x", false),
            ("a b*", "a *", false),
        ] {
            let (parent_w, child_w) = (Wildcard::command(parent), Wildcard::command(child));
            assert_eq!(parent_w.covers(&child_w), covers, "{parent} covers {child}");
        }
    }

    #[test]
    fn overlap_is_found() {
        for (a, b, overlaps) in [
            ("bot cal *", "bot gmail *", false),
            ("bot cal *", "bot *", true),
            ("bot cal", "bot *", true),
            ("bot *", "bot cal", true),
            ("* --force", "git push *", true),
            ("ls", "ls *", true),
            ("ls *", "ls", true),
            ("lsof", "ls *", false),
            ("a*b", "*c", false),
            ("a*b", "*b", true),
        ] {
            assert_eq!(Wildcard::command(a).overlaps(&Wildcard::command(b)), overlaps, "{a} and {b}");
            assert_eq!(Wildcard::command(b).overlaps(&Wildcard::command(a)), overlaps, "{b} and {a}");
        }
    }

    #[test]
    fn fixed_words_stop_at_the_first_wildcard() {
        assert_eq!(Wildcard::command("bot gmail *").fixed_words(), ["bot", "gmail"]);
        assert_eq!(Wildcard::command("bot g*").fixed_words(), ["bot"]);
        assert_eq!(Wildcard::command("git * main").fixed_words(), ["git"]);
        assert!(Wildcard::command("*").fixed_words().is_empty());
        assert_eq!(Wildcard::command("a b* *").words(), ["a", "b\u{1}", "\u{1}"]);
    }
}
