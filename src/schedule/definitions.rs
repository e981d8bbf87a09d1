//! The definitions in force, how far each is accounted for, and when each falls due next.

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

/// Up to when a routine's occurrences are accounted for. The two differ only while the clock is behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermark {
    /// What is due after this fires by the clock as it stands, unless it has a record.
    pub(super) fires_after: DateTime<Utc>,
    /// What is due until then was not missed.
    pub(super) not_missed_until: DateTime<Utc>,
}

/// A definition as the dispatcher holds it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) loaded: Loaded,
    /// Its position in the queue.
    queued: Option<DateTime<Utc>>,
    /// A routine's. `None` until the journal has answered.
    pub(super) watermark: Option<Watermark>,
    /// A reminder's `run_at` that was claimed.
    pub(super) claimed: Option<DateTime<Utc>>,
}

/// What the journal says of a definition.
pub(super) struct Observed {
    pub(super) definition: Arc<Definition>,
    /// Its occurrences are accounted for until then.
    pub(super) accounted_until: DateTime<Utc>,
    /// The last time for which it has fired. Only of one with jitter.
    pub(super) last_due: Option<DateTime<Utc>>,
}

/// All definitions. A definition is in the queue exactly when it is enabled, not paused, not being claimed, and has a
/// next time.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    all: HashMap<DefinitionId, Entry>,
    queue: Queue,
    /// Those of the queue that are delivered as they are written.
    plain: Queue,
    /// Those of the queue that wake the machine.
    waking: Queue,
    /// Definitions of which an occurrence is being claimed.
    pub(super) claiming: HashSet<DefinitionId>,
    /// Routines that follow a job, by that job.
    followers: BTreeSet<(DefinitionId, DefinitionId)>,
    /// Definitions with consecutive failures.
    failing: HashMap<DefinitionId, ConsecutiveFailures>,
    /// Reminders that were disabled when the previous process observed them last.
    pub(super) were_disabled: HashSet<DefinitionId>,
}

/// When a definition fires after `after`, whether it is enabled or not. A reminder fires once, at its instant.
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

/// The instant at which a reminder or a session falls due, rounded up to the milliseconds in which the journal counts.
pub(super) fn due_at(definition: &Definition) -> Option<DateTime<Utc>> {
    let run_at = definition.trigger.run_at()?;
    let whole = DateTime::from_timestamp_millis(run_at.timestamp_millis())?;
    Some(if whole < run_at { whole + TimeDelta::milliseconds(1) } else { whole })
}

/// All that a definition's backlog depends on. `None` for an enabled reminder, which fires however long ago it was due, and for a
/// webhook, which has no times. Jitter is no part of it: what was put off is still to come when that is edited.
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

/// A definition as the journal is to see it.
pub(super) fn generation(loaded: &Loaded) -> Option<ObservedGeneration> {
    let definition = &loaded.definition;
    let trigger = trigger(definition)?;
    Some(ObservedGeneration { id: definition.id.clone(), trigger, text: Arc::clone(&loaded.text) })
}

/// What has changed with a definition that was inserted.
pub(super) struct Inserted {
    /// A generation that the journal has not answered yet.
    pub(super) unobserved: Option<ObservedGeneration>,
    /// It is an enabled reminder that was disabled before.
    pub(super) enabled_again: bool,
    /// It is paused after too many failures, and its text has changed.
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

    /// Inserts a definition or replaces one. It still has to be enqueued.
    pub(super) fn insert(&mut self, loaded: Loaded) -> Inserted {
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
        // A reminder that was renamed while its file was being cleaned up fires again, to find its record.
        let same_file = old.as_ref().filter(|old| old.loaded.definition.file == loaded.definition.file);
        let entry = Entry {
            queued: None,
            watermark: old.as_ref().filter(|_| same).and_then(|old| old.watermark),
            claimed: same_file.and_then(|old| old.claimed),
            loaded,
        };
        let edited = old.as_ref().is_some_and(|old| old.loaded.text != entry.loaded.text);
        let inserted = Inserted {
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

    /// The routines that follow this end of a job.
    pub(super) fn followers(&self, job: &DefinitionId, outcome: RunState) -> Vec<Arc<Definition>> {
        use FollowedEnd::{Any, Completed, Failed};
        let is_followed = |end: FollowedEnd| match outcome {
            RunState::Completed => end != Failed,
            RunState::Failed | RunState::TimedOut => end != Completed,
            RunState::Cancelled => end == Any,
            // It has not run, or is not over.
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

    /// Whether a file is that of a valid definition.
    pub(super) fn has_file(&self, file: &Path) -> bool {
        // Compared as text: comparing 100,000 paths part by part takes longer.
        let file: &OsStr = file.as_os_str();
        self.all.values().any(|entry| entry.loaded.definition.file.as_os_str() == file)
    }

    /// Takes in the journal's answer, unless a newer edit has overtaken it.
    pub(super) fn set_watermark(&mut self, observed: &Observed, now: DateTime<Utc>, latest: DateTime<Utc>) {
        let Observed { definition, accounted_until, last_due } = observed;
        let Some(entry) = self.all.get_mut(&definition.id) else { return };
        let current = &entry.loaded.definition;
        if Arc::ptr_eq(current, definition) || trigger(current) == trigger(definition) {
            let (fires_after, not_missed_until) = ((*accounted_until).min(now), (*accounted_until).min(latest));
            let fires_after = match (Times::of(current), last_due) {
                (Some(times), Some(last)) => times.not_again(current.zone, fires_after, *last),
                _ => fires_after,
            };
            let old = entry.watermark.unwrap_or(Watermark { fires_after, not_missed_until });
            entry.watermark = Some(Watermark {
                fires_after: fires_after.max(old.fires_after),
                not_missed_until: not_missed_until.max(old.not_missed_until),
            });
        }
    }

    /// Forgets a routine's watermark: the journal is to be asked again.
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

    /// The clock went back to `now`: what is due after that fires again. The journal knows what has a record.
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

    /// The same, and what is due after `now` and cannot run is missed.
    pub(super) fn wind_back(&mut self, now: DateTime<Utc>) {
        for watermark in self.all.values_mut().filter_map(|entry| entry.watermark.as_mut()) {
            watermark.not_missed_until = watermark.not_missed_until.min(now);
        }
        self.fire_again_after(now);
    }

    /// Puts a definition where it belongs in the queue.
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

    /// The same of those that are delivered as they are written.
    pub(super) fn next_plain_due(&self) -> Option<DateTime<Utc>> {
        self.plain.first()
    }

    /// The same of those that wake the machine.
    pub(super) fn next_waking_due(&self) -> Option<DateTime<Utc>> {
        self.waking.first()
    }

    /// Takes all definitions that are due out of the queue, in order. `plain`: only those that are delivered as they are written.
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

    /// The next `count` to fall due, in order.
    pub(super) fn upcoming(&self, count: usize) -> Vec<(DateTime<Utc>, Arc<Definition>)> {
        let next = self.queue.next(count).into_iter();
        next.filter_map(|(at, id)| Some((at, Arc::clone(self.definition(&id)?)))).collect()
    }

    /// Keeps a definition out of the queue until it is removed from `claiming`.
    pub(super) fn begin_claim(&mut self, id: &DefinitionId) {
        self.claiming.insert(id.clone());
        self.enqueue(id);
    }

    /// The definition's consecutive failures.
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

    /// Whether it is paused after too many consecutive failures.
    pub(super) fn is_paused(&self, id: &DefinitionId) -> bool {
        self.failing.get(id).is_some_and(|failures| failures.paused.is_some())
    }
}
