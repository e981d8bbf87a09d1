//! The tables of fields and settings as docs/definitions.md and docs/configuration.md. `OLLIM_BLESS=1` writes both files.

use std::path::Path;

use ollim_bot::config::{Config, KEYS};
use ollim_bot::definition::fields::{FIELDS, Field, Limit};
use ollim_bot::definition::{Defaults, Draft, Kind, When, parse};

/// The line between the written part of each document and the generated reference.
const BEGIN: &str = "<!-- Generated from the table in the source. -->\n";

#[track_caller]
fn check(file: &str, reference: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let (written, found) = text.split_once(BEGIN).unwrap_or_else(|| panic!("docs/{file} has no line {BEGIN}"));
    if std::env::var_os("OLLIM_BLESS").is_some() {
        std::fs::write(&path, format!("{written}{BEGIN}{reference}")).unwrap();
        return;
    }
    assert_eq!(found, reference, "run this test with OLLIM_BLESS=1 to write docs/{file} again");
}

fn draft(kind: Kind) -> Draft {
    match kind {
        Kind::Routine => Draft::new(When::Cron("30 8 * * *".into()), "Do it.\n"),
        Kind::Webhook => {
            let defaults =
                Defaults { zone: chrono_tz::UTC, commands: ["gmail", "cal"].into(), agents: Default::default() };
            let parsed = parse(kind, Path::new("webhooks/x.md"), b"---\n---\nDo it.\n", &defaults);
            Draft::from(&parsed.definition.unwrap())
        }
        _ => Draft::new(When::At("2027-01-31T18:30:00+01:00".parse().unwrap()), "Do it.\n"),
    }
}

/// Returns the default as a file would spell it.
fn default(field: &Field) -> String {
    if field.required && field.unset.is_empty() {
        return "none; it is required".into();
    }
    let of = |kind| {
        let value = (field.show)(&draft(kind))?;
        Some(value.entry(field.name).trim_end().split_once(": ")?.1.to_owned())
    };
    if !field.unset.is_empty() {
        return field.unset.into();
    }
    let mut defaults: Vec<(String, Vec<Kind>)> = Vec::new();
    for kind in field.on.kinds() {
        let default = of(kind).unwrap_or_else(|| panic!("`{}` has no default for a {kind}", field.name));
        match defaults.iter_mut().find(|(known, _)| *known == default) {
            Some((_, kinds)) => kinds.push(kind),
            None => defaults.push((default, vec![kind])),
        }
    }
    match &defaults[..] {
        [(default, _)] => format!("`{default}`"),
        several => {
            let each =
                several.iter().map(|(default, kinds)| format!("`{default}` for {}", plural(kinds.iter().copied())));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns a list such as `routines, reminders and webhooks`.
fn plural(kinds: impl Iterator<Item = Kind>) -> String {
    let mut names: Vec<String> = kinds.map(|kind| format!("{kind}s")).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

fn section(field: &Field) -> String {
    let on = plural(field.on.kinds());
    let only = match field {
        Field { command_only: true, .. } => ", with `client: exec`",
        Field { background_only: true, command_too: true, .. } => ", with `background: true` or `client: exec`",
        Field { background_only: true, .. } => ", with `background: true`",
        _ => "",
    };
    let mut text = format!("\n### `{}`\n\n{}.", field.name, field.help.trim());
    if !field.details.is_empty() {
        text += &format!(" {}", field.details);
    }
    text += &format!("\n\n- On: {on}{only}\n- Default: {}\n", default(field));
    if !field.not_with.is_empty() {
        let others: Vec<String> = field.not_with.iter().map(|other| format!("`{other}`")).collect();
        text += &format!("- Not together with: {}\n", others.join(", "));
    }
    let flags: Vec<String> = field
        .flags
        .iter()
        .filter(|flag| !flag.hidden)
        .map(|flag| {
            let only = if flag.only_edits { " (`edit` alone)" } else { "" };
            format!("`--{}`{only}", [flag.long, flag.argument].join(" ").trim_end())
        })
        .collect();
    if !flags.is_empty() {
        text += &format!("- Flags of `add` and `edit`: {}\n", flags.join(", "));
    }
    match field.limit {
        Limit::Free => {}
        Limit::AtMost => {
            text += "- Limit: What a job makes has at most the job's own value, which is also its default.\n"
        }
        Limit::Other(rule) => text += &format!("- Limit: {rule}\n"),
    }
    text + &format!("\n```yaml\n{}: {}\n```\n", field.name, field.example)
}

#[test]
fn the_reference_of_definitions_is_their_table() {
    check("definitions.md", &FIELDS.iter().map(section).collect::<String>());
}

#[test]
fn every_example_of_a_field_is_valid() {
    let defaults = Defaults { zone: chrono_tz::UTC, commands: ["gmail", "cal"].into(), agents: Default::default() };
    for field in FIELDS {
        let kind = field.on.kinds().next().unwrap();
        let time = match kind {
            Kind::Reminder => "run_at: 2027-01-31T18:30:00Z",
            Kind::Webhook => "",
            _ => "cron: '@daily'",
        };
        let chain = if field.name == "chain_depth" { "max_chain: 2\n" } else { "" };
        let background = match field.name {
            "background" | "client" => "",
            "command" => "client: exec\n",
            _ if field.command_only => "client: exec\ncommand: 'true'\n",
            _ => "background: true\n",
        };
        let time = if field.required || field.not_with.contains(&"cron") { "" } else { time };
        let text = format!("---\n{time}\n{background}{chain}{}: {}\n---\nDo it.\n", field.name, field.example);
        let file = format!("{kind}s/x.md");
        let parsed = parse(kind, Path::new(&file), text.as_bytes(), &defaults);
        let definition = parsed.definition.unwrap_or_else(|| panic!("{text}\n{:?}", parsed.problems));
        let differs = (field.show)(&Draft::from(&definition)) != (field.show)(&draft(kind));
        // These fields are the same in every draft of this test, or belong to a longer file.
        assert!(differs || field.required || field.note || field.name == "chain_parent", "{text}");
    }
}

#[test]
fn the_reference_of_settings_is_their_table() {
    let config = Config::defaults(chrono_tz::UTC);
    let sections = KEYS.iter().map(|key| {
        let default = match key.unset {
            "" => format!("`{}`", key.example),
            unset => unset.to_owned(),
        };
        let details = if key.details.is_empty() { String::new() } else { format!(" {}", key.details) };
        let variable = key.name.to_uppercase();
        let example = format!("{}: {}\n", key.name, key.example);
        let read = Config::parse(&example, &[("TZ".to_owned(), "UTC".to_owned())].into()).unwrap();
        // If and only if the example is documented as the default, it equals the default.
        assert_eq!((key.show)(&read) == (key.show)(&config), key.unset.is_empty(), "{example}");
        format!(
            "\n### `{}`\n\n{}{details}\n\n- Default: {default}\n- Variable: `OLLIM_{variable}`\n\n```yaml\n{example}```\n",
            key.name,
            key.help.trim(),
        )
    });
    check("configuration.md", &sections.collect::<String>());
}
