//! Follows events: past ones from the journal, then new ones from the running service.

use std::collections::VecDeque;

use super::{App, Caller, Events, jobs, runs};
use crate::definition::DefinitionId;
use crate::journal::{Event, EventFilter, EventKind, JournalReader, RunFilter, RunId, RunRecord};
use crate::refusal::Refusal;

/// A stream of events.
pub struct EventFeed {
    /// The watched run; `None` for everything.
    pub run: Option<RunId>,
    /// The events; for a run, the past ones first. They end with the run, or with the service.
    pub events: Events,
}

impl App {
    /// Watches a run: the one with this id, or the latest one of the definition with this id. `None` watches everything from now on.
    ///
    /// # Errors
    /// If there is no such run, or the service is needed and cannot be reached.
    pub fn watch(&self, target: Option<&str>) -> Result<EventFeed, Refusal> {
        self.require_person()?;
        let journal = runs::open(self)?;
        let Some(target) = target else {
            let events =
                self.service.follow(None, EventFilter::default())?.ok_or_else(|| super::service::not_running(self))?;
            return Ok(EventFeed { run: None, events });
        };
        let run = self.run_of(target, &journal)?.run;
        let filter = EventFilter { run: Some(run.clone()), ..EventFilter::default() };
        Ok(EventFeed { events: until_ended(self.since(0, filter)?), run: Some(run) })
    }

    /// Follows messages to the person from now on.
    ///
    /// # Errors
    /// If the service is not running, or cannot be reached.
    pub fn watch_messages(&self) -> Result<Events, Refusal> {
        self.require_person()?;
        self.service
            .follow(None, EventFilter { messages: true, ..EventFilter::default() })?
            .ok_or_else(|| super::service::not_running(self))
    }

    /// Returns the recorded events of a run, in order; none if the caller is a run, since messages of others are private.
    pub(super) fn events_of(&self, run: &RunId, journal: &JournalReader) -> Result<Vec<Event>, Refusal> {
        match self.caller {
            Caller::Person => recorded(journal, 0, &EventFilter { run: Some(run.clone()), ..EventFilter::default() }),
            Caller::Run(_) => Ok(Vec::new()),
        }
    }

    fn run_of(&self, target: &str, journal: &JournalReader) -> Result<RunRecord, Refusal> {
        if let Some(run) = journal.run(&RunId::new(target))? {
            return Ok(run);
        }
        let latest = |id: DefinitionId| {
            let filter = RunFilter { id: Some(id), limit: Some(1), ..RunFilter::default() };
            journal.runs(&filter).map(|mut runs| runs.pop())
        };
        if let Some(run) = latest(DefinitionId::new(target))? {
            return Ok(run);
        }
        let id = jobs::find_readable(target, None, &self.load()?)?.id.clone();
        let hint = format!("`ollim-bot fire {id} --wait` runs it now and shows it");
        latest(id.clone())?.ok_or_else(|| Refusal::user(format!("{id} has not run yet")).hint(hint))
    }

    /// Returns the events after `after`: recorded ones, then those of the running service, then those it recorded last.
    fn since(&self, after: i64, filter: EventFilter) -> Result<Events, Refusal> {
        let mut past: VecDeque<Event> = recorded(&runs::open(self)?, after, &filter)?.into();
        let mut newest = past.back().map_or(after, |event| event.number);
        let mut live = self.service.follow(Some(newest), filter.clone())?;
        let journal = self.journal()?;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(event) = past.pop_front() {
                    return Some(Ok(event));
                }
                match live.as_mut()?.next() {
                    Some(event) => {
                        newest = event.as_ref().map_or(newest, |event| event.number);
                        return Some(event);
                    }
                    // The service has ended. Its last events are in the journal.
                    None => live = None,
                }
                let last = JournalReader::open(&journal).map_err(Refusal::from);
                match last.and_then(|journal| recorded(&journal, newest, &filter)) {
                    Ok(events) => past = events.into(),
                    Err(refusal) => return Some(Err(refusal)),
                }
            }
        })))
    }
}

/// Reads all events after one. The journal returns them in batches.
fn recorded(journal: &JournalReader, mut after: i64, filter: &EventFilter) -> Result<Vec<Event>, Refusal> {
    let mut all = Vec::new();
    loop {
        let batch = journal.events(after, filter)?;
        let Some(last) = batch.last() else { return Ok(all) };
        after = last.number;
        all.extend(batch);
    }
}

/// Limits the events of a run to those up to its end, without waiting for more.
fn until_ended(mut events: Events) -> Events {
    let mut ended = false;
    Box::new(std::iter::from_fn(move || {
        let event = if ended { None } else { events.next() };
        ended = matches!(event, None | Some(Err(_) | Ok(Event { kind: EventKind::RunEnded { .. }, .. })));
        event
    }))
}
