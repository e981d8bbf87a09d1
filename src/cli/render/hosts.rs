//! The hosts that share a journal.

use super::View;
use crate::app::times;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, WARN};
use crate::journal::HostRecord;

/// A row a host.
pub(super) fn rows(hosts: &[HostRecord], view: &View) -> Vec<Vec<Cell>> {
    hosts.iter().map(|host| row(host, view)).collect()
}

fn row(host: &HostRecord, view: &View) -> Vec<Cell> {
    let state = match host.alive {
        true => Cell::new(format!("up {}", times::span(view.now - host.joined)), GOOD),
        false => Cell::new(format!("gone {}", times::relative(host.lease_until, view.now)), BAD),
    };
    let open = match host.open {
        0 => Cell::new("idle", FAINT),
        1 => "1 job".into(),
        open => format!("{open} jobs").into(),
    };
    let clock = match host.skew_ms {
        0 => Cell::new("clock right", FAINT),
        ahead @ 1.. => Cell::new(format!("clock {:.1} s ahead", seconds(ahead)), WARN),
        behind => Cell::new(format!("clock {:.1} s behind", seconds(-behind)), WARN),
    };
    let what: Vec<&str> = host
        .main
        .then_some("main session and channels")
        .into_iter()
        .chain(host.labels.iter().map(String::as_str))
        .collect();
    vec![
        host.name.as_str().into(),
        state,
        open,
        clock,
        Cell::new(format!("{} {}", host.version, host.zones), FAINT),
        what.join(", ").into(),
    ]
}

fn seconds(ms: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "clocks are not that far apart")]
    let ms = ms as f64;
    ms / 1000.0
}
