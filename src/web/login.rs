//! One-time login links: each is valid for a minute and a single use, and begins a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{DOCTYPE, html};

use super::guard::{Posted, SessionToken};
use super::sessions::{LIFETIME, hash};
use super::{Web, error};

/// Time for which a link is valid.
pub const GOOD_FOR: TimeDelta = TimeDelta::seconds(60);

/// Maximum number of open links.
const MAX_LINKS: usize = 100;

/// Unused links, as hashes of their tokens. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Logins(Arc<Mutex<HashMap<String, DateTime<Utc>>>>);

impl Logins {
    /// Issues a token that begins one session, within [`GOOD_FOR`] from `now`.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn issue(&self, now: DateTime<Utc>) -> std::io::Result<String> {
        let token = agent_sandbox::token::random()?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, until| *until > now);
        if open.len() >= MAX_LINKS {
            open.clear();
        }
        open.insert(hash(&token), now + GOOD_FOR);
        Ok(token)
    }

    /// Returns whether a token is valid.
    fn has(&self, token: &str, now: DateTime<Utc>) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&hash(token)).is_some_and(|until| *until > now)
    }

    /// Consumes a token. Returns whether it was valid.
    fn take(&self, token: &str, now: DateTime<Utc>) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&hash(token)).is_some_and(|until| until > now)
    }
}

/// Answers a followed link. Following it begins no session, since messengers fetch links for a preview. The returned page requests
/// the session, by itself if scripts run.
pub(super) async fn offer(State(web): State<Web>, Path(token): Path<String>) -> Response {
    if !web.logins.has(&token, web.now()) {
        return gone();
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "ollim-bot" }
                link rel="stylesheet" href="/style.css";
                script src="/enter.js" defer {}
            }
            body {
                main .alone {
                    h1 { "ollim-bot" }
                    form method="post" action={ "/in/" (token) } { button autofocus { "Log this browser in" } }
                }
            }
        }
    };
    Html(page.into_string()).into_response()
}

/// Begins a session, if the link is valid.
pub(super) async fn enter(State(web): State<Web>, Path(token): Path<String>) -> Response {
    let now = web.now();
    if !web.logins.take(&token, now) {
        return gone();
    }
    let session = match web.sessions.begin(now).await {
        Ok(session) => session,
        Err(why) => return error::page(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be kept", &why),
    };
    let secure = if web.url.as_ref().is_some_and(|url| url.starts_with("https:")) { "; Secure" } else { "" };
    let age = LIFETIME.num_seconds();
    let cookie = format!("{}={session}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}", web.cookie);
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

fn gone() -> Response {
    error::page(
        StatusCode::GONE,
        "This link has expired",
        "A link begins one session, within a minute. `ollim-bot web` prints a new one.",
    )
}

/// Ends the session.
pub(super) async fn leave(State(web): State<Web>, session: SessionToken, _posted: Posted) -> Response {
    if let Err(why) = web.sessions.end(&session.0).await {
        return error::page(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be ended", &why);
    }
    let cookie = format!("{}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict", web.cookie);
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_for_a_minute() {
        let (logins, now) = (Logins::default(), DateTime::<Utc>::UNIX_EPOCH);
        let token = logins.issue(now).unwrap();
        assert!(!logins.has("another", now) && !logins.take("another", now));
        assert!(logins.has(&token, now));
        assert!(logins.take(&token, now));
        assert!(!logins.take(&token, now));
        let late = logins.issue(now).unwrap();
        assert!(!logins.take(&late, now + GOOD_FOR));
    }
}
