//! Jobs whose requirements the machine does not meet.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::support::*;
use crate::agent::FailureClass;
use crate::definition::{Definition, DefinitionId, JobClient, Need, OnOverlap};
use crate::journal::RunState;

fn requiring(definition: Definition, hours: u64) -> Definition {
    let requires_for = Some(Duration::from_secs(hours * 60 * 60));
    Definition { requires: vec![Need::Online], requires_for, ..definition }
}

#[tokio::test(start_paused = true)]
async fn what_the_machine_lacks_is_waited_for_over_restarts() {
    let world = World::new();
    world.is_offline.store(true, Ordering::SeqCst);
    let all = [requiring(reminder("tea"), 6), reminder("milk")];
    world.write(&all);
    for _ in 0..3 {
        let process = world.start(&all);
        minutes(61).await;
        process.crash().await;
    }
    assert_eq!(world.started(), ["milk 01T13:00:00"]);
    let waits = world.reader().unfinished().unwrap();
    assert_eq!((waits.len(), waits[0].outcome), (1, RunState::Claimed));
    assert_eq!(waits[0].error.as_deref(), Some("it is offline"));
    let process = world.start(&all);
    minutes(1).await;
    world.is_offline.store(false, Ordering::SeqCst);
    minutes(1).await;
    assert_eq!(world.started().len(), 2, "{:?}", world.started());
    let tea = world.reader().last(&DefinitionId::new("tea")).unwrap().unwrap().0;
    assert_eq!(tea, RunState::Completed);
    let runs = world.reader().runs(&Default::default()).unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run.error.is_none()), "{runs:?}");
    assert_eq!(world.remaining_files(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_long_enough_is_skipped_and_a_reminder_is_told() {
    let world = World::new();
    world.is_offline.store(true, Ordering::SeqCst);
    let news = requiring(with_cron(routine("news"), "0 13 * * *", OnOverlap::Skip), 2);
    let all = [requiring(reminder("tea"), 2), news];
    world.write(&all);
    // The wait counts from the claim, whatever restarts happen in between.
    let process = world.start(&all);
    minutes(61 + 60).await;
    process.crash().await;
    let process = world.start(&all);
    minutes(30).await;
    assert_eq!(world.reader().unfinished().unwrap().len(), 2);
    minutes(32).await;
    assert_eq!(world.starts().len(), 0);
    let outcomes = world.reader().occurrences(None).unwrap();
    assert!(outcomes.iter().all(|one| one.outcome == Some(RunState::Skipped)) && outcomes.len() == 2, "{outcomes:?}");
    let runs = world.reader().runs(&Default::default()).unwrap();
    assert!(runs.iter().all(|run| run.error.as_deref() == Some("it is offline, for 2h")), "{runs:?}");
    let told = world.notifications();
    assert_eq!(
        told.iter().filter(|text| text.starts_with("reminder tea was skipped: it is offline")).count(),
        1,
        "{told:?}"
    );
    assert!(!told.iter().any(|text| text.contains("news was skipped")), "{told:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn who_fires_it_by_hand_does_not_wait() {
    let world = World::new();
    world.is_offline.store(true, Ordering::SeqCst);
    let process = world.begin(&[requiring(reminder("tea"), 6)]);
    minutes(90).await;
    // Not at a moment of a check.
    seconds(10).await;
    assert_eq!(world.starts().len(), 0);
    process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
    minutes(1).await;
    assert_eq!(world.starts().len(), 1);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_needs_no_agent_waits_without_being_looked_at_all_the_time() {
    for client in [JobClient::Notify, JobClient::Exec] {
        let world = World::new();
        world.is_offline.store(true, Ordering::SeqCst);
        let tea = Definition { client: Some(client), ..requiring(reminder("tea"), 6) };
        let process = world.begin(&[tea]);
        minutes(90).await;
        seconds(10).await;
        assert_eq!(world.starts().len(), 0);
        process.schedule.fire(DefinitionId::new("tea")).await.unwrap();
        minutes(1).await;
        assert_eq!(world.starts().len(), 1, "{client:?}");
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_waits_to_be_tried_again_stays_a_failure() {
    let world = World::new();
    let offline = world.is_offline.clone();
    world.script(move |_| {
        offline.store(true, Ordering::SeqCst);
        vec![fails(FailureClass::Overloaded)]
    });
    let news = requiring(with_cron(routine("news"), "0 13 * * *", OnOverlap::Skip), 2);
    let process = world.begin(&[Definition { retry: Some(1), ..news }]);
    minutes(60 + 90).await;
    let told = world.notifications();
    assert!(told.len() == 1 && told[0].contains("It is tried again at "), "it still waits: {told:?}");
    minutes(45).await;
    assert_eq!(world.starts().len(), 1);
    let told = world.notifications();
    assert!(told.len() == 2 && told[1].starts_with("routine news failed: it is offline, for 2h"), "{told:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_looked_for_the_login_holds_up_no_others_while_it_waits() {
    let world = World::new();
    let offline = world.is_offline.clone();
    world.script(move |job| match job.definition.id.as_str() {
        "probe" => {
            offline.store(true, Ordering::SeqCst);
            vec![fails(FailureClass::NotLoggedIn)]
        }
        _ => vec![],
    });
    let probe = requiring(with_cron(routine("probe"), "0 13 * * *", OnOverlap::Skip), 6);
    let other = with_cron(routine("other"), "30 13 * * *", OnOverlap::Skip);
    let process = world.begin(&[probe, other]);
    minutes(60 + 45).await;
    assert!(world.started().contains(&"other 01T13:30:00".to_owned()), "{:?}", world.started());
    process.stop(Duration::ZERO).await;
}
