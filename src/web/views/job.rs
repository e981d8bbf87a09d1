//! One job: what it does next, how it went, what it may do, and its file.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::next::{self, Routine};
use super::{policy, runs};
use crate::app::{App, Attention, Command, Job, JobPolicy, Outcome, Why, summary};
use crate::channel::terminal::visible;
use crate::definition::{DefinitionId, Kind, Problem};
use crate::journal::{RunFilter, RunRecord};
use crate::refusal::Refusal;
use crate::web::context::Context;
use crate::web::pages::execute;
use crate::web::parts::{self, link};

/// Number of runs shown.
const RUNS: u32 = 30;

/// The content of a job's page.
pub(in crate::web) struct JobParts {
    id: String,
    job: Option<Job>,
    /// Why the job does not exist, if its file is invalid or gone.
    missing: Option<Refusal>,
    /// Whether its file is kept in `reminders/failed/`.
    is_kept: bool,
    text: Option<String>,
    policy: Result<JobPolicy, Refusal>,
    why: Result<Box<Why>, Refusal>,
    routine: Option<Routine>,
    runs: Vec<RunRecord>,
    zones: runs::Zones,
}

impl JobParts {
    pub(in crate::web) fn of(id: &str, app: &App) -> Result<Self, Refusal> {
        let found = match app.execute(Command::Show { kind: None, id: id.to_owned() }) {
            Ok(Outcome::Job(job)) => Ok(job),
            Ok(_) => Err(crate::app::unexpected_reply()),
            Err(refusal) => Err(refusal),
        };
        let name = found.as_ref().map_or_else(|_| id.to_owned(), |job| job.definition.id.to_string());
        let filter = RunFilter { id: Some(DefinitionId::new(&*name)), limit: Some(RUNS), ..RunFilter::default() };
        let ran = app.execute(Command::Runs(filter));
        let runs = match (ran, &found) {
            (Ok(Outcome::Runs { runs, .. }), _) => runs,
            // Nobody knows this name.
            (_, Err(refusal)) => return Err(refusal.clone()),
            _ => Vec::new(),
        };
        let text = match app.execute(Command::FileOf { kind: None, id: name.clone() }) {
            Ok(Outcome::File { text, .. }) => Some(text),
            _ => None,
        };
        let why = explain(&name, app);
        let (job, missing) = match found {
            Ok(job) => (Some(job), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let is_kept = missing.is_some() && failed(&name, app)?;
        let policy = show_policy(&name, app);
        let is_routine = |job: &&Job| job.definition.kind() == Kind::Routine && job.next.is_some();
        let routine = job.as_ref().filter(is_routine).map(|job| next::of(&job.definition, app));
        Ok(Self { id: name, job, missing, is_kept, text, policy, why, routine, zones: app.zones(&runs), runs })
    }
}

fn explain(id: &str, app: &App) -> Result<Box<Why>, Refusal> {
    Ok(execute!(app, Command::Why { id: id.to_owned(), at: None }, Outcome::Why(why) => why))
}

fn show_policy(id: &str, app: &App) -> Result<JobPolicy, Refusal> {
    Ok(execute!(app, Command::ShowPolicy { definition: id.to_owned() }, Outcome::Policy(policy) => policy))
}

fn failed(id: &str, app: &App) -> Result<bool, Refusal> {
    let list = execute!(app, Command::List(Kind::Reminder), Outcome::Jobs(list) => list);
    Ok(list.failed.iter().any(|failed| failed.id.as_str() == id))
}

pub(in crate::web) fn job(parts: &JobParts, attention: &Attention, context: &Context) -> Markup {
    let JobParts { id, job, missing, is_kept, text, policy, why, routine, runs, zones } = parts;
    let is_its = |problem: &&Problem| problem.id.as_ref().is_some_and(|of| of.as_str() == id);
    let of_file: Vec<&Problem> = attention.status.problems.iter().filter(is_its).collect();
    let is_broken = of_file.iter().any(|problem| problem.is_error());
    html! {
        div .head {
            h1 { (id) }
            @if let Some(job) = job {
                (buttons(job, context))
            } @else if text.is_none() && runs.first().is_some_and(|run| run.kind == Kind::Reminder && run.outcome.is_over()) {
                div .buttons {
                    @if *is_kept { (parts::button(&link("/jobs/", id, "/retry"), "Retry now", &[], context)) }
                    (snooze(&DefinitionId::new(id.as_str()), None, context))
                }
            }
        }
        @if let Some(job) = job { p { (summary(&job.definition)) } }
        // Of a job without a file, the next sentence says why.
        @if let Some(refusal) = missing.as_ref().filter(|_| !is_broken && (text.is_some() || why.is_err())) {
            p .bad { (parts::with_code(&refusal.to_string())) }
        }
        @if is_broken {
            p .why { (id) " does not fire until its file is put right." }
        } @else {
            (reason(why, missing.as_ref()))
        }
        @if let Some(why) = job.as_ref().and_then(|job| attention.status.keeps_waiting(&job.definition)) {
            p .warn { "When it falls due, it waits for an agent: " (parts::with_code(why)) "." }
        }
        @for problem in &of_file {
            p .bad[problem.is_error()] .warn[!problem.is_error()] {
                (parts::problem(problem))
            }
        }
        @if let Some(routine) = routine {
            h2 { "When it fires" }
            (next::times(routine, context))
        }
        h2 { "Last runs" }
        @if runs.is_empty() {
            p .empty { "It has not run yet." }
        } @else {
            div .sparks { (spark("duration", &durations(runs))) (spark("cost", &costs(runs))) }
            (runs::table(runs, false, zones, context))
            p { a href={ "/runs?job=" (link("", id, "")) } { "All runs of this job" } }
        }
        @if let Some(text) = text {
            h2 { "What it may do" }
            @match policy {
                Ok(policy) => (policy::entries(policy)),
                Err(_) if is_broken => p .faint { "Nothing, while its file has an error." },
                Err(refusal) => p .faint { (parts::with_code(&refusal.to_string())) },
            }
            div .head {
                h2 { "Its file" }
                a .button href=(link("/jobs/", id, "/edit")) { "Edit" }
            }
            (lines(text, &of_file))
        }
    }
}

/// Shows why the job does or did what it does.
fn reason(why: &Result<Box<Why>, Refusal>, missing: Option<&Refusal>) -> Markup {
    html! {
        @match why {
            Ok(why) => (parts::why(why)),
            // Of a job that does not exist, the line above says the same.
            Err(_) if missing.is_some() => {},
            Err(refusal) => p .bad { (parts::with_code(&refusal.to_string())) },
        }
    }
}

fn buttons(job: &Job, context: &Context) -> Markup {
    let path = |action: &str| link("/jobs/", job.definition.id.as_str(), action);
    html! {
        div .buttons {
            (parts::button(&path("/fire"), "Run now", &[], context))
            a .button href=(path("/dry-run")) { "Dry run" }
            @match job.definition.kind() {
                Kind::Routine | Kind::Webhook => {
                    @if job.paused {
                        (parts::button(&path("/go-on"), "Resume", &[], context))
                    } @else if job.definition.enabled {
                        (parts::button(&path("/pause"), "Pause", &[], context))
                    } @else {
                        (parts::button(&path("/resume"), "Resume", &[], context))
                    }
                },
                Kind::Reminder => (snooze(&job.definition.id, job.next, context)),
                Kind::Session => {},
            }
        }
    }
}

/// Renders the snooze buttons of a pending or fired reminder. Spans count from now; those that end before it is due are left out.
fn snooze(id: &DefinitionId, due: Option<DateTime<Utc>>, context: &Context) -> Markup {
    let spans = [("Snooze 1h", "1h", TimeDelta::hours(1)), ("Snooze 1d", "1d", TimeDelta::days(1))];
    html! {
        @for (label, span, length) in spans {
            @if due.is_none_or(|due| due < context.now + length) {
                (parts::button(&link("/jobs/", id.as_str(), "/snooze"), label, &[("span", span)], context))
            }
        }
    }
}

/// Renders a text with line numbers, and marks lines with a problem.
fn lines(text: &str, problems: &[&Problem]) -> Markup {
    html! {
        pre .file tabindex="0" role="region" aria-label="The file" {
            @for (number, line) in (1_u32..).zip(text.lines()) {
                @let is_wrong = problems.iter().any(|problem| problem.line == number);
                span .line .wrong[is_wrong] id={ "L" (number) } { (visible(line)) "\n" }
            }
        }
    }
}

/// Returns the durations of runs in seconds, oldest first.
fn durations(runs: &[RunRecord]) -> Vec<f64> {
    let took = |run: &RunRecord| Some((run.ended? - run.started?).num_milliseconds() as f64 / 1000.0);
    runs.iter().rev().filter_map(took).collect()
}

/// Returns the costs of runs in USD, oldest first.
fn costs(runs: &[RunRecord]) -> Vec<f64> {
    runs.iter().rev().filter_map(|run| run.cost_usd).filter(|cost| *cost > 0.0).collect()
}

/// Renders a small bar for each value, with the median and the maximum in words.
fn spark(what: &str, values: &[f64]) -> Markup {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(median), Some(highest)) = (sorted.get(sorted.len() / 2), sorted.last()) else { return html! {} };
    let words = |value: f64| match what {
        "cost" => crate::app::words::money(value),
        _ => crate::app::times::span(chrono::TimeDelta::milliseconds((value * 1000.0) as i64)),
    };
    html! {
        figure .spark {
            svg width=(values.len() * 6) height="28" role="img" aria-label={ (what) " of the last " (values.len()) " runs" } {
                @for (index, value) in values.iter().enumerate() {
                    @let height = if *highest > 0.0 { (value / highest * 26.0).max(1.0) } else { 1.0 };
                    rect .f-accent x=(index * 6) y=(format!("{:.1}", 28.0 - height)) width="4" height=(format!("{height:.1}")) { title { (words(*value)) } }
                }
            }
            figcaption { (what) ": median " (words(*median)) ", highest " (words(*highest)) }
        }
    }
}
