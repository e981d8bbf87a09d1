//! Harmless options whose position means nothing: `make -j4 check` is `make check -j4`.

use crate::programs::{self, HarmlessOptions};
use crate::wildcard::STAR;

/// Returns the words of a call without its harmless options, and those options, if a program takes them in any position (`make -j4
/// check`).
pub(super) fn harmless_apart(program: &str, arguments: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let entry = programs::by_base_name(program);
    let tool = entry.harmless.filter(|tool| !tool.switches.is_empty())?;
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let (mut plain, mut harmless) = (vec![program.to_owned()], Vec::new());
    let mut rest = arguments.iter().peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            plain.push(word.clone());
        } else if let Some((mut options, open)) = harmless_in(tool, word) {
            // Values of `make` are optional numbers.
            let next = rest.next_if(|next| open && (!entry.variables || is_number(next)));
            options.last_mut().into_iter().for_each(|last| last.extend(next.map(String::as_str)));
            harmless.extend(options);
        } else {
            // What stands behind another option may be its value.
            plain.push(word.clone());
            plain.extend(rest.by_ref().cloned());
        }
    }
    Some((plain, harmless))
}

/// Returns the options in a word, each with its value, and whether the next word may be the value of the last one. `None` if one of them is
/// not harmless, or may have a value in another word.
fn harmless_in(tool: &HarmlessOptions, word: &str) -> Option<(Vec<String>, bool)> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty() && !word.contains(STAR))?;
    if let Some(long) = letters.strip_prefix('-') {
        let known = long.split_once('=').map_or(tool.switches, |_| tool.long);
        let name = long.split('=').next().unwrap_or_default();
        return programs::contains(known, name).then(|| (vec![word.to_owned()], false));
    }
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        if tool.values.contains(letter) {
            let value = &letters[at..];
            found.push(format!("-{value}"));
            return Some((found, value.len() == letter.len_utf8()));
        }
        found.push(tool.flags.contains(letter).then(|| format!("-{letter}"))?);
    }
    Some((found, false))
}
