use super::*;
use crate::definition::{Defaults, Kind, parse};

fn settings() -> RunSettings {
    crate::run::delegation::tests::settings()
}

fn places() -> PathRoots {
    PathRoots { root: "/home/u/.ollim-bot".into(), work: "/home/u/.ollim-bot/work".into(), user_home: "/home/u".into() }
}

fn definition(fields: &str) -> Definition {
    let text = format!("---\ncron: '@daily'\n{fields}---\nWork.\n");
    let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
    parse(Kind::Routine, std::path::Path::new("routines/job.md"), text.as_bytes(), &defaults).definition.unwrap()
}

fn of(fields: &str) -> Setup {
    Setup::of(&definition(fields), None, &settings(), &places(), &Agents::built_in()).unwrap()
}

fn words(patterns: &[ToolPattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

/// Checks the two layers that do not see calls: the client's tools and deny rules, and the kernel sandbox's patterns.
#[test]
fn a_read_only_agent_is_granted_nothing_that_writes() {
    for agent in ["Explore", "Plan"] {
        let setup = of(&format!("background: true\nagent: {agent}\n"));
        let visible = setup.policy.visible_tools();
        for tool in ["Write", "Edit", "NotebookEdit", "Agent"] {
            assert!(!visible.iter().any(|shown| shown == tool), "{tool}: {visible:?}");
            assert!(setup.deny_rules.iter().any(|rule| rule == tool), "{tool}: {:?}", setup.deny_rules);
        }
        assert_eq!(words(&setup.granted), ["Read", "Glob", "Grep"], "{agent}");
        assert_eq!(setup.options.agents, None);
        assert!(setup.agent_prompt.is_some());
    }
}

#[test]
fn a_wall_is_made_from_what_all_grant_and_nobody_denies_whole() {
    let setup = of("background: true\ndisallowed_tools: [Edit, 'Bash(git *)', WebFetch]\n");
    let granted = words(&setup.granted);
    assert!(granted.contains(&"Bash".into()) && !granted.contains(&"Edit".into()), "{granted:?}");
    let list = |texts: &[&str]| Some(texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect());
    let spawned = Spawned {
        tools: ToolLists { allow: list(&["Read", "Edit(notes/**)", "Bash(git *)"]), deny: list(&["Bash"]) },
        ..Spawned::default()
    };
    let job = definition("background: true\nallowed_tools: [Edit, WebFetch, 'Bash(git log *)']\n");
    let setup = Setup::of(&job, Some(&spawned), &settings(), &places(), &Agents::built_in()).unwrap();
    assert_eq!(words(&setup.granted), ["Read", "Edit(notes/**)", "Read(notes/**)"]);
    assert!(setup.policy.is_spawned());
}

/// The main session must work even with too many agents: it gets those that fit, and the client's own stay hidden.
#[test]
fn the_main_session_gets_as_many_agents_as_fit() {
    let folder = tempfile::tempdir().unwrap();
    let home = crate::home::Home::new(folder.path());
    std::fs::create_dir(home.agents()).unwrap();
    for (name, size) in [("small", 100), ("Explore", 60_000), ("large", 90_000)] {
        let text = format!("---\nname: {name}\ndescription: d\n---\n{}\n", "x".repeat(size));
        std::fs::write(home.agents().join(format!("{name}.md")), text).unwrap();
    }
    let agents = Agents::load(&home, None);
    let setup = Setup::of(&definition(""), None, &settings(), &places(), &agents).unwrap();
    let handed: serde_json::Value = serde_json::from_str(&setup.options.agents.unwrap()).unwrap();
    let names: Vec<&String> = handed.as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "small") && names.iter().any(|name| *name == "Explore"), "{names:?}");
    assert!(!names.iter().any(|name| *name == "large"), "{names:?}");
    // A job that names the agent fails.
    let job = definition("background: true\nallowed_tools: [Agent(Explore), Agent(large)]\n");
    let error = Setup::of(&job, None, &settings(), &places(), &agents).unwrap_err();
    assert!(matches!(error, AgentError::TooLong { .. }), "{error}");
}

#[test]
fn agents_are_handed_over_where_the_file_names_them() {
    let setup = of("background: true\nallowed_tools: [Read, Agent(Explore), Agent(Nobody), Agent(statusline-setup)]\n");
    let agents: serde_json::Value = serde_json::from_str(&setup.options.agents.unwrap()).unwrap();
    assert_eq!(agents.as_object().unwrap().keys().collect::<Vec<_>>(), ["Explore"]);
    for hidden in ["Agent(Plan)", "Agent(claude)", "Agent(statusline-setup)"] {
        assert!(setup.deny_rules.iter().any(|rule| rule == hidden), "{hidden}: {:?}", setup.deny_rules);
    }
    assert!(!setup.deny_rules.iter().any(|rule| rule == "Agent(Explore)" || rule == "Agent"));
    assert_eq!(setup.options.model, None);
    // Without an allowlist a job may call the main session's agents, except those for the main session only.
    for fields in ["", "disallowed_tools: [WebFetch]\n", "agent: general-purpose\n"] {
        let setup = of(&format!("background: true\n{fields}"));
        let agents: serde_json::Value = serde_json::from_str(&setup.options.agents.unwrap()).unwrap();
        let names: Vec<&String> = agents.as_object().unwrap().keys().collect();
        assert_eq!(names, ["Bash", "Explore", "Plan", "claude-code-guide", "general-purpose"], "{fields}");
        assert!(setup.policy.visible_tools().contains(&"Agent".to_owned()), "{fields}");
        assert!(!setup.deny_rules.iter().any(|rule| rule == "Agent"), "{fields}");
    }
    for fields in ["disallowed_tools: [Agent]\n", "allowed_tools: ['*']\n", "agent: Explore\n"] {
        let setup = of(&format!("background: true\n{fields}"));
        assert_eq!(setup.options.agents, None, "{fields}");
        assert!(!setup.policy.visible_tools().contains(&"Agent".to_owned()), "{fields}");
        assert!(setup.deny_rules.iter().any(|rule| rule == "Agent"), "{fields}");
    }
}
