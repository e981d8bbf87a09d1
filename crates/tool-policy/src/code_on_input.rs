//! Whether an interpreter reads its code from standard input.

use std::path::Path;

use crate::options::{GivenOption, scan};
use crate::programs::{self, Class, Effect, Options, Program};

/// Returns `-` for an interpreter that reads code from standard input. A rule must spell that as `-`.
pub(crate) fn guarded(program: &Program, arguments: &[String]) -> Option<GivenOption> {
    let interprets = program.interpreter && program.class != Class::Wrapper;
    (interprets && reads_code(&program.options, arguments)).then(|| GivenOption::word("-", Effect::Executes))
}

/// Returns the same for an interpreter that starts in a folder of open files, where every name may be one.
pub(crate) fn among_open_files(program: &Program, folder: &Path) -> Option<GivenOption> {
    let is_one = program.interpreter && (folder == Path::new("/dev") || folder.starts_with("/proc"));
    is_one.then(|| GivenOption::word("-", Effect::Executes))
}

/// Returns whether an interpreter reads code from standard input: its script is `-` or an open file of its
/// own (`/dev/stdin`), or it has neither a script nor code from an option.
fn reads_code(options: &Options, arguments: &[String]) -> bool {
    let (mut has_file, mut has_code, mut asks) = (false, false, false);
    let mut rest = arguments;
    while let [word, others @ ..] = rest {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            // Behind code that takes the place of the script, `-` is the script's own.
            return is_input(word) && !has_file && (!has_code || options.code_first);
        };
        has_code |=
            scan(options, std::slice::from_ref(word)).iter().any(|option| programs::contains(options.code, &option.id));
        asks |= ["--version", "-V", "-v", "--help", "-h"].contains(&word.as_str());
        let value = value_of(options, letters, others);
        if value.names_script {
            has_file = true;
            if value.text.is_some_and(is_input) {
                return true;
            }
        }
        rest = if value.is_next { others.get(1..).unwrap_or_default() } else { others };
    }
    !has_file && !has_code && !asks
}

/// Returns whether a script is standard input, or another open file of the program, which the shell can open for it: `/dev/stdin`,
/// `/dev/fd/3`, `/proc/self/fd/0`. A way to it over other folders counts wherever it begins.
fn is_input(script: &str) -> bool {
    let mut way: Vec<&str> = Vec::new();
    for part in script.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(way.pop()),
            part => way.push(part),
        }
    }
    script == "-"
        || matches!(way.as_slice(), [.., "dev", "stdin" | "stdout" | "stderr"])
        // `/dev/fd` is a link, so a `..` behind it leads elsewhere.
        || (matches!(way.as_slice(), [.., "fd", _]) && script.split('/').any(|part| ["dev", "proc"].contains(&part)))
}

/// The value of an option of an interpreter.
struct OptionValue<'a> {
    text: Option<&'a str>,
    /// Whether it is the next word.
    is_next: bool,
    /// Whether it is the script.
    names_script: bool,
}

/// Returns the value of an option without its first dash. `others`: the words behind it.
fn value_of<'a>(options: &Options, letters: &'a str, others: &'a [String]) -> OptionValue<'a> {
    let next = others.first().map(String::as_str);
    if let Some(long) = letters.strip_prefix('-') {
        let is_next = programs::contains(options.valued, long);
        return OptionValue { text: next.filter(|_| is_next), is_next, names_script: false };
    }
    let Some(at) = letters.find(|letter| options.has_value(letter)) else {
        return OptionValue { text: None, is_next: false, names_script: false };
    };
    let (option, attached) = letters[at..].split_at(1);
    let is_next = attached.is_empty() && options.values.contains(option);
    let names_script = options.script_files.contains(option);
    OptionValue { text: if is_next { next } else { Some(attached) }, is_next, names_script }
}
