//! The service's own heartbeat: `heartbeat_url` of the settings.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::settings::Current;
use crate::heartbeat::{Beat, Heart, Heartbeats};
use crate::journal::JournalError;
use crate::schedule::Schedule;

/// A monitor hears of the service so often.
const PERIOD: Duration = Duration::from_secs(60);
/// So long the schedule may take to answer. It never waits for anything.
const ANSWERS: Duration = Duration::from_secs(10);
/// At the end a monitor is waited for no longer.
const LAST: Duration = Duration::from_secs(3);

/// Says every minute how the service is. Never returns.
pub(super) async fn beat(
    hearts: Heartbeats,
    schedule: Schedule,
    mut settings: Current,
    journal: Receiver<Option<JournalError>>,
) {
    let mut activity = schedule.activity();
    let _ended = activity.wait_for(|now| now.loaded).await.is_err();
    let mut known: Option<(String, Heart)> = None;
    let mut next = Instant::now();
    loop {
        let url = settings.borrow_and_update().heartbeat_url.clone();
        if known.as_ref().map(|(url, _)| url) != url.as_ref() {
            known = url.map(|url| {
                let heart = hearts.of(&url, "the service");
                heart.beat(Beat::Start);
                (url, heart)
            });
        }
        if let Some((_, heart)) = &known {
            let trouble = journal.borrow().as_ref().map(ToString::to_string);
            heart.beat(match timeout(ANSWERS, schedule.is_alive()).await {
                Err(_) => Beat::Fail("the schedule does not answer: nothing fires".into()),
                Ok(_) if trouble.is_some() => Beat::Fail(trouble.unwrap_or_default()),
                Ok(_) if activity.borrow().waiting_for_login => {
                    Beat::Fail("the agent client is not logged in: jobs wait".into())
                }
                Ok(_) if activity.borrow().waiting_for_agent => {
                    Beat::Fail("there is no agent client: jobs wait".into())
                }
                Ok(_) => Beat::Success,
            });
        }
        next += PERIOD;
        tokio::select! {
            () = sleep_until(next) => {}
            // A setting that is read again counts at once.
            Ok(()) = settings.changed() => {}
        }
    }
}

/// Says how the service ended, where it was one, and sends what is left.
pub(super) async fn last(hearts: &Heartbeats, settings: &Current, fault: Option<String>, of_service: bool) {
    let url = settings.borrow().heartbeat_url.clone();
    if let Some(url) = url.filter(|_| of_service) {
        hearts.of(&url, "the service").beat(match fault {
            Some(fault) => Beat::Fail(fault),
            None => Beat::Note("the service was ended in order".into()),
        });
    }
    hearts.finish(LAST).await;
}
