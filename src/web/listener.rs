//! Where the page listens: an address of this machine, or a Unix socket.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::Router;
use tokio::net::{TcpListener, UnixListener};

use crate::config::ListenAddress;

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

    /// How a person reaches it: the beginning of a link.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) if address.ip().is_unspecified() => format!("http://127.0.0.1:{}", address.port()),
                Ok(address) => format!("http://{address}"),
                Err(_) => String::new(),
            },
            Self::Unix(..) => "http://localhost".to_owned(),
        }
    }

    pub(super) async fn serve(self, router: Router) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => axum::serve(listener, router).await,
            Self::Unix(listener, path) => {
                let _removed = RemovedAtEnd(path);
                axum::serve(listener, router).await
            }
        }
    }
}

/// A socket whose server has died answers nobody and stands in the way.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && tokio::net::UnixStream::connect(path).await.is_err() {
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
