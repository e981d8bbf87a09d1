//! The page, over a journal of 100,000 runs and 1,000 jobs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::bot::{Bot, now};
use super::{Plan, ms, peers, percentile, row};

/// Number of requests for each page.
const TIMES: usize = 21;

const RUNS: i64 = 100_000;

/// Number of the runs in the last 7 days.
const OF_WEEK: i64 = 10_000;

const DAY: i64 = 86_400_000;

pub fn measure(_plan: &Plan) {
    let bot = Bot::with(1000);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::fs::write(bot.home.join("config.yaml"), format!("web: {address}\n")).unwrap();
    std::fs::write(
        bot.home.join("routines/quick.md"),
        "---\ncron: '0 0 1 1 *'\nbackground: true\nclient: exec\ncommand: echo quick\n---\n",
    )
    .unwrap();
    drop(bot.start());
    fill(&bot);
    let service = bot.start();
    let cookie = log_in(&bot, address);
    let pages = [
        ("timeline of 24 hours", "/", "20 ms, 100 ms"),
        ("timeline of 7 days, 10,000 runs in it", "/?days=7", "200 ms, 300 KB"),
        ("next", "/next", "20 ms, 100 ms"),
        ("jobs", "/jobs", "20 ms, 100 ms"),
        ("a job", "/jobs/routine-7", "20 ms, 100 ms"),
        ("runs", "/runs", "20 ms, 100 ms"),
        ("a run", "/runs/0001869f", "20 ms, 100 ms"),
        ("refusals", "/refusals", "20 ms, 100 ms"),
        ("costs of 30 days", "/costs", "20 ms, 100 ms"),
    ];
    for (name, path, bar) in pages {
        let asked: Vec<(Duration, Duration, usize)> = (0..TIMES).map(|_| get(address, path, &cookie)).collect();
        let mut first: Vec<Duration> = asked.iter().map(|(first, _, _)| *first).collect();
        let mut whole: Vec<Duration> = asked.iter().map(|(_, whole, _)| *whole).collect();
        let (first, whole) = (percentile(&mut first, 50), percentile(&mut whole, 50));
        let measured = format!("{}, {}; {} KB", ms(first), ms(whole), asked[0].2 / 1000);
        row(&format!("page, {name}: first byte, complete, weight"), bar, &measured, "");
    }
    in_a_browser(&bot, address, &cookie);
    // The stream begins with the number of the last event.
    let mut stream = listen(address, &cookie);
    line_of(&mut stream);
    let mut waited: Vec<Duration> = (0..TIMES)
        .map(|_| {
            drain(&mut stream);
            loop {
                let began = Instant::now();
                // While the previous run is active, another is refused.
                if bot.command(&["fire", "quick"]).output().unwrap().status.success() {
                    line_of(&mut stream);
                    break began.elapsed();
                }
            }
        })
        .collect();
    let measured = format!("{} (the command that fires it with it)", ms(percentile(&mut waited, 50)));
    row("page, fired until an open page is told", "100 ms", &measured, "");
    let open: Vec<_> = (0..50).map(|_| listen(address, &cookie)).collect();
    std::thread::sleep(Duration::from_secs(2));
    let (cpu, began) = (service.cpu(), Instant::now());
    // An open page requests itself every five minutes, so fifty pages do so every six seconds.
    for _ in 0..5 {
        get(address, "/", &cookie);
        std::thread::sleep(Duration::from_secs(6));
    }
    let share = (service.cpu() - cpu).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    row("page, 50 open and nothing happens", "1 %", &format!("{share:.2} % of a core"), "");
    drop(open);
}

/// Measures loads with nothing cached, beside a page of another program with similar content.
fn in_a_browser(bot: &Bot, address: SocketAddr, cookie: &str) {
    let missing = || "not installed".to_owned();
    let ours = peers::load(&["ours", &format!("http://{address}/"), cookie]).unwrap_or_else(missing);
    let data = bot.home.with_file_name("kuma");
    let kuma = peers::load(&["kuma", data.to_str().unwrap()]).unwrap_or_else(missing);
    let what = "page, opened in a browser: first byte, first paint, complete; weight in requests";
    row(what, "", &ours, &format!("Uptime Kuma, with no monitor: {kuma}"));
}

/// Writes runs of 90 days, a tenth of them in the last week.
fn fill(bot: &Bot) {
    let mut journal = Connection::open(bot.home.join("state/journal.db")).unwrap();
    let change = journal.transaction().unwrap();
    let until = now().timestamp_millis();
    for run in 0..RUNS {
        let older = RUNS - OF_WEEK;
        let at = match run < older {
            true => until - 90 * DAY + run * 83 * DAY / older,
            false => until - 7 * DAY + (run - older) * 7 * DAY / OF_WEEK,
        };
        let state = match run % 50 {
            0 => "failed",
            1 | 2 => "skipped",
            _ => "completed",
        };
        let id = format!("routine-{}", run * 7 % 500);
        let began = (state != "skipped").then_some(at);
        change
            .prepare_cached(
                "INSERT INTO occurrence (id, kind, at, by_hand, file, claimed, outcome, file_done)
                 VALUES (?1, 'routine', ?2, 0, 'routines/' || ?1 || '.md', ?2, ?3, 1)",
            )
            .unwrap()
            .execute(params![id, at, state])
            .unwrap();
        change
            .prepare_cached(
                "INSERT INTO run (run, occurrence, attempt, state, launched, started, ended, cost_usd, model, tokens, client)
                 VALUES (?1, last_insert_rowid(), 1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, 'claude')",
            )
            .unwrap()
            .execute(params![
                format!("{run:08x}"),
                state,
                began,
                at + run % 600 * 1000,
                (run % 97) as f64 / 1000.0,
                ["claude-haiku-4-5", "claude-sonnet-4-5"][usize::from(run % 3 == 0)],
                format!(r#"{{"input":{run},"cache_read":20000,"cache_write":800,"output":340}}"#),
            ])
            .unwrap();
    }
    change.commit().unwrap();
}

fn request(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    write!(stream, "{head}\r\nHost: {address}\r\nOrigin: http://{address}\r\n").unwrap();
    stream
}

fn log_in(bot: &Bot, address: SocketAddr) -> String {
    let link = bot.json(&["web"])["url"].as_str().unwrap().to_owned();
    let path = link.split_once(&address.to_string()).unwrap().1.to_owned();
    let mut stream = request(address, &format!("POST {path} HTTP/1.1"));
    write!(stream, "Content-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a session");
    cookie.split(';').next().unwrap().to_owned()
}

/// Returns the time to the first byte, the time to the last byte, and the number of bytes.
fn get(address: SocketAddr, path: &str, cookie: &str) -> (Duration, Duration, usize) {
    let began = Instant::now();
    let mut stream = request(address, &format!("GET {path} HTTP/1.1"));
    write!(stream, "Cookie: {cookie}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = vec![0];
    stream.read_exact(&mut answer).unwrap();
    let first = began.elapsed();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{path}: {}", String::from_utf8_lossy(&answer[..200]));
    (first, began.elapsed(), answer.len())
}

fn listen(address: SocketAddr, cookie: &str) -> BufReader<TcpStream> {
    let mut stream = request(address, "GET /events HTTP/1.1");
    write!(stream, "Cookie: {cookie}\r\n\r\n").unwrap();
    BufReader::new(stream)
}

/// Waits for the number of an event.
fn line_of(stream: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    let is_number = |line: &str| line.strip_prefix("data:").is_some_and(|number| number.trim().parse::<i64>().is_ok());
    while !is_number(&line) {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has ended");
    }
}

/// Reads what is there.
fn drain(stream: &mut BufReader<TcpStream>) {
    stream.get_ref().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    while stream.fill_buf().is_ok_and(|bytes| !bytes.is_empty()) {
        let there = stream.buffer().len();
        stream.consume(there);
    }
    stream.get_ref().set_read_timeout(None).unwrap();
}
