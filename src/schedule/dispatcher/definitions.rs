//! Following the definitions: taking them in, letting them go, and knowing when each falls due next.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::command::Loaded;
use super::super::cron::Times;
use super::super::open::{Open, Stage};
use super::{Dispatcher, Event};
use crate::definition::{Definition, DefinitionId, Trigger};
use crate::journal::{JournalError, Sighting, Streak};

/// How many definitions the journal is asked about at once.
const SEEN_AT_ONCE: usize = 5000;

/// How many expressions are kept parsed while many are asked for their next time: 6 kB each. Many definitions share few;
/// where each has its own, reading one costs little.
const KEPT_PARSED: usize = 128;

/// A definition as the dispatcher holds it.
pub(super) struct Entry {
    pub(super) loaded: Loaded,
    /// Where it stands in the queue.
    pub(super) due: Option<DateTime<Utc>>,
    /// A routine's: all up to then are accounted for. `None`: the journal has not said yet.
    pub(super) accounted: Option<DateTime<Utc>>,
    /// The same as the journal has it. Later than that while the clock is behind: what falls due until then runs on
    /// time if it has no record, but was not missed.
    pub(super) settled: DateTime<Utc>,
    /// A reminder's: the `run_at` that this life has claimed.
    pub(super) handled: Option<DateTime<Utc>>,
}

/// What the journal answered to a sighting.
pub(super) struct Seen {
    /// What was seen.
    pub(super) definition: Arc<Definition>,
    accounted: DateTime<Utc>,
    /// When it falls due next after that, if it is a routine.
    next: Option<DateTime<Utc>>,
}

/// The same for many, in their order. A hundred thousand expressions take a while: not on the dispatcher's time.
fn answered(definitions: Vec<Arc<Definition>>, accounted: Vec<DateTime<Utc>>) -> Vec<Seen> {
    let mut parsed: HashMap<String, Option<Times>> = HashMap::new();
    let mut next = |definition: &Definition, accounted| {
        let Trigger::Routine { cron, .. } = &definition.trigger else { return None };
        if parsed.len() >= KEPT_PARSED {
            parsed.clear();
        }
        let times = parsed.entry(cron.clone()).or_insert_with(|| Times::parse(cron));
        times.as_ref()?.next(definition.zone, accounted)
    };
    let seen = definitions.into_iter().zip(accounted);
    seen.map(|(definition, accounted)| Seen { next: next(&definition, accounted), definition, accounted }).collect()
}

/// When a definition fires after `after`, whether it is enabled or not: for a reminder its instant, once.
pub fn occurrences(definition: &Definition, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let times = match &definition.trigger {
        Trigger::Routine { cron, .. } => Times::parse(cron),
        Trigger::Reminder { .. } | Trigger::Session { .. } => None,
    };
    let zone = definition.zone;
    let next = move |last: &DateTime<Utc>| times.as_ref()?.next(zone, *last);
    let first = match due_at(definition) {
        Some(due) => Some(due).filter(|due| *due > after),
        None => next(&after),
    };
    std::iter::successors(first, next)
}

/// When a reminder or a session falls due: its instant, to the millisecond, in which the journal counts; never before it.
pub(super) fn due_at(definition: &Definition) -> Option<DateTime<Utc>> {
    let run_at = definition.trigger.run_at()?;
    let whole = DateTime::from_timestamp_millis(run_at.timestamp_millis())?;
    Some(if whole < run_at { whole + TimeDelta::milliseconds(1) } else { whole })
}

/// What a definition's backlog depends on; `None`: it has none (an enabled reminder fires whenever it was due).
fn sighting(definition: &Definition) -> Option<Sighting> {
    let trigger = match &definition.trigger {
        Trigger::Routine { cron, .. } => format!("{cron}\n{}\n{}", definition.zone, definition.enabled),
        Trigger::Reminder { .. } if !definition.enabled => Sighting::DISABLED_REMINDER.to_owned(),
        Trigger::Reminder { .. } | Trigger::Session { .. } => return None,
    };
    Some(Sighting { id: definition.id.clone(), trigger })
}

impl Dispatcher {
    pub(super) fn replace(&mut self, all: Vec<Loaded>) {
        if !self.definitions.is_empty() {
            let present: HashSet<&DefinitionId> = all.iter().map(|loaded| &loaded.definition.id).collect();
            let gone: Vec<_> = self.definitions.keys().filter(|id| !present.contains(id)).cloned().collect();
            for id in gone {
                self.let_go(&id);
            }
        }
        self.definitions.reserve(all.len().saturating_sub(self.definitions.len()));
        let mut sightings = Vec::new();
        for loaded in all {
            self.take_definition(loaded, &mut sightings);
        }
        self.see(sightings);
        let journal = self.journal.clone();
        self.tasks.spawn(async move { Event::Known(journal.known().await) });
        if !self.recovering {
            self.recovering = true;
            self.recover();
        }
    }

    pub(super) fn upsert(&mut self, loaded: Loaded) {
        let mut sightings = Vec::new();
        self.take_definition(loaded, &mut sightings);
        self.see(sightings);
    }

    fn take_definition(&mut self, loaded: Loaded, sightings: &mut Vec<(Arc<Definition>, Sighting)>) {
        let id = loaded.definition.id.clone();
        let old = self.definitions.remove(&id);
        if let Some(due) = old.as_ref().and_then(|old| old.due) {
            self.queue.remove(due, &id);
        }
        let new = sighting(&loaded.definition);
        let same = old.as_ref().is_some_and(|old| sighting(&old.loaded.definition) == new);
        let edited = old.as_ref().is_some_and(|old| old.loaded.text != loaded.text);
        let was_disabled = match &old {
            Some(old) => !old.loaded.definition.enabled,
            None => self.were_disabled.contains(&id),
        };
        let kept = old.as_ref().filter(|_| same);
        let entry = Entry {
            due: None,
            accounted: kept.and_then(|old| old.accounted),
            settled: kept.map_or(DateTime::<Utc>::MIN_UTC, |old| old.settled),
            // One that was renamed while its file was being dealt with is looked at again, or it would be left over.
            handled: old
                .as_ref()
                .filter(|old| old.loaded.definition.file == loaded.definition.file)
                .and_then(|old| old.handled),
            loaded,
        };
        let unknown = entry.accounted.is_none();
        let enabled_reminder = new.is_none();
        // A routine waits for the journal's word; what is unchanged has it already.
        if let Some(sighting) = new.filter(|_| unknown) {
            sightings.push((Arc::clone(&entry.loaded.definition), sighting));
        }
        self.definitions.insert(id.clone(), entry);
        if edited && self.streaks.get(&id).is_some_and(|streak| streak.paused.is_some()) {
            self.end_pause(&id);
        }
        if self.recovered {
            if enabled_reminder && was_disabled {
                self.enabled_again(&id);
            }
            self.arm(&id);
            self.file_is_back(&id);
        }
    }

    /// A definition's file is gone or not valid.
    pub(super) fn remove(&mut self, id: &DefinitionId) {
        if let Some(file) = self.let_go(id) {
            let (files, id) = (Arc::clone(&self.files), id.clone());
            // One that is there but not valid keeps its account: it is the same definition when it is mended.
            self.tasks.spawn_blocking(
                move || {
                    if files.is_there(&file) { Event::Noted(Ok(())) } else { Event::Gone(id) }
                },
            );
        }
    }

    /// What the journal knows and is not there has gone while nobody looked.
    pub(super) fn on_known(&mut self, known: Result<Vec<DefinitionId>, JournalError>) -> Result<(), JournalError> {
        let mut gone = known?;
        gone.retain(|id| !self.definitions.contains_key(id));
        if !gone.is_empty() {
            let journal = self.journal.clone();
            self.note(async move { journal.gone(gone).await });
        }
        Ok(())
    }

    pub(super) fn on_gone(&mut self, id: DefinitionId) {
        // It may be back already.
        if !self.definitions.contains_key(&id) {
            let journal = self.journal.clone();
            self.note(async move { journal.gone(vec![id]).await });
        }
    }

    pub(super) fn let_go(&mut self, id: &DefinitionId) -> Option<std::path::PathBuf> {
        let entry = self.definitions.remove(id)?;
        if let Some(due) = entry.due {
            self.queue.remove(due, id);
        }
        Some(entry.loaded.definition.file.clone())
    }

    /// Asks the journal since when each is accounted for; in parts, so that a hundred thousand need little at once.
    fn see(&mut self, mut sightings: Vec<(Arc<Definition>, Sighting)>) {
        while !sightings.is_empty() {
            let rest = sightings.split_off(sightings.len().min(SEEN_AT_ONCE));
            let (definitions, part): (Vec<_>, Vec<_>) = std::mem::replace(&mut sightings, rest).into_iter().unzip();
            let (journal, latest) = (self.journal.clone(), self.reached.latest());
            self.seeing += 1;
            self.tasks.spawn(async move {
                fail_point!(BeforeSight);
                let answer = journal.see(part.into(), latest).await;
                fail_point!(Sighted);
                let accounted = match answer {
                    Ok(accounted) => accounted,
                    Err(error) => return Event::Seen(Err(error)),
                };
                match tokio::task::spawn_blocking(move || answered(definitions, accounted)).await {
                    Ok(seen) => Event::Seen(Ok(seen)),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                }
            });
        }
    }

    pub(super) fn on_seen(&mut self, seen: Result<Vec<Seen>, JournalError>) -> Result<(), JournalError> {
        self.seeing -= 1;
        let now = self.clock.now();
        let (latest, far_behind) = (self.reached.latest().max(now), self.reached.is_far_behind(now));
        let seen = seen?;
        for seen in &seen {
            let Some(entry) = self.definitions.get_mut(&seen.definition.id) else { continue };
            // Another edit may have overtaken the answer; that one gets its own.
            let current = &entry.loaded.definition;
            if Arc::ptr_eq(current, &seen.definition) || sighting(current) == sighting(&seen.definition) {
                let on_time = if far_behind { seen.accounted.min(now) } else { seen.accounted };
                entry.accounted = Some(on_time.max(entry.accounted.unwrap_or(DateTime::<Utc>::MIN_UTC)));
                entry.settled = entry.settled.max(seen.accounted.min(latest));
                if self.recovered {
                    self.arm_with(&seen.definition.id, Some(seen));
                }
            }
        }
        if !self.recovered {
            self.seen_early.extend(seen);
        }
        self.take_up_found();
        Ok(())
    }

    /// Puts a definition where it belongs in the queue.
    pub(super) fn arm(&mut self, id: &DefinitionId) {
        self.arm_with(id, None);
    }

    /// The same, with a next time that was worked out: it holds if nothing has changed since.
    pub(super) fn arm_with(&mut self, id: &DefinitionId, seen: Option<&Seen>) {
        let claiming = self.claiming.contains(id);
        let paused = self.streaks.get(id).is_some_and(|streak| streak.paused.is_some());
        let Some(entry) = self.definitions.get_mut(id) else { return };
        let definition = &entry.loaded.definition;
        let due = match &definition.trigger {
            _ if !definition.enabled || claiming || paused => None,
            Trigger::Routine { cron, .. } => entry.accounted.and_then(|accounted| match seen {
                Some(seen) if seen.accounted == accounted && Arc::ptr_eq(&seen.definition, definition) => seen.next,
                _ => Times::parse(cron)?.next(definition.zone, accounted),
            }),
            Trigger::Reminder { .. } | Trigger::Session { .. } => {
                due_at(definition).filter(|due| entry.handled != Some(*due))
            }
        };
        if entry.due != due {
            if let Some(old) = entry.due {
                self.queue.remove(old, id);
            }
            entry.due = due;
            if let Some(due) = due {
                self.queue.insert(due, id.clone());
            }
        }
    }

    /// A routine's pause after too many failures is over: it was resumed, or edited. It has no backlog.
    pub(super) fn end_pause(&mut self, id: &DefinitionId) {
        let ended = self.pause_is_over(id);
        self.note(ended);
    }

    /// The same; what is returned is still to be done.
    pub(super) fn pause_is_over(
        &mut self,
        id: &DefinitionId,
    ) -> impl Future<Output = Result<(), JournalError>> + Send + use<> {
        let now = self.clock.now();
        let latest = self.reached.latest().max(now);
        let streak = Streak::none(id.clone());
        self.keep_streak(&streak);
        if let Some(entry) = self.definitions.get_mut(id)
            && let Some(accounted) = entry.accounted.as_mut()
        {
            *accounted = now.max(*accounted);
            entry.settled = latest.max(entry.settled);
        }
        self.arm(id);
        let (journal, again) = (self.journal.clone(), id.clone());
        async move {
            // First: of one that is cut off in between, nobody would know that it has no backlog.
            journal.account_from(again, latest).await?;
            journal.set_streak(streak).await
        }
    }

    /// Whether a file is that of a valid definition, whichever.
    pub(super) fn is_somebodys(&self, file: &Path) -> bool {
        // As text: part by part takes longer, and there may be many.
        let file = file.as_os_str();
        self.definitions.values().any(|entry| entry.loaded.definition.file.as_os_str() == file)
    }

    /// What waits for this file takes another look.
    pub(super) fn look_again(&mut self, file: &Path) {
        self.unpark(|open| open.file == file);
    }

    fn unpark(&mut self, concerns: impl Fn(&Open) -> bool) {
        let parked: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| matches!(open.stage, Stage::Missing { parked: true }) && concerns(open))
            .map(|(number, _)| number)
            .collect();
        for number in parked {
            self.open.set_stage(number, Stage::Waiting);
        }
    }

    /// A definition is (again) there: what waited for its file goes on.
    fn file_is_back(&mut self, id: &DefinitionId) {
        let parked = |open: &Open| matches!(open.stage, Stage::Missing { parked: true });
        if self.open.of(id).any(|(_, open)| parked(open)) {
            self.unpark(|open| open.occurrence.id == *id);
        }
        if let Some(recorded) = self.uncleaned.remove(id) {
            self.clean_up(recorded);
        }
    }
}
