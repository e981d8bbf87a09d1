//! What would become of the occurrences of a time: the schedule's own rules, with what past runs took and cost.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::words::conditions;
use super::{App, budget, jobs, runs, service, suppressed, when, why};
use crate::definition::{Definition, DefinitionId, FollowedEnd, Follows, Kind, Loaded};
use crate::journal::{Caps, JournalReader, Spending};
use crate::refusal::Refusal;
use crate::schedule::{Assumed, Subject, simulate};

pub use crate::schedule::{Fate, Foreseen};

/// So many occurrences are looked at at most.
const MOST: usize = 2000;

/// So many past runs of a job are taken the median of.
const PAST: u32 = 50;

/// How far is looked where nobody says.
const USUAL: TimeDelta = TimeDelta::days(1);

/// What would become of occurrences.
#[derive(Debug)]
pub struct Simulated {
    /// From when.
    pub from: DateTime<Utc>,
    /// Until when.
    pub until: DateTime<Utc>,
    /// In order of time.
    pub occurrences: Vec<Foreseen>,
    /// Whether there are more.
    pub is_cut: bool,
    /// Whose they are, and what was taken for each.
    pub jobs: Vec<Taken>,
    /// Jobs without times, and what each waits for.
    pub on_events: Vec<(DefinitionId, String)>,
    /// What occurrences of a job need besides their time, for each that needs something.
    pub conditions: Vec<(DefinitionId, String)>,
    /// Jobs that are left out since they are disabled or paused.
    pub left_out: Vec<DefinitionId>,
    /// Everything is paused: nothing of this happens before `resume`.
    pub is_paused: bool,
}

/// What is taken for each run of a job.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The job.
    pub definition: Arc<Definition>,
    /// How long it takes: the median of past runs; nothing where there are none.
    pub takes: TimeDelta,
    /// What it costs: the median of past runs, else its cap.
    pub costs: f64,
    /// How many tokens it takes: the median of past runs; nothing where there are none.
    pub tokens: u64,
    /// How many past runs are known.
    pub runs: usize,
    /// What is left of its own cap of a day.
    own_budget: Option<Spending>,
}

/// Of these jobs, or of all, in the times that are named as a person writes them.
pub(super) fn simulated(
    ids: &[String],
    from: Option<&str>,
    until: Option<&str>,
    app: &App,
) -> Result<Simulated, Refusal> {
    let loaded = app.load()?;
    let (journal, config) = (runs::open(app)?, app.config()?);
    let (now, zone) = (app.now(), config.timezone);
    let time = |text: Option<&str>, unsaid| {
        text.map(|text| when::any(text, unsaid, now, zone).map(|at| at.to_utc())).transpose()
    };
    let from = time(from, when::BEGINS)?.unwrap_or(now);
    let until = time(until, when::ENDS)?.unwrap_or(from + USUAL);
    if until <= from {
        return Err(Refusal::user("`--until` is not after `--from`").hint("`--from 8:00 --until 'tomorrow 8:00'`"));
    }
    let paused = suppressed::paused(&loaded, app);
    let held = |definition: &Definition| match () {
        () if !definition.enabled => Some("disabled: its file says `enabled: false`"),
        () if paused.contains(&definition.id) => Some("paused: it has failed too often in a row"),
        () => None,
    };
    let mut chosen = match ids {
        [] => loaded.definitions.values().cloned().collect(),
        ids => ids.iter().map(|id| jobs::find_to_read(id, None, &loaded)).collect::<Result<Vec<_>, _>>()?,
    };
    let mut left_out = Vec::new();
    if ids.is_empty() {
        left_out.extend(chosen.iter().filter(|one| held(one).is_some()).map(|one| one.id.clone()));
        chosen.retain(|one| held(one).is_none());
    }
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
    let jobs: Vec<Taken> = chosen.into_iter().map(|one| taken(one, &journal, app)).collect::<Result<_, _>>()?;
    let subjects: Vec<Subject> = jobs.iter().map(|job| job.subject(held(&job.definition))).collect();
    let conditions = jobs.iter().filter_map(|job| Some((job.definition.id.clone(), conditions(&job.definition)?)));
    let conditions = conditions.collect();
    let assumed = Assumed {
        now,
        from,
        until,
        slots: config.max_concurrent_runs,
        budget: budget::spending(app)?,
        zone,
        limit: MOST,
    };
    let (mut occurrences, is_cut) = simulate(&subjects, &assumed);
    occurrences.retain(|one| one.subject < asked);
    let of_service = service::status(app).ok().flatten().and_then(|service| service.paused);
    let is_paused = of_service.or(journal.setting("paused")?).is_some();
    Ok(Simulated { from, until, occurrences, is_cut, jobs, on_events, conditions, left_out, is_paused })
}

/// Adds what they follow, which decides when they fire, whether it was asked for or not.
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

impl Taken {
    fn subject(&self, held: Option<&'static str>) -> Subject {
        Subject {
            own_budget: self.own_budget.clone(),
            held,
            definition: Arc::clone(&self.definition),
            takes: self.takes,
            costs: self.costs,
            tokens: self.tokens,
        }
    }
}

/// What past runs of a job took and cost.
fn taken(definition: Arc<Definition>, journal: &JournalReader, app: &App) -> Result<Taken, Refusal> {
    let past = journal.completed_lately(&definition.id, PAST)?;
    let takes = median(past.iter().map(|run| run.took.num_milliseconds()).collect()).unwrap_or_default();
    let tokens = past.iter().filter_map(|run| i64::try_from(run.tokens?.counted()).ok());
    let tokens = median(tokens.collect()).and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or_default();
    let cents = |usd: f64| (usd * 1e6) as i64;
    let costs = median(past.iter().filter_map(|run| run.cost_usd.map(cents)).collect());
    let config = app.config()?;
    let cap = || Caps::of(&definition, config.budget, config.timezone).of_a_run();
    #[allow(clippy::cast_precision_loss, reason = "nothing costs that much")]
    let costs = costs.map(|millionths| millionths as f64 / 1e6);
    let costs = if definition.is_without_agent() { 0.0 } else { costs.or_else(cap).unwrap_or_default() };
    let own_budget = match definition.max_cost_day_usd {
        Some(cap) => journal.spending_of(&definition.id, cap, app.zone()?, app.now())?,
        None => None,
    };
    Ok(Taken { own_budget, takes: TimeDelta::milliseconds(takes), costs, tokens, runs: past.len(), definition })
}

/// The one in the middle.
fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

impl Taken {
    /// What the zone's rules do to an occurrence at `at`; `None`: nothing.
    #[must_use]
    pub fn clock_words(&self, at: DateTime<Utc>) -> Option<&'static str> {
        why::clock_words(&self.definition, at)
    }
}
