//! The load of the server and of its hosts.

use std::fs;
use std::time::{Duration, Instant};

use super::super::bot::{Service, cpu_of};
use super::super::postgres::Postgres;

/// What the server and the hosts have used so far.
pub struct Load {
    at: Instant,
    pub server: Duration,
    hosts: Duration,
    transactions: u64,
    connections: usize,
}

impl Load {
    pub fn now(server: &Postgres, services: &[Service]) -> Self {
        let transactions = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database";
        Self {
            at: Instant::now(),
            server: cpu(server),
            hosts: services.iter().map(Service::cpu).sum(),
            transactions: server.psql(transactions).parse().unwrap(),
            connections: connections(server),
        }
    }

    /// Returns in words what was used since `before`.
    pub fn since(&self, before: &Self) -> String {
        let time = self.at - before.at;
        let share =
            |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() / time.as_secs_f64() * 100.0;
        format!(
            "{:.0} s: server {:.1} % of a core, hosts {:.1} %, {:.0} transactions a second, {} connections",
            time.as_secs_f64(),
            share(self.server, before.server),
            share(self.hosts, before.hosts),
            (self.transactions - before.transactions) as f64 / time.as_secs_f64(),
            self.connections,
        )
    }
}

/// Returns the processor time of all processes of the server, ended ones included.
fn cpu(server: &Postgres) -> Duration {
    let first = server.pid().parse().unwrap();
    let living: Duration = children(server).into_iter().filter_map(|pid| cpu_of(pid, 2)).sum();
    cpu_of(first, 4).unwrap() + living
}

/// Returns the number of connections to the server.
pub fn connections(server: &Postgres) -> usize {
    let is_client = |pid: &u32| {
        let title = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        title.starts_with("postgres: bot ")
    };
    children(server).iter().filter(|pid| is_client(pid)).count()
}

fn children(server: &Postgres) -> Vec<u32> {
    let pid = server.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Returns the memory that programs can still take, in MiB.
pub fn available_memory() -> u64 {
    let all = fs::read_to_string("/proc/meminfo").unwrap();
    let line = all.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
