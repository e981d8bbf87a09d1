//! Obeys the commands from the rest of the daemon.

use chrono::DateTime;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::active::{ActiveOccurrence, Cause, Priority, Stage};
use super::super::command::{ActiveView, CancelError, Command, DecisionReply, FireError, Snapshot, StageView};
use super::super::conclusion::ended_by_a_person;
use super::super::definitions::due_at;
use super::Dispatcher;
use super::due::FireReply;
use super::phase::Phase;
use crate::definition::DefinitionId;
use crate::journal::{EventKind, Finish, JournalError, NewClaim, PAUSED, Purpose, RunId, RunState};

impl Dispatcher {
    pub(super) fn handle(&mut self, command: Command) {
        let Some(command) = self.phase.defer(command) else { return };
        match command {
            Command::Replace(all) => match &mut self.phase {
                Phase::Starting { recovering, .. } => {
                    *recovering = true;
                    self.begin_recovery(all);
                }
                _ => self.replace(all),
            },
            Command::Upsert(loaded) => {
                self.journal.record_apart(Some(&loaded.definition.id), EventKind::DefinitionChanged);
                self.upsert(loaded);
            }
            Command::Remove(id) => {
                self.journal.record_apart(Some(&id), EventKind::DefinitionRemoved);
                self.remove(&id);
            }
            Command::Load(all) => self.load(all),
            // The caller may have gone away.
            Command::Unload(ids, reply) => drop(reply.send(self.unload(ids))),
            Command::Unpush(ids) => self.unpush(&ids),
            Command::LookAgain(file) => self.recheck(&file),
            Command::Changed(id, burst) => self.changed(&id, burst),
            Command::Deliver(id, delivery, reply) => self.deliver(&id, delivery, reply),
            Command::Fire(id, reply) => self.fire(&id, reply),
            Command::Cancel(run, reply) => self.cancel(run, reply),
            Command::Pause(reply) => {
                // A second pause changes nothing.
                self.gate.paused.get_or_insert(self.clock.now());
                self.record_pause(reply);
            }
            Command::Resume(reply) => {
                self.gate.resume(self.clock.now());
                self.record_pause(reply);
                self.recheck_login();
            }
            Command::LoggedIn => self.recheck_login(),
            Command::Answered(refused) => self.recheck_answers(refused),
            Command::ResumeRoutine(id, reply) => self.resume_routine(&id, reply),
            Command::Limit(limit) => self.max_concurrent_runs = limit.max(1),
            Command::AlertAfter(failures) => self.alert_after = failures.max(1),
            // The caller may have gone away.
            Command::Snapshot(next, reply) => drop(reply.send(self.snapshot(next))),
            Command::Stop(grace) => self.stop(grace),
            Command::EndNow => self.end_now(),
        }
    }

    fn record_pause(&mut self, reply: DecisionReply<()>) {
        self.decided += 1;
        let (journal, since) = (self.journal.clone(), self.gate.paused.map(|since| since.to_rfc3339()));
        self.note_for(reply, (), async move { journal.set_setting(PAUSED, since).await });
    }

    fn resume_routine(&mut self, id: &DefinitionId, reply: DecisionReply<bool>) {
        if self.definitions.is_paused(id) {
            let ended = self.pause_ended(id);
            self.note_for(reply, true, ended);
        } else {
            // The caller may have gone away.
            let _gone = reply.send(Ok(false));
        }
    }

    /// Spawns work for the journal, and answers a person when it is on the disk.
    fn note_for<T, F>(&mut self, reply: DecisionReply<T>, answer: T, work: F)
    where
        T: Send + 'static,
        F: Future<Output = Result<(), JournalError>> + Send + 'static,
    {
        self.note(async move {
            let noted = work.await;
            // The caller may have gone away.
            let _gone = reply.send(noted.clone().map(|()| answer));
            noted
        });
    }

    fn fire(&mut self, id: &DefinitionId, firing: FireReply) {
        if !self.phase.is_stopping()
            && let Some(number) = self.held_back(id)
            && let Some(active) = self.active.get_mut(number)
        {
            (active.priority, active.awaits_agent, active.unmet) = (Priority::ByHand, false, None);
            if matches!(active.stage, Stage::RetryAt(_)) {
                self.begin_next_attempt(number, Some(firing));
            } else {
                // The caller may have gone away.
                let _gone = firing.send(Ok(active.run.clone()));
            }
            return;
        }
        match self.claim_by_hand(id) {
            Ok(claim) => self.claim(vec![claim], Vec::new(), Some(firing)),
            // The caller may have gone away.
            Err(refusal) => drop(firing.send(Err(refusal))),
        }
    }

    /// Returns an occurrence that waits for its next attempt, or may not start yet.
    fn held_back(&self, id: &DefinitionId) -> Option<u64> {
        let (number, active) = self.active.of(id).next()?;
        let waits = match active.stage {
            Stage::RetryAt(_) => true,
            Stage::Waiting { .. } => !self.gate.admits(active),
            _ => false,
        };
        waits.then_some(number)
    }

    fn claim_by_hand(&mut self, id: &DefinitionId) -> Result<NewClaim, FireError> {
        if self.phase.is_stopping() {
            return Err(FireError::Stopping);
        }
        if self.definitions.claiming.contains(id) {
            return Err(FireError::FallingDue(id.clone()));
        }
        if let Some((_, active)) = self.active.of(id).next() {
            return Err(FireError::Going { id: id.clone(), run: active.run.clone() });
        }
        let not_found = || FireError::NotFound(id.clone());
        let definition = self.definitions.definition(id).ok_or_else(not_found)?;
        if let Some(why) = self.sharing.not_here(definition) {
            return Err(FireError::Elsewhere { id: id.clone(), why });
        }
        let entry = self.definitions.get_mut(id).ok_or_else(not_found)?;
        let run_at = due_at(&entry.loaded.definition);
        entry.claimed = run_at.or(entry.claimed);
        let now = self.clock.now();
        // The journal counts in milliseconds.
        let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
        self.new_claim(id, run_at.unwrap_or(now), Purpose::RunByHand).ok_or_else(not_found)
    }

    /// Cancels a run. Answers once the end is recorded, since the run would begin again if the process died before.
    fn cancel(&mut self, run: RunId, reply: oneshot::Sender<Result<RunState, CancelError>>) {
        let found = self.active.iter().find(|(_, active)| active.run == run);
        let found = found
            .filter(|(_, active)| !matches!(active.stage, Stage::Recording | Stage::Closing))
            .map(|(number, _)| number);
        let Some((number, active)) = found.and_then(|number| Some((number, self.active.get_mut(number)?))) else {
            // The caller may have gone away.
            let _gone = reply.send(Err(CancelError::NotGoing(run)));
            return;
        };
        active.cancellers.push(reply);
        if active.running().is_some() {
            active.end(Cause::Person);
        } else {
            self.close_by_hand(number);
        }
    }

    /// Closes an idle occurrence on a person's request. A failed one keeps its error.
    pub(super) fn close_by_hand(&mut self, number: u64) {
        let failure = self.active.get(number).and_then(|active| active.last_error.as_deref());
        self.record(number, Finish::closed(RunState::Cancelled, Some(ended_by_a_person(failure))));
    }

    fn snapshot(&self, next: usize) -> Snapshot {
        Snapshot {
            definitions: self.definitions.len(),
            active: self.active.iter().map(|(_, active)| view(active)).collect(),
            next: self.definitions.upcoming(next),
            recent: self.recent.at(self.clock.now()),
            paused: self.gate.paused,
            waiting_for_login: self.gate.waits_for_login(),
            waiting_for_agent: self.gate.waits_for_agent(),
            ending: self.phase.is_stopping(),
        }
    }
}

fn view(active: &ActiveOccurrence) -> ActiveView {
    ActiveView {
        run: active.run.clone(),
        id: active.occurrence.id.clone(),
        kind: active.occurrence.kind,
        scheduled: active.occurrence.at,
        attempt: active.attempt,
        stage: match &active.stage {
            Stage::Waiting { .. } => StageView::Waiting,
            Stage::FindingFile | Stage::FileInvalid => StageView::WaitingForFile,
            Stage::Running(running) => StageView::Running(running.since),
            Stage::RetryAt(at) => StageView::RetryIn(at.saturating_duration_since(Instant::now())),
            Stage::Recording | Stage::Closing => StageView::Recording,
        },
    }
}
