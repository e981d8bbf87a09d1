//! Records in words that all interfaces share.

use std::collections::HashMap;

use bytesize::ByteSize;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::Value;

use super::times;
use crate::agent::{self, Observation, Tokens};
use crate::definition::{Definition, Need};
pub use crate::definition::{grouped, money};
use crate::journal::{EventKind, HostRecord, RunRecord, RunState, ended_unseen};

/// The emphasis of a text. An interface has a style for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Like the text around it.
    Plain,
    /// Emphasized.
    Strong,
    /// Less prominent than the text around it.
    Faint,
    /// All is well.
    Good,
    /// A person may want to look at it.
    Warn,
    /// A person has to look at it.
    Bad,
}

/// Returns the name of a state, in words: `timed out`. A claimed run that has not begun is `waiting`.
#[must_use]
pub fn state(state: RunState) -> String {
    match state {
        RunState::Claimed => "waiting".to_owned(),
        state => state.as_str().replace('_', " "),
    }
}

/// Returns the state of a run, and whether it is retried.
#[must_use]
pub fn outcome(run: &RunRecord, now: DateTime<Utc>) -> String {
    let word = state(run.outcome);
    match run.retry_at {
        None => word,
        Some(at) if at > now => format!("{word}, again {}", times::relative(at, now)),
        // Its time has come, but it waits for a slot, for `resume`, or for the service.
        Some(_) => format!("{word}, again as soon as it can"),
    }
}

/// Returns [`outcome`], and why.
#[must_use]
pub fn outcome_and_cause(run: &RunRecord, now: DateTime<Utc>) -> String {
    let cause = cause(run).map(|cause| format!(": {cause}"));
    format!("{}{}", outcome(run, now), cause.unwrap_or_default())
}

/// Returns the tone for the outcome of a run.
#[must_use]
pub fn emphasis(run: &RunRecord) -> Emphasis {
    match run.outcome {
        RunState::Completed => Emphasis::Good,
        RunState::Failed | RunState::TimedOut if run.retry_at.is_none() => Emphasis::Bad,
        RunState::Failed | RunState::TimedOut | RunState::Interrupted | RunState::Cancelled => Emphasis::Warn,
        RunState::Claimed | RunState::Running | RunState::Skipped => Emphasis::Plain,
    }
}

/// Returns why the client itself retried; empty if it did not.
#[must_use]
pub fn retries(run: &RunRecord) -> String {
    let Some(fault) = run.api_fault.as_ref().filter(|_| run.api_retries > 0) else { return String::new() };
    let times = if run.api_retries == 1 { "once".to_owned() } else { format!("{} times", run.api_retries) };
    format!("{fault}; the client tried again {times}")
}

/// Returns in a line why a run ended as it did. Of a run that was cancelled, names what kept it from an answer as well.
/// `runs show` has the whole error.
#[must_use]
pub fn cause(run: &RunRecord) -> Option<String> {
    let error = run.error.as_deref().and_then(|error| error.lines().next()).map(str::to_owned);
    // The error of a failed run that is not tried again names the fault already.
    let is_named =
        run.api_fault.as_ref().zip(error.as_ref()).is_some_and(|(fault, error)| error.contains(fault.as_str()));
    let retries =
        Some(retries(run)).filter(|words| run.outcome == RunState::Cancelled && !is_named && !words.is_empty());
    let causes: Vec<String> = error.into_iter().chain(retries).collect();
    (!causes.is_empty()).then(|| causes.join("; "))
}

/// Returns what is remarkable about a run beside its outcome: `fired by hand`, `attempt 2`, `1 call refused`.
#[must_use]
pub fn remarks(run: &RunRecord, now: DateTime<Utc>, zone: Tz) -> Vec<String> {
    let mut remarks = Vec::new();
    if run.by_hand {
        remarks.push("fired by hand".to_owned());
    }
    if let Some(from) = run.covers_from {
        remarks.push(format!("stands for all since {}", times::local(from, now, zone)));
    }
    if run.attempt > 1 {
        remarks.push(format!("attempt {}", run.attempt));
    }
    match run.denials.len() {
        0 => {}
        1 => remarks.push("1 call refused".to_owned()),
        more => remarks.push(format!("{more} calls refused")),
    }
    remarks
}

/// Returns how late an occurrence began; empty below a minute. For a later attempt, how late the occurrence was claimed.
#[must_use]
pub fn late(run: &RunRecord) -> String {
    let began = run.started.filter(|_| run.attempt == 1).map(|began| began - run.scheduled);
    match began.or(run.late_ms.map(TimeDelta::milliseconds)) {
        Some(late) if late >= TimeDelta::minutes(1) => times::span(late),
        _ => String::new(),
    }
}

/// Returns how long a run took; empty if it is not over, or never began, or if nobody saw its end.
#[must_use]
pub fn took(run: &RunRecord) -> String {
    let seen = run.ended.filter(|_| !ended_unseen(run.error.as_deref()));
    match (run.started, seen) {
        (Some(started), Some(ended)) => times::span(ended - started),
        _ => String::new(),
    }
}

/// Returns a call in a line: the command, the path, or else the whole input.
#[must_use]
pub fn call(tool: &str, input: &Value) -> String {
    let main = ["command", "file_path", "url", "pattern", "path", "message"];
    match main.iter().find_map(|key| input.get(key).and_then(Value::as_str)) {
        Some(main) => format!("{tool} {main}"),
        None => format!("{tool} {input}"),
    }
}

/// Returns how far a host's clock is off: `1.2 s ahead`; `None` for less than a tenth of a second.
#[must_use]
pub fn clock(host: &HostRecord) -> Option<String> {
    let way = if host.skew_ms > 0 { "ahead" } else { "behind" };
    let tenths = host.skew_ms.unsigned_abs() / 100;
    (tenths > 0).then(|| format!("{}.{} s {way}", tenths / 10, tenths % 10))
}

/// Returns the roles of a host: `main session and channels, gpu`.
#[must_use]
pub fn roles(host: &HostRecord) -> String {
    let main = host.main.then_some("main session and channels");
    main.into_iter().chain(host.labels.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
}

/// Returns the cost and tokens of a run, in a line: `$0.0042; 1,200 tokens read afresh, …`.
#[must_use]
pub fn taken(cost: Option<f64>, tokens: Option<Tokens>) -> String {
    let cost = cost.map(money);
    let tokens = tokens.map(|tokens| {
        format!(
            "{} tokens read afresh, {} from the cache, {} added to the cache, {} written by the model",
            grouped(tokens.input),
            grouped(tokens.cache_read),
            grouped(tokens.cache_write),
            grouped(tokens.output)
        )
    });
    cost.into_iter().chain(tokens).collect::<Vec<_>>().join("; ")
}

/// Whether calls are shown in full. If so, the known results of calls, by the client's call id.
pub type CallDetails<'a> = Option<&'a HashMap<String, String>>;

/// Returns an event's name, tone and text; `None` if it is not shown.
#[must_use]
pub fn event(
    kind: &EventKind,
    full: CallDetails<'_>,
    now: DateTime<Utc>,
    zone: Tz,
) -> Option<(&'static str, Emphasis, String)> {
    Some(match kind {
        EventKind::RunStarted { attempt: 1, .. } => ("started", Emphasis::Strong, String::new()),
        EventKind::RunStarted { attempt, .. } => ("started", Emphasis::Strong, format!("attempt {attempt}")),
        EventKind::Prompt { text } => ("prompt", Emphasis::Faint, text.clone()),
        EventKind::Message { text, .. } => ("message", Emphasis::Good, text.clone()),
        EventKind::Update { text } => ("report", Emphasis::Strong, text.clone()),
        EventKind::Note { text } => ("note", Emphasis::Strong, text.clone()),
        EventKind::RunEnded { outcome, error, retry_at } => {
            let style = if *outcome == RunState::Completed { Emphasis::Good } else { Emphasis::Bad };
            let mut text = state(*outcome);
            if let Some(error) = error {
                text.push_str(&format!(": {error}"));
            }
            if let Some(at) = retry_at {
                text.push_str(&format!("; tried again {}", times::relative(*at, now)));
            }
            ("ended", style, text)
        }
        EventKind::Delayed { by, until, what } => {
            let until = until.map(|at| format!(", until {}", times::local(at, now, zone)));
            let what = what.as_ref().map(|what| format!(": {what}"));
            ("late", Emphasis::Warn, format!("{by}{}{}", what.unwrap_or_default(), until.unwrap_or_default()))
        }
        EventKind::Requested { channel } => ("asked", Emphasis::Strong, format!("for by you, on {channel}")),
        EventKind::ClockSet { seconds, slept } => ("clock", Emphasis::Warn, clock_set(*seconds, *slept)),
        EventKind::DueMoved { to, .. } => ("moved", Emphasis::Strong, format!("to {}", times::local(*to, now, zone))),
        EventKind::DeliveryRefused { status, why, times, .. } => {
            let times = if *times == 1 { String::new() } else { format!("{times} times, ") };
            ("refused", Emphasis::Bad, format!("{times}{status}: {why}"))
        }
        EventKind::DefinitionChanged => ("changed", Emphasis::Faint, "its file was written or changed".into()),
        EventKind::DefinitionRemoved => ("removed", Emphasis::Faint, "its file is gone, or not valid any more".into()),
        EventKind::Problem { file, text } if text.is_empty() => ("mended", Emphasis::Good, file.clone()),
        EventKind::Problem { text, .. } => ("problem", Emphasis::Bad, text.clone()),
        EventKind::Letters { text } => ("letters", Emphasis::Faint, text.clone()),
        EventKind::Cut => ("cut", Emphasis::Warn, "the run said and did more than is recorded".into()),
        EventKind::Observed(seen) => return observed(seen, full),
    })
}

fn observed(seen: &Observation, full: CallDetails<'_>) -> Option<(&'static str, Emphasis, String)> {
    Some(match seen {
        Observation::ClientReady { version, model } => {
            let version = version.as_deref().unwrap_or("of an unknown version");
            let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
            ("client", Emphasis::Faint, format!("claude {version}{model}"))
        }
        Observation::Said { text } => ("said", Emphasis::Strong, text.clone()),
        Observation::Printed { text } => ("printed", Emphasis::Strong, text.clone()),
        Observation::ToolCall { tool, input, .. } if full.is_some() => {
            ("call", Emphasis::Strong, format!("{tool} {input:#}"))
        }
        Observation::ToolCall { tool, input, .. } => ("call", Emphasis::Strong, call(tool, input)),
        // The page shows this decision beside the call.
        Observation::ToolDecided { allowed: true, .. } => return None,
        Observation::ToolDecided { reason, .. } => ("denied", Emphasis::Bad, reason.clone()),
        Observation::ToolResult { call, bytes, failed } => {
            let failed = if *failed { "failed, " } else { "" };
            let text = full.and_then(|results| results.get(call)).map(|text| format!("\n{text}")).unwrap_or_default();
            ("result", Emphasis::Faint, format!("{failed}{}{text}", ByteSize(*bytes as u64)))
        }
        Observation::Compacted { before, after } => ("compacted", Emphasis::Faint, agent::compacted(*before, *after)),
        Observation::ApiRetry { fault } => ("retry", Emphasis::Warn, format!("{fault}; the client tries again")),
    })
}

/// Says how the clock was set: `it was set back by 1h`.
fn clock_set(seconds: i64, slept: bool) -> String {
    let span = times::span(TimeDelta::seconds(seconds));
    match (slept, seconds < 0) {
        (true, _) => format!("the machine slept for {span}"),
        (false, true) => format!("it was set back by {span}"),
        (false, false) => format!("it was set forward by {span}"),
    }
}

/// Returns the further conditions of an occurrence, in the order in which they are checked: `the machine is online and
/// you approve it`. Returns `None` if there are none.
#[must_use]
pub fn conditions(definition: &Definition) -> Option<String> {
    let needs = definition.requires.iter().map(|need| match need {
        Need::Online => "the machine is online",
        Need::Power => "the machine runs on mains power",
    });
    let approve = definition.approve.then_some("you approve it");
    let gate = definition.gate.is_some().then_some("its gate lets it");
    let all: Vec<&str> = needs.chain(approve).chain(gate).collect();
    let (last, before) = all.split_last()?;
    Some(if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) })
}
