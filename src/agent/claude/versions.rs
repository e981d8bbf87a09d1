//! The tested versions of the client, and the notice about others.
//!
//! The test suite runs on both; `./scripts/client-contract VERSION` checks any other. The client changes every week, so
//! an untested version is no error: it is reported, and each run still checks the client.

/// The oldest supported version and the newest tested one.
pub const TESTED: [&str; 2] = ["2.1.197", "2.1.330"];

/// Returns the notice about a version outside of the tested range; `None` if it is inside or is no version.
#[must_use]
pub fn untested(version: &str) -> Option<String> {
    let [oldest, newest] = TESTED;
    let this = numbers(version)?;
    if Some(&this) > numbers(newest).as_ref() {
        return Some(format!("{version} is newer than {newest}, the newest agent client that was tested"));
    }
    (Some(&this) < numbers(oldest).as_ref()).then(|| {
        format!(
            "{version} is older than {oldest}, the oldest agent client that is supported; update it: `claude update`"
        )
    })
}

/// Parses a version; `2.1.330-beta.1` counts as `2.1.330`. Returns `None` if it is not a version.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let plain = version.split(['-', '+']).next()?;
    plain.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_outside_is_spoken_of() {
        for (version, words) in [
            ("2.1.197", None),
            ("2.1.250", None),
            ("2.1.330", None),
            ("2.1.331", Some("newer than 2.1.330")),
            ("2.2.0", Some("newer")),
            ("10.0", Some("newer")),
            ("2.1.400-beta.1", Some("newer")),
            ("2.1.196", Some("older than 2.1.197")),
            ("1.9.999", Some("older")),
            ("unknown", None),
        ] {
            let said = untested(version);
            assert_eq!(said.is_some(), words.is_some(), "{version}: {said:?}");
            assert!(words.is_none_or(|words| said.unwrap().contains(words)), "{version}");
        }
    }

    #[test]
    fn the_tested_versions_are_those_that_the_tests_pin() {
        let pinned = [
            include_str!("../../../tests/claude-client/package.json"),
            include_str!("../../../tests/claude-client-newest/package.json"),
        ];
        for (file, version) in pinned.iter().zip(TESTED) {
            let package: serde_json::Value = serde_json::from_str(file).unwrap();
            assert_eq!(package["dependencies"]["@anthropic-ai/claude-code"], version);
            assert!(include_str!("../../../README.md").contains(&format!("**{version}**")), "README names {version}");
        }
    }
}
