//! Addresses at which the service listens for HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::values::fault;
use crate::definition::values::{Fault, Value};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// The absolute path of a Unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Whether other machines can reach it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().is_loopback())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Serialize for ListenAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads `127.0.0.1:8787`, or `/run/user/1000/ollim-webhooks.sock`.
pub(super) fn listen_address(value: &Value) -> Result<ListenAddress, Fault> {
    let text = value.text()?;
    let path = PathBuf::from(&text);
    if path.is_absolute() && !text.ends_with('/') && !text.contains(char::is_control) {
        return Ok(ListenAddress::Unix(path));
    }
    text.parse().map(ListenAddress::Tcp).map_err(|_| {
        let message =
            format!("`{}` must be an address with its port, or the absolute path of a Unix socket", value.name);
        // A port alone means this machine.
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let port = port.unwrap_or(if value.name == "webhooks" { 8787 } else { 8080 });
        fault(message, &format!("for example `127.0.0.1:{port}`"))
    })
}

/// Reads an address that only this machine can reach.
pub(super) fn local_address(value: &Value) -> Result<ListenAddress, Fault> {
    let address = listen_address(value)?;
    if address.is_open() {
        return Err(fault(
            format!("`{}` must be an address that only this machine reaches", value.name),
            "listen on 127.0.0.1 or a Unix socket, and put a proxy with HTTPS or `ssh -L` before it",
        ));
    }
    Ok(address)
}
