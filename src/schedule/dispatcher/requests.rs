//! What the rest of the daemon asks for.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::command::{CancelError, Command, FireError, OpenView, Snapshot, StageView};
use super::super::open::{Cause, Open, Stage};
use super::definitions::due_at;
use super::recovery::PAUSED;
use super::{Dispatcher, RECENT};
use crate::definition::DefinitionId;
use crate::journal::{Finish, Purpose, RunId, RunState};

impl Dispatcher {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Replace(all) => self.replace(all),
            Command::Upsert(loaded) => self.upsert(loaded),
            Command::Remove(id) => self.remove(&id),
            Command::LookAgain(file) => self.look_again(&file),
            Command::Fire(id, reply) => self.fire(&id, reply),
            Command::Cancel(run, reply) => {
                // Who asked may have gone away.
                let _gone = reply.send(self.cancel(&run));
            }
            // Who asks again has it paused since before.
            Command::Pause => self.set_paused(self.paused.or_else(|| Some(self.clock.now()))),
            Command::Resume => {
                self.able_since = self.clock.now();
                self.waiting_for_login = None;
                self.set_paused(None);
                self.try_all_again();
            }
            Command::ResumeRoutine(id, reply) => {
                let paused = self.streaks.get(&id).is_some_and(|streak| streak.paused.is_some());
                if paused {
                    self.end_pause(&id);
                }
                let _gone = reply.send(paused);
            }
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

    fn set_paused(&mut self, since: Option<DateTime<Utc>>) {
        self.paused = since;
        let (journal, value) = (self.journal.clone(), since.map(|since| since.to_rfc3339()));
        self.note(async move { journal.set_setting(PAUSED, value).await });
    }

    pub(super) fn fire(&mut self, id: &DefinitionId, reply: oneshot::Sender<Result<RunId, FireError>>) {
        if !self.recovered && self.stopping.is_none() {
            self.early.push((id.clone(), reply));
            return;
        }
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

    fn cancel(&mut self, run: &RunId) -> Result<(), CancelError> {
        let not_going = || CancelError::NotGoing(run.clone());
        let number = self.open.by_run(run).ok_or_else(not_going)?;
        let open = self.open.get(number).ok_or_else(not_going)?;
        match open.stage {
            Stage::Recording => return Err(not_going()),
            Stage::Going { .. } => self.end(number, Cause::Person),
            Stage::Waiting | Stage::Missing { .. } | Stage::RetryAt(_) => {
                let finish = Finish::closed(RunState::Cancelled, Some("a person ended it".to_owned()));
                self.record(number, finish, None);
            }
        }
        Ok(())
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
