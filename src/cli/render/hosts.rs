//! Renders the hosts that share a journal.

use super::View;
use crate::app::{times, words};
use crate::cli::output::{BAD, Cell, FAINT, GOOD, WARN};
use crate::journal::HostRecord;

/// Returns a row for each host.
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
    let clock = match words::clock(host) {
        None => Cell::new("clock right", FAINT),
        Some(off) => Cell::new(format!("clock {off}"), WARN),
    };
    vec![
        host.name.as_str().into(),
        state,
        open,
        clock,
        Cell::new(format!("{} {}", host.version, host.zones), FAINT),
        words::roles(host).into(),
    ]
}
