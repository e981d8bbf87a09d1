//! The client's command line and environment, as pure functions of a run's request.
//!
//! System prompts are not part of them. `initialize` passes them, so that other processes cannot see them and their
//! length is unlimited.
//!
//! A fork gets no `--allowedTools`: that flag pre-approves calls, and with it a failing hook fails open. Our hook
//! approves each call that a job may make; `dontAsk` denies every call that the hook does not approve.

use std::collections::BTreeMap;
use std::path::Path;

use crate::agent::{ClientOptions, SessionMode};
use crate::definition::Thinking;

/// Returns the client's arguments, without the program.
#[must_use]
pub fn command_line(
    session: &SessionMode,
    options: &ClientOptions,
    visible_tools: &[String],
    deny_rules: &[String],
) -> Vec<String> {
    let main = session.is_attended();
    let mut line = CommandLine(Vec::new());
    line.flag("--print");
    line.flag("--verbose");
    line.option("--input-format", "stream-json");
    line.option("--output-format", "stream-json");
    line.option("--permission-mode", if main { "default" } else { "dontAsk" });
    if main {
        // A hidden flag. Without it the client never asks for a permission.
        line.option("--permission-prompt-tool", "stdio");
        // A person reads along and may send more messages. The client then reports when it gives one to the model.
        line.flag("--include-partial-messages");
        line.flag("--replay-user-messages");
    }
    line.option("--setting-sources", "");
    // Clients since 2.1.224 listen on a socket, and take what any process of the user writes there for a message of a colleague.
    // A plugin of theirs brings a tool that asks nobody.
    line.option("--settings", SETTINGS);
    // The client uses only our MCP servers, which `initialize` names.
    line.flag("--strict-mcp-config");
    line.option("--tools", visible_tools.join(","));
    if !deny_rules.is_empty() {
        line.flag("--disallowedTools");
        line.0.extend(deny_rules.iter().cloned());
    }
    if let Some(agents) = &options.agents {
        line.option("--agents", agents);
    }
    if let Some(model) = &options.model {
        line.option("--model", model);
    }
    match options.thinking {
        // `variables` switches thinking off.
        None | Some(Thinking::Disabled) => {}
        Some(Thinking::Adaptive) => line.option("--thinking", "adaptive"),
        Some(Thinking::Budget(tokens)) => line.option("--max-thinking-tokens", tokens),
    }
    if let Some(turns) = options.max_turns {
        line.option("--max-turns", turns);
    }
    if let Some(dollars) = options.max_budget_usd {
        line.option("--max-budget-usd", dollars);
    }
    match session {
        SessionMode::Isolated | SessionMode::Main(None) | SessionMode::Beside(None) => {}
        SessionMode::ForkOfMain { transcript } | SessionMode::Beside(Some(transcript)) => {
            line.0.push(format!("--resume={}", transcript.display()));
            line.flag("--fork-session");
        }
        SessionMode::Main(Some(session)) => line.0.push(format!("--resume={session}")),
    }
    line.0
}

/// Settings that no argument and no variable can express.
const SETTINGS: &str = r#"{"crossSessionInbound":"refuse","enabledPlugins":{"plugin-authoring@builtin":false}}"#;

struct CommandLine(Vec<String>);

impl CommandLine {
    fn flag(&mut self, name: &str) {
        self.0.push(name.into());
    }
    fn option(&mut self, name: &str, value: impl ToString) {
        self.0.extend([name.into(), value.to_string()]);
    }
}

/// Variables of the service's own environment that a client gets as they are, if they are set.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "TZ",
    "USER",
    // The address of the API, and the way to it.
    "ANTHROPIC_BASE_URL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Set by the builder of the container in which the service runs.
    "IS_SANDBOX",
];

/// The part of the environment that is the same for every client of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientEnvironment {
    /// The service's own environment.
    pub own: BTreeMap<String, String>,
    /// The setting `client_env`. It overrides the service's own environment for every client.
    pub added: BTreeMap<String, String>,
    /// Folders at the front of `PATH`: the one of our own binary, and the one of the person's own commands.
    pub programs: Vec<String>,
    /// The data folder, for `OLLIM_HOME`.
    pub data_folder: String,
}

/// Returns the variables for options that no argument can express.
///
/// 2.1.330 ignores `--thinking disabled` for the models of its time; the variable works for every model and client.
#[must_use]
pub fn variables(options: &ClientOptions) -> BTreeMap<String, String> {
    let off = (options.thinking == Some(Thinking::Disabled)).then_some(("CLAUDE_CODE_DISABLE_THINKING", "1"));
    off.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Returns the environment of every client, without its login and [`variables`].
///
/// `config_dir` is the client's own configuration folder, `temporary` its folder for temporary files, and `token` identifies the run on
/// the control socket. Only the variables named here are passed on. So none leads out of the sandbox, such as
/// `SSH_AUTH_SOCK`, `TMUX`, `DBUS_SESSION_BUS_ADDRESS` or `DOCKER_HOST`.
#[must_use]
pub fn environment(
    client_environment: &ClientEnvironment,
    config_dir: &Path,
    temporary: &Path,
    token: &str,
) -> BTreeMap<String, String> {
    let own = &client_environment.own;
    let mut env: BTreeMap<String, String> = own
        .iter()
        .filter(|(name, _)| INHERITED.contains(&name.as_str()) || name.starts_with("LC_"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(client_environment.added.clone());
    let path = env.get("PATH").or_else(|| own.get("PATH")).map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    let path = client_environment.programs.iter().map(String::as_str).chain([path]).collect::<Vec<_>>().join(":");
    let [config_dir, temporary] = [config_dir, temporary].map(|path| path.display().to_string());
    let ours: [(&str, &str); 16] = [
        ("PATH", &path),
        ("OLLIM_HOME", &client_environment.data_folder),
        ("OLLIM_RUN_TOKEN", token),
        ("CLAUDE_CONFIG_DIR", &config_dir),
        ("TMPDIR", &temporary),
        ("CLAUDE_CODE_TMPDIR", &temporary),
        ("CLAUDE_CODE_SHELL", "/bin/bash"),
        // A bash whose standard input is a socket assumes a remote login and reads ~/.bashrc, unless `SHLVL` says that it
        // runs inside a shell.
        ("SHLVL", "1"),
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // Without this, `@/path` anywhere in a prompt reads that file, with no tool and no hook.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        // A background task would end with the client, which may have only one turn.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1"),
        // Otherwise the client takes tasks from `.claude/scheduled_tasks.json` in its folder, where jobs write, as the person's own prompts.
        ("CLAUDE_CODE_DISABLE_CRON", "1"),
        // These instructions on commits and signing take 450 to 1,500 bytes in each request.
        ("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    env.extend(ours.into_iter().chain(OF_OWN_PROGRAMS).map(|(name, value)| (name.to_string(), value.to_string())));
    env
}

/// Variables for programs that the client starts by itself, outside of its shell. At its start it asks git about its folder, where jobs write:
/// a repository there may configure commands that git runs.
pub const OF_OWN_PROGRAMS: [(&str, &str); 1] = [("GIT_DIR", "/dev/null")];

/// Variables of [`shell_environment`] that every shell has, that of a main session of every right as well: it asks git about folders
/// where jobs write.
pub const GIT_IN_PLANTED_FOLDERS: [&str; 5] =
    ["GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1"];

impl ClientEnvironment {
    /// Returns whether `client_env` names a proxy for programs.
    #[must_use]
    pub fn names_proxy(&self) -> bool {
        let is_proxy = |name: &String| name.to_ascii_lowercase().ends_with("_proxy");
        self.added.keys().any(is_proxy)
    }
}

/// Returns the environment of a job's shell and of the programs that it starts: the service's harmless variables and `client_env`,
/// without variables of the client and without `PATH`. `temporary` is the folder for temporary files.
#[must_use]
pub fn shell_environment(client_environment: &ClientEnvironment, temporary: &Path) -> BTreeMap<String, String> {
    const INHERITED: &[&str] = &["HOME", "LANG", "LANGUAGE", "LOGNAME", "TZ", "USER"];
    const OF_THE_CLIENT: &[&str] = &["ANTHROPIC_", "CLAUDE_", "OLLIM_", "AGENT_SANDBOX_"];
    let named = |name: &&String| INHERITED.contains(&name.as_str()) || name.starts_with("LC_");
    let own = client_environment.own.iter().filter(|(name, _)| named(name));
    let added =
        client_environment.added.iter().filter(|(name, _)| !OF_THE_CLIENT.iter().any(|start| name.starts_with(start)));
    let mut env: BTreeMap<String, String> =
        own.chain(added).map(|(name, value)| (name.clone(), value.clone())).collect();
    let temporary = temporary.display().to_string();
    let ours: [(&str, &str); 12] = [
        ("TMPDIR", &temporary),
        // Git runs no program that a planted repository configures.
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
        ("GIT_CONFIG_VALUE_0", "explicit"),
        ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_1", "false"),
        // A bash whose standard input is a socket assumes a remote login and reads ~/.bashrc, unless `SHLVL` says that it
        // runs inside a shell.
        ("SHLVL", "1"),
        ("GIT_EDITOR", "true"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // The sandbox denies access to the person's configuration, and git fails if it sees a file that it cannot read.
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
    ];
    env.remove("PATH");
    for (name, value) in ours {
        env.entry(name.into()).or_insert_with(|| value.into());
    }
    env.insert("TMPDIR".into(), temporary.clone());
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SessionId;

    #[track_caller]
    fn check(session: &SessionMode, options: &ClientOptions, visible: &[&str], deny: &[&str], expect: &str) {
        let words = |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
        let line = command_line(session, options, &words(visible), &words(deny));
        let shown: Vec<String> =
            line.iter().map(|word| if word.is_empty() { "''".into() } else { word.clone() }).collect();
        assert_eq!(shown.join(" "), expect.replace('\n', " "));
    }

    #[test]
    fn a_fork_is_started_under_its_restrictions() {
        check(
            &SessionMode::Isolated,
            &ClientOptions::default(),
            &[],
            &[],
            r#"--print --verbose --input-format stream-json --output-format stream-json --permission-mode dontAsk
--setting-sources '' --settings {"crossSessionInbound":"refuse","enabledPlugins":{"plugin-authoring@builtin":false}} --strict-mcp-config --tools ''"#,
        );
        check(
            &SessionMode::ForkOfMain { transcript: "/d/state/runs/1/main.jsonl".into() },
            &ClientOptions {
                allowed_tools: Some(vec!["Bash(ls *)".into()]),
                disallowed_tools: None,
                model: Some("haiku".into()),
                thinking: Some(Thinking::Budget(2000)),
                max_turns: Some(7),
                max_budget_usd: Some(0.5),
                max_budget_from: "",
                agents: Some(r#"{"a":{}}"#.into()),
                system_prompt: Some("be brief".into()),
                append_system_prompt: Some("be brief".into()),
                never_compact: true,
            },
            &["Bash", "Read"],
            &["WebFetch", "Bash(ollim-bot cal *)"],
            r#"--print --verbose --input-format stream-json --output-format stream-json --permission-mode dontAsk
--setting-sources '' --settings {"crossSessionInbound":"refuse","enabledPlugins":{"plugin-authoring@builtin":false}} --strict-mcp-config --tools Bash,Read
--disallowedTools WebFetch Bash(ollim-bot cal *) --agents {"a":{}} --model haiku --max-thinking-tokens 2000 --max-turns 7 --max-budget-usd 0.5
--resume=/d/state/runs/1/main.jsonl --fork-session"#,
        );
    }

    #[test]
    fn the_main_session_asks_through_us() {
        let options = ClientOptions { thinking: Some(Thinking::Disabled), ..ClientOptions::default() };
        check(
            &SessionMode::Main(Some(SessionId("0f".into()))),
            &options,
            &["Bash"],
            &[],
            r#"--print --verbose --input-format stream-json --output-format stream-json --permission-mode default
--permission-prompt-tool stdio --include-partial-messages --replay-user-messages --setting-sources '' --settings {"crossSessionInbound":"refuse","enabledPlugins":{"plugin-authoring@builtin":false}} --strict-mcp-config
--tools Bash --resume=0f"#,
        );
        assert_eq!(variables(&options)["CLAUDE_CODE_DISABLE_THINKING"], "1");
        assert!(variables(&ClientOptions::default()).is_empty());
    }

    #[test]
    fn no_session_pre_approves_a_tool() {
        let options = ClientOptions { allowed_tools: Some(vec!["Bash".into()]), ..ClientOptions::default() };
        for session in
            [SessionMode::Isolated, SessionMode::Main(None), SessionMode::ForkOfMain { transcript: "/t".into() }]
        {
            let line = command_line(&session, &options, &["Bash".into()], &[]);
            assert!(
                !line.iter().any(|word| word.to_lowercase().contains("allowed") && word != "--disallowedTools"),
                "{line:?}"
            );
        }
    }

    #[test]
    fn only_what_is_named_gets_into_the_environment() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let client_environment = ClientEnvironment {
            own: map(&[
                ("PATH", "/usr/bin"),
                ("HOME", "/home/ann"),
                ("LC_ALL", "C.UTF-8"),
                ("SSH_AUTH_SOCK", "/s"),
                ("TMUX", "/t"),
                ("ANTHROPIC_API_KEY", "sk-1"),
                ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
                ("LD_PRELOAD", "/x.so"),
                ("CLAUDE_CONFIG_DIR", "/home/ann/.claude"),
                ("OLLIM_RUN_TOKEN", "stale"),
                ("NODE_OPTIONS", "--require=/x.js"),
            ]),
            added: map(&[("LANG", "de_DE.UTF-8"), ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "0")]),
            programs: vec!["/opt/ollim".into(), "/d/bin".into()],
            data_folder: "/d".into(),
        };
        let env =
            environment(&client_environment, Path::new("/d/state/runs/1/claude"), Path::new("/d/state/runs/1"), "tok");
        let lines: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        ANTHROPIC_BASE_URL=http://127.0.0.1:1
        CLAUDE_CODE_DISABLE_ATTACHMENTS=1
        CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
        CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
        CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1
        CLAUDE_CODE_DISABLE_CRON=1
        CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
        CLAUDE_CODE_SHELL=/bin/bash
        CLAUDE_CODE_TMPDIR=/d/state/runs/1
        CLAUDE_CONFIG_DIR=/d/state/runs/1/claude
        DISABLE_AUTOUPDATER=1
        GIT_DIR=/dev/null
        HOME=/home/ann
        LANG=de_DE.UTF-8
        LC_ALL=C.UTF-8
        OLLIM_HOME=/d
        OLLIM_RUN_TOKEN=tok
        PATH=/opt/ollim:/d/bin:/usr/bin
        SHLVL=1
        TMPDIR=/d/state/runs/1
        ");
    }
}
