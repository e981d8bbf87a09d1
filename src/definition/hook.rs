//! The settings of a webhook: the allowed sender, rate and content of its deliveries.

use serde::{Deserialize, Serialize};

pub use super::payload_schema::{PayloadFault, PayloadSchema};

/// Rules for the deliveries of a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// How the sender proves its identity.
    pub signature: Signature,
    /// Name of the variable that holds the secret shared with the sender.
    pub secret_env: String,
    /// The schema of a delivery; `None` allows any object.
    pub fields: Option<PayloadSchema>,
    /// Maximum number of deliveries per minute.
    pub per_minute: u32,
}

/// How a sender proves that it has the secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signature {
    /// The secret itself, in `Authorization: Bearer`.
    #[default]
    Bearer,
    /// A signature like GitHub's, in `X-Hub-Signature-256`.
    Github,
    /// A signature like Stripe's, in `Stripe-Signature`.
    Stripe,
    /// A signature like Slack's, in `X-Slack-Signature`.
    Slack,
}

/// A part of a webhook's prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Literal text.
    Text(&'a str),
    /// `{{name}}`: a field of the delivery. A full stop separates nested names; a number selects an item of a list.
    Field(&'a str),
}

/// Splits a text into its parts. Braces around anything but a name are literal text.
pub fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    let mut field = None;
    std::iter::from_fn(move || {
        if let Some(name) = field.take() {
            return Some(Part::Field(name));
        }
        let mut from = 0;
        while let Some(start) = rest[from..].find("{{").map(|at| from + at) {
            let inner = &rest[start + 2..];
            let Some(end) = inner.find("}}") else { break };
            let name = inner[..end].trim_matches(' ');
            if is_name(name) {
                let before = &rest[..start];
                rest = &inner[end + 2..];
                if before.is_empty() {
                    return Some(Part::Field(name));
                }
                field = Some(name);
                return Some(Part::Text(before));
            }
            from = start + 1;
        }
        Some(Part::Text(std::mem::take(&mut rest))).filter(|part| *part != Part::Text(""))
    })
}

/// Returns the names of the fields in a text.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    parts(text).filter_map(|part| match part {
        Part::Field(name) => Some(name),
        Part::Text(_) => None,
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::definition::{Defaults, Draft, Kind, Problem, parse};

    /// Returns the problems of a webhook's file.
    fn problems(file: &str, fields: &str, body: &str) -> Vec<String> {
        let text = format!("---\nallowed_tools: []\n{fields}---\n{body}\n");
        let parsed = parse(Kind::Webhook, Path::new(file), text.as_bytes(), &defaults());
        let fires = parsed.definition.is_some();
        assert_eq!(fires, !parsed.problems.iter().any(Problem::is_error));
        parsed.problems.into_iter().map(|problem| problem.message).collect()
    }

    fn defaults() -> Defaults {
        Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() }
    }

    #[test]
    fn a_webhook_has_its_fields_and_always_runs_beside() {
        let text = "---\nsignature: stripe\nsecret-env: STRIPE\nper_minute: 5\nisolated: true\nfields:\n  type: object\n  \
                    required: [type]\nallowed_tools: []\n---\nPaid.\n";
        let parsed = parse(Kind::Webhook, Path::new("webhooks/paid.md"), text.as_bytes(), &defaults());
        assert_eq!(parsed.problems, []);
        let definition = parsed.definition.unwrap();
        let hook = definition.hook().unwrap();
        assert_eq!((hook.signature, &*hook.secret_env, hook.per_minute), (Signature::Stripe, "STRIPE", 5));
        assert!(hook.fields.is_some() && definition.background().is_some_and(|background| background.isolated));
        // The rendered text reads back unchanged.
        let written = Draft::from(&definition).render(None);
        let again = parse(Kind::Webhook, Path::new("webhooks/paid.md"), written.as_bytes(), &defaults());
        assert_eq!(again.definition, Some(definition), "{written}");
    }

    #[test]
    fn what_is_wrong_with_a_webhook_is_said() {
        let check = |file: &str, fields: &str, body: &str, expected: &[&str]| {
            assert_eq!(problems(file, fields, body), expected, "{fields}");
        };
        let file = "webhooks/paid.md";
        check(file, "", "Paid.", &[]);
        check(
            file,
            "background: false\n",
            "Paid.",
            &["a webhook runs in the background, whatever `background` says: others choose what it is given"],
        );
        check(file, "cron: '@daily'\n", "Paid.", &["`cron` has no effect on a webhook"]);
        check(file, "on_missed: skip\n", "Paid.", &["`on_missed` has no effect on a webhook"]);
        check(
            file,
            "signature: gitlab\n",
            "Paid.",
            &["`signature` must be one of `bearer`, `github`, `stripe`, `slack`, found `gitlab`"],
        );
        check(
            file,
            "secret_env: 'my secret'\n",
            "Paid.",
            &["`secret_env` must be the name of a variable, found `my secret`"],
        );
        check(file, "fields: [a]\n", "Paid.", &["`fields` must be a JSON Schema of an object, found a list"]);
        check(
            file,
            "fields: { anyOf: [] }\n",
            "Paid.",
            &["`fields` is no JSON Schema: `anyOf`: this keyword is not supported"],
        );
        check(
            file,
            "fields: { properties: { a: {} } }\n",
            "{{a}} {{b}}",
            &["`{{b}}` in the text names no field of `fields`"],
        );
        check(
            file,
            "client: exec\ncommand: echo {{a}}\n",
            "",
            &["`{{a}}` is not filled in: a command gets nothing of what was delivered"],
        );
        check("webhooks/a b.md", "", "Paid.", &["the id `a b` cannot stand in an address"]);
        let open = parse(Kind::Webhook, Path::new(file), b"---\nsignature: github\n---\nPaid.\n", &defaults());
        let said: Vec<&str> = open.problems.iter().map(|problem| &*problem.message).collect();
        assert_eq!(said, ["this webhook has the main session's tools, and others choose what it is given"]);
        let misplaced = parse(
            Kind::Routine,
            Path::new("routines/a.md"),
            b"---\ncron: '@daily'\nper_minute: 3\n---\nx\n",
            &defaults(),
        );
        assert_eq!(misplaced.problems[0].message, "`per_minute` has no effect on a routine");
    }

    #[test]
    fn fields_are_told_from_text() {
        use Part::{Field, Text};
        let check = |text: &str, expected: &[Part<'_>]| assert_eq!(parts(text).collect::<Vec<_>>(), expected, "{text}");
        check("", &[]);
        check("no field", &[Text("no field")]);
        check("{{a}}", &[Field("a")]);
        check("x {{ a.b.0 }}{{c-d_e}} y", &[Text("x "), Field("a.b.0"), Field("c-d_e"), Text(" y")]);
        check("{{{a}}}", &[Text("{"), Field("a"), Text("}")]);
        check("{{}} {{a b}} {{a", &[Text("{{}} {{a b}} {{a")]);
        check("{{ {{a}}", &[Text("{{ "), Field("a")]);
        check("{a}", &[Text("{a}")]);
    }
}
