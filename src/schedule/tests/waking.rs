//! Definitions that wake the machine.

use super::support::*;
use crate::definition::{Definition, DefinitionId, OnOverlap};

#[tokio::test(start_paused = true)]
async fn the_machine_wakes_for_the_first_that_asks_for_it() {
    let world = World::new();
    let wakes = |definition| Definition { wake: true, ..definition };
    let tea = wakes(at_time(reminder("tea"), march("02T09:00:00")));
    let news = wakes(with_cron(routine("news"), "0 7 * * *", OnOverlap::Skip));
    let process = world.begin(&[routine("mail"), tea.clone(), news.clone()]);
    let wakes_at = async || {
        seconds(1).await;
        world.clock.wakes_at()
    };
    assert_eq!(wakes_at().await, Some(march("02T07:00:00")));
    // The routine is edited, and the reminder is removed.
    let news = Definition { wake: false, ..news };
    world.write(std::slice::from_ref(&news));
    process.schedule.upsert(loaded(&news));
    assert_eq!(wakes_at().await, Some(march("02T09:00:00")));
    process.schedule.remove(DefinitionId::new("tea"));
    assert_eq!(wakes_at().await, None);
    process.schedule.upsert(loaded(&tea));
    assert_eq!(wakes_at().await, Some(march("02T09:00:00")));
    // Nothing fires while everything is paused.
    process.schedule.pause().await.unwrap();
    assert_eq!(wakes_at().await, None);
    process.schedule.resume().await.unwrap();
    assert_eq!(wakes_at().await, Some(march("02T09:00:00")));
    minutes(60 * 22).await;
    assert_eq!(wakes_at().await, None, "it has fired");
    process.stop(std::time::Duration::ZERO).await;
}
