//! Tools other than Bash: paths, hosts, names, agents.

use super::*;

#[test]
fn file_tools_follow_path_rules() {
    let policy = allowing(&["Edit(notes/**)", "Read(in/**)", "Grep(in/**)", "Glob", "Write(drafts/*.md)"]);
    let decide = |tool: &str, input: Value| policy.decide(&call(tool, input)).verdict;
    let home = "/home/u/.bot/work";
    for (tool, input) in [
        ("Read", json!({"file_path": format!("{home}/in/a")})),
        ("Read", json!({"file_path": "in/a"})),
        ("Read", json!({"file_path": "notes/a"})),
        ("Edit", json!({"file_path": "notes/a/b"})),
        ("Write", json!({"file_path": format!("{home}/notes/new")})),
        ("MultiEdit", json!({"file_path": "notes/a"})),
        ("NotebookEdit", json!({"notebook_path": "notes/a.ipynb"})),
        ("Edit", json!({"file_path": "drafts/x.md"})),
        ("Grep", json!({"pattern": "x", "path": "in"})),
        ("Grep", json!({"pattern": "x", "path": "in/sub"})),
        ("Glob", json!({"pattern": "**/*.md"})),
    ] {
        assert_eq!(decide(tool, input.clone()), Verdict::Allow, "{tool} {input}");
    }
    for (tool, input) in [
        ("Read", json!({"file_path": "/etc/passwd"})),
        ("Read", json!({"file_path": "in/../secret"})),
        ("Read", json!({"file_path": "in/../../state/user.token"})),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({"file_path": 5})),
        ("Read", json!({})),
        ("Read", json!(null)),
        ("Read", json!([])),
        ("Read", json!({"file_path": "in/a\u{0}b"})),
        ("Edit", json!({"file_path": "in/a"})),
        ("Edit", json!({"file_path": "notes"})),
        ("Edit", json!({"file_path": "notesx/a"})),
        ("Edit", json!({"file_path": "notes/.git/hooks/x"})),
        ("Edit", json!({"file_path": "notes/.claude/settings.json"})),
        ("Edit", json!({"file_path": "drafts/sub/x.md"})),
        ("Write", json!({"file_path": "~/.bot/routines/x.md"})),
        ("Write", json!({"file_path": "/home/u/.bot/config.yaml"})),
        ("Grep", json!({"pattern": "x"})),
        ("Grep", json!({"pattern": "x", "path": "."})),
        ("Grep", json!({"pattern": "x", "path": "in/.."})),
        ("Grep", json!({"pattern": "x", "path": ["in"]})),
        ("Glob", json!({"pattern": "../**"})),
        ("Glob", json!({"pattern": "*", "path": "/home/u/.bot/state"})),
        ("Glob", json!({})),
        // The client trims paths after it has asked.
        ("Read", json!({"file_path": "in/a "})),
        ("Read", json!({"file_path": "\u{a0}in/a"})),
        ("Edit", json!({"file_path": "notes/a\u{feff}"})),
        ("Grep", json!({"pattern": "x", "path": "in/\u{2003}"})),
        ("Grep", json!({"pattern": "x", "path": " in"})),
        ("Glob", json!({"pattern": "*", "path": "in\u{3000}"})),
        ("Glob", json!({"pattern": "\u{202f}/etc/*"})),
        ("LS", json!({"path": "in"})),
        ("Bash", json!({"command": ["ls"]})),
        ("Bash", json!({})),
        ("WebFetch", json!({"url": "https://docs.rs"})),
    ] {
        assert_eq!(decide(tool, input.clone()), Verdict::Deny, "{tool} {input}");
    }
    assert_eq!(policy.visible_tools(), ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"]);
}

#[test]
fn whole_tools_reach_everywhere_but_protected_places() {
    let policy = allowing(&["Read", "Edit"]);
    let decide = |tool: &str, path: &str| policy.decide(&call(tool, json!({ "file_path": path }))).verdict;
    assert_eq!(decide("Read", "/etc/hostname"), Verdict::Allow);
    assert_eq!(decide("Edit", "/srv/x"), Verdict::Allow);
    for path in [
        "/home/u/.bot/.env",
        "../state/user.token",
        "/proc/self/environ",
        "/proc/1/environ",
        "~/.claude/x",
        "/dev/fd/0",
    ] {
        assert_eq!(decide("Read", path), Verdict::Deny, "{path}");
    }
}

#[test]
fn symlinks_need_both_ends_granted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let work = root.join("work");
    std::fs::create_dir_all(work.join("notes")).unwrap();
    std::fs::create_dir_all(work.join("other")).unwrap();
    std::fs::create_dir_all(root.join("state")).unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(root.join(target), work.join(name)).unwrap();
    link("work/other", "notes/out");
    link("work/notes", "in");
    link("state/token", "notes/token");
    let roots = PathRoots { root: root.clone(), work: work.clone(), user_home: "/home/u".into() };
    let policy = background(Some(&patterns(&["Edit(notes/**)", "Bash(ls *)"])), &[], &roots);
    let decide = |tool: &str, input: Value| {
        policy.decide(&ToolCall { tool: tool.into(), input, cwd: work.clone(), agent_type: None })
    };
    assert_eq!(decide("Edit", json!({"file_path": "notes/a"})).verdict, Verdict::Allow);
    for path in ["notes/out/x", "in/a", "other/x"] {
        let decision = decide("Edit", json!({ "file_path": path }));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::AllowedTools), "{path}");
    }
    let decision = decide("Read", json!({"file_path": "notes/token"}));
    assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System));
    let starts = |line: &str| {
        let argv = words(line);
        let env = std::collections::BTreeMap::new();
        policy.decide_program(&ProgramStart { argv: &argv, cwd: &work, env: &env, agent_type: None }).decision.verdict
    };
    assert_eq!((starts("ls notes/token"), starts("ls notes/out/x")), (Verdict::Deny, Verdict::Allow));
}

#[test]
fn names_of_mcp_tools_are_exact_or_by_server() {
    let policy = allowing(&["mcp__chat__ping_user", "mcp__calendar", "mcp__notes__get_*"]);
    let decide = |tool: &str| policy.decide(&call(tool, json!({}))).verdict;
    for tool in ["mcp__chat__ping_user", "mcp__calendar__list", "mcp__notes__get_one"] {
        assert_eq!(decide(tool), Verdict::Allow, "{tool}");
    }
    for tool in [
        "mcp__chat__ping_user2",
        "mcp__chat__ping_users",
        "mcp__chat_x__ping_user",
        "mcp__Discord__ping_user",
        "mcp__chat__embed",
        "xmcp__chat__ping_user",
        "mcp__calendarx__list",
        "mcp__calendar",
        "mcp__notes__set",
        "ping_user",
        "",
    ] {
        assert_eq!(decide(tool), Verdict::Deny, "{tool}");
    }
    assert_eq!(policy.visible_mcp(&["ping_user", "embed"]), ["ping_user"]);
}

#[test]
fn fetches_skills_and_agents_are_matched_by_their_text() {
    let policy = allowing(&["WebFetch(domain:docs.rs)", "Skill(deploy *)", "Skill(notes)", "Agent(Explore)"]);
    let decide = |tool: &str, input: Value| policy.decide(&call(tool, input)).verdict;
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs/x"})), Verdict::Allow);
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs.evil.com/x"})), Verdict::Deny);
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs@evil.com/x"})), Verdict::Deny);
    assert_eq!(decide("Skill", json!({"skill": "deploy", "args": "staging"})), Verdict::Allow);
    assert_eq!(decide("Skill", json!({"skill": "notes"})), Verdict::Allow);
    assert_eq!(decide("Skill", json!({"skill": "notes", "args": "x"})), Verdict::Deny);
    assert_eq!(decide("Skill", json!({"skill": "deployx"})), Verdict::Deny);
    assert_eq!(decide("Agent", json!({"subagent_type": "Explore"})), Verdict::Allow);
    assert_eq!(decide("Task", json!({"subagent_type": "Explore"})), Verdict::Allow);
    assert_eq!(decide("Task", json!({"subagent_type": "Plan"})), Verdict::Deny);
    assert_eq!(decide("Task", json!({})), Verdict::Deny);
    // A denial of a host denies every URL that could be on it.
    let policy = denying(&["WebFetch(domain:evil.com)"]);
    let decide = |url: &str| policy.decide(&call("WebFetch", json!({ "url": url }))).verdict;
    assert_eq!(decide("https://EVIL.com/"), Verdict::Deny);
    assert_eq!(decide("https://docs.rs\\@evil.com/"), Verdict::Deny);
    assert_eq!(decide("https://docs.rs/"), Verdict::Allow);
}

#[test]
fn what_recurses_is_blocked_for_every_fork_whatever_its_file_says() {
    let everything = allowing(&["*"]);
    let main = main_session(&main_tools());
    for tool in [
        "Task",
        "Agent",
        "EnterPlanMode",
        "ExitPlanMode",
        "AskUserQuestion",
        "KillShell",
        "TaskStop",
        "CronCreate",
        "CronDelete",
        "CronList",
        "ScheduleWakeup",
        "Workflow",
        "EnterWorktree",
        "ExitWorktree",
        "SendMessage",
    ] {
        let decision = everything.decide(&call(tool, json!({"subagent_type": "Explore"})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System), "{tool}");
    }
    assert_eq!(main.decide(&call("Task", json!({"subagent_type": "Explore"}))).verdict, Verdict::Allow);
    // A subagent may not start another one, even if the job may.
    let named = allowing(&["Agent(Explore)"]);
    let inner = ToolCall { agent_type: Some("Explore".into()), ..call("Task", json!({"subagent_type": "Explore"})) };
    assert_eq!(named.decide(&inner).layer, Layer::System);
    assert_eq!(main.decide(&inner).layer, Layer::System);
    // A bare name permits no agent.
    assert_eq!(allowing(&["Agent"]).decide(&call("Task", json!({"subagent_type": "Explore"}))).layer, Layer::System);
}

#[test]
fn read_only_is_told_for_every_tool() {
    let policy = denying(&[]);
    let read_only = |tool: &str, input: Value| policy.decide(&call(tool, input)).read_only;
    assert!(read_only("Read", json!({"file_path": "x"})));
    assert!(read_only("Grep", json!({"pattern": "x"})));
    assert!(read_only("WebSearch", json!({"query": "x"})));
    // The shell can write where Edit rules grant it. Each program is judged when it starts.
    assert!(!read_only("Bash", json!({"command": "ls"})));
    let reader = allowing(&["Bash(ls *)", "Read", "Bash(touch *)"]);
    assert!(bash(&reader, "ls").read_only);
    assert!(!bash(&allowing(&["Bash(ls *)", "Edit(notes/**)"]), "ls").read_only);
    assert!(start(&reader, "ls").decision.read_only && start(&reader, "cat f").decision.read_only);
    assert!(!start(&reader, "touch f").decision.read_only && !start(&reader, "bot help").decision.read_only);
    assert!(!read_only("Edit", json!({"file_path": "x"})));
    assert!(!read_only("mcp__chat__ping_user", json!({})));
}
