//! Renders the main session and the sessions of spawned agents.

use serde_json::{Value, json};

use super::View;
use crate::app::{ChildSession, Session, SessionList, summary, times};
use crate::bot::main_session::Conversation;
use crate::channel::terminal::plain_lines;
use crate::cli::output::{Cell, FAINT, Output, STRONG};
use crate::run::spawn::MAIN;

/// Lists all sessions, newest first.
pub(super) fn list(sessions: &SessionList, view: &View, output: &mut Output) {
    let SessionList { main, earlier, children } = sessions;
    if view.json {
        let children = children.iter().map(|session| as_json(session, view));
        let earlier = earlier.iter().map(|one| {
            let left = times::rfc3339(one.left, view.zone);
            json!({ "session": one.conversation.session, "kind": "earlier", "left": left, "spawnToolPolicy": null })
        });
        output.json(&main.iter().map(main_json).chain(earlier).chain(children).collect::<Vec<_>>());
        return;
    }
    if main.is_none() && earlier.is_empty() && children.is_empty() {
        output.note("no sessions yet");
        return;
    }
    let mut rows =
        vec![["SESSION", "FROM", "STARTED", "STATE", "TOOLS", ""].map(|title| Cell::new(title, FAINT)).to_vec()];
    if main.is_some() {
        rows.push(vec![Cell::new(MAIN, STRONG), "".into(), "".into(), "".into(), "".into(), "the conversation".into()]);
    }
    for one in earlier {
        let left = format!("left {}", times::local(one.left, view.now, view.zone));
        let session = Cell::new(&one.conversation.session.0, STRONG);
        rows.push(vec![session, "".into(), "".into(), left.into(), "".into(), "an earlier conversation".into()]);
    }
    for session in children {
        let (record, asked) = (&session.record, session.definition.as_ref().map(summary));
        rows.push(vec![
            Cell::new(record.id.as_str(), STRONG),
            record.caller.as_str().into(),
            times::local(record.created, view.now, view.zone).into(),
            state(session).into(),
            if record.spawn_tool_policy.is_some() { "its own".into() } else { "".into() },
            Cell::new(asked.unwrap_or_default(), FAINT),
        ]);
    }
    output.table(&rows);
}

/// Shows one session: its caller, its tools, its outcome.
pub(super) fn show(session: &Session, view: &View, output: &mut Output) {
    let session = match session {
        Session::Main(main) if view.json => return output.json(&main_json(main)),
        Session::Main(main) => return facts(&[("session", MAIN.into()), ("id", main.session.to_string())], output),
        Session::Child(child) if view.json => return output.json(&as_json(child, view)),
        Session::Child(child) => child,
    };
    let ChildSession { record, definition } = &**session;
    facts(
        &[
            ("session", record.id.to_string()),
            ("from", record.caller.clone()),
            ("started", view.moment(record.created)),
            ("agent", agent(session).unwrap_or_default().to_owned()),
            ("tools", record.spawn_tool_policy.clone().unwrap_or_default()),
            ("state", state(session)),
            ("run", record.run.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("error", record.error.clone().unwrap_or_default()),
        ],
        output,
    );
    let asked = definition.as_ref().map(|definition| &definition.body);
    for text in [asked, record.answer.as_ref()].into_iter().flatten() {
        output.line("");
        output.line(plain_lines(text.trim_end()));
    }
}

fn facts(rows: &[(&str, String)], output: &mut Output) {
    let shown = rows.iter().filter(|(_, value)| !value.is_empty());
    output.facts(&shown.map(|(name, value)| vec![Cell::new(*name, FAINT), value.into()]).collect::<Vec<_>>());
}

fn main_json(main: &Conversation) -> Value {
    json!({ "session": MAIN, "kind": "main", "id": main.session, "spawnToolPolicy": null })
}

fn as_json(session: &ChildSession, view: &View) -> Value {
    let ChildSession { record, definition } = session;
    let policy = record.spawn_tool_policy.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "session": record.id,
        "kind": "child",
        "created": times::rfc3339(record.created, view.zone),
        "spawned_by": record.caller,
        "spawned_by_run": record.by,
        "agent": agent(session),
        "prompt": definition.as_ref().map(|definition| definition.body.trim_end()),
        "run": record.run,
        "state": state(session),
        "answer": record.answer,
        "error": record.error,
        "spawnToolPolicy": policy,
    })
}

fn agent(session: &ChildSession) -> Option<&str> {
    session.definition.as_ref()?.background()?.agent.as_deref()
}

/// Returns the state of the last attempt, or `waiting` before the first one.
fn state(session: &ChildSession) -> String {
    session.record.state.map_or_else(|| "waiting".to_owned(), |state| state.to_string())
}
