//! The web page: what ran, what comes, what was refused, what it cost, and whether anything is wrong.
//!
//! A view is a function from an application's outcome to HTML, and the server renders all of it. One stream of Server-Sent Events
//! announces changes, and the page then loads itself again. This module decides nothing: every action of the page goes through
//! [`App::execute`].
//!
//! The page shows mails and prompts and starts agents, so [`guard`] protects it: it accepts only the listed hosts, its own origin, a
//! session that a one-time link began ([`login`]), and a token of that session in every form. A request that carries a run's token
//! is refused.

mod actions;
mod chart;
mod context;
mod error;
mod events;
mod frame;
mod guard;
mod listener;
mod login;
mod pages;
mod parts;
mod sessions;
mod views;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use chrono::{DateTime, Utc};
use tokio::sync::watch;

pub use listener::{BindError, Listener, TUNNEL_PORT};
pub use login::{GOOD_FOR, Logins};
pub use sessions::{Sessions, hash};

use crate::app::{App, CurrentDefinitions};

/// Time after a form during which definitions are read from the files, in milliseconds.
const FILES_FOR: i64 = 5_000;

/// The shared state of all requests.
#[derive(Clone)]
pub struct Web {
    /// Returns the application under the settings in force. The caller is the person.
    pub app: Arc<dyn Fn() -> App + Send + Sync>,
    /// The definitions in force, so that showing a thousand jobs reads no files.
    pub definitions: CurrentDefinitions,
    /// Time of the last form, in milliseconds since 1970. For a while after it, definitions are read from the files, since the definitions
    /// in force follow a moment later.
    pub posted: Arc<AtomicI64>,
    /// The one-time login links.
    pub logins: Logins,
    /// The sessions of logged-in browsers.
    pub sessions: Sessions,
    /// The number of the newest event.
    pub newest: watch::Receiver<i64>,
    /// Returns whether a word is the token of a live run.
    pub is_run_token: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Opens a chat. While the returned value is kept, answers to a chat need no other channel.
    pub open_chat: Arc<dyn Fn() -> Box<dyn std::any::Any + Send> + Send + Sync>,
    /// The name of the session's cookie. It differs between two bots on one machine, so neither logs the person out of the other.
    pub cookie: Arc<str>,
    /// The URL of the page from outside (`web_url`), such as `https://bot.example.org`.
    pub url: Option<String>,
}

impl Web {
    /// Returns the application for showing a page.
    fn reader(&self) -> App {
        let mut app = (self.app)();
        if app.now().timestamp_millis() - self.posted.load(Ordering::Relaxed) > FILES_FOR {
            app.definitions = Some(self.definitions.clone());
        }
        app
    }

    fn now(&self) -> DateTime<Utc> {
        (self.app)().now()
    }

    /// Answers requests until the future is dropped.
    pub async fn serve(self, listener: Listener) {
        listener.serve(self.router()).await;
    }

    fn router(self) -> Router {
        let behind_session = Router::new()
            .route("/", get(pages::timeline))
            .route("/next", get(pages::next))
            .route("/jobs", get(pages::jobs))
            .route("/jobs/{id}", get(pages::job))
            .route("/jobs/{id}/edit", get(pages::edit).post(actions::save))
            .route("/jobs/{id}/dry-run", get(pages::dry_run).post(actions::dry_run))
            .route("/jobs/{id}/{action}", post(actions::job))
            .route("/runs", get(pages::runs))
            .route("/runs/{run}", get(pages::run))
            .route("/runs/{run}/cancel", post(actions::cancel_run))
            .route("/refusals", get(pages::refusals))
            .route("/policy", get(pages::policy))
            .route("/costs", get(pages::costs))
            .route("/inbox", get(pages::inbox))
            .route("/chat", get(pages::chat).post(actions::say))
            .route("/questions", get(pages::questions))
            .route("/questions/{number}", post(actions::answer))
            .route("/hosts", get(pages::hosts))
            .route("/service", get(pages::service).post(actions::service))
            .route("/events", get(events::stream))
            .route("/out", post(login::leave))
            .route_layer(axum::middleware::from_fn_with_state(self.clone(), guard::session));
        Router::new()
            .merge(behind_session)
            .route("/in/{token}", get(login::offer).post(login::enter))
            .route("/style.css", get(frame::style))
            .route("/page.js", get(frame::script))
            .route("/enter.js", get(frame::enter))
            .route("/icon.svg", get(frame::icon))
            // Some programs ask for this name, whatever a page says.
            .route("/favicon.ico", get(frame::icon))
            .fallback(error::not_found)
            .layer(DefaultBodyLimit::max(guard::LARGEST))
            .layer(axum::middleware::from_fn_with_state(self.clone(), error::framed))
            .layer(axum::middleware::from_fn_with_state(self.clone(), guard::request))
            .with_state(self)
    }
}
