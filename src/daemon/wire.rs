//! What is said on the control socket: JSON, one value a line.
//!
//! The caller's first line is a [`Hello`], so that one without a token can make the service read no more than
//! [`HELLO_LIMIT`] bytes. Each further line is a [`Request`], and is answered by one [`Reply`] in the order of the requests. A
//! subscription is the connection's last request: replies follow, an event each, until the caller closes it or says anything
//! more. A run's connection serves one request, so that nothing is done for a run that is over.

use serde::{Deserialize, Serialize};

use crate::app::{ServiceCommand, ServiceReply};
use crate::journal::{Event, EventFilter};
use crate::refusal::Refusal;

/// The variable that holds a run's token in its fork's environment.
pub const RUN_TOKEN: &str = "OLLIM_RUN_TOKEN";

/// Longest first line, in bytes.
pub const HELLO_LIMIT: usize = 256;
/// Longest request or reply, in bytes: twice what Linux lets a single argument be, many times over.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// The version of this protocol. The service and its callers are the same binary, save after an update.
pub const PROTOCOL: u32 = 2;

/// Who is asking.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The person's token or a live run's.
    pub token: String,
    /// The caller's [`PROTOCOL`].
    #[serde(default)]
    pub protocol: u32,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A command line, on behalf of a run: its policy judges words.
    Execute {
        /// The words after `ollim-bot`.
        argv: Vec<String>,
    },
    /// What the service alone can do, for the person.
    Service(ServiceCommand),
    /// What happens from now on, for the person.
    Subscribe {
        /// What has happened since this event too.
        after: Option<i64>,
        /// Which events.
        filter: EventFilter,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// [`Request::Execute`]: what the command printed.
    Output {
        /// Data.
        stdout: String,
        /// Everything else.
        stderr: String,
        /// The exit code.
        exit: u8,
    },
    /// [`Request::Execute`]: the run may start this command of the person's own, in its own process.
    Exec {
        /// The command's name without `ollim-bot-`.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// [`Request::Service`].
    Done(ServiceReply),
    /// [`Request::Subscribe`]: something has happened.
    Event(Box<Event>),
    /// It was not done.
    Refused(Refusal),
}
