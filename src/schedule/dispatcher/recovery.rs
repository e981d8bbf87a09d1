//! Recovers the work of the previous process. Nothing fires before that is done.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::super::active::{ActiveOccurrence, Stage};
use super::super::command::Loaded;
use super::super::definitions::Observed;
use super::super::leftover;
use super::super::missed::is_late;
use super::super::retry::CUT_OFF_AT_MOST;
use super::Dispatcher;
use super::following::{Unobserved, observe};
use super::phase::Phase;
use crate::definition::{Definition, DefinitionId};
use crate::journal::{
    ConsecutiveFailures, DelayCause, EventKind, Journal, JournalError, Origin, RecoveryWork, RunState, SERVICE_ENDED,
    UnfinishedOccurrence,
};

/// Key of the time at which the person was notified of a missing login.
pub(super) const NO_LOGIN: &str = "no_login";

/// The data of the journal at a start.
pub(super) struct JournalState {
    recovered: RecoveryWork,
    paused: Option<String>,
    login_notified: bool,
    observed: Vec<Observed>,
    /// Origins of the last runs of routines that fire on events.
    origins: Vec<(DefinitionId, Origin)>,
    /// All definitions that the journal has observed and that are not gone.
    known: Vec<DefinitionId>,
}

async fn find(
    journal: &Journal,
    latest: DateTime<Utc>,
    unobserved: Unobserved,
    happening: Vec<DefinitionId>,
) -> Result<JournalState, JournalError> {
    fail_point!(BeforeRecovery);
    for process in journal.leftovers().await? {
        // Fails only when the runtime shuts down.
        let ended = tokio::task::spawn_blocking(move || leftover::end(&process)).await;
        if ended.unwrap_or(false) {
            tracing::warn!("a run of the previous process was still running; it was ended");
        }
    }
    fail_point!(LeftoversEnded);
    let recovered = journal.recover().await?;
    fail_point!(Recovered);
    let paused = journal.setting(crate::journal::PAUSED).await?;
    let login_notified = journal.setting(NO_LOGIN).await?.is_some();
    let observed = observe(journal, latest, unobserved).await?;
    let (origins, known) = (journal.origins(happening).await?, journal.known().await?);
    Ok(JournalState { recovered, paused, login_notified, observed, origins, known })
}

impl Dispatcher {
    /// Inserts the first definitions, and reads the journal's data.
    pub(super) fn begin_recovery(&mut self, all: Vec<Loaded>) {
        let (mut unobserved, mut happening) = (Vec::new(), Vec::new());
        for loaded in all {
            let definition = Arc::clone(&loaded.definition);
            if definition.follows().is_some() || definition.watches().is_some() {
                happening.push(definition.id.clone());
            }
            let generation = self.definitions.insert(loaded).unobserved;
            unobserved.extend(generation.map(|generation| (definition, generation)));
        }
        let (journal, latest) = (self.journal.clone(), self.wall_clock.latest());
        self.spawn(async move { find(&journal, latest, unobserved, happening).await }, Self::on_recovered);
    }

    fn on_recovered(&mut self, found: Result<JournalState, JournalError>) -> Result<(), JournalError> {
        let JournalState { recovered, paused, login_notified, observed, origins, known } = found?;
        // When the service is stopping, the next process recovers it.
        let Phase::Starting { deferred, .. } = &mut self.phase else { return Ok(()) };
        let deferred = std::mem::take(deferred);
        self.phase = Phase::Running;
        self.was_main = self.sharing.is_main();
        // An unreadable time still means paused.
        let paused = paused.map(|since| since.parse().unwrap_or_else(|_| self.clock.now()));
        (self.gate.paused, self.gate.login_notified) = (paused, login_notified);
        self.definitions.were_disabled = recovered.disabled;
        self.self_triggered.resume_from(origins);
        for observed in &observed {
            self.set_watermark(observed);
        }
        for (failures, fired) in recovered.consecutive_failures {
            self.take_up_failures(&failures, fired.as_ref());
        }
        for unfinished in recovered.unfinished {
            self.supersede(&unfinished.occurrence);
            self.resume_occurrence(unfinished);
        }
        self.on_hosts_changed();
        for recorded in recovered.recorded {
            self.mark_claimed(&recorded.occurrence.id, recorded.occurrence.at);
            self.clean_up(recorded, false);
        }
        for id in self.definitions.unqueued() {
            let enabled = self.definitions.definition(&id).is_some_and(|definition| definition.enabled);
            if enabled && self.definitions.were_disabled.contains(&id) {
                self.enabled_again(&id);
            }
            self.definitions.enqueue(&id);
        }
        self.forget_removed(known);
        deferred.into_iter().for_each(|command| self.handle(command));
        Ok(())
    }

    fn take_up_failures(&mut self, failures: &ConsecutiveFailures, fired: Option<&Arc<str>>) {
        let edited = self.definitions.get(&failures.id).is_some_and(|entry| Some(&entry.loaded.text) != fired);
        self.definitions.set_failures(failures);
        if failures.paused.is_some() && edited {
            self.end_pause(&failures.id);
        }
    }

    /// Marks a time as claimed, since firing again would only find the record.
    fn mark_claimed(&mut self, id: &DefinitionId, at: DateTime<Utc>) {
        if let Some(entry) = self.definitions.get_mut(id) {
            entry.claimed = Some(at);
        }
    }

    pub(super) fn resume_occurrence(&mut self, left: UnfinishedOccurrence) {
        self.mark_claimed(&left.occurrence.id, left.occurrence.at);
        let definition = self.definitions.definition(&left.occurrence.id).map(Arc::clone);
        let given_up = reason_to_give_up(&left, definition.as_deref());
        let (state, retry_at) = (left.state, left.retry_at);
        let (run, now) = (left.run.clone(), self.clock.now());
        if state == RunState::Claimed && !left.by_hand && is_late(left.occurrence.at, now) {
            self.journal.record(&run, EventKind::Delayed { by: DelayCause::ServiceOff, until: Some(now), what: None });
        }
        let number = self.active.insert(ActiveOccurrence::unfinished(left));
        match (state, given_up) {
            (RunState::Claimed, _) => {}
            (RunState::Interrupted, None) => self.begin_next_attempt(number, None),
            (RunState::Interrupted, Some(why)) => self.give_up(number, why),
            _ => {
                let at = retry_at.map_or_else(Instant::now, |at| self.retry_instant(at));
                self.active.set_stage(number, Stage::RetryAt(at));
            }
        }
    }
}

/// Returns why an interrupted attempt is not retried. `None` if it is.
fn reason_to_give_up(left: &UnfinishedOccurrence, definition: Option<&Definition>) -> Option<String> {
    let why = left.error.as_deref().unwrap_or(SERVICE_ENDED);
    if left.interruptions >= CUT_OFF_AT_MOST {
        return Some(format!("it was cut off {} times, at last because {why}", left.interruptions));
    }
    let effect = left.effect.as_ref()?;
    let because = match definition.and_then(|definition| definition.retry).filter(|retry| *retry > 0) {
        Some(retry) if left.failures + left.interruptions <= retry => return None,
        Some(retry) => format!("its retries (`retry: {retry}`) are used up"),
        None => "a part of it would happen twice".to_owned(),
    };
    Some(format!("{why}, after its first effect ({effect}); it is not run again, because {because}"))
}
