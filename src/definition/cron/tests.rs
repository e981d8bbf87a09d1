//! Tables of accepted and refused expressions, and properties.

use super::*;
use proptest::prelude::*;

fn check(text: &str) -> String {
    check_cron(text).map_or_else(|error| error.to_string(), |()| "ok".into())
}

#[test]
fn accepted() {
    for text in [
        "30 8 * * *",
        "*/5 * * * *",
        "  0   9  * *   MON-FRI ",
        "0 0 1,15 * 1",
        "0 0 * jan,Mar sun",
        "0 0 * * 0",
        "0 0 * * 7",
        "0 0 29 2 *",
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5L",
        "0 0 * * MON#2",
        "0 0 ? * *",
        "0 0 31 2 1",
        "0 0 */2 2 1",
        "@daily",
        "@Midnight",
        "@hourly",
        "@weekly",
        "@monthly",
        "@yearly",
        "@annually",
    ] {
        assert_eq!(check(text), "ok", "{text}");
    }
}

#[test]
fn refused() {
    let shown: Vec<String> = [
        "",
        "* * * *",
        "0 30 8 * * *",
        "0 30 8 * * * 2030",
        "60 8 * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "MON * * * *",
        "0 0 * JANFEB *",
        "0 0 * * MONDAY",
        "0 0 * * 1MON",
        "0 0 * * ВТ",
        "0 0 1 1 * @daily",
        "0 0 @1 1 *",
        "0 0 ,1 * *",
        "0,,30 0 * * *",
        "0 0 , * *",
        "5/15 * * * *",
        "/5 * * * *",
        "*,5 * * * *",
        "1-5-9 * * * *",
        "*/2/3 * * * *",
        "? 0 * * *",
        "0 0 ?,1 * *",
        "0 0 L,LW * *",
        "0 0 L-3 * *",
        "0 0 1 * L",
        "0 0 1 * +MON",
        "0 0 * * MON-FRI#2",
        "0 0 * * SUN-SUN",
        "0 0 * * MON#6",
        "@reboot",
        "@",
        "a b c d e",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 31 2 */2",
    ]
    .iter()
    .map(|text| format!("{text:20} {}", check(text)))
    .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
                         a cron expression has 5 fields (minute hour day month weekday), this has 0
    * * * *              a cron expression has 5 fields (minute hour day month weekday), this has 4
    0 30 8 * * *         a cron expression has 5 fields (minute hour day month weekday), this has 6
    0 30 8 * * * 2030    a cron expression has 5 fields (minute hour day month weekday), this has 7
    60 8 * * *           the minute field `60` is not valid (0-59)
    * 24 * * *           the hour field `24` is not valid (0-23)
    * * 0 * *            the day field `0` is not valid (1-31)
    * * 32 * *           the day field `32` is not valid (1-31)
    * * * 13 *           the month field `13` is not valid (1-12 or JAN-DEC)
    * * * * 8            the weekday field `8` is not valid (0-7 or SUN-SAT)
    */0 * * * *          the minute field `*/0` is not valid (0-59)
    5-1 * * * *          the minute field `5-1` is not valid (0-59)
    MON * * * *          the minute field `MON` is not valid (0-59)
    0 0 * JANFEB *       the month field `JANFEB` is not valid (1-12 or JAN-DEC)
    0 0 * * MONDAY       the weekday field `MONDAY` is not valid (0-7 or SUN-SAT)
    0 0 * * 1MON         the weekday field `1MON` is not valid (0-7 or SUN-SAT)
    0 0 * * ВТ           it is longer than 1000 characters or has letters beyond A-Z
    0 0 1 1 * @daily     a cron expression has 5 fields (minute hour day month weekday), this has 6
    0 0 @1 1 *           the day field `@1` is not valid (1-31)
    0 0 ,1 * *           the day field `,1` is not valid (1-31)
    0,,30 0 * * *        the minute field `0,,30` is not valid (0-59)
    0 0 , * *            the day field `,` is not valid (1-31)
    5/15 * * * *         the minute field `5/15` is not valid (0-59)
    /5 * * * *           the minute field `/5` is not valid (0-59)
    *,5 * * * *          the minute field `*,5` is not valid (0-59)
    1-5-9 * * * *        the minute field `1-5-9` is not valid (0-59)
    */2/3 * * * *        the minute field `*/2/3` is not valid (0-59)
    ? 0 * * *            the minute field `?` is not valid (0-59)
    0 0 ?,1 * *          the day field `?,1` is not valid (1-31)
    0 0 L,LW * *         the day field `L,LW` is not valid (1-31)
    0 0 L-3 * *          the day field `L-3` is not valid (1-31)
    0 0 1 * L            the weekday field `L` is not valid (0-7 or SUN-SAT)
    0 0 1 * +MON         the weekday field `+MON` is not valid (0-7 or SUN-SAT)
    0 0 * * MON-FRI#2    the weekday field `MON-FRI#2` is not valid (0-7 or SUN-SAT)
    0 0 * * SUN-SUN      the weekday field `SUN-SUN` is not valid (0-7 or SUN-SAT)
    0 0 * * MON#6        the weekday field `MON#6` is not valid (0-7 or SUN-SAT)
    @reboot              `@reboot` is not a name for a cron expression
    @                    `@` is not a name for a cron expression
    a b c d e            the minute field `a` is not valid (0-59)
    0 0 30 2 *           no date ever matches it, so it can never fire
    0 0 31 4,6,9,11 *    no date ever matches it, so it can never fire
    0 0 31 2 */2         no date ever matches it, so it can never fire
    ");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[-0-9*/,?#LW@ A-Za-z]{0,30}") {
        let _ = check_cron(&text);
    }
}

/// A field as people write it: values, ranges, steps, lists and special words.
fn field(values: std::ops::RangeInclusive<u32>, words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let value = prop_oneof![
        8 => values.clone().prop_map(|n| n.to_string()),
        1 => (*values.end()..=values.end() + 2).prop_map(|n| n.to_string()),
        2 => proptest::sample::select(words).prop_map(ToOwned::to_owned),
    ];
    let range = (value.clone(), value.clone()).prop_map(|(from, to)| format!("{from}-{to}"));
    let base = prop_oneof![4 => value, 3 => range, 2 => Just("*".to_owned())];
    let item = (base, proptest::option::weighted(0.3, 0u32..40)).prop_map(|(base, step)| match step {
        Some(step) => format!("{base}/{step}"),
        None => base,
    });
    prop_oneof![
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        6 => proptest::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    (
        field(0..=59, &["0", "59"]),
        field(0..=23, &["0", "23"]),
        field(1..=31, &["L", "LW", "15W", "31W", "1W"]),
        field(1..=12, &["jan", "Feb", "DEC", "MAY"]),
        field(0..=7, &["sun", "Mon", "SAT", "5L", "MON#2", "0#5", "7L", "7#1", "SUN#3"]),
    )
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// An assembled expression equals the one from croner's own parser, and nothing else is accepted.
    #[test]
    fn an_expression_means_what_croner_reads(text in expression()) {
        let fields = cron_fields(&text).unwrap();
        let well_formed = FIELDS.iter().zip(fields).all(|(field, text)| field.is_well_formed(text));
        let whole = parser(fields).parse(&text).ok().filter(|_| well_formed);
        prop_assert_eq!(parse_cron(&text).ok(), whole.clone(), "{}", text);
        let comes = whole.map(|cron| cron.find_next_occurrence(&DateTime::UNIX_EPOCH, true).is_ok());
        let checked = match check_cron(&text) {
            Ok(()) => Some(true),
            Err(CronError::Never) => Some(false),
            Err(_) => None,
        };
        prop_assert_eq!(checked, comes, "{}", text);
    }
}
