//! Agent clients: `claude` over its control protocol, and `notify`, which needs no model.
//!
//! A client is started with a [`Request`], which cannot be made without a policy, and talks back through a
//! [`RunHost`]. This module does not know routines, reminders or channels.
//!
//! A `claude` always runs under a runner (the crate `agent_sandbox`). The runner holds its whole process tree and ends it with the
//! run or the service. It keeps the tree in a kernel sandbox, and has each program judged that the client's shell starts.

mod choice;
pub mod claude;
mod client;
mod current_host;
mod notify;
mod observation;
pub mod sockets;
pub mod tools;
mod transcript;

pub use self::notify::{NOTIFY, Notify};
pub use choice::{Clients, FixedClient, NoAgent};
pub use claude::Claude;
pub use client::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, FurtherMessage, JsonObject, Request,
    RunHost, Sandbox, SessionId, SessionMode, SkipReason, ToolAnswer, UsedClient,
};
pub use current_host::CurrentHost;
pub use observation::{Observation, Tokens, compacted};
pub use tools::{ExternalAnswer, ExternalServer, ExternalTool, ServeTools, ServerState, ToolPipe};
pub use transcript::{RESUMED, open_transcript};
