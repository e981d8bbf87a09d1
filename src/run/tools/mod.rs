//! What our MCP tools do. The hook has approved the call; what stands here is the second wall and the effect.
//!
//! Every refusal is a sentence that says what to do instead.

mod embed;

use serde_json::Value;

pub use embed::Embed;

use super::host::Host;
use crate::agent::ToolAnswer;
use crate::journal::NewMessage;

/// Bare names, as the client's `mcp__discord__…` ends.
pub const PING_USER: &str = "ping_user";
/// See [`PING_USER`].
pub const DISCORD_EMBED: &str = "discord_embed";
/// See [`PING_USER`].
pub const REPORT_UPDATES: &str = "report_updates";
/// See [`PING_USER`].
pub const FOLLOW_UP_CHAIN: &str = "follow_up_chain";

/// What a run has told whom.
#[derive(Debug, Default)]
pub struct Reach {
    /// It has sent the person a message.
    pub sent: bool,
    /// It has reported to the main session.
    pub reported: bool,
}

/// Serves one call.
pub async fn call(host: &Host, name: &str, arguments: Value) -> ToolAnswer {
    let result = if !host.tools.iter().any(|tool| tool == name) {
        Err(format!("{name} is not among this job's tools."))
    } else {
        match name {
            PING_USER => ping(host, &arguments).await,
            DISCORD_EMBED => embed(host, &arguments).await,
            REPORT_UPDATES => report(host, &arguments).await,
            _ => Err(format!("there is no tool {name}.")),
        }
    };
    match result {
        Ok(text) => ToolAnswer { text, is_error: false },
        Err(text) => ToolAnswer { text, is_error: true },
    }
}

async fn ping(host: &Host, arguments: &Value) -> Result<String, String> {
    let message = text(arguments, "message", PING_USER)?;
    send(host, format!("[bg] {message}"), critical(arguments)).await
}

async fn embed(host: &Host, arguments: &Value) -> Result<String, String> {
    let embed = Embed::from_arguments(arguments)?;
    if host.definition.background().is_some() {
        return send(host, embed.as_text("bg"), critical(arguments)).await;
    }
    record(host, embed.as_text(&host.bot.name)).await.map(|()| "Sent.".into())
}

/// Sends a background job's one message, if nothing stands against it.
async fn send(host: &Host, text: String, critical: bool) -> Result<String, String> {
    let allowed = host.definition.background().is_none_or(|background| background.restrictions.allow_ping);
    if !allowed {
        return Err("This job may not reach the user (allow_ping: false). Finish without a message.".into());
    }
    // Held until the message is recorded: two calls at once are one message.
    let mut reach = host.reach.lock().await;
    if !critical {
        if reach.sent {
            return Err("You have already sent a message in this run, and one is the most. Finish now; put what is left into report_updates \
                        if you have it. Only something that cannot wait goes through, with critical: true."
                .into());
        }
        if host.bot.main.is_busy() {
            return Err("The user is in the middle of a conversation. Leave it to report_updates or to a later job; only something that \
                        cannot wait goes through, with critical: true."
                .into());
        }
    }
    let taken = host.bot.budget.take(host.clock.now()).await.map_err(|error| format!("The message was not sent: {error}."))?;
    if !taken && !critical {
        return Err("The message budget is empty. Leave it to report_updates or to a later job; only something that cannot wait goes \
                    through, with critical: true."
            .into());
    }
    record(host, text).await?;
    reach.sent = true;
    Ok("Sent to the user.".into())
}

async fn record(host: &Host, text: String) -> Result<(), String> {
    let message = NewMessage::of_run(&host.run, &host.definition.id, text);
    host.journal.message(message).await.map(|_| ()).map_err(|error| format!("The message was not sent: {error}."))
}

async fn report(host: &Host, arguments: &Value) -> Result<String, String> {
    let text = text(arguments, "message", REPORT_UPDATES)?;
    let mut reach = host.reach.lock().await;
    host.journal
        .report(&host.run, format!("{}: {text}", host.definition.title()))
        .await
        .map_err(|error| format!("The report was not kept: {error}."))?;
    reach.reported = true;
    Ok("Kept: the main session reads it at its next turn.".into())
}

fn text<'a>(arguments: &'a Value, field: &str, tool: &str) -> Result<&'a str, String> {
    match arguments.get(field).and_then(Value::as_str).map(str::trim) {
        Some(text) if !text.is_empty() => Ok(text),
        Some(_) => Err(format!("{tool}: `{field}` is empty.")),
        None => Err(format!("{tool}: `{field}` is missing, or not text.")),
    }
}

fn critical(arguments: &Value) -> bool {
    arguments.get("critical").and_then(Value::as_bool).unwrap_or(false)
}
