//! Tables of files and their expected problems.

use super::*;
use crate::agents::Scope;

fn read(text: &str) -> Parsed {
    read_bytes(text.as_bytes())
}

fn read_bytes(bytes: &[u8]) -> Parsed {
    let source = Source { scope: Scope::Project, path: "/home/bot/agents/x.md".into() };
    parse(&AgentFile { source, bytes, read_only: false, main_session_only: false })
}

/// Parses a file with the given settings and the two required fields.
fn with(settings: &str) -> Parsed {
    read(&format!("---\nname: x\ndescription: d\n{settings}\n---\nDo it.\n"))
}

fn words(list: &[ToolPattern]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

#[test]
fn a_whole_file_is_read() {
    let parsed = read(
        "\u{feff}---\r\nname: reviewer\r\ndescription: Reads diffs\r\ntools: Read, Bash(git diff *, x)\r\n\
         disallowedTools:\r\n  - Bash(git diff --ext-diff *)\r\nmodel: sonnet\r\npermissionMode: dontAsk\r\n\
         maxTurns: 7\r\ncolor: red\r\n---\r\n\r\nYou review.\r\n---\r\nTwice.\r\n",
    );
    assert_eq!(parsed.problems, []);
    let agent = parsed.agent.unwrap();
    assert_eq!((agent.name.as_str(), agent.description.as_str()), ("reviewer", "Reads diffs"));
    assert_eq!(agent.prompt, "You review.\n---\nTwice.");
    assert_eq!(words(&agent.tools.clone().unwrap()), "Read | Bash(git diff *, x)");
    assert_eq!(words(&agent.disallowed_tools), "Bash(git diff --ext-diff *)");
    assert_eq!(agent.model, AgentModel::Named("sonnet".into()));
    assert_eq!((agent.permission_mode, agent.max_turns), (PermissionMode::DontAsk, Some(7)));
    assert!(!agent.read_only && !agent.main_session_only);
}

#[test]
fn lists_hold_as_they_are_written() {
    // Settings, tools that the agent has (`*`: all), tools that it never has.
    for (settings, tools, never) in [
        ("", "*", ""),
        ("tools: '*'", "*", ""),
        ("tools: Read, *", "*", ""),
        ("tools: [Read, Grep]", "Read | Grep", ""),
        ("tools:\n  - Read\n  - Bash(git log *)", "Read | Bash(git log *)", ""),
        ("tools: Read Grep", "Read | Grep", ""),
        ("tools: Read, Write\ndisallowedTools: Write", "Read", "Write"),
        ("tools: Bash\ndisallowedTools: Bash(rm *)", "Bash", "Bash(rm *)"),
        ("disallowedTools: [Bash, Write]", "*", "Bash | Write"),
        ("disallowedTools: []", "*", ""),
        ("disallowedTools: ''", "*", ""),
        ("tools: '*'\ndisallowedTools: Bash", "*", "Bash"),
        ("permissionMode: plan", "*", "Write | Edit | NotebookEdit"),
        ("permissionMode: plan\ntools: Read, Edit", "Read", "Write | Edit | NotebookEdit"),
        ("permissionMode: plan\ndisallowedTools: Edit, Bash", "*", "Edit | Bash | Write | NotebookEdit"),
        // Tools that the client knows, has renamed, or does not offer here.
        (
            "tools: LS, LSP, KillShell, TaskStop, BashOutput, Glob",
            "LS | LSP | KillShell | TaskStop | BashOutput | Glob",
            "",
        ),
    ] {
        let parsed = with(settings);
        assert!(parsed.problems.iter().all(|problem| !problem.is_error()), "{settings}: {:?}", parsed.problems);
        let agent = parsed.agent.unwrap();
        let has = agent.tools.as_deref().map_or_else(|| "*".into(), words);
        assert_eq!((has.as_str(), words(&agent.disallowed_tools).as_str()), (tools, never), "{settings}");
    }
}

#[test]
fn modes_never_widen() {
    for (mode, expected, read_only, warned) in [
        ("default", PermissionMode::Default, false, false),
        ("dontAsk", PermissionMode::DontAsk, false, false),
        ("plan", PermissionMode::Default, true, false),
        ("acceptEdits", PermissionMode::Default, false, true),
        ("bypassPermissions", PermissionMode::Default, false, true),
        ("auto", PermissionMode::Default, false, true),
    ] {
        let parsed = with(&format!("permissionMode: {mode}"));
        let agent = parsed.agent.unwrap();
        assert_eq!((agent.permission_mode, agent.read_only), (expected, read_only), "{mode}");
        assert_eq!(parsed.problems.len(), usize::from(warned), "{mode}");
    }
}

#[test]
fn a_description_that_is_no_yaml_is_read_as_the_client_reads_it() {
    let parsed = read("---\nname: x\ndescription: Use it: user: \"hi\" # it's so\ntools: Read\n---\nDo it.\n");
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!((parsed.problems[0].line, parsed.problems[0].severity), (3, Severity::Warning));
    assert_eq!(parsed.agent.unwrap().description, "Use it: user: \"hi\" # it's so");
    // Only the description is read leniently; a restriction is never guessed.
    let parsed = read("---\nname: x\ndescription: a: b\ntools: c: d\n---\nDo it.\n");
    assert_eq!(parsed.agent, None);
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let files = [
        "Do it.\n",
        "---\nname: x\n",
        "---\n- a\n---\nDo it.\n",
        "---\nname: x\ntools: [\n---\nDo it.\n",
        "---\n---\nDo it.\n",
        "---\nname: x\ndescription: d\n---\n  \n",
        "---\nname: my agent\ndescription: ''\n---\nDo it.\n",
        "---\nname: Explore, Agent(x)\ndescription: d\n---\nDo it.\n",
        "---\nname: [x]\ndescription: d\n---\nDo it.\n",
        "---\nname: x\nname: y\ndescription: d\n---\nDo it.\n",
        "---\nname: x\ndescription: d\n<<: {tools: Read}\n---\nDo it.\n",
    ];
    let settings = [
        "tools:",
        "tools: []",
        "tools: ''",
        "tools: 7",
        "tools:\n  - Read\n  - 7",
        "tools:\n  - Read, Grep",
        "tools: Bash(ls, Read",
        "tools: Re;ad",
        "tools:\n  - ''",
        "tools: Write\ndisallowedTools: Write",
        "tools: mcp__a__b\ndisallowedTools: mcp__a",
        "disallowedTools: '*'",
        "tools: '*'\ndisallowedTools: '*'",
        "permissionMode: plan\ntools: Write, Edit",
        "tools: Read, Write\ndisallowedTools: Write",
        "tools: Read, Agent(Explore), Task",
        "allowed_tools: Read",
        "allowedTools: Read",
        "disallowed-tools: Bash",
        "disalowedTools: Bash",
        "mode: plan",
        "max_turns: 3",
        "permissionMode: dontask",
        "permissionMode: yolo",
        "permissionMode: bypassPermissions",
        "maxTurns: 0",
        "maxTurns: -3",
        "maxTurns: many",
        "model: --dangerously-skip-permissions",
        "model: a b",
        "modle: haiku",
        "hooks: {}",
        "frobnicate: 1",
    ];
    let said = |text: &str, parsed: Parsed| {
        let problems: Vec<String> = parsed
            .problems
            .iter()
            .map(|p| {
                let hint = p.hint.as_deref().unwrap_or("-");
                format!("  {}:{} {}: {}\n    {hint}", p.line, p.column, p.severity, p.message)
            })
            .collect();
        let agent = if parsed.agent.is_some() { "agent" } else { "no agent" };
        format!("{text:?}: {agent} {:?}\n{}", parsed.names, problems.join("\n"))
    };
    let files = files.iter().map(|text| said(text, read(text)));
    let settings = settings.iter().map(|text| said(text, with(text)));
    insta::assert_snapshot!(files.chain(settings).collect::<Vec<_>>().join("\n"), @r#"
    "Do it.\n": no agent ["x"]
      1:1 error: there is no frontmatter
        begin the file with `---`, lines `name: …` and `description: …`, `---`, and then the prompt
    "---\nname: x\n": no agent ["x"]
      1:1 error: the frontmatter is not closed
        add a line `---` between the settings and the prompt
    "---\n- a\n---\nDo it.\n": no agent ["x"]
      2:1 error: the frontmatter is not valid YAML: expected `key: value` lines, found a list
        each setting is a line `key: value`
    "---\nname: x\ntools: [\n---\nDo it.\n": no agent ["x"]
      4:1 error: the frontmatter is not valid YAML: did not find expected node content, while parsing a flow node
        each setting is a line `key: value`
    "---\n---\nDo it.\n": no agent ["x"]
      1:1 error: `name` is missing
        add a line `name: …`, the name by which it is called
      1:1 error: `description` is missing
        add a line `description: …`, one line by which the calling agent picks this one
    "---\nname: x\ndescription: d\n---\n  \n": no agent ["x"]
      4:1 error: there is no prompt below the settings
        write below the second `---` what the agent should do and how
    "---\nname: my agent\ndescription: ''\n---\nDo it.\n": no agent ["my agent", "x"]
      2:1 error: `my agent` cannot be an agent's name
        use letters, digits, `-`, `_` and `.`, at most 64
      3:1 error: `description` is missing
        add a line `description: …`, one line by which the calling agent picks this one
    "---\nname: Explore, Agent(x)\ndescription: d\n---\nDo it.\n": no agent ["Explore, Agent(x)", "x"]
      2:1 error: `Explore, Agent(x)` cannot be an agent's name
        use letters, digits, `-`, `_` and `.`, at most 64
    "---\nname: [x]\ndescription: d\n---\nDo it.\n": no agent ["x"]
      2:7 error: `name` must be text, found a list
        write `name: …` on one line
    "---\nname: x\nname: y\ndescription: d\n---\nDo it.\n": no agent ["x", "y"]
      3:1 error: `name` is set twice
        keep one of the two
    "---\nname: x\ndescription: d\n<<: {tools: Read}\n---\nDo it.\n": no agent ["x"]
      4:1 error: merge keys are not supported
        write the settings out: a restriction that comes by a merge could be missed
    "tools:": no agent ["x"]
      4:7 error: `tools` must be a list of tools, found nothing
        write `tools: Read, Grep`, or one `- …` a line; or remove the line
    "tools: []": no agent ["x"]
      4:1 error: `tools` is empty: the agent could do nothing
        name the tools it has, or remove the line: then it has all that its caller has
    "tools: ''": no agent ["x"]
      4:1 error: `tools` is empty: the agent could do nothing
        name the tools it has, or remove the line: then it has all that its caller has
    "tools: 7": no agent ["x"]
      4:8 error: `tools` must be a list of tools, found a number
        write `tools: Read, Grep`, or one `- …` a line; or remove the line
    "tools:\n  - Read\n  - 7": no agent ["x"]
      6:5 error: each item of `tools` must be text, found a number
        quote it: `- '…'`
    "tools:\n  - Read, Grep": no agent ["x"]
      5:5 error: `Read, Grep` is not a tool name in `tools`
        write one tool a line, each after its own `- `
    "tools: Bash(ls, Read": no agent ["x"]
      4:8 error: unbalanced parentheses in tool pattern `Bash(ls, Read` in `tools`
        close each `(` with a `)`
    "tools: Re;ad": no agent ["x"]
      4:8 error: `Re;ad` is not a tool name in `tools`
        write `Tool` or `Tool(what)`
    "tools:\n  - ''": no agent ["x"]
      5:5 error: empty tool pattern in `tools`
        write `Tool` or `Tool(what)`
    "tools: Write\ndisallowedTools: Write": no agent ["x"]
      4:1 error: no tool is left: `disallowedTools` takes away all that `tools` names
        name a tool in `tools` only
    "tools: mcp__a__b\ndisallowedTools: mcp__a": no agent ["x"]
      4:1 error: no tool is left: `disallowedTools` takes away all that `tools` names
        name a tool in `tools` only
    "disallowedTools: '*'": no agent ["x"]
      4:1 error: no tool is left: `disallowedTools` takes all away
        name the tools to take away
    "tools: '*'\ndisallowedTools: '*'": no agent ["x"]
      4:1 error: no tool is left: `disallowedTools` takes away all that `tools` names
        name a tool in `tools` only
    "permissionMode: plan\ntools: Write, Edit": no agent ["x"]
      5:1 error: no tool is left: a read-only agent has none that writes
        name tools that read
    "tools: Read, Write\ndisallowedTools: Write": agent ["x"]
      4:1 warning: `Write` stands in both lists and is taken away
        name a tool in one list only
    "tools: Read, Agent(Explore), Task": agent ["x"]
      4:1 warning: no agent may use `Agent(Explore)`, `Task`
        take it out of the list
    "allowed_tools: Read": no agent ["x"]
      4:1 error: unknown field `allowed_tools`, close to `tools`, which restricts the agent
        did you mean `tools`?
    "allowedTools: Read": no agent ["x"]
      4:1 error: unknown field `allowedTools`, close to `tools`, which restricts the agent
        did you mean `tools`?
    "disallowed-tools: Bash": no agent ["x"]
      4:1 error: unknown field `disallowed-tools`, close to `disallowedTools`, which restricts the agent
        did you mean `disallowedTools`?
    "disalowedTools: Bash": no agent ["x"]
      4:1 error: unknown field `disalowedTools`, close to `disallowedTools`, which restricts the agent
        did you mean `disallowedTools`?
    "mode: plan": no agent ["x"]
      4:1 error: unknown field `mode`, close to `permissionMode`, which restricts the agent
        did you mean `permissionMode`?
    "max_turns: 3": no agent ["x"]
      4:1 error: unknown field `max_turns`, close to `maxTurns`, which restricts the agent
        did you mean `maxTurns`?
    "permissionMode: dontask": no agent ["x"]
      4:17 error: `dontask` is not a permission mode
        write `default`, `dontAsk` or `plan`
    "permissionMode: yolo": no agent ["x"]
      4:17 error: `yolo` is not a permission mode
        write `default`, `dontAsk` or `plan`
    "permissionMode: bypassPermissions": agent ["x"]
      4:1 warning: `permissionMode: bypassPermissions` has no effect here: an agent has `default`
        a job's agents never have more than the job; `default` and `dontAsk` are read
    "maxTurns: 0": no agent ["x"]
      4:11 error: `maxTurns` must be at least 1, found 0
        write `maxTurns: 1` or more
    "maxTurns: -3": no agent ["x"]
      4:11 error: `maxTurns` cannot be negative, found -3
        write `maxTurns: 1` or more
    "maxTurns: many": no agent ["x"]
      4:11 error: `maxTurns` must be a whole number, found `many`
        write `maxTurns: 1` or more
    "model: --dangerously-skip-permissions": no agent ["x"]
      4:8 error: `model` must be the name of a model, found `--dangerously-skip-permissions`
        for example `haiku`, `sonnet` or `claude-sonnet-4-5`
    "model: a b": no agent ["x"]
      4:8 error: `model` must be the name of a model, found `a b`
        for example `haiku`, `sonnet` or `claude-sonnet-4-5`
    "modle: haiku": agent ["x"]
      4:1 warning: unknown field `modle`
        did you mean `model`?
    "hooks: {}": agent ["x"]
      4:1 warning: `hooks` has no effect here
        it is for the client's own sessions
    "frobnicate: 1": agent ["x"]
      4:1 warning: unknown field `frobnicate`
        it has no effect: remove it, or write it as a comment (`# …`)
    "#);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for (bytes, message, names) in [
        (b"---\nname: Plan\ndescription: \xff\n---\nx".to_vec(), "the file is not UTF-8 text", vec!["Plan", "x"]),
        (vec![b'a'; LARGEST_FILE + 1], "the file is over 1 MiB", vec!["x"]),
        (vec![], "there is no frontmatter", vec!["x"]),
    ] {
        let parsed = read_bytes(&bytes);
        assert_eq!(
            (parsed.problems[0].message.as_str(), parsed.names),
            (message, names.iter().map(|n| (*n).to_owned()).collect())
        );
        assert_eq!(parsed.agent, None);
    }
}

proptest::proptest! {
    #[test]
    fn whatever_stands_in_a_file_is_an_agent_or_an_error(
        settings in proptest::collection::vec(
            proptest::sample::select(vec![
                "name: x", "name: Plan", "name: '*'", "description: d", "description: a: b", "tools: Read, Write",
                "tools: '*'", "tools: [Bash(ls *), 7]", "tools:", "disallowedTools: Write", "disallowedTools: ['*']",
                "permissionMode: plan", "permissionMode: auto", "maxTurns: -1", "model: inherit", "---", "&a *a", "\t",
                "'", "{", "🦀: x",
            ]),
            0..8,
        ),
        body in ".{0,40}",
    ) {
        let parsed = read(&format!("---\n{}\n---\n{body}", settings.join("\n")));
        proptest::prop_assert!(!parsed.names.is_empty());
        let failed = parsed.problems.iter().any(Problem::is_error);
        proptest::prop_assert_eq!(parsed.agent.is_none(), failed);
        if let Some(agent) = parsed.agent {
            proptest::prop_assert!(!agent.prompt.trim().is_empty() && !agent.description.is_empty());
            let tools = agent.tools.unwrap_or_default();
            let (_, taken) = tool_list::without(tools, &agent.disallowed_tools);
            proptest::prop_assert_eq!(taken, vec![], "a tool stands in both lists");
            proptest::prop_assert!(!tool_list::is_everything(&agent.disallowed_tools));
            let never: Vec<String> = agent.disallowed_tools.iter().map(ToString::to_string).collect();
            let writes = WRITING_TOOLS.iter().any(|tool| !never.iter().any(|rule| rule == tool));
            proptest::prop_assert!(!(agent.read_only && writes));
        }
    }
}

#[test]
fn the_built_in_agents_are_those_of_the_table() {
    let table: Vec<String> = crate::agents::builtin::all()
        .map(|parsed| {
            assert_eq!(parsed.problems, []);
            let agent = parsed.agent.unwrap();
            let tools = agent.tools.as_deref().map_or_else(|| "*".into(), words);
            let marks = [(agent.read_only, "read-only"), (agent.main_session_only, "main session only")];
            let marks: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect();
            format!(
                "{} {:?}: {}; {}; {:?}; never {:?}; {}",
                agent.source.path.display(),
                agent.name,
                agent.model.as_str(),
                tools,
                agent.permission_mode,
                words(&agent.disallowed_tools),
                if marks.is_empty() { "-".into() } else { marks.join(", ") },
            )
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"), @r#"
    <builtin:Bash> "Bash": inherit; Bash; Default; never ""; -
    <builtin:general-purpose> "general-purpose": default; *; Default; never ""; -
    <builtin:statusline-setup> "statusline-setup": sonnet; Read | Edit; Default; never ""; main session only
    <builtin:Explore> "Explore": haiku; Glob | Grep | Read | Bash; Default; never "Write | Edit | NotebookEdit"; read-only
    <builtin:Plan> "Plan": inherit; Glob | Grep | Read | LS | LSP | Bash; Default; never "Write | Edit | NotebookEdit"; read-only
    <builtin:claude-code-guide> "claude-code-guide": haiku; Glob | Grep | Read | WebFetch | WebSearch; DontAsk; never ""; -
    "#);
}

#[test]
fn the_read_only_agents_are_told_so_twice_and_plan_has_all_its_parts() {
    for name in ["Explore", "Plan"] {
        let agents = crate::agents::Agents::built_in();
        let prompt = &agents.get(name).unwrap().prompt;
        for refused in ["mkdir", "touch", "rm", "cp", "mv", "git add", "git commit", "npm install"] {
            assert!(prompt.contains(&format!("`{refused}`")), "{name}: {refused}");
        }
        assert!(prompt.contains("# Read-only"), "{name}");
        assert!(prompt.lines().last().unwrap().contains("You cannot create, change, move or remove a file"), "{name}");
    }
    let agents = crate::agents::Agents::built_in();
    let plan = &agents.get("Plan").unwrap().prompt;
    let order = [
        "# Role",
        "software architect",
        "planning specialist",
        "# Read-only",
        "# The four steps",
        "**Understand the requirements.**",
        "**Explore thoroughly.**",
        "**Design.**",
        "**Detail the plan.**",
        "# How to use the tools",
        "# Prohibitions",
        "# Answer",
        "**Understanding**",
        "**Implementation strategy**",
        "**Critical files**: the 3 to 5",
        "**Considerations**",
    ];
    let at: Vec<usize> =
        order.iter().map(|part| plan.find(part).unwrap_or_else(|| panic!("Plan has no {part}"))).collect();
    assert!(at.is_sorted(), "{at:?}");
}
