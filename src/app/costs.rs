//! Sums up the costs of runs.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::{App, runs};
use crate::agent::Tokens;
use crate::definition::Period;
use crate::journal::RunCost;
use crate::refusal::Refusal;

/// The grouping of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostsBy {
    /// The definition.
    Job,
    /// The day, in the zone of records.
    Day,
    /// The model.
    Model,
}

/// Costs, grouped.
#[derive(Debug)]
pub struct Costs {
    /// The grouping.
    pub by: CostsBy,
    /// Days in order, others by cost, highest first.
    pub rows: Vec<CostsRow>,
}

/// The sum of one group.
#[derive(Debug, Default)]
pub struct CostsRow {
    /// The job, the day or the model.
    pub key: String,
    /// Number of attempts.
    pub runs: u32,
    /// US dollars, as the client reported them.
    pub cost_usd: f64,
    /// Median cost.
    pub median: f64,
    /// Highest cost.
    pub worst: f64,
    /// Amount that budgets count for runs that ended without reporting a cost: their limits.
    pub unreported_usd: f64,
    /// Tokens used.
    pub tokens: Tokens,
}

/// This month and the previous one, by the day on which runs began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Months {
    /// Costs of this month so far.
    pub this: f64,
    /// Costs of the previous month.
    pub last: f64,
    /// Costs of the previous month up to the same point in time.
    pub last_by_now: f64,
    /// Expected costs of this month, if each day costs as much as the last seven did.
    pub forecast: f64,
}

/// Sums up the costs of runs that began at `from` or later.
pub(super) fn costs(by: CostsBy, from: Option<DateTime<Utc>>, app: &App) -> Result<Costs, Refusal> {
    let [costs] = several([by], from, app)?;
    Ok(costs)
}

/// Sums up costs by several groupings at once.
pub(super) fn several<const N: usize>(
    by: [CostsBy; N],
    from: Option<DateTime<Utc>>,
    app: &App,
) -> Result<[Costs; N], Refusal> {
    let read = |from, until| Ok::<_, Refusal>(runs::open(app)?.costs(from, until)?);
    let runs = match from {
        None => read(None, None)?,
        // A page waits for this, so both halves are read at the same time.
        Some(from) => {
            let middle = Some(from + (app.now() - from) / 2);
            let (older, newer) = rayon::join(|| read(Some(from), middle), || read(middle, None));
            [older?, newer?].concat()
        }
    };
    Ok(by.map(|by| sums(by, &runs, app.zone_of_records())))
}

fn sums(by: CostsBy, runs: &[RunCost], zone: Tz) -> Costs {
    let mut rows = match by {
        CostsBy::Job => sums_by(runs, |run| run.id.as_str()),
        CostsBy::Day => sums_by(runs, |run| run.launched.with_timezone(&zone).date_naive()),
        CostsBy::Model => sums_by(runs, |run| run.model.as_deref().unwrap_or("unknown")),
    };
    match by {
        CostsBy::Day => rows.sort_by(|a, b| a.key.cmp(&b.key)),
        CostsBy::Job | CostsBy::Model => {
            rows.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd).then_with(|| a.key.cmp(&b.key)));
        }
    }
    Costs { by, rows }
}

fn sums_by<'a, K: Eq + Hash + Display>(runs: &'a [RunCost], key: impl Fn(&'a RunCost) -> K) -> Vec<CostsRow> {
    let mut sums: HashMap<K, (CostsRow, Vec<f64>)> = HashMap::new();
    for run in runs {
        let (row, each) = sums.entry(key(run)).or_default();
        row.runs += 1;
        row.cost_usd += run.cost_usd;
        row.unreported_usd += run.unreported_usd;
        row.tokens = row.tokens + run.tokens;
        row.worst = row.worst.max(run.cost_usd);
        each.push(run.cost_usd);
    }
    let of_each = |(key, (row, mut each)): (K, (CostsRow, Vec<f64>))| {
        let middle = each.len().saturating_sub(1) / 2;
        let median = *each.select_nth_unstable_by(middle, f64::total_cmp).1;
        CostsRow { key: key.to_string(), median, ..row }
    };
    sums.into_iter().map(of_each).collect()
}

/// Returns the costs of this month and the previous one.
pub(super) fn months(app: &App) -> Result<Months, Refusal> {
    let (journal, now, zone) = (runs::open(app)?, app.now(), app.zone_of_records());
    let (begun, until) = Period::Month.around(now, zone);
    let (begun_before, _) = Period::Month.around(begun - TimeDelta::seconds(1), zone);
    let (this, _) = journal.cost_between(begun, now)?;
    let (last, _) = journal.cost_between(begun_before, begun)?;
    let (last_by_now, _) = journal.cost_between(begun_before, begun.min(begun_before + (now - begun)))?;
    // A bot that is younger than a week has a daily cost, too.
    let (pace, first) = journal.cost_between(now - TimeDelta::days(7), now)?;
    let spanned = first.map_or(TimeDelta::days(7), |first| now - first).max(TimeDelta::days(1));
    let left = (until - now).num_seconds() as f64 / spanned.num_seconds() as f64;
    Ok(Months { this, last, last_by_now, forecast: this + pace * left })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::definition::DefinitionId;

    #[test]
    fn a_sum_knows_what_one_run_costs_mostly_and_at_worst() {
        let run = |id: &str, cost_usd| RunCost {
            id: DefinitionId::new(id),
            launched: DateTime::UNIX_EPOCH,
            unreported_usd: 0.0,
            model: None,
            cost_usd,
            tokens: Tokens::default(),
        };
        let runs = [run("a", 0.3), run("a", 0.1), run("b", 9.0), run("a", 0.2), run("a", 5.0)];
        let found = sums(CostsBy::Job, &runs, Tz::UTC);
        let found: Vec<_> = found.rows.iter().map(|row| (&*row.key, row.runs, row.median, row.worst)).collect();
        assert_eq!(found, [("b", 1, 9.0, 9.0), ("a", 4, 0.2, 5.0)]);
    }
}
