//! Messages that the person sends while the main session answers. The client of that turn may take them up at once; a
//! message that it takes up needs no turn of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::definition::{Definition, DefinitionId};
use crate::journal::RunId;

/// The messages sent meanwhile. Clones share them.
#[derive(Clone, Default)]
pub struct Meanwhile(Arc<Shared>);

#[derive(Default)]
struct Shared {
    messages: Mutex<Messages>,
    said: Notify,
}

#[derive(Default)]
struct Messages {
    going: Option<Going>,
    /// The fate of messages whose own turn has not come yet.
    taken_up: HashMap<DefinitionId, TakenUp>,
}

/// The turn that took a message up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenUp {
    /// The turn completed, and so has answered the message.
    Answered(RunId),
    /// The turn was cut off. The message may have been acted on.
    CutOff(RunId),
}

/// The running turn.
struct Going {
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
    taken_up: Vec<DefinitionId>,
}

impl Meanwhile {
    /// Begins a turn of the person.
    pub fn begin(&self, run: RunId, channel: Option<String>) {
        let (waiting, given, taken_up) = (VecDeque::new(), Vec::new(), Vec::new());
        self.messages().going = Some(Going { run, channel, accepts: true, waiting, given, taken_up });
    }

    /// Ends the turn. Only a completed turn has answered the messages that it took up.
    pub fn end(&self, has_answered: bool) {
        let mut messages = self.messages();
        let Some(Going { run, taken_up, .. }) = messages.going.take() else { return };
        let became = |run: RunId| if has_answered { TakenUp::Answered(run) } else { TakenUp::CutOff(run) };
        messages.taken_up.extend(taken_up.into_iter().map(|message| (message, became(run.clone()))));
    }

    /// Stops giving messages to the running turn: the person's next message is for another conversation, or another model.
    pub fn hold_back(&self) {
        if let Some(going) = &mut self.messages().going {
            going.accepts = false;
            going.waiting.clear();
        }
    }

    /// Adds a message of the person. A turn that answers in another channel does not get it.
    pub fn say(&self, message: Arc<Definition>) {
        if let Some(going) = &mut self.messages().going
            && going.accepts
            && going.channel == message.channel
        {
            going.waiting.push_back(message);
            self.0.said.notify_one();
        }
    }

    /// Waits for the next message. Cancel safe.
    pub async fn next(&self) -> Arc<Definition> {
        loop {
            let said = self.0.said.notified();
            if let Some(going) = &mut self.messages().going
                && let Some(message) = going.waiting.pop_front()
            {
                going.given.push(message.id.clone());
                return message;
            }
            said.await;
        }
    }

    /// Records that the client of the running turn has given the message to the model.
    pub fn taken_up(&self, message: DefinitionId) {
        if let Some(going) = &mut self.messages().going {
            going.taken_up.push(message);
        }
    }

    /// Withdraws a message. Returns `false` if it is too late, because the client was given it.
    #[must_use]
    pub fn withdraw(&self, message: &DefinitionId) -> bool {
        let mut messages = self.messages();
        let Some(going) = &mut messages.going else { return true };
        going.waiting.retain(|waiting| waiting.id != *message);
        !going.given.contains(message)
    }

    /// Removes and returns the fate of a message whose own turn comes now.
    #[must_use]
    pub fn became_of(&self, message: &DefinitionId) -> Option<TakenUp> {
        self.messages().taken_up.remove(message)
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
        let (meanwhile, phone) = (Meanwhile::default(), Some("phone".to_owned()));
        let next = || meanwhile.next().now_or_never().map(|message| message.id.to_string());
        meanwhile.say(message("chat-early", "phone"));
        meanwhile.begin(RunId::new("a"), phone.clone());
        meanwhile.say(message("chat-b", "phone"));
        meanwhile.say(message("chat-elsewhere", "desk"));
        meanwhile.say(message("chat-c", "phone"));
        assert_eq!(next().as_deref(), Some("chat-b"));
        let [b, c] = ["chat-b", "chat-c"].map(DefinitionId::new);
        assert!(!meanwhile.withdraw(&b), "its client has it");
        assert!(meanwhile.withdraw(&c));
        assert_eq!(next(), None);
        meanwhile.taken_up(b.clone());
        meanwhile.end(true);
        assert_eq!(meanwhile.became_of(&b), Some(TakenUp::Answered(RunId::new("a"))));
        assert_eq!((meanwhile.became_of(&b), meanwhile.became_of(&c)), (None, None));

        meanwhile.begin(RunId::new("d"), phone);
        meanwhile.say(message("chat-e", "phone"));
        assert_eq!(next().as_deref(), Some("chat-e"));
        meanwhile.taken_up(DefinitionId::new("chat-e"));
        meanwhile.hold_back();
        meanwhile.say(message("chat-f", "phone"));
        assert_eq!(next(), None);
        meanwhile.end(false);
        assert_eq!(meanwhile.became_of(&DefinitionId::new("chat-e")), Some(TakenUp::CutOff(RunId::new("d"))));
    }
}
