//! Observations of a client in a run: the part of the record that comes from the client's own messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::Layer;

/// An observation of a client. Observations are recorded in the order of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Observation {
    /// The client has set up its session.
    ClientReady {
        /// The client's version, if it reports one.
        version: Option<String>,
        /// The model, if the client reports one.
        model: Option<String>,
    },
    /// The model wrote a message.
    Said {
        /// The text of the message.
        text: String,
    },
    /// A command (`client: exec`) printed output, in whole lines unless they are long.
    Printed {
        /// The output on standard output and standard error.
        text: String,
    },
    /// The model calls a tool.
    ToolCall {
        /// The client's id of the call.
        call: String,
        /// The tool's name.
        tool: String,
        /// Its input.
        input: Value,
    },
    /// The host decided the call.
    ToolDecided {
        /// The client's id of the call.
        call: String,
        /// Whether it may run.
        allowed: bool,
        /// The sentence for the agent; empty if the call may run.
        reason: String,
        /// The layer that decided; `None` if no verdict was reached, or an earlier version of the program recorded it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layer: Option<Layer>,
        /// The rule that decided, if one matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// The call is over.
    ToolResult {
        /// The client's id of the call.
        call: String,
        /// Length of the result's text, in bytes.
        bytes: usize,
        /// Whether it failed.
        failed: bool,
    },
    /// The client compacted the conversation, since it was too long or at the person's request.
    Compacted {
        /// The length before, in tokens, if the client reports it.
        before: Option<u64>,
        /// The length afterwards, in tokens, if the client reports it.
        after: Option<u64>,
    },
    /// A request to the model's API failed, and the client retries it by itself.
    ApiRetry {
        /// The failure: `the API cannot be reached`.
        fault: String,
    },
}

/// Formats an [`Observation::Compacted`] for the person.
#[must_use]
pub fn compacted(before: Option<u64>, after: Option<u64>) -> String {
    let tokens = match (before, after) {
        (Some(before), Some(after)) => format!(": {before} tokens became {after}"),
        (Some(before), None) => format!("; it had {before} tokens"),
        _ => String::new(),
    };
    format!("The conversation was made shorter{tokens}")
}

/// The token usage of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Input tokens that were not cached.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Output tokens.
    pub output: u64,
}

impl Tokens {
    /// Returns the tokens that count against `tokens_day`: all except those read from the cache.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.input + self.cache_write + self.output
    }
}

impl std::ops::Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
        }
    }
}

impl std::ops::Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            output: self.output.saturating_sub(other.output),
        }
    }
}
