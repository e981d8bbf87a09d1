//! The stream that tells an open page that something has happened. It carries the numbers of events and nothing of what happened:
//! the page asks for itself again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;

use super::Web;
use super::guard::SessionToken;

/// A proxy closes a connection on which nothing is said; and the page takes a service for lost that is silent for three times as long.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// No event has this number, so the page asks for itself again.
const OUT: &str = "-1";

/// The number of the newest event now, and each newer one. It ends with the service, and with the session, whose page is told.
pub(super) async fn stream(
    State(web): State<Web>,
    session: SessionToken,
    Query(query): Query<HashMap<String, String>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut newest = web.newest.clone();
    newest.mark_changed();
    // Who has the conversation open reads the answers there.
    let chat = query.contains_key("chat").then(|| (web.open_chat)());
    let begun = Some((newest, web.sessions.changes(), chat));
    let stream = unfold(begun, move |listening| {
        let (web, session) = (web.clone(), session.clone());
        async move {
            let (mut newest, mut sessions, chat) = listening?;
            tokio::select! {
                changed = newest.changed() => changed.ok()?,
                changed = sessions.changed() => changed.ok()?,
            }
            if !web.sessions.has(&session.0, web.now()) {
                return Some((Ok(Event::default().data(OUT)), None));
            }
            let number = *newest.borrow_and_update();
            Some((Ok(Event::default().data(number.to_string())), Some((newest, sessions, chat))))
        }
    });
    // A comment would be no news to the page's script.
    let alive = Event::default().event("alive").data("yes");
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).event(alive))
}
