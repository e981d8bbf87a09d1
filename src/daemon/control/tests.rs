use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream as StdStream;

use super::*;
use crate::daemon::call::{self, CallError};
use crate::daemon::lock::Lock;
use crate::daemon::runtime_files;
use crate::definition::{Defaults, DefinitionId, Kind, parse};
use crate::journal::{Denial, EventKind, RunId};
use crate::policy::{self, Decision, Layer, PathRoots, Verdict};
use crate::run::delegation::DelegationLimit;
use crate::run::spawn::SpawnRequest;
use crate::run::tokens::RunActions;
use crate::schedule::Schedule;

/// Echoes each request.
struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        Reply::Output { stdout: format!("{}: {}", run.title, argv.join(" ")), stderr: String::new(), exit: 0 }
    }
    async fn service(&self, command: ServiceCommand) -> Result<ServiceReply, Refusal> {
        match command {
            ServiceCommand::Pause => Ok(ServiceReply::Paused),
            other => Err(Refusal::user(format!("{other:?}"))),
        }
    }
    fn open_chat(&self) -> crate::channel::OpenChat {
        crate::channel::OpenChats::default().open()
    }
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
    fn live(&self) -> broadcast::Receiver<TurnUpdate> {
        crate::bot::live::LiveTurns::default().listen()
    }
    fn newest_event(&self) -> i64 {
        7
    }
    /// Returns an endless series of events, one at a time.
    async fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, Refusal> {
        let kind = EventKind::DefinitionChanged;
        Ok(vec![Event {
            number: number + 1,
            at: chrono::DateTime::UNIX_EPOCH,
            run: filter.run.clone(),
            id: None,
            kind,
        }])
    }
}

/// Formats the first line of a caller with this token.
fn hello(token: &str) -> String {
    format!("{}\n", serde_json::json!({ "token": token, "protocol": PROTOCOL }))
}

struct Service {
    home: Home,
    tokens: Tokens,
    removed: Arc<Notify>,
    _folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

fn service_in(root: &std::path::Path, folder: tempfile::TempDir) -> Service {
    let home = Home::new(root);
    fs::create_dir_all(home.state()).unwrap();
    let tokens = Tokens::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entered = runtime.enter();
    let control = Control::open(&home, tokens.clone()).unwrap();
    let removed = control.removed();
    runtime.spawn(control.serve(Arc::new(Echo)));
    drop(entered);
    Service { home, tokens, removed, _folder: folder, runtime }
}

fn service() -> Service {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    service_in(&root, folder)
}

/// Grants everything, and does nothing.
struct NoopService;

#[async_trait]
impl RunActions for NoopService {
    fn decide_command(&self, _words: &[String], _agent: Option<&str>) -> Decision {
        Decision {
            verdict: Verdict::Allow,
            layer: Layer::AllowedTools,
            rule: None,
            reason: String::new(),
            commands: Vec::new(),
            read_only: false,
        }
    }
    async fn follow_up(&self, _delay: Duration) -> Result<String, Refusal> {
        Err(Refusal::user("no chain"))
    }
    async fn mark_effect(&self, _what: &str) -> Result<(), Refusal> {
        Ok(())
    }
    async fn spawn(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal> {
        if request.agent.is_some() { Err(Refusal::user("no agents here")) } else { Ok(DefinitionId::new("spawn-1")) }
    }
    async fn record_denial(&self, _denial: Denial) {}
}

fn authority() -> RunAuthority {
    let file = std::path::Path::new("routines/triage.md");
    let text = "---\ncron: '@daily'\nbackground: true\n---\nSort.\n";
    let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
    let definition = parse(Kind::Routine, file, text.as_bytes(), &defaults).definition.unwrap();
    let settings = crate::run::runner::RunSettings::of(&crate::config::Config::defaults(chrono_tz::UTC));
    let places = PathRoots { root: "/b".into(), work: "/b/work".into(), user_home: "/".into() };
    let policy = policy::main_session(&settings.main_tools, &[], &places);
    let limit = DelegationLimit::of(&definition, &policy, &settings);
    RunAuthority::new(RunId::new("0badcafe"), "routine triage".into(), limit, Arc::new(NoopService))
}

/// Sends raw bytes and returns the answer.
fn raw(service: &Service, bytes: &[u8]) -> String {
    let mut stream = StdStream::connect(service.home.socket()).unwrap();
    // The service stops reading a line that is too long, so the write may fail.
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    let _ = BufReader::new(stream).read_line(&mut answer);
    answer
}

#[track_caller]
fn refused(answer: &str) {
    assert!(answer.starts_with(r#"{"refused":"#), "{answer}");
}

#[test]
fn the_person_has_the_verbs() {
    let service = service();
    let reply = call::as_person(&service.home, &Request::Service(ServiceCommand::Pause)).unwrap();
    assert_eq!(reply, Reply::Done(ServiceReply::Paused));
}

#[test]
fn what_the_service_leaves_is_the_persons_alone() {
    let service = service();
    for path in [service.home.socket(), service.home.user_token()] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_run_has_commands_executed_while_it_lives() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    let token = grant.token().to_owned();
    let request = Request::Execute { argv: vec!["routine".into(), "list".into()] };
    let reply = call::with_token(&service.home, &token, &request).unwrap();
    assert_eq!(reply, Reply::Output { stdout: "routine triage: routine list".into(), stderr: String::new(), exit: 0 });
    drop(grant);
    assert!(matches!(call::with_token(&service.home, &token, &request), Ok(Reply::Refused(_))));
}

#[test]
fn a_connection_of_the_persons_serves_many_requests() {
    let service = service();
    let mut connection = call::Connection::as_person(&service.home).unwrap();
    for _ in 0..3 {
        let reply = connection.ask(&Request::Service(ServiceCommand::Pause)).unwrap();
        assert_eq!(reply, Reply::Done(ServiceReply::Paused));
    }
    assert!(matches!(connection.ask(&Request::Execute { argv: vec![] }), Ok(Reply::Refused(_))));
}

#[test]
fn a_connection_of_a_runs_serves_one_request() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    let mut connection = call::Connection::open(&service.home, grant.token()).unwrap();
    let request = Request::Execute { argv: vec!["status".into()] };
    assert!(matches!(connection.ask(&request), Ok(Reply::Output { .. })));
    assert!(connection.ask(&request).is_err());
}

#[test]
fn events_come_until_the_caller_has_gone() {
    let service = service();
    let remote =
        call::Remote { home: service.home.clone(), clock: crate::clock::Clock::system(), env: Default::default() };
    let filter = EventFilter { run: Some(RunId::new("0badcafe")), ..EventFilter::default() };
    let follow = |after| crate::app::Service::follow(&remote, after, filter.clone()).unwrap().unwrap();
    let numbers = |after| follow(after).take(3).map(|event| event.unwrap().number).collect::<Vec<_>>();
    assert_eq!(numbers(Some(2)), [3, 4, 5]);
    assert_eq!(numbers(None), [8, 9, 10], "from now on");
    assert!(follow(None).take(1).all(|event| event.unwrap().run == filter.run));
    // A subscriber that reads nothing delays nobody.
    let _slow = follow(Some(0));
    assert!(matches!(call::as_person(&service.home, &Request::Service(ServiceCommand::Pause)), Ok(Reply::Done(_))));
}

#[test]
fn a_run_hears_of_nothing() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    let request = Request::Subscribe { after: None, filter: EventFilter::default() };
    assert!(matches!(call::with_token(&service.home, grant.token(), &request), Ok(Reply::Refused(_))));
}

#[test]
fn another_version_is_named() {
    let service = service();
    let token = fs::read_to_string(service.home.user_token()).unwrap();
    for hello in [format!("{{\"token\":\"{token}\"}}"), format!("{{\"token\":\"{token}\",\"protocol\":99}}")] {
        let answer = raw(&service, format!("{hello}\n\"pause\"\n").as_bytes());
        assert!(answer.contains("of another version") && answer.contains("restart the service"), "{answer}");
    }
}

#[test]
fn a_run_has_none_of_the_persons_verbs() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    for request in [
        ServiceCommand::Status,
        ServiceCommand::Pause,
        ServiceCommand::Resume { id: None },
        ServiceCommand::Fire { id: DefinitionId::new("a") },
        ServiceCommand::CancelRun { run: RunId::new("a") },
    ] {
        let request = Request::Service(request);
        let reply = call::with_token(&service.home, grant.token(), &request).unwrap();
        assert!(matches!(reply, Reply::Refused(_)), "{request:?}: {reply:?}");
    }
}

#[test]
fn nothing_without_a_known_token() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    let almost = format!("{}0", &grant.token()[..31]);
    for token in ["", "0", "null", &almost, &almost.to_uppercase(), &"0".repeat(32)] {
        let reply = call::with_token(&service.home, token, &Request::Service(ServiceCommand::Pause)).unwrap();
        assert!(matches!(reply, Reply::Refused(_)), "{token:?}: {reply:?}");
    }
    for hello in ["", "{}", "null", "[]", r#""x""#, r#"{"token":null}"#, r#"{"token":["x"]}"#, "\0\u{1}\u{2}"] {
        refused(&raw(&service, format!("{hello}\n\"pause\"\n").as_bytes()));
    }
    refused(&raw(&service, b"\xff\xfe\n\"pause\"\n"));
}

#[test]
fn a_long_first_line_is_not_read() {
    let service = service();
    let answer = raw(&service, &vec![b'x'; 1 << 20]);
    assert!(answer.is_empty() || answer.contains("no token"), "{answer}");
}

#[test]
fn a_request_that_cannot_be_read_is_refused() {
    let service = service();
    let token = fs::read_to_string(service.home.user_token()).unwrap();
    for request in ["", "{", "{}", r#""pause_all""#, r#"{"fire":{}}"#, r#"{"fire":{"id":"a","force":true}}"#] {
        refused(&raw(&service, format!("{}{request}\n", hello(&token)).as_bytes()));
    }
}

#[test]
fn silent_callers_hold_up_nobody() {
    let service = service();
    let mut silent: Vec<StdStream> = Vec::new();
    for _ in 0..50 {
        let mut stream = StdStream::connect(service.home.socket()).unwrap();
        stream.write_all(b"{\"token\":").unwrap();
        silent.push(stream);
    }
    assert!(matches!(call::as_person(&service.home, &Request::Service(ServiceCommand::Pause)), Ok(Reply::Done(_))));
    drop(silent);
}

#[test]
fn the_oldest_caller_that_says_nothing_makes_room() {
    let service = service();
    let mut held: Vec<StdStream> =
        (0..MAX_UNIDENTIFIED).map(|_| StdStream::connect(service.home.socket()).unwrap()).collect();
    assert!(matches!(call::as_person(&service.home, &Request::Service(ServiceCommand::Pause)), Ok(Reply::Done(_))));
    // The service drops the connection, whether or not it sends something first.
    assert!(matches!(held[0].read(&mut [0; 1]), Ok(0) | Err(_)));
    held[1].set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    assert_eq!(held[1].read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_run_that_asks_nothing_has_a_few_places_too() {
    let service = service();
    let grant = service.tokens.grant(authority()).unwrap();
    let token = grant.token().to_owned();
    let connect = || {
        let mut stream = StdStream::connect(service.home.socket()).unwrap();
        stream.write_all(hello(&token).as_bytes()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        stream
    };
    let mut held: Vec<StdStream> = (0..20).map(|_| connect()).collect();
    let refused = held.iter_mut().map(|stream| stream.read(&mut [0; 1])).filter(|read| matches!(read, Ok(1))).count();
    assert_eq!(refused, 12);
}

#[test]
fn a_run_has_a_few_places_at_a_time() {
    let run = authority();
    let held: Vec<_> = std::iter::from_fn(|| run.call()).collect();
    assert!(!held.is_empty() && held.len() < MAX_UNIDENTIFIED / 4, "{}", held.len());
    drop(held);
    assert!(run.call().is_some());
}

#[test]
fn a_path_too_long_for_a_socket_is_reached_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a".repeat(100)).join("b".repeat(100));
    fs::create_dir_all(&root).unwrap();
    let service = service_in(&root, folder);
    assert!(matches!(call::as_person(&service.home, &Request::Service(ServiceCommand::Pause)), Ok(Reply::Done(_))));
}

#[test]
fn no_service_is_said_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path());
    assert!(matches!(call::as_person(&home, &Request::Service(ServiceCommand::Pause)), Err(CallError::NotRunning)));
    // A killed service leaves its token and a socket without a listener.
    fs::create_dir(home.state()).unwrap();
    fs::write(home.user_token(), "00").unwrap();
    drop(std::os::unix::net::UnixListener::bind(home.socket()).unwrap());
    assert!(matches!(call::as_person(&home, &Request::Service(ServiceCommand::Pause)), Err(CallError::NotRunning)));
}

/// Jobs would go on, and nobody could ask the service anything.
#[test]
fn a_socket_and_a_token_that_are_removed_are_made_again() {
    let service = service();
    let lock = Arc::new(Lock::take(&service.home).unwrap());
    let ask = || call::as_person(&service.home, &Request::Service(ServiceCommand::Pause));
    let journal = tokio::sync::watch::Sender::new(None);
    for file in [service.home.socket(), service.home.user_token()] {
        fs::remove_file(file).unwrap();
        assert!(matches!(ask(), Err(CallError::NotRunning)));
        let (schedule, _inbox) = Schedule::channel(1);
        let (lock, home, removed) = (Arc::clone(&lock), service.home.clone(), Arc::clone(&service.removed));
        let watch = service.runtime.spawn(runtime_files::watch(lock, home, schedule, journal.subscribe(), removed));
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while ask().is_err() {
            assert!(std::time::Instant::now() < until, "never made again");
            std::thread::yield_now();
        }
        watch.abort();
    }
}
