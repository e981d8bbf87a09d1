use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{TimeDelta, TimeZone};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::definition::{Background, Budget, Definition, Draft, Mode, OnOverlap, Trigger};
use chrono_tz::Tz;

struct Fixture {
    folder: TempDir,
    clock: Clock,
    place: JournalLocation,
}

impl Fixture {
    fn new() -> Self {
        let noon = Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap();
        let folder = TempDir::new().unwrap();
        let place = testing::place(&folder.path().join("state/journal.db"));
        Self { folder, clock: Clock::simulated(noon), place }
    }
    /// Makes a desk whose journal is always a file.
    fn with_file() -> Self {
        let mut fixture = Self::new();
        fixture.place = (&fixture.path()).into();
        fixture
    }
    fn path(&self) -> PathBuf {
        self.folder.path().join("state/journal.db")
    }
    fn open(&self) -> Journal {
        Journal::open(&self.place, self.clock.clone()).unwrap()
    }
    fn reader(&self) -> JournalReader {
        JournalReader::open(&self.place).unwrap()
    }
    fn due(&self, id: &str, kind: Kind) -> NewClaim {
        NewClaim {
            occurrence: Occurrence { id: DefinitionId::new(id), kind, at: self.clock.now() },
            file: PathBuf::from(format!("{kind}s/{id}.md")),
            text: format!("---\n---\n{id}").into(),
            purpose: Purpose::Run,
            occasion: None,
            origin: None,
            run: RunId::random(),
        }
    }
}

fn claimed(claim: &Claim) -> RunId {
    match claim {
        Claim::Claimed(run) => run.clone(),
        Claim::AlreadyRecorded(state) => panic!("already {state}"),
    }
}

async fn one(journal: &Journal, claim: NewClaim) -> RunId {
    claimed(&journal.claim(vec![claim]).await.unwrap()[0])
}

#[tokio::test(start_paused = true)]
async fn an_occurrence_is_claimed_once_whoever_asks() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let due = fixture.due("tea", Kind::Reminder);
    let answers = journal.claim(vec![due.clone(), due.clone()]).await.unwrap();
    let run = claimed(&answers[0]);
    assert_eq!(answers[1], Claim::AlreadyRecorded(RunState::Claimed));
    journal.launching(&run, due.text.clone(), String::new(), Punctuality::Unknown).await.unwrap();
    journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
    drop(journal);
    let again = fixture.open().claim(vec![due]).await.unwrap();
    assert_eq!(again, [Claim::AlreadyRecorded(RunState::Completed)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_skipped_before_a_run_is_recorded_before_it() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let due = |id: &str, minutes: i64, purpose: Purpose| {
        let mut claim = fixture.due(id, Kind::Routine);
        claim.occurrence.at += TimeDelta::minutes(minutes);
        NewClaim { purpose, ..claim }
    };
    let skip = || Purpose::Skip("missed".to_owned());
    let claims = vec![
        due("mail", 0, skip()),
        due("mail", 1, skip()),
        due("mail", 2, Purpose::Run),
        due("mail", 3, skip()),
        due("tea", 0, skip()),
        due("tea", 1, Purpose::Run),
    ];
    let answers = journal.claim(claims.clone()).await.unwrap();
    let reader = fixture.reader();
    for (id, minutes) in [("mail", vec![3, 2, 1, 0]), ("tea", vec![1, 0])] {
        let filter = RunFilter { id: Some(DefinitionId::new(id)), ..RunFilter::default() };
        let at = |run: RunRecord| (run.scheduled - fixture.clock.now()).num_minutes();
        assert_eq!(reader.runs(&filter).unwrap().into_iter().map(at).collect::<Vec<_>>(), minutes);
    }
    // Each answer stands at its claim's place.
    for (claim, answer) in claims.iter().zip(&answers) {
        let run = reader.run(&claimed(answer)).unwrap().unwrap();
        assert_eq!((&run.id, run.scheduled), (&claim.occurrence.id, claim.occurrence.at));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_recorded_from_claim_to_end() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let due = fixture.due("tea", Kind::Reminder);
    tokio::time::advance(std::time::Duration::from_millis(1500)).await;
    let run = one(&journal, due.clone()).await;
    journal.launching(&run, "edited".into(), String::new(), Punctuality::Unknown).await.unwrap();
    journal.started(&run, ProcessIdentity::of(std::process::id()), None, None).await.unwrap();
    let denial = Denial {
        tool: "Bash".to_owned(),
        input: serde_json::json!({"command": "rm -rf /"}),
        layer: "allowed_tools".to_owned(),
        rule: None,
        reason: "not granted".to_owned(),
    };
    journal.deny(&run, denial.clone()).await.unwrap();
    let message =
        NewMessage { run: Some(run.clone()), ..NewMessage::about(Subject::words_of(&due.occurrence.id), "tea!") };
    assert_eq!(journal.message(message).await.unwrap(), 1);
    let told = NewMessage { run: Some(run.clone()), ..NewMessage::of_service("it failed") };
    let finish = Finish {
        cost_usd: Some(0.25),
        turns: Some(3),
        transcript: Some(PathBuf::from("/t.jsonl")),
        messages: vec![told],
        ..Finish::closed(RunState::Failed, Some("overloaded".to_owned()))
    };
    journal.finish(&run, finish).await.unwrap();
    assert_eq!(*journal.newest_message().borrow(), 2);

    let reader = fixture.reader();
    let record = reader.run(&run).unwrap().unwrap();
    assert_eq!((record.outcome, record.attempt, record.late_ms), (RunState::Failed, 1, Some(1500)));
    assert_eq!((record.cost_usd, record.turns, record.error.as_deref()), (Some(0.25), Some(3), Some("overloaded")));
    assert_eq!(record.definition.as_deref(), Some("edited"));
    assert_eq!(record.denials, [denial]);
    assert_eq!(reader.run(&RunId::new(&run.as_str()[..6])).unwrap(), Some(record.clone()));
    assert_eq!(reader.runs(&RunFilter { failed: true, ..RunFilter::default() }).unwrap(), [record]);
    assert_eq!(reader.unfinished().unwrap(), []);

    let waiting = journal.unrouted(10).await.unwrap();
    assert_eq!(waiting.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["tea!", "it failed"]);
    journal.delivered("console", &[1], None).await.unwrap();
    assert_eq!(journal.unrouted(10).await.unwrap().len(), 1);
    assert_eq!(fixture.reader().messages(Some(1)).unwrap()[0].number, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_has_an_effect_outside_its_run() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let run = one(&journal, fixture.due("tea", Kind::Reminder)).await;
    let ping = || NewMessage { run: Some(run.clone()), ..NewMessage::of_service("late") };
    let refused =
        |result: Result<(), JournalError>| assert!(matches!(result, Err(JournalError::NotGoing(_))), "{result:?}");

    refused(journal.mark_effect(&run, "Write").await);
    journal.launching(&run, "".into(), String::new(), Punctuality::Unknown).await.unwrap();
    journal.mark_effect(&run, "Write").await.unwrap();
    journal.mark_effect(&run, "Bash").await.unwrap();
    journal.finish(&run, Finish::closed(RunState::Cancelled, None)).await.unwrap();
    refused(journal.mark_effect(&run, "Write").await);
    refused(journal.message(ping()).await.map(|_| ()));
    refused(journal.launching(&run, "".into(), String::new(), Punctuality::Unknown).await);
    refused(journal.started(&run, None, None, None).await);
    refused(journal.finish(&run, Finish::closed(RunState::Completed, None)).await.map(|_| ()));
    refused(journal.attempt_again(&run).await.map(|_| ()));
    assert_eq!(fixture.reader().messages(None).unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn what_was_going_is_found_at_the_next_start() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let mut runs = Vec::new();
    for id in ["waiting", "going", "touched", "retried", "done", "left"] {
        runs.push(one(&journal, fixture.due(id, Kind::Reminder)).await);
    }
    for run in &runs[1..] {
        journal.launching(run, "text".into(), String::new(), Punctuality::Unknown).await.unwrap();
    }
    journal.started(&runs[1], ProcessIdentity::of(std::process::id()), None, None).await.unwrap();
    journal.mark_effect(&runs[2], "Write").await.unwrap();
    let at = fixture.clock.now() + TimeDelta::seconds(30);
    let retry = Finish { after: AfterAttempt::RetryAt(at), ..Finish::closed(RunState::Failed, None) };
    journal.finish(&runs[3], retry).await.unwrap();
    for run in &runs[4..] {
        journal.finish(run, Finish::closed(RunState::Completed, None)).await.unwrap();
    }
    journal
        .file_done(&Occurrence { id: DefinitionId::new("done"), kind: Kind::Reminder, at: fixture.clock.now() }, None)
        .await
        .unwrap();
    drop(journal);

    let journal = fixture.open();
    assert_eq!(journal.leftovers().await.unwrap(), [ProcessIdentity::of(std::process::id()).unwrap()]);
    let recovered = journal.recover().await.unwrap();
    let seen: Vec<_> = recovered
        .unfinished
        .iter()
        .map(|found| (found.occurrence.id.as_str(), found.state, found.effect.as_deref(), found.retry_at))
        .collect();
    assert_eq!(
        seen,
        [
            ("waiting", RunState::Claimed, None, None),
            ("going", RunState::Interrupted, None, None),
            ("touched", RunState::Interrupted, Some("Write"), None),
            ("retried", RunState::Failed, None, Some(at)),
        ]
    );
    let left: Vec<_> = recovered.recorded.iter().map(|found| found.occurrence.id.as_str()).collect();
    assert_eq!(left, ["left"]);
    let again = journal.attempt_again(&runs[1]).await.unwrap();
    assert_ne!(again, runs[1]);
    // Only one attempt at a time.
    assert!(matches!(journal.attempt_again(&runs[1]).await, Err(JournalError::NotGoing(_))));
    assert_eq!(journal.leftovers().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_counts_from_the_first_sight_of_a_trigger() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let start = fixture.clock.now();
    let see = async |trigger: &str| {
        let generation =
            ObservedGeneration { id: DefinitionId::new("mail"), trigger: trigger.to_owned(), text: "".into() };
        (journal.observe([generation].into(), start).await.unwrap()[0] - start).num_minutes()
    };
    let minutes = async |count: u64| tokio::time::advance(std::time::Duration::from_secs(60 * count)).await;
    assert_eq!(see("30 8 * * *").await, 0);
    minutes(10).await;
    assert_eq!(see("30 8 * * *").await, 0, "the same trigger keeps its account");
    assert_eq!(see("30 9 * * *").await, 10, "an edit starts afresh");
    minutes(10).await;
    let due = fixture.due("mail", Kind::Routine);
    one(&journal, due.clone()).await;
    minutes(10).await;
    assert_eq!(see("30 9 * * *").await, 20, "a claim moves the account on");
    let by_hand = NewClaim { purpose: Purpose::RunByHand, ..fixture.due("mail", Kind::Routine) };
    one(&journal, by_hand).await;
    assert_eq!(see("30 9 * * *").await, 20, "a run by hand does not");
    journal.record_removed(vec![due.occurrence.id.clone()]).await.unwrap();
    assert_eq!(see("30 9 * * *").await, 20, "replaced at once");
    assert_eq!(journal.known().await.unwrap(), std::slice::from_ref(&due.occurrence.id));
    journal.record_removed(journal.known().await.unwrap()).await.unwrap();
    assert_eq!(journal.known().await.unwrap(), []);
    minutes(10).await;
    assert_eq!(see("30 9 * * *").await, 40, "back after a while");
    fixture.clock.jump(TimeDelta::minutes(-15));
    assert_eq!(see("30 9 * * *").await, 40, "the clock was set back, and nobody knows whether it is right");
    journal.rewind_watermarks().await.unwrap();
    assert_eq!(see("30 9 * * *").await, 25, "it is");
    journal.record_removed(journal.known().await.unwrap()).await.unwrap();
    fixture.clock.jump(TimeDelta::minutes(-10));
    assert_eq!(see("30 9 * * *").await, 15, "back after nobody knows how long");
    let latest = fixture.clock.now() + TimeDelta::minutes(30);
    let generation =
        ObservedGeneration { id: DefinitionId::new("news"), trigger: "30 8 * * *".to_owned(), text: "".into() };
    assert_eq!(journal.observe([generation].into(), latest).await.unwrap(), [latest], "new while the clock is behind");
    journal.close().await;
    assert_eq!(fixture.open().watermark(), Some(latest));
}

/// A job can be fired as soon as its file is back.
#[tokio::test(start_paused = true)]
async fn a_definition_is_recorded_before_a_claim_that_is_made_later() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let see = |text: &str| {
        let generation = ObservedGeneration { id: DefinitionId::new("mail"), trigger: "x".into(), text: text.into() };
        journal.observe([generation].into(), fixture.clock.now())
    };
    let run = async |text: &str| {
        let run = one(&journal, fixture.due("mail", Kind::Routine)).await;
        journal.launching(&run, text.into(), "mail".to_owned(), Punctuality::Unknown).await.unwrap();
        run
    };
    see("one").await.unwrap();
    let first = run("one").await;
    journal.finish(&first, Finish::closed(RunState::Completed, None)).await.unwrap();
    journal.record_removed(vec![DefinitionId::new("mail")]).await.unwrap();
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let back = see("two");
    run("two").await;
    back.await.unwrap();
    assert!(fixture.reader().remembered("mail").unwrap().unwrap().forgotten, "it is another job");
}

#[tokio::test(start_paused = true)]
async fn a_stretch_of_skipped_ones_ends_where_the_clock_goes_back_to() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let now = fixture.clock.now();
    let stretch = |id: &str, from: i64, to: i64| NewClaim {
        occurrence: Occurrence { id: DefinitionId::new(id), kind: Kind::Routine, at: now + TimeDelta::hours(to) },
        purpose: Purpose::SkipSince(now + TimeDelta::hours(from), "missed".to_owned()),
        ..fixture.due(id, Kind::Routine)
    };
    journal.claim(vec![stretch("across", -1, 1), stretch("ahead", 1, 2), stretch("behind", -2, -1)]).await.unwrap();
    journal.rewind_watermarks().await.unwrap();
    let left: Vec<_> = fixture
        .reader()
        .occurrences(None)
        .unwrap()
        .into_iter()
        .map(|found| (found.occurrence.id.as_str().to_owned(), (found.occurrence.at - now).num_hours()))
        .collect();
    assert_eq!(left, [("across".to_owned(), 0), ("behind".to_owned(), -1)]);
}

#[tokio::test(start_paused = true)]
async fn pruning_forgets_only_what_is_settled() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    for id in ["open", "file-left", "settled"] {
        let due = fixture.due(id, Kind::Reminder);
        let run = one(&journal, due.clone()).await;
        if id != "open" {
            journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
        }
        if id == "settled" {
            journal.file_done(&due.occurrence, None).await.unwrap();
        }
    }
    let note = |text: &str| NewMessage::of_service(text);
    journal.message(note("delivered")).await.unwrap();
    journal.message(note("waiting")).await.unwrap();
    journal.delivered("console", &[1], None).await.unwrap();
    assert_eq!(journal.prune(fixture.clock.now() + TimeDelta::seconds(1), BTreeSet::new()).await.unwrap(), 1);
    let reader = fixture.reader();
    let left: Vec<_> = reader.occurrences(None).unwrap().into_iter().map(|found| found.occurrence.id).collect();
    assert_eq!(left, [DefinitionId::new("open"), DefinitionId::new("file-left")]);
    assert_eq!(reader.messages(None).unwrap().len(), 1);
    assert_eq!(reader.runs(&RunFilter::default()).unwrap().len(), 2);
}

/// All other commits wait for one that deletes. Two pages have nothing that may go, and what follows them goes.
#[tokio::test(start_paused = true)]
async fn a_commit_that_prunes_looks_at_one_page_of_rows() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let open = (0..2 * prune::PAGE).map(|number| fixture.due(&format!("open-{number}"), Kind::Reminder));
    journal.claim(open.collect()).await.unwrap();
    let settled = fixture.due("settled", Kind::Reminder);
    let run = one(&journal, settled.clone()).await;
    journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
    journal.file_done(&settled.occurrence, None).await.unwrap();
    let commits = || journal.writer.commits.load(Ordering::SeqCst);
    let texts = || {
        let reader = fixture.reader();
        reader.connection().unwrap().row("SELECT count(*) FROM definition_text", (), |row| row.get::<u32>(0)).unwrap()
    };
    let (before, had) = (commits(), texts());
    assert_eq!(journal.prune(fixture.clock.now() + TimeDelta::seconds(1), BTreeSet::new()).await.unwrap(), 1);
    assert_eq!(had - texts(), 1);
    assert!(commits() - before >= 4, "{} commits: one for each page, and one for the small tables", commits() - before);
}

/// What a job has made may do no more than the job did when it ran last. So that run stays while something is there that it made.
#[tokio::test(start_paused = true)]
async fn the_last_run_of_a_maker_outlives_the_retention() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    for (n, id) in (0i64..).zip(["maker", "maker", "other"]) {
        let mut due = fixture.due(id, Kind::Reminder);
        due.occurrence.at += TimeDelta::seconds(n);
        let run = one(&journal, due.clone()).await;
        journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
        journal.file_done(&due.occurrence, None).await.unwrap();
    }
    let later = fixture.clock.now() + TimeDelta::seconds(60);
    let maker = DefinitionId::new("maker");
    assert_eq!(journal.prune(later, BTreeSet::from([maker.clone()])).await.unwrap(), 2);
    let reader = fixture.reader();
    let [last] = &reader.runs(&RunFilter::default()).unwrap()[..] else { panic!() };
    assert_eq!((&last.id, last.definition.is_some()), (&maker, true));
    assert_eq!(journal.prune(later, BTreeSet::new()).await.unwrap(), 1);
}

/// A job that runs once a year receives its answer of a year ago.
#[tokio::test(start_paused = true)]
async fn the_last_answer_of_a_routine_that_is_there_outlives_the_retention() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let generations = ["there", "gone"].map(|id| ObservedGeneration {
        id: DefinitionId::new(id),
        trigger: "x".into(),
        text: "".into(),
    });
    journal.observe(generations.into(), fixture.clock.now()).await.unwrap();
    for (n, id) in (0i64..).zip(["there", "there", "gone"]) {
        let mut due = fixture.due(id, Kind::Routine);
        due.occurrence.at += TimeDelta::seconds(n);
        let run = one(&journal, due).await;
        journal.launching(&run, "".into(), id.to_owned(), Punctuality::Unknown).await.unwrap();
        let end = Finish { answer: Some(format!("answer {n}")), ..Finish::closed(RunState::Completed, None) };
        journal.finish(&run, end).await.unwrap();
    }
    journal.record_removed(vec![DefinitionId::new("gone")]).await.unwrap();
    assert_eq!(journal.prune(fixture.clock.now() + TimeDelta::seconds(60), BTreeSet::new()).await.unwrap(), 2);
    let answer = |lineage| fixture.reader().remembered(lineage).unwrap().and_then(|found| found.answer);
    assert_eq!((answer("there").as_deref(), answer("gone")), (Some("answer 1"), None));
}

#[tokio::test(start_paused = true)]
async fn settings_outlive_the_service() {
    let fixture = Fixture::new();
    fixture.open().set_setting("paused", Some("since noon".to_owned())).await.unwrap();
    let journal = fixture.open();
    assert_eq!(journal.setting("paused").await.unwrap().as_deref(), Some("since noon"));
    assert_eq!(fixture.reader().setting("paused").unwrap().as_deref(), Some("since noon"));
    journal.set_setting("paused", None).await.unwrap();
    assert_eq!(fixture.reader().setting("paused").unwrap(), None);
}

#[test]
fn no_journal_reads_as_an_empty_one() {
    let folder = TempDir::new().unwrap();
    let reader = JournalReader::open(&folder.path().join("state/journal.db")).unwrap();
    assert_eq!(reader.runs(&RunFilter::default()).unwrap(), []);
    assert_eq!(reader.messages(None).unwrap(), []);
    assert!(!folder.path().join("state").exists(), "reading makes nothing");
}

/// Queued operations are committed together, and a failed one does not affect the others.
#[tokio::test(start_paused = true)]
async fn a_thousand_callers_share_few_commits() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let unknown = RunId::new("00000000");
    let callers = (0..1000).map(|n| {
        let (journal, unknown, due) = (journal.clone(), unknown.clone(), fixture.due(&format!("r{n}"), Kind::Reminder));
        async move {
            if n % 10 == 0 {
                assert!(journal.mark_effect(&unknown, "Write").await.is_err());
            } else {
                one(&journal, due).await;
            }
        }
    });
    futures::future::join_all(callers).await;
    assert_eq!(fixture.reader().runs(&RunFilter::default()).unwrap().len(), 900);
    let commits = journal.writer.commits.load(Ordering::Relaxed);
    assert!(commits < 100, "{commits} commits");
}

#[tokio::test(start_paused = true)]
async fn a_locked_journal_is_said_and_waited_for() {
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    let other = Connection::open(fixture.path()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut trouble = journal.fault();
    let tries = Arc::new(AtomicU32::new(0));
    let (writing, unlocking) = tokio::join!(one(&journal, fixture.due("tea", Kind::Reminder)), async {
        trouble.wait_for(|fault| matches!(fault, Some(JournalError::Locked(_)))).await.unwrap();
        tries.fetch_add(1, Ordering::Relaxed);
        other.execute_batch("ROLLBACK").unwrap();
    });
    let () = unlocking;
    assert!(fixture.reader().run(&writing).unwrap().is_some());
    assert!(journal.fault().borrow().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_said_and_waited_for() {
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    let full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (seen, due) = (Arc::clone(&full), fixture.due("tea", Kind::Reminder));
    // SQLite's error for a write to a full disk, in the middle of a commit that others share.
    let write = journal.writer.commit(move |_| match seen.load(Ordering::SeqCst) {
        true => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None).into()),
        false => Ok(()),
    });
    let mut trouble = journal.fault();
    let (written, run, ()) = tokio::join!(write, one(&journal, due), async {
        trouble.wait_for(|fault| matches!(fault, Some(JournalError::DiskFull(_)))).await.unwrap();
        assert_eq!(fixture.reader().runs(&RunFilter::default()).unwrap(), [], "all of the commit or nothing");
        full.store(false, Ordering::SeqCst);
    });
    written.unwrap();
    assert!(fixture.reader().run(&run).unwrap().is_some());
    assert!(journal.fault().borrow().is_none());
}

/// A runtime that ends waits for its blocking threads, so none may wait for a fault forever.
#[test]
fn dropping_the_last_handle_gives_up_on_a_fault() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let other = runtime.block_on(async {
        let fixture = Fixture::with_file();
        let journal = fixture.open();
        let other = Connection::open(fixture.path()).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let mut trouble = journal.fault();
        let due = fixture.due("tea", Kind::Reminder);
        let asking = tokio::spawn(async move { journal.claim(vec![due]).await });
        trouble.wait_for(Option::is_some).await.unwrap();
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        other
    });
    drop(runtime);
    other.execute_batch("ROLLBACK").unwrap();
}

#[tokio::test(start_paused = true)]
async fn closing_gives_up_on_a_fault() {
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    let other = Connection::open(fixture.path()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut trouble = journal.fault();
    let (answer, ()) = tokio::join!(journal.claim(vec![fixture.due("tea", Kind::Reminder)]), async {
        trouble.wait_for(Option::is_some).await.unwrap();
        journal.close().await;
    });
    assert!(matches!(answer, Err(JournalError::Locked(_))), "{answer:?}");
    assert!(matches!(journal.setting("x").await, Err(JournalError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_journal_is_written_back() {
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    let before = one(&journal, fixture.due("before", Kind::Reminder)).await;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::remove_file(fixture.folder.path().join("state").join(name)).unwrap();
    }
    let after = one(&journal, fixture.due("after", Kind::Reminder)).await;
    let reader = fixture.reader();
    assert!(reader.run(&before).unwrap().is_some());
    assert!(reader.run(&after).unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_folder_is_said_and_waited_for() {
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    let before = one(&journal, fixture.due("before", Kind::Reminder)).await;
    let state = fixture.folder.path().join("state");
    fs::remove_dir_all(&state).unwrap();
    let mut trouble = journal.fault();
    let (after, ()) = tokio::join!(one(&journal, fixture.due("after", Kind::Reminder)), async {
        trouble.wait_for(|fault| matches!(fault, Some(JournalError::Gone(_)))).await.unwrap();
        fs::create_dir(&state).unwrap();
    });
    assert!(fixture.reader().run(&before).unwrap().is_some());
    assert!(fixture.reader().run(&after).unwrap().is_some());
}

/// A file that is no journal, and a journal with overwritten pages.
#[tokio::test(start_paused = true)]
async fn a_damaged_journal_is_kept_aside() {
    for damage in ["no database", "torn pages"] {
        let fixture = Fixture::with_file();
        let journal = fixture.open();
        for n in 0..200 {
            one(&journal, fixture.due(&format!("reminder-{n}"), Kind::Reminder)).await;
        }
        journal.close().await;
        let mut bytes = fs::read(fixture.path()).unwrap();
        let from = if damage == "no database" { 0 } else { 4096 };
        for byte in bytes.iter_mut().skip(from).take(8192) {
            *byte = 0x5a;
        }
        fs::write(fixture.path(), &bytes).unwrap();

        let journal = fixture.open();
        let kept = journal.kept_aside().unwrap_or_else(|| panic!("{damage}: not noticed"));
        assert_eq!(kept.file_name().unwrap(), "journal.db.damaged-20260301T120000Z");
        assert_eq!(fs::read(kept).unwrap(), bytes, "{damage}: kept as it was");
        one(&journal, fixture.due("after", Kind::Reminder)).await;
        assert_eq!(fixture.reader().runs(&RunFilter::default()).unwrap().len(), 1);
    }
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let before = fs::read(&path).unwrap();
    assert!(matches!(Journal::open(&path, Clock::system()), Err(JournalError::Newer { found: 99, .. })));
    assert!(matches!(JournalReader::open(&path), Err(JournalError::Newer { found: 99, .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A file of every earlier schema opens, keeps its rows, and ends at today's schema.
#[tokio::test(start_paused = true)]
async fn a_file_of_every_earlier_schema_opens() {
    for version in 0..=schema::MIGRATIONS.len() {
        let fixture = Fixture::with_file();
        fs::create_dir_all(fixture.path().parent().unwrap()).unwrap();
        let old = Connection::open(fixture.path()).unwrap();
        for sql in &schema::MIGRATIONS[..version] {
            old.execute_batch(sql).unwrap();
        }
        old.pragma_update(None, "user_version", i64::try_from(version).unwrap()).unwrap();
        if version > 0 {
            old.execute("INSERT INTO setting VALUES ('main_session', 'abc')", []).unwrap();
        }
        drop(old);
        let journal = fixture.open();
        let kept = journal.setting("main_session").await.unwrap();
        assert_eq!(kept.as_deref(), (version > 0).then_some("abc"), "schema {version}");
        one(&journal, fixture.due("tea", Kind::Reminder)).await;
    }
}

/// A published migration never changes: it makes the schema that is in the fixture.
#[test]
fn a_migration_stays_as_it_was() {
    let shape = |connection: &Connection| -> Vec<String> {
        let mut query =
            connection.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journal"));
    let mut seen = 0;
    for version in 1..=schema::MIGRATIONS.len() {
        let Ok(fixture) = fs::read_to_string(folder.join(format!("schema-{version}.sql"))) else { continue };
        let (then, now) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        then.execute_batch(&fixture).unwrap();
        schema::MIGRATIONS[..version].iter().for_each(|sql| now.execute_batch(sql).unwrap());
        assert_eq!(shape(&now), shape(&then), "schema {version}");
        seen += 1;
    }
    assert!(seen > 0, "no fixture was found");
}

#[tokio::test(start_paused = true)]
async fn the_journal_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::with_file();
    let journal = fixture.open();
    one(&journal, fixture.due("tea", Kind::Reminder)).await;
    let mode = |name: &str| fs::metadata(fixture.folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state"), 0o700);
    for name in ["state/journal.db", "state/journal.db-wal"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

fn session(id: &str, by: Option<&RunId>) -> NewSession {
    NewSession {
        id: DefinitionId::new(id),
        by: by.cloned(),
        caller: "routine mail".into(),
        caller_agent: None,
        definition: "---\n---\nx".into(),
        spawn_tool_policy: None,
        fork: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_sessions_policy_is_set_once_and_only_while_it_is_not_over() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let id = DefinitionId::new("spawn-1");
    let set = |text: &str| journal.set_spawn_tool_policy(&id, text.to_owned());
    assert_eq!(set("{}").await.unwrap(), SetPolicyResult::NotFound);
    assert_eq!(journal.start_session(session("spawn-1", None), 8, 8).await.unwrap(), SessionStart::Recorded);
    assert_eq!(set(r#"{"deny":["Bash"]}"#).await.unwrap(), SetPolicyResult::Recorded);
    assert_eq!(set(r#"{"deny":[]}"#).await.unwrap(), SetPolicyResult::Already);
    let kept = journal.session(&id).await.unwrap().unwrap();
    assert_eq!(kept.spawn_tool_policy.as_deref(), Some(r#"{"deny":["Bash"]}"#));
    assert_eq!((kept.run, kept.ended), (None, false));
    assert_eq!(fixture.reader().sessions().unwrap().len(), 1);

    // A session with an outcome takes no policy any more, and is not open.
    journal.start_session(session("spawn-2", None), 8, 8).await.unwrap();
    let due = fixture.due("spawn-2", Kind::Session);
    let run = one(&journal, due.clone()).await;
    let open = |sessions: Vec<SessionRecord>| sessions.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!(open(journal.open_sessions().await.unwrap()), ["spawn-1", "spawn-2"]);
    journal.launching(&run, due.text.clone(), String::new(), Punctuality::Unknown).await.unwrap();
    journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
    assert_eq!(open(journal.open_sessions().await.unwrap()), ["spawn-1"]);
    let late = journal.set_spawn_tool_policy(&DefinitionId::new("spawn-2"), "{}".into()).await.unwrap();
    assert_eq!(late, SetPolicyResult::Ended);
    // The session is deleted with its occurrence. The one that never ran stays.
    let later = fixture.clock.now() + TimeDelta::days(1);
    assert_eq!(journal.prune(later, BTreeSet::new()).await.unwrap(), 1);
    assert_eq!(open(fixture.reader().sessions().unwrap()), ["spawn-1"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded_by_run_and_all_together() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let run = RunId::new("0badcafe");
    for (n, expect) in
        [SessionStart::Recorded, SessionStart::Recorded, SessionStart::TooManyByRun(2)].into_iter().enumerate()
    {
        assert_eq!(journal.start_session(session(&format!("spawn-{n}"), Some(&run)), 2, 3).await.unwrap(), expect);
    }
    assert_eq!(journal.start_session(session("spawn-3", None), 2, 3).await.unwrap(), SessionStart::Recorded);
    assert_eq!(journal.start_session(session("spawn-4", None), 2, 3).await.unwrap(), SessionStart::TooManyOpen(3));
    assert_eq!(fixture.reader().sessions().unwrap().len(), 3);
    // A quarter of the places is for the person and the main session.
    let other = RunId::new("0badbeef");
    let by_job = |id: &str| journal.start_session(session(id, Some(&other)), 8, 4);
    assert_eq!(by_job("spawn-5").await.unwrap(), SessionStart::TooManyOpen(3));
    assert_eq!(journal.start_session(session("spawn-6", None), 8, 4).await.unwrap(), SessionStart::Recorded);
}

#[tokio::test(start_paused = true)]
async fn no_job_crowds_out_what_another_has_to_say() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let mut runs = Vec::new();
    for id in ["boiler", "loud"] {
        let due = fixture.due(id, Kind::Reminder);
        let run = one(&journal, due.clone()).await;
        journal.launching(&run, due.text, String::new(), Punctuality::Unknown).await.unwrap();
        runs.push(run);
    }
    journal.report(&runs[0], "boiler: it leaks".into()).await.unwrap();
    for number in 1..=12 {
        journal.report(&runs[1], format!("loud: {number}")).await.unwrap();
    }
    let pending = journal.pending_updates(10).await.unwrap();
    assert_eq!((pending.left_out, pending.texts.len()), (3, 10));
    assert_eq!(
        (&*pending.texts[0], &*pending.texts[1], &*pending.texts[9]),
        ("boiler: it leaks", "loud: 4", "loud: 12")
    );

    // So it is with messages about the failures of jobs that jobs have made.
    let failed = |maker: &str, text: &str| NewMessage::about(Subject::jobs_of(Some(DefinitionId::new(maker))), text);
    let mut messages: Vec<NewMessage> = (1..=8).map(|number| failed("loud", &format!("loud {number}"))).collect();
    messages.push(failed("quiet", "quiet 1"));
    let finish = Finish { messages, ..Finish::closed(RunState::Completed, None) };
    journal.finish(&runs[1], finish).await.unwrap();
    let told: Vec<String> =
        fixture.reader().messages(Some(100)).unwrap().into_iter().map(|message| message.text).collect();
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(told[0].starts_with("quiet 1") && told[1] == "loud 5", "{told:?}");
}

fn job(id: &str) -> Definition {
    let trigger = Trigger::Routine { recurs: "0 * * * *".into(), on_overlap: OnOverlap::Skip };
    let whose = (DefinitionId::new(id), format!("routines/{id}.md").into(), Tz::UTC);
    Draft::empty(Kind::Routine, id.to_owned()).into_definition(whose, trigger, Mode::Background(Background::default()))
}

const CAPS: Caps = Caps {
    run: Some(0.10),
    job_day: None,
    budget: Budget { day: Some(1.0), month: None, run: None, tokens_day: None },
    zone: Tz::UTC,
};

/// Makes fifty jobs fall due at once. Returns those that may begin.
async fn fifty(fixture: &Fixture, journal: &Journal) -> Vec<RunId> {
    fifty_after(TimeDelta::zero(), fixture, journal).await
}

/// Does the same, where each job reserves only after this time: its gate takes that long.
async fn fifty_after(gate: TimeDelta, fixture: &Fixture, journal: &Journal) -> Vec<RunId> {
    let mut begun = Vec::new();
    tokio::time::advance(std::time::Duration::from_millis(1)).await;
    let mut launched = Vec::new();
    for n in 0..50 {
        let id = format!("job{n}");
        let due = fixture.due(&id, Kind::Routine);
        let text = due.text.clone();
        let run = one(journal, due).await;
        journal.launching(&run, text, String::new(), Punctuality::Unknown).await.unwrap();
        launched.push((id, run));
    }
    fixture.clock.jump(gate);
    for (id, run) in launched {
        match journal.reserve_cost(&run, &job(&id), CAPS).await.unwrap() {
            Reservation::Cap(cap) => begun.extend(cap.map(|_| run)),
            Reservation::Spent(_) => {
                let why = Some("budget".to_owned());
                journal.finish(&run, Finish::closed(RunState::Skipped, why)).await.unwrap();
            }
        }
    }
    begun
}

#[tokio::test(start_paused = true)]
async fn no_restart_and_no_jump_of_the_clock_spends_more_than_a_cap() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let told = |fixture: &Fixture| -> Vec<String> {
        fixture.reader().messages(None).unwrap().into_iter().map(|message| message.text).collect()
    };
    assert_eq!(fifty(&fixture, &journal).await.len(), 10);
    // Reserved amounts may come back, so the message says neither that nearly all is spent nor until when.
    let [only] = &told(&fixture)[..] else { panic!("{:#?}", told(&fixture)) };
    assert!(
        only.contains(": $0.00 of $1.00 of the day's budget are spent, $1.00 taken by runs that have not ended. "),
        "{only}"
    );
    drop(journal);
    let journal = fixture.open();
    journal.recover().await.unwrap();
    assert_eq!(fifty(&fixture, &journal).await.len(), 0, "what was cut off counts its cap");
    let spent = &fixture.reader().spending(CAPS.budget, Tz::UTC, fixture.clock.now()).unwrap()[0];
    assert!((spent.spent - 1.0).abs() < 1e-9 && spent.taken == 0.0, "{spent:?}");
    // Another day's budget begins at midnight. With the clock set back, nothing is left of the first.
    fixture.clock.jump(TimeDelta::hours(13));
    let tomorrows = fifty(&fixture, &journal).await;
    assert_eq!(tomorrows.len(), 10);
    fixture.clock.jump(TimeDelta::hours(-13));
    assert_eq!(fifty(&fixture, &journal).await.len(), 0);
    for run in &tomorrows {
        journal.record_usage(run, &job("job"), cost(0.01), CAPS).await.unwrap();
        journal.finish(run, Finish::closed(RunState::Completed, None)).await.unwrap();
    }
    assert_eq!(fifty(&fixture, &journal).await.len(), 0);
    fixture.clock.jump(TimeDelta::hours(13));
    let spent = &fixture.reader().spending(CAPS.budget, Tz::UTC, fixture.clock.now()).unwrap()[0];
    assert!((spent.spent - 0.1).abs() < 1e-9, "{spent:?}");
    assert_eq!(fifty(&fixture, &journal).await.len(), 9);
    // Runs launched by a clock far ahead count for the day that it showed, and for no day before it.
    fixture.clock.jump(TimeDelta::days(9));
    let ahead = fifty(&fixture, &journal).await;
    assert_eq!(ahead.len(), 10);
    fixture.clock.jump(TimeDelta::days(-9));
    assert_eq!(fifty(&fixture, &journal).await.len(), 0);
    fixture.clock.jump(TimeDelta::days(1));
    assert_eq!(fifty(&fixture, &journal).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_reserve_after_midnight_share_the_cap_of_the_day_in_which_they_began() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    fixture.clock.jump(TimeDelta::hours(12) - TimeDelta::minutes(1));
    assert_eq!(fifty_after(TimeDelta::minutes(2), &fixture, &journal).await.len(), 10);
    assert_eq!(fifty(&fixture, &journal).await.len(), 10, "the new day has its own cap");
}

#[tokio::test(start_paused = true)]
async fn what_runs_have_cost_is_the_same_to_the_cent_wherever_it_is_asked() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    // The occurrence falls due just before midnight, and begins after it.
    fixture.clock.jump(TimeDelta::hours(12) - TimeDelta::minutes(1));
    let due = fixture.due("late", Kind::Routine);
    let text = due.text.clone();
    let run = one(&journal, due).await;
    fixture.clock.jump(TimeDelta::minutes(2));
    journal.launching(&run, text, String::new(), Punctuality::Unknown).await.unwrap();
    journal.reserve_cost(&run, &job("late"), CAPS).await.unwrap();
    journal.record_usage(&run, &job("late"), cost(0.07), CAPS).await.unwrap();
    journal.finish(&run, Finish::closed(RunState::Completed, None)).await.unwrap();
    let begun = fifty(&fixture, &journal).await;
    assert_eq!(begun.len(), 10, "the last of them gets what is left");
    for (n, run) in begun.iter().enumerate() {
        if n % 2 == 0 {
            journal.record_usage(run, &job("job"), cost(0.013 * n as f64), CAPS).await.unwrap();
        }
        journal.finish(run, Finish::closed(RunState::Failed, None)).await.unwrap();
    }
    let now = fixture.clock.now();
    let spent = &fixture.reader().spending(CAPS.budget, Tz::UTC, now).unwrap()[0];
    let midnight = now - TimeDelta::minutes(1);
    let costs = fixture.reader().costs(Some(midnight), None).unwrap();
    let counted: f64 = costs.iter().map(|run| run.cost_usd + run.unreported_usd).sum();
    assert!(spent.spent > 0.07 && (spent.spent - counted).abs() < 1e-9, "{spent:?} {counted}");
    assert!(costs.iter().all(|run| run.launched >= midnight), "{costs:#?}");
    assert!(costs.iter().any(|run| run.unreported_usd > 0.0), "{costs:#?}");
}

/// Returns the usage of a run that cost this much.
fn cost(cost_usd: f64) -> Usage {
    Usage { cost_usd, tokens: None }
}

/// A run without a report counts at the usual use of its job's runs. Before there are any, it counts at a tenth of the day.
#[tokio::test(start_paused = true)]
async fn no_number_of_runs_at_once_and_no_restart_takes_more_tokens_than_a_cap() {
    let caps = Caps { run: None, budget: Budget { day: None, tokens_day: Some(1000), ..CAPS.budget }, ..CAPS };
    let fixture = Fixture::new();
    let journal = fixture.open();
    let begin = async |journal: &Journal, id: &str| {
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        let due = fixture.due(id, Kind::Routine);
        let text = due.text.clone();
        let run = one(journal, due).await;
        journal.launching(&run, text, String::new(), Punctuality::Unknown).await.unwrap();
        let taken = journal.reserve_cost(&run, &job(id), caps.clone()).await.unwrap();
        if let Reservation::Spent(why) = &taken {
            journal.finish(&run, Finish::closed(RunState::Skipped, Some(why.clone()))).await.unwrap();
        }
        (run, taken)
    };
    let end = async |journal: &Journal, run: &RunId, tokens: Option<u64>| {
        let tokens = tokens.map(|output| crate::agent::Tokens { output, ..crate::agent::Tokens::default() });
        journal.finish(run, Finish { tokens, ..Finish::closed(RunState::Completed, None) }).await.unwrap();
    };
    let spent =
        |fixture: &Fixture| fixture.reader().spending(caps.budget, Tz::UTC, fixture.clock.now()).unwrap().remove(0);
    let mut begun = Vec::new();
    for n in 0..50 {
        let (run, taken) = begin(&journal, &format!("job{n}")).await;
        begun.extend(matches!(taken, Reservation::Cap(None)).then_some(run));
    }
    assert_eq!((begun.len(), spent(&fixture).spent, spent(&fixture).taken), (10, 0.0, 1000.0));
    // One run reports its tokens. The others are cut off.
    end(&journal, &begun[0], Some(30)).await;
    assert_eq!((spent(&fixture).spent, spent(&fixture).taken), (30.0, 900.0));
    drop(journal);
    let journal = fixture.open();
    journal.recover().await.unwrap();
    assert_eq!((spent(&fixture).spent, spent(&fixture).taken), (930.0, 0.0));
    // Its next run is assumed to need as many, and there is room for three of them.
    for expected in [true, true, true, false] {
        let (_, taken) = begin(&journal, "job0").await;
        assert_eq!(matches!(taken, Reservation::Cap(_)), expected, "{taken:?}");
    }
    journal.set_tokens(2000, Tz::UTC).await.unwrap();
    assert!(matches!(begin(&journal, "job0").await.1, Reservation::Cap(None)));
    // The next day has the cap of the settings.
    fixture.clock.jump(TimeDelta::hours(24));
    assert_eq!((spent(&fixture).cap, spent(&fixture).spent), (1000.0, 0.0));
    // The person is told at the end of the run that has used most of it, before any other begins.
    let (run, _) = begin(&journal, "job0").await;
    let told = || fixture.reader().messages(None).unwrap().iter().filter(|one| one.text.contains("At 100 %")).count();
    let before = told();
    let tokens = Some(crate::agent::Tokens { output: 850, ..crate::agent::Tokens::default() });
    journal.record_usage(&run, &job("job"), Usage { cost_usd: 0.0, tokens }, caps.clone()).await.unwrap();
    assert_eq!((told(), spent(&fixture).spent), (before + 1, 850.0));
    end(&journal, &run, Some(850)).await;
    assert_eq!(spent(&fixture).spent, 850.0);
}

/// The budget of the settings concerns all jobs, and its notices go to the default channel.
#[tokio::test(start_paused = true)]
async fn the_notice_of_a_jobs_own_cap_goes_to_the_jobs_channel() {
    let fixture = Fixture::new();
    let journal = fixture.open();
    let definition = Definition { channel: Some("post".to_owned()), ..job("mail") };
    let caps = Caps { job_day: Some(0.05), budget: Budget { day: Some(0.06), ..CAPS.budget }, ..CAPS };
    let due = fixture.due("mail", Kind::Routine);
    let text = due.text.clone();
    let run = one(&journal, due).await;
    journal.launching(&run, text, String::new(), Punctuality::Unknown).await.unwrap();
    journal.reserve_cost(&run, &definition, caps.clone()).await.unwrap();
    journal.record_usage(&run, &definition, cost(0.06), caps).await.unwrap();
    let sql = "SELECT coalesce(channel, ''), text FROM message ORDER BY number";
    let told = fixture.reader().all(sql, &[], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?))).unwrap();
    let on = |words: &str| told.iter().find(|(_, text)| text.contains(words)).map(|(channel, _)| channel.as_str());
    assert_eq!(on("`max_cost_day_usd`"), Some("post"), "{told:?}");
    assert_eq!(on("you are not answered"), Some(""), "{told:?}");
}
