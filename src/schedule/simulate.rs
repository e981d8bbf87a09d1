//! Predicts upcoming occurrences by the schedule's own rules: which are missed ([`plan`]), overlap ([`purposes`]),
//! wait for a slot, or exceed a budget. Pure.
//!
//! The caller supplies the duration and cost of each run. Every run is assumed to complete, so follow-ups of
//! completed runs are predicted, and those of failed runs are not. Nobody is assumed to answer questions: a job
//! that needs an approval asks, and is skipped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::cron::Times;
use super::definitions::{due_at, fires_after, occurrences};
use super::missed::{Plan, Window, plan};
use super::overlap::{Predecessor, purposes};
use crate::definition::{Definition, FollowedEnd, Mode, OnMissed, OnOverlap, Period, Trigger};
use crate::journal::{Purpose, Spending};

/// A definition, and the assumptions about each of its runs.
#[derive(Clone, Debug)]
pub struct SimulatedJob {
    /// The definition.
    pub definition: Arc<Definition>,
    /// Duration of a run.
    pub takes: TimeDelta,
    /// Cost of a run, in US dollars.
    pub costs: f64,
    /// Tokens that a run uses.
    pub tokens: u64,
    /// The spending under its own daily cap.
    pub own_budget: Option<Spending>,
    /// Why none of its occurrences fires; `None`: they fire.
    pub held: Option<&'static str>,
    /// The last time for which it fired; `None` without jitter.
    pub last_due: Option<DateTime<Utc>>,
    /// Its runs that are not over now.
    pub open: Vec<OpenRun>,
}

/// A run that is not over, by its scheduled time.
#[derive(Clone, Copy, Debug)]
pub struct OpenRun {
    /// The scheduled time.
    pub at: DateTime<Utc>,
    /// What it does.
    pub state: OpenRunState,
}

/// The state of a run that is not over.
#[derive(Clone, Copy, Debug)]
pub enum OpenRunState {
    /// It runs, since then. Or an attempt has failed, and the next begins then.
    Runs(DateTime<Utc>),
    /// It waits for its begin.
    Waits,
    /// The person is asked to approve it. Begin and deadline of the question.
    Asks([DateTime<Utc>; 2]),
}

/// The assumptions of a simulation.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// Occurrences due before this time without a record were missed.
    pub now: DateTime<Utc>,
    /// Start of the simulated period.
    pub from: DateTime<Utc>,
    /// End of the simulated period, inclusive.
    pub until: DateTime<Utc>,
    /// Maximum number of concurrent background runs.
    pub slots: usize,
    /// The spending under the budget.
    pub budget: Vec<Spending>,
    /// The zone of its days and months.
    pub zone: Tz,
    /// Maximum number of occurrences.
    pub limit: usize,
}

/// A predicted occurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedOccurrence {
    /// The scheduled time.
    pub at: DateTime<Utc>,
    /// Index of its subject.
    pub subject: usize,
    /// Its predicted fate.
    pub prediction: Prediction,
}

/// The predicted fate of an occurrence.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// It runs.
    Runs {
        /// When it begins.
        begins: DateTime<Utc>,
        /// When it ends, or is ended.
        ends: DateTime<Utc>,
        /// Why it begins late, if it does.
        late: Option<&'static str>,
        /// Whether a newer occurrence ends it.
        ended: bool,
    },
    /// The person is asked to approve it (`approve`). Without an answer it is skipped.
    Asks {
        /// When the question is asked.
        since: DateTime<Utc>,
        /// The deadline.
        until: DateTime<Utc>,
    },
    /// It is skipped. The reason, as in the record.
    Skipped(String),
    /// It is skipped, with all occurrences since that time that share its record.
    SkippedSince(DateTime<Utc>, String),
}

/// Returns the fates of the occurrences, in order of time, and whether there are more than the limit.
#[must_use]
pub fn simulate(subjects: &[SimulatedJob], assumed: &Assumptions) -> (Vec<PredictedOccurrence>, bool) {
    let mut simulation = Simulation {
        subjects,
        assumed,
        budget: assumed.budget.clone(),
        own_budgets: subjects.iter().map(|subject| subject.own_budget.clone()).collect(),
        found: Vec::new(),
        waiting: Vec::new(),
        running: Vec::new(),
        followers: followers(subjects),
        ended: VecDeque::new(),
    };
    let mut due = BinaryHeap::new();
    let after = assumed.from.max(assumed.now + TimeDelta::milliseconds(1)) - TimeDelta::milliseconds(1);
    let begun = simulation.resume();
    for (place, subject) in subjects.iter().enumerate() {
        simulation.missed(place);
        let after = fires_after(&subject.definition, after, subject.last_due);
        due.extend(occurrences(&subject.definition, after).next().map(|at| Reverse((at, place))));
    }
    simulation.launch(assumed.now);
    let mut is_truncated = !simulation.follow(assumed.now);
    let times: Vec<Option<Times>> = subjects.iter().map(|subject| Times::of(&subject.definition)).collect();
    loop {
        let next = due.peek().map(|Reverse((at, _))| *at).filter(|at| *at <= assumed.until && !is_truncated);
        let matters =
            |run: &&SimulatedRun| !simulation.waiting.is_empty() || !simulation.followers[run.subject].is_empty();
        let ends = simulation.running.iter().filter(matters).map(|run| run.ends).min();
        let Some(now) = next.into_iter().chain(ends).min() else { break };
        let over = simulation.running.extract_if(.., |run| run.ends <= now);
        simulation.ended.extend(over.filter(|run| !run.asks).map(|run| run.subject));
        while let Some(Reverse((at, place))) =
            due.peek().copied().filter(|Reverse((at, _))| Some(*at) == next && *at == now && !is_truncated)
        {
            due.pop();
            is_truncated = simulation.found.len() >= assumed.limit;
            if !is_truncated {
                simulation.falls_due(place, at);
                let next = times[place].as_ref().and_then(|times| times.next(subjects[place].definition.zone, at));
                due.extend(next.map(|next| Reverse((next, place))));
            }
        }
        simulation.launch(now);
        is_truncated |= !simulation.follow(now);
    }
    simulation.found.drain(..begun);
    simulation.found.sort_by_key(|one| (one.at, one.subject));
    is_truncated |= simulation.found.len() > assumed.limit;
    simulation.found.truncate(assumed.limit);
    (simulation.found, is_truncated)
}

/// Returns, for each subject, those that follow its completed runs.
fn followers(subjects: &[SimulatedJob]) -> Vec<Vec<usize>> {
    let follows = |follower: &SimulatedJob, followed: &SimulatedJob| {
        let follows = follower.definition.follows();
        follows.is_some_and(|one| one.outcome != FollowedEnd::Failed && one.job == followed.definition.id)
    };
    let of = |followed| (0..subjects.len()).filter(|place| follows(&subjects[*place], followed)).collect();
    subjects.iter().map(of).collect()
}

/// A running run.
#[derive(Clone, Copy)]
struct SimulatedRun {
    /// Index in `found`.
    number: usize,
    subject: usize,
    ends: DateTime<Utc>,
    /// Whether it takes a slot of the background. Otherwise it is a turn of the main session, or takes no slot.
    is_background: bool,
    is_foreground: bool,
    /// Whether it is only a question to the person, which nobody answers.
    asks: bool,
}

/// Returns whether a run takes a slot of the background, and whether it is a turn of the main session.
fn slots(definition: &Definition) -> (bool, bool) {
    let is_foreground = definition.mode == Mode::Foreground;
    let takes = !definition.is_delivered_as_written();
    (takes && !is_foreground, takes && is_foreground)
}

/// Why an occurrence did not begin: a newer one replaced it.
const SUPERSEDED: &str = "a newer occurrence fell due (on_overlap: cancel)";

struct Simulation<'a> {
    subjects: &'a [SimulatedJob],
    assumed: &'a Assumptions,
    budget: Vec<Spending>,
    own_budgets: Vec<Option<Spending>>,
    found: Vec<PredictedOccurrence>,
    /// Indices in `found` in due order, with the reason for the wait of each.
    waiting: Vec<(usize, Option<&'static str>)>,
    running: Vec<SimulatedRun>,
    /// For each subject, those that follow it.
    followers: Vec<Vec<usize>>,
    /// Subjects of completed runs whose followers are not due yet.
    ended: VecDeque<usize>,
}

impl Simulation<'_> {
    /// Adds the runs that are not over. Returns the number of those that are no prediction: they come first among what is found.
    fn resume(&mut self) -> usize {
        let subjects = self.subjects.iter().enumerate();
        let open = subjects.flat_map(|(place, subject)| subject.open.iter().map(move |open| (place, *open)));
        let (begun, others): (Vec<_>, Vec<_>) = open.partition(|(_, open)| matches!(open.state, OpenRunState::Runs(_)));
        for (place, open) in begun.iter().chain(&others) {
            self.go_on(*place, *open);
        }
        // Of a later period they are no part.
        if self.assumed.from > self.assumed.now { self.found.len() } else { begun.len() }
    }

    /// Adds a run that is not over.
    fn go_on(&mut self, place: usize, OpenRun { at, state }: OpenRun) {
        let (number, subject) = (self.found.len(), &self.subjects[place]);
        let (is_background, is_foreground) = slots(&subject.definition);
        let run = SimulatedRun { number, subject: place, ends: at, is_background, is_foreground, asks: false };
        let prediction = match state {
            OpenRunState::Runs(begins) => {
                let now = self.assumed.now;
                // One that has taken longer than the past ones is assumed to take as long again.
                let ends = if begins + subject.takes > now { begins + subject.takes } else { now + (now - begins) };
                self.running.push(SimulatedRun { ends, ..run });
                Prediction::Runs { begins, ends, late: None, ended: false }
            }
            OpenRunState::Asks([since, until]) => {
                self.running.push(SimulatedRun {
                    ends: until,
                    is_background: false,
                    is_foreground: false,
                    asks: true,
                    ..run
                });
                Prediction::Asks { since, until }
            }
            OpenRunState::Waits => {
                self.waiting.push((number, Some("it waits already")));
                Prediction::Skipped(SUPERSEDED.to_owned())
            }
        };
        self.found.push(PredictedOccurrence { at, subject: place, prediction });
    }

    /// Records the occurrences due before now as missed.
    fn missed(&mut self, place: usize) {
        let Assumptions { now, from, until, .. } = *self.assumed;
        let definition = Arc::clone(&self.subjects[place].definition);
        if from >= now {
            return;
        }
        let after = from - TimeDelta::milliseconds(1);
        let (on_overlap, plan) = match (&definition.trigger, Times::of(&definition)) {
            (Trigger::Routine { on_overlap, .. }, Some(times)) => {
                let window = Window { after, eligible_since: now, now: now.min(until) };
                (*on_overlap, plan(&times, definition.zone, definition.on_missed, &window))
            }
            _ => {
                let due = due_at(&definition).filter(|at| *at > after && *at <= now.min(until));
                let missed: Vec<_> = due.into_iter().collect();
                let skips = definition.on_missed == OnMissed::Skip;
                let (skip, run_late) = if skips { (missed, Vec::new()) } else { (Vec::new(), missed) };
                (OnOverlap::Skip, Plan { skip, run_late, ..Plan::default() })
            }
        };
        for (at, purpose) in purposes(plan, definition.on_missed, on_overlap, Vec::new()) {
            self.claim(place, at, purpose);
        }
    }

    fn falls_due(&mut self, place: usize, at: DateTime<Utc>) {
        let definition = Arc::clone(&self.subjects[place].definition);
        let Trigger::Routine { on_overlap, .. } = definition.trigger else {
            return self.claim(place, at, Purpose::Run);
        };
        let plan = Plan { run: vec![at], ..Plan::default() };
        let purpose = purposes(plan, definition.on_missed, on_overlap, self.ahead(place)).pop();
        if on_overlap == OnOverlap::Cancel {
            self.supersede(place, at);
        }
        self.claim(place, at, purpose.map_or(Purpose::Run, |(_, purpose)| purpose));
    }

    /// Returns the active occurrences of a subject.
    fn ahead(&self, place: usize) -> Vec<Predecessor> {
        let zone = self.assumed.zone;
        let name = |number: usize| format!("the one of {}", self.found[number].at.with_timezone(&zone).format("%H:%M"));
        let running = self.running.iter().filter(|run| run.subject == place);
        let running = running.map(|run| Predecessor { waits: run.asks, name: name(run.number) });
        let waiting = self.waiting.iter().filter(|(number, _)| self.found[*number].subject == place);
        running.chain(waiting.map(|(number, _)| Predecessor { waits: true, name: name(*number) })).collect()
    }

    /// Ends older occurrences in favor of a newer one.
    fn supersede(&mut self, place: usize, at: DateTime<Utc>) {
        for run in self.running.iter().filter(|run| run.subject == place) {
            match &mut self.found[run.number].prediction {
                Prediction::Runs { ends, ended, .. } => (*ends, *ended) = (at, true),
                prediction => *prediction = Prediction::Skipped(SUPERSEDED.to_owned()),
            }
        }
        self.running.retain(|run| run.subject != place);
        let found = &self.found;
        self.waiting.retain(|(number, _)| found[*number].subject != place);
    }

    fn claim(&mut self, place: usize, at: DateTime<Utc>, purpose: Purpose) {
        let prediction = match (self.subjects[place].held, purpose) {
            (Some(why), _) => Prediction::Skipped(why.to_owned()),
            (None, Purpose::Skip(why)) => Prediction::Skipped(why),
            (None, Purpose::SkipSince(from, why)) => Prediction::SkippedSince(from, why),
            (None, Purpose::Run | Purpose::RunByHand | Purpose::RunElsewhere) => {
                self.waiting.push((self.found.len(), None));
                // The fate if it never begins.
                Prediction::Skipped(SUPERSEDED.to_owned())
            }
        };
        self.found.push(PredictedOccurrence { at, subject: place, prediction });
    }

    /// Makes follow-ups of completed runs fall due, and their own follow-ups that take no time. Returns whether
    /// that stayed within the limit, since jobs that follow each other in a circle never end.
    fn follow(&mut self, now: DateTime<Utc>) -> bool {
        while let Some(ended) = self.ended.pop_front() {
            for follower in self.followers[ended].clone() {
                if now > self.assumed.until {
                    continue;
                }
                if self.found.len() >= self.assumed.limit {
                    self.ended.clear();
                    return false;
                }
                self.falls_due(follower, now);
            }
            self.launch(now);
        }
        true
    }

    /// Begins waiting occurrences in due order, as far as possible.
    fn launch(&mut self, now: DateTime<Utc>) {
        self.waiting.sort_by_key(|(number, _)| self.found[*number].at);
        for (number, waited) in std::mem::take(&mut self.waiting) {
            match self.blocked_by(number) {
                Some(why) => self.waiting.push((number, Some(why))),
                None => self.begin(number, now, waited),
            }
        }
    }

    /// Returns why an occurrence cannot begin.
    fn blocked_by(&self, number: usize) -> Option<&'static str> {
        let place = self.found[number].subject;
        let definition = &self.subjects[place].definition;
        let is_older = |(other, _): &(usize, Option<&str>)| self.found[*other].subject == place;
        if self.running.iter().any(|run| run.subject == place) || self.waiting.iter().any(is_older) {
            return Some("its earlier run is not over");
        } else if definition.is_delivered_as_written() {
            return None;
        } else if definition.mode == Mode::Foreground {
            let is_busy = self.running.iter().any(|run| run.is_foreground);
            return is_busy.then_some("the main session is busy");
        }
        let going = self.running.iter().filter(|run| run.is_background).count();
        (going >= self.assumed.slots.max(1)).then_some("as many runs are going as may")
    }

    fn begin(&mut self, number: usize, now: DateTime<Utc>, waited: Option<&'static str>) {
        let PredictedOccurrence { at, subject, .. } = self.found[number];
        let SimulatedJob { definition, takes, .. } = &self.subjects[subject];
        if definition.approve {
            let background = definition.background();
            let terms = background.map(|background| background.restrictions.ask_terms()).unwrap_or_default();
            let until = now + TimeDelta::from_std(terms.deadline).unwrap_or_default();
            let going =
                SimulatedRun { number, subject, ends: until, is_background: false, is_foreground: false, asks: true };
            self.running.push(going);
            self.found[number].prediction = Prediction::Asks { since: now, until };
            return;
        }
        let (takes, (is_background, is_foreground)) = (*takes, slots(definition));
        self.found[number].prediction = match self.unpaid(subject, now) {
            Some(why) => Prediction::Skipped(format!("budget: {why}")),
            None => {
                let ends = now + takes;
                if ends > now {
                    self.running.push(SimulatedRun {
                        number,
                        subject,
                        ends,
                        is_background,
                        is_foreground,
                        asks: false,
                    });
                } else {
                    self.ended.push_back(subject);
                }
                let late = waited.or((now > at).then_some("it was missed"));
                Prediction::Runs { begins: now, ends, late, ended: false }
            }
        };
    }

    /// Pays for a run. Returns why not, if a cap is exhausted.
    fn unpaid(&mut self, place: usize, at: DateTime<Utc>) -> Option<String> {
        let subject = &self.subjects[place];
        if subject.definition.is_without_agent() {
            return None;
        }
        let zone = self.assumed.zone;
        let mut all: Vec<&mut Spending> = self.budget.iter_mut().chain(&mut self.own_budgets[place]).collect();
        for spending in all.iter_mut().filter(|spending| at >= spending.until) {
            let period = if spending.name == "month" { Period::Month } else { Period::Day };
            (spending.spent, spending.taken, spending.until) = (0.0, 0.0, period.around(at, zone).1);
        }
        if let Some(spent) = all.iter().find(|spending| spending.is_spent()) {
            return Some(spent.words(zone));
        }
        #[allow(clippy::cast_precision_loss, reason = "nobody counts that far")]
        let tokens = subject.tokens as f64;
        let in_tokens = |spending: &Spending| spending.name == "tokens_day";
        // If less than its own cap is left, the run gets the rest as its cap.
        let left = all.iter().filter(|spending| !in_tokens(spending)).map(|spending| spending.left());
        let costs = left.fold(subject.costs, f64::min);
        for spending in all {
            spending.spent += if in_tokens(spending) { tokens } else { costs };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::{Cadence, DefinitionId, Follows, Recurrence};

    use super::super::tests::support::{at_time, march, reminder, routine, with_cron};
    use super::*;

    fn subject(definition: Definition, minutes: i64) -> SimulatedJob {
        SimulatedJob {
            definition: Arc::new(definition),
            takes: TimeDelta::minutes(minutes),
            costs: 1.0,
            tokens: 1000,
            own_budget: None,
            held: None,
            last_due: None,
            open: Vec::new(),
        }
    }

    fn assumed(from: &str, until: &str) -> Assumptions {
        let now = march("01T12:00:00");
        let (from, until) = (march(from), march(until));
        Assumptions { now, from, until, slots: 4, budget: Vec::new(), zone: Tz::UTC, limit: 1000 }
    }

    /// Formats each as `mail 13:00 13:05-13:20 (late)`.
    fn lines(subjects: &[SimulatedJob], assumed: &Assumptions) -> Vec<String> {
        let time = |at: &DateTime<Utc>| at.format("%H:%M").to_string();
        let line = |one: &PredictedOccurrence| {
            let prediction = match &one.prediction {
                Prediction::Runs { begins, ends, late, ended } => {
                    let late = late.map(|late| format!(" ({late})")).unwrap_or_default();
                    format!("{}-{}{late}{}", time(begins), time(ends), if *ended { " ended" } else { "" })
                }
                Prediction::Asks { until, .. } => format!("asks until {}", time(until)),
                Prediction::Skipped(why) => why.clone(),
                Prediction::SkippedSince(from, why) => format!("since {}: {why}", time(from)),
            };
            format!("{} {} {prediction}", subjects[one.subject].definition.id, time(&one.at))
        };
        simulate(subjects, assumed).0.iter().map(line).collect()
    }

    #[test]
    fn a_run_that_takes_longer_than_its_step_overlaps_by_the_routines_rule() {
        let every = |overlap| subject(with_cron(routine("mail"), "0 * * * *", overlap), 90);
        let found = |overlap| lines(&[every(overlap)], &assumed("01T12:30:00", "01T15:30:00"));
        assert_eq!(
            found(OnOverlap::Skip),
            [
                "mail 13:00 13:00-14:30",
                "mail 14:00 overlap: the one of 13:00 was not over (on_overlap: skip)",
                "mail 15:00 15:00-16:30",
            ]
        );
        assert_eq!(
            found(OnOverlap::Queue),
            [
                "mail 13:00 13:00-14:30",
                "mail 14:00 14:30-16:00 (its earlier run is not over)",
                "mail 15:00 16:00-17:30 (its earlier run is not over)",
            ]
        );
        assert_eq!(
            found(OnOverlap::Cancel),
            ["mail 13:00 13:00-14:00 ended", "mail 14:00 14:00-15:00 ended", "mail 15:00 15:00-16:30"]
        );
    }

    #[test]
    fn runs_that_are_not_over_take_their_slots_and_waiting_ones_begin_as_soon_as_they_can() {
        let open = |at: &str, state| vec![OpenRun { at: march(at), state }];
        let hog = |state| SimulatedJob { open: open("01T11:50:00", state), ..subject(routine("hog"), 30) };
        let mail = |state| SimulatedJob { open: open("01T11:55:00", state), ..subject(routine("mail"), 5) };
        let found =
            |jobs: &[SimulatedJob], from| lines(jobs, &Assumptions { slots: 1, ..assumed(from, "01T12:40:00") });
        let noon = "01T12:00:00";
        let running = OpenRunState::Runs(march("01T11:51:00"));
        let mail_waits = mail(OpenRunState::Waits);
        assert_eq!(
            found(&[mail_waits.clone(), hog(running)], noon),
            ["mail 11:55 12:21-12:26 (as many runs are going as may)"]
        );
        assert_eq!(found(std::slice::from_ref(&mail_waits), noon), ["mail 11:55 12:00-12:05 (it waits already)"]);
        assert!(found(&[mail_waits], "01T12:30:00").is_empty());
        let question = OpenRunState::Asks([march("01T11:58:00"), march("01T12:08:00")]);
        assert_eq!(found(&[mail(question)], noon), ["mail 11:55 asks until 12:08"]);
        // The next of its own is skipped meanwhile.
        let hourly = SimulatedJob { open: open("01T12:00:00", OpenRunState::Waits), ..hog(running) };
        let at_one = Assumptions { slots: 1, ..assumed("01T12:30:00", "01T13:30:00") };
        let over = "hog 13:00 overlap: the one of 12:00 was not over (on_overlap: skip)";
        let long = SimulatedJob { takes: TimeDelta::minutes(90), ..hourly };
        assert_eq!(lines(&[long], &at_one), [over]);
        // One that waits behind another of its own begins after it. A run that is over its time is assumed to take as long again.
        let both = SimulatedJob {
            open: [open("01T11:50:00", running), open("01T11:59:00", OpenRunState::Waits)].concat(),
            ..mail(running)
        };
        assert_eq!(found(&[both], noon), ["mail 11:59 12:09-12:14 (its earlier run is not over)"]);
    }

    #[test]
    fn slots_are_taken_in_order_and_what_is_only_told_waits_for_none() {
        let hog = subject(with_cron(routine("hog"), "0 13 * * *", OnOverlap::Skip), 30);
        let mail = subject(with_cron(routine("mail"), "10 13 * * *", OnOverlap::Skip), 5);
        let client = Some(crate::definition::JobClient::Notify);
        let tea = subject(Definition { client, ..at_time(reminder("tea"), march("01T13:15:00")) }, 0);
        let one = Assumptions { slots: 1, ..assumed("01T12:30:00", "01T15:30:00") };
        assert_eq!(
            lines(&[hog, mail, tea], &one),
            [
                "hog 13:00 13:00-13:30",
                "mail 13:10 13:30-13:35 (as many runs are going as may)",
                "tea 13:15 13:15-13:15",
            ]
        );
    }

    #[test]
    fn what_fell_due_before_now_is_missed_by_the_routines_rule() {
        let of = |on_missed| subject(Definition { on_missed, ..routine("mail") }, 1);
        let found = |on_missed| lines(&[of(on_missed)], &assumed("01T09:30:00", "01T12:30:00"));
        let newer = "missed: nothing could run at its time, and of those that were missed only the newest counts (on_missed: latest)";
        assert_eq!(
            found(OnMissed::Latest),
            [format!("mail 10:00 {newer}"), format!("mail 11:00 {newer}"), "mail 12:00 12:00-12:01".into()]
        );
        assert_eq!(
            found(OnMissed::All),
            [
                "mail 10:00 12:00-12:01 (it was missed)",
                "mail 11:00 12:01-12:02 (its earlier run is not over)",
                "mail 12:00 overlap: a missed one was not over (on_overlap: skip)",
            ]
        );
        let late = at_time(reminder("tea"), march("01T11:00:00"));
        assert_eq!(
            lines(&[subject(late, 1)], &assumed("01T09:30:00", "01T12:30:00")),
            ["tea 11:00 12:00-12:01 (it was missed)"]
        );
    }

    #[test]
    fn what_is_to_be_approved_asks_and_keeps_the_next_from_asking() {
        let mail = |on_overlap| {
            let mail = with_cron(routine("mail"), "*/5 * * * *", on_overlap);
            subject(Definition { approve: true, ..mail }, 1)
        };
        let until = assumed("01T12:58:00", "01T13:10:00");
        let overlap = "overlap: the one of 13:00 was not over (on_overlap: skip)";
        assert_eq!(
            lines(&[mail(OnOverlap::Skip), after("sort", "mail", FollowedEnd::Any, 1)], &until),
            [
                "mail 13:00 asks until 13:10".to_owned(),
                format!("mail 13:05 {overlap}"),
                "mail 13:10 asks until 13:20".into()
            ]
        );
        let newer = "a newer occurrence fell due (on_overlap: cancel)";
        assert_eq!(
            lines(&[mail(OnOverlap::Cancel)], &until),
            [format!("mail 13:00 {newer}"), format!("mail 13:05 {newer}"), "mail 13:10 asks until 13:20".into()]
        );
    }

    fn after(id: &str, job: &str, outcome: FollowedEnd, minutes: i64) -> SimulatedJob {
        let cadence = Cadence::After(Follows { job: DefinitionId::new(job), outcome });
        let recurs = Recurrence { cadence, jitter: None };
        let trigger = Trigger::Routine { recurs, on_overlap: OnOverlap::Skip };
        subject(Definition { trigger, ..routine(id) }, minutes)
    }

    #[test]
    fn what_follows_a_job_falls_due_when_that_has_completed() {
        let mail = || subject(with_cron(routine("mail"), "0 13 * * *", OnOverlap::Skip), 20);
        let until_four = assumed("01T12:30:00", "01T16:00:00");
        let found = lines(
            &[
                after("report", "sort", FollowedEnd::Any, 0),
                after("sort", "mail", FollowedEnd::Completed, 5),
                mail(),
                after("alarm", "mail", FollowedEnd::Failed, 5),
                after("last", "report", FollowedEnd::Completed, 5),
            ],
            &until_four,
        );
        assert_eq!(
            found,
            ["mail 13:00 13:00-13:20", "sort 13:20 13:20-13:25", "report 13:25 13:25-13:25", "last 13:25 13:25-13:30"]
        );
        // Nothing after the end of the period.
        let until_ten_past = assumed("01T12:30:00", "01T13:10:00");
        let sort = || after("sort", "mail", FollowedEnd::Completed, 5);
        assert_eq!(lines(&[mail(), sort()], &until_ten_past), ["mail 13:00 13:00-13:20"]);
        // A run that is cancelled or exceeds the budget has not completed.
        let hourly = |overlap| subject(with_cron(routine("mail"), "0 * * * *", overlap), 90);
        assert_eq!(
            lines(&[hourly(OnOverlap::Cancel), sort()], &assumed("01T12:30:00", "01T14:30:00")),
            ["mail 13:00 13:00-14:00 ended", "mail 14:00 14:00-15:30"]
        );
        let spent =
            Assumptions { budget: vec![Spending::of("day", 1.0, 1.0, march("02T00:00:00"))], ..until_four.clone() };
        assert_eq!(lines(&[mail(), sort()], &spent).len(), 1);
        // Jobs in a circle, which `check` refuses, end at the limit.
        let circle = [
            mail(),
            after("a", "b", FollowedEnd::Any, 0),
            after("b", "a", FollowedEnd::Any, 0),
            after("b", "mail", FollowedEnd::Any, 0),
        ];
        let (found, is_truncated) = simulate(&circle, &until_four);
        assert_eq!((found.len(), is_truncated), (1000, true));
    }

    #[test]
    fn a_budget_lasts_until_its_period_ends() {
        let spending = Spending::of("day", 2.0, 0.0, march("02T00:00:00"));
        let by_night = Assumptions { budget: vec![spending], ..assumed("01T21:30:00", "02T00:30:00") };
        let why = "budget: $2.00 of $2.00 of the day's budget are spent or taken, until Mon 2 Mar 00:00 UTC";
        assert_eq!(
            lines(&[subject(with_cron(routine("mail"), "*/40 * * * *", OnOverlap::Skip), 1)], &by_night),
            [
                "mail 21:40 21:40-21:41".to_owned(),
                "mail 22:00 22:00-22:01".into(),
                format!("mail 22:40 {why}"),
                format!("mail 23:00 {why}"),
                format!("mail 23:40 {why}"),
                "mail 00:00 00:00-00:01".into(),
            ]
        );
    }

    #[test]
    fn tokens_of_a_day_are_spent_too() {
        let spending = Spending::of("tokens_day", 1500.0, 0.0, march("02T00:00:00"));
        let by_night = Assumptions { budget: vec![spending], ..assumed("01T22:30:00", "02T00:30:00") };
        let mail = subject(with_cron(routine("mail"), "*/30 * * * *", OnOverlap::Skip), 1);
        let found = lines(&[mail], &by_night);
        assert_eq!(found[..2], ["mail 22:30 22:30-22:31", "mail 23:00 23:00-23:01"]);
        assert!(found[2].starts_with("mail 23:30 budget: 2,000 of 1,500 tokens"), "{found:?}");
        assert_eq!(found[3], "mail 00:00 00:00-00:01");
    }

    #[test]
    fn a_jobs_own_cap_keeps_no_other_from_running() {
        let own_budget = Some(Spending::of("job_day", 1.5, 0.0, march("02T00:00:00")));
        let mail = SimulatedJob { own_budget, ..subject(with_cron(routine("mail"), "0 * * * *", OnOverlap::Skip), 1) };
        let web = subject(with_cron(routine("web"), "30 * * * *", OnOverlap::Skip), 1);
        let why =
            "budget: $1.50 of $1.50 of this job's `max_cost_day_usd` are spent or taken, until Mon 2 Mar 00:00 UTC";
        // The second run gets the rest as its cap.
        assert_eq!(
            lines(&[mail, web], &assumed("01T12:45:00", "01T15:30:00")),
            [
                "mail 13:00 13:00-13:01".to_owned(),
                "web 13:30 13:30-13:31".into(),
                "mail 14:00 14:00-14:01".into(),
                "web 14:30 14:30-14:31".into(),
                format!("mail 15:00 {why}"),
                "web 15:30 15:30-15:31".into(),
            ]
        );
    }

    #[test]
    fn a_job_that_is_off_does_not_run_and_the_limit_cuts() {
        let off = SimulatedJob { held: Some("disabled"), ..subject(routine("mail"), 1) };
        let few = Assumptions { limit: 2, ..assumed("01T12:30:00", "09T12:30:00") };
        let (found, cut) = simulate(std::slice::from_ref(&off), &few);
        assert!(cut && found.len() == 2);
        assert!(found.iter().all(|one| one.prediction == Prediction::Skipped("disabled".into())));
    }
}
