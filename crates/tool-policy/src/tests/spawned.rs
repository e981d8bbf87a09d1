//! Spawned agents: the lists of the settings and of the spawn apply above those of the caller.

use super::*;

/// Builds a list from the table's word: absent, empty, set.
fn list(word: &str, set: &[&str]) -> Option<Vec<ToolPattern>> {
    match word {
        "absent" => None,
        "empty" => Some(Vec::new()),
        _ => Some(patterns(set)),
    }
}

/// Every combination of global and own lists, against a caller that has `Read`, `Grep`, `WebSearch` and some of Bash.
#[test]
fn what_a_spawned_agent_may_do_in_every_combination() {
    let words = ["absent", "empty", "set"];
    let calls = [
        ("Read", json!({"file_path": "a"})),
        ("Grep", json!({"pattern": "a"})),
        ("WebSearch", json!({"query": "a"})),
        ("Bash", json!({"command": "ls"})),
        // The caller itself does not have this tool.
        ("WebFetch", json!({"url": "https://docs.rs"})),
        ("Agent", json!({"subagent_type": "Explore"})),
        ("mcp__chat__spawn_agent", json!({})),
    ];
    let caller = ["Read", "Grep", "WebSearch", "Bash(ls *)", "Agent(Explore)", "mcp__chat__spawn_agent"];
    let mut allowed = 0;
    for global in words.iter().flat_map(|allow| words.map(|deny| (*allow, deny))) {
        for own in words.iter().flat_map(|allow| words.map(|deny| (*allow, deny))) {
            let settings = ToolLists {
                allow: list(global.0, &["Read", "Bash(ls *)", "WebFetch", "Agent(Explore)", "mcp__chat__*"]),
                deny: list(global.1, &["WebSearch"]),
            };
            let spawn = ToolLists {
                allow: list(own.0, &["Read", "Grep", "WebFetch", "Agent(Explore)", "mcp__chat__*"]),
                deny: list(own.1, &["Grep"]),
            };
            let merged = ToolLists::merged(&settings, Some(&spawn));
            let policy = allowing(&caller).spawned("session spawn-1", &merged);
            for (tool, input) in &calls {
                let has = |list: &Option<Vec<ToolPattern>>| {
                    list.as_ref().map(|list| list.iter().any(|pattern| pattern.tool() == *tool))
                };
                // Deny beats allow; the spawn's allowlist replaces the settings'; the caller's lists limit it; the system blocks apply.
                let denied = [&settings.deny, &spawn.deny].into_iter().any(|list| has(list) == Some(true));
                let granted = has(&spawn.allow).or(has(&settings.allow)).unwrap_or(true);
                let capped = ["Read", "Grep", "WebSearch", "Bash"].contains(tool);
                let expect = capped && granted && !denied;
                let decision = match *tool {
                    "Bash" => start(&policy, "ls").decision,
                    tool => policy.decide(&call(tool, input.clone())),
                };
                assert_eq!(
                    decision.verdict == Verdict::Allow,
                    expect,
                    "{tool} with {settings:?} and {spawn:?}: {}",
                    decision.reason
                );
                allowed += u32::from(expect);
            }
            // A tool is shown only if some call of it may run.
            assert!(!policy.visible_tools().iter().any(|tool| tool == "Agent" || tool == "WebFetch"));
        }
    }
    assert!(allowed > 50, "the table looks at something: {allowed}");
}

#[test]
fn an_empty_allowlist_leaves_a_spawned_agent_help() {
    let none = ToolLists { allow: Some(Vec::new()), deny: None };
    let policy = allowing(&["Bash"]).spawned("session spawn-1", &none);
    check(&policy, "bot help", Verdict::Allow);
    check(&policy, "ls", Verdict::Deny);
    let entry = policy.entries().into_iter().find(|entry| entry.pattern == "Bash(bot help)").unwrap();
    assert_eq!(entry.origin, "added automatically");
}

#[test]
fn a_subagent_of_a_job_does_not_spawn_by_the_command_line() {
    let agent = AgentRules {
        name: "Helper".into(),
        tools: None,
        disallowed: Vec::new(),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    let job = allowing(&["Bash", "Agent(Helper)"]).with_subagents(&[agent]);
    let inside = |line: &str| {
        let (argv, env) = (words(line), std::collections::BTreeMap::new());
        let cwd = std::path::Path::new(WORK);
        job.decide_program(&ProgramStart { argv: &argv, cwd, env: &env, agent_type: Some("Helper") }).decision
    };
    for line in ["bot spawn -m x", "/usr/bin/bot --json spawn -m x", "bot-spawn -m x"] {
        assert_eq!((inside(line).verdict, inside(line).layer), (Verdict::Deny, Layer::System), "{line}");
        check(&job, line, Verdict::Allow);
    }
    assert_eq!(inside("bot reminder list").verdict, Verdict::Allow);
}

#[test]
fn the_blocks_name_the_layer_that_no_list_reaches() {
    let everything = ToolLists { allow: Some(patterns(&["*"])), deny: None };
    let policy = policy(None, None).spawned("session spawn-1", &everything);
    for tool in
        ["Agent", "Task", "AskUserQuestion", "ExitPlanMode", "TaskStop", "KillShell", "CronCreate", "SendMessage"]
    {
        let decision = policy.decide(&call(tool, json!({"subagent_type": "Explore"})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System), "{tool}: {}", decision.reason);
    }
    for tool in ["mcp__chat__spawn_agent", "mcp__chat__sessions_spawn"] {
        let decision = policy.decide(&call(tool, json!({"prompt": "x"})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System), "{tool}: {}", decision.reason);
        // An agent that a job or the main session calls may not do so either.
        let inside = ToolCall { agent_type: Some("Explore".into()), ..call(tool, json!({"prompt": "x"})) };
        for policy in [super::policy(None, None), main_session(&main_tools())] {
            assert_eq!(policy.decide(&inside).layer, Layer::System, "{tool}");
            assert_eq!(policy.decide(&call(tool, json!({"prompt": "x"}))).verdict, Verdict::Allow, "{tool}");
        }
    }
}
