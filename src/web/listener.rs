//! The page's listener: an address of this machine, or a Unix socket.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_sandbox::relay::RelayedListener;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::config::ListenAddress;
use crate::connections::{KnownCaller, OpenConnections};

/// Maximum number of connections. At the limit the oldest is closed that has no login, or else the oldest. So callers without a login
/// cannot exhaust the descriptors, and disturb no one who has one.
const CONNECTIONS: usize = 256;

/// The local port for a tunnel to a socket, as browsers cannot open a socket.
pub const TUNNEL_PORT: u16 = 8080;

/// Maximum time to receive the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Pause after a failed accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The reason why the page cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {at}: {source}")]
pub struct BindError {
    /// The address or the socket.
    pub at: String,
    /// The cause.
    pub source: io::Error,
}

/// A bound listener.
pub enum Listener {
    /// A TCP address.
    Tcp(TcpListener),
    /// A Unix socket. Its file is removed when serving ends.
    Unix(RelayedListener, PathBuf),
}

impl Listener {
    /// Binds the listener. Replaces a socket that nothing listens on any more.
    ///
    /// # Errors
    /// If the address is taken or not this machine's, or the socket cannot be made.
    pub async fn bind(listen: &ListenAddress) -> Result<Self, BindError> {
        let failed = |source| BindError { at: listen.to_string(), source };
        match listen {
            ListenAddress::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await.map_err(failed)?)),
            ListenAddress::Unix(path) => {
                remove_dead(path).await.map_err(failed)?;
                let listener = RelayedListener::bind(path).map_err(failed)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    /// Returns the URL at which a person reaches the page. For a socket it uses [`TUNNEL_PORT`].
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) if address.ip().is_unspecified() => format!("http://127.0.0.1:{}", address.port()),
                Ok(address) => format!("http://{address}"),
                Err(_) => String::new(),
            },
            Self::Unix(..) => format!("http://localhost:{TUNNEL_PORT}"),
        }
    }

    /// Serves until the future is dropped.
    pub(super) async fn serve(self, router: Router) {
        let _removed = match &self {
            Self::Tcp(_) => None,
            Self::Unix(_, path) => Some(SocketFileGuard(path.clone())),
        };
        let mut connections = JoinSet::new();
        let mut open = OpenConnections::default();
        loop {
            let accepted = async {
                match &self {
                    Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
                    Self::Unix(listener, _) => listener.accept().await.map(Stream::Unix),
                }
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(stream) => {
                        if open.count() >= CONNECTIONS && !open.close_oldest_unknown() {
                            open.close_oldest();
                        }
                        let (router, caller) = (router.clone(), KnownCaller::default());
                        let task = match stream {
                            Stream::Tcp(stream) => connections.spawn(serve(stream, caller.clone(), router)),
                            Stream::Unix(stream) => connections.spawn(serve(stream, caller.clone(), router)),
                        };
                        open.add(task, caller);
                    }
                    Err(error) => {
                        // Most likely the process is out of descriptors. Some will be free soon.
                        tracing::warn!(%error, "the page cannot accept a connection");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Serves one connection.
async fn serve<S>(stream: S, caller: KnownCaller, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        router.call(request)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection of the page's broke");
    }
}

/// Removes a socket whose server has died, which would block the new one.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).await.err().is_some_and(refused) {
        fs::remove_file(path)?;
    }
    Ok(())
}

struct SocketFileGuard(PathBuf);

impl Drop for SocketFileGuard {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}
