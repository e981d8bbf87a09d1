//! The inside of `${…}` and `$((…))`: forms that only take a value, and none that evaluates one.

use super::Unreadable;
use super::lexer::{Lexer, MAX_NESTING};
use super::word::Word;

impl Lexer<'_> {
    /// The inside of `$((…))` or `((…))`, to its end: numbers, operators and plain names. A name's value is evaluated as
    /// an expression, which can hold commands: which names stand here is kept, for the whole line to be asked what
    /// they hold. A name that is assigned here gets a number.
    pub(super) fn arithmetic(&mut self) -> Result<(), Unreadable> {
        self.arithmetic_of(false)
    }

    /// The inside of `for ((…; …; …))`, to its end.
    pub(super) fn arithmetic_loop(&mut self) -> Result<(), Unreadable> {
        self.arithmetic_of(true)
    }

    fn arithmetic_of(&mut self, of_loop: bool) -> Result<(), Unreadable> {
        let refused = "arithmetic with anything but numbers and plain names; \
                       a subshell in a substitution is written `$( (…) )`";
        let mut open = 0_usize;
        while let Some(c) = self.bump() {
            match c {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.eat(")") => return Ok(()),
                ';' if of_loop && open == 0 => {}
                '$' if self.eat("#") || self.eat("?") => {}
                // A name behind a digit is a part of a number in another base.
                _ if (c.is_ascii_alphabetic() || c == '_') && !self.line[..self.at - 1].ends_with(is_of_name) => {
                    let start = self.at - 1;
                    let rest = self.rest();
                    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                    let name = format!("{c}{}", &rest[..end]);
                    self.at += end;
                    let change = change(&self.line[..start], self.rest());
                    if change != Change::None {
                        self.out.assigned.push(name.clone());
                        self.out.numbers.push(name.clone());
                    }
                    if change != Change::Set {
                        self.out.evaluated.push(name);
                    }
                }
                _ if c.is_ascii_digit() || " \t+-*/%<>=!&|^~?:,".contains(c) => {}
                _ => return Err(Unreadable::new(refused)),
            }
        }
        Err(Unreadable::new("arithmetic without its end"))
    }

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

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What arithmetic does to a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// `n = …`: what it held before is not looked at.
    Set,
    /// `n += …`, `n++`: what it held is evaluated.
    Adjusted,
}

/// What is done to a name that stands between these texts.
fn change(before: &str, after: &str) -> Change {
    let (before, after) = (before.trim_end_matches([' ', '\t']), after.trim_start_matches([' ', '\t']));
    if after.starts_with('=') && !after.starts_with("==") {
        return Change::Set;
    }
    let operators = ["++", "--", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="];
    let adjusted = operators.iter().any(|operator| after.starts_with(operator));
    if adjusted || before.ends_with("++") || before.ends_with("--") { Change::Adjusted } else { Change::None }
}
