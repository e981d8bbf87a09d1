//! Three hosts that share a journal on a real server: each may be killed, stopped and lose the server at any moment.
//!
//! A *round* kills one of them at a random moment, starts it again so that it is killed (or stops itself) at a named step, gives all of
//! them the same reminders, and has something else happen besides: to another host, or to the server. Leases are short, so that they run
//! out within a round. Every few rounds all come to rest, and what the clients have recorded outside of the program is compared with the
//! journal. The server's own clock says whether anything was claimed before its time, by a trigger that the program knows nothing of.
//!
//! `scripts/kill-test --hosts --rounds 1000` is the long form.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use ollim_bot::clock::Clock;
use ollim_bot::failpoints::Step;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::check::{self, KEPT, Message, Occurrence, Run};
use crate::failing_steps::Fixture;
use crate::jobs::{Job, Kind};
use crate::postgres::Postgres;
use crate::rng::Rng;
use crate::service_process::{STUCK, ServiceProcess, Setting};
use crate::world::executable;
use crate::{Binary, number, processes};

/// How many hundredths of their time leases last here.
const LEASE_PERCENT: u64 = 14;

/// A lease, with what it takes to notice its end.
const LEASE: Duration = Duration::from_millis(15_000 * LEASE_PERCENT / 100 + 300);

/// Rounds on one server.
const ROUNDS_A_WORLD: usize = 6;

/// A step that has not come by then does not come in this round.
const COMES_WITHIN: Duration = Duration::from_secs(3);

/// The steps that a round may have.
const STEPS: [Step; 27] = [
    Step::Locked,
    Step::JournalOpened,
    Step::Recovered,
    Step::BeforeAgain,
    Step::AgainRecorded,
    Step::BeforeClaim,
    Step::Claimed,
    Step::BeforeLaunch,
    Step::Launched,
    Step::BeforeSpawn,
    Step::Spawned,
    Step::StartRecorded,
    Step::BeforeMark,
    Step::Marked,
    Step::BeforeMessage,
    Step::MessageRecorded,
    Step::BeforeOutcome,
    Step::OutcomeRecorded,
    Step::BeforeShow,
    Step::Shown,
    Step::BeforeFile,
    Step::FileDone,
    Step::BeforeRenewal,
    Step::Renewed,
    Step::BeforeTakeOver,
    Step::EpochRaised,
    Step::TakenOver,
];

/// What was done, over all servers.
#[derive(Debug, Default)]
struct Tally {
    /// Kills and stops at each step, and how often it did not come.
    steps: BTreeMap<Step, [usize; 3]>,
    killed_at_random: usize,
    stopped_at_random: usize,
    server_crashes: usize,
    server_stops: usize,
    connections_cut: usize,
    occurrences: usize,
    outcomes: BTreeMap<String, usize>,
    again: usize,
    taken_over: usize,
    fenced: usize,
    lost_leases: usize,
    /// The effect of an occurrence happened more than once.
    duplicates: usize,
    /// Reminders without an occurrence, and occurrences without an outcome.
    lost: usize,
    early: usize,
    effects: usize,
    wrong: Vec<String>,
}

#[test]
fn hosts_that_share_a_journal_lose_nothing_and_run_nothing_twice() {
    let rounds = usize::try_from(number("OLLIM_KILL_HOST_ROUNDS", 10)).unwrap();
    let seed = number("OLLIM_KILL_SEED", 1);
    let at_once = usize::try_from(number("OLLIM_KILL_AT_ONCE", 2)).unwrap();
    println!("{rounds} rounds over three hosts, seed {seed}, {at_once} servers at a time");
    let binary = Binary::take();
    let mut steps = STEPS.to_vec();
    Rng::new(seed).shuffle(&mut steps);
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let size = ROUNDS_A_WORLD.min(rounds.div_ceil(at_once));
    let worlds = rounds.div_ceil(size);
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(worlds) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= worlds || tally.lock().unwrap().wrong.len() >= 3 {
                        return;
                    }
                    let rounds = number * size..rounds.min((number + 1) * size);
                    let steps: Vec<Step> = rounds.map(|round| steps[round % steps.len()]).collect();
                    let lived = World::new(&binary.path, number, seed).live(&steps, &tally);
                    tally.lock().unwrap().wrong.extend(lived.err());
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    report(&tally, rounds);
    assert!(tally.wrong.is_empty(), "seed {seed}\n{}", tally.wrong.join("\n\n"));
    // Whether a host is killed while it has something going is chance: in a few rounds it may be none. tests/it/hosts.rs has a takeover each time.
    assert!(tally.taken_over > 0 || rounds < 30, "nothing was taken over: the test has shown nothing");
}

/// A signal arrives after the lease is lost, when nothing waits for signals any more, and before the new program does.
#[test]
fn a_host_that_is_asked_to_end_while_it_executes_itself_ends() {
    let (fixture, server) = (Fixture::new(), Postgres::start());
    let mut command = fixture.command(&["run"], Some(&format!("{}:1:term", Step::BeforeExec.name())));
    command.env("OLLIM_JOURNAL", server.url()).env("OLLIM_LEASE_PERCENT", LEASE_PERCENT.to_string());
    let (said, log) = (fixture.folder.path().join("said"), fixture.folder.path().join("log"));
    let mut life = ServiceProcess::start(command, &said, &log);
    let start = Instant::now();
    while !fixture.log().contains("ready on ") {
        assert!(life.ended_within(Duration::from_millis(5)).is_none(), "it ended: {}", fixture.log());
        assert!(start.elapsed() < STUCK, "waited in vain: {}", fixture.log());
    }
    server.signal("STOP");
    let ended = life.ended_within(STUCK);
    assert_eq!(ended.and_then(|status| status.code()), Some(2), "{}", fixture.log());
}

fn report(tally: &Tally, rounds: usize) {
    println!("{:>6} {:>7} {:>8}  at", "killed", "stopped", "not come");
    for step in STEPS {
        let [killed, stopped, missed] = tally.steps.get(&step).copied().unwrap_or_default();
        println!("{killed:>6} {stopped:>7} {missed:>8}  {}", step.name());
    }
    println!("{:>6} {:>7} {:>8}  a random moment", tally.killed_at_random, tally.stopped_at_random, "");
    let outcomes: Vec<String> = tally.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    for (what, count) in [
        ("rounds", rounds),
        ("crashes of the server", tally.server_crashes),
        ("stops of the server at once", tally.server_stops),
        ("times all connections were cut", tally.connections_cut),
        ("occurrences", tally.occurrences),
        ("with more than one attempt", tally.again),
        ("effects", tally.effects),
        ("taken over from another host", tally.taken_over),
        ("leases lost by a host that lived", tally.lost_leases),
        ("commits refused without a lease", tally.fenced),
        ("duplicates", tally.duplicates),
        ("lost", tally.lost),
        ("early by the server's clock", tally.early),
    ] {
        println!("{count:>6}  {what}");
    }
    println!("outcomes: {}", outcomes.join(", "));
}

/// One of the hosts.
struct Host {
    name: String,
    setting: Setting,
    /// How far its clock is ahead, in milliseconds.
    ahead: i64,
    life: Option<ServiceProcess>,
    lives: usize,
}

impl Host {
    fn new(binary: &Path, person: &Path, name: &str, ahead: i64) -> Self {
        let setting = Setting {
            binary: binary.to_owned(),
            home: person.join("bot"),
            client: executable(&person.join("claude"), include_str!("client.sh")),
            person: person.to_owned(),
        };
        for folder in ["routines", "reminders"] {
            fs::create_dir_all(setting.home.join(folder)).unwrap();
        }
        fs::write(setting.home.join("config.yaml"), "default_channel: console\n").unwrap();
        Self { name: name.to_owned(), setting, ahead, life: None, lives: 0 }
    }

    fn start(&mut self, url: &str, fail_at: Option<(Step, bool)>) {
        self.lives += 1;
        let mut command = self.setting.command(&["run"], self.ahead, None);
        command.env("OLLIM_JOURNAL", url).env("OLLIM_HOST", &self.name);
        command.env("OLLIM_LEASE_PERCENT", LEASE_PERCENT.to_string());
        if let Some((step, stops)) = fail_at {
            command.env("OLLIM_FAIL_AT", format!("{}:1{}", step.name(), if stops { ":stop" } else { "" }));
        }
        let log = self.log();
        let mut text = fs::read_to_string(&log).unwrap_or_default();
        text.push_str(&format!("-- life {}, {fail_at:?}\n", self.lives));
        fs::write(&log, text).unwrap();
        self.life =
            Some(ServiceProcess::start(command, &self.setting.person.join(format!("said-{}", self.lives)), &log));
    }

    fn log(&self) -> PathBuf {
        self.setting.person.join("log")
    }

    /// Kills it, unless it has been. True: it was by its own hand.
    fn kill(&mut self) -> Result<bool, String> {
        let Some(life) = self.life.take() else { return Ok(false) };
        life.kill_after(Duration::ZERO).map_err(|error| format!("{}, life {}: {error}", self.name, self.lives))
    }

    fn reminders(&self) -> usize {
        let names = check::names(&self.setting.home.join("reminders"));
        names.iter().filter(|name| name.ends_with(".md")).count()
    }
}

/// A server, and three hosts on it.
struct World {
    folder: TempDir,
    person: PathBuf,
    server: Postgres,
    hosts: Vec<Host>,
    jobs: Vec<Job>,
    rng: Rng,
    number: usize,
}

impl World {
    fn new(binary: &Path, number: usize, seed: u64) -> Self {
        let folder = TempDir::with_prefix("ollim-hosts-").unwrap();
        let person = folder.path().canonicalize().unwrap();
        let mut rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0x517c_c1b7));
        let host = |name: &str, ahead| {
            let own = person.join(name);
            fs::create_dir(&own).unwrap();
            Host::new(binary, &own, name, ahead)
        };
        // The first has the server's time.
        let mut skew = || i64::try_from(rng.between(0, 1600)).unwrap() - 800;
        let hosts = vec![host("attic", 0), host("home", skew()), host("laptop", skew())];
        Self { person, server: Postgres::start(), hosts, jobs: Vec::new(), rng, number, folder }
    }

    fn live(mut self, steps: &[Step], tally: &Mutex<Tally>) -> Result<(), String> {
        let lived = self.until_rest(steps, tally).and_then(|()| {
            let wrong = self.check(&mut tally.lock().unwrap());
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
        });
        lived.map_err(|wrong| {
            self.hosts.iter_mut().for_each(|host| drop(host.life.take()));
            let kept = self.folder.keep();
            let _dumped = fs::write(kept.join("journal"), self.server.psql(DUMP));
            format!("server {} (kept in {}):\n{wrong}", self.number, kept.display())
        })
    }

    fn until_rest(&mut self, steps: &[Step], tally: &Mutex<Tally>) -> Result<(), String> {
        self.start_all();
        self.until("the journal is made", |world| {
            world.server.psql("SELECT to_regclass('occurrence') IS NOT NULL") == "t"
        })?;
        self.server.psql(SEES);
        for step in steps {
            self.round(*step, tally)?;
        }
        self.run_until_idle()
    }

    fn start_all(&mut self) {
        let url = self.server.url();
        self.hosts.iter_mut().filter(|host| host.life.is_none()).for_each(|host| host.start(&url, None));
    }

    /// Waits for what will come.
    fn until(&mut self, what: &str, mut is: impl FnMut(&Self) -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !is(self) {
            for host in &mut self.hosts {
                if let Some(status) = host.life.as_mut().and_then(|life| life.ended_within(Duration::ZERO)) {
                    return Err(format!("{}, life {}, ended by itself: {status}", host.name, host.lives));
                }
            }
            if start.elapsed() > STUCK {
                return Err(format!("this did not come: {what}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn pause(&mut self, from: u64, to: u64) {
        std::thread::sleep(Duration::from_millis(self.rng.between(from, to)));
    }

    fn round(&mut self, step: Step, tally: &Mutex<Tally>) -> Result<(), String> {
        let victim = usize::try_from(self.rng.between(0, 2)).unwrap();
        let other = (victim + usize::try_from(self.rng.between(1, 2)).unwrap()) % 3;
        let stops = self.rng.once_in(3);
        self.start_all();
        self.pause(0, 500);
        self.hosts[victim].kill()?;
        let url = self.server.url();
        self.hosts[victim].start(&url, Some((step, stops)));
        self.give(step);
        tally.lock().unwrap().killed_at_random += 1;
        self.pause(300, 1500);
        let takes_over = matches!(step, Step::BeforeTakeOver | Step::EpochRaised | Step::TakenOver);
        match self.rng.between(0, 6) {
            _ if takes_over => {
                self.hosts[other].kill()?;
                tally.lock().unwrap().killed_at_random += 1;
                std::thread::sleep(LEASE);
            }
            0 => {
                self.hosts[other].kill()?;
                tally.lock().unwrap().killed_at_random += 1;
            }
            1 => {
                self.server.crash();
                self.pause(0, 2500);
                self.server.start_again();
                tally.lock().unwrap().server_crashes += 1;
            }
            2 => {
                self.server.stop_at_once();
                self.pause(0, 2500);
                self.server.start_again();
                tally.lock().unwrap().server_stops += 1;
            }
            3 => {
                self.server.psql(CUT);
                tally.lock().unwrap().connections_cut += 1;
            }
            4 | 5 => {
                if let Some(life) = &self.hosts[other].life {
                    life.signal(Signal::STOP);
                    std::thread::sleep(LEASE);
                    life.signal(Signal::CONT);
                }
                tally.lock().unwrap().stopped_at_random += 1;
            }
            _ => {}
        }
        self.until_step(victim, step, tally)?;
        if self.rng.once_in(2) {
            std::thread::sleep(LEASE);
        }
        Ok(())
    }

    /// Waits until a host has come to its step; kills it if it is alive then, perhaps after it has gone on for a while.
    fn until_step(&mut self, victim: usize, step: Step, tally: &Mutex<Tally>) -> Result<(), String> {
        let start = Instant::now();
        let host = &mut self.hosts[victim];
        let is_stopped = loop {
            let Some(life) = &mut host.life else { break false };
            if life.is_stopped() {
                break true;
            }
            if life.ended_within(Duration::from_millis(10)).is_some() || start.elapsed() > COMES_WITHIN {
                break false;
            }
        };
        if is_stopped {
            self.pause(0, u64::try_from(2 * LEASE.as_millis()).unwrap());
            if let Some(life) = &self.hosts[victim].life {
                life.signal(Signal::CONT);
            }
            self.pause(0, 1500);
        }
        let by_itself = self.hosts[victim].kill()?;
        let mut tally = tally.lock().unwrap();
        let counts = tally.steps.entry(step).or_default();
        counts[if is_stopped {
            1
        } else if by_itself {
            0
        } else {
            2
        }] += 1;
        Ok(())
    }

    fn now() -> DateTime<Utc> {
        Clock::system().now()
    }

    /// Gives all hosts the same reminders.
    fn give(&mut self, step: Step) {
        let needed = Kind::that_meets(step).filter(|kind| *kind != Kind::Chain).unwrap_or(Kind::Effect);
        let kinds = [Kind::Quiet, Kind::Effect, Kind::Slow, Kind::Ping, Kind::Fail, Kind::Foreground];
        let mut any = || kinds[usize::try_from(self.rng.word() % 6).unwrap()];
        for kind in [needed, needed, needed, Kind::Slow, any(), any()] {
            let token = format!("w{}-{}", self.number, self.jobs.len());
            let job = Job { token, kind, there: true };
            let due = Self::now() + TimeDelta::milliseconds(i64::try_from(self.rng.between(500, 1500)).unwrap());
            for host in &self.hosts {
                let path = host.setting.home.join(format!("reminders/{}.md", job.token));
                let beside = host.setting.person.join("new");
                fs::write(&beside, job.text(due)).unwrap();
                fs::rename(beside, path).unwrap();
            }
            self.jobs.push(job);
        }
    }

    /// Lives on until nothing is left to do, then ends in order.
    fn run_until_idle(&mut self) -> Result<(), String> {
        self.start_all();
        let given = self.jobs.len().to_string();
        self.until("all are at rest", |world| {
            world.server.psql("SELECT count(DISTINCT id) FROM occurrence") == given
                && world.server.psql(LEFT) == "0 0"
                && world.hosts.iter().all(|host| host.reminders() == 0)
        })
        .map_err(|error| {
            let files: Vec<_> = self.hosts.iter().map(|host| (&host.name, host.reminders())).collect();
            let open = "SELECT id, host, retry_at FROM occurrence WHERE outcome IS NULL";
            format!("{error}; left {}; files {files:?}; {}", self.server.psql(LEFT), self.server.psql(open))
        })?;
        for host in &mut self.hosts {
            if let Some(mut life) = host.life.take() {
                life.terminate();
                match life.ended_within(STUCK) {
                    Some(status) if status.success() => {}
                    other => return Err(format!("{} was told to end: {other:?}", host.name)),
                }
            }
        }
        let person = self.person.clone();
        let start = Instant::now();
        loop {
            let left = processes::naming(&person);
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > STUCK {
                return Err(format!("processes are left: {left:#?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the journal says, as JSON.
    fn rows(&self, sql: &str) -> Vec<Value> {
        let text = self.server.psql(&format!("SELECT coalesce(json_agg(row_to_json(one)), '[]') FROM ({sql}) one"));
        serde_json::from_str(&text).unwrap()
    }

    fn occurrences(&self) -> Vec<Occurrence> {
        let mut found: BTreeMap<i64, Occurrence> = BTreeMap::new();
        for row in self.rows(OCCURRENCES) {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let occurrence = found.entry(row["number"].as_i64().unwrap()).or_insert_with(|| Occurrence {
                id: text("id").unwrap(),
                kind: text("kind").unwrap(),
                at: row["at"].as_i64().unwrap(),
                outcome: text("outcome"),
                text: text("text").unwrap_or_default(),
                runs: Vec::new(),
            });
            let Some(run) = text("run") else { continue };
            // On whichever host: what a run has done elsewhere than on its own is seen, too.
            let folders = self.hosts.iter().map(|host| host.setting.home.join("state/runs").join(&run).join(KEPT));
            let (starts, effects) = folders
                .map(|folder| check::recorded(&folder))
                .fold((0, 0), |(starts, effects), (more, again)| (starts + more, effects + again));
            let (attempt, state, effect) = (row["attempt"].as_i64().unwrap(), text("state").unwrap(), text("effect"));
            occurrence.runs.push(Run { run, attempt, state, effect, starts, effects });
        }
        let mut found: Vec<Occurrence> = found.into_values().collect();
        for occurrence in &mut found {
            for host in &self.hosts {
                let main = host.setting.home.join("state/runs/main").join(KEPT);
                check::attribute(&main, &occurrence.text, &mut occurrence.runs);
            }
        }
        found
    }

    fn check(&self, tally: &mut Tally) -> Vec<String> {
        let mut wrong = Vec::new();
        let occurrences = self.occurrences();
        let messages: Vec<Message> = self
            .rows("SELECT number, text, channel, delivered IS NOT NULL AS delivered FROM message ORDER BY number")
            .iter()
            .map(|row| Message {
                number: row["number"].as_i64().unwrap(),
                text: row["text"].as_str().unwrap().to_owned() + "\n",
                channel: row["channel"].as_str().map(str::to_owned),
                delivered: row["delivered"].as_bool().unwrap(),
            })
            .collect();
        check::outcomes(&occurrences, &mut wrong);
        let homes: Vec<PathBuf> = self.hosts.iter().map(|host| host.setting.home.clone()).collect();
        check::starts(&homes, &occurrences, &mut wrong);
        check::reminders(&self.jobs, &occurrences, &messages, &mut wrong);
        let early = self.rows(EARLY);
        wrong.extend(early.iter().map(|row| format!("claimed before its time, by the server's clock: {row}")));
        wrong.extend(messages.iter().filter(|one| !one.delivered).map(|one| format!("not delivered: {}", one.text)));
        for host in &self.hosts {
            let log = fs::read_to_string(host.log()).unwrap();
            tally.lost_leases += log.matches("has lost its lease").count();
            tally.fenced += log.matches("so it records nothing more").count();
            let panics = log.lines().filter(|line| line.contains("panicked"));
            wrong.extend(panics.map(|line| format!("{}: {line}", host.name)));
        }
        for occurrence in &occurrences {
            *tally.outcomes.entry(occurrence.outcome.clone().unwrap_or_default()).or_default() += 1;
            let effects: usize = occurrence.runs.iter().map(|run| run.effects).sum();
            tally.effects += effects;
            tally.duplicates += usize::from(effects > 1);
            tally.lost += usize::from(occurrence.outcome.is_none());
            tally.again += usize::from(occurrence.runs.len() > 1);
        }
        tally.occurrences += occurrences.len();
        tally.lost += self.jobs.len().saturating_sub(occurrences.len());
        tally.early += early.len();
        let taken = "SELECT count(*) FROM run WHERE error LIKE 'the host % went away while it was going'";
        tally.taken_over += self.server.psql(taken).parse::<usize>().unwrap();
        wrong
    }
}

/// Has the server note each claim with its own time.
const SEES: &str = "CREATE TABLE seen (id TEXT, at BIGINT, host TEXT, claimed DOUBLE PRECISION);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO seen VALUES (NEW.id, NEW.at, NEW.host, extract(epoch FROM clock_timestamp()) * 1000); RETURN NULL;
    END $$;
    CREATE TRIGGER see AFTER INSERT ON occurrence FOR EACH ROW EXECUTE FUNCTION see()";

const EARLY: &str = "SELECT id, host, claimed - at AS late_ms FROM seen WHERE claimed < at";

const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ollim-bot'";

/// How much is open, and how many messages are on their way.
const LEFT: &str = "SELECT (SELECT count(*) FROM occurrence WHERE outcome IS NULL) || ' ' ||
    (SELECT count(*) FROM message WHERE delivered IS NULL)";

const OCCURRENCES: &str = "SELECT o.number, o.id, o.kind, o.at, o.outcome, t.text, r.run, r.attempt, r.state, r.effect
    FROM occurrence o LEFT JOIN definition_text t ON t.number = o.text LEFT JOIN run r ON r.occurrence = o.number
    ORDER BY o.number, r.attempt";

const DUMP: &str =
    "SELECT o.id, o.outcome, o.host, r.run, r.attempt, r.host, r.state, r.effect, r.launched, r.ended, r.error
    FROM occurrence o LEFT JOIN run r ON r.occurrence = o.number ORDER BY o.number, r.attempt";
