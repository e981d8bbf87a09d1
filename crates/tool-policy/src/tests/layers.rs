//! Layers, surface and evidence.

use super::*;

#[test]
fn the_surface_shows_exactly_what_is_granted() {
    let policy = allowing(&["Bash(bot gmail *)", "mcp__chat__ping_user"]);
    assert_eq!(policy.visible_tools(), ["Bash"]);
    assert_eq!(policy.visible_mcp(&["ping_user", "report_updates", "embed"]), ["ping_user"]);
    let policy = denying(&["Bash(bot cal *)", "WebFetch", "WebSearch"]);
    let visible = policy.visible_tools();
    for tool in ["WebFetch", "WebSearch", "CronCreate", "TaskStop"] {
        assert!(!visible.iter().any(|name| name == tool), "{tool}");
    }
    for tool in ["Agent", "Bash", "Read", "Edit", "Write", "Glob", "Grep", "Skill"] {
        assert!(visible.iter().any(|name| name == tool), "{tool}");
    }
    let rules = policy.deny_rules();
    for rule in ["Bash(bot cal *)", "WebFetch", "WebSearch", "CronCreate", "KillShell", "TaskStop"] {
        assert!(rules.iter().any(|text| text == rule), "{rule}: {rules:?}");
    }
    assert!(denying(&["Write(notes/**)"]).deny_rules().contains(&"Edit(notes/**)".to_owned()));
    assert!(!allowing(&["Agent(Explore)"]).deny_rules().contains(&"Task".to_owned()));
    assert!(allowing(&["Agent(Explore)"]).visible_tools().contains(&"Agent".to_owned()));
    let policy = denying(&["Agent"]);
    assert!(!policy.visible_tools().contains(&"Agent".to_owned()) && policy.deny_rules().contains(&"Task".to_owned()));
    assert_eq!(denying(&["Bash"]).visible_tools().iter().filter(|name| *name == "Bash").count(), 0);
    assert!(!allowing(&["*"]).visible_tools().iter().any(|name| name == "Glob" || name == "Agent" || name == "LS"));
    let everything = policy.visible_mcp(&["ping_user", "follow_up"]);
    assert_eq!(everything, ["ping_user", "follow_up"]);
}

#[test]
fn pinging_and_reporting_are_taken_away_in_every_case() {
    let tools = ["ping_user", "embed", "report_updates", "follow_up"];
    for lists in [(Some(&["mcp__chat__*"][..]), None), (None, Some(&["WebFetch"][..])), (None, None)] {
        let policy = policy(lists.0, lists.1)
            .denying("allow_ping: false", &["mcp__chat__ping_user", "mcp__chat__embed"])
            .denying("update_main_session: blocked", &["mcp__chat__report_updates"]);
        assert_eq!(policy.visible_mcp(&tools), ["follow_up"]);
        let decision = policy.decide(&call("mcp__chat__ping_user", json!({})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::DisallowedTools));
        assert!(decision.reason.contains("allow_ping: false"), "{}", decision.reason);
        let decision = policy.decide(&call("mcp__chat__report_updates", json!({})));
        assert!(decision.reason.contains("update_main_session: blocked"), "{}", decision.reason);
    }
}

#[test]
fn every_decision_has_its_evidence() {
    let policy = denying(&["Bash(bot cal *)"]);
    let decision = start(&policy, "bot cal today").decision;
    assert_eq!(decision.reason, "Bash \"bot cal today\": denied by disallowed_tools \"Bash(bot cal *)\" of routine x");
    assert_eq!(decision.rule.as_deref(), Some("Bash(bot cal *)"));
    assert_eq!(decision.layer, Layer::DisallowedTools);
    assert_eq!(decision.commands, ["bot cal today"]);
    assert_eq!(start(&policy, "ls a\u{2423}b").decision.commands, ["ls 'a b'"]);
    let decision = bash(&policy, "ls | wc -l && date");
    assert_eq!((decision.verdict, decision.commands.len()), (Verdict::Allow, 0));
    assert!(decision.reason.ends_with("each program in it is judged when it starts"), "{}", decision.reason);
    let policy = allowing(&["Bash(bot gmail *)"]);
    let decision = start(&policy, "touch evil").decision;
    assert_eq!(decision.layer, Layer::AllowedTools);
    assert_eq!(
        decision.reason,
        "Bash \"touch evil\": `touch` is not granted; the rule `Bash(touch *)` would be needed; routine x grants: \
         Bash(bot gmail *), Bash(bot help)"
    );
    let decision = start(&policy, "bot gmail x").decision;
    assert_eq!(decision.rule.as_deref(), Some("Bash(bot gmail *)"));
    assert!(decision.reason.contains("granted by \"Bash(bot gmail *)\" (allowed_tools of routine x)"));
    let entries = policy.entries();
    let origin =
        |pattern: &str| entries.iter().find(|entry| entry.pattern == pattern).map(|entry| entry.origin.as_str());
    assert_eq!(origin("Bash(bot gmail *)"), Some("allowed_tools of routine x"));
    assert_eq!(origin("Bash(bot help)"), Some("added automatically"));
    assert_eq!(origin("CronCreate"), Some("blocked for every fork"));
}

#[test]
fn our_own_commands_are_decided_by_their_words() {
    let policy = denying(&["Bash(bot cal *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), None).verdict
    };
    assert_eq!(decide(&["bot", "gmail", "unread; rm -rf /"]), Verdict::Allow);
    assert_eq!(decide(&["bot", "cal", "today"]), Verdict::Deny);
    assert_eq!(decide(&["/usr/bin/bot", "--json", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["bot", "--home", "/x", "next"]), Verdict::Deny);
    let policy = allowing(&["Bash(bot gmail *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), None).verdict
    };
    assert_eq!(decide(&["bot", "gmail", "unread"]), Verdict::Allow);
    assert_eq!(decide(&["bot", "help"]), Verdict::Allow);
    assert_eq!(decide(&["bot", "gmail unread"]), Verdict::Deny);
    assert_eq!(decide(&["bot", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["bot"]), Verdict::Deny);
    assert_eq!(decide(&[]), Verdict::Deny);
}

#[test]
fn a_line_is_refused_early_only_where_no_program_could_start() {
    let line = |policy: &Policy| {
        let decision = bash(policy, "ls; ls 'unterminated");
        (decision.verdict, decision.layer)
    };
    assert_eq!(line(&allowing(&["Bash(ls *)"])), (Verdict::Allow, Layer::AllowedTools));
    // Every job may ask for help.
    assert_eq!(line(&allowing(&[])), (Verdict::Allow, Layer::AllowedTools));
    assert_eq!(line(&denying(&["Bash"])), (Verdict::Deny, Layer::DisallowedTools));
    assert_eq!(line(&denying(&["Bash(git push *)"])), (Verdict::Allow, Layer::AllowedTools));
    let main = main_session(&patterns(&["Read"]));
    assert_eq!(line(&main), (Verdict::Deny, Layer::PermissionMode));
    assert_eq!((main.shell(None), denying(&["Bash"]).shell(None)), (None, None));
    for input in [json!({}), json!({"command": ""}), json!({"command": " \n"}), json!({"command": ["ls"]})] {
        let decision = allowing(&["Bash"]).decide(&call("Bash", input));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System));
    }
}

#[test]
fn the_main_session_asks_about_what_it_was_not_granted() {
    let policy = main_session(&patterns(&["Bash(bot *)", "Read"]));
    allows(&policy, &["bot next", "ls -la", "cat f", "head", "git log"]);
    assert_eq!(start(&policy, "ls -la").decision.layer, Layer::PermissionMode);
    for line in ["touch f", "git push", "find . -delete", "sudo ls"] {
        let decision = start(&policy, line).decision;
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::PermissionMode), "{line}");
    }
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).layer, Layer::PermissionMode);
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).verdict, Verdict::Allow);
    assert_eq!(policy.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    let whole = main_session(&main_tools());
    assert_eq!(start_in(&whole, "ls", "/", &[("PATH", ".")]).decision.verdict, Verdict::Allow);
    assert!(whole.shell(None).unwrap().everything);
}

#[test]
fn what_main_tools_grant_is_not_asked_about() {
    let tools = patterns(&["Read", "Bash(ls *)", "WebFetch(domain:x.y)"]);
    let policy = Policy::main_session(&tools, &patterns(&["Bash", "WebFetch"]), &roots(), &BOT);
    let fetch = |url: &str| policy.decide(&call("WebFetch", json!({ "url": url })));
    for (what, decision, verdict) in [
        ("ls", start(&policy, "ls -la").decision, Verdict::Allow),
        ("touch", start(&policy, "touch f").decision, Verdict::Ask),
        ("x.y", fetch("https://x.y"), Verdict::Allow),
        ("z.y", fetch("https://z.y"), Verdict::Ask),
    ] {
        assert_eq!(decision.verdict, verdict, "{what}: {decision:?}");
    }
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
    allows(&job, &["ls", "cat f", "head", "grep -r x .", "find . -name x", "env", "rg x"]);
    for line in
        ["mkdir x", "touch x", "rm x", "cp a b", "mv a b", "git add x", "git commit -m x", "npm install", "git status"]
    {
        check(&job, line, Verdict::Deny);
    }
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.decide(&call("Read", json!({"file_path": "x"}))).verdict, Verdict::Allow);
    assert_eq!(job.decide(&call("WebSearch", json!({"query": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.visible_tools(), ["Bash", "Glob", "Grep", "Read"]);
    // For a subagent, its own lists apply, then the job's.
    let job = allowing(&["Bash(ls *)", "Agent(Explore)", "Edit"]).with_subagents(&[explore]);
    let as_explore = |tool: &str, input: Value| {
        job.decide(&ToolCall { agent_type: Some("Explore".into()), ..call(tool, input) }).verdict
    };
    assert_eq!(as_explore("Bash", json!({"command": "ls"})), Verdict::Allow);
    let program = |line: &str| {
        let (argv, env) = (words(line), std::collections::BTreeMap::new());
        let cwd = std::path::Path::new(WORK);
        job.decide_program(&ProgramStart { argv: &argv, cwd, env: &env, agent_type: Some("Explore") }).location
    };
    assert!(
        matches!(program("ls -l"), Location::Outside(rights) if rights.writes == Writes::Nothing && !rights.network)
    );
    assert_eq!(
        (program("cat f"), program("rg x"), program("rm f")),
        (Location::Here, Location::Nowhere, Location::Nowhere)
    );
    assert_eq!(as_explore("Edit", json!({"file_path": "x"})), Verdict::Deny);
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Allow);
}

#[test]
fn a_denial_names_the_owner_that_denied_and_advises_where_it_helps() {
    let plan = AgentRules {
        name: "Plan".into(),
        tools: Some(patterns(&["Read", "Bash"])),
        disallowed: patterns(&["Write", "Edit", "NotebookEdit"]),
        read_only: true,
        permission_mode: PermissionMode::Default,
    };
    let quick =
        AgentRules { tools: Some(patterns(&["Bash(git *)"])), read_only: false, name: "quick".into(), ..plan.clone() };
    let (job, plan, quick) = (denying(&["WebFetch"]), denying(&[]).as_agent(&plan), denying(&[]).as_agent(&quick));
    let said = |policy: &Policy, line: &str| start(policy, line).decision.reason;
    assert_eq!(
        said(&plan, "npm install x"),
        "Bash \"npm install x\": not a command that only reads, and agent Plan is read-only"
    );
    assert_eq!(
        said(&quick, "npm install x"),
        "Bash \"npm install x\": `npm` is not granted; the rule `Bash(npm install x)` would be needed; agent quick grants: Bash(git *)"
    );
    let asked = |policy: &Policy, tool: &str| {
        policy.decide(&call(tool, json!({"url": "https://x.y", "subagent_type": "Plan"}))).reason
    };
    assert_eq!(asked(&plan, "WebFetch"), "WebFetch \"https://x.y\": not granted; agent Plan grants no WebFetch call");
    assert_eq!(
        asked(&job, "WebFetch"),
        "WebFetch \"https://x.y\": denied by disallowed_tools \"WebFetch\" of routine x"
    );
    assert_eq!(asked(&plan, "Agent"), "Agent \"https://x.y\": not granted; agent Plan grants no Agent call");
    let main = main_session(&patterns(&["Read"]));
    assert_eq!(
        main.decide(&call("Write", json!({"file_path": "x"}))).reason,
        "Write \"x\": not granted; `main_tools` do not grant it"
    );
}

#[test]
fn one_rule_may_name_several_agents() {
    let agent = |name: &str| call("Agent", json!({"subagent_type": name}));
    let allows = allowing(&["Agent(Explore, Plan)"]);
    let denies = denying(&["Task(Explore,Plan)"]);
    for (name, named) in [("Explore", true), ("Plan", true), ("Explore, Plan", false), ("general-purpose", false)] {
        assert_eq!(allows.decide(&agent(name)).verdict == Verdict::Allow, named, "{name}");
        assert_eq!(denies.decide(&agent(name)).verdict == Verdict::Deny, named, "{name}");
    }
    let rules = denies.deny_rules();
    assert!(rules.contains(&"Task(Explore)".to_owned()) && rules.contains(&"Task(Plan)".to_owned()), "{rules:?}");
    for text in ["Agent(Explore,)", "Agent(,)", "Task( , x)"] {
        assert!(ToolPattern::parse(text).is_err(), "{text}");
    }
}

#[test]
fn only_agents_that_were_handed_over_are_called() {
    let explore = AgentRules {
        name: "Explore".into(),
        tools: None,
        disallowed: Vec::new(),
        read_only: true,
        permission_mode: PermissionMode::Default,
    };
    let job = denying(&["WebFetch"]).with_subagents(&[explore]);
    let asked = |input: Value| job.decide(&call("Agent", input)).verdict;
    assert_eq!(asked(json!({"subagent_type": "Explore"})), Verdict::Allow);
    assert_eq!(asked(json!({"subagent_type": "statusline-setup"})), Verdict::Deny);
    assert_eq!(asked(json!({})), Verdict::Deny);
    let of_agent =
        ToolCall { agent_type: Some("Explore".into()), ..call("Agent", json!({"subagent_type": "Explore"})) };
    assert_eq!(job.decide(&of_agent).verdict, Verdict::Deny, "agents call no agents");
}

#[test]
fn an_agent_is_called_into_this_session_and_nowhere_else() {
    let job = allowing(&["Agent(Explore)"]);
    let main = main_session(&main_tools());
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
