//! Renders the status: the service, active and upcoming runs, and problems.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{View, budget_json, hosts, run_json, upcoming, waiting};
use crate::app::{ListenerState, Overview, ServiceState, ServiceStatus, Status, times, words};
use crate::bot::budget::CAPACITY;
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};
use crate::definition::FailedReminder;
use crate::journal::{RunRecord, RunState};
use crate::refusal::Refusal;

/// Maximum number of waiting runs shown. JSON has all.
const WAITING: usize = 10;

/// Renders the whole status.
pub(super) fn status(status: &Status, view: &View, output: &mut Output) {
    if view.json {
        output.json(&as_json(status, view));
    } else {
        shown(status, view, output);
    }
    if status.settings_are_wrong {
        let wrong = Refusal::user(
            "the settings cannot be used; what is shown goes by the defaults, and no service would start",
        );
        output.fail(&wrong.hint("put config.yaml right: `ollim-bot config` says what is wrong in it"));
    }
}

/// Renders the overview as one line below a blank one. Renders nothing if there is no data folder.
pub(super) fn overview(overview: Option<&Overview>, view: &View, output: &mut Output) {
    let Some(Overview { service, jobs, errors, next }) = overview else { return };
    let service = match service {
        ServiceState::Running { pid } => format!("running (pid {pid})"),
        ServiceState::Stopped => "not running".to_owned(),
        ServiceState::Silent => "not answering".to_owned(),
    };
    let next = match next {
        Some(next) => format!("next: {} {}", next.definition.title(), times::relative(next.at, view.now)),
        None => "nothing is coming".to_owned(),
    };
    let errors = if *errors > 0 { format!(", {errors} with errors (`ollim-bot check`)") } else { String::new() };
    output.line("");
    output.line(plain(&format!("The service is {service}; {jobs} jobs{errors}; {next}")));
}

fn as_json(status: &Status, view: &View) -> Value {
    let zone = view.zone;
    let service = status.service.as_ref();
    let unfinished = |run: &RunRecord| {
        let mut json = run_json(run, zone);
        if let Some(why) = status.waits_for.get(&run.run) {
            json["waits_for"] = (*why).into();
        }
        json
    };
    json!({
        "daemon": service.map(|service| json!({
            "pid": service.pid,
            "since": service.since,
            "journal_fault": service.journal_fault,
            "paused": service.paused,
            "waiting_for_login": service.waiting_for_login,
            "waiting_for_agent": service.waiting_for_agent,
            "ending": service.ending,
            "page": service.page,
            "webhooks": service.webhooks,
            "idle_client_s": service.idle_client,
        })),
        "client": service.map(|service| &service.client),
        "channel": service.map(|service| &service.channel),
        "failing_channels": status.failing_channels,
        "webhooks": {
            "count": status.webhooks,
            "listen": status.webhooks_at,
            "refused": status.refused.iter().map(|refused| super::webhooks::as_json(refused, zone)).collect::<Vec<_>>(),
        },
        "strangers": status.strangers.iter().map(|heard| json!({ "channel": heard.channel, "messages": heard.strangers })).collect::<Vec<_>>(),
        "sandbox": service.map(|service| &service.sandbox),
        "sockets": status.sockets,
        "hosts": status.hosts,
        "database": { "definitions": status.pushed.all, "coming": status.pushed.coming },
        "need_agent": status.need_agent,
        "running": status.running.iter().map(unfinished).collect::<Vec<_>>(),
        "waiting": status.waiting.iter().map(unfinished).collect::<Vec<_>>(),
        "due": waiting::as_json(&status.due),
        "next": upcoming::as_json(&status.next, view),
        "disabled": status.disabled,
        "questions": status.questions.iter().map(|question| question.number).collect::<Vec<_>>(),
        "problems": status.problems,
        "failures": status.failures.iter().map(|failing| json!({
            "id": failing.id,
            "failures": failing.failures,
            "paused": failing.paused.map(|at| times::rfc3339(at, zone)),
        })).collect::<Vec<_>>(),
        "failed_reminders": status.failed_reminders.iter().map(FailedReminder::name).collect::<Vec<_>>(),
        "budget": budget_json(status.budget, zone),
    })
}

fn shown(status: &Status, view: &View, output: &mut Output) {
    let now = view.now;
    let mut facts = Facts::default();
    match &status.service {
        None => facts.add("service", Cell::new("not running", WARN)),
        Some(service) => {
            facts.of_service(service, status, now);
            facts.of_client_and_channels(service, status, now);
        }
    }
    facts.of_person(status, now);
    output.facts(&facts.0);
    let (running, claimed): (Vec<&RunRecord>, Vec<&RunRecord>) =
        status.running.iter().partition(|run| run.outcome == RunState::Running);
    if !running.is_empty() {
        going(&running, status, now, output);
    }
    let waits = waiting::rows(claimed.into_iter().chain(&status.waiting), status, view);
    if !waits.is_empty() {
        heading(if status.service.is_some() { "Waiting" } else { "Waiting for the service" }, output);
        output.facts(&waits[..waits.len().min(WAITING)]);
        if waits.len() > WAITING {
            output.line(paint(FAINT, &format!("and {} more", waits.len() - WAITING)));
        }
    }
    if status.pushed.all > 0 {
        let (all, coming) = (status.pushed.all, status.pushed.coming);
        let jobs = if all == 1 { "job" } else { "jobs" };
        output.line(format!("In the database: {all} {jobs} without a file, {coming} of them with a next time"));
    }
    if !status.hosts.is_empty() {
        heading("Hosts", output);
        output.table(&hosts::rows(&status.hosts, view));
    }
    if !status.next.is_empty() {
        heading("Next", output);
        output.table_without(&upcoming::rows(&status.next, view), upcoming::LEAST);
        if status.left_out > 0 {
            let all = upcoming::command(status.next.len() + status.left_out);
            output.line(paint(FAINT, &format!("and {} more (`{all}`)", status.left_out)));
        }
    }
    if !status.failures.is_empty() {
        failing(status, view, output);
    }
    if !status.problems.is_empty() {
        problems(status, output);
    }
}

/// Named facts, in order.
#[derive(Default)]
struct Facts(Vec<Vec<Cell>>);

impl Facts {
    fn add(&mut self, name: &str, value: Cell) {
        self.0.push(vec![Cell::new(name, FAINT), value]);
    }

    /// Adds what is for the person to do or to know, whether the service is running or not.
    fn of_person(&mut self, status: &Status, now: DateTime<Utc>) {
        if status.paused.is_some() {
            let words = "nothing starts by itself until `ollim-bot resume`; `ollim-bot fire` still runs a job";
            self.add("paused", Cell::new(words, WARN));
        }
        let refill =
            status.budget.next().map(|at| format!(", one more {}", times::relative(at, now))).unwrap_or_default();
        if let Some(words) = status.open_questions() {
            self.add("questions", Cell::new(format!("{words}; `ollim-bot questions` shows them"), WARN));
        }
        if !status.disabled.is_empty() {
            self.add("disabled", upcoming::listed(&status.disabled).into());
        }
        if let Some(which) = status.named_failed_reminders() {
            let steps = "`ollim-bot reminder list` says why, `ollim-bot reminder retry ID` brings one back";
            self.add("failed", Cell::new(format!("{which} ({steps})"), WARN));
        }
        self.add("pings left", format!("{} of {}{refill}", status.budget.left(), CAPACITY).into());
    }

    /// Adds the state of the service, and what keeps jobs from starting.
    fn of_service(&mut self, service: &ServiceStatus, status: &Status, now: DateTime<Utc>) {
        let Status { need_agent, spent, .. } = status;
        let mut fact = |name: &str, value: Cell| self.add(name, value);
        if let Some(fault) = &service.journal_fault {
            fact("journal", Cell::new(fault, BAD));
        }
        if let Some(missing) = &service.client.missing {
            if !need_agent.is_empty() {
                let jobs = match need_agent.len() {
                    1 => "1 job that needs it waits".to_owned(),
                    jobs => format!("{jobs} jobs that need it wait"),
                };
                fact("no agent", Cell::new(format!("{jobs}: {missing}"), BAD));
            }
        } else if service.waiting_for_login.is_some() {
            fact("login", Cell::new("jobs wait until the client is logged in; `ollim-bot doctor` says how", BAD));
        }
        let since = service.since.parse::<DateTime<Utc>>().map(|at| times::span(now - at));
        let up = since.map(|span| format!(", up {span}")).unwrap_or_default();
        match service.ending {
            true => {
                fact("service", Cell::new(format!("ending (pid {}{up}): nothing starts any more", service.pid), WARN))
            }
            false => fact("service", Cell::new(format!("running (pid {}{up})", service.pid), GOOD)),
        }
        for cap in spent {
            let until = match cap.is_spent_for_good() {
                true => format!("it {}", times::resets_in(cap, now)),
                false => "what they do not need is free when they end".to_owned(),
            };
            fact("budget", Cell::new(format!("{}: no job that costs begins; {until}", cap.is_spent_words()), BAD));
        }
    }

    /// Adds the agent client, the ways to the person, the listeners and the sandbox.
    fn of_client_and_channels(&mut self, service: &ServiceStatus, status: &Status, now: DateTime<Utc>) {
        let mut fact = |name: &str, value: Cell| self.add(name, value);
        let version = service.client.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        fact("client", format!("{}{version} ({})", service.client.name, service.client.why).into());
        if let Some(left) = service.idle_client_left {
            let left = times::span(TimeDelta::seconds(left.try_into().unwrap_or_default()));
            fact("", format!("waits {left} more for your next message").into());
        }
        if !service.client.tested.is_empty() {
            fact("tested with", service.client.tested.join(" and ").into());
        }
        if let Some(untested) = &service.client.untested {
            fact("", Cell::new(untested, WARN));
        }
        fact("channel", service.channel.as_str().into());
        for heard in &status.strangers {
            fact("", Cell::new(super::channels::strangers(&heard.channel, heard.strangers), WARN));
        }
        for failing in &status.failing_channels {
            let since = times::relative(failing.since, now);
            let (name, error) = (plain(&failing.name), plain(&failing.error));
            let words = format!("{name}: {} ({since}): {error}", failing.state());
            fact("", Cell::new(words, BAD));
        }
        match &service.page {
            Some(ListenerState::Served(url)) => fact("page", format!("{url} (`ollim-bot web` opens it)").into()),
            Some(ListenerState::Failed(why)) => fact("page", Cell::new(format!("not served: {why}"), BAD)),
            None => {}
        }
        super::webhooks::facts(status, now, &mut fact);
        let style = if service.sandbox.enforced { anstyle::Style::new() } else { WARN };
        fact("sandbox", Cell::new(&service.sandbox.detail, style));
        for (at, socket) in status.sockets.iter().enumerate() {
            let name = if at == 0 { "leads around it" } else { "" };
            fact(name, Cell::new(format!("{} ({})", socket.what, socket.path.display()), WARN));
        }
    }
}

/// What a run does whose question is open.
const ASKS: &str = "waits for your answer";

fn going(running: &[&RunRecord], status: &Status, now: DateTime<Utc>, output: &mut Output) {
    heading("Running", output);
    let row = |run: &&RunRecord| {
        let since = run.started.map(|at| format!("for {}", times::span(now - at))).unwrap_or_default();
        vec![
            Cell::new(run.run.as_str(), STRONG),
            format!("{} {}", run.kind, run.id).into(),
            Cell::new(since, FAINT),
            Cell::new(if status.is_asking(&run.run) { ASKS.to_owned() } else { words::retries(run) }, WARN),
        ]
    };
    output.table(&running.iter().map(row).collect::<Vec<_>>());
}

fn failing(status: &Status, view: &View, output: &mut Output) {
    let now = view.now;
    heading("Failing", output);
    for failing in &status.failures {
        let often =
            if failing.failures == 1 { "once".to_owned() } else { format!("{} times in a row", failing.failures) };
        let paused = failing.paused.map(|at| {
            format!("; paused since {}, `ollim-bot resume {}`", times::local(at, now, view.zone), failing.id)
        });
        let last = status.last_failed.iter().find(|run| run.id == failing.id);
        let cause = last.map(|run| {
            let when = run.ended.map(|at| format!(", last {}", times::relative(at, now))).unwrap_or_default();
            let why = run.error.as_deref().and_then(|error| error.lines().next());
            format!("{when}{}", why.map(|why| format!(": {why}")).unwrap_or_default())
        });
        let text = format!("{} failed {often}{}{}", failing.id, cause.unwrap_or_default(), paused.unwrap_or_default());
        output.wrapped(&text).iter().for_each(|line| output.line(line));
        if let Some(run) = last {
            output.line(format!("  {} {}", paint(HINT, "->"), plain(&format!("`ollim-bot runs show {}`", run.run))));
        }
    }
}

fn problems(status: &Status, output: &mut Output) {
    heading("Problems", output);
    for problem in &status.problems {
        let (word, style) = if problem.is_error() { ("error", BAD) } else { ("warning", WARN) };
        let place = format!("{}:{}", problem.file.display(), problem.line);
        for (at, line) in output.wrapped(&format!("{word} {place}: {}", problem.message)).iter().enumerate() {
            let shown = line.strip_prefix(word).filter(|_| at == 0).map(|rest| paint(style, word) + rest);
            output.line(shown.unwrap_or_else(|| line.clone()));
        }
    }
    output.line(paint(FAINT, "`ollim-bot check` says what to do, and tries gates and commands"));
}

fn heading(text: &str, output: &mut Output) {
    output.line("");
    output.line(paint(STRONG, text));
}
