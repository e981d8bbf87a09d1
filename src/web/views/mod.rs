//! The views: each is a function from the application's answer to HTML.

pub(super) mod chat;
pub(super) mod costs;
pub(super) mod dry_run;
pub(super) mod edit;
pub(super) mod hosts;
pub(super) mod inbox;
pub(super) mod job;
pub(super) mod jobs;
pub(super) mod next;
pub(super) mod policy;
pub(super) mod questions;
pub(super) mod refusals;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod service;
pub(super) mod timeline;
