//! Whether a client shows the tools that it must, and no others.

use crate::agent::claude::protocol::SERVER;

/// The tools that are shown and must not be. `Agent` is called `Task` in the client's list.
pub(super) fn surplus(shown: &[String], visible: &[String], ours: &[String]) -> Vec<String> {
    let known = |name: &str| {
        let name = if name == "Task" { "Agent" } else { name };
        let same = |visible: &String| visible == name || (visible == "Task" && name == "Agent");
        let prefix = format!("mcp__{SERVER}__");
        visible.iter().any(same) || name.strip_prefix(&prefix).is_some_and(|tool| ours.iter().any(|our| our == tool))
    };
    shown.iter().filter(|name| !known(name)).cloned().collect()
}

/// Whether none of our tools is shown that the job has: it could reach nobody.
pub(super) fn lacks_ours(shown: &[String], ours: &[String]) -> bool {
    let is_shown = |tool: &String| shown.contains(&format!("mcp__{SERVER}__{tool}"));
    !ours.is_empty() && !ours.iter().any(is_shown)
}
