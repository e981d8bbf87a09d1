//! The hosts that share a journal: which are alive, and what this one may do.
//!
//! A host holds a lease, by the server's clock, and renews it from a separate thread. A host without an answer for
//! [`LEASE_TIMEOUT`] ends itself before another may take over its work. After another host has taken over, it can commit
//! nothing: each commit checks the lease first. Only one commit writes at a time, so nobody takes over in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use tokio::sync::watch;

use super::PAUSED;
use super::database::{Connection, Row, params};
use super::generations::{ConsecutiveFailures, FAILING, failing};
use super::recovery::{UNFINISHED, unfinished};
use super::rows::Columns as _;
use super::{Journal, JournalError, JournalLocation, JournalReader, Server, UnfinishedOccurrence, pushed, settings};
use crate::clock::{Clock, since_boot};
use crate::definition::DefinitionId;
use crate::failpoints::of_lease;

/// Duration of a lease.
const LEASE: Duration = Duration::from_secs(15);

/// Time between renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Time without an answer after which a host ends itself.
const LEASE_TIMEOUT: Duration = Duration::from_secs(12);

/// Time between looks at the other hosts.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum age of the list of all hosts. A host that joins, goes or becomes the main one is seen at the next look.
const LIST_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum wait for an answer about the lease.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum difference from the server's clock. A host with a larger one claims nothing.
const MAX_SKEW: TimeDelta = TimeDelta::seconds(5);

/// The role of the host with the main session, the channels and maintenance.
const MAIN: &str = "main";

/// This host, as it joins the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHost {
    /// Its unique name.
    pub name: String,
    /// The identity of its data folder.
    pub home: String,
    /// Version of the program.
    pub version: String,
    /// Version of its time zone data.
    pub zones: String,
    /// Its time zone, in which jobs without one of their own fire.
    pub timezone: String,
    /// Labels that jobs may require in `labels`.
    pub labels: Vec<String>,
    /// Maximum number of runs at once.
    pub slots: usize,
}

/// A host, as shown to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// Whether its lease holds.
    pub alive: bool,
    /// When its lease ends or ended.
    pub lease_until: DateTime<Utc>,
    /// When it last joined.
    pub joined: DateTime<Utc>,
    /// Version of the program.
    pub version: String,
    /// Version of its time zone data.
    pub zones: String,
    /// Its time zone; `None` for a host of an earlier version that has not joined since.
    pub timezone: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Maximum number of runs at once.
    pub slots: u32,
    /// Number of its open occurrences.
    pub open: u32,
    /// How far its clock is ahead of the server's, in milliseconds.
    pub skew_ms: i64,
    /// Whether it has the main session and the channels.
    pub main: bool,
}

impl HostRecord {
    /// Returns whether its clock is close enough to the server's to fire occurrences.
    #[must_use]
    pub fn has_correct_time(&self) -> bool {
        self.skew_ms.abs() <= MAX_SKEW.num_milliseconds()
    }
}

/// A host that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its labels, as its owner set them.
    pub labels: BTreeSet<String>,
    /// Versions of the program and of its time zone data.
    pub versions: (String, String),
    /// Its time zone, if that is known.
    pub timezone: Option<String>,
    /// Whether it has the main session and the channels.
    pub is_main: bool,
}

/// The state of all hosts, as this host knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// This host.
    pub me: Member,
    /// The hosts that are alive, by name, this one included.
    pub alive: Vec<Member>,
    /// Maximum lead of this host's clock over the server's; negative: it is behind.
    pub ahead: TimeDelta,
    /// Whether this host has the main session and the channels.
    pub is_main: bool,
    /// Hosts that are not alive but have open occurrences.
    pub left_open: BTreeSet<String>,
    /// Whether an occurrence waits for a host that may run it.
    pub is_some_unassigned: bool,
    /// Whether a person has paused everything, on any host.
    pub paused: bool,
    /// Definitions that failed lately, on any host.
    pub failing: Vec<ConsecutiveFailures>,
    /// Version of the last change of definitions in the database.
    pub pushed: i64,
}

impl Hosts {
    /// Returns whether this host's clock is close enough to the server's to fire occurrences.
    #[must_use]
    pub fn has_correct_time(&self) -> bool {
        self.ahead.abs() <= MAX_SKEW
    }

    /// Returns how long this host waits after a time by its own clock, so that it has come by the server's.
    #[must_use]
    pub fn waits(&self) -> TimeDelta {
        self.ahead.max(TimeDelta::zero())
    }

    /// Returns whether this host is first among those that may run a definition. All hosts agree without communication.
    #[must_use]
    pub fn is_first_for(&self, id: &DefinitionId, may: impl Fn(&Member) -> bool) -> bool {
        let weight = |member: &Member| weight(&member.name, id.as_str());
        let first = self.alive.iter().filter(|member| may(member)).max_by_key(|member| weight(member));
        first.is_none_or(|first| first.name == self.me.name)
    }

    /// Returns how many living hosts come before this one for a definition that any host may run.
    #[must_use]
    pub fn rank_for(&self, id: &DefinitionId) -> usize {
        let mine = weight(&self.me.name, id.as_str());
        self.alive.iter().filter(|member| weight(&member.name, id.as_str()) > mine).count()
    }

    /// Returns the zone of jobs without one of their own, which two hosts must not fire at different times: that of the main host, or if
    /// it may not run them, of the first one that may.
    #[must_use]
    pub fn common_zone(&self, may: impl Fn(&Member) -> bool) -> Option<&str> {
        let able = || self.alive.iter().filter(|member| may(member) && member.timezone.is_some());
        able().find(|member| member.is_main).or_else(|| able().next())?.timezone.as_deref()
    }

    /// Returns whether another host has newer time zone data.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.alive.iter().any(|member| member.versions.1 > self.me.versions.1)
    }
}

/// Hashes with FNV-1a, the same on every host and in every version.
fn weight(host: &str, id: &str) -> u64 {
    let bytes = host.bytes().chain([0]).chain(id.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // Without this step, names that differ only in their last letters would get similar weights.
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The reaction to a lost lease. Called once, from a separate thread, with the reason. Everything that this process
/// runs must end before it returns, or with it.
pub type OnLost = Box<dyn FnOnce(&str) + Send>;

impl Journal {
    /// Joins the hosts that share this journal. From then on, writes only while the lease holds. Returns `None` if
    /// the journal is a file, which has one host.
    ///
    /// # Errors
    /// [`JournalError::HostTaken`], or when the server does not answer.
    pub fn join(&mut self, new: NewHost, on_lost: OnLost) -> Result<Option<watch::Receiver<Hosts>>, JournalError> {
        let JournalLocation::Server(server) = self.place.clone() else { return Ok(None) };
        let mut lease = Lease::take(server, new, self.clock.clone())?;
        self.writer.fence(&lease.me.name, lease.epoch)?;
        self.lease = Some((lease.me.name.clone(), lease.epoch));
        let (hosts, known) = watch::channel(lease.look()?.hosts);
        self.hosts = Some(known.clone());
        let (leaving, journal) = (Arc::clone(&self.leaving), Arc::downgrade(&self.writer));
        let open = journal.clone();
        let goes_on = move || open.strong_count() > 0 && !leaving.load(Ordering::SeqCst);
        let (newest_message, routed, looked) = (self.newest.clone(), self.routed.clone(), self.looked.clone());
        let news = move |event: i64, message: i64| {
            looked.send_if_modified(|known| std::mem::replace(known, event) != event);
            if let Some(writer) = journal.upgrade() {
                writer.note_newest_event(event);
            }
            if newest_message.send_if_modified(|newest| std::mem::replace(newest, message.max(*newest)) < message) {
                routed.send_modify(|count| *count += 1);
            }
        };
        let renewed = Arc::clone(&lease.renewed);
        let ((tell, told), watched) = (sync_channel(1), goes_on.clone());
        let spawn = |name: &str, does: Box<dyn FnOnce() + Send>| {
            let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(does);
            spawned.map(drop).map_err(|error| JournalError::Away(Arc::new(error)))
        };
        spawn("lease", Box::new(move || lease.renew_until_lost(&hosts, goes_on, news, &tell)))?;
        spawn("lease-watch", Box::new(move || watch_lease(&renewed, watched, &told, on_lost)))?;
        Ok(Some(known))
    }

    /// Ends this host's lease, so that others need not wait for its end. Stops the renewal first.
    pub(super) async fn leave(&self, host: String, epoch: i64) {
        let JournalLocation::Server(server) = self.place.clone() else { return };
        self.leaving.store(true, Ordering::SeqCst);
        let left = tokio::task::spawn_blocking(move || {
            let connection = connect(&server, of_lease(TIMEOUT))?;
            let sql = "UPDATE host SET lease_until = now() WHERE name = ?1 AND epoch = ?2";
            connection.execute(sql, params![host, epoch])
        });
        if let Ok(Err(error)) = left.await {
            tracing::debug!(%error, "the lease on the journal was not ended; it runs out");
        }
    }

    /// Returns the state of all hosts that share the journal; `None` if there is only this one.
    #[must_use]
    pub fn hosts(&self) -> Option<watch::Receiver<Hosts>> {
        self.hosts.clone()
    }

    /// Returns whether the journal is on a server and several hosts may share it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.hosts.is_some()
    }

    /// Returns a value that changes within a second after any host has recorded an event; `None` if there is only this one.
    #[must_use]
    pub fn news_of_hosts(&self) -> Option<watch::Receiver<i64>> {
        self.hosts.as_ref().map(|_| self.looked.subscribe())
    }

    /// Behaves as if these hosts shared the journal.
    #[cfg(test)]
    pub(crate) fn share(&mut self, hosts: watch::Receiver<Hosts>) {
        self.hosts = Some(hosts);
    }

    /// Returns whether this host has the main session and the channels. Always so for a journal with one host.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.borrow().is_main)
    }

    /// Waits until this host has the main session and the channels.
    pub async fn until_main(&self) {
        if let Some(mut hosts) = self.hosts.clone() {
            // An error means that the journal is closed, so nothing follows.
            let _closed = hosts.wait_for(|hosts| hosts.is_main).await;
        }
    }

    /// Takes over open occurrences of the definitions `known` from hosts whose lease has ended, and those that no host has yet. Running
    /// attempts count as cut off. A host whose lease has ended can commit nothing afterwards.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn take_over(&self, known: Takeover) -> Result<Vec<UnfinishedOccurrence>, JournalError> {
        let (clock, may) = (self.clock.clone(), known.clone());
        // What no host can take over stays for long, and each host looks every second. That must not hold up their commits.
        let left = self.writer.read(move |connection| match connection.host() {
            Some(me) => left_open(connection, me, &may),
            None => Ok(Vec::new()),
        });
        if left.await?.is_empty() {
            return Ok(Vec::new());
        }
        fail_point!(BeforeTakeOver);
        let (taken, newest) = self.writer.commit(move |connection| take_over(connection, &known, clock.now())).await?;
        if !taken.is_empty() {
            fail_point!(TakenOver);
        }
        self.announce(newest);
        Ok(taken)
    }
}

impl JournalReader {
    /// Returns the hosts that share the journal, by name. Empty for a file.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn hosts(&self) -> Result<Vec<HostRecord>, JournalError> {
        match self.connection() {
            Some(connection @ Connection::Postgres(_)) => records(connection),
            _ => Ok(Vec::new()),
        }
    }
}

impl JournalReader {
    /// Tries whether the journal on a server can be written, and changes nothing. A file is not tried.
    ///
    /// # Errors
    /// The error that a commit would meet.
    pub fn try_writing(&self) -> Result<(), JournalError> {
        let Some(connection @ Connection::Postgres(_)) = self.connection() else { return Ok(()) };
        let tried = connection.batch(TRY_WRITING).and_then(|()| match connection.batch(TRY_SPACE) {
            // The service needs no tables of its own.
            Err(JournalError::Denied(_)) => Ok(()),
            tried => tried,
        });
        tried.and(connection.batch("ROLLBACK"))
    }

    /// Fails with [`JournalError::Moved`] if the journal was moved elsewhere, so that nothing fires by it any more. `place`: its location.
    ///
    /// # Errors
    /// See above, and fails when the journal cannot be read.
    pub fn refuse_moved(&self, place: &JournalLocation) -> Result<(), JournalError> {
        self.connection().map_or(Ok(()), |connection| super::copy::refuse_moved(connection, place))
    }

    /// Returns how many replicas may lag behind the server; 0 for a file. A role without `pg_monitor` sees that a replica is there, and
    /// not whether the server waits for it.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub fn asynchronous_replicas(&self) -> Result<u32, JournalError> {
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'async') = 'async'";
        match self.connection() {
            Some(connection @ Connection::Postgres(_)) => connection.row(sql, (), |row| row.get(0)),
            _ => Ok(0),
        }
    }
}

/// Fails where a role may not write, or the database only reads.
const TRY_WRITING: &str = "BEGIN; SET LOCAL statement_timeout = '5s';
    UPDATE journal SET version = version WHERE FALSE; UPDATE host SET epoch = epoch WHERE FALSE;
    INSERT INTO occurrence SELECT * FROM occurrence WHERE FALSE; UPDATE occurrence SET at = at WHERE FALSE;
    INSERT INTO run SELECT * FROM run WHERE FALSE; UPDATE run SET state = state WHERE FALSE;
    INSERT INTO message SELECT * FROM message WHERE FALSE; INSERT INTO delivery SELECT * FROM delivery WHERE FALSE;
    INSERT INTO event SELECT * FROM event WHERE FALSE";

/// Takes a megabyte of the server's disk until it is rolled back.
const TRY_SPACE: &str = "CREATE TEMPORARY TABLE try_space ON COMMIT DROP AS
    SELECT md5(CAST(line AS TEXT)) AS text FROM generate_series(1, 16384) AS line";

const HOSTS: &str = "SELECT h.name, h.lease_until > now() AS alive, CAST(extract(epoch FROM h.lease_until) * 1000 AS BIGINT) AS lease_until,
      CAST(extract(epoch FROM h.joined) * 1000 AS BIGINT) AS joined, h.version, h.zones, h.labels, h.slots, h.skew_ms,
      coalesce(going.open, 0) AS open, (SELECT value FROM setting WHERE key = concat('timezone ', h.name)) AS timezone,
      EXISTS (SELECT 1 FROM role r WHERE r.name = 'main' AND r.host = h.name AND r.epoch = h.epoch AND h.lease_until > now()) AS main
    FROM host h LEFT JOIN (SELECT host, count(*) AS open FROM occurrence WHERE outcome IS NULL GROUP BY host) going
      ON going.host = h.name ORDER BY h.name";

/// All that changes for a host from one look to the next, without the list of all hosts, which takes ten times as long to read. `mark`
/// changes when the list does: a host has joined, gone, or become the main one; or an occurrence was left to others.
const LOOK: &str = "SELECT
      concat((SELECT sum(hashtext(name || ' ' || epoch)) FROM host WHERE lease_until > now()), ' ',
        (SELECT host || ' ' || epoch FROM role WHERE name = ?1), ' ', (SELECT value FROM setting WHERE key = ?4)) AS mark,
      EXISTS (SELECT 1 FROM setting WHERE key = ?2) AS paused, (SELECT value FROM setting WHERE key = ?3) AS pushed,
      (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM event_number_seq) AS event,
      (SELECT coalesce(max(number), 0) FROM message) AS message";

/// Whether an occurrence waits for a host.
const UNASSIGNED: &str = "SELECT EXISTS (SELECT 1 FROM occurrence WHERE outcome IS NULL AND host IS NULL)";

fn records(connection: &Connection) -> Result<Vec<HostRecord>, JournalError> {
    connection.all(HOSTS, (), |row| {
        let labels: String = row.get("labels")?;
        Ok(HostRecord {
            name: row.get("name")?,
            alive: row.get("alive")?,
            lease_until: row.at("lease_until")?,
            joined: row.at("joined")?,
            version: row.get("version")?,
            zones: row.get("zones")?,
            timezone: row.get("timezone")?,
            labels: labels.split_whitespace().map(str::to_owned).collect(),
            slots: row.get("slots")?,
            open: row.get("open")?,
            skew_ms: row.get("skew_ms")?,
            main: row.get("main")?,
        })
    })
}

/// What a host may take over.
#[derive(Clone, Debug, Default)]
pub struct Takeover {
    /// The definitions that it may run.
    pub may_run: BTreeSet<DefinitionId>,
    /// Those that it leaves to others, if it concludes what belongs to no definition: the main host does.
    pub of_others: Option<BTreeSet<DefinitionId>>,
}

impl Takeover {
    fn takes(&self, left: &LeftOpen) -> bool {
        let is_orphan = |others: &BTreeSet<DefinitionId>| left.is_orphan && !others.contains(&left.id);
        self.may_run.contains(&left.id) || self.of_others.as_ref().is_some_and(is_orphan)
    }
}

/// How long an occurrence without a host waits for one that has its definition, whose file may still be on its way.
const ORPHAN: Duration = Duration::from_secs(60);

/// An open occurrence to take over.
struct LeftOpen {
    number: i64,
    id: DefinitionId,
    /// The host that is gone; `None` if no host has had it.
    host: Option<String>,
    /// Whether it has waited for a host for long.
    is_orphan: bool,
}

/// Returns the open occurrences of hosts that are gone, and of none, which this host may take over.
fn left_open(connection: &Connection, me: &str, known: &Takeover) -> Result<Vec<LeftOpen>, JournalError> {
    let sql = "SELECT o.number, o.id, o.host, o.host IS NULL AND o.claimed < extract(epoch FROM now()) * 1000 - CAST(?2 AS BIGINT) AS orphan
               FROM occurrence o LEFT JOIN host h ON h.name = o.host
               WHERE o.outcome IS NULL AND (o.host IS NULL OR (h.lease_until < now() AND h.name <> ?1)) ORDER BY o.number";
    let read = |row: &Row<'_>| {
        let (number, is_orphan) = (row.get("number")?, row.get("orphan")?);
        Ok(LeftOpen { number, id: row.id("id")?, host: row.get("host")?, is_orphan })
    };
    let orphan = i64::try_from(of_lease(ORPHAN).as_millis()).unwrap_or(i64::MAX);
    let mut left = connection.all(sql, params![me, orphan], read)?;
    left.retain(|left| known.takes(left));
    Ok(left)
}

/// Beginning of the key of the setting with a host's time zone. The host's name follows. [`HOSTS`] reads it.
const TIMEZONE_OF: &str = "timezone";

/// The setting that counts the occurrences that a host has left to others. A change has the hosts look for them.
const LEFT: &str = "left_to_others";

/// Has the other hosts look for an occurrence that this one leaves to them.
pub(super) fn note_left(connection: &Connection) -> Result<(), JournalError> {
    let count: u64 = settings::get(connection, LEFT)?.and_then(|count| count.parse().ok()).unwrap_or(0);
    settings::set(connection, LEFT, &count.wrapping_add(1).to_string())
}

fn take_over(
    connection: &Connection,
    known: &Takeover,
    now: DateTime<Utc>,
) -> Result<(Vec<UnfinishedOccurrence>, i64), JournalError> {
    let Some(me) = connection.host().map(str::to_owned) else { return Ok((Vec::new(), 0)) };
    let mut left = left_open(connection, &me, known)?;
    let gone: BTreeSet<String> = left.iter().filter_map(|left| left.host.clone()).collect();
    for host in &gone {
        // From here on, commits of that host fail. The statements below see everything that it committed before.
        let raised = "UPDATE host SET epoch = epoch + 1 WHERE name = ?1 AND lease_until < now()";
        if connection.execute(raised, [host])? == 0 {
            left.retain(|left| left.host.as_ref() != Some(host));
        }
    }
    if !left.is_empty() {
        fail_point!(EpochRaised);
    }
    let (mut taken, mut newest) = (Vec::new(), 0);
    for LeftOpen { number, host, .. } in &left {
        let ours = "UPDATE occurrence SET host = ?2 WHERE number = ?1 AND outcome IS NULL";
        if connection.execute(ours, params![number, me])? == 0 {
            continue;
        }
        // A run that was not begun will begin here.
        let not_begun = "UPDATE run SET host = ?2 WHERE occurrence = ?1 AND state = 'claimed'";
        connection.execute(not_begun, params![number, me])?;
        if let Some(host) = host {
            let why = format!("the host {host} went away while it was going");
            super::recovery::interrupt(connection, "occurrence = ?3", number, &why, now)?;
            newest = newest.max(super::questions::end_taken(connection, *number, host, now)?);
        }
        let sql = UNFINISHED.replace("o.outcome IS NULL", "o.number = ?1");
        taken.extend(connection.one(&sql, [number], unfinished)?);
    }
    Ok((taken, newest))
}

/// How far this host's clock is ahead of the server's. The server read its own between request and answer. So a
/// slow answer gives a wide range, and the range of an earlier, faster answer still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockOffset {
    least: TimeDelta,
    most: TimeDelta,
    /// Time of the answer, since boot.
    at: Duration,
}

impl ClockOffset {
    /// The most that a clock under correction gains or loses: 1 / 2000 of the elapsed time.
    const SLEW: u32 = 2000;

    /// Combines this range with a new one. If they contradict each other, a clock was set, and only the new one counts.
    fn with(self, seen: Self) -> Self {
        let slew = TimeDelta::from_std(seen.at.saturating_sub(self.at) / Self::SLEW).unwrap_or_default();
        let (least, most) = (seen.least.max(self.least - slew), seen.most.min(self.most + slew));
        if least <= most { Self { least, most, at: seen.at } } else { seen }
    }
}

/// This host's lease, and the connection that renews it.
struct Lease {
    server: Server,
    link: Option<Connection>,
    me: Member,
    epoch: i64,
    clock: Clock,
    /// When the last answered renewal was sent, in milliseconds since boot, since a lease runs on while the machine is suspended.
    renewed: Arc<AtomicU64>,
    ahead: Option<ClockOffset>,
    list: HostList,
}

/// All hosts, as last read.
#[derive(Default)]
struct HostList {
    records: Vec<HostRecord>,
    is_some_unassigned: bool,
    /// The mark of [`LOOK`] right before, and when it was read, since boot.
    read: Option<(String, Duration)>,
}

/// What a look at the server has found.
struct Look {
    hosts: Hosts,
    /// Whether this host has to give up the main role.
    gives_up: bool,
    /// Numbers of the newest event and message.
    newest: (i64, i64),
}

/// The reason why a lease was lost.
struct LeaseLost(String);

impl Lease {
    /// Takes the lease, also from an earlier process of the same data folder.
    fn take(server: Server, new: NewHost, clock: Clock) -> Result<Self, JournalError> {
        let link = connect(&server, of_lease(TIMEOUT))?;
        let renewed = Arc::new(AtomicU64::new(millis(since_boot())));
        let sql = "INSERT INTO host (name, home, epoch, lease_until, joined, version, zones, labels, slots)
             VALUES (?1, ?2, 1, now() + CAST(?3 AS INTERVAL), now(), ?4, ?5, ?6, ?7)
             ON CONFLICT (name) DO UPDATE
             SET home = excluded.home, epoch = host.epoch + 1, lease_until = excluded.lease_until, joined = excluded.joined,
               version = excluded.version, zones = excluded.zones, labels = excluded.labels, slots = excluded.slots
             WHERE host.home = excluded.home OR host.lease_until < now()
             RETURNING epoch";
        let slots = i64::try_from(new.slots).unwrap_or(i64::MAX);
        let values = params![new.name, new.home, lease(), new.version, new.zones, new.labels.join(" "), slots];
        let Some(epoch) = link.one(sql, values, |row| row.get("epoch"))? else {
            return Err(JournalError::HostTaken(new.name));
        };
        settings::set(&link, &format!("{TIMEZONE_OF} {}", new.name), &new.timezone)?;
        let (labels, versions) = (new.labels.into_iter().collect(), (new.version, new.zones));
        let me = Member { name: new.name, labels, versions, timezone: Some(new.timezone), is_main: false };
        let mut lease =
            Self { server, link: Some(link), me, epoch, clock, renewed, ahead: None, list: HostList::default() };
        // Compare the clocks before any occurrence fires. The second renewal records the result for the others.
        for _ in 0..2 {
            if lease.renew()?.is_err() {
                return Err(JournalError::Fenced);
            }
        }
        Ok(lease)
    }

    fn link(&mut self) -> Result<&Connection, JournalError> {
        let left = of_lease(LEASE_TIMEOUT).saturating_sub(since(&self.renewed));
        let patience = of_lease(TIMEOUT).min(left).max(Duration::from_millis(100));
        let usable = self.link.take().filter(|link| !link.is_closed());
        let link = match usable {
            Some(mut link) => {
                link.set_timeout(patience);
                link
            }
            None => connect(&self.server, patience)?,
        };
        Ok(self.link.insert(link))
    }

    /// Renews the lease, and compares the clocks.
    fn renew(&mut self) -> Result<Result<(), LeaseLost>, JournalError> {
        let (name, epoch, ahead, clock) = (self.me.name.clone(), self.epoch, self.ahead(), self.clock.clone());
        let link = self.link()?;
        let (asked, asked_at) = (since_boot(), clock.now());
        let sql =
            "UPDATE host SET lease_until = now() + CAST(?3 AS INTERVAL), skew_ms = ?4 WHERE name = ?1 AND epoch = ?2
             RETURNING CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now";
        let values = params![name, epoch, lease(), ahead.num_milliseconds()];
        let Some(server) = link.one(sql, values, |row| row.get("now"))? else {
            return Ok(Err(LeaseLost("another host has taken over what this one had".to_owned())));
        };
        let answered = since_boot();
        self.renewed.store(millis(asked), Ordering::SeqCst);
        let server = DateTime::from_timestamp_micros(server)
            .ok_or_else(|| JournalError::Unreadable(format!("the time {server}")))?;
        let took = TimeDelta::from_std(answered.saturating_sub(asked)).unwrap_or_default();
        let seen = ClockOffset { least: asked_at - server, most: asked_at + took - server, at: answered };
        self.ahead = Some(self.ahead.map_or(seen, |known| known.with(seen)));
        Ok(Ok(()))
    }

    fn ahead(&self) -> TimeDelta {
        self.ahead.map_or_else(TimeDelta::zero, |ahead| ahead.most)
    }

    /// Reads the state of all hosts. Takes the main role if no living host has it.
    ///
    /// A host that fires nothing for its clock leaves the role to a host with the right time.
    fn look(&mut self) -> Result<Look, JournalError> {
        let (link, keys) = (self.link()?, [MAIN, PAUSED, pushed::VERSION, LEFT]);
        let read = |row: &Row<'_>| {
            let newest = (row.get("event")?, row.get("message")?);
            Ok((row.get("mark")?, row.get("paused")?, row.get::<Option<String>>("pushed")?, newest))
        };
        let (mark, paused, pushed, newest) = link.row(LOOK, keys, read)?;
        let failing = link.all(FAILING, (), failing)?;
        let leaves_main = self.refresh_list(mark)?;
        let mut hosts = Hosts {
            me: self.me.clone(),
            alive: Vec::new(),
            ahead: self.ahead(),
            is_main: false,
            left_open: BTreeSet::new(),
            is_some_unassigned: self.list.is_some_unassigned,
            paused,
            failing,
            pushed: pushed.and_then(|count| count.parse().ok()).unwrap_or(0),
        };
        let mut is_idle = true;
        for host in &self.list.records {
            if host.name == hosts.me.name {
                hosts.is_main = host.main;
                is_idle = host.open == 0;
            }
            if host.alive {
                let (labels, versions) =
                    (host.labels.iter().cloned().collect(), (host.version.clone(), host.zones.clone()));
                let (timezone, is_main) = (host.timezone.clone(), host.main);
                hosts.alive.push(Member { name: host.name.clone(), labels, versions, timezone, is_main });
            } else if host.open > 0 {
                hosts.left_open.insert(host.name.clone());
            }
        }
        // What it has going ends first.
        let gives_up = leaves_main && hosts.is_main && is_idle;
        Ok(Look { hosts, gives_up, newest })
    }

    /// Reads the list of all hosts, unless it is known to be the same. Takes the main role if no living host has it, and this one need
    /// not leave it to another. Returns whether it has to.
    fn refresh_list(&mut self, mark: String) -> Result<bool, JournalError> {
        let is_right = self.ahead().abs() <= MAX_SKEW;
        let (now, list) = (since_boot(), &self.list);
        let is_new = list.read.as_ref().is_some_and(|(of, at)| *of == mark && now - *at < of_lease(LIST_INTERVAL));
        // A host with a wrong clock acts by what the others do, and by what it has open itself.
        if is_new && is_right && list.records.iter().any(|host| host.main) {
            return Ok(false);
        }
        let (name, epoch) = (self.me.name.clone(), self.epoch);
        let link = self.link()?;
        let mut found = records(link)?;
        let others = found.iter().filter(|host| host.alive && host.name != name);
        let leaves_main = !is_right && others.into_iter().any(HostRecord::has_correct_time);
        if !leaves_main && !found.iter().any(|host| host.main) {
            let take = "INSERT INTO role (name, host, epoch) SELECT ?1, h.name, h.epoch FROM host h
                   WHERE h.name = ?2 AND h.epoch = ?3 AND h.lease_until > now()
                 ON CONFLICT (name) DO UPDATE SET host = excluded.host, epoch = excluded.epoch
                 WHERE NOT EXISTS (SELECT 1 FROM host h WHERE h.name = role.host AND h.epoch = role.epoch AND h.lease_until > now())";
            link.execute(take, params![MAIN, name, epoch])?;
            found = records(link)?;
        }
        let is_some_unassigned = link.row(UNASSIGNED, (), |row| row.get(0))?;
        self.list = HostList { records: found, is_some_unassigned, read: Some((mark, now)) };
        Ok(leaves_main)
    }

    /// Renews the lease until the journal is closed, or the lease is lost.
    fn renew_until_lost(
        mut self,
        hosts: &watch::Sender<Hosts>,
        goes_on: impl Fn() -> bool,
        news: impl Fn(i64, i64),
        lost: &SyncSender<LeaseLost>,
    ) {
        let mut said = None;
        loop {
            std::thread::sleep(of_lease(POLL_INTERVAL));
            if !goes_on() {
                return;
            }
            let looked = match self.renew_and_look(since(&self.renewed) >= of_lease(RENEWAL_INTERVAL)) {
                Ok(Ok(looked)) => looked,
                Ok(Err(why)) => {
                    // The receiver may have ended.
                    let _heard = lost.send(why);
                    return;
                }
                Err(error) => {
                    let cause = error.cause();
                    if said.as_ref() != Some(&cause) {
                        tracing::warn!(%error, cause, "the lease on the journal could not be renewed; trying again");
                        said = Some(cause);
                    }
                    continue;
                }
            };
            said = None;
            let Look { hosts: now, newest: (event, message), .. } = looked;
            hosts.send_if_modified(|known| {
                // Report these again, since a host may be able to take them over later.
                let changed = *known != now || now.is_some_unassigned || !now.left_open.is_empty();
                *known = now;
                changed
            });
            news(event, message);
        }
    }

    fn renew_and_look(&mut self, renews: bool) -> Result<Result<Look, LeaseLost>, JournalError> {
        if renews {
            fail_point!(BeforeRenewal);
            if let Err(lost) = self.renew()? {
                return Ok(Err(lost));
            }
            fail_point!(Renewed);
        }
        let look = self.look()?;
        tracing::debug!(hosts = ?look.hosts, "looked at the hosts");
        if look.gives_up {
            // The parts of the main host last as long as its process.
            return Ok(Err(LeaseLost("its clock is wrong, and another host can be the main one".to_owned())));
        }
        Ok(Ok(look))
    }
}

/// Waits until the lease is lost, or the journal is closed. A slow or silent server blocks the thread that renews
/// the lease, not this one.
fn watch_lease(renewed: &AtomicU64, goes_on: impl Fn() -> bool, lost: &Receiver<LeaseLost>, on_lost: OnLost) {
    let why = loop {
        match lost.recv_timeout(of_lease(POLL_INTERVAL) / 4) {
            Ok(why) => break why,
            Err(_) if !goes_on() => return,
            Err(_) => {}
        }
        let without = since(renewed);
        if without >= of_lease(LEASE_TIMEOUT) {
            break LeaseLost(format!("it could not be renewed for {} s", without.as_secs()));
        }
    };
    if goes_on() {
        on_lost(&why.0);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn since(moment: &AtomicU64) -> Duration {
    since_boot().saturating_sub(Duration::from_millis(moment.load(Ordering::SeqCst)))
}

fn lease() -> String {
    format!("{} milliseconds", of_lease(LEASE).as_millis())
}

fn connect(server: &Server, patience: Duration) -> Result<Connection, JournalError> {
    let mut connection = Connection::Postgres(server.connect()?);
    connection.set_timeout(patience);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Claim, NewClaim, RunId};

    fn member(name: &str) -> Member {
        let versions = ("1".to_owned(), "2026b".to_owned());
        Member { name: name.to_owned(), labels: BTreeSet::new(), versions, timezone: None, is_main: false }
    }

    fn hosts(me: &str, names: &[&str]) -> Hosts {
        Hosts {
            me: member(me),
            alive: names.iter().map(|name| member(name)).collect(),
            ahead: TimeDelta::zero(),
            is_main: false,
            left_open: BTreeSet::new(),
            is_some_unassigned: false,
            paused: false,
            failing: Vec::new(),
            pushed: 0,
        }
    }

    #[test]
    fn what_a_fast_answer_tells_of_the_clock_counts_until_it_is_set() {
        let ahead = |least: i64, most: i64, at: u64| ClockOffset {
            least: TimeDelta::microseconds(least),
            most: TimeDelta::microseconds(most),
            at: Duration::from_secs(at),
        };
        let fast = ahead(700_000, 700_400, 0);
        // A slow answer for which the server read its clock at the very end. The middle of the range would be 250 ms too low.
        assert_eq!(fast.with(ahead(200_300, 700_300, 5)), ahead(697_500, 700_300, 5));
        assert_eq!(fast.with(ahead(699_900, 1_200_000, 5)), ahead(699_900, 702_900, 5));
        let set = ahead(-300, 400, 5);
        assert_eq!(fast.with(set), set);
        assert_eq!(set.with(fast), fast);
    }

    #[test]
    fn each_definition_has_one_first_host_and_they_share_the_work() {
        let names = ["attic", "home", "laptop", "server"];
        let mut counts = [0; 4];
        for number in 0..4000 {
            let id = DefinitionId::new(format!("job-{number}"));
            let first: Vec<usize> =
                (0..4).filter(|place| hosts(names[*place], &names).is_first_for(&id, |_| true)).collect();
            let [place] = first[..] else { panic!("{id}: {first:?}") };
            counts[place] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_host_that_goes_moves_only_its_own() {
        let (all, three) = (["attic", "home", "laptop", "server"], ["attic", "home", "server"]);
        for number in 0..500 {
            let id = DefinitionId::new(format!("job-{number}"));
            for name in three {
                let before = hosts(name, &all).is_first_for(&id, |_| true);
                assert!(!before || hosts(name, &three).is_first_for(&id, |_| true));
            }
        }
    }

    fn new_host(name: &str) -> NewHost {
        NewHost {
            name: name.to_owned(),
            home: format!("home of {name}"),
            version: "1".to_owned(),
            zones: "2026b".to_owned(),
            timezone: "UTC".to_owned(),
            labels: Vec::new(),
            slots: 4,
        }
    }

    fn only(ids: &[&str]) -> Takeover {
        Takeover { may_run: ids.iter().map(|id| DefinitionId::new(*id)).collect(), of_others: None }
    }

    /// A server with the journals of two hosts.
    struct HostPair {
        place: JournalLocation,
        clock: Clock,
    }

    impl HostPair {
        fn new(folder: &std::path::Path) -> Self {
            Self { place: crate::journal::testing::on_server(&folder.join("journal.db")), clock: Clock::system() }
        }

        fn join(&self, name: &str) -> Journal {
            let mut journal = Journal::open(&self.place, self.clock.clone()).unwrap();
            // The test sees a lost lease in the records.
            journal.join(new_host(name), Box::new(|_| ())).unwrap();
            journal
        }

        /// Lets a host's lease end in `ms` milliseconds.
        fn expire(&self, name: &str, ms: i64) {
            let JournalLocation::Server(server) = &self.place else { panic!("it is on a server") };
            let connection = connect(server, TIMEOUT).unwrap();
            let sql = "UPDATE host SET lease_until = now() + CAST(?2 AS INTERVAL) WHERE name = ?1";
            connection.execute(sql, params![name, format!("{ms} milliseconds")]).unwrap();
        }

        fn due(&self, id: &str) -> NewClaim {
            use crate::journal::{Occurrence, Purpose};
            NewClaim {
                occurrence: Occurrence {
                    id: DefinitionId::new(id),
                    kind: crate::definition::Kind::Reminder,
                    at: self.clock.now(),
                },
                file: format!("reminders/{id}.md").into(),
                text: "x".into(),
                purpose: Purpose::Run,
                occasion: None,
                origin: None,
                run: RunId::random(),
            }
        }

        async fn start_run(&self, journal: &Journal, id: &str) -> crate::journal::RunId {
            use crate::journal::Punctuality;
            let claim = self.due(id);
            let claimed = journal.claim(vec![claim]).await.unwrap().remove(0);
            let Claim::Claimed(run) = claimed else { panic!("{claimed:?}") };
            journal.launching(&run, "x".into(), String::new(), Punctuality::Unknown).await.unwrap();
            run
        }
    }

    /// What no host may run any more, since its file is gone, is concluded by the main host.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_for_a_host_is_taken_by_one_that_may_run_it_or_at_last_by_the_main_one() {
        use crate::journal::Purpose;
        let folder = tempfile::TempDir::new().unwrap();
        let two = HostPair::new(folder.path());
        let (attic, home) = (two.join("attic"), two.join("home"));
        let taken = async |known: Takeover| home.take_over(known).await.unwrap().len();
        let main = |others: &[&str]| Takeover { of_others: Some(only(others).may_run), ..Takeover::default() };
        for id in ["one", "two"] {
            let claim = NewClaim { purpose: Purpose::RunElsewhere, ..two.due(id) };
            assert!(matches!(attic.claim(vec![claim]).await.unwrap()[..], [Claim::Claimed(_)]));
        }
        assert_eq!(taken(only(&["other"])).await, 0);
        assert_eq!(taken(only(&["one"])).await, 1);
        assert_eq!(taken(main(&[])).await, 0, "its file may be on its way");
        crate::journal::testing::execute(&two.place, "UPDATE occurrence SET claimed = claimed - 120000");
        assert_eq!(taken(main(&["two"])).await, 0, "another host may run it once it is up");
        assert_eq!(taken(main(&[])).await, 1);
        assert_eq!(taken(main(&[])).await, 0, "each is taken once");
    }

    /// Each of many hosts looks every second, and the whole list takes long to read.
    #[test]
    fn the_list_of_hosts_is_read_again_once_one_joins_goes_or_becomes_the_main_one() {
        let folder = tempfile::TempDir::new().unwrap();
        let two = HostPair::new(folder.path());
        let JournalLocation::Server(server) = &two.place else { panic!("it is on a server") };
        let _tables = Journal::open(&two.place, two.clock.clone()).unwrap();
        let join = |name: &str| Lease::take(server.clone(), new_host(name), two.clock.clone()).unwrap();
        let sql = |sql: &str| crate::journal::testing::execute(&two.place, sql);
        let mut attic = join("attic");
        let mut seen = || {
            let hosts = attic.look().unwrap().hosts;
            let alive: Vec<_> = hosts.alive.iter().map(|host| format!("{} {}", host.name, host.versions.0)).collect();
            (alive.join(", "), hosts.is_main, hosts.paused)
        };
        let mut check = |alive: &str, is_main, paused| assert_eq!(seen(), (alive.to_owned(), is_main, paused));
        check("attic 1", true, false);
        let home = join("home");
        check("attic 1, home 1", true, false);
        // No host changes its version while it runs. This shows when the list is read.
        sql("UPDATE host SET version = '2'; INSERT INTO setting (key, value) VALUES ('paused', '')");
        check("attic 1, home 1", true, true);
        sql("UPDATE role SET host = 'home', epoch = (SELECT epoch FROM host WHERE name = 'home')");
        check("attic 2, home 2", false, true);
        two.expire("home", -1);
        check("attic 2", true, true);
        drop(home);
    }

    /// The host that takes over sees every granted effect: a run with a marked effect never counts as one without.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_effect_is_marked_before_another_host_looks_or_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let two = HostPair::new(folder.path());
        let home = two.join("home");
        let (mut granted, mut refused) = (0, 0);
        for round in 0..60 {
            let id = format!("job-{round}");
            let attic = two.join("attic");
            let run = two.start_run(&attic, &id).await;
            two.expire("attic", 10);
            let pause = Duration::from_millis(round % 20);
            let marking = async {
                tokio::time::sleep(pause).await;
                attic.mark_effect(&run, "Write").await
            };
            let taking = async {
                loop {
                    let taken = home.take_over(only(&[&id])).await.unwrap();
                    if let [one] = &taken[..] {
                        return one.clone();
                    }
                }
            };
            let (marked, taken) = tokio::join!(marking, taking);
            match marked {
                Ok(()) => {
                    granted += 1;
                    assert_eq!(taken.effect.as_deref(), Some("Write"), "round {round}: granted, and not seen");
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, JournalError::Fenced), "{error}");
                    assert_eq!(taken.effect, None);
                }
            }
            // The host that lost its lease can write nothing any more.
            let late = attic.message(crate::journal::NewMessage::of_service("late")).await;
            assert!(matches!(late, Err(JournalError::Fenced)), "{late:?}");
        }
        assert!(granted > 0 && refused > 0, "{granted} granted, {refused} refused: the race has two ends");
    }

    /// Reads before a write see no change in between, as if there were one writer.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn what_two_hosts_count_together_is_the_sum() {
        let folder = tempfile::TempDir::new().unwrap();
        let two = HostPair::new(folder.path());
        let count = async |journal: Journal| {
            for _ in 0..50 {
                let more = |stored: Option<&str>| {
                    let count: u32 = stored.map_or(0, |stored| stored.parse().unwrap());
                    Some(((count + 1).to_string(), ()))
                };
                journal.change_setting("count", more).await.unwrap();
            }
        };
        let (attic, home) = (two.join("attic"), two.join("home"));
        let counting = [count(attic.clone()), count(home)].map(tokio::spawn);
        futures::future::try_join_all(counting).await.unwrap();
        assert_eq!(attic.setting("count").await.unwrap().as_deref(), Some("100"));
    }

    /// A host whose lease has ended writes nothing before it has renewed it, even if nobody took over.
    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_written_without_a_lease() {
        let folder = tempfile::TempDir::new().unwrap();
        let two = HostPair::new(folder.path());
        let attic = two.join("attic");
        two.expire("attic", -1);
        let late = attic.message(crate::journal::NewMessage::of_service("late")).await;
        assert!(matches!(late, Err(JournalError::Fenced)), "{late:?}");
        // The same host as before continues at once.
        let again = two.join("attic");
        again.message(crate::journal::NewMessage::of_service("on time")).await.unwrap();
        // Another data folder with this name has to wait.
        let mut other = Journal::open(&two.place, two.clock.clone()).unwrap();
        let new = NewHost { home: "another".to_owned(), ..new_host("attic") };
        assert!(matches!(other.join(new, Box::new(|_| ())), Err(JournalError::HostTaken(_))));
    }
}
