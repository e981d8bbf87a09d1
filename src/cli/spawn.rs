//! `spawn`: an agent for one task, in a session of its own. Started by the service, for the person or for a run.

use serde_json::json;

use super::args::{SpawnArgs, ToolArgs};
use super::context::Context;
use super::error::CliError;
use super::output::{FAINT, Output, STRONG, paint};
use super::service;
use crate::channel::terminal::plain;
use crate::daemon::call;
use crate::daemon::wire::{Reply, Request};
use crate::policy::SpawnTools;
use crate::run::spawn::SpawnRequest;

/// `spawn` for the person.
///
/// # Errors
/// When the service does not run, or refuses.
pub fn spawn(args: SpawnArgs, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    match call::as_person(&context.home, &Request::Spawn(request(args)?))? {
        Reply::Spawned { session } => {
            said(&session, context.json, output);
            Ok(())
        }
        Reply::Refused(why) => Err(CliError::user(why)),
        _ => Err(service::odd()),
    }
}

/// What was typed, as the service takes it.
///
/// # Errors
/// When a tool pattern is malformed.
pub(super) fn request(args: SpawnArgs) -> Result<SpawnRequest, CliError> {
    let SpawnArgs { message, agent, tools, timeout } = args;
    Ok(SpawnRequest { prompt: message, agent, tools: tools_of(tools)?, timeout })
}

/// The two lists; `None` where neither was given. One empty value is the empty list.
pub(super) fn tools_of(args: ToolArgs) -> Result<Option<SpawnTools>, CliError> {
    let list = |values: Option<Vec<String>>| values.map(super::args::list);
    let (allow, deny) = (list(args.allow), list(args.deny));
    if allow.is_none() && deny.is_none() {
        return Ok(None);
    }
    let tools = SpawnTools::parse(allow.as_deref(), deny.as_deref());
    tools.map(Some).map_err(|error| CliError::user(error.to_string()).hint("write `Tool` or `Tool(what)`"))
}

/// That it was started, and how to see what becomes of it.
pub(super) fn said(session: &str, as_json: bool, output: &mut Output) {
    if as_json {
        output.json(&json!({ "session": session }));
        return;
    }
    output.line(format!("spawned {}", paint(STRONG, &plain(session))));
    output.note(paint(FAINT, &format!("`ollim-bot sessions show {session}` tells what becomes of it")));
}
