//! The samples that `init` installs: files of this repository, embedded in the binary.

/// The time in the sample reminders. `init` replaces it by a time that comes.
pub const FAR_OFF: &str = "2999-12-31T09:00:00Z";

/// Returns each sample's path relative to the data folder, and its text.
#[must_use]
pub fn samples() -> &'static [(&'static str, &'static str)] {
    &[
        ("routines/email-triage.md", include_str!("../../routines/email-triage.md")),
        ("routines/evening-review.md", include_str!("../../routines/evening-review.md")),
        ("routines/reading-list.md", include_str!("../../routines/reading-list.md")),
        ("reminders/hello.md", include_str!("../../reminders/hello.md")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Defaults, Definition, Kind, parse};
    use std::collections::BTreeSet;
    use std::path::Path;

    fn load() -> Vec<Definition> {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let one = |(path, text): &(&str, &str)| {
            let path = Path::new(path);
            let parsed = parse(crate::definition::problem::kind_of(path).unwrap(), path, text.as_bytes(), &defaults);
            assert_eq!(parsed.problems, [], "{}", path.display());
            parsed.definition.unwrap()
        };
        samples().iter().map(one).collect()
    }

    #[test]
    fn every_sample_is_a_definition_without_a_problem() {
        let all = load();
        assert_eq!(all.iter().map(|d| &d.id).collect::<BTreeSet<_>>().len(), all.len());
        for d in all {
            assert_eq!(d.file.file_stem().unwrap().to_str().unwrap(), d.id.as_str());
            assert!(!d.description.is_empty());
            if d.kind() == Kind::Reminder {
                assert!(samples().iter().any(|(path, text)| Path::new(path) == d.file && text.contains(FAR_OFF)));
            }
        }
    }

    #[test]
    fn the_two_examples_everything_starts_from_are_among_them() {
        let all = load();
        let list = |id: &str| {
            let d = all.iter().find(|d| d.id.as_str() == id).unwrap();
            let restrictions = &d.background().unwrap().restrictions;
            let list = restrictions.allowed_tools().or(restrictions.disallowed_tools()).unwrap();
            (restrictions.allowed_tools().is_some(), list.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let (allow, tools) = list("email-triage");
        assert!(allow);
        assert_eq!(
            tools,
            [
                "Bash(ollim-bot gmail *)",
                "Bash(ollim-bot tasks *)",
                "mcp__discord__report_updates",
                "mcp__discord__ping_user",
                "mcp__discord__discord_embed"
            ]
        );
        let (allow, tools) = list("reading-list");
        assert!(!allow);
        assert_eq!(tools, ["Bash(ollim-bot cal *)", "WebFetch", "WebSearch"]);
    }

    #[test]
    fn every_sample_of_the_repository_is_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in ["routines", "reminders"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                files.push(format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap()));
            }
        }
        files.sort();
        let mut built_in: Vec<&str> = samples().iter().map(|(path, _)| *path).collect();
        built_in.sort_unstable();
        assert_eq!(files, built_in);
    }
}
