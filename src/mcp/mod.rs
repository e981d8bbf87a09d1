//! Our tools for agents, served over the client's own pipe by the Model Context Protocol.
//!
//! The server of a run offers exactly the tools that the run was granted, under names and schemas that stand in
//! [`tools`], and hands each call to the run's host. It decides nothing, knows neither runs nor channels, and opens no
//! port: the pipe says who is calling.

mod server;
pub mod servers;
pub mod tools;
mod transport;

pub use server::serve;
