//! The end of a turn, and the processing of later messages.
//!
//! A client's last messages count like all others: results, denials, costs, tasks. Its questions are not answered any
//! more, so that the requested calls do not run, and [`ClientState`] counts them.

use std::time::Duration;

use tokio::time::timeout;

use super::{ClientState, Process, Turn, TurnEnd};
use crate::agent::claude::protocol::{self, Incoming, TurnResult};

impl Turn<'_> {
    /// Waits, for a limited time, until the host has processed all questions and notifications.
    pub(super) async fn drain_pending(&mut self) {
        let _ = timeout(self.limits.host_ends, async { while self.asked.join_next().await.is_some() {} }).await;
    }

    /// Aborts the host's tasks, interrupts the client and processes its last messages. Its questions are no longer answered.
    pub(in crate::agent::claude) async fn break_off(&mut self, process: &mut Process) {
        self.asked.shutdown().await;
        self.client.tasks.close();
        self.out.send(&protocol::interrupt("ollim-interrupt"));
        let within = self.limits.interrupt;
        let broken_off = async {
            while let Ok(Some(line)) = process.lines.next().await {
                if self.handle_late_lines(&line) {
                    break;
                }
            }
        };
        // A client that does not stop is killed soon.
        let _ = timeout(within, broken_off).await;
        self.client.asked_too_late = 0;
    }

    /// Closes the client's input and processes its last messages, until it closes its output or `grace` has passed.
    pub(in crate::agent::claude) async fn leave(&mut self, process: &mut Process, grace: Duration) {
        self.out.close();
        self.client.tasks.close();
        let last_words = async {
            while let Ok(Some(line)) = process.lines.next().await {
                self.handle_late_lines(&line);
            }
        };
        let _ = timeout(grace, last_words).await;
        self.drain_pending().await;
    }

    /// Processes a line without answering it; requested calls are counted. Returns whether the line ends a turn.
    fn handle_late_lines(&mut self, line: &[u8]) -> bool {
        use protocol::Request::{BeforeTool, Permission, UnreadableCall};
        match protocol::read(line) {
            Ok(Incoming::Assistant(blocks)) => self.handle_blocks(blocks),
            Ok(Incoming::User(blocks)) => self.results(blocks),
            Ok(Incoming::TakenUp { id }) => self.mark_received(&id),
            Ok(Incoming::Tasks(news)) => self.client.tasks.apply(news),
            Ok(Incoming::Request { request: BeforeTool(_) | Permission(_) | UnreadableCall(_), .. }) => {
                self.client.asked_too_late += 1;
            }
            Ok(Incoming::Result(mut result)) => {
                self.count(&mut result);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Processes a result. Returns `None` if something that the client started is still running.
    pub(super) fn ended(&mut self, mut result: Box<TurnResult>) -> Option<TurnEnd> {
        self.count(&mut result);
        // After an error the tasks are not awaited.
        if result.is_error || !self.client.tasks.any() {
            return Some(TurnEnd::Result(result));
        }
        tracing::debug!(tasks = self.client.tasks.names(), "the turn has ended; what it started is waited for");
        self.held = Some(result);
        None
    }

    fn count(&mut self, result: &mut TurnResult) {
        for denial in std::mem::take(&mut result.permission_denials) {
            // Our own denials are already on record.
            if self.verdicts.refused(&denial.tool_use_id) {
                let host = self.request.host.clone();
                let reason = "denied by the agent client's own rules".to_string();
                self.notify_host(async move { host.client_denied(denial.tool_name, denial.tool_input, reason).await });
            }
        }
        self.now_in(std::mem::take(&mut result.session_id));
        self.client.take_from(result);
    }
}

impl ClientState {
    /// Takes the figures of a result. The client sums up the cost and tokens of a session, but counts the turns of each result.
    fn take_from(&mut self, result: &TurnResult) {
        self.cost_usd = result.total_cost_usd.or(self.cost_usd);
        self.tokens = result.tokens().or(self.tokens);
        self.turns = result.num_turns.map(|turns| turns + self.turns.unwrap_or(0)).or(self.turns);
        if let Some(text) = &result.result
            && !text.is_empty()
            && !result.is_error
        {
            self.answer = Some(text.clone());
        }
    }
}
