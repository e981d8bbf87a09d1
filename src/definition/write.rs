//! Creates, changes, moves and removes definition files. Each write is atomic and durable; a move is a copy and a removal.
//!
//! Invariants: a new file's name is a slug or a checked name; a file is only replaced if its text was read
//! just before; a text that is not a valid definition is not written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, Utc};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::durable::RemovedUnchanged;
use super::edit;
use super::frontmatter;
use super::{
    Defaults, Definition, DefinitionError, DefinitionId, Draft, FieldValue, Kind, Parsed, Problem, durable, names, read,
};
use crate::home::Home;

/// A definition just written, and its warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenFile {
    /// The definition as read from its file.
    pub definition: Definition,
    /// Warnings only.
    pub warnings: Vec<Problem>,
}

/// A reminder in `reminders/failed/`.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedReminder {
    /// Its file, relative to the data folder.
    pub file: PathBuf,
    /// The reason of its last failed attempt, if the file holds one.
    pub reason: Option<String>,
    /// The definition and problems of the file.
    pub parsed: Parsed,
}

impl FailedReminder {
    /// Returns the file's name without `.md`.
    #[must_use]
    pub fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().display().to_string()
    }
}

/// Maximum number of attempts of a change while others change the same file.
const TRIES: u32 = 20;

const NO_NAME: &str = "is no name: 64 letters, digits, `-` and `_` at most, a letter or digit first";
const TAKEN: &str = "is taken, by a job that is there or by one that has run";

/// Writes a draft into a new file, whose name is its id: the id of the draft, else a slug of the description, body or
/// command, followed by `-2` and so on if that is taken. `is_known` tells whether an id was used before, by a file that
/// no longer exists.
///
/// # Errors
/// [`DefinitionError::Invalid`] if the draft breaks a rule for files, [`DefinitionError::Name`] if its id is invalid or
/// taken, [`DefinitionError::NoHome`], [`DefinitionError::Io`]. Nothing is written in the first two cases.
pub fn create(
    home: &Home,
    draft: &Draft,
    is_known: impl Fn(&DefinitionId) -> bool,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let text = draft.render(None);
    valid(read::parsed(home, draft.kind, &unnamed(draft.kind), text.as_bytes(), defaults))?;
    let used = names::in_use(home, None);
    let is_free = |name: &str| !used.contains(name) && !is_known(&DefinitionId::new(name));
    let asked = draft.id.as_ref().map(DefinitionId::as_str);
    if let Some(name) = asked {
        require_name(name, is_free)?;
    }
    let stem = asked.map_or_else(|| slug_of(draft), str::to_owned);
    let numbers = if asked.is_some() { 1 } else { usize::MAX };
    put_free(home, draft.kind, names::numbered(&stem).take(numbers), is_free, &text, defaults)
}

/// Returns what [`create`] would write now for a draft without an id, under the first free name.
///
/// # Errors
/// As [`create`].
pub fn would_create(
    home: &Home,
    draft: &Draft,
    is_known: impl Fn(&DefinitionId) -> bool,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let used = names::in_use(home, None);
    let is_free = |name: &String| !used.contains(name) && !is_known(&DefinitionId::new(name.as_str()));
    let name = names::numbered(&slug_of(draft)).find(is_free).unwrap_or_default();
    let file = read::folder_of(draft.kind).join(format!("{name}.md"));
    valid(read::parsed(home, draft.kind, &file, draft.render(None).as_bytes(), defaults))
}

/// Writes a text edited from a [`Draft::template`] into a new file, without the template's comments. The name is chosen
/// as in [`create`]; an id in the text is checked the same way.
///
/// # Errors
/// As [`create`]. Positions refer to the text.
pub fn create_from(
    home: &Home,
    kind: Kind,
    text: &str,
    template: &str,
    is_known: impl Fn(&DefinitionId) -> bool,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let read = valid(read::parsed(home, kind, &unnamed(kind), text.as_bytes(), defaults))?.definition;
    let used = names::in_use(home, None);
    let is_free = |name: &str| !used.contains(name) && !is_known(&DefinitionId::new(name));
    let own = names::ids_in(text).any(|(key, id)| key == "id" && id == read.id.as_str());
    if own && !is_free(read.id.as_str()) {
        return Err(DefinitionError::Name { name: read.id.to_string(), what: TAKEN });
    }
    let is_comment = |line: &str| line.starts_with("# ") && template.lines().any(|comment| comment == line.trim_end());
    let kept: String = text.split_inclusive('\n').filter(|line| !is_comment(line)).collect();
    put_free(home, kind, names::numbered(&slug_of(&Draft::from(&read))), is_free, &kept, defaults)
}

/// Writes a valid text into a new file, under the first free name.
fn put_free(
    home: &Home,
    kind: Kind,
    names: impl Iterator<Item = String>,
    is_free: impl Fn(&str) -> bool,
    text: &str,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let folder = read::folder_of(kind);
    let absolute = make_folder(home, folder)?;
    let mut taken = String::new();
    for name in names {
        let file = folder.join(format!("{name}.md"));
        if is_free(&name) {
            match durable::write_new(&absolute.join(format!("{name}.md")), text.as_bytes()) {
                Ok(()) => return valid(read::parsed(home, kind, &file, text.as_bytes(), defaults)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(DefinitionError::io("write", &home.root().join(&file))(error)),
            }
        }
        taken = name;
    }
    Err(DefinitionError::Name { name: taken, what: TAKEN })
}

/// Returns the path that stands in problems for a file without a name.
fn unnamed(kind: Kind) -> PathBuf {
    read::folder_of(kind).join("new.md")
}

/// Checks that a definition's file (relative path) may take this id: it is a valid name, and no other definition has or had it.
///
/// # Errors
/// [`DefinitionError::Name`].
pub fn require_free(
    home: &Home,
    file: &Path,
    id: &DefinitionId,
    is_known: impl Fn(&DefinitionId) -> bool,
) -> Result<(), DefinitionError> {
    let used = names::in_use(home, Some(file));
    require_name(id.as_str(), |name| !used.contains(name) && !is_known(id))
}

fn require_name(name: &str, is_free: impl Fn(&str) -> bool) -> Result<(), DefinitionError> {
    let refuse = |what| Err(DefinitionError::Name { name: name.to_owned(), what });
    if !names::is_name(name) {
        return refuse(NO_NAME);
    }
    if is_free(name) { Ok(()) } else { refuse(TAKEN) }
}

/// Writes a chain's next follow-up into a new file. Its id of eight hex digits carries no meaning: the id of the first
/// reminder identifies the chain.
///
/// # Errors
/// As [`create_text`]; [`DefinitionError::Random`].
pub fn create_link(home: &Home, draft: &Draft, defaults: &Defaults) -> Result<WrittenFile, DefinitionError> {
    let id = match &draft.id {
        Some(id) => id.clone(),
        None => new_id()?,
    };
    // The words of a job that another job made name no file, since a file's name stands for its job.
    let name = if draft.created_by.is_some() { id.to_string() } else { slug_of(draft) };
    create_text(home, draft.kind, &name, &draft.render(Some(&id)), defaults)
}

/// Writes a whole text into a new file named by a slug of `name`: a sample, or a fired reminder that is restored.
///
/// # Errors
/// As [`create`].
pub fn create_text(
    home: &Home,
    kind: Kind,
    name: &str,
    text: &str,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let folder = read::folder_of(kind);
    let mut stem = names::slug(name);
    if stem.is_empty() {
        stem = kind.to_string();
    }
    // Checked before anything is written. The file's name matters only for a text without an id.
    let first = folder.join(format!("{stem}.md"));
    valid(read::parsed(home, kind, &first, text.as_bytes(), defaults))?;
    let file = put_new(home, folder, &stem, text)?;
    valid(read::parsed(home, kind, &file, text.as_bytes(), defaults))
}

/// Sets fields of a definition's file (relative path), or removes the lines of those with `None`. Every other letter
/// stays. The file is only written if it remains valid.
///
/// # Errors
/// [`DefinitionError::Invalid`], [`DefinitionError::NotFound`], [`DefinitionError::Edit`] if the file's layout does not
/// allow changing a single field, [`DefinitionError::Changed`] if another writer changes the file at the same time,
/// [`DefinitionError::Io`].
pub fn set_fields(
    home: &Home,
    file: &Path,
    changes: &[(&'static str, Option<FieldValue>)],
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    kind_of(home, file)?;
    change_text(|| {
        let old = text_of(home, file)?;
        let new = changed(file, &old, changes)?;
        replace_text(home, file, &old, &new, defaults, |_| Ok(()))
    })
}

/// Makes a change that reads the file and writes it. Begins again if another writer changes the file in between.
///
/// # Errors
/// The last error of `change`.
pub fn change_text<T>(mut change: impl FnMut() -> Result<T, DefinitionError>) -> Result<T, DefinitionError> {
    let mut tries = 1;
    loop {
        match change() {
            Err(DefinitionError::Changed { .. }) if tries < TRIES => tries += 1,
            changed => return changed,
        }
    }
}

/// Replaces the whole text of a definition's file (relative path) if it is still `old`. `agree` makes the final
/// decision about the new definition.
///
/// # Errors
/// [`DefinitionError::Invalid`], [`DefinitionError::NotFound`], [`DefinitionError::Changed`] if the file has another
/// text by now, [`DefinitionError::Io`], and the errors of `agree`. Nothing is written then.
pub fn replace_text(
    home: &Home,
    file: &Path,
    old: &str,
    new: &str,
    defaults: &Defaults,
    agree: impl FnOnce(&Definition) -> Result<(), DefinitionError>,
) -> Result<WrittenFile, DefinitionError> {
    let kind = kind_of(home, file)?;
    let written = valid(read::parsed(home, kind, file, new.as_bytes(), defaults))?;
    agree(&written.definition)?;
    if new != old {
        if text_of(home, file)? != old {
            return Err(DefinitionError::Changed { file: file.to_owned() });
        }
        // A symlink within the data folder stays: its target is written.
        let path = home.root().join(file);
        let path = fs::canonicalize(&path).map_err(DefinitionError::io("write", &path))?;
        if !durable::replace_unchanged(&path, old.as_bytes(), new.as_bytes())
            .map_err(DefinitionError::io("write", &path))?
        {
            return Err(DefinitionError::Changed { file: file.to_owned() });
        }
    }
    Ok(written)
}

/// Sets one field, like [`set_fields`].
///
/// # Errors
/// As [`set_fields`].
pub fn set_field(
    home: &Home,
    file: &Path,
    field: &'static str,
    value: Option<FieldValue>,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    set_fields(home, file, &[(field, value)], defaults)
}

/// Removes a definition's file (relative path). Returns `false` if it did not exist.
///
/// # Errors
/// [`DefinitionError::NotADefinition`], [`DefinitionError::Io`].
pub fn remove(home: &Home, file: &Path) -> Result<bool, DefinitionError> {
    kind_of(home, file)?;
    let path = home.root().join(file);
    durable::remove(&path).map_err(DefinitionError::io("remove", &path))
}

/// Returns the text of a definition's file (relative path), by the same rules as for reading a definition. Returns
/// `None` if the file does not exist.
///
/// # Errors
/// [`DefinitionError::NotADefinition`], [`DefinitionError::Io`].
pub fn read_text(home: &Home, file: &Path) -> Result<Option<String>, DefinitionError> {
    kind_of(home, file)?;
    read::text(home, file)
}

/// Whether the data folder has no such file (relative path), valid or not. While the whole folder or the folder of
/// definitions is moved away, nobody knows: that is an error.
///
/// # Errors
/// [`DefinitionError::Io`] if one of the folders is not there, or cannot be searched.
pub fn is_gone(home: &Home, file: &Path) -> Result<bool, DefinitionError> {
    let root = home.root();
    let failed = |error: Errno| DefinitionError::io("find", &root.join(file))(error.into());
    // The folder is held open: a path could lead to it in one call and nowhere in the next.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags, Mode::empty()).map_err(failed)?;
    match rustix::fs::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(false),
        Err(Errno::NOENT) if !super::problem::kind_of(file).is_some_and(|kind| read::is_missing(home, kind)) => {
            Ok(true)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Removes a definition's file (relative path) if it still contains `text`. Returns `false` and keeps the file if a
/// person has changed it: it may name another time. A file that is gone counts as removed, as [`is_gone`] says.
///
/// # Errors
/// As [`read_text`] and [`is_gone`].
pub fn remove_unchanged(home: &Home, file: &Path, text: &str) -> Result<bool, DefinitionError> {
    kind_of(home, file)?;
    let path = home.root().join(file);
    match durable::remove_unchanged(&path, text.as_bytes()).map_err(DefinitionError::io("remove", &path))? {
        RemovedUnchanged::Removed => Ok(true),
        RemovedUnchanged::Changed => Ok(false),
        RemovedUnchanged::Missing if is_gone(home, file)? => Ok(true),
        // The data folder has come back in between, or another file is there.
        RemovedUnchanged::Missing => Err(DefinitionError::Changed { file: file.to_owned() }),
    }
}

/// Moves a reminder's file (relative path) to `reminders/failed/`, and adds the reason to its frontmatter if the layout
/// allows that. Repeating it after a crash in between makes no second copy. Returns the new relative path, or `None` if
/// the file does not exist. Nor is one moved that is of another reminder by now: `is_of` judges the very text that is moved.
///
/// # Errors
/// As [`remove_unchanged`], and [`DefinitionError::Changed`] if somebody changes the file at the same time, which then stays.
pub fn move_to_failed(
    home: &Home,
    file: &Path,
    reason: &str,
    defaults: &Defaults,
    is_of: impl FnOnce(&Definition) -> bool,
) -> Result<Option<PathBuf>, DefinitionError> {
    let kind = kind_of(home, file)?;
    let old = match text_of(home, file) {
        Ok(old) => old,
        Err(DefinitionError::NotFound { .. }) if is_gone(home, file)? => return Ok(None),
        Err(error) => return Err(error),
    };
    let read = read::parsed(home, kind, file, old.as_bytes(), defaults).definition;
    if read.is_some_and(|read| !is_of(&read)) {
        return Ok(None);
    }
    let moved = keep_as_failed(home, &file.file_stem().unwrap_or_default().to_string_lossy(), &old, reason)?;
    fail_point!(FailedCopied);
    if !remove_unchanged(home, file, &old)? {
        // It may have a new time now.
        remove(home, &moved)?;
        return Err(DefinitionError::Changed { file: file.to_owned() });
    }
    Ok(Some(moved))
}

/// Writes a reminder's text into `reminders/failed/`, with the reason in its frontmatter if the layout allows that. Repeating it makes
/// no second copy. Returns the relative path.
///
/// # Errors
/// [`DefinitionError::Io`] if the file cannot be written.
pub fn keep_as_failed(home: &Home, stem: &str, text: &str, reason: &str) -> Result<PathBuf, DefinitionError> {
    let reason: String = reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(500).collect();
    let new = edit::set(text, "failed_reason", Some(&FieldValue::Text(reason))).unwrap_or_else(|| text.to_owned());
    let new = keeping_id(new, stem, &home.failed_reminders());
    put_new(home, &failed_folder(), stem, &new)
}

/// Removes the half-written files that killed processes left in the folders of definitions.
///
/// # Errors
/// [`DefinitionError::Io`] if a folder cannot be read or a file cannot be removed.
pub fn sweep(home: &Home, now: DateTime<Utc>) -> Result<(), DefinitionError> {
    for (kind, folder) in [
        (Kind::Routine, home.routines()),
        (Kind::Reminder, home.reminders()),
        (Kind::Reminder, home.failed_reminders()),
        (Kind::Webhook, home.webhooks()),
    ] {
        if read::is_inside(home, kind) {
            let swept = durable::sweep(&folder, now.into()).map_err(DefinitionError::io("clean up", &folder))?;
            if swept > 0 {
                tracing::info!(swept, "half-written files in {} were removed", folder.display());
            }
        }
    }
    Ok(())
}

/// Returns the reminders in `reminders/failed/`, by file.
///
/// # Errors
/// [`DefinitionError::Io`] if the folder exists and cannot be read.
pub fn failed_reminders(home: &Home, defaults: &Defaults) -> Result<Vec<FailedReminder>, DefinitionError> {
    let folder = home.failed_reminders();
    let mut files: Vec<PathBuf> = match fs::read_dir(&folder) {
        Ok(entries) => entries.filter_map(|entry| Some(failed_folder().join(entry.ok()?.file_name()))).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DefinitionError::io("read", &folder)(error)),
    };
    files.retain(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(read::is_definition));
    files.sort();
    let one = |file: PathBuf| {
        let parsed = read::read(home, &file, defaults)?;
        let reason = text_of(home, &file).ok().and_then(|text| reason_of(&text));
        Some(FailedReminder { file, reason, parsed })
    };
    Ok(files.into_iter().filter_map(one).collect())
}

/// Returns the names of the files in `reminders/failed/`, without `.md`. A folder that cannot be read has none.
#[must_use]
pub fn failed_names(home: &Home) -> Vec<DefinitionId> {
    let entries = fs::read_dir(home.failed_reminders()).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(DefinitionId::new(entry.file_name().to_str()?.strip_suffix(".md")?))).collect()
}

/// Moves a failed reminder back into `reminders/`, due at `run_at`. If several have this id, moves the one that failed
/// last.
///
/// # Errors
/// [`DefinitionError::NotFound`] if no failed reminder has this id; otherwise as [`set_fields`].
pub fn restore_failed(
    home: &Home,
    id: &DefinitionId,
    run_at: DateTime<FixedOffset>,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let failed = failed_reminders(home, defaults)?;
    let named = |failed: &FailedReminder| match &failed.parsed.definition {
        Some(definition) => definition.id == *id,
        None => failed.parsed.problems.iter().any(|problem| problem.id.as_ref() == Some(id)),
    };
    let moved = |failed: &FailedReminder| fs::metadata(home.root().join(&failed.file)).and_then(|m| m.modified()).ok();
    let Some(failed) = failed.into_iter().filter(named).max_by_key(moved) else {
        return Err(DefinitionError::NotFound { file: failed_folder().join(format!("{id}.md")) });
    };
    let old = text_of(home, &failed.file)?;
    let changes = [("run_at", Some(FieldValue::Text(run_at.to_rfc3339()))), ("failed_reason", None)];
    let new = changed(&failed.file, &old, &changes)?;
    let stem = failed.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let new = keeping_id(new, &stem, &home.reminders());
    let written = create_text(home, Kind::Reminder, &stem, &new, defaults)?;
    let path = home.root().join(&failed.file);
    durable::remove(&path).map_err(DefinitionError::io("remove", &path))?;
    Ok(written)
}

/// Writes a fired reminder into `reminders/` again, with its text as it fired and its old id, due at `run_at`.
///
/// # Errors
/// As [`create_text`]; [`DefinitionError::Edit`] if the text's layout does not allow changing a single field.
pub fn restore_fired(
    home: &Home,
    id: &DefinitionId,
    text: &str,
    run_at: DateTime<FixedOffset>,
    defaults: &Defaults,
) -> Result<WrittenFile, DefinitionError> {
    let file = read::folder_of(Kind::Reminder).join(format!("{id}.md"));
    // Without `id`, the file's name was the identity, and that name may be taken by now.
    let changes =
        [("id", Some(FieldValue::Text(id.to_string()))), ("run_at", Some(FieldValue::Text(run_at.to_rfc3339())))];
    let new = changed(&file, text, &changes)?;
    create_text(home, Kind::Reminder, id.as_str(), &new, defaults)
}

/// Returns the text of a definition's file with fields set (removed for `None`), and with another body if one is given.
/// Writes nothing.
///
/// # Errors
/// [`DefinitionError::Edit`] if the file's layout does not allow changing a single field.
pub fn changed_text(
    file: &Path,
    old: &str,
    changes: &[(&'static str, Option<FieldValue>)],
    body: Option<&str>,
) -> Result<String, DefinitionError> {
    let text = changed(file, old, changes)?;
    let Some(body) = body else { return Ok(text) };
    let close = usize::try_from(frontmatter::closing_line(&text)).unwrap_or(usize::MAX);
    let head: String = text.split_inclusive('\n').take(close).collect();
    Ok(format!("{head}{}\n", body.trim_end()))
}

fn changed(file: &Path, old: &str, changes: &[(&'static str, Option<FieldValue>)]) -> Result<String, DefinitionError> {
    changes.iter().try_fold(old.to_owned(), |text, (field, value)| {
        edit::set(&text, field, value.as_ref())
            .ok_or_else(|| DefinitionError::Edit { file: file.to_owned(), field: (*field).to_owned() })
    })
}

/// Returns the text for moving the file `stem` into `folder`. If the file's name is its id and cannot be kept there,
/// the id is written into the text.
fn keeping_id(text: String, stem: &str, folder: &Path) -> String {
    let has_id = names::ids_in(&text).any(|(key, _)| key == "id");
    // A file with this text is the copy from before a crash.
    let is_free = fs::read(folder.join(format!("{stem}.md"))).map_or(true, |there| there == text.as_bytes());
    let keeps_name = names::slug(stem) == stem && is_free;
    if has_id || keeps_name {
        return text;
    }
    edit::set(&text, "id", Some(&FieldValue::Text(stem.to_owned()))).unwrap_or(text)
}

fn valid(parsed: Parsed) -> Result<WrittenFile, DefinitionError> {
    match parsed.definition {
        Some(definition) => Ok(WrittenFile { definition, warnings: parsed.problems }),
        None => {
            Err(DefinitionError::Invalid { problems: parsed.problems.into_iter().filter(Problem::is_error).collect() })
        }
    }
}

/// Writes `STEM.md`, or `STEM-2.md` and so on if that name is taken. Returns an existing file if it has exactly this
/// text.
fn put_new(home: &Home, folder: &Path, stem: &str, text: &str) -> Result<PathBuf, DefinitionError> {
    let absolute = make_folder(home, folder)?;
    for name in names::numbered(stem) {
        let name = format!("{name}.md");
        let path = absolute.join(&name);
        if path.symlink_metadata().is_ok() {
            if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                return Ok(folder.join(name));
            }
            continue;
        }
        match durable::write_new(&path, text.as_bytes()) {
            Ok(()) => return Ok(folder.join(name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(DefinitionError::io("write", &path)(error)),
        }
    }
    Err(DefinitionError::Exists { file: folder.join(format!("{stem}.md")) })
}

/// Creates a folder of definitions if it is missing. Returns its absolute path.
fn make_folder(home: &Home, folder: &Path) -> Result<PathBuf, DefinitionError> {
    if !home.root().is_dir() {
        return Err(DefinitionError::NoHome { root: home.root().to_owned() });
    }
    let absolute = home.root().join(folder);
    fs::create_dir_all(&absolute).map_err(DefinitionError::io("make", &absolute))?;
    if Kind::WITH_FILES.iter().any(|kind| !read::is_inside(home, *kind)) {
        let outside = io::Error::other("the folder is a symlink that leaves the data folder");
        return Err(DefinitionError::io("write into", &absolute)(outside));
    }
    Ok(absolute)
}

fn kind_of(home: &Home, file: &Path) -> Result<Kind, DefinitionError> {
    let not = || DefinitionError::NotADefinition { file: file.to_owned() };
    let file = read::relative(home, file).ok_or_else(not)?;
    super::problem::kind_of(&file).ok_or_else(not)
}

fn text_of(home: &Home, file: &Path) -> Result<String, DefinitionError> {
    read::text(home, file)?.ok_or_else(|| DefinitionError::NotFound { file: file.to_owned() })
}

fn reason_of(text: &str) -> Option<String> {
    use super::frontmatter::Node;
    let document = super::frontmatter::split(text).ok()?;
    let entries = document.block.entries().ok()?;
    entries.into_iter().find(|entry| entry.key == "failed_reason").and_then(|entry| match entry.value {
        Node::Text(reason) => Some(reason),
        _ => None,
    })
}

fn failed_folder() -> PathBuf {
    read::folder_of(Kind::Reminder).join("failed")
}

/// Returns a name for a draft without an id. A job that another one made and that may send no message is named after its maker: its
/// name is in messages about it, and must not carry words of its own.
fn slug_of(draft: &Draft) -> String {
    let texts = match draft.created_by.as_ref().filter(|_| !draft.allow_ping) {
        Some(maker) => [Some(maker.as_str()), None, None],
        None => [Some(&*draft.description), Some(&*draft.body), draft.command.as_deref()],
    };
    let slugs = texts.map(|text| text.map(names::slug).unwrap_or_default());
    slugs.into_iter().find(|slug| !slug.is_empty()).unwrap_or_else(|| draft.kind.to_string())
}

/// Returns an id for a draft that no one else has chosen: its id, or the one that [`create`] would try first, and a random part.
///
/// # Errors
/// [`DefinitionError::Random`].
pub fn unique_id(draft: &Draft) -> Result<DefinitionId, DefinitionError> {
    let stem = draft.id.as_ref().map_or_else(|| slug_of(draft), ToString::to_string);
    Ok(DefinitionId::new(format!("{stem}-{}", new_id()?)))
}

/// Returns an id of eight hex digits from the system's random numbers.
fn new_id() -> Result<DefinitionId, DefinitionError> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes).map_err(|error| DefinitionError::Random(error.to_string()))?;
    Ok(DefinitionId::new(format!("{:08x}", u32::from_be_bytes(bytes))))
}

#[cfg(test)]
mod tests;
