//! A job that needs no client at all: its body is the message. It has no folder, no policy and no prompt, so a thousand of them
//! that fall due together cost little more than their commits.

use super::follow_up::NextCheck;
use super::runner::{Runner, needs_agent};
use crate::agent::{AttemptEnd, AttemptReport, NOTIFY, UsedClient};
use crate::definition::{Definition, Kind};
use crate::schedule::Job;

impl Runner {
    /// Whether a definition is told the person as it stands, because its file says so or because there is no agent by choice.
    pub(super) fn tells_only(&self, definition: &Definition) -> bool {
        let by_choice = || self.clients.are_without_agent() && definition.background().is_none();
        definition.kind() != Kind::Session
            && (definition.is_delivered_as_written() || by_choice() && needs_agent(definition).is_none())
    }

    /// The end of a job whose body is all that there is to do; `None`: there is more, for it makes the next check of its chain.
    pub(super) fn as_written(&self, job: &Job) -> Option<AttemptReport> {
        if !self.tells_only(&job.definition) || NextCheck::of(&job.definition).is_open() {
            return None;
        }
        if job.cancel.is_cancelled() {
            return Some(AttemptReport::bare(AttemptEnd::Cancelled));
        }
        let client = UsedClient { name: NOTIFY, version: None, is_agent: false };
        let report = AttemptReport::bare(AttemptEnd::Completed);
        Some(AttemptReport { messages: vec![message(job)], client: Some(client), ..report })
    }
}

/// The person's own text, with what is to be said of its being late.
pub(super) fn message(job: &Job) -> String {
    let body = job.definition.body.trim_end();
    match &job.late {
        Some(late) => format!("{late}\n\n{body}"),
        None => body.to_owned(),
    }
}
