//! Rendered drafts read back unchanged.

use super::*;
use crate::definition::{Defaults, OnMissed, OnOverlap, Thinking, parse};
use crate::policy::{AskDefault, AskTerms, ToolPattern, UpdateMode};
use chrono::TimeZone as _;
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::Europe::Vienna, commands: ["gmail"].into(), agents: Default::default() }
}

fn file(draft: &Draft) -> &'static Path {
    Path::new(if draft.kind == Kind::Routine { "routines/x.md" } else { "reminders/x.md" })
}

/// A list that no file can hold is refused. Without the list, the job would have all tools.
#[test]
fn a_value_that_cannot_be_written_is_refused() {
    let field = FIELDS.iter().find(|field| field.name == "allowed_tools").unwrap();
    for list in [vec!["Read".to_owned(); 2_000], vec![format!("Bash(ls {})", "a".repeat(100_000))]] {
        let mut draft = Draft::empty(Kind::Reminder, "Look.".into());
        draft.background = true;
        let fault = draft.set(field, &FieldValue::Texts(list)).unwrap_err();
        assert!(fault.message.contains("allowed_tools"), "{}", fault.message);
        assert_eq!(draft.allowed_tools, None);
    }
}

#[test]
fn only_what_is_not_the_default_is_written() {
    let id = DefinitionId::new("1f0c9a2b");
    let draft = Draft::new(When::Cron("*/5 * * * *".into()), "Look at the mail.");
    insta::assert_snapshot!(draft.render(Some(&id)), @"
    ---
    id: 1f0c9a2b
    cron: '*/5 * * * *'
    ---
    Look at the mail.
    ");
    let mut draft = Draft::new(
        When::At(FixedOffset::east_opt(3600).unwrap().with_ymd_and_hms(2026, 11, 22, 9, 0, 0).unwrap()),
        "Is it done?\n",
    );
    draft.description = "Check: the oven".into();
    draft.timezone = Some(chrono_tz::America::New_York);
    draft.enabled = false;
    draft.background = true;
    draft.isolated = true;
    draft.model = Some("haiku".into());
    draft.thinking = Thinking::Disabled;
    draft.allowed_tools = Some(["Bash(ollim-bot gmail *)", "*"].map(|text| ToolPattern::parse(text).unwrap()).into());
    draft.ask_tools = Some(vec![ToolPattern::parse("Bash(git push *)").unwrap()]);
    draft.ask = Some(AskTerms { channel: Some("phone".into()), ..AskTerms::default() });
    draft.update_main_session = UpdateMode::Blocked;
    draft.allow_ping = false;
    draft.skills = vec!["mail".into(), "1".into()];
    draft.timeout = Some(Duration::from_secs(5400));
    draft.max_turns = Some(20);
    draft.max_cost_usd = Some(0.5);
    draft.on_missed = OnMissed::Skip;
    draft.retry = Some(2);
    draft.max_chain = 3;
    draft.chain_depth = 1;
    draft.chain_parent = Some(DefinitionId::new("007"));
    insta::assert_snapshot!(draft.render(Some(&id)), @"
    ---
    id: 1f0c9a2b
    description: 'Check: the oven'
    run_at: '2026-11-22T09:00:00+01:00'
    timezone: America/New_York
    enabled: false
    background: true
    isolated: true
    model: haiku
    thinking: false
    allowed_tools:
      - Bash(ollim-bot gmail *)
      - '*'
    ask_tools:
      - Bash(git push *)
    ask: { deadline: 10m, default: deny, channel: phone }
    update_main_session: blocked
    allow_ping: false
    skills:
      - mail
      - '1'
    timeout: 1h30m
    max_turns: 20
    max_cost_usd: 0.5
    on_missed: skip
    retry: 2
    max_chain: 3
    chain_depth: 1
    chain_parent: '007'
    ---
    Is it done?
    ");
    draft.allowed_tools = None;
    draft.disallowed_tools = Some(vec![]);
    assert!(draft.render(Some(&id)).contains("\ndisallowed_tools: []\n"));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,30}",
        "[-0-9a-fxe.:+]{1,12}",
        any::<String>(),
        Just("true".to_owned()),
        Just("---".to_owned()),
        Just("# not a comment".to_owned()),
        Just("a: b".to_owned()),
    ]
}

fn pattern() -> impl Strategy<Value = ToolPattern> {
    prop_oneof![
        Just("Read".to_owned()),
        Just("mcp__discord__*".to_owned()),
        "[a-z #:'\"*&!|>%@`{}\\[\\],-]{1,20}".prop_map(|inner| format!("Bash({})", inner.trim())),
    ]
    .prop_filter_map("a pattern", |text| ToolPattern::parse(&text).ok().filter(|pattern| pattern.to_string() == *text))
}

prop_compose! {
    fn background()(
        isolated in any::<bool>(),
        model in proptest::option::of("[a-z][-a-z0-9.\\[\\]]{0,12}"),
        thinking in prop_oneof![Just(Thinking::Adaptive), Just(Thinking::Disabled), (1u32..=1_000_000).prop_map(Thinking::Budget)],
        list in proptest::collection::vec(pattern(), 0..4),
        which in 0..3,
        update in prop_oneof![Just(UpdateMode::Always), Just(UpdateMode::OnPing), Just(UpdateMode::Freely), Just(UpdateMode::Blocked)],
        allow_ping in any::<bool>(),
        ask_tools in proptest::option::of(proptest::collection::vec(pattern(), 0..3)),
        ask in proptest::option::of((1u64..=86_399, 0u32..1_000_000_000, any::<bool>(), proptest::option::of("[-_0-9a-z]{1,12}"))),
    ) -> Draft {
        let mut draft = Draft::new(When::Cron("@daily".into()), "x");
        draft.background = true;
        draft.isolated = isolated;
        draft.model = model;
        draft.thinking = thinking;
        draft.allowed_tools = (which == 1).then(|| list.clone());
        draft.disallowed_tools = (which == 2).then_some(list);
        draft.update_main_session = update;
        draft.allow_ping = allow_ping;
        draft.ask_tools = ask_tools;
        draft.ask = ask.map(|(seconds, nanos, allow, channel)| AskTerms {
            deadline: Duration::new(seconds, nanos),
            default: if allow { AskDefault::Allow } else { AskDefault::Deny },
            channel,
        });
        draft
    }
}

prop_compose! {
    fn draft()(
        base in prop_oneof![Just(Draft::new(When::Cron("@daily".into()), "x")), background()],
        seconds in proptest::option::of(0i64..4_000_000_000),
        nanos in prop_oneof![Just(0u32), 0u32..1_000_000_000],
        offset in -12 * 60..14 * 60,
        body in "[ -~äé🍵\n]{0,60}[a-z🍵]\n{0,2}",
        id in "[a-z0-9][-a-z0-9 é]{0,20}[a-z0-9]",
        description in proptest::option::of(text()),
        zone in proptest::option::of(Just(chrono_tz::America::New_York)),
        (enabled, skills) in (any::<bool>(), proptest::sample::subsequence(vec!["mail", "notes", "1"], 0..=3)),
        limits in (proptest::option::of((1u64..300_000_000, 0u32..1_000_000_000)), proptest::option::of(1u32..=1_000_000), proptest::option::of(1e-6f64..1e9)),
        missed in prop_oneof![Just(OnMissed::All), Just(OnMissed::Latest), Just(OnMissed::Skip)],
        overlap in prop_oneof![Just(OnOverlap::Skip), Just(OnOverlap::Queue), Just(OnOverlap::Cancel)],
        retry in proptest::option::of(0u32..=1_000_000),
        chain in (0u32..5, 0u32..5, proptest::option::of("[0-9a-f]{8}")),
    ) -> Draft {
        let mut draft = base;
        draft.body = body;
        draft.id = Some(DefinitionId::new(id));
        draft.description = description.unwrap_or_default();
        draft.timezone = zone;
        draft.enabled = enabled;
        draft.skills = skills.into_iter().map(str::to_owned).collect();
        draft.timeout = limits.0.map(|(seconds, nanos)| Duration::new(seconds, nanos));
        draft.max_turns = limits.1;
        draft.max_cost_usd = limits.2;
        draft.on_missed = missed;
        draft.retry = retry;
        match seconds {
            None => draft.on_overlap = overlap,
            Some(seconds) => {
                let offset = FixedOffset::east_opt(offset * 60).unwrap();
                (draft.kind, draft.cron) = (Kind::Reminder, None);
                draft.run_at = Some(DateTime::from_timestamp(seconds, nanos).unwrap().with_timezone(&offset));
                draft.max_chain = chain.0;
                draft.chain_depth = chain.1.min(chain.0);
                draft.chain_parent = chain.2.filter(|_| chain.0 > 0).map(DefinitionId::new);
            }
        }
        draft
    }
}

proptest! {
    /// Every field reads back unchanged, and a definition that was read renders to the same text.
    #[test]
    fn what_is_written_reads_back(draft in draft()) {
        let id = draft.id.clone().unwrap();
        let text = draft.render(Some(&id));
        let parsed = parse(draft.kind, file(&draft), text.as_bytes(), &defaults());
        let Some(definition) = parsed.definition else {
            return Err(TestCaseError::fail(format!("{text}\n{:?}", parsed.problems)));
        };
        let mut back = Draft::from(&definition);
        let mut expected = draft;
        // A description is one line. A body has no leading blank lines.
        expected.description = definition_line(&expected.description);
        expected.body = expected.body.trim_start_matches('\n').to_owned();
        if expected.max_chain > 0 && expected.chain_parent.is_none() {
            expected.chain_parent = Some(id.clone());
        }
        prop_assert_eq!(&back, &expected, "{}", text);
        back.id = None;
        prop_assert_eq!(back.render(Some(&id)), Draft::from(&definition).render(Some(&id)));
        let again = parse(definition.kind(), file(&expected), back.render(Some(&id)).as_bytes(), &defaults());
        prop_assert_eq!(again.definition, Some(definition));
    }
}

fn definition_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}
