//! Definitions that wake the machine (`wake`). The kernel's timer is set to the first of them.

use super::Dispatcher;
use crate::journal::JournalReader;

/// Key of the reason why the machine is not woken.
const SETTING: &str = "cannot_wake";

/// Returns why `wake` has no effect, as the service last saw it; `None` if it works, or no definition asked for it.
#[must_use]
pub fn cannot_wake(journal: &JournalReader) -> Option<String> {
    journal.setting(SETTING).ok().flatten()
}

impl Dispatcher {
    /// Sets the machine to wake for the first definition that asks for it.
    pub(super) fn set_waker(&mut self) {
        let may_fire = self.phase.is_running() && self.gate.paused.is_none();
        let at = self.definitions.next_waking_due().filter(|_| may_fire);
        if let Some(waker) = &mut self.waker {
            waker.set(at);
        } else if at.is_some() {
            let mut waker = self.clock.waker();
            let why = waker.cannot();
            if let Some(why) = &why {
                tracing::warn!(why, "`wake` has no effect: the machine is not woken");
            }
            waker.set(at);
            self.waker = Some(waker);
            let journal = self.journal.clone();
            self.note(async move { journal.set_setting(SETTING, why).await });
        }
    }
}
