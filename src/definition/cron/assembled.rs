//! An expression of croner's, put together from its fields.
//!
//! croner's parser fills a table of 5,000 years for every expression, of which ours name none: 90 % of its work. Here the
//! fields are read by croner's own components, and what is the same for all expressions is copied from a few that its
//! parser has made. A property holds the results against the parser's.

use std::sync::LazyLock;

use croner::{Cron, CronComponent, CronPattern};

use super::{MONTHS, WEEKDAYS, parser};

/// Whether the day is a star, and the weekday; neither; neither, and one of them begins with one.
static MODELS: LazyLock<Option<[Cron; 5]>> = LazyLock::new(|| {
    let model = |day, weekday| parser(["0", "0", day, "*", weekday]).parse(&format!("0 0 {day} * {weekday}")).ok();
    Some([model("*", "*")?, model("*", "1")?, model("1", "*")?, model("1", "1")?, model("*/2", "1")?])
});

/// `None`: some field is wrong. Each must have its form: names stand where names may stand.
pub(super) fn cron(fields: [&str; 5]) -> Option<Cron> {
    let [minute, hour, day, month, weekday] = fields;
    let (day, weekday) = (day.replace('?', "*"), weekday.replace('?', "*"));
    let [both, day_only, weekday_only, neither, begins] = MODELS.as_ref()?;
    let model = match (day.as_str(), weekday.as_str()) {
        ("*", "*") => both,
        ("*", _) => day_only,
        (_, "*") => weekday_only,
        _ if day.starts_with('*') || weekday.starts_with('*') => begins,
        _ => neither,
    };
    let mut cron = model.clone();
    let empty = CronPattern::new("");
    cron.pattern.minutes = read(empty.minutes, minute)?;
    cron.pattern.hours = read(empty.hours, hour)?;
    cron.pattern.days = read(empty.days, &day.to_ascii_uppercase())?;
    cron.pattern.months = read(empty.months, &numbers(month, &MONTHS, 1))?;
    let weekday = numbers(&weekday.to_ascii_uppercase().replace("-SUN", "-7"), &WEEKDAYS, 0);
    cron.pattern.days_of_week = sunday_is_zero(read(empty.days_of_week, &weekday)?)?;
    Some(cron)
}

fn read(mut component: CronComponent, field: &str) -> Option<CronComponent> {
    component.parse(field).ok()?;
    Some(component)
}

/// In capitals, with numbers instead of names.
fn numbers(field: &str, names: &[&str], first: usize) -> String {
    let mut field = field.to_ascii_uppercase();
    if field.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        for (index, name) in names.iter().enumerate() {
            field = field.replace(name, &(index + first).to_string());
        }
    }
    field
}

/// A 7 is a Sunday too, whatever it is asked for: every one, the second, the last.
fn sunday_is_zero(mut weekdays: CronComponent) -> Option<CronComponent> {
    for bit in (0..7).map(|bit| 1u8 << bit) {
        if weekdays.is_bit_set(7, bit).ok()? {
            weekdays.unset_bit(7, bit).ok()?;
            weekdays.set_bit(0, bit).ok()?;
        }
    }
    Some(weekdays)
}
