//! Cuts a command line into words and operators, the way bash does, and refuses what it is not sure about.
//!
//! This is the fence around the grammar: size and nesting are bounded here, before anything recursive sees the line,
//! and every construct in which text could become a command by a second reading (arithmetic with names, indirection,
//! prompt expansion, computed subscripts) is refused. Substitutions are cut out whole; they are read as scripts of
//! their own. The head of a line never tells more than this module understood: in doubt it is an error.

use super::Unreadable;
use super::word::Word;

/// The longest line that is read.
pub(super) const MAX_LENGTH: usize = 64 * 1024;
/// The deepest nesting that is read, of every kind together.
pub(super) const MAX_NESTING: usize = 64;

/// A token with its place, in bytes of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Index into [`Lexed::words`].
    Word(usize),
    /// `&&`, `;`, a line break, …
    Operator(&'static str),
    /// The text of a here-document.
    Body,
    /// The line that ends one.
    BodyEnd(String),
}

/// A line cut up.
#[derive(Clone, Debug, Default)]
pub(super) struct Lexed {
    pub tokens: Vec<Token>,
    pub words: Vec<Word>,
    /// The scripts of all substitutions, in order.
    pub scripts: Vec<String>,
    /// Names that an expansion or arithmetic assigns (`${x:=y}`, `((n++))`).
    pub assigned: Vec<String>,
    /// Those of them that get a number.
    pub numbers: Vec<String>,
    /// The line as the grammar is to see it, where that differs: every arithmetic command is a plain word in it.
    pub(super) masked: Option<String>,
    /// Names that arithmetic evaluates.
    pub evaluated: Vec<String>,
}

impl Lexed {
    /// The line for the grammar, each token at its place in it.
    pub(super) fn line<'a>(&'a self, line: &'a str) -> &'a str {
        self.masked.as_deref().unwrap_or(line)
    }
}

/// Longest first.
const OPERATORS: &[&str] = &[
    "&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "|&", "&>", ">>", "<<", "<&", ">&", "<>", ">|", "&", "|", ";",
    "(", ")", "<", ">", "\n",
];

/// Cuts up a whole line.
pub(super) fn lex(line: &str) -> Result<Lexed, Unreadable> {
    if line.len() > MAX_LENGTH {
        return Err(Unreadable::new("the line is longer than 64 KiB"));
    }
    if let Some(c) = line.chars().find(|c| is_refused(*c)) {
        return Err(Unreadable::new(format!("the line holds the character U+{:04X}", c as u32)));
    }
    let mut lexer = Lexer { line, at: 0, out: Lexed::default() };
    lexer.commands(None, 0)?;
    Ok(lexer.out)
}

/// Control characters, which shells treat differently, and the private ones that stand for words in the grammar.
fn is_refused(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || ('\u{E000}'..='\u{E00F}').contains(&c)
}

pub(super) struct Lexer<'a> {
    pub(super) line: &'a str,
    pub(super) at: usize,
    pub(super) out: Lexed,
}

/// A here-document whose text is still to come.
struct Pending {
    token: usize,
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

impl Lexer<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    pub(super) fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Reads commands to the end of the line, or to the `)` that ends a substitution (`inside`).
    pub(super) fn commands(&mut self, inside: Option<&'static str>, nesting: usize) -> Result<(), Unreadable> {
        if nesting > MAX_NESTING {
            return Err(Unreadable::new("the line is nested deeper than 64 levels"));
        }
        let mut open = 0_usize;
        // Never counted down: `}` and `fi` can be arguments too.
        let mut keywords = 0_usize;
        let mut cases = 0_usize;
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(c) = self.peek() else {
                if !pending.is_empty() {
                    return Err(Unreadable::new("a here-document has no end"));
                }
                return match inside {
                    None => Ok(()),
                    Some(what) => Err(Unreadable::new(format!("{what} has no end"))),
                };
            };
            if c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
                continue;
            }
            if let Some(operator) = OPERATORS.iter().find(|operator| self.rest().starts_with(**operator)) {
                if *operator == ")" && open == 0 && inside.is_some() {
                    self.at += 1;
                    if !pending.is_empty() {
                        return Err(Unreadable::new("a here-document has no end"));
                    }
                    return Ok(());
                }
                if self.rest().starts_with("((") {
                    self.arithmetic_command(cases > 0)?;
                    continue;
                }
                self.check_operator(operator, start)?;
                self.at += operator.len();
                match *operator {
                    "(" => open += 1,
                    // A `case` pattern has an end without a start; then only the start counts.
                    ")" if cases == 0 => open = open.saturating_sub(1),
                    _ => {}
                }
                if nesting + open + keywords > MAX_NESTING {
                    return Err(Unreadable::new("the line is nested deeper than 64 levels"));
                }
                self.push(Kind::Operator(operator), start);
                match *operator {
                    "<<" | "<<-" => pending.push(self.here_document(*operator == "<<-", nesting)?),
                    "\n" => {
                        for document in pending.drain(..) {
                            self.body(&document, nesting)?;
                        }
                    }
                    _ => {}
                }
                continue;
            }
            let word = self.word(nesting)?;
            if self.peek() == Some('<') || self.peek() == Some('>') {
                self.check_before_redirect(&word, start)?;
            }
            if !word.quoted
                && let Some(text) = word.literal()
            {
                match text {
                    "if" | "while" | "until" | "for" | "{" | "[[" | "!" | "coproc" | "function" | "time" => {
                        keywords += 1
                    }
                    "case" if inside.is_some() => {
                        return Err(Unreadable::new("a `case` inside a substitution; write it outside"));
                    }
                    "case" => {
                        cases += 1;
                        keywords += 1;
                    }
                    _ => {}
                }
                if cases > 4 {
                    return Err(Unreadable::new("more than four `case`s; split the line"));
                }
                if nesting + open + keywords > MAX_NESTING {
                    return Err(Unreadable::new("the line is nested deeper than 64 levels"));
                }
            }
            let index = self.out.words.len();
            self.out.words.push(word);
            self.push(Kind::Word(index), start);
        }
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.out.tokens.push(Token { kind, start, end: self.at });
    }

    /// A line continuation counts as a blank only after one: in the middle of a word it would join what stands on
    /// both sides, `$` and `(` for instance.
    fn skip_blanks(&mut self) {
        loop {
            let after_blank = self.line[..self.at].ends_with([' ', '\t', '\n']);
            if self.eat(" ") || self.eat("\t") || (after_blank && self.eat("\\\n")) {
                continue;
            }
            return;
        }
    }

    fn check_operator(&self, operator: &str, start: usize) -> Result<(), Unreadable> {
        let next = self.rest()[operator.len()..].chars().next();
        // A process substitution must be a word of its own: in the middle of a word bash and the grammar differ.
        let glued = start > 0 && !self.line[..start].ends_with([' ', '\t', '\n', '(', ';', '&', '|', '<', '>', '=']);
        if matches!(operator, "<" | ">") && next == Some('(') && glued {
            return Err(Unreadable::new("a process substitution inside a word"));
        }
        Ok(())
    }

    /// `2>f` is a descriptor; `{fd}>f` assigns a variable, and a long number is no descriptor.
    fn check_before_redirect(&self, word: &Word, start: usize) -> Result<(), Unreadable> {
        let text = &self.line[start..self.at];
        if text.starts_with('{') && text.ends_with('}') {
            return Err(Unreadable::new("a descriptor kept in a variable (`{name}>`)"));
        }
        if !word.quoted && text.len() > 3 && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Unreadable::new("a file descriptor above 999"));
        }
        Ok(())
    }

    fn here_document(&mut self, tabs: bool, nesting: usize) -> Result<Pending, Unreadable> {
        self.skip_blanks();
        let start = self.at;
        let word = self.word(nesting)?;
        let raw = self.line[start..self.at].to_owned();
        let Some(delimiter) = word.literal().map(str::to_owned) else {
            return Err(Unreadable::new("a here-document whose end is not plain text"));
        };
        if raw.contains(['$', '`', '\n']) || (delimiter.is_empty() && !word.quoted) {
            return Err(Unreadable::new("a here-document whose end is not plain text"));
        }
        let quoted = word.quoted;
        let index = self.out.words.len();
        self.out.words.push(word);
        self.push(Kind::Word(index), start);
        let token = self.out.tokens.len();
        self.push(Kind::Body, self.at);
        self.push(Kind::BodyEnd(delimiter.clone()), self.at);
        Ok(Pending { token, delimiter, quoted, tabs })
    }

    /// Reads the text of a here-document, whose first line starts here.
    fn body(&mut self, document: &Pending, nesting: usize) -> Result<(), Unreadable> {
        let start = self.at;
        loop {
            let rest = self.rest();
            let line_end = rest.find('\n').unwrap_or(rest.len());
            let line = &rest[..line_end];
            let shown = if document.tabs { line.trim_start_matches('\t') } else { line };
            let last = line_end == rest.len();
            if shown == document.delimiter {
                let body = self.line[start..self.at].to_owned();
                self.at += line_end + usize::from(!last);
                self.out.tokens[document.token].start = start;
                self.out.tokens[document.token].end = start + body.len();
                if !document.quoted {
                    self.expand_body(&body, nesting)?;
                }
                return Ok(());
            }
            if last {
                return Err(Unreadable::new(format!("the here-document `{}` has no end", document.delimiter)));
            }
            if !document.quoted && line.ends_with('\\') {
                return Err(Unreadable::new("a here-document line that ends in a backslash; quote its end word"));
            }
            self.at += line_end + 1;
        }
    }

    /// Expansions in the text of a here-document run like those in double quotes.
    fn expand_body(&mut self, body: &str, nesting: usize) -> Result<(), Unreadable> {
        let mut inner = Lexer { line: body, at: 0, out: Lexed::default() };
        let mut word = Word::default();
        inner.double_quoted(&mut word, None, nesting + 1)?;
        self.out.scripts.append(&mut inner.out.scripts);
        self.out.assigned.append(&mut inner.out.assigned);
        self.out.numbers.append(&mut inner.out.numbers);
        self.out.evaluated.append(&mut inner.out.evaluated);
        Ok(())
    }
}
