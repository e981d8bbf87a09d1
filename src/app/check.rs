//! Checks definitions, and says what is wrong in which file, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::mcp_servers::{self, ServerProblem};
use super::{App, Caller, channels, gate, jobs, made, runs, taken_ids, waking, watched, webhooks};
use crate::channel::probe::lack;
use crate::config::ChannelSettings;
use crate::definition::{self, Definition, DefinitionId, Deliver, Loaded, Problem, Severity, money};
use crate::policy::{BOT, ToolPattern};
use crate::refusal::Refusal;
use crate::run::kernel_support::kernel_support;
use crate::run::memory::is_job;

/// The result of a check.
#[derive(Debug)]
pub struct CheckResult {
    /// The valid definitions.
    pub definitions: Vec<Arc<Definition>>,
    /// All problems.
    pub problems: Vec<Problem>,
    /// Whether only chosen files were checked, rather than the whole folder.
    pub chosen: bool,
    /// The kernel's sandbox of jobs, in words.
    pub sandbox: &'static str,
}

impl CheckResult {
    /// Returns the number of definitions whose files have no error.
    #[must_use]
    pub fn in_order(&self) -> usize {
        in_order(&self.definitions, &self.problems)
    }
}

/// Returns the number of definitions whose files have none of these errors.
pub(super) fn in_order<'a>(
    definitions: impl IntoIterator<Item = &'a Arc<Definition>>,
    problems: impl IntoIterator<Item = &'a Problem>,
) -> usize {
    let wrong: BTreeSet<&Path> =
        problems.into_iter().filter(|problem| problem.is_error()).map(|problem| problem.file.as_path()).collect();
    definitions.into_iter().filter(|definition| !wrong.contains(definition.file.as_path())).count()
}

/// Time for trying gates and commands. Those left after that are reported as untried.
const TRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Checks the whole folder, and reports on `files`, or on all if it is empty. Of the jobs in the database it checks those that are named.
pub(super) fn check(files: &[PathBuf], folder: Option<&Path>, app: &App) -> Result<CheckResult, Refusal> {
    // A file needs no database, which may be away.
    let no_file = |file: &&PathBuf| !file.exists() && !app.home.root().join(file).exists();
    let names = files.iter().filter(no_file).filter_map(|file| file.to_str());
    let loaded = app.with_named(app.load_without_settings()?, names);
    let chosen = files.iter().map(|file| relative(file, folder, app, &loaded)).collect::<Result<Vec<_>, _>>()?;
    let wanted = |file: &PathBuf| chosen.is_empty() || chosen.contains(file);
    let definitions = loaded.definitions.values().filter(|definition| wanted(&definition.file)).cloned().collect();
    let gates = by_trying(loaded.definitions.values().filter(|definition| wanted(&definition.file)), app);
    let hooks = webhooks::problems(&loaded.definitions, app);
    let untried = without_trying(&loaded, app).into_iter().chain(hooks);
    let tried = gates.into_iter().chain(servers_that_cannot_start(app)).chain(channels_that_cannot_deliver(app));
    let problems = loaded.problems.into_iter().chain(untried).chain(tried);
    let problems =
        problems.filter(|problem| wanted(&problem.file)).map(|problem| problem.at_field(&app.home)).collect();
    Ok(CheckResult { definitions, problems, chosen: !chosen.is_empty(), sandbox: kernel_support().words })
}

/// Returns the problems of definitions that no file shows by itself, and that can be found without trying anything.
pub(super) fn without_trying(loaded: &Loaded, app: &App) -> Vec<Problem> {
    let definitions = &loaded.definitions;
    [
        unknown_channels(definitions, app),
        unknown_servers(definitions, app),
        changed_by_others(definitions, app),
        unread_jobs(definitions, app),
        loaded.definitions.values().filter_map(|one| follows_nobody(one, loaded, app)).collect(),
        watched::problems(definitions, app),
        waking::problems(definitions, app),
        without_digest(definitions, app),
        above_its_day(definitions),
        made::problems(definitions, app),
        definition::other_entries(&app.home),
    ]
    .concat()
}

/// Returns the problems of gates and commands. Each is tried: what it would start is judged, and does not run.
pub(super) fn by_trying<'a>(definitions: impl IntoIterator<Item = &'a Arc<Definition>>, app: &App) -> Vec<Problem> {
    let until = Instant::now() + TRY_TIMEOUT;
    // The gate of a job that another job created may take any time. The job's runs report its problems.
    let definitions = definitions.into_iter().filter(|definition| definition.created_by.is_none());
    let problems = definitions.filter_map(|definition| match Instant::now() < until {
        true => gate::problem(definition, app),
        false => untried(definition),
    });
    problems.collect()
}

/// Returns the problems of definitions with the settings of this host, each of a definition alone.
pub(super) fn by_settings(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    [
        unknown_channels(definitions, app),
        unknown_servers(definitions, app),
        without_digest(definitions, app),
        above_its_day(definitions),
    ]
    .concat()
}

/// Returns the problems of a definition that was just written, besides those of its file. Reads other files only if it names other jobs.
pub(super) fn of_new(definition: &Arc<Definition>, app: &App) -> Vec<Problem> {
    let mut problems = Vec::new();
    // The settings and the machine are the person's.
    if matches!(app.caller, Caller::Person) {
        let alone = BTreeMap::from([(definition.id.clone(), Arc::clone(definition))]);
        problems.extend(by_settings(&alone, app));
        problems.extend(watched::problems(&alone, app));
        problems.extend(waking::problems(&alone, app));
    }
    let names_jobs = definition.follows().is_some() || !definition.context_from.is_empty();
    // What cannot be read now is reported by `check`.
    if let Some(loaded) = names_jobs.then(|| app.load().ok()).flatten() {
        problems.extend(follows_nobody(definition, &loaded, app));
        let of_it = |problem: &Problem| problem.file == definition.file;
        problems.extend(unread_jobs(&loaded.definitions, app).into_iter().filter(of_it));
    }
    problems.extend(gate::problem(definition, app));
    problems
}

/// Reports that there was no time to try a definition's gate or command.
fn untried(definition: &Definition) -> Option<Problem> {
    let name = if definition.gate.is_some() { "gate" } else { definition.command.as_ref().map(|_| "command")? };
    let message = format!("its {name} was not tried: the others took more than {} s", TRY_TIMEOUT.as_secs());
    let hint = format!("`ollim-bot check {}` tries it alone", definition.id);
    Some(Problem::of_field(definition, name, Severity::Warning, message, hint))
}

/// Warns of definitions that name an unknown channel. Their messages or questions go to the default channel.
fn unknown_channels(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let Ok(config) = app.config() else { return Vec::new() };
    let names = config.channel_names().collect::<Vec<_>>().join(", ");
    let problem = |definition: &Arc<Definition>, field: &'static str, what: &str, channel: Option<&String>| {
        let channel = channel.filter(|channel| !config.has_channel(channel))?;
        let message = format!("there is no channel `{channel}`: its {what} go to `{}`", config.default_channel);
        let hint = format!("`channels` in config.yaml makes it; there is: {names}");
        Some(Problem::of_field(definition, field, Severity::Warning, message, hint))
    };
    let of_one = |definition: &Arc<Definition>| {
        let terms = definition.background().and_then(|background| background.restrictions.ask.as_ref());
        let asked = terms.and_then(|terms| terms.channel.as_ref());
        let own = problem(definition, "channel", "messages", definition.channel.as_ref());
        [own, problem(definition, "ask", "questions", asked)]
    };
    let mut problems: Vec<Problem> = definitions.values().flat_map(of_one).flatten().collect();
    problems.sort_by(|a, b| a.file.cmp(&b.file));
    problems
}

/// Warns of definitions that wait for a digest on a channel without one. Their messages come at once.
fn without_digest(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let Ok(config) = app.config() else { return Vec::new() };
    let problem = |definition: &Arc<Definition>| {
        let named = definition.channel.as_deref().filter(|channel| config.has_channel(channel));
        let channel = named.unwrap_or(&config.default_channel);
        let is_without = definition.deliver == Deliver::Digest && config.quiet_hours_of(channel).is_none();
        let message = format!("there is no digest on `{channel}`, which has no quiet hours: its words come at once");
        let hint = "`quiet_hours` in config.yaml makes one; or remove `deliver`";
        is_without.then(|| Problem::of_field(definition, "deliver", Severity::Warning, message, hint))
    };
    definitions.values().filter_map(problem).collect()
}

/// Warns of definitions whose limit for a run is above their limit for a day.
fn above_its_day(definitions: &BTreeMap<DefinitionId, Arc<Definition>>) -> Vec<Problem> {
    let problem = |definition: &Arc<Definition>| {
        let (run, day) = (definition.max_cost_usd?, definition.max_cost_day_usd?);
        let (least, most) = (money(day), money(run));
        let message = format!("it is above `max_cost_day_usd`: a run gets at most {least}, and not {most}");
        let hint = "lower `max_cost_usd`, or raise `max_cost_day_usd`";
        (run > day).then(|| Problem::of_field(definition, "max_cost_usd", Severity::Warning, message, hint))
    };
    definitions.values().filter_map(problem).collect()
}

/// Returns a warning about an entry of a setting, at the entry's name in the file if it stands there.
fn of_setting(setting: &str, entry: &str, message: String, hint: String, app: &App) -> Problem {
    let file = Path::new("config.yaml");
    let problem = Problem::of_file(file, Severity::Warning, message, Some(hint));
    let problem = Problem { field: Some(setting.into()), ..problem };
    let text = fs::read_to_string(app.home.root().join(file)).unwrap_or_default();
    let begin = text.find(&format!("\n{setting}:")).map_or(0, |at| at + 1);
    match text[begin..].find(&format!("{entry}:")) {
        Some(at) => problem.at_offset(&text, begin + at),
        None => problem,
    }
}

/// Warns of MCP servers in the settings that cannot start at present.
fn servers_that_cannot_start(app: &App) -> Vec<Problem> {
    let problem = |lack: ServerProblem| {
        let message = format!("the MCP server `{}` {}", lack.server, lack.what);
        of_setting("mcp_servers", &lack.server, message, lack.hint, app)
    };
    mcp_servers::lacks(app).into_iter().map(problem).collect()
}

/// Warns of channels in the settings that can deliver nothing at present. Asks no service.
fn channels_that_cannot_deliver(app: &App) -> Vec<Problem> {
    // `doctor` reports errors of the settings and of `.env`.
    let (Ok(config), Ok(means)) = (app.config(), channels::probe_context(app)) else { return Vec::new() };
    let problem = |channel: &ChannelSettings| {
        let message = format!("the channel `{}` can deliver nothing: {}", channel.name, lack(&channel.kind, &means)?);
        let hint = "`ollim-bot doctor` asks the service behind each channel as well".to_owned();
        Some(of_setting("channels", &channel.name, message, hint, app))
    };
    config.channels.iter().filter_map(problem).collect()
}

/// Returns problems of rules about tools of unknown MCP servers.
fn unknown_servers(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let Ok(config) = app.config() else { return Vec::new() };
    let servers: Vec<&str> = config.mcp_servers.iter().map(|server| &*server.name).collect();
    let mut problems = Vec::new();
    for definition in definitions.values() {
        let Some(background) = definition.background() else { continue };
        let restrictions = &background.restrictions;
        let lists = [
            ("allowed_tools", restrictions.allowed_tools().unwrap_or_default()),
            ("disallowed_tools", restrictions.disallowed_tools().unwrap_or_default()),
            ("ask_tools", restrictions.asked_tools()),
        ];
        for (field, list) in lists {
            let unknown = |pattern| Some((pattern, BOT.unknown_server(pattern, &servers)?));
            for (pattern, said) in list.iter().filter_map(unknown) {
                let (what, hint) = said.split_once("; ").unwrap_or((&said, ""));
                let problem = Problem::of_field(definition, field, Severity::Warning, what, hint);
                let text = std::fs::read_to_string(app.home.root().join(&definition.file)).unwrap_or_default();
                problems.push(problem.at_words(&text, &pattern.to_string()));
            }
        }
    }
    problems
}

/// Warns of rules that run a file which another job may change. Jobs that jobs have made are left out: their rules grant no more than those
/// of their makers, and every call of a run would compare each of their patterns with each other one.
fn changed_by_others(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let list = |definition: &Arc<Definition>| Some(definition.background()?.restrictions.allowed_tools()?.to_vec());
    let of_person = definitions.values().filter(|definition| definition.created_by.is_none());
    let lists: Vec<_> = of_person.filter_map(|definition| Some((definition, list(definition)?))).collect();
    // Each rule once, with the first job that has it, and the second one.
    let mut holders: BTreeMap<String, (&ToolPattern, Vec<&DefinitionId>)> = BTreeMap::new();
    for (definition, pattern) in lists.iter().flat_map(|(job, list)| list.iter().map(move |pattern| (job, pattern))) {
        let (_, jobs) = holders.entry(pattern.to_string()).or_insert_with(|| (pattern, Vec::new()));
        if jobs.len() < 2 && !jobs.contains(&&definition.id) {
            jobs.push(&definition.id);
        }
    }
    let all = BOT.changing_entries(holders.values().map(|(pattern, jobs)| (jobs, *pattern)));
    let mut problems = Vec::new();
    for (definition, list) in &lists {
        let own = BOT.changing_entries(list.iter().map(|pattern| ((), pattern)));
        for pattern in list.iter().filter(|pattern| own.first_for(pattern, |()| true).is_none()) {
            let other = |jobs: &[&DefinitionId]| jobs.iter().find(|id| **id != &definition.id).map(|id| (*id).clone());
            let Some((jobs, changing)) = all.first_for(pattern, |jobs| other(jobs).is_some()) else { continue };
            let Some(job) = other(jobs) else { continue };
            let message = format!("`{pattern}` runs a file that `{changing}` lets the job `{job}` change");
            let hint = "keep what it runs out of what other jobs may write";
            let problem = Problem::of_field(definition, "allowed_tools", Severity::Warning, message, hint);
            let text = std::fs::read_to_string(app.home.root().join(&definition.file)).unwrap_or_default();
            problems.push(problem.at_words(&text, &pattern.to_string()));
        }
    }
    problems
}

/// Warns of jobs in `context_from` whose answers are never given: they do not exist, or another job created them.
fn unread_jobs(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let journal = runs::open(app).ok();
    let has_run = |id: &DefinitionId| journal.as_ref().is_some_and(|journal| journal.has_record_of(id).unwrap_or(true));
    let why = |definition: &Definition, id: &DefinitionId| {
        let mut there = definitions.values().filter(|known| is_job(known, id)).peekable();
        match &definition.created_by {
            _ if is_job(definition, id) => None,
            Some(maker) if there.any(|known| known.created_by.as_ref() == Some(maker)) => None,
            Some(maker) => Some((
                format!("{maker} has made no job `{id}`: its answers are not given"),
                "a job that a job has made is given only the answers of others that the same job has made",
            )),
            None if there.peek().is_some() || has_run(id) => None,
            None => Some((
                format!("there is no job `{id}`"),
                "write the id of a routine or a reminder; `ollim-bot next` shows what is coming",
            )),
        }
    };
    let mut problems = Vec::new();
    for definition in definitions.values() {
        for (message, hint) in definition.context_from.iter().filter_map(|id| why(definition, id)) {
            problems.push(Problem::of_field(definition, "context_from", Severity::Warning, message, hint));
        }
    }
    problems
}

/// Reports a routine that follows a job which never ends.
pub(super) fn follows_nobody(definition: &Definition, loaded: &Loaded, app: &App) -> Option<Problem> {
    let (why, hint) = nobody_to_follow(definition, loaded, app)?;
    let message = format!("{why}, so this routine never fires");
    Some(Problem::of_field(definition, "after", Severity::Warning, message, hint))
}

/// Returns why the job that a routine follows never ends, and a hint: there is none, or it is disabled.
pub(super) fn nobody_to_follow(definition: &Definition, loaded: &Loaded, app: &App) -> Option<(String, String)> {
    let job = &definition.follows()?.job;
    let broken = |problem: &Problem| problem.id.as_ref() == Some(job);
    match loaded.definitions.get(job) {
        Some(followed) if followed.enabled => None,
        Some(followed) => {
            let hint = format!("`ollim-bot {} enable {job}` enables it", followed.kind());
            Some((format!("the job `{job}` is disabled"), hint))
        }
        None if loaded.problems.iter().any(broken) || taken_ids::is_taken(app)(job) => None,
        None => {
            let hint = "write the id of a routine or a reminder; `ollim-bot routine list` shows those there are";
            Some((format!("there is no job `{job}`"), hint.to_owned()))
        }
    }
}

/// Returns a file's path in the data folder; an id stands for its file. A run may only name ids and files of the data
/// folder, since a diagnostic would reveal the content of any other file.
fn relative(file: &Path, folder: Option<&Path>, app: &App, loaded: &Loaded) -> Result<PathBuf, Refusal> {
    let known = |path: &Path| {
        loaded.definitions.values().any(|definition| definition.file == path)
            || loaded.problems.iter().any(|problem| problem.file == path)
    };
    if known(file) {
        return Ok(file.to_owned());
    }
    if let Some(name) = file.to_str() {
        let named = |problem: &&Problem| jobs::stem(&problem.file) == Some(name);
        let exact = jobs::find_exact(name, loaded).map(|definition| &definition.file);
        if let Some(file) = exact.or_else(|| loaded.problems.iter().find(named).map(|problem| &problem.file)) {
            return Ok(file.clone());
        }
        if let Ok(found) = jobs::find_readable(name, None, loaded) {
            return Ok(found.file.clone());
        }
        if let Some(problem) = jobs::find_broken(name, None, loaded) {
            return Ok(problem.file.clone());
        }
    }
    if matches!(app.caller, Caller::Person)
        && let Ok(absolute) = folder.unwrap_or(app.home.root()).join(file).canonicalize()
        && let Ok(inside) = absolute.strip_prefix(app.home.root())
        && known(inside)
    {
        return Ok(inside.to_owned());
    }
    Err(Refusal::user(format!("{} is no definition of {}", file.display(), app.home.root().display()))
        .hint("name an id, or a file of routines/, reminders/ or webhooks/"))
}
