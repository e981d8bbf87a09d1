//! Rich messages: the check of their limits, and their form as plain text.

use crate::journal::{Button, RichContent};
use crate::mcp::tools::DiscordEmbed;

/// Discord's limits, in characters, and less for a title, which gets a mark before it. They apply to every channel, so that a message fits
/// any channel.
const LIMITS: [(&str, usize); 5] = [
    ("`title`", 250),
    ("`description`", 4096),
    ("a field's `name`", 256),
    ("a field's `value`", 1024),
    ("a button's `label`", 80),
];

/// Maximum number of fields, and of buttons.
const MOST: usize = 25;

/// Checks that a message fits.
///
/// # Errors
/// A sentence for the agent that names the field and its limit.
pub(super) fn check(embed: &DiscordEmbed) -> Result<(), String> {
    let [title, description, name, value, label] = LIMITS;
    let fits = |(what, most): (&str, usize), text: &str| match text.chars().count() {
        count if count > most => Err(format!("discord_embed: {what} has {count} characters, at most {most} fit")),
        _ => Ok(()),
    };
    if embed.title.trim().is_empty() {
        return Err("discord_embed: `title` is empty".into());
    }
    fits(title, &embed.title)?;
    fits(description, embed.description.as_deref().unwrap_or_default())?;
    for (list, count) in [("fields", embed.fields.len()), ("buttons", embed.buttons.len())] {
        if count > MOST {
            return Err(format!("discord_embed: {count} {list}, at most {MOST} fit"));
        }
    }
    for field in &embed.fields {
        fits(name, &field.name)?;
        fits(value, &field.value)?;
    }
    for button in &embed.buttons {
        fits(label, &button.label)?;
        if !button.action.starts_with("agent:") {
            return Err(format!(
                "discord_embed: the button `{}` needs an action of the form `agent:<prompt>`",
                button.label
            ));
        }
    }
    Ok(())
}

/// The named colours.
const COLORS: [(&str, u32); 6] = [
    ("blue", 0x34_98db),
    ("green", 0x2e_cc71),
    ("orange", 0xe6_7e22),
    ("purple", 0x9b_59b6),
    ("red", 0xe7_4c3c),
    ("yellow", 0xf1_c40f),
];

/// Converts a message for channels with rich messages.
pub(super) fn rich(embed: &DiscordEmbed, footer: &str) -> RichContent {
    let color = embed.color.as_deref().and_then(|color| {
        let named = COLORS.iter().find(|(name, _)| *name == color).map(|(_, value)| *value);
        named.or_else(|| u32::from_str_radix(color.strip_prefix('#')?, 16).ok().filter(|value| *value <= 0xff_ffff))
    });
    RichContent {
        title: embed.title.clone(),
        description: embed.description.clone().unwrap_or_default(),
        color,
        fields: embed.fields.iter().map(|field| (field.name.clone(), field.value.clone())).collect(),
        buttons: embed
            .buttons
            .iter()
            .map(|button| Button { label: button.label.clone(), action: button.action.clone() })
            .collect(),
        footer: footer.to_owned(),
    }
}

/// Formats a message as lines, for channels without rich messages.
pub(super) fn as_text(rich: &RichContent) -> String {
    let mut lines = vec![rich.title.clone()];
    lines.extend(Some(&rich.description).filter(|text| !text.is_empty()).map(|text| closed(text)));
    lines.extend(rich.fields.iter().map(|(name, value)| closed(&format!("{name}: {value}"))));
    if !rich.buttons.is_empty() {
        let labels: Vec<String> = rich.buttons.iter().map(|button| format!("[{}]", button.label)).collect();
        lines.push(labels.join(" "));
    }
    lines.push(format!("— {}", rich.footer));
    lines.join("\n")
}

/// Closes a text's open code block, so that it does not include the text that follows.
fn closed(text: &str) -> String {
    let end = if text.matches("```").count() % 2 == 1 { "\n```" } else { "" };
    format!("{text}{end}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn embed(arguments: Value) -> DiscordEmbed {
        serde_json::from_value(arguments).unwrap()
    }

    #[test]
    fn reads_as_text() {
        let embed = embed(json!({
            "title": "Mail", "description": "2 new",
            "fields": [{"name": "From", "value": "the bank"}],
            "buttons": [{"label": "Read it", "action": "agent:read the mail from the bank"}],
        }));
        assert_eq!(check(&embed), Ok(()));
        assert_eq!(as_text(&rich(&embed, "bg")), "Mail\n2 new\nFrom: the bank\n[Read it]\n— bg");
        let open = RichContent { description: "```\nls".into(), ..rich(&embed, "bg") };
        assert!(as_text(&open).starts_with("Mail\n```\nls\n```\nFrom: the bank\n"), "{}", as_text(&open));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_field_and_the_limit() {
        let refused = |arguments: Value, expect: &str| {
            let error = check(&embed(arguments)).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        refused(json!({"title": " "}), "`title` is empty");
        refused(json!({"title": "x".repeat(251)}), "251 characters, at most 250");
        refused(json!({"title": "x", "description": "é".repeat(4097)}), "at most 4096");
        refused(json!({"title": "x", "fields": vec![json!({"name": "a", "value": "b"}); 26]}), "26 fields");
        refused(json!({"title": "x", "buttons": [{"label": "a", "action": "rm -rf"}]}), "agent:<prompt>");
        // Such a button would answer a question.
        refused(json!({"title": "x", "buttons": [{"label": "a", "action": "answer:3:always"}]}), "agent:<prompt>");
    }
}
