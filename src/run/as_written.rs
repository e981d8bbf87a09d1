//! Jobs that need no client: the body is the message. Such a job has no folder, no policy and no prompt, so a thousand of them
//! that are due together cost little more than their commits.

use super::follow_up::NextCheck;
use super::runner::{Runner, needs_agent};
use crate::agent::{AttemptEnd, AttemptReport, NOTIFY, UsedClient};
use crate::definition::{Definition, Kind};
use crate::schedule::Job;

impl Runner {
    /// Returns whether the body is delivered as it is: the file says so, or there is no agent by choice and the job needs none.
    pub(super) fn is_message_only(&self, definition: &Definition) -> bool {
        let by_choice = || self.clients.are_without_agent() && definition.background().is_none();
        definition.kind() != Kind::Session
            && (definition.is_delivered_as_written() || by_choice() && needs_agent(definition).is_none())
    }

    /// Returns the end of a job that only delivers its body; `None` if it needs more, such as the next check of its chain.
    pub(super) fn as_written(&self, job: &Job) -> Option<AttemptReport> {
        if !self.is_message_only(&job.definition) || NextCheck::of(&job.definition).is_open() {
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

/// Returns the person's own text, preceded by the note that it is late, if any.
pub(super) fn message(job: &Job) -> String {
    let body = job.definition.body.trim_end();
    match &job.late {
        Some(late) => format!("{late}\n\n{body}"),
        None => body.to_owned(),
    }
}
