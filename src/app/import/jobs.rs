//! Imports jobs of cron and systemd as routines that run a command. They are written disabled, because cron or systemd
//! still starts the jobs.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::crontab::{self, CronJob};
use super::systemd::{self, TimerJob, UnitFile};
use super::words::is_within_quotes;
use super::{ImportRemark, ImportResult};
use crate::app::{App, make_folders, taken_ids};
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
        (true, None) => return Err(Refusal::user("nothing says who you are: `USER` is not set")),
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
            Ok((TimerJob { description, when, zone, command, on_missed, jitter, wake, timeout, look }, service)) => {
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

/// Prefixes that name the person's home folder.
const HOMES: [&str; 2] = ["~/", "$HOME"];

/// Folders that all programs of a job may read, or that contain no regular files.
const OPEN: [&str; 10] = ["/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/sbin", "/sys", "/usr"];

/// Absolute paths in a line that the sandbox does not open, and whether the line writes to each.
struct OutsidePaths(Vec<(String, bool)>);

/// The paths among its operands that a program writes.
#[derive(Clone, Copy)]
enum Written {
    All,
    First,
    Last,
}

/// Programs that write files which they are given.
const WRITERS: &[(&[&str], Written)] = &[
    (&["chmod", "chown", "dd", "gunzip", "gzip", "logrotate", "mkdir", "mv", "rm", "rmdir"], Written::All),
    (&["sqlite3", "tee", "touch", "truncate", "xz", "zstd"], Written::All),
    (&["cp", "install", "ln", "rsync", "scp", "unzip"], Written::Last),
    (&["zip"], Written::First),
];

/// Ends a word of a line.
fn is_word_end(c: char) -> bool {
    c.is_whitespace() || "'\"`;|&<>()=:,".contains(c)
}

/// Returns which of the paths of a simple command it writes: `tar -xf /srv/a.tar -C /mnt`.
fn written_by(command: &str) -> Option<Written> {
    let mut words = command.split(is_word_end).filter(|word| !word.is_empty());
    let name = words.next()?.rsplit('/').next()?;
    let rest: Vec<&str> = words.collect();
    let has = |option: &str| rest.contains(&option);
    match name {
        "tar" => {
            let unpacks = rest.first().is_some_and(|mode| mode.contains('x')) || has("--extract");
            Some(if unpacks { Written::Last } else { Written::First })
        }
        "find" if has("-delete") || has("-exec") || has("-execdir") => Some(Written::All),
        "sed" if rest.iter().any(|word| word.starts_with("-i") || *word == "--in-place") => Some(Written::All),
        _ => WRITERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, written)| *written),
    }
}

/// Takes the import's own `sh -c '…'` from around a line.
fn unwrapped(line: &str) -> String {
    let wrapped = line.split_once("sh -c '").and_then(|(_, rest)| rest.strip_suffix('\''));
    wrapped.map_or_else(|| line.to_owned(), |line| line.replace(r"'\''", "'"))
}

/// Returns the absolute paths in a line that the sandbox does not open to every job, and whether the line writes to each: by a redirection,
/// or by a program that is known to write. `/foo/d` may be an expression of sed, so between quotes a path counts only if its first folder
/// exists.
fn closed_paths(line: &str) -> Vec<(String, bool)> {
    let line = unwrapped(line);
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut at = 0;
    for command in line.split_inclusive([';', '|', '&', '(', ')', '\n', '`']) {
        let begin = command.find(|c: char| !is_word_end(c)).unwrap_or(0);
        let written = written_by(&command[begin..]);
        let paths = paths_of(command, &line[..at]);
        let last = paths.len().saturating_sub(1);
        for (index, (path, is_redirected)) in paths.into_iter().enumerate() {
            let is_operand = match written {
                Some(Written::All) => true,
                Some(Written::First) => index == 0,
                Some(Written::Last) => index == last,
                None => false,
            };
            let is_open = OPEN.iter().any(|open| Path::new(&path).starts_with(open));
            if !is_open && found.iter().all(|(known, _)| *known != path) {
                found.push((path, is_redirected || is_operand));
            }
        }
        at += command.len();
    }
    found
}

/// Returns the absolute paths of a simple command, and whether it redirects its output to each. `before`: the line in front of it.
fn paths_of(command: &str, before: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut to = "";
    for (at, _) in command.match_indices('/') {
        let is_begin = command[..at].chars().next_back().is_none_or(is_word_end);
        let word = command[at..].split(is_word_end).next().unwrap_or_default();
        to = if is_begin { command[..at].trim_end_matches([' ', '\'', '"']) } else { to };
        let root = Path::new(word).components().take(2).collect::<PathBuf>();
        let is_path = || root.exists() || !is_within_quotes(&format!("{before}{}", &command[..at]));
        if is_begin && !word.starts_with("//") && root.parent().is_some() && is_path() {
            found.push((word.to_owned(), to.ends_with('>')));
        }
    }
    found
}

impl OutsidePaths {
    fn of(line: &str, work: &Path, home: Option<&Path>) -> Option<Self> {
        let is_inside = |path: &Path| path.starts_with(work) || home.is_some_and(|home| path.starts_with(home));
        let mut found = closed_paths(line);
        found.retain(|(path, _)| !is_inside(Path::new(path)));
        (!found.is_empty()).then_some(Self(found))
    }

    fn words(&self) -> String {
        let paths: Vec<&str> = self.0.iter().map(|(path, _)| path.as_str()).collect();
        format!("{}, outside of `work/`", paths.join(" and "))
    }

    fn rules(&self) -> String {
        let mut rules: Vec<String> = Vec::new();
        for (path, is_written) in &self.0 {
            let file = Path::new(path);
            // A program can make a file only in a folder that is open as a whole.
            let parent = file.parent().filter(|parent| *is_written && !file.exists() && parent.parent().is_some());
            let below = if file.is_dir() || parent.is_some() { "/**" } else { "" };
            let opened = parent.unwrap_or(file).to_string_lossy();
            let name = if *is_written { "Edit" } else { "Read" };
            let rule = format!("'{name}(/{}{below})'", opened.trim_end_matches('/'));
            rules.extend((!rules.contains(&rule)).then_some(rule));
        }
        std::iter::once("Bash".to_owned()).chain(rules).collect::<Vec<_>>().join(", ")
    }
}

/// Returns whether a line names the person's home folder, or a path in it.
fn names_home(line: &str, home: Option<&Path>) -> bool {
    let is_in_home = |(path, _): &(String, bool)| home.is_some_and(|home| Path::new(path).starts_with(home));
    HOMES.iter().any(|sign| line.contains(sign)) || closed_paths(line).iter().any(is_in_home)
}

/// Returns the files that a line names by a path relative to the home folder in which it works: existing ones, those that begin with
/// `./`, and those that it writes to by a redirection.
fn named_in_home(line: &str, home: &Path) -> Vec<String> {
    let Some(line) = line.strip_prefix("cd ~ && ") else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    for word in line.split(is_word_end) {
        let before = line[..at].trim_end_matches([' ', '\'', '"']);
        at += word.len() + line[at + word.len()..].chars().next().map_or(0, char::len_utf8);
        let first = Path::new(word).components().find(|part| *part != Component::CurDir);
        let Some(Component::Normal(first)) = first.filter(|_| !word.starts_with(['-', '$', '~'])) else { continue };
        let is_file = before.ends_with('>') || word.starts_with("./") || home.join(first).exists();
        if is_file && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
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
        let in_home = home.map(|home| named_in_home(&command, home)).unwrap_or_default();
        let leads_home = names_home(&command, home) || !in_home.is_empty();
        let outside = OutsidePaths::of(&command, &self.app.home.work(), home);
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
        if leads_home {
            let hint = "grant what it needs: `allowed_tools: [Bash, 'Read(~/**)', 'Edit(~/notes/**)']`";
            let names = if in_home.is_empty() { String::new() } else { format!("{} in ", in_home.join(" and ")) };
            let why = format!("it names {names}your home, which a job's programs neither read nor write");
            self.look(file, why, Some(hint.into()));
        }
        if let Some(outside) = outside {
            let why = format!("it names {}, which a job's programs neither read nor write", outside.words());
            self.look(file, why, Some(format!("grant what it needs: `allowed_tools: [{}]`", outside.rules())));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_home_folder_are_named() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("notes")).unwrap();
        for (line, named) in [
            ("cd ~ && sh -c 'tar czf notes.tgz notes'", &["notes"][..]),
            ("cd ~ && sh -c 'cat ./notes/today notes/old >> all.txt 2>&1'", &["./notes/today", "notes/old", "all.txt"]),
            ("cd ~ && A=b /usr/bin/pack --from=notes", &["notes"]),
            ("cd ~ && sh -c 'nohup ./run.sh &'", &["./run.sh"]),
            ("cd ~ && sh -c 'echo one > /dev/null; sed s/a/b/ other | cat'", &[]),
            ("cd ~ && printf %s é | sh -c 'cat é'", &[]),
            ("cd /srv && sh -c 'cat notes'", &[]),
        ] {
            assert_eq!(named_in_home(line, home.path()), named, "{line}");
        }
    }

    #[test]
    fn a_home_is_named_with_and_without_a_path_in_it() {
        let home = Some(Path::new("/tmp/ann"));
        for (command, expect) in [
            ("find /tmp/ann -delete", true),
            ("cat \"/tmp/ann/x\"", true),
            ("cat ~/x", true),
            ("cat $HOME/x", true),
            ("cat /tmp/anna/x /mnt/tmp/ann/x", false),
        ] {
            assert_eq!(names_home(command, home), expect, "{command}");
        }
    }

    #[test]
    fn paths_outside_of_the_sandbox_are_named() {
        for (line, words, rules) in [
            ("cd ~ && sh -c 'backup > /var/log/backup.log'", "/var/log/backup.log", "'Edit(//var/log/**)'"),
            ("[ -f /tmp/x ] && echo \"there\" >> \"/tmp/y\"", "/tmp/x and /tmp/y", "'Read(//tmp/x)', 'Edit(//tmp/**)'"),
            ("cp /var/one /mnt/gone/two", "/var/one and /mnt/gone/two", "'Read(//var/one)', 'Edit(//mnt/gone/**)'"),
            (
                r"cd ~ && sh -c 'tar -czf /gone/x.tgz /var; sed '\''/none/d'\'' a'",
                "/gone/x.tgz and /var",
                "'Edit(//gone/**)', 'Read(//var/**)'",
            ),
            ("tar -czf /gone/x.tgz /var", "/gone/x.tgz and /var", "'Edit(//gone/**)', 'Read(//var/**)'"),
            ("tar -xf /var/x.tar -C /var", "/var/x.tar and /var", "'Read(//var/x.tar)', 'Edit(//var/**)'"),
            ("ls /var | xargs rm", "/var", "'Read(//var/**)'"),
            ("find /var -delete", "/var", "'Edit(//var/**)'"),
            ("/usr/bin/sed -i s/a/b/ /var/x", "/var/x", "'Edit(//var/**)'"),
            ("python3 /home/ann/x.py", "/home/ann/x.py", "'Read(//home/ann/x.py)'"),
            ("PATH=/usr/bin:/var/bin ls /var /var", "/var/bin and /var", "'Read(//var/bin)', 'Read(//var/**)'"),
        ] {
            let outside = OutsidePaths::of(line, Path::new("/tmp/bot/work"), Some(Path::new("/home/me"))).unwrap();
            assert_eq!(outside.words(), format!("{words}, outside of `work/`"), "{line}");
            assert_eq!(outside.rules(), format!("Bash, {rules}"), "{line}");
        }
        for line in [
            "curl https://tmp/x; /usr/bin/true > /dev/null 2>&1",
            "sed '/nothing-of-the-root/d' a/tmp/b < /etc/hosts",
            "cat ~/tmp/x /home/me/x /tmp/bot/work/notes / ",
        ] {
            let outside = OutsidePaths::of(line, Path::new("/tmp/bot/work"), Some(Path::new("/home/me")));
            assert!(outside.is_none(), "{line}");
        }
    }
}
