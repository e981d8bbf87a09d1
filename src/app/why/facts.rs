//! The facts from which an answer is derived, read once.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::situations::{SITUATIONS, SituationKind, Statement};
use super::{Evidence, Sentence, Source, Span, past, words};
use crate::app::overdue::{Overdue, overdue};
use crate::app::service::{self, ServiceStatus};
use crate::app::suppressed::Suppressed;
use crate::app::upcoming::FirstOccurrences;
use crate::app::{App, Starter, budget, check, gate, made, times, watched};
use crate::definition::{self, Definition, DefinitionId, Kind, Loaded, Problem};
use crate::journal::{
    Attempt, ConsecutiveFailures, DelayCause, Denial, Event, EventKind, HostRecord, JournalReader, Message,
    ObservedTrigger, OccurrenceHistory, Question, RunState, Spending, ended_unseen,
};
use crate::refusal::Refusal;
use crate::schedule::occurrences;

/// Maximum number of reasons of refused calls in the evidence.
const MAX_REFUSED: usize = 5;

/// The facts about a job.
pub(super) struct Facts {
    pub(super) id: DefinitionId,
    pub(super) now: DateTime<Utc>,
    /// The zone of times in sentences: the viewer's.
    said_in: Tz,
    /// The job's own zone.
    pub(super) zone: Tz,
    /// The definition in its file; `None` if there is no file, or it has an error.
    pub(super) definition: Option<Arc<Definition>>,
    /// The current text of the file.
    text: Option<String>,
    /// The problem of its file.
    pub(super) problem: Option<Problem>,
    /// Whether the reminder's file is kept among the failed.
    pub(super) kept_as_failed: bool,
    /// The next reminder of its chain, if there is one.
    pub(super) follow_up: Option<Arc<Definition>>,
    /// Why it sees no changes of the folder that it watches.
    pub(super) blindness: Option<String>,
    /// Why it never fires: it follows a job that there is not.
    pub(super) never_fires: Option<String>,
    /// What is wrong with its gate.
    pub(super) faulty_gate: Option<Problem>,
    /// The last check of its chain that began, if it is another one.
    pub(super) later_check: Option<DefinitionId>,
    /// The file of its last occurrence, if it has no file now and nothing is recorded of the time in question.
    known_file: Option<PathBuf>,
    /// The number of further occurrences in the time range in question.
    pub(super) further: usize,
    /// The occurrence in question.
    pub(super) story: Option<OccurrenceHistory>,
    /// The refused calls of its attempts.
    refused: Vec<Denial>,
    /// The definition as it was when the occurrence fired.
    pub(super) fired: Option<Definition>,
    /// The recorded occurrences before and after the time range in question.
    pub(super) before: Option<DateTime<Utc>>,
    pub(super) after: Option<DateTime<Utc>>,
    /// The time range in question; `None` for the current state.
    pub(super) asked: Option<Span>,
    /// The causes that kept the occurrence from beginning, in order.
    pub(super) delays: Vec<(DelayCause, Option<DateTime<Utc>>, Option<String>)>,
    /// The channel by which the person requested it.
    pub(super) channel: Option<String>,
    delay_events: Vec<Event>,
    loaded: Loaded,
    pub(super) question: Option<Question>,
    /// A message of its run that is being held back.
    pub(super) held: Option<(Message, DateTime<Utc>)>,
    /// Recent events of its file and the clock, newest first.
    pub(super) lately: Vec<Event>,
    pub(super) seen: Option<ObservedTrigger>,
    pub(super) failing: Option<ConsecutiveFailures>,
    /// Whether it is paused after failures, and not edited since.
    pub(super) is_paused: bool,
    pub(super) overdue: Option<Overdue>,
    /// The status of the service; `None` if it is not running, or does not answer.
    pub(super) service: Option<ServiceStatus>,
    pub(super) service_is_silent: bool,
    /// Since when the person has paused everything.
    pub(super) all_paused: Option<DateTime<Utc>>,
    pub(super) max_concurrent_runs: Option<usize>,
    /// The exhausted limits that apply to it, until their periods end.
    spent: Vec<Spending>,
    /// Time of its next occurrence.
    pub(super) next: Option<DateTime<Utc>>,
    /// The hosts that share the journal, and the name of this one.
    pub(super) hosts: Vec<HostRecord>,
    pub(super) host: Option<String>,
    /// What starts the service if it is off.
    pub(super) starter: Starter,
}

/// The reason why jobs have no agent.
pub(super) struct NoAgentReason {
    /// Since when.
    pub(super) since: DateTime<Utc>,
    /// Why the agent is missing, and what to do; `None` if it is there, but not logged in.
    pub(super) missing: Option<String>,
}

/// Returns the status of the service, whether it gives none though it runs, and what starts it if it is off.
fn state_of_service(app: &App) -> (Option<ServiceStatus>, bool, Starter) {
    match service::status(app) {
        Ok(Some(status)) => (Some(status), false, Starter::Person),
        Ok(None) => (None, false, app.starter()),
        Err(_) => (None, true, Starter::Person),
    }
}

/// Returns the limits of a definition's runs that are exhausted until their periods end.
fn spent_for_good(definition: &Definition, app: &App) -> Vec<Spending> {
    let mut spent = budget::applicable_budget(definition, app).map(|budget| budget.spendings).unwrap_or_default();
    spent.retain(Spending::is_spent_for_good);
    spent
}

impl Facts {
    pub(super) fn of(id: DefinitionId, loaded: Loaded, journal: &JournalReader, app: &App) -> Result<Self, Refusal> {
        let now = app.now();
        let definition = loaded.definitions.get(&id).map(|one| made::with_approval(one, &loaded.definitions, app));
        let problem = loaded.problems.iter().find(|problem| is_fault_of(problem, &id));
        let problem = problem.filter(|_| definition.is_none()).cloned();
        let suppressed = Suppressed::known_to(journal, &loaded, app);
        let coming = suppressed.others(definition.clone());
        let overdue = overdue(&coming, journal, now)?.into_iter().next();
        let next = coming.first().filter(|definition| definition.enabled);
        let next = next.and_then(|one| occurrences(one, FirstOccurrences::after(now, app).fires_after(one)).next());
        let (service, service_is_silent, starter) = state_of_service(app);
        let all_paused = service::paused(service.as_ref(), journal)?.and_then(|since| parsed(&since));
        let failing = journal.consecutive_failures()?.into_iter().find(|failing| failing.id == id);
        let config = app.config().ok();
        let spent = definition.as_deref().map(|definition| spent_for_good(definition, app)).unwrap_or_default();
        let nobody = definition.as_ref().and_then(|one| check::nobody_to_follow(one, &loaded, app));
        let text = definition.as_ref().map(|definition| app.text_of(&definition.file));
        let zone = definition.as_ref().map_or_else(|| app.zone_of_records(), |definition| definition.zone);
        Ok(Self {
            starter,
            blindness: definition.as_ref().and_then(|one| watched::blindness(one, journal, app)),
            never_fires: nobody.map(|(why, _)| why),
            faulty_gate: None,
            lately: journal.recent_events(&id)?,
            seen: journal.seen(&id)?,
            is_paused: suppressed.paused.contains(&id),
            text: text.and_then(Result::ok).flatten(),
            max_concurrent_runs: config.map(|config| config.max_concurrent_runs),
            known_file: None,
            further: 0,
            story: None,
            refused: Vec::new(),
            fired: None,
            before: None,
            after: None,
            asked: None,
            delays: Vec::new(),
            channel: None,
            delay_events: Vec::new(),
            question: None,
            held: None,
            now,
            said_in: app.zone_of_viewer(),
            zone,
            definition,
            problem,
            kept_as_failed: is_kept_as_failed(&id, app),
            follow_up: None,
            later_check: None,
            loaded,
            failing,
            overdue,
            service,
            service_is_silent,
            all_paused,
            spent,
            next,
            hosts: journal.hosts()?,
            host: app.host_name().ok(),
            id,
        })
    }

    /// Reads the facts about the occurrence in question.
    pub(super) fn look_into_story(&mut self, journal: &JournalReader, app: &App) -> Result<(), Refusal> {
        if let Some((from, _)) = self.asked {
            [self.before, self.after] = journal.recorded_around(&self.id, from)?;
        }
        let is_open = self.story.as_ref().is_some_and(|story| story.outcome.is_none());
        if let (Some(definition), None, false) = (&self.definition, self.asked, is_open)
            && definition.gate.is_some()
        {
            // To try a gate takes a sandbox. What is open has passed its own.
            self.faulty_gate = gate::problem(definition, app);
        }
        if self.story.is_none() && self.definition.is_none() {
            self.known_file = journal.last_history(&self.id)?.map(|last| last.file);
        }
        let Some(story) = &self.story else { return Ok(()) };
        if let (Some(text), Ok(defaults)) = (&story.text, app.defaults())
            && story.occurrence.kind != Kind::Session
        {
            self.fired = definition::parse(story.occurrence.kind, &story.file, text.as_bytes(), &defaults).definition;
            self.follow_up = self.fired.as_ref().and_then(|fired| follow_up(fired, &self.loaded));
            let chain = self.fired.as_ref().filter(|fired| fired.chain().is_some());
            let last = chain.map(|fired| journal.last_of_lineage(&fired.lineage())).transpose()?.flatten();
            self.later_check = last.filter(|last| *last != self.id);
        }
        for attempt in &story.attempts {
            let record = journal.run(&attempt.run)?;
            self.refused.extend(record.into_iter().flat_map(|record| record.denials));
            self.delay_events.extend(journal.delays_of(&attempt.run)?);
        }
        for event in &self.delay_events {
            match &event.kind {
                EventKind::Delayed { by, until, what } => self.delays.push((*by, *until, what.clone())),
                EventKind::Requested { channel } => self.channel = Some(channel.clone()),
                _ => {}
            }
        }
        let is_its = |run| story.attempts.iter().any(|attempt| attempt.run == run);
        self.question = journal.questions(0)?.into_iter().find(|question| is_its(question.run.clone()));
        if let Some(last) = story.attempts.last() {
            let now = self.now;
            let held = |message: Message| {
                let until = message.deliveries.iter().filter_map(|delivery| delivery.held(now)).max();
                let until = until.filter(|_| message.delivered.is_none())?;
                Some((message, until))
            };
            self.held = journal.messages_of(&last.run, 20)?.into_iter().find_map(held);
        }
        Ok(())
    }

    /// Returns the sentence of the first situation of this kind that applies.
    pub(super) fn explain(&self, about: SituationKind) -> Option<(Sentence, Vec<Evidence>)> {
        SITUATIONS.iter().filter(|situation| situation.about == about).find_map(|situation| {
            let Statement { sentence, evidence } = (situation.tell)(self)?;
            Some((Sentence { situation: situation.name.to_owned(), sentence }, evidence))
        })
    }

    /// Returns the zone of times in sentences.
    pub(super) fn viewers_zone(&self) -> Tz {
        self.said_in
    }

    /// Returns the first scheduled time in a range.
    pub(super) fn scheduled_in(&self, (from, to): Span) -> Option<DateTime<Utc>> {
        let definition = self.definition.as_ref()?;
        occurrences(definition, from - TimeDelta::milliseconds(1)).next().filter(|at| *at < to)
    }

    /// Whether the folder of its file is missing, or cannot be read.
    pub(super) fn missing_folder(&self) -> Option<&Problem> {
        let folder = self.story.as_ref().map(|story| story.file.as_path()).or(self.known_file.as_deref())?.parent()?;
        self.loaded.problems.iter().find(|problem| problem.is_error() && problem.file == folder)
    }

    /// Returns the sentence for a job without records, if the caller asked for no time.
    pub(super) fn nothing_recorded(&self) -> (Sentence, Vec<Evidence>) {
        let sentence = format!("{} has not fired yet.", self.id);
        (Sentence { situation: "never_fired".to_owned(), sentence }, Vec::new())
    }

    /// Returns `at 08:00`, `yesterday at 08:00`, `at 08:00 (16:00 in Asia/Tokyo)`.
    pub(super) fn moment(&self, at: DateTime<Utc>) -> String {
        words::moment(at, self.now, self.said_in) + &times::in_zone(at, self.zone, self.said_in)
    }

    /// Returns `08:00`.
    pub(super) fn bare(&self, at: DateTime<Utc>) -> String {
        words::bare(at, self.now, self.said_in) + &times::in_zone(at, self.zone, self.said_in)
    }

    /// Whether the file has changed since the occurrence fired.
    pub(super) fn was_edited(&self) -> bool {
        let fired = self.story.as_ref().and_then(|story| story.text.as_ref());
        matches!((fired, &self.text), (Some(fired), Some(now)) if fired != now)
    }

    /// Returns why the service cannot write the journal.
    pub(super) fn journal_fault(&self) -> Option<&str> {
        self.service.as_ref()?.journal_fault.as_deref()
    }

    pub(super) fn is_off(&self) -> bool {
        self.service.is_none() && !self.service_is_silent
    }

    /// Says that the service is off, and what starts it.
    pub(super) fn is_off_words(&self) -> String {
        let starts = match self.starter {
            Starter::Person => "`ollim-bot run` starts it",
            Starter::Unit => "`ollim-bot service start` starts it",
            Starter::Systemd => "systemd is about to start it",
        };
        format!("the service is not running; {starts}")
    }

    /// Returns why it has no agent, if it needs one.
    pub(super) fn lacks_agent(&self) -> Option<NoAgentReason> {
        let service = self.service.as_ref()?;
        if self.definition.as_ref().is_some_and(|definition| definition.is_without_agent()) {
            return None;
        }
        if let Some(since) = service.waiting_for_login.as_deref().and_then(parsed) {
            return Some(NoAgentReason { since, missing: None });
        }
        let since = service.waiting_for_agent.as_deref().and_then(parsed)?;
        let missing = service.client.missing.clone().unwrap_or_else(|| "`ollim-bot doctor` says why".to_owned());
        Some(NoAgentReason { since, missing: Some(missing) })
    }

    /// Returns the limit that keeps it from starting at a future time.
    pub(super) fn spent_at(&self, at: DateTime<Utc>) -> Option<&Spending> {
        // Of several, the record names the first.
        self.spent.iter().rev().filter(|spent| at < spent.until).max_by_key(|spent| spent.until)
    }

    /// Returns the evidence that every answer shows.
    pub(super) fn common_evidence(&self) -> Vec<Evidence> {
        let mut evidence = self.of_journal();
        if let Some(definition) = &self.definition {
            let when = match &definition.trigger {
                definition::Trigger::Routine { recurs, .. } => format!("`{recurs}`, {}", definition.zone),
                definition::Trigger::Webhook(_) => format!("POST /hook/{}", definition.id),
                other => other.run_at().map(|at| format!("due {}", self.bare(at))).unwrap_or_default(),
            };
            evidence.push(seen(Source::File, format!("{}: {when}", definition.file.display())));
        }
        evidence.push(match (&self.service, self.service_is_silent) {
            (Some(service), _) => Evidence {
                from: Source::Service,
                at: parsed(&service.since),
                what: parsed(&service.since)
                    .map_or("it runs".to_owned(), |since| format!("it runs since {}", self.bare(since))),
            },
            (None, true) => seen(Source::Service, "it runs, and does not answer".to_owned()),
            (None, false) => seen(Source::Service, "it is not running".to_owned()),
        });
        evidence
    }

    fn of_journal(&self) -> Vec<Evidence> {
        let Some(story) = &self.story else { return Vec::new() };
        let at = story.occurrence.at;
        let due = if story.by_hand { "fired by a person" } else { "due" };
        let what = format!("{due} {}, recorded {}", self.bare(at), self.bare(story.claimed));
        let mut evidence = vec![Evidence { from: Source::Journal, at: Some(at), what }];
        evidence.extend(self.delay_events.iter().filter_map(|event| {
            let EventKind::Delayed { by, until, what } = &event.kind else { return None };
            let until = past::until_words(self, *by, *until);
            let what = what.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
            Some(Evidence { from: Source::Journal, at: Some(event.at), what: format!("{by}{what}{until}") })
        }));
        evidence.extend(story.attempts.iter().map(|attempt| self.of_attempt(attempt)));
        evidence.extend(self.of_refused(story));
        if self.further > 0 {
            let what = match self.further {
                1 => "1 other run of it was due or fired then".to_owned(),
                more => format!("{more} others of its runs were due or fired then"),
            };
            evidence.push(seen(Source::Journal, format!("{what}: `ollim-bot runs {}` shows all", self.id)));
        }
        if self.was_edited() {
            let run = story.attempts.last().map(|attempt| attempt.run.to_string()).unwrap_or_default();
            let what = format!("changed since: it fired from the text that `ollim-bot runs show {run}` shows");
            evidence.push(seen(Source::File, what));
        }
        let ended = story.attempts.last().and_then(|attempt| attempt.ended).unwrap_or(self.now);
        evidence.extend(self.lately.iter().filter(|event| event.at >= at && event.at <= ended).filter_map(|event| {
            let EventKind::ClockSet { seconds, slept } = event.kind else { return None };
            let span = words::span(TimeDelta::seconds(seconds));
            let what = match (slept, seconds < 0) {
                (true, _) => format!("the machine slept for {span}"),
                (false, true) => format!("it was set back by {span}"),
                (false, false) => format!("it was set forward by {span}"),
            };
            Some(Evidence { from: Source::Clock, at: Some(event.at), what })
        }));
        evidence
    }

    /// Returns the refused calls, each reason once.
    fn of_refused(&self, story: &OccurrenceHistory) -> Vec<Evidence> {
        let mut reasons: Vec<String> = Vec::new();
        for denial in &self.refused {
            let tool = denial.tool.rsplit("__").next().unwrap_or_default();
            // The words of the client.
            let reason = match denial.reason.contains("No such tool available") {
                true => format!("{tool} was called, a tool that the run does not have"),
                false => format!("{tool} was refused: {}", words::reason(&denial.reason)),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let left = reasons.len().saturating_sub(MAX_REFUSED);
        reasons.truncate(MAX_REFUSED);
        if let Some(last) = story.attempts.last().filter(|_| left > 0) {
            reasons.push(format!("{left} more refused calls: `ollim-bot runs show {}` shows them", last.run));
        }
        reasons.into_iter().map(|what| seen(Source::Journal, what)).collect()
    }

    fn of_attempt(&self, attempt: &Attempt) -> Evidence {
        let Attempt { run, host, number, state, started, ended, class, error, .. } = attempt;
        let known = ended.filter(|_| !ended_unseen(error.as_deref()));
        let took = started.zip(known).map(|(from, to)| format!(" after {}", words::span(to - from)));
        // The error says more than its class.
        let class = class.as_ref().filter(|_| error.is_none()).map(|class| format!(" ({class})"));
        let error = error.as_ref().map(|error| format!(": {}", words::reason(error)));
        let state = match state {
            RunState::TimedOut => "timed out".to_owned(),
            state => state.to_string(),
        };
        let parts = [took, class, error].map(Option::unwrap_or_default).concat();
        let which = if *number > 1 { format!(", attempt {number}") } else { String::new() };
        let on = host.as_ref().map(|host| format!(", on {host}")).unwrap_or_default();
        let what = format!("run {run}{which}{on}: {state}{parts}");
        Evidence { from: Source::Journal, at: ended.or(*started), what }
    }
}

/// Creates evidence without a time.
pub(super) fn seen(from: Source, what: String) -> Evidence {
    Evidence { from, at: None, what }
}

fn parsed(text: &str) -> Option<DateTime<Utc>> {
    text.parse().ok()
}

/// Returns the next reminder of the chain of `fired`, if there is one.
fn follow_up(fired: &Definition, loaded: &Loaded) -> Option<Arc<Definition>> {
    let chain = fired.chain()?;
    let is_next = |other: &&Arc<Definition>| {
        let link = other.chain().filter(|link| link.parent == chain.parent);
        link.is_some_and(|link| link.depth > chain.depth)
    };
    loaded.definitions.values().find(is_next).cloned()
}

/// Returns the file of an occurrence.
pub(super) fn file_of(story: &OccurrenceHistory) -> PathBuf {
    story.file.clone()
}

/// Whether a problem is the reason why a definition is not in force.
fn is_fault_of(problem: &Problem, id: &DefinitionId) -> bool {
    let named = || problem.file.file_stem().is_some_and(|stem| stem == id.as_str());
    problem.is_error() && (problem.id.as_ref() == Some(id) || named())
}

/// Whether its file is among those of failed reminders.
fn is_kept_as_failed(id: &DefinitionId, app: &App) -> bool {
    let failed = app.defaults().and_then(|defaults| Ok(definition::failed_reminders(&app.home, &defaults)?));
    let is_it = |definition: &Definition| definition.id == *id;
    failed.unwrap_or_default().iter().any(|failed| failed.parsed.definition.as_ref().is_some_and(is_it))
}
