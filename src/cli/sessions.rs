//! `sessions list`, `sessions show`, `sessions patch`: the main session and those of spawned agents.

use std::path::Path;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::args;
use super::context::Context;
use super::error::CliError;
use super::output::{Cell, FAINT, Output, STRONG};
use super::{runs, service, spawn, times};
use crate::bot::main_session::{Conversation, SETTING};
use crate::channel::terminal::plain_lines;
use crate::daemon::wire::Request;
use crate::definition::{Defaults, Definition, Kind, parse};
use crate::journal::{JournalReader, SessionRecord};
use crate::run::spawn::MAIN;

/// `sessions …`.
///
/// # Errors
/// When there is no such session, the journal cannot be read, or the service refuses.
pub fn sessions(command: args::Sessions, context: &Context, output: &mut Output) -> Result<(), CliError> {
    match command {
        args::Sessions::List => list(context, output),
        args::Sessions::Show { session } => show(&session, context, output),
        args::Sessions::Patch { session, tools } => {
            let tools = spawn::tools_of(tools)?.ok_or_else(|| {
                CliError::user("no tools were named").hint("`--allow PATTERN…`, `--deny PATTERN…` or both; '' for none")
            })?;
            service::verb(&Request::SessionsPatch { session, spawn_tool_policy: tools }, context, output)
        }
    }
}

fn list(context: &Context, output: &mut Output) -> Result<(), CliError> {
    let journal = runs::open(context)?;
    let (main, children) = (main_session(&journal)?, journal.sessions()?);
    if context.json {
        let children = children.iter().map(|session| as_json(session, context));
        output.json(&main.iter().map(main_json).chain(children).collect::<Vec<_>>());
        return Ok(());
    }
    if main.is_none() && children.is_empty() {
        output.note("no sessions yet");
        return Ok(());
    }
    let zone = context.zone_of_records();
    let mut rows =
        vec![["SESSION", "FROM", "STARTED", "STATE", "TOOLS", ""].map(|title| Cell::new(title, FAINT)).to_vec()];
    if main.is_some() {
        rows.push(vec![Cell::new(MAIN, STRONG), "".into(), "".into(), "".into(), "".into(), "the conversation".into()]);
    }
    for session in &children {
        let asked = definition(session, context).map(|definition| super::jobs::summary(&definition));
        rows.push(vec![
            Cell::new(session.id.as_str(), STRONG),
            session.caller.as_str().into(),
            times::local(session.created, context.now(), zone).into(),
            state(session).into(),
            if session.spawn_tool_policy.is_some() { "its own".into() } else { "".into() },
            Cell::new(asked.unwrap_or_default(), FAINT),
        ]);
    }
    output.table(&rows);
    Ok(())
}

fn show(name: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let journal = runs::open(context)?;
    let main = main_session(&journal)?;
    if name == MAIN || main.as_ref().is_some_and(|main| main.session.0 == name) {
        let main = main.ok_or_else(|| CliError::user("the main session has not begun yet"))?;
        if context.json {
            output.json(&main_json(&main));
        } else {
            facts(&[("session", MAIN.into()), ("id", main.session.to_string())], output);
        }
        return Ok(());
    }
    let sessions = journal.sessions()?;
    let session = sessions.iter().find(|session| session.id.as_str() == name);
    let session = session.ok_or_else(|| {
        CliError::user(format!("there is no session `{name}`")).hint("`ollim-bot sessions list` shows those there are")
    })?;
    if context.json {
        output.json(&as_json(session, context));
        return Ok(());
    }
    let (now, zone) = (context.now(), context.zone_of_records());
    let moment = |at: DateTime<Utc>| format!("{} ({})", times::local(at, now, zone), times::relative(at, now));
    let definition = definition(session, context);
    let agent = definition.as_ref().and_then(|definition| definition.background()?.agent.clone());
    facts(
        &[
            ("session", session.id.to_string()),
            ("from", session.caller.clone()),
            ("started", moment(session.created)),
            ("agent", agent.unwrap_or_default()),
            ("tools", session.spawn_tool_policy.clone().unwrap_or_default()),
            ("state", state(session)),
            ("run", session.run.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("error", session.error.clone().unwrap_or_default()),
        ],
        output,
    );
    for text in [definition.map(|definition| definition.body.clone()), session.answer.clone()].into_iter().flatten() {
        output.line("");
        output.line(plain_lines(text.trim_end()));
    }
    Ok(())
}

fn facts(rows: &[(&str, String)], output: &mut Output) {
    let shown = rows.iter().filter(|(_, value)| !value.is_empty());
    output.table(&shown.map(|(name, value)| vec![Cell::new(*name, FAINT), value.into()]).collect::<Vec<_>>());
}

fn main_session(journal: &JournalReader) -> Result<Option<Conversation>, CliError> {
    Ok(journal.setting(SETTING)?.and_then(|text| serde_json::from_str(&text).ok()))
}

fn main_json(main: &Conversation) -> Value {
    json!({ "session": MAIN, "kind": "main", "id": main.session, "spawnToolPolicy": null })
}

fn as_json(session: &SessionRecord, context: &Context) -> Value {
    let definition = definition(session, context);
    let policy = session.spawn_tool_policy.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "session": session.id,
        "kind": "child",
        "created": times::rfc3339(session.created, context.zone_of_records()),
        "spawned_by": session.caller,
        "spawned_by_run": session.by,
        "agent": definition.as_ref().and_then(|definition| definition.background()?.agent.clone()),
        "prompt": definition.as_ref().map(|definition| definition.body.trim_end().to_owned()),
        "run": session.run,
        "state": state(session),
        "answer": session.answer,
        "error": session.error,
        "spawnToolPolicy": policy,
    })
}

/// The word of its last attempt; `waiting` before there is one.
fn state(session: &SessionRecord) -> String {
    session.state.map_or_else(|| "waiting".to_owned(), |state| state.to_string())
}

fn definition(session: &SessionRecord, context: &Context) -> Option<Definition> {
    let zone = context.zone_of_records();
    let defaults = Defaults { zone, commands: Default::default(), agents: Default::default() };
    parse(Kind::Session, Path::new("sessions/session.md"), session.definition.as_bytes(), &defaults).definition
}
