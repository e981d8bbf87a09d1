//! The values that each reader accepts, and its messages for all others.

use super::*;
use crate::policy::UpdateMode;

/// Returns the result of `read` for `key: <yaml>`, as text.
fn check<T: std::fmt::Debug>(yaml: &str, read: impl Fn(&Value) -> Result<T, Fault>) -> String {
    let block = Block::of_file(&format!("key: {yaml}\n"));
    let entries = block.entries().unwrap();
    let value = Value { name: "key", node: &entries[0].value, block: &block, path: &[0], zone: ZONE };
    match read(&value) {
        Ok(value) => format!("{value:?}"),
        Err(Fault { message, hint, item }) => {
            let item = item.map(|n| format!(" [item {n}]")).unwrap_or_default();
            format!("{message}{item} -- {}", hint.unwrap_or_default())
        }
    }
}

/// The zone of local times.
const ZONE: Tz = chrono_tz::America::New_York;

fn table<T: std::fmt::Debug>(yamls: &[&str], read: impl Fn(&Value) -> Result<T, Fault>) -> String {
    yamls.iter().map(|yaml| format!("{yaml:24} {}\n", check(yaml, &read))).collect()
}

#[test]
fn texts_keep_their_letters() {
    insta::assert_snapshot!(table(&["abc", "12345678", "1234e567", "007", "0x1F", "True", "'a b'", "1_000", "[a]", "{a: b}", "~", "''"], |v| v.text()), @r#"
    abc                      "abc"
    12345678                 "12345678"
    1234e567                 "1234e567"
    007                      "007"
    0x1F                     "0x1F"
    True                     "True"
    'a b'                    "a b"
    1_000                    "1_000"
    [a]                      `key` must be text, found a list -- write `key: …` on one line
    {a: b}                   `key` must be text, found a mapping -- write `key: …` on one line
    ~                        `key` has no value -- give it a value, or remove the line
    ''                       ""
    "#);
}

#[test]
fn flags() {
    insta::assert_snapshot!(table(&["true", "False", "yes", "OFF", "'true'", "maybe", "1", "~", "[]"], |v| v.flag()), @"
    true                     true
    False                    false
    yes                      true
    OFF                      false
    'true'                   true
    maybe                    `key` must be `true` or `false`, found `maybe` -- write `key: true` or `key: false`
    1                        `key` must be `true` or `false`, found `1` -- write `key: true` or `key: false`
    ~                        `key` has no value -- give it a value, or remove the line
    []                       `key` must be `true` or `false`, found a list -- write `key: true` or `key: false`
    ");
}

#[test]
fn counts_are_never_wrapped_or_rounded() {
    insta::assert_snapshot!(table(&["0", "3", "-1", "1000000", "4294967295", "4294967296", "99999999999999999999999999999999999999999999", "1.5", "1e3", "'3'", "many", "~", "0x10"], |v| v.count(0)), @"
    0                        0
    3                        3
    -1                       `key` cannot be negative, found -1 -- write `key: 0` or more
    1000000                  1000000
    4294967295               `key` is too large: 4294967295 -- write `key: 1000000` or less
    4294967296               `key` is too large: 4294967296 -- write `key: 1000000` or less
    99999999999999999999999999999999999999999999 `key` must be a whole number, found `99999999999999999999999999999999999999999999` -- write `key: 0` or more
    1.5                      `key` must be a whole number, found `1.5` -- write `key: 0` or more
    1e3                      `key` must be a whole number, found `1e3` -- write `key: 0` or more
    '3'                      `key` must be a whole number, found `3` -- write `key: 0` or more
    many                     `key` must be a whole number, found `many` -- write `key: 0` or more
    ~                        `key` has no value -- give it a value, or remove the line
    0x10                     16
    ");
}

#[test]
fn dollars() {
    insta::assert_snapshot!(table(&["0.5", "2", "0", "-1", ".inf", ".nan", "'1'", "$1"], |v| v.dollars()), @"
    0.5                      0.5
    2                        2.0
    0                        `key` must be an amount of dollars above zero, found `0` -- write `key: 0.50`
    -1                       `key` cannot be negative, found -1 -- write `key: 0.50`
    .inf                     `key` must be an amount of dollars above zero, found `.inf` -- write `key: 0.50`
    .nan                     `key` must be an amount of dollars above zero, found `.nan` -- write `key: 0.50`
    '1'                      `key` must be an amount of dollars above zero, found `1` -- write `key: 0.50`
    $1                       `key` must be an amount of dollars above zero, found `$1` -- write `key: 0.50`
    ");
}

#[test]
fn spans() {
    insta::assert_snapshot!(table(&["10m", "90s", "1h30m", "1h 30m", "600", "1.5", "0s", "10", "-5m", "20 years", "999999999999999999y", "soon", "[]"], |v| v.span(Duration::from_secs(1))), @"
    10m                      600s
    90s                      90s
    1h30m                    5400s
    1h 30m                   5400s
    600                      `key` needs a unit, found `600` -- write `key: 600s` or `key: 600m`
    1.5                      `key` needs a unit, found `1.5` -- write `key: 1.5s` or `key: 1.5m`
    0s                       `key` must be at least 1s, found `0s` -- write `key: 10m`, `90s` or `1h30m`
    10                       `key` needs a unit, found `10` -- write `key: 10s` or `key: 10m`
    -5m                      `key` must be a span of time, found `-5m` -- write `key: 10m`, `90s` or `1h30m`
    20 years                 `key` is longer than ten years -- write `key: 10m`, `90s` or `1h30m`
    999999999999999999y      `key` must be a span of time, found `999999999999999999y` -- write `key: 10m`, `90s` or `1h30m`
    soon                     `key` must be a span of time, found `soon` -- write `key: 10m`, `90s` or `1h30m`
    []                       `key` must be a span of time, found a list -- write `key: 10m`, `90s` or `1h30m`
    ");
    // What the hint proposes is long enough.
    insta::assert_snapshot!(table(&["90d", "12h", "1h30m", "10m"], |v| v.span(Duration::from_secs(60 * 60))), @"
    90d                      7776000s
    12h                      43200s
    1h30m                    5400s
    10m                      `key` must be at least 1h, found `10m` -- write `key: 90d`, `12h` or `1h30m`
    ");
}

#[test]
fn thinking() {
    insta::assert_snapshot!(table(&["true", "false", "8000", "0", "-1", "much"], |v| v.thinking()), @"
    true                     Adaptive
    false                    Disabled
    8000                     Budget(8000)
    0                        `key` must be at least 1, found 0 -- write `key: 1` or more
    -1                       `key` cannot be negative, found -1 -- write `key: 1` or more
    much                     `key` must be `true`, `false` or a number of tokens, found `much` -- write `key: true`, `key: false` or `key: 8000`
    ");
}

#[test]
fn models_cannot_look_like_options() {
    insta::assert_snapshot!(table(&["haiku", "claude-sonnet-4-5", "'opus[1m]'", "--dangerously-skip-permissions", "'a b'", "''"], |v| v.model()), @r#"
    haiku                    "haiku"
    claude-sonnet-4-5        "claude-sonnet-4-5"
    'opus[1m]'               "opus[1m]"
    --dangerously-skip-permissions `key` must be the name of a model, found `--dangerously-skip-permissions` -- for example `haiku`, `sonnet` or `claude-sonnet-4-5`
    'a b'                    `key` must be the name of a model, found `a b` -- for example `haiku`, `sonnet` or `claude-sonnet-4-5`
    ''                       `key` must be the name of a model, found `` -- for example `haiku`, `sonnet` or `claude-sonnet-4-5`
    "#);
}

#[test]
fn zones() {
    insta::assert_snapshot!(table(&["Europe/Vienna", "UTC", "europe/vienna", "Vienna", "Europe/Wien", "New York", "Mars/Olympus", "5"], |v| v.zone()), @"
    Europe/Vienna            Europe/Vienna
    UTC                      UTC
    europe/vienna            unknown time zone `europe/vienna` -- did you mean `Europe/Vienna`?
    Vienna                   unknown time zone `Vienna` -- did you mean `Europe/Vienna`?
    Europe/Wien              unknown time zone `Europe/Wien` -- did you mean `Europe/Kiev`?
    New York                 unknown time zone `New York` -- did you mean `America/New_York`?
    Mars/Olympus             unknown time zone `Mars/Olympus` -- write an IANA name, for example `Europe/Vienna`
    5                        unknown time zone `5` -- write an IANA name, for example `Europe/Vienna`
    ");
}

#[test]
fn instants() {
    insta::assert_snapshot!(table(&[
        "2026-11-22T09:00:00+01:00",
        "2026-11-22 09:00:00Z",
        "2026-11-22T09:00:00.250000-05:00",
        "2026-11-22T09:00+01:00",
        "2026-11-22T09:00:00",
        "2026-11-22 09:00",
        "2026-07-22T09:00",
        "2026-03-08T02:30:00",
        "2026-11-01T01:30:00",
        "2026-11-01T01:30:00-05:00",
        "2026-11-22",
        "2026-02-30T09:00:00Z",
        "2026-11-22T25:00:00Z",
        "tomorrow",
        "1234",
    ], |v| v.instant()), @"
    2026-11-22T09:00:00+01:00 2026-11-22T09:00:00+01:00
    2026-11-22 09:00:00Z     2026-11-22T09:00:00+00:00
    2026-11-22T09:00:00.250000-05:00 2026-11-22T09:00:00.250-05:00
    2026-11-22T09:00+01:00   2026-11-22T09:00:00+01:00
    2026-11-22T09:00:00      2026-11-22T09:00:00-05:00
    2026-11-22 09:00         2026-11-22T09:00:00-05:00
    2026-07-22T09:00         2026-07-22T09:00:00-04:00
    2026-03-08T02:30:00      `key` does not exist: the clocks in America/New_York skip `2026-03-08T02:30:00` -- write a time with an offset, or one before or after the change
    2026-11-01T01:30:00      `key` happens twice: the clocks in America/New_York go back over `2026-11-01T01:30:00` -- write `2026-11-01T01:30:00-04:00` or `2026-11-01T01:30:00-05:00`
    2026-11-01T01:30:00-05:00 2026-11-01T01:30:00-05:00
    2026-11-22               `key` is not a time: `2026-11-22` -- for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    2026-02-30T09:00:00Z     `key` is not a time: `2026-02-30T09:00:00Z` -- for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    2026-11-22T25:00:00Z     `key` is not a time: `2026-11-22T25:00:00Z` -- for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    tomorrow                 `key` is not a time: `tomorrow` -- for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    1234                     `key` is not a time: `1234` -- for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone
    ");
}

#[test]
fn words() {
    insta::assert_snapshot!(table(&["always", "on-ping", "on_ping", "alway", "never", "true", "[]"], |v| v.one_of::<UpdateMode>()), @"
    always                   Always
    on-ping                  OnPing
    on_ping                  OnPing
    alway                    `key` must be one of `always`, `on_ping`, `freely`, `blocked`, found `alway` -- did you mean `always`?
    never                    `key` must be one of `always`, `on_ping`, `freely`, `blocked`, found `never` -- write one of `always`, `on_ping`, `freely`, `blocked`
    true                     `key` must be one of `always`, `on_ping`, `freely`, `blocked`, found `true` -- write one of `always`, `on_ping`, `freely`, `blocked`
    []                       `key` must be one of `always`, `on_ping`, `freely`, `blocked`, found a list -- write one of `always`, `on_ping`, `freely`, `blocked`
    ");
}

#[test]
fn pattern_lists() {
    insta::assert_snapshot!(table(&[
        "[]",
        "[Read, 'Bash(git log *)']",
        "Read",
        "~",
        "[Read, '']",
        "[Read, 5]",
        "[Bash(a, b)]",
        "[{Bash: x}]",
        "['Bash(git log']",
    ], |v| v.patterns().map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())), @r#"
    []                       []
    [Read, 'Bash(git log *)'] ["Read", "Bash(git log *)"]
    Read                     `key` must be a list, found `Read` -- write `key:` and below it one `- …` a line
    ~                        `key` has no value -- write `key: []` for the empty list, or remove the line
    [Read, '']               `key`: empty tool pattern [item 1] -- remove the item: an empty list is written `[]`
    [Read, 5]                each item of `key` must be text, found a number [item 1] -- quote it: `- '…'`
    [Bash(a, b)]             `key`: unbalanced parentheses in tool pattern `Bash(a` [item 0] -- write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`
    [{Bash: x}]              each item of `key` must be text, found a mapping [item 0] -- quote it: `- '…'`
    ['Bash(git log']         `key`: unbalanced parentheses in tool pattern `Bash(git log` [item 0] -- write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`
    "#);
}

#[test]
fn how_the_person_is_asked() {
    let yamls = [
        "{ deadline: 10m }",
        "{ default: allow, channel: phone }",
        "'deadline: 90s, default: deny'",
        "deadline=1h",
        "'{ deadline: 5m, channel: \"phone\" }'",
        "{}",
        "{ deadline: 10 }",
        "{ deadline: 500ms }",
        "{ deadline: 25h }",
        "{ default: maybe }",
        "{ channel: 'a b' }",
        "{ dedline: 10m }",
        "10m",
        "[a]",
        "~",
    ];
    insta::assert_snapshot!(table(&yamls, |v| v.ask_terms()), @r#"
    { deadline: 10m }        AskTerms { deadline: 600s, default: Deny, channel: None }
    { default: allow, channel: phone } AskTerms { deadline: 600s, default: Allow, channel: Some("phone") }
    'deadline: 90s, default: deny' AskTerms { deadline: 90s, default: Deny, channel: None }
    deadline=1h              AskTerms { deadline: 3600s, default: Deny, channel: None }
    '{ deadline: 5m, channel: "phone" }' AskTerms { deadline: 300s, default: Deny, channel: Some("phone") }
    {}                       AskTerms { deadline: 600s, default: Deny, channel: None }
    { deadline: 10 }         `key.deadline` needs a unit, found `10` [item 0] -- write `key.deadline: 10s` or `key.deadline: 10m`
    { deadline: 500ms }      `key.deadline` must be at least 1s, found `500ms` [item 0] -- write `key.deadline: 10m`, `90s` or `1h30m`
    { deadline: 25h }        `key.deadline` is longer than 24 hours [item 0] -- write `key: { deadline: 10m, default: deny, channel: phone }`
    { default: maybe }       `key.default` must be one of `deny`, `allow`, found `maybe` [item 0] -- write one of `deny`, `allow`
    { channel: 'a b' }       `key.channel` must be the name of a channel, found `a b` [item 0] -- `ollim-bot channels` shows those there are
    { dedline: 10m }         `key` has no `dedline` [item 0] -- write `key: { deadline: 10m, default: deny, channel: phone }`
    10m                      `key` must be a mapping, found `10m` -- write `key: { deadline: 10m, default: deny, channel: phone }`
    [a]                      `key` must be a mapping, found a list -- write `key: { deadline: 10m, default: deny, channel: phone }`
    ~                        `key` has no value -- give it a value, or remove the line
    "#);
}
