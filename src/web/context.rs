//! The context of every view: the time, the viewer's zone, the token of forms.

use std::sync::atomic::Ordering;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use chrono::{DateTime, Offset as _, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};

use super::Web;
use super::guard::SessionToken;
use super::sessions::form_token;
use crate::app::{App, times};
use crate::refusal::Refusal;

/// The viewer of a page and the time of the request.
#[derive(Clone)]
pub(super) struct Context {
    /// The application.
    pub app: App,
    /// The time from which "in 5m" counts.
    pub now: DateTime<Utc>,
    /// The viewer's zone, or the zone of records if the browser names none.
    pub zone: Tz,
    /// The token that the forms of this session carry.
    pub form_token: String,
    /// The number of the newest event that the page can reflect.
    pub newest: i64,
}

impl FromRequestParts<Web> for Context {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, StatusCode> {
        let session = SessionToken::from_request_parts(parts, web).await?;
        if parts.method != Method::GET {
            web.posted.store(web.now().timestamp_millis(), Ordering::Relaxed);
        }
        Ok(Self::of(web, &session, &parts.headers))
    }
}

impl Context {
    /// Builds the context of a session's request.
    pub(super) fn of(web: &Web, session: &SessionToken, headers: &HeaderMap) -> Self {
        let mut app = web.reader();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        app.viewer_zone =
            cookies.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix("zone=")?.parse().ok());
        let (zone, newest) = (app.zone_of_viewer(), *web.newest.borrow());
        Self { now: app.now(), app, zone, form_token: form_token(&session.0), newest }
    }

    /// Asks the application on a blocking thread, since it reads files and the journal.
    /// It begins at once, and goes on while the future waits.
    pub(super) fn ask<T: Send + 'static, F: FnOnce(&App) -> Result<T, Refusal> + Send + 'static>(
        &self,
        ask: F,
    ) -> impl Future<Output = Result<T, Refusal>> + Send + use<T, F> {
        let app = self.app.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&app));
        let fault = |error| Err(Refusal::environment(format!("a fault of ollim-bot itself: {error}")));
        async move { asked.await.unwrap_or_else(fault) }
    }

    /// Renders a time and its distance: `Tue 24 Nov 09:00 in 5m`.
    pub(super) fn moment(&self, at: DateTime<Utc>) -> Markup {
        html! { (self.time(at)) " " span .faint { (self.relative(at)) } }
    }

    /// Renders `Tue 24 Nov 09:00`. The page names its zone; a time with another UTC offset than now names it too: `… 09:00 CEST`.
    pub(super) fn time(&self, at: DateTime<Utc>) -> Markup {
        let offset = |at: DateTime<Utc>| at.with_timezone(&self.zone).offset().fix();
        let text = times::local(at, self.now, self.zone);
        let short = text.rsplit_once(' ').filter(|_| offset(at) == offset(self.now)).map_or(&*text, |(short, _)| short);
        html! { time datetime=(times::rfc3339(at, self.zone)) { (short) } }
    }

    /// Renders a time, and the time in the job's own zone if that differs.
    pub(super) fn time_of_job(&self, at: DateTime<Utc>, zone: Tz) -> Markup {
        let beside = times::in_zone(at, zone, self.zone);
        html! { (self.time(at)) @if !beside.is_empty() { span .faint { (beside) } } }
    }

    /// Renders a job's time and its distance.
    pub(super) fn moment_of_job(&self, at: DateTime<Utc>, zone: Tz) -> Markup {
        html! { (self.time_of_job(at, zone)) " " span .faint { (self.relative(at)) } }
    }

    /// Renders the distance of a time, with the time itself as a tooltip. The page's script keeps the distance current.
    pub(super) fn relative(&self, at: DateTime<Utc>) -> Markup {
        html! {
            time .off datetime=(times::rfc3339(at, self.zone)) title=(times::local(at, self.now, self.zone)) {
                (times::relative(at, self.now))
            }
        }
    }
}
