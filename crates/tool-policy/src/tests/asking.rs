//! The third verdict: calls about which the person is asked.

use super::*;

/// Builds a job's policy. `None` means that the job has `main_tools`.
fn asking(allow: Option<&[&str]>, deny: &[&str], ask: &[&str]) -> Policy {
    let (allowed, disallowed, ask) = (allow.map(patterns), patterns(deny), patterns(ask));
    let main_tools = main_tools();
    let rules = JobRules {
        owner: "routine x",
        allowed: allowed.as_deref(),
        disallowed: &disallowed,
        ask: &ask,
        main_tools: &main_tools,
    };
    Policy::background(&rules, &roots(), &BOT)
}

/// Decides on `tool argument`: a program's words for `Bash`, a path or a text otherwise.
fn verdict(policy: &Policy, what: &str) -> (Verdict, Option<String>) {
    let (tool, text) = what.split_once(' ').unwrap_or((what, ""));
    let decision = match tool {
        "Bash" => start(policy, text).decision,
        _ => policy.decide(&call(
            tool,
            json!({ "file_path": text, "path": text, "pattern": text, "url": text, "skill": text, "subagent_type": text }),
        )),
    };
    (decision.verdict, decision.rule)
}

#[test]
fn what_is_asked() {
    use Verdict::{Allow, Ask, Deny};
    const PUSH: &str = "Bash(git push *)";
    for (allow, deny, ask, what, expected, rule) in [
        // In addition to an allowlist: calls that it does not grant.
        (Some(&["Bash(git log *)"][..]), &[][..], &[PUSH][..], "Bash git push origin", Ask, Some(PUSH)),
        (Some(&["Bash(git log *)"]), &[], &[PUSH], "Bash git log", Allow, Some("Bash(git log *)")),
        (Some(&["Bash(git log *)"]), &[], &[PUSH], "Bash git commit", Deny, None),
        (Some(&[]), &[], &[PUSH], "Bash git push", Ask, Some(PUSH)),
        // Grants by name in the file are not asked about.
        (Some(&["Bash(git *)"]), &[], &[PUSH], "Bash git push", Allow, Some("Bash(git *)")),
        (Some(&["Bash"]), &[], &[PUSH], "Bash git push", Allow, Some("Bash")),
        (Some(&["Read"]), &[], &["Read(secret/**)"], "Read secret/a", Allow, Some("Read")),
        (Some(&[]), &[], &["Bash(bot *)"], "Bash bot help", Allow, Some("Bash(bot help)")),
        // Grants of `main_tools` are asked about.
        (None, &["WebFetch"], &[PUSH], "Bash git push", Ask, Some(PUSH)),
        (None, &[], &[PUSH], "Bash git log", Allow, Some("Bash")),
        (None, &[], &[PUSH], "Bash /usr/bin/git push", Ask, Some(PUSH)),
        (None, &[], &[PUSH], "Bash git -C . push", Ask, Some(PUSH)),
        (None, &[], &[PUSH], "Bash git-push", Ask, Some(PUSH)),
        (None, &[], &["Read(secret/**)"], "Read secret/a", Ask, Some("Read(secret/**)")),
        (None, &[], &["Read(secret/**)"], "Grep secret", Ask, Some("Read(secret/**)")),
        (None, &[], &["Read(secret/**)"], "Edit secret/a", Ask, Some("Read(secret/**)")),
        (None, &[], &["Read(secret/**)"], "Read notes/a", Allow, Some("Read")),
        (None, &[], &["mcp__chat__spawn_agent"], "mcp__chat__spawn_agent", Ask, Some("mcp__chat__spawn_agent")),
        (None, &[], &["Bash"], "Bash ls", Ask, Some("Bash")),
        // The other names of an action, which a denial of one denies as well. None is granted by being asked about.
        (None, &[], &["mcp__chat__spawn_agent"], "Bash bot spawn x", Ask, Some("Bash(bot spawn *)")),
        (None, &[], &["mcp__chat__spawn_agent"], "Bash bot help", Allow, Some("Bash")),
        (None, &["mcp__chat__sessions_spawn"], &[], "Bash bot spawn x", Deny, Some("Bash(bot spawn *)")),
        (None, &["mcp__chat__sessions_spawn"], &[], "mcp__chat__spawn_agent", Deny, Some("mcp__chat__spawn_agent")),
        (None, &["mcp__chat"], &[], "Bash bot spawn x", Deny, Some("Bash(bot spawn *)")),
        (None, &["Bash(bot spawn *)"], &[], "mcp__chat__spawn_agent", Allow, Some("mcp__chat")),
        (Some(&["Read"]), &[], &["mcp__chat__spawn_agent"], "Bash bot spawn x", Deny, None),
        (
            Some(&["Bash(bot spawn *)"]),
            &[],
            &["mcp__chat__spawn_agent"],
            "Bash bot spawn x",
            Allow,
            Some("Bash(bot spawn *)"),
        ),
        // Denials and the blocks of forks take precedence.
        (None, &["Bash(git push *)"], &["Bash(git *)"], "Bash git push", Deny, Some(PUSH)),
        (None, &["Bash(git push *)"], &["Bash(git *)"], "Bash git log", Ask, Some("Bash(git *)")),
        (None, &["Read(secret/**)"], &["Read(secret/**)"], "Read secret/a", Deny, Some("Read(secret/**)")),
        (Some(&[]), &[], &["*"], "CronCreate", Deny, None),
        (Some(&[]), &[], &["Read"], "Read ~/.bot/config.yaml", Deny, None),
        (Some(&[]), &[], &["Bash"], "Bash rm .git/config", Deny, None),
        (Some(&[]), &[], &["Bash(bot *)"], "Bash bot --home x next", Deny, None),
        // A filter has no power, so it is asked about only if a rule names it.
        (Some(&[]), &[], &["Bash"], "Bash sort", Allow, None),
        (Some(&[]), &[], &["Bash"], "Bash curl https://a.b/", Ask, Some("Bash")),
        (Some(&[]), &[], &["Bash(sort *)"], "Bash sort x", Ask, Some("Bash(sort *)")),
        // A rule that asks must spell options that write or execute, too.
        (Some(&[]), &[], &["Bash(find *)"], "Bash find . -delete", Deny, None),
        (Some(&[]), &[], &["Bash(find . -delete)"], "Bash find . -delete", Ask, Some("Bash(find . -delete)")),
        (
            Some(&[]),
            &[],
            &["WebFetch(domain:docs.rs)"],
            "WebFetch https://docs.rs/x",
            Ask,
            Some("WebFetch(domain:docs.rs)"),
        ),
        (Some(&[]), &[], &["Edit(notes/**)"], "Write notes/a", Ask, Some("Edit(notes/**)")),
        (Some(&[]), &[], &["Edit(notes/**)"], "Write other/a", Deny, None),
        (Some(&[]), &[], &["Skill(a *)"], "Skill a b", Ask, Some("Skill(a *)")),
        (Some(&[]), &[], &["Agent(Explore)"], "Agent Explore", Ask, Some("Agent(Explore)")),
        (Some(&[]), &[], &[], "Bash git push", Deny, None),
    ] {
        let found = verdict(&asking(allow, deny, ask), what);
        assert_eq!(found, (expected, rule.map(str::to_owned)), "{allow:?} without {deny:?}, asking {ask:?}: {what}");
    }
}

#[test]
fn an_agent_asks_by_the_jobs_list_what_its_own_rules_let_it() {
    let agent = |tools: Option<&[&str]>, disallowed: &[&str]| AgentRules {
        name: "clerk".into(),
        tools: tools.map(patterns),
        disallowed: patterns(disallowed),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    for (tools, disallowed, expected) in [
        (None, &[][..], Verdict::Ask),
        (Some(&["Bash"][..]), &[], Verdict::Ask),
        (Some(&["Bash(git *)"]), &[], Verdict::Ask),
        (Some(&["Bash(git log *)"]), &[], Verdict::Deny),
        (None, &["Bash(git push *)"], Verdict::Deny),
    ] {
        let policy = asking(Some(&[]), &[], &["Bash(git push *)"]);
        let called = policy.clone().with_subagents(&[agent(tools, disallowed)]);
        let (argv, env) = (words("git push"), std::collections::BTreeMap::new());
        let start = ProgramStart { argv: &argv, cwd: std::path::Path::new(WORK), env: &env, agent_type: Some("clerk") };
        assert_eq!(called.decide_program(&start).decision.verdict, expected, "{tools:?} {disallowed:?}");
        let own = ProgramStart { agent_type: None, ..start };
        let spawned =
            policy.spawned("session y", &ToolLists { allow: tools.map(patterns), deny: Some(patterns(disallowed)) });
        assert_eq!(spawned.decide_program(&own).decision.verdict, expected, "{tools:?} {disallowed:?}");
    }
}

#[test]
fn what_may_be_asked_for_is_seen_and_comes_by_the_broker() {
    let policy =
        asking(Some(&["Read"]), &[], &["Bash(git push *)", "Bash(./run.sh)", "mcp__chat__ping_user", "Read(~/x/**)"]);
    assert_eq!(policy.visible_tools(), ["Bash", "Read"]);
    assert_eq!(policy.visible_mcp(&["ping_user", "embed"]), ["ping_user"]);
    let shell = policy.shell(None).unwrap();
    assert!(!shell.everything && !shell.judge_all);
    assert_eq!(
        (shell.denied.join(" "), shell.spelled.join(" ")),
        ("bot git git-push run.sh".into(), "./run.sh".into())
    );
    // Paths about which the job has to ask are open to no program.
    assert_eq!(shell.allowlists, [patterns(&["Read", "Bash(bot help)"])]);
    let guarded = asking(None, &[], &["Read"]).shell(None).unwrap();
    assert!(
        !guarded.grant_whole(&patterns(&["Read(~/x/**)"])[0], &BOT)
            && guarded.grant_whole(&patterns(&["WebFetch"])[0], &BOT)
    );
    let wide = asking(None, &[], &["Bash(git push *)"]).shell(None).unwrap();
    assert!(wide.everything && !wide.judge_all && wide.denied.contains(&"git".to_owned()));
    assert!(asking(None, &[], &["Bash"]).shell(None).unwrap().judge_all);
    let entries = policy.entries();
    let asked = entries.iter().find(|entry| entry.pattern == "Bash(git push *)").unwrap();
    assert_eq!((asked.effect, asked.origin.as_str()), (Verdict::Ask, "ask_tools of routine x"));
    let decision = start(&policy, "git push x").decision;
    assert_eq!(
        (decision.layer, decision.reason.as_str()),
        (Layer::AskTools, "Bash \"git push x\": the person is asked, by ask_tools \"Bash(git push *)\" of routine x")
    );
}

#[test]
fn a_child_asks_for_no_more() {
    const PUSH: &str = "Bash(git push *)";
    let main = main_tools();
    // The parent's lists; the child's allowlist and questions, and whether no answer is a yes for the child.
    for (allow, deny, ask, child, asked, silent, expected) in [
        (Some(&["Read"][..]), None, &[PUSH][..], None, None, false, Ok(&[PUSH][..])),
        (Some(&["Read"]), None, &[PUSH], None, Some(&[][..]), false, Ok(&[])),
        (Some(&["Read"]), None, &[PUSH], None, Some(&["Bash(git push origin)"]), false, Ok(&["Bash(git push origin)"])),
        (Some(&["Read"]), None, &[PUSH], None, Some(&["Bash(git *)"]), false, Err("more than routine x")),
        (Some(&["Read"]), None, &[PUSH], None, Some(&["Read"]), true, Ok(&["Read"])),
        (Some(&["Read"]), None, &[PUSH], None, Some(&[PUSH]), true, Err("more than routine x")),
        (Some(&["Read"]), None, &[PUSH], Some(&[PUSH][..]), None, false, Err("more than routine x")),
        // Everything in `main_tools`, except what is asked about.
        (None, None, &[PUSH], None, None, false, Ok(&[PUSH])),
        (None, None, &[PUSH], None, Some(&[]), false, Ok(&[PUSH])),
        (None, None, &[PUSH], None, Some(&["WebFetch"]), false, Ok(&["WebFetch", PUSH])),
        (None, None, &[PUSH], None, Some(&[]), true, Err("has to ask the person about")),
        (None, None, &[PUSH], None, None, true, Err("has to ask the person about")),
        (None, None, &[PUSH], Some(&["Bash(git log *)"]), None, false, Ok(&[PUSH])),
        (None, None, &[PUSH], Some(&["Bash"]), None, false, Err("has to ask the person about")),
        (None, Some(&["Bash(git push *)"][..]), &["Bash(git *)"], Some(&["Read"]), None, false, Ok(&[])),
        (
            None,
            Some(&["Bash(git push *)"]),
            &["Bash(git *)"],
            Some(&["Read"]),
            Some(&["Bash(git *)"]),
            false,
            Err("reaches into"),
        ),
        (None, Some(&["Bash(git push *)"]), &["Bash(git *)"], None, None, false, Ok(&["Bash(git *)"])),
    ] {
        let tools = ToolLists { allow: allow.map(patterns), deny: deny.map(patterns) };
        let asks = patterns(ask);
        let parent = Parent { name: "routine x", tools: &tools, ask: &asks, main_tools: &main, sandbox: None };
        let wanted = ToolLists { allow: child.map(patterns), deny: None };
        let found = BOT
            .attenuate(&parent, &wanted)
            .and_then(|child| BOT.attenuate_asks(&parent, &child, asked.map(patterns).as_deref(), silent));
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, patterns(expected), "{allow:?} {ask:?}: {child:?} {asked:?}")
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{allow:?} {ask:?}: {child:?} {asked:?}: {found:?}"),
        }
    }
}
