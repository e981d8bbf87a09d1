//! Definitions that only the database has: the time to put them there, the query for those that are nearly due, and what a host needs for
//! them. The server runs on this machine.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use ollim_bot::journal::{JournalLocation, JournalReader, Server};

use super::bot::{Bot, now};
use super::postgres::Postgres;
use super::{Plan, ms, percentile, row};

const IDLE: Duration = Duration::from_secs(20);

/// Number of definitions that are nearly due in each query.
const PAGE: i64 = 500;

pub fn measure(plan: &Plan) {
    let count = plan.many * 10;
    let server = Postgres::start_with(&[]);
    let bot = Bot::with(0).env("OLLIM_JOURNAL", &server.url()).env("OLLIM_HOST", "attic");
    let lines = bot.person().join("lines");
    write_lines(&lines, far_away(count));
    let (first, again) = (push(&bot, &lines), push(&bot, &lines));
    row(
        &format!("{count} definitions into the database"),
        "minutes",
        &format!("{:.0} s; again, unchanged: {:.0} s", first.as_secs_f64(), again.as_secs_f64()),
        "",
    );
    queries(&server, count);
    let service = bot.start();
    // The first look has ended by then, and threads that are no longer needed.
    std::thread::sleep(Duration::from_secs(15));
    let before = service.cpu_of_threads();
    std::thread::sleep(IDLE);
    let share = service.cpu_since(&before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let (memory, peak) = service.memory();
    row(
        &format!("a host with {count} definitions in the database"),
        "60 MiB",
        &format!("{memory} MiB (at most {peak} MiB so far), {share:.2} % of a core"),
        "",
    );
    let mut late: Vec<Duration> = (0..9).map(|number| lateness(&bot, &service, number)).collect();
    row(
        "the next of them, until what it says is delivered",
        "100 ms",
        &format!("p50 {}, at most {}", ms(percentile(&mut late, 50)), ms(percentile(&mut late, 100))),
        "",
    );
}

/// A definition to push: its path, its fields and its body.
pub type Line = (String, String, String);

/// Pushes the definitions in a file. Returns how long it took.
pub fn push(bot: &Bot, lines: &Path) -> Duration {
    let start = Instant::now();
    let mut command = bot.command(&["push", "-"]);
    let output = command.stdin(File::open(lines).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    start.elapsed()
}

/// Writes definitions that send their body as a message into a file for [`push`].
pub fn write_lines(path: &Path, lines: impl Iterator<Item = Line>) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for (name, fields, body) in lines {
        let text = format!("---\\n{fields}\\nclient: notify\\n---\\n{body}\\n").replace('"', "\\\"");
        writeln!(file, "{{\"path\": \"{name}\", \"text\": \"{text}\"}}").unwrap();
    }
    file.flush().unwrap();
}

/// Returns definitions that fall due over the next months: half routines, half reminders.
pub fn far_away(count: usize) -> impl Iterator<Item = Line> {
    let far = now() + TimeDelta::days(30);
    (0..count).map(move |n| {
        let (name, fields) = if n % 2 == 0 {
            let (minute, hour, day) = (n % 60, n / 60 % 24, n / 1440 % 28 + 1);
            let month = (chrono::Datelike::month0(&now()) as usize + 2 + n / 40_320 % 9) % 12 + 1;
            (format!("routines/routine-{n}.md"), format!("cron: \"{minute} {hour} {day} {month} *\""))
        } else {
            let at = far + TimeDelta::seconds(i64::try_from(n).unwrap() * 10);
            (format!("reminders/reminder-{n}.md"), format!("run_at: \"{}\"", at.to_rfc3339()))
        };
        (name, fields, format!("Go through the mail of account {n}."))
    })
}

/// Measures the queries of a look: those that are nearly due, and when the next one is.
fn queries(server: &Postgres, count: usize) {
    server.psql("VACUUM ANALYZE");
    let place = JournalLocation::Server(Server::at(&server.url(), None).unwrap());
    let reader = JournalReader::open(place).unwrap();
    // A time until which about a page of them falls due.
    let page = server.psql(&format!("SELECT next_due FROM definition ORDER BY next_due OFFSET {PAGE} LIMIT 1"));
    let until = chrono::DateTime::from_timestamp_millis(page.parse().unwrap()).unwrap();
    let measure = |query: &dyn Fn()| {
        let once = || {
            let start = Instant::now();
            query();
            start.elapsed()
        };
        let mut took: Vec<Duration> = (0..100).map(|_| once()).collect();
        format!("p50 {}, p99 {}", ms(percentile(&mut took, 50)), ms(percentile(&mut took, 99)))
    };
    let none = measure(&|| assert!(reader.nearly_due(now(), None, PAGE).unwrap().is_empty()));
    let full = measure(&|| assert!(!reader.nearly_due(until, None, PAGE).unwrap().is_empty()));
    let next = measure(&|| assert!(reader.soonest_pushed(now()).unwrap().is_some()));
    row(&format!("those of {count} that are nearly due: none"), "10 ms", &none, "");
    row(&format!("those of {count} that are nearly due: {PAGE}"), "10 ms", &full, "");
    row(&format!("when the next of {count} falls due"), "10 ms", &next, "");
}

/// Pushes a reminder, and measures how late its words are.
fn lateness(bot: &Bot, service: &super::bot::Service, number: usize) -> Duration {
    let (start, at) = (Instant::now(), now() + TimeDelta::seconds(4));
    let (folder, words) = (bot.person().join("jobs/reminders"), format!("next number {number}."));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("next-{number}.md"));
    std::fs::write(&file, format!("---\nrun_at: \"{}\"\nclient: notify\n---\n{words}\n", at.to_rfc3339())).unwrap();
    bot.time(&["push", file.to_str().unwrap()]);
    service.when_said(&words).saturating_duration_since(start + Duration::from_secs(4))
}
