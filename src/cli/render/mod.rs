//! Renders outcomes: as text for a person, or as one JSON document with stable keys.

mod agents;
mod backup;
mod calendar;
mod channels;
mod chat;
mod check;
mod config;
mod costs;
mod doctor;
mod dry_run;
mod events;
mod hosts;
mod import;
mod jobs;
mod journal;
mod logs;
mod mcp;
mod policy;
mod push;
mod questions;
mod runs;
mod service;
mod sessions;
mod simulate;
mod status;
mod unit;
mod upcoming;
mod waiting;
mod webhooks;
mod why;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::json;

pub(super) use chat::Chat;
pub(super) use check::problem;
pub(super) use doctor::line as finding;
pub(super) use events::Events;
pub(super) use logs::line as log_line;
pub(super) use runs::{as_json as run_json, inbox_message, inbox_so_far};

use super::output::{BAD, FAINT, GOOD, Output, STRONG, WARN, paint};
use crate::app::words::Emphasis;
use crate::app::{App, Budgets, Outcome, times};
use crate::bot::budget::{CAPACITY, PingBudget};
use crate::channel::terminal::plain;
use crate::journal::Spending;

/// Options of rendering.
#[derive(Clone, Debug)]
pub struct View {
    /// Whether to render one JSON document.
    pub json: bool,
    /// Reference time of relative times such as "in 5m".
    pub now: DateTime<Utc>,
    /// Time zone of records.
    pub zone: Tz,
    /// Data folder.
    pub home: std::path::PathBuf,
}

impl View {
    /// Creates a view from the application's clock and settings.
    #[must_use]
    pub fn of(app: &App, json: bool) -> Self {
        Self { json, now: app.now(), zone: app.zone_of_records(), home: app.home.root().to_owned() }
    }

    /// Formats a time: `Sun 22 Nov 09:00 CET (in 19h 4m)`.
    fn moment(&self, at: DateTime<Utc>) -> String {
        times::local_and_relative(at, self.now, self.zone)
    }
}

/// Returns the style of a tone.
fn style(emphasis: Emphasis) -> anstyle::Style {
    match emphasis {
        Emphasis::Plain => anstyle::Style::new(),
        Emphasis::Strong => STRONG,
        Emphasis::Faint => FAINT,
        Emphasis::Good => GOOD,
        Emphasis::Warn => WARN,
        Emphasis::Bad => BAD,
    }
}

/// Renders the outcome of a command.
pub fn render(outcome: Outcome, view: &View, output: &mut Output) {
    output.names_commands |= !view.json && names_commands(&outcome);
    match outcome {
        Outcome::Overview(overview) => status::overview(overview.as_ref(), view, output),
        Outcome::ExternalCommands(names) => names.iter().for_each(|name| output.line(name)),
        Outcome::Checked(checked) => check::checked(&checked, view, output),
        Outcome::Diagnosis(diagnosis) => doctor::diagnosis(&diagnosis, view, output),
        Outcome::Status(status) => status::status(&status, view, output),
        Outcome::Upcoming(upcoming) => upcoming::upcoming(&upcoming, view, output),
        Outcome::Runs { runs, filter } => runs::list(&runs, &filter, view, output),
        Outcome::Run(details) => runs::show(*details, view, output),
        Outcome::RefusedCalls(calls) => policy::refused(&calls, view, output),
        Outcome::Costs(sums) => costs::costs(&sums, view, output),
        Outcome::Inbox(messages) => runs::inbox(&messages, view, output),
        Outcome::Questions(questions) => questions::list(&questions, view, output),
        Outcome::Answered(answered) => questions::answered(&answered, view, output),
        Outcome::McpServers { servers, is_running } => mcp::servers(&servers, is_running, view, output),
        Outcome::McpTools(tools) => mcp::tools(&tools, view, output),
        Outcome::Channels(channels) => channels::list(&channels, view, output),
        Outcome::Budget(budgets) => show_budgets(&budgets, view, output),
        Outcome::Settings(settings) => config::config(&settings, view, output),
        Outcome::Agents(agents) => agents::list(&agents, view, output),
        Outcome::Agent(agent) => agents::show(&agent, view, output),
        Outcome::Sessions(sessions) => sessions::list(&sessions, view, output),
        Outcome::Session(session) => sessions::show(&session, view, output),
        Outcome::Explained(explained) => policy::explained(&explained, view, output),
        Outcome::Policy(policy) => policy::show(&policy, view, output),
        Outcome::DryRun(dry_run) => dry_run::dry_run(&dry_run, view, output),
        Outcome::Jobs(list) => jobs::list(&list, view, output),
        Outcome::Job(job) => jobs::show(&job, view, output),
        Outcome::Scheduled(recorded) => jobs::scheduled(&recorded, view, output),
        Outcome::Disabled(recorded) => jobs::disabled(&recorded, view, output),
        Outcome::Unchanged { id, enabled } => {
            output.note(format!("{id} is {} already", if enabled { "enabled" } else { "disabled" }));
        }
        Outcome::File { text, .. } => output.stdout.push_str(&text),
        Outcome::Invalid(problems) => problems.iter().for_each(|one| output.note(problem(one))),
        Outcome::ChangedMeanwhile => output.note("the file was changed by somebody else meanwhile"),
        Outcome::Cancelled(job) => jobs::cancelled(&job, view, output),
        Outcome::FileRemoved(file) if view.json => output.json(&json!({ "removed": file })),
        Outcome::FileRemoved(file) => output.line(format!("removed {}", plain(&file.display().to_string()))),
        Outcome::FollowUp(text) => output.line(text),
        Outcome::Calendar(upcoming) => calendar::calendar(&upcoming, view, output),
        Outcome::Why(why) => why::why(&why, view, output),
        Outcome::Simulated(found) => simulate::simulated(&found, view, output),
        Outcome::Imported(done) => import::imported(&done, view, output),
        Outcome::Made(files) => made(&files, view, output),
        Outcome::NotRunning(_) => output.note("the service is not running"),
        Outcome::BackedUp(backup) => backup::written(&backup, view, output),
        Outcome::Pushed(pushed) => push::pushed(&pushed, view, output),
        Outcome::Unpushed(removed) => push::removed(&removed, view, output),
        Outcome::CopiedJournal(copy) => journal::copied(&copy, view, output),
        Outcome::Restored(restored) => backup::restored(&restored, view, output),
        Outcome::Unit(done) => unit::outcome(&done, view, output),
        Outcome::Service(reply) => service::reply(&reply, view, output),
    }
}

/// Whether the data consists of sentences of ours, which may name commands.
fn names_commands(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Overview(_)
            | Outcome::Diagnosis(_)
            | Outcome::Status(_)
            | Outcome::Upcoming(_)
            | Outcome::Why(_)
            | Outcome::Simulated(_)
            | Outcome::Jobs(_)
            | Outcome::Unit(_)
            | Outcome::Service(_)
    )
}

fn show_budgets(budgets: &Budgets, view: &View, output: &mut Output) {
    let Budgets { pings, caps, jobs } = budgets;
    if view.json {
        let as_json = |cap: &Spending| {
            let until = times::rfc3339(cap.until, view.zone);
            json!({ "of": cap.name, "cap": cap.cap, "spent": cap.spent, "taken": cap.taken, "left": cap.left(), "until": until })
        };
        let mut json = budget_json(*pings, view.zone);
        if !caps.is_empty() {
            json["caps"] = caps.iter().map(as_json).collect();
        }
        if !jobs.is_empty() {
            json["jobs"] = jobs.iter().map(|(id, cap)| (id.to_string(), as_json(cap))).collect();
        }
        output.json(&json);
        return;
    }
    let left = format!("{} of {CAPACITY} pings left", pings.left());
    let refill = pings.next().map_or_else(String::new, |at| format!("; one more at {}", view.moment(at)));
    output.line(format!("{}{refill}", paint(STRONG, &left)));
    for cap in caps {
        output.line(spending(cap, view));
    }
    for (id, cap) in jobs {
        output.line(format!("{id}: {}", spending(cap, view)));
    }
}

/// Formats `$0.02 of $0.05 spent; today ends 00:00`.
fn spending(cap: &Spending, view: &View) -> String {
    let amounts = format!("{} spent", cap.amounts());
    let (amounts, period, until) = (paint(STRONG, &amounts), cap.period(), view.moment(cap.until));
    format!("{amounts}{}; {period} ends {until}", cap.taken_words())
}

fn budget_json(budget: PingBudget, zone: Tz) -> serde_json::Value {
    json!({
        "left": budget.left(),
        "capacity": CAPACITY,
        "next": budget.next().map(|at| times::rfc3339(at, zone)),
    })
}

fn made(files: &[std::path::PathBuf], view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!({ "home": view.home, "made": files }));
        return;
    }
    if files.is_empty() {
        output
            .line(format!("{} has all that belongs in it; nothing was made", plain(&view.home.display().to_string())));
        return;
    }
    output.line(format!("{} {}", paint(GOOD, "made"), view.home.display()));
    for path in files {
        output.line(format!("  {}", plain(&path.display().to_string())));
    }
}
