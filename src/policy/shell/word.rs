//! Words of a command line after quote removal, with what cannot be known before running marked as such.

use super::super::wildcard::Symbol;

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// A leading `~` that the shell turns into the home folder.
    Home,
    /// What only running shows.
    Unknown(Unknown),
}

/// An expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Unknown {
    /// How it is written, for showing.
    pub raw: String,
    /// How many words it may become.
    pub spread: Spread,
}

/// How many words an expansion may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Spread {
    /// A part of one word: it is quoted.
    One,
    /// Names of files, each of which begins with what stands before it: a glob.
    Names,
    /// Any words, or none: an expansion outside quotes.
    Words,
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policy) struct Word {
    pub parts: Vec<Part>,
    /// Whether any of it was quoted or escaped: then it is no keyword and no assignment.
    pub quoted: bool,
}

impl Word {
    /// A word of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], quoted: false }
    }

    /// A word that can be anything, one or several or none.
    pub fn anything(raw: &str) -> Self {
        Self { parts: vec![Part::Unknown(Unknown { raw: raw.into(), spread: Spread::Words })], quoted: false }
    }

    pub fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.into())),
        }
    }

    pub fn push_char(&mut self, c: char) {
        self.push_text(c.encode_utf8(&mut [0; 4]));
    }

    /// The whole word, where all of it is known. `~` is not: it depends on who runs it.
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text it begins with, as far as it is known.
    pub fn known_start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Whether the shell could make a word of it that begins with `-`: it begins with an expansion or a dash, or may
    /// become several words.
    pub fn may_be_option(&self) -> bool {
        if self.spreads(Spread::Words) {
            return true;
        }
        match self.parts.first() {
            Some(Part::Text(text)) => text.starts_with('-'),
            Some(Part::Unknown(_)) => true,
            Some(Part::Home) | None => false,
        }
    }

    /// Whether any of it is unknown.
    pub fn is_unknown(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Unknown(_)))
    }

    /// Whether it may become other than one word.
    pub fn splits(&self) -> bool {
        self.spreads(Spread::Words) || self.spreads(Spread::Names)
    }

    fn spreads(&self, spread: Spread) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Unknown(unknown) if unknown.spread == spread))
    }

    /// Whether it may become several words of any kind, or none.
    pub fn may_be_words(&self) -> bool {
        self.spreads(Spread::Words)
    }

    /// The word where it is `$name` and its name's value is known to be one word, as one that does not split.
    pub fn whole_if(&self, is_one: impl Fn(&str) -> bool) -> Self {
        match self.parts.as_slice() {
            [Part::Unknown(unknown)] if unknown.raw.strip_prefix('$').is_some_and(is_one) => {
                let whole = Unknown { raw: unknown.raw.clone(), spread: Spread::One };
                Self { parts: vec![Part::Unknown(whole)], quoted: true }
            }
            _ => self.clone(),
        }
    }

    /// Whether it may disappear: nothing but unquoted expansions.
    fn may_vanish(&self) -> bool {
        !self.quoted
            && self.parts.iter().all(|part| matches!(part, Part::Unknown(unknown) if unknown.spread == Spread::Words))
    }

    /// For showing: quotes removed, expansions as written.
    pub fn shown(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Home => out.push('~'),
                Part::Unknown(unknown) => out.push_str(&unknown.raw),
            }
        }
        if out.is_empty() { "''".into() } else { out }
    }

    /// The word as a path, where all of it is known: `~`, and `$HOME` in front, stand for the home folder.
    pub fn path(&self) -> Option<String> {
        let (home, rest) = match self.parts.split_first() {
            Some((Part::Home, rest)) => (true, rest),
            Some((Part::Unknown(unknown), rest)) if matches!(unknown.raw.as_str(), "$HOME" | "${HOME}") => (true, rest),
            _ => (false, self.parts.as_slice()),
        };
        match (home, rest) {
            (true, []) => Some("~".into()),
            (true, [Part::Text(text)]) if text.starts_with('/') => Some(format!("~{text}")),
            // A quoted tilde is a file of that name.
            (false, [Part::Text(text)]) if text.starts_with('~') => Some(format!("./{text}")),
            (false, [Part::Text(text)]) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    /// The word's last path segment, for comparing programs by base name.
    pub fn base_name(&self) -> Option<&str> {
        let path = match self.parts.as_slice() {
            [Part::Home, Part::Text(rest)] if rest.starts_with('/') => rest,
            _ => self.literal()?,
        };
        Some(path.rsplit('/').next().unwrap_or(path))
    }
}

/// The words as symbols for matching.
pub(in crate::policy) fn symbols(words: &[Word]) -> Vec<Symbol> {
    let mut out = Vec::with_capacity(words.len() * 8);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            // A word that may vanish takes its blank with it; the unknown part stands for both.
            if !word.may_vanish() || out.last() == Some(&Symbol::Any) {
                out.push(Symbol::Break);
            } else {
                out.extend([Symbol::Break, Symbol::Any]);
                continue;
            }
        }
        for part in &word.parts {
            match part {
                Part::Text(text) => out.extend(text.chars().map(Symbol::Char)),
                Part::Home => out.push(Symbol::Char('~')),
                Part::Unknown(_) => out.push(Symbol::Any),
            }
        }
    }
    out
}

/// The same for a denial: an expansion that may vanish stands for its blank as well.
pub(in crate::policy) fn symbols_loose(words: &[Word]) -> Vec<Symbol> {
    let mut out = Vec::with_capacity(words.len() * 8);
    for (at, word) in words.iter().enumerate() {
        if at > 0 && !word.may_vanish() {
            out.push(Symbol::Break);
        }
        for part in &word.parts {
            match part {
                Part::Text(text) => out.extend(text.chars().map(Symbol::Char)),
                Part::Home => out.push(Symbol::Char('~')),
                Part::Unknown(_) if out.last() == Some(&Symbol::Any) => {}
                Part::Unknown(_) => out.push(Symbol::Any),
            }
        }
    }
    out
}

/// The words as one line, for showing.
pub(in crate::policy) fn shown(words: &[Word]) -> String {
    words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
}
