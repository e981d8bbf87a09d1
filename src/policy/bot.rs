//! Describes this program to the policy engine: its command line, tools and folders.

use tool_policy::{Application, JobRules, PathRoots, Policy, ToolPattern};

use super::{BgForkConfig, UpdateMode};

/// The client's name of one of our own tools: `own_tool!("ping_user")`. Without a name: our tool server.
macro_rules! own_tool {
    () => {
        "discord"
    };
    ($name:literal) => {
        concat!("mcp__", own_tool!(), "__", $name)
    };
}
pub(crate) use own_tool;

/// The name of our tool server.
pub const SERVER: &str = own_tool!();

/// The pattern of all tools of our server.
pub(crate) const OWN_SERVER: &str = concat!("mcp__", own_tool!());

/// The description of `ollim-bot`.
pub static BOT: Application = Application {
    command: "ollim-bot",
    // Exactly those of `cli`, as a test there checks: a global flag hides a call of a command that is missing here from its denial.
    subcommands: &[
        "agents",
        "backup",
        "budget",
        "cancel-run",
        "channels",
        "chat",
        "check",
        "completions",
        "config",
        "costs",
        "doctor",
        "edit",
        "export",
        "fire",
        "follow-up-chain",
        "help",
        "import",
        "inbox",
        "init",
        "journal",
        "login",
        "logs",
        "man",
        "mcp",
        "next",
        "pause",
        "policy",
        "push",
        "questions",
        "reminder",
        "restore",
        "resume",
        "routine",
        "run",
        "runs",
        "service",
        "sessions",
        "simulate",
        "spawn",
        "status",
        "web",
        "webhook",
        "why",
    ],
    aliases: &[("follow_up_chain", "follow-up-chain")],
    flags: &["--json"],
    valued_flags: &["--home", "--color"],
    refused_flag: "--home",
    extension_folder: "tools",
    always_allowed: "ollim-bot help",
    spawn_command: "ollim-bot spawn *",
    example: "Bash(ollim-bot gmail *)",
    server: SERVER,
    // An alias that holds for any channel.
    server_alias: "bot",
    tools: &[
        own_tool!("discord_embed"),
        own_tool!("enter_fork"),
        own_tool!("follow_up_chain"),
        own_tool!("ping_user"),
        own_tool!("report_updates"),
        own_tool!("sessions_spawn"),
        own_tool!("spawn_agent"),
    ],
    // Tools of the original bot that this version lacks. A file that names them still loads.
    retired_tools: &[own_tool!("exit_fork"), own_tool!("save_context")],
    same_actions: &[
        (&[own_tool!("follow_up_chain")], "ollim-bot follow-up-chain *"),
        (&[own_tool!("spawn_agent"), own_tool!("sessions_spawn")], "ollim-bot spawn *"),
    ],
    spawning_tools: &[own_tool!("follow_up_chain"), own_tool!("spawn_agent"), own_tool!("sessions_spawn")],
    reserved_variables: &["OLLIM_"],
    data_folder: "it is in the bot's data folder outside `work/` (definitions are changed with `ollim-bot routine` and `ollim-bot reminder`)",
    temporary: "state/runs/*/tmp",
    main_session: "the main session has what `main_tools` in config.yaml grants, and you are asked about what `main_ask_tools` names",
    ..Application::new(|path| std::fs::read_link(path))
};

/// Returns the entry that every allowlist contains automatically: `Bash(ollim-bot help)`.
#[must_use]
pub fn help_pattern() -> ToolPattern {
    ToolPattern::new("Bash", Some(BOT.always_allowed))
}

/// Returns the policy of a background job. `owner` names it in messages (`routine email-triage`); `main_tools` are the
/// main session's tools.
#[must_use]
pub fn background(owner: &str, config: &BgForkConfig, main_tools: &[ToolPattern], roots: &PathRoots) -> Policy {
    let disallowed = config.disallowed_tools().unwrap_or_default();
    let rules = JobRules { owner, allowed: config.allowed_tools(), disallowed, ask: config.asked_tools(), main_tools };
    let mut policy = Policy::background(&rules, roots, &BOT);
    if !config.allow_ping {
        policy = policy.denying("allow_ping: false", &[own_tool!("ping_user"), own_tool!("discord_embed")]);
    }
    if config.update_main_session == UpdateMode::Blocked {
        policy = policy.denying("update_main_session: blocked", &[own_tool!("report_updates")]);
    }
    policy
}

/// Returns the policy of the main session. It allows `main_tools` and calls that only read, and asks the person about `asked`.
#[must_use]
pub fn main_session(main_tools: &[ToolPattern], asked: &[ToolPattern], roots: &PathRoots) -> Policy {
    Policy::main_session(main_tools, asked, roots, &BOT)
}

/// Returns the default of `main_tools`: work on files, the web, skills and agents, and our own tools.
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
        OWN_SERVER,
    ]
    .into_iter()
    .map(|tool| ToolPattern::new(tool, None))
    .collect()
}
