//! The main session, and the sessions of spawned agents.

use std::path::Path;

use tokio::runtime::Handle;

use super::{App, Caller, ServiceCommand, ServiceReply, runs, service};
use crate::bot::main_session::{Conversation, EARLIER, EarlierConversation, SETTING};
use crate::definition::{Defaults, Definition, Kind, parse};
use crate::journal::{JournalReader, SessionRecord};
use crate::refusal::{Cause, Refusal};
use crate::run::spawn::{MAIN, SpawnRequest};

/// All sessions.
#[derive(Debug)]
pub struct SessionList {
    /// The main session, once it has begun.
    pub main: Option<Conversation>,
    /// The conversations that the person has left, newest first.
    pub earlier: Vec<EarlierConversation>,
    /// Sessions of spawned agents, newest first.
    pub children: Vec<ChildSession>,
}

/// The session of a spawned agent.
#[derive(Debug)]
pub struct ChildSession {
    /// The journal's record of it.
    pub record: SessionRecord,
    /// The task and the permissions of its agent; `None` if they are not readable.
    pub definition: Option<Definition>,
}

/// One session.
#[derive(Debug)]
pub enum Session {
    /// The main session.
    Main(Conversation),
    /// The session of a spawned agent.
    Child(Box<ChildSession>),
}

/// Returns all sessions.
pub(super) fn list(app: &App) -> Result<SessionList, Refusal> {
    let journal = runs::open(app)?;
    let children = journal
        .sessions()?
        .into_iter()
        .filter(|record| !record.id.is_turn())
        .map(|record| child(record, app))
        .collect();
    let main = main_session(&journal)?;
    let mut earlier = EarlierConversation::all(journal.setting(EARLIER)?);
    earlier.retain(|one| main.as_ref() != Some(&one.conversation));
    Ok(SessionList { main, earlier, children })
}

/// Returns one session, by its id or as `main`.
pub(super) fn show(name: &str, app: &App) -> Result<Session, Refusal> {
    let journal = runs::open(app)?;
    let main = main_session(&journal)?;
    if name == MAIN || main.as_ref().is_some_and(|main| main.session.0 == name) {
        let main = main.ok_or_else(|| Refusal::user("the main session has not begun yet"))?;
        return Ok(Session::Main(main));
    }
    let found = journal.sessions()?.into_iter().find(|session| session.id.as_str() == name);
    let found = found.ok_or_else(|| {
        Refusal::user(format!("there is no session `{name}`")).hint(format!(
            "`ollim-bot sessions list` shows those there are; `ollim-bot runs {name}` shows the runs of a job"
        ))
    })?;
    Ok(Session::Child(Box::new(child(found, app))))
}

/// Starts an agent for one task, in its own session.
pub(super) fn spawn(request: SpawnRequest, app: &App) -> Result<ServiceReply, Refusal> {
    match &app.caller {
        Caller::Person => service::ask(ServiceCommand::Spawn(request), app),
        Caller::Run(run) => {
            // The run itself may start agents where its gate may not.
            run.limit.may_spawn(request.tools.as_ref())?;
            let spawned = Handle::current().block_on(run.acts.spawn(request));
            // For whatever reason, the run was denied an agent. That goes into its record.
            let session = spawned.map_err(|refusal| Refusal { cause: Cause::Denied, ..refusal })?;
            Ok(ServiceReply::Spawned { session })
        }
    }
}

fn main_session(journal: &JournalReader) -> Result<Option<Conversation>, Refusal> {
    Ok(journal.setting(SETTING)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Returns the session of a spawned agent. A run sees the task and the answer only of those that it started itself.
pub(super) fn child(mut record: SessionRecord, app: &App) -> ChildSession {
    if let Caller::Run(caller) = &app.caller
        && record.by.as_ref() != Some(&caller.run)
        && record.run.as_ref() != Some(&caller.run)
    {
        (record.answer, record.error) = (None, None);
        return ChildSession { record, definition: None };
    }
    let defaults = Defaults { zone: app.zone_of_records(), commands: Default::default(), agents: Default::default() };
    let file = Path::new("sessions/session.md");
    let definition = parse(Kind::Session, file, record.definition.as_bytes(), &defaults).definition;
    ChildSession { record, definition }
}
