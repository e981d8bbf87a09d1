//! Stars within the expressions of `find`.

use super::*;

/// A star stands for whole tests, so that an action applies to no more than what the rule's own tests leave.
#[test]
fn a_star_leaves_the_tests_behind_it_as_they_are() {
    let emptied = allowing(&["Bash(find * -empty -delete)"]);
    grants(
        &emptied,
        &[
            "find notes -empty -delete",
            "find -L notes -type f -empty -delete",
            "find . -executable -empty -delete",
            "find . -name a -o -name b -empty -delete",
            "find . ( -name a -o ! -name b ) -mtime +7 -empty -delete",
            "find . -newermt 2026-01-01 -maxdepth 2 -empty -delete",
            "find . -name ( -empty -delete",
            "find . -name -o -empty -delete",
        ],
    );
    let valued = programs::by_base_name("find").options.expression.map_or("", |words| words.valued);
    assert!(valued.contains("newermt"));
    for test in valued.split(' ') {
        // The test behind it would be its value.
        denies(&emptied, &[&format!("find . -{test} -empty -delete"), &format!("find . ! -{test} -empty -delete")]);
        grants(&emptied, &[&format!("find . -{test} x -empty -delete")]);
    }
    denies(
        &emptied,
        &[
            "find keep ! -name -empty -delete",
            "find . ! -empty -delete",
            "find . -not -empty -delete",
            "find . ( -empty -delete",
            "find . ) -empty -delete",
            "find . ) ( -empty -delete",
            "find . -daystart -empty -delete",
            "find . -regextype sed -empty -delete",
            "find . -unknown -empty -delete",
            "find . -fprint -empty -delete",
            "find . -exec touch {} ; -empty -delete",
            "find . -name x -delete -empty -delete",
        ],
    );
}

#[test]
fn a_star_behind_a_test_joins_nothing_to_it() {
    let named = allowing(&["Bash(find . -name *.tmp * -delete)"]);
    grants(
        &named,
        &[
            "find . -name a.tmp -type f -delete",
            "find . -name a.tmp ( -size 0 -o -empty ) -delete",
            "find . -name a.tmp -name -or -delete",
        ],
    );
    for or in ["-o", "-or", ","] {
        denies(
            &named,
            &[
                &format!("find . -name a.tmp {or} -name b -delete"),
                &format!("find . -name a.tmp -type f {or} -type d -delete"),
                &format!("find . -name a.tmp ( -size 0 ) {or} -empty -delete"),
                &format!("find . -name a.tmp {or} -delete"),
            ],
        );
    }
    for (rule, granted, refused) in [
        // The word before the star takes no value, so the star is no value.
        ("find . -empty * -delete", "find . -empty -type f -delete", "find . -empty -o -delete"),
        ("find . -depth * -delete", "find . -depth -empty -delete", "find . -depth ! -delete"),
        ("find . ( * ) -delete", "find . ( -name a -o -name b ) -delete", "find . ( -name a ) -o ( -name b ) -delete"),
        ("find . -n* -empty -delete", "find . -n -empty -delete", "find . -not -empty -delete"),
        ("find . -size +* -delete", "find . -size +1M -delete", "find . -size + -o -delete"),
        ("find . -mtime -* -delete", "find . -mtime -7 -delete", "find . -mtime - 7 -o -delete"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, &[granted]);
        denies(&policy, &[refused]);
    }
}
