//! `next`: the coming occurrences over all definitions, in order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::args::NextArgs;
use super::context::Context;
use super::error::CliError;
use super::held::Held;
use super::output::{Cell, FAINT, HINT, Output, STRONG, paint};
use super::{jobs, times, when};
use crate::channel::terminal::plain;
use crate::definition::{Definition, Trigger};
use crate::schedule::cron::Times;

/// Lists at most `args.count` of them.
///
/// # Errors
/// When a time cannot be read, or there is no such definition.
pub fn next(args: &NextArgs, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let (now, zone) = (context.now(), context.zone()?);
    let from = args.from.as_deref().map(|text| when::any(text, now, zone)).transpose()?;
    let until = args.until.as_deref().map(|text| when::any(text, now, zone)).transpose()?;
    let (from, until) = (from.map(|at| at.to_utc()), until.map(|at| at.to_utc()));
    let held = Held::of(&loaded, context);
    let chosen: Vec<Arc<Definition>> = if args.ids.is_empty() {
        held.others(loaded.definitions.values().cloned())
    } else {
        let named: Vec<_> = args.ids.iter().map(|id| jobs::find(id, None, &loaded)).collect::<Result<_, _>>()?;
        held.others(named)
    };
    let coming = coming(&chosen, from, now, until, args.count.into());
    if context.json {
        output.json(&as_json(&coming));
        return Ok(());
    }
    if coming.is_empty() {
        output.note("nothing is coming");
    }
    output.table(&rows(&coming, now));
    for id in &held.paused {
        output.note(format!("paused after failures: {}", plain(id.as_str())));
        output.note(format!("{}: `ollim-bot resume {}`", paint(HINT, "hint"), plain(id.as_str())));
    }
    Ok(())
}

/// Occurrences with the keys that others build on.
pub(super) fn as_json(coming: &[(DateTime<Utc>, Arc<Definition>)]) -> Vec<Value> {
    coming
        .iter()
        .map(|(at, definition)| {
            json!({
                "id": definition.id,
                "kind": definition.kind(),
                "at": times::rfc3339(*at, definition.zone),
                "description": definition.description,
                "background": definition.background().is_some(),
            })
        })
        .collect()
}

/// Occurrences as lines of a table.
pub(super) fn rows(coming: &[(DateTime<Utc>, Arc<Definition>)], now: DateTime<Utc>) -> Vec<Vec<Cell>> {
    coming
        .iter()
        .map(|(at, definition)| {
            vec![
                times::local(*at, now, definition.zone).into(),
                Cell::new(times::relative(*at, now), FAINT),
                definition.kind().to_string().into(),
                Cell::new(definition.id.as_str(), STRONG),
                jobs::summary(definition).into(),
            ]
        })
        .collect()
}

/// The first `count` occurrences from `from` to `until`, both included. Without `from`: what is still to come,
/// reminders that are overdue among it.
pub(super) fn coming(
    definitions: &[Arc<Definition>],
    from: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    until: Option<DateTime<Utc>>,
    count: usize,
) -> Vec<(DateTime<Utc>, Arc<Definition>)> {
    let within = |at: &DateTime<Utc>| from.is_none_or(|from| *at >= from) && until.is_none_or(|until| *at <= until);
    // An occurrence at `from` itself counts: ask for what comes after the moment before it.
    let after = from.map_or(now, |from| from - TimeDelta::milliseconds(1));
    let mut firsts = Firsts::after(after);
    let mut heap = BinaryHeap::new();
    for (index, definition) in definitions.iter().enumerate().filter(|(_, definition)| definition.enabled) {
        if let Some(at) = firsts.of(definition).filter(within) {
            heap.push(Reverse((at, index)));
        }
    }
    let mut expressions: HashMap<&str, Option<Times>> = HashMap::new();
    let mut found = Vec::new();
    while found.len() < count
        && let Some(Reverse((at, index))) = heap.pop()
    {
        let definition = &definitions[index];
        found.push((at, Arc::clone(definition)));
        if let Trigger::Routine { cron, .. } = &definition.trigger
            && let Some(times) = expressions.entry(cron).or_insert_with(|| Times::parse(cron))
            && let Some(next) = times.next(definition.zone, at).filter(within)
        {
            heap.push(Reverse((next, index)));
        }
    }
    found
}

/// When definitions fire first after a moment. Many routines share an expression and a zone, and reading an
/// expression takes longer than all else.
pub(super) struct Firsts<'a> {
    after: DateTime<Utc>,
    known: HashMap<(&'a str, Tz), Option<DateTime<Utc>>>,
}

impl<'a> Firsts<'a> {
    pub(super) fn after(after: DateTime<Utc>) -> Self {
        Self { after, known: HashMap::new() }
    }

    /// `None`: never again, or it is disabled. A reminder's time is its own, past or to come.
    pub(super) fn of(&mut self, definition: &'a Definition) -> Option<DateTime<Utc>> {
        if !definition.enabled {
            return None;
        }
        match &definition.trigger {
            Trigger::Routine { cron, .. } => *self
                .known
                .entry((cron, definition.zone))
                .or_insert_with(|| Times::parse(cron)?.next(definition.zone, self.after)),
            Trigger::Reminder { run_at, .. } | Trigger::Session { run_at } => Some(run_at.to_utc()),
        }
    }
}
