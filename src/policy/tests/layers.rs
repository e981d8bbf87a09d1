//! Layers, surface and evidence.

use super::*;

#[test]
fn the_surface_shows_exactly_what_is_granted() {
    let policy = allowing(&["Bash(ollim-bot gmail *)", "mcp__discord__ping_user"]);
    assert_eq!(policy.visible_tools(), ["Bash"]);
    assert_eq!(policy.visible_mcp(&["ping_user", "report_updates", "discord_embed"]), ["ping_user"]);
    let policy = denying(&["Bash(ollim-bot cal *)", "WebFetch", "WebSearch"]);
    let visible = policy.visible_tools();
    for tool in ["WebFetch", "WebSearch", "Agent", "CronCreate", "TaskStop"] {
        assert!(!visible.iter().any(|name| name == tool), "{tool}");
    }
    for tool in ["Bash", "Read", "Edit", "Write", "Glob", "Grep", "Skill"] {
        assert!(visible.iter().any(|name| name == tool), "{tool}");
    }
    let rules = policy.deny_rules();
    for rule in
        ["Bash(ollim-bot cal *)", "WebFetch", "WebSearch", "Task", "Agent", "CronCreate", "KillShell", "TaskStop"]
    {
        assert!(rules.iter().any(|text| text == rule), "{rule}: {rules:?}");
    }
    assert!(denying(&["Write(notes/**)"]).deny_rules().contains(&"Edit(notes/**)".to_owned()));
    assert!(!allowing(&["Agent(Explore)"]).deny_rules().contains(&"Task".to_owned()));
    assert!(allowing(&["Agent(Explore)"]).visible_tools().contains(&"Agent".to_owned()));
    assert_eq!(denying(&["Bash"]).visible_tools().iter().filter(|name| *name == "Bash").count(), 0);
    assert!(!allowing(&["*"]).visible_tools().iter().any(|name| name == "Glob" || name == "Agent" || name == "LS"));
    let everything = policy.visible_mcp(&["ping_user", "follow_up_chain"]);
    assert_eq!(everything, ["ping_user", "follow_up_chain"]);
}

#[test]
fn pinging_and_reporting_are_taken_away_in_every_case() {
    let tools = ["ping_user", "discord_embed", "report_updates", "follow_up_chain"];
    for lists in [(Some(&["mcp__discord__*"][..]), None), (None, Some(&["WebFetch"][..])), (None, None)] {
        let config =
            BgForkConfig::new(UpdateMode::Blocked, false, lists.0.map(patterns), lists.1.map(patterns)).unwrap();
        let policy = Policy::background("routine x", &config, &default_main_tools(), &places());
        assert_eq!(policy.visible_mcp(&tools), ["follow_up_chain"]);
        let decision = policy.decide(&call("mcp__discord__ping_user", json!({})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::DisallowedTools));
        assert!(decision.reason.contains("allow_ping: false"), "{}", decision.reason);
        let decision = policy.decide(&call("mcp__discord__report_updates", json!({})));
        assert!(decision.reason.contains("update_main_session: blocked"), "{}", decision.reason);
    }
}

#[test]
fn every_decision_has_its_evidence() {
    let policy = denying(&["Bash(ollim-bot cal *)"]);
    let decision = bash(&policy, "ollim-bot cal today");
    assert_eq!(
        decision.reason,
        "Bash \"ollim-bot cal today\": denied by disallowed_tools \"Bash(ollim-bot cal *)\" of routine x"
    );
    assert_eq!(decision.rule.as_deref(), Some("Bash(ollim-bot cal *)"));
    assert_eq!(decision.layer, Layer::DisallowedTools);
    assert_eq!(bash(&policy, "ls | wc -l && bash -c 'date'").commands, ["ls", "wc -l", "bash -c date", "date"]);
    let policy = allowing(&["Bash(ollim-bot gmail *)"]);
    let decision = bash(&policy, "ollim-bot gmail x && touch evil");
    assert_eq!(decision.layer, Layer::AllowedTools);
    assert_eq!(
        decision.reason,
        "Bash \"ollim-bot gmail x && touch evil\": `touch evil`: not granted; routine x grants: \
         Bash(ollim-bot gmail *), Bash(ollim-bot help). Run granted commands on their own, spelled plainly"
    );
    let decision = bash(&policy, "ollim-bot gmail x");
    assert_eq!(decision.rule.as_deref(), Some("Bash(ollim-bot gmail *)"));
    assert!(decision.reason.contains("granted by \"Bash(ollim-bot gmail *)\" (allowed_tools of routine x)"));
    let entries = policy.entries();
    let origin =
        |pattern: &str| entries.iter().find(|entry| entry.pattern == pattern).map(|entry| entry.origin.as_str());
    assert_eq!(origin("Bash(ollim-bot gmail *)"), Some("allowed_tools of routine x"));
    assert_eq!(origin("Bash(ollim-bot help)"), Some("added automatically"));
    assert_eq!(origin("CronCreate"), Some("blocked for every fork"));
}

#[test]
fn our_own_commands_are_decided_by_their_words() {
    let policy = denying(&["Bash(ollim-bot cal *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).verdict
    };
    assert_eq!(decide(&["ollim-bot", "gmail", "unread; rm -rf /"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "cal", "today"]), Verdict::Deny);
    assert_eq!(decide(&["/usr/bin/ollim-bot", "--json", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot", "--home", "/x", "next"]), Verdict::Deny);
    let policy = allowing(&["Bash(ollim-bot gmail *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).verdict
    };
    assert_eq!(decide(&["ollim-bot", "gmail", "unread"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "help"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "gmail unread"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot"]), Verdict::Deny);
    assert_eq!(decide(&[]), Verdict::Deny);
}

#[test]
fn the_main_session_asks_about_what_it_was_not_granted() {
    let policy = Policy::main_session(&patterns(&["Bash(ollim-bot *)", "Read"]), &places());
    allows(&policy, &["ollim-bot next", "ls -la", "cat f | head"]);
    let decision = bash(&policy, "touch f");
    assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::PermissionMode));
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).layer, Layer::PermissionMode);
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).verdict, Verdict::Allow);
    assert_eq!(policy.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    let whole = Policy::main_session(&default_main_tools(), &places());
    allows(&whole, &["for ((i=0;i<3;i++)); do echo $i; done", "PATH=. ls"]);
}

#[test]
fn named_agents_narrow_and_never_widen() {
    let explore = AgentRules {
        name: "Explore".into(),
        tools: Some(patterns(&["Glob", "Grep", "Read", "Bash"])),
        disallowed: patterns(&["Write", "Edit", "NotebookEdit"]),
        read_only: true,
        permission_mode: PermissionMode::Default,
    };
    let job = policy(None, Some(&["Bash(git *)"])).as_agent(&explore);
    allows(&job, &["ls", "cat f | head", "grep -r x ."]);
    for line in
        ["mkdir x", "touch x", "rm x", "cp a b", "mv a b", "git add x", "git commit -m x", "npm install", "git status"]
    {
        check(&job, line, Verdict::Deny);
    }
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.decide(&call("Read", json!({"file_path": "x"}))).verdict, Verdict::Allow);
    assert_eq!(job.decide(&call("WebSearch", json!({"query": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.visible_tools(), ["Bash", "Glob", "Grep", "Read"]);
    // As a subagent: its own lists, then the job's.
    let job = allowing(&["Bash(ls *)", "Agent(Explore)", "Edit"]).with_subagents(&[explore]);
    let as_explore = |tool: &str, input: Value| {
        job.decide(&ToolCall { agent_type: Some("Explore".into()), ..call(tool, input) }).verdict
    };
    assert_eq!(as_explore("Bash", json!({"command": "ls"})), Verdict::Allow);
    assert_eq!(as_explore("Bash", json!({"command": "cat f"})), Verdict::Deny);
    assert_eq!(as_explore("Edit", json!({"file_path": "x"})), Verdict::Deny);
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Allow);
}

#[test]
fn an_agent_is_called_into_this_session_and_nowhere_else() {
    let job = allowing(&["Agent(Explore)"]);
    let main = Policy::main_session(&default_main_tools(), &places());
    let explore = |more: Value| {
        let mut input = json!({"subagent_type": "Explore", "description": "x", "prompt": "x", "model": "haiku"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call("Agent", input)
    };
    for policy in [&job, &main] {
        assert_eq!(policy.decide(&explore(json!({"run_in_background": true, "mode": null}))).verdict, Verdict::Allow);
        for more in [
            json!({"isolation": "remote"}),
            json!({"isolation": "worktree"}),
            json!({"mode": "bypassPermissions"}),
            json!({"mode": "default"}),
            json!({"isolation": 7}),
        ] {
            let decision = policy.decide(&explore(more.clone()));
            assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System), "{more}");
        }
        let task = ToolCall { tool: "Task".into(), ..explore(json!({"isolation": "remote"})) };
        assert_eq!(policy.decide(&task).verdict, Verdict::Deny);
    }
}
