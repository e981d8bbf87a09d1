//! The built-in agents. Each one is an embedded file, read like a person's own. A test checks that all are valid.

use super::file::{self, AgentFile, Parsed};
use super::{Scope, Source};

/// The names of the built-in agents, in the order of `TEXTS`.
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

/// Parses all built-in agents.
pub(super) fn all() -> impl Iterator<Item = Parsed> {
    NAMES.into_iter().zip(TEXTS).map(|(name, text)| {
        file::parse(&AgentFile {
            source: Source { scope: Scope::Builtin, path: format!("<builtin:{name}>").into() },
            bytes: text.as_bytes(),
            // The policy and the sandbox enforce this, so no field of a file says it.
            read_only: matches!(name, "Explore" | "Plan"),
            // This agent edits the client's own settings, which no fork can access.
            main_session_only: name == "statusline-setup",
        })
    })
}
