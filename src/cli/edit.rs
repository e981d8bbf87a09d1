//! The person's editor. `edit` without flags edits a copy, which replaces the file if it is valid. `add` without a text edits a template.
//!
//! No edit of a file is lost: if the copy cannot replace the file, the copy is kept and its path is shown.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use super::args::Color;
use super::output::{Output, STRONG, paint};
use super::render::{self, View};
use crate::app::{App, Caller, Command, Outcome, When};
use crate::channel::terminal::plain;
use crate::definition::{Draft, Kind, Problem};
use crate::refusal::Refusal;

/// Edits a definition, even one whose file has errors.
///
/// # Errors
/// Fails if there is no such definition or no editor, if the new text is invalid, or if the file changed meanwhile.
pub(super) fn edit(kind: Option<Kind>, id: &str, app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    let typed = kind.map_or_else(|| format!("edit {id}"), |kind| format!("{kind} edit {id}"));
    if let Caller::Run(_) = app.caller {
        let kind = kind.map_or_else(|| "reminder".to_owned(), |kind| kind.to_string());
        return Err(Refusal::denied("nobody can use an editor inside a job")
            .hint(format!("name what to set, as in `ollim-bot {kind} edit {id} -m 'Look again'`")));
    }
    let Outcome::File { file, text: old } = app.execute(Command::FileOf { kind, id: id.to_owned() })? else {
        return Ok(());
    };
    let editor = editor(&typed, app)
        .map_err(|none| none.hint(format!("or write {} with any program", app.home.root().join(&file).display())))?;
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
        let new = read(&copy).map_err(kept)?;
        if new == old {
            remove(&copy, output);
            output.note(format!("{} stays as it was", plain(&file.display().to_string())));
            return Ok(());
        }
        match app.execute(Command::Replace { file: file.clone(), old: old.clone(), new }).map_err(kept)? {
            Outcome::Invalid(problems) => {
                if !asks_for_another_edit(&problems, output) {
                    return Err(kept(Refusal::user(format!("{} stays as it was", file.display()))));
                }
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

/// Creates a definition from an edited template. An abandoned text is deleted.
///
/// # Errors
/// Fails without a terminal or an editor, or if the person gives up.
pub(super) fn new(
    draft: Draft,
    when: Option<When>,
    app: &App,
    view: &View,
    output: &mut Output,
) -> Result<(), Refusal> {
    let kind = draft.kind;
    let no_text = || Refusal::user("no text was given").hint("say what is to be done: `-m 'Check the oven'`");
    if matches!(app.caller, Caller::Run(_)) || !io::stdin().is_terminal() {
        return Err(no_text());
    }
    let Outcome::File { file, text: template } = app.execute(Command::Template { draft: Box::new(draft), when })?
    else {
        return Ok(());
    };
    let editor = editor(&format!("{kind} add"), app)
        .map_err(|none| none.hint("or give the text: `-m 'Check the oven'`, `--file FILE`"))?;
    let copy = copy_of(&file, &template, app)?;
    let made = write_new(kind, editor, &copy, &template, app, output);
    remove(&copy, output);
    render::render(made?, view, output);
    Ok(())
}

/// Repeats the edit until the text is valid or the person gives up.
fn write_new(
    kind: Kind,
    editor: &str,
    copy: &Path,
    template: &str,
    app: &App,
    output: &mut Output,
) -> Result<Outcome, Refusal> {
    loop {
        run(editor, copy)?;
        let text = read(copy)?;
        if text == template || !has_text(&text) {
            return Err(Refusal::user("nothing was made: no text was written"));
        }
        match app.execute(Command::AddText { kind, text, template: template.to_owned() })? {
            Outcome::Invalid(problems) if asks_for_another_edit(&problems, output) => {}
            Outcome::Invalid(_) => return Err(Refusal::user("nothing was made")),
            made => return Ok(made),
        }
    }
}

/// Whether there is text below the frontmatter.
fn has_text(text: &str) -> bool {
    let mut fences = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line.trim_end() == "---"))
    });
    match fences.by_ref().filter(|(_, is_fence)| *is_fence).nth(1) {
        Some((end, _)) => !text[end..].trim().is_empty(),
        None => !text.trim().is_empty(),
    }
}

/// Returns the person's editor. `typed` is the command that needs it.
fn editor<'a>(typed: &str, app: &'a App) -> Result<&'a str, Refusal> {
    ["VISUAL", "EDITOR"].iter().find_map(|name| app.env.text(name)).ok_or_else(|| {
        Refusal::user("there is no editor: neither VISUAL nor EDITOR is set")
            .hint(format!("for example `EDITOR=nano ollim-bot {typed}`"))
    })
}

fn read(copy: &Path) -> Result<String, Refusal> {
    fs::read_to_string(copy).map_err(|error| Refusal::user(format!("cannot read {}: {error}", copy.display())))
}

/// Creates a copy that only the person can read: forks never see `state/`.
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

/// Runs the editor through a shell, since `code --wait` is a command with a flag.
fn run(editor: &str, copy: &Path) -> Result<(), Refusal> {
    let ended = Process::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(copy).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Refusal::user(format!("the editor `{editor}` failed ({status}); nothing was changed"))),
        Err(error) => Err(Refusal::environment(format!("cannot start the editor `{editor}`: {error}"))),
    }
}

/// Shows the problems, and asks on a terminal whether to edit again.
fn asks_for_another_edit(problems: &[Problem], output: &mut Output) -> bool {
    let mut wrong = Output::default();
    for problem in problems {
        wrong.note(render::problem(problem));
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        output.stderr.push_str(&wrong.stderr);
        return false;
    }
    wrong.note(paint(STRONG, "Edit it again? [Y/n]"));
    let shown = wrong.print(Color::Auto);
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    shown.is_ok() && read.is_ok_and(|count| count > 0) && !answer.trim().to_lowercase().starts_with('n')
}

/// Removes a copy that is no longer needed. A failure is harmless, so it is only reported.
fn remove(copy: &Path, output: &mut Output) {
    if let Err(error) = fs::remove_file(copy) {
        output.note(format!("the copy {} could not be removed: {error}", copy.display()));
    }
}
