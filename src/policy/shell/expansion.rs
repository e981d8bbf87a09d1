//! Reads one word: quotes, escapes and expansions. What a substitution runs is kept as a script to be judged; what
//! could run a command by evaluating *data* (arithmetic over names, `${!x}`, `${x@P}`, computed subscripts) is refused.

use super::Unreadable;
use super::lexer::{Lexer, MAX_NESTING};
use super::word::{Part, Spread, Unknown, Word};

/// How arithmetic is shown. No other expansion is: its text begins with `$((` nowhere else.
pub(super) const ARITHMETIC: &str = "$((…))";

/// What ends a word outside quotes.
const METACHARACTERS: &[char] = &[' ', '\t', '\n', '|', '&', ';', '(', ')', '<', '>'];

impl Lexer<'_> {
    /// Reads a word that starts here.
    pub(super) fn word(&mut self, nesting: usize) -> Result<Word, Unreadable> {
        if nesting > MAX_NESTING {
            return Err(Unreadable::new("the line is nested deeper than 64 levels"));
        }
        let start = self.at;
        let mut word = Word::default();
        let mut braces = Braces::default();
        let mut last_close = None;
        if self.peek() == Some('~') {
            self.tilde(&mut word);
        }
        while let Some(c) = self.peek() {
            match c {
                _ if METACHARACTERS.contains(&c) => break,
                '\\' => {
                    self.bump();
                    match self.bump() {
                        None => return Err(Unreadable::new("the line ends in a backslash")),
                        Some('\n') => return Err(Unreadable::new("a line continuation without a blank before it")),
                        Some(c) => {
                            word.quoted = true;
                            word.push_char(c);
                        }
                    }
                }
                '\'' => {
                    self.bump();
                    word.quoted = true;
                    let Some(end) = self.rest().find('\'') else {
                        return Err(Unreadable::new("a single quote without its end"));
                    };
                    let text = self.rest()[..end].to_owned();
                    word.push_text(&text);
                    self.at += end + 1;
                }
                '"' => {
                    self.bump();
                    word.quoted = true;
                    word.push_text("");
                    self.double_quoted(&mut word, Some('"'), nesting)?;
                }
                '$' if self.rest().starts_with("$'") => {
                    self.at += 2;
                    word.quoted = true;
                    self.ansi_quoted(&mut word)?;
                }
                '$' if self.rest().starts_with("$\"") => {
                    self.at += 2;
                    word.quoted = true;
                    word.push_text("");
                    self.double_quoted(&mut word, Some('"'), nesting)?;
                }
                '$' => braces.lone_dollar |= self.dollar(&mut word, false, nesting)?,
                '`' => {
                    braces.lone_dollar = true;
                    self.backquoted(&mut word, false)?;
                }
                '*' | '?' => {
                    self.bump();
                    word.parts.push(unknown(c.to_string(), Spread::Names));
                }
                '[' => {
                    // A class needs its `]`, which may stand behind quoted blanks: any later one counts. Looked for
                    // once for each word.
                    let close =
                        *last_close.get_or_insert_with(|| self.rest().rfind(']').map(|offset| self.at + offset));
                    self.bump();
                    let alone = self.peek().is_none_or(|c| METACHARACTERS.contains(&c));
                    if close.is_some_and(|close| close >= self.at) && !alone {
                        word.parts.push(unknown("[", Spread::Names));
                    } else {
                        word.push_char('[');
                    }
                }
                '{' => {
                    braces.open |= !self.rest().starts_with("{}");
                    self.bump();
                    word.push_char('{');
                }
                _ => {
                    let rest = self.rest();
                    let end = rest.find(is_special).unwrap_or(rest.len()).max(c.len_utf8());
                    let text = rest[..end].to_owned();
                    word.push_text(&text);
                    self.at += end;
                }
            }
        }
        let raw = &self.line[start..self.at];
        if braces.open && raw != "{" {
            if braces.lone_dollar {
                return Err(Unreadable::new("a brace expansion together with `$` or a backquote in one word"));
            }
            word.parts = vec![unknown(raw, Spread::Words)];
        }
        check_subscript(raw)?;
        if word.parts.len() > 1 {
            word.parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        }
        Ok(word)
    }

    fn tilde(&mut self, word: &mut Word) {
        let rest = self.rest();
        let end = rest.find(|c: char| c == '/' || METACHARACTERS.contains(&c)).unwrap_or(rest.len());
        let name = &rest[1..end];
        if name.is_empty() {
            self.at += 1;
            word.parts.push(Part::Home);
        } else if name.contains(['\\', '\'', '"', '$', '`', ':', '{', '=']) {
            self.at += 1;
            word.parts.push(unknown("~", Spread::One));
        } else {
            let raw = rest[..end].to_owned();
            self.at += end;
            word.parts.push(unknown(raw, Spread::One));
        }
    }

    /// Reads the inside of double quotes to `end` (`None`: a here-document's text, to its end).
    pub(super) fn double_quoted(
        &mut self,
        word: &mut Word,
        end: Option<char>,
        nesting: usize,
    ) -> Result<(), Unreadable> {
        while let Some(c) = self.peek() {
            match c {
                _ if Some(c) == end => {
                    self.bump();
                    return Ok(());
                }
                '\\' => {
                    let after_blank = self.line[..self.at].ends_with([' ', '\t', '\n']);
                    self.bump();
                    match self.peek() {
                        Some(c @ ('$' | '`' | '\\')) => {
                            self.bump();
                            word.push_char(c);
                        }
                        Some('"') if end.is_some() => {
                            self.bump();
                            word.push_char('"');
                        }
                        Some('\n') if after_blank => {
                            self.bump();
                        }
                        Some('\n') => return Err(Unreadable::new("a line continuation without a blank before it")),
                        _ => word.push_char('\\'),
                    }
                }
                '$' => {
                    self.dollar(word, true, nesting)?;
                }
                '`' => self.backquoted(word, end.is_some())?,
                _ => {
                    self.bump();
                    word.push_char(c);
                }
            }
        }
        if end.is_some() { Err(Unreadable::new("a double quote without its end")) } else { Ok(()) }
    }

    /// Reads what a `$` starts. Answers whether it was a lone `$`, which a brace expansion could complete.
    pub(super) fn dollar(&mut self, word: &mut Word, quoted: bool, nesting: usize) -> Result<bool, Unreadable> {
        let start = self.at;
        self.bump();
        if nesting >= MAX_NESTING {
            return Err(Unreadable::new("the line is nested deeper than 64 levels"));
        }
        if self.eat("((") {
            self.arithmetic()?;
            word.parts.push(unknown(ARITHMETIC, Spread::One));
            return Ok(false);
        }
        match self.peek() {
            Some('(') => {
                self.bump();
                let inner = self.at;
                let outside = std::mem::take(&mut self.out);
                let result = self.commands(Some("a substitution"), nesting + 1);
                self.out = outside;
                result?;
                let script = self.line[inner..self.at - 1].to_owned();
                self.out.scripts.push(script);
            }
            Some('[') => return Err(Unreadable::new("`$[`: write plain numbers")),
            Some('{') => {
                self.bump();
                self.parameter(nesting + 1)?;
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                self.at += end;
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.bump();
            }
            _ => {
                word.push_char('$');
                return Ok(true);
            }
        }
        let raw = self.line[start..self.at].to_owned();
        let splits = !quoted || raw == "$@" || raw.starts_with("${@") || raw.contains("[@]");
        word.parts.push(unknown(raw, if splits { Spread::Words } else { Spread::One }));
        Ok(false)
    }

    /// A backquoted substitution. `in_quotes`: inside double quotes, where `\"` is unescaped as well.
    fn backquoted(&mut self, word: &mut Word, in_quotes: bool) -> Result<(), Unreadable> {
        let start = self.at;
        self.bump();
        let mut script = String::new();
        loop {
            match self.bump() {
                None => return Err(Unreadable::new("a backquote without its end")),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    Some(c @ ('`' | '\\' | '$')) => script.push(c),
                    Some('"') if in_quotes => script.push('"'),
                    Some(c) => script.extend(['\\', c]),
                    None => return Err(Unreadable::new("a backquote without its end")),
                },
                Some(c) => script.push(c),
            }
        }
        let raw = self.line[start..self.at].to_owned();
        self.out.scripts.push(script);
        word.parts.push(unknown(raw, if in_quotes { Spread::One } else { Spread::Words }));
        Ok(())
    }

    /// The inside of `$'…'`.
    fn ansi_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        word.push_text("");
        loop {
            match self.bump() {
                None => return Err(Unreadable::new("a quote without its end")),
                Some('\'') => return Ok(()),
                Some('\\') => {
                    let c = match self.bump() {
                        Some('a') => '\u{7}',
                        Some('b') => '\u{8}',
                        Some('e' | 'E') => '\u{1b}',
                        Some('f') => '\u{c}',
                        Some('n') => '\n',
                        Some('r') => '\r',
                        Some('t') => '\t',
                        Some('v') => '\u{b}',
                        Some(c @ ('\\' | '\'' | '"' | '?')) => c,
                        Some('x') => self.number(16, 2)?,
                        Some('u') => self.number(16, 4)?,
                        Some('U') => self.number(16, 8)?,
                        Some('0'..='7') => {
                            self.at -= 1;
                            self.number(8, 3)?
                        }
                        _ => return Err(Unreadable::new("an unusual escape in `$'…'`")),
                    };
                    word.push_char(c);
                }
                Some(c) => word.push_char(c),
            }
        }
    }

    /// The digits of an escape: ASCII without NUL only, since bytes above depend on the locale.
    fn number(&mut self, radix: u32, most: usize) -> Result<char, Unreadable> {
        let rest = self.rest();
        let digits = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let value = u32::from_str_radix(&rest[..digits], radix).unwrap_or(0);
        self.at += digits;
        match char::from_u32(value) {
            Some(c) if c != '\0' && c.is_ascii() => Ok(c),
            _ => Err(Unreadable::new("an escape outside ASCII in `$'…'`; write the character itself")),
        }
    }
}

/// What a word's braces could do.
#[derive(Default)]
struct Braces {
    open: bool,
    lone_dollar: bool,
}

fn unknown(raw: impl Into<String>, spread: Spread) -> Part {
    Part::Unknown(Unknown { raw: raw.into(), spread })
}

fn is_special(c: char) -> bool {
    METACHARACTERS.contains(&c) || "\\'\"$`*?[{".contains(c)
}

/// `name[index]=value` evaluates its index, which can run a command; only plain numbers are let through.
fn check_subscript(raw: &str) -> Result<(), Unreadable> {
    let name_end = raw.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(raw.len());
    if name_end == 0 || raw.as_bytes()[0].is_ascii_digit() || !raw[name_end..].starts_with('[') {
        return Ok(());
    }
    let rest = &raw[name_end + 1..];
    let Some(end) = rest.find(']') else { return Ok(()) };
    let after = &rest[end + 1..];
    let assigns = after.contains('=');
    if assigns && !rest[..end].bytes().all(|b| b.is_ascii_digit()) {
        return Err(Unreadable::new("an assignment to a computed subscript"));
    }
    Ok(())
}
