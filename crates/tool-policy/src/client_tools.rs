//! The tools that the agent client knows by name, and the renames among them.
//!
//! Taken from what client 2.1.197 lists in `system/init`, with the names that earlier versions used. A name that
//! nobody knows is an error in a list, so that a typing mistake never looks like a restriction.

use crate::programs::Names;

/// The tools that `--tools` makes exist.
const OFFERED: Names = "Agent Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep \
    NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskOutput \
    TaskStop TaskUpdate WebFetch WebSearch Workflow Write";

/// Tools that are known and cannot be had here: interactive ones, and those that are gone.
const ABSENT: Names = "AskUserQuestion Config EnterPlanMode ExitPlanMode LS LSP ListMcpResourcesTool Monitor \
    NotebookRead PowerShell PushNotification ReadMcpResourceTool RemoteTrigger SlashCommand StructuredOutput \
    TodoRead TodoWrite ToolSearch";

/// Earlier names of tools, each with the present one.
const RENAMED: &[(&str, &str)] = &[
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutput", "TaskOutput"),
    ("KillBash", "TaskStop"),
    ("KillShell", "TaskStop"),
    ("MultiEdit", "Edit"),
    ("Task", "Agent"),
];

fn present_names() -> impl Iterator<Item = &'static str> {
    OFFERED.split_whitespace().chain(ABSENT.split_whitespace())
}

/// Blocked in every fork and for every subagent, whatever a file says: they recurse, schedule by themselves, or talk
/// to a person who is not there.
pub(super) const BLOCKED: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Monitor",
    "PushNotification",
    "RemoteTrigger",
    "ScheduleWakeup",
    "SendMessage",
    "TaskStop",
    "Workflow",
];

/// The names the client may use for a blocked tool, for its deny rules.
pub(super) fn names_of(canonical: &str) -> Vec<&'static str> {
    let earlier = RENAMED.iter().filter(|(_, now)| *now == canonical).map(|(name, _)| *name);
    present_names().filter(|name| *name == canonical).chain(earlier).collect()
}

/// Names of the client's built-in tools, renamed ones and those not offered here included.
pub(super) fn is_known(name: &str) -> bool {
    present_names().any(|tool| tool == name) || RENAMED.iter().any(|(earlier, _)| *earlier == name)
}

/// What a tool is called now: `Task` is `Agent`, `KillShell` is `TaskStop`. Unknown names stay as they are.
pub(super) fn canonical(name: &str) -> &str {
    RENAMED.iter().find(|(earlier, _)| *earlier == name).map_or(name, |(_, now)| now)
}

/// The built-ins that `--tools` can make exist, by their present names.
pub(super) fn offered_tools() -> impl Iterator<Item = &'static str> {
    OFFERED.split_whitespace()
}

/// The known name nearest to a mistyped one, if any is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    // Measuring takes time by the product of both lengths.
    let lower = Some(name).filter(|name| name.len() < 100)?.to_ascii_lowercase();
    present_names()
        .chain(RENAMED.iter().map(|(earlier, _)| *earlier))
        .map(|tool| (strsim::damerau_levenshtein(&lower, &tool.to_ascii_lowercase()), tool))
        .filter(|(distance, known)| *distance <= 2.min(known.len() / 2))
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_tools_are_found_under_their_present_name() {
        assert_eq!(canonical("Task"), "Agent");
        assert_eq!(canonical("KillShell"), "TaskStop");
        assert_eq!(canonical("mcp__x__y"), "mcp__x__y");
        assert_eq!(names_of("Agent"), ["Agent", "Task"]);
    }

    #[test]
    fn a_typing_mistake_has_a_suggestion() {
        assert_eq!(nearest("bash"), Some("Bash"));
        assert_eq!(nearest("Raed"), Some("Read"));
        assert_eq!(nearest("WebFecth"), Some("WebFetch"));
        assert_eq!(nearest("Zanzibar"), None);
        assert_eq!(nearest(&"Bash".repeat(100_000)), None);
    }

    #[test]
    fn every_blocked_tool_is_a_known_one() {
        for name in BLOCKED {
            assert!(is_known(name), "{name}");
        }
    }
}
