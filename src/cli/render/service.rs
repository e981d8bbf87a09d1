//! Renders the replies of the service.

use serde_json::json;

use super::View;
use crate::app::{LoginState, ServerTools, ServiceReply, times};
use crate::channel::terminal::plain;
use crate::cli::output::{FAINT, Output, STRONG, paint};
use crate::journal::{Delivery, DeliveryState, RunState};

/// Renders a reply as a sentence, with a hint where to see the outcome.
#[expect(clippy::too_many_lines, reason = "a table: a row a reply")]
pub(super) fn reply(reply: &ServiceReply, view: &View, output: &mut Output) {
    let done = match reply {
        ServiceReply::Fired { id, run, paused } => {
            if view.json {
                output.json(&json!({ "id": id, "run": run }));
            } else {
                output.line(format!("fired {}: run {run}", paint(STRONG, &plain(id.as_str()))));
                output.note(paint(FAINT, &format!("`ollim-bot runs show {run}` tells how it ends")));
            }
            if *paused {
                output.note("the service is paused; this run starts all the same, since you fired it");
            }
            return;
        }
        ServiceReply::Spawned { session } => {
            if view.json {
                output.json(&json!({ "session": session }));
            } else {
                output.line(format!("spawned {}", paint(STRONG, &plain(session.as_str()))));
                output.note(paint(FAINT, &format!("`ollim-bot sessions show {session}` tells what becomes of it")));
            }
            return;
        }
        ServiceReply::RunEnded { run, state: RunState::Cancelled } => format!("run {run} is cancelled"),
        ServiceReply::RunEnded { run, state } => format!("run {run} has ended: {state}"),
        ServiceReply::Pushed => "the service looks at the definitions in the database".into(),
        ServiceReply::Answered(question) => format!("question {} is answered", question.number),
        ServiceReply::Login(LoginState::Done) => "the agent is logged in; the jobs that waited go on".into(),
        ServiceReply::Login(LoginState::Waits { link, minutes }) => {
            if view.json {
                output.json(&json!({ "link": link, "minutes": minutes }));
                return;
            }
            output.line("Open this link, log in, and bring back the code that it shows:");
            output.line(format!("\n{}\n", plain(link)));
            output.line(format!(
                "Give it to `ollim-bot login CODE`, or send it to the bot. The link is good for {minutes} minutes."
            ));
            return;
        }
        ServiceReply::WebLink { url, seconds, tunnel } => {
            if view.json {
                output.json(&json!({ "url": url, "seconds": seconds, "tunnel": tunnel }));
                return;
            }
            output.line(plain(url));
            if let Some(tunnel) = tunnel {
                output.note(paint(FAINT, &format!("the page listens on a socket: `{}` leads to it", plain(tunnel))));
            }
            output.note(paint(FAINT, &format!("the link logs one browser in, once, within {seconds} seconds")));
            return;
        }
        ServiceReply::Paused => {
            "paused: nothing starts by itself until `ollim-bot resume`; `ollim-bot fire ID` still runs a job".into()
        }
        ServiceReply::Resumed { id: None } => "resumed".into(),
        ServiceReply::NotPaused => "the service was not paused; `ollim-bot status` names jobs that are".into(),
        ServiceReply::Resumed { id: Some(id) } => format!("routine {id} is resumed"),
        ServiceReply::SessionPatched { session } => {
            format!("session {session} has its tool policy from now on")
        }
        ServiceReply::McpCalled(answer) => return super::mcp::called(answer, view, output),
        ServiceReply::McpServers(servers) => return super::mcp::servers(servers, true, view, output),
        ServiceReply::McpTools { server, tools } => {
            let tools = ServerTools { server: server.clone(), tools: Ok(tools.clone()) };
            return super::mcp::tools(&[tools], view, output);
        }
        ServiceReply::SessionReset { id, runs } => {
            format!("{id} has forgotten {runs} {}", if *runs == 1 { "run" } else { "runs" })
        }
        ServiceReply::Heard { turn } => format!("the bot answers in {turn}"),
        ServiceReply::ForkOpened { fork, .. } => format!("{fork} is open"),
        ServiceReply::ForkEnded(text) | ServiceReply::ForkKept(text) => text.clone(),
        ServiceReply::Chosen(choice) => choice.words(),
        ServiceReply::BegunAnew => "a new conversation begins".into(),
        ServiceReply::Continued { session } => format!("the conversation {} goes on", plain(session)),
        ServiceReply::CapSet => "the cap is set".to_owned(),
        ServiceReply::BudgetSet(budget) => format!("{} pings left", budget.left()),
        ServiceReply::ChannelTested { name, delivery } => {
            channel_tested(name, delivery.as_ref(), view, output);
            return;
        }
        ServiceReply::Status(status) => format!("running (pid {})", status.pid),
    };
    if view.json {
        output.json(&json!({ "done": done }));
    } else {
        output.line(done);
    }
}

fn channel_tested(name: &str, delivery: Option<&Delivery>, view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!({ "channel": name, "delivery": delivery }));
        return;
    }
    let name = plain(name);
    let works = delivery.is_some_and(|one| one.state == DeliveryState::Delivered);
    let words = match delivery {
        Some(Delivery { state: DeliveryState::Delivered, external, .. }) => {
            let id = external.as_ref().map(|id| format!(" (message {})", plain(id))).unwrap_or_default();
            format!("{name} works: the test message was delivered{id}")
        }
        Some(Delivery { held_until: Some(until), .. }) => {
            format!("the test message waits until {}: quiet hours", times::local(*until, view.now, view.zone))
        }
        Some(Delivery { error: Some(why), .. }) => format!("{name} does not work: {}", plain(why)),
        _ => format!("{name} has not delivered the test message yet; `ollim-bot inbox` shows when it has"),
    };
    output.line(words);
    if !works {
        output.exit = 1;
    }
}
