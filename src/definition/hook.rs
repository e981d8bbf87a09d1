//! What a webhook's file says of its deliveries: who may send, how often, and what.

use serde::{Deserialize, Serialize};

pub use super::payload_schema::{PayloadFault, PayloadSchema};

/// What a webhook's deliveries must be like.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// How the sender shows who it is.
    pub signature: Signature,
    /// The variable that holds the secret which the sender shares.
    pub secret_env: String,
    /// What a delivery must be like; `None`: any object.
    pub fields: Option<PayloadSchema>,
    /// At most so many deliveries a minute.
    pub per_minute: u32,
}

/// How a sender shows that it has the secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signature {
    /// It presents the secret.
    #[default]
    Bearer,
    /// As GitHub signs: `X-Hub-Signature-256`.
    Github,
    /// As Stripe signs: `Stripe-Signature`.
    Stripe,
    /// As Slack signs: `X-Slack-Signature`.
    Slack,
}

/// A part of a webhook's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// As it is written.
    Text(&'a str),
    /// `{{name}}`: a field of what was delivered; one within another by a full stop, an item of a list by its number.
    Field(&'a str),
}

/// The parts of a text. What is no name between braces is text.
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

/// The fields that a text names.
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
    use super::*;

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
