//! Renders runs and messages.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::events::{self, Events};
use super::{View, style};
use crate::app::words::{self, call, cause, late, money, outcome, retries, taken, took};
use crate::app::{RunDetails, times};
use crate::channel::terminal::{plain, plain_lines, wrapped};
use crate::cli::output::{Cell, FAINT, Output, STRONG, paint};
use crate::config::CONSOLE;
use crate::journal::{Delivery, DeliveryState, Event, EventKind, Message, Occasion, RunFilter, RunRecord};

/// Lists runs, newest first.
pub(super) fn list(runs: &[RunRecord], filter: &RunFilter, view: &View, output: &mut Output) {
    let (now, zone) = (view.now, view.zone);
    if view.json {
        output.json(&runs.iter().map(|run| as_json(run, zone)).collect::<Vec<_>>());
        return;
    }
    if runs.is_empty() {
        let failed = if filter.failed { " that failed" } else { "" };
        let whose = filter.id.as_ref().map(|id| format!(" of `{}`", plain(id.as_str()))).unwrap_or_default();
        output.note(format!("no runs{whose}{failed} yet"));
        return;
    }
    let mut rows = vec![header(&["RUN", "JOB", "SCHEDULED", "LATE", "TOOK", "OUTCOME", ""])];
    for run in runs {
        rows.push(vec![
            Cell::new(run.run.as_str(), STRONG),
            format!("{} {}", run.kind, run.id).into(),
            times::local(run.scheduled, now, zone).into(),
            late(run).into(),
            took(run).into(),
            Cell::new(outcome(run, now), style(words::emphasis(run))),
            Cell::new(remarks(run, now, zone), FAINT),
        ]);
    }
    // `runs show` also has the delay and the duration.
    output.table_without(&rows, &[3, 4]);
}

/// Shows one run: its facts and events, and the file as it fired.
pub(super) fn show(details: RunDetails, view: &View, output: &mut Output) {
    let RunDetails { run, events, full, results, .. } = details;
    let (run, now, zone) = (&run, view.now, view.zone);
    if view.json {
        let mut value = as_json(run, zone);
        value["events"] = events.iter().map(|event| events::as_json(event, view)).collect();
        value["transcript"] = json!(run.transcript);
        value["definition"] = json!(run.definition);
        output.json(&value);
        return;
    }
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            output.facts(&[vec![Cell::new(format!("{name:<10}"), FAINT), value.into()]]);
        }
    };
    let moment = |at: Option<DateTime<Utc>>| at.map(|at| times::local_and_relative(at, now, zone)).unwrap_or_default();
    fact("run", run.run.to_string());
    fact("job", format!("{} {}", run.kind, run.id));
    fact("outcome", outcome(run, now));
    fact("error", run.error.clone().unwrap_or_default());
    fact("again", moment(run.retry_at));
    fact("scheduled", moment(Some(run.scheduled)));
    fact("fired", run.occasion.as_ref().map(Occasion::words).unwrap_or_default());
    let from = run.covers_from.map(|from| times::local(from, now, zone));
    let all = from.map(|from| format!("all from {from} to {}", times::local(run.scheduled, now, zone)));
    fact("stands for", all.unwrap_or_default());
    fact("started", moment(run.started));
    fact("ended", moment(run.ended));
    fact("late", late(run));
    fact("took", took(run));
    fact("attempt", if run.attempt > 1 { run.attempt.to_string() } else { String::new() });
    let version = run.client_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    fact("client", run.client.as_ref().map(|name| format!("{name}{version}")).unwrap_or_default());
    fact("host", run.host.clone().unwrap_or_default());
    fact("API", retries(run));
    fact("turns", run.turns.map(|turns| turns.to_string()).unwrap_or_default());
    fact("model", run.model.clone().unwrap_or_default());
    fact("cost", taken(run.cost_usd, run.tokens));
    if let Some(path) = &run.transcript {
        // On one line, so that it can be copied.
        output.line(format!("{}  {}", paint(FAINT, "transcript"), plain(&path.display().to_string())));
    }
    if !events.is_empty() {
        output.line("");
        output.line(paint(STRONG, "What happened"));
        let mut shown = if full { Events::in_full(view, results) } else { Events::of_run(view) };
        events.iter().for_each(|event| shown.write(event, output));
    }
    if !run.denials.is_empty() {
        output.line("");
        output.line(paint(STRONG, &format!("Denied ({})", run.denials.len())));
        for denial in &run.denials {
            output.facts(&[vec!["".into(), call(&denial.tool, &denial.input).into()]]);
            output.facts(&[vec!["".into(), "".into(), Cell::new(&denial.reason, FAINT)]]);
        }
    }
    if let Some(text) = &run.definition {
        output.line("");
        output.line(paint(STRONG, "The file as it fired"));
        output.verbatim(plain_lines(text.trim_end()));
    }
}

/// Lists the messages that the bot sent, newest last.
pub(super) fn inbox(messages: &[Message], view: &View, output: &mut Output) {
    let zone = view.zone;
    if view.json {
        output.json(&messages.iter().map(|message| message_json(message, zone)).collect::<Vec<_>>());
        return;
    }
    if messages.is_empty() {
        output.note("nothing was said yet");
    }
    for message in messages {
        let mut head = times::local(message.at, view.now, zone);
        if let Some(id) = &message.id {
            head.push_str(&format!("  {id}"));
        }
        let state = delivery_words(message, view);
        if !state.is_empty() {
            head.push_str(&format!("  ({state})"));
        }
        output.facts(&[vec![Cell::new(head, FAINT)]]);
        indented(&message.text, output);
    }
}

/// Describes the deliveries of a message, unless the console alone has it, and their errors.
fn delivery_words(message: &Message, view: &View) -> String {
    if message.deliveries.is_empty() {
        return if message.delivered.is_none() { "not delivered yet".to_owned() } else { String::new() };
    }
    let words = |delivery: &Delivery| {
        let name = plain(&delivery.channel);
        let why = delivery.error.as_ref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
        match (delivery.state, delivery.held(view.now)) {
            (DeliveryState::Delivered, _) if delivery.channel == CONSOLE => None,
            (DeliveryState::Delivered, _) => Some(format!("delivered on {name}")),
            (DeliveryState::Waiting, Some(until)) => {
                Some(format!("held until {} for {name}", times::local(until, view.now, view.zone)))
            }
            (DeliveryState::Waiting, None) => Some(format!("not delivered on {name} yet{why}")),
            (DeliveryState::Failed, _) => Some(format!("not delivered on {name}{why}")),
        }
    };
    message.deliveries.iter().filter_map(words).collect::<Vec<_>>().join("; ")
}

/// Renders a new message.
/// Shows the messages before those that are followed. As JSON, each is a line, as each of those is.
pub(in super::super) fn inbox_so_far(messages: &[Message], view: &View, output: &mut Output) {
    if !view.json {
        return inbox(messages, view, output);
    }
    for message in messages {
        output.verbatim(message_json(message, view.zone).to_string());
    }
}

pub(in super::super) fn inbox_message(event: &Event, view: &View, output: &mut Output) {
    let EventKind::Message { message: number, text } = &event.kind else { return };
    if view.json {
        output.verbatim(json!({ "number": number, "at": times::rfc3339(event.at, view.zone), "run": event.run, "id": event.id, "text": text }).to_string());
        return;
    }
    let id = event.id.as_ref().map(|id| format!("  {id}")).unwrap_or_default();
    output.table(&[vec![Cell::new(format!("{}{id}", times::local(event.at, view.now, view.zone)), FAINT)]]);
    indented(text, output);
}

fn indented(text: &str, output: &mut Output) {
    let width = output.width.map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    for line in plain_lines(text.trim()).lines().flat_map(|line| wrapped(line, width)) {
        output.line(format!("  {line}").trim_end());
    }
}

/// Returns a run as JSON with stable keys.
pub(in super::super) fn as_json(run: &RunRecord, zone: Tz) -> Value {
    let time = |at: Option<DateTime<Utc>>| at.map(|at| times::rfc3339(at, zone));
    let mut shown = json!({
        "run": run.run,
        "id": run.id,
        "kind": run.kind,
        "scheduled": times::rfc3339(run.scheduled, zone),
        "started": time(run.started),
        "ended": time(run.ended),
        "outcome": run.outcome,
        "attempt": run.attempt,
        "late_ms": run.late_ms,
        "cost_usd": run.cost_usd,
        "turns": run.turns,
        "model": run.model,
        "tokens": run.tokens,
        "api_retries": run.api_retries,
        "api_fault": run.api_fault,
        "client": run.client,
        "client_version": run.client_version,
        "denials": run.denials,
        "error": run.error,
        "retry_at": time(run.retry_at),
        "covers_from": time(run.covers_from),
        "occasion": run.occasion,
        "by_hand": run.by_hand,
    });
    // With a single host the key is omitted.
    if let Some(host) = &run.host {
        shown["host"] = json!(host);
    }
    shown
}

fn message_json(message: &Message, zone: Tz) -> Value {
    json!({
        "number": message.number,
        "at": times::rfc3339(message.at, zone),
        "run": message.run,
        "id": message.id,
        "text": message.text,
        "urgency": message.urgency,
        "delivered": message.delivered.map(|at| times::rfc3339(at, zone)),
        "deliveries": message.deliveries.iter().map(|delivery| json!({
            "channel": delivery.channel,
            "state": delivery.state,
            "held_until": delivery.held_until.map(|at| times::rfc3339(at, zone)),
            "message": delivery.external,
            "error": delivery.error,
            "ended": delivery.ended.map(|at| times::rfc3339(at, zone)),
        })).collect::<Vec<_>>(),
    })
}

fn header(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| Cell::new(name, FAINT)).collect()
}

fn remarks(run: &RunRecord, now: DateTime<Utc>, zone: Tz) -> String {
    let mut remarks = words::remarks(run, now, zone);
    if let Some(cost) = run.cost_usd.filter(|cost| *cost > 0.0) {
        remarks.push(money(cost));
    }
    remarks.extend(cause(run));
    remarks.join(", ")
}
