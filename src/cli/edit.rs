//! `routine edit`, `reminder edit`: a copy in the person's editor, put in the file's place when it is valid.
//!
//! Nothing typed is ever lost: whatever keeps the copy from the file's place, the copy stays and is named.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::args::{Changes, Color};
use super::context::{Caller, Context};
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{add, changes, check, jobs};
use crate::channel::terminal::plain;
use crate::definition::{self, DefinitionError, DefinitionId, Kind, Loaded, Problem, Severity, Written};

/// Edits one definition, also one whose file has errors.
///
/// # Errors
/// When there is no such definition or no editor, what was written is not valid, or the file changed meanwhile.
pub fn edit(kind: Kind, id: &str, changes: Changes, context: &Context, output: &mut Output) -> Result<(), CliError> {
    if !changes.is_empty() {
        return changes::change(kind, id, changes, context, output);
    }
    if let Caller::Run(_) = context.caller {
        return Err(CliError::denied("nobody can use an editor inside a job")
            .hint(format!("name what to set, as in `ollim-bot {kind} edit {id} -m 'Look again'`")));
    }
    let loaded = context.load()?;
    let file = file_of(kind, id, &loaded)?;
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| context.env.text(name)).ok_or_else(|| {
        CliError::user("there is no editor: neither VISUAL nor EDITOR is set")
            .hint(format!("for example `EDITOR=nano ollim-bot {kind} edit {id}`"))
            .hint(format!("or write {} with any program", context.home.root().join(&file).display()))
    })?;
    let gone = || DefinitionError::NotFound { file: file.clone() };
    let old = definition::read_text(&context.home, &file)?.ok_or_else(gone)?;
    let copy = copy_of(&file, &old, context)?;
    let kept = |error: CliError| error.hint(format!("what you wrote is kept in {}", copy.display()));
    loop {
        run(editor, &copy).map_err(|error| match fs::read_to_string(&copy) {
            Ok(text) if text == old => {
                let _left = fs::remove_file(&copy);
                error
            }
            _ => kept(error),
        })?;
        let new = fs::read_to_string(&copy)
            .map_err(|error| kept(CliError::user(format!("cannot read {}: {error}", copy.display()))))?;
        if new == old {
            remove(&copy, output);
            output.note(format!("{} stays as it was", plain(&file.display().to_string())));
            return Ok(());
        }
        match put(&file, &old, &new, context) {
            Ok(written) => {
                remove(&copy, output);
                add::said(&written, context, output);
                return Ok(());
            }
            Err(DefinitionError::Invalid { problems }) => {
                let mut wrong = Output::default();
                for problem in &problems {
                    wrong.note(check::coloured(problem));
                }
                if again(&mut wrong) {
                    continue;
                }
                output.stderr.push_str(&wrong.stderr);
                return Err(kept(CliError::user(format!("{} stays as it was", file.display()))));
            }
            Err(DefinitionError::Changed { .. } | DefinitionError::NotFound { .. }) => {
                let changed = format!("{} was changed or removed by somebody else meanwhile", file.display());
                return Err(kept(CliError::user(changed).hint("their change stands; bring yours over by hand")));
            }
            Err(error) => return Err(kept(error.into())),
        }
    }
}

/// The file of this id or path, valid or not.
fn file_of(kind: Kind, id: &str, loaded: &Loaded) -> Result<PathBuf, CliError> {
    let named = |known: &DefinitionId, file: &Path| known.as_str() == id || file.as_os_str() == id;
    let valid = loaded.definitions.values().filter(|known| named(&known.id, &known.file)).map(|known| &known.file);
    let wrong = loaded.problems.iter().filter(|problem| match &problem.id {
        Some(known) => named(known, &problem.file),
        None => false,
    });
    let mut files: Vec<&PathBuf> = valid.chain(wrong.map(|problem| &problem.file)).collect();
    files.retain(|file| file.starts_with(format!("{kind}s")));
    files.sort();
    files.dedup();
    match files[..] {
        [] => Ok(jobs::named(id, kind, loaded)?.file.clone()),
        [one] => Ok(one.clone()),
        _ => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            Err(CliError::user(format!("more than one file has the id `{id}`"))
                .hint(format!("name the one that you mean: {}", names.join(", "))))
        }
    }
}

/// A copy that nobody but the person reads: forks never see `state/`.
fn copy_of(file: &Path, text: &str, context: &Context) -> Result<PathBuf, CliError> {
    let folder = context.home.edits();
    let made = || {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut copy = tempfile::Builder::new().prefix(&format!("{stem}-")).suffix(".md").tempfile_in(&folder)?;
        copy.write_all(text.as_bytes())?;
        Ok(copy.into_temp_path().keep()?)
    };
    made().map_err(|error: io::Error| CliError::environment(format!("cannot write into {}: {error}", folder.display())))
}

/// The editor as a shell takes it: `code --wait` is a command and a flag.
fn run(editor: &str, copy: &Path) -> Result<(), CliError> {
    let ended = Command::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(copy).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CliError::user(format!("the editor `{editor}` failed ({status}); nothing was changed"))),
        Err(error) => Err(CliError::environment(format!("cannot start the editor `{editor}`: {error}"))),
    }
}

/// Shows what is wrong and asks whether to edit again, where there is somebody to ask.
fn again(wrong: &mut Output) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    wrong.note(paint(STRONG, "Edit it again? [Y/n]"));
    let shown = wrong.print(Color::Auto);
    wrong.stderr.clear();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    shown.is_ok() && read.is_ok_and(|count| count > 0) && !answer.trim().to_lowercase().starts_with('n')
}

/// Puts the new text in the file's place.
fn put(file: &Path, old: &str, new: &str, context: &Context) -> Result<Written, DefinitionError> {
    let defaults = context.defaults().map_err(|error| invalid(file, error.to_string()))?;
    let others = definition::load(&context.home, &defaults)?;
    definition::replace_text(&context.home, file, old, new, &defaults, |written| {
        match others.definitions.get(&written.id) {
            Some(other) if other.file != file => Err(invalid(
                file,
                format!("the id `{}` is that of {}, so neither would fire", written.id, other.file.display()),
            )),
            _ => Ok(()),
        }
    })
}

fn invalid(file: &Path, message: String) -> DefinitionError {
    DefinitionError::Invalid { problems: vec![Problem::of_file(file, Severity::Error, message, None)] }
}

/// A copy that has done its work. One that stays harms nobody, but is said.
fn remove(copy: &Path, output: &mut Output) {
    if let Err(error) = fs::remove_file(copy) {
        output.note(format!("the copy {} could not be removed: {error}", copy.display()));
    }
}
