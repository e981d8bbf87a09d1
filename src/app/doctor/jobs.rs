//! Checks for definitions with mistakes, jobs that failed, and jobs that should have run and never did.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::Finding;
use crate::agent::SkipReason;
use crate::app::suppressed::Suppressed;
use crate::app::{App, ListenerState, ServiceStatus, attention, check, runs, service, times, waking, webhooks, words};
use crate::definition::{self, Definition, DefinitionId, Kind, Problem};
use crate::journal::{HostRecord, JournalReader, RunFilter, RunRecord};
use crate::schedule::{is_named, occurrences};

/// Time after its due time at which a job without a record counts as missed.
const LATE: TimeDelta = TimeDelta::minutes(5);
/// Maximum number of jobs to name.
const NAMED: usize = 5;

/// Checks the files of definitions, and counts those in the database, each of which `push` has checked.
pub(super) fn definitions(app: &App) -> Vec<Finding> {
    let Ok(loaded) = app.load_without_settings() else { return Vec::new() };
    // Problems of the settings, whose file is in no subfolder, are reported elsewhere.
    let in_folder = |problem: &&Problem| {
        let is_below = problem.file.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
        is_below || definition::kind_of(&problem.file).is_some()
    };
    let beside = check::without_trying(&loaded, app);
    let tried = check::by_trying(loaded.definitions.values(), app);
    let fail = tried.iter().filter(|problem| problem.is_error()).count();
    let of_files = || loaded.problems.iter().chain(&beside).filter(in_folder);
    let errors = of_files().filter(|problem| problem.is_error()).count();
    let warnings = of_files().count() - errors + tried.len() - fail;
    let pushed = runs::open(app).and_then(|journal| Ok(journal.pushed_counts(None)?.all)).unwrap_or_default();
    let all = loaded.problems.iter().chain(&beside).chain(&tried);
    let in_order = check::in_order(loaded.definitions.values(), all);
    let good = match (in_order, pushed) {
        (files, 0) => files.to_string(),
        (files, pushed) => format!("{files} with a file and {pushed} in the database"),
    };
    let see = "see where: `ollim-bot check`";
    let errors = (errors > 0).then(|| format!("{} in files that do not count", counted(errors, "error")));
    let fail = (fail > 0).then(|| match fail {
        1 => "1 whose gate or command will fail".to_owned(),
        more => format!("{more} whose gates or commands will fail"),
    });
    let wrong: Vec<String> = errors.into_iter().chain(fail).collect();
    vec![match (wrong.is_empty(), warnings) {
        (true, 0) => Finding::ok("definitions", format!("{good} in order")),
        (true, _) => {
            Finding::look("definitions", format!("{good} in order, {}", counted(warnings, "warning"))).step(see)
        }
        _ => Finding::wrong("definitions", format!("{good} in order, {}", wrong.join(", "))).step(see),
    }]
}

/// Reports jobs that may run on no host that is up.
pub(super) fn without_host(app: &App) -> Vec<Finding> {
    let hosts = runs::open(app).and_then(|journal| Ok(journal.hosts()?)).unwrap_or_default();
    let Ok(loaded) = app.load_without_settings() else { return Vec::new() };
    let may = |definition: &Definition, host: &HostRecord| {
        is_named(definition, &host.name, |label| host.labels.iter().any(|known| known == label))
    };
    let has_none = |definition: &&Arc<Definition>| {
        let is_away = || !hosts.iter().any(|host| host.alive && may(definition, host));
        definition.enabled && !definition.hosts.is_empty() && is_away()
    };
    let found = loaded.definitions.values().filter(|_| !hosts.is_empty()).filter(has_none);
    found
        .map(|definition| {
            let away = hosts.iter().find(|host| may(definition, host));
            let names = definition.hosts.join(" and ");
            let detail = format!("no host that may run {} is up: its `hosts` name {names}", definition.title());
            Finding::wrong("hosts", detail).step(match away {
                Some(host) => format!("start {}", host.name),
                None => {
                    let known: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
                    format!("put `hosts` in {} right: the hosts are {}", definition.file.display(), known.join(", "))
                }
            })
        })
        .collect()
}

/// Checks whether webhooks can take deliveries, and where.
pub(super) fn webhooks(app: &App) -> Vec<Finding> {
    let Ok(loaded) = app.load_without_settings() else { return Vec::new() };
    let count = loaded.definitions.values().filter(|definition| definition.hook().is_some()).count();
    let problems = webhooks::problems(&loaded.definitions, app);
    if problems.is_empty() {
        if let Ok(Some(ServiceStatus { webhooks: Some(ListenerState::Failed(why)), .. })) = service::status(app) {
            let found = Finding::wrong("webhooks", format!("not taken: {why}"));
            return vec![
                found.step(
                    "end what listens there, or set another `webhooks` in config.yaml and start the service again",
                ),
            ];
        }
        let at = app.config().ok().and_then(|config| config.webhooks.clone());
        return match at {
            Some(at) if at.is_open() => {
                let found = Finding::look("webhooks", format!("other machines reach {at}, which has no TLS"));
                vec![found.step("listen on 127.0.0.1, and have a reverse proxy or a tunnel lead there")]
            }
            Some(at) if count > 0 => vec![Finding::ok("webhooks", format!("{count}, taken on {at}"))],
            _ => Vec::new(),
        };
    }
    let finding = |problem: Problem| {
        let found = if problem.is_error() { Finding::wrong } else { Finding::look };
        let detail = format!("{}: {}", problem.file.display(), problem.message);
        found("webhooks", detail).step(problem.hint.unwrap_or_default())
    };
    problems.into_iter().map(finding).collect()
}

/// Reports jobs whose last run failed, and jobs that never ran.
pub(super) fn outcomes(app: &App) -> Vec<Finding> {
    let (Ok(loaded), Ok(journal)) = (app.load_without_settings(), runs::open(app)) else { return Vec::new() };
    let mut found = Vec::new();
    let failures = journal.consecutive_failures().unwrap_or_default();
    let loaded = app.with_named(loaded, failures.iter().map(|failing| failing.id.as_str()));
    for failing in failures {
        let id = &failing.id;
        if failing.failures == 0 || !loaded.definitions.contains_key(id) {
            continue;
        }
        let resume = if failing.paused.is_some() { format!("; then `ollim-bot resume {id}`") } else { String::new() };
        found.push(
            Finding::wrong("jobs", attention::failing(&failing))
                .step(format!("see why: `ollim-bot runs {id} --failed`{resume}")),
        );
    }
    found.extend(retried(&journal, app));
    let kept = app.defaults().ok().and_then(|defaults| definition::failed_reminders(&app.home, &defaults).ok());
    let kept = kept.map_or(0, |kept| kept.len());
    if kept > 0 {
        found.push(
            Finding::look("jobs", format!("{} in reminders/failed/", counted(kept, "reminder")))
                .step("see which: `ollim-bot reminder list`; bring one back: `ollim-bot reminder retry ID`"),
        );
    }
    let suppressed = Suppressed::known_to(&journal, &loaded, app);
    let known: HashSet<DefinitionId> = journal.ids().unwrap_or_default().into_iter().collect();
    let candidates = suppressed.others(loaded.definitions.values().cloned());
    found.extend(skipped(&candidates, &journal, app));
    let never: Vec<(Arc<Definition>, DateTime<Utc>)> = candidates
        .into_iter()
        .filter(|definition| definition.enabled && !known.contains(&definition.id))
        .filter_map(|definition| Some((Arc::clone(&definition), was_due(&definition, app)?)))
        .collect();
    for (definition, at) in never.iter().take(NAMED) {
        let at = times::local(*at, app.now(), app.zone_of_records());
        found.push(
            Finding::wrong("jobs", format!("{} was due {at} and has never run", definition.title()))
                .step(format!("try it: `ollim-bot fire {}`", definition.id)),
        );
    }
    if never.len() > NAMED {
        found.push(
            Finding::wrong("jobs", format!("{} more have never run", never.len() - NAMED))
                .step("see what is due: `ollim-bot status`"),
        );
    }
    let asleep = waking::problems(&loaded.definitions, app);
    found.extend(asleep.first().map(|one| {
        let detail = format!("{} with `wake`: {}", counted(asleep.len(), "job"), one.message);
        Finding::look("jobs", detail).step("docs/service.md, \"Waking the machine\", says what it takes")
    }));
    if found.is_empty() {
        found.push(Finding::ok("jobs", "none has failed last, and none was left out"));
    }
    found
}

/// Reports jobs that were skipped at each of their times. A gate that has found nothing to do yet is in order.
fn skipped(candidates: &[Arc<Definition>], journal: &JournalReader, app: &App) -> Vec<Finding> {
    let only: HashSet<DefinitionId> = journal.only_skipped().unwrap_or_default().into_iter().collect();
    let jobs = candidates.iter().filter(|definition| definition.enabled && only.contains(&definition.id));
    let finding = |definition: &Arc<Definition>| {
        let filter = RunFilter { id: Some(definition.id.clone()), limit: Some(1), ..RunFilter::default() };
        let last = journal.runs(&filter).ok()?.pop().map(|run| app.redacted(run));
        let cause = last.as_ref().and_then(words::cause);
        if cause.as_ref().is_some_and(|why| why.starts_with(SkipReason::BY_GATE)) {
            return None;
        }
        let cause = cause.map(|why| format!(": {why}")).unwrap_or_default();
        let detail = format!("{} was skipped at each of its times, and has never run{cause}", definition.title());
        Some(Finding::look("jobs", detail).step(format!("see why: `ollim-bot why {}`", definition.id)))
    };
    jobs.filter_map(finding).take(NAMED).collect()
}

/// Reports runs whose attempt failed and that will be tried again.
fn retried(journal: &JournalReader, app: &App) -> Vec<Finding> {
    let runs = journal.unfinished().unwrap_or_default().into_iter().filter(|run| run.retry_at.is_some());
    let finding = |run: RunRecord| {
        let run = app.redacted(run);
        Finding::look("jobs", format!("{} {}", run.id, words::outcome_and_cause(&run, app.now())))
            .step(format!("see why: `ollim-bot runs show {}`", run.run))
    };
    runs.take(NAMED).map(finding).collect()
}

/// Returns its first time since its file was written, if that has passed.
fn was_due(definition: &Definition, app: &App) -> Option<DateTime<Utc>> {
    let since = match definition.kind() {
        Kind::Routine => {
            let written = fs::metadata(app.home.root().join(&definition.file)).and_then(|facts| facts.modified());
            DateTime::<Utc>::from(written.ok()?)
        }
        Kind::Reminder | Kind::Webhook | Kind::Session => DateTime::<Utc>::MIN_UTC,
    };
    occurrences(definition, since).next().filter(|at| *at + LATE <= app.now())
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
