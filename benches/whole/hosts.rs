//! Several hosts on one server: the rate of claims, and that no occurrence is claimed twice. The server runs on this machine
//! too, with commits that wait for the disk.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use ollim_bot::clock::Clock;
use ollim_bot::definition::{DefinitionId, Kind};
use ollim_bot::journal::{Claim, Journal, JournalLocation, NewClaim, NewHost, Occurrence, Purpose, RunId, Server};

use super::bot::now;
use super::postgres::Postgres;
use super::{Plan, ms, peers, percentile, row};

const HOSTS: usize = 4;

/// Number of claims in one commit of a host.
const BATCH: usize = 1000;

pub fn measure(plan: &Plan) {
    let server = Postgres::start_with(&[]);
    let beside = peers::graphile_worker(&server.url(), HOSTS, plan.many);
    let [many_beside, one_beside] = beside.unwrap_or_else(|| ["graphile-worker: not installed", ""].map(str::to_owned));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let hosts: Vec<Journal> = (0..HOSTS).map(|number| join(&server, number)).collect();
    runtime.block_on(async {
        racing(&hosts, plan.many).await;
        sharing(&hosts, plan.many, &many_beside).await;
        together(&hosts).await;
        alone(&hosts[0], &one_beside).await;
    });
    let rows = server.psql("SELECT count(*) || ' ' || count(DISTINCT (id, at)) FROM occurrence");
    let (all, distinct) = rows.split_once(' ').unwrap();
    assert_eq!(all, distinct, "nothing was claimed twice");
    runtime.block_on(async {
        for host in &hosts {
            host.close().await;
        }
    });
}

fn join(server: &Postgres, number: usize) -> Journal {
    let place = JournalLocation::Server(Server::at(&server.url(), None).unwrap());
    let mut journal = Journal::open(place, Clock::system()).unwrap();
    let new = NewHost {
        name: format!("host-{number}"),
        home: format!("home-{number}"),
        version: "1".into(),
        zones: "2026b".into(),
        timezone: "UTC".into(),
        labels: Vec::new(),
        slots: 8,
    };
    journal.join(new, Box::new(|why| panic!("the lease was lost: {why}"))).unwrap();
    journal
}

/// Returns occurrences that fall due now.
fn due(name: &str, from: usize, count: usize) -> Vec<NewClaim> {
    let at = now() - TimeDelta::milliseconds(5);
    let claim = |number: usize| NewClaim {
        occurrence: Occurrence { id: DefinitionId::new(format!("{name}-{number}")), kind: Kind::Routine, at },
        file: PathBuf::from(format!("routines/{name}-{number}.md")),
        text: format!("---\ncron: \"0 * * * *\"\n---\n{name} {number}\n").into(),
        purpose: Purpose::Run,
        occasion: None,
        origin: None,
        run: RunId::random(),
    };
    (from..from + count).map(claim).collect()
}

/// Claims all in batches. Returns how many this host got.
async fn claim_all(host: Journal, claims: Vec<NewClaim>) -> usize {
    let mut ours = 0;
    for batch in claims.chunks(BATCH) {
        let answers = host.claim(batch.to_vec()).await.unwrap();
        ours += answers.iter().filter(|answer| matches!(answer, Claim::Claimed(_))).count();
    }
    ours
}

/// Every host tries to claim all, as if it were the first.
async fn racing(hosts: &[Journal], many: usize) {
    let claims = due("race", 0, many);
    let start = Instant::now();
    let tasks: Vec<_> = hosts.iter().map(|host| tokio::spawn(claim_all(host.clone(), claims.clone()))).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, many, "each was claimed by one host");
    row(&format!("{HOSTS} hosts race for the same {many}"), "5 s, none twice", &seconds(start.elapsed()), "");
}

/// Each host claims its part, as with many jobs at the full hour.
async fn sharing(hosts: &[Journal], many: usize, beside: &str) {
    let part = many / hosts.len();
    let start = Instant::now();
    let task =
        |(number, host): (usize, &Journal)| tokio::spawn(claim_all(host.clone(), due("share", number * part, part)));
    let tasks: Vec<_> = hosts.iter().enumerate().map(task).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), part);
    }
    let took = start.elapsed();
    let rate = many as f64 / took.as_secs_f64();
    row(&format!("{HOSTS} hosts share {many}"), "5 s", &format!("{} ({rate:.0} a second)", seconds(took)), beside);
}

/// Claims a thousand at once, each host its part.
async fn together(hosts: &[Journal]) {
    let mut took = Vec::new();
    for round in 0..20 {
        let part = 1000 / hosts.len();
        let start = Instant::now();
        let task = |(number, host): (usize, &Journal)| {
            tokio::spawn(claim_all(host.clone(), due(&format!("thousand-{round}"), number * part, part)))
        };
        let tasks: Vec<_> = hosts.iter().enumerate().map(task).collect();
        for task in tasks {
            task.await.unwrap();
        }
        took.push(start.elapsed());
    }
    row(&format!("1,000 due over {HOSTS} hosts, all claimed"), "100 ms", &spread(&mut took), "");
}

/// Measures one claim while the other hosts are idle.
async fn alone(host: &Journal, beside: &str) {
    let mut took = Vec::new();
    for number in 0..300 {
        let claims = due("one", number, 1);
        let start = Instant::now();
        host.claim(claims).await.unwrap();
        took.push(start.elapsed());
    }
    row("one claim on a server", "p50 2 ms", &spread(&mut took), &format!("{}; {beside}", in_a_file().await));
}

/// Measures the same with the journal in a file.
async fn in_a_file() -> String {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
    let mut took = Vec::new();
    for number in 0..300 {
        let claims = due("one", number, 1);
        let start = Instant::now();
        journal.claim(claims).await.unwrap();
        took.push(start.elapsed());
    }
    journal.close().await;
    format!("SQLite: {}", spread(&mut took))
}

fn spread(took: &mut [Duration]) -> String {
    let [p50, p99] = [50, 99].map(|percent| percentile(took, percent));
    format!("p50 {}, p99 {}", ms(p50), ms(p99))
}

fn seconds(took: Duration) -> String {
    format!("{:.2} s", took.as_secs_f64())
}
