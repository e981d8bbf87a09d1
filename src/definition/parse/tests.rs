//! Every diagnostic, as a person sees it, and the files that have none.

use super::*;
use std::fmt::Write as _;

fn defaults() -> Defaults {
    Defaults {
        zone: chrono_tz::Europe::Vienna,
        commands: ["gmail", "tasks", "cal", "help", "follow-up-chain"].map(String::from).into(),
    }
}
