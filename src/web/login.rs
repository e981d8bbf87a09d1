//! One-time links: each is good for a minute and for one use, and begins a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{DOCTYPE, html};

use super::guard::SessionToken;
use super::sessions::hash;
use super::{Web, error};

/// How long a link is good for.
pub const GOOD_FOR: TimeDelta = TimeDelta::seconds(60);

/// So many links are open at once.
const OPEN: usize = 100;

/// The links that nobody has used yet, by the hashes of their tokens. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Logins(Arc<Mutex<HashMap<String, DateTime<Utc>>>>);

impl Logins {
    /// A token that begins a session once, within [`GOOD_FOR`] from `now`.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn issue(&self, now: DateTime<Utc>) -> std::io::Result<String> {
        let token = agent_sandbox::token::random()?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, until| *until > now);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(hash(&token), now + GOOD_FOR);
        Ok(token)
    }

    /// Whether a token is good. It is not afterwards.
    fn take(&self, token: &str, now: DateTime<Utc>) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&hash(token)).is_some_and(|until| until > now)
    }
}

/// A link was followed.
pub(super) async fn enter(State(web): State<Web>, Path(token): Path<String>) -> Response {
    let now = web.now();
    if !web.logins.take(&token, now) {
        return error::page(
            StatusCode::GONE,
            "This link is not good any more",
            "A link begins one session, within a minute. `ollim-bot web` prints a new one.",
        );
    }
    let session = match web.sessions.begin(now).await {
        Ok(session) => session,
        Err(why) => return error::page(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be kept", &why),
    };
    let secure = if web.url.as_ref().is_some_and(|url| url.starts_with("https:")) { "; Secure" } else { "" };
    let age = super::sessions::LASTS.num_seconds();
    let cookie =
        format!("{}={session}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}", super::guard::COOKIE);
    // A redirect would still belong to the page that the link stood on, and a strict cookie is not sent for that one.
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content="0;url=/";
                title { "ollim-bot" }
            }
            body { p { a href="/" { "Go on to the page" } } }
        }
    };
    ([(header::SET_COOKIE, cookie)], Html(page.into_string())).into_response()
}

/// Ends the session.
pub(super) async fn leave(State(web): State<Web>, session: SessionToken, _posted: super::guard::Posted) -> Response {
    if let Err(why) = web.sessions.end(&session.0).await {
        return error::page(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be ended", &why);
    }
    let cookie = format!("{}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict", super::guard::COOKIE);
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_for_a_minute() {
        let (logins, now) = (Logins::default(), DateTime::<Utc>::UNIX_EPOCH);
        let token = logins.issue(now).unwrap();
        assert!(!logins.take("another", now));
        assert!(logins.take(&token, now));
        assert!(!logins.take(&token, now));
        let late = logins.issue(now).unwrap();
        assert!(!logins.take(&late, now + GOOD_FOR));
    }
}
