//! What the rest of the daemon asks for.

use std::sync::Arc;

use chrono::DateTime;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::command::{CancelError, Command, Decided, FireError, OpenView, Snapshot, StageView};
use super::super::open::{Cause, Open, Stage};
use super::definitions::due_at;
use super::recovery::PAUSED;
use super::{Dispatcher, RECENT};
use crate::definition::DefinitionId;
use crate::journal::{Finish, JournalError, Purpose, RunId, RunState};

impl Dispatcher {
    pub(super) fn obey(&mut self, command: Command) {
        if command.is_a_decision() && !self.recovered && self.stopping.is_none() {
            self.early.push(command);
            return;
        }
        match command {
            Command::Replace(all) => self.replace(all),
            Command::Upsert(loaded) => self.upsert(loaded),
            Command::Remove(id) => self.remove(&id),
            Command::LookAgain(file) => self.look_again(&file),
            Command::Fire(id, reply) => self.fire(&id, reply),
            Command::Cancel(run, reply) => self.cancel(run, reply),
            Command::Pause(reply) => {
                // Who asks again has it paused since before.
                self.paused.get_or_insert(self.clock.now());
                self.keep_paused(reply);
            }
            Command::Resume(reply) => {
                self.able_since = self.clock.now();
                self.waiting_for_login = None;
                self.paused = None;
                self.keep_paused(reply);
                self.try_all_again();
            }
            Command::ResumeRoutine(id, reply) => self.resume_routine(&id, reply),
            Command::Limit(limit) => self.max_concurrent_runs = limit.max(1),
            Command::Snapshot(next, reply) => {
                let _gone = reply.send(self.snapshot(next));
            }
            Command::Alive(reply) => {
                let _gone = reply.send(());
            }
            Command::Stop(grace) => self.stop(grace),
            Command::EndNow => self.end_now(),
        }
    }

    fn keep_paused(&mut self, reply: Decided<()>) {
        let (journal, value) = (self.journal.clone(), self.paused.map(|since| since.to_rfc3339()));
        self.note_for(reply, (), async move { journal.set_setting(PAUSED, value).await });
    }

    fn resume_routine(&mut self, id: &DefinitionId, reply: Decided<bool>) {
        if self.streaks.get(id).is_some_and(|streak| streak.paused.is_some()) {
            let ended = self.pause_is_over(id);
            self.note_for(reply, true, ended);
        } else {
            // Who asked may have gone away.
            let _gone = reply.send(Ok(false));
        }
    }

    /// Has the journal do something for a person, who is answered when it is on the disk.
    fn note_for<T, F>(&mut self, reply: Decided<T>, answer: T, work: F)
    where
        T: Send + 'static,
        F: Future<Output = Result<(), JournalError>> + Send + 'static,
    {
        self.note(async move {
            let noted = work.await;
            // Who asked may have gone away.
            let _gone = reply.send(noted.clone().map(|()| answer));
            noted
        });
    }

    fn fire(&mut self, id: &DefinitionId, reply: oneshot::Sender<Result<RunId, FireError>>) {
        let refusal = if self.stopping.is_some() {
            Some(FireError::Stopping)
        } else if self.claiming.contains(id) {
            Some(FireError::FallingDue(id.clone()))
        } else if let Some((_, open)) = self.open.of(id).next() {
            let (id, run) = (id.clone(), open.run.clone());
            Some(match view(open).stage {
                StageView::RetryIn(left) => FireError::Retrying { id, run, left },
                _ => FireError::Going { id, run },
            })
        } else if !self.definitions.contains_key(id) {
            Some(FireError::NotFound(id.clone()))
        } else {
            None
        };
        let now = self.clock.now();
        let claim = self.definitions.get_mut(id).filter(|_| refusal.is_none()).map(|entry| {
            let run_at = due_at(&entry.loaded.definition);
            entry.handled = run_at.or(entry.handled);
            // The journal counts in milliseconds.
            let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
            run_at.unwrap_or(now)
        });
        match claim.and_then(|at| self.new_claim(id, at, Purpose::RunByHand)) {
            Some(claim) => {
                self.claiming.insert(id.clone());
                self.arm(id);
                self.claim(vec![claim], Some(reply));
            }
            None => {
                let _gone = reply.send(Err(refusal.unwrap_or_else(|| FireError::NotFound(id.clone()))));
            }
        }
    }

    /// The answer comes when its end is recorded: a run of which nothing is known but that it was going begins again.
    fn cancel(&mut self, run: RunId, reply: oneshot::Sender<Result<RunState, CancelError>>) {
        let found = self.open.by_run(&run).and_then(|number| Some((number, &self.open.get(number)?.stage)));
        let Some((number, stage)) = found.filter(|(_, stage)| !matches!(stage, Stage::Recording)) else {
            let _gone = reply.send(Err(CancelError::NotGoing(run)));
            return;
        };
        if matches!(stage, Stage::Going { .. }) {
            self.end(number, Cause::Person);
        } else {
            self.close_by_hand(number);
        }
        self.cancelling.entry(number).or_default().push(reply);
    }

    /// Closes an open occurrence that has no attempt going, because a person says so.
    pub(super) fn close_by_hand(&mut self, number: u64) {
        let finish = Finish::closed(RunState::Cancelled, Some("a person ended it".to_owned()));
        self.record(number, finish, None);
    }

    fn snapshot(&self, next: usize) -> Snapshot {
        Snapshot {
            definitions: self.definitions.len(),
            open: self.open.iter().map(|(_, open)| view(open)).collect(),
            next: self
                .queue
                .next(next)
                .into_iter()
                .filter_map(|(at, id)| Some((at, Arc::clone(&self.definitions.get(&id)?.loaded.definition))))
                .collect(),
            recent: self.recent.iter().filter(|(at, _)| self.clock.now() - at < RECENT).cloned().collect(),
            paused: self.paused,
            waiting_for_login: self.waiting_for_login,
        }
    }
}

fn view(open: &Open) -> OpenView {
    OpenView {
        run: open.run.clone(),
        id: open.occurrence.id.clone(),
        kind: open.occurrence.kind,
        scheduled: open.occurrence.at,
        attempt: open.attempt,
        stage: match &open.stage {
            Stage::Waiting => StageView::Waiting,
            Stage::Missing { .. } => StageView::WaitingForFile,
            Stage::Going { since, .. } => StageView::Running(*since),
            Stage::RetryAt(at) => StageView::RetryIn(at.saturating_duration_since(Instant::now())),
            Stage::Recording => StageView::Recording,
        },
    }
}
