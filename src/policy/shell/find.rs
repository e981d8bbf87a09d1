//! `find`: what `-exec` and its like run, and the files that `-fprint` and its like write.

use super::Unreadable;
use super::script::{Command, Role, Script, Target};
use super::word::Word;
use super::wrappers;

/// Adds a `find` and everything it runs.
pub(super) fn add(script: &mut Script, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    // A file name that begins with a known text is no action; an expansion could be `-exec`.
    if let Some(word) = words[1..].iter().find(|word| word.is_unknown() && word.may_be_option()) {
        let why = format!("`{}` could be an action such as -exec; begin it with a folder's name", word.shown());
        return wrappers::hidden(script, words, role, &why);
    }
    let mut inner = Vec::new();
    let mut at = 1;
    while at < words.len() {
        let action = words[at].literal().unwrap_or_default();
        match action {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let end = words[at + 1..].iter().position(|word| matches!(word.literal(), Some(";" | "+")));
                let Some(end) = end.filter(|end| *end > 0) else {
                    return wrappers::hidden(script, words, role, "`-exec` without its end");
                };
                let mut command = words[at + 1..at + 1 + end].to_vec();
                for word in &mut command {
                    if word.shown().contains("{}") {
                        *word = Word { parts: vec![wrappers::unknown("{}")], quoted: true };
                    }
                }
                // With `-execdir` (and for a relative program anywhere) the folder is not ours.
                if command[0].literal().is_some_and(|name| name.contains('/') && !name.starts_with('/')) {
                    return wrappers::hidden(script, words, role, "`-exec` with a relative path to a program");
                }
                inner.push(command);
                at += end + 1;
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                at += 1;
                let file = words.get(at);
                script
                    .writes
                    .push(Target { path: file.and_then(Word::path), shown: file.map(Word::shown).unwrap_or_default() });
            }
            "-files0-from" => {
                at += 1;
                let file = words.get(at);
                script
                    .reads
                    .push(Target { path: file.and_then(Word::path), shown: file.map(Word::shown).unwrap_or_default() });
            }
            _ => {}
        }
        at += 1;
    }
    script.push(Command { words, role, hidden: None })?;
    inner.into_iter().try_for_each(|command| wrappers::add(script, command, role, depth + 1))
}
