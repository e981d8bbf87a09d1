//! Named agents.
