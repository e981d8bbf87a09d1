//! Routines that fire on events instead of at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::super::Burst;
use super::support::*;
use crate::agent::{AttemptEnd, FailureClass};
use crate::definition::{
    Cadence, Definition, DefinitionId, FollowedEnd, Follows, OnMissed, OnOverlap, Recurrence, Trigger, WatchedFolder,
};
use crate::journal::{Occasion, RunFilter, RunState};

fn after(id: &str, job: &str, outcome: FollowedEnd) -> Definition {
    let cadence = Cadence::After(Follows { job: DefinitionId::new(job), outcome });
    let trigger = Trigger::Routine { recurs: Recurrence { cadence, jitter: None }, on_overlap: OnOverlap::default() };
    Definition { trigger, ..routine(id) }
}

fn overlapping(mut definition: Definition, how: OnOverlap) -> Definition {
    if let Trigger::Routine { on_overlap, .. } = &mut definition.trigger {
        *on_overlap = how;
    }
    definition
}

/// Returns the causes of a routine's occurrences, in order.
fn followed(world: &World, id: &str) -> Vec<String> {
    let runs = world.reader().runs(&RunFilter { id: Some(DefinitionId::new(id)), ..RunFilter::default() }).unwrap();
    let run = |occasion: Option<Occasion>| match occasion.unwrap() {
        Occasion::After { run, .. } => run.to_string(),
        Occasion::Delivered { key, .. } => key,
        Occasion::Changed { files, .. } => files.join(" "),
    };
    runs.into_iter().rev().map(|record| run(record.occasion)).collect()
}

fn runs_of(world: &World, id: &str, outcome: RunState) -> Vec<String> {
    let runs = world.reader().runs(&RunFilter { id: Some(DefinitionId::new(id)), ..RunFilter::default() }).unwrap();
    runs.into_iter().rev().filter(|run| run.outcome == outcome).map(|run| run.run.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_end_is_followed_by_those_that_wait_for_it() {
    let world = World::new();
    let mut count = 0;
    world.script(move |job| {
        let is_followed = job.occurrence.id.as_str() == "mail";
        count += u32::from(is_followed);
        match count {
            2 if is_followed => vec![fails(FailureClass::ErrorResult)],
            3 if is_followed => vec![Act::End(AttemptEnd::TimedOut("too long".to_owned()))],
            _ => vec![],
        }
    });
    let all = [
        routine("mail"),
        after("well", "mail", FollowedEnd::Completed),
        after("badly", "mail", FollowedEnd::Failed),
        after("any", "mail", FollowedEnd::Any),
        after("third", "well", FollowedEnd::Completed),
        after("nobody", "there-is-none", FollowedEnd::Any),
    ];
    let process = world.begin(&all);
    minutes(4 * 60 + 1).await;
    assert_eq!(followed(&world, "well"), runs_of(&world, "mail", RunState::Completed));
    let badly = [runs_of(&world, "mail", RunState::Failed), runs_of(&world, "mail", RunState::TimedOut)].concat();
    assert_eq!((followed(&world, "badly"), badly.len()), (badly, 2));
    assert_eq!(followed(&world, "any").len(), 4);
    assert_eq!(followed(&world, "third"), runs_of(&world, "well", RunState::Completed));
    assert_eq!(followed(&world, "nobody"), [""; 0]);
    let times = world.reader().occurrences(Some(&DefinitionId::new("any"))).unwrap();
    assert!(times.windows(2).all(|two| two[0].occurrence.at < two[1].occurrence.at), "{times:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_neither_loses_nor_repeats_what_follows() {
    let world = World::new();
    let all = [routine("mail"), after("then", "mail", FollowedEnd::Completed)];
    world.write(&all);
    world.script(|_| vec![Act::Take(Duration::from_secs(2))]);
    // Crashes at every moment around both runs, from 13:00:00 to 13:00:04 and later.
    for (process, second) in (0..8u64).enumerate() {
        let service = world.start(&all);
        let begins = 60 * 60 - if process == 0 { 0 } else { second };
        seconds(begins + second).await;
        service.crash().await;
        let service = world.start(&all);
        seconds(second.min(3)).await;
        service.crash().await;
    }
    let service = world.start(&all);
    minutes(5).await;
    let (done, followed) = (runs_of(&world, "mail", RunState::Completed), followed_once(&world, "then"));
    assert!(done.len() > 4, "{:?}", world.attempts());
    assert_eq!(followed, done);
    service.stop(Duration::ZERO).await;
}

/// Like [`followed`], with each occurrence once, however often it was attempted.
fn followed_once(world: &World, id: &str) -> Vec<String> {
    let mut all = followed(world, id);
    all.dedup();
    all
}

#[tokio::test(start_paused = true)]
async fn what_cannot_run_is_recorded() {
    let world = World::new();
    world.script(|job| match job.occurrence.id.as_str() {
        "slow" | "queues" => vec![Act::Take(Duration::from_secs(9000))],
        _ => vec![],
    });
    let all = [
        routine("mail"),
        Definition { enabled: false, ..after("off", "mail", FollowedEnd::Completed) },
        after("slow", "mail", FollowedEnd::Completed),
        overlapping(after("queues", "mail", FollowedEnd::Completed), OnOverlap::Queue),
    ];
    let process = world.begin(&all);
    minutes(3 * 60 + 1).await;
    let outcomes = |id: &str| {
        let runs = world.reader().runs(&RunFilter { id: Some(DefinitionId::new(id)), ..RunFilter::default() }).unwrap();
        let line = |run: crate::journal::RunRecord| format!("{} {}", run.outcome, run.error.unwrap_or_default());
        runs.into_iter().rev().map(line).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("off"), ["skipped disabled: it was disabled when it fell due"; 3]);
    let slow = outcomes("slow");
    assert!(slow[0] == "running " && slow[1].starts_with("skipped overlap: run "), "{slow:?}");
    let queues = outcomes("queues");
    assert_eq!((queues[0].as_str(), queues[1].as_str()), ("running ", "claimed "), "{queues:?}");
    assert!(queues[2].ends_with("waits already (on_overlap: queue)"), "{queues:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn while_everything_is_paused_it_waits_or_is_skipped_as_its_file_says() {
    let world = World::new();
    world.script(|job| match job.occurrence.id.as_str() {
        "mail" => vec![Act::Take(Duration::from_secs(600))],
        _ => vec![],
    });
    let skips = Definition { on_missed: OnMissed::Skip, ..after("skips", "mail", FollowedEnd::Completed) };
    let process = world.begin(&[routine("mail"), after("waits", "mail", FollowedEnd::Completed), skips]);
    minutes(61).await;
    process.schedule.pause().await.unwrap();
    minutes(30).await;
    assert_eq!(world.started(), ["mail 01T13:00:00"]);
    assert!(world.attempts()[1].contains("skipped: missed"), "{:?}", world.attempts());
    process.crash().await;
    let process = world.start(&[routine("mail"), after("waits", "mail", FollowedEnd::Completed)]);
    minutes(1).await;
    process.schedule.resume().await.unwrap();
    minutes(1).await;
    assert!(world.starts().iter().any(|start| start.id == "waits"), "{:?}", world.started());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_sets_itself_off_is_cut_and_told() {
    let world = World::new();
    // A job made by `news`. It fires every ten seconds, since its reminder is set again.
    let made = |second: u32| {
        let made = Definition { created_by: Some(DefinitionId::new("news")), ..reminder("made") };
        at_time(made, march(&format!("01T13:00:{second:02}")))
    };
    let news = after("news", "made", FollowedEnd::Completed);
    let process = world.begin(&[news.clone(), made(0)]);
    minutes(59).await;
    for second in (10..60).step_by(10) {
        seconds(if second == 10 { 65 } else { 10 }).await;
        world.write(&[made(second)]);
        process.schedule.upsert(loaded(&made(second)));
    }
    seconds(20).await;
    let outcomes: Vec<_> = world
        .reader()
        .occurrences(Some(&DefinitionId::new("news")))
        .unwrap()
        .into_iter()
        .map(|one| one.outcome)
        .collect();
    let ran = outcomes.iter().filter(|outcome| **outcome == Some(RunState::Completed)).count();
    assert!(ran == 3 && outcomes.len() > 4, "{outcomes:?}");
    let told: Vec<_> =
        world.notifications().into_iter().filter(|text| text.starts_with("routine news was cut")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    process.stop(Duration::ZERO).await;
}

fn watching(id: &str) -> Definition {
    let cadence = Cadence::Watch(WatchedFolder::OfWork("in".into()));
    let trigger = Trigger::Routine { recurs: Recurrence { cadence, jitter: None }, on_overlap: OnOverlap::default() };
    Definition { trigger, ..routine(id) }
}

fn burst(file: &str) -> Burst {
    let occasion = Occasion::Changed { files: vec![file.to_owned()], more: 0, lost: false };
    Burst { occasion, began: Instant::now() }
}

#[tokio::test(start_paused = true)]
async fn each_burst_is_an_occurrence_that_a_crash_leaves_one() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(30))]);
    let all = [watching("mail")];
    let mut process = world.begin(&all);
    for n in 0..5u64 {
        seconds(100).await;
        // Reported at the same moment, so that they would have the same time.
        process.schedule.changed(DefinitionId::new("mail"), burst(&format!("{n}")));
        process.schedule.changed(DefinitionId::new("mail"), burst(&format!("{n}-too")));
        seconds(n).await;
        process.crash().await;
        process = world.start(&all);
    }
    minutes(10).await;
    let seen: BTreeSet<String> = followed(&world, "mail").into_iter().collect();
    let expected: BTreeSet<String> = (0..5).flat_map(|n| [format!("{n}"), format!("{n}-too")]).collect();
    // Bursts that had not been claimed died with the process.
    assert!(seen.is_subset(&expected) && seen.len() >= 8, "{seen:?}");
    let outcomes = world.reader().occurrences(Some(&DefinitionId::new("mail"))).unwrap();
    assert!(outcomes.iter().all(|one| one.outcome.is_some()) && outcomes.len() == seen.len(), "{outcomes:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_writes_where_it_watches_is_cut_and_told() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(1))]);
    let process = world.begin(&[watching("mail")]);
    let id = DefinitionId::new("mail");
    minutes(2).await;
    // First a person's change, then one by each run: it is made during the run, and reported after it.
    process.schedule.changed(id.clone(), burst("by hand"));
    for n in 0..4 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let own = burst(&format!("own {n}"));
        seconds(2).await;
        process.schedule.changed(id.clone(), own);
    }
    seconds(2).await;
    let ran = |world: &World| {
        let all = world.reader().occurrences(Some(&DefinitionId::new("mail"))).unwrap();
        all.iter().filter(|one| one.outcome == Some(RunState::Completed)).count()
    };
    assert_eq!(ran(&world), 4, "{:?}", world.attempts());
    assert!(world.attempts()[4].contains("cut: it has set itself off 3 times in a row"), "{:?}", world.attempts());
    let told: Vec<_> =
        world.notifications().into_iter().filter(|text| text.starts_with("routine mail was cut")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    // A person's change fires as before.
    minutes(2).await;
    process.schedule.changed(id.clone(), burst("by hand"));
    seconds(2).await;
    assert_eq!(ran(&world), 5);
    // Neither a disabled routine nor one that watches nothing fires.
    world.write(&[Definition { enabled: false, ..watching("mail") }]);
    process.schedule.upsert(loaded(&Definition { enabled: false, ..watching("mail") }));
    process.schedule.changed(id, burst("by hand"));
    seconds(1).await;
    assert_eq!(ran(&world), 5);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_writes_while_it_runs_is_cut_whatever_its_overlap() {
    for on_overlap in [OnOverlap::Queue, OnOverlap::Cancel] {
        let world = World::new();
        world.script(|_| vec![Act::Take(Duration::from_secs(5))]);
        let mut definition = watching("mail");
        if let Trigger::Routine { on_overlap: own, .. } = &mut definition.trigger {
            *own = on_overlap;
        }
        let process = world.begin(&[definition]);
        let id = DefinitionId::new("mail");
        minutes(2).await;
        process.schedule.changed(id.clone(), burst("by hand"));
        let mut own = 0;
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(2300)).await;
            let all = world.reader().occurrences(Some(&id)).unwrap();
            // Each run writes into the folder that it watches.
            if all.iter().any(|one| one.outcome.is_none()) {
                process.schedule.changed(id.clone(), burst(&format!("own {own}")));
                own += 1;
            }
        }
        let all = world.reader().occurrences(Some(&id)).unwrap();
        let began = all.iter().filter(|one| one.outcome != Some(RunState::Skipped)).count();
        assert!(began == 4 && all.len() == own + 1, "{on_overlap:?}: {began} of {}", all.len());
        let told = world.notifications().into_iter().filter(|text| text.starts_with("routine mail was cut")).count();
        assert_eq!(told, 1, "{on_overlap:?}");
        process.stop(Duration::ZERO).await;
    }
}

/// Returns how many of a routine's occurrences have completed.
fn completed(world: &World, id: &str) -> usize {
    let all = world.reader().occurrences(Some(&DefinitionId::new(id))).unwrap();
    all.iter().filter(|one| one.outcome == Some(RunState::Completed)).count()
}

fn notifications_with(world: &World, words: &str) -> usize {
    world.notifications().into_iter().filter(|text| text.starts_with(words)).count()
}

/// The runs are so long that the limit per minute is never reached.
#[tokio::test(start_paused = true)]
async fn one_that_takes_long_and_writes_where_it_watches_is_cut_as_well() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(90))]);
    let process = world.begin(&[watching("mail")]);
    let id = DefinitionId::new("mail");
    minutes(2).await;
    process.schedule.changed(id.clone(), burst("by hand"));
    for _ in 0..4 {
        // Near the end of the run, but seen two seconds after it.
        tokio::time::sleep(Duration::from_millis(89_500)).await;
        let own = burst("own");
        seconds(3).await;
        process.schedule.changed(id.clone(), own);
        seconds(1).await;
    }
    assert_eq!(
        (completed(&world, "mail"), notifications_with(&world, "routine mail was cut")),
        (4, 1),
        "{:?}",
        world.attempts()
    );
    // Changes a few seconds after the end of each run are no loop.
    for _ in 0..6 {
        seconds(100).await;
        process.schedule.changed(id.clone(), burst("by hand"));
    }
    seconds(100).await;
    assert_eq!(
        (completed(&world, "mail"), notifications_with(&world, "routine mail was cut")),
        (10, 1),
        "{:?}",
        world.attempts()
    );
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn two_that_write_into_each_others_folder_are_cut_and_told() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(20))]);
    let process = world.begin(&[watching("ping"), watching("pong")]);
    minutes(2).await;
    let ids = ["ping", "pong"].map(DefinitionId::new);
    process.schedule.changed(ids[0].clone(), burst("by hand"));
    for n in 1..9 {
        seconds(19).await;
        let written = burst("by the other");
        seconds(3).await;
        process.schedule.changed(ids[n % 2].clone(), written);
    }
    seconds(30).await;
    // The first firing is a person's doing, and so is the first that it triggers.
    assert_eq!((completed(&world, "ping"), completed(&world, "pong")), (4, 4), "{:?}", world.attempts());
    assert_eq!(
        notifications_with(&world, "routine ping was cut: it has set itself off 3 times in a row"),
        1,
        "{:?}",
        world.notifications()
    );
    // A person's edit starts a new row.
    process.schedule.changed(ids[0].clone(), burst("by hand"));
    seconds(30).await;
    assert_eq!(completed(&world, "ping"), 5);
    process.stop(Duration::ZERO).await;
}

/// A run without write access there is not the cause, however long it runs.
#[tokio::test(start_paused = true)]
async fn what_changes_while_a_run_goes_that_may_not_write_there_is_somebody_elses() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(20))]);
    let mut reads = watching("reads");
    if let Trigger::Routine { on_overlap, .. } = &mut reads.trigger {
        *on_overlap = OnOverlap::Queue;
    }
    let process = world.begin(&[reads]);
    minutes(2).await;
    for _ in 0..8 {
        process.schedule.changed(DefinitionId::new("reads"), burst("by hand"));
        seconds(19).await;
    }
    minutes(5).await;
    assert_eq!((completed(&world, "reads"), notifications_with(&world, "routine reads was cut")), (8, 0));
    process.stop(Duration::ZERO).await;
}

/// A restart is no outside cause, neither for a routine that writes where it watches, nor if its follow-up does so.
#[tokio::test(start_paused = true)]
async fn a_loop_is_cut_however_often_the_service_starts_anew() {
    for (id, takes) in [("mail", 20), ("looks", 40)] {
        let world = World::new();
        world.script(|_| vec![Act::Take(Duration::from_secs(20))]);
        let all = match id {
            "mail" => vec![watching(id)],
            _ => vec![watching(id), after("writes", id, FollowedEnd::Completed)],
        };
        let mut process = world.begin(&all);
        minutes(2).await;
        process.schedule.changed(DefinitionId::new(id), burst("by hand"));
        for _ in 0..4 {
            // Just before the end of the last run, but reported after it.
            seconds(takes - 1).await;
            let own = burst("own");
            seconds(2).await;
            process.schedule.changed(DefinitionId::new(id), own);
            tokio::time::sleep(Duration::from_millis(10)).await;
            process.crash().await;
            process = world.start(&all);
        }
        seconds(60).await;
        let told = notifications_with(&world, &format!("routine {id} was cut"));
        assert_eq!((completed(&world, id), told), (4, 1), "{id}: {:?}", world.attempts());
        // A person's edit starts a new row, and a restart after it changes nothing.
        process.schedule.changed(DefinitionId::new(id), burst("by hand"));
        seconds(10).await;
        process.crash().await;
        let process = world.start(&all);
        seconds(60).await;
        assert_eq!(completed(&world, id), 5, "{id}: {:?}", world.attempts());
        process.stop(Duration::ZERO).await;
    }
}

/// A person's change starts a new row, whatever the journal has recorded before.
#[tokio::test(start_paused = true)]
async fn a_restart_takes_up_the_last_run_that_there_was() {
    let world = World::new();
    let all = [watching("mail")];
    let mut process = world.begin(&all);
    let id = DefinitionId::new("mail");
    minutes(2).await;
    process.schedule.changed(id.clone(), burst("by hand"));
    for _ in 0..6 {
        seconds(20).await;
        process.crash().await;
        process = world.start(&all);
        seconds(1).await;
        process.schedule.changed(id.clone(), burst("by hand"));
    }
    seconds(20).await;
    assert_eq!(
        (completed(&world, "mail"), notifications_with(&world, "routine mail was cut")),
        (7, 0),
        "{:?}",
        world.attempts()
    );
    process.stop(Duration::ZERO).await;
}
