//! `routine edit`, `reminder edit` without flags: a copy in the person's editor, put in the file's place when it is valid.
//!
//! Nothing typed is ever lost: whatever keeps the copy from the file's place, the copy stays and is named.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use super::args::Color;
use super::output::{Output, STRONG, paint};
use super::render::{self, View};
use crate::app::{App, Caller, Command, Outcome};
use crate::channel::terminal::plain;
use crate::definition::Kind;
use crate::refusal::Refusal;

/// Edits one definition, also one whose file has errors.
///
/// # Errors
/// When there is no such definition or no editor, what was written is not valid, or the file changed meanwhile.
pub(super) fn edit(kind: Kind, id: &str, app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    if let Caller::Run(_) = app.caller {
        return Err(Refusal::denied("nobody can use an editor inside a job")
            .hint(format!("name what to set, as in `ollim-bot {kind} edit {id} -m 'Look again'`")));
    }
    let Outcome::File { file, text: old } = app.execute(Command::FileOf { kind, id: id.to_owned() })? else {
        return Ok(());
    };
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| app.env.text(name)).ok_or_else(|| {
        Refusal::user("there is no editor: neither VISUAL nor EDITOR is set")
            .hint(format!("for example `EDITOR=nano ollim-bot {kind} edit {id}`"))
            .hint(format!("or write {} with any program", app.home.root().join(&file).display()))
    })?;
    let copy = copy_of(&file, &old, app)?;
    let kept = |refusal: Refusal| refusal.hint(format!("what you wrote is kept in {}", copy.display()));
    loop {
        run(editor, &copy).map_err(|refusal| match fs::read_to_string(&copy) {
            Ok(text) if text == old => {
                let _left = fs::remove_file(&copy);
                refusal
            }
            _ => kept(refusal),
        })?;
        let new = fs::read_to_string(&copy)
            .map_err(|error| kept(Refusal::user(format!("cannot read {}: {error}", copy.display()))))?;
        if new == old {
            remove(&copy, output);
            output.note(format!("{} stays as it was", plain(&file.display().to_string())));
            return Ok(());
        }
        match app.execute(Command::Replace { file: file.clone(), old: old.clone(), new }).map_err(kept)? {
            Outcome::Invalid(problems) => {
                let mut wrong = Output::default();
                for problem in &problems {
                    wrong.note(render::problem(problem));
                }
                if again(&mut wrong) {
                    continue;
                }
                output.stderr.push_str(&wrong.stderr);
                return Err(kept(Refusal::user(format!("{} stays as it was", file.display()))));
            }
            Outcome::ChangedMeanwhile => {
                let changed = format!("{} was changed or removed by somebody else meanwhile", file.display());
                return Err(kept(Refusal::user(changed).hint("their change stands; bring yours over by hand")));
            }
            written => {
                remove(&copy, output);
                render::render(written, view, output);
                return Ok(());
            }
        }
    }
}

/// A copy that nobody but the person reads: forks never see `state/`.
fn copy_of(file: &Path, text: &str, app: &App) -> Result<PathBuf, Refusal> {
    let folder = app.home.edits();
    let made = || {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut copy = tempfile::Builder::new().prefix(&format!("{stem}-")).suffix(".md").tempfile_in(&folder)?;
        copy.write_all(text.as_bytes())?;
        Ok(copy.into_temp_path().keep()?)
    };
    made().map_err(|error: io::Error| Refusal::environment(format!("cannot write into {}: {error}", folder.display())))
}

/// The editor as a shell takes it: `code --wait` is a command and a flag.
fn run(editor: &str, copy: &Path) -> Result<(), Refusal> {
    let ended = Process::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(copy).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Refusal::user(format!("the editor `{editor}` failed ({status}); nothing was changed"))),
        Err(error) => Err(Refusal::environment(format!("cannot start the editor `{editor}`: {error}"))),
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

/// A copy that has done its work. One that stays harms nobody, but is said.
fn remove(copy: &Path, output: &mut Output) {
    if let Err(error) = fs::remove_file(copy) {
        output.note(format!("the copy {} could not be removed: {error}", copy.display()));
    }
}
