//! The page's actions: each form is one command, and redirects to the page that shows its result.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::context::Context;
use super::error;
use super::guard::Posted;
use super::pages::{self, execute, not_saved};
use super::parts::{link, run};
use super::sessions::hash;
use super::views::chat::UnsentMessage;
use crate::app::{Command, Outcome, ServiceCommand, ServiceReply};
use crate::definition::Problem;
use crate::journal::{Answer, RunId};
use crate::refusal::Refusal;

/// The name of the page as an answer's channel in the record.
const PAGE: &str = "page";

/// Redirects to a page, or shows the refusal.
fn redirect(done: Result<String, Refusal>) -> Response {
    match done {
        Ok(path) => Redirect::to(&path).into_response(),
        Err(refusal) => error::refused(&refusal),
    }
}

/// Fires, pauses, resumes, snoozes or retries a job.
pub(super) async fn job(context: Context, Path((id, action)): Path<(String, String)>, posted: Posted) -> Response {
    let page = link("/jobs/", &id, "");
    let command = match &*action {
        "fire" => Command::Fire { id },
        "pause" => Command::SetEnabled { kind: None, id, enabled: false },
        "resume" => Command::SetEnabled { kind: None, id, enabled: true },
        "go-on" => Command::Resume { id },
        "retry" => Command::Retry { id },
        "snooze" => match posted.get("span").parse::<humantime::Duration>() {
            Ok(span) => Command::Snooze { id, span: Duration::from(span) },
            Err(_) => return error::refused(&Refusal::user("write a span, such as `2h`")),
        },
        _ => return error::not_found().await,
    };
    let done = context.ask(move |app| {
        Ok(match app.execute(command)? {
            Outcome::Service(ServiceReply::Fired { run: fired, .. }) => run(fired.as_str()),
            _ => page,
        })
    });
    redirect(done.await)
}

/// Ends a run.
pub(super) async fn cancel_run(context: Context, Path(id): Path<String>, _posted: Posted) -> Response {
    let command = Command::Service(ServiceCommand::CancelRun { run: RunId::new(&*id) });
    redirect(context.ask(move |app| app.execute(command).map(|_| run(&id))).await)
}

/// Makes a dry run of a job that also runs the job's gate.
pub(super) async fn dry_run(context: Context, Path(id): Path<String>, _posted: Posted) -> Response {
    pages::dry_run_with_gate(context, id).await
}

/// Saves an edited file if it is valid and nobody else has changed it.
pub(super) async fn save(context: Context, Path(id): Path<String>, posted: Posted) -> Response {
    let (seen, new) = (posted.get("seen").to_owned(), posted.get("new").replace("\r\n", "\n"));
    let (name, text, expected) = (id.clone(), new.clone(), seen.clone());
    let saved = context.ask(move |app| {
        let file = Command::FileOf { kind: None, id: name };
        let (file, old) = execute!(app, file, Outcome::File { file, text } => (file, text));
        if hash(&old) != expected {
            return Ok((file, Outcome::ChangedMeanwhile));
        }
        // A form has one kind of line end; the file keeps its own.
        let new = if old.contains("\r\n") { text.replace('\n', "\r\n") } else { text };
        let done = app.execute(Command::Replace { file: file.clone(), old, new })?;
        Ok((file, done))
    });
    let shown = |problem: &Problem| {
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        // A problem of the whole file is at its first line.
        let line = new.lines().nth((problem.line as usize).saturating_sub(1)).filter(|_| problem.line > 1);
        (format!("line {}: {}{hint}", problem.line, problem.message), line.map(str::to_owned))
    };
    let (file, problems) = match saved.await {
        Ok((file, Outcome::Invalid(problems))) => (file, problems.iter().map(shown).collect()),
        Ok((file, Outcome::ChangedMeanwhile)) => {
            let why =
                "the file was changed by somebody else since you opened it: copy what you wrote, and open it again";
            (file, vec![(why.to_owned(), None)])
        }
        Ok(_) => return Redirect::to(&link("/jobs/", &id, "")).into_response(),
        Err(refusal) => (PathBuf::from(&id), vec![(refusal.to_string(), None)]),
    };
    not_saved(context, (id, file, seen, new), problems).await
}

/// Sends a message to the bot.
pub(super) async fn say(context: Context, posted: Posted) -> Response {
    let text = posted.get("text").trim().to_owned();
    if text.is_empty() {
        return Redirect::to("/chat").into_response();
    }
    let said = text.clone();
    match context.ask(move |app| app.say(&said)).await {
        Ok(_) => Redirect::to("/chat").into_response(),
        Err(refusal) => {
            let untaken = UnsentMessage { text, why: error::why(&refusal) };
            pages::not_said(context, untaken, error::status(&refusal)).await
        }
    }
}

/// The query of a form that returns to a run: `?run=…`.
#[derive(Deserialize)]
pub(super) struct ReturnQuery {
    #[serde(default)]
    run: Option<String>,
}

/// Answers a question.
pub(super) async fn answer(
    context: Context,
    Path(number): Path<i64>,
    Query(back): Query<ReturnQuery>,
    posted: Posted,
) -> Response {
    let answer = match posted.get("answer") {
        "once" => Answer::Once,
        "run" => Answer::Run,
        "always" => Answer::Always,
        "deny" => Answer::Deny,
        _ => return error::refused(&Refusal::user("there is no such answer")),
    };
    let sentence = Some(posted.get("sentence").to_owned()).filter(|text| !text.is_empty() && answer == Answer::Deny);
    let command = Command::Answer { question: number, answer, sentence, channel: PAGE.to_owned() };
    let place = back.run.map_or_else(|| "/questions".to_owned(), |id| run(&id));
    redirect(context.ask(move |app| app.execute(command).map(|_| place)).await)
}

/// Pauses or resumes the service.
pub(super) async fn service(context: Context, posted: Posted) -> Response {
    let command = match posted.get("do") {
        "pause" => ServiceCommand::Pause,
        "resume" => ServiceCommand::Resume { id: None },
        _ => return error::refused(&Refusal::user("there is no such button")),
    };
    let done = context
        .ask(move |app| execute!(app, Command::Service(command), Outcome::Service(_) => Ok("/service".to_owned())));
    redirect(done.await)
}
