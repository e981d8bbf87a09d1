//! Our tools for agents, served with the Model Context Protocol over the client's own pipe.
//!
//! The server of a run offers exactly the tools that the run was granted, with the names and schemas of [`tools`], and
//! passes each call to the run's host. It decides nothing, knows neither runs nor channels, and opens no port: the pipe
//! identifies the caller.

mod server;
pub mod servers;
pub mod tools;
mod transport;

pub use server::serve;
