mod every_field;

use super::*;
use crate::definition::{Background, Kind, Mode, When, parse};
use crate::policy::{self, AgentRules, AskDefault, AskTerms, PathRoots, PermissionMode, UpdateMode};
use crate::run::prompt::tests::reminder;

pub(in crate::run) fn settings() -> RunSettings {
    RunSettings {
        main_ask_tools: Vec::new(),
        budget: (crate::definition::Budget::default(), chrono_tz::Tz::UTC),
        main_tools: crate::policy::default_main_tools(),
        model: None,
        thinking: crate::definition::Thinking::Adaptive,
        timeout: Duration::from_secs(1800),
        inactivity_timeout: Duration::from_secs(60),
        notify_chain_delay: Duration::from_secs(3600),
        require_sandbox: false,
        unheld_allowed: false,
        limits: agent_sandbox::Limits::default(),
        person: "the user".into(),
        bot_name: "ollim-bot".into(),
        spawned_tools: ToolLists::default(),
    }
}

pub(in crate::run) fn places() -> PathRoots {
    PathRoots { root: "/home/u/.ollim-bot".into(), work: "/home/u/.ollim-bot/work".into(), user_home: "/home/u".into() }
}

fn config(allow: Option<&[&str]>, deny: Option<&[&str]>) -> BgForkConfig {
    let list = |texts: &[&str]| texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
    BgForkConfig::new(UpdateMode::OnPing, true, allow.map(list), deny.map(list)).unwrap()
}

/// Returns the limit of a background job with this allowlist, modified by `change`.
fn job(allow: &[&str], change: impl FnOnce(&mut Definition)) -> DelegationLimit {
    let restrictions = config(Some(allow), None);
    let mut definition = reminder(Mode::Background(Background { restrictions, ..Background::default() }), None);
    definition.timeout = None;
    change(&mut definition);
    of(&definition)
}

fn of(definition: &Definition) -> DelegationLimit {
    let policy = match definition.background() {
        Some(background) => {
            let tools = crate::policy::default_main_tools();
            policy::background(&definition.title(), &background.restrictions, &tools, &places())
        }
        None => policy::main_session(&settings().main_tools, &[], &places()),
    };
    DelegationLimit::of(definition, &policy, &settings())
}

fn draft() -> Draft {
    let mut draft = Draft::new(When::At(chrono::DateTime::UNIX_EPOCH.fixed_offset()), "Look.");
    draft.background = true;
    draft
}

fn background(definition: &mut Definition) -> &mut Background {
    match &mut definition.mode {
        Mode::Background(background) => background,
        Mode::Foreground => panic!("a background job"),
    }
}

#[track_caller]
fn refused(limit: &DelegationLimit, change: impl FnOnce(&mut Draft), part: &str) {
    let mut draft = draft();
    change(&mut draft);
    let why = limit.narrow(&mut draft).unwrap_err();
    assert!(why.reason.contains(part), "{why}");
}

fn texts(list: &[&str]) -> Option<Vec<ToolPattern>> {
    Some(list.iter().map(|text| ToolPattern::parse(text).unwrap()).collect())
}

#[test]
fn what_is_not_asked_for_is_as_the_maker_has_it() {
    let limit = job(&["Read", "Bash(ollim-bot gmail *)"], |own| {
        own.timeout = Some(Duration::from_secs(60));
        (own.max_turns, own.max_cost_usd) = (Some(7), Some(0.5));
        let background = background(own);
        (background.isolated, background.agent) = (true, Some("Plan".into()));
        background.restrictions.allow_ping = false;
        background.restrictions.update_main_session = UpdateMode::Blocked;
    });
    let mut made = draft();
    limit.narrow(&mut made).unwrap();
    let mut expect = draft();
    expect.allowed_tools = texts(&["Read", "Bash(ollim-bot gmail *)"]);
    (expect.isolated, expect.allow_ping) = (true, false);
    expect.update_main_session = UpdateMode::Blocked;
    expect.agent = Some("Plan".into());
    expect.timeout = Some(Duration::from_secs(60));
    (expect.max_turns, expect.max_cost_usd) = (Some(7), Some(0.5));
    expect.created_by = Some(DefinitionId::new("oven"));
    assert_eq!(made, expect);
    // Limiting a draft twice changes nothing.
    let mut again = made.clone();
    limit.narrow(&mut again).unwrap();
    assert_eq!(again, made);
}

#[test]
fn what_it_makes_requires_what_it_requires() {
    use crate::definition::Need::{Online, Power};
    let careful = job(&["Read"], |own| own.requires = vec![Power]);
    let made = |asked: Vec<crate::definition::Need>| {
        let mut made = Draft { requires: asked, ..draft() };
        careful.narrow(&mut made).unwrap();
        // The same applies to an agent that it spawns.
        let mut spawned = draft();
        careful.limit_draft(&mut spawned).unwrap();
        (made.requires, spawned.requires)
    };
    assert_eq!(made(Vec::new()), (vec![Power], vec![Power]));
    assert_eq!(made(vec![Online]).0, [Online, Power]);
    assert_eq!(made(vec![Power, Online]).0, [Power, Online]);
}

#[test]
fn what_it_makes_is_no_louder() {
    let quiet = job(&["Read"], |own| (own.urgency, own.deliver) = (Urgency::Low, Deliver::Digest));
    let mut made = draft();
    quiet.narrow(&mut made).unwrap();
    assert_eq!((made.urgency, made.deliver), (Urgency::Low, Deliver::Digest));
    refused(&quiet, |draft| draft.urgency = Urgency::Critical, "`--urgency critical` is more than");
    let command = |draft: &mut Draft| {
        (draft.client, draft.command) = (Some(JobClient::Exec), Some("true".into()));
    };
    let with_digest = |draft: &mut Draft| {
        command(draft);
        draft.deliver = Deliver::Digest;
    };
    refused(&quiet, with_digest, "only the person has output sent each time");
    let mut made = draft();
    command(&mut made);
    quiet.narrow(&mut made).unwrap();
    assert_eq!(made.deliver, Deliver::Never, "it may send nothing itself");
    let mut silent = draft();
    silent.allow_ping = false;
    quiet.narrow(&mut silent).unwrap();
    assert_eq!(silent.deliver, Deliver::Failure, "it says nothing that could wait");
    refused(&quiet, |draft| draft.wake = true, "only the person has the machine woken");
    refused(&quiet, |draft| draft.approve = true, "`--approve` has the person asked");
    refused(&quiet, |draft| draft.ask_tools = texts(&["Read"]), "`--ask-tools` has the person asked");
    let urgent = job(&["Read"], |own| own.urgency = Urgency::Critical);
    for (asked, made) in [(Urgency::Normal, Urgency::Normal), (Urgency::Critical, Urgency::Critical)] {
        let mut draft = draft();
        draft.urgency = asked;
        urgent.narrow(&mut draft).unwrap();
        assert_eq!(draft.urgency, made);
    }
}

/// The failures of the new job are told to the person, with its id and what a check of it printed.
#[test]
fn what_a_job_that_may_send_nothing_makes_says_no_words_of_its_own() {
    let quiet = job(&["Read"], |own| own.deliver = Deliver::Digest);
    let loud = job(&["Read", "mcp__discord__ping_user"], |own| own.deliver = Deliver::Digest);
    for (limit, expected) in [(&quiet, (false, Deliver::Failure)), (&loud, (true, Deliver::Digest))] {
        let mut made = draft();
        limit.narrow(&mut made).unwrap();
        limit.silence(&mut made).unwrap();
        assert_eq!((made.allow_ping, made.deliver), expected);
    }
    let mut named = Draft { id: Some(DefinitionId::new("the-oven-is-on")), ..draft() };
    assert!(quiet.silence(&mut named).unwrap_err().reason.contains("`--id` is in the messages about a job"));
    loud.silence(&mut named).unwrap();
    assert!(quiet.may_choose_id().is_err() && loud.may_choose_id().is_ok());
}

#[test]
fn what_a_command_makes_knows_no_conversation_and_costs_no_more_than_its_file_says() {
    let limit = job(&["Bash(ollim-bot reminder *)"], |own| {
        (own.client, own.command) = (Some(JobClient::Exec), Some("true".to_owned()));
        (own.max_turns, own.max_cost_usd, own.max_cost_day_usd) = (Some(7), Some(0.5), Some(2.0));
    });
    let mut made = draft();
    limit.narrow(&mut made).unwrap();
    assert!(made.isolated);
    assert_eq!((made.max_turns, made.max_cost_usd, made.max_cost_day_usd), (Some(7), Some(0.5), Some(2.0)));
    refused(&limit, |draft| draft.max_cost_usd = Some(0.6), "--max-cost-usd");
}

#[test]
fn what_is_made_or_spawned_speaks_on_the_channel_of_its_maker() {
    let limit = job(&["Read"], |own| own.channel = Some("phone".into()));
    let mut made = draft();
    limit.keep_channel(&mut made).unwrap();
    assert_eq!(made.channel.as_deref(), Some("phone"));
    made.channel = Some("work".into());
    assert!(limit.keep_channel(&mut made).is_err());
}

#[test]
fn what_is_more_is_refused_with_its_name() {
    let limit = job(&["Read", "Bash(ollim-bot gmail *)"], |own| {
        own.timeout = Some(Duration::from_secs(60));
        (own.max_turns, own.max_cost_usd) = (Some(7), Some(0.5));
        background(own).agent = Some("Plan".into());
        own.skills = vec!["mail".into()];
    });
    refused(&limit, |draft| draft.background = false, "background jobs only");
    refused(&limit, |draft| draft.allowed_tools = texts(&["Read", "Edit"]), "`Edit` is more than reminder oven");
    refused(&limit, |draft| draft.allowed_tools = texts(&["Bash(ollim-bot *)"]), "`Bash(ollim-bot *)` is more");
    refused(&limit, |draft| draft.agent = Some("general-purpose".into()), "runs as agent `Plan`");
    refused(&limit, |draft| draft.timeout = Some(Duration::from_secs(61)), "`--timeout 1m 1s` is more");
    refused(&limit, |draft| draft.gate_timeout = Some(Duration::from_secs(31)), "`--gate-timeout 31s` is more");
    refused(&limit, |draft| draft.max_turns = Some(8), "`--max-turns 8` is more");
    refused(&limit, |draft| draft.max_cost_usd = Some(0.6), "`--max-cost-usd 0.6` is more");
    refused(&limit, |draft| draft.skills = vec!["mail".into(), "money".into()], "no skill `money`");
    // A smaller request is granted.
    let mut less = draft();
    less.allowed_tools = texts(&["Bash(ollim-bot gmail unread)"]);
    (less.timeout, less.max_turns) = (Some(Duration::from_secs(5)), Some(1));
    less.skills = vec!["mail".into()];
    let asked = less.clone();
    limit.narrow(&mut less).unwrap();
    assert_eq!(
        (&less.allowed_tools, less.timeout, less.max_turns),
        (&asked.allowed_tools, asked.timeout, asked.max_turns)
    );
    // If the file names no timeout, the usual one is the maximum.
    let usual = job(&["Read"], |_| {});
    refused(&usual, |draft| draft.timeout = Some(Duration::from_secs(1801)), "`--timeout 30m 1s` is more");
}

/// In the sandbox a rule for a whole tool grants less than narrow rules can.
#[test]
fn a_whole_tool_hands_on_no_more_than_its_sandbox_opens() {
    let usual = of(&reminder(Mode::Background(Background::default()), None));
    let asks = |limit: &DelegationLimit, pattern: &str| {
        let mut draft = draft();
        draft.allowed_tools = texts(&[pattern]);
        (
            limit.narrow(&mut draft).is_ok(),
            limit.may_spawn(Some(&ToolLists { allow: texts(&[pattern]), deny: None })).is_ok(),
        )
    };
    for pattern in ["Edit(~/.ssh/**)", "Read(//home/u/.ssh/**)", "Bash(docker *)", "Bash(* ps)", "Agent(clerk)"] {
        assert_eq!(asks(&usual, pattern), (false, false), "{pattern}");
    }
    for pattern in ["Edit(notes/**)", "Read", "Bash(ls *)", "Bash"] {
        assert_eq!(asks(&usual, pattern), (true, true), "{pattern}");
    }
    // The main session has no sandbox, so a rule for a whole tool grants all of it.
    let main = of(&reminder(Mode::Foreground, None));
    assert_eq!(asks(&main, "Read(~/.ssh/**)"), (true, true));
}

#[test]
fn a_list_that_is_handed_on_is_short() {
    let patterns: Vec<String> = (0..65).map(|n| format!("Bash(ls {n})")).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let limit = job(&["Bash(ls *)"], |_| {});
    refused(&limit, |draft| draft.allowed_tools = texts(&patterns), "at most 64 patterns");
    // A longer list may be inherited unchanged.
    let mut inherits = draft();
    job(&patterns, |_| {}).narrow(&mut inherits).unwrap();
    assert_eq!(inherits.allowed_tools, texts(&patterns));
}

#[test]
fn a_chain_is_not_begun_anew_by_its_own_links() {
    let link = |depth| {
        job(&["Read"], |own| {
            let chain = Chain { max: 3, depth, parent: DefinitionId::new("oven") };
            own.trigger = Trigger::Reminder { run_at: chrono::DateTime::UNIX_EPOCH.fixed_offset(), chain: Some(chain) };
        })
    };
    refused(&link(3), |draft| draft.max_chain = 1, "`--max-chain 1` is more than reminder oven has itself (0 left)");
    refused(&link(1), |draft| draft.max_chain = 99, "`--max-chain 99` is more");
    refused(&job(&["Read"], |_| {}), |draft| draft.max_chain = 1, "`--max-chain 1` is more");
    let mut shorter = draft();
    shorter.max_chain = 2;
    link(1).narrow(&mut shorter).unwrap();
    let routine = job(&["Read"], |own| {
        own.trigger = Trigger::Routine { recurs: "@daily".into(), on_overlap: crate::definition::OnOverlap::Skip };
    });
    let mut any = draft();
    any.max_chain = 9;
    routine.narrow(&mut any).unwrap();
}

#[test]
fn an_agent_may_be_taken_on_but_not_off() {
    let mut made = draft();
    made.agent = Some("Explore".into());
    job(&["Read"], |_| {}).narrow(&mut made).unwrap();
    assert_eq!(made.agent.as_deref(), Some("Explore"));
}

#[test]
fn only_the_maker_changes_a_job_and_only_while_it_has_no_more() {
    let limit = job(&["Read", "Bash(ollim-bot gmail *)"], |_| {});
    let mut made = draft();
    made.allowed_tools = texts(&["Read"]);
    limit.narrow(&mut made).unwrap();
    limit.silence(&mut made).unwrap();
    let defaults =
        crate::definition::Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
    let read = |draft: &Draft| {
        let text = draft.render(Some(&DefinitionId::new("child")));
        parse(Kind::Reminder, std::path::Path::new("reminders/child.md"), text.as_bytes(), &defaults)
            .definition
            .unwrap()
    };
    limit.may_change(&read(&made)).unwrap();
    let refused = |limit: &DelegationLimit, change: &dyn Fn(&mut Draft), part: &str| {
        let mut changed = made.clone();
        change(&mut changed);
        let why = limit.may_change(&read(&changed)).unwrap_err();
        assert!(why.reason.contains(part), "{why}");
    };
    // A person's job, another job's, one that a person has widened since, and a turn of the main session.
    refused(&limit, &|draft| draft.created_by = None, "was not made by reminder oven");
    refused(&limit, &|draft| draft.created_by = Some(DefinitionId::new("other")), "was not made by");
    refused(&limit, &|draft| draft.allowed_tools = texts(&["Edit"]), "has more than reminder oven by now");
    refused(&limit, &|draft| draft.allowed_tools = None, "has more than");
    // The maker may send no messages, so it changes no job that may.
    refused(&limit, &|draft| draft.allow_ping = true, "has more than");
    refused(
        &limit,
        &|draft| {
            draft.allowed_tools = None;
            draft.background = false;
        },
        "has more than",
    );
    // A follow-up may change the jobs that the chain's first reminder made.
    let link = job(&["Read"], |own| {
        own.id = DefinitionId::new("link2");
        let chain = Chain { max: 3, depth: 1, parent: DefinitionId::new("oven") };
        own.trigger = Trigger::Reminder { run_at: chrono::DateTime::UNIX_EPOCH.fixed_offset(), chain: Some(chain) };
    });
    link.may_change(&read(&made)).unwrap();
}

#[test]
fn the_main_session_makes_turns_and_jobs_within_its_tools() {
    let main = of(&reminder(Mode::Foreground, None));
    let mut turn = draft();
    turn.background = false;
    main.narrow(&mut turn).unwrap();
    let mut long = draft();
    long.timeout = Some(Duration::from_secs(7200));
    long.allowed_tools = texts(&["Read", "Bash(git *)"]);
    main.narrow(&mut long).unwrap();
    refused(&main, |draft| draft.allowed_tools = texts(&["mcp__bank__pay"]), "`mcp__bank__pay` is more than");
}

#[test]
fn a_change_is_judged_as_if_the_run_made_the_job_so() {
    let mut narrow = settings();
    narrow.main_tools = ["Read", "Bash(ollim-bot *)"].map(|text| ToolPattern::parse(text).unwrap()).into();
    let turn = reminder(Mode::Foreground, None);
    let main = DelegationLimit::of(&turn, &policy::main_session(&narrow.main_tools, &[], &places()), &narrow);
    let is = |allow: &[&str]| {
        let restrictions = config(Some(allow), None);
        reminder(Mode::Background(Background { restrictions, ..Background::default() }), None)
    };
    let (persons, wide) = (is(&["Read(**)"]), is(&["Bash(curl *)"]));
    // It may change any job of the person's, and so into what it could make.
    main.may_change(&persons).unwrap();
    main.may_become(&persons, &Definition { body: "Look.".into(), ..is(&["Read"]) }).unwrap();
    let refused = |found: &Definition, changed: &Definition, part: &str| {
        let why = main.may_become(found, changed).unwrap_err();
        assert!(why.reason.contains(part), "{why}");
    };
    refused(&persons, &wide, "`Bash(curl *)` is more than");
    // What has more already: its times may be others, but not what it does.
    main.may_become(&wide, &Definition { enabled: false, ..wide.clone() }).unwrap();
    refused(&wide, &Definition { body: "Other.".into(), ..wide.clone() }, "`Bash(curl *)` is more than");
    let asked = Definition { approve: true, ..persons.clone() };
    refused(&asked, &persons, "only the person takes `approve`");
    main.may_become(&asked, &Definition { body: "Other.".into(), ..asked.clone() }).unwrap();
    for name in TIMES {
        assert!(FIELDS.iter().any(|field| field.name == name), "{name}");
    }
}

#[test]
fn a_spawned_agent_makes_and_changes_nothing() {
    let definition = reminder(Mode::Background(Background::default()), None);
    let policy = policy::background("x", &BgForkConfig::default(), &settings().main_tools, &places());
    let limit = DelegationLimit::of(&definition, &policy.spawned("x", &ToolLists::default()), &settings());
    refused(&limit, |_| {}, "makes no jobs");
    assert!(limit.may_change(&definition).unwrap_err().reason.contains("changes no jobs"));
    assert!(limit.may_spawn(None).unwrap_err().reason.contains("spawns none"));
}

#[test]
fn a_spawn_asks_for_no_tool_that_its_caller_lacks() {
    let limit = job(&["Read", "Bash(ollim-bot gmail *)"], |_| {});
    let tools =
        |allow: &[&str]| ToolLists { allow: config(Some(allow), None).allowed_tools().map(Into::into), deny: None };
    limit.may_spawn(None).unwrap();
    limit.may_spawn(Some(&tools(&[]))).unwrap();
    limit.may_spawn(Some(&tools(&["Bash(ollim-bot gmail unread)"]))).unwrap();
    assert!(limit.may_spawn(Some(&tools(&["Read", "Bash"]))).unwrap_err().reason.contains("`Bash` is more than"));
    // Longer lists would take seconds to compare.
    for count in [PATTERNS_AT_MOST, PATTERNS_AT_MOST + 1] {
        let deny = ToolLists { allow: None, deny: texts(&vec!["Bash(ollim-bot gmail send *)"; count]) };
        let allow = tools(&vec!["Read"; count]);
        for lists in [deny, allow] {
            assert_eq!(require_few_for_agent(&lists).is_ok(), count == PATTERNS_AT_MOST, "{count}");
        }
    }
    let long = |length: usize| tools(&[&*format!("Bash(ls {}*)", "x".repeat(length))]);
    assert!(require_few_for_agent(&long(TEXT_AT_MOST - 16)).is_ok());
    let why = require_few_for_agent(&long(TEXT_AT_MOST)).unwrap_err().reason;
    assert_eq!(
        why,
        "a list of tools of a spawned agent has at most 16 KiB, and this one has 17; write fewer and shorter ones"
    );
    // The same holds if a denylist or the caller's agent takes the tool away.
    let denies = config(None, Some(&["Edit", "Bash(git push *)"]));
    let policy = policy::background("routine x", &denies, &settings().main_tools, &places());
    let definition = reminder(Mode::Background(Background { restrictions: denies, ..Background::default() }), None);
    let limit = DelegationLimit::of(&definition, &policy, &settings());
    limit.may_spawn(Some(&tools(&["Read", "Bash"]))).unwrap();
    assert!(limit.may_spawn(Some(&tools(&["Write"]))).unwrap_err().reason.starts_with("`Write` is more than"));
    let agent = AgentRules {
        name: "quick".into(),
        tools: Some(vec![ToolPattern::parse("Read").unwrap()]),
        disallowed: Vec::new(),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    let limit = DelegationLimit::of(&definition, &policy.as_agent(&agent), &settings());
    limit.may_spawn(Some(&tools(&["Read"]))).unwrap();
    assert!(limit.may_spawn(Some(&tools(&["Bash"]))).unwrap_err().reason.starts_with("`Bash` is more than"));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 10] = [
        "Read",
        "Read(notes/**)",
        "Edit(notes/**)",
        "Bash",
        "Bash(ollim-bot *)",
        "Bash(ollim-bot gmail *)",
        "Bash(ollim-bot gmail unread)",
        "WebFetch",
        "mcp__discord",
        "mcp__discord__ping_user",
    ];

    fn list() -> impl Strategy<Value = Vec<&'static str>> {
        proptest::collection::vec(proptest::sample::select(PATTERNS.as_slice()), 0..4)
    }

    /// Generates an allowlist, a denylist, or neither.
    fn lists() -> impl Strategy<Value = (Option<Vec<&'static str>>, Option<Vec<&'static str>>)> {
        (0..3, list()).prop_map(|(which, list)| match which {
            0 => (None, None),
            1 => (Some(list), None),
            _ => (None, Some(list)),
        })
    }

    fn silence() -> impl Strategy<Value = Option<AskTerms>> {
        proptest::option::of(proptest::sample::select(&[AskDefault::Deny, AskDefault::Allow][..]))
            .prop_map(|default| Some(AskTerms { default: default?, ..AskTerms::default() }))
    }

    proptest! {
        /// The maker may change its job, and the job may do nothing that its maker may not do.
        #[test]
        fn what_is_made_is_within_its_makers_reach(
            own in lists(),
            asked in lists(),
            (own_asks, asked_asks) in (proptest::option::of(list()), proptest::option::of(list())),
            (silence, asked_silence) in (silence(), silence()),
            (isolated, quiet, asked_quiet) in any::<(bool, bool, bool)>(),
            (turns, asked_turns) in (proptest::option::of(1u32..9), proptest::option::of(1u32..9)),
            seconds in proptest::option::of(1u64..4000),
        ) {
            let mut restrictions = config(own.0.as_deref(), own.1.as_deref());
            restrictions.allow_ping = !quiet;
            let asks = |texts: Option<&[&str]>| texts.and_then(self::texts);
            let restrictions = restrictions.asking(asks(own_asks.as_deref()), silence.clone());
            let maker = Background { isolated, restrictions, ..Background::default() };
            let mut definition = reminder(Mode::Background(maker), None);
            (definition.timeout, definition.max_turns) = (None, turns);
            let limit = of(&definition);
            let mut made = draft();
            (made.allowed_tools, made.disallowed_tools) =
                (asked.0.as_deref().and_then(texts), asked.1.as_deref().and_then(texts));
            (made.ask_tools, made.ask) = (asks(asked_asks.as_deref()), asked_silence);
            (made.allow_ping, made.max_turns) = (!asked_quiet, asked_turns);
            made.timeout = seconds.map(Duration::from_secs);
            prop_assume!(limit.narrow(&mut made).is_ok());
            let mut again = made.clone();
            prop_assert_eq!(limit.narrow(&mut again), Ok(()));
            prop_assert_eq!(&again, &made);

            let child = made.restrictions().unwrap();
            let tools = settings().main_tools;
            let silent = child.ask_terms().default == AskDefault::Allow
                && silence.is_none_or(|terms| terms.default == AskDefault::Deny);
            let child = policy::background("child", &child, &tools, &places());
            let parent = &limit.policy;
            for (tool, input) in [
                ("Bash", serde_json::json!({"command": "ollim-bot gmail unread"})),
                ("Bash", serde_json::json!({"command": "ollim-bot cal today"})),
                ("Bash", serde_json::json!({"command": "touch x"})),
                ("Read", serde_json::json!({"file_path": "notes/a"})),
                ("Read", serde_json::json!({"file_path": "b"})),
                ("Edit", serde_json::json!({"file_path": "notes/a"})),
                ("WebFetch", serde_json::json!({"url": "https://docs.rs"})),
                ("mcp__discord__ping_user", serde_json::json!({})),
                ("mcp__discord__report_updates", serde_json::json!({})),
            ] {
                let call = ToolCall { tool: tool.into(), input, cwd: places().work, agent_type: None };
                // A command line is judged by its programs.
                let verdict = |policy: &Policy| match call.input["command"].as_str() {
                    Some(line) => {
                        let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
                        policy.decide_command(&words, None).verdict
                    }
                    None => policy.decide(&call).verdict,
                };
                match verdict(&child) {
                    Verdict::Ask if !silent => prop_assert_ne!(verdict(parent), Verdict::Deny, "{:?}", call),
                    Verdict::Ask | Verdict::Allow => prop_assert_eq!(verdict(parent), Verdict::Allow, "{:?}", call),
                    Verdict::Deny => {}
                }
            }
        }
    }
}
