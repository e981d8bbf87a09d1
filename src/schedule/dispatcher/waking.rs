//! Definitions that wake the machine (`wake`): the kernel is told when the first of them falls due.

use super::Dispatcher;
use crate::journal::JournalReader;

/// Where the journal keeps why the machine is not woken.
const SETTING: &str = "cannot_wake";

/// Why definitions that ask for it do not wake the machine, as the service saw it last; `None`: they do, or there were none.
#[must_use]
pub fn cannot_wake(journal: &JournalReader) -> Option<String> {
    journal.setting(SETTING).ok().flatten()
}

impl Dispatcher {
    /// Has the machine wake for the first definition that asks for it.
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
