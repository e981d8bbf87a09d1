//! The protocol of the control socket: JSON, one value per line.
//!
//! The caller's first line is a [`Hello`], so a caller without a token can make the service read no more than
//! [`HELLO_LIMIT`] bytes. Each further line is a [`Request`]. The service answers each with one [`Reply`], in order. A
//! subscription is the connection's last request: one reply per event follows, until the caller closes the connection or
//! sends anything. A run's connection serves one request, so nothing is done for a run that is over.

use serde::{Deserialize, Serialize};

use crate::app::{ServiceCommand, ServiceReply};
use crate::journal::{Event, EventFilter};
use crate::refusal::Refusal;

/// The variable that holds a run's token in its fork's environment.
pub const RUN_TOKEN: &str = "OLLIM_RUN_TOKEN";

/// Maximum length of the first line, in bytes.
pub const HELLO_LIMIT: usize = 256;
/// Maximum length of a request or reply, in bytes. Linux limits a single argument to far less.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// The version of this protocol. The service and its callers are the same binary, except after an update.
pub const PROTOCOL: u32 = 2;

/// The caller's identification.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The person's token or a live run's.
    pub token: String,
    /// The caller's [`PROTOCOL`].
    #[serde(default)]
    pub protocol: u32,
}

/// A caller's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Executes a command line on behalf of a run, whose policy judges the words.
    Execute {
        /// The words after `ollim-bot`.
        argv: Vec<String>,
    },
    /// Executes a command that only the service can, for the person.
    Service(ServiceCommand),
    /// Subscribes to events, for the person.
    Subscribe {
        /// The event after which the subscription begins; `None` begins with new events.
        after: Option<i64>,
        /// The selection of events.
        filter: EventFilter,
    },
}

/// The service's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The output of a [`Request::Execute`].
    Output {
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
        /// The exit code.
        exit: u8,
    },
    /// The answer to [`Request::Execute`] if the run may start this command of the person's, in its own process.
    Exec {
        /// The command's name without `ollim-bot-`.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The answer to [`Request::Service`].
    Done(ServiceReply),
    /// An event of a [`Request::Subscribe`].
    Event(Box<Event>),
    /// The reason why the request was refused.
    Refused(Refusal),
}
