//! The channels: whether messages reach the person.

use super::Finding;
use crate::app::{App, channels};

/// One finding for each channel that does not deliver, or one for all.
pub(super) fn channels(app: &App) -> Vec<Finding> {
    // What is wrong with the settings or the journal is said elsewhere.
    let Ok(states) = channels::channels(app) else { return Vec::new() };
    let failing: Vec<Finding> = states
        .iter()
        .filter_map(|channel| {
            let failing = channel.failing.as_ref()?;
            let detail = format!("`{}` does not deliver: {}", channel.name, failing.error);
            let finding = Finding::wrong("channel", detail);
            Some(finding.step(format!("mend that, then try it: `ollim-bot channels test {}`", channel.name)))
        })
        .collect();
    if !failing.is_empty() {
        return failing;
    }
    let names: Vec<&str> = states.iter().map(|channel| channel.name.as_str()).collect();
    vec![Finding::ok("channel", names.join(", "))]
}
