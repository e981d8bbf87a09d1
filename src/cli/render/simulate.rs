//! Renders the predicted outcomes of occurrences.

use serde_json::{Value, json};

use super::View;
use crate::app::words::money;
use crate::app::{PredictedOccurrence, Prediction, RunEstimate, Simulated, times};
use crate::channel::terminal::plain;
use crate::cli::output::{Cell, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};

/// Renders a line for each occurrence, then the assumptions.
pub(super) fn simulated(simulated: &Simulated, view: &View, output: &mut Output) {
    if view.json {
        output.json(&as_json(simulated, view));
        return;
    }
    // Jobs that fire on events have notes of their own below.
    if simulated.occurrences.is_empty() && (!simulated.jobs.is_empty() || simulated.on_events.is_empty()) {
        output.note("nothing is due");
    }
    let rows: Vec<Vec<Cell>> = simulated.occurrences.iter().map(|one| row(one, simulated, view)).collect();
    output.table(&rows);
    if simulated.is_truncated {
        output.note(format!("{}: only the first {} are shown", paint(WARN, "cut"), simulated.occurrences.len()));
    }
    if simulated.is_paused {
        output.note(format!(
            "{}: everything is paused; nothing of this happens before `ollim-bot resume`",
            paint(HINT, "note")
        ));
    }
    let (known, unknown): (Vec<&RunEstimate>, Vec<&RunEstimate>) = simulated.jobs.iter().partition(|job| job.runs > 0);
    for RunEstimate { definition, takes, costs, tokens, runs, .. } in known {
        let past = if *runs == 1 { "its one past run".to_owned() } else { format!("the median of {runs} past runs") };
        let id = plain(definition.id.as_str());
        let tokens = if *tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
        output.note(format!("{id}: each run is taken for {past}: {}, {}{tokens}", times::span(*takes), money(*costs)));
    }
    if !unknown.is_empty() {
        output.note(plain(&assumed(&unknown)));
    }
    for (id, waits) in &simulated.on_events {
        output.note(plain(&format!("{id} fires {waits}, which is not foreseen")));
    }
    for (id, conditions) in &simulated.conditions {
        output.note(plain(&format!("{id}: each run begins only if {conditions}")));
    }
    for fault in &simulated.faults {
        output.note(plain(&format!("{}: {}", fault.file.display(), fault.message)));
    }
    if !simulated.left_out.is_empty() {
        let ids: Vec<&str> = simulated.left_out.iter().map(|id| id.as_str()).collect();
        output.note(plain(&format!("left out, disabled or paused: {}", ids.join(", "))));
    }
    if simulated.unread > 0 {
        output.note(format!(
            "left out: {} jobs in the database, which fall due later than the others there",
            simulated.unread
        ));
    }
}

/// Says what is assumed of jobs without a past run.
fn assumed(unknown: &[&RunEstimate]) -> String {
    let shown = |job: &&RunEstimate| {
        let (id, is_free) = (&job.definition.id, job.definition.is_without_agent());
        match job.costs > 0.0 {
            true => format!("{id} ({})", money(job.costs)),
            false if is_free => format!("{id} (nothing)"),
            false => format!("{id} (no cap, so $0.00)"),
        }
    };
    let jobs: Vec<String> = unknown.iter().map(shown).collect();
    let tokens = match unknown.iter().any(|job| job.tokens > 0) {
        true => "a tenth of the day's tokens",
        false => "no tokens",
    };
    let jobs = jobs.join(", ");
    format!(
        "no completed run is known, so a run is taken to last no time, to take {tokens} and to cost its cap: {jobs}"
    )
}

fn row(one: &PredictedOccurrence, simulated: &Simulated, view: &View) -> Vec<Cell> {
    let RunEstimate { definition, .. } = &simulated.jobs[one.subject];
    let zone = definition.zone;
    let (word, style, text) = match &one.prediction {
        Prediction::Runs { begins, ends, late, ended } => {
            let late = late.map(|late| format!("begins {}: {late}", times::local(*begins, view.now, zone)));
            let ended = ended.then(|| format!("a newer one ends it {}", times::local(*ends, view.now, zone)));
            let clock = simulated.jobs[one.subject].clock_words(one.at).map(str::to_owned);
            let text = late.into_iter().chain(ended).chain(clock).collect::<Vec<_>>().join("; ");
            ("runs", GOOD, text)
        }
        Prediction::Asks { since, until } => {
            let begins =
                if *since > one.at { format!("{}, ", times::local(*since, view.now, zone)) } else { String::new() };
            let until = times::local(*until, view.now, zone);
            ("asks", WARN, format!("{begins}skipped unless you approve it by {until}"))
        }
        Prediction::Skipped(why) => ("skipped", WARN, why.clone()),
        Prediction::SkippedSince(from, why) => {
            ("skipped", WARN, format!("all since {}: {why}", times::local(*from, view.now, zone)))
        }
    };
    vec![
        times::local(one.at, view.now, zone).into(),
        Cell::new(definition.id.as_str(), STRONG),
        Cell::new(word, style),
        Cell::new(text, FAINT),
    ]
}

/// Returns the prediction as JSON with stable keys.
fn as_json(simulated: &Simulated, view: &View) -> Value {
    let at = |at| times::rfc3339(at, view.zone);
    let occurrences = simulated.occurrences.iter().map(|one| {
        let job = &simulated.jobs[one.subject];
        let mut value = json!({ "id": job.definition.id, "at": at(one.at), "clock": job.clock_words(one.at) });
        match &one.prediction {
            Prediction::Runs { begins, ends, late, ended } => {
                value["fate"] = "runs".into();
                value["begins"] = at(*begins).into();
                value["ends"] = at(*ends).into();
                value["late"] = json!(late);
                value["ended_by_newer"] = json!(ended);
            }
            Prediction::Asks { since, until } => {
                value["fate"] = "asks".into();
                value["begins"] = at(*since).into();
                value["until"] = at(*until).into();
            }
            Prediction::Skipped(why) => {
                value["fate"] = "skipped".into();
                value["reason"] = why.clone().into();
            }
            Prediction::SkippedSince(from, why) => {
                value["fate"] = "skipped".into();
                value["reason"] = why.clone().into();
                value["since"] = at(*from).into();
            }
        }
        value
    });
    let jobs = simulated.jobs.iter().map(|RunEstimate { definition, takes, costs, tokens, runs, .. }| {
        let takes = takes.num_milliseconds();
        json!({ "id": definition.id, "takes_ms": takes, "cost_usd": costs, "tokens": tokens, "past_runs": runs })
    });
    let on_events = simulated.on_events.iter().map(|(id, waits)| json!({ "id": id, "waits_for": waits }));
    json!({
        "from": at(simulated.from),
        "until": at(simulated.until),
        "occurrences": occurrences.collect::<Vec<_>>(),
        "cut": simulated.is_truncated,
        "paused": simulated.is_paused,
        "jobs": jobs.collect::<Vec<_>>(),
        "on_events": on_events.collect::<Vec<_>>(),
        "conditions": simulated.conditions.iter().map(|(id, words)| json!({ "id": id, "words": words })).collect::<Vec<_>>(),
        "faults": simulated.faults.iter().map(|fault| json!({ "file": fault.file, "message": fault.message })).collect::<Vec<_>>(),
        "left_out": simulated.left_out,
        "unread": simulated.unread,
    })
}
