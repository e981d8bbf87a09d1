//! Takes what the journal holds for the person to the channel, oldest first.
//!
//! A message is marked as delivered after it was shown: a crash in between shows it twice rather than never.
//! One that cannot be shown stays, and is tried again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use futures::future::try_join_all;
use tokio::time::{sleep, timeout};

use crate::journal::{Journal, JournalError, Message};

/// Shows one message to the person.
pub type Show = Arc<dyn Fn(&Message) -> io::Result<()> + Send + Sync>;

/// The console's way: on this process's standard output, with times of this zone.
#[must_use]
pub fn console(zone: impl Fn() -> Tz + Send + Sync + 'static) -> Show {
    Arc::new(move |message| crate::channel::console::show(message, zone(), &mut io::stdout().lock()))
}

/// Messages shown before they are marked, in one commit.
const BATCH: u32 = 100;
/// Wait after a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// Delivers until the future is dropped.
pub async fn deliver(journal: Journal, show: Show) {
    let mut newest = journal.newest_message();
    let mut told = false;
    loop {
        newest.mark_unchanged();
        match batch(&journal, &show).await {
            Ok(0) => {
                told = false;
                if newest.changed().await.is_err() {
                    return;
                }
            }
            Ok(_) => told = false,
            Err(error) => {
                // Said once: it is tried again and again.
                if !told {
                    tracing::warn!(%error, "cannot deliver what the bot has to say; it stays in the inbox");
                    told = true;
                }
                sleep(AGAIN).await;
            }
        }
    }
}

/// Delivers what is left before the service ends, if that does not take long.
pub async fn last_words(journal: &Journal, show: &Show) {
    let all = async { while matches!(batch(journal, show).await, Ok(1..)) {} };
    if timeout(Duration::from_secs(2), all).await.is_err() {
        tracing::warn!("some of what the bot has to say was not delivered; it stays in the inbox");
    }
}

#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the terminal cannot be written to: {0}")]
    Show(#[from] io::Error),
}

/// How many were delivered.
async fn batch(journal: &Journal, show: &Show) -> Result<usize, DeliveryError> {
    let messages = journal.undelivered(BATCH).await?;
    let numbers: Vec<i64> = messages.iter().map(|message| message.number).collect();
    let show = Arc::clone(show);
    // A terminal that is stopped blocks its writer: it must not hold up the service's other work.
    let (shown, failure) = tokio::task::spawn_blocking(move || {
        for (index, message) in messages.iter().enumerate() {
            fail_point!(BeforeShow);
            if let Err(error) = show(message) {
                return (index, Some(error));
            }
            fail_point!(Shown);
        }
        (messages.len(), None)
    })
    .await
    .map_err(io::Error::other)?;
    try_join_all(numbers[..shown].iter().map(|number| journal.delivered(*number))).await?;
    fail_point!(DeliveryRecorded);
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(shown),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::Clock;
    use crate::journal::NewMessage;

    fn said(text: &str) -> NewMessage {
        NewMessage { run: None, id: None, text: text.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn everything_is_shown_once_and_what_fails_again() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        for text in ["one", "two", "three"] {
            journal.message(said(text)).await.unwrap();
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, mut fail_once) = (Arc::clone(&seen), Some("two"));
        let fail_once = Mutex::new(fail_once.take());
        let show: Show = Arc::new(move |message: &Message| {
            let mut failing = fail_once.lock().unwrap();
            if *failing == Some(message.text.as_str()) {
                *failing = None;
                return Err(io::Error::from(io::ErrorKind::BrokenPipe));
            }
            sink.lock().unwrap().push(message.text.clone());
            Ok(())
        });
        let worker = tokio::spawn(deliver(journal.clone(), show));
        while !journal.undelivered(10).await.unwrap().is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
        journal.message(said("four")).await.unwrap();
        while !journal.undelivered(10).await.unwrap().is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
        worker.abort();
        assert_eq!(*seen.lock().unwrap(), ["one", "two", "three", "four"]);
    }
}
