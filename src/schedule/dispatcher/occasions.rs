//! Occurrences that fall due because of an event instead of a time.
//!
//! Follow-ups are claimed in the commit of the end that they follow, so a crash can neither lose nor repeat them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::super::active::ActiveOccurrence;
use super::super::command::Burst;
use super::super::missed::Plan;
use super::super::overlap::{Predecessor, purposes};
use super::super::self_triggered::{FiringLimit, Lineage, PastRun};
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, OnMissed, Trigger};
use crate::journal::{AfterAttempt, Finish, NewClaim, NewMessage, Occasion, Purpose, Subject, WHY};

impl Dispatcher {
    /// Adds the follow-ups of an end, to be claimed in the same commit.
    pub(super) fn add_followers(&mut self, number: u64, finish: &mut Finish) {
        let Some(active) = self.active.get(number).filter(|_| finish.after == AfterAttempt::Closed) else { return };
        let (job, run, outcome) = (active.occurrence.id.clone(), active.run.clone(), finish.state);
        for follower in self.definitions.followers(&job, outcome) {
            let occasion = Occasion::After { job: job.clone(), run: run.clone(), outcome };
            let causes = [self.self_triggered.lineage(&job)];
            let (claim, message) = self.claim_for(&follower, occasion, &causes);
            finish.followers.extend(claim);
            finish.messages.extend(message);
        }
    }

    /// Claims an occurrence for changed files.
    pub(super) fn changed(&mut self, id: &DefinitionId, burst: Burst) {
        let watches = |definition: &&Arc<Definition>| definition.watches().is_some() && definition.enabled;
        let Some(definition) = self.definitions.definition(id).filter(watches).cloned() else { return };
        // Each host watches its own folders.
        if self.phase.is_stopping() || !self.sharing.is_named_here(&definition) {
            return;
        }
        let runs = self.runs_at(burst.began);
        if runs.is_empty() {
            self.fires_for(&definition, burst.occasion, &[]);
            return;
        }
        let (launcher, watcher) = (Arc::clone(&self.launcher), Arc::clone(&definition));
        let task = async move {
            let mut causes = Vec::new();
            for run in runs {
                if launcher.may_write(&run.definition, &watcher).await {
                    causes.push(run.lineage);
                }
            }
            causes
        };
        self.spawn(task, move |this, causes| {
            if !this.phase.is_stopping() {
                this.fires_for(&definition, burst.occasion, &causes);
            }
            Ok(())
        });
    }

    /// Returns the runs that may have changed something at that time.
    fn runs_at(&self, at: Instant) -> Vec<PastRun> {
        let running = self.active.iter().filter_map(|(_, active)| self.as_run(active));
        self.self_triggered.runs_at(at, running)
    }

    /// Returns a running occurrence as a run. `None` for conversations, since what happens in them is the person's own doing.
    fn as_run(&self, active: &ActiveOccurrence) -> Option<PastRun> {
        let id = &active.occurrence.id;
        let running = active.running().filter(|_| !id.is_turn() && !id.is_fork())?;
        let (definition, lineage) = (Arc::clone(&running.definition), self.self_triggered.lineage(id));
        Some(PastRun { definition, lineage, begun: running.begun, ended: Instant::now() })
    }

    /// Remembers a run that ends, since its changes may be seen later.
    pub(super) fn note_run(&mut self, number: u64) {
        if let Some(run) = self.active.get(number).and_then(|active| self.as_run(active)) {
            self.self_triggered.ended(run);
        }
    }

    /// Claims an occurrence for changes in a folder. `causes`: the lineages of the runs that may have made them.
    fn fires_for(&mut self, definition: &Definition, occasion: Occasion, causes: &[Lineage]) {
        let (Some(claim), message) = self.claim_for(definition, occasion, causes) else { return };
        self.begin_claims(std::slice::from_ref(&claim));
        let (journal, launcher, asked) = (self.journal.clone(), Arc::clone(&self.launcher), self.asked());
        let begun = vec![claim.clone()];
        let runs = self.starts_processes(&claim);
        let task = async move {
            if runs {
                launcher.get_ready();
            }
            fail_point!(BeforeBurst);
            let claimed = journal.claim_occasion(claim, message).await;
            fail_point!(BurstClaimed);
            claimed
        };
        self.spawn(task, move |this, claimed| {
            this.end_claims(&begun);
            let (claim, answer) = claimed?;
            this.on_claimed(vec![claim], vec![answer], asked, None);
            Ok(())
        });
    }

    /// Returns the claim of a routine's occurrence that falls due now, and any message to the person about it.
    fn claim_for(
        &mut self,
        definition: &Definition,
        occasion: Occasion,
        causes: &[Lineage],
    ) -> (Option<NewClaim>, Option<NewMessage>) {
        let (id, now) = (&definition.id, self.clock.now());
        // The journal counts in milliseconds.
        let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
        let mut purpose = self.purpose_now(definition, now);
        let (mut message, mut origin) = (None, None);
        if purpose == Purpose::Run {
            let counted = self.self_triggered.count(id, causes, Instant::now());
            origin = Some(counted.origin);
            if let Some(FiringLimit { why, until }) = counted.cut {
                purpose = Purpose::Skip(format!("cut: {why}"));
                let text = format!(
                    "{} was cut: {why}. It fires again {until}; `ollim-bot runs {id}` shows what set it off.",
                    definition.title()
                );
                let news = NewMessage::about(Subject::job(definition), text);
                message = Some(news.with_buttons(&[WHY])).filter(|_| counted.is_news);
            }
        }
        if purpose == Purpose::Run {
            purpose = self.purpose_here(definition);
        }
        let claim = self.new_claim(id, now, purpose);
        (claim.map(|claim| NewClaim { occasion: Some(occasion), origin, ..claim }), message)
    }

    /// Returns the purpose of a claim for an occurrence that is to run: here, or on a host that may run it.
    pub(super) fn purpose_here(&self, definition: &Definition) -> Purpose {
        if self.sharing.not_here(definition).is_some() { Purpose::RunElsewhere } else { Purpose::Run }
    }

    /// Returns the purpose of a claim for an occurrence that falls due now.
    fn purpose_now(&self, definition: &Definition, now: DateTime<Utc>) -> Purpose {
        let id = &definition.id;
        let Trigger::Routine { on_overlap, .. } = definition.trigger else { return Purpose::Run };
        let skipped = |why: &str| Purpose::Skip(why.to_owned());
        if !definition.enabled {
            return skipped("disabled: it was disabled when it fell due");
        }
        if self.definitions.is_paused(id) {
            return skipped("paused: it has failed too often in a row");
        }
        if self.gate.paused.is_some() && definition.on_missed == OnMissed::Skip {
            return skipped("missed: nothing could run at its time (on_missed: skip)");
        }
        let mut ahead: Vec<Predecessor> = self.ahead_of(id).collect();
        if self.definitions.claiming.contains(id) {
            ahead.push(Predecessor { waits: true, name: "an earlier one".to_owned() });
        }
        let plan = Plan { run: vec![now], ..Plan::default() };
        let purpose = purposes(plan, definition.on_missed, on_overlap, ahead).pop();
        purpose.map_or(Purpose::Run, |(_, purpose)| purpose)
    }
}
