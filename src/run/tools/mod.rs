//! The implementation of our MCP tools. The hook has approved each call; this module is the second layer, and does the work.
//!
//! Every refusal is a sentence that says what to do instead.

mod embed;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::forks::Forks;
use super::host::Host;
use crate::agent::ToolAnswer;
use crate::bot::budget::CAPACITY;
use crate::definition::Urgency;
use crate::journal::{Denial, EventKind, NewMessage};
use crate::mcp::tools::{DiscordEmbed, EnterFork, FollowUpChain, PingUser, ReportUpdates, SpawnAgent};
use crate::policy::{BOT, OWN_SERVER, ToolLists};
use crate::run::spawn::SpawnRequest;
use crate::schedule::buttons_of;

/// The bare names of the tools, without the client's prefix.
pub const PING_USER: &str = "ping_user";
/// See [`PING_USER`].
pub const DISCORD_EMBED: &str = "discord_embed";
/// See [`PING_USER`].
pub const REPORT_UPDATES: &str = "report_updates";
/// See [`PING_USER`].
pub const FOLLOW_UP_CHAIN: &str = "follow_up_chain";
/// See [`PING_USER`].
pub const ENTER_FORK: &str = "enter_fork";
/// See [`PING_USER`].
pub const SPAWN_AGENT: &str = "spawn_agent";
/// The same tool under another name.
pub const SESSIONS_SPAWN: &str = crate::mcp::tools::spawn_agent::OTHER_NAME;

/// Maximum length of a message to the person, and of a report to the main session, in characters.
const LONGEST_MESSAGE: usize = 8000;
/// See [`LONGEST_MESSAGE`].
pub(super) const LONGEST_REPORT: usize = 4000;

/// Maximum number of reports of one run.
const MAX_REPORTS: u32 = 20;

/// Maximum number of a run's critical messages, which no budget limits.
const MAX_CRITICAL: u32 = CAPACITY;

/// The messages and reports that a run has sent.
#[derive(Debug, Default)]
pub struct DeliveryState {
    /// Whether it has sent the person a message.
    pub sent: bool,
    /// Number of its critical messages.
    pub critical: u32,
    /// Number of its reports to the main session.
    pub reports: u32,
}

/// Serves one call.
pub async fn call(host: &Host, name: &str, arguments: Value) -> ToolAnswer {
    let result = match name {
        _ if !host.tools.iter().any(|tool| tool == name) => Err(format!("{name} is not among this job's tools.")),
        PING_USER => ping(host, arguments).await,
        DISCORD_EMBED => embed(host, arguments).await,
        REPORT_UPDATES => report(host, arguments).await,
        FOLLOW_UP_CHAIN => follow_up(host, arguments).await,
        ENTER_FORK => enter_fork(host, arguments).await,
        SPAWN_AGENT | SESSIONS_SPAWN => spawn(host, arguments).await,
        _ => Err(format!("there is no tool {name}.")),
    };
    match result {
        Ok(text) => ToolAnswer { text, is_error: false },
        Err(text) => ToolAnswer { text, is_error: true },
    }
}

async fn ping(host: &Host, arguments: Value) -> Result<String, String> {
    let PingUser { message, critical } = read(PING_USER, arguments)?;
    let message = filled(PING_USER, &message, LONGEST_MESSAGE)?;
    let message = host.message(format!("[bg] {message}")).with_buttons(buttons_of(&host.definition));
    send(host, PING_USER, message, critical).await
}

async fn embed(host: &Host, arguments: Value) -> Result<String, String> {
    let message: DiscordEmbed = read(DISCORD_EMBED, arguments)?;
    embed::check(&message)?;
    let is_background = host.definition.background().is_some();
    let mut rich = embed::rich(&message, if is_background { "bg" } else { &host.bot_name });
    if is_background {
        // As above a plain message, so that it does not pass for one of the service's own, such as a question.
        rich.title = format!("[bg] {}", rich.title);
    }
    let new = NewMessage { rich: Some(rich.clone()), ..host.message(embed::as_text(&rich)) };
    if is_background {
        return send(host, DISCORD_EMBED, new, message.critical).await;
    }
    record(host, new).await?;
    host.delivery.lock().await.sent = true;
    Ok("Sent.".into())
}

/// Sends a background job's one message, if nothing prevents it. `tool` is the tool that was called.
async fn send(host: &Host, tool: &str, mut message: NewMessage, critical: bool) -> Result<String, String> {
    if host.definition.background().is_some_and(|background| !background.restrictions.allow_ping) {
        return Err("This job may not reach the user (allow_ping: false). Finish without a message.".into());
    }
    // What a job makes or spawns gets no message past the budget: there may be any number of it.
    let critical = critical && !host.definition.is_made_by_run();
    // Held until the message is recorded, so that two concurrent calls send one message.
    let mut delivery = host.delivery.lock().await;
    let instead = "Put it into report_updates if you have that, or leave it to a later job; only what cannot wait goes through, with critical: true.";
    if delivery.sent && !critical {
        return Err(format!("You have already sent a message in this run, and one is the most. {instead}"));
    }
    if critical && delivery.critical == MAX_CRITICAL {
        return Err(format!(
            "You have already sent {MAX_CRITICAL} critical messages in this run, and that is the most."
        ));
    }
    delivery.critical += u32::from(critical);
    // The file's urgency does not allow a second message; only the agent's `critical` does.
    let critical = critical || (host.definition.urgency == Urgency::Critical && !host.definition.is_made_by_run());
    if host.bot.main.is_busy(host.clock.now()) && !critical {
        let reason = "The user is in the middle of a conversation.";
        host.record_with(held_back(tool, &message, "conversation", reason), Some("held back")).await;
        return Err(format!("{reason} {instead}"));
    }
    if let Err(reason) = host.spend_message(tool, &message, critical).await? {
        return Err(format!("{reason} {instead}"));
    }
    if critical {
        (message.urgency, message.digest) = (Urgency::Critical, false);
    }
    record(host, message).await?;
    delivery.sent = true;
    Ok("Sent to the user.".into())
}

/// Returns the record of a message that was not sent.
fn held_back(tool: &str, message: &NewMessage, layer: &str, reason: &str) -> Denial {
    Denial {
        tool: format!("{OWN_SERVER}__{tool}"),
        input: serde_json::json!({ "message": message.text }),
        layer: layer.to_owned(),
        rule: None,
        reason: reason.to_owned(),
    }
}

async fn record(host: &Host, message: NewMessage) -> Result<(), String> {
    fail_point!(BeforeMessage);
    let recorded = host.journal.message(message).await;
    fail_point!(MessageRecorded);
    recorded.map(drop).map_err(|error| format!("The message was not sent: {error}."))
}

async fn report(host: &Host, arguments: Value) -> Result<String, String> {
    let ReportUpdates { message } = read(REPORT_UPDATES, arguments)?;
    let message = filled(REPORT_UPDATES, &message, LONGEST_REPORT)?;
    let mut delivery = host.delivery.lock().await;
    if delivery.reports == MAX_REPORTS {
        return Err(format!("This run has reported {MAX_REPORTS} times already, and that is the most."));
    }
    let text = format!("{}: {message}", host.definition.title());
    host.journal.report(&host.run, text).await.map_err(|error| format!("The report was not kept: {error}."))?;
    delivery.reports += 1;
    Ok("Kept: the main session reads it at its next turn.".into())
}

async fn follow_up(host: &Host, arguments: Value) -> Result<String, String> {
    let FollowUpChain { minutes_from_now } = read(FOLLOW_UP_CHAIN, arguments)?;
    host.schedule_check(Duration::from_secs(60 * u64::from(minutes_from_now))).await
}

async fn enter_fork(host: &Host, arguments: Value) -> Result<String, String> {
    let EnterFork { topic } = read(ENTER_FORK, arguments)?;
    let topic = topic.trim();
    if topic.is_empty() {
        return Err(format!("{ENTER_FORK}: `topic` is empty."));
    }
    if host.is_beside {
        return Err("This is a fork already. Talk about it here.".into());
    }
    let channel = host.definition.channel.clone();
    let fork = host.forks().open(Some(topic.to_owned()), None, channel).await;
    fork.map_err(|refusal| format!("No fork was opened: {refusal}."))?;
    Ok("Opened. What the user says next is said there, and you do not see it: end your turn now.".into())
}

async fn spawn(host: &Host, arguments: Value) -> Result<String, String> {
    let SpawnAgent { prompt, agent, tools, timeout_minutes } = read(SPAWN_AGENT, arguments.clone())?;
    let tools = tools.map(|tools| ToolLists::parse(tools.allow.as_deref(), tools.deny.as_deref(), &BOT)).transpose();
    let tools = tools.map_err(|error| format!("{SPAWN_AGENT}: {error}; no agent was started."))?;
    let timeout = timeout_minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes.max(1))));
    let session = match host.spawn_agent(SpawnRequest { prompt, agent, tools, timeout }).await {
        Ok(session) => session,
        Err(why) => {
            let tool = format!("{OWN_SERVER}__{SPAWN_AGENT}");
            let denial = Denial { tool, input: arguments, layer: "cap".into(), rule: None, reason: why.to_string() };
            host.record_with(denial, Some("no agent was started")).await;
            return Err(format!("No agent was started: {why}."));
        }
    };
    Ok(format!("Started: session {session}. It works by itself from now on, and its result is kept there."))
}

fn read<A: DeserializeOwned>(tool: &str, arguments: Value) -> Result<A, String> {
    serde_json::from_value(arguments).map_err(|error| format!("{tool}: {error}"))
}

fn filled<'a>(tool: &str, message: &'a str, most: usize) -> Result<&'a str, String> {
    let message = message.trim();
    match message.chars().count() {
        0 => Err(format!("{tool}: `message` is empty.")),
        long if long > most => {
            Err(format!("{tool}: `message` has {long} characters, and {most} are the most. Shorten it."))
        }
        _ => Ok(message),
    }
}

impl Host {
    /// Schedules the next check of this run's chain.
    ///
    /// # Errors
    /// A sentence for the agent. Nothing has changed then.
    pub(super) async fn schedule_check(&self, delay: Duration) -> Result<String, String> {
        // A refused call has no side effect and is not marked, so that the run may still be repeated.
        if self.next_check.is_open() {
            let marked = self.mark(FOLLOW_UP_CHAIN).await;
            marked.map_err(|error| format!("Nothing was scheduled, since it could not be recorded: {error}."))?;
        }
        let scheduled = self.next_check.schedule(delay, self.clock.now(), &self.definitions).await?;
        self.events.add(EventKind::Note { text: scheduled.clone() });
        Ok(scheduled)
    }

    fn forks(&self) -> Forks {
        let (journal, spawner) = (self.journal.clone(), self.spawner.clone());
        Forks { journal, spawner, main: self.bot.main.clone(), clock: self.clock.clone() }
    }

    /// Takes a message from the budget. The inner error says why a message that is not critical was held back; it is recorded.
    ///
    /// # Errors
    /// A sentence if the journal cannot be written.
    pub(super) async fn spend_message(
        &self,
        tool: &str,
        message: &NewMessage,
        critical: bool,
    ) -> Result<Result<(), &'static str>, String> {
        const EMPTY: &str = "The ping budget is empty.";
        let taken = self.bot.budget.take(self.clock.now()).await;
        if taken.map_err(|error| format!("The message was not sent: {error}."))? || critical {
            return Ok(Ok(()));
        }
        self.record_with(held_back(tool, message, "budget", EMPTY), Some("held back")).await;
        if let Err(error) = self.journal.count_suppressed().await {
            tracing::error!(run = %self.run, %error, "a message that was held back could not be counted");
        }
        Ok(Err(EMPTY))
    }

    /// Creates a message from this run.
    pub(super) fn message(&self, text: String) -> NewMessage {
        NewMessage::said_by(&self.run, &self.definition, text)
    }
}
