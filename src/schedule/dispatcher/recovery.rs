//! Taking up what an earlier life has left. Nothing fires before this is done.

use std::sync::Arc;

use super::super::leftover;
use super::super::open::{Open, Stage};
use super::super::retry::CUT_OFF_AT_MOST;
use super::{Dispatcher, Event};
use crate::definition::{Definition, DefinitionId};
use crate::journal::{Journal, JournalError, Recovered, RunState, Streak, Unfinished};

/// The setting that holds since when a person has paused everything.
pub(super) const PAUSED: &str = "paused";

/// The setting that holds since when the person knows that there is no login.
pub(super) const NO_LOGIN: &str = "no_login";

/// What was found.
pub(super) struct Found {
    recovered: Recovered,
    paused: Option<String>,
    told_of_login: bool,
}

async fn find(journal: &Journal) -> Result<Found, JournalError> {
    fail_point!(BeforeRecovery);
    let processes = journal.leftovers().await?;
    for process in processes {
        // Fails only when the runtime is going away.
        let ended = tokio::task::spawn_blocking(move || leftover::end(&process)).await;
        if ended.unwrap_or(false) {
            tracing::warn!("a run of an earlier life was still going; it was ended");
        }
    }
    fail_point!(LeftoversEnded);
    let recovered = journal.recover().await?;
    fail_point!(Recovered);
    let told_of_login = journal.setting(NO_LOGIN).await?.is_some();
    Ok(Found { recovered, paused: journal.setting(PAUSED).await?, told_of_login })
}

impl Dispatcher {
    pub(super) fn recover(&mut self) {
        let journal = self.journal.clone();
        self.tasks.spawn(async move { Event::Recovered(find(&journal).await) });
    }

    pub(super) fn on_recovered(&mut self, found: Result<Found, JournalError>) -> Result<(), JournalError> {
        self.found = Some(found?);
        self.take_up_found();
        Ok(())
    }

    /// Takes up what was found, once it is known up to when everything is accounted for: a pause that is over has to know.
    pub(super) fn take_up_found(&mut self) {
        if self.seeing > 0 {
            return;
        }
        let Some(Found { recovered, paused, told_of_login }) = self.found.take() else { return };
        self.recovered = true;
        self.told_of_login = told_of_login;
        // A time that cannot be read still means paused.
        self.paused = paused.map(|since| since.parse().unwrap_or_else(|_| self.clock.now()));
        self.were_disabled = recovered.disabled;
        self.take_streaks(recovered.streaks);
        for unfinished in recovered.unfinished {
            self.supersede(&unfinished.occurrence);
            self.take_up(unfinished);
        }
        for recorded in recovered.recorded {
            // A definition that fires for it again would only find the record.
            if let Some(entry) = self.definitions.get_mut(&recorded.occurrence.id) {
                entry.handled = Some(recorded.occurrence.at);
            }
            self.clean_up(recorded);
        }
        for seen in std::mem::take(&mut self.seen_early) {
            self.arm_with(&seen.definition.id, Some(&seen));
        }
        let unarmed = self.definitions.iter().filter(|(_, entry)| entry.due.is_none());
        let unarmed: Vec<(DefinitionId, bool)> =
            unarmed.map(|(id, entry)| (id.clone(), entry.loaded.definition.enabled)).collect();
        for (id, enabled) in unarmed {
            if enabled && self.were_disabled.contains(&id) {
                self.enabled_again(&id);
            }
            self.arm(&id);
        }
        for command in std::mem::take(&mut self.early) {
            self.obey(command);
        }
    }

    fn take_streaks(&mut self, streaks: Vec<(Streak, Option<Arc<str>>)>) {
        for (streak, fired) in streaks {
            let id = streak.id.clone();
            let edited = self.definitions.get(&id).is_some_and(|entry| Some(&entry.loaded.text) != fired.as_ref());
            let paused = streak.paused.is_some();
            self.keep_streak(&streak);
            if paused && edited {
                self.end_pause(&id);
            }
        }
    }

    fn take_up(&mut self, left: Unfinished) {
        let definition = self.definitions.get(&left.occurrence.id).map(|entry| Arc::clone(&entry.loaded.definition));
        if let Some(entry) = self.definitions.get_mut(&left.occurrence.id) {
            entry.handled = Some(left.occurrence.at);
        }
        let number = self.open.insert(Open {
            run: left.run.clone(),
            occurrence: left.occurrence.clone(),
            file: left.file.clone(),
            text: Arc::clone(&left.text),
            fired: definition.clone(),
            by_hand: left.by_hand,
            attempt: left.attempt,
            state: left.state,
            failures: left.failures,
            edits: 0,
            failure: left.failure.clone(),
            touched: left.effect.is_some(),
            cut_off: false,
            probe: left.by_hand,
            superseded: false,
            stage: if left.state == RunState::Claimed { Stage::Waiting } else { Stage::Recording },
        });
        match left.state {
            RunState::Claimed => {}
            RunState::Interrupted => match reason_to_give_up(&left, definition.as_deref()) {
                None => self.begin_again(number),
                Some(why) => self.give_up(number, why),
            },
            _ => {
                let at = left.retry_at.map_or_else(tokio::time::Instant::now, |at| self.instant(at));
                self.retry_at(number, at);
            }
        }
    }
}

/// Why an attempt that was cut off is not begun again; `None`: it is.
fn reason_to_give_up(left: &Unfinished, definition: Option<&Definition>) -> Option<String> {
    if left.interruptions >= CUT_OFF_AT_MOST {
        return Some(format!("the service ended {} times while it was going", left.interruptions));
    }
    let effect = left.effect.as_ref()?;
    let because = match definition.and_then(|definition| definition.retry).filter(|retry| *retry > 0) {
        Some(retry) if left.failures + left.interruptions <= retry => return None,
        Some(retry) => format!("its retries (`retry: {retry}`) are used up"),
        None => "a part of it would happen twice".to_owned(),
    };
    Some(format!(
        "the service ended while it was going, after its first effect ({effect}); it is not run again, because {because}"
    ))
}
