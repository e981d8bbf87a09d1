//! Brings definitions of the journal's database to the schedule when they are nearly due, and takes them away again.
//!
//! A look reads those that fall due soon, by an index. It hands the new ones to the schedule, moves the times of routines whose
//! occurrences have their records, and drops what is not nearly due any more. The time in the database only says what a host needs in
//! memory. Whether an occurrence happens is decided by its claim alone, as for a definition with a file.
//!
//! Of many hosts, only the first few for a definition hold it, and one moves its time. The others do so if that was not done a while
//! later. So the work of a herd does not grow with the number of hosts.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::clock::Clock;
use crate::definition::{
    self, Defaults, Definition, DefinitionId, Kind, Problem, parse_pushed, pushed_id, pushed_path,
};
use crate::failpoints::of_lease;
use crate::home::Home;
use crate::journal::{Hosts, Journal, JournalError, JournalReader, NearlyDue, NextDue, Pushed};
use crate::schedule::{LiveDefinitions, Loaded, REMOVAL, Removal, Schedule, is_named, needs_main, next_due};

/// How long before its time a definition is brought to the schedule.
const AHEAD: TimeDelta = TimeDelta::seconds(60);

/// Interval between two looks while the schedule has definitions of the database.
const INTERVAL: Duration = Duration::from_secs(20);

/// Pause after a look that failed.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Maximum number of definitions of the database that a host has in memory. The next ones come when some of these are done.
const MOST: usize = 10_000;

/// Number of rows in one answer of the journal.
const PAGE: i64 = 500;

/// Number of hosts that hold a definition before it is due.
const CLOSE: usize = 3;

/// How long after its time a definition without a record is brought to the schedule of every other host. A herd on a slow server
/// takes seconds, and more hosts that try would make it slower.
const LEFT_ALONE: TimeDelta = TimeDelta::seconds(15);

/// How long after its time a routine is moved on by the other close hosts, and by every host, if its first one does not do it.
/// Within a minute, so that the next occurrence is not late.
const CLOSE_MOVES: TimeDelta = TimeDelta::seconds(20);
const EACH_MOVES: TimeDelta = TimeDelta::seconds(40);

/// Maximum delay of a look, which differs for each of many hosts, and the part of it for each host.
const MAX_SPREAD: TimeDelta = TimeDelta::seconds(10);
const SPREAD: TimeDelta = TimeDelta::milliseconds(100);

/// The definitions of the database, as this host knows them. Clones share them.
#[derive(Clone)]
pub(super) struct PushedDefinitions(Arc<Shared>);

struct Shared {
    home: Home,
    clock: Clock,
    journal: Journal,
    schedule: Schedule,
    definitions: LiveDefinitions,
    known: Mutex<Known>,
    look_again: Notify,
}

/// What earlier looks found.
#[derive(Default)]
struct Known {
    /// The definitions that the schedule has, with their versions.
    loaded: HashMap<DefinitionId, (i64, Arc<Definition>)>,
    /// Those that are not for this host, by their versions.
    skipped: HashMap<DefinitionId, i64>,
    /// Those that this host cannot read, by their versions.
    unreadable: HashMap<DefinitionId, i64>,
    /// Those that were not nearly due at the last look.
    idle: HashSet<DefinitionId>,
    /// Those that are left to closer hosts, with their time and the time from which on this host takes them, too.
    left: HashMap<DefinitionId, (DateTime<Utc>, DateTime<Utc>)>,
    /// When to look whether the other hosts have moved a time, or removed a reminder.
    check: Option<DateTime<Utc>>,
    /// The version of the database at the last look.
    version: i64,
    /// Whether this host was the main one at the last look.
    was_main: bool,
}

/// What is of interest in the state of the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostsState {
    version: i64,
    is_main: bool,
    is_something_left: bool,
    /// A hash of the names of the living hosts: another one may come first for a definition.
    alive: u64,
}

impl HostsState {
    fn of(hosts: Option<&watch::Receiver<Hosts>>) -> Self {
        hosts.map_or_else(Self::default, |hosts| {
            let hosts = hosts.borrow();
            let mut alive = DefaultHasher::new();
            hosts.alive.iter().for_each(|member| member.name.hash(&mut alive));
            let (version, is_main) = (hosts.pushed, hosts.is_main);
            Self { version, is_main, is_something_left: !hosts.left_open.is_empty(), alive: alive.finish() }
        })
    }
}

/// How close this host is to definitions among all hosts.
struct Closeness(Option<Hosts>);

impl Closeness {
    /// Returns how many hosts come before this one.
    fn rank(&self, id: &DefinitionId) -> usize {
        self.0.as_ref().map_or(0, |hosts| hosts.rank_for(id))
    }

    fn is_alone(&self) -> bool {
        self.0.is_none()
    }

    fn is_main(&self) -> bool {
        self.0.as_ref().is_none_or(|hosts| hosts.is_main)
    }

    /// Returns whether this host holds a definition before it is due. The main host may be the only one that can run it, and so
    /// may a host that its text names.
    fn holds(&self, one: &NearlyDue) -> bool {
        self.is_main() || one.may_name_hosts || self.rank(&one.id) < CLOSE
    }

    /// Returns how long this host leaves it to others to move a time. Only a host that may run a definition moves it: that may be the main
    /// host alone, or one that its text names.
    fn patience(&self, one: &NearlyDue) -> TimeDelta {
        match self.rank(&one.id) {
            rank if rank == 0 || self.is_main() || one.may_name_hosts => TimeDelta::zero(),
            rank if rank < CLOSE => CLOSE_MOVES,
            _ => EACH_MOVES + self.spread(),
        }
    }

    /// Returns by how much this host's looks are later than those of the first.
    fn spread(&self) -> TimeDelta {
        let Some(hosts) = &self.0 else { return TimeDelta::zero() };
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let place = hosts.alive.iter().take_while(|member| member.name < hosts.me.name).count();
        let each = SPREAD.min(MAX_SPREAD / count(hosts.alive.len().max(1)));
        each * count(place)
    }
}

impl PushedDefinitions {
    pub(super) fn new(
        home: &Home,
        clock: &Clock,
        journal: &Journal,
        schedule: &Schedule,
        definitions: &LiveDefinitions,
    ) -> Self {
        Self(Arc::new(Shared {
            home: home.clone(),
            clock: clock.clone(),
            journal: journal.clone(),
            schedule: schedule.clone(),
            definitions: definitions.clone(),
            known: Mutex::default(),
            look_again: Notify::new(),
        }))
    }

    /// Looks soon, since something was pushed.
    pub(super) fn look_soon(&self) {
        self.0.look_again.notify_one();
    }

    /// Returns the definitions that the previous process had in use, and `only`. Those that are nearly due come with the first look.
    pub(super) async fn in_use(&self, only: Option<DefinitionId>) -> Result<Vec<Loaded>, JournalError> {
        // The start waits for a server that is away for a moment.
        let rows = self.0.journal.read(|journal| {
            let mut rows = journal.pushed_in_use()?;
            if let Some(id) = only.as_ref().filter(|id| rows.iter().all(|row| row.id != **id)) {
                rows.extend(journal.pushed(std::slice::from_ref(id))?);
            }
            Ok(rows)
        });
        Ok(self.parse(rows.await?, true).await)
    }

    /// Brings what is nearly due to the schedule, at the time. Never returns.
    pub(super) async fn follow(self) {
        let Shared { clock, journal, look_again, .. } = &*self.0;
        let (mut alarm, mut hosts) = (clock.alarm(), journal.hosts());
        let mut is_hindered = false;
        loop {
            let state = HostsState::of(hosts.as_ref());
            let next = match self.look(state).await {
                Ok(next) => next,
                Err(error) => {
                    if !std::mem::replace(&mut is_hindered, true) {
                        tracing::warn!(%error, cause = error.cause(), "the definitions in the database cannot be read; trying again");
                    }
                    // The closer hosts could claim nothing meanwhile either.
                    self.known().left.clear();
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            is_hindered = false;
            tokio::select! {
                () = alarm.wait(next) => {}
                () = look_again.notified() => self.known().skipped.clear(),
                () = changed(hosts.as_mut(), state) => {}
            }
        }
    }

    /// Looks at the database once. Returns when to look again; `None`: when something is pushed.
    async fn look(&self, hosts: HostsState) -> Result<Option<DateTime<Utc>>, JournalError> {
        let now = self.0.clock.now();
        let version = self.read(|journal| journal.pushed_version()).await?;
        if version == 0 {
            return Ok(None);
        }
        if std::mem::replace(&mut self.known().was_main, hosts.is_main) != hosts.is_main {
            self.known().skipped.clear();
        }
        let mut near = HashSet::new();
        if hosts.is_something_left {
            let gone = self.closeness().0.map_or_else(Vec::new, |hosts| hosts.left_open.into_iter().collect());
            let rows = self.read(move |journal| journal.pushed_open_on(&gone)).await?;
            near.extend(rows.iter().map(|row| row.id.clone()));
            self.load(rows).await;
        }
        self.load_near(now + AHEAD, &mut near).await?;
        if self.known().version != version {
            self.follow_changes(&mut near).await?;
            self.known().version = version;
        }
        self.drop_idle(near).await;
        let soonest = self.read(move |journal| journal.soonest_pushed(now + AHEAD)).await?.map(|at| at - AHEAD);
        let spread = self.closeness().spread();
        let known = self.known();
        let again = (!known.loaded.is_empty()).then_some(now + of_lease(INTERVAL));
        let left = known.left.values().map(|(_, from)| *from).min();
        Ok(soonest.map(|at| at + spread).into_iter().chain(again).chain(left).chain(known.check).min())
    }

    /// Brings everything to the schedule that falls due until `until`. Adds what is still nearly due to `near`.
    async fn load_near(&self, until: DateTime<Utc>, near: &mut HashSet<DefinitionId>) -> Result<(), JournalError> {
        let (mut last, closeness): (Option<(DateTime<Utc>, DefinitionId)>, _) = (None, self.closeness());
        let before = std::mem::take(&mut self.known().left);
        self.known().check = None;
        loop {
            let after = last.take();
            let page = self.read(move |journal| journal.nearly_due(until, after, PAGE)).await?;
            let Some(end) = page.last() else { return Ok(()) };
            last = Some((end.next_due, end.id.clone()));
            let (passed, coming): (Vec<_>, Vec<_>) = page.into_iter().partition(|one| one.passed().is_some());
            self.move_passed(passed, until, &closeness, near).await?;
            // The host that ran a reminder removes it, or else the main host.
            if closeness.is_main() && !closeness.is_alone() {
                let concluded = coming.iter().filter(|one| one.has_outcome).map(|one| one.next_due + REMOVAL).min();
                self.check_at(concluded.map(|at| at.max(self.0.clock.now() + of_lease(INTERVAL))));
            }
            let new = coming.iter().filter(|one| self.is_new(one) && self.takes(one, &closeness, &before));
            let new: Vec<DefinitionId> = new.map(|one| one.id.clone()).collect();
            let rows = self.read(move |journal| journal.pushed(&new)).await?;
            self.load(rows).await;
            let known = self.known();
            // What has its outcome is not needed here, unless the host that ran it went away before it removed it.
            let coming = coming.into_iter().filter(|one| !one.has_outcome || closeness.is_alone());
            near.extend(coming.map(|one| one.id).filter(|id| known.loaded.contains_key(id)));
            if near.len() >= MOST {
                tracing::info!("{MOST} definitions of the database are due here; the next ones wait");
                return Ok(());
            }
        }
    }

    /// Whether the schedule lacks a definition that is nearly due.
    fn is_new(&self, one: &NearlyDue) -> bool {
        let known = self.known();
        let is_loaded = known.loaded.get(&one.id).is_some_and(|(version, _)| *version == one.version);
        // The host with the open occurrence has it.
        let is_open = one.is_recorded && !one.has_outcome;
        !is_loaded && !is_open && known.skipped.get(&one.id) != Some(&one.version)
    }

    /// Whether this host takes a definition that is nearly due, or else notes from when on it does. `before`: the notes of the last look.
    fn takes(
        &self,
        one: &NearlyDue,
        closeness: &Closeness,
        before: &HashMap<DefinitionId, (DateTime<Utc>, DateTime<Utc>)>,
    ) -> bool {
        let now = self.0.clock.now();
        if one.has_outcome {
            return closeness.is_alone() || (closeness.is_main() && one.next_due + REMOVAL <= now);
        }
        if closeness.holds(one) {
            return true;
        }
        let from = before.get(&one.id).filter(|(at, _)| *at == one.next_due).map(|(_, from)| *from);
        let from = from.unwrap_or_else(|| one.next_due.max(now) + LEFT_ALONE + closeness.spread());
        if now < from {
            self.known().left.insert(one.id.clone(), (one.next_due, from));
        }
        now >= from
    }

    /// Looks again at this time at the latest.
    fn check_at(&self, at: Option<DateTime<Utc>>) {
        let mut known = self.known();
        known.check = known.check.into_iter().chain(at).min();
    }

    fn closeness(&self) -> Closeness {
        Closeness(self.0.journal.hosts().map(|hosts| hosts.borrow().clone()))
    }

    /// Moves the times of routines whose occurrences have their records. Adds those that are nearly due again to `near`.
    async fn move_passed(
        &self,
        passed: Vec<NearlyDue>,
        until: DateTime<Utc>,
        closeness: &Closeness,
        near: &mut HashSet<DefinitionId>,
    ) -> Result<(), JournalError> {
        if passed.is_empty() {
            return Ok(());
        }
        let now = self.0.clock.now();
        let is_due = |one: &NearlyDue| one.next_due + closeness.patience(one) <= now;
        let later = passed.iter().filter(|one| !is_due(one));
        self.check_at(later.map(|one| one.next_due + closeness.patience(one)).min());
        let unknown = |one: &&NearlyDue| is_due(one) && !self.known().loaded.contains_key(&one.id);
        let unknown: Vec<DefinitionId> = passed.iter().filter(unknown).map(|one| one.id.clone()).collect();
        let rows = self.read(move |journal| journal.pushed(&unknown)).await?;
        // They are not handed to the schedule, and must not count as if they were.
        let read =
            self.parse_rows(rows).await.into_iter().filter_map(|(id, _, loaded)| Some((id, loaded.ok()?.definition)));
        let read: HashMap<DefinitionId, Arc<Definition>> =
            read.filter(|(_, definition)| self.is_for_this_host(definition)).collect();
        let mut moves = Vec::with_capacity(passed.len());
        for one in passed {
            let known = self.known().loaded.get(&one.id).map(|(_, definition)| Arc::clone(definition));
            // Without a definition it stays: this version of the program cannot read it.
            let Some(definition) = known.or_else(|| read.get(&one.id).cloned()) else { continue };
            let to = next_due(&definition, one.passed().unwrap_or(one.next_due));
            if to.is_some_and(|to| to <= until) {
                near.insert(one.id.clone());
            }
            if is_due(&one) {
                moves.push(NextDue { id: one.id, version: one.version, from: one.next_due, to });
            }
        }
        if moves.is_empty() {
            return Ok(());
        }
        fail_point!(BeforeMove);
        self.0.journal.move_next_due(moves).await?;
        fail_point!(TimeMoved);
        Ok(())
    }

    /// Follows changes and removals of the definitions that the schedule has.
    async fn follow_changes(&self, near: &mut HashSet<DefinitionId>) -> Result<(), JournalError> {
        let mine: Vec<(DefinitionId, i64)> =
            self.known().loaded.iter().map(|(id, (version, _))| (id.clone(), *version)).collect();
        let ids: Vec<DefinitionId> = mine.iter().map(|(id, _)| id.clone()).collect();
        let versions = self.read(move |journal| journal.pushed_versions(&ids)).await?;
        let changed = mine.iter().filter(|(id, version)| versions.get(id).is_some_and(|now| now != version));
        let changed: Vec<DefinitionId> = changed.map(|(id, _)| id.clone()).collect();
        near.extend(changed.iter().cloned());
        let rows = self.read(move |journal| journal.pushed(&changed)).await?;
        self.load(rows).await;
        let gone: Vec<DefinitionId> =
            mine.into_iter().map(|(id, _)| id).filter(|id| !versions.contains_key(id)).collect();
        self.forget(gone);
        Ok(())
    }

    fn forget(&self, gone: Vec<DefinitionId>) {
        if !gone.is_empty() {
            let mut known = self.known();
            gone.iter().for_each(|id| drop(known.loaded.remove(id)));
            self.0.schedule.unpush(gone);
        }
    }

    /// Drops what was not nearly due at two looks in a row.
    async fn drop_idle(&self, near: HashSet<DefinitionId>) {
        let idle: HashSet<DefinitionId> =
            self.known().loaded.keys().filter(|id| !near.contains(*id)).cloned().collect();
        let before = std::mem::replace(&mut self.known().idle, idle.clone());
        let twice: Vec<DefinitionId> = idle.into_iter().filter(|id| before.contains(id)).collect();
        if !twice.is_empty() {
            let dropped = self.0.schedule.unload(twice).await;
            let mut known = self.known();
            dropped.iter().for_each(|id| drop(known.loaded.remove(id)));
        }
    }

    /// Brings definitions to the schedule that this host may run.
    async fn load(&self, rows: Vec<Pushed>) {
        let loaded = self.parse(rows, false).await;
        if !loaded.is_empty() {
            self.0.schedule.load(loaded);
        }
    }

    /// Brings a definition to the schedule for the sake of one command or one run. Returns whether it is in the database.
    pub(super) async fn load_one(&self, id: &DefinitionId) -> Result<bool, JournalError> {
        let ids = [id.clone()];
        let rows = self.read(move |journal| journal.pushed(&ids)).await?;
        let is_there = !rows.is_empty();
        match is_there {
            true => self.0.schedule.load(self.parse(rows, true).await),
            false => self.forget(vec![id.clone()]),
        }
        Ok(is_there)
    }

    /// Parses definitions, and notes that the schedule has them. Leaves out those that this host cannot read and, unless `anywhere`, those
    /// that it may not run.
    async fn parse(&self, rows: Vec<Pushed>, anywhere: bool) -> Vec<Loaded> {
        let parsed = self.parse_rows(rows).await;
        let (mut found, mut lost) = (Vec::with_capacity(parsed.len()), Vec::new());
        let mut known = self.known();
        for (id, version, loaded) in parsed {
            let loaded = self.readable(&mut known, &id, version, loaded);
            match loaded.filter(|loaded| anywhere || self.is_for_this_host(&loaded.definition)) {
                Some(loaded) => {
                    known.loaded.insert(id, (version, Arc::clone(&loaded.definition)));
                    found.push(loaded);
                }
                None => {
                    // A changed text that is not for this host replaces one that was.
                    lost.extend(known.loaded.contains_key(&id).then(|| id.clone()));
                    known.skipped.insert(id, version);
                }
            }
        }
        drop(known);
        self.forget(lost);
        found
    }

    /// Parses definitions, and notes nothing.
    async fn parse_rows(&self, rows: Vec<Pushed>) -> Vec<(DefinitionId, i64, Result<Loaded, Unreadable>)> {
        if rows.is_empty() {
            return Vec::new();
        }
        let (home, defaults) = (self.0.home.clone(), self.0.definitions.defaults().await);
        let parsed = tokio::task::spawn_blocking(move || {
            rows.into_iter().map(|row| (row.id.clone(), row.version, parsed(&home, &defaults, row))).collect()
        });
        parsed.await.unwrap_or_else(|error| {
            tracing::error!(%error, "definitions of the database could not be read");
            Vec::new()
        })
    }

    /// Returns what could be parsed. Reports what could not, once for each version, and what can be again.
    fn readable(
        &self,
        known: &mut Known,
        id: &DefinitionId,
        version: i64,
        parsed: Result<Loaded, Unreadable>,
    ) -> Option<Loaded> {
        match parsed {
            Ok(loaded) => {
                if known.unreadable.remove(id).is_some() {
                    self.0.definitions.report(loaded.definition.file.clone(), Vec::new());
                }
                Some(loaded)
            }
            Err(Unreadable { path, problems }) => {
                if known.unreadable.insert(id.clone(), version) != Some(version) {
                    self.0.definitions.report(path, problems);
                }
                None
            }
        }
    }

    fn is_for_this_host(&self, definition: &Definition) -> bool {
        let Some(hosts) = self.0.journal.hosts() else { return true };
        let hosts = hosts.borrow();
        is_named(definition, &hosts.me.name, |label| hosts.me.labels.contains(label))
            && (hosts.is_main || !needs_main(definition))
    }

    /// Reads the journal on a thread that may wait for its server.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&JournalReader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let journal = self.0.journal.clone();
        let done = tokio::task::spawn_blocking(move || read(&journal.reader()?)).await;
        done.unwrap_or_else(|error| Err(JournalError::Unreadable(error.to_string())))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the schedule asks about the definition for which a path stands. These functions block.
impl PushedDefinitions {
    fn row(&self, path: &Path) -> Result<Option<Pushed>, JournalError> {
        let Some(id) = pushed_id(path) else { return Ok(None) };
        Ok(self.0.journal.reader()?.pushed(&[id])?.pop())
    }

    /// Whether the definition is in the database. A journal that cannot be read does not say that it is gone.
    pub(super) fn is_there(&self, path: &Path) -> bool {
        self.row(path).map_or(true, |row| row.is_some())
    }

    /// Whether it has this text. A journal that cannot be read does not say that it has changed.
    pub(super) fn is_unchanged(&self, path: &Path, text: &str) -> bool {
        self.row(path).map_or(true, |row| row.is_some_and(|row| row.text == text))
    }

    /// Removes it, since it has its outcome, unless it has another text than `fired`.
    pub(super) fn remove(&self, path: &Path, fired: &str) -> io::Result<Removal> {
        let Some(id) = pushed_id(path) else { return Ok(Removal::Removed) };
        let is_other =
            Handle::current().block_on(self.0.journal.remove_pushed(&id, fired)).map_err(io::Error::other)?;
        if is_other {
            self.look_soon();
            return Ok(Removal::Changed);
        }
        self.forget(vec![id]);
        Ok(Removal::Removed)
    }

    /// Makes it a file in `reminders/failed/`, if it still has the time `at`. Returns whether it had.
    pub(super) fn move_to_failed(&self, path: &Path, at: DateTime<Utc>, reason: &str) -> io::Result<bool> {
        let row = self.row(path).map_err(io::Error::other)?;
        let Some(row) = row.filter(|row| row.kind == Kind::Reminder && row.next_due == Some(at)) else {
            return Ok(false);
        };
        definition::keep_as_failed(&self.0.home, row.id.as_str(), &row.text, reason).map_err(io::Error::other)?;
        fail_point!(FailedCopied);
        match self.remove(path, &row.text)? {
            Removal::Removed => Ok(true),
            Removal::Changed => Err(io::Error::other("it was pushed again at this moment")),
        }
    }
}

/// A definition that this host cannot read.
struct Unreadable {
    path: PathBuf,
    problems: Vec<Problem>,
}

fn parsed(home: &Home, defaults: &Defaults, row: Pushed) -> Result<Loaded, Unreadable> {
    let parsed = parse_pushed(home, row.kind, &row.id, row.text.as_bytes(), Some(&row.zone), defaults);
    match parsed.definition {
        Some(definition) => Ok(Loaded { definition: Arc::new(definition), text: row.text.into() }),
        None => Err(Unreadable { path: pushed_path(row.kind, &row.id), problems: parsed.problems }),
    }
}

/// Waits until the hosts differ from `state` in what is of interest. While a host is away that left something, each report counts.
async fn changed(hosts: Option<&mut watch::Receiver<Hosts>>, state: HostsState) {
    let Some(hosts) = hosts else { return std::future::pending().await };
    loop {
        if hosts.changed().await.is_err() {
            return std::future::pending().await;
        }
        let now = HostsState::of(Some(hosts));
        if now != state || now.is_something_left {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
