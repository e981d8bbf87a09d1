//! The dry run of a job: what a run would get.

use maud::{Markup, html};

use super::policy;
use crate::app::DryRun;
use crate::app::words::money;
use crate::run::gate::GateVerdict;
use crate::web::context::Context;
use crate::web::parts::{self, link};

/// Asks before running the gate, since a gate has real effects each time.
pub(in crate::web) fn with_gate(id: &str, gate: &str, context: &Context) -> Markup {
    html! {
        h1 { "Dry run of " (parts::job(id)) }
        p { "Its gate runs for it, under the job's own policy:" }
        pre { (gate) }
        (parts::button(&link("/jobs/", id, "/dry-run"), "Run the gate", &[], context))
    }
}

pub(in crate::web) fn dry_run(found: &DryRun) -> Markup {
    let DryRun { delivered, runs, gate, system_prompt, prompt, policy, max_cost_usd, held, .. } = found;
    html! {
        h1 data-keep="" { "Dry run of " a href=(link("/jobs/", policy.id.as_str(), "")) { (policy.id) } }
        p .faint { @if gate.is_some() { "Nothing but the gate was run." } @else { "Nothing was run." } }
        @for line in held { p .bad { (parts::with_code(line)) } }
        @if let Some(dollars) = max_cost_usd { p { "It may cost at most " (money(*dollars)) "." } }
        @for line in found.follower_words() { p { (parts::with_code(&line)) } }
        @if let Some(gate) = gate {
            h2 { "Gate" }
            @match gate {
                GateVerdict::Wake(said) => { p { "The agent would be woken." } (parts::folded(said, 12)) },
                GateVerdict::Skip(why) => p { "This time would be skipped: " (parts::with_code(why)) },
                GateVerdict::Failed(why) => p .bad { "The run would fail: " (parts::with_code(why)) },
            }
        }
        @if let Some(message) = delivered {
            h2 { "Message, delivered as written without a model" }
            (parts::folded(message, 40))
        } @else if let Some((line, refused)) = runs {
            h2 { "Command, run without a model" }
            pre { (line) }
            @if let Some(why) = refused { p .bad { "The run would fail: " (parts::with_code(why)) } }
        } @else {
            h2 { "Prompt" }
            (parts::folded(prompt, 40))
            h2 { "System prompt" }
            (parts::folded(system_prompt, 6))
        }
        h2 { "What it may do" }
        (policy::entries(policy))
    }
}
