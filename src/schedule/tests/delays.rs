//! Delays and missed occurrences are reported once, together, and then counted.

use std::time::Duration;

use super::super::delays::punctuality;
use super::support::*;
use crate::definition::{Definition, DefinitionId, OnMissed, OnOverlap};
use crate::journal::{DelayCause, Punctuality};

#[tokio::test(start_paused = true)]
async fn what_was_missed_together_is_told_together_and_once() {
    let world = World::new();
    let all = [
        routine("mail"),
        Definition { on_missed: OnMissed::Skip, ..with_cron(routine("web"), "30 13 * * *", OnOverlap::Skip) },
        reminder("tea"),
    ];
    let process = world.begin(&all);
    minutes(10).await;
    process.crash().await;
    minutes(200).await;
    for _ in 0..3 {
        let process = world.start(&all);
        minutes(1).await;
        process.crash().await;
    }
    assert_eq!(
        world.notifications(),
        ["3 jobs did not run at their time:\n\
          - routine mail was due 3 times from 13:00 UTC to 15:00 UTC, when nothing could run: one runs now, the others \
          are skipped (`on_missed: latest`).\n\
          - reminder tea is late: it was due at 13:00 UTC and runs now.\n\
          - routine web was skipped: it was due at 13:30 UTC, when nothing could run (`on_missed: skip`)."]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_late_again_is_counted_until_it_is_on_time() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        // It runs until 13:42.
        "hog" => vec![Act::Take(Duration::from_secs(12 * 60))],
        _ => vec![],
    });
    let hog = with_cron(routine("hog"), "0,10,20 13 1 3 *", OnOverlap::Queue);
    let mail = with_cron(routine("mail"), "1,11,21,50 13 1 3 *", OnOverlap::Skip);
    let process = world.begin(&[hog, mail]);
    minutes(112).await;
    let told: Vec<String> = world.notifications().into_iter().filter(|text| text.starts_with("routine mail")).collect();
    assert_eq!(
        told,
        [
            "routine mail is late: it was due at 13:01 UTC, had to wait, and runs now. `ollim-bot status` shows what \
             waits; `max_concurrent_runs` says how many jobs run at once.",
            "routine mail is on time again; it was late or skipped once more since 13:12 UTC.",
        ]
    );
    process.stop(Duration::ZERO).await;
}

#[test]
fn a_wait_for_the_persons_own_yes_is_not_announced_and_a_channel_is_the_jobs() {
    let mail = Definition { channel: Some("post".to_owned()), ..routine("mail") };
    let (due, now) = (march("01T13:00:00"), march("01T13:05:00"));
    assert!(matches!(punctuality(&mail, due, Some(DelayCause::Approval), now), Punctuality::Unknown));
    let Punctuality::Late(delay) = punctuality(&mail, due, Some(DelayCause::EarlierRun), now) else {
        panic!("it is late");
    };
    assert_eq!(delay.channel.as_deref(), Some("post"));
    assert!(delay.text.ends_with("runs now: its earlier run was not over."), "{}", delay.text);
}

/// A job that makes jobs could make as many of them late as it likes.
#[tokio::test(start_paused = true)]
async fn messages_that_made_jobs_are_late_are_few() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|_| vec![Act::Take(Duration::from_secs(2 * 60))]);
    let made = |maker: &str, n: usize| Definition {
        created_by: Some(DefinitionId::new(maker)),
        ..with_cron(routine(&format!("{maker}-{n}")), "0 13 1 3 *", OnOverlap::Queue)
    };
    let all: Vec<Definition> = (1..=9).map(|n| made("mail", n)).collect();
    let process = world.begin(&all);
    minutes(90).await;
    let told = world.notifications();
    assert_eq!(told.iter().filter(|text| text.contains(" is late: ")).count(), 5, "{told:#?}");
    process.crash().await;
    // What was missed together is told of by itself for each maker, and for the person's own.
    let all = [made("tea", 1), made("tea", 2), routine("own")];
    let world = World::new();
    let process = world.begin(&all);
    minutes(10).await;
    process.crash().await;
    minutes(200).await;
    let process = world.start(&all);
    minutes(1).await;
    let told = world.notifications();
    assert!(told.len() == 2 && told[0].starts_with("routine own") && told[1].starts_with("2 jobs"), "{told:#?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_waited_in_the_queue_of_a_service_that_died_is_told_when_it_starts() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "tea" => vec![],
        _ => vec![Act::Hang],
    });
    let all = [at_time(reminder("stuck"), march("01T12:59:00")), reminder("tea")];
    let process = world.begin(&all);
    minutes(61).await;
    process.crash().await;
    world.script(|_| vec![]);
    let process = world.start(&all);
    minutes(1).await;
    let told = world.notifications();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("reminder tea is late: it was due at 13:00 UTC, had to wait"), "{told:?}");
    process.stop(Duration::ZERO).await;
}
