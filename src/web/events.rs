//! The stream that notifies an open page of events. It carries only the numbers of events: the page then
//! loads itself again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;

use super::Web;
use super::guard::SessionToken;

/// Interval of signs of life. Proxies close silent connections, and the page considers the service lost after three times this span.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The number sent at the end of a session. No event has this number, so the page loads itself again.
const SESSION_ENDED: &str = "-1";

/// Streams the number of the newest event, and of each newer one. Ends with the service, and with the session, which is announced.
pub(super) async fn stream(
    State(web): State<Web>,
    session: SessionToken,
    Query(query): Query<HashMap<String, String>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut newest = web.newest.clone();
    newest.mark_changed();
    // A person who has the conversation open reads answers there.
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
                return Some((Ok(Event::default().data(SESSION_ENDED)), None));
            }
            let number = *newest.borrow_and_update();
            Some((Ok(Event::default().data(number.to_string())), Some((newest, sessions, chat))))
        }
    });
    // The page's script would not see a comment, so send an event.
    let alive = Event::default().event("alive").data("yes");
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).event(alive))
}
