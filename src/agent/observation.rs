//! What a client is seen to do in a run: the part of a run's record that only the client's own messages tell.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::Layer;

/// Something that a client said or did, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Observation {
    /// It has set up its session.
    ClientReady {
        /// The client's version, where it says so.
        version: Option<String>,
        /// The model, where it says so.
        model: Option<String>,
    },
    /// The model said something.
    Said {
        /// The text, as it stands in the message.
        text: String,
    },
    /// A command (`client: exec`) printed something: whole lines, where they are not long.
    Printed {
        /// What it printed, on standard output and standard error.
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
    /// The call was decided.
    ToolDecided {
        /// The client's id of the call.
        call: String,
        /// Whether it may run.
        allowed: bool,
        /// The sentence that the agent was given; empty where it may run.
        reason: String,
        /// The layer that decided; `None`: none came to a verdict, or an earlier version of the program recorded it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layer: Option<Layer>,
        /// The rule that decided, where one matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// The call is over.
    ToolResult {
        /// The client's id of the call.
        call: String,
        /// The length of its result's text in bytes.
        bytes: usize,
        /// Whether it failed.
        failed: bool,
    },
    /// The client has made the conversation shorter, since it was too long or the person asked for it.
    Compacted {
        /// Its length before, in tokens, where the client says it.
        before: Option<u64>,
        /// Its length afterwards.
        after: Option<u64>,
    },
    /// A request to the model's API failed; the client tries it again by itself.
    ApiRetry {
        /// What the API did: `the API cannot be reached`.
        fault: String,
    },
}

/// [`Observation::Compacted`] in words.
#[must_use]
pub fn compacted(before: Option<u64>, after: Option<u64>) -> String {
    let tokens = match (before, after) {
        (Some(before), Some(after)) => format!(": {before} tokens became {after}"),
        (Some(before), None) => format!("; it had {before} tokens"),
        _ => String::new(),
    };
    format!("The conversation was made shorter{tokens}")
}

/// What a run took of its model, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read afresh.
    pub input: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
    /// Written by the model.
    pub output: u64,
}

impl Tokens {
    /// Those that count against `tokens_day`: all but what was read from the cache.
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
