//! The inside of `${…}`: forms that only take a value, and none that evaluates one.

use super::Unreadable;
use super::lexer::{Lexer, MAX_NESTING};
use super::word::Word;

impl Lexer<'_> {
    /// The inside of `${…}`, after the brace.
    pub(super) fn parameter(&mut self, nesting: usize) -> Result<(), Unreadable> {
        let refuse = |what: &str| Err(Unreadable::new(format!("`${{…}}` with {what}; write the value plainly")));
        if nesting > MAX_NESTING {
            return Err(Unreadable::new("the line is nested deeper than 64 levels"));
        }
        if self.eat("#}") {
            return Ok(());
        }
        let length = self.rest().starts_with('#') && self.eat("#");
        let rest = self.rest();
        let name_end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest[..name_end].to_owned();
        self.at += name_end;
        if name.is_empty() {
            match self.bump() {
                Some('@' | '*' | '?' | '-' | '$' | '#') => {}
                _ => return refuse("indirection or an unknown form"),
            }
        }
        if self.eat("[") {
            let rest = self.rest();
            let Some(end) = rest.find(']') else { return refuse("a subscript without its end") };
            let subscript = &rest[..end];
            let digits = subscript.strip_prefix('-').unwrap_or(subscript);
            if !matches!(subscript, "@" | "*") && (digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit())) {
                return refuse("a computed subscript");
            }
            self.at += end + 1;
        }
        if self.eat("}") {
            return Ok(());
        }
        if length {
            return refuse("an unknown form");
        }
        match self.peek() {
            Some('@') => {
                // Quoting and changing case only. Others evaluate the value (`@P`, `@E`, `@A`).
                return if ["@Q}", "@U}", "@u}", "@L}"].iter().any(|operator| self.eat(operator)) {
                    Ok(())
                } else {
                    refuse("a transformation")
                };
            }
            Some(':') if !self.rest()[1..].starts_with(['-', '=', '?', '+']) => {
                let rest = self.rest();
                let end = rest.find('}').unwrap_or(rest.len());
                if end == rest.len() || !rest[..end].bytes().all(|b| b.is_ascii_digit() || b": -".contains(&b)) {
                    return refuse("a computed offset");
                }
                self.at += end + 1;
                return Ok(());
            }
            Some(':' | '-' | '=' | '?' | '+' | '#' | '%' | '/' | '^' | ',') => {}
            _ => return refuse("an unknown form"),
        }
        if self.rest().starts_with('=') || self.rest().starts_with(":=") {
            self.out.assigned.push(name);
        }
        self.operand(nesting)
    }

    /// The word after an operator of `${…}`. Quotes mean different things there inside and outside double quotes, so
    /// they are refused.
    fn operand(&mut self, nesting: usize) -> Result<(), Unreadable> {
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                '}' => {
                    self.bump();
                    return Ok(());
                }
                '\'' | '"' | '{' | '(' | ')' | '<' | '>' => {
                    return Err(Unreadable::new(
                        "`${…}` with quotes, parentheses or braces in it; write the value plainly",
                    ));
                }
                '\\' => {
                    self.bump();
                    if self.bump().is_none_or(|c| "'\"`$".contains(c)) {
                        return Err(Unreadable::new("`${…}` with quotes in it; write the value plainly"));
                    }
                }
                '$' if self.rest().starts_with("$'") || self.rest().starts_with("$\"") => {
                    return Err(Unreadable::new("`${…}` with quotes in it; write the value plainly"));
                }
                '$' => {
                    self.dollar(&mut word, true, nesting)?;
                }
                '`' => return Err(Unreadable::new("a backquote inside `${…}`; use `$(…)`")),
                _ => {
                    self.bump();
                }
            }
        }
        Err(Unreadable::new("`${` without its end"))
    }
}
