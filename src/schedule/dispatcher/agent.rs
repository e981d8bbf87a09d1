//! Jobs that need an agent while there is none. They wait, and other jobs run.

use tokio::time::Instant;

use super::super::conclusion::{LOGIN_BUTTONS, LOGIN_PROBE};
use super::super::gate::AgentMissing;
use super::Dispatcher;
use super::recovery::NO_LOGIN;
use crate::agent::NoAgent;
use crate::journal::NewMessage;

impl Dispatcher {
    /// Makes an occurrence wait for a missing agent. Notifies the person once.
    pub(super) fn on_agent_missing(&mut self, number: u64, missing: &NoAgent) {
        let Some(running) = self.active.get(number).and_then(|active| active.running()) else { return };
        let cause = running.cause;
        self.recent.retract(&running.definition);
        if let Some(active) = self.active.get_mut(number) {
            active.awaits_agent = true;
        }
        self.waits_again(number, cause, false);
        let now = self.clock.now();
        // From now on, the service looks for the agent without an attempt.
        self.gate.stop_waiting_for_login(now);
        let first =
            AgentMissing { since: now, next_check: Instant::now() + LOGIN_PROBE, lacks_login: missing.lacks_login };
        self.gate.agent_missing.get_or_insert(first).lacks_login = missing.lacks_login;
        if !std::mem::replace(&mut self.gate.login_notified, true) {
            let why = &missing.why;
            let text = format!(
                "Jobs that need the agent wait until it is there, and others go on: {why}. `ollim-bot status` shows what waits."
            );
            let (journal, since) = (self.journal.clone(), now.to_rfc3339());
            let buttons = if missing.lacks_login { LOGIN_BUTTONS } else { &[] };
            let message = NewMessage::of_service(text).with_buttons(buttons);
            self.note(async move { journal.message_once(NO_LOGIN, since, message).await.map(drop) });
        }
    }

    /// Makes occurrences that wait for an agent look for it again, if it is time.
    pub(super) fn recheck_agent(&mut self) {
        if self.gate.agent_missing.is_some_and(|missing| missing.next_check <= Instant::now()) {
            let waits = self.active.iter().any(|(_, active)| active.awaits_agent);
            let next_check = Instant::now() + LOGIN_PROBE;
            let missing = self.gate.agent_missing.filter(|_| waits);
            self.gate.agent_missing = missing.map(|missing| AgentMissing { next_check, ..missing });
            self.release_for_agent();
        }
    }

    /// Makes occurrences that wait for a login or an agent look for it at once.
    pub(super) fn recheck_login(&mut self) {
        self.gate.stop_waiting_for_login(self.clock.now());
        self.retry_login_probes();
        self.release_for_agent();
    }

    /// Makes occurrences that wait for an agent look for it at once.
    pub(super) fn release_for_agent(&mut self) {
        for number in self.active.numbers(|active| active.awaits_agent) {
            if let Some(active) = self.active.get_mut(number) {
                active.awaits_agent = false;
            }
        }
    }
}
