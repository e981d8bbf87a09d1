//! The tools that the agent client knows by name, and the renames among them.
//!
//! Taken from what client 2.1.197 lists in `system/init`, with the names that earlier versions used. A name that
//! nobody knows is an error in a list, so that a typing mistake never looks like a restriction.

/// A built-in of the agent client.
struct ClientTool {
    name: &'static str,
    /// What it is called now, where it was renamed.
    now: &'static str,
    /// Whether `--tools` makes it exist. `false`: known, but not to be had here (interactive, or gone).
    offered: bool,
}

const fn offered(name: &'static str) -> ClientTool {
    ClientTool { name, now: name, offered: true }
}
const fn absent(name: &'static str) -> ClientTool {
    ClientTool { name, now: name, offered: false }
}
const fn renamed(name: &'static str, now: &'static str) -> ClientTool {
    ClientTool { name, now, offered: false }
}

const TOOLS: &[ClientTool] = &[
    offered("Agent"),
    offered("Bash"),
    offered("CronCreate"),
    offered("CronDelete"),
    offered("CronList"),
    offered("Edit"),
    offered("EnterWorktree"),
    offered("ExitWorktree"),
    offered("Glob"),
    offered("Grep"),
    offered("NotebookEdit"),
    offered("Read"),
    offered("ReportFindings"),
    offered("ScheduleWakeup"),
    offered("SendMessage"),
    offered("Skill"),
    offered("TaskCreate"),
    offered("TaskGet"),
    offered("TaskList"),
    offered("TaskOutput"),
    offered("TaskStop"),
    offered("TaskUpdate"),
    offered("WebFetch"),
    offered("WebSearch"),
    offered("Workflow"),
    offered("Write"),
    absent("AskUserQuestion"),
    absent("Config"),
    absent("EnterPlanMode"),
    absent("ExitPlanMode"),
    absent("LS"),
    absent("LSP"),
    absent("ListMcpResourcesTool"),
    absent("Monitor"),
    absent("NotebookRead"),
    absent("PowerShell"),
    absent("PushNotification"),
    absent("ReadMcpResourceTool"),
    absent("RemoteTrigger"),
    absent("SlashCommand"),
    absent("StructuredOutput"),
    absent("TodoRead"),
    absent("TodoWrite"),
    absent("ToolSearch"),
    renamed("AgentOutputTool", "TaskOutput"),
    renamed("BashOutput", "TaskOutput"),
    renamed("KillBash", "TaskStop"),
    renamed("KillShell", "TaskStop"),
    renamed("MultiEdit", "Edit"),
    renamed("Task", "Agent"),
];

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
    TOOLS.iter().filter(|tool| tool.now == canonical).map(|tool| tool.name).collect()
}

/// Names of the client's built-in tools, renamed ones and those not offered here included.
pub(super) fn is_known(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// What a tool is called now: `Task` is `Agent`, `KillShell` is `TaskStop`. Unknown names stay as they are.
pub(super) fn canonical(name: &str) -> &str {
    TOOLS.iter().find(|tool| tool.name == name).map_or(name, |tool| tool.now)
}

/// The built-ins that `--tools` can make exist, by their present names.
pub(super) fn offered_tools() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().filter(|tool| tool.offered).map(|tool| tool.name)
}

/// The known name nearest to a mistyped one, if any is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    TOOLS
        .iter()
        .map(|tool| (strsim::damerau_levenshtein(&lower, &tool.name.to_ascii_lowercase()), tool.name))
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
    }

    #[test]
    fn every_blocked_tool_is_a_known_one() {
        for name in BLOCKED {
            assert!(is_known(name), "{name}");
        }
    }
}
