//! Imports jobs of cron and systemd as routines that run a command. They are written disabled, because cron or systemd
//! still starts the jobs.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::crontab::{self, CronJob};
use super::paths::NamedPaths;
use super::systemd::{self, TimerJob, UnitFile};
use super::{ImportRemark, ImportResult};
use crate::app::{App, make_folders, taken_ids};
use crate::clock::Waker;
use crate::definition::{
    self, Cadence, DefinitionError, DefinitionId, Deliver, Draft, JobClient, LARGEST_FILE, OnMissed, Recurrence,
    Trigger, When,
};
use crate::refusal::Refusal;

/// The folder of a user's own systemd units, relative to the home folder.
const USER_UNITS: &str = ".config/systemd/user";

/// Imports the lines of a crontab; `None` for the person's own. `of_user`: its lines name their user.
pub(in crate::app) fn crontab(
    file: Option<&Path>,
    of_user: bool,
    dry_run: bool,
    app: &App,
) -> Result<ImportResult, Refusal> {
    let (name, text) = match file {
        Some(file) => (file.to_owned(), text_of(file)?),
        None => (PathBuf::from("crontab"), own_crontab()?),
    };
    let user = app.env.text("USER").or(app.env.text("LOGNAME"));
    let user = match (of_user, user) {
        (false, _) => None,
        (true, Some(user)) => Some(user),
        (true, None) => {
            return Err(Refusal::user("nothing says who you are: `USER` is not set")
                .hint("say it: `USER=NAME ollim-bot import crontab /etc/crontab --user`"));
        }
    };
    let (jobs, refused) = crontab::read(&text, user);
    let mut jobs_made = Jobs::new(dry_run, app)?;
    for (line, why, hint) in refused {
        jobs_made.left(&at(&name, line), why, hint);
    }
    for job in jobs {
        let CronJob { line, text, comment, cron, zone, command, deliver, jitter, look } = job;
        let file = at(&name, line);
        let draft = Draft {
            description: comment,
            timezone: zone.or(system_zone(app)),
            // As in cron, missed occurrences are skipped, and long runs are not ended.
            on_missed: OnMissed::Skip,
            timeout: Some(UNLIMITED),
            deliver,
            jitter,
            ..Draft::new(When::Cron(cron), format!("Line {line} of {}: `{text}`\n", name.display()))
        };
        let switch = format!("take the line out of the crontab, then `ollim-bot routine enable {}`", Jobs::ID);
        jobs_made.take(&file, command, draft, look, &switch)?;
    }
    Ok(jobs_made.done)
}

/// Timeout for a job that has no limit in its source.
const UNLIMITED: Duration = Duration::from_secs(24 * 60 * 60);

/// Imports timers: from files, or all those in folders; without any, the person's own.
pub(in crate::app) fn systemd(units: &[PathBuf], dry_run: bool, app: &App) -> Result<ImportResult, Refusal> {
    let own = || app.env.path("HOME").map(|home| home.join(USER_UNITS));
    let places = if units.is_empty() { own().into_iter().collect() } else { units.to_vec() };
    let mut jobs = Jobs::new(dry_run, app)?;
    for timer in timers(&places)? {
        match timer_job(&timer) {
            Err((why, hint)) => jobs.left(&timer, why, hint),
            Ok((
                TimerJob { description, when, zone, command, on_missed, jitter, wake, timeout, mut look },
                service,
            )) => {
                look.extend(wake.then(wakes));
                let body = format!("{} starts {}.\n", timer.display(), service.display());
                let zone = zone.or(system_zone(app));
                let name = || timer.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let draft = Draft {
                    description: if description.is_empty() { name() } else { description },
                    timezone: zone,
                    timeout: timeout.or(Some(UNLIMITED)),
                    on_missed,
                    jitter,
                    wake,
                    ..Draft::new(when, body)
                };
                let unit = timer.file_name().unwrap_or_default().to_string_lossy();
                let switch =
                    format!("`systemctl --user disable --now {unit}`, then `ollim-bot routine enable {}`", Jobs::ID);
                jobs.take(&timer, command, draft, look, &switch)?;
            }
        }
    }
    Ok(jobs.done)
}

/// Returns what becomes of `WakeSystem=`.
fn wakes() -> String {
    match Waker::lacks_clock() {
        Some(why) => format!("it does not wake the machine: {why}"),
        None => "it wakes the machine if the service may: see `ollim-bot doctor` once it is enabled".to_owned(),
    }
}

/// Returns the zone of the system's own times, if the bot has another one.
fn system_zone(app: &App) -> Option<chrono_tz::Tz> {
    let system = iana_time_zone::get_timezone().ok()?.parse().ok()?;
    (app.zone().ok()? != system).then_some(system)
}

/// Returns `crontab:12`.
fn at(file: &Path, line: usize) -> PathBuf {
    PathBuf::from(format!("{}:{line}", file.display()))
}

fn text_of(file: &Path) -> Result<String, Refusal> {
    let cannot = |why: String| Refusal::user(format!("{} cannot be read: {why}", file.display()));
    let about = file.metadata().map_err(|error| cannot(error.to_string()))?;
    if !about.is_file() || about.len() > LARGEST_FILE as u64 {
        return Err(cannot("it is no file of at most 1 MiB".into()));
    }
    fs::read_to_string(file).map_err(|error| cannot(error.to_string()))
}

/// Returns the output of `crontab -l`.
fn own_crontab() -> Result<String, Refusal> {
    let hint = "name a file: `ollim-bot import crontab FILE`";
    let output = Command::new("crontab").arg("-l").output();
    let output = output.map_err(|error| Refusal::user(format!("`crontab -l` cannot be run: {error}")).hint(hint))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Refusal::user(format!("`crontab -l` failed: {why}")).hint(hint));
    }
    String::from_utf8(output.stdout).map_err(|_| Refusal::user("the crontab is no UTF-8").hint(hint))
}

/// Returns the timer files that are named, or are in a named folder.
fn timers(places: &[PathBuf]) -> Result<Vec<PathBuf>, Refusal> {
    let mut found = Vec::new();
    for place in places {
        if !place.is_dir() {
            if place.extension().is_none_or(|ending| ending != "timer") || !place.is_file() {
                return Err(Refusal::user(format!("{} is neither a folder nor the file of a timer", place.display()))
                    .hint("name the file: `ollim-bot import systemd ~/.config/systemd/user/backup.timer`"));
            }
            found.push(place.clone());
            continue;
        }
        let entries = fs::read_dir(place)
            .map_err(|error| Refusal::user(format!("{} cannot be read: {error}", place.display())))?;
        let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let mut files: Vec<PathBuf> =
            files.filter(|file| file.is_file() && file.extension().is_some_and(|ending| ending == "timer")).collect();
        files.sort();
        found.append(&mut files);
    }
    Ok(found)
}

/// Reads a timer's file and that of its service. Returns the job, and the path of the service's file.
fn timer_job(file: &Path) -> Result<(TimerJob, PathBuf), systemd::RefusalReason> {
    let read = |file: &Path| {
        let drop_ins = PathBuf::from(format!("{}.d", file.display()));
        if drop_ins.is_dir() {
            return Err((format!("{} changes it", drop_ins.display()), Some("put it all into one file".to_owned())));
        }
        text_of(file).map(|text| UnitFile::read(&text)).map_err(|refusal| (refusal.reason, None))
    };
    let timer = read(file)?;
    let service = match timer.service() {
        Some(name) if name.contains('/') => return Err((format!("`Unit={name}` is no name of a unit"), None)),
        Some(name) => file.with_file_name(name),
        None => file.with_extension("service"),
    };
    Ok((systemd::job(&timer, &read(&service)?)?, service))
}

/// The import in progress.
struct Jobs<'a> {
    app: &'a App,
    done: ImportResult,
    /// Existing jobs: their times and commands.
    there: HashSet<(Cadence, String)>,
}

impl<'a> Jobs<'a> {
    /// Stands for the id of the new job in a hint.
    const ID: &'static str = "ID";

    fn new(dry_run: bool, app: &'a App) -> Result<Self, Refusal> {
        if !dry_run {
            make_folders(&app.home)?;
        }
        let loaded = if app.home.root().is_dir() { app.load()?.definitions } else { Default::default() };
        let key = |definition: &std::sync::Arc<crate::definition::Definition>| match &definition.trigger {
            Trigger::Routine { recurs: Recurrence { cadence, .. }, .. } => {
                Some((cadence.clone(), definition.command.clone()?))
            }
            _ => None,
        };
        let there = loaded.values().filter_map(key).collect();
        Ok(Self { app, done: ImportResult { dry_run, ..ImportResult::default() }, there })
    }

    fn left(&mut self, file: &Path, why: impl Into<String>, hint: Option<String>) {
        self.done.left.push(ImportRemark { file: file.to_owned(), why: why.into(), hint });
    }

    fn look(&mut self, file: &Path, why: impl Into<String>, hint: Option<String>) {
        self.done.look.push(ImportRemark { file: file.to_owned(), why: why.into(), hint });
    }

    /// Whether a new job has this id.
    fn is_taken(&self, id: &DefinitionId) -> bool {
        self.done.taken.contains(&Path::new("routines").join(format!("{id}.md")))
    }

    /// Writes a routine that runs this command.
    fn take(
        &mut self,
        file: &Path,
        command: String,
        draft: Draft,
        look: Vec<String>,
        switch: &str,
    ) -> Result<(), Refusal> {
        let every = draft.every.map(Cadence::Every);
        let cadence = every.unwrap_or_else(|| Cadence::Cron(draft.cron.clone().unwrap_or_default()));
        if !self.there.insert((cadence, command.clone())) {
            self.left(file, "there is a routine with this time and this command already", None);
            return Ok(());
        }
        let home = self.app.env.path("HOME");
        let named = NamedPaths::of(&command, &self.app.home.work(), home);
        let draft =
            Draft { client: Some(JobClient::Exec), background: true, enabled: false, command: Some(command), ..draft };
        let deliver = draft.deliver;
        let defaults = self.app.defaults()?;
        let known = taken_ids::is_taken(self.app);
        let made = match self.done.dry_run {
            true => definition::would_create(&self.app.home, &draft, |id| known(id) || self.is_taken(id), &defaults),
            false => definition::create(&self.app.home, &draft, &known, &defaults),
        };
        let made = match made {
            Ok(made) => made.definition,
            Err(DefinitionError::Invalid { problems }) => {
                let problem = problems.into_iter().next();
                let (why, hint) = problem.map(|problem| (problem.message, problem.hint)).unwrap_or_default();
                self.left(file, why, hint);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.done.taken.push(made.file.clone());
        look.into_iter().for_each(|why| self.look(file, why, None));
        if let Some(named) = named {
            let why = format!("it names {}, which a job's programs neither read nor write", named.words());
            self.look(file, why, Some(named.hint()));
        }
        if deliver == Deliver::Never {
            let why = "its output is sent to nobody, as `MAILTO=\"\"` says; that it failed you are told all the same";
            self.look(file, why, None);
        }
        let switch = switch.replace(Self::ID, made.id.as_str());
        self.look(file, "it is disabled, since it still runs where it was", Some(switch));
        Ok(())
    }
}
