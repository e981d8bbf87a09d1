//! The grammar: which texts we and cronsim accept as expressions, and the meaning of texts that the two write differently.

use chrono::DateTime;
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::string::string_regex;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::differences::ours;
use super::expressions::told;
use super::reference::{self, Answer, Ask};

fn ask(expression: &str) -> Ask {
    let from = DateTime::from_timestamp(1_767_225_600, 0).unwrap();
    Ask { expression: expression.to_owned(), zone: Tz::UTC, from, count: 12 }
}

/// Expressions that cronsim does not know or reads differently: docs/cron.md, "Written otherwise".
#[test]
fn what_is_written_otherwise() {
    // Our expression, and its translation for cronsim.
    let pairs = [
        ("0 0 ? * *", "0 0 * * *"),
        ("0 0 1 * ?", "0 0 1 * *"),
        ("0 0 * * FRI-SUN", "0 0 * * FRI-7"),
        ("0 0 * * MON-SUN/2", "0 0 * * MON-7/2"),
        ("4-4/13 0 * * *", "4 0 * * *"),
        ("0 0 * * 2-TUE/2", "0 0 * * 2"),
        ("@midnight", "@midnight"),
        ("@hourly", "@hourly"),
    ];
    let asks: Vec<Ask> = pairs.iter().map(|(expression, _)| ask(expression)).collect();
    let as_written = reference::times_as_written(&asks);
    let as_told = reference::times(&asks);
    for ((((expression, expected), ask), as_written), as_told) in pairs.iter().zip(&asks).zip(as_written).zip(as_told) {
        assert_eq!(told(expression).to_ascii_uppercase(), expected.to_ascii_uppercase());
        let as_told = as_told.unwrap().times;
        assert_eq!(ours(ask).unwrap(), as_told, "{expression}");
        if !expression.eq_ignore_ascii_case(expected) {
            assert_ne!(as_written.map(|answer| answer.times), Some(as_told), "{expression} needs no telling");
        }
    }
}

/// Texts that only one of the two accepts, and texts that neither accepts.
#[test]
fn what_is_taken_by_one_only() {
    let ours_only = ["0 0 15W * *", "0 0 1,15W * *"];
    let theirs_only = [
        // A step of a single value: crontab(5) has steps of ranges and of `*`.
        "5/15 * * * *",
        // In a list with a star, the other items add nothing.
        "*,5 * * * *",
        "0 0 L,LW * *",
        "0 0 L/2 * *",
        "0 0 * * SUN-SUN",
    ];
    let neither = [
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "1,,2 * * * *",
        "0 0 1 * L",
        "0 0 1 * +MON",
        "0 0 * * MON-FRI#2",
        "0 0 * * MON#6",
        "0 0 * JANFEB *",
        "0 0 * * MONDAY",
        "@reboot",
        "@every 5m",
        "",
    ];
    let taken = |expressions: &[&str]| -> Vec<(bool, bool)> {
        let asks: Vec<Ask> = expressions.iter().map(|expression| ask(expression)).collect();
        let answers = reference::times(&asks);
        asks.iter().zip(answers).map(|(ask, answer)| (ours(ask).is_some(), answer.is_some())).collect()
    };
    assert_eq!(taken(&ours_only), [(true, false); 2]);
    assert_eq!(taken(&theirs_only), [(false, true); 5]);
    assert_eq!(taken(&neither), [(false, false); 15]);
}

/// Both accept, or both refuse, any text in the alphabet of the fields, and it means the same to both.
#[test]
fn random_texts_mean_the_same() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[1; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    // One field is random, the others are plain.
    let riddle = |own: &str| prop_oneof!["[0-9*/,-]{1,5}", string_regex(own).unwrap()].boxed();
    let riddles = [
        riddle("[0-6*]?[0-9*](-[0-9]{1,2})?(/[0-9]{1,2})?(,[0-9]{1,2})?"),
        riddle("[0-2*][0-9]?(,[0-9])?(-[0-9]{1,2})?(/[0-9]{1,3})?"),
        riddle("[0-9LW?*]{1,3}([,/-][0-9LW]{1,2})?"),
        riddle("(JAN|feb|Dec|[0-9]{1,2})([-,](JAN|MAR|dec|[0-9]{1,2}))?(/[0-9])?"),
        riddle("(SUN|mon|Fri|[0-8])([-,#L?](SUN|MON|sat|[0-7L]))?(/[0-9])?"),
    ];
    let expression = (select(vec![0, 1, 2, 3, 4]), riddles).prop_map(|(n, riddles)| {
        let mut fields = ["0", "0", "*", "*", "*"].map(str::to_owned);
        fields[n] = riddles[n].clone();
        fields.join(" ")
    });
    let asks: Vec<Ask> = (0..3000).map(|_| ask(&expression.new_tree(&mut runner).unwrap().current())).collect();
    let mut both = 0;
    for (ask, answer) in asks.iter().zip(reference::times(&asks)) {
        let one_only = is_taken_by_one_only(&ask.expression);
        match (ours(ask), answer) {
            (Some(ours), Some(Answer { times, .. })) => {
                both += 1;
                assert_eq!(ours, times, "{}", ask.expression);
            }
            (Some(ours), None) => assert!(ours.is_empty() || one_only, "only we take {}", ask.expression),
            (None, Some(_)) => assert!(one_only, "only cronsim takes {}", ask.expression),
            (None, None) => {}
        }
    }
    assert!(both > 500, "{both} were expressions: too few to say anything");
}

/// Returns whether the expression belongs to a class of [`what_is_taken_by_one_only`].
fn is_taken_by_one_only(expression: &str) -> bool {
    let expression = expression.to_ascii_uppercase();
    let items = || expression.split([' ', ',']);
    let in_list = |word: &str| expression.split(' ').any(|field| field != word && field.split(',').any(|i| i == word));
    let step_of_one = |item: &str| item.split_once('/').is_some_and(|(range, _)| !range.contains(['*', '-']));
    let nearest = |item: &str| item.strip_suffix('W').is_some_and(|day| day != "L");
    in_list("*") || (in_list("L") && in_list("LW")) || items().any(|i| step_of_one(i) || nearest(i) || i == "SUN-SUN")
}
