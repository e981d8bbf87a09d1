//! The pages: each asks the application for the content of its view.

use std::time::Duration;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use maud::Markup;
use serde::Deserialize;

use super::context::Context;
use super::sessions::hash;
use super::views::{self, chat::UnsentMessage, edit::Unsaved, job::JobParts, run::RunParts};
use super::{error, frame};
use crate::app::{App, Attention, Command, CostsBy, Occurrence, OccurrenceLimit, Outcome, Since};
use crate::definition::{DefinitionId, Kind};
use crate::journal::{RunFilter, RunId};
use crate::refusal::Refusal;

/// Number of rows on a page of a list.
pub(super) const ROWS: u32 = 50;

/// Maximum number of upcoming occurrences read for a page.
const MAX_UPCOMING: usize = 20_000;

/// Number of exchanges that a conversation shows at first, and the maximum.
const EXCHANGES_FIRST: usize = 30;
const EXCHANGES: usize = 2_000;

/// Executes a command and extracts the value of the expected outcome.
macro_rules! execute {
    ($app:expr, $command:expr, $pattern:pat => $value:expr) => {
        match $app.execute($command)? {
            $pattern => $value,
            _ => return Err($crate::app::unexpected_reply()),
        }
    };
}
pub(super) use execute;

/// Renders a page: `ask` finds its content and `show` renders it.
async fn page<T: Send + 'static>(
    context: Context,
    (title, here): (&str, &str),
    ask: impl FnOnce(&App) -> Result<T, Refusal> + Send + 'static,
    show: impl FnOnce(&T, &Attention, &Context) -> Markup,
) -> Response {
    let (attention, found) = tokio::join!(context.ask(App::attention), context.ask(ask));
    match attention.and_then(|attention| Ok((attention, found?))) {
        Ok((attention, found)) => frame::page(title, here, &attention, &context, &show(&found, &attention, &context)),
        Err(refusal) => error::missing(&refusal),
    }
}

/// Like [`page`], for content that takes long to find: the frame is sent before it.
async fn long_page<T: Send + 'static>(
    context: Context,
    (title, here): (&str, &str),
    ask: impl FnOnce(&App) -> Result<T, Refusal> + Send + 'static,
    show: impl FnOnce(&T, &Attention, &Context) -> Markup + Send + 'static,
) -> Response {
    let found = context.ask(ask);
    let attention = match context.ask(App::attention).await {
        Ok(attention) => attention,
        Err(refusal) => return error::missing(&refusal),
    };
    frame::page_in_two(frame::around(title, here, &attention, &context), async move {
        match found.await {
            Ok(found) => show(&found, &attention, &context),
            Err(refusal) => error::instead(&refusal),
        }
    })
}

/// The query `?days=7&after=ID`.
#[derive(Deserialize)]
pub(super) struct TimelineQuery {
    #[serde(default)]
    days: Option<u8>,
    #[serde(default)]
    after: Option<String>,
}

pub(super) async fn timeline(context: Context, Query(query): Query<TimelineQuery>) -> Response {
    let week = query.days == Some(7);
    let (before, ahead) =
        if week { (TimeDelta::days(7), TimeDelta::days(1)) } else { (TimeDelta::hours(24), TimeDelta::hours(8)) };
    let after = query.after.map(DefinitionId::new);
    long_page(
        context,
        ("Timeline", "/"),
        move |app| app.timeline(before, ahead, after.as_ref(), ROWS as usize),
        move |found, attention, context| views::timeline::timeline(found, attention, week, context),
    )
    .await
}

/// The query `?after=2026-11-25T09:00:00Z&job=ID`, which continues after this job's occurrence at that time.
#[derive(Deserialize)]
pub(super) struct NextQuery {
    after: Option<DateTime<Utc>>,
    #[serde(default)]
    job: String,
}

pub(super) async fn next(context: Context, Query(query): Query<NextQuery>) -> Response {
    let until = (context.now + TimeDelta::hours(24)).to_rfc3339();
    page(
        context,
        ("Next", "/next"),
        move |app| {
            let (from, each) =
                (query.after.map(|after| after.to_rfc3339()), OccurrenceLimit::Few(views::next::ROWS + 1));
            let next = Command::Next { count: MAX_UPCOMING, from, until: Some(until), ids: Vec::new(), each };
            let mut next = execute!(app, next, Outcome::Upcoming(next) => next);
            let is_after = |one: &Occurrence| {
                query.after.is_none_or(|after| (after, &*query.job) < (one.at, one.definition.id.as_str()))
            };
            next.occurrences.retain(is_after);
            // Only the first page lists the routines.
            let routines = if query.after.is_none() { views::next::routines(app)? } else { (Vec::new(), 0) };
            Ok((next, routines))
        },
        |(next, routines), attention, context| views::next::next(next, routines, &attention.status, context),
    )
    .await
}

pub(super) async fn jobs(context: Context) -> Response {
    page(
        context,
        ("Jobs", "/jobs"),
        |app| {
            let list = |kind| Ok(execute!(app, Command::List(kind), Outcome::Jobs(list) => list));
            Ok([list(Kind::Routine)?, list(Kind::Reminder)?, list(Kind::Webhook)?])
        },
        views::jobs::jobs,
    )
    .await
}

pub(super) async fn job(context: Context, Path(id): Path<String>) -> Response {
    let title = id.clone();
    page(context, (&title, "/jobs"), move |app| JobParts::of(&id, app), views::job::job).await
}

pub(super) async fn edit(context: Context, Path(id): Path<String>) -> Response {
    let title = format!("Edit {id}");
    page(
        context,
        (&title, "/jobs"),
        move |app| {
            let file = Command::FileOf { kind: None, id: id.clone() };
            Ok(execute!(app, file, Outcome::File { file, text } => (id, file, text)))
        },
        |(id, file, text), _, context| views::edit::edit((id, file), &hash(text), text, None, context),
    )
    .await
}

/// Shows what a run would get. For a job with a gate, it first shows the gate and a button that runs it.
pub(super) async fn dry_run(context: Context, Path(id): Path<String>) -> Response {
    let title = format!("Dry run of {id}");
    page(
        context,
        (&title, "/jobs"),
        move |app| {
            let job = execute!(app, Command::Show { kind: None, id: id.clone() }, Outcome::Job(job) => job);
            if let Some(gate) = &job.definition.gate {
                return Ok(Err((id, gate.clone())));
            }
            Ok(Ok(execute!(app, Command::DryRun { id }, Outcome::DryRun(found) => found)))
        },
        |found, _, context| match found {
            Ok(found) => views::dry_run::dry_run(found),
            Err((id, gate)) => views::dry_run::with_gate(id, gate, context),
        },
    )
    .await
}

/// Shows the dry run including the gate's verdict.
pub(super) async fn dry_run_with_gate(context: Context, id: String) -> Response {
    let title = format!("Dry run of {id}");
    page(
        context,
        (&title, "/jobs"),
        move |app| Ok(execute!(app, Command::DryRun { id }, Outcome::DryRun(found) => found)),
        |found, _, _| views::dry_run::dry_run(found),
    )
    .await
}

/// The query `?job=ID&failed=on&before=RUN`.
#[derive(Clone, Default, Deserialize)]
pub(super) struct RunsQuery {
    #[serde(default)]
    pub job: String,
    #[serde(default)]
    pub failed: Option<String>,
    #[serde(default)]
    pub before: Option<String>,
}

pub(super) async fn runs(context: Context, Query(query): Query<RunsQuery>) -> Response {
    let filter = RunFilter {
        id: (!query.job.is_empty()).then(|| DefinitionId::new(&*query.job)),
        failed: query.failed.is_some(),
        before: query.before.clone().map(RunId::new),
        limit: Some(ROWS + 1),
    };
    let before = query.before.clone();
    page(
        context,
        ("Runs", "/runs"),
        move |app| {
            let runs = execute!(app, Command::Runs(filter), Outcome::Runs { runs, .. } => runs);
            // An unknown run yields no rows; report it.
            if let Some(run) = before.filter(|_| runs.is_empty()) {
                app.execute(Command::Run { run, full: false })?;
            }
            Ok((app.zones(&runs), runs))
        },
        |(zones, runs), _, context| views::runs::runs(runs, zones, &query, context),
    )
    .await
}

pub(super) async fn run(context: Context, Path(run): Path<String>) -> Response {
    let title = format!("Run {run}");
    page(
        context,
        (&title, "/runs"),
        move |app| {
            let details = execute!(app, Command::Run { run, full: true }, Outcome::Run(details) => details);
            let why = Command::Why { id: details.run.run.to_string(), at: None };
            // Runs of the conversation have no explanation: the person said something.
            let why = app.execute(why).ok().and_then(|why| if let Outcome::Why(why) = why { Some(why) } else { None });
            let zone = app.zones(std::slice::from_ref(&details.run)).into_values().next();
            let (asks, _) = app.questions(Some(&details.run.run))?;
            Ok(RunParts { details: *details, why, zone, asks })
        },
        |parts, _, context| views::run::run(parts, context),
    )
    .await
}

/// The query `?since=30`.
#[derive(Deserialize)]
pub(super) struct SinceQuery {
    #[serde(default)]
    since: Option<u64>,
}

impl SinceQuery {
    /// Returns the number of days and their span. The default is 30, and 0 means all.
    fn span(&self) -> (u64, Option<Duration>) {
        let days = self.since.unwrap_or(30).min(3_650);
        (days, (days > 0).then(|| Duration::from_secs(days * 86_400)))
    }
}

pub(super) async fn refusals(context: Context, Query(query): Query<SinceQuery>) -> Response {
    let (days, since) = query.span();
    page(
        context,
        ("Refusals", "/refusals"),
        move |app| {
            let calls = execute!(app, Command::RefusedCalls { since: since.map(Since::Span) }, Outcome::RefusedCalls(calls) => calls);
            Ok(views::refusals::Refused::of(calls, app))
        },
        |calls, attention, context| views::refusals::refusals(calls, &attention.status.refused, days, context),
    )
    .await
}

/// The query `?job=ID&tool=Bash&input=git push`.
#[derive(Clone, Default, Deserialize)]
pub(super) struct PolicyQuery {
    #[serde(default)]
    pub job: String,
    #[serde(default)]
    pub tool: String,
    #[serde(default)]
    pub input: String,
}

pub(super) async fn policy(context: Context, Query(query): Query<PolicyQuery>) -> Response {
    let asked = query.clone();
    page(
        context,
        ("Policy", "/policy"),
        move |app| views::policy::Tried::of(&asked, app),
        |tried, _, context| views::policy::policy(tried, &query, context),
    )
    .await
}

/// The query `?since=30&all=on`.
#[derive(Deserialize)]
pub(super) struct CostsQuery {
    #[serde(default)]
    since: Option<u64>,
    #[serde(default)]
    all: Option<String>,
}

pub(super) async fn costs(context: Context, Query(query): Query<CostsQuery>) -> Response {
    let (days, since) = SinceQuery { since: query.since }.span();
    let rows = if query.all.is_some() { usize::MAX } else { ROWS as usize };
    long_page(
        context,
        ("Costs", "/costs"),
        move |app| {
            let budgets = execute!(app, Command::Budget, Outcome::Budget(budgets) => budgets);
            let by = [CostsBy::Day, CostsBy::Job, CostsBy::Model];
            let (costs, months) = rayon::join(|| app.costs(by, since), || app.months());
            Ok((costs?, months?, budgets))
        },
        move |(costs, months, budgets), _, context| {
            views::costs::costs(costs, (months, budgets), (days, rows), context)
        },
    )
    .await
}

/// The query `?words=dentist&before=NUMBER`.
#[derive(Clone, Default, Deserialize)]
pub(super) struct InboxQuery {
    #[serde(default)]
    pub words: String,
    #[serde(default)]
    pub before: Option<i64>,
}

pub(super) async fn inbox(context: Context, Query(query): Query<InboxQuery>) -> Response {
    let asked = query.clone();
    page(
        context,
        ("Inbox", "/inbox"),
        move |app| app.search_messages(asked.words.trim(), asked.before, ROWS + 1),
        |messages, _, context| views::inbox::inbox(messages, ROWS as usize, &query, context),
    )
    .await
}

/// The query `?last=30`.
#[derive(Deserialize)]
pub(super) struct ChatQuery {
    last: Option<usize>,
}

pub(super) async fn chat(context: Context, Query(query): Query<ChatQuery>) -> Response {
    let last = query.last.unwrap_or(EXCHANGES_FIRST).clamp(1, EXCHANGES);
    conversation(context, last, UnsentMessage::default()).await
}

async fn conversation(context: Context, last: usize, untaken: UnsentMessage) -> Response {
    page(
        context,
        ("Chat", "/chat"),
        move |app| app.exchanges(last + 1),
        |found, attention, context| views::chat::chat(found, last, &untaken, attention, context),
    )
    .await
}

/// Shows the conversation with a message that failed, to be sent again.
pub(super) async fn not_said(context: Context, untaken: UnsentMessage, status: StatusCode) -> Response {
    let mut answer = conversation(context, EXCHANGES_FIRST, untaken).await;
    *answer.status_mut() = status;
    answer
}

pub(super) async fn questions(context: Context) -> Response {
    page(
        context,
        ("Questions", ""),
        |app| app.questions(None),
        |(waiting, ended), _, context| views::questions::questions(waiting, ended, context),
    )
    .await
}

pub(super) async fn service(context: Context) -> Response {
    page(
        context,
        ("Service", ""),
        |app| Ok(execute!(app, Command::Channels, Outcome::Channels(channels) => channels)),
        |channels, attention, context| views::service::service(channels, attention, context),
    )
    .await
}

pub(super) async fn hosts(context: Context) -> Response {
    page(context, ("Hosts", "/hosts"), |_| Ok(()), |(), attention, context| views::hosts::hosts(attention, context))
        .await
}

/// Shows the form of a file that was not saved, with its problems and, if somebody else has changed the file, its text.
pub(super) async fn not_saved(
    context: Context,
    (id, file, seen, new): (String, std::path::PathBuf, String, String),
    problems: Vec<(String, Option<String>)>,
) -> Response {
    let (title, name, opened) = (format!("Edit {id}"), id.clone(), seen.clone());
    let mut answer = page(
        context,
        (&title, "/jobs"),
        move |app| {
            let now = app.execute(Command::FileOf { kind: None, id: name });
            let now = now.ok().and_then(|now| if let Outcome::File { text, .. } = now { Some(text) } else { None });
            Ok(Unsaved { problems, changed: now.filter(|now| hash(now) != opened) })
        },
        |unsaved, _, context| views::edit::edit((&id, &file), &seen, &new, Some(unsaved), context),
    )
    .await;
    *answer.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    answer
}
