//! JSON bodies of requests to Discord. Texts are data: they mention nobody, load no previews and stay within Discord's limits.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use twilight_model::id::Id;
use twilight_model::id::marker::MessageMarker;

use crate::channel::commands::{COMMANDS, ChatCommand, is_block};
use crate::channel::progress::interrupt;
use crate::channel::split::{length, split};
use crate::channel::{Outgoing, OutgoingButton, terminal};
use crate::definition::DefinitionId;
use crate::journal::RichContent;

/// Maximum length of a message's text, in UTF-16 code units.
pub(super) const LONGEST: usize = 2000;

/// Maximum number of messages that answer one command. Discord's limit for an application without a server.
const MAX_ANSWERS: usize = 5;

/// Message flags: no link previews; visible to one person only; no notification.
pub(super) const NO_PREVIEWS: u64 = 1 << 2;
pub(super) const FOR_ONE: u64 = 1 << 6;
const QUIET: u64 = 1 << 12;

/// Returns the Discord messages that show one of ours; at least one.
pub(super) fn messages(message: &Outgoing) -> Vec<Value> {
    let mut bodies = match message.rich.as_ref().and_then(embed) {
        Some(embed) => vec![json!({ "embeds": [embed], "allowed_mentions": { "parse": [] } })],
        None => texts(&message.text),
    };
    let rows = rows(&message.buttons);
    if let Some(last) = bodies.last_mut().filter(|_| !rows.is_empty()) {
        last["components"] = Value::Array(rows);
    }
    bodies
}

/// Returns the Discord messages that show a text; at least one.
pub(super) fn texts(text: &str) -> Vec<Value> {
    let mut parts = split(&terminal::plain_lines(text), LONGEST);
    if parts.is_empty() {
        parts.push("(a message without text)".into());
    }
    parts.iter().map(|part| self::text(part)).collect()
}

/// Returns one message with a text of at most [`LONGEST`].
pub(super) fn text(text: &str) -> Value {
    json!({ "content": text, "flags": NO_PREVIEWS, "allowed_mentions": { "parse": [] } })
}

/// Like [`texts`], but visible only to the person who asked.
pub(super) fn for_one(text: &str) -> Vec<Value> {
    let mut bodies = texts(text);
    bodies.iter_mut().for_each(|body| body["flags"] = json!(NO_PREVIEWS | FOR_ONE));
    bodies
}

/// Returns a status message. With `turn`, the turn is running and the message has an interrupt button.
pub(super) fn status(text: &str, turn: Option<&DefinitionId>) -> Value {
    let mut body = self::text(text);
    if let Some(turn) = turn {
        body["components"] = Value::Array(rows(&[interrupt(turn)]));
    }
    body
}

/// Returns the output of a command, visible only to the person who asked.
pub(super) fn printed(text: &str) -> Vec<Value> {
    let text = text.trim_end();
    if !is_block(text) {
        return for_one(text);
    }
    // The output must not end the block.
    let mut bodies = for_one(&format!("```\n{}\n```", text.replace("```", "'''")));
    if bodies.len() > MAX_ANSWERS {
        bodies.truncate(MAX_ANSWERS - 1);
        bodies.extend(for_one("-# It is too long for Discord. The same command in a terminal shows the rest."));
    }
    bodies
}

/// Makes Discord create only one message for this nonce within a few minutes.
pub(super) fn once(mut body: Value, nonce: &str) -> Value {
    body["nonce"] = json!(nonce);
    body["enforce_nonce"] = json!(true);
    body
}

/// Keeps a new message from notifying the person.
pub(super) fn quiet(mut body: Value) -> Value {
    body["flags"] = json!(body["flags"].as_u64().unwrap_or_default() | QUIET);
    body
}

/// Adds a reply reference. The person may have deleted the message.
pub(super) fn replying(mut body: Value, answered: Option<Id<MessageMarker>>) -> Value {
    if let Some(answered) = answered {
        body["message_reference"] = json!({ "message_id": answered, "fail_if_not_exists": false });
    }
    body
}

/// Returns the nonce of one part of a message, in at most 25 characters. The time tells apart the messages of different journals.
pub(super) fn nonce(number: i64, at: DateTime<Utc>, part: usize) -> String {
    format!("{:x}.{:x}.{part}", number & 0xfff_ffff_ffff, at.timestamp() & 0xffff_ffff)
}

/// Completes a body so that it replaces the whole content of a message.
pub(super) fn edit(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        // Remove the previous content.
        for empty in ["embeds", "components"] {
            fields.entry(empty).or_insert_with(|| json!([]));
        }
        fields.entry("content").or_insert_with(|| json!(""));
        // Without this, the no-previews flag would hide our own embed.
        fields.entry("flags").or_insert_with(|| json!(0));
    }
    body
}

/// Replaces a message's buttons by one disabled button with the outcome, in one line.
pub(super) fn settled(outcome: &str) -> Value {
    let label = label(outcome.trim().lines().next().unwrap_or_default());
    json!({ "components": [row(&[json!({ "type": 2, "style": 2, "label": label, "custom_id": "settled", "disabled": true })])] })
}

/// Whether [`settled`] shows the whole outcome.
pub(super) fn fits_a_label(outcome: &str) -> bool {
    label(outcome) == outcome.trim()
}

/// Returns the commands in the form that Discord registers.
pub(super) fn commands() -> Value {
    COMMANDS.iter().map(command).collect()
}

fn command(command: &ChatCommand) -> Value {
    let options: Vec<Value> = command
        .argument
        .iter()
        .map(|argument| {
            json!({ "type": 3, "name": argument.name, "description": argument.about, "required": argument.required })
        })
        .collect();
    // For a person who has added the application to their account, in the conversation with the bot.
    json!({
        "type": 1, "name": command.name, "description": command.about, "options": options,
        "integration_types": [1], "contexts": [1],
    })
}

fn rows(buttons: &[OutgoingButton]) -> Vec<Value> {
    let button = |button: &OutgoingButton| json!({ "type": 2, "style": 2, "label": label(&button.label), "custom_id": button.id });
    buttons.chunks(5).take(5).map(|five| row(&five.iter().map(button).collect::<Vec<_>>())).collect()
}

fn row(buttons: &[Value]) -> Value {
    json!({ "type": 1, "components": buttons })
}

fn label(text: &str) -> String {
    let text = terminal::plain(text);
    let text = text.trim();
    match split(text, 100).first() {
        None => "…".into(),
        Some(_) if length(text) <= 80 => text.to_owned(),
        Some(_) => {
            let mut room = 79_usize;
            let fits = |c: &char| room.checked_sub(c.len_utf16()).inspect(|left| room = *left).is_some();
            format!("{}…", text.chars().take_while(fits).collect::<String>().trim_end())
        }
    }
}

/// Returns the embed of a message. Returns `None` if it exceeds a limit; the text has the same content.
fn embed(rich: &RichContent) -> Option<Value> {
    let clean = |text: &str| terminal::plain_lines(text).trim().to_owned();
    let mut sum = 0;
    let mut fits = |text: &str, most: usize| {
        sum += length(text);
        (length(text) <= most).then_some(())
    };
    let (title, description, footer) = (clean(&rich.title), clean(&rich.description), clean(&rich.footer));
    fits(&title, 256)?;
    fits(&description, 4096)?;
    fits(&footer, 2048)?;
    let mut fields = Vec::new();
    for (name, value) in &rich.fields {
        let (name, value) = (clean(name), clean(value));
        fits(&name, 256)?;
        fits(&value, 1024)?;
        if name.is_empty() || value.is_empty() {
            return None;
        }
        fields.push(json!({ "name": name, "value": value }));
    }
    if sum > 6000 || fields.len() > 25 || (title.is_empty() && description.is_empty()) {
        return None;
    }
    let mut embed = Map::new();
    for (key, text) in [("title", title), ("description", description)] {
        if !text.is_empty() {
            embed.insert(key.into(), json!(text));
        }
    }
    if !footer.is_empty() {
        embed.insert("footer".into(), json!({ "text": footer }));
    }
    if !fields.is_empty() {
        embed.insert("fields".into(), Value::Array(fields));
    }
    if let Some(color) = rich.color.filter(|color| *color <= 0xff_ffff) {
        embed.insert("color".into(), json!(color));
    }
    Some(Value::Object(embed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_short_and_names_the_part() {
        let at = "2026-11-23T12:00:00Z".parse().unwrap();
        assert_eq!(nonce(17, at, 0), "11.6b042ac0.0");
        assert!(nonce(i64::MAX, DateTime::<Utc>::MAX_UTC, 99).len() <= 25);
    }

    #[test]
    fn what_a_command_prints_stays_in_its_block() {
        let link = printed("Open this:\n\nhttps://example.org/login\n\nGive the code.\n");
        assert_eq!(link[0]["content"], "Open this:\n\nhttps://example.org/login\n\nGive the code.");
        let bodies = printed("a  b\n```\n@everyone\n");
        assert_eq!(bodies[0]["content"], "```\na  b\n'''\n@everyone\n```");
        let bodies = printed(&"a line of a table\n".repeat(1000));
        assert_eq!(bodies.len(), MAX_ANSWERS);
        assert!(bodies[4]["content"].as_str().unwrap().contains("too long"));
        assert!(bodies.iter().all(|body| body["flags"] == 68));
    }

    #[test]
    fn what_does_not_fit_into_an_embed_is_text() {
        let rich = |description: &str| RichContent {
            title: "Build".into(),
            description: description.into(),
            color: Some(0xff_0000),
            fields: vec![("branch".into(), "main".into())],
            buttons: Vec::new(),
            footer: "from ci".into(),
        };
        let fitting = json!({
            "title": "Build", "description": "green", "color": 0xff_0000, "footer": { "text": "from ci" },
            "fields": [{ "name": "branch", "value": "main" }],
        });
        assert_eq!(embed(&rich("green")), Some(fitting));
        assert_eq!(embed(&rich(&"x".repeat(4097))), None);
    }

    #[test]
    fn labels_are_never_empty_and_never_too_long() {
        assert_eq!(label(" \u{7}"), "…");
        assert_eq!(label("Snooze"), "Snooze");
        assert_eq!(label(&"😀".repeat(100)), format!("{}…", "😀".repeat(39)));
        assert_eq!(label(&"a".repeat(100)), format!("{}…", "a".repeat(79)));
    }
}
