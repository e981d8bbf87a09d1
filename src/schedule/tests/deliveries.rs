//! Webhooks: each delivery runs once, in order, whenever the process dies.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{Accepted, DeliverError, Delivery};
use super::support::*;
use crate::definition::{Definition, DefinitionId, Hook, OnMissed, Signature, Trigger};
use crate::journal::{Occasion, RunState};

fn webhook(id: &str) -> Definition {
    let hook = Hook { signature: Signature::Bearer, secret_env: "SECRET".into(), fields: None, per_minute: 30 };
    let file = format!("webhooks/{id}.md").into();
    Definition { trigger: Trigger::Webhook(hook), on_missed: OnMissed::All, file, ..routine(id) }
}

fn delivery(key: &str) -> Delivery {
    Delivery { key: key.to_owned(), payload: format!(r#"{{"key":"{key}"}}"#), since: DateTime::UNIX_EPOCH }
}

async fn deliver(process: &Process, key: &str) -> Result<Accepted, DeliverError> {
    process.schedule.deliver(DefinitionId::new("deploy"), delivery(key)).await
}

#[tokio::test(start_paused = true)]
async fn each_is_one_occurrence_that_a_crash_leaves_one() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(30))]);
    let all = [webhook("deploy")];
    let mut process = world.begin(&all);
    let mut runs = BTreeSet::new();
    for n in 0..5u64 {
        minutes(3).await;
        // At the same moment, so that they would have the same time.
        let both = [format!("{n}"), format!("{n}-too")];
        for key in &both {
            let accepted = deliver(&process, key).await.unwrap();
            assert!(!accepted.is_repeated && runs.insert(accepted.run.to_string()), "{key}");
        }
        seconds(n * 9).await;
        process.crash().await;
        process = world.start(&all);
        for key in &both {
            let accepted = deliver(&process, key).await.unwrap();
            assert!(accepted.is_repeated && runs.contains(accepted.run.as_str()), "{key}");
        }
    }
    minutes(10).await;
    let outcomes = world.reader().occurrences(Some(&DefinitionId::new("deploy"))).unwrap();
    assert_eq!(outcomes.len(), 10);
    assert!(outcomes.iter().all(|one| one.outcome == Some(RunState::Completed)), "{outcomes:?}");
    // A payload is not kept for longer than needed.
    let kept = world.reader().runs(&Default::default()).unwrap();
    let has_none = |occasion: &Option<Occasion>| matches!(occasion, Some(Occasion::Delivered { payload, .. }) if payload.is_empty());
    assert!(kept.iter().all(|run| has_none(&run.occasion)), "{kept:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_content_is_another_delivery_later_on() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(1))]);
    let process = world.begin(&[webhook("deploy")]);
    minutes(1).await;
    let id = DefinitionId::new("deploy");
    let now = || world.clock.now();
    let within = |since: DateTime<Utc>| process.schedule.deliver(id.clone(), Delivery { since, ..delivery("content") });
    let first = within(now() - TimeDelta::hours(1)).await.unwrap();
    minutes(59).await;
    let again = within(now() - TimeDelta::hours(1)).await.unwrap();
    assert_eq!((again.is_repeated, &again.run), (true, &first.run));
    minutes(2).await;
    let another = within(now() - TimeDelta::hours(1)).await.unwrap();
    assert!(!another.is_repeated && another.run != first.run);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_taken_is_refused() {
    let world = World::new();
    world.script(|_| vec![Act::Take(Duration::from_secs(3600))]);
    let process = world.begin(&[webhook("deploy"), routine("mail")]);
    minutes(1).await;
    let to = |id: &str| process.schedule.deliver(DefinitionId::new(id), delivery("k"));
    for id in ["nobody", "mail"] {
        assert!(matches!(to(id).await, Err(DeliverError::NotFound(_))), "{id}");
    }
    process.schedule.pause().await.unwrap();
    assert!(matches!(to("deploy").await, Err(DeliverError::Paused)));
    process.schedule.resume().await.unwrap();
    let off = Definition { enabled: false, ..webhook("deploy") };
    world.write(std::slice::from_ref(&off));
    process.schedule.upsert(loaded(&off));
    assert!(matches!(to("deploy").await, Err(DeliverError::Paused)));
    world.write(&[webhook("deploy")]);
    process.schedule.upsert(loaded(&webhook("deploy")));
    let mut taken = 0;
    let refused = loop {
        match deliver(&process, &taken.to_string()).await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(taken == 200 && matches!(refused, DeliverError::Full), "{taken}: {refused}");
    process.schedule.stop(Duration::from_secs(1));
    assert!(matches!(to("deploy").await, Err(DeliverError::Stopping)));
    process.stop(Duration::ZERO).await;
}
