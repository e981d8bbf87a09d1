//! Each part of the preamble in every combination of its inputs, with one snapshot a part.
//!
//! Every combination is rendered twice: among minimal other parts, for the snapshot, and among maximal other parts, where the
//! same text must appear word for word.

use super::*;

/// All inputs of a preamble.
#[derive(Clone, Copy, Debug)]
struct Case {
    late: bool,
    cut_off: bool,
    knows: bool,
    spawned_by: Option<&'static str>,
    tools: &'static [&'static str],
    busy: bool,
    budget: u32,
    mode: UpdateMode,
    nearby_jobs: usize,
    allowed: Option<&'static [&'static str]>,
    denied: Option<&'static [&'static str]>,
    read_only: bool,
    updates: usize,
    left_out: usize,
    chain: Option<(u32, u32)>,
    follow_up: Option<FollowUpBy>,
    skills: usize,
}

const LITTLE: Case = Case {
    late: false,
    cut_off: false,
    knows: false,
    spawned_by: None,
    tools: &[],
    busy: false,
    budget: 5,
    mode: UpdateMode::Blocked,
    nearby_jobs: 0,
    allowed: None,
    denied: None,
    read_only: false,
    updates: 0,
    left_out: 0,
    chain: None,
    follow_up: None,
    skills: 0,
};

const MUCH: Case = Case {
    late: true,
    cut_off: true,
    knows: true,
    tools: &["ping_user", "discord_embed", "report_updates"],
    busy: true,
    budget: 0,
    mode: UpdateMode::Always,
    nearby_jobs: 2,
    allowed: Some(&["Read"]),
    updates: 2,
    left_out: 1,
    chain: Some((0, 2)),
    follow_up: Some(FollowUpBy::Tool),
    skills: 1,
    ..LITTLE
};

fn paragraphs(case: Case) -> Vec<String> {
    let definition = reminder(background(case.mode, case.allowed, case.denied), case.chain);
    let minutes = [(-10, "routine mail", "sorts the mail"), (24 * 60, "reminder tea", "")];
    let nearby_jobs: Vec<NearbyJob> = minutes[..case.nearby_jobs]
        .iter()
        .map(|(minutes, title, description)| NearbyJob {
            at: now() + TimeDelta::minutes(*minutes),
            title: (*title).into(),
            description: (*description).into(),
        })
        .collect();
    let updates: Vec<String> = (0..case.updates).map(|number| format!("routine mail: report {number}")).collect();
    let skill = |number| Skill {
        name: format!("skill-{number}"),
        description: if number == 0 { String::new() } else { "what it is for".into() },
        allowed_tools: Vec::new(),
        body: "Do it well.".into(),
    };
    let skills: Vec<Skill> = (0..case.skills).map(skill).collect();
    let tools = tools(case.tools);
    let restrictions = Restrictions { read_only: case.read_only, ..restrictions_of(&definition) };
    let next = (case.budget < 5).then(|| now() + TimeDelta::minutes(30));
    let text = render(&definition, |prompt| {
        prompt.late = case.late.then_some("[late: was scheduled for 13:00, running now]");
        prompt.cut_off = case.cut_off;
        prompt.updates = &updates;
        prompt.updates_left_out = case.left_out;
        prompt.follow_up = case.follow_up;
        prompt.skills = &skills;
        prompt.fork = Some(ForkFacts {
            tools: &tools,
            restrictions: &restrictions,
            spawned_by: case.spawned_by,
            knows_main_session: case.knows,
            answers_person: false,
            busy: case.busy,
            budget: Budget { left: case.budget, capacity: 5, next },
            nearby_jobs: &nearby_jobs,
            resumes: false,
            restart_reason: None,
            memories: &[],
            gate: None,
        });
    });
    text.split("\n\n").map(String::from).collect()
}

/// Checks one part of the preamble. `before` and `after` are the numbers of `LITTLE`'s other paragraphs before and after it.
#[track_caller]
fn check(part: &str, before: usize, after: usize, cases: &[(String, Change)]) {
    let mut shown = String::new();
    for (title, change) in cases {
        let (mut case, mut among_much) = (LITTLE, MUCH);
        change(&mut case);
        change(&mut among_much);
        let alone = paragraphs(case);
        let text = alone[before..alone.len() - after].join("\n\n");
        let whole = paragraphs(among_much).join("\n\n");
        assert!(whole.contains(&text), "{part}, {title}: other parts change it:\n{whole}");
        let text = if text.is_empty() { "(nothing)" } else { &text };
        shown.push_str(&format!("## {title}\n{text}\n\n"));
    }
    insta::assert_snapshot!(part, shown.trim_end());
}

type Change = Box<dyn Fn(&mut Case)>;

fn case(title: impl Into<String>, change: impl Fn(&mut Case) + 'static) -> (String, Change) {
    (title.into(), Box::new(change))
}

/// The combinations of tools that reach the person.
const REACH: [&[&str]; 4] = [&[], &["ping_user"], &["discord_embed"], &["ping_user", "discord_embed"]];

#[test]
fn head() {
    let cases: Vec<_> = [(false, false), (true, false), (false, true), (true, true)]
        .map(|(late, cut_off)| {
            case(format!("late {late}, cut off {cut_off}"), move |case| (case.late, case.cut_off) = (late, cut_off))
        })
        .into();
    check("head", 0, 3, &cases);
}

#[test]
fn place() {
    let mut cases: Vec<_> = [false, true]
        .map(|knows| case(format!("knows the main session {knows}"), move |case| case.knows = knows))
        .into();
    cases.push(case("spawned", |case| case.spawned_by = Some("routine mail")));
    check("place", 1, 2, &cases);
}

#[test]
fn reaching() {
    let mut cases = Vec::new();
    for tools in REACH {
        for busy in [false, true] {
            for budget in [5, 2, 0] {
                cases.push(case(format!("{tools:?}, busy {busy}, {budget} left"), move |case| {
                    (case.tools, case.busy, case.budget) = (tools, busy, budget);
                }));
            }
        }
    }
    check("reaching", 2, 1, &cases);
}

#[test]
fn reporting() {
    const WITH_REPORTS: [&[&str]; 4] = [
        &["report_updates"],
        &["ping_user", "report_updates"],
        &["discord_embed", "report_updates"],
        &["ping_user", "discord_embed", "report_updates"],
    ];
    let mut cases = Vec::new();
    for mode in [UpdateMode::Always, UpdateMode::OnPing, UpdateMode::Freely, UpdateMode::Blocked] {
        for tools in REACH.into_iter().chain(WITH_REPORTS) {
            cases.push(case(format!("{mode:?}, {tools:?}"), move |case| (case.mode, case.tools) = (mode, tools)));
        }
    }
    check("reporting", 3, 1, &cases);
}

#[test]
fn nearby_jobs() {
    let cases: Vec<_> = [0, 1, 2].map(|count| case(format!("{count}"), move |case| case.nearby_jobs = count)).into();
    check("nearby_jobs", 3, 1, &cases);
}

#[test]
fn restrictions() {
    const LIST: &[&str] = &["Bash(ollim-bot gmail *)", "mcp__discord__ping_user"];
    let cases = [(None, None), (Some(&[][..]), None), (Some(LIST), None), (None, Some(&[][..])), (None, Some(LIST))]
        .map(|(allowed, denied)| {
            case(format!("allowed {allowed:?}, disallowed {denied:?}"), move |case| {
                (case.allowed, case.denied) = (allowed, denied);
            })
        });
    let mut cases = Vec::from(cases);
    cases.push(case("read-only", |case| (case.allowed, case.denied, case.read_only) = (None, Some(LIST), true)));
    check("restrictions", 3, 1, &cases);
}

#[test]
fn updates() {
    let cases = [(0, 0), (1, 0), (2, 0), (2, 3)].map(|(updates, left_out)| {
        case(format!("{updates} shown, {left_out} left out"), move |case| {
            (case.updates, case.left_out) = (updates, left_out);
        })
    });
    check("updates", 3, 1, &cases);
}

#[test]
fn chain() {
    let mut cases = Vec::new();
    for chain in [None, Some((0, 2)), Some((1, 2)), Some((2, 2))] {
        for follow_up in [None, Some(FollowUpBy::Tool), Some(FollowUpBy::Command)] {
            cases.push(case(format!("{chain:?}, by {follow_up:?}"), move |case| {
                (case.chain, case.follow_up) = (chain, follow_up);
            }));
        }
    }
    check("chain", 3, 1, &cases);
}

#[test]
fn skills() {
    let cases = [0, 1, 2].map(|count| case(format!("{count}"), move |case| case.skills = count));
    check("skills", 3, 1, &cases);
}

#[test]
fn tags() {
    let routine = Trigger::Routine { recurs: "0 8 * * *".into(), on_overlap: crate::definition::OnOverlap::default() };
    let at_hand = reminder(Mode::Foreground, None);
    let check = |trigger: &Trigger, mode: Mode, expect: &str| {
        let definition = Definition { trigger: trigger.clone(), mode, ..at_hand.clone() };
        assert_eq!(render(&definition, |_| ()).lines().next(), Some(expect));
    };
    check(&routine, Mode::Foreground, "[routine:oven]");
    check(&routine, Mode::Background(Background::default()), "[routine-bg:oven]");
    check(&at_hand.trigger, Mode::Foreground, "[reminder:oven]");
    check(&at_hand.trigger, Mode::Background(Background::default()), "[reminder-bg:oven]");
}
