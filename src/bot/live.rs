//! Live observations of the person's turns, for display. They are not recorded: a listener that misses one loses
//! nothing, since the answer is a message in the journal.

use tokio::sync::broadcast;

use crate::agent::Observation;
use crate::definition::DefinitionId;

/// Number of observations kept for a slow listener, which misses older ones.
const BUFFERED: usize = 1024;

/// An observation of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnUpdate {
    /// The turn.
    pub turn: DefinitionId,
    /// The observation.
    pub what: UpdateKind,
}

/// The content of an observation.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateKind {
    /// A part of the model's text. [`Observation::Said`] has all of it afterwards.
    Letters(String),
    /// An action of the client.
    Did(Observation),
    /// The reason why a program of the latest call was refused.
    ProgramRefused(String),
    /// Whether a call waits for the person's answer.
    WaitsForPerson(bool),
    /// The end of an attempt.
    Ended {
        /// Whether the attempt completed.
        completed: bool,
    },
}

/// Broadcasts observations of running turns. Clones share the listeners.
#[derive(Clone, Debug)]
pub struct LiveTurns(broadcast::Sender<TurnUpdate>);

impl Default for LiveTurns {
    fn default() -> Self {
        Self(broadcast::Sender::new(BUFFERED))
    }
}

impl LiveTurns {
    /// Sends an observation to the current listeners.
    pub fn publish(&self, turn: &DefinitionId, what: UpdateKind) {
        if turn.is_turn() {
            // There may be no listeners.
            let _missed = self.0.send(TurnUpdate { turn: turn.clone(), what });
        }
    }

    /// Subscribes to observations from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<TurnUpdate> {
        self.0.subscribe()
    }
}
