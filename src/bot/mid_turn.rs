//! Messages that the person sends while the main session answers. The client of that turn may take them up at once; a
//! message that it takes up needs no turn of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::definition::{Definition, DefinitionId};
use crate::journal::RunId;

/// The messages sent meanwhile. Clones share them.
#[derive(Clone, Default)]
pub struct MidTurnMessages(Arc<Shared>);

#[derive(Default)]
struct Shared {
    messages: Mutex<Messages>,
    said: Notify,
}

#[derive(Default)]
struct Messages {
    running: Option<RunningTurn>,
    /// The fate of messages whose own turn has not come yet.
    received: HashMap<DefinitionId, MessageOutcome>,
}

/// The turn that took a message up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The turn completed, and so has answered the message.
    Answered(RunId),
    /// The turn was cut off. The message may have been acted on.
    CutOff(RunId),
}

/// The running turn.
struct RunningTurn {
    run: RunId,
    /// The channel for its answer.
    channel: Option<String>,
    /// Whether it is given new messages.
    accepts: bool,
    /// Messages that its client has not been given yet.
    waiting: VecDeque<Arc<Definition>>,
    /// Messages that its client was given.
    given: Vec<DefinitionId>,
    /// Messages that its client has taken up.
    received: Vec<DefinitionId>,
}

impl MidTurnMessages {
    /// Begins a turn of the person.
    pub fn begin(&self, run: RunId, channel: Option<String>) {
        let (waiting, given, received) = (VecDeque::new(), Vec::new(), Vec::new());
        self.messages().running = Some(RunningTurn { run, channel, accepts: true, waiting, given, received });
    }

    /// Ends the turn. Only a completed turn has answered the messages that it took up.
    pub fn end(&self, has_answered: bool) {
        let mut messages = self.messages();
        let Some(RunningTurn { run, received, .. }) = messages.running.take() else { return };
        let became =
            |run: RunId| if has_answered { MessageOutcome::Answered(run) } else { MessageOutcome::CutOff(run) };
        messages.received.extend(received.into_iter().map(|message| (message, became(run.clone()))));
    }

    /// Stops giving messages to the running turn: the person's next message is for another conversation, or another model.
    pub fn stop_accepting(&self) {
        if let Some(running) = &mut self.messages().running {
            running.accepts = false;
            running.waiting.clear();
        }
    }

    /// Adds a message of the person. A turn that answers in another channel does not get it.
    pub fn say(&self, message: Arc<Definition>) {
        if let Some(running) = &mut self.messages().running
            && running.accepts
            && running.channel == message.channel
        {
            running.waiting.push_back(message);
            self.0.said.notify_one();
        }
    }

    /// Waits for the next message. Cancel safe.
    pub async fn next(&self) -> Arc<Definition> {
        loop {
            let said = self.0.said.notified();
            if let Some(running) = &mut self.messages().running
                && let Some(message) = running.waiting.pop_front()
            {
                running.given.push(message.id.clone());
                return message;
            }
            said.await;
        }
    }

    /// Records that the client of the running turn has given the message to the model.
    pub fn mark_received(&self, message: DefinitionId) {
        if let Some(running) = &mut self.messages().running {
            running.received.push(message);
        }
    }

    /// Withdraws a message. Returns `false` if it is too late, because the client was given it.
    #[must_use]
    pub fn withdraw(&self, message: &DefinitionId) -> bool {
        let mut messages = self.messages();
        let Some(running) = &mut messages.running else { return true };
        running.waiting.retain(|waiting| waiting.id != *message);
        !running.given.contains(message)
    }

    /// Removes and returns the fate of a message whose own turn comes now.
    #[must_use]
    pub fn take_outcome(&self, message: &DefinitionId) -> Option<MessageOutcome> {
        self.messages().received.remove(message)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::definition::{Defaults, Draft, Kind, When, parse};

    fn message(id: &str, channel: &str) -> Arc<Definition> {
        let mut draft = Draft::new(When::At(chrono::DateTime::UNIX_EPOCH.fixed_offset()), id.to_owned());
        draft.channel = Some(channel.to_owned());
        let text = draft.render(Some(&DefinitionId::new(id)));
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let file = std::path::PathBuf::from(format!("sessions/{id}.md"));
        Arc::new(parse(Kind::Session, &file, text.as_bytes(), &defaults).definition.unwrap())
    }

    #[test]
    fn a_turn_is_handed_what_is_said_on_its_own_channel_and_answers_what_it_took_up() {
        let (mid_turn, phone) = (MidTurnMessages::default(), Some("phone".to_owned()));
        let next = || mid_turn.next().now_or_never().map(|message| message.id.to_string());
        mid_turn.say(message("chat-early", "phone"));
        mid_turn.begin(RunId::new("a"), phone.clone());
        mid_turn.say(message("chat-b", "phone"));
        mid_turn.say(message("chat-elsewhere", "desk"));
        mid_turn.say(message("chat-c", "phone"));
        assert_eq!(next().as_deref(), Some("chat-b"));
        let [b, c] = ["chat-b", "chat-c"].map(DefinitionId::new);
        assert!(!mid_turn.withdraw(&b), "its client has it");
        assert!(mid_turn.withdraw(&c));
        assert_eq!(next(), None);
        mid_turn.mark_received(b.clone());
        mid_turn.end(true);
        assert_eq!(mid_turn.take_outcome(&b), Some(MessageOutcome::Answered(RunId::new("a"))));
        assert_eq!((mid_turn.take_outcome(&b), mid_turn.take_outcome(&c)), (None, None));

        mid_turn.begin(RunId::new("d"), phone);
        mid_turn.say(message("chat-e", "phone"));
        assert_eq!(next().as_deref(), Some("chat-e"));
        mid_turn.mark_received(DefinitionId::new("chat-e"));
        mid_turn.stop_accepting();
        mid_turn.say(message("chat-f", "phone"));
        assert_eq!(next(), None);
        mid_turn.end(false);
        assert_eq!(mid_turn.take_outcome(&DefinitionId::new("chat-e")), Some(MessageOutcome::CutOff(RunId::new("d"))));
    }
}
