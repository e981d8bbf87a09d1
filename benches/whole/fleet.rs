//! A fleet: many hosts on one server, with a million definitions in its database. The server runs on this machine, and so do the hosts.

mod herd;
mod load;

use std::thread::sleep;
use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};

use self::herd::Herd;
use self::load::Load;
use super::bot::{Bot, Service, now};
use super::postgres::Postgres;
use super::pushed::{far_away, push, write_lines};
use super::{Plan, ms, percentile, row};

const IDLE: Duration = Duration::from_secs(30);

/// Number of definitions that are due together.
const HERD: usize = 2000;

/// Number of definitions that are due together during a rolling restart, and the time between two such herds.
const SMALL_HERD: usize = 200;
const APART: TimeDelta = TimeDelta::seconds(10);

/// Hosts before definitions fall due, so that each of them has read them.
const AHEAD: TimeDelta = TimeDelta::seconds(75);

pub fn measure(plan: &Plan) {
    let (hosts, definitions) = if plan.many > 10_000 { (100, 1_000_000) } else { (10, 10_000) };
    let mut fleet = Fleet::start(plan.hosts.unwrap_or(hosts), definitions);
    fleet.idle();
    fleet.herd();
    fleet.rolling_restart();
    fleet.server_restart("fast", "INT");
    fleet.server_restart("immediate", "QUIT");
}

/// The server and its hosts. The hosts end first.
struct Fleet {
    services: Vec<Service>,
    bots: Vec<Bot>,
    server: Postgres,
}

impl Fleet {
    fn start(hosts: usize, definitions: usize) -> Self {
        let server = Postgres::start_with(&["max_connections=1000", "shared_buffers=128MB"]);
        let bot = |number: usize| {
            Bot::with(0).env("OLLIM_JOURNAL", &server.url()).env("OLLIM_HOST", &format!("host-{number:03}"))
        };
        let first = bot(0);
        let lines = first.person().join("lines");
        write_lines(&lines, far_away(definitions));
        let took = push(&first, &lines);
        server.psql("VACUUM ANALYZE");
        let size = server.psql("SELECT pg_size_pretty(pg_database_size('postgres'))");
        row(
            &format!("{definitions} definitions into the database"),
            "",
            &format!("{:.0} s, {size}", took.as_secs_f64()),
            "",
        );
        let mut services = vec![first.start()];
        sleep(Duration::from_secs(2));
        let (memory, _) = services[0].memory();
        let fitting = usize::try_from(load::available_memory() * 3 / 4 / memory.max(1)).unwrap();
        if fitting < hosts {
            println!("\nA host takes {memory} MiB, so only {fitting} of {hosts} fit.\n");
        }
        let mut bots = vec![first];
        bots.extend((1..hosts.min(fitting)).map(bot));
        services.extend(bots[1..].iter().map(Bot::start));
        let mut ready: Vec<Duration> = services.iter().map(|service| service.ready).collect();
        row(
            &format!("{} hosts started one after another, each until it can fire", services.len()),
            "",
            &format!("p50 {}, at most {}", ms(percentile(&mut ready, 50)), ms(percentile(&mut ready, 100))),
            "",
        );
        Self { services, bots, server }
    }

    /// Measures the fleet while nothing is due.
    fn idle(&self) {
        // The first look of each has ended by then.
        sleep(Duration::from_secs(20));
        let before = Load::now(&self.server, &self.services);
        sleep(IDLE);
        row(
            &format!("{} idle hosts", self.services.len()),
            "",
            &Load::now(&self.server, &self.services).since(&before),
            "",
        );
        let (mut memory, mut peak): (Vec<_>, Vec<_>) = self.services.iter().map(Service::memory).unzip();
        row(
            "memory of each",
            "60 MiB",
            &format!(
                "p50 {} MiB, at most {} MiB ({} MiB so far)",
                percentile(&mut memory, 50),
                percentile(&mut memory, 100),
                percentile(&mut peak, 100)
            ),
            "",
        );
    }

    /// Lets many definitions fall due at the full minute.
    fn herd(&self) {
        let herd = Herd { name: "full".into(), at: full_minute(now() + AHEAD), size: HERD };
        let before = self.epochs();
        self.push(std::slice::from_ref(&herd));
        let pushed = Load::now(&self.server, &self.services);
        sleep_until(herd.at - TimeDelta::seconds(2));
        let due = Load::now(&self.server, &self.services);
        row(&format!("the time before {HERD} are due, while each host reads them"), "", &due.since(&pushed), "");
        let most = herd.wait(&self.server);
        let done = Load::now(&self.server, &self.services);
        row(
            "… and until the last has ended",
            "",
            &format!(
                "{}, at most {most}; {:.1} ms of the server's processor each",
                done.since(&due),
                (done.server - due.server).as_secs_f64() * 1000.0 / HERD as f64
            ),
            "",
        );
        herd.print(&self.server);
        sleep_until(herd.at + TimeDelta::seconds(62));
        let after = Load::now(&self.server, &self.services);
        row("… and until 62 s after its time at least", "", &after.since(&done), &self.lost_leases(before, 0));
    }

    /// Restarts one host after another while a small herd falls due every few seconds.
    fn rolling_restart(&mut self) {
        let first = now().duration_trunc(TimeDelta::seconds(10)).unwrap() + AHEAD;
        let herds: Vec<Herd> = (0..i32::try_from(self.bots.len()).unwrap() / 6 + 2)
            .map(|number| Herd { name: format!("rolling-{number}"), at: first + APART * number, size: SMALL_HERD })
            .collect();
        let before = self.epochs();
        self.push(&herds);
        sleep_until(first - TimeDelta::seconds(5));
        let start = Instant::now();
        let mut took = Vec::new();
        for number in 0..self.bots.len() {
            let began = Instant::now();
            self.services.remove(number).stop();
            self.services.insert(number, self.bots[number].start());
            took.push(began.elapsed());
        }
        let (last, all) = (now(), start.elapsed());
        let herds: Vec<&Herd> = herds.iter().filter(|herd| herd.at < last + APART).collect();
        herds.iter().for_each(|herd| drop(herd.wait(&self.server)));
        row(
            &format!("{} hosts restarted one after another, {} herds of {SMALL_HERD}", took.len(), herds.len()),
            "",
            &format!(
                "{:.0} s; each until it can fire: p50 {}, at most {}",
                all.as_secs_f64(),
                ms(percentile(&mut took, 50)),
                ms(percentile(&mut took, 100))
            ),
            &self.lost_leases(before, took.len()),
        );
        herd::print_all(&self.server, &herds);
    }

    /// Restarts the server right before many definitions fall due.
    fn server_restart(&mut self, mode: &str, signal: &str) {
        let herd = Herd { name: format!("restart-{mode}"), at: full_minute(now() + AHEAD), size: HERD };
        let before = self.epochs();
        self.push(std::slice::from_ref(&herd));
        sleep_until(herd.at - TimeDelta::milliseconds(500));
        let (start, began) = (Instant::now(), now());
        self.server.stop_by(signal);
        self.server.start_again();
        let up = start.elapsed();
        while self.count("SELECT count(*) FROM host WHERE lease_until - interval '15 s' > pg_postmaster_start_time()")
            < self.services.len()
        {
            assert!(start.elapsed() < Duration::from_secs(120), "all hosts are back");
            sleep(Duration::from_millis(100));
        }
        let back = start.elapsed();
        herd.wait(&self.server);
        row(
            &format!("the server restarted (`-m {mode}`), {} ms before a herd", (herd.at - began).num_milliseconds()),
            "",
            &format!("{} until it answers, {} until every host has renewed its lease", ms(up), ms(back)),
            &self.lost_leases(before, 0),
        );
        herd.print(&self.server);
    }

    fn push(&self, herds: &[Herd]) {
        let lines = self.bots[0].person().join("herd");
        write_lines(&lines, herds.iter().flat_map(Herd::lines));
        push(&self.bots[0], &lines);
        assert!(herds.iter().all(|herd| now() < herd.at), "they were pushed in time");
    }

    /// Returns how often hosts have taken a lease.
    fn epochs(&self) -> usize {
        self.count("SELECT sum(epoch) FROM host")
    }

    fn lost_leases(&self, before: usize, restarted: usize) -> String {
        format!("{} leases lost", (self.epochs() - before).saturating_sub(restarted))
    }

    fn count(&self, sql: &str) -> usize {
        self.server.psql(sql).parse().unwrap()
    }
}

fn full_minute(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap() + TimeDelta::minutes(1)
}

fn sleep_until(at: DateTime<Utc>) {
    sleep((at - now()).to_std().unwrap_or_default());
}
