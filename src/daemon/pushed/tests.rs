use std::fs;
use std::path::Path;

use chrono::TimeZone as _;
use tempfile::TempDir;

use super::*;
use crate::agent::{AttemptEnd, AttemptReport};
use crate::daemon::files::HomeFiles;
use crate::definition::Store;
use crate::journal::{JournalLocation, Member, NewPushed, PushWriter, testing};
use crate::schedule::{Dispatcher, Job, Launcher, ScheduleError, generation};

/// Completes each run at once.
struct Completes;

#[async_trait::async_trait]
impl Launcher for Completes {
    async fn launch(&self, _: Job) -> AttemptReport {
        AttemptReport::bare(AttemptEnd::Completed)
    }
}

/// A host with a schedule that runs.
struct Scene {
    folder: TempDir,
    clock: Clock,
    place: JournalLocation,
    journal: Journal,
    schedule: Schedule,
    pushed: PushedDefinitions,
    going: tokio::task::JoinHandle<Result<(), ScheduleError>>,
}

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() }
}

impl Scene {
    fn new() -> Self {
        Self::among(None)
    }

    /// A host that shares its journal with others.
    fn among(hosts: Option<watch::Receiver<Hosts>>) -> Self {
        let folder = TempDir::new().unwrap();
        let home = Home::new(folder.path());
        fs::create_dir(home.routines()).unwrap();
        let clock = Clock::simulated(Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 30).unwrap());
        let place = testing::place(&folder.path().join("state/journal.db"));
        let mut journal = Journal::open(&place, clock.clone()).unwrap();
        if let Some(hosts) = hosts {
            journal.share(hosts);
        }
        let (schedule, inbox) = Schedule::channel(1000);
        let (definitions, _) = LiveDefinitions::new(Store::open(&home, defaults()).unwrap(), schedule.clone());
        let pushed = PushedDefinitions::new(&home, &clock, &journal, &schedule, &definitions);
        let files = HomeFiles { home, definitions, pushed: pushed.clone() };
        let dispatcher = Dispatcher::new(inbox, &clock, journal.clone(), Arc::new(Completes), Arc::new(files));
        schedule.replace(Vec::new());
        Self { folder, clock, place, journal, schedule, pushed, going: tokio::spawn(dispatcher.run()) }
    }

    fn push(&self, texts: impl IntoIterator<Item = (String, String)>) {
        let new: Vec<NewPushed> = texts.into_iter().map(|(id, text)| self.new_pushed(&id, text)).collect();
        PushWriter::open(&self.place, self.clock.clone()).unwrap().push(&new).unwrap();
    }

    fn new_pushed(&self, id: &str, text: String) -> NewPushed {
        let id = DefinitionId::new(id);
        let home = Home::new(self.folder.path());
        let parsed = parse_pushed(&home, Kind::Routine, &id, text.as_bytes(), None, &defaults());
        let definition = Arc::new(parsed.definition.unwrap_or_else(|| panic!("{:?}", parsed.problems)));
        let next_due = next_due(&definition, self.clock.now());
        let generation = generation(&Loaded { definition, text: text.as_str().into() });
        NewPushed { id, kind: Kind::Routine, text, zone: "UTC".into(), next_due, generation }
    }

    /// Looks, and lets the schedule act on it.
    async fn look(&self) -> Option<DateTime<Utc>> {
        let again = self.pushed.look(HostsState::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        again
    }

    /// Returns how many definitions the schedule has.
    async fn held(&self) -> usize {
        self.schedule.snapshot(0).await.definitions
    }

    fn outcomes(&self) -> usize {
        let reader = JournalReader::open(&self.place).unwrap();
        reader.occurrences(None).unwrap().len()
    }
}

fn daily(hour: usize, minute: usize) -> String {
    format!("---\ncron: '{minute} {hour} * * *'\nclient: notify\n---\nTea.\n")
}

#[tokio::test(start_paused = true)]
async fn a_host_holds_only_what_is_nearly_due_among_many() {
    let scene = Scene::new();
    // About fourteen for each minute of the day.
    scene.push((0..20_000).map(|number| (format!("r{number}"), daily(number / 60 % 24, number % 60))));
    let following = tokio::spawn(scene.pushed.clone().follow());
    for minute in 1..=10 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let held = scene.held().await;
        assert!((1..100).contains(&held), "{held} in minute {minute}");
    }
    let fired = scene.outcomes();
    assert!((130..=140).contains(&fired), "{fired} fell due in ten minutes");
    assert!(!following.is_finished() && !scene.going.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_look_says_when_the_next_one_is_and_nothing_is_asked_of_an_empty_database() {
    let scene = Scene::new();
    assert_eq!(scene.look().await, None);
    scene.push([("tea".to_owned(), daily(15, 0))]);
    let due = Utc.with_ymd_and_hms(2026, 3, 1, 15, 0, 0).unwrap();
    assert_eq!(scene.look().await, Some(due - AHEAD));
    assert_eq!(scene.held().await, 0, "it is not nearly due");
    scene.clock.jump(TimeDelta::minutes(179));
    scene.look().await;
    assert_eq!(scene.held().await, 1);
    PushWriter::open(&scene.place, scene.clock.clone()).unwrap().remove(&[DefinitionId::new("tea")]).unwrap();
    assert_eq!(scene.look().await, None);
    assert_eq!(scene.held().await, 0, "it was removed");
}

#[tokio::test(start_paused = true)]
async fn a_file_comes_before_a_definition_of_the_same_id() {
    let scene = Scene::new();
    scene.push([("tea".to_owned(), daily(12, 1))]);
    let id = DefinitionId::new("tea");
    let text = "---\ncron: '0 0 1 1 *'\n---\nFrom the file.\n";
    let parsed = crate::definition::parse(Kind::Routine, Path::new("routines/tea.md"), text.as_bytes(), &defaults());
    scene.schedule.upsert(Loaded { definition: Arc::new(parsed.definition.unwrap()), text: text.into() });
    scene.look().await;
    let next = scene.schedule.snapshot(1).await.next;
    assert_eq!(next[0].1.file, Path::new("routines/tea.md"));
    // Once the file is gone, the database's counts again.
    scene.schedule.remove(id);
    scene.pushed.known().loaded.clear();
    scene.look().await;
    let next = scene.schedule.snapshot(1).await.next;
    assert_eq!(next.len(), 1);
    assert!(next[0].1.is_pushed());
}

#[tokio::test(start_paused = true)]
async fn an_edit_counts_while_it_is_nearly_due_and_a_far_one_is_dropped() {
    let scene = Scene::new();
    scene.push([("tea".to_owned(), daily(12, 1))]);
    scene.look().await;
    assert_eq!(scene.held().await, 1);
    scene.push([("tea".to_owned(), daily(18, 0))]);
    scene.look().await;
    let next = scene.schedule.snapshot(1).await.next;
    assert_eq!(next[0].0, Utc.with_ymd_and_hms(2026, 3, 1, 18, 0, 0).unwrap());
    scene.look().await;
    scene.look().await;
    assert_eq!(scene.held().await, 0, "it is due in hours");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(scene.outcomes(), 0, "its old time counts no more");
}

#[tokio::test(start_paused = true)]
async fn a_routine_whose_failures_paused_it_leaves_until_it_is_resumed() {
    let scene = Scene::new();
    scene.push([("tea".to_owned(), daily(12, 1))]);
    scene.look().await;
    let id = DefinitionId::new("tea");
    let paused = crate::journal::ConsecutiveFailures {
        id: id.clone(),
        failures: 9,
        notified: true,
        paused: Some(scene.clock.now()),
    };
    scene.journal.set_consecutive_failures(paused).await.unwrap();
    scene.look().await;
    scene.look().await;
    assert_eq!(scene.held().await, 0);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    scene.look().await;
    assert_eq!((scene.held().await, scene.outcomes()), (0, 0));
    // Another text ends the pause, and the hour before is no backlog.
    scene.push([("tea".to_owned(), format!("{}More.\n", daily(12, 1)))]);
    scene.look().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.outcomes(), 0);
    let following = tokio::spawn(scene.pushed.clone().follow());
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(scene.outcomes(), 1, "it fires the next day");
    following.abort();
}

/// The hosts that share a journal, seen by the third of them.
fn ten_hosts() -> Hosts {
    let member = |number: usize| Member {
        name: format!("host-{number}"),
        labels: Default::default(),
        versions: ("1".to_owned(), "2026b".to_owned()),
        timezone: None,
        is_main: false,
    };
    Hosts {
        me: member(2),
        alive: (0..10).map(member).collect(),
        ahead: TimeDelta::zero(),
        is_main: false,
        left_open: Default::default(),
        is_some_unassigned: false,
        paused: false,
        failing: Vec::new(),
        pushed: 0,
    }
}

/// Returns the outcomes of twenty routines after this time on the third of ten hosts, of which no other does anything.
async fn outcomes_of_twenty(routine: &str, span: Duration) -> usize {
    let (_tell, hosts) = watch::channel(ten_hosts());
    let scene = Scene::among(Some(hosts));
    scene.push((0..20).map(|number| (format!("tea{number}"), routine.to_owned())));
    let following = tokio::spawn(scene.pushed.clone().follow());
    tokio::time::sleep(span).await;
    following.abort();
    scene.outcomes()
}

/// Whichever host comes first for them.
#[tokio::test(start_paused = true)]
async fn a_host_moves_the_times_of_routines_that_only_it_may_run() {
    let named = "---\ncron: '*/5 * * * *'\nclient: notify\nhosts: [host-2]\n---\nTea.\n";
    assert_eq!(outcomes_of_twenty(named, Duration::from_secs(16 * 60)).await, 60, "12:05, 12:10 and 12:15");
}

/// Each occurrence has its record before the next one is due.
#[tokio::test(start_paused = true)]
async fn a_host_does_what_all_others_leave_to_it() {
    let tea = "---\ncron: '* * * * *'\nclient: notify\n---\nTea.\n";
    assert_eq!(outcomes_of_twenty(tea, Duration::from_secs(16 * 60 + 25)).await, 16 * 20, "12:01 to 12:16");
}

#[tokio::test(start_paused = true)]
async fn of_many_hosts_a_few_hold_a_definition_and_the_others_take_what_was_left() {
    let (_tell, hosts) = watch::channel(ten_hosts());
    let scene = Scene::among(Some(hosts));
    scene.push((0..300).map(|number| (format!("r{number}"), daily(12, 1))));
    let named = "---\ncron: '1 12 * * *'\nclient: notify\nhosts: [host-2]\n---\nTea.\n";
    scene.push((0..100).map(|number| (format!("named{number}"), named.to_owned())));
    let again = scene.look().await.unwrap();
    let due = Utc.with_ymd_and_hms(2026, 3, 1, 12, 1, 0).unwrap();
    assert!(again < due, "what it holds may change");
    let held = scene.held().await;
    assert!((160..220).contains(&held), "{held}: three in ten of 300, and those that name this host");
    // No other host does anything.
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(scene.outcomes(), held);
    let again = scene.look().await.unwrap();
    assert_eq!(again, due + LEFT_ALONE + SPREAD * 2);
    tokio::time::sleep(Duration::from_secs(15)).await;
    scene.look().await;
    assert_eq!(scene.outcomes(), 400);
    // And each time is moved on in the end.
    tokio::time::sleep(Duration::from_secs(300)).await;
    scene.look().await;
    assert_eq!(JournalReader::open(&scene.place).unwrap().nearly_due(scene.clock.now(), None, PAGE).unwrap(), []);
}

/// A service that starts after the record of an occurrence, and before its time was moved, still brings the next one to its schedule.
#[tokio::test(start_paused = true)]
async fn a_routine_whose_time_is_moved_at_a_start_fires_on() {
    let scene = Scene::new();
    scene.push([("tea".to_owned(), "---\ncron: '* * * * *'\nclient: notify\n---\nTea.\n".to_owned())]);
    scene.look().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.outcomes(), 1);
    // What the next process knows.
    assert_eq!(scene.schedule.unload(vec![DefinitionId::new("tea")]).await.len(), 1);
    *scene.pushed.known() = Known::default();
    scene.look().await;
    assert_eq!(scene.held().await, 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.outcomes(), 2);
}
