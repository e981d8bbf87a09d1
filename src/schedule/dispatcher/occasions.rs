//! Occurrences that fall due for what has happened, and not for their time.
//!
//! Each is claimed in the commit of what it falls due for, so a crash can neither lose nor repeat it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::super::command::Burst;
use super::super::missed::Plan;
use super::super::overlap::{Ahead, purposes};
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, OnMissed, Trigger};
use crate::journal::{After, Finish, NewClaim, NewMessage, Occasion, Purpose};

/// How many jobs are looked at to find out whether one has set itself off.
const LOOKED_AT: usize = 64;

impl Dispatcher {
    /// The occurrences that follow an end: they are claimed with it.
    pub(super) fn add_followers(&mut self, number: u64, finish: &mut Finish) {
        let Some(active) = self.active.get(number).filter(|_| finish.after == After::Closed) else { return };
        let (job, run, outcome) = (active.occurrence.id.clone(), active.run.clone(), finish.state);
        for follower in self.definitions.followers(&job, outcome) {
            let occasion = Occasion::After { job: job.clone(), run: run.clone(), outcome };
            let sets_itself_off = self.sets_itself_off(&follower.id, &job);
            let (claim, message) = self.claim_for(&follower, occasion, sets_itself_off);
            finish.followers.extend(claim);
            finish.messages.extend(message);
        }
    }

    /// Claims an occurrence for files that have changed.
    pub(super) fn changed(&mut self, id: &DefinitionId, burst: Burst) {
        let watches = |definition: &&Arc<Definition>| definition.watches().is_some() && definition.enabled;
        let Some(definition) = self.definitions.definition(id).filter(watches).cloned() else { return };
        if self.phase.is_stopping() {
            return;
        }
        // What changes while it runs, it has most likely changed itself.
        let is_running = self.active.of(id).any(|(_, active)| active.running().is_some());
        let by_itself = is_running || self.self_triggered.ended_after(id, burst.began);
        let (Some(claim), message) = self.claim_for(&definition, burst.occasion, by_itself) else { return };
        self.begin_claims(std::slice::from_ref(&claim));
        let (journal, launcher, asked) = (self.journal.clone(), Arc::clone(&self.launcher), self.asked());
        let begun = vec![claim.clone()];
        let task = async move {
            if claim.purpose == Purpose::Run {
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

    /// The claim of a routine's occurrence that falls due now, and what the person is told of it.
    fn claim_for(
        &mut self,
        definition: &Definition,
        occasion: Occasion,
        sets_itself_off: bool,
    ) -> (Option<NewClaim>, Option<NewMessage>) {
        let (id, now) = (&definition.id, self.clock.now());
        // The journal counts in milliseconds.
        let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
        let mut purpose = self.purpose_now(definition, now);
        let mut message = None;
        if purpose == Purpose::Run {
            let counted = self.self_triggered.count(id, sets_itself_off, Instant::now());
            if let Some(why) = counted.cut {
                purpose = Purpose::Skip(format!("cut: {why}"));
                let text = format!(
                    "{} was cut: {why}. It fires again when a minute has passed; `ollim-bot runs {id}` shows what set it off.",
                    definition.title()
                );
                let news = NewMessage { id: Some(id.clone()), ..NewMessage::of_service(text) };
                message = Some(news).filter(|_| counted.is_news);
            }
        }
        let claim = self.new_claim(id, now, purpose);
        (claim.map(|claim| NewClaim { occasion: Some(occasion), ..claim }), message)
    }

    /// What an occurrence is claimed for that falls due now.
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
        let mut ahead: Vec<Ahead> = self.ahead_of(id).collect();
        if self.definitions.claiming.contains(id) {
            ahead.push(Ahead { waits: true, name: "an earlier one".to_owned() });
        }
        let plan = Plan { run: vec![now], ..Plan::default() };
        let purpose = purposes(plan, definition.on_missed, on_overlap, ahead).pop();
        purpose.map_or(Purpose::Run, |(_, purpose)| purpose)
    }

    /// Whether `job`, which a routine follows, comes of that routine: it was made by it, or by what it made, or follows such a job.
    /// (Definitions that only follow one another in a circle are not in force.)
    fn sets_itself_off(&self, routine: &DefinitionId, job: &DefinitionId) -> bool {
        let mut seen: Vec<&DefinitionId> = vec![job];
        let mut looked_at = 0;
        while let Some(id) = seen.get(looked_at).copied() {
            if id == routine {
                return true;
            }
            looked_at += 1;
            let Some(definition) = self.definitions.definition(id).filter(|_| looked_at < LOOKED_AT) else { continue };
            let chain = definition.chain().map(|chain| &chain.parent);
            let causes =
                definition.created_by.iter().chain(definition.follows().map(|follows| &follows.job)).chain(chain);
            let new: Vec<&DefinitionId> = causes.filter(|cause| !seen.contains(cause)).collect();
            seen.extend(new);
        }
        false
    }
}
