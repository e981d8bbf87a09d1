//! Where something of the service's listens: an address of this machine, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::values::fault;
use crate::definition::values::{Fault, Value};

/// An address or a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address that only this machine reaches.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// `127.0.0.1:8080`, or `/run/user/1000/ollim.sock`.
pub(super) fn listen(value: &Value) -> Result<Listen, Fault> {
    let text = value.text()?;
    let text = text.trim();
    if text.starts_with('/') {
        return Ok(Listen::Unix(PathBuf::from(text)));
    }
    let hint = "write `127.0.0.1:8080`, or the path of a Unix socket; `localhost` stands for 127.0.0.1";
    let address = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    match address.as_deref().unwrap_or(text).parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Listen::Tcp(address)),
        Ok(_) => Err(fault(
            format!("`{}` must be an address that only this machine reaches", value.name),
            "listen on 127.0.0.1 or a Unix socket, and put a proxy with HTTPS or `ssh -L` before it",
        )),
        Err(_) => Err(fault(format!("`{}` must be an address with a port", value.name), hint)),
    }
}
