//! What falls due: claimed together, in one commit, before anything else happens to it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::command::FireError;
use super::super::cron::Times;
use super::super::missed::plan;
use super::super::open::{Cause, Open, Stage};
use super::definitions::due_at;
use super::{Dispatcher, Event, HELD_UP};
use crate::definition::{Definition, DefinitionId, Kind, OnMissed, OnOverlap, Trigger};
use crate::journal::{Claim, Finish, JournalError, NewClaim, NewMessage, Occurrence, Purpose, RunId, RunState};

/// The answer to a commit of claims.
pub(super) struct Claimed {
    claims: Vec<NewClaim>,
    answers: Result<Vec<Claim>, JournalError>,
    asked: Instant,
    /// Of a single claim by hand: who waits for it.
    reply: Option<oneshot::Sender<Result<RunId, FireError>>>,
}

impl Dispatcher {
    /// Claims everything that is due by now.
    pub(super) fn claim_due(&mut self) {
        let now = self.clock.now();
        let due = self.queue.take_due(now);
        let mut claims = Vec::new();
        for id in due {
            let Some(entry) = self.definitions.get_mut(&id) else { continue };
            entry.due = None;
            let before = claims.len();
            let definition = Arc::clone(&entry.loaded.definition);
            match &definition.trigger {
                Trigger::Routine { cron, on_overlap } => {
                    self.claim_routine(&definition, cron, *on_overlap, now, &mut claims);
                }
                Trigger::Reminder { .. } | Trigger::Session { .. } => {
                    self.claim_reminder(&definition, now, &mut claims)
                }
            }
            if claims.len() > before {
                self.claiming.insert(id);
            }
        }
        if !claims.is_empty() {
            self.claim(claims, None);
        }
    }

    fn claim_reminder(&mut self, definition: &Definition, now: DateTime<Utc>, claims: &mut Vec<NewClaim>) {
        let Some(at) = due_at(definition) else { return };
        if let Some(entry) = self.definitions.get_mut(&definition.id) {
            entry.handled = Some(at);
        }
        // It was fired by hand, or it is one that an earlier life has left.
        if self.open.of(&definition.id).any(|(_, open)| open.occurrence.at == at) {
            return;
        }
        let missed = at < self.able_since && at < now;
        let purpose = if missed && definition.on_missed == OnMissed::Skip {
            Purpose::Skip("missed: nothing could run at its time (on_missed: skip)".to_owned())
        } else {
            Purpose::Run
        };
        claims.extend(self.new_claim(&definition.id, at, purpose));
    }

    fn claim_routine(
        &mut self,
        definition: &Definition,
        cron: &str,
        on_overlap: OnOverlap,
        now: DateTime<Utc>,
        claims: &mut Vec<NewClaim>,
    ) {
        let id = &definition.id;
        let (Some(entry), Some(times)) = (self.definitions.get_mut(id), Times::parse(cron)) else { return };
        let Some(accounted) = entry.accounted.as_mut() else { return };
        // The clock was behind: what is settled was not missed.
        let missed_until = now.min(self.able_since - TimeDelta::milliseconds(1));
        *accounted = entry.settled.min(missed_until).max(*accounted);
        let accounted = *accounted;
        let plan = plan(&times, definition.zone, definition.on_missed, accounted, self.able_since, now);
        let missed = || match definition.on_missed {
            OnMissed::Latest => "missed: nothing could run at its time, and a newer one runs (on_missed: latest)",
            OnMissed::All => "missed: nothing could run at its time, and too many newer ones were missed as well",
            OnMissed::Skip => "missed: nothing could run at its time (on_missed: skip)",
        };
        let mut purposes = Vec::new();
        if let Some((first, last)) = plan.skip_stretch {
            purposes.push((last, Purpose::SkipSince(first, missed().to_owned())));
        }
        purposes.extend(plan.skip.into_iter().map(|at| (at, Purpose::Skip(missed().to_owned()))));
        // Missed ones that all run follow one another; they do not count as overlapping.
        let all = definition.on_missed == OnMissed::All;
        let (in_a_row, one_by_one) = if all { (plan.run_late, Vec::new()) } else { (Vec::new(), plan.run_late) };
        purposes.extend(in_a_row.iter().map(|at| (*at, Purpose::Run)));
        let mut ahead: Vec<(bool, String)> =
            self.open.of(id).map(|(_, open)| (open.is_unbegun(), format!("run {}", open.run))).collect();
        ahead.extend(in_a_row.iter().map(|_| (true, "a missed one".to_owned())));
        for at in one_by_one.into_iter().chain(plan.run) {
            let purpose = match (on_overlap, ahead.first()) {
                (_, None) | (OnOverlap::Cancel, _) => Purpose::Run,
                (OnOverlap::Skip, Some((_, going))) => {
                    Purpose::Skip(format!("overlap: {going} is not over (on_overlap: skip)"))
                }
                (OnOverlap::Queue, _) => match ahead.iter().find(|(waiting, _)| *waiting) {
                    Some((_, waiting)) => {
                        Purpose::Skip(format!("overlap: {waiting} waits already (on_overlap: queue)"))
                    }
                    None => Purpose::Run,
                },
            };
            if purpose == Purpose::Run {
                ahead.push((true, "an earlier one".to_owned()));
            }
            purposes.push((at, purpose));
        }
        if purposes.is_empty() {
            // Woken for one that the plan does not see: it is settled, or the expression has changed meanwhile.
            self.arm(id);
        }
        for (at, purpose) in purposes {
            claims.extend(self.new_claim(id, at, purpose));
        }
    }

    pub(super) fn new_claim(&self, id: &DefinitionId, at: DateTime<Utc>, purpose: Purpose) -> Option<NewClaim> {
        let loaded = &self.definitions.get(id)?.loaded;
        Some(NewClaim {
            occurrence: Occurrence { id: id.clone(), kind: loaded.definition.kind(), at },
            file: loaded.definition.file.clone(),
            text: Arc::clone(&loaded.text),
            purpose,
        })
    }

    pub(super) fn claim(&mut self, claims: Vec<NewClaim>, reply: Option<oneshot::Sender<Result<RunId, FireError>>>) {
        let (journal, asked) = (self.journal.clone(), Instant::now());
        let runs = claims.iter().any(|claim| matches!(claim.purpose, Purpose::Run | Purpose::RunByHand));
        let launcher = Arc::clone(&self.launcher);
        for claim in &claims {
            self.open.expect(&claim.occurrence);
        }
        self.tasks.spawn(async move {
            if runs {
                launcher.get_ready();
            }
            fail_point!(BeforeClaim);
            let answers = journal.claim(claims.clone()).await;
            fail_point!(Claimed);
            Event::Claimed(Claimed { claims, answers, asked, reply })
        });
    }

    pub(super) fn on_claimed(&mut self, claimed: Claimed) -> Result<(), JournalError> {
        let Claimed { claims, answers, asked, reply } = claimed;
        for claim in &claims {
            self.claiming.remove(&claim.occurrence.id);
            self.open.arrived(&claim.occurrence);
        }
        let answers = answers?;
        if asked.elapsed() > HELD_UP {
            self.able_since = self.able_since.max(self.clock.now());
        }
        if let (Some(reply), [claim], [answer]) = (reply, claims.as_slice(), answers.as_slice()) {
            let id = claim.occurrence.id.clone();
            // Who fired it may have gone away; it runs all the same.
            let _gone = reply.send(match answer {
                Claim::Claimed(run) => Ok(run.clone()),
                Claim::AlreadyRecorded(state) => Err(FireError::Done { id, state: *state }),
            });
        }
        for (claim, answer) in claims.into_iter().zip(answers) {
            self.account(&claim);
            match answer {
                Claim::Claimed(run) => self.take_claimed(claim, run),
                Claim::AlreadyRecorded(state) => self.already_recorded(&claim.occurrence, state),
            }
        }
        Ok(())
    }

    /// Moves a routine's account on, and puts it back into the queue.
    fn account(&mut self, claim: &NewClaim) {
        let Occurrence { id, kind, at } = &claim.occurrence;
        if *kind == Kind::Routine
            && claim.purpose != Purpose::RunByHand
            && let Some(entry) = self.definitions.get_mut(id)
            && let Some(accounted) = entry.accounted.as_mut()
        {
            // The clock may have been set back since it was claimed.
            let now = self.clock.now();
            *accounted = now.min(*at).max(*accounted);
            entry.settled = self.reached.latest().max(now).min(*at).max(entry.settled);
        }
        self.arm(id);
    }

    fn take_claimed(&mut self, claim: NewClaim, run: RunId) {
        let NewClaim { occurrence, file, text, purpose } = claim;
        let by_hand = match purpose {
            Purpose::Run => false,
            Purpose::RunByHand => true,
            Purpose::Skip(_) | Purpose::SkipSince(..) => {
                if occurrence.kind == Kind::Reminder {
                    self.look_up(&occurrence);
                }
                return;
            }
        };
        self.supersede(&occurrence);
        self.open.insert(Open {
            run,
            occurrence,
            file,
            text,
            fired: None,
            by_hand,
            attempt: 1,
            state: RunState::Claimed,
            failures: 0,
            edits: 0,
            failure: None,
            touched: false,
            cut_off: false,
            probe: by_hand,
            superseded: false,
            stage: Stage::Waiting,
        });
    }

    /// A newer occurrence ends the older ones, where the routine says so.
    pub(super) fn supersede(&mut self, newer: &Occurrence) {
        let cancels = self.definitions.get(&newer.id).is_some_and(|entry| {
            let definition = &entry.loaded.definition;
            // Missed ones that are all to run follow one another.
            let in_a_row = definition.on_missed == OnMissed::All && newer.at < self.able_since;
            matches!(definition.trigger, Trigger::Routine { on_overlap: OnOverlap::Cancel, .. }) && !in_a_row
        });
        if !cancels {
            return;
        }
        let older: Vec<u64> = self.open.of(&newer.id).map(|(number, _)| number).collect();
        for number in older {
            self.end(number, Cause::Overlap);
            if let Some(open) = self.open.get_mut(number) {
                open.superseded = true;
            }
            self.close_superseded(number);
        }
    }

    /// Closes one that a newer occurrence has ended, unless an attempt is going or something is being recorded: it is
    /// looked at again after that. One that failed, and is not to have the attempts that it was granted, has failed: a
    /// routine that fires more often than its pauses last would otherwise fail for ever and nobody hear of it.
    pub(super) fn close_superseded(&mut self, number: u64) {
        const NEWER: &str = "a newer occurrence fell due (on_overlap: cancel)";
        let Some(open) = self.open.get(number).filter(|open| open.superseded && open.is_unlaunched()) else { return };
        match &open.failure {
            Some(failure) => {
                let failure = failure.trim_end_matches(['.', ' ', '\n']);
                let why = format!("{failure}; not tried again: {NEWER}");
                self.give_up(number, why);
            }
            None => self.close_unlaunched(number, NEWER),
        }
    }

    /// Somebody has claimed it before: an earlier life, or this one. A reminder that has its outcome is cleaned up.
    fn already_recorded(&mut self, occurrence: &Occurrence, state: RunState) {
        tracing::debug!(id = %occurrence.id, at = %occurrence.at, %state, "it has a record");
        if occurrence.kind == Kind::Reminder && state.is_over() {
            self.look_up(occurrence);
        }
    }

    /// Fetches a reminder's record, to deal with its file.
    fn look_up(&mut self, occurrence: &Occurrence) {
        let (journal, occurrence) = (self.journal.clone(), occurrence.clone());
        self.tasks.spawn(async move { Event::Recorded(journal.recorded(&occurrence).await) });
    }

    /// A reminder is enabled again. If it fell due while it was disabled, that is its outcome.
    pub(super) fn enabled_again(&mut self, id: &DefinitionId) {
        let journal = self.journal.clone();
        let forgotten = id.clone();
        self.note(async move { journal.forget(forgotten).await });
        self.were_disabled.remove(id);
        let at = self.definitions.get(id).and_then(|entry| due_at(&entry.loaded.definition));
        let Some(at) = at.filter(|at| *at <= self.clock.now()) else { return };
        let why = "disabled: it was disabled when it fell due";
        let Some(claim) = self.new_claim(id, at, Purpose::Skip(why.to_owned())) else { return };
        if let Some(entry) = self.definitions.get_mut(id) {
            entry.handled = Some(at);
        }
        let (journal, id) = (self.journal.clone(), id.clone());
        self.claiming.insert(id.clone());
        self.claim(vec![claim], None);
        let text = format!(
            "reminder {id} was disabled when it fell due, so it did not fire. Its file is kept in reminders/failed/; \
             `ollim-bot reminder retry {id}` brings it back."
        );
        self.note(async move { journal.message(NewMessage { run: None, id: Some(id), text }).await.map(|_| ()) });
    }

    /// Closes an open occurrence that has no attempt going, with the outcome that its last attempt gives it.
    pub(super) fn close_unlaunched(&mut self, number: u64, why: &str) {
        let Some(open) = self.open.get(number) else { return };
        if !open.is_unlaunched() {
            return;
        }
        let finish = match open.state {
            RunState::Claimed => Finish::closed(RunState::Skipped, Some(why.to_owned())),
            RunState::Interrupted => Finish::closed(
                RunState::Cancelled,
                Some(format!("cut off when the service ended, and not begun again: {why}")),
            ),
            failed => Finish::closed(failed, None),
        };
        self.record(number, finish, None);
    }
}
