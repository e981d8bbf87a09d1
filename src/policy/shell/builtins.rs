//! Builtins of the shell that steer a line, bind names, or evaluate their arguments a second time.

use super::script::Script;
use super::word::Word;

/// What a builtin does to the line.
pub(super) struct Effect {
    /// It needs no grant of its own.
    pub steers: bool,
    /// What cannot be seen of it.
    pub hidden: Option<String>,
}

const RUNS: Option<Effect> = Some(Effect { steers: false, hidden: None });
const STEERS: Option<Effect> = Some(Effect { steers: true, hidden: None });

fn hidden(why: &str) -> Option<Effect> {
    Some(Effect { steers: false, hidden: Some(why.into()) })
}

/// `None`: not one of these.
pub(super) fn effect(script: &mut Script, program: &str, words: &[Word]) -> Option<Effect> {
    if words.first().and_then(Word::literal).is_some_and(|name| name.contains('/')) {
        return None;
    }
    let arguments = &words[1..];
    match program {
        "true" | "false" | ":" | "exit" | "return" | "break" | "continue" => STEERS,
        "test" | "[" => test(program, arguments),
        "set" => {
            let names = ["errexit", "nounset", "pipefail", "xtrace"];
            let harmless = |word: &Word| {
                word.literal().is_some_and(|text| {
                    names.contains(&text)
                        || text
                            .strip_prefix(['-', '+'])
                            .is_some_and(|flags| !flags.is_empty() && flags.chars().all(|flag| "euxo".contains(flag)))
                })
            };
            if !arguments.is_empty() && arguments.iter().all(harmless) { STEERS } else { RUNS }
        }
        "cd" | "pushd" | "popd" | "chdir" => {
            script.moves = true;
            RUNS
        }
        "read" => {
            let plain = |word: &Word| word.literal().is_some_and(|text| text == "-r" || is_name(text));
            if arguments.iter().all(plain) {
                let names = arguments.iter().filter_map(Word::literal).filter(|name| is_name(name));
                script.assigned.extend(names.map(str::to_owned));
                return STEERS;
            }
            binds(script, arguments)
        }
        "export" => {
            // An assignment's value is not split, unless quotes keep the word from being one.
            let whole = |word: &Word| !word.may_be_words() || (!word.quoted && !words[0].quoted);
            let assigns =
                |word: &Word| word.known_start().split_once('=').is_some_and(|(name, _)| is_name(name)) && whole(word);
            if !arguments.is_empty() && arguments.iter().all(assigns) {
                let names = arguments.iter().filter_map(|word| word.known_start().split_once('='));
                script.exported.extend(names.map(|(name, _)| name.to_owned()));
                return STEERS;
            }
            binds(script, arguments)
        }
        "declare" | "typeset" | "local" | "readonly" | "unset" | "mapfile" | "readarray" | "getopts" => {
            let evaluates = |word: &Word| {
                word.known_start().starts_with(['-', '+']) && word.known_start().contains(['i', 'n', 'C', 'c', 'f'])
            };
            if program != "getopts" && arguments.iter().any(evaluates) {
                return hidden("with that option it evaluates what it is given");
            }
            binds(script, arguments)
        }
        "printf" => {
            let first = arguments.first();
            if first.is_some_and(|word| word.known_start().starts_with("-v") || word.is_unknown()) {
                return binds(script, arguments);
            }
            RUNS
        }
        "wait" => {
            if arguments.iter().any(|word| word.may_be_option()) {
                return hidden("its option binds a name");
            }
            STEERS
        }
        "jobs" => {
            let runs = |word: &Word| word.is_unknown() || (word.may_be_option() && word.known_start().contains('x'));
            if arguments.iter().any(runs) {
                return hidden("its option `-x` runs a command");
            }
            RUNS
        }
        "let" => hidden("it evaluates its arguments"),
        "." | "source" => hidden("it runs a file in this shell; run the file as a program instead"),
        "alias" | "unalias" | "enable" | "shopt" | "bind" | "complete" | "compgen" | "compopt" | "fc" => {
            hidden("it changes what later words mean")
        }
        "hash" => {
            if arguments.iter().any(Word::may_be_option) {
                return hidden("it can make a name stand for another program");
            }
            RUNS
        }
        "history" => {
            if arguments.is_empty() {
                return RUNS;
            }
            hidden("it reads and writes files and can evaluate lines")
        }
        _ => None,
    }
}

/// Builtins that bind the names they are given: a subscript among them would be evaluated.
fn binds(script: &mut Script, arguments: &[Word]) -> Option<Effect> {
    for word in arguments {
        let start = word.known_start();
        let name = start.split_once('=').map_or(start, |(name, _)| name);
        if start.contains('[') || (word.is_unknown() && !start.contains('=')) || (word.may_be_words() && word.quoted) {
            return hidden("the names that it binds are known only when it runs");
        }
        let name = name.strip_suffix('+').unwrap_or(name);
        if is_name(name) {
            script.assigned.push(name.to_owned());
            script.exported.push(name.to_owned());
        } else if name.starts_with('-') {
            // `-rax` is `-r -a x`: which letter is the last option need not be known.
            let attached = (2..name.len()).filter_map(|at| name.get(at..)).filter(|rest| is_name(rest));
            script.assigned.extend(attached.map(str::to_owned));
        }
    }
    RUNS
}

/// `[ … ]`: comparing texts and numbers, and asking about files, steers; anything that could become
/// `-v name[…]` hides what it does, since that evaluates the subscript.
pub(super) fn test(program: &str, arguments: &[Word]) -> Option<Effect> {
    let mut arguments = arguments;
    if program == "[" {
        match arguments.split_last() {
            Some((last, rest)) if last.literal() == Some("]") => arguments = rest,
            _ => return hidden("`[` without `]`"),
        }
    }
    while let Some((first, rest)) = arguments.split_first()
        && first.literal() == Some("!")
        && rest.len() > 1
    {
        arguments = rest;
    }
    let whole = |word: &Word| !word.splits();
    let fixed = |word: &Word, operators: &[&str]| word.literal().is_some_and(|text| operators.contains(&text));
    let compares = ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">"];
    match arguments {
        [] => STEERS,
        [word] if whole(word) => STEERS,
        [operator, word] if fixed(operator, &["-z", "-n"]) && whole(word) => STEERS,
        [left, operator, right] if fixed(operator, &compares) && whole(left) && whole(right) => STEERS,
        [operator, word]
            if operator.literal().is_some_and(|text| {
                text.len() == 2 && text.starts_with('-') && "abcdefghkprstuwxGLNOS".contains(&text[1..])
            }) && whole(word) =>
        {
            STEERS
        }
        [_, operator, _] if fixed(operator, &["-nt", "-ot", "-ef"]) && arguments.iter().all(whole) => STEERS,
        _ => {
            let subscript = |word: &Word| word.is_unknown() || fixed(word, &["-v", "-R"]);
            if arguments.iter().any(subscript) {
                return hidden("a test that could evaluate a subscript; write one comparison with quoted values");
            }
            RUNS
        }
    }
}

/// A plain identifier.
pub(in crate::policy) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
