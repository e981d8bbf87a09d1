//! The worker of one channel: delivers waiting messages in order, at most one at a time.
//!
//! A message is marked as delivered after it was sent. A crash in between sends it twice, under the same number, rather than never. A
//! failed delivery is retried; after a while another channel takes the message over.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::backoff::{self, Backoff};
use super::digest::digest;
use super::{Channel, Outgoing, QUESTIONS_SHOW_IT, SentParts};
use crate::clock::Clock;
use crate::config::{Config, TERMINAL};
use crate::definition::Urgency;
use crate::journal::{Cause, Journal, JournalError, Message, Refused, RichContent, Waiting};

/// Maximum number of messages read at once.
const BATCH: u32 = 1000;

/// Maximum number of sent messages whose delivery is not recorded yet, if the journal is a file.
const MAX_UNRECORDED: usize = 16;

/// Maximum number of messages with buttons that are sent separately at the end of quiet hours.
const MAX_ALONE: usize = 5;

/// Shortest wait after a failure.
const SHORTEST: Duration = Duration::from_secs(5);

pub(super) struct Worker {
    pub name: String,
    pub channel: Arc<dyn Channel>,
    pub journal: Journal,
    pub clock: Clock,
    pub settings: watch::Receiver<Arc<Config>>,
    /// Whether the service is stopping. No new messages arrive then, and failed deliveries stay in the journal.
    pub ending: watch::Receiver<bool>,
}

/// The result of one look at the waiting messages.
enum Step {
    /// No message waits.
    Idle,
    /// All waiting messages are held until this time.
    Quiet(DateTime<Utc>),
    /// A message was sent or handed over to another channel.
    Done,
    /// The channel does not work at present.
    Failed,
}

impl Worker {
    pub(super) async fn run(mut self) {
        let mut routed = self.journal.routed();
        let mut backoff = Backoff::from(SHORTEST);
        loop {
            routed.mark_unchanged();
            let step = self.step().await;
            let is_ending = *self.ending.borrow_and_update();
            match step {
                Ok(Step::Done) => {
                    backoff.worked();
                    continue;
                }
                _ if is_ending => return self.remove_statuses().await,
                Ok(Step::Idle) => self.wait(&mut routed, None).await,
                Ok(Step::Quiet(until)) => self.wait(&mut routed, Some(until)).await,
                Ok(Step::Failed) => self.pause(backoff.failed()).await,
                Err(error) => {
                    tracing::warn!(%error, channel = %self.name, "what is to be delivered cannot be read or recorded");
                    self.pause(backoff::LONGEST).await;
                }
            }
        }
    }

    async fn pause(&mut self, span: Duration) {
        let _ending = tokio::time::timeout(span, self.ending.changed()).await;
    }

    /// Waits until a message is routed, `until` is reached, the settings change, or the service stops.
    async fn wait(&mut self, routed: &mut watch::Receiver<u64>, until: Option<DateTime<Utc>>) {
        let moment = async {
            match until {
                Some(until) => self.clock.alarm().wait(Some(until)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = routed.changed() => {}
            () = moment => {}
            // The new settings may have other quiet hours.
            Ok(()) = self.settings.changed(), if until.is_some() => {}
            _ = self.ending.changed() => {}
        }
    }

    /// Hides all status messages, since no turn is running any more.
    async fn remove_statuses(&self) {
        if let Err(error) = self.hide_statuses(true).await {
            tracing::warn!(%error, channel = %self.name, "what shows turns is not known, and stays");
        }
    }

    /// Hides the status messages of turns that ended and whose answers are not delivered here.
    async fn hide_statuses(&self, all: bool) -> Result<(), JournalError> {
        for status in self.journal.leftover_statuses(&self.name, all).await? {
            match self.channel.remove_status(&status.turn, &status.message).await {
                Err(error) if error.retryable => {
                    tracing::debug!(channel = %self.name, why = %error.why, "what shows a turn that is over stays for now");
                }
                // After a permanent refusal the message is gone or cannot be changed any more.
                _ => self.journal.clear_turn_status(&self.name, &status.turn).await?,
            }
        }
        Ok(())
    }

    async fn step(&self) -> Result<Step, JournalError> {
        self.hide_statuses(false).await?;
        let waiting = self.journal.waiting(&self.name, BATCH).await?;
        if waiting.is_empty() {
            return Ok(Step::Idle);
        }
        let (now, config) = (self.clock.now(), Arc::clone(&self.settings.borrow()));
        let waiting: Vec<Waiting> = waiting.into_iter().map(|one| without_ended(one, config.timezone)).collect();
        let hours = config.quiet_hours_of(&self.name);
        let is_quiet = hours.and_then(|hours| hours.end(now, config.timezone)).is_some();
        let until = hours.and_then(|hours| hours.next_end(now, config.timezone));
        let waits = |one: &Waiting| match one.message.digest && !is_quiet {
            // A message that has waited for its digest is part of it, even if the service was down at the digest's time.
            true => until.is_some() && one.held_until.is_none_or(|held| held > now),
            // Holding a question past its deadline would deny it.
            false => {
                is_quiet && one.question.as_ref().is_none_or(|asked| until.is_some_and(|end| asked.deadline > end))
            }
        };
        let (mut at_once, mut held, mut together, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for one in &waiting {
            match one {
                one if is_at_once(&one.message) => at_once.push(self.alone(one)),
                one if waits(one) => held.push(one),
                one if one.held_until.is_some() => together.push(one),
                one => rest.push(self.alone(one)),
            }
        }
        if let Some(until) = until.filter(|_| !held.is_empty()) {
            self.hold(&held, until, &config).await?;
            if at_once.len() + together.len() + rest.len() == 0 {
                return Ok(Step::Quiet(until));
            }
        }
        let (with_buttons, together) = split_digest(together);
        let numbers = together.iter().map(|message| message.number).collect();
        at_once.extend(digest(together, config.timezone, &*self.channel).map(|digest| (numbers, digest)));
        at_once.extend(with_buttons.into_iter().map(|one| self.alone(one)));
        at_once.extend(rest);
        self.send(at_once, &waiting, &config).await
    }

    fn alone(&self, waiting: &Waiting) -> (Vec<i64>, Outgoing) {
        let message = &waiting.message;
        let answered = message.id.as_ref().and_then(|id| id.answered_on(&self.name));
        let reply_to = answered.map(str::to_owned);
        (vec![message.number], Outgoing { reply_to, ..Outgoing::on(&*self.channel, message) })
    }

    async fn hold(&self, waiting: &[&Waiting], until: DateTime<Utc>, config: &Config) -> Result<(), JournalError> {
        let end = until.with_timezone(&config.timezone).format("%a %-d %b %H:%M");
        let note = format!("its message is held until {end}: quiet hours");
        let digest_note = format!("its message waits for the digest at {end}");
        for (is_digest, note) in [(false, note), (true, digest_note)] {
            let fresh = waiting.iter().filter(|one| one.message.digest == is_digest && one.held_until != Some(until));
            let numbers: Vec<i64> = fresh.map(|one| one.message.number).collect();
            if !numbers.is_empty() {
                self.journal.hold(&self.name, numbers, until, note).await?;
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        sending: Vec<(Vec<i64>, Outgoing)>,
        waiting: &[Waiting],
        config: &Config,
    ) -> Result<Step, JournalError> {
        let mut records = JoinSet::new();
        let mut step = Step::Done;
        for (numbers, message) in sending {
            let parts: Vec<&Waiting> = waiting.iter().filter(|one| numbers.contains(&one.message.number)).collect();
            // Records are made beside the next message. Of those that a server's loss, or a full disk, keeps from being recorded, each is
            // sent again: on a server at most one, in a file a few.
            if self.journal.is_shared() || records.len() >= MAX_UNRECORDED {
                finish_records(&mut records).await?;
            }
            let mut sent = SentParts::of(&parts, &self.name, &self.journal);
            fail_point!(BeforeShow);
            match self.channel.send(&message, &mut sent).await {
                Ok(external) => {
                    fail_point!(Shown);
                    let (journal, name) = (self.journal.clone(), self.name.clone());
                    records.spawn(async move { journal.delivered(&name, &numbers, external).await });
                }
                Err(error) => {
                    finish_records(&mut records).await?;
                    tracing::warn!(channel = %self.name, why = %error.why, again = error.retryable, "a message was not delivered");
                    if !error.retryable {
                        for number in numbers {
                            self.reassign(Some(number), &error.why, config).await?;
                        }
                        continue;
                    }
                    let since = self.journal.not_delivered(&self.name, message.number, error.why.clone()).await?;
                    let patience = TimeDelta::from_std(config.failover_after).unwrap_or(TimeDelta::MAX);
                    if self.clock.now() - since >= patience {
                        self.reassign(None, &error.why, config).await?;
                    }
                    step = Step::Failed;
                    break;
                }
            }
        }
        finish_records(&mut records).await?;
        fail_point!(DeliveryRecorded);
        Ok(step)
    }

    async fn reassign(&self, only: Option<i64>, why: &str, config: &Config) -> Result<(), JournalError> {
        let next = config.channel_names().filter(|name| *name != self.name).map(str::to_owned).collect();
        let cause = match only {
            _ if self.name == TERMINAL => Cause::Closed,
            Some(_) => Cause::Refused,
            None => Cause::Broken,
        };
        self.journal.reassign(Refused { channel: self.name.clone(), only, why: why.to_owned(), next, cause }).await
    }
}

/// Whether the message is never held: it is critical, or belongs to a conversation, whose person has just written and is awake.
fn is_at_once(message: &Message) -> bool {
    message.urgency == Urgency::Critical || message.id.as_ref().is_some_and(|id| id.is_turn() || id.is_fork())
}

/// Replaces the text of an ended question by a note that it has ended.
fn without_ended(mut waiting: Waiting, zone: Tz) -> Waiting {
    if let Some(question) = waiting.question.take_if(|question| question.answer.is_some()) {
        let asked = question.asked.with_timezone(&zone).format("%H:%M");
        let end = question.end().unwrap_or_default();
        let title = format!("Question {} of {}, asked at {asked}, is over", question.number, question.id);
        let description = format!("{end}. {QUESTIONS_SHOW_IT}");
        waiting.message.text = format!("{title}: {description}");
        waiting.message.rich = Some(RichContent { title, description, ..RichContent::default() });
        // No part of the new text was sent yet.
        waiting.sent = None;
    }
    waiting
}

/// Splits the messages that waited for the end of quiet hours into those sent separately and those combined into one digest. A digest has
/// no buttons. So questions are separate, and so are other messages with buttons as long as they are few.
fn split_digest(waited: Vec<&Waiting>) -> (Vec<&Waiting>, Vec<&Message>) {
    let has_buttons =
        |one: &Waiting| !one.message.digest && one.message.rich.as_ref().is_some_and(|rich| !rich.buttons.is_empty());
    let are_few = waited.iter().filter(|one| has_buttons(one)).count() <= MAX_ALONE;
    let (alone, together): (Vec<_>, Vec<_>) =
        waited.into_iter().partition(|one| one.question.is_some() || are_few && has_buttons(one));
    (alone, together.into_iter().map(|one| &one.message).collect())
}

async fn finish_records(records: &mut JoinSet<Result<(), JournalError>>) -> Result<(), JournalError> {
    while let Some(recorded) = records.join_next().await {
        recorded.unwrap_or(Err(JournalError::Closed))?;
    }
    Ok(())
}
