//! Arithmetic: `$((…))`, `((…))` and `for ((…; …; …))`. All that it may do is to compute with numbers and plain names.

use super::Unreadable;
use super::lexer::{Kind, Lexer, Token};
use super::word::Word;

/// What may stand behind an arithmetic command.
const ENDS: [char; 9] = [' ', '\t', '\n', ';', '&', '|', ')', '<', '>'];

impl Lexer<'_> {
    /// `((…))` where a command begins, and `for ((…; …; …))`. Bash reads both as arithmetic exactly where the text ends in
    /// `))`, and else as subshells: what is not plain arithmetic is refused. All that it does is to set names to numbers,
    /// so the grammar gets `:` in its place, or `for i in 1`.
    pub(super) fn arithmetic_command(&mut self, in_case: bool) -> Result<(), Unreadable> {
        let start = self.at;
        let of_loop = self.follows(&["for"]);
        let begins = self.out.tokens.is_empty()
            || matches!(self.out.tokens.last(), Some(Token { kind: Kind::Operator(operator), .. })
                if matches!(*operator, ";" | "&&" | "||" | "|" | "|&" | "&" | "\n" | "("))
            || self.follows(&["if", "then", "elif", "else", "while", "until", "do", "{", "!"]);
        if in_case || !(begins || of_loop) {
            return Err(Unreadable::new(
                "`((` where it may not be arithmetic; put a blank between the parentheses of a subshell",
            ));
        }
        self.at += 2;
        if of_loop { self.arithmetic_loop() } else { self.arithmetic() }?;
        let text = self.rest().trim_start_matches([' ', '\t']);
        let ends = if of_loop {
            text.starts_with([';', '\n'])
        } else {
            self.rest().is_empty() || self.rest().starts_with(ENDS)
        };
        if !ends {
            return Err(Unreadable::new("arithmetic that goes on behind its end"));
        }
        // `for((` has no blank that would keep the words apart.
        let glued = of_loop && !self.line[..start].ends_with([' ', '\t']);
        let stand_in = match (of_loop, glued) {
            (true, true) => " i in 1",
            (true, false) => "i in 1",
            (false, _) => "x",
        };
        let text = &self.line[start..self.at];
        let Some(rest) = text.len().checked_sub(stand_in.len()).filter(|_| !of_loop || text.matches(';').count() == 2)
        else {
            return Err(Unreadable::new("a loop over arithmetic that is not `for ((…; …; …))`"));
        };
        let mask = format!("{stand_in}{}", if of_loop { " " } else { "x" }.repeat(rest));
        self.out.masked.get_or_insert_with(|| self.line.to_owned()).replace_range(start..self.at, &mask);
        let from = start + usize::from(glued);
        let words: &[(&str, usize, usize)] = if of_loop {
            &[("i", from, 1), ("in", from + 2, 2), ("1", from + 5, 1)]
        } else {
            &[(":", start, self.at - start)]
        };
        for (text, start, length) in words {
            let index = self.out.words.len();
            self.out.words.push(Word::text(*text));
            self.out.tokens.push(Token { kind: Kind::Word(index), start: *start, end: start + length });
        }
        Ok(())
    }

    /// Whether the last token is one of these words, plainly written.
    fn follows(&self, words: &[&str]) -> bool {
        let Some(Token { kind: Kind::Word(index), .. }) = self.out.tokens.last() else { return false };
        let word = self.out.words.get(*index).filter(|word| !word.quoted);
        word.and_then(Word::literal).is_some_and(|text| words.contains(&text))
    }

    /// The inside of `$((…))` or `((…))`, to its end: numbers, operators and plain names. A name's value is evaluated as
    /// an expression, which can hold commands: which names stand here is kept, for the whole line to be asked what
    /// they hold. A name that is assigned here gets a number.
    pub(super) fn arithmetic(&mut self) -> Result<(), Unreadable> {
        self.arithmetic_of(false)
    }

    /// The inside of `for ((…; …; …))`, to its end.
    fn arithmetic_loop(&mut self) -> Result<(), Unreadable> {
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
