//! The agents that are built in. Each is a file like a person's own, embedded, and read by the same reader; that all of
//! them are valid is held by a test.

use super::file::{self, AgentFile, Parsed};
use super::{Scope, Source};

/// Their names.
pub(super) const NAMES: [&str; 6] =
    ["Bash", "general-purpose", "statusline-setup", "Explore", "Plan", "claude-code-guide"];

const TEXTS: [&str; 6] = [
    include_str!("builtin/bash.md"),
    include_str!("builtin/general-purpose.md"),
    include_str!("builtin/statusline-setup.md"),
    include_str!("builtin/explore.md"),
    include_str!("builtin/plan.md"),
    include_str!("builtin/claude-code-guide.md"),
];

/// All of them, read.
pub(super) fn all() -> impl Iterator<Item = Parsed> {
    NAMES.into_iter().zip(TEXTS).map(|(name, text)| {
        file::parse(&AgentFile {
            source: Source { scope: Scope::Builtin, path: format!("<builtin:{name}>").into() },
            bytes: text.as_bytes(),
            // Held by the policy and the kernel wall, so no field of a file.
            read_only: matches!(name, "Explore" | "Plan"),
            // It edits the client's own settings, which no fork reaches.
            main_session_only: name == "statusline-setup",
        })
    })
}
