//! The web page of the service: its state, and the links that log a browser in.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::handlers::Handlers;
use crate::app::{App, CurrentDefinitions, ListenerState, ServiceReply};
use crate::config::ListenAddress;
use crate::journal::{Journal, JournalError, NewMessage};
use crate::refusal::Refusal;
use crate::run::tokens::Tokens;
use crate::schedule::LiveDefinitions;
use crate::web::{GOOD_FOR, Listener, Logins, Sessions, TUNNEL_PORT, Web, hash};

/// Interval between two attempts to bind an address that is in use.
const BIND_AGAIN: Duration = Duration::from_secs(10);

/// The page, as the service serves it.
#[derive(Clone)]
pub struct Page {
    logins: Logins,
    sessions: Sessions,
    /// The address; `None` if the settings name no page.
    listen: Option<ListenAddress>,
    /// The state of the listener, or `None` if the settings name no page.
    state: watch::Sender<Option<ListenerState>>,
    /// The URL under which the page is reached from outside.
    url: Option<String>,
    /// The command for a tunnel to the page, if it listens on a socket and the settings give no URL.
    tunnel: Option<String>,
}

impl Page {
    /// Binds the listener. A failure to bind keeps no job from running: [`Self::serve`] reports it and tries again.
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
        let (listen, url, state) = (listen.cloned(), url.map(str::to_owned), watch::Sender::new(state));
        Ok((Self { logins: Logins::default(), sessions, listen, state, url, tunnel }, listener))
    }

    /// Serves until the future is dropped. Without a listener, notifies the person once and tries to bind one again. Returns at
    /// once if the settings name no page.
    pub async fn serve(self, listener: Option<Listener>, web: Web, journal: Journal) {
        let Some(listen) = &self.listen else { return };
        let listener = match listener {
            Some(listener) => listener,
            None => self.bind_again(listen, &journal).await,
        };
        web.serve(listener).await;
    }

    async fn bind_again(&self, listen: &ListenAddress, journal: &Journal) -> Listener {
        if let Some(ListenerState::Failed(why)) = self.state() {
            notify(journal, format!("The page is not served: {why}. It is tried again.")).await;
        }
        loop {
            tokio::time::sleep(BIND_AGAIN).await;
            match Listener::bind(listen).await {
                Ok(listener) => {
                    self.state.send_replace(Some(ListenerState::Served(listener.url())));
                    tracing::info!(%listen, "the page is served again");
                    notify(journal, format!("The page is served again, on {listen}.")).await;
                    return listener;
                }
                Err(error) => {
                    tracing::debug!("the page is still not served: {error}");
                    self.state.send_replace(Some(ListenerState::Failed(error.to_string())));
                }
            }
        }
    }

    /// Returns the state of the listener.
    #[must_use]
    pub fn state(&self) -> Option<ListenerState> {
        self.state.borrow().clone()
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
        let served = match self.state() {
            Some(ListenerState::Served(url)) => url,
            Some(ListenerState::Failed(why)) => {
                return Err(Refusal::environment(format!("the page is not served: {why}"))
                    .hint("end what listens there; the service tries again every few seconds")
                    .hint("or set another `web` in config.yaml, and start the service again"));
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
        let url = format!("{}/in/{token}", self.url.as_ref().unwrap_or(&served));
        Ok(ServiceReply::WebLink { url, seconds: GOOD_FOR.num_seconds(), tunnel: self.tunnel.clone() })
    }
}

async fn notify(journal: &Journal, text: String) {
    if let Err(error) = journal.message(NewMessage::of_service(text)).await {
        tracing::warn!(%error, "the person could not be told how the page is");
    }
}
