//! Chooses the channels of each message and runs a worker for each channel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::worker::Worker;
use super::{Channel, OpenChats};
use crate::clock::Clock;
use crate::config::{CONSOLE, Config, TERMINAL};
use crate::definition::Urgency;
use crate::journal::{Cause, Journal, JournalError, Message, NewMessage, Refused};

/// Maximum number of messages that are routed in one commit.
const BATCH: u32 = 1000;

/// Wait after a journal error.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A number that no message has.
const NONE: i64 = 0;

/// Maximum time for the remaining deliveries when the service stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Delivers the journal's messages to the person. Delivery stops on drop.
pub struct Deliveries {
    journal: Journal,
    chooser: ChannelChooser,
    workers: JoinSet<()>,
    router: JoinSet<()>,
    ending: watch::Sender<bool>,
}

/// The chooser of a message's channels.
#[derive(Clone)]
struct ChannelChooser {
    names: Arc<[String]>,
    chats: OpenChats,
    settings: watch::Receiver<Arc<Config>>,
}

impl Deliveries {
    /// Starts delivery by `channels`, which include the console. Messages that wait for a removed channel move to the default channel.
    ///
    /// # Errors
    /// Fails if the journal cannot be written.
    pub async fn start(
        mut channels: BTreeMap<String, Arc<dyn Channel>>,
        chats: OpenChats,
        journal: Journal,
        clock: &Clock,
        settings: watch::Receiver<Arc<Config>>,
    ) -> Result<Self, JournalError> {
        channels.insert(TERMINAL.to_owned(), Arc::new(chats.clone()));
        let chooser = ChannelChooser { chats, names: channels.keys().cloned().collect(), settings: settings.clone() };
        let ending = watch::Sender::new(false);
        let (mut workers, mut router) = (JoinSet::new(), JoinSet::new());
        for (name, channel) in channels {
            router.spawn(tell_when_lost(name.clone(), Arc::clone(&channel), journal.clone(), settings.clone()));
            let (journal, clock, settings) = (journal.clone(), clock.clone(), settings.clone());
            let worker = Worker { name, channel, journal, clock, settings, ending: ending.subscribe() };
            workers.spawn(async move {
                let mut ending = worker.ending.clone();
                tokio::select! {
                    () = worker.journal.until_main() => {}
                    _ = ending.wait_for(|ending| *ending) => return,
                }
                worker.run().await;
            });
        }
        router.spawn(forward_questions(journal.clone(), chooser.clone()));
        if journal.is_main() {
            journal.move_waiting(chooser.names.to_vec(), chooser.default_channel()).await?;
        }
        let (of_router, chooses) = (journal.clone(), chooser.clone());
        router.spawn(async move {
            if !of_router.is_main() {
                of_router.until_main().await;
                let adopted = of_router.move_waiting(chooses.names.to_vec(), chooses.default_channel()).await;
                if let Err(error) = adopted {
                    tracing::error!(%error, "messages for channels that are gone stay where they are");
                }
            }
            route(of_router, chooses).await;
        });
        Ok(Self { journal, chooser, workers, router, ending })
    }

    /// Delivers the remaining messages for a few seconds, then stops.
    pub async fn finish(mut self) {
        self.router.shutdown().await;
        let last = async {
            while self.journal.is_main() && matches!(route_some(&self.journal, &self.chooser).await, Ok(1..)) {}
            self.ending.send_replace(true);
            while self.workers.join_next().await.is_some() {}
        };
        if timeout(SHUTDOWN_TIMEOUT, last).await.is_err() {
            tracing::warn!(
                "some messages were not delivered; they stay in the inbox, and are sent after the next start"
            );
        }
    }
}

impl ChannelChooser {
    /// Returns the default channel. Settings reload while the service runs, but the channels are fixed at its start.
    fn default_channel(&self) -> String {
        let named = self.settings.borrow().default_channel.clone();
        if self.names.contains(&named) { named } else { CONSOLE.to_owned() }
    }

    fn channels(&self, message: &Message) -> Vec<String> {
        // If no terminal is open any more, the answer is delivered by another channel.
        let wish = message.channel.as_ref().filter(|wish| *wish != TERMINAL || self.chats.any());
        let wish = wish.filter(|wish| {
            let known = self.names.contains(wish);
            if !known {
                let job = message.id.as_ref().map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%job, channel = %wish, "there is no channel of this name; the message goes to the default one");
            }
            known
        });
        let mut channels = vec![wish.cloned().unwrap_or_else(|| self.default_channel())];
        if message.urgency == Urgency::Critical {
            let critical = self.settings.borrow().critical_channel.clone();
            channels.extend(critical.filter(|name| self.names.contains(name) && !channels.contains(name)));
        }
        channels
    }
}

async fn route(journal: Journal, chooser: ChannelChooser) {
    let mut newest = journal.newest_message();
    loop {
        newest.mark_unchanged();
        match route_some(&journal, &chooser).await {
            Ok(0) => {
                if newest.changed().await.is_err() {
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "no channel can be chosen for messages; they stay in the inbox");
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Routes the terminal's open questions to the default channel when the last terminal closes.
async fn forward_questions(journal: Journal, chooser: ChannelChooser) {
    let mut chats = chooser.chats.count();
    while chats.changed().await.is_ok() {
        if *chats.borrow_and_update() == 0
            && let Err(error) = route_to_default(&journal, &chooser).await
        {
            tracing::warn!(%error, "questions stay at the terminal; `ollim-bot questions` shows them");
        }
    }
}

async fn route_to_default(journal: &Journal, chooser: &ChannelChooser) -> Result<(), JournalError> {
    let open = journal.questions_after(journal.ended_up_to().await?).await?;
    for number in open.iter().filter(|asked| asked.answer.is_none()).filter_map(|asked| asked.message) {
        if journal.delivery(number, TERMINAL).await?.is_some() {
            journal.route(vec![(number, vec![chooser.default_channel()])]).await?;
        }
    }
    Ok(())
}

/// Notifies the person by the next channel when a channel stops for good. Its pending messages are handed over one by one.
async fn tell_when_lost(
    name: String,
    channel: Arc<dyn Channel>,
    journal: Journal,
    settings: watch::Receiver<Arc<Config>>,
) {
    let why = channel.permanent_failure().await;
    let next = settings.borrow().channel_names().find(|next| *next != name).map(str::to_owned);
    let text = format!("The channel `{name}` does not work any more: {why}. `ollim-bot channels` shows how it is.");
    let told = async {
        let failing = Refused { channel: name.clone(), only: Some(NONE), why, next: Vec::new(), cause: Cause::Broken };
        journal.reassign(failing).await?;
        journal.message(NewMessage { channel: next, ..NewMessage::of_service(text) }).await
    };
    if let Err(error) = told.await {
        tracing::error!(%error, channel = %name, "that a channel does not work any more cannot be recorded");
    }
}

/// Routes one batch and returns the number of messages in it.
async fn route_some(journal: &Journal, chooser: &ChannelChooser) -> Result<usize, JournalError> {
    let messages = journal.unrouted(BATCH).await?;
    if !messages.is_empty() {
        journal.route(messages.iter().map(|message| (message.number, chooser.channels(message))).collect()).await?;
        fail_point!(Routed);
    }
    Ok(messages.len())
}
