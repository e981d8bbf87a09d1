//! Imports the data folder of the Python ollim-bot: definitions, skills and agents. Never overwrites a file, and
//! reports why a file was not imported. [`jobs`] imports jobs of cron and systemd.

mod calendar;
mod crontab;
pub(super) mod jobs;
mod paths;
mod systemd;
mod words;

pub(crate) use words::quoted as in_shell;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{App, make_folders};
use crate::agents::known_agents;
use crate::definition::{
    Defaults, DefinitionId, Kind, LARGEST_FILE, Problem, Severity, load_skills, parse_file, write_new,
};
use crate::home::Home;
use crate::refusal::Refusal;

/// The result of importing another bot's folder, a crontab or timers.
#[derive(Debug, Default, Serialize)]
pub struct ImportResult {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Imported files, relative to the data folder.
    pub taken: Vec<PathBuf>,
    /// Files that were not imported.
    pub left: Vec<ImportRemark>,
    /// Imported files that the person should look at.
    pub look: Vec<ImportRemark>,
}

/// A file of the source, with a remark.
#[derive(Debug, Serialize)]
pub struct ImportRemark {
    /// Path relative to the other bot's folder; for a crontab, with the line.
    pub file: PathBuf,
    /// The reason, a sentence without its full stop.
    pub why: String,
    /// The suggested step.
    #[serde(rename = "do")]
    pub hint: Option<String>,
}

/// The reason for leaving a file that was imported before.
pub const IS_HERE: &str = "the same file is here already";

/// Folders and files of the other bot that cannot be imported.
const NO_PLACE: &[(&str, &str, Option<&str>)] = &[
    ("state", "conversations, sessions and budgets are not taken over", None),
    (".env", "secrets are not taken over", Some("write those that you need into .env of the data folder")),
];

/// Folders of the other bot whose files are imported.
const TAKEN: &[&str] = &["routines", "reminders", "webhooks", "skills", "agents", "subagents"];

/// Imports the contents of `from`, or only reports what would be imported.
pub(super) fn import(from: &Path, dry_run: bool, app: &App) -> Result<ImportResult, Refusal> {
    let from = from.canonicalize().map_err(|error| {
        Refusal::user(format!("{} cannot be read: {error}", from.display()))
            .hint("name the data folder of the other bot")
    })?;
    if app.home.root().starts_with(&from) || from.starts_with(app.home.root()) {
        return Err(Refusal::user("a data folder is not imported into itself")
            .hint("`--home DIR` names the folder that is to take it over"));
    }
    if !["routines", "reminders", "webhooks", "skills"].iter().any(|name| from.join(name).is_dir()) {
        return Err(Refusal::user(format!(
            "{} has neither routines/ nor reminders/ nor webhooks/ nor skills/",
            from.display()
        ))
        .hint("name the data folder of the Python ollim-bot"));
    }
    if !dry_run {
        make_folders(&app.home)?;
    }
    let mut import = Import { from, app, done: ImportResult { dry_run, ..ImportResult::default() } };
    import.running();
    import.agents()?;
    import.skills()?;
    import.definitions()?;
    for (name, why, hint) in NO_PLACE {
        if import.from.join(name).exists() {
            import.left(Path::new(name), *why, hint.map(str::to_owned));
        }
    }
    import.others()?;
    Ok(import.done)
}

struct Import<'a> {
    from: PathBuf,
    app: &'a App,
    done: ImportResult,
}

impl Import<'_> {
    fn left(&mut self, file: &Path, why: impl Into<String>, hint: Option<String>) {
        self.done.left.push(ImportRemark { file: file.to_owned(), why: why.into(), hint });
    }

    fn look(&mut self, file: &Path, why: impl Into<String>, hint: Option<String>) {
        self.done.look.push(ImportRemark { file: file.to_owned(), why: why.into(), hint });
    }

    /// Warns if the other bot is running: two bots with the same jobs would fire each of them twice.
    fn running(&mut self) {
        let Ok(pid) = fs::read_to_string(self.from.join("state/bot.pid")) else { return };
        let pid = pid.trim();
        if !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) && Path::new("/proc").join(pid).exists() {
            let why = format!("the other bot may still run (pid {pid}), and would fire the same jobs");
            self.look(Path::new("state/bot.pid"), why, Some(format!("end it first: `kill {pid}`")));
        }
    }

    /// Reports everything else in the other bot's folder.
    fn others(&mut self) -> Result<(), Refusal> {
        let entries = fs::read_dir(&self.from).map_err(|error| super::refusals::cannot("read", &self.from, &error))?;
        let mut names: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.file_name().into())).collect();
        names.sort();
        for name in names {
            let is = |known: &str| name == Path::new(known);
            if !TAKEN.iter().any(|known| is(known)) && !NO_PLACE.iter().any(|(known, ..)| is(known)) {
                let hint = "copy by hand what your jobs read".to_owned();
                self.left(&name, "only jobs, skills and agents are taken over", Some(hint));
            }
        }
        Ok(())
    }

    /// Returns the `.md` files of a folder, sorted; empty if there is no such folder.
    fn files(&self, folder: &str) -> Result<Vec<PathBuf>, Refusal> {
        let entries = match fs::read_dir(self.from.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(super::refusals::cannot("read", &self.from.join(folder), &error)),
        };
        let names = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
        let named = |name: &std::ffi::OsString| Path::new(name).extension() == Some(OsStr::new("md"));
        let mut files: Vec<PathBuf> = names.filter(named).map(|name| Path::new(folder).join(name)).collect();
        files.sort();
        Ok(files)
    }

    /// Returns a file's text. Reports a file that is unreadable, or links to another folder.
    fn text(&mut self, file: &Path) -> Option<String> {
        let path = self.from.join(file);
        let inside = path.canonicalize().is_ok_and(|path| path.starts_with(&self.from));
        if !inside {
            self.left(file, "it leads out of its folder", None);
            return None;
        }
        let small = path.metadata().is_ok_and(|about| about.is_file() && about.len() <= LARGEST_FILE as u64);
        match fs::read_to_string(&path) {
            Ok(text) if small => Some(text),
            Ok(_) => {
                self.left(file, "it is no file of at most 1 MiB", None);
                None
            }
            Err(error) => {
                self.left(file, format!("it cannot be read: {error}"), None);
                None
            }
        }
    }

    /// Writes a new file, and returns whether it was imported.
    fn take(&mut self, file: &Path, to: &Path, text: &str) -> Result<bool, Refusal> {
        let path = self.app.home.root().join(to);
        if self.is_here(to, text) {
            self.left(file, IS_HERE, None);
            return Ok(false);
        }
        if path.symlink_metadata().is_ok() {
            self.left(file, format!("{} is there already", to.display()), Some("bring it over by hand".into()));
            return Ok(false);
        }
        if !self.done.dry_run {
            let written =
                fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| write_new(&path, text.as_bytes()));
            written.map_err(|error| super::refusals::cannot("write", &path, &error))?;
        }
        self.done.taken.push(to.to_owned());
        Ok(true)
    }

    /// Returns whether the data folder has this file with this text already.
    fn is_here(&self, file: &Path, text: &str) -> bool {
        fs::read(self.app.home.root().join(file)).is_ok_and(|here| here == text.as_bytes())
    }

    fn agents(&mut self) -> Result<(), Refusal> {
        for file in ["agents", "subagents"]
            .map(|folder| self.files(folder))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?
            .concat()
        {
            let Some(text) = self.text(&file) else { continue };
            if text.contains("{USER_NAME}") {
                self.look(
                    &file,
                    "it holds `{USER_NAME}`, which nothing fills in here",
                    Some("write your name there".into()),
                );
            }
            let to = Path::new("agents").join(file.file_name().unwrap_or_default());
            self.take(&file, &to, &text)?;
        }
        Ok(())
    }

    fn skills(&mut self) -> Result<(), Refusal> {
        let Ok(entries) = fs::read_dir(self.from.join("skills")) else { return Ok(()) };
        let mut names: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.file_name().into())).collect();
        names.sort();
        for name in names {
            let file = Path::new("skills").join(&name).join("SKILL.md");
            if !self.from.join(&file).is_file() {
                self.left(&Path::new("skills").join(&name), "it is no skill: it has no SKILL.md", None);
                continue;
            }
            let Some(text) = self.text(&file) else { continue };
            let usable = load_skills(&Home::new(self.from.clone()), &[name.to_string_lossy().into_owned()]);
            if let Err(error) = usable {
                self.left(&file, error.to_string(), None);
                continue;
            }
            if self.take(&file, &file, &text)? && text.contains("!`") {
                let why = "its commands (!`…`) are not run here: the text is given as it stands";
                self.look(&file, why, Some("give the job the command as a tool instead: `Bash(COMMAND)`".into()));
            }
            if fs::read_dir(self.from.join("skills").join(&name)).is_ok_and(|files| files.count() > 1) {
                self.left(&Path::new("skills").join(&name), "of a skill only SKILL.md is taken over", None);
            }
        }
        Ok(())
    }

    fn definitions(&mut self) -> Result<(), Refusal> {
        let mine = match self.app.home.root().is_dir() {
            true => self.app.load()?.definitions.into_keys().collect(),
            false => HashSet::<DefinitionId>::new(),
        };
        let mut ids: HashSet<DefinitionId> = mine;
        // Agents and skills that a definition names are looked up in its own folder.
        let there = Home::new(self.from.clone());
        let defaults = Defaults { agents: known_agents(&there, self.app.env.path("HOME")), ..self.app.defaults()? };
        for (kind, folder) in [(Kind::Routine, "routines"), (Kind::Reminder, "reminders"), (Kind::Webhook, "webhooks")]
        {
            for file in self.files(folder)? {
                let Some(text) = self.text(&file) else { continue };
                let read = parse_file(&there, kind, &file, text.as_bytes(), &defaults);
                let Some(definition) = read.definition else {
                    let wrong = read.problems.into_iter().find(|problem| problem.severity == Severity::Error);
                    let (why, hint) = wrong.map(|problem| problem_text(&problem)).unwrap_or_default();
                    self.left(&file, why, hint);
                    continue;
                };
                if definition.trigger.run_at().is_some_and(|at| at <= self.app.now()) {
                    let hint = format!(
                        "give it a new one: `ollim-bot reminder add --in 1h '{}'`",
                        definition.body.lines().next().unwrap_or_default()
                    );
                    self.left(&file, "its time has passed", Some(hint));
                    continue;
                }
                if !ids.insert(definition.id.clone()) && !self.is_here(&file, &text) {
                    self.left(
                        &file,
                        format!("there is a job `{}` already", definition.id),
                        Some("give it another `id`".into()),
                    );
                    continue;
                }
                if self.take(&file, &file, &text)? {
                    for problem in read.problems {
                        let (why, hint) = problem_text(&problem);
                        self.look(&file, why, hint);
                    }
                }
            }
        }
        Ok(())
    }
}

fn problem_text(problem: &Problem) -> (String, Option<String>) {
    (format!("line {}: {}", problem.line, problem.message), problem.hint.clone())
}
