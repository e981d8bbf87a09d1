//! From our tokens to a syntax tree, by the grammar of `brush-parser`.
//!
//! Two fences: its own tokenizer must see the same tokens as ours, else the line is refused; and the grammar gets
//! words as numbered placeholders, so that nothing it does with the inside of a word (assignments apart) matters. A
//! panic of it is a refusal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use brush_parser::ast::{self, Program};
use brush_parser::{ParserOptions, SourcePosition, SourceSpan, Token as BrushToken};

use super::Unreadable;
use super::lexer::{Kind, Lexed, Token};
use super::word::Word;

/// Stands for a word in the grammar's text, followed by its number. Lines that hold it are refused.
const PLACEHOLDER: char = '\u{E000}';

/// Parses a line that was cut up.
pub(super) fn parse(line: &str, lexed: &Lexed) -> Result<Program, Unreadable> {
    let line = lexed.line(line);
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    let parsed = catch_unwind(AssertUnwindSafe(|| {
        let theirs = brush_parser::uncached_tokenize_str(line, &options.tokenizer_options())
            .map_err(|error| Unreadable::new(format!("a syntax error ({error})")))?;
        compare(line, lexed, &theirs)?;
        brush_parser::parse_tokens(&brush_tokens(line, lexed), &options)
            .map_err(|_| Unreadable::new("a syntax error, or a construct that is not read here"))
    }));
    parsed.unwrap_or_else(|_| Err(Unreadable::new("the shell grammar failed on it")))
}

/// The word that a text of the tree stands for.
pub(super) fn word_of(text: &str, lexed: &Lexed) -> Word {
    placeholder(text).and_then(|index| lexed.words.get(index)).cloned().unwrap_or_else(|| Word::text(text))
}

/// The word behind an assignment's value or a word of the tree.
pub(super) fn resolve(word: &ast::Word, lexed: &Lexed) -> Word {
    word_of(&word.value, lexed)
}

fn placeholder(text: &str) -> Option<usize> {
    let (_, number) = text.split_once(PLACEHOLDER)?;
    number.parse().ok()
}

/// Whether both tokenizers see the same.
fn compare(line: &str, lexed: &Lexed, theirs: &[BrushToken]) -> Result<(), Unreadable> {
    let differ = || Err(Unreadable::new("two readings of it differ; write it more plainly"));
    if lexed.tokens.len() != theirs.len() {
        return differ();
    }
    for (ours, theirs) in lexed.tokens.iter().zip(theirs) {
        let same = match (&ours.kind, theirs) {
            (Kind::Operator(operator), BrushToken::Operator(text, _)) => operator == text,
            (Kind::Word(_) | Kind::Body, BrushToken::Word(text, _)) => same_text(&line[ours.start..ours.end], text),
            (Kind::BodyEnd(delimiter), BrushToken::Word(text, _)) => same_text(delimiter, text),
            _ => false,
        };
        if !same {
            return differ();
        }
    }
    Ok(())
}

/// Blanks and line continuations apart: the other tokenizer normalises them inside substitutions.
fn same_text(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let visible = |text: &str| text.replace("\\\n", "").split_whitespace().collect::<String>();
    visible(ours) == visible(theirs)
}

fn brush_tokens(line: &str, lexed: &Lexed) -> Vec<BrushToken> {
    let mut out: Vec<BrushToken> = Vec::with_capacity(lexed.tokens.len());
    for token in &lexed.tokens {
        let span = span(token);
        match &token.kind {
            Kind::Word(index) => {
                let text = word_text(&line[token.start..token.end], &lexed.words[*index], *index);
                out.push(BrushToken::Word(text, span));
            }
            Kind::Operator(operator) => {
                // `( (` must be two subshells: a line break between them keeps it from being read as arithmetic.
                if *operator == "(" && matches!(out.last(), Some(BrushToken::Operator(last, _)) if last == "(") {
                    out.push(BrushToken::Operator("\n".into(), span.clone()));
                }
                out.push(BrushToken::Operator((*operator).into(), span));
            }
            Kind::Body => out.push(BrushToken::Word(PLACEHOLDER.into(), span)),
            Kind::BodyEnd(_) => out.push(BrushToken::Word("end".into(), span)),
        }
    }
    out
}

fn span(token: &Token) -> SourceSpan {
    let place = |index| Arc::new(SourcePosition { index, line: 1, column: index + 1 });
    SourceSpan { start: place(token.start), end: place(token.end) }
}

/// A plain word goes in as it is, so that keywords, descriptors and assignments are seen; any other as a placeholder,
/// after its `name=` where it is an assignment.
fn word_text(raw: &str, word: &Word, index: usize) -> String {
    if !word.quoted && word.literal() == Some(raw) && !raw.contains('[') || matches!(raw, "[" | "[[" | "]]") {
        return raw.to_owned();
    }
    let prefix = assignment_prefix(raw).unwrap_or_default();
    format!("{prefix}{PLACEHOLDER}{index}")
}

/// `name=`, `name+=` or `name[0]=` at the start of a word.
fn assignment_prefix(raw: &str) -> Option<&str> {
    let first = raw.bytes().next()?;
    if !first.is_ascii_alphabetic() && first != b'_' {
        return None;
    }
    let mut end = raw.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    if raw[end..].starts_with('[') {
        let close = raw[end..].find(']')?;
        if !raw[end + 1..end + close].bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        end += close + 1;
    }
    if raw[end..].starts_with('+') {
        end += 1;
    }
    raw[end..].starts_with('=').then(|| &raw[..=end])
}
