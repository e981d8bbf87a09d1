//! Where the page listens: an address of this machine, or a Unix socket.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::config::ListenAddress;

/// So many connections are served at once; of more, the oldest makes room. Whoever is not logged in takes no descriptors from the service.
const CONNECTIONS: usize = 256;

/// Where a tunnel to a socket is to begin: no browser opens a socket itself.
pub const TUNNEL_PORT: u16 = 8080;

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);

/// How long nothing is accepted when that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {at}: {source}")]
pub struct BindError {
    /// The address or the socket.
    pub at: String,
    /// Why not.
    pub source: io::Error,
}

/// Something that listens.
pub enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// On a socket, which is removed with it.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens. A socket that nothing listens on any more is replaced.
    ///
    /// # Errors
    /// When the address is taken or is not this machine's, or the socket cannot be made.
    pub async fn bind(listen: &ListenAddress) -> Result<Self, BindError> {
        let failed = |source| BindError { at: listen.to_string(), source };
        match listen {
            ListenAddress::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await.map_err(failed)?)),
            ListenAddress::Unix(path) => {
                remove_dead(path).await.map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    /// How a person reaches it: the beginning of a link. Of a socket, by [`TUNNEL_PORT`].
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
            Self::Unix(_, path) => Some(RemovedAtEnd(path.clone())),
        };
        let mut connections = JoinSet::new();
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let accepted = async {
                match &self {
                    Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
                    Self::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
                }
            };
            tokio::select! {
                accepted = accepted => match accepted {
                    Ok(stream) => {
                        open.retain(|connection| !connection.is_finished());
                        if open.len() >= CONNECTIONS && let Some(oldest) = open.pop_front() {
                            oldest.abort();
                        }
                        let router = router.clone();
                        open.push_back(match stream {
                            Stream::Tcp(stream) => connections.spawn(serve(stream, router)),
                            Stream::Unix(stream) => connections.spawn(serve(stream, router)),
                        });
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: some are given back soon.
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
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await {
        tracing::debug!(%error, "a connection of the page's broke");
    }
}

/// A socket whose server has died answers nobody and stands in the way.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).await.err().is_some_and(refused) {
        fs::remove_file(path)?;
    }
    Ok(())
}

struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}
