//! Agent clients: `claude` over its control protocol, and `notify`, which needs no model.
//!
//! A client is started with a [`Request`], which cannot be made without a policy, and talks back through a
//! [`RunHost`]. Nothing here names a routine, a reminder or a channel.

mod client;

pub use client::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, Request, RunHost, SessionId,
    SessionMode, ToolAnswer,
};
