//! Predicts what would happen to occurrences, by the schedule's own rules and the durations and costs of past runs.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::upcoming::FirstOccurrences;
use super::words::conditions;
use super::{App, budget, check, jobs, made, push, runs, service, suppressed, when, why};
use crate::definition::{Definition, DefinitionId, FollowedEnd, Follows, Kind, Loaded, Problem};
use crate::journal::{Caps, JournalReader, RunRecord, RunState, Spending};
use crate::refusal::Refusal;
use crate::schedule::{Assumptions, OpenRun, OpenRunState, SimulatedJob, simulate};

pub use crate::schedule::{PredictedOccurrence, Prediction};

/// Maximum number of occurrences to predict.
const MOST: usize = 2000;

/// Number of past runs whose median is used.
const PAST: u32 = 50;

/// Number of answered questions that are looked through.
const ANSWERED: u32 = 100;

/// Default span.
const DEFAULT_SPAN: TimeDelta = TimeDelta::days(1);

/// A prediction.
#[derive(Debug)]
pub struct Simulated {
    /// Start of the span.
    pub from: DateTime<Utc>,
    /// End of the span.
    pub until: DateTime<Utc>,
    /// The occurrences, in order of time.
    pub occurrences: Vec<PredictedOccurrence>,
    /// Whether there are more.
    pub is_truncated: bool,
    /// Their jobs, with what is assumed for each.
    pub jobs: Vec<RunEstimate>,
    /// Jobs without times, and the event that each waits for.
    pub on_events: Vec<(DefinitionId, String)>,
    /// Further conditions of a job's occurrences, for each job that has some.
    pub conditions: Vec<(DefinitionId, String)>,
    /// What is wrong with gates and commands of these jobs.
    pub faults: Vec<Problem>,
    /// Jobs left out because they are disabled or paused.
    pub left_out: Vec<DefinitionId>,
    /// Number of jobs in the database that were not looked at. They fall due later than those that were.
    pub unread: u64,
    /// Whether everything is paused. Then nothing fires before `resume`.
    pub is_paused: bool,
}

/// Assumptions about the runs of a job.
#[derive(Clone, Debug)]
pub struct RunEstimate {
    /// The job.
    pub definition: Arc<Definition>,
    /// Duration: the median of past runs; zero if there are none.
    pub takes: TimeDelta,
    /// Cost: the median of past runs, else the job's limit.
    pub costs: f64,
    /// Number of tokens: the median of past runs, else a tenth of the limit for a day.
    pub tokens: u64,
    /// Number of past runs that these are based on.
    pub runs: usize,
    /// The rest of the job's own limit for a day.
    own_budget: Option<Spending>,
}

/// Predicts the occurrences of these jobs, or of all, between times as a person writes them.
pub(super) fn simulated(
    ids: &[String],
    from: Option<&str>,
    until: Option<&str>,
    app: &App,
) -> Result<Simulated, Refusal> {
    let mut loaded = app.load_with(ids.iter().map(String::as_str))?;
    let (journal, config) = (runs::open(app)?, app.config()?);
    let unread = if ids.is_empty() { push::add_next(&mut loaded, None, MOST, &journal, app)? } else { 0 };
    let (now, zone) = (app.now(), config.timezone);
    let [from, until] = span(from, until, now, zone)?;
    let paused = suppressed::paused(&loaded, app);
    let held = |definition: &Definition| match () {
        () if !definition.enabled => Some("disabled: its file says `enabled: false`"),
        () if paused.contains(&definition.id) => Some("paused: it has failed too often in a row"),
        () => None,
    };
    let (mut chosen, left_out) = chosen(ids, |one| held(one).is_some(), &loaded)?;
    let claimed = journal.claimed_reminders()?;
    let has_record = |one: &Arc<Definition>| one.kind() == Kind::Reminder && claimed.contains_key(&one.id);
    chosen.retain(|one| !has_record(one));
    let mut asked = chosen.len();
    add_followed(&mut chosen, &loaded);
    let unforeseen = |one: &Arc<Definition>| {
        let is_foreseen = |follows: &Follows| follows.outcome != FollowedEnd::Failed;
        one.waits_for().filter(|_| !one.follows().is_some_and(is_foreseen))
    };
    let on_events = chosen.iter().filter_map(|one| Some((one.id.clone(), unforeseen(one)?))).collect();
    asked -= chosen[..asked].iter().filter(|one| unforeseen(one).is_some()).count();
    chosen.retain(|one| unforeseen(one).is_none());
    let chosen = chosen.iter().map(|one| made::with_approval(one, &loaded.definitions, app));
    let jobs: Vec<RunEstimate> = chosen.map(|one| taken(one, &journal, app)).collect::<Result<_, _>>()?;
    let open = open_runs(&jobs, &journal, now)?;
    let firsts = FirstOccurrences::after(now, app);
    let subject = |job: &RunEstimate| job.subject(held(&job.definition), &open, firsts.last_due(&job.definition));
    let subjects: Vec<SimulatedJob> = jobs.iter().map(subject).collect();
    let conditions = jobs.iter().filter_map(|job| Some((job.definition.id.clone(), conditions(&job.definition)?)));
    let conditions = conditions.collect();
    let faults = check::by_trying(jobs[..asked].iter().map(|job| &job.definition), app);
    let assumed = Assumptions {
        now,
        from,
        until,
        slots: config.max_concurrent_runs,
        budget: budget::spending(app)?,
        zone,
        limit: MOST,
    };
    let (mut occurrences, is_truncated) = simulate(&subjects, &assumed);
    occurrences.retain(|one| one.subject < asked);
    let is_paused = service::paused(service::status(app).ok().flatten().as_ref(), &journal)?.is_some();
    Ok(Simulated {
        from,
        until,
        occurrences,
        is_truncated,
        jobs,
        on_events,
        conditions,
        faults,
        left_out,
        unread,
        is_paused,
    })
}

/// Returns the jobs of a prediction, and those left out of it: if none is named, those that are held.
fn chosen(
    ids: &[String],
    is_held: impl Fn(&Definition) -> bool,
    loaded: &Loaded,
) -> Result<(Vec<Arc<Definition>>, Vec<DefinitionId>), Refusal> {
    if ids.is_empty() {
        let (left_out, chosen): (Vec<_>, Vec<_>) = loaded.definitions.values().cloned().partition(|one| is_held(one));
        return Ok((chosen, left_out.iter().map(|one| one.id.clone()).collect()));
    }
    let named = ids.iter().map(|id| jobs::find_readable(id, None, loaded));
    Ok((named.collect::<Result<_, _>>()?, Vec::new()))
}

/// Returns the runs of these jobs that are not over, the oldest first.
fn open_runs(
    jobs: &[RunEstimate],
    journal: &JournalReader,
    now: DateTime<Utc>,
) -> Result<Vec<(DefinitionId, OpenRun)>, Refusal> {
    let questions = journal.questions(ANSWERED)?;
    let state = |run: &RunRecord| {
        let asks = questions.iter().find(|question| question.start && question.run == run.run);
        let started = run.started.filter(|_| run.outcome == RunState::Running);
        match (run.retry_at.or(started), asks) {
            (Some(at), _) => OpenRunState::Runs(at),
            (None, Some(question)) if question.answer.is_none() => {
                OpenRunState::Asks([question.asked, question.deadline])
            }
            // It is approved, and begins as soon as it can.
            (None, Some(_)) => OpenRunState::Runs(now),
            (None, None) => OpenRunState::Waits,
        }
    };
    let unfinished = journal.unfinished()?;
    let known = unfinished.iter().rev().filter(|run| jobs.iter().any(|job| job.definition.id == run.id));
    Ok(known.map(|run| (run.id.clone(), OpenRun { at: run.scheduled, state: state(run) })).collect())
}

/// Returns the begin and the end of the span between times as a person writes them.
fn span(from: Option<&str>, until: Option<&str>, now: DateTime<Utc>, zone: Tz) -> Result<[DateTime<Utc>; 2], Refusal> {
    let time = |text: Option<&str>, unsaid| {
        text.map(|text| when::any(text, unsaid, now, zone).map(|at| at.to_utc())).transpose()
    };
    // What lies in the past is recorded, and needs no prediction.
    let from = time(from, when::BEGINS)?.unwrap_or(now).max(now);
    let until = time(until, when::ENDS)?.unwrap_or(from + DEFAULT_SPAN);
    if until <= now {
        return Err(Refusal::user("`--until` lies in the past").hint("`ollim-bot runs` shows what has run"));
    }
    if until <= from {
        return Err(Refusal::user("`--until` is not after `--from`").hint("`--from 8:00 --until 'tomorrow 8:00'`"));
    }
    Ok([from, until])
}

/// Adds the jobs that these follow, requested or not, since they decide when these fire.
fn add_followed(chosen: &mut Vec<Arc<Definition>>, loaded: &Loaded) {
    let mut place = 0;
    while let Some(one) = chosen.get(place) {
        let followed = one.follows().and_then(|follows| loaded.definitions.get(&follows.job));
        if let Some(followed) = followed.filter(|followed| chosen.iter().all(|one| one.id != followed.id)) {
            chosen.push(Arc::clone(followed));
        }
        place += 1;
    }
}

impl RunEstimate {
    fn subject(
        &self,
        held: Option<&'static str>,
        open: &[(DefinitionId, OpenRun)],
        last_due: Option<DateTime<Utc>>,
    ) -> SimulatedJob {
        SimulatedJob {
            own_budget: self.own_budget.clone(),
            held,
            last_due,
            open: open.iter().filter(|(id, _)| *id == self.definition.id).map(|(_, open)| *open).collect(),
            definition: Arc::clone(&self.definition),
            takes: self.takes,
            costs: self.costs,
            tokens: self.tokens,
        }
    }
}

/// Returns the durations and costs of a job's past runs.
fn taken(definition: Arc<Definition>, journal: &JournalReader, app: &App) -> Result<RunEstimate, Refusal> {
    let past = journal.completed_lately(&definition.id, PAST)?;
    let takes = median(past.iter().map(|run| run.took.num_milliseconds()).collect()).unwrap_or_default();
    let tokens = past.iter().filter_map(|run| i64::try_from(run.tokens?.counted()).ok());
    let tokens = median(tokens.collect()).and_then(|tokens| u64::try_from(tokens).ok());
    let cents = |usd: f64| (usd * 1e6) as i64;
    let costs = median(past.iter().filter_map(|run| run.cost_usd.map(cents)).collect());
    let config = app.config()?;
    let tokens = match definition.is_without_agent() {
        true => 0,
        false => tokens.or(config.budget.tokens_day.map(|day| day / 10)).unwrap_or_default(),
    };
    let cap = || Caps::of(&definition, config.budget, config.timezone).of_a_run();
    #[allow(clippy::cast_precision_loss, reason = "nothing costs that much")]
    let costs = costs.map(|millionths| millionths as f64 / 1e6);
    let costs = if definition.is_without_agent() { 0.0 } else { costs.or_else(cap).unwrap_or_default() };
    let own_budget = match definition.max_cost_day_usd {
        Some(cap) => journal.spending_of(&definition.id, cap, app.zone()?, app.now())?,
        None => None,
    };
    Ok(RunEstimate { own_budget, takes: TimeDelta::milliseconds(takes), costs, tokens, runs: past.len(), definition })
}

/// Returns the median.
fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

impl RunEstimate {
    /// Returns what the rules of the time zone do to an occurrence at `at`; `None` if nothing.
    #[must_use]
    pub fn clock_words(&self, at: DateTime<Utc>) -> Option<&'static str> {
        why::clock_words(&self.definition, at)
    }
}
