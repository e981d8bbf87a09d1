//! `discord_embed`: a rich message, and how it reads as plain text.

use serde::{Deserialize, Serialize};

/// A rich message, in Discord's own terms and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embed {
    /// At most 256 characters.
    pub title: String,
    /// At most 4,096 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `#RRGGBB`, or the number it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<Color>,
    /// At most 25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// At most 25; `agent:<prompt>` as an action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
}

/// A color as agents write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Color {
    /// `0x336699` as a number.
    Number(u32),
    /// `#336699`, or a name.
    Text(String),
}

/// A named value in a rich message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// At most 256 characters.
    pub name: String,
    /// At most 1,024 characters.
    pub value: String,
    /// Whether it may stand beside others.
    #[serde(default)]
    pub inline: bool,
}

/// Something the person can press.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// At most 80 characters.
    pub label: String,
    /// `agent:<prompt>`: what the main session is asked when it is pressed.
    pub action: String,
}

impl Embed {
    /// Reads a tool call's arguments.
    ///
    /// # Errors
    /// A sentence for the agent: the field and its limit.
    pub fn from_arguments(arguments: &serde_json::Value) -> Result<Self, String> {
        let mut arguments = arguments.clone();
        if let Some(object) = arguments.as_object_mut() {
            object.remove("critical");
        }
        let embed: Self = serde_json::from_value(arguments).map_err(|error| format!("discord_embed: {error}"))?;
        embed.check().map(|()| embed)
    }

    fn check(&self) -> Result<(), String> {
        let limit = |what: &str, text: &str, most: usize| {
            let count = text.chars().count();
            if count > most { Err(format!("discord_embed: {what} has {count} characters, at most {most} fit")) } else { Ok(()) }
        };
        if self.title.trim().is_empty() {
            return Err("discord_embed: `title` is empty".into());
        }
        limit("`title`", &self.title, 256)?;
        limit("`description`", self.description.as_deref().unwrap_or_default(), 4096)?;
        for (list, count) in [("fields", self.fields.len()), ("buttons", self.buttons.len())] {
            if count > 25 {
                return Err(format!("discord_embed: {count} {list}, at most 25 fit"));
            }
        }
        for field in &self.fields {
            limit("a field's `name`", &field.name, 256)?;
            limit("a field's `value`", &field.value, 1024)?;
        }
        for button in &self.buttons {
            limit("a button's `label`", &button.label, 80)?;
            if !button.action.starts_with("agent:") {
                return Err(format!("discord_embed: the button `{}` needs an action of the form `agent:<prompt>`", button.label));
            }
        }
        Ok(())
    }

    /// The message as lines of text, for channels without rich messages.
    #[must_use]
    pub fn as_text(&self, footer: &str) -> String {
        let mut lines = vec![self.title.clone()];
        lines.extend(self.description.iter().filter(|text| !text.is_empty()).cloned());
        lines.extend(self.fields.iter().map(|field| format!("{}: {}", field.name, field.value)));
        if !self.buttons.is_empty() {
            let labels: Vec<String> = self.buttons.iter().map(|button| format!("[{}]", button.label)).collect();
            lines.push(labels.join(" "));
        }
        lines.push(format!("— {footer}"));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_as_text() {
        let embed = Embed::from_arguments(&json!({
            "title": "Mail", "description": "2 new", "color": 255, "critical": true,
            "fields": [{"name": "From", "value": "the bank"}],
            "buttons": [{"label": "Read it", "action": "agent:read the mail from the bank"}],
        }))
        .unwrap();
        assert_eq!(embed.as_text("bg"), "Mail\n2 new\nFrom: the bank\n[Read it]\n— bg");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_field_and_the_limit() {
        let check = |arguments: serde_json::Value, expect: &str| {
            let error = Embed::from_arguments(&arguments).unwrap_err();
            assert!(error.contains(expect), "{arguments}: {error}");
        };
        check(json!({}), "missing field `title`");
        check(json!({"title": " "}), "`title` is empty");
        check(json!({"title": "x".repeat(257)}), "257 characters, at most 256");
        check(json!({"title": "x", "description": "é".repeat(4097)}), "at most 4096");
        check(json!({"title": "x", "fields": vec![json!({"name": "a", "value": "b"}); 26]}), "26 fields");
        check(json!({"title": "x", "buttons": [{"label": "a", "action": "rm -rf"}]}), "agent:<prompt>");
        check(json!({"title": "x", "nonsense": 1}), "unknown field `nonsense`");
    }
}
