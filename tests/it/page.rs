//! The page over HTTP: its content, its actions, and its refusals. `page_browser` tests what needs a browser.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::hosts::host;
use crate::pushed::{pushed, routine};
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::http::{self, Answer};
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::postgres::Postgres;
use crate::support::terminal::Terminal;

/// A bot whose page listens on a port of its own.
struct Page {
    bot: TestBot,
    address: SocketAddr,
}

impl Page {
    fn new() -> Self {
        Self::of(TestBot::new())
    }

    fn of(bot: TestBot) -> Self {
        // Nobody else has this port until it is listened on again.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        bot.write("config.yaml", &format!("web: {address}\n"));
        bot.write(
            "routines/greets.md",
            "---\ncron: '0 9 * * *'\ntimezone: America/New_York\nbackground: true\nclient: exec\ncommand: echo hello\n---\n",
        );
        bot.write("routines/<b>odd.md", "---\ncron: '0 9 * * *'\n---\n<script>alert(1)</script>\n");
        Self { bot, address }
    }

    /// Sends a request with these lines in its head. The connection closes after it.
    fn send(&self, method: &str, path: &str, head: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let host = format!("Host: {}", self.address);
        let length = format!("Content-Length: {}", body.len());
        let own = head.iter().any(|line| line.starts_with("Host:"));
        let lines = [(!own).then_some(&*host), Some(&*length), Some("Connection: close")].into_iter().flatten();
        let lines: String = lines.chain(head.iter().copied()).map(|line| format!("{line}\r\n")).collect();
        write!(stream, "{method} {path} HTTP/1.1\r\n{lines}\r\n{body}").unwrap();
        http::answer(stream)
    }

    fn get(&self, path: &str, cookie: &str) -> Answer {
        self.send("GET", path, &[&format!("Cookie: {cookie}")], "")
    }

    /// Posts a form as this page's own forms do.
    fn post(&self, path: &str, cookie: &str, form: &str) -> Answer {
        let (cookie, origin) = (format!("Cookie: {cookie}"), format!("Origin: http://{}", self.address));
        let head = [&*cookie, &*origin, "Content-Type: application/x-www-form-urlencoded"];
        self.send("POST", path, &head, form)
    }

    /// Returns the path of a new link.
    fn link(&self) -> String {
        let said: Value = serde_json::from_str(&self.bot.ok(["web", "--json"])).unwrap();
        let url = said["url"].as_str().unwrap();
        url.strip_prefix(&format!("http://{}", self.address)).unwrap().to_owned()
    }

    /// Logs in and returns the cookie.
    fn log_in(&self) -> String {
        let entered = self.post(&self.link(), "", "");
        assert_eq!(entered.status, 303, "{}", entered.head);
        cookie(&entered)
    }

    /// Returns the token that a session's forms carry.
    fn token(&self, cookie: &str) -> String {
        let page = self.get("/service", cookie);
        let (_, rest) = page.body.split_once("name=\"token\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

fn cookie(answer: &Answer) -> String {
    let line = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
    line.split(';').next().unwrap().to_owned()
}

#[test]
fn a_link_logs_one_browser_in_once() {
    let page = Page::new();
    let service = page.bot.start();
    assert_eq!(page.get("/", "").status, 401);
    let link = page.link();
    // A GET uses no link up: messengers fetch links for a preview.
    for _ in 0..3 {
        let looked = page.get(&link, "");
        assert_eq!(looked.status, 200);
        assert!(!looked.head.contains("set-cookie"), "{}", looked.head);
    }
    let session = cookie(&page.post(&link, "", ""));
    assert_eq!(page.get(&link, "").status, 410);
    assert_eq!(page.post(&link, "", "").status, 410);
    assert_eq!(page.get("/", &session).status, 200);
    // A session outlives the service; a link does not.
    let unused = page.link();
    service.kill();
    let session_token = session.split_once('=').unwrap().1;
    for name in page.bot.names("state") {
        let kept = std::fs::read(page.bot.path("state").join(&name)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&kept).contains(session_token), "{name} keeps the hash alone");
    }
    let service = page.bot.start();
    assert_eq!(page.get("/", &session).status, 200);
    assert_eq!(page.post(&unused, "", "").status, 410);
    // A guess never succeeds, and does not spoil a good link.
    let link = page.link();
    for guess in 0..200 {
        assert_eq!(page.post(&format!("/in/{guess:032x}"), "", "").status, 410);
    }
    assert_eq!(page.post(&link, "", "").status, 303);
    let out = page.post("/out", &session, &format!("token={}", page.token(&session)));
    assert_eq!(out.status, 303);
    assert_eq!(page.get("/", &session).status, 401);
    let other = page.log_in();
    page.bot.ok(["web", "--end-sessions"]);
    assert_eq!(page.get("/", &other).status, 401);
    service.stop();
}

#[test]
fn every_page_is_shown_and_nothing_in_it_is_code() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    service.fire("greets");
    let run = page.bot.runs("greets")[0]["run"].as_str().unwrap().to_owned();
    let paths = [
        "/",
        "/?days=7",
        "/next",
        "/jobs",
        "/jobs/greets",
        "/jobs/greets/edit",
        "/jobs/greets/dry-run",
        "/runs",
        "/runs?job=greets&failed=on",
        "/refusals",
        "/refusals?since=0",
        "/policy",
        "/policy?job=greets&tool=Bash&input=git+push",
        "/costs",
        "/inbox",
        "/chat",
        "/questions",
        "/service",
        "/jobs/%3Cb%3Eodd",
        "/jobs/%3Cb%3Eodd/edit",
    ];
    let run = format!("/runs/{run}");
    for path in paths.iter().copied().chain([run.as_str()]) {
        let shown = page.get(path, &cookie);
        assert_eq!(shown.status, 200, "{path}: {}", shown.body);
        assert!(!shown.body.contains("<script>"), "{path}");
        assert!(!shown.body.contains("<b>odd"), "{path}");
        let guarded = [
            "content-security-policy: default-src 'none';",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ];
        assert!(guarded.iter().all(|line| shown.head.contains(line)), "{path}: {}", shown.head);
    }
    let shown = page.get("/jobs/greets", &cookie).body;
    assert!(shown.contains("09:00") && shown.contains("America/New_York"), "{shown}");
    // Times are in the viewer's zone, with the job's own zone beside it.
    let elsewhere = page.get("/next", &format!("{cookie}; zone=Asia/Tokyo")).body;
    assert!(elsewhere.contains("in America/New_York"), "{elsewhere}");
    assert_eq!(page.get("/jobs/nothing", &cookie).status, 404);
    assert_eq!(page.get("/nothing", &cookie).status, 404);
    service.stop();
}

#[test]
fn a_form_does_what_it_says() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    let token = page.token(&cookie);
    let post = |path: &str, fields: &str| page.post(path, &cookie, &format!("token={token}&{fields}"));
    let fired = post("/jobs/greets/fire", "");
    assert_eq!(fired.status, 303);
    let place = fired.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
    service.until("the run is over", || page.get(&place, &cookie).body.contains("completed").then_some(()));
    post("/jobs/greets/pause", "");
    assert!(page.bot.read("routines/greets.md").unwrap().contains("enabled: false"));
    post("/jobs/greets/resume", "");
    assert!(!page.bot.read("routines/greets.md").unwrap().contains("enabled: false"));
    post("/service", "do=pause");
    assert!(page.get("/", &cookie).body.contains("everything is paused"));
    post("/service", "do=resume");
    assert!(page.get("/", &cookie).body.contains("Nothing needs you"));
    // A file is checked before it is saved.
    let old = page.bot.read("routines/greets.md").unwrap();
    let seen = || {
        let form = page.get("/jobs/greets/edit", &cookie).body;
        let (_, rest) = form.split_once("name=\"seen\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let opened = seen();
    let edit = |new: &str, old: Option<&str>| {
        let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let seen = old.map_or_else(&seen, str::to_owned);
        post("/jobs/greets/edit", &format!("seen={seen}&new={}", encoded(new)))
    };
    let wrong = edit(&old.replace("0 9 * * *", "0 99 * * *"), None);
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("It was not saved") && wrong.body.contains("line 2"), "{}", wrong.body);
    let quoted = regex_lite::Regex::new("line 2: [^\n]*<pre>cron: '0 99 \\* \\* \\*'</pre>").unwrap();
    assert!(quoted.is_match(&wrong.body) && !wrong.body.contains("Open it again"), "{}", wrong.body);
    assert_eq!(page.bot.read("routines/greets.md").unwrap(), old);
    assert_eq!(edit(&old.replace("0 9", "0 10"), None).status, 303);
    assert!(page.bot.read("routines/greets.md").unwrap().contains("0 10 * * *"));
    // Another person's change in the meantime is not lost.
    let conflict = edit(&old.replace("0 9", "0 11"), Some(&opened));
    assert_eq!(conflict.status, 422);
    assert!(conflict.body.contains("href=\"/jobs/greets/edit\">Open it again</a>"), "{}", conflict.body);
    let texts = [conflict.body.contains("0 11 * * *"), conflict.body.contains("0 10 * * *")];
    assert_eq!(texts, [true; 2], "{}", conflict.body);
    assert!(page.bot.read("routines/greets.md").unwrap().contains("0 10 * * *"));
    // A file keeps its line endings.
    page.bot.write("routines/greets.md", &old.replace('\n', "\r\n"));
    assert_eq!(edit(&old.replace("0 9", "0 12"), None).status, 303);
    let written = page.bot.read("routines/greets.md").unwrap();
    assert_eq!(written, old.replace("0 9", "0 12").replace('\n', "\r\n"));
    service.stop();
}

#[test]
fn the_sentence_counts_what_waits_and_hides_no_single_need() {
    let page = Page::of(TestBot::new().env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", "/nowhere/claude"));
    let job = |id: &str, fields: &str| {
        page.bot.write(
            &format!("routines/{id}.md"),
            &format!("---\ncron: '@yearly'\nbackground: true\n{fields}---\nGo.\n"),
        );
    };
    job("works", "allowed_tools: [Read]\n");
    job("works-later", "allowed_tools: [Read]\n");
    for n in 1..=6 {
        job(&format!("fails-{n}"), "retry: 0\nclient: exec\ncommand: 'exit 3'\nallowed_tools: []\n");
    }
    let service = page.bot.start();
    let cookie = page.log_in();
    let needs = || {
        let body = page.get("/", &cookie).body;
        let (_, needs) = body.split_once("id=\"needs\"").unwrap();
        let needs = needs.split_once("</p>").unwrap().0.to_owned();
        regex_lite::Regex::new("<[^>]*>").unwrap().replace_all(&needs, "").into_owned()
    };
    assert!(needs().ends_with("1 thing needs you: no agent, so 2 jobs will wait."), "{}", needs());
    page.bot.ok(["fire", "works"]);
    service.until("it waits", || needs().contains("no agent, so 1 job waits, and 1 more will.").then_some(()));
    for n in 1..=5 {
        service.fire(&format!("fails-{n}"));
    }
    assert!(needs().contains("6 things need you") && needs().ends_with("; fails-5 failed."), "{}", needs());
    service.fire("fails-6");
    assert!(needs().ends_with("; fails-4 failed; and 2 more."), "{}", needs());
    service.stop();
}

/// What comes does not come while it is paused.
#[test]
fn what_is_paused_is_said_where_it_would_come() {
    let page = Page::new();
    page.bot.write("config.yaml", &format!("web: {}\ntimezone: UTC\n", page.address));
    for id in ["greets", "<b>odd"] {
        std::fs::remove_file(page.bot.path(&format!("routines/{id}.md"))).unwrap();
    }
    let job = |id: &str, fields: &str| {
        let job = format!("background: true\nclient: exec\ncommand: 'true'\n{fields}");
        page.bot.write(&format!("routines/{id}.md"), &format!("---\ncron: '* * * * *'\n{job}---\n"));
    };
    job("asks", "approve: true\n");
    job("made", "created_by: asks\n");
    job("idle", "enabled: false\n");
    job("ran", "");
    job("broken", "retry: x\n");
    let service = page.bot.start();
    let cookie = page.log_in();
    service.fire("ran");
    page.bot.ok(["pause", "ran"]);
    page.bot.ok(["pause"]);
    let shown = |path: &str| {
        let body = page.get(path, &cookie).body;
        regex_lite::Regex::new("<[^>]*>").unwrap().replace_all(&body, "").into_owned()
    };
    service.until("it is read", || shown("/next").contains("Disabled: idle, ran").then_some(()));
    let next = shown("/next");
    assert!(next.contains("Everything is paused: what falls due waits") && next.contains(" asks you first"), "{next}");
    assert_eq!(next.matches(" asks you first").count(), 6, "what it has made asks, too: {next}");
    let timeline = shown("/");
    for said in
        ["Everything is paused: what", "ran paused", "1 job has nothing in this time, 1 paused. 1 file has an error."]
    {
        assert!(timeline.contains(said), "{said}: {timeline}");
    }
    // What keeps everything from running comes before what concerns one file.
    assert!(
        timeline.contains("2 things need you: everything is paused; routines/broken.md has an error"),
        "{timeline}"
    );
    // The button is named rather than the command.
    for path in ["/jobs/ran", "/jobs/asks"] {
        let said = shown(path);
        assert!(said.contains("Resume") && !said.contains("ollim-bot resume"), "{path}: {said}");
    }
    page.bot.ok(["resume"]);
    assert!(!shown("/").contains("Everything is paused"));
    service.stop();
}

#[test]
fn always_shows_what_it_changes_before_it_is_pressed() {
    let api = MessagesApi::script([Reply::bash("touch a"), Reply::say("Done.")]);
    let page = Page::of(TestBot::with_client(&client::real(), api.url()));
    page.bot.write("config.yaml", &format!("web: {}\n", page.address));
    let file = "---\ncron: '0 0 29 2 *'\nbackground: true\nisolated: true\nask_tools: ['Bash(touch *)', WebFetch]\n\
                allowed_tools: [Read]\n---\nDo it.\n";
    page.bot.write("routines/job.md", file);
    let service = page.bot.start();
    let cookie = page.log_in();
    page.bot.ok(["fire", "job"]);
    let run = service.until("it asks", || page.bot.json(["questions"])[0]["run"].as_str().map(str::to_owned));
    let views = ["/questions".to_owned(), format!("/runs/{run}")];
    let change = "<code>Bash(touch *)</code> from now on. It changes <code>routines/job.md</code>:</p><pre>\
                  -ask_tools: ['Bash(touch *)', WebFetch]\n-allowed_tools: [Read]\n";
    for view in &views {
        let shown = page.get(view, &cookie).body;
        assert!(shown.contains(change) && shown.contains("value=\"always\""), "{shown}");
    }
    // The answer is refused for a file that has lost the rule, so there is no button for it.
    page.bot.write("routines/job.md", &file.replace("'Bash(touch *)', ", ""));
    for view in &views {
        let offers = |answer: &str| page.get(view, &cookie).body.contains(&format!("value=\"{answer}\""));
        service.until("the changed file is read", || (offers("run") && !offers("always")).then_some(()));
    }
    page.bot.write("routines/job.md", file);
    service.until("it is back", || page.get("/questions", &cookie).body.contains("value=\"always\"").then_some(()));
    let always = format!("token={}&answer=always", page.token(&cookie));
    assert_eq!(page.post("/questions/1", &cookie, &always).status, 303);
    service.until_ended("job", 1);
    assert!(page.bot.path("work/a").exists());
    assert_eq!(page.bot.json(["routine", "show", "job"])["ask_tools"], json!(["WebFetch"]));
    service.stop();
}

/// The person knows of their own no. The file is kept, and comes back by a button.
#[test]
fn a_reminder_that_the_person_skips_needs_nobody() {
    let page = Page::new();
    let job = "approve: true\nbackground: true\nclient: exec\ncommand: echo hello\nallowed_tools: []\n";
    page.bot.write("reminders/asks.md", &reminder(now(), job, ""));
    let service = page.bot.start();
    let cookie = page.log_in();
    let number = service.until("it asks", || page.bot.json(["questions"])[0]["number"].as_i64());
    let skip = format!("token={}&answer=deny", page.token(&cookie));
    assert_eq!(page.post(&format!("/questions/{number}"), &cookie, &skip).status, 303);
    service.until("its file is kept", || page.bot.read("reminders/failed/asks.md"));
    let shown = page.get("/jobs/asks", &cookie).body;
    assert!(shown.contains("Nothing needs you.") && shown.contains("Snooze 1h"), "{shown}");
    assert!(shown.contains("not approved: skipped, by page") && !shown.contains("there is no job"), "{shown}");
    let jobs = page.get("/jobs", &cookie).body;
    assert!(jobs.contains("<p class=\"faint\"><a href=\"/jobs/asks\">asks</a>: skipped: not approved"), "{jobs}");
    service.stop();
}

#[test]
fn jobs_of_the_database_are_shown_like_those_with_a_file() {
    let page = Page::new();
    for number in 0..21 {
        pushed(&page.bot, &format!("routines/tea-{number}.md"), &routine("0 9 1 1 *", "client: notify\n", "Tea."));
    }
    let service = page.bot.start();
    let cookie = page.log_in();
    let jobs = page.get("/jobs", &cookie).body;
    assert!(jobs.contains("href=\"/jobs/tea-0\"") && jobs.contains("And 1 more in the database"), "{jobs}");
    let job = page.get("/jobs/tea-20", &cookie);
    assert!(job.status == 200 && job.body.contains("0 9 1 1 *") && job.body.contains("Tea."), "{}", job.body);
    service.stop();
}

/// Each time is in the viewer's zone, with the job's zone beside it if it differs.
#[test]
fn times_are_those_of_whoever_looks() {
    let page = Page::new();
    page.bot.write("config.yaml", &format!("web: {}\ntimezone: UTC\n", page.address));
    let routine =
        "---\ncron: '0 9 * * *'\ntimezone: Asia/Tokyo\nbackground: true\nclient: exec\ncommand: echo hello\n---\n";
    page.bot.write("routines/tokyo.md", routine);
    let service = page.bot.start();
    let run = service.fire("tokyo");
    let at: chrono::DateTime<chrono::Utc> = run["scheduled"].as_str().unwrap().parse().unwrap();
    let there = (at + chrono::TimeDelta::hours(9)).format("%H:%M in Asia/Tokyo");
    // Times include seconds unless they are zero.
    let here = at.format("%H:%M:%S").to_string();
    let scheduled = format!("{} ({there})", here.trim_end_matches(":00"));
    let cookie = page.log_in();
    let shown = |path: &str, zone: &str| {
        let body = page.get(path, &format!("{cookie}; zone={zone}")).body;
        regex_lite::Regex::new("<[^>]*>").unwrap().replace_all(&body, "").into_owned()
    };
    let by_hand = r"tokyo was fired by hand at \d\d:\d\d \(\d\d:\d\d in Asia/Tokyo\)";
    let beside = regex_lite::escape(&scheduled);
    let path = format!("/runs/{}", run["run"].as_str().unwrap());
    for (path, said) in [
        (&*path, by_hand),
        (&path, &beside),
        ("/runs", &beside),
        ("/jobs/tokyo", by_hand),
        ("/jobs/tokyo", &beside),
        ("/", r"completed, .* UTC \(\d\d:\d\d in Asia/Tokyo\)"),
    ] {
        let text = shown(path, "UTC");
        assert!(regex_lite::Regex::new(said).unwrap().is_match(&text), "{path}: {said}: {text}");
        let text = shown(path, "Asia/Tokyo");
        assert!(!regex_lite::Regex::new(r"\d\d in Asia/Tokyo").unwrap().is_match(&text), "{path}: {text}");
    }
    // The terminal prints the same sentence.
    let why = page.bot.ok(["why", run["run"].as_str().unwrap()]);
    assert!(regex_lite::Regex::new(by_hand).unwrap().is_match(&why), "{why}");
    service.stop();
}

#[test]
fn connections_without_a_login_close_none_with_one() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    let mut events = TcpStream::connect(page.address).unwrap();
    write!(events, "GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", page.address).unwrap();
    let mut head = [0; 15];
    events.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let silent: Vec<TcpStream> = (0..600).map(|_| TcpStream::connect(page.address).unwrap()).collect();
    // It is accepted behind all of them.
    assert_eq!(page.get("/", &cookie).status, 200);
    events.set_nonblocking(true).unwrap();
    let mut rest = [0; 64 * 1024];
    let end = std::iter::repeat_with(|| events.read(&mut rest)).find(|read| !matches!(read, Ok(1..)));
    assert_eq!(end.unwrap().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the stream is open");
    drop(silent);
    service.stop();
}

#[test]
fn a_link_leads_to_the_page_wherever_it_listens() {
    // Any address of this machine.
    let page = Page::new();
    let address = TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap();
    page.bot.write("config.yaml", &format!("web: {address}\n"));
    let page = Page { address, ..page };
    let service = page.bot.start();
    let cookie = page.log_in();
    assert_eq!(page.get("/", &cookie).status, 200);
    service.stop();
    // A socket, which no browser opens.
    let socket = page.bot.path("page.sock");
    page.bot.write("config.yaml", &format!("web: {}\n", socket.display()));
    let service = page.bot.start();
    let said = page.bot.run(["web"]);
    let path = said.stdout.trim().strip_prefix("http://localhost:8080").unwrap_or_else(|| panic!("{said:?}"));
    let tunnel = format!("`ssh -L 8080:{} HOST` leads to it", socket.display());
    assert!(said.stderr.contains(&tunnel), "{said:?}");
    let mut stream = UnixStream::connect(&socket).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    service.stop();
    // A host name of its own, without a path.
    page.bot.write("config.yaml", "web: 127.0.0.1:8080\nweb_url: https://bot.example.org/bot\n");
    let checked = page.bot.run(["check"]);
    assert!(checked.code == 1 && format!("{checked:?}").contains("without a path"), "{checked:?}");
}

/// The page counts the entries that do not fit, and links to them.
#[test]
fn nothing_is_cut_without_a_word() {
    let page = Page::new();
    page.bot.write("config.yaml", &format!("web: {}\ntimezone: UTC\n", page.address));
    let routine = |id: &str, cron: &str| {
        let text =
            format!("---\ncron: '{cron}'\nbackground: true\nclient: exec\ncommand: 'true'\nenabled: true\n---\n");
        page.bot.write(&format!("routines/{id}.md"), &text);
    };
    // It comes after 5,000 others.
    let late = now() + chrono::TimeDelta::hours(23);
    routine("zz-late", &late.format("%-M %-H * * *").to_string());
    for n in 0..6 {
        routine(&format!("minute-{n}"), "* * * * *");
    }
    for n in 0..210 {
        routine(&format!("daily-{n:03}"), &(late - chrono::TimeDelta::hours(1)).format("%-M %-H * * *").to_string());
    }
    let service = page.bot.start();
    let cookie = page.log_in();
    page.bot.ok(["pause"]);
    let listed = |path: &str| {
        let body = page.get(path, &cookie).body;
        let (_, list) = body.split_once("aria-label=\"What comes\"").unwrap_or_else(|| panic!("{path}: {body}"));
        let (list, rest) = list.split_once("</table>").unwrap();
        let link = regex_lite::Regex::new(r#"<a href="(/next\?after=[^"]+)">(\d+) more</a>"#).unwrap();
        let link =
            link.captures(rest).map(|found| (found[1].replace("&amp;", "&"), found[2].parse::<usize>().unwrap()));
        let jobs = regex_lite::Regex::new("href=\"/jobs/([^\"]+)\"").unwrap();
        let jobs: Vec<String> = jobs.captures_iter(list).map(|found| found[1].to_owned()).collect();
        (jobs, link, rest.contains("more routines</a>"))
    };
    let (mut seen, link, has_more_routines) = listed("/next");
    assert_eq!((seen.len(), has_more_routines), (200, true));
    let (path, more) = link.expect("a link to the rest");
    let (rest, link, _) = listed(&path);
    assert_eq!(link, None);
    seen.extend(rest);
    for id in (0..210).map(|n| format!("daily-{n:03}")).chain(["zz-late".to_owned()]) {
        assert_eq!(seen.iter().filter(|one| **one == id).count(), 1, "{id}: {seen:?}");
    }
    assert!(more >= 29, "{more}");
    assert_eq!(page.get("/next?after=2020-01-01T00:00:00Z&job=x", &cookie).status, 200);
    service.stop();
}

/// Every error page gives the reason, a remedy and the state of the service, but not to strangers.
#[test]
fn an_error_is_a_page_like_any_other() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    let token = page.token(&cookie);
    for (path, status, said) in [
        ("/nothing", 404, "There is no such page"),
        ("/jobs/nothing", 404, "That is not there"),
        // Where commands are named, the page has links.
        ("/jobs/nothing", 404, "<p>There is no job <code>nothing</code>.</p>"),
        ("/runs/nothing", 404, "That is not there"),
        ("/runs?before=0badcafe", 404, "0badcafe"),
        ("/?days=abc", 400, "(days: "),
        ("/costs?since=-1", 400, "(since: "),
        ("/inbox?before=x", 400, "(before: "),
        ("/next?after=x", 400, "(after: "),
        ("/jobs/%FF", 400, "The address cannot be read"),
        ("/jobs/greets/fire", 405, "only sent to by a button"),
        ("/questions/1", 405, "only sent to by a button"),
        ("/in/00000000000000000000000000000000", 410, "This link has expired"),
    ] {
        let shown = page.get(path, &cookie);
        assert_eq!(shown.status, status, "{path}: {}", shown.body);
        let whole = [said, "id=\"needs\"", "<nav", "id=\"main\"", "Log out"];
        assert!(whole.iter().all(|part| shown.body.contains(part)), "{path}: {}", shown.body);
        let nobody = page.get(path, "");
        assert!(!nobody.body.contains("href=\"/jobs\"") && nobody.body.contains("rel=\"icon\""), "{}", nobody.body);
        assert!(nobody.status >= 400 && !nobody.body.contains("id=\"needs\""), "{path}: {}", nobody.body);
    }
    assert!(page.get("/jobs/greets/fire", &cookie).head.contains("allow: POST"));
    for (path, form, status, said) in [
        ("/jobs/greets/snooze", "span=soon", 422, "write a span"),
        ("/jobs/greets/nothing", "", 404, "There is no such page"),
        ("/questions/x", "", 400, "The address cannot be read"),
        ("/costs", "", 405, "only sent to by a button"),
        ("/jobs/greets/edit", &format!("new={}", "x".repeat(2 << 20)), 413, "at most 2 MB"),
    ] {
        let shown = page.post(path, &cookie, &format!("token={token}&{form}"));
        assert_eq!(shown.status, status, "{path}: {}", shown.body);
        assert!(shown.body.contains(said) && shown.body.contains("id=\"needs\""), "{path}: {}", shown.body);
    }
    let used = page.post("/in/00000000000000000000000000000000", &cookie, "");
    assert!(used.status == 410 && !used.body.contains("href=\"/in\""), "{}", used.body);
    // So is a page that needs an agent when there is none.
    let chat = page.get("/chat", &cookie).body;
    assert!(chat.contains("There is no agent to talk with") && !chat.contains("Say something below"), "{chat}");
    let unsaid = page.post("/chat", &cookie, &format!("token={token}&text=Remember+this"));
    assert_eq!(unsaid.status, 422, "{}", unsaid.body);
    assert!(
        unsaid.body.contains("It was not sent") && unsaid.body.contains("\nRemember this</textarea>"),
        "{}",
        unsaid.body
    );
    // An unsaved file appears as it was written.
    let unsaved = page.post("/jobs/greets/edit", &cookie, &format!("token={token}&seen=x&new=mine"));
    assert!(unsaved.status == 422 && unsaved.body.contains("It was not saved"), "{}", unsaved.body);
    service.stop();
}

#[test]
fn a_job_that_will_wait_for_an_agent_says_so() {
    let page = Page::of(TestBot::new().env("OLLIM_AGENT_CLIENT", "auto"));
    let reads = "---\ncron: '0 9 * * *'\nbackground: true\nallowed_tools: [Read]\n---\nRead.\n";
    page.bot.write("routines/reads.md", reads);
    let service = page.bot.start();
    let cookie = page.log_in();
    let shown = page.get("/jobs/reads", &cookie).body;
    assert!(shown.contains("When it falls due, it waits for an agent: "), "{shown}");
    assert!(!page.get("/jobs/greets", &cookie).body.contains("waits for an agent"));
    let next = page.get("/next", &cookie).body;
    assert_eq!(next.matches("will wait for an agent").count(), 1, "{next}");
    // The terminal says so as well.
    let warning = "warning: it waits for an agent: `claude` was not found";
    let add = ["routine", "add", "Look.", "--cron", "0 9 * * *", "--background", "--allowed-tools", "Read"];
    for (words, waits) in [(&["fire", "reads"][..], true), (&add, true), (&["fire", "greets"], false)] {
        let ran = page.bot.run(words);
        assert!(ran.code == 0 && ran.stderr.contains(warning) == waits, "{ran:?}");
    }
    service.stop();
}

/// The page shows a refused delivery that had the secret. It keeps nothing of a stranger's.
#[test]
fn what_a_webhook_refused_is_shown() {
    let page = Page::new();
    let secret = "0123456789abcdef0123456789abcdef";
    page.bot.secrets(&format!("WEBHOOK_SECRET={secret}\n"));
    let hooks = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    page.bot.write("config.yaml", &format!("web: {}\nwebhooks: {hooks}\n", page.address));
    for id in ["bell", "door", "asks"] {
        let fields = if id == "asks" { "approve: true\n" } else { "fields: { required: [who] }\n" };
        page.bot.write(&format!("webhooks/{id}.md"), &format!("---\n{fields}client: notify\n---\n{{{{who}}}}\n"));
    }
    let service = page.bot.start();
    service.until("it listens", || TcpStream::connect(hooks).ok());
    let deliver = |id: &str, secret: &str| {
        let mut stream = TcpStream::connect(hooks).unwrap();
        let body = format!("{{\"shape\": \"<b>round</b> of {id}\"}}");
        let head = format!("Authorization: Bearer {secret}\r\nContent-Length: {}", body.len());
        write!(stream, "POST /hook/{id} HTTP/1.1\r\nHost: bot\r\n{head}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(deliver("bell", secret).starts_with("HTTP/1.1 422"));
    assert!(deliver("door", "guessed").starts_with("HTTP/1.1 401"));
    let cookie = page.log_in();
    let shown = service.until("both are told of", || {
        let shown = page.get("/refusals", &cookie).body;
        (shown.contains("href=\"/jobs/bell\"") && shown.contains("href=\"/jobs/door\"")).then_some(shown)
    });
    assert!(shown.contains("&lt;b&gt;round&lt;/b&gt; of bell"), "{shown}");
    assert!(!shown.contains("of door"), "{shown}");
    // What was taken is on the page of its run until that has ended.
    assert!(deliver("asks", secret).starts_with("HTTP/1.1 202"));
    let run = page.bot.runs("asks")[0]["run"].as_str().unwrap().to_owned();
    let shown = page.get(&format!("/runs/{run}"), &cookie).body;
    assert!(shown.contains("<pre>{&quot;shape&quot;:&quot;&lt;b&gt;round&lt;/b&gt; of asks&quot;}</pre>"), "{shown}");
    page.bot.ok(["cancel-run", &run]);
    let shown = page.get(&format!("/runs/{run}"), &cookie).body;
    assert!(!shown.contains("of asks") && shown.contains("It is kept only until the job has ended."), "{shown}");
    service.stop();
}

/// Opens a browser only on a desktop. The browser gets the link from a file, since all users can read command lines.
#[test]
fn a_link_is_opened_on_a_desktop_alone() {
    let page = Page::new();
    let service = page.bot.start();
    let folder = page.bot.path("programs");
    std::fs::create_dir(&folder).unwrap();
    let opener = folder.join("xdg-open");
    let log = page.bot.path("opened");
    let text = format!("#!/bin/sh\necho \"$# $1\" >>'{0}'\ncat \"$1\" >>'{0}'\n", log.display());
    std::fs::write(&opener, text).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let command = |words: &[&str], name: &str| {
        let mut command = page.bot.command(words);
        command.env("PATH", &path).env("DISPLAY", ":0").env(name, "1");
        command
    };
    // No browser opens in a pipe, over ssh, without a screen, or if the settings say so.
    assert!(command(&["web"], "X").output().unwrap().status.success());
    let (_, said) = Terminal::start(command(&["web"], "SSH_CONNECTION")).end();
    assert!(said.contains("/in/"), "{said}");
    let mut without = command(&["web"], "X");
    without.env_remove("DISPLAY");
    Terminal::start(without).end();
    Terminal::start(command(&["web", "--no-open"], "X")).end();
    let (_, said) = Terminal::start(command(&["web"], "X")).end();
    let url = said.lines().find(|line| line.contains("/in/")).unwrap_or_else(|| panic!("{said}")).trim().to_owned();
    let opened =
        service.until("it is opened", || std::fs::read_to_string(&log).ok().filter(|text| text.ends_with("</a>\n")));
    let file = page.bot.path("state/open.html");
    let (words, led) = opened.split_once('\n').unwrap();
    assert_eq!(words, format!("1 {}", file.display()));
    assert!(led.lines().count() == 1 && led.contains(&format!("url={url}\"")), "{led}: {url}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    service.stop();
}

#[test]
fn what_is_offered_to_allow_a_call_fits_the_file_and_allows_it() {
    let page = Page::new();
    let job = "---\ncron: '17 3 29 2 *'\nclient: exec\nretry: 0\n";
    let touch = format!("{job}command: touch made\n");
    page.bot.write("routines/flow.md", &format!("{touch}allowed_tools: [Read, 'Bash(ls *)'] # two of them\n---\n"));
    page.bot.write("routines/none.md", &format!("{touch}allowed_tools: []\n---\n"));
    page.bot.write("routines/block.md", &format!("{touch}allowed_tools:\n  # one\n  - Read\n---\n"));
    page.bot.write("routines/long.md", &format!("{touch}allowed_tools: [\n  Read,\n  ]\n---\n"));
    page.bot.write("routines/ours.md", &format!("{job}command: ollim-bot web\nallowed_tools: []\n---\n"));
    let service = page.bot.start();
    let cookie = page.log_in();
    let fire = |id: &str| {
        page.bot.run(["fire", id, "--wait"]);
        page.bot.runs(id)[0]["outcome"].as_str().unwrap().to_owned()
    };
    let section = |id: &str| {
        let body = page.get("/refusals", &cookie).body;
        let named = format!("href=\"/jobs/{id}\"");
        body.split("<section").skip(1).find(|section| section.contains(&named)).map(str::to_owned).unwrap_or(body)
    };
    for (id, old, offered) in [
        (
            "flow",
            "allowed_tools: [Read, 'Bash(ls *)'] # two of them",
            "allowed_tools: [Read, 'Bash(ls *)', \"Bash(touch *)\"] # two of them",
        ),
        ("none", "allowed_tools: []", "allowed_tools: [\"Bash(touch *)\"]"),
        ("block", "  - Read", "  - \"Bash(touch *)\""),
        ("long", "allowed_tools: [\n  Read,\n  ]", "allowed_tools:\n  - Read\n  - Bash(touch *)"),
    ] {
        assert_eq!(fire(id), "failed", "{id}");
        let shown = section(id);
        let copied = shown.split("data-copy=\"").nth(1).unwrap_or_else(|| panic!("{id}: {shown}"));
        let copied = copied.split_once("\">Copy").unwrap().0.replace("&quot;", "\"").replace("&#39;", "'");
        assert_eq!(copied, offered, "{id}: {shown}");
        let file = format!("routines/{id}.md");
        let new = if id == "block" { format!("{old}\n{offered}") } else { offered.to_owned() };
        page.bot.write(&file, &page.bot.read(&file).unwrap().replace(old, &new));
        service.until("its file is read", || section(id).contains("by now").then_some(()));
        assert!(!section(id).contains("data-copy"), "{}", section(id));
        assert_eq!(fire(id), "completed", "{id}");
    }
    assert_eq!(fire("ours"), "failed");
    let shown = section("ours");
    assert!(shown.contains("this command is yours alone") && !shown.contains("data-copy"), "{shown}");
    service.stop();
}

#[test]
fn a_reminder_is_put_off_and_not_brought_forward() {
    let page = Page::new();
    for (id, minutes) in [("soon", 30), ("today", 120), ("later", 100_000)] {
        let at = now() + chrono::TimeDelta::minutes(minutes);
        page.bot.write(&format!("reminders/{id}.md"), &reminder(at, "client: notify\n", "Tea."));
    }
    page.bot.write("reminders/fired.md", &reminder(now(), "client: notify\n", "Tea."));
    let service = page.bot.start();
    let cookie = page.log_in();
    service.until("it has fired", || (!page.bot.path("reminders/fired.md").exists()).then_some(()));
    let offered = |id: &str| {
        let shown = page.get(&format!("/jobs/{id}"), &cookie).body;
        ["Snooze 1h", "Snooze 1d"].map(|label| shown.contains(label))
    };
    service.until("its end is shown", || (offered("fired") == [true, true]).then_some(()));
    assert_eq!(["soon", "today", "later"].map(offered), [[true, true], [false, true], [false, false]]);
    let done = page.post("/jobs/fired/snooze", &cookie, &format!("token={}&span=1h", page.token(&cookie)));
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(page.bot.path("reminders/fired.md").exists());
    service.stop();
}

/// A message of the service names a command. On the page, a link to the button stands for it.
#[test]
fn a_failed_reminder_comes_back_by_a_button() {
    let page = Page::new();
    let job = "background: true\nclient: exec\ncommand: echo x >> runs; exit 1\nallowed_tools: [Edit]\n";
    page.bot.write("reminders/tea.md", &reminder(now(), job, ""));
    let service = page.bot.start();
    let cookie = page.log_in();
    let ran = |times: usize| {
        let runs = page.bot.read("work/runs").unwrap_or_default().lines().count();
        (runs == times && page.bot.path("reminders/failed/tea.md").exists()).then_some(())
    };
    service.until("it has failed", || ran(1));
    let inbox = || page.get("/inbox", &cookie).body;
    service
        .until("it is told", || inbox().contains("<a href=\"/jobs/tea\">Retry now</a> brings it back").then_some(()));
    let shown = || page.get("/jobs/tea", &cookie).body;
    let offers = |shown: &str| shown.contains("action=\"/jobs/tea/retry\"") && shown.contains("Snooze 1h");
    service.until("its buttons are shown", || offers(&shown()).then_some(()));
    let done = page.post("/jobs/tea/retry", &cookie, &format!("token={}", page.token(&cookie)));
    assert_eq!(done.status, 303, "{}", done.body);
    service.until("it has failed again", || ran(2));
    service.stop();
}

#[test]
fn a_policy_is_answered_whatever_is_asked() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    for (tool, said) in [
        ("WebSearch", "role=\"status\""),
        ("Agent", "role=\"status\""),
        ("mcp__bot__ping_user", "role=\"status\""),
        ("Bash", "Bash needs a command"),
        ("Read", "Read needs a path"),
        ("WebFetch", "WebFetch needs an address"),
    ] {
        let shown = page.get(&format!("/policy?job=greets&tool={tool}&input="), &cookie).body;
        assert!(shown.contains(said), "{tool}: {shown}");
    }
    let unknown = page.get("/policy?job=nothere&tool=Bash&input=ls", &cookie).body;
    let hint = "<a href=\"/next\">Next</a>, <a href=\"/jobs#routines\">Routines</a> and <a href=\"/jobs#reminders\">Reminders</a> show them";
    assert!(unknown.contains(hint) && !unknown.contains("ollim-bot next"), "{unknown}");
    let first = page.get("/policy", &cookie).body;
    assert!(!first.contains("role=\"status\"") && !first.contains("needs a"), "{first}");
    service.stop();
}

#[test]
fn a_webhook_is_paused_and_not_put_off() {
    let page = Page::new();
    page.bot.secrets("WEBHOOK_SECRET=0123456789abcdef0123456789abcdef\n");
    page.bot.write("webhooks/bell.md", "---\nclient: exec\ncommand: echo hello\nallowed_tools: []\n---\n");
    let service = page.bot.start();
    let cookie = page.log_in();
    let token = page.token(&cookie);
    for (press, is_off) in [("pause", true), ("resume", false)] {
        let shown = page.get("/jobs/bell", &cookie).body;
        assert!(shown.contains(&format!("action=\"/jobs/bell/{press}\"")) && !shown.contains("Snooze"), "{shown}");
        let done = page.post(&format!("/jobs/bell/{press}"), &cookie, &format!("token={token}"));
        assert_eq!(done.status, 303, "{}", done.body);
        assert_eq!(page.bot.read("webhooks/bell.md").unwrap().contains("enabled: false"), is_off);
    }
    service.stop();
}

#[test]
fn a_webhook_without_its_secret_is_not_shown_as_one_that_fires() {
    let page = Page::new();
    page.bot.write("webhooks/bell.md", "---\nclient: exec\ncommand: echo hello\nallowed_tools: []\n---\n");
    let service = page.bot.start();
    let cookie = page.log_in();
    for path in ["/jobs", "/next"] {
        let shown = page.get(path, &cookie).body;
        assert!(shown.contains("there is no <code>WEBHOOK_SECRET</code>, so this webhook takes nothing"), "{shown}");
        assert!(!shown.contains("when something is delivered"), "{path}: {shown}");
    }
    service.stop();
}

#[test]
fn a_broken_file_leads_to_its_line_and_can_be_mended() {
    let page = Page::new();
    page.bot.write("routines/broken.md", "---\nbackground: true\ncron: '0 25 * * *'\n---\nGo.\n");
    let service = page.bot.start();
    let cookie = page.log_in();
    for path in ["/jobs/broken", "/jobs", "/service"] {
        let shown = page.get(path, &cookie).body;
        assert!(shown.contains("<a href=\"/jobs/broken#L3\"><code>routines/broken.md:3</code></a>"), "{path}: {shown}");
    }
    let shown = page.get("/jobs/broken", &cookie).body;
    assert!(shown.contains("href=\"/jobs/broken/edit\""), "{shown}");
    assert!(shown.contains("<span class=\"line wrong\" id=\"L3\">cron:"), "{shown}");
    assert_eq!(shown.matches("line wrong").count(), 1, "{shown}");
    assert_eq!(shown.matches("the hour field").count(), 1, "the error is shown once: {shown}");
    service.stop();
}

#[test]
fn a_gate_runs_for_a_button_alone() {
    let page = Page::new();
    page.bot.write(
        "routines/gated.md",
        "---\ncron: '0 0 1 1 *'\nbackground: true\nallowed_tools: [Bash]\ngate: echo x >> gate.count; exit 1\n---\nGo.\n",
    );
    let service = page.bot.start();
    let cookie = page.log_in();
    let shown = page.get("/jobs/gated/dry-run", &cookie);
    assert!(shown.status == 200 && shown.body.contains("Run the gate"), "{}", shown.body);
    assert_eq!(page.bot.read("work/gate.count"), None);
    let shown = page.post("/jobs/gated/dry-run", &cookie, &format!("token={}", page.token(&cookie)));
    assert!(shown.status == 200 && shown.body.contains("would be skipped"), "{}", shown.body);
    assert_eq!(page.bot.read("work/gate.count").unwrap().lines().count(), 1);
    service.stop();
}

#[test]
fn connections_that_say_nothing_hold_nobody_up() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    let silent: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = TcpStream::connect(page.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(page.get("/", &cookie).status, 200);
    let open = std::fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count();
    assert!(open < 400, "{open} descriptors");
    page.bot.ok(["status"]);
    drop(silent);
    service.stop();
}

#[test]
fn what_no_page_of_its_own_would_send_is_refused() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    let token = page.token(&cookie);
    let cookie_line = format!("Cookie: {cookie}");
    let own = format!("Origin: http://{}", page.address);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let body = format!("token={token}");
    let fire = |head: &[&str], body: &str| {
        page.send("POST", "/jobs/greets/fire", &[head, &[&*cookie_line, form]].concat(), body)
    };
    let elsewhere = [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: https://127.0.0.1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "X-Nothing: says where it comes from",
    ];
    for line in elsewhere {
        assert_eq!(fire(&[line], &body).status, 403, "{line}");
    }
    // Only the session's own form token is valid.
    let other = page.token(&page.log_in());
    for body in ["", "token=", &format!("token={other}"), &format!("token={}", cookie.split_once('=').unwrap().1)] {
        assert_eq!(fire(&[&own], body).status, 403, "{body}");
    }
    assert!(page.bot.runs("greets").is_empty());
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""] {
        let asked = page.send("GET", "/", &[&format!("Host: {host}"), &cookie_line], "");
        assert_eq!(asked.status, 421, "{host}");
    }
    for path in ["/", "/events", "/runs"] {
        let asked =
            page.send("GET", path, &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", &cookie_line], "");
        assert_eq!(asked.status, 403, "{path}");
        assert!(!asked.head.to_lowercase().contains("access-control"), "{}", asked.head);
    }
    // Another page of this machine may link here, but starts nothing: trying a line takes ten seconds of a processor.
    let led = ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", &cookie_line];
    let status = |path: &str| page.send("GET", path, &led, "").status;
    assert_eq!((status("/"), status("/policy")), (200, 200));
    assert_eq!(status("/policy?job=greets&tool=Bash&input=while+:;+do+:;+done"), 403);
    let name = cookie.split_once('=').unwrap().0;
    let made_up = [
        format!("{name}="),
        format!("{name}=00000000000000000000000000000000"),
        format!("x{cookie}"),
        "ollim=1".into(),
    ];
    for made_up in &made_up {
        assert_eq!(page.get("/", made_up).status, 401, "{made_up}");
    }
    // A cookie of this name that another page of this machine has set does not lock anybody out.
    assert_eq!(page.get("/", &format!("{name}=1; {cookie}")).status, 200);
    assert_eq!(fire(&[&own], &body).status, 303);
    service.stop();
}

/// Returns the output of a run.
fn printed(page: &Page, id: &str) -> String {
    let run = page.bot.runs(id)[0]["run"].as_str().unwrap().to_owned();
    let events = page.bot.json(["runs", "show", &run])["events"].as_array().unwrap().clone();
    events.iter().filter_map(|event| event["text"].as_str()).collect()
}

#[test]
fn a_job_gets_nothing_of_the_page() {
    let page = Page::new();
    let (host, port) = (page.address.ip(), page.address.port());
    let job = |id: &str, fields: &str, command: &str| {
        let command = serde_json::to_string(command).unwrap();
        let text = format!("---\ncron: '0 0 29 2 *'\nclient: exec\nretry: 0\ncommand: {command}\n{fields}---\n");
        page.bot.write(&format!("routines/{id}.md"), &text);
    };
    let knock = format!(
        "exec 3<>/dev/tcp/{host}/{port} && printf 'GET / HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && read -r line <&3 && echo \"it says $line\""
    );
    job("few-rules", "allowed_tools: [Bash(ollim-bot help)]\n", &knock);
    job(
        "without-network",
        "allowed_tools: [Bash]\nnetwork: none\n",
        &format!("bash -c '{}'", knock.replace('\'', "'\\''")),
    );
    job("with-network", "allowed_tools: [Bash]\n", &format!("bash -c '{}'", knock.replace('\'', "'\\''")));
    job("asks-for-a-link", "allowed_tools: [Bash(ollim-bot *)]\n", "ollim-bot web; ollim-bot web --json");
    job("sleeps", "allowed_tools: [Bash(sleep *)]\n", "sleep 300");
    let service = page.bot.start();
    for id in ["few-rules", "without-network", "with-network", "asks-for-a-link"] {
        service.fire(id);
    }
    // The kernel keeps jobs without network access away from the port.
    for id in ["few-rules", "without-network"] {
        assert!(!printed(&page, id).contains("it says"), "{id}: {}", printed(&page, id));
    }
    let said = printed(&page, "with-network");
    assert!(said.contains("it says HTTP/1.1 401"), "{said}");
    let said = printed(&page, "asks-for-a-link");
    assert!(!said.contains("/in/"), "{said}");
    // A request with a job's token is refused, whatever other identity it claims.
    page.bot.run(["fire", "sleeps"]);
    let token = service.until("a process of the job has its token", || {
        let processes = page.bot.processes().into_iter().filter(|process| process.command.contains("sleep 300"));
        let environments = processes.filter_map(|process| std::fs::read(format!("/proc/{}/environ", process.pid)).ok());
        environments.into_iter().find_map(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            text.split('\0').find_map(|pair| pair.strip_prefix("OLLIM_RUN_TOKEN=").map(str::to_owned))
        })
    });
    let cookie = page.log_in();
    let own = format!("Cookie: {cookie}");
    for head in
        [format!("X-Run: {token}"), format!("Authorization: Bearer {token}"), format!("Cookie: a={token}; {cookie}")]
    {
        assert_eq!(page.send("GET", "/", &[&head, &own], "").status, 403, "{head}");
    }
    for path in [format!("/?days={token}"), format!("/runs/{token}"), format!("/in/{token}")] {
        assert_eq!(page.get(&path, &cookie).status, 403, "{path}");
    }
    assert_eq!(page.get("/", &cookie).status, 200);
    service.stop();
}

/// Patterns for the parts that differ from run to run, with their placeholders.
const DIFFERS: [(&str, &str); 16] = [
    (r#"<svg class="axis.*?</svg>"#, "AXIS"),
    (r#" (d|datetime|aria-label|title)="[^"]*""#, ""),
    (r#" (x|width)="[0-9.]+%""#, ""),
    (r#"<svg[^>]*><path class="coming"/></svg>"#, ""),
    (r"Next: [^)]*\)", "Next: WHEN"),
    ("[0-9a-f]{64}", "TOKEN"),
    (r"\b[0-9a-f]{8}\b", "RUN"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]+ [A-Z][a-z]{2}( [0-9]{4})?", "DAY"),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "DAY"),
    (r"\b[0-9]{2}:[0-9]{2}(:[0-9]{2})?", "TIME"),
    (r"\b[0-9]+(\.[0-9])?[dhms]( [0-9]+[hms])?\b", "SPAN"),
    (r"<dd>[0-9]+</dd>", "<dd>NUMBER</dd>"),
    (r"in SPAN|SPAN ago", "WHEN"),
    (">now<", ">WHEN<"),
    // A busy machine may be late.
    (r#"(<td class="num" data-of="[A-Za-z]+">)(SPAN)?</td>"#, "${1}SPAN?</td>"),
    ("><", ">\n<"),
];

/// Returns the content of a page with placeholders for the parts that differ from run to run.
fn shown(page: &Page, path: &str, cookie: &str) -> String {
    let whole = page.get(path, &format!("{cookie}; zone=UTC")).body;
    let (_, main) = whole.split_once("<main").unwrap_or_else(|| panic!("{path}: {whole}"));
    let main = main.split("</main>").next().unwrap().replace(page.bot.home().to_str().unwrap(), "HOME");
    DIFFERS.iter().fold(main, |text, (pattern, word)| {
        regex_lite::Regex::new(pattern).unwrap().replace_all(&text, *word).into_owned()
    })
}

#[test]
fn each_view_is_as_it_was() {
    let page = Page::new();
    page.bot.write("config.yaml", &format!("web: {}\ntimezone: UTC\n", page.address));
    for id in ["greets", "<b>odd"] {
        std::fs::remove_file(page.bot.path(&format!("routines/{id}.md"))).unwrap();
    }
    let job = "---\ndescription: Says hello\ncron: '17 3 * * *'\nbackground: true\nclient: exec\nretry: 0\n";
    page.bot.write("routines/hello.md", &format!("{job}command: echo hello\nallowed_tools: []\n---\n"));
    page.bot
        .write("routines/refused.md", &format!("{job}enabled: false\ncommand: touch evil\nallowed_tools: []\n---\n"));
    page.bot.write("reminders/tea.md", "---\nrun_at: \"2099-01-01T00:00:00Z\"\n---\nDrink the tea.\n");
    page.bot.write("routines/broken.md", "---\ncron: '0 25 * * *'\n---\n");
    let service = page.bot.start();
    service.fire("hello");
    service.fire("refused");
    let cookie = page.log_in();
    service.until("the person is told", || {
        let said = page.get("/inbox", &cookie).body;
        (said.contains("delivered on") && !said.contains("not delivered on")).then_some(())
    });
    let run = format!("/runs/{}", page.bot.runs("hello")[0]["run"].as_str().unwrap());
    let views = [
        ("timeline", "/"),
        ("next", "/next"),
        ("jobs", "/jobs"),
        ("job", "/jobs/hello"),
        ("broken-job", "/jobs/broken"),
        ("edit", "/jobs/hello/edit"),
        ("dry-run", "/jobs/hello/dry-run"),
        ("runs", "/runs"),
        ("run", &run),
        ("refusals", "/refusals"),
        ("policy", "/policy?job=refused&tool=Bash&input=touch+evil"),
        ("costs", "/costs"),
        ("inbox", "/inbox"),
        ("chat", "/chat"),
        ("questions", "/questions"),
    ];
    for (name, path) in views {
        insta::assert_snapshot!(name, shown(&page, path, &cookie));
    }
    service.stop();
}

/// Records costs of runs, as their client would report them.
fn spend(page: &Page) {
    let journal = rusqlite::Connection::open(page.bot.path("state/journal.db")).unwrap();
    let runs =
        [(1, 10, "claude-haiku-4-5", 0.04), (1, 12, "claude-haiku-4-5", 0.02), (3, 12, "claude-sonnet-4-5", 0.3)];
    for (number, (days, hour, model, cost)) in runs.into_iter().enumerate() {
        let day = (now() - chrono::TimeDelta::days(days)).date_naive();
        let at = day.and_hms_opt(hour, 0, 0).unwrap().and_utc().timestamp_millis();
        spend_on(&journal, "dear", number, at, (model, cost));
    }
}

fn spend_on(journal: &rusqlite::Connection, id: &str, number: usize, at: i64, (model, cost): (&str, f64)) {
    let sql = "INSERT INTO occurrence (id, kind, at, by_hand, file, claimed, outcome, file_done)
               VALUES (?1, 'routine', ?2, 0, 'routines/' || ?1 || '.md', ?2, 'completed', 1)";
    journal.execute(sql, rusqlite::params![id, at]).unwrap();
    let sql =
        "INSERT INTO run (run, occurrence, attempt, state, launched, started, ended, cost_usd, model, tokens, client)
               VALUES (?1, last_insert_rowid(), 1, 'completed', ?2, ?2, ?2 + 60000, ?3, ?4, ?5, 'claude')";
    let tokens = r#"{"input":900,"cache_read":20000,"cache_write":800,"output":340}"#;
    journal.execute(sql, rusqlite::params![format!("{number:08x}"), at, cost, model, tokens]).unwrap();
}

#[test]
fn costs_of_many_jobs_show_the_dearest_and_sum_the_rest() {
    let page = Page::new();
    page.bot.start().stop();
    let journal = rusqlite::Connection::open(page.bot.path("state/journal.db")).unwrap();
    // 60 jobs: job-00 has cost a cent, job-59 60 cents.
    for number in 0..60 {
        let cost = (number + 1) as f64 / 100.0;
        let at = now().timestamp_millis() - 3_600_000;
        spend_on(&journal, &format!("job-{number:02}"), number, at, ("claude-haiku-4-5", cost));
    }
    drop(journal);
    let service = page.bot.start();
    let cookie = page.log_in();
    let jobs = |body: &str| (0..60).filter(|number| body.contains(&format!(">job-{number:02}<"))).count();
    let cut = page.get("/costs", &cookie).body;
    assert_eq!(jobs(&cut), 50, "{cut}");
    assert!(cut.contains(">job-59<") && !cut.contains(">job-09<"), "{cut}");
    // The ten remaining ones cost 1 to 10 cents.
    assert!(cut.contains("&amp;all=on\">10 more</a>, $0.55 together"), "{cut}");
    let all = page.get("/costs?since=30&all=on", &cookie).body;
    assert!(jobs(&all) == 60 && !all.contains(" more</a>"), "{all}");
    service.stop();
}

#[test]
fn each_view_with_something_in_it_is_as_it_was() {
    let api = MessagesApi::script([]);
    let page = Page::of(TestBot::with_client(&client::real(), api.url()));
    page.bot.write("config.yaml", &format!("web: {}\ntimezone: UTC\n", page.address));
    page.bot.secrets("WEBHOOK_SECRET=0123456789abcdef0123456789abcdef\n");
    let job = "background: true\nclient: exec\ncommand: echo hello\nallowed_tools: []\n";
    for id in ["greets", "<b>odd"] {
        std::fs::remove_file(page.bot.path(&format!("routines/{id}.md"))).unwrap();
    }
    page.bot.write("routines/dear.md", &format!("---\ncron: '18 3 1 1 *'\n{job}---\n"));
    page.bot.write("webhooks/bell.md", "---\ndescription: The door bell\nclient: notify\n---\nSomebody is there.\n");
    // The past is written while no other process has the journal open.
    page.bot.start().stop();
    spend(&page);
    let service = page.bot.start();
    let cookie = page.log_in();
    page.bot.write("reminders/asks.md", &reminder(now(), &format!("approve: true\n{job}"), ""));
    service.until("it asks", || page.get("/questions", &cookie).body.contains("Run it").then_some(()));
    // A waiting run is not shown as running.
    let timeline = page.get("/", &cookie).body;
    let (_, waits) = timeline.split_once("aria-label=\"Waiting\"").unwrap_or_else(|| panic!("{timeline}"));
    assert!(waits.contains("<a href=\"/questions\">Questions</a>") && waits.contains("asks waiting, "), "{waits}");
    assert!(!timeline.contains("Going now") && !timeline.contains("\"b-going\""), "{timeline}");
    for (count, text) in [(1, "What+is+new?"), (2, "And+now?")] {
        page.post("/chat", &cookie, &format!("token={}&text={text}", page.token(&cookie)));
        let answers = || page.get("/chat", &cookie).body.matches("class=\"answer\"").count();
        service.until("it is answered", || (answers() == count).then_some(()));
    }
    let last = page.get("/chat?last=1", &cookie).body;
    assert!(last.contains("href=\"/chat?last=2\"") && !last.contains("What is new?"), "{last}");
    let inbox = page.get("/inbox", &cookie).body;
    assert!(inbox.contains("<a href=\"/questions\">To the questions</a>"), "{inbox}");
    assert!(inbox.contains("\n\necho hello\n\n") && !inbox.contains("questions answer"), "{inbox}");
    let run = format!("/runs/{}", page.bot.runs("asks")[0]["run"].as_str().unwrap());
    // Parts that depend on the day of the month and on the machine.
    let differs = [
        (r"\$[0-9.]+</strong> this month", "$$MONEY</strong> this month"),
        (r#"\n?<p class="faint">Last month.*?</p>"#, ""),
        (r#"(<span class="num">)\$[0-9.]+"#, "$1$$MONEY"),
        (r"(?s)<dt>Client</dt>.*?</dd>", "CLIENT"),
        (r"(?s)<dt>Sandbox</dt>.*?</dd>", "SANDBOX"),
        ("run_at: &quot;[^&]*&quot;", "run_at: WHEN"),
    ];
    for (name, path) in [
        ("costs-with-sums", "/costs"),
        ("questions-open", "/questions"),
        ("run-that-asks", &run),
        ("chat-with-something-said", "/chat"),
        ("service", "/service"),
        ("webhook-job", "/jobs/bell"),
    ] {
        let mut text = shown(&page, path, &cookie);
        for (pattern, word) in differs {
            text = regex_lite::Regex::new(pattern).unwrap().replace_all(&text, word).into_owned();
        }
        insta::assert_snapshot!(name, text);
    }
    // A day is written as in other times.
    let day = regex_lite::Regex::new("<td>[A-Z][a-z]{2} [0-9]+ [A-Z][a-z]{2}( [0-9]{4})?</td>").unwrap();
    assert!(day.is_match(&page.get("/costs", &cookie).body));
    // A job without an agent has no tools that one sees.
    let explained = page.bot.run(["policy", "explain", "bell", "--tool", "Read", "--input", r#"{"file_path":"x"}"#]);
    assert_eq!(explained.code, 1, "{explained:?}");
    let said = [
        page.get("/policy?job=bell&tool=Read&input=x", &cookie).body,
        page.bot.ok(["policy", "show", "bell"]),
        explained.stdout,
    ];
    assert!(said[0].contains("It would be refused"), "{}", said[0]);
    for (said, has) in said.iter().zip(["has no agent", "agent    none", "has no agent"]) {
        assert!(said.contains(has) && !said.contains("tools it sees"), "{said}");
    }
    service.stop();
}

#[test]
fn several_hosts_are_shown_and_one_that_is_gone_is_said_on_every_page() {
    let server = Postgres::start();
    let page = Page::new();
    let address = page.address;
    let page = Page { bot: host(page.bot, &server, "attic"), address };
    let laptop = host(TestBot::new(), &server, "laptop").env("OLLIM_HOST_LABELS", "gpu");
    let long = "background: true\nclient: exec\ncommand: sleep 300\nhosts: [gpu]\nallowed_tools: ['Bash(sleep *)']\n";
    let service = page.bot.start();
    let cookie = page.log_in();
    // The page of a single host does not list hosts.
    assert!(!page.get("/", &cookie).body.contains("href=\"/hosts\""));
    let other = laptop.start();
    laptop.write("reminders/long.md", &reminder(now(), long, ""));
    service.until("it goes", || page.get("/hosts", &cookie).body.contains("1 of 4 open").then_some(()));
    let up = shown(&page, "/hosts", &cookie).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let up = regex_lite::Regex::new(r"\b20\d\d[a-z]\b").unwrap().replace_all(&up, "ZONES").into_owned();
    insta::assert_snapshot!("hosts", up);
    assert!(page.get("/", &cookie).body.contains("Nothing needs you"));
    other.kill();
    // Only the laptop has the job's file, so nobody takes it over.
    let said = "<a href=\"/hosts\">the host laptop is gone, with 1 job open</a>";
    service.until("it is said", || page.get("/costs", &cookie).body.contains(said).then_some(()));
    for path in ["/", "/next", "/jobs", "/inbox", "/hosts"] {
        let whole = page.get(path, &cookie).body;
        assert!(whole.contains(said) && whole.contains("href=\"/hosts\""), "{path}: {whole}");
    }
    let gone = shown(&page, "/hosts", &cookie);
    assert!(gone.contains("<span class=\"bad\">gone</span>, last seen"), "{gone}");
    service.stop();
}

#[test]
fn nothing_but_jobs_files_can_be_edited() {
    let page = Page::new();
    let service = page.bot.start();
    let cookie = page.log_in();
    page.bot.write(".env", "SECRET=very\n");
    let token = page.token(&cookie);
    let names = [
        "..%2F.env",
        ".env",
        "config.yaml",
        "..%2Fconfig",
        "routines%2Fgreets",
        "..",
        "%2e%2e",
        "%00",
        "greets%00",
        "%FF",
        "a%0d%0aX:y",
    ];
    for name in names {
        for rest in ["", "/edit", "/dry-run"] {
            let shown = page.get(&format!("/jobs/{name}{rest}"), &cookie);
            assert!(matches!(shown.status, 400 | 404), "{name}{rest}: {}", shown.status);
            assert!(!shown.body.contains("SECRET") && !shown.head.contains("X:y"), "{name}{rest}");
        }
        let saved = page.post(&format!("/jobs/{name}/edit"), &cookie, &format!("token={token}&seen=&new=evil"));
        assert!(matches!(saved.status, 400 | 404 | 422), "{name}: {}", saved.status);
    }
    assert_eq!(page.bot.read(".env").unwrap(), "SECRET=very\n");
    service.stop();
}

#[test]
fn what_is_wrong_with_the_page_keeps_no_job_from_running() {
    let page = Page::new();
    let taken = TcpListener::bind(page.address).unwrap();
    let service = page.bot.start();
    let status = page.bot.ok(["status"]);
    assert!(status.contains("not served: cannot listen on"), "{status}");
    let refused = page.bot.run(["web"]);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    service.fire("greets");
    let told = "The page is not served: cannot listen on";
    service.until("the person is told", || page.bot.json(["inbox"]).to_string().contains(told).then_some(()));
    let doctor = page.bot.run(["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("not served: cannot listen on"), "{doctor:#?}");
    drop(taken);
    service.until("it is tried again", || (page.bot.run(["web"]).code == 0).then_some(()));
    page.log_in();
    assert!(!page.bot.ok(["status"]).contains("not served"));
    assert_eq!(page.bot.json(["inbox"]).to_string().matches(told).count(), 1);
    service.stop();
    page.bot.write("config.yaml", "web: 0.0.0.0:8080\n");
    let checked = page.bot.run(["check"]);
    assert!(
        checked.stderr.contains("only this machine reaches") || checked.stdout.contains("only this machine reaches"),
        "{}",
        checked.stdout
    );
}
