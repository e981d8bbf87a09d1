//! One run: why it fired, what happened in it, its permissions, and its file as it fired.

use std::collections::HashMap;

use chrono_tz::Tz;
use maud::{Markup, html};

use super::questions;
use crate::agent::Observation;
use crate::app::words::{self, Emphasis};
use crate::app::{OpenQuestion, RunDetails, Why};
use crate::channel::terminal::visible;
use crate::journal::{Event, EventKind, Occasion, RunRecord};
use crate::web::context::Context;
use crate::web::parts::{self, fact, text_value};

/// Number of lines of a text shown unfolded.
const LINES: usize = 12;

/// The content of a run's page.
pub(in crate::web) struct RunParts {
    pub details: RunDetails,
    /// The explanation, or `None` for a run of the conversation: the person said something.
    pub why: Option<Box<Why>>,
    /// The zone of the run's job, or `None` if its file is gone.
    pub zone: Option<Tz>,
    /// The open questions of the run.
    pub asks: Vec<OpenQuestion>,
}

pub(in crate::web) fn run(parts: &RunParts, context: &Context) -> Markup {
    let RunParts { details, why, zone, asks } = parts;
    let RunDetails { run, events, .. } = details;
    let decided = decisions(events);
    html! {
        div .head {
            h1 { "Run " code { (run.run) } }
            @if !run.outcome.is_over() {
                div .buttons { (parts::button(&format!("{}/cancel", parts::run(run.run.as_str())), "End it", &[], context)) }
            }
        }
        p .lead { (parts::job(run.id.as_str())) ": " (parts::outcome(run, context)) }
        // A waiting run has not failed. The facts below say what it waits for.
        @if let Some(error) = run.error.as_ref().filter(|_| run.outcome.is_over()) {
            div .bad { (parts::folded_prose(error, LINES)) }
        }
        @if let Some(why) = why { (parts::why(why)) }
        @for question in asks {
            (questions::open(question, Some(run.run.as_str()), context))
        }
        (facts(run, zone.unwrap_or(context.zone), context))
        @if matches!(run.occasion, Some(Occasion::Delivered { .. })) {
            h2 { "What was delivered" }
            @match &details.delivered {
                Some(payload) => (parts::folded(payload, LINES)),
                None => p .empty { "It is kept only until the job has ended." },
            }
        }
        h2 { "What happened" }
        @if events.is_empty() { p .empty { "Nothing is recorded of it." } }
        ol .events {
            @for event in &details.events { (happened(event, &decided, details, context)) }
        }
        @if let Some(text) = &run.definition {
            h2 { "The file as it fired" }
            pre .file tabindex="0" role="region" aria-label="The file" { (visible(text)) }
        }
    }
}

fn facts(run: &RunRecord, zone: Tz, context: &Context) -> Markup {
    let version = run.client_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    html! {
        dl .facts {
            (fact("Scheduled", Some(context.moment_of_job(run.scheduled, zone))))
            (fact("Fired", text_value(run.occasion.as_ref().map(Occasion::words).unwrap_or_default())))
            (fact("Started", run.started.map(|at| context.moment(at))))
            (fact("Ended", run.ended.map(|at| context.moment(at))))
            (fact("Took", text_value(words::took(run))))
            (fact("Again", run.retry_at.map(|at| context.moment(at))))
            (fact("Attempt", (run.attempt > 1).then(|| html! { (run.attempt) })))
            (fact("Client", text_value(run.client.as_ref().map(|name| format!("{name}{version}")).unwrap_or_default())))
            (fact("Model", text_value(run.model.as_deref().unwrap_or_default())))
            (fact("API", text_value(words::retries(run))))
            (fact("Cost", text_value(words::taken(run.cost_usd, run.tokens))))
            (fact("Transcript", run.transcript.as_ref().map(|path| html! { code { (path.display()) } })))
        }
    }
}

/// The decision on a call, with the layer and the rule.
struct CallDecision<'a> {
    allowed: bool,
    layer: Option<String>,
    rule: Option<&'a str>,
}

/// Returns the decisions of a run, by the client's id of the call.
fn decisions(events: &[Event]) -> HashMap<&str, CallDecision<'_>> {
    let mut decisions = HashMap::new();
    for event in events {
        if let EventKind::Observed(Observation::ToolDecided { call, allowed, layer, rule, .. }) = &event.kind
            // No rule allowed a line of the shell whose programs are judged when they start.
            && (!allowed || rule.is_some())
        {
            let layer = layer.map(|layer| layer.to_string());
            decisions.insert(&**call, CallDecision { allowed: *allowed, layer, rule: rule.as_deref() });
        }
    }
    decisions
}

/// Renders one event. A call is shown together with its decision.
fn happened(
    event: &Event,
    decisions: &HashMap<&str, CallDecision<'_>>,
    details: &RunDetails,
    context: &Context,
) -> Markup {
    let Some((name, emphasis, text)) = words::event(&event.kind, None, context.now, context.zone) else {
        return html! {};
    };
    let lines = if emphasis == Emphasis::Faint { 2 } else { LINES };
    html! {
        li {
            time .num .faint datetime=(event.at.to_rfc3339()) { (event.at.with_timezone(&context.zone).format("%H:%M:%S")) }
            span .(parts::class(emphasis)) { (name) }
            div {
                @match &event.kind {
                    EventKind::Observed(Observation::ToolCall { call, input, .. }) => {
                        details {
                            summary { code { (text.chars().take(300).collect::<String>()) } }
                            pre { (format!("{input:#}")) }
                        }
                        @if let Some(decided) = decisions.get(&**call) { (verdict(decided)) }
                    },
                    EventKind::Observed(Observation::ToolResult { call, .. }) => {
                        @match details.results.get(call) {
                            Some(result) => details { summary { (text) } pre { (result) } },
                            None => (text),
                        }
                    },
                    EventKind::Message { .. } => (parts::message(&text, lines)),
                    _ => (parts::folded(&text, lines)),
                }
            }
        }
    }
}

fn verdict(decided: &CallDecision<'_>) -> Markup {
    html! {
        p .faint {
            @if decided.allowed { span .good { "allowed" } } @else { span .bad { "refused" } }
            @if let Some(layer) = &decided.layer { " by " (layer) }
            @if let Some(rule) = decided.rule { ", rule " code { (rule) } }
        }
    }
}
