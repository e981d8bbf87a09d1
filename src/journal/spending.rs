//! Budgets: before a run begins, it reserves its cap from what is left. One commit reads the rest and reserves.
//!
//! A run counts at the cost that its client reported. Until then, or without a report, it counts at its reserved cap. So
//! neither a crash nor parallel runs exceed the caps. A run belongs to the period of its launch. Tokens count in the same
//! way, but clients take no cap in tokens: a run without a report counts at the usual use of its job.

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::outbox::{NewMessage, Subject, insert_message};
use super::rows::{ms, time};
use super::{Journal, JournalError, JournalReader, RunId, settings};
use crate::agent::Tokens;
use crate::definition::{Budget, Definition, DefinitionId, Period, grouped, money};

/// Amounts below this count as zero, since they pay for no answer of a model. Of a small cap, amounts below its tenth.
const LEAST: f64 = 0.005;

/// The share of a cap at which the person is warned.
const WARN_SHARE: f64 = 0.8;

/// The caps for a run, from its file and the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// `max_cost_usd`.
    pub run: Option<f64>,
    /// `max_cost_day_usd`.
    pub job_day: Option<f64>,
    /// The setting `budget`.
    pub budget: Budget,
    /// The zone of the days and months.
    pub zone: Tz,
}

impl Caps {
    /// Returns the caps of a definition's runs, under the setting `budget` and its zone.
    #[must_use]
    pub fn of(definition: &Definition, budget: Budget, zone: Tz) -> Self {
        Self { run: definition.max_cost_usd, job_day: definition.max_cost_day_usd, budget, zone }
    }

    /// Returns the cap of a single run; `None` if there is none. Never a whole day's cap, which would block all other runs.
    #[must_use]
    pub fn of_a_run(&self) -> Option<f64> {
        self.run.or_else(|| self.budget.of_a_run()).or_else(|| self.job_day.map(|day| day / 10.0))
    }

    /// Returns the cap of a run that begins with these spendings.
    fn cap_beside(&self, all: &[Spending], is_made: bool) -> Option<RunCap> {
        let own = self.of_a_run()?;
        let least = all.iter().filter(|spending| spending.name != TOKENS).min_by(|a, b| a.left().total_cmp(&b.left()));
        let usd = least.map_or(own, |least| own.min(least.left()));
        let from = match least.filter(|least| least.left() < own * 0.999) {
            Some(least) if least.name == "job_day" && is_made => {
                "what was left for today of `max_cost_day_usd` of the job that made it; `ollim-bot budget` shows it"
            }
            Some(least) => least.left_words(),
            None => self.source(),
        };
        Some(RunCap { usd, from })
    }

    /// Explains the origin of a run's own cap, and how to set another.
    fn source(&self) -> &'static str {
        let of_settings = self.budget.of_a_run();
        if self.run.is_some() {
            "its file's `max_cost_usd`"
        } else if self.budget.run.is_some() {
            "`run` of the setting `budget`; `max_cost_usd` in its file sets another"
        } else if of_settings.is_some() && of_settings == self.budget.day.map(|day| day / 10.0) {
            "a tenth of `day` of the setting `budget`; `max_cost_usd` in its file or `run` of that setting sets another"
        } else if of_settings.is_some() {
            "a hundredth of `month` of the setting `budget`; `max_cost_usd` in its file or `run` of that setting sets another"
        } else {
            "a tenth of its file's `max_cost_day_usd`; `max_cost_usd` there sets another"
        }
    }

    /// Returns the cap of a run when only `left` is left of each period's cap.
    fn within(&self, left: impl Iterator<Item = f64>) -> Option<f64> {
        self.of_a_run().map(|own| left.fold(own, f64::min))
    }
}

/// The budgets that would pay for a run that began now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicableBudget {
    /// The caps of periods that apply to it, with their spending.
    pub spendings: Vec<Spending>,
    /// The cap that it would reserve; `None`: there is no cap.
    pub cap: Option<f64>,
}

impl ApplicableBudget {
    /// Returns the first exhausted cap.
    #[must_use]
    pub fn spent(&self) -> Option<&Spending> {
        self.spendings.iter().find(|spending| spending.is_spent())
    }
}

/// The cap of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunCap {
    /// In US dollars.
    pub usd: f64,
    /// What made it this much, and how to set another.
    pub from: &'static str,
}

/// The result of reserving a cap.
#[derive(Clone, Debug, PartialEq)]
pub enum Reservation {
    /// The run may cost this much; `None`: there is no cap.
    Cap(Option<RunCap>),
    /// Nothing is left. The reason, as a sentence without a full stop.
    Spent(String),
}

/// A cap of a period and the spending under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spending {
    /// `day`, `month`, `tokens_day`, or `job_day`.
    pub name: &'static str,
    /// The current cap.
    pub cap: f64,
    /// Cost of runs, plus the reserved caps of ended runs without a reported cost.
    pub spent: f64,
    /// Reserved caps of runs that have not ended.
    pub taken: f64,
    /// The end of the period.
    pub until: DateTime<Utc>,
    /// The period, such as `2026-11-23`.
    label: String,
}

impl Spending {
    /// Makes a cap and its spending, until the end of its period.
    #[must_use]
    pub fn of(name: &'static str, cap: f64, spent: f64, until: DateTime<Utc>) -> Self {
        Self { name, cap, spent, taken: 0.0, until, label: String::new() }
    }

    /// `the budget of today is spent`; or that only running runs hold what is left.
    #[must_use]
    pub fn is_spent_words(&self) -> String {
        let (what, are) = if self.name == TOKENS { ("tokens", "are") } else { ("budget", "is") };
        match self.is_spent_for_good() {
            true => format!("the {what} of {} {are} spent", self.period()),
            false => format!("the rest of the {what} of {} is taken by runs that have not ended", self.period()),
        }
    }

    /// Tells the person that nothing is left.
    fn skips_words(&self, title: &str, zone: Tz) -> String {
        let why = self.words(zone);
        if !self.is_spent_for_good() {
            return format!(
                "Jobs are skipped, and you are not answered, until a run ends: {why}. What it does not need is free then."
            );
        }
        let flag = match self.name {
            "job_day" => return format!("No further run of {title} begins: {why}."),
            TOKENS => "tokens N",
            "month" => "month USD",
            _ => "day USD",
        };
        format!("Jobs are skipped, and you are not answered: {why}. `ollim-bot budget --{flag}` raises it.")
    }

    /// Explains what is left as the origin of a run's cap.
    fn left_words(&self) -> &'static str {
        match self.name {
            "job_day" => "what was left for today of its file's `max_cost_day_usd`; `ollim-bot budget` shows it",
            "month" => "what was left of `month` of the setting `budget`; `ollim-bot budget` shows it",
            _ => "what was left of `day` of the setting `budget`; `ollim-bot budget` shows it",
        }
    }

    /// Returns the amount that is left, at least zero.
    #[must_use]
    pub fn left(&self) -> f64 {
        (self.cap - self.spent - self.taken).max(0.0)
    }

    /// Returns whether the cap is exhausted.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_nothing(self.left())
    }

    fn is_nothing(&self, left: f64) -> bool {
        let least = if self.name == TOKENS { 1.0 } else { LEAST.min(self.cap / 10.0) };
        left <= 0.0 || left < least
    }

    /// Returns whether it stays exhausted until its period ends, since no running run can give anything back.
    #[must_use]
    pub fn is_spent_for_good(&self) -> bool {
        Self { taken: 0.0, ..self.clone() }.is_spent()
    }

    /// Returns `today` or `this month`.
    #[must_use]
    pub fn period(&self) -> &'static str {
        if self.name == "month" { "this month" } else { "today" }
    }

    /// `$5.00 of $5.00`, `2,000 of 1,500 tokens`.
    #[must_use]
    pub fn amounts(&self) -> String {
        match self.name {
            TOKENS => format!("{} of {} tokens", tokens(self.spent), tokens(self.cap)),
            _ => format!("{} of {}", money(self.spent), money(self.cap)),
        }
    }

    /// `, $0.80 taken by runs that have not ended`; empty if they have taken nothing.
    #[must_use]
    pub fn taken_words(&self) -> String {
        let taken = match self.name {
            _ if self.taken <= 0.0 => return String::new(),
            TOKENS => format!("{} tokens", tokens(self.taken)),
            _ => money(self.taken),
        };
        format!(", {taken} taken by runs that have not ended")
    }

    /// Returns the label and action of the button that raises the cap by half for the rest of its period. `None`
    /// for a job's own cap, which its file sets.
    fn raise(&self) -> Option<(String, String)> {
        let raised = (self.cap * 150.0).ceil() / 100.0;
        let (shown, amount) = match self.name {
            "day" | "month" => (format!("${raised:.2}"), format!("{raised:.2}")),
            TOKENS => (format!("{} tokens", tokens(raised)), format!("{raised:.0}")),
            _ => return None,
        };
        Some((format!("Raise {} to {shown}", self.period()), format!("raise:{}:{}:{amount}", self.name, self.label)))
    }

    /// `$1.00 of $2.00 of the day's budget are spent or taken, until Tue 24 Nov 00:00 CET`. If running runs have
    /// reserved the missing amount, says so without a time, since it may be free as soon as they end.
    #[must_use]
    pub fn words(&self, zone: Tz) -> String {
        let whose = match self.name {
            "job_day" => "of this job's `max_cost_day_usd`",
            "month" => "of the month's budget",
            _ => "of the day's budget",
        };
        if self.taken > 0.0 && !self.is_nothing(self.cap - self.spent) {
            return format!("{} {whose} are spent{}", self.amounts(), self.taken_words());
        }
        let until = self.until.with_timezone(&zone).format("%a %-d %b %H:%M %Z");
        format!("{} {whose} are spent or taken, until {until}", self.amounts())
    }
}

const TOKENS: &str = "tokens_day";

/// Formats a count of tokens, which is a whole number.
fn tokens(count: f64) -> String {
    grouped(count.round() as u64)
}

/// The usage of a run, as its client reported it.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// The tokens, if the client counts them.
    pub tokens: Option<Tokens>,
}

impl Journal {
    /// Reserves a run's cap from what is left of every period's cap. A second call for the same run reserves anew.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then nothing is reserved.
    pub async fn reserve_cost(
        &self,
        run: &RunId,
        definition: &Definition,
        caps: Caps,
    ) -> Result<Reservation, JournalError> {
        let (run, clock, origin) = (run.clone(), self.clock.clone(), Origin::of(definition));
        let job = NamedJob::of(definition);
        let (taken, newest) = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let payer = note(connection, &run, &origin)?;
                let all = spendings(connection, &caps, Some(&payer), launched(connection, &run, now)?)?;
                if let Some(spent) = all.iter().find(|spending| spending.is_spent()) {
                    let text = spent.skips_words(&job.title, caps.zone);
                    let share = if spent.is_spent_for_good() { "100" } else { "taken" };
                    let newest = notify_once(connection, spent, (&payer, share), job.message(spent, text), now)?;
                    return Ok((Reservation::Spent(spent.words(caps.zone)), newest));
                }
                let cap = caps.cap_beside(&all, payer != origin.id);
                // With token budgets alone, a reservation of zero marks that the run spends.
                let mark = caps.budget.tokens_day.map(|_| 0.0);
                connection.execute(
                    "UPDATE run SET reserved_usd = ?2 WHERE run = ?1",
                    params![run.as_str(), cap.map(|cap| cap.usd).or(mark)],
                )?;
                let newest = warn(connection, &all, &payer, &job, caps.zone, now)?;
                Ok((Reservation::Cap(cap), newest))
            })
            .await?;
        self.announce(newest);
        Ok(taken)
    }

    /// Records whose `max_cost_day_usd` pays for a run, before the run creates or spawns anything.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn record_payer(&self, run: &RunId, definition: &Definition) -> Result<(), JournalError> {
        let (run, origin) = (run.clone(), Origin::of(definition));
        self.writer.commit(move |connection| note(connection, &run, &origin).map(drop)).await
    }

    /// Records the usage that a run's client reported. Warns the person if a cap is nearly exhausted by it.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn record_usage(
        &self,
        run: &RunId,
        definition: &Definition,
        usage: Usage,
        caps: Caps,
    ) -> Result<(), JournalError> {
        let (run, clock, job) = (run.clone(), self.clock.clone(), NamedJob::of(definition));
        let tokens = usage.tokens.and_then(|tokens| serde_json::to_string(&tokens).ok());
        let newest = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                connection.execute(
                    "UPDATE run SET cost_usd = coalesce(cost_usd, 0) + ?2, tokens = coalesce(?3, tokens), reserved_usd = NULL
                     WHERE run = ?1",
                    params![run.as_str(), usage.cost_usd, tokens],
                )?;
                let payer: Option<String> =
                    connection.one("SELECT payer FROM run WHERE run = ?1", [run.as_str()], |row| row.get(0))?.flatten();
                let payer = payer.unwrap_or_default();
                let all = spendings(connection, &caps, Some(&payer), launched(connection, &run, now)?)?;
                warn(connection, &all, &payer, &job, caps.zone, now)
            })
            .await?;
        self.announce(newest);
        Ok(())
    }

    /// Sets the cap of today or this month to `usd`, until the period ends.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_cap(&self, period: Period, usd: f64, zone: Tz) -> Result<(), JournalError> {
        self.set(period.name(), period, usd.to_string(), zone).await
    }

    /// Sets the cap of today in tokens, until the day ends.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_tokens(&self, tokens: u64, zone: Tz) -> Result<(), JournalError> {
        self.set(TOKENS, Period::Day, tokens.to_string(), zone).await
    }

    async fn set(&self, name: &'static str, period: Period, amount: String, zone: Tz) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let label = period.label(clock.now(), zone);
                // Messages about the old cap are sent again for the new one.
                let told = format!("told\\_budget\\_{}\\_%", name.replace('_', "\\_"));
                connection.execute("DELETE FROM setting WHERE key LIKE ?1 ESCAPE '\\'", [told])?;
                settings::set(connection, &raised_key(name), &format!("{label} {amount}"))
            })
            .await
    }
}

impl JournalReader {
    /// Returns the current spending under the caps of `budget`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn spending(&self, budget: Budget, zone: Tz, now: DateTime<Utc>) -> Result<Vec<Spending>, JournalError> {
        let caps = Caps { run: None, job_day: None, budget, zone };
        self.connection().map_or(Ok(Vec::new()), |connection| spendings(connection, &caps, None, now))
    }
}

impl JournalReader {
    /// Returns today's spending of a job's runs under its `max_cost_day_usd`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn spending_of(
        &self,
        job: &DefinitionId,
        cap: f64,
        zone: Tz,
        now: DateTime<Utc>,
    ) -> Result<Option<Spending>, JournalError> {
        let caps = Caps { run: None, job_day: Some(cap), budget: Budget::default(), zone };
        let Some(connection) = self.connection() else { return Ok(None) };
        Ok(spendings(connection, &caps, Some(job.as_str()), now)?.pop())
    }
}

impl JournalReader {
    /// Returns the budgets for a run that began now, as [`Journal::reserve_cost`] would find them. Reserves nothing.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn applicable_budget(
        &self,
        definition: &Definition,
        caps: &Caps,
        now: DateTime<Utc>,
    ) -> Result<ApplicableBudget, JournalError> {
        let Some(connection) = self.connection() else {
            let whole = [caps.budget.day, caps.budget.month, caps.job_day].into_iter().flatten();
            return Ok(ApplicableBudget { spendings: Vec::new(), cap: caps.within(whole) });
        };
        let payer = payer(connection, &Origin::of(definition))?;
        let spendings = spendings(connection, caps, Some(&payer), now)?;
        let cap = caps.within(dollars_left(&spendings));
        Ok(ApplicableBudget { spendings, cap })
    }
}

/// Returns when a run was launched, in whose periods it counts, even if it reserves after their end. `now` if it was not launched.
fn launched(connection: &Connection, run: &RunId, now: DateTime<Utc>) -> Result<DateTime<Utc>, JournalError> {
    let launched: Option<Option<i64>> =
        connection.one("SELECT launched FROM run WHERE run = ?1", [run.as_str()], |row| row.get(0))?;
    launched.flatten().map_or(Ok(now), time)
}

/// Returns what is left of each cap in dollars.
fn dollars_left(all: &[Spending]) -> impl Iterator<Item = f64> {
    all.iter().filter(|spending| spending.name != TOKENS).map(Spending::left)
}

fn raised_key(name: &str) -> String {
    format!("raised_budget_{name}")
}

/// Returns every cap that applies. `payer`: the job whose day counts for `max_cost_day_usd`.
fn spendings(
    connection: &Connection,
    caps: &Caps,
    payer: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Vec<Spending>, JournalError> {
    // A run may have one client that ended and another that is running.
    const COST: &str = "sum(coalesce(cost_usd, 0) + CASE WHEN ended IS NULL THEN 0 ELSE coalesce(reserved_usd, 0) END)";
    const TAKEN: &str = "sum(CASE WHEN ended IS NULL THEN coalesce(reserved_usd, 0) ELSE 0 END)";
    // A run launched while the clock was ahead counts for the day of that launch, not for each day until then.
    let sum = |what: &str, (from, until): (DateTime<Utc>, DateTime<Utc>), payer: Option<&str>| {
        let sql = format!(
            "SELECT coalesce({what}, 0.0) + 0.0 FROM run WHERE launched >= ?1 AND (payer = ?2 OR ?2 IS NULL) AND (launched < ?3
               OR number > coalesce((SELECT number FROM run WHERE launched < ?1 ORDER BY number DESC LIMIT 1), 0))"
        );
        connection.row(&sql, params![ms(from), payer, ms(until)], |row| row.get::<f64>(0))
    };
    let mut all = Vec::new();
    let mut add = |name, cap: Option<f64>, what: &str, period: Period, payer| -> Result<(), JournalError> {
        let Some(cap) = cap else { return Ok(()) };
        let around = period.around(now, caps.zone);
        let taken = if what == COST { sum(TAKEN, around, payer)? } else { 0.0 };
        let (spent, label) = (sum(what, around, payer)?, period.label(now, caps.zone));
        all.push(Spending { name, cap, spent, taken, until: around.1, label });
        Ok(())
    };
    let budget = caps.budget;
    let raised = |name: &str, period: Period, cap: Option<f64>| -> Result<Option<f64>, JournalError> {
        let kept = settings::get(connection, &raised_key(name))?;
        let label = period.label(now, caps.zone);
        let usd = kept.as_deref().and_then(|kept| kept.split_once(' ')).filter(|(known, _)| *known == label);
        Ok(cap.map(|cap| usd.and_then(|(_, usd)| usd.parse().ok()).unwrap_or(cap)))
    };
    add("day", raised("day", Period::Day, budget.day)?, COST, Period::Day, None)?;
    add("month", raised("month", Period::Month, budget.month)?, COST, Period::Month, None)?;
    #[allow(clippy::cast_precision_loss, reason = "nobody counts that far")]
    let tokens = budget.tokens_day.map(|tokens| tokens as f64);
    add(TOKENS, raised(TOKENS, Period::Day, tokens)?, &format!("sum(coalesce({TOKENS_OF}, 0))"), Period::Day, None)?;
    if let Some(payer) = payer {
        add("job_day", caps.job_day, COST, Period::Day, Some(payer))?;
    }
    if let (Some(spending), Some(cap)) = (all.iter_mut().find(|spending| spending.name == TOKENS), tokens) {
        let (ended, going) = unreported_tokens(connection, Period::Day.around(now, caps.zone), cap)?;
        (spending.spent, spending.taken) = (spending.spent + ended, going);
    }
    Ok(all)
}

/// Tokens that one run used.
const TOKENS_OF: &str = "(CAST(json_extract(tokens, '$.input') AS DOUBLE PRECISION)
    + CAST(json_extract(tokens, '$.output') AS DOUBLE PRECISION)
    + CAST(json_extract(tokens, '$.cache_write') AS DOUBLE PRECISION))";

/// Number of a job's runs that determine its usual use.
const USUAL_OF: u32 = 20;

/// Returns the assumed tokens of a period's runs without a report: of ended runs, and of running ones.
fn unreported_tokens(
    connection: &Connection,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
    cap: f64,
) -> Result<(f64, f64), JournalError> {
    let unreported = "SELECT payer, CAST(sum(CASE WHEN ended IS NULL THEN 0 ELSE 1 END) AS DOUBLE PRECISION),
               CAST(sum(CASE WHEN ended IS NULL THEN 1 ELSE 0 END) AS DOUBLE PRECISION)
             FROM run WHERE tokens IS NULL AND payer IS NOT NULL AND (reserved_usd IS NOT NULL OR cost_usd IS NOT NULL)
               AND launched >= ?1 AND (launched < ?2
               OR number > coalesce((SELECT number FROM run WHERE launched < ?1 ORDER BY number DESC LIMIT 1), 0))
             GROUP BY payer";
    let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<f64>(1)?, row.get::<f64>(2)?));
    let (mut of_ended, mut of_going) = (0.0, 0.0);
    for (payer, ended, going) in connection.all(unreported, params![ms(from), ms(until)], read)? {
        let last = format!(
            "SELECT {TOKENS_OF} FROM run WHERE payer = ?1 AND tokens IS NOT NULL ORDER BY number DESC LIMIT {USUAL_OF}"
        );
        let mut known = connection.all(&last, [payer.as_str()], |row| row.get::<f64>(0))?;
        known.sort_by(f64::total_cmp);
        let usual = known.get(known.len() / 2).copied().unwrap_or(cap / 10.0);
        (of_ended, of_going) = (of_ended + ended * usual, of_going + going * usual);
    }
    Ok((of_ended, of_going))
}

/// The origin of a definition: its id, the chain that it follows up, and its creator.
pub(super) struct Origin {
    id: String,
    chain: Option<String>,
    maker: Option<String>,
}

impl Origin {
    pub(super) fn of(definition: &Definition) -> Self {
        let chain = definition.chain().map(|chain| chain.parent.to_string());
        let maker = definition.created_by.as_ref().map(ToString::to_string);
        Self { id: definition.id.to_string(), chain, maker }
    }
}

/// Records the payer of a run that has reserved nothing yet.
fn note(connection: &Connection, run: &RunId, origin: &Origin) -> Result<String, JournalError> {
    let payer = payer(connection, origin)?;
    connection
        .execute("UPDATE run SET payer = ?2, reserved_usd = NULL WHERE run = ?1", params![run.as_str(), payer])?;
    Ok(payer)
}

/// Returns the payer for `max_cost_day_usd`: the job, written by a person, that the definition or its creator descends from.
pub(super) fn payer(connection: &Connection, origin: &Origin) -> Result<String, JournalError> {
    let (id, chain, maker) = (origin.id.as_str(), origin.chain.as_deref(), origin.maker.as_deref());
    let by_session = "SELECT coalesce(r.payer, o.id) FROM run r JOIN occurrence o ON o.number = r.occurrence
                      WHERE r.run = (SELECT by_run FROM session WHERE id = ?1)";
    let spawned: Option<String> = connection.one(by_session, [id], |row| row.get(0))?;
    if let Some(payer) = spawned {
        return Ok(payer);
    }
    let Some(maker) = maker else { return Ok(chain.unwrap_or(id).to_owned()) };
    let of_maker = "SELECT r.payer FROM run r JOIN occurrence o ON o.number = r.occurrence
                    WHERE o.id = ?1 AND r.payer IS NOT NULL ORDER BY r.number DESC LIMIT 1";
    let payer: Option<String> = connection.one(of_maker, [maker], |row| row.get(0))?;
    Ok(payer.unwrap_or_else(|| maker.to_owned()))
}

/// A job as a message about its spending names it.
struct NamedJob {
    title: String,
    subject: Subject,
    channel: Option<String>,
}

impl NamedJob {
    fn of(definition: &Definition) -> Self {
        let (title, subject) = (definition.title(), Subject::job(definition));
        Self { title, subject, channel: definition.channel.clone() }
    }

    /// Makes the message about a cap: of the job if the cap is its own, else of the service.
    fn message(&self, spending: &Spending, text: String) -> NewMessage {
        match spending.name {
            "job_day" => NewMessage { channel: self.channel.clone(), ..NewMessage::about(self.subject.clone(), text) },
            _ => NewMessage::of_service(text),
        }
    }
}

/// Warns the person of nearly exhausted caps.
fn warn(
    connection: &Connection,
    all: &[Spending],
    payer: &str,
    job: &NamedJob,
    zone: Tz,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let mut newest = 0;
    for spending in all.iter().filter(|spending| spending.spent >= spending.cap * WARN_SHARE) {
        if spending.is_spent_for_good() {
            let message = job.message(spending, spending.skips_words(&job.title, zone));
            newest = newest.max(notify_once(connection, spending, (payer, "100"), message, now)?);
            continue;
        }
        let whose = if spending.name == "job_day" { format!(" by {}", job.title) } else { String::new() };
        let text = format!("{}{whose}. At 100 % jobs are skipped.", spending.words(zone));
        let message = job.message(spending, text);
        newest = newest.max(notify_once(connection, spending, (payer, "80"), message, now)?);
    }
    Ok(newest)
}

/// Sends a message once per period. Returns its number; 0 if it was sent before.
fn notify_once(
    connection: &Connection,
    spending: &Spending,
    (payer, share): (&str, &str),
    message: NewMessage,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let whose = if spending.name == "job_day" { payer } else { "" };
    let key = format!("told_budget_{}_{share}_{whose}", spending.name);
    if settings::get(connection, &key)?.as_deref() == Some(&spending.label) {
        return Ok(0);
    }
    settings::set(connection, &key, &spending.label)?;
    let raise = spending.raise();
    let button = raise.as_ref().map(|(label, action)| (label.as_str(), action.as_str()));
    insert_message(connection, &message.with_buttons(button.as_slice()), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cap_is_spent_when_it_is() {
        let of = |spent, taken| Spending { taken, ..Spending::of("job_day", 0.0015, spent, DateTime::<Utc>::MAX_UTC) };
        let spent = |spent, taken| of(spent, taken).is_spent();
        assert_eq!(
            [spent(0.0, 0.0), spent(0.0013, 0.0), spent(0.00145, 0.0), spent(0.002, 0.0)],
            [false, false, true, true]
        );
        assert!(spent(0.0, 0.0015), "runs that go have taken it");
        let usual = |spent| Spending::of("day", 5.0, spent, DateTime::<Utc>::MAX_UTC).is_spent();
        assert_eq!([usual(4.99), usual(4.996), usual(5.0)], [false, true, true]);
        assert!(Spending::of("day", 0.0, 0.0, DateTime::<Utc>::MAX_UTC).is_spent());
        assert_eq!(of(0.0004, 0.0).amounts(), "$0.0004 of $0.0015");
        let taken = of(0.0004, 0.0011).words(Tz::UTC);
        let words = "$0.0004 of $0.0015 of this job's `max_cost_day_usd` are spent, $0.0011 taken by";
        assert!(taken.starts_with(words), "{taken}");
    }
}
