//! Edits a definition's file: sets fields, or replaces the text by that of an editor. Everything else in the file stays
//! as it was.

use std::path::{Path, PathBuf};

use super::add::{self, reject_conflicts, require_task};
use super::permissions::{alone, require_no_circle};
use super::{App, Caller, FieldChange, FieldChanges, Outcome, SavedDefinition, jobs, restore, taken_ids};
use crate::clock::whole_second;
use crate::definition::{
    self, Definition, DefinitionError, DefinitionId, Draft, FieldValue, Kind, Loaded, Problem, Severity, WrittenFile,
};
use crate::refusal::Refusal;

/// Makes the requested changes.
pub(super) fn edit(kind: Kind, id: &str, changes: FieldChanges, app: &App) -> Result<SavedDefinition, Refusal> {
    let _one_at_a_time = matches!(app.caller, Caller::Run(_)).then(alone);
    let loaded = app.load_with([id])?;
    let found = jobs::find(id, Some(kind), &loaded)?;
    app.may_change([&*found])?;
    reject_conflicts(&changes.fields)?;
    if let Some(body) = &changes.message {
        require_task(body)?;
    }
    let body = changes.message.clone();
    let is_rescheduled =
        changes.fields.iter().any(|change| ["cron", "every", "after", "watch", "jitter"].contains(&change.field.name));
    let fields = fields(changes, &found, app)?;
    let may_rename = !taken_ids::are_partly_unknown(app)?;
    let gone = || DefinitionError::NotFound { file: found.file.clone() };
    let agree = |changed: &Definition| {
        if changed.id != found.id {
            if !may_rename {
                let why =
                    "a run chooses no id where hosts with files of their own share the journal (`share_files: false`)";
                return Err(DefinitionError::Refused { why: why.to_owned() });
            }
            definition::require_free(&app.home, &found.file, &changed.id, taken_ids::is_taken(app))?;
        }
        let refused = |why: Refusal| DefinitionError::Refused { why: why.to_string() };
        require_no_circle(&loaded, &changed.id, changed.follows()).map_err(refused)?;
        match &app.caller {
            Caller::Person => Ok(()),
            // The run answers for the result, which is checked as if the run created it now.
            Caller::Run(run) => {
                let names = if changed.id == found.id { Ok(()) } else { run.limit.may_choose_id() };
                let watches = match changed.watches().is_some() && found.watches().is_none() {
                    true => app.require_few_watched(&Draft::from(changed)),
                    false => Ok(()),
                };
                let allowed = names.and(watches).and_then(|()| run.limit.may_become(&found, changed));
                allowed.and_then(|()| app.require_readable(&Draft::from(changed))).map_err(refused)
            }
        }
    };
    let defaults = app.defaults()?;
    let written = definition::change_text(|| {
        let old = app.text_of(&found.file)?.ok_or_else(gone)?;
        let new = definition::changed_text(&found.file, &old, &fields, body.as_deref())?;
        // A longer file that stays as it is, or shrinks, is older than the limit, or has long lists of its maker's.
        if let Caller::Run(run) = &app.caller
            && new.len() > old.len()
        {
            run.limit.require_short(&new).map_err(|why| DefinitionError::Refused { why: why.to_string() })?;
        }
        app.replace_text_of((&found.file, &old, &new), &defaults, agree)
    });
    let written = written.map_err(|error| match error {
        DefinitionError::Refused { why } => Refusal::denied(why),
        other => other.into(),
    })?;
    let recorded = add::recorded(written, app);
    let times = if is_rescheduled { add::next_times(&recorded.job) } else { Vec::new() };
    Ok(SavedDefinition { times, ..recorded })
}

fn fields(
    changes: FieldChanges,
    found: &Definition,
    app: &App,
) -> Result<Vec<(&'static str, Option<FieldValue>)>, Refusal> {
    let run_at = changes.when.as_ref().map(|when| add::time(when, app.now(), found.zone)).transpose()?;
    let has_not = |called: &str, kind| {
        let refusal = Refusal::user(format!("{} has no {called}", found.title()));
        Err(refusal.hint(format!("only a {kind} has it")))
    };
    let mut fields = Vec::new();
    if let Some(at) = run_at {
        if found.kind() != Kind::Reminder {
            return has_not("--in, --at", Kind::Reminder);
        }
        let at = whole_second(at);
        // The time that it has is its own, even while it is running.
        let text = match found.trigger.run_at().is_some_and(|own| own == at) {
            true => at.to_rfc3339(),
            false => restore::unused_text(&found.id, &at, app)?,
        };
        fields.push(("run_at", Some(FieldValue::Text(text))));
    }
    for change in changes.fields {
        let value = add::value_of(&change, |draft| add::complete_after(draft, app))?;
        let FieldChange { field, called, .. } = change;
        if !field.on.has(found.kind()) {
            return has_not(&called, field.on.kinds().next().unwrap_or(Kind::Reminder));
        }
        // An empty text removes the line, so that the default applies again. So does the default value itself.
        let default = (field.show)(&Draft::empty(found.kind(), String::new()));
        let is_unset = value == FieldValue::Text(String::new()) || Some(&value) == default.as_ref();
        if !is_unset {
            // The value replaces one that excludes it.
            fields.extend(field.not_with.iter().map(|other| (*other, None)));
        }
        fields.push((field.name, Some(value).filter(|_| !is_unset)));
    }
    Ok(fields)
}

/// Returns the text of a definition's file, valid or not.
pub(super) fn file_of(kind: Option<Kind>, id: &str, app: &App) -> Result<Outcome, Refusal> {
    let file = path_of(kind, id, &app.load_with([id])?)?;
    let gone = || DefinitionError::NotFound { file: file.clone() };
    let text = app.text_of(&file)?.ok_or_else(gone)?;
    Ok(Outcome::File { file, text })
}

/// Replaces the text that was read by an edited one.
pub(super) fn replace(file: &Path, old: &str, new: &str, app: &App) -> Result<Outcome, Refusal> {
    match put(file, old, new, app) {
        Ok(written) => Ok(Outcome::Scheduled(add::recorded(written, app))),
        Err(DefinitionError::Invalid { problems }) => Ok(Outcome::Invalid(problems)),
        Err(DefinitionError::Changed { .. } | DefinitionError::NotFound { .. }) => Ok(Outcome::ChangedMeanwhile),
        Err(error) => Err(error.into()),
    }
}

fn put(file: &Path, old: &str, new: &str, app: &App) -> Result<WrittenFile, DefinitionError> {
    let defaults = app.defaults().map_err(|error| invalid(file, error.to_string()))?;
    let others = definition::load(&app.home, &defaults)?;
    app.replace_text_of((file, old, new), &defaults, |written| match others.definitions.get(&written.id) {
        Some(other) if other.file != file => Err(invalid(
            file,
            format!("the id `{}` is that of {}, so neither would fire", written.id, other.file.display()),
        )),
        _ => require_no_circle(&others, &written.id, written.follows()).map_err(|why| invalid(file, why.to_string())),
    })
}

fn invalid(file: &Path, message: String) -> DefinitionError {
    DefinitionError::Invalid { problems: vec![Problem::of_file(file, Severity::Error, message, None)] }
}

/// Returns the file with this id or path, valid or not.
pub(super) fn path_of(kind: Option<Kind>, id: &str, loaded: &Loaded) -> Result<PathBuf, Refusal> {
    let named = |known: &DefinitionId, file: &Path| {
        known.as_str() == id || file.as_os_str() == id || jobs::stem(file) == Some(id)
    };
    let valid = loaded.definitions.values().filter(|known| named(&known.id, &known.file)).map(|known| &known.file);
    let wrong = loaded.problems.iter().filter(|problem| match &problem.id {
        Some(known) => named(known, &problem.file),
        None => false,
    });
    // An id takes precedence over the name of another file.
    if let Some(exact) =
        loaded.definitions.get(&DefinitionId::new(id)).filter(|found| kind.is_none_or(|kind| found.kind() == kind))
    {
        return Ok(exact.file.clone());
    }
    let mut files: Vec<&PathBuf> = valid.chain(wrong.map(|problem| &problem.file)).collect();
    files.retain(|file| kind.is_none_or(|kind| file.starts_with(format!("{kind}s"))));
    files.sort();
    files.dedup();
    match files[..] {
        [] => match jobs::find(id, kind, loaded) {
            Ok(found) => Ok(found.file.clone()),
            Err(none) => jobs::find_broken(id, kind, loaded).map(|problem| problem.file.clone()).ok_or(none),
        },
        [one] => Ok(one.clone()),
        _ => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            Err(Refusal::user(format!("more than one file has the id `{id}`"))
                .hint(format!("name the one that you mean: {}", names.join(", "))))
        }
    }
}
