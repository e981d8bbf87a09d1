//! Random cron expressions over the whole grammar of the five fields, mostly with hours of the night.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const MONTHS: [&str; 12] = ["jan", "FEB", "Mar", "apr", "may", "JUN", "jul", "Aug", "sep", "oct", "NOV", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "MON", "Tue", "wed", "thu", "FRI", "sat"];
const NICKNAMES: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@Daily", "@midnight", "@hourly"];

/// Generates an expression. Some never match (`0 0 31 4 *`).
pub fn expression() -> impl Strategy<Value = String> {
    let minute = prop_oneof![
        4 => (0u32..60).prop_map(|minute| minute.to_string()),
        2 => Just("0".to_owned()),
        1 => Just("*".to_owned()),
        2 => select(vec![2u32, 5, 7, 10, 15, 20, 30, 45]).prop_map(|step| format!("*/{step}")),
        1 => Just("7,*/20".to_owned()),
        2 => list(0, 59, &[]),
    ];
    // Clocks change at night, so most hours are near to that.
    let hour = prop_oneof![
        5 => (0u32..5).prop_map(|hour| hour.to_string()),
        1 => (0u32..24).prop_map(|hour| hour.to_string()),
        2 => select(vec!["0", "23", "22-23", "0-23", "1,2", "1-3", "0,12", "1,*/2"]).prop_map(str::to_owned),
        3 => Just("*".to_owned()),
        2 => (2u32..13).prop_map(|step| format!("*/{step}")),
        1 => list(0, 23, &[]),
    ];
    let day = prop_oneof![
        8 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        3 => (1u32..32).prop_map(|day| day.to_string()),
        1 => (2u32..16).prop_map(|step| format!("*/{step}")),
        2 => list(1, 31, &[]),
        1 => select(vec!["L", "LW", "1,L", "LW,15"]).prop_map(str::to_owned),
    ];
    let month = prop_oneof![
        6 => Just("*".to_owned()),
        1 => (1u32..13).prop_map(|month| month.to_string()),
        1 => select(MONTHS.to_vec()).prop_map(str::to_owned),
        1 => (2u32..7).prop_map(|step| format!("*/{step}")),
        1 => list(1, 12, &MONTHS),
    ];
    let weekday = prop_oneof![
        8 => Just("*".to_owned()),
        2 => (0u32..8).prop_map(|day| day.to_string()),
        1 => select(WEEKDAYS.to_vec()).prop_map(str::to_owned),
        1 => Just("?".to_owned()),
        1 => select(vec!["FRI-SUN", "sat-Sun", "0-SUN/3"]).prop_map(str::to_owned),
        1 => (2u32..8).prop_map(|step| format!("*/{step}")),
        2 => list(0, 7, &WEEKDAYS),
        1 => (0u32..8).prop_map(|day| format!("{day}L")),
        1 => (select(WEEKDAYS.to_vec()), 1u32..6).prop_map(|(day, nth)| format!("{day}#{nth}")),
    ];
    let blank = || select(vec![" ", "  ", "\t"]);
    let five = (minute, hour, day, month, weekday, blank(), blank())
        .prop_map(|(minute, hour, day, month, weekday, a, b)| format!("{minute}{a}{hour} {day}{b}{month} {weekday}"));
    prop_oneof![
        30 => five,
        1 => select(NICKNAMES.to_vec()).prop_map(str::to_owned),
    ]
}

/// Generates a list of values and ranges. Some ranges have a step, some bounds are names (`names[0]` is `low`).
fn list(low: u32, high: u32, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let item = (low..=high, low..=high, 1..=high, 0..6, any::<bool>()).prop_map(move |(a, b, step, form, named)| {
        let (first, last) = (a.min(b), a.max(b));
        let shown = |value: u32| match names.get((value - low) as usize) {
            Some(name) if named => (*name).to_owned(),
            _ => value.to_string(),
        };
        match form {
            0..3 => shown(a),
            // We refuse `SUN-SUN`.
            _ if first == last && named => shown(first),
            3 | 4 => format!("{}-{}", shown(first), shown(last)),
            _ => format!("{}-{}/{step}", shown(first), shown(last)),
        }
    });
    vec(item, 1..4).prop_map(|items| items.join(","))
}

/// Translates the expression for cronsim (docs/cron.md, "Written otherwise"): `?` becomes `*`, a range that ends on `SUN`
/// ends on 7, and a range of one value loses its step.
pub fn told(expression: &str) -> String {
    let expression = expression.to_ascii_uppercase();
    let fields = expression.split_ascii_whitespace().enumerate().map(|(n, field)| match field {
        "?" if n == 2 || n == 4 => "*".to_owned(),
        _ => field.split(',').map(told_item).collect::<Vec<_>>().join(","),
    });
    fields.collect::<Vec<_>>().join(" ")
}

fn told_item(item: &str) -> String {
    let item = item.replace("-SUN", "-7");
    let number = |name: &str| {
        let named = |names: &[&str], first| names.iter().position(|n| n.eq_ignore_ascii_case(name)).map(|n| n + first);
        name.parse::<usize>().ok().or_else(|| named(&MONTHS, 1)).or_else(|| named(&WEEKDAYS, 0))
    };
    let stepped = item.split_once('/').filter(|(_, step)| step.parse::<usize>().is_ok_and(|step| step > 0));
    match stepped.and_then(|(range, _)| range.split_once('-')) {
        Some((first, last)) if number(first).is_some() && number(first) == number(last) => first.to_owned(),
        _ => item,
    }
}
