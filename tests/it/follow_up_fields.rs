//! Property: the file of a reminder's next check inherits everything inheritable from its parent's file, for any such file. The
//! command line that adds the next check produces the same file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use ollim_bot::app::Environment;
use ollim_bot::cli::args::Cli;
use ollim_bot::cli::output::Output;
use ollim_bot::definition::{self, Chain, Defaults, Definition, DefinitionId, Draft, Kind, Thinking, Trigger, When};
use ollim_bot::definition::{OnMissed, parse};
use ollim_bot::home::Home;
use ollim_bot::policy::{AskDefault, AskTerms, ToolPattern, UpdateMode};
use ollim_bot::run::chain::FollowUp;
use proptest::prelude::*;

use crate::support::bot::now;
use crate::support::flags::reminder_add;

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::UTC, commands: ["gmail"].into(), agents: Default::default() }
}

fn pattern() -> impl Strategy<Value = ToolPattern> {
    prop_oneof![
        Just("Read".to_owned()),
        Just("*".to_owned()),
        Just("mcp__discord__*".to_owned()),
        Just("Read(notes/**)".to_owned()),
        "Bash\\((ollim-bot )?[-a-z #:'\"&|>%@`,=*]{1,20}\\)",
    ]
    .prop_filter_map("a pattern", |text| ToolPattern::parse(&text).ok())
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,30}", "--?[a-z-]{1,12}(=[0-9]{1,3})?", "[äé🍵#:'\"\\\\ a-z]{1,12}", any::<String>()]
}

/// Generates the tools that need approval, and the terms of asking.
fn asking() -> impl Strategy<Value = (Option<Vec<ToolPattern>>, Option<AskTerms>)> {
    let default = prop_oneof![Just(AskDefault::Deny), Just(AskDefault::Allow)];
    let channel = proptest::option::of("[-_0-9a-z]{1,12}");
    let terms =
        ((1u64..86_400, 0u32..1_000_000_000), default, channel).prop_map(|((seconds, nanos), default, channel)| {
            AskTerms { deadline: Duration::new(seconds, nanos), default, channel }
        });
    (proptest::option::of(proptest::collection::vec(pattern(), 0..3)), proptest::option::of(terms))
}

prop_compose! {
    fn background()(
        isolated in any::<bool>(),
        model in proptest::option::of("[a-z][-a-z0-9.]{0,12}"),
        thinking in prop_oneof![Just(Thinking::Adaptive), Just(Thinking::Disabled), (1u32..=1_000_000).prop_map(Thinking::Budget)],
        list in proptest::collection::vec(pattern(), 0..4),
        which in 0..3,
        update in prop_oneof![Just(UpdateMode::Always), Just(UpdateMode::OnPing), Just(UpdateMode::Freely), Just(UpdateMode::Blocked)],
        ask in asking(),
        (allow_ping, agent) in (any::<bool>(), proptest::option::of(prop_oneof![Just("Plan".to_owned()), Just("general-purpose".to_owned())])),
    ) -> Draft {
        let mut draft = foreground();
        draft.background = true;
        draft.isolated = isolated;
        draft.model = model;
        draft.thinking = thinking;
        draft.allowed_tools = (which == 1).then(|| list.clone());
        draft.disallowed_tools = (which == 2).then_some(list);
        draft.update_main_session = update;
        draft.allow_ping = allow_ping;
        draft.agent = agent;
        (draft.ask_tools, draft.ask) = ask;
        draft
    }
}

fn foreground() -> Draft {
    Draft::new(When::At(chrono::DateTime::UNIX_EPOCH.fixed_offset()), "x")
}

prop_compose! {
    /// Generates a valid reminder's file in a chain, before the chain's last check.
    fn reminder()(
        base in prop_oneof![1 => Just(foreground()), 4 => background()],
        body in prop_oneof!["[ -~äé🍵\n]{0,60}[a-z🍵]\n{0,2}", "(---\n|--chain-depth=0\n| - x\n){0,3}[a-z]", line()],
        description in proptest::option::of(line()),
        zone in proptest::option::of(prop_oneof![Just(chrono_tz::America::New_York), Just(chrono_tz::Asia::Kolkata)]),
        limits in (
            proptest::option::of((1u64..300_000_000, prop_oneof![3 => Just(0u32), 1 => 0u32..1_000_000_000])),
            proptest::option::of(1u32..=1_000_000),
            proptest::option::of(prop_oneof![1e-6f64..1e9, Just(f64::MIN_POSITIVE), Just(f64::MAX)]),
        ),
        missed in prop_oneof![Just(OnMissed::All), Just(OnMissed::Latest), Just(OnMissed::Skip)],
        retry in proptest::option::of(0u32..=1_000_000),
        (max, depth) in (1u32..=1_000_000, any::<u32>()).prop_map(|(max, depth)| (max, depth % max)),
        (parent, creator) in (proptest::option::of("[-0-9a-zé_.]{1,12}"), proptest::option::of("[-0-9a-zé_.]{1,12}")),
        skills in proptest::sample::subsequence(&SKILLS[..], 0..=SKILLS.len()).prop_shuffle(),
    ) -> Option<Definition> {
        let mut draft = base;
        draft.body = body;
        draft.description = description.unwrap_or_default();
        draft.timezone = zone;
        draft.timeout = limits.0.map(|(seconds, nanos)| Duration::new(seconds, nanos));
        draft.max_turns = limits.1;
        draft.max_cost_usd = limits.2;
        draft.on_missed = missed;
        draft.retry = retry;
        draft.skills = skills.into_iter().map(String::from).collect();
        (draft.max_chain, draft.chain_depth) = (max, depth);
        draft.chain_parent = parent.map(DefinitionId::new);
        draft.created_by = creator.map(DefinitionId::new);
        let text = draft.render(Some(&DefinitionId::new("first")));
        // An invalid file gives `None`, since it would not fire.
        parse(Kind::Reminder, Path::new("reminders/first.md"), text.as_bytes(), &defaults()).definition
    }
}

/// The existing skills.
const SKILLS: [&str; 3] = ["mail", "2nd.notes", "a-b_c"];

/// A separate data folder with the skills.
struct Fixture {
    _folder: tempfile::TempDir,
    home: Home,
}

fn fixture() -> Fixture {
    let folder = tempfile::TempDir::with_prefix("ollim-checks-").unwrap();
    let home = Home::new(folder.path().canonicalize().unwrap());
    std::fs::create_dir(home.reminders()).unwrap();
    for name in SKILLS {
        let folder = home.root().join("skills").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: x\n---\nDo it.\n")).unwrap();
    }
    Fixture { _folder: folder, home }
}

impl Fixture {
    /// Returns the only reminder.
    fn only(&self) -> Result<Definition, TestCaseError> {
        let loaded = definition::load(&self.home, &defaults()).unwrap();
        let definitions: Vec<_> = loaded.definitions.into_values().collect();
        match &definitions[..] {
            [one] => Ok(Definition::clone(one)),
            _ => Err(TestCaseError::fail(format!("{definitions:#?} {:#?}", loaded.problems))),
        }
    }
}

/// Returns a definition with its identity and its time neutralized.
fn inherited(definition: Definition) -> Definition {
    let trigger = match definition.trigger {
        Trigger::Reminder { run_at: _, chain } => {
            Trigger::Reminder { run_at: chrono::DateTime::UNIX_EPOCH.fixed_offset(), chain }
        }
        other => other,
    };
    Definition { id: DefinitionId::new("x"), file: "x".into(), trigger, ..definition }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_next_link_says_what_this_one_says(
        parent in reminder().prop_filter_map("a valid reminder", |reminder| reminder),
        seconds in 1u64..30_000_000,
    ) {
        let delay = Duration::from_secs(seconds);
        let follow_up = FollowUp::of(&parent).expect("it is not the last check");
        let (typed, by_command) = (fixture(), fixture());
        let at = now() + delay;
        let draft = follow_up.at(at.fixed_offset());
        let written = definition::create(&typed.home, &draft, |_| false, &defaults());
        written.map_err(|error| TestCaseError::fail(format!("{error}\n{parent:#?}")))?;
        let child = inherited(typed.only()?);
        let Trigger::Reminder { chain: Some(of_parent), run_at } = parent.trigger.clone() else {
            return Err(TestCaseError::fail("it is a check of a chain"));
        };
        let of_child = Chain { depth: of_parent.depth + 1, ..of_parent };
        // Compares all present and future fields.
        let expect = Definition { trigger: Trigger::Reminder { run_at, chain: Some(of_child) }, ..parent };
        prop_assert_eq!(&child, &inherited(expect));

        // On a command line, `-` stands for standard input, so this text cannot be given there.
        if draft.body == "-" {
            return Ok(());
        }
        let words = std::iter::once("ollim-bot".to_owned()).chain(reminder_add(&draft, delay));
        let cli = Cli::try_parse_from(words).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let app = ollim_bot::cli::for_person(by_command.home.clone(), Environment::default());
        let made = ollim_bot::cli::execute(cli, by_command.home.root(), &app, &mut Output::default());
        made.map_err(|error| TestCaseError::fail(format!("{error}\n{draft:#?}")))?;
        prop_assert_eq!(inherited(by_command.only()?), child);
    }
}

/// The property is not vacuous: each condition below is true of some generated reminders and false of others.
#[test]
fn the_reminders_of_the_property_differ_in_every_field() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    let strategy = reminder();
    let mut valid = 0;
    for _ in 0..400 {
        let Some(one) = strategy.new_tree(&mut runner).unwrap().current() else { continue };
        valid += 1;
        let background = one.background();
        let lists = background.map(|background| &background.restrictions);
        for (what, so) in [
            ("description", !one.description.is_empty()),
            ("zone", one.own_zone.is_some()),
            ("background", background.is_some()),
            ("isolated", background.is_some_and(|b| b.isolated)),
            ("model", background.is_some_and(|b| b.model.is_some())),
            ("thinking", background.is_some_and(|b| b.thinking == Thinking::Disabled)),
            ("allowed", lists.is_some_and(|l| l.allowed_tools().is_some_and(|list| !list.is_empty()))),
            ("allowed empty", lists.is_some_and(|l| l.allowed_tools().is_some_and(<[_]>::is_empty))),
            ("denied", lists.is_some_and(|l| l.disallowed_tools().is_some_and(|list| !list.is_empty()))),
            ("denied empty", lists.is_some_and(|l| l.disallowed_tools().is_some_and(<[_]>::is_empty))),
            ("asked", lists.is_some_and(|l| !l.asked_tools().is_empty())),
            ("asks so", lists.is_some_and(|l| l.ask.is_some())),
            ("no ping", lists.is_some_and(|l| !l.allow_ping)),
            ("updates", lists.is_some_and(|l| l.update_main_session == UpdateMode::Always)),
            ("timeout", one.timeout.is_some()),
            ("turns", one.max_turns.is_some()),
            ("cost", one.max_cost_usd.is_some()),
            ("missed", one.on_missed == OnMissed::Skip),
            ("retry", one.retry.is_some()),
            ("skills", !one.skills.is_empty()),
            ("agent", background.is_some_and(|b| b.agent.is_some())),
            ("created by", one.created_by.is_some()),
        ] {
            seen.entry(what).or_default()[usize::from(so)] += 1;
        }
    }
    assert!(valid > 100, "{valid}");
    assert!(seen.values().all(|[without, with]| *without > 5 && *with > 5), "{seen:#?}");
}
