//! Command patterns such as `ollim-bot gmail *`, matched against words of which parts may be unknown.
//!
//! Two questions, and never the wrong one: does the pattern match *whatever* the unknown parts hold (for a grant),
//! and *could* it match for some of them (for a denial)? Both walk the command once with the set of reachable pattern
//! positions, so time is bounded by command times pattern.

/// One symbol of a command: its words in order, separated by [`Symbol::Break`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// A character of a word, blanks inside a quoted word included.
    Char(char),
    /// Between two words.
    Break,
    /// Any text at all, further words included: a variable, a glob, a substitution.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    Break,
    Star,
}

/// How a pattern ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// The command ends where the pattern does.
    Exact,
    /// ` *`: nothing, or a word break and anything.
    Words,
    /// `*` without a break: anything.
    Text,
}

/// A compiled command pattern.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    pieces: Vec<Piece>,
    tail: Tail,
}

impl Wildcard {
    /// Compiles `text`: words by quote removal and with blanks normalised; `*` matches anything, a trailing ` *` or
    /// `:*` the bare command too. `\*` is a star itself.
    pub(super) fn command(text: &str) -> Self {
        Self::new(split(text))
    }

    /// Compiles a name: no words, `*` matches any characters.
    pub(super) fn name(text: &str) -> Self {
        Self::new(text.chars().map(|c| if c == '*' { Piece::Star } else { Piece::Char(c) }).collect())
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
        Self { pieces, tail }
    }

    /// Whether it is `*` alone.
    pub(super) fn matches_everything(&self) -> bool {
        self.pieces.is_empty() && self.tail == Tail::Text
    }

    /// Its words without wildcards, up to the first word that has one.
    pub(super) fn fixed_words(&self) -> Vec<String> {
        let mut words = vec![String::new()];
        for piece in &self.pieces {
            match piece {
                Piece::Char(c) => {
                    if let Some(word) = words.last_mut() {
                        word.push(*c);
                    }
                }
                Piece::Break => words.push(String::new()),
                Piece::Star => {
                    words.pop();
                    return words;
                }
            }
        }
        if self.tail == Tail::Text {
            words.pop();
        }
        words
    }

    /// The pattern with its first `drop` words replaced by `words`.
    pub(super) fn with_prefix(&self, drop: usize, words: &[&str]) -> Self {
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
            pieces.extend(word.chars().map(Piece::Char));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Break);
            pieces.extend_from_slice(rest);
        }
        Self { pieces, tail: self.tail }
    }

    /// Whether it matches whatever the unknown parts hold. An unknown part is covered by the pattern's tail only.
    pub(super) fn matches_always(&self, command: &[Symbol]) -> bool {
        self.run(command, false, |piece, symbol| match (piece, symbol) {
            (Piece::Char(a), Symbol::Char(b)) => *a == b,
            (Piece::Break, Symbol::Break) => true,
            _ => false,
        })
    }

    /// Whether it could match for some value of the unknown parts. A blank inside a word counts as a word break too:
    /// what is in doubt is denied.
    pub(super) fn matches_possibly(&self, command: &[Symbol]) -> bool {
        self.run(command, true, |piece, symbol| match (piece, symbol) {
            (Piece::Char(a), Symbol::Char(b)) => *a == b || (a.is_whitespace() && b.is_whitespace()),
            (Piece::Break, Symbol::Char(c)) => c.is_whitespace(),
            (Piece::Char(c), Symbol::Break) => c.is_whitespace(),
            (Piece::Break, Symbol::Break) => true,
            _ => false,
        })
    }

    /// Whether everything that `other` matches, this matches too. `false` where it cannot be told.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.pieces == other.pieces && self.tail == other.tail || self.matches_always(&other.as_symbols())
    }

    /// Whether some command could match both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let symbols = other.as_symbols();
        // ` *` stands for the bare command too.
        let bare = other.tail == Tail::Words && self.matches_possibly(&symbols[..symbols.len() - 2]);
        bare || self.matches_possibly(&symbols)
    }

    fn as_symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Char(c) => Symbol::Char(*c),
                Piece::Break => Symbol::Break,
                Piece::Star => Symbol::Any,
            })
            .collect();
        match self.tail {
            Tail::Exact => {}
            Tail::Words => symbols.extend([Symbol::Break, Symbol::Any]),
            Tail::Text => symbols.push(Symbol::Any),
        }
        symbols
    }

    fn run(&self, command: &[Symbol], any_jumps: bool, fits: impl Fn(&Piece, Symbol) -> bool) -> bool {
        let end = self.pieces.len();
        let mut here = vec![false; end + 1];
        let mut next = vec![false; end + 1];
        here[0] = true;
        for symbol in command {
            self.close(&mut here);
            if here[end] {
                match self.tail {
                    Tail::Text => return true,
                    Tail::Words if *symbol == Symbol::Break => return true,
                    Tail::Words if any_jumps && matches!(symbol, Symbol::Char(c) if c.is_whitespace()) => return true,
                    _ => {}
                }
            }
            next.fill(false);
            if *symbol == Symbol::Any {
                if !any_jumps {
                    return false;
                }
                if let Some(first) = here.iter().position(|reachable| *reachable) {
                    next[first..].fill(true);
                }
            } else {
                for at in 0..end {
                    if !here[at] {
                        continue;
                    }
                    match self.pieces[at] {
                        Piece::Star => next[at] = true,
                        piece if fits(&piece, *symbol) => next[at + 1] = true,
                        _ => {}
                    }
                }
            }
            if !next.contains(&true) {
                return false;
            }
            std::mem::swap(&mut here, &mut next);
            // An unknown part may hold what the tail stands for.
            if *symbol == Symbol::Any && here[end] && self.tail != Tail::Exact {
                return true;
            }
        }
        self.close(&mut here);
        here[end]
    }

    /// A star may match nothing.
    fn close(&self, here: &mut [bool]) {
        for at in 0..self.pieces.len() {
            if here[at] && self.pieces[at] == Piece::Star {
                here[at + 1] = true;
            }
        }
    }
}

/// Splits a pattern as a shell would split a command, keeping the stars.
fn split(text: &str) -> Vec<Piece> {
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
                        '*' => pieces.push(Piece::Star),
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

    /// Words by blanks; `?` stands for an unknown part, `_` for a blank inside a word.
    fn symbols(text: &str) -> Vec<Symbol> {
        text.chars()
            .map(|c| match c {
                ' ' => Symbol::Break,
                '_' => Symbol::Char(' '),
                '?' => Symbol::Any,
                c => Symbol::Char(c),
            })
            .collect()
    }

    #[track_caller]
    fn check(pattern: &str, command: &str, always: bool, possibly: bool) {
        let wildcard = Wildcard::command(pattern);
        let command_symbols = symbols(command);
        assert_eq!(wildcard.matches_always(&command_symbols), always, "always: {pattern} on {command}");
        assert_eq!(wildcard.matches_possibly(&command_symbols), possibly, "possibly: {pattern} on {command}");
    }

    #[test]
    fn known_commands_match_the_same_way_in_both_directions() {
        for (pattern, command, matches) in [
            ("ls", "ls", true),
            ("ls", "ls -l", false),
            ("ls *", "ls", true),
            ("ls *", "ls -l", true),
            ("ls *", "lsof", false),
            ("ls*", "lsof", true),
            ("ls*", "ls", true),
            ("ls:*", "ls -l", true),
            ("ls:*", "lsof", false),
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin dev", false),
            ("git * --force *", "git push --force", true),
            ("git * --force *", "git push --force origin", true),
            ("git * --force *", "git push --forced", false),
            ("*", "anything at all", true),
            ("* --version", "cargo --version", true),
            ("* --version", "cargo build", false),
            ("ollim-bot   gmail *", "ollim-bot gmail unread", true),
            ("ollim-bot help", "ollim-bot helpx", false),
            ("ollim-bot help", "ollim-bot", false),
            ("a \\* b", "a * b", true),
            ("a \\* b", "a x b", false),
        ] {
            check(pattern, command, matches, matches);
        }
    }

    #[test]
    fn a_blank_inside_a_word_is_no_break_for_a_grant() {
        check("ollim-bot gmail *", "ollim-bot gmail_x", false, true);
        check("git log *", "git log a_b", true, true);
        check("git commit -m \"wip now\"", "git commit -m wip_now", true, true);
        check("git commit -m wip now", "git commit -m wip_now", false, true);
    }

    #[test]
    fn unknown_parts_are_covered_by_the_tail_only() {
        check("ls *", "ls ?", true, true);
        check("ls*", "ls?", true, true);
        check("ls", "ls?", false, true);
        check("ls *", "?", false, true);
        check("ollim-bot cal *", "ollim-bot? today", false, true);
        check("ollim-bot cal *", "ollim-bot gmail ?", false, false);
        check("ollim-bot cal", "ollim-bot gmail ?", false, false);
        check("git * main", "git ? main", false, true);
        check("rm -rf *", "rm ? x", false, true);
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
            ("git push main", "git * main", false),
            ("ls *", "ls*", false),
            ("ls *", "* x", false),
        ] {
            let (parent_w, child_w) = (Wildcard::command(parent), Wildcard::command(child));
            assert_eq!(parent_w.covers(&child_w), covers, "{parent} covers {child}");
        }
    }

    #[test]
    fn overlap_is_found() {
        for (a, b, overlaps) in [
            ("ollim-bot cal *", "ollim-bot gmail *", false),
            ("ollim-bot cal *", "ollim-bot *", true),
            ("ollim-bot cal", "ollim-bot *", true),
            ("ollim-bot *", "ollim-bot cal", true),
            ("* --force", "git push *", true),
            ("ls", "ls *", true),
            ("ls *", "ls", true),
            ("lsof", "ls *", false),
        ] {
            assert_eq!(Wildcard::command(a).overlaps(&Wildcard::command(b)), overlaps, "{a} and {b}");
            assert_eq!(Wildcard::command(b).overlaps(&Wildcard::command(a)), overlaps, "{b} and {a}");
        }
    }

    #[test]
    fn fixed_words_stop_at_the_first_wildcard() {
        assert_eq!(Wildcard::command("ollim-bot gmail *").fixed_words(), ["ollim-bot", "gmail"]);
        assert_eq!(Wildcard::command("ollim-bot g*").fixed_words(), ["ollim-bot"]);
        assert_eq!(Wildcard::command("git * main").fixed_words(), ["git"]);
        assert!(Wildcard::command("*").fixed_words().is_empty());
    }
}
