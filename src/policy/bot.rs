//! This program, as the policy engine sees it: its command line, its tools and its folders.

use tool_policy::{Application, JobRules, PathRoots, Policy, ToolPattern};

use super::{BgForkConfig, UpdateMode};

/// What the engine has to know of `ollim-bot`.
pub static BOT: Application = Application {
    command: "ollim-bot",
    subcommands: &[
        "agents",
        "budget",
        "cancel-run",
        "chat",
        "check",
        "completions",
        "config",
        "doctor",
        "fire",
        "follow-up-chain",
        "help",
        "inbox",
        "init",
        "next",
        "pause",
        "policy",
        "reminder",
        "resume",
        "routine",
        "run",
        "runs",
        "service",
        "sessions",
        "spawn",
        "status",
    ],
    aliases: &[("follow_up_chain", "follow-up-chain")],
    flags: &["--json"],
    valued_flags: &["--home", "--color"],
    refused_flag: "--home",
    extension_folder: "tools",
    always_allowed: "ollim-bot help",
    spawn_command: "ollim-bot spawn *",
    example: "Bash(ollim-bot gmail *)",
    server: "discord",
    // Whatever channels there are.
    server_alias: "bot",
    tools: &[
        "mcp__discord__discord_embed",
        "mcp__discord__enter_fork",
        "mcp__discord__follow_up_chain",
        "mcp__discord__ping_user",
        "mcp__discord__report_updates",
        "mcp__discord__sessions_spawn",
        "mcp__discord__spawn_agent",
    ],
    // Tools of the original bot that this version does not have. Its files load all the same.
    retired_tools: &["mcp__discord__exit_fork", "mcp__discord__save_context"],
    spawning_tools: &["mcp__discord__follow_up_chain", "mcp__discord__spawn_agent", "mcp__discord__sessions_spawn"],
    reserved_variables: &["OLLIM_"],
    data_folder: "it is in the bot's data folder outside `work/` (definitions are changed with `ollim-bot routine` and `ollim-bot reminder`)",
    temporary: "state/runs/*/tmp",
    main_session: "the main session has what `main_tools` in config.yaml grants, and you are asked about what `main_ask_tools` names",
    ..Application::new(|path| std::fs::read_link(path))
};

/// The entry that every allowlist gets by itself: `Bash(ollim-bot help)`.
#[must_use]
pub fn help_pattern() -> ToolPattern {
    ToolPattern::new("Bash", Some(BOT.always_allowed))
}

/// Returns the policy of a background job. `owner` names it in sentences (`routine email-triage`); `main_tools` are
/// what the main session has.
#[must_use]
pub fn background(owner: &str, config: &BgForkConfig, main_tools: &[ToolPattern], roots: &PathRoots) -> Policy {
    let disallowed = config.disallowed_tools().unwrap_or_default();
    let rules = JobRules { owner, allowed: config.allowed_tools(), disallowed, ask: config.asked_tools(), main_tools };
    let mut policy = Policy::background(&rules, roots, &BOT);
    if !config.allow_ping {
        policy = policy.denying("allow_ping: false", &["mcp__discord__ping_user", "mcp__discord__discord_embed"]);
    }
    if config.update_main_session == UpdateMode::Blocked {
        policy = policy.denying("update_main_session: blocked", &["mcp__discord__report_updates"]);
    }
    policy
}

/// Returns the policy of the main session: what `main_tools` grants, and calls that only read. The person is asked about `asked`.
#[must_use]
pub fn main_session(main_tools: &[ToolPattern], asked: &[ToolPattern], roots: &PathRoots) -> Policy {
    Policy::main_session(main_tools, asked, roots, &BOT)
}

/// What the main session may do where `main_tools` is not configured: work on the desk, the web, its skills and
/// agents, and our own tools.
#[must_use]
pub fn default_main_tools() -> Vec<ToolPattern> {
    [
        "Bash",
        "Read",
        "Edit",
        "Glob",
        "Grep",
        "WebFetch",
        "WebSearch",
        "Skill",
        "Agent",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "mcp__discord",
    ]
    .into_iter()
    .map(|tool| ToolPattern::new(tool, None))
    .collect()
}
