//! What runs have cost.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono_tz::Tz;

use super::{App, runs};
use crate::agent::Tokens;
use crate::journal::RunCost;
use crate::refusal::Refusal;

/// What costs are summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostsBy {
    /// The definition.
    Job,
    /// The day, in the zone of records.
    Day,
    /// The model.
    Model,
}

/// Costs, summed up.
#[derive(Debug)]
pub struct Costs {
    /// By what.
    pub by: CostsBy,
    /// Days in their order, else the dearest first.
    pub rows: Vec<CostsRow>,
}

/// One sum.
#[derive(Debug, Default)]
pub struct CostsRow {
    /// The job, the day or the model.
    pub key: String,
    /// How many attempts.
    pub runs: u32,
    /// US dollars, as the client reported them.
    pub cost_usd: f64,
    /// What they took.
    pub tokens: Tokens,
}

/// Sums up what runs cost that were scheduled in the last `since`.
pub(super) fn costs(by: CostsBy, since: Option<Duration>, app: &App) -> Result<Costs, Refusal> {
    let [costs] = several([by], since, app)?;
    Ok(costs)
}

/// The same by several things at once.
pub(super) fn several<const N: usize>(
    by: [CostsBy; N],
    since: Option<Duration>,
    app: &App,
) -> Result<[Costs; N], Refusal> {
    let runs = runs::open(app)?.costs(since.map(|since| app.ago(since)))?;
    Ok(by.map(|by| sums(by, &runs, app.zone_of_records())))
}

fn sums(by: CostsBy, runs: &[RunCost], zone: Tz) -> Costs {
    let mut sums: BTreeMap<String, CostsRow> = BTreeMap::new();
    for run in runs {
        let key = match by {
            CostsBy::Job => run.id.to_string(),
            CostsBy::Day => run.scheduled.with_timezone(&zone).format("%Y-%m-%d").to_string(),
            CostsBy::Model => run.model.clone().unwrap_or_else(|| "unknown".into()),
        };
        let row = sums.entry(key.clone()).or_insert_with(|| CostsRow { key, ..CostsRow::default() });
        row.runs += 1;
        row.cost_usd += run.cost_usd;
        row.tokens = row.tokens + run.tokens;
    }
    let mut rows: Vec<CostsRow> = sums.into_values().collect();
    if by != CostsBy::Day {
        rows.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd));
    }
    Costs { by, rows }
}
