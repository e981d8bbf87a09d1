//! `heartbeat_url`: the service notifies a monitor about itself and about jobs, and nothing waits for the monitor.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;

/// A monitor that lists its requests, and answers once it may.
pub struct Monitor {
    pub url: String,
    shared: Arc<(Mutex<Heard>, Condvar)>,
}

#[derive(Default)]
struct Heard {
    may_answer: bool,
    /// Requests as `PATH: BODY`.
    told: Vec<String>,
}

impl Monitor {
    pub fn new(may_answer: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new((Mutex::new(Heard { may_answer, ..Heard::default() }), Condvar::new()));
        let kept = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.unwrap(), Arc::clone(&kept));
                std::thread::spawn(move || hear(stream, &shared));
            }
        });
        Self { url, shared }
    }

    fn answer(&self) {
        self.shared.0.lock().unwrap().may_answer = true;
        self.shared.1.notify_all();
    }

    pub fn notifications(&self) -> Vec<String> {
        self.shared.0.lock().unwrap().told.clone()
    }
}

fn hear(mut stream: std::net::TcpStream, (heard, bell): &(Mutex<Heard>, Condvar)) {
    let mut read = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    // A caller that was ended meanwhile sends nothing.
    if read.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        read.read_line(&mut header).unwrap();
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).unwrap();
    let mut heard = heard.lock().unwrap();
    heard.told.push(format!("{path}: {}", String::from_utf8(body).unwrap()));
    while !heard.may_answer {
        heard = bell.wait(heard).unwrap();
    }
    drop(heard);
    let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK");
}

#[test]
fn a_job_tells_that_it_begins_works_and_fails() {
    let monitor = Monitor::new(true);
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("reminders/tea.md", &reminder(now(), &format!("heartbeat_url: {}/tea\n", monitor.url), "Tea."));
    service.until("both beats", || (monitor.notifications().len() == 2).then_some(()));
    assert_eq!(monitor.notifications(), ["/tea/start: ", "/tea: "]);
    let fields =
        format!("background: true\nallowed_tools: [Read]\nretry: 0\nheartbeat_url: {}/mail/?a=1\n", monitor.url);
    bot.write("reminders/mail.md", &reminder(now(), &fields, "Sort."));
    let run = service.until_ended("mail", 1).remove(0);
    service.until("both beats", || (monitor.notifications().len() == 4).then_some(()));
    let run = run["run"].as_str().unwrap();
    assert_eq!(
        monitor.notifications()[2..],
        ["/mail/start?a=1: ".to_owned(), format!("/mail/fail?a=1: failed, run {run}")]
    );
    service.stop();
}

#[test]
fn the_service_tells_that_it_lives_and_how_it_ends() {
    let monitor = Monitor::new(true);
    let bot = TestBot::new().env("OLLIM_HEARTBEAT_URL", &format!("{}/bot", monitor.url));
    let service = bot.start();
    service.until("it is alive", || (monitor.notifications().len() == 2).then_some(()));
    service.stop();
    assert_eq!(monitor.notifications(), ["/bot/start: ", "/bot: ", "/bot/log: the service was ended in order"]);
}

#[test]
fn a_setting_that_is_read_again_counts_at_once() {
    let monitor = Monitor::new(true);
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("config.yaml", &format!("heartbeat_url: {}/new\n", monitor.url));
    service.signal(rustix::process::Signal::HUP);
    service.until("it is alive", || (monitor.notifications().len() == 2).then_some(()));
    assert_eq!(monitor.notifications(), ["/new/start: ", "/new: "]);
    service.stop();
}

#[test]
fn nothing_waits_for_a_monitor_that_does_not_answer() {
    let monitor = Monitor::new(false);
    let bot = TestBot::new().env("OLLIM_HEARTBEAT_URL", &format!("{}/bot", monitor.url));
    let service = bot.start();
    bot.write("reminders/tea.md", &reminder(now(), &format!("heartbeat_url: {}/tea\n", monitor.url), "Tea."));
    let run = service.until_ended("tea", 1).remove(0);
    assert_eq!(run["outcome"], "completed");
    service.until("it was begun to be told", || {
        monitor.notifications().contains(&"/tea/start: ".to_owned()).then_some(())
    });
    assert!(
        !monitor.notifications().contains(&"/tea: ".to_owned()),
        "the first is not answered, so the second was not sent"
    );
    // The service's end does not wait either.
    let (status, said) = service.stop();
    assert!(status.success() && said.contains("a monitor does not answer"), "{said}");
    monitor.answer();
}

#[test]
fn what_is_no_web_address_is_an_error() {
    let bot = TestBot::new();
    bot.write("routines/a.md", "---\ncron: '@daily'\nheartbeat_url: hc-ping.com/x\n---\nx\n");
    bot.write("config.yaml", "heartbeat_url: ftp://x\n");
    insta::assert_snapshot!(shown(&bot, &bot.run(["check"])), @"
    exit: 1
    -- stdout
    error: `heartbeat_url` must be a web address, and begin with `https://` or `http://`
      --> config.yaml:1:16
    hint: write `heartbeat_url: https://…`

    error: routine `a`: `heartbeat_url` must be a web address, and begin with `https://` or `http://`
      --> routines/a.md:3:16
    hint: write `heartbeat_url: https://…`

    0 definitions in order, 2 errors, 0 warnings
    ");
}

#[test]
fn the_service_tells_that_jobs_wait_for_a_login() {
    let monitor = Monitor::new(true);
    let bot = TestBot::with_client(&client::real(), "http://127.0.0.1:9").without("ANTHROPIC_API_KEY");
    let bot = bot.env("OLLIM_HEARTBEAT_URL", &format!("{}/bot", monitor.url));
    bot.write(
        "routines/list.md",
        "---\ncron: '@yearly'\nbackground: true\nisolated: true\nallowed_tools: [Read]\n---\nRead the list.\n",
    );
    let service = bot.start();
    service.until("it fires", || (bot.run(["fire", "list"]).code == 0).then_some(()));
    service.until("it waits", || bot.json(["status"])["daemon"]["waiting_for_login"].is_string().then_some(()));
    // The service notifies the monitor within a minute, or at once when it reads the settings again.
    bot.write("config.yaml", "user_name: Ada\n");
    service.signal(rustix::process::Signal::HUP);
    let fail = "/bot/fail: the agent client is not logged in: jobs wait".to_owned();
    service.until("the monitor hears of it", || monitor.notifications().contains(&fail).then_some(()));
    service.stop();
}

#[test]
fn the_service_tells_that_a_fault_has_ended_it() {
    let monitor = Monitor::new(true);
    let bot = TestBot::new().env("OLLIM_HEARTBEAT_URL", &format!("{}/bot", monitor.url));
    let service = bot.start();
    service.until("it is alive", || (monitor.notifications().len() == 2).then_some(()));
    // A single rename, since the service may be writing into the folder.
    std::fs::rename(bot.path("state"), bot.path("gone")).unwrap();
    std::fs::remove_dir_all(bot.path("gone")).unwrap();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea."));
    let (status, said) = service.wait();
    assert_eq!(status.code(), Some(2), "{said}");
    let told = monitor.notifications();
    let last = told.last().unwrap();
    assert!(last.starts_with("/bot/fail: ") && last.contains("was deleted or replaced"), "{told:#?}");
}
