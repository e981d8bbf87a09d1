//! Claims everything that falls due in one commit, before anything else happens to it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

use super::super::active::{ActiveOccurrence, Cause, Stage};
use super::super::command::FireError;
use super::super::conclusion::failure_buttons;
use super::super::cron::Times;
use super::super::definitions::due_at;
use super::super::delays::{fold, missed};
use super::super::missed::{Window, is_late, plan};
use super::super::overlap::{Predecessor, missed_reason, purposes};
use super::super::sharing::{GRACE, Share};
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, Kind, OnMissed, OnOverlap, Trigger};
use crate::journal::{
    Claim, Delay, DelayCause, EventKind, Finish, NewClaim, NewMessage, Occurrence, Purpose, RunId, RunState, Subject,
};

/// A claim that took longer than this was delayed by the disk. Occurrences that fell due meanwhile were missed.
const HELD_UP: Duration = Duration::from_secs(5);

/// A delay from which a person is told the reason.
const NOTICEABLE: TimeDelta = TimeDelta::seconds(1);

/// The state when claims were made: the time, since when runs could start, and why not before.
#[derive(Clone, Copy)]
pub(super) struct ClaimTime {
    now: DateTime<Utc>,
    since: DateTime<Utc>,
    by: DelayCause,
}

/// The caller that waits for a claim by hand.
pub(super) type FireReply = oneshot::Sender<Result<RunId, FireError>>;

impl Dispatcher {
    /// Claims everything that is due by now.
    pub(super) fn claim_due(&mut self) {
        if !self.sharing.has_correct_time() {
            return;
        }
        let now = self.clock.now() - self.sharing.waits();
        let (mut claims, mut delays) = (Vec::new(), Vec::new());
        let (mut later, mut later_delays) = (Vec::new(), Vec::new());
        for definition in self.definitions.take_due(now, !self.gate.is_open()) {
            let share = self.sharing.share(&definition, now);
            if share == Share::Never {
                self.leave_to_others(&definition, now);
                continue;
            }
            let claimed = match &definition.trigger {
                Trigger::Routine { on_overlap, .. } => self.routine_claims(&definition, *on_overlap, now),
                Trigger::Reminder { .. } | Trigger::Session { .. } => self.reminder_claims(&definition, now),
                Trigger::Webhook(_) => Vec::new(),
            };
            if claimed.is_empty() {
                // The occurrence that woke this routine has a record by now, or its cron has changed.
                self.definitions.enqueue(&definition.id);
            }
            let missed = missed(&definition, &claimed, self.gate.eligible_since, now);
            if share == Share::Later {
                later_delays.extend(missed);
                later.extend(claimed);
            } else {
                delays.extend(missed);
                claims.extend(claimed);
            }
        }
        if !claims.is_empty() {
            self.claim(claims, delays, None);
        }
        if !later.is_empty() {
            self.claim_after(GRACE, later, later_delays, None);
        }
    }

    fn reminder_claims(&mut self, definition: &Definition, now: DateTime<Utc>) -> Vec<NewClaim> {
        let Some(at) = due_at(definition) else { return Vec::new() };
        if let Some(entry) = self.definitions.get_mut(&definition.id) {
            entry.claimed = Some(at);
        }
        // A person fired it, or the previous process claimed it.
        if self.active.of(&definition.id).any(|(_, active)| active.occurrence.at == at) {
            return Vec::new();
        }
        let missed = at < self.gate.eligible_since && at < now;
        let purpose = if missed && definition.on_missed == OnMissed::Skip {
            Purpose::Skip("missed: nothing could run at its time (on_missed: skip)".to_owned())
        } else {
            Purpose::Run
        };
        self.new_claim(&definition.id, at, purpose).into_iter().collect()
    }

    fn routine_claims(&mut self, definition: &Definition, on_overlap: OnOverlap, now: DateTime<Utc>) -> Vec<NewClaim> {
        let id = &definition.id;
        let eligible_since = self.gate.eligible_since;
        let watermark = self.definitions.get(id).and_then(|entry| entry.watermark);
        let (Some(watermark), Some(times)) = (watermark, Times::of(definition)) else { return Vec::new() };
        // Occurrences due while the clock was behind were not missed.
        let missed_until = now.min(eligible_since - TimeDelta::milliseconds(1));
        let after = watermark.not_missed_until.min(missed_until).max(watermark.fires_after);
        self.definitions.advance(id, after, watermark.not_missed_until);
        let plan = plan(&times, definition.zone, definition.on_missed, &Window { after, eligible_since, now });
        let purposes = purposes(plan, definition.on_missed, on_overlap, self.ahead_of(id).collect());
        purposes.into_iter().filter_map(|(at, purpose)| self.new_claim(id, at, purpose)).collect()
    }

    /// Returns the active occurrences of a routine that are not over.
    pub(super) fn ahead_of(&self, id: &DefinitionId) -> impl Iterator<Item = Predecessor> {
        let ahead = |active: &ActiveOccurrence| Predecessor {
            waits: active.awaits_first_attempt(),
            name: format!("run {}", active.run),
        };
        self.active
            .of(id)
            .filter(|(_, active)| !matches!(active.stage, Stage::Closing))
            .map(move |(_, active)| ahead(active))
    }

    pub(super) fn new_claim(&self, id: &DefinitionId, at: DateTime<Utc>, purpose: Purpose) -> Option<NewClaim> {
        let loaded = &self.definitions.get(id)?.loaded;
        Some(NewClaim {
            occurrence: Occurrence { id: id.clone(), kind: loaded.definition.kind(), at },
            file: loaded.definition.file.clone(),
            text: Arc::clone(&loaded.text),
            purpose,
            occasion: None,
            origin: None,
            run: self.prepared.run_of(id, at).unwrap_or_else(RunId::random),
        })
    }

    /// Has the journal commit claims, and the messages about late ones.
    pub(super) fn claim(&mut self, claims: Vec<NewClaim>, delays: Vec<Delay>, firing: Option<FireReply>) {
        self.claim_after(Duration::ZERO, claims, delays, firing);
    }

    /// Returns whether a claim leads to an attempt that starts processes.
    pub(super) fn starts_processes(&self, claim: &NewClaim) -> bool {
        let definition = self.definitions.definition(&claim.occurrence.id);
        matches!(claim.purpose, Purpose::Run | Purpose::RunByHand)
            && definition.is_some_and(|definition| !self.launcher.is_message_only(definition))
    }

    /// Like [`Self::claim`], after a wait in which another host may claim them.
    fn claim_after(&mut self, wait: Duration, claims: Vec<NewClaim>, delays: Vec<Delay>, firing: Option<FireReply>) {
        self.begin_claims(&claims);
        if !wait.is_zero() {
            // Occurrences of this host do not wait for those that another host will claim.
            claims.iter().for_each(|claim| self.active.arrived(&claim.occurrence));
        }
        let (journal, launcher, asked) = (self.journal.clone(), Arc::clone(&self.launcher), Instant::now());
        let asked_at = self.asked();
        let runs = claims.iter().any(|claim| self.starts_processes(claim));
        let asks = claims.clone();
        let task = async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            } else if runs {
                launcher.get_ready();
            }
            fail_point!(BeforeClaim);
            let answers = match wait.is_zero() {
                true => journal.claim_delayed(asks, delays, fold).await,
                false => journal.claim_rest(asks, delays, fold).await,
            };
            fail_point!(Claimed);
            answers
        };
        self.spawn(task, move |this, answers| {
            this.end_claims(&claims);
            let held_up = asked.elapsed() > HELD_UP;
            if held_up {
                this.gate.not_eligible_until(this.clock.now(), DelayCause::Disk);
            }
            let planned = claims.iter().filter(|claim| held_up && claim.purpose == Purpose::Run);
            let planned: Vec<Occurrence> = planned.map(|claim| claim.occurrence.clone()).collect();
            this.on_claimed(claims, answers?, asked_at, firing);
            planned.iter().for_each(|occurrence| this.skip_held_up(occurrence));
            Ok(())
        });
    }

    /// Skips an occurrence that was claimed for its time, if the journal took so long that it has missed that time.
    fn skip_held_up(&mut self, occurrence: &Occurrence) {
        let (id, at, now) = (&occurrence.id, occurrence.at, self.clock.now());
        let Some(definition) = self.definitions.definition(id).cloned().filter(|_| is_late(at, now)) else { return };
        let number = self.active.of(id).find(|(_, active)| active.occurrence.at == at).map(|(number, _)| number);
        let newer = Times::of(&definition).and_then(|times| times.next(definition.zone, at));
        let skips = match definition.on_missed {
            OnMissed::Skip => true,
            OnMissed::Latest => newer.is_some_and(|newer| newer <= now),
            OnMissed::All => false,
        };
        let Some(number) = number.filter(|_| skips) else { return };
        let why = missed_reason(definition.on_missed).to_owned();
        let skipped = self.new_claim(id, at, Purpose::Skip(why.clone()));
        let delay = skipped.and_then(|claim| missed(&definition, &[claim], now, now));
        let (Some(delay), Some(active)) = (delay, self.active.get(number)) else { return };
        if definition.kind() == Kind::Reminder {
            return self.skip_unstarted(number, &definition, why);
        }
        let mut finish = Finish::closed(RunState::Skipped, Some(why));
        finish.messages.push(NewMessage::of_run(&active.run, &definition, delay.text));
        self.record(number, finish);
    }

    /// Returns the current state for claims made now.
    pub(super) fn asked(&self) -> ClaimTime {
        ClaimTime { now: self.clock.now(), since: self.gate.eligible_since, by: self.gate.missed_by }
    }

    /// Keeps the definitions of these claims out of the queue until [`Self::end_claims`].
    pub(super) fn begin_claims(&mut self, claims: &[NewClaim]) {
        for claim in claims {
            self.definitions.begin_claim(&claim.occurrence.id);
            self.active.expect(&claim.occurrence);
        }
    }

    /// Ends the claims, since the journal has answered.
    pub(super) fn end_claims(&mut self, claims: &[NewClaim]) {
        for claim in claims {
            self.definitions.claiming.remove(&claim.occurrence.id);
            self.active.arrived(&claim.occurrence);
        }
    }

    /// Acts on the answers to claims. `asked`: the state when the claims were made.
    pub(super) fn on_claimed(
        &mut self,
        claims: Vec<NewClaim>,
        answers: Vec<Claim>,
        asked: ClaimTime,
        firing: Option<FireReply>,
    ) {
        if let (Some(firing), [claim], [answer]) = (firing, claims.as_slice(), answers.as_slice()) {
            let id = claim.occurrence.id.clone();
            // The caller may have gone away. The definition runs all the same.
            let _gone = firing.send(match answer {
                Claim::Claimed(run) => Ok(run.clone()),
                Claim::AlreadyRecorded(state) => Err(FireError::Done { id, state: *state }),
            });
        }
        for (claim, answer) in claims.into_iter().zip(answers) {
            self.advance_watermark(&claim);
            match answer {
                Claim::Claimed(run) => {
                    self.note_missed(&claim, &run, asked);
                    self.take_claimed(claim, run, asked.now);
                }
                Claim::AlreadyRecorded(state) => self.already_recorded(&claim.occurrence, state),
            }
        }
    }

    /// Records why an occurrence could not begin at its time.
    fn note_missed(&self, claim: &NewClaim, run: &RunId, asked: ClaimTime) {
        let at = claim.occurrence.at;
        let ClaimTime { now, since, by } = asked;
        let is_missed = match &claim.purpose {
            Purpose::Run => now - at >= NOTICEABLE,
            Purpose::Skip(why) | Purpose::SkipSince(_, why) => why.starts_with("missed"),
            Purpose::RunByHand | Purpose::RunElsewhere => false,
        };
        let (since, by) = match self.definitions.get(&claim.occurrence.id).and_then(|entry| entry.late_file) {
            Some(seen) if seen > since => (seen, DelayCause::FileLate),
            _ => (since, by),
        };
        if is_missed && at < since {
            self.journal.record(run, EventKind::Delayed { by, until: Some(since), what: None });
        }
    }

    fn advance_watermark(&mut self, claim: &NewClaim) {
        let Occurrence { id, kind, at } = &claim.occurrence;
        if *kind == Kind::Routine && claim.purpose != Purpose::RunByHand {
            // The clock may have been set back since the claim.
            let now = self.clock.now();
            self.definitions.advance(id, now.min(*at), self.wall_clock.latest().max(now).min(*at));
        }
        self.definitions.enqueue(id);
    }

    fn take_claimed(&mut self, claim: NewClaim, run: RunId, now: DateTime<Utc>) {
        if claim.purpose == Purpose::RunElsewhere {
            return;
        }
        if let Purpose::Skip(_) | Purpose::SkipSince(..) = claim.purpose {
            if claim.occurrence.kind == Kind::Reminder {
                self.fetch_record(&claim.occurrence);
            }
            return;
        }
        self.supersede(&claim.occurrence);
        self.active.insert(ActiveOccurrence::claimed(claim, run, now));
    }

    /// Ends older occurrences in favor of a newer one, if the routine says so.
    pub(super) fn supersede(&mut self, newer: &Occurrence) {
        let cancels = self.definitions.definition(&newer.id).is_some_and(|definition| {
            // Missed occurrences that all run follow one another.
            let in_a_row = definition.on_missed == OnMissed::All && newer.at < self.gate.eligible_since;
            matches!(definition.trigger, Trigger::Routine { on_overlap: OnOverlap::Cancel, .. }) && !in_a_row
        });
        if !cancels {
            return;
        }
        let older: Vec<u64> = self.active.of(&newer.id).map(|(number, _)| number).collect();
        for number in older {
            self.end(number, Cause::Overlap);
            if let Some(active) = self.active.get_mut(number) {
                active.superseded = true;
            }
            self.close_superseded(number);
        }
    }

    /// Closes a superseded occurrence if it is idle; otherwise this is called again when it is. A failed one keeps
    /// its failure, which counts. Otherwise a routine that fires more often than its pauses last would fail
    /// forever, and nobody would notice.
    pub(super) fn close_superseded(&mut self, number: u64) {
        const NEWER: &str = "a newer occurrence fell due (on_overlap: cancel)";
        let Some(active) = self.active.get(number).filter(|active| active.superseded && active.is_idle()) else {
            return;
        };
        match &active.failure {
            Some(failure) => {
                let failure = failure.trim_end_matches(['.', ' ', '\n']);
                let why = format!("{failure}; not tried again: {NEWER}");
                self.give_up(number, why);
            }
            None => self.close_idle(number, NEWER),
        }
    }

    /// Handles an occurrence that this process or a previous one claimed before. Cleans up a reminder with an outcome.
    fn already_recorded(&mut self, occurrence: &Occurrence, state: RunState) {
        tracing::debug!(id = %occurrence.id, at = %occurrence.at, %state, "it has a record");
        if occurrence.kind == Kind::Reminder && !self.is_removed_elsewhere(occurrence) {
            if state.is_over() {
                self.fetch_record(occurrence);
            } else if self.active.of(&occurrence.id).all(|(_, active)| active.occurrence != *occurrence) {
                self.await_record(occurrence.clone());
            }
        }
    }

    /// Fetches a reminder's record, to clean up its file.
    fn fetch_record(&mut self, occurrence: &Occurrence) {
        let (journal, occurrence) = (self.journal.clone(), occurrence.clone());
        self.spawn(async move { journal.recorded(&occurrence).await }, |this, recorded| {
            if let Some(recorded) = recorded? {
                this.clean_up(recorded, false);
            }
            Ok(())
        });
    }

    /// Handles a reminder that is enabled again. If it fell due while it was disabled, it is recorded as skipped.
    pub(super) fn enabled_again(&mut self, id: &DefinitionId) {
        let (journal, forgotten) = (self.journal.clone(), id.clone());
        self.note(async move { journal.forget(forgotten).await });
        self.definitions.were_disabled.remove(id);
        let at = self.definitions.definition(id).and_then(|definition| due_at(definition));
        let Some(at) = at.filter(|at| *at <= self.clock.now()) else { return };
        let why = "disabled: it was disabled when it fell due";
        let Some(claim) = self.new_claim(id, at, Purpose::Skip(why.to_owned())) else { return };
        if let Some(entry) = self.definitions.get_mut(id) {
            entry.claimed = Some(at);
        }
        self.claim(vec![claim], Vec::new(), None);
        let text = format!(
            "reminder {id} was disabled when it fell due, so it did not fire. Its file is kept in reminders/failed/; \
             `ollim-bot reminder retry {id}` brings it back."
        );
        let subject = self.definitions.definition(id).map(|definition| Subject::job(definition)).unwrap_or_default();
        let message = NewMessage::about(subject, text).with_buttons(failure_buttons(Kind::Reminder));
        let journal = self.journal.clone();
        self.note(async move { journal.message(message).await.map(drop) });
    }

    /// Closes an idle occurrence with the outcome that follows from its last attempt.
    pub(super) fn close_idle(&mut self, number: u64, why: &str) {
        use super::super::active::LastAttempt::{Claimed, Failed, Interrupted};
        let Some(active) = self.active.get(number).filter(|active| active.is_idle()) else { return };
        let finish = match active.last {
            Claimed { .. } => Finish::closed(RunState::Skipped, Some(why.to_owned())),
            Interrupted => {
                let why = format!("cut off, and not begun again: {why}");
                Finish::closed(RunState::Cancelled, Some(why))
            }
            Failed(state) => Finish::closed(state, None),
        };
        self.record(number, finish);
    }
}
