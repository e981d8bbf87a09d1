//! The present limits of jobs that other jobs have made, and of conversations of jobs.
//!
//! A job that another job has made runs as if it were made now: with the restrictions that its maker's file adds, and not at all if it
//! has more rights than its maker. So a right that the person takes from a job is taken from what it has made, too. A turn that continues
//! a job's conversation has the rights of the job's present file. A spawned agent that begins has no more than its caller has then.
//!
//! The file of a reminder is removed once it has fired. So a maker that is gone counts as it was when it ran last. A chain counts as its
//! waiting check. A maker whose file has an error lets nothing run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::gate;
use super::runner::RunSettings;
use super::spawn::Spawner;
use crate::definition::fields::{FIELDS, Field, Limit};
use crate::definition::{Background, Defaults, Definition, DefinitionId, Draft, Kind, Mode, parse, parse_pushed};
use crate::home::Home;
use crate::journal::{JournalError, JournalReader, RunId};
use crate::policy::{BgForkConfig, PathRoots, ToolPattern, UpdateMode, attenuate};
use crate::refusal::Refusal;

/// Maximum number of makers above a job.
const LONGEST_LINE: usize = 100;

/// Maximum number of makers with different rights that limit a job. To compare two lists takes long.
const MAX_LIMITS: usize = 8;

impl Spawner {
    /// Returns a job with the restrictions that its makers' present files add.
    ///
    /// # Errors
    /// A sentence, without words of the job, if it has more rights than a maker, or if a maker's file has an error.
    pub(super) async fn limited(&self, job: &Arc<Definition>) -> Result<Arc<Definition>, Refusal> {
        let caller = self.caller_of(job).await?;
        let limits = match &caller {
            Some(caller) => {
                let made = Definition { created_by: Some(caller.clone()), ..Definition::clone(job) };
                self.limits_of(&made).await?
            }
            None if job.created_by.is_none() => return Ok(Arc::clone(job)),
            None => self.limits_of(job).await?,
        };
        let (job, places) = (Arc::clone(job), self.places());
        let settings = self.settings.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let limited = tokio::task::spawn_blocking(move || {
            let limited = match caller {
                Some(_) => limit_spawned(&job, &limits, &settings.main_tools, &places),
                None => limit(&job, &limits, &settings, &places),
            };
            limited.map_err(|_| {
                Refusal::denied(format!("{} has more rights than the job that made it", job.title()))
                    .hint(format!("`ollim-bot check {}` says which", job.id))
            })
        });
        let limited = limited.await.map_err(|error| Refusal::environment(error.to_string()))?;
        limited.map(Arc::new)
    }

    /// Returns the job whose run has started a spawned agent; `None` for anything else.
    async fn caller_of(&self, job: &Definition) -> Result<Option<DefinitionId>, Refusal> {
        if job.kind() != Kind::Session || job.id.is_turn() {
            return Ok(None);
        }
        let session = self.journal.session(&job.id).await?;
        let Some(run) = session.and_then(|session| session.by) else { return Ok(None) };
        Ok(self.journal.read(|journal| journal.run(&run)).await?.map(|run| run.id))
    }

    /// See [`needs_approval`]. A maker's file with an error needs none, since nothing runs then.
    pub(super) async fn needs_approval(&self, job: &Definition) -> bool {
        job.approve || self.limits_of(job).await.is_ok_and(|makers| needs_approval(job, &makers))
    }

    /// Returns the restrictions that a job's conversation has now. `fired`: the job as it was when the run fired.
    ///
    /// # Errors
    /// See [`Self::limited`].
    pub(super) async fn of_conversation(&self, fired: Definition) -> Result<Definition, Refusal> {
        let present = self.present(&fired.id).await?.filter(|present| present.kind() == fired.kind());
        let job = match (present, fired.kind()) {
            (Some(present), _) if present.background().is_some() => with_rights_of(fired, &present),
            // Of these kinds only the person removes the file.
            (None, Kind::Routine | Kind::Webhook) => without_tools(fired),
            _ => fired,
        };
        self.limited(&Arc::new(job)).await.map(Arc::unwrap_or_clone)
    }

    /// Returns the makers that limit a job, the nearest first.
    async fn limits_of(&self, job: &Definition) -> Result<Vec<Arc<Definition>>, Refusal> {
        let mut line = MakersOf::default();
        while let Some(id) = line.next(job) {
            match self.present(&id).await? {
                Some(maker) => line.add(maker),
                None => match self.journal.read(|journal| last_run(&id, &self.defaults, journal)).await?? {
                    Some(gone) => line.add(Arc::new(gone)),
                    None => return Err(MakersOf::unknown(&id)),
                },
            }
        }
        line.limits()
    }

    /// Returns the present definition with an id, from a file or from the database. For a chain's first reminder that is gone, its
    /// waiting check.
    async fn present(&self, id: &DefinitionId) -> Result<Option<Arc<Definition>>, Refusal> {
        let fresh = async |id: &DefinitionId| {
            let found = self.definitions.fresh(id).await;
            found.map_err(|error| not_in_force(&error.to_string()))
        };
        if let Some(found) = fresh(id).await? {
            return Ok(Some(found));
        }
        if let Some(check) = self.definitions.waiting_check(id).await {
            return fresh(&check).await;
        }
        let found = self.journal.read(|journal| in_database(id, &self.home, &self.defaults, journal)).await?;
        Ok(found?.map(Arc::new))
    }
}

/// The makers of a job: its maker, that job's maker, and so on.
#[derive(Default)]
pub struct MakersOf {
    all: Vec<Arc<Definition>>,
    limits: Vec<Arc<Definition>>,
}

impl MakersOf {
    /// Returns the id of the next maker to look up; `None` if there is none.
    #[must_use]
    pub fn next(&self, job: &Definition) -> Option<DefinitionId> {
        let next = self.all.last().map_or(job, |last| last).created_by.as_ref()?;
        // A person can write files that name each other.
        let is_new = job.id != *next && self.all.iter().all(|known| known.id != *next);
        // The limits of a longer line are not known, and `limits` refuses it.
        (is_new && self.all.len() <= LONGEST_LINE).then(|| next.clone())
    }

    /// Adds a maker, as it is now or as it ran last.
    pub fn add(&mut self, maker: Arc<Definition>) {
        if self.limits.last().is_none_or(|last| !limits_alike(last, &maker)) {
            self.limits.push(Arc::clone(&maker));
        }
        self.all.push(maker);
    }

    /// Returns the makers that limit the job.
    ///
    /// # Errors
    /// A sentence if there are too many.
    pub fn limits(self) -> Result<Vec<Arc<Definition>>, Refusal> {
        let most = if self.all.len() > LONGEST_LINE { LONGEST_LINE } else { MAX_LIMITS };
        if most == LONGEST_LINE || self.limits.len() > MAX_LIMITS {
            let why = format!("a line of more than {most} jobs has made it, one the other");
            return Err(Refusal::denied(why).hint("remove its line `created_by` if you want it"));
        }
        Ok(self.limits)
    }

    /// Returns why a job does not run if neither a file nor the journal knows a maker of it.
    #[must_use]
    pub fn unknown(id: &DefinitionId) -> Refusal {
        Refusal::denied(format!("`{id}` made it, and neither a file nor the journal says what `{id}` may do"))
            .hint("remove its line `created_by` if you want it")
    }
}

/// Returns whether two makers limit a job in the same way: they differ at most in what no function here reads.
fn limits_alike(one: &Definition, other: &Definition) -> bool {
    let (one, other) = (Draft::from(one), Draft::from(other));
    one.background == other.background
        && FIELDS.iter().filter(|field| limits(field)).all(|field| (field.show)(&one) == (field.show)(&other))
}

/// The fields with a limit of their own that count when a job is made, and not again for each run of what was made: when and where that
/// fires, what it follows and reads, how it tells of it, and which texts of the person's it begins with.
const ONCE: [&str; 14] = [
    "after",
    "channel",
    "client",
    "context_from",
    "deliver",
    "gate",
    "heartbeat_url",
    "hosts",
    "max_chain",
    "requires",
    "skills",
    "urgency",
    "wake",
    "watch",
];

/// Returns whether a maker's present value of a field limits the runs of what it has made.
fn limits(field: &Field) -> bool {
    !matches!(field.limit, Limit::Free) && !ONCE.contains(&field.name)
}

/// Returns whether the person approves each run of a job that falls due: its own file or that of a maker has `approve`.
#[must_use]
pub fn needs_approval(job: &Definition, makers: &[Arc<Definition>]) -> bool {
    job.approve || makers.iter().any(|maker| maker.approve)
}

/// Returns a job with the restrictions that its makers add. May take seconds if the lists are long.
///
/// # Errors
/// A sentence that names the right which the job has and a maker does not have.
pub fn limit(
    job: &Definition,
    limits: &[Arc<Definition>],
    settings: &RunSettings,
    places: &PathRoots,
) -> Result<Definition, Refusal> {
    let mut job = job.clone();
    let is_command = job.command.is_some();
    for maker in limits {
        if maker.background().is_some() {
            job = keep_amounts(job, maker, settings.timeout)?;
        }
        let (Mode::Background(own), Some(of_maker)) = (&mut job.mode, maker.background()) else { continue };
        // A command knows no conversation, so nor does what it makes.
        own.isolated |= !is_command && (of_maker.isolated || maker.command.is_some());
        if own.restrictions != of_maker.restrictions {
            let rights = (&of_maker.restrictions, &own.restrictions);
            let limited = attenuate(&maker.title(), rights.0, rights.1, &settings.main_tools, Some(places));
            own.restrictions = limited.map_err(|error| Refusal::denied(error.to_string()))?;
        }
        keep_agent(own, of_maker, is_command).map_err(|agent| {
            Refusal::denied(format!("{} runs as the agent `{agent}`, and it does not", maker.title()))
        })?;
    }
    Ok(job)
}

/// Returns a spawned agent with the rights that its caller and the caller's makers have now, if these are fewer than those it got.
///
/// # Errors
/// A sentence if they are neither fewer nor more.
fn limit_spawned(
    job: &Definition,
    limits: &[Arc<Definition>],
    main_tools: &[ToolPattern],
    places: &PathRoots,
) -> Result<Definition, Refusal> {
    let mut job = job.clone();
    for caller in limits {
        let (Mode::Background(own), Some(of_caller)) = (&mut job.mode, caller.background()) else { continue };
        let (then, now) = (&own.restrictions, &of_caller.restrictions);
        if then == now {
            continue;
        }
        let narrowed = |parent, asked| attenuate(&caller.title(), parent, asked, main_tools, Some(places));
        let limited = narrowed(now, then).or_else(|_| narrowed(then, now));
        let limited = limited.map_err(|error| Refusal::denied(error.to_string()))?;
        let update = then.update_main_session;
        own.restrictions = limited;
        if own.restrictions.update_main_session != UpdateMode::Blocked {
            own.restrictions.update_main_session = update;
        }
    }
    Ok(job)
}

/// Lowers a job's amounts of time, turns and money to those of its maker.
fn keep_amounts(mut job: Definition, maker: &Definition, usual: Duration) -> Result<Definition, Refusal> {
    job.timeout = match job.timeout {
        Some(own) => Some(own.min(maker.timeout.unwrap_or(usual))),
        None => maker.timeout.map(|most| most.min(usual)),
    };
    let most = maker.gate_timeout.unwrap_or(gate::USUAL_TIMEOUT).max(gate::USUAL_TIMEOUT);
    job.gate_timeout = job.gate_timeout.map(|own| own.min(most));
    let (mut draft, of_maker) = (Draft::from(&job), Draft::from(maker));
    let heeded = FIELDS.iter().filter(|field| field.is_heeded_by(draft.client) && matches!(field.limit, Limit::AtMost));
    for field in heeded.collect::<Vec<_>>() {
        let Some(most) = (field.show)(&of_maker) else { continue };
        if (field.show)(&draft).is_none_or(|own| own > most) {
            draft.set(field, &most).map_err(|fault| Refusal::denied(fault.message))?;
        }
    }
    let Definition { id, file, zone, trigger, mode, .. } = job;
    Ok(draft.into_definition((id, file, zone), trigger, mode))
}

/// Has a job run as its maker's agent.
///
/// # Errors
/// The agent, if the job has another one or is a command.
fn keep_agent(own: &mut Background, maker: &Background, is_command: bool) -> Result<(), String> {
    match &maker.agent {
        Some(agent) if is_command || own.agent.get_or_insert_with(|| agent.clone()) != agent => Err(agent.clone()),
        _ => Ok(()),
    }
}

/// Returns the definition of the database with an id, if there is one.
///
/// # Errors
/// A failure of the journal, or a refusal if this host cannot read the definition.
pub fn in_database(
    id: &DefinitionId,
    home: &Home,
    defaults: &Defaults,
    journal: &JournalReader,
) -> Result<Result<Option<Definition>, Refusal>, JournalError> {
    let Some(row) = journal.pushed(std::slice::from_ref(id))?.pop() else { return Ok(Ok(None)) };
    let parsed = parse_pushed(home, row.kind, &row.id, row.text.as_bytes(), Some(&row.zone), defaults);
    Ok(match parsed.definition {
        Some(definition) => Ok(Some(definition)),
        None => Err(not_in_force(&format!("`{id}` of the database has an error"))),
    })
}

/// Returns a definition as it was when it ran last; `None` if there is no record of that. For a chain, its last check.
///
/// # Errors
/// A failure of the journal, or a refusal if this version cannot read what is recorded.
pub fn last_run(
    id: &DefinitionId,
    defaults: &Defaults,
    journal: &JournalReader,
) -> Result<Result<Option<Definition>, Refusal>, JournalError> {
    let Some(latest) = journal.latest(id, 1)?.pop() else { return Ok(Ok(None)) };
    let found = run_as_fired(id, &latest, defaults, journal)?;
    let Ok(Some(first)) = &found else { return Ok(found) };
    match first.chain().map(|_| journal.remembered(&first.lineage())).transpose()?.flatten() {
        Some(last) => run_as_fired(id, &last.run, defaults, journal),
        None => Ok(found),
    }
}

/// Returns the jobs whose last runs limit what they have made: these makers, the makers of those that are gone, and so on.
///
/// # Errors
/// A failure of the journal.
pub fn recorded_makers(
    mut makers: Vec<DefinitionId>,
    defaults: &Defaults,
    journal: &JournalReader,
) -> Result<BTreeSet<DefinitionId>, JournalError> {
    let mut found = BTreeSet::new();
    while let Some(id) = makers.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        // What cannot be read has no maker that is known, and lets nothing run.
        if let Ok(Some(last)) = last_run(&id, defaults, journal)? {
            // The last check of a chain.
            found.insert(last.id);
            makers.extend(last.created_by);
        }
    }
    Ok(found)
}

/// Returns the definition of a run as it fired; `None` if its text is not recorded.
fn run_as_fired(
    id: &DefinitionId,
    run: &RunId,
    defaults: &Defaults,
    journal: &JournalReader,
) -> Result<Result<Option<Definition>, Refusal>, JournalError> {
    let Some(record) = journal.run(run)? else { return Ok(Ok(None)) };
    let Some(text) = &record.definition else { return Ok(Ok(None)) };
    Ok(match as_fired(&record.id, record.kind, text, defaults) {
        Some(definition) => Ok(Some(definition)),
        None => {
            Err(not_in_force(&format!("`{id}` is gone, and its last run is of a definition that cannot be read now")))
        }
    })
}

/// Parses the recorded text of a run's definition.
pub(super) fn as_fired(id: &DefinitionId, kind: Kind, text: &str, defaults: &Defaults) -> Option<Definition> {
    let file = Path::new("runs").join(format!("{id}.md"));
    parse(kind, &file, text.as_bytes(), defaults).definition
}

fn not_in_force(why: &str) -> Refusal {
    Refusal::user(format!("{why}, so it is not known what this run may do"))
        .hint("`ollim-bot check` says what is wrong there")
}

/// Returns a job as it fired, with the restrictions and the agent of its present file.
fn with_rights_of(mut fired: Definition, present: &Definition) -> Definition {
    if let (Mode::Background(own), Some(present)) = (&mut fired.mode, present.background()) {
        own.restrictions = present.restrictions.clone();
        own.agent.clone_from(&present.agent);
    }
    fired
}

fn without_tools(mut job: Definition) -> Definition {
    if let Mode::Background(background) = &mut job.mode
        && let Ok(none) = BgForkConfig::new(background.restrictions.update_main_session, false, Some(Vec::new()), None)
    {
        background.restrictions = none;
    }
    job
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    use crate::run::delegation::tests as delegation;

    fn routine(lines: &str) -> Definition {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let text = format!("---\ncron: '@daily'\nbackground: true\n{lines}---\nLook.\n");
        parse(Kind::Routine, Path::new("routines/a.md"), text.as_bytes(), &defaults).definition.unwrap()
    }

    /// Each field of a maker that limits the runs of what it made, but for those that [`attenuate`] compares: lines of the maker, and of
    /// what it made when it did not have them.
    const TAKEN: [(&str, &str, &str); 8] = [
        ("agent", "agent: Explore\n", ""),
        ("command", "client: exec\ncommand: 'true'\n", ""),
        ("gate_timeout", "", "gate: 'true'\ngate_timeout: 9m\n"),
        ("isolated", "isolated: true\n", ""),
        ("max_cost_day_usd", "max_cost_day_usd: 0.5\n", "max_cost_day_usd: 9.0\n"),
        ("max_cost_usd", "max_cost_usd: 0.5\n", ""),
        ("max_turns", "max_turns: 3\n", "max_turns: 20\n"),
        ("timeout", "timeout: 5m\n", "timeout: 20m\n"),
    ];

    const ATTENUATED: [&str; 7] =
        ["allow_ping", "allowed_tools", "ask", "ask_tools", "disallowed_tools", "network", "update_main_session"];

    #[test]
    fn what_is_taken_from_a_maker_is_taken_from_the_runs_of_what_it_made() {
        let (settings, places) = (delegation::settings(), delegation::places());
        let runs =
            |made: &str, maker: &str| limit(&routine(made), &[Arc::new(routine(maker))], &settings, &places).unwrap();
        let amounts = runs("max_turns: 20\n", "max_turns: 3\nmax_cost_usd: 0.5\ntimeout: 5m\nisolated: true\n");
        assert_eq!((amounts.max_turns, amounts.max_cost_usd), (Some(3), Some(0.5)));
        assert_eq!(amounts.timeout, Some(Duration::from_secs(300)));
        assert!(amounts.background().unwrap().isolated);
        // Nothing grows.
        let less = runs("max_turns: 2\ntimeout: 1m\n", "max_turns: 3\ntimeout: 2h\n");
        assert_eq!((less.max_turns, less.timeout), (Some(2), Some(Duration::from_secs(60))));
        assert_eq!(runs("", "timeout: 2h\n").timeout, Some(settings.timeout));
        assert_eq!(runs("max_turns: 2\n", ""), routine("max_turns: 2\n"));
        for (name, maker, made) in TAKEN {
            assert_ne!(runs(made, maker), routine(made), "{name}");
            // Of two makers that differ in it, both count.
            assert!(maker.is_empty() || !limits_alike(&routine(maker), &routine("")), "{name}");
        }
        // Each field that limits what a job makes is known here: the others count only when it makes that.
        let known = TAKEN.map(|(name, ..)| name);
        let taken = FIELDS.iter().map(|field| (field.name, limits(field)));
        for (name, limits) in taken {
            assert_eq!(limits, known.contains(&name) || ATTENUATED.contains(&name) || name == "approve", "{name}");
        }
        assert!(ONCE.iter().all(|once| FIELDS.iter().any(|field| field.name == *once)));
    }

    #[test]
    fn makers_are_followed_until_one_is_gone_or_known() {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let made = [("a", "b"), ("b", "c"), ("c", "gone"), ("d", "d"), ("e", "f"), ("f", "e")];
        let definitions: BTreeMap<DefinitionId, Arc<Definition>> = made
            .iter()
            .map(|(id, maker)| {
                let text = format!("---\nid: {id}\ncron: '@daily'\nbackground: true\ncreated_by: {maker}\n---\nx\n");
                let file = format!("routines/{id}.md");
                let parsed = parse(Kind::Routine, Path::new(&file), text.as_bytes(), &defaults);
                let definition = parsed.definition.unwrap();
                (definition.id.clone(), Arc::new(definition))
            })
            .collect();
        let of = |id: &str| -> Vec<String> {
            let (job, mut makers) = (&definitions[&DefinitionId::new(id)], MakersOf::default());
            while let Some(maker) = makers.next(job).and_then(|id| definitions.get(&id)) {
                makers.add(Arc::clone(maker));
            }
            makers.all.iter().map(|maker| maker.id.to_string()).collect()
        };
        assert_eq!(of("a"), ["b", "c"]);
        assert_eq!(of("c"), [""; 0]);
        assert_eq!(of("d"), [""; 0]);
        assert_eq!(of("e"), ["f"]);
    }

    /// The first one's rights are not known at the end of a line that is too long.
    #[test]
    fn a_job_at_the_end_of_a_longer_line_does_not_run() {
        for (makers, runs) in [(LONGEST_LINE, true), (LONGEST_LINE + 1, false), (3 * LONGEST_LINE, false)] {
            let id = |number: usize| DefinitionId::new(format!("job-{number}"));
            let job = |number: usize| {
                let created_by = (number < makers).then(|| id(number + 1));
                Definition { id: id(number), created_by, ..routine("") }
            };
            let mut line = MakersOf::default();
            let mut number = 0;
            while line.next(&job(0)).is_some() {
                number += 1;
                line.add(Arc::new(job(number)));
            }
            assert_eq!(line.limits().is_ok(), runs, "{makers} makers");
        }
    }
}
