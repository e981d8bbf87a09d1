//! `status`: how the service is doing, what is going, what comes, what went wrong.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::context::Context;
use super::error::CliError;
use super::held::Held;
use super::output::{BAD, Cell, FAINT, GOOD, Output, STRONG, WARN, paint};
use super::waiting::Due;
use super::{budget, next, runs, times, waiting};
use crate::agent::sockets::{self, PathSocket};
use crate::bot::budget::{CAPACITY, PingBudget};
use crate::channel::terminal::plain;
use crate::daemon::call::{self, CallError};
use crate::daemon::wire::{Reply, Request, ServiceStatus};
use crate::definition::{Definition, DefinitionId, Problem};
use crate::journal::{RunRecord, RunState, Streak};

/// How many coming occurrences are shown.
const NEXT: usize = 5;

/// How many of those that wait are shown; JSON has all.
const WAITING: usize = 10;

/// What is known.
struct Status {
    service: Option<ServiceStatus>,
    /// Claimed or going.
    running: Vec<RunRecord>,
    /// Begun and not going: to be tried again, or left by a service that has ended.
    waiting: Vec<RunRecord>,
    /// Fell due while nothing may start.
    due: Vec<Due>,
    next: Vec<(DateTime<Utc>, Arc<Definition>)>,
    problems: Vec<Problem>,
    failures: Vec<Streak>,
    budget: PingBudget,
    /// What leads around the kernel's wall.
    sockets: Vec<PathSocket>,
}

/// Shows it.
///
/// # Errors
/// When there is no data folder, or something in it cannot be read.
pub fn status(context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load_without_settings()?;
    let journal = runs::open(context)?;
    let now = context.now();
    let service = service(context)?;
    let held = Held::known_to(&journal, &loaded, context);
    let mut definitions = held.others(loaded.definitions.values().cloned());
    let nothing_starts =
        service.as_ref().is_some_and(|service| service.paused.is_some() || service.waiting_for_login.is_some());
    let due = if nothing_starts { waiting::due(&definitions, &journal.accounts()?, now) } else { Vec::new() };
    let reminders: HashSet<&DefinitionId> = due.iter().filter_map(Due::reminder).collect();
    definitions.retain(|definition| !reminders.contains(&definition.id));
    // What an ended service has left as running is not going any more.
    let is_going = |run: &RunRecord| service.is_some() && !run.outcome.is_over();
    let (running, waiting) = journal.unfinished()?.into_iter().partition(is_going);
    let status = Status {
        running,
        waiting,
        due,
        service,
        next: next::coming(&definitions, None, now, None, NEXT),
        problems: loaded.problems,
        failures: journal.streaks()?.into_iter().filter(|streak| streak.failures > 0).collect(),
        budget: budget::of(&journal, now)?,
        sockets: sockets::answering(|name| context.env.text(name), &context.places().user_home),
    };
    if context.json {
        output.json(&as_json(&status, context));
    } else {
        shown(&status, context, output);
    }
    Ok(())
}

/// One line for where nothing was typed; `None` where there is no data folder.
#[must_use]
pub fn line(context: &Context) -> Option<String> {
    let loaded = context.load_without_settings().ok()?;
    let definitions = Held::of(&loaded, context).others(loaded.definitions.values().cloned());
    let now = context.now();
    let running = match service(context) {
        Ok(Some(status)) => format!("running (pid {})", status.pid),
        Ok(None) => "not running".to_owned(),
        Err(_) => "not answering".to_owned(),
    };
    let next = next::coming(&definitions, None, now, None, 1);
    let next = match next.first() {
        Some((at, definition)) => format!("next: {} {}", definition.title(), times::relative(*at, now)),
        None => "nothing is coming".to_owned(),
    };
    let errors = loaded.problems.iter().filter(|problem| problem.is_error()).count();
    let errors = if errors > 0 { format!(", {errors} with errors (`ollim-bot check`)") } else { String::new() };
    Some(plain(&format!("The service is {running}; {} jobs{errors}; {next}", loaded.definitions.len())))
}

/// What the service says of itself; `None`: it does not run. A run may not ask it.
fn service(context: &Context) -> Result<Option<ServiceStatus>, CliError> {
    match call::as_person(&context.home, &Request::Status) {
        Ok(Reply::Status(status)) => Ok(Some(*status)),
        Ok(_) => Err(CliError::environment("the service gave an answer to another question")),
        Err(CallError::NotRunning) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn as_json(status: &Status, context: &Context) -> Value {
    let zone = context.zone_of_records();
    let service = status.service.as_ref();
    json!({
        "daemon": service.map(|service| json!({
            "pid": service.pid,
            "since": service.since,
            "paused": service.paused,
            "waiting_for_login": service.waiting_for_login,
        })),
        "client": service.map(|service| &service.client),
        "channel": service.map(|service| &service.channel),
        "sandbox": service.map(|service| &service.sandbox),
        "sockets": status.sockets,
        "running": status.running.iter().map(|run| runs::as_json(run, zone)).collect::<Vec<_>>(),
        "waiting": status.waiting.iter().map(|run| runs::as_json(run, zone)).collect::<Vec<_>>(),
        "due": waiting::as_json(&status.due),
        "next": next::as_json(&status.next),
        "problems": status.problems,
        "failures": status.failures.iter().map(|streak| json!({
            "id": streak.id,
            "failures": streak.failures,
            "paused": streak.paused.map(|at| times::rfc3339(at, zone)),
        })).collect::<Vec<_>>(),
        "budget": budget::as_json(status.budget, zone),
    })
}

fn shown(status: &Status, context: &Context, output: &mut Output) {
    let (now, zone) = (context.now(), context.zone_of_records());
    let mut facts: Vec<Vec<Cell>> = Vec::new();
    let mut fact = |name: &str, value: Cell| facts.push(vec![Cell::new(name, FAINT), value]);
    match &status.service {
        None => fact("service", Cell::new("not running", WARN)),
        Some(service) => {
            let since = service.since.parse::<DateTime<Utc>>().map(|at| times::span(now - at));
            let up = since.map(|span| format!(", up {span}")).unwrap_or_default();
            fact("service", Cell::new(format!("running (pid {}{up})", service.pid), GOOD));
            if service.paused.is_some() {
                fact("paused", Cell::new("nothing starts until `ollim-bot resume`", WARN));
            }
            if service.waiting_for_login.is_some() {
                fact("login", Cell::new("jobs wait until the client is logged in", BAD));
            }
            let version = service.client.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            fact("client", format!("{}{version} ({})", service.client.name, service.client.why).into());
            if !service.client.tested.is_empty() {
                fact("tested with", service.client.tested.join(" and ").into());
            }
            if let Some(untested) = &service.client.untested {
                fact("", Cell::new(untested, WARN));
            }
            fact("channel", service.channel.as_str().into());
            let style = if service.sandbox.enforced { anstyle::Style::new() } else { WARN };
            fact("sandbox", Cell::new(&service.sandbox.detail, style));
            for (at, socket) in status.sockets.iter().enumerate() {
                let name = if at == 0 { "leads around it" } else { "" };
                fact(name, Cell::new(format!("{} ({})", socket.what, socket.path.display()), WARN));
            }
        }
    }
    let refill = status.budget.next().map(|at| format!(", one more {}", times::relative(at, now))).unwrap_or_default();
    fact("pings left", format!("{} of {}{refill}", status.budget.left(), CAPACITY).into());
    output.table(&facts);
    let (going, claimed): (Vec<&RunRecord>, Vec<&RunRecord>) =
        status.running.iter().partition(|run| run.outcome == RunState::Running);
    if !going.is_empty() {
        heading("Running", output);
        let row = |run: &&RunRecord| {
            let since = run.started.map(|at| format!("for {}", times::span(now - at))).unwrap_or_default();
            vec![
                Cell::new(run.run.as_str(), STRONG),
                format!("{} {}", run.kind, run.id).into(),
                Cell::new(since, FAINT),
            ]
        };
        output.table(&going.iter().map(row).collect::<Vec<_>>());
    }
    let waits = waiting::rows(claimed.into_iter().chain(&status.waiting), &status.due, now, zone);
    if !waits.is_empty() {
        heading(if status.service.is_some() { "Waiting" } else { "Waiting for the service" }, output);
        output.table(&waits[..waits.len().min(WAITING)]);
        if waits.len() > WAITING {
            output.line(paint(FAINT, &format!("and {} more", waits.len() - WAITING)));
        }
    }
    if !status.next.is_empty() {
        heading("Next", output);
        output.table(&next::rows(&status.next, now));
    }
    if !status.failures.is_empty() {
        heading("Failing", output);
        for streak in &status.failures {
            let times =
                if streak.failures == 1 { "once".to_owned() } else { format!("{} times in a row", streak.failures) };
            let paused = streak
                .paused
                .map(|at| format!("; paused since {}, `ollim-bot resume {}`", times::local(at, now, zone), streak.id));
            output.line(plain(&format!("{} failed {times}{}", streak.id, paused.unwrap_or_default())));
        }
    }
    if !status.problems.is_empty() {
        heading("Problems", output);
        for problem in &status.problems {
            let (word, style) = if problem.is_error() { ("error", BAD) } else { ("warning", WARN) };
            let place = format!("{}:{}", problem.file.display(), problem.line);
            output.line(format!("{} {}", paint(style, word), plain(&format!("{place}: {}", problem.message))));
        }
    }
}

fn heading(text: &str, output: &mut Output) {
    output.line("");
    output.line(paint(STRONG, text));
}
