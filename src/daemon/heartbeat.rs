//! The service's own heartbeat, sent to the setting `heartbeat_url`.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::settings::CurrentSettings;
use crate::heartbeat::{Beat, HeartbeatSender, Heartbeats};
use crate::journal::JournalError;
use crate::schedule::Schedule;

/// Interval between two heartbeats.
const PERIOD: Duration = Duration::from_secs(60);
/// Maximum time for an answer of the schedule, which never waits for anything.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum wait for monitors at the end.
const LAST: Duration = Duration::from_secs(3);

/// Reports the service's health every minute. Never returns.
pub(super) async fn beat(
    hearts: Heartbeats,
    schedule: Schedule,
    mut settings: CurrentSettings,
    journal: Receiver<Option<JournalError>>,
) {
    let mut activity = schedule.activity();
    let _ended = activity.wait_for(|now| now.loaded).await.is_err();
    let mut known: Option<(String, HeartbeatSender)> = None;
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
            heart.beat(match timeout(ANSWER_TIMEOUT, schedule.is_alive()).await {
                Err(_) | Ok(false) => Beat::Fail("the schedule does not answer: nothing fires".into()),
                Ok(true) if trouble.is_some() => Beat::Fail(trouble.unwrap_or_default()),
                Ok(true) if activity.borrow().waiting_for_login => {
                    Beat::Fail("the agent client is not logged in: jobs wait".into())
                }
                Ok(true) if activity.borrow().waiting_for_agent => {
                    Beat::Fail("there is no agent client: jobs wait".into())
                }
                Ok(true) => Beat::Success,
            });
        }
        next += PERIOD;
        tokio::select! {
            () = sleep_until(next) => {}
            // A changed setting takes effect at once.
            Ok(()) = settings.changed() => {}
        }
    }
}

/// Reports how the service ended, if the process was a service, and sends all pending heartbeats.
pub(super) async fn last(hearts: &Heartbeats, settings: &CurrentSettings, fault: Option<String>, of_service: bool) {
    let url = settings.borrow().heartbeat_url.clone();
    if let Some(url) = url.filter(|_| of_service) {
        hearts.of(&url, "the service").beat(match fault {
            Some(fault) => Beat::Fail(fault),
            None => Beat::Note("the service was ended in order".into()),
        });
    }
    hearts.finish(LAST).await;
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Arc;

    use tokio::sync::{mpsc, watch};

    use super::*;
    use crate::config::Config;
    use crate::schedule::Activity;

    /// Starts a monitor. Returns its URL and its received requests, as `PATH BODY`.
    fn monitor() -> (String, mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, told) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = Vec::new();
                while head.last().is_none_or(|line: &String| line != "\r\n") {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    head.push(line);
                }
                let length = head
                    .iter()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).unwrap();
                stream
                    .get_mut()
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
                let path = head[0].split(' ').nth(1).unwrap();
                let _ended = tell.send(format!("{path} {}", String::from_utf8(body).unwrap()));
            }
        });
        (url, told)
    }

    #[tokio::test(start_paused = true)]
    async fn a_monitor_hears_of_a_schedule_that_stands_still_or_has_ended() {
        let (url, mut told) = monitor();
        let config = Config::parse(&format!("heartbeat_url: {url}"), &std::collections::BTreeMap::new()).unwrap();
        let (_settings, settings) = watch::channel(Arc::new(config));
        let (_journal, journal) = watch::channel(None);
        let (schedule, inbox) = Schedule::channel(1);
        inbox.say(Activity { loaded: true, ..Activity::default() });
        let beating = tokio::spawn(beat(Heartbeats::default(), schedule, settings, journal));
        let fails = "/fail the schedule does not answer: nothing fires";
        // First nobody reads the schedule's inbox, then it is closed.
        assert_eq!(told.recv().await.unwrap(), "/start ");
        assert_eq!(told.recv().await.unwrap(), fails);
        drop(inbox);
        assert_eq!(told.recv().await.unwrap(), fails);
        beating.abort();
    }
}
