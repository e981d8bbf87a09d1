//! One attempt of one occurrence, from the claim to the report: prompt, policy, client, tools.

pub mod chain;
pub mod prompt;
pub mod tokens;
