//! Runs and messages in the journal.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{App, Caller, jobs, transcript};
use crate::definition::DefinitionId;
use crate::journal::{Event, JournalReader, Message, RefusedCalls, RunFilter, RunId, RunRecord};
use crate::refusal::Refusal;

/// Returns runs, newest first.
pub(super) fn list(filter: &RunFilter, app: &App) -> Result<Vec<RunRecord>, Refusal> {
    let journal = open(app)?;
    let id = filter.id.as_ref().map(|id| id_of(id, &journal, app)).transpose()?;
    let runs = journal.runs(&RunFilter { id, ..filter.clone() })?;
    Ok(runs.into_iter().map(|run| app.redacted(run)).collect())
}

impl App {
    /// Returns a run as the caller may see it. A run sees only the times and the outcomes of other runs. Their prompts,
    /// refused calls and errors are private.
    pub(super) fn redacted(&self, run: RunRecord) -> RunRecord {
        match &self.caller {
            Caller::Run(caller) if caller.run != run.run => RunRecord {
                denials: Vec::new(),
                error: None,
                api_fault: None,
                transcript: None,
                definition: None,
                occasion: None,
                ..run
            },
            Caller::Run(_) | Caller::Person => run,
        }
    }
}

/// Resolves a name to an id that the journal knows, or to that of a job's file. A job that never ran is no error, but
/// an unknown name is.
pub(super) fn id_of(name: &DefinitionId, journal: &JournalReader, app: &App) -> Result<DefinitionId, Refusal> {
    if journal.has_record_of(name)? {
        return Ok(name.clone());
    }
    let loaded = app.with_named(app.load_without_settings()?, [name.as_str()]);
    if let Ok(found) = jobs::find_readable(name.as_str(), None, &loaded) {
        return Ok(found.id.clone());
    }
    let recorded = journal.ids()?;
    let of_files = loaded.definitions.keys().chain(loaded.problems.iter().filter_map(|problem| problem.id.as_ref()));
    let ids: BTreeSet<&DefinitionId> = of_files.chain(&recorded).collect();
    if ids.contains(name) {
        return Ok(name.clone());
    }
    let error = Refusal::user(format!("there is no job `{name}`, and none has run under that id"));
    Err(match jobs::nearest(name.as_str(), ids) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`ollim-bot runs` shows whatever ran, `ollim-bot next` what comes"),
    })
}

/// One run and its events.
#[derive(Debug)]
pub struct RunDetails {
    /// The run.
    pub run: RunRecord,
    /// Its events, in order; empty if the caller is a run.
    pub events: Vec<Event>,
    /// Whether the full texts were requested.
    pub full: bool,
    /// Results of its calls by the client's call id, if requested and the transcript exists.
    pub results: HashMap<String, String>,
    /// What was delivered to its webhook, if the person asked for the full texts and it is kept: until the occurrence has ended.
    pub delivered: Option<String>,
}

/// Returns one run.
pub(super) fn show(run: &str, full: bool, app: &App) -> Result<RunDetails, Refusal> {
    let journal = open(app)?;
    let run = named(run, &journal)?;
    let events = app.events_of(&run.run, &journal)?;
    let run = app.redacted(run);
    let results = run.transcript.as_deref().filter(|_| full && !events.is_empty()).map(transcript::results);
    let delivered = match app.caller {
        Caller::Person if full => journal.delivered(&run.run)?,
        _ => None,
    };
    Ok(RunDetails { results: results.unwrap_or_default(), full, events, run, delivered })
}

/// Maximum number of rows of refused calls.
const REFUSED: u32 = 500;

/// Returns the calls that were refused in the last `since`, counted by job and rule.
pub(super) fn refused(from: Option<DateTime<Utc>>, app: &App) -> Result<Vec<RefusedCalls>, Refusal> {
    Ok(open(app)?.refused_calls(from, REFUSED)?)
}

/// Returns messages, newest last. A run gets those that it has sent itself.
pub(super) fn inbox(count: u32, app: &App) -> Result<Vec<Message>, Refusal> {
    let journal = open(app)?;
    let mut messages = match &app.caller {
        Caller::Person => journal.messages(Some(count))?,
        Caller::Run(caller) => journal.messages_of(&caller.run, count)?,
    };
    messages.reverse();
    Ok(messages)
}

/// Returns the run whose id is `run`, or begins with it.
pub(super) fn named(run: &str, journal: &JournalReader) -> Result<RunRecord, Refusal> {
    if let Some(found) = journal.run(&RunId::new(run))? {
        return Ok(found);
    }
    let refusal = Refusal::user(format!("there is no run `{run}`"));
    if run.len() < 4 {
        return Err(refusal.hint("the beginning of a run's id does, if it has four letters or more"));
    }
    Err(match journal.has_record_of(&DefinitionId::new(run))? {
        true => refusal.hint(format!("`{run}` is a job: `ollim-bot runs {run}` lists its runs")),
        false => refusal.hint("`ollim-bot runs` lists them"),
    })
}

/// Opens the journal for reading.
pub(super) fn open(app: &App) -> Result<JournalReader, Refusal> {
    app.require_home()?;
    app.read_journal()
}
