//! Renders the costs of runs, with a small bar chart.

use serde_json::json;

use super::View;
use crate::app::words::{grouped, money};
use crate::app::{Costs, CostsBy};
use crate::cli::output::{Cell, FAINT, GOOD, Output, STRONG, paint};

/// Maximum length of a bar, in characters.
const BAR: u32 = 24;

/// Renders the sums and their total.
pub(super) fn costs(costs: &Costs, view: &View, output: &mut Output) {
    let rows = &costs.rows;
    // `sum` of nothing would be -0.0.
    let total = rows.iter().fold(0.0, |sum, row| sum + row.cost_usd);
    let unreported = rows.iter().fold(0.0, |sum, row| sum + row.unreported_usd);
    let name = match costs.by {
        CostsBy::Job => "job",
        CostsBy::Day => "day",
        CostsBy::Model => "model",
    };
    if view.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    name: row.key, "runs": row.runs, "cost_usd": row.cost_usd, "unreported_usd": row.unreported_usd,
                    "median_usd": row.median, "worst_usd": row.worst, "tokens": row.tokens,
                })
            })
            .collect();
        output.json(&json!({ "by": name, "rows": rows, "cost_usd": total, "unreported_usd": unreported }));
        return;
    }
    if rows.is_empty() {
        output.note("no run has reported a cost in this time");
        return;
    }
    let dearest = rows.iter().map(|row| row.cost_usd).fold(0.0, f64::max);
    let header = [name.to_uppercase().as_str(), "RUNS", "COST", "READ", "CACHED", "WRITTEN", ""]
        .map(|text| Cell::new(text, FAINT));
    let mut table = vec![header.to_vec()];
    for row in rows {
        let share = if dearest > 0.0 { row.cost_usd / dearest } else { 0.0 };
        table.push(vec![
            Cell::new(&row.key, STRONG),
            row.runs.to_string().into(),
            money(row.cost_usd).into(),
            grouped(row.tokens.input + row.tokens.cache_write).into(),
            grouped(row.tokens.cache_read).into(),
            grouped(row.tokens.output).into(),
            Cell::new(bar(share), GOOD),
        ]);
    }
    output.table(&table);
    output.line(format!("{} {}", paint(STRONG, "together"), money(total)));
    if unreported > 0.0 {
        output.note(format!(
            "runs that ended without a figure count {} besides in budgets: their caps",
            money(unreported)
        ));
    }
}

/// Draws a bar in steps of an eighth, so that even a small share is visible.
fn bar(share: f64) -> String {
    let eighths = (0..BAR * 8).take_while(|eighth| f64::from(*eighth) < share * f64::from(BAR * 8)).count();
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8).copied().unwrap_or_default();
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0), "█".repeat(24));
        assert_eq!(bar(0.5), "█".repeat(12));
        assert_eq!(bar(0.0001), "▏");
    }
}
