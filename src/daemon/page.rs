//! The web page of the service: its state, and the links that log a browser in.

use std::sync::Arc;

use super::handlers::Handlers;
use crate::app::{App, CurrentDefinitions, ListenerState, ServiceReply};
use crate::config::ListenAddress;
use crate::journal::{Journal, JournalError};
use crate::refusal::Refusal;
use crate::run::tokens::Tokens;
use crate::schedule::LiveDefinitions;
use crate::web::{GOOD_FOR, Listener, Logins, Sessions, TUNNEL_PORT, Web, hash};

/// The page, as the service serves it.
#[derive(Clone)]
pub struct Page {
    logins: Logins,
    sessions: Sessions,
    /// The state of the listener, or `None` if the settings name no page.
    state: Option<ListenerState>,
    /// The URL under which the page is reached from outside.
    url: Option<String>,
    /// The command for a tunnel to the page, if it listens on a socket and the settings give no URL.
    tunnel: Option<String>,
}

impl Page {
    /// Binds the listener. A failure to bind is reported and keeps no job from running.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn open(
        listen: Option<&ListenAddress>,
        url: Option<&str>,
        journal: Journal,
    ) -> Result<(Self, Option<Listener>), JournalError> {
        let bound = match listen {
            Some(listen) => Some(Listener::bind(listen).await),
            None => None,
        };
        let (state, listener) = match bound {
            None => (None, None),
            Some(Ok(listener)) => (Some(ListenerState::Served(listener.url())), Some(listener)),
            Some(Err(error)) => {
                tracing::error!("the page is not served: {error}");
                (Some(ListenerState::Failed(error.to_string())), None)
            }
        };
        let sessions = Sessions::load(journal).await?;
        let tunnel = match listen {
            Some(ListenAddress::Unix(path)) if url.is_none() => {
                Some(format!("ssh -L {TUNNEL_PORT}:{} HOST", path.display()))
            }
            _ => None,
        };
        Ok((Self { logins: Logins::default(), sessions, state, url: url.map(str::to_owned), tunnel }, listener))
    }

    /// Returns the state of the listener.
    #[must_use]
    pub fn state(&self) -> Option<ListenerState> {
        self.state.clone()
    }

    /// Builds the web server's state.
    #[must_use]
    pub fn web(&self, handlers: Handlers, definitions: LiveDefinitions, journal: &Journal, tokens: Tokens) -> Web {
        let root = handlers.app.get().home.root().display().to_string();
        let chats = handlers.chats.clone();
        let app: Arc<dyn Fn() -> App + Send + Sync> = Arc::new(move || {
            let service = Arc::new(handlers.clone());
            handlers.app.get().with_service(service)
        });
        Web {
            app,
            definitions: CurrentDefinitions(Arc::new(move || definitions.loaded())),
            posted: Arc::default(),
            logins: self.logins.clone(),
            sessions: self.sessions.clone(),
            newest: journal.newest_event(),
            is_run_token: Arc::new(move |word| tokens.find(word).is_some()),
            open_chat: Arc::new(move || Box::new(chats.open())),
            cookie: format!("ollim-{}", &hash(&root)[..8]).into(),
            url: self.url.clone(),
        }
    }

    /// Creates a link that logs a browser in.
    ///
    /// # Errors
    /// If the page is not served.
    pub async fn link(&self, end_sessions: bool, app: &App) -> Result<ServiceReply, Refusal> {
        let served = match &self.state {
            Some(ListenerState::Served(url)) => url,
            Some(ListenerState::Failed(why)) => {
                return Err(Refusal::environment(format!("the page is not served: {why}"))
                    .hint("set another `web` in config.yaml, and start the service again"));
            }
            None => {
                let refusal = Refusal::user("the service serves no page");
                return Err(match app.config().is_ok_and(|config| config.web.is_some()) {
                    true => refusal.hint("config.yaml has `web` since the service was started: start it again"),
                    false => refusal.hint("put `web: 127.0.0.1:8080` into config.yaml, and start the service again"),
                });
            }
        };
        if end_sessions {
            self.sessions.end_all().await.map_err(Refusal::environment)?;
        }
        let failed = |error: std::io::Error| Refusal::environment(format!("no link can be made: {error}"));
        let token = self.logins.issue(app.now()).map_err(failed)?;
        let url = format!("{}/in/{token}", self.url.as_ref().unwrap_or(served));
        Ok(ServiceReply::WebLink { url, seconds: GOOD_FOR.num_seconds(), tunnel: self.tunnel.clone() })
    }
}
