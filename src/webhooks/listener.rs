//! The listener: accepts connections for one request each, and closes them soon.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_sandbox::relay::RelayedListener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::rate::Rates;
use super::refusals::{COUNTED_FIRST, Refusals, Refused};
use crate::clock::Clock;
use crate::config::ListenAddress;
use crate::connections::{KnownCaller, OpenConnections};
use crate::home::Home;
use crate::journal::{Journal, NewMessage};
use crate::run::tokens::Tokens;
use crate::schedule::{LiveDefinitions, Schedule};

/// Maximum number of connections. At the limit the oldest is closed whose sender has not signed yet, since honest senders are quick.
const CONNECTIONS: usize = 256;

/// Maximum time to receive the head of a request.
const HEAD: Duration = Duration::from_secs(5);

/// Interval between two attempts to bind an address that is in use.
const BIND_AGAIN: Duration = Duration::from_secs(10);

/// Maximum lifetime of a connection.
const CONNECTION: Duration = Duration::from_secs(30);

/// The address that takes deliveries, or why none does; `None` before serving begins.
pub type ListenState = Option<Result<String, String>>;

/// The server of webhooks.
pub struct Webhooks {
    /// The data folder, whose `.env` contains the secrets.
    pub(super) home: Home,
    /// The service's environment, which takes precedence over `.env`.
    pub(super) env: BTreeMap<String, String>,
    pub(super) clock: Clock,
    pub(super) definitions: LiveDefinitions,
    pub(super) schedule: Schedule,
    journal: Journal,
    pub(super) tokens: Tokens,
    pub(super) rates: Rates,
    pub(super) refusals: Refusals,
    /// Whether the person was notified that `.env` cannot be used.
    secrets_reported: AtomicBool,
    state: watch::Sender<ListenState>,
}

impl Webhooks {
    /// Creates the server. It accepts nothing before [`Self::serve`].
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
        let secrets_reported = AtomicBool::default();
        Self { home, env, clock, definitions, schedule, journal, tokens, rates, refusals, secrets_reported, state }
    }

    /// Notifies the person, once until it is mended, that no delivery can be checked. `why`: the reason, or `None` if it is mended.
    pub(super) async fn report_secrets(&self, why: Option<&String>) {
        if self.secrets_reported.swap(why.is_some(), Ordering::Relaxed) {
            return;
        }
        if let Some(why) = why {
            let text = format!("no webhook takes a delivery: {why}. Senders are told to send again later.");
            if let Err(error) = self.journal.message(NewMessage::of_service(text)).await {
                self.secrets_reported.store(false, Ordering::Relaxed);
                tracing::warn!(%error, "that `.env` cannot be used could not be reported");
            }
        }
    }

    /// Subscribes to the state of the listener.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ListenState> {
        self.state.subscribe()
    }

    /// Serves until the future is dropped. If the address cannot be bound, notifies the person once and retries.
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
                        self.notify_person(format!(
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
            self.notify_person(format!("Webhooks are taken again, on {address}.")).await;
        }
        tracing::info!(%address, "listening for webhooks");
        listener.serve(Arc::new(self)).await;
    }

    async fn notify_person(&self, text: String) {
        if let Err(error) = self.journal.message(NewMessage::of_service(text)).await {
            tracing::warn!(%error, "the person could not be told how webhooks are");
        }
    }
}

/// A bound socket.
enum Listener {
    /// A TCP address.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(RelayedListener),
}

impl Listener {
    /// Binds the address. Replaces a socket that an ended service left at the path.
    async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            ListenAddress::Unix(path) => {
                if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                    fs::remove_file(path)?;
                }
                let listener = RelayedListener::bind(path)?;
                // The folder's permissions limit who may connect, and the signature who may deliver.
                fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
                Ok(Self::Unix(listener))
            }
        }
    }

    /// Serves until the future is dropped.
    async fn serve(self, webhooks: Arc<Webhooks>) {
        let mut connections = JoinSet::new();
        let mut open = OpenConnections::default();
        let mut flush = interval(COUNTED_FIRST);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let accepted = async {
                match &self {
                    Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
                    Self::Unix(listener) => listener.accept().await.map(Stream::Unix),
                }
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(stream) => {
                        while open.count() >= CONNECTIONS && !close_oldest(&mut open, &webhooks.refusals) {
                            // All are deliveries, and each ends soon.
                            connections.join_next().await;
                        }
                        let (webhooks, sender) = (Arc::clone(&webhooks), KnownCaller::default());
                        let task = match stream {
                            Stream::Tcp(stream) => connections.spawn(serve(stream, sender.clone(), webhooks)),
                            Stream::Unix(stream) => connections.spawn(serve(stream, sender.clone(), webhooks)),
                        };
                        open.add(task, sender);
                    }
                    Err(error) => {
                        // Most likely the process is out of descriptors. Wait until some are free.
                        tracing::warn!(%error, "cannot accept a delivery");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = flush.tick(), if !webhooks.refusals.is_empty() => webhooks.refusals.flush(false),
            }
        }
    }
}

/// Closes the oldest connection whose sender has not signed, and records that. Returns whether there was one.
fn close_oldest(open: &mut OpenConnections, refusals: &Refusals) -> bool {
    if !open.close_oldest_unknown() {
        return false;
    }
    let why = format!("closed before a delivery had come, since {CONNECTIONS} connections were open");
    refusals.add(None, Refused { status: StatusCode::SERVICE_UNAVAILABLE.as_u16(), why, payload: None });
    true
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

/// Serves one request on a connection.
async fn serve<S>(stream: S, sender: KnownCaller, webhooks: Arc<Webhooks>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(sender.clone());
        webhooks.answer(request)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false).max_buf_size(16 * 1024);
    let served = timeout(CONNECTION, server.serve_connection(TokioIo::new(stream), service)).await;
    match served {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection of a webhook's sender broke"),
        Err(_) => tracing::debug!("a connection of a webhook's sender took too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::testing;

    #[tokio::test]
    async fn the_oldest_connection_without_a_signature_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-29T09:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        let refusals = Refusals::new(journal, clock);
        let mut connections: JoinSet<()> = JoinSet::new();
        let mut open = OpenConnections::default();
        let ids = [true, false, true, false].map(|has_signed| {
            let (task, sender) = (connections.spawn(std::future::pending()), KnownCaller::default());
            if has_signed {
                sender.note();
            }
            let id = task.id();
            open.add(task, sender);
            id
        });
        let mut closed = Vec::new();
        while close_oldest(&mut open, &refusals) {
            closed.push(connections.join_next_with_id().await.unwrap().unwrap_err().id());
        }
        assert_eq!((closed, open.count()), (vec![ids[1], ids[3]], 2));
    }
}
