//! The client without a model: it delivers the person's own text to the person.

use async_trait::async_trait;
use futures::FutureExt;

use super::client::{AgentClient, AttemptEnd, AttemptReport, Failure, FailureClass, Request};

/// The client's name in the record.
pub const NOTIFY: &str = "notify";

/// What to do if a job needs an agent.
const REMEDY: &str = "set `agent_client: auto` in config.yaml (or take OLLIM_AGENT_CLIENT out of the service's environment), \
                      and start the service again";

/// A client that delivers `Request::message`. It fails a job that needs an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notify;

#[async_trait]
impl AgentClient for Notify {
    fn name(&self) -> &'static str {
        NOTIFY
    }

    fn starts_processes(&self) -> bool {
        false
    }

    async fn run(&self, request: Request) -> AttemptReport {
        let end = if request.cancel.is_cancelled() {
            AttemptEnd::Cancelled
        } else if let Some(why) = request.needs_agent {
            // Without a choice of this client, a job that needs an agent waits for one.
            let message = format!("{why}: only an agent can do this, and `agent_client: notify` runs none; {REMEDY}");
            AttemptEnd::Failed(Failure::new(FailureClass::NeedsClaude, message))
        } else {
            // A delivery that has begun is not interrupted, so that it happens completely or not at all.
            match std::panic::AssertUnwindSafe(request.host.deliver(request.message)).catch_unwind().await {
                Ok(Ok(())) => AttemptEnd::Completed,
                Ok(Err(message)) => AttemptEnd::Failed(Failure::new(FailureClass::Internal, message)),
                Err(_) => AttemptEnd::Failed(Failure::new(
                    FailureClass::Internal,
                    "delivering the message panicked: this is a fault of ollim-bot, please report it",
                )),
            }
        };
        AttemptReport::bare(end)
    }
}
