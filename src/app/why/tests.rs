//! Runs the table: recorded events and files, and the expected sentence, word for word.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tempfile::TempDir;

use super::*;
use crate::app::{ClientStatus, Environment, Events, Sandbox, Service, ServiceCommand, ServiceReply, ServiceStatus};
use crate::clock::Clock;
use crate::definition::{Defaults, Definition, Kind, parse};
use crate::home::Home;
use crate::journal::{
    AfterAttempt, Claim, ConsecutiveFailures, DelayCause, EventFilter, EventKind, Finish, Journal, JournalLocation,
    NewClaim, NewMessage, NewQuestion, ObservedGeneration, Occasion, Occurrence, Punctuality, Purpose, RunState,
    testing,
};

/// An event at a time on 2 March 2026, a Monday: `08:00`, or `01T08:00` on another day.
enum Step {
    /// The file of a definition exists from now on: `routines/mail.md`.
    File(&'static str, &'static str),
    /// The file is removed.
    NoFile(&'static str),
    /// The service has seen its trigger.
    See,
    /// The occurrence at this time is claimed.
    Claim(&'static str),
    /// The job is fired by hand.
    ByHand,
    /// The occurrence at this time is skipped.
    Skip(&'static str, &'static str),
    /// The occurrences from the first time to the second are skipped.
    SkipAll(&'static str, &'static str, &'static str),
    Launch,
    /// The cause that keeps it from beginning, and until when.
    Delayed(DelayCause, Option<&'static str>),
    /// What the machine lacks.
    Lacks(&'static str),
    Completed,
    /// The run failed, with an error of this kind.
    Failed(&'static str, &'static str),
    /// The run failed, and is retried at this time.
    Retry(&'static str, &'static str),
    /// The run ended in another state.
    End(RunState, &'static str),
    /// The service ended during the run.
    CutOff,
    /// Another attempt begins.
    Again,
    Requested(&'static str),
    Event(EventKind),
    Moved(&'static str, &'static str),
    /// The run asks the person about a call.
    Ask(&'static str),
    /// The message of the run is held until this time.
    Hold(&'static str),
    /// The job is paused after this many failures.
    Pause(u32),
    /// Everything is paused.
    PauseAll,
    /// The job is claimed because another job has ended.
    After(&'static str),
    /// The cost of an earlier run of another job.
    Costs(f64),
    /// The cost of a run of the same job, which a person fired.
    OwnCosts(f64),
    /// The number of tokens of an earlier run of another job.
    Tokens(u64),
    /// A host that shares the journal: whether it is up (else it was last seen at 07:30), by how many seconds its clock
    /// is ahead, its labels, and whether it is the main one. This host is `attic`.
    Host(&'static str, bool, i64, &'static str, bool),
    /// The last occurrence belongs to this host.
    On(&'static str),
}
use Step::*;

/// The state of the service.
#[derive(Clone, Copy, Default)]
enum Up {
    /// It is running.
    #[default]
    Yes,
    No,
    /// It is running, and jobs have been waiting for a login since this time.
    Login(&'static str),
    /// It is running, and jobs have been waiting since this time for an agent that is not installed.
    NoAgent(&'static str),
    /// It is running, and cannot write the journal.
    FullDisk,
}

struct Case {
    name: &'static str,
    steps: &'static [(&'static str, Step)],
    up: Up,
    /// The id and the time in question.
    ask: (&'static str, Option<&'static str>),
    /// The expected situation, first sentence and next sentence.
    said: [&'static str; 3],
}

const MAIL: &str = "---\ncron: \"0 8 * * *\"\nbackground: true\n---\nSort the mail.\n";
const EDITED: &str = "---\ncron: \"0 8 * * *\"\nbackground: true\n---\nSort all of the mail.\n";
const TEA: &str = "---\nrun_at: \"2026-03-02T08:00:00Z\"\n---\nTea.\n";
const CHECK: &str = "---\nrun_at: \"2026-03-02T08:00:00Z\"\nbackground: true\nmax_chain: 3\nchain_depth: 1\nchain_parent: oven\n---\nLook.\n";

const FILE: (&str, Step) = ("07:00", File("routines/mail.md", MAIL));
const SEE: (&str, Step) = ("07:00", See);
const CLAIM: (&str, Step) = ("08:00", Claim("08:00"));
const LAUNCH: (&str, Step) = ("08:00", Launch);
const DONE: (&str, Step) = ("08:01", Completed);

mod table;
use table::CASES;

fn at(text: &str) -> DateTime<Utc> {
    let text = if text.contains('T') { text.to_owned() } else { format!("02T{text}") };
    let text = if text.starts_with("2026") { text } else { format!("2026-03-{text}") };
    let seconds = if text.len() > 16 { "" } else { ":00" };
    format!("{text}{seconds}Z").parse().unwrap()
}

struct Fixture {
    folder: TempDir,
    clock: Clock,
    journal: Journal,
    place: JournalLocation,
    id: DefinitionId,
    kind: Kind,
    file: String,
    run: Option<RunId>,
}

struct Stub(Option<ServiceStatus>);

impl Service for Stub {
    fn ask(&self, command: ServiceCommand) -> Result<Option<ServiceReply>, Refusal> {
        assert_eq!(command, ServiceCommand::Status);
        Ok(self.0.clone().map(|status| ServiceReply::Status(Box::new(status))))
    }

    fn follow(&self, _after: Option<i64>, _filter: EventFilter) -> Result<Option<Events>, Refusal> {
        Ok(None)
    }
}

fn definition_of(kind: Kind, file: &str, text: &str) -> Option<Definition> {
    let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
    parse(kind, file.as_ref(), text.as_bytes(), &defaults).definition
}

impl Fixture {
    fn new(case: &Case) -> Self {
        let folder = TempDir::new().unwrap();
        let home = Home::new(folder.path());
        for name in ["routines", "reminders/failed", "state"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let mut config = "timezone: UTC\nbudget: { day: 5.00, tokens_day: 2000000 }\n".to_owned();
        let clock = Clock::simulated(at("01T00:00"));
        let mut place = JournalLocation::File(home.journal());
        if case.steps.iter().any(|(_, step)| matches!(step, Host(..))) {
            place = testing::on_server(&home.journal());
            config += &format!("host: attic\njournal: {}\n", testing::server_url(&home.journal()));
        }
        fs::write(folder.path().join("config.yaml"), config).unwrap();
        let journal = Journal::open(place.clone(), clock.clone()).unwrap();
        let id = DefinitionId::new("mail");
        Self { folder, clock, journal, place, id, kind: Kind::Routine, file: "routines/mail.md".into(), run: None }
    }

    fn run(&self) -> RunId {
        self.run.clone().unwrap()
    }

    fn text(&self) -> Arc<str> {
        fs::read_to_string(self.folder.path().join(&self.file)).unwrap_or_default().into()
    }

    async fn claim(&mut self, due: DateTime<Utc>, purpose: Purpose) {
        self.claim_for(due, purpose, None).await;
    }

    async fn claim_for(&mut self, due: DateTime<Utc>, purpose: Purpose, occasion: Option<Occasion>) {
        let occurrence = Occurrence { id: self.id.clone(), kind: self.kind, at: due };
        let claim = NewClaim {
            occurrence,
            file: self.file.clone().into(),
            text: self.text(),
            purpose,
            occasion,
            origin: None,
            run: RunId::random(),
        };
        let Claim::Claimed(run) = self.journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!("{due}") };
        self.run = Some(run);
    }

    async fn finish(&self, finish: Finish) {
        self.journal.finish(&self.run(), finish).await.unwrap();
    }

    /// Records a run that a person fires, with its cost.
    async fn costs(&mut self, usd: f64, output: u64) {
        self.claim(self.clock.now(), Purpose::RunByHand).await;
        self.journal.launching(&self.run(), self.text(), String::new(), Punctuality::Unknown).await.unwrap();
        let file = format!("routines/{}.md", self.id);
        let definition = definition_of(Kind::Routine, &file, MAIL).unwrap();
        self.journal.record_payer(&self.run(), &definition).await.unwrap();
        let tokens = Some(crate::agent::Tokens { output, ..crate::agent::Tokens::default() });
        self.finish(Finish { cost_usd: Some(usd), tokens, ..Finish::closed(RunState::Completed, None) }).await;
    }

    async fn event(&self, kind: EventKind) {
        self.journal.record(&self.run(), kind);
    }

    async fn do_step(&mut self, step: &Step) {
        let journal = self.journal.clone();
        match step {
            File(file, text) => {
                fs::write(self.folder.path().join(file), text).unwrap();
                self.file = (*file).to_owned();
                self.kind = if file.starts_with("routines") { Kind::Routine } else { Kind::Reminder };
                self.id = DefinitionId::new(file.rsplit('/').next().unwrap().trim_end_matches(".md"));
            }
            NoFile(file) => fs::remove_file(self.folder.path().join(file)).unwrap(),
            See => {
                let seen = ObservedGeneration { id: self.id.clone(), trigger: "as it is".into(), text: self.text() };
                journal.observe(Arc::new([seen]), self.clock.now()).await.unwrap();
            }
            Claim(due) => self.claim(at(due), Purpose::Run).await,
            ByHand => self.claim(self.clock.now(), Purpose::RunByHand).await,
            After(job) => {
                let (job, run) = (DefinitionId::new(*job), RunId::new("0badcafe"));
                let occasion = Occasion::After { job, run, outcome: RunState::Completed };
                self.claim_for(self.clock.now(), Purpose::Run, Some(occasion)).await;
            }
            Skip(due, why) => self.claim(at(due), Purpose::Skip((*why).into())).await,
            SkipAll(from, due, why) => self.claim(at(due), Purpose::SkipSince(at(from), (*why).into())).await,
            Launch => {
                let text = self.text();
                let definition = definition_of(self.kind, &self.file, &text);
                let lineage = definition.map(|definition| definition.lineage()).unwrap_or_default();
                journal.launching(&self.run(), text, lineage, Punctuality::Unknown).await.unwrap();
            }
            Delayed(by, until) => {
                self.event(EventKind::Delayed { by: *by, until: until.map(at), what: None }).await;
            }
            Lacks(what) => {
                let what = Some((*what).to_owned());
                self.event(EventKind::Delayed { by: DelayCause::Requires, until: None, what }).await;
            }
            Completed => self.finish(Finish::closed(RunState::Completed, None)).await,
            Failed(class, why) => {
                let end = Finish::closed(RunState::Failed, Some((*why).into()));
                self.finish(Finish { class: Some(class), ..end }).await;
            }
            Retry(why, again) => {
                let end = Finish::closed(RunState::Failed, Some((*why).into()));
                self.finish(Finish { after: AfterAttempt::RetryAt(at(again)), ..end }).await;
            }
            End(state, why) => self.finish(Finish::closed(*state, Some((*why).into()))).await,
            CutOff => drop(journal.recover().await.unwrap()),
            Again => self.run = Some(journal.attempt_again(&self.run()).await.unwrap()),
            Requested(channel) => self.event(EventKind::Requested { channel: (*channel).into() }).await,
            Event(kind) => journal.record_apart(Some(&self.id), kind.clone()),
            Moved(from, to) => {
                journal.record_apart(Some(&self.id), EventKind::DueMoved { from: at(from), to: at(to) });
            }
            Ask(call) => {
                let question = NewQuestion {
                    run: self.run(),
                    id: self.id.clone(),
                    tool: "Bash".into(),
                    call: (*call).into(),
                    asked_rule: "Bash(git *)".into(),
                    always: None,
                    waits: std::time::Duration::from_secs(600),
                    start: false,
                };
                journal.ask(question, |_| NewMessage::of_service("?")).await.unwrap();
            }
            Hold(until) => {
                let message = NewMessage { run: Some(self.run()), ..NewMessage::of_service("News.") };
                let number = journal.message(message).await.unwrap();
                journal.route(vec![(number, vec!["phone".into()])]).await.unwrap();
                journal.hold("phone", vec![number], at(until), String::new()).await.unwrap();
            }
            Pause(failures) => {
                let failing = ConsecutiveFailures {
                    id: self.id.clone(),
                    failures: *failures,
                    notified: true,
                    paused: Some(self.clock.now()),
                };
                journal.set_consecutive_failures(failing).await.unwrap();
            }
            PauseAll => journal.set_setting("paused", Some(self.clock.now().to_rfc3339())).await.unwrap(),
            Host(name, is_up, ahead, labels, is_main) => {
                let until = if *is_up { "2100-01-01T00:00Z" } else { "2026-03-02T07:30Z" };
                let mut sql = format!(
                    "INSERT INTO host (name, home, epoch, lease_until, joined, version, zones, labels, slots, skew_ms)
                     VALUES ('{name}', '{name}', 1, '{until}', '2026-03-01T00:00Z', '1', '2026b', '{labels}', 4, {ahead} * 1000);"
                );
                if *is_main {
                    sql += &format!("INSERT INTO role (name, host, epoch) VALUES ('main', '{name}', 1);");
                }
                testing::execute(&self.place, &sql);
            }
            On(host) => {
                // Waits until the queued writes are done.
                journal.setting("paused").await.unwrap();
                let sql = format!("UPDATE occurrence SET host = '{host}'; UPDATE run SET host = '{host}';");
                testing::execute(&self.place, &sql);
            }
            Costs(usd) => {
                let id = std::mem::replace(&mut self.id, DefinitionId::new("other"));
                self.costs(*usd, 0).await;
                self.id = id;
            }
            OwnCosts(usd) => self.costs(*usd, 0).await,
            Tokens(tokens) => {
                let id = std::mem::replace(&mut self.id, DefinitionId::new("other"));
                self.costs(0.0, *tokens).await;
                self.id = id;
            }
        }
    }

    fn app(&self, up: Up) -> App {
        let client = ClientStatus { name: "claude".into(), ..ClientStatus::default() };
        let status = ServiceStatus {
            page: None,
            webhooks: None,
            pid: 7,
            since: at("01T00:00").to_rfc3339(),
            client,
            channel: "console".into(),
            sandbox: Sandbox { enforced: true, detail: String::new() },
            zone: String::new(),
            journal_fault: None,
            paused: None,
            waiting_for_login: None,
            waiting_for_agent: None,
            ending: false,
            idle_client: None,
            idle_client_left: None,
        };
        let status = match up {
            Up::Yes => Some(status),
            Up::No => None,
            Up::NoAgent(since) => {
                let missing = Some("`claude` was not found; install it".to_owned());
                let client = ClientStatus { name: "notify".into(), missing, ..ClientStatus::default() };
                Some(ServiceStatus { client, waiting_for_agent: Some(at(since).to_rfc3339()), ..status })
            }
            Up::FullDisk => Some(ServiceStatus { journal_fault: Some("the disk is full".into()), ..status }),
            Up::Login(since) => Some(ServiceStatus { waiting_for_login: Some(at(since).to_rfc3339()), ..status }),
        };
        let env = Environment::default();
        let app = App::new(Home::new(self.folder.path()), env, Arc::new(Stub(status)), Vec::new);
        App { clock: self.clock.clone(), ..app }
    }
}

/// Plays the steps, and asks five minutes after the last one.
async fn answer_of(case: &Case) -> Result<Why, Refusal> {
    let mut fixture = Fixture::new(case);
    for (time, step) in case.steps {
        let time = at(time);
        fixture.clock.jump(time - fixture.clock.now());
        fixture.do_step(step).await;
    }
    fixture.clock.jump(TimeDelta::minutes(5));
    // Waits until the queued writes are on the disk.
    fixture.journal.setting("paused").await.unwrap();
    let app = fixture.app(case.up);
    let (id, time) = case.ask;
    let id = if id == "RUN" { fixture.run().to_string() } else { id.to_owned() };
    tokio::task::spawn_blocking(move || why(&id, time, &app)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_situation_has_its_sentence() {
    let mut wrong = Vec::new();
    for case in CASES {
        let found = match answer_of(case).await {
            Ok(why) => {
                assert!(!why.evidence.is_empty(), "{}", case.name);
                [why.said.situation, why.said.sentence, why.next.map(|next| next.sentence).unwrap_or_default()]
            }
            Err(refusal) => [refusal.reason, refusal.hints.join(" "), String::new()],
        };
        if found != case.said {
            wrong.push(format!("{}\n  found    {found:#?}\n  expected {:#?}", case.name, case.said));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n\n"));
}

/// Every row of the table of situations is met by a case.
#[tokio::test(start_paused = true)]
async fn no_situation_is_without_a_case() {
    let mut met: BTreeMap<&str, u32> = situations::SITUATIONS.iter().map(|row| (row.name, 0)).collect();
    for case in CASES {
        let Ok(why) = answer_of(case).await else { continue };
        let next = why.next.map(|next| next.situation).unwrap_or_default();
        let ended = if why.said.situation.contains('/') { "" } else { "completed" };
        for name in why.said.situation.split('/').chain([next.as_str(), ended]) {
            met.entry(
                situations::SITUATIONS.iter().map(|row| row.name).find(|known| *known == name).unwrap_or("other"),
            )
            .and_modify(|count| *count += 1)
            .or_insert(1);
        }
    }
    let unmet: Vec<&str> = met.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    assert_eq!(unmet, [""; 0]);
    assert!(CASES.len() >= 40, "{}", CASES.len());
}

/// A question about a time is answered from that time's record, and nothing else.
#[tokio::test(start_paused = true)]
async fn every_evidence_names_where_it_was_seen() {
    let case = CASES.iter().find(|case| case.name == "the service was off").unwrap();
    let why = answer_of(case).await.unwrap();
    let lines: Vec<String> = why.evidence.iter().map(|one| format!("{:?}: {}", one.from, one.what)).collect();
    let run = lines.iter().find_map(|line| line.strip_prefix("Journal: run ")).unwrap()[..8].to_owned();
    assert_eq!(
        lines.join("\n").replace(&run, "RUN"),
        "Journal: due 08:00, recorded 09:12\n\
         Journal: the service was not running until 09:12\n\
         Journal: run RUN: completed after 1m\n\
         File: routines/mail.md: `0 8 * * *`, UTC\n\
         Service: it runs since yesterday at 00:00"
    );
}

/// Spending is shown in its own unit.
#[tokio::test(start_paused = true)]
async fn what_is_spent_is_said_in_its_own_unit() {
    for (case, expected) in [
        ("the budget is spent before the next", "Settings: `budget`: $5.00 of $5.00 of `day` are spent"),
        (
            "the tokens are spent before the next",
            "Settings: `budget`: 2,000,000 of 2,000,000 tokens of `tokens_day` are spent",
        ),
        (
            "its own cap is spent before the next",
            "File: routines/mail.md: $1.00 of $1.00 of `max_cost_day_usd` are spent",
        ),
        ("due, and there is no agent", "Service: `claude` was not found; install it"),
    ] {
        let case = CASES.iter().find(|known| known.name == case).unwrap();
        let why = answer_of(case).await.unwrap();
        let lines: Vec<String> = why.evidence.iter().map(|one| format!("{:?}: {}", one.from, one.what)).collect();
        assert!(lines.iter().any(|line| line == expected), "{}: {lines:#?}", case.name);
    }
}
