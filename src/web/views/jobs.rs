//! All jobs.

use maud::{Markup, html};

use crate::app::{Attention, Job, JobList, summary};
use crate::definition::{Kind, Trigger};
use crate::web::context::Context;
use crate::web::parts::{self, link};

pub(in crate::web) fn jobs(lists: &[JobList; 3], attention: &Attention, context: &Context) -> Markup {
    html! {
        h1 { "Jobs" }
        @for list in lists {
            @let (title, id, none) = match list.kind {
                Kind::Routine => ("Routines", "routines", "There are no routines. `ollim-bot routine add` makes one."),
                Kind::Webhook => ("Webhooks", "webhooks", "There are no webhooks. A file in webhooks/ makes one."),
                _ => ("Reminders", "reminders", "There are no reminders. `ollim-bot reminder add` makes one."),
            };
            h2 id=(id) { (title) }
            @if list.jobs.is_empty() && list.failed.is_empty() {
                p .empty { (parts::with_code(none)) }
            } @else if !list.jobs.is_empty() {
                (table(title, list, attention, context))
            }
            @if list.left_out > 0 {
                p .faint { "And " (list.left_out) " more in the database, which fall due later." }
            }
            @if list.not_coming > 0 {
                p .faint { "And " (list.not_coming) " in the database that do not fall due: disabled, or without a next time." }
            }
            @for failed in &list.failed {
                @let is_skipped = failed.is_skipped_by_the_person();
                p .faint[is_skipped] .bad[!is_skipped] {
                    @if !is_skipped { "failed: " }
                    (parts::job(failed.id.as_str()))
                    @if let Some(reason) = &failed.reason { ": " (reason) }
                }
            }
            @for problem in &list.errors {
                p .bad { (parts::problem(problem)) }
            }
        }
    }
}

fn table(title: &str, list: &JobList, attention: &Attention, context: &Context) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { th { "Job" } th { "Next" } th { "What" } th { "When" } th { "Failures" } } }
                tbody {
                    @for job @ Job { definition, next, .. } in &list.jobs {
                        @let failing = attention.status.failures.iter().find(|failing| failing.id == definition.id);
                        tr {
                            td { a .bad[failing.is_some()] href=(link("/jobs/", definition.id.as_str(), "")) { (definition.id) } }
                            td .num data-of="Next" {
                                @if let Some(error) = attention.status.error_of(&definition.id) {
                                    span .bad { (parts::with_code(&error.message)) }
                                } @else {
                                    (coming(job, context))
                                }
                            }
                            td .wide { (summary(definition)) }
                            td .num data-of="When" {
                                @match &definition.trigger {
                                    Trigger::Routine { recurs, .. } => code { (recurs) },
                                    _ => @if let Some(at) = next { (context.time_of_job(*at, definition.zone)) },
                                }
                            }
                            td {
                                @if let Some(failing) = failing {
                                    span .bad { "failed " @if failing.failures > 1 { (failing.failures) " times" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders when a job comes, or why it does not.
fn coming(job @ Job { definition, next, paused, .. }: &Job, context: &Context) -> Markup {
    html! {
        @match next {
            Some(at) => @match job.open_words() {
                Some(open) => (open),
                None => (context.relative(*at)),
            },
            None if *paused => span .bad { "paused after failures" },
            None if !definition.enabled => span .faint { "paused" },
            None => span .faint { (parts::with_code(&definition.waits_for().unwrap_or_else(|| "never".into()))) },
        }
    }
}
