//! Definitions that only the journal's database has: puts them there, and finds them for other commands.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{App, ServiceCommand, check, jobs, runs};
use crate::definition::{
    self, Defaults, Definition, DefinitionError, DefinitionId, Kind, Loaded, Problem, Severity, WrittenFile,
    parse_pushed, pushed_id,
};
use crate::journal::{JournalReader, NewPushed, PushOutcome, PushWriter, Pushed};
use crate::refusal::Refusal;
use crate::schedule::{self, generation, next_due};

/// Number of definitions in one commit. Other hosts wait for each.
const BATCH_SIZE: usize = 1000;

/// The folders of a folder with definitions.
const FOLDERS: [(&str, Kind); 3] =
    [("routines", Kind::Routine), ("reminders", Kind::Reminder), ("webhooks", Kind::Webhook)];

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushResult {
    /// Number of new definitions.
    pub added: u64,
    /// Number of definitions with another text now.
    pub changed: u64,
    /// Number of definitions with the same text.
    pub unchanged: u64,
    /// Number of reminders that have had their run, and are not put into the database again.
    pub had_their_run: u64,
    /// Number of definitions that were refused.
    pub refused: u64,
    /// Why they were refused, and warnings about others.
    pub problems: Vec<Problem>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RemoveResult {
    /// The definitions that were removed.
    pub removed: Vec<DefinitionId>,
    /// Those that were not in the database.
    pub unknown: Vec<DefinitionId>,
}

/// A text to push.
struct Text {
    /// The file as the person named it.
    shown: PathBuf,
    kind: Kind,
    id: DefinitionId,
    text: Vec<u8>,
}

/// A line of standard input.
#[derive(Deserialize)]
struct Line {
    path: PathBuf,
    text: String,
}

/// Puts the definitions of these files and folders into the database; `-` stands for JSON lines on standard input.
pub(super) fn push(paths: &[PathBuf], dry_run: bool, app: &App) -> Result<PushResult, Refusal> {
    let mut pushing = Pushing::new(dry_run, app)?;
    for path in paths {
        if path.as_os_str() == "-" {
            pushing.lines(io::stdin().lock())?;
        } else if path.is_dir() {
            pushing.folder(path)?;
        } else {
            let shown = app.home.relative(path).to_owned();
            let kind = path.parent().and_then(Path::file_name).and_then(|folder| kind_of(folder.to_str()?));
            let kind = kind.ok_or_else(|| {
                Refusal::user(format!("{} is in no folder `routines` or `reminders`", path.display()))
                    .hint("the folder of a file says what the file is")
            })?;
            pushing.file(path, shown, kind)?;
        }
    }
    pushing.finish()
}

/// Removes definitions from the database.
pub(super) fn remove(ids: &[String], app: &App) -> Result<RemoveResult, Refusal> {
    app.require_home()?;
    let ids: Vec<DefinitionId> = ids.iter().map(|id| DefinitionId::new(id.as_str())).collect();
    let removed = PushWriter::open(&app.journal()?, app.clock.clone())?.remove(&ids)?;
    tell_service(app);
    let unknown = ids.into_iter().filter(|id| !removed.contains(id)).collect();
    Ok(RemoveResult { removed, unknown })
}

/// Has the running service look at the database. It may have ended; then it looks at its next start.
fn tell_service(app: &App) {
    let _told = app.service.ask(ServiceCommand::Pushed);
}

fn kind_of(folder: &str) -> Option<Kind> {
    FOLDERS.iter().find(|(name, _)| *name == folder).map(|(_, kind)| *kind)
}

/// What texts are checked against.
struct Checks<'a> {
    app: &'a App,
    defaults: Defaults,
    /// The ids and names of the files of this host.
    files: HashSet<String>,
}

/// A push in progress.
struct Pushing<'a> {
    app: &'a App,
    checks: Checks<'a>,
    writer: Option<PushWriter>,
    batch: Vec<Text>,
    result: PushResult,
}

impl<'a> Pushing<'a> {
    fn new(dry_run: bool, app: &'a App) -> Result<Self, Refusal> {
        let (loaded, defaults) = (app.load()?, app.defaults()?);
        let of_files = loaded.definitions.values().map(|known| (Some(&known.id), &known.file));
        let broken = loaded.problems.iter().map(|problem| (problem.id.as_ref(), &problem.file));
        let names = |(id, file): (Option<&DefinitionId>, &PathBuf)| {
            [id.map(ToString::to_string), jobs::stem(file).map(str::to_owned)].into_iter().flatten()
        };
        let files = of_files.chain(broken).flat_map(names).collect();
        let writer = match dry_run {
            true => None,
            false => Some(PushWriter::open(&app.journal()?, app.clock.clone())?),
        };
        let result = PushResult { dry_run, ..PushResult::default() };
        Ok(Self { app, checks: Checks { app, defaults, files }, writer, batch: Vec::new(), result })
    }

    fn folder(&mut self, path: &Path) -> Result<(), Refusal> {
        let own = path.file_name().and_then(|name| kind_of(name.to_str()?)).map(|kind| (path.to_owned(), kind));
        let inner = FOLDERS.iter().map(|(name, kind)| (path.join(name), *kind)).filter(|(folder, _)| folder.is_dir());
        let folders: Vec<(PathBuf, Kind)> = own.map_or_else(|| inner.collect(), |own| vec![own]);
        if folders.is_empty() {
            return Err(Refusal::user(format!("{} has no folder `routines` or `reminders`", path.display()))
                .hint("name a folder that has one, or that is one"));
        }
        for (folder, kind) in folders {
            let cannot = |error| cannot_read(&folder, &error);
            let mut names = Vec::new();
            for entry in fs::read_dir(&folder).map_err(cannot)? {
                names.push(entry.map_err(cannot)?.file_name());
            }
            names.sort();
            for name in names.into_iter().filter(|name| definition::is_definition_name(name)) {
                let file = folder.join(&name);
                if !file.is_dir() {
                    self.file(&file, file.clone(), kind)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, shown: PathBuf, kind: Kind) -> Result<(), Refusal> {
        let text = match path.is_file() {
            true => fs::read(path),
            false if path.exists() => Err(io::Error::other("it is not a regular file")),
            false => Err(io::ErrorKind::NotFound.into()),
        };
        let text = text.map_err(|error| cannot_read(path, &error))?;
        let id = DefinitionId::new(path.file_stem().unwrap_or_default().to_string_lossy());
        self.text(Text { shown, kind, id, text })
    }

    fn lines(&mut self, input: impl io::BufRead) -> Result<(), Refusal> {
        for (number, line) in (1u32..).zip(input.lines()) {
            let line = line.map_err(|error| cannot_read(Path::new("standard input"), &error))?;
            if line.trim().is_empty() {
                continue;
            }
            let read = serde_json::from_str::<Line>(&line).map_err(|error| error.to_string()).and_then(|line| {
                let folder = line.path.parent().and_then(Path::to_str).and_then(kind_of);
                let kind = folder.ok_or("`path` begins with neither `routines/` nor `reminders/`")?;
                let id = DefinitionId::new(line.path.file_stem().unwrap_or_default().to_string_lossy());
                Ok(Text { shown: line.path, kind, id, text: line.text.into_bytes() })
            });
            match read {
                Ok(text) => self.text(text)?,
                Err(why) => {
                    let hint = r#"each line is an object: {"path": "routines/tea.md", "text": "…"}"#.to_owned();
                    let problem = Problem::of_file(Path::new("standard input"), Severity::Error, why, Some(hint));
                    self.refuse([Problem { line: number, ..problem }]);
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: Text) -> Result<(), Refusal> {
        self.batch.push(text);
        if self.batch.len() >= BATCH_SIZE { self.put() } else { Ok(()) }
    }

    /// Checks and writes what was read.
    fn put(&mut self) -> Result<(), Refusal> {
        let batch = std::mem::take(&mut self.batch);
        let checks = &self.checks;
        let checked: Vec<_> = batch.into_par_iter().map(|text| (text.shown.clone(), checks.check(text))).collect();
        let (mut new, mut shown, mut definitions) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (file, checked) in checked {
            match checked {
                Ok(Checked { new: one, definition, warnings }) => {
                    self.result.problems.extend(warnings);
                    definitions.insert(one.id.clone(), definition);
                    new.push(one);
                    shown.push(file);
                }
                Err(problems) => self.refuse(problems),
            }
        }
        self.warn(&definitions, &new, &shown);
        let outcomes = match &self.writer {
            Some(writer) => writer.push(&new)?,
            None => runs::open(self.app)?.would_push(&new, self.app.now())?,
        };
        for ((one, file), outcome) in new.iter().zip(shown).zip(outcomes) {
            self.count(one, &file, outcome);
        }
        Ok(())
    }

    /// Warns of channels, servers and limits that the settings of this host lack.
    fn warn(&mut self, definitions: &BTreeMap<DefinitionId, Arc<Definition>>, new: &[NewPushed], shown: &[PathBuf]) {
        let places: BTreeMap<&DefinitionId, usize> = new.iter().enumerate().map(|(at, one)| (&one.id, at)).collect();
        for problem in check::by_settings(definitions, self.app) {
            let Some(place) = problem.id.as_ref().and_then(|id| places.get(id)) else { continue };
            let words = problem.field.as_ref().map(|field| format!("{field}:"));
            let problem = Problem { file: shown[*place].clone(), ..problem };
            self.result.problems.push(match words {
                Some(words) => problem.at_words(&new[*place].text, &words),
                None => problem,
            });
        }
    }

    fn count(&mut self, one: &NewPushed, file: &Path, outcome: PushOutcome) {
        match outcome {
            PushOutcome::Added => self.result.added += 1,
            PushOutcome::Changed => self.result.changed += 1,
            PushOutcome::Unchanged => self.result.unchanged += 1,
            PushOutcome::HadItsRun => self.result.had_their_run += 1,
            PushOutcome::OfOtherKind(_) | PushOutcome::DueWhileDisabled => {
                if let Some((message, hint)) = refusal_of(&one.id, &outcome) {
                    let problem = Problem::of_file(file, Severity::Error, message, Some(hint.to_owned()));
                    self.refuse([Problem { id: Some(one.id.clone()), ..problem }]);
                }
            }
        }
    }

    /// Counts a definition that is refused for these problems.
    fn refuse(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.result.refused += 1;
        self.result.problems.extend(problems);
    }

    fn finish(mut self) -> Result<PushResult, Refusal> {
        self.put()?;
        if !self.result.dry_run && self.result.added + self.result.changed > 0 {
            tell_service(self.app);
        }
        Ok(self.result)
    }
}

impl Checks<'_> {
    /// Checks a text as `check` does. Returns its problems if it is refused.
    fn check(&self, text: Text) -> Result<Checked, Vec<Problem>> {
        let refuse = |message: String, hint: &str| {
            let problem = Problem::of_file(&text.shown, Severity::Error, message, Some(hint.to_owned()));
            Err(vec![Problem { id: Some(text.id.clone()), ..problem }])
        };
        if self.files.contains(text.id.as_str()) {
            let message = format!("`{}` is a file of this host, which comes first", text.id);
            return refuse(message, "give it another name, or remove the file");
        }
        if DefinitionId::is_reserved(text.id.as_str()) {
            return refuse(format!("the bot itself gives ids like `{}`", text.id), "give the file another name");
        }
        let parsed = parse_pushed(&self.app.home, text.kind, &text.id, &text.text, None, &self.defaults);
        let warnings: Vec<Problem> =
            parsed.problems.into_iter().map(|problem| Problem { file: text.shown.clone(), ..problem }).collect();
        let Some(definition) = parsed.definition.map(Arc::new) else { return Err(warnings) };
        let whole = String::from_utf8_lossy(&text.text).into_owned();
        let new = new_pushed(&definition, whole, self.defaults.zone.name(), self.app);
        Ok(Checked { new, definition, warnings })
    }
}

/// A valid text.
struct Checked {
    new: NewPushed,
    definition: Arc<Definition>,
    warnings: Vec<Problem>,
}

fn cannot_read(path: &Path, error: &io::Error) -> Refusal {
    Refusal::user(format!("cannot read {}: {error}", path.display()))
}

fn new_pushed(definition: &Arc<Definition>, text: String, zone: &str, app: &App) -> NewPushed {
    let loaded = schedule::Loaded { definition: Arc::clone(definition), text: text.as_str().into() };
    NewPushed {
        id: definition.id.clone(),
        kind: definition.kind(),
        text,
        zone: zone.to_owned(),
        next_due: next_due(definition, app.now()),
        generation: generation(&loaded),
    }
}

/// Returns why the database refuses a definition, and what to do.
fn refusal_of(id: &DefinitionId, outcome: &PushOutcome) -> Option<(String, &'static str)> {
    match outcome {
        PushOutcome::OfOtherKind(kind) => Some((
            format!("`{id}` is a {kind} in the database"),
            "give it another name, or remove that one: `ollim-bot push --remove ID`",
        )),
        PushOutcome::DueWhileDisabled => {
            Some((format!("the reminder `{id}` fell due while it was disabled"), "give it a new time"))
        }
        PushOutcome::HadItsRun => Some((format!("the reminder `{id}` has had its run"), "give it a new time")),
        PushOutcome::Added | PushOutcome::Changed | PushOutcome::Unchanged => None,
    }
}

/// Definitions of the database, for other commands.
impl App {
    /// Loads all definitions with files, and those of the database that have one of these names.
    pub(super) fn load_with<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Loaded, Refusal> {
        Ok(self.with_named(self.load()?, names))
    }

    /// Adds the definitions of the database that have one of these names. A file comes first.
    pub(super) fn with_named<'a>(&self, mut loaded: Loaded, names: impl IntoIterator<Item = &'a str>) -> Loaded {
        let id_of = |name: &str| pushed_id(Path::new(name)).unwrap_or_else(|| DefinitionId::new(name));
        let ids: Vec<DefinitionId> =
            names.into_iter().filter(|name| jobs::find_exact(name, &loaded).is_none()).map(id_of).collect();
        // A journal that cannot be read has no definitions. Commands that need it say why.
        let rows = match ids.is_empty() {
            true => Vec::new(),
            false => runs::open(self).and_then(|journal| Ok(journal.pushed(&ids)?)).unwrap_or_default(),
        };
        let warnings = self.add_pushed(&mut loaded, rows);
        loaded.problems.extend(warnings);
        loaded
    }

    /// Adds definitions of the database. One that is not valid on this host is a problem. Returns the warnings of the others.
    fn add_pushed(&self, loaded: &mut Loaded, rows: Vec<Pushed>) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let Ok(defaults) = self.defaults() else { return warnings };
        for row in rows.into_iter() {
            if loaded.definitions.contains_key(&row.id) {
                continue;
            }
            let parsed = parsed(&row, &defaults, self);
            match parsed.definition {
                Some(definition) => {
                    loaded.definitions.insert(row.id, Arc::new(definition));
                    warnings.extend(parsed.problems);
                }
                None => loaded.problems.extend(parsed.problems),
            }
        }
        warnings
    }

    /// Returns the text of a definition; `None` if it is gone. `file`: its path, which may stand for the database.
    pub(super) fn text_of(&self, file: &Path) -> Result<Option<String>, DefinitionError> {
        match pushed_id(file) {
            None => definition::read_text(&self.home, file),
            Some(id) => Ok(self.row_of(&id)?.map(|row| row.text)),
        }
    }

    fn row_of(&self, id: &DefinitionId) -> Result<Option<Pushed>, DefinitionError> {
        let read = || Ok::<_, Refusal>(runs::open(self)?.pushed(std::slice::from_ref(id))?.pop());
        read().map_err(|refusal| DefinitionError::Refused { why: refusal.to_string() })
    }

    /// Replaces the text of a definition if it is still `old`, like [`definition::replace_text`].
    pub(super) fn replace_text_of(
        &self,
        (file, old, new): (&Path, &str, &str),
        defaults: &Defaults,
        agree: impl FnOnce(&Definition) -> Result<(), DefinitionError>,
    ) -> Result<WrittenFile, DefinitionError> {
        let Some(id) = pushed_id(file) else {
            return definition::replace_text(&self.home, file, old, new, defaults, agree);
        };
        let gone = || DefinitionError::NotFound { file: file.to_owned() };
        let row = self.row_of(&id)?.ok_or_else(gone)?;
        if row.text != old {
            return Err(DefinitionError::Changed { file: file.to_owned() });
        }
        let row = Pushed { text: new.to_owned(), ..row };
        let parsed = parsed(&row, defaults, self);
        let Some(definition) = parsed.definition else {
            let problems = parsed.problems.into_iter().filter(Problem::is_error).collect();
            return Err(DefinitionError::Invalid { problems });
        };
        agree(&definition)?;
        let definition = Arc::new(definition);
        let put = || {
            let writer = PushWriter::open(&self.journal()?, self.clock.clone())?;
            Ok::<_, Refusal>(writer.push(&[new_pushed(&definition, row.text, &row.zone, self)])?)
        };
        let outcomes = put().map_err(|refusal| DefinitionError::Refused { why: refusal.to_string() })?;
        if let Some((why, hint)) = outcomes.first().and_then(|outcome| refusal_of(&id, outcome)) {
            return Err(DefinitionError::Refused { why: format!("{why}; {hint}") });
        }
        tell_service(self);
        Ok(WrittenFile { definition: Arc::unwrap_or_clone(definition), warnings: parsed.problems })
    }

    /// Sets fields of a definition, like [`definition::set_fields`].
    pub(super) fn set_fields_of(
        &self,
        file: &Path,
        fields: &[(&'static str, Option<definition::FieldValue>)],
    ) -> Result<WrittenFile, DefinitionError> {
        let defaults = self.defaults().map_err(|refusal| DefinitionError::Refused { why: refusal.to_string() })?;
        if pushed_id(file).is_none() {
            return definition::set_fields(&self.home, file, fields, &defaults);
        }
        definition::change_text(|| {
            let old = self.text_of(file)?.ok_or_else(|| DefinitionError::NotFound { file: file.to_owned() })?;
            let new = definition::changed_text(file, &old, fields, None)?;
            self.replace_text_of((file, &old, &new), &defaults, |_| Ok(()))
        })
    }

    /// Removes a definition. Returns `false` if it did not exist.
    pub(super) fn remove_definition(&self, file: &Path) -> Result<bool, Refusal> {
        match pushed_id(file) {
            None => Ok(definition::remove(&self.home, file)?),
            Some(id) => Ok(!remove(&[id.to_string()], self)?.removed.is_empty()),
        }
    }
}

fn parsed(row: &Pushed, defaults: &Defaults, app: &App) -> definition::Parsed {
    parse_pushed(&app.home, row.kind, &row.id, row.text.as_bytes(), Some(&row.zone), defaults)
}

/// Adds the `count` definitions of the database that fall due next. Returns how many are left out.
pub(super) fn add_next(
    loaded: &mut Loaded,
    of: Option<Kind>,
    count: usize,
    journal: &JournalReader,
    app: &App,
) -> Result<u64, Refusal> {
    let counts = journal.pushed_counts(of)?;
    if counts.coming == 0 {
        return Ok(0);
    }
    let rows = journal.next_pushed(of, count)?;
    let left_out = counts.coming.saturating_sub(rows.len() as u64);
    // `push` has shown the warnings.
    let _shown = app.add_pushed(loaded, rows);
    Ok(left_out)
}
