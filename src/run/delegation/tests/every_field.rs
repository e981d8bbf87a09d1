//! Whatever fields a job has and asks for, what it makes has no more, and what that makes neither.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::definition::Defaults;
use crate::policy::JobNetwork;

/// Values of each field that a run may set, beside the lists of tools. The first ones are narrower, except for lists.
const VALUES: [(&str, &[&str]); 22] = [
    ("urgency", &["low", "normal", "critical"]),
    ("network", &["none", "internet"]),
    ("wake", &["true"]),
    ("approve", &["true"]),
    ("requires", &["[online]", "[power]", "[online, power]"]),
    ("requires_for", &["1h", "9h"]),
    ("hosts", &["[attic]", "[laptop]", "[attic, laptop]"]),
    ("channel", &["phone", "mail"]),
    ("deliver", &["never", "failure", "digest", "always"]),
    ("heartbeat_url", &["https://hc.example.org/1", "https://hc.example.org/2"]),
    ("max_cost_usd", &["0.1", "0.5", "9.0"]),
    ("max_cost_day_usd", &["0.2", "1.0", "9.0"]),
    ("max_turns", &["1", "20"]),
    ("timeout", &["30s", "10m", "9h"]),
    ("gate", &["'test -s inbox'", "'true'"]),
    ("gate_timeout", &["1s", "2m", "9m"]),
    ("max_chain", &["1", "3", "9"]),
    ("remember", &["last", "none"]),
    ("context_from", &["[mail]", "[mail, tea]"]),
    ("expect", &["message", "file notes/today.md"]),
    ("isolated", &["true"]),
    ("allow_ping", &["false"]),
];

const TOOLS: [&str; 5] = ["Read", "Bash(ollim-bot gmail *)", "Write", "mcp__bot__ping_user", "Bash(test *)"];

/// Generates jobs, of agents and commands, each with this share of the fields.
fn jobs(share: f64) -> impl Strategy<Value = Definition> {
    let each = VALUES.map(|(name, values)| {
        proptest::option::weighted(share, proptest::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("{name}: {value}\n")).unwrap_or_default())
            .boxed()
    });
    let command = proptest::sample::select(&["", "", "client: exec\ncommand: test -e x\n"][..]);
    let tools = proptest::option::weighted(share, proptest::sample::subsequence(TOOLS.as_slice(), 0..5));
    let lines = (each.to_vec(), command, tools).prop_map(|(fields, command, tools)| {
        let tools = tools.map(|tools| format!("allowed_tools: {tools:?}\n")).unwrap_or_default();
        format!("background: true\n{command}{tools}{}", fields.concat())
    });
    let read = |lines: String| read(&format!("---\nrun_at: \"2026-11-22T09:00:00Z\"\n{lines}---\nLook.\n"));
    lines.prop_filter_map("the fields do not go together", read)
}

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::UTC, commands: ["gmail"].into(), agents: Default::default() }
}

/// Reads a reminder. `None` if its fields do not go together.
fn read(text: &str) -> Option<Definition> {
    parse(Kind::Reminder, Path::new("reminders/oven.md"), text.as_bytes(), &defaults()).definition
}

/// Whether `made` has at most the amount. No amount is no limit.
fn at_most<T: PartialOrd>(made: Option<T>, own: Option<T>) -> bool {
    own.is_none_or(|own| made.is_some_and(|made| made <= own))
}

/// Returns the fields in which a job that `own` has made exceeds it.
fn beyond(own: &Definition, made: &Definition) -> Vec<&'static str> {
    let (own, made, maker) = (&Draft::from(own), &Draft::from(made), own);
    let is_command = made.client == Some(JobClient::Exec);
    let left = maker.chain().map_or(0, |chain| chain.max - chain.depth);
    let usual = settings().timeout;
    let gate = own.gate_timeout.unwrap_or(Duration::from_secs(30)).max(Duration::from_secs(30));
    let checks = [
        ("urgency", made.urgency <= own.urgency.max(Urgency::Normal)),
        ("network", own.network != JobNetwork::None || made.network == JobNetwork::None),
        ("wake", own.wake || !made.wake),
        ("approve", made.approve || !own.approve),
        ("requires", own.requires.iter().all(|need| made.requires.contains(need))),
        (
            "hosts",
            own.hosts.is_empty() || (!made.hosts.is_empty() && made.hosts.iter().all(|host| own.hosts.contains(host))),
        ),
        ("channel", made.channel == own.channel),
        ("deliver", !is_command || !matches!(made.deliver, Deliver::Always | Deliver::Digest)),
        ("heartbeat_url", made.heartbeat_url.is_none() || made.heartbeat_url == own.heartbeat_url),
        ("max_cost_usd", is_command || at_most(made.max_cost_usd, own.max_cost_usd)),
        ("max_cost_day_usd", is_command || at_most(made.max_cost_day_usd, own.max_cost_day_usd)),
        ("max_turns", is_command || at_most(made.max_turns, own.max_turns)),
        ("timeout", made.timeout.unwrap_or(usual) <= own.timeout.unwrap_or(usual)),
        ("gate_timeout", made.gate_timeout.is_none_or(|asked| asked <= gate)),
        ("max_chain", made.max_chain <= left),
        ("isolated", is_command || made.isolated || !own.isolated),
        ("allow_ping", own.allow_ping || !made.allow_ping),
        ("created_by", made.created_by.as_ref() == Some(&maker.id)),
    ];
    checks.into_iter().filter_map(|(field, holds)| (!holds).then_some(field)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_generation_has_more_than_the_one_before(first in jobs(0.2), second in jobs(0.06), third in jobs(0.06)) {
        let mut maker = first;
        for asked in [second, third] {
            let mut draft = Draft { id: None, ..Draft::from(&asked) };
            let limit = of(&maker);
            if limit.narrow(&mut draft).and_then(|()| limit.silence(&mut draft)).is_err() {
                return Ok(());
            }
            // As the file of what is made says it.
            let text = draft.render(None);
            let made = read(&text).ok_or_else(|| TestCaseError::fail(format!("it cannot be read:\n{text}")))?;
            let beyond = beyond(&maker, &made);
            prop_assert!(beyond.is_empty(), "{beyond:?}\nof {}\nmade\n{text}", Draft::from(&maker).render(None));
            maker = made;
        }
    }
}
