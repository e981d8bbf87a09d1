//! The costs of runs.

use chrono::{Datelike as _, NaiveDate};
use maud::{Markup, html};

use super::refusals::spans;
use crate::app::words::{grouped, money};
use crate::app::{Budgets, Costs, CostsBy, Months};
use crate::definition::DefinitionId;
use crate::journal::Spending;
use crate::web::context::Context;
use crate::web::parts;

/// Renders the spending of the last `days` and of this month, with at most `rows` rows per table.
pub(in crate::web) fn costs(
    costs: &[Costs; 3],
    (months, budgets): (&Months, &Budgets),
    (days, rows): (u64, usize),
    context: &Context,
) -> Markup {
    let total: f64 = costs[0].rows.iter().map(|row| row.cost_usd).sum();
    html! {
        div .head {
            h1 { "Costs" }
            (spans("/costs", days))
        }
        (month(months, &budgets.caps))
        @for cap in &budgets.caps { (spent(None, cap, context)) }
        @for (job, cap) in &budgets.jobs { (spent(Some(job), cap, context)) }
        @if costs[0].rows.is_empty() {
            p .empty { "No run has reported a cost in this time." }
        } @else {
            h2 { (money(total)) @match days { 0 => " in all", 1 => " in 24 hours", days => { " in " (days) " days" } } }
            (chart(&costs[0], context))
            details { summary { "Each day" } (table(&costs[0], days, usize::MAX, context)) }
        }
        @for sums in &costs[1..] { (table(sums, days, rows, context)) }
    }
}

/// Renders this month's spending beside the last one's, and the forecast.
fn month(months: &Months, caps: &[Spending]) -> Markup {
    let Months { this, last, last_by_now, forecast } = *months;
    let over = caps.iter().any(|cap| cap.name == "month" && forecast > cap.cap);
    html! {
        p .lead {
            strong .num { (money(this)) } " this month. At the pace of the last 7 days it ends at "
            span .num .warn[over] { (money(forecast)) @if over { ", over its cap" } } "."
        }
        @if last > 0.0 {
            p .faint { "Last month: " (money(last)) ", of which " (money(last_by_now)) " by this time of it." }
        }
    }
}

fn spent(job: Option<&DefinitionId>, cap: &Spending, context: &Context) -> Markup {
    let share = if cap.cap > 0.0 { ((cap.spent + cap.taken) / cap.cap).min(1.0) } else { 1.0 };
    html! {
        p .cap {
            meter min="0" max="1" high="0.8" value=(format!("{share:.3}")) aria-label={ "spent " (cap.period()) } {}
            span {
                @if let Some(job) = job { (parts::job(job.as_str())) ": " }
                (cap.amounts()) " spent " (cap.period()) (cap.taken_words())
                span .faint { ", resets " (context.relative(cap.until)) }
            }
        }
    }
}

/// Formats the key of a day like the days of other times: `Thu 26 Nov`, with the year if it is not the current one.
fn day(key: &str, context: &Context) -> String {
    let Ok(day) = key.parse::<NaiveDate>() else { return key.to_owned() };
    let is_this_year = day.year() == context.now.with_timezone(&context.zone).year();
    day.format(if is_this_year { "%a %-d %b" } else { "%a %-d %b %Y" }).to_string()
}

/// Renders one bar per day.
fn chart(costs: &Costs, context: &Context) -> Markup {
    let highest = costs.rows.iter().map(|row| row.cost_usd).fold(0.0, f64::max);
    let width = 100.0 / costs.rows.len().max(1) as f64;
    html! {
        figure {
            svg .bars width="100%" height="90" role="img" aria-label={ "Costs of " (costs.rows.len()) " days, " (money(highest)) " at most" } {
                @for (index, row) in costs.rows.iter().enumerate() {
                    @let height = if highest > 0.0 { (row.cost_usd / highest * 86.0).max(1.0) } else { 1.0 };
                    rect .f-accent x=(format!("{:.2}%", index as f64 * width)) width=(format!("{:.2}%", width * 0.8)) y=(format!("{:.1}", 90.0 - height)) height=(format!("{height:.1}")) {
                        title { (day(&row.key, context)) ": " (money(row.cost_usd)) ", " (row.runs) " runs" }
                    }
                }
            }
            figcaption .faint {
                @if let (Some(first), Some(last)) = (costs.rows.first(), costs.rows.last()) { (day(&first.key, context)) " to " (day(&last.key, context)) ", " (money(highest)) " on the most expensive day" }
            }
        }
    }
}

fn table(costs: &Costs, days: u64, rows: usize, context: &Context) -> Markup {
    let (title, name) = match costs.by {
        CostsBy::Model => ("By model", "Model"),
        CostsBy::Job => ("By job", "Job"),
        CostsBy::Day => ("By day", "Day"),
    };
    html! {
        @if !costs.rows.is_empty() {
            h2 { (title) }
            div .scroll tabindex="0" role="region" aria-label=(title) {
                table .figures {
                    thead { tr { th { (name) } th .num { "Runs" } th .num { "Cost" } th .num { "Median" } th .num { "Worst" } th .num { "Tokens read" } th .num { "Tokens written" } } }
                    tbody {
                        @for row in costs.rows.iter().take(rows) {
                            tr {
                                td {
                                    @match costs.by {
                                        CostsBy::Job => (parts::job(&row.key)),
                                        CostsBy::Day => (day(&row.key, context)),
                                        CostsBy::Model => (row.key),
                                    }
                                }
                                td .num data-of="Runs" { (row.runs) }
                                td .num data-of="Cost" { (money(row.cost_usd)) }
                                td .num data-of="Median" { (money(row.median)) }
                                td .num data-of="Worst" { (money(row.worst)) }
                                td .num data-of="Tokens read" { (grouped(row.tokens.input + row.tokens.cache_read + row.tokens.cache_write)) }
                                td .num data-of="Tokens written" { (grouped(row.tokens.output)) }
                            }
                        }
                    }
                }
            }
            @if costs.rows.len() > rows {
                @let rest = &costs.rows[rows..];
                p {
                    a href={ "/costs?since=" (days) "&all=on" } { (rest.len()) " more" }
                    ", " (money(rest.iter().map(|row| row.cost_usd).sum())) " together"
                }
            }
        }
    }
}
