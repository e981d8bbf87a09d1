//! Ids that a new definition may not have.

use std::{fs, io};

use super::{App, Caller, jobs, runs};
use crate::definition::{DefinitionId, Loaded, Severity};
use crate::journal::{JournalError, JournalLocation, JournalReader};
use crate::refusal::Refusal;
use crate::run::spawn::MAIN;

/// Returns whether an id is taken: the journal knows it, so that earlier runs under it are not mistaken for those of a new definition, and a
/// file does not take the place of a definition of the database. For a run, also whether the person could mean another job by it, or
/// a session: by its beginning, in capitals or not.
pub(super) fn is_taken(app: &App) -> impl Fn(&DefinitionId) -> bool {
    let journal = runs::open(app).ok();
    // Without them, every id is taken.
    let meant = match &app.caller {
        Caller::Person => Some(Vec::new()),
        Caller::Run(_) => app.load().ok().and_then(|loaded| names_of_person(&loaded).ok()),
    };
    let is_run = matches!(app.caller, Caller::Run(_));
    move |id| {
        let small = id.as_str().to_lowercase();
        let begins = |name: &String| name.to_lowercase().starts_with(&small);
        meant.as_ref().is_none_or(|meant| meant.iter().any(begins))
            || journal.as_ref().map_or(is_run, |journal| {
                is_in_journal(journal, id).unwrap_or(true)
                    || (is_run && is_meant_by_pushed(journal, id).unwrap_or(true))
            })
    }
}

/// Returns whether the caller could take the id of a job of the person that this host does not know: other hosts that share the journal
/// have files of their own. An occurrence belongs to an id and a time, whatever file it is of.
pub(super) fn are_partly_unknown(app: &App) -> Result<bool, Refusal> {
    let is_run = matches!(app.caller, Caller::Run(_));
    Ok(is_run && !app.config()?.share_files && matches!(app.journal()?, JournalLocation::Server(_)))
}

fn is_in_journal(journal: &JournalReader, id: &DefinitionId) -> Result<bool, JournalError> {
    Ok(journal.has_record_of(id)? || !journal.pushed(std::slice::from_ref(id))?.is_empty())
}

/// Returns whether an id is the beginning of a pushed one, or of one that a pushed definition may read.
fn is_meant_by_pushed(journal: &JournalReader, id: &DefinitionId) -> Result<bool, JournalError> {
    if journal.is_beginning_of_pushed(id)? {
        return Ok(true);
    }
    let texts = journal.pushed_that_may_read(id)?;
    Ok(texts.is_none_or(|texts| texts.iter().any(|text| words(text).any(|word| word.starts_with(id.as_str())))))
}

/// Returns the names by which the person's own jobs are called, the ids that they follow or read, and that of the main session. A file with
/// an error may follow and read whatever it names.
fn names_of_person(loaded: &Loaded) -> io::Result<Vec<String>> {
    let own = loaded.definitions.values().filter(|definition| definition.created_by.is_none());
    let names = own.flat_map(|definition| {
        let stem = jobs::stem(&definition.file).map(str::to_owned);
        let others = definition.context_from.iter().chain(definition.follows().map(|follows| &follows.job));
        let ids = std::iter::once(&definition.id).chain(others).map(ToString::to_string);
        ids.chain(stem).collect::<Vec<_>>()
    });
    let mut names: Vec<String> = names.chain([MAIN.to_owned()]).collect();
    for problem in loaded.problems.iter().filter(|problem| problem.severity == Severity::Error) {
        let text = fs::read(loaded.home.root().join(&problem.file))?;
        names.extend(words(&String::from_utf8_lossy(&text)).map(ToOwned::to_owned));
        names.extend(jobs::stem(&problem.file).map(str::to_owned));
    }
    Ok(names)
}

/// Returns the words of a frontmatter: each may be an id.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let fields = text.trim_start().strip_prefix("---").unwrap_or(text);
    let fields = fields.split_once("\n---").map_or(fields, |(fields, _)| fields);
    fields.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_frontmatter_are_found_as_far_as_it_goes() {
        let found = |text| words(text).collect::<Vec<_>>();
        assert_eq!(
            found("---\nafter: {job: break-fast}\ncontext_from: [tea_2, 'x.y'\n---\nThe task."),
            ["after", "job", "break-fast", "context_from", "tea_2", "x.y"]
        );
        assert_eq!(found("after: a"), ["after", "a"]);
        assert_eq!(found("---\nafter: a\n"), ["after", "a"]);
    }
}
