//! Assembles a croner expression from its fields.
//!
//! croner's parser fills a table of 5,000 years for each expression, which takes 90 % of its time; ours name no year.
//! This module reads the fields with croner's own components, and copies the rest from a few expressions that the
//! parser made. A property test compares the results with the parser's.

use std::sync::LazyLock;

use croner::{Cron, CronComponent, CronPattern};

use super::{FIELDS, MONTHS, WEEKDAYS, parser};

/// Parsed expressions to copy. Which of day and weekday is `*`: both, day, weekday, none; none, but one begins with `*`.
static MODELS: [LazyLock<Option<Cron>>; 5] = [
    LazyLock::new(|| model("*", "*")),
    LazyLock::new(|| model("*", "1")),
    LazyLock::new(|| model("1", "*")),
    LazyLock::new(|| model("1", "1")),
    LazyLock::new(|| model("*/2", "1")),
];

/// Parses an expression without its five fields, which [`cron`] sets.
fn model(day: &str, weekday: &str) -> Option<Cron> {
    let mut cron = parser(["0", "0", day, "*", weekday]).parse(&format!("0 0 {day} * {weekday}")).ok()?;
    let pattern = &mut cron.pattern;
    for field in
        [&mut pattern.minutes, &mut pattern.hours, &mut pattern.days, &mut pattern.months, &mut pattern.days_of_week]
    {
        *field = CronComponent::default();
    }
    Some(cron)
}

/// Components with nothing read into them.
static EMPTY: LazyLock<CronPattern> = LazyLock::new(|| CronPattern::new(""));

/// Returns the expression; `None` if a field is invalid.
pub(super) fn cron(fields: [&str; 5]) -> Option<Cron> {
    let [_, _, day, _, weekday] = fields;
    let (day, weekday) = (if day == "?" { "*" } else { day }, if weekday == "?" { "*" } else { weekday });
    let [both, day_only, weekday_only, neither, begins] = &MODELS;
    let model = match (day, weekday) {
        ("*", "*") => both,
        ("*", _) => day_only,
        (_, "*") => weekday_only,
        _ if day.starts_with('*') || weekday.starts_with('*') => begins,
        _ => neither,
    };
    let mut cron = (**model).clone()?;
    cron.pattern.minutes = component(0, fields)?;
    cron.pattern.hours = component(1, fields)?;
    cron.pattern.days = component(2, fields)?;
    cron.pattern.months = component(3, fields)?;
    cron.pattern.days_of_week = component(4, fields)?;
    Some(cron)
}

/// Whether each field is valid by itself.
pub(super) fn is_valid(fields: [&str; 5]) -> bool {
    (0..5).all(|nth| fields[nth] == "*" || component(nth, fields).is_some())
}

/// Reads the `nth` field; `None` if it is invalid.
fn component(nth: usize, fields: [&str; 5]) -> Option<CronComponent> {
    FIELDS[nth].is_well_formed(fields[nth]).then(|| read(nth, fields[nth]))?
}

/// Reads a well-formed `field`: names stand only where names may stand.
fn read(nth: usize, field: &str) -> Option<CronComponent> {
    let field = if field == "?" { "*".to_owned() } else { field.to_ascii_uppercase() };
    let parsed = |empty: &CronComponent, field: &str| {
        let mut component = empty.clone();
        component.parse(field).ok()?;
        Some(component)
    };
    match nth {
        0 => parsed(&EMPTY.minutes, &field),
        1 => parsed(&EMPTY.hours, &field),
        2 => parsed(&EMPTY.days, &field),
        3 => parsed(&EMPTY.months, &numbers(field, &MONTHS, 1)),
        _ => {
            let field = numbers(field.replace("-SUN", "-7"), &WEEKDAYS, 0);
            sunday_is_zero(parsed(&EMPTY.days_of_week, &field)?)
        }
    }
}

/// Replaces names by numbers.
fn numbers(mut field: String, names: &[&str], first: usize) -> String {
    if field.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        for (index, name) in names.iter().enumerate() {
            field = field.replace(name, &(index + first).to_string());
        }
    }
    field
}

/// Replaces weekday 7 by 0, since both are Sunday: for every Sunday, the nth and the last.
fn sunday_is_zero(mut weekdays: CronComponent) -> Option<CronComponent> {
    for bit in (0..7).map(|bit| 1u8 << bit) {
        if weekdays.is_bit_set(7, bit).ok()? {
            weekdays.unset_bit(7, bit).ok()?;
            weekdays.set_bit(0, bit).ok()?;
        }
    }
    Some(weekdays)
}
