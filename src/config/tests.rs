//! The values of settings, and the messages for invalid ones.

use super::*;
use crate::policy::ToolPattern;
use agent_sandbox::Limits;
use std::time::Duration;

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    let zone = ("TZ".to_owned(), "Asia/Tokyo".to_owned());
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).chain([zone]).collect()
}

fn load(text: &str, variables: &[(&str, &str)]) -> Config {
    Config::parse(text, &env(variables)).unwrap()
}

fn check(text: &str, variables: &[(&str, &str)]) -> String {
    match Config::parse(text, &env(variables)) {
        Ok(_) => "ok".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn nothing_needs_to_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config::load(&Home::new(dir.path()), &env(&[])).unwrap();
    assert_eq!(config.origin("timezone"), &Origin::System);
    let mut expected = Config::defaults(chrono_tz::Asia::Tokyo);
    expected.origins = config.origins.clone();
    assert_eq!(config, expected);
    assert_eq!(check("# only a comment\n", &[]), "ok");
    let settings: Vec<String> =
        config.settings().iter().map(|s| format!("{} = {} ({})", s.key, s.value, s.origin)).collect();
    insta::assert_snapshot!(settings.join("\n"), @r#"
    timezone = "Asia/Tokyo" (system)
    agent_client = "auto" (default)
    claude_command = "claude" (default)
    client_env = [] (default)
    model = null (default)
    thinking = true (default)
    main_tools = ["Bash","Read","Edit","Glob","Grep","WebFetch","WebSearch","Skill","Agent","TaskCreate","TaskGet","TaskList","TaskUpdate","mcp__discord"] (default)
    main_ask_tools = [] (default)
    tools = {"subagents":{"tools":{}}} (default)
    mcp_servers = {} (default)
    channels = {} (default)
    default_channel = "console" (default)
    critical_channel = null (default)
    quiet_hours = null (default)
    failover_after = "5m" (default)
    timeout = "30m" (default)
    inactivity_timeout = "10m" (default)
    main_idle_timeout = "15m" (default)
    max_concurrent_runs = 4 (default)
    shutdown_grace = "30s" (default)
    alert_after = 1 (default)
    notify_chain_delay = "1h" (default)
    require_sandbox = false (default)
    sandbox = "kernel" (default)
    limits = {"cpus":null,"disk":"4.0GiB","memory":"8.0GiB","processes":1024} (default)
    budget = null (default)
    journal = null (default)
    host = null (default)
    host_labels = [] (default)
    share_files = true (default)
    journal_retention = "90d" (default)
    heartbeat_url = null (default)
    web = null (default)
    web_url = null (default)
    webhooks = null (default)
    user_name = null (default)
    bot_name = "ollim-bot" (default)
    "#);
}

#[test]
fn every_setting_of_this_version_is_listed_and_commented() {
    let config = Config::defaults(chrono_tz::UTC);
    let listed: Vec<&str> = config.settings().iter().map(|setting| setting.key).collect();
    let supported: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(listed, supported);
    assert_eq!(check(&commented(), &[]), "ok");
    // Uncommented, every line is valid, and those that show a default equal it.
    let setting = |line: &&str| {
        line.strip_prefix("# ").is_some_and(|l| l.split_once(':').is_some_and(|(key, _)| listed.contains(&key)))
    };
    let commented = commented();
    let lines: Vec<&str> = commented.lines().filter(setting).map(|line| &line[2..]).collect();
    assert_eq!(lines.iter().map(|line| line.split_once(':').unwrap().0).collect::<Vec<_>>(), listed);
    let uncommented = load(&lines.join("\n"), &[]);
    for (setting, default) in uncommented.settings().iter().zip(config.settings()) {
        if ![
            "timezone",
            "model",
            "main_tools",
            "main_ask_tools",
            "tools",
            "mcp_servers",
            "channels",
            "critical_channel",
            "quiet_hours",
            "budget",
            "heartbeat_url",
            "host",
            "host_labels",
            "journal",
            "web",
            "web_url",
            "webhooks",
            "user_name",
        ]
        .contains(&setting.key)
        {
            assert_eq!(setting.value, default.value, "{}", setting.key);
        }
    }
}

#[test]
fn the_file_says() {
    let config = load(
        "timezone: Europe/Vienna\nagent-client: notify\nclaude_command: /opt/my claude\nclient_env: [HTTPS_PROXY]\nmodel: haiku\n\
         thinking: false\nmain_tools:\n  - Read\n  - Bash(git *)\nchannels:\n  phone: { kind: command, command: x, keep: true }\ntimeout: 1h\n\
         inactivity_timeout: 5m\nmax_concurrent_runs: 2\nshutdown_grace: 0s\nnotify_chain_delay: 90s\n\
         require_sandbox: true\njournal_retention: 1y\nuser_name: Ada\nbot_name: Ollie\n",
        &[],
    );
    let settings: Vec<String> =
        config.settings().iter().map(|s| format!("{} = {} ({})", s.key, s.value, s.origin)).collect();
    insta::assert_snapshot!(settings.join("\n"), @r#"
    timezone = "Europe/Vienna" (config.yaml:1)
    agent_client = "notify" (config.yaml:2)
    claude_command = "/opt/my claude" (config.yaml:3)
    client_env = ["HTTPS_PROXY"] (config.yaml:4)
    model = "haiku" (config.yaml:5)
    thinking = false (config.yaml:6)
    main_tools = ["Read","Bash(git *)"] (config.yaml:7)
    main_ask_tools = [] (default)
    tools = {"subagents":{"tools":{}}} (default)
    mcp_servers = {} (default)
    channels = {"phone":{"command":["x"],"keep":true,"kind":"command"}} (config.yaml:10)
    default_channel = "console" (default)
    critical_channel = null (default)
    quiet_hours = null (default)
    failover_after = "5m" (default)
    timeout = "1h" (config.yaml:12)
    inactivity_timeout = "5m" (config.yaml:13)
    main_idle_timeout = "15m" (default)
    max_concurrent_runs = 2 (config.yaml:14)
    shutdown_grace = "0s" (config.yaml:15)
    alert_after = 1 (default)
    notify_chain_delay = "1m30s" (config.yaml:16)
    require_sandbox = true (config.yaml:17)
    sandbox = "kernel" (default)
    limits = {"cpus":null,"disk":"4.0GiB","memory":"8.0GiB","processes":1024} (default)
    budget = null (default)
    journal = null (default)
    host = null (default)
    host_labels = [] (default)
    share_files = true (default)
    journal_retention = "365d6h" (config.yaml:18)
    heartbeat_url = null (default)
    web = null (default)
    web_url = null (default)
    webhooks = null (default)
    user_name = "Ada" (config.yaml:19)
    bot_name = "Ollie" (config.yaml:20)
    "#);
}

#[test]
fn the_tools_of_spawned_agents_are_two_lists_that_may_be_absent() {
    let tools = |text: &str| serde_json::to_string(&load(text, &[]).tools).unwrap();
    assert_eq!(
        tools("tools: { subagents: { tools: { deny: [Bash(git push *)] } } }\n"),
        r#"{"deny":["Bash(git push *)"]}"#
    );
    assert_eq!(
        tools("tools:\n  subagents:\n    tools:\n      allow: []\n      deny: []\n"),
        r#"{"allow":[],"deny":[]}"#
    );
    assert_eq!(tools("tools: { subagents: { tools: {} } }\n"), "{}");
    for (text, part) in [
        ("tools: [Read]\n", "`tools` must have `subagents`"),
        ("tools: { subagents: { tool: {} } }\n", "unknown setting `tool` of `tools.subagents`"),
        ("tools: { subagents: { tools: { alow: [Read] } } }\n", "unknown setting `alow`"),
        ("tools: { subagents: { tools: { allow: [Raed] } } }\n", "did you mean `Read`?"),
        ("tools: { subagents: { tools: { allow: } } }\n", "must be a list"),
    ] {
        assert!(check(text, &[]).contains(part), "{text}: {}", check(text, &[]));
    }
}

#[test]
fn variables_win() {
    let config = load(
        "timezone: Europe/Vienna\nmodel: haiku\n",
        &[
            ("OLLIM_TIMEZONE", "America/New_York"),
            ("OLLIM_CLAUDE", "/stub/claude"),
            ("OLLIM_CLIENT_ENV", "[A, B]"),
            ("OLLIM_MAIN_TOOLS", "Bash(git log: *)"),
            ("OLLIM_MAX_CONCURRENT_RUNS", "7"),
            ("OLLIM_TIMEOUT", "2m"),
            ("OLLIM_USER_NAME", "yes: it's me # really"),
            ("OLLIM_CHANNEL", "console"),
            ("OLLIM_RUN_TOKEN", "not a setting"),
            ("OLLIM_HOME", "/x"),
        ],
    );
    assert_eq!(config.timezone, chrono_tz::America::New_York);
    assert_eq!(config.origin("timezone"), &Origin::Variable("OLLIM_TIMEZONE".into()));
    assert_eq!((config.model.as_deref(), config.origin("model")), (Some("haiku"), &Origin::File(2)));
    assert_eq!(
        (config.claude_command.as_str(), config.origin("claude_command").to_string()),
        ("/stub/claude", "OLLIM_CLAUDE".into())
    );
    assert_eq!(config.client_env, ["A", "B"]);
    assert_eq!(config.main_tools, [ToolPattern::parse("Bash(git log: *)").unwrap()]);
    assert_eq!((config.max_concurrent_runs, config.timeout), (7, Duration::from_secs(120)));
    assert_eq!(config.user_name.as_deref(), Some("yes: it's me # really"));
    let config = load("", &[("OLLIM_CLAUDE_COMMAND", "one"), ("OLLIM_CLAUDE", "two")]);
    assert_eq!(config.claude_command, "one");
}

#[test]
fn what_is_wrong_is_said_at_once_and_located() {
    let blocks = [
        check("timezon: UTC\nfoo: 1\n", &[]),
        check("\nmodel: haiku\nmodel: opus\n", &[]),
        check(
            "git_commit: true\ntools: { subagents: { tools: { deny: Bash } } }\nchannels: { phone: { kind: pigeon } }\n",
            &[],
        ),
        check("timeout: 30\nmax_concurrent_runs: 0\nthinking: hard\nagent_client: gpt\n", &[]),
        check("client_env: [PATH, 'A B']\nmain_tools: ['']\n", &[]),
        check("client_env: [OLLIM_RUN_TOKEN]\nclaude_command: claude --version\nbot_name: \"a\\nb\"\n", &[]),
        check("channels: { console: { kind: command } }\ndefault_channel: phone\n", &[]),
        check("- a\n", &[]),
        check("timezone: 'x\n", &[]),
        check("timezone: Nowhere\n", &[("OLLIM_TIMEZONE", "UTC")]),
        check(
            "",
            &[("OLLIM_TIMEOUT", "soon"), ("OLLIM_MAX_CONCURRENT_RUNS", "1\ntimeout: 1s"), ("OLLIM_GIT_COMMIT", "true")],
        ),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    error: unknown setting `timezon`
      --> config.yaml:1:1
    hint: did you mean `timezone`?
    error: unknown setting `foo`
      --> config.yaml:2:1
    hint: remove it; docs/configuration.md lists every setting

    error: `model` is set twice
      --> config.yaml:3:1
    hint: keep one of the two

    error: `git_commit` is not supported by this version
      --> config.yaml:1:1
    hint: remove it, or use a newer version
    error: `tools.subagents.tools.deny` must be a list
      --> config.yaml:2:8
    hint: write `tools: { subagents: { tools: { allow: [Read], deny: [WebFetch] } } }`; each list may be left out
    error: there is no channel of the kind `pigeon`
      --> config.yaml:3:20
    hint: the kinds are: command, discord, mail, ntfy, telegram

    error: `timeout` needs a unit, found `30`
      --> config.yaml:1:10
    hint: write `timeout: 30s` or `timeout: 30m`
    error: `max_concurrent_runs` must be at least 1, found 0
      --> config.yaml:2:22
    hint: write `max_concurrent_runs: 1` or more
    error: `thinking` must be `true`, `false` or a number of tokens, found `hard`
      --> config.yaml:3:11
    hint: write `thinking: true`, `thinking: false` or `thinking: 8000`
    error: `agent_client` must be one of `auto`, `claude`, `notify`, found `gpt`
      --> config.yaml:4:15
    hint: write one of `auto`, `claude`, `notify`

    error: `A B` is not the name of a variable
      --> config.yaml:1:20
    hint: write names only, for example `- HTTPS_PROXY`
    error: `main_tools`: empty tool pattern
      --> config.yaml:2:14
    hint: remove the item: an empty list is written `[]`

    error: `OLLIM_RUN_TOKEN` is ollim-bot's own and cannot be handed on
      --> config.yaml:1:14
    hint: remove it from the list
    error: `bot_name` must be a name of at most 64 letters on one line
      --> config.yaml:3:11
    hint: shorten it

    error: the channel `console` is always there
      --> config.yaml:1:22
    hint: remove it, or choose another name
    error: there is no channel `phone`
      --> config.yaml:2:18
    hint: `channels` makes it; there is: console

    error: not valid YAML: expected `key: value` lines, found a list
      --> config.yaml:1:1
    hint: each setting is a line `key: value`

    error: not valid YAML: found unexpected end of stream, while scanning a quoted scalar
      --> config.yaml:2:1
    hint: close the quote: a `'` within single quotes is written `''`

    error: unknown time zone `Nowhere`
      --> config.yaml:1:11
    hint: write an IANA name, for example `Europe/Vienna`

    error: the value of `OLLIM_MAX_CONCURRENT_RUNS` cannot be read
      --> OLLIM_MAX_CONCURRENT_RUNS:1:1
    hint: write one value, as it would stand in config.yaml
    error: `git_commit` is not supported by this version
      --> OLLIM_GIT_COMMIT:1:1
    hint: remove it, or use a newer version
    error: `timeout` must be a span of time, found `soon`
      --> OLLIM_TIMEOUT:1:1
    hint: write `timeout: 10m`, `90s` or `1h30m`
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path());
    std::fs::create_dir(home.config_file()).unwrap();
    assert!(matches!(Config::load(&home, &env(&[])), Err(ConfigError::Io { .. })));
}

#[test]
fn limits_are_sizes_and_numbers() {
    let limits = |text: &str| Config::parse(text, &BTreeMap::new()).map(|config| config.limits);
    let all = limits("limits: { memory: 2GiB, processes: 64, disk: 500 MB, cpus: 1.5 }\n").unwrap();
    assert_eq!(all, Limits { memory: 2 << 30, processes: 64, disk: 500_000_000, cpus: Some(1.5) });
    let one = limits("limits: { cpus: 2 }\n").unwrap();
    assert_eq!(one, Limits { cpus: Some(2.0), ..Limits::default() });
    for (text, part) in [
        ("limits: 4GiB\n", "must name what it limits"),
        ("limits: { memory: 4 }\n", "`limits.memory` must be a size of at least 64MiB"),
        ("limits: { memory: 1MiB }\n", "at least 64MiB"),
        ("limits: { processes: 3 }\n", "at least 32"),
        ("limits: { processes: many }\n", "a whole number"),
        ("limits: { cpus: 0 }\n", "processors from 0.05"),
        ("limits: { cpus: .nan }\n", "processors from 0.05"),
        ("limits: { disc: 4GiB }\n", "unknown setting `disc` of `limits`"),
        ("limits: { disk: 4GiB, disk: 1GiB }\n", "twice"),
    ] {
        let error = limits(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn what_is_granted_anyway_is_not_asked_about() {
    let asked = "main_ask_tools: [mcp__home, 'Bash(git push *)']\n";
    let ConfigError::Invalid { problems } = Config::parse(asked, &BTreeMap::new()).unwrap_err() else { panic!() };
    insta::assert_snapshot!(problems[0].to_string(), @r"
    error: `Bash(git push *)` is never asked about: `Bash` of `main_tools` grants it
      --> config.yaml:1:17
    hint: say `main_tools` without `Bash`
    ");
    let config = Config::parse(&format!("{asked}main_tools: [Read]\n"), &BTreeMap::new()).unwrap();
    assert_eq!(config.main_ask_tools.len(), 2);
}

#[test]
fn the_page_listens_for_this_machine_alone() {
    for (text, expect) in
        [("127.0.0.1:8080", "127.0.0.1:8080"), ("\"[::1]:8080\"", "[::1]:8080"), ("/run/ollim.sock", "/run/ollim.sock")]
    {
        assert_eq!(load(&format!("web: {text}\n"), &[]).web.unwrap().to_string(), expect);
    }
    for wrong in ["0.0.0.0:8080", "192.168.1.5:80", "\"[::]:80\"", "8080", "127.0.0.1", "bot.example:80", "run/x.sock"]
    {
        assert_ne!(check(&format!("web: {wrong}\n"), &[]), "ok", "{wrong}");
    }
}

#[test]
fn the_page_has_a_name_and_no_path() {
    for (written, read) in [
        ("https://bot.example.org", "https://bot.example.org"),
        ("https://Bot.example.org/", "https://bot.example.org"),
        ("https://bot.example.org:443", "https://bot.example.org"),
        ("https://bot.example.org:80", "https://bot.example.org:80"),
        ("http://bot.localhost:8080", "http://bot.localhost:8080"),
    ] {
        assert_eq!(load(&format!("web_url: {written}\n"), &[]).web_url.as_deref(), Some(read), "{written}");
    }
    for path in ["/bot", "/bot/", "//", "/?x=1", "?x=1", "#x"] {
        let said = check(&format!("web_url: 'https://bot.example.org{path}'\n"), &[]);
        assert!(said.contains("`web_url` must be a scheme and a host alone, without a path"), "{path}: {said}");
    }
    assert_ne!(check("web_url: https://me@bot.example.org\n", &[]), "ok");
}
