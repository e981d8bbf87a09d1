//! Definitions that fall due together, and how late each of them was.

use std::thread::sleep;
use std::time::{Duration, Instant};

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};

use super::super::lateness::words;
use super::super::postgres::Postgres;
use super::super::pushed::Line;
use super::load::connections;

/// Definitions that fall due together: every second is a routine if that is a full minute.
pub struct Herd {
    pub name: String,
    pub at: DateTime<Utc>,
    pub size: usize,
}

impl Herd {
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        let (name, at) = (&self.name, self.at);
        (0..self.size).map(move |n| {
            let (file, fields) = if n % 2 == 0 && at.second() == 0 {
                let cron = format!("cron: \"{} {} {} {} *\"", at.minute(), at.hour(), at.day(), at.month());
                (format!("routines/{name}-{n}.md"), cron)
            } else {
                (format!("reminders/{name}-{n}.md"), format!("run_at: \"{}\"", at.to_rfc3339()))
            };
            (file, fields, format!("Account {n} of {name}."))
        })
    }

    /// Waits until all have their outcome, or no more get one. Returns the largest number of connections to the server in words.
    pub fn wait(&self, server: &Postgres) -> String {
        let ended = format!("SELECT count(*) FROM occurrence WHERE {} AND outcome IS NOT NULL", self.which());
        let (mut count, mut changed, mut most) = (0, Instant::now(), 0);
        while count < self.size && changed.elapsed() < Duration::from_secs(90) {
            for _ in 0..5 {
                most = most.max(connections(server));
                sleep(Duration::from_millis(100));
            }
            let now = server.psql(&ended).parse().unwrap();
            if now != count {
                (count, changed) = (now, Instant::now());
            }
        }
        format!("{most} connections")
    }

    fn which(&self) -> String {
        format!("id >= '{0}-' AND id < '{0}.'", self.name)
    }

    /// Prints how late each was, and whether each ran once.
    pub fn print(&self, server: &Postgres) {
        print_all(server, &[self]);
    }
}

/// Prints how late each of these was, and whether each ran once.
pub fn print_all(server: &Postgres, herds: &[&Herd]) {
    let which = herds.iter().map(|herd| format!("({})", herd.which())).collect::<Vec<_>>().join(" OR ");
    let size: usize = herds.iter().map(|herd| herd.size).sum();
    let rows = server.psql(&format!(
        "SELECT o.claimed - o.at, r.launched - o.at, r.ended - o.at FROM occurrence o JOIN run r ON r.occurrence = o.number
         WHERE ({which}) AND r.state = 'completed'"
    ));
    let rows: Vec<Vec<i64>> =
        rows.lines().map(|line| line.split('|').map(|ms| ms.parse().unwrap()).collect()).collect();
    println!();
    let [mut claimed, mut begun, mut ended] =
        [0, 1, 2].map(|column| rows.iter().map(|row| row[column]).collect::<Vec<i64>>());
    for (what, late) in [("claimed", &mut claimed), ("begun", &mut begun), ("ended", &mut ended)] {
        if !late.is_empty() {
            println!("    {what}: {}", words(late));
        }
    }
    let twice = |sql: &str| server.psql(&format!("SELECT count(*) FROM ({sql}) AS twice"));
    println!(
        "    of {size}: {} lost, {} told twice, {} completed twice, {} begun again",
        size - completed(server, &which),
        // Without the messages of the service, which say that a job is late.
        twice(&format!("SELECT id FROM message WHERE ({which}) AND run IS NOT NULL GROUP BY id HAVING count(*) > 1")),
        twice(&format!(
            "SELECT o.id FROM occurrence o JOIN run r ON r.occurrence = o.number
             WHERE ({which}) AND r.state = 'completed' GROUP BY o.id HAVING count(*) > 1"
        )),
        twice(&format!(
            "SELECT o.id FROM occurrence o JOIN run r ON r.occurrence = o.number WHERE ({which}) AND r.attempt > 1"
        )),
    );
    curve(&begun);
    println!();
}

/// Counts those that were completed at their time.
fn completed(server: &Postgres, which: &str) -> usize {
    let sql = format!("SELECT count(DISTINCT id) FROM occurrence WHERE ({which}) AND outcome = 'completed'");
    server.psql(&sql).parse().unwrap()
}

/// Plots how many were begun in each step of time.
fn curve(late: &[i64]) {
    const LINES: i64 = 25;
    let Some(last) = late.iter().max() else { return };
    let step = [20, 50, 100, 200, 500, 1000, 2000, 5000].into_iter().find(|step| last / step < LINES).unwrap_or(10_000);
    let counts: Vec<usize> =
        (0..=last / step).map(|place| late.iter().filter(|late| (*late / step).max(0) == place).count()).collect();
    let most = counts.iter().max().copied().unwrap_or(1).max(1);
    for (count, from) in counts.iter().zip((0..).step_by(usize::try_from(step).unwrap())) {
        println!("    {from:>6} ms {:>6} {}", count, "#".repeat((count * 60).div_ceil(most)));
    }
}
