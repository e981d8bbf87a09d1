//! The definitions in force, with the watermark and the next due time of each.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::command::Loaded;
use super::cron::Times;
use super::queue::Queue;
use crate::definition::{Definition, DefinitionId, FollowedEnd, Recurrence, Trigger};
use crate::journal::{ConsecutiveFailures, ObservedGeneration, RunState};

/// The watermark of a routine's occurrences. The two times differ only while the clock is behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermark {
    /// Occurrences due after this time fire by the current clock, unless they have a record.
    pub(super) fires_after: DateTime<Utc>,
    /// Occurrences due until this time were not missed.
    pub(super) not_missed_until: DateTime<Utc>,
}

/// A definition as the dispatcher holds it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) loaded: Loaded,
    /// Its position in the queue.
    queued: Option<DateTime<Utc>>,
    /// The watermark of a routine. `None` until the journal has answered.
    pub(super) watermark: Option<Watermark>,
    /// The claimed `run_at` of a reminder.
    pub(super) claimed: Option<DateTime<Utc>>,
    /// When the service saw the file of a reminder whose time had passed by then, or the file of a routine that it did not know.
    pub(super) late_file: Option<DateTime<Utc>>,
}

/// The journal's answer about a definition.
pub(super) struct Observed {
    pub(super) definition: Arc<Definition>,
    /// The recorded watermark.
    pub(super) accounted_until: DateTime<Utc>,
    /// The last time for which it fired. Set only for a definition with jitter.
    pub(super) last_due: Option<DateTime<Utc>>,
}

/// All definitions. A definition is in the queue exactly when it is enabled, not suppressed, not being claimed,
/// and has a next time.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    all: HashMap<DefinitionId, Entry>,
    queue: Queue,
    /// The part of the queue that is delivered as written.
    plain: Queue,
    /// The part of the queue that wakes the machine.
    waking: Queue,
    /// Definitions with an occurrence that is being claimed.
    pub(super) claiming: HashSet<DefinitionId>,
    /// Pairs of a job and a routine that follows it.
    followers: BTreeSet<(DefinitionId, DefinitionId)>,
    /// Definitions with consecutive failures.
    failing: HashMap<DefinitionId, ConsecutiveFailures>,
    /// Reminders that were disabled when the previous process last observed them.
    pub(super) were_disabled: HashSet<DefinitionId>,
}

/// Returns the times after `after` at which a definition fires, enabled or not. A reminder fires once, at its instant.
pub fn occurrences(definition: &Definition, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let times = Times::of(definition);
    let zone = definition.zone;
    let next = move |last: &DateTime<Utc>| times.as_ref()?.next(zone, *last);
    let first = match due_at(definition) {
        Some(due) => Some(due).filter(|due| *due > after),
        None => next(&after),
    };
    std::iter::successors(first, next)
}

/// Returns the time after which a definition fires next: `after`, or a later time if its jitter would repeat the occurrence for which it
/// fired last. `last_due`: the scheduled time of that one; `None` without jitter.
#[must_use]
pub fn fires_after(definition: &Definition, after: DateTime<Utc>, last_due: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let Some(last) = last_due else { return after };
    Times::of(definition).map_or(after, |times| times.not_again(definition.zone, after, last))
}

/// Returns when a reminder or a session falls due, rounded up to milliseconds, the resolution of the journal.
pub(crate) fn due_at(definition: &Definition) -> Option<DateTime<Utc>> {
    let run_at = definition.trigger.run_at()?;
    let whole = DateTime::from_timestamp_millis(run_at.timestamp_millis())?;
    Some(if whole < run_at { whole + TimeDelta::milliseconds(1) } else { whole })
}

/// Returns from when on a host needs a definition of the database in memory: the next time after `now` at which it fires, or the time of a
/// reminder, past or future. `None` if it never fires, or is disabled.
#[must_use]
pub fn next_due(definition: &Definition, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if !definition.enabled {
        return None;
    }
    due_at(definition).or_else(|| occurrences(definition, now).next())
}

/// Returns everything that a definition's backlog depends on. `None` for an enabled reminder, which fires however long ago it was
/// due, and for a webhook, which has no times. Excludes jitter: an occurrence that was put off is still to come after an edit.
fn trigger(definition: &Definition) -> Option<String> {
    match &definition.trigger {
        Trigger::Routine { recurs, .. } => {
            let recurs = Recurrence { jitter: None, cadence: recurs.cadence.clone() };
            Some(format!("{recurs}\n{}\n{}", definition.zone, definition.enabled))
        }
        Trigger::Reminder { .. } if !definition.enabled => Some(ObservedGeneration::DISABLED_REMINDER.to_owned()),
        Trigger::Reminder { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
    }
}

/// Returns a definition's generation for the journal; `None` for one without a backlog.
#[must_use]
pub fn generation(loaded: &Loaded) -> Option<ObservedGeneration> {
    let definition = &loaded.definition;
    let trigger = trigger(definition)?;
    Some(ObservedGeneration { id: definition.id.clone(), trigger, text: Arc::clone(&loaded.text) })
}

/// Changes caused by the insertion of a definition.
pub(super) struct InsertEffects {
    /// A generation that the journal has not answered for yet.
    pub(super) unobserved: Option<ObservedGeneration>,
    /// Whether it is an enabled reminder that was disabled before.
    pub(super) enabled_again: bool,
    /// Whether it was suppressed after too many failures and its text has changed.
    pub(super) mended: bool,
}

impl Definitions {
    pub(super) fn get(&self, id: &DefinitionId) -> Option<&Entry> {
        self.all.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &DefinitionId) -> Option<&mut Entry> {
        self.all.get_mut(id)
    }

    pub(super) fn definition(&self, id: &DefinitionId) -> Option<&Arc<Definition>> {
        Some(&self.all.get(id)?.loaded.definition)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &DefinitionId> {
        self.all.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Inserts or replaces a definition. The caller still has to enqueue it.
    pub(super) fn insert(&mut self, loaded: Loaded) -> InsertEffects {
        let id = loaded.definition.id.clone();
        let old = self.remove(&id);
        let generation = generation(&loaded);
        let same = old.as_ref().is_some_and(|old| {
            let old = &old.loaded.definition;
            trigger(old) == trigger(&loaded.definition) && old.jitter() == loaded.definition.jitter()
        });
        let was_disabled = match &old {
            Some(old) => !old.loaded.definition.enabled,
            None => self.were_disabled.contains(&id),
        };
        // A reminder renamed while its file was being cleaned up fires again, to find its record.
        let same_file = old.as_ref().filter(|old| old.loaded.definition.file == loaded.definition.file);
        let entry = Entry {
            queued: None,
            watermark: old.as_ref().filter(|_| same).and_then(|old| old.watermark),
            claimed: same_file.and_then(|old| old.claimed),
            late_file: None,
            loaded,
        };
        let edited = old.as_ref().is_some_and(|old| old.loaded.text != entry.loaded.text);
        let inserted = InsertEffects {
            enabled_again: generation.is_none() && was_disabled,
            unobserved: generation.filter(|_| entry.watermark.is_none()),
            mended: edited && self.is_paused(&id),
        };
        if let Some(follows) = entry.loaded.definition.follows() {
            self.followers.insert((follows.job.clone(), id.clone()));
        }
        self.all.insert(id, entry);
        inserted
    }

    /// Returns the routines that follow this end of a job.
    pub(super) fn followers(&self, job: &DefinitionId, outcome: RunState) -> Vec<Arc<Definition>> {
        use FollowedEnd::{Any, Completed, Failed};
        let is_followed = |end: FollowedEnd| match outcome {
            RunState::Completed => end != Failed,
            RunState::Failed | RunState::TimedOut => end != Completed,
            RunState::Cancelled => end == Any,
            // The job has not run, or has not ended.
            RunState::Skipped | RunState::Claimed | RunState::Running | RunState::Interrupted => false,
        };
        let own =
            self.followers.range((job.clone(), DefinitionId::new(""))..).take_while(|(followed, _)| followed == job);
        own.filter_map(|(_, id)| self.definition(id))
            .filter(|definition| definition.follows().is_some_and(|follows| is_followed(follows.outcome)))
            .cloned()
            .collect()
    }

    pub(super) fn remove(&mut self, id: &DefinitionId) -> Option<Entry> {
        let entry = self.all.remove(id)?;
        if let Some(follows) = entry.loaded.definition.follows() {
            self.followers.remove(&(follows.job.clone(), id.clone()));
        }
        if let Some(due) = entry.queued {
            self.dequeue(due, id);
        }
        Some(entry)
    }

    /// Returns whether the file belongs to a valid definition.
    pub(super) fn has_file(&self, file: &Path) -> bool {
        // Compared as text: comparing 100,000 paths by component takes longer.
        let file: &OsStr = file.as_os_str();
        self.all.values().any(|entry| entry.loaded.definition.file.as_os_str() == file)
    }

    /// Records the journal's answer, unless a newer edit has overtaken it.
    pub(super) fn set_watermark(&mut self, observed: &Observed, now: DateTime<Utc>, latest: DateTime<Utc>) {
        let Observed { definition, accounted_until, last_due } = observed;
        let Some(entry) = self.all.get_mut(&definition.id) else { return };
        let current = &entry.loaded.definition;
        if Arc::ptr_eq(current, definition) || trigger(current) == trigger(definition) {
            let (fires_after, not_missed_until) = ((*accounted_until).min(now), (*accounted_until).min(latest));
            let fires_after = self::fires_after(current, fires_after, *last_due);
            let old = entry.watermark.unwrap_or(Watermark { fires_after, not_missed_until });
            entry.watermark = Some(Watermark {
                fires_after: fires_after.max(old.fires_after),
                not_missed_until: not_missed_until.max(old.not_missed_until),
            });
        }
    }

    /// Deletes a routine's watermark, so that the journal is asked again.
    pub(super) fn forget_watermark(&mut self, id: &DefinitionId) {
        if let Some(entry) = self.all.get_mut(id) {
            entry.watermark = None;
        }
    }

    /// Moves a routine's watermark forwards.
    pub(super) fn advance(&mut self, id: &DefinitionId, fires_after: DateTime<Utc>, not_missed_until: DateTime<Utc>) {
        if let Some(watermark) = self.all.get_mut(id).and_then(|entry| entry.watermark.as_mut()) {
            watermark.fires_after = watermark.fires_after.max(fires_after);
            watermark.not_missed_until = watermark.not_missed_until.max(not_missed_until);
        }
    }

    /// Makes occurrences due after `now` fire again, since the clock went back to it. The journal knows which have a record.
    pub(super) fn fire_again_after(&mut self, now: DateTime<Utc>) {
        let mut ahead = Vec::new();
        for (id, entry) in &mut self.all {
            if let Some(watermark) = entry.watermark.as_mut().filter(|watermark| watermark.fires_after > now) {
                watermark.fires_after = now;
                ahead.push(id.clone());
            }
        }
        for id in ahead {
            self.enqueue(&id);
        }
    }

    /// Like [`Self::fire_again_after`]. Occurrences due after `now` that cannot run count as missed.
    pub(super) fn rewind(&mut self, now: DateTime<Utc>) {
        for watermark in self.all.values_mut().filter_map(|entry| entry.watermark.as_mut()) {
            watermark.not_missed_until = watermark.not_missed_until.min(now);
        }
        self.fire_again_after(now);
    }

    /// Puts a definition at its position in the queue.
    pub(super) fn enqueue(&mut self, id: &DefinitionId) {
        let held = self.claiming.contains(id) || self.is_paused(id);
        let Some(entry) = self.all.get_mut(id) else { return };
        let definition = &entry.loaded.definition;
        let due = match &definition.trigger {
            _ if held || !definition.enabled => None,
            Trigger::Routine { .. } => entry
                .watermark
                .and_then(|watermark| Times::of(definition)?.next(definition.zone, watermark.fires_after)),
            Trigger::Webhook(_) => None,
            Trigger::Reminder { .. } | Trigger::Session { .. } => {
                due_at(definition).filter(|due| entry.claimed != Some(*due))
            }
        };
        if entry.queued != due {
            let old = std::mem::replace(&mut entry.queued, due);
            let (is_plain, wakes) = (definition.is_without_agent(), definition.wake);
            if let Some(old) = old {
                self.dequeue(old, id);
            }
            if let Some(due) = due {
                let queues = [(&mut self.queue, true), (&mut self.plain, is_plain), (&mut self.waking, wakes)];
                queues.into_iter().filter(|(_, is_in)| *is_in).for_each(|(queue, _)| queue.insert(due, id.clone()));
            }
        }
    }

    fn dequeue(&mut self, due: DateTime<Utc>, id: &DefinitionId) {
        for queue in [&mut self.queue, &mut self.plain, &mut self.waking] {
            queue.remove(due, id);
        }
    }

    pub(super) fn unqueued(&self) -> Vec<DefinitionId> {
        self.all.iter().filter(|(_, entry)| entry.queued.is_none()).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        self.queue.first()
    }

    /// Returns when the next definition falls due that is delivered as written.
    pub(super) fn next_plain_due(&self) -> Option<DateTime<Utc>> {
        self.plain.first()
    }

    /// Returns when the next definition falls due that wakes the machine.
    pub(super) fn next_waking_due(&self) -> Option<DateTime<Utc>> {
        self.waking.first()
    }

    /// Takes all due definitions out of the queue, in order. `plain`: only those that are delivered as written.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>, plain: bool) -> Vec<Arc<Definition>> {
        let due = if plain { self.plain.take_due(now) } else { self.queue.take_due(now) };
        due.into_iter()
            .filter_map(|id| {
                let entry = self.all.get_mut(&id)?;
                let (definition, queued) = (Arc::clone(&entry.loaded.definition), entry.queued.take());
                if let Some(due) = queued {
                    self.dequeue(due, &id);
                }
                Some(definition)
            })
            .collect()
    }

    /// Returns the next `count` definitions to fall due, in order.
    pub(super) fn upcoming(&self, count: usize) -> Vec<(DateTime<Utc>, Arc<Definition>)> {
        let next = self.queue.next(count).into_iter();
        next.filter_map(|(at, id)| Some((at, Arc::clone(self.definition(&id)?)))).collect()
    }

    /// Keeps a definition out of the queue until it is removed from `claiming`.
    pub(super) fn begin_claim(&mut self, id: &DefinitionId) {
        self.claiming.insert(id.clone());
        self.enqueue(id);
    }

    /// Returns the definition's consecutive failures.
    pub(super) fn failures(&self, id: &DefinitionId) -> ConsecutiveFailures {
        self.failing.get(id).cloned().unwrap_or_else(|| ConsecutiveFailures::none(id.clone()))
    }

    pub(super) fn set_failures(&mut self, failures: &ConsecutiveFailures) {
        if *failures == ConsecutiveFailures::none(failures.id.clone()) {
            self.failing.remove(&failures.id);
        } else {
            self.failing.insert(failures.id.clone(), failures.clone());
        }
    }

    /// Returns whether it is suppressed after too many consecutive failures.
    pub(super) fn is_paused(&self, id: &DefinitionId) -> bool {
        self.failing.get(id).is_some_and(|failures| failures.paused.is_some())
    }
}
