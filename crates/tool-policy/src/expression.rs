//! Expressions of tests and actions (`find . -name x -delete`), and what a star of a rule may stand for in one.
//!
//! An action applies to what the tests before it leave. So a star with an action behind it stands for folders and for whole tests, which
//! can only leave less. It does not stand for a word that takes a later test for its value, turns it round, or joins it by "or".

use crate::programs::{Names, Options, contains};
use crate::wildcard::{BREAK, STAR};

/// The words of an expression with one dash, without it.
pub(super) struct Expression {
    /// Tests, settings and operators without a value.
    pub plain: Names,
    /// Tests and settings whose value is the next word.
    pub valued: Names,
    /// Options before the folders, without a value.
    pub leading: Names,
}

/// Words of an expression that are no tests, or show something.
const MORE_THAN_TESTS: Names = "d depth ls not o or print print0 printf prune quit";

/// Words of a rule by which a test in front of it can leave more: what follows applies if the tests before it fail, or is not looked at.
const MORE_BEHIND_LESS: Names = "-o -or , ! -not ( ) \\! \\( \\) -prune -quit";

/// Maximum number of tests in front of those that a rule names.
const MAX_TESTS: usize = 16;

/// The place between two words of an expression.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Whether the next word is the value of the one before it.
    in_value: bool,
    /// Whether the next test is turned round.
    negated: bool,
    /// Whether a test is before it, within the same brackets.
    has_test: bool,
    /// How many brackets are open.
    depth: usize,
}

impl Place {
    /// Returns the place behind a word.
    fn after(self, word: &str, expression: &Expression) -> Self {
        let next = Self { in_value: false, negated: false, ..self };
        match word {
            _ if self.in_value => next,
            "!" | "-not" => Self { negated: true, has_test: true, ..next },
            "(" => Self { depth: self.depth + 1, has_test: false, ..next },
            ")" => Self { depth: self.depth.saturating_sub(1), has_test: true, ..next },
            _ => {
                let name = word.strip_prefix('-').filter(|name| !contains(expression.leading, name));
                let in_value = name.is_some_and(|name| contains(expression.valued, name));
                Self { in_value, has_test: self.has_test || name.is_some(), ..next }
            }
        }
    }
}

/// Returns whether a star may stand for the words `stands_for` of a call, behind the words `before`. Both are words joined by [`BREAK`].
pub(super) fn may_stand_for(options: &Options, before: &str, stands_for: &str) -> bool {
    let Some(expression) = options.expression else { return false };
    let (whole, part) = before.rsplit_once(BREAK).unwrap_or(("", before));
    let place = whole.split(BREAK).skip(1).fold(Place::default(), |place, word| place.after(word, expression));
    if place.in_value || !part.is_empty() {
        // One value, or the rest of a word. The rest of an option would make another one of it.
        let is_text = place.in_value || !part.starts_with('-') || part == "-";
        return !stands_for.contains(BREAK) && (is_text || stands_for.is_empty());
    }
    leaves_later_tests(options, expression, place, stands_for)
}

/// Returns the index of the first test among the words of a call or a rule, if the words before it are folders and options.
pub(super) fn first_test(expression: &Expression, words: &[String]) -> Option<usize> {
    let is_test = |word: &String| {
        word.strip_prefix('-').is_some_and(|name| !name.is_empty() && !contains(expression.leading, name))
    };
    let at = words.iter().position(is_test)?;
    words[..at].iter().all(|word| !word.contains(STAR) && !["(", ")", "!", ","].contains(&word.as_str())).then_some(at)
}

/// Returns whether a further test in front of the words of a rule only leaves less.
pub(super) fn narrows(words: &[String]) -> bool {
    !words.iter().any(|word| contains(MORE_BEHIND_LESS, word))
}

/// Returns what stays of the words of an expression without its first test, without its first two, and so on, as long as these tests
/// only select.
pub(super) fn without_tests<'a>(expression: &Expression, words: &'a [String]) -> impl Iterator<Item = &'a [String]> {
    let rest = |words: &&'a [String]| {
        let (test, others) = words.split_first()?;
        let name = test.strip_prefix('-').filter(|name| !contains(MORE_THAN_TESTS, name))?;
        match () {
            () if contains(expression.plain, name) => Some(others),
            () if contains(expression.valued, name) => others.get(1..),
            () => None,
        }
    };
    std::iter::successors(rest(&words), rest).take(MAX_TESTS)
}

/// Returns whether words leave the tests behind them as they are.
fn leaves_later_tests(options: &Options, expression: &Expression, start: Place, words: &str) -> bool {
    let mut place = start;
    for word in words.split(BREAK) {
        if !place.in_value {
            let joins = matches!(word, "-o" | "-or" | ",");
            let name = word.strip_prefix('-').filter(|name| !name.is_empty());
            let lists = [expression.plain, expression.valued, expression.leading];
            let is_known = name.is_none_or(|name| lists.iter().any(|names| contains(names, name)));
            let closes = word == ")" && place.depth <= start.depth;
            if closes || !is_known || options.acts(word) || (joins && place.depth == start.depth && start.has_test) {
                return false;
            }
        }
        place = place.after(word, expression);
    }
    !place.in_value && !place.negated && place.depth == start.depth
}
