//! The tools that the agent client knows by name, and their earlier names.
//!
//! The names are those that client 2.1.197 lists in `system/init`, and those that earlier versions used. An unknown name
//! in a list is an error, so that a typing mistake never looks like a restriction.

use crate::programs::Names;

/// The tools that `--tools` can enable.
const OFFERED: Names = "Agent Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree Glob Grep \
    NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskCreate TaskGet TaskList TaskOutput \
    TaskStop TaskUpdate WebFetch WebSearch Workflow Write";

/// Known tools that are unavailable here: interactive ones, and removed ones.
const ABSENT: Names = "AskUserQuestion Config EnterPlanMode ExitPlanMode LS LSP ListMcpResourcesTool Monitor \
    NotebookRead PowerShell PushNotification ReadMcpResourceTool RemoteTrigger SlashCommand StructuredOutput \
    TodoRead TodoWrite ToolSearch";

/// Earlier names of tools, each with the current one.
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

/// Tools blocked in every fork and for every subagent, whatever a file grants: they recurse, schedule by themselves, or talk
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

/// Returns all names that the client may use for a blocked tool, for its deny rules.
pub(super) fn names_of(canonical: &str) -> Vec<&'static str> {
    let earlier = RENAMED.iter().filter(|(_, now)| *now == canonical).map(|(name, _)| *name);
    present_names().filter(|name| *name == canonical).chain(earlier).collect()
}

/// Returns whether a name is one of the client's built-in tools, including renamed and unavailable ones.
pub(super) fn is_known(name: &str) -> bool {
    present_names().any(|tool| tool == name) || RENAMED.iter().any(|(earlier, _)| *earlier == name)
}

/// Returns the current name of a tool: `Task` is `Agent`, `KillShell` is `TaskStop`. Unknown names are returned unchanged.
pub(super) fn canonical(name: &str) -> &str {
    RENAMED.iter().find(|(earlier, _)| *earlier == name).map_or(name, |(_, now)| now)
}

/// Returns the built-in tools that `--tools` can enable, by their current names.
pub(super) fn offered_tools() -> impl Iterator<Item = &'static str> {
    OFFERED.split_whitespace()
}

/// Returns the known name nearest to a mistyped one, if any is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    // Comparing takes time proportional to the product of both lengths.
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
