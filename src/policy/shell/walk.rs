//! Collects the simple commands, redirections and assignments of a syntax tree.
//!
//! Exhaustive on purpose: no wildcard arm on a tree node, so that a construct which a later grammar adds does not
//! pass unseen.

use brush_parser::ast::{
    AndOr, Assignment, AssignmentName, AssignmentValue, BinaryPredicate, Command as Node, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    Program, RedirectList, SimpleCommand, UnaryPredicate,
};

use super::Unreadable;
use super::expansion::ARITHMETIC;
use super::grammar::resolve;
use super::lexer::Lexed;
use super::script::{Command, Role, Script, Target};
use super::word::{Part, Spread, Unknown, Word};
use super::wrappers;

/// Adds everything that a program does, its substitutions apart (the caller reads those).
pub(super) fn program(script: &mut Script, program: &Program, lexed: &Lexed, depth: usize) -> Result<(), Unreadable> {
    let mut walk = Walk { script, lexed, depth };
    for list in &program.complete_commands {
        walk.list(list)?;
    }
    Ok(())
}

struct Walk<'a> {
    script: &'a mut Script,
    lexed: &'a Lexed,
    depth: usize,
}

impl Walk<'_> {
    fn list(&mut self, list: &CompoundList) -> Result<(), Unreadable> {
        for item in &list.0 {
            self.pipeline(&item.0.first)?;
            for next in &item.0.additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline)?,
                }
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), Unreadable> {
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Node) -> Result<(), Unreadable> {
        match command {
            Node::Simple(simple) => self.simple(simple),
            Node::Compound(compound, redirects) => {
                self.redirects(redirects.as_ref())?;
                self.compound(compound)
            }
            Node::Function(function) => {
                let Some(name) = resolve(&function.fname, self.lexed).literal().map(str::to_owned) else {
                    return Err(Unreadable::new("a function whose name is not plain text"));
                };
                self.script.functions.push(name);
                self.redirects(function.body.1.as_ref())?;
                self.compound(&function.body.0)
            }
            Node::ExtendedTest(test, redirects) => {
                self.redirects(redirects.as_ref())?;
                self.test(&test.expr)
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Result<(), Unreadable> {
        match compound {
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                Err(Unreadable::new("an arithmetic command"))
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                self.script.assigned.push(clause.variable_name.clone());
                let values = clause.values.as_deref().unwrap_or_default();
                if !values.is_empty() && values.iter().all(|value| is_number(&resolve(value, self.lexed))) {
                    self.script.numbers.push(clause.variable_name.clone());
                }
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                clause.cases.iter().filter_map(|case| case.cmd.as_ref()).try_for_each(|list| self.list(list))
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        self.list(condition)?;
                    }
                    self.list(&branch.body)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::Coprocess(coprocess) => {
                if let Some(name) = &coprocess.name {
                    self.script.assigned.push(resolve(name, self.lexed).shown());
                }
                self.command(&coprocess.body)
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Result<(), Unreadable> {
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut numbers = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect)?,
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    let name = name_of(assignment)?;
                    if self.gives_number(assignment) {
                        numbers.push(name.clone());
                    }
                    assignments.push(name);
                }
                CommandPrefixOrSuffixItem::Word(word) => words.push(resolve(word, self.lexed)),
                CommandPrefixOrSuffixItem::ProcessSubstitution(_, _) => {
                    return Err(Unreadable::new("a process substitution in front of a command"));
                }
            }
        }
        if let Some(name) = &simple.word_or_name {
            words.push(resolve(name, self.lexed));
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect)?,
                CommandPrefixOrSuffixItem::Word(word) => words.push(resolve(word, self.lexed)),
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => match &assignment.value {
                    AssignmentValue::Scalar(_) => words.push(resolve(word, self.lexed)),
                    AssignmentValue::Array(_) => {
                        // Only declarations take these; which names they bind is what matters.
                        words.push(Word::anything(&format!("{}=(…)", name_of(assignment)?)));
                    }
                },
                CommandPrefixOrSuffixItem::ProcessSubstitution(kind, subshell) => {
                    self.list(&subshell.list)?;
                    words.push(Word {
                        parts: vec![Part::Unknown(Unknown { raw: format!("{kind}(…)"), spread: Spread::One })],
                        quoted: true,
                    });
                }
            }
        }
        if words.is_empty() {
            self.script.assigned.append(&mut assignments);
            self.script.numbers.append(&mut numbers);
            return Ok(());
        }
        // For `read` alone it says how a line is cut up, and is gone afterwards.
        if words[0].literal() == Some("read") {
            let given = assignments.len();
            assignments.retain(|name| name != "IFS");
            self.script.splits_read |= assignments.len() < given;
        }
        self.script.exported.append(&mut assignments);
        if let Some(keyword) = words[0].literal().filter(|name| !words[0].quoted && is_keyword(name)) {
            return Err(Unreadable::new(format!("`{keyword}` where a program should be")));
        }
        wrappers::add(self.script, words, Role::Runs, self.depth)
    }

    /// Whether an assignment gives a plain number: digits, or the result of arithmetic.
    fn gives_number(&self, assignment: &Assignment) -> bool {
        let (AssignmentName::VariableName(name), AssignmentValue::Scalar(value)) =
            (&assignment.name, &assignment.value)
        else {
            return false;
        };
        let word = resolve(value, self.lexed);
        // The word of a value that is not plain text holds the name as well.
        let value = |text: &str| {
            let value =
                text.strip_prefix(name.as_str()).and_then(|rest| rest.trim_start_matches('+').strip_prefix('='));
            value.unwrap_or(text).to_owned()
        };
        match word.parts.as_slice() {
            [Part::Text(text)] => is_digits(&value(text)),
            [Part::Text(text), Part::Unknown(unknown)] => {
                text.ends_with('=') && value(text).is_empty() && unknown.raw == ARITHMETIC
            }
            _ => false,
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) -> Result<(), Unreadable> {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect))
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Result<(), Unreadable> {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let word = resolve(word, self.lexed);
                    match kind {
                        IoFileRedirectKind::Read => self.reads(&word),
                        IoFileRedirectKind::ReadAndWrite => {
                            self.reads(&word);
                            self.writes(&word);
                        }
                        IoFileRedirectKind::Write
                        | IoFileRedirectKind::Append
                        | IoFileRedirectKind::Clobber
                        | IoFileRedirectKind::DuplicateInput
                        | IoFileRedirectKind::DuplicateOutput => self.writes(&word),
                    }
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => self.list(&subshell.list)?,
                IoFileRedirectTarget::Duplicate(word) => {
                    let word = resolve(word, self.lexed);
                    let descriptor = |text: &str| {
                        let digits = text.strip_suffix('-').unwrap_or(text);
                        text == "-" || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                    };
                    if !word.literal().is_some_and(descriptor) {
                        // `>& file` is a file; so may be `>& $x`.
                        self.writes(&word);
                    }
                }
            },
            // Expansions in the text were read with the line.
            IoRedirect::HereDocument(_, _) | IoRedirect::HereString(_, _) => {}
            IoRedirect::OutputAndError(word, _) => self.writes(&resolve(word, self.lexed)),
        }
        Ok(())
    }

    fn writes(&mut self, word: &Word) {
        if let Some(target) = target(word) {
            self.script.writes.push(target);
        }
    }

    fn reads(&mut self, word: &Word) {
        if let Some(target) = target(word) {
            self.script.reads.push(target);
        }
    }

    /// `[[ … ]]`. Comparing numbers evaluates both sides as arithmetic, which can run commands; asking about files
    /// counts as a command of its own.
    fn test(&mut self, expression: &ExtendedTestExpr) -> Result<(), Unreadable> {
        match expression {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left)?;
                self.test(right)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(predicate, word) => match predicate {
                UnaryPredicate::StringHasZeroLength | UnaryPredicate::StringHasNonZeroLength => Ok(()),
                UnaryPredicate::ShellVariableIsSetAndAssigned | UnaryPredicate::ShellVariableIsSetAndNameRef => {
                    Err(Unreadable::new("`[[ -v … ]]`, which evaluates a subscript; use `[ -n \"$name\" ]`"))
                }
                UnaryPredicate::ShellOptionEnabled => Ok(()),
                predicate => self.file_test(&predicate.to_string(), &resolve(word, self.lexed)),
            },
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let (left, right) = (resolve(left, self.lexed), resolve(right, self.lexed));
                match predicate {
                    BinaryPredicate::ArithmeticEqualTo
                    | BinaryPredicate::ArithmeticNotEqualTo
                    | BinaryPredicate::ArithmeticLessThan
                    | BinaryPredicate::ArithmeticLessThanOrEqualTo
                    | BinaryPredicate::ArithmeticGreaterThan
                    | BinaryPredicate::ArithmeticGreaterThanOrEqualTo => {
                        for side in [&left, &right] {
                            if is_number(side) {
                                continue;
                            }
                            // The whole line is asked what a name holds.
                            let Some(name) = plain_name(side) else {
                                let why = "numbers compared in `[[ … ]]`, which evaluates them; use `[ … ]`";
                                return Err(Unreadable::new(why));
                            };
                            self.script.evaluated.push(name.to_owned());
                        }
                        Ok(())
                    }
                    BinaryPredicate::FilesReferToSameDeviceAndInodeNumbers
                    | BinaryPredicate::LeftFileIsNewerOrExistsWhenRightDoesNot
                    | BinaryPredicate::LeftFileIsOlderOrDoesNotExistWhenRightDoes => {
                        self.file_test(&predicate.to_string(), &left)?;
                        self.file_test(&predicate.to_string(), &right)
                    }
                    BinaryPredicate::StringExactlyMatchesPattern
                    | BinaryPredicate::StringDoesNotExactlyMatchPattern
                    | BinaryPredicate::StringMatchesRegex
                    | BinaryPredicate::StringExactlyMatchesString
                    | BinaryPredicate::StringDoesNotExactlyMatchString
                    | BinaryPredicate::StringContainsSubstring
                    | BinaryPredicate::LeftSortsBeforeRight
                    | BinaryPredicate::LeftSortsAfterRight => Ok(()),
                }
            }
        }
    }

    fn file_test(&mut self, operator: &str, word: &Word) -> Result<(), Unreadable> {
        let words = vec![Word::text("test"), Word::text(operator), word.clone()];
        self.script.push(Command { words, role: Role::Steers, hidden: None })
    }
}

/// The file a redirection names; `None` for those that are no files.
fn target(word: &Word) -> Option<Target> {
    let shown = word.shown();
    let free = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"];
    if word.literal().is_some_and(|path| free.contains(&path)) {
        return None;
    }
    Some(Target { path: word.path(), shown })
}

fn name_of(assignment: &Assignment) -> Result<String, Unreadable> {
    match &assignment.name {
        AssignmentName::VariableName(name) => Ok(name.clone()),
        AssignmentName::ArrayElementName(name, index) if index.bytes().all(|b| b.is_ascii_digit()) => Ok(name.clone()),
        AssignmentName::ArrayElementName(..) => Err(Unreadable::new("an assignment to a computed subscript")),
    }
}

fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A plain number, or a range of them (`{1..5}`).
fn is_number(word: &Word) -> bool {
    match word.parts.as_slice() {
        [Part::Text(text)] => is_digits(text),
        [Part::Unknown(unknown)] => {
            let range = unknown.raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
            range.is_some_and(|range| range.contains("..") && range.split("..").all(is_digits))
        }
        _ => false,
    }
}

/// The name in a word that is `$name` or `${name}`.
fn plain_name(word: &Word) -> Option<&str> {
    let [Part::Unknown(unknown)] = word.parts.as_slice() else { return None };
    let name = unknown.raw.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    super::builtins::is_name(name).then_some(name)
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "!" | "{"
            | "}"
            | "[["
            | "]]"
            | "case"
            | "coproc"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "fi"
            | "for"
            | "function"
            | "if"
            | "in"
            | "select"
            | "then"
            | "until"
            | "while"
    )
}
