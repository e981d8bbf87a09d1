//! Runs, newest first.

use std::collections::HashMap;

use chrono_tz::Tz;
use maud::{Markup, html};

use crate::app::words;
use crate::definition::DefinitionId;
use crate::journal::RunRecord;
use crate::web::context::Context;
use crate::web::pages::{ROWS, RunsQuery};
use crate::web::parts::{self, link};

/// The zones of jobs.
pub(in crate::web) type Zones = HashMap<DefinitionId, Tz>;

/// Maximum length of a remark in a row, in characters. The run's page has all of it.
const LONGEST: usize = 100;

/// Renders a page of runs. `runs` has one more than [`ROWS`] if there are older ones.
pub(in crate::web) fn runs(runs: &[RunRecord], zones: &Zones, query: &RunsQuery, context: &Context) -> Markup {
    let rows = ROWS as usize;
    let shown = &runs[..runs.len().min(rows)];
    let older = shown.last().filter(|_| runs.len() > rows);
    let failed = if query.failed.is_some() { "&failed=on" } else { "" };
    html! {
        h1 { "Runs" }
        form .filter method="get" action="/runs" {
            label { "Job " input name="job" value=(query.job) autocomplete="off"; }
            label { input type="checkbox" name="failed" checked[query.failed.is_some()]; " failed only" }
            button { "Show" }
        }
        @if shown.is_empty() {
            p .empty { "No runs" @if query.failed.is_some() { " that failed" } @if !query.job.is_empty() { " of " (query.job) } " yet." }
        } @else {
            (table(shown, true, zones, context))
        }
        @if let Some(last) = older {
            p { a href={ "/runs?job=" (link("", &query.job, "")) (failed) "&before=" (last.run) } { "Older runs" } }
        }
    }
}

/// Renders one row per run. `named` adds the job's name to each.
pub(in crate::web) fn table(runs: &[RunRecord], named: bool, zones: &Zones, context: &Context) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="Runs" {
            table {
                thead { tr {
                    @if named { th { "Job" } } th { "Outcome" } th { "Scheduled" } th { "Took" } th { "Cost" } th { "Late" } th { "Remark" } th { "Run" }
                } }
                tbody {
                    @for run in runs {
                        @let zone = zones.get(&run.id).copied().unwrap_or(context.zone);
                        tr {
                            @if named { td { (parts::job(run.id.as_str())) } }
                            td { (parts::outcome(run, context)) }
                            td .num { a href=(parts::run(run.run.as_str())) { (context.time_of_job(run.scheduled, zone)) } }
                            td .num data-of="Took" { (words::took(run)) }
                            td .num data-of="Cost" { @if let Some(cost) = run.cost_usd.filter(|cost| *cost > 0.0) { (words::money(cost)) } }
                            td .num data-of="Late" { (words::late(run)) }
                            td .wide .faint { (parts::with_code(&remark(run, context))) }
                            td { code { (run.run) } }
                        }
                    }
                }
            }
        }
    }
}

fn remark(run: &RunRecord, context: &Context) -> String {
    let mut remarks = words::remarks(run, context.now, context.zone);
    remarks.extend(words::cause(run));
    cut(remarks.join(", "))
}

/// Shortens a long remark. Does not end within backquotes.
fn cut(remark: String) -> String {
    let Some((end, _)) = remark.char_indices().nth(LONGEST) else { return remark };
    let shown = &remark[..end];
    let is_open = shown.matches('`').count() % 2 == 1;
    let shown = shown.rfind('`').filter(|_| is_open).map_or(shown, |open| &shown[..open]);
    format!("{}…", shown.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_cut_before_code_and_not_within_it() {
        let long = "x".repeat(95);
        assert_eq!(cut(format!("{long} `a` b")), format!("{long} `a`…"));
        assert_eq!(cut(format!("{long} `ollim-bot questions` shows it")), format!("{long}…"));
        assert_eq!(cut("`a` b".to_owned()), "`a` b");
    }
}
