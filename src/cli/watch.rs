//! Commands that show events as they happen, until a run ends or the person stops them.

use super::args::Color;
use super::output::Output;
use super::render::{Events, View, inbox_message, inbox_so_far, log_line};
use crate::app::{App, Command, LogFilter, Outcome};
use crate::journal::{EventKind, RunId, RunState};
use crate::refusal::Refusal;

/// `runs follow`: follows one run to its end, or all events. The exit code is 1 if the run did not do its work.
pub(super) fn runs(
    target: Option<&str>,
    app: &App,
    view: &View,
    color: Color,
    output: &mut Output,
) -> Result<(), Refusal> {
    let watched = app.watch(target)?;
    let mut events = if watched.run.is_some() { Events::of_run(view) } else { Events::of_all(view) };
    let mut ended = None;
    for event in watched.events {
        let event = event?;
        if let EventKind::RunEnded { outcome, .. } = &event.kind {
            ended = Some(*outcome);
        }
        events.write(&event, output);
        if !output.print_now(color)? {
            return Ok(());
        }
    }
    match (watched.run, ended) {
        (None, _) => output.note("the service has ended"),
        (Some(_), Some(RunState::Completed)) => {}
        (Some(_), Some(_)) => output.exit = 1,
        (Some(run), None) => return Err(unfinished(&run)),
    }
    Ok(())
}

/// `inbox --follow`: shows the last `count` messages, and new ones as they arrive.
pub(super) fn inbox(count: u32, app: &App, view: &View, color: Color, output: &mut Output) -> Result<(), Refusal> {
    // Listening begins first. A message that arrives meanwhile may come twice, and is shown once.
    let new = app.watch_messages();
    let mut last = 0;
    if let Outcome::Inbox(messages) = app.execute(Command::Inbox { count })? {
        last = messages.iter().map(|message| message.number).max().unwrap_or_default();
        inbox_so_far(&messages, view, output);
    }
    if !output.print_now(color)? {
        return Ok(());
    }
    for event in new? {
        let event = event?;
        if matches!(event.kind, EventKind::Message { message, .. } if message <= last) {
            continue;
        }
        inbox_message(&event, view, output);
        if !output.print_now(color)? {
            return Ok(());
        }
    }
    output.note("the service has ended");
    Ok(())
}

/// `logs`: shows the service's log and, with `follow`, new lines.
pub(super) fn logs(
    filter: &LogFilter,
    follow: bool,
    app: &App,
    view: &View,
    color: Color,
    output: &mut Output,
) -> Result<(), Refusal> {
    let mut log = app.log(filter)?;
    log.lines.iter().for_each(|line| log_line(line, view, output));
    if log.lines.is_empty() && !follow {
        output.note("nothing was logged");
    }
    while follow && output.print_now(color)? {
        log_line(&log.next_line(), view, output);
    }
    Ok(())
}

fn unfinished(run: &RunId) -> Refusal {
    Refusal::environment(format!("the service ended before run {run} did"))
        .hint(format!("start it: `ollim-bot run`; `ollim-bot runs show {run}` then says what became of it"))
}
