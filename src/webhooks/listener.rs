//! The listener: accepts connections, each for one request, and holds none for long.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{interval, timeout};

use super::rate::Rates;
use super::refusals::{COUNTED_FOR, Refusals};
use crate::clock::Clock;
use crate::config::ListenAddress;
use crate::home::Home;
use crate::journal::{Journal, NewMessage};
use crate::run::tokens::Tokens;
use crate::schedule::{LiveDefinitions, Schedule};

/// So many are served at once; of more, the oldest makes room. Who has something to deliver says it at once.
const CONNECTIONS: usize = 256;

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(5);

/// When an address that another program has is tried again.
const BIND_AGAIN: Duration = Duration::from_secs(10);

/// How long a connection may be there, from its first byte to its last.
const CONNECTION: Duration = Duration::from_secs(30);

/// Where deliveries are taken, or why they are not; `None`: nobody has begun to take any.
pub type Listening = Option<Result<String, String>>;

/// What answers deliveries.
pub struct Webhooks {
    /// The data folder, whose `.env` has the secrets.
    pub(super) home: Home,
    /// The service's environment, which comes before it.
    pub(super) env: BTreeMap<String, String>,
    pub(super) clock: Clock,
    pub(super) definitions: LiveDefinitions,
    pub(super) schedule: Schedule,
    journal: Journal,
    pub(super) tokens: Tokens,
    pub(super) rates: Rates,
    pub(super) refusals: Refusals,
    state: watch::Sender<Listening>,
}

impl Webhooks {
    /// Nothing is taken before [`Self::serve`].
    #[must_use]
    pub fn new(
        (home, env): (Home, BTreeMap<String, String>),
        clock: Clock,
        definitions: LiveDefinitions,
        schedule: Schedule,
        journal: Journal,
        tokens: Tokens,
    ) -> Self {
        let (rates, refusals) = (Rates::default(), Refusals::new(journal.clone(), clock.clone()));
        let state = watch::Sender::default();
        Self { home, env, clock, definitions, schedule, journal, tokens, rates, refusals, state }
    }

    /// Whether deliveries are taken.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<Listening> {
        self.state.subscribe()
    }

    /// Takes deliveries until the future is dropped. Where the address cannot be had, the person is told once, and it is tried again.
    pub async fn serve(self, address: ListenAddress) {
        let mut told = false;
        let listener = loop {
            match Listener::bind(&address).await {
                Ok(listener) => break listener,
                Err(error) => {
                    tracing::warn!(%error, %address, "cannot listen for webhooks");
                    let why = format!("cannot listen on {address}: {error}");
                    self.state.send_replace(Some(Err(why)));
                    if !std::mem::replace(&mut told, true) {
                        self.tell(format!(
                            "Webhooks are not taken: cannot listen on {address}: {error}. It is tried again."
                        ))
                        .await;
                    }
                    tokio::time::sleep(BIND_AGAIN).await;
                }
            }
        };
        self.state.send_replace(Some(Ok(address.to_string())));
        if told {
            self.tell(format!("Webhooks are taken again, on {address}.")).await;
        }
        tracing::info!(%address, "listening for webhooks");
        listener.serve(Arc::new(self)).await;
    }

    async fn tell(&self, text: String) {
        if let Err(error) = self.journal.message(NewMessage::of_service(text)).await {
            tracing::warn!(%error, "the person could not be told how webhooks are");
        }
    }
}

/// A socket that is bound.
enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

impl Listener {
    /// Binds it. A socket that an ended service has left at the path is replaced.
    async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            ListenAddress::Unix(path) => {
                if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                    fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                // Who may reach it is for its folder to say; who may deliver, for the signature.
                fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
                Ok(Self::Unix(listener))
            }
        }
    }

    /// Serves until the future is dropped.
    async fn serve(self, webhooks: Arc<Webhooks>) {
        let mut connections = JoinSet::new();
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        let mut flush = interval(COUNTED_FOR / 10);
        loop {
            let accepted = async {
                match &self {
                    Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
                    Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
                }
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(stream) => {
                        open.retain(|connection| !connection.is_finished());
                        if open.len() >= CONNECTIONS && let Some(oldest) = open.pop_front() {
                            oldest.abort();
                        }
                        let webhooks = Arc::clone(&webhooks);
                        open.push_back(match stream {
                            Stream::Tcp(stream) => connections.spawn(serve(stream, webhooks)),
                            Stream::Unix(stream) => connections.spawn(serve(stream, webhooks)),
                        });
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: wait for some to be given back.
                        tracing::warn!(%error, "cannot accept a delivery");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = flush.tick() => webhooks.refusals.flush(false),
            }
        }
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

/// Serves one connection: one request.
async fn serve<S>(stream: S, webhooks: Arc<Webhooks>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| webhooks.answer(request));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false).max_buf_size(16 * 1024);
    let served = timeout(CONNECTION, server.serve_connection(TokioIo::new(stream), service)).await;
    match served {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection of a webhook's sender broke"),
        Err(_) => tracing::debug!("a connection of a webhook's sender took too long"),
    }
}
